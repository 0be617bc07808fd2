"""Runs the launches in a folder, which `package.rs` beside this file packed, on the GPU of this machine.

    python gpu.py DIR [OUT]

Writes to OUT (DIR without it) `device.txt` and, for each launch that leaves other bytes than the plan's
digest, all of its buffers as `NAME.bin`. Nothing but Python and the NVIDIA driver is needed. Modules are
dealt to processes, as the driver assembles one after the other in each.
"""

import concurrent.futures
import ctypes
import datetime
import os
import sys

WORKERS = min(8, os.cpu_count() or 1)


def digest(data):
    """FNV-1a."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & (1 << 64) - 1
    return f"{value:016x}"


def read(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


class Failure(Exception):
    pass


class Device:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.device = ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        self.enter()

    def call(self, name, *args):
        result = getattr(self.cuda, name)(*args)
        if result:
            raise Failure(f"{name}: error {result}")

    def enter(self):
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self.call("cuCtxSetCurrent", context)

    def leave(self):
        """What an error left behind."""
        self.cuda.cuDevicePrimaryCtxReset_v2(self.device)
        self.enter()

    def load(self, text):
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(1 << 14)
        # CU_JIT_ERROR_LOG_BUFFER and its size.
        options = (ctypes.c_int * 2)(5, 6)
        values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), len(log))
        result = self.cuda.cuModuleLoadDataEx(ctypes.byref(module), text + b"\0", 2, options, values)
        if result:
            raise Failure(f"cuModuleLoadDataEx: error {result}: {log.value.decode().strip()}")
        return module

    def launch(self, module, plan, data):
        """The buffers afterwards."""
        name, _, x, y, z, threads, shared, _, start, *args = plan
        function, start = ctypes.c_void_p(), int(start)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
        self.call("cuFuncSetAttribute", function, 8, int(shared))
        buffers, values = [], []
        for arg in args:
            number = int(arg[1:])
            if arg[0] == "b":
                place = ctypes.c_uint64()
                self.call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(max(number, 1)))
                self.call("cuMemcpyHtoD_v2", place, data[start : start + number], ctypes.c_size_t(number))
                start += number
                buffers.append((place, number))
                values.append(place)
            else:
                values.append(ctypes.c_uint32(number))
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        grid = (int(x), int(y), int(z))
        self.call("cuLaunchKernel", function, *grid, int(threads), 1, 1, int(shared), None, pointers, None)
        self.call("cuCtxSynchronize")
        after = b""
        for place, size in buffers:
            bytes_after = ctypes.create_string_buffer(max(size, 1))
            self.call("cuMemcpyDtoH_v2", bytes_after, place, ctypes.c_size_t(size))
            after += bytes_after.raw[:size]
            self.call("cuMemFree_v2", place)
        return after

    def about(self):
        name, version = ctypes.create_string_buffer(100), ctypes.c_int()
        self.call("cuDeviceGetName", name, 100, self.device)
        self.call("cuDriverGetVersion", ctypes.byref(version))
        driver = f"CUDA {version.value // 1000}.{version.value // 10 % 100} driver"
        return f"{name.value.decode()}, {driver}, {datetime.date.today()}"


def work(folder, out, share):
    """Runs the launches of every `WORKERS`th module; gives what to say of each that went wrong."""
    device, texts, data = Device(), read(folder, "kernels.ptx").split(b"\0"), read(folder, "kernels.bin")
    loaded, said = {}, []
    for line in read(folder, "kernels.plan").decode().splitlines():
        plan = line.split(" ")
        name, number = plan[0], int(plan[1])
        if number % WORKERS != share:
            continue
        try:
            if number not in loaded:
                loaded = {number: device.load(texts[number])}
            after = device.launch(loaded[number], plan, data)
        except Failure as failure:
            said.append((name, str(failure)))
            device.leave()
            loaded = {}
            continue
        if digest(after) != plan[7]:
            said.append((name, "other bits"))
            with open(os.path.join(out, f"{name}.bin"), "wb") as file:
                file.write(after)
    return device.about(), said


def main(folder, out):
    count = len(read(folder, "kernels.plan").decode().splitlines())
    with concurrent.futures.ProcessPoolExecutor(WORKERS) as pool:
        tasks = [pool.submit(work, folder, out, share) for share in range(WORKERS)]
        results = [task.result() for task in tasks]
    about = results[0][0]
    said = [what for _, all_said in results for what in all_said]
    failed = [(name, what) for name, what in said if what != "other bits"]
    for name, what in failed:
        print(f"{name}: {what}")
    with open(os.path.join(out, "device.txt"), "w") as file:
        file.write(f"{about}\n")
    differing = len(said) - len(failed)
    print(f"{count} launches on {about}: {len(failed)} failed, {differing} left other bits than on the emulator")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[-1]))
