// Errors of results that lie in memory, against CUDA's own functions of double, on the GPU.
//
//     nvcc -O3 -cubin -arch=sm_90 reference.cu -o reference.cubin
//
// `gpu.py` drives it. For each function there is a kernel `f32_NAME` (and `f64_NAME`) that compares a
// range of results with the reference and keeps, for each of 64 groups of blocks, the largest error
// with the index of its argument: the error as float in the upper half of a word, the index in the lower.

#include <math_constants.h>

typedef unsigned long long u64;

struct Worst {
  u64 ours[64];
  // The largest error of CUDA's function of float.
  u64 theirs;
  // Results beyond the bound.
  u64 over;
};

// How errors are counted.
enum Rule {
  // In units of the last place.
  ULP,
  // The same, and numbers below 2^-126 count as 0.
  FTZ,
  // In units of 2^-23, of angles within 2 pi.
  ANGLE,
  // Against the larger of 2^-22 and 2^-22 of the result: in units of that.
  LG2,
  // Numbers not below 0 only.
  ABOVE,
  // Numbers below 0 only, in units of the larger of the result and 1.
  BELOW,
};

__device__ double unit(double exact) {
  int exponent = ilogb(exact);
  return ldexp(1.0, max(min(exponent, 127), -126) - 23);
}

template <Rule RULE>
__device__ float error(double exact, float found, float x) {
  float rounded = (float)exact;
  if (RULE == ABOVE && x < 0.0f || RULE == BELOW && !(x < 0.0f)) return 0.0f;
  if (isnan(found) || isnan(rounded))
    return isnan(found) && isnan(rounded) ? 0.0f : CUDART_INF_F;
  if (RULE == ANGLE) return fabs(x) <= 6.2831855f ? (float)(fabs(found - exact) * 0x1p23) : 0.0f;
  if (RULE == FTZ && fabs(exact) < 0x1p-126 * (1 + 0x1p-22) && found == 0.0f) return 0.0f;
  if (RULE == LG2 && isfinite(rounded))
    return (float)(fabs(found - exact) / (0x1p-22 * fmax(1.0, fabs(exact))));
  if (isinf(rounded) || exact == 0.0) {
    if (found == rounded && !signbit(found) == !signbit(rounded)) return 0.0f;
    return isfinite(exact) && found == copysignf(CUDART_MAX_NORMAL_F, rounded) ? 1.0f : CUDART_INF_F;
  }
  if (isinf(found)) return fabs(exact) > (double)CUDART_MAX_NORMAL_F * (1 - 1e-7) ? 1.0f : CUDART_INF_F;
  return (float)fabs((found - exact) / unit(RULE == BELOW ? fmax(fabs(exact), 1.0) : exact));
}

__device__ u64 larger(u64 a, u64 b) { return a > b ? a : b; }

__device__ void keep(u64 *place, u64 mine) {
  for (int offset = 16; offset; offset /= 2) mine = larger(mine, __shfl_xor_sync(~0u, mine, offset));
  if (threadIdx.x % 32 == 0 && mine) atomicMax(place, mine);
}

