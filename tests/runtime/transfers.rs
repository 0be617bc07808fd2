//! Memory: views, copies, elements that Rust has no type for, and futures of what a stream does.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use tilelift::runtime::{
    Buffer, Device, Element, F8E4M3, F8E5M2, Graph, Pinned, Program, RuntimeError, Stream, View,
    ViewMut,
};
use tilelift::testing::{Case, emulator, emulator_for};

/// Wakes a thread that waits for a future.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future as the smallest runtime does, and how often it was asked.
fn block_on<F: Future>(future: F) -> (F::Output, usize) {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    for count in 1.. {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return (output, count);
        }
        std::thread::park();
    }
    unreachable!("it ends where the future does")
}

/// What is the same on every device: copies between host and device, on the device, and of parts.
fn copies(device: &Device) -> Result<(), RuntimeError> {
    let stream = Stream::new(device)?;
    let numbers: Vec<i32> = (0..10).collect();
    let x = Buffer::from_slice(device, &numbers)?;
    let mut y = Buffer::from_slice(device, &[-1; 10])?;
    y.copy_from(&stream, &x)?;
    assert_eq!(y.read(&stream)?, numbers);
    y.view_mut()
        .slice(0..3)?
        .copy_from(&stream, x.view().slice(7..10)?)?;
    y.view_mut().slice(3..5)?.write(&stream, &[70, 80])?;
    y.view_mut().slice(9..10)?.fill(&stream, 0xff)?;
    let mut read = [0; 10];
    y.read_into(&stream, &mut read)?;
    assert_eq!(read, [7, 8, 9, 70, 80, 5, 6, 7, 8, -1]);
    let (left, mut right) = y.view_mut().split_at(4)?;
    right
        .reborrow()
        .slice(0..4)?
        .copy_from(&stream, left.as_view())?;
    assert_eq!(right.as_view().slice(0..4)?.read(&stream)?, [7, 8, 9, 70]);

    let wrong = |result: Result<(), RuntimeError>| result.expect_err("sizes differ").to_string();
    let error = wrong(y.read_into(&stream, &mut [0; 9]));
    assert_eq!(error, "values to read: 9 elements, expected 10");
    let error = wrong(y.view_mut().copy_from(&stream, x.view().slice(1..10)?));
    assert_eq!(error, "numbers to copy: 9 elements, expected 10");
    let error = wrong(y.write(&stream, &[1; 11]));
    assert_eq!(error, "values to write: 11 elements, expected 10");
    assert!(y.view_mut().split_at(11).is_err() && x.view().slice(4..11).is_err());
    // More than there can be, and more than can be counted.
    for len in [1 << 42, usize::MAX / 2] {
        let error = Buffer::<u8>::new(device, len).expect_err("too much");
        assert!(error.to_string().contains("memory"), "{error}");
        let error = Pinned::<f64>::new(device, len).expect_err("too much");
        assert!(error.to_string().contains("memory"), "{error}");
    }
    let empty = Buffer::<i32>::new(device, 0)?;
    Buffer::<i32>::new(device, 0)?.copy_from(&stream, &empty)?;
    assert_eq!(empty.read(&stream)?, [0_i32; 0]);

    let truths = [true, false, true];
    assert_eq!(Buffer::from_slice(device, &truths)?.read(&stream)?, truths);
    let small = [1.0, -0.5, 448.0, 1e-9].map(F8E4M3::from_f32);
    let buffer = Buffer::from_slice(device, &small)?;
    assert_eq!(buffer.read(&stream)?, small);
    buffer.write(&stream, &[F8E4M3::from_bits(0x38); 4])?;
    assert_eq!(buffer.read(&stream)?.map_f32(), [1.0; 4]);
    let five = [F8E5M2::from_f32(57344.0)];
    assert_eq!(Buffer::from_slice(device, &five)?.read(&stream)?, five);
    Ok(())
}

trait AsF32 {
    fn map_f32(&self) -> Vec<f32>;
}

impl AsF32 for Vec<F8E4M3> {
    fn map_f32(&self) -> Vec<f32> {
        self.iter().map(|x| x.to_f32()).collect()
    }
}

