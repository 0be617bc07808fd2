"""Draws docs/softmax.svg from the table "GPU: bandwidth beside Triton" of benches/README.md: nothing but the figures there.

    python3 benches/chart.py
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).parent.parent
ROW = re.compile(r"\| softmax f32 4096 x (\d+) \| (\d+) \| (\d+) \|")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 300, 60, 20, 40, 60
SIDES = (("Tilelift", "#1f6feb"), ("Triton 3.6", "#9aa4b2"))


def main():
    rows = [tuple(map(int, row)) for row in ROW.findall((ROOT / "benches/README.md").read_text())]
    assert rows, "the table has no rows of softmax"
    most = 3000
    assert max(max(row[1:]) for row in rows) <= most, "the axis is too short"
    across = (WIDTH - LEFT - RIGHT) / len(rows)
    y = lambda value: HEIGHT - BOTTOM - value / most * (HEIGHT - TOP - BOTTOM)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        "<title>Softmax of 4096 rows in f32 on one H100, GB/s: Tilelift and Triton 3.6, 2026-11-21</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for value in range(0, most + 1, 1000):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end" fill="#333">{value}</text>')
    for i, (columns, *values) in enumerate(rows):
        left = LEFT + across * i
        for side, (value, (name, colour)) in enumerate(zip(values, SIDES)):
            x, width = left + across * (0.15 + 0.35 * side), across * 0.33
            out.append(f'<rect x="{x:.1f}" y="{y(value):.1f}" width="{width:.1f}" height="{y(0) - y(value):.1f}" '
                       f'fill="{colour}"><title>{name}, {columns} columns: {value} GB/s</title></rect>')
        out.append(f'<text x="{left + across / 2:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle" fill="#333">{columns}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 20}" text-anchor="middle" fill="#333">'
               "columns of 4096 rows, f32; one H100, each side with its best block and warps</text>")
    out.append(f'<text x="{LEFT}" y="22" fill="#333">GB/s</text>')
    for i, (name, colour) in enumerate(SIDES):
        x = LEFT + 60 + 110 * i
        out.append(f'<rect x="{x}" y="12" width="12" height="12" fill="{colour}"/><text x="{x + 18}" y="22" fill="#333">{name}</text>')
    out.append("</svg>")
    (ROOT / "docs").mkdir(exist_ok=True)
    (ROOT / "docs/softmax.svg").write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
