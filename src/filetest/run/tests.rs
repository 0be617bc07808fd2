//! The reader of `; run:` lines, contents of buffers, and bounds.

use super::compare::{Bound, compare_buffers};
use super::exec::{ArgValue, Argument, Contents, Job, Outcome};
use super::fill::{Fill, fill};
use super::line::{ArgSpec, Expect, RunLine};
use super::run_lines;
use crate::ir::types::Scalar;
use crate::settings::{Options, Target};
use crate::text::parse::parse_tile;

const COPY: &str = r#"
kernel @copy(v0 "x": ptr<f32>, v1 "y": ptr<f32>, v2 "n": i32) warps(1) {
block0:
    v3 = arange {start = 0} : i32[8]
    v4 = splat v2 : i32[8]
    v5 = icmp v3, v4 {ipred = slt} : i1[8]
    v6 = splat v0 : ptr<f32>[8]
    v7 = splat v1 : ptr<f32>[8]
    v8 = addptr v6, v3 : ptr<f32>[8]
    v9 = addptr v7, v3 : ptr<f32>[8]
    v10 = load v8, v5 : f32[8]
    store v9, v10, v5
    return
}
"#;

/// The failures of a line under the kernel above.
fn failures(line: &str) -> Vec<String> {
    let text = format!("{COPY}; run: {line}\n");
    let report = run_lines(&text, Target::SM_80, &Options::DEFAULT);
    report.failures.iter().map(ToString::to_string).collect()
}

#[test]
fn lines_are_read() {
    let run = RunLine::parse(
        "grid(4,2) x=f32[7] normal(1) special n=-3 p=null y=i8[2] [1,2] \
         ; expect x, y within rel 1e-3 ; expect y = [3,nan] ; expect error some words",
    );
    let run = run.expect("valid");
    assert_eq!(run.grid, [4, 2, 1]);
    assert_eq!(run.args.len(), 4);
    let x = ArgSpec::Buffer {
        scalar: Scalar::F32,
        count: 7,
        fill: Fill::Normal(1),
        special: true,
    };
    assert_eq!(run.args[0], ("x".into(), x));
    assert_eq!(run.args[1], ("n".into(), ArgSpec::Number("-3".into())));
    let expects = [
        Expect::Within(vec!["x".into(), "y".into()], Bound::Relative(1e-3)),
        Expect::Values("y".into(), vec!["3".into(), "nan".into()]),
        Expect::Error("some words".into()),
    ];
    assert_eq!(run.expects, expects);
}

#[test]
fn mistakes_in_lines_are_named() {
    let cases = [
        ("x=f32[4]", "what the buffer holds"),
        ("x=f32[4] strange", "what the buffer holds"),
        ("x", "expected `=`"),
        ("grid(1", "expected `)`"),
        ("x=f32[4] zeros ; out within 2", "expected `expect ..`"),
        (
            "x=f32[4] zeros ; expect x within 2",
            "expected exact, ulp N",
        ),
        ("x=f32[999999999999] zeros", "at most"),
    ];
    for (line, message) in cases {
        let error = RunLine::parse(line).expect_err(line);
        assert!(error.contains(message), "{line}: {error}");
    }
}

#[test]
fn a_kernel_is_run_and_judged() {
    let good = "x=f32[8] iota(1) y=f32[8] poison n=3 ; expect y = [1,2,3,poison,poison,poison,poison,poison]";
    assert_eq!(failures(good), [""; 0]);
    let cases = [
        (
            "x=f32[8] iota(1) y=f32[8] poison n=3 ; expect y = [1,2,4,0,0,0,0,0]",
            "6 of 8 elements",
        ),
        ("x=f32[8] poison y=f32[8] poison n=3", "never written"),
        ("x=f32[2] zeros y=f32[8] poison n=3", "not inside a buffer"),
        (
            "x=f32[8] zeros y=f32[8] poison n=3 ; expect error race",
            "reports nothing",
        ),
        ("x=f32[8] zeros n=3", "`y` gets no argument"),
        ("x=f32[8] zeros y=f32[8] poison n=3 z=1", "no parameter `z`"),
        ("x=f16[8] zeros y=f32[8] poison n=3", "points to f32"),
        (
            "x=f32[8] zeros y=f32[8] poison n=1.5",
            "not a number of type i32",
        ),
        (
            "x=f32[8] zeros y=f32[8] poison n=3 ; expect n within exact",
            "no buffer `n`",
        ),
    ];
    for (line, message) in cases {
        let found = failures(line);
        assert!(
            found.len() == 1 && found[0].contains(message),
            "{line}: {found:?}"
        );
    }
    assert_eq!(
        failures("x=f32[8] poison y=f32[8] poison n=3 ; expect error never written"),
        [""; 0]
    );
}

