"""Kernels on Triton's interpreter and on ours: the same text, the same buffers, what is left compared.

    python fuzz/triton_interpreter.py --tilelift target/release/tilelift --made 2000        random kernels
    python fuzz/triton_interpreter.py --tilelift .. examples/kernels/*.py                   the `# run:` lines of files
    python fuzz/triton_interpreter.py --tilelift .. --deviations                            where Triton's interpreter is another

Needs Triton 3.6, NumPy and ml_dtypes, and no GPU. Each kernel becomes a file of its own with what Triton's interpreter left
beside it (`expect out = @..`), which `tilelift run` holds against our interpreter within the bounds that its ops state, as it does
the emulator. A kernel that is refused by Triton says nothing. What differs stays in the folder that --keep names.
"""
import argparse
import collections
import contextlib
import io
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent / "triton"))

import launches  # noqa: E402
from statements import Kernel  # noqa: E402

DEVIATIONS = pathlib.Path(__file__).parent / "triton/deviations.py"
# Kernels that one process of `tilelift run` takes, and one of Triton's.
BATCH = 50


def written(folder, stem, text):
    path = folder / f"{stem}.py"
    path.write_text(text)
    return path


def lines_of(text):
    return [line.removeprefix("# run: ") for line in text.splitlines() if line.startswith("# run: ")]


def prepared(folder, stem, text, place):
    """Files with one launch each, after Triton's interpreter has run it; and why others have none."""
    body = "\n".join(line for line in text.splitlines() if not line.startswith("# run: ")) + "\n"
    files, refused = [], []
    for number, line in enumerate(lines_of(text)):
        if "expect error" in line:
            continue
        name = f"{stem}_{number}"
        path = written(folder, name, body)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                line = launches.launch(launches.Line(line), launches.load_module(path), folder, name)
        except Exception as error:
            reason = str(error) or type(error).__name__
            refused.append((f"{place} {number}", reason))
            path.unlink()
            continue
        path.write_text(body + line + "\n")
        files.append(path)
    return files, refused


