//! Copies between host and device, in the ways that there are, with a kernel between them; says "all right" or what is wrong.
//!
//! ```text
//! cargo run --release --example transfers                     # the emulator
//! cargo run --release --features cuda --example transfers     # the GPU, if there is one; also with objects of cust
//! ```

use std::error::Error;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use tilelift::prelude::*;
use tilelift::runtime::{Event, F8E4M3, Pinned};

const TWICE: &str = r#"
import triton
import triton.language as tl

@triton.jit
def twice(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, i < n), i < n)
"#;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// What a future comes to, and how often it was asked.
fn block_on<F: Future>(future: F) -> (F::Output, usize) {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    let mut asked = 1;
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return (output, asked),
            Poll::Pending => std::thread::park(),
        }
        asked += 1;
    }
}

fn expect(what: &str, is_right: bool) -> Result<(), Box<dyn Error>> {
    println!("{} {what}", if is_right { "right" } else { "WRONG" });
    match is_right {
        true => Ok(()),
        false => Err(format!("{what}: wrong numbers").into()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::best();
    // Enough that a GPU is still at it when the host goes on.
    let n: usize = if device.is_gpu() { 1 << 25 } else { 1 << 12 };
    println!("{} numbers on {}", n, device.name());
    let program = Program::python("twice.py", TWICE)?;
    let twice = device.kernel(&program, "twice")?.constant("BLOCK", 1024)?;
    let grid = (n as u32).div_ceil(1024);
    let launch = |stream: &Stream, x: &Buffer<f32>| twice.launch(stream, grid, (x, n as i32));
    let numbers: Vec<f32> = (0..n).map(|i| (i % 4093) as f32).collect();
    let is = |read: &[f32], factor: f32| {
        read.len() == n && read.iter().zip(&numbers).all(|(&r, &x)| r == factor * x)
    };

    let stream = Stream::new(&device)?;
    let mut x = Buffer::from_slice(&device, &numbers)?;
    launch(&stream, &x)?;
    expect("written, doubled, read", is(&x.read(&stream)?, 2.0))?;
    let mut into = vec![0.0; n];
    x.read_into(&stream, &mut into)?;
    expect("read into memory of one's own", is(&into, 2.0))?;

    let y = Buffer::<f32>::new(&device, n)?;
    y.copy_from(&stream, &x)?;
    launch(&stream, &x)?;
    expect("copied on the device", is(&y.read(&stream)?, 2.0))?;

    let half = n / 2;
    let (mut left, right) = x.view_mut().split_at(half)?;
    left.copy_from(&stream, right.as_view())?;
    let read = left.read(&stream)?;
    let moved = read
        .iter()
        .zip(&numbers[half..])
        .all(|(&r, &x)| r == 4.0 * x);
    expect("a half copied over the other, as views", moved)?;

    let pinned = Pinned::from_slice(&device, &numbers)?;
    let (pinned, asked) = block_on(x.view_mut().write_async(&stream, pinned)?);
    let mut pinned = pinned?;
    println!("  written from pinned memory, asked {asked} times");
    pinned.fill(-1.0);
    launch(&stream, &x)?;
    let (pinned, asked) = block_on(x.view().read_async(&stream, pinned)?);
    println!("  read to pinned memory, asked {asked} times");
    expect("futures of pinned memory", is(&pinned?, 2.0))?;
    launch(&stream, &x)?;
    drop(x.read_async(&stream)?);
    let several: Vec<_> = (0..4)
        .map(|_| x.read_async(&stream))
        .collect::<Result<_, _>>()?;
    let read = several.into_iter().map(|copy| copy.wait());
    let read: Vec<Pinned<f32>> = read.collect::<Result<_, _>>()?;
    let all = read.iter().all(|read| is(read, 4.0));
    expect("four copies at once, and one that was dropped", all)?;

    // What one stream did before another goes on.
    let (event, other) = (Event::new(&device)?, Stream::new(&device)?);
    launch(&stream, &x)?;
    event.record(&stream)?;
    other.wait(&event)?;
    launch(&other, &x)?;
    let (done, asked) = block_on(other.done()?);
    done?;
    println!("  the end of a stream, asked {asked} times");
    expect(
        "two streams with an event between",
        is(&x.read(&other)?, 16.0),
    )?;

    let bytes = Buffer::<u8>::new(&device, n)?;
    bytes.fill(&stream, 0x5a)?;
    expect("bytes set", bytes.read(&stream)?.iter().all(|&b| b == 0x5a))?;
    let truths: Vec<bool> = numbers.iter().map(|&x| x > 7.0).collect();
    let same = Buffer::from_slice(&device, &truths)?.read(&stream)? == truths;
    expect("truths", same)?;
    let small: Vec<F8E4M3> = numbers.iter().map(|&x| F8E4M3::from_f32(x)).collect();
    let same = Buffer::from_slice(&device, &small)?.read(&stream)? == small;
    expect("floats of 8 bits", same)?;
    let none = Buffer::<f32>::new(&device, 0)?;
    expect("nothing", block_on(none.read_async(&stream)?).0?.is_empty())?;
    #[cfg(feature = "cuda")]
    if device.is_gpu() {
        of_cust(&program, &numbers)?;
    }
    println!("all right");
    Ok(())
}

/// The same kernel on a context, a stream and memory of cust.
#[cfg(feature = "cuda")]
fn of_cust(program: &Program, numbers: &[f32]) -> Result<(), Box<dyn Error>> {
    use tilelift::driver::cust::memory::{CopyDestination, DeviceBuffer};
    use tilelift::driver::cust::stream::{Stream as CustStream, StreamFlags};
    use tilelift::driver::cust::{self, event};

    let context = cust::quick_init()?;
    let device = Device::from_cust(&context, DeviceOptions::from_env())?;
    let twice = device.kernel(program, "twice")?.constant("BLOCK", 1024)?;
    let shared = Arc::new(CustStream::new(StreamFlags::DEFAULT, None)?);
    let x = DeviceBuffer::from_slice(numbers)?;
    let stream = Stream::from_cust(&device, shared.clone())?;
    let grid = (numbers.len() as u32).div_ceil(1024);
    twice.launch(&stream, grid, (&x, numbers.len() as i32))?;
    let end = event::Event::new(event::EventFlags::DEFAULT)?;
    end.record(&shared)?;
    drop(stream);
    end.synchronize()?;
    let mut read = vec![0.0; numbers.len()];
    x.copy_to(&mut read)?;
    let same = read.iter().zip(numbers).all(|(&r, &x)| r == 2.0 * x);
    expect("context, stream, event and memory of cust", same)
}
