"""Runs `rows.ptx` of a folder on the GPU of this machine, as `rows.plan` there says.

    python hardware.py DIR [OUT]

Writes to OUT (DIR without it) the digest of each row's results as `digests.txt`, `device.txt`, and
for rows that are approximate or differ from the plan all results as `row_N.bin`. Nothing but Python
and the NVIDIA driver is needed. `tests/emulator/hardware.rs` says what the files are.
"""

import ctypes
import datetime
import os
import struct
import sys

SETS = 1024
THREADS = 256


def digest(results, letters):
    """FNV-1a over each set's words, two at least; the pattern of an f64 NaN does not count."""
    count = max(len(letters), 1)
    words = struct.unpack(f"<{len(results) // 8}Q", results)
    value = 0xCBF29CE484222325
    for start in range(0, len(words), count):
        group = list(words[start : start + count]) + [0] * (2 - count)
        for at, word in enumerate(group):
            if at < len(letters) and letters[at] == "e" and word & (1 << 63) - 1 > 0x7FF << 52:
                word = 0x7FF8 << 48
            for byte in word.to_bytes(8, "little"):
                value = ((value ^ byte) * 0x100000001B3) & (1 << 64) - 1
    return f"{value:016x}"


def main(folder, out):
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *args):
        result = getattr(cuda, name)(*args)
        if result:
            raise SystemExit(f"{name}: error {result}")

    def read(name):
        with open(os.path.join(folder, name), "rb") as file:
            return file.read()

    def write(name, data):
        with open(os.path.join(out, name), "wb") as file:
            file.write(data)

    call("cuInit", 0)
    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    text, inputs = read("rows.ptx"), read("inputs.bin")
    plan = [line.split(" ", 5) for line in read("rows.plan").decode().splitlines()]
    log = ctypes.create_string_buffer(1 << 16)
    # CU_JIT_ERROR_LOG_BUFFER and its size.
    options = (ctypes.c_int * 2)(5, 6)
    values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), len(log))
    result = cuda.cuModuleLoadDataEx(ctypes.byref(module), text + b"\0", 2, options, values)
    if result:
        raise SystemExit(f"cuModuleLoadDataEx: error {result}\n{log.value.decode()}")
    # Instructions change their sets, so every row gets them anew.
    most_in, most_out = (SETS * max(int(row[at]) for row in plan) for at in (1, 2))
    source, target = ctypes.c_uint64(), ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(source), ctypes.c_size_t(most_in))
    call("cuMemAlloc_v2", ctypes.byref(target), ctypes.c_size_t(most_out))
    digests, differing, approximate = [], [], 0
    for index, (place, stride, out_stride, letters, wanted, name) in enumerate(plan):
        place, size, out_size = int(place), SETS * int(stride), SETS * int(out_stride)
        letters = letters.rstrip(".")
        function = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(function), module, f"row_{index}".encode())
        call("cuMemcpyHtoD_v2", source, inputs[place : place + size], ctypes.c_size_t(size))
        args = [source, target]
        pointers = (ctypes.c_void_p * 2)(*(ctypes.addressof(arg) for arg in args))
        call("cuLaunchKernel", function, SETS // THREADS, 1, 1, THREADS, 1, 1, 0, None, pointers, None)
        result = cuda.cuCtxSynchronize()
        if result:
            raise SystemExit(f"{name}: error {result}")
        outputs = ctypes.create_string_buffer(out_size)
        call("cuMemcpyDtoH_v2", outputs, target, ctypes.c_size_t(out_size))
        digests.append(digest(outputs.raw, letters))
        if wanted == "-":
            approximate += 1
        elif digests[-1] != wanted:
            differing.append(name)
        if digests[-1] != wanted:
            write(f"row_{index}.bin", outputs.raw)
    write("digests.txt", "".join(line + "\n" for line in digests).encode())
    name = ctypes.create_string_buffer(100)
    call("cuDeviceGetName", name, 100, device)
    version = ctypes.c_int()
    call("cuDriverGetVersion", ctypes.byref(version))
    driver = f"CUDA {version.value // 1000}.{version.value // 10 % 100} driver"
    about = f"{name.value.decode()}, {driver}, {datetime.date.today()}"
    write("device.txt", (about + "\n").encode())
    print(f"{len(plan)} rows on {about}: {approximate} approximate, {len(differing)} differ")
    for name in differing:
        print(f"  {name}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[-1])
