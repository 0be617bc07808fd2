//! Blocks that are needed before and behind a sum over warps are computed again behind it, where registers are short.
//!
//! ```text
//! x = load p : f16[N]                 x = load p : f16[N]
//! y = fmul (fpext x), scale           y = fmul (fpext x), scale
//! s = sum y                   =>      s = sum y
//! z = fmul y, s                       y' = fmul (fpext x), scale
//!                                     z = fmul y', s
//! ```
//!
//! All elements of `y` live until `s` is there, and of `x` none. Computed again `x` lives, which takes half the registers, and the elements
//! of `y'` one after the other. Norms and losses over long rows are such kernels: of rows in f16 twice as much fits into the registers. Nobody
//! merges the two: passes that merge come before, and the assembler does not behind a barrier.
//!
//! That is done where it leaves a thread a quarter of its registers for other things; where more lives than that, the assembler spills
//! whatever is done (derivatives of norms with sums of all rows). (ptxas on a loss over 65,536 columns of bf16 on 32 warps, 64 registers a
//! thread: 68 bytes spilled, then none.)
//!
//! A block is computed again if what it is made of are such elementwise operations as are worth it (`again` in the table of ops),
//! few of them, from blocks that are there anyway or take fewer registers, and numbers.

use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

use super::edit::{copy_of, read_by};
use crate::ir::dfg::ValueDef;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::{Opcode, TileOp};

/// Registers of a thread beside those that hold blocks.
const ASIDE: u32 = 24;

/// Most operations that an element is computed again by.
const MOST_OPS: u32 = 12;

/// Registers of a thread below which it is not worth it.
const LEAST_REGISTERS: u32 = 8;

/// Computes blocks again behind sums over warps where a thread has no more than `most` registers; gives how many.
pub fn compute_again(func: &mut TileFunction, most: u32) -> usize {
    if func.num_warps() == 1 {
        return 0;
    }
    let mut count = 0;
    for block in func.all_blocks() {
        // The last one first: what is needed behind it does not live through those before.
        let is_sum = |&inst: &Inst| func.dfg.insts[inst].op == TileOp::Reduce;
        let insts = func.order.insts(block).iter().copied();
        let sums: Vec<Inst> = insts.filter(is_sum).collect();
        for sum in sums.into_iter().rev() {
            if let Some(again) = Again::of(func, block, sum, most) {
                count += again.values.len();
                again.compute(func, block);
            }
        }
    }
    count
}

/// A thread's registers that hold these blocks.
fn held(func: &TileFunction, lives: &EntitySet<Value>) -> u32 {
    lives.iter().map(|value| registers(func, value)).sum()
}

/// Where a sum stands in its block, and what lives while it is made.
fn alive(func: &TileFunction, block: Block, sum: Inst) -> Option<(usize, EntitySet<Value>)> {
    let list = func.order.insts(block);
    let place = list.iter().position(|&inst| inst == sum)?;
    let read = |insts: &[Inst]| {
        let mut read = Vec::new();
        insts
            .iter()
            .for_each(|&inst| read_by(func, inst, &mut read));
        read
    };
    let mut behind: EntitySet<Value> = EntitySet::new();
    behind.extend(read(&list[place + 1..]));
    let mut lives: EntitySet<Value> = EntitySet::new();
    let results = list[..place].iter();
    let results = results.flat_map(|&inst| &func.dfg.insts[inst].results);
    lives.extend(results.copied().filter(|&value| behind.contains(value)));
    // What comes from elsewhere lives throughout.
    let is_here = |value: Value| {
        let def = func.dfg.def_inst(value);
        def.is_some_and(|def| func.order.block_of(def) == Some(block))
    };
    let outer = read(list).into_iter().filter(|&value| {
        let is_param = matches!(func.dfg.values[value].def, ValueDef::Param(b, _) if b == block);
        match is_param {
            true => behind.contains(value),
            false => !is_here(value) && is_around(func, block, value),
        }
    });
    lives.extend(outer);
    Some((place, lives))
}

