"""Writes programs.txt: what the kernels of programs.py store on Triton's interpreter. Made with Triton 3.6.0; needs no GPU:

    python tests/language/make_programs.py > tests/language/programs.txt
    python tests/language/make_programs.py compile                        compiles each with Triton instead, for sm_80

Where the interpreter differs from Triton's compiler, or cannot run a kernel, the values are stated here with the reason.
"""
import math
import os
import sys

import numpy as np

COMPILE = len(sys.argv) > 1 and sys.argv[1] == "compile"
if not COMPILE:
    from interpreted import DTYPES, Array, line, written

import programs  # noqa: E402

# The exponent's argument is rounded, the functions of the device err by a few units; all of it in f32.
CLOSE = "rel 4e-6 abs 1e-6"
RANDOM = np.random.default_rng(3)


def normal(*shape):
    return np.round(RANDOM.standard_normal(shape) * 64) / 64


def erf(x):
    return np.vectorize(math.erf)(x)


A, B = normal(24, 40), normal(40, 20)
Q, K, V = normal(16, 16), normal(24, 16), normal(24, 16)


def attend():
    s = (Q @ K.T) * 0.25
    s[np.arange(16)[:, None] < np.arange(24)[None, :]] = -np.inf
    p = np.exp(s - s.max(1, keepdims=True))
    return ((p / p.sum(1, keepdims=True)) @ V).reshape(-1)


def leaky(c):
    c = np.where(c >= 0, c, 0.01 * c)
    return c.astype(np.float16).reshape(-1)


I32, F32 = np.int32, np.float32
EIGHT = [3.5, -1.25, 0.0, 7.0, -2.5, 0.75, 1.0, -6.0]
SIXTEEN = [5, 3, 9, 1, 14, 7, 0, 11, 2, 8, 13, 4, 15, 6, 12, 10]
INF, NAN = float("inf"), float("nan")

