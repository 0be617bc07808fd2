//! Counting what memory accesses cost: sectors of global memory, wavefronts of shared memory.

use super::super::error::Space;
use super::super::race::lanes;
use super::super::sched::Machine;

impl Machine<'_> {
    /// Counts sectors of global and wavefronts of shared accesses at the addresses in slot 3. Gives whether the
    /// lanes access consecutive addresses in order of their numbers.
    pub(super) fn count_access(&mut self, active: u32, space: Space, bytes: u32) -> bool {
        let first = self.operands[3][active.trailing_zeros() as usize];
        let space = match space {
            Space::Generic => Machine::generic_space(first).0,
            _ => space,
        };
        let in_a_row = self.in_a_row(active, bytes);
        match space {
            Space::Global => {
                self.stats.global_requests += 1;
                self.stats.global_bytes += u64::from(bytes * active.count_ones());
                self.stats.global_sectors += if in_a_row {
                    let last = first + u64::from(bytes * active.count_ones()) - 1;
                    last / 32 - first / 32 + 1
                } else {
                    self.sectors(active, bytes)
                };
            }
            Space::Shared => {
                // The hardware serves 128 bytes at a time: lanes in groups by access size.
                let lanes_at_once = (128 / bytes.max(4)).clamp(1, 32);
                let mut start = 0;
                while start < 32 {
                    let phase = active & (u32::MAX >> (32 - lanes_at_once)) << start;
                    start += lanes_at_once;
                    if phase != 0 {
                        self.stats.shared_ideal_wavefronts += 1;
                        self.stats.shared_wavefronts += if in_a_row {
                            1
                        } else {
                            self.wavefronts(phase, bytes)
                        };
                    }
                }
            }
            _ => {}
        }
        in_a_row
    }

    /// Whether the lanes access consecutive addresses in order of their numbers.
    fn in_a_row(&self, active: u32, bytes: u32) -> bool {
        let addresses = &self.operands[3];
        let first = active.trailing_zeros() as usize;
        let count = active.count_ones() as usize;
        // Lanes without gaps, and an end that does not wrap around.
        active >> first == u32::MAX >> (32 - count)
            && addresses[first] < 1 << 63
            && addresses[first..first + count]
                .windows(2)
                .all(|pair| pair[1] == pair[0].wrapping_add(u64::from(bytes)))
    }

    /// Distinct sectors of 32 bytes.
    fn sectors(&self, active: u32, bytes: u32) -> u64 {
        let mut seen = [0_u64; 64];
        let mut count = 0;
        let mut ordered = true;
        for lane in lanes(active) {
            let address = self.operands[3][lane as usize];
            for sector in address / 32..=address.saturating_add(u64::from(bytes) - 1) / 32 {
                if count == 0 || seen[count - 1] != sector {
                    ordered &= count == 0 || seen[count - 1] < sector;
                    if count < seen.len() {
                        seen[count] = sector;
                        count += 1;
                    }
                }
            }
        }
        if ordered {
            return count as u64;
        }
        let seen = &mut seen[..count];
        seen.sort_unstable();
        1 + seen.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64
    }

    /// Trips through the 32 banks of four bytes: the most distinct words that one bank must serve.
    fn wavefronts(&self, phase: u32, bytes: u32) -> u64 {
        let words_each = bytes.div_ceil(4);
        let mut words = [0_u64; 64];
        let mut count = 0;
        for lane in lanes(phase) {
            let first = self.operands[3][lane as usize] / 4;
            for word in first..first + u64::from(words_each) {
                if count < words.len() && (count == 0 || words[count - 1] != word) {
                    words[count] = word;
                    count += 1;
                }
            }
        }
        let words = &mut words[..count];
        if words.windows(2).all(|pair| pair[0] < pair[1]) && words[count - 1] - words[0] < 32 {
            return 1;
        }
        words.sort_unstable();
        let mut load = [0_u64; 32];
        let mut last = None;
        for &word in words.iter() {
            if last != Some(word) {
                load[word as usize % 32] += 1;
                last = Some(word);
            }
        }
        load.into_iter().max().unwrap_or(1)
    }
}
