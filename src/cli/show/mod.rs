//! `tilelift show`: a kernel's layouts, memory, schedule and costs as pictures, in the terminal and as SVG.

mod canvas;
mod conversions;
mod layouts;
mod lines;
mod memory;
mod registers;
mod schedule;

use std::io;
use std::process::ExitCode;

use cranelift_entity::{EntityRef, SecondaryMap};

use super::args::{By, Picture, ShowArgs};
use super::input::Kernel;
use super::{Failure, Result, write_out};
use crate::compile::{CompiledKernel, compile_with};
use crate::error::CompileError;
use crate::expand::drawn_layouts;
use crate::ir::function::TileFunction;
use crate::pipeline::Snapshot;
use crate::settings::{Options, Target};
use crate::stages::{SharedRange, shared_ranges};
use layouts::{Ring, Used, used};

/// What pictures are made of: a kernel as it was on its way.
pub(super) struct Seen {
    target: Target,
    /// Behind the last pass over block programs.
    tile: TileFunction,
    shared: Vec<SharedRange>,
    /// Instructions before registers are allocated.
    machine: String,
}

impl Seen {
    /// Nothing of a kernel yet.
    pub(super) fn new(func: &TileFunction, target: Target) -> Seen {
        Seen {
            target,
            tile: func.clone(),
            shared: Vec::new(),
            machine: String::new(),
        }
    }

    /// Takes over what a pass left.
    pub(super) fn pass(&mut self, pass: &str, snapshot: &Snapshot<'_>) {
        match snapshot {
            Snapshot::Tile(func) => self.tile = (*func).clone(),
            Snapshot::Thread(func) => {
                let mut rings = SecondaryMap::new();
                rings.clone_from(&self.tile.buffers);
                self.shared = shared_ranges(func, &rings);
            }
            Snapshot::Machine(code) if pass == "schedule" => self.machine = code.to_string(),
            Snapshot::Machine(_) => {}
        }
    }

    /// The kernel behind the last pass over block programs.
    pub(super) fn tile(&self) -> &TileFunction {
        &self.tile
    }

    fn rings(&self) -> Vec<Ring> {
        let layouts = drawn_layouts(&self.tile, self.target).into_iter();
        let rings = layouts.filter_map(|(slot, layout)| {
            Some(Ring {
                slot,
                data: self.tile.buffers[slot]?,
                layout,
            })
        });
        rings.collect()
    }

    /// All pictures with their names, as SVG.
    pub(super) fn pictures(&self) -> Vec<(&'static str, String)> {
        let list = used(&self.tile);
        let list: Vec<&Used> = list.iter().collect();
        let grid = (!list.is_empty()).then(|| layouts::svg(&list, By::Thread));
        let all = [
            ("Layouts: which thread holds which element", grid),
            (
                "Schedule: what the program does, and what stands in rings",
                schedule::svg(&self.tile),
            ),
            (
                "Rings: where blocks stand in shared memory",
                layouts::rings_svg(&self.rings()),
            ),
            (
                "Conversions: which banks they meet in",
                conversions::svg(&conversions::conversions(&self.tile)),
            ),
            ("Registers along the code", registers::svg(&self.machine)),
            (
                "Shared memory from the first instruction to the last",
                memory::svg(&self.shared),
            ),
        ];
        let drawn = all.into_iter().filter_map(|(name, svg)| Some((name, svg?)));
        drawn.collect()
    }
}

/// A kernel compiled under observation; one that is refused late was seen up to there.
fn observe(
    kernel: &Kernel,
    options: &Options,
) -> (Seen, std::result::Result<CompiledKernel, CompileError>) {
    let mut seen = Seen::new(&kernel.func, kernel.target);
    let result = compile_with(
        &kernel.func,
        kernel.target,
        options,
        &mut |pass, snapshot| {
            seen.pass(pass, &snapshot);
        },
    );
    (seen, result)
}

/// Shows a picture of a kernel.
pub(super) fn show(args: &ShowArgs) -> Result<ExitCode> {
    let kernel = Kernel::load(&args.kernel)?;
    if args.picture != Picture::Layouts && args.layout.is_some() {
        let message = "--layout chooses one of --picture layouts";
        return Err(Failure::Usage(message.to_owned()));
    }
    let choice = anstream::AutoStream::choice(&io::stdout());
    let colours = choice != anstream::ColorChoice::Never;
    let is_svg = args.svg.is_some();
    if args.picture == Picture::Lines {
        let lines = lines::lines(args, &kernel)?;
        let drawn = match is_svg {
            true => lines.svg(),
            false => lines.text(),
        };
        write_out(args.svg.as_deref(), &drawn)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (seen, result) = observe(&kernel, &kernel.options);
    let drawn = match (args.picture, is_svg) {
        (Picture::Layouts, _) => grids(args, &seen, colours)?,
        (Picture::Rings, true) => layouts::rings_svg(&seen.rings()),
        (Picture::Rings, false) => {
            let rings = seen.rings();
            (!rings.is_empty()).then(|| layouts::rings_text(&rings, colours))
        }
        (Picture::Schedule, true) => schedule::svg(&seen.tile),
        (Picture::Schedule, false) => schedule::text(&seen.tile, colours),
        (Picture::Conversions, true) => conversions::svg(&conversions::conversions(&seen.tile)),
        (Picture::Conversions, false) => {
            let found = conversions::conversions(&seen.tile);
            (!found.is_empty()).then(|| conversions::text(&found, colours))
        }
        (Picture::Shared, true) => memory::svg(&seen.shared),
        (Picture::Shared, false) => {
            let text = crate::stages::draw_shared(&seen.shared);
            (!seen.shared.is_empty()).then_some(text)
        }
        (Picture::Registers, true) => registers::svg(&seen.machine),
        (Picture::Registers, false) => registers::text(&seen.machine),
        (Picture::Lines, _) => None,
    };
    let Some(drawn) = drawn else {
        result.map_err(|error| kernel.refused(&error))?;
        let nothing = match args.picture {
            Picture::Layouts => {
                "the kernel has no blocks, and so no layouts: all its values are numbers"
            }
            Picture::Rings => {
                "the kernel has no rings of blocks in shared memory: no loop of it is pipelined"
            }
            Picture::Schedule => "the kernel has no schedule to show: no loop of it is pipelined",
            Picture::Conversions => "the kernel converts no layouts",
            Picture::Shared => "the kernel uses no shared memory",
            Picture::Registers | Picture::Lines => "the kernel has no instructions",
        };
        return Err(Failure::Input(nothing.to_owned()));
    };
    write_out(args.svg.as_deref(), &drawn)?;
    Ok(ExitCode::SUCCESS)
}

/// The layouts that are asked for.
fn grids(args: &ShowArgs, seen: &Seen, colours: bool) -> Result<Option<String>> {
    let layouts = used(&seen.tile);
    if layouts.is_empty() {
        return Ok(None);
    }
    let number = |layout: &Used| args.layout.is_none_or(|n| layout.id.index() == n);
    let chosen: Vec<&Used> = layouts.iter().filter(|&layout| number(layout)).collect();
    if chosen.is_empty() {
        let known: Vec<String> = layouts.iter().map(|l| l.id.to_string()).collect();
        let message = format!("--layout: the kernel's layouts are {}", known.join(", "));
        return Err(Failure::Usage(message));
    }
    Ok(Some(match args.svg {
        Some(_) => layouts::svg(&chosen, args.by),
        None => layouts::text(&chosen, args.by, colours),
    }))
}
