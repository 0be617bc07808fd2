//! The text of a kernel at each stage of its way: what `--emit` prints and file tests compare.

use cranelift_entity::SecondaryMap;

use crate::compile::{CompiledKernel, compile_with};
use crate::error::CompileError;
use crate::ir::entities::Slot;
use crate::ir::function::{BufferData, ThreadFunction, TileFunction};
use crate::pipeline::{Snapshot, promoted};
use crate::settings::{Options, Target};
use crate::thread::place_shared::{SlotLiveRange, live_ranges};
use crate::tile::promote::{Promotion, nothing_to_promote};

/// A stage of compilation that has a text form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Block programs as they were read.
    Tile,
    /// Block programs after simplification.
    Opt,
    /// Block programs with tensor maps, before pipelines are made; and why loads and stores have none.
    Maps,
    /// Block programs with layouts.
    Layout,
    /// Live ranges of shared memory against offsets.
    Shared,
    /// What one thread does.
    Thread,
    /// Instructions before and after allocation, with live ranges.
    Machine,
    /// PTX.
    Ptx,
    /// Conversions and their bytes.
    Stats,
}

impl Stage {
    /// Every stage, in order.
    pub const ALL: [Stage; 9] = [
        Stage::Tile,
        Stage::Opt,
        Stage::Maps,
        Stage::Layout,
        Stage::Shared,
        Stage::Thread,
        Stage::Machine,
        Stage::Ptx,
        Stage::Stats,
    ];

    /// Its name on the command line and in file tests.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Tile => "tile",
            Stage::Opt => "opt",
            Stage::Maps => "maps",
            Stage::Layout => "layout",
            Stage::Shared => "shared",
            Stage::Thread => "thread",
            Stage::Machine => "machine",
            Stage::Ptx => "ptx",
            Stage::Stats => "stats",
        }
    }

    /// The stage with this name.
    pub fn from_name(name: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| stage.name() == name)
    }
}

/// The text of a kernel after a stage.
///
/// A kernel that is refused at a later stage has the text of the earlier ones all the same.
pub fn emit(
    func: &TileFunction,
    target: Target,
    options: &Options,
    stage: Stage,
) -> Result<String, CompileError> {
    if stage == Stage::Tile {
        return Ok(func.to_string());
    }
    if stage == Stage::Maps {
        let (func, promotions) = promoted(func, target, options)?;
        let lines = promotions.iter().map(|load| format!("{load}\n"));
        let mut text: String = lines.collect();
        if promotions.iter().any(Promotion::is_by_map) {
            text += &func.to_string();
        }
        if promotions.is_empty() {
            let why = nothing_to_promote(&func, target, options);
            text += &format!("no tensor maps: {why}\n");
        }
        return Ok(text);
    }
    let mut text = None;
    let mut rings = SecondaryMap::new();
    let result = compile_with(
        func,
        target,
        options,
        &mut |pass, snapshot| match (snapshot, stage) {
            (Snapshot::Tile(func), Stage::Opt) if pass != LAYOUT_PASS => {
                text = Some(func.to_string());
            }
            (Snapshot::Tile(func), Stage::Layout) => text = Some(func.to_string()),
            (Snapshot::Thread(func), Stage::Thread) => text = Some(func.to_string()),
            (Snapshot::Machine(_), Stage::Machine) if pass == "schedule" => {
                text = Some(format!("; before allocation\n{snapshot}"));
            }
            (Snapshot::Machine(_), Stage::Machine) if pass == "allocate" => {
                text.get_or_insert_default()
                    .push_str(&format!("\n; after allocation\n{snapshot}"));
            }
            (Snapshot::Tile(func), Stage::Shared) => rings.clone_from(&func.buffers),
            (Snapshot::Thread(func), Stage::Shared) => {
                text = Some(draw_shared(&shared_ranges(func, &rings)))
            }
            _ => {}
        },
    );
    match (text, stage) {
        (Some(text), _) => Ok(text),
        (None, Stage::Ptx) => result.map(|kernel| kernel.ptx),
        (None, Stage::Stats) => result.map(|kernel| stats_text(&kernel)),
        // No pass changed the program before layouts were assigned.
        (None, _) => result.map(|_| func.to_string()),
    }
}

