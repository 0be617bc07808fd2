"""A program that launches Triton's kernels, as it stands: each kernel is launched once more with Tilelift's code on the same arguments,
and the values are compared, and the times.

usage: beside.py TILELIFT PROGRAM.py [ARGUMENT ..]
       beside.py TILELIFT -m MODULE [ARGUMENT ..]     as in: beside.py target/release/tilelift -m pytest tests

The program goes on with the values of Triton. A kernel is compared once for each signature and set of options. Both sides begin with
the same bytes in each tensor, those that the kernel does not write included. Behind the program's own output stands a table: medians of
ROUNDS (5) alternating launches with the L2 cache flushed, Triton's time over ours, and the largest difference in units of the type's
last place at the largest value (for f32, of tf32's, as products may be of that); where that is large, both are launched once more, the
smaller difference counts, and a note says by how much Triton's two launches differ, as with atomics and races. Only kernels whose name
matches ONLY are compared, and of each autotuner only the first CONFIGS (1) configurations are tried; 0 leaves it alone. LOG names a
file for the rows, as JSON. OTHERS names more builds, with commas between them: what they make of the kernel is timed in the
same rounds, where it is other code; a build with other flags is a script that adds them. CUBINS names a folder with machine code of some
texts, each named by the text's SHA-256, which the driver then need not assemble.
"""
import atexit
import hashlib
import json
import math
import os
import re
import runpy
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parent))

import torch
import triton.language as tl
from cuda.bindings import driver as cu
from launch import Kernel, Refused, check
from sources import literal, name_of, of_library, source
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

TILELIFT = Path(sys.argv[1]).resolve() if len(sys.argv) > 2 else None
ROUNDS, CONFIGS = int(os.environ.get("ROUNDS", "5")), int(os.environ.get("CONFIGS", "1"))
ONLY = re.compile(os.environ.get("ONLY", ""))
LOG = open(os.environ["LOG"], "a") if "LOG" in os.environ else None
CUBINS = Path(os.environ["CUBINS"]) if "CUBINS" in os.environ else None
OTHERS = [Path(name).resolve() for name in os.environ.get("OTHERS", "").split(",") if name]
# Bytes of all tensors of a launch beyond which there is no room for their copies.
MOST_BYTES = int(os.environ.get("MOST_BYTES", str(16 << 30)))
# Bits behind the leading one.
DIGITS = {torch.float64: 52, torch.float32: 10, torch.float16: 10, torch.bfloat16: 7, torch.float8_e4m3fn: 3, torch.float8_e5m2: 2}
# Units in the last place from which a difference is reported. Sums in another order round differently, and once more when stored.
SUSPICIOUS = 4
rows, seen = [], set()


class Skipped(Exception):
    """What this program does not compare, with the reason."""


class Uncompiled(Exception):
    """What Tilelift says of a kernel that it does not compile."""


def held(value, depth=3):
    """The tensors among what an object holds, and what that holds."""
    for part in getattr(value, "__dict__", {}).values():
        if isinstance(part, torch.Tensor):
            yield part
        elif depth:
            yield from held(part, depth - 1)


