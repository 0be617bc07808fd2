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
        &with(&["-n", "fill", "--num-ctas", "16"]),
        PROGRAM,
        1,
        &[
            "error[F04]",
            "--> <stdin>:15:5",
            "use 2 warps, or fewer CTAs",
        ],
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

/// What shared memory has no room for is said, and the description has what is used.
#[test]
fn stages_without_room_are_warned_of() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let meta = folder.path().join("k.json");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/pipelines/kernels.py");
    let compiled = |stages: &str| {
        let signature = "*fp32:16, *fp16:16, *fp16:16, i32:16, i32:16, 128, 128, 64";
        let args = ["compile", file, "-n", "step_at_run_time", "-s", signature];
        let more = ["-t", "sm_80", "--num-stages", stages, "--meta"];
        let path = [meta.to_str().expect("a name")];
        let output = tilelift(&[&args[..], &more[..], &path[..]].concat(), "");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let _ = stdout(&output);
        let meta = std::fs::read_to_string(&meta).expect("written");
        let meta: serde_json::Value = serde_json::from_str(&meta).expect("JSON");
        (errors, meta["num_stages"].clone())
    };
    let (errors, used) = compiled("5");
    assert_eq!((errors.as_str(), used), ("", 5.into()));
    let (errors, used) = compiled("7");
    let warning = "step_at_run_time: a loop asks for 7 stages, shared memory has room for 5";
    assert!(errors.contains(warning), "{errors}");
    assert_eq!(used, 5);
}

/// Runs the command and gives its exit code with what it says on standard error.
fn refused(args: &[&str]) -> (i32, String) {
    let output = tilelift(args, "");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().expect("it ends"), errors)
}

#[test]
fn kernels_run_from_their_file_and_from_the_command_line() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("scale.py");
    let lines = "# run: scale \"*fp32, *fp32, i32, i32:1, fp32, 8, fp32\" : grid(2) x=f32[16] iota(0) \
                 y=f32[16] zeros n=10 factor=2.0 ; expect y = [0,2,4,6,8,10,12,14,16,18,0,0,0,0,0,0]\n\
                 # run: fill \"*i32\" N=4 SIZE=5 num_warps=1 : grid(1) x=i32[4] poison ; expect x = [5,5,5,5]\n";
    std::fs::write(&path, PROGRAM.to_owned() + lines).expect("writable");
    let file = path.to_str().expect("a name");
    let shown = stdout(&tilelift(&["run", file, "-t", "80"], ""));
    assert!(
        shown.contains("@scale on a grid of 2 x 1 x 1 for sm_80"),
        "{shown}"
    );
    assert!(
        shown.contains("@fill on a grid of 1 x 1 x 1 for sm_80"),
        "{shown}"
    );
    assert!(shown.ends_with("scale.py: ok\n"), "{shown}");
    let only = stdout(&tilelift(&["run", file, "-n", "fill"], ""));
    assert!(only.contains("@fill") && !only.contains("@scale"), "{only}");

    let args = [
        "run", file, "-n", "fill", "-s", "*i32", "-c", "N=2", "--args",
    ];
    let given = [&args[..], &["grid(1) x=i32[2] poison"]].concat();
    let shown = stdout(&tilelift(&given, ""));
    assert!(shown.contains("[64, 64]"), "{shown}");
    let wrong = [&args[..], &["grid(1) x=i32[2] poison ; expect x = [1,1]"]].concat();
    let (code, errors) = refused(&wrong);
    assert!(code == 1 && errors.contains("error: --args: "), "{errors}");
}

