//! Whether a kernel's shared memory fits, and what to say if it does not.

use crate::error::CompileError;
use crate::ir::entities::Slot;
use crate::ir::function::{BufferData, ThreadFunction, TileFunction};
use crate::settings::Target;

use super::place_shared::fullest;

/// Most uses of shared memory that an error names.
const SHOWN_USES: usize = 4;

/// Refuses a kernel that needs more than the target has, with what takes most and what to change.
pub(crate) fn check_shared(
    needed: u32,
    target: Target,
    tile: &TileFunction,
    thread: &ThreadFunction,
) -> Result<(), CompileError> {
    let limit = target.shared_limit();
    if needed <= limit {
        return Ok(());
    }
    let fullest = fullest(thread);
    let ring = |slot: Slot| tile.buffers.get(slot).copied().flatten();
    let uses = fullest.iter().take(SHOWN_USES).map(|range| {
        let bytes = thread.slots[range.slot].bytes;
        let line = thread.dfg.insts[range.inst].loc.0.expand();
        let line = line.map_or(String::new(), |line| format!(" (line {})", line.0));
        match ring(range.slot) {
            Some(ring) => format!("{bytes} for {ring}{line}"),
            None => format!("{bytes} to exchange values between threads{line}"),
        }
    });
    let mut uses: Vec<String> = uses.collect();
    if SHOWN_USES < fullest.len() {
        uses.push("and others".to_owned());
    }
    let largest = fullest.first();
    let rings = fullest.iter().filter_map(|range| ring(range.slot));
    let pipelined: Vec<BufferData> = rings.filter(|ring| 1 < ring.stages).collect();
    Err(CompileError::SharedMemory {
        needed,
        limit,
        target,
        uses: uses.join(", "),
        advice: advice(
            needed,
            limit,
            &pipelined,
            largest.map_or(0, |r| thread.slots[r.slot].bytes),
        ),
    })
}

/// What makes a kernel fit: as many stages as there is room for, or the largest use as much smaller as it takes, if that alone
/// is enough. More warps would not do, which hold the same blocks.
fn advice(needed: u32, limit: u32, pipelined: &[BufferData], largest: u32) -> String {
    let a_stage: u32 = pipelined.iter().map(BufferData::stage_bytes).sum();
    let rings: u32 = pipelined.iter().map(|r| r.stages * r.stage_bytes()).sum();
    let room = (limit + rings).saturating_sub(needed);
    if 0 < a_stage && a_stage <= room {
        let stages = room / a_stage;
        return format!(
            "use {stages} stages, each of which takes {a_stage} bytes, or smaller blocks"
        );
    }
    match (limit + largest).checked_sub(needed) {
        Some(room) if 0 < room => {
            let factor = largest.div_ceil(room).next_power_of_two();
            format!("use smaller blocks, the first of these by a factor of {factor}")
        }
        _ => "use smaller blocks".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::advice;
    use crate::ir::function::BufferData;
    use crate::ir::types::Scalar;
    use crate::linear_layout::shape::Shape;

    #[test]
    fn advice_makes_a_kernel_fit() {
        let ring = |rows, stages| BufferData {
            elem: Scalar::F16,
            shape: Shape::new(&[rows, 64]).expect("powers of two"),
            stages,
        };
        // Two rings of 4 * 16 KiB and 8 KiB beside them: three stages take 96 + 8 of 100 KiB, two 64 + 8.
        let rings = [ring(128, 4), ring(128, 4)];
        let text = advice(136 << 10, 100 << 10, &rings, 64 << 10);
        let expected = "use 2 stages, each of which takes 32768 bytes, or smaller blocks";
        assert_eq!(text, expected);
        // 200 KiB of which 160 are one block: with a quarter of it, 40, there are 80, with half of it 120.
        let text = advice(200 << 10, 100 << 10, &[], 160 << 10);
        let expected = "use smaller blocks, the first of these by a factor of 4";
        assert_eq!(text, expected);
        // Without the largest there is still too much.
        let text = advice(200 << 10, 100 << 10, &[], 64 << 10);
        assert_eq!(text, "use smaller blocks");
    }
}
