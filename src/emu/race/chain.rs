//! What many read-modify-writes of one address released, one behind the other.
//!
//! Each of them continues what was released before it, so that who acquires the last one knows all. To copy that at each
//! would take time in the square of their number; instead a chain keeps every release once, with its place, and who acquires
//! knows the chain up to a place.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::Record;
use super::knowledge::{Knowledge, Known, PARTS};

/// For each warp or thread from which place on it is known up to when; both grow.
type Steps = FxHashMap<u32, Vec<(u32, u32)>>;

#[derive(Debug, Default)]
struct Part {
    warps: Steps,
    threads: Steps,
}

/// Releases at one address, none of which is forgotten.
#[derive(Debug, Default)]
pub(super) struct Chain {
    length: u32,
    /// As those of [`Knowledge`].
    parts: [Part; PARTS],
}

/// The start of a chain: what one part of it says up to a place.
#[derive(Clone, Debug)]
pub(super) struct Prefix {
    chain: Rc<RefCell<Chain>>,
    part: usize,
    length: u32,
}

fn add(steps: &mut Steps, who: u32, place: u32, time: u32) {
    let steps = steps.entry(who).or_default();
    match steps.last() {
        Some(&(_, known)) if time <= known => {}
        _ => steps.push((place, time)),
    }
}

/// Up to when somebody is known in front of a place.
fn until(steps: &Steps, who: u32, length: u32) -> u32 {
    let Some(steps) = steps.get(&who) else {
        return 0;
    };
    let count = steps.partition_point(|&(place, _)| place < length);
    count.checked_sub(1).map_or(0, |last| steps[last].1)
}

impl Chain {
    /// Adds what one more operation releases, and gives all that was released up to here.
    pub(super) fn push(this: &Rc<RefCell<Chain>>, released: &Knowledge) -> Knowledge {
        for part in 0..PARTS {
            let known = released.part(part);
            // What the chain says itself is there already; other chains are copied.
            let is_own = |prefix: &&Prefix| Rc::ptr_eq(&prefix.chain, this) && prefix.part == part;
            let copied = known.prefixes.iter().filter(|prefix| !is_own(prefix));
            let mut more = Known::default();
            copied.for_each(|prefix| prefix.copy(&mut more));
            let mut chain = this.borrow_mut();
            let place = chain.length;
            let all = &mut chain.parts[part];
            for known in [known, &more] {
                for (&warp, &time) in &known.warps {
                    add(&mut all.warps, warp, place, time);
                }
                for (&thread, &time) in &known.threads {
                    add(&mut all.threads, thread, place, time);
                }
            }
        }
        let mut chain = this.borrow_mut();
        chain.length += 1;
        let length = chain.length;
        drop(chain);
        let mut all = Knowledge::default();
        for part in 0..PARTS {
            all.part_mut(part).prefixes.push(Prefix {
                chain: Rc::clone(this),
                part,
                length,
            });
        }
        all
    }
}

impl Prefix {
    pub(super) fn warp_time(&self, warp: u32) -> u32 {
        until(
            &self.chain.borrow().parts[self.part].warps,
            warp,
            self.length,
        )
    }

    pub(super) fn knows(&self, record: Record) -> bool {
        let chain = self.chain.borrow();
        let part = &chain.parts[self.part];
        record.time <= until(&part.warps, record.who >> 5, self.length)
            || record.time <= until(&part.threads, record.who, self.length)
    }

    /// Goes as far as another one, if both are of the same chain.
    pub(super) fn extend(&mut self, other: &Prefix) -> bool {
        let is_same = Rc::ptr_eq(&self.chain, &other.chain) && self.part == other.part;
        if is_same {
            self.length = self.length.max(other.length);
        }
        is_same
    }

    /// Copies what it says.
    pub(super) fn copy(&self, known: &mut Known) {
        let chain = self.chain.borrow();
        let part = &chain.parts[self.part];
        for (steps, known) in [
            (&part.warps, &mut known.warps),
            (&part.threads, &mut known.threads),
        ] {
            for &who in steps.keys() {
                let time = until(steps, who, self.length);
                if time > 0 {
                    let known = known.entry(who).or_default();
                    *known = time.max(*known);
                }
            }
        }
    }
}
