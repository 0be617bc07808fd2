//! Tensor maps of run lines of PTX: `x=f16[8192] normal(1) map(64,128) box(16,64) swizzle(128)`.

use crate::emu::{Fill, Swizzle, TensorMap};
use crate::ir::types::Scalar;
use crate::runtime::element;

/// What a run line says of a tensor map; what is outermost comes first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MapSpec {
    /// Extents of the tensor.
    pub(super) extents: Vec<u64>,
    /// Extents of the box that one copy moves.
    pub(super) box_extents: Vec<u32>,
    /// Bytes from one element to the next along each dimension but the innermost; those of a tensor without gaps if nothing is said.
    pub(super) strides: Option<Vec<u64>>,
    /// Bytes within which pieces of 16 bytes change places.
    pub(super) swizzle: u32,
    /// Whether loads give NaN outside, and not zeros.
    pub(super) nan: bool,
}

impl MapSpec {
    /// The map as a kernel gets it, of a buffer with so many elements at `base`.
    pub(super) fn encode(
        &self,
        scalar: Scalar,
        count: usize,
        base: u64,
    ) -> Result<Vec<u8>, String> {
        let size = u64::from(scalar.bytes());
        let strides = match &self.strides {
            Some(strides) => strides.clone(),
            None => self.without_gaps(size).ok_or("the tensor is too large")?,
        };
        let swizzles = Swizzle::ALL.into_iter();
        let mut swizzles =
            swizzles.filter(|s| s.span().map_or(0, |span| span.get()) == self.swizzle);
        let swizzle = swizzles.next().ok_or_else(|| {
            format!(
                "a swizzle of {} bytes; there are 32, 64 and 128",
                self.swizzle
            )
        })?;
        let map = TensorMap {
            element: element(scalar),
            base,
            extents: self.extents.iter().rev().copied().collect(),
            strides: strides.iter().rev().copied().collect(),
            box_extents: self.box_extents.iter().rev().copied().collect(),
            element_strides: vec![1; self.box_extents.len()],
            swizzle,
            fill: if self.nan { Fill::NaN } else { Fill::Zeros },
        };
        let encoded = map.encode().map_err(|error| error.to_string())?;
        let mut steps = map
            .extents
            .iter()
            .zip([&size].into_iter().chain(&map.strides));
        let last = steps.try_fold(0u64, |sum, (extent, stride)| {
            sum.checked_add((extent - 1).checked_mul(*stride)?)
        });
        let has = count as u64 * size;
        match last.and_then(|last| last.checked_add(size)) {
            Some(bytes) if bytes <= has => Ok(encoded.to_vec()),
            _ => Err(format!(
                "the tensor is larger than its buffer, which has {has} bytes"
            )),
        }
    }

    /// The strides of a tensor without gaps.
    fn without_gaps(&self, size: u64) -> Option<Vec<u64>> {
        let mut strides = Vec::new();
        let mut bytes = size;
        for extent in self.extents.iter().skip(1).rev() {
            bytes = bytes.checked_mul(*extent)?;
            strides.push(bytes);
        }
        strides.reverse();
        Some(strides)
    }
}
