"""Builds of Tilelift beside each other and beside the libraries: what a change gains, on the same GPU in the same run.

usage: builds.py prepare FOLDER TILELIFT [FILTER]     compiles for TARGET (sm_90a); needs no GPU; more flags of tilelift in FLAGS
       builds.py run FOLDER,.. [FILTER]               each build's best configuration in alternating rounds
FILTER is a regular expression for names of cases: those of products.py, and those of `hopper`, `words`, `orders`, `walks`, `lengths`, `odd`,
`thin`, `shapes`, `few_rows`, `chains`, and `described`, where descriptors and plain pointers alternate.

Every configuration of every build is checked against f64 on fresh inputs and poisoned outputs. Behind each time stands the last
side's time over it: the library's, or the last build's where there is none. SEED changes the data; ALL shows every configuration;
TRITON=1 adds Triton's code of the same text, in the same configurations. Where there is ptxas (PTXAS), it assembles all kernels on all
cores first.
"""
import itertools
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("TARGET", "sm_90a")

import product_cases
import products
from chain_cases import chains
from product_cases import cases, described, hopper, lengths, odd, orders, thin, walks, words
from shape_cases import few_rows, shapes


def chosen(pattern):
    return [case for case in (*hopper(), *words(), *orders(), *walks(), *lengths(), *odd(), *thin(), *shapes(), *few_rows(), *chains(), *described(), *cases()) if re.search(pattern, case.name)]


KERNELS = Path(__file__).resolve().parents[2] / "examples/kernels"


def assemble(folders, pattern):
    """Cubins of what will be launched; what is refused stays for the driver, which says why."""
    ptxas = os.environ.get("PTXAS") or shutil.which("ptxas")
    if not ptxas:
        return
    both = itertools.chain.from_iterable((case, case.beside) for case in chosen(pattern))
    keys = {case.key(config) for case in both if case for config in case.configs}
    texts = [folder / f"{key}.ptx" for folder in folders for key in keys]
    one = lambda text: subprocess.run([ptxas, f"-arch={os.environ['TARGET']}", text, "-o", text.with_suffix(".cubin")], capture_output=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(one, texts))


def warm(name, number):
    """Compiles one configuration by Triton, for its cache on disk."""
    return products.warm_one(KERNELS, next(case for case in chosen("") if case.name == name), number)


def run(folders, pattern):
    assemble(folders, pattern)
    has_triton = bool(os.environ.get("TRITON"))
    if has_triton:
        with ProcessPoolExecutor(os.cpu_count(), get_context("fork")) as pool:
            jobs = [pool.submit(warm, case.name, number) for case in chosen(pattern) for number in range(len(case.configs))]
            print(*[job.result() for job in jobs if job.result()], sep="\n", flush=True)
    import torch
    torch.manual_seed(int(os.environ.get("SEED", "7")))
    print(products.environment(), flush=True)
    for case in chosen(pattern):
        tensors = products.inputs(case)
        expected = products.named(case.expected)(tensors)
        launches = []
        for folder, kernel in itertools.product(folders, [case, case.beside] if case.beside else [case]):
            name = f"{folder.name}/{kernel.kernel}" if case.beside else folder.name
            launch = lambda config, folder=folder, kernel=kernel: products.ours(folder, kernel, config, tensors)
            launches.append((name, kernel, launch, False))
        if has_triton:
            launches.append(("Triton", case, lambda config: products.theirs(KERNELS, case, config, tensors), True))
        sides, line, problems = [], [], []
        for name, kernel, launch, may_spill in launches:
            best, complaints, tried = products.try_all(kernel, tensors, expected, launch, may_spill)
            problems += [f"{name}: {x}" for x in complaints]
            if best:
                sides.append(best[2])
                line.append((name, products.short(best[1]), tried))
        library = products.peer(case, tensors)
        if library:
            sides.append(library)
        if not sides:
            print(f"{case.name:36}", *problems, flush=True)
            continue
        times = products.alternate([products.graph_of(go) for go in sides] if case.graph else sides)
        times = [t / 20 if case.graph else t for t in times]
        last = times[-1]
        names = [name for name, _, _ in line] + (["library"] if library else [])
        print(f"{case.name:36} " + "  ".join(f"{name} {t:.1f} {last / t:.3f}" for name, t in zip(names, times)), "|",
              " ".join(config for _, config, _ in line), *problems, flush=True)
        if os.environ.get("ALL"):
            for name, _, tried in line:
                print("    ", name, tried, flush=True)
        del tensors, expected, sides
        torch.cuda.empty_cache()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["prepare", folder, tilelift, *more]:
            count = len(product_cases.prepare(Path(folder), KERNELS, tilelift, chosen(*more or [""])))
            print(count, "kernels")
        case ["run", folders, *more]:
            run([Path(folder) for folder in folders.split(",")], *more or [""])
        case _:
            sys.exit(__doc__)