#define SINGLES(NAME, RULE, EXACT, THEIRS)                                                              \
  extern "C" __global__ void f32_##NAME(const float *xs, const float *ys, const float *found, u64 base, \
                                        u64 count, double bound, Worst *worst) {                        \
    u64 ours = 0, theirs = 0, over = 0;                                                                 \
    for (u64 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {       \
      float fx = xs[i], fy = ys[i];                                                                     \
      if (RULE == FTZ && fabsf(fx) < 0x1p-126f) fx = copysignf(0.0f, fx);                               \
      [[maybe_unused]] double x = fx, y = fy;                                                           \
      double exact = EXACT;                                                                             \
      float e = error<RULE>(exact, found[i], fx);                                                       \
      over += e > bound;                                                                                \
      u64 index = base + i & 0xffffffff;                                                                \
      ours = larger(ours, (u64)__float_as_uint(e) << 32 | index);                                       \
      float t = error<RULE>(exact, THEIRS, fx);                                                         \
      theirs = larger(theirs, (u64)__float_as_uint(t) << 32 | index);                                   \
    }                                                                                                   \
    keep(&worst->ours[blockIdx.x % 64], ours);                                                          \
    keep(&worst->theirs, theirs);                                                                       \
    if (over) atomicAdd(&worst->over, over);                                                            \
  }

SINGLES(exp, FTZ, exp2((double)(fabsf(fx * 1.4426950408889634f) < 0x1p-126f ? 0.0f : fx * 1.4426950408889634f)), __expf(fx))
SINGLES(exp2, FTZ, exp2(x), exp2f(fx))
SINGLES(exp_precise, ULP, exp(x), expf(fx))
SINGLES(exp10, ULP, exp10(x), exp10f(fx))
SINGLES(expm1, ULP, expm1(x), expm1f(fx))
SINGLES(log, ULP, log(x), logf(fx))
SINGLES(log2, ULP, log2(x), log2f(fx))
SINGLES(log2_approx, LG2, log2(x), __log2f(fx))
SINGLES(log10, ULP, log10(x), log10f(fx))
SINGLES(log1p, ULP, log1p(x), log1pf(fx))
SINGLES(sin, ULP, sin(x), sinf(fx))
SINGLES(cos, ULP, cos(x), cosf(fx))
SINGLES(tan, ULP, tan(x), tanf(fx))
SINGLES(sin_approx, ANGLE, sin(x), __sinf(fx))
SINGLES(cos_approx, ANGLE, cos(x), __cosf(fx))
SINGLES(asin, ULP, asin(x), asinf(fx))
SINGLES(acos, ULP, acos(x), acosf(fx))
SINGLES(atan, ULP, atan(x), atanf(fx))
SINGLES(sinh, ULP, sinh(x), sinhf(fx))
SINGLES(cosh, ULP, cosh(x), coshf(fx))
SINGLES(tanh, ULP, tanh(x), tanhf(fx))
SINGLES(asinh, ULP, asinh(x), asinhf(fx))
SINGLES(acosh, ULP, acosh(x), acoshf(fx))
SINGLES(atanh, ULP, atanh(x), atanhf(fx))
SINGLES(erf, ULP, erf(x), erff(fx))
SINGLES(erfc, ULP, erfc(x), erfcf(fx))
SINGLES(erfinv, ULP, erfinv(x), erfinvf(fx))
SINGLES(lgamma, ABOVE, lgamma(x), lgammaf(fx))
SINGLES(lgamma_below, BELOW, lgamma(x), lgammaf(fx))
SINGLES(cbrt, ULP, cbrt(x), cbrtf(fx))
SINGLES(rsqrt, FTZ, 1.0 / sqrt(x), rsqrtf(fx))
SINGLES(sqrt, FTZ, sqrt(x), sqrtf(fx))
SINGLES(sqrt_rn, ULP, sqrt(x), sqrtf(fx))
SINGLES(rcp, ULP, 1.0 / x, 1.0f / fx)
SINGLES(rcp_ftz, FTZ, 1.0 / x, 1.0f / fx)
SINGLES(floor, ULP, floor(x), floorf(fx))
SINGLES(ceil, ULP, ceil(x), ceilf(fx))
SINGLES(rint, ULP, rint(x), rintf(fx))
SINGLES(trunc, ULP, trunc(x), truncf(fx))
SINGLES(round, ULP, round(x), roundf(fx))
SINGLES(pow, ULP, pow(x, y), powf(fx, fy))
SINGLES(atan2, ULP, atan2(x, y), atan2f(fx, fy))
SINGLES(hypot, ULP, hypot(x, y), hypotf(fx, fy))
SINGLES(frem, ULP, fmod(x, y), fmodf(fx, fy))
SINGLES(fdiv, ULP, x / y, __fdividef(fx, fy))
SINGLES(fdiv_rn, ULP, x / y, fx / fy)

// Numbers as integers of the same order, -0 just below 0.
__device__ long long place(double x) {
  long long bits = __double_as_longlong(x);
  return bits < 0 ? ~(bits & 0x7fffffffffffffff) : bits;
}

// The distance of two doubles in units of the last place.
__device__ float distance(double exact, double found) {
  if (isnan(exact) || isnan(found)) return isnan(exact) && isnan(found) ? 0.0f : CUDART_INF_F;
  long long a = place(exact), b = place(found);
  return (float)(a > b ? (u64)a - (u64)b : (u64)b - (u64)a);
}

#define DOUBLES(NAME, IS_DEFINED, THEIRS)                                                                  \
  extern "C" __global__ void f64_##NAME(const double *xs, const double *ys, const double *found, u64 base, \
                                        u64 count, double bound, Worst *worst) {                           \
    u64 ours = 0, over = 0;                                                                                \
    for (u64 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {          \
      [[maybe_unused]] double x = xs[i], y = ys[i];                                                        \
      float e = (IS_DEFINED) ? distance(THEIRS, found[i]) : 0.0f;                                          \
      over += e > bound;                                                                                   \
      ours = larger(ours, (u64)__float_as_uint(e) << 32 | (base + i & 0xffffffff));                        \
    }                                                                                                      \
    keep(&worst->ours[blockIdx.x % 64], ours);                                                             \
    if (over) atomicAdd(&worst->over, over);                                                               \
  }

DOUBLES(exp, true, exp(x))
DOUBLES(exp_precise, true, exp(x))
DOUBLES(exp2, true, exp2(x))
DOUBLES(exp10, true, exp10(x))
DOUBLES(expm1, true, expm1(x))
DOUBLES(log, true, log(x))
DOUBLES(log2, true, log2(x))
DOUBLES(log10, true, log10(x))
DOUBLES(log1p, true, log1p(x))
DOUBLES(sin, true, sin(x))
DOUBLES(cos, true, cos(x))
DOUBLES(tan, true, tan(x))
DOUBLES(asin, true, asin(x))
DOUBLES(acos, true, acos(x))
DOUBLES(atan, true, atan(x))
DOUBLES(sinh, true, sinh(x))
DOUBLES(cosh, true, cosh(x))
DOUBLES(tanh, true, tanh(x))
DOUBLES(asinh, true, asinh(x))
DOUBLES(acosh, true, acosh(x))
DOUBLES(atanh, true, atanh(x))
DOUBLES(erf, true, erf(x))
DOUBLES(erfc, true, erfc(x))
DOUBLES(erfinv, true, erfinv(x))
DOUBLES(lgamma, !(x < 0.0), lgamma(x))
// Small results count as 1.
DOUBLES(lgamma_below, x < 0.0 && fabs(found[i]) >= 1.0, lgamma(x))
DOUBLES(cbrt, true, cbrt(x))
DOUBLES(rsqrt, true, rsqrt(x))
DOUBLES(sqrt, true, sqrt(x))
DOUBLES(sqrt_rn, true, sqrt(x))
DOUBLES(rcp, true, 1.0 / x)
DOUBLES(floor, true, floor(x))
DOUBLES(ceil, true, ceil(x))
DOUBLES(rint, true, rint(x))
DOUBLES(trunc, true, trunc(x))
DOUBLES(round, true, round(x))
DOUBLES(pow, true, pow(x, y))
DOUBLES(atan2, true, atan2(x, y))
DOUBLES(hypot, true, hypot(x, y))
DOUBLES(frem, fabs(x / y) < 1e30 || y == 0.0, fmod(x, y))
DOUBLES(fdiv_rn, true, x / y)

// Every f32: argument i is the number with the bits base + i.
extern "C" __global__ void every_single(float *xs, u64 base, u64 count) {
  for (u64 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    xs[i] = __uint_as_float((unsigned)(base + i));
}

__device__ u64 mix(u64 z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}

// The edge cases against each other; then in turn bits of every kind, numbers of ordinary size, and twice
// numbers from the range where the function bends.
template <typename T>
__device__ T sample(u64 index, u64 operand, u64 operands, const T *edges, u64 n_edges, double low, double high) {
  u64 n = operands == 2 ? n_edges * n_edges : n_edges;
  if (index < n) return edges[operand ? index / n_edges : index % n_edges];
  u64 bits = mix((2 * index + operand + 1) * 0x9e3779b97f4a7c15ull);
  u64 more = mix(bits ^ 0x5851f42d4c957f2dull);
  switch (index % 4) {
    case 0:
      return sizeof(T) == 4 ? (T)__uint_as_float((unsigned)bits) : (T)__longlong_as_double(bits);
    case 1: {
      double size = ldexp(1.0 + (double)(bits >> 12) * 0x1p-52, (int)(more >> 8 & 63) - 32);
      return (T)(more & 1 ? -size : size);
    }
    default:
      return (T)(low + (high - low) * ((double)(bits >> 11) * 0x1p-53));
  }
}

#define SAMPLES(TYPE, NAME)                                                                                    \
  extern "C" __global__ void NAME(TYPE *xs, TYPE *ys, u64 operands, u64 base, u64 count, const TYPE *edges,    \
                                  u64 n_edges, double low, double high) {                                      \
    for (u64 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {              \
      xs[i] = sample<TYPE>(base + i, 0, operands, edges, n_edges, low, high);                                  \
      if (operands == 2) ys[i] = sample<TYPE>(base + i, 1, operands, edges, n_edges, low, high);               \
    }                                                                                                          \
  }
SAMPLES(float, singles)
SAMPLES(double, doubles)
