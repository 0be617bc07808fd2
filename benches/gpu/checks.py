"""Bank conflicts by ncu, and compute-sanitizer, on kernels of examples/kernels at small sizes, without torch and Triton.

usage: checks.py prepare FOLDER TILELIFT     compiles; needs no GPU
       checks.py launch FOLDER GROUP         launches the cases of a group (`small` or `large`) and checks them against NumPy
       checks.py all FOLDER                  ncu on the large cases, memcheck, racecheck, initcheck on the small ones
"""
import csv
import ctypes
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

import product_cases
from product_cases import Buffer, Case, Const, Number, cdiv, configs

METRICS = ["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st",
           "l1tex__data_bank_conflicts_pipe_lsu_mem_shared", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld",
           "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st", "l1tex__data_pipe_lsu_wavefronts_mem_shared",
           "smsp__inst_executed_op_ldsm", "smsp__inst_executed_op_shared_ld", "smsp__inst_executed_op_shared_st",
           "smsp__inst_executed_op_ldgsts", "smsp__sass_inst_executed_op_ldsm", "smsp__sass_inst_executed_op_ldgsts",
           "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldsm",
           "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts",
           "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ld",
           "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_st",
           "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared"]


def product(name, m, n, k, config, dtype="fp16"):
    B, N, C = Buffer, Number, Const
    args = [B("a", dtype, (m, k)), B("b", dtype, (k, n)), B("c", dtype, (m, n), "poison"), *map(N, (m, n, k, k, n, 1, n)), C("BM"), C("BN"),
            C("BK"), C(8), C(":fp32"), C("tf32")]
    return Case(name, "matmul.py", "matmul", args, lambda c: (cdiv(m, c["BM"]) * cdiv(n, c["BN"]),), configs(("BM", "BN", "BK"), [config]),
                "product", 0)


