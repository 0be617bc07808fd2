"""What the time of the assembler depends on: ptxas over generated texts, and over folders of PTX from two builds. No GPU here.

usage: assembler.py texts [FILTER]              generated texts in which one property varies, as a table; FILTER is a regular expression
       assembler.py compare BEFORE NOW          folders of PTX files of the same names (`.ci/hashes --texts`, `builds.py prepare`)
       assembler.py phases FOLDER               the shares of parsing, optimising and writing
PTXAS names the assembler (that of PATH), TARGET the target of the texts (sm_90a), ROUNDS how often each is assembled (5). Times are
processor time, the least of all rounds, in which all texts alternate, less that of an empty kernel. COUNT=1 counts instructions of
ptxas instead (valgrind): exact, and fifty times as slow.
"""
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PTXAS = os.environ.get("PTXAS") or shutil.which("ptxas")
TARGET = os.environ.get("TARGET", "sm_90a")
ROUNDS = int(os.environ.get("ROUNDS", "5"))
COUNT = bool(os.environ.get("COUNT"))


def once(path, cubin):
    """Milliseconds of processor time that ptxas takes for a file, or millions of its instructions."""
    target = re.search(r"^\.target (\w+)", path.read_text(), re.M)[1]
    command = [PTXAS, f"-arch={target}", str(path), "-o", str(cubin)]
    if COUNT:
        command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", *command]
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(command, stdout=said, stderr=said)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        words = said.read().decode(errors="replace")
    if child.returncode:
        sys.exit(f"{path}: {words[:400]}")
    if COUNT:
        return int(re.search(r"I\s+refs:\s+([\d,]+)", words)[1].replace(",", "")) / 1e6
    return 1e3 * (used.ru_utime + used.ru_stime)


def least(paths):
    """The least time of each file, less that of an empty kernel of its target; leaves a cubin beside it."""
    with tempfile.TemporaryDirectory() as folder:
        targets = {path: re.search(r"^\.target (\w+)", path.read_text(), re.M)[1] for path in paths}
        empty = {}
        for target in set(targets.values()):
            empty[target] = Path(folder) / f"{target}.ptx"
            empty[target].write_text(f".version 8.0\n.target {target}\n.address_size 64\n.visible .entry k()\n{{\n\tret;\n}}\n")
        jobs = [(path, path.with_suffix(".cubin")) for path in [*empty.values(), *paths]]
        times = {path: [] for path, _ in jobs}
        rounds = 1 if COUNT else ROUNDS
        with ThreadPoolExecutor(os.cpu_count() if COUNT else 1) as pool:
            for (path, _), used in zip(jobs * rounds, pool.map(lambda job: once(*job), jobs * rounds)):
                times[path].append(used)
        return {path: min(times[path]) - min(times[empty[target]]) for path, target in targets.items()}


# The texts: a kernel that loads 64 numbers, does something and stores them.

def kernel(body, registers=(), bound="", params=2, regs=None):
    """A kernel around lines; `registers` are numbers of 32 bits, of 64 bits, of floats and of predicates."""
    counts = dict(zip(("%r", "%rd", "%f", "%p"), registers or (64, 64, 4096, 64)))
    kinds = {"%r": "b32", "%rd": "b64", "%f": "f32", "%p": "pred"}
    declared = "".join(f"\t.reg .{kinds[name]} {name}<{count}>;\n" for name, count in counts.items())
    listed = ", ".join(f".param .u64 p{i}" for i in range(params))
    start = "\tld.param.u64 %rd0, [p0];\n\tld.param.u64 %rd1, [p1];\n\tmov.u32 %r0, %tid.x;\n"
    start += "\tmad.wide.u32 %rd0, %r0, 16, %rd0;\n\tmad.wide.u32 %rd1, %r0, 16, %rd1;\n"
    return (f".version 8.0\n.target {TARGET}\n.address_size 64\n.extern .shared .align 16 .b8 smem[];\n.visible .entry k({listed})\n"
            f".reqntid 128, 1, 1\n{bound}\n{{\n{declared}{start}" + "".join(f"{line}\n" for line in body) + "\tret;\n}\n")


