//! Tensor maps of the emulator: what a bulk copy of a box of a tensor needs to know, in the 128 bytes that a kernel gets.
//!
//! The hardware's own coding is not public. Ours takes what `cuTensorMapEncodeTiled` takes, under the same rules.

use std::num::NonZeroU32;

use thiserror::Error;

/// Bytes of an encoded map.
const BYTES: usize = 128;
/// What an encoded map starts with.
const MAGIC: u32 = 0x4d54_4c54;
/// Most dimensions.
const RANK: usize = 5;

/// The type of the elements of a tensor, with the number that the driver gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as types of PTX")]
pub enum TensorElement {
    U8 = 0,
    U16 = 1,
    U32 = 2,
    S32 = 3,
    U64 = 4,
    S64 = 5,
    F16 = 6,
    F32 = 7,
    F64 = 8,
    BF16 = 9,
}

impl TensorElement {
    const ALL: [TensorElement; 10] = [
        TensorElement::U8,
        TensorElement::U16,
        TensorElement::U32,
        TensorElement::S32,
        TensorElement::U64,
        TensorElement::S64,
        TensorElement::F16,
        TensorElement::F32,
        TensorElement::F64,
        TensorElement::BF16,
    ];

    /// Bytes of an element.
    pub fn bytes(self) -> u32 {
        match self {
            TensorElement::U8 => 1,
            TensorElement::U16 | TensorElement::F16 | TensorElement::BF16 => 2,
            TensorElement::U32 | TensorElement::S32 | TensorElement::F32 => 4,
            TensorElement::U64 | TensorElement::S64 | TensorElement::F64 => 8,
        }
    }

    fn is_float(self) -> bool {
        matches!(
            self,
            TensorElement::F16 | TensorElement::F32 | TensorElement::F64 | TensorElement::BF16
        )
    }
}

/// How 16-byte pieces of shared memory change places, by address bits 7 and up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swizzle {
    /// They do not.
    None = 0,
    /// Within 32 bytes.
    Bytes32 = 1,
    /// Within 64 bytes.
    Bytes64 = 2,
    /// Within 128 bytes.
    Bytes128 = 3,
}

impl Swizzle {
    /// Every one, in the order of their numbers.
    pub const ALL: [Swizzle; 4] = [
        Swizzle::None,
        Swizzle::Bytes32,
        Swizzle::Bytes64,
        Swizzle::Bytes128,
    ];

    /// Bytes within which pieces change places.
    pub fn span(self) -> Option<NonZeroU32> {
        match self {
            Swizzle::None => None,
            _ => NonZeroU32::new(16 << self as u32),
        }
    }

    /// Where the byte at an address of shared memory stands.
    pub(super) fn place(self, address: u64) -> u64 {
        let mask = (1 << self as u64) - 1;
        address ^ (address >> 7 & mask) << 4
    }
}

/// What a load gives outside of the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Zeros.
    Zeros = 0,
    /// NaNs; of floats only.
    NaN = 1,
}

/// A tensor in device memory and the box of it that one copy moves. The innermost dimension comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// The type of its elements.
    pub element: TensorElement,
    /// Its address.
    pub base: u64,
    /// Extents, one to five.
    pub extents: Vec<u64>,
    /// Bytes from one element to the next along each dimension but the innermost.
    pub strides: Vec<u64>,
    /// Extents of the box.
    pub box_extents: Vec<u32>,
    /// Of so many elements along each dimension of the box one is moved; that of the innermost dimension is not looked at.
    pub element_strides: Vec<u32>,
    /// Where elements stand in shared memory.
    pub swizzle: Swizzle,
    /// What loads give outside.
    pub fill: Fill,
}

/// A tensor map that the driver would not encode.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("tensor map: {0}")]
pub struct TensorMapError(String);

/// A field that `tensormap.replace` sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MapField {
    Address,
    /// The operand is one less than the rank.
    Rank,
    Box,
    Extent,
    Stride,
    ElementStride,
    Element,
    Swizzle,
    Fill,
}

impl TensorMap {
    /// The map as a kernel parameter.
    pub fn encode(&self) -> Result<[u8; BYTES], TensorMapError> {
        self.check()?;
        Ok(self.to_bytes())
    }

