//! What the page of a kernel shows: source, IR, PTX and machine code, pictures, and what each pass changes.

use super::html::{Page, Panel};
use super::{Story, line_of};
use crate::cli::args::ExplainArgs;
use crate::cli::input::Kernel;
use crate::cli::progress::Progress;
use crate::cli::show::Seen;
use crate::cli::source_lines::{lines_of_ptx, lines_of_sass};
use crate::cli::{Result, cubin};
use crate::compile::compile_with;
use crate::runtime::name_source;
use crate::settings::Options;
use crate::stages::{Stage, emit};

/// The page of a kernel.
pub(super) fn page(args: &ExplainArgs, kernel: &Kernel, progress: &Progress) -> Result<Page> {
    let mut story = Story::new(args, kernel);
    let mut seen = Seen::new(&kernel.func, kernel.target);
    let options = Options {
        line_info: kernel.has_lines,
        ..kernel.options
    };
    let compiled = compile_with(
        &kernel.func,
        kernel.target,
        &options,
        &mut |pass, snapshot| {
            story.pass(pass, &snapshot);
            seen.pass(pass, &snapshot);
        },
    );
    let mut compiled = compiled.map_err(|e| kernel.refused(&e))?;
    if kernel.has_lines {
        compiled.ptx = name_source(&compiled.ptx, &kernel.source.name);
    }
    let source = &kernel.source.text;
    let numbered = source
        .lines()
        .zip(1..)
        .map(|(line, number)| (Some(number), line.to_owned()));
    let ir = seen.tile().to_string();
    let ir = ir.lines().map(|line| (line_of(line), line.to_owned()));
    let mut panels = vec![
        Panel {
            name: kernel.source.name.clone(),
            lines: numbered.collect(),
        },
        Panel {
            name: "IR, after the passes over blocks".to_owned(),
            lines: ir.collect(),
        },
        Panel {
            name: format!("PTX for {}", kernel.target),
            lines: lines_of_ptx(&compiled.ptx),
        },
    ];
    progress.set("assembling and disassembling");
    // Where there is no assembler or no disassembler, the page has a column less.
    let code = cubin::assemble(&compiled);
    if let Ok(sass) = code.and_then(|code| cubin::disassemble(&compiled, &code)) {
        panels.push(Panel {
            name: "machine code".to_owned(),
            lines: lines_of_sass(&sass),
        });
    }
    progress.set("drawing");
    let meta = &compiled.meta;
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let mut facts = vec![fact("warps of a CTA", meta.num_warps.to_string())];
    let at =
        |stage| emit(&kernel.func, kernel.target, &options, stage).map_err(|e| kernel.refused(&e));
    let stats = at(Stage::Stats)?;
    let rows = stats.lines().filter_map(|line| line.rsplit_once("  "));
    facts.extend(rows.map(|(name, value)| fact(name.trim(), value.trim().to_owned())));
    facts.extend(
        compiled
            .stats
            .promotions
            .iter()
            .map(|load| fact("tensor maps", load.to_string())),
    );
    Ok(Page {
        title: format!("{} for {}", meta.name, kernel.target),
        facts,
        panels,
        pictures: seen
            .pictures()
            .into_iter()
            .map(|(name, picture)| (name.to_owned(), picture))
            .collect(),
        passes: sections(&story.out),
    })
}

/// The pieces of what was told, each behind its head.
fn sections(told: &str) -> Vec<(String, String)> {
    let pieces = told.split("; --- ").filter(|piece| !piece.is_empty());
    let halves = pieces.map(|piece| piece.split_once('\n').unwrap_or((piece, "")));
    halves
        .map(|(head, text)| (head.to_owned(), text.to_owned()))
        .collect()
}
