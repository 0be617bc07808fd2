//! The schedule of pipelined loops: what the program does, step by step, and what stands in its rings meanwhile.

use std::fmt::Write as _;

use super::canvas::{Canvas, Colour, painted};
use crate::ir::function::TileFunction;
use crate::ir::ops::Opcode;
use crate::verify::timeline::{Content, RingStep, Tick, Timeline, timeline};

/// Steps that a terminal has room for.
const TERMINAL: usize = 110;
/// Steps of an SVG.
const SVG: usize = 240;
/// Width and height of a step in an SVG.
const CELL: [usize; 2] = [12, 16];
/// Where steps begin in an SVG.
const LEFT: usize = 230;

/// How a step is drawn, and what it means.
const STEPS: [(RingStep, char, Colour, &str); 8] = [
    (RingStep::Copy, 'c', [255, 190, 120], "starts a copy"),
    (
        RingStep::Wait,
        'w',
        [235, 130, 130],
        "waits for copies, or for a free entry",
    ),
    (
        RingStep::Read,
        'r',
        [170, 220, 170],
        "reads a block into registers",
    ),
    (RingStep::Store, 's', [220, 200, 130], "stores a block"),
    (
        RingStep::Multiply,
        'm',
        [130, 170, 240],
        "multiplies, or starts a product",
    ),
    (
        RingStep::Finish,
        'f',
        [200, 150, 230],
        "waits for a product",
    ),
    (
        RingStep::Release,
        'g',
        [190, 190, 190],
        "gives an entry back",
    ),
    (
        RingStep::Compute,
        '.',
        [225, 225, 225],
        "computes in registers",
    ),
];

/// The same of what an entry of a ring holds.
const CONTENTS: [(Content, char, Colour, &str); 5] = [
    (Content::Nothing, ' ', [250, 250, 250], "nothing"),
    (
        Content::Arriving,
        '>',
        [255, 215, 165],
        "a copy is under way to it",
    ),
    (
        Content::Full,
        '#',
        [120, 200, 120],
        "a block that was not read yet",
    ),
    (Content::Read, '-', [205, 235, 205], "a block that was read"),
    (
        Content::Multiplied,
        'x',
        [130, 170, 240],
        "a product under way reads it",
    ),
];

fn of_step(step: RingStep) -> (char, Colour, &'static str) {
    let found = STEPS.iter().find(|(other, ..)| *other == step);
    found.map_or(('?', [255; 3], ""), |&(_, letter, colour, words)| {
        (letter, colour, words)
    })
}

fn of_content(content: Content) -> (char, Colour, &'static str) {
    let found = CONTENTS.iter().find(|(other, ..)| *other == content);
    found.map_or(('?', [255; 3], ""), |&(_, letter, colour, words)| {
        (letter, colour, words)
    })
}

/// A row of a picture: who or what, and for each step a letter, a colour and what is told of it.
struct Row {
    name: String,
    cells: Vec<(char, Colour, String)>,
}

/// The rows of all units: who does something, the entries of rings, products under way.
fn rows(func: &TileFunction, timeline: &Timeline, most: usize) -> Vec<Row> {
    let ticks = &timeline.ticks[..timeline.ticks.len().min(most)];
    let what = |tick: &Tick| {
        let data = &func.dfg.insts[tick.inst];
        let line = data
            .loc
            .0
            .expand()
            .map_or(String::new(), |line| format!(", line {}", line.0));
        format!("{} ({}{line})", of_step(tick.step).2, data.op.info().name)
    };
    let who = |name: &str, ahead: bool| Row {
        name: name.to_owned(),
        cells: ticks
            .iter()
            .map(|tick| match tick.is_ahead == ahead {
                true => {
                    let (letter, colour, _) = of_step(tick.step);
                    (letter, colour, what(tick))
                }
                false => (' ', [250; 3], String::new()),
            })
            .collect(),
    };
    let mut rows = vec![who("program", false)];
    if ticks.iter().any(|tick| tick.is_ahead) {
        rows.push(who("warps that copy", true));
    }
    for (at, &(slot, index)) in timeline.entries.iter().enumerate() {
        let block = func.buffers[slot].map_or(String::new(), |ring| {
            format!(" {}[{}]", ring.elem, ring.shape)
        });
        let cell = |tick: &Tick| {
            let (letter, colour, words) = of_content(tick.contents[at]);
            (letter, colour, words.to_owned())
        };
        rows.push(Row {
            name: format!("{slot} entry {index}{block}"),
            cells: ticks.iter().map(cell).collect(),
        });
    }
    if ticks.iter().any(|tick| tick.products > 0) {
        let cell = |tick: &Tick| {
            let letter = char::from_digit(tick.products.min(9) as u32, 10).unwrap_or('9');
            let (letter, colour) = match tick.products {
                0 => (' ', [250; 3]),
                _ => (letter, [130, 170, 240]),
            };
            (
                letter,
                colour,
                format!("{} products under way", tick.products),
            )
        };
        rows.push(Row {
            name: "products under way".to_owned(),
            cells: ticks.iter().map(cell).collect(),
        });
    }
    rows
}

