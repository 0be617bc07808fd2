"""Runs products of warpgroups on the GPU of this machine, 1,000 operand sets each.

    python products.py DIR [OUT]

Nothing but Python and the NVIDIA driver is needed. `tests/emulator/product_rows.rs` says what the files of DIR are. Writes to OUT
(DIR without it) `products.txt`: for each row the checksums of the first sets and of all; `products.sets`: the checksum of each
set; `products.raw`: results of the first sets of rows that keep them.
"""

import ctypes
import datetime
import json
import os
import struct
import sys
import time
import zlib

KEPT = 250


def main(folder, out):
    begin = time.monotonic()
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *args):
        result = getattr(cuda, name)(*args)
        if result:
            raise SystemExit(f"{name}: error {result}")

    def read(name):
        with open(os.path.join(folder, name), "rb") as file:
            return file.read()

    call("cuInit", 0)
    device, context = ctypes.c_int(), ctypes.c_void_p()
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    name = ctypes.create_string_buffer(100)
    call("cuDeviceGetName", name, 100, device)
    version = ctypes.c_int()
    call("cuDriverGetVersion", ctypes.byref(version))
    driver = f"CUDA {version.value // 1000}.{version.value // 10 % 100} driver"
    about = f"{name.value.decode()}, {driver}, {datetime.date.today()}"

    def load(text, entry):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        log = ctypes.create_string_buffer(1 << 16)
        # CU_JIT_ERROR_LOG_BUFFER and its size.
        options = (ctypes.c_int * 2)(5, 6)
        values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), len(log))
        result = cuda.cuModuleLoadDataEx(ctypes.byref(module), text + b"\0", 2, options, values)
        if result:
            raise SystemExit(f"{entry}: error {result}\n{log.value.decode()}")
        call("cuModuleGetFunction", ctypes.byref(function), module, entry)
        return module, function

    def launch(function, grid, threads, shared, args):
        pointers = (ctypes.c_void_p * len(args))(*(ctypes.addressof(arg) for arg in args))
        call("cuLaunchKernel", function, *grid, 1, threads, 1, 1, shared, None, pointers, None)
        call("cuCtxSynchronize")

    def space(size):
        buffer = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(buffer), ctypes.c_size_t(size))
        return buffer

    plan = [json.loads(line) for line in read("products.plan").splitlines()]
    _, fill = load(read("fill.ptx"), b"fill")
    source = space(max(4 * row["words"] * row["sets"] for row in plan))
    most = max(512 * row["sums"] * row["sets"] for row in plan)
    target, kinds = space(most), space(240)
    found = ctypes.create_string_buffer(most)
    view = memoryview(found)
    lines, sets, raw = [f"# {about}, {plan[0]['sets']} operand sets a row.\n"], [], []
    for index, row in enumerate(plan):
        number = lambda name: ctypes.c_uint32(row[name])
        call("cuMemcpyHtoD_v2", kinds, struct.pack("<60I", *row["kinds"]), ctypes.c_size_t(240))
        names = ["words", "left", "image", "each", "sums", "seed"]
        launch(fill, (-(-row["words"] // 256), row["sets"]), 256, 0, [source, kinds] + [number(name) for name in names])
        module, function = load(read(f"product_{index}.ptx"), b"product")
        # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        call("cuFuncSetAttribute", function, 8, row["shared"])
        launch(function, (row["sets"], 1), 128, row["shared"], [source, target])
        each = 512 * row["sums"]
        call("cuMemcpyDtoH_v2", found, target, ctypes.c_size_t(each * row["sets"]))
        call("cuModuleUnload", module)
        first, all_of_it = zlib.crc32(view[: each * row["standing"]]), zlib.crc32(view[: each * row["sets"]])
        lines.append(f"{row['name']}: {first:08x} {all_of_it:08x}\n")
        sets += [zlib.crc32(view[each * at : each * (at + 1)]) for at in range(row["sets"])]
        if row["keeps"]:
            raw.append(bytes(view[: each * KEPT]))
    for name, data in [
        ("products.txt", "".join(lines).encode()),
        ("products.sets", struct.pack(f"<{len(sets)}I", *sets)),
        ("products.raw", b"".join(raw)),
    ]:
        with open(os.path.join(out, name), "wb") as file:
            file.write(data)
    print(f"{len(plan)} products on {about}, {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[-1])
