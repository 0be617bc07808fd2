# Loops that multiply matrices in other ways than the plain one: each should copy what it multiplies ahead of time.
import triton
import triton.language as tl


@triton.jit
def step_at_run_time(out, x, y, K, step, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    k = tl.arange(0, S)
    left = x + rows[:, None] * K + k[None, :]
    right = y + k[:, None] * N + columns[None, :]
    sums = tl.zeros((M, N), tl.float32)
    for _ in range(0, K, step):
        sums = tl.dot(tl.load(left), tl.load(right), sums)
        left += S
        right += S * N
    tl.store(out + rows[:, None] * N + columns[None, :], sums.to(out.dtype.element_ty))


@triton.jit
def split_by_programs(out, x, y, K, step, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    program = tl.program_id(0)
    sums = tl.zeros((M, N), tl.float32)
    for i in range(program, tl.cdiv(K, S), tl.num_programs(0)):
        k = i * S + tl.arange(0, S)
        left = tl.load(x + rows[:, None] * K + k[None, :])
        right = tl.load(y + k[:, None] * N + columns[None, :])
        sums = tl.dot(left, right, sums)
    tl.store(out + program * M * N + rows[:, None] * N + columns[None, :], sums.to(out.dtype.element_ty))


@triton.jit
def atomics_on_blocks(out, x, y, K, step, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    k = tl.arange(0, S)
    for i in range(0, K, S):
        left = tl.load(x + rows[:, None] * K + (i + k)[None, :])
        right = tl.load(y + (i + k)[:, None] * N + columns[None, :])
        tl.atomic_add(out + rows[:, None] * N + columns[None, :], tl.dot(left, right).to(out.dtype.element_ty))


@triton.jit
def tickets(out, x, y, K, step, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    k = tl.arange(0, S)
    sums = tl.zeros((M, N), tl.float32)
    for i in range(0, K, S):
        left = tl.load(x + rows[:, None] * K + (i + k)[None, :])
        right = tl.load(y + (i + k)[:, None] * N + columns[None, :])
        sums = tl.dot(left, right, sums)
        tl.atomic_add(out, 1.0, sem=SEM)
    tl.store(out + 8 + rows[:, None] * N + columns[None, :], sums.to(out.dtype.element_ty))


@triton.jit
def columns_masked(out, x, y, K, step, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    k = tl.arange(0, S)
    left = x + rows[:, None] * K + k[None, :]
    right = y + k[:, None] * N + columns[None, :]
    sums = tl.zeros((M, N), tl.float32)
    for _ in range(0, K, S):
        sums = tl.dot(tl.load(left), tl.load(right, mask=(columns < step)[None, :], other=0.0), sums)
        left += S
        right += S * N
    tl.store(out + rows[:, None] * N + columns[None, :], sums.to(out.dtype.element_ty))


@triton.jit
def flattened(out, x, y, K, step, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    columns = tl.arange(0, N)
    rows = tl.arange(0, M)
    steps = tl.cdiv(K, S)
    tile = -1
    at = -1
    sums = tl.zeros((M, N), tl.float32)
    for _ in range(0, steps * step):
        at = tl.where(at == steps - 1, 0, at + 1)
        if at == 0:
            tile += 1
            rows = tile * M + tl.arange(0, M)
        k = at * S + tl.arange(0, S)
        left = tl.load(x + rows[:, None] * K + k[None, :])
        right = tl.load(y + k[:, None] * N + columns[None, :])
        sums = tl.dot(left, right, sums)
        if at == steps - 1:
            tl.store(out + rows[:, None] * N + columns[None, :], sums.to(out.dtype.element_ty))
            sums = tl.zeros((M, N), tl.float32)


@triton.jit
def pages(out, x, y, table, K, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    k = tl.arange(0, S)
    sums = tl.zeros((M, N), tl.float32)
    for i in range(0, tl.cdiv(K, S)):
        page = tl.load(table + i)
        left = tl.load(x + rows[:, None] * K + (i * S + k)[None, :])
        right = tl.load(y + (page * S + k)[:, None] * N + columns[None, :])
        sums = tl.dot(left, right, sums)
    tl.store(out + rows[:, None] * N + columns[None, :], sums.to(out.dtype.element_ty))


@triton.jit
def rows_of_table(out, x, y, table, K, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    k = tl.arange(0, S)
    entries = table + k
    sums = tl.zeros((M, N), tl.float32)
    for i in range(0, K, S):
        row = tl.load(entries, mask=i + k < K - 5, other=3)
        left = tl.load(x + rows[:, None] * K + (i + k)[None, :])
        right = tl.load(y + row[:, None] * N + columns[None, :])
        sums = tl.dot(left, right, sums)
        entries += S
    tl.store(out + rows[:, None] * N + columns[None, :], sums.to(out.dtype.element_ty))


@triton.jit
def chased(out, x, y, table, K, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    k = tl.arange(0, S)
    page = tl.load(table)
    sums = tl.zeros((M, N), tl.float32)
    for i in range(0, K, S):
        left = tl.load(x + rows[:, None] * K + (i + k)[None, :])
        right = tl.load(y + (page * S + k)[:, None] * N + columns[None, :])
        sums = tl.dot(left, right, sums)
        page = tl.load(table + page)
    tl.store(out + rows[:, None] * N + columns[None, :], sums.to(out.dtype.element_ty))


@triton.jit
def ends(out, x, y, K, width, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    k = tl.arange(0, S)
    at = k
    left = x + rows[:, None] * width + k[None, :]
    right = y + k[:, None] * N + columns[None, :]
    sums = tl.zeros((M, N), SUM)
    for i in range(0, K, S):
        a = tl.load(left, mask=INSIDE, other=OTHER)
        b = tl.load(right, mask=(i + k < K)[:, None], other=0)
        sums = tl.dot(a, b, sums)
        at += S
        left += S
        right += S * N
    tl.store(out + rows[:, None] * N + columns[None, :], sums.to(out.dtype.element_ty))


@triton.jit
def described(out, x, y, K, width, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    left = tl.make_tensor_descriptor(x, [M - 3, K], [width, 1], [M, S])
    right = tl.make_tensor_descriptor(y, [K, N - 5], [N, 1], [S, N])
    sums = tl.zeros((M, N), tl.float32)
    for i in range(tl.cdiv(K, S)):
        sums = tl.dot(left.load([0, i * S]), right.load([i * S, 0]), sums)
    tl.store(out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], sums.to(out.dtype.element_ty))


@triton.jit
def described_by_host(left, right, out, K, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    sums = tl.zeros((M, N), tl.float32)
    for i in range(tl.cdiv(K, S)):
        sums = tl.dot(left.load([0, i * S]), right.load([i * S, 0]), sums)
    out.store([0, 0], sums.to(tl.float16))


# The counter goes far while the addresses do not.
@triton.jit
def far_apart(out, x, y, last, step, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    k = tl.arange(0, S)
    left = x + rows[:, None] * (2 * S) + k[None, :]
    right = y + k[:, None] * N + columns[None, :]
    sums = tl.zeros((M, N), tl.float32)
    for _ in range(0, last, STEP):
        sums = tl.dot(tl.load(left), tl.load(right), sums)
        left += S
        right += S * N
    tl.store(out + rows[:, None] * N + columns[None, :], sums.to(out.dtype.element_ty))


@triton.jit
def two_loops(out, x, y, K, step, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    k = tl.arange(0, S)
    sums = tl.zeros((M, N), tl.float32)
    for i in range(0, K, S):
        left = tl.load(x + rows[:, None] * K + (i + k)[None, :])
        right = tl.load(y + (i + k)[:, None] * N + columns[None, :])
        sums = tl.dot(left, right, sums)
    for i in range(0, K, S):
        left = tl.load(x + rows[:, None] * K + (K - S - i + k)[None, :])
        right = tl.load(y + (i + k)[:, None] * N + columns[None, :])
        sums = tl.dot(left, right, sums)
    tl.store(out + rows[:, None] * N + columns[None, :], sums.to(out.dtype.element_ty))


@triton.jit
def volatile_left(out, x, y, K, step, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    k = tl.arange(0, S)
    sums = tl.zeros((M, N), tl.float32)
    for i in range(0, K, S):
        left = tl.load(x + rows[:, None] * K + (i + k)[None, :], mask=(rows < step)[:, None], other=0.0, volatile=True)
        right = tl.load(y + (i + k)[:, None] * N + columns[None, :])
        sums = tl.dot(left, right, sums)
    tl.store(out + rows[:, None] * N + columns[None, :], sums.to(out.dtype.element_ty))


# A block goes through shared memory beside the rings.
@triton.jit
def both_ways(out, x, y, z, transposed, K, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    k = tl.arange(0, S)
    sums = tl.zeros((M, N), tl.float32)
    for i in range(0, K, S):
        left = tl.load(x + rows[:, None] * K + (i + k)[None, :])
        right = tl.load(y + (i + k)[:, None] * N + columns[None, :])
        sums = tl.dot(left, right, sums)
        block = tl.load(z + rows[:, None] * N + columns[None, :]) + i
        tl.store(transposed + i * (M * N // S) + columns[None, :] * M + rows[:, None], block)
    tl.store(out + rows[:, None] * N + columns[None, :], sums)
