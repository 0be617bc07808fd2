# What files choose by the version of Triton, and lines of PTX that hold numbers.
import torch
import triton
import triton.language as tl
from packaging import version
from triton.language import core

TRITON_VERSION = version.parse(triton.__version__)

if TRITON_VERSION >= version.parse("3.0.0"):
    larger = tl.maximum
else:
    larger = tl.math.larger_of_old

# One that takes it as it is, and one that wraps it: it is the same.
try:
    int_dtype = triton.runtime.jit.constexpr_function(core.get_int_dtype)
except Exception:
    int_dtype = core.get_int_dtype

# Tuples are compared as Python does: by the first items that differ, or by length.
ORDERED = torch.cuda.get_device_capability() >= (7, 5) and (1, 2) < (1, 3) and (1,) < (1, 0) and not (2,) < (1, 5) and ("a", 1) <= ("a", 1)
OLD = version.Version("3.0.0rc1") > version.parse("3.0") or version.parse("3.10") < version.parse("3.9.1")

# The device is the target, a GPU of NVIDIA's.
CUDA = torch.cuda.is_available() and torch.cuda.get_device_properties(0).major >= 7 and torch.cuda.get_device_properties("cuda").warp_size == 32
HIP = hasattr(torch.version, "hip") and torch.version.hip is not None


# run: choose "*i32, *i32, 8, 8" : grid(1) x=i32[8] iota(8) out=i32[8] poison ; expect out = [108,109,110,111,112,113,114,115]
@triton.jit
def choose(x, out, N: tl.constexpr, MASK: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i).to(int_dtype(bitwidth=32, signed=True), bitcast=True)
    both = tl.inline_asm_elementwise("lop3.b32 $0, $1, ${2}, $3, $4; // $$", "=r, r, n, r, n", [v, MASK, i, 0xEA], dtype=tl.int32, is_pure=True, pack=1)
    tl.static_assert(ORDERED and not OLD and CUDA and not HIP)
    tl.store(out + i, larger(both, 1) + 100)


# What is given in a register of fewer bits is widened without a sign.
# run: widened "*i32, *i64, 8" : grid(1) x=i32[8] iota(-4) out=i64[8] poison ; expect out = [4294967292,4294967293,4294967294,4294967295,0,1,2,3]
@triton.jit
def widened(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i).to(tl.int64)
    tl.store(out + i, tl.inline_asm_elementwise("cvt.u32.u64 $0, $1;", "=r, l", [v], dtype=tl.int64, is_pure=True, pack=1))


# A number from 2^31 on has the sign that it has as an i32, also in lines of 64 bits.
# run: signs "*i32, *i64, 8" : grid(1) x=i32[8] iota(-8) out=i64[8] poison ; expect out = [-8,-7,-6,-5,-4,-3,-2,-1]
@triton.jit
def signs(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i).to(tl.int64)
    tl.store(out + i, tl.inline_asm_elementwise("and.b64 $0, $1, $2;", "=l,l,n,~{memory}", [v, 0xFFFFFFFF], dtype=tl.int64, is_pure=True, pack=1))


# error: no_number "*i32, i32"
@triton.jit
def no_number(out, n):
    tl.store(out, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,n", [n], dtype=tl.int32, is_pure=True, pack=1))


# == error no_number "*i32, i32"
# error[F12]: the constraint `n` asks for a constant, found a scalar i32
#   --> versions.py:61:72
#    |
# 61 |     tl.store(out, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,n", [n], dtype=tl.int32, is_pure=True, pack=1))
#    |                                                                        ^^^
#    |
# help: ask for a register (`r`), or give a constexpr
