"""Seven patterns of kernels, five of each (benches/patterns/kernels.py), one text for Tilelift and for Triton.

usage: patterns.py prepare FOLDER TILELIFT     writes one PTX and one JSON per kernel; needs no GPU
       patterns.py run FOLDER KERNELS [--quick] [--only=NAMES]    KERNELS is benches/patterns
       patterns.py sass FOLDER KERNELS     registers and instructions of both sides; needs ptxas and nvdisasm, no GPU

Types, sizes and warps are drawn from a seed (SEED), and both sides take the same: nobody tunes here. Results are checked
against torch in f64 on poisoned outputs, then both sides alternate (language.py). What takes less than 20 us is
timed in graphs of twenty launches.
"""
import math
import os
import random
import sys
from pathlib import Path

import language
from language import Buffer as B, Case, Const as C, Float as F, Int as I, cdiv

HALF = ("f16", "bf16")
ANY = ("f32", "f16", "bf16")
SIZE = language.SIZE


def cases():
    draw = random.Random(int(os.environ.get("SEED", 16)))
    found = []

    def add(pattern, kernel, what, args, grid, expected, bound, moved, warps=(2, 4, 8), graph=False):
        w = draw.choice(warps)
        case = Case(f"{kernel} {what} w{w}", "kernels.py", kernel, args, lambda _: grid, [{"warps": w}], expected, bound, moved)
        case.pattern, case.graph = pattern, graph
        found.append(case)

    def first(x, axis, largest=True):
        """Where the largest (least) is, the first of equal ones."""
        import torch
        best = x.amax(axis, keepdim=True) if largest else x.amin(axis, keepdim=True)
        shape = [1] * x.dim()
        shape[axis] = x.shape[axis]
        at = torch.arange(x.shape[axis], device=x.device).reshape(shape)
        return torch.where(x == best, at, 1 << 30).amin(axis)

    slow = "arg-reduction along the slow axis"
    dtype, rows, r, c = draw.choice(ANY), draw.randint(90, 128), 128, draw.choice((32, 64, 128))
    columns = draw.randint(1 << 17, 1 << 18) // 64 * 64
    add(slow, "argmax_columns", f"{dtype} {rows}x{columns} b{r}x{c}", [B("out", "i32", (columns,), "poison"), B("x", dtype, (rows, columns)),
        I(rows), I(columns), C(r), C(c)], (cdiv(columns, c),), lambda t: {"out": first(t["x"], 0)}, "exact", 1)
    dtype, rows, r, c = draw.choice(ANY), draw.randint(700, 2000), draw.choice((16, 32, 64)), draw.choice((64, 128, 256))
    columns = draw.randint(1 << 15, 1 << 16)
    add(slow, "argmin_columns_loop", f"{dtype} {rows}x{columns} b{r}x{c}", [B("out", "i32", (columns,), "poison"),
        B("x", dtype, (rows, columns)), I(rows), I(columns), C(r), C(c)], (cdiv(columns, c),),
        lambda t: {"out": first(t["x"], 0, False)}, "exact", 1)
    dtype, middle, m, c, b = draw.choice(ANY), draw.randint(33, 64), 64, draw.choice((16, 32, 64)), draw.choice((1, 2, 4))
    batch, columns = draw.randint(1 << 12, 1 << 13) // 4 * 4, draw.choice((96, 128, 200))
    add(slow, "argmax_middle", f"{dtype} {batch}x{middle}x{columns} b{b}x{m}x{c}", [B("out", "i32", (batch, columns), "poison"),
        B("x", dtype, (batch, middle, columns)), I(middle), I(columns), C(b), C(m), C(c)], (batch // b, cdiv(columns, c)),
        lambda t: {"out": first(t["x"], 1)}, "exact", 1)
    rows, r, c, batch, columns = draw.randint(200, 256), 256, draw.choice((16, 32, 64)), draw.randint(40, 80), draw.choice((1000, 2048, 3072))
    add(slow, "max_and_index", f"i32 {batch}x{rows}x{columns} b{r}x{c}", [B("values", "i32", (batch, columns), "poison"),
        B("indices", "i32", (batch, columns), "poison"), B("x", "i32", (batch, rows, columns), 1 << 30), I(rows), I(columns), C(r), C(c)],
        (cdiv(columns, c), batch), lambda t: {"values": t["x"].amax(1), "indices": first(t["x"], 1)}, "exact", 1)
    dtype, rows, r, c = draw.choice(ANY), draw.randint(40, 64), 64, draw.choice((64, 128))
    columns = draw.randint(1 << 18, 1 << 19)

    def peak(t):
        at = first(t["x"].abs(), 0)
        return {"values": t["x"].gather(0, at[None])[0], "indices": at}

    add(slow, "signed_peak", f"{dtype} {rows}x{columns} b{r}x{c}", [B("values", "f32", (columns,), "poison"),
        B("indices", "i32", (columns,), "poison"), B("x", dtype, (rows, columns)), I(rows), I(columns), C(r), C(c)],
        (cdiv(columns, c),), peak, "exact", 1)

    thin = "masked vector times a thin matrix"
    dtype, m, k, n = draw.choice(ANY), draw.randint(2000, 5000), draw.randint(3000, 5000), draw.randint(5, 16)
    kb = draw.choice((128, 256, 512))
    add(thin, "vector_matrix", f"{dtype} {m}x{k}x{n} b{kb}x16", [B("out", "f32", (m, n), "poison"), B("x", dtype, (m, k)), B("w", dtype, (k, n)),
        I(k), I(n), C(kb), C(16)], (m,), lambda t: {"out": t["x"] @ t["w"]}, "long sums", 1)
    dtype, m, n, mb = draw.choice(ANY), draw.randint(1 << 20, 1 << 21), draw.randint(17, 32), draw.choice((64, 128, 256))
    add(thin, "tall_times_vector", f"{dtype} {m}x{n} b{mb}x32", [B("out", "f32", (m,), "poison"), B("a", dtype, (m, n)), B("x", dtype, (n,)),
        I(m), I(n), C(mb), C(32)], (cdiv(m, mb),), lambda t: {"out": t["a"] @ t["x"]}, "sums", 1)
    dtype, k, n, kb = draw.choice(ANY), draw.randint(1 << 20, 1 << 21), draw.randint(20, 64), draw.choice((64, 128, 256))

    def gated(t, kb=kb):
        import torch
        v = torch.nn.functional.pad(t["a"] * t["gate"].clamp(min=0)[:, None], (0, 0, 0, -t["a"].shape[0] % kb))
        return {"out": v.reshape(-1, kb, v.shape[1]).sum(1)}

    add(thin, "gated_columns", f"{dtype} {k}x{n} b{kb}x64", [B("out", "f32", (cdiv(k, kb), n), "poison"), B("gate", dtype, (k,)),
        B("a", dtype, (k, n)), I(k), I(n), C(kb), C(64)], (cdiv(k, kb),), gated, "long sums", 1)
    dtype, batch, k, n, kb = draw.choice(ANY), draw.randint(2000, 3000), draw.randint(500, 1000), draw.choice((24, 32)), draw.choice((32, 64, 128))
    add(thin, "batched_vector_matrix", f"{dtype} {batch}x{k}x{n} b{kb}x32", [B("out", "f32", (batch, n), "poison"), B("x", dtype, (batch, k)),
        B("a", dtype, (batch, k, n)), I(k), I(n), C(kb), C(32)], (batch,),
        lambda t: {"out": (t["x"][:, :, None] * t["a"]).sum(1)}, "long sums", 1)
    dtype, m, k, n = draw.choice(ANY), draw.randint(8000, 16000), draw.randint(1000, 2000), draw.randint(5, 8)
    mb, kb = draw.choice((8, 16)), draw.choice((32, 64))
    add(thin, "rows_by_thin", f"{dtype} {m}x{k}x{n} b{mb}x{kb}x8", [B("out", "f32", (m, n), "poison"), B("x", dtype, (m, k)), B("w", dtype, (k, n)),
        I(m), I(k), I(n), C(mb), C(kb), C(8)], (cdiv(m, mb),), lambda t: {"out": t["x"] @ t["w"]}, "long sums", 1)

    back = "rowwise backward"

    def row(kernel, expected, extra, types=ANY, loop=False, tail=()):
        dtype, columns = draw.choice(types), draw.randint(1500, 8192)
        columns = columns // 8 * 8 if draw.random() < 0.7 else columns
        rows = draw.randint(24, 36) * (1 << 20) // columns
        block = draw.choice((1024, 2048)) if loop else 1 << (columns - 1).bit_length()
        shape = (rows, columns)
        begins = {"dx": "poison", "y": "positive" if kernel == "softmax_backward" else "normal"}
        args = [B(name, dtype, shape, begins.get(name, "normal")) for name in ("dx", "dy", "x" if "norm" in kernel or "unit" in kernel else "y")
                if "log" not in kernel or name != "x"]
        if "log" in kernel:
            args[2] = B("y", dtype, shape)
        for name in extra:
            args.append(B(name, dtype, (columns,)) if name == "weight" else B(name, "f32", (rows,), name))
        args += [I(columns), *tail, C(block)]
        add(back, kernel, f"{dtype} {rows}x{columns} b{block}", args, (rows,), expected, "to the largest", 3, warps=(4, 8))

    row("softmax_backward", lambda t: {"dx": t["y"] * (t["dy"] - (t["y"] * t["dy"]).sum(1, keepdim=True))}, ())

    def rms(t):
        r, wg = t["scale"][:, None], t["weight"] * t["dy"]
        return {"dx": r * (wg - t["x"] * r * r * (wg * t["x"]).mean(1, keepdim=True))}

    row("rms_norm_backward", rms, ("weight", "scale"))

    def unit(t):
        inverse = (t["x"].square().sum(1, keepdim=True) + 1e-6).rsqrt()
        hat = t["x"] * inverse
        return {"dx": (t["dy"] - hat * (hat * t["dy"]).sum(1, keepdim=True)) * inverse}

    row("unit_backward", unit, (), tail=(F(1e-6),))
    row("log_softmax_backward", lambda t: {"dx": t["dy"] - t["y"].exp() * t["dy"].sum(1, keepdim=True)}, (), types=("f32",), loop=True)

    def layer(t):
        hat = (t["x"] - t["mean"][:, None]) * t["scale"][:, None]
        wg = t["weight"] * t["dy"]
        return {"dx": (wg - hat * (hat * wg).mean(1, keepdim=True) - wg.mean(1, keepdim=True)) * t["scale"][:, None]}

    row("layer_norm_dx", layer, ("weight", "mean", "scale"))

    turn = "quantise and transpose"

    def matrix():
        return draw.randint(4000, 8000) // 16 * 16, draw.randint(4000, 8000) // 16 * 16

    def tiles(t, r, c):
        import torch
        x = t["x"]
        padded = torch.nn.functional.pad(x, (0, -x.shape[1] % c, 0, -x.shape[0] % r))
        s = padded.reshape(padded.shape[0] // r, r, padded.shape[1] // c, c).abs().amax((1, 3)).clamp(min=1e-10) / 127
        full = s.repeat_interleave(r, 0).repeat_interleave(c, 1)[:x.shape[0], :x.shape[1]]
        return {"out": (x / full).round().T, "scales": s}

    (rows, columns), dtype, r, c = matrix(), draw.choice(ANY), draw.choice((32, 64, 128)), draw.choice((32, 64, 128))
    add(turn, "quantise_tile_transposed", f"{dtype} {rows}x{columns} b{r}x{c}", [B("out", "i8", (columns, rows), "poison"),
        B("scales", "f32", (cdiv(rows, r), cdiv(columns, c)), "poison"), B("x", dtype, (rows, columns)), I(rows), I(columns), C(r), C(c)],
        (cdiv(rows, r), cdiv(columns, c)), lambda t, r=r, c=c: tiles(t, r, c), "one", 1.5)
    (rows, columns), dtype, r, c = matrix(), draw.choice(ANY), draw.choice((64, 128)), draw.choice((32, 64))
    add(turn, "cast_both_ways", f"{dtype} {rows}x{columns} b{r}x{c}", [B("out", "f8", (rows, columns), "poison"),
        B("turned", "f8", (columns, rows), "poison"), B("x", dtype, (rows, columns)), B("scale", "f32", (1,), "positive"), I(rows), I(columns),
        C(r), C(c)], (cdiv(rows, r), cdiv(columns, c)), lambda t: {"out": t["x"] * t["scale"], "turned": (t["x"] * t["scale"]).T}, "f8", 2)
    columns, dtype, r = draw.randint(65, 128), draw.choice(ANY), draw.choice((16, 32, 64))
    rows = draw.randint(200000, 400000)

    def by_rows(t):
        s = t["x"].abs().amax(1).clamp(min=1e-10) / 127
        return {"out": (t["x"] / s[:, None]).round().T, "scales": s}

    add(turn, "quantise_rows_transposed", f"{dtype} {rows}x{columns} b{r}x128", [B("out", "i8", (columns, rows), "poison"),
        B("scales", "f32", (rows,), "poison"), B("x", dtype, (rows, columns)), I(rows), I(columns), C(r), C(128)], (cdiv(rows, r),), by_rows, "one", 1.5)
    rows, dtype, c = draw.randint(65, 128), draw.choice(ANY), draw.choice((32, 64))
    columns = draw.randint(200000, 400000) // 16 * 16

    def from_zero(t):
        low = t["x"].amin(0)
        s = (t["x"].amax(0) - low).clamp(min=1e-6) / 255
        return {"out": ((t["x"] - low) / s + 0.5).floor().T, "scales": s, "zeros": low}

    add(turn, "quantise_from_zero", f"{dtype} {rows}x{columns} b128x{c}", [B("out", "u8", (columns, rows), "poison"),
        B("scales", "f32", (columns,), "poison"), B("zeros", "f32", (columns,), "poison"), B("x", dtype, (rows, columns)), I(rows), I(columns),
        C(128), C(c)], (cdiv(columns, c),), from_zero, "one", 1.5)
    (rows, columns), dtype, r, c = matrix(), draw.choice(ANY), draw.choice((32, 64, 128)), draw.choice((32, 64, 128))
    add(turn, "dequantise_transposed", f"{dtype} {rows}x{columns} b{r}x{c}", [B("out", dtype, (columns, rows), "poison"),
        B("x", "i8", (rows, columns), 127), B("scales", "f32", (rows,)), I(rows), I(columns), C(r), C(c)], (cdiv(rows, r), cdiv(columns, c)),
        lambda t: {"out": (t["x"] * t["scales"][:, None]).T}, "rounded", 1.5)

    paged = "one query against paged keys"

    def pages(kernel, dtype, page, d, sequences, heads, length, *, lengths=False, values=False, tokens=0, part=0):
        count = cdiv(length, page)
        total = sequences * count
        key_shape = (total, page, heads, d) if kernel.endswith("tokens") else (total, heads, page, d)
        scale = 1 / math.sqrt(d)
        parts = cdiv(length, part) if part else 1
        args = [B("out", "f32", (sequences, heads, length), "poison") if not values else
                B("out", "f32", (sequences, heads, parts, d) if part else (sequences, heads, d), "poison")]
        if part:
            args += [B("peaks", "f32", (sequences, heads, parts), "poison"), B("sums", "f32", (sequences, heads, parts), "poison")]
        args += [B("query", "f32" if dtype == "i8" else dtype, (sequences, heads, d)), B("keys", dtype, key_shape, 127 if dtype == "i8" else "normal")]
        args += [B("values", dtype, key_shape)] if values else [B("scales", "f32", key_shape[:3])] if dtype == "i8" else []
        args += [B("table", "i32", (sequences, count), "permutation")]
        args += [B("lengths", "i32", (sequences,), ("between", length // 2, length))] if lengths else [I(length)]
        args += [I(count)] + ([] if dtype == "i8" else [F(scale)]) + [C(x) for x in (part, page, tokens, d) if x]

        def expected(t):
            import torch
            out, peaks, sums = [], [], []
            for s in range(sequences):
                turned = t["keys"] if not kernel.endswith("tokens") else t["keys"].transpose(1, 2)
                at = t["table"][s].long()
                k = turned[at].transpose(0, 1).reshape(heads, count * page, d)
                q = t["query"][s]
                p = (k * q[:, None]).sum(2) * (1 if dtype == "i8" else scale)
                if dtype == "i8":
                    p = p * t["scales"][at].transpose(0, 1).reshape(heads, -1)
                if not values:
                    out.append(p[:, :length])
                    continue
                v = (t["values"] if not kernel.endswith("tokens") else t["values"].transpose(1, 2))[at].transpose(0, 1).reshape(heads, count * page, d)
                n = int(t["lengths"][s]) if lengths else length
                if not part:
                    out.append((p[:, :n].softmax(1)[:, :, None] * v[:, :n]).sum(1))
                    continue
                pad = parts * part - n
                p = torch.nn.functional.pad(p[:, :n], (0, pad), value=-float("inf")).reshape(heads, parts, part)
                v = torch.nn.functional.pad(v[:, :n], (0, 0, 0, pad)).reshape(heads, parts, part, d)
                peaks.append(p.amax(2))
                e = (p - p.amax(2, keepdim=True)).exp()
                sums.append(e.sum(2))
                out.append((e[..., None] * v).sum(2))
            result = {"out": torch.stack(out)}
            return result | ({"peaks": torch.stack(peaks), "sums": torch.stack(sums)} if part else {})

        grid = (sequences, heads, parts) if part else (sequences, heads)
        add(paged, kernel, f"{dtype} {sequences}x{heads}x{length}x{d} p{page}" + (f" t{tokens}" if tokens else "") + (f" part{part}" if part else ""),
            args, grid, expected, "to the largest", 2 if values else 1, warps=(2, 4))

    pages("paged_scores", draw.choice(HALF), draw.choice((16, 32, 64)), draw.choice((64, 128)), draw.randint(16, 32), 16, draw.randint(900, 2000))
    pages("paged_attention", draw.choice(HALF), draw.choice((16, 32)), draw.choice((64, 128)), draw.randint(16, 32), 16, draw.randint(900, 2000),
          lengths=True, values=True)
    pages("paged_attention_tokens", draw.choice(HALF), draw.choice((16, 32)), draw.choice((64, 128)), draw.randint(16, 32), 16,
          draw.randint(900, 2000), lengths=True, values=True, tokens=draw.choice((32, 64)))
    pages("paged_attention_part", draw.choice(ANY), 16, draw.choice((64, 128)), draw.randint(8, 16), 16, draw.randint(1500, 3000), values=True,
          part=draw.choice((64, 128)))
    pages("paged_scores_i8", "i8", draw.choice((32, 64)), draw.choice((64, 128)), draw.randint(24, 40), 16, draw.randint(1500, 3000))

    norm = "normalising one row"

    def one(kernel, expected, extra=(), eps=True, loop=False, single=False, bound="long sums"):
        dtype = draw.choice(ANY)
        columns = draw.randint(600, 8192) if not single else draw.randint(8000, 32768)
        columns = columns // 8 * 8 if draw.random() < 0.7 else columns
        rows = 1 if single else draw.randint(24, 36) * (1 << 20) // columns
        block = draw.choice((1024, 2048, 4096)) if loop else 1 << (columns - 1).bit_length()
        args = [B("out", dtype, (rows, columns), "poison"), B("x", dtype, (rows, columns))]
        args += [B(name, dtype, (columns,)) for name in extra] + [I(columns)] + ([F(1e-5)] if eps else []) + [C(block)]
        add(norm, kernel, f"{dtype} {rows}x{columns} b{block}", args, (rows,), expected, bound, 2, warps=(4, 8), graph=single)

    def layer_norm(t):
        import torch
        return {"out": torch.nn.functional.layer_norm(t["x"], t["x"].shape[1:], t["weight"], t["bias"], 1e-5)}

    one("rms_norm_passes", lambda t: {"out": t["x"] * (t["x"].square().mean(1, keepdim=True) + 1e-5).rsqrt() * t["weight"]}, ("weight",), loop=True)
    one("layer_norm_row", layer_norm, ("weight", "bias"))
    one("unit_row", lambda t: {"out": t["x"] / t["x"].norm(dim=1, keepdim=True)}, eps=False)
    one("standardise_row", lambda t: {"out": (t["x"] - t["x"].mean(1, keepdim=True)) * (t["x"].var(1, unbiased=False, keepdim=True) + 1e-5).rsqrt()},
        loop=True, single=True)
    one("softmax_online", lambda t: {"out": t["x"].softmax(1)}, eps=False, loop=True, single=True)

    math_ = "transcendental functions over vectors"

    def vector(kernel, names, expected, outputs=1):
        dtype, n = draw.choice(ANY), draw.randint(1 << 24, 1 << 25)
        block = draw.choice((512, 1024, 2048))
        args = [B("out", dtype, (outputs * n,), "poison")] + [B(name, dtype, (n,)) for name in names] + [I(n), C(block)]
        add(math_, kernel, f"{dtype} {n} b{block}", args, (cdiv(n, block),), expected, "sums", 1 + len(names) / outputs, warps=(4, 8))

    def function(f):
        return lambda t: {"out": f(t["x"])}

    import importlib
    torch = importlib.import_module("torch") if "run" in sys.argv else None
    vector("gelu_tanh", ["x"], function(lambda x: torch.nn.functional.gelu(x, approximate="tanh")))
    vector("polar", ["radius", "angle"], lambda t: {"out": torch.cat((t["radius"] * t["angle"].cos(), t["radius"] * t["angle"].sin()))}, 2)
    vector("mish", ["x"], function(lambda x: torch.nn.functional.mish(x)))
    vector("gelu_erf", ["x"], function(lambda x: torch.nn.functional.gelu(x)))
    vector("power_angle", ["x", "y"], lambda t: {"out": (t["x"].abs() + 0.5) ** t["y"] + torch.atan2(t["x"], t["y"])})
    vector("entropy", ["x"], function(lambda x: -(x.sigmoid() * x.sigmoid().log() + x.neg().sigmoid() * x.neg().sigmoid().log2())))
    vector("hyperbolic", ["x"], function(lambda x: x.asinh() + x.expm1() + x.sinh() * torch.special.erfc(x)))
    return found


if __name__ == "__main__":
    folder, other = Path(sys.argv[2]), Path(sys.argv[3])
    if sys.argv[1] == "prepare":
        language.prepare(folder, other, cases(), Path(__file__).resolve().parents[1] / "patterns")
    elif sys.argv[1] == "sass":
        import patterns_sass
        patterns_sass.table(folder, other, cases())
    else:
        only = [arg.partition("=")[2].split(",") for arg in sys.argv if arg.startswith("--only=")]
        chosen = [case for case in cases() if not only or case.kernel in only[0]]
        sys.exit(language.run(folder, other, "--quick" in sys.argv, chosen))
