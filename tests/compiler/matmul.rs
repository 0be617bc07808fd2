//! Products of matrices, pipelined: what the code is made of, and that shared memory is used without bank conflicts.

use std::path::Path;

use tilelift::compile::{CompiledKernel, compile};
use tilelift::emu::{Arg, Launch, Memory, Module, Options as EmuOptions, Stats, run};
use tilelift::ir::function::TileFunction;
use tilelift::settings::{Options, Target};
use tilelift::stages::{Stage, emit};
use tilelift::text::parse::parse_tile;

fn kernel(name: &str) -> TileFunction {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/run");
    let text = std::fs::read_to_string(root.join(name)).expect("the file is there");
    parse_tile(&text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn compiled(name: &str, target: Target) -> CompiledKernel {
    compile(&kernel(name), target, &Options::DEFAULT).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Runs a kernel of `matmul_*.tir` on matrices of ones; `elem` is one in bytes.
fn emulate(kernel: &CompiledKernel, grid: [u32; 3], [m, n, k]: [u32; 3], elem: &[u8]) -> Stats {
    let module = Module::parse(&kernel.ptx).unwrap_or_else(|e| panic!("{e}"));
    let mut memory = Memory::new();
    let ones = |count: u32| elem.repeat(count as usize);
    let a = memory.alloc_bytes(&ones(m * k));
    let b = memory.alloc_bytes(&ones(k * n));
    let c = memory.alloc((m * n * 4) as usize);
    let mut args = [a, b, c].map(Arg::pointer).to_vec();
    args.extend([m, n, k, k, n, n].map(|x| Arg::bytes(&x.to_le_bytes())));
    let launch = Launch {
        grid,
        block: kernel.meta.block(),
        shared_bytes: kernel.meta.shared,
        args: &args,
        options: EmuOptions::default(),
    };
    let stats = run(&module, &kernel.meta.name, &launch, &mut memory);
    let stats = stats.unwrap_or_else(|e| panic!("{e}"));
    let sum = memory.read(c, 4).expect("the first sum was stored");
    assert_eq!(sum, (k as f32).to_le_bytes(), "ones sum up to their number");
    stats
}

#[test]
fn copies_and_matrices_meet_in_no_bank() {
    let half_one = 0x3c00_u16.to_le_bytes();
    type Case<'a> = (&'a str, [u32; 3], [u32; 3], &'a [u8]);
    let ones: [Case<'_>; 4] = [
        ("matmul_f16.tir", [2, 1, 1], [128, 64, 160], &half_one),
        ("matmul_masked.tir", [1, 1, 1], [64, 32, 96], &half_one),
        (
            "matmul_bf16.tir",
            [2, 1, 1],
            [64, 128, 96],
            &0x3f80_u16.to_le_bytes(),
        ),
        (
            "matmul_tf32.tir",
            [1, 1, 1],
            [64, 64, 96],
            &1.0_f32.to_le_bytes(),
        ),
    ];
    for (name, grid, extents, elem) in ones {
        let stats = emulate(&compiled(name, Target::SM_80), grid, extents, elem);
        let (found, ideal) = (stats.shared_wavefronts, stats.shared_ideal_wavefronts);
        assert_eq!(found, ideal, "{name}");
    }
}

/// Without `ldmatrix`, words of factors are loaded 16 bytes at a time along the sums, and 8 bytes across them.
#[test]
fn quarters_are_loaded_by_runs_and_meet_in_no_bank() {
    let half_one = 0x3c00_u16.to_le_bytes();
    for (name, grid, extents) in [
        ("matmul_f16.tir", [2, 1, 1], [128, 64, 160]),
        ("matmul_masked.tir", [1, 1, 1], [64, 32, 96]),
    ] {
        let kernel = compiled(name, Target::SM_70);
        let stats = emulate(&kernel, grid, extents, &half_one);
        let (found, ideal) = (stats.shared_wavefronts, stats.shared_ideal_wavefronts);
        assert_eq!(found, ideal, "{name}");
    }
    let kernel = compiled("matmul_f16.tir", Target::SM_70);
    let count = |what: &str| kernel.ptx.matches(what).count();
    // 64x64x32 in four warps of 32x32: four steps of two by two tiles, each two instructions long.
    assert_eq!(count("mma.sync.aligned.m8n8k4.row.row.f32.f16"), 32);
    assert_eq!(count("mma.sync"), 32);
    assert_eq!(count("fma.rn"), 0);
    assert_eq!(
        (count("ld.shared.v4.b32"), count("ld.shared.v2.b32")),
        (8, 16)
    );
}

#[test]
fn an_iteration_waits_at_one_barrier() {
    let kernel = compiled("matmul_f16.tir", Target::SM_80);
    let count = |what: &str| kernel.ptx.matches(what).count();
    // 64x64x32 in four warps of 32x32: two steps of two by four tiles.
    assert_eq!(count("mma.sync.aligned.m16n8k16"), 16);
    assert_eq!(
        count("ldmatrix.sync.aligned.m8n8.x4.shared"),
        4,
        "the left factor"
    );
    assert_eq!(
        count("ldmatrix.sync.aligned.m8n8.x4.trans"),
        4,
        "the right factor"
    );
    // Two iterations before the loop and one in it, two copies of each factor.
    assert_eq!(count("cp.async.cg.shared.global"), 12);
    assert_eq!(count("cp.async.commit_group"), 3);
    // One group may be under way in the loop, none behind it.
    assert_eq!((count("wait_group 1"), count("wait_group 0")), (1, 1));
    let body = kernel.ptx.split("wait_group 1").nth(1).expect("the loop");
    let body = body.split("wait_group 0").next().expect("its end");
    assert_eq!(body.matches("bar.sync").count(), 1);
}

/// Other choices by seed give other texts that compute the same.
#[test]
fn other_choices_compute_the_same() {
    let half_one = 0x3c00_u16.to_le_bytes();
    for target in [Target::SM_70, Target::SM_80] {
        let mut texts = std::collections::BTreeSet::new();
        for seed in 0..12 {
            let options = Options {
                diversity: Some(seed),
                ..Options::DEFAULT
            };
            let compiled = || compile(&kernel("matmul_masked.tir"), target, &options);
            let first = compiled().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            assert_eq!(Ok(&first), compiled().as_ref(), "seed {seed}");
            emulate(&first, [1, 1, 1], [64, 32, 96], &half_one);
            texts.insert(first.ptx);
        }
        assert!(texts.len() > 9, "{} texts on {target}", texts.len());
    }
}

#[test]
fn the_text_does_not_depend_on_names() {
    let func = kernel("matmul_f16.tir");
    let renamed = parse_tile(&func.to_string().replace("@matmul_f16", "@other"));
    let renamed = renamed.unwrap_or_else(|errors| panic!("{errors:?}"));
    let text = |func: &TileFunction| {
        let compiled = compile(func, Target::SM_80, &Options::DEFAULT);
        let compiled = compiled.unwrap_or_else(|e| panic!("{e}"));
        compiled.ptx.replace(&compiled.meta.name, "k")
    };
    assert_eq!(text(&func), text(&renamed));
}

#[test]
fn shared_memory_can_be_seen() {
    let shown = emit(
        &kernel("matmul_f16.tir"),
        Target::SM_80,
        &Options::DEFAULT,
        Stage::Shared,
    );
    let shown = shown.unwrap_or_else(|e| panic!("{e}"));
    // Where in the program a slot is accessed changes with every pass; what it holds and where it stands does not.
    let rows: Vec<String> = shown
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
            let is_bar = |word: &str| word.chars().all(|c| matches!(c, '#' | '.'));
            let kept = words.iter().filter(|word| !is_bar(word));
            kept.copied().collect::<Vec<_>>().join(" ")
        })
        .collect();
    let [first, ring_a, ring_b] = &rows[..] else {
        panic!("{shown}");
    };
    assert_eq!(
        first,
        "2 slots; bytes, and instructions from first to last access"
    );
    // 64x32 and 32x64 elements of 2 bytes, three times.
    for (row, start, end) in [
        (ring_a, "slot0 0..12288 ", " 3 blocks of f16[64,32]"),
        (ring_b, "slot1 12288..24576 ", " 3 blocks of f16[32,64]"),
    ] {
        assert!(row.starts_with(start) && row.ends_with(end), "{shown}");
    }
}

#[test]
fn an_error_says_what_takes_shared_memory() {
    // Blocks of 128 KiB, which are not pipelined.
    let text = kernel("matmul_f16.tir").to_string();
    let larger = text
        .replace("[64,32]", "[64,1024]")
        .replace("[32,64]", "[1024,64]")
        .replace("i32[32]", "i32[1024]")
        .replace("[32,1]", "[1024,1]")
        .replace("[1,32]", "[1,1024]")
        .replace("value = 32", "value = 1024");
    let func = parse_tile(&larger).unwrap_or_else(|errors| panic!("{errors:?}"));
    let error =
        compile(&func, Target::SM_75, &Options::DEFAULT).expect_err("the rings are too large");
    let text = error.to_string();
    assert!(text.contains("sm_75 has 65536: "), "{text}");
    assert!(
        text.contains(" to exchange values between threads"),
        "{text}"
    );
    let shown = emit(&func, Target::SM_75, &Options::DEFAULT, Stage::Shared);
    assert!(
        shown.is_ok_and(|text| text.contains("slots; bytes")),
        "it can be seen all the same"
    );
}

/// ptxas looks for fewer registers than a kernel needs unless it is told that there is room for no more CTAs.
#[test]
fn the_assembler_is_told_how_many_registers_there_are_for() {
    let text = kernel("matmul_f16.tir").to_string();
    for (block, k, warps, told) in [
        // Far from any bound.
        (64, 32, 8, None),
        (64, 64, 2, Some(".maxnreg 168\n")),
        (128, 64, 4, Some(".minnctapersm 1\n")),
    ] {
        // What is 64 first, so that no 32 that becomes 64 changes twice.
        let text = text
            .replace("[64,64]", &format!("[{block},{block}]"))
            .replace("i32[64]", &format!("i32[{block}]"))
            .replace("[64,1]", &format!("[{block},1]"))
            .replace("[1,64]", &format!("[1,{block}]"))
            .replace("value = 64", &format!("value = {block}"))
            .replace("[64,32]", &format!("[{block},{k}]"))
            .replace("[32,64]", &format!("[{k},{block}]"))
            .replace("i32[32]", &format!("i32[{k}]"))
            .replace("[32,1]", &format!("[{k},1]"))
            .replace("[1,32]", &format!("[1,{k}]"))
            .replace("value = 32", &format!("value = {k}"))
            .replace("warps(4)", &format!("warps({warps})"));
        let func = parse_tile(&text).unwrap_or_else(|errors| panic!("{errors:?}"));
        let kernel = compile(&func, Target::SM_80, &Options::DEFAULT).expect("it compiles");
        let predicted = kernel.stats.machine.predicted_registers;
        let found = told.is_none_or(|told| kernel.ptx.contains(told));
        let bounded = [".maxnreg", ".minnctapersm"].map(|word| kernel.ptx.contains(word));
        assert!(found, "{block} x {block} x {k}, {warps} warps: {predicted}");
        assert_eq!(bounded.contains(&true), told.is_some(), "{predicted}");
    }
}
