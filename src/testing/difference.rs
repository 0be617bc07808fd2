//! What lines two texts differ in, as `diff -u` shows it. After E. W. Myers, "An O(ND) difference algorithm and its
//! variations", 1986.

use std::fmt::Write;

/// Lines around a difference that are shown.
const CONTEXT: usize = 3;
/// Lines of differences that are shown.
const SHOWN: usize = 200;
/// Lines that may differ before a difference is shown as one piece: its search takes memory in the square of it.
const MOST: usize = 1000;

/// A line of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edit {
    /// It is in both.
    Same,
    /// It is in the first alone.
    Gone,
    /// It is in the second alone.
    New,
}

/// The lines that two texts differ in, with `-` before those of the first alone, `+` before those of the second alone, and
/// some of both around them; none if the texts are the same.
///
/// ```
/// let difference = tilelift::testing::difference("a\nb\nc\n", "a\nB\nc\n");
/// assert_eq!(difference.as_deref(), Some("@@ line 1 @@\n a\n-b\n+B\n c\n"));
/// assert_eq!(tilelift::testing::difference("a\n", "a\n"), None);
/// ```
pub fn difference(before: &str, after: &str) -> Option<String> {
    if before == after {
        return None;
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let edits = edits(&old, &new);
    if edits.iter().all(|edit| *edit == Edit::Same) {
        return Some("the lines are the same, but not how they end\n".to_owned());
    }
    Some(shown(&old, &new, &edits))
}

/// The edits that lead from one text to the other.
fn edits(old: &[&str], new: &[&str]) -> Vec<Edit> {
    let same = |(a, b): &(&&str, &&str)| a == b;
    let start = old.iter().zip(new).take_while(same).count();
    let (inner_old, inner_new) = (&old[start..], &new[start..]);
    let both = inner_old.iter().rev().zip(inner_new.iter().rev());
    let end = both.take_while(same).count();
    let inner_old = &inner_old[..inner_old.len() - end];
    let inner_new = &inner_new[..inner_new.len() - end];
    let mut edits = vec![Edit::Same; start];
    match shortest(inner_old, inner_new) {
        Some(inner) => edits.extend(inner),
        None => {
            edits.resize(edits.len() + inner_old.len(), Edit::Gone);
            edits.resize(edits.len() + inner_new.len(), Edit::New);
        }
    }
    edits.resize(edits.len() + end, Edit::Same);
    edits
}

/// The fewest edits; none if there are too many.
fn shortest(old: &[&str], new: &[&str]) -> Option<Vec<Edit>> {
    let most = MOST.min(old.len() + new.len());
    // For each diagonal `x - y`, how far along it so many edits lead; and what these were before each further one.
    let at = |diagonal: isize| (diagonal + most as isize + 1) as usize;
    let mut furthest = vec![0_usize; 2 * most + 3];
    let mut trace: Vec<Vec<usize>> = Vec::new();
    for count in 0..=most as isize {
        // What is reached lies between the diagonals of `count`.
        trace.push(furthest[at(-count - 1)..=at(count + 1)].to_vec());
        for diagonal in (-count..=count).step_by(2) {
            let is_down = diagonal == -count
                || diagonal != count && furthest[at(diagonal - 1)] < furthest[at(diagonal + 1)];
            let mut x = match is_down {
                true => furthest[at(diagonal + 1)],
                false => furthest[at(diagonal - 1)] + 1,
            };
            let Some(mut y) = x.checked_add_signed(-diagonal) else {
                continue;
            };
            while x < old.len() && y < new.len() && old[x] == new[y] {
                (x, y) = (x + 1, y + 1);
            }
            furthest[at(diagonal)] = x;
            if x >= old.len() && y >= new.len() {
                return Some(walk(&trace, old.len(), new.len()));
            }
        }
    }
    None
}

/// The way back from the end, turned around.
fn walk(trace: &[Vec<usize>], mut x: usize, mut y: usize) -> Vec<Edit> {
    let mut edits = Vec::new();
    for (count, before) in trace.iter().enumerate().rev() {
        let count = count as isize;
        let reached = |diagonal: isize| before[(diagonal + count + 1) as usize];
        let diagonal = x as isize - y as isize;
        let is_down = diagonal == -count
            || diagonal != count && reached(diagonal - 1) < reached(diagonal + 1);
        let previous = if is_down { diagonal + 1 } else { diagonal - 1 };
        let from = if count == 0 { 0 } else { reached(previous) };
        let from_y = from as isize - previous;
        while x > from && y as isize > from_y.max(0) {
            edits.push(Edit::Same);
            (x, y) = (x - 1, y - 1);
        }
        if count > 0 {
            edits.push(if is_down { Edit::New } else { Edit::Gone });
            match is_down {
                true => y -= 1,
                false => x -= 1,
            }
        }
    }
    edits.reverse();
    edits
}

/// The edits with some lines around them.
fn shown(old: &[&str], new: &[&str], edits: &[Edit]) -> String {
    let mut text = String::new();
    let (mut x, mut y) = (0, 0);
    let (mut shown, mut left_out) = (0, 0);
    let mut is_apart = true;
    for (i, edit) in edits.iter().enumerate() {
        let around = &edits[i.saturating_sub(CONTEXT)..(i + CONTEXT + 1).min(edits.len())];
        let is_near = around.iter().any(|edit| *edit != Edit::Same);
        let (sign, line) = match edit {
            Edit::Same => (' ', old[x]),
            Edit::Gone => ('-', old[x]),
            Edit::New => ('+', new[y]),
        };
        if is_near && shown < SHOWN {
            if is_apart {
                // A text has a place in memory: writing there does not fail.
                let _ = writeln!(text, "@@ line {} @@", y + 1);
            }
            text.push(sign);
            text.push_str(line);
            text.push('\n');
            shown += usize::from(*edit != Edit::Same);
        } else if *edit != Edit::Same {
            left_out += 1;
        }
        is_apart = !is_near;
        x += usize::from(*edit != Edit::New);
        y += usize::from(*edit != Edit::Gone);
    }
    if left_out > 0 {
        let _ = writeln!(text, "and {left_out} more lines that differ");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text by the edits that lead from another to it.
    fn applied(old: &[&str], new: &[&str], edits: &[Edit]) -> (Vec<String>, Vec<String>) {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let (mut x, mut y) = (0, 0);
        for edit in edits {
            if *edit != Edit::New {
                left.push(old[x].to_owned());
            }
            match edit {
                Edit::Same => right.push(old[x].to_owned()),
                Edit::New => right.push(new[y].to_owned()),
                Edit::Gone => {}
            }
            x += usize::from(*edit != Edit::New);
            y += usize::from(*edit != Edit::Gone);
        }
        (left, right)
    }

    #[test]
    fn edits_lead_from_one_text_to_the_other_and_are_the_fewest() {
        // Every pair of texts of up to five lines of two kinds.
        let texts: Vec<Vec<&str>> = (0..=5_u32)
            .flat_map(|len| (0..1_u32 << len).map(move |bits| (len, bits)))
            .map(|(len, bits)| {
                (0..len)
                    .map(|i| if bits >> i & 1 == 0 { "a" } else { "b" })
                    .collect()
            })
            .collect();
        for old in &texts {
            for new in &texts {
                let edits = edits(old, new);
                let (left, right) = applied(old, new, &edits);
                assert_eq!((left, right), (own(old), own(new)), "{old:?} {new:?}");
                let changes = edits.iter().filter(|edit| **edit != Edit::Same).count();
                assert_eq!(changes, fewest(old, new), "{old:?} {new:?} {edits:?}");
            }
        }
    }

    fn own(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|&line| line.to_owned()).collect()
    }

    /// By the table of the longest common parts.
    fn fewest(old: &[&str], new: &[&str]) -> usize {
        let mut row: Vec<usize> = (0..=new.len()).collect();
        for (i, a) in old.iter().enumerate() {
            let mut next = vec![i + 1];
            for (j, b) in new.iter().enumerate() {
                next.push(match a == b {
                    true => row[j],
                    false => 1 + row[j + 1].min(next[j]),
                });
            }
            row = next;
        }
        row[new.len()]
    }

    #[test]
    fn differences_are_short() {
        let old: String = (0..100).map(|i| format!("line {i}\n")).collect();
        let new = old
            .replace("line 50\n", "line fifty\n")
            .replace("line 90\n", "");
        let expected = "@@ line 48 @@\n line 47\n line 48\n line 49\n-line 50\n+line fifty\n line 51\n line 52\n line 53\n\
                        @@ line 88 @@\n line 87\n line 88\n line 89\n-line 90\n line 91\n line 92\n line 93\n";
        assert_eq!(difference(&old, &new).as_deref(), Some(expected));
        // Everything is another: one piece, of which the beginning is shown.
        let all: String = (0..5000).map(|i| format!("other {i}\n")).collect();
        let shown = difference(&old, &all).expect("they differ");
        assert!(shown.lines().count() <= SHOWN + 2, "{shown}");
        assert!(
            shown.ends_with("and 4900 more lines that differ\n"),
            "{shown}"
        );
        let ends = difference("a\n", "a").expect("they differ");
        assert_eq!(ends, "the lines are the same, but not how they end\n");
    }
}
