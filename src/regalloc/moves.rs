//! Parallel moves: all sources are read before any destination is written.
//!
//! Moves whose destination nobody else still reads are written first; what is left are cycles, which one
//! spare register opens (the usual algorithm; each destination occurs once, so cycles are disjoint).

use super::{Move, MoveSource};
use crate::regalloc::reg::RegClass;

/// Orders `moves` (destinations differ) into a sequence with the same effect. `spare` gives a register of a class
/// that nothing else uses.
pub(crate) fn sequentialize(moves: &[Move], mut spare: impl FnMut(RegClass) -> u32) -> Vec<Move> {
    let mut sequence = Vec::with_capacity(moves.len());
    // Numbers read nothing, so they go last, when their destinations have been read.
    let mut numbers: Vec<Move> = Vec::new();
    // Class, destination and source of the others.
    let mut pending: Vec<(RegClass, u32, u32)> = Vec::new();
    let mut readers = Readers::default();
    for &m in moves.iter() {
        match m.source {
            MoveSource::Register(from) if from == m.to => {}
            MoveSource::Register(from) => {
                pending.push((m.class, m.to, from));
                *readers.of(m.class, from) += 1;
            }
            MoveSource::Number(_) => numbers.push(m),
        }
    }
    let copy = |class, to, from| Move {
        class,
        to,
        source: MoveSource::Register(from),
    };
    while let Some(&(class, to, _)) = pending.first() {
        let before = pending.len();
        let mut i = 0;
        while let Some(&(class, to, from)) = pending.get(i) {
            if *readers.of(class, to) > 0 {
                i += 1;
            } else {
                sequence.push(copy(class, to, from));
                *readers.of(class, from) -= 1;
                pending.swap_remove(i);
            }
        }
        if pending.len() == before {
            // Only cycles are left: save one destination, and let its reader read the copy.
            let saved = spare(class);
            sequence.push(copy(class, saved, to));
            for other in &mut pending {
                if other.0 == class && other.2 == to {
                    other.2 = saved;
                    *readers.of(class, saved) += 1;
                }
            }
            *readers.of(class, to) = 0;
        }
    }
    sequence.extend(numbers);
    sequence
}

/// How many pending moves read each register.
#[derive(Default)]
struct Readers([Vec<u32>; 4]);

impl Readers {
    fn of(&mut self, class: RegClass, name: u32) -> &mut u32 {
        let counts = &mut self.0[class.index()];
        let name = name as usize;
        if counts.len() <= name {
            counts.resize(name + 1, 0);
        }
        &mut counts[name]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(moves: &[(u32, u32)]) {
        let parallel: Vec<Move> = moves
            .iter()
            .map(|&(to, from)| Move {
                class: RegClass::W,
                to,
                source: MoveSource::Register(from),
            })
            .collect();
        let mut expected: Vec<u32> = (0..9).collect();
        for &(to, from) in moves {
            expected[to as usize] = from;
        }
        let mut found: Vec<u32> = (0..9).collect();
        for m in sequentialize(&parallel, |_| 8) {
            if let MoveSource::Register(from) = m.source {
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
