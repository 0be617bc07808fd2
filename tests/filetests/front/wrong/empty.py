# error: f "*fp32"
# == error f "*fp32"
# error[F03]: there is no kernel `f`
#  --> empty.py:1:1
#   |
# 1 | # error: f "*fp32"
#   | ^
#   |
# help: a kernel is a function with @triton.jit
