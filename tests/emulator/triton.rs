//! Kernels compiled by Triton 3.6.0 (`tests/data/ptx/triton`), compared with f64 references and with
//! values that NumPy computed. Outputs start unwritten, and all checks are on.

use std::fs;
use std::path::PathBuf;

use tilelift::emu::{Arg, EmuError, Fault, Launch, Memory, Module, Options, Stats, run};
use tilelift::num::{Rounding, bf16, f16};

use crate::{f32_bytes, read_f32, uniform};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/ptx/triton")
}

pub(crate) fn text(name: &str) -> String {
    fs::read_to_string(folder().join(format!("{name}.ptx"))).expect("committed test data")
}

pub(crate) fn module(name: &str) -> Module {
    match Module::parse(&text(name)) {
        Ok(module) => module,
        Err(error) => panic!("{name}: {error}"),
    }
}

/// Values that NumPy computed, as bits of f64.
pub(crate) fn expected(name: &str) -> Vec<f64> {
    let text =
        fs::read_to_string(folder().join(format!("{name}.expected"))).expect("committed test data");
    text.lines()
        .map(|line| f64::from_bits(u64::from_str_radix(line, 16).expect("hexadecimal")))
        .collect()
}

/// Runs the only entry of a file. Triton adds two scratch pointers, null where unused.
fn launch(
    module: &Module,
    ctas: u32,
    threads: u32,
    shared_bytes: u32,
    memory: &mut Memory,
    mut args: Vec<Arg>,
    seed: u64,
) -> Result<Stats, EmuError> {
    let entry = module.entries().next().expect("one entry a file");
    assert_eq!(entry.reqntid, Some([threads, 1, 1]));
    args.extend([Arg::pointer(0), Arg::pointer(0)]);
    let options = Options {
        seed,
        ..Options::default()
    };
    let launch = Launch {
        grid: [ctas, 1, 1],
        block: [threads, 1, 1],
        shared_bytes,
        args: &args,
        options,
    };
    run(module, &entry.name, &launch, memory)
}

pub(crate) fn close(got: &[f64], want: &[f64], relative: f64, absolute: f64) {
    assert_eq!(got.len(), want.len());
    for (index, (got, want)) in got.iter().zip(want).enumerate() {
        let bound = absolute + relative * want.abs();
        assert!(
            (got - want).abs() <= bound,
            "element {index}: {got} where {want} is expected within {bound}"
        );
    }
}

pub(crate) fn f16_bytes(values: &[f64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|&x| f16::from_f64(x, Rounding::NearestEven).to_le_bytes())
        .collect()
}

pub(crate) fn read_f16(memory: &Memory, address: u64, count: usize) -> Vec<f64> {
    let bytes = memory
        .read(address, count * 2)
        .expect("the kernel wrote all of it");
    bytes
        .as_chunks::<2>()
        .0
        .iter()
        .map(|&half| f16::to_f64(u16::from_le_bytes(half)))
        .collect()
}

pub(crate) fn rounded_f16(values: &[f64]) -> Vec<f64> {
    values
        .iter()
        .map(|&x| f16::to_f64(f16::from_f64(x, Rounding::NearestEven)))
        .collect()
}

#[test]
fn vector_add_of_f32_is_exact() {
    let n = 2500;
    let (x, y) = (uniform(11, n), uniform(12, n));
    let want: Vec<f64> = x
        .iter()
        .zip(&y)
        .map(|(&x, &y)| f64::from(x as f32 + y as f32))
        .collect();
    for target in [80, 90] {
        let module = module(&format!("vector_add_fp32_sm{target}"));
        for seed in 0..3 {
            let mut memory = Memory::new();
            let (a, b) = (
                memory.alloc_bytes(&f32_bytes(&x)),
                memory.alloc_bytes(&f32_bytes(&y)),
            );
            let out = memory.alloc(n * 4);
            let args = vec![
                Arg::pointer(a),
                Arg::pointer(b),
                Arg::pointer(out),
                Arg::from(n as i32),
            ];
            let stats =
                launch(&module, 3, 128, 0, &mut memory, args, seed).expect("a correct kernel");
            assert_eq!(read_f32(&memory, out, n), want);
            // Two loads and one store of each of 12 warps and 8 elements a thread.
            assert!(stats.global_requests <= 12 * 3 * 8);
            assert!(stats.global_sectors >= 3 * (n as u64 * 4).div_ceil(32));
        }
    }
}

