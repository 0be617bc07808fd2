//! Launches a kernel that the build script compiled from `add.py`.

use tilelift::runtime::{Buffer, Device, RuntimeError};

mod add {
    include!(concat!(env!("OUT_DIR"), "/add.rs"));
}

fn main() -> Result<(), RuntimeError> {
    let device = Device::best();
    let add = add::Add::load(&device)?;
    let n = 5000_u32;
    let x = Buffer::from_slice(&device, &vec![1.5_f32; n as usize])?;
    let y = Buffer::from_slice(&device, &vec![2.0_f32; n as usize])?;
    let out = Buffer::<f32>::new(&device, n as usize)?;
    let stream = device.stream();
    add.launch(&stream, n.div_ceil(1024), &x, &y, &out, n as i32)?;
    let right = out.read(&stream)?.iter().all(|&sum| sum == 3.5);
    let lines = add::PTX.contains(".loc");
    println!("ahead: right {right}, lines {lines}");
    assert!(right && lines, "the sums are right and the PTX has lines");
    Ok(())
}
