//! The reader of `; run:` lines, contents of buffers, and bounds.

use super::compare::{Bound, compare_buffers};
use super::exec::{ArgValue, Argument, Contents, Job, Outcome, Printed};
use super::fill::{Fill, fill};
use super::parse_line::{ArgSpec, Expect, RunLine};
use super::{Setup, compare_printed, run_lines};
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
    let setup = Setup::new(Target::SM_80, &Options::DEFAULT);
    let report = run_lines(&text, &setup);
    report.failures.iter().map(ToString::to_string).collect()
}

#[test]
fn lines_are_read() {
    let run = RunLine::parse(
        "grid(4,2) x=f32[7] normal(1) special n=-3 p=null y=i8[2] [1,2] \
         ; expect x, y within rel 1e-3 ; expect y = [3,nan] ; expect printed some words",
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
        Expect::Printed("some words".into()),
    ];
    assert_eq!(run.expects, expects);
    let run =
        RunLine::parse("\"größe\"=1 x= @\"a b.npy\" ; expect \"größe\" = @c.npy").expect("valid");
    let number = ArgSpec::Number("1".into());
    let file = ArgSpec::File("a b.npy".into());
    assert_eq!(run.args, [("größe".into(), number), ("x".into(), file)]);
    assert_eq!(run.expects, [Expect::File("größe".into(), "c.npy".into())]);
    let run = RunLine::parse("x=1 ; expect error never written").expect("valid");
    assert_eq!(run.expects, [Expect::Error("never written".into())]);
}

