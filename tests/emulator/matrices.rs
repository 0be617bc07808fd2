//! Products of matrices and attention: PTX of Triton 3.6.0 (`tests/data/ptx/triton`) against values that NumPy computed, and a
//! kernel written by hand, where the folder beside the repository has it. Outputs start unwritten, and all checks are on.

use std::path::PathBuf;

use tilelift::emu::{
    Arg, Fill, Launch, Memory, Module, Options, Stats, Swizzle, TensorElement, TensorMap, run,
};

use crate::triton::{close, expected, f16_bytes, module, read_f16, rounded_f16, text};
use crate::{read_f32, uniform};

/// Numbers as f16 holds them.
fn half(seed: u64, count: usize) -> Vec<f64> {
    rounded_f16(&uniform(seed, count))
}

/// Runs the only entry of a module.
fn launch(
    module: &Module,
    grid: [u32; 3],
    shared_bytes: u32,
    memory: &mut Memory,
    args: &[Arg],
    seed: u64,
) -> Stats {
    let entry = module.entries().next().expect("one entry a file");
    let launch = Launch {
        grid,
        block: entry.reqntid.unwrap_or([128, 1, 1]),
        shared_bytes,
        args,
        options: Options {
            seed,
            ..Options::default()
        },
    };
    run(module, &entry.name, &launch, memory).unwrap_or_else(|error| panic!("{error}"))
}

/// A product of matrices that tensor maps describe, by one role, and by a role that loads and one that multiplies.
#[test]
fn described_products_of_triton_are_exact() {
    let (m, n, k) = (128, 64, 96);
    let whole = |seed, count| -> Vec<f64> {
        let numbers = uniform(seed, count);
        numbers.iter().map(|x| (x * 4.0).round()).collect()
    };
    let (a, b) = (whole(43, m * k), whole(44, k * n));
    let want: Vec<f64> = (0..m * n)
        .map(|i| (0..k).map(|j| a[i / n * k + j] * b[j * n + i % n]).sum())
        .collect();
    // It signals barriers that no fence made visible to the async proxy; the roles make barriers where tiles are to lie, too,
    // and store one tile twice.
    let is_dead = |line: &&str| {
        let places = ["[%r153], 1;", "[%r75], 1;", "[%r77], 1;"];
        line.contains("mbarrier.init") && places.iter().any(|place| line.contains(place))
    };
    let init = "mbarrier.init.shared::cta.b64";
    let fence = "fence.mbarrier_init.release.cluster;";
    for (name, shared_bytes, check_races) in [
        ("matmul_described", 18456, true),
        ("matmul_described_specialised", 26720, false),
    ] {
        let lines = text(&format!("{name}_sm90"));
        let kept = lines.lines().filter(|line| check_races || !is_dead(line));
        let fenced = kept.map(|line| match line.contains(init) {
            true => format!("{line} {fence}\n"),
            false => format!("{line}\n"),
        });
        let module = Module::parse(&fenced.collect::<String>());
        let module = module.unwrap_or_else(|error| panic!("{error}"));
        let entry = module.entries().next().expect("one entry a file");
        for seed in 0..4 {
            let mut memory = Memory::new();
            let x = memory.alloc_bytes(&f16_bytes(&a));
            let y = memory.alloc_bytes(&f16_bytes(&b));
            let out = memory.alloc(m * n * 2);
            let mut args = Vec::new();
            for (base, rows, columns, box_rows) in [(x, m, k, 64), (y, k, n, 32), (out, m, n, 64)] {
                let map = TensorMap {
                    element: TensorElement::F16,
                    base,
                    extents: vec![columns as u64, rows as u64],
                    strides: vec![2 * columns as u64],
                    box_extents: vec![32, box_rows],
                    element_strides: vec![1, 1],
                    swizzle: Swizzle::Bytes64,
                    fill: Fill::Zeros,
                };
                args.push(Arg::bytes(
                    &map.encode().expect("a map that hardware takes"),
                ));
                args.extend([rows, columns].map(|extent| Arg::from(extent as u32)));
                args.extend([columns as u64, 1].map(Arg::from));
            }
            args.push(Arg::from(k as u32));
            args.extend([Arg::pointer(0), Arg::pointer(0)]);
            let grid = [(m / 64) as u32, (n / 32) as u32, 1];
            let launch = Launch {
                grid,
                block: entry.reqntid.expect("Triton says so"),
                shared_bytes,
                args: &args,
                options: Options {
                    seed,
                    check_races,
                    ..Options::default()
                },
            };
            run(&module, &entry.name, &launch, &mut memory)
                .unwrap_or_else(|error| panic!("{name} {seed}: {error}"));
            assert_eq!(
                read_f16(&memory, out, m * n),
                rounded_f16(&want),
                "{name} {seed}"
            );
        }
    }
}

