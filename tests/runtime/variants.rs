//! Which variant serves a launch, and how long set-ups stay.

use tilelift::runtime::{Buffer, Constants, Deadline, Device, Kernel, Program};

use crate::tools::emulator;

/// Prints the sum of its numbers and stores it.
const SUM: &str = r#"
import triton
import triton.language as tl

@triton.jit
def total(out, a, b, c, SCALE: tl.constexpr = 2):
    tl.device_print("sum", a + b + c)
    tl.store(out, (a + b + c) * SCALE)
"#;

fn total(device: &Device) -> (Kernel, Buffer<i32>) {
    let program = Program::python("total.py", SUM).expect("it is Python");
    let kernel = device.kernel(&program, "total").expect("there is a kernel");
    let out = Buffer::from_slice(device, &[0_i32]).expect("there is memory");
    (kernel, out)
}

#[test]
fn beyond_the_bound_the_variant_of_the_types_is_told_and_read() {
    let device = emulator(None);
    let (total, out) = total(&device);
    let total = total.variant_limit(4).expect("a number");
    for args in [(&out, 7, 7, 7), (&out, 1, 7, 7), (&out, 16, 7, 7)] {
        total.run(1, args).expect("there is room");
    }
    // From here on there are variants for types alone.
    let (general, many) = ("*i32, i32, i32, i32", (&out, 7, 16, 1));
    let before = total.explain(many).expect("they fit");
    assert_eq!((before.signature.as_str(), before.ready), (general, false));
    let text = before.to_string();
    assert!(
        text.contains("c: i32, the kernel has as many variants"),
        "{text}"
    );
    assert!(
        text.contains("a: i32, its value 0x7 promises nothing"),
        "{text}"
    );
    total.run(1, many).expect("there is room for one");
    assert_eq!(out.read(&device.stream()), Ok(vec![48]));
    assert!(total.explain(many).expect("they fit").ready);
    // What is there for other classes prints into the same variant.
    total.run(1, (&out, 16, 16, 16)).expect("the same serves");
    let lines = total.printed(&device.stream(), many).expect("it ran");
    assert_eq!(lines.len(), 1);
    assert!(lines[0].ends_with(": 48"), "{lines:?}");
    // One that had its own before the bound keeps it.
    let early = total.explain((&out, 1, 7, 7)).expect("they fit");
    assert_eq!(
        (early.signature.as_str(), early.ready),
        ("*i32:16, i32:1, i32, i32", true)
    );
}

#[test]
fn what_is_opted_out_of_is_told() {
    let device = emulator(None);
    let (total, out) = total(&device);
    let total = total.do_not_specialize_on_alignment("b");
    let total = total.and_then(|total| total.do_not_specialize("c"));
    let total = total.expect("there are such parameters");
    let text = total.explain((&out, 7, 32, 1)).expect("they fit");
    let text = text.to_string();
    for part in [
        "a: i32, its value 0x7 promises nothing",
        "b: i32, its value 0x20 is a multiple of 16, which it is not specialised for",
        "c: i32, it is not specialised for values",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn multiples_of_eight_have_a_variant_of_their_own() {
    let device = emulator(None);
    let (total, out) = total(&device);
    for (number, class) in [(24, "i32:8"), (48, "i32:16"), (12, "i32")] {
        total.run(1, (&out, number, 7, 7)).expect("it runs");
        assert_eq!(out.read(&device.stream()), Ok(vec![2 * (number + 14)]));
        let told = total.explain((&out, number, 7, 7)).expect("they fit");
        assert_eq!(told.signature, format!("*i32:16, {class}, i32, i32"));
    }
    let told = total
        .explain((&out, 24, 7, 7))
        .expect("they fit")
        .to_string();
    let reason = "a: i32:8, its value 0x18 is a multiple of 8";
    assert!(told.contains(reason), "{told}");
}

#[test]
fn a_bound_of_one_is_for_the_variant_of_the_types() {
    let device = emulator(None);
    let (total, out) = total(&device);
    for (limit, general_at) in [(1, 0), (2, 1), (3, 2)] {
        let total = total.variant_limit(limit).expect("a number");
        let all = [(&out, 7, 7, 7), (&out, 1, 7, 7), (&out, 16, 16, 1)];
        for (at, args) in all.into_iter().enumerate() {
            total.run(1, args).expect("there is room");
            let (_, a, b, c) = args;
            assert_eq!(out.read(&device.stream()), Ok(vec![2 * (a + b + c)]));
            let used = total.explain(args).expect("they fit").signature;
            let is_general = used == "*i32, i32, i32, i32";
            assert_eq!(is_general, at >= general_at, "{limit}: {used}");
        }
        assert_eq!(total.variants().len(), limit);
    }
}

#[test]
fn threads_that_meet_the_bound_share_the_variant_of_the_types() {
    let device = emulator(None);
    for _ in 0..50 {
        let (total, _) = total(&device);
        let total = total.variant_limit(4).expect("a number");
        let start = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for i in 0..8 {
                let (total, start, device) = (&total, &start, &device);
                scope.spawn(move || {
                    let out = Buffer::from_slice(device, &[0_i32]).expect("there is memory");
                    let pick = |bit: i32| if i & bit == 0 { 7 } else { 1 };
                    start.wait();
                    let prepared =
                        total.prepare((&out, pick(1), pick(2), pick(4)), &Deadline::default());
                    prepared.expect("there is room for the one of the types");
                });
            }
        });
        assert!(total.variants().len() <= 4);
    }
}