/// The pass after which block programs have layouts.
const LAYOUT_PASS: &str = "assign_layouts";

/// Columns of the drawing of shared memory.
const COLUMNS: u32 = 60;

/// A range of shared memory from its first access to its last, as positions of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedRange {
    pub(crate) slot: Slot,
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
    pub(crate) first: u32,
    pub(crate) last: u32,
    /// What it holds, if that is a ring of blocks.
    pub(crate) ring: Option<BufferData>,
}

/// Slots of shared memory, by offset.
pub(crate) fn shared_ranges(
    func: &ThreadFunction,
    rings: &SecondaryMap<Slot, Option<BufferData>>,
) -> Vec<SharedRange> {
    let range = |range: &SlotLiveRange| SharedRange {
        slot: range.slot,
        offset: func.slots[range.slot].offset.unwrap_or(0),
        bytes: func.slots[range.slot].bytes,
        first: range.first,
        last: range.last,
        ring: rings[range.slot],
    };
    let mut ranges: Vec<SharedRange> = live_ranges(func).iter().map(range).collect();
    ranges.sort_by_cached_key(|range| (range.offset, range.slot.to_string()));
    ranges
}

/// Slots of shared memory by offset, each with a bar from its first to its last access; rings say what they hold.
pub(crate) fn draw_shared(ranges: &[SharedRange]) -> String {
    let end = ranges.iter().map(|r| r.last + 1).max().unwrap_or(1);
    let row = |range: &SharedRange| {
        let (first, last) = (range.first * COLUMNS / end, range.last * COLUMNS / end);
        let bar: String = (0..COLUMNS)
            .map(|c| if first <= c && c <= last { '#' } else { '.' })
            .collect();
        let bytes = format!("{}..{}", range.offset, range.offset + range.bytes);
        let name = range.slot.to_string();
        let ring = range.ring.map_or(String::new(), |ring| format!(" {ring}"));
        format!(
            "{name:8} {bytes:>14} {bar} {}..{}{ring}\n",
            range.first, range.last
        )
    };
    let slots = match ranges.len() {
        0 => return "no shared memory\n".to_owned(),
        1 => "1 slot".to_owned(),
        n => format!("{n} slots"),
    };
    let mut text = format!("{slots}; bytes, and instructions from first to last access\n");
    text.extend(ranges.iter().map(row));
    text
}

/// What the compiler counted.
pub(crate) fn stats_rows(kernel: &CompiledKernel) -> [(&'static str, u64); 17] {
    let (stats, machine) = (&kernel.stats, &kernel.stats.machine);
    [
        ("layout conversions", stats.layouts.conversions.into()),
        ("bytes converted", stats.layouts.bytes),
        ("layout choice is exact", stats.layouts.exact.into()),
        ("barriers", stats.barriers as u64),
        ("shared bytes", kernel.meta.shared.into()),
        ("instructions: integer", machine.int.into()),
        ("instructions: float", machine.float.into()),
        ("instructions: compare", machine.compare.into()),
        ("instructions: convert", machine.convert.into()),
        ("instructions: memory", machine.memory.into()),
        ("instructions: sync", machine.sync.into()),
        ("instructions: move", machine.moves.into()),
        ("instructions: branch", machine.branches.into()),
        ("predicted registers", machine.predicted_registers.into()),
        ("live at once: 16 bits", machine.peak[1].into()),
        ("live at once: 32 bits", machine.peak[2].into()),
        ("live at once: 64 bits", machine.peak[3].into()),
    ]
}

/// The same as text, one number to a line.
fn stats_text(kernel: &CompiledKernel) -> String {
    let loads = kernel
        .stats
        .promotions
        .iter()
        .map(|load| format!("{load}\n"));
    stats_rows(kernel)
        .iter()
        .map(|(name, number)| format!("{name:24} {number}\n"))
        .chain(loads)
        .collect()
}
