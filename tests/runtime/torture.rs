//! The cache on disk under ill treatment: every launch is right all the same.
//!
//! `TILELIFT_TORTURE=1` asks for the full numbers, 1,000 damages; without it there are a few. `TILELIFT_TORTURE_FULL=DIR`
//! names a small file system for the test of a full one; without it a limit on the size of files stands in for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tilelift::runtime::cache::{Cache, EntryKind, Origin, Settings};
use tilelift::runtime::{Buffer, Deadline};

use crate::tools::{add_program, another_process, emulator, role};

/// Kernels that differ in what they multiply by.
const KERNELS: usize = 8;

/// How often something is done.
fn rounds(few: usize, full: usize) -> usize {
    match std::env::var_os("TILELIFT_TORTURE") {
        Some(value) if value == "1" => full,
        _ => few,
    }
}

/// Numbers that look random and are the same every time (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// Launches a kernel with a cache in `dir`, as a process that has just begun; where the kernel came from.
fn launch(dir: &Path, scale: usize) -> Origin {
    let device = emulator(Some(dir));
    let add = device.kernel(&add_program(), "add");
    let add = add.and_then(|k| {
        k.constant("BLOCK", 32)?
            .warps(1)?
            .constant("SCALE", scale as i64)
    });
    let add = add.expect("there is a kernel");
    let x = Buffer::from_slice(&device, &[1_i32; 32]).expect("there is memory");
    let out = Buffer::<i32>::new(&device, 32).expect("there is memory");
    add.run(1, (&x, &x, &out, 32)).expect("it runs");
    let sums = out.read(&device.stream()).expect("it ran");
    assert_eq!(sums, [2 * scale as i32; 32]);
    let report = add.prepare((&x, &x, &out, 32), &Deadline::default());
    report.expect("it is there").kernel_origin
}

/// The files of the kernels, in the order of their numbers.
fn fill(dir: &Path) -> Vec<PathBuf> {
    let cache = Cache::new(Settings::new(dir));
    let mut files: Vec<PathBuf> = Vec::new();
    for scale in 0..KERNELS {
        assert_eq!(launch(dir, scale), Origin::Made);
        let entries = cache.entries().into_iter();
        let kernels = entries.filter(|entry| entry.kind == EntryKind::Kernel);
        let mut new = kernels
            .map(|entry| entry.path)
            .filter(|path| !files.contains(path));
        files.push(new.next().expect("it was kept"));
    }
    files
}

/// Damages a file in one of many ways.
fn damage(path: &Path, other: &Path, random: &mut Random) -> &'static str {
    let mut bytes = std::fs::read(path).expect("it is there");
    let bits = 8 * bytes.len();
    match random.below(6) {
        0 => {
            let at = random.below(bits);
            bytes[at / 8] ^= 1 << (at % 8);
            std::fs::write(path, bytes).expect("it can be written");
            "a bit flipped"
        }
        1 => {
            bytes.truncate(random.below(bits / 8));
            std::fs::write(path, bytes).expect("it can be written");
            "cut"
        }
        2 => {
            std::fs::copy(other, path).expect("it can be copied");
            "the entry of another kernel"
        }
        3 => {
            std::fs::write(path, "[section]\nkey = value\n").expect("it can be written");
            "a file of something else"
        }
        4 => {
            std::fs::remove_file(path).expect("it is there");
            std::fs::create_dir(path).expect("a folder can be made");
            "a folder"
        }
        _ => {
            bytes.extend((0..1 + random.below(999)).map(|i| i as u8));
            std::fs::write(path, bytes).expect("it can be written");
            "longer"
        }
    }
}

/// Warnings that a process wrote.
fn warnings(output: &Output) -> usize {
    let text = String::from_utf8_lossy(&output.stderr);
    text.matches("tilelift: warning:").count()
}

/// The output of a process that is to end well.
fn well(mut command: Command) -> Output {
    let output = command.output().expect("it can be started");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    output
}

#[test]
fn damaged_entries_are_told_and_replaced() {
    let count = rounds(40, 1000);
    if let Some(dir) = role().map(PathBuf::from) {
        let files = fill(&dir);
        let cache = Cache::new(Settings::new(&dir));
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for round in 0..count {
            let scale = random.below(KERNELS);
            let other = &files[(scale + 1) % KERNELS];
            let how = damage(&files[scale], other, &mut random);
            assert_eq!(cache.verify().len(), 1, "{how} is seen");
            assert_eq!(launch(&dir, scale), Origin::Made, "{round}: {how}");
            let damaged = cache.verify();
            assert!(damaged.is_empty(), "{how} is replaced: {damaged:?}");
            assert_eq!(launch(&dir, scale), Origin::Disk, "{round}: {how}");
        }
        return;
    }
    let dir = tempfile::tempdir().expect("a folder for the test");
    let dir = dir.path().display().to_string();
    let output = well(another_process(
        "torture::damaged_entries_are_told_and_replaced",
        &dir,
    ));
    assert!(warnings(&output) >= count, "{}", warnings(&output));
    println!("{count} damages, {} warnings", warnings(&output));
}

