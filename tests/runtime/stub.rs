//! The way to a GPU against a stand-in for the driver, which is built here from `tests/stub_driver`.
//!
//! Each test runs in a process of its own that finds the stand-in in the driver's place. Where it cannot be built, or
//! does not come into that place, the tests say so and pass.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tilelift::driver::{Driver, DriverError};
use tilelift::runtime::cache::{Cache, Origin, Settings};
use tilelift::runtime::{
    Arg, Buffer, Constants, Deadline, Device, DeviceOptions, Graph, Kernel, Program, RuntimeError,
    Stream,
};

use crate::counting::COUNT;
use crate::tools::{ADD, another_process, role};

/// The folder of the stand-in; none where it cannot be built.
pub(crate) fn stub() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<tempfile::TempDir>> = OnceLock::new();
    let build = || {
        if !cfg!(target_os = "linux") {
            eprintln!("skipped: the stand-in for the driver is for Linux");
            return None;
        }
        let folder = tempfile::tempdir().ok()?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stub_driver/lib.rs");
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let built = Command::new(rustc)
            .args([
                "--edition",
                "2024",
                "--crate-type",
                "cdylib",
                "-A",
                "warnings",
                "-o",
            ])
            .arg(folder.path().join("libcuda.so.1"))
            .arg(source)
            .status();
        match built {
            Ok(status) if status.success() => Some(folder),
            other => {
                eprintln!("skipped: the stand-in for the driver cannot be built: {other:?}");
                None
            }
        }
    };
    let folder = FOLDER.get_or_init(build);
    folder.as_ref().map(|folder| folder.path())
}

/// Runs a test as `role` against the stand-in; gives what the stand-in logged.
pub(crate) fn run(test: &str, role: &str, environment: &[(&str, &str)]) -> Option<String> {
    let stub = stub()?;
    let log = tempfile::NamedTempFile::new().expect("a file for the log");
    let mut command = another_process(test, role);
    command
        .env("LD_LIBRARY_PATH", stub)
        .env("STUB_LOG", log.path())
        .envs(environment.iter().copied());
    let output = command.output().expect("it can be started");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stdout)
    );
    Some(std::fs::read_to_string(log.path()).expect("it can be read"))
}

/// The stand-in as a device.
pub(crate) fn gpu(dir: Option<&str>) -> Device {
    let device = Device::best_with(DeviceOptions {
        cache: dir.map_or_else(Cache::off, |dir| Cache::new(Settings::new(dir))),
        ..DeviceOptions::plain()
    });
    assert_eq!((device.name(), device.is_gpu()), ("stub", true));
    device
}

/// The kernel [`ADD`] on a device.
pub(crate) fn add(device: &Device) -> Kernel {
    let program = Program::python("add.py", ADD).expect("it is Python");
    let kernel = device.kernel(&program, "add");
    let kernel = kernel.and_then(|kernel| kernel.constant("BLOCK", 128));
    kernel.expect("there is a kernel")
}

#[test]
fn launches_arrive_with_their_arguments() {
    if let Some(dir) = role() {
        let device = gpu(Some(&dir));
        let kernel = add(&device);
        let x = Buffer::from_slice(&device, &[1.5_f32; 256]).expect("there is memory");
        let grid = |c: Constants| Some([256 / c.int("BLOCK")?, 1, 1]);
        kernel.run(&grid, (&x, &x, &x, -7)).expect("it is launched");
        kernel.run(3, (&x, &x, &x, 1)).expect("it is launched");
        assert_eq!(x.read(&device.stream()), Ok(vec![1.5; 256]));
        let report = &kernel.variants()[0];
        let used = report.resources.expect("it is on a GPU");
        assert_eq!(
            (used.registers, used.resident, used.occupancy_percent),
            (32, 4, 25)
        );
        let told = report.to_string();
        assert!(
            told.starts_with("add(*fp32, *fp32, *fp32, i32) for sm_90a, 4 warps, ")
                && told.contains("; used: 32 registers, ")
                && told.ends_with(" 4 programs resident, occupancy 25 %"),
            "{told}"
        );
        let all = kernel
            .cooperative(true)
            .and_then(|kernel| kernel.dependent(true));
        all.and_then(|kernel| kernel.run(1, (&x, &x, &x, 5)))
            .expect("it is launched");
        println!(
            "origins {:?} {:?}",
            report.kernel_origin, report.cubin_origin
        );
        let is_warm = report.kernel_origin == Origin::Disk;
        assert_eq!(
            report.cubin_origin.is_some_and(|o| o == Origin::Disk),
            is_warm
        );
        return;
    }
    let dir = tempfile::tempdir().expect("a folder for the test");
    let dir = dir.path().display().to_string();
    let test = "stub::launches_arrive_with_their_arguments";
    for assembled in [2, 0] {
        let Some(log) = run(test, &dir, &[]) else {
            return;
        };
        let launches: Vec<&str> = log
            .lines()
            .filter(|line| line.starts_with("launch"))
            .collect();
        assert_eq!(launches.len(), 3, "{log}");
        assert!(
            launches[0].starts_with("launch add [2, 1, 1] 128 0: "),
            "{log}"
        );
        let words: Vec<&str> = launches[0].split(' ').skip(7).collect();
        assert!(words.len() == 4 && words[0] == words[2], "{log}");
        assert!(words[3].ends_with("fffffff9"), "{log}");
        // The number one has become a constant.
        assert_eq!(launches[1].split(' ').skip(7).count(), 3, "{log}");
        assert!(log.contains("attributes 2"), "{log}");
        // The launch attributes change no code: two variants, and none when the cache is warm.
        assert_eq!(log.matches("assemble").count(), assembled, "{log}");
    }
}

