//! Tests of the application's kernels: values, code, and values of random cases.

use tilelift::fuzzing::check_kernel;
use tilelift::runtime::{Device, Program};
use tilelift::settings::Target;
use tilelift::stages::Stage;
use tilelift::testing::{Case, Failure, Tolerance, emulator};

/// Softmax of `rows` of these numbers.
fn softmax(device: &Device, rows: usize, x: &[f32]) -> Result<Case, Failure> {
    let n = x.len() / rows;
    let program = Program::python("softmax.py", tilelift_embedded::SOFTMAX)?;
    let block = n.next_power_of_two() as i32;
    let kernel = device
        .kernel(&program, "softmax")?
        .constant("BLOCK", block)?;
    let expected = |i: usize| {
        let row = &x[i / n * n..][..n];
        (x[i].exp() / row.iter().map(|v| v.exp()).sum::<f32>()) as f32
    };
    Ok(Case::new(&kernel, rows as u32)
        .input(x)
        .output(x.len(), expected)
        // Some roundings of exponents up to 10.
        .within(Tolerance::relative(2e-5))
        .value(n as i32))
}

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i * 37 % 101) as f32 / 10.0).collect()
}

#[test]
fn softmax_is_right() -> Result<(), Failure> {
    softmax(&emulator(), 3, &numbers(3 * 100))?.check()
}

#[test]
fn softmax_has_the_code_that_it_had() -> Result<(), Failure> {
    let case = softmax(&emulator(), 3, &numbers(3 * 100))?;
    case.expect(Stage::Ptx, "tests/expected/softmax.ptx")?;
    case.expect(Stage::Stats, "tests/expected/softmax.stats")
}

#[test]
fn softmax_is_right_however_it_is_compiled() -> Result<(), Failure> {
    check_kernel(
        "softmax",
        &[Target::SM_80, Target::SM_90A],
        |device, random| {
            let (rows, n) = (1 + random.below(3), 1 + random.below(200));
            softmax(device, rows, &numbers(rows * n))
        },
    )
    .map(drop)
}
