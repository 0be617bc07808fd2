//! Conditions: launches for which they hold give what the kernel gave, and those for which it does not are not for maps.

use crate::interp::{self, Arg, InterpErrorKind, Launch, Memory};
use crate::ir::function::TileFunction;
use crate::ir::map_recipe::HostNumbers;
use crate::ir::ops::TileOp;
use crate::pipeline::promoted;
use crate::settings::{Options, Target};
use crate::tile::testing::parse;

/// 32 columns of `a` times rows of `b`, 64 programs' worth of rows, with 32-bit arithmetic.
fn kernel() -> TileFunction {
    parse(include_str!("../../../tests/filetests/maps/pointers.tir"))
}

/// Accesses of one tensor a fixed distance apart have one map.
#[test]
fn what_stands_beside_comes_by_the_same_map() {
    let before = parse(include_str!("../../../tests/filetests/maps/beside.tir"));
    let (after, loads) = promoted(&before, Target::SM_90A, &Options::DEFAULT).expect("it compiles");
    assert_eq!(loads.len(), 5, "four loads and a store");
    assert!(loads.iter().all(|load| load.refusal.is_none()), "{loads:?}");
    assert_eq!(after.insts_with(TileOp::TensorMap).count(), 3);
    // K, and the distances of rows.
    let fits = [64, 64, 48, 32];
    assert!(run(&before, fits).is_ok());
    assert_eq!(run(&after, fits), run(&before, fits));
}

/// What the kernel leaves of the result with these numbers, in one program.
fn run<const N: usize>(func: &TileFunction, numbers: [i64; N]) -> Result<Vec<u8>, InterpErrorKind> {
    let mut memory = Memory::new();
    let halves = |count: usize| (0..count).flat_map(|i| [0, 0x3c + (i % 5) as u8]);
    let a = memory.alloc_bytes(&halves(8192).collect::<Vec<_>>());
    let b = memory.alloc_bytes(&halves(8192).collect::<Vec<_>>());
    let c = memory.alloc_bytes(&[0; 8192]);
    let mut args = vec![Arg::Ptr(a), Arg::Ptr(b), Arg::Ptr(c)];
    args.extend(numbers.map(Arg::Int));
    let launch = Launch {
        grid: [1, 1, 1],
        args: &args,
    };
    let options = interp::Options::default();
    interp::run(func, &launch, &mut memory, &options).map_err(|error| error.kind)?;
    Ok(memory.read(c, 8192).expect("it was written").to_vec())
}

#[test]
fn maps_are_for_launches_that_meet_their_conditions() {
    let before = kernel();
    let (after, loads) = promoted(&before, Target::SM_90A, &Options::DEFAULT).expect("it compiles");
    assert!(loads.iter().all(|load| load.refusal.is_none()), "{loads:?}");
    assert_eq!(loads.len(), 3, "two loads and a store");
    // M, N, K, and the distances of rows.
    let fits = [48, 32, 48, 64, 32, 32];
    assert_eq!(run(&after, fits), run(&before, fits));
    assert!(run(&before, fits).is_ok());
    // Rows of the result that end where the next one begins, in boxes that are wider.
    let narrow = [48, 16, 48, 64, 32, 16];
    assert_eq!(run(&after, narrow), run(&before, narrow));
    assert!(run(&before, narrow).is_ok());
    let is_refused = |numbers: [i64; 6]| run(&after, numbers) == Err(InterpErrorKind::NoMap);
    // A sum over nothing, whose maps would have no elements.
    assert!(is_refused([48, 32, 0, 64, 32, 32]));
    // Rows that lie behind each other backwards.
    assert!(is_refused([48, 32, 48, -64, 32, 32]));
    // The last row's distance has 32 bits: it wraps.
    assert!(is_refused([48, 32, 48, 1 << 26, 32, 32]));
    // Rows of the result that overlap: whose element would be there in the end?
    assert!(is_refused([48, 32, 48, 64, 32, 16]));
    // And the number of terms, rounded up.
    assert!(is_refused([48, 32, i64::from(i32::MAX) - 15, 64, 32, 32]));
}

