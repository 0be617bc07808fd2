//! What kernels do wrong on the emulator, and which argument is told.

use tilelift::runtime::{Arg, Buffer, Device, DeviceOptions, Program, RuntimeError};

use crate::tools::{add_program, emulator};

/// The error of adding `n` numbers, and the argument it names.
fn fault(
    args: [Arg<'_>; 3],
    device: &tilelift::runtime::Device,
    n: i32,
) -> (String, Option<String>) {
    let kernel = device.kernel(&add_program(), "add");
    let kernel = kernel.and_then(|kernel| kernel.constant("BLOCK", 128));
    let kernel = kernel.expect("there is a kernel");
    let [x, y, out] = args;
    let error = kernel.run(1, (x, y, out, n)).expect_err("it goes wrong");
    let text = error.to_string();
    match error {
        RuntimeError::Emulator { argument, .. } => (text, argument),
        _ => panic!("{text}"),
    }
}

#[test]
fn a_fault_names_the_argument() {
    let device = emulator(None);
    let long = Buffer::from_slice(&device, &[1.0_f32; 128]).expect("there is memory");
    let out = Buffer::from_slice(&device, &[1.0_f32; 128]).expect("there is memory");
    let short = Buffer::from_slice(&device, &[1.0_f32; 100]).expect("there is memory");
    let unwritten = Buffer::<f32>::new(&device, 128).expect("there is memory");
    let [long, out, short, unwritten] = [&long, &out, &short, &unwritten].map(Arg::from);
    for (args, argument, text) in [
        ([long, short, out], "`y`", "out of bounds"),
        ([long, long, short], "`out`", "out of bounds"),
        ([short, short, out], "`x` or `y`", "out of bounds"),
        ([long, unwritten, out], "`y`", "not all of them written"),
    ] {
        let (told, named) = fault(args, &device, 128);
        assert_eq!(named.as_deref(), Some(argument), "{told}");
        let start = format!("kernel `add`, argument {argument}: add.py:");
        assert!(told.starts_with(&start) && told.contains(text), "{told}");
    }
    // Far from everything that was given: no argument is to blame.
    let nowhere = tilelift::runtime::Pointer::null(tilelift::runtime::DType::F32);
    let (told, named) = fault([long, nowhere.into(), out], &device, 128);
    assert_eq!(named.as_deref(), Some("`y`"), "the null pointer: {told}");
}

#[test]
fn a_part_of_a_buffer_is_all_that_a_kernel_may_touch() {
    let device = emulator(None);
    let all = Buffer::from_slice(&device, &[1.0_f32; 512]).expect("there is memory");
    let out = Buffer::from_slice(&device, &[0.0_f32; 128]).expect("there is memory");
    let part = |from: usize, to: usize| Arg::from(all.slice(from..to).expect("inside"));
    let out_arg = Arg::from(&out);
    let (told, named) = fault([part(0, 128), part(256, 300), out_arg], &device, 128);
    assert_eq!(named.as_deref(), Some("`y`"), "{told}");
    assert!(
        told.contains("of which the launch was given 0 to 512, 1024 to 1200"),
        "{told}"
    );
    // The same part under another name may be longer.
    let kernel = device.kernel(&add_program(), "add");
    let kernel = kernel.and_then(|kernel| kernel.constant("BLOCK", 128));
    let kernel = kernel.expect("there is a kernel");
    let run = |x, y, n: i32| kernel.run(1, (x, y, out_arg, n));
    run(part(0, 10), part(0, 128), 128).expect("both are inside");
    run(part(0, 44), part(256, 300), 44).expect("it stays inside");
    // A launch leaves nothing behind.
    run(part(256, 384), part(300, 428), 128).expect("it runs");
    let whole = Arg::from(&all);
    run(whole, whole, 128).expect("it runs");
    assert_eq!(out.read(&device.stream()), Ok(vec![2.0; 128]));
}

#[test]
fn a_kernel_without_end_is_stopped_by_the_step_limit() {
    let text = "import triton
import triton.language as tl

@triton.jit
def spin(x):
    n = 0
    while tl.load(x) > 0.0:
        n += 1
    tl.store(x, n)
";
    let program = Program::python("spin.py", text).expect("it is Python");
    let mut options = DeviceOptions::plain();
    options.emulator.step_limit = 10_000;
    let device = Device::emulator_with(options);
    let kernel = device.kernel(&program, "spin").expect("there is a kernel");
    let x = Buffer::from_slice(&device, &[1.0_f32]).expect("there is memory");
    // The launch itself fails: it is no promise to run later.
    let error = kernel.launch(&device.stream(), 1, (&x,));
    let told = error.expect_err("it does not end").to_string();
    assert!(told.starts_with("kernel `spin`: spin.py:"), "{told}");
    assert!(
        told.contains("the limit of 10000 steps is reached"),
        "{told}"
    );
    let advice = "; if the kernel comes to an end, raise `step_limit` in `DeviceOptions::emulator`";
    assert!(told.ends_with(advice), "{told}");
    // The bound is one for each launch.
    let zero = Buffer::from_slice(&device, &[0.0_f32]).expect("there is memory");
    for _ in 0..3 {
        kernel.run(1, (&zero,)).expect("it ends at once");
    }
}