/// What is said of a timeline that is cut.
fn heading(timeline: &Timeline, most: usize) -> String {
    let count = timeline.ticks.len();
    let cut = match count > most {
        true => format!("the first {most} of {count} steps"),
        false => format!("{count} steps"),
    };
    format!(
        "schedule: {cut}, in order and without durations; copies and products take as long as the program lets them"
    )
}

/// For a terminal; none if the kernel has no rings.
pub(super) fn text(func: &TileFunction, colours: bool) -> Option<String> {
    let timeline = timeline(func);
    if timeline.ticks.is_empty() {
        return None;
    }
    let rows = rows(func, &timeline, TERMINAL);
    let width = rows
        .iter()
        .map(|row| row.name.chars().count())
        .max()
        .unwrap_or(0);
    let mut out = format!("{}\n", heading(&timeline, TERMINAL));
    for row in &rows {
        let _ = write!(out, "{:width$}  ", row.name);
        for (letter, colour, _) in &row.cells {
            out += &painted(&letter.to_string(), *colour, colours);
        }
        // Without colours a row ends where its last letter does.
        let kept = out.trim_end().len();
        out.truncate(kept);
        out.push('\n');
    }
    let legend = |(letter, words): (char, &str)| format!("{letter} {words}");
    let steps = STEPS
        .iter()
        .map(|&(_, letter, _, words)| legend((letter, words)));
    let _ = writeln!(out, "program: {}", steps.collect::<Vec<_>>().join("; "));
    let contents = CONTENTS.iter().skip(1);
    let contents = contents.map(|&(_, letter, _, words)| legend((letter, words)));
    let _ = writeln!(out, "entries: {}", contents.collect::<Vec<_>>().join("; "));
    Some(out)
}

/// As SVG; none if the kernel has no rings.
pub(super) fn svg(func: &TileFunction) -> Option<String> {
    let timeline = timeline(func);
    if timeline.ticks.is_empty() {
        return None;
    }
    let mut canvas = Canvas::default();
    let [width, height] = CELL;
    canvas.text(10, 20, &heading(&timeline, SVG));
    let mut top = 32;
    for row in rows(func, &timeline, SVG) {
        canvas.text(10, top + 12, &row.name);
        for (at, (letter, colour, words)) in row.cells.iter().enumerate() {
            let place = [LEFT + at * width, top, width, height];
            canvas.rect(place, *colour, words);
            if *letter != ' ' {
                canvas.label(place, &letter.to_string());
            }
        }
        top += height + 2;
    }
    top += 10;
    let steps = STEPS
        .iter()
        .map(|&(_, letter, colour, words)| (letter, colour, words));
    let contents = CONTENTS.iter().skip(1);
    let contents = contents.map(|&(_, letter, colour, words)| (letter, colour, words));
    for (letter, colour, words) in steps.chain(contents) {
        let place = [10, top, width, height];
        canvas.rect(place, colour, "");
        canvas.label(place, &letter.to_string());
        canvas.text(30, top + 12, words);
        top += height + 2;
    }
    Some(canvas.finish())
}
