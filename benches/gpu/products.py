"""Products of matrices and attention of examples/kernels: one source, compiled by Tilelift and by Triton.

usage: products.py prepare FOLDER TILELIFT [SEEDS]     compiles for sm_80 (fp8: sm_89), or for TARGET; needs no GPU
       TRITON_OVERRIDE_ARCH=sm80 products.py run FOLDER KERNELS [SEEDS]      all cases, Triton with the same instructions
       TRITON_OVERRIDE_ARCH=sm89 products.py run FOLDER KERNELS              the cases of sm_89
       products.py run FOLDER KERNELS                  all cases beside Triton's native code and libraries: where TARGET=sm_90a
       products.py native FOLDER KERNELS               our choice of the first two beside Triton's native code and libraries
       products.py report FOLDER                       the tables
KERNELS is examples/kernels; SEEDS a folder with the files that the project starts from and peers.py, Triton's translation.

Every configuration of both sides is checked against f64 on fresh inputs and poisoned outputs, and timed: CUDA events, the L2
cache flushed before each call, random normal data, medians. Then the best of each side alternate in five rounds. Where "graph"
stands, twenty calls are replayed as one CUDA graph instead, with a warm cache. Triton compiles in all cores beforehand.
"""
import functools
import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import product_cases
from product_cases import GROUPS, Buffer, Const, cases, enough, in_rows, seeds

LOG2E = 1.4426950408889634


@functools.cache
def load(folder, file):
    # Under a name of its own, as some have that of a package.
    spec = importlib.util.spec_from_file_location(f"kernels_{file[:-3]}", Path(folder) / file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def triton_value(arg, config):
    """What Triton is given for an argument that is no tensor."""
    import triton.language as tl
    value = arg.of(config) if isinstance(arg, Const) else arg.value
    names = {":fp32": tl.float32, ":fp16": tl.float16, ":i32": tl.int32}
    return names.get(value, value) if isinstance(value, str) else value


def torch_type(name):
    import torch
    return {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "fp8e4nv": torch.float8_e4m3fn, "i8": torch.int8, "u8": torch.uint8, "u16": torch.uint16, "i32": torch.int32,
            "i64": torch.int64}[name]


def warm(kernels, index, number):
    """Compiles one configuration, in a process of its own, for Triton's cache on disk."""
    return warm_one(kernels, list(cases())[index], number)


def warm_one(kernels, case, number):
    config = case.configs[number]
    values = [torch_type(a.dtype) if isinstance(a, Buffer) else triton_value(a, config) for a in case.args]
    try:
        getattr(load(kernels, case.file), case.kernel).warmup(*values, grid=(1,), num_warps=config["warps"],
                                                              num_stages=config["stages"])
    except Exception as error:
        return f"{case.name} {config}: {str(error).splitlines()[0][:100]}"


# ---- data -----------------------------------------------------------------------------------------------------------------

def begin(arg, made):
    import torch
    shape, dtype = arg.shape, torch_type(arg.dtype)
    if arg.begin == "poison":
        out = torch.empty(shape, dtype=dtype, device="cuda")
        out.view(torch.uint8).fill_(0xFF)
        return out
    if arg.begin == "zero":
        return torch.zeros(shape, dtype=dtype, device="cuda")
    if arg.begin == "normal":
        if not dtype.is_floating_point:
            limits = torch.iinfo(dtype)
            return torch.randint(limits.min, limits.max + 1, shape, device="cuda").to(dtype)
        return torch.randn(shape, device="cuda").to(dtype)
    made["shape"] = shape
    return named(arg.begin)(made).to(dtype)


def named(function):
    """A function, or the one of this file with this name."""
    return function if callable(function) else globals()[function]


def sums_of(t):
    return t["weight"].float().sum(0)


def some_heads(t, count=1):
    return [t[x][:count].double() for x in "qkv"]


def scores(q, k, causal):
    s = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
    return s.masked_fill(s.new_ones(s.shape[1:], dtype=bool).triu(1), -float("inf")) if causal else s


def logs_of(t):
    """What forward writes, of all heads; the case says whether it is causal."""
    import torch
    return torch.cat([scores(q[None].float(), k[None].float(), t["causal"]).logsumexp(-1) for q, k in zip(t["q"], t["k"])]) * LOG2E


def delta_of(t):
    import torch
    rows = []
    for q, k, v, dout in zip(t["q"], t["k"], t["v"], t["dout"]):
        out = scores(q[None].float(), k[None].float(), t["causal"]).softmax(-1) @ v.float()
        rows.append((out.half() * dout.float()).sum(-1))
    return torch.cat(rows)


def group_tensors(t):
    import torch
    if "group tensors" not in t:
        normal = lambda *shape: torch.randn(shape, device="cuda").half()
        t["group tensors"] = [(normal(m, k), normal(k, n), torch.full((m, n), float("nan"), device="cuda").half()) for m, n, k in GROUPS]
    return t["group tensors"]


def addresses(t, which):
    import torch
    return torch.tensor([x[which].data_ptr() for x in group_tensors(t)], dtype=torch.int64, device="cuda")


def group_a(t):
    return addresses(t, 0)


def group_b(t):
    return addresses(t, 1)


def group_c(t):
    return addresses(t, 2)


def group_sizes(t):
    import torch
    return torch.tensor([x for group in GROUPS for x in group], device="cuda")


# ---- what is right: functions that give, of the inputs, what has to be in the outputs and how far it may be off ------------------

def wide(x):
    return x.float().double()


def gelu(x):
    import torch
    return torch.nn.functional.gelu(x, approximate="tanh")


def rounded(want, scale, k, dtype):
    # A sum of k products in f32, and one rounding of the result, whose least step is 2^-24 in f16.
    import torch
    unit = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float32: 2.0**-24}[dtype]
    return (k + 2) * 2.0**-24 * scale + want.abs() * unit + 2.0**-25