#[test]
fn a_launch_allocates_nothing() {
    if role().is_some() {
        let device = gpu(None);
        let names: Vec<String> = (0..12).map(|i| format!("p{i}")).collect();
        let text = format!(
            "import triton\n@triton.jit\ndef many({}):\n    pass\n",
            names.join(", ")
        );
        let program = Program::python("many.py", &text).expect("it is Python");
        let many = device.kernel(&program, "many").expect("there is a kernel");
        let add = add(&device);
        let x = Buffer::<f32>::new(&device, 256).expect("there is memory");
        let stream = device.stream();
        let grid = |c: Constants| Some([256 / c.int("BLOCK")?, 1, 1]);
        let launch = |n: i32| {
            add.launch(&stream, &grid, (&x, &x, &x, n))
                .expect("it is launched");
            let p = Arg::from(&x);
            let args = (p, p, p, p, n, n, n, n, 1.5_f32, 2.5_f32, true, p);
            many.launch(&stream, 7, args).expect("it is launched");
        };
        // One that tunes itself, and one beyond the bound on variants: its types alone count for 64 bits.
        let tuner = tilelift::tune::Tuner::new([tilelift::tune::Config::new()]).key(&["n"]);
        let tuned = tilelift::tune::Autotuned::new(add.clone(), tuner);
        let bounded = add.variant_limit(4).expect("a number");
        for n in [16, 5, 1] {
            let launched = bounded.launch(&stream, 1, (&x, &x, &x, n));
            launched.expect("there is room");
        }
        let launch = |n: i32| {
            launch(n);
            let launched = tuned.launch(&stream, &grid, (&x, &x, &x, n));
            launched.expect("it is launched");
            let launched = bounded.launch(&stream, 1, (&x, &x, &x, i64::from(n)));
            launched.expect("the same one serves");
        };
        // The classes of these differ, and each is compiled once.
        [16, 5, 1].into_iter().for_each(launch);
        let before = COUNT.get();
        for n in 0..300 {
            launch([16, 5, 1][n % 3]);
        }
        assert_eq!(COUNT.get() - before, 0);
        return;
    }
    // Without a log, which allocates.
    run(
        "stub::a_launch_allocates_nothing",
        "launch",
        &[("STUB_LOG", "")],
    );
}

#[test]
fn a_graph_is_destroyed_before_the_memory_that_it_keeps() {
    if role().is_some() {
        let device = gpu(None);
        let [stream, other] = [(); 2].map(|()| Stream::new(&device).expect("a stream"));
        let record = |stream: &Stream| {
            let kernel = add(&device);
            let graph = Graph::capture(stream, |stream| {
                let x = Buffer::<f32>::new(&device, 256)?;
                kernel.launch(stream, 1, (&x, &x, &x, 5))
            });
            graph.expect("it is recorded")
        };
        let x = Buffer::<f32>::new(&device, 256).expect("there is memory");
        let prepared = add(&device).prepare((&x, &x, &x, 5), &Deadline::default());
        prepared.expect("it is compiled");
        drop(record(&stream));
        // What a graph keeps that is recorded in another is kept by that.
        let outer = Graph::capture(&stream, |stream| record(&other).launch(stream));
        drop(outer.expect("it is recorded"));
        drop(x);
        return;
    }
    let test = "stub::a_graph_is_destroyed_before_the_memory_that_it_keeps";
    if let Some(log) = run(test, "record", &[]) {
        let told = |line: &&str| {
            ["begin", "end", "destroy a g", "free"]
                .iter()
                .any(|w| line.starts_with(w))
        };
        let words = log.lines().filter(told).map(|line| line.split(' ').next());
        let words: Vec<&str> = words.flatten().collect();
        let one = ["begin", "end", "destroy", "free"];
        let in_another = ["begin", "begin", "end", "destroy", "end", "destroy", "free"];
        let last = ["free"];
        assert_eq!(words, [&one[..], &in_another, &last].concat(), "{log}");
    }
}

