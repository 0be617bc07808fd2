# Python that kernels cannot use, with what to do in its place.
# error: break_ "*fp32, i32"
# error: continue_ "*fp32, i32"
# error: break_of_static "*fp32"
# error: while_true "*fp32"
# error: for_else "*fp32, i32"
# error: while_else "*fp32, i32"
# error: for_over_block "*fp32"
# error: for_over_number "*fp32, i32"
# error: float_range "*fp32, fp32"
# error: zero_step "*fp32, i32"
# error: chained_comparison "*fp32, i32"
# error: power "*fp32, i32"
# error: matrix_product "*fp32"
# error: lambda_ "*fp32"
# error: nested_function "*fp32"
# error: nested_class "*fp32"
# error: local_import "*fp32"
# error: global_ "*fp32"
# error: delete "*fp32"
# error: try_ "*fp32"
# error: match_ "*fp32, i32"
# error: dictionary "*fp32"
# error: set_ "*fp32"
# error: generator "*fp32"
# error: coroutine "*fp32"
# error: complex_ "*fp32"
# error: bytes_ "*fp32"
# error: ellipsis "*fp32"
# error: element_assignment "*fp32"
# error: attribute_assignment "*fp32"
# error: starred_assignment "*fp32"
# error: wrong_unpacking "*fp32"
# error: unpacked_number "*fp32, i32"
# error: passed_on "*fp32"
# error: launch "*fp32"
# error: kernel_with_varargs "*fp32"
# error: returns_in_loop "*fp32, i32"
# error: returns_a_value "*fp32"
# error: returns_differ "*fp32, i32"
# error: async_kernel "*fp32"
# error: block_in_condition "*fp32"
# error: block_in_while "*fp32"
# error: two_generators "*fp32"
import triton
import triton.language as tl


@triton.jit
def break_(x, n):
    for i in range(n):
        if tl.load(x + i) == 0:
            break


@triton.jit
def continue_(x, n):
    while n > 0:
        n -= 1
        continue


@triton.jit
def break_of_static(x):
    for i in tl.static_range(4):
        if i == 2:
            break


@triton.jit
def while_true(x):
    while True:
        tl.store(x, 1.0)


@triton.jit
def for_else(x, n):
    for i in range(n):
        pass
    else:
        tl.store(x, 1.0)


@triton.jit
def while_else(x, n):
    while n > 0:
        n -= 1
    else:
        tl.store(x, 1.0)


@triton.jit
def for_over_block(x):
    for v in tl.load(x + tl.arange(0, 4)):
        tl.store(x, v)


@triton.jit
def for_over_number(x, n):
    for i in n:
        tl.store(x + i, 1.0)


@triton.jit
def float_range(x, end):
    for i in range(0, end):
        tl.store(x, 1.0)


@triton.jit
def zero_step(x, n):
    for i in range(0, n, 0):
        tl.store(x, 1.0)


@triton.jit
def chained_comparison(x, n):
    tl.store(x, 0 <= n < 10)


@triton.jit
def power(x, n):
    tl.store(x, 2.0 ** n)


@triton.jit
def matrix_product(x):
    a = tl.zeros((16, 16), tl.float32)
    tl.store(x, tl.sum(a @ a))


@triton.jit
def lambda_(x):
    square = lambda v: v * v
    tl.store(x, square(tl.load(x)))


@triton.jit
def nested_function(x):
    def square(v):
        return v * v
    tl.store(x, square(tl.load(x)))


@triton.jit
def nested_class(x):
    class Pair:
        pass


@triton.jit
def local_import(x):
    import math
    tl.store(x, math.pi)


@triton.jit
def global_(x):
    global total
    total = 1


@triton.jit
def delete(x):
    y = 1
    del y


@triton.jit
def try_(x):
    try:
        tl.store(x, 1.0)
    except ValueError:
        pass


@triton.jit
def match_(x, n):
    match n:
        case 0:
            tl.store(x, 1.0)


@triton.jit
def dictionary(x):
    names = {"a": 1.0}
    tl.store(x, names["a"])


@triton.jit
def set_(x):
    tl.store(x, 1.0 in {1.0, 2.0})


@triton.jit
def generator(x):
    tl.store(x, sum(i for i in (1, 2)))


@triton.jit
def coroutine(x):
    v = yield 1.0