/// What is computed again behind a sum.
struct Again {
    /// Where the first user stands.
    at: usize,
    /// The values, as they are defined.
    values: Vec<Value>,
    /// What they are computed by, in order.
    insts: Vec<Inst>,
}

/// A thread's registers that a block of floats takes. Places and what is compared are made of few numbers.
fn registers(func: &TileFunction, value: Value) -> u32 {
    let ty = func.dfg.ty(value);
    match ty.is_scalar() || ty.is_shared() || !ty.elem.is_float() {
        true => 0,
        false => ty.bytes() / (4 * func.num_threads()),
    }
}

impl Again {
    /// What is computed again behind a sum, if what lives then leaves a thread enough registers, and does not else.
    fn of(func: &TileFunction, block: Block, sum: Inst, most: u32) -> Option<Again> {
        let (place, mut lives) = alive(func, block, sum)?;
        let mut now = held(func, &lives);
        if now + ASIDE <= most {
            return None;
        }
        let list = func.order.insts(block);
        let defs = &list[..place];
        let mut values: Vec<Value> = Vec::new();
        let mut insts: EntitySet<Inst> = EntitySet::new();
        // Those that are made last first: what they are made of may then be needed no more.
        for &def in defs.iter().rev() {
            let &[value] = &func.dfg.insts[def].results[..] else {
                continue;
            };
            if !lives.contains(value) || registers(func, value) < LEAST_REGISTERS {
                continue;
            }
            let mut without = lives.clone();
            without.remove(value);
            let mut chain = Chain::default();
            if !chain.follow(func, block, value, true, &without) {
                continue;
            }
            without.extend(chain.leaves.iter().copied());
            let then = held(func, &without);
            if then + LEAST_REGISTERS <= now {
                (lives, now) = (without, then);
                values.push(value);
                insts.extend(chain.insts.iter().copied());
            }
        }
        if values.is_empty() || 4 * now > 3 * most {
            return None;
        }
        let reads = |&inst: &Inst| {
            let mut read = Vec::new();
            read_by(func, inst, &mut read);
            read.iter().any(|value| values.contains(value))
        };
        let at = place + 1 + list[place + 1..].iter().position(reads)?;
        let insts = defs.iter().copied().filter(|&def| insts.contains(def));
        Some(Again {
            at,
            insts: insts.collect(),
            values,
        })
    }

    fn compute(self, func: &mut TileFunction, block: Block) {
        let mut map: FxHashMap<Value, Value> = FxHashMap::default();
        let copies: Vec<Inst> = self
            .insts
            .iter()
            .map(|&inst| copy_of(func, inst, &mut map))
            .collect();
        map.retain(|old, _| self.values.contains(old));
        let mut blocks = Vec::new();
        let mut list = func.order.insts(block).to_vec();
        for &inst in &list[self.at..] {
            let name = |value| map.get(&value).copied().unwrap_or(value);
            func.dfg.map_uses(inst, name);
            blocks.extend(func.regions(inst));
        }
        while let Some(inner) = blocks.pop() {
            for inst in func.order.insts(inner).to_vec() {
                let name = |value| map.get(&value).copied().unwrap_or(value);
                func.dfg.map_uses(inst, name);
                blocks.extend(func.regions(inst));
            }
        }
        list.splice(self.at..self.at, copies);
        func.order.replace(block, list);
    }
}

/// Whether a value is defined in a block around another one, so that it lives through that.
fn is_around(func: &TileFunction, block: Block, value: Value) -> bool {
    let home = match func.dfg.values[value].def {
        ValueDef::Param(home, _) => Some(home),
        ValueDef::Result(inst, _) => func.order.block_of(inst),
    };
    // What stands in regions of the block is read there alone.
    let mut inner: Vec<Block> = Vec::new();
    for &inst in func.order.insts(block) {
        inner.extend(func.regions(inst));
    }
    while let Some(at) = inner.pop() {
        if Some(at) == home {
            return false;
        }
        for &inst in func.order.insts(at) {
            inner.extend(func.regions(inst));
        }
    }
    true
}

