//! Parallel moves: all sources are read before any destination is written.
//!
//! Moves whose destination nobody else still reads are written first; what is left are cycles, which one
//! spare register opens (the usual algorithm; each destination occurs once, so cycles are disjoint).

use super::{Move, Source};
use crate::isa::reg::RegClass;

/// Orders `moves` (destinations differ) into a sequence with the same effect. `spare` gives a register of a class
/// that nothing else uses.
pub(crate) fn sequentialize(
    moves: &mut Vec<Move>,
    mut spare: impl FnMut(RegClass) -> u32,
) -> Vec<Move> {
    moves.retain(|m| m.source != Source::Register(m.to));
    let mut sequence = Vec::with_capacity(moves.len());
    // Numbers read nothing, so they go last, when their destinations have been read.
    let mut numbers: Vec<Move> = Vec::new();
    let mut pending: Vec<Move> = Vec::new();
    for &m in moves.iter() {
        match m.source {
            Source::Register(_) => pending.push(m),
            Source::Number(_) => numbers.push(m),
        }
    }
    let reads = |m: &Move, class: RegClass, name: u32| {
        m.class == class && m.source == Source::Register(name)
    };
    // How many pending moves read each destination.
    while !pending.is_empty() {
        let before = pending.len();
        let mut i = 0;
        while i < pending.len() {
            let m = pending[i];
            if pending.iter().any(|other| reads(other, m.class, m.to)) {
                i += 1;
            } else {
                sequence.push(m);
                pending.swap_remove(i);
            }
        }
        if pending.len() == before {
            // Only cycles are left: save one destination, and let its reader read the copy.
            let class = pending[0].class;
            let to = pending[0].to;
            let saved = spare(class);
            sequence.push(Move {
                class,
                to: saved,
                source: Source::Register(to),
            });
            for other in &mut pending {
                if reads(other, class, to) {
                    other.source = Source::Register(saved);
                }
            }
        }
    }
    sequence.extend(numbers);
    sequence
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(moves: &[(u32, u32)]) {
        let mut parallel: Vec<Move> = moves
            .iter()
            .map(|&(to, from)| Move {
                class: RegClass::W,
                to,
                source: Source::Register(from),
            })
            .collect();
        let mut expected: Vec<u32> = (0..9).collect();
        for &(to, from) in moves {
            expected[to as usize] = from;
        }
        let mut found: Vec<u32> = (0..9).collect();
        for m in sequentialize(&mut parallel, |_| 8) {
            if let Source::Register(from) = m.source {
                found[m.to as usize] = found[from as usize];
            }
        }
        assert_eq!(found[..8], expected[..8], "{moves:?}");
    }

    #[test]
    fn swaps_cycles_and_fans_keep_their_values() {
        check(&[]);
        check(&[(0, 1), (1, 0)]);
        check(&[(0, 1), (1, 2), (2, 0), (3, 0), (4, 3)]);
        check(&[(0, 0), (1, 2), (2, 3)]);
        check(&[(0, 1), (1, 0), (2, 3), (3, 2), (4, 1)]);
    }

    #[test]
    fn every_map_of_four_registers() {
        for code in 0..256_u32 {
            let moves: Vec<(u32, u32)> = (0..4).map(|i| (i, code >> (2 * i) & 3)).collect();
            check(&moves);
        }
    }
}
