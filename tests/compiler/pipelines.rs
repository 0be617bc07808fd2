//! Software pipelines of loops that are not the plain one: how much they copy ahead, and that they compute what the reference
//! interpreter does.

use crate::common::on_emu;
use crate::common::on_interp;
use crate::common::ptxas;
use std::collections::BTreeSet;

use crate::common::data::Random;
use crate::common::executor::HostArg;
use tilelift::compile::{CompiledKernel, compile};
use tilelift::front::{Lowered, Module, Specialization, parse_signature};
use tilelift::settings::{Options, Target};

/// A kernel of the file, with these words of its text replaced.
fn lowered(kernel: &str, signature: &str, stages: u8, words: &[(&str, &str)]) -> Lowered {
    let args = parse_signature(signature).expect("the signature parses");
    let mut spec = Specialization::new(args, Target::SM_80);
    spec.num_warps = 4;
    spec.num_stages = Some(stages);
    let mut text = include_str!("../data/pipelines.py").to_owned();
    for (old, new) in words {
        text = text.replace(old, new);
    }
    let module = Module::parse("kernels.py", &text).expect("the file parses");
    module
        .lower(Some(kernel), &spec)
        .unwrap_or_else(|e| panic!("{kernel}: {e}"))
}

pub(crate) fn compiled(kernel: &Lowered, target: Target) -> CompiledKernel {
    let compiled = compile(&kernel.func, target, &Options::DEFAULT).expect("it compiles");
    ptxas::assemble(&compiled.ptx, &target.to_string());
    compiled
}

/// Copies to shared memory and groups of them, in the text.
fn copies(compiled: &CompiledKernel) -> (usize, usize) {
    let lines = compiled.ptx.lines();
    let copies = lines.filter(|line| line.contains("cp.async.c") && line.contains(".shared"));
    let groups = compiled.ptx.matches("cp.async.commit_group").count();
    (copies.count(), groups)
}

/// Halves with few digits, so that their products and sums are exact.
fn halves(count: usize, random: &mut Random) -> HostArg {
    const NUMBERS: [u16; 8] = [0xc000, 0xbc00, 0xbc00, 0, 0, 0x3c00, 0x3c00, 0x4000];
    let number = |random: &mut Random| NUMBERS[(random.bits() >> 40 & 7) as usize];
    let numbers = (0..count).flat_map(|_| number(random).to_le_bytes());
    HostArg::Buffer(numbers.collect())
}

fn zeros(bytes: usize) -> HostArg {
    HostArg::Buffer(vec![0; bytes])
}

/// Runs on interpreter and emulator, the latter for a target with and one without copies; gives the results.
fn same_on_both(name: &str, kernel: &Lowered, programs: u32, args: &[HostArg]) {
    let grid = [programs, 1, 1];
    let bytes = |result: Result<Vec<HostArg>, String>| -> Vec<Vec<u8>> {
        let args = result.unwrap_or_else(|e| panic!("{name}: {e}"));
        let buffers = args.iter().filter(|a| matches!(a, HostArg::Buffer(_)));
        buffers.map(|a| a.bytes().to_vec()).collect()
    };
    let expected = bytes(on_interp::run(&kernel.func, grid, args));
    for target in [Target::SM_75, Target::SM_80] {
        let found = bytes(on_emu::run(&compiled(kernel, target), grid, args));
        assert_eq!(found, expected, "{name} on {target}");
    }
}

/// `out`, `x`, `y`, K, step, and blocks of 32 x 32 and 32 x 64.
const PRODUCT: &str = "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, 32, 64, 32";

/// Copies of a thread for the two blocks, 128 and 256 of 16 bytes.
const COPIES: usize = 1 + 2;

#[test]
fn steps_may_come_at_run_time() {
    for (name, programs) in [("step_at_run_time", 1), ("split_by_programs", 3)] {
        let kernel = lowered(name, PRODUCT, 3, &[]);
        let found = copies(&compiled(&kernel, Target::SM_80));
        assert_eq!(found, (3 * COPIES, 3), "{name}");
        let mut random = Random(5);
        for (k, step) in [(160, 32), (64, 32), (32, 32), (0, 32), (32, i32::MAX - 15)] {
            let args = [
                HostArg::Output(programs * 32 * 64 * 2),
                halves(32 * k, &mut random),
                halves(k * 64, &mut random),
                HostArg::I32(k as i32),
                HostArg::I32(step),
            ];
            same_on_both(name, &kernel, programs as u32, &args);
        }
    }
}

