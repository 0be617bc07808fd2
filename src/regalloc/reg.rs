//! Registers before and after allocation.
//!
//! A *unit* is one virtual register. A *group* is a row of units of one class that belong to one value;
//! the allocator gives it adjacent names and never tears it. A [`RegView`] is how an instruction refers to
//! units: a row with a step, so that a scalar stands for all elements of a pack (step 0) and a conversion
//! writes every second register (step 2), or a list, which is what renaming ops leave behind.

use cranelift_entity::{PrimaryMap, entity_impl};

/// One virtual register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Unit(u32);
entity_impl!(Unit, "u");

/// A row of virtual registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Group(u32);
entity_impl!(Group, "g");

/// Register classes. PTX's untyped registers take part in instructions of any type of their width, so
/// one class per width is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum RegClass {
    /// Truth values.
    P,
    /// 16 bits, and 8 bits with anything above.
    H,
    /// 32 bits.
    W,
    /// 64 bits.
    D,
}

impl RegClass {
    /// Every class.
    pub(crate) const ALL: [RegClass; 4] = [RegClass::P, RegClass::H, RegClass::W, RegClass::D];

    /// Position in [`RegClass::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// Prefix of the names of its registers.
    pub(crate) fn prefix(self) -> &'static str {
        ["%p", "%rs", "%r", "%rd"][self.index()]
    }

    /// Type in the declaration of its registers.
    pub(crate) fn declaration(self) -> &'static str {
        [".pred", ".b16", ".b32", ".b64"][self.index()]
    }

    /// 32-bit registers of the machine that one of the class takes; predicates have a file of their own.
    pub(crate) fn words(self) -> u32 {
        [0, 1, 1, 2][self.index()]
    }
}

/// A row of units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupData {
    /// Class of all of them.
    pub(crate) class: RegClass,
    /// The first; the others follow it.
    pub(crate) first: Unit,
    /// How many.
    pub(crate) count: u16,
}

/// Units an operand refers to, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegView {
    /// First unit, or place in the table of lists.
    base: u32,
    /// Distance from one to the next.
    step: u16,
    /// How many.
    pub(crate) count: u16,
    listed: bool,
}

/// What an instruction does with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// Reads it before anything is written.
    Use,
    /// Reads it in the repetition in which the unit at the same place of the destination is written, or
    /// in one before.
    AlignedUse,
    /// Reads it while parts of the destination may be written already.
    LateUse,
    /// Writes it.
    Def,
    /// Writes it under a predicate, and else leaves it as it was.
    Mod,
}

/// All groups and lists of a function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registers {
    /// Groups.
    pub(crate) groups: PrimaryMap<Group, GroupData>,
    /// The group of each unit.
    owner: PrimaryMap<Unit, Group>,
    lists: Vec<Unit>,
}

impl Registers {
    /// A new group.
    pub(crate) fn make_group(&mut self, class: RegClass, count: u16) -> Group {
        let first = self.owner.next_key();
        let group = self.groups.push(GroupData {
            class,
            first,
            count,
        });
        for _ in 0..count {
            self.owner.push(group);
        }
        group
    }

    /// Makes each unit of a group a group of its own. The group stays as one without units.
    pub(crate) fn dissolve(&mut self, group: Group) {
        let GroupData {
            class,
            first,
            count,
        } = self.groups[group];
        if count < 2 {
            return;
        }
        self.groups[group].count = 0;
        for i in 0..u32::from(count) {
            let unit = Unit::from_u32(first.as_u32() + i);
            self.owner[unit] = self.groups.push(GroupData {
                class,
                first: unit,
                count: 1,
            });
        }
    }

    /// The group of a unit.
    pub(crate) fn group_of(&self, unit: Unit) -> Group {
        self.owner[unit]
    }

    /// Number of units.
    pub(crate) fn num_units(&self) -> usize {
        self.owner.len()
    }

    /// The class of a unit.
    pub(crate) fn class_of(&self, unit: Unit) -> RegClass {
        self.groups[self.owner[unit]].class
    }

    /// All units of a group.
    pub(crate) fn whole(&self, group: Group) -> RegView {
        let data = self.groups[group];
        RegView {
            base: data.first.as_u32(),
            step: 1,
            count: data.count,
            listed: false,
        }
    }

