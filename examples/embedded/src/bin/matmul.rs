//! A product of matrices whose kernel chooses its tiles by measuring, on the GPU if there is one.

use tilelift::runtime::{Buffer, Constants, Device, Program, RuntimeError, f16};

fn main() -> Result<(), RuntimeError> {
    let n = 64_usize;
    let a: Vec<f16> = (0..n * n).map(|i| f16::from_f32((i % 7) as f32)).collect();
    let b: Vec<f16> = (0..n * n).map(|i| f16::from_f32((i % 5) as f32)).collect();

    let device = Device::best();
    let program = Program::python("matmul.py", tilelift_embedded::MATMUL)?;
    let matmul = device.autotuned(&program, "matmul")?;
    let (left, right) = (
        Buffer::from_slice(&device, &a)?,
        Buffer::from_slice(&device, &b)?,
    );
    let c = Buffer::<f32>::new(&device, n * n)?;
    let stream = device.stream();
    let tiles = |c: Constants| Some((n as u32).div_ceil(c.int("TILE")?));
    let grid = |c: Constants| Some([tiles(c)?, tiles(c)?, 1]);
    matmul.launch(&stream, &grid, (&left, &right, &c, n as i32))?;

    let c = c.read(&stream)?;
    let expected = |i: usize| {
        let products = (0..n).map(|k| a[i / n * n + k].to_f32() * b[k * n + i % n].to_f32());
        products.sum::<f32>()
    };
    // Whole numbers: nothing is rounded.
    assert!(
        (0..n * n).all(|i| c[i] == expected(i)),
        "the product is right"
    );
    println!("matmul on {}: right", device.name());
    Ok(())
}