def tensor(value):
    """The tensor that an argument is, or of which it is a place."""
    if isinstance(value, torch.Tensor):
        return value
    for whole in held(value):
        if value.data_ptr() == whole.data_ptr():
            return whole
        storage = whole.untyped_storage()
        at = value.data_ptr() - storage.data_ptr()
        if 0 <= at < storage.nbytes():
            return torch.empty(0, dtype=whole.dtype, device=whole.device).set_(storage, at // whole.element_size(), (1,))
    raise Skipped(f"a pointer of the type {type(value).__name__}, of which the memory is not known")


def promised_descriptor(kind, value):
    """A descriptor's entry, with what the launcher tells of a tensor's extents: that they are multiples of 16, 8, 4 or 2."""
    dtype, block = re.fullmatch(r"tensordesc<(\w+)\[([^\]]*)\].*>", kind).groups()
    factors = [max(f for f in (1, 2, 4, 8, 16) if extent % f == 0) for extent in value.shape]
    extents = [b.strip() + (f":{f}" if f > 1 else "") for b, f in zip(block.split(","), factors, strict=True)]
    return f"tensordesc<{dtype}[{', '.join(extents)}]>" + (":nan" if getattr(value, "padding", "zero") == "nan" else "")


def entry(kind, promise, value, given):
    """The signature's entry for an argument, of which Triton knows kind and promise. What is passed at launch is added to `given`."""
    if isinstance(kind, (tuple, list)):
        promises = promise if isinstance(promise, (tuple, list)) else [promise] * len(kind)
        inner = [entry(k, p, v, given) for k, p, v in zip(kind, promises, value, strict=True)]
        name = type(value).__name__ if hasattr(value, "_fields") else ""
        return f"{name}({', '.join(inner)}{',' if len(inner) == 1 else ''})"
    if kind == "constexpr":
        text = literal(value)
        if text is None:
            raise Skipped(f"a constant of the type {type(value).__name__}")
        return "i32:1" if type(value) is int and value == 1 and promise == 1 else text
    if kind.startswith("tensordesc"):
        given += [tensor(value.base), *value.shape, *value.strides[:-1]]
        return promised_descriptor(kind, value)
    given.append(tensor(value) if hasattr(value, "data_ptr") else value)
    return ("i1" if kind == "u1" else kind) + (":16" if promise and "D" in str(promise) else "")


class Storages:
    """The bytes of all tensors among the arguments. They are copied by the driver: a program may give torch's own functions other
    implementations, as Triton's kernels."""

    def __init__(self, given):
        found = {}
        for x in given:
            if isinstance(x, torch.Tensor) and x.is_cuda:
                found.setdefault(x.untyped_storage().data_ptr(), x)
        self.tensors = list(found.values())
        self.sizes = [x.untyped_storage().nbytes() for x in self.tensors]
        if 3 * sum(self.sizes) > MOST_BYTES:
            raise Skipped("too large for copies")

    def copy(self):
        copies = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in self.sizes]
        for x, copy, size in zip(self.tensors, copies, self.sizes):
            move(copy.data_ptr(), x.untyped_storage().data_ptr(), size)
        return copies

    def restore(self, copies):
        for x, copy, size in zip(self.tensors, copies, self.sizes):
            move(x.untyped_storage().data_ptr(), copy.data_ptr(), size)

    def off(self, copies):
        """By how much what they hold differs from these copies."""
        worst = 0.0
        for x, copy, size in zip(self.tensors, copies, self.sizes):
            both = [torch.empty(size, dtype=torch.uint8) for _ in range(2)]
            for host, place in zip(both, (x.untyped_storage().data_ptr(), copy.data_ptr())):
                if size:
                    check(cu.cuMemcpyDtoH(host.data_ptr(), place, size))
            dtype = x.dtype if size % x.element_size() == 0 else torch.uint8
            worst = max(worst, difference(*(host.view(dtype) for host in both)))
        return worst


def move(to, place, size):
    if size:
        check(cu.cuMemcpyDtoDAsync(to, place, size, torch.cuda.current_stream().cuda_stream))


def difference(ours, theirs):
    """By how many units two tensors of the host differ at most; infinity for what must be the same."""
    if torch.equal(ours.view(torch.uint8), theirs.view(torch.uint8)):
        return 0.0
    if ours.dtype not in DIGITS:
        # A number that was rounded otherwise may be another code; one that is counted or compared must be the same.
        apart = (ours.long() - theirs.long()).abs()
        print(f"beside: {int((apart > 0).sum())} of {apart.numel()} integers differ, by up to {int(apart.max())}", file=sys.stderr)
        return math.inf
    a, b = ours.double(), theirs.double()
    alike = (a == b) | a.isnan() & b.isnan()
    off = torch.where(alike, 0.0, (a - b).abs())
    finite = b[b.isfinite()].abs()
    top = float(finite.max()) if finite.numel() else 0.0
    worst = float(off.nan_to_num(nan=math.inf).max())
    unit = top * 2.0 ** -DIGITS[ours.dtype]
    return worst / unit if worst and unit else math.inf if worst else 0.0


def called_by_name(values):
    """The functions and the classes of tuples among arguments, which signatures call by name."""
    for value in values:
        value = value.value if isinstance(value, tl.constexpr) else value
        if isinstance(value, JITFunction) and not of_library(value):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from [type(value)] if hasattr(value, "_fields") else []
            yield from called_by_name(value)