#[test]
fn atomic_steps_on_blocks_order_nothing() {
    let kernel = lowered("atomics_on_blocks", PRODUCT, 3, &[]);
    let found = copies(&compiled(&kernel, Target::SM_80));
    assert_eq!(found, (3 * COPIES, 3));
    let mut random = Random(6);
    let args = [
        zeros(32 * 64 * 2),
        halves(32 * 160, &mut random),
        halves(160 * 64, &mut random),
        HostArg::I32(160),
        HostArg::I32(0),
    ];
    same_on_both("atomics_on_blocks", &kernel, 1, &args);
}

/// Blocks of 64 along the summed dimension take so much shared memory that an SM holds 24 warps instead of 16 if one stage has
/// no entry of its own; of 32 its registers are short first.
#[test]
fn rings_have_an_entry_less_where_many_more_warps_fit() {
    for (block, entries) in [(32, 3), (64, 2)] {
        let signature = PRODUCT.replace("64, 32", &format!("64, {block}"));
        let kernel = lowered("split_by_programs", &signature, 3, &[]);
        let shared = compiled(&kernel, Target::SM_80).meta.shared;
        assert_eq!(shared, entries * block * (32 + 64) * 2);
        let mut random = Random(11);
        for k in [7 * block, 3 * block, block] {
            let args = [
                HostArg::Output(2 * 32 * 64 * 2),
                halves(32 * k as usize, &mut random),
                halves(k as usize * 64, &mut random),
                HostArg::I32(k as i32),
                HostArg::I32(0),
            ];
            same_on_both("split_by_programs", &kernel, 2, &args);
        }
    }
}

/// Three steps of nearly 2^31 are beyond 32 bits, and so are four of 2^30: no iteration so far ahead may seem to be there, and
/// the buffers have nothing for it.
#[test]
fn steps_may_be_so_large_that_later_iterations_are_beyond_all_counters() {
    let near = i32::MAX - 15;
    for (stages, step) in [(4, "step"), (8, "1073741824"), (4, "2147483632")] {
        let kernel = lowered("far_apart", PRODUCT, stages, &[("STEP", step)]);
        let mut random = Random(14);
        for (last, step) in [
            (32, near),
            (near, near),
            (i32::MAX, near),
            (i32::MAX, 1 << 30),
        ] {
            let args = [
                HostArg::Output(32 * 64 * 2),
                halves(32 * 64, &mut random),
                halves(64 * 64, &mut random),
                HostArg::I32(last / 16 * 16),
                HostArg::I32(step),
            ];
            same_on_both("far_apart", &kernel, 1, &args);
        }
    }
}

/// Each loop asks for 160 KiB of 163, and gets them, as the first one's are free by then.
#[test]
fn loops_share_the_room_for_their_copies() {
    let signature = "*fp32:16, *fp16:16, *fp16:16, i32:16, i32:16, 128, 128, 64";
    let kernel = lowered("two_loops", signature, 5, &[]);
    let compiled = compiled(&kernel, Target::SM_80);
    assert!(copies(&compiled).0 > 0);
    assert_eq!(compiled.stats.cut_stages, None);
    assert_eq!(compiled.meta.shared, 160 << 10);
    let mut random = Random(15);
    let args = [
        HostArg::Output(128 * 128 * 4),
        halves(128 * 192, &mut random),
        halves(192 * 128, &mut random),
        HostArg::I32(192),
        HostArg::I32(0),
    ];
    same_on_both("two_loops", &kernel, 1, &args);
}

/// Six stages of 24 KiB have room on sm_80, but not beside the 32 KiB through which a block is transposed: a stage goes.
#[test]
fn stages_leave_room_for_exchanges() {
    let signature = "*fp32:16, *fp16:16, *fp16:16, *fp32:16, *fp32:16, i32:16, 128, 64, 64";
    let kernel = lowered("both_ways", signature, 6, &[]);
    let found = compiled(&kernel, Target::SM_80);
    let cut = found.stats.cut_stages.expect("a stage is cut");
    assert_eq!((cut.asked, cut.used), (6, 5));
    assert!(copies(&found).0 > 0);
    let mut random = Random(17);
    let numbers = (0..128 * 64_u16).flat_map(|i| f32::from(i % 512).to_le_bytes());
    let args = [
        HostArg::Output(128 * 64 * 4),
        halves(128 * 192, &mut random),
        halves(192 * 64, &mut random),
        HostArg::Buffer(numbers.collect()),
        HostArg::Output(3 * 128 * 64 * 4),
        HostArg::I32(192),
    ];
    same_on_both("both_ways", &kernel, 1, &args);
}