    fn check(&self) -> Result<(), TensorMapError> {
        let fail = |message: String| Err(TensorMapError(message));
        let rank = self.extents.len();
        if !(1..=RANK).contains(&rank) {
            return fail(format!("{rank} dimensions; there are 1 to {RANK}"));
        }
        for (what, count, wants) in [
            ("strides", self.strides.len(), rank - 1),
            ("extents of the box", self.box_extents.len(), rank),
            ("element strides", self.element_strides.len(), rank),
        ] {
            if count != wants {
                return fail(format!("{count} {what} where there must be {wants}"));
            }
        }
        if !self.base.is_multiple_of(16) {
            return fail(format!("the base {:#x} is no multiple of 16", self.base));
        }
        if let Some(&extent) = self.extents.iter().find(|&&e| !(1..=1 << 32).contains(&e)) {
            return fail(format!("an extent of {extent}; 1 to 2^32 are possible"));
        }
        let is_stride = |stride: u64| stride.is_multiple_of(16) && stride < 1 << 40;
        if let Some(&stride) = self.strides.iter().find(|&&stride| !is_stride(stride)) {
            return fail(format!(
                "a stride of {stride} bytes; it must be a multiple of 16 below 2^40"
            ));
        }
        if let Some(&extent) = self.box_extents.iter().find(|&&e| !(1..=256).contains(&e)) {
            return fail(format!("a box of {extent} elements; 1 to 256 are possible"));
        }
        if let Some(&stride) = self
            .element_strides
            .iter()
            .find(|&&s| !(1..=8).contains(&s))
        {
            return fail(format!(
                "an element stride of {stride}; 1 to 8 are possible"
            ));
        }
        let inner = self.box_extents[0] * self.element.bytes();
        if !inner.is_multiple_of(16) {
            return fail(format!(
                "the box is {inner} bytes wide, which is no multiple of 16"
            ));
        }
        if let Some(span) = self.swizzle.span()
            && inner > span.get()
        {
            return fail(format!(
                "the box is {inner} bytes wide, and the swizzle spans {span}"
            ));
        }
        if self.fill == Fill::NaN && !self.element.is_float() {
            return fail("NaNs outside of a tensor of integers".to_owned());
        }
        Ok(())
    }

    /// Elements along each dimension that a copy moves.
    pub(super) fn moved(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self
            .box_extents
            .iter()
            .zip(&self.element_strides)
            .map(|(&extent, &stride)| extent.div_ceil(stride))
            .collect();
        all[0] = self.box_extents[0];
        all
    }

    fn to_bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        put(0, &MAGIC.to_le_bytes());
        let rank = self.extents.len() as u8;
        put(
            4,
            &[
                self.element as u8,
                rank,
                self.swizzle as u8,
                self.fill as u8,
            ],
        );
        put(8, &self.base.to_le_bytes());
        for (d, &extent) in self.extents.iter().enumerate() {
            put(16 + 4 * d, &((extent - 1) as u32).to_le_bytes());
            put(72 + 2 * d, &(self.box_extents[d] as u16).to_le_bytes());
            put(82 + d, &[self.element_strides[d] as u8]);
        }
        for (d, &stride) in self.strides.iter().enumerate() {
            put(40 + 8 * d, &stride.to_le_bytes());
        }
        bytes
    }

    /// Reads an encoded map.
    pub(super) fn decode(bytes: &[u8; BYTES]) -> Result<TensorMap, TensorMapError> {
        let map = TensorMap::from_bytes(bytes)?;
        map.check()?;
        Ok(map)
    }

    fn from_bytes(bytes: &[u8; BYTES]) -> Result<TensorMap, TensorMapError> {
        let word = |at: usize, size: usize| {
            let mut word = [0; 8];
            word[..size].copy_from_slice(&bytes[at..at + size]);
            u64::from_le_bytes(word)
        };
        let field = |at: usize| usize::from(bytes[at]);
        let fail = |message: &str| Err(TensorMapError(message.to_owned()));
        if word(0, 4) != u64::from(MAGIC) {
            return fail("these bytes are none");
        }
        let rank = field(5);
        let (element, swizzle) = (TensorElement::ALL.get(field(4)), Swizzle::ALL.get(field(6)));
        let (Some(&element), Some(&swizzle), 1..=RANK) = (element, swizzle, rank) else {
            return fail("its type, rank or swizzle does not exist here");
        };
        Ok(TensorMap {
            element,
            base: word(8, 8),
            extents: (0..rank).map(|d| word(16 + 4 * d, 4) + 1).collect(),
            strides: (1..rank).map(|d| word(32 + 8 * d, 8)).collect(),
            box_extents: (0..rank).map(|d| word(72 + 2 * d, 2) as u32).collect(),
            element_strides: (0..rank).map(|d| word(82 + d, 1) as u32).collect(),
            swizzle,
            fill: if bytes[7] == 0 {
                Fill::Zeros
            } else {
                Fill::NaN
            },
        })
    }
}

impl MapField {
    /// Where the field stands in the 128 bytes, how many it takes, and what to subtract from an operand.
    pub(super) fn place(self, index: u32) -> Option<(usize, usize, u64)> {
        let d = index as usize;
        Some(match self {
            MapField::Address => (8, 8, 0),
            MapField::Rank => (5, 1, u64::MAX),
            MapField::Element => (4, 1, 0),
            MapField::Swizzle => (6, 1, 0),
            MapField::Fill => (7, 1, 0),
            MapField::Extent if d < RANK => (16 + 4 * d, 4, 1),
            // Dimension 0 of these is the second one of the tensor.
            MapField::Stride if d + 1 < RANK => (40 + 8 * d, 8, 0),
            MapField::Box if d < RANK => (72 + 2 * d, 2, 0),
            MapField::ElementStride if d < RANK => (82 + d, 1, 0),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_dimensions_that_there_can_be() {
        let count = |field: MapField| (0..9).filter(|&d| field.place(d).is_some()).count();
        let of_dims = [MapField::Extent, MapField::Box, MapField::ElementStride];
        assert_eq!(of_dims.map(count), [RANK; 3]);
        assert_eq!(count(MapField::Stride), RANK - 1);
    }
}