def target():
    """The name of the device's architecture."""
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


def written(tilelift, text_of_file, jit, signature, options, *flags):
    """PTX and facts of the kernel, and of the one without tensor maps if there is one."""
    names = {"num_warps": "-w", "num_stages": "--num-stages", "num_ctas": "--num-ctas", "maxnreg": "--maxnreg"}
    flags = [*flags, *(x for name, flag in names.items() if getattr(options, name, None) for x in (flag, str(getattr(options, name))))]
    flags += [] if getattr(options, "enable_fp_fusion", True) else ["--no-fp-fusion"]
    flags += ["--debug"] if getattr(options, "debug", False) else []
    flags += [] if getattr(options, "sanitize_overflow", True) else ["--no-sanitize-overflow"]
    with tempfile.TemporaryDirectory() as folder:
        text, meta, file = Path(folder, "kernel.ptx"), Path(folder, "kernel.json"), Path(folder, "kernel.py")
        file.write_text(text_of_file)
        command = [tilelift, "compile", file, "-n", name_of(jit), "-s", signature, "-t", target(), *flags, "-o", text, "--meta", meta]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            lines = done.stderr.splitlines()
            first = next((i for i, line in enumerate(lines) if line.startswith("error")), 0)
            raise Uncompiled(" / ".join(line.strip() for line in lines[first:first + 3]))
        facts = json.loads(meta.read_text())
        kernels = [(text.read_text(), facts)]
        if "fallback" in facts:
            kernels.append((Path(folder, facts["fallback"]["ptx"]).read_text(), facts["fallback"]))
        return kernels


def compiled(*of):
    """The loaded kernels of what is `written`."""
    return [loaded(text, facts) for text, facts in written(*of)]


def loaded(text, facts):
    """The kernel of this text."""
    code = CUBINS / hashlib.sha256(text.encode()).hexdigest() if CUBINS else None
    kernel = Kernel(code.read_bytes() if code and code.exists() else text, facts)
    kernel.text = text
    return kernel


def bound(kernels, grid, given):
    """A callable that launches the first kernel that takes these arguments."""
    for kernel in kernels[:-1]:
        try:
            return kernel, kernel.bind(grid, given)
        except Refused as reason:
            print(f"beside: without tensor maps: {reason}", file=sys.stderr)
    return kernels[-1], kernels[-1].bind(grid, given)


def times(sides, restore):
    """Medians in us of callables that alternate."""
    # While the GPU writes it, Triton's launcher gets ready, which takes longer than many a kernel.
    flush = torch.empty(1 << 30, dtype=torch.int8, device="cuda")
    found = [[] for _ in sides]
    for _ in range(ROUNDS):
        for side, all_of_it in zip(sides, found):
            restore()
            check(cu.cuMemsetD8Async(flush.data_ptr(), 0, flush.nbytes, torch.cuda.current_stream().cuda_stream))
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            side()
            end.record()
            torch.cuda.synchronize()
            all_of_it.append(1000 * start.elapsed_time(end))
    return [statistics.median(x) for x in found]


