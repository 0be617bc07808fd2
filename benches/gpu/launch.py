"""Loads PTX that Tilelift wrote and launches it on torch tensors, with the metadata that `tilelift compile --meta` writes."""
import ctypes
import re

import torch
from cuda.bindings import driver as cu

C_TYPES = {"i1": ctypes.c_uint8, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32,
           "i64": ctypes.c_int64, "f32": ctypes.c_float, "f64": ctypes.c_double}


def check(result):
    error, *values = result
    if error != cu.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{error}: {cu.cuGetErrorString(error)[1]}")
    return values[0] if len(values) == 1 else values


class Refused(Exception):
    """Arguments for which the kernel without maps is meant."""


def with_sign(x, bits):
    """A number of so many bits, which were given with sign or without."""
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def within(x, least, most):
    """A number that must be one of these."""
    if not least <= x <= most:
        raise Refused(f"{x} is not from {least} to {most}")
    return x


def quotient(a, b):
    """Rounded to zero."""
    if b == 0:
        raise Refused(f"{a} divided by 0")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


NUMBERS = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": quotient,
    "cdiv": lambda a, b: -(-a // b) if b else quotient(a, b), "min": min, "max": max, "and_": lambda a, b: a & b, "or_": lambda a, b: a | b,
    "eq": lambda a, b: int(a == b), "ne": lambda a, b: int(a != b), "lt": lambda a, b: int(a < b), "le": lambda a, b: int(a <= b),
    "signed": lambda a, b: within(a, -1 << (b - 1), (1 << (b - 1)) - 1), "unsigned": lambda a, b: within(a, 0, (1 << b) - 1),
}
ELEMENTS = {"i8": "UINT8", "f8e4m3": "UINT8", "f8e5m2": "UINT8", "i16": "UINT16", "i32": "INT32", "i64": "INT64",
            "f16": "FLOAT16", "bf16": "BFLOAT16", "f32": "FLOAT32", "f64": "FLOAT64"}
BYTES = {"i8": 1, "f8e4m3": 1, "f8e5m2": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4, "i64": 8, "f64": 8}


def number(text, args, grid, parts=()):
    """What an expression of a recipe is for these arguments and these parts of it."""
    text = re.sub(r"\bp(\d+)\b", r"args[\1]", re.sub(r"\b(and|or)\(", r"\1_(", text))
    text = re.sub(r"\bn(\d+)\b", r"parts[\1]", text)
    text = re.sub(r"\bgrid([xyz])\b", lambda m: f"grid[{'xyz'.index(m[1])}]", text)
    return eval(text, {"args": args, "grid": grid, "parts": parts, **NUMBERS})


