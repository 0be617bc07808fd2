"""Linear layers with what follows them in one kernel: three epilogues, and LayerNorm before the product."""
import triton
import triton.language as tl


@triton.jit
def gelu(x):
    # x * (1 + tanh(u)) / 2 = x / (1 + exp(-2 u)), right at both ends, where exp vanishes or overflows.
    return x / (1 + tl.exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)))


@triton.jit
def linear_gelu(weight, bias, x, out, features, outputs, tokens, STEP: tl.constexpr, COLUMNS: tl.constexpr,
                ROWS: tl.constexpr, BAND: tl.constexpr):
    # out = gelu(x @ weight + bias)
    bands = tl.cdiv(outputs, COLUMNS) * BAND
    program = tl.program_id(0)
    top = program // bands * BAND
    height = min(tl.cdiv(tokens, ROWS) - top, BAND)
    left = program % bands // height * COLUMNS + tl.arange(0, COLUMNS)
    upper = (top + program % bands % height) * ROWS + tl.arange(0, ROWS)
    step = tl.arange(0, STEP)
    w_at = weight + step[:, None] * outputs + (left % outputs)[None, :]
    x_at = x + (upper % tokens)[:, None] * features + step[None, :]
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for done in range(0, features, STEP):
        inside = step < features - done
        w = tl.load(w_at, mask=inside[:, None], other=0.0)
        sums = tl.dot(tl.load(x_at, mask=inside[None, :], other=0.0), w, sums)
        w_at += STEP * outputs
        x_at += STEP
    sums += tl.load(bias + left, mask=left < outputs, other=0.0).to(tl.float32)[None, :]
    mask = (left < outputs)[None, :] & (upper < tokens)[:, None]
    tl.store(out + upper[:, None] * outputs + left[None, :], gelu(sums).to(out.dtype.element_ty), mask=mask)


@triton.jit
def scaled_leaky_relu(y, scale, slope, w, a, J, I, L, BJ: tl.constexpr, BI: tl.constexpr, BL: tl.constexpr, G: tl.constexpr):
    # y[i, j] = leaky_relu(scale * (a @ w))[i, j]; counts down and knows that blocks divide the sizes.
    p = tl.program_id(0)
    across = J // BJ
    low = p // (G * across) * G
    rest = p % (G * across)
    tall = min(I // BI - low, G)
    j = rest // tall * BJ + tl.arange(0, BJ)
    i = (low + rest % tall) * BI + tl.arange(0, BI)
    l = tl.arange(0, BL)
    w += l[:, None] * J + j[None, :]
    a += i[:, None] * L + l[None, :]
    t = tl.zeros((BI, BJ), dtype=tl.float32)
    for _ in range(L, 0, -BL):
        right = tl.load(w)
        t += tl.dot(tl.load(a), right)
        a += BL
        w += BL * J
    t *= scale
    y += i[:, None] * J + j[None, :]
    tl.store(y, tl.where(t >= 0, t, slope * t).to(y.dtype.element_ty))


@triton.jit
def row_bias_silu(filters, pixels, planes, shift, channels, positions, taps, GROUP: tl.constexpr, P: tl.constexpr,
                  C: tl.constexpr, T: tl.constexpr):
    # planes = silu(filters @ pixels + shift[:, None]), a convolution of one pixel.
    program = tl.program_id(0)
    wide = tl.cdiv(positions, P)
    begin = program // (GROUP * wide) * GROUP
    count = min(tl.cdiv(channels, C) - begin, GROUP)
    block = begin + program % (GROUP * wide) % count
    where = program % (GROUP * wide) // count
    c = block * C + tl.arange(0, C)
    p = where * P + tl.arange(0, P)
    total = tl.zeros((C, P), dtype=tl.float32)
    for i in range(tl.cdiv(taps, T)):
        t = i * T + tl.arange(0, T)
        f = tl.load(filters + (c % channels)[:, None] * taps + t[None, :], mask=t[None, :] < taps, other=0.0)
        v = tl.load(pixels + t[:, None] * positions + (p % positions)[None, :], mask=t[:, None] < taps, other=0.0)
        total = tl.dot(f, v, acc=total)
    total += tl.load(shift + c, mask=c < channels, other=0.0)[:, None]
    total *= tl.sigmoid(total)
    keep = (c[:, None] < channels) & (p[None, :] < positions)
    tl.store(planes + c[:, None] * positions + p[None, :], total.to(planes.dtype.element_ty), mask=keep)


@triton.jit
def layer_norm_linear_gelu(out, x, weight, sums, bias, eps, ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr,
                           FEATURES: tl.constexpr, OUTPUTS: tl.constexpr, SUM: tl.constexpr):
    # out = gelu(layer_norm(x) @ weight + bias) in one pass over x: with the mean m and the deviation d of a row,
    # ((x - m) / d) @ weight = (x @ weight - m * sums) / d, where sums are those of weight's columns. All that is added up
    # is of type SUM.
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    product = tl.zeros((ROWS, COLUMNS), dtype=SUM)
    first = tl.zeros((ROWS,), dtype=SUM)
    second = tl.zeros((ROWS,), dtype=SUM)
    for start in range(0, FEATURES, STEP):
        k = start + tl.arange(0, STEP)
        v = tl.load(x + rows[:, None] * FEATURES + k[None, :])
        w = tl.load(weight + k[:, None] * OUTPUTS + columns[None, :])
        first += tl.sum(v.to(SUM), axis=1)
        second += tl.sum(v.to(SUM) * v.to(SUM), axis=1)
        product += tl.dot(v, w).to(SUM)
    mean = first / FEATURES
    scale = 1 / tl.sqrt(tl.abs(second / FEATURES - mean * mean).to(tl.float32) + eps)
    y = (product - mean[:, None] * tl.load(sums + columns)[None, :]).to(tl.float32) * scale[:, None]
    y += tl.load(bias + columns)[None, :]
    tl.store(out + rows[:, None] * OUTPUTS + columns[None, :], gelu(y).to(out.dtype.element_ty))


# run: linear_gelu "*fp16, *fp16, *fp16, *fp16, i32, i32, i32, 16, 32, 32, 2" : grid(4) weight=f16[1920] normal(1) bias=f16[48] normal(2) x=f16[1600] normal(3) out=f16[1920] poison features=40 outputs=48 tokens=40
# run: scaled_leaky_relu "*fp32, fp32, fp32, *fp16, *fp16, i32, i32, i32, 32, 32, 16, 2" : grid(2) y=f32[2048] poison scale=0.5 slope=0.01 w=f16[2048] normal(1) a=f16[1024] normal(2) J=64 I=32 L=32
# run: row_bias_silu "*fp16, *fp16, *fp16, *fp32, i32, i32, i32, 2, 32, 32, 16" : grid(4) filters=f16[960] normal(1) pixels=f16[960] normal(2) planes=f16[1600] poison shift=f32[40] normal(3) channels=40 positions=40 taps=24
# run: layer_norm_linear_gelu "*fp16, *fp16, *fp16, *fp32, *fp32, fp32, 32, 32, 16, 64, 32, fp32" : grid(1,1) out=f16[1024] poison x=f16[2048] normal(1) weight=f16[2048] normal(2) sums=f32[32] normal(3) bias=f32[32] normal(4) eps=1e-5
