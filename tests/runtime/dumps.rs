//! Dumps, and edited PTX in place of what is made.

use std::path::{Path, PathBuf};

use tilelift::runtime::{Buffer, Device, DeviceOptions, Dump, Kernel, RuntimeError};

use crate::tools::add_program;

fn device(write: Option<&Path>, replace: Option<&Path>) -> Device {
    Device::emulator_with(DeviceOptions {
        dump: Dump {
            write: write.map(Path::to_owned),
            replace: replace.map(Path::to_owned),
        },
        ..DeviceOptions::plain()
    })
}

/// The addition, a buffer of ones, and one for results.
fn setup(device: &Device) -> (Kernel, Buffer<f32>, Buffer<f32>) {
    let kernel = device.kernel(&add_program(), "add");
    let kernel = kernel.and_then(|kernel| kernel.constant("BLOCK", 64));
    let x = Buffer::from_slice(device, &[1.0_f32; 64]).expect("there is memory");
    let out = Buffer::from_slice(device, &[0.0_f32; 64]).expect("there is memory");
    (kernel.expect("there is a kernel"), x, out)
}

/// What the kernel writes for so many elements.
fn run(device: &Device, n: i32) -> Result<f32, RuntimeError> {
    let (kernel, x, out) = setup(device);
    kernel.run(1, (&x, &x, &out, n))?;
    Ok(out.read(&device.stream())?[0])
}

/// The files of a folder with this ending.
fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dir).expect("it was made");
    let mut paths: Vec<PathBuf> = files
        .map(|file| file.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == ending))
        .collect();
    paths.sort();
    paths
}

#[test]
fn an_edited_dump_replaces_its_variant_alone() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let dumping = device(Some(dir.path()), None);
    assert_eq!(run(&dumping, 64), Ok(2.0));
    assert!(files(dir.path(), "tir").len() > 5, "after every pass");
    let [path] = &files(dir.path(), "ptx")[..] else {
        panic!("one variant was made");
    };
    let made = std::fs::read_to_string(path).expect("it can be read");
    let edited = made
        .replace("add.rn.f32", "sub.rn.f32")
        .replace("add.f32", "sub.f32");
    assert_ne!(edited, made);
    std::fs::write(path, &edited).expect("it can be written");

    let replacing = device(None, Some(dir.path()));
    assert_eq!(run(&replacing, 64), Ok(0.0), "the edited one");
    assert_eq!(run(&replacing, 7), Ok(2.0), "another variant");
    assert_eq!(run(&device(None, None), 64), Ok(2.0));

    // A file of the kernel's name would stand for all variants, and stands for none.
    std::fs::write(dir.path().join("add.ptx"), &edited).expect("it can be written");
    assert_eq!(run(&replacing, 1), Ok(2.0));
}

#[test]
fn what_is_wrong_with_an_edited_dump_is_told_with_its_line() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    run(&device(Some(dir.path()), None), 7).expect("it runs");
    let [path] = &files(dir.path(), "ptx")[..] else {
        panic!("one variant was made");
    };
    let made = std::fs::read_to_string(path).expect("it can be read");
    let line_of = |text: &str| {
        let at = made.lines().position(|line| line.contains(text));
        at.expect("it is there") + 1
    };
    let head = line_of(".entry add");
    let last = made
        .lines()
        .skip(head)
        .position(|line| !line.contains(','))
        .expect("the list ends");
    let n = made.lines().nth(head + last).expect("it is there");
    let load = line_of("ld.global");
    let odd = made.replacen("ld.global", "ld.gobal", 1);
    for (edited, line, text) in [
        (
            made.replace(n, &n.replace("32", "64")),
            head + last + 1,
            "expected",
        ),
        (
            made.replace(".entry add", ".entry sub"),
            head,
            "the entry is `sub`",
        ),
        (odd, load, "gobal"),
        (
            made.replace(".target sm_80", ".target sm_90"),
            line_of(".target"),
            "it is for sm_90, and the device takes sm_80",
        ),
        (
            made.replace(".reqntid 128", ".reqntid 256"),
            line_of(".reqntid"),
            "programs of 256 threads, expected 128",
        ),
    ] {
        assert_ne!(edited, made);
        std::fs::write(path, &edited).expect("it can be written");
        let error = run(&device(None, Some(dir.path())), 7).expect_err("it is wrong");
        let RuntimeError::File {
            path: place,
            problem,
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!(*place, format!("{}:{line}", path.display()), "{problem}");
        assert!(problem.contains(text), "{problem}");
    }
    // What goes wrong while it runs is told with its line too.
    let trapping = made.replacen("ret;", "trap;\n\tret;", 1);
    std::fs::write(path, trapping).expect("it can be written");
    let error = run(&device(None, Some(dir.path())), 7).expect_err("it traps");
    assert!(
        error.to_string().contains(&format!("{}:", path.display())),
        "{error}"
    );
}
