//! What a launcher must know of a kernel, as JSON: with the PTX and this, any CUDA program can launch it.

use serde_json::{Value, json};

use crate::compile::{KernelMeta, ParamKind};
use crate::device_print::{self, What};

/// The variable that prints and assertions write to, and what each of its records is of; kernels without leave it out.
fn log_of(meta: &KernelMeta) -> Value {
    let sites: Vec<Value> = meta
        .sites
        .iter()
        .map(|site| {
            let (kind, ty, show) = match site.what {
                What::Text => ("text", None, None),
                What::Print(elem, show) => ("print", Some(elem.to_string()), Some(show.name())),
                What::Assert => ("assert", None, None),
            };
            json!({"kind": kind, "type": ty, "show": show, "text": site.text, "line": site.line, "shape": site.shape})
        })
        .collect();
    json!({"symbol": device_print::SYMBOL, "bytes": device_print::BYTES, "sites": sites})
}

/// The JSON of `--meta`; `num_stages` is what the command line or the loops asked for, as far as shared memory has
/// room.
pub(super) fn json(meta: &KernelMeta, num_stages: u32, constants: &[(String, String)]) -> String {
    let constants: serde_json::Map<String, Value> = constants
        .iter()
        .map(|(name, value)| (name.clone(), Value::String(value.clone())))
        .collect();
    let params: Vec<Value> = meta
        .params
        .iter()
        .map(|param| {
            let kind = match param.kind {
                ParamKind::Pointer => "pointer",
                ParamKind::Scalar => "scalar",
            };
            json!({"name": param.name, "kind": kind, "type": param.ty, "bytes": param.bytes})
        })
        .collect();
    let mut value = json!({
        "name": meta.name,
        "target": meta.target.to_string(),
        "ptx_version": meta.ptx_version.to_string(),
        "num_warps": meta.num_warps,
        "num_stages": num_stages,
        "block": [32 * meta.num_warps, 1, 1],
        "cluster": [1, 1, 1],
        "shared": meta.shared,
        "params": params,
        "constants": constants,
    });
    if !meta.sites.is_empty() {
        value["log"] = log_of(meta);
    }
    format!("{value:#}\n")
}
