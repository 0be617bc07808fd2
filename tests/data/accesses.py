# Kernels whose addresses come from memory, from arithmetic on floats, from scans, from loops and from choices: each copies
# rows of 64 halves, or multiplies matrices, and each thread should move 16 bytes at a time.
import triton
import triton.language as tl


@triton.jit
def rows_read(out, table, ids, width, R: tl.constexpr, C: tl.constexpr):
    rows = tl.load(ids + tl.arange(0, R))
    columns = tl.arange(0, C)
    tl.store(out + tl.arange(0, R)[:, None] * C + columns[None, :], tl.load(table + rows[:, None] * width + columns[None, :]))


@triton.jit
def rows_written(out, table, ids, width, R: tl.constexpr, C: tl.constexpr):
    rows = tl.load(ids + tl.arange(0, R)).to(tl.int64)
    columns = tl.arange(0, C)
    values = tl.load(table + tl.arange(0, R)[:, None] * C + columns[None, :])
    tl.store((out + rows * width)[:, None] + columns[None, :], values)


@triton.jit
def rows_computed(out, table, ids, width, R: tl.constexpr, C: tl.constexpr):
    rows = (tl.arange(0, R) * 0.5).to(tl.int32)
    columns = tl.arange(0, C)
    tl.store(out + tl.arange(0, R)[:, None] * C + columns[None, :], tl.load(table + rows[:, None] * width + columns[None, :]))


@triton.jit
def rows_summed(out, table, ids, width, R: tl.constexpr, C: tl.constexpr):
    rows = tl.cumsum(tl.load(ids + tl.arange(0, R)) % 2, 0)
    columns = tl.arange(0, C)
    mask = (rows[:, None] < width) & (columns[None, :] < C)
    tl.store(out + tl.arange(0, R)[:, None] * C + columns[None, :], tl.load(table + rows[:, None] * width + columns[None, :], mask=mask, other=1.0))


