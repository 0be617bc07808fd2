//! The autotuner and graphs, on the emulator.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Mutex;

use tilelift::runtime::cache::{Cache, Settings};
use tilelift::runtime::{
    Arg, Buffer, Constant, Constants, Device, DeviceOptions, Graph, Kernel, NONE, Program,
    RuntimeError,
};
use tilelift::settings::Target;
use tilelift::tune::{Autotuned, Config, Outcome, Tuner};

use crate::tools::{add_program, emulator};

/// Adds to memory, so that each run leaves a trace.
pub(crate) const COUNT: &str = r#"
import triton.language as tl

@triton.jit
def count(total, seen, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(total + i, tl.load(total + i, i < n) + 1, i < n)
    tl.store(seen + i, tl.load(seen + i, i < n) + 1, i < n)
"#;

pub(crate) fn blocks() -> Vec<Config> {
    [64, 128, 256]
        .map(|block| Config::new().constant("BLOCK", block))
        .to_vec()
}

/// With one warp: a block of fewer elements than threads has some twice, which is a race where memory is read and written.
pub(crate) fn small_blocks() -> Vec<Config> {
    blocks().into_iter().map(|config| config.warps(1)).collect()
}

pub(crate) fn add(dir: Option<&Path>) -> (Kernel, Buffer<f32>, Buffer<f32>) {
    let device = emulator(dir);
    let kernel = device
        .kernel(&add_program(), "add")
        .expect("there is a kernel");
    let x = Buffer::from_slice(&device, &[1.0_f32; 1000]).expect("there is memory");
    let out = Buffer::new(&device, 1000).expect("there is memory");
    (kernel, x, out)
}

pub(crate) fn grid(c: Constants<'_>) -> Option<[u32; 3]> {
    Some([1000_u32.div_ceil(c.int("BLOCK")?), 1, 1])
}

#[test]
fn the_cheapest_is_chosen_and_known_afterwards() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let mut reports = Vec::new();
    for reused in [0, 3] {
        let (kernel, x, out) = add(Some(dir.path()));
        let stream = kernel.device().stream();
        let seen = Mutex::new(Vec::new());
        let progress = |done: usize, total: usize, what: &str| {
            let mut seen = seen.lock().expect("nobody panics");
            seen.push(format!("{done}/{total} {what}"));
        };
        let tuner = Tuner::new(blocks()).key(&["n"]).progress(&progress);
        let tuned = tuner.tune(&kernel, &stream, &grid, (&x, &x, &out, 1000));
        let tuned = tuned.expect("one of them works");
        assert_eq!(tuned.report.reused, reused);
        let costs = tuned.report.rows.iter().map(|row| match row.outcome {
            Outcome::Measured(cost) => cost,
            ref other => panic!("{other:?}"),
        });
        let costs: Vec<f64> = costs.collect();
        let lowest = costs.iter().copied().fold(f64::INFINITY, f64::min);
        // Within the bound of what counts as equal.
        assert!(costs[tuned.report.chosen] <= lowest * 1.01, "{costs:?}");
        tuned
            .kernel
            .run(&grid, (&x, &x, &out, 1000))
            .expect("it runs");
        let seen = seen.into_inner().expect("nobody panics");
        assert_eq!((seen.len(), seen[1].as_str()), (4, "1/3 BLOCK=128"));
        reports.push(tuned.report.rows);
    }
    assert_eq!(reports[0], reports[1]);
    // Another size is another question.
    let (kernel, x, out) = add(Some(dir.path()));
    let tuner = Tuner::new(blocks()).key(&["n"]);
    let tuned = tuner.tune(
        &kernel,
        &kernel.device().stream(),
        &grid,
        (&x, &x, &out, 992),
    );
    assert_eq!(tuned.expect("one of them works").report.reused, 0);
}

