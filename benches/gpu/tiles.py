"""Blocks of a large matrix: Tilelift beside Triton on one GPU, right results first, then times.

usage: tiles.py KERNELS [--quick] [--only NAME,NAME]

KERNELS is the folder that `cargo run --release --example bench_tiles -- KERNELS` writes: PTX and metadata of each kernel for
several numbers of warps, and index.json. The same kernels in Triton are in tile_peers.py. Each program handles one block of 64 x 64 of
a matrix of 8192 x 8192 (or a line of a vector of as many elements). Every output is poisoned before it is checked against torch,
exactly or in f64. Times are CUDA events with the L2 cache flushed before each call; each side chooses its best number of
warps, then both alternate in five rounds of eight slices. The table shows the ratio of the medians (Triton's time over ours),
how the sides stand apart (see compare.py), and the quartiles of all calls.
"""
import json
import statistics
import sys
from pathlib import Path

import torch
import triton

import launch
from compare import apart, quartiles, times
from tile_peers import PEERS

TYPES = {"f16": torch.float16, "f32": torch.float32, "i8": torch.int8, "i32": torch.int32}


def close(found, want, scale, bound):
    """Whether each element is within `bound` of `scale`, the sum of sizes that went into it."""
    return bool(((found.double() - want).abs() <= bound * scale + 1e-30).all())