def turn(t):
    a, b = wide(t["a"]), wide(t["b"])
    return a if t["a rows"] == "m" else a.T, b if t["b rows"] == "k" else b.T


def product(t):
    a, b = turn(t)
    want = a @ b
    scale = a.abs() @ b.abs()
    bound = rounded(want, scale, a.shape[1], t["c"].dtype)
    if t["a"].element_size() == 1:
        # The tensor core cuts 32 products of fp8 and what they are added to at 13 bits behind the point of the largest, and their
        # sum again. Without sums in between the errors all go one way: with normal data 1.5 to 1.7 times 2^-13 of all sizes.
        bound += 2.0**-11 * scale
    return {"c": (want, bound)}


def tf32(t):
    a, b = turn(t)
    # 13 bits of both factors are cut off.
    return {"c": (a @ b, (a.shape[1] * 2.0**-24 + 2.0**-9) * (a.abs() @ b.abs()))}


def integer(t):
    a, b = turn(t)
    return {"c": (a @ b, 0.0)}


def batched(t):
    x, w = wide(t["x"]), wide(t["weight"]).transpose(1, 2)
    want = x @ w
    return {"out": (want, rounded(want, x.abs() @ w.abs(), x.shape[-1], t["out"].dtype))}


def linear_gelu(t):
    x, w = wide(t["x"]), wide(t["weight"])
    y = x @ w + wide(t["bias"])
    # gelu's slope is below 1.13; its tanh is of an approximate exponent and a difference of ones.
    return {"out": (gelu(y), 1.2 * rounded(y, x.abs() @ w.abs(), x.shape[1], t["out"].dtype) + 1e-6 * y.abs())}


def scaled_leaky_relu(t):
    a, w = wide(t["a"]), wide(t["w"])
    y = 0.25 * (a @ w)
    bound = rounded(y, 0.25 * (a.abs() @ w.abs()), a.shape[1], t["y"].dtype)
    return {"y": (y.where(y >= 0, 0.125 * y), bound)}


def row_bias_silu(t):
    f, p = wide(t["filters"]), wide(t["pixels"])
    y = f @ p + wide(t["shift"])[:, None]
    return {"planes": (y * y.sigmoid(), 1.2 * rounded(y, f.abs() @ p.abs(), f.shape[1], t["planes"].dtype) + 1e-6 * y.abs())}


