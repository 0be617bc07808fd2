//! What applications are told about wrong programs, launches and set-ups: as text, as data, and by the Rust compiler.

use std::path::{Path, PathBuf};
use std::process::Command;

use tilelift::runtime::{Buffer, Program, RuntimeError, Severity};
use tilelift::tune::{Autotuned, Config, Tuner};

use crate::tools::{add_program, emulator};

#[test]
fn errors_of_a_text_are_data() {
    const TEXT: &str = r#"import triton
import triton.language as tl

@triton.jit
def half(x):
    return tl.laod(x) * 0.5

@triton.jit
def both(x):
    tl.store(x, half(x) + half(x + 1))
"#;
    let device = emulator(None);
    let program = Program::python("dir/both.py", TEXT).expect("it is Python");
    let kernel = device.kernel(&program, "both").expect("there is a kernel");
    let x = Buffer::from_slice(&device, &[1.0_f32, 2.0]).expect("there is memory");
    let error = kernel.run(1, (&x,)).expect_err("there is no such function");
    let RuntimeError::Source(source) = &error else {
        panic!("{error:?}");
    };
    let first = &source.diagnostics[0];
    assert_eq!(
        (first.file.as_str(), first.line, first.column),
        ("dir/both.py", Some(6), Some(12))
    );
    assert_eq!((first.code, first.severity), ("F06", Severity::Error));
    assert_eq!(first.message, "the library has no `triton.language.laod`");
    assert_eq!(first.notes, ["in `half`, called at dir/both.py:10:17"]);
    assert_eq!(first.help.as_deref(), Some("did you mean `tl.load`?"));
    // The text is that of a terminal.
    assert_eq!(error.to_string(), source.to_string());
    assert!(
        error.to_string().contains("--> dir/both.py:6:12"),
        "{error}"
    );

    let error = Program::python("two.py", "def f(:\n    pass\n").expect_err("it is no Python");
    let RuntimeError::Source(source) = error else {
        panic!("{error:?}");
    };
    assert_eq!(
        (source.diagnostics[0].code, source.diagnostics[0].line),
        ("F02", Some(1))
    );

    let error = Program::tir("k.tir", "kernel k() {\n    frob\n}\n").expect_err("no such op");
    let RuntimeError::Source(source) = &error else {
        panic!("{error:?}");
    };
    let first = &source.diagnostics[0];
    assert!(first.code.starts_with('P'), "{first:?}");
    let place = format!(
        "k.tir:{}:{}: ",
        first.line.unwrap_or(0),
        first.column.unwrap_or(0)
    );
    assert!(error.to_string().starts_with(&place), "{error}");
}

#[test]
fn exchanged_arguments_are_named_with_their_types() {
    let device = emulator(None);
    let kernel = device.kernel(&add_program(), "add");
    let kernel = kernel.and_then(|kernel| kernel.constant("BLOCK", 128));
    let kernel = kernel.expect("there is a kernel");
    let x = Buffer::from_slice(&device, &[1.0_f32; 128]).expect("there is memory");
    let error = kernel
        .run(1, (&x, &x, 128, &x))
        .expect_err("they are exchanged");
    let RuntimeError::Source(source) = error else {
        panic!("{error:?}");
    };
    let first = &source.diagnostics[0];
    assert_eq!(
        first.message,
        "`out` is given i32, and the kernel takes a pointer for it"
    );
    assert_eq!((first.code, first.line), ("F04", Some(6)));
    let help = "`n` is given *fp32 and makes no address: are the two exchanged?";
    assert_eq!(first.help.as_deref(), Some(help));
}

