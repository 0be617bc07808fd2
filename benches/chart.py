"""Draws the charts of README and guide (docs/*.svg) from the tables of benches/README.md: nothing but the figures there.

    python3 benches/chart.py            # writes them
    python3 benches/chart.py --check    # fails if one is not what the tables say
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parent.parent
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 300, 60, 20, 40, 60
OURS, TRITON = ("Tilelift", "#1f6feb"), ("Triton 3.6", "#9aa4b2")
CUBLAS, CUDNN, TORCH = (("cuBLAS", "#d4a72c"), ("cuDNN", "#d4a72c"), ("PyTorch", "#d4a72c"))
BANDWIDTH = "GPU: bandwidth beside Triton"
PRODUCTS = "GPU: products of matrices and attention on Hopper"
CUBES = [("matmul f16 2048x2048x2048", "2048³"), ("matmul f16 4096x4096x4096", "4096³"), ("matmul f16 8192x8192x8192", "8192³")]
THIN = ("matmul f16 4096x4096x512", "K = 512")
LONG = [("attention forward 64x4096x128 full", "4k full"), ("attention forward 16x16384x128 full", "16k full"),
        ("attention forward 64x4096x128 causal", "4k causal"), ("attention forward 16x16384x128 causal", "16k causal")]


class Section:
    """A section of the page: its day, and the cells of its tables by the first one."""

    def __init__(self, page, title):
        start = page.index(f"## {title}")
        text = page[start:page.find("\n## ", start)]
        self.day = re.search(r"\d{4}-\d\d-\d\d", text)[0]
        self.gpu = re.search(r"H[12]00", text)[0]
        lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
        self.rows = {}
        for first, *cells in lines:
            # The first table is the one on the section's own GPU.
            self.rows.setdefault(first.strip(), [cell.strip(" *") for cell in cells])

    def bandwidth(self, case):
        ours, triton = self.rows[case][:2]
        return [float(ours), float(triton)]

    def rate(self, case):
        """TFLOP/s of ours, of Triton and of the library, whose column is its time over ours."""
        ours, triton, _, library = self.rows[case][:4]
        time, rate = map(float, ours.split(","))
        return [rate, rate * time / float(triton), rate / float(library) if library else None]


def main():
    page = (ROOT / "benches/README.md").read_text()
    memory, products = Section(page, BANDWIDTH), Section(page, PRODUCTS)
    charts = {}

    def bandwidth(name, what, cases, caption):
        rows = [(label, *memory.bandwidth(case)) for case, label in cases]
        charts[name] = draw(f"{what} on one {memory.gpu}, {memory.day}", "GB/s", (OURS, TRITON), rows, f"{caption}; one {memory.gpu}")

    def rates(name, what, library, cases, caption):
        rows = [(label, *products.rate(case)) for case, label in cases]
        charts[name] = draw(f"{what} on one {products.gpu}, {products.day}", "TFLOP/s", (OURS, TRITON, library), rows,
                            f"{caption}; one {products.gpu}")

    bandwidth("vector_add", "Sums of two vectors",
              [(f"add {element} 2^{power}", f"{element}, 2^{power}")
               for element, power in (("f32", 20), ("f32", 24), ("f32", 28), ("f16", 28), ("bf16", 28))],
              "elements and how many")
    bandwidth("softmax", "Softmax of 4096 rows in f32",
              [(case, case.split()[-1]) for case in memory.rows if case.startswith("softmax f32 4096")], "columns of 4096 rows, f32")
    bandwidth("layer_norm", "Layer norm of 4096 rows, forward",
              [(f"layer norm {element} 4096 x {columns}", f"{element}, {columns}")
               for element, columns in (("f32", 1024), ("f32", 4096), ("f32", 8192), ("f16", 8192))],
              "elements, and columns of 4096 rows")
    rates("matmul", "Products of matrices in f16", CUBLAS,
          [("matmul f16 1024x1024x1024, graph", "1024³"), *CUBES, THIN, ("matmul f16 512x4096x1024, graph", "512×4096×1024")],
          "f16; K = 512 is 4096×4096×512")
    rates("attention", "Attention forward in f16, 64 heads of 4096 queries", CUDNN,
          [(f"attention forward 64x4096x{columns} {kind}", f"{columns}, {kind}") for kind in ("full", "causal") for columns in (64, 128)],
          "columns of a head; 64 heads of 4096 queries, f16")
    rates("grouped", "Many products in one launch, f16", TORCH,
          [("grouped matmul f16, 8 sizes", "grouped, 8 sizes"), ("batched matmul f16 32x1024x1024x512", "batched, 32 × 1024×1024×512")],
          "f16; PyTorch: cuBLAS, where grouped one launch for each size")
    rates("products", "Products of matrices and attention in f16", ("cuBLAS, cuDNN", CUBLAS[1]), [*CUBES, THIN, *LONG],
          "f16: products of matrices; attention forward, 128 columns")
    charts["persistent"] = persistent(page, products)

    stale = []
    for name, text in charts.items():
        path = ROOT / f"docs/{name}.svg"
        if not path.exists() or path.read_text() != text:
            stale.append(str(path.relative_to(ROOT)))
            if sys.argv[1:] != ["--check"]:
                path.write_text(text)
    if sys.argv[1:] == ["--check"] and stale:
        sys.exit(f"not what the tables of benches/README.md say: {', '.join(stale)}; run `python3 benches/chart.py`")
    print("charts:", ", ".join(stale) or "as they are")


def persistent(page, products):
    """A table of times, some of several products in one cell."""
    text = page[page.index("What persistent CTAs"):]
    day = re.findall(r"On an H100 80GB, (\d{4}-\d\d-\d\d)", page[:len(page) - len(text)])[-1]
    rows = []
    for case, sizes in (("matmul f16 2048^3 / 4096^3 / 8192^3", [(n, n, n) for n in (2048, 4096, 8192)]),
                        ("matmul f16 4096x4096x512", [(4096, 4096, 512)])):
        cells = text[text.index(f"| {case} |"):].splitlines()[0].strip("|").split("|")[1:4]
        times = [[float(time) for time in cell.split("/")] for cell in cells]
        for (m, n, k), *each in zip(sizes, *times):
            label = f"{m}³" if m == k else f"K = {k}"
            rows.append((label, *(2 * m * n * k / time / 1e6 for time in each)))
    sides = (("a CTA for each program", "#9aa4b2"), ("persistent", "#6ca0f5"), ("and warpgroups store", "#1f6feb"))
    return draw(f"Persistent CTAs, f16, on one H100, {day}", "TFLOP/s", sides, rows, "products of matrices, f16; one H100", 170)


def draw(title, unit, sides, rows, caption, legend=110):
    """Bars: a group for each row, which is a label and a value of each side, `None` where nothing was measured."""
    top = max(value for row in rows for value in row[1:] if value)
    step = next(step for step in (100, 200, 500, 1000) if top / step <= 5)
    most = -(-int(top) // step) * step
    across = (WIDTH - LEFT - RIGHT) / len(rows)
    y = lambda value: HEIGHT - BOTTOM - value / most * (HEIGHT - TOP - BOTTOM)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" viewBox="0 0 {WIDTH} {HEIGHT}" style="max-width: 100%" '
        'font-family="sans-serif" font-size="12">',
        f"<title>{title}: {', '.join(who for who, _ in sides)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for value in range(0, most + 1, step):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end" fill="#333">{value}</text>')
    bar = 0.7 / len(sides)
    for i, (label, *values) in enumerate(rows):
        left = LEFT + across * i
        for side, (value, (who, colour)) in enumerate(zip(values, sides)):
            if value is None:
                continue
            x, width = left + across * (0.15 + bar * side), across * (bar - 0.02)
            out.append(f'<rect x="{x:.1f}" y="{y(value):.1f}" width="{width:.1f}" height="{y(0) - y(value):.1f}" '
                       f'fill="{colour}"><title>{who}, {label}: {value:.0f} {unit}</title></rect>')
        out.append(f'<text x="{left + across / 2:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#333">{label}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 20}" text-anchor="middle" fill="#333">{caption}</text>')
    out.append(f'<text x="{LEFT}" y="22" fill="#333">{unit}</text>')
    for i, (who, colour) in enumerate(sides):
        x = LEFT + 70 + legend * i
        out.append(f'<rect x="{x}" y="12" width="12" height="12" fill="{colour}"/><text x="{x + 18}" y="22" fill="#333">{who}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    main()
