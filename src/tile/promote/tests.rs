//! Conditions: launches for which they hold give what the kernel gave, and those for which it does not are not for maps.

use crate::interp::{self, Arg, InterpErrorKind, Launch, Memory};
use crate::ir::function::TileFunction;
use crate::ir::map_recipe::HostNumber;
use crate::ir::ops::TileOp;
use crate::pipeline::promoted;
use crate::settings::{Options, Target};
use crate::tile::testing::parse;

/// 32 columns of `a` times rows of `b`, 64 programs' worth of rows, with 32-bit arithmetic.
fn kernel() -> TileFunction {
    parse(include_str!("../../../tests/filetests/maps/pointers.tir"))
}

/// What the kernel leaves of the result with these numbers, in one program.
fn run(func: &TileFunction, numbers: [i64; 6]) -> Result<Vec<u8>, InterpErrorKind> {
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
            for &number in &after.dfg.insts[inst].args[1..] {
                assert!(
                    HostNumber::of(&after, number).is_some(),
                    "{number} of\n{after}"
                );
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
