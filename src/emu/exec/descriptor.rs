//! Operands of warpgroup products in shared memory: where the 16-byte chunks of a matrix lie that a descriptor describes.
//!
//! A matrix is 32 bytes deep in the summed dimension. Given along it ("K-major"), each row (or column of the right operand) is
//! two chunks; given across it, a chunk is eight rows of one summed index. Eight chunks of neighbouring rows (or indices) are
//! either 128 bytes in a row, or lie in rows of 32, 64 or 128 bytes whose chunks are exchanged by the row's number.

/// A descriptor, taken apart; offsets in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptor {
    start: u64,
    leading: u64,
    stride: u64,
    base: u64,
    /// Bytes of a row: 16 without exchange.
    row: u64,
}

impl Descriptor {
    /// None if bits are set that mean nothing.
    pub(super) fn new(bits: u64) -> Option<Descriptor> {
        let field = |at: u32| (bits >> at & 0x3fff) << 4;
        let known = 0x3fff | 0x3fff << 16 | 0x3fff << 32 | 7 << 49 | 3 << 62;
        (bits & !known == 0).then_some(Descriptor {
            start: field(0),
            leading: field(16),
            stride: field(32),
            base: bits >> 49 & 7,
            row: [16, 128, 64, 32][(bits >> 62) as usize],
        })
    }

    /// The address of half `half` of row `row`, given along the summed dimension.
    pub(super) fn along(&self, row: u64, half: u64) -> u64 {
        let groups = self.start + row / 8 * self.stride + row % 8 * self.row;
        match self.row {
            16 => groups + half * self.leading,
            _ => self.exchanged(groups + half * 16),
        }
    }

    /// The address of rows `8 * chunk` to `8 * chunk + 7` at a summed index, given across the summed dimension.
    pub(super) fn across(&self, chunk: u64, index: u64) -> u64 {
        let at = self.start + index % 8 * self.row;
        match self.row {
            16 => at + chunk * self.stride + index / 8 * self.leading,
            row => {
                let chunks = row / 16;
                let panel = chunk / chunks * self.leading + chunk % chunks * 16;
                self.exchanged(at + panel + index / 8 * self.stride)
            }
        }
    }

    /// Exchanges chunks of an address: bits 4 to 6 by bits 7 to 9, as many as a row has chunks.
    fn exchanged(&self, address: u64) -> u64 {
        let row = (address >> 7).wrapping_sub(self.base) & (self.row / 16 - 1);
        address ^ row << 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_that_mean_nothing_are_refused() {
        let means = |bit: &u32| Descriptor::new(1 << bit).is_some();
        let fields = [0..14, 16..30, 32..46, 49..52, 62..64];
        let found: Vec<u32> = (0..64).filter(means).collect();
        assert_eq!(found, fields.into_iter().flatten().collect::<Vec<_>>());
    }
}
