//! Callers that wait for the same kernel, and leave.

use std::time::Duration;

use tilelift::runtime::{
    Buffer, CancelToken, Deadline, Device, Kernel, Program, RuntimeError, Stopped,
};

use crate::tools::emulator;

/// Takes a while to compile: a chain that nothing folds.
const LONG: &str = r#"
import triton
import triton.language as tl

@triton.jit
def long(x, N: tl.constexpr):
    i = tl.arange(0, 128)
    v = tl.load(x + i)
    for j in tl.static_range(N):
        v = v * j + tl.load(x + (i + j) % 128)
    tl.store(x + i, v)
"#;

/// The kernel for so many steps.
fn long(device: &Device, steps: i32) -> Kernel {
    let program = Program::python("long.py", LONG).expect("it is Python");
    let kernel = device.kernel(&program, "long");
    let kernel = kernel.and_then(|kernel| kernel.constant("N", steps));
    kernel.expect("there is a kernel")
}

fn stopped(why: Stopped) -> RuntimeError {
    RuntimeError::Stopped {
        kernel: "long".to_owned(),
        stopped: why,
    }
}

/// Long enough for another thread to begin, short against a compilation.
fn a_moment() {
    std::thread::sleep(Duration::from_millis(20));
}

#[test]
fn a_caller_that_is_cancelled_leaves_alone() {
    let device = emulator(None);
    let x = Buffer::from_slice(&device, &[0_i32; 128]).expect("there is memory");
    let (kernel, args) = (long(&device, 3000), (&x,));
    let [first, second] = [CancelToken::new(), CancelToken::new()];
    let prepare = |deadline: &Deadline| kernel.prepare(args, deadline).map(drop);
    std::thread::scope(|scope| {
        // The first one begins the work; the others wait for it, each in its own way.
        let cancelled = scope.spawn(|| prepare(&Deadline::until(&first)));
        a_moment();
        let patient = scope.spawn(|| prepare(&Deadline::until(&second)));
        let timed = scope.spawn(|| prepare(&Deadline::within(Duration::from_secs(600))));
        let endless = scope.spawn(|| kernel.launch(&device.stream(), 1, args));
        a_moment();
        first.cancel();
        let result =
            |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join().expect("no panic");
        assert_eq!(result(cancelled), Err(stopped(Stopped::Cancelled)));
        assert_eq!(result(patient), Ok(()));
        assert_eq!(result(timed), Ok(()));
        assert_eq!(result(endless), Ok(()));
    });
    assert_eq!(kernel.variants().len(), 1);
}

#[test]
fn who_comes_after_a_cancellation_is_served() {
    let device = emulator(None);
    let x = Buffer::from_slice(&device, &[0_i32; 128]).expect("there is memory");
    // One that comes while the work that nobody wants is still under way, and one that comes after it.
    for (steps, pause) in [(3002, Duration::ZERO), (3003, Duration::from_secs(2))] {
        let kernel = long(&device, steps);
        let [first, second] = [CancelToken::new(), CancelToken::new()];
        let deadline = Deadline::until(&first);
        std::thread::scope(|scope| {
            let cancelled = scope.spawn(|| kernel.prepare((&x,), &deadline).map(drop));
            a_moment();
            first.cancel();
            let cancelled = cancelled.join().expect("no panic");
            assert_eq!(cancelled, Err(stopped(Stopped::Cancelled)));
        });
        std::thread::sleep(pause);
        let served = kernel.prepare((&x,), &Deadline::until(&second));
        assert_eq!(served.map(drop), Ok(()));
    }
}

#[test]
fn a_prediction_keeps_to_the_deadline() {
    let device = emulator(None);
    let x = Buffer::from_slice(&device, &[0_i32; 128]).expect("there is memory");
    let kernel = long(&device, 3001);
    let predict = |deadline: &Deadline| kernel.predict((&x,), deadline).map(drop);
    let short = Deadline::within(Duration::from_millis(1));
    assert_eq!(predict(&short), Err(stopped(Stopped::Deadline)));
    let cancel = CancelToken::new();
    cancel.cancel();
    let cancelled = predict(&Deadline::until(&cancel));
    assert_eq!(cancelled, Err(stopped(Stopped::Cancelled)));
    assert_eq!(predict(&Deadline::default()), Ok(()));
    assert_eq!(predict(&Deadline::within(Duration::from_secs(600))), Ok(()));
    // A mistake shows through the wait.
    let wrong = kernel.constant("N", "no number").expect("a constant");
    let wrong = wrong.predict((&x,), &Deadline::within(Duration::from_secs(600)));
    assert!(matches!(wrong, Err(RuntimeError::Source(_))), "{wrong:?}");
}
