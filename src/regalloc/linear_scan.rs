//! Linear scan: bundles get adjacent names, which are used again when a bundle has died.
//!
//! Names cost nothing in PTX, where registers are virtual; using them again makes the assembler's work smaller. So a
//! bundle keeps its names from its first to its last place, holes included, and gets the first row of free ones; by other
//! choices the first from anywhere on.
//!
//! What changes in flight shares its names with nothing else, before or after. ptxas looks at a name, not at a value: it takes
//! whatever stood there for a part of the product's pipeline, and serialises products as it finds no registers for them (C7511),
//! sees others write them (C7515) or waits in their midst (C7517).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use cranelift_entity::EntitySet;

use super::AllocFunction;
use super::bundles::Bundles;
use super::live::Liveness;
use crate::regalloc::reg::{Group, Unit};
use crate::settings::diversity::Choices;

/// Free names of a class: a bit each, set where taken; beyond the end everything is free.
#[derive(Default)]
struct Names {
    taken: Vec<u64>,
}

impl Names {
    /// Takes the first `count` adjacent free names from one on.
    fn take(&mut self, from: u32, count: u32) -> u32 {
        let mut first = from;
        let mut len = 0;
        let mut name = from;
        while len < count {
            let word = self.taken.get((name / 64) as usize).copied().unwrap_or(0);
            if word == u64::MAX && name.is_multiple_of(64) {
                name += 64;
                (first, len) = (name, 0);
                continue;
            }
            name += 1;
            if word >> ((name - 1) % 64) & 1 == 0 {
                len += 1;
            } else {
                (first, len) = (name, 0);
            }
        }
        for name in first..first + count {
            let word = (name / 64) as usize;
            if self.taken.len() <= word {
                self.taken.resize(word + 1, 0);
            }
            self.taken[word] |= 1 << (name % 64);
        }
        first
    }

    fn give_back(&mut self, first: u32, count: u32) {
        for name in first..first + count {
            self.taken[(name / 64) as usize] &= !(1 << (name % 64));
        }
    }
}

/// A bundle as the scan sees it.
#[derive(Clone, Copy)]
struct Interval {
    start: u32,
    end: u32,
    /// Smallest offset of a group, and one past the largest.
    low: i32,
    high: i32,
    class: usize,
}

/// The number of each unit's name within its class, and how many names each class has.
pub(crate) fn assign_names(
    program: &impl AllocFunction,
    live: &Liveness,
    bundles: &Bundles,
    choices: &mut Choices,
) -> (Vec<u32>, [u32; 4]) {
    let regs = program.regs();
    let mut intervals: Vec<Option<Interval>> = vec![None; bundles.len()];
    for (group, data) in &regs.groups {
        let (Some(first), Some(last)) = (live.ranges(group).first(), live.ranges(group).last())
        else {
            continue;
        };
        let (bundle, offset) = bundles.place(group);
        let end = last.end.max(live.keep_until[group.as_u32() as usize]);
        let high = offset + i32::from(data.count);
        let interval = intervals[bundle as usize].get_or_insert(Interval {
            start: first.start,
            end,
            low: offset,
            high,
            class: data.class.index(),
        });
        interval.start = interval.start.min(first.start);
        interval.end = interval.end.max(end);
        interval.low = interval.low.min(offset);
        interval.high = interval.high.max(high);
    }
    let mut order: Vec<(u32, u32)> = (0..)
        .zip(&intervals)
        .filter_map(|(bundle, interval)| interval.map(|i| (i.start, bundle)))
        .collect();
    order.sort_unstable();
    let mut alone = EntitySet::new();
    program.in_flight(|unit| {
        let (bundle, _) = bundles.place(regs.group_of(unit));
        alone.insert(Group::from_u32(bundle));
    });
    let mut names: [Names; 4] = Default::default();
    let mut active: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
    let mut base: Vec<u32> = vec![0; bundles.len()];
    let mut n_names = [0; 4];
    for (start, bundle) in order {
        let at = |bundle: u32| intervals[bundle as usize];
        while let Some(&Reverse((end, done))) = active.peek()
            && end <= start
        {
            active.pop();
            if alone.contains(Group::from_u32(done)) {
                continue;
            }
            if let Some(i) = at(done) {
                names[i.class].give_back(base[done as usize], (i.high - i.low) as u32);
            }
        }
        let Some(interval) = at(bundle) else {
            continue;
        };
        let count = (interval.high - interval.low) as u32;
        let from = match alone.contains(Group::from_u32(bundle)) {
            true => n_names[interval.class],
            false => choices.below(n_names[interval.class] as usize + 4) as u32,
        };
        let first = names[interval.class].take(from, count);
        base[bundle as usize] = first;
        n_names[interval.class] = n_names[interval.class].max(first + count);
        active.push(Reverse((interval.end, bundle)));
    }
    let mut unit_names = vec![0; regs.num_units()];
    for (group, data) in &regs.groups {
        let (bundle, offset) = bundles.place(group);
        let Some(interval) = intervals[bundle as usize] else {
            continue;
        };
        let first = base[bundle as usize] + (offset - interval.low).max(0) as u32;
        for i in 0..u32::from(data.count) {
            let unit = Unit::from_u32(data.first.as_u32() + i);
            unit_names[unit.as_u32() as usize] = first + i;
        }
    }
    (unit_names, n_names)
}