#[test]
fn the_best_by_the_model_are_measured_and_no_others() {
    let hopper = |dir: &Path| {
        let device = Device::emulator_with(DeviceOptions {
            target: Some(Target::SM_90A),
            cache: Cache::new(Settings::new(dir)),
            ..DeviceOptions::plain()
        });
        let kernel = device.kernel(&add_program(), "add");
        (kernel.expect("there is a kernel"), device)
    };
    // One of them cannot be compiled: it does not count.
    let configs = [100, 64, 128, 256].map(|block| Config::new().constant("BLOCK", block));
    let measured = |kernel: &Kernel, tuner: Tuner<'_>, why: &str| {
        let device = kernel.device();
        let x = Buffer::from_slice(device, &[1.0_f32; 1000]).expect("there is memory");
        let out: Buffer<f32> = Buffer::new(device, 1000).expect("there is memory");
        let tuned = tuner.tune(kernel, &device.stream(), &grid, (&x, &x, &out, 1000));
        let report = tuned.expect("one of them works").report;
        assert_eq!(report.rows.len(), 4);
        let blocks: Vec<String> = report.rows.iter().map(|r| r.config.to_string()).collect();
        assert_eq!(
            blocks[0], "BLOCK=100",
            "rows stand in the order of the list"
        );
        let left_out = report.rows.iter().filter(|row| match &row.outcome {
            Outcome::Skipped(reason) => reason.contains(why),
            _ => false,
        });
        let left_out = left_out.count();
        let works = |row: &&tilelift::tune::Row| matches!(row.outcome, Outcome::Measured(_));
        (
            report.rows.iter().filter(works).count(),
            left_out,
            report.reused,
        )
    };
    let dir = tempfile::tempdir().expect("a folder for the test");
    let (kernel, _device) = hopper(dir.path());
    let expected = "the model of time expects 2 others to be faster";
    assert_eq!(
        measured(&kernel, Tuner::new(configs.clone()).top(2), expected),
        (2, 1, 0)
    );
    // What was left out is not known from then on.
    let (kernel, _device) = hopper(dir.path());
    assert_eq!(
        measured(&kernel, Tuner::new(configs.clone()), "the model"),
        (3, 0, 2)
    );
    // A device that the model knows nothing of.
    let (kernel, ..) = add(None);
    let unknown = "1 others are measured, and the model of time says nothing of it";
    assert_eq!(
        measured(&kernel, Tuner::new(configs).top(1), unknown),
        (1, 2, 0)
    );
}

#[test]
fn what_a_launch_takes_is_estimated_before_it_is_assembled() {
    let device = Device::emulator_with(DeviceOptions {
        target: Some(Target::SM_90A),
        ..DeviceOptions::plain()
    });
    let kernel = device
        .kernel(&add_program(), "add")
        .expect("there is a kernel");
    let kernel = kernel
        .constant("BLOCK", 128)
        .expect("it has such a constant");
    let x = Buffer::from_slice(&device, &[1.0_f32; 1000]).expect("there is memory");
    let estimate = kernel
        .estimate(&grid, (&x, &x, &x, 1000))
        .expect("it compiles");
    let estimate = estimate.expect("the target has figures");
    assert!(estimate.micros > 1.0 && !estimate.guessed, "{estimate}");
    // Eight programs on 132 multiprocessors.
    assert!(estimate.waves < 0.1, "{estimate}");
    let far = kernel.estimate([1 << 20, 1, 1], (&x, &x, &x, 1000));
    let far = far.expect("it compiles").expect("the target has figures");
    assert!(far.micros > 10.0 * estimate.micros, "{far}");
    assert!(
        kernel
            .variants()
            .iter()
            .all(|v| v.timing.assemble.is_zero())
    );
}

