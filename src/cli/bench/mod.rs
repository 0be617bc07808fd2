//! `tilelift bench`: what launches of a kernel cost, over a sweep of sizes.

mod peak;
mod plot;
mod saved;
mod sweep;

use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};

use super::args::{BenchArgs, DeviceArgs, HowArgs, KernelArgs, Lang};
use super::input::{Kernel, check_usage, options};
use super::python::python_run_notes;
use super::table::{short, table};
use super::{Failure, Result, say, write_out};
use crate::filetest::run::launch::LaunchLine;
use crate::filetest::run::{Setup, run_notes};
use crate::ir::attrs::{Attrs, DotPrecision};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::Scalar;
use crate::runtime::{Device, DeviceOptions, Program, RuntimeError};
use crate::settings::{Options, Target};
use crate::tune::{Launches, Measure};
use saved::{Cost, Measured, Row};
pub(super) use sweep::Names;
use sweep::{Point, Swept, points};

/// Measures a kernel at each point of a sweep.
pub(super) fn bench(args: &BenchArgs) -> Result<ExitCode> {
    let sweep = args.sweep.iter().map(|entry| Swept::parse(entry));
    let sweep: Vec<Swept> = sweep.collect::<Result<_>>()?;
    let points = points(&sweep)?;
    // What is wrong with the command line is said before anything takes its time.
    let along = match (&args.plot, sweep.first()) {
        (Some(_), None) => {
            let message = "--plot draws a sweep: give --sweep NAME=VALUES";
            return Err(Failure::Usage(message.to_owned()));
        }
        (_, first) => first.map_or("", |swept| &swept.name),
    };
    let before = args.compare.as_deref().map(Measured::read).transpose()?;
    let target = args.how.target.as_deref();
    let device = device(target, &args.device, args.limits.steps)?;
    let measure = Measure {
        warmup: std::time::Duration::from_millis(args.warmup),
        budget: std::time::Duration::from_millis(args.rep),
        ..Measure::THOROUGH
    };
    let mut bench = Bench {
        args,
        device: &device,
        measure,
        bar: bar(points.len()),
        measured: None,
    };
    for point in points {
        bench.measure(point)?;
    }
    bench.bar.finish_and_clear();
    let Some(measured) = bench.measured else {
        return Ok(ExitCode::SUCCESS);
    };
    // First, so that a file that cannot be written loses nothing.
    let text = match args.json {
        true => measured.json(),
        false => report(&measured, before.as_ref()),
    };
    write_out(None, &text)?;
    if let Some(path) = &args.save {
        write_out(Some(path), &measured.json())?;
    }
    if let Some(path) = &args.plot {
        let picture = plot::svg(&measured, before.as_ref(), along);
        let picture = picture.map_err(|problem| Failure::Input(format!("--plot: {problem}")))?;
        write_out(Some(path), &picture)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A bar that is drawn where somebody looks.
fn bar(points: usize) -> ProgressBar {
    let bar = ProgressBar::new(points as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {wide_msg}") {
        bar.set_style(style);
    }
    bar
}

/// The device that is asked for: the GPU that is there, else the emulator.
pub(super) fn device(
    target: Option<&str>,
    args: &DeviceArgs,
    steps: Option<u64>,
) -> Result<Device> {
    let mut options = DeviceOptions::from_env();
    let target = target.map(Target::parse).transpose();
    options.target = target.map_err(|error| Failure::Usage(error.to_string()))?;
    if let Some(steps) = steps {
        options.emulator.step_limit = steps;
    }
    // `run` looks for them; here they would only take time.
    options.emulator.check_races = false;
    if args.fresh {
        options.cache = crate::runtime::cache::Cache::off();
    }
    Ok(match args.emulator {
        true => Device::emulator_with(options),
        false => Device::best_with(options),
    })
}

struct Bench<'a> {
    args: &'a BenchArgs,
    device: &'a Device,
    measure: Measure,
    bar: ProgressBar,
    measured: Option<Measured>,
}

impl Bench<'_> {
    /// Measures one point.
    fn measure(&mut self, point: Point) -> Result<()> {
        let values = point.iter().map(|(name, value)| format!("{name}={value}"));
        let title = values.collect::<Vec<_>>().join(" ");
        self.bar.set_message(format!("{title} compiling"));
        let mut names = Names::new(&point);
        let kernel = self.args.kernel(self.device, &names)?;
        let loaded = Kernel::load(&kernel)?;
        for (name, value) in &loaded.constants {
            names.add(name, value);
        }
        for line in self.lines(&kernel, &loaded)? {
            let mut names = names.clone();
            names.add_numbers_of(&line);
            let words = names.option("--args", &line)?;
            let row = self.row(&loaded, &kernel, &words, &names, &title, point.clone())?;
            let measured = self.measured.get_or_insert_with(|| {
                let (computes, limits) = limits(self.args, self.device, &loaded.func);
                Measured {
                    kernel: loaded.func.name.clone(),
                    device: self.device.name().to_owned(),
                    target: self.device.target().to_string(),
                    limits,
                    computes,
                    rows: Vec::new(),
                }
            });
            measured.rows.push(row);
        }
        self.bar.inc(1);
        Ok(())
    }

    /// The run lines: that of the command line, or those of the file.
    fn lines(&self, args: &KernelArgs, kernel: &Kernel) -> Result<Vec<String>> {
        if let Some(line) = &self.args.line {
            return Ok(vec![line.clone()]);
        }
        let notes = match kernel.has_lines {
            true => python_run_notes(kernel, args)?,
            false => run_notes(&kernel.source.text, &kernel.func.name),
        };
        if notes.is_empty() {
            return Err(Failure::Usage(format!(
                "{} has no run line for this kernel: give --args, as in --args \"grid(4) x=f32[1000] normal(1) n=1000\"",
                kernel.source.name
            )));
        }
        Ok(notes.into_iter().map(|note| note.words).collect())
    }

    fn row(
        &self,
        kernel: &Kernel,
        args: &KernelArgs,
        words: &str,
        names: &Names,
        title: &str,
        values: Point,
    ) -> Result<Row> {
        let wrong = |problem: &str| {
            Failure::Input(format!("{}: error: --args: {problem}", kernel.source.name))
        };
        let given = |option, text: &Option<String>| {
            let number = text.as_deref().map(|text| names.number(option, text));
            number.transpose()
        };
        let (mut bytes, mut flops) = (
            given("--bytes", &self.args.bytes)?,
            given("--flops", &self.args.flops)?,
        );
        self.bar.set_message(format!("{title} filling buffers"));
        let plain = Options::DEFAULT;
        let setup = Setup {
            steps: self.args.limits.steps,
            // A GPU takes any grid; the emulator would be busy for hours.
            programs: self
                .args
                .limits
                .programs
                .or(self.device.is_gpu().then_some(u64::MAX)),
            fixed: &kernel.constants,
            ..Setup::new(kernel.target, &plain)
        };
        let line = LaunchLine::read(&kernel.func, words, &setup).map_err(|e| wrong(&e))?;
        let grid = line.grid;
        if bytes.is_none() || flops.is_none() {
            self.bar
                .set_message(format!("{title} counting on the interpreter"));
            match line.count(&kernel.func) {
                Ok(stats) => {
                    bytes = bytes.or(Some(stats.bytes_read + stats.bytes_written));
                    flops = flops.or(Some(stats.flops));
                }
                Err(problem) => self.bar.suspend(|| {
                    let at = if title.is_empty() { "" } else { ": " };
                    say(&format!(
                        "note: {title}{at}bytes and flops are not counted, as the interpreter gives up: {problem}; give --bytes and --flops, \
                         or raise --steps"
                    ));
                }),
            }
        }
        self.bar.set_message(format!("{title} measuring"));
        let failed = |error: RuntimeError| wrong(&error.to_string());
        let program = Program::function(kernel.func.clone()).map_err(failed)?;
        let set_up = set_up(self.device, &program, &options(args)).map_err(failed)?;
        let loaded = line.load(self.device).map_err(failed)?;
        let list = loaded.args().map_err(|problem| wrong(&problem))?;
        let stream = self.device.stream();
        let launches = self
            .measure
            .launches(&set_up, &stream, grid.into(), list.as_slice());
        let cost = match launches.map_err(failed)? {
            Launches::Times(times) => {
                Cost::of_times(times).ok_or_else(|| wrong("no launch was timed"))?
            }
            Launches::Counts(stats) => Cost::Counts(stats),
        };
        Ok(Row {
            values,
            programs: grid.iter().map(|&extent| u64::from(extent)).product(),
            cost,
            bytes,
            flops,
        })
    }
}

