# Loads and stores.
import triton
import triton.language as tl


# case copied | out=fp32[32] x=fp32[32]:iota(0,1) n=i32:20
# covers op:tl.load, op:tl.store, kw:tl.load(mask), kw:tl.load(other), kw:tl.store(mask), op:tl.program_id
@triton.jit
def copied(out, x, n):
    at = tl.program_id(0) * 32 + tl.arange(0, 32)
    v = tl.load(x + at, mask=at < n, other=-1.0)
    tl.store(out + at, v)
    tl.debug_barrier()
    tl.store(out + at, tl.load(x + at, at < 5), mask=at < 8)


# case options | out=fp32[64] x=fp32[64]:iota(0,1) | warps 2
# covers kw:load/store(eviction_policy), kw:load/store(cache_modifier), kw:tl.load(volatile)
@triton.jit
def options(out, x):
    at = tl.arange(0, 64)
    a = tl.load(x + at, eviction_policy="evict_last", cache_modifier=".cg")
    b = tl.load(x + at, eviction_policy="evict_first", cache_modifier=".ca")
    c = tl.load(x + at, volatile=True)
    d = tl.load(x + at, cache_modifier="")
    tl.store(out + at, a + b + c + d, cache_modifier=".wb", eviction_policy="evict_first")


# case streamed | out=fp32[64] x=fp32[64]:iota(0,1) | warps 2
@triton.jit
def streamed(out, x):
    at = tl.arange(0, 64)
    tl.store(out + at, tl.load(x + at, cache_modifier=".cv"), cache_modifier=".cs")


# case barrier | out=i32[64]:zeros
# covers op:tl.debug_barrier
@triton.jit
def barrier(out):
    at = tl.arange(0, 64)
    tl.store(out + at, at)
    tl.debug_barrier()
    v = tl.load(out + 63 - at)
    tl.debug_barrier()
    tl.store(out + at, v)


# case through_addresses | out=fp16[16] x=fp16[16]:iota(0,1) table=i64[2]:zeros
# covers op:tl.pointer_type
@triton.jit
def through_addresses(out, x, table):
    at = tl.arange(0, 16)
    tl.store(table, x.to(tl.int64))
    tl.debug_barrier()
    p = tl.load(table).to(tl.pointer_type(tl.float16))
    tl.store(out + at, tl.load(p + at) * 2)


# case cast_on_store | a=fp16[8] b=i32[8] c=i1[8] x=fp32[8]:[1.5,-2.75,0,100.1]
@triton.jit
def cast_on_store(a, b, c, x):
    at = tl.arange(0, 8)
    v = tl.load(x + at)
    tl.store(a + at, v)
    tl.store(b + at, v)
    tl.store(c + at, v)


# case grid | out=i32[24]:zeros | grid 2,3,4
# covers op:tl.num_programs
@triton.jit
def grid(out):
    i, j, k = tl.program_id(0), tl.program_id(axis=1), tl.program_id(2)
    at = (i * tl.num_programs(1) + j) * tl.num_programs(2) + k
    tl.store(out + at, 100 * i + 10 * j + k)


# case promised | out=fp32[64] x=fp32[64]:iota(0,1) n=i32:32
# covers op:tl.multiple_of, op:tl.max_contiguous, op:tl.max_constancy, op:tl.assume
@triton.jit
def promised(out, x, n):
    tl.assume(n > 0)
    n = tl.multiple_of(n, 16)
    at = tl.max_contiguous(tl.multiple_of(n + tl.arange(0, 16), 16), 16)
    mask = tl.max_constancy((at < n + 16).to(tl.int32), 16) != 0
    tl.store(out + tl.arange(0, 64), 0.0)
    tl.debug_barrier()
    tl.store(out + at, tl.load(x + at, mask=mask), mask=mask)


# case method | out=fp32[16] x=fp32[16]:iota(0,1)
@triton.jit
def method(out, x):
    at = tl.arange(0, 16)
    (out + at).store(tl.load(x + at), mask=at < 16)