/// What a block is computed from.
#[derive(Default)]
struct Chain {
    insts: Vec<Inst>,
    /// Blocks that are read.
    leaves: Vec<Value>,
    ops: u32,
}

impl Chain {
    /// Follows a value to what it is computed from in a block, up to what lives; whether that is worth it.
    fn follow(
        &mut self,
        func: &TileFunction,
        block: Block,
        value: Value,
        is_first: bool,
        lives: &EntitySet<Value>,
    ) -> bool {
        let def = func.dfg.def_inst(value);
        let def = def.filter(|&def| func.order.block_of(def) == Some(block));
        let is_scalar = func.dfg.ty(value).is_scalar();
        let Some(def) = def.filter(|_| is_first || !is_scalar && !lives.contains(value)) else {
            self.leaves.push(value);
            return true;
        };
        if self.insts.contains(&def) {
            return true;
        }
        let data = &func.dfg.insts[def];
        let effects = data.op.info().effects;
        let keeps_place = matches!(
            effects.class,
            OpClass::Constant | OpClass::Elementwise | OpClass::Shape
        );
        let Some(ops) = effects.again.filter(|_| keeps_place && data.is_pure()) else {
            self.leaves.push(value);
            return !is_first;
        };
        self.ops += u32::from(ops);
        self.insts.push(def);
        let args = data.args.clone();
        self.ops <= MOST_OPS
            && args
                .iter()
                .all(|&arg| self.follow(func, block, arg, false, lives))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse::parse_tile;

    /// How many blocks are computed again of a row of halves on 32 warps whose numbers are needed before and behind a sum, by
    /// threads of so many registers, and the ops behind the sum.
    fn after(numbers: &str, most: u32) -> (usize, Vec<String>) {
        let text = format!(
            "kernel @k(v0 \"x\": ptr<f16>, v1 \"y\": ptr<f32>, v2 \"s\": f32) warps(32) {{
block0:
    v3 = arange {{start = 0}} : i32[65536]
    v4 = splat v0 : ptr<f16>[65536]
    v5 = addptr v4, v3 : ptr<f16>[65536]
    v6 = load v5 : f16[65536]
    {numbers}
    v10 = reduce v9 {{axis = 0}} : f32 {{
    block1(v11: f32, v12: f32):
        v13 = fadd v11, v12 : f32
        yield v13
    }}
    v14 = splat v10 : f32[65536]
    v15 = fmul v9, v14 : f32[65536]
    v16 = splat v1 : ptr<f32>[65536]
    v17 = addptr v16, v3 : ptr<f32>[65536]
    store v17, v15
    return
}}
"
        );
        let mut func = parse_tile(&text).expect("a kernel");
        let count = compute_again(&mut func, most);
        let insts = func.order.insts(func.entry).iter();
        let ops = insts.map(|&inst| func.dfg.insts[inst].op.info().name.to_owned());
        let behind = ops.skip_while(|op| op != "reduce").skip(1);
        (count, behind.collect())
    }

    #[test]
    fn halves_are_widened_again_where_registers_are_short() {
        let widened = "v9 = fpext v6 : f32[65536]";
        let (count, ops) = after(widened, 64);
        assert_eq!((count, ops[1].as_str()), (1, "fpext"), "{ops:?}");
        let computed = "v7 = fpext v6 : f32[65536]
    v8 = splat v2 : f32[65536]
    v9 = fmul v7, v8 : f32[65536]";
        let (count, ops) = after(computed, 64);
        assert_eq!(
            (count, &ops[1..4]),
            (1, &["fpext", "splat", "fmul"].map(String::from)[..])
        );
    }

    /// With registers enough, with too few whatever is done, and of what takes long.
    #[test]
    fn others_stay() {
        let widened = "v9 = fpext v6 : f32[65536]";
        let power = "v7 = fpext v6 : f32[65536]
    v9 = exp2 v7 : f32[65536]";
        for (numbers, most) in [(widened, 128), (widened, 40), (power, 64)] {
            let (count, ops) = after(numbers, most);
            assert_eq!((count, ops[0].as_str()), (0, "splat"), "{numbers} {most}");
        }
    }
}
