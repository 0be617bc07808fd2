# Syntax that real kernels use.
from typing import NamedTuple

import triton
import triton.language as tl
import triton.profiler as proton
from triton.language.core import _aggregate as aggregate

SCALE = 3
SHIFT: tl.constexpr = tl.constexpr(2)
SIZE = triton.next_power_of_2(5)


@triton.jit
def scaled(x, factor=2, OFFSET: tl.constexpr = 0):
    return x * factor + OFFSET


@triton.jit
def both(a, b):
    return a + b, a - b


@triton.jit
def applied(F: tl.constexpr, x):
    return F(x)


@triton.constexpr_function
def doubled(n):
    return 2 * n


@triton.jit
def first_or(x, FLAG: tl.constexpr):
    if FLAG:
        return x
    else:
        return -x


@triton.jit
def summed(*values):
    total = values[0]
    for i in tl.static_range(1, len(values)):
        total += values[i]
    return total


class Pair(NamedTuple):
    left: tl.tensor
    right: tl.tensor


# case straight | out=i32[16] x=i32[8]:iota(-3,1) n=i32:5
# covers syn:arith + - *, syn:compare, syn:binop &, syn:augassign, syn:binop |, syn:binop ^, syn:binop >>, syn:binop <<
# covers syn:unary ~, syn:unary not, syn:tuple/list literal, syn:call jit fn, syn:return value, syn:call jit fn with keywords
# covers syn:param:default-value, syn:const int >= 2^31, syn:binop **, syn:annassign other, syn:tuple index/slice
@triton.jit
def straight(out, x, n):
    at = tl.arange(0, 8)
    v = tl.load(x + at)
    v += 1
    v = (v & 12) | (v ^ 3)
    v = (v << 2) >> 1
    w: tl.int32 = scaled(v, OFFSET=1) + scaled(x=v, factor=3)
    mask = (at < n) & ~(at == 2)
    tl.store(out + at, tl.where(mask, w, 0))
    t = (n, 2**3, [1, 2])
    tl.store(out + 8, t[0] + t[1] + t[2][1] + t[:2][1])
    tl.store(out + 9, not (n > 3))
    tl.store(out + 10, (n.to(tl.int64) + 4294967296 > 4294967300).to(tl.int32))
    tl.store(out + 11 + tl.arange(0, 1), 5)
    tl.store(out + 12 + tl.arange(0, 4), 0)


# case branches | out=i32[8]:zeros n=i32:5 FLAG=True MODE='gelu' p=None
# covers syn:if static, syn:if dynamic, syn:string compare, syn:compare is/is not None, syn:ifexp static, syn:ifexp dynamic
# covers syn:boolop and dynamic, syn:boolop or dynamic, syn:boolop and static, syn:boolop or static, syn:return in static if
@triton.jit
def branches(out, n, FLAG: tl.constexpr, MODE: tl.constexpr, p):
    if FLAG and MODE == "gelu":
        tl.store(out, 1)
    elif FLAG or MODE != "x":
        tl.store(out, 2)
    if n > 3 and n < 9:
        y = n * 2
    else:
        y = n
    tl.store(out + 1, y)
    if p is not None:
        tl.store(out + 2, tl.load(p))
    tl.store(out + 3, 7 if MODE == "relu" else 8)
    tl.store(out + 4, n + 1 if n > 9 else n - 1)
    if n > 100 or n == 5:
        tl.store(out + 5, 9)
    tl.store(out + 6, first_or(n, FLAG) + first_or(n, False))


# case returned | out=i32[4]:zeros | grid 4
# covers syn:return (bare), syn:early return in dynamic if
@triton.jit
def returned(out):
    i = tl.program_id(0)
    if i == 2:
        return
    if i == 3:
        tl.store(out + i, 9)
        return
    tl.store(out + i, i + 1)
    return


