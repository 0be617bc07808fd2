//! What becomes of a kernel whose schedule with roles is found to be one that can hang, and of one whose threads need too many registers.

use super::fit::run_watched;
use super::{Output, Snapshot, Watch, checked_rings};
use crate::error::CompileError;
use crate::ir::function::TileFunction;
use crate::settings::{Options, Policy, Target};
use crate::text::parse::parse_tile;
use crate::verify::{VerifierErrors, verify_roles};

/// A product whose boxes a producer brings.
const PRODUCT: &str = r#"kernel @roles(v0 "a": ptr<f16> {divisible = 16}, v1 "b": ptr<f16> {divisible = 16}, v2 "c": ptr<f32> {divisible = 16}, v3 "k": i32) warps(4) {
block0:
    v4 = const {value = true} : i1
    v5 = const {value = 256} : i64
    v6 = const {value = 64} : i64
    v7 = const {value = 8} : i64
    v8 = const {value = 1} : i64
    v9 = sext v3 : i64
    v10 = smax v9, v8 : i64
    v11 = tensor_map v0, v4, v6, v10, v5 {values = [64, 32]} : map<f16>
    v12 = tensor_map v1, v4, v7, v10, v5 {values = [8, 32]} : map<f16>
    v13 = const {value = 0} : i32
    v14 = const {value = 32} : i32
    v15 = const {value = 0.0} : f32[64,8]
    v16 = for v13, v3, v14, v15 {stages = 3} : f32[64,8] {
    block1(v17: i32, v18: f32[64,8]):
        v19 = tensor_load v11, v13, v17 : f16[64,32]
        v20 = tensor_load v12, v13, v17 : f16[8,32]
        v21 = permute v20 {dims = [1, 0]} : f16[32,8]
        v22 = dot v19, v21, v18 {precision = ieee} : f32[64,8]
        yield v22
    }
    v23 = arange {start = 0} : i32[512]
    v24 = reshape v23 : i32[64,8]
    v25 = splat v2 : ptr<f32>[64,8]
    v26 = addptr v25, v24 : ptr<f32>[64,8]
    store v26, v16
    return
}"#;

/// Finds in every kernel with a producer what is wrong with one that hangs.
fn hangs(func: &TileFunction, _: bool) -> Result<(), VerifierErrors> {
    let spanned = include_str!("../verify/rings/scheduled/spanned.tir");
    let spanned = parse_tile(spanned).unwrap_or_else(|errors| panic!("{errors:#?}"));
    match func.producer() {
        Some(_) => verify_roles(&spanned),
        None => Ok(()),
    }
}

/// A kernel compiled under a check of its rings, and how often a pass left one with roles.
fn compiled(
    options: &Options,
    rings: fn(&TileFunction, bool) -> Result<(), VerifierErrors>,
) -> (Result<Output, CompileError>, usize) {
    let mut formed = 0;
    let mut show = |pass: &str, _: Snapshot<'_>| formed += usize::from(pass == "form_roles");
    let mut watch = Watch {
        show: &mut show,
        verifies: options.verify_passes,
        rings,
    };
    let func = parse_tile(PRODUCT).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let output = run_watched(&func, Target::SM_90A, options, &mut watch);
    (output, formed)
}

