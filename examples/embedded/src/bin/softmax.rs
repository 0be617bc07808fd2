//! Softmax of the rows of a matrix, on the GPU if there is one.

use tilelift::runtime::{Buffer, Device, Program, RuntimeError};

fn main() -> Result<(), RuntimeError> {
    let (rows, columns) = (100, 777);
    let x: Vec<f32> = (0..rows * columns)
        .map(|i| (i % 101) as f32 / 10.0)
        .collect();

    let device = Device::best();
    let program = Program::python("softmax.py", tilelift_embedded::SOFTMAX)?;
    let softmax = device
        .kernel(&program, "softmax")?
        .constant("BLOCK", 1024)?;
    let from = Buffer::from_slice(&device, &x)?;
    let out = Buffer::<f32>::new(&device, x.len())?;
    softmax.run(rows as u32, (&from, &out, columns as i32))?;

    let sums = out.read(&device.stream())?;
    let sums = sums.chunks(columns).map(|row| row.iter().sum::<f32>());
    // Hundreds of roundings of numbers up to one.
    assert!(
        sums.into_iter().all(|sum| (sum - 1.0).abs() < 1e-4),
        "each row is 1 in sum"
    );
    println!("softmax on {}: each row is 1 in sum", device.name());
    Ok(())
}
