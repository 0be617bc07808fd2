//! Files of cases: launches with the values that others computed.
//!
//! ```text
//! kernel FILE NAME "SIGNATURE" [CONSTANT=VALUE].. [num_warps=N] [target=sm_N] [grid=X,Y,Z]
//! x f32 = 1 2 3 4                            an argument: a buffer, or with `scalar` behind the type a number
//! n i32 scalar = 4
//! y f32 poison 4 -> rel 1e-6 abs 0 : 2 4 6 8   what a buffer holds afterwards, and how exactly
//! z i32 = 0 0 -> exact : 1 2
//! ```
//!
//! `#` starts a comment. The Python files beside this one write them.

use std::path::Path;

use half::{bf16, f16};
use tilelift::front::Constant;
use tilelift::settings::Target;

use crate::run::{Given, Launch, everywhere};
use crate::variants;

/// What a buffer holds after the launch.
struct Expected {
    relative: f64,
    absolute: f64,
    values: Vec<String>,
}

struct Argument {
    name: String,
    ty: String,
    given: Given,
    expected: Option<Expected>,
}

struct Case {
    line: usize,
    file: String,
    kernel: String,
    signature: String,
    constants: Vec<(String, Constant)>,
    num_warps: u32,
    target: Target,
    grid: [u32; 3],
    args: Vec<Argument>,
}

/// A number of a type as its bytes.
fn encode(ty: &str, text: &str) -> Vec<u8> {
    let float = || -> f64 {
        text.parse()
            .unwrap_or_else(|_| panic!("`{text}` is no number"))
    };
    let int = || -> i128 {
        text.parse()
            .unwrap_or_else(|_| panic!("`{text}` is no integer"))
    };
    match ty {
        "f64" => float().to_le_bytes().to_vec(),
        "f32" => (float() as f32).to_le_bytes().to_vec(),
        "f16" => f16::from_f64(float()).to_le_bytes().to_vec(),
        "bf16" => bf16::from_f64(float()).to_le_bytes().to_vec(),
        "i8" => int().to_le_bytes()[..1].to_vec(),
        "i16" => int().to_le_bytes()[..2].to_vec(),
        "i32" => int().to_le_bytes()[..4].to_vec(),
        "i64" => int().to_le_bytes()[..8].to_vec(),
        _ => panic!("no type `{ty}`"),
    }
}

/// A float's bytes as a number.
fn decode(ty: &str, bytes: &[u8]) -> f64 {
    match (ty, bytes) {
        ("f64", &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
        ("f32", &[a, b, c, d]) => f64::from(f32::from_le_bytes([a, b, c, d])),
        ("f16", &[a, b]) => f16::from_le_bytes([a, b]).to_f64(),
        ("bf16", &[a, b]) => bf16::from_le_bytes([a, b]).to_f64(),
        _ => panic!("`{ty}` is no float"),
    }
}

fn parse(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(rest) = line.strip_prefix("kernel ") {
            cases.push(header(i + 1, rest));
        } else {
            let case = cases.last_mut().expect("a kernel stands first");
            case.args.push(argument(line));
        }
    }
    cases
}

fn header(line: usize, rest: &str) -> Case {
    let (names, rest) = rest.split_once(" \"").expect("a signature");
    let (signature, options) = rest.rsplit_once('"').expect("the end of the signature");
    let (file, kernel) = names.split_once(' ').expect("a file and a kernel");
    let mut case = Case {
        line,
        file: file.to_owned(),
        kernel: kernel.to_owned(),
        signature: signature.to_owned(),
        constants: Vec::new(),
        num_warps: 4,
        target: Target::SM_80,
        grid: [1; 3],
        args: Vec::new(),
    };
    for option in options.split_whitespace() {
        let (name, value) = option.split_once('=').expect("NAME=VALUE");
        match name {
            "num_warps" => case.num_warps = value.parse().expect("a number of warps"),
            "target" => case.target = Target::parse(value).expect("a target"),
            "grid" => {
                for (extent, text) in case.grid.iter_mut().zip(value.split(',')) {
                    *extent = text.parse().expect("a number of programs");
                }
            }
            name => {
                let value = Constant::parse(value).expect("a constant");
                case.constants.push((name.to_owned(), value));
            }
        }
    }
    case
}

