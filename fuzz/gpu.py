"""Runs the generated kernels in a folder, which `hardware.rs` beside this file packed, on the GPU of this machine.

    python gpu.py DIR OUT                    all launches; OUT/fuzz.txt says what differs, OUT/fuzz.npz holds its buffers
    python gpu.py DIR OUT --watched N I/K    of N small kernels with shared memory each Kth from the Ith on, on one input, one
                                             allocation for each buffer: for compute-sanitizer

Needs numpy and the NVIDIA driver. Modules are dealt to processes, as the driver assembles one after the other in each.
Inputs and digests are made as `src/fuzzing/batch.rs` says.
"""

import ctypes
import multiprocessing
import os
import sys
import threading
import time

import numpy

# Bytes before, between and behind buffers, which nobody may touch.
GAP = 512
MOST_KEPT = 60
# No module is begun later than this.
SECONDS = 70

U = numpy.uint64
STEP = U(0x9E3779B97F4A7C15)


def mix(x):
    with numpy.errstate(over="ignore"):
        z = x + STEP
        z = (z ^ (z >> U(30))) * U(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> U(27))) * U(0x94D049BB133111EB)
        return z ^ (z >> U(31))


def mix_one(x):
    return int(mix(numpy.array([x & (1 << 64) - 1], dtype=U))[0])


class Type:
    def __init__(self, fields):
        self.name, self.bytes = fields[0], int(fields[1])
        self.mask, self.limit, self.nan = (U(int(x, 16)) for x in fields[2:5])
        entries = numpy.array([int(x, 16) for x in fields[5:]], dtype=U)
        self.dtype = {1: numpy.uint8, 2: numpy.uint16, 4: numpy.uint32, 8: numpy.uint64}[self.bytes]
        half = len(entries) // 2
        self.tables = [entries[:half].astype(self.dtype), entries[half:].astype(self.dtype)]

    def fill(self, small, count, seed):
        with numpy.errstate(over="ignore"):
            places = mix(numpy.arange(count, dtype=U) + U(seed)) >> U(56)
        return self.tables[small][places.astype(numpy.intp)]

    def words(self, raw):
        words = raw.view(self.dtype).astype(U)
        if self.mask < U((1 << 64) - 1) or self.limit < U((1 << 64) - 1):
            words = numpy.where((words & self.mask) > self.limit, self.nan, words)
        return words