/// A process that fills a cache that cannot be written to, or not wholly.
fn fill_anyway(dir: &Path) {
    for _ in 0..2 {
        for scale in 0..rounds(4, 50) {
            launch(dir, scale);
        }
    }
    let damaged = Cache::new(Settings::new(dir)).verify();
    assert!(damaged.is_empty(), "{damaged:?}");
}

#[test]
#[cfg(unix)]
fn a_full_file_system_costs_no_launch() {
    let test = "torture::a_full_file_system_costs_no_launch";
    if let Some(dir) = role().map(PathBuf::from) {
        return fill_anyway(&dir);
    }
    let dir = tempfile::tempdir().expect("a folder for the test");
    let inside = dir.path().join("cache");
    let plain = another_process(test, &inside.display().to_string());
    // Files may have a block of 512 bytes or of 1024; writes beyond that fail, as on a full disk.
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""])
        .arg(plain.get_program())
        .args(plain.get_args())
        .env("TILELIFT_TEST_ROLE", &inside);
    let output = well(limited);
    assert!(warnings(&output) >= 1, "it is told");
    // What was asked of promises fits.
    let entries = Cache::new(Settings::new(&inside)).entries();
    assert!(entries.iter().all(|entry| entry.kind == EntryKind::Asked));

    let Some(small) = std::env::var_os("TILELIFT_TORTURE_FULL").map(PathBuf::from) else {
        eprintln!("skipped in part: TILELIFT_TORTURE_FULL names no small file system");
        return;
    };
    let inside = small.join("cache");
    let output = well(another_process(test, &inside.display().to_string()));
    let kept = Cache::new(Settings::new(&inside)).entries().len();
    println!(
        "{kept} entries on {}, {} warnings",
        small.display(),
        warnings(&output)
    );
    assert!(warnings(&output) >= 1, "it is told");
    std::fs::remove_dir_all(&inside).expect("it can be removed");
}

#[test]
#[cfg(unix)]
fn wrong_permissions_cost_no_launch() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;

    /// Nobody's number, on every system.
    const NOBODY: u32 = 65_534;
    let set = |path: &Path, mode: u32| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, permissions).expect("it is there and ours");
    };
    if let Some(dir) = role().map(PathBuf::from) {
        let files = fill(&dir);
        let cache = Cache::new(Settings::new(&dir));
        for (scale, file) in files.iter().enumerate() {
            // An entry that cannot be read is replaced.
            set(file, 0o000);
            if std::fs::read(file).is_ok() {
                eprintln!("skipped: this user may read everything");
                return;
            }
            assert_eq!(launch(&dir, scale), Origin::Made);
            assert_eq!(launch(&dir, scale), Origin::Disk);
            // One in a folder that cannot be written stays as it is, and so does the launch.
            std::fs::write(file, "damaged").expect("it can be written");
            let folder = file.parent().expect("it lies in a folder");
            set(folder, 0o500);
            assert_eq!(launch(&dir, scale), Origin::Made);
            assert_eq!(cache.verify().len(), 1);
            set(folder, 0o700);
            assert_eq!(launch(&dir, scale), Origin::Made);
            assert_eq!(cache.verify().len(), 0);
        }
        for mode in [0o000, 0o500] {
            let root = dir.join("v1");
            set(&root, mode);
            launch(&dir, 0);
            launch(&dir, KERNELS);
            set(&root, 0o700);
        }
        assert_eq!(cache.verify().len(), 0);
        return;
    }
    let dir = tempfile::tempdir().expect("a folder for the test");
    let mut command = another_process(
        "torture::wrong_permissions_cost_no_launch",
        &dir.path().display().to_string(),
    );
    // Permissions mean nothing to root: there somebody else has to try.
    if chown(dir.path(), Some(NOBODY), None).is_ok() {
        command.uid(NOBODY);
    }
    match command.output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{text}");
            let is_skipped = text.contains("skipped");
            assert!(is_skipped || warnings(&output) >= 2 * KERNELS, "{text}");
        }
        Err(error) => eprintln!("skipped: another user cannot start this program: {error}"),
    }
}
