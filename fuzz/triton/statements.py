"""Statements of random kernels: memory, loops, branches, reductions, scans, shapes, products."""
from kernels import FLOATS, HELD, INTS, LARGEST, LONG, Value, Writer, bits_of, is_float

# What combines two elements, for tl.reduce and tl.associative_scan: of integers, and of floats.
OF_INTS = ["a + b", "a * b", "a & b", "a | b", "a ^ b", "tl.maximum(a, b)", "tl.minimum(a, b)"]
OF_FLOATS = ["tl.maximum(a, b)", "tl.minimum(a, b)", "a + b"]


class Kernel(Writer):
    """A kernel as text."""

    def __init__(self, seed):
        super().__init__(seed)
        r = self.r
        self.line("pid = tl.program_id(0)")
        self.scalars.append(Value("pid", "i32", ()))
        if self.is_flat:
            (n,) = self.shape
            self.line(f"i = tl.arange(0, {n})")
            self.line(f"at = pid * {n} + i")
        else:
            m, n = self.shape
            self.line(f"rows = tl.arange(0, {m})")
            self.line(f"columns = tl.arange(0, {n})")
            self.line(f"at = pid * {self.count} + rows[:, None] * {n} + columns[None, :]")
        for _ in range(r.randrange(3)):
            self.number()
        for _ in range(r.randrange(2, 4)):
            self.load()
        self.values.append(Value("at", "i32", self.shape))
        for _ in range(r.randrange(2, 8)):
            self.statement()
        for _ in range(r.randrange(1, 4)):
            self.store()
        self.text = self.finished()

    def finished(self):
        parameters = ", ".join(self.parameters + [f"{name}: tl.constexpr" for name in self.constants])
        signature = ", ".join(self.signature + [str(value) for value in self.constants.values()])
        head = "import triton\nimport triton.language as tl\n\n\n" + "".join(helper + "\n\n" for helper in self.helpers)
        warps = self.r.choice([1, 2, 4])
        run = f'# run: kernel "{signature}" num_warps={warps} : grid({self.programs}) {" ".join(self.arguments)}'
        return head + f"@triton.jit\ndef kernel({parameters}):\n" + "\n".join(self.lines) + f"\n\n\n{run}\n"

    def full(self):
        return f"({self.shape[0]},)" if self.is_flat else f"({self.shape[0]}, {self.shape[1]})"

    def shaped(self, value, ty):
        """A value as one of the kernel's shape and of a type."""
        value = self.cast(value, ty)
        if value.shape == self.shape:
            return value
        if self.r.random() < 0.5 and value.shape:
            return Value(f"tl.broadcast_to({value.text}, {self.full()})", ty, self.shape, value.size)
        return Value(f"(tl.zeros({self.full()}, {LONG[ty]}) + {value.text})", ty, self.shape, value.size)

    def some(self, wanted=None, depth=2):
        """An expression of the kernel's shape."""
        value = self.expression(depth)
        ty = value.ty if wanted is None and value.ty != "i1" else self.r.choice(wanted or ["i32", "fp32", "i8"])
        return self.shaped(value, ty)

    def whole(self, wanted=None):
        return self.assign(self.some(wanted))

    def statement(self):
        r = self.r
        kinds = ["computed", "load", "reduce", "scan", "loop", "branch", "reorder", "fold", "constexpr", "unrolled", "atomic", "product", "scalar"]
        kind = r.choices(kinds, [8, 3, 5, 3, 4, 3, 4, 2, 2, 2, 2, 4, 2])[0]
        if self.depth > 1 and kind in ("loop", "branch", "unrolled") and r.random() < 0.6:
            kind = "computed"
        getattr(self, kind)()

    def computed(self):
        self.assign(self.expression(3))

    # Memory.

    def load(self):
        r = self.r
        ty = r.choice(INTS + FLOATS * 2 + ["fp32", "i32", "i1", "bf16"])
        form = r.choices(["plain", "masked", "back", "strided", "moved", "gathered", "row", "scalar", "block"], [5, 5, 2, 2, 2, 2, 3, 1, 2])[0]
        last = self.elements - 1
        kept = "i32" if ty == "bf16" else ty
        if form == "masked":
            x = self.buffer(ty, self.elements)
            limit = r.randrange(1, self.elements + 1)
            bound = str(limit)
            if r.random() < 0.5:
                bound = self.name("n")
                self.parameter(bound, "i32", limit)
            # Numbers become bf16 otherwise than in compiled code, unless they are floats that it holds.
            other = r.choice(["0.0", "1.5", "-2.0"]) if ty == "bf16" else self.constant(ty)[0]
            text = f"tl.load({x} + at, mask=at < {bound}, other={other})"
        elif form == "back":
            text = f"tl.load({self.buffer(ty, self.elements)} + ({last} - at))"
        elif form == "strided":
            stride, first = r.choice([(2, 1), (3, 2), (5, 0)])
            x = self.buffer(ty, self.elements * stride)
            step = self.name("n")
            self.parameter(step, r.choice(["i32", "i64"]), stride)
            text = f"tl.load({x} + at * {step} + {first})"
        elif form == "moved":
            x = self.buffer(ty, self.elements + 8)
            p = self.name("p")
            self.line(f"{p} = {x} + at")
            self.line(f"{p} += {r.choice(['8', '4', '3'])}")
            text = f"tl.load({p})"
        elif form == "gathered" and self.values:
            count = r.choice([8, 16, 64])
            index = self.of(1, ["i32", "i64", "u8", "i16"])
            text = f"tl.load({self.buffer(ty, count)} + ({index.text} & {count - 1}))"
            if not index.shape:
                return self.keep_loaded(text, ty, ())
            return self.keep_loaded(text, ty, index.shape)
        elif form == "row" and not self.is_flat:
            m, n = self.shape
            if r.random() < 0.5:
                return self.keep_loaded(f"tl.load({self.buffer(ty, m)} + rows)[:, None]", ty, (m, 1))
            return self.keep_loaded(f"tl.load({self.buffer(ty, n)} + columns[None, :])", ty, (1, n))
        elif form == "scalar":
            return self.keep_loaded(f"tl.load({self.buffer(ty, self.programs)} + pid)", ty, ())
        elif form == "block" and kept != "i1":
            return self.block_pointer(ty)
        else:
            text = f"tl.load({self.buffer(ty, self.elements)} + at)"
        return self.keep_loaded(text, ty, self.shape)

    def keep_loaded(self, text, ty, shape):
        if ty == "bf16":
            text, ty = text + ".to(tl.float32)", "fp32"
        return self.assign(Value(text, ty, shape, float("inf") if self.is_wild else 4.0))

    def block_pointer(self, ty):
        """A box of a matrix, at its edge or beyond it."""
        r = self.r
        m, n = self.shape if not self.is_flat else (self.shape[0], 1)
        rows, columns = m + r.choice([-2, 0, 3]), n + r.choice([0, 5])
        first = r.choice([0, 0, 1])
        x = self.buffer(ty, rows * columns)
        if self.is_flat:
            text = f"tl.make_block_ptr({x}, shape=({rows},), strides=(1,), offsets=({first},), block_shape=({m},), order=(0,))"
            check = "(0,)"
        else:
            text = (f"tl.make_block_ptr({x}, shape=({rows}, {columns}), strides=({columns}, 1), offsets=({first}, 0), "
                    f"block_shape=({m}, {n}), order=(1, 0))")
            check = "(0, 1)"
        p = self.name("p")
        self.line(f"{p} = {text}")
        return self.keep_loaded(f'tl.load({p}, boundary_check={check}, padding_option="zero")', ty, self.shape)

    def store(self):
        r = self.r
        pool = [v for v in self.values if v.text != "at"]
        value = max(r.choice(pool), r.choice(pool), key=pool.index)
        if r.random() < 0.3:
            value = self.expression(2)
        out = self.name("out")
        if not value.shape:
            self.parameter(out, "*" + value.ty, f"{HELD[value.ty]}[{self.programs}] zeros")
            return self.line(f"tl.store({out} + pid, {self.settled(value)})")
        ty = value.ty
        if ty in INTS and r.random() < 0.2:
            # The store converts.
            ty = r.choice(INTS)
        self.parameter(out, "*" + ty, f"{HELD[ty]}[{self.elements}] zeros")
        mask = f", mask=at % {r.choice([2, 3, 5])} != 1" if r.random() < 0.3 else ""
        self.line(f"tl.store({out} + at, {self.settled(value)}{mask})")

    def copied(self, value):
        """A block of its own: of one in another order, or repeated, Triton's interpreter gives atomics the memory as it is."""
        return Value(f"({value.text} + tl.zeros({self.full()}, {LONG[value.ty]}))", value.ty, value.shape, value.size)

    def atomic(self):
        r = self.r
        out = self.name("out")
        if r.random() < 0.3:
            # Many elements meet at one address; the order decides nothing but what comes back, which is dropped.
            ty = r.choice(["i32", "u32", "i64"])
            value = self.copied(self.some([ty], 1))
            op = r.choice(["add", "max", "min", "and", "or", "xor"])
            self.parameter(out, "*" + ty, f"{HELD[ty]}[4] uniform(1,0,9)")
            return self.line(f"tl.atomic_{op}({out} + (at & 3), {value.text})")
        ty = r.choice(["i32", "u32", "i64", "u64", "fp32", "fp32", "fp16", "fp64"])
        ops = ["add"] if is_float(ty) else ["add", "max", "min", "and", "or", "xor", "xchg"]
        value = self.some([ty], 1)
        value = self.copied(self.bounded(value, 1000.0) if is_float(ty) else value)
        self.parameter(out, "*" + ty, f"{HELD[ty]}[{self.elements}] uniform({r.randrange(9)},0,4)")
        mask = f", mask=at < {r.randrange(self.elements)}" if r.random() < 0.3 else ""
        text = f"tl.atomic_{r.choice(ops)}({out} + at, {value.text}{mask})"
        if mask:
            # What masked lanes get is undefined.
            return self.line(text)
        return self.assign(Value(text, ty, self.shape, 1004.0))

    # Values.

    def constexpr(self):
        r = self.r
        name = f"C{len(self.constants)}"
        self.constants[name] = r.choice([2, 3, 5, 7])
        a = self.some(INTS + ["fp32"], 1)
        a = self.bounded(a, 1e6) if is_float(a.ty) else a
        local = self.name("K")
        self.line(f"{local}: tl.constexpr = {name} * 2 - 1")
        body = r.choice([f"({a.text} + {local})", f"({a.text} * {local} - {name})", f"({a.text} + ({name} if {local} > 5 else {local}))"])
        return self.assign(Value(body, a.ty, a.shape, 2e7))

    def scalar(self):
        """A scalar of other scalars, or of a block."""
        r = self.r
        if r.random() < 0.5:
            a, b = r.choice(self.scalars), r.choice(self.scalars)
            a, b = self.cast(a, "i32"), self.cast(b, "i32")
            text = r.choice(["({a} + {b})", "({a} * {b})", "({a} // (({b} & 3) + 1))", "tl.minimum({a}, {b})", "tl.cdiv({a} & 63, ({b} & 3) + 1)",
                             "tl.where({a} > {b}, {a}, {b})"])
            return self.assign(Value(text.format(a=a.text, b=b.text), "i32", ()), "s")
        value = self.some(["i32", "fp32", "i8", "i64", "u32"], 1)
        return self.fold_of(value, None)

    def condition(self):
        r = self.r
        ints = [v for v in self.scalars if not is_float(v.ty) and v.ty != "i1"]
        a = r.choice(ints)
        return r.choice([f"{a.text} > {r.randrange(4)}", f"({a.text} & 1) == 0", f"{a.text} % 3 != 1", f"pid == {r.randrange(2)}"])

    def fold_of(self, value, axis):
        """A reduction along an axis, or of everything."""
        r = self.r
        extent = self.count if axis is None else self.shape[axis]
        ops = ["sum", "max", "min", "argmax", "argmin", "xor_sum", "reduce", "indices"]
        op = r.choices(ops, [6, 3, 3, 2, 2, 2, 4, 1])[0]
        value = self.bounded(value, 1e4) if self.is_wild and is_float(value.ty) else value
        ty, size = value.ty, value.size
        self.leave_zeros_open(ty)
        if op == "xor_sum" and is_float(ty):
            op = "sum"
        if axis is None and op in ("argmax", "argmin", "indices", "reduce"):
            op = "max"
        narrow = bits_of(ty) < 32
        if op in ("sum", "reduce") and is_float(ty):
            value, _ = self.fits(value, ty, 16.0 if ty == "fp16" else LARGEST[ty] / 1e4)
            size = value.size * extent
        where = "" if axis is None else f", {axis}" if r.random() < 0.5 else f", axis={axis}"
        if op == "reduce":
            name = self.name("combine")
            body = r.choice(OF_FLOATS if is_float(ty) else OF_INTS)
            self.helpers.append(f"@triton.jit\ndef {name}(a, b):\n    return {body}\n")
            text = f"tl.reduce({value.text}, {axis}, {name})"
        elif op == "indices":
            name = self.name("m")
            text = f"tl.{r.choice(['max', 'min'])}({value.text}, {axis}, return_indices=True)[1]"
            ty = "i32"
        else:
            text = f"tl.{op}({value.text}{where})"
            if op in ("argmax", "argmin"):
                ty = "i32"
            elif op == "sum" and narrow and not is_float(ty):
                ty = ty[0] + "32"
            elif op in ("max", "min") and narrow:
                ty = "fp32" if is_float(ty) else "i32"
        if axis is None or self.is_flat:
            return self.assign(Value(text, ty, (), size), "s")
        m, n = self.shape
        text += "[:, None]" if axis == 1 else "[None, :]"
        return self.assign(Value(text, ty, (m, 1) if axis == 1 else (1, n), size))

    def reduce(self):
        r = self.r
        value = self.whole()
        self.fold_of(value, r.randrange(len(self.shape)) if r.random() < 0.8 else None)

    def scan(self):
        r = self.r
        axis = r.randrange(len(self.shape))
        value = self.some()
        value = self.bounded(value, 1e4) if self.is_wild and is_float(value.ty) else value
        ty, size = value.ty, value.size
        if is_float(ty):
            value, _ = self.fits(value, ty, 16.0 if ty == "fp16" else LARGEST[ty] / 1e4)
            size = value.size * self.shape[axis]
        reverse = ", reverse=True" if r.random() < 0.3 else ""
        form = r.random()
        if form < 0.5:
            narrow = not is_float(ty) and bits_of(ty) < 32
            return self.assign(Value(f"tl.cumsum({value.text}, {axis}{reverse})", ty[0] + "32" if narrow else ty, self.shape, size))
        if form < 0.6 and not is_float(ty):
            return self.assign(Value(f"tl.cumprod({value.text}, {axis}{reverse})", ty, self.shape))
        self.leave_zeros_open(ty)
        name = self.name("combine")
        body = r.choice(OF_FLOATS if is_float(ty) else OF_INTS)
        self.helpers.append(f"@triton.jit\ndef {name}(a, b):\n    return {body}\n")
        return self.assign(Value(f"tl.associative_scan({value.text}, {axis}, {name}{reverse})", ty, self.shape, size))

    def reorder(self):
        """The elements of a block in another order."""
        r = self.r
        value = self.whole()
        value = self.assign(self.bounded(value, 1e4)) if self.is_wild and is_float(value.ty) else value
        v, ty, size = value.text, value.ty, value.size
        axis = r.randrange(len(self.shape))
        forms = ["flip", "gather", "join", "sort", "turn", "interleave", "halves"]
        form = r.choices(forms, [2, 3, 2, 1, 4, 2, 2])[0]
        n = self.shape[-1]
        if form == "flip":
            text = f"tl.flip({v}, {axis})"
        elif form == "gather":
            index = self.some(["i32", "i64"], 1)
            text = f"tl.gather({v}, ({index.text} & {self.shape[axis] - 1}).to(tl.int32), {axis})"
        elif form == "join":
            other = self.some([ty], 1)
            a, b = self.name(), self.name()
            self.line(f"{a}, {b} = tl.split(tl.join({v}, {other.text}))")
            most = None if not is_float(ty) else max(size, other.size)
            self.values.append(Value(a, ty, self.shape, most))
            self.values.append(Value(b, ty, self.shape, most))
            return None
        elif form == "sort":
            self.leave_zeros_open(ty)
            text = f"tl.sort({v}{r.choice(['', ', descending=True'])})"
        elif form == "turn":
            if self.is_flat:
                a = r.choice([2, 4, 8])
                text = f"tl.reshape(tl.trans(tl.reshape({v}, ({a}, {n // a}))), ({n},))"
            else:
                m = self.shape[0]
                text = r.choice([f"tl.trans(tl.reshape({v}, ({n}, {m})))", f"tl.reshape(tl.permute({v}, (1, 0)), ({m}, {n}))",
                                 f"tl.reshape({v}.T, {m}, {n})"])
        elif form == "interleave":
            other = self.some([ty], 1)
            (value, _), (other, _) = self.fits(value, ty, 100.0) if is_float(ty) else (value, 0), \
                self.fits(other, ty, 100.0) if is_float(ty) else (other, 0)
            lead = "" if self.is_flat else f"{self.shape[0]}, "
            name = self.name("combine")
            self.helpers.append(f"@triton.jit\ndef {name}(a, b):\n    return a + b\n")
            text = f"tl.reduce(tl.reshape(tl.interleave({value.text}, {other.text}), ({lead}2, {n})), {len(self.shape) - 1}, {name})"
            size = 200.0
        else:
            lead = "" if self.is_flat else f"{self.shape[0]}, "
            self.leave_zeros_open(ty)
            text = f"tl.max(tl.reshape({v}, ({lead}{n // 2}, 2)), -1, keep_dims=True)"
            narrow = bits_of(ty) < 32
            ty = ("fp32" if is_float(ty) else "i32") if narrow else ty
            text = f"tl.reshape(tl.broadcast_to({text}, ({lead}{n // 2}, 2)), {self.full()})"
        return self.assign(Value(text, ty, self.shape, size))

    def fold(self):
        """A histogram, or a product of a row and a column."""
        r = self.r
        if self.is_flat:
            bins = self.shape[0]
            value = self.some(["i32"], 1)
            return self.assign(Value(f"tl.histogram({value.text} & {bins - 1}, {bins})", "i32", self.shape))
        rows = self.some(["fp32", "i32"], 1)
        rows, _ = self.fits(rows, rows.ty, 1e6) if is_float(rows.ty) else (rows, 0)
        axis = r.randrange(2)
        m, n = self.shape
        text = f"tl.sum({rows.text}, {axis}, keep_dims=True)"
        return self.assign(Value(text, rows.ty, (1, n) if axis == 0 else (m, 1), rows.size * max(m, n)))

    def product(self):
        r = self.r
        if self.is_flat or min(self.shape) < 16:
            return self.statement()
        m, n = self.shape
        ty = r.choice(["fp16", "fp16", "i8", "fp32"])
        k = r.choice([32, 64] if ty == "i8" else [16, 32])
        a, b = self.buffer(ty, m * k), self.buffer(ty, k * n)
        inner = self.name("k")
        self.line(f"{inner} = tl.arange(0, {k})")
        left = f"tl.load({a} + rows[:, None] * {k} + {inner}[None, :])"
        right = f"tl.load({b} + {inner}[:, None] * {n} + columns[None, :])"
        if r.random() < 0.4:
            right = f"tl.trans(tl.load({b} + columns[:, None] * {k} + {inner}[None, :]))"
        result = "i32" if ty == "i8" else "fp32"
        precise = ', input_precision="ieee"' if ty == "fp32" else ""
        text, size = f"tl.dot({left}, {right}{precise})", 16.0 * k
        if r.random() < 0.4:
            start = self.some([result], 1)
            start = self.bounded(start, 1000.0) if is_float(result) else start
            name = self.name()
            self.line(f"{name} = {start.text}.to({LONG[result]})")
            text, size = f"tl.dot({left}, {right}, {name}{precise})", size + 1000.0
        return self.assign(Value(text, result, self.shape, float("inf") if self.is_wild else size))

    # Control.

    def block(self, count):
        """Statements of which nothing is left behind it."""
        values, scalars = len(self.values), len(self.scalars)
        self.depth += 1
        for _ in range(count):
            self.statement()
        return values, scalars

    def end_block(self, marks):
        self.depth -= 1
        del self.values[marks[0]:], self.scalars[marks[1]:]

    def carried(self):
        ty = self.r.choice(["i32", "fp32", "fp32", "i8", "i64", "u32", "fp16", "u8"])
        start = self.some([ty], 1)
        acc = self.assign(self.bounded(start, 50.0) if is_float(ty) else start, "acc")
        # What it is in a later iteration, or behind a branch.
        acc.size = 50.0 if is_float(ty) else acc.size
        return acc

    def updated(self, acc):
        """The next value of a carried block, of the same type, shape and bound."""
        value = self.cast(self.expression(2), acc.ty)
        if is_float(acc.ty):
            value = self.bounded(value, 25.0)
            text = self.r.choice([f"{acc.text} * 0.5 + {value.text}", f"tl.where(at % 2 == 0, {acc.text}, {value.text})"])
        else:
            text = self.r.choice([f"{acc.text} + {value.text}", f"{acc.text} ^ {value.text}", f"tl.maximum({acc.text}, {value.text})"])
        self.line(f"{acc.text} = {text}")

    def loop(self):
        r = self.r
        accs = [self.carried() for _ in range(r.randrange(1, 3))]
        k, j = self.name("k"), self.name("j")
        form = r.random()
        if form < 0.7:
            low, step = r.choice([("", ""), ("0, ", ""), ("1, ", ""), ("0, ", ", 2"), ("5, ", ", -1"), ("-2, ", ", 3")])
            bounds = [v for v in self.scalars if v.ty in ("i32", "i64") and v.text.startswith("n")]
            high = f"({r.choice(bounds).text} & 7)" if bounds and r.random() < 0.5 else str(r.randrange(6))
            call = r.choice(["range", "tl.range"]) if step != ", -1" else "range"
            self.line(f"for {k} in {call}({low}{high}{step}):")
            marks = self.block(0)
            # To Triton's interpreter the counter is a number of Python's.
            self.line(f"{j} = tl.cast({k}, tl.int32)")
        else:
            self.line(f"{j} = pid & 1")
            self.line(f"while {j} < {r.randrange(1, 5)}:")
            marks = self.block(0)
        self.scalars.append(Value(j, "i32", ()))
        for _ in range(r.randrange(2)):
            self.statement()
        for acc in accs:
            self.updated(acc)
        if form >= 0.7:
            self.line(f"{j} += 1")
        self.end_block(marks)
        # Behind it the names of the carried values are theirs again.

    def unrolled(self):
        r = self.r
        acc = self.carried()
        k = self.name("k")
        self.line(f"for {k} in tl.static_range({r.choice(['3', '1, 4', '0, 6, 2'])}):")
        marks = self.block(0)
        if is_float(acc.ty):
            self.line(f"{acc.text} = {acc.text} * 0.5 + {k}")
        else:
            self.line(f"{acc.text} = ({acc.text} ^ {k}) + {k}")
        self.updated(acc)
        self.end_block(marks)

    def branch(self):
        r = self.r
        acc = self.carried()
        self.line(f"if {self.condition()}:")
        marks = self.block(r.randrange(2))
        self.updated(acc)
        self.end_block(marks)
        if r.random() < 0.6:
            self.line("else:")
            marks = self.block(r.randrange(2))
            self.updated(acc)
            self.end_block(marks)