impl BenchArgs {
    /// The kernel's arguments with what the names of a sweep mean, for the device.
    fn kernel(&self, device: &Device, names: &Names) -> Result<KernelArgs> {
        let how = &self.how;
        let signature = how.signature.as_deref();
        let signature = signature.map(|text| names.option("-s", text)).transpose()?;
        let constants = how.constants.iter().map(|text| names.option("-c", text));
        let kernel = KernelArgs {
            file: self.file.clone(),
            how: HowArgs {
                signature,
                constants: constants.collect::<Result<_>>()?,
                target: Some(device.target().to_string()),
                ..how.clone()
            },
            json: false,
        };
        if check_usage(&kernel)? == Lang::Tir && self.line.is_none() && !self.sweep.is_empty() {
            let message = "--sweep needs --args, in which its names stand";
            return Err(Failure::Usage(message.to_owned()));
        }
        Ok(kernel)
    }
}

/// The kernel of a program, as the command line wants it compiled.
fn set_up(
    device: &Device,
    program: &Program,
    options: &Options,
) -> std::result::Result<crate::runtime::Kernel, RuntimeError> {
    let kernel = device
        .kernel(program, None)?
        .fp_fusion(options.fp_fusion)?
        .promote(options.promote)?
        .roles(options.roles)?
        .persistent(options.persistent)?;
    // The signature, or the text of the IR, says what arguments promise; a launch would find more in their values.
    let names: Vec<String> = kernel.arguments().into_iter().map(str::to_owned).collect();
    let kernel = names
        .iter()
        .try_fold(kernel, |kernel, name| kernel.do_not_specialize(name))?;
    match options.max_registers {
        Some(registers) => kernel.max_registers(registers),
        None => Ok(kernel),
    }
}

