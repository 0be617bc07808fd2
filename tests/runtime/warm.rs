//! From a run that is recorded to one that starts warm.

use std::path::Path;

use tilelift::runtime::cache::{Cache, Origin, Settings};
use tilelift::runtime::{Buffer, Device, DeviceOptions, LaunchRecord, Manifest, Program, Report};
use tilelift::settings::Target;
use tilelift::warm::{Assembler, Warm};

use crate::tools::ADD;

/// Its code is the same for every number.
const PUT: &str = "import triton, triton.language as tl

@triton.jit
def put(x, n):
    tl.store(x, n)
";

/// Launches kernels of two programs on a device with a cache and a manifest; gives the reports of their variants.
fn serve(
    mut options: DeviceOptions,
    cache: Cache,
    record: LaunchRecord,
    is_gpu: bool,
) -> Vec<Report> {
    (options.cache, options.record) = (cache, record);
    let device = match is_gpu {
        true => Device::best_with(options),
        false => Device::emulator_with(options),
    };
    let x = Buffer::from_slice(&device, &[1.5_f32; 256]).expect("there is memory");
    let program = Program::python("add.py", ADD).expect("it is Python");
    let add = device.kernel(&program, "add").expect("there is a kernel");
    let mut reports = Vec::new();
    for scale in [1.0, -0.5] {
        let add = add
            .constant("BLOCK", 64)
            .and_then(|k| k.constant("SCALE", scale));
        let add = add.and_then(|k| k.warps(2)).expect("it can be set up so");
        for n in [1, 5, 64] {
            add.run(1, (&x, &x, &x, n)).expect("it runs");
        }
        reports.extend(add.variants());
    }
    let text = "kernel @put(v0 \"x\": ptr<f32>) warps(4) {\nblock0:\n    v1 = const {value = 1.0} : f32\n    store v0, v1\n    return\n}\n";
    let program = Program::tir("put.tir", text).expect("it is IR");
    let put = device.kernel(&program, "put").expect("there is a kernel");
    put.run(1, (&x,)).expect("it runs");
    reports.extend(put.variants());
    reports
}

fn cache(folder: &Path) -> Cache {
    Cache::new(Settings::new(folder))
}

#[test]
fn a_recorded_run_starts_warm_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("run.manifest");
    let run =
        |cache: Cache, record: LaunchRecord| serve(DeviceOptions::plain(), cache, record, false);
    let cold = run(Cache::off(), LaunchRecord::to(&path));
    assert_eq!(cold.len(), 7);
    // What is found in a cache is recorded, too, and nothing twice.
    let manifest = Manifest::read(&path).expect("it was written");
    assert_eq!(manifest.len(), 7);
    // The emulator's own target is nobody's wish.
    let warm = Warm {
        assembler: Assembler::None,
        jobs: 3,
        ..Warm::new(cache(&folder.path().join("cache")))
    };
    let report = warm.run(&manifest, &|_, _| {});
    assert_eq!(report.failed(), 7, "{report}");
    let warm = Warm {
        targets: vec![Device::emulator_with(DeviceOptions::plain()).target()],
        ..warm
    };
    let told = std::sync::Mutex::new(Vec::new());
    let report = warm.run(&manifest, &|row, done| {
        told.lock()
            .expect("nobody panics")
            .push((row.kernel.clone(), done));
    });
    assert_eq!((report.rows.len(), report.failed()), (7, 0), "{report}");
    assert!(
        report
            .to_string()
            .contains("7 compiled, 0 assembled, 7 left"),
        "{report}"
    );
    let mut numbers: Vec<usize> = told
        .into_inner()
        .expect("nobody panics")
        .iter()
        .map(|t| t.1)
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
    // Rows are in the order of the manifest.
    assert_eq!(
        report.rows[0].place,
        format!("{}:{}", path.display(), line_of(&path, 0))
    );
    assert!(
        report
            .rows
            .iter()
            .all(|row| row.ptx == Some(Origin::Made) && row.code.is_none())
    );
    let warmed = run(cache(&folder.path().join("cache")), LaunchRecord::off());
    assert!(
        warmed
            .iter()
            .all(|report| report.kernel_origin == Origin::Disk),
        "{warmed:?}"
    );
    // A second time there is nothing to do.
    let again = warm.run(&manifest, &|_, _| {});
    assert!(
        again.rows.iter().all(|row| row.ptx == Some(Origin::Disk)),
        "{again}"
    );
    // For other targets than those of the run.
    let both = Warm {
        targets: vec![Target::SM_80, Target::SM_90A],
        ..warm
    };
    let report = both.run(&manifest, &|_, _| {});
    let made = report
        .rows
        .iter()
        .filter(|row| row.ptx == Some(Origin::Made));
    let targets: Vec<Option<Target>> = made.map(|row| row.target).collect();
    assert_eq!(
        (report.rows.len(), targets),
        (14, vec![Some(Target::SM_90A); 7])
    );
}

