//! V17 to V19: layouts of values.

use super::{Errors, Rule};
use crate::ir::attrs::Attrs;
use crate::ir::entities::{AnyEntity, Inst, Value};
use crate::ir::function::Function;
use crate::ir::level::Level;
use crate::ir::ops::{Opcode, TypeRule};
use crate::ir::types::{Extent, ValueType};
use crate::linear_layout::layout::{HwDim, LinearLayout};
use crate::linear_layout::pool::LayoutId;
use crate::linear_layout::shape::Shape;

pub(super) fn check<L: Level>(func: &Function<L>, errors: &mut Errors) {
    let mut with = None;
    let mut without = None;
    for block in func.all_blocks() {
        let results = func.order.insts(block).iter();
        let results = results.flat_map(|&inst| &func.dfg.insts[inst].results);
        for &value in func.dfg.blocks[block].params.iter().chain(results) {
            match func.dfg.ty(value).extent() {
                Extent::Block(shape, Some(layout)) | Extent::Shared(shape, Some(layout))
                    if shape.is_scalar() =>
                {
                    let message = format!("a scalar has no layout, found {layout}");
                    errors.report(Rule::LayoutsEverywhere, value, message);
                }
                Extent::Block(shape, Some(layout)) => {
                    with.get_or_insert(value);
                    check_fit(func, value, shape, layout, errors);
                }
                Extent::Shared(shape, Some(layout)) => {
                    with.get_or_insert(value);
                    check_memory(func, value, shape, layout, errors);
                }
                Extent::Block(shape, None) | Extent::Shared(shape, None) if !shape.is_scalar() => {
                    without.get_or_insert(value);
                }
                Extent::Block(..) | Extent::Shared(..) | Extent::Single | Extent::Pack(_) => {}
            }
        }
    }
    if let (Some(with), Some(without)) = (with, without) {
        let message = format!("{without} has no layout, but {with} has one");
        errors.report(Rule::LayoutsEverywhere, without, message);
    }
    for (_, inst) in func.all_insts() {
        check_relation(func, inst, errors);
    }
}

/// V18 of a block in shared memory.
fn check_memory<L: Level>(
    func: &Function<L>,
    value: Value,
    shape: Shape,
    id: LayoutId,
    errors: &mut Errors,
) {
    let layout = &func.layouts[id];
    let mut report = |message: String| errors.report(Rule::LayoutFits, value, message);
    if layout.shape() != shape {
        let shape = layout.shape();
        return report(format!("layout {id} is for a block of [{shape}]"));
    }
    if layout.is_distributed() {
        return report(format!("layout {id} is one of registers"));
    }
    if layout.invert().is_none() {
        report(format!("layout {id} has no place for some element"));
    }
}

/// V18.
fn check_fit<L: Level>(
    func: &Function<L>,
    value: Value,
    shape: Shape,
    id: LayoutId,
    errors: &mut Errors,
) {
    let layout = &func.layouts[id];
    let mut report = |message: String| errors.report(Rule::LayoutFits, value, message);
    if layout.shape() != shape {
        return report(format!(
            "layout {id} is for a block of [{}]",
            layout.shape()
        ));
    }
    if !layout.is_distributed() {
        return report(format!("layout {id} is one of memory"));
    }
    if layout.bits(HwDim::Lane) != 5 || layout.num_ctas() != 1 {
        report(format!(
            "layout {id} is not for the 32 lanes of one CTA's warps"
        ));
    }
    if layout.num_warps() != func.num_warps() {
        let (found, expected) = (layout.num_warps(), func.num_warps());
        report(format!("layout {id} is for {found} warps, not {expected}"));
    }
    if !layout.is_surjective() {
        report(format!("layout {id} leaves elements out"));
    }
}

/// The layout of a value, if it fits the value; what does not fit was reported.
fn layout_of<L: Level>(func: &Function<L>, value: Value) -> Option<&LinearLayout> {
    match func.dfg.ty(value).extent() {
        Extent::Block(shape, Some(id)) => {
            let layout = &func.layouts[id];
            (layout.shape() == shape && layout.is_distributed()).then_some(layout)
        }
        _ => None,
    }
}

/// V19: the threads that hold an element of the result hold what it is made of.
fn check_relation<L: Level>(func: &Function<L>, inst: Inst, errors: &mut Errors) {
    let data = &func.dfg.insts[inst];
    let rule = data.op.info().rule;
    if !matches!(
        rule,
        TypeRule::ExpandDims
            | TypeRule::Broadcast
            | TypeRule::Reduce
            | TypeRule::Reshape
            | TypeRule::Permute
            | TypeRule::Join
            | TypeRule::Split
    ) {
        return;
    }
    let axis = data.axis().map_or(0, |&axis| usize::from(axis));
    // Every operand of `join` belongs to its one result.
    let results = data
        .results
        .iter()
        .chain(data.results.last().into_iter().cycle());
    for (&arg, &result) in data.args.iter().zip(results) {
        let (Some(from), Some(to)) = (layout_of(func, arg), layout_of(func, result)) else {
            continue;
        };
        // Shapes that do not belong together are V09's and V10's business.
        let agrees = match rule {
            TypeRule::ExpandDims => {
                from.shape().with_unit_dim(axis) != Ok(to.shape())
                    || to.reshape(from.shape()).register_map(from).is_some()
            }
            TypeRule::Broadcast => {
                !grows(from.shape(), to.shape())
                    || to
                        .project_broadcast(from.shape())
                        .register_map(from)
                        .is_some()
            }
            TypeRule::Reshape => {
                from.shape().log2_elements() != to.shape().log2_elements()
                    || to.reshape(from.shape()).register_map(from).is_some()
            }
            TypeRule::Permute => permute_agrees(data.dims().map_or(&[][..], |d| d), from, to),
            TypeRule::Join => {
                let last = from.shape().rank();
                to.shape().rank() != last + 1
                    || to.shape().without_dim(last) != from.shape()
                    || to.project(last).register_map(from).is_some()
            }
            TypeRule::Split => {
                let half = data.index().copied().unwrap_or(0);
                from.shape().log2_elements() != to.shape().log2_elements() + 1
                    || to.half_registers(half, from).is_some()
            }
            _ => {
                axis >= from.shape().rank()
                    || from.shape().without_dim(axis) != to.shape()
                    || to.register_map(&from.project(axis)).is_some()
            }
        };
        if !agrees {
            let message =
                format!("the layouts of {arg} and {result} do not follow from each other");
            errors.report(Rule::LayoutsAgree, AnyEntity::Inst(inst), message);
            // What is wrong with a result is said once.
            if rule == TypeRule::Join {
                break;
            }
        }
    }
}

fn permute_agrees(dims: &[u32], from: &LinearLayout, to: &LinearLayout) -> bool {
    let dims: Vec<usize> = dims.iter().map(|&d| d as usize).collect();
    let mut sorted = dims.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..from.shape().rank()) {
        return true;
    }
    let moved = from.permute(&dims);
    moved.shape() != to.shape() || to.register_map(&moved).is_some()
}

fn grows(from: Shape, to: Shape) -> bool {
    let fits = |(a, b): (u64, u64)| a == b || a == 1;
    from.rank() == to.rank() && from.extents().zip(to.extents()).all(fits)
}
