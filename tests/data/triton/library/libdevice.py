# libdevice under its names.
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.language.extra.cuda.libdevice import rint as imported_rint
from triton.language.extra.libdevice import tanh


# case unary/exp | out=fp32[64] x=fp32[64]:rand(1,-80,80) N=64 | ulp 1
# case unary/exp2 | out=fp32[64] x=fp32[64]:rand(1,-80,80) N=64 | ulp 2
# case unary/exp10 | out=fp32[64] x=fp32[64]:rand(1,-30,30) N=64 | ulp 1
# case unary/expm1 | out=fp32[64] x=fp32[64]:rand(1,-2,2) N=64 | ulp 1
# case unary/log | out=fp32[64] x=fp32[64]:rand(1,0,9) N=64 | ulp 1
# case unary/log2 | out=fp32[64] x=fp32[64]:rand(1,0,9) N=64 | ulp 1
# case unary/log10 | out=fp32[64] x=fp32[64]:rand(1,0,9) N=64 | ulp 2
# case unary/log1p | out=fp32[64] x=fp32[64]:rand(1,-1,9) N=64 | ulp 1
# case unary/sqrt | out=fp32[64] x=fp32[64]:rand(1,0,9) N=64
# case unary/rsqrt | out=fp32[64] x=fp32[64]:rand(1,0,9) N=64 | ulp 2
# case unary/rsqrt_rn | out=fp32[64] x=fp32[64]:rand(1,0,9) N=64
# case unary/cbrt | out=fp32[64] x=fp32[64]:rand(1,-9,9) N=64 | ulp 1
# case unary/rcbrt | out=fp32[64] x=fp32[64]:rand(1,1,9) N=64 | ulp 4
# case unary/sin | out=fp32[64] x=fp32[64]:rand(1,-99,99) N=64 | ulp 2
# case unary/cos | out=fp32[64] x=fp32[64]:rand(1,-99,99) N=64 | ulp 2
# case unary/tan | out=fp32[64] x=fp32[64]:rand(1,-99,99) N=64 | ulp 4
# case unary/sinpi | out=fp32[64] x=fp32[64]:rand(1,-9,9) N=64 | ulp 1
# case unary/cospi | out=fp32[64] x=fp32[64]:rand(1,-9,9) N=64 | ulp 1
# case unary/sinpi | out=fp64[64] x=fp64[64]:rand(1,-9,9) N=64 | ulp 4
# case unary/cospi | out=fp64[64] x=fp64[64]:rand(1,-9,9) N=64 | ulp 4
# case unary/asin | out=fp32[64] x=fp32[64]:rand(1,-1,1) N=64 | ulp 2
# case unary/acos | out=fp32[64] x=fp32[64]:rand(1,-1,1) N=64 | ulp 2
# case unary/atan | out=fp32[64] x=fp32[64]:rand(1,-9,9) N=64 | ulp 2
# case unary/sinh | out=fp32[64] x=fp32[64]:rand(1,-9,9) N=64 | ulp 3
# case unary/cosh | out=fp32[64] x=fp32[64]:rand(1,-9,9) N=64 | ulp 2
# case unary/tanh | out=fp32[64] x=fp32[64]:rand(1,-4,4) N=64 | ulp 2
# case unary/asinh | out=fp32[64] x=fp32[64]:rand(1,-9,9) N=64 | ulp 3
# case unary/acosh | out=fp32[64] x=fp32[64]:rand(1,1,9) N=64 | ulp 4
# case unary/atanh | out=fp32[64] x=fp32[64]:rand(1,-1,1) N=64 | ulp 3
# case unary/erf | out=fp32[64] x=fp32[64]:rand(1,-3,3) N=64 | ulp 2
# case unary/erfc | out=fp32[64] x=fp32[64]:rand(1,-3,9) N=64 | ulp 4
# case unary/normcdf | out=fp32[64] x=fp32[64]:rand(1,-9,3) N=64 | ulp 1
# case unary/floor | out=fp32[16] x=fp32[16]:[-2.5,-1.5,-0.5,0.5,1.5,2.5,0.4999,-7] N=16
# case unary/ceil | out=fp32[16] x=fp32[16]:[-2.5,-1.5,-0.5,0.5,1.5,2.5,0.4999,-7] N=16
# case unary/trunc | out=fp32[16] x=fp32[16]:[-2.5,-1.5,-0.5,0.5,1.5,2.5,0.4999,-7] N=16
# case unary/rint | out=fp32[16] x=fp32[16]:[-2.5,-1.5,-0.5,0.5,1.5,2.5,0.4999,-7] N=16
# case unary/nearbyint | out=fp32[16] x=fp32[16]:[-2.5,-1.5,-0.5,0.5,1.5,2.5,0.4999,-7] N=16
# case unary/round | out=fp32[16] x=fp32[16]:[-2.5,-1.5,-0.5,0.5,1.5,2.5,0.4999,-7] N=16
# case unary/round | out=fp64[16] x=fp64[16]:[-2.5,-1.5,-0.5,0.5,1.5,2.5,0.4999,-7] N=16
# case unary/llrint | out=i64[16] x=fp32[16]:[-2.5,-1.5,-0.5,0.5,1.5,2.5,0.4999,-7] N=16
# case unary/llround | out=i64[16] x=fp64[16]:[-2.5,-1.5,-0.5,0.5,1.5,2.5,0.4999,-7] N=16
# case unary/abs | out=fp32[16] x=fp32[16]:[-2.5,-0.0,nan,-inf] N=16
# case unary/abs | out=i64[16] x=i64[16]:[-5,7] N=16
# case unary/saturatef | out=fp32[16] x=fp32[16]:[-2.5,0.25,nan,7,inf,1] N=16
# case unary/isnan | out=i32[16] x=fp32[16]:[-2.5,0.25,nan,7,inf,-inf] N=16
# case unary/isinf | out=i32[16] x=fp32[16]:[-2.5,0.25,nan,7,inf,-inf] N=16
# case unary/finitef | out=i32[16] x=fp32[16]:[-2.5,0.25,nan,7,inf,-inf] N=16
# case unary/isfinited | out=i32[16] x=fp64[16]:[-2.5,0.25,nan,7,inf,-inf] N=16
# case unary/signbit | out=i32[16] x=fp32[16]:[-2.5,0.25,-0.0,7,inf,-inf] N=16
# case unary/clz | out=i32[16] x=i32[16]:[0,1,-1,255,65536] N=16
# case unary/clz | out=i32[16] x=i64[16]:[0,1,-1,255,65536] N=16
# case unary/popc | out=i32[16] x=i32[16]:[0,1,-1,255,65537] N=16
# case unary/popc | out=i32[16] x=i64[16]:[0,1,-1,255,65537] N=16
# case unary/ffs | out=i32[16] x=i32[16]:[0,1,-1,256,65536,-2147483648] N=16
# case unary/ffs | out=i32[16] x=i64[16]:[0,1,-1,256,65536,-2147483648] N=16
# case unary/brev | out=i32[16] x=i32[16]:bits(7) N=16
# case unary/brev | out=i64[16] x=i64[16]:bits(7) N=16
# case unary/float_as_int | out=i32[16] x=fp32[16]:[1,-2.5,inf] N=16
# case unary/int_as_float | out=fp32[16] x=i32[16]:[1065353216,-1065353216] N=16
# case unary/float_as_uint | out=i32[16] x=fp32[16]:[1,-2.5,inf] N=16
# case unary/uint_as_float | out=fp32[16] x=u32[16]:[1065353216,3212836864] N=16
# case unary/double_as_longlong | out=i64[16] x=fp64[16]:[1,-2.5,inf] N=16
# case unary/longlong_as_double | out=fp64[16] x=i64[16]:[4607182418800017408] N=16
# case unary/double2loint | out=i32[16] x=fp64[16]:rand(1,-9,9) N=16
# case unary/double2hiint | out=i32[16] x=fp64[16]:rand(1,-9,9) N=16
# case unary/ilogb | out=i32[16] x=fp32[16]:[1,0.75,-9,1e-40,3e38,0,inf,nan] N=16
# case unary/logb | out=fp32[16] x=fp32[16]:[1,0.75,-9,1e-40,3e38,0,inf,nan] N=16
# case unary/ilogb | out=i32[16] x=fp64[16]:[1,0.75,-9,1e-310,3e38,0,inf,nan] N=16
# case unary/fast_expf | out=fp32[32] x=fp32[32]:rand(1,-5,5) N=32 | rel 2e-6
# case unary/fast_exp10f | out=fp32[32] x=fp32[32]:rand(1,-5,5) N=32 | rel 4e-6
# case unary/fast_logf | out=fp32[32] x=fp32[32]:rand(1,2,9) N=32 | rel 1e-6
# case unary/fast_log2f | out=fp32[32] x=fp32[32]:rand(1,2,9) N=32 | rel 1e-6
# case unary/fast_log10f | out=fp32[32] x=fp32[32]:rand(1,2,9) N=32 | rel 1e-6
# case unary/fast_sinf | out=fp32[32] x=fp32[32]:rand(1,-3,3) N=32 | abs 1e-6
# case unary/fast_cosf | out=fp32[32] x=fp32[32]:rand(1,-3,3) N=32 | abs 1e-6
# case unary/fast_tanf | out=fp32[32] x=fp32[32]:rand(1,-1,1) N=32 | abs 4e-6
# case unary/fast_tanhf | out=fp32[32] x=fp32[32]:rand(1,-3,3) N=32 | rel 1e-3
# case unary/lgamma | out=fp32[64] x=fp32[64]:rand(1,-9,30) N=64 | ulp 2
# case unary/lgamma | out=fp64[64] x=fp64[64]:rand(1,3,30) N=64 | rel 1e-13
# case unary/tgamma | out=fp32[64] x=fp32[64]:rand(1,-9,30) N=64 | ulp 2
# case unary/tgamma | out=fp64[64] x=fp64[64]:rand(1,-9,150) N=64 | rel 1e-12
# case unary/erfcx | out=fp32[64] x=fp32[64]:rand(1,-3,30) N=64 | ulp 2
# case unary/erfcx | out=fp64[64] x=fp64[64]:rand(1,-3,30) N=64 | rel 1e-14
# case unary/erfinv | out=fp32[64] x=fp32[64]:rand(1,-1,1) N=64 | ulp 1
# case unary/erfinv | out=fp64[64] x=fp64[64]:rand(1,-1,1) N=64 | rel 1e-14
# case unary/erfcinv | out=fp32[64] x=fp32[64]:rand(1,0,2) N=64 | ulp 2
# case unary/erfcinv | out=fp64[8] x=fp64[8]:[1e-200,1e-30,1e-5,0.1,0.3,1.2,1.9,1e-300] N=8 | rel 1e-13
# case unary/normcdfinv | out=fp32[64] x=fp32[64]:rand(1,0,1) N=64 | ulp 2
# covers op:libdevice.exp, op:libdevice.exp2, op:libdevice.log, op:libdevice.log1p, op:libdevice.sqrt, op:libdevice.rsqrt
# covers op:libdevice.tanh, op:libdevice.erf, op:libdevice.rint, op:libdevice.round, op:libdevice.llrint
# covers op:libdevice.isnan, op:libdevice.isfinited, op:libdevice.finitef, op:libdevice.ffs, op:libdevice.asin
# covers op:libdevice.fast_expf, op:libdevice.fast_logf
@triton.jit
def unary(out, x, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, libdevice.FUNCTION(tl.load(x + at)))