#[test]
fn threads_assemble_once() {
    if let Some(dir) = role() {
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    let device = gpu(Some(&dir));
                    let kernel = add(&device);
                    let x = Buffer::<f32>::new(&device, 256).expect("there is memory");
                    for scale in 0..10 {
                        let kernel = kernel.constant("SCALE", scale).expect("a constant");
                        kernel.run(1, (&x, &x, &x, 5)).expect("it is launched");
                    }
                });
            }
        });
        return;
    }
    let dir = tempfile::tempdir().expect("a folder for the test");
    let dir = dir.path().display().to_string();
    if let Some(log) = run("stub::threads_assemble_once", &dir, &[]) {
        assert_eq!(log.matches("assemble").count(), 10, "{log}");
        assert_eq!(log.matches("launch").count(), 160, "{log}");
    }
}

#[test]
fn processes_assemble_once() {
    const KERNELS: usize = 50;
    let test = "stub::processes_assemble_once";
    if let Some(dir) = role() {
        std::thread::scope(|scope| {
            for thread in 0..16 {
                let dir = &dir;
                scope.spawn(move || {
                    let device = gpu(Some(dir));
                    let kernel = add(&device);
                    let x = Buffer::<f32>::new(&device, 256).expect("there is memory");
                    for i in 0..KERNELS {
                        let scale = (i * 7 + thread * 11) % KERNELS;
                        let kernel = kernel.constant("SCALE", scale as i64).expect("a constant");
                        kernel.run(1, (&x, &x, &x, 5)).expect("it is launched");
                    }
                });
            }
        });
        return;
    }
    let Some(stub) = stub() else {
        return;
    };
    let dir = tempfile::tempdir().expect("a folder for the test");
    let log = dir.path().join("log");
    let start = |_| {
        another_process(test, &dir.path().display().to_string())
            .env("LD_LIBRARY_PATH", stub)
            .env("STUB_LOG", &log)
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("it can be started")
    };
    let children: Vec<_> = (0..4).map(start).collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    let log = std::fs::read_to_string(log).expect("it was written");
    let count = |what: &str| log.lines().filter(|line| line.starts_with(what)).count();
    assert_eq!(
        (count("assemble"), count("launch")),
        (KERNELS, 4 * 16 * KERNELS)
    );
    // Each thread has a device of its own, and loads what it launches.
    assert_eq!(count("load"), 4 * 16 * KERNELS);
}

#[test]
fn clusters_are_whole() {
    if role().is_some() {
        let device = gpu(None);
        let x = Buffer::<f32>::new(&device, 256).expect("there is memory");
        let pairs = add(&device).cluster([2, 1, 1]).expect("two are possible");
        pairs.run(4, (&x, &x, &x, 5)).expect("it is launched");
        let error = pairs.run(3, (&x, &x, &x, 5)).expect_err("3 is odd");
        let text = error.to_string();
        assert!(
            text.contains("a grid of [3, 1, 1] is not made of clusters of [2, 1, 1]"),
            "{text}"
        );
        pairs.run(0, (&x, &x, &x, 5)).expect("nothing is launched");
        return;
    }
    if let Some(log) = run("stub::clusters_are_whole", "launch", &[]) {
        assert_eq!(log.matches("attributes 1").count(), 1, "{log}");
        assert_eq!(log.matches("launch add").count(), 1, "{log}");
    }
}

