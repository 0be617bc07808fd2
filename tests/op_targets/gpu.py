"""Runs `kernels.ptx` of a folder on the GPU of this machine, as `kernels.plan` there says.

    python gpu.py DIR [OUT]

Writes to OUT (DIR without it) `device.txt` and, for each kernel that leaves other bytes than the plan's
digest, all of its buffers as `NAME.bin`. Nothing but Python and the NVIDIA driver is needed.
`tests/op_targets/main.rs` says what the files are.
"""

import ctypes
import datetime
import os
import sys


def digest(data):
    """FNV-1a."""
    value = 0xCBF29CE484222325
    for byte in data:
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
    text, data = read("kernels.ptx"), read("kernels.bin")
    log = ctypes.create_string_buffer(1 << 16)
    # CU_JIT_ERROR_LOG_BUFFER and its size.
    options = (ctypes.c_int * 2)(5, 6)
    values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), len(log))
    result = cuda.cuModuleLoadDataEx(ctypes.byref(module), text + b"\0", 2, options, values)
    if result:
        raise SystemExit(f"cuModuleLoadDataEx: error {result}\n{log.value.decode()}")
    place = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(1 << 20))
    plan, differing = read("kernels.plan").decode().splitlines(), []
    for line in plan:
        name, threads, shared, wanted, start, *sizes = line.split(" ")
        start, sizes = int(start), [int(size) for size in sizes]
        total = sum(sizes)
        call("cuMemcpyHtoD_v2", place, data[start : start + total], ctypes.c_size_t(total))
        args, at = [], place.value
        for size in sizes:
            args.append(ctypes.c_uint64(at))
            at += size
        pointers = (ctypes.c_void_p * len(args))(*(ctypes.addressof(arg) for arg in args))
        function = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        call("cuLaunchKernel", function, 1, 1, 1, int(threads), 1, 1, int(shared), None, pointers, None)
        result = cuda.cuCtxSynchronize()
        if result:
            raise SystemExit(f"{name}: error {result}")
        after = ctypes.create_string_buffer(total)
        call("cuMemcpyDtoH_v2", after, place, ctypes.c_size_t(total))
        if digest(after.raw) != wanted:
            differing.append(name)
            write(f"{name}.bin", after.raw)
    name, version = ctypes.create_string_buffer(100), ctypes.c_int()
    call("cuDeviceGetName", name, 100, device)
    call("cuDriverGetVersion", ctypes.byref(version))
    driver = f"CUDA {version.value // 1000}.{version.value // 10 % 100} driver"
    about = f"{name.value.decode()}, {driver}, {datetime.date.today()}"
    write("device.txt", (about + "\n").encode())
    print(f"{len(plan)} kernels on {about}: {len(differing)} left other bits than on the emulator")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[-1])