def loads(count, at=8192):
    return [f"\tld.global.f32 %f{i}, [%rd0+{at * i}];" for i in range(count)]


def stores(count, at=8192):
    return [f"\tst.global.f32 [%rd1+{at * i}], %f{i};" for i in range(count)]


def chain(count, live, names=None):
    """`count` multiplications and additions over `live` numbers; each result has a name of its own if `names`."""
    place = list(range(live))
    lines = []
    for i in range(count):
        to = live + i if names else place[i % live]
        lines.append(f"\tfma.rn.f32 %f{to}, %f{place[i % live]}, %f{place[(i * 7 + 1) % live]}, %f{place[(i * 3 + 2) % live]};")
        place[i % live] = to
    return lines, place


def straight(count, live=16, names=False, mask="", more=lambda i: []):
    lines, place = chain(count, live, names)
    mixed = [x for i, line in enumerate(lines) for x in (line.replace("\t", "\t" + mask, 1), *more(i))]
    return [*loads(live), *mixed, *(f"\tst.global.f32 [%rd1+{8192 * i}], %f{place[i]};" for i in range(live))]


def blocks(count, total, kind):
    """`total` instructions of which every (total / count)th, four of them, depend on a predicate: by branches or by guards."""
    lines, _ = chain(total, 16)
    body = [*loads(16), "\tld.global.u32 %r1, [%rd0];"]
    for i in range(count):
        part = lines[i * total // count:(i + 1) * total // count]
        body += [f"\tand.b32 %r2, %r1, {1 << i % 31};", "\tsetp.ne.u32 %p1, %r2, 0;"]
        if kind == "branches":
            body += [f"\t@!%p1 bra $L{i};", *part[:4], f"$L{i}:"]
        elif kind == "labels":
            body += [f"$L{i}:", *part[:4]]
        else:
            body += [line.replace("\t", "\t@%p1 ") for line in part[:4]]
        body += part[4:]
    return [*body, *stores(16)]


def addresses(count, kind):
    """Loads and stores of `count` numbers whose addresses are made in a way."""
    body = []
    for i in range(count):
        offset = 4096 * i
        if kind == "base and number":
            way, to = [], [f"[%rd0+{offset}]", f"[%rd1+{offset}]"]
        elif kind == "64-bit sums":
            way, to = [f"\tadd.s64 %rd4, %rd0, {offset};", f"\tadd.s64 %rd5, %rd1, {offset};"], ["[%rd4]", "[%rd5]"]
        elif kind == "32-bit index, widened":
            way = [f"\tadd.s32 %r4, %r0, {offset // 4};", "\tmad.wide.s32 %rd4, %r4, 4, %rd2;", "\tmad.wide.s32 %rd5, %r4, 4, %rd3;"]
            to = ["[%rd4]", "[%rd5]"]
        else:
            way = [f"\tadd.s32 %r4, %r0, {offset // 4};", "\tcvt.s64.s32 %rd6, %r4;", "\tshl.b64 %rd6, %rd6, 2;",
                   "\tadd.s64 %rd4, %rd2, %rd6;", "\tadd.s64 %rd5, %rd3, %rd6;"]
            to = ["[%rd4]", "[%rd5]"]
        body += [*way, f"\tld.global.f32 %f0, {to[0]};", "\tadd.f32 %f0, %f0, %f0;", f"\tst.global.f32 {to[1]}, %f0;"]
    return ["\tmov.u64 %rd2, %rd0;", "\tmov.u64 %rd3, %rd1;", *body]


def memory(count, kind):
    """Accesses of `count` numbers of 4 bytes."""
    at = lambda base, i: f"[{base}+{4096 * i}]" if "%rd" in base else f"[{base}+{4 * i}]"
    value = lambda i: f"\tadd.f32 %f{i}, %f{i}, %f{i};"
    if kind.startswith("stores"):
        mask = "\t@%p0 " if "guarded" in kind else "\t"
        start = ["\tld.global.f32 %f0, [%rd0];", "\tsetp.gt.f32 %p0, %f0, 0f00000000;"]
        around = (["\t@!%p0 bra $L;"], ["$L:"]) if "branch" in kind else ([], [])
        return [*start, *around[0], *(f"{mask}st.global.f32 {at('%rd1', i)}, %f0;" for i in range(count)), *around[1]]
    if kind == "loads, summed":
        each = (line for i in range(count) for line in (f"\tld.global.f32 %f1, {at('%rd0', i)};", "\tadd.f32 %f0, %f0, %f1;"))
        return ["\tmov.f32 %f0, 0f00000000;", *each, "\tst.global.f32 [%rd1], %f0;"]
    space, source, to = {"global": ("global", "%rd0", "%rd1"), "shared, by name": ("shared", "smem", "smem+65536"),
                         "shared, by a register": ("shared", "%r0", "%r1")}[kind.split(" in groups of ")[0]]
    group = int(kind.split()[-1])
    body = ["\tadd.s32 %r1, %r0, 65536;"]
    for first in range(0, count, group):
        row = range(first, min(first + group, count))
        body += [f"\tld.{space}.f32 %f{i}, {at(source, i)};" for i in row]
        body += [value(i) for i in row]
        body += [f"\tst.{space}.f32 {at(to, i)}, %f{i};" for i in row]
    return body


def wide(words, width):
    body = []
    for i in range(0, words, width):
        names = ", ".join(f"%f{j}" for j in range(width))
        vector, listed = (f".v{width}", f"{{{names}}}") if width > 1 else ("", names)
        body += [f"\tld.global{vector}.f32 {listed}, [%rd0+{2048 * i}];"]
        body += [f"\tadd.f32 %f{j}, %f{j}, %f{j};" for j in range(width)]
        body += [f"\tst.global{vector}.f32 [%rd1+{2048 * i}], {listed};"]
    return body


def loop(total, body_size, pragma=False, counted=True):
    """`total` instructions in rounds of a loop with a body of so many."""
    lines, _ = chain(body_size, 16)
    limit = str(total // body_size) if counted else "%r9"
    head = ["\tmov.u32 %r8, 0;"] if counted else ["\tmov.u32 %r8, 0;", "\tld.global.u32 %r9, [%rd0];"]
    mark = ['\t.pragma "nounroll";'] if pragma else []
    return [*loads(16), *head, "$LOOP:", *mark, *lines, "\tadd.s32 %r8, %r8, 1;", f"\tsetp.lt.s32 %p0, %r8, {limit};", "\t@%p0 bra $LOOP;",
            *stores(16)]


def products(count, sums):
    """Products of fragments, `sums` blocks of sums in turn."""
    body = [*loads(8), *(f"\tmov.b32 %r{i + 10}, %f{i};" for i in range(8))]
    for i in range(count):
        at = 16 + 4 * (i % sums)
        held = ", ".join(f"%f{at + j}" for j in range(4))
        body.append(f"\tmma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{{held}}}, {{%r10, %r11, %r12, %r13}}, {{%r14, %r15}}, {{{held}}};")
    begin = [f"\tmov.f32 %f{16 + i}, 0f00000000;" for i in range(4 * sums)]
    return [*begin, *body, *(f"\tst.global.f32 [%rd1+{8192 * i}], %f{16 + i};" for i in range(4 * sums))]


def spread(count, op):
    """`count` instructions of a kind, spread over 16 numbers: d is written, a and b are read."""
    begin = [f"\tmov.b32 %r{i + 16}, %f{i};\n\tcvt.u64.u32 %rd{i + 16}, %r{i + 16};" for i in range(16)]
    lines = [re.sub(r"%(r|rd|f)([dab])\b", lambda x: f"%{x[1]}{16 * (x[1] != 'f') + {'d': i, 'a': i * 7 + 1, 'b': i * 3 + 2}[x[2]] % 16}", op)
             .replace("AT", str(16 * (i % 64))) for i in range(count)]
    end = [f"\tst.global.f32 [%rd1+{4 * i}], %f{i};\n\tst.global.u32 [%rd1+{4 * i + 64}], %r{i + 16};\n"
           f"\tst.global.u64 [%rd1+{8 * i + 128}], %rd{i + 16};" for i in range(16)]
    return [*loads(16), *begin, "\tsetp.gt.f32 %p1, %f0, %f1;", *lines, *end]


KINDS = {
    "nothing": "",
    "fma.rn.f32": "\tfma.rn.f32 %fd, %fa, %fb, %fd;",
    "max.f32": "\tmax.f32 %fd, %fa, %fb;",
    "add.s32": "\tadd.s32 %rd, %ra, %rb;",
    "add.s64": "\tadd.s64 %rdd, %rda, %rdb;",
    "mul.lo.s32": "\tmul.lo.s32 %rd, %ra, %rb;",
    "cvt.rn.f16x2.f32": "\tcvt.rn.f16x2.f32 %rd, %fa, %fb;",
    "setp, selp": "\tsetp.gt.f32 %p1, %fa, %fb;\n\tselp.f32 %fd, %fa, %fb, %p1;",
    "ex2.approx": "\tex2.approx.f32 %fd, %fa;",
    "ex2.approx.ftz": "\tex2.approx.ftz.f32 %fd, %fa;",
    "div.full": "\tdiv.full.f32 %fd, %fa, %fb;",
    "div.rn": "\tdiv.rn.f32 %fd, %fa, %fb;",
    "rem.u32": "\trem.u32 %rd, %ra, %rb;",
    "shfl.sync": "\tshfl.sync.bfly.b32 %rd, %ra, 1, 31, -1;",
    "bar.sync": "\tbar.sync 0;",
    "ld.shared": "\tld.shared.f32 %fd, [smem+AT];",
    "st.shared": "\tst.shared.f32 [smem+AT], %fd;",
    "ld.global": "\tld.global.f32 %fd, [%rd0+AT];",
    "ld.global, guarded": "\t@%p1 ld.global.f32 %fd, [%rd0+AT];",
    "atom.global.add": "\tatom.global.add.u32 %rd, [%rd0+AT], %ra;",
    "red.global.add": "\tred.global.add.f32 [%rd0+AT], %fd;",
    "cp.async": "\tcp.async.cg.shared.global [smem+AT], [%rd0+AT], 16;",
    "ldmatrix": "\tldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r16, %r17, %r18, %r19}, [smem+AT];",
}


def texts():
    """(experiment, value, text)."""
    for n in (250, 500, 1000, 2000, 4000, 8000):
        yield "instructions, 16 live", n, kernel(straight(n))
    for live in (4, 16, 32, 64, 96, 128, 160, 192, 224):
        yield "live registers, 2000 instructions", live, kernel(straight(2000, live))
    for live in (48, 96):
        for words in ("", ".maxnreg 168", ".maxnreg 64", ".minnctapersm 1", ".minnctapersm 4"):
            yield f"bounds, 2000 instructions, {live} live", words or "none", kernel(straight(2000, live), bound=words)
    for kind in ("guards", "labels", "branches"):
        for n in (16, 64, 128, 256, 400):
            yield f"2000 instructions with some behind {kind}", n, kernel(blocks(n, 2000, kind))
    for names in (False, True):
        yield "names of registers, 2000 instructions", "a name for each result" if names else "used again", kernel(straight(2000, names=names))
    for count in (16, 400, 4000, 40000):
        yield "declared registers, 2000 instructions", count, kernel(straight(2000), (16, 16, max(16, count), 16))
    mov = lambda i: [f"\tmov.f32 %f{20 + i % 16}, %f{i % 16};", f"\tmov.f32 %f{i % 16}, %f{20 + i % 16};"]
    number = lambda i: ["\tmov.f32 %f20, 0f3F000000;", f"\tmul.f32 %f{i % 16}, %f{i % 16}, %f20;"]
    for name, more in (("none", lambda i: []), ("two movs there and back behind each", mov), ("a line of comment behind each", lambda i: ["\t// " + 60 * "x"]),
                       ("number by mov, multiplied", number), ("number in the instruction", lambda i: [f"\tmul.f32 %f{i % 16}, %f{i % 16}, 0f3F000000;"]),
                       ("dead addition behind each", lambda i: [f"\tadd.f32 %f30, %f{i % 16}, %f{(i + 5) % 16};"]),
                       ("the same addition twice", lambda i: [f"\tadd.f32 %f{31 + k}, %f0, %f1;" for k in range(2)])):
        yield "what stands behind each of 2000", name, kernel(straight(2000, more=more))
    for kind in ("base and number", "64-bit sums", "32-bit index, widened", "32-bit index, converted, shifted"):
        yield "addresses of 400 loads and stores", kind, kernel(addresses(400, kind))
    for kind in ("stores", "stores, guarded", "stores behind a branch", "loads, summed", "global in groups of 1", "global in groups of 32",
                 "shared, by name in groups of 1", "shared, by a register in groups of 1"):
        for count in (100, 200, 400, 800):
            yield f"accesses, {kind}", count, kernel(memory(count, kind))
    for width in (1, 2, 4):
        yield "width of 1600 words loaded and stored", width, kernel(wide(1600, width))
    for size in (2000, 500, 125, 25):
        for mark, counted in ((False, True), (True, True), (False, False), (True, False)):
            name = f"2000 instructions in rounds of a loop, {'known number' if counted else 'unknown number'}{', nounroll' if mark else ''}"
            yield name, size, kernel(loop(2000, size, mark, counted))
    for count in (64, 256, 1024):
        for sums in (4, 16, 32):
            yield f"products, {4 * sums} sums", count, kernel(products(count, sums))
    for name, op in KINDS.items():
        yield "kinds, 200 of each", name, kernel(spread(200, op))
    for count in (2, 8, 32):
        yield "parameters, 250 instructions", count, kernel(straight(250), params=count)


def table(pattern):
    chosen = [x for x in texts() if re.search(pattern, x[0])]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{i}.ptx" for i in range(len(chosen))]
        for path, (_, _, text) in zip(paths, chosen):
            path.write_text(text)
        times, last = least(paths), None
        for path, (name, value, _) in zip(paths, chosen):
            print(*([f"{name}:"] if name != last else []), f"    {value}: {times[path]:.1f}", sep="\n", flush=True)
            last = name


def compare(before, now):
    names = sorted({x.name for x in before.glob("*.ptx")} & {x.name for x in now.glob("*.ptx")})
    changed = [name for name in names if (before / name).read_bytes() != (now / name).read_bytes()]
    times = least([folder / name for name in changed for folder in (before, now)])
    logs = []
    for name in changed:
        a, b = times[before / name], times[now / name]
        logs.append(math.log(b / a))
        same = (before / name).with_suffix(".cubin").read_bytes() == (now / name).with_suffix(".cubin").read_bytes()
        print(f"{name:60} {a:8.1f} {b:8.1f} {b / a:.3f}{' same code' if same else ''}", flush=True)
    mean = lambda count: math.exp(sum(logs) / max(count, 1))
    print(f"{len(names)} kernels, {len(changed)} other texts: {mean(len(logs)):.3f} of the time for these, {mean(len(names)):.3f} for all")


def phases(folder):
    total = {}
    for path in sorted(folder.glob("*.ptx")):
        target = re.search(r"^\.target (\w+)", path.read_text(), re.M)[1]
        words = subprocess.run([PTXAS, "--compiler-stats", "t,p", f"-arch={target}", path, "-o", "/dev/null"], capture_output=True, text=True)
        for name, value in re.findall(r"^(\w+)-time\s*:\s*([\d.]+) ms", words.stdout + words.stderr, re.M):
            total[name] = total.get(name, 0) + float(value)
    everything = sum(total.values())
    print(*(f"{name}: {value:.0f} ms, {100 * value / everything:.1f} %" for name, value in total.items()), sep="\n")


if __name__ == "__main__":
    if not PTXAS:
        sys.exit("no ptxas: name it in PTXAS")
    match sys.argv[1:]:
        case ["texts", *more]:
            table(*more or [""])
        case ["compare", before, now]:
            compare(Path(before), Path(now))
        case ["phases", folder]:
            phases(Path(folder))
        case _:
            sys.exit(__doc__)