/// A volatile load happens in its iteration and no other, once for each element that is not masked off.
#[test]
fn volatile_loads_are_not_copied_ahead() {
    let kernel = lowered("volatile_left", PRODUCT, 3, &[]);
    let compiled = compiled(&kernel, Target::SM_80);
    assert_eq!(copies(&compiled), (3 * 2, 3), "those of y");
    assert!(compiled.ptx.contains("ld.volatile.global"));
    let mut random = Random(16);
    for rows in [32, 16, 0] {
        let args = [
            HostArg::Output(32 * 64 * 2),
            // Masked rows are not there.
            halves(rows * 96, &mut random),
            halves(96 * 64, &mut random),
            HostArg::I32(96),
            HostArg::I32(rows as i32),
        ];
        same_on_both("volatile_left", &kernel, 1, &args);
    }
}

/// What a scalar step acquires or releases must not move across it. Copies of an iteration's own operands end before the step that
/// releases behind the product.
#[test]
fn atomic_steps_on_scalars_do_unless_they_are_relaxed() {
    for (sem, expected) in [
        ("relaxed", (3 * COPIES, 3)),
        ("acquire", (0, 0)),
        ("release", (COPIES, 2)),
        ("acq_rel", (0, 0)),
    ] {
        let kernel = lowered("tickets", PRODUCT, 3, &[("SEM", &format!("\"{sem}\""))]);
        let found = copies(&compiled(&kernel, Target::SM_80));
        assert_eq!(found, expected, "{sem}");
        let mut random = Random(7);
        let args = [
            zeros(16 + 32 * 64 * 2),
            halves(32 * 96, &mut random),
            halves(96 * 64, &mut random),
            HostArg::I32(96),
            HostArg::I32(0),
        ];
        same_on_both(sem, &kernel, 1, &args);
    }
}

/// Columns of `y` are masked on their left by a number of which nothing is known, so it is loaded one element at a time.
#[test]
fn one_load_that_cannot_be_copied_leaves_the_others_copied() {
    let signature = PRODUCT.replace("i32:16, 32", "i32, 32");
    let left_edge = [("columns < step", "columns >= step")];
    let kernel = lowered("columns_masked", &signature, 3, &left_edge);
    let found = copies(&compiled(&kernel, Target::SM_80));
    assert_eq!(found, (3, 3), "those of x");
    let mut random = Random(8);
    for (k, columns) in [(160, 64), (96, 23), (32, 1), (0, 0)] {
        let args = [
            HostArg::Output(32 * 64 * 2),
            halves(32 * k, &mut random),
            halves(k * 64, &mut random),
            HostArg::I32(k as i32),
            HostArg::I32(columns),
        ];
        same_on_both("columns_masked", &kernel, 1, &args);
    }
}

/// Sizes of copies in the text, and whether the kernel computes how much of them is read.
fn sizes_of_copies(compiled: &CompiledKernel) -> (Vec<u32>, bool) {
    let lines = compiled.ptx.lines();
    let copies = lines.filter(|line| line.contains("cp.async.c") && line.contains(".shared"));
    let sizes = copies.map(|line| {
        let numbers = line.rsplit("], ").next().unwrap_or(line);
        let size = numbers.split([',', ';']).next().unwrap_or(numbers);
        size.parse().expect("the size stands behind the addresses")
    });
    // The least of what is left and of the copy's elements; shifts have their amounts bounded by 64.
    let mut lines = compiled.ptx.lines();
    let is_computed = lines.any(|line| line.contains("min.u") && !line.ends_with(", 64;"));
    (sizes.collect(), is_computed)
}

