//! A launch as one multiprocessor sees it: which programs it executes, and what share of the memory it has.

use rustc_hash::FxHashMap;

use super::agent::{Agent, Known};
use super::figures::Figures;
use super::prepared::Prepared;
use super::reuse::{ARGUMENT, Source, first_time};
use super::servers::Resource;
use super::sm::{Outcome, Sm};
use super::{Estimate, Launch};
use crate::ir::map_recipe::HostNumber;
use crate::ir::types::Elem;

/// A tensor that a map describes.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) extents: Vec<i64>,
    /// How many times as long a row of a box takes as one that fills lines of the cache.
    pub(super) longer: f64,
}

/// A launch, as a multiprocessor sees it.
#[derive(Clone, Debug)]
pub(super) struct Setting<'a> {
    pub(super) launch: &'a Launch<'a>,
    /// CTAs along the axes.
    pub(super) ctas: [u32; 3],
    /// What maps describe.
    pub(super) tensors: Vec<Tensor>,
    /// For sources the part of their bytes that is asked for the first time.
    first: FxHashMap<Source, f64>,
    /// Bytes of memory in a clock.
    pub(super) memory: f64,
    /// Multiprocessors at work.
    pub(super) active: f64,
}

impl Setting<'_> {
    /// The part of a source's bytes that no cache has.
    pub(super) fn missed(&self, source: Source) -> f64 {
        self.first.get(&source).copied().unwrap_or(1.0)
    }

    /// Gives an agent the kernel's arguments. Each pointer leads to a place of its own.
    pub(super) fn give_arguments(&self, kernel: &Prepared, agent: &mut Agent) {
        for (index, &param) in kernel.thread.params().iter().enumerate() {
            let elem = kernel.thread.dfg.ty(param).elem;
            let number = self.launch.numbers.get(index).copied().flatten();
            let bits = match (index.checked_sub(kernel.needs.params), elem) {
                (Some(axis), _) => self.launch.grid.get(axis).map(|&n| u64::from(n)),
                (None, Elem::Ptr(..)) => Some((index as u64 + 1) << ARGUMENT),
                (None, _) => number.map(|number| number as u64 & elem.mask()),
            };
            agent.set(param, bits.map_or(Known::default(), Known::number));
        }
    }
}

impl Prepared {
    /// What a launch takes.
    pub(super) fn estimate(&self, launch: &Launch<'_>, figures: &Figures) -> Option<Estimate> {
        let mut extents = launch.grid.iter();
        let total = extents.try_fold(1_u64, |product, &n| product.checked_mul(n.into()))?;
        if total == 0 || total > u64::from(u32::MAX) || figures.sms == 0 {
            return None;
        }
        let sms = u64::from(figures.sms);
        let per_sm = total.div_ceil(sms);
        let at_once = per_sm.min(u64::from(self.needs.resident));
        let active = sms.min(total) as f64;
        let params = |index: u32| launch.numbers.get(index as usize).copied().flatten();
        let tensors = self.thread.maps.iter().map(|map| {
            let parts = map.values_of_parts(&params, launch.grid);
            let parts = parts.unwrap_or_default();
            let number = |n: &HostNumber| n.eval(&params, launch.grid, &parts);
            let numbers = |numbers: &[HostNumber]| -> Vec<i64> {
                let numbers = numbers.iter().map(|n| number(n).unwrap_or(i64::MAX));
                numbers.collect()
            };
            let bytes = i64::from(map.elem.bytes());
            let pitches = numbers(&map.strides)
                .into_iter()
                .map(|n| n.wrapping_mul(bytes));
            // How many times as long as rows that fill lines of the cache those take that do not, which counts where the cache is what is short:
            // where many ask it.
            let asked = active / sms as f64;
            let longer = pitches.map(|pitch| match pitch {
                pitch if pitch % 128 == 0 => 1.0,
                pitch if pitch % 32 == 0 => figures.across_lines,
                _ => figures.across_sectors,
            });
            Tensor {
                extents: numbers(&map.extents),
                longer: longer.map(|longer| longer * asked).fold(1.0, f64::max),
            }
        });
        let mut setting = Setting {
            launch,
            ctas: launch.grid,
            tensors: tensors.collect(),
            first: FxHashMap::default(),
            memory: (figures.dram / figures.clock / active).min(figures.l2),
            active,
        };
        if self.needs.persistent {
            setting.ctas = [(sms * at_once).min(total) as u32, 1, 1];
        }
        setting.first = first_time(
            self,
            &setting,
            figures,
            (sms * at_once.min(MOST_COMPARED)).min(total),
        );
        // Half as many say what each of those that are left out adds.
        let most = (6 * at_once).max(12);
        let (outcome, clocks) = if per_sm <= most + at_once {
            let outcome = self.simulate(per_sm, at_once, total, &mut setting, figures)?;
            let clocks = outcome.clocks;
            (outcome, clocks)
        } else {
            let half = self.simulate(most / 2, at_once, total, &mut setting, figures)?;
            let outcome = self.simulate(most, at_once, total, &mut setting, figures)?;
            let each = (outcome.clocks - half.clocks).max(0.0) / (most - most / 2) as f64;
            let clocks = outcome.clocks + (per_sm - most) as f64 * each;
            (outcome, clocks)
        };
        let busy = Resource::ALL.into_iter().zip(outcome.busy);
        let mut busy: Vec<(Resource, f64)> = busy
            .map(|(resource, busy)| (resource, busy / outcome.clocks.max(1.0)))
            .collect();
        busy.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        Some(Estimate {
            micros: figures.launch + clocks / figures.clock,
            busy,
            resident: self.needs.resident,
            waves: total as f64 / (sms * u64::from(self.needs.resident)) as f64,
            persistent: self.needs.persistent,
            guessed: outcome.guessed,
        })
    }

