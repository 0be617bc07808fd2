//! `tilelift run`, and what it shares with `tilelift test`.

use std::path::Path;
use std::process::Command;

use super::{Folder, KERNEL, check_failure, stderr, stdout, tilelift};

#[test]
fn run_lines_are_run() {
    let good = KERNEL.to_owned() + "; run: grid(1) x=f32[4] [1,2,3,4] n=3 ; expect x = [2,4,6,4]\n";
    let output = tilelift(&["run", "-", "-t", "sm_80"], &good);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = stdout(&output);
    for row in [
        "line 13: @double on a grid of 1 x 1 x 1 for sm_80\n",
        "\n  interpreter  is the reference\n",
        "\n  x: f32[4]    [2.0, 4.0, 6.0, 4.0]\n",
        "\n  emulator     agrees on 3 schedules\n",
        "\n  GPU          ",
    ] {
        assert!(table.contains(row), "{row}{table}");
    }
    assert!(table.ends_with("\n<stdin>: ok\n"), "{table}");
    let bad = good.replace("[2,4,6,4]", "[2,4,6,8]");
    check_failure(
        &["run", "-"],
        &bad,
        1,
        "<stdin>:13:16: error: interpreter: `x`: 1 of 4 elements are not equal",
    );
    check_failure(&["run", "-"], KERNEL, 1, "no `; run:` line");
}

#[test]
fn endless_loops_end_with_their_line() {
    let text = KERNEL.replace("    return\n", "    v9 = const {value = true} : i1\n    while {\n    block1:\n        condition v9\n    } {\n    block2:\n        yield\n    }\n    return\n")
        + "; run: grid(1) x=f32[4] zeros n=0\n";
    for args in [&["run", "-", "--steps", "5000"][..], &["run", "-"]] {
        let output = tilelift(args, &text);
        assert_eq!(output.status.code(), Some(1));
        let errors = stderr(&output);
        let place = errors.lines().next().unwrap_or("");
        assert!(
            place.starts_with("<stdin>:1")
                && place.contains("steps is reached")
                && place.ends_with("(run of line 21)"),
            "{errors}"
        );
    }
}

/// A sum over a block, whose order the IR leaves open.
pub(crate) fn sum() -> String {
    let sum = "v9 = reduce v7 {axis = 0} : f32 {
    block1(v10: f32, v11: f32):
        v12 = fadd v10, v11 : f32
        yield v12
    }
    v8 = splat v9";
    KERNEL.replace("v8 = fadd v7, v7", sum)
}

#[test]
fn what_ops_leave_open_is_no_difference() {
    let sum = sum();
    let line = |expect: &str| format!("{sum}; run: grid(1) x=f32[256] normal(1) n=256{expect}\n");
    let output = tilelift(&["run", "-"], &line(""));
    let table = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        table.contains("agrees within the bounds of its ops on 3 schedules"),
        "{table}"
    );
    // Bits are compared on request, of the command or of the line; file tests compare bits.
    check_failure(
        &["run", "--exact", "-"],
        &line(""),
        1,
        "`expect NAME within ulp 2` would allow all",
    );
    check_failure(
        &["run", "-"],
        &line(" ; expect x within exact"),
        1,
        "are not equal",
    );
    let test = |expect: &str| format!("; test: run sm_80\n{}", line(expect));
    let output = tilelift(&["test", "-"], &test(""));
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let output = tilelift(&["test", "-"], &test(" ; expect x within stated"));
    assert!(output.status.success(), "{}", stderr(&output));
    // What decides a branch leaves no bounds, and that is said at its place.
    let branch = "v13 = const {value = 1000.0} : f32
    v14 = fcmp v9, v9 {fpred = ogt} : i1
    v15 = fsub v9, v9 : f32
    v16 = fadd v15, v13 : f32
    v17 = fcmp v9, v16 {fpred = ogt} : i1
    v18 = if v17 : f32 {
    block2:
        yield v16
    } {
    block3:
        yield v9
    }
    v8 = splat v18";
    let decided = line("").replace("v8 = splat v9", branch);
    let output = tilelift(&["run", "-"], &decided);
    assert!(output.status.success(), "{}", stderr(&output));
    // The same number within rounding, but not bit for bit.
    let open = decided
        .replace(
            "v13 = const {value = 1000.0} : f32",
            "v13 = const {value = 0.0} : f32",
        )
        .replace("v16 = fadd v15, v13", "v16 = fadd v9, v13")
        .replace("fcmp v9, v16", "fcmp v16, v19")
        .replace(
            "v14 = fcmp v9, v9 {fpred = ogt} : i1",
            "v19 = reduce v7 {axis = 0} : f32 {
    block4(v20: f32, v21: f32):
        v22 = fadd v21, v20 : f32
        yield v22
    }",
        );
    let words = "what line 23 executes or accesses depends on a value that they leave open: state `expect NAME within BOUND`";
    check_failure(&["run", "-"], &open, 1, words);
}