#[test]
fn configurations_that_fail_alike_are_one_line() {
    let device = emulator(None);
    let kernel = device
        .kernel(&add_program(), "add")
        .expect("there is a kernel");
    let x = Buffer::from_slice(&device, &[1.0_f32; 128]).expect("there is memory");
    let blocks = |sizes: &[i32]| -> Vec<Config> {
        sizes
            .iter()
            .map(|&size| Config::new().constant("BLOCK", size))
            .collect()
    };
    // All for the same reason, which is the argument's.
    let wrong = Tuner::new(blocks(&[16, 32, 64, 128]));
    let error = wrong.tune(&kernel, &device.stream(), 1, (&x, &x, 1.5_f32, 128));
    let told = error.expect_err("no configuration can help").to_string();
    assert_eq!(told.matches("`out` is given fp32").count(), 1, "{told}");
    let line = "failed  BLOCK=16 | BLOCK=32 | BLOCK=64 | BLOCK=128: error[F04]";
    assert!(told.contains(line), "{told}");
    // Numbers of the reason may differ, as the configurations do.
    let some = Tuner::new(blocks(&[100, 128, 1000, -8, 300]));
    let tuned = some.tune(&kernel, &device.stream(), 1, (&x, &x, &x, 128));
    let report = tuned.expect("one works").report;
    let shown = report.to_string();
    assert_eq!(report.rows.len(), 5);
    assert!(
        shown.contains("failed  BLOCK=100 | BLOCK=1000 | BLOCK=300: "),
        "{shown}"
    );
    assert!(shown.contains("failed  BLOCK=-8: "), "{shown}");
    assert_eq!(shown.matches("failed  ").count(), 2, "{shown}");
    let chosen = shown.lines().find(|line| line.starts_with('*'));
    assert!(
        chosen.is_some_and(|line| line.ends_with("BLOCK=128")),
        "{shown}"
    );
}

#[test]
fn a_kernel_that_tunes_itself_takes_constants() {
    let device = emulator(None);
    let kernel = device
        .kernel(&add_program(), "add")
        .expect("there is a kernel");
    let tuner = || Tuner::new([16, 128].map(|size| Config::new().constant("BLOCK", size)));
    let tuned = Autotuned::new(kernel.clone(), tuner());
    let tuned = tuned.constant("SCALE", 3).expect("it is nobody's choice");
    let x = Buffer::from_slice(&device, &[1.0_f32; 128]).expect("there is memory");
    let out = Buffer::<f32>::new(&device, 128).expect("there is memory");
    let grid = |c: tilelift::runtime::Constants| Some([128 / c.int("BLOCK")?, 1, 1]);
    let stream = device.stream();
    tuned
        .launch(&stream, &grid, (&x, &x, &out, 128))
        .expect("it runs");
    assert_eq!(out.read(&stream), Ok(vec![6.0; 128]));
    let error = Autotuned::new(kernel, tuner()).constant("BLOCK", 64);
    let told = error
        .map(drop)
        .expect_err("the tuner chooses it")
        .to_string();
    assert!(told.contains("configurations give `BLOCK`"), "{told}");
}

/// The library that this program was built with, and the folder of what it depends on.
fn library() -> Option<(PathBuf, PathBuf)> {
    let folder = std::env::current_exe().ok()?.parent()?.to_owned();
    let files = std::fs::read_dir(&folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path());
    let is_library = |path: &PathBuf| {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("");
        name.starts_with("libtilelift-") && name.ends_with(".rlib")
    };
    let newest = files.filter(is_library).max_by_key(|path| {
        let written = std::fs::metadata(path).and_then(|data| data.modified());
        written.ok()
    })?;
    Some((newest, folder))
}