#[test]
fn products_of_triton_agree_with_numpy() {
    let (m, n, k) = (40, 48, 80);
    let (a, b) = (half(31, m * k), half(32, k * n));
    let want = expected("matmul");
    // Sums of f32: (K + 2) 2^-24 of the sum of absolute values, which is below 80; f16 rounds once more.
    let sums = 82.0 * 80.0 * (-24f64).exp2();
    let half = (-11f64).exp2();
    // The last two multiply by warpgroups.
    for (result, bytes, rounding, target, ctas, shared) in [
        ("fp32", 4, 0.0, 80, 4, 4096),
        ("fp16", 2, half, 80, 4, 4096),
        ("fp32", 4, 0.0, 90, 2, 8192),
        ("fp16", 2, half, 90, 2, 6144),
    ] {
        let module = module(&format!("matmul_fp16_{result}_sm{target}"));
        for seed in 0..3 {
            let mut memory = Memory::new();
            let x = memory.alloc_bytes(&f16_bytes(&a));
            let y = memory.alloc_bytes(&f16_bytes(&b));
            let out = memory.alloc(m * n * bytes);
            let mut args = [x, y, out].map(Arg::pointer).to_vec();
            args.extend([m, n, k, k, n, n].map(|x| Arg::from(x as i32)));
            args.extend([Arg::pointer(0), Arg::pointer(0)]);
            let stats = launch(&module, [ctas, 1, 1], shared, &mut memory, &args, seed);
            let got = match bytes {
                4 => read_f32(&memory, out, m * n),
                _ => read_f16(&memory, out, m * n),
            };
            close(&got, &want, rounding, sums);
            assert!(stats.shared_wavefronts > 0, "factors pass shared memory");
        }
    }
}

#[test]
fn attention_of_triton_agrees_with_numpy() {
    let (length, depth) = (64, 32);
    let blocks = [33, 34, 35].map(|seed| half(seed, length * depth));
    // For sm_90a it multiplies what `cp.async` brought, without a fence between proxies.
    for (name, ctas, shared, seed) in [
        ("attention_fp16_sm80", 2, 10240, 0),
        ("attention_fp16_sm80", 2, 10240, 1),
        ("attention_fp16_sm90", 1, 16384, 0),
        ("attention_fp16_sm90", 1, 16384, 1),
    ] {
        let module = module(name);
        let mut memory = Memory::new();
        let inputs = blocks
            .each_ref()
            .map(|block| memory.alloc_bytes(&f16_bytes(block)));
        let out = memory.alloc(length * depth * 2);
        let mut args = inputs.map(Arg::pointer).to_vec();
        args.extend([
            Arg::pointer(out),
            Arg::from(length as i32),
            Arg::from(2.0f32),
        ]);
        args.extend([Arg::pointer(0), Arg::pointer(0)]);
        launch(&module, [ctas, 1, 1], shared, &mut memory, &args, seed);
        // Weights of at most 1 and results are rounded to f16; values are below 1.
        let got = read_f16(&memory, out, length * depth);
        close(&got, &expected("attention"), 0.0, (-10f64).exp2());
    }
}

#[test]
fn a_product_written_by_hand_is_exact() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folders = ["../shared/ptx", "../../shared/ptx"].map(|folder| root.join(folder));
    let texts = folders.iter().map(|folder| folder.join("gemm_sm80.ptx"));
    let Some(text) = texts.flat_map(std::fs::read_to_string).next() else {
        eprintln!("skipped: no gemm_sm80.ptx in ../shared/ptx");
        return;
    };
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let (m, n, k) = (128, 64, 160);
    // Small integers: sums are exact in any order.
    let whole = |seed, count| -> Vec<f64> {
        let numbers = uniform(seed, count);
        numbers.iter().map(|x| (x * 4.0).round()).collect()
    };
    let (a, b) = (whole(41, m * k), whole(42, n * k));
    // D = A B^T.
    let want: Vec<f64> = (0..m * n)
        .map(|i| (0..k).map(|j| a[i / n * k + j] * b[i % n * k + j]).sum())
        .collect();
    for seed in 0..3 {
        let mut memory = Memory::new();
        let x = memory.alloc_bytes(&f16_bytes(&a));
        let y = memory.alloc_bytes(&f16_bytes(&b));
        let out = memory.alloc(m * n * 2);
        let mut args = [x, y, out].map(Arg::pointer).to_vec();
        args.extend([m, n, k].map(|x| Arg::from(x as i32)));
        let grid = [(n / 64) as u32, (m / 64) as u32, 1];
        let stats = launch(&module, grid, 24_576, &mut memory, &args, seed);
        assert_eq!(read_f16(&memory, out, m * n), rounded_f16(&want));
        assert_eq!(stats.shared_wavefronts, stats.shared_ideal_wavefronts);
    }
}