#[test]
fn several_files_are_run_and_all_are_told() {
    let folder = Folder::new();
    let line = "; run: grid(1) x=f32[4] [1,2,3,4] n=3";
    let good = folder.file("good.tir", &format!("{KERNEL}{line}\n"));
    let bad = folder.file(
        "bad.tir",
        &format!("{KERNEL}{line} ; expect x = [0,0,0,0]\n"),
    );
    let good = good.to_str().expect("plain");
    let bad = bad.to_str().expect("plain");
    let output = tilelift(&["run", bad, "/no/such.tir", good], "");
    assert_eq!(output.status.code(), Some(1));
    let errors = stderr(&output);
    assert!(
        errors.contains("bad.tir:13:") && errors.contains("/no/such.tir"),
        "{errors}"
    );
    assert!(
        stdout(&output).ends_with("good.tir: ok\n"),
        "{}",
        stdout(&output)
    );
    let output = tilelift(&["run", good, good], "");
    assert!(output.status.success(), "{}", stderr(&output));
    check_failure(
        &["run", good, bad, "--args", "grid(1)"],
        "",
        2,
        "--args is for one file",
    );
    check_failure(
        &["run", good, bad, "--save", "x.npy"],
        "",
        2,
        "--save is for one file",
    );
}

#[test]
fn grids_are_bounded_by_what_they_run() {
    let text = |grid: &str| format!("{KERNEL}; run: {grid} x=f32[4] zeros n=0\n");
    let words = "has 2147483647 programs, and a run line at most 1048576: run fewer, or allow them with programs(2147483647) in \
                 the line or --programs 2147483647";
    check_failure(&["run", "-"], &text("grid(2147483647)"), 1, words);
    check_failure(
        &["run", "-", "--programs", "3"],
        &text("grid(2,2)"),
        1,
        "has 4 programs",
    );
    check_failure(
        &["run", "-"],
        &text("grid(2,2) programs(3)"),
        1,
        "at most 3",
    );
    let output = tilelift(
        &["run", "-", "--programs", "3"],
        &text("grid(2,2) programs(4)"),
    );
    assert!(output.status.success(), "{}", stderr(&output));
}

/// A file of NumPy, as NumPy writes it.
fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let header = format!("{header:117}\n");
    let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

