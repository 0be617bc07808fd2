"""Layout conversions of Tilelift beside Triton's, for the same computations. Needs no GPU.

usage: conversions.py [TILELIFT]   (the command line tool; target/release/tilelift if not given)

For each kernel of `benches/conversions` the count of conversions and the bytes of the blocks they convert: ours from
`--emit stats`, Triton's from the `ttg.convert_layout` of its TTGIR for the function of the same name below. Conversions
in loops do not occur. What is left inside of reductions, scans and gathers is counted by neither side.
"""
import re
import subprocess
import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

ROOT = Path(__file__).resolve().parent
TARGET = 80


@triton.jit
def tile(p):
    return p + tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def transpose(x, out):
    v = tl.load(tile(x))
    tl.store(out + tl.arange(0, 64)[:, None] + tl.arange(0, 64)[None, :] * 64, v)


@triton.jit
def turn(x, out):
    tl.store(tile(out), tl.trans(tl.load(tile(x))))


@triton.jit
def row_and_column_sums(x, rows, cols):
    v = tl.load(tile(x))
    tl.store(rows + tl.arange(0, 64), tl.sum(v, 1))
    tl.store(cols + tl.arange(0, 64), tl.sum(v, 0))


@triton.jit
def centre(x, out):
    v = tl.load(tile(x))
    tl.store(tile(out), v - tl.sum(v, 0)[None, :])


@triton.jit
def scan_rows(x, out):
    tl.store(tile(out), tl.associative_scan(tl.load(tile(x)), 1, add))


@triton.jit
def scan_columns(x, out):
    tl.store(tile(out), tl.associative_scan(tl.load(tile(x)), 0, add))


@triton.jit
def scan_both(x, out):
    v = tl.associative_scan(tl.load(tile(x)), 1, add)
    tl.store(tile(out), tl.associative_scan(v, 0, add))


@triton.jit
def mixed(x, y, out):
    tl.store(tile(out), (tl.load(tile(x)).to(tl.float32) + tl.load(tile(y))).to(tl.int8))


@triton.jit
def gather_rows(x, index, out):
    tl.store(tile(out), tl.gather(tl.load(tile(x)), tl.load(tile(index)), 1))


@triton.jit
def gather_columns(x, index, out):
    tl.store(tile(out), tl.gather(tl.load(tile(x)), tl.load(tile(index)), 0))


@triton.jit
def interleave(x, y, out):
    i = tl.arange(0, 1024)
    tl.store(out + tl.arange(0, 2048), tl.interleave(tl.load(x + i), tl.load(y + i)))


@triton.jit
def split_pairs(x, even, odd):
    a, b = tl.split(tl.reshape(tl.load(x + tl.arange(0, 2048)), (1024, 2)))
    i = tl.arange(0, 1024)
    tl.store(even + i, a)
    tl.store(odd + i, b)


@triton.jit
def outer_product(x, out):
    v = tl.load(x + tl.arange(0, 64))
    tl.store(tile(out), v[:, None] * v[None, :])


@triton.jit
def row_argmax(x, out):
    tl.store(out + tl.arange(0, 64), tl.argmax(tl.load(tile(x)), 1))


KERNELS = [transpose, turn, row_and_column_sums, centre, scan_rows, scan_columns, scan_both, mixed, gather_rows,
           gather_columns, interleave, split_pairs, outer_product, row_argmax]
TYPES = {"f16": "fp16", "f32": "fp32", "i8": "i8", "i32": "i32"}
BYTES = {"i1": 1, "i8": 1, "f16": 2, "bf16": 2, "i32": 4, "f32": 4, "i64": 8, "f64": 8, "!tt.ptr": 8}


def of_triton(kernel, types):
    """Count and bytes of the conversions in the TTGIR."""
    signature = {name: "*" + TYPES[ty] for name, ty in zip(kernel.arg_names, types)}
    divisible = {(i,): [["tt.divisibility", 16]] for i in range(len(types))}
    source = ASTSource(kernel, signature, {}, divisible)
    ttgir = triton.compile(source, target=GPUTarget("cuda", TARGET, 32), options={"num_warps": 4}).asm["ttgir"]
    converted = re.findall(r"ttg\.convert_layout .*? -> tensor<((?:\d+x)+)([!a-z.0-9]+)", ttgir)
    total = 0
    for extents, elem in converted:
        count = 1
        for extent in extents.split("x")[:-1]:
            count *= int(extent)
        total += count * BYTES[elem]
    return ttgir.count("ttg.convert_layout"), total


def of_tilelift(tool, path):
    """Count and bytes of the conversions, and the types that the parameters point to."""
    run = subprocess.run([tool, "compile", path, "--emit", "stats", "-t", f"sm_{TARGET}"], capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr)
    number = {" ".join(line.split()[:-1]): int(line.split()[-1])
              for line in run.stdout.splitlines()}
    types = re.findall(r'": ptr<(\w+)>', path.read_text())
    return number["layout conversions"], number["bytes converted"], types


def main():
    tool = sys.argv[1] if len(sys.argv) > 1 else str(ROOT.parent / "target/release/tilelift")
    print(f"{'kernel':22} {'ours':>5} {'bytes':>8} {'Triton':>8} {'bytes':>8}")
    worse = 0
    for kernel in KERNELS:
        name = kernel.fn.__name__
        ours, our_bytes, types = of_tilelift(tool, ROOT / "conversions" / f"{name}.tir")
        theirs, their_bytes = of_triton(kernel, types)
        worse += ours > theirs or our_bytes > their_bytes
        print(f"{name:22} {ours:5} {our_bytes:8} {theirs:8} {their_bytes:8}")
    print(f"{worse} of {len(KERNELS)} have more conversions or bytes than Triton's")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
