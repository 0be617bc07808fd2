//! What each line of the source costs, counted by the emulator: where accesses of memory and bank conflicts come from.

use super::canvas::{Canvas, Colour};
use crate::cli::args::ShowArgs;
use crate::cli::input::Kernel;
use crate::cli::table::{short, table};
use crate::cli::{Failure, Result};
use crate::emu::Stats;
use crate::filetest::run::Setup;
use crate::filetest::run::launch::LaunchLine;
use crate::settings::Options;

/// Lines that are shown of a text whose lines nobody wrote.
const MOST: usize = 40;
/// Width of the longest bar.
const BAR: usize = 220;

/// A line and what it does.
struct Row {
    number: u32,
    text: String,
    stats: Stats,
}

/// The lines that do something.
pub(super) struct Lines {
    title: String,
    rows: Vec<Row>,
}

/// Runs a kernel on the emulator and counts for each line.
pub(super) fn lines(args: &ShowArgs, kernel: &Kernel) -> Result<Lines> {
    let Some(words) = &args.line else {
        let message = "--picture lines runs the kernel: give --args, as in --args \"grid(4) x=f32[1000] normal(1) n=1000\"";
        return Err(Failure::Usage(message.to_owned()));
    };
    let wrong = |problem: String| {
        Failure::Input(format!("{}: error: --args: {problem}", kernel.source.name))
    };
    let options = Options {
        line_info: kernel.has_lines,
        ..kernel.options
    };
    let setup = Setup {
        steps: args.limits.steps,
        programs: args.limits.programs,
        fixed: &kernel.constants,
        ..Setup::new(kernel.target, &options)
    };
    let line = LaunchLine::read(&kernel.func, words, &setup).map_err(wrong)?;
    let (ptx, counts) = line.by_lines(&kernel.func, &setup).map_err(wrong)?;
    let title = match kernel.has_lines {
        true => format!("lines of {}", kernel.source.name),
        false => "lines of the PTX".to_owned(),
    };
    let rows = match kernel.has_lines {
        true => of_source(&kernel.source.text, &ptx, &counts),
        false => of_ptx(&ptx, &counts),
    };
    let title = format!("{} for {}: {title}", kernel.func.name, kernel.target);
    Ok(Lines { title, rows })
}

/// For each line of the source what the PTX that comes of it does.
fn of_source(source: &str, ptx: &str, counts: &[(u32, Stats)]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut place = 0;
    let places: Vec<u32> = ptx
        .lines()
        .map(|line| {
            if let Some(words) = line.trim_start().strip_prefix(".loc ") {
                place = words
                    .split(' ')
                    .nth(1)
                    .and_then(|n| n.parse().ok())
                    .unwrap_or(0);
            }
            place
        })
        .collect();
    for &(line, stats) in counts {
        let number = places.get(line as usize - 1).copied().unwrap_or(0);
        match rows.iter_mut().find(|row| row.number == number) {
            Some(row) => row.stats.add(stats),
            None => {
                let text = source.lines().nth((number as usize).wrapping_sub(1));
                let text = text
                    .map_or("(what belongs to no line)", str::trim)
                    .to_owned();
                rows.push(Row {
                    number,
                    text,
                    stats,
                });
            }
        }
    }
    rows.sort_by_key(|row| row.number);
    rows
}

/// The lines of the PTX that cost most, in their order.
fn of_ptx(ptx: &str, counts: &[(u32, Stats)]) -> Vec<Row> {
    let mut rows: Vec<Row> = counts
        .iter()
        .map(|&(number, stats)| {
            let text = ptx.lines().nth(number as usize - 1);
            let text = text.unwrap_or_default().trim().to_owned();
            Row {
                number,
                text,
                stats,
            }
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.cost()));
    rows.truncate(MOST);
    rows.sort_by_key(|row| row.number);
    rows
}

impl Row {
    /// One number for what it costs: instructions of warps, sectors of memory at four each, trips through shared memory.
    fn cost(&self) -> u64 {
        let Stats {
            warp_instructions,
            global_sectors,
            shared_wavefronts,
            ..
        } = self.stats;
        warp_instructions + 4 * global_sectors + shared_wavefronts
    }

    /// Bytes that sectors move for each byte asked for.
    fn moved(&self) -> Option<f64> {
        let asked = self.stats.global_bytes;
        (asked > 0).then(|| (32 * self.stats.global_sectors) as f64 / asked as f64)
    }

    /// Trips through the banks for each trip without conflicts.
    fn conflicts(&self) -> Option<f64> {
        let ideal = self.stats.shared_ideal_wavefronts;
        (ideal > 0).then(|| self.stats.shared_wavefronts as f64 / ideal as f64)
    }

