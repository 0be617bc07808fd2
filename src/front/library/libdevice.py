# Functions of libdevice that are written in the language. What goes wrong in them is told of the call.


@jit
def saturatef(x):
    # What is no number becomes zero.
    return minimum(maximum(x, 0.0), 1.0)


@jit
def signbit(x):
    bits = to(x, get_int_dtype(x.dtype.primitive_bitwidth, True), bitcast=True)
    return to(bits < 0, int32)


@jit
def ffs(x):
    # The lowest set bit alone, counted from the other end.
    return x.dtype.primitive_bitwidth - clz(x & (0 - x))


@jit
def mul24(x, y):
    if x.dtype.is_int_signed():
        return ((x << 8) >> 8) * ((y << 8) >> 8)
    else:
        return (x & 0xFFFFFF) * (y & 0xFFFFFF)


@jit
def sad(x, y, z):
    return z + to(where(x < y, y - x, x - y), z.dtype)


@jit
def hadd(x, y):
    # Without the carry that the sum would lose.
    return (x & y) + ((x ^ y) >> 1)


@jit
def rhadd(x, y):
    return (x | y) - ((x ^ y) >> 1)


@jit
def hiloint2double(high, low):
    bits = (to(high, int64) << 32) | to(to(low, uint32, bitcast=True), int64)
    return to(bits, float64, bitcast=True)


@jit
def double2loint(x):
    return to(to(x, int64, bitcast=True), int32)


@jit
def double2hiint(x):
    return to(to(x, int64, bitcast=True) >> 32, int32)


@jit
def fast_logf(x):
    return fast_log2f(x) * 0.6931471805599453


@jit
def fast_log10f(x):
    return fast_log2f(x) * 0.3010299956639812


@jit
def fast_exp10f(x):
    return exp2(x * 3.3219280948873623)


@jit
def fast_powf(x, y):
    return exp2(y * fast_log2f(x))


@jit
def fast_tanf(x):
    return fast_dividef(fast_sinf(x), fast_cosf(x))


@jit
def fdim(x, y):
    return where(x <= y, 0.0, x - y)


@jit
def rcbrt(x):
    return 1.0 / cbrt(x)


@jit
def rhypot(x, y):
    return 1.0 / hypot(x, y)


@jit
def _norm(x, y, z, w):
    # In f64 squares of f32 numbers neither overflow nor vanish; those of f64 are scaled.
    if x.dtype.is_fp32():
        x, y, z, w = to(x, float64), to(y, float64), to(z, float64), to(w, float64)
        return sqrt(x * x + y * y + z * z + w * w)
    else:
        return hypot(hypot(x, y), hypot(z, w))


@jit
def norm3d(x, y, z):
    return to(_norm(x, y, z, zeros_like(x)), x.dtype)


@jit
def norm4d(x, y, z, w):
    return to(_norm(x, y, z, w), x.dtype)


@jit
def rnorm3d(x, y, z):
    return to(1.0 / _norm(x, y, z, zeros_like(x)), x.dtype)


@jit
def rnorm4d(x, y, z, w):
    return to(1.0 / _norm(x, y, z, w), x.dtype)


@jit
def rsqrt_rn(x):
    return to(1.0 / sqrt(to(x, float64)), float32)


@jit
def _half_turns(x):
    # The rest of x by the nearest half, times pi, and how many halves there are.
    halves = rint(x * 2.0)
    rest = to(fma(halves, -0.5, x), float64)
    turns = to(halves - 4.0 * floor(halves * 0.25), int32)
    return rest * 3.141592653589793, turns


@jit
def sinpi(x):
    angle, turns = _half_turns(x)
    size = where((turns & 1) == 0, sin(angle), cos(angle))
    return to(where((turns & 2) == 0, size, -size), x.dtype)


@jit
def cospi(x):
    angle, turns = _half_turns(x)
    size = where((turns & 1) == 0, cos(angle), sin(angle))
    return to(where(((turns + 1) & 2) == 0, size, -size), x.dtype)


@jit
def normcdf(x):
    return to(0.5 * erfc(to(x, float64) * -0.7071067811865476), x.dtype)


@jit
def nextafter(x, y):
    itype: constexpr = get_int_dtype(x.dtype.primitive_bitwidth, True)
    bits = to(x, itype, bitcast=True)
    one = to(bits * 0 + 1, itype)
    # Away from zero if y lies there: the bits of a number's size are ordered as the sizes are.
    away = (y > x) == (x > 0.0)
    moved = where(away, bits + one, bits - one)
    smallest = where(y > x, to(one, x.dtype, bitcast=True), -to(one, x.dtype, bitcast=True))
    result = where(x == 0.0, smallest, to(moved, x.dtype, bitcast=True))
    result = where(x == y, y, result)
    return where((x != x) | (y != y), x + y, result)


@jit
def ldexp(x, n):
    # Steps by exact powers of two; the last one rounds, once.
    wide = to(x, float64)
    n = minimum(maximum(to(n, int32), -2200), 2200)
    for i in static_range(2):
        part = minimum(maximum(n, -969), 1023)
        wide = wide * to(to(part + 1023, int64) << 52, float64, bitcast=True)
        n = n - part
    last = minimum(maximum(n, -1022), 1023)
    wide = wide * to(to(last + 1023, int64) << 52, float64, bitcast=True)
    return to(wide, x.dtype)


