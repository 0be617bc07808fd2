//! Types of expressions, compared with those that Triton gives them (`tests/data/triton/promotion.txt`).
use std::collections::BTreeMap;
use std::path::Path;

use tilelift::front::diagnostic::Code;
use tilelift::front::{Module, Specialization, parse_signature};
use tilelift::interp::{Arg, Launch, Memory, Options, run};
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

#[test]
fn types_are_those_of_triton() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/triton/promotion.txt");
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
            (Ok(found), expected) if found == expected => same += 1,
            (found, _) => wrong.push(format!("{line}, here {found:?}")),
        }
    }
    eprintln!(
        "{same} alike, {refused} refused by both, {later} not there yet, accepted: {accepted:?}"
    );
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(same > 1500, "only {same} were compared");
}

/// Numbers next to the middle between two of 8 bits: through f32 the little that decides would be lost first.
#[test]
fn fp64_becomes_fp8_in_one_rounding() {
    for (format, expected) in [
        ("float8e5", [0x3d_u8, 0x3c, 0x3c, 0xbd]),
        ("float8e4nv", [0x39, 0x39, 0x38, 0xb9]),
    ] {
        let text = format!(
            "import triton
import triton.language as tl

@triton.jit
def narrow(x, out):
    i = tl.arange(0, 4)
    tl.store(out + i, tl.load(x + i).to(tl.{format}).to(tl.uint8, bitcast=True))
"
        );
        let module = Module::parse("narrow.py", &text).expect("Python");
        let args = parse_signature("*fp64, *u8").expect("a signature");
        let spec = Specialization::new(args, Target::SM_90);
        let lowered = module.lower(Some("narrow"), &spec).expect("it lowers");
        let tie = if format == "float8e5" { 1.125 } else { 1.0625 };
        let little = 2_f64.powi(-45);
        let numbers = [tie + little, 1.125, tie - little, -tie - little];
        let mut memory = Memory::new();
        let x = memory.alloc_bytes(&numbers.map(f64::to_le_bytes).concat());
        let out = memory.alloc(4);
        let launch = Launch {
            grid: [1; 3],
            args: &[Arg::Ptr(x), Arg::Ptr(out)],
        };
        run(&lowered.func, &launch, &mut memory, &Options::default()).expect("it runs");
        assert_eq!(memory.read(out, 4), Ok(&expected[..]), "{format}");
    }
}