fn floats(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

#[test]
fn buffers_come_from_files_and_go_to_them() {
    let folder = Folder::new();
    let path = |name: &str| folder.0.path().join(name);
    let write = |name: &str, bytes: &[u8]| std::fs::write(path(name), bytes).expect("writable");
    write(
        "in.npy",
        &npy("<f4", "(2, 3)", &floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
    );
    write("a b.npy", &npy("<f4", "(1,)", &floats(&[1.0])));
    write("ints.npy", &npy("<i4", "(1,)", &[0; 4]));
    write("short.npy", &npy("<f4", "(2,)", &floats(&[1.0])));
    write("text.npy", b"1, 2, 3");
    let run = |args: &str, save: &[&str]| {
        // Names in a file are relative to its folder.
        let file = folder.file("k.tir", &format!("{KERNEL}; run: grid(1) {args}\n"));
        let file = file.to_str().expect("plain").to_owned();
        let mut all = vec!["run", &file];
        for save in save {
            all.extend(["--save", save]);
        }
        tilelift(&all, "")
    };
    let saved = path("x.npy");
    let saved = saved.to_str().expect("plain");
    let output = run("x=@in.npy n=6", &[saved]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("[2.0, 4.0, 6.0, 8.0, 10.0, 12.0]"));
    let expected = npy("<f4", "(2, 3)", &floats(&[2.0, 4.0, 6.0, 8.0, 10.0, 12.0]));
    assert_eq!(std::fs::read(saved).expect("written"), expected);
    let named = format!("x={}", path("other.npy").display());
    let output = run("x=@\"a b.npy\" n=1", &[&named]);
    assert!(output.status.success(), "{}", stderr(&output));
    let expected = npy("<f4", "(1,)", &floats(&[2.0]));
    assert_eq!(std::fs::read(path("other.npy")).expect("written"), expected);
    for (args, words) in [
        ("x=@none.npy n=1", "none.npy: No such file"),
        (
            "x=@ints.npy n=1",
            "ints.npy: the file holds `<i4`, the parameter points to f32",
        ),
        (
            "x=@short.npy n=1",
            "short.npy: 1 elements for the shape [2], which has 2: it is cut short",
        ),
        ("x=@text.npy n=1", "text.npy: this is no file of NumPy"),
        (
            "x=@in.npy n=@in.npy",
            "the parameter is i32 and takes a number",
        ),
        (
            "x=f32[300] poison n=0",
            "not saved, as not all of it was written",
        ),
    ] {
        let output = run(args, &[saved]);
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{args}: {errors}");
        assert!(errors.contains(words), "{args}: {errors}");
    }
    let output = run("x=@in.npy n=1", &["y.npy"]);
    assert!(stderr(&output).contains("there is no buffer `y` to save"));
    // What another program left, in a buffer that held it before.
    for (args, words) in [
        ("x=@\"a b.npy\" n=1 ; expect x = @other.npy", None),
        (
            "x=@in.npy n=5 ; expect x = @x.npy",
            Some(
                "interpreter: `x`: 1 of 6 elements are not equal; the first is [5], 6.0 instead of 12.0",
            ),
        ),
        (
            "x=@in.npy n=5 ; expect x = @x.npy ; expect x within abs 6",
            None,
        ),
        (
            "x=@in.npy n=6 ; expect x = @other.npy",
            Some("1 elements are stated of a buffer of 6"),
        ),
        (
            "x=@in.npy n=6 ; expect x = @none.npy",
            Some("none.npy: No such file"),
        ),
        (
            "x=@in.npy n=6 ; expect n = @x.npy",
            Some("there is no buffer `n`"),
        ),
    ] {
        let output = run(args, &[]);
        let errors = stderr(&output);
        assert_eq!(output.status.success(), words.is_none(), "{args}: {errors}");
        assert!(errors.contains(words.unwrap_or("")), "{args}: {errors}");
    }
}

/// A kernel that adds a number to each element, by way of dynamic shared memory, as another compiler may write it.
const PTX: &str = r"
.version 7.0
.target sm_80
.address_size 64
.extern .shared .align 4 .b8 room[];
.visible .entry shift(.param .u64 shift_param_0, .param .f32 shift_param_1, .param .align 4 .b8 shift_param_2[8]) {
    .reg .b32 %r<5>; .reg .f32 %f<4>; .reg .b64 %rd<4>; .reg .pred %p<2>;
    ld.param.u64 %rd0, [shift_param_0];
    ld.param.f32 %f0, [shift_param_1];
    ld.param.u32 %r2, [shift_param_2+4];
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mad.lo.s32 %r0, %r1, %r3, %r0;
    setp.ge.s32 %p0, %r0, %r2;
    @%p0 bra end;
    mad.wide.u32 %rd1, %r0, 4, %rd0;
    ld.global.f32 %f1, [%rd1];
    add.f32 %f2, %f1, %f0;
    mov.u32 %r3, %tid.x;
    mov.u32 %r4, room;
    mad.lo.u32 %r4, %r3, 4, %r4;
    st.shared.f32 [%r4], %f2;
    ld.shared.f32 %f3, [%r4];
    st.global.f32 [%rd1], %f3;
end:
    ret;
}
";

#[test]
fn any_ptx_runs_on_the_emulator() {
    let folder = Folder::new();
    let file = folder.file("shift.ptx", PTX);
    let file = file.to_str().expect("plain");
    let args =
        "grid(2) block(4) shared(16) param_0=f32[6] iota(0) param_1=0.5 param_2=i32[2] [0,6]";
    let line = format!("{args} ; expect param_0 = [0.5,1.5,2.5,3.5,4.5,5.5]");
    let saved = folder.0.path().join("out.npy");
    let save = format!("param_0={}", saved.display());
    let output = tilelift(&["run", file, "--args", &line, "--save", &save], "");
    assert!(output.status.success(), "{}", stderr(&output));
    let table = stdout(&output);
    assert!(
        table.starts_with("shift on a grid of 2 x 1 x 1 CTAs of 4 x 1 x 1 threads\n")
            && table.contains("param_0: f32[6]  [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]\n"),
        "{table}"
    );
    let expected = npy("<f4", "(6,)", &floats(&[0.5, 1.5, 2.5, 3.5, 4.5, 5.5]));
    assert_eq!(std::fs::read(&saved).expect("written"), expected);
    let left = format!("{args} ; expect param_0 = @\"{}\"", saved.display());
    let output = tilelift(&["run", file, "--args", &left], "");
    assert!(output.status.success(), "{}", stderr(&output));
    let other = left.replace("=0.5", "=0.75");
    let output = tilelift(&["run", file, "--args", &other], "");
    assert!(
        stderr(&output).contains("6 of 6 elements"),
        "{}",
        stderr(&output)
    );
    let output = tilelift(
        &[
            "run",
            file,
            "--args",
            &format!("{other} ; expect param_0 within abs 0.25"),
        ],
        "",
    );
    assert!(output.status.success(), "{}", stderr(&output));
    for (line, words) in [
        (
            "grid(1) param_0=f32[6] zeros param_2=i32[2] zeros",
            "parameter 1, `param_1`, gets no argument; it is .f32, and takes a number",
        ),
        (
            "grid(1) param_0=f32[6] zeros param_1=1 param_2=i32[1] zeros",
            "parameter 2, `param_2`, is an array of 8 bytes, and takes a buffer of as many: the buffer has 4 bytes",
        ),
        (
            "grid(1) param_0=f32[6] zeros param_1=null param_2=i32[2] zeros",
            "parameter 1, `param_1`, is .f32, and takes a number",
        ),
        (
            "grid(1) y=1",
            "shift has no parameter `y`; it has param_0, param_1, param_2",
        ),
        (&args.replace("[0,6]", "[0,7]"), "ptx line"),
        (&args.replace("shared(16)", "shared(12)"), "ptx line"),
        (
            &args.replace("block(4)", "block(2000)"),
            "launch configuration",
        ),
        (
            &args.replace("[6] iota(0)", "[6] poison"),
            "not all of them written",
        ),
        (
            &format!("{args} ; expect param_0 within ulp 1"),
            "nothing to compare PTX with",
        ),
        (&format!("{args} steps(3)"), "--steps"),
        (
            &args.replace("grid(2)", "grid(2000000)"),
            "--programs 2000000",
        ),
    ] {
        check_ptx(file, line, words);
    }
    check_failure(
        &["run", file],
        "",
        2,
        "is PTX, which has no run lines: give --args",
    );
    check_failure(
        &["run", file, "-n", "other", "--args", args],
        "",
        1,
        "there is no .entry `other`; there is shift",
    );
    let broken = folder.file("broken.ptx", &PTX.replace("add.f32", "addd.f32"));
    let words = "unsupported instruction `addd.f32`";
    check_failure(
        &["run", broken.to_str().expect("plain"), "--args", args],
        "",
        1,
        words,
    );
}

fn check_ptx(file: &str, line: &str, words: &str) {
    let output = tilelift(&["run", file, "--args", line], "");
    let errors = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{line}: {errors}");
    assert!(errors.contains(words), "{line}: {errors}");
}

/// Adds the element of one buffer to that of another one.
const ADD: &str = "
.version 7.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 add_param_0, .param .u64 add_param_1) {
    .reg .b32 %r<4>; .reg .b64 %rd<2>;
    ld.param.u64 %rd0, [add_param_0];
    ld.param.u64 %rd1, [add_param_1];
    ld.global.u32 %r0, [%rd0];
    ld.global.u32 %r1, [%rd1];
    add.u32 %r2, %r0, %r1;
    st.global.u32 [%rd1], %r2;
    ret;
}
";

#[test]
fn ptx_takes_one_buffer_twice() {
    let folder = Folder::new();
    let file = folder.file("add.ptx", ADD);
    let file = file.to_str().expect("plain");
    for line in [
        "grid(1) block(1) param_0=i32[1] [21] param_1=param_0 ; expect param_0 = [42]",
        "grid(1) block(1) add_param_0=param_1 param_1=i32[1] [21] ; expect param_1 = [42]",
    ] {
        let output = tilelift(&["run", file, "--args", line], "");
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let line = "grid(1) block(1) param_0=param_1 param_1=param_0";
    check_ptx(file, line, "gets no buffer; write what it is to hold");
}

/// Copies the box at (1, 4) of one tensor to (0, 0) of another one. What shared memory holds in between is swizzled, or not.
const MAPS: &str = ".version 8.0
.target sm_90a
.address_size 64
.shared .align 128 .b8 room[1024];
.shared .align 8 .b64 arrived;
.visible .entry moved(.param .align 64 .b8 moved_from[128], .param .align 64 .b8 moved_to[128])
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    mov.u32 %r0, %tid.x;
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra done;
    mov.u32 %r1, room;
    mov.u32 %r2, arrived;
    mov.u32 %r3, 1;
    mov.u32 %r4, 4;
    mov.u32 %r5, 0;
    mov.u64 %rd0, moved_from;
    mov.u64 %rd1, moved_to;
    cvta.param.u64 %rd0, %rd0;
    cvta.param.u64 %rd1, %rd1;
    mbarrier.init.shared.b64 [%r2], 1;
    fence.proxy.async;
    mbarrier.arrive.expect_tx.shared.b64 %rd2, [%r2], 64;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd0, {%r4, %r3}], [%r2];
wait:
    mbarrier.try_wait.parity.shared.b64 %p1, [%r2], %r5;
    @!%p1 bra wait;
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r5, %r5}], [%r1];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
done:
    ret;
}
";