# name, arguments (name, signature type, data, a length of an output, or None for what the signature says itself), grid,
# stated values by argument, bound, and names of constants
CASES = [
    ("walrus", [("out", "*fp32", 8), ("x", "*fp32", [3, 1, 4, 1, 5, 9, 2, 6]), ("n", "i32", 8)], 1, {}),
    ("defaults", [("out", "*fp32", 12), ("x", "*fp32", [1, 2, 3, -4])], 1, {}),
    ("unrolled_pointers", [("out", "*fp32", 8), ("a", "*fp32", range(8)), ("b", "*fp32", range(8, 16)), ("c", "*fp32", range(16, 24)),
                           ("n", "i32", 8)], 1, {}),
    ("hints", [("out", "*i32", 16), ("x", "*i32", range(64)), ("n", "i32:16", 16), ("stride", "i32", 4)], 1, {}),
    ("where_broadcasts", [("out", "*fp32", 32), ("x", "*fp32", range(32)), ("n", "i32", 6)], 1, {}),
    ("wide_offsets", [("out", "*fp32", 8), ("x", "*fp32", range(16)), ("stride", "i64", 8), ("n", "i32", 4)], 2, {}),
    ("casts", [("out", "*i32", 24), ("x", "*fp32", [2.75, -2.7501, 0.0, 1000.3]), ("i", "*i32", [300, -1, 127, 128])], 1, {}),
    ("masked_atomics", [("out", "*i32", 3), ("total", "*i32", [0, 0, -5, 3, 8, 14, 1, 7, 5]), ("x", "*i32", [1, 2, 3, 4, -5, 6, 7, 100]),
                        ("n", "i32", 7)], 1, {}),
    ("float_atomics", [("out", "*fp32", [-3, 0.5, 0, 1]), ("x", "*fp32", EIGHT)], 1, {}),
    ("matmul_kernel", [("a_ptr", "*fp16", A.reshape(-1)), ("b_ptr", "*fp16", B.reshape(-1)), ("c_ptr", "*fp16", 24 * 20), ("M", "i32", 24),
                       ("N", "i32", 20), ("K", "i32", 40), ("stride_am", "i32", 40), ("stride_ak", "i32:1", None), ("stride_bk", "i32", 20),
                       ("stride_bn", "i32:1", None), ("stride_cm", "i32", 20), ("stride_cn", "i32:1", None), ("BLOCK_M", 16, None),
                       ("BLOCK_N", 16, None), ("BLOCK_K", 32, None), ("GROUP_M", 2, None), ("ACTIVATION", "'leaky_relu'", None)], 4,
     {"c_ptr": lambda *_: leaky(A @ B)}, "rel 1e-3 abs 1e-5"),
    ("dots", [("out", "*i32", 1024), ("a", "*i8", RANDOM.integers(-128, 128, 1024)), ("b", "*i8", RANDOM.integers(-128, 128, 1024))], 1, {}),
    ("three_axes", [("out", "*i32", 24)], (2, 3, 4), {}),
    ("while_loops", [("out", "*i32", 2), ("x", "*i32", [1, 2, 3, 4, 5, 7, 8, 9]), ("n", "i32", 8)], 1, {}),
    ("named", [("out", "*fp32", 2), ("x", "*fp32", EIGHT), ("n", "i32", 8)], 1, {}, CLOSE),
    ("log_sum_exp", [("out", "*fp32", 2), ("x", "*fp32", EIGHT + EIGHT[::-1])], 1, {}, CLOSE),
    ("recurrence", [("out", "*fp32", 8), ("a", "*fp32", [0.5, 2, 1, 0.25, 4, 1, 0.5, 2]), ("b", "*fp32", range(8)), ("REVERSE", True, None)],
     1, {}),
    ("recurrence", [("out", "*fp32", 8), ("a", "*fp32", [0.5, 2, 1, 0.25, 4, 1, 0.5, 2]), ("b", "*fp32", range(8)), ("REVERSE", False, None)],
     1, {}),
    ("shapes", [("out", "*i32", 64), ("x", "*i32", SIXTEEN)], 1, {}),
    ("orders", [("out", "*i32", 100), ("x", "*i32", SIXTEEN), ("index", "*i32", SIXTEEN[::-1])], 1, {}),
    ("swizzled", [("out", "*i32", 40), ("M", 5, None), ("N", 4, None), ("GROUP", 2, None)], 20, {}),
    ("block_pointers", [("out", "*fp32", 33), ("x", "*fp32", range(33)), ("rows", "i32", 3), ("columns", "i32", 11)], 1, {}),
    ("descriptors", [("out", "*fp32", 96), ("x", "*fp32:16", range(96)), ("rows", "i32", 6), ("columns", "i32:16", 16)], 1, {}),
    # In the interpreter NaN spreads through all of them.
    ("nans", [("out", "*fp32", 18), ("x", "*fp32", [1, NAN, -3, INF]), ("y", "*fp32", [NAN, 2, -2, 5])], 1, {
        "out": lambda *_: np.array([1, 2, -2, INF, NAN, NAN, -3, 5, 1, -1, -1, 1, 1, 2, -2, 6, INF, -2], F32)}),
    ("quotients", [("out", "*fp32", 24), ("x", "*fp32", [1, -2, 3, 10]), ("y", "*fp32", [3, 7, -9, 0.1])], 1, {}, CLOSE),
    ("integers", [("out", "*i32", 44), ("x", "*i32", [3, -4, 100000, -7]), ("u", "*u32", [3, 4294967295, 1 << 31, 77777777])], 1, {}),
    ("returns_early", [("out", "*fp32", [50] * 6), ("x", "*fp32", [-2, 0, 9, 3, 4, 1]), ("n", "i32", 5)], 6, {}),
    ("returned_values", [("out", "*fp32", 6), ("x", "*fp32", [-2.5, 0, 9])], 3, {}),
    ("optional", [("out", "*fp32", 8), ("x", "*fp32", EIGHT), ("bias", "*fp32", range(8)), ("HAS_SCALE", True, None), ("scale", "fp32", 0.5),
                  ("n", "i32", 8)], 1, {}),
    ("optional", [("out", "*fp32", 8), ("x", "*fp32", EIGHT), ("bias", None, None), ("HAS_SCALE", False, None), ("scale", "fp32", 0.5),
                  ("n", "i32", 8)], 1, {}),
    ("pointers_move", [("out", "*fp32", 1), ("x", "*fp32", range(21)), ("n", "i32", 21), ("STEP", 8, None)], 1, {}),
    ("persistent", [("out", "*i32", 7), ("n", "i32", 7)], 3, {}),
    ("nested_loops", [("out", "*i32", 2), ("n", "i32", 6)], 1, {}),
    ("constexprs", [("out", "*i32", 10), ("N", 16, None), ("DTYPE", "i32", None)], 1, {}),
    ("functions", [("out", "*fp32", 96), ("x", "*fp32", EIGHT)], 1, {}, CLOSE),
    ("zero_dimensional", [("out", "*fp32", 3), ("x", "*fp32", [1, 5, -2, 4])], 1, {}),
    ("element_types", [("out", "*bf16", 8), ("x", "*fp16", [1, 5, -2, 4])], 1, {}),
    ("reductions", [("out", "*fp32", 51), ("x", "*fp32", EIGHT * 2 + EIGHT[::-1] * 2)], 1, {}, CLOSE),
    ("masks_broadcast", [("out", "*fp32", 24), ("x", "*fp32", range(32)), ("rows", "i32", 3), ("columns", "i32", 7)], 1, {}),
    ("scalars", [("out", "*fp32", 8), ("flags", "*i1", [False, True]), ("n", "i32", 5)], 1, {}),
    ("philox", [("out", "*i32", 16), ("seed", "i32", 77), ("offset", "i32", 1000)], 1, {}),
    ("tuples", [("out", "*fp32", 5), ("x", "*fp32", [1.5]), ("y", "*fp32", [-4])], 1, {}),
    ("static_lists", [("out", "*fp32", 1), ("x", "*fp32", EIGHT), ("N", 5, None)], 1, {}),
    ("higher_order", [("out", "*fp32", 17), ("x", "*fp32", EIGHT)], 1, {}),
    ("recursion", [("out", "*fp32", 8), ("x", "*fp32", [1, 2, -3, 0.5])], 1, {}),
    ("attention", [("q_ptr", "*fp32", Q.reshape(-1)), ("k_ptr", "*fp32", K.reshape(-1)), ("v_ptr", "*fp32", V.reshape(-1)), ("out", "*fp32", 256),
                   ("n", "i32", 24), ("scale", "fp32", 0.25), ("N", 16, None), ("D", 16, None), ("BLOCK", 16, None), ("CAUSAL", True, None)], 1,
     {"out": lambda *_: attend()}, "rel 1e-5 abs 1e-5"),
    # The interpreter has no libdevice.
    ("library_of_device", [("out", "*fp32", 64), ("x", "*fp32", EIGHT)], 1, {"out": lambda x: np.concatenate(
        [np.tanh(x), np.abs(x) ** 1.5, np.arctan2(x, x + 0.5), np.rint(x), np.log1p(np.abs(x)), np.fmod(x, 0.75),
         np.copysign(np.floor(np.abs(x) + 0.5), x), x * x + x])}, CLOSE),
    ("conditional_types", [("out", "*fp32", 4), ("x", "*fp32", [1.5, 2.5, -3.5, 4]), ("MODE", 0, None)], 1, {}),
    ("conditional_types", [("out", "*fp32", 4), ("x", "*fp32", [1.5, 2.5, -3.5, 4]), ("MODE", 1, None)], 1, {}),
    ("conditional_types", [("out", "*fp32", 4), ("x", "*fp32", [1.5, 2.5, -3.5, 4]), ("MODE", 2, None)], 1, {}),
    ("branches_merge", [("out", "*fp32", 3), ("x", "*fp32", [1.5]), ("n", "i32", 7)], 1, {}),
    ("branches_merge", [("out", "*fp32", 3), ("x", "*fp32", [1.5]), ("n", "i32", 2)], 1, {}),
    ("bits", [("out", "*i32", 16), ("x", "*fp32", [1.5, -1000.3, 0.1, 3e10])], 1, {}),
    ("unpack_int4", [("out", "*fp16", 32), ("packed", "*i32", [0x76543210, -2, 0x12345678, 0x0FEDCBA9]), ("scales", "*fp16", [0.5, 2]),
                     ("zeros", "*i32", [0x38]), ("G", 16, None), ("N", 32, None)], 1, {}),
    ("spin_lock", [("out", "*i32", 5), ("lock", "*i32", [0]), ("count", "*i32", [0])], 5, {}),
]
SHORT = {"fp16": "f16", "fp32": "f32", "fp64": "f64"}


