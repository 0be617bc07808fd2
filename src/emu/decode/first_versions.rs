//! Which target and PTX version an instruction, a target or a version itself needs.
//!
//! The data are this module's own, so that the emulator can find mistakes in the compiler's table of instructions. They
//! were read off `ptxas` 12.8: the least target and version that it takes each form with. Targets below `sm_50` and
//! versions below 6.0 are not told apart.

/// A target as two digits or more, and a version as major and minor.
type Since = (u32, (u32, u32));

/// Mnemonics; modifiers of which one must be there, or none at all; what that needs.
type Row = (&'static [&'static str], &'static [&'static str], Since);

const BF: &[&str] = &["bf16", "bf16x2"];
const HALF: &[&str] = &["f16", "f16x2"];
const PAIRS: &[&str] = &["u16x2", "s16x2"];
const EIGHT: &[&str] = &["e4m3x2", "e5m2x2"];
const EVICT: &[&str] = &[
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
    "L1::no_allocate",
];
const STRONG: &[&str] = &["relaxed", "acquire", "release", "acq_rel"];

const ROWS: &[Row] = &[
    (&["add", "sub", "mul"], BF, (90, (7, 8))),
    (
        &["add", "sub", "mul", "fma", "neg", "abs", "setp", "set"],
        HALF,
        (53, (6, 0)),
    ),
    (&["setp", "set"], BF, (90, (7, 8))),
    (&["abs"], HALF, (53, (6, 5))),
    (&["fma", "neg", "abs"], BF, (80, (7, 0))),
    (&["fma"], &["relu"], (80, (7, 0))),
    (&["min", "max"], BF, (80, (7, 0))),
    (&["min", "max"], HALF, (80, (7, 0))),
    (&["min", "max"], &["NaN"], (80, (7, 0))),
    (&["min", "max"], &["xorsign"], (86, (7, 2))),
    (&["min", "max"], &["relu"], (90, (8, 0))),
    (&["add", "min", "max"], PAIRS, (90, (8, 0))),
    (&["tanh"], &[], (75, (7, 0))),
    (&["tanh", "ex2"], BF, (90, (7, 8))),
    (&["ex2"], HALF, (75, (7, 0))),
    (&["redux"], &[], (80, (7, 0))),
    (&["szext", "bmsk"], &[], (70, (7, 6))),
    (&["cvt"], &["relu", "tf32"], (80, (7, 0))),
    (&["cvt"], EIGHT, (89, (7, 8))),
    (&["cvt"], &["f16x2"], (80, (7, 0))),
    (&["ld", "st"], EVICT, (70, (7, 4))),
    (&["ld"], &["L2::64B", "L2::128B", "L2::256B"], (75, (7, 4))),
    (
        &["ld", "st", "atom", "red"],
        &["L2::cache_hint"],
        (80, (7, 4)),
    ),
    (&["ld", "st", "atom", "red"], STRONG, (70, (6, 0))),
    (
        &["ld", "st", "atom", "red", "fence"],
        &["cluster"],
        (90, (7, 8)),
    ),
    (
        &["createpolicy", "applypriority", "discard"],
        &[],
        (80, (7, 4)),
    ),
    (
        &["prefetch"],
        &["L2::evict_last", "L2::evict_normal"],
        (80, (7, 4)),
    ),
    (&["st", "red"], &["async"], (90, (8, 1))),
    (&["atom", "red"], &["f64"], (60, (6, 0))),
    (&["atom", "red"], &["f16x2"], (60, (6, 2))),
    (&["atom", "red"], &["f16"], (70, (6, 3))),
    (&["atom", "red"], BF, (90, (7, 8))),
    (&["atom", "red"], &["v2", "v4", "v8"], (90, (8, 1))),
    (&["atom"], &["b16"], (70, (6, 3))),
    (&["match"], &[], (70, (6, 0))),
    (&["activemask"], &[], (30, (6, 2))),
    (&["elect"], &[], (90, (8, 0))),
    (&["nanosleep"], &[], (70, (6, 2))),
    (&["griddepcontrol"], &[], (90, (7, 8))),
    (&["fence"], &[], (70, (6, 0))),
    (&["cp"], &[], (80, (7, 0))),
    (&["cp"], &["bulk"], (90, (8, 0))),
    (&["mbarrier"], &[], (80, (7, 0))),
    (&["mbarrier"], &["parity"], (80, (7, 1))),
    (&["mbarrier"], &["expect_tx", "complete_tx"], (90, (8, 0))),
    (&["mbarrier"], &["try_wait"], (90, (7, 8))),
    (&["mbarrier", "cp"], &["shared::cluster"], (90, (8, 0))),
    (&["fence"], &["mbarrier_init", "async"], (90, (8, 0))),
    (&["fence"], &["tensormap::generic"], (90, (8, 3))),
    (&["tensormap"], &[], (90, (8, 3))),
    (&["ldmatrix"], &[], (75, (6, 5))),
    (&["stmatrix"], &[], (90, (7, 8))),
    (&["movmatrix"], &[], (75, (7, 8))),
    (&["mma"], &["m16n8k8", "m8n8k16"], (75, (6, 5))),
    (
        &["mma"],
        &["m16n8k16", "m16n8k4", "m16n8k32", "f64"],
        (80, (7, 0)),
    ),
    (&["mma"], &["m8n8k4"], (70, (6, 4))),
    (&["mma"], &["bf16", "tf32"], (80, (7, 0))),
    (&["mma"], &["e4m3", "e5m2"], (89, (8, 4))),
    (&["wgmma", "setmaxnreg"], &[], (90, (8, 0))),
    (&["mapa", "getctarank"], &[], (90, (7, 8))),
    (&["barrier"], &["cluster"], (90, (7, 8))),
];