def normal_linear(t):
    x, w = wide(t["x"]), wide(t["weight"])
    mean = x.mean(1, keepdim=True)
    return x @ w - mean * wide(t["sums"])[None], (x.square().mean(1, keepdim=True) - mean * mean + 1e-5).sqrt()


def layer_norm_fp32(t):
    y, deviation = normal_linear(t)
    want = gelu(y / deviation + wide(t["bias"]))
    return {"out": (want, 2.0**-10 * want.abs() + 2e-4)}


def layer_norm_fp16(t):
    y, deviation = normal_linear(t)
    # Sums of 1024 products of size 1 in f16, of up to 128: 32 steps of it are rounded by up to 2^-5 each.
    return {"out": (gelu(y / deviation + wide(t["bias"])), 1.0)}


def lola_seed(t):
    """The formula of the seeds, which adds the bias before it divides."""
    x, w = wide(t["x"]), wide(t["weight"])
    mean = x.mean(1, keepdim=True)
    sums = wide(t["sums"])[None] if "sums" in t else 0
    deviation = (x.square().mean(1, keepdim=True) - mean * mean + 1e-5).abs().sqrt()
    return {"out": (gelu((x @ w - mean * sums + wide(t["bias"])) / deviation), 1.0)}


def attention(t):
    q, k, v = some_heads(t)
    s = scores(q, k, t["causal"])
    logs = s.logsumexp(-1)
    want = (s - logs[:, :, None]).exp() @ v
    # Probabilities and results are rounded to f16.
    return {"out": (want, 2.0**-9 * want.abs().max()), "logs": (logs * LOG2E, 1e-3)}


def attention_backward(t):
    import torch
    q, k, v = (x.requires_grad_() for x in some_heads(t))
    with torch.enable_grad():
        out = scores(q, k, t["causal"]).softmax(-1) @ v
    grads = dict(zip(("dq", "dk", "dv"), torch.autograd.grad(out, (q, k, v), t["dout"][:1].double())))
    # Before `finish` scales them, in f32.
    grads["sums"] = grads["dq"] * q.shape[-1] ** 0.5
    # Probabilities, their derivatives and the results are rounded to f16.
    return {x: (g, 2.0**-8 * g.abs().max()) for x, g in grads.items() if x in t}


def finished(t):
    want = wide(t["sums"]) / t["sums"].shape[-1] ** 0.5
    return {"dq": (want, 2.0**-10 * want.abs().max())}


def delta(t):
    want = (wide(t["out"]) * wide(t["dout"])).sum(-1)
    return {"delta": (want, 1e-4)}


def grouped(t):
    found = {}
    for i, (a, b, c) in enumerate(t["group tensors"]):
        want = wide(a) @ wide(b)
        t[f"c{i}"] = c
        found[f"c{i}"] = (want, rounded(want, wide(a).abs() @ wide(b).abs(), a.shape[1], c.dtype))
    return found


def error(found, want):
    return ((found.double() - want).norm() / want.norm()).item()


def value(tensors, name):
    """A tensor by its name, or what a function makes of all."""
    return name(tensors) if callable(name) else tensors[name]


def wrong(tensors, expected):
    """A complaint, or None."""
    for name, (want, bound) in expected.items():
        found = value(tensors, name)[: want.shape[0]].double()
        off = (found - want).abs()
        if not bool((off <= bound).all()):
            return f"{getattr(name, '__name__', name)} off by {off.nan_to_num(float('inf')).max().item():.2g}"


# ---- what libraries do ----------------------------------------------------------------------------------------------------

