//! The walk of one role: waits and arrivals at its channels, whose states go through loops and choices.

use rustc_hash::FxHashMap;

use super::channels::{Channel, LoadGroup};
use crate::ir::attrs::{IntPred, make};
use crate::ir::dfg::ValueList;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::maker::Maker;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};
use crate::tile::edit::rename_all;

/// What a role does with a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Fills it.
    Producer,
    /// Reads it.
    Consumer,
}

/// What comes next in a channel.
#[derive(Clone, Copy, Debug)]
struct State {
    entry: Value,
    /// Parity of the phase of the entry's `full` barrier.
    phase: Value,
}

/// Lets one role use its channels.
pub(super) struct Weaver<'a> {
    maker: Maker<'a, Tile>,
    channels: &'a [Channel],
    groups: &'a [LoadGroup],
    role: Role,
    renamed: FxHashMap<Value, Value>,
}

impl<'a> Weaver<'a> {
    pub(super) fn new(
        func: &'a mut TileFunction,
        channels: &'a [Channel],
        role: Role,
        groups: &'a [LoadGroup],
    ) -> Weaver<'a> {
        Weaver {
            maker: Maker::new(func),
            channels,
            groups,
            role,
            renamed: FxHashMap::default(),
        }
    }

    /// Rewrites a block and everything in it.
    pub(super) fn run(mut self, root: Block) {
        let zero = self.number(0);
        let mut states: Vec<State> = self
            .channels
            .iter()
            .map(|_| State {
                entry: zero,
                phase: zero,
            })
            .collect();
        self.block(root, &mut states);
        rename_all(self.maker.func, &self.renamed);
    }

    fn number(&mut self, number: u64) -> Value {
        self.maker
            .number(number as i64, TileType::scalar(Elem::I32))
    }

    /// Rewrites a block; `states` become those at its end.
    fn block(&mut self, block: Block, states: &mut [State]) {
        let groups = self.groups;
        // Constants that were made for the block.
        let mut list = std::mem::take(&mut self.maker.made);
        for inst in self.maker.func.order.insts(block).to_vec() {
            self.maker.loc = self.maker.func.dfg.insts[inst].loc;
            for group in groups.iter().filter(|group| group.loads[0] == inst) {
                self.wait(&self.channels[group.channel].clone(), states[group.channel]);
            }
            list.append(&mut self.maker.made);
            for group in groups {
                if let Some(number) = group.loads.iter().position(|&load| load == inst) {
                    let channel = self.channels[group.channel].clone();
                    self.access(inst, &channel, number, states[group.channel]);
                }
            }
            let used = self.used_in(inst);
            let new = match used.is_empty() {
                true => inst,
                false => self.through(inst, &used, states),
            };
            list.append(&mut self.maker.made);
            list.push(new);
            for group in groups.iter().filter(|group| group.last == inst) {
                let channel = self.channels[group.channel].clone();
                if self.role == Role::Consumer {
                    self.give_back(&channel, states[group.channel]);
                }
                states[group.channel] = self.behind(&channel, states[group.channel]);
            }
            list.append(&mut self.maker.made);
        }
        self.maker.func.order.replace(block, list);
    }

    /// Waits until an entry is full, or for the producer empty, and lets its boxes arrive.
    fn wait(&mut self, channel: &Channel, state: State) {
        match self.role {
            Role::Consumer => {
                let full = [make::slot(channel.full)];
                self.maker
                    .build(TileOp::MbarWait, &[state.entry, state.phase], &full, &[]);
            }
            Role::Producer => {
                let one = self.number(1);
                let ty = TileType::scalar(Elem::I32);
                let before = self.maker.value(TileOp::Xor, &[state.phase, one], &[], ty);
                let empty = [make::slot(channel.empty)];
                self.maker
                    .build(TileOp::MbarWait, &[state.entry, before], &empty, &[]);
                let exists = self.truth();
                let attrs = [make::slot(channel.full), make::bytes(channel.bytes)];
                self.maker
                    .build(TileOp::MbarExpect, &[state.entry, exists], &attrs, &[]);
            }
        }
    }

    fn truth(&mut self) -> Value {
        let ty = TileType::scalar(Elem::I1);
        self.maker.value(TileOp::Const, &[], &[make::value(1)], ty)
    }

    /// Makes a load a copy, or a load from the ring.
    fn access(&mut self, load: Inst, channel: &Channel, number: usize, state: State) {
        let slot = channel.slots[number];
        let exists = match self.role {
            Role::Producer => Some(self.truth()),
            Role::Consumer => None,
        };
        let data = &mut self.maker.func.dfg.insts[load];
        data.attrs.push(make::slot(slot));
        match exists {
            None => {
                data.op = TileOp::SharedLoad;
                data.args = ValueList::from_slice(&[state.entry]);
            }
            Some(exists) => {
                let coords = data.args[1..].to_vec();
                data.op = TileOp::TensorCopy;
                data.args.truncate(1);
                data.args.extend([state.entry, exists]);
                data.args.extend(coords);
                data.attrs.push(make::bars(channel.full));
                data.results.clear();
            }
        }
    }

    /// Lets the producer fill an entry again.
    fn give_back(&mut self, channel: &Channel, state: State) {
        let exists = self.truth();
        let args = [state.entry, exists];
        for &slot in &channel.slots {
            self.maker
                .build(TileOp::Release, &args, &[make::slot(slot)], &[]);
        }
        let empty = [make::slot(channel.empty)];
        self.maker.build(TileOp::MbarArrive, &args, &empty, &[]);
    }

    /// What comes behind an entry.
    fn behind(&mut self, channel: &Channel, state: State) -> State {
        let i32 = TileType::scalar(Elem::I32);
        let one = self.number(1);
        let other = self.maker.value(TileOp::Xor, &[state.phase, one], &[], i32);
        if channel.entries == 1 {
            return State {
                phase: other,
                ..state
            };
        }
        let next = self
            .maker
            .value(TileOp::Iadd, &[state.entry, one], &[], i32);
        let end = self.number(u64::from(channel.entries));
        let is_end = [make::ipred(IntPred::Eq)];
        let wraps = TileType::scalar(Elem::I1);
        let wraps = self.maker.value(TileOp::Icmp, &[next, end], &is_end, wraps);
        let zero = self.number(0);
        State {
            entry: self
                .maker
                .value(TileOp::Select, &[wraps, zero, next], &[], i32),
            phase: self
                .maker
                .value(TileOp::Select, &[wraps, other, state.phase], &[], i32),
        }
    }

    /// The channels that the regions of an instruction use.
    fn used_in(&self, inst: Inst) -> Vec<usize> {
        let mut found = Vec::new();
        let mut blocks: Vec<Block> = self.maker.func.regions(inst).collect();
        while let Some(block) = blocks.pop() {
            for &inst in self.maker.func.order.insts(block) {
                blocks.extend(self.maker.func.regions(inst));
                let groups = self.groups.iter();
                found.extend(groups.filter(|g| g.loads[0] == inst).map(|g| g.channel));
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// What of a state changes from one entry to the next.
    fn parts(&self, channel: usize, state: State) -> Vec<Value> {
        match self.channels[channel].entries {
            1 => vec![state.phase],
            _ => vec![state.entry, state.phase],
        }
    }

    /// The state with other values for these.
    fn with_parts(state: State, parts: &mut impl Iterator<Item = Value>, entries: u32) -> State {
        let mut next = || parts.next().unwrap_or(state.phase);
        match entries {
            1 => State {
                phase: next(),
                ..state
            },
            _ => State {
                entry: next(),
                phase: next(),
            },
        }
    }

    /// Lets a loop or a choice carry the states of channels; gives the new one.
    fn through(&mut self, inst: Inst, used: &[usize], states: &mut [State]) -> Inst {
        // What stands in front of it must not come into its regions.
        let before = std::mem::take(&mut self.maker.made);
        let mut data = self.maker.func.dfg.insts[inst].clone();
        let old = std::mem::take(&mut data.results);
        let enters: Vec<Value> = used
            .iter()
            .flat_map(|&channel| self.parts(channel, states[channel]))
            .collect();
        let is_loop = data.op.is_loop();
        if is_loop {
            data.args.extend(enters.iter().copied());
        }
        let i32 = TileType::scalar(Elem::I32);
        for call in &data.blocks {
            let mut inner = states.to_vec();
            if is_loop {
                let params: Vec<Value> = enters
                    .iter()
                    .map(|_| self.maker.func.dfg.append_param(call.block, i32))
                    .collect();
                self.take_parts(used, &mut inner, params);
            }
            self.block(call.block, &mut inner);
            let leaves: Vec<Value> = used
                .iter()
                .flat_map(|&channel| self.parts(channel, inner[channel]))
                .collect();
            if let Some(last) = self.maker.func.order.last(call.block) {
                self.maker.func.dfg.insts[last].args.extend(leaves);
            }
        }
        let mut types: Vec<TileType> = old.iter().map(|&v| self.maker.func.dfg.ty(v)).collect();
        types.extend(enters.iter().map(|_| i32));
        let new = self.maker.func.dfg.make_inst(data, &types);
        let results = self.maker.func.dfg.insts[new].results.to_vec();
        self.renamed
            .extend(old.iter().copied().zip(results.iter().copied()));
        self.take_parts(used, states, results[old.len()..].to_vec());
        self.maker.made = before;
        new
    }

    fn take_parts(&self, used: &[usize], states: &mut [State], parts: Vec<Value>) {
        let mut parts = parts.into_iter();
        for &channel in used {
            let entries = self.channels[channel].entries;
            states[channel] = Weaver::with_parts(states[channel], &mut parts, entries);
        }
    }
}