/// What is the same on every device: copies that nobody waits for.
fn futures(device: &Device) -> Result<usize, RuntimeError> {
    let stream = Stream::new(device)?;
    let x = Buffer::from_slice(device, &[1.5_f32, 2.5, 3.5])?;
    let (read, polls) = block_on(x.read_async(&stream)?);
    assert_eq!(read?[..], [1.5, 2.5, 3.5]);
    let mut y = Buffer::from_slice(device, &[0.0_f32; 2])?;
    let from = Pinned::from_slice(device, &[4.0, 5.0])?;
    let from = block_on(y.view_mut().write_async(&stream, from)?).0?;
    assert_eq!(
        (&from[..], y.read(&stream)?),
        (&[4.0, 5.0][..], vec![4.0, 5.0])
    );
    // The memory is used again, and one that nobody asks for is waited for when it is dropped.
    let again = x.view().slice(1..3)?.read_async(&stream, from)?.wait()?;
    assert_eq!(again[..], [2.5, 3.5]);
    drop(x.read_async(&stream)?);
    assert_eq!(block_on(stream.done()?).0, Ok(()));
    let short = x.view().read_async(&stream, again);
    assert!(short.is_err(), "three numbers do not fit two");
    // A copy has its bytes, whatever becomes of the buffer; and they are given once.
    let gone = Buffer::from_slice(device, &[7_u8; 4])?;
    let copy = gone.read_async(&stream)?;
    drop(gone);
    let mut copy = pin!(copy);
    assert_eq!(block_on(copy.as_mut()).0?[..], [7; 4]);
    let twice = block_on(copy).0.expect_err("it was awaited before");
    assert!(twice.to_string().contains("awaited before"), "{twice}");
    let none = Buffer::<u8>::new(device, 0)?;
    assert_eq!(block_on(none.read_async(&stream)?).0?.len(), 0);
    Ok(polls)
}

#[test]
fn memory_is_copied_on_the_emulator() {
    assert_eq!(copies(&emulator()), Ok(()));
    assert_eq!(futures(&emulator()), Ok(1));
    let (here, there) = (emulator(), emulator());
    let x = Buffer::from_slice(&here, &[1, 2]).expect("there is memory");
    let y = Buffer::from_slice(&there, &[1, 2]).expect("there is memory");
    for (error, which) in [
        (y.read(&here.stream()).map(drop), "memory that is read"),
        (y.write(&here.stream(), &[1, 2]), "memory that is written"),
    ] {
        let text = error.expect_err("two devices").to_string();
        assert_eq!(text, format!("the {which} belongs to another device"));
    }
    // Copies go between devices, in the order of a stream of either.
    for (stream, numbers) in [(here.stream(), [3, 4]), (there.stream(), [5, 6])] {
        x.write(&here.stream(), &numbers).expect("its own stream");
        y.copy_from(&stream, &x).expect("it is of one of them");
        assert_eq!(y.read(&there.stream()), Ok(numbers.to_vec()));
    }
    let part = x.slice(1..2).expect("inside").into();
    let mut y = y;
    let copied = y
        .view_mut()
        .slice(0..1)
        .and_then(|mut to| to.copy_from(&here.stream(), part));
    copied.expect("it is of one of them");
    assert_eq!(y.read(&there.stream()), Ok(vec![6, 6]));
    let error = y
        .copy_from(&emulator().stream(), &x)
        .expect_err("a third device");
    assert_eq!(
        error.to_string(),
        "the memory that is read belongs to another device"
    );
    let longer = Buffer::from_slice(&here, &[1, 2, 3]).expect("there is memory");
    assert!(y.copy_from(&here.stream(), &longer).is_err());
    let recorded = Graph::capture(&Stream::new(&here).expect("a stream"), |stream| {
        y.copy_from(stream, &x)
    });
    let text = recorded
        .expect_err("the emulator records no such copy")
        .to_string();
    assert!(text.contains("copying between devices"), "{text}");
    assert_eq!(here.enable_peer_access(&there), Ok(false));
    let pinned = Pinned::new(&there, 2).expect("there is memory");
    let error = x.view().read_async(&here.stream(), pinned).map(drop);
    let text = error.expect_err("two devices").to_string();
    assert_eq!(text, "the pinned memory belongs to another device");
}

#[test]
fn parts_are_of_the_view_s_numbers_and_apart() -> Result<(), RuntimeError> {
    let device = emulator();
    let stream = device.stream();
    let bytes: Vec<u8> = (0..11).collect();
    let memory = Buffer::from_slice(&device, &bytes)?;
    // Seen as numbers of four bytes, of which there are two and a part of one.
    let view: View<'_, u32> = memory.ptr().into();
    assert_eq!(view.len(), 2);
    assert_eq!(view.read(&stream)?, [0x0302_0100, 0x0706_0504]);
    assert_eq!(view.slice(1..2)?.read(&stream)?, [0x0706_0504]);
    let view_mut: ViewMut<'_, u32> = memory.ptr().into();
    let (first, second) = view_mut.split_at(1)?;
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_eq!(second.read(&stream)?, [0x0706_0504]);
    // What is no part says which it would be.
    for (range, shown) in [
        (0..3, "0..3"),
        (std::ops::Range { start: 2, end: 1 }, "2..1"),
        (0..usize::MAX, "0..18446744073709551615"),
    ] {
        let error = view.slice(range).expect_err("it is not inside").to_string();
        let text = format!("a range outside of the memory: {shown} of 2 elements");
        assert_eq!(error, text);
    }
    assert!(second.split_at(2).is_err(), "it has one");
    // A copy onto a part of itself would be in an order that nobody says.
    let mut to: ViewMut<'_, u8> = memory.slice(0..8)?.into();
    let error = to.copy_from(&stream, memory.slice(3..11)?.into());
    assert_eq!(error, Err(RuntimeError::Overlap));
    let mut to: ViewMut<'_, u8> = memory.slice(0..4)?.into();
    to.copy_from(&stream, memory.slice(4..8)?.into())?;
    assert_eq!(memory.read(&stream)?, [4, 5, 6, 7, 4, 5, 6, 7, 8, 9, 10]);
    Ok(())
}