/// The target of which alone an instruction is, if it is not one of all later ones.
pub(super) fn architecture(name: &str, target: &str) -> Option<&'static str> {
    let is_specific = target.ends_with(['a', 'f']);
    match name {
        "wgmma" if target != "sm_90a" => Some("sm_90a"),
        "setmaxnreg" | "tensormap" if !is_specific => Some("sm_90a"),
        _ => None,
    }
}

/// What an instruction needs; target 0 if any will do.
pub(super) fn instruction(name: &str, modifiers: &[&str]) -> Since {
    let has = |any: &[&str]| any.iter().any(|one| modifiers.contains(one));
    let mut needs = (0, (1, 0));
    let mut raise = |since: Since| needs = (since.0.max(needs.0), since.1.max(needs.1));
    for (names, any, since) in ROWS {
        if names.contains(&name) && (any.is_empty() || has(any)) {
            raise(*since);
        }
    }
    let place = |one: &str| modifiers.iter().position(|&modifier| modifier == one);
    // Relaxed arrivals and waits; those that only count bytes were so before.
    let counts = matches!(modifiers.first(), Some(&("expect_tx" | "complete_tx")));
    if name == "mbarrier" && has(&["relaxed"]) && !counts {
        raise((90, (8, 6)));
    }
    // Bulk copies into what is named as the CTA's own memory.
    let own = place("shared::cta");
    if name == "cp" && has(&["bulk"]) && own.is_some() && own < place("global") {
        raise((90, (8, 6)));
    }
    let wide = has(&["v8"]) || has(&["v4"]) && has(&["b64", "u64", "s64", "f64"]);
    if matches!(name, "ld" | "st") && wide {
        raise((100, (8, 8)));
    }
    if name == "wgmma" && has(&["s8"]) && has(&["u8"]) {
        raise((90, (8, 4)));
    }
    if name == "mma" && has(&["e4m3", "e5m2"]) && has(&["f16", "m16n8k16"]) {
        raise((89, (8, 7)));
    }
    if name == "cvt" && has(BF) {
        // The first type is that of the result.
        let to = modifiers.iter().find(|&&m| super::Type::parse(m).is_some());
        let to_bf = to.is_some_and(|to| BF.contains(to));
        let single = modifiers.contains(&"f32");
        raise(match (single, to_bf) {
            (true, true) => (80, (7, 0)),
            (true, false) => (80, (7, 1)),
            (false, _) => (90, (7, 8)),
        });
    }
    needs
}

/// Targets and the version that each came with.
const TARGETS: &[(u32, (u32, u32))] = &[
    (50, (4, 0)),
    (52, (4, 1)),
    (53, (4, 2)),
    (60, (5, 0)),
    (61, (5, 0)),
    (62, (5, 0)),
    (70, (6, 0)),
    (72, (6, 1)),
    (75, (6, 3)),
    (80, (7, 0)),
    (86, (7, 1)),
    (87, (7, 4)),
    (89, (7, 8)),
    (90, (7, 8)),
    (100, (8, 6)),
    (101, (8, 6)),
    (103, (8, 8)),
    (110, (9, 0)),
    (120, (8, 7)),
    (121, (8, 8)),
];

