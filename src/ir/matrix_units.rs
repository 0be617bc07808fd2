//! The units that multiply matrices, generated from one table.

use std::ops::RangeInclusive;

use super::attrs::{DotPrecision, named_enum};
use super::literal::{Literal, Payload};
use super::types::{Elem, Scalar};
use crate::settings::{Exists, Target, exists};

#[macro_use]
#[path = "../../isa/matrix_units.rs"]
mod table;
pub(crate) use for_each_unit;

/// When a unit's result is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Where the next instruction starts.
    Now,
    /// Behind a wait, until which operands are read and results are written.
    UntilWait,
}

/// How threads hold the tiles that a unit is fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fragments {
    /// Four lanes hold a row, a word each.
    Rows,
    /// As m8n8k4 of f16 has it, with pieces across the summed dimension of the left operand and of the right one.
    QuadPairs(bool, bool),
}

/// A row of the table, which says what each column means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitInfo {
    /// Numbers of the left operand, of the right one and of the sum.
    pub scalars: [Scalar; 3],
    /// How exact its products are.
    pub precision: DotPrecision,
    /// Rows of an instruction.
    pub rows: u32,
    /// Columns of an instruction, the least and the most.
    pub columns: RangeInclusive<u32>,
    /// Length of the sums of an instruction.
    pub inner: u32,
    /// Rows, columns and length of the sums that it is fed at once.
    pub tile: [u32; 3],
    /// On which targets it exists.
    pub exists: Exists,
    /// Warps that execute an instruction together.
    pub warps: u32,
    /// When the sum is there.
    pub when: When,
    /// How threads hold tiles.
    pub fragments: Fragments,
}

macro_rules! most {
    ($least:literal) => {
        $least
    };
    ($least:literal $most:literal) => {
        $most
    };
}

macro_rules! define_units {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal ($left:ident $right:ident $sum:ident $precision:ident)
        m $rows:literal n $columns:literal $(to $most:literal)? k $inner:literal, tile $tile:expr, sm $sm:tt,
        warps $warps:literal, $when:ident, $fragments:ident $(($($crossed:literal),*))?,
        $ptx:ident ($($ty:ident)*);)*) => {
        named_enum! {
            /// A unit that multiplies matrices, by its instruction.
            MmaUnit { $($(#[doc = $doc])+ $variant = $name,)* }
        }

        impl MmaUnit {
            /// The row of the table.
            pub fn info(self) -> &'static UnitInfo {
                match self {
                    $(MmaUnit::$variant => {
                        static INFO: UnitInfo = UnitInfo {
                            scalars: [Scalar::$left, Scalar::$right, Scalar::$sum],
                            precision: DotPrecision::$precision,
                            rows: $rows,
                            columns: $columns..=most!($columns $($most)?),
                            inner: $inner,
                            tile: $tile,
                            exists: exists!($sm),
                            warps: $warps,
                            when: When::$when,
                            fragments: Fragments::$fragments $(($($crossed),*))?,
                        };
                        &INFO
                    })*
                }
            }
        }
    };
}
for_each_unit!(define_units);

impl MmaUnit {
    /// The unit of the target for numbers of these types, of which so many warps execute an instruction, if products that exact will
    /// do; the first of the table.
    pub fn of(
        scalars: [Scalar; 3],
        precision: DotPrecision,
        warps: u32,
        target: Target,
    ) -> Option<MmaUnit> {
        let fits = |unit: &MmaUnit| {
            let info = unit.info();
            let is_exact = [DotPrecision::Ieee, precision].contains(&info.precision);
            info.scalars == scalars && info.warps == warps && is_exact && info.exists.on(target)
        };
        MmaUnit::ALL.iter().copied().find(fits)
    }

    /// The unit that differs in its fragments alone; itself if there is none.
    pub fn with_fragments(self, fragments: Fragments) -> MmaUnit {
        let wanted = UnitInfo {
            fragments,
            ..self.info().clone()
        };
        let mut all = MmaUnit::ALL.iter().copied();
        all.find(|unit| *unit.info() == wanted).unwrap_or(self)
    }

    /// What holds operands in registers (8-bit numbers four to an i32), and what sums have.
    pub fn elems(self) -> (Elem, Elem) {
        let [left, _, sum] = self.info().scalars;
        let held = match left.bits() {
            8 => Scalar::I32,
            _ => left,
        };
        (Elem::Num(held), Elem::Num(sum))
    }

    /// Whether its instruction is m8n8k4 of f16.
    pub fn is_quad_pairs(self) -> bool {
        matches!(self.info().fragments, Fragments::QuadPairs(..))
    }

    /// Registers of a thread that hold a tile of the left operand and of the right one (words; of f64 numbers), and the numbers of the
    /// sum that it holds.
    pub fn tile_registers(self) -> [u32; 3] {
        match self.info().fragments {
            Fragments::QuadPairs(..) => [4, 4, 8],
            Fragments::Rows => [4, 2, 4],
        }
    }

    /// Instructions that a tile takes along its rows and along the summed dimension.
    pub fn steps(self) -> [u32; 2] {
        let info = self.info();
        let [rows, _, inner] = info.tile;
        [rows / info.rows, inner / info.inner]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_whole_instructions() {
        for unit in MmaUnit::ALL {
            let info = unit.info();
            let [rows, columns, inner] = info.tile;
            let wholes = [(rows, info.rows), (inner, info.inner)];
            assert!(wholes.iter().all(|(all, each)| all.is_multiple_of(*each)));
            assert!(info.columns.contains(&columns), "{unit:?}");
            let [left, right, sum] = info.scalars;
            assert_eq!(left.bits(), right.bits(), "{unit:?}");
            assert!(left.bits() <= sum.bits(), "{unit:?}");
        }
    }

    #[test]
    fn the_first_unit_of_a_target_is_taken() {
        let halves = [Scalar::F16, Scalar::F16, Scalar::F32];
        let of = |target| MmaUnit::of(halves, DotPrecision::Tf32, 1, target);
        assert_eq!(of(Target::SM_70), Some(MmaUnit::F16K4));
        assert_eq!(of(Target::SM_75), Some(MmaUnit::F16K8));
        assert_eq!(of(Target::SM_90A), Some(MmaUnit::F16));
        let by_four = |target| MmaUnit::of(halves, DotPrecision::Ieee, 4, target);
        assert_eq!(by_four(Target::SM_90A), Some(MmaUnit::WarpgroupF16));
        assert_eq!(by_four(Target::SM_90), None);
        assert_eq!(by_four(Target::SM_100), None);
        let singles = |precision| MmaUnit::of([Scalar::F32; 3], precision, 1, Target::SM_80);
        assert_eq!(singles(DotPrecision::Tf32), Some(MmaUnit::Tf32));
        assert_eq!(singles(DotPrecision::Ieee), None);
    }

    #[test]
    fn fragments_name_units() {
        let crossed = MmaUnit::F16K4.with_fragments(Fragments::QuadPairs(true, true));
        assert_eq!(crossed, MmaUnit::F16K4Transposed);
        let none = MmaUnit::F16.with_fragments(Fragments::QuadPairs(true, true));
        assert_eq!(none, MmaUnit::F16);
    }
}
