//! Left operands of products are computed slice by slice, while products of the slices before are under way.
//!
//! ```text
//! y = sitofp x : f16 x 64                      y0 = sitofp (rearrange x) : f16 x 16
//! a0, a1 = rearrange y                         f = wgmma_fence s, a0; t = wgmma f, a0, ..
//! f = wgmma_fence s, a0; t = wgmma f, a0  =>   y1 = sitofp (rearrange x) : f16 x 16
//! g = wgmma_fence t, a1; u = wgmma g, a1       g = wgmma_fence t, a1; u = wgmma g, a1
//! ```
//!
//! The threads that multiply a computed operand (weights of few bits) compute it themselves, and a group's unit would have nothing to do
//! meanwhile: other groups wait for the same blocks at the same time. An instruction reads some elements of each thread alone, so what these
//! are computed from goes behind the instructions before it.
//!
//! Ops on elements are taken apart whose results nothing else reads; loads stay where they are.

use cranelift_entity::{EntitySet, SecondaryMap};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::ir::attrs::{Attrs, make};
use crate::ir::dfg::InstData;
use crate::ir::entities::{Block, Inst, Value};
use crate::ir::function::ThreadFunction;
use crate::ir::level::Thread;
use crate::ir::maker::Maker;
use crate::ir::ops::ThreadOp;
use crate::ir::types::ThreadType;

/// Elements of a value.
type Elements = SmallVec<[u32; 16]>;

/// Computes operands in slices; gives the number of slices.
pub fn slice_operands(func: &mut ThreadFunction) -> usize {
    let fences: Vec<(Block, Inst)> = func
        .insts_with(ThreadOp::WgmmaFence)
        .filter(|&(_, inst)| func.dfg.insts[inst].args.len() > 1)
        .collect();
    if fences.is_empty() {
        return 0;
    }
    // What one instruction reads all of is computed first: in how many slices each operand is read.
    let mut counts: FxHashMap<Value, usize> = FxHashMap::default();
    for &(_, fence) in &fences {
        let args = func.dfg.insts[fence].args[1..].iter();
        let mut sources: SmallVec<[Value; 8]> = args
            .filter_map(|&arg| Some(fragment_of(func, arg)?.0))
            .collect();
        sources.sort_unstable();
        sources.dedup();
        for source in sources {
            *counts.entry(source).or_default() += 1;
        }
    }
    counts.retain(|_, count| *count > 1);
    if counts.is_empty() {
        return 0;
    }
    let apart = taken_apart(func, &fences);
    let mut slices: FxHashMap<Value, Value> = FxHashMap::default();
    for &(_, fence) in &fences {
        let args = func.dfg.insts[fence].args.clone();
        let mut slicer = Slicer {
            maker: Maker::near(func, fence),
            apart: &apart,
            known: FxHashMap::default(),
        };
        for &fragment in &args[1..] {
            let Some((source, elements)) = fragment_of(slicer.maker.func, fragment) else {
                continue;
            };
            if slicer.is_apart(source) && counts.contains_key(&source) {
                let slice = slicer.slice(source, &elements);
                slices.insert(fragment, slice);
            }
        }
        let made = slicer.maker.made;
        func.order.insert_before(fence, &made);
    }
    let insts: Vec<Inst> = func.all_insts().map(|(_, inst)| inst).collect();
    for inst in insts {
        func.dfg
            .map_uses(inst, |value| slices.get(&value).copied().unwrap_or(value));
    }
    slices.len()
}

/// The value of which a fragment has these elements.
fn fragment_of(func: &ThreadFunction, fragment: Value) -> Option<(Value, Elements)> {
    let data = &func.dfg.insts[func.dfg.def_inst(fragment)?];
    match (data.op, &data.args[..]) {
        (ThreadOp::Rearrange, &[source]) => Some((source, data.map()?.iter().copied().collect())),
        _ => None,
    }
}