# case binary/pow | out=fp32[64] x=fp32[64]:rand(1,0,9) y=fp32[64]:rand(2,-9,9) N=64 | ulp 2
# case binary/pow | out=fp64[32] x=fp64[32]:rand(1,0,9) y=fp64[32]:rand(2,-9,9) N=32 | ulp 2
# case binary/atan2 | out=fp32[64] x=fp32[64]:rand(1,-9,9) y=fp32[64]:rand(2,-9,9) N=64 | ulp 3
# case binary/hypot | out=fp32[64] x=fp32[64]:rand(1,-9,9) y=fp32[64]:rand(2,-9,9) N=64 | ulp 3
# case binary/rhypot | out=fp32[64] x=fp32[64]:rand(1,-9,9) y=fp32[64]:rand(2,-9,9) N=64 | ulp 6
# case binary/fmod | out=fp32[64] x=fp32[64]:rand(1,-99,99) y=fp32[64]:rand(2,-9,9) N=64
# case binary/remainder | out=fp32[64] x=fp32[64]:rand(1,-99,99) y=fp32[64]:rand(2,-9,9) N=64
# case binary/remainder | out=fp64[64] x=fp64[64]:[5,-5,6,7,2.5,0,1e20] y=fp64[64]:[2,4,4,-4,1,3,0.1] N=64
# case binary/copysign | out=fp32[16] x=fp32[16]:[1,-2,nan,0] y=fp32[16]:[-1,1,-1,-0.0,3] N=16
# case binary/fdim | out=fp32[16] x=fp32[16]:rand(1,-1,1) y=fp32[16]:rand(2,-1,1) N=16
# case binary/nextafter | out=fp32[16] x=fp32[16]:[1,-1,0,-0.0,5,inf,3] y=fp32[16]:[2,2,1,-1,5,0] N=16
# case binary/nextafter | out=fp64[16] x=fp64[16]:[1,-1,0,-0.0,5,inf,3] y=fp64[16]:[2,2,1,-1,5,0] N=16
# case binary/max | out=fp32[16] x=fp32[16]:rand(1,-1,1) y=fp32[16]:rand(2,-1,1) N=16
# case binary/min | out=i32[16] x=i32[16]:bits(1) y=i32[16]:bits(2) N=16
# case binary/div_rn | out=fp32[64] x=fp32[64]:rand(1,-9,9) y=fp32[64]:rand(2,-9,9) N=64
# case binary/mul_rn | out=fp32[64] x=fp32[64]:rand(1,-9,9) y=fp32[64]:rand(2,-9,9) N=64
# case binary/add_rn | out=fp32[64] x=fp32[64]:rand(1,-9,9) y=fp32[64]:rand(2,-9,9) N=64
# case binary/sub_rn | out=fp32[64] x=fp32[64]:rand(1,-9,9) y=fp32[64]:rand(2,-9,9) N=64
# case binary/fast_dividef | out=fp32[64] x=fp32[64]:rand(1,-9,9) y=fp32[64]:rand(2,1,9) N=64 | ulp 2
# case binary/fast_powf | out=fp32[64] x=fp32[64]:rand(1,2,9) y=fp32[64]:rand(2,-2,2) N=64 | rel 4e-6
# case binary/mulhi | out=i32[16] x=i32[16]:bits(1) y=i32[16]:bits(2) N=16
# case binary/mulhi | out=u32[16] x=u32[16]:bits(1) y=u32[16]:bits(2) N=16
# case binary/mulhi | out=i64[16] x=i64[16]:bits(1) y=i64[16]:bits(2) N=16
# case binary/mul24 | out=i32[16] x=i32[16]:bits(1) y=i32[16]:bits(2) N=16
# case binary/mul24 | out=u32[16] x=u32[16]:bits(1) y=u32[16]:bits(2) N=16
# case binary/hadd | out=i32[16] x=i32[16]:bits(1) y=i32[16]:bits(2) N=16
# case binary/rhadd | out=u32[16] x=u32[16]:bits(1) y=u32[16]:bits(2) N=16
# case binary/hiloint2double | out=fp64[16] x=i32[16]:[1072693248,-1073741824] y=i32[16]:[0,-1,7] N=16
# case binary/ldexp | out=fp32[16] x=fp32[16]:[1,-0.75,1.5,3e38] y=i32[16]:[3,-130,-149,2,200,-200] N=16
# case binary/ldexp | out=fp64[16] x=fp64[16]:[1,-0.75,1.25,3e38] y=i32[16]:[3,-1030,-1070,900,2000] N=16
# case binary/scalbn | out=fp32[16] x=fp32[16]:[1,-0.75,1.5,3e38] y=i32[16]:[3,-130,-149,2,200,-200] N=16
# covers op:libdevice.pow, op:libdevice.copysign, op:libdevice.div_rn, op:libdevice.mul_rn, op:libdevice.fast_dividef
@triton.jit
def binary(out, x, y, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, libdevice.FUNCTION(tl.load(x + at), tl.load(y + at)))


