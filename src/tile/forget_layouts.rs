//! Takes the layouts out of a function that has them, so that a dump from the middle of the pipeline compiles like its
//! source: `convert_layout` does nothing any more, and the tree of a reduction or scan is free again.

use super::edit::{self, Fate};
use crate::ir::attrs::AttrKind;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::linear_layout::pool::LayoutPool;

/// Removes every layout; says whether there was one.
pub fn forget_layouts(func: &mut TileFunction) -> bool {
    if func.dfg.values.values().all(|v| v.ty.layout.is_none()) {
        return false;
    }
    edit::rewrite(func, |edit, inst| {
        let data = &mut edit.func.dfg.insts[inst];
        match data.op {
            TileOp::ConvertLayout => Fate::Replace(data.args[0]),
            TileOp::Reduce => {
                data.attrs.retain(|attr| attr.kind() != AttrKind::Order);
                Fate::Keep
            }
            TileOp::Scan => {
                data.attrs.retain(|attr| attr.kind() != AttrKind::Tree);
                Fate::Keep
            }
            _ => Fate::Keep,
        }
    });
    for value in func.dfg.values.values_mut() {
        value.ty = value.ty.without_layout();
    }
    func.layouts = LayoutPool::default();
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse::parse_tile;
    use crate::text::print::print;

    #[test]
    fn a_dump_becomes_its_source() {
        let source = "kernel @f(v0 \"p\": ptr<i32>) warps(1) {\nblock0:\n    v1 = arange {start = 0} : i32[32]\n    \
                      v2 = reduce v1 {axis = 0} : i32 {\n    block1(v3: i32, v4: i32):\n        \
                      v5 = iadd v3, v4 : i32\n        yield v5\n    }\n    store v0, v2\n    return\n}\n";
        let dump = source
            .replace(
                "block0:\n    v1 = arange {start = 0} : i32[32]\n",
                "    layout #0 = {reg=[], lane=[1,2,4,8,16], warp=[]} : [32]\n    \
                 layout #1 = {reg=[], lane=[16,1,2,4,8], warp=[]} : [32]\nblock0:\n    \
                 v9 = arange {start = 0} : i32[32; #0]\n    v1 = convert_layout v9 : i32[32; #1]\n",
            )
            .replace("{axis = 0}", "{axis = 0, order = [4, 0, 1, 2, 3]}");
        let parse = |text: &str| parse_tile(text).expect("the text is valid");
        let mut func = parse(&dump);
        assert!(forget_layouts(&mut func));
        assert_eq!(print(&func), print(&parse(source)));
        assert!(!forget_layouts(&mut func));
    }
}