/// Launches that share a variant are each known from then on, whichever comes first.
#[test]
fn what_shares_a_variant_is_found_in_any_order() {
    let orders = [[5, 64, 7], [64, 7, 5]];
    for (first, second) in [(orders[0], orders[1]), (orders[1], orders[0])] {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("run.manifest");
        for (order, origin) in [(first, Origin::Made), (second, Origin::Disk)] {
            let mut options = DeviceOptions::plain();
            options.cache = cache(&folder.path().join("cache"));
            options.record = LaunchRecord::to(&path);
            let device = Device::emulator_with(options);
            let x = Buffer::from_slice(&device, &[1.5_f32; 64]).expect("there is memory");
            let program = Program::python("put.py", PUT).expect("it is Python");
            let put = device.kernel(&program, "put").expect("there is a kernel");
            for n in order {
                put.run(1, (&x, n)).expect("it runs");
            }
            let variants = put.variants();
            assert_eq!(variants.len(), 1, "the code asks for no multiple of n");
            assert_eq!(variants[0].kernel_origin, origin, "{order:?}");
        }
        // One line for each class of n.
        let manifest = Manifest::read(&path).expect("it was written");
        assert_eq!(manifest.len(), 2);
    }
}

/// A manifest that an editor left without an end of its last line goes on with a line of its own.
#[test]
fn a_manifest_without_a_last_end_of_line_goes_on() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("run.manifest");
    std::fs::write(&path, "# by hand").expect("the folder can be written");
    let device = Device::emulator_with(DeviceOptions {
        record: LaunchRecord::to(&path),
        ..DeviceOptions::plain()
    });
    let program = Program::python("put.py", PUT).expect("it is Python");
    let put = device.kernel(&program, "put").expect("there is a kernel");
    let x = Buffer::from_slice(&device, &[0.0_f32]).expect("there is memory");
    put.run(1, (&x, 5)).expect("it runs");
    let text = std::fs::read_to_string(&path).expect("it was written");
    assert!(text.starts_with("# by hand\nprogram "), "{text}");
    assert_eq!(Manifest::read(&path).expect("it is one").len(), 1);
}

/// The line of the manifest where its kernel of a number is.
fn line_of(path: &Path, kernel: usize) -> usize {
    let text = std::fs::read_to_string(path).expect("it was written");
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.starts_with("kernel"));
    1 + lines.nth(kernel).expect("there is one").0
}

#[test]
fn a_kernel_that_cannot_be_made_is_no_end() {
    let text = "program p python p.py
| import triton, triton.language as tl
|
| @triton.jit
| def put(x, N: tl.constexpr):
|     tl.store(x + tl.arange(0, N), 1.0)
kernel p put \"*fp32\" N=48 target=sm_80
kernel p put \"*fp32\" N=64
kernel p put \"*fp32\" N=64 target=sm_80
";
    let manifest = Manifest::parse("m", text).expect("its lines are right");
    let folder = tempfile::tempdir().expect("a folder for the test");
    let warm = Warm {
        assembler: Assembler::None,
        ..Warm::new(cache(folder.path()))
    };
    let report = warm.run(&manifest, &|_, _| {});
    let problems: Vec<&str> = report
        .rows
        .iter()
        .map(|row| row.problem.as_deref().unwrap_or(""))
        .collect();
    assert!(problems[0].contains("power of two"), "{problems:?}");
    assert!(
        problems[1].contains("nothing says what it is compiled for"),
        "{problems:?}"
    );
    assert_eq!(problems[2], "");
    assert_eq!(report.rows[1].place, "m:8");
    assert!(report.to_string().ends_with(", 2 failed"), "{report}");
}

#[cfg(feature = "cuda")]
mod by_driver {
    use super::*;
    use crate::stub::run;
    use crate::tools::role;

