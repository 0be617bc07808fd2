# What a kernel does beside computing.
import triton
import triton.language as tl
from triton.language import target_info
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait


# case printed | out=i32[1] x=i32[2]:[5,-7] y=u8[1]:[255] n=fp32:1.5
# prints pid (0, 0, 0) idx (0) x: 5
# prints pid (0, 0, 0) idx (1) x: -7
# prints pid (0, 0, 0) idx (0) both: 5
# prints pid (0, 0, 0) idx (1) both: -7
# prints pid (0, 0, 0) both: 1.5
# prints pid (0, 0, 0) idx (0) hex: 0x00000005
# prints pid (0, 0, 0) idx (1) hex: 0xfffffff9
# prints pid (0, 0, 0) y: 255
# prints pid (0, 0, 0) here
# prints pid (0, 0, 0) idx (0) python: 10
# prints pid (0, 0, 0) idx (1) python: -14
# covers op:tl.device_print, syn:builtin print()
@triton.jit
def printed(out, x, y, n):
    v = tl.load(x + tl.arange(0, 2))
    tl.device_print("x", v)
    tl.device_print("both", v, n)
    tl.device_print("hex", v, hex=True)
    tl.device_print("y", tl.load(y))
    tl.device_print("here")
    print("python", v * 2)
    tl.store(out, 1)


# case asserted | out=i32[1] x=i32[4]:[1,2,-3,4] | debug | emulator
# prints pid (0, 0, 0) idx (2) assertion failed: all above zero (line 41)
# prints pid (0, 0, 0) idx (2) assertion failed: statement (line 43)
# case asserted | out=i32[1] x=i32[4]:[1,2,-3,4]
# covers op:tl.device_assert, syn:assert/raise
@triton.jit
def asserted(out, x):
    v = tl.load(x + tl.arange(0, 4))
    tl.device_assert(v > 0, "all above zero")
    tl.device_assert(v > 1, "masked", mask=v > 3)
    assert v > 0, "statement"
    assert v.dtype == tl.int32, "known"
    tl.store(out, 1)


# case told | out=i32[6] N=3
# covers op:tl.static_assert, op:tl.static_print, syn:f-string, op:tl.extra.cuda.num_warps, op:tl.extra.cuda.num_threads
# covers op:tl.target_info.cuda_capability_geq, op:tl.target_info.is_cuda
@triton.jit
def told(out, N: tl.constexpr):
    tl.static_assert(N == 3, f"N is {N}")
    tl.static_print("N", N, sep="=")
    tl.store(out, tl.extra.cuda.num_threads())
    tl.store(out + 1, tl.extra.cuda.num_warps())
    if tl.target_info.cuda_capability_geq(8, 0):
        tl.store(out + 2, 80)
    if target_info.cuda_capability_geq(9):
        tl.store(out + 3, 90)
    else:
        tl.store(out + 3, 0)
    tl.store(out + 4, 1 if target_info.is_cuda() else 0)
    tl.store(out + 5, 1 if tl.target_info.is_hip() else 0)


# case dependent | out=fp32[16] x=fp32[16]:iota(0,1)
# case dependent | out=fp32[16] x=fp32[16]:iota(0,1) | target sm_90
# covers op:tl.extra.cuda.gdc_wait, op:tl.extra.cuda.gdc_launch_dependents
@triton.jit
def dependent(out, x):
    gdc_wait()
    at = tl.arange(0, 16)
    v = tl.load(x + at)
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(out + at, v + 1)


# case clocked | out=i32[2]
# covers op:tl.extra.cuda.globaltimer, op:tl.extra.cuda.smid
@triton.jit
def clocked(out):
    start = tl.extra.cuda.globaltimer()
    sm = tl.extra.cuda.smid()
    tl.store(out, (sm >= 0).to(tl.int32))
    tl.store(out + 1, (tl.extra.cuda.globaltimer() >= start).to(tl.int32))


# case assembled | out=i32[32] x=i32[32]:bits(1) y=i32[32]:bits(2) | emulator
# covers op:tl.inline_asm_elementwise
@triton.jit
def assembled(out, x, y):
    at = tl.arange(0, 32)
    v = tl.inline_asm_elementwise("add.u32 $0, $1, $2;", "=r,r,r", [tl.load(x + at), tl.load(y + at)],
                                  dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out + at, v)


# case assembled_packed | out=u8[128] x=u8[128]:bits(1) | emulator
@triton.jit
def assembled_packed(out, x):
    at = tl.arange(0, 128)
    v = tl.inline_asm_elementwise("and.b32 $0, $1, 0x0F0F0F0F;", "=r,r", [tl.load(x + at)], dtype=tl.uint8,
                                  is_pure=True, pack=4)
    tl.store(out + at, v)


# case assembled_pair | a=i32[32] b=fp32[32] x=i32[32]:bits(1) y=fp32[32]:rand(1,-1,1) | emulator
@triton.jit
def assembled_pair(a, b, x, y):
    at = tl.arange(0, 32)
    c, d = tl.inline_asm_elementwise(
        asm="""
        {
            .reg .b32 t;
            not.b32 t, $2;
            mov.b32 $0, t;
            neg.f32 $1, $3;
        }
        """, constraints="=r,=f,r,f", args=[tl.load(x + at), tl.load(y + at)], dtype=(tl.int32, tl.float32),
        is_pure=True, pack=1)
    tl.store(a + at, c)
    tl.store(b + at, d)
