"""What a kernel without pointers' arithmetic leaves, by Python alone: the text is executed with numbers that have the types
of the language, so that names, scopes and control flow are Python's own.

Where compiled code is defined otherwise than Python, the text is changed first: what a name is given, or a function returns, has
a type; the counter of a loop that never runs is the loop's start if its name was nothing before, and
what it was before otherwise, in the loop's type if that is wider; both sides of `.. if .. else ..` at run time have types.
"""
import ast
import collections
import math

import numpy as np

KINDS = {"int1": np.bool_, "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64, "float32": np.float32}
BITS = {"int1": 1, "int8": 8, "int16": 16, "int32": 32, "int64": 64, "float32": 32}


class Open(Exception):
    """The text does something for which nothing is defined here."""


class DType:
    def __init__(self, name):
        self.name = name
        self.primitive_bitwidth = BITS[name]

    def is_floating(self):
        return self.name == "float32"

    def is_int(self):
        return self.name != "float32"

    def __call__(self, value):
        return cast(value, self)

    def __repr__(self):
        return f"triton.language.{self.name}"


TYPES = {name: DType(name) for name in KINDS}
INT32, INT64, FLOAT, BOOL = TYPES["int32"], TYPES["int64"], TYPES["float32"], TYPES["int1"]


def promoted(a, b):
    if a is b:
        return a
    if FLOAT in (a, b):
        return FLOAT
    return a if a.primitive_bitwidth > b.primitive_bitwidth else b


def type_of(value):
    if isinstance(value, Number):
        return value.dtype
    if isinstance(value, (bool, np.bool_)):
        return BOOL
    if isinstance(value, int):
        if -1 << 31 <= value < 1 << 31:
            return INT32
        if -1 << 63 <= value < 1 << 63 and not 1 << 31 <= value < 1 << 32:
            return INT64
        raise Open("a number without a sign")
    if isinstance(value, float):
        return FLOAT
    raise Open(f"{type(value).__name__} as a number")


def raw(value):
    return value.value if isinstance(value, Number) else value


def converted(value, dtype):
    value, kind = np.asarray(raw(value)), KINDS[dtype.name]
    if dtype is BOOL:
        return value != 0
    with np.errstate(all="ignore"):
        if value.dtype.kind == "f" and dtype is not FLOAT:
            if not np.all(np.abs(value) < 2.0 ** 31):
                raise Open("a conversion out of bounds")
            return np.trunc(value).astype(np.int64).astype(kind)
        if value.dtype == object:
            raise Open("a large number")
        return value.astype(kind)


class Number:
    """A scalar or a block of a type."""

    def __init__(self, value, dtype):
        self.value, self.dtype = np.asarray(value).astype(KINDS[dtype.name]), dtype
        if dtype is FLOAT and not np.all(np.abs(self.value) < 2.0 ** 40):
            raise Open("a large float")

    @property
    def shape(self):
        return self.value.shape

    def __bool__(self):
        if self.value.ndim:
            raise Open("a block as a condition")
        return bool(self.value)

    def to(self, dtype):
        return cast(self, dtype)

    def __hash__(self):
        raise Open("hashed")

    def __iter__(self):
        raise Open("iterated")

    def __index__(self):
        raise Open("a number of run time as an index")


def cast(value, dtype):
    return Number(converted(value, dtype), dtype)


def together(a, b, weak=True):
    """The type that two operands are computed in."""
    ta, tb = type_of(a), type_of(b)
    if weak:
        def rank(t):
            return 0 if t is BOOL else 2 if t is FLOAT else 1

        for x, y, tx, ty in ((a, b, ta, tb), (b, a, tb, ta)):
            if isinstance(x, Number) and not isinstance(y, Number) and rank(ty) <= rank(tx):
                bits = tx.primitive_bitwidth
                if tx not in (FLOAT, BOOL) and not -1 << bits - 1 <= int(y) < 1 << bits - 1:
                    raise Open("a number out of bounds")
                return tx
    return promoted(ta, tb)


def binary(name, function, weak=True, compares=False):
    def method(a, b):
        if not isinstance(b, (Number, bool, int, float, np.bool_)):
            return NotImplemented
        dtype = together(a, b, weak)
        if dtype is BOOL and name in ("add", "sub", "mul"):
            raise Open("arithmetic of truth values")
        if name in ("and", "or", "xor") and dtype is FLOAT:
            raise Open("bits of floats")
        with np.errstate(all="ignore"):
            result = function(converted(a, dtype), converted(b, dtype))
        if dtype is FLOAT and not compares:
            exact = function(np.asarray(raw(a), np.float64), np.asarray(raw(b), np.float64))
            if not np.array_equal(exact, result.astype(np.float64)):
                raise Open("a rounded float")
        return Number(result, BOOL if compares else dtype)
    return method


for _name, _function in {"add": np.add, "sub": np.subtract, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or,
                         "xor": np.bitwise_xor}.items():
    _method = binary(_name, _function)
    setattr(Number, f"__{_name}__", _method)
    setattr(Number, f"__r{_name}__", (lambda m, f: lambda a, b: binary(m, lambda x, y: f(y, x))(a, b))(_name, _function))
for _name, _function in {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
                         "ne": np.not_equal}.items():
    setattr(Number, f"__{_name}__", binary(_name, _function, weak=False, compares=True))


def divided(rest):
    """`//` and `%` by a number above zero: at run time towards zero, of constants downwards."""
    def method(a, b):
        if isinstance(b, Number) or not b > 0 or a.dtype is FLOAT or a.dtype is BOOL:
            raise Open("a quotient")
        quotient = np.abs(a.value.astype(object)) // b * np.sign(a.value.astype(object))
        return Number(a.value - quotient * b if rest else quotient, a.dtype)
    return method


Number.__floordiv__, Number.__mod__ = divided(False), divided(True)
Number.__rfloordiv__ = Number.__rmod__ = lambda a, b: _open("a quotient")
Number.__neg__ = lambda a: Number(converted(0, a.dtype) - a.value, a.dtype) if a.dtype is not BOOL else _open("-bool")
Number.__invert__ = lambda a: Number(~a.value, a.dtype) if a.dtype is not FLOAT else _open("~float")


def _open(why):
    raise Open(why)


def settled(value):
    """What a name is given has a type."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(settled, value))
    if isinstance(value, (tuple, list)):
        return tuple(map(settled, value))
    if isinstance(value, (bool, int, float, np.bool_)):
        return Number(value, type_of(value))
    return value


def constant(value):
    if isinstance(value, Number):
        return value.value.item()
    return value


class Counted:
    """The numbers of a loop at run time."""

    def __init__(self, *bounds, **_):
        low, high, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        dtype = INT32
        for bound in (low, high, step):
            if type_of(bound) in (FLOAT, BOOL) or np.ndim(raw(bound)):
                raise Open("bounds that are no integers")
            dtype = promoted(dtype, type_of(bound))
        self.dtype = dtype
        low, high, step = (int(raw(bound)) for bound in (low, high, step))
        if step == 0:
            raise Open("a step of zero")
        self.range = range(low, high, step)
        self.start = Number(low, dtype)
        if len(self.range) > 64:
            raise Open("a long loop")

    def __iter__(self):
        return (Number(i, self.dtype) for i in self.range)

    def before(self, value):
        """What a counter is where the loop never runs: what it was, in the loop's type if that has more numbers."""
        is_number = isinstance(value, Number) and value.dtype.is_int() and not np.ndim(value.value)
        is_narrower = is_number and value.dtype.primitive_bitwidth < self.dtype.primitive_bitwidth
        return cast(value, self.dtype) if is_narrower else value


class Typed(ast.NodeTransformer):
    """Functions of kernels, in which names have types; those of Python stay as they are."""

    def visit_Module(self, node):
        node.body = [self.visit(part) if isinstance(part, ast.FunctionDef) else part for part in node.body]
        return node

    def visit_FunctionDef(self, node):
        decorators = [ast.unparse(d) for d in node.decorator_list]
        if "triton.jit" not in decorators:
            return node
        return self.generic_visit(node)

    def call(self, name, *args):
        return ast.Call(ast.Name(name, ast.Load()), list(args), [])

    def visit_Assign(self, node):
        self.generic_visit(node)
        node.value = self.call("_settled", node.value)
        return node

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        is_constant = ast.unparse(node.annotation) == "tl.constexpr"
        node.value = self.call("_constant" if is_constant else "_settled", node.value)
        return node

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        old = ast.Name(node.target.id, ast.Load())
        return ast.Assign([node.target], self.call("_settled", ast.BinOp(old, node.op, node.value)))

    visit_NamedExpr = visit_Assign

    def visit_Return(self, node):
        self.generic_visit(node)
        node.value = self.call("_settled", node.value or ast.Constant(None))
        return node

    def visit_IfExp(self, node):
        self.generic_visit(node)
        parts = [ast.Lambda(ast.arguments([], [], None, [], [], None, []), part) for part in (node.body, node.orelse)]
        return self.call("_chosen", node.test, *parts)

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return self.call("_not", node.operand) if isinstance(node.op, ast.Not) else node

    def visit_For(self, node):
        self.generic_visit(node)
        is_counted = isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) in ("range", "tl.range")
        if not is_counted:
            return node
        node.iter.func = ast.Name("_Counted", ast.Load())
        bounds = ast.Assign([ast.Name("_bounds", ast.Store())], node.iter)
        node.iter = self.call("_numbers", ast.Name("_bounds", ast.Load()))
        start = ast.Assign([node.target], ast.Attribute(ast.Name("_bounds", ast.Load()), "start", ast.Load()))
        before = ast.Attribute(ast.Name("_bounds", ast.Load()), "before", ast.Load())
        kept = ast.Assign([node.target], ast.Call(before, [ast.Name(node.target.id, ast.Load())], []))
        missing = ast.ExceptHandler(ast.Name("NameError", ast.Load()), None, [start])
        return [bounds, ast.Try([kept], [missing], [], []), node]


