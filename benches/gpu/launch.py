"""Loads PTX that Tilelift wrote and launches it on torch tensors, with the metadata that `tilelift compile --meta` writes."""
import ctypes

import torch
from cuda.bindings import driver as cu

C_TYPES = {"i1": ctypes.c_uint8, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32,
           "i64": ctypes.c_int64, "f32": ctypes.c_float, "f64": ctypes.c_double}


def check(result):
    error, *values = result
    if error != cu.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"{error}: {cu.cuGetErrorString(error)[1]}")
    return values[0] if len(values) == 1 else values


class Kernel:
    """A loaded entry and what the driver says of it."""

    def __init__(self, ptx, meta):
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        log = bytearray(1 << 16)
        option = cu.CUjit_option
        result = cu.cuModuleLoadDataEx(
            ptx.encode() + b"\0", 2,
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
            check(cu.cuFuncSetAttribute(
                self.function, attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, meta["shared"]))

    def bind(self, grid, args):
        """A callable that launches on torch's current stream. Arguments are tensors and numbers."""
        held = []
        for arg, param in zip(args, self.meta["params"], strict=True):
            is_tensor = isinstance(arg, torch.Tensor)
            held.append(ctypes.c_uint64(arg.data_ptr()) if is_tensor else C_TYPES[param["type"]](arg))
        pointers = (ctypes.c_void_p * max(1, len(held)))(*[ctypes.addressof(h) for h in held])
        x, y, z = (tuple(grid) + (1, 1))[:3]
        bx, by, bz = self.meta["block"]
        shared, function = self.meta["shared"], self.function

        def go(_keep=(held, pointers, args)):
            stream = torch.cuda.current_stream().cuda_stream
            check(cu.cuLaunchKernel(function, x, y, z, bx, by, bz, shared, stream, ctypes.addressof(pointers), 0))
        return go
