//! What a launcher must know of a kernel, as JSON: with the PTX and this, any CUDA program can launch it. What `tilelift compile
//! --meta` writes. With the feature `serde`.
//!
//! ```
//! use tilelift::{metadata, prelude::*};
//!
//! let mut b = TileBuilder::new("nothing", 4);
//! b.ret();
//! let kernel = compile(&b.finish()?, Target::SM_80, &Options::DEFAULT)?;
//! let json = metadata::json(&kernel.meta, 1, &[], None);
//! assert!(json.contains(r#""target": "sm_80""#));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use serde_json::{Value, json};

use crate::compile::{KernelMeta, ParamKind};
use crate::device_print::{self, What};
use crate::ir::function::PROGRAM_NUMBERS;
use crate::ir::map_recipe::{HostNumber, MAP_ALIGN, MAP_BYTES, MapRecipe};

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

/// A parameter that the launcher makes of others.
fn map_of(index: usize, recipe: &MapRecipe) -> Value {
    let texts = |numbers: &[HostNumber]| -> Vec<String> {
        numbers.iter().map(HostNumber::to_string).collect()
    };
    let mut map = json!({
        "name": format!("map{index}"),
        "kind": "tensormap",
        "bytes": MAP_BYTES,
        "align": MAP_ALIGN,
        "recipe": {
            "base": recipe.base,
            "offset": recipe.offset.to_string(),
            "element": recipe.elem.name(),
            "extents": texts(&recipe.extents),
            "strides": texts(&recipe.strides),
            "box": recipe.tile,
            "swizzle": recipe.swizzle,
            "l2_promotion": 128,
            "fill": if recipe.nan { "nan" } else { "zero" },
        },
        "conditions": [recipe.condition.to_string()],
    });
    if !recipe.parts.is_empty() {
        map["recipe"]["parts"] = json!(texts(&recipe.parts));
    }
    map
}

/// The description of a kernel. `num_stages` is the most that a loop asks for or is asked for, as far as shared memory has room,
/// 1 if none is; `constants` are parameters that have become constants, with their values.
///
/// Of a kernel that takes tensor maps it is version 2: their parameters have the kind `tensormap`, with numbers by the
/// parameters' places (`p3`), the extents of the grid, the recipe's `parts` (`n0`, where it has some; each is made of earlier ones) and
/// operations on them, from the outermost dimension on, extents and strides in
/// elements. Where it says `persistent`, a launch of a grid of programs has as many CTAs as the device executes at a time, in one
/// dimension and no more than there are programs, and parameters of the kind `programs` are the grid's extents; from 2^30 programs
/// on the fallback does the work. `fallback` describes the kernel to launch where a condition is 0, a number cannot be computed or the driver refuses
/// a map, and says which file has its PTX.
pub fn json(
    meta: &KernelMeta,
    num_stages: u32,
    constants: &[(String, String)],
    fallback: Option<(&KernelMeta, &str)>,
) -> String {
    let value = value(meta, num_stages, constants, fallback);
    format!("{value:#}\n")
}

fn value(
    meta: &KernelMeta,
    num_stages: u32,
    constants: &[(String, String)],
    fallback: Option<(&KernelMeta, &str)>,
) -> Value {
    let described: serde_json::Map<String, Value> = constants
        .iter()
        .map(|(name, value)| (name.clone(), Value::String(value.clone())))
        .collect();
    let programs = (0..PROGRAM_NUMBERS)
        .filter(|_| meta.persistent)
        .map(|axis| json!({"name": format!("programs{axis}"), "kind": "programs", "axis": axis, "type": "i32", "bytes": 4}));
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
        .chain(programs)
        .chain(
            meta.maps
                .iter()
                .enumerate()
                .map(|(i, recipe)| map_of(i, recipe)),
        )
        .collect();
    let mut value = json!({
        "name": meta.name,
        "target": meta.target.to_string(),
        "ptx_version": meta.ptx_version.to_string(),
        "num_warps": meta.num_warps,
        "num_stages": num_stages,
        "block": meta.block(),
        "cluster": [1, 1, 1],
        "shared": meta.shared,
        "params": params,
        "constants": described,
    });
    if !meta.sites.is_empty() {
        value["log"] = log_of(meta);
    }
    if meta.persistent {
        value["persistent"] = json!(true);
    }
    if !meta.maps.is_empty() {
        value["version"] = json!(2);
    }
    if let Some((plain, ptx)) = fallback {
        let mut beside = self::value(plain, num_stages, constants, None);
        beside["ptx"] = json!(ptx);
        value["fallback"] = beside;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::ParamMeta;
    use crate::settings::{PtxVersion, Target};

    #[test]
    fn maps_make_it_version_2_with_a_fallback() {
        let param = |name: &str, kind, ty, bytes| ParamMeta {
            name: name.to_owned(),
            kind,
            ty,
            bytes,
        };
        let plain = KernelMeta {
            name: "k".to_owned(),
            target: Target::SM_90A,
            ptx_version: PtxVersion { major: 8, minor: 0 },
            num_warps: 4,
            shared: 1024,
            params: vec![
                param("x", ParamKind::Pointer, "f16", 8),
                param("n", ParamKind::Scalar, "i32", 4),
            ],
            persistent: false,
            maps: Vec::new(),
            sites: Vec::new(),
        };
        let recipe = "{base=p0, offset=0, elem=f16, extents=[p1, 64], strides=[n1], box=[64, 64], swizzle=128, nan, parts=[add(p1, 8), mul(n0, 2)], if=le(1, p1)}";
        let mapped = KernelMeta {
            maps: vec![recipe.parse().expect("a recipe")],
            ..plain.clone()
        };
        let bare: Value = serde_json::from_str(&json(&plain, 1, &[], None)).expect("JSON");
        assert_eq!(
            (&bare["version"], &bare["fallback"]),
            (&Value::Null, &Value::Null)
        );
        let text = json(&mapped, 1, &[], Some((&plain, "k.plain.ptx")));
        let whole: Value = serde_json::from_str(&text).expect("JSON");
        let map = json!({
            "name": "map0", "kind": "tensormap", "bytes": 128, "align": 64,
            "recipe": {
                "base": 0, "offset": "0", "element": "f16", "extents": ["p1", "64"], "strides": ["n1"],
                "box": [64, 64], "swizzle": 128, "l2_promotion": 128, "fill": "nan", "parts": ["add(p1, 8)", "mul(n0, 2)"],
            },
            "conditions": ["le(1, p1)"],
        });
        assert_eq!(whole["version"], 2);
        assert_eq!(whole["params"][2], map);
        let mut fallback = whole["fallback"].clone();
        assert_eq!(fallback["ptx"], "k.plain.ptx");
        fallback.as_object_mut().expect("an object").remove("ptx");
        assert_eq!(fallback, bare);
    }
}
