//! A kernel from Triton source, launched on memory and in a stream that cudarc owns.
//!
//! cudarc and this crate both use a GPU's primary context, so that addresses and streams mean the same to both. Without a
//! GPU the program says so and ends well.

use std::error::Error;

use cudarc::driver::{CudaContext, DevicePtr, DevicePtrMut};
use tilelift::driver::{Context, RawPtr};
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
    // Before cudarc is asked, which panics where there is no driver to open.
    if let Err(error) = tilelift::driver::Driver::load() {
        println!("cudarc: skipped, {error}");
        return Ok(());
    }

    // What an application has already: a context, a stream, memory.
    let cuda = CudaContext::new(0)?;
    let stream = cuda.new_stream()?;
    let n = 100_000_usize;
    let x = stream.clone_htod(&vec![2.0_f32; n])?;
    let mut y = stream.clone_htod(&(0..n).map(|i| i as f32).collect::<Vec<_>>())?;

    // The same context, and the same stream.
    // SAFETY: `cuda` and `stream` live to the end of this function, and what is made of them goes before.
    let context = unsafe { Context::from_raw(cuda.cu_ctx().cast()) }?;
    let device = Device::from_context(context.clone(), DeviceOptions::from_env())?;
    // SAFETY: as before.
    let borrowed =
        unsafe { tilelift::driver::Stream::from_raw(&context, stream.cu_stream().cast()) }?;
    let tile_stream = Stream::from_driver(&device, borrowed)?;

    let program = Program::python("axpy.py", SOURCE)?;
    let axpy = device.kernel(&program, "axpy")?.constant("BLOCK", 1024)?;
    {
        // The guards tell cudarc that the memory is read and written in this stream.
        let (x, _reading) = x.device_ptr(&stream);
        let (y, _writing) = y.device_ptr_mut(&stream);
        let pointer = |address: u64| {
            // SAFETY: cudarc's guards keep the memory, of `n` floats, until the launch is in the stream.
            let memory = unsafe { RawPtr::from_raw(address, n * size_of::<f32>()) };
            Pointer::from_driver(memory, DType::F32)
        };
        let grid = |c: Constants| Some([(n as u32).div_ceil(c.int("BLOCK")?), 1, 1]);
        axpy.launch(
            &tile_stream,
            &grid,
            (3.0_f32, pointer(x), pointer(y), n as i32),
        )?;
    }

    let sums = stream.clone_dtoh(&y)?;
    let right = sums
        .iter()
        .enumerate()
        .all(|(i, &sum)| sum == 6.0 + i as f32);
    println!(
        "cudarc: {} on {}",
        if right { "right" } else { "WRONG" },
        device.name()
    );
    if right {
        Ok(())
    } else {
        Err("the sums are wrong".into())
    }
}