#[test]
fn a_future_has_no_place_in_a_graph() {
    let device = emulator();
    let stream = Stream::new(&device).expect("it can be made");
    let x = Buffer::from_slice(&device, &[1_u8; 4]).expect("there is memory");
    let recorded = tilelift::runtime::Graph::capture(&stream, |stream| {
        assert!(stream.done().is_err() && x.read_async(stream).is_err());
        Ok::<(), RuntimeError>(())
    });
    assert!(recorded.is_err(), "what waits spoils it");
}

#[cfg(feature = "cuda")]
#[test]
fn memory_is_copied_by_a_driver() {
    use crate::stub::{gpu, run};
    let test = "transfers::memory_is_copied_by_a_driver";
    match crate::tools::role().as_deref() {
        None => {
            let Some(log) = run(test, "child", &[]) else {
                return;
            };
            let count = |what: &str| log.lines().filter(|line| *line == what).count();
            assert!(count("callback") >= 6, "{log}");
            assert_eq!(count("alloc host"), count("free host"), "{log}");
            run(test, "failing", &[("STUB_SYNC_ERROR", "700")]);
        }
        Some("failing") => {
            let device = gpu(None);
            let stream = Stream::new(&device).expect("it can be made");
            let done = block_on(stream.done().expect("it can be asked for")).0;
            assert!(done.is_err_and(|error| error.to_string().contains("700")));
        }
        Some(_) => {
            let device = gpu(None);
            assert_eq!(copies(&device), Ok(()));
            // Not done at once, and woken once.
            assert_eq!(futures(&device), Ok(2));
        }
    }
}

#[cfg(feature = "cuda")]
#[test]
fn memory_is_copied_on_a_gpu() {
    match Device::gpu(0) {
        Ok(device) => {
            assert_eq!(copies(&device), Ok(()));
            // How often they are asked depends on how quick the device is.
            assert!(futures(&device).is_ok_and(|asked| asked > 0));
        }
        Err(error) => eprintln!("skipped: {error}"),
    }
}

/// Kernels on elements that Rust has no type for.
#[test]
fn kernels_take_truths_and_small_floats() {
    const KERNELS: &str = r#"
import triton
import triton.language as tl

@triton.jit
def widen(x, mask, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.where(tl.load(mask + i), tl.load(x + i).to(tl.float32), -1.0))
"#;
    let device = emulator_for(tilelift::settings::Target::SM_89, 1);
    let program = Program::python("small.py", KERNELS).expect("it is Python");
    let kernel = device.kernel(&program, None).expect("there is one");
    let kernel = kernel.constant("BLOCK", 64).expect("it has one");
    fn case<T: Element>(kernel: &tilelift::runtime::Kernel, x: &[T], wide: impl Fn(T) -> f32) {
        let mask: Vec<bool> = (0..64).map(|i| i % 3 == 0).collect();
        let expected = |i: usize| if mask[i] { wide(x[i]) } else { -1.0 };
        let case = Case::new(kernel, 1).input(x).input(&mask);
        assert_eq!(case.output(64, expected).check(), Ok(()));
    }
    let numbers: Vec<f32> = (0..64).map(|i| i as f32 / 4.0 - 3.0).collect();
    let four: Vec<F8E4M3> = numbers.iter().map(|&x| F8E4M3::from_f32(x)).collect();
    case(&kernel, &four, F8E4M3::to_f32);
    let five: Vec<F8E5M2> = numbers.iter().map(|&x| F8E5M2::from_f32(x)).collect();
    case(&kernel, &five, F8E5M2::to_f32);
}

/// A view says who may write.
#[test]
fn views_are_arguments() {
    let device = emulator();
    let add = device
        .kernel(&crate::tools::add_program(), "add")
        .expect("it is there");
    let add = add.constant("BLOCK", 64).expect("it has one");
    let x = Buffer::from_slice(&device, &[1.0_f32; 64]).expect("there is memory");
    let mut out = Buffer::<f32>::new(&device, 64).expect("there is memory");
    let args = [
        x.view().into(),
        x.view().into(),
        out.view_mut().into(),
        64.into(),
    ];
    add.run(1, args).expect("it runs");
    assert_eq!(out.read(&device.stream()), Ok(vec![2.0; 64]));
}
