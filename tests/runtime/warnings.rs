//! Warnings: who takes them, and what of the environment is told. Each test in a process of its own, as handlers and
//! variables are the process's.

use std::sync::{Arc, Mutex};

use tilelift::runtime::cache::{Cache, Settings};
use tilelift::runtime::{Buffer, Deadline, Device, DeviceOptions, Dump, Program, on_warning};

use crate::tools::{add_program, another_process, emulator, role};

/// Runs a test of this module in a process of its own; what it wrote on standard error.
fn apart(test: &str, environment: &[(&str, &str)]) -> String {
    let mut command = another_process(test, "here");
    let output = command.envs(environment.iter().copied()).output();
    let output = output.expect("it can be started");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

/// Launches the addition on a device.
fn launch(device: &Device) {
    let add = device.kernel(&add_program(), "add");
    let add = add.and_then(|kernel| kernel.constant("BLOCK", 32));
    let x = Buffer::from_slice(device, &[1.0_f32; 32]).expect("there is memory");
    let add = add.expect("there is a kernel");
    add.run(1, (&x, &x, &x, 32)).expect("it runs");
}

#[test]
fn a_handler_may_use_everything() {
    if role().is_none() {
        let test = "warnings::a_handler_may_use_everything";
        apart(test, &[]);
        return;
    }
    let dir = tempfile::tempdir().expect("a folder for the test");
    launch(&emulator(Some(dir.path())));
    // Damage: who reads it is warned while it holds the entry's lock and the variant.
    let cache = Cache::new(Settings::new(dir.path()));
    for entry in cache.entries() {
        std::fs::write(&entry.path, b"damaged").expect("it can be written");
    }
    let device = emulator(Some(dir.path()));
    let told = Arc::new(Mutex::new(Vec::new()));
    let (handler_told, handler_device) = (told.clone(), device.clone());
    on_warning(move |text| {
        handler_told
            .lock()
            .expect("nobody panics")
            .push(text.to_owned());
        // The very kernel that is being made.
        launch(&handler_device);
        on_warning(|_| {});
    });
    launch(&device);
    let told = told.lock().expect("nobody panics").clone();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("a damaged cache entry"), "{told:?}");
    assert!(cache.verify().is_empty(), "it was replaced");
}

#[test]
fn what_the_environment_says_in_vain_is_told_once() {
    if role().is_none() {
        let test = "warnings::what_the_environment_says_in_vain_is_told_once";
        let text = apart(
            test,
            &[
                ("TILELIFT_CACHE", "maybe"),
                ("TILELIFT_CACHE_SIZE", "abc"),
                ("TILELIFT_CACHE_SEED", "/nowhere/seed"),
                ("TILELIFT_CACHE_KEY", "abc"),
                ("TILELIFT_CACHE_SHARED", "redis://nowhere"),
                ("TILELIFT_OVERRIDE", "/nowhere/override"),
                ("TILELIFT_LAUNCH_BLOCKING", "2"),
            ],
        );
        for part in [
            "TILELIFT_CACHE=maybe says neither on nor off",
            "TILELIFT_CACHE_SIZE=abc is no size",
            "TILELIFT_CACHE_SEED: /nowhere/seed is no folder",
            "TILELIFT_CACHE_KEY is neither a secret nor the file of one",
            "TILELIFT_CACHE_SHARED is not used: entries must be authenticated",
            "TILELIFT_OVERRIDE: /nowhere/override is no folder",
            "TILELIFT_LAUNCH_BLOCKING=2 says neither on nor off",
        ] {
            assert_eq!(text.matches(part).count(), 1, "{part}\n{text}");
        }
        return;
    }
    for _ in 0..3 {
        let options = DeviceOptions::from_env();
        assert!(!options.blocking);
        let settings = options.cache.settings().expect("it is on");
        assert_eq!(settings.limit, Settings::new("").limit);
    }
}

#[test]
fn the_environment_is_read_as_people_write_it() {
    if role().is_none() {
        let test = "warnings::the_environment_is_read_as_people_write_it";
        let text = apart(
            test,
            &[
                ("TILELIFT_CACHE", "OFF"),
                ("TILELIFT_LAUNCH_BLOCKING", "true"),
                ("TILELIFT_CACHE_SEED", ""),
                ("TILELIFT_OVERRIDE", ""),
            ],
        );
        assert!(!text.contains("tilelift: warning"), "{text}");
        return;
    }
    let options = DeviceOptions::from_env();
    assert!(options.blocking && options.cache.settings().is_none());
    assert_eq!((options.dump.write, options.dump.replace), (None, None));
    let device = Device::emulator();
    let add = device
        .kernel(&add_program(), "add")
        .expect("there is a kernel");
    let x = Buffer::from_slice(&device, &[1.0_f32; 32]).expect("there is memory");
    let add = add.constant("BLOCK", 32).expect("a constant");
    let made = add.prepare((&x, &x, &x, 32), &Deadline::default());
    assert!(made.is_ok());
}

