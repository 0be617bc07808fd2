//! Generated products of matrices whose loads and stores become those of tensor maps, written for a machine with a GPU that has no
//! Rust: each kernel with maps and without.
//!
//! The launches of the target `promotion` that interpreter and emulator agree on go to the folder that `TILELIFT_LAUNCHES` names
//! ([`crate::launches`]); `TILELIFT_FUZZ_KERNELS` says how many seeds are tried. Sums are of small whole numbers, so every byte must
//! be the same. Where there is ptxas, it serialises no product of a kernel that was chosen by cost.

use tilelift::fuzzing::promotion::{Argument, Both, both};

use crate::launches::{Folder, Given, Launched};
use crate::ptxas::assembler;
use crate::seeds;

/// Seeds that are tried if nobody says how many.
const KERNELS: u64 = 1000;
/// The same if nobody names a folder.
const FEW: u64 = 12;

/// Both kernels of a seed; how many were written.
fn write(folder: &Folder, seed: u64) -> usize {
    let Some(Both {
        mapped,
        bounded,
        plain,
        is_by_cost,
        grid,
        args,
        after,
    }) = both(seed)
    else {
        return 0;
    };
    if is_by_cost {
        for kernel in [&mapped, &plain] {
            assembler::assemble(&kernel.ptx, "sm_90a");
        }
    }
    let given = args.iter().map(|arg| match arg {
        Argument::Pointer { bytes, at } => Given::Buffer(bytes, *at),
        Argument::Number { value, bytes } => {
            Given::Number(u64::from(*value as u32) & (u64::MAX >> (64 - 8 * bytes)))
        }
    });
    let args: Vec<Given<'_>> = given.collect();
    let ways = [(0, &mapped), (1, &plain)];
    for (way, kernel) in ways {
        let launched = Launched {
            kernel,
            bounded: (way == 0).then_some(&bounded),
            grid,
            args: args.clone(),
            after: after.iter().map(Vec::as_slice).collect(),
            close: None,
        };
        launched.write(&folder.path, &format!("k{}", 2 * seed + way));
    }
    ways.len()
}

#[test]
fn promoted_kernels() {
    let folder = Folder::new("promoted-kernels");
    let count = if folder.is_wanted { KERNELS } else { FEW };
    let written = seeds(count).map(|seed| write(&folder, seed)).sum();
    println!("{written} kernels, half of them with tensor maps");
    folder.check(written);
}