/// Rows of halves: what is behind `columns` is not a number, and behind the last row is no memory.
fn rows_with_an_end(rows: usize, columns: usize, width: usize, random: &mut Random) -> HostArg {
    const NAN: [u8; 2] = 0x7e00_u16.to_le_bytes();
    let HostArg::Buffer(mut bytes) = halves(rows * width, random) else {
        unreachable!("halves are a buffer")
    };
    for (at, half) in bytes.chunks_mut(2).enumerate() {
        if at % width >= columns {
            half.copy_from_slice(&NAN);
        }
    }
    bytes.truncate(2 * ((rows - 1) * width + columns));
    HostArg::Buffer(bytes)
}

const HALVES: [(&str, &str); 2] = [("SUM", "tl.float32"), ("OTHER", "0")];

/// A row may end anywhere: what is copied at its end is read up to there, and zeros behind it. That holds however the
/// comparison is written, and beside masks along the other dimension and of the whole block. Another number than zero is chosen
/// behind the copy.
#[test]
fn copies_end_with_their_rows() {
    let ends = [
        "(k < K - i)[None, :]",
        "(i + k < K)[None, :]",
        "(K - i > k)[None, :]",
        "(k + i <= K - 1)[None, :]",
        "(K - 1 >= i + k)[None, :]",
        "((i + k).to(tl.int64) < K)[None, :]",
        "((i + k).to(tl.uint32) < K.to(tl.uint32))[None, :]",
        "(rows < M - 3)[:, None] & (k[None, :] < K - i)",
        "(k < K - i)[None, :] & ((i + k)[None, :] < width - 1)",
        "(k < K - i).reshape(1, S) & (i < K - 2)",
        "tl.trans((k < K - i)[:, None])",
        "(k < K - i)[None, :] & ((i + k) >= 0)[None, :]",
        "(at < K)[None, :]",
    ];
    let with_zeros = ends.map(|inside| (inside, "0"));
    for (inside, other) in with_zeros.into_iter().chain([(ends[0], "1")]) {
        let words = [("SUM", "tl.float32"), ("OTHER", other), ("INSIDE", inside)];
        let signature = PRODUCT.replace("i32:16, i32:16", "i32, i32:16");
        let kernel = lowered("ends", &signature, 3, &words);
        let compiled = compiled(&kernel, Target::SM_80);
        let found = sizes_of_copies(&compiled);
        let expected = (vec![16; 3 * COPIES], true);
        assert_eq!(found, expected, "{inside}, {other}\n{}", compiled.ptx);
        let mut random = Random(12);
        let lengths: &[usize] = match inside {
            "(k < K - i)[None, :]" => &[0, 1, 7, 31, 32, 33, 64, 90],
            _ => &[5, 85],
        };
        for &k in lengths {
            let args = [
                HostArg::Output(32 * 64 * 2),
                rows_with_an_end(32, k.max(1), 112, &mut random),
                halves(k.max(1) * 64, &mut random),
                HostArg::I32(k as i32),
                HostArg::I32(112),
            ];
            same_on_both(inside, &kernel, 1, &args);
        }
    }
}

/// A mask that is not true up to an end, and one that memory gives: what is masked so is no copy of 16 bytes.
#[test]
fn other_masks_do_not_end_copies() {
    for inside in [
        "(k >= K - i)[None, :]",
        "((k ^ 1) < K - i)[None, :]",
        "(S - 1 - k < K - i)[None, :]",
        "(2 * k < K - i)[None, :]",
        "((k < K - i) | (k == 5))[None, :]",
        "(k < K - i)[None, :] & (k != 3)[None, :]",
        "(tl.load(y + k) < 1)[None, :] & (k < K - i)[None, :]",
    ] {
        let words = [&HALVES[..], &[("INSIDE", inside)]].concat();
        let signature = PRODUCT.replace("i32:16, i32:16", "i32, i32:16");
        let kernel = lowered("ends", &signature, 3, &words);
        let compiled = compiled(&kernel, Target::SM_80);
        let found = sizes_of_copies(&compiled);
        let expected = (vec![16; 3 * 2], false);
        assert_eq!(found, expected, "those of y: {inside}");
        let mut random = Random(13);
        for k in [33, 90] {
            let args = [
                HostArg::Output(32 * 64 * 2),
                halves(32 * 112, &mut random),
                halves(128 * 64, &mut random),
                HostArg::I32(k),
                HostArg::I32(112),
            ];
            same_on_both(inside, &kernel, 1, &args);
        }
    }
}