@triton.jit
def complex_(x):
    tl.store(x, 2j)


@triton.jit
def bytes_(x):
    tl.static_print(b"abc")


@triton.jit
def ellipsis(x):
    tl.store(x, tl.sum(tl.arange(0, 4)[..., None]))


@triton.jit
def element_assignment(x):
    v = tl.zeros((4,), tl.float32)
    v[0] = 1.0


@triton.jit
def attribute_assignment(x):
    x.dtype = tl.float32


@triton.jit
def starred_assignment(x):
    a, *rest = (1, 2, 3)


@triton.jit
def wrong_unpacking(x):
    a, b = (1, 2, 3)


@triton.jit
def unpacked_number(x, n):
    a, b = n


@triton.jit
def inner(x, value):
    tl.store(x, value)


@triton.jit
def passed_on(x):
    inner(x, **{"value": 1.0})


@triton.jit
def launch(x):
    inner[(1,)](x, 1.0)


@triton.jit
def kernel_with_varargs(*pointers):
    tl.store(pointers[0], 1.0)


@triton.jit
def returns_in_loop(x, n):
    for i in range(n):
        if tl.load(x + i) < 0:
            return
    tl.store(x, 1.0)


@triton.jit
def returns_a_value(x):
    return tl.load(x)


@triton.jit
def sometimes(n):
    if n > 0:
        return 1.0
    else:
        return (1.0, 2.0)


@triton.jit
def returns_differ(x, n):
    tl.store(x, sometimes(n))


@triton.jit
async def waiting(x):
    tl.store(x, 1.0)


@triton.jit
def async_kernel(x):
    waiting(x)


@triton.jit
def block_in_condition(x):
    if tl.load(x + tl.arange(0, 4)) > 0:
        tl.store(x, 1.0)


@triton.jit
def block_in_while(x):
    v = tl.load(x + tl.arange(0, 4))
    while v > 0:
        v -= 1


@triton.jit
def two_generators(x):
    tl.store(x, [i + j for i in (1, 2) for j in (3, 4)][0])
