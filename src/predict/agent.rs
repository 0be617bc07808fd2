//! Warps that execute the same instructions, as one.

use std::collections::VecDeque;

use crate::ir::entities::{Block, Value};

/// Most warps that one agent stands for: those that an engine takes together.
pub(super) const WARPS: usize = 4;

/// What is known of a value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// The bits that the first thread of each warp has.
    pub(super) bits: [u64; WARPS],
    /// Whether they are right.
    pub(super) is_known: bool,
    /// When the first number of a pack is there.
    pub(super) ready: f64,
    /// When all are.
    pub(super) done: f64,
}

impl Known {
    /// The same number everywhere.
    pub(super) fn number(bits: u64) -> Known {
        Known {
            bits: [bits; WARPS],
            is_known: true,
            ..Known::default()
        }
    }
}

/// Asynchronous work of a kind: what was begun since the last commitment, and when the groups before are over.
#[derive(Clone, Debug, Default)]
pub(super) struct Async {
    open: f64,
    groups: VecDeque<f64>,
    last: f64,
}

impl Async {
    /// Begins work that is over then.
    pub(super) fn begin(&mut self, over: f64) {
        self.open = self.open.max(over);
    }

    pub(super) fn commit(&mut self) {
        self.groups.push_back(self.open);
        self.open = 0.0;
    }

    /// When all but so many groups are over.
    pub(super) fn wait(&mut self, pending: u32) -> f64 {
        while self.groups.len() > pending as usize {
            let over = self.groups.pop_front().unwrap_or_default();
            self.last = self.last.max(over);
        }
        self.last
    }
}

/// What an agent does next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    Runs,
    /// Waits for something that another one does.
    Waits,
    Ended,
}

/// Warps of a CTA.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    /// Number of the CTA among those of the multiprocessor.
    pub(super) cta: usize,
    /// Number of the CTA among those of the launch.
    pub(super) number: u64,
    /// Number of the first warp, and how many there are.
    pub(super) warp: u32,
    pub(super) warps: u32,
    pub(super) block: Block,
    /// Index of the next instruction.
    pub(super) at: usize,
    pub(super) time: f64,
    pub(super) state: State,
    /// How often the meeting had ended that it waits for.
    pub(super) seen: Option<u64>,
    pub(super) values: Vec<Known>,
    /// Copies of threads, products of warpgroups, boxes that are stored.
    pub(super) copies: Async,
    pub(super) products: Async,
    pub(super) boxes: Async,
}

impl Agent {
    /// Where it is.
    pub(super) fn place(&self) -> (Block, usize) {
        (self.block, self.at)
    }

    pub(super) fn value(&self, value: Value) -> &Known {
        &self.values[value.as_u32() as usize]
    }

    pub(super) fn set(&mut self, value: Value, known: Known) {
        self.values[value.as_u32() as usize] = known;
    }

    /// The number that the first warp has.
    pub(super) fn number(&self, value: Value) -> Option<u64> {
        let known = self.value(value);
        known.is_known.then_some(known.bits[0])
    }

    /// How many warps have a truth value that holds in their first thread; all where nobody knows.
    pub(super) fn warps_with(&self, value: Value) -> u32 {
        let known = self.value(value);
        let warps = &known.bits[..self.warps as usize];
        match known.is_known {
            true => warps.iter().filter(|&&bits| bits & 1 != 0).count() as u32,
            false => self.warps,
        }
    }
}