/// Rows whose address is no multiple of 16 bytes are not copied, wherever they end.
#[test]
fn the_start_of_a_copy_is_aligned() {
    let words = [&HALVES[..], &[("INSIDE", "(k < K - i)[None, :]")]].concat();
    let signature = PRODUCT.replace("i32:16, i32:16", "i32, i32");
    let kernel = lowered("ends", &signature, 3, &words);
    let found = sizes_of_copies(&compiled(&kernel, Target::SM_80));
    assert_eq!(found, (vec![16; 3 * 2], false), "those of y");
    let mut random = Random(14);
    for k in [5, 33] {
        let args = [
            HostArg::Output(32 * 64 * 2),
            rows_with_an_end(32, k, 41, &mut random),
            halves(k * 64, &mut random),
            HostArg::I32(k as i32),
            HostArg::I32(41),
        ];
        same_on_both("an odd width", &kernel, 1, &args);
    }
}

/// Sixteen bytes of one each: a copy reads any number of them.
#[test]
fn copies_of_bytes_end_anywhere() {
    let words = [
        ("SUM", "tl.int32"),
        ("OTHER", "0"),
        ("INSIDE", "(k < K - i)[None, :]"),
    ];
    let signature = "*i32:16, *i8:16, *i8:16, i32, i32:16, 32, 64, 64";
    let kernel = lowered("ends", signature, 3, &words);
    let found = sizes_of_copies(&compiled(&kernel, Target::SM_80));
    assert_eq!(found, (vec![16; 3 * (1 + 2)], true));
    let mut random = Random(15);
    for k in [1, 13, 63, 64, 65, 78] {
        let mut bytes =
            |count: usize| -> Vec<u8> { (0..count).map(|_| (random.bits() >> 32) as u8).collect() };
        let (x, y) = (bytes(31 * 80 + k), bytes(k * 64));
        let args = [
            HostArg::Output(32 * 64 * 4),
            HostArg::Buffer(x),
            HostArg::Buffer(y),
            HostArg::I32(k as i32),
            HostArg::I32(80),
        ];
        same_on_both("bytes", &kernel, 1, &args);
    }
}

/// Descriptors are copied ahead whatever their extents are; where these are known to be multiples of 16, whole.
#[test]
fn descriptors_are_copied_ahead() {
    for promise in ["i32", "i32:16"] {
        let signature = PRODUCT.replace("i32:16, i32:16", &format!("{promise}, i32:16"));
        let kernel = lowered("described", &signature, 3, &[]);
        let found = sizes_of_copies(&compiled(&kernel, Target::SM_80));
        // 59 columns of `y` end inside of a copy.
        assert_eq!(found, (vec![16; 3 * COPIES], true), "{promise}");
        let mut random = Random(16);
        for k in [0, 1, 16, 31, 33, 64, 90] {
            if promise == "i32:16" && k % 16 != 0 {
                continue;
            }
            let args = [
                HostArg::Output(32 * 64 * 2),
                rows_with_an_end(29, k.max(1), 96, &mut random),
                rows_with_an_end(k.max(1), 59, 64, &mut random),
                HostArg::I32(k as i32),
                HostArg::I32(96),
            ];
            same_on_both("described", &kernel, 1, &args);
        }
    }
}

#[test]
fn descriptors_of_the_host_are_copied_ahead() {
    for (sizes, partial) in [
        (["32", "64"], true),
        (["32:16", "64"], true),
        (["32:16", "64:16"], false),
    ] {
        let [inner, outer] = sizes;
        let signature = format!(
            "tensordesc<fp16[32, {inner}]>, tensordesc<fp16[32, {outer}]>, tensordesc<fp16[32, 64]>, i32, 32, 64, 32"
        );
        let kernel = lowered("described_by_host", &signature, 3, &[]);
        for target in [Target::SM_80, Target::SM_86, Target::SM_89, Target::SM_90] {
            let found = sizes_of_copies(&compiled(&kernel, target));
            assert_eq!(
                found,
                (vec![16; 3 * COPIES], partial),
                "{signature} {target}"
            );
        }
    }
}