#[test]
fn names_that_a_tuner_is_told_are_those_of_the_kernel() {
    let (kernel, x, out) = add(None);
    let stream = kernel.device().stream();
    let args = (&x, &x, &out, 1000);
    let tune = |tuner: Tuner<'_>| tuner.tune(&kernel, &stream, &grid, args).map(drop);
    // What is no argument but a constant is part of what is tuned.
    for name in ["n", "BLOCK", "SCALE"] {
        assert_eq!(tune(Tuner::new(blocks()).key(&[name])), Ok(()), "{name}");
    }
    let told = "names an argument `size` that there is not; there is x, y, out, n";
    for tuner in [
        Tuner::new(blocks()).key(&["size"]),
        Tuner::new(blocks()).reset_to_zero(&["size"]),
        Tuner::new(blocks()).restore_value(&["size"]),
    ] {
        let text = tune(tuner).expect_err("there is no such name").to_string();
        assert!(text.contains(told), "{text}");
    }
    let none = tune(Tuner::new([])).expect_err("there is nothing to try");
    assert!(
        none.to_string()
            .contains("no configurations to choose from"),
        "{none}"
    );
    let none = Autotuned::new(kernel.clone(), Tuner::new([])).launch(&stream, &grid, args);
    assert!(none.is_err());
}

#[test]
fn a_line_cut_short_costs_itself_alone() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let reused = || {
        let (kernel, x, out) = add(Some(dir.path()));
        let stream = kernel.device().stream();
        let tuned = Tuner::new(blocks()).tune(&kernel, &stream, &grid, (&x, &x, &out, 1000));
        tuned.expect("they work").report.reused
    };
    assert_eq!((reused(), reused()), (0, 3));
    let folder = std::fs::read_dir(dir.path().join("v1/tune")).expect("it was made");
    let file = folder.flatten().next().expect("there is one").path();
    let text = std::fs::read(&file).expect("it can be read");
    std::fs::write(&file, &text[..text.len() - 5]).expect("it can be written");
    // The line that is written next stands on its own.
    assert_eq!((reused(), reused()), (2, 3));
}

#[test]
fn what_does_not_work_is_left_out_with_its_reason() {
    let (kernel, x, out) = add(None);
    let stream = kernel.device().stream();
    let mut configs = blocks();
    configs.push(Config::new().constant("BLOCK", 100));
    configs.push(Config::new().constant("BLOCK", 64).warps(3));
    configs.push(Config::new().constant("BLOCK", 65_536).warps(1));
    let prune = |config: &Config| {
        let is_first = config == &Config::new().constant("BLOCK", 64);
        is_first.then(|| "too small".to_owned())
    };
    let tuner = Tuner::new(configs.clone()).prune(&prune);
    let tuned = tuner
        .tune(&kernel, &stream, &grid, (&x, &x, &out, 1000))
        .expect("one works");
    let text = tuned.report.to_string();
    for expected in [
        "skipped  BLOCK=64: too small",
        "failed  BLOCK=64 num_warps=3: kernel `add`: 3 warps",
        "skipped  BLOCK=65536 num_warps=1: about",
        "6 configurations, 0 known from before",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert!(
        matches!(tuned.report.rows[3].outcome, Outcome::Failed(_)),
        "{text}"
    );

    let tuner = Tuner::new(configs.drain(3..));
    let error = tuner.tune(&kernel, &stream, &grid, (&x, &x, &out, 1000));
    let text = error.expect_err("none of these works").to_string();
    assert!(
        text.starts_with("kernel `add`: no configuration works:\n"),
        "{text}"
    );
    assert_eq!(
        text.lines().filter(|line| line.contains("BLOCK=")).count(),
        3,
        "{text}"
    );
    let nobody = Tuner::new(blocks()).key(&["nobody"]);
    assert!(
        nobody
            .tune(&kernel, &stream, &grid, (&x, &x, &out, 1000))
            .is_err()
    );
}

#[test]
fn a_cost_function_needs_no_launch() {
    let (kernel, x, out) = add(None);
    let asked = Mutex::new(RefCell::new(0));
    let cost = |config: &Config, prediction: &tilelift::runtime::Prediction| {
        *asked.lock().expect("nobody panics").borrow_mut() += 1;
        assert!(prediction.registers > 0 && prediction.threads == 128);
        match config.to_string().as_str() {
            "BLOCK=128" => Some(1.0),
            "BLOCK=64" => None,
            _ => Some(2.0),
        }
    };
    let tuner = Tuner::new(blocks()).cost(&cost);
    // Far too many elements for the memory: a launch would fail.
    let tuned = tuner.tune(
        &kernel,
        &kernel.device().stream(),
        1000,
        (&x, &x, &out, 1 << 30),
    );
    let tuned = tuned.expect("two of them work");
    assert_eq!(tuned.config, Config::new().constant("BLOCK", 128));
    assert!(
        tuned.report.to_string().contains("refuses"),
        "{}",
        tuned.report
    );
}

#[test]
fn nothing_is_learned_from_an_empty_grid() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let (kernel, x, out) = add(Some(dir.path()));
    let stream = kernel.device().stream();
    let own = Autotuned::new(kernel.clone(), Tuner::new(blocks()));
    let empty = |c: Constants<'_>| c.int("BLOCK").map(|_| [0, 1, 1]);
    own.launch(&stream, &empty, (&x, &x, &out, 1000))
        .expect("there is nothing to do");
    let refused = Tuner::new(blocks()).tune(&kernel, &stream, 0, (&x, &x, &out, 1000));
    let refused = refused.expect_err("there is nothing to measure");
    assert!(
        refused.to_string().contains("the grid is empty"),
        "{refused}"
    );
    let tuned = Tuner::new(blocks()).tune(&kernel, &stream, &grid, (&x, &x, &out, 1000));
    assert_eq!(tuned.expect("one of them works").report.reused, 0);
}

