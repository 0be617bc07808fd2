"""How well the model of time (src/predict) chooses among configurations: products drawn by a seed, and other kernels, in all of their
configurations.

usage: choices.py prepare FOLDER TILELIFT SEED COUNT     compiles for TARGET (sm_90a); needs no GPU
       choices.py run FOLDER SEED,.. COUNT,.. RESULTS     measures them in this order, as long as LIMIT (120) seconds are not over
       choices.py report FOLDER TILELIFT SEED,.. COUNT,.. RESULTS     what the model chooses beside what was the best; needs no GPU

A time is the median of launches by events, the L2 cache flushed before each; results are compared with the library's. COUNT 0 means
large products and the other kernels: attention, rows, elements.
"""
import json
import os
import random
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ.setdefault("TARGET", "sm_90a")

import product_cases
from product_cases import BLOCKS, Buffer, Case, Const, Number, attention, cdiv, configs, product

KERNELS = Path(__file__).resolve().parents[2] / "examples/kernels"
ROWS = [(128, 256, 64, 8, 3), (256, 128, 64, 8, 3), (128, 128, 64, 8, 3), (128, 128, 64, 4, 3), (128, 128, 64, 4, 4), (128, 64, 64, 4, 4),
        (128, 64, 64, 4, 3), (64, 128, 64, 4, 3), (64, 256, 64, 4, 3), (128, 256, 32, 8, 4), (256, 128, 32, 8, 3), (128, 128, 32, 4, 4),
        (64, 64, 64, 4, 4), (64, 64, 64, 4, 8), (64, 64, 128, 4, 3), (64, 64, 128, 4, 5), (64, 32, 128, 4, 3), (64, 32, 128, 4, 6),
        (64, 128, 64, 4, 6), (32, 64, 64, 4, 5), (32, 64, 128, 4, 3), (32, 64, 128, 4, 5), (32, 32, 128, 4, 4), (16, 64, 128, 4, 5)]


def products(seed, count):
    """Shapes whose logarithms are even between 64 and 8192, in three classes of divisibility, in 16-bit types and orders of memory."""
    draw = random.Random(seed)
    for at in range(count):
        step = draw.choice((64, 64, 64, 64, 16, 16, 8, 1))
        sizes = []
        for _ in range(3):
            size = 2 ** draw.uniform(6, 13)
            # What is a multiple of 8 or of nothing is no multiple of 16 anywhere, for one kernel per class.
            odd = {8: 8, 1: 1}.get(step)
            sizes.append(max(64, round(size / step) * step) if odd is None else max(65, round(size / (2 * odd)) * 2 * odd + odd))
        m, n, k = sizes
        dtype = draw.choice(("fp16", "bf16"))
        b_rows = draw.choice("kn")
        a_rows = draw.choice("mmmmk")
        name = f"{dtype} {m}x{n}x{k}, a {'m x k' if a_rows == 'm' else 'k x m'}, b {'k x n' if b_rows == 'k' else 'n x k'}"
        if a_rows == "m":
            yield product(name, m, n, k, dtype, dtype, ROWS, transposed=b_rows == "n")
            continue
        a = Buffer("a", dtype, (k, m))
        b = Buffer("b", dtype, (k, n) if b_rows == "k" else (n, k))
        strides = (1, m, *((n, 1) if b_rows == "k" else (1, k)), n, 1)
        args = [a, b, Buffer("c", dtype, (m, n), "poison"), *map(Number, (m, n, k, *strides)), *map(Const, BLOCKS), Const(8)]
        yield Case(name, "strides.py", "strided_matmul", args, lambda c, m=m, n=n: (cdiv(m, c["BM"]) * cdiv(n, c["BN"]),),
                   configs(BLOCKS, ROWS), "product", 2 * m * n * k)


