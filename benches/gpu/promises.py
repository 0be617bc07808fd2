"""What promises of arguments gain on sm_80, and what masks in loops cost: examples/kernels for the classes of the same arguments, and with
the masks taken out that the last iteration alone needs.

usage: promises.py prepare FOLDER TILELIFT   compiles, and counts instructions of the longest innermost loop (PTXAS, NVDISASM); needs no GPU
       promises.py run FOLDER                times by CuPy, each result checked
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

KERNELS = Path(__file__).resolve().parents[2] / "examples/kernels"
CLASSES = (":16", ":8", ":4", ":2", "")
# Which are also compiled without the masks.
BARE = ("matmul_16", "sum_groups", "group_norm", "linear_gelu", "row_bias_silu")
MATMUL = ["-c", "SUM=fp32", "-c", "PRECISION='ieee'"]


def kernels():
    """Tag, file, kernel, signature, warps, stages, more flags."""
    for p in CLASSES:
        tag = p[1:] or "1"
        yield (f"matmul_{tag}", "matmul.py", "matmul", f"*fp16:16, *fp16:16, *fp16:16, {f'i32{p}, ' * 5}i32:1, i32{p}, 128, 128, 32, 8", 8, 3, MATMUL)
        yield f"softmax_{tag}", "softmax.py", "softmax", f"*fp16:16, *fp16:16, i32{p}, i32{p}, 4096", 8, 1, []
        yield f"layer_norm_{tag}", "norm.py", "layer_norm", f"{'*fp32:16, ' * 6}i32{p}, i32{p}, fp32, 4096", 8, 1, []
    yield "sum_groups", "norm.py", "sum_groups", "*fp32:16, *fp32:16, i32:16, i32:16, 16, 128", 4, 2, []
    yield "group_norm", "norm.py", "group_norm", f"{'*fp16:16, ' * 4}{'i32:16, ' * 3}fp32, 1024", 4, 2, []
    yield "linear_gelu", "linear.py", "linear_gelu", f"{'*fp16:16, ' * 4}{'i32:16, ' * 3}32, 128, 128, 8", 8, 3, []
    yield "row_bias_silu", "linear.py", "row_bias_silu", f"{'*fp16:16, ' * 4}{'i32:16, ' * 3}8, 128, 128, 32", 8, 3, []


def bare(text):
    """The text without the masks of accesses in loops."""
    lines, loop = [], None
    for line in text.splitlines(keepends=True):
        depth = len(line) - len(line.lstrip())
        if line.strip() and loop is not None and depth <= loop:
            loop = None
        if loop is None and re.match(r"\s+for .*:", line):
            loop = depth
        elif loop is not None:
            line = re.sub(r", mask=(?:mask|at < size|[a-z]+\[[^\]]*\](?: < [\w *-]+)?)(?:, other=0\.0)?", "", line)
        lines.append(line)
    return "".join(lines)


def count(text):
    """Instructions of the longest loop without another one in it, by nvdisasm's listing; all of them, and those that compare."""
    labels, ops = {}, []
    for line in text.splitlines():
        if label := re.match(r"\s*(\.L_x_\d+):", line):
            labels[label[1]] = len(ops)
        elif op := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?);", line):
            ops.append(op[1])
    back = [(labels.get(m[1], len(ops)), i + 1) for i, op in enumerate(ops) if (m := re.search(r"BRA.*?`\((\.L_x_\d+)\)", op))]
    loops = [(a, b) for a, b in back if a < b - 8]
    inner = [x for x in loops if not any(y != x and x[0] <= y[0] and y[1] <= x[1] for y in loops)]
    a, b = max(inner, key=lambda x: x[1] - x[0], default=(0, len(ops)))
    return b - a, sum("ISETP" in op for op in ops[a:b])


def prepare(folder, tilelift):
    folder.mkdir(parents=True, exist_ok=True)
    for tag, file, kernel, signature, warps, stages, flags in kernels():
        whole = (KERNELS / file).read_text()
        for name, text in [(tag, whole)] + [(f"{tag}_bare", bare(whole))] * (tag in BARE):
            source, ptx, cubin = (folder / f"{name}.{ending}" for ending in ("py", "ptx", "cubin"))
            source.write_text(text)
            subprocess.run([tilelift, "compile", source, "-n", kernel, "-s", signature, "-w", str(warps), "--num-stages", str(stages), "-t", "sm_80",
                            *flags, "-o", ptx, "--meta", ptx.with_suffix(".json")], check=True)
            subprocess.run([os.environ.get("PTXAS", "ptxas"), "-arch=sm_80", ptx, "-o", cubin], check=True)
            listing = subprocess.run([os.environ.get("NVDISASM", "nvdisasm"), "-c", cubin], capture_output=True, text=True, check=True).stdout
            cubin.unlink()
            print(f"{name:24} {'%d in the loop, %d comparisons' % count(listing)}", flush=True)


