//! The `tilelift` command as a user meets it.
#[cfg(feature = "triton")]
mod bench;
mod cache;
mod commands;
mod expect;
#[cfg(feature = "triton")]
mod imports;
mod json;
#[cfg(feature = "triton")]
mod promoted;
#[cfg(feature = "triton")]
mod python;
mod reduce;
mod run;
mod show;
#[cfg(unix)]
mod warm;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const KERNEL: &str = r#"kernel @double(v0 "x": ptr<f32> {divisible = 16}, v1 "n": i32) warps(4) {
block0:
    v2 = arange {start = 0} : i32[256]
    v3 = splat v1 : i32[256]
    v4 = icmp v2, v3 {ipred = slt} : i1[256]
    v5 = splat v0 : ptr<f32>[256]
    v6 = addptr v5, v2 : ptr<f32>[256]
    v7 = load v6, v4 : f32[256]
    v8 = fadd v7, v7 : f32[256]
    store v6, v8, v4
    return
}
"#;

/// Runs the command with standard input.
fn tilelift(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tilelift"))
        .args(args)
        .env_remove("BLESS")
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

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).expect("writable");
        path
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("readable");
        let names = entries.map(|e| {
            e.expect("readable")
                .file_name()
                .to_string_lossy()
                .into_owned()
        });
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).expect("readable")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a command that must fail with this code and these words, and write nothing to standard output.
fn check_failure(args: &[&str], input: &str, code: i32, words: &str) {
    let output = tilelift(args, input);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    assert!(message.contains(words), "{args:?}: {message}");
    assert_eq!(stdout(&output), "", "{args:?}");
}
