"""Blocks of a large matrix or vector in Triton, as its users write them."""
import triton
import triton.language as tl


@triton.jit
def tile(p, N: tl.constexpr, T: tl.constexpr):
    rows = tl.program_id(1) * T + tl.arange(0, T)
    cols = tl.program_id(0) * T + tl.arange(0, T)
    return p + rows[:, None] * N + cols[None, :]


@triton.jit
def edge(p, axis: tl.constexpr, N: tl.constexpr, T: tl.constexpr):
    return p + tl.program_id(1 - axis) * N + tl.program_id(axis) * T + tl.arange(0, T)


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def transpose(x, out, N: tl.constexpr, T: tl.constexpr, L: tl.constexpr, BINS: tl.constexpr):
    rows = tl.program_id(1) * T + tl.arange(0, T)
    cols = tl.program_id(0) * T + tl.arange(0, T)
    tl.store(out + rows[:, None] + cols[None, :] * N, tl.load(tile(x, N, T)))


@triton.jit
def turn(x, out, N: tl.constexpr, T: tl.constexpr, L: tl.constexpr, BINS: tl.constexpr):
    rows = tl.program_id(0) * T + tl.arange(0, T)
    cols = tl.program_id(1) * T + tl.arange(0, T)
    tl.store(out + rows[:, None] * N + cols[None, :], tl.trans(tl.load(tile(x, N, T))))


@triton.jit
def row_and_column_sums(x, rows, cols, N: tl.constexpr, T: tl.constexpr, L: tl.constexpr, BINS: tl.constexpr):
    v = tl.load(tile(x, N, T))
    tl.store(edge(rows, 1, N, T), tl.sum(v, 1))
    tl.store(edge(cols, 0, N, T), tl.sum(v, 0))


@triton.jit
def centre(x, out, N: tl.constexpr, T: tl.constexpr, L: tl.constexpr, BINS: tl.constexpr):
    v = tl.load(tile(x, N, T))
    tl.store(tile(out, N, T), v - tl.sum(v, 0)[None, :])


@triton.jit
def scan_rows(x, out, N: tl.constexpr, T: tl.constexpr, L: tl.constexpr, BINS: tl.constexpr):
    tl.store(tile(out, N, T), tl.associative_scan(tl.load(tile(x, N, T)), 1, add))


@triton.jit
def scan_columns(x, out, N: tl.constexpr, T: tl.constexpr, L: tl.constexpr, BINS: tl.constexpr):
    tl.store(tile(out, N, T), tl.associative_scan(tl.load(tile(x, N, T)), 0, add))


@triton.jit
def scan_both(x, out, N: tl.constexpr, T: tl.constexpr, L: tl.constexpr, BINS: tl.constexpr):
    v = tl.associative_scan(tl.load(tile(x, N, T)), 1, add)
    tl.store(tile(out, N, T), tl.associative_scan(v, 0, add))


@triton.jit
def mixed(x, y, out, N: tl.constexpr, T: tl.constexpr, L: tl.constexpr, BINS: tl.constexpr):
    tl.store(tile(out, N, T), (tl.load(tile(x, N, T)).to(tl.float32) + tl.load(tile(y, N, T))).to(tl.int8))


@triton.jit
def gather_rows(x, index, out, N: tl.constexpr, T: tl.constexpr, L: tl.constexpr, BINS: tl.constexpr):
    tl.store(tile(out, N, T), tl.gather(tl.load(tile(x, N, T)), tl.load(tile(index, N, T)), 1))


@triton.jit
def gather_columns(x, index, out, N: tl.constexpr, T: tl.constexpr, L: tl.constexpr, BINS: tl.constexpr):
    tl.store(tile(out, N, T), tl.gather(tl.load(tile(x, N, T)), tl.load(tile(index, N, T)), 0))


@triton.jit
def interleave(x, y, out, N: tl.constexpr, T: tl.constexpr, L: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * L + tl.arange(0, L)
    both = tl.interleave(tl.load(x + i), tl.load(y + i))
    tl.store(out + tl.program_id(0) * 2 * L + tl.arange(0, 2 * L), both)


@triton.jit
def split_pairs(x, even, odd, N: tl.constexpr, T: tl.constexpr, L: tl.constexpr, BINS: tl.constexpr):
    v = tl.load(x + tl.program_id(0) * 2 * L + tl.arange(0, 2 * L))
    a, b = tl.split(tl.reshape(v, (L, 2)))
    i = tl.program_id(0) * L + tl.arange(0, L)
    tl.store(even + i, a)
    tl.store(odd + i, b)


@triton.jit
def outer_product(x, out, N: tl.constexpr, T: tl.constexpr, L: tl.constexpr, BINS: tl.constexpr):
    rows = tl.program_id(0) * T + tl.arange(0, T)
    v = tl.load(x + rows)
    tl.store(out + rows[:, None] * T + tl.arange(0, T)[None, :], v[:, None] * v[None, :])


@triton.jit
def row_argmax(x, out, N: tl.constexpr, T: tl.constexpr, L: tl.constexpr, BINS: tl.constexpr):
    tl.store(edge(out, 1, N, T), tl.argmax(tl.load(tile(x, N, T)), 1))


@triton.jit
def histogram(x, out, N: tl.constexpr, T: tl.constexpr, L: tl.constexpr, BINS: tl.constexpr):
    v = tl.load(x + tl.program_id(0) * 4 * L + tl.arange(0, 4 * L))
    tl.store(out + tl.program_id(0) * BINS + tl.arange(0, BINS), tl.histogram(v, BINS))


@triton.jit
def sort(x, out, N: tl.constexpr, T: tl.constexpr, L: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * L + tl.arange(0, L)
    tl.store(out + i, tl.sort(tl.load(x + i)))


PEERS = {k.fn.__name__: k for k in (transpose, turn, row_and_column_sums, centre, scan_rows, scan_columns, scan_both, mixed,
                                   gather_rows, gather_columns, interleave, split_pairs, outer_product, row_argmax, histogram,
                                   sort)}
