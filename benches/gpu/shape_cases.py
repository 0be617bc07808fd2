"""Products that inference launches: few rows, scales, four bits, experts, and attention of one step. What is compiled, on what it runs,
what comes out in f64, and what a library does. `builds.py` measures them beside Triton where TRITON=1.

Beside attention of one step stands a copy of as many bytes, read and written together: what the memory gives.
"""
import itertools
import os

from product_cases import Buffer, Case, Const, InTurn, Number, cdiv, configs, enough, few_by_matmul, on_branches

B, N, C = Buffer, Number, Const
SCALED = [(128, 256, 128, 8, 3), (128, 128, 128, 8, 4), (128, 128, 128, 4, 3), (64, 128, 128, 4, 5), (64, 64, 128, 4, 6), (64, 64, 256, 4, 4)]
EXPERTS = [(128, 128, 64, 4, 3), (128, 256, 64, 8, 3), (128, 256, 64, 8, 4), (128, 128, 64, 8, 3), (128, 128, 64, 8, 4), (128, 64, 64, 4, 4)]
WEIGHTS = [(128, 256, 64, 8, 3), (128, 128, 64, 4, 3), (128, 128, 64, 8, 4), (128, 256, 64, 8, 4), (256, 128, 64, 8, 3), (64, 128, 64, 4, 4),
           (128, 64, 64, 4, 4), (64, 128, 128, 4, 3)]
# The same with the parts of K.
FEW_WEIGHTS = [(16, 64, 128, 4, 4, 4), (16, 128, 128, 4, 4, 3), (16, 64, 128, 2, 4, 5), (16, 64, 256, 4, 4, 3), (16, 32, 128, 4, 4, 4), (16, 64, 64, 4, 4, 6),
               (16, 32, 128, 1, 4, 5), (16, 64, 256, 1, 4, 3)]
NESTED = [(128, 128, 64, 8, 3), (128, 128, 64, 4, 3), (64, 128, 64, 4, 4), (128, 128, 64, 8, 4), (128, 128, 32, 4, 4), (256, 128, 64, 8, 3)]
DECODE = [(64, 1024, 4, 3), (64, 2048, 4, 3), (128, 1024, 4, 2), (64, 1024, 4, 2), (32, 1024, 4, 4)]


def near(want, sizes, terms, dtype):
    """A result, and what rounding may change in a sum of so many terms whose sizes are summed in `sizes`."""
    import torch
    unit = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}[dtype]
    return want, (terms + 2) * 2.0**-24 * sizes + unit * want.abs() + 2.0**-24


def matrix(t, name):
    return t[name].double()


def few(m, n, k, parts=(1,), kernel="few_rows", row=1):
    """Few rows, in one part, or in several that the last program of a block adds up. Of `few_rows_by_last` and `few_rows_by_atomics` there
    is a number of parts for each block, too, with which every multiprocessor has a program. In rows launches overlap; beside them stand the
    library's on four streams."""
    def expected(t):
        x, w = matrix(t, "x"), matrix(t, "weight")
        return {"out": near(x @ w.T, x.abs() @ w.abs().T, k, t["out"].dtype)}

    def peer(t):
        import torch
        product = lambda out: lambda: torch.mm(t["x"], t["weight"].T, out=out)
        return on_branches([product(torch.empty_like(t["out"])) for _ in range(4)], row) if row > 1 else product(t["out"])
    # Columns of the unit are the rows of x, of which there are at least 16; stages that find no room are left out.
    columns = max(16, m)
    rows = [(64, 128, 4, 6), (32, 256, 4, 4), (64, 256, 4, 4), (64, 256, 4, 5), (64, 128, 4, 8), (64, 128, 4, 5), (64, 128, 4, 4), (128, 128, 8, 5),
            (128, 128, 4, 5), (64, 64, 4, 8), (64, 64, 4, 6), (128, 64, 8, 5), (128, 64, 8, 6)]
    if 1 not in parts:
        rows = [(64, 128, 4, 6), (64, 256, 4, 4), (64, 128, 4, 5), (64, 64, 4, 6), (128, 64, 8, 5), (64, 128, 4, 4), (64, 64, 4, 8), (64, 64, 4, 4)]
    fits = [row for row in rows if 2 * (columns + row[0]) * row[1] * row[3] <= 220 << 10]
    def of_row(bn, bk):
        once = 132 // cdiv(n, bn)
        return sorted({*parts, once} if once > 1 and 4 * once * bk <= k else parts)
    chosen = [(columns, *row[:2], p, *row[2:]) for row in fits for p in (parts if kernel == "few_rows" else of_row(*row[:2]))]
    most = max(row[3] for row in chosen)
    counts = B("counts", "i32", None, nothing)
    scratch = {"few_rows": [], "few_rows_by_last": [B("parts", "fp32", (most * m, n), "poison"), counts],
               "few_rows_by_atomics": [B("sums", "fp32", (n, columns), "zero"), counts]}[kernel]
    return Case(f"{kernel} bf16 {m}x{n}x{k}{f', rows of {row}' if row > 1 else ''}", "thin.py", kernel, [B("out", "bf16", (m, n), "poison"), *scratch, B("x", "bf16", (m, k)),
                B("weight", "bf16", (n, k)), N(m), N(n), N(k), C("BM"), C("BN"), C("BK"), C("PARTS"), C(row > 1)], lambda c: (cdiv(n, c["BN"]), c["PARTS"]),
                configs(("BM", "BN", "BK", "PARTS"), chosen), expected, 2 * m * n * k, peer, graph=True, row=row)


