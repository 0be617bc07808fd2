//! Products of matrices that descriptors stand for.

use tilelift::runtime::{Buffer, Descriptor, Device, Program};

use crate::tools::emulator;

/// A product of matrices by descriptors.
const PRODUCT: &str = r#"
import triton
import triton.language as tl

@triton.jit
def product(x, y, out, K, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr):
    i = tl.program_id(0) * M
    j = tl.program_id(1) * N
    sums = tl.zeros((M, N), tl.float32)
    for k in range(0, K, S):
        sums = tl.dot(x.load([i, k]), y.load([k, j]), sums)
    out.store([i, j], sums)
"#;

/// Multiplies matrices whose rows end anywhere, with what is no number behind each row and no memory behind the last.
pub(crate) fn multiply_by_descriptors(device: &Device) {
    const BLOCKS: [u64; 3] = [32, 64, 32];
    let program = Program::python("product.py", PRODUCT).expect("it is Python");
    let kernel = device
        .kernel(&program, "product")
        .expect("there is a kernel");
    let constants = [("M", BLOCKS[0]), ("N", BLOCKS[1]), ("S", BLOCKS[2])];
    let kernel = constants.into_iter().fold(kernel, |kernel, (name, value)| {
        kernel
            .constant(name, value as i64)
            .expect("it is a parameter")
    });
    let matrix = |rows: u64, columns: u64, seed: u64| {
        let width = columns.next_multiple_of(8) + 8;
        let number = |at: u64| match at % width < columns {
            true => {
                half::f16::from_f64(((at / width * 7 + at % width * 5 + seed) % 9) as f64 - 4.0)
            }
            false => half::f16::NAN,
        };
        let numbers: Vec<half::f16> = (0..(rows - 1) * width + columns).map(number).collect();
        (numbers, width)
    };
    for [m, n, k] in [
        [33, 70, 41],
        [64, 64, 32],
        [5, 3, 1],
        [40, 129, 95],
        [32, 80, 48],
    ] {
        let ((x, x_width), (y, y_width)) = (matrix(m, k, 1), matrix(k, n, 2));
        let width = n.next_multiple_of(4);
        let left = Buffer::from_slice(device, &x).expect("there is memory");
        let right = Buffer::from_slice(device, &y).expect("there is memory");
        let all = vec![-1.0_f32; (m * width) as usize];
        let out = Buffer::from_slice(device, &all).expect("there is memory");
        let [tall, wide, deep] = BLOCKS;
        let descriptor = |pointer, shape: [u64; 2], width: u64, block: [u64; 2]| {
            Descriptor::new(pointer, &shape, &[width, 1], &block).expect("it fits")
        };
        let args = (
            descriptor(left.ptr(), [m, k], x_width, [tall, deep]),
            descriptor(right.ptr(), [k, n], y_width, [deep, wide]),
            descriptor(out.ptr(), [m, n], width, [tall, wide]),
            k as i32,
        );
        let grid = [m.div_ceil(tall) as u32, n.div_ceil(wide) as u32, 1];
        kernel.run(grid, args).expect("it runs");
        let found = out.read(&device.stream()).expect("it ran");
        for (at, &found) in found.iter().enumerate() {
            let (i, j) = (at as u64 / width, at as u64 % width);
            let term = |s: u64| {
                let (a, b) = (x[(i * x_width + s) as usize], y[(s * y_width + j) as usize]);
                a.to_f32() * b.to_f32()
            };
            // Whole numbers: every sum is exact.
            let expected = if j < n { (0..k).map(term).sum() } else { -1.0 };
            assert_eq!(found, expected, "{m} x {n} x {k} at {i}, {j}");
        }
    }
    // What rows are multiples of makes variants, as far as so many numbers are accessed at once.
    let mut signatures: Vec<String> = kernel.variants().into_iter().map(|v| v.signature).collect();
    signatures.sort();
    let promised = [
        ("", ":2", ":2", "i32"),
        (":8", ":8", ":4", "i32"),
        ("", "", "", "i32"),
        ("", "", "", "i32:1"),
    ];
    let expected = promised.map(|(x, y, out, k)| {
        format!("tensordesc<fp16[32, 32{x}]>, tensordesc<fp16[32, 64{y}]>, tensordesc<fp32[32, 64{out}]>, {k}")
    });
    for expected in expected {
        let is_there = signatures.contains(&expected);
        assert!(is_there, "{expected}: {signatures:#?}");
    }
    assert_eq!(signatures.len(), 4, "{signatures:#?}");
}

#[test]
fn products_of_descriptors_end_anywhere() {
    multiply_by_descriptors(&emulator(None));
}