def tensor_map(param, args, grid):
    """The 128 bytes of a tensor map."""
    recipe = param["recipe"]
    parts = []
    for text in recipe.get("parts", []):
        parts.append(number(text, args, grid, parts))
    known = lambda text: number(text, args, grid, parts)
    if failed := [condition for condition in param["conditions"] if not known(condition)]:
        raise Refused(f"not {' and '.join(map(str, failed))}")
    size = BYTES[recipe["element"]]
    rank = len(recipe["extents"])
    extents = [cu.cuuint64_t(within(known(e), 1, 1 << 32)) for e in reversed(recipe["extents"])]
    steps = [within(known(e) * size, 0, (1 << 40) - 1) for e in reversed(recipe["strides"])]
    strides = [cu.cuuint64_t(step) for step in steps]
    box = [cu.cuuint32_t(e) for e in reversed(recipe["box"])]
    base = args[recipe["base"]].data_ptr() + known(recipe["offset"]) * size
    if any(x % 16 for x in (base, *steps)):
        raise Refused(f"{base} and {steps} are not all multiples of 16")
    swizzle = {0: "NONE", 32: "32B", 64: "64B", 128: "128B"}[recipe["swizzle"]]
    # The driver refuses a null pointer to strides, though one dimension has none.
    made = check(cu.cuTensorMapEncodeTiled(
        getattr(cu.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{ELEMENTS[recipe['element']]}"), rank, base, extents, strides or [cu.cuuint64_t(0)], box,
        [cu.cuuint32_t(1)] * rank, cu.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(cu.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{swizzle}"),
        cu.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        cu.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
    words = (ctypes.c_uint64 * 24)()
    # 64 bytes are asked for; what ctypes makes is aligned to less.
    start = -ctypes.addressof(words) % 64 // 8
    for i, word in enumerate(made.opaque):
        words[start + i] = int(word)
    return words, ctypes.addressof(words) + 8 * start


def overlapping(grid, block, shared, stream):
    """What the driver is told of a launch that may begin while the one ahead of it runs."""
    config = cu.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid
    config.blockDimX, config.blockDimY, config.blockDimZ = block
    config.sharedMemBytes, config.hStream = shared, stream
    attribute = cu.CUlaunchAttribute()
    attribute.id = cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    attribute.value.programmaticStreamSerializationAllowed = 1
    config.attrs, config.numAttrs = [attribute], 1
    return config


class Kernel:
    """A loaded entry, of PTX or of a cubin's bytes, and what the driver says of it."""

    def __init__(self, ptx, meta):
        # A context, without a kernel of torch's: those may be what is replaced.
        torch.cuda.synchronize()
        log = bytearray(1 << 16)
        option = cu.CUjit_option
        result = cu.cuModuleLoadDataEx(
            ptx if isinstance(ptx, bytes) else ptx.encode() + b"\0", 2,
            [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES], [log, len(log)])
        if result[0] != cu.CUresult.CUDA_SUCCESS:
            raise RuntimeError(f"{result[0]}: " + bytes(log).split(b"\0")[0].decode())
        self.module = result[1]
        self.function = check(cu.cuModuleGetFunction(self.module, meta["name"].encode()))
        self.meta = meta
        attribute = cu.CUfunction_attribute
        self.registers = check(cu.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, self.function))
        self.local_bytes = check(cu.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, self.function))
        if meta["shared"] > 48 * 1024:
            # As the driver's launcher does, and Triton.
            check(cu.cuFuncSetCacheConfig(self.function, cu.CUfunc_cache.CU_FUNC_CACHE_PREFER_SHARED))
            check(cu.cuFuncSetAttribute(
                self.function, attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, meta["shared"]))

    def resident(self, threads, shared):
        """How many CTAs the device executes at a time."""
        on_each = check(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(self.function, threads, shared))
        return on_each * torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count

    def bind(self, grid, args, ctas=None, dependent=False):
        """A callable that launches on torch's current stream. Arguments are tensors and numbers. A persistent kernel gets as many CTAs
        as the device executes at a time, or `ctas`. A `dependent` launch may begin while the one ahead of it runs."""
        x, y, z = (tuple(grid) + (1, 1))[:3]
        maps = [param for param in self.meta["params"] if param["kind"] == "tensormap"]
        programs = [param for param in self.meta["params"] if param["kind"] == "programs"]
        plain = [param for param in self.meta["params"] if param["kind"] not in ("tensormap", "programs")]
        held, numbers = [], []
        for arg, param in zip(args, plain, strict=True):
            is_tensor = isinstance(arg, torch.Tensor)
            is_integer = not is_tensor and param["type"].startswith("i") and param["type"] != "i1"
            numbers.append(with_sign(arg, 8 * param["bytes"]) if is_integer else arg)
            held.append(ctypes.c_uint64(arg.data_ptr()) if is_tensor else C_TYPES[param["type"]](arg))
        held += [ctypes.c_int32((x, y, z)[param["axis"]]) for param in programs]
        places = [ctypes.addressof(h) for h in held]
        for param in maps:
            words, place = tensor_map(param, numbers, (x, y, z))
            held.append(words)
            places.append(place)
        pointers = (ctypes.c_void_p * max(1, len(places)))(*places)
        bx, by, bz = self.meta["block"]
        shared, function = self.meta["shared"], self.function
        if self.meta.get("persistent"):
            x, y, z = min(x * y * z, ctas or self.resident(bx, shared)), 1, 1

        def go(_keep=(held, pointers, args)):
            if 0 in (x, y, z):
                return  # As Triton's launcher: the driver refuses a grid without programs.
            stream = torch.cuda.current_stream().cuda_stream
            if dependent:
                check(cu.cuLaunchKernelEx(overlapping((x, y, z), (bx, by, bz), shared, stream), function, ctypes.addressof(pointers), 0))
            else:
                check(cu.cuLaunchKernel(function, x, y, z, bx, by, bz, shared, stream, ctypes.addressof(pointers), 0))
        return go
