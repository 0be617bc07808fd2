"""A manifest of 200 kernels of examples/kernels, as an engine of inference has them: python3 benches/manifest.py > m.manifest"""

from itertools import product
from pathlib import Path

KERNELS = Path(__file__).resolve().parent.parent / "examples" / "kernels"


def kernels():
    for block, of, warps in product([128, 256, 512, 1024, 2048, 4096, 8192, 16384], ["fp16", "bf16", "fp32"], [4, 8, 16]):
        if block >= 32 * warps:
            yield f'softmax softmax "*{of}:16, *{of}:16, i32:16, i32" BLOCK={block} num_warps={warps}'
    for bm, bn, bk, of, warps, by in product([64, 128], [64, 128], [32, 64], ["fp16", "bf16"], [4, 8], [":16", ""]):
        extents = ", ".join([f"i32{by}"] * 5 + ["i32:1", f"i32{by}"])
        blocks = f"BM={bm} BN={bn} BK={bk} GROUP=8"
        yield (f'matmul matmul "*{of}:16, *{of}:16, *{of}:16, {extents}" {blocks} SUM=fp32 PRECISION="tf32" '
               f"num_warps={warps} num_stages=3")
    for bm, bn, d, causal, of in product([64, 128], [32, 64], [64, 128], [True, False], ["fp16", "bf16"]):
        tensors = f"*{of}:16, *{of}:16, *{of}:16"
        yield (f'attention forward "*{of}:16, *fp32:16, {tensors}, i32:16, fp32" BM={bm} BN={bn} D={d} CAUSAL={causal} '
               f"num_warps=4")
    for block, of, warps in product([256, 512, 1024, 2048, 4096, 8192], ["fp16", "fp32"], [4, 8]):
        yield f'norm rms_norm "*{of}:16, *{of}:16, *{of}:16, i32:16, i32, fp32" BLOCK={block} num_warps={warps}'
        tensors = f"*{of}:16, *{of}:16, *{of}:16"
        yield (f'norm layer_norm "*{of}:16, *fp32:16, *fp32:16, {tensors}, i32:16, i32, fp32" BLOCK={block} '
               f"num_warps={warps}")


for name in ["softmax", "matmul", "attention", "norm"]:
    print(f"file {name} {KERNELS / name}.py")
for kernel in list(kernels())[:200]:
    print(f"kernel {kernel}")
