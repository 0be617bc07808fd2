//! An operation of candle whose kernel is Triton source: `x * sigmoid(x)`, by a custom op.
//!
//! On the CPU the kernel runs on the emulator, which is slow and gives the numbers that a GPU gives. With the feature
//! `cuda` it is launched on candle's own memory and in candle's own stream.

use std::error::Error;

use candle_core::{CpuStorage, CustomOp1, DType, Layout, Shape, Tensor};
use tilelift::runtime::{Buffer, Constants, Device, Kernel, Program, RuntimeError};

const SOURCE: &str = r#"
import triton
import triton.language as tl

@triton.jit
def silu(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    v = tl.load(x + i, mask)
    tl.store(out + i, v / (1 + tl.exp(-v)), mask)
"#;

/// The operation. Kernels that it has compiled stay with the program, for the device that they were compiled for.
struct Silu {
    program: Program,
    #[cfg(feature = "cuda")]
    gpu: std::sync::OnceLock<Device>,
}

impl Silu {
    fn new() -> Result<Silu, RuntimeError> {
        let program = Program::python("silu.py", SOURCE)?;
        Ok(Silu {
            program,
            #[cfg(feature = "cuda")]
            gpu: std::sync::OnceLock::new(),
        })
    }

    fn kernel(&self, device: &Device) -> Result<Kernel, RuntimeError> {
        device.kernel(&self.program, "silu")?.constant("BLOCK", 256)
    }
}

/// Enough programs for `n` numbers.
fn grid(n: usize) -> impl Fn(Constants<'_>) -> Option<[u32; 3]> {
    move |c| Some([(n as u32).div_ceil(c.int("BLOCK")?), 1, 1])
}

/// The range of elements of a layout without gaps.
fn range(layout: &Layout) -> candle_core::Result<std::ops::Range<usize>> {
    let range = layout.contiguous_offsets();
    let (start, end) = range.ok_or_else(|| candle_core::Error::Msg("it has gaps".to_owned()))?;
    Ok(start..end)
}

impl CustomOp1 for Silu {
    fn name(&self) -> &'static str {
        "tilelift-silu"
    }

    fn cpu_fwd(
        &self,
        storage: &CpuStorage,
        layout: &Layout,
    ) -> candle_core::Result<(CpuStorage, Shape)> {
        let x = &storage.as_slice::<f32>()?[range(layout)?];
        let run = || -> Result<Vec<f32>, RuntimeError> {
            let device = Device::emulator();
            let from = Buffer::from_slice(&device, x)?;
            let out = Buffer::<f32>::new(&device, x.len())?;
            self.kernel(&device)?
                .run(&grid(x.len()), (&from, &out, x.len() as i32))?;
            out.read(&device.stream())
        };
        let out = run().map_err(candle_core::Error::wrap)?;
        Ok((CpuStorage::F32(out), layout.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        storage: &candle_core::CudaStorage,
        layout: &Layout,
    ) -> candle_core::Result<(candle_core::CudaStorage, Shape)> {
        use candle_core::CudaStorage;
        use candle_core::backend::BackendStorage;
        use candle_core::cuda_backend::cudarc::driver::{DevicePtr, DevicePtrMut};
        use tilelift::driver::{Context, RawPtr, Stream as Raw};
        use tilelift::runtime::{DType, DeviceOptions, Pointer, Stream};

        let cuda = storage.device().clone();
        let stream = cuda.cuda_stream();
        let x = storage.as_cuda_slice::<f32>()?.slice(range(layout)?);
        let n = x.len();
        // SAFETY: the kernel writes all of it.
        let mut out = unsafe { cuda.alloc::<f32>(n) }?;
        let launch = |x: u64, out: u64| -> Result<(), Box<dyn Error + Send + Sync>> {
            // SAFETY: context and stream are candle's, which holds them while this runs.
            let context = unsafe { Context::from_raw(stream.context().cu_ctx().cast()) }?;
            let device = match self.gpu.get() {
                Some(device) => device.clone(),
                None => {
                    let device = Device::from_context(context.clone(), DeviceOptions::from_env())?;
                    self.gpu.get_or_init(|| device).clone()
                }
            };
            // SAFETY: as before.
            let raw = unsafe { Raw::from_raw(&context, stream.cu_stream().cast()) }?;
            let pointer = |address: u64| {
                // SAFETY: the guards below keep the memory until the launch is in the stream.
                let memory = unsafe { RawPtr::from_raw(address, n * size_of::<f32>()) };
                Pointer::from_driver(memory, DType::F32)
            };
            let stream = Stream::from_driver(&device, raw)?;
            let args = (pointer(x), pointer(out), n as i32);
            Ok(self.kernel(&device)?.launch(&stream, &grid(n), args)?)
        };
        {
            let (x, _reading) = x.device_ptr(&stream);
            let (out, _writing) = out.device_ptr_mut(&stream);
            launch(x, out).map_err(|error| candle_core::Error::Msg(error.to_string()))?;
        }
        Ok((
            CudaStorage::wrap_cuda_slice(out, cuda),
            layout.shape().clone(),
        ))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let silu = Silu::new()?;
    let mut devices = vec![("CPU", candle_core::Device::Cpu)];
    if cfg!(feature = "cuda") {
        match candle_core::Device::new_cuda(0) {
            Ok(device) => devices.push(("CUDA", device)),
            Err(error) => println!("candle: no GPU, {error}"),
        }
    }
    for (name, device) in devices {
        let x = Tensor::arange(-50_f32, 50.0, &device)?
            .affine(0.1, 0.0)?
            .reshape((4, 25))?;
        let ours = x.apply_op1_no_bwd(&silu)?;
        let theirs = x.silu()?;
        let off = ours
            .sub(&theirs)?
            .abs()?
            .max_all()?
            .to_dtype(DType::F32)?
            .to_scalar::<f32>()?;
        println!(
            "candle on {name}: {:?}, off by {off:e} at most",
            ours.shape()
        );
        // A few roundings of numbers up to 5.
        if off.is_nan() || off > 4e-6 {
            return Err(format!("too far from candle's own: {off:e}").into());
        }
    }
    Ok(())
}
