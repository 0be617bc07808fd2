//! Which line of the source the lines of PTX and of machine code come of.

/// The lines of PTX; `.loc` says of which line of the source those behind it come, and is left out.
pub(super) fn lines_of_ptx(ptx: &str) -> Vec<(Option<usize>, String)> {
    let mut place = None;
    let mut lines = Vec::new();
    for line in ptx.lines() {
        match line.trim_start().strip_prefix(".loc ") {
            Some(words) => place = words.split(' ').nth(1).and_then(|n| n.parse().ok()),
            None => lines.push((place, line.to_owned())),
        }
    }
    lines
}

/// The lines of a disassembler; comments as `//## File "name", line 7` say of which line of the source those behind them come.
pub(super) fn lines_of_sass(sass: &str) -> Vec<(Option<usize>, String)> {
    let mut place = None;
    let mut lines = Vec::new();
    for line in sass.lines() {
        match line.trim_start().strip_prefix("//## File ") {
            Some(words) => {
                let number = words.rsplit_once("line ").map(|(_, rest)| rest);
                let digits = number.map(|rest| rest.split(|c: char| !c.is_ascii_digit()));
                place = digits.and_then(|mut d| d.next()?.parse().ok());
            }
            None => lines.push((place, line.to_owned())),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_know_where_they_come_from() {
        let ptx = "{\n\t.loc 1 8 11\n\tadd;\n\tmul;\n\t.loc 1 9 1\n\tret;\n}\n";
        let places: Vec<_> = lines_of_ptx(ptx)
            .into_iter()
            .map(|(place, _)| place)
            .collect();
        assert_eq!(places, [None, Some(8), Some(8), Some(9), Some(9)]);
        let sass = "x:\n\t//## File \"a, line 3.py\", line 12\n  MOV R1;\n\t//## File \"a.py\", line 7 inlined\n  EXIT;\n";
        let places: Vec<_> = lines_of_sass(sass)
            .into_iter()
            .map(|(place, _)| place)
            .collect();
        assert_eq!(places, [None, Some(12), Some(7)]);
    }
}
