"""Runs the products of a folder on the GPU of this machine, as `products.plan` there says.

    python products.py DIR [OUT]

Writes to OUT (DIR without it) the results of each as `product_N.out`, and `device.txt`. Nothing but Python and the NVIDIA
driver is needed. `tests/emulator/products.rs` says what the files are.
"""

import ctypes
import datetime
import os
import sys


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
    device, context = ctypes.c_int(), ctypes.c_void_p()
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    plan = [line.split(" ", 3) for line in read("products.plan").decode().splitlines()]
    for index, (ctas, shared, size, opcode) in enumerate(plan):
        ctas, shared, size = int(ctas), int(shared), int(size)
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        log = ctypes.create_string_buffer(1 << 16)
        # CU_JIT_ERROR_LOG_BUFFER and its size.
        options = (ctypes.c_int * 2)(5, 6)
        values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), len(log))
        text = read(f"product_{index}.ptx") + b"\0"
        result = cuda.cuModuleLoadDataEx(ctypes.byref(module), text, 2, options, values)
        if result:
            raise SystemExit(f"{opcode}: error {result}\n{log.value.decode()}")
        call("cuModuleGetFunction", ctypes.byref(function), module, b"product")
        # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        call("cuFuncSetAttribute", function, 8, shared)
        inputs = read(f"product_{index}.in")
        source, target = ctypes.c_uint64(), ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(source), ctypes.c_size_t(len(inputs)))
        call("cuMemAlloc_v2", ctypes.byref(target), ctypes.c_size_t(size))
        call("cuMemcpyHtoD_v2", source, inputs, ctypes.c_size_t(len(inputs)))
        args = [source, target]
        pointers = (ctypes.c_void_p * 2)(*(ctypes.addressof(arg) for arg in args))
        call("cuLaunchKernel", function, ctas, 1, 1, 128, 1, 1, shared, None, pointers, None)
        result = cuda.cuCtxSynchronize()
        if result:
            raise SystemExit(f"{opcode}: error {result}")
        outputs = ctypes.create_string_buffer(size)
        call("cuMemcpyDtoH_v2", outputs, target, ctypes.c_size_t(size))
        write(f"product_{index}.out", outputs.raw)
        call("cuMemFree_v2", source)
        call("cuMemFree_v2", target)
        call("cuModuleUnload", module)
    name = ctypes.create_string_buffer(100)
    call("cuDeviceGetName", name, 100, device)
    version = ctypes.c_int()
    call("cuDriverGetVersion", ctypes.byref(version))
    driver = f"CUDA {version.value // 1000}.{version.value // 10 % 100} driver"
    about = f"{name.value.decode()}, {driver}, {datetime.date.today()}"
    write("device.txt", (about + "\n").encode())
    print(f"{len(plan)} products on {about}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[-1])
