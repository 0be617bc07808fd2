//! Which accesses have a map in common.
//!
//! Accesses of one tensor with the same start, extents, strides and box share a map. So do those that start a number of rows or columns
//! later, along a dimension without bounds in which boxes start at different numbers, as what is loaded of the next columns in one iteration,
//! or of the same tensor in a second loop: the map is that of the first of them, and the others start so much later. Each map is encoded at a
//! launch, handed over as 128 bytes, and fetched by each SM before its first copy.

use super::plan::{ANY, Dim, Plan, is_for_launch};
use super::rewrite::Planned;
use crate::analysis::affine::host::{Host, Hosts, Le, Node};
use crate::analysis::affine::reach::extend;
use crate::ir::entities::Value;

/// How far apart accesses of one map are at most. Beyond half of what an index reaches the map would rather lack room for the later one's boxes,
/// and the launch all its maps.
const FARTHEST: i64 = ANY / 2;

/// What makes a map another one: where it starts, and its extents, strides and box.
type Key = (Value, Host, Vec<(Host, Host, u32)>);

/// A map that accesses share.
pub(super) struct Shared {
    pub(super) key: Key,
    /// When all of them may use it.
    pub(super) conds: Vec<Le>,
}

/// The map of an access.
pub(super) struct Place {
    /// Its number.
    pub(super) map: usize,
    /// By how much the access starts later along a dimension.
    pub(super) later: Option<(usize, i64)>,
}

/// The maps, and each access's.
pub(super) fn share(hosts: &mut Hosts, planned: &[Planned]) -> (Vec<Shared>, Vec<Place>) {
    let mut maps: Vec<Shared> = Vec::new();
    let places = planned.iter().map(|Planned { plan, .. }| {
        let before = planned
            .iter()
            .filter_map(|first| Some((first, apart(hosts, &first.plan, plan)?)))
            .max_by_key(|(_, apart)| apart.count);
        let shared = before.and_then(|(first, apart)| {
            let conds = plan.conds.iter().copied().chain(apart.needed);
            let map = place(hosts, &mut maps, &first.plan, conds)?;
            Some(Place {
                map,
                later: Some((apart.dim, apart.count)),
            })
        });
        shared.unwrap_or_else(|| {
            let map = place(hosts, &mut maps, plan, plan.conds.iter().copied());
            let map = map.unwrap_or_else(|| {
                maps.push(Shared {
                    key: key(plan),
                    conds: plan.conds.clone(),
                });
                maps.len() - 1
            });
            Place { map, later: None }
        })
    });
    let places = places.collect();
    (maps, places)
}

fn key(plan: &Plan) -> Key {
    let dims = plan.dims.iter().map(|d| (d.extent, d.stride, d.tile));
    (plan.base, plan.offset, dims.collect())
}

/// The map of a plan, for an access with conditions: one that is there, or a new one. None if its numbers are too many for a launch.
fn place(
    hosts: &Hosts,
    maps: &mut Vec<Shared>,
    plan: &Plan,
    conds: impl Iterator<Item = Le>,
) -> Option<usize> {
    let key = key(plan);
    let conds: Vec<Le> = conds.collect();
    let fits = |all: &[Le]| {
        let numbers = key
            .2
            .iter()
            .flat_map(|&(extent, stride, _)| [extent, stride]);
        is_for_launch(hosts, numbers.chain([key.1]), all)
    };
    for (number, map) in maps
        .iter_mut()
        .enumerate()
        .filter(|(_, map)| map.key == key)
    {
        let mut all = map.conds.clone();
        extend(&mut all, conds.iter().copied());
        if fits(&all) {
            map.conds = all;
            return Some(number);
        }
    }
    if !fits(&conds) {
        return None;
    }
    maps.push(Shared { key, conds });
    Some(maps.len() - 1)
}

/// How far apart two accesses are.
struct Apart {
    dim: usize,
    /// At least one.
    count: i64,
    /// What keeps the later one's boxes within the map of the first.
    needed: Option<Le>,
}

/// How far behind another access one starts, if their boxes are alike and that is a number along a dimension without bounds.
fn apart(hosts: &mut Hosts, first: &Plan, later: &Plan) -> Option<Apart> {
    let is_alike =
        |(a, b): (&Dim, &Dim)| (a.extent, a.stride, a.tile) == (b.extent, b.stride, b.tile);
    if first.base != later.base
        || first.dims.len() != later.dims.len()
        || !first.dims.iter().zip(&later.dims).all(is_alike)
    {
        return None;
    }
    let distance = hosts.sub(later.offset, first.offset);
    let (dim, count) = later.dims.iter().enumerate().find_map(|(i, dim)| {
        dim.last?;
        let count = times(hosts, distance, dim.stride)?;
        (1..=FARTHEST).contains(&count).then_some((i, count))
    })?;
    let Dim { last, tile, .. } = later.dims[dim];
    let by = hosts.number(count);
    let last = hosts.add(last?, by);
    let most = hosts.number(ANY - i64::from(tile));
    let needed = hosts.le(last, most)?;
    Some(Apart { dim, count, needed })
}

