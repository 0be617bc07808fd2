"""Random kernels in Triton's language: texts with a `# run:` line each, valid for compiled code and for Triton's interpreter.

What is undefined is not made: no quotient by zero, no shift by more than the width, no float that leaves an integer's range. Of
floats the greatest size is known, so that infinities and NaNs come from memory alone, in a fifth of the kernels; what Triton's interpreter does otherwise than
compiled code (`deviations.py`) is left out, too.
"""
import random

FLOATS = ["fp16", "fp32", "fp64"]
SIGNED = ["i8", "i16", "i32", "i64"]
UNSIGNED = ["u8", "u16", "u32", "u64"]
INTS = SIGNED + UNSIGNED
LONG = {"fp16": "tl.float16", "bf16": "tl.bfloat16", "fp32": "tl.float32", "fp64": "tl.float64", "i1": "tl.int1",
        **{t: "tl.int" + t[1:] for t in SIGNED}, **{t: "tl.uint" + t[1:] for t in UNSIGNED}}
# Types of buffers in a run line, by width alone.
HELD = {"fp16": "f16", "bf16": "bf16", "fp32": "f32", "fp64": "f64", **{t: "i" + t[1:] for t in INTS}, "i1": "i1"}
LARGEST = {"fp16": 3e4, "fp32": 1e30, "fp64": 1e200}


def bits_of(ty):
    return int(ty[1:]) if ty[0] in "iu" else int(ty[2:])


def is_float(ty):
    return ty in FLOATS


def size_of(ty):
    """The greatest size of an integer."""
    return 1.0 if ty == "i1" else float(1 << (bits_of(ty) - (ty[0] == "i")))


def promoted(a, b, divides=False):
    """The type of an operation on two values that are no constants, or none where it is refused."""
    if is_float(a) or is_float(b):
        for ty in ("fp64", "fp32", "fp16"):
            if ty in (a, b):
                return "fp32" if divides and ty == "fp16" else ty
    if a == "i1" or b == "i1":
        return b if a == "i1" else a
    if a[0] == b[0]:
        return max(a, b, key=bits_of)
    if divides:
        return None
    unsigned, signed = (a, b) if a[0] == "u" else (b, a)
    return unsigned if bits_of(unsigned) >= bits_of(signed) else signed


class Value:
    """An expression with its type, its shape, and for floats the greatest size."""

    def __init__(self, text, ty, shape, size=None):
        self.text, self.ty, self.shape = text, ty, tuple(shape)
        self.size = size if is_float(ty) else size_of(ty)


