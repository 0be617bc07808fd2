"""Products of matrices and attention: Tilelift beside Triton forced to the same instructions.

usage: matmul.py prepare FOLDER TILELIFT     compiles matmul_kernels.py for sm_80; needs no GPU
       TRITON_OVERRIDE_ARCH=sm80 matmul.py run FOLDER

Without the variable Triton takes what is native, on an H100 wgmma. The results of each side are checked against f64 on fresh
inputs and poisoned outputs; times are medians with the L2 cache flushed before each call. Both sides try every configuration,
then their best alternate in five rounds.
"""
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("matmul_kernels.py")
MATMUL = [(128, 128, 32, 4, 3), (128, 128, 32, 4, 4), (128, 128, 64, 4, 3), (128, 256, 64, 8, 3), (128, 128, 64, 8, 3),
          (256, 128, 32, 8, 3), (64, 64, 64, 4, 4), (64, 128, 64, 4, 3), (128, 64, 32, 4, 4)]
ATTENTION = {64: [(128, 64, 4, 3), (128, 32, 4, 3), (128, 64, 8, 3)], 128: [(128, 64, 8, 3), (128, 32, 8, 3), (128, 64, 8, 2)]}
SHAPES = [(512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (512, 4096, 1024), (4096, 4096, 512)]
GROUP = 8


def cases():
    """Name, kernel, signature, warps, stages."""
    for dtype in ("fp16", "fp32"):
        for bm, bn, bk, warps, stages in MATMUL:
            if dtype == "fp32" and bm * bn * bk > 128 * 128 * 32:
                continue
            signature = f"*{dtype}:16, *{dtype}:16, *{dtype}:16" + ", i32:16" * 6 + f", {bm}, {bn}, {bk}, {GROUP}"
            yield f"matmul_{dtype}_{bm}x{bn}x{bk}_w{warps}_s{stages}", "matmul", signature, warps, stages
    for d, configs in ATTENTION.items():
        for bm, bn, warps, stages in configs:
            signature = f"*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32:16, fp32, {bm}, {bn}, {d}"
            yield f"attention_{d}_{bm}x{bn}_w{warps}_s{stages}", "attention", signature, warps, stages


def prepare(folder, tilelift):
    folder.mkdir(parents=True, exist_ok=True)
    for name, kernel, signature, warps, stages in cases():
        subprocess.run([tilelift, "compile", SOURCE, "-n", kernel, "-s", signature, "-w", str(warps), "--num-stages",
                        str(stages), "-t", "sm_80", "-o", folder / f"{name}.ptx", "--meta", folder / f"{name}.json"], check=True)


def run(folder):
    import torch
    import triton
    from triton.testing import do_bench

    import matmul_kernels
    from launch import Kernel

    def ours(name):
        return Kernel((folder / f"{name}.ptx").read_text(), json.loads((folder / f"{name}.json").read_text()))

    def median(go):
        return do_bench(go, warmup=20, rep=60, return_mode="median")

    def compare(label, sides, check, flops):
        """`sides`: for ours and Triton's a list of names and launches."""
        best, wrong = [], []
        for side, launches in zip(("ours", "Triton"), sides):
            times = []
            for name, go in launches:
                try:
                    problem = check(go)
                except Exception as error:  # a configuration that does not fit
                    problem = str(error).splitlines()[0][:60]
                if problem:
                    wrong.append(f"{side} {name}: {problem}")
                else:
                    times.append((median(go), name, go))
            best.append(min(times, key=lambda entry: entry[0]))
        rounds = [[], []]
        for i in range(5):
            for side in ((0, 1) if i % 2 == 0 else (1, 0)):
                rounds[side].append(median(best[side][2]))
        a, b = (statistics.median(times) for times in rounds)
        print(f"{label:34}{a * 1e3:9.1f}{flops / a * 1e-9:8.1f}{b * 1e3:9.1f}{flops / b * 1e-9:8.1f}{b / a:8.3f}  "
              f"{best[0][1]} / {best[1][1]}  {'; '.join(wrong)}", flush=True)

    print(f"{'case':34}{'ours us':>9}{'TF':>8}{'Triton us':>9}{'TF':>8}{'ratio':>8}", flush=True)
    for dtype, torch_type in (("fp16", torch.float16), ("fp32", torch.float32)):
        for m, n, k in SHAPES if dtype == "fp16" else SHAPES[3:4]:
            a, b = (torch.randn(shape, device="cuda", dtype=torch_type) for shape in ((m, k), (k, n)))
            c = torch.empty((m, n), device="cuda", dtype=torch_type)
            x, y = a.double(), b.double()
            want, scale = x @ y, x.abs() @ y.abs()
            # f32 sums of k products and one rounding of the result; tf32 cuts 13 bits of both factors.
            bound = (k + 2) * 2.0**-24 * scale
            bound += want.abs() * 2.0**-11 + 2.0**-25 if dtype == "fp16" else 2.0**-9 * scale
            numbers = (m, n, k, k, n, n)

            def check(go):
                c.fill_(float("nan"))
                go()
                return None if bool(((c.double() - want).abs() <= bound).all()) else "wrong"

            mine, theirs = [], []
            for bm, bn, bk, warps, stages in MATMUL:
                name = f"matmul_{dtype}_{bm}x{bn}x{bk}_w{warps}_s{stages}"
                if not (folder / f"{name}.ptx").exists():
                    continue
                grid = (triton.cdiv(m, bm) * triton.cdiv(n, bn),)
                mine.append((name.split("_", 2)[2], ours(name).bind(grid, [a, b, c, *numbers])))
                theirs.append((name.split("_", 2)[2], lambda grid=grid, blocks=(bm, bn, bk), options=(warps, stages):
                               matmul_kernels.matmul[grid](a, b, c, *numbers, *blocks, GROUP, num_warps=options[0],
                                                           num_stages=options[1])))
            compare(f"matmul {dtype} {m} x {n} x {k}", (mine, theirs), check, 2.0 * m * n * k)
            torch_time = median(lambda: torch.matmul(a, b, out=c))
            print(f"{'':34}torch {torch_time * 1e3:.1f} us", flush=True)
    heads, length = 64, 4096
    for d, configs in ATTENTION.items():
        q, k, v = (torch.randn((heads, length, d), device="cuda", dtype=torch.float16) for _ in range(3))
        out = torch.empty_like(q)
        some = slice(0, 2)
        scores = q[some].double() @ k[some].double().transpose(1, 2) / d**0.5
        want = scores.softmax(-1) @ v[some].double()

        def check(go):
            out.fill_(float("nan"))
            go()
            # Probabilities and results are rounded to f16.
            error = ((out[some].double() - want).abs().max() / want.abs().max()).item()
            return None if error < 2.0**-8 and bool(out.isfinite().all()) else f"wrong by {error:.1e}"

        scale = 1.4426950408889634 / d**0.5
        mine, theirs = [], []
        for bm, bn, warps, stages in configs:
            name = f"attention_{d}_{bm}x{bn}_w{warps}_s{stages}"
            grid = (length // bm, heads)
            mine.append((name.split("_", 2)[2], ours(name).bind(grid, [q, k, v, out, length, scale])))
            theirs.append((name.split("_", 2)[2], lambda grid=grid, blocks=(bm, bn, d), options=(warps, stages):
                           matmul_kernels.attention[grid](q, k, v, out, length, scale, *blocks, num_warps=options[0],
                                                          num_stages=options[1])))
        compare(f"attention fp16 {heads} x {length} x {d}", (mine, theirs), check, 4.0 * heads * length * length * d)
        sdpa = torch.nn.functional.scaled_dot_product_attention
        print(f"{'':34}torch {median(lambda: sdpa(q[None], k[None], v[None])) * 1e3:.1f} us", flush=True)
    print("Triton's target:", os.environ.get("TRITON_OVERRIDE_ARCH", "native"))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["prepare", folder, tilelift]:
            prepare(Path(folder), tilelift)
        case ["run", folder]:
            run(Path(folder))
        case _:
            sys.exit(__doc__)
