# States that are stored and multiplied in each iteration, as those of linear attention are: units read them where the copy engine takes them, and
# both are sent together; what is multiplied twice is stored once.
import triton
import triton.language as tl


@triton.jit
def states(h, w, k, o, T):
    part = tl.program_id(0)
    kept = tl.make_tensor_descriptor(h, [T * 256, 64], [64, 1], [64, 64])
    out = tl.make_tensor_descriptor(o, [T * 128, 64], [64, 1], [64, 64])
    rows, columns = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    first = tl.zeros((64, 64), dtype=tl.float32) + 0.5
    second = tl.zeros((64, 64), dtype=tl.float32) - 0.25
    for i in range(T):
        at = 128 * (part * T + i)
        kept.store([at, 0], first.to(tl.float16))
        kept.store([at + 64, 0], second.to(tl.float16))
        x = tl.load(w + (128 * i + rows) * 64 + columns)
        y = tl.load(w + (128 * i + 64 + rows) * 64 + columns)
        v = tl.dot(x, first.to(tl.float16)) + tl.dot(y, second.to(tl.float16))
        v = (v * 0.125).to(tl.float16)
        out.store([64 * (part * T + i), 0], v)
        first = first * 0.5 + tl.dot(tl.trans(tl.load(k + (128 * i + rows) * 64 + columns)), v) * 0.125
        second = second * 0.5 + tl.dot(tl.trans(tl.load(k + (128 * i + 64 + rows) * 64 + columns)), v) * 0.125
