//! The `tilelift` command on Python files.
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

#[test]
fn messages_have_colours_where_they_are_wanted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("k.py");
    let text = "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x):\n    tl.stroe(x, '\u{1b}[5m')\n";
    std::fs::write(&file, text).expect("writable");
    let told = |environment: &[(&str, &str)]| {
        let output = Command::new(env!("CARGO_BIN_EXE_tilelift"))
            .args(["compile", "-s", "*fp32"])
            .arg(&file)
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR")
            .env_remove("CLICOLOR_FORCE")
            .envs(environment.iter().copied())
            .output()
            .expect("the command was built");
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    // A pipe is no terminal.
    let plain = told(&[]);
    assert!(
        plain.contains("error[F06]: the library has no `triton.language.stroe`"),
        "{plain}"
    );
    assert!(plain.contains("did you mean `tl.store`?"), "{plain}");
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    let coloured = told(&[("CLICOLOR_FORCE", "1")]);
    assert!(coloured.contains("\u{1b}[1m"), "{coloured:?}");
    // Of the text nothing reaches the terminal that it would obey.
    assert!(!coloured.contains("\u{1b}[5m"), "{coloured:?}");
    let told = told(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]);
    assert_eq!(told, plain);
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
    // Each line of the source stands beside the first instruction that was made of it.
    assert!(text.contains(" ; tl.store(x + tl.arange(0, META"), "{text}");
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
    check(&with(&["-n", "fil"]), PROGRAM, 1, &["did you mean `fill`?"]);
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
        &["error[F02]", "--> <stdin>:1:6", "`(` is never closed"],
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
    // Nothing of it is for the copy engine.
    for promote in ["auto", "never"] {
        assert_eq!(ptx(&["--promote", promote]), plain);
    }
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
    assert_eq!(meta["num_stages"], 1, "its loop multiplies no matrices");
}