def compare(jit, grid, args, kwargs, row):
    """Launches both sides, and leaves the values of Triton."""
    theirs = lambda: original(jit, *args, grid=grid, warmup=False, **kwargs)
    device = torch.cuda.current_device()
    named = {**kwargs, "debug": kwargs.get("debug", jit.debug), "instrumentation_mode": ""}
    arguments, specialization, _ = jit.device_caches[device][4](*args, **named)
    given = []
    spelled = [entry(kind, promise, value, given) for (kind, promise), value in zip(specialization, arguments.values(), strict=True)]
    signature = ", ".join(spelled)
    asked = {name: kwargs[name] for name in ("num_warps", "num_stages", "num_ctas", "maxnreg") if name in kwargs}
    key = (jit.fn.__code__, signature, *asked.items())
    if key in seen:
        return theirs()
    seen.add(key)
    storages = Storages(given)
    before = storages.copy()
    kernel = theirs()
    torch.cuda.synchronize()
    after = storages.copy()
    row |= {"signature": signature, "warps": kernel.metadata.num_warps, "stages": kernel.metadata.num_stages}
    try:
        text = source(jit, called_by_name(arguments.values()))
        builds = [compiled(build, text, jit, signature, kernel.metadata) for build in (TILELIFT, *OTHERS)]
        places = grid(arguments) if callable(grid) else grid
        used, ours = bound(builds[0], places, given)
        # Of the others, what makes the same code has the same time.
        others = [None if build[0].text == builds[0][0].text else bound(build, places, given)[1] for build in builds[1:]]
        row |= {"registers": [kernel.n_regs, used.registers], "local": [kernel.n_spills, used.local_bytes]}
        storages.restore(before)
        # What does not come back is told by the last line.
        print(f"beside: {row['kernel']}({signature})", file=sys.stderr, flush=True)
        ours()
        torch.cuda.synchronize()
        row["off"] = storages.off(after)
        if row["off"] > SUSPICIOUS:
            # Atomics, races and reads beyond tensors give Triton other values, too. Both once more.
            storages.restore(before)
            theirs()
            torch.cuda.synchronize()
            row["itself"] = storages.off(after)
            again = storages.copy()
            storages.restore(before)
            ours()
            torch.cuda.synchronize()
            row["off"] = min(row["off"], storages.off(again))
        if ROUNDS:
            more = [other for other in others if other]
            row["us"] = times([theirs, ours, *more], lambda: storages.restore(before))
            rest = iter(row["us"][2:])
            row["us"][2:] = [next(rest) if other else row["us"][1] for other in others]
    except Exception as problem:
        row["problem"] = f"{type(problem).__name__}: {problem}"
    finally:
        storages.restore(after)
        keep(row if "off" in row else {"problem": "stopped", **row})
    return kernel


def keep(row):
    """Writes a row at once, as a kernel may take the process with it."""
    rows.append(row)
    if LOG:
        print(json.dumps(row), file=LOG, flush=True)


original = JITFunction.run


def run(jit, *args, grid, warmup, **kwargs):
    """In place of Triton's own."""
    name = jit.fn.__name__
    if warmup or not ONLY.search(name) or torch.cuda.is_current_stream_capturing():
        return original(jit, *args, grid=grid, warmup=warmup, **kwargs)
    row = {"kernel": name, "file": jit.fn.__code__.co_filename}
    try:
        return compare(jit, grid, args, kwargs, row)
    except Skipped as reason:
        keep(row | {"problem": f"not compared: {reason}"})
        return original(jit, *args, grid=grid, warmup=False, **kwargs)


def begin(tuner, fn, arg_names, configs, *rest, **named):
    """In place of the autotuner's own beginning."""
    began(tuner, fn, arg_names, configs, *rest, **named)
    if CONFIGS:
        tuner.configs = tuner.configs[:CONFIGS]


began = Autotuner.__init__


def report():
    """The table, and the rows for whoever reads on."""
    timed = [row for row in rows if "us" in row]
    print(f"\n{'kernel':44} {'warps':>5} {'stages':>6} {'Triton':>9} {'ours':>9} {'ratio':>6} {'off by':>8}")
    for row in rows:
        if "problem" in row:
            print(f"{row['kernel'][:44]:44} {row['problem']}")
            continue
        theirs, ours, *others = row.get("us", (math.nan, math.nan))
        note = f"  LOOK (two launches of Triton's: {row['itself']:.2f})" if row["off"] > SUSPICIOUS else ""
        print(f"{row['kernel'][:44]:44} {row['warps']:5} {row['stages']:6} {theirs:9.1f} {ours:9.1f} {theirs / ours:6.2f} {row['off']:8.2f}"
              + "".join(f" {other:9.1f}" for other in others) + note)
    if timed:
        mean = math.exp(statistics.fmean(math.log(row["us"][0] / row["us"][1]) for row in timed))
        print(f"{len(rows)} kernels, {len(timed)} compared; geometric mean of Triton's time over ours {mean:.2f}")


def start_program():
    """Runs the program that the arguments name."""
    if sys.argv[2] == "-m":
        module, sys.argv = sys.argv[3], sys.argv[3:]
        sys.path[0] = os.getcwd()
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.argv = sys.argv[2:]
        sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
        runpy.run_path(sys.argv[0], run_name="__main__")


def main():
    if not TILELIFT:
        sys.exit(__doc__)
    JITFunction.run, Autotuner.__init__ = run, begin
    atexit.register(report)
    start_program()


if __name__ == "__main__":
    main()
