# Triton names the parameters of libdevice by their numbers.
#
# run: numbered "*fp32, *fp32" : grid(1) out=f32[4] poison x=f32[4] [1,2,3,4] ; expect out = [4,6,10,16]
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def numbered(out, x):
    at = tl.arange(0, 4)
    a = tl.load(x + at)
    # One is a function of the machine, one is written in the language.
    less = libdevice.fdim(arg1=a, arg0=4.0 + 0.0 * a)
    tl.store(out + at, libdevice.fma(arg2=less, arg0=a, arg1=a))
