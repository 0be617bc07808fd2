//! One instruction at a time: hand-computed results of each family.

use tilelift::emu::Module;

use crate::hardware::run_row;
use crate::rows::{Row, module};

/// Checks single results: row, operands, expected.
fn check(cases: &[(&str, &[u64], u64)]) {
    let rows: Vec<Row> = cases.iter().map(|(row, ..)| Row::parse(row)).collect();
    let text = module(&rows);
    let parsed = match Module::parse(&text) {
        Ok(parsed) => parsed,
        Err(error) => panic!(
            "{error}: {}",
            text.lines()
                .nth(error.line as usize - 1)
                .unwrap_or_default()
        ),
    };
    for (index, (row, operands, want)) in cases.iter().enumerate() {
        let got = run_row(&parsed, index, &rows[index], &[operands.to_vec()])[0][0];
        assert_eq!(
            got, *want,
            "{row} of {operands:x?}: {got:#x}, {want:#x} expected"
        );
    }
}

const fn f(x: f32) -> u64 {
    x.to_bits() as u64
}

const fn e(x: f64) -> u64 {
    x.to_bits()
}

const MINUS: u64 = 0xffff_ffff;

#[test]
fn integer_arithmetic() {
    check(&[
        ("add.s32 r r r", &[MINUS, 2], 1),
        ("add.sat.s32 r r r", &[0x7fff_ffff, 1], 0x7fff_ffff),
        ("sub.sat.s32 r r r", &[0x8000_0000, 1], 0x8000_0000),
        ("sub.u16 w w w", &[1, 2], 0xffff),
        ("add.u64 d d d", &[u64::MAX, 3], 2),
        ("mul.lo.s32 r r r", &[MINUS, 7], 0xffff_fff9),
        ("mul.hi.s32 r r r", &[MINUS, 7], MINUS),
        ("mul.hi.u32 r r r", &[MINUS, 7], 6),
        ("mul.hi.u64 d d d", &[u64::MAX, u64::MAX], u64::MAX - 1),
        ("mul.hi.s64 d d d", &[u64::MAX, 2], u64::MAX),
        ("mul.wide.s32 d r r", &[MINUS, 3], (-3_i64) as u64),
        ("mul.wide.u32 d r r", &[MINUS, 3], 0x2_ffff_fffd),
        ("mul.wide.s16 r w w", &[0xffff, 3], 0xffff_fffd),
        ("mad.lo.s32 r r r r", &[3, 4, MINUS], 11),
        ("mad.hi.u32 r r r r", &[0x8000_0000, 4, 5], 7),
        ("mad.wide.s32 d r r d", &[MINUS, 4, 10], 6),
        ("div.s32 r r r", &[0xffff_fff9, 2], 0xffff_fffd),
        ("div.u32 r r r", &[0xffff_fff9, 2], 0x7fff_fffc),
        ("rem.s32 r r r", &[0xffff_fff9, 2], MINUS),
        ("rem.u64 d d d", &[17, 5], 2),
        ("rem.u32 r r r", &[17, 0], MINUS),
        ("abs.s32 r r", &[0xffff_fffb], 5),
        ("neg.s16 w w", &[5], 0xfffb),
        ("min.s32 r r r", &[MINUS, 1], MINUS),
        ("min.u32 r r r", &[MINUS, 1], 1),
        ("max.s64 d d d", &[u64::MAX, 1], 1),
        ("sad.s32 r r r r", &[MINUS, 4, 10], 15),
        ("mul24.lo.s32 r r r", &[0xff_ffff, 5], 0xffff_fffb),
        ("dp4a.s32.s32 r r r r", &[0xff01_0203, 0x0101_0101, 10], 15),
        (
            "dp2a.lo.u32.u32 r r r r",
            &[0x0002_0003, 0x0000_0405, 1],
            1 + 3 * 5 + 2 * 4,
        ),
        ("add.u16x2 r r r", &[0xffff_0001, 0x0001_ffff], 0),
        ("cnot.b32 r r", &[0], 1),
    ]);
}