@jit
def scalbn(x, n):
    return ldexp(x, n)


@jit
def _exponent(x):
    # Of zero, infinity and NaN it means nothing. Every f32 number is a normal one of f64.
    if x.dtype.is_fp32():
        wide = to(x, float64)
        lowered = 0
    else:
        is_small = abs(x) < 2.2250738585072014e-308
        wide = where(is_small, x * 18014398509481984.0, x)
        lowered = where(is_small, 54, 0)
    return to((to(wide, int64, bitcast=True) >> 52) & 2047, int32) - 1023 - lowered


@jit
def ilogb(x):
    result = where(abs(x) == float("inf"), 0x7FFFFFFF, _exponent(x))
    return where((x == 0.0) | (x != x), -0x7FFFFFFF - 1, result)


@jit
def logb(x):
    result = where(abs(x) == float("inf"), float("inf"), to(_exponent(x), x.dtype))
    result = where(x == 0.0, -float("inf"), result)
    return where(x != x, x, result)


@jit
def remainder(x, y):
    # The rest by twice y is below 2|y|; what is above half of |y| goes below by one or two of them.
    ax, ay = abs(x), abs(y)
    r = where(ay + ay < float("inf"), fmod(ax, ay + ay), ax)
    # Half of the smallest numbers is lost; twice them is exact.
    small = ay < 4.5e-308 if x.dtype.is_fp64() else ay < 2.4e-38
    half = ay * 0.5
    over = where(small, r + r > ay, r > half)
    r = where(over, r - ay, r)
    r = where(over & where(small, r + r >= ay, r >= half), r - ay, r)
    r = where(r == 0.0, copysign(r, x), where(x < 0.0, -r, r))
    return where((ax < float("inf")) & (ay > 0.0), r, float("nan"))


@jit
def _log_gamma_right(x):
    # Of 0.5 and above: C. Lanczos, "A precision approximation of the gamma function", 1964, with nine terms.
    z = x - 1.0
    a = 0.99999999999980993 + 676.5203681218851 / (z + 1.0) + -1259.1392167224028 / (z + 2.0)
    a = a + 771.32342877765313 / (z + 3.0) + -176.61502916214059 / (z + 4.0) + 12.507343278686905 / (z + 5.0)
    a = a + -0.13857109526572012 / (z + 6.0) + 9.9843695780195716e-6 / (z + 7.0) + 1.5056327351493116e-7 / (z + 8.0)
    return a, z + 7.5, z + 0.5


@jit
def lgamma(x):
    wide = to(x, float64)
    left = wide < 0.5
    a, t, power = _log_gamma_right(where(left, 1.0 - wide, wide))
    right = 0.9189385332046727 + power * log(t) - t + log(a)
    result = where(left, 1.1447298858494002 - log(abs(sinpi(wide))) - right, right)
    pole = (wide <= 0.0) & (floor(wide) == wide)
    result = where(pole | (abs(wide) == float("inf")), float("inf"), result)
    return to(where(wide != wide, wide, result), x.dtype)


@jit
def tgamma(x):
    wide = to(x, float64)
    left = wide < 0.5
    a, t, power = _log_gamma_right(where(left, 1.0 - wide, wide))
    # The power in halves, as the whole of it is too large before the result is.
    half = pow(t, power * 0.5)
    right = 2.5066282746310002 * half * exp(-t) * half * a
    right = where(t > 200.0, float("inf"), right)
    result = where(left, 3.141592653589793 / (sinpi(wide) * right), right)
    result = where((wide < 0.0) & (floor(wide) == wide), float("nan"), result)
    result = where(wide == 0.0, copysign(full((), float("inf"), float64), wide), result)
    return to(where(wide != wide, wide, result), x.dtype)


@jit
def erfcx(x):
    wide = to(x, float64)
    size = maximum(wide, 4.0)
    # Laplace's continued fraction, from its end.
    fraction = size
    for i in static_range(40):
        fraction = size + (40 - i) * 0.5 / fraction
    far = 0.5641895835477563 / fraction
    return to(where(wide > 4.0, far, exp(wide * wide) * erfc(minimum(wide, 4.0))), x.dtype)


@jit
def _inverse_erfc(x):
    # Of 0 to 1: a guess by the leading terms, then steps of Halley's method on the logarithm's scale.
    w = -log(x)
    y = sqrt(maximum(w - 0.5 * log(maximum(w, 1.0)) - 0.5723649429247001, 0.0))
    y = where(x > 0.2, 0.886226925452758 * (1.0 - x), y)
    for _ in static_range(6):
        # The error relative to the slope, which is -2/sqrt(pi) e^(-y y).
        error = (erfc(y) - x) * exp(y * y) * 0.886226925452758
        y = y + error / (1.0 - y * error)
    y = where(x == 0.0, float("inf"), y)
    return where(x < 0.0, float("nan"), y)


@jit
def erfcinv(x):
    wide = to(x, float64)
    y = _inverse_erfc(where(wide > 1.0, 2.0 - wide, wide))
    return to(where(wide > 1.0, -y, y), x.dtype)


@jit
def normcdfinv(x):
    wide = to(x, float64)
    return to(-1.4142135623730951 * erfcinv(2.0 * wide), x.dtype)