class Writer:
    def __init__(self, seed):
        self.r = random.Random(seed)
        r = self.r
        self.lines, self.depth, self.helpers, self.names = [], 1, [], 0
        self.parameters, self.signature, self.arguments, self.constants = [], [], [], {}
        self.is_flat = r.random() < 0.5
        if self.is_flat:
            self.shape = (r.choice([16, 32, 64, 128]),)
        else:
            self.shape = r.choice([(4, 8), (8, 16), (16, 16), (16, 16), (16, 32), (2, 32), (32, 4)])
        self.count = 1
        for extent in self.shape:
            self.count *= extent
        self.programs = r.choice([1, 1, 1, 2, 3])
        self.elements = self.count * self.programs
        self.values, self.scalars = [], []
        self.zeros_are_open = False
        # Whether buffers of floats have infinities and NaNs.
        self.is_wild = r.random() < 0.2

    # Text.

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    def name(self, start="v"):
        self.names += 1
        return f"{start}{self.names}"

    def parameter(self, name, entry, argument=None):
        self.parameters.append(name)
        self.signature.append(entry)
        if argument is not None:
            self.arguments.append(f"{name}={argument}")

    def assign(self, value, start="v"):
        name = self.name(start)
        self.line(f"{name} = {value.text}")
        named = Value(name, value.ty, value.shape, value.size)
        (self.values if value.shape else self.scalars).append(named)
        return named

    # Arguments.

    def buffer(self, ty, count):
        """An argument with random numbers; all of them are numbers of each type of floats."""
        name = self.name("x")
        seed = self.r.randrange(1, 1000)
        if ty == "i1":
            fill = f"uniform({seed},0,1)"
        elif is_float(ty) or ty == "bf16":
            fill = f"normal({seed}) special" if self.is_wild else f"uniform({seed},-4,4)"
        else:
            low, high = (0, (1 << bits_of(ty)) - 1) if ty[0] == "u" else (-(1 << (bits_of(ty) - 1)), (1 << (bits_of(ty) - 1)) - 1)
            high = min(high, (1 << 63) - 1)
            if self.r.random() < 0.4:
                low, high = max(low, -9), 9
            fill = f"uniform({seed},{low},{high})"
        self.parameter(name, "*" + ty, f"{HELD[ty]}[{count}] {fill}")
        return name

    def number(self):
        """A scalar argument."""
        r = self.r
        name = self.name("n")
        ty = r.choice(["i32", "i32", "i32", "i64", "u32", "u8", "i16", "fp32"])
        value = r.choice([0.5, -1.25, 3.0, 0.1]) if ty == "fp32" else r.randrange(0 if ty[0] == "u" else -9, 20)
        if ty == "i32" and r.random() < 0.5:
            value = r.randrange(1, 9)
        self.parameter(name, ty, str(value))
        self.scalars.append(Value(name, ty, (), 4.0 if ty == "fp32" else None))

    # Expressions.

    def constant(self, ty):
        """A number without a type of its own, and its size."""
        r = self.r
        if is_float(ty):
            number = r.choice([0.5, 1.0, -2.0, 0.25, 3, -1, 1.5, 0.1])
            return str(number), abs(number)
        if ty == "i1":
            return r.choice(["True", "False"]), 1
        number = r.randrange(0 if ty[0] == "u" else -8, 16)
        return (f"({number})" if number < 0 else str(number)), abs(number)

    def atom(self, shaped=False):
        r = self.r
        pool = self.values if shaped or r.random() < 0.85 or not self.scalars else self.scalars
        if pool is self.values:
            # Later ones are more often what nobody has used.
            index = max(r.randrange(len(pool)), r.randrange(len(pool)))
            return pool[index]
        return r.choice(pool)

    def leave_zeros_open(self, ty):
        """From here on there are floats that may be 0.0 or -0.0: minima, maxima and sorts of both, and Triton's negation of 0.0."""
        self.zeros_are_open |= is_float(ty)

    def settled(self, value):
        """The text of a value whose zeros have one sign, if they may have had either."""
        return f"({value.text} + 0.0)" if is_float(value.ty) and self.zeros_are_open else value.text

    def expression(self, depth):
        r = self.r
        if depth == 0 or r.random() < 0.15:
            return self.atom()
        kind = r.choices(["arith", "divide", "bits", "shift", "compare", "where", "extreme", "unary", "cast", "math", "helper"],
                         [10, 4, 4, 3, 4, 4, 3, 3, 4, 3, 3])[0]
        made = getattr(self, "make_" + kind)(depth)
        return made or self.atom()

    def of(self, depth, wanted):
        """An expression of one of a list of types."""
        value = self.expression(depth)
        return value if value.ty in wanted else self.cast(value, self.r.choice(wanted))

    def shape_of(self, *values):
        extents = {}
        for value in values:
            for axis, extent in enumerate(reversed(value.shape)):
                extents[axis] = max(extents.get(axis, 1), extent)
        return tuple(extents[axis] for axis in sorted(extents, reverse=True))

    def bounded(self, value, size):
        """A value whose size is no greater."""
        if value.size <= size:
            return value
        if is_float(value.ty) and self.is_wild:
            # Of minima with NaNs Triton's interpreter thinks otherwise.
            name = self.name("w")
            self.line(f"{name} = {value.text}")
            text = f"tl.where({name} > {-float(size)}, tl.where({name} < {float(size)}, {name}, {float(size)}), {-float(size)})"
            text += f".to({LONG[value.ty]})" if value.ty == "fp16" else ""
            return Value(text, value.ty, value.shape, size)
        if is_float(value.ty):
            text = self.r.choice(["tl.minimum(tl.maximum({}, {}), {})", "tl.clamp({}, {}, {})"])
            text = text.format(value.text, -float(size), float(size))
            # The limits are of 32 bits, as numbers are that `tl.minimum` and `tl.clamp` are given.
            text += f".to({LONG[value.ty]})" if value.ty == "fp16" else ""
            return Value(text, value.ty, value.shape, size)
        return Value(f"({value.text} % {int(max(size, 1))})", value.ty, value.shape)

    def fits(self, value, ty, size):
        """A value of an integer or float that as one of that type is no larger than some size."""
        if value.size <= size:
            return value, value.size
        return self.bounded(value, size), size

    def cast(self, value, ty):
        r = self.r
        size = value.size
        if ty == value.ty:
            return value
        if is_float(ty):
            value, size = self.fits(value, ty, 1000.0 if ty == "fp16" else LARGEST[ty])
        elif is_float(value.ty):
            if ty == "i1":
                return Value(f"({value.text} > 0)", "i1", value.shape)
            limit = min(100.0, size_of(ty) - 1)
            value = self.bounded(value, limit)
            if ty[0] == "u":
                value = Value(f"tl.abs({value.text})", value.ty, value.shape, limit)
        elif ty == "i1":
            return Value(f"({value.text} != 0)", "i1", value.shape)
        text = f"{value.text}.to({LONG[ty]})" if r.random() < 0.8 else f"tl.cast({value.text}, {LONG[ty]})"
        return Value(text, ty, value.shape, size)

    def pair(self, depth):
        a, b = self.expression(depth - 1), self.expression(depth - 1)
        return (a, b) if self.r.random() < 0.5 else (b, a)

    def make_arith(self, depth):
        r = self.r
        a = self.expression(depth - 1)
        if a.ty == "i1":
            a = self.cast(a, r.choice(["i32", "i8", "fp32"]))
        op = r.choice(["+", "-", "*"])
        if r.random() < 0.3:
            text, size = self.constant(a.ty)
            ty, b = a.ty, None
        else:
            b = self.expression(depth - 1)
            ty = promoted(a.ty, b.ty)
            if is_float(ty):
                limit = 100.0 if ty == "fp16" else 1e9 if ty == "fp32" else 1e18
                (a, _), (b, size) = self.fits(a, ty, limit), self.fits(b, ty, limit)
            text = b.text
        if not is_float(ty):
            return Value(self.swap(a.text, op, text), ty, self.shape_of(a, b) if b else a.shape)
        a, _ = self.fits(a, ty, LARGEST[ty] / 16)
        most = a.size * size if op == "*" else a.size + size
        if most > LARGEST[ty] / 2:
            a, _ = self.fits(a, ty, 4.0)
            most = 4.0 * size if op == "*" else 4.0 + size
        return Value(self.swap(a.text, op, text), ty, self.shape_of(a, b) if b else a.shape, most)

    def swap(self, a, op, b):
        return f"({a} {op} {b})" if self.r.random() < 0.7 else f"({b} {op} {a})"

    def make_divide(self, depth):
        r = self.r
        a, b = self.pair(depth)
        if r.random() < 0.4:
            # True division; the divisor is half or more.
            if not is_float(b.ty):
                b = self.cast(b, r.choice(["fp32", "fp16"]))
            if a.ty == "i1":
                a = self.cast(a, "i32")
            ty = promoted(a.ty, b.ty, True)
            a, size = self.fits(a, ty, 1000.0)
            op = r.choice(["/", "/", "%"])
            b, _ = self.fits(b, ty, 1000.0)
            return Value(f"({a.text} {op} (tl.abs({b.text}) + 0.5))", ty, self.shape_of(a, b), size * 2)
        ints = SIGNED if r.random() < 0.6 else UNSIGNED
        a = a if a.ty in ints else self.cast(a, r.choice(ints))
        op = r.choice(["//", "%"])
        if r.random() < 0.3:
            number = r.choice([1, 2, 3, 5, 7, 8, 16, 100])
            if ints is SIGNED and r.random() < 0.4 and number > 1:
                number = -number
            return Value(f"({a.text} {op} {number})", a.ty, a.shape)
        b = b if b.ty in ints else self.cast(b, r.choice(ints))
        ty = promoted(a.ty, b.ty, True)
        if ty is None:
            return None
        divisor = f"(({b.text} & 7) + {r.choice([1, 2, 3])})"
        if ints is SIGNED and r.random() < 0.4:
            divisor = f"(-(({b.text} & 7) + 2))"
        elif ints is UNSIGNED and r.random() < 0.5:
            divisor = f"({b.text} | 1)"
        return Value(f"({a.text} {op} {divisor})", ty, self.shape_of(a, b))

    def make_bits(self, depth):
        r = self.r
        a = self.of(depth - 1, INTS + ["i1"])
        if a.ty == "i1":
            b = self.of(depth - 1, ["i1"])
            return Value(f"({a.text} {r.choice('&|^')} {b.text})", "i1", self.shape_of(a, b))
        if r.random() < 0.2:
            # NumPy has no -1 of unsigned types, which is what Triton's interpreter asks it for.
            text = f"({a.text} ^ {r.choice([1, 85, 127])})" if a.ty[0] == "u" else f"(~{a.text})"
            return Value(text, a.ty, a.shape)
        if r.random() < 0.1:
            a, b = self.of(depth - 1, ["u32"]), self.of(depth - 1, ["u32"])
            return Value(f"tl.umulhi({a.text}, {b.text})", "u32", self.shape_of(a, b))
        b = self.of(depth - 1, INTS)
        return Value(f"({a.text} {r.choice('&|^')} {b.text})", promoted(a.ty, b.ty), self.shape_of(a, b))

    def make_shift(self, depth):
        r = self.r
        a = self.of(depth - 1, INTS)
        op = r.choice(["<<", ">>"])
        if r.random() < 0.4:
            return Value(f"({a.text} {op} {r.randrange(bits_of(a.ty))})", a.ty, a.shape)
        b = self.of(depth - 1, INTS)
        ty = promoted(a.ty, b.ty)
        if op == ">>" and ty[0] != a.ty[0]:
            # What Triton's interpreter leaves is held with a sign, and a sum with what has none is a float.
            b, ty = self.cast(b, a.ty), a.ty
        return Value(f"({a.text} {op} ({b.text} & {r.choice([3, 7])}))", ty, self.shape_of(a, b))

    def make_compare(self, depth):
        r = self.r
        a, b = self.pair(depth)
        op = r.choice(["<", "<=", ">", ">=", "==", "!="])
        if r.random() < 0.3:
            text, _ = self.constant("i32" if a.ty == "i1" else a.ty)
            return Value(f"({a.text} {op} {text})", "i1", a.shape)
        if "fp16" in (a.ty, b.ty) and promoted(a.ty, b.ty) == "fp16":
            (a, _), (b, _) = self.fits(a, "fp16", 1000.0), self.fits(b, "fp16", 1000.0)
        return Value(f"({a.text} {op} {b.text})", "i1", self.shape_of(a, b))

    def make_where(self, depth):
        r = self.r
        c = self.of(depth - 1, ["i1"])
        a = self.expression(depth - 1)
        if r.random() < 0.3:
            text, size = self.constant(a.ty)
            if a.ty != "i1":
                return Value(f"tl.where({c.text}, {a.text}, {text})", a.ty, self.shape_of(a, c), max(a.size, size))
        b = self.expression(depth - 1)
        ty = promoted(a.ty, b.ty)
        if is_float(ty):
            limit = 1000.0 if ty == "fp16" else 1e18
            (a, _), (b, _) = self.fits(a, ty, limit), self.fits(b, ty, limit)
        return Value(f"tl.where({c.text}, {a.text}, {b.text})", ty, self.shape_of(a, b, c), max(a.size, b.size))

    def make_extreme(self, depth):
        r = self.r
        a, b = self.pair(depth)
        a = self.cast(a, "i32") if a.ty == "i1" else a
        b = self.cast(b, "i32") if b.ty == "i1" else b
        ty = promoted(a.ty, b.ty)
        if is_float(ty):
            self.leave_zeros_open(ty)
            limit = 1000.0 if ty == "fp16" else 1e18
            (a, _), (b, _) = self.fits(a, ty, limit), self.fits(b, ty, limit)
        return Value(f"tl.{r.choice(['minimum', 'maximum'])}({a.text}, {b.text})", ty, self.shape_of(a, b), max(a.size, b.size))

    def make_unary(self, depth):
        r = self.r
        a = self.expression(depth - 1)
        if a.ty == "i1":
            return Value(f"(~{a.text})", "i1", a.shape)
        if r.random() < 0.5:
            self.leave_zeros_open(a.ty)
            text = f"(-{a.text})"
        else:
            text = f"tl.abs({a.text})"
        return Value(text, a.ty, a.shape, a.size)

    def make_cast(self, depth):
        r = self.r
        a = self.expression(depth - 1)
        ty = r.choice(FLOATS + INTS + ["fp32", "i32", "i1"])
        if r.random() < 0.15 and a.ty != "i1" and not is_float(a.ty):
            # The same bits with another sign.
            ty = ("u" if a.ty[0] == "i" else "i") + a.ty[1:]
            return Value(f"{a.text}.to({LONG[ty]}, bitcast=True)", ty, a.shape)
        if r.random() < 0.1 and a.ty in FLOATS:
            ty = "i" + a.ty[2:]
            return Value(f"{self.settled(a)}.to({LONG[ty]}, bitcast=True)", ty, a.shape)
        return self.cast(a, ty)

    def make_math(self, depth):
        r = self.r
        a = self.of(depth - 1, ["fp32", "fp32", "fp32", "fp64"])
        name = r.choice(["exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "floor", "ceil", "sigmoid", "erf", "sqrt_rn", "div_rn"])
        if name in ("exp", "exp2"):
            # Of large numbers compiled code's `exp` is further off than ours says of itself: it is a power of two.
            a = self.bounded(a, 1.0 if name == "exp" else 8.0)
            return Value(f"tl.{name}({a.text})", a.ty, a.shape, 256.0)
        if name in ("log", "log2", "sqrt", "rsqrt", "sqrt_rn"):
            if name == "sqrt_rn" and a.ty != "fp32":
                return None
            return Value(f"tl.{name}(tl.abs({a.text}) + 0.125)", a.ty, a.shape, max(a.size, 1000.0))
        if name in ("sin", "cos"):
            a = self.bounded(a, 32.0)
            return Value(f"tl.{name}({a.text})", a.ty, a.shape, 1.0)
        if name == "sigmoid":
            a = self.bounded(a, 2.0)
            return Value(f"tl.{name}({a.text})", a.ty, a.shape, 1.0)
        if name == "erf":
            return Value(f"tl.{name}({a.text})", a.ty, a.shape, 1.0)
        if name == "div_rn":
            if a.ty != "fp32":
                return None
            b = self.bounded(self.of(depth - 1, ["fp32"]), 1000.0)
            a = self.bounded(a, 1e9)
            return Value(f"tl.div_rn({a.text}, tl.abs({b.text}) + 0.25)", "fp32", self.shape_of(a, b), a.size * 4)
        return Value(f"tl.{name}({a.text})", a.ty, a.shape, a.size + 1)

    def make_helper(self, depth):
        """A call of a function of the module, whose parameters have no types."""
        r = self.r
        a, b = self.expression(depth - 1), self.expression(depth - 1)
        a = self.cast(a, "i32") if a.ty == "i1" else a
        if is_float(a.ty):
            b = b if b.ty == a.ty else self.cast(b, a.ty)
            (a, _), (b, _) = self.fits(a, a.ty, 30.0), self.fits(b, b.ty, 30.0)
            body, most = r.choice([("a * b + 1", 1000.0), ("tl.where(a < b, a, b * k)", 120.0), ("a - b * 0.5 + k", 100.0)])
        else:
            b = b if b.ty == a.ty else self.cast(b, a.ty)
            body, most = r.choice([("(a ^ b) + k", None), ("tl.where(a < b, a - k, b)", None), ("(a & 15) * k + b // 3", None)])
        name = self.name("helper")
        k = r.randrange(1, 4)
        form = r.random()
        if form < 0.5:
            self.helpers.append(f"@triton.jit\ndef {name}(a, b, k: tl.constexpr = {k}):\n    return {body}\n")
            text = f"{name}({a.text}, {b.text})"
        elif form < 0.8:
            self.helpers.append(f"@triton.jit\ndef {name}(a, b, k: tl.constexpr):\n    if k > 2:\n        c = {body}\n    else:\n"
                                f"        c = a + b\n    return c\n")
            text = f"{name}({a.text}, b={b.text}, k={k})"
        else:
            self.helpers.append(f"@triton.jit\ndef {name}(a, b, k: tl.constexpr):\n    return {body}, b\n")
            which = r.randrange(2)
            text = f"{name}({a.text}, {b.text}, {k})[{which}]"
            return Value(text, a.ty, self.shape_of(b) if which else self.shape_of(a, b), most)
        return Value(text, a.ty, self.shape_of(a, b), most)
