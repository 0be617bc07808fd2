"""Writes traps.txt: what the kernels of traps.py store on Triton's interpreter. Made with Triton 3.6.0; needs no GPU:

    python tests/data/language/make_traps.py > tests/data/language/traps.txt

Where the interpreter differs from Triton's compiler the value of the latter is stated here, with the reason.
"""
import numpy as np

from interpreted import DTYPES, Array, line, written

import traps

# name, arguments (name, signature type, data or None for an output with its length, or a constant), grid, stated values
NAN = float("nan")
TINY = 1e-40
CASES = [
    ("division", [("out", "*i32", 10), ("a", "*i32", [-7, 7, -7, 7]), ("b", "*i32", [2, -2, -2, 2]),
                  ("A", -7, None), ("B", 2, None)], 1, {}),
    ("weak_literals", [("out", "*fp32", 4), ("x", "*fp16", [1, 3, -7, 0.3])], 1, {}),
    # The interpreter executes Python, in which a variable holds what it was given.
    ("strong_variables", [("out", "*fp32", 4), ("x", "*fp16", [1, 3, -7, 0.3])], 1, {
        "out": lambda x: x.astype(np.float32) * np.float32(0.1)}),
    ("weak_constexpr", [("out", "*fp32", 4), ("x", "*fp16", [1, 3, -7, 0.3])], 1, {}),
    ("weak_through_calls", [("out", "*fp32", 4), ("x", "*fp16", [1, 3, -7, 0.3])], 1, {}),
    ("strong_arguments", [("out", "*fp32", 4), ("x", "*fp16", [1, 3, -7, 0.3]), ("factor", "fp32", 0.1)], 1, {
        # A number of Python is weak in the interpreter.
        "out": lambda x: x.astype(np.float32) * np.float32(0.1)}),
    # The interpreter computes bfloat16 in f32.
    ("mixed_halves", [("out", "*fp32", 8), ("x", "*fp16", [1, 2.001, -3, 65504]), ("y", "*bf16", [0.1, 1.01, 3, 1]),
                      ("i", "*i32", [1, 16777216, -5, 7])], 1, {
        "out": lambda x, y, i: np.concatenate([
            x + y.astype(np.float16), y.astype(np.float32) + i.astype(np.float32)]).astype(np.float32)}),
    ("half_division", [("out", "*fp32", 4), ("x", "*fp16", [1, 2, -7, 1]), ("y", "*fp16", [3, 7, 3, 0.3])], 1, {}),
    ("int_division", [("out", "*fp32", 4), ("x", "*i64", [1, -7, 1 << 40, 16777217]), ("y", "*i64", [3, 2, 3, 1])], 1,
     {}),
    # Sums of halves in f32, rounded once: these are exact either way.
    ("reductions", [("out", "*fp32", 6), ("h", "*fp16", [1, 2.5, -3, 100]), ("u", "*u8", [1, 200, 250, 7]),
                    ("b", "*bf16", [1, 2.5, -3, 100])], 1, {
        "out": lambda h, u, b: np.array([100.5, 100, 250, 458, 2, 100.5], np.float32)}),
    # The interpreter reads nothing where nothing is asked for.
    ("masked_load", [("out", "*i32", 8), ("x", "*i32", [1, 2, 3, 4, 5]), ("n", "i32", 5)], 1, {
        "out": lambda x: np.array([1, 2, 3, 4, 5, 0, 0, 0], np.int32)}),
    ("store_casts", [("out", "*i32", 4), ("flags", "*i1", 4), ("small", "*fp16", 4),
                     ("x", "*fp32", [2.9, -2.9, 0.25, 0])], 1, {
        # The interpreter takes the number for an integer on its way to a truth value.
        "out": lambda x: x.astype(np.int32), "flags": lambda x: x != 0, "small": lambda x: x.astype(np.float16)}),
    ("unsigned_offset", [("out", "*i32", 1), ("x", "*i32", [10, 11, 12, 13]), ("n", "u32", 4294967294)], 1, {
        "out": lambda x: x[2:3]}),
    ("products_wrap", [("out", "*i64", 2), ("n", "i32", 100000)], 1, {}),
    ("not_a_number", [("out", "*i32", 7), ("x", "*fp32", [NAN, 1])], 1, {
        # NumPy's maximum hands NaN on, the GPU's does not.
        "out": lambda x: np.array([1, 0, 0, 0, 1, 1, 1], np.int32)}),
    ("strong_comparisons", [("out", "*i32", 4), ("u", "*u32", [4294967295]), ("h", "*fp16", [0.1]),
                            ("b", "*bf16", [1])], 1, {}),
    ("equal_to_one", [("out", "*i32", 2), ("n", "i32:1", None)], 1, {"out": lambda: np.array([10, 1], np.int32)}),
    # The interpreter has no units that flush.
    ("denormals", [("out", "*fp32", 3), ("x", "*fp32", [TINY])], 1, {
        "out": lambda x: np.array([x[0] + x[0], x[0] * np.float32(0.5), 1], np.float32)}),
    ("ties", [("out", "*i32", 3), ("x", "*fp32", [3, 9, -4, 9, -4, 0, 1, 2])], 1, {}),
    ("cdiv_of_negatives", [("out", "*i32", 1), ("n", "i32", -7), ("d", "i32", 2)], 1, {}),
    ("combine_functions", [("out", "*i32", 10), ("x", "*i32", [3, -1, 4, 1, -5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3])], 1, {}),
    ("shifts", [("out", "*i32", 3), ("i", "*i32", [-16]), ("u", "*u32", [4294967280]), ("amount", "*i32", [2])], 1, {}),
    # `not` on a block is Python's in the interpreter.
    ("truth_values", [("out", "*i32", 20), ("x", "*i32", [5, 0, -1, 2])], 1, {
        "out": lambda x: np.array([1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 0, 1, 1], np.int32)}),
    ("conversions", [("out", "*i32", 16), ("x", "*fp32", [2.75, -2.75, 300.5, -129])], 1, {}),
    ("unsigned_wins", [("out", "*i64", 3), ("i", "*i32", [-2]), ("u", "*u32", [1])], 1, {}),
    ("left_padding", [("out", "*i32", 8), ("x", "*i32", list(range(8))), ("y", "*i32", [10, 20, 30, 40])], 1, {}),
    # The interpreter's `range` of a tensor does not work with NumPy 2.4.
    ("counters", [("out", "*i32", 3), ("n", "i32", 5)], 1, {"out": lambda: np.array([100, 531, 531], np.int32)}),
    ("counters_left", [("out", "*i32", 4), ("n", "i32", 5)], 1, {"out": lambda: np.array([40, -4, 7, 8], np.int32)}),
    ("counters_again", [("out", "*i32", 5), ("n", "i32", 4)], 1, {"out": lambda: np.array([33, 6, 12, 6, 3], np.int32)}),
    ("counters_nested", [("out", "*i32", 3), ("n", "i32", 4)], 1, {"out": lambda: np.array([908, 3, 7], np.int32)}),
    ("names_inside", [("out", "*i32", 5), ("n", "i32", 4)], 1, {"out": lambda: np.array([16, 9, 14, 8, 9], np.int32)}),
    # A number of Python is weak in the interpreter.
    ("typed_choices", [("out", "*fp32", 4), ("x", "*fp16", [1, 3, -7, 0.3])], 1, {
        "out": lambda x: x.astype(np.float32) * np.float32(0.1)}),
    ("remainders", [("out", "*fp32", 4), ("x", "*fp32", [7.5, -7.5, 7.5, 1e10]), ("y", "*fp32", [2, 2, -2, 3])], 1, {}),
    ("random_bits", [("bits", "*i32", 8), ("uniform", "*fp32", 8), ("seed", "i32", 12345)], 1, {}),
    ("scans", [("out", "*i32", 16), ("x", "*i8", [100, 100, -3, 1, 2, 3, 4, 5])], 1, {}),
    ("old_values", [("out", "*i32", 5), ("counter", "*i32", [0, 0]), ("lock", "*i32", [0])], 5, {}),
    ("constants_of_loops", [("out", "*i32", 2), ("a", "i32", 3), ("WIDE", False, None)], 1, {}),
]
SHORT = {"fp16": "f16", "fp32": "f32", "fp64": "f64"}

