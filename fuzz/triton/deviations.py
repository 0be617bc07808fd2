"""Where Triton's interpreter leaves something else than compiled code does: a smallest kernel for each.

Above each `# run:` line stands why, and in `# theirs:` what Triton 3.6's interpreter leaves with NumPy 2.4, or which error it
raises; the line itself states what compiled code leaves. `triton_interpreter.py --deviations` holds both, so that an entry goes
once Triton is mended. Random kernels (`kernels.py`) have none of these.
"""
import triton
import triton.language as tl


@triton.jit
def add(out, x, y):
    tl.store(out, tl.load(x) + tl.load(y))


# Elements of bf16 are held as integers of 16 bits, and sums are sums of those.
# theirs: out = [1.7014118e+38]
# run: add "*fp32, *bf16, *bf16" : grid(1) out=f32[1] zeros x=bf16[1] [1] y=bf16[1] [1] ; expect out = [2]


@triton.jit
def stored(out, x):
    tl.store(out, tl.load(x))


# f32 becomes bf16 by leaving bits out, not to the nearest.
# theirs: out = [1]
# run: stored "*bf16, *fp32" : grid(1) out=bf16[1] zeros x=f32[1] [1.0078] ; expect out = [1.0078125]

# The sum of truth values is whether there is one; of one bit it is 0.
# theirs: out = [True]
# run: add "*i1, *i1, *i1" : grid(1) out=i1[1] zeros x=i1[1] [1] y=i1[1] [1] ; expect out = [false]


@triton.jit
def counted(out, x):
    for k in range(100, 101):
        tl.store(out, tl.load(x) + k)


# The counter of a loop is a number of Python's, which takes the type of the other operand; compiled it is an i32.
# theirs: out = [-56]
# run: counted "*i32, *i8" : grid(1) out=i32[1] zeros x=i8[1] [100] ; expect out = [200]


@triton.jit
def inverted(out, x):
    tl.store(out, ~tl.load(x))


# NumPy refuses -1 as a number without a sign.
# theirs: OverflowError
# run: inverted "*u8, *u8" : grid(1) out=i8[1] zeros x=i8[1] [1] ; expect out = [-2]


@triton.jit
def fused(out, x, y, z):
    tl.store(out, tl.fma(tl.load(x), tl.load(y), tl.load(z)))


# The product is rounded before the sum.
# theirs: out = [0]
# run: fused "*fp32, *fp32, *fp32, *fp32" : grid(1) out=f32[1] zeros x=f32[1] [1.00024414] y=f32[1] [1.00024414] z=f32[1] [-1.00048828] ; expect out = [5.9604645e-8]


@triton.jit
def smaller(out, x, y):
    tl.store(out, tl.minimum(tl.load(x), tl.load(y)))


# The minimum of a number and a NaN is NaN, which it is only with propagate_nan; so are maxima, and tl.clamp.
# theirs: out = [nan]
# run: smaller "*fp32, *fp32, *fp32" : grid(1) out=f32[1] zeros x=f32[1] [nan] y=f32[1] [1] ; expect out = [1]


@triton.jit
def chosen(out, x, y):
    i = tl.arange(0, 16)
    tl.store(out + i, (tl.load(y) > 0) & (tl.load(x + i) > 0))


# A comparison of floats that all elements share keeps their type, and its 1 becomes 1.0.
# theirs: TypeError
# run: chosen "*i1, *i32, *fp32" : grid(1) out=i1[16] zeros x=i32[16] const(1) y=f32[1] [1] ; expect out = [true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true]


@triton.jit
def multiplied(out, x, y):
    i = tl.arange(0, 16)
    at = i[:, None] * 16 + i[None, :]
    tl.store(out + at, tl.dot(tl.load(x + at), tl.load(y + at)))


# Factors in f32 are not rounded to tf32, which is the default; beyond the 10 bits behind the point nothing counts.
# theirs: out = [16.001953125]
# run: multiplied "*fp32, *fp32, *fp32" : grid(1) out=f32[256] zeros x=f32[256] const(1.0001220703125) y=f32[256] const(1)


@triton.jit
def high(out, x, y):
    tl.store(out, tl.umulhi(tl.load(x), tl.load(y)))


# Factors with a sign are extended by it, and compiled code takes them for numbers without one.
# theirs: out = [-1]
# run: high "*i32, *i32, *i32" : grid(1) out=i32[1] zeros x=i32[1] [-1] y=i32[1] [3] ; expect out = [2]


@triton.jit
def negated(out, x):
    tl.store(out, -tl.load(x))


# Here we differ from Triton by choice (guide, `triton`): its negation is 0 - x, which is 0.0 of both zeros.
# theirs: out = [0.0]
# run: negated "*fp32, *fp32" : grid(1) out=f32[1] const(1) x=f32[1] zeros ; expect out = [-0]


@triton.jit
def counted_in_bf16(out, x):
    tl.store(out, tl.load(x).to(tl.bfloat16).to(tl.float32))


# Integers become the bits of a bf16.
# theirs: out = [0.0]
# run: counted_in_bf16 "*fp32, *i32" : grid(1) out=f32[1] zeros x=i32[1] [1] ; expect out = [1]


@triton.jit
def reversed_sums(out, x):
    i = tl.arange(0, 8)
    tl.atomic_add(out + i, tl.cumsum(tl.load(x + i), 0, reverse=True))


# What a scan from the end leaves is a view of an array in the other order; atomics take the memory from its first element on.
# theirs: not out = [36, 35, 33]
# run: reversed_sums "*i32, *i32" : grid(1) out=i32[8] zeros x=i32[8] [1,2,3,4,5,6,7,8] ; expect out = [36, 35, 33, 30, 26, 21, 15, 8]


@triton.jit
def rounded(out, x):
    tl.store(out, tl.load(x).to(tl.float8e5))


# Roundings to 8 bits write a carry of the fraction over the exponent.
# theirs: out = [1]
# run: rounded "*fp8e5, *fp32" : grid(1) out=f8e5m2[1] zeros x=f32[1] [1.9375] ; expect out = [2]


@triton.jit
def shifted(out, x, y, z):
    tl.store(out, (tl.load(x) >> tl.load(y)) + tl.load(z))


# A shift to the right of what has a sign leaves an array with a sign, whatever type it promotes to; NumPy's sum of that and one
# without is a float, whose bits are stored.
# theirs: out = [4607182418800017408]
# run: shifted "*u64, *i32, *u64, *u64" : grid(1) out=i64[1] zeros x=i32[1] [2] y=i64[1] [1] z=i64[1] [0] ; expect out = [1]


@triton.jit
def power(out, x):
    tl.store(out, tl.exp(tl.load(x)))


# The exponential function of NumPy is nearly exact; compiled code's is a power of two of a rounded product.
# theirs: out = [403.42877]
# run: power "*fp32, *fp32" : grid(1) out=f32[1] zeros x=f32[1] [6] ; expect out = [403.42868]
