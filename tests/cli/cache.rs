//! `tilelift cache`.

use std::process::Command;

use super::{Folder, stderr, stdout};
use tilelift::runtime::cache::{Cache, EntryKind, KeyBuilder, Settings};

#[test]
fn the_cache_is_looked_after() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let dir = folder.path().join("cache");
    let run = |args: &[&str], off: bool| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilelift"));
        command
            .arg("cache")
            .args(args)
            .env("TILELIFT_CACHE_DIR", &dir);
        command.env("TILELIFT_CACHE", if off { "off" } else { "" });
        command.output().expect("it can be started")
    };
    assert!(stdout(&run(&["list"], false)).starts_with("0 entries, 0 bytes, in "));
    // Of a folder whose name is mistyped nothing is checked.
    assert_eq!(run(&["verify"], false).status.code(), Some(1));
    let cache = Cache::new(Settings::new(&dir));
    let key = |n: u8| KeyBuilder::new().part("n", [n]).finish();
    cache.put(EntryKind::Kernel, &key(1), b"one");
    cache.put(EntryKind::Cubin, &key(2), b"two");
    let listed = stdout(&run(&["list"], false));
    assert!(
        listed.starts_with("kernel") && listed.contains(" cubin "),
        "{listed}"
    );
    assert!(listed.contains("\n2 entries, 182 bytes, in "), "{listed}");
    assert_eq!(stdout(&run(&["verify"], false)), "2 entries, 0 damaged\n");
    let tuned = dir.join("v1/tune");
    std::fs::create_dir(&tuned).expect("it can be written");
    std::fs::write(tuned.join("a.tune"), "12345678").expect("it can be written");
    let listed = stdout(&run(&["list"], false));
    assert!(listed.ends_with("\n1 kernels tuned, 8 bytes\n"), "{listed}");
    let seed = folder.path().join("seed");
    let exported = run(&["export", &seed.display().to_string()], false);
    assert!(stdout(&exported).starts_with("2 entries copied to "));
    // A folder is made also where there is nothing to copy, and the cache itself is none.
    let itself = run(&["export", &dir.display().to_string()], false);
    assert_eq!(itself.status.code(), Some(2));
    assert!(stderr(&itself).contains("is the cache itself"));
    std::fs::write(&cache.entries()[0].path, "damaged").expect("it can be written");
    let partly = run(
        &["export", &folder.path().join("part").display().to_string()],
        false,
    );
    assert_eq!(partly.status.code(), Some(1));
    assert!(stderr(&partly).contains("left out: it is cut short"));
    assert!(stdout(&partly).starts_with("1 entries copied to "));
    let verified = run(&["verify"], false);
    assert_eq!(verified.status.code(), Some(1));
    assert!(
        stderr(&verified).contains("it is cut short"),
        "{}",
        stderr(&verified)
    );
    assert!(stdout(&run(&["clear"], false)).starts_with("2 entries removed"));
    assert_eq!(cache.entries(), []);
    let seed = Cache::new(Settings::new(&seed));
    assert_eq!((seed.entries().len(), seed.tuned()), (2, (1, 8)));
    assert_eq!(cache.tuned(), (0, 0));
    let empty = folder.path().join("empty");
    assert!(
        run(&["export", &empty.display().to_string()], false)
            .status
            .success()
    );
    assert!(empty.is_dir());
    // A file in the place of a folder is no empty cache, and no place for a seed.
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("it can be written");
    let export = run(&["export", &file.display().to_string()], false);
    assert_eq!(export.status.code(), Some(1), "{}", stderr(&export));
    std::fs::remove_dir_all(&dir).expect("it is there");
    std::fs::write(&dir, "").expect("it can be written");
    for action in [&["list"][..], &["verify"], &["clear"], &["export", "x"]] {
        let output = run(action, false);
        assert_eq!(output.status.code(), Some(1), "{action:?}");
        assert!(
            stderr(&output).contains(&dir.display().to_string()),
            "{action:?}"
        );
    }
    let off = run(&["list"], true);
    assert_eq!(off.status.code(), Some(2));
    assert!(
        stderr(&off).contains("the cache is off"),
        "{}",
        stderr(&off)
    );
}

#[cfg(unix)]
#[test]
fn the_cache_is_not_said_to_be_whole_where_it_is_not() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let dir = folder.path().join("cache");
    let run = |args: &[&str], key: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilelift"));
        command.arg("cache").args(args);
        command.env("TILELIFT_CACHE_DIR", &dir);
        command.env("TILELIFT_CACHE_KEY", key);
        command.output().expect("it can be started")
    };
    let cache = Cache::new(Settings::new(&dir));
    let key = KeyBuilder::new().finish();
    cache.put(EntryKind::Kernel, &key, b"one");
    // Who names a secret wants no seed without.
    let seed = folder.path().join("seed").display().to_string();
    for action in [&["list"][..], &["verify"], &["export", &seed]] {
        let refused = run(action, "/none/fleet.key");
        assert_eq!(refused.status.code(), Some(1), "{action:?}");
        assert!(stderr(&refused).contains("TILELIFT_CACHE_KEY is of no use"));
    }
    assert!(!std::path::Path::new(&seed).exists());
    // Links are named, and so are files whose names are like lines of a report.
    let entry = cache.entries()[0].path.clone();
    let inner = entry.parent().expect("it is in a folder");
    std::fs::write(inner.join("a\n\u{1b}[1m.kernel"), "").expect("it can be written");
    std::os::unix::fs::symlink(&entry, inner.join("b.kernel")).expect("the folder takes links");
    let verified = run(&["verify"], "");
    assert_eq!(verified.status.code(), Some(1));
    let told = stderr(&verified);
    assert_eq!(told.lines().count(), 2, "{told}");
    assert!(
        told.contains("a\\n\\u{1b}[1m.kernel: it is cut short\n"),
        "{told}"
    );
    assert!(told.contains("b.kernel: it is a link"), "{told}");
    let listed = stdout(&run(&["list"], ""));
    assert!(listed.contains("a\\n\\u{1b}[1m.kernel\n"), "{listed}");
    assert!(stdout(&run(&["clear"], "/none/fleet.key")).starts_with("2 entries removed"));
}

#[test]
fn the_list_of_the_cache_names_kernels() {
    use tilelift::runtime::{Buffer, Device, DeviceOptions, Program};
    let folder = Folder::new();
    let mut options = DeviceOptions::plain();
    options.cache = Cache::new(Settings::new(folder.0.path()));
    let device = Device::emulator_with(options);
    let source = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef fill(x, n, BLOCK: tl.constexpr):\n    \
                  i = tl.arange(0, BLOCK)\n    tl.store(x + i, 1.0, i < n)\n";
    let program = Program::python("fill.py", source).expect("it can be read");
    let kernel = device.kernel(&program, "fill").expect("it is there");
    let kernel = kernel.constant("BLOCK", 64).expect("it is a constant");
    let x = Buffer::<f32>::new(&device, 64).expect("there is room");
    kernel.run(1, (&x, 5_i32)).expect("it runs");
    let listed = Command::new(env!("CARGO_BIN_EXE_tilelift"))
        .args(["cache", "list"])
        .env("TILELIFT_CACHE_DIR", folder.0.path())
        .output()
        .expect("it can be started");
    let text = stdout(&listed);
    // Beside it stands what its code asked of arguments.
    let row = text.lines().skip(1).find(|line| line.contains(" kernel "));
    let row = row.expect("an entry");
    for word in ["fill", "x: f32, n: i32", "BLOCK=64", "sm_", " kernel "] {
        assert!(row.contains(word), "{word}: {text}");
    }
}