/// Ops on elements that nothing but products in the same block needs, by way of others of these.
fn taken_apart(func: &ThreadFunction, fences: &[(Block, Inst)]) -> EntitySet<Inst> {
    let mut readers: SecondaryMap<Value, SmallVec<[Inst; 2]>> = SecondaryMap::new();
    let mut blocks: SecondaryMap<Inst, Option<Block>> = SecondaryMap::new();
    for (block, inst) in func.all_insts() {
        blocks[inst] = Some(block);
        for value in func.dfg.uses(inst) {
            readers[value].push(inst);
        }
    }
    let mut apart: EntitySet<Inst> = EntitySet::new();
    let mut fragments: EntitySet<Inst> = EntitySet::new();
    let mut of_products: EntitySet<Block> = EntitySet::new();
    for &(block, fence) in fences {
        of_products.insert(block);
        let args = func.dfg.insts[fence].args[1..].iter();
        fragments.extend(args.filter_map(|&arg| func.dfg.def_inst(arg)));
    }
    for &block in func
        .order
        .blocks
        .iter()
        .filter(|&&block| of_products.contains(block))
    {
        for &inst in func.order.insts(block).iter().rev() {
            let data = &func.dfg.insts[inst];
            if !is_on_elements(func, data) {
                continue;
            }
            let reads = &readers[data.results[0]];
            let is_for_slices = |&reader: &Inst| {
                blocks[reader] == Some(block)
                    && (apart.contains(reader) || fragments.contains(reader))
            };
            if !reads.is_empty() && reads.iter().all(is_for_slices) {
                apart.insert(inst);
            }
        }
    }
    apart
}

/// Whether an op gives for each element of its operands one of its result.
fn is_on_elements(func: &ThreadFunction, data: &InstData<Thread>) -> bool {
    let is_op = data.is_elementwise() && data.is_pure() && data.results.len() == 1;
    is_op && data.op != ThreadOp::Rare && {
        let count = func.dfg.ty(data.results[0]).count;
        data.args.iter().all(|&arg| func.dfg.ty(arg).count == count)
    }
}

struct Slicer<'a> {
    maker: Maker<'a, Thread>,
    apart: &'a EntitySet<Inst>,
    known: FxHashMap<(Value, Elements), Value>,
}

impl Slicer<'_> {
    fn is_apart(&self, value: Value) -> bool {
        let def = self.maker.func.dfg.def_inst(value);
        def.is_some_and(|def| self.apart.contains(def))
    }

    /// Elements of a value, computed for these alone as far as may be.
    fn slice(&mut self, value: Value, elements: &Elements) -> Value {
        let key = (value, elements.clone());
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let dfg = &self.maker.func.dfg;
        let data = dfg.def_inst(value).map(|def| dfg.insts[def].clone());
        let ty = ThreadType::pack(dfg.ty(value).elem, elements.len() as u16);
        let new = match data {
            Some(data) if self.is_apart(value) => {
                let args: Vec<Value> = data
                    .args
                    .iter()
                    .map(|&arg| self.slice(arg, elements))
                    .collect();
                let args = args.into();
                self.maker.value_from(InstData { args, ..data }, ty)
            }
            Some(data) if matches!(data.op, ThreadOp::Const | ThreadOp::Splat) => {
                self.maker.value_from(data, ty)
            }
            // Some elements of what has some elements of others.
            Some(data) if data.op == ThreadOp::Rearrange => {
                let map = data.map().map_or(&[][..], |map| map);
                let map = elements
                    .iter()
                    .map(|&element| map[element as usize])
                    .collect();
                self.rearrange(&data.args, map, ty)
            }
            _ => self.rearrange(&[value], elements.to_vec(), ty),
        };
        self.known.insert(key, new);
        new
    }

    fn rearrange(&mut self, args: &[Value], map: Vec<u32>, ty: ThreadType) -> Value {
        let map = make::map(map.into());
        self.maker.value(ThreadOp::Rearrange, args, &[map], ty)
    }
}

#[cfg(test)]
mod tests {
    use super::slice_operands;
    use crate::ir::ops::ThreadOp;
    use crate::text::parse::parse_thread;
    use crate::verify::verify;

