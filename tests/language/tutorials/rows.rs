//! Vectors and rows: sums, softmax, dropout, layer norm, a function of libdevice.

use tilelift::num::Format;
use tilelift::settings::Target;

use super::Case;
use super::launch::{Arg, Expected, buffer, check, integers, rounded, steps};

const BOTH: &[Target] = &[Target::SM_80, Target::SM_90];

fn expect(arg: usize, format: Format, numbers: Vec<f64>, relative: f64, absolute: f64) -> Expected {
    Expected {
        arg,
        format,
        numbers,
        relative,
        absolute,
    }
}

fn outputs(count: usize) -> Arg {
    buffer(Format::F32, &vec![0.0; count])
}

#[test]
fn sums_of_vectors() {
    let (x, y) = (steps(300, 1), steps(300, 2));
    let sums: Vec<f64> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
    let single = |v: &[f64]| buffer(Format::F32, v);
    let args = [single(&x), single(&y), outputs(300), Arg::I32(300)];
    let expected = [expect(2, Format::F32, sums, 0.0, 0.0)];
    let signature = "*fp32:16, *fp32:16, *fp32:16, i32, 128";
    let case = Case::new("01", "add_kernel", signature, 4, 3);
    check(&case, BOTH, [3, 1, 1], &args, &expected);
    let case = Case::new("11", "add_kernel", format!("{signature}, True"), 4, 3);
    check(&case, &[Target::SM_90], [3, 1, 1], &args, &expected);
}

#[test]
fn softmax_of_rows() {
    let (rows, columns) = (5, 50);
    let x: Vec<f64> = steps(rows * columns, 3).iter().map(|x| 4.0 * x).collect();
    let soft = x.chunks(columns).flat_map(|row| {
        let largest = row.iter().copied().fold(f64::MIN, f64::max);
        let powers: Vec<f64> = row.iter().map(|x| (x - largest).exp()).collect();
        let sum: f64 = powers.iter().sum();
        powers
            .into_iter()
            .map(move |p| p / sum)
            .collect::<Vec<f64>>()
    });
    let n = |n: usize| Arg::I32(n as i32);
    let args = [
        outputs(250),
        buffer(Format::F32, &x),
        n(columns),
        n(columns),
        n(rows),
        n(columns),
    ];
    // The power of two and the quotient are within 2.1 units each, the sum within a few.
    let expected = [expect(0, Format::F32, soft.collect(), 1e-6, 0.0)];
    let case = Case::new(
        "02",
        "softmax_kernel",
        "*fp32:16, *fp32:16, i32, i32, i32, i32, 64, 2",
        4,
        3,
    );
    check(&case, BOTH, [2, 1, 1], &args, &expected);
}

/// The first word of Philox with ten rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
fn philox(seed: u64, count: u32) -> u32 {
    let (mut c, mut k) = ([count, 0, 0, 0], [seed as u32, (seed >> 32) as u32]);
    for _ in 0..10 {
        let a = u64::from(c[0]) * 0xD251_1F53;
        let b = u64::from(c[2]) * 0xCD9E_8D57;
        c = [
            (b >> 32) as u32 ^ c[1] ^ k[0],
            b as u32,
            (a >> 32) as u32 ^ c[3] ^ k[1],
            a as u32,
        ];
        k = [
            k[0].wrapping_add(0x9E37_79B9),
            k[1].wrapping_add(0xBB67_AE85),
        ];
    }
    c[0]
}

#[test]
fn dropout() {
    let x = steps(200, 4);
    let keep: Vec<i32> = (0..200).map(|i| (i * 7 % 5 < 2).into()).collect();
    let kept = |kept: &dyn Fn(usize) -> bool, p: f64| -> Vec<f64> {
        let chosen = x.iter().enumerate();
        chosen
            .map(|(i, x)| if kept(i) { x / (1.0 - p) } else { 0.0 })
            .collect()
    };
    let single = buffer(Format::F32, &x);
    let args = [
        single.clone(),
        integers(&keep),
        outputs(200),
        Arg::I32(200),
        Arg::F32(0.5),
    ];
    let expected = [expect(
        2,
        Format::F32,
        kept(&|i| keep[i] == 1, 0.5),
        0.0,
        0.0,
    )];
    let case = Case::new(
        "04",
        "_dropout",
        "*fp32:16, *i32:16, *fp32:16, i32, fp32, 128",
        4,
        3,
    );
    check(&case, BOTH, [2, 1, 1], &args, &expected);

    let args = [
        single,
        outputs(200),
        Arg::I32(200),
        Arg::F32(0.5),
        Arg::I32(123),
    ];
    let uniform = |i: usize| {
        let number = philox(123, i as u32) as i32;
        let number = if number < 0 { -number - 1 } else { number };
        number as f32 * 4.656_612_7e-10
    };
    let expected = [expect(
        1,
        Format::F32,
        kept(&|i| uniform(i) > 0.5, 0.5),
        0.0,
        0.0,
    )];
    let case = Case::new(
        "04",
        "_seeded_dropout",
        "*fp32:16, *fp32:16, i32, fp32, i32, 128",
        4,
        3,
    );
    check(&case, BOTH, [2, 1, 1], &args, &expected);
}