# case ternary/fma | out=fp32[32] x=fp32[32]:rand(1,-9,9) y=fp32[32]:rand(2,-9,9) z=fp32[32]:rand(3,-9,9) N=32
# case ternary/fma_rn | out=fp64[32] x=fp64[32]:rand(1,-9,9) y=fp64[32]:rand(2,-9,9) z=fp64[32]:rand(3,-9,9) N=32
# case ternary/norm3d | out=fp32[32] x=fp32[32]:rand(1,-9,9) y=fp32[32]:rand(2,-9,9) z=fp32[32]:rand(3,-9,9) N=32 | ulp 1
# case ternary/rnorm3d | out=fp32[32] x=fp32[32]:rand(1,-9,9) y=fp32[32]:rand(2,-9,9) z=fp32[32]:rand(3,-9,9) N=32 | ulp 1
# case ternary/byte_perm | out=i32[16] x=i32[16]:bits(1) y=i32[16]:bits(2) z=i32[16]:[291,17767,30292,0] N=16
# case ternary/sad | out=u32[16] x=i32[16]:[5,-7,3] y=i32[16]:[9,2,-2] z=u32[16]:[1,2,3,4] N=16
@triton.jit
def ternary(out, x, y, z, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, libdevice.FUNCTION(tl.load(x + at), tl.load(y + at), tl.load(z + at)))