#[test]
fn machine_code_made_ahead_is_loaded() {
    use tilelift::runtime::Compiled;
    /// What the stand-in takes for machine code.
    fn code(ptx: &str) -> &'static [u8] {
        let mut image = vec![0; 64];
        image[..6].copy_from_slice(b"\x7fELF\x02\x01");
        image.extend_from_slice(ptx.as_bytes());
        image.push(0);
        image.leak()
    }
    if role().is_some() {
        let device = gpu(None);
        let ptx = ".version 7.0\n.target sm_80\n.visible .entry nothing()\n{ ret; }\n";
        for (target, cubin, expected) in [
            ("sm_90", Some(code(ptx)), Origin::Ahead),
            // For another generation, cut short, and none: the PTX is assembled.
            ("sm_80", Some(code(ptx)), Origin::Made),
            ("sm_90", Some(&code(ptx)[..40]), Origin::Made),
            ("sm_90", None, Origin::Made),
        ] {
            let program = Program::compiled(&Compiled {
                name: "nothing",
                ptx,
                cubin,
                target,
                num_warps: 4,
                shared_bytes: 0,
                predicted_registers: 8,
                params: &[],
                persistent: false,
                maps: &[],
                fallback: None,
                sites: &[],
            });
            let program = program.expect("it is well described");
            let kernel = device.kernel(&program, None).expect("there is one kernel");
            kernel.run(1, ()).expect("it is launched");
            assert_eq!(kernel.variants()[0].cubin_origin, Some(expected));
        }
        return;
    }
    if let Some(log) = run("stub::machine_code_made_ahead_is_loaded", "load", &[]) {
        let count = |what| log.lines().filter(|line| line.starts_with(what)).count();
        assert_eq!(
            (count("assemble"), count("load"), count("launch")),
            (3, 4, 4),
            "{log}"
        );
    }
}

#[test]
fn modules_are_unloaded_with_their_last_kernel() {
    if role().is_some() {
        let device = gpu(None);
        let x = Buffer::<f32>::new(&device, 256).expect("there is memory");
        let kernel = add(&device);
        let other = kernel.clone();
        kernel.run(1, (&x, &x, &x, 5)).expect("it is launched");
        kernel.run(1, (&x, &x, &x, 16)).expect("it is launched");
        drop(kernel);
        other.run(1, (&x, &x, &x, 1)).expect("a clone keeps it");
        return;
    }
    if let Some(log) = run(
        "stub::modules_are_unloaded_with_their_last_kernel",
        "drop",
        &[],
    ) {
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!(log.matches("unload add").count(), 3, "{log}");
        let last_launch = lines.iter().rposition(|line| line.starts_with("launch"));
        let first_unload = lines.iter().position(|line| line.starts_with("unload"));
        assert!(last_launch < first_unload, "{log}");
    }
}

#[test]
fn an_error_of_a_kernel_stays() {
    if role().is_some() {
        let device = gpu(None);
        let kernel = add(&device);
        let x = Buffer::<f32>::new(&device, 256).expect("there is memory");
        device.set_blocking(true);
        let stream = device.stream();
        let error = kernel
            .launch(&stream, 1, (&x, &x, &x, 5))
            .expect_err("it went wrong");
        let text = error.to_string();
        assert!(
            text.starts_with("kernel `add`: cuStreamSynchronize failed"),
            "{text}"
        );
        assert!(text.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{text}");
        let lost = |result: Result<(), RuntimeError>| matches!(result, Err(RuntimeError::DeviceLost { first }) if first.contains("ILLEGAL"));
        assert!(lost(kernel.launch(&stream, 1, (&x, &x, &x, 5))));
        assert!(lost(stream.synchronize()));
        assert!(lost(x.read(&stream).map(|_| ())));
        assert!(lost(Buffer::<f32>::new(&device, 1).map(|_| ())));
        return;
    }
    run(
        "stub::an_error_of_a_kernel_stays",
        "fail",
        &[("STUB_SYNC_ERROR", "700")],
    );
}

#[test]
fn a_device_that_was_reset_is_told() {
    if role().is_some() {
        let device = gpu(None);
        let stream = device.stream();
        let text = stream.synchronize().expect_err("it was reset").to_string();
        for words in [
            "CUDA_ERROR_CONTEXT_IS_DESTROYED",
            "somebody reset the device (cudaDeviceReset)",
        ] {
            assert!(text.contains(words), "{text}");
        }
        let text = Buffer::<f32>::new(&device, 1)
            .map(drop)
            .expect_err("it is lost")
            .to_string();
        assert!(
            text.starts_with("the device cannot be used any more in this process, since: "),
            "{text}"
        );
        return;
    }
    run(
        "stub::a_device_that_was_reset_is_told",
        "reset",
        &[("STUB_SYNC_ERROR", "709")],
    );
}

#[test]
fn nobody_waits_for_a_kernel_of_others() {
    if let Some(gate) = role() {
        let device = gpu(None);
        let add = add(&device);
        let x = Buffer::from_slice(&device, &[1.0_f32; 256]).expect("there is memory");
        add.run(1, (&x, &x, &x, 5)).expect("it is launched");
        let slow = add.constant("SCALE", 0.625).expect("a constant");
        let begin = std::time::Instant::now();
        std::thread::scope(|scope| {
            let assembled = scope.spawn(|| slow.run(1, (&x, &x, &x, 5)));
            // Known ones, new classes of the same set-up, other set-ups, other programs.
            for n in 0..100_i64 {
                add.run(1, (&x, &x, &x, 5)).expect("it is launched");
                add.run(1, (&x, &x, &x, n % 3 + 15))
                    .expect("it is launched");
                let other = add.constant("SCALE", n % 10).expect("a constant");
                other.run(1, (&x, &x, &x, 5)).expect("it is launched");
            }
            self::add(&device)
                .run(1, (&x, &x, &x, 5))
                .expect("it is launched");
            assert!(!assembled.is_finished());
            std::fs::write(gate, "").expect("it can be written");
            assert!(assembled.join().expect("no panic").is_ok());
        });
        assert!(
            begin.elapsed().as_secs() < 60,
            "it did not wait for the gate's time to end"
        );
        return;
    }
    let folder = tempfile::tempdir().expect("a folder for the test");
    let gate = folder.path().join("gate").display().to_string();
    // The bits of the constant, as PTX has them.
    let slow = format!("{:08X}", 0.625_f32.to_bits());
    let environment = [("STUB_SLOW", &*slow), ("STUB_GATE", &*gate)];
    let test = "stub::nobody_waits_for_a_kernel_of_others";
    if let Some(log) = run(test, &gate, &environment) {
        let launches: Vec<&str> = log
            .lines()
            .filter(|line| line.starts_with("launch"))
            .collect();
        assert_eq!(launches.len(), 303, "{log}");
    }
}

/// Kilobytes of memory that this process has.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").expect("this is Linux");
    let pages = status
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<usize>().ok());
    4 * pages.expect("the number of pages")
}

