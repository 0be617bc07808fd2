//! The numbers that are kept track of: those that decide on control flow, and where what is moved stands.

use smallvec::SmallVec;

use super::agent::{Known, WARPS};
use super::reuse::Source;
use super::scalar;
use super::sm::Sm;
use crate::ir::attrs::{Attrs, SpecialReg};
use crate::ir::dfg::InstData;
use crate::ir::entities::Value;
use crate::ir::level::Thread;
use crate::ir::ops::ThreadOp;
use crate::ir::types::{AddressSpace, Elem};

/// What a copy of a box moves.
pub(super) struct Moved {
    pub(super) source: Source,
    /// Bytes that barriers are told of.
    pub(super) announced: i64,
    /// Those of them within the tensor; the others are filled in.
    pub(super) bytes: f64,
    /// Rows of the box.
    pub(super) rows: f64,
    /// How many times as long a row takes as one that fills lines of the cache.
    pub(super) longer: f64,
}

impl Sm<'_> {
    /// The number that an instruction gives, if that can be said.
    pub(super) fn known(&self, at: usize, data: &InstData<Thread>, result: Value) -> Option<Known> {
        let thread = &self.kernel.thread;
        let elem = thread.dfg.ty(result).elem;
        let agent = &self.agents[at];
        match data.op {
            ThreadOp::Const => return Some(Known::number(*data.value()? & elem.mask())),
            ThreadOp::MapAddr => return Some(Known::number(u64::from(*data.index()?))),
            ThreadOp::SlotAddr => {
                let slot = thread.slots[*data.slot()?];
                return Some(Known::number(u64::from(slot.offset?)));
            }
            ThreadOp::Special => return self.special(at, *data.reg()?),
            // Numbers are those of each warp's first lane, which is as good as any.
            ThreadOp::Elect => return Some(Known::number(1)),
            _ => {}
        }
        if thread.dfg.ty(result).count != 1 {
            return None;
        }
        let first = *data.args.first()?;
        let bits = match data.op {
            // The result of a choice has the second one's width, and truth values have none.
            ThreadOp::Select => elem.bits(),
            _ => thread.dfg.ty(first).elem.bits(),
        };
        let mut known = Known {
            is_known: true,
            ..Known::default()
        };
        for warp in 0..agent.warps as usize {
            let mut args: SmallVec<[u64; 4]> = SmallVec::new();
            for &arg in &data.args {
                let arg = agent.value(arg);
                if !arg.is_known {
                    return None;
                }
                args.push(arg.bits[warp]);
            }
            let found = match data.op {
                ThreadOp::Addptr => {
                    let step = i64::from(elem.pointee()?.bytes().max(1));
                    let unused = 64 - thread.dfg.ty(*data.args.get(1)?).elem.bits().clamp(1, 64);
                    let index = ((args[1] << unused) as i64) >> unused;
                    args[0].wrapping_add_signed(index.wrapping_mul(step))
                }
                _ => scalar::eval(data, bits, elem.bits(), &args)?,
            };
            known.bits[warp] = found & elem.mask();
        }
        Some(known)
    }

    /// Where a single number stands in shared memory.
    fn place(&self, at: usize, data: &InstData<Thread>, value: Value) -> Option<(usize, u64)> {
        let thread = &self.kernel.thread;
        let pointer = *data.args.first()?;
        let is_shared = matches!(
            thread.dfg.ty(pointer).elem,
            Elem::Ptr(_, AddressSpace::Shared)
        );
        if !is_shared || thread.dfg.ty(value).count != 1 {
            return None;
        }
        let offset = data.offset().map_or(0, |&offset| i64::from(offset));
        let agent = &self.agents[at];
        let address = agent.number(pointer)?.wrapping_add_signed(offset);
        Some((agent.cta, address))
    }

    /// Leaves a number in shared memory, if that is what the instruction does.
    pub(super) fn leave(&mut self, at: usize, data: &InstData<Thread>) {
        if let (ThreadOp::St, Some(&value)) = (data.op, data.args.get(1))
            && let Some(place) = self.place(at, data, value)
        {
            let pred = data.args.get(2);
            if pred.is_none_or(|&pred| 0 < self.agents[at].warps_with(pred)) {
                let known = *self.agents[at].value(value);
                self.words.insert(place, known);
            }
        }
    }

    /// The number that was left in shared memory.
    pub(super) fn left(&self, at: usize, data: &InstData<Thread>) -> Option<Known> {
        if data.op != ThreadOp::Ld {
            return None;
        }
        let place = self.place(at, data, *data.results.first()?)?;
        let known = *self.words.get(&place)?;
        known.is_known.then(|| Known::number(known.bits[0]))
    }

    /// A special register.
    fn special(&self, at: usize, reg: SpecialReg) -> Option<Known> {
        let agent = &self.agents[at];
        let [x, y, _] = self.setting.ctas.map(u64::from);
        let number = agent.number;
        Some(match reg {
            SpecialReg::Tid => {
                let mut known = Known::number(0);
                for warp in 0..WARPS {
                    known.bits[warp] = 32 * (u64::from(agent.warp) + warp as u64);
                }
                known
            }
            SpecialReg::Lane => Known::number(0),
            SpecialReg::ProgramX => Known::number(number % x),
            SpecialReg::ProgramY => Known::number(number / x % y),
            SpecialReg::ProgramZ => Known::number(number / x / y),
            SpecialReg::ProgramsX => Known::number(x),
            SpecialReg::ProgramsY => Known::number(y),
            SpecialReg::ProgramsZ => Known::number(u64::from(self.setting.ctas[2])),
            SpecialReg::SmId => return None,
        })
    }

    /// How many arrivals there are under a condition: one under the constant, as one thread executes it then.
    pub(super) fn arrivals(&self, at: usize, cond: Value) -> u32 {
        let def = self.kernel.thread.dfg.def_inst(cond);
        match def.map(|inst| self.kernel.thread.dfg.insts[inst].op) {
            Some(ThreadOp::Const) => 1,
            _ => self.agents[at].warps_with(cond),
        }
    }

    /// Where a pointer leads to: the first thread's address, if it is known.
    pub(super) fn source(&self, at: usize, pointer: Value) -> Source {
        match self.agents[at].number(pointer) {
            Some(address) => Source::pointer(address),
            None => Source::UNKNOWN,
        }
    }

    /// What a copy of a box moves.
    pub(super) fn moved_box(
        &self,
        at: usize,
        data: &InstData<Thread>,
        map: usize,
        coords: usize,
    ) -> Option<Moved> {
        let agent = &self.agents[at];
        let number = agent.number(*data.args.get(map)?)?;
        let recipe = self.kernel.thread.maps.get(number as usize)?;
        let tensor = self.setting.tensors.get(number as usize)?;
        let element = recipe.elem.bytes();
        let mut bytes = f64::from(element);
        for ((&tile, &extent), &coord) in recipe
            .tile
            .iter()
            .zip(&tensor.extents)
            .zip(data.args.get(coords..)?)
        {
            let begin = agent
                .number(coord)
                .map_or(0, |bits| i64::from(bits as u32 as i32));
            let end = begin.saturating_add(i64::from(tile)).min(extent);
            bytes *= end.saturating_sub(begin.max(0)).max(0) as f64;
        }
        let (&row, outer) = recipe.tile.split_last()?;
        let rows: f64 = outer.iter().map(|&extent| f64::from(extent)).product();
        Some(Moved {
            source: Source::map(number),
            announced: (rows * f64::from(row * element)) as i64,
            bytes,
            rows,
            longer: tensor.longer,
        })
    }
}
