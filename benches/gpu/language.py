"""The kernels of examples/kernels, one source for both: compiled by Triton, and by Tilelift beforehand.

usage: language.py prepare FOLDER TILELIFT     writes one PTX and one JSON per configuration; needs no GPU
       language.py run FOLDER KERNELS [--quick]     KERNELS is the folder of the sources

The results of each side are checked against torch in f64, on fresh inputs and poisoned outputs. Times are CUDA events
with the L2 cache flushed before each call; both sides choose the best configuration from one list, then alternate in five
rounds. The table shows medians and their ratio, above 1 where Tilelift is faster; the target is 0.95 everywhere.
"""
import json
import statistics
import subprocess
import sys
from pathlib import Path

SHORT = {"f32": "fp32", "f16": "fp16", "bf16": "bf16", "f8": "fp8e5", "i8": "i8", "u8": "u8", "i32": "i32", "i64": "i64"}
SIZE = {"f32": 4, "f16": 2, "bf16": 2, "f8": 1, "i8": 1, "u8": 1, "i32": 4, "i64": 8}


class Buffer:
    """A tensor argument: how it begins, and whether the kernel only writes it."""

    def __init__(self, name, dtype, shape, begin="normal"):
        self.name, self.dtype, self.shape, self.begin = name, dtype, shape, begin

    def entry(self, _):
        return f"*{SHORT[self.dtype]}:16"


class Int:
    def __init__(self, value):
        self.value = value

    def entry(self, _):
        return "i32:1" if self.value == 1 else "i32:16" if self.value % 16 == 0 else "i32"


class Float:
    def __init__(self, value):
        self.value = value

    def entry(self, _):
        return "fp32"


class Const:
    """A constant, or the one of the configuration with this name."""

    def __init__(self, value):
        self.value = value

    def of(self, config):
        return config[self.value] if isinstance(self.value, str) else self.value

    def entry(self, config):
        return str(self.of(config))


class Case:
    def __init__(self, name, file, kernel, args, grid, configs, expected, bound, moved):
        self.name, self.file, self.kernel, self.args = name, file, kernel, args
        self.grid, self.configs, self.expected, self.bound, self.moved = grid, configs, expected, bound, moved
        self.pattern, self.graph = None, False


def blocks(sizes, warps=(4, 8)):
    return [{"BLOCK": size, "warps": w} for size in sizes for w in warps]


