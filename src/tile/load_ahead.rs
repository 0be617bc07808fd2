//! Loads in front of conversions that wait for other loads.
//!
//! ```text
//! x = load ..                      x = load ..
//! y = convert_layout x      =>     z = load ..
//! z = load ..                      y = convert_layout x
//! ```
//!
//! A conversion through shared memory waits for what it moves and for all threads, and the assembler moves no load over its barrier: as the
//! program is written, `z` would be asked for when `x` has come. What is computed from a conversion, element by element, goes with it. A
//! sum or product waits as long anyway, and what it leaves is often smaller than what it takes: conversions stay in front of it. So at
//! the place where both are needed no more registers are live than before.

use cranelift_entity::EntitySet;

use crate::ir::effects::OpClass;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::layout::convert::stays_in_warps;

/// Moves loads in front of conversions; gives how many.
pub fn load_ahead(func: &mut TileFunction) -> usize {
    // Sums of products need the registers, and loads of factors are ahead already.
    let mut insts = func.all_insts();
    if insts.any(|(_, inst)| func.dfg.insts[inst].is_product()) {
        return 0;
    }
    drop(insts);
    let mut count = 0;
    for block in func.all_blocks() {
        let insts = func.order.insts(block).to_vec();
        let mut list = Vec::with_capacity(insts.len());
        // What is made of loads of this block, and what is made of conversions that wait.
        let mut loaded: EntitySet<Value> = EntitySet::new();
        let mut late: EntitySet<Value> = EntitySet::new();
        let mut window = Window::default();
        for inst in insts {
            let data = &func.dfg.insts[inst];
            let uses =
                |set: &EntitySet<Value>| func.dfg.uses(inst).any(|value| set.contains(value));
            let (is_late, of_loads) = (uses(&late), uses(&loaded));
            let can_wait = match data.class() {
                OpClass::Elementwise | OpClass::Shape => is_late,
                _ => data.op == TileOp::ConvertLayout && (is_late || of_loads && waits(func, inst)),
            };
            let is_load = data.op == TileOp::Load && data.only_reads();
            if of_loads || is_load {
                loaded.extend(data.results.iter().copied());
            }
            if can_wait {
                late.extend(data.results.iter().copied());
                window.all.push((inst, true));
                continue;
            }
            if is_late || !(is_load || data.is_pure()) {
                count += window.close(&mut list);
                late.clear();
            }
            match window.all.is_empty() {
                true => list.push(inst),
                false => {
                    window.all.push((inst, false));
                    window.loads += usize::from(is_load);
                }
            }
        }
        count += window.close(&mut list);
        func.order.replace(block, list);
    }
    count
}

/// Instructions from a conversion on.
#[derive(Default)]
struct Window {
    /// Whether each waits for the conversion.
    all: Vec<(Inst, bool)>,
    /// Loads among those that do not.
    loads: usize,
}

impl Window {
    /// Writes down what does not wait and then the rest, if loads come to stand in front; gives how many do.
    fn close(&mut self, list: &mut Vec<Inst>) -> usize {
        let Window { mut all, loads } = std::mem::take(self);
        if 0 < loads {
            // Stable: otherwise everything stays in its order.
            all.sort_by_key(|&(_, waits)| waits);
        }
        list.extend(all.into_iter().map(|(inst, _)| inst));
        loads
    }
}