#[test]
fn a_configuration_with_an_empty_grid_is_left_out() {
    let (kernel, x, out) = add(None);
    let stream = kernel.device().stream();
    // A program for each whole block: none for the first and the last.
    let whole = |c: Constants<'_>| Some([200 / c.int("BLOCK")?, 1, 1]);
    let configs = [256, 64, 128, 512].map(|block| Config::new().constant("BLOCK", block));
    let tuned = Tuner::new(configs.clone()).tune(&kernel, &stream, &whole, (&x, &x, &out, 200));
    let tuned = tuned.expect("two of them do something");
    let rows = &tuned.report.rows;
    let empty = Outcome::Skipped("its grid is empty".to_owned());
    assert_eq!([&rows[0].outcome, &rows[3].outcome], [&empty, &empty]);
    assert!([1, 2].contains(&tuned.report.chosen), "{}", tuned.report);
    let own = Autotuned::new(kernel.clone(), Tuner::new(configs));
    own.launch(&stream, &whole, (&x, &x, &out, 200))
        .expect("two of them do something");
    assert_eq!(out.read(&stream).expect("it ran")[..100], [2.0; 100]);
}

/// Constants beyond 64 bits, of which the kernel takes what is left after a shift.
const WIDE: &str = r#"
import triton
import triton.language as tl

@triton.autotune([triton.Config({"BIG": 3 << 64})], key=[])
@triton.heuristics({"IS_LARGE": lambda args: args["n"] > 2**63 + 5, "NEXT": lambda args: args["n"] + 2**64})
@triton.jit
def wide(out, n, BIG: tl.constexpr, IS_LARGE: tl.constexpr, NEXT: tl.constexpr):
    tl.store(out, BIG >> 64)
    tl.store(out + 1, IS_LARGE)
    tl.store(out + 2, NEXT - 2**64 - 2**63)
"#;