def chosen(test, body, orelse):
    if not isinstance(test, Number):
        return body() if test else orelse()
    return settled(body() if test else orelse())


def negated(value):
    return Number(value.value == 0, BOOL) if isinstance(value, Number) else not value


class Pointer:
    def __init__(self, memory, at=0):
        self.memory, self.at = memory, at

    def __add__(self, offset):
        return Pointer(self.memory, self.at + raw(offset))


def extreme(function):
    """The larger or smaller of two, in the type of both."""
    def method(a, b):
        dtype = together(a, b, weak=False)
        return Number(function(converted(a, dtype), converted(b, dtype)), dtype)
    return method


class Language:
    """The functions of `tl` that such kernels call."""
    constexpr = object()

    @staticmethod
    def store(pointer, value, mask=None):
        if mask is not None and not mask:
            return
        number = np.asarray(raw(value))
        if not np.all(np.abs(number.astype(np.float64)) < 2.0 ** 53):
            raise Open("a number that no float is")
        pointer.memory[pointer.at] = number.astype(np.float64)

    @staticmethod
    def where(test, a, b):
        dtype = together(a, b)
        return Number(np.where(raw(test), converted(a, dtype), converted(b, dtype)), dtype)

    @staticmethod
    def arange(low, high):
        return Number(np.arange(low, high), INT32)

    @staticmethod
    def full(shape, value, dtype):
        return Number(np.full(tuple(shape), converted(value, dtype)), dtype)

    @staticmethod
    def sum(value, axis=0):
        if not value.shape:
            raise Open("the sum of a number")
        dtype = promoted(value.dtype, INT32)
        with np.errstate(all="ignore"):
            return Number(np.sum(value.value, axis, dtype=KINDS[dtype.name]), dtype)

    @staticmethod
    def join(a, b):
        dtype = together(a, b)
        return Number(np.stack([converted(a, dtype), converted(b, dtype)], -1), dtype)

    @staticmethod
    def reduce(block, axis, function):
        return function(Number(block.value[0], block.dtype), Number(block.value[1], block.dtype))

    @staticmethod
    def map_elementwise(function, *blocks):
        parts = zip(*(block.value for block in blocks))
        results = [function(*(Number(x, block.dtype) for x, block in zip(part, blocks))) for part in parts]
        return Number([result.value for result in results], results[0].dtype)

    @staticmethod
    def static_assert(test, message=""):
        if not test:
            raise Open("an assertion fails")

    maximum, minimum = staticmethod(extreme(np.maximum)), staticmethod(extreme(np.minimum))
    cast = staticmethod(cast)
    static_range = range
    range = Counted
    device_assert = staticmethod(lambda *_: None)


