"""Runs the copies, reductions and stores of matrices of a folder on the GPU of this machine.

    python transfers.py DIR [OUT [SECONDS]]

Nothing but Python and the NVIDIA driver is needed. `tests/emulator/transfers.rs` says what the files of DIR are;
`transfers.plan` may be packed by `gzip`. Writes `transfers.crc` to OUT (DIR without it): the device, then for each launch the
checksum of every byte of the buffer that shows its result, or why there is none. Rows take turns, so that each had some launches
when the time is over (80 seconds). Where a launch is an error, the process that launches is started anew behind it; a row with two
errors is not looked at any further.
"""

import ctypes
import datetime
import gzip
import json
import os
import queue
import subprocess
import sys
import threading
import time
import zlib

BUFFER = 1 << 16
SHARED = 24576
ENOUGH_ERRORS = 2
# Seconds that loading may take, and a launch.
LOADING = 25
HANGS = 4


def launches(folder):
    path = os.path.join(folder, "transfers.plan")
    with (open(path, "rb") if os.path.exists(path) else gzip.open(path + ".gz")) as file:
        return [json.loads(line) for line in file.read().splitlines()]


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
    content = read("pools.bin")
    cases = launches(folder)

    def space_of(size):
        buffer = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(buffer), ctypes.c_size_t(size))
        return buffer

    buffers = [space_of(BUFFER), space_of(BUFFER)]
    pools = space_of(len(content))
    call("cuMemcpyHtoD_v2", pools, content, ctypes.c_size_t(len(content)))
    # A tensor map starts at a multiple of 64.
    space = ctypes.create_string_buffer(192)
    map_at = ctypes.addressof(space) + -ctypes.addressof(space) % 64
    found = ctypes.create_string_buffer(BUFFER)
    functions = {}
    print(json.dumps({"stage": "the module is loaded"}), flush=True)
    for place, index in list(enumerate(turns(cases)))[first:]:
        case = cases[index]
        entry = case["entry"]
        if case["row"] in skipped:
            continue
        if time.monotonic() > end:
            break
        if entry not in functions:
            function = ctypes.c_void_p()
            call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
            functions[entry] = function
        for buffer, pool in zip(buffers, case["pools"]):
            call("cuMemcpyDtoD_v2", buffer, ctypes.c_uint64(pools.value + BUFFER * pool), ctypes.c_size_t(BUFFER))
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
        print(json.dumps({"place": place, "index": index, "crc": zlib.crc32(found)}), flush=True)


def forward(pipe, lines):
    for line in pipe:
        lines.put(line)
    lines.put("")


def main(folder, out, seconds):
    end = time.monotonic() + seconds
    cases = launches(folder)
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
    with open(os.path.join(out, "transfers.crc"), "w", encoding="utf-8") as file:
        print(f"# {about}", file=file)
        for index in range(len(cases)):
            result = results.get(index, {"error": "not run"})
            print(f"{result['crc']:08x}" if "crc" in result else result["error"], file=file)
    print(f"{len(results)} of {len(cases)} launches on {about}, {seconds - end + time.monotonic():.1f} s", flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 5:
        child(sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]), float(sys.argv[4]))
    else:
        main(sys.argv[1], sys.argv[min(2, len(sys.argv) - 1)], float(sys.argv[3]) if len(sys.argv) == 4 else 80.0)