class Plan:
    def __init__(self, folder):
        self.types, self.kernels = {}, []
        with open(os.path.join(folder, "kernels.plan")) as file:
            for line in file:
                kind, *fields = line.split()
                if kind == "T":
                    self.types[fields[0]] = Type(fields)
                elif kind == "K":
                    name, module, watched, *numbers = fields[:8]
                    args = [arg.split(":") for arg in fields[8:]]
                    self.kernels.append((name, int(module), watched == "w", [int(n) for n in numbers], args, []))
                else:
                    self.kernels[-1][5].append([int(fields[0])] + [int(x, 16) for x in fields[1:]])
        with open(os.path.join(folder, "kernels.ptx"), "rb") as file:
            self.modules = file.read().split(b"\0")


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
        self.room, self.arena = 0, None

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

    def function(self, module, name, shared):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
        self.call("cuFuncSetAttribute", function, 8, shared)
        return function

    def start(self, function, numbers, values):
        x, y, z, threads, shared = numbers
        pointers = (ctypes.c_void_p * max(len(values), 1))(*(ctypes.addressof(value) for value in values))
        self.call("cuLaunchKernel", function, x, y, z, threads, 1, 1, shared, None, pointers, None)
        self.call("cuCtxSynchronize")

    def in_arena(self, function, numbers, args):
        """The buffers afterwards; they lie in one allocation with gaps between."""
        places, size = [], GAP
        for arg in args:
            if isinstance(arg, numpy.ndarray):
                places.append(size)
                size += (arg.nbytes + GAP + 255) & ~255
        memory = numpy.full(size, 0xA5, dtype=numpy.uint8)
        if self.room < size:
            if self.arena is not None:
                self.call("cuMemFree_v2", self.arena)
            self.arena, self.room = ctypes.c_uint64(), max(size, 1 << 22)
            self.call("cuMemAlloc_v2", ctypes.byref(self.arena), ctypes.c_size_t(self.room))
        values, at = [], iter(places)
        for arg in args:
            if isinstance(arg, numpy.ndarray):
                place = next(at)
                memory[place : place + arg.nbytes] = arg.view(numpy.uint8)
                values.append(ctypes.c_uint64(self.arena.value + place))
            else:
                values.append(arg)
        self.call("cuMemcpyHtoD_v2", self.arena, memory.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(size))
        self.start(function, numbers, values)
        self.call("cuMemcpyDtoH_v2", memory.ctypes.data_as(ctypes.c_void_p), self.arena, ctypes.c_size_t(size))
        after, end = [], 0
        for arg, place in zip((a for a in args if isinstance(a, numpy.ndarray)), places):
            if (memory[end:place] != 0xA5).any():
                raise Failure("bytes between buffers were written")
            end = place + arg.nbytes
            after.append(memory[place:end].copy())
        if (memory[end:] != 0xA5).any():
            raise Failure("bytes behind the buffers were written")
        return after

    def apart(self, function, numbers, args):
        """The buffers afterwards; each is an allocation."""
        values, held = [], []
        for arg in args:
            if isinstance(arg, numpy.ndarray):
                place = ctypes.c_uint64()
                self.call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(max(arg.nbytes, 1)))
                self.call("cuMemcpyHtoD_v2", place, arg.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(arg.nbytes))
                held.append((place, arg.nbytes))
                values.append(place)
            else:
                values.append(arg)
        self.start(function, numbers, values)
        after = []
        for place, size in held:
            memory = numpy.empty(size, dtype=numpy.uint8)
            self.call("cuMemcpyDtoH_v2", memory.ctypes.data_as(ctypes.c_void_p), place, ctypes.c_size_t(size))
            self.call("cuMemFree_v2", place)
            after.append(memory)
        return after

    def about(self):
        name, version = ctypes.create_string_buffer(100), ctypes.c_int()
        self.call("cuDeviceGetName", name, 100, self.device)
        self.call("cuDriverGetVersion", ctypes.byref(version))
        return f"{name.value.decode()}, CUDA {version.value // 1000}.{version.value // 10 % 100} driver"


def arguments(plan, args, launch, numbers):
    """What a launch gets, and the types of its buffers."""
    values, types, at = [], [], iter(numbers)
    for index, arg in enumerate(args):
        if arg[0] == "b":
            kind = plan.types[arg[1]]
            values.append(kind.fill(int(arg[2]), int(arg[3]), mix_one(launch + index)))
            types.append(kind)
        else:
            word = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}[int(arg[1])]
            values.append(word(next(at)))
    return values, types


def digest(types, after):
    total, place = 0, 0
    with numpy.errstate(over="ignore"):
        for kind, raw in zip(types, after):
            words = kind.words(raw)
            places = mix(numpy.arange(place, place + len(words), dtype=U))
            total += int(mix(words + places).sum(dtype=U))
            place += len(words)
    return total & (1 << 64) - 1


def one(device, plan, kernel, function, launch, run):
    """What to say of a launch that went wrong, and its buffers."""
    name, _, _, numbers, args, _ = kernel
    number, seed, wanted, *scalars = launch
    values, types = arguments(plan, args, seed, scalars)
    after = run(function, numbers, values)
    if digest(types, after) != wanted:
        return (name, number, "other bits"), after
    return None


PLAN, DEVICE = None, None


def begin(folder):
    global PLAN, DEVICE
    PLAN, DEVICE = Plan(folder), Device()


def work(number):
    """Runs the launches of a module."""
    said, count, started = [], 0, time.monotonic()
    kernels = [kernel for kernel in PLAN.kernels if kernel[1] == number]
    module = None
    for kernel in kernels:
        for launch in kernel[5]:
            count += 1
            try:
                if module is None:
                    module, functions = DEVICE.load(PLAN.modules[number]), {}
                name = kernel[0]
                if name not in functions:
                    functions[name] = DEVICE.function(module, name, kernel[3][4])
                wrong = one(DEVICE, PLAN, kernel, functions[name], launch, DEVICE.in_arena)
                if wrong:
                    said.append(wrong)
            except Failure as failure:
                said.append(((kernel[0], launch[0], str(failure)), []))
                DEVICE.leave()
                module = None
                if "cuModuleLoadDataEx" in str(failure):
                    return said, count, time.monotonic() - started
    if module is not None:
        DEVICE.cuda.cuModuleUnload(module)
    return said, count, time.monotonic() - started


