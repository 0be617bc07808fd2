//! Which ops the generator makes, and why it does not make the others.

use crate::ir::ops::TileOp;

/// Ops of the tile level that no generated kernel has, each with the reason. `fuzz/README.md` lists the same.
pub const NOT_GENERATED: &[(TileOp, &str)] = &[
    (
        TileOp::CtaId,
        "`loop_over_programs` makes it; the target `roles` has it",
    ),
    (
        TileOp::GroupId,
        "`form_roles` makes it; the target `roles` has it",
    ),
    (
        TileOp::NumGroups,
        "`form_roles` makes it; the target `roles` has it",
    ),
    (
        TileOp::SlotPut,
        "`form_roles` makes it; the target `roles` has it",
    ),
    (
        TileOp::SlotGet,
        "`form_roles` makes it; the target `roles` has it",
    ),
    (
        TileOp::NumCtas,
        "`loop_over_programs` makes it; the target `roles` has it",
    ),
    (TileOp::SmId, "its result is unspecified"),
    (TileOp::GlobalTimer, "its result is unspecified"),
    (
        TileOp::InlinePtx,
        "the interpreter cannot execute it; file tests do on the emulator",
    ),
    (
        TileOp::ConvertLayout,
        "only passes make it; every kernel with a conversion has it then",
    ),
    (
        TileOp::AsyncCopy,
        "only `pipeline_loops` makes it, of the loops over products",
    ),
    (TileOp::AsyncCommit, "only `pipeline_loops` makes it"),
    (TileOp::AsyncWait, "only `pipeline_loops` makes it"),
    (
        TileOp::SharedStore,
        "only passes make it, for pipelines and shared factors",
    ),
    (
        TileOp::SharedLoad,
        "only passes make it, for pipelines and shared factors",
    ),
    (
        TileOp::SharedView,
        "only `start_dots` makes it, of products by warpgroups",
    ),
    (
        TileOp::DotStart,
        "only `start_dots` makes it, of products by warpgroups",
    ),
    (
        TileOp::DotWait,
        "only `start_dots` makes it, of products by warpgroups",
    ),
    (
        TileOp::DotSum,
        "only `start_dots` makes it, of products by warpgroups",
    ),
    (
        TileOp::DotDone,
        "only `start_dots` makes it, of products by warpgroups",
    ),
    (
        TileOp::TensorMap,
        "only `promote` makes it, of loads for products by warpgroups",
    ),
    (
        TileOp::TensorLoad,
        "only `promote` makes it, of loads for products by warpgroups",
    ),
    (
        TileOp::TensorStore,
        "only `promote` makes it, of stores of what products by warpgroups make",
    ),
    (
        TileOp::TensorCopy,
        "only passes make it, of boxes of tensors",
    ),
    (TileOp::MbarInit, "only passes make it, of boxes of tensors"),
    (
        TileOp::MbarDrop,
        "passes make it of boxes of tensors, in too few kernels for this list to ask for",
    ),
    (
        TileOp::MbarExpect,
        "only passes make it, of boxes of tensors",
    ),
    (
        TileOp::MbarWaitFor,
        "`bound_waits` makes it of waits for boxes; the target `roles` has it",
    ),
    (TileOp::MbarWait, "only passes make it, of boxes of tensors"),
    (
        TileOp::MbarArrive,
        "`form_roles` makes it; the target `roles` has it",
    ),
    (
        TileOp::Release,
        "`form_roles` makes it; the target `roles` has it",
    ),
    (
        TileOp::Producer,
        "`form_roles` makes it; the target `roles` has it",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::case;
    use super::*;
    use crate::compile::compile_with;
    use crate::ir::ops::Opcode;
    use crate::pipeline::Snapshot;
    use crate::settings::Target;

    /// Seeds in which every op must occur.
    const SEEDS: u64 = 9400;
    /// Seeds whose kernels are compiled: what passes make occurs in them, and in later products for warpgroups.
    const COMPILED: u64 = 150;

    #[test]
    fn every_op_is_generated_or_listed() {
        let mut made = BTreeSet::new();
        let mut by_passes = BTreeSet::new();
        for seed in 0..SEEDS {
            let case = case(seed);
            let func = &case.func;
            let mut multiplies = false;
            for block in func.all_blocks() {
                for &inst in func.order.insts(block) {
                    made.insert(func.dfg.insts[inst].op.info().name);
                    multiplies |= func.dfg.insts[inst].op == TileOp::Dot;
                }
            }
            let for_groups = case.target == Target::SM_90A && multiplies;
            if COMPILED <= seed && !for_groups {
                continue;
            }
            // Whether it compiles is the business of a target.
            let compiled = compile_with(func, case.target, &case.options, &mut |_, snapshot| {
                if let Snapshot::Tile(tile) = snapshot {
                    for block in tile.all_blocks() {
                        for &inst in tile.order.insts(block) {
                            by_passes.insert(tile.dfg.insts[inst].op.info().name);
                        }
                    }
                }
            });
            drop(compiled);
        }
        let listed = |name: &str| {
            let mut all = NOT_GENERATED.iter();
            all.any(|(op, _)| op.info().name == name)
        };
        for op in TileOp::ALL {
            let name = op.info().name;
            let is_made = made.contains(name);
            assert!(
                is_made || listed(name),
                "`{name}` is neither generated nor listed"
            );
            assert!(
                !(is_made && listed(name)),
                "`{name}` is generated and listed as not"
            );
        }
        for (op, reason) in NOT_GENERATED {
            let name = op.info().name;
            let claims = reason.starts_with("only ");
            assert_eq!(by_passes.contains(name), claims, "`{name}`: {reason}");
        }
    }

    #[test]
    fn the_page_has_the_list() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/README.md");
        let page = std::fs::read_to_string(path).expect("the page is there");
        for (op, reason) in NOT_GENERATED {
            let line = format!("| `{}` | {reason} |", op.info().name);
            assert!(page.contains(&line), "fuzz/README.md lacks\n{line}");
        }
    }
}
