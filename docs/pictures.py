"""Draws the pictures of the guide's pages on the compiler, and README's layout, from what the tool prints. What these pages
quote of it has to be what it prints, too.

    cargo build && python3 docs/pictures.py target/debug/tilelift    # writes them
    python3 docs/pictures.py target/debug/tilelift --check           # fails if one is not what the tool prints
"""
import html
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parent.parent
TOOL = pathlib.Path(sys.argv[1]).absolute()
# The kernel of the pages, as their first one has it.
SOURCE = "import triton\nimport triton.language as tl\n\n\n" + re.search(
    r"```python\n(.*?)```", (ROOT / "src/guide/compiler/index.md").read_text(), re.S)[1]
SOFTMAX = ["-n", "softmax", "-s", "*fp32:16, *fp32:16, i32, 128", "-w", "2"]
MATMUL = ["examples/embedded/kernels/matmul.py", "-n", "matmul", "-s"]
WIDTH, CHAR, ROW = 720, 6.05, 15
# Characters that a column has room for.
MOST = 56
# Of lines of the source, one after the other.
PASTELS = ["#fde0e0", "#fdf0c8", "#def2de", "#d9eafc", "#ecdefb"]
GREY, BLUE, DARK = "#9aa4b2", "#1f6feb", "#333"


