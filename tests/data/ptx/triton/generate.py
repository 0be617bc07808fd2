"""Writes the PTX files of this folder, and the small expected results beside them.

Run with Triton 3.6.0 and NumPy; no GPU is needed:

    python generate.py

The kernels are ours; Triton only compiles them. `tests/emulator/triton.rs` runs each file on the emulator.
"""

import os

import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import matmul_kernels

HERE = os.path.dirname(os.path.abspath(__file__))


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = where < n
    x = tl.load(x_ptr + where, mask=inside)
    y = tl.load(y_ptr + where, mask=inside)
    tl.store(out_ptr + where, x + y, mask=inside)


@triton.jit
def softmax(out_ptr, in_ptr, row_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    x = tl.load(in_ptr + row * row_stride + column, mask=inside, other=float("-inf")).to(tl.float32)
    x = tl.exp(x - tl.max(x, axis=0))
    y = x / tl.sum(x, axis=0)
    tl.store(out_ptr + row * row_stride + column, y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def gelu(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = where < n
    x = tl.load(x_ptr + where, mask=inside).to(tl.float32)
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    y = x * tl.sigmoid(2.0 * inner)
    tl.store(out_ptr + where, y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def layer_norm_forward(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + at, mask=at < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < columns, other=0.0).to(tl.float32)
        centred = tl.where(at < columns, x - mean, 0.0)
        squares += centred * centred
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < columns
        w = tl.load(w_ptr + at, mask=inside)
        b = tl.load(b_ptr + at, mask=inside)
        x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(y_ptr + at, ((x - mean) * rstd * w + b).to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def layer_norm_backward_dx(
    dx_ptr, dy_ptr, dw_ptr, db_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, lock_ptr, stride, columns,
    GROUPS: tl.constexpr, BLOCK: tl.constexpr, BARRIER: tl.constexpr,
):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * stride + at, mask=inside, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * stride + at, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + at, mask=inside).to(tl.float32)
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)
    hat = tl.where(inside, (x - mean) * rstd, 0.0)
    wdy = tl.where(inside, w * dy, 0.0)
    c1 = tl.sum(hat * wdy, axis=0) / columns
    c2 = tl.sum(wdy, axis=0) / columns
    dx = (wdy - (hat * c1 + c2)) * rstd
    tl.store(dx_ptr + row * stride + at, dx.to(dx_ptr.dtype.element_ty), mask=inside)
    # Rows of one group add their shares of dw and db to one buffer, in turn.
    group = row % GROUPS
    lock = lock_ptr + group
    used = lock_ptr + GROUPS + group
    dw_at = dw_ptr + group * columns + at
    db_at = db_ptr + group * columns + at
    dw = dy * hat
    db = dy
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    count = tl.load(used)
    # Every thread loads, one exchanges: without a barrier a slow warp may see the new value.
    if BARRIER:
        tl.debug_barrier()
    if count == 0:
        tl.atomic_xchg(used, 1)
    else:
        dw += tl.load(dw_at, mask=inside)
        db += tl.load(db_at, mask=inside)
    tl.store(dw_at, dw, mask=inside)
    tl.store(db_at, db, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def layer_norm_backward_dwdb(
    dw_part_ptr, db_part_ptr, dw_ptr, db_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    dw = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    db = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row[:, None] < rows) & (column[None, :] < columns)
        at = row[:, None] * columns + column[None, :]
        dw += tl.load(dw_part_ptr + at, mask=inside, other=0.0)
        db += tl.load(db_part_ptr + at, mask=inside, other=0.0)
    tl.store(dw_ptr + column, tl.sum(dw, axis=0), mask=column < columns)
    tl.store(db_ptr + column, tl.sum(db, axis=0), mask=column < columns)


def compile_to(name, kernel, signature, constants, aligned, warps, targets=(80, 90), stages=3):
    """One PTX file per target. `aligned` names the arguments divisible by 16."""
    names = kernel.arg_names
    attrs = {(names.index(a),): [["tt.divisibility", 16]] for a in aligned}
    full = {n: signature.get(n, "constexpr") for n in names}
    source = ASTSource(kernel, full, {(names.index(k),): v for k, v in constants.items()}, attrs)
    for target in targets:
        compiled = triton.compile(source, target=GPUTarget("cuda", target, 32),
                                  options={"num_warps": warps, "num_stages": stages})
        ptx = compiled.asm["ptx"]
        # Debug sections name the machine's folders and carry nothing to execute.
        lines = []
        skipping = False
        for line in ptx.splitlines():
            text = line.strip()
            if text.startswith(".section"):
                skipping = True
            if not skipping and not text.startswith((".loc", ".file", "//", "$L__")) and text:
                lines.append(line.rstrip())
            elif not skipping and text.startswith("$L__") and not text.startswith(("$L__tmp", "$L__func", "$L__info")):
                lines.append(line.rstrip())
            if skipping and text == "}":
                skipping = False
        with open(os.path.join(HERE, f"{name}_sm{target}.ptx"), "w") as out:
            out.write("\n".join(lines) + "\n")
        print(name, target, "shared", compiled.metadata.shared, "warps", warps)


def uniform(seed, count):
    """`count` numbers in [-1, 1) that f32 holds exactly; the Rust tests have the same generator."""
    state, out = seed, []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append((state >> 40) / 2.0**23 - 1.0)
    return np.array(out)


def half(seed, rows, columns):
    """A matrix of such numbers as f16 holds them."""
    return uniform(seed, rows * columns).astype(np.float16).astype(np.float64).reshape(rows, columns)


def write_expected(name, values):
    """One f64 a line, as its bits."""
    with open(os.path.join(HERE, f"{name}.expected"), "w") as out:
        for value in np.asarray(values, dtype=np.float64).ravel():
            out.write(f"{value.view(np.uint64):016x}\n")


def expected():
    x = uniform(1, 2 * 1000).reshape(2, 1000) * 8
    e = np.exp(x - x.max(axis=1, keepdims=True))
    write_expected("softmax", e / e.sum(axis=1, keepdims=True))
    x = uniform(2, 2 * 700).reshape(2, 700).astype(np.float16).astype(np.float64)
    w, b = uniform(3, 700), uniform(4, 700)
    mean = x.mean(axis=1, keepdims=True)
    rstd = 1 / np.sqrt(x.var(axis=1, keepdims=True) + np.float64(np.float32(1e-5)))
    write_expected("layer_norm_forward", (x - mean) * rstd * w + b)
    a, b = half(31, 40, 80), half(32, 80, 48)
    write_expected("matmul", a @ b)
    q, k, v = (half(seed, 64, 32) for seed in (33, 34, 35))
    p = np.exp2(2 * (q @ k.T))
    write_expected("attention", p / p.sum(axis=1, keepdims=True) @ v)


def main():
    expected()
    for dtype in ("fp32", "bf16"):
        compile_to(f"vector_add_{dtype}", vector_add,
                   {"x_ptr": f"*{dtype}", "y_ptr": f"*{dtype}", "out_ptr": f"*{dtype}", "n": "i32"},
                   {"BLOCK": 1024}, ["x_ptr", "y_ptr", "out_ptr"], 4)
    for dtype, warps in (("fp32", 4), ("fp32", 8), ("fp16", 4)):
        compile_to(f"softmax_{dtype}_w{warps}", softmax,
                   {"out_ptr": f"*{dtype}", "in_ptr": f"*{dtype}", "row_stride": "i32", "columns": "i32"},
                   {"BLOCK": 1024}, ["out_ptr", "in_ptr", "row_stride"], warps)
    compile_to("gelu_fp16", gelu, {"x_ptr": "*fp16", "out_ptr": "*fp16", "n": "i32"},
               {"BLOCK": 512}, ["x_ptr", "out_ptr", "n"], 4)
    compile_to("layer_norm_forward", layer_norm_forward,
               {"x_ptr": "*fp16", "y_ptr": "*fp16", "w_ptr": "*fp32", "b_ptr": "*fp32", "mean_ptr": "*fp32",
                "rstd_ptr": "*fp32", "stride": "i32", "columns": "i32", "eps": "fp32"},
               {"BLOCK": 512}, ["x_ptr", "y_ptr", "w_ptr", "b_ptr", "stride"], 4)
    for name, barrier in (("layer_norm_backward_dx", True), ("layer_norm_backward_dx_racy", False)):
        compile_to(name, layer_norm_backward_dx,
                   {"dx_ptr": "*fp32", "dy_ptr": "*fp32", "dw_ptr": "*fp32", "db_ptr": "*fp32", "x_ptr": "*fp32",
                    "w_ptr": "*fp32", "mean_ptr": "*fp32", "rstd_ptr": "*fp32", "lock_ptr": "*i32", "stride": "i32",
                    "columns": "i32"},
                   {"GROUPS": 2, "BLOCK": 256, "BARRIER": barrier}, ["dx_ptr", "dy_ptr", "x_ptr", "w_ptr", "dw_ptr", "db_ptr", "stride"], 4)
    compile_to("layer_norm_backward_dwdb", layer_norm_backward_dwdb,
               {"dw_part_ptr": "*fp32", "db_part_ptr": "*fp32", "dw_ptr": "*fp32", "db_ptr": "*fp32",
                "rows": "i32", "columns": "i32"},
               {"ROWS": 32, "COLUMNS": 32}, ["dw_part_ptr", "db_part_ptr", "dw_ptr", "db_ptr"], 4)
    numbers = ["M", "N", "K", "lda", "ldb", "ldc"]
    for dtype in ("fp32", "fp16"):
        compile_to(f"matmul_fp16_{dtype}", matmul_kernels.matmul,
                   {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": f"*{dtype}"} | dict.fromkeys(numbers, "i32"),
                   {"BM": 32, "BN": 32, "BK": 32, "GROUP": 8}, ["a_ptr", "b_ptr", "c_ptr", "lda", "ldb", "ldc"], 4, (80,))
    compile_to("attention_fp16", matmul_kernels.attention,
               {"q_ptr": "*fp16", "k_ptr": "*fp16", "v_ptr": "*fp16", "out_ptr": "*fp16", "N": "i32", "scale": "fp32"},
               {"BM": 32, "BN": 32, "D": 32}, ["q_ptr", "k_ptr", "v_ptr", "out_ptr", "N"], 4, (80,))
    # From 64 rows on products are those of warpgroups.
    for dtype in ("fp32", "fp16"):
        compile_to(f"matmul_fp16_{dtype}", matmul_kernels.matmul,
                   {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": f"*{dtype}"} | dict.fromkeys(numbers, "i32"),
                   {"BM": 64, "BN": 32, "BK": 32, "GROUP": 8}, ["a_ptr", "b_ptr", "c_ptr", "lda", "ldb", "ldc"], 4, (90,))
    compile_to("attention_fp16", matmul_kernels.attention,
               {"q_ptr": "*fp16", "k_ptr": "*fp16", "v_ptr": "*fp16", "out_ptr": "*fp16", "N": "i32", "scale": "fp32"},
               {"BM": 64, "BN": 32, "D": 32}, ["q_ptr", "k_ptr", "v_ptr", "out_ptr", "N"], 4, (90,))
    for name, specialised in (("matmul_described", False), ("matmul_described_specialised", True)):
        compile_to(name, matmul_kernels.matmul_described,
                   {"a_desc": "tensordesc<fp16[64, 32]>", "b_desc": "tensordesc<fp16[32, 32]>",
                    "c_desc": "tensordesc<fp16[64, 32]>", "K": "i32"},
                   {"BM": 64, "BN": 32, "BK": 32, "SPECIALISED": specialised}, [], 4, (90,))


if __name__ == "__main__":
    main()
