"""Products and attention of examples/kernels: what is compiled, on what it runs, and in which configurations. No GPU here."""
import os
import hashlib
import json
import math
import subprocess

# What integers are specialised for; MULTIPLES=16 is what Triton asks for.
MULTIPLES = [int(n) for n in os.environ.get("MULTIPLES", "16,8,4,2").split(",")]
BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8e4nv": 1, "i8": 1, "u8": 1, "u16": 2, "i32": 4, "i64": 8}


class Buffer:
    """A tensor argument; `begin` names how it starts: `normal`, `poison`, `zero`, or a function, by name
    one of `products.py`, of all that is made before; for it `shape` is the shape."""

    def __init__(self, name, dtype, shape, begin="normal"):
        self.name, self.dtype, self.shape, self.begin = name, dtype, shape, begin

    def entry(self, _):
        return f"*{self.dtype}:16"


class Number:
    def __init__(self, value):
        self.value = value

    def entry(self, _):
        if isinstance(self.value, float):
            return "fp32"
        return "i32:1" if self.value == 1 else next((f"i32:{n}" for n in MULTIPLES if self.value % n == 0), "i32")


class Const:
    """A constant: a number, a type's name as `:fp32`, a string, or what the configuration has under this name."""

    def __init__(self, value):
        self.value = value

    def of(self, config):
        return config.get(self.value, self.value) if isinstance(self.value, str) else self.value

    def entry(self, config):
        value = self.of(config)
        if not isinstance(value, str):
            return str(value)
        return value[1:] if value.startswith(":") else f"'{value}'"


class Case:
    """A kernel on data. `expected` and `peer` are functions of the data or names of such in `products.py`; `graph` asks for times of graph
    replay too. `beside` is another kernel of ours for the same tensors, by their names: `builds.py` has them alternate. Of the buffers that `walk`
    names each call takes other ones, so that no cache has them. `row` is how many calls are a row, each of which but the first may begin
    while the one ahead runs; it divides 20."""

    def __init__(self, name, file, kernel, args, grid, configs, expected, flops, peer=None, graph=False, arch=80, constants=None,
                 beside=None, walk=(), row=1):
        self.name, self.file, self.kernel, self.args, self.grid, self.configs = name, file, kernel, args, grid, configs
        self.expected, self.flops, self.peer, self.graph, self.arch, self.beside = expected, flops, peer, graph, arch, beside
        self.constants, self.walk, self.row = constants or {}, walk, row

    def command(self, config):
        """The arguments of `tilelift compile`, without files."""
        signature = ", ".join(arg.entry(config) for arg in self.args)
        named = [f for name, value in self.constants.items() for f in ("-c", f"{name}={config.get(value, value)}")]
        return ["-n", self.kernel, "-s", signature, "-w", str(config["warps"]), "--num-stages", str(config["stages"]),
                "-t", os.environ.get("TARGET", f"sm_{self.arch}"), *named]

    def key(self, config):
        return hashlib.sha256(json.dumps([self.file, self.command(config)]).encode()).hexdigest()[:16]


class InTurn:
    """Makes one of these calls, with each call the next one."""

    def __init__(self, calls):
        self.calls, self.place = calls, 0

    def __call__(self):
        self.place += 1
        return self.calls[(self.place - 1) % len(self.calls)]()

    def restart(self):
        self.place = 0


def in_rows(make, things, row):
    """Calls that `make` makes of all things, round and round, and of their places in rows of so many."""
    return InTurn([make(things[i % len(things)], i % row) for i in range(math.lcm(len(things), row))])


def on_branches(calls, row):
    """Makes these calls in rows of so many, on four streams at the most, of which a graph makes branches."""
    import torch
    streams = [torch.cuda.Stream() for _ in range(min(row, 4))]

    def make(call, place):
        def go():
            here = torch.cuda.current_stream()
            for stream in streams if place == 0 else []:
                stream.wait_stream(here)
            with torch.cuda.stream(streams[place % len(streams)]):
                call()
            for stream in streams if place == row - 1 else []:
                here.wait_stream(stream)
        return go
    return in_rows(make, calls, row)


