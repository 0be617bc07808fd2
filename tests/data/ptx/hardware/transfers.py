"""Runs the copies, reductions and stores of matrices of a folder on the GPU of this machine, and compares every byte.

    python transfers.py DIR [SECONDS]

Nothing but Python and the NVIDIA driver is needed. `tests/emulator/transfers.rs` says what the files are. Rows take turns, so that
each had some launches when the time is over (50 seconds). Where a launch is an error, the process that launches is started anew
behind it; a row with two errors, or twenty launches that differ, is not looked at any further.
"""

import ctypes
import datetime
import json
import os
import queue
import struct
import subprocess
import sys
import threading
import time

BUFFER = 1 << 16
SHARED = 24576
SHOWN = 3
ENOUGH_ERRORS = 2
ENOUGH_DIFFERING = 20
# Seconds that loading may take, and a launch.
LOADING = 25
HANGS = 4


def runs_of(expected, place):
    """The changes that the emulator made: place and bytes."""
    (count,) = struct.unpack_from("<I", expected, place)
    place += 4
    for _ in range(count):
        at, length = struct.unpack_from("<II", expected, place)
        yield at, expected[place + 8 : place + 8 + length]
        place += 8 + length


def turns(cases):
    """Indices of the cases: the first of each row, then the second of each."""
    seen, keys = {}, []
    for index, case in enumerate(cases):
        number = seen[case["row"]] = seen.get(case["row"], -1) + 1
        keys.append((number, index))
    return [index for _, index in sorted(keys)]


def child(folder, first, skipped, seconds):
    end = time.monotonic() + seconds
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
    name = ctypes.create_string_buffer(100)
    call("cuDeviceGetName", name, 100, device)
    version = ctypes.c_int()
    call("cuDriverGetVersion", ctypes.byref(version))
    driver = f"CUDA {version.value // 1000}.{version.value // 10 % 100} driver"
    print(json.dumps({"about": f"{name.value.decode()}, {driver}, {datetime.date.today()}"}), flush=True)
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
    differ = {}
    print(json.dumps({"stage": "the module is loaded"}), flush=True)
    for place, index in list(enumerate(turns(cases)))[first:]:
        case = cases[index]
        entry = case["entry"]
        if case["row"] in skipped or differ.get(case["row"], 0) >= ENOUGH_DIFFERING:
            continue
        if time.monotonic() > end:
            break
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
                print(json.dumps({"place": place, "index": index, "error": f"cuTensorMapEncodeTiled: {result}"}), flush=True)
                continue
        numbers = [ctypes.c_uint32(number) for number in case["numbers"]]
        pointers = [map_at] + [ctypes.addressof(arg) for arg in buffers + numbers]
        pointers = (ctypes.c_void_p * len(pointers))(*pointers)
        result = cuda.cuLaunchKernel(functions[entry], case["ctas"], 1, 1, 64, 1, 1, SHARED, None, pointers, None)
        result = result or cuda.cuCtxSynchronize()
        if result:
            print(json.dumps({"place": place, "index": index, "error": f"launch: {result}"}), flush=True)
            raise SystemExit(3)
        shown = 0 if case["shows_tensor"] else 1
        call("cuMemcpyDtoH_v2", found, buffers[shown], ctypes.c_size_t(BUFFER))
        before = pools[case["pools"][shown]]
        wanted = bytearray(before)
        for at, run in runs_of(expected, case["place"]):
            wanted[at : at + len(run)] = run
        differing, now = [], found.raw
        if now != wanted:
            differing = [at for at in range(BUFFER) if now[at] != wanted[at]]
            differ[case["row"]] = differ.get(case["row"], 0) + 1
        word = lambda data, at: data[at // 8 * 8 : at // 8 * 8 + 8].hex()
        samples = [(at, word(before, at), word(now, at), word(wanted, at)) for at in differing[:: len(differing) // 4 + 1]]
        print(json.dumps({"place": place, "index": index, "differing": len(differing), "samples": samples}), flush=True)


def forward(pipe, lines):
    for line in pipe:
        lines.put(line)
    lines.put("")


def main(folder, seconds):
    end = time.monotonic() + seconds
    with open(os.path.join(folder, "transfers.plan"), "rb") as file:
        cases = [json.loads(line) for line in file.read().splitlines()]
    order = turns(cases)
    results, first, about, errors, code = {}, 0, "an unknown device", {}, 3
    while code == 3 and time.monotonic() < end:
        skipped = [row for row, count in errors.items() if count >= ENOUGH_ERRORS]
        rest = str(end - time.monotonic())
        command = [sys.executable, __file__, folder, str(first), json.dumps(skipped), rest]
        hangs = False
        done = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines, wait = queue.Queue(), LOADING
        # An empty line says that there are no more.
        threading.Thread(target=forward, args=(done.stdout, lines), daemon=True).start()
        while True:
            try:
                line = lines.get(timeout=wait)
            except queue.Empty:
                done.kill()
                index = order[first] if first < len(order) else 0
                row = cases[index]["row"]
                print(f"{row}, launch {index}: nothing comes back", flush=True)
                results[index] = {"index": index, "error": "hangs"}
                errors[row], first, hangs = ENOUGH_ERRORS, first + 1, True
                break
            if not line:
                break
            result = json.loads(line)
            about = result.get("about", about)
            if "stage" in result:
                wait = HANGS
                print(f"{result['stage']} after {seconds - end + time.monotonic():.1f} s", flush=True)
            if "index" in result:
                results[result["index"]] = result
                first = result["place"] + 1
            if "error" in result:
                row = cases[result["index"]]["row"]
                errors[row] = errors.get(row, 0) + 1
                print(f"{row}: {result['error']}", flush=True)
        code = 3 if hangs else done.wait()
    rows = {}
    for index, case in enumerate(cases):
        row = rows.setdefault(case["row"], {"cases": 0, "errors": [], "differing": []})
        if index not in results:
            continue
        result = results[index]
        row["cases"] += 1
        if "error" in result:
            row["errors"].append((case, result))
        elif result["differing"]:
            row["differing"].append((case, result))
    print(f"{len(results)} of {len(cases)} launches of {len(rows)} rows on {about}")
    agree = [(name, row["cases"]) for name, row in rows.items() if not row["errors"] and not row["differing"]]
    print(f"{len(agree)} rows agree in every byte: {', '.join(f'{name} ({count})' for name, count in agree)}", flush=True)
    for name, row in rows.items():
        bad = row["errors"] + row["differing"]
        if bad:
            print(f"{name}: {row['cases']} launches, {len(row['errors'])} errors, {len(row['differing'])} differ")
        for case, result in row["errors"][:SHOWN] + row["differing"][:SHOWN]:
            del case["row"], case["entry"], case["place"]
            print(f"  {json.dumps(case)}\n    {json.dumps(result)}")


if __name__ == "__main__":
    if len(sys.argv) == 5:
        child(sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]), float(sys.argv[4]))
    else:
        main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) == 3 else 50.0)