#[test]
fn ptx_takes_tensor_maps() {
    let folder = Folder::new();
    let file = folder.file("moved.ptx", MAPS);
    let file = file.to_str().expect("plain");
    let from = "from=f32[64] iota(0) map(4,16) box(2,8)";
    let to = "to=f32[16] zeros map(2,8) box(2,8)";
    let row = |start: i32| {
        (start..start + 8)
            .map(|i| i.to_string())
            .collect::<Vec<_>>()
    };
    let values = [row(20), row(36)].concat().join(",");
    let expected = format!("expect to = [{values}]");
    let outside = "20,21,22,23,24,25,26,27,nan,nan,nan,nan,nan,nan,nan,nan";
    for line in [
        format!("{from} {to} ; {expected}"),
        // Rows that lie 64 bytes apart are those of a tensor without gaps.
        format!("{from} strides(64) {to} strides(32) ; {expected}"),
        // What is swizzled by both is where it was.
        format!("{from} swizzle(32) {to} swizzle(32) ; {expected}"),
        // The second row of the box lies outside of a tensor of two rows.
        format!(
            "from=f32[64] iota(0) map(2,16) box(2,8) outside(nan) {to} ; expect to = [{outside}]"
        ),
        // From one place of a buffer to another: what stood at 20 and 36 stands at 0 and 16.
        format!(
            "{from} to=from map(4,16) box(2,8) ; expect from = [{},{},{}]",
            values.replacen(",36", ",8,9,10,11,12,13,14,15,36", 1),
            (24..32)
                .map(|i| i.to_string())
                .collect::<Vec<_>>()
                .join(","),
            (32..64)
                .map(|i| i.to_string())
                .collect::<Vec<_>>()
                .join(",")
        ),
    ] {
        let output = tilelift(&["run", file, "--args", &line], "");
        assert!(output.status.success(), "{line}: {}", stderr(&output));
    }
    for (line, words) in [
        (
            format!("{from} to=f32[16] zeros"),
            "parameter 1, `to`, is an array of 128 bytes, and takes a buffer of as many or a tensor map: the buffer has 64 bytes",
        ),
        (
            format!("{from} to=f32[16] zeros map(2,8)"),
            "expected `box(..)`",
        ),
        (format!("{from} {to} swizzle(48)"), "a swizzle of 48 bytes"),
        (
            format!("{from} to=f32[15] zeros map(2,8) box(2,8)"),
            "`to`: the tensor is larger than its buffer, which has 60 bytes",
        ),
        (
            format!("{from} to=f32[16] zeros map(2,8) box(2)"),
            "1 extents of the box where there must be 2",
        ),
        (
            format!("{from} to=f32[16] zeros map(8,2) box(8,2)"),
            "a stride of 8 bytes; it must be a multiple of 16",
        ),
        (
            format!("{from} to=other map(2,8) box(2,8)"),
            "there is no parameter `other`",
        ),
        (
            format!("{from} to=from map(2,8) box(2,8) outside(ones)"),
            "outside of a tensor is nan or zeros",
        ),
    ] {
        check_ptx(file, &line, words);
    }
    let output = tilelift(
        &["run", "-"],
        "; run: grid(1) x=f32[8] zeros map(8) box(8)
kernel @k(v0 \"x\": ptr<f32>) warps(1) {
block0:
    return
}
",
    );
    assert!(
        stderr(&output).contains("tensor maps are for PTX"),
        "{}",
        stderr(&output)
    );
}

