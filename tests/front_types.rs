//! Types of expressions, compared with those that Triton gives them (`tests/triton/promotion.txt`).
#![cfg(feature = "triton")]

use std::collections::BTreeMap;
use std::path::Path;

use tilelift::front::diagnostic::Code;
use tilelift::front::{Module, Specialization, parse_signature};
use tilelift::settings::Target;

/// The kernel that `promotion.py` makes.
fn program(expression: &str) -> String {
    format!(
        "import triton
import triton.language as tl

@triton.jit
def probe(p, q):
    two = 2
    half = 0.5
    x = tl.load(p + tl.arange(0, 4))
    y = tl.load(q + tl.arange(0, 4))
    s = tl.load(p)
    t = tl.load(q)
    r = {expression}
    tl.static_print(r.dtype)
"
    )
}

/// The type's name, or the code of the first error.
fn result(first: &str, second: &str, expression: &str) -> Result<String, Code> {
    let module = Module::parse("probe.py", &program(expression)).expect("Python");
    let args = parse_signature(&format!("*{first}, *{second}")).expect("a signature");
    match module.lower(Some("probe"), &Specialization::new(args, Target::SM_90)) {
        Ok(lowered) => Ok(lowered.notes.list[0].message.clone()),
        Err(messages) => Err(messages.list[0].code),
    }
}

/// Triton prints some types by their short names and some by their long ones.
fn long(name: &str) -> String {
    let name = name.replace("fp", "float").replace("bf16", "bfloat16");
    match name.strip_prefix("pointer<") {
        Some(inner) => format!("*{}", inner.trim_end_matches('>')),
        None => name,
    }
}

fn short(name: &str) -> String {
    let (star, name) = match name.strip_prefix('*') {
        Some(name) => ("*", name),
        None => ("", name),
    };
    let number = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    match name.chars().next() {
        Some('i') => format!("{star}int{number}"),
        Some('u') => format!("{star}uint{number}"),
        _ => format!(
            "{star}{}",
            name.replace("fp", "float").replace("bf16", "bfloat16")
        ),
    }
}

#[test]
fn types_are_those_of_triton() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/triton/promotion.txt");
    let text = std::fs::read_to_string(path).expect("the table is there");
    let mut wrong = Vec::new();
    let (mut same, mut refused, mut later) = (0, 0, 0);
    // What Triton refuses and this accepts, by expression.
    let mut accepted: BTreeMap<String, usize> = BTreeMap::new();
    for line in text.lines() {
        let parts: Vec<&str> = line.split(" | ").collect();
        let [types, expression, expected] = parts[..] else {
            panic!("{line}");
        };
        let (first, second) = types.split_once(' ').expect("two types");
        match (result(first, second, expression), expected) {
            (Err(Code::NotYet), _) => later += 1,
            (Err(_), "error") => refused += 1,
            (Ok(_), "error") => *accepted.entry(expression.to_owned()).or_default() += 1,
            (Ok(found), expected) if short(&found) == long(expected) => same += 1,
            (found, _) => wrong.push(format!("{line}, here {found:?}")),
        }
    }
    eprintln!(
        "{same} alike, {refused} refused by both, {later} not there yet, accepted: {accepted:?}"
    );
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(same > 1500, "only {same} were compared");
}