for name, arguments, grid, stated in CASES:
    arrays, given, signature, lines = {}, [], [], []
    for arg, ty, data in arguments:
        if not isinstance(ty, str):
            signature.append(str(ty))
            given.append(ty)
        elif ty.startswith("*"):
            kind = SHORT.get(ty[1:], ty[1:])
            output = isinstance(data, int)
            # The pattern is that of no result.
            array = np.full(data, 0, DTYPES[kind]) if output else np.array(data).astype(DTYPES[kind])
            signature.append(ty)
            arrays[arg] = (kind, array, output, array.copy())
            given.append(Array(array, kind))
        elif data is None:
            signature.append(ty)
            given.append(1)
        else:
            signature.append(ty)
            given.append(data)
    expected = {}
    if not stated:
        getattr(traps, name)[(grid,)](*given)
        expected = {arg: entry[1] for arg, entry in arrays.items() if entry[2] or entry[1].tobytes() != entry[3].tobytes()}
    else:
        inputs = [entry[3] for entry in arrays.values() if not entry[2]]
        for arg, make in stated.items():
            expected[arg] = make(*inputs)
    print(f"kernel traps.py {name} \"{', '.join(signature)}\" grid={grid}")
    for arg, ty, data in arguments:
        if arg in arrays:
            kind, _, output, before = arrays[arg]
            print(line(arg, kind, before, output, expected.get(arg), "exact"))
        elif isinstance(ty, str) and data is not None:
            kind = SHORT.get(ty.split(":")[0], ty.split(":")[0])
            shown = {"u32": "i32"}.get(kind, kind)
            print(f"{arg} {shown} scalar = {written(data, kind) if kind != 'f32' else data}")
    print()