@triton.jit
def columns_carried(out, table, ids, width, R: tl.constexpr, C: tl.constexpr):
    columns = tl.arange(0, C // 2)
    for _ in range(tl.load(ids) % 2 + 1):
        at = tl.arange(0, R)[:, None] * C + columns[None, :]
        tl.store(out + at, tl.load(table + at))
        columns += C // 2 * (tl.load(ids + 2) % 2)


@triton.jit
def pointers_in_while(out, table, ids, width, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C // 2)[None, :]
    source = table + at
    target = out + at
    left = tl.load(ids) % 2 + 1
    while left > 0:
        tl.store(target, tl.load(source))
        source += C // 2
        target += C // 2
        left -= 1


@triton.jit
def pointers_chosen(out, table, ids, width, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    source = table + at
    if tl.load(ids) > 3:
        source += width * 2
    else:
        source += width
    tl.store(out + at, tl.load(source))


@triton.jit
def columns_promised(out, table, ids, width, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    columns = tl.arange(0, C)
    columns = tl.where(columns < tl.load(ids) * C, columns, 0)
    columns = tl.max_contiguous(tl.multiple_of(columns, C), C)
    tl.store(out + at, tl.load(table + tl.arange(0, R)[:, None] * width + columns[None, :]))


@triton.jit
def pointers_promised(out, table, ids, width, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    row = tl.load(ids) // 4 * C
    source = table + tl.arange(0, R)[:, None] * row + tl.arange(0, C)[None, :]
    tl.multiple_of(source, [1, 16])
    tl.store(out + at, tl.load(source))


@triton.jit
def product_of_rows_read(a, b, c, ids, K, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    rows = tl.load(ids + tl.arange(0, M))
    columns = tl.arange(0, N)
    k = tl.arange(0, S)
    left = a + rows[:, None] * K + k[None, :]
    right = b + k[:, None] * N + columns[None, :]
    sums = tl.zeros((M, N), tl.float32)
    for _ in range(0, K, S):
        sums = tl.dot(tl.load(left), tl.load(right), sums)
        left += S
        right += S * N
    tl.store(c + tl.arange(0, M)[:, None] * N + columns[None, :], sums.to(c.dtype.element_ty))


@triton.jit
def product_with_carried_range(a, b, c, ids, K, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    k = tl.arange(0, S)
    sums = tl.zeros((M, N), tl.float32)
    for _ in range(0, K, S):
        sums = tl.dot(tl.load(a + rows[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + columns[None, :]), sums)
        k += S
    tl.store(c + rows[:, None] * N + columns[None, :], sums.to(c.dtype.element_ty))


@triton.jit
def product_with_promises(a, b, c, ids, K, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    k = tl.arange(0, S)
    # The number at 17 is zero.
    zero = tl.load(ids + 17)
    columns = tl.where(columns < N + zero, columns, 0)
    columns = tl.max_contiguous(tl.multiple_of(columns, N), N)
    left = a + rows[:, None] * (K + zero) + k[None, :]
    right = b + k[:, None] * N + columns[None, :]
    sums = tl.zeros((M, N), tl.float32)
    for _ in range(0, K, S):
        tl.multiple_of(left, [1, 16])
        sums = tl.dot(tl.load(left), tl.load(right), sums)
        left += S
        right += S * N
    tl.store(c + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], sums.to(c.dtype.element_ty))


@triton.jit
def product_without_alignment(a, b, c, K, row, column, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    k = tl.arange(0, S)
    rows = tl.arange(0, M)
    columns = tl.arange(0, N)
    left = a + rows[:, None] * row + k[None, :]
    right = b + k[:, None] * column + columns[None, :]
    sums = tl.zeros((M, N), tl.float32)
    for i in range(0, K, S):
        sums += tl.dot(tl.load(left, mask=k[None, :] < K - i, other=0.0), tl.load(right, mask=k[:, None] < K - i, other=0.0))
        left += S
        right += S * column
    tl.store(c + rows[:, None] * row + columns[None, :], sums.to(c.dtype.element_ty))


# Offsets that no neighbours follow each other by, in blocks that a loop moves on and code behind it goes on with.
@triton.jit
def scattered_block_advanced(out, table, width, step, n, R: tl.constexpr, C: tl.constexpr):
    rows = tl.arange(0, R)
    columns = tl.arange(0, C)
    source = table + rows[:, None] * width + (columns * 3 % C)[None, :]
    sums = tl.zeros((R, C), tl.float16)
    for i in range(n):
        sums += tl.load(source)
        source += step
    at = rows[:, None] * C + columns[None, :]
    tl.store(out + at, sums + tl.load(source))
    other = table + (columns * 5 % C)[None, :] + rows[:, None] * width
    sums = tl.zeros((R, C), tl.float16)
    for i in range(n):
        other += 7
        sums += tl.load(other)
    tl.store(out + R * C + at, sums)


@triton.jit
def others_of_columns(out, x, y, n, R: tl.constexpr, C: tl.constexpr):
    rows = tl.arange(0, R)
    columns = tl.arange(0, C)
    at = rows[:, None] * C + columns[None, :]
    # All columns read one address of their row, and each has a number of its own where that is masked off.
    same = tl.broadcast_to(x + rows[:, None], (R, C))
    few = tl.broadcast_to(rows[:, None] < n, (R, C))
    other = tl.broadcast_to(tl.load(y + columns)[None, :], (R, C))
    tl.store(out + at, tl.load(same, mask=few, other=other))
    tl.store(out + R * C + at, tl.load(same, mask=(rows[:, None] + columns[None, :]) % 3 < n, other=other))
    counted = tl.broadcast_to(columns[None, :], (R, C)).to(tl.float16)
    tl.store(out + 2 * R * C + at, tl.load(same, mask=few, other=counted))
    across = tl.broadcast_to(x + columns[None, :], (R, C))
    tl.store(out + 3 * R * C + at, tl.load(across, mask=(columns < n)[None, :], other=rows[:, None].to(tl.float16)))


@triton.jit
def rows_below(out, table, firsts, n, R: tl.constexpr, C: tl.constexpr):
    first = 0
    total = tl.zeros([R, C], tl.float16)
    for i in range(n):
        rows = first + tl.arange(0, R)
        is_row = rows[:, None] < 256
        x = tl.load(table + rows[:, None] * C + tl.arange(0, C)[None, :], mask=is_row, other=0.0)
        total += tl.where(is_row, x, 1.0)
        first += tl.load(firsts + i) * R
    tl.store(out + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :], total)