/// Which tile comes is decided under a condition, and it is stored under another one.
#[test]
fn choices_run_ahead() {
    let kernel = lowered(
        "flattened",
        PRODUCT.replace("i32:16, 32", "i32, 32").as_str(),
        3,
        &[],
    );
    let found = copies(&compiled(&kernel, Target::SM_80));
    assert_eq!(found, (3 * COPIES, 3));
    let mut random = Random(9);
    for (k, tiles) in [(96, 3), (32, 4), (64, 1), (64, 0)] {
        let args = [
            HostArg::Output(tiles * 32 * 64 * 2),
            halves(tiles * 32 * k, &mut random),
            halves(k * 64, &mut random),
            HostArg::I32(k as i32),
            HostArg::I32(tiles as i32),
        ];
        same_on_both("flattened", &kernel, 1, &args);
    }
}

/// What a table's entry is the address of is copied ahead, and the entry loaded one iteration before. An entry that only the
/// one before leads to is not.
#[test]
fn tables_are_read_further_ahead() {
    const TABLE: &str = "*fp16:16, *fp16:16, *fp16:16, *i32:16, i32:16, 32, 64, 32";
    for (name, copied) in [("pages", COPIES), ("rows_of_table", COPIES), ("chased", 1)] {
        let kernel = lowered(name, TABLE, 3, &[]);
        let found = copies(&compiled(&kernel, Target::SM_80));
        assert_eq!(found, (3 * copied, 3), "{name}");
        let mut random = Random(10);
        for k in [160, 96, 64, 32] {
            let number = |random: &mut Random| match name {
                "rows_of_table" => random.bits() as u32 % k,
                _ => random.bits() as u32 % (k / 32),
            };
            let entries = if name == "rows_of_table" { k } else { k / 32 };
            let table = (0..entries).flat_map(|_| number(&mut random).to_le_bytes());
            let table = HostArg::Buffer(table.collect());
            let args = [
                HostArg::Output(32 * 64 * 2),
                halves(32 * k as usize, &mut random),
                halves(k as usize * 64, &mut random),
                table,
                HostArg::I32(k as i32),
            ];
            same_on_both(name, &kernel, 1, &args);
        }
    }
}

/// The body of the loop that multiplies matrices.
fn product_loop(ptx: &str) -> &str {
    let labels = ptx.match_indices("\n$").map(|(at, _)| &ptx[at + 1..]);
    let loops = labels.filter_map(|text| {
        let (label, body) = text.split_once(':')?;
        let end = body.find(&format!("bra {label};"))?;
        Some(&body[..end]).filter(|body| body.contains("mma.sync"))
    });
    loops
        .min_by_key(|body| body.len())
        .expect("there is a loop")
}

/// Rows of softmax stay in their warps, and so do the weights that the second product takes, also where the least operands
/// would be read by warps side by side.
#[test]
fn rows_of_attention_stay_in_their_warps() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/kernels/attention.py");
    let text = std::fs::read_to_string(path).expect("the examples are there");
    let module = Module::parse(path, &text).expect("the file parses");
    for (blocks, warps) in [("128, 64, 128", 8), ("64, 64, 64", 4), ("128, 64, 64", 4)] {
        let signature = format!(
            "*fp16:16, *fp32:16, *fp16:16, *fp16:16, *fp16:16, i32:16, fp32, {blocks}, False"
        );
        let args = parse_signature(&signature).expect("the signature parses");
        let mut spec = Specialization::new(args, Target::SM_80);
        spec.num_warps = warps;
        spec.num_stages = Some(3);
        let kernel = module.lower(Some("forward"), &spec).expect("it is right");
        let kernel = compiled(&kernel, Target::SM_80);
        let body = product_loop(&kernel.ptx);
        let found = ["bar.sync", "st.shared", "ld.shared"].map(|op| body.matches(op).count());
        assert_eq!(found, [1, 0, 0], "{blocks} {warps}");
    }
}

/// The register that an instruction's line writes first, and the others of its list.
fn written(line: &str) -> impl Iterator<Item = &str> {
    let operands = line.trim().split_once(' ').map_or("", |(_, rest)| rest);
    let first = match operands.strip_prefix('{') {
        Some(list) => list.split('}').next(),
        None => operands.split([',', ';']).next(),
    };
    first.into_iter().flat_map(|list| list.split(", "))
}

