//! Which variant serves a launch, and how long set-ups stay.

use tilelift::runtime::{Buffer, Constants, Deadline, Device, Kernel, Program};

use crate::tools::emulator;

/// Prints the sum of its numbers and stores it many times. What the numbers are multiples of makes no difference, what the address is
/// one of does.
const SUM: &str = r#"
import triton
import triton.language as tl

@triton.jit
def total(out, a, b, c, SCALE: tl.constexpr = 2):
    tl.device_print("sum", a + b + c)
    tl.store(out + tl.arange(0, 128), tl.zeros((128,), tl.int32) + (a + b + c) * SCALE)
"#;

fn total(device: &Device) -> (Kernel, Buffer<i32>) {
    let program = Program::python("total.py", SUM).expect("it is Python");
    let kernel = device.kernel(&program, "total").expect("there is a kernel");
    (kernel, sums(device))
}

fn sums(device: &Device) -> Buffer<i32> {
    Buffer::from_slice(device, &[0; 128]).expect("there is memory")
}

fn stored(device: &Device, out: &Buffer<i32>) -> i32 {
    out.read(&device.stream()).expect("it ran")[127]
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
    assert_eq!(stored(&device, &out), 48);
    assert!(total.explain(many).expect("they fit").ready);
    // What is there for other classes prints into the same variant.
    total.run(1, (&out, 1, 46, 1)).expect("the same serves");
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
fn launches_share_what_does_not_depend_on_their_promises() {
    let device = emulator(None);
    let (total, out) = total(&device);
    for number in [7, 6, 12, 24, 48] {
        total.run(1, (&out, number, 7, 7)).expect("it runs");
        assert_eq!(stored(&device, &out), 2 * (number + 14));
    }
    let all = total.variants();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].signature, "*i32:16, i32, i32, i32");
    let told = total.explain((&out, 24, 7, 7)).expect("they fit");
    assert_eq!(told.signature, all[0].signature);
    let reason = "a: i32, its value 0x18 is a multiple of 8, of which the code depends on no more";
    assert!(told.to_string().contains(reason), "{told}");
    // Stores of four numbers need an address at 16 bytes, and a class of its own where that is not so.
    let odd = Buffer::from_slice(&device, &[0; 132]).expect("there is memory");
    for (at, class) in [(4, "*i32:16"), (2, "*i32:8"), (1, "*i32"), (3, "*i32")] {
        let args = (odd.slice(at..132).expect("inside"), 7, 7, 7);
        total.run(1, args).expect("it runs");
        let told = total.explain(args).expect("they fit").signature;
        assert_eq!(told, format!("{class}, i32, i32, i32"));
    }
    assert_eq!(total.variants().len(), 3);
}

#[test]
fn numbers_have_the_classes_that_their_masks_need() {
    let text = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef copy(out, x, n):\n    i = tl.arange(0, 256)\n    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)\n";
    let device = emulator(None);
    let program = Program::python("copy.py", text).expect("it is Python");
    let copy = device.kernel(&program, "copy").expect("there is a kernel");
    let copy = copy.warps(1).expect("a number");
    let halves: Vec<half::f16> = (0..256).map(|i| half::f16::from_f32(i as f32)).collect();
    let x = Buffer::from_slice(&device, &halves).expect("there is memory");
    for (n, signature) in [
        (40, "*fp16:16, *fp16:16, i32:8"),
        (48, "*fp16:16, *fp16:16, i32:8"),
        // Where fewer are accessed at once, less is asked of addresses.
        (12, "*fp16:8, *fp16:8, i32:4"),
        (6, "*fp16:4, *fp16:4, i32:2"),
        (7, "*fp16, *fp16, i32"),
        (128, "*fp16:16, *fp16:16, i32:8"),
    ] {
        let out = Buffer::from_slice(&device, &[half::f16::ZERO; 256]).expect("there is memory");
        copy.run(1, (&out, &x, n)).expect("it runs");
        let found = out.read(&device.stream()).expect("it ran");
        let is_right = |(i, &found): (usize, &half::f16)| match i < n as usize {
            true => found == halves[i],
            false => found == half::f16::ZERO,
        };
        assert!(found.iter().enumerate().all(is_right), "{n}");
        let told = copy.explain((&out, &x, n)).expect("they fit").signature;
        assert_eq!(told, signature, "{n}");
    }
    // Four, where six classes came.
    assert_eq!(copy.variants().len(), 4);
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
            assert_eq!(stored(&device, &out), 2 * (a + b + c));
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
                    let out = sums(device);
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
    assert_eq!(stored(&device, &out), 75);
}

#[test]
fn set_ups_stay_if_they_were_launched() {
    let device = emulator(None);
    let program = Program::python("total.py", SUM).expect("it is Python");
    let out = sums(&device);
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