# == error break_ "*fp32, i32"
# error[F07]: kernels cannot use `break`
#   --> python.py:53:13
#    |
# 53 |             break
#    |             ^^^^^
#    |
# help: let the condition of a `while` end the loop, or mask what follows
# == error continue_ "*fp32, i32"
# error[F07]: kernels cannot use `continue`
#   --> python.py:60:9
#    |
# 60 |         continue
#    |         ^^^^^^^^
#    |
# help: put what follows into an `if`
# == error break_of_static "*fp32"
# error[F07]: kernels cannot use `break`
#   --> python.py:67:13
#    |
# 67 |             break
#    |             ^^^^^
#    |
# help: let the condition of a `while` end the loop, or mask what follows
# == error while_true "*fp32"
# error[F14]: the condition of the loop is always true
#   --> python.py:72:11
#    |
# 72 |     while True:
#    |           ^^^^
#    |
# help: a loop ends by its condition; kernels have no `break`
# == error for_else "*fp32, i32"
# error[F07]: `for` has no `else` in kernels
#   --> python.py:78:5
#    |
# 78 |     for i in range(n):
#    |     ^^^^^^^^^^^^^^^^^^
#    |
# help: put the statements behind the loop
# == error while_else "*fp32, i32"
# error[F07]: `while` has no `else` in kernels
#   --> python.py:86:5
#    |
# 86 |     while n > 0:
#    |     ^^^^^^^^^^^^
#    |
# help: put the statements behind the loop
# == error for_over_block "*fp32"
# error[F10]: a block fp32[4] cannot be looped over
#   --> python.py:94:14
#    |
# 94 |     for v in tl.load(x + tl.arange(0, 4)):
#    |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#    |
# help: use range, tl.range or tl.static_range
# == error for_over_number "*fp32, i32"
# error[F10]: a scalar i32 cannot be looped over
#    --> python.py:100:14
#     |
# 100 |     for i in n:
#     |              ^
#     |
# help: use range, tl.range or tl.static_range
# == error float_range "*fp32, fp32"
# error[F10]: a loop counts integers, found fp32
#    --> python.py:106:14
#     |
# 106 |     for i in range(0, end):
#     |              ^^^^^^^^^^^^^
# == error zero_step "*fp32, i32"
# error[F20]: the step of a loop is zero
#    --> python.py:112:14
#     |
# 112 |     for i in range(0, n, 0):
#     |              ^^^^^^^^^^^^^^
# == error chained_comparison "*fp32, i32"
# error[F07]: comparisons cannot be chained
#    --> python.py:118:17
#     |
# 118 |     tl.store(x, 0 <= n < 10)
#     |                 ^^^^^^^^^^^
#     |
# help: write `(a < b) & (b < c)`
# == error power "*fp32, i32"
# error[F12]: `**` needs a constant whole exponent
#    --> python.py:123:17
#     |
# 123 |     tl.store(x, 2.0 ** n)
#     |                 ^^^^^^^^
#     |
# help: use libdevice.pow, tl.exp2, or a product
# == error matrix_product "*fp32"
# error[F07]: blocks have no `@`
#    --> python.py:129:24
#     |
# 129 |     tl.store(x, tl.sum(a @ a))
#     |                        ^^^^^
#     |
# help: use tl.dot(a, b)
# == error lambda_ "*fp32"
# error[F07]: kernels cannot use `lambda`
#    --> python.py:134:14
#     |
# 134 |     square = lambda v: v * v
#     |              ^^^^^^^^^^^^^^^
#     |
# help: define a function at the top level, with @triton.jit
# == error nested_function "*fp32"
# error[F07]: kernels cannot use a function within a kernel
#    --> python.py:140:5
#     |
# 140 |     def square(v):
#     |     ^^^^^^^^^^^^^^
#     |
# help: define it at the top level, with @triton.jit
# == error nested_class "*fp32"
# error[F07]: kernels cannot use a class within a kernel
#    --> python.py:147:5
#     |
# 147 |     class Pair:
#     |     ^^^^^^^^^^^
#     |
# help: define it at the top level
# == error local_import "*fp32"
# error[F07]: kernels cannot use an import within a kernel
#    --> python.py:153:5
#     |
# 153 |     import math
#     |     ^^^^^^^^^^^
#     |
# help: import at the top of the file
# == error global_ "*fp32"
# error[F07]: kernels cannot use `global` and `nonlocal`
#    --> python.py:159:5
#     |
# 159 |     global total
#     |     ^^^^^^^^^^^^
#     |
# help: kernels can read constants of the module but not change them
# == error delete "*fp32"
# error[F07]: kernels cannot use `del`
#    --> python.py:166:5
#     |
# 166 |     del y
#     |     ^^^^^
#     |
# help: leave it out
# == error try_ "*fp32"
# error[F07]: kernels cannot use `try`
#    --> python.py:171:5
#     |
# 171 |     try:
#     |     ^^^^
#     |
# help: kernels have no exceptions
# == error match_ "*fp32, i32"
# error[F07]: kernels cannot use `match`
#    --> python.py:179:5
#     |
# 179 |     match n:
#     |     ^^^^^^^^
#     |
# help: use `if` and `elif`
# == error dictionary "*fp32"
# error[F07]: kernels cannot use dictionaries
#    --> python.py:186:13
#     |
# 186 |     names = {"a": 1.0}
#     |             ^^^^^^^^^^
#     |
# help: use names, or a tuple
# == error set_ "*fp32"
# error[F07]: kernels cannot use sets
#    --> python.py:192:24
#     |
# 192 |     tl.store(x, 1.0 in {1.0, 2.0})
#     |                        ^^^^^^^^^^
#     |
# help: use a tuple
# == error generator "*fp32"
# error[F07]: kernels cannot use generators
#    --> python.py:197:21
#     |
# 197 |     tl.store(x, sum(i for i in (1, 2)))
#     |                     ^^^^^^^^^^^^^^^^^
#     |
# help: use a list: [... for ... in ...]
# == error coroutine "*fp32"
# error[F07]: kernels cannot use coroutines
#    --> python.py:202:9
#     |
# 202 |     v = yield 1.0
#     |         ^^^^^^^^^
#     |
# help: use a loop
# == error complex_ "*fp32"
# error[F07]: kernels cannot use complex numbers
#    --> python.py:207:17
#     |
# 207 |     tl.store(x, 2j)
#     |                 ^^
# == error bytes_ "*fp32"
# error[F07]: kernels cannot use bytes
#    --> python.py:212:21
#     |
# 212 |     tl.static_print(b"abc")
#     |                     ^^^^^^
#     |
# help: use a string or numbers
# == error ellipsis "*fp32"
# error[F07]: kernels cannot use `...`
#    --> python.py:217:40
#     |
# 217 |     tl.store(x, tl.sum(tl.arange(0, 4)[..., None]))
#     |                                        ^^^
#     |
# help: write `:` once for each dimension
# == error element_assignment "*fp32"
# error[F07]: elements of a block cannot be assigned
#    --> python.py:223:5
#     |
# 223 |     v[0] = 1.0
#     |     ^^^^
#     |
# help: make a new block with tl.where
# == error attribute_assignment "*fp32"
# error[F07]: attributes cannot be assigned
#    --> python.py:228:5
#     |
# 228 |     x.dtype = tl.float32
#     |     ^^^^^^^
#     |
# help: objects do not change; make a new one, or use a local name
# == error starred_assignment "*fp32"
# error[F07]: `*name` cannot be assigned to
#    --> python.py:233:8
#     |
# 233 |     a, *rest = (1, 2, 3)
#     |        ^^^^^
#     |
# help: name each element
# == error wrong_unpacking "*fp32"
# error[F10]: 2 names for a tuple of 3
#    --> python.py:238:5
#     |
# 238 |     a, b = (1, 2, 3)
#     |     ^^^^
# == error unpacked_number "*fp32, i32"
# error[F10]: expected a tuple of 2, found a scalar i32
#    --> python.py:243:5
#     |
# 243 |     a, b = n
#     |     ^^^^^^^^
# == error passed_on "*fp32"
# error[F07]: `**` cannot be passed on
#    --> python.py:253:5
#     |
# 253 |     inner(x, **{"value": 1.0})
#     |     ^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: name the arguments
# == error launch "*fp32"
# error[F07]: a kernel cannot launch a kernel
#    --> python.py:258:5
#     |
# 258 |     inner[(1,)](x, 1.0)
#     |     ^^^^^^^^^^^
#     |
# help: call the function without [...]
# == error kernel_with_varargs "*fp32"
# error[F07]: a kernel has no `*args`
#    --> python.py:262:25
#     |
# 262 | def kernel_with_varargs(*pointers):
#     |                         ^^^^^^^^^
#     |
# help: name each parameter
# == error returns_in_loop "*fp32, i32"
# error[F07]: a `return` inside of a run-time loop
#    --> python.py:270:13
#     |
# 270 |             return
#     |             ^^^^^^
#     |
# help: let a condition end the loop (`while`), and return after it
# == error returns_a_value "*fp32"
# error[F17]: the kernel `returns_a_value` returns a value
#    --> python.py:275:5
#     |
# 275 | def returns_a_value(x):
#     |     ^^^^^^^^^^^^^^^
#     |
# help: a kernel stores its results to memory
# == error returns_differ "*fp32, i32"
# error[F17]: the result of the function is a number of type fp32 on one way and a tuple of 2 on the other
#    --> python.py:281:5
#     |
# 281 |     if n > 0:
#     |     ^^^^^^^^^
#     |
# note: in `sometimes`, called here
#    --> python.py:289:17
#     |
# 289 |     tl.store(x, sometimes(n))
#     |                 ^^^^^^^^^^^^
# help: both ways through an `if` must give the same type; cast with `.to(...)`
# == error async_kernel "*fp32"
# error[F07]: kernels cannot be `async`
#    --> python.py:299:5
#     |
# 299 |     waiting(x)
#     |     ^^^^^^^^^^
# == error block_in_condition "*fp32"
# error[F14]: a block (i1[4]) is no condition
#    --> python.py:304:8
#     |
# 304 |     if tl.load(x + tl.arange(0, 4)) > 0:
#     |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ expected a scalar
#     |
# help: use tl.where to choose element by element, or reduce with tl.max
# == error block_in_while "*fp32"
# error[F14]: a block (i1[4]) is no condition
#    --> python.py:311:11
#     |
# 311 |     while v > 0:
#     |           ^^^^^ expected a scalar
#     |
# help: use tl.where to choose element by element, or reduce with tl.max
# == error two_generators "*fp32"
# error[F07]: a list has one `for`
#    --> python.py:317:17
#     |
# 317 |     tl.store(x, [i + j for i in (1, 2) for j in (3, 4)][0])
#     |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
#     |
# help: write a loop over tl.static_range
