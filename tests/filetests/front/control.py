# Control flow: early return, branches, loops of every kind, calls.
# run: early "*i32, *i32, i32" : grid(4) out=i32[4] zeros x=i32[4] [5,-1,200,7] n=3 ; expect out = [10,1,99,0]
# tile: early "*i32, *i32, i32"
# run: nested_return "*i32, *i32" : grid(6) out=i32[6] poison x=i32[6] [0,1,2,3,4,5] ; expect out = [100,11,22,13,1024,1025]
# tile: nested_return "*i32, *i32"
# run: chain "*i32, *i32" : grid(5) out=i32[5] poison x=i32[5] [-3,0,5,50,500] ; expect out = [-1,0,1,2,3]
# run: countdown "*i32, i32, 3" : grid(1) out=i32[16] zeros n=10 ; expect out = [10,7,4,1,0,0,0,0,0,0,0,0,0,0,0,0]
# run: steps "*i32, i32, i32" : grid(1) out=i32[8] zeros n=8 step=3 ; expect out = [1,0,0,1,0,0,1,0]
# run: counters "*i32, i32" : grid(1) out=i32[2] poison n=4 ; expect out = [6,24]
# run: collatz "*i32, *i32" : grid(5) out=i32[5] poison x=i32[5] [1,2,3,6,27] ; expect out = [0,1,7,8,111]
# run: unrolled "*i32" : grid(1) out=i32[6] zeros ; expect out = [0,1,4,9,16,30]
# run: fibonacci "*i32, 10" : grid(1) out=i32[1] poison ; expect out = [55]
# run: carried_tuple "*i32, i32" : grid(1) out=i32[2] poison n=10 ; expect out = [55,89]
# run: choose "*fp32, *fp32, 'double'" : grid(1) out=f32[4] poison x=f32[4] [1,2,3,4] ; expect out = [2,4,6,8]
# run: choose "*fp32, *fp32, 'square'" : grid(1) out=f32[4] poison x=f32[4] [1,2,3,4] ; expect out = [1,4,9,16]
# run: optional "*fp32, *fp32, None" : grid(1) out=f32[4] poison x=f32[4] [1,2,3,4] ; expect out = [1,2,3,4]
# run: optional "*fp32, *fp32, *fp32" : grid(1) out=f32[4] poison x=f32[4] [1,2,3,4] bias=f32[4] [1,1,1,1] ; expect out = [2,3,4,5]
# run: conditional "*i32, i32, i32" : grid(1) out=i32[3] poison a=3 b=-4 ; expect out = [3,1,7]
# run: last_counts "*i32, i32, i32" : grid(1) out=i32[8] poison n=10 step=3 ; expect out = [9,1,8,7,7,19,45,5]
# run: last_counts "*i32, i32, i32" : grid(1) out=i32[8] poison n=0 step=4 ; expect out = [0,0,2,0,1,0,0,5]
# run: wide_counts "*i64, u32, i64" : grid(1) out=i64[2] poison n=4294967295 far=9223372036854775807 ; expect out = [4294967294,9223372036854775806]
import triton
import triton.language as tl
from typing import NamedTuple


