//! `tilelift show`: layouts as pictures, in the terminal and as SVG.

use std::fmt::Write as _;
use std::io;
use std::process::ExitCode;

use cranelift_entity::EntityRef;

use super::args::{By, ShowArgs};
use super::html::plain;
use super::input::Kernel;
use super::{Failure, Result, write_out};
use crate::compile::compile_with;
use crate::ir::function::TileFunction;
use crate::linear_layout::layout::{HwDim, LinearLayout};
use crate::linear_layout::pool::LayoutId;
use crate::pipeline::Snapshot;
use crate::text::quote::escape;

/// Rows and columns of a picture in the terminal; more do not fit there.
const TERMINAL: (usize, usize) = (32, 16);
/// The same of an SVG.
const SVG: (usize, usize) = (64, 64);
/// Width and height of an element in an SVG.
const CELL: (usize, usize) = (46, 18);

/// Shows which thread holds which element of each block of the kernel.
pub(super) fn show(args: &ShowArgs) -> Result<ExitCode> {
    let kernel = Kernel::load(&args.kernel)?;
    let mut last = None;
    let result = compile_with(
        &kernel.func,
        kernel.target,
        &kernel.options,
        &mut |_, snapshot| {
            if let Snapshot::Tile(func) = snapshot {
                last = Some(func.clone());
            }
        },
    );
    let layouts = last.map(|func| used(&func)).unwrap_or_default();
    if layouts.is_empty() {
        result.map_err(|e| kernel.refused(&e))?;
        let message = "the kernel has no blocks, and so no layouts: all its values are numbers";
        return Err(Failure::Input(message.to_owned()));
    }
    let number = |layout: &Used| args.layout.is_none_or(|n| layout.id.index() == n);
    let chosen: Vec<&Used> = layouts.iter().filter(|&layout| number(layout)).collect();
    if chosen.is_empty() {
        let known: Vec<String> = layouts.iter().map(|l| l.id.to_string()).collect();
        let message = format!("--layout: the kernel's layouts are {}", known.join(", "));
        return Err(Failure::Usage(message));
    }
    if let Some(path) = &args.svg {
        write_out(Some(path), &svg(&chosen, args.by))?;
        return Ok(ExitCode::SUCCESS);
    }
    let choice = anstream::AutoStream::choice(&io::stdout());
    let colours = choice != anstream::ColorChoice::Never;
    let texts: Vec<String> = chosen.iter().map(|l| text(l, args.by, colours)).collect();
    write_out(None, &texts.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// The pictures of all layouts of a function, if it has blocks.
pub(super) fn pictures(func: &TileFunction) -> Option<String> {
    let layouts = used(func);
    let all: Vec<&Used> = layouts.iter().collect();
    (!all.is_empty()).then(|| svg(&all, By::Thread))
}

/// A layout that values of the kernel have.
struct Used {
    id: LayoutId,
    layout: LinearLayout,
    /// Types of the values, as in `f32[64,64]`, with lines of the source where they are made.
    values: Vec<(String, u32)>,
}

impl Used {
    fn title(&self) -> String {
        let mut title = format!("layout {} = {}", self.id, self.layout);
        let values = self.values.iter().take(4).map(|(ty, line)| match line {
            0 => ty.clone(),
            line => format!("{ty} of line {line}"),
        });
        let values: Vec<String> = values.collect();
        let more = if self.values.len() > 4 { ", .." } else { "" };
        let _ = write!(title, "\n  {}{more}", values.join(", "));
        title
    }
}

/// The layouts of the kernel's values, by their numbers.
fn used(func: &TileFunction) -> Vec<Used> {
    let mut list: Vec<Used> = Vec::new();
    for (_, inst) in func.all_insts() {
        let data = &func.dfg.insts[inst];
        let line = data.loc.0.expand().map_or(0, |line| line.0);
        for &value in &data.results {
            let ty = func.dfg.ty(value);
            let Some(id) = ty.layout.expand() else {
                continue;
            };
            // A block in shared memory belongs to no thread.
            if !func.layouts[id].is_distributed() {
                continue;
            }
            let entry = (format!("{}[{}]", ty.elem, ty.shape), line);
            match list.iter_mut().find(|used| used.id == id) {
                Some(used) if used.values.contains(&entry) => {}
                Some(used) => used.values.push(entry),
                None => list.push(Used {
                    id,
                    layout: func.layouts[id].clone(),
                    values: vec![entry],
                }),
            }
        }
    }
    list.sort_by_key(|used| used.id);
    list
}

/// Who holds an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    thread: u32,
    register: u32,
}

/// A layout as rows of elements.
struct Picture {
    rows: Vec<Vec<Cell>>,
    /// What is left out or held more than once.
    notes: Vec<String>,
}

/// The elements of the last two dimensions, where all others are 0; a vector is laid out in rows.
fn picture(layout: &LinearLayout, (most_rows, most_columns): (usize, usize)) -> Picture {
    let shape = layout.shape();
    let (rows, columns) = match shape.rank() {
        0 => (1, 1),
        1 => {
            let columns = shape.elements().min(most_columns);
            (shape.elements() / columns, columns)
        }
        rank => {
            let extent = |dim| usize::try_from(shape.extent(dim)).unwrap_or(usize::MAX);
            (extent(rank - 2), extent(rank - 1))
        }
    };
    let mut notes = Vec::new();
    let (shown_rows, shown_columns) = (rows.min(most_rows), columns.min(most_columns));
    if (shown_rows, shown_columns) != (rows, columns) {
        notes.push(format!(
            "the first {shown_rows} x {shown_columns} of {rows} x {columns} elements"
        ));
    }
    if shape.rank() > 2 {
        notes.push("the first matrix of the block's last two dimensions".to_owned());
    }
    let holders: u32 = [HwDim::Register, HwDim::Lane, HwDim::Warp]
        .iter()
        .map(|&dim| layout.free_mask(dim).count_ones())
        .sum();
    if holders > 0 {
        notes.push(format!(
            "each element is held {} times; the first holder is shown",
            1_u64 << holders
        ));
    }
    let inverse = layout.invert();
    let cell = |row: usize, column: usize| {
        let flat = u32::try_from(row * columns + column).unwrap_or(u32::MAX);
        let at = inverse.as_ref().map(|inverse| inverse.locate(flat));
        let at = at.unwrap_or_default();
        Cell {
            thread: 32 * at.warp + at.lane,
            register: at.register,
        }
    };
    let row = |row| (0..shown_columns).map(|column| cell(row, column)).collect();
    Picture {
        rows: (0..shown_rows).map(row).collect(),
        notes,
    }
}

/// A light colour, red, green and blue: the more alike two numbers are, the less alike their colours.
fn colour(cell: Cell, by: By) -> [u8; 3] {
    let n = match by {
        By::Thread => cell.thread,
        By::Warp => cell.thread / 32,
        By::Register => cell.register,
    };
    // Steps of the golden ratio around the circle of hues.
    let hue = f64::from(n) * 0.618_034 % 1.0 * 6.0;
    let channel = |shift: f64| {
        let distance = ((hue + shift) % 6.0 - 3.0).abs() - 1.0;
        (150.0 + 100.0 * distance.clamp(0.0, 1.0)) as u8
    };
    [channel(0.0), channel(4.0), channel(2.0)]
}

/// For a terminal: `thread:register` of each element.
fn text(used: &Used, by: By, colours: bool) -> String {
    let picture = picture(&used.layout, TERMINAL);
    let label = |cell: &Cell| format!("{}:{}", cell.thread, cell.register);
    let labels = picture.rows.iter().flatten().map(|cell| label(cell).len());
    let width = labels.max().unwrap_or(0);
    let mut out = format!("{}\n  thread:register", used.title());
    for note in &picture.notes {
        let _ = write!(out, "; {note}");
    }
    out.push('\n');
    for row in &picture.rows {
        out += " ";
        for cell in row {
            let label = format!("{:>width$}", label(cell));
            match colours {
                true => {
                    let [r, g, b] = colour(*cell, by);
                    let _ = write!(out, "\u{1b}[38;2;0;0;0;48;2;{r};{g};{b}m {label} \u{1b}[0m");
                }
                false => _ = write!(out, " {label}"),
            }
        }
        out.push('\n');
    }
    out
}

/// All pictures below each other.
fn svg(list: &[&Used], by: By) -> String {
    let (width, height) = CELL;
    let (mut body, mut top, mut right) = (String::new(), 10, 700);
    for used in list {
        let picture = picture(&used.layout, SVG);
        let mut lines: Vec<String> = used.title().lines().map(str::to_owned).collect();
        lines.push(format!("thread:register {}", picture.notes.join("; ")));
        for line in lines {
            top += 16;
            let line = plain(&escape(line.trim()));
            let _ = writeln!(body, "<text x=\"10\" y=\"{top}\">{line}</text>");
        }
        top += 8;
        for row in &picture.rows {
            for (column, cell) in row.iter().enumerate() {
                let (x, [r, g, b]) = (10 + column * width, colour(*cell, by));
                let (middle, base) = (x + width / 2, top + 13);
                let (thread, register) = (cell.thread, cell.register);
                let _ = writeln!(
                    body,
                    "<rect x=\"{x}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"rgb({r},{g},{b})\" stroke=\"white\"/>\
                     <text x=\"{middle}\" y=\"{base}\" text-anchor=\"middle\">{thread}:{register}</text>"
                );
            }
            right = right.max(20 + row.len() * width);
            top += height;
        }
        top += 14;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {right} {top}\" font-family=\"monospace\" font-size=\"11\">\n\
         <rect width=\"{right}\" height=\"{top}\" fill=\"white\"/>\n{body}</svg>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear_layout::shape::Shape;

    fn layout(text: &str, extents: &[u64]) -> LinearLayout {
        let shape = Shape::new(extents).expect("powers of two");
        LinearLayout::parse(text, shape).expect("a layout")
    }

    #[test]
    fn elements_stand_where_the_layout_puts_them() {
        let layout = layout("{reg=[1], lane=[2,4,8,16,32], warp=[64]}", &[8, 16]);
        let picture = picture(&layout, SVG);
        assert!(picture.notes.is_empty(), "{:?}", picture.notes);
        for (i, row) in picture.rows.iter().enumerate() {
            for (j, cell) in row.iter().enumerate() {
                let (thread, register) = (cell.thread, cell.register);
                let flat = layout.apply(register, thread % 32, thread / 32, 0);
                assert_eq!(flat as usize, 16 * i + j);
            }
        }
    }

    #[test]
    fn what_is_cut_or_held_twice_is_said() {
        let vector = layout("{reg=[32], lane=[1,2,4,8,16], warp=[0]}", &[64]);
        let cut = picture(&vector, (1, 16));
        assert_eq!((cut.rows.len(), cut.rows[0].len()), (1, 16));
        let expected = [
            "the first 1 x 16 of 4 x 16 elements",
            "each element is held 2 times; the first holder is shown",
        ];
        assert_eq!(cut.notes, expected);
    }

    #[test]
    fn neighbours_have_colours_of_their_own() {
        let cell = |thread| Cell {
            thread,
            register: 0,
        };
        let colours: Vec<[u8; 3]> = (0..8).map(|t| colour(cell(t), By::Thread)).collect();
        for i in 0..8 {
            for j in 0..i {
                assert_ne!(colours[i], colours[j], "{i} {j}");
            }
        }
        assert_eq!(colour(cell(0), By::Warp), colour(cell(31), By::Warp));
    }
}