/// The number of a target and the version it came with; none if there is no such target.
pub(in crate::emu) fn target(name: &str) -> Option<Since> {
    let number = name.strip_prefix("sm_")?;
    let number = number.strip_suffix(['a', 'f']).unwrap_or(number);
    let number: u32 = number.parse().ok()?;
    TARGETS.iter().find(|row| row.0 == number).copied()
}

/// The last minor version of each major one, from 1.
const LAST_MINOR: [u32; 9] = [5, 3, 2, 3, 1, 5, 8, 8, 2];

/// Whether there is such a version of PTX.
pub(in crate::emu) fn is_version((major, minor): (u32, u32)) -> bool {
    let last = major
        .checked_sub(1)
        .and_then(|i| LAST_MINOR.get(i as usize));
    last.is_some_and(|&last| minor <= last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_need_what_ptxas_asks_for() {
        let rows = [
            ("add.f32", 0, (1, 0)),
            ("add.bf16", 90, (7, 8)),
            ("fma.rn.bf16x2", 80, (7, 0)),
            ("fma.rn.relu.f16", 80, (7, 0)),
            ("max.NaN.f32", 80, (7, 0)),
            ("cvt.rn.bf16.f32", 80, (7, 0)),
            ("cvt.f32.bf16", 80, (7, 1)),
            ("cvt.rn.bf16.s32", 90, (7, 8)),
            ("cvt.rn.bf16x2.f32", 80, (7, 0)),
            ("cvt.rn.f16x2.e4m3x2", 89, (7, 8)),
            ("redux.sync.add.s32", 80, (7, 0)),
            ("tanh.approx.bf16", 90, (7, 8)),
            ("ld.global.L1::evict_last.b32", 70, (7, 4)),
            ("ld.acquire.cluster.global.u32", 90, (7, 8)),
            ("atom.add.noftz.bf16", 90, (7, 8)),
            (
                "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
                70,
                (6, 4),
            ),
            (
                "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
                80,
                (7, 0),
            ),
            (
                "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32",
                89,
                (8, 4),
            ),
            (
                "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16",
                89,
                (8, 7),
            ),
            (
                "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8",
                90,
                (8, 0),
            ),
            (
                "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8",
                90,
                (8, 4),
            ),
            ("mbarrier.init.shared.b64", 80, (7, 0)),
            ("mbarrier.test_wait.parity.shared.b64", 80, (7, 1)),
            ("mbarrier.try_wait.parity.shared::cta.b64", 90, (7, 8)),
            ("mbarrier.arrive.expect_tx.shared::cta.b64", 90, (8, 0)),
            ("mbarrier.expect_tx.relaxed.cta.shared::cta.b64", 90, (8, 0)),
            ("mbarrier.arrive.relaxed.cta.shared::cta.b64", 90, (8, 6)),
            ("cp.async.mbarrier.arrive.noinc.shared.b64", 80, (7, 0)),
            ("cp.async.bulk.commit_group", 90, (8, 0)),
            (
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
                90,
                (8, 0),
            ),
            (
                "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes",
                90,
                (8, 6),
            ),
            ("cp.async.bulk.global.shared::cta.bulk_group", 90, (8, 0)),
            ("fence.proxy.async.shared::cta", 90, (8, 0)),
            ("fence.mbarrier_init.release.cluster", 90, (8, 0)),
            ("fence.proxy.tensormap::generic.release.gpu", 90, (8, 3)),
            ("ld.global.v4.f32", 0, (1, 0)),
            ("ld.global.v8.f32", 100, (8, 8)),
            ("st.global.v4.b64", 100, (8, 8)),
        ];
        for (opcode, sm, version) in rows {
            let mut parts = opcode.split('.');
            let name = parts.next().expect("a name");
            let modifiers: Vec<&str> = parts.collect();
            assert_eq!(instruction(name, &modifiers), (sm, version), "{opcode}");
        }
    }

    #[test]
    fn targets_and_versions_are_those_there_are() {
        assert_eq!(target("sm_90a"), Some((90, (7, 8))));
        for name in ["sm_81", "sm_", "sm_90b", "compute_80", "sm_999999999999"] {
            assert_eq!(target(name), None, "{name}");
        }
        for version in [(6, 0), (7, 8), (8, 8)] {
            assert!(is_version(version), "{version:?}");
        }
        for version in [(0, 0), (0, 9), (6, 6), (7, 9), (99, 0)] {
            assert!(!is_version(version), "{version:?}");
        }
    }
}
