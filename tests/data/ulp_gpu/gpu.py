"""Measures the errors of the accurate functions on the GPU of this machine.

    python gpu.py DIR [OUT]

DIR holds `functions.txt` and the kernels that `cargo run --example ulp -- kernels DIR` writes, and
`reference.cubin` of `reference.cu`. Writes `ulp.txt` to OUT (DIR without it): for each function its
name and type, the number of arguments, how many results were beyond the bound, the largest error of
CUDA's own function of float with its argument, and the arguments with the largest errors: the error,
the bits of the operands and those of the result. Nothing but Python and the NVIDIA driver is needed.
"""

import ctypes
import datetime
import os
import struct
import sys
import time

# Arguments of one launch, and samples of a function that is not tried with every argument.
CHUNK = 1 << 26
SAMPLES = 1 << 28
# Seconds after which the rest is left out.
BUDGET = 200
SHOWN = 16

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *args):
    result = getattr(cuda, name)(*args)
    if result:
        raise RuntimeError(f"{name}: error {result}")


def load(text):
    module, log = ctypes.c_void_p(), ctypes.create_string_buffer(1 << 14)
    # CU_JIT_ERROR_LOG_BUFFER and its size.
    options = (ctypes.c_int * 2)(5, 6)
    values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), len(log))
    result = cuda.cuModuleLoadDataEx(ctypes.byref(module), text, 2, options, values)
    if result:
        raise RuntimeError(f"cuModuleLoadDataEx: error {result} {log.value.decode()}")
    return module


def function(module, name):
    found = ctypes.c_void_p()
    call("cuModuleGetFunction", ctypes.byref(found), module, name.encode())
    return found


def launch(kernel, grid, block, *args):
    args = [ctypes.c_double(arg) if isinstance(arg, float) else ctypes.c_uint64(arg) for arg in args]
    pointers = (ctypes.c_void_p * len(args))(*(ctypes.addressof(arg) for arg in args))
    call("cuLaunchKernel", kernel, grid, 1, 1, block, 1, 1, 0, None, pointers, None)


def alloc(size):
    place = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(size))
    return place.value


def to_device(place, data):
    call("cuMemcpyHtoD_v2", ctypes.c_uint64(place), data, ctypes.c_size_t(len(data)))


def from_device(place, size):
    data = ctypes.create_string_buffer(size)
    call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(place), ctypes.c_size_t(size))
    return data.raw


class Case:
    """A line of `functions.txt`: label, type, file, kernel, operands, block, threads, bound, range, reference."""

    def __init__(self, line):
        words = line.split(";")
        self.label, self.type, self.file, self.kernel = words[:4]
        self.operands, self.block, self.threads = map(int, words[4:7])
        self.bound, self.low, self.high = map(float, words[7:10])
        self.size = 4 if self.type == "f32" else 8
        self.name = words[10]

    @property
    def total(self):
        return 1 << 32 if self.type == "f32" and self.operands == 1 else SAMPLES


def measure(case, folder, reference, buffers, edges):
    with open(os.path.join(folder, case.file), "rb") as file:
        kernel = function(load(file.read() + b"\0"), case.kernel)
    compare = function(reference, f"{case.type}_{case.name}")
    xs, ys, out, worst = buffers
    operands = [xs, ys][: case.operands] + [out]
    every = case.total == 1 << 32
    fill = function(reference, "every_single" if every else {"f32": "singles", "f64": "doubles"}[case.type])
    place, n_edges = edges[case.type]

    def compute(base):
        if every:
            launch(fill, 2112, 256, xs, base, CHUNK)
        else:
            launch(fill, 2112, 256, xs, ys, case.operands, base, CHUNK, place, n_edges, case.low, case.high)
        launch(kernel, CHUNK // case.block, case.threads, *operands)

    to_device(worst, bytes(66 * 8))
    for base in range(0, case.total, CHUNK):
        compute(base)
        launch(compare, 2112, 256, xs, ys, out, base, CHUNK, case.bound, worst)
    call("cuCtxSynchronize")
    *ours, theirs, over = struct.unpack("<66Q", from_device(worst, 66 * 8))
    error = lambda key: struct.unpack("<f", struct.pack("<I", key >> 32))[0]
    fields = [case.label, case.type, str(case.total), str(over)]
    fields.append(f"{error(theirs):.4f} {theirs & 0xffffffff:x}" if every else f"{error(theirs):.4f}")
    shown = sorted(set(ours), reverse=True)[:SHOWN]
    done = None
    for key in sorted(shown, key=lambda key: key & 0xFFFFFFFF):
        index = key & 0xFFFFFFFF
        if done != index // CHUNK:
            done = index // CHUNK
            compute(done * CHUNK)
        at = index % CHUNK * case.size
        bits = [from_device(buffer + at, case.size)[::-1].hex() for buffer in operands]
        fields.append(f"{error(key):.4f} " + " ".join(bits))
    head, tail = fields[:5], sorted(fields[5:], key=lambda field: -float(field.split(" ")[0]))
    return ";".join(head + tail)


def main(folder, out):
    start = time.time()
    device, context = ctypes.c_int(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    name, version = ctypes.create_string_buffer(100), ctypes.c_int()
    call("cuDeviceGetName", name, 100, device)
    call("cuDriverGetVersion", ctypes.byref(version))
    with open(os.path.join(folder, "reference.cubin"), "rb") as file:
        reference = load(file.read())
    with open(os.path.join(folder, "functions.txt")) as file:
        lines = file.read().splitlines()
    edges = {}
    for line in lines[:2]:
        kind, *words = line.split(" ")
        data = b"".join(int(word, 16).to_bytes(4 if kind == "f32" else 8, "little") for word in words)
        edges[kind] = alloc(len(data)), len(words)
        to_device(edges[kind][0], data)
    buffers = [alloc(CHUNK * 8) for _ in range(3)] + [alloc(66 * 8)]
    driver = f"CUDA {version.value // 1000}.{version.value // 10 % 100} driver"
    about = f"# {name.value.decode()}, {driver}, {datetime.date.today()}."
    done, failed, left_out, beyond = 0, [], [], []
    with open(os.path.join(out, "ulp.txt"), "w") as file:
        print(about, file=file)
        for case in map(Case, lines[2:]):
            if time.time() - start > BUDGET:
                left_out.append(f"{case.label} {case.type}")
                continue
            began = time.time()
            try:
                line = measure(case, folder, reference, buffers, edges)
            except RuntimeError as error:
                failed.append(f"{case.label} {case.type}: {error}")
                print(failed[-1], flush=True)
                continue
            done += 1
            print(line, file=file, flush=True)
            _, _, total, over, theirs, worst, *_ = line.split(";")
            text = f"{case.label} {case.type}: worst {worst}, bound {case.bound:g}, CUDA's {theirs}"
            if int(over):
                beyond.append(text + f", {over} beyond of {total}")
            print(f"{text}, {time.time() - began:.1f} s", flush=True)
    print(f"{done} functions on {about[2:]} {time.time() - start:.0f} s")
    print(f"failed {len(failed)}: {failed}; left out {len(left_out)}: {left_out}; beyond their bounds {len(beyond)}")
    for text in beyond:
        print(f"  {text}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[-1])