#[test]
fn vector_add_of_bf16_is_exact() {
    let n = 1500;
    let bits = |seed| -> Vec<u16> {
        uniform(seed, n)
            .iter()
            .map(|&x| bf16::from_f64(x, Rounding::NearestEven))
            .collect()
    };
    let bytes =
        |values: &[u16]| -> Vec<u8> { values.iter().flat_map(|x| x.to_le_bytes()).collect() };
    let (x, y) = (bits(13), bits(14));
    let want: Vec<u16> = x.iter().zip(&y).map(|(&x, &y)| bf16::add(x, y)).collect();
    for target in [80, 90] {
        let mut memory = Memory::new();
        let (a, b) = (
            memory.alloc_bytes(&bytes(&x)),
            memory.alloc_bytes(&bytes(&y)),
        );
        let out = memory.alloc(n * 2);
        let args = vec![
            Arg::pointer(a),
            Arg::pointer(b),
            Arg::pointer(out),
            Arg::from(n as i32),
        ];
        launch(
            &module(&format!("vector_add_bf16_sm{target}")),
            2,
            128,
            0,
            &mut memory,
            args,
            1,
        )
        .expect("a correct kernel");
        assert_eq!(memory.read(out, n * 2).expect("written"), bytes(&want));
    }
}

fn softmax_reference(x: &[f64], columns: usize) -> Vec<f64> {
    x.chunks(columns)
        .flat_map(|row| {
            let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = row.iter().map(|x| (x - top).exp()).sum();
            row.iter()
                .map(move |x| (x - top).exp() / sum)
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn softmax_of_f32_agrees_with_numpy() {
    let columns = 1000;
    let x: Vec<f64> = uniform(1, 2 * columns).iter().map(|x| x * 8.0).collect();
    let want = expected("softmax");
    close(&softmax_reference(&x, columns), &want, 1e-12, 0.0);
    for (target, warps) in [(80, 4), (90, 4), (80, 8), (90, 8)] {
        let module = module(&format!("softmax_fp32_w{warps}_sm{target}"));
        let mut memory = Memory::new();
        let input = memory.alloc_bytes(&f32_bytes(&x));
        let out = memory.alloc(2 * columns * 4);
        let args = vec![
            Arg::pointer(out),
            Arg::pointer(input),
            Arg::from(columns as i32),
            Arg::from(columns as i32),
        ];
        let stats = launch(&module, 2, warps * 32, warps * 4, &mut memory, args, 5)
            .expect("a correct kernel");
        // x * log2(e) loses up to 2^-24 of an exponent of 23, which the power makes relative.
        close(&read_f32(&memory, out, 2 * columns), &want, 4e-6, 0.0);
        assert!(stats.barriers > 0);
        assert_eq!(stats.shared_wavefronts, stats.shared_ideal_wavefronts);
    }
}

#[test]
fn softmax_of_f16_agrees_with_f64() {
    let columns = 1021;
    let x = rounded_f16(&uniform(21, 3 * columns));
    let want = softmax_reference(&x, columns);
    for target in [80, 90] {
        let module = module(&format!("softmax_fp16_w4_sm{target}"));
        let mut memory = Memory::new();
        let input = memory.alloc_bytes(&f16_bytes(&x));
        let out = memory.alloc(3 * columns * 2);
        let args = vec![
            Arg::pointer(out),
            Arg::pointer(input),
            Arg::from(columns as i32),
            Arg::from(columns as i32),
        ];
        launch(&module, 3, 128, 16, &mut memory, args, 6).expect("a correct kernel");
        // Half an ulp of f16, 2^-11, and f32's errors; results near 1e-3 are above subnormals.
        close(&read_f16(&memory, out, 3 * columns), &want, 4.9e-4, 0.0);
    }
}

#[test]
fn gelu_of_f16_agrees_with_f64() {
    let n = 1024 - 16;
    let x: Vec<f64> = rounded_f16(&uniform(22, n).iter().map(|x| x * 4.0).collect::<Vec<_>>());
    let want: Vec<f64> = x
        .iter()
        .map(|&x| {
            let inner = 0.797_884_560_802_865_4 * (x + 0.044715 * x * x * x);
            x / (1.0 + (-2.0 * inner).exp())
        })
        .collect();
    for target in [80, 90] {
        let mut memory = Memory::new();
        let input = memory.alloc_bytes(&f16_bytes(&x));
        let out = memory.alloc(n * 2);
        let args = vec![Arg::pointer(input), Arg::pointer(out), Arg::from(n as i32)];
        launch(
            &module(&format!("gelu_fp16_sm{target}")),
            2,
            128,
            0,
            &mut memory,
            args,
            7,
        )
        .expect("a correct kernel");
        // Half an ulp, and half the least subnormal of f16.
        close(&read_f16(&memory, out, n), &want, 5e-4, 3.1e-8);
    }
}

#[test]
fn layer_norm_forward_agrees_with_numpy() {
    let (rows, columns) = (2, 700);
    let x = rounded_f16(&uniform(2, rows * columns));
    let (w, b) = (uniform(3, columns), uniform(4, columns));
    let want = expected("layer_norm_forward");
    for target in [80, 90] {
        let module = module(&format!("layer_norm_forward_sm{target}"));
        let mut memory = Memory::new();
        let input = memory.alloc_bytes(&f16_bytes(&x));
        let out = memory.alloc(rows * columns * 2);
        let (weight, bias) = (
            memory.alloc_bytes(&f32_bytes(&w)),
            memory.alloc_bytes(&f32_bytes(&b)),
        );
        let (mean, rstd) = (memory.alloc(rows * 4), memory.alloc(rows * 4));
        let mut args: Vec<Arg> = [input, out, weight, bias, mean, rstd]
            .map(Arg::pointer)
            .to_vec();
        args.extend([
            Arg::from(columns as i32),
            Arg::from(columns as i32),
            Arg::from(1e-5_f32),
        ]);
        launch(&module, rows as u32, 128, 16, &mut memory, args, 8).expect("a correct kernel");
        // Half an ulp of f16 of results below 4, which is 2^-10, and of small ones what f32 loses.
        close(&read_f16(&memory, out, rows * columns), &want, 4.9e-4, 1e-6);
        let means: Vec<f64> = x
            .chunks(columns)
            .map(|row| row.iter().sum::<f64>() / columns as f64)
            .collect();
        close(&read_f32(&memory, mean, rows), &means, 0.0, 1e-6);
        assert!(
            read_f32(&memory, rstd, rows)
                .iter()
                .all(|rstd| (1.5..2.0).contains(rstd))
        );
    }
}

/// The buffers of one backward pass.
struct Backward {
    memory: Memory,
    dx: u64,
    dw_part: u64,
    db_part: u64,
    args: Vec<Arg>,
}

const GROUPS: usize = 2;

fn backward(x: &[f64], dy: &[f64], w: &[f64], mean: &[f64], rstd: &[f64]) -> Backward {
    let mut memory = Memory::new();
    let columns = w.len();
    let dx = memory.alloc(x.len() * 4);
    let dy = memory.alloc_bytes(&f32_bytes(dy));
    let (dw_part, db_part) = (
        memory.alloc(GROUPS * columns * 4),
        memory.alloc(GROUPS * columns * 4),
    );
    let (x, w) = (
        memory.alloc_bytes(&f32_bytes(x)),
        memory.alloc_bytes(&f32_bytes(w)),
    );
    let (mean, rstd) = (
        memory.alloc_bytes(&f32_bytes(mean)),
        memory.alloc_bytes(&f32_bytes(rstd)),
    );
    let locks = memory.alloc_bytes(&[0; 2 * GROUPS * 4]);
    let mut args: Vec<Arg> = [dx, dy, dw_part, db_part, x, w, mean, rstd, locks]
        .map(Arg::pointer)
        .to_vec();
    args.extend([Arg::from(columns as i32), Arg::from(columns as i32)]);
    Backward {
        memory,
        dx,
        dw_part,
        db_part,
        args,
    }
}

/// All threads load the flag that one thread then sets: a race in the tutorial's kernel as well,
/// which Triton 3.6.0 compiles without a barrier between the two.
#[test]
fn the_flag_of_layer_norm_backward_races_without_a_barrier() {
    let columns = 200;
    let (x, w, one) = (uniform(31, columns), uniform(33, columns), vec![1.0]);
    let exchange = ".exch.";
    for target in [80, 90] {
        let name = format!("layer_norm_backward_dx_racy_sm{target}");
        let text =
            fs::read_to_string(folder().join(format!("{name}.ptx"))).expect("committed test data");
        let mut pass = backward(&x, &x, &w, &one, &one);
        let error = launch(&module(&name), 1, 128, 1024, &mut pass.memory, pass.args, 0)
            .expect_err("it races");
        let Some(Fault::Race { other, .. }) = error.fault() else {
            panic!("{error}");
        };
        let lines = [error.line().expect("it ran"), other.line]
            .map(|line| text.lines().nth(line as usize - 1));
        let [first, second] = lines.map(|line| line.expect("a line of the text"));
        assert!(
            first.contains(exchange) != second.contains(exchange),
            "{first}\n{second}"
        );
        assert!(
            first.contains("ld.global") != second.contains("ld.global"),
            "{first}\n{second}"
        );
    }
}

/// Rows of one group add to shared buffers under a lock in global memory, so this needs CTAs that
/// take turns, and acquire and release that order their accesses.
#[test]
fn layer_norm_backward_takes_turns_under_a_lock() {
    let (rows, columns) = (6, 200);
    let (x, dy, w) = (
        uniform(31, rows * columns),
        uniform(32, rows * columns),
        uniform(33, columns),
    );
    let mean: Vec<f64> = x
        .chunks(columns)
        .map(|row| row.iter().sum::<f64>() / columns as f64)
        .collect();
    let rstd: Vec<f64> = x
        .chunks(columns)
        .zip(&mean)
        .map(|(row, mean)| {
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / columns as f64;
            1.0 / (variance + 1e-5).sqrt()
        })
        .collect();
    let (mut dx_want, mut dw_want, mut db_want) =
        (Vec::new(), vec![0.0; columns], vec![0.0; columns]);
    for row in 0..rows {
        let at = row * columns..(row + 1) * columns;
        let hat: Vec<f64> = x[at.clone()]
            .iter()
            .map(|x| (x - mean[row]) * rstd[row])
            .collect();
        let wdy: Vec<f64> = dy[at.clone()]
            .iter()
            .zip(&w)
            .map(|(dy, w)| dy * w)
            .collect();
        let c1 = hat.iter().zip(&wdy).map(|(a, b)| a * b).sum::<f64>() / columns as f64;
        let c2 = wdy.iter().sum::<f64>() / columns as f64;
        for column in 0..columns {
            dx_want.push((wdy[column] - (hat[column] * c1 + c2)) * rstd[row]);
            dw_want[column] += dy[at.start + column] * hat[column];
            db_want[column] += dy[at.start + column];
        }
    }
    for target in [80, 90] {
        let first = module(&format!("layer_norm_backward_dx_sm{target}"));
        let second = module(&format!("layer_norm_backward_dwdb_sm{target}"));
        for seed in 0..4 {
            let pass = backward(&x, &dy, &w, &mean, &rstd);
            let Backward {
                mut memory,
                dx,
                dw_part,
                db_part,
                args,
            } = pass;
            launch(&first, rows as u32, 128, 1024, &mut memory, args, seed)
                .expect("a correct kernel");
            // Sums of 200 terms below 8 in f32.
            close(&read_f32(&memory, dx, rows * columns), &dx_want, 1e-5, 1e-5);
            let (dw, db) = (memory.alloc(columns * 4), memory.alloc(columns * 4));
            let mut args: Vec<Arg> = [dw_part, db_part, dw, db].map(Arg::pointer).to_vec();
            args.extend([Arg::from(GROUPS as i32), Arg::from(columns as i32)]);
            launch(
                &second,
                columns.div_ceil(32) as u32,
                128,
                512,
                &mut memory,
                args,
                seed,
            )
            .expect("a correct kernel");
            close(&read_f32(&memory, dw, columns), &dw_want, 1e-5, 1e-5);
            close(&read_f32(&memory, db, columns), &db_want, 1e-5, 1e-5);
        }
    }
}
