//! The cache on disk among processes.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use tilelift::runtime::cache::{Cache, EntryKind, KeyBuilder, Origin, Settings};
use tilelift::runtime::{Buffer, Deadline};

use crate::tools::{add_program, another_process, emulator, role};

const PROCESSES: usize = 4;
const THREADS: usize = 16;
const KERNELS: i64 = 50;

/// Asks for all kernels in an order of its own, runs each, and notes which it made.
fn ask_for_all(dir: &Path, thread: usize) {
    let device = emulator(Some(&dir.join("cache")));
    // Nothing in memory is shared with the other threads.
    let add = device.kernel(&add_program(), "add");
    let add = add.and_then(|kernel| kernel.constant("BLOCK", 32)?.warps(1));
    let add = add.expect("there is a kernel");
    let x = Buffer::from_slice(&device, &[1_i32; 32]).expect("there is memory");
    let out = Buffer::<i32>::new(&device, 32).expect("there is memory");
    let mut log = std::fs::File::options();
    let log = log.create(true).append(true).open(dir.join("log"));
    let mut log = log.expect("it can be written");
    for i in 0..KERNELS {
        let scale = (i * 7 + thread as i64 * 11) % KERNELS;
        let kernel = add.constant("SCALE", scale).expect("a constant");
        let report = kernel.prepare((&x, &x, &out, 32), &Deadline::default());
        if report.expect("it compiles").kernel_origin == Origin::Made {
            log.write_all(format!("{scale}\n").as_bytes())
                .expect("it can be written");
        }
        kernel.run(1, (&x, &x, &out, 32)).expect("it runs");
        let sums = out.read(&device.stream()).expect("it ran");
        assert_eq!(sums, [2 * scale as i32; 32]);
    }
}

#[test]
fn processes_make_each_kernel_once() {
    if let Some(dir) = role().map(PathBuf::from) {
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let dir = &dir;
                scope.spawn(move || ask_for_all(dir, thread));
            }
        });
        return;
    }
    let dir = tempfile::tempdir().expect("a folder for the test");
    let start = |_| {
        let mut command = another_process(
            "disk::processes_make_each_kernel_once",
            &dir.path().display().to_string(),
        );
        command
            .stdout(Stdio::null())
            .spawn()
            .expect("it can be started")
    };
    let children: Vec<Child> = (0..PROCESSES).map(start).collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    let log = std::fs::read_to_string(dir.path().join("log")).expect("it was written");
    let mut made = BTreeMap::new();
    for line in log.lines() {
        *made
            .entry(line.parse::<i64>().expect("a number"))
            .or_insert(0) += 1;
    }
    let once: BTreeMap<i64, i32> = (0..KERNELS).map(|scale| (scale, 1)).collect();
    assert_eq!(made, once);
    let cache = Cache::new(Settings::new(dir.path().join("cache")));
    let entries = cache.entries();
    let of = |kind: EntryKind| entries.iter().filter(|entry| entry.kind == kind).count();
    assert_eq!((of(EntryKind::Kernel), of(EntryKind::Asked)), (50, 50));
    assert_eq!(cache.verify().len(), 0);
}

/// What the writer below writes under a number.
fn contents(n: usize) -> Vec<u8> {
    (0..2000 + 97 * n).map(|i| (i * 31 + n) as u8).collect()
}

#[test]
fn a_process_that_is_killed_leaves_a_whole_cache() {
    const KEYS: usize = 40;
    let key = |n: usize| KeyBuilder::new().part("n", n.to_le_bytes()).finish();
    if let Some(dir) = role() {
        let cache = Cache::new(Settings::new(dir));
        // Until it is killed.
        for n in (0..KEYS).cycle() {
            cache.put(EntryKind::Cubin, &key(n), &contents(n));
        }
    }
    let dir = tempfile::tempdir().expect("a folder for the test");
    let folder = dir.path().join("cache");
    let cache = Cache::new(Settings::new(&folder));
    cache.put(EntryKind::Kernel, &key(0), b"from before");
    let mut delay = 0x2545_f491_4f6c_dd1d_u64;
    let mut written = 0;
    for _ in 0..200 {
        let mut command = another_process(
            "disk::a_process_that_is_killed_leaves_a_whole_cache",
            &folder.display().to_string(),
        );
        let mut child = command
            .stdout(Stdio::null())
            .spawn()
            .expect("it can be started");
        delay ^= delay << 13;
        delay ^= delay >> 7;
        delay ^= delay << 17;
        std::thread::sleep(Duration::from_micros(delay % 20_000));
        child.kill().expect("it is there");
        child.wait().expect("it ends");
        written = cache.entries().len();
        let damaged = cache.verify();
        assert!(damaged.is_empty(), "{damaged:?}");
    }
    assert!(written > 1, "not one process came to writing");
    for n in 0..KEYS {
        if let Some((found, _)) = cache.get(EntryKind::Cubin, &key(n)) {
            assert_eq!(found, contents(n));
        }
        // A lock that was held by one that was killed is free.
        let deadline = Deadline::within(Duration::from_secs(60));
        let made = cache.get_or_make::<tilelift::runtime::Stopped>(
            EntryKind::Cubin,
            &key(n),
            &deadline,
            || Ok(contents(n)),
        );
        assert_eq!(made.map(|(found, _)| found), Ok(contents(n)));
    }
    assert_eq!(
        cache.get(EntryKind::Kernel, &key(0)),
        Some((b"from before".to_vec(), Origin::Disk))
    );
}
