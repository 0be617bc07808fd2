//! What releasing accesses leave at addresses for acquiring ones.
//!
//! What is released with the scope of the device is there for everybody; with that of the CTA or cluster, or behind a fence of
//! it, for threads of that one alone, in memory that others reach. An acquiring access of such a scope takes over what was
//! released within it, and of what is there for everybody what is known of threads within it.

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::super::inst::Scope;
use super::chain::Chain;
use super::clock::WarpClock;
use super::knowledge::{Knowledge, Observer};
use super::lanes;

/// So many read-modify-writes of one address copy what is there; more of them make a chain.
const FEW: u32 = 16;

/// What releasing accesses left at addresses.
#[derive(Clone, Debug, Default)]
pub(in crate::emu) struct Releases {
    at: FxHashMap<u64, Left>,
}

/// What was left at one address.
#[derive(Clone, Debug, Default)]
struct Left {
    /// For everybody.
    wide: Option<Rc<Knowledge>>,
    /// How many read-modify-writes made that, and where it is kept once they are many.
    joined: u32,
    chain: Option<Rc<RefCell<Chain>>>,
    /// By threads of one CTA each, which its first warp names, for that CTA or its cluster.
    narrow: Vec<(u32, Scope, Rc<Knowledge>)>,
}

/// How a strong access takes part in synchronisation.
#[derive(Clone, Copy, Debug)]
pub(in crate::emu) struct Strong {
    pub(in crate::emu) read: bool,
    pub(in crate::emu) write: bool,
    pub(in crate::emu) acquire: bool,
    pub(in crate::emu) release: bool,
    /// That of the device where only the own CTA reaches the memory.
    pub(in crate::emu) scope: Scope,
}

impl Left {
    /// What a lane meets here.
    fn meet(&self, clock: &WarpClock, scope: Scope) -> Option<Rc<Knowledge>> {
        let is_for = |&&(cta, reach, _): &&(u32, Scope, Rc<Knowledge>)| {
            cta == clock.first || clock.is_within(cta, reach.min(scope))
        };
        let mut narrow = self.narrow.iter().filter(is_for);
        let mut all = match (&self.wide, scope) {
            (None, _) => Rc::clone(&narrow.next()?.2),
            (Some(wide), Scope::Device) => Rc::clone(wide),
            (Some(wide), _) => Rc::new(clock.within(wide, scope)),
        };
        for (.., left) in narrow {
            Rc::make_mut(&mut all).join(left);
        }
        Some(all)
    }

    /// Adds what a read-modify-write releases to what is here.
    fn join(&mut self, released: Rc<Knowledge>, cta: u32, scope: Scope) {
        if scope != Scope::Device {
            let mut narrow = self.narrow.iter_mut();
            match narrow.find(|(of, reach, _)| (*of, *reach) == (cta, scope)) {
                Some((.., left)) => Rc::make_mut(left).join(&released),
                None => self.narrow.push((cta, scope, released)),
            }
            return;
        }
        let Some(wide) = &mut self.wide else {
            self.wide = Some(released);
            return;
        };
        self.joined += 1;
        if self.joined == FEW {
            let chain = Rc::default();
            Chain::push(&chain, wide);
            self.chain = Some(chain);
        }
        match &self.chain {
            Some(chain) => *wide = Rc::new(Chain::push(chain, &released)),
            None => Rc::make_mut(wide).join(&released),
        }
    }
}

impl Releases {
    /// A strong access of one lane to `address`.
    pub(in crate::emu) fn access(
        &mut self,
        clock: &mut WarpClock,
        lane: u32,
        address: u64,
        strong: Strong,
        now: &mut u32,
    ) {
        if strong.read
            && let Some(left) = self.at.get(&address)
            && let Some(left) = left.meet(clock, strong.scope)
        {
            if strong.acquire {
                clock.acquire(lane, &left);
            } else {
                clock.meet(lane, &left);
            }
        }
        if !strong.write {
            return;
        }
        let released = if strong.release {
            let snapshot = clock.snapshot(lane, *now);
            *now += 1;
            Some((Rc::new(snapshot), Scope::Device))
        } else {
            clock
                .lanes
                .get(&lane)
                .and_then(|clock| clock.fenced.clone())
        };
        match released {
            Some((released, fence)) => {
                let left = self.at.entry(address).or_default();
                // A read-modify-write continues what was released before it.
                if !strong.read {
                    *left = Left::default();
                }
                left.join(released, clock.first, strong.scope.min(fence));
            }
            None if !strong.read => {
                self.at.remove(&address);
            }
            None => {}
        }
    }
}

impl WarpClock {
    /// A relaxed access or wait meets what was released, which the next fence of the lane acquires.
    pub(in crate::emu) fn meet(&mut self, lane: u32, left: &Rc<Knowledge>) {
        let met = &mut self.lanes.entry(lane).or_default().met;
        match met {
            Some(met) if Rc::ptr_eq(met, left) => {}
            Some(met) => Rc::make_mut(met).join(left),
            none => *none = Some(Rc::clone(left)),
        }
    }

    /// What a relaxed arrival of the lanes of `mask` releases: what fences before it say, if their scope
    /// is at least that of who waits.
    pub(in crate::emu) fn release_fenced(&self, mask: u32, scope: Scope) -> Knowledge {
        let mut all = Knowledge::default();
        for clock in lanes(mask).filter_map(|lane| self.lanes.get(&lane)) {
            match &clock.fenced {
                Some((fenced, fence)) if *fence >= scope => all.join(fenced),
                _ => {}
            }
            if let Some(initialised) = &clock.initialised {
                all.join(initialised);
            }
        }
        all
    }

    /// `fence.mbarrier_init`: relaxed arrivals of these lanes tell of the barriers that they initialised, and of nothing else.
    pub(in crate::emu) fn fence_initialised(&mut self, mask: u32, now: u32) {
        for lane in lanes(mask) {
            let who = self.warp << 5 | lane;
            let clock = self.lanes.entry(lane).or_default();
            let known = clock.initialised.get_or_insert_default();
            known.fenced[Observer::Barriers as usize]
                .threads
                .insert(who, now);
        }
    }
}
