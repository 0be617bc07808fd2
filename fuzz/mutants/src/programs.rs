//! The test programs of a planted copy: built once, kept in its folder, and run wherever the folder is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::run::Task;

/// Judge the sources themselves, and those have changed.
const OF_SOURCES: [&str; 2] = ["tidy", "package"];

/// Builds the test programs, keeps them in `FOLDER/programs`, and lists their tests in `FOLDER/programs.json`.
pub(crate) fn build(folder: &Path) -> Result<()> {
    let folder = &folder.canonicalize()?;
    let tree = folder.join("tree");
    let out = Command::new("cargo")
        .args(["test", "--no-run", "--lib", "--bins", "--tests"])
        .args(["--features", "cuda", "--message-format=json"])
        .env("CARGO_INCREMENTAL", "0")
        .stderr(Stdio::inherit())
        .current_dir(&tree)
        .output()?;
    ensure!(out.status.success(), "the tests of the copy do not build");
    let programs = folder.join("programs");
    fs::create_dir_all(&programs)?;
    let mut tasks = BTreeMap::new();
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        let value: serde_json::Value = serde_json::from_str(line)?;
        let kind = value["target"]["kind"][0].as_str().unwrap_or_default();
        let name = value["target"]["name"].as_str().unwrap_or_default();
        let Some(built) = value["executable"].as_str() else {
            continue;
        };
        if value["profile"]["test"] != true {
            if kind == "bin" {
                // Tests start it where it was built.
                strip(Path::new(built), &programs.join(name))?;
                fs::copy(programs.join(name), built)?;
                of_files(&tree, name, &mut tasks)?;
            }
            continue;
        }
        if OF_SOURCES.contains(&name) {
            continue;
        }
        let name = if kind == "test" { name } else { kind };
        strip(Path::new(built), &programs.join(name))?;
        of_program(folder, name, &mut tasks)?;
    }
    stand_in(folder)?;
    let tasks: Vec<Task> = tasks.into_values().collect();
    fs::write(
        folder.join("programs.json"),
        serde_json::to_string_pretty(&tasks)?,
    )?;
    Ok(())
}

/// Where debug information goes, the rest fits through a narrow way.
fn strip(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("strip")
        .arg("-o")
        .args([to, from])
        .status()
        .context("strip")?;
    ensure!(status.success(), "strip failed for {}", from.display());
    Ok(())
}

/// Tests of a program, those of a module together.
fn of_program(folder: &Path, program: &str, tasks: &mut BTreeMap<String, Task>) -> Result<()> {
    let list = Command::new(folder.join("programs").join(program))
        .args(["--list", "--format=terse"])
        .current_dir(folder.join("tree"))
        .output()?;
    for test in String::from_utf8_lossy(&list.stdout).lines() {
        let Some(test) = test.strip_suffix(": test") else {
            continue;
        };
        let parts: Vec<&str> = test.split("::").take(2).collect();
        let name = format!("{program} {}", parts.join("::"));
        // A folder of file tests as one test: each file is a task of its own.
        let folder_of_files = name.strip_prefix("compiler filetests::");
        if folder_of_files.is_some_and(|f| folder.join("tree/tests/filetests").join(f).is_dir()) {
            continue;
        }
        let task = tasks.entry(name.clone()).or_insert_with(|| Task {
            name,
            program: program.to_owned(),
            args: Vec::new(),
            tests: Vec::new(),
            seconds: 0.0,
            reaches: BTreeSet::new(),
        });
        task.tests.push(test.to_owned());
    }
    Ok(())
}

/// A task for each file test: those are many and quick, and one of them that fails is enough.
fn of_files(tree: &Path, program: &str, tasks: &mut BTreeMap<String, Task>) -> Result<()> {
    let root = tree.join("tests/filetests");
    for folder in fs::read_dir(&root)? {
        let folder = folder?.path();
        if !folder.is_dir() {
            continue;
        }
        for file in fs::read_dir(&folder)? {
            let file = file?.path();
            if file.extension().is_none_or(|e| e != "tir") {
                continue;
            }
            let path = file.strip_prefix(tree)?.display().to_string();
            let name = format!("file {}", file.strip_prefix(&root)?.display());
            let task = Task {
                name: name.clone(),
                program: program.to_owned(),
                args: vec!["test".to_owned(), "--jobs=1".to_owned(), path],
                tests: Vec::new(),
                seconds: 0.0,
                reaches: BTreeSet::new(),
            };
            tasks.insert(name, task);
        }
    }
    Ok(())
}

/// Tests build the stand-in for the driver with what `RUSTC` names: a script that copies this one.
fn stand_in(folder: &Path) -> Result<()> {
    let library = folder.join("programs/libcuda.so.1");
    let status = Command::new("rustc")
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "cdylib",
            "-A",
            "warnings",
            "-o",
        ])
        .arg(&library)
        .arg(folder.join("tree/tests/stub_driver/lib.rs"))
        .status()?;
    ensure!(
        status.success(),
        "the stand-in for the driver does not build"
    );
    let script = folder.join("programs/rustc");
    let copy = "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\nexec cp";
    fs::write(&script, format!("{copy} '{}' \"$2\"\n", library.display()))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    Ok(())
}