/// Whether a conversion waits for other warps.
fn waits(func: &TileFunction, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let layout = |value: Value| {
        let layout = func.dfg.ty(value).layout.expand()?;
        func.layouts.get(layout)
    };
    match (layout(data.args[0]), layout(data.results[0])) {
        (Some(from), Some(to)) => !stays_in_warps(from, to),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::load_ahead;
    use crate::tile::testing::{check_pass, fixed_point};

    /// Layout 1 takes elements from other warps, layout 2 from other lanes.
    fn kernel(body: &str) -> String {
        format!(
            "kernel @k(v0: ptr<f32>, v1: ptr<f32>) warps(2) {{
                layout #0 = {{reg=[], lane=[1,2,4,8,16], warp=[32]}} : [64]
                layout #1 = {{reg=[], lane=[2,4,8,16,32], warp=[1]}} : [64]
                layout #2 = {{reg=[], lane=[16,8,4,2,1], warp=[32]}} : [64]
                layout #3 = {{reg=[64,128], lane=[1,2,4,8,16], warp=[32]}} : [16,16]
            block0:
                v2 = splat v0 : ptr<f32>[64; #0]
                {body}
                return
            }}"
        )
    }

    #[test]
    fn loads_come_before_what_waits_for_others() {
        let [first, second] = [
            "v4 = convert_layout v3 : f32[64; #1]
                v5 = fmul v4, v4 : f32[64; #1]",
            "v6 = splat v1 : ptr<f32>[64; #1]
                v7 = load v6 : f32[64; #1]",
        ];
        let with = |a, b| {
            kernel(&format!(
                "v3 = load v2 : f32[64; #0]
                {a}
                {b}
                v8 = fadd v5, v7 : f32[64; #1]
                store v6, v8"
            ))
        };
        check_pass(load_ahead, &with(first, second), &with(second, first));
    }

    #[test]
    fn products_keep_their_loads() {
        let body = "v90 = const {value = 0.0} : f32[16,16; #3]
                v91 = const {value = 0.0} : f32[16,16; #3]
                v92 = dot v91, v91, v90 {precision = ieee} : f32[16,16; #3]
                v3 = load v2 : f32[64; #0]
                v4 = convert_layout v3 : f32[64; #1]
                v6 = splat v1 : ptr<f32>[64; #1]
                v7 = load v6 : f32[64; #1]
                v8 = fadd v4, v7 : f32[64; #1]
                store v6, v8";
        fixed_point(load_ahead, &kernel(body));
    }

    /// What reads behind a store, whether that waits or not, addresses that come out of the conversion, a conversion within the warp, one of what no load of the block
    /// brought, and a sum that waits for all.
    #[test]
    fn loads_that_gain_nothing_or_must_not_move_stay() {
        for body in [
            "v3 = load v2 : f32[64; #0]
                v4 = convert_layout v3 : f32[64; #1]
                v6 = splat v1 : ptr<f32>[64; #1]
                store v6, v4
                v7 = load v6 : f32[64; #1]
                store v6, v7",
            "v3 = load v2 : f32[64; #0]
                v4 = convert_layout v3 : f32[64; #1]
                v6 = splat v1 : ptr<f32>[64; #1]
                v5 = const {value = 1.0} : f32[64; #1]
                store v6, v5
                v7 = load v6 : f32[64; #1]
                v8 = fadd v4, v7 : f32[64; #1]
                store v6, v8",
            "v3 = load v2 : f32[64; #0]
                v4 = convert_layout v3 : f32[64; #1]
                v5 = fptosi v4 : i32[64; #1]
                v6 = splat v1 : ptr<f32>[64; #1]
                v7 = addptr v6, v5 : ptr<f32>[64; #1]
                v8 = load v7 : f32[64; #1]
                store v6, v8",
            "v3 = load v2 : f32[64; #0]
                v4 = convert_layout v3 : f32[64; #2]
                v6 = splat v1 : ptr<f32>[64; #2]
                v7 = load v6 : f32[64; #2]
                v8 = fadd v4, v7 : f32[64; #2]
                store v6, v8",
            "v3 = arange {start = 0} : i32[64; #0]
                v4 = convert_layout v3 : i32[64; #1]
                v5 = sitofp v4 : f32[64; #1]
                v6 = splat v1 : ptr<f32>[64; #1]
                v7 = load v6 : f32[64; #1]
                v8 = fadd v5, v7 : f32[64; #1]
                store v6, v8",
            "v3 = load v2 : f32[64; #0]
                v4 = convert_layout v3 : f32[64; #1]
                v5 = reduce v4 {axis = 0} : f32 {
                block1(v9: f32, v10: f32):
                    v11 = fadd v9, v10 : f32
                    yield v11
                }
                v6 = splat v1 : ptr<f32>[64; #1]
                v7 = load v6 : f32[64; #1]
                v12 = splat v5 : f32[64; #1]
                v8 = fadd v12, v7 : f32[64; #1]
                store v6, v8",
        ] {
            fixed_point(load_ahead, &kernel(body));
        }
    }
}
