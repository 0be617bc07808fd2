//! Assertions of kernels that fail, on the emulator; `stub.rs` has those of a GPU.

use tilelift::runtime::{Buffer, Device, Graph, Kernel, Program, RuntimeError};

use crate::tools::emulator;

/// Stores, and asserts that numbers are small.
pub(crate) const SMALL: &str = r#"import triton
import triton.language as tl

@triton.jit
def keep(x, out, limit, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(out + i, v)
    tl.device_assert(v < limit, "too large")
"#;

pub(crate) fn keep(device: &Device) -> Kernel {
    let program = Program::python("small.py", SMALL).expect("it is Python");
    let kernel = device.kernel(&program, "keep");
    let kernel = kernel.and_then(|kernel| kernel.constant("BLOCK", 4));
    kernel.expect("there is a kernel")
}

#[test]
fn an_assertion_that_fails_is_an_error_of_the_launch() {
    let device = emulator(None);
    let stream = device.stream();
    let values: Vec<i32> = (0..8).collect();
    let x = Buffer::from_slice(&device, &values).expect("there is memory");
    let out = Buffer::<i32>::new(&device, 8).expect("there is memory");
    // Without `debug` there is no assertion, as in Triton.
    let plain = keep(&device);
    plain.run(2, (&x, &out, 3)).expect("it asserts nothing");
    let kernel = plain.debug(true).expect("a set-up");
    let error = kernel.launch(&stream, 2, (&x, &out, 6));
    let place = "assertion failed: too large (small.py:9)";
    let failures: Vec<String> = (2..4)
        .map(|element| format!("pid (1, 0, 0) idx ({element}) {place}"))
        .collect();
    let wanted = RuntimeError::Assertion {
        kernel: "keep".to_owned(),
        failures: failures.clone(),
    };
    assert_eq!(error, Err(wanted.clone()));
    let text = wanted.to_string();
    assert_eq!(text, format!("kernel `keep`: {}; and 1 more", failures[0]));
    // What it stored is there, and so are its lines; the device goes on.
    assert_eq!(out.read(&stream), Ok(values));
    assert_eq!(kernel.printed(&stream, (&x, &out, 6)), Ok(failures));
    assert_eq!(stream.synchronize(), Ok(()));
    assert_eq!(kernel.launch(&stream, 2, (&x, &out, 8)), Ok(()));

    let graph = Graph::capture(&stream, |stream| {
        kernel.launch(stream, 1, (&x, &out, 4))?;
        kernel.launch(stream, 2, (&x, &out, 6))
    });
    let graph = graph.expect("nothing runs yet");
    assert_eq!(graph.launch(&stream), Err(wanted));
}

#[test]
fn failures_without_room_for_their_records_are_errors_too() {
    const LOUD: &str = r#"import triton
import triton.language as tl

@triton.jit
def loud(n):
    i = tl.arange(0, 2048)
    tl.device_print("i", i)
    tl.device_assert(n < 3, "after all the lines")
"#;
    let device = emulator(None);
    let program = Program::python("loud.py", LOUD).expect("it is Python");
    let kernel = device.kernel(&program, None);
    let kernel = kernel
        .and_then(|kernel| kernel.debug(true))
        .expect("there is one");
    assert_eq!(kernel.run(1, (2,)), Ok(()));
    let error = kernel.run(1, (3,)).expect_err("it is not smaller");
    let told = "kernel `loud`: assertion failed: after all the lines (loud.py:8)";
    assert_eq!(error.to_string(), told);
}
