"""Kernels about names, scopes and control flow, beside Python: the same text, executed by Python and run by us.

    python fuzz/triton_flow.py --tilelift target/release/tilelift --made 4000 --seed 0       random kernels
    python fuzz/triton_flow.py --tilelift x --seed 1234 --show                               the text of a seed

Needs NumPy, and neither Triton nor a GPU. Each kernel is launched twice; what Python leaves stands on its `# run:` lines, and
`tilelift run` holds it against our interpreter and the emulator. A kernel that is refused says nothing, but is counted by the reason.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent / "triton"))

import python_oracle  # noqa: E402
from flow import PREAMBLE, SLOTS, Flow  # noqa: E402

# Kernels of a file, which one process of `tilelift run` takes.
BATCH = 100
# What stands for the expectation of a launch in which Python finds a name without a value.
UNDEFINED = ""


def made(seeds, wild, reasons):
    """Kernels with what Python leaves: name, text, and lines of runs."""
    for seed in seeds:
        kernel = Flow(seed, wild)
        try:
            scope = python_oracle.loaded(kernel.text)
        except (SyntaxError, NameError, TypeError, RecursionError) as error:
            reasons[f"{type(error).__name__} of the module"] += 1
            continue
        runs = []
        for arguments in kernel.launches():
            try:
                memory = python_oracle.left(scope, kernel.name, SLOTS, arguments)
                expected = f"; expect out = {python_oracle.shown(memory)}"
            except NameError:
                expected = UNDEFINED
            except Exception as error:
                reasons[re.sub(r"'[^']*'|\d+", "..", f"{type(error).__name__}: {error}")[:70]] += 1
                continue
            values = " ".join(f"{name}={value}" for name, (value, is_constant) in arguments.items() if not is_constant)
            runs.append((f'# run: {kernel.name} "*fp64, i32, i32, i32, {arguments["C"][0]}" : grid(1) out=f64[{SLOTS}] zeros {values} ', expected))
        if runs:
            yield kernel.name, kernel.text, runs


def judged(tilelift, path, kernels):
    """What is said about each kernel of a file, by name."""
    text, owner = PREAMBLE, {}
    for name, body, runs in kernels:
        first = text.count("\n") + 1
        text += body + "\n".join(line + expected for line, expected in runs) + "\n\n"
        owner.update(dict.fromkeys(range(first, text.count("\n") + 1), name))
    path.write_text(text)
    run = subprocess.run([tilelift, "run", str(path)], capture_output=True, text=True)
    said = collections.defaultdict(list)
    for part in re.split(r"\n(?=error|warning|\S+\.py:\d+)", "\n" + run.stderr):
        if "error" not in part.split("\n")[0]:
            continue
        line = re.search(r"run of line (\d+)", part) or re.search(re.escape(path.name) + r":(\d+)", part)
        said[owner[int(line[1])] if line else ""].append(part)
    if run.returncode not in (0, 1) or run.returncode == 1 and not said:
        said[""].append(f"ended with {run.returncode}: {run.stderr[-500:]}")
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tilelift", required=True)
    parser.add_argument("--made", type=int, default=0, help="random kernels")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--wild", type=float, default=0.01, help="how often a name is used that may have no value, or one of another type")
    parser.add_argument("--keep", type=pathlib.Path, help="where files stay")
    parser.add_argument("--show", action="store_true", help="the text of a seed, and nothing else")
    args = parser.parse_args()
    if args.show:
        print(PREAMBLE + Flow(args.seed, args.wild).text)
        return
    start = time.monotonic()
    reasons, codes = collections.Counter(), collections.Counter()
    examples = {}
    count = agreed = refused = differing = 0
    end = args.seed + args.made
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or pathlib.Path(temporary)
        folder.mkdir(exist_ok=True, parents=True)
        for at in range(args.seed, end, BATCH):
            kernels = list(made(range(at, min(at + BATCH, end)), args.wild, reasons))
            count += len(kernels)
            said = judged(args.tilelift, folder / f"flow{at}.py", kernels)
            for message in said.pop("", []):
                differing += 1
                print(f"== {at}: {message}\n", flush=True)
            for name, _, runs in kernels:
                codes_of = [re.match(r"error\[(F\d+)\]: (.*)", message) for message in said[name]]
                code = next(filter(None, codes_of), None)
                if code:
                    refused += 1
                    key = code[1] + " " + re.sub(r"`[^`]*`|\d+", "..", code[2])[:80]
                    codes[key] += 1
                    examples.setdefault(key, name)
                elif said[name] or any(expected == UNDEFINED for _, expected in runs):
                    differing += 1
                    print(f"== {name}: {(said[name] or ['a name has no value to Python, and nothing is refused'])[0][:700]}\n", flush=True)
                else:
                    agreed += 1
    for key, number in codes.most_common():
        print(f"refused: {number} x {key} ({examples[key]})")
    for key, number in reasons.most_common(12):
        print(f"not run: {number} launches: {key}")
    print(f"{count} kernels: {agreed} leave the same, {refused} are refused, {differing} differ; {time.monotonic() - start:.0f} s")
    sys.exit(differing > 0)


if __name__ == "__main__":
    main()
