//! Where pointers to device memory come from.

use cranelift_entity::SecondaryMap;

use crate::ir::attrs::Attrs;
use crate::ir::entities::Value;
use crate::ir::function::ThreadFunction;
use crate::ir::ops::ThreadOp;

/// What a pointer to device memory was made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// Nothing seen yet; of the values that can be reached, none stays so.
    #[default]
    Unseen,
    /// This parameter of the kernel.
    Param(Value),
    /// The module's log.
    Log,
    /// Several, or something else.
    Unknown,
}

impl Origin {
    fn join(self, other: Origin) -> Origin {
        match (self, other) {
            (Origin::Unseen, x) | (x, Origin::Unseen) => x,
            (a, b) if a == b => a,
            _ => Origin::Unknown,
        }
    }

    /// Whether two pointers may be to the same element.
    pub(super) fn meets(self, other: Origin) -> bool {
        let is_log = [self, other].contains(&Origin::Log);
        !is_log && (self == other || self == Origin::Unknown || other == Origin::Unknown)
    }
}

/// Where each pointer to device memory comes from. Values only move from unseen to a parameter to unknown, so the
/// iteration ends.
pub(super) fn origins(func: &ThreadFunction) -> SecondaryMap<Value, Origin> {
    let mut origins: SecondaryMap<Value, Origin> = SecondaryMap::new();
    for &param in func.params() {
        origins[param] = Origin::Param(param);
    }
    for (_, inst) in func.all_insts() {
        let data = &func.dfg.insts[inst];
        if let (ThreadOp::MapAddr, Some(&index)) = (data.op, data.index()) {
            let map = func.maps.get(usize::from(index));
            let base = map.and_then(|map| func.params().get(map.base as usize));
            origins[data.results[0]] = base.map_or(Origin::Unknown, |&base| Origin::Param(base));
        }
    }
    let is_ptr = |v: Value| func.dfg.ty(v).elem.is_ptr();
    let mut changed = true;
    while changed {
        changed = false;
        let mut flow = |origins: &mut SecondaryMap<Value, Origin>, to: Value, from: Origin| {
            let joined = origins[to].join(from);
            changed |= joined != origins[to];
            origins[to] = joined;
        };
        for &block in &func.order.blocks {
            for &inst in func.order.insts(block) {
                let data = &func.dfg.insts[inst];
                for &result in data.results.iter().filter(|&&v| is_ptr(v)) {
                    let pointers = data.args.iter().filter(|&&v| is_ptr(v));
                    let from = pointers.fold(Origin::Unseen, |o, &v| o.join(origins[v]));
                    let made_here = !data.args.iter().any(|&v| is_ptr(v));
                    let from = match data.op {
                        // No pointer of the kernel leads there.
                        ThreadOp::LogAddr => Origin::Log,
                        _ if made_here => Origin::Unknown,
                        _ => from,
                    };
                    flow(&mut origins, result, from);
                }
                for call in &data.blocks {
                    let params = func.dfg.blocks[call.block].params.iter();
                    for (&param, &arg) in params.zip(&call.args).filter(|&(&p, _)| is_ptr(p)) {
                        let from = origins[arg];
                        flow(&mut origins, param, from);
                    }
                }
            }
        }
    }
    origins
}
