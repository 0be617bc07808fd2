"""Draws docs/softmax.svg and docs/products.svg from tables of benches/README.md: nothing but the figures there.

    python3 benches/chart.py
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).parent.parent
SOFTMAX = re.compile(r"\| softmax f32 4096 x (\d+) \| (\d+) \| (\d+) \|")
# Our microseconds and TFLOP/s, Triton's microseconds, and the library's time over ours.
PRODUCT = r"\| {} \| ([\d.]+), (\d+) \| ([\d.]+) \| [*\d.]+ \| ([\d.]+) \|"
PRODUCTS = {
    "matmul f16 2048x2048x2048": "2048³", "matmul f16 4096x4096x4096": "4096³", "matmul f16 8192x8192x8192": "8192³",
    "matmul f16 4096x4096x512": "K = 512", "attention forward 64x4096x128 full": "4k full",
    "attention forward 16x16384x128 full": "16k full", "attention forward 64x4096x128 causal": "4k causal",
    "attention forward 16x16384x128 causal": "16k causal",
}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 300, 60, 20, 40, 60
OURS, TRITON, LIBRARY = ("Tilelift", "#1f6feb"), ("Triton 3.6", "#9aa4b2"), ("cuBLAS, cuDNN", "#d4a72c")


def main():
    text = (ROOT / "benches/README.md").read_text()
    softmax = [(columns, int(ours), int(triton)) for columns, ours, triton in SOFTMAX.findall(text)]
    assert softmax, "the table has no rows of softmax"
    draw("softmax", "Softmax of 4096 rows in f32 on one H100, GB/s: Tilelift and Triton 3.6, 2026-11-21", softmax, (OURS, TRITON),
         ("GB/s", 3000, 1000), "columns of 4096 rows, f32; one H100, each side with its best block and warps")
    products = []
    for case, label in PRODUCTS.items():
        # The first table is the one on Hopper.
        time, rate, triton, library = map(float, re.search(PRODUCT.format(re.escape(case)), text).groups())
        products.append((label, round(rate), round(rate * time / triton), round(rate / library)))
    draw("products", "Products of matrices and attention in f16 on one H200, TFLOP/s: Tilelift, Triton 3.6, cuBLAS and cuDNN, 2026-11-23",
         products, (OURS, TRITON, LIBRARY), ("TFLOP/s", 800, 200),
         "f16: products of matrices; attention forward, 128 columns; one H200, best configurations")


def draw(name, title, rows, sides, axis, caption):
    unit, most, step = axis
    assert max(max(row[1:]) for row in rows) <= most, "the axis is too short"
    across = (WIDTH - LEFT - RIGHT) / len(rows)
    y = lambda value: HEIGHT - BOTTOM - value / most * (HEIGHT - TOP - BOTTOM)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f"<title>{title}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for value in range(0, most + 1, step):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end" fill="#333">{value}</text>')
    bar = 0.7 / len(sides)
    for i, (label, *values) in enumerate(rows):
        left = LEFT + across * i
        for side, (value, (who, colour)) in enumerate(zip(values, sides)):
            x, width = left + across * (0.15 + bar * side), across * (bar - 0.02)
            out.append(f'<rect x="{x:.1f}" y="{y(value):.1f}" width="{width:.1f}" height="{y(0) - y(value):.1f}" '
                       f'fill="{colour}"><title>{who}, {label}: {value} {unit}</title></rect>')
        out.append(f'<text x="{left + across / 2:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#333">{label}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 20}" text-anchor="middle" fill="#333">{caption}</text>')
    out.append(f'<text x="{LEFT}" y="22" fill="#333">{unit}</text>')
    for i, (who, colour) in enumerate(sides):
        x = LEFT + 60 + 110 * i
        out.append(f'<rect x="{x}" y="12" width="12" height="12" fill="{colour}"/><text x="{x + 18}" y="22" fill="#333">{who}</text>')
    out.append("</svg>")
    (ROOT / "docs").mkdir(exist_ok=True)
    (ROOT / f"docs/{name}.svg").write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