#[test]
fn integers_beyond_64_bits_keep_their_value() {
    let device = emulator(None);
    let program = Program::python("wide.py", WIDE).expect("it is Python");
    let own = device.autotuned(&program, "wide").expect("it is data");
    let stream = device.stream();
    let out = Buffer::from_slice(&device, &[0_i64; 3]).expect("there is memory");
    for (n, is_large) in [((1_u64 << 63) + 5, 0), ((1 << 63) + 6, 1)] {
        own.launch(&stream, 1, (&out, n)).expect("it runs");
        let rest = (n - (1 << 63)) as i64;
        assert_eq!(out.read(&stream), Ok(vec![3, is_large, rest]));
    }
    assert_eq!(Constant::from(u64::MAX).to_string(), "18446744073709551615");
}

/// The choice is kept by key; what follows the arguments is as many kernels as there are launches.
const FOLLOWING: &str = r#"
import triton
import triton.language as tl

@triton.autotune([triton.Config({"A": 1}), triton.Config({"A": 2})], key=["n"])
@triton.heuristics({"C": lambda args: args["n"] + 1})
@triton.jit
def put(x, n, A: tl.constexpr, C: tl.constexpr):
    tl.store(x, C)
"#;

#[test]
fn choices_hold_no_kernels() {
    let device = emulator(None);
    let program = Program::python("put.py", FOLLOWING).expect("it is Python");
    let kernel = device.kernel(&program, "put").expect("there is a kernel");
    let kernel = kernel.variant_limit(4).expect("a number");
    let tuner = program.tuner("put").expect("it is data");
    let own = Autotuned::new(kernel.clone(), tuner);
    let x = Buffer::from_slice(&device, &[0_i32]).expect("there is memory");
    for n in 2..42 {
        own.launch(&device.stream(), 1, (&x, n)).expect("it runs");
        assert_eq!(x.read(&device.stream()), Ok(vec![n + 1]));
    }
    let variants = |n: i32| {
        let kernel = kernel.constant("A", 1).and_then(|k| k.constant("C", n + 1));
        kernel.expect("they are constants").variants().len()
    };
    assert_eq!((variants(2), variants(41)), (0, 1));
}

/// Adds up parts of a row; everything about its tuning stands in its file.
const DECORATED: &str = r#"
import triton
import triton.language as tl

def hook(args):
    args["out"].zero_()