    /// What is wrong with it, in words.
    fn remark(&self) -> String {
        let mut remarks = Vec::new();
        if let Some(moved) = self.moved().filter(|&moved| moved >= 2.0) {
            remarks.push(format!(
                "lanes are not side by side: {moved:.1} bytes move for each that is used"
            ));
        }
        if let Some(trips) = self.conflicts().filter(|&trips| trips >= 1.5) {
            remarks.push(format!("bank conflicts: {trips:.1} trips in place of 1"));
        }
        remarks.join("; ")
    }
}

/// What the columns mean.
const NOTE: &str = "counts of the emulator, no times; share: of instructions, four for each sector of 32 bytes, one for each trip through \
                    shared memory";

impl Lines {
    fn total(&self) -> u64 {
        self.rows.iter().map(Row::cost).sum::<u64>().max(1)
    }

    /// For a terminal.
    pub(super) fn text(&self) -> String {
        let header = [
            "line",
            "share",
            "instructions",
            "sectors",
            "moved/needed",
            "trips",
            "trips/ideal",
            "",
            "",
        ];
        let total = self.total();
        let ratio =
            |ratio: Option<f64>| ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
        let rows = self.rows.iter().map(|row| {
            let mut text: String = row.text.chars().take(60).collect();
            if text.len() < row.text.len() {
                text += " ..";
            }
            vec![
                row.number.to_string(),
                format!("{:.1} %", 100.0 * row.cost() as f64 / total as f64),
                short(row.stats.warp_instructions as f64),
                short(row.stats.global_sectors as f64),
                ratio(row.moved()),
                short(row.stats.shared_wavefronts as f64),
                ratio(row.conflicts()),
                text,
                row.remark(),
            ]
        });
        let rows = table(&header.map(str::to_owned), rows, |at| at < 7);
        format!("{}\n{rows}{NOTE}\n", self.title)
    }

    /// As SVG: a bar for each line, in red where memory or banks are used badly.
    pub(super) fn svg(&self) -> String {
        const RED: Colour = [235, 110, 110];
        const BLUE: Colour = [130, 170, 240];
        let mut canvas = Canvas::default();
        canvas.text(10, 20, &self.title);
        canvas.text(10, 36, NOTE);
        let total = self.total();
        let most = self.rows.iter().map(Row::cost).max().unwrap_or(1).max(1);
        let mut top = 46;
        for row in &self.rows {
            let remark = row.remark();
            let width = (row.cost() as usize * BAR).div_ceil(most as usize);
            let share = 100.0 * row.cost() as f64 / total as f64;
            let colour = if remark.is_empty() { BLUE } else { RED };
            let what = format!(
                "{} instructions of warps, {} sectors, {} trips through shared memory",
                row.stats.warp_instructions, row.stats.global_sectors, row.stats.shared_wavefronts
            );
            canvas.rect([10, top, width.max(1), 14], colour, &what);
            canvas.text(16, top + 11, &format!("{share:.1} %"));
            canvas.text(
                20 + BAR,
                top + 11,
                &format!("{:>4}  {}", row.number, row.text),
            );
            if !remark.is_empty() {
                let x = 20 + BAR + 7 * (6 + row.text.chars().count()) + 20;
                canvas.text(x, top + 11, &remark);
            }
            top += 18;
        }
        canvas.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::source_lines::lines_of_ptx;

    #[test]
    fn lines_add_up_and_say_what_is_wrong() {
        let ptx = "{\n.loc 1 2 1\nld;\nld;\n.loc 1 1 1\nst;\n}\n";
        let stats = |sectors, bytes, trips| Stats {
            warp_instructions: 1,
            global_sectors: sectors,
            global_bytes: bytes,
            shared_wavefronts: trips,
            shared_ideal_wavefronts: trips.min(1),
            ..Stats::default()
        };
        let counts = [
            (3, stats(32, 128, 0)),
            (4, stats(32, 128, 0)),
            (6, stats(0, 0, 4)),
        ];
        let rows = of_source("store(x)\nload(<x>)\n", ptx, &counts);
        let found: Vec<(u32, &str, u64)> = rows
            .iter()
            .map(|row| (row.number, row.text.as_str(), row.cost()))
            .collect();
        assert_eq!(found, [(1, "store(x)", 5), (2, "load(<x>)", 258)]);
        assert!(rows[0].remark().contains("4.0 trips in place of 1"));
        assert!(rows[1].remark().contains("8.0 bytes move"));
        // The places are those of the page that shows them.
        assert_eq!(lines_of_ptx(ptx)[1].0, Some(2));
        let lines = Lines {
            title: "k".to_owned(),
            rows,
        };
        let picture = lines.svg();
        let read = roxmltree::Document::parse(&picture).expect("well-formed");
        let texts = read.descendants().filter_map(|node| node.text());
        assert!(texts.into_iter().any(|text| text.contains("load(<x>)")));
        assert!(lines.text().contains("98.1 %"), "{}", lines.text());
    }
}
