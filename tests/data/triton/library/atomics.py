# Atomic operations.
import triton
import triton.language as tl


# case update/atomic_add | old=i32[32] p=i32[32]:iota(0,1) x=i32[32]:bits(1)
# case update/atomic_add | old=fp32[32] p=fp32[32]:iota(0,1) x=fp32[32]:iota(5,2)
# case update/atomic_add | old=fp64[32] p=fp64[32]:iota(0,1) x=fp64[32]:iota(5,2)
# case update/atomic_add | old=fp16[32] p=fp16[32]:iota(0,1) x=fp16[32]:iota(5,2)
# case update/atomic_add | old=i64[32] p=i64[32]:iota(0,1) x=i64[32]:bits(1)
# case update/atomic_max | old=i32[32] p=i32[32]:bits(2) x=i32[32]:bits(1)
# case update/atomic_max | old=u32[32] p=u32[32]:bits(2) x=u32[32]:bits(1)
# case update/atomic_max | old=fp32[32] p=fp32[32]:rand(1,-1,1) x=fp32[32]:rand(2,-1,1)
# case update/atomic_max | old=fp64[32] p=fp64[32]:rand(1,-1,1) x=fp64[32]:rand(2,-1,1)
# case update/atomic_min | old=i64[32] p=i64[32]:bits(2) x=i64[32]:bits(1)
# case update/atomic_min | old=fp32[32] p=fp32[32]:rand(1,-1,1) x=fp32[32]:rand(2,-1,1)
# case update/atomic_and | old=i32[32] p=i32[32]:bits(2) x=i32[32]:bits(1)
# case update/atomic_or | old=u32[32] p=u32[32]:bits(2) x=u32[32]:bits(1)
# case update/atomic_xor | old=i64[32] p=i64[32]:bits(2) x=i64[32]:bits(1)
# case update/atomic_xchg | old=i32[32] p=i32[32]:bits(2) x=i32[32]:bits(1)
# case update/atomic_xchg | old=fp32[32] p=fp32[32]:rand(1,-1,1) x=fp32[32]:rand(2,-1,1)
# covers op:tl.atomic_add, op:tl.atomic_max, op:tl.atomic_min, op:tl.atomic_and, op:tl.atomic_or, op:tl.atomic_xchg
@triton.jit
def update(old, p, x):
    at = tl.arange(0, 32)
    tl.store(old + at, tl.FUNCTION(p + at, tl.load(x + at)))


# case masked/atomic_add | old=i32[32] p=i32[32]:iota(0,1)
# case masked/atomic_max | old=fp32[32] p=fp32[32]:iota(-9,1)
# covers kw:tl.atomic_*(mask), kw:tl.atomic_*(sem), kw:tl.atomic_*(scope)
@triton.jit
def masked(old, p):
    at = tl.arange(0, 32)
    before = tl.FUNCTION(p + at, 7, mask=at < 20, sem="relaxed", scope="cta")
    tl.store(old + at, tl.where(at < 20, before, 0))


# case counted | out=i32[4]:zeros x=i32[64]:rand(1,0,4) | grid 2
@triton.jit
def counted(out, x):
    at = tl.program_id(0) * 32 + tl.arange(0, 32)
    tl.atomic_add(out + tl.load(x + at), 1)


# case of_scalars | out=fp32[3]:zeros old=fp32[1] | grid 1
@triton.jit
def of_scalars(out, old):
    tl.store(old, tl.atomic_add(out, 2.5, sem="release"))
    tl.atomic_max(out + 1, 3.0)
    tl.atomic_min(out + 2, -3.0, sem="acquire", scope="sys")


# case exchanged | p=i32[32]:[1,2] old=i32[32]
# covers op:tl.atomic_cas
@triton.jit
def exchanged(p, old):
    at = tl.arange(0, 32)
    tl.store(old + at, tl.atomic_cas(p + at, tl.full((32,), 2, tl.int32), at + 100))


# case locked | lock=i32[1]:zeros sum=i32[1]:zeros | grid 5
@triton.jit
def locked(lock, sum):
    while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
        pass
    tl.store(sum, tl.load(sum, volatile=True) + tl.program_id(0))
    tl.atomic_xchg(lock, 0, sem="release")


# case methods | p=i32[32]:iota(0,1) out=i32[32]
@triton.jit
def methods(p, out):
    at = tl.arange(0, 32)
    q = p + at
    tl.store(out + at, q.atomic_add(5) + q.atomic_or(64))