#[test]
fn bits_and_shifts() {
    check(&[
        ("and.b32 r r r", &[12, 10], 8),
        ("or.b64 d d d", &[1 << 40, 1], 1 << 40 | 1),
        ("xor.b16 w w w", &[0xff, 0x0f], 0xf0),
        ("not.b32 r r", &[0xf], 0xffff_fff0),
        ("and.pred p p p", &[1, 0], 0),
        ("or.pred p p !p", &[0, 0], 1),
        ("xor.pred p p p", &[1, 1], 0),
        ("not.pred p p", &[0], 1),
        ("shl.b32 r r r", &[3, 4], 48),
        ("shl.b32 r r r", &[3, 32], 0),
        ("shl.b64 d d r", &[3, 63], 1 << 63),
        ("shr.u32 r r r", &[MINUS, 31], 1),
        ("shr.s32 r r r", &[0x8000_0000, 40], MINUS),
        ("shr.s64 d d r", &[1 << 63, 64], u64::MAX),
        ("shr.u64 d d r", &[1 << 63, 64], 0),
        ("shr.s16 w w r", &[0x8000, 15], 0xffff),
        (
            "shf.l.wrap.b32 r r r r",
            &[0x8000_0001, 0x1234_5678, 4],
            0x2345_6788,
        ),
        (
            "shf.r.clamp.b32 r r r r",
            &[0x8000_0001, 0x1234_5678, 33],
            0x1234_5678,
        ),
        (
            "shf.r.wrap.b32 r r r r",
            &[0x8000_0001, 0x1234_5678, 36],
            0x8800_0000,
        ),
        (
            "shf.l.clamp.b32 r r r r",
            &[0x8000_0001, 0x1234_5678, 32],
            0x8000_0001,
        ),
        ("lop3.b32 r r r r 0xe8", &[0b1100, 0b1010, 0b0110], 0b1110),
        ("bfe.u32 r r r r", &[0xabcd_1234, 8, 12], 0xd12),
        ("bfe.s32 r r r r", &[0x0000_0f00, 8, 4], MINUS),
        ("bfe.s32 r r r r", &[0x8000_0000, 28, 10], 0xffff_fff8),
        ("bfe.u64 d d r r", &[u64::MAX, 60, 200], 15),
        ("bfi.b32 r r r r r", &[0xff, 0, 8, 4], 0xf00),
        ("bfi.b64 d d d r r", &[u64::MAX, 0, 60, 64], 15 << 60),
        ("bfind.u32 r r", &[0x0100], 8),
        ("bfind.s32 r r", &[MINUS], MINUS),
        ("bfind.shiftamt.u32 r r", &[0x0100], 23),
        ("clz.b32 r r", &[1], 31),
        ("clz.b64 r d", &[0], 64),
        ("popc.b64 r d", &[u64::MAX], 64),
        ("brev.b32 r r", &[1], 0x8000_0000),
        ("brev.b64 d d", &[1], 1 << 63),
        ("bmsk.clamp.b32 r r r", &[4, 8], 0xff0),
        (
            "prmt.b32 r r r r",
            &[0x3322_1100, 0x7766_5544, 0x7410],
            0x7744_1100,
        ),
        ("prmt.b32 r r r r", &[0x8000_0000, 0, 0x000b], 0xff),
        ("prmt.b32.rc16 r r r r", &[0x3322_1100, 0, 1], 0x3322_3322),
        (
            "prmt.b32.b4e r r r r",
            &[0x3322_1100, 0x7766_5544, 1],
            0x6677_0011,
        ),
    ]);
}