for _name, _type in TYPES.items():
    setattr(Language, _name, _type)


P = collections.namedtuple("P", "x y")
Q = collections.namedtuple("Q", "y x")


class Triton:
    jit = staticmethod(lambda function: function)
    constexpr_function = staticmethod(lambda function: function)


def loaded(text):
    """The functions of a text."""
    tree = ast.parse(text)
    tree.body = [node for node in tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    tree = ast.fix_missing_locations(Typed().visit(tree))
    scope = {"triton": Triton, "tl": Language, "_settled": settled, "_constant": constant, "_Counted": Counted, "_numbers": iter,
             "_chosen": chosen, "_not": negated, "P": P, "Q": Q}
    exec(compile(tree, "kernel", "exec"), scope)
    return scope


def left(scope, kernel, slots, arguments):
    """What a kernel leaves in its only buffer, of floats of 64 bits."""
    memory = np.zeros(slots)
    given = {name: value if is_constant else Number(value, INT32) for name, (value, is_constant) in arguments.items()}
    scope[kernel](Pointer(memory), **given)
    return memory


def shown(memory):
    def one(x):
        return str(int(x)) if x == math.floor(x) and not (x == 0 and math.copysign(1, x) < 0) else repr(float(x))
    return "[" + ", ".join(map(one, memory)) + "]"