def vector(n, k):
    def expected(t):
        x, w = matrix(t, "x"), matrix(t, "weight")
        return {"out": near(w @ x, w.abs() @ x.abs(), k, t["out"].dtype)}

    def peer(t):
        import torch
        return lambda: torch.mv(t["weight"], t["x"], out=t["out"])
    return Case(f"vector_matrix bf16 1x{n}x{k}", "thin.py", "vector_matrix", [B("out", "bf16", (n,), "poison"), B("x", "bf16", (k,)),
                B("weight", "bf16", (n, k)), N(n), N(k), C("BN"), C("BK")], lambda c: (cdiv(n, c["BN"]),),
                configs(("BN", "BK"), [(8, 1024, 4, 3), (4, 1024, 4, 3), (4, 2048, 4, 3), (8, 512, 4, 3), (2, 1024, 2, 3), (2, 2048, 4, 3), (16, 256, 4, 3)]),
                expected, 2 * n * k, peer, graph=True)


def scaled(m, n, k, dtype):
    total = ":i32" if dtype == "i8" else ":fp32"

    def expected(t):
        x, w = matrix(t, "x"), matrix(t, "weight")
        scales = matrix(t, "x_scales")[:, None] * matrix(t, "weight_scales")[None, :]
        want, sizes = (x @ w.T) * scales, (x.abs() @ w.abs().T) * scales.abs()
        want, bound = near(want, sizes, 0, t["out"].dtype)
        # The unit's sums of fp8 keep 13 bits behind the point of the largest, and the worst of the 16 million sums of 4096^3 is off by
        # 2^-11, the library's by the same bits; i8 is exact, and its scaling rounds.
        return {"out": (want, bound + (2.0**-10 if dtype != "i8" else 2.0**-22) * sizes)}

    def peer(t):
        import torch
        if dtype == "i8":
            return lambda: torch._int_mm(t["x"], t["weight"].T)
        rows, columns = t["x_scales"][:, None], t["weight_scales"][None, :]
        return lambda: torch._scaled_mm(t["x"], t["weight"].T, rows, columns, out_dtype=torch.bfloat16, use_fast_accum=True)
    return Case(f"scaled {dtype} {m}x{n}x{k}", "scaled.py", "scaled_matmul", [B("out", "bf16", (m, n), "poison"), B("x", dtype, (m, k)),
                B("weight", dtype, (n, k)), B("x_scales", "fp32", (m,)), B("weight_scales", "fp32", (n,)), N(m), N(n), N(k), C("BM"), C("BN"),
                C("BK"), C(8), C(total), C(True)], lambda c: (cdiv(m, c["BM"]) * cdiv(n, c["BN"]),), configs(("BM", "BN", "BK"), SCALED),
                expected, 2 * m * n * k, peer, graph=2 * m * n * k < 5e9)