/// A server that meets shapes without end; `TILELIFT_TORTURE=1` asks for 10,000 specialisations and 1,000,000 launches.
#[test]
fn a_long_life_takes_bounded_memory() {
    let full = std::env::var_os("TILELIFT_TORTURE").is_some_and(|value| value == "1");
    let specialisations = if full { 10_000 } else { 600 };
    if role().is_some() {
        let device = gpu(None);
        let program = Program::python("add.py", ADD).expect("it is Python");
        let x = Buffer::from_slice(&device, &[1.0_f32; 256]).expect("there is memory");
        let mut curve = Vec::new();
        for scale in 0..specialisations {
            for launch in 0..100 {
                // As a server does it that keeps no handles: set up at each launch.
                let kernel = device.kernel(&program, "add");
                let kernel =
                    kernel.and_then(|k| k.constant("BLOCK", 128)?.constant("SCALE", scale));
                let launched =
                    kernel.and_then(|k| k.variant_limit(64)?.run(1, (&x, &x, &x, launch | 5)));
                launched.expect("it is launched");
            }
            if (scale + 1) % (specialisations / 10) == 0 {
                curve.push(resident());
            }
        }
        println!("curve in KiB: {curve:?}");
        // The first tenth fills what is kept; afterwards there is the stand-in's own, some hundred bytes for each module.
        let most = curve[1] + (specialisations as usize) / 4 + 2048;
        assert!(curve.iter().all(|&kib| kib < most), "{curve:?}");
        return;
    }
    let test = "stub::a_long_life_takes_bounded_memory";
    // Without a log, which would be the largest of all.
    run(test, "live", &[("STUB_LOG", "")]);
    // How many modules there are at a time.
    if full {
        return;
    }
    if let Some(log) = run(test, "live", &[]) {
        let (mut loaded, mut most) = (0_usize, 0);
        for line in log.lines() {
            match line.split(' ').next() {
                Some("load") => loaded += 1,
                Some("unload") => loaded -= 1,
                _ => {}
            }
            most = most.max(loaded);
        }
        assert!((32..=66).contains(&most), "{most} modules at a time");
    }
}

#[test]
fn refused_code_is_told_with_its_line() {
    if role().is_some() {
        let device = gpu(None);
        let x = Buffer::<f32>::new(&device, 256).expect("there is memory");
        let error = add(&device).prepare((&x, &x, &x, 5), &Deadline::default());
        let text = error.expect_err("it is refused").to_string();
        assert!(
            text.starts_with("kernel `add`: add.py:10: the driver's assembler refused"),
            "{text}"
        );
        assert!(text.contains("error   : refused"), "{text}");
        return;
    }
    run(
        "stub::refused_code_is_told_with_its_line",
        "fail",
        &[("STUB_REFUSE", "st.global")],
    );
}

