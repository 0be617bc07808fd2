# error: f "*fp32"
@triton.jit
def f(x):
    # café
    tl.store(x, 1.0)
# == error f "*fp32"
# error[F02]: the text is not UTF-8
#  --> latin.py:4:10
#   |
# 4 |     # caf
#   |          ^ the first byte that is none
#   |
# help: save the file as UTF-8
