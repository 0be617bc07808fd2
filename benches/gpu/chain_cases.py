"""Chains of products whose sums stay in registers: recurrences over chunks and a convolution. `builds.py` measures them beside Triton
where TRITON=1, the convolution beside cuDNN, too.
"""
from product_cases import Buffer, Case, Const, Number, cdiv, configs

B, N, C = Buffer, Number, Const
CHUNKS = [(64, 128, 4, 2), (64, 128, 4, 3), (64, 128, 4, 1), (64, 64, 4, 2), (64, 64, 4, 3), (128, 64, 8, 2), (64, 128, 8, 2), (128, 128, 8, 2),
          (32, 128, 4, 3)]
PATCHES = [(128, 128, 64, 4, 3), (128, 128, 32, 4, 4), (64, 128, 64, 4, 3), (128, 64, 64, 4, 4), (128, 128, 64, 8, 3), (128, 256, 64, 8, 3)]


def small(t):
    """Logarithms of decays: the first head, which is checked, keeps a thousandth after 1,000 steps."""
    import torch
    return -torch.rand(t["shape"], device="cuda") / 50


def recurrence(kernel, heads, length, d):
    names = {"retention": ("q", "k", "v"), "gated": ("c", "b", "x")}[kernel]

    def expected(t):
        import torch
        q, k, v = (t[name][:1].double() for name in names)
        steps = torch.arange(length, device="cuda", dtype=torch.float64)
        logs = steps * t["decays"][0].double() if kernel == "retention" else t["gates"][0].double().cumsum(0)
        apart = (logs[:, None] - logs[None, :]).masked_fill(steps[:, None] < steps[None, :], -float("inf"))
        want = (q @ k.transpose(1, 2) * apart.exp2()) @ v
        # Scores, states and decayed values are rounded to f16.
        return {"out": (want, 2.0**-8 * want.abs().max())}
    decays = B("decays", "fp32", (heads,), small) if kernel == "retention" else B("gates", "fp32", (heads, length), small)
    shape = (heads, length, d)
    return Case(f"{kernel} f16 {heads}x{length}x{d}", "recurrent.py", kernel, [B("out", "fp16", shape, "poison"), *(B(name, "fp16", shape) for name in names),
                decays, N(length), C(d), C(d), C("CHUNK"), C("BE")], lambda c: (cdiv(d, c["BE"]), heads), configs(("CHUNK", "BE"), [row for row in CHUNKS if row[1] <= d]), expected,
                4 * heads * length * (64 * d + d * d))


def convolution(batch, side, channels, filters, window=3, kernel="convolve"):
    def expected(t):
        import torch
        x, w = t["x"][:2].double().permute(0, 3, 1, 2), t["w"].double().permute(0, 3, 1, 2)
        conv = lambda a, b: torch.nn.functional.conv2d(a, b, padding=window // 2).permute(0, 2, 3, 1)
        want, sizes = conv(x, w), conv(x.abs(), w.abs())
        return {"out": (want, (channels * window * window + 2) * 2.0**-24 * sizes + 2.0**-11 * want.abs() + 2.0**-24)}

    def peer(t):
        import torch
        x, w = t["x"].permute(0, 3, 1, 2), t["w"].permute(0, 3, 1, 2)
        return lambda: torch.nn.functional.conv2d(x, w, padding=window // 2)
    pixels = batch * side * side
    how = "" if kernel == "convolve" else " in a nest"
    return Case(f"convolution{how} f16 {batch}x{side}x{side}x{channels} to {filters}", "recurrent.py", kernel,
                [B("out", "fp16", (batch, side, side, filters), "poison"), B("x", "fp16", (batch, side, side, channels)),
                 B("w", "fp16", (filters, window, window, channels)), *map(N, (batch, side, side, channels, filters)), C(window), C("BM"), C("BN"), C("BK")],
                lambda c: (cdiv(pixels, c["BM"]), cdiv(filters, c["BN"])), configs(("BM", "BN", "BK"), PATCHES), expected,
                2 * pixels * filters * channels * window * window, peer)


def chains():
    yield recurrence("retention", 128, 4096, 128)
    yield recurrence("gated", 128, 4096, 128)
    yield recurrence("retention", 64, 2048, 64)
    yield convolution(16, 56, 128, 128)
    yield convolution(32, 28, 256, 256)
    yield convolution(16, 56, 128, 128, kernel="convolve_taps")
    yield convolution(32, 28, 256, 256, kernel="convolve_taps")