def serve(pipe, folder):
    begin(folder)
    for number in iter(pipe.recv, None):
        pipe.send(work(number))


class Worker:
    """A process for modules one after the other, and another when it dies, as in the driver's assembler."""

    def __init__(self, context, folder):
        self.context, self.folder, self.process = context, folder, None

    def run(self, number):
        """What `work` gives, and how processes ended that were at it, twice at most."""
        ends = []
        while len(ends) < 2:
            if self.process is None:
                self.pipe, theirs = self.context.Pipe()
                self.process = self.context.Process(target=serve, args=(theirs, self.folder), daemon=True)
                self.process.start()
                theirs.close()
            try:
                self.pipe.send(number)
                return self.pipe.recv(), ends
            except (EOFError, OSError):
                self.process.join()
                ends.append(self.process.exitcode)
                self.process = None
        return ([], 0, 0), ends

    def end(self):
        if self.process is not None:
            self.pipe.send(None)
            self.process.join()


def watched(folder, count, share):
    index, shares = (int(x) for x in share.split("/"))
    plan, device = Plan(folder), Device()
    # Those with shared memory have more to go wrong; targets follow each other in the plan.
    fit = [kernel for kernel in plan.kernels if kernel[2] and kernel[3][4] > 0]
    chosen = fit[:: max(len(fit) // count, 1)][:count][index::shares]
    said = []
    for kernel in chosen:
        text = plan.modules[kernel[1]]
        # This kernel alone, behind what stands before the first.
        parts = text.split(b".visible .entry ")
        mine = [part for part in parts[1:] if part.split(b"(")[0].strip() == kernel[0].encode()]
        module = device.load(parts[0] + b".visible .entry " + mine[0])
        function = device.function(module, kernel[0], kernel[3][4])
        wrong = one(device, plan, kernel, function, kernel[5][0], device.apart)
        if wrong:
            said.append(wrong[0])
        device.call("cuModuleUnload", module)
    for name, number, what in said:
        print(f"{name} input {number}: {what}")
    print(f"watched {len(chosen)} kernels: {len(said)} went wrong", flush=True)


def main(folder, out):
    started = time.monotonic()
    plan = Plan(folder)
    workers = min(16, os.cpu_count() or 1)
    context = multiprocessing.get_context("spawn")
    said, count, longest, left = [], 0, 0, len(plan.modules)
    modules = iter(range(len(plan.modules)))
    lock = threading.Lock()

    def crew():
        nonlocal count, longest, left
        worker = Worker(context, folder)
        while time.monotonic() - started < SECONDS:
            with lock:
                number = next(modules, None)
            if number is None:
                break
            (wrong, launches, seconds), ends = worker.run(number)
            with lock:
                said.extend(wrong)
                if ends:
                    names = " ".join(kernel[0] for kernel in plan.kernels if kernel[1] == number)
                    said.append(((f"module{number}", 0, f"processes ended with {ends} at {names}"), []))
                count, longest, left = count + launches, max(longest, seconds), left - 1
        worker.end()

    threads = [threading.Thread(target=crew) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    about = Device().about()
    kept = {}
    with open(os.path.join(out, "fuzz.txt"), "w") as file:
        for (name, number, what), after in said:
            print(name, number, what, file=file)
            if after and len(kept) < MOST_KEPT:
                kept[f"{name}_{number}"] = numpy.concatenate(after)
    numpy.savez_compressed(os.path.join(out, "fuzz.npz"), **kept)
    differing = [what for what, after in said if after]
    failed = [what for what, after in said if not after]
    for name, number, what in failed[:10]:
        print(f"{name} input {number}: {what[:300]}")
    kernels = sorted({name for name, _, _ in differing})
    print("other bits:", " ".join(kernels[:40]) or "none")
    seconds = time.monotonic() - started
    print(
        f"{count} launches of {len(plan.kernels)} kernels on {about}: {len(failed)} failed, {len(differing)} left other bits"
        f" ({len(kernels)} kernels); {left} of {len(plan.modules)} modules left for want of time;"
        f" {seconds:.1f} s, longest module {longest:.1f} s"
    )


if __name__ == "__main__":
    if len(sys.argv) > 3:
        watched(sys.argv[1], int(sys.argv[4]), sys.argv[5])
    else:
        main(sys.argv[1], sys.argv[2])