def tool(*arguments):
    done = subprocess.run([TOOL, *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"tilelift {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def picture(title, height, body, font="sans-serif", size=12):
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" viewBox="0 0 {WIDTH} {height:g}" style="max-width: 100%" '
        f'font-family="{font}" font-size="{size}">', f"<title>{html.escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height:g}" fill="white"/>', *body, "</svg>"]) + "\n"


def rect(x, y, width, height, fill, stroke="none", rounded=0, title=None):
    end = f"><title>{html.escape(title)}</title></rect>" if title else "/>"
    return (f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{rounded}" fill="{fill}" '
            f'stroke="{stroke}"{end}')


def text(x, y, words, anchor="start", fill=DARK, more=""):
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{fill}"{more}>{html.escape(words, quote=False)}</text>'


def line(x1, y1, x2, y2, stroke=GREY):
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{stroke}"/>'


def arrow(x, y1, y2):
    return line(x, y1, x, y2 - 4) + f'<path d="M{x - 4:g} {y2 - 7:g}L{x:g} {y2:g}L{x + 4:g} {y2 - 7:g}z" fill="{GREY}"/>'


def side_by_side(title, heads, left, right):
    """Two texts as lists of (line of the source, text); what comes of one line of the source has one colour."""
    body = []
    top = 26
    for column, (head, lines) in enumerate(zip(heads, (left, right))):
        x = 8 + column * (WIDTH / 2)
        body.append(text(x, 16, head, more=' font-family="sans-serif" font-size="12"'))
        for i, (number, words) in enumerate(lines):
            y = top + i * ROW
            body.append(rect(x - 4, y, WIDTH / 2 - 8, ROW, PASTELS[number % len(PASTELS)]))
            shown = words.lstrip()
            indent = len(words) - len(shown)
            if len(words) > MOST:
                shown = shown[:MOST - indent - 3] + " .."
            body.append(text(x + indent * CHAR, y + 11, shown))
    return picture(title, top + ROW * max(len(left), len(right)) + 6, body, "monospace", 10)


def of_lines(ir, numbers):
    """The lines of a text of the IR that come of these lines of the source, without their note."""
    out, inner, last = [], "", None
    for words in ir.splitlines():
        found = re.search(r" @(\d+)( \{)?$", words)
        note = int(found[1]) if found else last if re.match(r"\s+(block\d+\(|\}|bar )", words) else None
        last = note
        if note in numbers:
            out.append((note, re.sub(r" @\d+", "", words)[2:]))
    return out


def way():
    """The forms of a kernel from above to below, and what leads from one to the next."""
    forms = [("Python text, Rust calls, .tir text", ""), ("tile IR", "--emit tile"), ("tile IR", "--emit opt"),
             ("tile IR with layouts", "--emit layout"), ("thread IR", "--emit thread"), ("thread IR", "--emit shared"),
             ("instructions", "--emit machine"), ("PTX", "--emit ptx"), ("GPU, or the emulator on a CPU", "")]
    steps = [("front", "parsed; types; constants are computed"),
             ("tile", "merged, hoisted, fused; exp is lowered; loops are pipelined"),
             ("layout", "which thread holds which element; conversions"),
             ("expand", "packs, wide accesses, shuffles, exchanges"),
             ("thread", "places in shared memory; barriers"),
             ("machine, regalloc", "ISLE rules select, a schedule, registers get names"),
             ("ptx", "written as text"),
             ("driver or emu", "machine code by the driver, or run instruction by instruction")]
    body, high, gap = [], 30, 62
    for i, (form, option) in enumerate(forms):
        y = 8 + i * gap
        body += [rect(8, y, 250, high, PASTELS[3] if option else "#eef0f3", GREY, 5), text(133, y + 19, form, "middle")]
        if option:
            body.append(text(270, y + 19, option, fill="#777", more=' font-family="monospace"'))
        if i < len(steps):
            room, what = steps[i]
            body += [arrow(133, y + high, y + gap), text(148, y + high + 20, room, fill=BLUE), text(270, y + high + 20, what)]
    return picture("The way of a kernel: its forms, and the stages between them", 8 + len(steps) * gap + high + 8, body)


def oracles():
    """Which oracle looks at which form."""
    forms = ["tile IR", "tile IR with layouts", "thread IR", "instructions, registers", "PTX"]
    judges = [("verifier", 0, 2, "rules of the IR, after every pass"),
              ("interpreter", 0, 1, "runs before and after each pass"),
              ("checker of registers", 3, 3, "every allocation, by another algorithm"),
              ("emulator", 4, 4, "runs the text; agrees with the interpreter"),
              ("ptxas", 4, 4, "assembles it for every target"),
              ("a GPU", 4, 4, "runs it")]
    body, gap = [], 58
    middle = lambda form: 24 + form * gap
    for i, form in enumerate(forms):
        body += [rect(8, middle(i) - 15, 190, 30, PASTELS[3], GREY, 5), text(103, middle(i) + 5, form, "middle")]
        if i + 1 < len(forms):
            body.append(arrow(103, middle(i) + 15, middle(i + 1) - 15))
    for i, (judge, first, last, what) in enumerate(judges):
        y = 24 + i * (4 * gap / (len(judges) - 1))
        body += [rect(330, y - 15, 150, 30, PASTELS[2], GREY, 5), text(405, y + 5, judge, "middle"), text(490, y + 5, what)]
        body += [line(198, middle(form), 330, y, BLUE) for form in range(first, last + 1)]
    return picture("Which oracle judges which form of a kernel", middle(4) + 24, body)


def row_layout(layout, shown):
    """The matrix of a layout over bits, and who holds which element."""
    found = re.search(r"reg=\[(.*?)\], lane=\[(.*?)\], warp=\[(.*?)\]\}", layout)
    columns = [(f"{kind}{i}", int(value)) for kind, values in zip(("register ", "lane ", "warp "), found.groups())
               for i, value in enumerate(filter(None, values.split(",")))]
    bits = max(value for _, value in columns).bit_length()
    body, cell, left, top = [], 24, 150, 64
    body.append(text(8, 18, "A column says which bit of the element's number a bit of register, lane or warp sets:"))
    for i, (name, value) in enumerate(columns):
        x = left + i * cell
        body.append(f'<text transform="translate({x + 15:g} {top - 5}) rotate(-35)" fill="{DARK}" font-size="10">{name}</text>')
        for bit in range(bits):
            one = value >> bit & 1
            body.append(rect(x, top + bit * cell, cell, cell, BLUE if one else "white", "#ddd"))
            body.append(text(x + cell / 2, top + bit * cell + 16, str(one), "middle", "white" if one else "#bbb"))
    for bit in range(bits):
        body.append(text(left - 8, top + bit * cell + 16, f"bit {bit} of the element", "end"))
    top += bits * cell + 34
    body.append(text(8, top - 10, "thread:register of the 128 elements, 16 in a row; a warp has one colour:"))
    rows = [line.split() for line in shown.splitlines() if re.match(r"\s+\d+:\d+ ", line)]
    for i, row in enumerate(rows):
        for j, words in enumerate(row):
            thread, register = map(int, words.split(":"))
            x, y = 8 + j * 44, top + i * 19
            body += [rect(x, y, 44, 19, PASTELS[1 if thread < 32 else 3], "white"), text(x + 22, y + 13, words, "middle", more=' font-size="11"')]
    return picture("The layout of the row as a matrix over bits, and as a table", top + len(rows) * 19 + 8, body)


def slots(listing):
    """Bytes of shared memory against the instructions that use them."""
    found = re.findall(r"(slot\d+)\s+(\d+)\.\.(\d+)\s+[.#]+\s+(\d+)\.\.(\d+)\s*(.*)", listing)
    most = max(int(end) for _, _, end, _, _, _ in found)
    last = max(int(stop) for _, _, _, _, stop, _ in found)
    left, wide, top, high = 70, WIDTH - 90, 30, 200
    body = [text(8, 16, "bytes of shared memory"), line(left, top + high, left + wide, top + high)]
    for i, (name, begin, end, start, stop, what) in enumerate(found):
        y, bottom = (top + high - int(value) / most * high for value in (end, begin))
        x, right = (left + int(value) / last * wide for value in (start, stop))
        body.append(rect(x, y, right - x, bottom - y, PASTELS[i % 2 * 2 + 1], GREY))
        blocks = re.match(r"(\d+) blocks of (.*)", what)
        for entry in range(1, int(blocks[1]) if blocks else 0):
            body.append(line(x, y + (bottom - y) * entry / int(blocks[1]), right, y + (bottom - y) * entry / int(blocks[1])))
        body += [text((x + right) / 2, (y + bottom) / 2 + 4, f"{name}: {what}", "middle"), text(left - 6, y + 10, end, "end")]
    body += [text(left - 6, top + high + 4, "0", "end"),
             text(left + wide / 2, top + high + 20, f"instructions of a thread, 0 to {last}", "middle")]
    return picture("Slots of shared memory against instructions", top + high + 30, body)


def live(listing):
    """How many words are live at each instruction, and from when to when each register is, coloured by the name it gets."""
    before, after = listing.split("; after allocation")
    words = [int(number) for number in re.findall(r"^ {1,4}(\d+)\t", before, re.M)]
    ranges = re.findall(r"^g\d+\s+(%\w+)\S*(?: \.\. %\w+)?\s+[.#]+ (\d+)\.\.(\d+)$", after, re.M)
    ranges.sort(key=lambda row: (int(row[1]), int(row[2])))
    names = sorted({name for name, _, _ in ranges}, key=lambda name: (re.sub(r"\d", "", name), int(re.sub(r"\D", "", name))))
    colour = {name: f"hsl({i * 137.5 % 360:.0f},65%,{55 + i % 3 * 10}%)" for i, name in enumerate(names)}
    left, step, top, high = 40, (WIDTH - 60) / len(words), 24, 70
    body = [text(8, 16, f"words that are live, {max(words)} at most")]
    for i, count in enumerate(words):
        tall = count / max(words) * high
        body.append(rect(left + i * step, top + high - tall, step - 1, tall, GREY, title=f"instruction {i + 1}: {count}"))
    top += high + 26
    body.append(text(8, top - 8, "live ranges; a colour is a register of the PTX"))
    for i, (name, start, stop) in enumerate(ranges):
        x, y = left + (int(start) - 1) * step, top + i * 7
        body.append(rect(x, y, (int(stop) - int(start)) * step, 6, colour[name], title=f"{name}: {start}..{stop}"))
    top += len(ranges) * 7 + 18
    for i, name in enumerate(names):
        x = left + i % 14 * 48
        body += [rect(x, top - 9 + i // 14 * 16, 10, 10, colour[name]), text(x + 14, top + i // 14 * 16, name, more=' font-size="11"')]
    return picture("Live registers and live ranges along the instructions", top + 24, body)


def quoted(printed):
    """Fails if a page on the compiler quotes a line that the tool does not print."""
    known = {line.strip() for text in printed for line in text.splitlines()}
    for page in sorted((ROOT / "src/guide/compiler").glob("*.md")):
        for block in re.findall(r"```text\n(.*?)```", page.read_text(), re.S):
            for line in block.splitlines():
                if line.strip() not in known | {""}:
                    sys.exit(f"{page.relative_to(ROOT)} quotes what the tool does not print: {line}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "softmax.py"
        path.write_text(SOURCE)
        stages = ("tile", "opt", "layout", "thread", "machine", "shared", "ptx", "stats")
        printed = [tool("compile", str(path), *SOFTMAX, "-t", "sm_80", "--emit", name) for name in stages]
        tile, opt, layout, thread, machine = printed[:5]
        quoted(printed)
        shown = tool("show", str(path), *SOFTMAX, "-t", "sm_80")
        drawn = pathlib.Path(folder) / "layout.svg"
        tool("show", *MATMUL, "*fp16:16, *fp16:16, *fp32:16, i32:16, 16", "-w", "1", "-t", "sm_80", "--layout", "0", "--svg", str(drawn))
        units = drawn.read_text()
    rings = tool("compile", *MATMUL, "*fp16:16, *fp16:16, *fp32:16, i32:16, 64", "-w", "4", "-t", "sm_80", "--emit", "shared")
    source = [(number, words) for number, words in enumerate(SOURCE.splitlines(), 1) if 7 <= number <= 11]
    pictures = {
        "way": way(),
        "oracles": oracles(),
        "front": side_by_side("Lines of the kernel, and the tile IR that comes of them", ("softmax.py", "tile IR"), source,
                              of_lines(tile, range(7, 12))),
        "tile": side_by_side("Lines 10 and 11 before and after the passes over blocks", ("--emit tile", "--emit opt"),
                             of_lines(tile, (10, 11)), of_lines(opt, (10, 11))),
        "expand": side_by_side("Line 10 before and after expansion", ("--emit layout", "--emit thread"), of_lines(layout, (10,)),
                               of_lines(thread, (10,))),
        "row": row_layout(layout, shown),
        "layout": units,
        "slots": slots(rings),
        "live": live(machine),
    }
    stale = []
    for name, drawing in pictures.items():
        path = ROOT / f"docs/{name}.svg"
        if not path.exists() or path.read_text() != drawing:
            stale.append(str(path.relative_to(ROOT)))
            if sys.argv[2:] != ["--check"]:
                path.write_text(drawing)
    if sys.argv[2:] == ["--check"] and stale:
        sys.exit(f"not what the tool prints: {', '.join(stale)}; run `python3 docs/pictures.py TOOL`")
    print("pictures:", ", ".join(stale) or "as they are")


if __name__ == "__main__":
    main()
