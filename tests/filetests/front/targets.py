# What a kernel can ask of its target, and functions of libraries by their symbols.
#
# run: asks "*i32" : grid(1) x=i32[4] poison ; expect x = [80,1,1,0]
# run: external "*fp32, *fp32, *fp64" : grid(1) out=f32[8] poison x=f32[2] [0.0,-4.0] y=f64[2] [4.0,9.0] ; expect out within rel 1e-6
# error: unknown "*fp32, *i32"

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.language import core
from triton.language.target_info import current_target, cuda_capability_geq


@core.extern
def exponential(arg0, _semantic=None):
    return core.extern_elementwise(
        "", "", [arg0], {
            (core.dtype("fp32"), ): ("__nv_expf", core.dtype("fp32")),
            (core.dtype("fp64"), ): ("__nv_exp", core.dtype("fp64")),
        }, is_pure=True, _semantic=_semantic)


@core.extern
def of_one(arg0, _semantic=None):
    return core.extern_elementwise("", "", [arg0], {
        (core.dtype("fp32"), ): ("__nv_fabsf", core.dtype("fp32")),
        (core.dtype("fp64"), ): ("__nv_sqrt", core.dtype("fp64")),
    }, is_pure=True, _semantic=_semantic)


@core.extern
def lower(arg0, arg1, _semantic=None):
    return core.extern_elementwise("libdevice", "", [arg0, arg1], {
        (core.dtype("fp32"), core.dtype("fp32")): ("__nv_fminf", core.dtype("fp32")),
    }, is_pure=True, _semantic=_semantic)


@core.extern
def elsewhere(arg0, _semantic=None):
    return core.extern_elementwise("mine", "/tmp/mine.bc", [arg0], {
        (core.dtype("fp32"), ): ("my_function", core.dtype("fp32")),
    }, is_pure=True, _semantic=_semantic)


@triton.jit
def asks(x):
    target: tl.constexpr = current_target()
    tl.static_assert(target.backend == "cuda" and target.warp_size == 32)
    tl.store(x, target.arch)
    tl.store(x + 1, tl.target_info.is_cuda() and cuda_capability_geq(8) and not cuda_capability_geq(9, 0))
    tl.store(x + 2, target == GPUTarget("cuda", 80, 32))
    tl.store(x + 3, tl.target_info.is_hip() or target == GPUTarget("cuda", 90, 32))


@triton.jit
def external(out, x, y):
    i = tl.arange(0, 2)
    v = tl.load(x + i)
    tl.store(out + i, exponential(v))
    tl.store(out + 2 + i, of_one(v))
    tl.store(out + 4 + i, of_one(tl.load(y + i)))
    tl.store(out + 6 + i, lower(v, 0.0))


@triton.jit
def unknown(x, i):
    tl.store(x, elsewhere(tl.load(x)))
    tl.store(x, exponential(tl.load(i)))
# == error unknown "*fp32, *i32"
# error[F07]: the symbol `my_function` is not there
#   --> targets.py:40:12
#    |
# 40 |     return core.extern_elementwise("mine", "/tmp/mine.bc", [arg0], {
#    |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# note: in `elsewhere`, called here
#   --> targets.py:67:17
#    |
# 67 |     tl.store(x, elsewhere(tl.load(x)))
#    |                 ^^^^^^^^^^^^^^^^^^^^^
# help: those of libdevice are (`__nv_*`); other libraries cannot be linked: write the function in the language, or with tl.inline_asm_elementwise
#
# error[F10]: there is no symbol for (triton.language.int32,)
#   --> targets.py:16:12
#    |
# 16 |     return core.extern_elementwise(
#    |            ^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# note: in `exponential`, called here
#   --> targets.py:68:17
#    |
# 68 |     tl.store(x, exponential(tl.load(i)))
#    |                 ^^^^^^^^^^^^^^^^^^^^^^^
# help: there are symbols for (triton.language.float32,), (triton.language.float64,)