def constant(text):
    import triton.language as tl
    types = {"i32": tl.int32, "fp32": tl.float32, "fp16": tl.float16}
    return types[text] if text in types else text.strip("'")


def compile_all():
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    bad = 0
    for case in CASES:
        fn = getattr(programs, case[0])
        signature, values, attrs = {}, {}, {}
        for i, (arg, ty, data) in enumerate(case[1]):
            is_type = isinstance(ty, str) and not ty.startswith("'") and not (data is None and ":" not in ty)
            if not is_type or ty.endswith(":1"):
                signature[arg] = "constexpr"
                values[(i,)] = 1 if is_type else constant(ty) if isinstance(ty, str) else ty
            else:
                signature[arg] = ty.split(":")[0]
                if ty.endswith(":16"):
                    attrs[(i,)] = [["tt.divisibility", 16]]
        sys.stdout.flush()
        # A process of its own, as some of Triton's refusals are aborts.
        if (child := os.fork()) == 0:
            try:
                triton.compile(ASTSource(fn, signature, values, attrs), target=GPUTarget("cuda", 80, 32))
            except Exception as e:
                inner = e
                while inner.__cause__:
                    inner = inner.__cause__
                print(f"{case[0]}: {str(e)[-600:]} / {str(inner)[-300:]}", flush=True)
                os._exit(1)
            os._exit(0)
        bad += os.waitpid(child, 0)[1] != 0
    print(f"{len(CASES)} cases, {bad} refused")


