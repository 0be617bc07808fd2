//! What of a multiprocessor CTAs take: registers, shared memory, warps; and how many are resident at once.
//!
//! After NVIDIA's occupancy calculator and the table of compute capabilities in the programming guide: registers are given to
//! warps, 256 at a time, and to four warps at once, one for each quarter of the multiprocessor.

use super::{LANES, MOST_WARPS, Target};

/// Registers of a multiprocessor.
pub(crate) const SM_REGISTERS: u32 = 65_536;

/// Most registers of a thread.
const MOST_REGISTERS: u32 = 255;

/// What a CTA takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Threads.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of shared memory.
    pub shared: u32,
}

impl Target {
    /// Most registers that a thread can have in a CTA of so many.
    pub fn most_registers(threads: u32) -> u32 {
        // A quarter of the file serves each fourth warp. Rounded down to what warps are given.
        let served = 4 * warps(threads).max(1).next_multiple_of(4) / 4 * 32;
        MOST_REGISTERS.min(SM_REGISTERS / served / 8 * 8)
    }

    /// How many such CTAs a multiprocessor holds at once; none if not even one fits.
    pub fn resident(self, usage: Usage) -> u32 {
        let (most_warps, most_ctas) = self.residents();
        let by_shared = self.resident_by_shared(usage.shared);
        Target::resident_by_registers(usage.threads, usage.registers)
            .min(by_shared.unwrap_or(most_ctas))
            .min(most_warps / warps(usage.threads))
            .min(most_ctas)
    }

    /// How many CTAs of so many threads there are registers for.
    pub(crate) fn resident_by_registers(threads: u32, registers: u32) -> u32 {
        let of_warp = (32 * registers.max(1)).next_multiple_of(256);
        SM_REGISTERS / of_warp / 4 * 4 / warps(threads)
    }

    /// How many CTAs with so many bytes of shared memory each there is room for; none if they take nothing.
    pub(crate) fn resident_by_shared(self, bytes: u32) -> Option<u32> {
        // From sm_80 on the system keeps some of each CTA.
        let reserved = if self >= Target::SM_80 { 1024 } else { 0 };
        (self.shared_limit() + reserved).checked_div((bytes + reserved).next_multiple_of(256))
    }

    /// Threads of so many CTAs, in hundredths of what a multiprocessor holds.
    pub fn occupancy_percent(self, ctas: u32, threads: u32) -> u32 {
        100 * ctas * threads.div_ceil(32) / self.residents().0
    }

    /// Most warps and most CTAs of a multiprocessor.
    fn residents(self) -> (u32, u32) {
        match self.sm {
            75 => (32, 16),
            86 => (48, 16),
            89 | 120 => (48, 24),
            _ => (64, 32),
        }
    }
}

/// Warps that so many threads are in.
fn warps(threads: u32) -> u32 {
    threads.div_ceil(LANES).max(1)
}

/// Bytes of registers that the assembler is expected to spill where a thread needs more than it gets: the middle of what
/// ptxas 13.0 spills of products and attention of the examples under bounds that lack 8, 16, 24, 32 and 48 registers, which is
/// 16, 88, 152, 224 and 448, and the 7 bytes for each register that softmaxes and layer norms of large rows spill. Single
/// kernels are off by a factor of two, and some by more.
pub fn spilled_bytes(needed: u32, gets: u32) -> u32 {
    let over = needed.saturating_sub(gets);
    // The first few cost little; then most are stored, and read again more than once.
    (over * (over + 24).min(64) / 8).next_multiple_of(4)
}

/// Whether a kernel is expected to spill of which a thread needs and gets so many registers.
///
/// ptxas finds room for a few more than are counted, more where fragments of products stand in order. From so many on, as many of the
/// kernels of `tests/compiler/spills.rs` spill unforeseen as are foretold to and do not, 11 each beside 123 that spill as foretold; where
/// one that lacks a single register is foretold to, these are 9 and 19.
pub fn is_expected_to_spill(needed: u32, gets: u32) -> bool {
    const FOUND: u32 = 10;
    needed > gets + FOUND
}

/// The fewest warps, more than `num_warps`, with which there are enough registers for threads that need so many in `num_warps`
/// warps, if what a thread holds is dealt to more threads; if there are none, the fewest with which half as many are lacking.
pub(crate) fn better_warps(num_warps: u32, needed: u32) -> Option<u32> {
    // Of all warps.
    let lacks = |warps: u32| {
        let needed = needed / (warps / num_warps);
        needed.saturating_sub(Target::most_registers(LANES * warps)) * warps
    };
    let more = (1..).map(|bits| num_warps << bits);
    let more = || more.clone().take_while(|&warps| warps <= MOST_WARPS);
    let enough = more().find(|&warps| lacks(warps) == 0);
    enough.or_else(|| more().find(|&warps| 2 * lacks(warps) <= lacks(num_warps)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_warps_are_found_that_are_enough() {
        for (num_warps, needed, expected) in [
            // 165 of 255.
            (4, 330, Some(8)),
            (1, 320, Some(2)),
            (1, 1000, Some(4)),
            // With 4, 8, 16 and 32 warps 385 of 640, 65 of 320, 32 of 160 and 16 of 80 are lacking.
            (4, 640, Some(8)),
            // With 32 warps 64 of 70.
            (16, 140, None),
            (32, 100, None),
        ] {
            let found = better_warps(num_warps, needed);
            assert_eq!(found, expected, "{num_warps} {needed}");
        }
    }

    #[test]
    fn the_scarcest_resource_decides() {
        let usage = |threads, registers, shared| Usage {
            threads,
            registers,
            shared,
        };
        for (target, usage, resident) in [
            // Warps, CTAs.
            (Target::SM_80, usage(1024, 32, 0), 2),
            (Target::SM_80, usage(32, 16, 0), 32),
            (Target::SM_75, usage(128, 32, 0), 8),
            (Target::SM_86, usage(32, 16, 0), 16),
            (Target::SM_89, usage(256, 32, 0), 6),
            // Registers: 255 count as 256, 33 as 40.
            (Target::SM_90, usage(128, 255, 0), 2),
            (Target::SM_90, usage(256, 255, 0), 1),
            (Target::SM_90, usage(512, 255, 0), 0),
            (Target::SM_80, usage(256, 33, 0), 6),
            // A quarter that is left is no warp: 65536 / 5120 = 12.8.
            (Target::SM_80, usage(96, 160, 0), 4),
            // Shared memory, 1 KiB more than it asks for.
            (Target::SM_80, usage(128, 32, 48 << 10), 3),
            (Target::SM_80, usage(128, 32, 163 << 10), 1),
            (Target::SM_90, usage(128, 32, 75 << 10), 3),
            (Target::SM_75, usage(128, 32, 32 << 10), 2),
        ] {
            assert_eq!(target.resident(usage), resident, "{target} {usage:?}");
        }
        assert_eq!(Target::SM_80.occupancy_percent(3, 128), 18);
        assert_eq!(Target::SM_89.occupancy_percent(6, 256), 100);
    }

    #[test]
    fn large_programs_leave_few_registers_to_a_thread() {
        let most = [32, 256, 512, 1024].map(Target::most_registers);
        assert_eq!(most, [255, 255, 128, 64]);
    }

    #[test]
    fn what_spills_grows_with_what_is_missing() {
        let bytes = [0, 8, 16, 48].map(|over| spilled_bytes(255 + over, 255));
        assert_eq!(bytes, [0, 32, 80, 384]);
        assert_eq!(spilled_bytes(100, 255), 0);
    }
}