fn argument(line: &str) -> Argument {
    let (given, expected) = match line.split_once(" -> ") {
        Some((given, expected)) => (given, Some(expected)),
        None => (line, None),
    };
    let mut words = given.split_whitespace();
    let mut word = || {
        words
            .next()
            .unwrap_or_else(|| panic!("`{line}` ends early"))
    };
    let (name, ty, kind) = (word().to_owned(), word().to_owned(), word());
    let given = match kind {
        "poison" => {
            let count: usize = word().parse().expect("a number of elements");
            Given::Poison(count * encode(&ty, "0").len())
        }
        "null" => Given::Null,
        "=" => Given::Bytes(words.flat_map(|w| encode(&ty, w)).collect()),
        "scalar" => {
            assert_eq!(word(), "=");
            if ty.starts_with('i') {
                Given::Int(word().parse().expect("an integer"))
            } else {
                Given::Float(word().parse().expect("a number"))
            }
        }
        kind => panic!("`{kind}` of `{line}`"),
    };
    let expected = expected.map(|text| {
        let (bound, values) = text.split_once(" : ").expect("a bound and values");
        let words: Vec<&str> = bound.split_whitespace().collect();
        let (relative, absolute) = match words[..] {
            ["exact"] => (0.0, 0.0),
            ["rel", r, "abs", a] => (r.parse().expect("a bound"), a.parse().expect("a bound")),
            _ => panic!("no bound `{bound}`"),
        };
        Expected {
            relative,
            absolute,
            values: values.split_whitespace().map(str::to_owned).collect(),
        }
    });
    Argument {
        name,
        ty,
        given,
        expected,
    }
}

/// Compares a buffer with what is expected of it.
fn compare(argument: &Argument, found: &[u8], expected: &Expected) -> Result<(), String> {
    let ty = argument.ty.as_str();
    let size = encode(ty, "0").len();
    if found.len() != size * expected.values.len() {
        let (n, of) = (expected.values.len(), found.len() / size);
        return Err(format!("{}: {n} values for {of} elements", argument.name));
    }
    for (i, (found, text)) in found.chunks(size).zip(&expected.values).enumerate() {
        let wanted = encode(ty, text);
        if ty.starts_with('i') {
            if found != wanted {
                let (name, found) = (&argument.name, signed(found));
                return Err(format!("{name}[{i}] is {found}, not {text}"));
            }
            continue;
        }
        let (x, y) = (decode(ty, found), decode(ty, &wanted));
        let bound = expected.absolute + expected.relative * y.abs();
        let alike = x == y && x.is_sign_negative() == y.is_sign_negative();
        let near = bound > 0.0 && (x - y).abs() <= bound;
        if !(alike || near || x.is_nan() && y.is_nan()) {
            return Err(format!(
                "{}[{i}] is {x:e}, not {y:e} within {bound:e}",
                argument.name
            ));
        }
    }
    Ok(())
}

/// A little-endian number in two's complement.
fn signed(bytes: &[u8]) -> i64 {
    let mut all = [if bytes[bytes.len() - 1] >= 128 {
        255
    } else {
        0
    }; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(all)
}

fn check(case: &Case, folder: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(folder.join(&case.file)).map_err(|e| e.to_string())?;
    let args: Vec<Given> = case.args.iter().map(|a| a.given.clone()).collect();
    let launch = Launch {
        file: &case.file,
        text: &text,
        kernel: &case.kernel,
        signature: &case.signature,
        constants: &case.constants,
        num_warps: case.num_warps,
        target: case.target,
        grid: case.grid,
        args: &args,
    };
    for (executor, buffers) in everywhere(&launch)? {
        for (argument, buffer) in case.args.iter().zip(buffers) {
            if let (Some(expected), Some(found)) = (&argument.expected, buffer) {
                compare(argument, &found, expected).map_err(|e| format!("{executor}: {e}"))?;
            }
        }
    }
    Ok(())
}

/// Runs every case of a file of this folder; the kernels' sources are in `folder`. Gives the kernels' names.
pub(crate) fn run_file(cases: &str, folder: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("tests/data/language").join(cases);
    let text = std::fs::read_to_string(&path).expect("the cases are there");
    let cases = parse(&text);
    let mut failures = Vec::new();
    for case in &cases {
        if let Err(problem) = check(case, &root.join(folder)) {
            failures.push(format!("line {}, {}: {problem}", case.line, case.kernel));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    variants::print();
    cases.into_iter().map(|case| case.kernel).collect()
}