/// ptxas goes by names: it serialises products of four warps whose sums share theirs with other values. [`compiled`] fails where
/// it says so.
#[test]
fn sums_of_warpgroups_share_their_names_with_nothing() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/kernels/attention.py");
    let text = std::fs::read_to_string(path).expect("the examples are there");
    let module = Module::parse(path, &text).expect("the file parses");
    let types = |halves: usize, floats: usize| {
        let halves = ["*fp16:16"].repeat(halves);
        [halves, ["*fp32:16"].repeat(floats)].concat().join(", ")
    };
    let forward = ("forward", format!("*fp16:16, *fp32:16, {}", types(3, 0)));
    let keys = ("backward_keys", types(6, 2));
    let rows = ("backward_rows", types(5, 2));
    let all = ("backward", [types(2, 1), types(4, 2)].join(", "));
    // Rows, columns and depth of blocks, whether causal, warps and stages.
    for ((name, pointers), constants, warps, stages) in [
        (&forward, "64, 64, 128, False", 4, 2),
        (&forward, "128, 64, 64, True", 4, 3),
        (&forward, "128, 64, 64, True", 8, 3),
        (&forward, "128, 32, 128, True", 4, 3),
        (&forward, "128, 64, 128, True", 8, 2),
        (&keys, "32, 64, 64, False", 4, 3),
        (&keys, "32, 64, 128, False", 4, 2),
        (&keys, "64, 128, 64, False", 8, 2),
        (&keys, "64, 128, 128, True", 8, 2),
        (&keys, "16, 128, 128, True", 8, 2),
        (&all, "64, 128, 128, False", 8, 2),
        (&all, "64, 128, 128, True", 8, 2),
        (&all, "64, 64, 64, False", 4, 2),
        (&rows, "64, 32, 64, False", 4, 3),
        (&rows, "128, 32, 64, False", 4, 3),
        (&rows, "128, 64, 64, True", 8, 3),
        (&rows, "64, 64, 128, True", 4, 2),
        (&rows, "128, 32, 128, True", 8, 2),
    ] {
        let what = format!("{name} {constants} {warps} {stages}");
        let signature = format!("{pointers}, i32, fp32, {constants}");
        let args = parse_signature(&signature).expect("the signature parses");
        let mut spec = Specialization::new(args, Target::SM_90A);
        spec.num_warps = warps;
        spec.num_stages = Some(stages);
        let kernel = module.lower(Some(name), &spec).expect("it is right");
        let kernel = compiled(&kernel, Target::SM_90A);
        let (products, others): (Vec<&str>, Vec<&str>) = kernel
            .ptx
            .lines()
            .partition(|line| line.contains("wgmma.mma_async"));
        // Of a product that does not add: nothing comes into its sum from elsewhere.
        let from_zero = products.iter().filter(|line| line.contains(", 0, 1, 1, "));
        let sums: BTreeSet<&str> = from_zero.flat_map(|line| written(line)).collect();
        assert!(sums.len() >= 16, "{what}: {sums:?}");
        let shared = others
            .iter()
            .find(|line| written(line).any(|register| sums.contains(register)));
        assert_eq!(shared, None, "{what}");
    }
}

/// A chunk that warpgroups read where it stands, and that threads scale on its way to another product: they take whole pieces of its rows.
#[test]
fn what_units_read_in_place_is_loaded_by_rows() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/kernels/recurrent.py");
    let text = std::fs::read_to_string(path).expect("the examples are there");
    let module = Module::parse(path, &text).expect("the file parses");
    for (name, blocks, warps) in [
        ("retention", "64, 64", 4),
        ("gated", "64, 64", 4),
        ("retention", "128, 128", 8),
    ] {
        let pointers = ["*fp16:16"; 4].join(", ");
        let signature = format!("{pointers}, *fp32:16, i32:16, 128, 128, {blocks}");
        let args = parse_signature(&signature).expect("the signature parses");
        let mut spec = Specialization::new(args, Target::SM_90A);
        (spec.num_warps, spec.num_stages) = (warps, Some(2));
        let kernel = module.lower(Some(name), &spec).expect("it is right");
        let kernel = compiled(&kernel, Target::SM_90A);
        let single = ["ld.shared.b16", "st.shared.b16"].map(|op| kernel.ptx.matches(op).count());
        let what = format!("{name} {blocks}");
        assert_eq!(single, [0, 0], "{what}");
        assert!(kernel.ptx.contains("wgmma.mma_async"), "{what}");
    }
}

