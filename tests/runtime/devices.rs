//! Several devices in one process, against the stand-in for the driver ([`crate::stub`]).

use tilelift::runtime::cache::{Cache, Settings};
use tilelift::runtime::{Buffer, Device, DeviceOptions, Event, Program, Stream};

use crate::stub::{add, gpu, run};
use crate::tools::{ADD, role};

#[test]
#[expect(unsafe_code, reason = "a context as another library has it")]
fn several_devices_and_contexts_do_not_mix() {
    if role().is_some() {
        let first = gpu(None);
        let second = Device::gpu_with(1, DeviceOptions::plain()).expect("there are two");
        assert!(Device::gpu_with(2, DeviceOptions::plain()).is_err());
        let [x, y] = [&first, &second]
            .map(|device| Buffer::from_slice(device, &[1.0_f32; 256]).expect("there is memory"));
        let kernel = add(&second);
        let error = kernel
            .run(1, (&y, &x, &y, 5))
            .expect_err("`y` of the kernel is elsewhere");
        let text = error.to_string();
        assert!(
            text.contains("argument `y`: its memory belongs to another device"),
            "{text}"
        );
        let error = kernel.launch(&first.stream(), 1, (&y, &y, &y, 5));
        let text = error.expect_err("the stream is elsewhere").to_string();
        assert!(
            text.contains("the stream belongs to another device"),
            "{text}"
        );
        kernel.run(1, (&y, &y, &y, 5)).expect("all of it is there");
        add(&first)
            .run(1, (&x, &x, &x, 5))
            .expect("the first works on");

        let borrowed = |handle: usize| {
            let handle = std::ptr::without_provenance_mut(handle);
            // SAFETY: the stand-in takes any number for a context.
            let context = unsafe { tilelift::driver::Context::from_raw(handle) };
            let context = context.expect("it is of a device");
            assert_eq!(context.device().ordinal, 1);
            assert!(context.cust().is_none());
            Device::from_context(context, DeviceOptions::plain()).expect("a device")
        };
        // The handle of the context that `second` uses: memory mixes.
        add(&borrowed(0x1001))
            .run(1, (&y, &y, &y, 5))
            .expect("all of it is there");
        // Another context of the same GPU: it does not.
        let other = borrowed(0x2001);
        let error = add(&other).run(1, (&y, &y, &y, 5));
        let text = error.expect_err("it is of another context").to_string();
        assert!(
            text.contains("argument `x`: its memory belongs to another device"),
            "{text}"
        );
        let z = Buffer::<f32>::new(&other, 256).expect("there is memory");
        add(&other)
            .run(1, (&z, &z, &z, 5))
            .expect("all of it is there");
        return;
    }
    let test = "devices::several_devices_and_contexts_do_not_mix";
    if let Some(log) = run(test, "launch", &[("STUB_DEVICES", "2")]) {
        assert_eq!(log.matches("launch add").count(), 4, "{log}");
    }
}

#[test]
fn launches_find_their_context() {
    if role().is_some() {
        let first = gpu(None);
        let second = Device::gpu_with(1, DeviceOptions::plain()).expect("there are two");
        let x = Buffer::from_slice(&second, &[1.0_f32; 256]).expect("there is memory");
        let kernel = add(&second);
        kernel.run(1, (&x, &x, &x, 5)).expect("it is launched");
        let context = second.as_driver().expect("it is a GPU");
        let default = Stream::from_driver(&second, tilelift::driver::Stream::null(context));
        let default = default.expect("it is of the device");
        let launch = |stream: &Stream| {
            let launched = kernel.launch(stream, 1, (&x, &x, &x, 5));
            launched.expect("whichever context is current");
        };
        // Where there is none, and where it is another device's: default streams are of the current one, others tell theirs.
        std::thread::scope(|scope| {
            scope.spawn(|| launch(&second.stream()));
        });
        std::thread::scope(|scope| {
            scope.spawn(|| launch(&default));
        });
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let y = Buffer::from_slice(&first, &[1.0_f32; 256]).expect("there is memory");
                launch(&default);
                launch(&second.stream());
                drop(y);
            });
        });
        return;
    }
    let test = "devices::launches_find_their_context";
    if let Some(log) = run(test, "launch", &[("STUB_DEVICES", "2")]) {
        assert_eq!(log.matches("launch add").count(), 5, "{log}");
        assert_eq!(log.matches("refuse add in 0\n").count(), 1, "{log}");
        assert_eq!(log.matches("refuse add in 1000\n").count(), 1, "{log}");
    }
}

