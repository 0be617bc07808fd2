//! Launches a kernel that the build script compiled from `add.py`.

use tilelift::runtime::{Buffer, Device, RuntimeError};

tilelift::include_kernels!("add");

fn main() -> Result<(), RuntimeError> {
    let device = Device::best();
    let kernel = add::Add::load(&device)?;
    let n = 5000_u32;
    let x = Buffer::from_slice(&device, &vec![1.5_f32; n as usize])?;
    let y = Buffer::from_slice(&device, &vec![2.0_f32; n as usize])?;
    let mut out = Buffer::<f32>::new(&device, n as usize)?;
    let stream = device.stream();
    let args = add::Args {
        x: &x,
        y: &y,
        out: &mut out,
        n: n as i32,
    };
    kernel.launch(&stream, n.div_ceil(add::Add::BLOCK), args)?;
    let right = out.read(&stream)?.iter().all(|&sum| sum == 3.5);
    let lines = add::PTX.contains(".loc");
    println!("ahead: right {right}, lines {lines}");
    assert!(right && lines, "the sums are right and the PTX has lines");
    Ok(())
}