def launcher(folder, tag):
    import cupy as cp
    import numpy as np
    meta = json.loads((folder / f"{tag}.json").read_text())
    function = cp.RawModule(path=str(folder / f"{tag}.ptx")).get_function(meta["name"])
    function.max_dynamic_shared_size_bytes = meta["shared"]
    types = {"f32": np.float32, "i32": np.int32}

    def launch(grid, *args):
        pairs = zip(meta["params"], args, strict=True)
        args = tuple(a if p["kind"] == "pointer" else types[p["type"]](a) for p, a in pairs)
        function((*grid, 1)[:3] if len(grid) < 3 else grid, (32 * meta["num_warps"], 1, 1), args, shared_mem=meta["shared"])
    return launch


def time(what, launches):
    """Prints medians of 25 rounds in turns, L2 flushed."""
    import cupy as cp
    flush, times = cp.empty(1 << 26, cp.uint8), {tag: [] for tag in launches}
    for i in range(28):
        for tag, launch in launches.items():
            flush.fill(i)
            begin, end = cp.cuda.Event(), cp.cuda.Event()
            begin.record()
            launch()
            end.record()
            end.synchronize()
            times[tag].append(1000 * cp.cuda.get_elapsed_time(begin, end))
    print(f"{what:36}", *(f"{tag} {sorted(t[3:])[12]:.1f} us" for tag, t in times.items()), sep="  ", flush=True)


def run(folder):
    import cupy as cp
    import numpy as np
    random = np.random.default_rng(1)
    normal = lambda *shape: cp.asarray(random.standard_normal(shape, dtype=np.float32)) * 0.1
    half = lambda *shape: normal(*shape).astype(cp.float16)

    def compare(what, tags, shape, dtype, call, expected, tolerance):
        launches = {}
        for tag in tags:
            out, launch = cp.full(shape, cp.nan, dtype), launcher(folder, tag)
            launches[tag] = lambda launch=launch, out=out: call(launch, out)
            launches[tag]()
            assert cp.allclose(out.astype(cp.float32), expected, atol=tolerance, rtol=0.01), tag
        time(what, launches)

    for n, promised in ((4096, "16"), (4104, "8"), (4100, "4"), (4098, "2")):
        a, b = half(n, n), half(n, n)
        tags = [f"matmul_{promised}", "matmul_1"] + (["matmul_16_bare"] if n == 4096 else [])
        compare(f"matmul f16 {n}^3", tags, (n, n), cp.float16, lambda k, c: k(((n + 127) // 128 * ((n + 127) // 128), 1), a, b, c, *[n] * 6),
                a.astype(cp.float32) @ b.astype(cp.float32), 0.05)
    rows = 16384
    for n, promised in ((4096, "16"), (4092, "4"), (4090, "2")):
        x = normal(rows, n)
        e = cp.exp(x.astype(cp.float16).astype(cp.float32))
        compare(f"softmax f16 {rows} x {n}", [f"softmax_{promised}", "softmax_1"], (rows, n), cp.float16,
                lambda k, y, x=x.astype(cp.float16): k((rows, 1), y, x, n, n), e / e.sum(1, keepdims=True), 1e-4)
        w, b, more = cp.ones(n, cp.float32), cp.zeros(n, cp.float32), cp.empty((2, rows), cp.float32)
        compare(f"layer_norm f32 {rows} x {n}", [f"layer_norm_{promised}", "layer_norm_1"], (rows, n), cp.float32,
                lambda k, y: k((rows, 1), y, more[0], more[1], x, w, b, n, n, 1e-5),
                (x - x.mean(1, keepdims=True)) / cp.sqrt(x.var(1, keepdims=True) + 1e-5), 1e-3)
    both = lambda kernel: [kernel, f"{kernel}_bare"]
    x = normal(512, 65536)
    compare("sum_groups f32 512 x 65536", both("sum_groups"), 65536, cp.float32, lambda k, y: k((512, 1), y, x, 512, 65536), x.sum(0), 1e-3)
    x = half(1024, 65536)
    y = x.astype(cp.float32)
    w, b = cp.ones(512, cp.float16), cp.zeros(512, cp.float16)
    compare("group_norm f16 1024 groups of 65536", both("group_norm"), x.shape, cp.float16, lambda k, y: k((32, 32), y, x, w, b, 32, 16, 4096, 1e-5),
            (y - y.mean(1, keepdims=True)) / cp.sqrt(y.var(1, keepdims=True) + 1e-5), 0.01)
    n = 4096
    w, x, b = half(n, n), half(n, n), half(n)
    sums = x.astype(cp.float32) @ w.astype(cp.float32) + b.astype(cp.float32)
    from cupyx.scipy.special import erf
    compare("linear_gelu f16 4096^3", both("linear_gelu"), (n, n), cp.float16, lambda k, y: k((1024, 1), w, b, x, y, n, n, n),
            sums * 0.5 * (1 + erf(sums / 2 ** 0.5)), 0.05)
    sums = w.astype(cp.float32) @ x.astype(cp.float32) + b.astype(cp.float32)[:, None]
    compare("row_bias_silu f16 4096^3", both("row_bias_silu"), (n, n), cp.float16, lambda k, y: k((1024, 1), w, x, y, b, n, n, n),
            sums / (1 + cp.exp(-sums)), 0.05)


if __name__ == "__main__":
    action, folder, *rest = sys.argv[1:]
    {"prepare": prepare, "run": run}[action](Path(folder), *rest)