/// What of the device computes the kernel, and how many bytes and floating-point operations it does in a second at most.
fn limits(args: &BenchArgs, device: &Device, func: &TileFunction) -> (String, [Option<f64>; 2]) {
    let matrices = func.all_insts().find_map(|(_, inst)| {
        let data = &func.dfg.insts[inst];
        let left = data.args.first().filter(|_| data.op == TileOp::Dot)?;
        let elem = func.dfg.ty(*left).elem.scalar();
        // No unit multiplies f32 with all of its bits.
        let is_threads = data.precision() == Some(&DotPrecision::Ieee);
        elem.filter(|&elem| !(elem == Scalar::F32 && is_threads))
    });
    let wide = func.all_insts().any(|(_, inst)| {
        let results = &func.dfg.insts[inst].results;
        results
            .iter()
            .any(|&value| func.dfg.ty(value).elem.scalar() == Some(Scalar::F64))
    });
    let threads = if wide { Scalar::F64 } else { Scalar::F32 };
    let elem = matrices.unwrap_or(threads);
    let computes = match matrices {
        Some(elem) => format!("matrices of {elem}"),
        None => elem.to_string(),
    };
    let per_cycle = peak::flops_per_cycle(device.target(), elem, matrices.is_some());
    let [bytes, flops] = of_device(device, per_cycle);
    let limits = [
        args.peak_gbs.map(|limit| limit * 1e9).or(bytes),
        args.peak_tflops.map(|limit| limit * 1e12).or(flops),
    ];
    (computes, limits)
}

/// The limits of a GPU by its highest clocks: memory moves data at both edges.
#[cfg(feature = "cuda")]
fn of_device(device: &Device, per_cycle: Option<u32>) -> [Option<f64>; 2] {
    let Some(context) = device.as_driver() else {
        return [None; 2];
    };
    let of = context.device();
    let bytes = 2.0 * 1e3 * f64::from(of.memory_clock_khz) * f64::from(of.memory_bus_bits) / 8.0;
    let cycles = 1e3 * f64::from(of.clock_khz) * f64::from(of.multiprocessors);
    let flops = per_cycle.map(|flops| f64::from(flops) * cycles);
    [Some(bytes), flops].map(|limit| limit.filter(|&limit| limit > 0.0))
}

/// Without the driver layer there is no GPU.
#[cfg(not(feature = "cuda"))]
fn of_device(_device: &Device, _per_cycle: Option<u32>) -> [Option<f64>; 2] {
    [None; 2]
}