def enough(size):
    """How many buffers of so many bytes no cache holds, and no two of which are used at the same time: 512 MB of them, and four at least."""
    return max(4, cdiv(512 << 20, size))


def cdiv(a, b):
    return -(-a // b)


def configs(names, rows):
    return [dict(zip((*names, "warps", "stages"), row)) for row in rows]


BLOCKS = ("BM", "BN", "BK")
BIG = [(128, 256, 64, 8, 3), (128, 256, 64, 8, 4), (128, 256, 32, 8, 4), (256, 128, 32, 8, 3), (256, 128, 64, 8, 3), (128, 128, 64, 8, 3),
       (128, 128, 64, 4, 3), (128, 128, 32, 4, 3), (128, 128, 32, 4, 4), (128, 64, 64, 4, 3), (64, 256, 32, 4, 4)]
HOPPER = [(128, 256, 64, 8, 3), (128, 256, 64, 8, 4), (256, 128, 64, 8, 3), (128, 128, 64, 8, 3), (128, 128, 64, 4, 3), (128, 128, 64, 4, 4), (128, 128, 64, 4, 5),
          (128, 64, 64, 4, 4)]
SMALL = [(64, 64, 128, 4, 2), (32, 64, 128, 4, 2), (128, 64, 64, 4, 3), (32, 64, 64, 4, 5), (64, 128, 64, 4, 3), (64, 64, 64, 4, 4),
         (64, 64, 128, 4, 3), (64, 32, 128, 4, 3), (32, 64, 128, 4, 3), (32, 32, 128, 4, 4), (64, 128, 64, 4, 5), (128, 64, 64, 4, 4),
         (64, 128, 128, 4, 3), (64, 64, 64, 4, 6)]
THIN = [(16, 32, 128, 4, 5), (16, 32, 256, 4, 3), (16, 32, 256, 4, 4), (16, 64, 128, 4, 5), (16, 64, 256, 4, 3), (16, 128, 128, 4, 4),
        (16, 32, 128, 2, 5), (16, 64, 256, 4, 2)]
BYTE = [(128, 256, 64, 8, 3), (128, 256, 128, 8, 3), (256, 128, 64, 8, 3), (128, 128, 64, 4, 4), (128, 128, 128, 8, 3),
        (128, 128, 64, 8, 4), (128, 64, 128, 4, 3), (64, 128, 128, 4, 3)]
TF32 = [(128, 128, 32, 4, 3), (128, 128, 16, 4, 5), (128, 128, 32, 4, 4), (128, 256, 32, 8, 3), (256, 128, 32, 8, 3), (128, 64, 32, 4, 4),
        (128, 128, 32, 4, 2), (128, 128, 16, 4, 4), (256, 128, 32, 8, 4), (128, 256, 32, 8, 4)]
IEEE = [(64, 64, 16, 4, 3), (64, 64, 32, 4, 3), (128, 64, 16, 4, 3), (128, 64, 16, 8, 3), (128, 128, 16, 8, 3), (64, 128, 16, 4, 3)]
LINEAR = [(64, 128, 64, 4, 3), (128, 128, 64, 8, 3), (128, 128, 64, 4, 3), (64, 64, 64, 4, 4), (64, 128, 64, 4, 4), (64, 256, 64, 8, 3),
          (128, 128, 32, 4, 4), (64, 128, 32, 4, 4)]
FORWARD = {64: [(128, 64, 4, 3), (128, 32, 4, 3), (128, 64, 8, 3), (128, 128, 8, 2), (64, 64, 4, 3), (64, 64, 4, 2), (64, 128, 4, 2)],
           128: [(128, 64, 8, 3), (128, 32, 8, 3), (128, 64, 8, 2), (128, 128, 8, 2), (64, 64, 4, 2), (128, 64, 4, 3), (128, 32, 4, 3)]}
KEYS = {64: [(32, 128, 4, 2), (32, 128, 8, 3), (64, 128, 8, 2), (32, 64, 4, 3), (32, 64, 4, 2), (64, 64, 4, 2)],
        128: [(32, 128, 8, 2), (64, 128, 8, 2), (32, 64, 4, 2), (64, 64, 8, 2), (16, 128, 8, 2)]}
ROWS = {64: [(128, 32, 4, 3), (128, 64, 4, 2), (128, 64, 8, 3), (64, 64, 4, 3), (64, 32, 4, 3)],
        128: [(128, 32, 8, 3), (128, 64, 8, 2), (64, 32, 4, 3), (64, 64, 4, 2), (128, 32, 8, 2)]}
ONE_PASS = {64: [(64, 128, 8, 2), (64, 128, 4, 2), (32, 128, 8, 2), (64, 64, 4, 2), (64, 64, 4, 3), (128, 128, 8, 2)],
            128: [(64, 128, 8, 2), (32, 128, 8, 2), (64, 64, 4, 2), (64, 64, 8, 2), (64, 128, 8, 1)]}
# Products of a grouped call: M, N, K.
GROUPS = [(2048, 2048, 1024), (1024, 4096, 2048), (512, 1024, 4096), (4096, 512, 512), (1536, 1536, 1536), (256, 4096, 1024),
          (1040, 2064, 1008), (3072, 768, 768)]


def product(name, m, n, k, dtype, out, rows, *, transposed=False, total=":fp32", precision="tf32", expected="product", peer=None, **more):
    """matmul of examples/kernels; `transposed`: b lies in memory as n x k."""
    B, N, C = Buffer, Number, Const
    b = B("b", dtype, (n, k) if transposed else (k, n))
    args = [B("a", dtype, (m, k)), b, B("c", out, (m, n), "poison"), *map(N, (m, n, k, k, *((1, k) if transposed else (n, 1)), n)),
            *map(C, BLOCKS), C(8), C(total), C(precision)]
    return Case(name, "matmul.py", "matmul", args, lambda c: (cdiv(m, c["BM"]) * cdiv(n, c["BN"]),), configs(BLOCKS, rows), expected,
                2 * m * n * k, peer, **more)


def attention(name, heads, length, d, causal):
    """Forward, and for lengths up to 4096 backward."""
    B, N, C = Buffer, Number, Const
    shape, scale = (heads, length, d), 1.4426950408889634 / d**0.5
    work = 4 * heads * length * length * d // (2 if causal else 1)
    q, k, v = (B(x, "fp16", shape) for x in "qkv")
    grid = lambda block: lambda c: (length // c[block], heads)
    tail = [N(length), N(scale), C("BM"), C("BN"), C(d), C(causal)]
    names, mode = ("BM", "BN"), "causal" if causal else "full"
    yield Case(f"attention forward {name} {mode}", "attention.py", "forward", [B("out", "fp16", shape, "poison"),
               B("logs", "fp32", shape[:2], "poison"), q, k, v, *tail], grid("BM"), configs(names, FORWARD[d]), "attention", work, "sdpa")
    if length > 4096:
        return
    dout, logs, delta = B("dout", "fp16", shape), B("logs", "fp32", shape[:2], "logs_of"), B("delta", "fp32", shape[:2], "delta_of")
    yield Case(f"attention dk, dv {name} {mode}", "attention.py", "backward_keys",
               [B("dk", "fp16", shape, "poison"), B("dv", "fp16", shape, "poison"), q, k, v, dout, logs, delta, *tail], grid("BN"),
               configs(names, KEYS[d]), "attention_backward", work * 2)
    yield Case(f"attention dq {name} {mode}", "attention.py", "backward_rows",
               [B("dq", "fp16", shape, "poison"), q, k, v, dout, logs, delta, *tail], grid("BM"), configs(names, ROWS[d]),
               "attention_backward", work * 3 // 2)
    sums = B("sums", "fp32", shape, "zero")
    yield Case(f"attention backward {name} {mode}", "attention.py", "backward",
               [B("dk", "fp16", shape, "poison"), B("dv", "fp16", shape, "poison"), sums, q, k, v, dout, logs, delta, *tail], grid("BN"),
               configs(names, ONE_PASS[d]), "attention_backward", work * 5 // 2, "sdpa_backward")
    if not causal:
        yield Case(f"attention finish {name}", "attention.py", "finish",
                   [B("dq", "fp16", shape, "poison"), B("sums", "fp32", shape), N(scale), C("BM"), C(d)],
                   lambda c: (heads * length // c["BM"],), configs(("BM",), [(16, 4, 1), (32, 4, 1), (64, 4, 1)]), "finished", 0, "zeros")
        yield Case(f"attention preprocess {name}", "attention.py", "preprocess",
                   [B("delta", "fp32", shape[:2], "poison"), B("out", "fp16", shape), dout, C("BM"), C(d)],
                   lambda c: (heads * length // c["BM"],), configs(("BM",), [(32, 4, 1), (64, 4, 1), (128, 4, 1)]), "delta", 0)


def cases():
    B, N, C = Buffer, Number, Const
    for m, n, k, rows in ((512, 512, 512, SMALL), (1024, 1024, 1024, SMALL), (2048, 2048, 2048, BIG), (4096, 4096, 4096, BIG),
                          (8192, 8192, 8192, BIG), (512, 4096, 1024, SMALL), (16, 4096, 4096, THIN), (4096, 4096, 512, BIG)):
        small = 2 * m * n * k < 5e9
        yield product(f"matmul f16 {m}x{n}x{k}", m, n, k, "fp16", "fp16", rows, peer="mm", graph=small)
    m, n, k = 16, 4096, 4096
    yield Case("thin matmul f16 16x4096x4096, atomics", "matmul.py", "thin_matmul",
               [B("a", "fp16", (m, k)), B("b", "fp16", (k, n)), B("c", "fp32", (m, n), "zero"), N(m), N(n), N(k), C("BM"), C("BN"), C("BK"),
                C("PARTS")], lambda c: (4096 // c["BN"], c["PARTS"]),
               configs((*BLOCKS, "PARTS"), [(16, 64, 128, 4, 4, 4), (16, 128, 64, 8, 4, 4), (16, 64, 128, 2, 4, 4), (16, 128, 128, 4, 4, 3)]),
               "product", 2 * m * n * k, graph=True)

    m = n = k = 4096
    grid = lambda rows, columns: lambda c: (cdiv(4096, c[rows]) * cdiv(4096, c[columns]),)
    yield Case("linear, gelu f16 4096^3", "linear.py", "linear_gelu",
               [B("weight", "fp16", (k, n)), B("bias", "fp16", (n,)), B("x", "fp16", (m, k)), B("out", "fp16", (m, n), "poison"), N(k), N(n),
                N(m), C("STEP"), C("COLUMNS"), C("ROWS"), C(8)], grid("ROWS", "COLUMNS"), configs(("ROWS", "COLUMNS", "STEP"), BIG),
               "linear_gelu", 2 * m * n * k)
    yield Case("scaled leaky relu f16 4096^3", "linear.py", "scaled_leaky_relu",
               [B("y", "fp16", (m, n), "poison"), N(0.25), N(0.125), B("w", "fp16", (k, n)), B("a", "fp16", (m, k)), N(n), N(m), N(k), C("BJ"),
                C("BI"), C("BL"), C(8)], grid("BI", "BJ"), configs(("BI", "BJ", "BL"), BIG), "scaled_leaky_relu", 2 * m * n * k)
    yield Case("row bias, silu f16 4096^3", "linear.py", "row_bias_silu",
               [B("filters", "fp16", (m, k)), B("pixels", "fp16", (k, n)), B("planes", "fp16", (m, n), "poison"), B("shift", "fp16", (m,)),
                N(m), N(n), N(k), C(8), C("P"), C("C"), C("T")], grid("C", "P"), configs(("C", "P", "T"), BIG), "row_bias_silu",
               2 * m * n * k)

    batches, m, n, k = 32, 1024, 1024, 512
    yield Case(f"batched matmul f16 {batches}x{m}x{n}x{k}", "matmul.py", "batched_matmul",
               [B("out", "fp16", (batches, m, n), "poison"), B("x", "fp16", (batches, m, k)), B("weight", "fp16", (batches, n, k)), N(m), N(n),
                N(k), *map(C, BLOCKS), C(8)], lambda c, m=m, n=n: (cdiv(m, c["BM"]) * cdiv(n, c["BN"]), batches), configs(BLOCKS, BIG), "batched",
               2 * batches * m * n * k, "bmm")
    yield Case("grouped matmul f16, 8 sizes", "matmul.py", "grouped_matmul",
               [B("a_ptrs", "i64", (8,), "group_a"), B("b_ptrs", "i64", (8,), "group_b"), B("c_ptrs", "i64", (8,), "group_c"),
                B("sizes", "i32", (24,), "group_sizes"), N(len(GROUPS)), C("PROGRAMS"), *map(C, BLOCKS)], lambda c: (c["PROGRAMS"],),
               configs((*BLOCKS, "PROGRAMS"), [(128, 128, 32, 264, 4, 3), (128, 128, 64, 132, 8, 3), (128, 128, 32, 132, 8, 4),
                                               (128, 64, 64, 264, 4, 3), (64, 128, 64, 264, 4, 3), (128, 256, 32, 132, 8, 3),
                                               (128, 128, 64, 264, 4, 3), (128, 128, 64, 264, 4, 4), (128, 256, 64, 132, 8, 3), (128, 256, 64, 132, 8, 4),
                                               (128, 128, 64, 132, 8, 4), (128, 128, 32, 396, 4, 3), (128, 128, 64, 132, 4, 4), (256, 128, 64, 132, 8, 3)]),
               "grouped", sum(2 * m * n * k for m, n, k in GROUPS), "grouped_mm")
    n = 4096
    for transposed in (True, False):
        order = "n x k" if transposed else "k x n"
        yield product(f"matmul i8 4096^3, b {order}", n, n, n, "i8", "i32", BYTE, transposed=transposed, total=":i32", expected="integer",
                      peer="int_mm" if transposed else None)
        yield product(f"matmul fp8 e4m3 4096^3, b {order}", n, n, n, "fp8e4nv", "fp16", BYTE, transposed=transposed, arch=89,
                      peer="scaled_mm" if transposed else None)
    yield product("matmul tf32 4096^3", n, n, n, "fp32", "fp32", TF32, expected="tf32", peer="mm_tf32")
    n = 2048
    yield product("matmul f32 ieee 2048^3", n, n, n, "fp32", "fp32", IEEE, precision="ieee", peer="mm")

    rows, features, outputs = 512, 1024, 4096
    for total, size, options in (("fp16", "the documents'", [(32, 32, 32, 4, 1)]), ("fp32", "tuned", LINEAR)):
        yield Case(f"layer norm, linear, gelu, {size}", "linear.py", "layer_norm_linear_gelu",
                   [B("out", "fp16", (rows, outputs), "poison"), B("x", "fp16", (rows, features)), B("weight", "fp16", (features, outputs)),
                    B("sums", "fp16", (outputs,), "sums_of"), B("bias", "fp16", (outputs,)), N(1e-5), C("ROWS"), C("COLUMNS"), C("STEP"),
                    C(features), C(outputs), C(f":{total}")], lambda c: (rows // c["ROWS"], outputs // c["COLUMNS"]),
                   configs(("ROWS", "COLUMNS", "STEP"), options), f"layer_norm_{total}", 2 * rows * features * outputs,
                   "layer_norm_linear_gelu", graph=True)
    for causal in (False, True):
        yield from attention("64x4096x64", 64, 4096, 64, causal)
        yield from attention("64x4096x128", 64, 4096, 128, causal)
        yield from attention("16x16384x128", 16, 16384, 128, causal)


def hopper():
    """Products as libraries for Hopper are judged by them: both types, both orders of b, large and small depths."""
    for m, n, k, rows in ((512, 512, 512, SMALL), (1024, 1024, 1024, SMALL), (2048, 2048, 2048, HOPPER), (4096, 4096, 4096, HOPPER),
                          (8192, 8192, 8192, HOPPER), (12288, 12288, 12288, HOPPER), (4096, 4096, 512, HOPPER), (8192, 8192, 512, HOPPER),
                          (65536, 1024, 1024, HOPPER)):
        for short, dtype in (("f16", "fp16"), ("bf16", "bf16")):
            for transposed in (True, False):
                order = "n x k" if transposed else "k x n"
                yield product(f"hopper {short} {m}x{n}x{k}, b {order}", m, n, k, dtype, dtype, rows, transposed=transposed, peer="mm",
                              graph=2 * m * n * k < 5e9)


def words():
    """Products of f32 by tf32, in both orders of b."""
    for m, n, k in ((1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (4096, 4096, 512), (2040, 2072, 2008)):
        for transposed in (True, False):
            order = "n x k" if transposed else "k x n"
            yield product(f"words tf32 {m}x{n}x{k}, b {order}", m, n, k, "fp32", "fp32", TF32, transposed=transposed, expected="tf32",
                          peer="mm_tf32")


def orders():
    """Products of operands in the four orders of memory, by the kernel that takes all strides: a cousin of the one of `hopper`."""
    B, N, C = Buffer, Number, Const
    rows = [(128, 256, 64, 8, 3), (256, 128, 64, 8, 3), (128, 128, 64, 4, 3), (128, 128, 64, 4, 4)]
    for m, n, k in ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (4096, 4096, 512)):
        for a_rows in "mk":
            for b_rows in "kn":
                a = B("a", "fp16", (m, k) if a_rows == "m" else (k, m))
                b = B("b", "fp16", (k, n) if b_rows == "k" else (n, k))
                strides = (*((k, 1) if a_rows == "m" else (1, m)), *((n, 1) if b_rows == "k" else (1, k)), n, 1)
                name = f"orders f16 {m}x{n}x{k}, a {'m x k' if a_rows == 'm' else 'k x m'}, b {'k x n' if b_rows == 'k' else 'n x k'}"
                yield Case(name, "strides.py", "strided_matmul", [a, b, B("c", "fp16", (m, n), "poison"), *map(N, (m, n, k, *strides)),
                           *map(C, BLOCKS), C(8)], lambda c, m=m, n=n: (cdiv(m, c["BM"]) * cdiv(n, c["BN"]),), configs(BLOCKS, rows), "product",
                           2 * m * n * k, "mm")


def walks():
    """Products by programs that walk over the blocks of the result, as the kernel's text says."""
    B, N, C = Buffer, Number, Const
    rows = [(128, 256, 64, 8, 3), (256, 128, 64, 8, 3), (128, 128, 64, 8, 3), (128, 128, 64, 4, 3), (128, 128, 64, 4, 4), (128, 256, 64, 8, 4)]
    for m, n, k in ((4096, 4096, 4096), (8192, 8192, 512), (2040, 2056, 2008)):
        args = [B("a", "fp16", (m, k)), B("b", "fp16", (n, k)), B("c", "fp16", (m, n), "poison"), *map(N, (m, n, k, k, k, n)), C(132), *map(C, BLOCKS), C(8)]
        yield Case(f"walk f16 {m}x{n}x{k}, b n x k", "matmul.py", "persistent_matmul", args, lambda c: (132,), configs(BLOCKS, rows), "product",
                   2 * m * n * k, "mm")


def lengths():
    """Attention forward of sequences of other lengths, 64 heads of 4,096 rows in all."""
    for d in (64, 128):
        for length in (1024, 2048, 8192):
            for causal in (False, True):
                heads = 64 * 4096 // length
                yield next(attention(f"{heads}x{length}x{d}", heads, length, d, causal))


def few_by_matmul(m, n, k):
    """The plain product of few rows, with weights as n x k."""
    rows = [(64, 64, 64, 4, 8), (64, 32, 128, 4, 6), (64, 64, 128, 4, 5), (64, 128, 64, 4, 6), (128, 64, 64, 4, 6), (128, 32, 64, 4, 8),
            (16, 32, 256, 4, 4), (16, 64, 128, 4, 5), (32, 64, 128, 4, 5), (32, 32, 128, 4, 6), (32, 32, 128, 4, 8), (32, 32, 256, 4, 4),
            (32, 128, 128, 4, 4), (64, 64, 64, 4, 6), (64, 128, 128, 4, 4), (128, 128, 64, 4, 4)]
    return product(f"few rows bf16 {m}x{n}x{k}, b n x k", m, n, k, "bf16", "bf16", rows, transposed=True, peer="mm", graph=True)


def thin():
    """Products of few rows with weights as n x k, as inference launches them."""
    for n, k in ((4096, 4096), (14336, 4096), (4096, 14336), (7168, 2048)):
        for m in (16, 32, 64, 128):
            yield few_by_matmul(m, n, k)


def odd():
    """Products of sizes that are no multiples of 16, in both orders of b."""
    middle = [(128, 256, 64, 8, 3), (128, 128, 64, 8, 3), (128, 128, 64, 4, 3), (128, 64, 64, 4, 4), (64, 128, 64, 4, 3), (64, 64, 64, 4, 4)]
    small = [*middle, (64, 64, 64, 4, 6), (64, 64, 128, 4, 3), (64, 64, 128, 4, 4), (64, 128, 128, 4, 3), (128, 64, 128, 4, 3), (64, 32, 128, 4, 4)]
    for m, n, k in ((1000, 1000, 1000), (3000, 5008, 1000), (2040, 2056, 2008), (4095, 4097, 4099)):
        for transposed in (True, False):
            order = "n x k" if transposed else "k x n"
            rows = small if m == 1000 else middle
            yield product(f"odd f16 {m}x{n}x{k}, b {order}", m, n, k, "fp16", "fp16", rows, transposed=transposed, peer="mm",
                          graph=2 * m * n * k < 5e9)


def described():
    """Products by descriptors beside those by plain pointers, in the same configurations; and one whose first factor has more than 2^31
    elements, where pointers would take indices of 64 bits."""
    B, N, C = Buffer, Number, Const
    for m, n, k in ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (131072, 64, 16448)):
        for transposed in (True, False):
            order = "n x k" if transposed else "k x n"
            pointers = product("", m, n, k, "fp16", "fp16", HOPPER, transposed=transposed)
            numbers = (m, n, k, k, k if transposed else n, n)
            yield Case(f"described f16 {m}x{n}x{k}, b {order}", "matmul.py", "matmul_descriptors",
                       [*pointers.args[:3], *map(N, numbers), *map(C, BLOCKS), C(8), C(transposed), C(":fp32"), C("tf32")], pointers.grid,
                       pointers.configs, "product", pointers.flops, "mm", beside=pointers if m * k < 1 << 31 else None)


def seeds():
    """The files that the project starts from, as they stand, on sizes of their documents."""
    B, N, C = Buffer, Number, Const
    m = n = k = 1024
    yield Case("seeds/matmul.py 1024^3", "matmul.py", "matmul",
               [B("a", "fp16", (m, k)), B("b", "fp16", (k, n)), B("c", "fp16", (m, n), "poison"), *map(N, (m, n, k, k, 1, n, 1, n, 1))],
               lambda c: (c["GROUP_M"] * m // c["BLOCK_M"], n // c["BLOCK_N"] // c["GROUP_M"]),
               [{"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 64, "GROUP_M": 8, "warps": 4, "stages": 3}], "product", 2 * m * n * k,
               constants={x: x for x in ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M")})
    rows, features, outputs = 512, 1024, 4096
    for kernel, more in (("lola_kernel", []), ("lola_ws_kernel", [B("sums", "fp16", (outputs,), "sums_of")])):
        yield Case(f"seeds/lola.py {kernel}", "lola.py", kernel,
                   [B("x", "fp16", (rows, features)), B("weight", "fp16", (features, outputs)), *more, B("bias", "fp16", (outputs,)),
                    B("out", "fp16", (rows, outputs), "poison"), C(32), C(32), C(32), C(features), C(outputs)], lambda c: (16, 128),
                   [{"warps": 4, "stages": 1}], "lola_seed", 2 * rows * features * outputs)


def prepare(folder, sources, tilelift, chosen):
    """Compiles every configuration once; needs no GPU."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = set()
    for case in [*chosen, *(case.beside for case in chosen if case.beside)]:
        for config in case.configs:
            key = case.key(config)
            if key in kept:
                continue
            kept.add(key)
            subprocess.run([tilelift, "compile", sources / case.file, *case.command(config), *os.environ.get("FLAGS", "").split(),
                            "-o", folder / f"{key}.ptx", "--meta", folder / f"{key}.json"], check=True)
    return kept
