//! Conversions from one layout to another: how they are done, and which banks their accesses of shared memory meet in.

use std::fmt::Write as _;

use super::canvas::{Canvas, Colour, painted};
use crate::cli::table::table;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::layout::convert::banks::Phase;
use crate::layout::convert::shared::{ExchangeSide, SharedPlan};
use crate::layout::convert::{Conversion, plan};
use crate::linear_layout::pool::LayoutId;

/// Phases of a side that are drawn.
const PHASES: usize = 4;
/// Width and height of a bank.
const CELL: [usize; 2] = [22, 16];

/// A conversion of the kernel.
pub(super) struct Found {
    ty: String,
    line: Option<u32>,
    from: LayoutId,
    to: LayoutId,
    plan: Conversion,
    warps: u32,
}

/// The conversions of a kernel, in order.
pub(super) fn conversions(func: &TileFunction) -> Vec<Found> {
    let found = func.all_insts().filter_map(|(_, inst)| {
        let data = &func.dfg.insts[inst];
        if data.op != TileOp::ConvertLayout {
            return None;
        }
        let (&from, &to) = (data.args.first()?, data.results.first()?);
        let [of, ty] = [from, to].map(|value| func.dfg.ty(value));
        let (from, to) = (of.layout.expand()?, ty.layout.expand()?);
        let [source, result] = [from, to].map(|id| &func.layouts[id]);
        let bytes = ty.elem.scalar().map_or(8, |scalar| scalar.bytes());
        Some(Found {
            ty: format!("{}[{}]", ty.elem, ty.shape),
            line: data.loc.0.expand().map(|line| line.0),
            from,
            to,
            plan: plan(source, result, bytes),
            warps: source.num_warps(),
        })
    });
    found.collect()
}

impl Found {
    fn title(&self) -> String {
        let line = self
            .line
            .map_or(String::new(), |line| format!(" of line {line}"));
        format!("{}{line}, layout {} to {}", self.ty, self.from, self.to)
    }

    /// How it is done, what it moves through shared memory, and trips through the banks beside those without conflicts.
    fn row(&self) -> [String; 4] {
        let dash = || "-".to_owned();
        match &self.plan {
            Conversion::Identity => ["nothing moves".to_owned(), dash(), dash(), dash()],
            Conversion::Registers(_) => {
                ["registers are renamed".to_owned(), dash(), dash(), dash()]
            }
            Conversion::Shuffle(plan) => {
                let count = plan.cost(4).shuffles;
                [format!("about {count} shuffles"), dash(), dash(), dash()]
            }
            Conversion::Shared(plan) => {
                let trips = |access: &ExchangeSide| {
                    let count = access.wavefronts(plan.elem_bytes, 32, self.warps);
                    format!("{} of {}", count.actual, count.ideal)
                };
                [
                    "through shared memory".to_owned(),
                    plan.bytes.to_string(),
                    trips(&plan.store),
                    trips(&plan.load),
                ]
            }
        }
    }
}

/// For a terminal.
pub(super) fn text(found: &[Found], colours: bool) -> String {
    let header = [
        "conversion",
        "how",
        "bytes",
        "stores: trips of ideal",
        "loads: trips of ideal",
    ];
    let rows = found.iter().map(|one| {
        let mut row = vec![one.title()];
        row.extend(one.row());
        row
    });
    let mut out = table(&header.map(str::to_owned), rows, |at| at == 2);
    for one in found {
        let Conversion::Shared(plan) = &one.plan else {
            continue;
        };
        let _ = writeln!(out, "\n{}", one.title());
        for (name, access) in sides(plan) {
            let _ = writeln!(
                out,
                "  {name}: words that a bank serves at once, first phases of warp 0"
            );
            for phase in access.phases(plan.elem_bytes, 32, 0).iter().take(PHASES) {
                out += "  ";
                for words in phase.banks {
                    out += &painted(&format!(" {words}"), colour(words), colours);
                }
                let _ = writeln!(out, "  {}", lanes(phase));
            }
        }
    }
    out
}

fn sides(plan: &SharedPlan) -> [(String, &ExchangeSide); 2] {
    let name = |what: &str, access: &ExchangeSide| {
        let bytes = access.vector * plan.elem_bytes;
        format!("{what} of {bytes} bytes a lane")
    };
    [
        (name("stores", &plan.store), &plan.store),
        (name("loads", &plan.load), &plan.load),
    ]
}

fn lanes(phase: &Phase) -> String {
    match phase.worst() {
        0 | 1 => format!("lanes {}..{}: no conflict", phase.first, phase.end),
        more => format!("lanes {}..{}: {more} trips", phase.first, phase.end),
    }
}

/// White for nothing, green for a word, redder for more.
fn colour(words: u32) -> Colour {
    match words {
        0 => [250, 250, 250],
        1 => [170, 220, 170],
        2 => [250, 210, 130],
        3..=4 => [245, 160, 110],
        _ => [235, 110, 110],
    }
}

/// As SVG; none if there are no conversions.
pub(super) fn svg(found: &[Found]) -> Option<String> {
    if found.is_empty() {
        return None;
    }
    let mut canvas = Canvas::default();
    let [width, height] = CELL;
    for one in found {
        let top = canvas.below() + 12;
        canvas.text(10, top, &one.title());
        let [how, bytes, stores, loads] = one.row();
        canvas.text(
            20,
            top + 16,
            &format!("{how}; bytes: {bytes}; trips of ideal: stores {stores}, loads {loads}"),
        );
        let Conversion::Shared(plan) = &one.plan else {
            continue;
        };
        let mut top = top + 28;
        for (name, access) in sides(plan) {
            canvas.text(
                20,
                top + 12,
                &format!("{name}: words that each of 32 banks serves at once"),
            );
            top += 18;
            for phase in access.phases(plan.elem_bytes, 32, 0).iter().take(PHASES) {
                for (bank, &words) in phase.banks.iter().enumerate() {
                    let place = [20 + bank * width, top, width, height];
                    canvas.rect(place, colour(words), &format!("bank {bank}: {words} words"));
                    canvas.label(place, &words.to_string());
                }
                canvas.text(30 + 32 * width, top + 12, &lanes(phase));
                top += height;
            }
            top += 4;
        }
    }
    Some(canvas.finish())
}