#[test]
fn devices_of_a_kind_share_what_is_compiled() {
    if let Some(dir) = role() {
        let open = |ordinal| {
            let mut options = DeviceOptions::plain();
            options.cache = Cache::new(Settings::new(&dir));
            Device::gpu_with(ordinal, options).expect("there are three")
        };
        let devices = [0, 1].map(open);
        // At once: who comes second waits for the first.
        std::thread::scope(|scope| {
            for device in &devices {
                scope.spawn(move || {
                    let x = Buffer::from_slice(device, &[1.0_f32; 256]).expect("there is memory");
                    add(device).run(1, (&x, &x, &x, 5)).expect("it is launched");
                });
            }
        });
        // One program, set up for both.
        let program = Program::python("add.py", ADD).expect("it is Python");
        for device in &devices {
            let kernel = device.kernel(&program, "add");
            let kernel = kernel.and_then(|kernel| kernel.constant("BLOCK", 32));
            let x = Buffer::from_slice(device, &[1.0_f32; 256]).expect("there is memory");
            kernel
                .and_then(|k| k.run(1, (&x, &x, &x, 5)))
                .expect("it is launched");
        }
        return;
    }
    let dir = tempfile::tempdir().expect("a folder for the test");
    let dir = dir.path().display().to_string();
    let test = "devices::devices_of_a_kind_share_what_is_compiled";
    if let Some(log) = run(test, &dir, &[("STUB_DEVICES", "2")]) {
        // Two kernels, each assembled once and loaded by both.
        assert_eq!(log.matches("assemble add").count(), 2, "{log}");
        for context in ["1000", "1001"] {
            let line = format!("load add in {context}\n");
            assert_eq!(log.matches(&line).count(), 2, "{log}");
        }
        assert_eq!(log.matches("launch add").count(), 4, "{log}");
    }
}

#[test]
fn devices_wait_for_and_copy_from_each_other() {
    if role().is_some() {
        let open =
            |ordinal| Device::gpu_with(ordinal, DeviceOptions::plain()).expect("there are three");
        let [first, second, third] = [0, 1, 2].map(open);
        let x = Buffer::from_slice(&first, &[1, 2, 3]).expect("there is memory");
        let mut y = Buffer::from_slice(&second, &[0; 3]).expect("there is memory");
        assert_eq!(first.enable_peer_access(&second), Ok(true));
        assert_eq!(first.enable_peer_access(&second), Ok(true));
        assert_eq!(first.enable_peer_access(&third), Ok(false));
        assert_eq!(first.enable_peer_access(&first), Ok(false));
        // What the first device has done by now, the second one waits for, and copies it.
        let event = Event::new(&first).expect("an event");
        let (from, to) = (first.stream(), Stream::new(&second).expect("a stream"));
        event.record(&from).expect("it is of the first");
        to.wait(&event).expect("any may wait");
        y.copy_from(&to, &x).expect("it is of one of them");
        assert_eq!(y.read(&to), Ok(vec![1, 2, 3]));
        let part = x.slice(0..2).expect("inside").into();
        let copied = y
            .view_mut()
            .slice(1..3)
            .and_then(|mut to| to.copy_from(&from, part));
        copied.expect("it is of one of them");
        assert_eq!(y.read(&to), Ok(vec![1, 1, 2]));
        let error = y
            .copy_from(&third.stream(), &x)
            .expect_err("a third device");
        assert_eq!(
            error.to_string(),
            "the memory that is read belongs to another device"
        );
        let error = event.record(&to).expect_err("it is of the second");
        assert!(
            error.to_string().contains("belongs to another device"),
            "{error}"
        );
        // The emulator is one more device.
        let emulator = Device::emulator_with(DeviceOptions::plain());
        let z = Buffer::from_slice(&emulator, &[0; 3]).expect("there is memory");
        emulator.stream().wait(&event).expect("any may wait");
        z.copy_from(&emulator.stream(), &y)
            .expect("it is of one of them");
        x.copy_from(&emulator.stream(), &z)
            .expect("it is of one of them");
        x.copy_from(&from, &z).expect("it is of one of them");
        assert_eq!(x.read(&from), Ok(vec![1, 1, 2]));
        return;
    }
    let test = "devices::devices_wait_for_and_copy_from_each_other";
    if let Some(log) = run(test, "copy", &[("STUB_DEVICES", "3")]) {
        let told = |line: &&str| {
            ["peer", "mark", "wait", "copy"]
                .iter()
                .any(|w| line.starts_with(w))
        };
        let lines: Vec<&str> = log.lines().filter(told).collect();
        let expected = [
            "peer 1001 of 1000",
            "mark in 1000",
            "wait in 1001",
            "copy 12 from 1000 to 1001 in 1001",
            "copy 8 from 1000 to 1001 in 1000",
        ];
        assert_eq!(lines, expected, "{log}");
    }
}
