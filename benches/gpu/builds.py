"""Builds of Tilelift beside each other and beside the libraries: what a change gains, on the same GPU in the same run.

usage: builds.py prepare FOLDER TILELIFT [FILTER]     compiles for TARGET (sm_90a); needs no GPU; more flags of tilelift in FLAGS
       builds.py run FOLDER,.. [FILTER]               each build's best configuration in alternating rounds
FILTER is a regular expression for names of cases: those of products.py, and those of `hopper`, `odd`, `thin` and `described`, where
descriptors and plain pointers alternate.

Every configuration of every build is checked against f64 on fresh inputs and poisoned outputs. Behind each time stands the last
side's time over it: the library's, or the last build's where there is none. SEED changes the data; ALL shows every configuration.
"""
import itertools
import os
import re
import sys
from pathlib import Path

os.environ.setdefault("TARGET", "sm_90a")

import product_cases
import products
from product_cases import cases, described, hopper, odd, thin


def chosen(pattern):
    return [case for case in (*hopper(), *odd(), *thin(), *described(), *cases()) if re.search(pattern, case.name)]


def run(folders, pattern):
    import torch
    torch.manual_seed(int(os.environ.get("SEED", "7")))
    print(products.environment(), flush=True)
    for case in chosen(pattern):
        tensors = products.inputs(case)
        expected = getattr(products, case.expected)(tensors)
        sides, line, problems = [], [], []
        kernels = [case, case.beside] if case.beside else [case]
        for folder, kernel in itertools.product(folders, kernels):
            name = f"{folder.name}/{kernel.kernel}" if case.beside else folder.name
            best, complaints, tried = products.try_all(
                kernel, tensors, expected, lambda config: products.ours(folder, kernel, config, tensors), False)
            problems += [f"{name}: {x}" for x in complaints]
            if best:
                sides.append(best[2])
                line.append((name, products.short(best[1]), tried))
        library = products.peer(case, tensors)
        if library:
            sides.append(library)
        times = products.alternate([products.graph_of(go) for go in sides] if case.graph else sides)
        times = [t / 20 if case.graph else t for t in times]
        last = times[-1]
        names = [name for name, _, _ in line] + (["library"] if library else [])
        print(f"{case.name:36}" + "  ".join(f"{name} {t:.1f} {last / t:.3f}" for name, t in zip(names, times)), "|",
              " ".join(config for _, config, _ in line), *problems, flush=True)
        if os.environ.get("ALL"):
            for name, _, tried in line:
                print("    ", name, tried, flush=True)
        del tensors, expected, sides
        torch.cuda.empty_cache()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["prepare", folder, tilelift, *more]:
            kernels = Path(__file__).resolve().parents[2] / "examples/kernels"
            count = len(product_cases.prepare(Path(folder), kernels, tilelift, chosen(*more or [""])))
            print(count, "kernels")
        case ["run", folders, *more]:
            run([Path(folder) for folder in folders.split(",")], *more or [""])
        case _:
            sys.exit(__doc__)