@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 64}, num_warps=1),
        triton.Config({"BLOCK": 256}, num_warps=2, num_stages=2),
        triton.Config({"BLOCK": 128}, num_ctas=2),
        triton.Config({"BLOCK": 128}, num_warps=16, num_ctas=4),
        triton.Config({"BLOCK": 512}, num_warps=4, maxnreg=64, pre_hook=hook),
    ],
    key=["n"],
    reset_to_zero=["out"],
    restore_value=["x"],
    prune_configs_by={"early_config_prune": hook},
    warmup=1,
    rep=5,
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0, "HAS_BIAS": lambda args: args["bias"] is not None})
@triton.jit
def total(x, bias, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr, HAS_BIAS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        v = tl.load(x + i)
    else:
        v = tl.load(x + i, i < n, 0)
    if HAS_BIAS:
        v += tl.load(bias)
    tl.store(x + i, v * 0, i < n)
    tl.atomic_add(out, tl.sum(v, 0))
"#;

#[test]
fn the_tuning_of_a_file_is_done() {
    let device = emulator(None);
    let program = Program::python("total.py", DECORATED).expect("it is Python");
    let stream = device.stream();
    let told = std::sync::Arc::new(Mutex::new(Vec::<String>::new()));
    let heard = told.clone();
    tilelift::runtime::on_warning(move |text| {
        heard.lock().expect("nobody panics").push(text.to_owned());
    });
    let tuner = program.tuner("total").expect("it is data");
    let told: Vec<String> = told.lock().expect("nobody panics").clone();
    // The tests of this program share the handler.
    let told: Vec<&String> = told.iter().filter(|text| text.contains("total")).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].starts_with("total.py:9: `pre_hook` of `total` is"),
        "{told:?}"
    );
    assert!(
        told[1].starts_with("total.py:19: `prune_configs_by`"),
        "{told:?}"
    );

    let kernel = device.kernel(&program, None).expect("there is one kernel");
    let of = |n: usize| move |c: Constants<'_>| Some([(n as u32).div_ceil(c.int("BLOCK")?), 1, 1]);
    let x = Buffer::from_slice(&device, &[1_i32; 1000]).expect("there is memory");
    let out = Buffer::from_slice(&device, &[7_i32]).expect("there is memory");
    let tuned = tuner.tune(&kernel, &stream, &of(1000), (&x, NONE, &out, 1000));
    let tuned = tuned.expect("four of them work");
    let text = tuned.report.to_string();
    let rows = &tuned.report.rows;
    for (row, expected) in rows.iter().zip([
        "BLOCK=64 num_warps=1",
        "BLOCK=256 num_warps=2 num_stages=2",
        "BLOCK=128 num_ctas=2",
        "failed  BLOCK=128 num_warps=16 num_ctas=4: kernel `total`: 4 CTAs of 16 warps run as one of 64",
        "BLOCK=512 num_warps=4 maxnreg=64",
    ]) {
        assert!(row.to_string().contains(expected), "{text}");
    }
    for row in [2, 4] {
        assert!(matches!(rows[row].outcome, Outcome::Measured(_)), "{text}");
    }
    // Each trial began at zero and left the row as it was; the next launch finds zero, too.
    assert_eq!(out.read(&stream), Ok(vec![0]));
    assert_eq!(x.read(&stream), Ok(vec![1; 1000]));

    // A cost function in place of launches: the one that has the fewest threads idle.
    let cost = |config: &Config, _: &tilelift::runtime::Prediction| {
        let block = config.constants.iter().find(|(name, _)| name == "BLOCK");
        block.map(|(_, block)| if block.to_string() == "512" { 0.5 } else { 1.0 })
    };
    let tuned = program.tuner(None).expect("it is data").cost(&cost);
    let tuned = tuned.tune(&kernel, &stream, 1, (&x, NONE, &out, 1000));
    assert_eq!(tuned.expect("it is known").config.num_warps, Some(4));

    // The kernel that tunes itself: its heuristics follow the arguments, the choice is that of the key.
    let own = device.autotuned(&program, "total").expect("it is data");
    for (bias, n, sum) in [(None, 1000, 1000), (Some(3), 1024, 4096)] {
        let x = Buffer::from_slice(&device, &vec![1_i32; n]).expect("there is memory");
        let bias =
            bias.map(|bias: i32| Buffer::from_slice(&device, &[bias]).expect("there is memory"));
        let given = bias.as_ref().map_or(NONE, Arg::from);
        out.fill(&stream, 0).expect("it can be filled");
        own.launch(&stream, &of(n), (&x, given, &out, n as i32))
            .expect("it runs");
        // Trials before it began at zero, and so did this launch's own memory.
        let total = out.read(&stream).expect("it ran")[0];
        assert!(total == sum || total == 2 * sum, "{total}");
        let kernel = own.best(&stream, &of(n), (&x, given, &out, n as i32));
        let kernel = kernel.expect("it is known");
        let folded = kernel.variants()[0].constants.clone();
        let has = |name: &str, value: &str| folded.iter().any(|(n, v)| n == name && v == value);
        assert!(
            has("HAS_BIAS", if bias.is_some() { "True" } else { "False" }),
            "{folded:?}"
        );
    }
}