def block_scaled(m, n, k):
    def expected(t):
        x, w = matrix(t, "x"), matrix(t, "weight")
        x = x * matrix(t, "x_scales").repeat_interleave(128, 1)
        w = w * matrix(t, "weight_scales").repeat_interleave(128, 0).repeat_interleave(128, 1)
        want, sizes = x @ w.T, x.abs() @ w.abs().T
        want, bound = near(want, sizes, k // 128, t["out"].dtype)
        return {"out": (want, bound + 2.0**-11 * sizes)}
    rows = [(128, 128, 128, 8, 4), (128, 128, 128, 8, 3), (128, 128, 128, 4, 3), (64, 128, 128, 4, 4), (128, 64, 128, 4, 4), (64, 128, 128, 4, 5),
            (64, 64, 128, 4, 4), (64, 64, 128, 4, 5)]
    return Case(f"block scaled fp8 {m}x{n}x{k}", "scaled.py", "block_scaled_matmul", [B("out", "bf16", (m, n), "poison"),
                B("x", "fp8e4nv", (m, k)), B("weight", "fp8e4nv", (n, k)), B("x_scales", "fp32", (m, k // 128)),
                B("weight_scales", "fp32", (n // 128, k // 128)), N(m), N(n), N(k), C("BM"), C("BN"), C("BK"), C(8), C(128)],
                lambda c: (cdiv(m, c["BM"]) * cdiv(n, c["BN"]),), configs(("BM", "BN", "BK"), rows), expected, 2 * m * n * k,
                graph=2 * m * n * k < 5e9)


def four_bits(m, n, k, group=128, walk=False, row=1):
    """Weights of four bits and the product of 16 bits over them, in launches that all have the same weights, or others each time. In rows
    launches overlap; beside them stand products of 16 bits on four streams, of which the graph makes branches."""
    def expected(t):
        import torch
        words = t["weight"].view(torch.int16).int().reshape(n, k // group // 2, group // 2)
        numbers = torch.cat([words >> (4 * quarter) & 15 for quarter in range(4)], 2).reshape(n, k).double()
        # Of each group, in the order of K: its scale and its zero.
        of_groups = t["groups"].view(torch.float16).view(-1, n, 2, 2).transpose(0, 1).reshape(n, -1, 2).double()
        scales, zeros = of_groups.repeat_interleave(group, 1).unbind(2)
        w, x = (numbers - zeros) * scales, matrix(t, "x")
        return {"out": near(x @ w.T, x.abs() @ w.abs().T, k, t["out"].dtype)}

    def peer(t):
        import torch
        count = enough(2 * n * k) if walk else 1
        weights = [torch.randn((n, k), device="cuda", dtype=torch.float16) for _ in range(count)]
        product = lambda w, out: lambda: torch.mm(t["x"], w.T, out=out)
        calls = [product(w, torch.empty((m, n), device="cuda", dtype=torch.float16)) for w in weights]
        return on_branches(calls, row) if row > 1 else InTurn(calls)
    bm = 8 if m <= 8 else 16
    blocks = [(64, 1, 4, 3), (64, 1, 4, 4), (64, 2, 4, 3), (64, 3, 4, 3), (64, 4, 4, 3), (128, 1, 4, 3), (128, 4, 4, 3), (128, 6, 4, 3)]
    rows = [(bm, *block) for block in blocks]
    name = f"int4 weights f16 {m}x{n}x{k}{' from memory' if walk else ''}{f', rows of {row}' if row > 1 else ''}"
    return Case(name, "packed.py", "int4_matmul", [B("out", "fp16", (m, n), "poison"),
                B("parts", "fp32", (max(row[2] for row in rows) * n, 16), "poison"), B("counts", "i32", None, nothing), B("x", "fp16", (m, k)),
                B("weight", "u16", (n, k // 4)), B("groups", "i64", (k // group // 2, n), scales_and_zeros), N(m), N(n), N(k), C(group), C("BM"), C("BN"), C("PARTS"), C(row > 1)],
                lambda c: (cdiv(n, c["BN"]), c["PARTS"]), configs(("BM", "BN", "PARTS"), rows), expected, 2 * m * n * k, peer, graph=True,
                walk=("weight", "groups") if walk else (), row=row)


def weights(m, n, k, dtype, transposed=False, group=128):
    """Weights that are made floats as a right operand: bytes, words of eight numbers, or mxfp4. Beside them stands the library with weights of
    16 bits."""
    def floats(t):
        import torch
        if dtype == "mxfp4":
            table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], device="cuda", dtype=torch.float64)
            table = torch.cat([table, -table])
            numbers = table[torch.stack([t["weight"].long() & 15, t["weight"].long() >> 4], 2).flatten(1)]
            return (numbers * (2.0 ** (matrix(t, "scales") - 127)).repeat_interleave(32, 1)).T
        if dtype != "i32":
            w = matrix(t, "weight")
            return (w.T if transposed else w) * matrix(t, "scales")
        spread = lambda words, dim: torch.stack([words >> (4 * i) & 15 for i in range(8)], dim + 1).flatten(dim, dim + 1)
        numbers, zeros = spread(t["weight"], 0), spread(t["zeros"], 1).repeat_interleave(group, 0)
        # Scales are powers of two, so that their products are exact.
        return (numbers - zeros).double() * matrix(t, "scales").repeat_interleave(group, 0)

    def expected(t):
        x, w = matrix(t, "x"), floats(t)
        return {"out": near(x @ w, x.abs() @ w.abs(), k, t["out"].dtype)}

    def peer(t):
        import torch
        w, out = torch.randn((n, k) if transposed else (k, n), device="cuda").to(t["x"].dtype), torch.empty_like(t["out"])
        return lambda: torch.mm(t["x"], w.T if transposed else w, out=out)
    of_x = "bf16" if dtype == "mxfp4" else "fp16"
    rows = [(*row[:3], 1, *row[3:]) for row in WEIGHTS] if m > 64 else [(max(16, m), *row[1:]) for row in FEW_WEIGHTS]
    parts = max(row[3] for row in rows)
    tensors = [B("out", of_x, (m, n), "poison"), B("parts", "fp32", (parts * m, n), "poison"), B("counts", "i32", None, nothing), B("x", of_x, (m, k))]
    if dtype == "mxfp4":
        args = [*tensors, B("weight", "u8", (n, k // 2)), B("scales", "u8", (n, k // 32), exponents),
                N(m), N(n), N(k)]
    elif dtype == "i32":
        args = [*tensors, B("weight", "i32", (k // 8, n)), B("scales", "fp16", (k // group, n), small), B("zeros", "i32", (k // group, n // 8)),
                N(m), N(n), N(k), N(group)]
    else:
        args = [*tensors, B("weight", dtype, (n, k) if transposed else (k, n)), B("scales", "fp16", (n,), small), N(m), N(n), N(k),
                *map(N, (1, k) if transposed else (n, 1))]
    order = "n x k" if transposed else "k x n"
    if dtype == "i32":
        # A block lies in one group.
        rows = [row for row in rows if row[2] <= group]
    kernel = {"i32": "word_weights", "mxfp4": "mx_weights"}.get(dtype, "byte_weights")
    return Case(f"weights {dtype} {m}x{n}x{k}, {order}", "weights.py", kernel, [*args, C("BM"), C("BN"), C("BK"), C(8), C("PARTS")],
                lambda c: (cdiv(m, c["BM"]) * cdiv(n, c["BN"]), c["PARTS"]), configs(("BM", "BN", "BK", "PARTS"), rows), expected, 2 * m * n * k, peer,
                graph=2 * m * n * k < 5e9)


def cached_attention(heads, length, d, dtype):
    """Attention with keys and values of 8 bits. Beside it stands the library's with 16 bits."""
    def wide(t, name):
        return t[name].float() * t[f"{name}_scales"][..., None]

    def expected(t):
        import torch
        k, v, q = wide(t, "k"), wide(t, "v"), t["q"].float()
        heads = [torch.softmax(q[i] @ k[i].T / d**0.5, 1) @ v[i] for i in range(len(q))]
        want = torch.stack(heads).double()
        # Weights of softmax are rounded to f16 before the second product.
        return {"out": (want, 2.0**-9 * v.abs().amax().double() + 2.0**-9 * want.abs())}

    def peer(t):
        import torch
        k, v = wide(t, "k").half(), wide(t, "v").half()
        return lambda: torch.nn.functional.scaled_dot_product_attention(t["q"][None], k[None], v[None])
    shape = (heads, length, d)
    return Case(f"attention {dtype} keys {heads}x{length}x{d}", "attention.py", "forward_few_bits", [B("out", "fp16", shape, "poison"), B("q", "fp16", shape),
                B("k", dtype, shape), B("v", dtype, shape), B("k_scales", "fp32", shape[:2], around_one), B("v_scales", "fp32", shape[:2], around_one),
                N(length), N(1.4426950408889634 / d**0.5), C("BM"), C("BN"), C(d)], lambda c: (length // c["BM"], heads),
                configs(("BM", "BN"), [(128, 64, 4, 2), (128, 64, 4, 3), (128, 128, 8, 2), (128, 64, 8, 3), (64, 64, 4, 2), (64, 64, 4, 3)]), expected,
                4 * heads * length * length * d, peer)


def around_one(t):
    """Scales of rows; of integers what makes their numbers as large as others."""
    import torch
    size = 1 / 64 if t["k"].dtype == torch.int8 else 1
    return (0.5 + torch.rand(t["shape"], device="cuda")) * size


def group_scaled(m, n, k, group):
    def expected(t):
        of = lambda name: matrix(t, name) * matrix(t, f"{name}_scales").repeat_interleave(group, 1)
        x, w = of("x"), of("weight")
        return {"out": near(x @ w.T, x.abs() @ w.abs().T, k, t["out"].dtype)}
    return Case(f"scales of groups of {group} bf16 {m}x{n}x{k}", "scaled.py", "group_scaled_matmul", [B("out", "bf16", (m, n), "poison"), B("x", "bf16", (m, k)),
                B("weight", "bf16", (n, k)), B("x_scales", "fp32", (m, k // group), small), B("weight_scales", "fp32", (n, k // group), small),
                N(m), N(n), N(k), C("BM"), C("BN"), C("BK"), C(8), C(group)], lambda c: (cdiv(m, c["BM"]) * cdiv(n, c["BN"]),),
                configs(("BM", "BN", "BK"), NESTED), expected, 2 * m * n * k)


def block_sparse(m, n, k, block, count):
    rows = [row for row in NESTED if row[1] == 128]

    def table(t):
        import torch
        return torch.stack([torch.randperm(k // block, device="cuda")[:count] for _ in range(n // 128)])

    def expected(t):
        import torch
        x, w = matrix(t, "x"), matrix(t, "weight")
        is_kept = torch.zeros((n // 128, k // block), device="cuda", dtype=torch.float64).scatter_(1, t["blocks"].long(), 1)
        w = w * is_kept.repeat_interleave(128, 0).repeat_interleave(block, 1)
        return {"out": near(x @ w.T, x.abs() @ w.abs().T, k, t["out"].dtype)}
    return Case(f"block sparse bf16 {m}x{n}x{k}, {count} blocks of {block}", "sparse.py", "block_sparse", [B("out", "bf16", (m, n), "poison"), B("x", "bf16", (m, k)),
                B("weight", "bf16", (n, k)), B("blocks", "i32", (n // 128, count), table), N(m), N(n), N(k), N(count), C("BM"), C("BN"), C("BK"), C(block)],
                lambda c: (cdiv(m, c["BM"]), n // c["BN"]), configs(("BM", "BN", "BK"), rows), expected, 2 * m * n * block * count)


def nothing(t):
    """Counts that every launch leaves as it found them."""
    import torch
    return torch.zeros(1 << 16, dtype=torch.int32, device="cuda")


def small(t):
    """Scales that are powers of two, so that weights are exact."""
    import torch
    return 2.0 ** -torch.randint(3, 8, t["shape"], device="cuda").float()


def exponents(t):
    """Powers of two as biased exponents."""
    import torch
    return torch.randint(117, 127, t["shape"], device="cuda")


def scales_and_zeros(t):
    """Words of 64 bits: scale and zero of a group of weights, and of the next one, as f16."""
    import torch
    shape = (*t["shape"], 2)
    zeros = torch.randint(0, 16, shape, device="cuda").half()
    return torch.stack([small({"shape": shape}).half(), zeros], 3).view(*t["shape"], 4).view(torch.int64).squeeze(2)


def experts(tokens, count, top, n, k, skewed):
    block = EXPERTS[0][0]

    def routing(t):
        import torch
        if "routing" not in t:
            weights = torch.arange(1, count + 1).float() ** -1.5 if skewed else torch.ones(count)
            chosen = torch.multinomial(weights.repeat(tokens, 1), top, generator=torch.Generator().manual_seed(5)).flatten()
            order, owners = [], []
            for expert in range(count):
                pairs = (chosen == expert).nonzero().flatten().tolist()
                pairs += [tokens * top] * (-len(pairs) % block)
                order += pairs
                owners += [expert] * (len(pairs) // block)
            t["routing"] = torch.tensor(order, dtype=torch.int32), torch.tensor(owners, dtype=torch.int32), chosen
        return t["routing"]

    def expected(t):
        import torch
        chosen = routing(t)[2].cuda()
        want = torch.empty((tokens * top, n), dtype=torch.float64, device="cuda")
        sizes = torch.empty_like(want)
        x = t["x"].double().repeat_interleave(top, 0)
        for expert in range(count):
            rows = (chosen == expert).nonzero().flatten()
            w = t["weight"][expert].double()
            want[rows], sizes[rows] = x[rows] @ w.T, x[rows].abs() @ w.abs().T
        return {"out": near(want, sizes, k, t["out"].dtype)}

    def peer(t):
        import torch
        chosen = routing(t)[2].cuda()
        rows = [(chosen == expert).nonzero().flatten() // top for expert in range(count)]
        inputs = [t["x"][r] for r in rows]
        return lambda: [torch.mm(x, w.T) for x, w in zip(inputs, t["weight"]) if len(x)]
    # The grid has as many rows of blocks as the routing, which is the same for all runs.
    blocks = {}

    def grid(c):
        if "n" not in blocks:
            blocks["n"] = len(routing({})[1])
        return cdiv(n, c["BN"]), blocks["n"]
    kind = "skewed" if skewed else "uniform"
    return Case(f"experts bf16 {tokens}x{top} of {count} {n}x{k} {kind}", "experts.py", "experts_matmul", [B("out", "bf16", (tokens * top, n), "poison"),
                B("x", "bf16", (tokens, k)), B("weight", "bf16", (count, n, k)), B("order", "i32", None, lambda t: routing(t)[0].cuda()),
                B("experts", "i32", None, lambda t: routing(t)[1].cuda()), B("shares", "fp32", (tokens * top,)), N(tokens * top), N(n), N(k), C(top),
                C(False), C("BM"), C("BN"), C("BK")], grid, configs(("BM", "BN", "BK"), EXPERTS), expected, 2 * tokens * top * n * k, peer)


def one_step(sequences, length, heads, group, d, page):
    most = length // page

    def table(t):
        import torch
        return torch.randperm(sequences * most, device="cuda").int().reshape(sequences, most)

    def lengths(t):
        import torch
        return torch.full((sequences,), length, device="cuda", dtype=torch.int32)

    def expected(t):
        # Of the first sequence: what the parts hold, joined.
        import torch
        k, v = (t[x][t["table"][0].long()].double().reshape(length, heads, d) for x in ("k", "v"))
        q = t["q"][0].double().reshape(heads, group, d)
        scores = torch.einsum("hgd,nhd->hgn", q, k) / d**0.5
        want = torch.einsum("hgn,nhd->hgd", scores.softmax(-1), v).reshape(heads * group, d)
        # p is rounded to 16 bits, and so is what it is multiplied with.
        return {joined: (want, 2.0**-7 * want.abs().max())}

    def joined(t):
        """What `finish` makes of the parts, for the first sequence. A configuration writes as many parts as it has, the others stay NaN."""
        import torch
        parts = t["parts"].reshape(-1, sequences, heads * group, d)[:, 0].double()
        tops, totals = (t[x].reshape(-1, sequences, heads * group)[:, 0].double() for x in ("tops", "totals"))
        used = ~tops[:, 0].isnan()
        if not used.any():
            return parts[0]
        parts, tops, totals = parts[used], tops[used], totals[used]
        weight = torch.exp2(tops - tops.max(0).values)
        return (parts * weight[..., None]).sum(0) / (totals * weight).sum(0)[:, None]
    size = sequences * length * heads * d * 2 * 2

    def peer(t):
        import torch
        a, b = (torch.empty(size // 2, dtype=torch.uint8, device="cuda") for _ in range(2))
        return lambda: a.copy_(b)
    parts = 8
    rows = sequences * heads * group
    return Case(f"decode bf16 {sequences}x{length} {heads}x{group}x{d} pages {page}", "decode.py", "decode",
                [B("parts", "fp32", (parts * rows, d), "poison"), B("tops", "fp32", (parts * rows,), "poison"),
                 B("totals", "fp32", (parts * rows,), "poison"), B("q", "bf16", (sequences, heads * group, d)),
                 B("k", "bf16", (sequences * most, page, heads, d)), B("v", "bf16", (sequences * most, page, heads, d)),
                 B("table", "i32", None, table), B("lengths", "i32", None, lengths), N(most), N(1.4426950408889634 / d**0.5), C("SPAN"),
                 C(heads), C(group), C(16), C(page), C("BN"), C(d)], lambda c: (sequences, heads, cdiv(length, c["SPAN"])),
                configs(("BN", "SPAN"), DECODE), expected, 4 * sequences * length * heads * group * d, peer)


def shapes():
    for n, k in ((4096, 4096), (14336, 4096)):
        yield vector(n, k)
        yield few(16, n, k)
    for m, n, k in ((4096, 4096, 4096), (64, 7168, 16384)):
        yield scaled(m, n, k, "fp8e4nv")
        yield block_scaled(m, n, k)
    yield scaled(4096, 4096, 4096, "i8")
    yield four_bits(16, 8192, 8192)
    yield four_bits(1, 8192, 8192)
    for m, (n, k), row in itertools.product((16, 1), ((8192, 8192), (28672, 8192), (8192, 28672), (57344, 8192)), (1, 2, 4, 20)):
        yield four_bits(m, n, k, walk=True, row=row)
    for m, n, k in ((16, 4096, 4096), (16, 14336, 4096), (64, 7168, 2048), (128, 576, 18752)):
        yield few(m, n, k, row=20)
        yield few(m, n, k, (2, 4, 8), "few_rows_by_last", row=20)
    for dtype, transposed in (("i8", False), ("i8", True), ("fp8e4nv", False), ("i32", False), ("mxfp4", True)):
        for m in (16, 64, 512, 4096):
            yield weights(m, 4096, 4096, dtype, transposed)
        yield weights(16, 8192, 8192, dtype, transposed)
    for group in (128, 256):
        yield group_scaled(4096, 4096, 4096, group)
    for block in (64, 128):
        yield block_sparse(4096, 4096, 4096, block, 8)
    for dtype in ("i8", "fp8e4nv"):
        yield cached_attention(64, 4096, 128, dtype)
    for skewed in (False, True):
        yield experts(4096, 8, 2, 4096, 2048, skewed)
    yield one_step(32, 8192, 8, 4, 128, 16)


def few_rows():
    """Products of 1 to 128 rows, by each kernel that can be thought of: weights of known models, and nine that a seed draws."""
    import random
    known = [(4096, 4096), (14336, 4096), (4096, 14336), (7168, 2048), (6144, 4096), (8192, 8192), (5120, 5120), (1024, 8192), (18944, 3584)]
    draw = random.Random(int(os.environ.get("SHAPES", "22")))
    drawn = [(64 * round(2 ** draw.uniform(3, 8.2)), 64 * round(2 ** draw.uniform(3, 8.2))) for _ in range(9)]
    for n, k in (*known, *drawn):
        yield vector(n, k)
        for m in (8, 16, 32, 64, 128):
            yield few(m, n, k)
            if n < 64 * 132:
                yield few(m, n, k, (2, 4, 8, 16), "few_rows_by_last")
                yield few(m, n, k, (4, 8, 16), "few_rows_by_atomics")
            if m >= 64:
                case = few_by_matmul(m, n, k)
                case.name = f"few_rows_by_matmul bf16 {m}x{n}x{k}, b n x k"
                yield case
