# Types: conversions, promotion, what can be asked of them.
import triton
import triton.language as tl


# case cast/int32 | out=i32[16] x=fp32[16]:[1.5,-2.75,0,1e6] N=16
# case cast/int64 | out=i64[16] x=i32[16]:bits(1) N=16
# case cast/int64 | out=i64[16] x=u32[16]:bits(1) N=16
# case cast/int8 | out=i8[16] x=i32[16]:bits(1) N=16
# case cast/uint8 | out=u8[16] x=i32[16]:bits(1) N=16
# case cast/int16 | out=i16[16] x=fp32[16]:[1.5,-2.75,0,1000] N=16
# case cast/uint16 | out=u16[16] x=i64[16]:bits(1) N=16
# case cast/uint32 | out=u32[16] x=i16[16]:bits(1) N=16
# case cast/uint64 | out=u64[16] x=i8[16]:bits(1) N=16
# case cast/float16 | out=fp16[16] x=fp32[16]:rand(1,-99,99) N=16
# case cast/float32 | out=fp32[16] x=fp16[16]:rand(1,-99,99) N=16
# case cast/float32 | out=fp32[16] x=i64[16]:bits(1) N=16
# case cast/float32 | out=fp32[16] x=u64[16]:bits(1) N=16
# case cast/float64 | out=fp64[16] x=i32[16]:bits(1) N=16
# case cast/float64 | out=fp64[16] x=bf16[16]:rand(1,-99,99) N=16
# case cast/bfloat16 | out=bf16[16] x=fp32[16]:rand(1,-99,99) N=16
# case cast/int1 | out=i32[16] x=fp32[16]:[1.5,0,-0.0,nan] N=16
# case cast/float8e5 | out=fp8e5[16] x=fp32[16]:rand(1,-9,9) N=16 | target sm_90
# case cast/float8e4nv | out=fp8e4nv[16] x=fp32[16]:rand(1,-9,9) N=16 | target sm_90
# case cast/float32 | out=fp32[16] x=fp8e5[16]:rand(1,-9,9) N=16 | target sm_90
# case cast/float32 | out=fp32[16] x=fp8e4nv[16]:rand(1,-9,9) N=16 | target sm_90
# case cast/float16 | out=fp16[16] x=fp8e4nv[16]:rand(1,-9,9) N=16 | target sm_90
# case cast/float32 | out=fp32[16] x=fp8e5[16]:rand(1,-9,9) N=16
# covers op:method:to, op:tl.cast, dtype:int32, dtype:int64, dtype:int8, dtype:uint8, dtype:int16, dtype:uint16
# covers dtype:uint32, dtype:uint64, dtype:float16, dtype:float32, dtype:float64, dtype:bfloat16, dtype:int1
# covers dtype:float8e5, dtype:float8e4nv
@triton.jit
def cast(out, x, N: tl.constexpr):
    at = tl.arange(0, N)
    v = tl.load(x + at)
    tl.store(out + at, v.to(tl.FUNCTION))
    tl.debug_barrier()
    tl.store(out + at, tl.cast(v, tl.FUNCTION))


# case truncated | out=fp16[32] x=fp32[32]:rand(1,-99,99)
# case truncated | out=bf16[32] x=fp32[32]:rand(1,-99,99)
# covers kw:cast(fp_downcast_rounding)
@triton.jit
def truncated(out, x):
    at = tl.arange(0, 32)
    tl.store(out + at, tl.load(x + at).to(out.dtype.element_ty, fp_downcast_rounding="rtz"))


# case bits | a=i32[16] b=fp16[16] x=fp32[16]:rand(1,-9,9) y=u16[16]:bits(1)
# covers kw:cast(bitcast)
@triton.jit
def bits(a, b, x, y):
    at = tl.arange(0, 16)
    tl.store(a + at, tl.load(x + at).to(tl.int32, bitcast=True))
    tl.store(b + at, tl.cast(tl.load(y + at), tl.float16, bitcast=True))


# case asked | out=i32[24]
# covers syn:dtype predicates, op:tl.get_int_dtype, op:tl.dtype, op:tl._log2, op:tl.tensor
@triton.jit
def asked(out):
    x = tl.full((4, 8), 0, tl.float16)
    tl.store(out, x.dtype.primitive_bitwidth)
    tl.store(out + 1, x.dtype.is_floating() and x.dtype.is_fp16() and not x.dtype.is_fp8())
    tl.store(out + 2, tl.int8.is_int_signed() + 2 * tl.uint8.is_int_signed() + 4 * tl.uint8.is_int_unsigned())
    tl.store(out + 3, tl.int64.int_bitwidth)
    tl.store(out + 4, x.numel)
    tl.store(out + 5, x.shape[1] + x.type.shape[0])
    tl.store(out + 6, out.dtype.is_ptr() + 2 * (out.dtype.element_ty == tl.int32))
    tl.store(out + 7, tl.core.get_int_dtype(16, False) == tl.uint16)
    tl.store(out + 8, tl.dtype("fp32") == tl.float32)
    tl.store(out + 9, tl._log2(64) if isinstance(x, tl.tensor) else -1)
    tl.store(out + 10, isinstance(x.dtype, tl.dtype) + 2 * (x.shape[0] == 4))
    tl.store(out + 11, x.type.is_block() + 2 * x.dtype.is_block())
    tl.store(out + 12, x.type.element_ty == tl.float16)
    tl.store(out + 13, len(x.shape) + tl.float32.fp_mantissa_width)
    tl.store(out + 14, (x.dtype == tl.float8e4b8) + 2 * (x.dtype != tl.float8e4b15) + 4 * (tl.float8e5 == tl.float8e5))
    tl.store(out + 15, tl.bfloat16.is_bf16() + 2 * tl.float8e4nv.is_fp8e4nv() + 4 * tl.float64.is_fp64())
    tl.store(out + 16, tl.int1.is_bool() + 2 * tl.int1.is_int())
    tl.store(out + 17, tl.int16.get_int_max_value())
    tl.store(out + 18, tl.int16.get_int_min_value())
    tl.store(out + 19, x.type.scalar == x.dtype)
    tl.store(out + tl.arange(0, 4) + 20, tl.int32(tl.arange(0, 4).to(tl.int64)))


# case named_types | out=i32[4]
# covers dtype:float8e4b8, dtype:float8e4b15, syn:dtype called as cast
@triton.jit
def named_types(out):
    T: tl.constexpr = tl.float8e4b8
    tl.store(out, T.is_fp8() + 2 * (T == tl.float8e4b15))
    tl.store(out + 1, tl.float8e4b15.is_fp8e4b15() + 2 * tl.float8e4b15.primitive_bitwidth)
    tl.store(out + 2, tl.int32(2.75))
    tl.store(out + 3, tl.int32(tl.int8(300)))


# case small_float | a=u8[16] b=fp32[16] c=fp16[256] x=fp32[16]:[0,1,-1.75,0.3,1.6,-0.0625,0.01,9,nan,-0.001,1.8125,0.0009765625,0.00293] t=u8[256]:iota(0,1)
@triton.jit
def small_float(a, b, c, x, t):
    at = tl.arange(0, 16)
    v = tl.load(x + at).to(tl.float8e4b15)
    tl.store(a + at, v.to(tl.uint8, bitcast=True))
    tl.store(b + at, v.to(tl.float32))
    every = tl.arange(0, 256)
    tl.store(c + every, tl.load(t + every).to(tl.float8e4b15, bitcast=True).to(tl.float16))