# A counter after its loop is that of the last iteration; where there was none that of the loop before, or the start.
@triton.jit
def last_counts(out, n, step):
    total = 0
    for i in range(n):
        total += i
    tl.store(out, i)
    for down in range(n, 0, -3):
        total += 0
    tl.store(out + 1, down)
    for j in range(2, n, step):
        total += 0
    tl.store(out + 2, j)
    for k in tl.range(1 - n % 2, n, step):
        total += 0
    tl.store(out + 3, k - n % 3 + n // 10 if n > 0 else n)
    for k in range(2, 1):
        total += 0
    tl.store(out + 4, k)
    if n >= 0:
        for i in range(9, 9 + n + n // 10):
            total += 0
        tl.store(out + 5, i)
    tl.store(out + 6, total)
    for i in tl.static_range(6):
        total += 1
    tl.store(out + 7, i)


@triton.jit
def wide_counts(out, n, far):
    total = n
    for i in range(n - 3, n):
        total += i
    tl.store(out, i.to(tl.int64))
    for i in range(far - 5, far):
        total += 1
    tl.store(out + 1, i)


@triton.jit
def early(out, x, n):
    i = tl.program_id(0)
    if i >= n:
        return
    v = tl.load(x + i)
    if v < 0:
        tl.store(out + i, -v)
        return
    if v > 100:
        v = 99
    else:
        v = v * 2
    tl.store(out + i, v)


@triton.jit
def rank(v):
    if v % 2 == 0:
        if v == 0:
            return 100
        if v < 4:
            return v * 11
        v += 10
    else:
        if v < 5:
            return v + 10
    v += 1000
    w = v + 10
    if v > 1010:
        return v + 10
    return w + 10


@triton.jit
def nested_return(out, x):
    i = tl.program_id(0)
    tl.store(out + i, rank(tl.load(x + i)))


@triton.jit
def chain(out, x):
    i = tl.program_id(0)
    v = tl.load(x + i)
    if v < 0:
        r = -1
    elif v == 0:
        r = 0
    elif v < 10:
        r = 1
    elif v < 100:
        r = 2
    else:
        r = 3
    tl.store(out + i, r)


@triton.jit
def countdown(out, n, STEP: tl.constexpr):
    at = 0
    for i in range(n, 0, -STEP):
        tl.store(out + at, i)
        at += 1


@triton.jit
def steps(out, n, step):
    for i in tl.range(0, n, step, num_stages=2):
        tl.store(out + i, 1)


@triton.jit
def counters(out, n):
    # One name counts twice, inside of a loop that would carry it, and was something else before.
    i = 100
    total = 0
    for i in range(n):
        total += i
    tl.store(out, total)
    for j in range(n):
        for i in range(n):
            total += i - 1
        for i in range(n):
            total += 1 - i + j % 2
    tl.store(out + 1, total + i if False else total + n * 2 + 2)


@triton.jit
def collatz(out, x):
    i = tl.program_id(0)
    v = tl.load(x + i)
    count = 0
    while v != 1:
        if v % 2 == 0:
            v = v // 2
        else:
            v = 3 * v + 1
        count += 1
    tl.store(out + i, count)


@triton.jit
def unrolled(out):
    for i in tl.static_range(5):
        tl.store(out + i, i * i)
    total = 0
    for i in tl.static_range(4, -1, -1):
        total += i * i
    tl.store(out + 5, total)


@triton.jit
def fib(N: tl.constexpr):
    if N < 2:
        return N
    else:
        return fib(N - 1) + fib(N - 2)


@triton.jit
def fibonacci(out, N: tl.constexpr):
    tl.store(out, fib(N))


class Pair(NamedTuple):
    a: tl.tensor
    b: tl.tensor


@triton.jit
def carried_tuple(out, n):
    pair = Pair(0, 1)
    for _ in range(n):
        pair = Pair(pair.b, pair.a + pair.b)
    tl.store(out, pair.a)
    tl.store(out + 1, pair[1])


@triton.jit
def twice(x):
    return x * 2


@triton.jit
def choose(out, x, MODE: tl.constexpr, SIZE: tl.constexpr = 4):
    at = tl.arange(0, SIZE)
    v = tl.load(x + at)
    f: tl.constexpr = twice
    if MODE == "double":
        v = f(x=v)
    elif MODE in ("square", "quadrat"):
        v = v * v
    else:
        tl.static_assert(False, f"unknown mode {MODE}")
    tl.store(out + at, v)


@triton.jit
def optional(out, x, bias):
    at = tl.arange(0, 4)
    v = tl.load(x + at)
    if bias is not None:
        v += tl.load(bias + at)
    tl.store(out + at, v)


@triton.jit
def conditional(out, a, b):
    tl.store(out, a if a > b else b)
    tl.store(out + 1, 1 if a > 0 and not b > 0 else 0)
    c, d = (a, b) if a < b else (b, a)
    tl.store(out + 2, d - c)
# == tile early "*i32, *i32, i32"
# kernel @early(v0 "out": ptr<i32>, v1 "x": ptr<i32>, v2 "n": i32) warps(4) {
# block0:
#     v3 = program_id {axis = 0} : i32 @69
#     v4 = icmp v3, v2 {ipred = sge} : i1 @70
#     if v4 @70 {
#     block1:
#         yield @70
#     } {
#     block2:
#         v5 = addptr v1, v3 : ptr<i32> @72
#         v6 = load v5 : i32 @72
#         v7 = const {value = 0} : i32 @73
#         v8 = icmp v6, v7 {ipred = slt} : i1 @73
#         if v8 @73 {
#         block3:
#             v9 = addptr v0, v3 : ptr<i32> @74
#             v10 = const {value = 0} : i32 @74
#             v11 = isub v10, v6 : i32 @74
#             store v9, v11 @74
#             yield @73
#         } {
#         block4:
#             v12 = const {value = 100} : i32 @76
#             v13 = icmp v6, v12 {ipred = sgt} : i1 @76
#             v14 = if v13 : i32 @76 {
#             block5:
#                 v15 = const {value = 99} : i32 @76
#                 yield v15 @76
#             } {
#             block6:
#                 v16 = const {value = 2} : i32 @79
#                 v17 = imul v6, v16 : i32 @79
#                 yield v17 @76
#             }
#             v18 = addptr v0, v3 : ptr<i32> @80
#             store v18, v14 @80
#             yield @73
#         }
#         yield @70
#     }
#     return @68
# }
# == tile nested_return "*i32, *i32"
# kernel @nested_return(v0 "out": ptr<i32>, v1 "x": ptr<i32>) warps(4) {
# block0:
#     v2 = program_id {axis = 0} : i32 @103
#     v3 = addptr v0, v2 : ptr<i32> @104
#     v4 = addptr v1, v2 : ptr<i32> @104
#     v5 = load v4 : i32 @104
#     v6 = const {value = 2} : i32 @85
#     v7 = srem v5, v6 : i32 @85
#     v8 = const {value = 0} : i32 @85
#     v9 = icmp v7, v8 {ipred = eq} : i1 @85
#     v10, v11, v12 = if v9 : i32, i32, i1 @85 {
#     block1:
#         v13 = const {value = 0} : i32 @86
#         v14 = icmp v5, v13 {ipred = eq} : i1 @86
#         v15, v16, v17 = if v14 : i32, i32, i1 @86 {
#         block2:
#             v18 = const {value = 0} : i32 @86
#             v19 = const {value = 100} : i32 @86
#             v20 = const {value = true} : i1 @86
#             yield v18, v19, v20 @86
#         } {
#         block3:
#             v21 = const {value = 4} : i32 @88
#             v22 = icmp v5, v21 {ipred = slt} : i1 @88
#             v23, v24, v25 = if v22 : i32, i32, i1 @88 {
#             block4:
#                 v26 = const {value = 11} : i32 @89
#                 v27 = imul v5, v26 : i32 @89
#                 v28 = const {value = 0} : i32 @88
#                 v29 = const {value = true} : i1 @88
#                 yield v28, v27, v29 @88
#             } {
#             block5:
#                 v30 = const {value = 10} : i32 @90
#                 v31 = iadd v5, v30 : i32 @90
#                 v32 = const {value = 0} : i32 @88
#                 v33 = const {value = false} : i1 @88
#                 yield v31, v32, v33 @88
#             }
#             yield v23, v24, v25 @86
#         }
#         yield v15, v16, v17 @85
#     } {
#     block6:
#         v34 = const {value = 5} : i32 @92
#         v35 = icmp v5, v34 {ipred = slt} : i1 @92
#         v36, v37 = if v35 : i32, i1 @92 {
#         block7:
#             v38 = const {value = 10} : i32 @93
#             v39 = iadd v5, v38 : i32 @93
#             v40 = const {value = true} : i1 @92
#             yield v39, v40 @92
#         } {
#         block8:
#             v41 = const {value = 0} : i32 @92
#             v42 = const {value = false} : i1 @92
#             yield v41, v42 @92
#         }
#         yield v5, v36, v37 @85
#     }
#     v43 = if v12 : i32 @104 {
#     block9:
#         yield v11 @104
#     } {
#     block10:
#         v44 = const {value = 1000} : i32 @94
#         v45 = iadd v10, v44 : i32 @94
#         v46 = const {value = 10} : i32 @95
#         v47 = iadd v45, v46 : i32 @95
#         v48 = const {value = 1010} : i32 @96
#         v49 = icmp v45, v48 {ipred = sgt} : i1 @96
#         v50 = if v49 : i32 @96 {
#         block11:
#             v51 = const {value = 10} : i32 @97
#             v52 = iadd v45, v51 : i32 @97
#             yield v52 @96
#         } {
#         block12:
#             v53 = const {value = 10} : i32 @98
#             v54 = iadd v47, v53 : i32 @98
#             yield v54 @96
#         }
#         yield v50 @104
#     }
#     store v3, v43 @104
#     return @102
# }