    /// Machine code of seven kernels, each its own.
    const CODES: usize = 7;

    fn gpu_run(folder: &Path, record: LaunchRecord) -> Vec<Report> {
        serve(DeviceOptions::plain(), cache(folder), record, true)
    }

    /// A command that starts the worker and writes down that it did.
    #[cfg(unix)]
    fn counted_worker(folder: &Path) -> std::path::PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = folder.join("worker.sh");
        let text = format!(
            "#!/bin/sh\necho \"$@\" >> '{}'\nexec '{}' \"$@\"\n",
            folder.join("started").display(),
            env!("CARGO_BIN_EXE_tilelift")
        );
        std::fs::write(&path, text).expect("writable");
        let may_run = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, may_run).expect("it is ours");
        path
    }

    #[cfg(not(unix))]
    fn counted_worker(_: &Path) -> std::path::PathBuf {
        env!("CARGO_BIN_EXE_tilelift").into()
    }

    /// In one process the manifest is recorded and warmed by other processes, in the next one all is there.
    #[test]
    fn assembled_by_processes_it_is_loaded_by_the_application() {
        let test = "warm::by_driver::assembled_by_processes_it_is_loaded_by_the_application";
        if let Some(role) = role() {
            let (step, folder) = role.split_once(' ').expect("as below");
            let folder = Path::new(folder);
            let path = folder.join("run.manifest");
            match step {
                "record" => {
                    gpu_run(&folder.join("other"), LaunchRecord::to(&path));
                }
                "start" => {
                    let reports = gpu_run(&folder.join("cache"), LaunchRecord::off());
                    let is_warm = |report: &Report| {
                        (report.kernel_origin, report.cubin_origin)
                            == (Origin::Disk, Some(Origin::Disk))
                    };
                    assert!(reports.iter().all(is_warm), "{reports:?}");
                }
                step => {
                    let mut warm = Warm::new(cache(&folder.join("cache")));
                    warm.jobs = 2;
                    warm.worker = (step == "processes").then(|| counted_worker(folder));
                    let manifest = Manifest::read(&path).expect("it was recorded");
                    let report = warm.run(&manifest, &|_, _| {});
                    let refused = std::env::var("STUB_REFUSE").is_ok();
                    assert_eq!(report.failed(), if refused { 6 } else { 0 }, "{report:?}");
                    let assembled = report
                        .rows
                        .iter()
                        .filter(|row| row.code == Some(Origin::Made));
                    assert_eq!(
                        assembled.count(),
                        if refused { 1 } else { CODES },
                        "{report:?}"
                    );
                    // What is made takes time.
                    for row in &report.rows {
                        let is_made = row.code == Some(Origin::Made);
                        assert!(!is_made || !row.assemble.is_zero(), "{row:?}");
                    }
                    // Each thread keeps the worker that it has started.
                    let started = std::fs::read_to_string(folder.join("started"));
                    let started = started.unwrap_or_default();
                    assert!(started.lines().count() <= warm.jobs, "{started}");
                    let problem = report.rows[0].problem.clone().unwrap_or_default();
                    assert_eq!(problem.contains("refused"), refused, "{problem}");
                }
            }
            return;
        }
        for how in ["processes", "here"] {
            let folder = tempfile::tempdir().expect("a folder for the test");
            let role = |step: &str| format!("{step} {}", folder.path().display());
            let Some(log) = run(test, &role("record"), &[]) else {
                return;
            };
            let recorded = log.matches("assemble").count();
            assert_eq!(recorded, CODES, "{log}");
            // The stand-in refuses six of them, and the seventh is made all the same.
            let log = run(test, &role(how), &[("STUB_REFUSE", ".entry add(")]);
            assert_eq!(log.unwrap_or_default().matches("assemble").count(), 1);
            std::fs::remove_dir_all(folder.path().join("cache")).expect("it is there");
            let _ = std::fs::remove_file(folder.path().join("started"));
            let log = run(test, &role(how), &[]).unwrap_or_default();
            assert_eq!(log.matches("assemble").count(), CODES, "{how}: {log}");
            let log = run(test, &role("start"), &[]).unwrap_or_default();
            assert_eq!(
                (
                    log.matches("assemble").count(),
                    log.matches("launch").count()
                ),
                (0, 7),
                "{log}"
            );
        }
    }
}
