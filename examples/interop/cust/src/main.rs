//! A kernel from Triton source, launched on memory and in a stream of `cust`. Without a GPU the program says so and ends well.

use std::error::Error;
use std::sync::Arc;

use cust::memory::{CopyDestination, DeviceBuffer};
use cust::stream::{Stream as CustStream, StreamFlags};
use tilelift::driver::{Driver, cust};
use tilelift::runtime::{Constants, Device, DeviceOptions, Program, Stream};

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
    let stream = Arc::new(CustStream::new(StreamFlags::DEFAULT, None)?);
    let n = 100_000_usize;
    let x = DeviceBuffer::from_slice(&vec![2.0_f32; n])?;
    let y = DeviceBuffer::from_slice(&(0..n).map(|i| i as f32).collect::<Vec<_>>())?;

    // The same for the kernel. Nothing is copied, and the stream belongs to both.
    let device = Device::from_cust(&context, DeviceOptions::from_env())?;
    let program = Program::python("axpy.py", SOURCE)?;
    let axpy = device.kernel(&program, "axpy")?.constant("BLOCK", 1024)?;
    let grid = |c: Constants| Some([(n as u32).div_ceil(c.int("BLOCK")?), 1, 1]);
    let shared = Stream::from_cust(&device, stream.clone())?;
    axpy.launch(&shared, &grid, (3.0_f32, &x, &y, n as i32))?;
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