#[test]
fn mistakes_in_lines_are_named() {
    let cases = [
        ("x=f32[4]", "what the buffer holds"),
        ("x=f32[4] strange", "what the buffer holds"),
        ("x", "expected `=`"),
        ("grid(1", "expected `)`"),
        (
            "x=f32[4] zeros ; out within 2",
            "expected `expect NAME = [..]`",
        ),
        (
            "x=f32[4] zeros ; expect x within 2",
            "expected exact, stated, ulp N",
        ),
        ("x=f32[999999999999] zeros", "at most 256 MiB"),
        ("x=i64[99999999999999999999] zeros", "a number of elements"),
        ("x=i64[9223372036854775807] zeros", "at most 256 MiB"),
        (
            "x=i8[134217728] zeros y=i8[134217729] zeros",
            "at most 256 MiB",
        ),
        ("grid(0)", "a grid of 0 x 1 x 1 programs"),
        ("grid(1,70000)", "y and z at most 65535"),
        ("steps(x)", "a number of steps"),
        ("x=f32[1] zeros ; expect x within rel nan", "finite"),
        ("x=f32[1] zeros ; expect x within abs -1", "not negative"),
        (
            "x=f32[1] zeros ; expect x within 3 ulp",
            "expected exact, stated, ulp N",
        ),
        ("x=f32[1] zeros ; expect x near 3", "`within` or `=`"),
        ("x=f32[1] [1,)", "a number"),
        ("n=\"", "the string does not end on its line"),
        // Where it is, and what is to be done.
        ("x", "expected `=` at the end of a `run` line, behind `x`"),
        (
            "x=@out.npy n=1 y=f32[8] [1 2]",
            "expected `]`, found `2`, behind `..@out.npy n=1 y=f32[8] [1`",
        ),
        ("x=@a.npy )", "found `)`, behind `x=@a.npy`"),
        ("grid(1) n=2 grid(2)", "`grid(..)` stands twice in the line"),
        ("steps(1) steps(1)", "`steps(..)` stands twice"),
        (
            "grid(99999999999)",
            "a number of programs that is not so large, found `99999999999`",
        ),
        ("x=1, y=2", "expected a space between arguments, found `,`"),
        ("x=f32[2,4] zeros", "a buffer has one length"),
        (
            "x=f32 zeros",
            "expected `[LENGTH]`, the number of elements, found `zeros`",
        ),
        (
            "x=f32[4] [[1,2],[3,4]]",
            "a list has all elements in a row, found `[`",
        ),
        (
            "x=u8[4] zeros",
            "did you mean `i8`? Integers have no sign of their own.",
        ),
        ("x=@", "the name of a file is missing behind `@`"),
        ("x=@\"a", "the name of a file has no closing quote"),
        (
            "x=1 ;",
            "`expect error WORDS` or `expect printed LINE` after `;`, found nothing",
        ),
        ("x=1 ; expect", "after `;`, found `expect`"),
        ("x=1 ; expect error", "after `;`, found `expect error`"),
        ("x=1 ; expect printed", "after `;`, found `expect printed`"),
        (
            "x=1 ; expect x = 1",
            "expected a list such as `[1,2]`, or `@FILE`, found `1`",
        ),
        ("x=1 ; expect x = @", "the name of a file is missing"),
        (
            "x=1 ; expect x = [1] within ulp 1",
            "a bound stands in an `expect NAME within BOUND` of its own, found `within`",
        ),
        (
            "x=1 ; expect x within ulp 1 ; expect y, x within exact",
            "`x` has two bounds",
        ),
        (
            "x=1 ; expect error a ; expect x = [1]",
            "`expect error` is the only `expect` of a line",
        ),
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
            "x=zzz[8] zeros y=f32[8] poison n=3",
            "unknown type `zzz`; known are i1, ",
        ),
        (
            "x=f32[8] zeros y=f32[8] poison n=1.5",
            "not a number of type i32",
        ),
        (
            "x=f32[8] zeros y=f32[8] poison n=3 ; expect n within exact",
            "no buffer `n` to expect anything of; there is x, y",
        ),
        (
            "x=f32[8] zeros y=f32[8] poison n=3 ; expect yy = [1]",
            "no buffer `yy` to expect anything of; did you mean `y`?",
        ),
        (
            "x=f32[8] zeros y=f32[8] poison n=3 ; expect y = [1,2,3,NaN,5,6,7,8]",
            "`y`: NaN is not a number of type f32; write nan, inf or -inf",
        ),
        (
            "x=f32[8] zeros y=f32[8] poison n=3 ö=1",
            "unexpected character 'ö'; remove it, or write the name that has it in quotes; the kernel takes x, y, n",
        ),
        (
            "x=1.5 y=f32[8] poison n=3",
            "`x`: a pointer takes a buffer, the name of a parameter that gets one, or null, not a number",
        ),
        (
            "x=null y=x n=3",
            "`y`: `x` gets no buffer; write what it is to hold, as in x=f32[8] zeros",
        ),
        ("x=y y=x n=3", "gets no buffer; write what it is to hold"),
        (
            "x=f32[8] zeros y=x n=3 ; expect y = [0,0,0,0,0,0,0,0]",
            "there is no buffer `y` to expect anything of; it is that of `x`, of which it can be said",
        ),
        (
            "x=f32[8] zeros y=z n=3",
            "`y`: there is no parameter `z` with a buffer; there is x",
        ),
        (
            "x=f32[8] zeros y=f32[8] poison n=i32[1] zeros",
            "`n`: the parameter is i32 and takes a number, not a buffer",
        ),
        ("x=f32[8] zeros x=null y=f32[8] poison n=3", "two arguments"),
        ("x=null y=f32[8] poison n=3", "not inside a buffer"),
        (
            "x=f32[8] poison special y=f32[8] poison n=3",
            "no special values",
        ),
        (
            "x=f32[8] zeros y=f32[8] poison n=3 ; expect printed here",
            "interpreter does not print the line `here`; it prints nothing",
        ),
        (
            "x=f32[8] zeros y=f32[8] poison n=3 ; expect y = [0,0]",
            "2 elements are stated of a buffer of 8",
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
fn what_is_printed_is_compared_line_by_line() {
    let lines = |text: &str| Printed {
        lines: text.split_whitespace().map(str::to_owned).collect(),
        lost: 0,
    };
    let compare = |e: &str, f: &str| compare_printed(Some(&lines(e)), Some(&lines(f)));
    assert_eq!(compare("a b", "a b"), Ok(()));
    let cases = [
        (
            "a b",
            "a c",
            "2 lines printed, not 2; the first that differs is `c` instead of `b`",
        ),
        (
            "a b",
            "a",
            "1 lines printed, not 2; the first that differs is nothing instead of `b`",
        ),
        (
            "",
            "a",
            "1 lines printed, not 0; the first that differs is `a` instead of nothing",
        ),
    ];
    for (expected, found, message) in cases {
        assert_eq!(compare(expected, found), Err(message.to_owned()));
    }
    // Of what a log has no room for the number is compared, and the rest is there.
    let short = |text: &str, lost| Printed {
        lost,
        ..lines(text)
    };
    let all = lines("d a c b b");
    for (text, lost, is_right) in [
        ("b c a", 2, true),
        ("b b c d", 1, true),
        ("a a", 3, false),
        ("b e", 3, false),
        ("b c a", 1, false),
    ] {
        let compared = compare_printed(Some(&all), Some(&short(text, lost)));
        assert_eq!(compared.is_ok(), is_right, "{text} {lost}: {compared:?}");
    }
    // Where one does not know, nothing is compared.
    assert_eq!(compare_printed(None, Some(&lines("a"))), Ok(()));
}

#[test]
fn without_a_reference_results_are_stated() {
    let failures = |ptx: &str, line: &str| {
        let text = format!(
            "kernel @k(v0 \"x\": ptr<i32>) warps(1) {{\nblock0:\n    v1 = load v0 : i32\n    v2 = inline_ptx v1 {{ptx = \"{ptx}\", constraints = \"=r,r\", pack = 1}} : i32\n    store v0, v2\n    return\n}}\n; run: grid(1) x=i32[1] [6]{line}\n"
        );
        let setup = Setup::new(Target::SM_80, &Options::DEFAULT);
        let report = run_lines(&text, &setup);
        let found: Vec<String> = report.failures.iter().map(ToString::to_string).collect();
        found
    };
    let negate = "neg.s32 $0, $1;";
    assert_eq!(failures(negate, " ; expect x = [-6]"), [""; 0]);
    let cases = [
        (
            negate,
            "",
            "the interpreter cannot run this; state what comes out",
        ),
        (
            negate,
            " ; expect x = [6]",
            "emulator (seed 0): `x`: 1 of 1 elements are not equal; the first is [0], -6 instead of 6",
        ),
        ("trap;", " ; expect x = [6]", "emulator (seed 0): sm_80: "),
    ];
    for (ptx, line, message) in cases {
        let found = failures(ptx, line);
        assert!(
            found.len() == 1 && found[0].contains(message),
            "{ptx}{line}: {found:?}"
        );
    }
    // The line of PTX that failed is shown.
    assert!(failures("trap;", " ; expect x = [6]")[0].ends_with("\n    trap;"));
}

#[test]
fn contents_are_what_their_names_say() {
    let normal = fill(Scalar::F32, 10_000, &Fill::Normal(1), false).expect("floats");
    let normal = normal.expect("no poison");
    let (elements, rest) = normal.as_chunks::<4>();
    assert!(rest.is_empty());
    let values: Vec<f64> = elements
        .iter()
        .map(|&bytes| f64::from(f32::from_le_bytes(bytes)))
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
        .map(|&byte| byte as i8)
        .collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, [-3, -2, -1, 0, 1, 2, 3]);

    let special = fill(Scalar::F16, 100, &Fill::Const("1".into()), true).expect("fits");
    let special = special.expect("no poison");
    let special: Vec<u16> = special
        .chunks(2)
        .map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
        .collect();
    assert_eq!(special[3], 0x8000);
    assert!(special.contains(&0x7c00) && special.contains(&0x7fff));
    // Beyond 2^53, where f64 has gaps.
    let iota = fill(Scalar::I64, 2, &Fill::Iota((1 << 53) + 1), false).expect("fits");
    let expected = [(1u64 << 53) + 1, (1 << 53) + 2].map(u64::to_le_bytes);
    assert_eq!(iota.as_deref(), Some(expected.as_flattened()));
    for (low, high) in [
        (f64::NAN, 1.0),
        (0.0, f64::INFINITY),
        (f64::NEG_INFINITY, 0.0),
    ] {
        assert!(fill(Scalar::F32, 1, &Fill::Uniform(1, low, high), false).is_err());
    }
    assert!(fill(Scalar::I32, 1, &Fill::Normal(1), false).is_err());
    assert!(fill(Scalar::I32, 2, &Fill::List(vec!["1".into()]), false).is_err());
}

#[test]
fn bounds_are_kept() {
    let close = |scalar: Scalar, bound: Bound, e: u64, f: u64| {
        let arg = Argument {
            name: "x".into(),
            shape: None,
            it: ArgValue::Buffer {
                scalar,
                count: 1,
                bytes: None,
            },
        };
        let contents = |bits| [Some(Contents::new(scalar, [Some(bits)].into_iter()))];
        compare_buffers(&[arg], &[bound], None, &contents(e), &contents(f)).is_ok()
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
    assert!(close(Scalar::I8, Bound::Ulp(2), 0xff, 1));
    assert!(!close(Scalar::I8, Bound::Ulp(1), 0xff, 1));
}

#[test]
fn the_emulator_runs_what_was_compiled() {
    let func = parse_tile(COPY).expect("valid");
    let run = RunLine::parse("x=f32[8] iota(1) y=f32[8] poison n=3").expect("valid");
    let setup = Setup::new(Target::SM_80, &Options::DEFAULT);
    let args = super::arguments(&func, &run, &setup).expect("they fit");
    let job = Job {
        func: &func,
        grid: run.grid,
        args: &args,
        target: Target::SM_80,
        options: &Options::DEFAULT,
        seed: 1,
        in_source: false,
        steps: None,
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
    let elements: Vec<Option<u64>> = y.iter().collect();
    assert_eq!(
        elements,
        [f(1.0), f(2.0), f(3.0), None, None, None, None, None]
    );
    let message = |numbers: [Option<u64>; 8]| {
        let mut other = found.clone();
        other[1] = Some(Contents::new(Scalar::F32, numbers.into_iter()));
        let compared = compare_buffers(&args, &[Bound::Exact; 3], None, &other, &found);
        compared.expect_err("they differ").to_string()
    };
    let far = message([f(1.0); 8]);
    assert_eq!(
        far,
        "`y`: 7 of 8 elements are not equal; the first is [1], 2.0 instead of 1.0"
    );
    // What differs by so little may be as exact as PTX is.
    let next = |x: f32, n: u32| Some(u64::from(x.to_bits() + n));
    let near = message([
        next(1.0, 1),
        next(2.0, 2),
        f(3.0),
        None,
        None,
        None,
        None,
        None,
    ]);
    assert!(
        near.ends_with("; `expect NAME within ulp 2` would allow all"),
        "{near}"
    );
}

#[test]
fn failures_have_their_places() {
    // The load is in line 11 of the text, the run line is line 15.
    let never = "x=f32[8] poison y=f32[8] poison n=3";
    let found = failures(never);
    assert!(
        found[0]
            .starts_with("line 11:11: interpreter: program (0, 0, 0), element (0): the byte at"),
        "{found:?}"
    );
    assert!(found[0].ends_with("(run of line 15)"), "{found:?}");
    let wrong = "x=f32[8] zeros y=f32[8] poison n=1 ; expect y = [1,0,0,0,0,0,0,0]";
    let found = failures(wrong);
    assert_eq!(
        found,
        [
            "line 15:23: interpreter: `y`: 8 of 8 elements are not equal; the first is [0], 0.0 instead of 1.0"
        ]
    );
}

#[test]
fn endless_loops_and_large_grids_end() {
    let text = r#"
kernel @forever(v0 "x": ptr<i32>) warps(1) {
block0:
    v1 = const {value = true} : i1
    while {
    block1:
        condition v1
    } {
    block2:
        yield
    }
    return
}
; run: grid(1) steps(1000) x=i32[1] zeros
"#;
    let setup = Setup {
        steps: Some(77),
        ..Setup::new(Target::SM_80, &Options::DEFAULT)
    };
    let report = run_lines(text, &setup);
    let message = report.failures[0].to_string();
    assert!(message.starts_with("line "), "{message}");
    // What the line says goes before what the command line says.
    assert!(
        message.contains("the limit of 1000 steps is reached; if it"),
        "{message}"
    );
    let report = run_lines(&text.replace("steps(1000) ", ""), &setup);
    assert!(
        report.failures[0]
            .to_string()
            .contains("the limit of 77 steps")
    );
    let large = |words: &str| {
        let text = format!("{COPY}; run: {words} steps(1000) x=f32[8] zeros y=f32[8] zeros n=0\n");
        run_lines(&text, &setup).failures[0].to_string()
    };
    // So many programs are refused before the first runs; who asks for them gets them, within the steps.
    let all = large("grid(2147483647,65535,65535)");
    assert!(all.contains("programs("), "{all}");
    let asked = large("grid(3000000) programs(3000000)");
    assert!(asked.contains("the limit of 1000 steps"), "{asked}");
}
