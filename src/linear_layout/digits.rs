//! The index along an axis as digits, each in registers, lanes or warps: what a scan works by.
//!
//! A scan follows the order of an index, so it needs layouts in which every bit of the index along the axis is one
//! bit of the location and moves nothing else. Neighbouring bits of one kind make one digit, so that a scan takes one
//! step a digit: a thread's run of elements, then the lanes, then the warps.

use super::layout::{HwDim, LinearLayout};

/// A digit: neighbouring bits of the index along an axis that are all held by one part of the location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digit {
    /// The part of the location: registers, lanes or warps.
    pub dim: HwDim,
    /// For each bit of the digit, from the lowest, the bit of that part. For lanes they count up by one, so that the
    /// next place is the next lane or the one `1 << bits[0]` further.
    pub bits: Vec<u8>,
}

impl LinearLayout {
    /// The digits of the index along `axis`, lowest first; `None` if some bit of the index is not one bit of the
    /// location alone. Bits that hold copies of what the axis does not touch are left out.
    pub fn digits(&self, axis: usize) -> Option<Vec<Digit>> {
        let mask = self.shape().bit_mask(axis);
        let low = self.shape().bit_offset(axis);
        let width = mask.count_ones() as usize;
        let mut places: Vec<Option<(HwDim, u8)>> = vec![None; width];
        for dim in HwDim::ALL {
            for (bit, &column) in self.columns(dim).iter().enumerate() {
                if column & mask == 0 {
                    continue;
                }
                let index = (column >> low).trailing_zeros() as usize;
                let place = places.get_mut(index)?;
                let is_known = matches!(dim, HwDim::Register | HwDim::Lane | HwDim::Warp);
                if !column.is_power_of_two() || place.is_some() || !is_known {
                    return None;
                }
                *place = Some((dim, bit as u8));
            }
        }
        let mut digits: Vec<Digit> = Vec::new();
        for place in places {
            let (dim, bit) = place?;
            match digits.last_mut() {
                Some(last)
                    if last.dim == dim
                        && (dim != HwDim::Lane
                            || last.bits.last() == bit.checked_sub(1).as_ref()) =>
                {
                    last.bits.push(bit);
                }
                _ => digits.push(Digit {
                    dim,
                    bits: vec![bit],
                }),
            }
        }
        Some(digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear_layout::shape::Shape;

    fn digits(text: &str, extents: &[u64], axis: usize) -> Option<Vec<(HwDim, Vec<u8>)>> {
        let shape = Shape::new(extents).expect("powers of two");
        let layout = LinearLayout::parse(text, shape).expect("a layout");
        let digits = layout.digits(axis)?;
        Some(digits.into_iter().map(|d| (d.dim, d.bits)).collect())
    }

    #[test]
    fn neighbouring_bits_of_one_kind_make_a_digit() {
        let text = "{reg=[1,2,32], lane=[4,8], warp=[16]}";
        let expected = [
            (HwDim::Register, vec![0, 1]),
            (HwDim::Lane, vec![0, 1]),
            (HwDim::Warp, vec![0]),
            (HwDim::Register, vec![2]),
        ];
        assert_eq!(digits(text, &[64], 0), Some(expected.to_vec()));
        // Lanes out of order are digits of their own; warps and registers may be numbered as they like.
        let text = "{reg=[4,1], lane=[16,8], warp=[64,32,2]}";
        let expected = [
            (HwDim::Register, vec![1]),
            (HwDim::Warp, vec![2]),
            (HwDim::Register, vec![0]),
            (HwDim::Lane, vec![1]),
            (HwDim::Lane, vec![0]),
            (HwDim::Warp, vec![1, 0]),
        ];
        assert_eq!(digits(text, &[128], 0), Some(expected.to_vec()));
    }

    #[test]
    fn other_dimensions_and_copies_do_not_matter() {
        let text = "{reg=[1], lane=[2,4,0], warp=[8,3]}";
        assert_eq!(
            digits(text, &[4, 4], 0),
            Some(vec![(HwDim::Lane, vec![1]), (HwDim::Warp, vec![0])])
        );
        assert_eq!(digits(text, &[4, 4], 1), None, "warp bit 1 moves by three");
        assert_eq!(digits("{reg=[5,4], lane=[2]}", &[8], 0), None);
        assert_eq!(digits("{reg=[1], lane=[2]}", &[4, 1], 1), Some(vec![]));
    }
}
