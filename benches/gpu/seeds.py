"""The seeds of the project, compiled from their text, beside the same kernels made with the builder.

usage: seeds.py prepare FOLDER BUILDER SEEDS TILELIFT     writes PTX of the seeds beside the builder's; needs no GPU
       seeds.py run FOLDER [--quick]

BUILDER is the folder that `cargo run --release --example bench_kernels -- BUILDER` writes, SEEDS the folder with add.py and
softmax.py. Each configuration of the builder that the text of the seed allows is a row: the seed of vector addition takes
its block from a name of its module (`-c BLOCK=..`), that of softmax has blocks of 1,024. Results of both sides are checked
against torch on poisoned outputs. Times are CUDA events with the L2 cache flushed before each call; the sides alternate in
rounds, and who begins changes. The target is a ratio of medians (builder's by seed's time) of 0.98 or more. A third column
times the builder's kernel against itself in the same way: what that differs from 1 is noise.
"""
import json
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

NAMES = {"f32": "fp32", "f16": "fp16", "bf16": "bf16"}
# Rows of the comparison: the builder's case, and the configurations to take of it.
CASES = {"add f32 16777216": None, "add f32 268435456": [(512, 4), (1024, 4), (2048, 8)], "add f16 268435456": [(512, 4), (1024, 4), (2048, 8)],
         "softmax f32 583x931": None, "softmax f32 4096x1024": None}


def signature(case):
    pointer = f"*{NAMES[case['dtype']]}:16"
    size = "i32:16" if case["divisible"] else "i32"
    if case["kind"] == "add":
        return ", ".join([pointer] * 3 + [size])
    return ", ".join([pointer, size, "i32:1", pointer, size, "i32:1", "i32", size])


def prepare(folder, builder, seeds, tilelift):
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for case in json.loads((builder / "index.json").read_text()):
        wanted = CASES.get(case["name"], ())
        for config in case["configs"]:
            chosen = (config["block"], config["warps"])
            if wanted is not None and chosen not in wanted or case["kind"] == "softmax" and config["block"] != 1024:
                continue
            stem = folder / ("seed_" + Path(config["ptx"]).stem)
            constants = ["-c", f"BLOCK={config['block']}"] if case["kind"] == "add" else []
            subprocess.run([tilelift, "compile", seeds / f"{case['kind']}.py", "-s", signature(case), "-w", str(config["warps"]), *constants,
                            "-t", case["target"], "-o", f"{stem}.ptx", "--meta", f"{stem}.json"], check=True)
            for name in (config["ptx"], config["meta"]):
                shutil.copy(builder / name, folder / name)
            rows.append({"case": {k: v for k, v in case.items() if k != "configs"}, "block": config["block"], "warps": config["warps"],
                         "seed": stem.name, "builder": Path(config["ptx"]).stem})
    (folder / "rows.json").write_text(json.dumps(rows, indent=1))
    print(len(rows), "configurations")


class Work:
    """Inputs, a poisoned output and the right result of a case."""

    def __init__(self, case):
        import torch
        dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[case["dtype"]]
        self.case, self.rows, self.columns = case, case["m"], case["n"]
        shape = (self.rows, self.columns)
        self.x, self.y = (torch.randn(shape, device="cuda").to(dtype) for _ in range(2))
        self.out = torch.empty_like(self.x)
        if case["kind"] == "add":
            self.want, self.bound = self.x + self.y, 0
        else:
            # Within the bound of exp2 and of the sum.
            self.want, self.bound = self.x.double().softmax(1), 4e-6

    def bind(self, kernel, block, seed):
        grid = (-(-self.columns // block),) if self.case["kind"] == "add" else (self.rows,)
        if self.case["kind"] == "add":
            return kernel.bind(grid, [self.x, self.y, self.out, self.columns])
        stride = self.columns
        last = [self.rows, self.columns] if seed else [self.columns]
        return kernel.bind(grid, [self.out, stride, self.x, stride, *last])

    def right(self, fn):
        import torch
        self.out.view(torch.uint8).fill_(0xFF)
        fn()
        torch.cuda.synchronize()
        if self.bound == 0:
            return torch.equal(self.out, self.want)
        return bool(((self.out.double() - self.want).abs() <= self.bound * self.want + 1e-9).all())


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


def run(folder, quick):
    import torch
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import launch
    torch.manual_seed(11)
    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    print("device", torch.cuda.get_device_name(0), "torch", torch.__version__, flush=True)
    load = lambda stem: launch.Kernel((folder / f"{stem}.ptx").read_text(), json.loads((folder / f"{stem}.json").read_text()))
    lines, ratios, wrong, work = [], [], 0, None
    for row in json.loads((folder / "rows.json").read_text()):
        if work is None or work.case != row["case"]:
            del work
            torch.cuda.empty_cache()
            work = Work(row["case"])
        kernels = [load(row["seed"]), load(row["builder"]), load(row["builder"])]
        sides = [work.bind(kernel, row["block"], i == 0) for i, kernel in enumerate(kernels)]
        good = [work.right(side) for side in sides]
        wrong += good.count(False)
        samples = [[], [], []]
        for round_ in range(3 if quick else 9):
            order = [(round_ + i) % 3 for i in range(3)]
            for i in order if round_ % 2 == 0 else reversed(order):
                samples[i] += times(sides[i], 10 if quick else 30, flush)
        ours, builder, again = (statistics.median(s) for s in samples)
        ratios.append(builder / ours)
        name = f"{row['case']['name']} b{row['block']}w{row['warps']}"
        registers = "/".join(str(k.registers) for k in kernels[:2])
        lines.append(f"{name:34} {ours * 1e3:9.2f} {builder * 1e3:9.2f} {builder / ours:7.3f} {builder / again:7.3f}  {registers:>7}"
                     f"{'' if all(good) else '  WRONG'}{'' if builder / ours >= 0.98 else '  <'}")
        print(lines[-1], flush=True)
    print(f"\n{'case':34} {'seed us':>9} {'built us':>9} {'ratio':>7} {'noise':>7}  registers")
    print("\n".join(lines))
    print(f"least ratio {min(ratios):.3f}, median {statistics.median(ratios):.3f}, at least 0.98: {sum(r >= 0.98 for r in ratios)} of "
          f"{len(ratios)}; wrong results: {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        prepare(*map(Path, sys.argv[2:6]))
    else:
        sys.exit(run(Path(sys.argv[2]), "--quick" in sys.argv))