/// What shared memory has no room for is said, and the description has what is used.
#[test]
fn stages_without_room_are_warned_of() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let meta = folder.path().join("k.json");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/pipelines.py");
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
# run: sums "*fp32, *fp32, 1024" : grid(1) x=f32[1024] normal(2) out=f32[1024] poison ; expect out within exact
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
    // In which order a sum is formed is left open, and bits do not allow for it.
    let args = [
        "reduce", "-", "--lang", "py", "-n", "sums", "-t", "sm_80", "-s",
    ];
    let small = stdout(&tilelift(
        &[&args[..], &["*fp32, *fp32, 1024"]].concat(),
        TEXT,
    ));
    assert!(small.starts_with("; test: run sm_80\n"), "{small}");
    assert_eq!(small.matches("; run: ").count(), 1, "{small}");
    let run =
        "; run: grid(1) x=f32[1024] normal(2) out=f32[1024] poison ; expect out within exact\n";
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
    // A line that is wrong itself is named as it stands in the file, and so is what it runs.
    let wrong = TEXT
        .replace("*fp32, *fp32, 512", "*fp32, *fp32, 1024")
        .replace(
            "x=f32[512] normal(1) out=f32[512]",
            "x=f32[1024] zeros out=f32[1024]",
        )
        .replace("x=f32[1024] normal(2)", "x=f32[1000] zeros");
    let output = tilelift(&[&args[..], &["*fp32, *fp32, 1024"]].concat(), &wrong);
    let errors = String::from_utf8_lossy(&output.stderr);
    let words = "not reduced: line 12:9: interpreter: program (0, 0, 0), element (1000): ";
    assert!(
        errors.contains(words) && errors.contains("(run of line 5)"),
        "{errors}"
    );
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
    let text = std::fs::read_to_string(&path).expect("readable");
    let runs = folder.path().join("runs.py");
    let line = "# run: fill \"*i32\" : grid(1) x=i32[16] poison\n";
    std::fs::write(&runs, format!("{text}\n{line}")).expect("writable");
    let (code, errors) = refused(&["run", runs.to_str().expect("a name"), "-n", "nosuch"]);
    let words = "runs.py is of a kernel `nosuch`";
    assert!(code == 2 && errors.contains(words), "{errors}");
    let (code, errors) = refused(&["run", file, "-n", "fill", "-s", "*i32"]);
    assert!(code == 2 && errors.contains("give --args"), "{errors}");
    for (line, words) in [
        (
            "# run: fill : grid(1)",
            "scale.py:17: error: the signature in quotation marks is missing",
        ),
        (
            "# run: fill \"*i32\" N=4 grid(1)",
            "scale.py:17: error: there is no ` : ` in front of the grid",
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
        assert!(errors.contains("scale.py:17"), "{line}: {errors}");
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
            && errors.contains("did you mean `BLOCK`?"),
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

/// A kernel that a first user writes, with what may go wrong in it.
const FAULTY: &str = r#"import triton
import triton.language as tl


@triton.jit
def double(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.device_print("v", v)
    tl.device_assert(v < 100, "small")
    if v.shape[0] == 8:
        i = i * 0
    tl.store(out + i, v * 2, mask=i < n)
"#;

#[test]
fn faults_of_python_stand_in_python() {
    let cases = [
        (
            "4\" : grid(2) x=i32[6] iota(0) out=i32[6] poison n=8",
            "<stdin>:8:9: error: interpreter: program (1, 0, 0), element (2): 4 bytes at ",
            "; that is `x`[6], and `x` has 6 elements (run of line 14)\n  |\n8 |     v = tl.load(x + i, mask=i < n)\n  |         ^\n",
        ),
        (
            "4\" : grid(2) x=i32[8] iota(96) out=i32[8] poison n=8",
            "<stdin>:10:5: error: interpreter: program (1, 0, 0): assertion failed at element 0: small (run of line 14)",
            "\n10 |     tl.device_assert(v < 100, \"small\")\n   |     ^\n",
        ),
        (
            "4\" : grid(2) x=i32[8] poison out=i32[8] poison n=8",
            "<stdin>:8:9: error: interpreter: program (0, 0, 0), element (0): the byte at ",
            " was never written",
        ),
        (
            "8\" : grid(1) x=i32[8] iota(0) out=i32[8] poison n=8",
            "<stdin>:13:5: error: interpreter: program (0, 0, 0): one store writes 0x0 and 0x2 to address",
            "; that is `out`[0], and `out` has 8 elements",
        ),
        (
            "4\" : grid(2147483647) x=i32[8] iota(0) out=i32[8] poison n=8",
            "<stdin>:14: error: the grid of 2147483647 x 1 x 1 has 2147483647 programs",
            "--programs 2147483647",
        ),
    ];
    for (line, place, more) in cases {
        let text = format!("{FAULTY}# run: double \"*i32, *i32, i32, {line}\n");
        let output = tilelift(&["run", "-", "--lang", "py"], &text);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(place) && errors.contains(more), "{errors}");
        assert!(!errors.contains("block0"), "{errors}");
    }
    // Two programs that store to one place.
    let race = FAULTY
        .replace("tl.program_id(0) * B", "0")
        .replace("v * 2", "v + tl.program_id(0)");
    let text = format!(
        "{race}# run: double \"*i32, *i32, i32, 4\" : grid(2) x=i32[4] iota(0) out=i32[4] poison n=4\n"
    );
    let output = tilelift(&["run", "-", "--lang", "py"], &text);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        errors.starts_with(
            "<stdin>:13:5: error: interpreter: program (1, 0, 0), element (0): race: "
        ),
        "{errors}"
    );
}

#[test]
fn what_a_kernel_prints_is_shown() {
    let text = format!(
        "{FAULTY}# run: double \"*i32, *i32, i32, 4\" : grid(2) x=i32[6] iota(7) out=i32[6] poison n=6\n"
    );
    let shown = stdout(&tilelift(&["run", "-", "--lang", "py"], &text));
    assert!(
        shown.contains("\n  prints       pid (1, 0, 0) idx (1) v: 12\n"),
        "{shown}"
    );
    assert_eq!(shown.matches("\n  prints ").count(), 8, "{shown}");
    // So do numbers that are known within bounds only.
    const SUM: &str = r#"import triton
import triton.language as tl


@triton.jit
def total(x, B: tl.constexpr):
    tl.device_print("sum", tl.sum(tl.load(x + tl.arange(0, B)), axis=0))


# run: total "*fp32, 512" : grid(1) x=f32[512] normal(1)
"#;
    let shown = stdout(&tilelift(&["run", "-", "--lang", "py"], SUM));
    assert!(
        shown.contains("  prints       pid (0, 0, 0) sum: "),
        "{shown}"
    );
}

/// What it printed before it went wrong is where one looks for the reason.
#[test]
fn what_a_failing_kernel_prints_is_shown() {
    // Beyond the end of a buffer, and by an assertion.
    for buffer in ["x=i32[3] iota(7)", "x=i32[4] iota(97)"] {
        let line = format!("4\" : grid(1) {buffer} out=i32[4] poison n=4");
        let text = FAULTY.replace(
            "    v = tl.load",
            "    tl.device_print(\"at\", i)\n    v = tl.load",
        ) + &format!("# run: double \"*i32, *i32, i32, {line}\n");
        let output = tilelift(&["run", "-", "--lang", "py"], &text);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(
            errors.contains("  interpreter  fails\n  prints       pid (0, 0, 0) idx (0) at: 0\n"),
            "{errors}"
        );
    }
}

/// What the emulator alone runs names its arguments and prints as well.
#[test]
fn faults_on_the_emulator_name_arguments() {
    const INLINE: &str = r#"import triton
import triton.language as tl


@triton.jit
def shift(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    j = tl.inline_asm_elementwise("add.s32 $0, $1, 1;", "=r,r", [i], dtype=tl.int32, is_pure=True, pack=1)
    tl.device_print("j", j)
    tl.store(out + j, tl.load(x + i))


# run: shift "*i32, *i32, 8" : grid(1) x=i32[8] iota(0) out=i32[8] zeros ; expect out = [0,0,1,2,3,4,5,6]
"#;
    let output = tilelift(&["run", "-", "--lang", "py"], INLINE);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    for words in [
        "<stdin>:10:5: error: emulator (seed 0): sm_80: program (0, 0, 0), thread 7: ",
        "; that is `out`[8], and `out` has 8 elements (run of line 13)\n",
        "\n  prints       pid (0, 0, 0) idx (7) j: 8\n",
    ] {
        assert!(errors.contains(words), "{words}{errors}");
    }
}

/// What a newcomer writes first is called right without a bound of his own.
#[test]
fn first_kernels_are_right() {
    const TEXT: &str = r#"import triton
import triton.language as tl


@triton.jit
def softmax(out, x, n, B: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, B)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * n + at, e / tl.sum(e, axis=0), mask=at < n)


@triton.jit
def _layer_norm_fwd_fused(X, Y, W, B, Mean, Rstd, stride, N, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    Y += row * stride
    X += row * stride
    _mean = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        a = tl.load(X + cols, mask=cols < N, other=0.).to(tl.float32)
        _mean += a
    mean = tl.sum(_mean, axis=0) / N
    _var = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X + cols, mask=cols < N, other=0.).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.)
        _var += x * x
    var = tl.sum(_var, axis=0) / N
    rstd = 1 / tl.sqrt(var + eps)
    tl.store(Mean + row, mean)
    tl.store(Rstd + row, rstd)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        mask = cols < N
        w = tl.load(W + cols, mask=mask)
        b = tl.load(B + cols, mask=mask)
        x = tl.load(X + cols, mask=mask, other=0.).to(tl.float32)
        x_hat = (x - mean) * rstd
        y = x_hat * w + b
        tl.store(Y + cols, y, mask=mask)


# run: softmax "*fp32, *fp32, i32, 1024" : grid(2) out=f32[1600] poison x=f32[1600] normal(1) n=800
# run: _layer_norm_fwd_fused "*fp16, *fp16, *fp16, *fp16, *fp32, *fp32, i32, i32, fp32, 128" : grid(2) X=f16[600] normal(1) Y=f16[600] poison W=f16[300] normal(2) B=f16[300] normal(3) Mean=f32[2] poison Rstd=f32[2] poison stride=300 N=300 eps=1e-5
# run: _layer_norm_fwd_fused "*fp32, *fp32, *fp32, *fp32, *fp32, *fp32, i32, i32, fp32, 128" num_warps=8 num_stages=2 : grid(2) X=f32[600] normal(1) Y=f32[600] poison W=f32[300] normal(2) B=f32[300] normal(3) Mean=f32[2] poison Rstd=f32[2] poison stride=300 N=300 eps=1e-5
"#;
    let shown = stdout(&tilelift(&["run", "-", "--lang", "py"], TEXT));
    assert!(shown.ends_with("<stdin>: ok\n"), "{shown}");
    // Bits are another matter: without bounds the same lines fail.
    let (code, errors) = {
        let output = tilelift(&["run", "-", "--lang", "py", "--exact"], TEXT);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), errors)
    };
    assert!(
        code == Some(1) && errors.contains("are not equal"),
        "{errors}"
    );
}

#[test]
fn python_files_are_tests() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("writable");
    };
    write(
        "good.py",
        &format!(
            "{PROGRAM}# run: fill \"*i32\" N=2 : grid(1) x=i32[2] poison ; expect x = [64,64]\n"
        ),
    );
    write("none.py", PROGRAM);
    let root = folder.path().to_str().expect("a name");
    assert_eq!(
        stdout(&tilelift(&["test", root], "")),
        "1 passed, 0 failed\n"
    );
    write(
        "bad.py",
        &format!(
            "{PROGRAM}# run: fill \"*i32\" N=2 : grid(1) x=i32[2] poison ; expect x = [64,65]\n"
        ),
    );
    let output = tilelift(&["test", root], "");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "1 passed, 1 failed\n"
    );
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        errors.contains("bad.py:17: error: interpreter: `x`: 1 of 2 elements"),
        "{errors}"
    );
}