# case four/norm4d | out=fp32[32] x=fp32[32]:rand(1,-9,9) | ulp 1
# case four/rnorm4d | out=fp32[32] x=fp32[32]:rand(1,-9,9) | ulp 1
@triton.jit
def four(out, x):
    at = tl.arange(0, 32)
    v = tl.load(x + at)
    tl.store(out + at, libdevice.FUNCTION(v, 2 * v, v, v * 0.5))


# case names | out=fp32[48] x=fp32[8]:[-2.5,-1.5,-0.5,0.5,1.5,2.5,0.25,-7] | ulp 2
@triton.jit
def names(out, x):
    at = tl.arange(0, 8)
    v = tl.load(x + at)
    tl.store(out + at, cuda_libdevice.rint(v))
    tl.store(out + 8 + at, tl.extra.libdevice.trunc(v))
    tl.store(out + 16 + at, tl.extra.cuda.libdevice.round(v))
    tl.store(out + 24 + at, tanh(imported_rint(v)))
    tl.store(out + 32 + at, tl.libdevice.tanh(v))
    tl.store(out + 40 + at, tl.math.max(tl.math.tanh(v), v))


# case not_contracted | out=fp32[32] x=fp32[32]:rand(1,-1,1) y=fp32[32]:rand(2,-1,1) z=fp32[32]:rand(3,-1,1)
@triton.jit
def not_contracted(out, x, y, z):
    at = tl.arange(0, 32)
    tl.store(out + at, libdevice.mul_rn(tl.load(x + at), tl.load(y + at)) + tl.load(z + at))
