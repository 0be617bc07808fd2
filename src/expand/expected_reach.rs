//! How far indices reach that are divided by constants, for launches of up to 65,536 programs along an axis.

use crate::analysis::axis::Axis;
use crate::ir::entities::Value;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;

/// Programs along an axis, as many as there may be along y and z. An index of `program_id * 1024` has 31 bits up to 32 times as many.
const PROGRAMS: u64 = 1 << 16;

/// How deep sums and products are followed.
const MAX_DEPTH: u32 = 12;

/// The largest number that sums and products of indices of programs and ranges reach, if it fits with a sign. Quotients of such as
/// overflow are unspecified ([`TileOp::Srem`]), so that of many more programs, too, nothing is lost that is promised; but what grows
/// beyond with so few, as hashes of indices do, is divided as the number that it is.
pub(super) fn expected_reach(func: &TileFunction, axis: &Axis, value: Value) -> Option<u64> {
    reach(func, axis, value, MAX_DEPTH)
}

fn reach(func: &TileFunction, axis: &Axis, value: Value, depth: u32) -> Option<u64> {
    let depth = depth.checked_sub(1)?;
    let proved = axis.info(value).natural();
    let data = &func.dfg.insts[func.dfg.def_inst(value)?];
    let of = |i: usize| reach(func, axis, data.args[i], depth);
    let found = match data.op {
        TileOp::ProgramId => Some(PROGRAMS - 1),
        _ if proved.is_some() => return proved,
        TileOp::Splat
        | TileOp::ExpandDims
        | TileOp::Broadcast
        | TileOp::Reshape
        | TileOp::ConvertLayout => of(0),
        TileOp::Iadd => of(0)?.checked_add(of(1)?),
        TileOp::Imul => of(0)?.checked_mul(of(1)?),
        // A product by a power of two.
        TileOp::Shl => {
            let by = u32::try_from(axis.info(data.args[1]).constant()?).ok()?;
            of(0)?.checked_mul(1_u64.checked_shl(by)?)
        }
        _ => None,
    };
    let bits = func.dfg.ty(value).elem.bits();
    found.filter(|&most| most < 1 << (bits - 1))
}

#[cfg(test)]
mod tests {
    use super::expected_reach;
    use crate::analysis::axis::Axis;
    use crate::text::parse::parse_tile;

    #[test]
    fn indices_of_blocks_are_expected_to_fit_and_hashes_are_not() {
        let text = "kernel @k(v0 \"x\": ptr<i32>, v1: i32) warps(1) {
            block0:
                v2 = program_id {axis = 0} : i32
                v3 = const {value = 1024} : i32
                v4 = imul v2, v3 : i32
                v5 = splat v4 : i32[32]
                v6 = arange {start = 0} : i32[32]
                v7 = iadd v5, v6 : i32[32]
                v8 = const {value = 1664525} : i32
                v9 = imul v2, v8 : i32
                v10 = imul v2, v1 : i32
                v11 = shl v2, v3 : i32
                v12 = const {value = 10} : i32
                v13 = shl v2, v12 : i32
                v14 = const {value = 16} : i32
                v15 = shl v2, v14 : i32
                return
            }";
        let func = parse_tile(text).unwrap_or_else(|errors| panic!("{errors:?}"));
        let axis = Axis::compute(&func);
        let results = func
            .all_insts()
            .flat_map(|(_, inst)| func.dfg.insts[inst].results.to_vec());
        let found: Vec<_> = results
            .map(|value| expected_reach(&func, &axis, value))
            .collect();
        let index = 65_535 * 1024;
        let expected = [
            Some(65_535),
            Some(1024),
            Some(index),
            Some(index),
            Some(31),
            Some(index + 31),
            Some(1_664_525),
            None,
            None,
            None,
            Some(10),
            Some(index),
            Some(16),
            None,
        ];
        assert_eq!(found, expected);
    }
}
