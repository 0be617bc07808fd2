"""SASS of Tilelift's PTX beside SASS of Triton's PTX for the same block size, through the same ptxas. Needs no GPU.

usage: sass.py KERNELS   (the folder that the example bench_kernels or bench_tiles writes; ptxas and nvdisasm from PATH or
PTXAS, NVDISASM)
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import peers
import tile_peers

PTXAS, NVDISASM = os.environ.get("PTXAS", "ptxas"), os.environ.get("NVDISASM", "nvdisasm")
NAMES = {"f32": "fp32", "f16": "fp16", "bf16": "bf16", "i8": "i8", "i32": "i32", "i64": "i64"}


def assemble(ptx, target):
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder) / "k.ptx", Path(folder) / "k.cubin"
        source.write_text(ptx)
        log = subprocess.run([PTXAS, "-v", f"--gpu-name={target}", source, "-o", cubin], capture_output=True, text=True)
        if log.returncode:
            raise RuntimeError(log.stderr)
        sass = subprocess.run([NVDISASM, "-c", cubin], capture_output=True, text=True, check=True).stdout
    ops = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][A-Z0-9_.]*)", sass, re.M)
    # What stands behind the last EXIT is padding.
    last = max(i for i, op in enumerate(ops) if op.startswith("EXIT"))
    registers = int(re.search(r"Used (\d+) registers", log.stderr).group(1))
    spills = sum(map(int, re.findall(r"(\d+) bytes spill", log.stderr)))
    return last + 1, registers, spills


def triton_ptx(case, config, target):
    ptr = "*" + NAMES[case["dtype"]]
    kind = case["kind"]
    kernel = getattr(peers, kind)
    names = kernel.arg_names[:-1]
    pointers = {"X", "Y", "Z", "W", "B"}
    signature = {n: ptr if n in pointers else "*fp32" if n in ("Mean", "Rstd") else "fp32" if n == "eps" else "i32"
                 for n in names}
    signature["BLOCK"] = "constexpr"
    divisible = {(i,): [["tt.divisibility", 16]] for i, n in enumerate(names)
                 if signature[n].startswith("*") or signature[n] == "i32" and case["divisible"]}
    source = ASTSource(kernel, signature, {"BLOCK": config["block"]}, divisible)
    return triton.compile(source, target=GPUTarget("cuda", target, 32), options={"num_warps": config["warps"]}).asm["ptx"]


def tile_ptx(kernel, index, warps):
    """Triton's PTX of a kernel of bench_tiles."""
    peer = tile_peers.PEERS[kernel["name"]]
    sizes = {"N": index["matrix"], "T": index["tile"], "L": index["line"], "BINS": index["bins"]}
    signature = {name: "*" + NAMES[ty] for name, ty in zip(peer.arg_names, kernel["types"])}
    signature |= {name: "constexpr" for name in sizes}
    divisible = {(i,): [["tt.divisibility", 16]] for i in range(len(kernel["types"]))}
    source = ASTSource(peer, signature, sizes, divisible)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps}).asm["ptx"]


def all_cases(folder):
    """Name, configuration, target, our PTX and a function that gives Triton's."""
    index = json.loads((folder / "index.json").read_text())
    if isinstance(index, dict):
        for kernel in index["kernels"]:
            for warps in kernel["warps"]:
                ours = (folder / f"{kernel['name']}_{warps}.ptx").read_text()
                yield kernel["name"], f"w{warps}", "sm_90", ours, lambda: tile_ptx(kernel, index, warps)
        return
    for case in index:
        for config in case["configs"]:
            if config.get("sass"):
                name, target = f"b{config['block']}w{config['warps']}", int(case["target"].removeprefix("sm_"))
                ours = (folder / config["ptx"]).read_text()
                yield case["name"], name, case["target"], ours, lambda: triton_ptx(case, config, target)


def main():
    folder = Path(sys.argv[1])
    print(f"{'case':28} {'config':10} {'target':7} {'instructions':>16} {'registers':>12} {'spills':>9}   ours/Triton")
    worse = 0
    for case, name, target, ptx, peer in all_cases(folder):
        # Triton names sm_90a, whose machine code is the same here; PTX for sm_90 assembles for it too.
        machine = "sm_90a" if target == "sm_90" else target
        ours, theirs = assemble(ptx, machine), assemble(peer(), machine)
        bad = any(a > b for a, b in zip(ours, theirs))
        worse += bad
        print(f"{case:28} {name:10} {target:7} {ours[0]:7} {theirs[0]:8} {ours[1]:6} {theirs[1]:5} "
              f"{ours[2]:4} {theirs[2]:4} {'  WORSE' if bad else ''}", flush=True)
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
