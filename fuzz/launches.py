"""Launches the kernels that tests write for it: every one many times, every byte as the emulator left it, or every number as close
as the rounding of its sum allows. `TILELIFT_LAUNCHES=FOLDER cargo test --test fuzz role_kernels` writes kernels with roles,
`promoted_kernels` such with tensor maps and without, `TILELIFT_LAUNCHES=FOLDER TILELIFT_DOTS=450 cargo test --test compiler
launches_for_a_gpu` products.

usage: launches.py FOLDER [ROUNDS [BY_DRIVER]]     needs torch, ptxas and a Hopper GPU

Cubins are made by ptxas on all cores before anything is launched; the first BY_DRIVER kernels are given to the driver as text, too.
Half of the rounds are those of NAME.bounded.ptx, whose waits give up and say where, and come first; the other half those of the text
that is shipped. Each half is launched by a process of its own, which is ended when it says nothing for a minute: then that kernel
hangs, its bounded text is launched once more to name the wait, and another process goes on behind it.
"""
import json
import os
import queue
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benches/gpu"))

# Seconds in which a process says something, if it does not hang; five times as many for the first kernel, which waits for torch.
PATIENCE = 60


def assemble(path):
    cubin = path.with_suffix(".cubin")
    done = subprocess.run([os.environ.get("PTXAS", "ptxas"), "-arch=sm_90a", path, "-o", cubin], capture_output=True, text=True)
    return None if done.returncode == 0 else f"{path.name}: {done.stderr[:300]}"


# ---- the process that launches --------------------------------------------------------------------------------------------

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


def gave_up(kernel, meta):
    """What the first wait that gave up says of itself; none if all came to their end."""
    from cuda.bindings import driver as cu
    from launch import check
    if "log" not in meta:
        return None
    import torch
    torch.cuda.synchronize()
    address, _ = check(cu.cuModuleGetGlobal(kernel.module, meta["log"]["symbol"].encode()))
    header = bytearray(8)
    check(cu.cuMemcpyDtoH(header, address, 8))
    site = int.from_bytes(header[4:], "little")
    return meta["log"]["sites"][site - 1] if site else None


def launch_one(path, kind, rounds, by_driver):
    """What became of the launches of a kernel."""
    import torch
    from launch import Kernel, Refused
    base = path.parent / path.stem
    meta = json.loads(Path(f"{base}{kind}.json").read_text())
    launch = json.loads(base.with_suffix(".launch").read_text())
    content = base.with_suffix(".bytes").read_bytes()
    row = {"name": path.stem, "launches": 0, "persistent": bool(meta.get("persistent")), "wrong": None, "maps": True}
    given = [arg for arg in launch["args"] if "bytes" in arg]
    at, places = 0, []
    for size in [arg["bytes"] for arg in given] + [arg["bytes"] for arg in given if not arg["kept"]]:
        places.append(torch.frombuffer(bytearray(content[at:at + size]), dtype=torch.uint8).cuda())
        at += size
    distances = torch.frombuffer(bytearray(content[at:]), dtype=torch.float64).cuda() if at < len(content) else None
    first, changed = places[:len(given)], iter(places[len(given):])
    last = [begin if arg["kept"] else next(changed) for arg, begin in zip(given, first)]
    texts = [Path(f"{base}{kind}.cubin").read_bytes()] + ([Path(f"{base}{kind}.ptx").read_text()] if by_driver else [])
    for text in texts:
        kernel = Kernel(text, meta)
        held = [buffer.clone() for buffer in first]
        buffers = iter(held)
        values = [next(buffers)[arg["at"]:] if "bytes" in arg else arg["bits"] for arg in launch["args"]]
        try:
            # So few that each has several programs.
            ways = [kernel.bind(launch["grid"], values, ctas) for ctas in ((1, 2, 3) if meta.get("persistent") else (None,))]
        except Refused:
            row["maps"] = False
            continue
        for turn in range(rounds):
            for buffer, begin in zip(held, first):
                buffer.copy_(begin)
            ways[turn % len(ways)]()
            other = differ(held, last, launch, distances)
            row["launches"] += 1
            wait = gave_up(kernel, meta) if kind else None
            if wait or other is not None:
                row["wrong"] = f"gave up: {wait}" if wait else f"buffer {other}, turn {turn}"
                break
    return row


