//! What the command says of tensor maps: why there are none, which number is at fault, and which variant ran.

use super::{Folder, check_failure, stderr, stdout, tilelift};

const PRODUCT: &str = "import triton
import triton.language as tl

@triton.jit
def mm(a, b, c, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        at = start + tl.arange(0, BK)
        x = tl.load(a + i[:, None] * sam + at * sak, (i[:, None] < M) & (at < K), 0.0)
        y = tl.load(b + at[:, None] * sbk + j * sbn, (at[:, None] < K) & (j < N), 0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + i[:, None] * scm + j * scn, acc.to(tl.float16), (i[:, None] < M) & (j < N))

@triton.jit
def add(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, i < n) + 1, i < n)

@triton.jit
def added(a, c, K):
    i = tl.arange(0, 64)
    acc = tl.zeros((64, 64), tl.float32)
    for start in range(0, K, 64):
        x = tl.load(a + i[:, None] * 64 + start + i)
        acc = tl.dot(x, x, acc)
    tl.atomic_add(c + i[:, None] * 64 + i, acc, sem=\"relaxed\")

@triton.jit
def odd(a, b, c, lengths, K, least):
    i = tl.arange(0, 64)
    n = tl.load(lengths + tl.program_id(0))
    acc = tl.zeros((64, 64), tl.float32)
    for start in range(0, K, 64):
        at = start + i
        x = tl.load(a + i[:, None] * 64 + at, (i[:, None] != 3) & (at < K), 0.0)
        y = tl.load(b + at[:, None] * 64 + i, (at[:, None] < K) & (i < n), 0.0)
        acc = tl.dot(x, y, acc)
    tl.store(c + i[:, None] * 64 + i, acc, acc > least)
";

/// Strides as far as the mistake in question.
const FINE: &str = "i32:8, 1, i32:8, 1, i32:8, 1";

fn compile(rest: &[&str]) -> String {
    let mut args = vec!["compile", "-", "--lang", "py"];
    args.extend(rest);
    if !rest.contains(&"-t") {
        args.extend(["-t", "sm_90a"]);
    }
    let output = tilelift(&args, PRODUCT);
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

/// The lines about loads and stores of the product.
fn told(pointers: &str, sizes: &str, strides: &str, emit: &str) -> Vec<String> {
    let signature = format!("{pointers}, {sizes}, {strides}, 64, 64, 32");
    let text = compile(&["-n", "mm", "-s", &signature, "--emit", emit]);
    let lines = text.lines().filter(|line| line.contains(" in line "));
    let lines = lines.filter(|line| line.contains(": by "));
    lines.map(str::to_owned).collect()
}

#[test]
fn refusals_name_what_is_at_fault_and_what_helps() {
    let aligned = "*fp16:16, *fp16:16, *fp16:16";
    let sizes = "i32, i32, i32";
    let stride = "a stride is not known to be a multiple of 16 bytes: ";
    for (pointers, sizes, strides, line, words) in [
        (
            aligned,
            sizes,
            "i32, 1, i32:2, 1, i32:8, 1",
            0,
            &[
                stride,
                "it is `sam` elements of 2 bytes, of which no multiple is known; `sam: i32:8` in the signature would promise it",
            ][..],
        ),
        (
            aligned,
            sizes,
            "i32, 1, i32:2, 1, i32:8, 1",
            1,
            &[
                stride,
                "it is `sbk` elements of 2 bytes, known to be a multiple of 4 bytes; `sbk: i32:8` in",
            ],
        ),
        (
            aligned,
            sizes,
            "i32:8, 1, 66, 1, u16, 1",
            1,
            &[stride, "it is 66 elements of 2 bytes, which are 132 bytes"],
        ),
        (
            aligned,
            sizes,
            "i32:8, 1, 66, 1, u16, 1",
            2,
            &[stride, "`scm: u16:8`"],
        ),
        (
            aligned,
            sizes,
            "i32, i32, i32, i32, i32, i32",
            0,
            &[
                "not exactly one dimension",
                "`sam` along dimension 0 and `sak` along dimension 1; `i32:1` in the signature",
            ],
        ),
        (
            "*fp16:16, *fp16, *fp16:16",
            sizes,
            FINE,
            1,
            &["is not known to start at a multiple of 16 bytes: it is `b`; with `:16`"],
        ),
        (
            aligned,
            "i32, u32, i32",
            FINE,
            1,
            &["< N` has no sign (u32, u64) and may wrap; give sizes and strides that have one"],
        ),
        (
            aligned,
            "i32, 50, i32",
            FINE,
            2,
            &["stores 16 bytes at a time", "they have 100 bytes"],
        ),
    ] {
        for emit in ["maps", "stats"] {
            let all = told(pointers, sizes, strides, emit);
            assert_eq!(all.len(), 3, "{all:?}");
            for words in words {
                assert!(all[line].contains(words), "{words}\n{all:?}");
            }
        }
    }
    let explained = tilelift(
        &[
            "explain",
            "-",
            "--lang",
            "py",
            "-t",
            "sm_90a",
            "-n",
            "mm",
            "-s",
            &format!("{aligned}, {sizes}, i32, 1, i32, 1, i32, 1, 64, 64, 32"),
        ],
        PRODUCT,
    );
    assert!(stdout(&explained).contains("`sam: i32:8` in the signature"));
}

#[test]
fn masks_and_bounds_are_told_by_their_odd_part() {
    let text = compile(&[
        "-n",
        "odd",
        "-s",
        "*fp16:16, *fp16:16, *fp32:16, *i32, i32, fp32",
        "--emit",
        "maps",
    ]);
    for words in [
        "load in line 37: by pointers, because its mask is no conjunction of upper bounds of its indices: it has `arange(0, 64) != 3`",
        "load in line 38: by pointers, because the bound of an index is not made of parameters: it is made of `<what is loaded in line 33>`",
        "store in line 40: by pointers, because its mask is no conjunction of upper bounds of its indices: it has `<the comparison in line 40>`",
    ] {
        assert!(text.contains(words), "{words}\n{text}");
    }
}

#[test]
fn a_sum_with_memory_is_called_what_it_is() {
    let text = compile(&[
        "-n",
        "added",
        "-s",
        "*fp16:16, *fp32, i32",
        "--emit",
        "maps",
    ]);
    assert!(
        text.contains(
            "atomic_add in line 28: by pointers, because the tensor is not known to start"
        ),
        "{text}"
    );
}

#[test]
fn where_there_are_no_maps_it_is_said_why() {
    let signature = format!("*fp16:16, *fp16:16, *fp16:16, i32, i32, i32, {FINE}");
    let of = |blocks: &str, rest: &[&str]| {
        let signature = format!("{signature}, {blocks}");
        let mut args = vec!["-n", "mm", "-s", &signature, "--emit", "maps"];
        args.extend(rest);
        compile(&args)
    };
    for (text, words) in [
        (
            compile(&["-n", "add", "-s", "*fp32, i32, 64", "--emit", "maps"]),
            "no tensor maps: the kernel multiplies no matrices;",
        ),
        (
            of("64, 64, 32", &["-w", "2"]),
            "(wgmma): the kernel has 2 (num_warps)\n",
        ),
        (
            of("32, 64, 32", &[]),
            "(wgmma): the product in line 13 has 32 rows, and 64 are needed\n",
        ),
        (
            of("64, 64, 32", &["-t", "sm_90"]),
            "which sm_90a has and sm_90 has not\n",
        ),
        (
            of("64, 64, 32", &["--promote", "never"]),
            "(promote never)\n",
        ),
    ] {
        assert!(
            text.starts_with("no tensor maps: ") && text.contains(words),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

fn run(signature: &str, line: &str) -> String {
    let output = tilelift(
        &[
            "run", "-", "--lang", "py", "-t", "sm_90a", "-n", "mm", "-s", signature, "--args", line,
        ],
        PRODUCT,
    );
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn a_run_says_which_variant_ran() {
    let signature = format!("*fp16:16, *fp16:16, *fp16:16, i32, i32, i32, {FINE}, 64, 64, 32");
    let buffers = "grid(1) a=f16[4096] zeros b=f16[4096] zeros c=f16[4096] zeros";
    for (numbers, words) in [
        (
            "M=64 N=64 K=64 sam=64 sbk=64 scm=64",
            "on 3 schedules, with tensor maps\n",
        ),
        (
            "M=64 N=64 K=0 sam=64 sbk=64 scm=64",
            "on 3 schedules, without tensor maps: `1 <= K` does not hold, as `K` is 0\n",
        ),
    ] {
        let table = run(&signature, &format!("{buffers} {numbers}"));
        assert!(table.contains(words), "{table}");
    }
}

#[test]
fn parameters_that_are_fixed_are_known_by_name() {
    let line = |n: &str| format!("grid(1) x=f32[4] zeros {n}");
    let run = |line: &str| {
        let args = [
            "run",
            "-",
            "--lang",
            "py",
            "-n",
            "add",
            "-s",
            "*fp32, i32:1, 64",
            "--args",
            line,
        ];
        tilelift(&args, PRODUCT)
    };
    for n in ["", "n=1"] {
        let output = run(&line(n));
        assert!(output.status.success(), "{n}: {}", stderr(&output));
    }
    let told = stderr(&run(&line("n=2")));
    assert!(
        told.contains("`n` is fixed: the signature makes it the constant 1"),
        "{told}"
    );
    let told = stderr(&run(&line("N=2")));
    assert!(told.contains("has no parameter `N`; it takes x"), "{told}");
}

#[test]
fn all_run_lines_are_judged() {
    let folder = Folder::new();
    let lines = "
# run: ad \"*fp32, i32, 64\" : grid(1) x=f32[4] zeros n=4
# run: add \"*fp32, I32, 64\" : grid(1) x=f32[4] zeros n=4
# run: add \"*fp32, i32, 64\" : grid(1) x=f32[4] zeros n=4 ; expect x = [1,1,1,2]
";
    let path = folder.file("k.py", &(PRODUCT.to_owned() + lines));
    let file = path.to_str().expect("a name");
    for args in [&["run", file][..], &["test", file]] {
        let output = tilelift(args, "");
        assert_eq!(output.status.code(), Some(1));
        let told = stderr(&output);
        for words in [
            "there is no kernel `ad`",
            "did you mean `i32`?",
            "4 elements are not equal",
        ] {
            assert!(told.contains(words), "{words}\n{told}");
        }
        assert!(!told.contains("--bless leaves"), "{told}");
    }
    let before = std::fs::read_to_string(&path).expect("it is there");
    let told = stderr(&tilelift(&["test", "--bless", file], ""));
    assert!(
        told.contains("--bless leaves `# run:` lines as they are"),
        "{told}"
    );
    assert_eq!(std::fs::read_to_string(&path).ok(), Some(before));
}

#[test]
fn more_lines_than_a_log_holds_are_printed() {
    let text = "import triton
import triton.language as tl

@triton.jit
def k(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.device_print(\"x\", tl.load(x + i))
";
    let run = |more: &[&str], line: &str| {
        let mut args = vec![
            "run",
            "-",
            "--lang",
            "py",
            "-n",
            "k",
            "-s",
            "*fp32, 4096",
            "--args",
            line,
        ];
        args.extend(more);
        tilelift(&args, text)
    };
    let line = "grid(1) x=f32[4096] iota(0)";
    let output = run(&[], line);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = stdout(&output);
    assert_eq!(table.matches("\n  prints ").count(), 65, "{table}");
    assert!(table.contains("idx (63) x: 63.0\n"), "{table}");
    assert!(
        table.contains("and 4032 lines more (--prints 4096 shows them)\n"),
        "{table}"
    );
    let all = stdout(&run(&["--prints", "4096"], line));
    assert_eq!(all.matches("\n  prints ").count(), 4096);
}

#[test]
fn names_of_a_descriptor_are_told() {
    let text = "import triton
import triton.language as tl

@triton.jit
def k(d, out):
    i = tl.arange(0, 16)
    tl.store(out + i[:, None] * 16 + i, d.load([0, 0]))
";
    let run = |rest: &str| {
        let line = format!("grid(1) out=f32[256] poison {rest}");
        let args = [
            "run",
            "-",
            "--lang",
            "py",
            "-n",
            "k",
            "-s",
            "tensordesc<fp32[16, 16]>, *fp32",
            "--args",
            &line,
        ];
        tilelift(&args, text)
    };
    let takes = "takes d, d_size0, d_size1, d_stride0, out";
    for wrong in ["d_shape0=16", "d.base=16"] {
        let told = stderr(&run(wrong));
        assert!(told.contains(takes), "{told}");
    }
    let right = run("d=f32[256] iota(0) d_size0=16 d_size1=16 d_stride0=16");
    assert!(right.status.success(), "{}", stderr(&right));
    let help = stdout(&tilelift(&["run", "--help"], ""));
    assert!(
        help.contains("`d_size0`, `d_size1`, .. are the tensor's extents"),
        "{help}"
    );
    check_failure(
        &["run", "-", "--lang", "py", "-s", "i32"],
        text,
        2,
        "give --args",
    );
}
