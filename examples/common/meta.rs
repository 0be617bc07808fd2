//! The metadata of a kernel as `tilelift compile --meta` writes it, as far as launching needs it.

use tilelift::compile::{CompiledKernel, ParamKind};

/// The metadata as JSON.
pub(crate) fn meta_json(kernel: &CompiledKernel) -> String {
    let meta = &kernel.meta;
    let params: Vec<String> = meta
        .params
        .iter()
        .map(|p| {
            let kind = if p.kind == ParamKind::Pointer {
                "pointer"
            } else {
                "scalar"
            };
            format!(
                r#"{{"name": "{}", "kind": "{kind}", "type": "{}"}}"#,
                p.name, p.ty
            )
        })
        .collect();
    format!(
        r#"{{"name": "{}", "target": "{}", "ptx_version": "{}", "num_warps": {}, "block": [{}, 1, 1], "shared": {}, "params": [{}]}}"#,
        meta.name,
        meta.target,
        meta.ptx_version,
        meta.num_warps,
        meta.threads(),
        meta.shared,
        params.join(", ")
    )
}