def others():
    """Large products, and kernels that are no plain products."""
    B, N, C = Buffer, Number, Const
    for m, n, k in ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (4096, 4096, 512), (8192, 8192, 512), (16384, 1024, 1024)):
        yield product(f"fp16 {m}x{n}x{k}, a m x k, b n x k", m, n, k, "fp16", "fp16", ROWS, transposed=True)
    for heads, length, d, causal in ((64, 1024, 64, False), (64, 4096, 64, True), (32, 2048, 128, False), (16, 4096, 128, True),
                                     (8, 512, 128, False)):
        yield next(attention(f"{heads}x{length}x{d}", heads, length, d, causal))
    for rows, columns in ((4096, 1024), (16384, 2048), (2048, 16384)):
        warps = [(w, 1) for w in (1, 2, 4, 8, 16)]
        block = C(1 << (columns - 1).bit_length())
        yield Case(f"softmax fp16 {rows}x{columns}", "softmax.py", "softmax", [B("out", "fp16", (rows, columns), "poison"),
                   B("x", "fp16", (rows, columns)), N(columns), N(columns), block], lambda c, rows=rows: (rows,), configs((), warps), None, 0)
        yield Case(f"layer_norm fp16 {rows}x{columns}", "norm.py", "layer_norm", [B("out", "fp16", (rows, columns), "poison"),
                   B("mean", "fp32", (rows,), "poison"), B("scale", "fp32", (rows,), "poison"), B("x", "fp16", (rows, columns)),
                   B("weight", "fp16", (columns,)), B("bias", "fp16", (columns,)), N(columns), N(columns), N(1e-5), block],
                   lambda c, rows=rows: (rows,), configs((), warps), None, 0)
    for count in (1 << 12, 1 << 20, 1 << 25):
        yield Case(f"dropout fp32 {count}", "transformer.py", "dropout", [B("out", "fp32", (count,), "poison"), B("x", "fp32", (count,)), N(count),
                   N(0.5), N(123), C("BLOCK")], lambda c, count=count: (cdiv(count, c["BLOCK"]),),
                   configs(("BLOCK",), [(256, 4, 1), (512, 4, 1), (1024, 4, 1), (2048, 4, 1), (4096, 8, 1), (8192, 8, 1)]), None, 0)
        yield Case(f"sum_atomic fp32 {count}", "optimize.py", "sum_atomic", [B("out", "fp32", (1,), "poison"), B("x", "fp32", (count,)), N(count),
                   C("BLOCK")], lambda c, count=count: (cdiv(count, c["BLOCK"]),),
                   configs(("BLOCK",), [(256, 4, 1), (1024, 4, 1), (4096, 4, 1), (8192, 8, 1)]), None, 0)


def cases(seed, count):
    return list(products(seed, count) if count else others())


def prepare(folder, tilelift, chosen):
    jobs = {case.key(config): (case, config) for case in chosen for config in case.configs}
    folder.mkdir(parents=True, exist_ok=True)

    def one(key):
        case, config = jobs[key]
        out = folder / f"{key}.ptx"
        if not out.exists():
            subprocess.run([tilelift, "compile", KERNELS / case.file, *case.command(config), "-o", out, "--meta", folder / f"{key}.json"],
                           check=True)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, jobs))
    return len(jobs)


def assemble(folder, chosen):
    """Cubins on all cores."""
    import shutil
    ptxas = os.environ.get("PTXAS") or shutil.which("ptxas")
    keys = dict.fromkeys(case.key(config) for case in chosen for config in case.configs)
    texts = [folder / f"{key}.ptx" for key in keys]
    one = lambda text: subprocess.run([ptxas, f"-arch={os.environ['TARGET']}", text, "-o", text.with_suffix(".cubin")], capture_output=True)
    if ptxas:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(one, texts))


def flushed(go, cache, least=8, most=24, budget=8.0):
    """Median, in us, of launches behind flushes of the cache."""
    import torch
    event = lambda: torch.cuda.Event(enable_timing=True)
    for _ in range(2):
        go()
    times, spent = [], 0.0
    while len(times) < least or (spent < budget and len(times) < most):
        pairs = []
        for _ in range(4):
            a, b = event(), event()
            cache.zero_()
            a.record()
            go()
            b.record()
            pairs.append((a, b))
        torch.cuda.synchronize()
        found = [a.elapsed_time(b) for a, b in pairs]
        times += found
        spent += sum(found)
    return statistics.median(times) * 1e3


def reference(case, tensors):
    """What the output should be, by the library in the same type, or None."""
    if case.expected != "product":
        return None
    turn = lambda x, turned: x.T if turned else x
    return turn(tensors["a"], tensors["a rows"] != "m").float() @ turn(tensors["b"], tensors["b rows"] != "k").float()