/// The table, and what it is of.
fn report(measured: &Measured, before: Option<&Measured>) -> String {
    let is_time = measured
        .rows
        .iter()
        .all(|row| matches!(row.cost, Cost::Time { .. }));
    let names = measured.rows.first().map_or(Vec::new(), |row| {
        row.values.iter().map(|(name, _)| name.clone()).collect()
    });
    let mut header: Vec<String> = names;
    header.push("programs".to_owned());
    let columns: &[&str] = match is_time {
        true => &[
            "\u{b5}s", "20 %", "80 %", "bytes", "GB/s", "of limit", "flops", "TFLOP/s", "of limit",
        ],
        false => &[
            "bytes",
            "flops",
            "instructions",
            "sectors",
            "moved/needed",
            "shared trips",
            "trips/ideal",
        ],
    };
    header.extend(columns.iter().map(|&name| name.to_owned()));
    if before.is_some() {
        header.extend(["before", "before/now"].map(str::to_owned));
    }
    let rows = measured.rows.iter().map(|row| {
        let mut cells: Vec<String> = row.values.iter().map(|(_, value)| value.clone()).collect();
        cells.push(row.programs.to_string());
        cells.extend(match &row.cost {
            Cost::Time {
                median, low, high, ..
            } => time_cells(measured, row, [*median, *low, *high]),
            Cost::Counts(stats) => count_cells(row, stats),
        });
        if let Some(before) = before {
            let old = before.row(&row.values).filter(|old| {
                std::mem::discriminant(&old.cost) == std::mem::discriminant(&row.cost)
            });
            let unit = if is_time { 1e3 } else { 1.0 };
            cells.extend(match old.map(|old| old.cost.number()) {
                Some(old) if is_time => [
                    format!("{:.1}", unit * old),
                    format!("{:.3}", old / row.cost.number()),
                ],
                Some(old) => [short(old), format!("{:.3}", old / row.cost.number())],
                None => ["-", "-"].map(str::to_owned),
            });
        }
        cells
    });
    let mut text = format!(
        "{} on {} for {}\n",
        measured.kernel, measured.device, measured.target
    );
    text += &table(&header, rows, |_| true);
    text += &notes(measured, before, is_time);
    text
}

fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "-".to_owned())
}

fn time_cells(measured: &Measured, row: &Row, [median, low, high]: [f64; 3]) -> Vec<String> {
    let share = |amount, limit: Option<f64>| {
        let share = row.rate(amount).zip(limit);
        or_dash(share.map(|(rate, limit)| format!("{:.1} %", 100.0 * rate / limit)))
    };
    let rate = |amount, unit| or_dash(row.rate(amount).map(|rate| format!("{:.2}", rate / unit)));
    let amount = |amount: Option<u64>| or_dash(amount.map(|amount| short(amount as f64)));
    let [of_bytes, of_flops] = measured.limits;
    vec![
        format!("{:.1}", 1e3 * median),
        format!("{:.1}", 1e3 * low),
        format!("{:.1}", 1e3 * high),
        amount(row.bytes),
        rate(row.bytes, 1e9),
        share(row.bytes, of_bytes),
        amount(row.flops),
        rate(row.flops, 1e12),
        share(row.flops, of_flops),
    ]
}

fn count_cells(row: &Row, stats: &crate::emu::Stats) -> Vec<String> {
    let amount = |amount: Option<u64>| or_dash(amount.map(|amount| short(amount as f64)));
    let ratio =
        |a: u64, b: u64| or_dash((a > 0 && b > 0).then(|| format!("{:.2}", a as f64 / b as f64)));
    vec![
        amount(row.bytes),
        amount(row.flops),
        short(stats.warp_instructions as f64),
        short(stats.global_sectors as f64),
        ratio(32 * stats.global_sectors, row.bytes.unwrap_or(0)),
        short(stats.shared_wavefronts as f64),
        ratio(stats.shared_wavefronts, stats.shared_ideal_wavefronts),
    ]
}

/// What the columns mean.
fn notes(measured: &Measured, before: Option<&Measured>, is_time: bool) -> String {
    let mut text = match is_time {
        true => "median of launches with nothing of their data in the L2 cache, and the times that a fifth is below and above; \
                 bytes: read and written, once each\n"
            .to_owned(),
        false => "no time is measured: these are counts of the emulator, which say nothing of how long a GPU takes\n\
                  bytes: read and written, once each; sectors: of 32 bytes, one for each access of a warp to it, without what the copy \
                  engine moves; shared trips: through the banks, beside those without conflicts\n"
            .to_owned(),
    };
    let [bytes, flops] = measured.limits;
    if bytes.is_some() || flops.is_some() {
        let bytes = or_dash(bytes.map(|limit| format!("{:.0} GB/s", limit / 1e9)));
        let flops = or_dash(flops.map(|limit| format!("{:.1} TFLOP/s", limit / 1e12)));
        text += &format!(
            "limits at the highest clocks: {bytes}, {flops} of {}\n",
            measured.computes
        );
    }
    if let Some(before) = before
        && (&before.kernel, &before.device, &before.target)
            != (&measured.kernel, &measured.device, &measured.target)
    {
        text += &format!(
            "before: {} on {} for {}\n",
            before.kernel, before.device, before.target
        );
    }
    text
}
