//! Recipes for tensor maps: what a launcher computes from a kernel's arguments, and from the grid, to describe a tensor to
//! the copy engine (TMA).
//!
//! A kernel whose function has recipes takes one parameter of 128 bytes for each, behind its own. Who launches it evaluates the
//! recipes; where the condition of one is zero, where a number of it cannot be computed or where the driver would refuse the
//! map, it launches the kernel compiled without maps instead.

mod list;
mod number;
mod of;
mod parse;
#[cfg(test)]
mod tests;
mod why_not;

use std::fmt;

use super::types::Scalar;

pub use list::{NumberList, Written};
pub use number::{HostNumber, NumberOp};
pub use of::{HostNumbers, Place};
pub use parse::RecipeError;
pub use why_not::MapArguments;

/// Most dimensions of a tensor map.
pub const MAX_RANK: usize = 5;
/// Bytes of which the address of a tensor is a multiple.
const ALIGN: u64 = 16;
/// Bytes of an encoded map.
pub const MAP_BYTES: u32 = 128;
/// Alignment of an encoded map in bytes.
pub const MAP_ALIGN: u32 = 64;

/// How one tensor map is made. Dimensions are listed from the outermost one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MapRecipe {
    /// Index of the kernel's parameter that points into the tensor.
    pub base: u32,
    /// Elements from there to the tensor's first.
    pub offset: HostNumber,
    /// Elements of the tensor.
    pub elem: Scalar,
    /// Extents of the tensor.
    pub extents: Vec<HostNumber>,
    /// Elements from one index to the next, of all dimensions but the last, whose stride is 1.
    pub strides: Vec<HostNumber>,
    /// Extents of the box that one copy moves.
    pub tile: Vec<u32>,
    /// Bytes within which 16-byte pieces of shared memory change places: 32, 64 or 128; 0 if they do not.
    pub swizzle: u32,
    /// Whether elements outside of the tensor read as NaN and not as zero.
    pub nan: bool,
    /// What the other numbers have in common ([`HostNumber::Part`]); each is made of earlier ones only.
    pub parts: Vec<HostNumber>,
    /// Whether the map describes what the kernel reads: not where this is zero or fails.
    pub condition: HostNumber,
}

/// What the driver encodes. Dimensions are listed from the innermost one; entries beyond `rank` are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Number of dimensions.
    pub rank: usize,
    /// Address of the tensor's first element.
    pub base: u64,
    /// Extents of the tensor.
    pub extents: [u64; MAX_RANK],
    /// Bytes from one index to the next, of all dimensions but the innermost.
    pub strides: [u64; MAX_RANK - 1],
}

impl MapRecipe {
    /// Whether a map of such elements, box and swizzle exists, whatever the arguments are: why not.
    ///
    /// # Errors
    ///
    /// A rule of tensor maps that the recipe breaks.
    pub fn check(&self) -> Result<(), String> {
        let rank = self.extents.len();
        if !(1..=MAX_RANK).contains(&rank) {
            return Err(format!(
                "a map has 1 to {MAX_RANK} dimensions, this one {rank}"
            ));
        }
        if self.strides.len() != rank - 1 || self.tile.len() != rank {
            return Err(format!(
                "a map of {rank} dimensions has {} strides and a box of {rank} extents, this one has {} and {}",
                rank - 1,
                self.strides.len(),
                self.tile.len()
            ));
        }
        if self.elem == Scalar::I1 {
            return Err("a map is not of truth values; use i8".to_owned());
        }
        if let Some(extent) = self.tile.iter().find(|&&e| !(1..=256).contains(&e)) {
            return Err(format!("an extent of a box is 1 to 256, not {extent}"));
        }
        if ![0, 32, 64, 128].contains(&self.swizzle) {
            return Err(format!(
                "a swizzle spans 0, 32, 64 or 128 bytes, not {}",
                self.swizzle
            ));
        }
        let inner = self.tile[rank - 1] * self.elem.bytes();
        if !inner.is_multiple_of(16) {
            return Err(format!(
                "the rows of a box are a multiple of 16 bytes long, not {inner}"
            ));
        }
        if self.swizzle != 0 && inner > self.swizzle {
            return Err(format!(
                "the rows of a box are {inner} bytes long, which is more than the swizzle's {}",
                self.swizzle
            ));
        }
        let floats = [Scalar::F16, Scalar::Bf16, Scalar::F32, Scalar::F64];
        if self.nan && !floats.contains(&self.elem) {
            return Err(format!("{} outside of a tensor reads as zero", self.elem));
        }
        let earlier = self.parts.iter().enumerate();
        let others = self.numbers().skip(self.parts.len());
        let mut counted = earlier.chain(others.map(|number| (self.parts.len(), number)));
        match counted.find_map(|(count, number)| number.part_from(count as u32)) {
            Some(part) => Err(format!(
                "n{part} is no part that stands before what is made of it"
            )),
            None => Ok(()),
        }
    }

