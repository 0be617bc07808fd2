//! Memory that tuning changes: reset, restored, or refused.

use std::sync::Barrier;

use tilelift::runtime::{Buffer, Program};
use tilelift::tune::{Autotuned, Tuner};

use crate::tools::emulator;
use crate::tuning::{COUNT, grid, small_blocks};

#[test]
fn memory_is_reset_and_restored() {
    let device = emulator(None);
    let program = Program::python("count.py", COUNT).expect("it is Python");
    let kernel = device.kernel(&program, "count").expect("there is a kernel");
    let total = Buffer::from_slice(&device, &[5_i32; 1000]).expect("there is memory");
    let seen = Buffer::from_slice(&device, &[5_i32; 1000]).expect("there is memory");
    let tuner = Tuner::new(small_blocks())
        .restore_value(&["total"])
        .reset_to_zero(&["seen"]);
    let stream = device.stream();
    tuner
        .tune(&kernel, &stream, &grid, (&total, &seen, 1000))
        .expect("one of them works");
    assert_eq!(total.read(&stream), Ok(vec![5; 1000]));
    assert_eq!(
        seen.read(&stream),
        Ok(vec![0; 1000]),
        "as the next launch wants it"
    );

    let own = Autotuned::new(
        kernel,
        Tuner::new(small_blocks()).restore_value(&["total", "seen"]),
    );
    for _ in 0..2 {
        own.launch(&stream, &grid, (&total, &seen, 1000))
            .expect("one of them works");
    }
    // Trials leave no trace, launches do.
    assert_eq!(total.read(&stream), Ok(vec![7; 1000]));
    assert_eq!(seen.read(&stream), Ok(vec![2; 1000]));
}

/// Adds one to memory by atomic steps, and to that of a tuple.
const STEPS: &str = r#"
import triton.language as tl

@triton.jit
def step(total, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(total + i, 1, i < n)

@triton.jit
def both(pair, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(pair[0] + i, 1, i < n)
    tl.atomic_add(pair[1] + i, 1, i < n)
"#;

#[test]
fn threads_that_tune_at_once_lose_no_launch() {
    let device = emulator(None);
    let program = Program::python("steps.py", STEPS).expect("it is Python");
    for _ in 0..20 {
        let kernel = device.kernel(&program, "step").expect("there is a kernel");
        let tuner = Tuner::new(small_blocks()).restore_value(&["total"]);
        let own = Autotuned::new(kernel, tuner);
        let total = Buffer::from_slice(&device, &[0_i32; 100]).expect("there is memory");
        let start = Barrier::new(3);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    start.wait();
                    own.launch(&device.stream(), &grid, (&total, 100))
                        .expect("one of them works");
                });
            }
        });
        assert_eq!(total.read(&device.stream()), Ok(vec![3; 100]));
    }
}

#[test]
fn all_memory_of_a_tuple_is_restored_and_reset() {
    let device = emulator(None);
    let stream = device.stream();
    let program = Program::python("steps.py", STEPS).expect("it is Python");
    let kernel = device.kernel(&program, "both").expect("there is a kernel");
    let [a, b] = [0, 1].map(|_| Buffer::from_slice(&device, &[5_i32; 100]).expect("memory"));
    let tune = |tuner: Tuner<'_>| tuner.tune(&kernel, &stream, &grid, ((&a, &b), 100));
    tune(Tuner::new(small_blocks()).restore_value(&["pair"])).expect("one of them works");
    assert_eq!(
        [&a, &b].map(|x| x.read(&stream)),
        [5, 5].map(|n| Ok(vec![n; 100]))
    );
    tune(Tuner::new(small_blocks()).reset_to_zero(&["pair"])).expect("one of them works");
    assert_eq!(
        [&a, &b].map(|x| x.read(&stream)),
        [0, 0].map(|n| Ok(vec![n; 100]))
    );
    let number = tune(Tuner::new(small_blocks()).restore_value(&["n"])).expect_err("a number");
    assert!(number.to_string().contains("`n` has no memory"), "{number}");
}

#[test]
fn a_stream_of_another_device_is_refused_before_anything_is_reset() {
    let device = emulator(None);
    let program = Program::python("count.py", COUNT).expect("it is Python");
    let kernel = device.kernel(&program, "count").expect("there is a kernel");
    let other = emulator(None);
    let memory = |device| Buffer::from_slice(device, &[5_i32; 1000]).expect("there is memory");
    let (total, seen) = (memory(&device), memory(&device));
    // At the same address on the other device.
    let theirs = [memory(&other), memory(&other)];
    let tuner = Tuner::new(small_blocks()).reset_to_zero(&["total", "seen"]);
    let refused = [
        tuner
            .tune(&kernel, &other.stream(), &grid, (&total, &seen, 1000))
            .map(drop),
        Autotuned::new(kernel.clone(), tuner.clone()).launch(
            &other.stream(),
            &grid,
            (&total, &seen, 1000),
        ),
    ];
    for refused in refused {
        let text = refused.expect_err("the stream is foreign").to_string();
        assert_eq!(text, "the stream belongs to another device");
    }
    for (buffer, stream) in [
        (&total, device.stream()),
        (&seen, device.stream()),
        (&theirs[0], other.stream()),
        (&theirs[1], other.stream()),
    ] {
        assert_eq!(buffer.read(&stream), Ok(vec![5; 1000]));
    }
}