/// The constant by which a stride was multiplied.
fn times(hosts: &Hosts, distance: Host, stride: Host) -> Option<i64> {
    if distance == stride {
        return Some(1);
    }
    match (hosts.node(distance), hosts.constant(stride)) {
        (Node::Const(distance), Some(stride)) => {
            let is_whole = distance.checked_rem(stride) == Some(0);
            is_whole.then(|| distance / stride)
        }
        (Node::Mul(a, count), _) if a == stride => hosts.constant(count),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::{ANY, Dim, Plan};
    use super::super::rewrite::Planned;
    use super::share;
    use crate::analysis::affine::Poly;
    use crate::analysis::affine::host::{Host, Hosts};
    use crate::ir::entities::{Inst, Value};

    /// An access of a tensor whose boxes of 16 x 32 begin so many elements behind its first one, of which nothing bounds the columns.
    fn access(hosts: &mut Hosts, [offset, row, last]: [Host; 3], rows: Option<Host>) -> Planned {
        let [any, one] = [ANY, 1].map(|number| hosts.number(number));
        let dim = |stride, extent, tile, last| Dim {
            stride,
            extent,
            tile,
            start: Poly::default(),
            of: None,
            last,
        };
        let rows = match rows {
            Some(bound) => dim(row, bound, 16, None),
            None => dim(row, any, 16, Some(last)),
        };
        let plan = Plan {
            access: Inst::from_u32(0),
            base: Value::from_u32(0),
            offset,
            dims: vec![rows, dim(one, any, 32, Some(last))],
            conds: Vec::new(),
            starts_anywhere: false,
        };
        Planned {
            plan,
            starts: Vec::new(),
        }
    }

    /// How many maps two accesses have, the second one so far behind the first, and by how much it starts later.
    fn shared(
        hosts: &mut Hosts,
        [distance, row]: [Host; 2],
        rows: Option<Host>,
    ) -> (usize, Option<(usize, i64)>) {
        let last = hosts.param(Value::from_u32(9), 32);
        let zero = hosts.number(0);
        // Whichever of them stands first.
        let both = [distance, zero].map(|offset| access(hosts, [offset, row, last], rows));
        let (maps, places) = share(hosts, &both);
        assert_eq!(places[1].later, None);
        if let Some((_, count)) = places[0].later {
            assert_eq!(places[0].map, places[1].map);
            let tile = [16, 32][places[0].later.map_or(0, |(dim, _)| dim)];
            let (count, most) = (hosts.number(count), hosts.number(ANY - tile));
            let last = hosts.add(last, count);
            assert_eq!(maps[places[0].map].conds, [(last, most)]);
        }
        (maps.len(), places[0].later)
    }

    #[test]
    fn boxes_a_whole_number_apart_along_one_dimension_share_a_map() {
        let mut hosts = Hosts::default();
        let row = hosts.param(Value::from_u32(1), 32);
        let numbers = [0, 3, 24, 64, 72].map(|number| hosts.number(number));
        let [zero, three, of_24, of_64, of_72] = numbers;
        let three_rows = hosts.mul(row, three);
        let bound = hosts.param(Value::from_u32(2), 32);
        // Along rows, if nothing bounds them, and along columns.
        assert_eq!(shared(&mut hosts, [row, row], None), (1, Some((0, 1))));
        assert_eq!(
            shared(&mut hosts, [three_rows, row], None),
            (1, Some((0, 3)))
        );
        assert_eq!(shared(&mut hosts, [row, row], Some(bound)), (2, None));
        assert_eq!(
            shared(&mut hosts, [of_64, row], Some(bound)),
            (1, Some((1, 64)))
        );
        // Rows of 24 elements: three of them, or as many columns as are no rows.
        assert_eq!(shared(&mut hosts, [of_72, of_24], None), (1, Some((0, 3))));
        assert_eq!(shared(&mut hosts, [of_64, of_24], None), (1, Some((1, 64))));
        // Nothing apart: the same boxes.
        assert_eq!(shared(&mut hosts, [zero, row], None), (1, None));
    }

    #[test]
    fn boxes_of_two_tensors_or_beyond_what_an_index_reaches_do_not() {
        let mut hosts = Hosts::default();
        let [zero, far, row, last] = [0, 64, 4096, ANY - 64].map(|number| hosts.number(number));
        let both = [zero, far].map(|offset| access(&mut hosts, [offset, row, last], None));
        assert_eq!(share(&mut hosts, &both).0.len(), 2);
        // The condition would be one of the launch, and rarely hold.
        let n = hosts.param(Value::from_u32(9), 32);
        let farther = hosts.number(3_000_000_000);
        let both = [zero, farther].map(|offset| access(&mut hosts, [offset, row, n], None));
        assert_eq!(share(&mut hosts, &both).0.len(), 2);
        let last = hosts.number(ANY - 96);
        let mut both = [zero, far].map(|offset| access(&mut hosts, [offset, row, last], None));
        assert_eq!(share(&mut hosts, &both).0.len(), 1);
        both[1].plan.base = Value::from_u32(1);
        assert_eq!(share(&mut hosts, &both).0.len(), 2);
    }
}