/// A hook of a configuration, each way that Python writes one.
const HOOKS: &str = r#"
import triton
import triton.language as tl

def clear(args):
    args["x"].zero_()

@triton.autotune([
    triton.Config({"B": 64}, pre_hook=lambda args: args["x"].zero_()),
    triton.Config({"B": 128}, pre_hook=clear),
    triton.Config({"B": 32}, pre_hook=None),
], key=["n"])
@triton.jit
def f(x, n, B: tl.constexpr):
    tl.store(x, n + B)
"#;

#[test]
fn what_cannot_be_written_or_read_is_told_once() {
    if role().is_none() {
        let test = "warnings::what_cannot_be_written_or_read_is_told_once";
        let text = apart(test, &[]);
        for part in [
            "dumps cannot be written there",
            "1 lines of results of the autotuner are damaged",
            "keys.py: `size` of the key of `f` is none of its parameters",
        ] {
            assert_eq!(text.matches(part).count(), 1, "{part}\n{text}");
        }
        return;
    }
    let file = tempfile::NamedTempFile::new().expect("a file where a folder should be");
    let device = Device::emulator_with(DeviceOptions {
        dump: Dump {
            write: Some(file.path().to_owned()),
            replace: None,
        },
        ..DeviceOptions::plain()
    });
    launch(&device);
    let x = Buffer::from_slice(&device, &[1.0_f32; 64]).expect("there is memory");
    let add = device.kernel(&add_program(), "add");
    let add = add.and_then(|kernel| kernel.constant("BLOCK", 64));
    let ran = add.and_then(|kernel| kernel.run(1, (&x, &x, &x, 64)));
    assert_eq!(ran, Ok(()));

    let dir = tempfile::tempdir().expect("a folder for the test");
    let text = HOOKS.replace("[\"n\"]", "[\"n\", \"size\"]");
    let program =
        Program::python("keys.py", &text.replace("pre_hook=clear", "")).expect("it is Python");
    let device = emulator(Some(dir.path()));
    let x = Buffer::from_slice(&device, &[0_i32]).expect("there is memory");
    let tuner = program.tuner("f").expect("it is data");
    let f = device.kernel(&program, "f").expect("there is one");
    let tune = || {
        let tuned = tuner.tune(&f, &device.stream(), 1, (&x, 5));
        tuned.expect("they work").report.reused
    };
    assert_eq!(tune(), 0);
    let folder = std::fs::read_dir(dir.path().join("v1/tune")).expect("it was made");
    let file = folder.flatten().next().expect("there is one").path();
    let mut text = std::fs::read_to_string(&file).expect("it can be read");
    text += "half a li";
    std::fs::write(&file, text).expect("it can be written");
    assert_eq!((tune(), tune()), (3, 3));
}

#[test]
fn hooks_of_configurations_are_told_and_left_aside() {
    if role().is_none() {
        let test = "warnings::hooks_of_configurations_are_told_and_left_aside";
        let text = apart(test, &[]);
        assert_eq!(
            text.matches("`pre_hook` of `f` is a function of Python")
                .count(),
            1,
            "{text}"
        );
        return;
    }
    let program = Program::python("hooks.py", HOOKS).expect("it is Python");
    let device = emulator(None);
    let f = device.autotuned(&program, "f").expect("it can be tuned");
    let x = Buffer::from_slice(&device, &[0_i32]).expect("there is memory");
    f.launch(&device.stream(), 1, (&x, 5)).expect("it runs");
    let stored = x.read(&device.stream()).expect("it ran")[0];
    assert!([69, 133, 37].contains(&stored), "{stored}");
}

#[test]
fn that_ctas_run_as_one_is_told_once() {
    if role().is_none() {
        let text = apart("warnings::that_ctas_run_as_one_is_told_once", &[]);
        let notice = "kernel `add`: a program for 2 CTAs runs in one of 2 times the warps";
        assert_eq!(text.matches(notice).count(), 1, "{text}");
        assert_eq!(text.matches("CTAs").count(), 1, "{text}");
        return;
    }
    let device = Device::emulator();
    let add = device.kernel(&add_program(), "add");
    let add = add.expect("there is a kernel");
    let x = Buffer::from_slice(&device, &[1.0_f32; 64]).expect("there is memory");
    for block in [32, 64] {
        let add = add.constant("BLOCK", block).expect("a constant");
        assert_eq!(add.ctas(1).map(|_| ()), Ok(()));
        let add = add.ctas(2).expect("8 warps");
        add.run(1, (&x, &x, &x, block)).expect("it runs");
    }
}
