# error: f "*fp32"
import torch


def f(x):
    return torch.relu(x)
# == error f "*fp32"
# error[F03]: there is no kernel `f`
#  --> only_host.py:1:1
#   |
# 1 | # error: f "*fp32"
#   | ^
#   |
# help: a kernel is a function with @triton.jit