#[test]
fn layer_norm() {
    let (rows, n, groups) = (4, 60, 2);
    let (x, dy) = (steps(rows * n, 5), steps(rows * n, 6));
    let (w, b) = (steps(n, 7), steps(n, 8));
    let eps = 1e-5;
    let (mut y, mut means, mut scales) = (Vec::new(), Vec::new(), Vec::new());
    let (mut dx, mut dw, mut db) = (Vec::new(), vec![0.0; groups * n], vec![0.0; groups * n]);
    for (row, (x, dy)) in x.chunks(n).zip(dy.chunks(n)).enumerate() {
        let size = n as f64;
        let mean = x.iter().sum::<f64>() / size;
        let var = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / size;
        let scale = 1.0 / (var + eps).sqrt();
        let hat: Vec<f64> = x.iter().map(|x| (x - mean) * scale).collect();
        let wdy: Vec<f64> = w.iter().zip(dy).map(|(w, dy)| w * dy).collect();
        let c1 = hat.iter().zip(&wdy).map(|(a, b)| a * b).sum::<f64>() / size;
        let c2 = wdy.iter().sum::<f64>() / size;
        for i in 0..n {
            y.push(hat[i] * w[i] + b[i]);
            dx.push((wdy[i] - (hat[i] * c1 + c2)) * scale);
            dw[row % groups * n + i] += dy[i] * hat[i];
            db[row % groups * n + i] += dy[i];
        }
        means.push(mean);
        scales.push(scale);
    }
    let half = |v: &[f64]| buffer(Format::F16, v);
    let none = |count: usize| half(&vec![0.0; count]);
    let stride = Arg::I32(n as i32);
    // Results of 11 bits, of sums within a few units of f32.
    let (relative, absolute) = (6e-4, 1e-4);
    let near =
        |arg, numbers: &[f64]| expect(arg, Format::F16, numbers.to_vec(), relative, absolute);
    let exact = |arg, numbers: &[f64]| expect(arg, Format::F32, numbers.to_vec(), 1e-5, 1e-6);

    let args = [
        half(&x),
        none(rows * n),
        half(&w),
        half(&b),
        outputs(rows),
        outputs(rows),
        stride.clone(),
        stride.clone(),
        Arg::F32(eps as f32),
    ];
    let halves = "*fp16:16, *fp16:16, *fp16:16";
    let signature = format!("{halves}, *fp16:16, *fp32:16, *fp32:16, i32, i32, fp32, 32");
    let case = Case::new("05", "_layer_norm_fwd_fused", signature, 4, 3);
    let expected = [near(1, &y), exact(4, &means), exact(5, &scales)];
    check(&case, BOTH, [rows as u32, 1, 1], &args, &expected);

    let single = |v: &[f64]| buffer(Format::F32, v);
    let args = [
        none(rows * n),
        half(&dy),
        none(groups * n),
        none(groups * n),
        half(&x),
        half(&w),
        single(&means),
        single(&scales),
        integers(&[0; 4]),
        stride.clone(),
        stride.clone(),
    ];
    let signature = format!("{halves}, {halves}, *fp32:16, *fp32:16, *i32:16, i32, i32, 2, 64");
    let case = Case::new("05", "_layer_norm_bwd_dx_fused", signature, 4, 3);
    // Two rows are added to each sum, and the first is rounded.
    let sums = |arg, numbers: &[f64]| expect(arg, Format::F16, numbers.to_vec(), 1.5e-3, 1.5e-3);
    let expected = [near(0, &dx), sums(2, &dw), sums(3, &db)];
    check(&case, BOTH, [rows as u32, 1, 1], &args, &expected);

    let round = |v: &[f64]| {
        v.iter()
            .map(|&x| rounded(Format::F16, x))
            .collect::<Vec<f64>>()
    };
    let (dw, db) = (round(&dw), round(&db));
    let column = |v: &[f64]| (0..n).map(|i| v[i] + v[n + i]).collect::<Vec<f64>>();
    let args = [
        half(&dw),
        half(&db),
        none(n),
        none(n),
        Arg::I32(groups as i32),
        stride,
    ];
    let signature = format!("{halves}, *fp16:16, i32, i32, 32, 32");
    let case = Case::new("05", "_layer_norm_bwd_dwdb", signature, 4, 3);
    let expected = [near(2, &column(&dw)), near(3, &column(&db))];
    check(&case, BOTH, [2, 1, 1], &args, &expected);
}

#[test]
fn arc_sines() {
    let x = steps(200, 9);
    let exact = x.iter().map(|x| x.asin()).collect();
    let args = [buffer(Format::F32, &x), outputs(200), Arg::I32(200)];
    // The function is within 2.1 units.
    let expected = [expect(1, Format::F32, exact, 2.6e-7, 0.0)];
    let case = Case::new("07", "asin_kernel", "*fp32:16, *fp32:16, i32, 128", 4, 3);
    check(&case, BOTH, [2, 1, 1], &args, &expected);
}
