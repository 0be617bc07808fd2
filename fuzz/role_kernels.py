"""Launches the kernels that `fuzz/role_kernels.rs` writes: every one many times, every byte as the emulator left it.

usage: role_kernels.py FOLDER [ROUNDS [BY_DRIVER]]     needs torch, ptxas and a Hopper GPU

Cubins are made by ptxas on all cores before anything is launched; the first BY_DRIVER kernels are given to the driver as text, too.
A launch that takes longer than a minute ends the process: a kernel hangs, and its name was printed last.
"""
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benches/gpu"))


def assemble(path):
    cubin = path.with_suffix(".cubin")
    done = subprocess.run([os.environ.get("PTXAS", "ptxas"), "-arch=sm_90a", path, "-o", cubin], capture_output=True, text=True)
    return None if done.returncode == 0 else f"{path.name}: {done.stderr[:300]}"


def main(folder, rounds, by_driver):
    before = time.monotonic()
    paths = sorted(Path(folder).glob("*.ptx"), key=lambda path: int(path.stem[1:]))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        refused = [line for line in pool.map(assemble, paths) if line]
    print(f"{len(paths)} kernels assembled in {time.monotonic() - before:.0f} s, {len(refused)} refused", *refused[:5], flush=True)
    import torch
    from launch import Kernel, Refused
    launches, wrong, fallbacks, kinds = 0, [], 0, {"persistent": 0, "registers": 0}
    before = time.monotonic()
    for number, path in enumerate(paths):
        meta, launch = json.loads(path.with_suffix(".json").read_text()), json.loads(path.with_suffix(".launch").read_text())
        content = path.with_suffix(".bytes").read_bytes()
        kinds["persistent"] += bool(meta.get("persistent"))
        sizes = [arg["bytes"] for arg in launch["args"] if "bytes" in arg]
        at, places = 0, []
        for size in sizes * 2:
            places.append(torch.frombuffer(bytearray(content[at:at + size]), dtype=torch.uint8).cuda())
            at += size
        first, last = places[:len(sizes)], places[len(sizes):]
        texts = [path.with_suffix(".cubin").read_bytes()] + ([path.read_text()] if number < by_driver else [])
        for text in texts:
            kernel = Kernel(text, meta)
            held = [buffer.clone() for buffer in first]
            buffers = iter(held)
            values = [next(buffers) if "bytes" in arg else arg["bits"] for arg in launch["args"]]
            signed = [value - (1 << 32) if isinstance(value, int) and value >> 31 == 1 else value for value in values]
            try:
                # So few that each has several programs.
                ways = [kernel.bind(launch["grid"], signed, ctas) for ctas in ((1, 2, 3) if meta.get("persistent") else (None,))]
            except Refused:
                fallbacks += 1
                continue
            for turn in range(rounds):
                for buffer, begin in zip(held, first):
                    buffer.copy_(begin)
                signal.alarm(60)
                ways[turn % len(ways)]()
                same = all(torch.equal(buffer, end) for buffer, end in zip(held, last))
                signal.alarm(0)
                launches += 1
                if not same:
                    wrong.append(path.stem)
                    print("other bytes:", path.stem, flush=True)
                    break
    seconds = time.monotonic() - before
    print(f"{launches} launches of {len(paths)} kernels ({kinds['persistent']} persistent) in {seconds:.0f} s, {fallbacks} without maps; "
          f"other bytes: {len(wrong)} {wrong[:10]}", torch.cuda.get_device_name(0), flush=True)
    return bool(wrong or refused)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], *[int(x) for x in (sys.argv[2:] + ["50", "200"][len(sys.argv) - 2:])]))