#[test]
#[cfg(unix)]
#[expect(unsafe_code, reason = "a fork is what is tested")]
fn a_forked_process_is_told() {
    unsafe extern "C" {
        fn fork() -> i32;
        fn waitpid(child: i32, status: *mut i32, options: i32) -> i32;
        fn _exit(code: i32) -> !;
    }
    if role().is_some() {
        let device = gpu(None);
        let kernel = add(&device);
        let x = Buffer::<f32>::new(&device, 256).expect("there is memory");
        kernel.run(1, (&x, &x, &x, 5)).expect("it is launched");
        // SAFETY: the child does nothing that another thread could hold a lock of, and leaves.
        let child = unsafe { fork() };
        if child == 0 {
            let forked = |result: Result<(), RuntimeError>| matches!(result, Err(RuntimeError::Driver { error, .. }) if *error == DriverError::Forked);
            let told = forked(kernel.run(1, (&x, &x, &x, 5)))
                && Driver::load() == Err(DriverError::Forked);
            drop(x);
            // SAFETY: ends the child at once.
            unsafe { _exit(if told { 7 } else { 1 }) }
        }
        let mut status = 0;
        // SAFETY: waits for the child made above; writes one integer.
        assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 7 << 8);
        kernel.run(1, (&x, &x, &x, 5)).expect("the parent goes on");
        return;
    }
    run("stub::a_forked_process_is_told", "fork", &[]);
}

#[test]
fn without_a_driver_there_is_the_emulator() {
    if let Some(empty) = role() {
        let _ = PathBuf::from(empty);
        let device = Device::best_with(DeviceOptions::plain());
        println!("best: {}", device.name());
        return;
    }
    let output = another_process("stub::without_a_driver_there_is_the_emulator", "best").output();
    let output = output.expect("it can be started");
    assert!(output.status.success());
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    if Driver::load().is_err() {
        assert!(out.contains("best: emulator"), "{out}");
        assert_eq!(
            err.matches("kernels run on the emulator: no CUDA d")
                .count(),
            1,
            "{err}"
        );
    }
}

#[test]
fn an_assertion_that_fails_is_an_error_of_who_waits() {
    if let Some(role) = role() {
        let device = gpu(None);
        let kernel = crate::asserts::keep(&device).debug(true).expect("a set-up");
        let x = Buffer::from_slice(&device, &[1_i32; 8]).expect("there is memory");
        let stream = device.stream();
        let launch = || kernel.launch(&stream, 2, (&x, &x, 6));
        // The first that there is with `debug`.
        let place = "assertion failed: int32 overflow in multiplication (small.py:6)";
        let failed = |element: &str| RuntimeError::Assertion {
            kernel: "keep".to_owned(),
            failures: vec![format!("{element}{place}")],
        };
        let recorded = failed("pid (2, 0, 0) ");
        match role.as_str() {
            "last" => {
                assert_eq!((launch(), launch()), (Ok(()), Ok(())));
                assert_eq!(stream.synchronize(), Err(recorded));
                // It is told once, and the device goes on.
                assert_eq!(stream.synchronize(), Ok(()));
                assert_eq!(kernel.run(2, (&x, &x, 6)), Ok(()));
            }
            // The launch after it has taken its record.
            "first" => {
                assert_eq!((launch(), launch()), (Ok(()), Ok(())));
                assert_eq!(x.read(&stream), Err(failed("")));
                assert_eq!(x.read(&stream), Ok(vec![1; 8]));
            }
            // Nobody keeps the kernel until somebody waits.
            "dropped" => {
                assert_eq!(launch(), Ok(()));
                drop(kernel);
                assert_eq!(stream.synchronize(), Err(recorded));
            }
            _ => {
                device.set_blocking(true);
                assert_eq!(launch(), Err(recorded));
                assert_eq!(launch(), Ok(()));
            }
        }
        return;
    }
    let test = "stub::an_assertion_that_fails_is_an_error_of_who_waits";
    for (role, launch) in [
        ("last", "2"),
        ("first", "1"),
        ("dropped", "1"),
        ("blocking", "1"),
    ] {
        run(test, role, &[("STUB_ASSERT", launch)]);
    }
}
