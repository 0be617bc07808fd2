"""Rows of dependent launches leave the bits of launches one behind the other: what no single launch shows.

usage: rows.py prepare FOLDER TILELIFT     compiles for sm_90a; needs no GPU
       rows.py run FOLDER

As in a model, a product writes x right before a row of products with weights of four bits of their own, in a stream and in a graph that
is replayed, and lets what follows begin before it writes. In some the programs of a block share its sum, by memory that all launches
of the row use one after the other. Last, the first launch of a row is a dependent one, which is wrong: what differs then shows that
the rest could have.
"""
import json
import subprocess
import sys
from pathlib import Path

KERNELS = Path(__file__).resolve().parents[2] / "examples/kernels"
TYPES = "*fp16:16, *fp32:16, *i32:16, *fp16:16, *u16:16, *i64:16, i32, i32:16, i32:16"
M, K, G, BN, LONG, INNER = 16, 8192, 128, 64, 6, 256
SHAPES = [(n, parts) for n in (8192, 2048, 208) for parts in (1, 4)]


def prepare(folder, tilelift):
    folder.mkdir(parents=True, exist_ok=True)

    def compiled(name, file, kernel, signature):
        ptx = subprocess.run([tilelift, "compile", KERNELS / file, "-n", kernel, "-s", signature, "-t", "sm_90a", "-w", "4", "--num-stages", "3",
                              "--meta", folder / f"{name}.json"], capture_output=True, text=True, check=True).stdout
        (folder / f"{name}.ptx").write_text(ptx)
    for parts in sorted({parts for _, parts in SHAPES}):
        for row in (False, True):
            compiled(f"{parts} {row}", "packed.py", "int4_matmul", f"{TYPES}, {G}, {M}, {BN}, {parts}, {row}")
    compiled("x", "thin.py", "few_rows", f"*fp16:16, *fp16:16, *fp16:16, i32, i32:16, i32:16, {M}, {BN}, 128, 1, True")


def differing(folder, n, parts, in_graph, begins_dependent=False):
    """How many results of rows are others, of how many; and what is left in the counts."""
    import torch
    from launch import Kernel
    load = lambda name: Kernel((folder / f"{name}.ptx").read_text(), json.loads((folder / f"{name}.json").read_text()))
    in_row, alone, product = load(f"{parts} True"), load(f"{parts} False"), load("x")
    half = lambda *shape: torch.randn(shape, device="cuda").half()
    words = [torch.randint(-1 << 15, 1 << 15, (n, K // 4), device="cuda").to(torch.int16) for _ in range(LONG)]

    def groups():
        scales = (torch.rand((K // (2 * G), n, 2), device="cuda") * 0.1 + 0.01).half()
        zeros = torch.randint(0, 16, scales.shape, device="cuda").half()
        return torch.stack([scales, zeros], 3).reshape(K // (2 * G), n, 4).contiguous().view(torch.int64)
    of_groups = [groups() for _ in range(LONG)]
    x, y, w, sources = half(M, K), half(M, INNER), half(K, INNER), [half(M, INNER) for _ in range(4)]
    write_x = product.bind((K // BN, 1), [x, y, w, M, K, INNER])
    shares, counts = torch.full((parts * n * M,), torch.nan, device="cuda"), torch.zeros(n, dtype=torch.int32, device="cuda")
    grid = (-(-n // BN), parts)
    args = lambda out, i: [out, shares, counts, x, words[i], of_groups[i], M, n, K]
    expected, outs = [], [half(M, n) for _ in range(LONG)]
    for source in sources:
        y.copy_(source)
        write_x()
        for i, out in enumerate(outs):
            alone.bind(grid, args(out, i))()
        expected.append([out.clone() for out in outs])
    row = [in_row.bind(grid, args(out, i), dependent=i > 0 or begins_dependent) for i, out in enumerate(outs)]

    def step(source):
        y.copy_(source)
        for buffer in (x, *outs):
            buffer.fill_(torch.nan)
        write_x()
        for go in row:
            go()
        return [out.clone() for out in outs]
    different = lambda found, wanted: sum(not torch.equal(a, b) for a, b in zip(found, wanted))
    found, source = 0, sources[0].clone()
    if in_graph:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            step(source)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                left = step(source)
    for i in range(60):
        source.copy_(sources[i % 4])
        torch.cuda.synchronize()
        if in_graph:
            graph.replay()
        else:
            left = step(source)
        torch.cuda.synchronize()
        found += different(left, expected[i % 4])
    return found, 60 * LONG, int(counts.abs().sum())


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["prepare", folder, tilelift]:
            prepare(Path(folder), tilelift)
        case ["run", folder]:
            total = 0
            for n, parts in SHAPES:
                for in_graph in (False, True):
                    found, of, left = differing(Path(folder), n, parts, in_graph)
                    total += found + left
                    print(f"{n} columns, {parts} parts, {'graph' if in_graph else 'stream'}: {found} of {of} differ, {left} left in counts", flush=True)
            found, of, _ = differing(Path(folder), *SHAPES[0], True, begins_dependent=True)
            print(f"where the first is dependent, too, {found} of {of} differ")
            sys.exit(bool(total))
        case _:
            sys.exit(__doc__)