#[test]
fn a_fault_of_the_variant_of_the_types_is_told_with_its_own_line() {
    let text = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef put(x, n):\n    if n != 1:\n        tl.store(x + 1, n * 3)\n    v = n * n + 5\n    tl.store(x, v)\n    tl.store(x + 1000, v)\n";
    let device = emulator(None);
    let program = Program::python("put.py", text).expect("it is Python");
    let put = device.kernel(&program, "put").expect("there is a kernel");
    let x = Buffer::from_slice(&device, &[0_i32; 4]).expect("there is memory");
    for limit in [1, 16] {
        let put = put.variant_limit(limit).expect("a number");
        let error = put.run(1, (&x, 1)).expect_err("it writes too far");
        let text = error.to_string();
        assert!(text.contains("put.py:10"), "{limit}: {text}");
    }
}

#[test]
fn constants_are_told_apart_by_their_bits() {
    let device = emulator(None);
    let text = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef put(x, S: tl.constexpr):\n    tl.store(x, S)\n";
    let program = Program::python("put.py", text).expect("it is Python");
    let put = device.kernel(&program, "put").expect("there is a kernel");
    let x = Buffer::from_slice(&device, &[1.0_f32]).expect("there is memory");
    let mut kernel = put;
    for value in [0.0, -0.0, 0.0] {
        kernel = kernel.constant("S", value).expect("a constant");
        kernel.run(1, (&x,)).expect("it runs");
        let stored = x.read(&device.stream()).expect("it ran")[0];
        assert_eq!(stored.to_bits(), (value as f32).to_bits(), "{value:?}");
    }
}

#[test]
fn a_grid_sees_constants_that_have_a_default() {
    let device = emulator(None);
    let (total, out) = total(&device);
    let seen = |kernel: &Kernel, name: &str| {
        let found = std::cell::Cell::new(None);
        let grid = |c: Constants<'_>| {
            found.set(c.int(name));
            Some([1, 1, 1])
        };
        kernel.run(&grid, (&out, 1, 7, 7)).expect("it runs");
        found.get()
    };
    assert_eq!(seen(&total, "SCALE"), Some(2));
    // An argument is none, though this one became a constant of its variant.
    assert_eq!(seen(&total, "a"), None);
    let scaled = total.constant("SCALE", 5).expect("a constant");
    assert_eq!(seen(&scaled, "SCALE"), Some(5));
    assert_eq!(out.read(&device.stream()), Ok(vec![75]));
}

#[test]
fn set_ups_stay_if_they_were_launched() {
    let device = emulator(None);
    let program = Program::python("total.py", SUM).expect("it is Python");
    let out = Buffer::from_slice(&device, &[0_i32]).expect("there is memory");
    let scaled = |scale: i32| {
        let kernel = device.kernel(&program, "total");
        let kernel = kernel.and_then(|kernel| kernel.constant("SCALE", scale));
        kernel.expect("there is a kernel")
    };
    scaled(3).run(1, (&out, 7, 7, 7)).expect("it runs");
    // Many that nobody launches, each gone with its handle.
    for scale in 100..400 {
        assert!(scaled(scale).variants().is_empty());
    }
    assert_eq!(scaled(3).variants().len(), 1, "no handle was left");
    let held = scaled(4);
    held.run(1, (&out, 7, 7, 7)).expect("it runs");
    assert_eq!(scaled(4).variants().len(), 1);
}