def run(folder, groups, results):
    """Each configuration twice, in two rounds of opposite order; the lower median counts."""
    import torch

    import products as bench
    began = time.monotonic()
    seconds = float(os.environ.get("LIMIT", "120"))
    device = torch.cuda.get_device_properties(0)
    rows = json.loads(results.read_text()) if results.exists() else {"device": device.name, "sms": device.multi_processor_count, "cases": []}
    done = {row["name"] for row in rows["cases"]}
    assemble(folder, [case for group in groups for case in group])
    print(f"assembled in {time.monotonic() - began:.0f} s", flush=True)
    torch.manual_seed(7)
    torch.backends.cuda.matmul.allow_tf32 = True
    cache = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    for number, group in enumerate(groups):
        for case in group:
            if time.monotonic() - began > seconds:
                print("time is over", flush=True)
                break
            if case.name in done:
                continue
            tensors = bench.inputs(case)
            want = reference(case, tensors)
            found, launches = {}, []
            for at, config in enumerate(case.configs):
                entry = {"config": config, "key": case.key(config)}
                try:
                    bench.fresh(case, tensors)
                    go, facts = bench.ours(folder, case, config, tensors)
                    go()
                    torch.cuda.synchronize()
                    if want is not None and not torch.allclose(tensors["c"].float(), want, rtol=2e-2, atol=2e-2 * want.abs().max().item()):
                        raise ValueError("wrong")
                    launches.append((at, go))
                    entry |= facts
                except Exception as failure:
                    entry["problem"] = (str(failure).splitlines() or ["?"])[0][:80]
                    if "CUDA" in str(failure):
                        # The process is lost; started again it goes on behind this case.
                        rows["cases"].append({"group": number, "name": case.name, "kernel": case.kernel, "configs": [entry]})
                        results.write_text(json.dumps(rows))
                        print(case.name, entry, flush=True)
                        sys.exit(75)
                found[at] = entry
            for order in (launches, launches[::-1]):
                for at, go in order:
                    found[at].setdefault("times", []).append(round(flushed(go, cache), 2))
            rows["cases"].append({"group": number, "name": case.name, "kernel": case.kernel, "configs": list(found.values())})
            results.write_text(json.dumps(rows))
            timed = [(min(entry["times"]), bench.short(entry["config"])) for entry in found.values() if "times" in entry]
            problems = {entry["problem"] for entry in found.values() if "problem" in entry}
            if timed:
                print(f"{case.name:44}{min(timed)[0]:9.1f} {min(timed)[1]:18}{max(timed)[0]:9.1f}", *problems, flush=True)
            del tensors, launches
    clock = subprocess.run(["nvidia-smi", "--query-gpu=name,clocks.max.sm,clocks.sm,clocks.mem,power.draw", "--format=csv,noheader"],
                           capture_output=True, text=True)
    print(clock.stdout.strip(), f"{time.monotonic() - began:.0f} s", flush=True)


def expected(folder, tilelift, case, config):
    """Microseconds that the model expects, or None."""
    params = json.loads((folder / f"{case.key(config)}.json").read_text())["params"]
    given = [a for a in case.args if not isinstance(a, Const) and a.entry(config) != "i32:1"]
    numbers = [f"{p['name']}={a.value}" for a, p in zip(given, params) if isinstance(a, Number) and isinstance(a.value, int)]
    line = " ".join([f"grid({','.join(map(str, case.grid(config)))})", *numbers])
    run = subprocess.run([tilelift, "compile", KERNELS / case.file, *case.command(config), "--emit", "stats", "--json", "--args", line],
                         capture_output=True, text=True)
    return json.loads(run.stdout)["expected"]["microseconds"] if run.returncode == 0 else None


def report(folder, tilelift, groups, results):
    """For each case how much longer the first choice takes than the best measured, and the best of the first three."""
    rows = {(row["group"], row["name"]): row for row in json.loads(results.read_text())["cases"]}
    lost = []
    for number, group in enumerate(groups):
        for case in group:
            entries = [entry for entry in rows.get((number, case.name), {"configs": []})["configs"] if "times" in entry]
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                times = list(pool.map(lambda entry: expected(folder, tilelift, case, entry["config"]), entries))
            order = sorted((time, min(entry["times"])) for time, entry in zip(times, entries) if time is not None)
            if len(order) < 2:
                continue
            best = min(measured for _, measured in order)
            first, three = order[0][1] / best, min(measured for _, measured in order[:3]) / best
            lost.append((first, three))
            print(f"{case.name:44}{best:9.1f}{order[0][0]:9.1f}{first:8.3f}{three:8.3f}", flush=True)
    first, three = zip(*lost)
    print(f"{len(lost)} cases; first choice: {statistics.mean(first):.3f} of the best, {sum(x <= 1.07 for x in first)} within 7 %, "
          f"worst {max(first):.2f}; best of three: {statistics.mean(three):.3f}, {sum(x <= 1.02 for x in three)} within 2 %, worst {max(three):.2f}")


def groups_of(seeds, counts):
    return [cases(int(seed), int(count)) for seed, count in zip(seeds.split(","), counts.split(","), strict=True)]


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["prepare", folder, tilelift, seed, count]:
            print(prepare(Path(folder), tilelift, cases(int(seed), int(count))), "kernels")
        case ["run", folder, seeds, counts, results]:
            run(Path(folder), groups_of(seeds, counts), Path(results))
        case ["report", folder, tilelift, seeds, counts, results]:
            report(Path(folder), tilelift, groups_of(seeds, counts), Path(results))
        case _:
            sys.exit(__doc__)
