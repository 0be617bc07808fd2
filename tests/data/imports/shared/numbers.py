import triton.language as tl

OFFSET = tl.constexpr(100)
