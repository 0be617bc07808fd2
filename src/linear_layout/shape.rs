//! Shapes of blocks: every extent is a power of two, stored as its exponent.
//!
//! A block of shape `[d0, d1, ..]` is numbered row-major; because all extents are powers of two the
//! flat index is the concatenation of the coordinates' bits, last dimension lowest. That is what makes
//! a layout a matrix over GF(2): see [`crate::linear_layout`].

use std::fmt;

/// Largest number of dimensions of a block.
pub const MAX_RANK: usize = 20;

/// Largest exponent of a block's element count (1,048,576 elements).
pub const MAX_LOG2_ELEMENTS: u32 = 20;

/// Extents of a block, each a power of two; rank zero is a scalar.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    rank: u8,
    log2: [u8; MAX_RANK],
}

/// Why extents do not form a [`Shape`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// An extent is zero or not a power of two.
    #[error("extent {0} is not a power of two")]
    NotPowerOfTwo(u64),
    /// More than [`MAX_RANK`] dimensions.
    #[error("a block has at most {MAX_RANK} dimensions, not {0}")]
    TooManyDimensions(usize),
    /// More than 2^[`MAX_LOG2_ELEMENTS`] elements.
    #[error("a block has at most 1048576 elements")]
    TooManyElements,
}

impl Shape {
    /// The shape of a scalar.
    pub const SCALAR: Shape = Shape {
        rank: 0,
        log2: [0; MAX_RANK],
    };

    /// A shape from its extents.
    pub fn new(extents: &[u64]) -> Result<Shape, ShapeError> {
        if let Some(&bad) = extents.iter().find(|d| !d.is_power_of_two()) {
            return Err(ShapeError::NotPowerOfTwo(bad));
        }
        // 64 stands for any exponent over the limit, so that the narrowing below loses nothing.
        let log2: Vec<u8> = extents
            .iter()
            .map(|d| d.trailing_zeros().min(64) as u8)
            .collect();
        Shape::from_log2(&log2)
    }

    /// A shape from the exponents of its extents.
    pub fn from_log2(exponents: &[u8]) -> Result<Shape, ShapeError> {
        if exponents.len() > MAX_RANK {
            return Err(ShapeError::TooManyDimensions(exponents.len()));
        }
        if exponents.iter().map(|&e| u32::from(e)).sum::<u32>() > MAX_LOG2_ELEMENTS {
            return Err(ShapeError::TooManyElements);
        }
        let mut log2 = [0; MAX_RANK];
        log2[..exponents.len()].copy_from_slice(exponents);
        Ok(Shape {
            rank: exponents.len() as u8,
            log2,
        })
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        usize::from(self.rank)
    }

    /// Whether this is the shape of a scalar.
    pub fn is_scalar(&self) -> bool {
        self.rank == 0
    }

    /// Exponents of the extents, first dimension first.
    pub fn log2(&self) -> &[u8] {
        &self.log2[..self.rank()]
    }

    /// Extent of dimension `dim` in elements; 1 for a dimension the shape does not have.
    pub fn extent(&self, dim: usize) -> u64 {
        self.log2().get(dim).map_or(1, |&e| 1 << e)
    }

    /// All extents, first dimension first.
    pub fn extents(&self) -> impl Iterator<Item = u64> + '_ {
        self.log2().iter().map(|&e| 1 << e)
    }

    /// Exponent of the number of elements.
    pub fn log2_elements(&self) -> u32 {
        self.log2().iter().map(|&e| u32::from(e)).sum()
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        1 << self.log2_elements()
    }

    /// How many elements the index of a dimension has, and how far these are apart among all in row-major order, as exponents.
    pub fn place(&self, dim: usize) -> (u8, u32) {
        (self.log2()[dim], self.bit_offset(dim))
    }

    /// Position of the lowest bit of dimension `dim` in the flat index.
    pub fn bit_offset(&self, dim: usize) -> u32 {
        self.log2()
            .iter()
            .skip(dim + 1)
            .map(|&e| u32::from(e))
            .sum()
    }

    /// The bits of the flat index that belong to dimension `dim`.
    pub fn bit_mask(&self, dim: usize) -> u32 {
        let width = self.log2().get(dim).copied().unwrap_or(0);
        ((1u32 << width) - 1) << self.bit_offset(dim)
    }

    /// Coordinate in dimension `dim` of the element with flat index `flat`.
    pub fn coordinate(&self, flat: u32, dim: usize) -> u32 {
        (flat & self.bit_mask(dim)) >> self.bit_offset(dim)
    }

    /// The shape with a dimension of extent 1 put before dimension `axis` (`axis <= rank`).
    pub fn with_unit_dim(&self, axis: usize) -> Result<Shape, ShapeError> {
        let mut dims = self.log2().to_vec();
        dims.insert(axis.min(dims.len()), 0);
        Shape::from_log2(&dims)
    }

    /// The shape without dimension `axis`; unchanged if there is no such dimension.
    pub fn without_dim(&self, axis: usize) -> Shape {
        let mut shape = Shape::SCALAR;
        for (dim, &e) in self.log2().iter().enumerate() {
            if dim != axis {
                shape.log2[shape.rank()] = e;
                shape.rank += 1;
            }
        }
        shape
    }
}

impl fmt::Display for Shape {
    /// Writes the extents separated by commas, as in `16,32`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, extent) in self.extents().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{extent}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_a_flat_index_belong_to_one_dimension_each() {
        let shape = Shape::new(&[4, 1, 8]).expect("powers of two");
        assert_eq!(
            [shape.bit_mask(0), shape.bit_mask(1), shape.bit_mask(2)],
            [0b11000, 0, 0b111]
        );
        assert_eq!(
            (shape.coordinate(0b10_101, 0), shape.coordinate(0b10_101, 2)),
            (2, 5)
        );
        assert_eq!(shape.to_string(), "4,1,8");
    }

    #[test]
    fn bad_extents_are_refused() {
        assert_eq!(Shape::new(&[3]), Err(ShapeError::NotPowerOfTwo(3)));
        assert_eq!(Shape::new(&[0]), Err(ShapeError::NotPowerOfTwo(0)));
        assert_eq!(Shape::new(&[1 << 40]), Err(ShapeError::TooManyElements));
        assert_eq!(Shape::new(&[1; 21]), Err(ShapeError::TooManyDimensions(21)));
    }

    #[test]
    fn dimensions_come_and_go() {
        let shape = Shape::new(&[4, 8]).expect("powers of two");
        let wider = shape.with_unit_dim(1).expect("rank 3");
        assert_eq!(wider.to_string(), "4,1,8");
        assert_eq!(wider.without_dim(1), shape);
        assert_eq!(shape.without_dim(0).to_string(), "8");
    }
}