def batch(folder, texts):
    """`prepared` for several texts in a process of its own, as an access out of bounds would end it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with os.fdopen(writer, "wb") as pipe:
            for stem, text, place in texts:
                pickle.dump((stem, prepared(folder, stem, text, place)), pipe)
                pipe.flush()
        os._exit(0)
    os.close(writer)
    files, refused, left = [], [], {stem: place for stem, _, place in texts}
    with os.fdopen(reader, "rb") as pipe:
        while True:
            try:
                stem, (made, not_made) = pickle.load(pipe)
            except EOFError:
                break
            del left[stem]
            files += made
            refused += not_made
    os.waitpid(child, 0)
    if left:
        ended = next(iter(left.values()))
        refused.append((ended, "Triton's interpreter ended with its process"))
        refused += [(place, "not run") for place in list(left.values())[1:]]
    return files, refused


# Kernels of the repository that differ with such a signature, and which entry of `deviations.py` that is.
BF16, FP8, TF32 = "sums and products of bf16 are those of bits", "roundings to 8 bits lose a carry", "factors are not rounded to tf32"
CUT = "f32 becomes bf16 by leaving bits out"
KNOWN = {
    ("batched_matmul", "*fp32"): TF32,
    ("thin_matmul", "*bf16"): BF16,
    ("int4_matmul", "*bf16"): BF16,
    ("block_sparse", "*fp32, *bf16"): BF16,
    ("byte_weights", "*fp32, *fp32, *i32, *bf16"): BF16,
    ("group_scaled_matmul", "*bf16, *fp16"): CUT,
    ("scaled_matmul", "*bf16, *fp8e5"): BF16,
    ("block_scaled_matmul", "*bf16, *fp8e5"): BF16,
    ("few_rows", "*bf16"): BF16,
    ("few_rows_by_last", "*bf16"): BF16,
    ("few_rows_by_atomics", "*bf16"): BF16,
    ("gated", "*bf16"): BF16,
    ("varied", "*bf16"): BF16,
    ("quantize_blocks", "*fp8e5"): FP8,
}


def known(file):
    """Why a file differs, if that is known."""
    line = lines_of(file.read_text())[0]
    reasons = [reason for (kernel, types), reason in KNOWN.items() if line.startswith(kernel + " ") and f'"{types}' in line]
    return reasons[0] if reasons else None


# What the comparison leaves open, and is no difference.
OPEN = re.compile("no bounds follow from the ops|are other numbers and have no bound")


def judged(tilelift, files):
    """Messages for the files that differ or are refused, by file, and the number of those whose bounds are not known."""
    if not files:
        return {}, 0, 0
    run = subprocess.run([tilelift, "run", *map(str, files)], capture_output=True, text=True)
    fine = {pathlib.Path(line.removesuffix(": ok")) for line in run.stdout.splitlines() if line.endswith(": ok")}
    loose = run.stdout.count("agrees within the bounds of its ops\n")
    found, open_ones = {}, 0
    for file in files:
        if file in fine:
            continue
        said = subprocess.run([tilelift, "run", str(file)], capture_output=True, text=True).stderr
        if OPEN.search(said) and said.count("error:") == len(OPEN.findall(said)):
            open_ones += 1
        else:
            found[file] = said
    return found, open_ones, loose


def made(first, count):
    for seed in range(first, first + count):
        yield f"k{seed}", Kernel(seed).text, f"seed {seed}"


def of_files(paths):
    for number, path in enumerate(paths):
        yield f"f{number}_{path.stem}", path.read_text(), str(path)


def deviations(tilelift, path, folder):
    """Where entries of the list are no longer so, of Triton's interpreter or of ours."""
    text, wrong, stated = path.read_text(), [], None
    body = "\n".join(line for line in text.splitlines() if not line.startswith("# "))
    count = 0
    for line in text.splitlines():
        if line.startswith("# theirs: "):
            stated = line.removeprefix("# theirs: ")
        if not line.startswith("# run: "):
            continue
        count += 1
        name = f"deviation_{count}"
        file = written(folder, name, body + "\n")
        try:
            launches.launch(launches.Line(line.removeprefix("# run: ")), launches.load_module(file), folder, name)
            left = launches.load(folder / f"{name}.out.left.npy") if (folder / f"{name}.out.left.npy").exists() else \
                launches.load(folder / f"{name}.out.npy")
            negated, equal, values = stated.partition("out = ")
            is_so = equal != "" and launches.starts_with(left, values) != (negated == "not ")
            found = f"out = {left[:4]}"
        except Exception as error:
            found = str(error) or type(error).__name__
            is_so = "out = " not in stated and stated in found
        if not is_so:
            wrong.append(f"{line}\n  Triton's interpreter leaves {found}, and not {stated}")
        file.write_text(body + "\n" + line + "\n")
        run = subprocess.run([tilelift, "run", str(file)], capture_output=True, text=True)
        if run.returncode:
            wrong.append(f"{line}\n{run.stderr}")
    print(f"{count} deviations of Triton's interpreter, {len(wrong)} of them otherwise")
    print("\n".join(wrong))
    return len(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--tilelift", required=True)
    parser.add_argument("--made", type=int, default=0, help="random kernels")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--deviations", action="store_true", help="the list of them")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--show", action="store_true", help="the text of a seed, and nothing else")
    args = parser.parse_args()
    if args.show:
        print(Kernel(args.seed).text)
        return
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (args.keep or pathlib.Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        texts = [*made(args.seed, args.made), *of_files(args.files)]
        if args.deviations:
            sys.exit(deviations(args.tilelift, DEVIATIONS, folder) > 0)
        agreed = differing = deviating = unknown = within = 0
        reasons = collections.Counter()
        for at in range(0, len(texts), BATCH):
            files, refused = batch(folder, texts[at:at + BATCH])
            found, open_ones, loose = judged(args.tilelift, files)
            for place, reason in refused:
                reasons[re.sub(r"\d+", "N", reason)[:90]] += 1
                if not place.startswith("seed"):
                    print(f"{place}: not run: {reason[:200]}")
            agreed += len(files) - len(found) - open_ones
            for file in files:
                reason, differs = known(file), file in found
                if reason and differs:
                    del found[file]
                    deviating += 1
                    print(f"{file.stem}: as known, {reason}")
                elif reason:
                    found[file] = f"no longer so: {reason}"
            for file, message in found.items():
                print(f"== {file.stem}\n{message}\n", flush=True)
            differing += len(found)
            unknown += open_ones
            within += loose
            for file in files:
                if file not in found:
                    for other in folder.glob(file.stem + ".*"):
                        other.unlink()
    for reason, count in reasons.most_common(12):
        print(f"not run: {count} x {reason}")
    print(f"{agreed} launches leave the same ({within} buffers within bounds), {unknown} have no bounds, {deviating} differ as known, {differing} differ, "
          f"{sum(reasons.values())} not run; {time.monotonic() - start:.0f} s")
    sys.exit(differing > 0)


if __name__ == "__main__":
    main()
