"""Runs the copies, reductions and stores of matrices of a folder on the GPU of this machine, and compares every byte.

    python transfers.py DIR

Nothing but Python and the NVIDIA driver is needed. `tests/emulator/transfers.rs` says what the files are. Prints a line for each
row; where a launch is an error, the process that launches is started anew behind it.
"""

import ctypes
import datetime
import json
import os
import struct
import subprocess
import sys

BUFFER = 1 << 16
SHARED = 24576
SHOWN = 3


def runs_of(expected, place):
    """The changes that the emulator made: place and bytes."""
    (count,) = struct.unpack_from("<I", expected, place)
    place += 4
    for _ in range(count):
        at, length = struct.unpack_from("<II", expected, place)
        yield at, expected[place + 8 : place + 8 + length]
        place += 8 + length


def child(folder, first):
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *args):
        result = getattr(cuda, name)(*args)
        if result:
            raise SystemExit(f"{name}: error {result}")

    def read(name):
        with open(os.path.join(folder, name), "rb") as file:
            return file.read()

    call("cuInit", 0)
    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    log = ctypes.create_string_buffer(1 << 16)
    # CU_JIT_ERROR_LOG_BUFFER and its size.
    options = (ctypes.c_int * 2)(5, 6)
    values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), len(log))
    result = cuda.cuModuleLoadDataEx(ctypes.byref(module), read("transfers.ptx") + b"\0", 2, options, values)
    if result:
        raise SystemExit(f"cuModuleLoadDataEx: error {result}\n{log.value.decode()}")
    pools, expected = read("pools.bin"), read("expected.bin")
    pools = [pools[at : at + BUFFER] for at in range(0, len(pools), BUFFER)]
    cases = [json.loads(line) for line in read("transfers.plan").splitlines()]
    buffers = []
    for _ in range(2):
        buffer = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(buffer), ctypes.c_size_t(BUFFER))
        buffers.append(buffer)
    # A tensor map starts at a multiple of 64.
    space = ctypes.create_string_buffer(192)
    map_at = ctypes.addressof(space) + -ctypes.addressof(space) % 64
    found = ctypes.create_string_buffer(BUFFER)
    functions = {}
    for index in range(first, len(cases)):
        case = cases[index]
        entry = case["entry"]
        if entry not in functions:
            function = ctypes.c_void_p()
            call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
            functions[entry] = function
        for buffer, pool in zip(buffers, case["pools"]):
            call("cuMemcpyHtoD_v2", buffer, pools[pool], ctypes.c_size_t(BUFFER))
        ctypes.memset(map_at, 0, 128)
        if case["map"]:
            element, swizzle, fill, extents, strides, box, steps = case["map"]
            rank = len(extents)
            result = cuda.cuTensorMapEncodeTiled(
                ctypes.c_void_p(map_at), element, rank, buffers[0], (ctypes.c_uint64 * rank)(*extents),
                (ctypes.c_uint64 * rank)(*strides), (ctypes.c_uint32 * rank)(*box), (ctypes.c_uint32 * rank)(*steps),
                0, swizzle, 0, fill,
            )
            if result:
                print(json.dumps({"index": index, "error": f"cuTensorMapEncodeTiled: {result}"}), flush=True)
                continue
        numbers = [ctypes.c_uint32(number) for number in case["numbers"]]
        pointers = [map_at] + [ctypes.addressof(arg) for arg in buffers + numbers]
        pointers = (ctypes.c_void_p * len(pointers))(*pointers)
        result = cuda.cuLaunchKernel(functions[entry], case["ctas"], 1, 1, 64, 1, 1, SHARED, None, pointers, None)
        result = result or cuda.cuCtxSynchronize()
        if result:
            print(json.dumps({"index": index, "error": f"launch: {result}"}), flush=True)
            raise SystemExit(3)
        shown = 0 if case["shows_tensor"] else 1
        call("cuMemcpyDtoH_v2", found, buffers[shown], ctypes.c_size_t(BUFFER))
        before = pools[case["pools"][shown]]
        wanted = bytearray(before)
        for at, run in runs_of(expected, case["place"]):
            wanted[at : at + len(run)] = run
        differing = []
        if found.raw != wanted:
            differing = [at for at in range(BUFFER) if found.raw[at] != wanted[at]]
        word = lambda data, at: data[at // 8 * 8 : at // 8 * 8 + 8].hex()
        samples = [(at, word(before, at), word(found.raw, at), word(wanted, at)) for at in differing[:: len(differing) // 4 + 1]]
        print(json.dumps({"index": index, "differing": len(differing), "samples": samples}), flush=True)
    name = ctypes.create_string_buffer(100)
    call("cuDeviceGetName", name, 100, device)
    version = ctypes.c_int()
    call("cuDriverGetVersion", ctypes.byref(version))
    driver = f"CUDA {version.value // 1000}.{version.value // 10 % 100} driver"
    print(json.dumps({"about": f"{name.value.decode()}, {driver}, {datetime.date.today()}"}), flush=True)


def main(folder):
    with open(os.path.join(folder, "transfers.plan"), "rb") as file:
        cases = [json.loads(line) for line in file.read().splitlines()]
    results, first, about = {}, 0, "an unknown device"
    for _ in range(40):
        command = [sys.executable, __file__, folder, str(first)]
        done = subprocess.run(command, capture_output=True, text=True)
        for line in done.stdout.splitlines():
            result = json.loads(line)
            about = result.get("about", about)
            if "index" in result:
                results[result["index"]] = result
                first = result["index"] + 1
        if done.returncode != 3:
            break
    if done.returncode not in (0, 3):
        print(done.stderr)
    rows = {}
    for index, case in enumerate(cases):
        result = results.get(index, {"error": "not run"})
        row = rows.setdefault(case["row"], {"cases": 0, "errors": [], "differing": []})
        row["cases"] += 1
        if "error" in result:
            row["errors"].append((case, result))
        elif result["differing"]:
            row["differing"].append((case, result))
    print(f"{len(cases)} launches of {len(rows)} rows on {about}")
    agree = [name for name, row in rows.items() if not row["errors"] and not row["differing"]]
    print(f"{len(agree)} rows agree in every byte: {', '.join(agree)}")
    for name, row in rows.items():
        bad = row["errors"] + row["differing"]
        if bad:
            print(f"{name}: {row['cases']} launches, {len(row['errors'])} errors, {len(row['differing'])} differ")
        for case, result in row["errors"][:SHOWN] + row["differing"][:SHOWN]:
            del case["row"], case["entry"], case["place"]
            print(f"  {json.dumps(case)}\n    {json.dumps(result)}")


if __name__ == "__main__":
    if len(sys.argv) == 3:
        child(sys.argv[1], int(sys.argv[2]))
    else:
        main(sys.argv[1])
