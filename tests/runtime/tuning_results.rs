//! Results of tuning that are kept, found again and gone on from.

use std::path::{Path, PathBuf};

use tilelift::runtime::cache::{Cache, Settings};
use tilelift::runtime::{Buffer, Device, DeviceOptions, Dump};
use tilelift::tune::{Config, Tuner};

use crate::tools::{add_program, another_process, emulator, role};
use crate::tuning::{add, blocks, grid};

#[test]
fn results_come_from_a_seed_too() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let [own, seed, second] = ["own", "seed", "second"].map(|name| dir.path().join(name));
    let tune = |settings: Settings| {
        let cache = Cache::new(settings);
        let device = Device::emulator_with(DeviceOptions {
            cache: cache.clone(),
            ..DeviceOptions::plain()
        });
        let kernel = device.kernel(&add_program(), "add");
        let x = Buffer::from_slice(&device, &[1.0_f32; 1000]).expect("there is memory");
        let out = Buffer::<f32>::new(&device, 1000).expect("there is memory");
        let kernel = kernel.expect("there is a kernel");
        let args = (&x, &x, &out, 1000);
        let tuned = Tuner::new(blocks()).tune(&kernel, &device.stream(), &grid, args);
        (tuned.expect("they work").report.reused, cache)
    };
    let (reused, cache) = tune(Settings::new(&own));
    assert_eq!((reused, cache.tuned().0), (0, 1));
    cache.export(&seed).expect("it can be written");
    let (reused, cache) = tune(Settings {
        seeds: vec![seed],
        ..Settings::new(&second)
    });
    assert_eq!((reused, cache.tuned()), (3, (0, 0)), "nothing was measured");
    let (reused, cache) = tune(Settings::new(&own));
    assert_eq!(reused, 3);
    cache.clear().expect("it is ours");
    assert_eq!(cache.tuned(), (0, 0));
}

#[cfg(unix)]
#[test]
fn a_pipe_in_place_of_results_is_not_waited_for() {
    if role().is_none() {
        let test = "tuning_results::a_pipe_in_place_of_results_is_not_waited_for";
        let output = another_process(test, "here").output();
        let output = output.expect("it can be started");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{text}");
        if !text.contains("there is no mkfifo") {
            let told = text.lines().filter(|l| l.contains("cannot be kept there"));
            assert_eq!(told.count(), 1, "{text}");
        }
        return;
    }
    let dir = tempfile::tempdir().expect("a folder for the test");
    let tune = || {
        let (kernel, x, out) = add(Some(dir.path()));
        let stream = kernel.device().stream();
        let tuned = Tuner::new(blocks()).tune(&kernel, &stream, &grid, (&x, &x, &out, 1000));
        tuned.expect("they work").report.reused
    };
    assert_eq!(tune(), 0);
    let folder = std::fs::read_dir(dir.path().join("v1/tune")).expect("it was made");
    let file = folder.flatten().next().expect("there is one").path();
    std::fs::remove_file(&file).expect("it is ours");
    let made = std::process::Command::new("mkfifo").arg(&file).status();
    if made.is_ok_and(|status| status.success()) {
        assert_eq!((tune(), tune()), (0, 0));
    } else {
        eprintln!("skipped: there is no mkfifo");
    }
}

#[test]
fn what_edited_ptx_costs_is_not_kept() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let reused = |replace: Option<&Path>| {
        let device = Device::emulator_with(DeviceOptions {
            cache: Cache::new(Settings::new(dir.path())),
            dump: Dump {
                write: None,
                replace: replace.map(Path::to_owned),
            },
            ..DeviceOptions::plain()
        });
        let kernel = device
            .kernel(&add_program(), "add")
            .expect("there is a kernel");
        let x = Buffer::from_slice(&device, &[1.0_f32; 1000]).expect("there is memory");
        let out = Buffer::<f32>::new(&device, 1000).expect("there is memory");
        let args = (&x, &x, &out, 1000);
        let tuned = Tuner::new(blocks()).tune(&kernel, &device.stream(), &grid, args);
        tuned.expect("they work").report.reused
    };
    let edited = tempfile::tempdir().expect("a folder for the test");
    let all = [Some(edited.path()), None, Some(edited.path()), None];
    assert_eq!(all.map(reused), [0, 0, 0, 3]);
}

/// Eight configurations of the addition.
fn eight() -> Vec<Config> {
    let config = |i: u32| blocks()[i as usize % 3].clone().warps(1 << (i / 3));
    (0..8).map(config).collect()
}

/// Tunes, and ends the process when so many configurations are done.
pub(crate) fn tune_and_stop(device: &Device, after: usize) {
    let kernel = device
        .kernel(&add_program(), "add")
        .expect("there is a kernel");
    let x = Buffer::from_slice(device, &[1.0_f32; 1000]).expect("there is memory");
    let out = Buffer::<f32>::new(device, 1000).expect("there is memory");
    let stop = |done: usize, _: usize, _: &str| {
        if done == after {
            std::process::abort();
        }
    };
    let tuner = Tuner::new(eight()).progress(&stop);
    let tuned = tuner.tune(&kernel, &device.stream(), &grid, (&x, &x, &out, 1000));
    panic!("it was not stopped: {tuned:?}");
}

/// Has another process, which runs `test` to call [`tune_and_stop`], begin with the tuning, and goes on.
pub(crate) fn goes_on(device: &Device, test: &str, dir: &Path, after: usize) {
    let output = another_process(test, &dir.display().to_string()).output();
    let output = output.expect("it can be started");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && !text.contains("panicked"),
        "{text}"
    );
    let kernel = device
        .kernel(&add_program(), "add")
        .expect("there is a kernel");
    let x = Buffer::from_slice(device, &[1.0_f32; 1000]).expect("there is memory");
    let out = Buffer::<f32>::new(device, 1000).expect("there is memory");
    for reused in [after, eight().len()] {
        let stream = device.stream();
        let tuned = Tuner::new(eight()).tune(&kernel, &stream, &grid, (&x, &x, &out, 1000));
        let tuned = tuned.expect("they work");
        assert_eq!(tuned.report.reused, reused);
        println!(
            "{} of {} known",
            tuned.report.reused,
            tuned.report.rows.len()
        );
        tuned
            .kernel
            .run(&grid, (&x, &x, &out, 1000))
            .expect("it runs");
        assert_eq!(out.read(&stream), Ok(vec![2.0; 1000]));
    }
}

#[test]
fn tuning_goes_on_where_it_was_killed() {
    if let Some(dir) = role().map(PathBuf::from) {
        tune_and_stop(&emulator(Some(&dir)), 5);
    }
    let dir = tempfile::tempdir().expect("a folder for the test");
    let device = emulator(Some(dir.path()));
    let test = "tuning_results::tuning_goes_on_where_it_was_killed";
    goes_on(&device, test, dir.path(), 5);
}