    /// The map for these arguments: `params` gives the kernel's parameters of integer type, sign-extended, and `base` is the
    /// address that parameter [`base`](MapRecipe::base) has. None if the plain variant must be launched: where the condition
    /// does not hold, where a number cannot be computed, and where the driver would refuse the map.
    pub fn resolve(
        &self,
        base: u64,
        params: &dyn Fn(u32) -> Option<i64>,
        grid: [u32; 3],
    ) -> Option<Resolved> {
        self.check().ok()?;
        let parts = self.values_of_parts(params, grid)?;
        let mut numbers = self.numbers().skip(parts.len());
        self.resolve_by(base, || numbers.next()?.eval(params, grid, &parts))
    }

    /// What [`parts`](MapRecipe::parts) are for these arguments; none where one of them has no result.
    pub fn values_of_parts(
        &self,
        params: &dyn Fn(u32) -> Option<i64>,
        grid: [u32; 3],
    ) -> Option<Vec<i64>> {
        let mut values = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            values.push(part.eval(params, grid, &values)?);
        }
        Some(values)
    }

    /// The map whose numbers `next` gives in the order of [`MapRecipe::numbers`], from the first behind the parts on.
    fn resolve_by(&self, base: u64, mut next: impl FnMut() -> Option<i64>) -> Option<Resolved> {
        let bytes = i64::from(self.elem.bytes());
        let offset = next()?.checked_mul(bytes)?;
        if next()? == 0 {
            return None;
        }
        let mut map = Resolved {
            rank: self.extents.len(),
            base: base.checked_add_signed(offset)?,
            extents: [0; MAX_RANK],
            strides: [0; MAX_RANK - 1],
        };
        if !map.base.is_multiple_of(ALIGN) {
            return None;
        }
        for to in map.extents.get_mut(..map.rank)?.iter_mut().rev() {
            *to = extent(next()?)?;
        }
        for to in map.strides.get_mut(..map.rank - 1)?.iter_mut().rev() {
            *to = stride(next()?, bytes)?;
        }
        Some(map)
    }

    /// Every number of the recipe: parts, offset, condition, extents and strides.
    pub fn numbers(&self) -> impl Iterator<Item = &HostNumber> {
        let both = [&self.offset, &self.condition];
        (self.parts.iter().chain(both))
            .chain(&self.extents)
            .chain(&self.strides)
    }
}

impl Resolved {
    /// The address of the same tensor where the parameter that points into it is `to` in place of `from`; none if it has no map.
    pub fn moved(&self, from: u64, to: u64) -> Option<u64> {
        let offset = self.base.wrapping_sub(from).cast_signed();
        let base = to.checked_add_signed(offset)?;
        base.is_multiple_of(ALIGN).then_some(base)
    }
}

/// An extent that the driver takes.
fn extent(extent: i64) -> Option<u64> {
    let extent = u64::try_from(extent).ok();
    extent.filter(|extent| (1..=1 << 32).contains(extent))
}

/// The bytes of a stride of elements of so many bytes each that the driver takes.
fn stride(elements: i64, bytes: i64) -> Option<u64> {
    let stride = u64::try_from(elements.checked_mul(bytes)?).ok();
    stride.filter(|stride| stride.is_multiple_of(ALIGN) && *stride < 1 << 40)
}

/// As in `{base=p0, offset=0, elem=f16, extents=[p3, p4], strides=[p5], box=[64, 64], swizzle=128, nan, if=le(1, p3)}`.
impl fmt::Display for MapRecipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn list<T: fmt::Display>(items: &[T]) -> String {
            let items: Vec<String> = items.iter().map(T::to_string).collect();
            items.join(", ")
        }
        let (base, offset, elem) = (self.base, &self.offset, self.elem);
        let (extents, strides, tile) = (list(&self.extents), list(&self.strides), list(&self.tile));
        write!(
            f,
            "{{base=p{base}, offset={offset}, elem={elem}, extents=[{extents}], strides=[{strides}], box=[{tile}]"
        )?;
        if self.swizzle != 0 {
            write!(f, ", swizzle={}", self.swizzle)?;
        }
        if self.nan {
            f.write_str(", nan")?;
        }
        if !self.parts.is_empty() {
            write!(f, ", parts=[{}]", list(&self.parts))?;
        }
        write!(f, ", if={}}}", self.condition)
    }
}
