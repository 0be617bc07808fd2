//! `tilelift reduce`.

use super::{Folder, KERNEL, check_failure, stderr, stdout, text, tilelift};

/// A kernel with much beside what is wrong with it: a block that no thread can hold.
const LARGE: &str = r#"; A comment.
; run: grid(1) x=f32[256] normal(1) n=100
kernel @large(v0 "x": ptr<f32> {divisible = 16}, v1 "n": i32) warps(2) {
block0:
    v2 = arange {start = 0} : i32[256]
    v3 = splat v1 : i32[256]
    v4 = icmp v2, v3 {ipred = slt} : i1[256]
    v5 = splat v0 : ptr<f32>[256]
    v6 = addptr v5, v2 : ptr<f32>[256]
    v7 = load v6, v4 : f32[256]
    v8 = fadd v7, v7 : f32[256]
    store v6, v8, v4
    v9 = const {value = 0} : i32
    v10 = const {value = 8} : i32
    v11 = const {value = 1} : i32
    v12 = for v9, v10, v11, v1 : i32 {
    block1(v13: i32, v14: i32):
        v15 = iadd v13, v14 : i32
        v16 = arange {start = 0} : i32[1048576]
        v17 = splat v15 : i32[1048576]
        v18 = iadd v16, v17 : i32[1048576]
        v19 = splat v0 : ptr<f32>[1048576]
        v20 = addptr v19, v18 : ptr<f32>[1048576]
        v21 = icmp v18, v17 {ipred = sgt} : i1[1048576]
        v22 = load v20, v21 : f32[1048576]
        store v20, v22, v21
        yield v15
    }
    return
}
"#;

#[test]
fn a_failing_kernel_is_reduced() {
    let folder = Folder::new();
    let (input, small) = (
        folder.file("large.tir", LARGE),
        folder.0.path().join("small.tir"),
    );
    let paths = [&input, &small].map(|p| p.to_str().expect("plain"));
    let words = "more than 8192";
    let args = [
        "reduce",
        paths[0],
        "-t",
        "sm_80",
        "--message",
        words,
        "-o",
        paths[1],
    ];
    let output = tilelift(&args, "");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    assert!(
        stderr(&output).contains(": 4 instructions of 23 are left"),
        "{}",
        stderr(&output)
    );
    assert_eq!(folder.names(), ["large.tir", "small.tir"]);
    let reduced = text(&small);
    assert!(reduced.starts_with("; test: run sm_80\n"), "{reduced}");
    assert!(
        reduced.contains("; run: grid(1) x=f32[256] normal(1) n=100\n"),
        "{reduced}"
    );
    // The store, what it stores, the end, and what these need.
    let lines = reduced.lines().filter(|line| line.starts_with("    "));
    assert_eq!(lines.count(), 4, "{reduced}");
    check_failure(&["compile", paths[1], "-t", "sm_80"], "", 1, words);
    // What it was compiled with stays.
    let how = [
        "--no-fp-fusion",
        "--debug",
        "--line-info",
        "--maxnreg",
        "64",
        "--promote",
        "never",
    ];
    let output = tilelift(
        &[&["reduce", paths[1], "-t", "sm_80"], &how[..]].concat(),
        "",
    );
    let words = "; test: run sm_80 no-fp-fusion no-promotion debug line-info maxnreg=64\n";
    assert!(stdout(&output).starts_with(words), "{}", stdout(&output));
    let looked = ["reduce", paths[1], "-t", "sm_80", "--check", "refused"];
    let other = [&looked[..], &["--message", "other words"]].concat();
    let words = "error: the kernel compiles with a message that contains `other words`";
    check_failure(&other, "", 1, words);
    // It cannot get smaller.
    let output = tilelift(&["reduce", paths[1], "-t", "sm_80"], "");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output), reduced);
}

#[test]
fn a_difference_is_reduced_and_what_is_right_is_not() {
    // In which order the sum is formed is left open, and bits do not allow for it.
    let sum = "v23 = fadd v7, v7 : f32[256]
    v24 = reduce v23 {axis = 0} : f32 {
    block1(v25: f32, v26: f32):
        v27 = fadd v25, v26 : f32
        yield v27
    }
    v8 = splat v24";
    let loose = KERNEL.replace("v8 = fadd v7, v7", sum);
    let run = "; run: grid(1) x=f32[256] normal(1) n=256 ; expect x within exact\n";
    let output = tilelift(
        &["reduce", "-", "--check", "differs"],
        &format!("{run}{loose}"),
    );
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("emulator (seed 0): "),
        "{}",
        stderr(&output)
    );
    let reduced = stdout(&output);
    assert!(
        reduced.contains(" = reduce v") && !reduced.contains("icmp"),
        "{reduced}"
    );

    let folder = Folder::new();
    let input = folder.file("k.tir", KERNEL);
    let (input, out) = (
        input.to_str().expect("plain"),
        folder.0.path().join("out.tir"),
    );
    let out = out.to_str().expect("plain");
    check_failure(
        &["reduce", input, "-o", out],
        "",
        1,
        "nothing is wrong with the kernel",
    );
    check_failure(
        &["reduce", input, "--check", "refused", "-o", out],
        "",
        1,
        "the kernel compiles",
    );
    check_failure(
        &["reduce", input, "--check", "differs"],
        "",
        1,
        "no run lines",
    );
    // What a line expects of the kernel is no matter of the compiler.
    let text = format!("{run}{KERNEL}").replace("within exact", "= [1]");
    let expecting = folder.file("expecting.tir", &text);
    let expecting = expecting.to_str().expect("plain");
    let words = "a run line fails without the compiler, and so either the kernel or the line is to be mended, not reduced: \
                 line 1: interpreter: `x`: 1 elements are stated of a buffer of 256";
    check_failure(&["reduce", expecting, "-o", out], "", 1, words);
    // Of several lines the one that fails is named, as it stands in the file.
    let fails = "; run: grid(1) x=f32[256] zeros n=256 ; expect x = [1]\n";
    let two = folder.file("two.tir", &format!("{run}{KERNEL}\n{fails}"));
    let words = words.replace(
        "line 1: ",
        &format!("line {}: ", KERNEL.lines().count() + 3),
    );
    let two = two.to_str().expect("plain");
    check_failure(&["reduce", two, "-o", out], "", 1, &words);
    std::fs::remove_file(two).expect("it is there");
    std::fs::remove_file(expecting).expect("it is there");
    check_failure(&["reduce", input, "--check", "wrong"], "", 2, "differs");
    assert_eq!(folder.names(), ["k.tir"]);
}
