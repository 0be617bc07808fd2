//! Why a kernel has no access that could become one of a tensor map.

use crate::ir::attrs::Attrs;
use crate::ir::entities::{Block, Inst};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::settings::{Options, Promote, Target};
use crate::tile::start_dots::is_for_warpgroup;

/// Why none of a kernel's loads and stores is judged, in a sentence without its end: nothing there is what tensor maps are made for.
pub fn nothing_to_promote(func: &TileFunction, target: Target, options: &Options) -> String {
    const MADE_FOR: &str = "they are made for loads by pointers that feed `tl.dot` in a counted loop, and for stores of what that makes";
    if options.promote == Promote::Never {
        return "the options say that there be none (promote never)".to_owned();
    }
    let dots: Vec<(Block, Inst)> = func.insts_with(TileOp::Dot).collect();
    let Some(&(_, first)) = dots.first() else {
        return format!("the kernel multiplies no matrices; {MADE_FOR}");
    };
    let is_fit = |target: Target| {
        dots.iter()
            .any(|&(_, dot)| is_for_warpgroup(func, dot, target))
    };
    if !is_fit(target) {
        if is_fit(Target::SM_90A) {
            return format!(
                "they feed products of four warps together (wgmma), which sm_90a has and {target} has not"
            );
        }
        let data = &func.dfg.insts[first];
        let line = data.loc.0.expand();
        let place = line.map_or_else(String::new, |line| format!(" in line {}", line.0));
        let sums = func.dfg.ty(data.results[0]).shape;
        let factors = func.dfg.ty(data.args[0]).elem;
        let why = match (func.num_warps(), sums.rank() == 2 && sums.extent(0) < 64) {
            (warps @ 0..4, _) => format!("the kernel has {warps} (num_warps)"),
            (_, true) => format!(
                "the product{place} has {} rows, and 64 are needed",
                sums.extent(0)
            ),
            _ => format!(
                "the product{place} is one of {factors} that makes {}, which they do not",
                func.dfg.ty(data.results[0])
            ),
        };
        return format!("they feed products of four warps together (wgmma): {why}");
    }
    let has_boxes = func.insts_with(TileOp::TensorLoad).next().is_some();
    let of_one_stage = func.insts_with(TileOp::For).any(|(_, inst)| {
        let stages = func.dfg.insts[inst].stages();
        stages.is_some_and(|&stages| stages <= 1)
    });
    match (has_boxes, of_one_stage) {
        (true, _) => "the kernel loads by descriptors, which have maps of their own, and nothing by pointers that could have one".to_owned(),
        (_, true) => format!("the kernel's loop has one stage (num_stages); {MADE_FOR}"),
        _ => format!("no load by pointers feeds a product in a counted loop; {MADE_FOR}"),
    }
}