def peer(case, t):
    """A call of torch that does the same, or None."""
    import torch
    F = torch.nn.functional
    if callable(case.peer):
        return case.peer(t)
    match case.peer:
        case "mm" | "mm_tf32":
            allowed = case.peer == "mm_tf32"
            a = t["a"] if t["a rows"] == "m" else t["a"].T
            b = t["b"] if t["b rows"] == "k" else t["b"].T

            def mm():
                torch.backends.cuda.matmul.allow_tf32 = allowed
                torch.mm(a, b, out=t["c"])
            return mm
        case "bmm":
            w = t["weight"].transpose(1, 2)
            return lambda: torch.bmm(t["x"], w, out=t["out"])
        case "grouped_mm":
            return lambda: [torch.mm(a, b, out=c) for a, b, c in t["group tensors"]]
        case "int_mm":
            return lambda: torch._int_mm(t["a"], t["b"].T)
        case "scaled_mm":
            one = torch.ones((), device="cuda")
            return lambda: torch._scaled_mm(t["a"], t["b"].T, one, one, out_dtype=torch.float16, use_fast_accum=True)
        case "layer_norm_linear_gelu":
            w = t["weight"].T
            return lambda: F.gelu(F.linear(F.layer_norm(t["x"], t["x"].shape[1:]), w, t["bias"]), approximate="tanh")
        case "sdpa":
            from torch.nn.attention import SDPBackend, sdpa_kernel
            q, k, v = (t[x][None] for x in "qkv")

            def sdpa():
                with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                    F.scaled_dot_product_attention(q, k, v, is_causal=t["causal"])
            return sdpa
        case "sdpa_backward":
            from torch.nn.attention import SDPBackend, sdpa_kernel
            q, k, v = (t[x][None].detach().clone().requires_grad_() for x in "qkv")
            with torch.enable_grad(), sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                out = F.scaled_dot_product_attention(q, k, v, is_causal=t["causal"])
            return lambda: torch.autograd.grad(out, (q, k, v), t["dout"][None], retain_graph=True)
        case "zeros":
            # What comes before a kernel that adds to its results.
            return lambda: t["sums"].zero_()


# ---- measuring ------------------------------------------------------------------------------------------------------------

def median(go, rep=10):
    from triton.testing import do_bench
    return do_bench(go, warmup=3, rep=rep, return_mode="median") * 1e3


def graph_of(go, calls=20):
    """Replays calls of `go`: a callable, and how many they are."""
    import torch
    go()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        if hasattr(go, "restart"):
            go.restart()
        for _ in range(calls):
            go()
    return graph.replay