# case loops | out=i32[8] n=i32:7 s=i32:2 N=4
# covers syn:for range(dynamic), syn:for range(static), syn:for tl.static_range, syn:for tl.range, syn:while
# covers syn:for range negative step, syn:for range dynamic step, kw:tl.range(num_stages), kw:tl.range(flatten)
# covers kw:tl.range(warp_specialize), kw:tl.range(loop_unroll_factor), kw:tl.range(disallow_acc_multi_buffer)
@triton.jit
def loops(out, n, s, N: tl.constexpr):
    a = 0
    for i in range(n):
        a += i
    tl.store(out, a)
    b = 0
    for i in range(0, 10, 3):
        b = b * 2 + i
    tl.store(out + 1, b)
    c = 0
    for i in tl.static_range(N):
        c += i * i
    tl.store(out + 2, c)
    d = 0
    for i in tl.range(0, n, 2, num_stages=3, flatten=True, warp_specialize=True):
        d += i
    tl.store(out + 3, d)
    e = 0
    for i in range(N - 1, -1, -1):
        e = e * 10 + i
    tl.store(out + 4, e)
    f = 0
    for i in range(1, n, s):
        f = f * 10 + i
    tl.store(out + 5, f)
    g = n
    while g > 1:
        g = g // 2
    tl.store(out + 6, g)
    h = 0
    for i in tl.range(n, loop_unroll_factor=2, disallow_acc_multi_buffer=True):
        h += i
    tl.store(out + 7, h)


# case constants | out=i32[10] n=i32:5
# covers syn:module-global constant, syn:annassign constexpr local, op:triton.next_power_of_2, syn:tl.constexpr(...) call
# covers syn:builtin min()/max(), syn:builtin float()/int(), syn:builtin len(), syn:builtin isinstance(), syn:.value
# covers syn:.shape/.numel, syn:call constexpr_function/plain python fn
@triton.jit
def constants(out, n):
    X: tl.constexpr = SHIFT * 4
    tl.store(out, X + SIZE)
    tl.store(out + 1, min(n, 3) + max(X, 100))
    tl.store(out + 2, int(2.9) + len((1, 2, 3)))
    tl.store(out + 3, (float("inf") > 1e30) + 0)
    tl.store(out + 4, 1 if isinstance(n, tl.tensor) else 0)
    v = tl.arange(0, tl.constexpr(4))
    tl.store(out + 5, v.shape[0] + v.numel)
    tl.store(out + 6, SHIFT.value)
    tl.store(out + 7, doubled(X))
    Y = tl.constexpr(11)
    tl.store(out + 8, Y)
    tl.store(out + 9, SHIFT)


# case values | out=i32[8] n=i32:5
# covers syn:return tuple, syn:tuple-unpack assign, syn:jit fn as value, syn:call function-valued param
# covers syn:varargs/starred, syn:object attribute (namedtuple/aggregate)
@triton.jit
def values(out, n):
    a, b = both(n, 2)
    tl.store(out, a)
    tl.store(out + 1, b)
    tl.store(out + 2, applied(scaled, n))
    tl.store(out + 3, summed(n, 1, 2))
    t = (n, 10)
    c, d = both(*t)
    tl.store(out + 4, c)
    p = Pair(n, n + 1)
    tl.store(out + 5, p.left * p.right)
    (e, f), g = both(a, b), 3
    tl.store(out + 6, e * f + g)
    tl.store(out + 7, d)


@aggregate
class Counter:
    start: tl.tensor
    step: tl.constexpr

    @triton.constexpr_function
    def __init__(self, start, step):
        self.start = start
        self.step = tl.constexpr(step)

    @triton.jit
    def block(self, SIZE: tl.constexpr):
        return self.start + tl.arange(0, SIZE) * self.step


# case objects | out=i32[8] n=i32:5
# covers syn:aggregate/class
@triton.jit
def objects(out, n):
    c = Counter(n, 3)
    tl.store(out + tl.arange(0, 8), c.block(8) + c.start)


# case context | out=i32[2] n=i32:5
# covers syn:with, syn:binop /
@triton.jit
def context(out, n):
    with proton.scope("part"):
        tl.store(out, n / 2)
    tl.store(out + 1, (n / 2.0) * 2)


# case captured | out=i32[1] n=i32:5
# covers syn:closure capture
def capturing():
    FACTOR: tl.constexpr = tl.constexpr(7)

    @triton.jit
    def captured(out, n):
        tl.store(out, n * FACTOR)

    return captured