#[test]
fn graphs_replay() {
    let device = emulator(None);
    let program = Program::python("count.py", COUNT).expect("it is Python");
    let kernel = device
        .kernel(&program, "count")
        .and_then(|k| k.constant("BLOCK", 64)?.warps(1));
    let kernel = kernel.expect("there is a kernel");
    let total = Buffer::from_slice(&device, &[0_i32; 64]).expect("there is memory");
    let seen = Buffer::from_slice(&device, &[0_i32; 64]).expect("there is memory");
    let stream = device.stream();
    let graph = Graph::capture(&stream, |stream| {
        kernel.launch(stream, 1, (&total, &seen, 64))?;
        kernel.launch(stream, 1, (&total, &seen, 1))
    });
    let graph = graph.expect("they fit");
    assert_eq!(total.read(&stream), Ok(vec![0; 64]), "nothing ran");
    for _ in 0..3 {
        graph.launch(&stream).expect("it runs");
    }
    let totals = total.read(&stream).expect("it ran");
    assert_eq!((totals[0], totals[1], totals[63]), (6, 3, 3));
    let stopped = Graph::capture(&stream, |_| Err(RuntimeError::NotRecorded));
    assert!(stopped.is_err());
    // A recording that failed is over.
    kernel
        .launch(&stream, 1, (&total, &seen, 1))
        .expect("it runs");
    assert_eq!(total.read(&stream).expect("it ran")[0], 7);
    let time = Graph::time(&stream, 10, |stream| {
        kernel.launch(stream, 1, (&total, &seen, 64))
    });
    assert!(time.expect("it runs") >= 0.0);
    assert!(graph.launch(&emulator(None).stream()).is_err());
}

#[test]
fn costs_are_those_of_the_launches_that_are_measured() {
    let device = emulator(None);
    let program = Program::python("count.py", COUNT).expect("it is Python");
    let kernel = device.kernel(&program, "count").expect("there is a kernel");
    let memory = || Buffer::from_slice(&device, &[0_i32; 256]).expect("there is memory");
    let (total, seen) = (memory(), memory());
    let tuner = Tuner::new([Config::new().constant("BLOCK", 32).warps(1)]);
    let cost = || {
        let tuned = tuner.tune(&kernel, &device.stream(), 1, (&total, &seen, 32));
        tuned.expect("it works").report.rows[0].outcome.clone()
    };
    let alone = cost();
    // Another thread launches something else all the time.
    let stop = std::sync::atomic::AtomicBool::new(false);
    let is_over = || stop.load(std::sync::atomic::Ordering::Relaxed);
    let other = kernel.constant("BLOCK", 256).expect("a constant");
    let (mine, yours) = (memory(), memory());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over() {
                let ran = other.run(1, (&mine, &yours, 256));
                ran.expect("it runs");
            }
        });
        let costs: Vec<Outcome> = (0..50).map(|_| cost()).collect();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(
            costs.iter().all(|cost| *cost == alone),
            "{alone:?} {costs:?}"
        );
    });
}

#[test]
fn what_was_tried_in_vain_is_let_go() {
    let device = emulator(None);
    let program = Program::python("count.py", COUNT).expect("it is Python");
    let memory = || Buffer::from_slice(&device, &[0_i32; 256]).expect("there is memory");
    let (total, seen) = (memory(), memory());
    let args = (&total, &seen, 32);
    let kernel = |block: i32| {
        let kernel = device.kernel(&program, "count");
        let kernel = kernel.and_then(|kernel| kernel.constant("BLOCK", block));
        kernel.expect("there is a kernel")
    };
    // One of them is the application's own.
    kernel(32).run(1, args).expect("it runs");
    let tuner = Tuner::new([32, 64, 128].map(|block| Config::new().constant("BLOCK", block)));
    let plain = device.kernel(&program, "count").expect("there is a kernel");
    let tuned = tuner.tune(&plain, &device.stream(), 1, args);
    let tuned = tuned.expect("one works");
    assert_eq!(tuned.report.chosen, 2, "{}", tuned.report);
    drop(tuned);
    // A thread in the background may hold it for a moment still.
    let is_gone = (0..600).any(|_| {
        let is_gone = kernel(64).variants().is_empty();
        if !is_gone {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        is_gone
    });
    assert!(is_gone);
    let kept = [32, 128].map(|block| kernel(block).variants().len());
    assert_eq!(kept, [1, 1]);
}
