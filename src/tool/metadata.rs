//! What a launcher must know of a kernel, as JSON: with the PTX and this, any CUDA program can launch it.

use serde_json::{Value, json};

use crate::compile::{KernelMeta, ParamKind};

/// The JSON of `--meta`; `num_stages` is what the command line or the loops asked for.
pub(super) fn json(meta: &KernelMeta, num_stages: u8, constants: &[(String, String)]) -> String {
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
    let value = json!({
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
    format!("{value:#}\n")
}