    /// A view of the given units, as a row if they stand in one.
    pub(crate) fn view_of(&mut self, units: &[Unit]) -> RegView {
        let count = units.len() as u16;
        let base = units.first().map_or(0, |u| u.as_u32());
        let step = match units {
            [a, b, ..] if a <= b && b.as_u32() - a.as_u32() <= 16 => b.as_u32() - a.as_u32(),
            [_] => 1,
            _ => u32::MAX,
        };
        let is_row = (0u32..).zip(units).all(|(i, u)| {
            step.checked_mul(i).and_then(|d| d.checked_add(base)) == Some(u.as_u32())
        });
        if is_row {
            return RegView {
                base,
                step: step as u16,
                count,
                listed: false,
            };
        }
        let base = self.lists.len() as u32;
        self.lists.extend_from_slice(units);
        RegView {
            base,
            step: 1,
            count,
            listed: true,
        }
    }

    /// Unit `i` of a view.
    pub(crate) fn unit(&self, view: RegView, i: u16) -> Unit {
        let place = view.base + u32::from(view.step) * u32::from(i);
        if view.listed {
            self.lists[place as usize]
        } else {
            Unit::from_u32(place)
        }
    }

    /// The units of a view.
    pub(crate) fn units(&self, view: RegView) -> impl Iterator<Item = Unit> + '_ {
        (0..view.count).map(move |i| self.unit(view, i))
    }

    /// Whether a view is a whole group in order.
    pub(crate) fn is_whole(&self, view: RegView) -> bool {
        if view.listed || view.count == 0 || (view.step != 1 && view.count > 1) {
            return false;
        }
        let data = self.groups[self.owner[Unit::from_u32(view.base)]];
        data.first.as_u32() == view.base && data.count == view.count
    }
}

impl RegView {
    /// The same unit `count` times.
    pub(crate) fn repeat(self, count: u16) -> RegView {
        RegView {
            step: 0,
            count,
            ..self
        }
    }

    /// Every second unit, from `start` (0 or 1) on.
    pub(crate) fn every_second(self, start: u16) -> RegView {
        RegView {
            base: self.base + u32::from(start) * u32::from(self.step),
            step: 2 * self.step,
            count: self.count / 2,
            listed: self.listed,
        }
    }

    /// Units `from .. from + count`.
    pub(crate) fn part(self, from: u16, count: u16) -> RegView {
        RegView {
            base: self.base + u32::from(from) * u32::from(self.step),
            count,
            ..self
        }
    }

    /// Whether every element is the same unit.
    pub(crate) fn is_uniform(self) -> bool {
        self.count == 1 || self.step == 0
    }

    /// The same view after the units from `old` on, `count` of them, became those from `new` on at distance `step`;
    /// none if it refers to others.
    pub(crate) fn moved(self, old: Unit, count: u16, new: Unit, step: u16) -> Option<RegView> {
        let within = self.base.checked_sub(old.as_u32())?;
        if self.listed || within >= u32::from(count) {
            return None;
        }
        Some(RegView {
            base: new.as_u32() + within * u32::from(step),
            step: self.step * step,
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_name_rows_and_lists() {
        let mut regs = Registers::default();
        let a = regs.make_group(RegClass::W, 4);
        let b = regs.make_group(RegClass::W, 4);
        let whole = regs.whole(b);
        assert!(regs.is_whole(whole));
        let odd: Vec<u32> = regs
            .units(whole.every_second(1))
            .map(Unit::as_u32)
            .collect();
        assert_eq!(odd, [5, 7]);
        assert!(!regs.is_whole(whole.part(1, 2)));
        let mixed = [Unit::from_u32(3), Unit::from_u32(0), Unit::from_u32(6)];
        let list = regs.view_of(&mixed);
        assert_eq!(regs.units(list).collect::<Vec<_>>(), mixed);
        let first = regs.whole(a);
        let moved = first
            .every_second(1)
            .moved(Unit::from_u32(0), 4, Unit::from_u32(4), 2);
        let units: Vec<u32> = moved.map_or(vec![], |v| regs.units(v).map(Unit::as_u32).collect());
        assert_eq!(units, [6, 10]);
        assert_eq!(list.moved(Unit::from_u32(0), 4, Unit::from_u32(4), 1), None);
    }
}
