# `triton.tools.ragged_tma`: parts of a tensor along a dimension, of which what lies beyond is zero or not written.
#
# The descriptor has two dimensions in front. The rows it counts end at 2^30; index 2^30 of the first dimension moves back by that many rows
# and by a multiple of 2^64, and the second one moves forth to the end of the part.
import triton
import triton.language as tl


@jit
def to_ragged_indices(batch_offset, batch_size, row):
    end: constexpr = 1 << 30
    return end, batch_offset + batch_size, end - batch_size + row


@jit
def _coordinates(batch_offset, batch_size, coords, ragged_dim: constexpr):
    back, forth, row = to_ragged_indices(batch_offset, batch_size, coords[ragged_dim])
    return [back, forth] + coords[:ragged_dim] + [row] + coords[ragged_dim + 1:]


@jit
def load_ragged(TMA, batch_offset, batch_size, coords, ragged_dim: constexpr = 0):
    static_assert(len(TMA.shape) == len(coords) + 2, "load_ragged needs a descriptor of create_ragged_descriptor")
    data = TMA.load(_coordinates(batch_offset, batch_size, coords, ragged_dim))
    return reshape(data, data.shape[2:])


@jit
def store_ragged(TMA, batch_offset, batch_size, coords, data, ragged_dim: constexpr = 0):
    static_assert(len(TMA.shape) == len(coords) + 2, "store_ragged needs a descriptor of create_ragged_descriptor")
    TMA.store(_coordinates(batch_offset, batch_size, coords, ragged_dim), reshape(data, [1, 1] + data.shape))


@jit
def atomic_add_ragged(TMA, batch_offset, batch_size, coords, data, ragged_dim: constexpr = 0):
    static_assert(len(TMA.shape) == len(coords) + 2, "atomic_add_ragged needs a descriptor of create_ragged_descriptor")
    TMA.atomic_add(_coordinates(batch_offset, batch_size, coords, ragged_dim), reshape(data, [1, 1] + data.shape))
