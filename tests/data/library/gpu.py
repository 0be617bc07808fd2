"""Runs the kernels that `TILELIFT_KERNELS=FOLDER cargo test --test language library` wrote on a GPU, and compares:

    python tests/data/library/gpu.py FOLDER

Needs CuPy and a driver, no compiler. Prints what differs, and one line with the counts last.
"""

import math
import pathlib
import sys

import numpy as np

FLOATS = {"fp16": (5, 10), "bf16": (8, 7), "fp32": (8, 23), "fp64": (11, 52), "fp8e5": (5, 2), "fp8e4nv": (4, 3)}


def value(dtype, bits):
    if dtype == "fp64":
        return float(np.uint64(bits).view(np.float64))
    if dtype == "fp32":
        return float(np.uint32(bits).view(np.float32))
    if dtype == "fp16":
        return float(np.uint16(bits).view(np.float16))
    if dtype == "bf16":
        return float(np.uint32(bits << 16).view(np.float32))
    if dtype == "fp8e5":
        return float(np.uint16(bits << 8).view(np.float16))
    exponent, fraction = (bits & 127) >> 3, bits & 7
    size = fraction * 2.0**-9 if exponent == 0 else (1 + fraction / 8) * 2.0**(exponent - 7)
    return math.nan if bits & 127 == 127 else math.copysign(size, -1 if bits & 128 else 1)


def same(dtype, tolerance, found, expected, width):
    if found == expected:
        return True
    if dtype not in FLOATS:
        return False
    a, b = value(dtype, found), value(dtype, expected)
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    kind, bound = tolerance
    if kind == "abs":
        return abs(a - b) <= bound
    if kind == "rel":
        return abs(a - b) <= bound * abs(b)
    top = 1 << (width - 1)
    line = lambda bits: -(bits & (top - 1)) if bits & top else bits
    return abs(line(found) - line(expected)) <= bound


def tolerance_of(stated):
    for field in stated.split(" | "):
        kind, _, number = field.strip().partition(" ")
        if kind in ("ulp", "abs", "rel"):
            return kind, float(number)
    return "ulp", 0


def differences(result, dtype, tolerance, found, digits):
    """What of the bytes is not as the digits say."""
    width = {"fp64": 8, "i64": 8, "u64": 8, "fp32": 4, "i32": 4, "u32": 4, "fp16": 2, "bf16": 2, "i16": 2,
             "u16": 2}.get(dtype, 1)
    wrong = []
    for i in range(len(found) // width):
        f = int.from_bytes(found[width * i:width * (i + 1)], "little")
        e = int(digits[2 * width * i:2 * width * (i + 1)], 16)
        if not same(dtype, tolerance, f, e, 8 * width):
            wrong.append(f"{result}[{i}] is {f:x}, expected {e:x}")
    return wrong


def run(path):
    import cupy

    lines = path.read_text().splitlines()
    stated = lines[0].removeprefix("case ")
    tolerance = tolerance_of(stated)
    target = int(stated.split("target sm_")[1][:2]) if "target sm_" in stated else 80
    major, minor = (int(c) for c in cupy.cuda.Device().compute_capability)
    if target > 10 * major + minor:
        return stated, None
    _, name, shared, warps, *grid = lines[1].split()
    module = cupy.cuda.function.Module()
    module.load(path.with_suffix(".ptx").read_bytes() + b"\0")
    args, arrays = [], {}
    given = [line for line in lines[2:] if not line.startswith("expect ")]
    for i, line in enumerate(given):
        kind, rest = line.split(" ", 1)
        if kind == "number":
            bits, width = (int(x) for x in rest.split())
            args.append({64: np.uint64, 32: np.uint32, 16: np.uint16}.get(width, np.uint8)(bits))
            continue
        data = bytes.fromhex(rest) if kind == "buffer" else b"\xcd" * int(rest)
        arrays[i] = cupy.asarray(np.frombuffer(data, np.uint8))
        args.append(arrays[i])
    module.get_function(name)(tuple(int(g) for g in grid), (32 * int(warps), ), tuple(args), shared_mem=int(shared))
    cupy.cuda.Device().synchronize()
    wrong = []
    for line in lines[2:]:
        if not line.startswith("expect "):
            continue
        _, at, result, dtype, digits = line.split()
        wrong += differences(result, dtype, tolerance, arrays[int(at)].get().tobytes(), digits)
    return stated, wrong


def main():
    right = skipped = 0
    failed = []
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.launch")):
        try:
            stated, wrong = run(path)
        except Exception as e:
            stated, wrong = path.name, [f"{type(e).__name__}: {str(e)[:200]}"]
            if "illegal" in str(e).lower() or "misaligned" in str(e).lower():
                print(f"{path.name}: {wrong[0]}: the context is lost")
                sys.exit(1)
        if wrong is None:
            skipped += 1
        elif wrong:
            failed.append(f"{path.stem}: {stated}: {len(wrong)} wrong: {'; '.join(wrong[:3])}")
        else:
            right += 1
    print("\n".join(failed))
    print(f"library on the GPU: {right} right, {len(failed)} wrong, {skipped} for later devices")


if __name__ == "__main__":
    main()
