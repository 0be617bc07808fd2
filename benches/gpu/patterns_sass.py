"""Registers and instructions of kernels of language.py's kind, ours beside Triton's, through the same ptxas for sm_90a."""
import collections
import importlib.util
import json
import os
import re
import subprocess
from pathlib import Path

from language import Buffer, Const, key

PTXAS, NVDISASM = os.environ.get("PTXAS", "ptxas"), os.environ.get("NVDISASM", "nvdisasm")
CLASSES = {"ld": r"LDG\b|LD\.E", "st": r"STG\b|ST\.E", "shared": r"LDS|STS|LDSM|STSM", "shfl": r"SHFL", "bar": r"BAR", "mufu": r"MUFU"}


def triton_ptx(kernel, case, config):
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    names, signature, constants, divisible = kernel.arg_names, {}, {}, {}
    for i, (name, arg) in enumerate(zip(names, case.args, strict=True)):
        kind, _, promise = arg.entry(config).partition(":")
        if isinstance(arg, Const) or promise == "1":
            signature[name], constants[name] = "constexpr", arg.of(config) if isinstance(arg, Const) else 1
        else:
            signature[name] = kind
            if promise == "16":
                divisible[(i,)] = [["tt.divisibility", 16]]
    source = ASTSource(kernel, signature, constants, divisible)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": config["warps"]}).asm["ptx"]


def assemble(stem, ptx):
    source, cubin = Path(f"{stem}.ptx"), Path(f"{stem}.cubin")
    source.write_text(ptx)
    log = subprocess.run([PTXAS, "-v", "--gpu-name=sm_90a", source, "-o", cubin], capture_output=True, text=True)
    if log.returncode:
        raise RuntimeError(log.stderr)
    sass = subprocess.run([NVDISASM, "-c", cubin], capture_output=True, text=True, check=True).stdout
    Path(f"{stem}.sass").write_text(sass)
    found = {"registers": int(re.search(r"Used (\d+) registers", log.stderr).group(1)),
             "spills": sum(map(int, re.findall(r"(\d+) bytes spill", log.stderr)))}
    places, ops = {}, []
    for line in sass.splitlines():
        if label := re.match(r"\.(L_x_\d+):", line):
            places[label.group(1)] = len(ops)
        elif op := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][A-Z0-9_.]*)(.*)", line):
            ops.append((op.group(1), op.group(2)))
    last = max(i for i, op in enumerate(ops) if op[0].startswith("EXIT"))
    found["all"] = last + 1
    inside = set()
    for i, (op, rest) in enumerate(ops):
        to = re.search(r"`\(\.(L_x_\d+)\)", rest)
        if op.startswith("BRA") and to and places.get(to.group(1), i + 1) < i:
            inside |= set(range(places[to.group(1)], i + 1))
    found["loops"] = len(inside)
    for name, pattern in CLASSES.items():
        found[name] = sum(bool(re.match(pattern, op)) for op, _ in ops)
    widths = collections.Counter(re.search(r"\.(128|64|U16|U8|S8)\b", op).group(1) if re.search(r"\.(128|64|U16|U8|S8)\b", op) else "32"
                                 for op, _ in ops if re.match(r"LDG|STG", op))
    found["widths"] = " ".join(f"{k}:{v}" for k, v in sorted(widths.items()))
    return found


def table(folder, sources, cases):
    spec = importlib.util.spec_from_file_location("patterns_kernels", Path(sources) / "kernels.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    print(f"{'case':52} regs spills all loops {' '.join(CLASSES)} widths")
    for case in cases:
        config = case.configs[0]
        stem = folder / key(case, config)
        peer = Path(f"{stem}.triton.json")
        if not peer.exists():
            ptx = triton_ptx(getattr(module, case.kernel), case, config)
            peer.write_text(json.dumps(assemble(f"{stem}.triton", ptx)))
        both = assemble(f"{stem}.ours", Path(f"{stem}.ptx").read_text()), json.loads(peer.read_text())
        for side, found in zip(("ours", "Triton"), both):
            print(f"{case.name if side == 'ours' else '':52} {side:6} {found['registers']:4} {found['spills']:5} {found['all']:5} {found['loops']:5} "
                  + " ".join(f"{found[c]:4}" for c in CLASSES) + f"  {found['widths']}", flush=True)