#[test]
fn contents_are_what_their_names_say() {
    let normal = fill(Scalar::F32, 10_000, &Fill::Normal(1), false).expect("floats");
    let values: Vec<f64> = normal
        .expect("no poison")
        .iter()
        .map(|&bits| f64::from(f32::from_bits(bits as u32)))
        .collect();
    let mean = values.iter().sum::<f64>() / 10_000.0;
    let variance = values.iter().map(|x| x * x).sum::<f64>() / 10_000.0 - mean * mean;
    // Five standard errors of mean and variance of so many numbers.
    assert!(
        mean.abs() < 0.05 && (variance - 1.0).abs() < 0.08,
        "{mean} {variance}"
    );

    let uniform = fill(Scalar::I8, 1000, &Fill::Uniform(2, -3.0, 3.0), false).expect("a range");
    let mut seen: Vec<i8> = uniform
        .expect("no poison")
        .iter()
        .map(|&b| b as u8 as i8)
        .collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [-3, -2, -1, 0, 1, 2, 3]);

    let special = fill(Scalar::F16, 100, &Fill::Const("1".into()), true).expect("fits");
    let special = special.expect("no poison");
    assert_eq!(special[3], 0x8000);
    assert!(special.contains(&0x7c00) && special.contains(&0x7fff));
    assert!(fill(Scalar::I32, 1, &Fill::Normal(1), false).is_err());
    assert!(fill(Scalar::I32, 2, &Fill::List(vec!["1".into()]), false).is_err());
}

#[test]
fn bounds_are_kept() {
    let close = |scalar: Scalar, bound: Bound, e: u64, f: u64| {
        let arg = Argument {
            name: "x".into(),
            it: ArgValue::Buffer {
                scalar,
                count: 1,
                bits: None,
            },
        };
        let contents = |bits| [Some(Contents(vec![Some(bits)]))];
        compare_buffers(&[arg], &[bound], &contents(e), &contents(f)).is_ok()
    };
    let f = |x: f32| u64::from(x.to_bits());
    let cases = [
        (Bound::Exact, f(1.0), f(1.0), true),
        (Bound::Exact, f(0.0), f(-0.0), false),
        (Bound::Exact, f(f32::NAN), 0x7fff_ffff, true),
        (Bound::Exact, f(f32::NAN), f(1.0), false),
        (Bound::Ulp(1), f(1.0), f(1.0) + 1, true),
        (Bound::Ulp(1), f(1.0), f(1.0) + 2, false),
        (Bound::Ulp(0), f(0.0), f(-0.0), true),
        (Bound::Ulp(2), 1, 0x8000_0001, true),
        (Bound::Ulp(1), f(f32::MAX), f(f32::INFINITY), true),
        (Bound::Relative(0.1), f(10.0), f(10.9), true),
        (Bound::Relative(0.1), f(10.0), f(11.1), false),
        (Bound::Absolute(1e9), f(1.0), f(f32::INFINITY), false),
        (Bound::Absolute(0.5), f(1.0), f(1.5), true),
    ];
    for (bound, e, found, fits) in cases {
        assert_eq!(
            close(Scalar::F32, bound, e, found),
            fits,
            "{bound:?} {e:#x} {found:#x}"
        );
    }
    assert!(close(Scalar::I8, Bound::Absolute(2.0), 0xff, 1));
    assert!(!close(Scalar::I8, Bound::Absolute(1.0), 0xff, 1));
}

#[test]
fn the_emulator_runs_what_was_compiled() {
    let func = parse_tile(COPY).expect("valid");
    let run = RunLine::parse("x=f32[8] iota(1) y=f32[8] poison n=3").expect("valid");
    let args = super::arguments(&func, &run).expect("they fit");
    let job = Job {
        func: &func,
        grid: run.grid,
        args: &args,
        target: Target::SM_80,
        options: &Options::DEFAULT,
        seed: 1,
    };
    let executors = super::exec::executors();
    let names: Vec<&str> = executors.iter().map(|e| e.name()).collect();
    assert_eq!(names, ["emulator", "GPU"]);
    let Outcome::Done(finished) = executors[0].run(&job) else {
        panic!("the emulator failed");
    };
    let found = finished.buffers;
    let y = found[1].as_ref().expect("a buffer");
    let f = |x: f32| Some(u64::from(x.to_bits()));
    assert_eq!(y.0, [f(1.0), f(2.0), f(3.0), None, None, None, None, None]);
    let mut other = found.clone();
    other[1] = Some(Contents(vec![f(1.0); 8]));
    let bounds = [Bound::Exact; 3];
    assert!(compare_buffers(&args, &bounds, &other, &found).is_err());
}