/// What the Rust compiler says of a function with this body.
fn refused(body: &str, (library, folder): &(PathBuf, PathBuf), scratch: &Path) -> String {
    let text = format!(
        "use tilelift::runtime::{{Buffer, Kernel, RuntimeError}};\n\
         pub fn f(kernel: &Kernel, x: Buffer<f32>, n: usize) -> Result<(), RuntimeError> {{\n    {body}\n}}\n"
    );
    let file = scratch.join("wrong.rs");
    std::fs::write(&file, text).expect("writable");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "lib",
            "--emit",
            "metadata",
            "--out-dir",
        ])
        .arg(scratch)
        .arg("-L")
        .arg(format!("dependency={}", folder.display()))
        .arg("--extern")
        .arg(format!("tilelift={}", library.display()))
        .arg(&file)
        .output()
        .expect("the compiler that built this test is there");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_rust_compiler_says_what_a_launch_takes() {
    let Some(library) = library() else {
        eprintln!("skipped: the library is not beside this program");
        return;
    };
    let scratch = tempfile::tempdir().expect("a temporary folder");
    let refused = |body: &str| refused(body, &library, scratch.path());
    assert_eq!(refused("kernel.run(1, (&x, n as i32))"), "");
    for (body, what) in [
        ("kernel.run(1, (&x, n))", "`usize`"),
        ("kernel.run(1, (x, 3))", "Buffer<f32>`"),
        ("kernel.run(1, (&x, vec![1.0_f32]))", "`Vec<f32>`"),
    ] {
        let told = refused(body);
        for wanted in [
            &format!("{what} is no argument of a launch"),
            "a launch takes numbers, `&Buffer`, `Pointer`, `Descriptor`, `Arg` and tuples of these",
            "a buffer is given as `&buffer`",
        ] {
            assert!(told.contains(wanted), "{wanted}: {told}");
        }
    }
    let told = refused("kernel.run(1, &x)");
    assert!(
        told.contains("as in `(&x, 3)`, and one as `(&x,)`"),
        "{told}"
    );
}

/// What tools read: reports, and what is wrong with a text.
#[cfg(feature = "serde")]
#[test]
fn reports_and_diagnostics_are_serialised() {
    use tilelift::runtime::Deadline;
    let device = crate::tools::emulator(None);
    let add = device
        .kernel(&crate::tools::add_program(), "add")
        .expect("it is there");
    let add = add.constant("BLOCK", 64).expect("it has one");
    let x = Buffer::<f32>::new(&device, 64).expect("there is memory");
    let report = add.prepare((&x, &x, &x, 64), &Deadline::default());
    let report = report.expect("it compiles");
    let json = serde_json::to_value(&report).expect("it is data");
    let read: tilelift::runtime::Report = serde_json::from_value(json.clone()).expect("as written");
    assert_eq!(read, report);
    assert_eq!(
        (&json["kernel"], &json["target"]),
        (&"add".into(), &"sm_80".into())
    );
    assert_eq!(json["kernel_origin"], "made");
    assert!(
        json["predicted"]["registers"]
            .as_u64()
            .is_some_and(|n| n > 0),
        "{json}"
    );
    let error = Program::python("bad.py", "def f(:\n").expect_err("it is no Python");
    let tilelift::runtime::RuntimeError::Source(source) = error else {
        panic!("{error:?}");
    };
    let json = serde_json::to_value(&source.diagnostics).expect("it is data");
    assert_eq!(
        (&json[0]["file"], &json[0]["line"]),
        (&"bad.py".into(), &1.into())
    );
    assert_eq!(json[0]["severity"], "error");
    let stats = tilelift::emu::Stats {
        warp_instructions: 7,
        ..tilelift::emu::Stats::default()
    };
    let json = serde_json::to_value(stats).expect("it is data");
    assert_eq!(json["warp_instructions"], 7);
    assert_eq!(
        serde_json::from_value::<tilelift::emu::Stats>(json).ok(),
        Some(stats)
    );
    let target: Result<tilelift::settings::Target, _> = serde_json::from_str("\"sm_90a\"");
    assert_eq!(
        target.expect("a target"),
        tilelift::settings::Target::SM_90A
    );
    let wrong: Result<tilelift::settings::Target, _> = serde_json::from_str("\"sm_103\"");
    assert!(wrong.is_err_and(|error| error.to_string().contains("sm_100")));
}
