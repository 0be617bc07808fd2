"""Launches of kernels as the lines that cases.rs reads."""
import numpy as np

from interpreted import DTYPES, line

# Relative bounds of results that are rounded once to a type; f32 for arithmetic with approximate functions.
ROUNDED = {"f16": "rel 6e-4 abs 1e-6", "bf16": "rel 5e-3 abs 1e-6", "f32": "rel 4e-6 abs 2e-6"}
POINTERS = {"f16": "*fp16", "bf16": "*bf16", "f32": "*fp32", "i8": "*i8", "i32": "*i32", "i64": "*i64"}


class Case:
    """A launch: arguments in the order of the parameters."""

    def __init__(self, file, kernel, grid, warps=4, target=None):
        self.file, self.kernel, self.grid, self.warps, self.target = file, kernel, grid, warps, target
        self.signature, self.lines, self.constants = [], [], {}

    def data(self, name, ty, array, expected=None, bound=None, pointer=None):
        self.signature.append(pointer or POINTERS[ty])
        self.lines.append(line(name, ty, np.asarray(array, DTYPES[ty]), False, expected, bound))
        return self

    def out(self, name, ty, expected, bound=None, pointer=None):
        self.signature.append(pointer or POINTERS[ty])
        expected = np.asarray(expected)
        self.lines.append(line(name, ty, expected, True, expected, bound or ROUNDED[ty]))
        return self

    def number(self, name, ty, value):
        self.signature.append({"f32": "fp32"}.get(ty, ty))
        self.lines.append(f"{name} {ty} scalar = {value}")
        return self

    def one(self):
        """An integer that is specialised to one."""
        self.signature.append("i32:1")
        return self

    def constant(self, value):
        self.signature.append(str(value))
        return self

    def print(self):
        grid = ",".join(map(str, self.grid))
        target = f" target={self.target}" if self.target else ""
        print(f'kernel {self.file} {self.kernel} "{", ".join(self.signature)}" num_warps={self.warps}{target} grid={grid}')
        print("\n".join(self.lines) + "\n")


def wide(array):
    return np.asarray(array, np.float64)