/// A box of two rows, too, must not have one that reaches into the other.
#[test]
fn two_rows_that_overlap_are_no_box() {
    let text = "kernel @k(v0: ptr<f16> {divisible = 16}, v1: ptr<f16> {divisible = 16}, v2: ptr<f32> {divisible = 16}, v3: i32 {divisible = 16}) warps(4) {
        block0:
            v4 = arange {start = 0} : i32[64]
            v5 = arange {start = 0} : i32[32]
            v50 = arange {start = 0} : i32[8]
            v6 = expand_dims v4 {axis = 1} : i32[64,1]
            v7 = const {value = 32} : i32[64,1]
            v8 = imul v6, v7 : i32[64,1]
            v9 = broadcast v8 : i32[64,32]
            v10 = expand_dims v5 {axis = 0} : i32[1,32]
            v11 = broadcast v10 : i32[64,32]
            v12 = iadd v9, v11 : i32[64,32]
            v13 = splat v0 : ptr<f16>[64,32]
            v14 = addptr v13, v12 : ptr<f16>[64,32]
            v15 = load v14 : f16[64,32]
            v16 = expand_dims v5 {axis = 1} : i32[32,1]
            v17 = const {value = 8} : i32[32,1]
            v18 = imul v16, v17 : i32[32,1]
            v19 = broadcast v18 : i32[32,8]
            v51 = expand_dims v50 {axis = 0} : i32[1,8]
            v20 = broadcast v51 : i32[32,8]
            v21 = iadd v19, v20 : i32[32,8]
            v22 = splat v1 : ptr<f16>[32,8]
            v23 = addptr v22, v21 : ptr<f16>[32,8]
            v24 = load v23 : f16[32,8]
            v25 = const {value = 0.0} : f32[64,8]
            v26 = dot v15, v24, v25 {precision = ieee} : f32[64,8]
            v28 = reshape v26 : f32[2,256]
            v29 = arange {start = 0} : i32[2]
            v30 = expand_dims v29 {axis = 1} : i32[2,1]
            v32 = splat v3 : i32[2,1]
            v33 = imul v30, v32 : i32[2,1]
            v34 = broadcast v33 : i32[2,256]
            v35 = arange {start = 0} : i32[256]
            v39 = expand_dims v35 {axis = 0} : i32[1,256]
            v40 = broadcast v39 : i32[2,256]
            v41 = iadd v34, v40 : i32[2,256]
            v42 = splat v2 : ptr<f32>[2,256]
            v43 = addptr v42, v41 : ptr<f32>[2,256]
            store v43, v28
            return
        }";
    let before = parse(text);
    let (after, accesses) =
        promoted(&before, Target::SM_90A, &Options::DEFAULT).expect("it compiles");
    assert!(
        accesses.len() == 1 && accesses[0].is_by_map(),
        "{accesses:?}"
    );
    let run = |func: &TileFunction, distance: i64| {
        let mut memory = Memory::new();
        let halves: Vec<u8> = (0..2048).flat_map(|i| [0, 0x3c + (i % 5) as u8]).collect();
        let [a, b] = [4096, 512].map(|count| memory.alloc_bytes(&halves[..count]));
        let c = memory.alloc_bytes(&[0; 2048]);
        let args = [Arg::Ptr(a), Arg::Ptr(b), Arg::Ptr(c), Arg::Int(distance)];
        let launch = Launch {
            grid: [1, 1, 1],
            args: &args,
        };
        // What overlaps is of the same program.
        let options = interp::Options {
            check_races: false,
            ..interp::Options::default()
        };
        interp::run(func, &launch, &mut memory, &options).map_err(|error| error.kind)?;
        Ok(memory.read(c, 2048).expect("it was written").to_vec())
    };
    let apart = run(&before, 256);
    assert!(apart.is_ok(), "{apart:?}");
    assert_eq!(run(&after, 256), apart);
    assert_eq!(run(&after, 128), Err(InterpErrorKind::NoMap));
}

/// What the launcher needs of every map, in kernels of all kinds of indices.
#[test]
fn launchers_can_compute_what_maps_are_made_of() {
    for text in [
        include_str!("../../../tests/filetests/maps/pointers.tir"),
        include_str!("../../../tests/filetests/maps/indices.tir"),
        include_str!("../../../tests/filetests/maps/transposed.tir"),
        include_str!("../../../tests/filetests/maps/batches.tir"),
        include_str!("../../../tests/filetests/maps/unmasked.tir"),
        include_str!("../../../tests/filetests/maps/counted_down.tir"),
    ] {
        let before = parse(text);
        let made = promoted(&before, Target::SM_90A, &Options::DEFAULT);
        let (after, _) = made.expect("it compiles");
        let mut count = 0;
        for (_, inst) in after.insts_with(TileOp::TensorMap) {
            let mut numbers = HostNumbers::new(&after);
            for &number in &after.dfg.insts[inst].args[1..] {
                assert!(numbers.of(number).is_some(), "{number} of\n{after}");
            }
            count += 1;
        }
        assert_eq!(count, 3, "{after}");
    }
}

#[test]
fn other_targets_keep_pointers() {
    for target in [Target::SM_80, Target::SM_90] {
        let (_, loads) = promoted(&kernel(), target, &Options::DEFAULT).expect("it compiles");
        assert!(loads.is_empty(), "{target}");
    }
}
