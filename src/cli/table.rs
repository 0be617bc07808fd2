//! Tables for people: columns apart, without lines between them.

use comfy_table::{CellAlignment, Table, presets};

/// The text of a table; columns of numbers end at the same place.
pub(super) fn table(
    header: &[String],
    rows: impl IntoIterator<Item = Vec<String>>,
    is_number: impl Fn(usize) -> bool,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for at in (0..header.len()).filter(|&at| is_number(at)) {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    // Cells have a space on both sides.
    let line = |line: String| format!("{}\n", line.strip_prefix(' ').unwrap_or(&line).trim_end());
    table.lines().map(line).collect()
}

/// A large number in short: 1.50 M.
pub(super) fn short(number: f64) -> String {
    match number {
        number if number >= 1e12 => format!("{:.2} T", number / 1e12),
        number if number >= 1e9 => format!("{:.2} G", number / 1e9),
        number if number >= 1e6 => format!("{:.2} M", number / 1e6),
        number if number >= 1e4 => format!("{:.1} k", number / 1e3),
        number => format!("{number:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_at_the_same_place() {
        let texts = |list: [&str; 2]| list.map(str::to_owned).to_vec();
        let rows = [texts(["a", "5"]), texts(["bcd", "1234"])];
        let text = table(&texts(["name", "n"]), rows, |at| at == 1);
        assert_eq!(text, "name     n\na        5\nbcd   1234\n");
    }

    #[test]
    fn large_numbers_are_short() {
        let all = [7.0, 9999.0, 12_345.0, 2.5e6, 1.25e9, 3e12].map(short);
        assert_eq!(all, ["7", "9999", "12.3 k", "2.50 M", "1.25 G", "3.00 T"]);
    }
}