def linear(name, rows, features, outputs, config):
    B, N, C = Buffer, Number, Const
    args = [B("out", "fp16", (rows, outputs), "poison"), B("x", "fp16", (rows, features)), B("weight", "fp16", (features, outputs)),
            B("sums", "fp16", (outputs,), "sums"), B("bias", "fp16", (outputs,)), N(1e-5), C("ROWS"), C("COLUMNS"), C("STEP"), C(features),
            C(outputs), C(":fp32")]
    return Case(name, "linear.py", "layer_norm_linear_gelu", args, lambda c: (rows // c["ROWS"], outputs // c["COLUMNS"]),
                configs(("ROWS", "COLUMNS", "STEP"), [config]), "linear", 0)


def attention(name, heads, length, d, causal, config):
    B, N, C = Buffer, Number, Const
    shape = (heads, length, d)
    args = [B("out", "fp16", shape, "poison"), B("logs", "fp32", shape[:2], "poison"), *(B(x, "fp16", shape) for x in "qkv"), N(length),
            N(1.4426950408889634 / d**0.5), C("BM"), C("BN"), C(d), C(causal)]
    return Case(name, "attention.py", "forward", args, lambda c: (length // c["BM"], heads), configs(("BM", "BN"), [config]),
                "causal" if causal else "full", 0)


def group(name):
    if name == "small":
        yield product("matmul 200x144x88", 200, 144, 88, (64, 64, 32, 4, 3))
        yield product("matmul 256x256x192", 256, 256, 192, (128, 128, 64, 8, 3))
        yield product("matmul tf32 128x128x96", 128, 128, 96, (64, 64, 32, 4, 3), "fp32")
        yield linear("layer norm, linear, gelu 64x256x256", 64, 256, 256, (64, 128, 64, 4, 3))
        yield linear("layer norm, linear, gelu, the documents'", 64, 128, 64, (32, 32, 32, 4, 1))
        yield attention("attention causal 2x256x64", 2, 256, 64, True, (128, 64, 4, 3))
        yield attention("attention full 1x256x128", 1, 256, 128, False, (128, 64, 8, 2))
    else:
        yield product("matmul 128x128x64", 2048, 2048, 1024, (128, 128, 64, 8, 3))
        yield product("matmul 128x128x32", 2048, 2048, 1024, (128, 128, 32, 4, 4))
        yield product("matmul 128x256x64", 2048, 2048, 1024, (128, 256, 64, 8, 3))
        yield product("matmul 64x64x64", 2048, 2048, 1024, (64, 64, 64, 4, 4))
        yield product("matmul tf32 128x128x32", 1024, 1024, 1024, (128, 128, 32, 8, 3), "fp32")
        yield linear("layer norm, linear, gelu", 512, 1024, 4096, (64, 128, 64, 4, 3))
        yield attention("attention full d 64", 8, 1024, 64, False, (128, 64, 4, 3))
        yield attention("attention causal d 64", 8, 1024, 64, True, (128, 64, 4, 3))
        yield attention("attention full d 128", 8, 1024, 128, False, (128, 64, 8, 3))
        yield attention("attention causal d 128", 8, 1024, 128, True, (128, 64, 8, 3))


TYPES = {"fp32": np.float32, "fp16": np.float16}
C_TYPES = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "f32": ctypes.c_float}


def launch(folder, name):
    """Each case once, by the driver alone. Outputs are memory that nobody has written."""
    from cuda.bindings import driver as cu

    def check(result):
        status, *values = result
        if status != cu.CUresult.CUDA_SUCCESS:
            raise RuntimeError(str(status))
        return values[0] if values else None

    check(cu.cuInit(0))
    context = check(cu.cuDevicePrimaryCtxRetain(check(cu.cuDeviceGet(0))))
    check(cu.cuCtxSetCurrent(context))
    random = np.random.default_rng(3)
    for case in group(name):
        config = case.configs[0]
        key = case.key(config)
        meta = json.loads((folder / f"{key}.json").read_text())
        module = check(cu.cuModuleLoadData((folder / f"{key}.ptx").read_bytes() + b"\0"))
        function = check(cu.cuModuleGetFunction(module, meta["name"].encode()))
        if meta["shared"] > 48 << 10:
            check(cu.cuFuncSetAttribute(function, cu.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, meta["shared"]))
        host, device, held = {}, {}, []
        for arg in case.args:
            if isinstance(arg, Buffer):
                data = random.standard_normal(arg.shape).astype(TYPES[arg.dtype])
                if arg.begin == "sums":
                    data = host["weight"].astype(np.float64).sum(0).astype(np.float16)
                host[arg.name], device[arg.name] = data, check(cu.cuMemAlloc(data.nbytes))
                if arg.begin != "poison":
                    check(cu.cuMemcpyHtoD(device[arg.name], data.ctypes.data, data.nbytes))
                held.append(ctypes.c_uint64(int(device[arg.name])))
            elif isinstance(arg, Number) and arg.entry(config) != "i32:1":
                held.append(C_TYPES[meta["params"][len(held)]["type"]](arg.value))
        pointers = (ctypes.c_void_p * len(held))(*map(ctypes.addressof, held))
        check(cu.cuLaunchKernel(function, *(*case.grid(config), 1, 1)[:3], *meta["block"], meta["shared"], 0, ctypes.addressof(pointers), 0))
        check(cu.cuCtxSynchronize())
        out = case.args[2 if case.expected == "product" else 0].name
        found = host[out]
        check(cu.cuMemcpyDtoH(found.ctypes.data, device[out], found.nbytes))
        want = expected(case.expected, {k: v.astype(np.float64) for k, v in host.items() if k != out})
        error = np.linalg.norm(found.astype(np.float64) - want) / np.linalg.norm(want)
        # Results in f16 are off by 3e-4 on average, those of tf32 by 4e-4.
        print(f"{case.name}: error {error:.1e}{'' if error < 1e-3 else ' WRONG'}", flush=True)
        for pointer in device.values():
            check(cu.cuMemFree(pointer))


def expected(kind, t):
    if kind == "product":
        return t["a"] @ t["b"]
    if kind == "linear":
        x = t["x"]
        hat = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        y = hat @ t["weight"] + t["bias"]
        return 0.5 * y * (1 + np.tanh(0.7978845608028654 * (y + 0.044715 * y**3)))
    scores = t["q"] @ t["k"].transpose(0, 2, 1) / t["q"].shape[-1] ** 0.5
    if kind == "causal":
        scores = np.where(np.tri(scores.shape[1], dtype=bool), scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ t["v"]


def tool(command):
    done = subprocess.run([*command, sys.executable, __file__, "launch", str(FOLDER), "large" if command[:1] == ["ncu"] else "small"],
                          capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def conflicts():
    known = subprocess.run(["ncu", "--query-metrics", "--chip", "gh100"], capture_output=True, text=True).stdout
    names = {line.split()[0] for line in known.splitlines() if line.strip()}
    (FOLDER / "ncu_metrics.txt").write_text("\n".join(sorted(n for n in names if "shared" in n or "ldsm" in n or "bank" in n)))
    chosen = [m for m in METRICS if m in names] or METRICS[:2]
    code, text = tool(["ncu", "--csv", "--metrics", ",".join(f"{m}.sum" for m in chosen)])
    (FOLDER / "ncu.csv").write_text(text)
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        print("ncu said:", code, text[-1500:])
        return
    found = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[start:]))):
        found.setdefault(row["ID"], {})[row["Metric Name"].removesuffix(".sum")] = row["Metric Value"].replace(",", "")
    print("case; " + "; ".join(chosen))
    for case, values in zip(group("large"), found.values()):
        print(f"{case.name}; " + "; ".join(values.get(m, "") for m in chosen))


def sanitize():
    for name in ("memcheck", "racecheck", "initcheck"):
        code, text = tool(["compute-sanitizer", "--tool", name, "--error-exitcode", "9"])
        (FOLDER / f"{name}.txt").write_text(text)
        said = [line for line in text.splitlines() if "SUMMARY" in line or "WRONG" in line]
        print(f"{name}: exit {code}; {text.count('error ')} cases; {'; '.join(said) or text[-500:]}", flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["prepare", folder, tilelift]:
            kernels = Path(__file__).resolve().parents[2] / "examples/kernels"
            product_cases.prepare(Path(folder), kernels, tilelift, [*group("small"), *group("large")])
        case ["launch", folder, name]:
            launch(Path(folder), name)
        case ["all", folder]:
            FOLDER = Path(folder)
            print(tool([])[1])
            sanitize()
            conflicts()
        case _:
            sys.exit(__doc__)
