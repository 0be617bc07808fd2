"""References for programs that Triton's interpreter cannot run, or runs otherwise than compiled code does.

Numbers come as float64 or as integers and go as float64, integers or exact bits; what is not exact is computed with
mpmath at high precision and rounded once.
"""

import math

import mpmath
import numpy as np

mpmath.mp.prec = 400


def decode(dtype, array):
    if dtype == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype in ("fp16", "fp32", "fp64"):
        return array.astype(np.float64)
    if dtype in ("fp8e5", "fp8e4nv"):
        return eights(array, 2 if dtype == "fp8e5" else 3)
    return array


def encode(dtype, result, one, numpy, count):
    array = np.broadcast_to(np.asarray(result).reshape(-1), (count, ))
    if dtype.startswith(("fp", "bf")):
        return np.array([one(dtype, nearest(dtype, x)) for x in array], numpy)
    width = 8 * np.dtype(numpy).itemsize
    if dtype == "i1":
        return array.astype(numpy)
    data = b"".join((int(x) & ((1 << width) - 1)).to_bytes(width // 8, "little") for x in array)
    return np.frombuffer(data, numpy).copy()


class Exact:
    """A rational number that is rounded when its format is known."""

    def __init__(self, value, mode=None):
        self.value = value
        self.mode = mode


def directed(dtype, x):
    """The number of the format next to the exact one in the direction that the mode names."""
    numpy = np.float64 if dtype == "fp64" else np.float32
    near = numpy(nearest(dtype, Exact(x.value)))
    exact = type(x.value)
    low = high = near
    if math.isinf(near) or exact(float(near)) > x.value:
        low = near if near < 0 else np.nextafter(near, numpy(-np.inf))
        if math.isinf(near) and near < 0:
            low, high = near, np.nextafter(near, numpy(np.inf))
        elif not math.isinf(near):
            low = np.nextafter(near, numpy(-np.inf))
    elif exact(float(near)) < x.value:
        high = np.nextafter(near, numpy(np.inf))
    toward_zero = low if x.value > 0 else high
    return float({"rz": toward_zero, "rd": low, "ru": high, "rn": near}[x.mode])


def nearest(dtype, x):
    """The number as float64, so that rounding that to f32 is right: an exact one is rounded to odd on the way."""
    if not isinstance(x, Exact):
        return float(x)
    if x.mode is not None:
        return directed(dtype, x)
    try:
        double = float(x.value)
    except OverflowError:
        return math.inf if x.value > 0 else -math.inf
    if dtype == "fp64" or math.isinf(double) or type(x.value)(double) == x.value:
        return double
    bits = np.float64(double).view(np.int64)
    if bits & 1 == 0:
        # The neighbour on the other side of the exact number has the odd last bit.
        bits += 1 if (x.value > type(x.value)(double)) == (double > 0) else -1
    return float(np.int64(bits).view(np.float64))


def rounded(x):
    """An mpmath number as the nearest float64: for f32 results the second rounding can be off by a hair alone."""
    if isinstance(x, mpmath.mpc):
        return math.nan
    return float(x)


def inverse_erfc(x):
    with mpmath.workprec(3000):
        return mpmath.erfinv(1 - x)


def elementwise(f):
    def apply(N=None, **named):
        arrays = list(named.values())
        results = []
        for values in np.broadcast(*arrays):
            values = values if isinstance(values, tuple) else (values, )
            try:
                results.append(rounded(f(*[mpmath.mpf(float(v)) for v in values])))
            except (ValueError, ZeroDivisionError, OverflowError):
                results.append(math.nan)
        return np.array(results)

    return apply


REFERENCES = {}


def find(file, name, dtype):
    kernel, _, word = name.partition("/")
    if f"{file}:{name} {dtype}" in REFERENCES:
        return REFERENCES[f"{file}:{name} {dtype}"]
    for key in (f"{file}:{name}", f"{file}:{kernel}"):
        if key in REFERENCES:
            return REFERENCES[key]
    return REFERENCES.get(f"{file}:/{word}") if word else None


def named(*keys):
    def add(f):
        for key in keys:
            REFERENCES[key] = f
        return f

    return add


for word, f in {
        "exp": mpmath.exp, "exp2": lambda x: mpmath.mpf(2)**x, "log": mpmath.log, "log2": lambda x: mpmath.log(x, 2),
        "sqrt": mpmath.sqrt, "rsqrt": lambda x: 1 / mpmath.sqrt(x), "sqrt_rn": mpmath.sqrt, "sin": mpmath.sin,
        "cos": mpmath.cos, "erf": mpmath.erf, "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
}.items():
    REFERENCES[f"math:/{word}"] = elementwise(f)


def each(f):
    """A function of numbers as Python has them, element by element."""

    def apply(N=None, **named):
        arrays = list(named.values())
        return np.array([f(*values) for values in zip(*arrays)], dtype=object)

    return apply


def quietly(f):

    def apply(N=None, **named):
        with np.errstate(all="ignore"):
            return f(*named.values())

    return apply


def sign_of(x):
    return math.copysign(1.0, x)


def away(x):
    return sign_of(x) * math.floor(abs(x) + 0.5)


def exactly(f):
    """A sum of products, rounded once: by way of rational numbers."""
    from fractions import Fraction

    def apply(N=None, **named):
        out = []
        for values in zip(*named.values()):
            out.append(Exact(f(*[Fraction(float(v)) for v in values])))
        return np.array(out, dtype=object)

    return apply


for name, f in {
        "fused": lambda x, y, z: x * y + z,
}.items():
    REFERENCES[f"math:{name}"] = exactly(f)

REFERENCES["math:binary/div_rn"] = REFERENCES["math:rounded_division"] = quietly(lambda x, y: x / y)
REFERENCES["math:binary/fdiv"] = quietly(lambda x, y: x / y)
REFERENCES["math:binary/cdiv"] = each(lambda x, y: math.trunc((int(x) + int(y) - 1) / int(y)))
REFERENCES["math:mapped"] = quietly(lambda x, y: np.where(x > 0, np.float32(x) * np.float32(y), np.float32(x) + np.float32(y)))
REFERENCES["math:sanitized"] = each(lambda x, y: (int(x) + int(y)) * (int(x) - int(y)))
REFERENCES["math:aliased/exp"] = elementwise(lambda x: mpmath.exp(abs(x)))
REFERENCES["math:aliased/log2"] = elementwise(lambda x: mpmath.log(abs(x), 2))

for word, f in {
        "exp": mpmath.exp, "fast_expf": mpmath.exp, "exp2": lambda x: mpmath.mpf(2)**x,
        "exp10": lambda x: mpmath.mpf(10)**x, "fast_exp10f": lambda x: mpmath.mpf(10)**x, "expm1": mpmath.expm1,
        "log": mpmath.log, "fast_logf": mpmath.log, "log2": lambda x: mpmath.log(x, 2),
        "fast_log2f": lambda x: mpmath.log(x, 2), "log10": mpmath.log10, "fast_log10f": mpmath.log10,
        "log1p": lambda x: mpmath.log(1 + x), "sqrt": mpmath.sqrt, "rsqrt": lambda x: 1 / mpmath.sqrt(x),
        "rsqrt_rn": lambda x: 1 / mpmath.sqrt(x), "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
        "rcbrt": lambda x: mpmath.sign(x) / mpmath.cbrt(abs(x)), "sin": mpmath.sin, "fast_sinf": mpmath.sin,
        "cos": mpmath.cos, "fast_cosf": mpmath.cos, "tan": mpmath.tan, "fast_tanf": mpmath.tan, "sinpi": mpmath.sinpi,
        "cospi": mpmath.cospi, "asin": mpmath.asin, "acos": mpmath.acos, "atan": mpmath.atan, "sinh": mpmath.sinh,
        "cosh": mpmath.cosh, "tanh": mpmath.tanh, "fast_tanhf": mpmath.tanh, "asinh": mpmath.asinh,
        "acosh": mpmath.acosh, "atanh": mpmath.atanh, "erf": mpmath.erf, "erfc": mpmath.erfc,
        "normcdf": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2, "pow": lambda x, y: x**y,
        "fast_powf": lambda x, y: x**y, "atan2": mpmath.atan2, "hypot": mpmath.hypot,
        "rhypot": lambda x, y: 1 / mpmath.hypot(x, y), "norm3d": lambda x, y, z: mpmath.sqrt(x * x + y * y + z * z),
        "rnorm3d": lambda x, y, z: 1 / mpmath.sqrt(x * x + y * y + z * z),
        "lgamma": lambda x: mpmath.log(abs(mpmath.gamma(x))), "tgamma": mpmath.gamma,
        "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x), "erfinv": mpmath.erfinv,
        "erfcinv": lambda x: inverse_erfc(x), "normcdfinv": lambda x: -mpmath.sqrt(2) * inverse_erfc(2 * x),
        "norm4d": lambda x: mpmath.sqrt(6.25 * x * x), "rnorm4d": lambda x: 1 / mpmath.sqrt(6.25 * x * x),
}.items():
    REFERENCES[f"libdevice:/{word}"] = elementwise(f)


def reversed_bits(x):
    width = 8 * x.itemsize
    return np.array([int(f"{int(v) & ((1 << width) - 1):0{width}b}"[::-1], 2) for v in x], dtype=object)


def bits_of(f):

    def apply(x, N=None):
        width = 8 * x.itemsize
        return np.array([f(int(v) & ((1 << width) - 1), width) for v in x], dtype=object)

    return apply


def high(x, y):
    width = 8 * x.itemsize
    return np.array([(int(a) * int(b)) >> width for a, b in zip(x, y)], dtype=object)


def low24(x, y):
    signed = x.dtype.kind == "i"
    cut = (lambda v: ((int(v) + (1 << 23)) & 0xFFFFFF) - (1 << 23)) if signed else (lambda v: int(v) & 0xFFFFFF)
    return np.array([cut(a) * cut(b) for a, b in zip(x, y)], dtype=object)


def permuted(x, y, z):
    results = []
    for a, b, s in zip(x, y, z):
        both = (int(a) & 0xFFFFFFFF).to_bytes(4, "little") + (int(b) & 0xFFFFFFFF).to_bytes(4, "little")
        results.append(int.from_bytes(bytes(both[(int(s) >> (4 * i)) & 7] for i in range(4)), "little"))
    return np.array(results, dtype=object)


def exponent(x):
    return math.frexp(x)[1] - 1


def ilogb(x):
    if x == 0 or math.isnan(x):
        return -0x80000000
    return 0x7FFFFFFF if math.isinf(x) else exponent(x)


def logb(x):
    if x == 0:
        return -math.inf
    return abs(x) if math.isinf(x) or math.isnan(x) else float(exponent(x))


def power_of_two(x, n):
    from fractions import Fraction
    return Exact(Fraction(float(x)) * Fraction(2)**int(n))


for word, f in {
        "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "nearbyint": np.rint,
        "round": np.vectorize(away), "llrint": np.rint, "llround": np.vectorize(away), "abs": np.abs,
        "saturatef": lambda x: np.fmin(np.fmax(x, 0), 1), "isnan": np.isnan, "isinf": np.isinf,
        "finitef": np.isfinite, "isfinited": np.isfinite, "signbit": np.signbit, "fmod": np.fmod,
        "copysign": np.copysign, "fdim": lambda x, y: np.where(x <= y, 0, x - y), "max": np.fmax,
        "min": np.minimum, "div_rn": lambda x, y: x / y, "mul_rn": lambda x, y: x * y, "add_rn": lambda x, y: x + y,
        "sub_rn": lambda x, y: x - y, "fast_dividef": lambda x, y: x / y, "brev": reversed_bits, "mulhi": high,
        "mul24": low24, "byte_perm": permuted,
}.items():
    REFERENCES[f"libdevice:/{word}"] = quietly(f)
for word, f in {
        "clz": lambda x, width: width - x.bit_length(), "popc": lambda x, width: x.bit_count(),
        "ffs": lambda x, width: (x & -x).bit_length(),
}.items():
    REFERENCES[f"libdevice:/{word}"] = bits_of(f)
for word, f in {
        "remainder": math.remainder, "ilogb": ilogb, "logb": logb, "ldexp": power_of_two, "scalbn": power_of_two,
        "hadd": lambda x, y: (int(x) + int(y)) >> 1, "rhadd": lambda x, y: (int(x) + int(y) + 1) >> 1,
        "sad": lambda x, y, z: int(z) + abs(int(x) - int(y)),
}.items():
    REFERENCES[f"libdevice:/{word}"] = each(f)
for word in ("fma", "fma_rn"):
    REFERENCES[f"libdevice:/{word}"] = exactly(lambda x, y, z: x * y + z)
for word, single, double in (("float_as_int", np.float32, np.int32), ("float_as_uint", np.float32, np.int32),
                             ("int_as_float", np.int32, np.float32), ("uint_as_float", np.uint32, np.float32),
                             ("double_as_longlong", np.float64, np.int64), ("longlong_as_double", np.int64, np.float64)):
    REFERENCES[f"libdevice:/{word}"] = quietly(lambda x, a=single, b=double: x.astype(a).view(b))
REFERENCES["libdevice:/double2loint"] = quietly(lambda x: x.view(np.uint64) & np.uint64(0xFFFFFFFF))
REFERENCES["libdevice:/double2hiint"] = quietly(lambda x: x.view(np.uint64) >> np.uint64(32))
REFERENCES["libdevice:/hiloint2double"] = quietly(lambda x, y: (
    (x.astype(np.int64) << 32) | (y.astype(np.int64) & 0xFFFFFFFF)).view(np.float64))


def nextafter(dtype):

    def apply(x, y, N=None):
        return np.nextafter(x.astype(dtype), y.astype(dtype)).astype(np.float64)

    return apply


REFERENCES["libdevice:binary/nextafter fp32"] = nextafter(np.float32)
REFERENCES["libdevice:binary/nextafter fp64"] = nextafter(np.float64)


@named("libdevice:names")
def names(x):
    return np.concatenate([np.rint(x), np.trunc(x), [away(v) for v in x], np.tanh(np.rint(x)), np.tanh(x),
                           np.maximum(np.tanh(x), x)])


@named("libdevice:not_contracted")
def not_contracted(x, y, z):
    x, y, z = (v.astype(np.float32) for v in (x, y, z))
    return x * y + z


def words(array):
    return array.astype(object)


REFERENCES["order:sorted_rows"] = lambda x: np.sort(x.reshape(8, 16), 1)
REFERENCES["order:best"] = lambda x, K: words(np.sort(x)[::-1][:K])
REFERENCES["order:counted"] = lambda x: np.bincount(x.astype(np.int64), minlength=8)
REFERENCES["shapes:concatenated_dims"] = lambda x, y: np.concatenate([x.reshape(4, 4), y.reshape(4, 4)], 1)
REFERENCES["shapes:narrowed"] = lambda x: x + np.arange(8)

REFERENCES["atomics:update/atomic_xchg fp32"] = lambda p, x: {"old": p, "p": x}
REFERENCES["descriptors:picked_rows"] = lambda d, rows: d[rows, 4:12]


@named("descriptors:accumulated")
def accumulated(d, x):
    d, x = d.copy(), x.reshape(4, 4)
    d[2:4, 0:4] += x[:2]
    d[0:4, 4:8] = np.maximum(d[0:4, 4:8], 3 * x)
    return d


@named("descriptors:put_rows")
def put_rows(d, x, rows):
    d = d.copy()
    d[rows, 4:12] = x.reshape(8, 8)
    return d

for word, f in {"maximum": np.fmax, "minimum": np.fmin}.items():
    REFERENCES[f"math:binary/{word} fp32"] = quietly(f)
REFERENCES["math:nan_rules"] = quietly(lambda x, y: (np.maximum(x, y), np.fmin(x, y), np.clip(x, -2, 2)))
REFERENCES["memory:cast_on_store"] = quietly(lambda x: (x, np.trunc(x), x != 0))
REFERENCES["memory:through_addresses"] = lambda x, table: {"out": 2 * x}

REFERENCES["device:told"] = lambda N: np.array([32, 1, 80, 0, 1, 0])
REFERENCES["device:dependent"] = lambda x: x + 1
REFERENCES["device:clocked"] = lambda: np.array([1, 1])
REFERENCES["device:assembled"] = lambda x, y: words(x) + words(y)
REFERENCES["device:assembled_packed"] = lambda x: x & 15
REFERENCES["device:assembled_pair"] = lambda x, y: (~x, -y)
REFERENCES["types:asked"] = lambda: np.array(
    [16, 1, 1 + 4, 64, 32, 8 + 4, 1 + 2, 1, 1, 6, 1 + 2, 1, 1, 2 + 23, 2 + 4, 1 + 2 + 4, 1 + 2, 32767, -32768, 1, 0, 1, 2, 3])
REFERENCES["types:named_types"] = lambda: np.array([1, 1 + 2 * 8, 2, 44])


@named("syntax:loops")
def loops(n, s, N):
    b = f = e = 0
    for i in range(0, 10, 3):
        b = b * 2 + i
    for i in range(N - 1, -1, -1):
        e = e * 10 + i
    for i in range(1, int(n), int(s)):
        f = f * 10 + i
    return np.array([sum(range(int(n))), b, sum(i * i for i in range(N)), sum(range(0, int(n), 2)), e, f, 1,
                     sum(range(int(n)))])


def in_direction(mode, f):
    from fractions import Fraction

    def apply(N=None, **named):
        out = []
        for values in zip(*named.values()):
            if any(isinstance(v, np.floating) and math.isinf(v) for v in values):
                out.append(values[0])
            else:
                exact = [Fraction(int(v)) if isinstance(v, np.integer) else Fraction(float(v)) for v in values]
                out.append(Exact(f(*exact), mode))
        return np.array(out, dtype=object)

    return apply


def root(x):
    """The square root to far more bits than any format has."""
    from fractions import Fraction
    return Fraction(math.isqrt(x.numerator * x.denominator << 400), x.denominator << 200)


for mode, whole in {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}.items():
    for word, f in {"add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
                    "div": lambda x, y: x / y, "rcp": lambda x: 1 / x, "sqrt": root,
                    "fma": lambda x, y, z: x * y + z, "double2float": lambda x: x, "int2float": lambda x: x,
                    "uint2float": lambda x: x, "ll2float": lambda x: x, "ull2float": lambda x: x,
                    "ll2double": lambda x: x, "ull2double": lambda x: x, "int2double": lambda x: x,
                    "uint2double": lambda x: x}.items():
        REFERENCES[f"rounding:/{word}_{mode}"] = in_direction(mode, f)
    for source in ("float", "double"):
        for target in ("int", "uint", "ll", "ull"):
            REFERENCES[f"rounding:/{source}2{target}_{mode}"] = quietly(whole)

REFERENCES["traps:unordered"] = lambda x: np.array([1, 0, 0, 1, 1, 1])
for word in ("bfloat16", "float8e5", "float8e4nv"):
    REFERENCES[f"types:cast/{word}"] = lambda x, N: x


def matrices(a, b, m, n, k):
    return a.astype(np.float64).reshape(m, k) @ b.astype(np.float64).reshape(k, n)


REFERENCES["products:product"] = lambda a, b, M, N, K: matrices(a, b, M, N, K)


def cut(x):
    return (x.astype(np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)


REFERENCES["products:cut"] = lambda a, b: matrices(cut(a), cut(b), 16, 16, 16)
REFERENCES["products:in_halves"] = lambda a, b: matrices(a * 0.25, b, 16, 16, 16)
REFERENCES["products:batched"] = lambda a, b: a.reshape(2, 16, 16) @ b.reshape(2, 16, 16)
REFERENCES["products:tiled"] = lambda a, b, K: matrices(a, b, 32, 32, 64)


@named("products:accumulated")
def accumulated_products(a, b, c):
    a, b, c = (x.reshape(16, 16) for x in (a, b, c))
    return c + 3 * (a @ b) + a @ b.T + a.T @ b


def fours(array):
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
    return values[array & 15], values[array >> 4]


def eights(array, fraction_bits):
    bias = 7 if fraction_bits == 3 else 15
    exponent, fraction = (array & 127).astype(int) >> fraction_bits, array & ((1 << fraction_bits) - 1)
    size = np.where(exponent == 0, fraction * 2.0**(1 - bias - fraction_bits),
                    (1 + fraction / (1 << fraction_bits)) * 2.0**(exponent - bias))
    return np.where(array > 127, -size, size)


@named("products:scaled")
def scaled(a, b, s, t, F, N):
    if F == "e2m1":
        low, high = fours(a.reshape(16, 16))
        x = np.stack([low, high], 2).reshape(16, 32)
        low, high = fours(b.reshape(16, 16))
        y = np.stack([low, high], 1).reshape(32, 16)
    else:
        x, y = (eights(v, 3 if F == "e4m3" else 2).reshape(shape) for v, shape in ((a, (16, 32)), (b, (32, 16))))
    x = x * 2.0**(s.astype(float) - 127)[:, None]
    y = y * 2.0**(t.astype(float) - 127)[None, :]
    return 2 * (x @ y)


@named("products:scaled_batches")
def scaled_batches(a, b, s, t):
    low, high = fours(a.reshape(2, 16, 16))
    x = np.stack([low, high], 3).reshape(2, 16, 32) * 2.0**(s.astype(float) - 127).reshape(2, 16, 1)
    low, high = fours(b.reshape(2, 16, 16))
    y = np.stack([low, high], 2).reshape(2, 32, 16) * 2.0**(t.astype(float) - 127).reshape(2, 1, 16)
    return x @ y


@named("products:scaled_left")
def scaled_left(a, b, s):
    low, high = fours(a.reshape(16, 16))
    x = np.stack([low, high], 2).reshape(16, 32) * 2.0**(s.astype(float) - 127)[:, None]
    return x @ b.reshape(32, 16)


@named("types:small_float")
def small_float(x, t):
    # To a half towards zero, halved away from zero at seven bits, at most 1.75.
    with np.errstate(all="ignore"):
        half = x.astype(np.float16)
        over = np.abs(half.astype(np.float64)) > np.abs(x)
        bits = half.view(np.uint16).astype(np.int64) - over
    size = np.where(np.isnan(x), 0x3F00, np.minimum(bits & 0x7FFF, 0x3F00))
    packed = ((size * 2 + 0x80) >> 8) | ((bits >> 8) & 0x80)
    widen = lambda v: (((v & 0x7F) << 7) | ((v & 0x80) << 8)).astype(np.uint16).view(np.float16).astype(np.float64)
    return packed, widen(packed), widen(t.astype(np.int64))


@named("descriptors:made_on_device")
def made_on_device(x, space, y, m, n):
    read = np.zeros((8, 8))
    read[:4, :4] = x.reshape(6, 8)[2:, 4:]
    written = y.reshape(6, 8).copy()
    written[4:, :] = read[:2] + 1
    return {"out": read, "y": written}

REFERENCES["syntax:objects"] = lambda n: 10 + 3 * np.arange(8)
REFERENCES["syntax:context"] = lambda n: np.array([2, 5])
REFERENCES["syntax:captured"] = lambda n: np.array([35])
REFERENCES["traps:flushed"] = elementwise(lambda x: 4 * mpmath.mpf(2)**x if x >= -126 else mpmath.mpf(0))
