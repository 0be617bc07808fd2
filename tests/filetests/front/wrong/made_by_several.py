# error: kernel "*i32"
import triton
import triton.language as tl


def make_one():
    @triton.jit
    def kernel(out):
        tl.store(out, 1)

    return kernel


def make_two():
    @triton.jit
    def kernel(out):
        tl.store(out, 2)

    @triton.jit
    def other(out):
        kernel(out)

    return kernel, other
# == error kernel "*i32"
# error[F03]: there are several kernels `kernel`, in lines 8 and 16
#   --> made_by_several.py:16:9
#    |
# 16 |     def kernel(out):
#    |         ^^^^^^
#    |
# help: give them different names: functions of the host do not tell them apart
