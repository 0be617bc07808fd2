//! Live registers along the code.

use std::fmt::Write as _;

use super::canvas::Canvas;

/// Height of the most words in an SVG, and width of all instructions.
const AREA: [usize; 2] = [1200, 120];
/// Rows of a terminal, and columns of the longest bar.
const TERMINAL: [usize; 2] = [48, 80];

/// Words that are live at each instruction, which a listing of machine code has in its first column, with the instructions.
fn live(listing: &str) -> Vec<(usize, &str)> {
    let rows = listing.lines().filter_map(|line| {
        let (words, text) = line.trim_start().split_once('\t')?;
        Some((words.parse().ok()?, text))
    });
    rows.collect()
}

/// As SVG; none without instructions.
pub(super) fn svg(listing: &str) -> Option<String> {
    let rows = live(listing);
    let most = rows.iter().map(|&(words, _)| words).max()?.max(1);
    let [all, height] = AREA;
    let width = (all / rows.len()).clamp(1, 12);
    let mut canvas = Canvas::default();
    let count = rows.len();
    canvas.text(
        10,
        20,
        &format!("{count} instructions, at most {most} words live at once (red)"),
    );
    for (i, (words, text)) in rows.iter().enumerate() {
        let high = words * height / most;
        let colour = if *words == most {
            [204, 68, 68]
        } else {
            [68, 136, 170]
        };
        let place = [10 + i * width, 30 + height - high, width, high];
        canvas.rect(place, colour, &format!("{words}: {text}"));
    }
    Some(canvas.finish())
}

/// For a terminal: the most of some instructions at a time; none without instructions.
pub(super) fn text(listing: &str) -> Option<String> {
    let rows = live(listing);
    let most = rows.iter().map(|&(words, _)| words).max()?.max(1);
    let [lines, columns] = TERMINAL;
    let each = rows.len().div_ceil(lines);
    let mut out = format!(
        "{} instructions, at most {most} words live at once\n",
        rows.len()
    );
    for (i, part) in rows.chunks(each).enumerate() {
        let words = part.iter().map(|&(words, _)| words).max().unwrap_or(0);
        let bar = "#".repeat((words * columns).div_ceil(most));
        let _ = writeln!(out, "{:>6} {words:>4} {bar}", i * each);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "words  instruction\n$L0:\n    2\tld x;\n   12\tadd <y>;\n    4\tst x;\n";

    #[test]
    fn each_instruction_is_a_bar() {
        let picture = svg(LISTING).expect("there are instructions");
        assert!(
            picture.contains("3 instructions, at most 12 words"),
            "{picture}"
        );
        let read = roxmltree::Document::parse(&picture).expect("well-formed");
        let titles = read.descendants().filter(|node| node.has_tag_name("title"));
        let titles: Vec<&str> = titles.filter_map(|node| node.text()).collect();
        assert_eq!(titles, ["2: ld x;", "12: add <y>;", "4: st x;"]);
        assert_eq!(svg("nothing\n"), None);
    }

    #[test]
    fn the_longest_bar_is_where_most_is_live() {
        let text = text(LISTING).expect("there are instructions");
        let bars = text.lines().skip(1).map(|line| line.matches('#').count());
        assert_eq!(bars.collect::<Vec<_>>(), [14, 80, 27]);
    }
}