#[test]
fn moves_and_selections() {
    check(&[
        ("mov.b32 r {w,w}", &[0x1234, 0xabcd], 0xabcd_1234),
        ("mov.b64 d {r,r}", &[5, 6], 6 << 32 | 5),
        ("mov.b64 d {w,w,w,w}", &[1, 2, 3, 4], 0x0004_0003_0002_0001),
        ("mov.b32 r 0f3F800000", &[], 0x3f80_0000),
        ("mov.b32 r -0f3F800000", &[], 0xbf80_0000),
        ("mov.b32 r -0fBF800000", &[], 0x3f80_0000),
        ("mov.f32 r -1.5", &[], f(-1.5)),
        ("mov.b16 w -1024", &[], 0xfc00),
        ("mov.u32 r WARP_SZ", &[], 32),
        ("mov.pred p !p", &[0], 1),
        ("selp.b32 r r r p", &[5, 6, 1], 5),
        ("selp.f64 d d d !p", &[5, 6, 1], 6),
        ("slct.b32.s32 r r r r", &[5, 6, MINUS], 6),
        ("slct.u64.f32 d d d f", &[5, 6, f(-0.0)], 5),
        ("set.lt.u32.s32 r r r", &[MINUS, 0], MINUS),
        ("set.gt.f32.f32 r f f", &[f(2.0), f(1.0)], f(1.0)),
        ("cvta.to.global.u64 d d", &[77], 77),
    ]);
}

#[test]
fn comparisons() {
    let nan = f(f32::NAN);
    check(&[
        ("testp.number.f32 p f", &[f(1e-40)], 1),
        ("testp.number.f32 p f", &[f(f32::NAN)], 0),
        ("testp.number.f64 p e", &[e(f64::INFINITY)], 1),
        ("setp.lt.s32 p r r", &[MINUS, 0], 1),
        ("setp.lt.u32 p r r", &[MINUS, 0], 0),
        ("setp.hi.u32 p r r", &[MINUS, 0], 1),
        ("setp.ls.u64 p d d", &[3, 3], 1),
        ("setp.eq.b16 p w w", &[3, 3], 1),
        ("setp.lt.and.s32 p r r p", &[0, 1, 0], 0),
        ("setp.lt.or.s32 p r r p", &[2, 1, 1], 1),
        ("setp.lt.xor.s32 p r r !p", &[0, 1, 1], 1),
        ("setp.eq.f32 p f f", &[nan, nan], 0),
        ("setp.ne.f32 p f f", &[nan, f(1.0)], 0),
        ("setp.neu.f32 p f f", &[nan, f(1.0)], 1),
        ("setp.ltu.f32 p f f", &[f(2.0), f(1.0)], 0),
        ("setp.num.f32 p f f", &[f(2.0), f(1.0)], 1),
        ("setp.nan.f64 p d d", &[e(f64::NAN), 0], 1),
        ("setp.eq.f32 p f f", &[f(0.0), f(-0.0)], 1),
        ("setp.gt.ftz.f32 p f f", &[1, 0], 0),
        ("setp.gt.f32 p f f", &[1, 0], 1),
        ("setp.ge.f16 p h h", &[0x3c00, 0xbc00], 1),
        ("setp.lt.bf16 p g g", &[0x3f80, 0x4000], 1),
        ("setp.lt.f16x2 p|p H H", &[0x3c00_4000, 0x4000_3c00], 0),
        ("testp.subnormal.f32 p f", &[1], 1),
        ("testp.notanumber.f64 p d", &[e(f64::NAN)], 1),
        ("testp.infinite.f32 p f", &[0x7f80_0000], 1),
        ("testp.normal.f32 p f", &[0x8000_0000], 1),
        ("testp.normal.f32 p f", &[1], 0),
    ]);
}