    /// The pass on two products one behind the other, whose left operands are elements of `v8`: how many slices it makes, the ops between
    /// the products, and the text.
    fn sliced(operand: &str, more: &str) -> (usize, Vec<ThreadOp>, String) {
        let text = format!(
            "thread @k(v0: ptr<f32>, v1: i64) warps(4) {{
                slot0 = 4096 bytes align 1024
            block0:
                v2 = const {{value = 0.0}} : f32 x 32
                v3 = slot_addr {{slot = slot0}} : ptr<i16, shared>
                v4 = ld v3 {{slot = slot0}} : i16 x 8
                v5 = ld v3 {{slot = slot0, offset = 16}} : i16 x 8
                v6 = rearrange v4, v5 {{map = [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]}} : i16 x 16
                v7 = const {{value = 3}} : i16 x 16
                {operand}
                v9 = rearrange v8 {{map = [0, 1, 4, 5, 8, 9, 12, 13]}} : f16 x 8
                v10 = rearrange v8 {{map = [2, 3, 6, 7, 10, 11, 14, 15]}} : f16 x 8
                v11 = wgmma_fence v2, v9 {{unit = warpgroup_f16, slot = slot0}} : f32 x 32
                v12 = wgmma v11, v9, v1 {{unit = warpgroup_f16, columns = 64, slot = slot0}} : f32 x 32
                v13 = wgmma_fence v12, v10 {{unit = warpgroup_f16, slot = slot0}} : f32 x 32
                v14 = wgmma v13, v10, v1 {{unit = warpgroup_f16, columns = 64, slot = slot0}} : f32 x 32
                wgmma_commit
                v15 = wgmma_wait v14, v9, v10 {{pending = 0}} : f32 x 32
                {more}
                return
            }}"
        );
        let mut func = parse_thread(&text).unwrap_or_else(|errors| panic!("{errors:#?}"));
        let count = slice_operands(&mut func);
        verify(&func).unwrap_or_else(|errors| panic!("{errors}\n{func}"));
        let ops: Vec<ThreadOp> = func
            .all_insts()
            .map(|(_, inst)| func.dfg.insts[inst].op)
            .collect();
        let products = ops
            .iter()
            .enumerate()
            .filter(|(_, op)| **op == ThreadOp::Wgmma);
        let places: Vec<usize> = products.map(|(i, _)| i).collect();
        let between = ops[places[0] + 1..places[1]].to_vec();
        (count, between, func.to_string())
    }

    const COMPUTED: &str = "v16 = and v6, v7 : i16 x 16
        v8 = sitofp v16 : f16 x 16";

    #[test]
    fn what_a_product_reads_is_computed_behind_the_one_before() {
        let (count, between, text) = sliced(COMPUTED, "");
        assert_eq!(count, 2);
        use ThreadOp::{And, Const, Rearrange, Sitofp, WgmmaFence};
        assert_eq!(
            between,
            [Rearrange, Const, And, Sitofp, WgmmaFence],
            "{text}"
        );
        // Elements of what was loaded, not of the elements in another order.
        assert!(
            text.contains("rearrange v4, v5 {map = [1, 9, 3, 11, 5, 13, 7, 15]} : i16 x 8"),
            "{text}"
        );
    }

    #[test]
    fn what_something_else_reads_is_computed_once() {
        // The conversion is taken apart, what is stored is not.
        let (count, between, text) = sliced(COMPUTED, "st v3, v4\n");
        assert_eq!((count, between.len()), (2, 5), "{text}");
        let both = "v17 = rearrange v16 {map = [0, 1, 2, 3, 4, 5, 6, 7]} : i16 x 8
            st v3, v17 {slot = slot0}";
        let (count, between, text) = sliced(COMPUTED, both);
        assert_eq!(count, 2);
        use ThreadOp::{Rearrange, Sitofp, WgmmaFence};
        assert_eq!(between, [Rearrange, Sitofp, WgmmaFence], "{text}");
        let result = "v17 = rearrange v8 {map = [0, 1, 2, 3, 4, 5, 6, 7]} : f16 x 8
            v18 = bitcast v17 : i16 x 8
            st v3, v18 {slot = slot0}";
        let (count, between, text) = sliced(COMPUTED, result);
        assert_eq!((count, &between[..]), (0, &[WgmmaFence][..]), "{text}");
    }

    #[test]
    fn what_is_loaded_as_it_is_stays() {
        let (count, between, text) = sliced("v8 = bitcast v6 : f16 x 16", "");
        assert_eq!((count, between.len()), (2, 3), "{text}");
        let loaded = "v16 = ptr_cast v3 : ptr<f16, shared>
            v17 = ld v16 {slot = slot0} : f16 x 8
            v18 = ld v16 {slot = slot0, offset = 16} : f16 x 8
            v8 = rearrange v17, v18 {map = [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]} : f16 x 16";
        let (count, between, text) = sliced(loaded, "");
        assert_eq!((count, between.len()), (0, 1), "{text}");
    }
}
