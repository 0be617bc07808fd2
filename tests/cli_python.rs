//! The `tilelift` command on Python files.
#![cfg(all(feature = "tool", feature = "triton"))]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PROGRAM: &str = r#"import triton
import triton.language as tl

SIZE = 64


@triton.jit
def scale(x, y, n, stride, factor, BLOCK: tl.constexpr, DTYPE: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at * stride, mask=at < n).to(DTYPE)
    tl.store(y + at, v * factor, mask=at < n)


@triton.jit
def fill(x, **META):
    tl.store(x + tl.arange(0, META["N"]), SIZE)
"#;

fn tilelift(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tilelift"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command was built");
    let mut stdin = child.stdin.take().expect("it is piped");
    // A command that reads nothing closes its end, which is not this test's business.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

fn program(folder: &Path) -> PathBuf {
    let path = folder.join("scale.py");
    std::fs::write(&path, PROGRAM).expect("writable");
    path
}

fn stdout(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_file_becomes_ptx_with_its_description() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = program(folder.path());
    let (ptx, meta) = (folder.path().join("k.ptx"), folder.path().join("k.json"));
    let signature = "*fp16:16, *fp32:16, i32, i32:1, fp32, 128, fp32";
    let output = tilelift(
        &[
            "compile",
            file.to_str().expect("a name"),
            "-n",
            "scale",
            "-s",
            signature,
            "-w",
            "2",
            "-t",
            "sm_90",
            "-o",
            ptx.to_str().expect("a name"),
            "--meta",
            meta.to_str().expect("a name"),
        ],
        "",
    );
    assert_eq!(stdout(&output), "");
    let ptx = std::fs::read_to_string(ptx).expect("written");
    assert!(
        ptx.contains(".target sm_90") && ptx.contains(".entry scale("),
        "{ptx}"
    );
    let meta = std::fs::read_to_string(meta).expect("written");
    let meta: serde_json::Value = serde_json::from_str(&meta).expect("JSON");
    let names: Vec<&str> = meta["params"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|p| p["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["x", "y", "n", "factor"]);
    assert_eq!(meta["block"], serde_json::json!([64, 1, 1]));
    let constants = serde_json::json!({"stride": "1", "BLOCK": "128", "DTYPE": "fp32"});
    assert_eq!(meta["constants"], constants);
}

#[test]
fn standard_input_and_constants_by_name() {
    let args = [
        "compile", "-", "--lang", "py", "-n", "fill", "-s", "*i32", "-c", "N=16", "--emit", "tile",
    ];
    let tile = stdout(&tilelift(&args, PROGRAM));
    assert!(tile.contains("const {value = 64} : i32[16]"), "{tile}");
    let more = [&args[..], &["-c", "SIZE=7"]].concat();
    let tile = stdout(&tilelift(&more, PROGRAM));
    assert!(tile.contains("const {value = 7} : i32[16]"), "{tile}");
}

#[test]
fn every_pass_is_explained() {
    let args = [
        "explain", "-", "--lang", "py", "-n", "fill", "-s", "*i32", "-c", "N=16",
    ];
    let text = stdout(&tilelift(&args, PROGRAM));
    assert!(
        text.starts_with("; --- as it was read\nkernel @fill("),
        "{text}"
    );
    assert!(
        text.contains("; --- after expand") && text.contains(".entry fill("),
        "{text}"
    );
}

#[test]
fn mistakes_are_shown_with_their_place() {
    let check = |args: &[&str], input: &str, code: i32, words: &[&str]| {
        let output = tilelift(args, input);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{message}");
        for word in words {
            assert!(message.contains(word), "{word}: {message}");
        }
        assert!(output.stdout.is_empty());
    };
    let base = ["compile", "-", "--lang", "py"];
    let with = |more: &[&'static str]| [&base[..], more].concat();
    check(
        &with(&[]),
        PROGRAM,
        1,
        &["error[F03]", "choose one with -n"],
    );
    check(&with(&["-n", "fil"]), PROGRAM, 1, &["there is `fill`"]);
    check(
        &with(&["-n", "fill", "-s", "*i32"]),
        PROGRAM,
        1,
        &["error[F05]", "--> <stdin>:16:31", "give it with -c N=VALUE"],
    );
    check(
        &with(&["-n", "fill", "-s", "*i32", "-w", "3"]),
        PROGRAM,
        1,
        &["error[F04]", "32 warps"],
    );
    check(
        &with(&["-n", "fill", "--num-ctas", "2"]),
        PROGRAM,
        1,
        &["error[F08]", "--> <stdin>:15:5", "clusters of 2"],
    );
    check(
        &with(&[]),
        "def f(:\n",
        1,
        &["error[F02]", "--> <stdin>:1:7"],
    );
    check(
        &["compile", "/no/such/file.py"],
        "",
        1,
        &["/no/such/file.py"],
    );
}

/// Each option of the compiler reaches the PTX or its description.
#[test]
fn options_reach_the_ptx() {
    const TEXT: &str = r#"import triton
import triton.language as tl


@triton.jit
def kernel(out, x, n, a, b, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for i in range(n):
        v = tl.load(x + at + i)
        tl.device_assert(v == v, "not a number")
        tl.store(out + at, v * a + b)
"#;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let meta = folder.path().join("k.json");
    let base = [
        "compile",
        "-",
        "--lang",
        "py",
        "-s",
        "*fp32:16, *fp32, i32, fp32, fp32, 64",
        "-t",
        "sm_80",
        "--meta",
        meta.to_str().expect("a name"),
    ];
    let ptx = |more: &[&str]| stdout(&tilelift(&[&base[..], more].concat(), TEXT));
    let plain = ptx(&[]);
    assert!(
        plain.contains("fma.rn.f32") && !plain.contains(".loc"),
        "{plain}"
    );
    assert!(
        !plain.contains(".maxnreg") && !plain.contains("trap"),
        "{plain}"
    );
    let apart = ptx(&["--no-fp-fusion"]);
    assert!(
        apart.contains("mul") && !apart.contains("fma.rn.f32"),
        "{apart}"
    );
    assert!(ptx(&["--maxnreg", "64"]).contains(".maxnreg 64"));
    assert!(ptx(&["--line-info"]).contains(".loc"));
    assert_eq!(ptx(&["--no-sanitize-overflow"]), plain);
    let checked = ptx(&["--debug"]);
    let unchecked = ptx(&["--debug", "--no-sanitize-overflow"]);
    // Assertions take room, and those of sums more of it.
    assert!(
        plain.len() < unchecked.len() && unchecked.len() < checked.len(),
        "{} {} {}",
        plain.len(),
        unchecked.len(),
        checked.len()
    );
    ptx(&["-w", "8", "--num-stages", "5"]);
    let meta = std::fs::read_to_string(&meta).expect("written");
    let meta: serde_json::Value = serde_json::from_str(&meta).expect("JSON");
    assert_eq!(meta["num_warps"], 8);
    assert_eq!(meta["num_stages"], 5);
}