#[test]
fn single_and_double_floats() {
    let nan = f(f32::NAN);
    check(&[
        // Of f64 the upper half counts, and subnormal numbers are zero.
        ("rcp.approx.ftz.f64 e e", &[e(3.0)], 0x3fd5_5555_0000_0000),
        (
            "rcp.approx.ftz.f64 e e",
            &[e(-1e-310)],
            e(f64::NEG_INFINITY),
        ),
        ("rcp.approx.ftz.f64 e e", &[e(-1.7e308)], e(-0.0)),
        ("rsqrt.approx.ftz.f64 e e", &[e(2.0)], 0x3fe6_a09e_0000_0000),
        ("rsqrt.approx.ftz.f64 e e", &[e(1e-310)], e(f64::INFINITY)),
        (
            "rsqrt.approx.ftz.f64 e e",
            &[e(-4.0)],
            0x7fff_ffff_0000_0000,
        ),
        ("add.f32 f f f", &[f(1.5), f(2.0)], f(3.5)),
        (
            "add.rz.f32 f f f",
            &[f(1.0), f(2f32.powi(-24) * 1.5)],
            f(1.0),
        ),
        (
            "add.rp.f32 f f f",
            &[f(1.0), f(2f32.powi(-30))],
            f(1.0f32.next_up()),
        ),
        ("add.ftz.f32 f f f", &[1, 1], 0),
        ("add.sat.f32 f f f", &[f(0.75), f(2.0)], f(1.0)),
        ("add.f32 f f f", &[0x7f80_0000, 0xff80_0000], 0x7fff_ffff),
        ("sub.f32 f f f", &[nan, f(1.0)], 0x7fff_ffff),
        ("mul.f32 f f 0f40000000", &[f(3.0)], f(6.0)),
        ("fma.rn.f32 f f f f", &[f(3.0), f(4.0), f(5.0)], f(17.0)),
        ("div.full.f32 f f f", &[f(1.0), f(3.0)], f(1.0 / 3.0)),
        ("div.approx.f32 f f f", &[f(1.0), f(2e38)], 0),
        ("div.rn.f32 f f f", &[f(1.0), 0], 0x7f80_0000),
        ("rcp.rn.f32 f f", &[f(4.0)], f(0.25)),
        ("rcp.approx.ftz.f32 f f", &[f(4.0)], f(0.25)),
        ("sqrt.rn.f32 f f", &[f(2.0)], f(2f32.sqrt())),
        ("rsqrt.approx.f32 f f", &[f(16.0)], f(0.25)),
        ("ex2.approx.ftz.f32 f f", &[f(-3.0)], f(0.125)),
        ("lg2.approx.f32 f f", &[f(8.0)], f(3.0)),
        ("tanh.approx.f32 f f", &[f(30.0)], f(1.0)),
        ("min.f32 f f f", &[nan, f(1.0)], f(1.0)),
        ("max.NaN.f32 f f f", &[nan, f(1.0)], 0x7fff_ffff),
        ("max.xorsign.abs.f32 f f f", &[f(-3.0), f(2.0)], f(-3.0)),
        ("neg.f32 f f", &[f(2.0)], f(-2.0)),
        ("neg.f32 f f", &[0x7fc0_0001], 0x7fff_ffff),
        ("abs.ftz.f32 f f", &[0x8000_0001], 0),
        ("copysign.f32 f f f", &[f(-1.0), f(5.0)], f(-5.0)),
        (
            "fma.rn.f32x2 d d d d",
            &[f(2.0) << 32 | f(3.0), f(2.0) << 32 | f(4.0), f(1.0)],
            f(4.0) << 32 | f(13.0),
        ),
        ("add.f64 e e e", &[e(1.5), e(2.0)], e(3.5)),
        ("fma.rn.f64 e e e e", &[e(3.0), e(4.0), e(5.0)], e(17.0)),
        ("div.rn.f64 e e e", &[e(1.0), e(3.0)], e(1.0 / 3.0)),
        ("max.f64 e e e", &[e(-0.0), e(0.0)], e(0.0)),
        ("add.f64 e e 0d3FF0000000000000", &[e(1.5)], e(2.5)),
    ]);
}