def main():
    for name, arguments, grid, stated, *rest in CASES:
        bound = rest[0] if rest else "exact"
        arrays, given, signature = {}, [], []
        for arg, ty, data in arguments:
            if not isinstance(ty, str):
                signature.append(str(ty))
                given.append(ty)
            elif ty.startswith("*"):
                kind = SHORT.get(ty[1:].split(":")[0], ty[1:].split(":")[0])
                output = isinstance(data, int)
                array = np.zeros(data, DTYPES[kind]) if output else np.array(list(data)).astype(DTYPES[kind])
                signature.append(ty)
                arrays[arg] = (kind, array, output, array.copy())
                given.append(Array(array, kind))
            elif data is None:
                signature.append(ty)
                given.append(1 if ty.endswith(":1") else constant(ty))
            else:
                signature.append(ty)
                given.append(data)
        expected = {}
        if not stated:
            try:
                getattr(programs, name)[grid if isinstance(grid, tuple) else (grid,)](*given)
            except Exception as e:
                print(f"# {name}: the interpreter fails: {str(e)[:200]!r} / {str(e.__cause__)[:300]!r}")
                continue
            expected = {arg: entry[1] for arg, entry in arrays.items() if entry[2] or entry[1].tobytes() != entry[3].tobytes()}
        else:
            inputs = [entry[3] for entry in arrays.values() if not entry[2]]
            for arg, make in stated.items():
                expected[arg] = make(*inputs)
        shown = ",".join(map(str, grid)) if isinstance(grid, tuple) else grid
        print(f"kernel programs.py {name} \"{', '.join(signature)}\" grid={shown}")
        for arg, ty, data in arguments:
            if arg in arrays:
                kind, _, output, before = arrays[arg]
                print(line(arg, kind, before, output, expected.get(arg), bound if kind[0] in "fb" else "exact"))
            elif isinstance(ty, str) and data is not None:
                kind = SHORT.get(ty.split(":")[0], ty.split(":")[0])
                print(f"{arg} {kind} scalar = {written(data, kind) if kind != 'f32' else data}")
        print()


if COMPILE:
    compile_all()
else:
    main()
