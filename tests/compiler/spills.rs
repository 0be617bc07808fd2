//! Whether a kernel will spill, as the compiler foretells it, against what ptxas does: the kernels of `spills.txt` and those of
//! `filetests/run`.
//!
//! A kernel spills if ptxas reports any bytes of spills.
//! With `TILELIFT_SPILLS_TABLE=FILE` a line for each kernel is written there.

use crate::common::ptxas;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tilelift::compile::compile;
use tilelift::filetest::variants;
use tilelift::front::{Module, Specialization, parse_signature};
use tilelift::ir::function::TileFunction;
use tilelift::ir::ops::TileOp;
use tilelift::settings::{Options, Target, is_expected_to_spill};
use tilelift::text::parse::{AnyFunction, parse_file};

/// Assemblers at a time.
const THREADS: usize = 2;

/// A kernel for a target.
struct Case {
    name: String,
    func: TileFunction,
    target: Target,
}

/// What became of it.
struct Outcome {
    name: String,
    predicted: u32,
    needed: u32,
    most: u32,
    /// Whether warpgroups multiply.
    is_of_groups: bool,
    /// Whether the program takes registers from a producer.
    takes: bool,
    used: ptxas::Report,
}

impl Outcome {
    fn is_foretold(&self) -> bool {
        is_expected_to_spill(self.needed, self.most)
    }

    fn spills(&self) -> bool {
        self.used.spilled > 0
    }
}

/// The kernels of `spills.txt`, whose comment says how it reads.
fn examples(root: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(root.join("tests/data/spills.txt")).expect("it can be read");
    let mut modules: BTreeMap<&str, Module> = BTreeMap::new();
    let mut cases = Vec::new();
    let mut kernel = ("", "", "");
    for line in text.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(rest) = line.strip_prefix("kernel ") {
            let (names, signature) = rest.split_once(" \"").expect("a signature");
            let (file, name) = names.split_once(' ').expect("a file and a kernel");
            kernel = (file, name, signature.trim_end_matches('"'));
            continue;
        }
        let (file, name, signature) = kernel;
        let module = modules.entry(file).or_insert_with(|| {
            let path = root.join("examples/kernels").join(file);
            let text = std::fs::read_to_string(&path).expect("the examples are there");
            Module::parse(&path.display().to_string(), &text).expect("it is Python")
        });
        let words: Vec<&str> = line.split(' ').collect();
        let [constants @ .., warps, stages, target] = &words[..] else {
            panic!("{line}: constants, warps, stages and target");
        };
        let mut signature = signature.to_owned();
        for constant in constants {
            signature = signature.replacen("{}", constant, 1);
        }
        let target = Target::parse(target).expect("a target");
        let spec = Specialization {
            num_warps: warps.parse().expect("a number of warps"),
            num_stages: stages.parse().ok(),
            ..Specialization::new(parse_signature(&signature).expect("a signature"), target)
        };
        let mut lowered = module.lower(Some(name), &spec).expect("it is right");
        // What spills is to be seen to.
        lowered.func.fixed_warps = true;
        cases.push(Case {
            name: format!("{file} {name} {line}"),
            func: lowered.func,
            target,
        });
    }
    cases
}

/// The kernels of `filetests/run`.
fn run_tests(root: &Path) -> Vec<Case> {
    let folder = std::fs::read_dir(root.join("tests/filetests/run")).expect("it can be read");
    let mut paths: Vec<_> = folder.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let file = path.file_name().expect("it is a file").display();
        for variant in variants(&text).expect("other tests run it") {
            let parsed = parse_file(&variant.text).expect("other tests run it");
            for function in parsed.functions {
                if let AnyFunction::Tile(mut func) = function.func {
                    func.fixed_warps = true;
                    let takes_maps = func.insts_with(TileOp::TensorMap).next().is_some();
                    cases.push(Case {
                        name: format!("{file} {} {}", func.name, variant.label),
                        func,
                        target: if takes_maps {
                            Target::SM_90A
                        } else {
                            Target::SM_80
                        },
                    });
                }
            }
        }
    }
    cases
}

/// Compiles and assembles; none without an assembler.
fn outcome(case: &Case) -> Option<Outcome> {
    let options = Options {
        verify_passes: false,
        ..Options::DEFAULT
    };
    let kernel = compile(&case.func, case.target, &options);
    let kernel = kernel.unwrap_or_else(|e| panic!("{}: {e}", case.name));
    Some(Outcome {
        name: case.name.clone(),
        predicted: kernel.stats.machine.predicted_registers,
        is_of_groups: kernel.ptx.contains("wgmma.mma_async"),
        takes: kernel.ptx.contains("setmaxnreg"),
        needed: kernel.stats.machine.needed_registers,
        most: Target::most_registers(kernel.meta.threads()),
        used: ptxas::assemble(&kernel.ptx, &case.target.to_string())?,
    })
}

#[test]
fn nine_of_ten_spills_are_foretold() {
    if ptxas::find().is_none() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut cases = examples(root);
    cases.extend(run_tests(root));
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = outcome(case);
                    let mut found = found.lock().expect("no thread panics under the lock");
                    found.extend(outcome);
                }
            });
        }
    });
    let mut found = found.into_inner().expect("no thread panics under the lock");
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let line = |o: &Outcome| {
        format!(
            "{}: needs {} of {}, predicted {}, takes {}, {} bytes spilled\n",
            o.name, o.needed, o.most, o.predicted, o.used.registers, o.used.spilled
        )
    };
    if let Some(file) = std::env::var_os("TILELIFT_SPILLS_TABLE") {
        let lines: String = found.iter().map(line).collect();
        std::fs::write(file, lines).expect("it can be written");
    }
    let count = |is_foretold: bool, spills: bool| {
        let such = |o: &&Outcome| o.is_foretold() == is_foretold && o.spills() == spills;
        found.iter().filter(such).count()
    };
    let [hits, missed, false_alarms] =
        [(true, true), (false, true), (true, false)].map(|(f, s)| count(f, s));
    let wrong = found.iter().filter(|o| o.is_foretold() != o.spills());
    let table = format!(
        "{} kernels: {hits} spill as foretold, {missed} spill and were not foretold, {false_alarms} were foretold and do not:\n{}",
        found.len(),
        wrong.map(line).collect::<String>()
    );
    eprintln!("{table}");
    assert_eq!(found.len(), cases.len());
    assert!(hits > 100, "{table}");
    assert!(10 * missed < hits + missed, "{table}");
    assert!(10 * false_alarms < hits + false_alarms, "{table}");
    // All warps begin with what is asked of ptxas, and what the program needs is counted without what it takes: else a tuner would
    // leave out the fastest configurations.
    let mut takers = found.iter().filter(|o| o.takes).peekable();
    assert!(takers.peek().is_some());
    assert!(
        takers.all(|o| o.predicted == o.most
            && o.used.registers == o.most
            && o.needed <= o.most + 24)
    );
    let of_groups: Vec<&Outcome> = found.iter().filter(|o| o.is_of_groups).collect();
    let is_far = |o: &&&Outcome| o.predicted.abs_diff(o.used.registers) > 32;
    let far: String = of_groups.iter().filter(is_far).map(|o| line(o)).collect();
    assert!(of_groups.len() > 20, "{}", of_groups.len());
    assert!(10 * far.lines().count() < of_groups.len(), "{far}");
}
