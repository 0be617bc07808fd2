"""Launches the kernels that tests write for it: every one many times, every byte as the emulator left it, or every number as close
as the rounding of its sum allows. `TILELIFT_LAUNCHES=FOLDER cargo test --test fuzz role_kernels` writes kernels with roles,
`TILELIFT_LAUNCHES=FOLDER TILELIFT_DOTS=450 cargo test --test compiler launches_for_a_gpu` products.

usage: launches.py FOLDER [ROUNDS [BY_DRIVER]]     needs torch, ptxas and a Hopper GPU

Cubins are made by ptxas on all cores before anything is launched; the first BY_DRIVER kernels are given to the driver as text, too.
A launch that takes longer than a minute ends the process: a kernel hangs, and FOLDER/running has its name.
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


def differ(held, last, launch, distances):
    """The number of a buffer that is not as it must be; none if all are."""
    import torch
    close = launch.get("close")
    for index, (found, end) in enumerate(zip(held, last)):
        if close and close["buffer"] == index:
            types = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
            found, end = (buffer.view(types[close["element"]]).double() for buffer in (found, end))
            # Written so that what is no number is not close.
            if not bool(((found - end).abs() <= distances).all()):
                return index
        elif not torch.equal(found, end):
            return index
    return None


def main(folder, rounds, by_driver):
    before = time.monotonic()
    paths = sorted(Path(folder).glob("*.ptx"), key=lambda path: int(path.stem[1:]))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        refused = [line for line in pool.map(assemble, paths) if line]
    print(f"{len(paths)} kernels assembled in {time.monotonic() - before:.0f} s, {len(refused)} refused", *refused[:5], flush=True)
    import torch
    from launch import Kernel, Refused
    launches, wrong, fallbacks, persistent = 0, [], 0, 0
    before = time.monotonic()
    for number, path in enumerate(paths):
        meta, launch = json.loads(path.with_suffix(".json").read_text()), json.loads(path.with_suffix(".launch").read_text())
        content = path.with_suffix(".bytes").read_bytes()
        persistent += bool(meta.get("persistent"))
        (Path(folder) / "running").write_text(path.stem)
        sizes = [arg["bytes"] for arg in launch["args"] if "bytes" in arg]
        at, places = 0, []
        for size in sizes * 2:
            places.append(torch.frombuffer(bytearray(content[at:at + size]), dtype=torch.uint8).cuda())
            at += size
        distances = torch.frombuffer(bytearray(content[at:]), dtype=torch.float64).cuda() if at < len(content) else None
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
                other = differ(held, last, launch, distances)
                signal.alarm(0)
                launches += 1
                if other is not None:
                    wrong.append(path.stem)
                    print(f"other bytes: {path.stem}, buffer {other}, turn {turn}", flush=True)
                    break
    seconds = time.monotonic() - before
    print(f"{launches} launches of {len(paths)} kernels ({persistent} persistent) in {seconds:.0f} s, {fallbacks} without maps; "
          f"other bytes: {len(wrong)} {wrong[:10]}", torch.cuda.get_device_name(0), flush=True)
    return bool(wrong or refused)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], *[int(x) for x in (sys.argv[2:] + ["50", "200"][len(sys.argv) - 2:])]))
