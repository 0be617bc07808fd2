//! On which targets something exists: an instruction, a unit.

use super::Target;

/// On which targets something exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exists {
    /// From this architecture on.
    From(u32),
    /// With the features of this architecture alone: 90 stands for `sm_90a`.
    Only(u32),
    /// With the features of this architecture or of a later one of its generation.
    Family(u32),
}

impl Exists {
    /// Whether the target has it.
    pub const fn on(self, target: Target) -> bool {
        match self {
            Exists::From(sm) => sm <= target.sm,
            Exists::Only(sm) => target.specific && sm == target.sm,
            Exists::Family(sm) => target.specific && sm <= target.sm && sm / 10 == target.sm / 10,
        }
    }
}

/// The column of a table: `80`, `(90 only)` or `(100 family)`.
macro_rules! exists {
    ($sm:literal) => {
        $crate::settings::Exists::From($sm)
    };
    (($sm:literal only)) => {
        $crate::settings::Exists::Only($sm)
    };
    (($sm:literal family)) => {
        $crate::settings::Exists::Family($sm)
    };
}
pub(crate) use exists;

#[cfg(test)]
mod tests {
    use super::*;

    fn specific(sm: u32) -> Target {
        Target { sm, specific: true }
    }

    #[test]
    fn what_only_one_architecture_has_is_on_no_other() {
        assert_eq!(exists!((90 only)), Exists::Only(90));
        assert!(exists!((90 only)).on(Target::SM_90A));
        assert!(!exists!((90 only)).on(Target::SM_90));
        assert!(!exists!((90 only)).on(specific(100)));
    }

    #[test]
    fn a_family_shares_what_its_first_architecture_has() {
        assert_eq!(exists!((100 family)), Exists::Family(100));
        let on = [100, 103, 90, 120].map(|sm| exists!((100 family)).on(specific(sm)));
        assert_eq!(on, [true, true, false, false]);
        assert!(!exists!((100 family)).on(Target::SM_100));
    }

    #[test]
    fn the_rest_stays_for_good() {
        assert_eq!(exists!(80), Exists::From(80));
        let on = [Target::SM_75, Target::SM_80, Target::SM_90A, Target::SM_120];
        assert_eq!(
            on.map(|target| exists!(80).on(target)),
            [false, true, true, true]
        );
    }
}