def cdiv(a, b):
    return -(-a // b)


def cases():
    B, I, F, C = Buffer, Int, Float, Const
    found = []

    def add(*args):
        found.append(Case(*args))

    for dtype, rows, columns in (("f32", 4096, 1024), ("f16", 8192, 4096)):
        add(f"softmax {dtype} {rows}x{columns}", "softmax.py", "softmax",
            [B("out", dtype, (rows, columns), "poison"), B("x", dtype, (rows, columns)), I(columns), I(columns), C("BLOCK")],
            lambda c, rows=rows: (rows,), blocks([columns], (2, 4, 8, 16)),
            lambda t: {"out": t["x"].softmax(1)}, "rounded", 2)
    for dtype in ("f32", "f16"):
        rows, columns = 8192, 4096
        add(f"layer norm {dtype} {rows}x{columns}", "norm.py", "layer_norm",
            [B("out", dtype, (rows, columns), "poison"), B("mean", "f32", (rows,), "poison"), B("scale", "f32", (rows,), "poison"),
             B("x", dtype, (rows, columns)), B("weight", dtype, (columns,)), B("bias", dtype, (columns,)), I(columns), I(columns),
             F(1e-5), C("BLOCK")], lambda c, rows=rows: (rows,), blocks([columns], (4, 8, 16)), layer_norm, "sums", 2)
    rows, columns = 4096, 2048
    add(f"layer norm backward f16 {rows}x{columns}", "norm.py", "layer_norm_backward",
        [B("dx", "f16", (rows, columns), "poison"), B("dweight", "f32", (64, columns), "zero"), B("dbias", "f32", (64, columns), "zero"),
         B("lock", "i32", (128,), "zero"), B("dout", "f16", (rows, columns)), B("x", "f16", (rows, columns)), B("weight", "f16", (columns,)),
         B("mean", "f32", (rows,), "mean"), B("scale", "f32", (rows,), "scale"), I(columns), I(columns), C(64), C("BLOCK")],
        lambda c, rows=rows: (rows,), blocks([columns], (4, 8)), layer_norm_backward, "long sums", 3)
    rows, columns = 8192, 4096
    add(f"rms norm bf16 {rows}x{columns}", "norm.py", "rms_norm",
        [B("out", "bf16", (rows, columns), "poison"), B("x", "bf16", (rows, columns)), B("weight", "bf16", (columns,)), I(columns), I(columns),
         F(1e-6), C("BLOCK")], lambda c: (8192,), blocks([columns], (4, 8, 16)),
        lambda t: {"out": t["x"] * (t["x"].square().mean(1, keepdim=True) + 1e-6).rsqrt() * t["weight"]}, "sums", 2)
    images, groups, per, pixels = 32, 32, 16, 4096
    add("group norm f32 32x512x4096", "norm.py", "group_norm",
        [B("out", "f32", (images, groups, per, pixels), "poison"), B("x", "f32", (images, groups, per, pixels)),
         B("weight", "f32", (groups * per,)), B("bias", "f32", (groups * per,)), I(groups), I(per), I(pixels), F(1e-5), C("BLOCK")],
        lambda c: (32, 32), blocks([2048, 4096], (4, 8)), group_norm, "sums", 2)
    tokens, heads, half = 8192, 32, 64
    add("rotary f16 8192x32x128", "transformer.py", "rotary",
        [B("x", "f16", (tokens, heads, 2, half)), B("cos", "f32", (tokens, half)), B("sin", "f32", (tokens, half)), I(heads), C(half)],
        lambda c: (8192,), [{"warps": w} for w in (1, 2, 4)], rotary, "sums", 2)
    rows, columns = 4096, 11008
    add("swiglu bf16 4096x11008", "transformer.py", "swiglu",
        [B("out", "bf16", (rows, columns), "poison"), B("gate", "bf16", (rows, columns)), B("up", "bf16", (rows, columns)), I(columns),
         C("BLOCK")], lambda c: (4096, cdiv(11008, c["BLOCK"])), blocks([1024, 2048], (4, 8)),
        lambda t: {"out": t["gate"] * t["gate"].sigmoid() * t["up"]}, "twice rounded", 3)
    add("embedding f16 16384x4096", "transformer.py", "embedding",
        [B("out", "f16", (16384, 4096), "poison"), B("table", "f16", (50000, 4096)), B("index", "i64", (16384,), 50000), I(50000), I(4096),
         C("BLOCK")], lambda c: (16384,), blocks([1024, 4096], (4, 8)), lambda t: {"out": t["table"][t["index"]]}, "exact", 2)
    n = 1 << 25
    add("dropout f32 2^25", "transformer.py", "dropout",
        [B("out", "f32", (n,), "poison"), B("x", "f32", (n,)), I(n), F(0.5), I(1234), C("BLOCK")],
        lambda c: (cdiv(1 << 25, c["BLOCK"]),), blocks([1024, 2048], (4, 8)), dropout, "sums", 2)
    rows, columns = 4096, 32000
    add("cross entropy f32 4096x32000", "transformer.py", "cross_entropy",
        [B("loss", "f32", (rows,), "poison"), B("logits", "f32", (rows, columns)), B("target", "i64", (rows,), columns), I(columns), I(columns),
         I(-100), C("BLOCK")], lambda c: (4096,), blocks([4096, 8192], (8, 16)), cross_entropy, "sums", 3)
    rows, columns = 8192, 4096
    add("quantise rows f16 to i8", "quantize.py", "quantize_rows",
        [B("out", "i8", (rows, columns), "poison"), B("scales", "f32", (rows,), "poison"), B("x", "f16", (rows, columns)), I(columns), C("BLOCK")],
        lambda c: (8192,), blocks([columns], (4, 8)), quantize_rows, "one", 1.5)
    add("dequantise rows i8 to f16", "quantize.py", "dequantize_rows",
        [B("out", "f16", (rows, columns), "poison"), B("x", "i8", (rows, columns), 127), B("scales", "f32", (rows,)), I(columns), C("BLOCK")],
        lambda c: (8192,), blocks([columns], (4, 8)), lambda t: {"out": t["x"] * t["scales"][:, None]}, "rounded", 1.5)
    n = 1 << 25
    add("quantise blocks f16 to fp8", "quantize.py", "quantize_blocks",
        [B("out", "f8", (n,), "poison"), B("scales", "f32", (n // 1024,), "poison"), B("x", "f16", (n,)), I(n), C(57344.0), C("BLOCK")],
        lambda c: (cdiv(1 << 25, 1024),), blocks([1024], (1, 2, 4)), quantize_blocks, "f8", 1.5)
    add("dequantise blocks fp8 to f16", "quantize.py", "dequantize_blocks",
        [B("out", "f16", (n,), "poison"), B("x", "f8", (n,)), B("scales", "f32", (n // 1024,)), I(n), C("BLOCK")],
        lambda c: (cdiv(1 << 25, 1024),), blocks([1024], (1, 2, 4)),
        lambda t: {"out": (t["x"].reshape(-1, 1024) * t["scales"][:, None]).reshape(-1)}, "rounded", 1.5)
    add("top 8 of 8192x1024", "order.py", "top_k",
        [B("values", "f32", (8192, 8), "poison"), B("indices", "i32", (8192, 8), "poison"), B("x", "f32", (8192, 1024)), I(1024), C(8), C("BLOCK")],
        # Triton takes twelve seconds to compile each of these.
        lambda c: (8192,), blocks([1024], (2, 4)), lambda t: {"values": t["x"].sort(1, descending=True).values[:, :8]}, "exact", 1)
    add("cumulative sum f32 8192x4096", "order.py", "cumulative_sum",
        [B("out", "f32", (8192, 4096), "poison"), B("x", "f32", (8192, 4096)), I(4096), C("BLOCK")], lambda c: (8192,),
        blocks([1024, 4096], (4, 8)), lambda t: {"out": t["x"].cumsum(1)}, "long sums", 2)
    n = 1 << 24
    add("histogram i32 2^24, 256 bins", "order.py", "histogram",
        [B("out", "i32", (256,), "zero"), B("x", "i32", (n,), 256), I(n), C(256), C("BLOCK")],
        lambda c: (cdiv(1 << 24, c["BLOCK"]),), blocks([2048, 4096], (4, 8)), lambda t: {"out": t["x"].bincount(minlength=256)}, "exact", 1)
    add("bincount i32 2^22, 4096 bins", "order.py", "bincount",
        [B("out", "i32", (4096,), "zero"), B("x", "i32", (1 << 22,), 4096), I(1 << 22), C("BLOCK")],
        lambda c: (cdiv(1 << 22, c["BLOCK"]),), blocks([1024], (4, 8)), lambda t: {"out": t["x"].bincount(minlength=4096)}, "exact", 1)
    n = 1 << 25
    add("adam f32 2^25", "optimize.py", "adam",
        [B("param", "f32", (n,)), B("grad", "f32", (n,)), B("m", "f32", (n,)), B("v", "f32", (n,), "positive"), I(n)]
        + [F(x) for x in (1e-3, 0.9, 0.999, 1e-8, 0.01, 0.271, 0.002997)] + [C("BLOCK")],
        lambda c: (cdiv(1 << 25, c["BLOCK"]),), blocks([1024, 2048], (4, 8)), adam, "sums", 1.75)
    add("sum with atomics f32 2^24", "optimize.py", "sum_atomic",
        [B("out", "f32", (1,), "zero"), B("x", "f32", (1 << 24,)), I(1 << 24), C("BLOCK")],
        lambda c: (cdiv(1 << 24, c["BLOCK"]),), blocks([4096, 8192], (4, 8)), lambda t: {"out": t["x"].sum().reshape(1)}, "total", 1)
    add("sum by the last f32 2^24", "optimize.py", "sum_last",
        [B("out", "f32", (1,), "poison"), B("partial", "f32", (4096,), "zero"), B("count", "i32", (1,), "zero"), B("x", "f32", (1 << 24,)),
         I(1 << 24), C("BLOCK"), C(4096)],
        lambda c: (cdiv(1 << 24, c["BLOCK"]),), blocks([4096, 8192], (4, 8)), lambda t: {"out": t["x"].sum().reshape(1)}, "total", 1)
    add("maximum under a lock f32 1024x4096", "optimize.py", "max_locked",
        [B("out", "f32", (4096,), "least"), B("lock", "i32", (1,), "zero"), B("x", "f32", (1024, 4096)), I(4096), C("BLOCK")],
        lambda c: (1024,), blocks([4096], (4, 8)), lambda t: {"out": t["x"].max(0).values}, "exact", 1)
    return found


def layer_norm(t):
    import torch
    x, columns = t["x"], t["x"].shape[1]
    mean, var = x.mean(1), x.var(1, unbiased=False)
    return {"out": torch.nn.functional.layer_norm(x, (columns,), t["weight"], t["bias"], 1e-5), "mean": mean, "scale": (var + 1e-5).rsqrt()}


def layer_norm_backward(t):
    hat = (t["x"] - t["mean"][:, None]) * t["scale"][:, None]
    wd = t["weight"] * t["dout"]
    dx = (wd - hat * (hat * wd).mean(1, keepdim=True) - wd.mean(1, keepdim=True)) * t["scale"][:, None]
    split = lambda x: x.reshape(-1, 64, x.shape[1]).sum(0)
    return {"dx": dx, "dweight": split(t["dout"] * hat), "dbias": split(t["dout"])}


def group_norm(t):
    x = t["x"]
    mean, var = x.mean((2, 3), keepdim=True), x.var((2, 3), unbiased=False, keepdim=True)
    shape = (1, x.shape[1], x.shape[2], 1)
    return {"out": (x - mean) * (var + 1e-5).rsqrt() * t["weight"].reshape(shape) + t["bias"].reshape(shape)}


def rotary(t):
    import torch
    a, b = t["x"][:, :, 0], t["x"][:, :, 1]
    c, s = t["cos"][:, None], t["sin"][:, None]
    return {"x": torch.stack((a * c - b * s, b * c + a * s), 2)}


def dropout(t):
    """What is kept was doubled; how much is kept is close to half. Which elements are is compared between both sides."""
    return {"out": ("doubled", t["x"])}


def cross_entropy(t):
    import torch
    rows = torch.arange(t["logits"].shape[0], device="cuda")
    gradient = t["logits"].softmax(1)
    loss = -gradient[rows, t["target"]].log()
    gradient[rows, t["target"]] -= 1
    return {"loss": loss, "logits": gradient}


def quantize_rows(t):
    scale = t["x"].abs().amax(1) / 127
    return {"out": (t["x"] / scale[:, None]).round(), "scales": scale}


def quantize_blocks(t):
    x = t["x"].reshape(-1, 1024)
    scale = x.abs().amax(1) / 57344
    return {"out": (x / scale[:, None]).reshape(-1), "scales": scale}


def adam(t):
    rate, beta1, beta2, eps, decay, c1, c2 = 1e-3, 0.9, 0.999, 1e-8, 0.01, 0.271, 0.002997
    m = beta1 * t["m"] + (1 - beta1) * t["grad"]
    v = beta2 * t["v"] + (1 - beta2) * t["grad"].square()
    return {"param": t["param"] * (1 - rate * decay) - rate * (m / c1) / ((v / c2).sqrt() + eps), "m": m, "v": v}


def key(case, config):
    parts = [case.kernel, "".join(a.dtype for a in case.args if isinstance(a, Buffer))]
    return "_".join(parts + [f"{k}{v}" for k, v in sorted(config.items())])


def prepare(folder, tilelift, cases, sources):
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        for config in case.configs:
            stem = folder / key(case, config)
            signature = ", ".join(arg.entry(config) for arg in case.args)
            subprocess.run([tilelift, "compile", sources / case.file, "-n", case.kernel, "-s", signature, "-w", str(config["warps"]),
                            "-t", "sm_90a", "-o", f"{stem}.ptx", "--meta", f"{stem}.json"], check=True)
    print(len(list(folder.glob("*.ptx"))), "kernels")


def begin(arg, others):
    """A fresh tensor for a buffer."""
    import torch
    types = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f8": torch.float8_e5m2, "i8": torch.int8,
             "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64}
    dtype, shape = types[arg.dtype], arg.shape
    if arg.begin == "poison":
        out = torch.empty(shape, dtype=dtype, device="cuda")
        out.view(torch.uint8).fill_(0xFF)
        return out
    if arg.begin == "zero":
        return torch.zeros(shape, dtype=dtype, device="cuda")
    if arg.begin == "least":
        return torch.full(shape, -float("inf"), dtype=dtype, device="cuda")
    if arg.begin == "mean":
        return others["x"].float().mean(1)
    if arg.begin == "scale":
        return (others["x"].float().var(1, unbiased=False) + 1e-5).rsqrt()
    if arg.begin == "permutation":
        count = torch.Size(shape).numel()
        return torch.randperm(count, device="cuda").to(dtype).reshape(shape)
    if isinstance(arg.begin, tuple):
        return torch.randint(arg.begin[1], arg.begin[2] + 1, shape, dtype=dtype, device="cuda")
    if isinstance(arg.begin, int):
        low = -arg.begin if arg.dtype == "i8" else 0
        return torch.randint(low, arg.begin, shape, dtype=dtype, device="cuda")
    x = torch.randn(shape, device="cuda")
    return (x.abs() if arg.begin == "positive" else x).to(dtype)


def right(case, tensors, expected, bound):
    """Whether the buffers hold what is expected; each bound with its reason."""
    import torch
    for name, want in expected.items():
        found = tensors[name]
        if isinstance(want, tuple):
            doubled, kept = 2 * want[1], found != 0
            good = torch.equal(found.double()[kept], doubled[kept]) and abs(kept.double().mean().item() - 0.5) < 1e-3
        elif bound == "exact":
            good = torch.equal(found.double(), want.double())
        elif bound == "total":
            # An error of the sum grows with the size of its parts, which is about 1, times the root of their number.
            good = (found.double() - want).abs().item() < 0.5
        elif bound == "one" and found.dtype in (torch.int8, torch.uint8):
            # A quotient beside the middle of two integers may be rounded either way; half the largest of few bits is such.
            error = (found.double() - want).abs()
            few = any(isinstance(a, Buffer) and a.name == "x" and a.dtype in ("f16", "bf16") for a in case.args)
            good = error.max().item() <= 1 and (error != 0).double().mean().item() < (1e-2 if few else 1e-4)
        elif found.dtype == torch.float8_e5m2:
            # Half of the last of two bits, and of the smallest number.
            good = bool(((found.double() - want).abs() <= 0.126 * want.abs() + 2.0 ** -17).all())
        else:
            # One rounding to the type, and the arithmetic in f32 before it.
            unit = {torch.float32: 2e-6, torch.float16: 6e-4, torch.bfloat16: 5e-3}[found.dtype]
            factor = {"rounded": 1, "one": 1, "f8": 1, "sums": 4, "twice rounded": 3, "long sums": 40, "to the largest": 4}[bound]
            # Sums whose parts are as large as the largest result cancel elsewhere.
            size = want.abs().amax() if bound == "to the largest" else want.abs()
            error = (found.double() - want).abs()
            # The smallest halves are 2^-24 apart.
            smallest = 2.0 ** -25 if found.dtype == torch.float16 else 1e-9
            good = bool((error <= factor * unit * (size + (0 if bound == "rounded" else 1)) + smallest).all())
        if not good:
            return f"{name} is wrong"
    return ""


def times(fn, count, flush):
    import torch
    starts = [torch.cuda.Event(enable_timing=True) for _ in range(count)]
    ends = [torch.cuda.Event(enable_timing=True) for _ in range(count)]
    for start, end in zip(starts, ends):
        flush.zero_()
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    return [s.elapsed_time(e) for s, e in zip(starts, ends)]


def twenty(fn):
    """A graph of twenty launches, for what one launch's cost would hide."""
    import torch
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        fn()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(20):
            fn()
    return graph.replay


def run(folder, sources, quick, cases):
    import torch
    import triton
    sys.path.insert(0, str(sources))
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import launch
    torch.manual_seed(5)
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    print("device", torch.cuda.get_device_name(0), "torch", torch.__version__, "triton", triton.__version__, flush=True)
    rows, wrong, ratios = [], 0, []
    for case in cases:
        # Files are imported under names of their own, as one of them has that of a package of torch's.
        import importlib.util
        spec = importlib.util.spec_from_file_location("kernels_" + case.file[:-3], sources / case.file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        kernel = getattr(module, case.kernel)
        inputs = {}
        for arg in sorted((a for a in case.args if isinstance(a, Buffer)), key=lambda a: a.begin in ("mean", "scale")):
            inputs[arg.name] = begin(arg, inputs)
        wide = {k: v.double() if v.is_floating_point() or v.dtype == torch.int8 else v for k, v in inputs.items()}
        expected = case.expected(wide)
        del wide
        sides, notes, dropped = [[], []], [], []
        for config in case.configs:
            for side in (0, 1):
                # One set of buffers for each side and configuration at a time, so that memory suffices.
                tensors = {k: v.clone() for k, v in inputs.items()}
                values = [tensors[a.name] if isinstance(a, Buffer) else a.of(config) if isinstance(a, Const) else a.value for a in case.args]
                name = ",".join(f"{k[0]}{v}" for k, v in config.items())
                try:
                    if side == 0:
                        stem = folder / key(case, config)
                        loaded = launch.Kernel(Path(f"{stem}.ptx").read_text(), json.loads(Path(f"{stem}.json").read_text()))
                        given = [v for v, a in zip(values, case.args) if not isinstance(a, Const) and not (isinstance(a, Int) and a.value == 1)]
                        fn = loaded.bind(case.grid(config), given)
                    else:
                        grid = case.grid(config)
                        fn = (lambda grid=grid, values=values, config=config: kernel[grid](*values, num_warps=config["warps"]))
                    fn()
                    torch.cuda.synchronize()
                except Exception as error:
                    notes.append(f"{'ours' if side == 0 else 'Triton'} {name}: {str(error).splitlines()[0][:150]}")
                    wrong += side == 0
                    continue
                problem = right(case, tensors, expected, case.bound)
                if case.graph:
                    fn = twenty(fn)
                if case.kernel == "dropout":
                    dropped.append(tensors["out"] != 0)
                    if not torch.equal(dropped[0], dropped[-1]):
                        problem = "other elements are dropped"
                if problem:
                    notes.append(f"{'ours' if side == 0 else 'Triton'} {name}: {problem}")
                    wrong += side == 0
                times(fn, 3, flush)
                sides[side].append((statistics.median(times(fn, 8, flush)), name, fn, tensors))
                # Only the best keeps its buffers.
                sides[side] = [min(sides[side], key=lambda s: s[0])]
        if not sides[0] or not sides[1]:
            rows.append(f"{case.name:36} failed: {'; '.join(notes)}")
            print(rows[-1], flush=True)
            continue
        samples = [[], []]
        for round_ in range(2 if quick else 5):
            for side in (0, 1) if round_ % 2 == 0 else (1, 0):
                samples[side] += times(sides[side][0][2], 6 if quick else 25, flush)
        ours, theirs = (statistics.median(s) for s in samples)
        moved = case.moved * max(v.nbytes for v in inputs.values())
        ratios.append(theirs / ours)
        rows.append(f"{case.name:36} {ours * 1e3:9.2f} {theirs * 1e3:9.2f} {theirs / ours:7.3f}{'' if theirs / ours >= 0.95 else ' <'}"
                    f"  {moved / ours * 1e-6:6.0f} GB/s  {sides[0][0][1]} / {sides[1][0][1]} {'; '.join(notes)}")
        print(rows[-1], flush=True)
        del inputs, expected, sides, tensors, values, fn
        torch.cuda.empty_cache()
    print(f"\n{'kernel':36} {'ours us':>9} {'Triton us':>9} {'ratio':>7}")
    print("\n".join(rows))
    if ratios:
        print(f"least ratio {min(ratios):.3f}, median {statistics.median(ratios):.3f}, at least 0.95: "
              f"{sum(r >= 0.95 for r in ratios)} of {len(ratios)}; wrong results: {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        prepare(Path(sys.argv[2]), sys.argv[3], cases(), Path(__file__).resolve().parents[2] / "examples/kernels")
    else:
        sys.exit(run(Path(sys.argv[2]), Path(sys.argv[3]), "--quick" in sys.argv, cases()))