class Work:
    """Inputs, outputs and grid of a kernel, and how its results are checked."""

    def __init__(self, name, types, index):
        self.name, self.index = name, index
        n, t, line, bins = (index[k] for k in ("matrix", "tile", "line", "bins"))
        self.n, self.t, self.bins = n, t, bins
        total, tiles = n * n, n // t
        dtypes = [TYPES[ty] for ty in types]
        random = lambda size, dtype=torch.float32: torch.randn(size, device="cuda").to(dtype)
        empty = lambda size, dtype: torch.empty(size, device="cuda", dtype=dtype)
        self.grid, sizes = (tiles, tiles), [(n, n)] * len(types)
        self.n_inputs = 1
        self.index_in = None
        if name in ("interleave", "split_pairs"):
            pairs = total // 2
            self.grid = (pairs // line,)
            sizes = [pairs, pairs, total] if name == "interleave" else [total, pairs, pairs]
            self.n_inputs = 2 if name == "interleave" else 1
        elif name == "outer_product":
            count = total // (t * t)
            self.grid, sizes = (count,), [count * t, (count, t, t)]
        elif name == "row_and_column_sums":
            sizes = [(n, n), (tiles, n), (tiles, n)]
        elif name == "row_argmax":
            sizes = [(n, n), (tiles, n)]
        elif name == "histogram":
            count = total // (4 * line)
            self.grid, sizes = (count,), [(count, 4 * line), (count, bins)]
        elif name == "sort":
            self.grid, sizes = (total // line,), [(total // line, line)] * 2
        elif name in ("mixed", "gather_rows", "gather_columns"):
            self.n_inputs = 2
        self.inputs = []
        for i in range(self.n_inputs):
            if name == "histogram":
                # All in bins: Triton 3.6 counts what lies outside somewhere.
                self.inputs.append(torch.randint(0, bins, sizes[i], device="cuda", dtype=torch.int32))
            elif dtypes[i] == torch.int32:
                self.inputs.append(torch.randint(0, t, sizes[i], device="cuda", dtype=torch.int32))
            elif name == "row_argmax":
                # Few enough values for ties.
                self.inputs.append(torch.randint(-40, 40, sizes[i], device="cuda").float())
            elif name == "mixed":
                self.inputs.append((random(sizes[i]) * 20).clamp(-60, 60).to(dtypes[i]))
            else:
                self.inputs.append(random(sizes[i], dtypes[i]))
        self.outputs = [empty(sizes[i], dtypes[i]) for i in range(self.n_inputs, len(types))]
        self.bytes = sum(x.nbytes for x in self.inputs + self.outputs)
        self.poison()

    def poison(self):
        for out in self.outputs:
            out.view(torch.uint8).fill_(0xA5)

    def ours(self, kernel):
        return kernel.bind(self.grid, self.inputs + self.outputs)

    def theirs(self, warps):
        kernel, args = PEERS[self.name], self.inputs + self.outputs
        sizes = {"N": self.n, "T": self.t, "L": self.index["line"], "BINS": self.bins}
        return lambda: kernel[self.grid](*args, **sizes, num_warps=warps)

    def tiles_of(self, x):
        k = self.n // self.t
        return x.view(k, self.t, k, self.t)

    def check(self):
        x, out, name = self.inputs[0], self.outputs[0], self.name
        if name in ("transpose", "turn"):
            return torch.equal(out, x.t())
        if name == "row_and_column_sums":
            tiles = self.tiles_of(x)
            right = []
            for dim, found in ((3, self.outputs[0]), (1, self.outputs[1])):
                # Sums of rows of tiles: tile column by row; of columns: tile row by column.
                want = tiles.sum(dim, dtype=torch.float64)
                size = tiles.abs().sum(dim, dtype=torch.float64)
                if dim == 3:
                    want, size = (v.permute(2, 0, 1).reshape(found.shape) for v in (want, size))
                else:
                    want, size = (v.reshape(found.shape) for v in (want, size))
                # 64 additions in any order.
                right.append(close(found, want, size, 64 * 2.0**-24))
            return all(right)
        if name == "centre":
            tiles = self.tiles_of(x)
            sums = tiles.sum(1, keepdim=True, dtype=torch.float64)
            size = tiles.abs().sum(1, keepdim=True, dtype=torch.float64) + tiles.abs()
            return close(self.tiles_of(out), tiles.double() - sums, size, 66 * 2.0**-24)
        if name.startswith("scan"):
            want, size = self.tiles_of(x).double(), self.tiles_of(x).abs().double()
            for dim, other in ((3, "scan_columns"), (1, "scan_rows")):
                if name != other:
                    want, size = want.cumsum(dim), size.cumsum(dim)
            return close(self.tiles_of(out), want, size, 128 * 2.0**-24)
        if name == "mixed":
            return torch.equal(out, (x.float() + self.inputs[1]).to(torch.int8))
        if name in ("gather_rows", "gather_columns"):
            dim = 3 if name == "gather_rows" else 1
            want = torch.gather(self.tiles_of(x), dim, self.tiles_of(self.inputs[1]).long())
            return torch.equal(self.tiles_of(out), want)
        if name == "interleave":
            return torch.equal(out, torch.stack((x, self.inputs[1]), 1).flatten())
        if name == "split_pairs":
            return all(torch.equal(found, x.view(-1, 2)[:, i]) for i, found in enumerate(self.outputs))
        if name == "outer_product":
            v = x.view(-1, self.t)
            return torch.equal(out, v[:, :, None] * v[:, None, :])
        if name == "row_argmax":
            tiles = self.tiles_of(x)
            best = tiles == tiles.amax(3, keepdim=True)
            place = torch.arange(self.t, device="cuda").expand_as(tiles)
            want = torch.where(best, place, self.t).amin(3)
            return torch.equal(out, want.permute(2, 0, 1).reshape(out.shape).int())
        if name == "histogram":
            want = torch.zeros_like(out)
            want.scatter_add_(1, x.long(), torch.ones_like(x))
            return torch.equal(out, want)
        if name == "sort":
            return torch.equal(out, x.sort(1).values)
        raise ValueError(name)


def run(fn, work):
    work.poison()
    fn()
    torch.cuda.synchronize()
    return work.check()


def main():
    folder = Path(sys.argv[1])
    quick = "--quick" in sys.argv
    only = sys.argv[sys.argv.index("--only") + 1].split(",") if "--only" in sys.argv else None
    torch.manual_seed(7)
    index = json.loads((folder / "index.json").read_text())
    print("device", torch.cuda.get_device_name(0), "torch", torch.__version__, "triton", triton.__version__, flush=True)
    rows, wrong = [], 0
    for entry in index["kernels"]:
        name = entry["name"]
        if only and name not in only:
            continue
        work = Work(name, entry["types"], index)
        ours, theirs, notes = [], [], []
        for warps in entry["warps"]:
            kernel = launch.Kernel((folder / f"{name}_{warps}.ptx").read_text(),
                                   json.loads((folder / f"{name}_{warps}.json").read_text()))
            fn = work.ours(kernel)
            if run(fn, work):
                ours.append((f"w{warps}", fn))
            else:
                wrong += 1
                notes.append(f"ours w{warps} WRONG")
            if kernel.local_bytes:
                notes.append(f"ours w{warps} spills {kernel.local_bytes}")
        for warps in entry["warps"]:
            fn = work.theirs(warps)
            try:
                right = run(fn, work)
            except Exception as error:
                notes.append(f"Triton w{warps} fails: {type(error).__name__}")
                continue
            if right:
                theirs.append((f"w{warps}", fn))
            else:
                # Scans with one warp along rows, for instance; not ours to judge, and not a time to compare with.
                notes.append(f"Triton w{warps} wrong")
        if not ours or not theirs:
            rows.append(f"{name:20} no comparison  {'; '.join(notes)}")
            print(rows[-1], flush=True)
            continue
        tune = 2 if quick else 8
        each = [[(statistics.median(times(fn, tune)), label, fn) for label, fn in side] for side in (ours, theirs)]
        (_, our_label, our_fn), (_, their_label, their_fn) = (min(side, key=lambda f: f[0]) for side in each)
        budget, slices, rounds = (8, 2, 2) if quick else (40, 8, 5)
        samples = [[], []]
        for _ in range(rounds):
            for sample in samples:
                sample.append([])
            # Who goes first changes with each slice, so that nothing the one leaves behind favours the other.
            for slice_ in range(slices):
                for sample, fn in list(zip(samples, (our_fn, their_fn)))[:: 1 if slice_ % 2 == 0 else -1]:
                    sample[-1] += times(fn, budget / slices)
        qa, qb = (quartiles([t for r in side for t in r]) for side in samples)
        rate = lambda ms: work.bytes / ms * 1e-6
        tried = " | ".join(" ".join(f"{label}:{ms * 1e3:.0f}" for ms, label, _ in side) for side in each)
        rows.append(f"{name:20} {rate(qa[1]):6.0f} {rate(qb[1]):6.0f}  {qb[1] / qa[1]:6.3f} {apart(*samples):7} "
                    f"{qa[0]*1e3:8.2f} {qa[1]*1e3:8.2f} {qa[2]*1e3:8.2f} | {qb[0]*1e3:8.2f} {qb[1]*1e3:8.2f} {qb[2]*1e3:8.2f}  "
                    f"{our_label} / {their_label}  [{tried}] {'; '.join(notes)}")
        print(rows[-1], flush=True)
        del work, ours, theirs, each, our_fn, their_fn
        torch.cuda.empty_cache()
    print("\nkernel                 ours Triton   ratio apart    ours us (q1 med q3) | Triton us   warps  [tuning]; GB/s")
    print("\n".join(rows))
    print("wrong results:", wrong)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