#[test]
fn a_kernel_that_could_hang_has_no_roles() {
    let with = |roles: Policy, verify_passes: bool| Options {
        roles,
        verify_passes,
        persistent: Policy::Never,
        ..Options::DEFAULT
    };
    let ptx = |options: &Options, rings| {
        let (output, formed) = compiled(options, rings);
        let output = output.unwrap_or_else(|error| panic!("{error}"));
        (output.ptx, formed)
    };
    let (roles, formed) = ptx(&with(Policy::Always, false), checked_rings);
    assert_eq!(formed, 1, "{roles}");
    let (without, formed) = ptx(&with(Policy::Never, false), checked_rings);
    assert_eq!(formed, 0);
    assert_ne!(roles, without);
    // They are formed, refused, and not formed again.
    let (after, formed) = ptx(&with(Policy::Always, false), hangs);
    assert_eq!((formed, after), (1, without));
    // Where passes are verified it is told.
    let (output, _) = compiled(&with(Policy::Always, true), hangs);
    match output.map(|output| output.ptx) {
        Err(CompileError::Internal { pass, message }) => {
            assert_eq!(pass, "schedule");
            assert!(message.contains("V26"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

/// The deviations of 16,384 numbers from their mean: a thread of one warp would hold 512 of them. With what stands behind the number of
/// warps, and at the end of the kernel.
fn deviations(of_warps: &str, end: &str) -> TileFunction {
    let text = format!(
        r#"kernel @deviations(v0 "x": ptr<f32> {{divisible = 16}}, v1 "y": ptr<f32> {{divisible = 16}}, v2 "flag": ptr<i32> {{divisible = 4}}) warps(1){of_warps} {{
block0:
    v10 = arange {{start = 0}} : i32[16384]
    v11 = splat v0 : ptr<f32>[16384]
    v12 = addptr v11, v10 : ptr<f32>[16384]
    v13 = load v12 : f32[16384]
    v14 = reduce v13 {{axis = 0}} : f32 {{
    block1(v15: f32, v16: f32):
        v17 = fadd v15, v16 : f32
        yield v17
    }}
    v18 = const {{value = 0.00006103515625}} : f32
    v19 = fmul v14, v18 : f32
    v20 = splat v19 : f32[16384]
    v21 = fsub v13, v20 : f32[16384]
    v22 = splat v1 : ptr<f32>[16384]
    v23 = addptr v22, v10 : ptr<f32>[16384]
    store v23, v21
{end}    return
}}"#
    );
    parse_tile(&text).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

#[test]
fn threads_that_lack_many_registers_are_dealt_to_more_warps() {
    let warps = |func: &TileFunction, options: &Options| {
        let output = super::run(func, Target::SM_80, options, &mut |_, _| {});
        let output = output.unwrap_or_else(|error| panic!("{error}"));
        output.thread.cta_warps()
    };
    let default = &Options::DEFAULT;
    // With two warps 256 numbers of 255 registers, with four 128.
    assert_eq!(warps(&deviations("", ""), default), 4);
    assert_eq!(warps(&deviations(" fixed", ""), default), 1);
    let bounded = Options {
        max_registers: Some(255),
        ..Options::DEFAULT
    };
    let fixed = Options {
        fixed_warps: true,
        ..Options::DEFAULT
    };
    assert_eq!(warps(&deviations("", ""), &bounded), 1);
    assert_eq!(warps(&deviations("", ""), &fixed), 1);
    // What waits for other programs may need many of them to be resident.
    let wait = |of: &str, read: &str| {
        format!(
            "    v29 = const {{value = 0}} : i32
    v30 = while v29 : i32 {{
    block2(v31: i32):
        v32 = load v2{of} : i32
        v33 = icmp {read}, v29 {{ipred = eq}} : i1
        condition v33, v32
    }} {{
    block3(v34: i32):
        yield v34
    }}
"
        )
    };
    for (of, read, expected) in [
        (" {volatile}", "v32", 1),
        ("", "v32", 1),
        ("", "v31", 1),
        ("", "v29", 4),
    ] {
        let func = deviations("", &wait(of, read));
        assert_eq!(warps(&func, default), expected, "{of} {read}");
    }
    // What is read comes to the condition from the iteration before.
    let handed_on = "    v29 = const {value = 0} : i32
    v30 = while v29 : i32 {
    block2(v31: i32):
        v33 = icmp v31, v29 {ipred = eq} : i1
        condition v33, v31
    } {
    block3(v34: i32):
        v35 = load v2 : i32
        yield v35
    }
";
    assert_eq!(warps(&deviations("", handed_on), default), 1);
    // PTX of the author's may know which thread it is.
    for (ptx, flags, expected) in [
        ("mov.u32 $0, %tid.x;", ", pure", 1),
        ("bar.sync 1, 32; mov.u32 $0, 1;", "", 1),
        ("mov.u32 $0, 1;", ", pure", 4),
    ] {
        let text = format!(
            "    v29 = inline_ptx {{ptx = \"{ptx}\", constraints = \"=r\", pack = 1{flags}}} : i32\n    store v2, v29\n"
        );
        assert_eq!(warps(&deviations("", &text), default), expected, "{ptx}");
    }
}
