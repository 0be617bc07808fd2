import triton


@triton.jit
def triple(x):
    return x + x + x
