//! Triton's own standard library, which is written in the language, given as source: each function of the file gives what
//! ours of the same name gives.
//!
//! The file is read where the Python that `TILELIFT_PYTHON` names (or `python3`) has Triton; elsewhere the test says that
//! it is skipped.

use std::process::Command;

use tilelift::front::{Module, Specialization, parse_signature};
use tilelift::interp::{self, Arg, Launch, Memory};
use tilelift::settings::Target;

use super::data;
use tilelift::front::types::DType;

/// The file's text, if it is here.
fn text() -> Option<String> {
    let python = std::env::var("TILELIFT_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let ask = "import importlib.util as u; print(u.find_spec('triton').origin)";
    let output = Command::new(python).args(["-c", ask]).output().ok()?;
    let origin = String::from_utf8(output.stdout).ok()?;
    let folder = std::path::Path::new(origin.trim()).parent()?;
    std::fs::read_to_string(folder.join("language/standard.py")).ok()
}

/// Expressions of a block `v` of 4 rows and 8 columns, of `i` and of `row`, a block of 32; `L.` stands for the file's
/// functions or for ours.
const EXPRESSIONS: &[&str] = &[
    "L.cdiv(i + row.to(core.int32), 4)",
    "L.sigmoid(v)",
    "L.softmax(row)",
    "L.softmax(v, 1, keep_dims=True)",
    "L.softmax(core.broadcast_to(core.reshape(L.max(v, 1), (4, 1)), (4, 4)), 1)",
    "L.softmax(row, 0, keep_dims=True, ieee_rounding=True)",
    "L.ravel(v)",
    "L.swizzle2d(i // 8, i % 8, 4, 8, 3)[0]",
    "L.swizzle2d(i // 8, i % 8, 4, 8, 3)[1]",
    "L.zeros((4, 8), core.float32) + L.zeros_like(v)",
    "L.max(v, 1)",
    "L.max(v.to(core.float16), 1)",
    "L.max(v.to(core.int8), 0)",
    "L.max(v, 1, return_indices=True)[1]",
    "L.max(v, 0, return_indices=True, return_indices_tie_break_left=False)[0]",
    "L.max(v.to(core.int16), 1, return_indices=True)[0]",
    "L.min(v.to(core.uint8), 0, return_indices=True)[0]",
    "L.argmax(v, 1)",
    "L.argmax(v.to(core.bfloat16), 0, keep_dims=True)",
    "L.min(v, 0)",
    "L.min(v.to(core.int32), 1, keep_dims=True)",
    "L.min(v, 1, return_indices=True)[1]",
    "L.argmin(v, 0)",
    "L.sum(v, 1)",
    "L.sum(v.to(core.int8), 0)",
    "L.sum(v > 0, 0)",
    "L.sum(v, dtype=core.float64)",
    "L.xor_sum(v.to(core.int32), 1)",
    "L.reduce_or(v.to(core.int32), 0)",
    "L.cumsum(v, 1)",
    "L.cumsum(v.to(core.uint8), 0, reverse=True)",
    "L.cumprod(v, 0)",
    "L.sort(v)",
    "L.sort(v.to(core.float16), descending=True)",
    "L.sort(row)",
    "L.topk(row, 4)",
    "L.topk(v, 2, dim=1)",
    "L.bitonic_merge(row)",
    "L.bitonic_merge(v, descending=True)",
    "L.flip(v, 0)",
    "L.flip(v, 1)",
    "L.interleave(v, v * 2)",
];

/// What a kernel with this expression writes.
fn run(text: &str, expression: &str) -> Result<Vec<u8>, String> {
    let program = format!(
        "{text}\n\n@jit\ndef probe(out, x):\n    i = core.arange(0, 32)\n    row = core.load(x + i)\n    \
         v = core.reshape(row, (4, 8))\n    r = ({expression}).to(core.float64)\n    \
         core.store(out + core.arange(0, 64), core.full((64,), 0, core.float64))\n    core.debug_barrier()\n    \
         if r.type.is_block():\n        n: core.constexpr = r.numel\n        \
         core.store(out + core.arange(0, n), core.reshape(r, (n,)))\n    else:\n        core.store(out, r)\n"
    );
    let module = Module::parse("standard.py", &program).map_err(|e| e.to_string())?;
    let args = parse_signature("*fp64, *fp32").map_err(|e| e.to_string())?;
    let spec = Specialization::new(args, Target::SM_80);
    let lowered = module
        .lower(Some("probe"), &spec)
        .map_err(|e| e.to_string())?;
    let mut memory = Memory::new();
    let out = memory.alloc(64 * 8);
    let x = memory.alloc_bytes(&data::make(DType::Float32, 32, "rand(9,-4,4)"));
    let launch = Launch {
        grid: [1; 3],
        args: &[Arg::Ptr(out), Arg::Ptr(x)],
    };
    interp::run(&lowered.func, &launch, &mut memory, &Default::default())
        .map_err(|e| e.to_string())?;
    let bytes = memory.read(out, 64 * 8).map_err(|e| e.to_string())?;
    Ok(bytes.to_vec())
}

#[test]
fn functions_of_the_file_are_like_ours() {
    let Some(text) = text() else {
        eprintln!("skipped: no Triton found (set TILELIFT_PYTHON)");
        return;
    };
    let ours =
        "from triton import jit\nimport triton.language as core\nimport triton.language as L\n";
    let mut wrong = Vec::new();
    for expression in EXPRESSIONS {
        let expected = run(ours, expression);
        let found = run(&text, &expression.replace("L.", ""));
        match (found, expected) {
            (Ok(found), Ok(expected)) if found == expected => {}
            (Ok(_), Ok(_)) => wrong.push(format!("{expression}: results differ")),
            (Err(e), _) => wrong.push(format!("{expression}: {e}")),
            (_, Err(e)) => wrong.push(format!("{expression}, ours: {e}")),
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}
