//! A kernel from Triton source, launched on memory and in a stream of `cust`. Without a GPU the program says so and ends well.

use std::error::Error;

use cust::memory::{CopyDestination, DeviceBuffer};
use cust::stream::{Stream as CustStream, StreamFlags};
use tilelift::driver::{Context, Driver, RawPtr, Stream as Raw};
use tilelift::runtime::{Constants, DType, Device, DeviceOptions, Pointer, Program, Stream};

const SOURCE: &str = r#"
import triton
import triton.language as tl

@triton.jit
def axpy(a, x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(y + i, a * tl.load(x + i, mask) + tl.load(y + i, mask), mask)
"#;

fn main() -> Result<(), Box<dyn Error>> {
    if let Err(error) = Driver::load() {
        println!("cust: skipped, {error}");
        return Ok(());
    }

    // What an application has already: a context, a stream, memory.
    let context = cust::quick_init()?;
    let stream = CustStream::new(StreamFlags::NON_BLOCKING, None)?;
    let n = 100_000_usize;
    let x = DeviceBuffer::from_slice(&vec![2.0_f32; n])?;
    let y = DeviceBuffer::from_slice(&(0..n).map(|i| i as f32).collect::<Vec<_>>())?;

    // SAFETY: `context` and `stream` live to the end of this function, and what is made of them goes before.
    let ours = unsafe { Context::from_raw(context.as_raw().cast()) }?;
    let device = Device::from_context(ours.clone(), DeviceOptions::from_env())?;
    // SAFETY: as before.
    let raw = unsafe { Raw::from_raw(&ours, stream.as_inner().cast()) }?;
    let tile_stream = Stream::from_driver(&device, raw)?;
    let pointer = |buffer: &DeviceBuffer<f32>| {
        // SAFETY: the buffers, of `n` floats, live to the end of this function, which waits for the kernel.
        let memory =
            unsafe { RawPtr::from_raw(buffer.as_device_ptr().as_raw(), n * size_of::<f32>()) };
        Pointer::from_driver(memory, DType::F32)
    };

    let program = Program::python("axpy.py", SOURCE)?;
    let axpy = device.kernel(&program, "axpy")?.constant("BLOCK", 1024)?;
    let grid = |c: Constants| Some([(n as u32).div_ceil(c.int("BLOCK")?), 1, 1]);
    axpy.launch(
        &tile_stream,
        &grid,
        (3.0_f32, pointer(&x), pointer(&y), n as i32),
    )?;
    stream.synchronize()?;

    let mut sums = vec![0.0_f32; n];
    y.copy_to(&mut sums)?;
    let right = (0..n).all(|i| sums[i] == 6.0 + i as f32);
    println!(
        "cust: {} on {}",
        if right { "right" } else { "WRONG" },
        device.name()
    );
    if right {
        Ok(())
    } else {
        Err("the sums are wrong".into())
    }
}