/// Rows of numbers that a loop's products need come with the matrices, also in two loops, whose loads share maps.
#[test]
fn small_boxes_come_beside_large_ones() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/kernels/attention.py");
    let text = std::fs::read_to_string(path).expect("the examples are there");
    let module = Module::parse(path, &text).expect("the file parses");
    for causal in ["False", "True"] {
        let pointers = [["*fp16:16"; 6].join(", "), ["*fp32:16"; 2].join(", ")].join(", ");
        let signature = format!("{pointers}, i32:16, fp32, 64, 128, 128, {causal}");
        let args = parse_signature(&signature).expect("the signature parses");
        let mut spec = Specialization::new(args, Target::SM_90A);
        (spec.num_warps, spec.num_stages) = (8, Some(2));
        let kernel = module.lower(Some("backward_keys"), &spec);
        let kernel = compiled(&kernel.expect("it is right"), Target::SM_90A);
        let first = kernel.ptx.find("wgmma.mma_async");
        let last = kernel.ptx.rfind("wgmma.mma_async");
        let (first, last) = first.zip(last).expect("four warps multiply");
        let between = &kernel.ptx[first..last];
        assert!(!between.contains("ld.global"), "{causal}");
    }
}

/// A kernel of a text for sm_90a, with so many warps and stages.
pub(crate) fn on_hopper(
    (path, text): (&str, &str),
    name: &str,
    signature: &str,
    (num_warps, stages): (u32, u8),
) -> String {
    let module = Module::parse(path, text).expect("the file parses");
    let args = parse_signature(signature).expect("the signature parses");
    let mut spec = Specialization::new(args, Target::SM_90A);
    (spec.num_warps, spec.num_stages) = (num_warps, Some(stages));
    let kernel = module.lower(Some(name), &spec);
    let ptx = compiled(&kernel.expect("it is right"), Target::SM_90A).ptx;
    assert!(ptx.contains("wgmma.mma_async"), "warpgroups multiply");
    ptx
}

/// Weights that are computed stay in registers where these hold them beside the sums.
#[test]
fn computed_operands_are_in_registers_if_there_are_enough() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/kernels/weights.py");
    let text = std::fs::read_to_string(path).expect("the examples are there");
    for (blocks, expected) in [
        ("64, 128, 64", true),
        ("64, 256, 64", true),
        ("64, 256, 128", false),
    ] {
        let signature = format!(
            "*fp16:16, *fp32:16, *i32:16, *fp16:16, *i8:16, *fp16:16, i32:16, i32:16, i32:16, i32:16, i32:1, {blocks}, 8, 1"
        );
        let ptx = on_hopper((path, &text), "byte_weights", &signature, (4, 2));
        let mut products = ptx.lines().filter(|line| line.contains("wgmma.mma_async"));
        assert!(
            products.all(|line| line.contains("}, {") == expected),
            "{blocks}"
        );
    }
}

/// Boxes of 1 KB and of rows of scales have no large one beside them where threads bring the weights, as these begin where no box does. With
/// a large one they come by boxes, too, scales that only meet sums among them.
#[test]
fn small_boxes_do_not_come_alone() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/kernels/packed.py");
    let text = std::fs::read_to_string(path).expect("the examples are there");
    for (weights, boxes) in [("*u16:8", 0), ("*u16:16", 3)] {
        let signature = format!(
            "*fp16:16, *fp32:16, *i32:16, *fp16:16, {weights}, *i64:16, i32:16, i32:16, i32:16, 64, 16, 128, 4"
        );
        let ptx = on_hopper((path, &text), "int4_matmul", &signature, (4, 3));
        let maps = ptx.matches(".b8 int4_matmul_map_").count();
        assert_eq!(maps, boxes, "weights {weights}");
        let loads = ptx
            .lines()
            .filter(|line| line.contains("ld.global.b16") || line.contains("ld.global.u16"));
        assert_eq!(loads.count(), 0, "weights {weights}");
    }
}

#[test]
fn stages_that_shared_memory_has_no_room_for_are_counted() {
    let stages_of = |asked: u8| {
        let signature = "*fp32:16, *fp16:16, *fp16:16, i32:16, i32:16, 128, 128, 64";
        let kernel = lowered("step_at_run_time", signature, asked, &[]);
        let cut = compiled(&kernel, Target::SM_80).stats.cut_stages;
        cut.map(|cut| (cut.asked, cut.used))
    };
    // Each takes 32 KiB of 163.
    assert_eq!(stages_of(5), None);
    assert_eq!(stages_of(7), Some((7, 5)));
}