    /// Simulates a multiprocessor that executes so many programs, at most `at_once` CTAs at a time.
    fn simulate(
        &self,
        count: u64,
        at_once: u64,
        total: u64,
        setting: &mut Setting<'_>,
        figures: &Figures,
    ) -> Option<Outcome> {
        let grid = setting.launch.grid;
        let sms = u64::from(figures.sms);
        let ctas: Vec<u64> = if self.needs.persistent {
            // As if there were more multiprocessors.
            let distance = match count == total.div_ceil(sms) {
                true => sms,
                false => spread(total / count, grid[0]),
            };
            setting.ctas = [(distance * at_once).min(total) as u32, 1, 1];
            (0..at_once).map(|at| at * distance).collect()
        } else {
            (0..count).map(|at| sample(at, grid)).collect()
        };
        Sm::new(self, setting, figures).run(&ctas, at_once as usize)
    }
}

/// Most CTAs of a multiprocessor whose requests are compared.
const MOST_COMPARED: u64 = 2;

/// A distance between programs near another one, so that those at this distance are of all kinds along the first axis.
fn spread(distance: u64, extent: u32) -> u64 {
    let extent = u64::from(extent);
    let middle = extent / 3..=extent - extent / 3;
    let is_fair = |n: &u64| extent < 3 || gcd(*n, extent) == 1 && middle.contains(&(n % extent));
    let mut distances = (1..=distance).rev();
    distances.find(is_fair).unwrap_or(distance.max(1))
}

/// Programs in an order in which the first ones are of all kinds: along each axis the golden ratio spreads them.
fn sample(at: u64, grid: [u32; 3]) -> u64 {
    let along = |extent: u32| {
        let extent = u64::from(extent);
        let golden = (extent * 618 / 1000).max(1);
        let step = (1..=golden).rev().find(|&n| gcd(n, extent) == 1);
        at * step.unwrap_or(1) % extent
    };
    let [x, y, z] = grid.map(along);
    x + u64::from(grid[0]) * (y + u64::from(grid[1]) * z)
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_programs_are_of_all_kinds() {
        // A quarter of a row of 32: one of each eighth.
        let mut eighths: Vec<u64> = (0..8).map(|at| sample(at, [32, 64, 1]) % 32 / 4).collect();
        eighths.sort_unstable();
        eighths.dedup();
        assert!(eighths.len() >= 6, "{eighths:?}");
        let distance = spread(256, 32);
        assert!(gcd(distance, 32) == 1 && distance > 200, "{distance}");
        assert_eq!([spread(7, 1), spread(0, 1)], [7, 1]);
    }
}
