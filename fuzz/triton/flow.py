"""Random kernels about names, scopes and control flow: few operators, deep nesting, names of every kind that are assigned anywhere."""
import random

NAMES = ["x", "y", "z", "u", "v", "i", "j", "a", "b", "sum", "max", "len", "id"]
SLOTS = 64


class Scope(dict):
    """What each name is: `i8`, `i32`, `i64`, `f32`, `bool`, `block`, `pair` (of i32), `constant`, `type`, or `?`."""


class Function:
    def __init__(self, name, text, parameters, result):
        self.name, self.text, self.parameters, self.result = name, text, parameters, result


class Flow:
    def __init__(self, seed, wild=0.06):
        self.r = random.Random(seed)
        self.seed, self.wild = seed, wild
        self.head, self.functions, self.hosts, self.globals, self.combines = [], [], [], [], []
        self.slot = 0
        tag = f"{seed}"
        self.is_module = self.r.random() < 0.4
        for k in range(self.r.randrange(2) + self.is_module):
            name = f"G{k}_{tag}"
            self.head.append(f"{name}: tl.constexpr = {self.r.randrange(-2, 5)}")
            self.globals.append(name)
        for k in range(self.r.choice([0, 0, 1])):
            self.hosts.append(self.host(f"c{k}_{tag}"))
            self.module()
        for k in range(self.r.choice([0, 0, 1])):
            self.combines.append(self.combine(f"f{k}_{tag}"))
        for k in range(self.r.randrange(3)):
            self.functions.append(self.helper(f"h{k}_{tag}", k))
            self.head.append(self.functions[-1].text)
            self.module()
            if self.is_module and self.r.random() < 0.3:
                # A name that stands for what is defined again.
                f, old = self.functions[-1], f"o{k}_{tag}"
                self.head.append(f"{old} = {f.name}\n")
                self.functions.remove(f)
                again = self.helper(f.name, k, f)
                self.functions.append(again)
                self.head.append(again.text)
                self.functions.append(Function(old, "", f.parameters, f.result))
        self.module()
        self.kernel(f"k{tag}")

    def module(self):
        """Statements of the module that define its names again."""
        r = self.r
        if not self.is_module:
            return
        for _ in range(r.randrange(4)):
            a, b = r.choice(self.globals), r.choice(self.globals)
            value = self.const({})
            self.head.append(r.choice([f"{a} += {value}", f"{a} -= {value}", f"{a} = {a} + {value}", f"{a}: tl.constexpr = {value}", f"{a}, {b} = {b}, {value}",
                                       f"{b} = {a} = {value}", f"[{a}, {b}] = {a}, {b}"]))

    # Texts.

    is_plain = False

    def begin(self, indent=1):
        self.lines, self.indent, self.depth = [], indent, 0
        self.returns = self.loops = self.repeats = self.counter = 0
        self.is_kernel = False

    def line(self, text):
        self.lines.append("    " * self.indent + text)

    def pick(self, scope, *kinds):
        found = [name for name, kind in scope.items() if kind in kinds]
        if self.r.random() < self.wild:
            found = list(scope) or found
        return self.r.choice(found) if found else None

    def const(self, scope, depth=1):
        """An integer at compile time."""
        r = self.r
        name = self.pick({n: k for n, k in scope.items() if k == "constant"}, "constant")
        choice = r.random()
        if choice < 0.5 and name:
            return name
        if choice < 0.6 and self.globals:
            return r.choice(self.globals)
        if choice < 0.75 and depth:
            if r.random() < 0.3:
                return f"({self.const(scope, depth - 1)} {r.choice(['//', '%'])} {r.choice(['2', '3', '-2'])})"
            return f"({self.const(scope, depth - 1)} {r.choice('+-*')} {self.const(scope, depth - 1)})"
        if choice < 0.85 and self.hosts and depth:
            return f"{r.choice(self.hosts)}({self.const(scope, 0)}, {self.const(scope, 0)})"
        if choice < 0.88 and depth:
            return f"({self.const(scope, 0)} if {self.static_test(scope)} else {self.const(scope, 0)})"
        return str(r.randrange(-3, 7))

    def static_test(self, scope):
        r = self.r
        name = self.pick(scope, "i32", "i64", "f32")
        choice = r.random()
        if choice < 0.15 and name and scope.get(name) in ("i32", "i64", "f32"):
            return f"{name}.dtype == tl.{r.choice(['int32', 'int64', 'float32'])}"
        if choice < 0.25:
            return r.choice(["True", "False"])
        text = f"{self.const(scope)} {r.choice(['<', '<=', '>', '>=', '==', '!='])} {self.const(scope)}"
        if choice < 0.4:
            text = f"{text} {r.choice(['and', 'or'])} {self.const(scope)} {r.choice(['<', '>'])} {self.const(scope)}"
        return f"not {text}" if choice > 0.9 and " and " not in text and " or " not in text else text

    def test(self, scope, depth=1):
        r = self.r
        choice = r.random()
        if choice < 0.12:
            return self.static_test(scope)
        name = self.pick(scope, "bool")
        if choice < 0.2 and name and scope.get(name) == "bool":
            return name
        if choice < 0.4 and depth:
            return f"({self.test(scope, depth - 1)}) {r.choice(['and', 'or'])} ({self.test(scope, depth - 1)})"
        if choice < 0.47 and depth:
            return f"not ({self.test(scope, depth - 1)})"
        if choice < 0.52 and depth:
            name = r.choice(NAMES[:8])
            value, kind = self.value(scope, r.choice(["i32", "i32", "i64"]), 0)
            scope[name] = kind
            return f"({name} := {value}) {r.choice(['<', '>'])} {r.randrange(-2, 6)}"
        left, _ = self.value(scope, r.choice(["i32", "i32", "i64", "f32"]), 0)
        right = str(r.randrange(-3, 8)) if r.random() < 0.6 else self.value(scope, "i32", 0)[0]
        return f"{left} {r.choice(['<', '<=', '>', '>=', '==', '!='])} {right}"

    def value(self, scope, kind, depth=2):
        """The text of a value of a kind, and the kind."""
        r = self.r
        choice = r.random()
        if kind == "bool":
            left, _ = self.value(scope, "i32", 0)
            right, _ = self.value(scope, "i32", 0)
            return f"{left} {r.choice(['<', '>', '==', '!='])} {right}", kind
        if kind in ("P", "Q"):
            name = self.pick(scope, kind)
            if choice < 0.3 and name:
                return name, scope[name]
            first, second = (self.value(scope, "i32", 1)[0] for _ in range(2))
            order = r.choice([("x", "y"), ("y", "x"), None])
            return (f"{kind}({order[0]}={first}, {order[1]}={second})" if order else f"{kind}({first}, {second})"), kind
        if kind == "pair":
            name = self.pick(scope, "pair")
            if choice < 0.3 and name:
                return name, scope[name]
            call = self.call(scope, "pair") if choice < 0.5 else None
            if call:
                return call, kind
            return f"({self.value(scope, 'i32', 1)[0]}, {self.value(scope, 'i32', 1)[0]})", kind
        name = self.pick(scope, kind)
        if depth == 0 or choice < 0.2:
            if name and r.random() < 0.8:
                return name, scope[name]
            if kind == "i32":
                return str(r.randrange(-5, 10) if r.random() < 0.93 else r.choice([2147483647, -2147483648, 65535, 127, 40000])), kind
            if kind == "f32":
                return r.choice(["0.5", "1.5", "-2.0", "3.0"]), kind
            if kind == "block":
                return "tl.arange(0, 4)", kind
            return f"tl.cast({self.value(scope, 'i32', 0)[0]}, tl.{dict(i8='int8', i64='int64')[kind]})", kind
        if choice < 0.65:
            other = r.choice([kind, kind, "i32"] if kind != "i8" else [kind])
            left, right = self.value(scope, kind, depth - 1)[0], self.value(scope, other, depth - 1)[0]
            if r.random() < 0.3:
                left, right = right, left
            op = r.choice(["+", "-", "*", "^", "&"] if kind != "f32" else ["+", "-", "*"])
            if kind in ("i32", "i64", "i8", "block") and r.random() < 0.15:
                # A negative number is divided otherwise at compile time, where a loop may have made it one of run time.
                op, left, right = r.choice(["//", "%"]), f"({left} & 127)", r.choice(["2", "3", "5", "7"])
            text = f"({left} {op} {right})"
            return (f"({text} & 255)" if kind in ("i32", "block") and op == "*" else text), kind
        if choice < 0.72:
            return f"({self.value(scope, kind, depth - 1)[0]} if {self.test(dict(scope), 0)} else {self.value(scope, kind, depth - 1)[0]})", kind
        if choice < 0.78:
            return f"tl.where({self.test(scope, 0)}, {self.value(scope, kind, depth - 1)[0]}, {self.value(scope, kind, depth - 1)[0]})", kind
        if kind == "i32" and choice < 0.88:
            call = self.call(scope, "i32")
            if call:
                return call, kind
        if kind == "i32" and choice < 0.91:
            return f"tl.sum({self.value(scope, 'block', 0)[0]}, 0)", kind
        if kind == "i32" and choice < 0.95:
            pair = self.pick(scope, "pair")
            if pair and scope[pair] == "pair":
                return f"{pair}[{r.choice(['0', '1', '-1'])}]", kind
        if kind == "i32" and choice < 0.97:
            return self.const(scope), "i32"
        found = self.pick({n: k for n, k in scope.items() if k in ("P", "Q")}, "P", "Q")
        if kind == "i32" and found and r.random() < 0.7:
            return r.choice([f"{found}.x", f"{found}.y", f"{found}[0]", f"{found}[1]"]), kind
        if kind == "i32" and self.combines and r.random() < 0.6:
            f = r.choice(self.combines)
            a, b = f"tl.cast({self.value(scope, 'i32', 0)[0]}, tl.int32)", f"tl.cast({self.value(scope, 'i32', 0)[0]}, tl.int32)"
            return r.choice([f"tl.reduce(tl.join({a}, {b}), 0, {f})", f"{f}({a}, {b})"]), kind
        if kind == "block" and self.combines and r.random() < 0.4:
            f = r.choice(self.combines)
            a, b = self.value(scope, "block", 0)[0], f"tl.arange(0, 4)"
            return f"tl.map_elementwise({f}, {a}, {b})", kind
        if kind == "i64":
            return r.choice([f"tl.cast({self.value(scope, 'i32', 0)[0]}, tl.int64)", f"(tl.cast({self.value(scope, 'i32', 0)[0]}, tl.int64) * 4294967311)"]), kind
        if kind == "f32":
            return f"tl.cast({self.value(scope, 'i32', 0)[0]}, tl.float32)", kind
        if kind == "block":
            return r.choice([f"tl.full((4,), {self.value(scope, 'i32', 0)[0]}, tl.int32)", f"(tl.arange(0, 4) + {self.value(scope, 'i32', 0)[0]})"]), kind
        return self.value(scope, kind, 0)

    def call(self, scope, result):
        r = self.r
        found = [f for f in self.functions if f.result == result]
        if not found:
            return None
        f = r.choice(found)
        given = []
        named = False
        for name, kind, default in f.parameters:
            if default and r.random() < 0.5:
                named = True
                continue
            value = self.const(scope, 0) if kind == "constant" else self.value(scope, kind, 0)[0]
            named = named or r.random() < 0.2
            given.append(f"{name}={value}" if named else value)
        return f"{f.name}({', '.join(given)})"

    # Statements.

    def statements(self, scope, count):
        start = len(self.lines)
        for _ in range(count):
            self.statement(scope)
        if len(self.lines) == start:
            self.line("pass")

    def statement(self, scope):
        r = self.r
        kinds = [self.assign, self.augment, self.swap, self.record, self.branch, self.loop, self.loop_while, self.unrolled, self.static_branch]
        weights = [8, 4, 2, 2, 6, 5, 1.5, 2, 1]
        if self.is_plain:
            weights[5:7] = [0, 0]
        if self.depth >= 4:
            weights[4:] = [0] * 5
        r.choices(kinds, weights)[0](scope)

    def fresh_or_old(self, scope, kind=None):
        r = self.r
        old = [n for n, k in scope.items() if k not in ("constant",) and not n.startswith("w") and (kind is None or k == kind)]
        if old and r.random() < 0.7:
            return r.choice(old)
        return r.choice([n for n in NAMES if kind is None or scope.get(n, kind) == kind or r.random() < self.wild] or NAMES)

    def assign(self, scope):
        r = self.r
        choice = r.random()
        if choice < 0.06:
            name = f"D{self.counter}_"
            self.counter += 1
            self.line(f"{name}: tl.constexpr = {self.const(scope)}")
            scope[name] = "constant"
            return
        kind = "i32" if self.is_plain else r.choices(["i32", "i64", "f32", "bool", "block", "pair", "i8", "P", "Q"], [10, 3, 3, 1, 3, 2, 1, 1, 1])[0]
        # A name keeps its kind, mostly: what a loop carries must.
        name = self.fresh_or_old(scope, None if self.depth == 0 or r.random() < self.wild else kind)
        if name in scope and scope[name] in ("i32", "i64", "f32", "bool", "block", "pair", "i8", "P", "Q") and self.depth and r.random() > self.wild:
            kind = scope[name]
        text, found = self.value(scope, kind)
        if choice < 0.12:
            other = self.fresh_or_old(scope, kind)
            text = f"({other} := {text})" if r.random() < 0.5 else text
            if ":=" in text:
                scope[other] = found
            else:
                name, text = f"{name} = {other}", text
                scope[other] = found
                self.line(f"{name} = {text}")
                scope[name.split(" = ")[0]] = found
                return
        self.line(f"{name} = {text}")
        scope[name] = found

    def augment(self, scope):
        r = self.r
        name = self.pick(scope, "i32", "i64", "f32", "block")
        if not name or name.startswith("w"):
            return self.assign(scope)
        kind = scope[name]
        value = self.value(scope, kind if kind in ("i32", "i64", "f32", "block") else "i32", 1)[0]
        if kind == "i32" and r.random() < 0.4:
            self.line(f"{name} = ({name} * {r.choice([2, 3, 5])} + {value}) & 1023")
        else:
            self.line(f"{name} {r.choice(['+=', '-='])} {value}")
        return None

    def swap(self, scope):
        r = self.r
        kind = r.choice(["i32", "i32", "block", "i64", "f32"])
        found = [n for n, k in scope.items() if k == kind and not n.startswith("w")]
        if r.random() < 0.3:
            # A pair taken apart.
            a, b = self.fresh_or_old(scope, "i32"), self.fresh_or_old(scope, "i32")
            text, what = self.value(scope, "pair")
            if a != b and what == "pair":
                self.line(f"{a}, {b} = {text}")
                scope[a] = scope[b] = "i32"
            return
        if len(found) < 2:
            return self.assign(scope)
        a, b = r.sample(found, 2)
        if len(found) > 2 and r.random() < 0.4:
            c = r.choice([n for n in found if n not in (a, b)])
            form = r.choice(["{a}, {b}, {c} = {b}, {c}, {a}", "{a}, ({b}, {c}) = {c}, ({a}, {b})", "[{a}, {b}, {c}] = {c}, {a} + 1, {b}"])
            self.line(form.format(a=a, b=b, c=c))
        else:
            self.line(r.choice([f"{a}, {b} = {b}, {a}", f"{a}, {b} = {b}, {a} + {b}", f"({a}, {b}) = ({b}, {a})"]))
        return None

    def record(self, scope):
        # Stores of one address that follow each other are a race.
        if not self.is_kernel or self.repeats:
            return self.assign(scope)
        name = self.pick(scope, "i32", "i64", "f32")
        if name and self.slot < SLOTS - 16:
            self.line(f"tl.store(out + {self.slot}, {name})")
            self.slot += 1
        return None

    def joined(self, scope, *ways):
        """What is known where several ways meet."""
        names = set(scope).union(*ways)
        for name in names:
            kinds = {way.get(name, "none") for way in ways}
            if len(kinds) == 1:
                scope[name] = kinds.pop()
            elif self.r.random() < self.wild:
                scope[name] = (kinds - {"none"}).pop()
            else:
                scope.pop(name, None)

    def body(self, scope, count=None):
        """A block of statements in a scope of its own, which is given back."""
        inner = Scope(scope)
        self.indent += 1
        self.depth += 1
        self.statements(inner, count or self.r.choice([1, 1, 2, 2, 3]))
        self.depth -= 1
        self.indent -= 1
        return inner

    def leave(self, scope):
        """A return, where it may stand."""
        if self.loops or self.returns == 0:
            return False
        self.indent += 1
        if self.is_kernel:
            self.record(scope)
            self.line("return")
        else:
            self.line(f"return {self.result_of(scope)}")
        self.indent -= 1
        return True

    def branch(self, scope, static=False):
        r = self.r
        ways, word = [], "if"
        for _ in range(r.choice([1, 1, 1, 2, 3])):
            self.line(f"{word} {self.static_test(scope) if static else self.test(scope if word == 'if' else Scope(scope))}:")
            inner = self.body(scope)
            if not (r.random() < 0.15 and self.leave(inner)):
                ways.append(inner)
            word = "elif"
        if r.random() < 0.6:
            self.line("else:")
            inner = self.body(scope)
            if not (r.random() < 0.1 and self.leave(inner)):
                ways.append(inner)
        else:
            ways.append(Scope(scope))
        if ways:
            self.joined(scope, *ways)

    def static_branch(self, scope):
        self.branch(scope, True)

    def bound(self, scope):
        r = self.r
        choice = r.random()
        if choice < 0.45:
            return str(r.randrange(-1, 6))
        name = self.pick(scope, "i32", "i32", "i64")
        if name and choice < 0.9 and scope[name] in ("i32", "i64"):
            return f"({name} & {r.choice([3, 7])})"
        return self.const(scope)

    def bounds(self, scope):
        r = self.r
        form = r.random()
        if form < 0.5:
            return self.bound(scope)
        if form < 0.75:
            return f"{self.bound(scope)}, {self.bound(scope)}"
        step = r.choice(["2", "3", "-1", "-2", "100", "1", "-3", "-7", "1000000", "(n & 3) + 1", "5000000000"])
        return f"{self.bound(scope)}, {self.bound(scope)}, {step}"

    def loop(self, scope):
        r = self.r
        counter = self.fresh_or_old(scope, "i32") if r.random() < 0.6 else r.choice(["i", "j", "x", "n", "m", "_"])
        if self.loops and r.random() > self.wild:
            # The counter of an inner loop is lost where the outer one begins again.
            counter = f"k{self.loops}"
        word = r.choice(["range", "tl.range"])
        bounds = self.bounds(scope)
        self.line(f"for {counter} in {word}({bounds}):")
        before = Scope(scope)
        inner = Scope(scope)
        is_wide = "i64" in [scope.get(w.strip("( ")) for w in bounds.replace("&", " ").replace(",", " ").split()] or "5000000000" in bounds
        inner[counter] = "i64" if is_wide else "i32"
        self.loops += 1
        self.repeats += 1
        after = self.body(inner)
        self.repeats -= 1
        self.loops -= 1
        self.joined(scope, before, after)
        if after.get(counter) == inner[counter] and not self.loops:
            scope[counter] = inner[counter]
        else:
            scope.pop(counter, None)

    def loop_while(self, scope):
        r = self.r
        self.counter += 1
        w = f"w{self.counter}"
        self.line(f"{w} = {r.randrange(-1, 3)}")
        scope[w] = "i32"
        extra = f" {r.choice(['and', 'or'])} " if r.random() < 0.4 else ""
        if extra == " and ":
            test = f"({w} < {self.bound(scope)}) and ({self.test(Scope(scope), 0)})"
        else:
            test = f"{w} < {self.bound(scope)}"
        self.line(f"while {test}:")
        before = Scope(scope)
        self.loops += 1
        self.repeats += 1
        inner = Scope(scope)
        first = r.random() < 0.3
        if first:
            self.indent += 1
            self.line(f"{w} += 1")
            self.indent -= 1
        after = self.body(inner)
        if not first:
            self.indent += 1
            self.line(f"{w} += 1")
            self.indent -= 1
        self.loops -= 1
        self.repeats -= 1
        self.joined(scope, before, after)

    def unrolled(self, scope):
        r = self.r
        counter = r.choice(["i", "j", "x", "s", "s", "e"])
        if r.random() < 0.2:
            over = f"({self.value(scope, 'i32', 0)[0]}, {self.value(scope, 'i32', 0)[0]})"
        else:
            over = f"tl.static_range({r.choice([self.const(scope), '3', '2', '1, 4', '4, 0, -2', '0'])})"
        self.line(f"for {counter} in {over}:")
        before, inner = Scope(scope), Scope(scope)
        inner[counter] = "constant" if "static" in over else "i32"
        self.repeats += 1
        after = self.body(inner)
        if not self.loops and r.random() < 0.2:
            self.indent += 1
            self.line(f"if {self.test(Scope(after), 0)}:")
            if not self.leave(after):
                self.indent += 1
                self.statement(after)
                self.line("pass")
                self.indent -= 1
            self.indent -= 1
        self.repeats -= 1
        self.joined(scope, before, after)

    # Functions.

    def result_of(self, scope):
        if self.result == "pair":
            return f"tl.cast({self.value(scope, 'i32', 1)[0]}, tl.int32), tl.cast({self.value(scope, 'i32', 1)[0]}, tl.int32)"
        return f"tl.cast({self.value(scope, 'i32', 1)[0]}, tl.int32)"

    def helper(self, name, number, like=None):
        r = self.r
        self.begin()
        self.returns = 1
        self.result = like.result if like else r.choice(["i32", "i32", "pair"])
        parameters = [("p", "i32", None), ("q", r.choice(["i32", "i64", "block"]), None)]
        if r.random() < 0.5:
            parameters.append(("E", "constant", r.choice([None, "2", "-1", *self.globals])))
        if r.random() < 0.4:
            parameters.append(("x", "i32", "3"))
        if any(d for _, _, d in parameters[:3]):
            parameters = [(n, k, d or ("1" if i > 2 else None)) for i, (n, k, d) in enumerate(parameters)]
        parameters = like.parameters if like else parameters
        scope = Scope({n: k for n, k, _ in parameters})
        recursive = like is None and r.random() < 0.15
        texts = [n + (": tl.constexpr" if k == "constant" else "") + (f"={d}" if d else "") for n, k, d in parameters]
        if recursive:
            texts.append("R: tl.constexpr = 2")
            self.line("if R <= 0:")
            self.line(f"    return {self.result_of(scope)}")
        self.statements(scope, r.randrange(1, 4))
        if recursive:
            values = [f"{n}={self.const(scope, 0) if k == 'constant' else self.value(scope, k, 1)[0]}" for n, k, _ in parameters]
            self.line(f"return {name}({', '.join(values)}, R=R - 1)")
        else:
            self.line(f"return {self.result_of(scope)}")
        text = f"@triton.jit\ndef {name}({', '.join(texts)}):\n" + "\n".join(self.lines) + "\n"
        return Function(name, text, parameters, self.result)

    def combine(self, name):
        """A function of two numbers, for reductions and maps."""
        self.begin()
        self.returns, self.result = 1, "i32"
        scope = Scope(a="i32", b="i32")
        combines, self.combines = self.combines, []
        self.depth = 1
        self.is_plain = True
        self.statements(scope, self.r.randrange(1, 4))
        self.line(f"return {self.result_of(scope)}")
        self.is_plain = False
        self.combines = combines
        self.head.append(f"\n@triton.jit\ndef {name}(a, b):\n" + "\n".join(self.lines) + "\n")
        return name

    def host(self, name):
        """A function of Python, which runs at compile time."""
        r = self.r
        lines, state = [], {"depth": 0, "count": 0}

        def number():
            return r.choice(["n", "m", "x", "y", "n", "m", str(r.randrange(-4, 9))])

        def expression():
            form = r.randrange(7)
            a, b = number(), number()
            if form == 0:
                return f"({a} if {a} {r.choice(['<', '>', '=='])} {b} else {number()})"
            if form == 1:
                return f"({a} {r.choice(['//', '%'])} {r.choice([2, 3, -2, 5, -3])})"
            if form == 2:
                return f"({a} {r.choice(['and', 'or'])} {b})"
            if form == 3:
                return f"(({a}) * {b} % 97)"
            if form == 4:
                return r.choice([f"max({a}, {b})", f"min({a}, {b})", f"sum([{a}, {b}, 1])", f"abs({a})", f"len([{a}, {b}])", f"int({a} < {b} < {number()})",
                                 f"sum([t for t in range({r.randrange(4)}) if t != {a}])"])
            return f"{a} {r.choice('+-')} {b}"

        def block(indent, loop):
            pad = "    " * indent
            for _ in range(r.choice([1, 2, 2, 3])):
                form = r.random()
                if form < 0.4 or state["depth"] >= 3:
                    lines.append(f"{pad}{r.choice('xynm')} {r.choice(['=', '=', '+=', '-='])} {expression()}")
                elif form < 0.5:
                    lines.append(f"{pad}x, y = {number()}, {expression()}")
                elif form < 0.75:
                    state["depth"] += 1
                    lines.append(f"{pad}if {r.choice(['', 'not '])}{number()} {r.choice(['<', '>', '==', '<='])} {number()}:")
                    block(indent + 1, loop)
                    if r.random() < 0.5:
                        lines.append(f"{pad}elif {number()} {r.choice(['<', '>'])} {number()} {r.choice(['and', 'or'])} {number()}:")
                        block(indent + 1, loop)
                    if r.random() < 0.5:
                        lines.append(f"{pad}else:")
                        block(indent + 1, loop)
                    state["depth"] -= 1
                elif form < 0.87:
                    state["depth"] += 1
                    lines.append(f"{pad}for {r.choice(['k', 'y', 'x'])} in range({r.choice(['3', '5', '0', '6, 0, -2', '1, 4'])}):")
                    block(indent + 1, True)
                    state["depth"] -= 1
                elif form < 0.95:
                    state["depth"] += 1
                    state["count"] += 1
                    t = f"t{state['count']}"
                    lines.append(f"{pad}{t} = 0")
                    lines.append(f"{pad}while {t} < {r.randrange(5)}:")
                    lines.append(f"{pad}    {t} += 1")
                    block(indent + 1, True)
                    state["depth"] -= 1
                elif loop and form < 0.985:
                    lines.append(f"{pad}if {number()} > {number()}:\n{pad}    {r.choice(['break', 'continue'])}")
                else:
                    lines.append(f"{pad}if {number()} > {number()}:\n{pad}    return {expression()}")

        block(1, False)
        block(1, False)
        lines.append(f"    return (n + 2 * m + 3 * x + 5 * y) % {r.choice([7, 5])}")
        self.head.append(f"\n@triton.constexpr_function\ndef {name}(n, m=2):\n    x = {r.randrange(3)}\n    y = n\n" + "\n".join(lines) + "\n")
        return name

    def kernel(self, name):
        r = self.r
        self.begin()
        self.is_kernel = True
        self.returns = r.random() < 0.3
        self.name = name
        scope = Scope(a="i32", b="i32", n="i32", C="constant")
        for start in range(r.randrange(1, 4)):
            self.assign(scope)
        self.statements(scope, r.randrange(3, 8))
        for found, kind in sorted(scope.items()):
            if self.slot >= SLOTS - 8 or kind in ("pair", "block", "bool", "P", "Q"):
                continue
            self.line(f"tl.store(out + {self.slot}, {found})")
            self.slot += 1
            if kind in ("i32", "i64", "f32", "i8") and self.slot < SLOTS - 8 and r.random() < 0.3:
                self.line(f"tl.store(out + {self.slot}, {found}.dtype.primitive_bitwidth)")
                self.slot += 1
        for found, kind in sorted(scope.items()):
            if self.slot >= SLOTS - 8:
                break
            if kind in ("P", "Q"):
                self.line(f"tl.store(out + {self.slot}, {found}.x * 1000 + {found}.y)")
                self.slot += 1
            elif kind == "pair":
                self.line(f"tl.store(out + {self.slot}, {found}[0] * 1000 + {found}[1])")
                self.slot += 1
            elif kind == "block":
                self.line(f"tl.store(out + {self.slot} + tl.arange(0, 4), {found})")
                self.slot += 4
            elif kind == "bool":
                self.line(f"tl.store(out + {self.slot}, tl.where({found}, 1, 0))")
                self.slot += 1
        self.text = "\n".join(self.head) + "\n\n" + \
            f"\n\n@triton.jit\ndef {name}(out, a, b, n, C: tl.constexpr):\n" + "\n".join(self.lines) + "\n"

    def launches(self):
        r = random.Random(self.seed + 1)
        return [dict(a=(r.randrange(-4, 9), False), b=(r.randrange(-4, 9), False), n=(r.randrange(-1, 8), False), C=(r.randrange(-1, 5), True))
                for _ in range(2)]


PREAMBLE = """from typing import NamedTuple
import triton
import triton.language as tl


class P(NamedTuple):
    x: tl.tensor
    y: tl.tensor


class Q(NamedTuple):
    y: tl.tensor
    x: tl.tensor


"""
