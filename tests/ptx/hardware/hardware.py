"""Runs `rows.ptx` of a folder on the GPU of this machine; writes `outputs.bin` and `device.txt` there.

    python hardware.py DIR

Nothing but Python and the NVIDIA driver is needed. `tests/emulator/instructions.rs` says what the
files are and compares them.
"""

import ctypes
import datetime
import os
import re
import sys

SETS = 1024


def main(folder):
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *args):
        result = getattr(cuda, name)(*args)
        if result:
            raise SystemExit(f"{name}: error {result}")

    call("cuInit", 0)
    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    with open(os.path.join(folder, "rows.ptx"), "rb") as file:
        text = file.read()
    with open(os.path.join(folder, "inputs.bin"), "rb") as file:
        inputs = file.read()
    log = ctypes.create_string_buffer(1 << 16)
    # CU_JIT_ERROR_LOG_BUFFER and its size.
    options = (ctypes.c_int * 2)(5, 6)
    values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), len(log))
    result = cuda.cuModuleLoadDataEx(ctypes.byref(module), text + b"\0", 2, options, values)
    if result:
        raise SystemExit(f"cuModuleLoadDataEx: error {result}\n{log.value.decode()}")
    rows = len(re.findall(rb"\.entry row_", text))
    assert len(inputs) == rows * SETS * 32
    source, target = ctypes.c_uint64(), ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(source), ctypes.c_size_t(len(inputs)))
    call("cuMemAlloc_v2", ctypes.byref(target), ctypes.c_size_t(rows * SETS * 16))
    call("cuMemcpyHtoD_v2", source, inputs, ctypes.c_size_t(len(inputs)))
    for row in range(rows):
        function = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(function), module, f"row_{row}".encode())
        args = [ctypes.c_uint64(source.value + row * SETS * 32), ctypes.c_uint64(target.value + row * SETS * 16)]
        pointers = (ctypes.c_void_p * 2)(*(ctypes.addressof(arg) for arg in args))
        call("cuLaunchKernel", function, SETS // 256, 1, 1, 256, 1, 1, 0, None, pointers, None)
    call("cuCtxSynchronize")
    outputs = ctypes.create_string_buffer(rows * SETS * 16)
    call("cuMemcpyDtoH_v2", outputs, target, ctypes.c_size_t(len(outputs)))
    with open(os.path.join(folder, "outputs.bin"), "wb") as file:
        file.write(outputs.raw)
    name = ctypes.create_string_buffer(100)
    call("cuDeviceGetName", name, 100, device)
    version = ctypes.c_int()
    call("cuDriverGetVersion", ctypes.byref(version))
    about = f"{name.value.decode()}, CUDA {version.value // 1000}.{version.value // 10 % 100} driver, {datetime.date.today()}"
    with open(os.path.join(folder, "device.txt"), "w") as file:
        file.write(about + "\n")
    print(f"{rows} rows on {about}")


if __name__ == "__main__":
    main(sys.argv[1])