def launch_all(folder, kind, rounds, by_driver):
    """Launches the kernels whose names come on standard input, and says what became of each as soon as it is known."""
    for line in sys.stdin:
        name, number = line.split()
        row = launch_one(Path(folder) / f"{name}.ptx", kind, rounds, int(number) < by_driver)
        print(json.dumps(row), flush=True)


# ---- the process that watches ---------------------------------------------------------------------------------------------

def watched(command, names, patience):
    """The lines that a process prints for these names, as objects. It is ended if it prints none for so many seconds."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    lines = queue.Queue()

    def read():
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        process.stdin.write("".join(f"{name} {number}\n" for number, name in names))
        process.stdin.close()
        left = 5 * patience
        while (line := lines.get(timeout=left)) is not None:
            left = patience
            yield json.loads(line)
    except (queue.Empty, BrokenPipeError):
        pass
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stdout.close()


def half(child, names, kind, patience=PATIENCE):
    """What became of all kernels, launched as long as it takes processes to do so; what hangs has no launches."""
    rows, left = [], list(enumerate(names))
    while left:
        for row in watched([*child, kind], left, patience):
            rows.append(row)
            left.pop(0)
        if left:
            _, name = left.pop(0)
            rows.append({"name": name, "launches": 0, "persistent": False, "maps": True, "wrong": "hangs, or ends its process"})
    return rows


def run(child, names, bounded, patience=PATIENCE):
    """Both halves; of what hangs as it is shipped the wait that its bounded text names."""
    rows = half(child, bounded, ".bounded", patience) if bounded else []
    shipped = half(child, names, "", patience)
    for row in shipped:
        if row["wrong"] and row["name"] in bounded and not row["launches"]:
            (again,) = half(child, [row["name"]], ".bounded", patience)
            row["wrong"] += f"; with bounds: {again['wrong'] or 'nothing is wrong'}"
    return rows + shipped


def main(folder, rounds, by_driver):
    before = time.monotonic()
    texts = list(Path(folder).glob("*.ptx"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        refused = [line for line in pool.map(assemble, texts) if line]
    print(f"{len(texts)} texts assembled in {time.monotonic() - before:.0f} s, {len(refused)} refused", *refused[:5], flush=True)
    found = sorted((path.name.removesuffix(".ptx") for path in texts), key=lambda name: int(name.split(".")[0][1:]))
    names = [name for name in found if "." not in name]
    bounded = [name.split(".")[0] for name in found if "." in name]
    each = (rounds + 1) // 2 if bounded else rounds
    before = time.monotonic()
    rows = run([sys.executable, __file__, "child", folder, str(each), str(by_driver)], names, bounded)
    wrong = [row for row in rows if row["wrong"]]
    for row in wrong:
        print(f"{row['name']}: {row['wrong']}")
    launches, persistent = sum(row["launches"] for row in rows), sum(row["persistent"] for row in rows)
    print(f"{launches} launches of {len(names)} kernels ({len(bounded)} with bounds, too; {persistent} texts persistent) in "
          f"{time.monotonic() - before:.0f} s, {sum(not row['maps'] for row in rows)} texts without maps; wrong: {len(wrong)}")
    return bool(wrong or refused)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["child", folder, rounds, by_driver, kind]:
            launch_all(folder, kind, int(rounds), int(by_driver))
        case [folder, *counts] if len(counts) <= 2:
            sys.exit(main(folder, *[int(x) for x in counts + ["50", "200"][len(counts):]]))
        case _:
            sys.exit(__doc__)