def alternate(sides, rep=20, count=5):
    """Medians of callables, in us, in rounds that begin with another one each."""
    rounds = [[] for _ in sides]
    for i in range(count):
        order = [(i // 2 + j) % len(sides) for j in range(len(sides))]
        for side in order if i % 2 == 0 else reversed(order):
            rounds[side].append(median(sides[side], rep))
    return [statistics.median(times) for times in rounds]


def inputs(case):
    made = {"causal": "causal" in case.name, "a rows": "k" if "a k x m" in case.name else "m",
            "b rows": "n" if "b n x k" in case.name else "k"}
    for arg in case.args:
        if isinstance(arg, Buffer):
            made[arg.name] = None
    # What depends on others is made last.
    buffers = [a for a in case.args if isinstance(a, Buffer)]
    for arg in sorted(buffers, key=lambda a: callable(a.begin) or a.begin.endswith("_of")):
        made[arg.name] = begin(arg, made)
    return made


def fresh(case, tensors):
    for arg in case.args:
        if isinstance(arg, Buffer):
            if arg.begin == "poison":
                import torch
                tensors[arg.name].view(torch.uint8).fill_(0xFF)
            elif arg.begin == "zero":
                tensors[arg.name].zero_()
    for a, b, c in tensors.get("group tensors", []):
        c.fill_(float("nan"))


def ours(folder, case, config, tensors):
    """A launch of our code and what the driver says of it."""
    from launch import Kernel
    key = case.key(config)
    text, cubin = folder / f"{key}.ptx", folder / f"{key}.cubin"
    code = cubin.read_bytes() if cubin.exists() else text.read_text()
    kernel = Kernel(code, json.loads((folder / f"{key}.json").read_text()))
    # Arguments equal to one are no parameters.
    params = [a for a in case.args if not isinstance(a, Const) and a.entry(config) != "i32:1"]
    values = lambda t: [t[a.name] if isinstance(a, Buffer) else a.value for a in params]
    bind = lambda t, place: kernel.bind(case.grid(config), values(t), dependent=place > 0)
    go = in_rows(bind, walked(case, tensors), case.row)
    return zeroed(case, tensors, go), {"registers": kernel.registers, "spilled": kernel.local_bytes, "shared": kernel.meta["shared"]}


def theirs(kernels, case, config, tensors):
    import torch
    import triton
    # Its descriptors lie in memory that the host gives.
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    kernel = getattr(load(kernels, case.file), case.kernel)
    grid = case.grid(config)
    options = {"num_warps": config["warps"], "num_stages": config["stages"]}

    def bind(t, place):
        values = [t[a.name] if isinstance(a, Buffer) else triton_value(a, config) for a in case.args]
        return lambda: kernel[grid](*values, **options, launch_pdl=place > 0)
    go = in_rows(bind, walked(case, tensors), case.row)
    compiled = go()
    facts = {"registers": compiled.n_regs, "spilled": compiled.n_spills, "shared": compiled.metadata.shared}
    return zeroed(case, tensors, go), facts, compiled


def walked(case, tensors):
    """The data, and as many times more that no cache holds the buffers of which calls take other ones."""
    if not case.walk:
        return [tensors]
    if "walked" not in tensors:
        size = sum(tensors[name].nbytes for name in case.walk)
        copy = lambda: {**tensors, **{name: tensors[name].clone() for name in case.walk}}
        tensors["walked"] = [dict(tensors), *(copy() for _ in range(enough(size) - 1))]
    return tensors["walked"]


def zeroed(case, tensors, go):
    """With what has to be zero before each call."""
    buffers = [tensors[a.name] for a in case.args if isinstance(a, Buffer) and a.begin == "zero"]

    def both():
        for x in buffers:
            x.zero_()
        go()
    return both if buffers else go


def short(config):
    return ",".join(str(v) for v in config.values())


def try_all(case, tensors, expected, launch, may_spill=True):
    """The best of the configurations: time, configuration, callable, facts; complaints; and all times. What spills registers is
    not chosen unless it may. The three best are timed again in turns, as a GPU that grew warm meanwhile is slower."""
    import torch
    found, complaints, tried = [], [], {}
    for config in case.configs:
        try:
            fresh(case, tensors)
            go, facts, *more = launch(config)
            fresh(case, tensors)
            go()
            torch.cuda.synchronize()
            problem = wrong(tensors, expected)
        except Exception as failure:
            problem = (str(failure).splitlines() or [type(failure).__name__])[0][:70]
            torch.cuda.synchronize()  # raises where the GPU did not survive
        if problem:
            complaints.append(f"{short(config)}: {problem}")
            continue
        facts["error"] = max(error(value(tensors, x)[: want.shape[0]], want) for x, (want, _) in expected.items())
        timed = graph_of(go) if case.graph else go
        if case.row > 1:
            fresh(case, tensors)
            timed()
            torch.cuda.synchronize()
            if problem := wrong(tensors, expected):
                complaints.append(f"{short(config)}, a row: {problem}")
                continue
        entry = (median(timed), config, go, facts, *more)
        tried[short(config)] = round(entry[0] / (20 if case.graph else 1), 1)
        if facts["spilled"] and not may_spill:
            complaints.append(f"{short(config)}: spills {facts['spilled']} bytes")
            continue
        found.append((entry, timed))
    found.sort(key=lambda both: both[0][0])
    times = alternate([timed for _, timed in found[:3]], 10, 3)
    best = min(zip(times, found), key=lambda both: both[0])[1][0] if found else None
    return best, complaints, tried


def environment():
    import torch
    import triton
    return f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, Triton {triton.__version__}"


def each(chosen, path, measure):
    """Measures each case that has no row in the file yet. After an error that the GPU does not survive the process ends; it
    is started again and goes on behind that case."""
    import torch
    rows = json.loads(path.read_text()) if path.exists() else []
    done = {row["case"] for row in rows}
    for case in chosen:
        if case.name in done:
            continue
        row = {"case": case.name, "flops": case.flops, "graph": case.graph, "complaints": ["nothing came of it"]}
        path.write_text(json.dumps([*rows, row]))
        before = time.monotonic()
        try:
            row |= measure(case)
        except Exception:
            row["complaints"] = [traceback.format_exc()[-600:]]
            print(case.name, traceback.format_exc(), flush=True)
        row["seconds"] = time.monotonic() - before
        rows.append(row)
        path.write_text(json.dumps(rows))
        try:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        except Exception:
            sys.exit(75)


def run(folder, kernels, seed_folder):
    arch = int(os.environ.get("TRITON_OVERRIDE_ARCH", "sm90").removeprefix("sm"))
    is_native = arch == 90
    chosen = [(i, case) for i, case in enumerate(cases()) if is_native or case.arch == arch]
    before = time.monotonic()
    with ProcessPoolExecutor(os.cpu_count(), get_context("fork")) as pool:
        jobs = [pool.submit(warm, kernels, i, number) for i, case in chosen for number in range(len(case.configs))]
        for job in jobs:
            if job.result():
                print("Triton does not compile", job.result(), flush=True)
    import torch
    torch.manual_seed(7)
    print(environment(), f"Triton for sm_{arch}; {len(jobs)} configurations compiled in {time.monotonic() - before:.0f} s", flush=True)
    def measure(case):
        tensors = inputs(case)
        expected = named(case.expected)(tensors)
        a, mine, mine_tried = try_all(case, tensors, expected, lambda config: ours(folder, case, config, tensors), False)
        b, other, other_tried = try_all(case, tensors, expected, lambda config: theirs(kernels, case, config, tensors))
        row = {"complaints": [f"ours {x}" for x in mine] + [f"Triton {x}" for x in other]}
        if not a or not b:
            return row
        sides = [a[2], b[2]]
        library = peer(case, tensors) if is_native else None
        if library:
            try:
                library()
                torch.cuda.synchronize()
                sides.append(library)
            except Exception as failure:
                row["complaints"].append(f"library: {str(failure).splitlines()[0][:70]}")
        times = alternate(sides)
        if case.graph:
            row["flushed"] = times
            times = [t / 20 for t in alternate([graph_of(go) for go in sides])]
        ratios = "".join(f"{t / times[0]:8.3f}" for t in times[1:])
        print(f"{case.name:44}{times[0]:9.1f}{times[1]:9.1f}{ratios}  {short(a[1])} / {short(b[1])}", flush=True)
        return row | {"times": times, "configs": [a[1], b[1]], "facts": [a[3], b[3]], "tried": [mine_tried, other_tried],
                      "assembled": assemble(folder, case.key(b[1]), b[4].asm["ptx"])}
    each([case for _, case in chosen], folder / f"results_{arch}.json", measure)
    if arch == 80:
        variants(folder)
        if seed_folder:
            seed_errors(folder, seed_folder)


def assemble(folder, key, their_ptx):
    """Least of three times of ptxas, in ms, for our code and Triton's in the same configuration."""
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "b.ptx").write_text(their_ptx)
        found = []
        for source in (folder / f"{key}.ptx", Path(scratch) / "b.ptx"):
            times = []
            for _ in range(3):
                before = time.monotonic()
                log = subprocess.run([os.environ.get("PTXAS", "ptxas"), "-v", "--gpu-name=sm_90a", source, "-o", Path(scratch) / "x.cubin"],
                                     capture_output=True, text=True)
                times.append((time.monotonic() - before) * 1e3)
            registers = re.search(r"Used (\d+) registers", log.stderr)
            spills = sum(map(int, re.findall(r"(\d+) bytes spill", log.stderr)))
            found.append([min(times), int(registers.group(1)) if registers else 0, spills])
        return found


def variants(folder):
    """The products with other epilogues beside the plain one, all in blocks of 128 x 128 x 64."""
    import torch
    names = ["matmul f16 4096x4096x4096", "linear, gelu f16 4096^3", "scaled leaky relu f16 4096^3", "row bias, silu f16 4096^3"]
    results = {row["case"]: row for row in json.loads((folder / "results_80.json").read_text())}
    every = {case.name: case for case in cases()}
    calls, kept = [], []
    for name in names:
        if "configs" not in results[name]:
            return
        tensors = inputs(every[name])
        kept.append(tensors)
        # The configuration that is most often the best.
        config = next(c for c in every[name].configs if sorted(c.values(), key=str) == sorted((128, 128, 64, 4, 3), key=str))
        calls.append(ours(folder, every[name], config, tensors)[0])
    times = alternate(calls, 12, 25)
    print("variants " + ", ".join(f"{name}: {t:.1f} us, {times[0] / t:.3f}" for name, t in zip(names, times)))
    (folder / "variants.json").write_text(json.dumps(list(zip(names, times))))
    del calls, kept
    torch.cuda.empty_cache()


def seed_errors(folder, seed_folder):
    """Errors against f64 of their own formula, and times, beside Triton's translation."""
    import torch
    import triton.language as tl
    peers = load(seed_folder, "peers.py")
    rows = []
    for case in seeds():
        config = case.configs[0]
        tensors = inputs(case)
        expected = globals()[case.expected](tensors)
        (name, (want, _)), = expected.items()
        mine = ours(folder, case, config, tensors)[0]
        mine()
        errors = [error(tensors[name], want)]
        complaint = wrong(tensors, expected)
        fresh(case, tensors)
        if case.kernel == "matmul":
            a, b, c = (tensors[x] for x in "abc")
            size = a.shape[0]
            blocks = {"BM": 128, "BN": 64, "BK": 64, "GM": 8, "num_warps": 4, "num_stages": 3}
            other = lambda: peers.k_matmul.fn[(size // 128 * (size // 64),)](a, b, c, size, size, size, size, 1, size, 1, size, 1, **blocks)
        else:
            sums = tensors.get("sums", torch.zeros_like(tensors["bias"]))
            other = lambda: peers.k_lola[(16, 128)](tensors["x"], tensors["weight"], sums, tensors["bias"], tensors["out"], BC=32, BR=32,
                                                    BK=32, FI=1024, FO=4096, ACC=tl.float16, SEED=True, num_warps=4, num_stages=1)
        other()
        errors.append(error(tensors[name], want))
        times = alternate((mine, other))
        rows.append([case.name, errors, times, complaint])
        print(f"{case.name:44} error {errors[0]:.3e} / {errors[1]:.3e} = {errors[0] / errors[1]:.3f}, us {times[0]:.1f} {times[1]:.1f} "
              f"{times[1] / times[0]:.3f} {complaint or ''}", flush=True)
    (folder / "seeds.json").write_text(json.dumps(rows))


def native(folder, kernels):
    before = time.monotonic()
    with ProcessPoolExecutor(os.cpu_count(), get_context("fork")) as pool:
        jobs = [pool.submit(warm, kernels, i, number) for i, case in enumerate(cases()) for number in range(len(case.configs))]
        for job in jobs:
            job.result()
    import torch
    torch.manual_seed(8)
    print(environment(), f"Triton native; {len(jobs)} configurations compiled in {time.monotonic() - before:.0f} s", flush=True)
    chosen = {}
    for arch in (80, 89):
        path = folder / f"results_{arch}.json"
        if path.exists():
            chosen |= {row["case"]: row for row in json.loads(path.read_text())}

    def measure(case):
        row = chosen[case.name]
        tensors = inputs(case)
        expected = globals()[case.expected](tensors)
        mine = ours(folder, case, row["configs"][0], tensors)[0]
        best, complaints, _ = try_all(case, tensors, expected, lambda config: theirs(kernels, case, config, tensors))
        sides = {"ours": mine} | ({"Triton": best[2]} if best else {})
        library = peer(case, tensors)
        if library:
            try:
                library()
                torch.cuda.synchronize()
                sides["library"] = library
            except Exception as failure:
                complaints.append(f"library: {str(failure).splitlines()[0][:70]}")
        if case.graph:
            times = {k: t / 20 for k, t in zip(sides, alternate([graph_of(go) for go in sides.values()]))}
        else:
            times = dict(zip(sides, alternate(list(sides.values()))))
        print(f"{case.name:44}" + "".join(f"  {k} {t:.1f}" for k, t in times.items()), best and short(best[1]), flush=True)
        return {"near": times, "config": best and best[1], "complaints": complaints}
    each([case for case in cases() if "configs" in chosen.get(case.name, {})], folder / "results_native.json", measure)


def report(folder):
    rows = []
    for arch in (80, 89):
        path = folder / f"results_{arch}.json"
        if path.exists():
            rows += json.loads(path.read_text())
    path = folder / "results_native.json"
    beside = {row["case"]: row for row in json.loads(path.read_text())} if path.exists() else {}
    print("| case | ours us (TFLOP/s) | Triton us, same instructions | ratio | Triton native us | library us | regs | shared KB | spills |")
    print("|---|---|---|---|---|---|---|---|---|")
    ratios = {}
    for row in rows:
        if "times" not in row:
            print(f"| {row['case']} | failed: {'; '.join(row['complaints'])[:200]} |")
            continue
        a, b = row["times"]
        ratio = b / a
        ratios[row["case"]] = ratio
        near = beside.get(row["case"], {}).get("near", {})

        def against(name):
            return f"{near[name]:.1f} ({near[name] / near['ours']:.2f})" if name in near else ""
        x, y = row["facts"]
        print(f"| {row['case']}{' (graph)' if row['graph'] else ''} | {a:.1f} ({row['flops'] / a * 1e-6:.0f}) | {b:.1f} | "
              f"{'**' * (ratio < 0.95)}{ratio:.3f}{'**' * (ratio < 0.95)} | {against('Triton')} | {against('library')} | "
              f"{x['registers']}/{y['registers']} | {x['shared'] / 1024:.0f}/{y['shared'] / 1024:.0f} | {x['spilled']}/{y['spilled']} |")
    print("\ncase; choices; errors; ptxas ms, registers, spilled bytes for Triton's choice ours / Triton")
    for row in rows:
        if "times" in row:
            x, y = row["facts"]
            flushed = "flushed {:.1f} {:.1f} {:.3f}".format(*row["flushed"], row["flushed"][1] / row["flushed"][0]) if "flushed" in row else ""
            print(f"{row['case']}; {short(row['configs'][0])} / {short(row['configs'][1])}; {x['error']:.2e} / {y['error']:.2e}; "
                  + " / ".join(f"{t:.0f} {r} {s}" for t, r, s in row["assembled"]) + f"; {flushed} {'; '.join(row['complaints'])[:300]}")
            print("    " + "  ".join(f"{config}: {t} {row['tried'][1].get(config, '')}" for config, t in row["tried"][0].items()))
    for name in ("variants", "seeds"):
        path = folder / f"{name}.json"
        if path.exists():
            print(name, path.read_text())
    matmuls = [r for case, r in ratios.items() if case.startswith("matmul f16")]
    if matmuls:
        print(f"f16 products: least {min(matmuls):.3f}, geometric mean {statistics.geometric_mean(matmuls):.3f}; below 0.95: "
              f"{[c for c, r in ratios.items() if r < 0.95]}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["prepare", folder, tilelift, *more]:
            kernels = Path(__file__).resolve().parents[2] / "examples/kernels"
            count = len(product_cases.prepare(Path(folder), kernels, tilelift, cases()))
            if more:
                count += len(product_cases.prepare(Path(folder), Path(more[0]), tilelift, seeds()))
            print(count, "kernels")
        case ["run", folder, kernels, *more]:
            run(Path(folder), Path(kernels), Path(more[0]) if more else None)
        case ["native", folder, kernels]:
            native(Path(folder), Path(kernels))
        case ["report", folder]:
            report(Path(folder))
        case _:
            sys.exit(__doc__)
