//! Coalescing: groups that should share registers become one bundle.
//!
//! Candidates are what would otherwise be moves: parameters with their arguments, and copies with what they copy.
//! Within a bundle each group stands at an offset, so a part of a pack can share registers with the pack it
//! becomes, and packs stay in one piece. Two bundles are joined if no two of their groups that would overlap in
//! registers are live at the same time. Comparisons are bounded; beyond the bound moves stay, and the program
//! is right all the same.

use cranelift_entity::EntitySet;

use super::live::{LiveRange, Liveness};
use super::{AllocFunction, Input};
use crate::regalloc::reg::{Group, Unit};
use crate::settings::diversity::Choices;

/// Comparisons of ranges for each group of the program, at most.
const EFFORT: usize = 64;

/// Which bundle each group belongs to, and where it stands there.
#[derive(Debug)]
pub(crate) struct Bundles {
    /// Bundle and offset of each group.
    place: Vec<(u32, i32)>,
    /// Groups of each bundle; empty if it was joined to another.
    members: Vec<Vec<Group>>,
    effort_left: usize,
}

impl Bundles {
    /// Joins what can be joined, or by other `choices` some of it.
    pub(crate) fn compute(
        program: &impl AllocFunction,
        live: &Liveness,
        choices: &mut Choices,
    ) -> Bundles {
        let n_groups = program.regs().groups.len();
        let mut bundles = Bundles {
            place: (0..n_groups as u32).map(|g| (g, 0)).collect(),
            members: vec![Vec::new(); n_groups],
            effort_left: EFFORT * n_groups,
        };
        let apart = [0, 30, 100][choices.below(3)];
        bundles.keep_in_flight(program, live);
        // Back edges first: a move there is paid for in every round.
        for back in [true, false] {
            for block in 0..program.num_blocks() {
                for edge in 0..program.num_edges(block) {
                    if (program.target(block, edge) <= block) == back {
                        let mut last = None;
                        program.inputs(block, edge, |to, input| {
                            if let Input::Unit(from) = input
                                && !choices.chance(apart)
                            {
                                bundles.want(program, live, to, from, &mut last);
                            }
                        });
                    }
                }
            }
        }
        for block in 0..program.num_blocks() {
            for inst in program.insts(block) {
                if let Some((to, from)) = program.copied(inst)
                    && !choices.chance(apart)
                {
                    let mut last = None;
                    for i in 0..to.count {
                        let (to, from) = (program.regs().unit(to, i), program.regs().unit(from, i));
                        bundles.want(program, live, to, from, &mut last);
                    }
                }
            }
        }
        bundles
    }

    /// Joins what changes in flight along every way, whatever the choices.
    fn keep_in_flight(&mut self, program: &impl AllocFunction, live: &Liveness) {
        let mut changing = EntitySet::new();
        program.in_flight(|unit| {
            changing.insert(unit);
        });
        for block in 0..program.num_blocks() {
            for edge in 0..program.num_edges(block) {
                let mut last = None;
                program.inputs(block, edge, |to, input| {
                    if let Input::Unit(from) = input
                        && (changing.contains(from) || changing.contains(to))
                    {
                        self.want(program, live, to, from, &mut last);
                    }
                });
            }
        }
    }

    /// Number of bundles that ever were.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// Bundle and offset of a group.
    pub(crate) fn place(&self, group: Group) -> (u32, i32) {
        self.place[group.as_u32() as usize]
    }

    /// Joins the bundles of two units so that the units fall together, if they can be.
    fn want(
        &mut self,
        program: &impl AllocFunction,
        live: &Liveness,
        to: Unit,
        from: Unit,
        last: &mut Option<(Group, Group, i32)>,
    ) {
        let regs = program.regs();
        let (a, b) = (regs.group_of(to), regs.group_of(from));
        let index = |unit: Unit, group| (unit.as_u32() - regs.groups[group].first.as_u32()) as i32;
        let distance = index(to, a) - index(from, b);
        // Units of one row ask the same question once.
        if *last == Some((a, b, distance)) {
            return;
        }
        *last = Some((a, b, distance));
        let ((bundle_a, offset_a), (bundle_b, offset_b)) = (self.place(a), self.place(b));
        if bundle_a == bundle_b || regs.groups[a].class != regs.groups[b].class {
            return;
        }
        // Offset of b's bundle within a's.
        let shift = offset_a + distance - offset_b;
        let groups_a = self.groups_of(bundle_a);
        let groups_b = self.groups_of(bundle_b);
        for &x in &groups_a {
            for &y in &groups_b {
                let (at_x, at_y) = (self.place(x).1, self.place(y).1 + shift);
                let (len_x, len_y) = (
                    i32::from(regs.groups[x].count),
                    i32::from(regs.groups[y].count),
                );
                if at_x + len_x <= at_y || at_y + len_y <= at_x {
                    continue;
                }
                let aligned = at_x == at_y && len_x == len_y;
                let (ranges_x, ranges_y) = (live.ranges(x), live.ranges(y));
                let cost = 1 + ranges_x.len() + ranges_y.len();
                if self.effort_left < cost || overlap(ranges_x, ranges_y, aligned) {
                    self.put_back(bundle_a, groups_a, bundle_b, groups_b);
                    return;
                }
                self.effort_left -= cost;
            }
        }
        for &y in &groups_b {
            let offset = self.place(y).1 + shift;
            self.place[y.as_u32() as usize] = (bundle_a, offset);
        }
        let mut all = groups_a;
        all.extend(groups_b);
        self.members[bundle_a as usize] = all;
    }

    /// Takes out the groups of a bundle; one that was never joined has its own group alone.
    fn groups_of(&mut self, bundle: u32) -> Vec<Group> {
        let mut groups = std::mem::take(&mut self.members[bundle as usize]);
        if groups.is_empty() {
            groups.push(Group::from_u32(bundle));
        }
        groups
    }

    fn put_back(&mut self, a: u32, groups_a: Vec<Group>, b: u32, groups_b: Vec<Group>) {
        self.members[a as usize] = groups_a;
        self.members[b as usize] = groups_b;
    }
}

/// Whether two groups are live at the same time. Where they do not lie exactly on each other, the end of the one
/// must not touch the start of the other either: an instruction over a pack writes its first registers before it
/// reads the last.
fn overlap(a: &[LiveRange], b: &[LiveRange], aligned: bool) -> bool {
    let gap = u32::from(!aligned);
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if a[i].end + gap <= b[j].start {
            i += 1;
        } else if b[j].end + gap <= a[i].start {
            j += 1;
        } else {
            return true;
        }
    }
    false
}
