//! Layouts as grids of elements: which thread holds which, and where blocks stand in shared memory.

use std::fmt::Write as _;

use super::canvas::{Canvas, Colour, painted};
use crate::cli::args::By;
use crate::ir::entities::Slot;
use crate::ir::function::{BufferData, TileFunction};
use crate::linear_layout::layout::{HwDim, LinearLayout};
use crate::linear_layout::pool::LayoutId;

/// Rows and columns of a picture in the terminal; more do not fit there.
const TERMINAL: (usize, usize) = (32, 16);
/// The same of an SVG.
const SVG: (usize, usize) = (64, 64);
/// Width and height of an element in an SVG.
const CELL: (usize, usize) = (46, 18);
/// Bytes that all banks of shared memory serve at once.
const LINE: u32 = 128;

/// A layout that values of the kernel have.
pub(super) struct Used {
    pub(super) id: LayoutId,
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
pub(super) fn used(func: &TileFunction) -> Vec<Used> {
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
    /// The element's place in shared memory, in elements.
    offset: u32,
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
            offset: at.offset,
        }
    };
    let row = |row| (0..shown_columns).map(|column| cell(row, column)).collect();
    Picture {
        rows: (0..shown_rows).map(row).collect(),
        notes,
    }
}

/// The colour of an element.
fn colour(cell: Cell, by: By) -> Colour {
    hue(match by {
        By::Thread => cell.thread,
        By::Warp => cell.thread / 32,
        By::Register => cell.register,
    })
}

/// A light colour: the more alike two numbers are, the less alike their colours.
pub(super) fn hue(n: u32) -> Colour {
    // Steps of the golden ratio around the circle of hues.
    let hue = f64::from(n) * 0.618_034 % 1.0 * 6.0;
    let channel = |shift: f64| {
        let distance = ((hue + shift) % 6.0 - 3.0).abs() - 1.0;
        (150.0 + 100.0 * distance.clamp(0.0, 1.0)) as u8
    };
    [channel(0.0), channel(4.0), channel(2.0)]
}

/// A grid of elements with its title, what each label means, and notes.
struct Grid {
    title: String,
    meaning: String,
    rows: Vec<Vec<(String, Colour)>>,
}

/// Who holds which element.
fn held(used: &Used, by: By, most: (usize, usize)) -> Grid {
    let picture = picture(&used.layout, most);
    let label = |cell: &Cell| {
        let label = format!("{}:{}", cell.thread, cell.register);
        (label, colour(*cell, by))
    };
    Grid {
        title: used.title(),
        meaning: noted("thread:register", &picture.notes),
        rows: picture
            .rows
            .iter()
            .map(|row| row.iter().map(label).collect())
            .collect(),
    }
}

/// Where the elements of a ring's blocks stand, in lines of 128 bytes and the banks within.
fn placed(ring: &Ring, most: (usize, usize)) -> Grid {
    let picture = picture(&ring.layout, most);
    let label = |cell: &Cell| {
        let byte = cell.offset * ring.data.elem.bytes();
        let (line, bank) = (byte / LINE, byte % LINE / 4);
        (format!("{line}:{bank}"), hue(bank))
    };
    Grid {
        title: format!("{} = {}\n  {}", ring.slot, ring.layout, ring.data),
        meaning: noted(
            "line of 128 bytes:bank; a colour for each bank",
            &picture.notes,
        ),
        rows: picture
            .rows
            .iter()
            .map(|row| row.iter().map(label).collect())
            .collect(),
    }
}

fn noted(meaning: &str, notes: &[String]) -> String {
    let all = [meaning.to_owned()]
        .into_iter()
        .chain(notes.iter().cloned());
    all.collect::<Vec<_>>().join("; ")
}

/// A ring of blocks in shared memory.
pub(super) struct Ring {
    pub(super) slot: Slot,
    pub(super) data: BufferData,
    pub(super) layout: LinearLayout,
}

/// For a terminal.
pub(super) fn text(list: &[&Used], by: By, colours: bool) -> String {
    let texts = list
        .iter()
        .map(|used| held(used, by, TERMINAL).text(colours));
    texts.collect::<Vec<_>>().join("\n")
}

/// All pictures below each other.
pub(super) fn svg(list: &[&Used], by: By) -> String {
    Grid::svg(list.iter().map(|used| held(used, by, SVG)))
}

/// Rings for a terminal.
pub(super) fn rings_text(list: &[Ring], colours: bool) -> String {
    let texts = list.iter().map(|ring| placed(ring, TERMINAL).text(colours));
    texts.collect::<Vec<_>>().join("\n")
}

/// Rings as SVG; none if there are none.
pub(super) fn rings_svg(list: &[Ring]) -> Option<String> {
    (!list.is_empty()).then(|| Grid::svg(list.iter().map(|ring| placed(ring, SVG))))
}

impl Grid {
    fn text(&self, colours: bool) -> String {
        let labels = self.rows.iter().flatten().map(|(label, _)| label.len());
        let width = labels.max().unwrap_or(0);
        let mut out = format!("{}\n  {}\n", self.title, self.meaning);
        for row in &self.rows {
            out += " ";
            for (label, colour) in row {
                match colours {
                    true => out += &painted(&format!(" {label:>width$} "), *colour, true),
                    false => _ = write!(out, " {label:>width$}"),
                }
            }
            out.push('\n');
        }
        out
    }

    fn svg(grids: impl Iterator<Item = Grid>) -> String {
        let (width, height) = CELL;
        let mut canvas = Canvas::default();
        for grid in grids {
            let mut top = canvas.below();
            for line in grid.title.lines().chain([grid.meaning.as_str()]) {
                top += 16;
                canvas.text(10, top, line.trim());
            }
            top += 8;
            for row in &grid.rows {
                for (column, (label, colour)) in row.iter().enumerate() {
                    let place = [10 + column * width, top, width, height];
                    canvas.rect(place, *colour, "");
                    canvas.label(place, label);
                }
                top += height;
            }
        }
        canvas.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::types::Scalar;
    use crate::linear_layout::shape::Shape;
    use cranelift_entity::EntityRef;

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
    fn rings_say_line_and_bank() {
        let shape = Shape::new(&[8, 64]).expect("powers of two");
        let order = [1, 0];
        let layout = crate::linear_layout::named::shared_swizzled(shape, &order, 8, 1, 8);
        let ring = Ring {
            slot: Slot::new(0),
            data: BufferData {
                elem: Scalar::F16,
                shape,
                stages: 2,
            },
            layout: layout.expect("chunks of 8 elements"),
        };
        let grid = placed(&ring, SVG);
        // Rows of 128 bytes, whose chunks of 16 bytes are permuted by the number of the row.
        let at = |row: usize, column: usize| grid.rows[row][column].0.as_str();
        assert_eq!(
            [at(0, 0), at(0, 2), at(1, 0), at(3, 8)],
            ["0:0", "0:1", "1:4", "3:8"]
        );
        let text = rings_text(&[ring], false);
        assert!(text.contains("2 blocks of f16[8,64]"), "{text}");
    }

    #[test]
    fn neighbours_have_colours_of_their_own() {
        let cell = |thread| Cell {
            thread,
            register: 0,
            offset: 0,
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