#[test]
fn the_kernel_of_a_python_file_is_reduced() {
    const TEXT: &str = r#"import triton
import triton.language as tl

# run: sums "*fp32, *fp32, 512" : grid(1) x=f32[512] normal(1) out=f32[512] poison
# run: sums "*fp32, *fp32, 1024" : grid(1) x=f32[1024] normal(2) out=f32[1024] poison
# run: other "*fp32" : grid(1) x=f32[1] zeros


@triton.jit
def sums(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    v = tl.load(x + at)
    tl.store(out + at, tl.cumsum(v, axis=0))


@triton.jit
def other(x):
    tl.store(x, 1)
"#;
    // In which order a sum is formed is left open, and no bound allows for it.
    let args = [
        "reduce", "-", "--lang", "py", "-n", "sums", "-t", "sm_80", "-s",
    ];
    let small = stdout(&tilelift(
        &[&args[..], &["*fp32, *fp32, 1024"]].concat(),
        TEXT,
    ));
    assert!(small.starts_with("; test: run sm_80\n"), "{small}");
    assert_eq!(small.matches("; run: ").count(), 1, "{small}");
    let run = "; run: grid(1) x=f32[1024] normal(2) out=f32[1024] poison\n";
    assert!(small.contains(run), "{small}");
    assert!(small.contains(" = scan v"), "{small}");
    let again = tilelift(
        &["reduce", "-", "--check", "differs", "-t", "sm_80"],
        &small,
    );
    assert_eq!(stdout(&again), small);
    // Of another signature there are no lines.
    let output = tilelift(&[&args[..], &["*fp32, *fp32, 2048"]].concat(), TEXT);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("it has no run lines"), "{errors}");
}

#[test]
fn what_is_missing_for_a_run_is_said() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = program(folder.path());
    let file = path.to_str().expect("a name");
    let (code, errors) = refused(&["run", file]);
    assert!(
        code == 2 && errors.contains("has no `# run:` line"),
        "{errors}"
    );
    let (code, errors) = refused(&["run", file, "-n", "fill", "-s", "*i32"]);
    assert!(code == 2 && errors.contains("give --args"), "{errors}");
    for (line, words) in [
        (
            "# run: fill : grid(1)",
            "scale.py:17: error: this cannot be read",
        ),
        ("# run: fill \"*i33\" : grid(1)", "entry 1 of the signature"),
        ("# run: fill \"*i32\" N=x : grid(1)", "expected NAME=VALUE"),
        (
            "# run: fill \"*i32\" N=4 : grid(1) y=i32[4] zeros",
            "scale.py:17",
        ),
        (
            "# run: fil \"*i32\" N=4 : grid(1)",
            "there is no kernel `fil`",
        ),
    ] {
        std::fs::write(&path, PROGRAM.to_owned() + line).expect("writable");
        let (code, errors) = refused(&["run", file]);
        assert!(code == 1 && errors.contains(words), "{line}: {errors}");
    }
}

#[test]
fn constants_that_nothing_asks_for_are_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = program(folder.path());
    let file = path.to_str().expect("a name");
    let scale = [
        "compile",
        file,
        "-n",
        "scale",
        "-s",
        "*fp16, *fp32, i32, 1, fp32",
        "-c",
        "DTYPE=fp32",
        "-c",
    ];
    let (code, errors) = refused(&[&scale[..], &["BLOK=128"]].concat());
    assert!(
        code == 1
            && errors.contains("nothing in the file is called `BLOK`")
            && errors.contains("there is `BLOCK`"),
        "{errors}"
    );
    let (code, errors) = refused(
        &[
            &scale[..],
            &["BLOCK=12345678901234567890123456789012345678901234"],
        ]
        .concat(),
    );
    assert!(code == 2 && errors.contains("at most 127 bits"), "{errors}");
}

#[test]
fn targets_have_short_names() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = program(folder.path());
    let file = path.to_str().expect("a name");
    for (name, target) in [
        ("80", "sm_80"),
        ("sm90a", "sm_90a"),
        ("cuda:89:32", "sm_89"),
        ("sm_75", "sm_75"),
    ] {
        let output = tilelift(
            &[
                "compile", file, "-n", "fill", "-s", "*i32", "-c", "N=4", "-t", name,
            ],
            "",
        );
        assert!(
            stdout(&output).contains(&format!(".target {target}\n")),
            "{name}"
        );
    }
    let (code, errors) = refused(&["compile", file, "-n", "fill", "-t", "sm_"]);
    assert!(
        code == 2 && errors.contains("unknown target `sm_`"),
        "{errors}"
    );
}