#[test]
fn half_floats() {
    check(&[
        ("add.f16 h h h", &[0x3c00, 0x4000], 0x4200),
        ("sub.f16 h h h", &[0x3c00, 0x4000], 0xbc00),
        ("mul.f16x2 H H H", &[0x3c00_4000, 0x4000_4000], 0x4000_4400),
        (
            "fma.rn.f16x2 H H H H",
            &[0x3c00_4000, 0x4000_4000, 0x3c00_3c00],
            0x4200_4500,
        ),
        ("fma.rn.relu.f16 h h h h", &[0xbc00, 0x3c00, 0], 0),
        ("add.sat.f16 h h h", &[0x3c00, 0x3c00], 0x3c00),
        ("add.bf16 g g g", &[0x3f80, 0x4000], 0x4040),
        (
            "fma.rn.bf16x2 G G G G",
            &[0x3f80_4000, 0x4000_4000, 0x3f80_3f80],
            0x4040_40a0,
        ),
        ("max.f16 h h h", &[0x7e00, 0x3c00], 0x3c00),
        ("min.NaN.bf16 g g g", &[0x7fc0, 0x3f80], 0x7fff),
        ("neg.bf16x2 G G", &[0x3f80_0000], 0xbf80_8000),
        ("abs.f16 h h", &[0xbc00], 0x3c00),
        ("abs.bf16 g g", &[0xffc1], 0x7fff),
        // The sign of a NaN counts.
        ("max.xorsign.abs.f16 h h h", &[0xfe76, 0xe3c4], 0x63c4),
        ("ex2.approx.f16 h h", &[0x4200], 0x4800),
        ("tanh.approx.bf16 g g", &[0], 0),
    ]);
}

#[test]
fn conversions() {
    check(&[
        ("cvt.u64.u32 d r", &[MINUS], MINUS),
        ("cvt.s64.s32 d r", &[MINUS], u64::MAX),
        ("cvt.u16.u32 w r", &[0x12345], 0x2345),
        ("cvt.s32.s8 r b", &[0x80], 0xffff_ff80),
        ("cvt.u8.u32 r r", &[0x1ff], 0xff),
        ("cvt.sat.s8.s32 r r", &[300], 127),
        ("cvt.sat.u32.s32 r r", &[MINUS], 0),
        ("cvt.rn.f32.s32 f r", &[MINUS], f(-1.0)),
        ("cvt.rz.f32.u32 f r", &[0x01ff_ffff], f(33_554_430.0)),
        (
            "cvt.rn.f64.u64 e d",
            &[u64::MAX],
            e(1.844_674_407_370_955_2e19),
        ),
        ("cvt.rn.f16.s32 h r", &[MINUS], 0xbc00),
        ("cvt.rzi.s32.f32 r f", &[f(-2.7)], 0xffff_fffe),
        ("cvt.rni.s32.f32 r f", &[f(2.5)], 2),
        ("cvt.rpi.s32.f32 r f", &[f(2.1)], 3),
        ("cvt.rzi.s32.f32 r f", &[f(f32::NAN)], 0),
        ("cvt.rzi.u64.f32 d f", &[f(f32::NAN)], 1 << 63),
        ("cvt.rzi.s32.f64 r e", &[e(1e300)], 0x7fff_ffff),
        ("cvt.rzi.u32.f32 r f", &[f(-5.0)], 0),
        ("cvt.rzi.s16.f16 w h", &[0x4500], 5),
        ("cvt.rni.f32.f32 f f", &[f(2.5)], f(2.0)),
        ("cvt.rmi.f32.f32 f f", &[f(-2.5)], f(-3.0)),
        ("cvt.sat.f32.f32 f f", &[f(2.5)], f(1.0)),
        ("cvt.f32.f16 f h", &[0x3c00], f(1.0)),
        ("cvt.rn.f16.f32 h f", &[f(65520.0)], 0x7c00),
        ("cvt.rz.f16.f32 h f", &[f(65535.0)], 0x7bff),
        ("cvt.rn.bf16.f32 g f", &[0x3f80_8000], 0x3f80),
        ("cvt.rn.relu.bf16.f32 g f", &[f(-1.0)], 0),
        ("cvt.rn.relu.f16.f32 h f", &[f(-0.0)], 0),
        ("cvt.rn.f16.f32 h f", &[f(f32::NAN)], 0x7fff),
        ("cvt.f32.bf16 f g", &[0xbf80], f(-1.0)),
        ("cvt.f32.bf16 f g", &[0xffc1], 0xffc1_0000),
        ("cvt.f64.f32 e f", &[f(0.1)], e(0.1_f32 as f64)),
        ("cvt.rn.f32.f64 f e", &[e(0.1)], f(0.1)),
        ("cvt.rn.ftz.f32.f64 f e", &[e(1e-40)], 0),
        ("cvt.rn.f16x2.f32 H f f", &[f(1.0), f(2.0)], 0x3c00_4000),
        ("cvt.rn.bf16x2.f32 G f f", &[f(1.0), f(2.0)], 0x3f80_4000),
        ("cvt.rna.tf32.f32 r f", &[0x3f80_1000], 0x3f80_2000),
        (
            "cvt.rn.satfinite.e4m3x2.f32 w f f",
            &[f(1000.0), f(-1.0)],
            0x7eb8,
        ),
        ("cvt.rn.f16x2.e5m2x2 H w", &[0x3cbc], 0x3c00_bc00),
    ]);
}

