"""A step of Adam, and sums over the whole grid."""
import triton
import triton.language as tl


@triton.jit
def adam(param, grad, m, v, n, rate, beta1, beta2, eps, decay, correction1, correction2, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    p = tl.load(param + at, mask=mask).to(tl.float32)
    g = tl.load(grad + at, mask=mask).to(tl.float32)
    first = tl.load(m + at, mask=mask)
    second = tl.load(v + at, mask=mask)
    p *= 1 - rate * decay
    first = beta1 * first + (1 - beta1) * g
    second = beta2 * second + (1 - beta2) * g * g
    step = (first / correction1) / (tl.sqrt(second / correction2) + eps)
    tl.store(param + at, p - rate * step, mask=mask)
    tl.store(m + at, first, mask=mask)
    tl.store(v + at, second, mask=mask)


@triton.jit
def sum_atomic(out, x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0.0)
    tl.atomic_add(out, tl.sum(v, axis=0))


@triton.jit
def sum_last(out, partial, count, x, n, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    # Each program leaves its sum; whoever comes last adds them up, always in the same order, and resets the count.
    program = tl.program_id(0)
    at = program * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(partial + program, tl.sum(v, axis=0))
    tl.debug_barrier()
    arrived = tl.atomic_add(count, 1)
    if arrived == tl.num_programs(0) - 1:
        i = tl.arange(0, PROGRAMS)
        sums = tl.load(partial + i, mask=i < tl.num_programs(0), other=0.0, volatile=True)
        tl.store(out, tl.sum(sums, axis=0))
        tl.atomic_xchg(count, 0)


@triton.jit
def max_locked(out, lock, x, columns, BLOCK: tl.constexpr):
    # The largest element of each column, one row per program, under one lock.
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < columns
    v = tl.load(x + row * columns + at, mask=mask, other=float("-inf"))
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    v = tl.maximum(v, tl.load(out + at, mask=mask))
    tl.store(out + at, v, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


# run: adam "*fp32, *fp32, *fp32, *fp32, i32, fp32, fp32, fp32, fp32, fp32, fp32, fp32, 128" : grid(2) param=f32[200] normal(1) grad=f32[200] normal(2) m=f32[200] normal(3) v=f32[200] uniform(4,0,1) n=200 rate=0.001 beta1=0.9 beta2=0.999 eps=1e-8 decay=0.01 correction1=0.1 correction2=0.001
# run: sum_atomic "*fp32, *fp32, i32, 128" : grid(3) out=f32[1] zeros x=f32[300] normal(1) n=300
# run: sum_last "*fp32, *fp32, *i32, *fp32, i32, 128, 4" : grid(3) out=f32[1] poison partial=f32[3] poison count=i32[1] zeros x=f32[300] normal(1) n=300
# run: max_locked "*fp32, *i32, *fp32, i32, 64" : grid(3) out=f32[50] const(-inf) lock=i32[1] zeros x=f32[150] normal(1) columns=50
