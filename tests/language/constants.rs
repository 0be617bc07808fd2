//! What expressions are at compile time, in value and in type: constants.txt has what Triton's code generator and Python
//! make of them.
//!
//! What Triton refuses may be accepted here as what Python makes of it, and those expressions are listed:
//! constants_more.txt, which `BLESS=1` writes.

use std::path::Path;

use tilelift::front::{Module, Specialization, parse_signature};
use tilelift::settings::Target;

/// Those of the parameters in make_constants.py.
const SIGNATURE: &str = "*fp32, *ki8, i32, u32, i64, fp32, fp16, i1, \
    7, -3, 0, 1000, 2.5, -0.0, True, None, 'abc', '', fp16, i8, (1, 2.5, 'x')";

/// Parts of expressions that Triton takes and that are refused here: pointers into other memory, of which a kernel has none, and
/// numbers beyond 128 bits.
const REFUSED: [&str; 2] = ["tl.pointer_type(tl.float16, 3)", "1 << 20 * 7"];

/// A constant in Python's writing, or the type of what is known at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Is {
    Constant(String),
    RunTime(String),
}

/// What an expression is; none if it is refused.
fn evaluate(place: &str, expr: &str) -> Option<Is> {
    let params = "A, B, Z, K, F, G, T, N, S, E, D, I, P";
    let (host, expr) = match place {
        "host" => (
            format!(
                "@triton.constexpr_function\ndef host({params}, W, V):\n    return {expr}\n\n\n"
            ),
            format!("host({params}, W, V)"),
        ),
        _ => (String::new(), expr.to_owned()),
    };
    let head = "import math\nimport triton\nimport triton.language as tl\n\n\
        W = tl.constexpr(12)\nV = tl.constexpr(0.1)\n\n\n";
    let constants = params.replace(',', ": tl.constexpr,") + ": tl.constexpr";
    let setup = "    x = tl.arange(0, 16)\n    y = x[:, None] + tl.arange(0, 4)[None, :]\n    n = 5\n    \
        pair = (1, f)\n    M: tl.constexpr = A * 2\n";
    let prints = |print: &str| {
        let kernel = format!("@triton.jit\ndef kernel(p, q, i, u, l, f, h, b, {constants}):\n");
        let text = format!("{head}{host}{kernel}{setup}    tl.static_print({print})\n");
        let module = Module::parse("expression.py", &text).ok()?;
        let args = parse_signature(SIGNATURE).expect("a signature");
        let lowered = module.lower(Some("kernel"), &Specialization::new(args, Target::SM_80));
        let notes = lowered.ok()?.notes.list;
        let printed = notes.into_iter().find(|d| d.code.name() == "F23");
        printed.map(|d| d.message)
    };
    let at_run_time = prints(&format!("isinstance({expr}, tl.tensor)"))?;
    Some(match &*at_run_time {
        "True" => Is::RunTime(prints(&format!("({expr}).type"))?),
        _ => {
            // A tuple shows its elements by their `repr`.
            let shown = prints(&format!("(({expr}),)"))?;
            let shown = shown.strip_prefix('(')?.strip_suffix(",)")?;
            Is::Constant(shown.to_owned())
        }
    })
}

#[test]
fn constants_are_what_triton_and_python_make_of_them() {
    let text = include_str!("../data/language/constants.txt");
    let (mut wrong, mut more, mut compared) = (Vec::new(), Vec::new(), 0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let parts: Vec<&str> = line.splitn(3, '\t').collect();
        let [place, expr, expected] = parts[..] else {
            panic!("no line of constants.txt: {line}");
        };
        let found = evaluate(place, expr);
        let is_refused = REFUSED.iter().any(|part| expr.contains(part));
        let fits = match (expected.split_at(1), &found) {
            _ if is_refused => found.is_none(),
            (("=", value), Some(Is::Constant(found))) => value.trim_start() == found,
            ((":", ty), Some(Is::RunTime(found))) => ty.trim_start() == found,
            (("!", _), None) => true,
            (("!", value), Some(found)) => {
                more.push(format!("{place}\t{expr}"));
                match found {
                    Is::Constant(found) => value.trim_start() == found,
                    Is::RunTime(_) => value.is_empty(),
                }
            }
            _ => false,
        };
        if !fits {
            wrong.push(format!("{line}\n    found {found:?}"));
        }
        compared += 1;
    }
    assert!(
        wrong.is_empty(),
        "{} of {compared} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(compared >= 1000, "{compared}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/language/constants_more.txt");
    let more = more.join("\n") + "\n";
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &more).expect("constants_more.txt");
    }
    let known = std::fs::read_to_string(&path).expect("constants_more.txt; BLESS=1 writes it");
    assert!(
        known == more,
        "what is accepted and Triton refuses has changed; BLESS=1 writes constants_more.txt"
    );
}
