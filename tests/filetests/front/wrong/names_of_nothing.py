# Names that modules of the language do not have, where no call tells so: what is compared with nothing would be false.
# error: compared "*fp32"
# error: called_later "*fp32"
# error: chosen "*fp32"
# error: of_libdevice "*fp32"
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def compared(x):
    if x.dtype.element_ty == tl.flaot32:
        tl.store(x, 1.0)


@triton.jit
def called_later(x):
    f = tl.sqrtt
    tl.store(x, 1.0)


@triton.jit
def chosen(x):
    if tl.core.nothing is None:
        tl.store(x, 1.0)


@triton.jit
def of_libdevice(x):
    f = libdevice.tanhh
    if hasattr(libdevice, "tanhh"):
        tl.store(x, f(1.0))
    elif isinstance(x, tl.core.base_value):
        tl.store(x, 1.0)
# == error compared "*fp32"
# error[F06]: the library has no `triton.language.flaot32`
#   --> names_of_nothing.py:13:30
#    |
# 13 |     if x.dtype.element_ty == tl.flaot32:
#    |                              ^^^^^^^^^^
#    |
# help: did you mean `tl.float32`?
# == error called_later "*fp32"
# error[F06]: the library has no `triton.language.sqrtt`
#   --> names_of_nothing.py:19:9
#    |
# 19 |     f = tl.sqrtt
#    |         ^^^^^^^^
#    |
# help: did you mean `tl.sqrt`?
# == error chosen "*fp32"
# error[F06]: the library has no `triton.language.core.nothing`
#   --> names_of_nothing.py:25:8
#    |
# 25 |     if tl.core.nothing is None:
#    |        ^^^^^^^^^^^^^^^
#    |
# help: names of the library are those of Triton 3.6
# == error of_libdevice "*fp32"
# error[F06]: the library has no `triton.language.extra.libdevice.tanhh`
#   --> names_of_nothing.py:31:9
#    |
# 31 |     f = libdevice.tanhh
#    |         ^^^^^^^^^^^^^^^
#    |
# help: did you mean `libdevice.tanh`?
