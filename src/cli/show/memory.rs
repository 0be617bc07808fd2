//! Shared memory over time: which bytes are whose, from the first instruction to the last.

use super::canvas::Canvas;
use super::layouts::hue;
use crate::stages::SharedRange;

/// Width of all instructions, and height of all bytes.
const AREA: [usize; 2] = [800, 360];
/// Where instructions and bytes begin.
const CORNER: [usize; 2] = [80, 40];

/// As SVG; none if there is no shared memory.
pub(super) fn svg(ranges: &[SharedRange]) -> Option<String> {
    let end = ranges
        .iter()
        .map(|range| range.offset + range.bytes)
        .max()?;
    let last = ranges.iter().map(|range| range.last + 1).max()?;
    let [left, top] = CORNER;
    let scale = |value: u32, of: u32, length: usize| value as usize * length / of.max(1) as usize;
    let mut canvas = Canvas::default();
    canvas.text(
        10,
        20,
        &format!("shared memory: {end} bytes downwards, {last} instructions to the right, from first to last access"),
    );
    canvas.rect([left, top, AREA[0], AREA[1]], [245; 3], "");
    for (number, range) in ranges.iter().enumerate() {
        let x = left + scale(range.first, last, AREA[0]);
        let right = left + scale(range.last + 1, last, AREA[0]);
        let y = top + scale(range.offset, end, AREA[1]);
        let bottom = top + scale(range.offset + range.bytes, end, AREA[1]);
        let place = [x, y, (right - x).max(2), (bottom - y).max(2)];
        let ring = range.ring.map_or(String::new(), |ring| format!(", {ring}"));
        let words = format!(
            "{}: bytes {}..{}{ring}",
            range.slot,
            range.offset,
            range.offset + range.bytes
        );
        canvas.rect(place, hue(number as u32), &words);
        if place[3] >= 12 {
            // What does not fit into the bar stands behind it.
            canvas.text(x + 4, y + place[3] / 2 + 4, &words);
        }
    }
    for share in 0..=4 {
        let (bytes, at) = (end * share / 4, AREA[1] * share as usize / 4);
        canvas.text(10, top + at + 4, &bytes.to_string());
    }
    Some(canvas.finish())
}