#[test]
fn whole_warps() {
    let rows = [
        "shfl.sync.bfly.b32 r|p r 1 0x1f -1",
        "shfl.sync.up.b32 r|p r 2 0x0 -1",
        "shfl.sync.down.b32 r|p r 3 0x1f -1",
        "shfl.sync.idx.b32 r|p r 5 0x181f -1",
        "vote.sync.ballot.b32 r p -1",
        "redux.sync.add.u32 r r -1",
        "redux.sync.max.s32 r r -1",
        "match.any.sync.b32 r r -1",
        "match.all.sync.b32 r|p r -1",
        "activemask.b32 r",
        "elect.sync r|p -1",
        "redux.sync.max.abs.f32 r r -1",
    ]
    .map(Row::parse);
    let parsed = Module::parse(&module(&rows)).expect("valid");
    // Lane i holds i - 4, or whether i is odd.
    let results = |index: usize| {
        let row: &Row = &rows[index];
        let lane = |lane: u64| vec![lane.wrapping_sub(4) & MINUS; row.inputs().len()];
        let lanes: Vec<Vec<u64>> = (0..32).map(lane).collect();
        run_row(&parsed, index, row, &lanes)
    };
    let value = |lane: u64| lane.wrapping_sub(4) & MINUS;
    for lane in 0..32_u64 {
        let at = lane as usize;
        assert_eq!(results(0)[at], [value(lane ^ 1), 1]);
        assert_eq!(
            results(1)[at],
            if lane >= 2 {
                [value(lane - 2), 1]
            } else {
                [value(lane), 0]
            }
        );
        assert_eq!(
            results(2)[at],
            if lane < 29 {
                [value(lane + 3), 1]
            } else {
                [value(lane), 0]
            }
        );
        // Segments of eight lanes: lane 5 of each.
        assert_eq!(results(3)[at], [value(lane & !7 | 5), 1]);
        // All but lane 4 hold something other than zero.
        assert_eq!(results(4)[at][0], 0xffff_ffef);
        assert_eq!(results(5)[at][0], (31 * 32 / 2 - 4 * 32) & MINUS);
        assert_eq!(results(6)[at][0], 27);
        assert_eq!(results(7)[at][0], 1 << lane);
        assert_eq!(results(8)[at], [0, 0]);
        assert_eq!(results(9)[at][0], MINUS);
        // As floats, all ones is a NaN, and small numbers are subnormals.
        assert_eq!(results(11)[at][0], 27);
        assert_eq!(results(10)[at], [0, u64::from(lane == 0)]);
    }
}
