# Functions that calls decorate behind their text, as decorators would, and kernels in classes. Constants that heuristics give are given here as `run` has them.
# run: again "*i32, 4" : grid(1) out=i32[4] poison ; expect out = [0,1,2,3]
# run: other "*i32, 4" : grid(1) out=i32[4] poison ; expect out = [0,1,2,3]
# run: chained "*i32, 4" : grid(1) out=i32[4] poison ; expect out = [0,2,4,6]
# run: caller "*i32, 4" : grid(1) out=i32[4] poison ; expect out = [1,2,3,4]
# run: chosen "*i32, 4" : grid(1) out=i32[4] poison ; expect out = [2,3,4,5]
# run: made "*i32, 4" : grid(1) out=i32[4] poison ; expect out = [3,4,5,6]
# run: asked "*i32, 4" : grid(1) out=i32[4] poison ; expect out = [0,1,2,3]
# run: Shape.forward "*i32, 4" : grid(1) out=i32[4] poison ; expect out = [4,5,6,7]
# run: twice "*i32, 4" : grid(1) out=i32[4] poison ; expect out = [0,2,4,6]
import triton
import triton.language as tl


def again(out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, i)


again = triton.jit(again)
again = triton.heuristics({"N": lambda args: 4})(again)
# The same under another name; the first one stays what it is.
other = triton.autotune(configs=[triton.Config({"N": 4})], key=[])(again)


def chained(out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, 2 * i)


chained = triton.heuristics({"N": lambda args: 4})(triton.jit(chained, do_not_specialize=["out"]))


def added(x, y):
    return x + y


added = triton.jit(added)


@triton.jit
def caller(out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, added(i, 1))


if True:

    def chosen(out, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(out + i, i + 2)

    chosen = triton.jit(chosen)


def make():
    def made(out, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(out + i, i + 3)

    made = triton.jit(made)
    return made


# Static methods, by the name of the class or their own.
class Shape:
    @staticmethod
    @triton.jit
    def forward(out, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(out + i, i + 4)

    @staticmethod
    @triton.jit
    def twice(out, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(out + i, 2 * i)


# Triton passes over what its own range would take.
@triton.jit
def asked(out, N: tl.constexpr):
    for i in range(0, N, num_stages=3, flatten=True):
        tl.store(out + i, i)