/// What is compiled here runs as a file as well.
#[test]
fn compiled_kernels_run_as_ptx() {
    let ptx = stdout(&tilelift(&["compile", "-", "-t", "sm_80"], KERNEL));
    let folder = Folder::new();
    let file = folder.file("k.ptx", &ptx);
    let line = "grid(1) block(128) param_0=f32[4] [1,2,3,4] param_1=3 ; expect param_0 = [2,4,6,4]";
    let output = tilelift(&["run", file.to_str().expect("plain"), "--args", line], "");
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn expectations_are_blessed_by_a_flag() {
    let folder = Folder::new();
    let path = folder.file("a.tir", &format!("; test: tile\n{KERNEL}"));
    let path = path.to_str().expect("plain");
    assert_eq!(tilelift(&["test", path], "").status.code(), Some(1));
    let output = tilelift(&["test", "--bless", path], "");
    assert_eq!(stdout(&output), "1 passed, 0 failed, 1 rewritten\n");
    assert_eq!(
        stdout(&tilelift(&["test", path], "")),
        "1 passed, 0 failed\n"
    );
}

/// The kernels that the README points at say how they are run.
#[cfg(feature = "triton")]
#[test]
fn every_example_runs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/kernels");
    let entries = std::fs::read_dir(&folder).expect("readable");
    let files = entries.map(|entry| entry.expect("readable").path());
    let files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|e| e == "py"))
        .collect();
    assert!(files.len() >= 9, "{files:?}");
    let output = Command::new(env!("CARGO_BIN_EXE_tilelift"))
        .arg("test")
        .args(&files)
        .output()
        .expect("it runs");
    assert_eq!(
        stdout(&output),
        format!("{} passed, 0 failed\n", files.len()),
        "{}",
        stderr(&output)
    );
}
