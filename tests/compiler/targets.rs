//! What a target has and another lacks: for each, kernels whose instructions differ, assembled by `ptxas` and run on
//! the emulator with the same results.

use crate::common::on_emu;
use crate::common::ptxas;
use std::collections::BTreeSet;

use crate::common::executor::HostArg;
use half::{bf16, f16};
use tilelift::compile::compile;
use tilelift::ir::attrs::{NanRule, Rounding};
use tilelift::ir::builder::TileBuilder;
use tilelift::ir::entities::Value;
use tilelift::ir::function::TileFunction;
use tilelift::ir::types::{Elem, Scalar, TileType};
use tilelift::linear_layout::shape::Shape;
use tilelift::settings::{Options, Target};

/// Elements of the blocks: two for each lane of one warp, so that there are pairs.
const COUNT: usize = 64;

/// A kernel over blocks of [`COUNT`] elements: `inputs` are loaded, what `body` makes of them is stored.
fn kernel(
    inputs: &[Scalar],
    output: Scalar,
    body: impl FnOnce(&mut TileBuilder, &[Value]) -> Value,
) -> TileFunction {
    let mut b = TileBuilder::new("kernel", 1);
    let block = Shape::new(&[COUNT as u64]).expect("a power of two");
    let mut pointer = |name: String, scalar| {
        let ty = TileType::scalar(Elem::global(scalar));
        b.param_divisible(&name, ty, 16)
    };
    let sources: Vec<Value> = (0..inputs.len())
        .map(|i| pointer(format!("in{i}"), inputs[i]))
        .collect();
    let out = pointer("out".into(), output);
    let range = b.arange(0, TileType::block(Elem::I32, block));
    let loaded: Vec<Value> = sources
        .into_iter()
        .map(|source| {
            let source = b.to_shape(source, block);
            let pointers = b.addptr(source, range);
            b.load(pointers, None, None)
        })
        .collect();
    let result = body(&mut b, &loaded);
    // A scalar goes to the first place.
    let out = if b.ty(result).shape.is_scalar() {
        out
    } else {
        let out = b.to_shape(out, block);
        b.addptr(out, range)
    };
    b.store(out, result, None);
    b.ret();
    b.finish().expect("the kernel is built right")
}

fn block_of(elem: Elem) -> TileType {
    TileType::block(elem, Shape::new(&[COUNT as u64]).expect("a power of two"))
}

/// The instructions of a text, by name with all modifiers.
fn opcodes(ptx: &str) -> BTreeSet<&str> {
    let words = ptx.lines().filter_map(|line| {
        let line = line.trim();
        let line = match line.strip_prefix('@') {
            Some(guarded) => guarded.split_once(' ')?.1,
            None => line,
        };
        let word = line.split([' ', ';']).next()?;
        let starts_low = word.starts_with(|c: char| c.is_ascii_lowercase());
        (starts_low && line.ends_with(';')).then_some(word)
    });
    words.collect()
}

/// What the instructions for the targets from `sm` on, up to the next entry, must and must not be; each name stands for
/// all that begin with it.
struct Expect {
    sm: u32,
    has: &'static [&'static str],
    lacks: &'static [&'static str],
}

const fn from_sm(sm: u32, has: &'static [&'static str], lacks: &'static [&'static str]) -> Expect {
    Expect { sm, has, lacks }
}

/// Compiles for every target, looks at the instructions, assembles, runs, and gives the output to `check`.
fn differ(
    func: &TileFunction,
    args: &[HostArg],
    expects: &[Expect],
    check: impl Fn(&[u8]) -> Result<(), String>,
) {
    let mut fired = BTreeSet::new();
    for target in Target::ALL {
        let expect = expects.iter().rfind(|expect| expect.sm <= target.sm);
        let Expect { sm, has, lacks } = expect.expect("the first entry is for all targets");
        fired.insert(sm);
        let kernel = compile(func, target, &Options::DEFAULT).expect("the kernel compiles");
        let ptx = &kernel.ptx;
        let opcodes = opcodes(ptx);
        let present = |name: &&&str| opcodes.iter().any(|opcode| opcode.starts_with(**name));
        let missing: Vec<&&str> = has.iter().filter(|name| !present(name)).collect();
        assert!(missing.is_empty(), "{target} lacks {missing:?}:\n{ptx}");
        let wrong: Vec<&&str> = lacks.iter().filter(present).collect();
        assert!(wrong.is_empty(), "{target} has {wrong:?}:\n{ptx}");
        assert!(ptx.contains(&format!(".target {target}\n")), "{ptx}");

        if let Some(report) = ptxas::assemble(ptx, &target.to_string()) {
            assert_eq!(report.spilled, 0, "{target}");
        }
        let after = match on_emu::run(&kernel, [1, 1, 1], args) {
            Ok(after) => after,
            Err(error) => panic!("{target}: {error}\n{ptx}"),
        };
        let out = after.last().expect("the output is the last argument");
        if let Err(problem) = check(out.bytes()) {
            panic!("{target}: {problem}\n{ptx}");
        }
    }
    assert_eq!(fired.len(), expects.len(), "an entry is for no target");
}

/// Compares 16-bit floats; any NaN equals any other.
fn same_halves(
    expected: &[u16],
    is_nan: impl Fn(u16) -> bool,
) -> impl Fn(&[u8]) -> Result<(), String> {
    move |bytes| {
        let found = bytes.chunks(2).map(|b| u16::from_le_bytes([b[0], b[1]]));
        for (i, (found, &expected)) in found.zip(expected).enumerate() {
            let same = found == expected || is_nan(found) && is_nan(expected);
            if !same {
                return Err(format!("[{i}] is {found:#06x}, not {expected:#06x}"));
            }
        }
        Ok(())
    }
}

fn bf16_is_nan(bits: u16) -> bool {
    bf16::from_bits(bits).is_nan()
}

fn buffer<const N: usize>(numbers: impl Iterator<Item = [u8; N]>) -> HostArg {
    let bytes: Vec<u8> = numbers.flatten().collect();
    assert_eq!(bytes.len(), N * COUNT);
    HostArg::Buffer(bytes)
}

/// f32 numbers that are hard to round: ties, neighbours of ties, ends of ranges, NaN, and others.
fn hard_numbers() -> Vec<f32> {
    let mut numbers = vec![
        0.0,
        -0.0,
        1.0,
        -2.5,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::from_bits(0xffff_ffff),
        f32::MAX,
        f32::MIN_POSITIVE,
        f32::from_bits(1),
        65504.0,
        65519.99,
        65520.0,
        2f32.powi(-25),
        -(2f32.powi(-25) + 2f32.powi(-40)),
    ];
    // Ties of both formats, to even and to odd, and just beside them.
    for base in [
        0x3f80_8000_u32,
        0x3f81_8000,
        0x3f80_1000,
        0x3f80_3000,
        0xc2ff_8000,
    ] {
        numbers.extend([base - 1, base, base + 1].map(f32::from_bits));
    }
    let mut random = crate::common::data::Random(21);
    while numbers.len() < COUNT {
        numbers.push(f32::from_bits(random.bits() as u32));
    }
    numbers
}

/// Pairs of bf16 numbers for arithmetic: among them sums that are ties, and cancellation.
fn bf16_numbers(seed: u64) -> Vec<bf16> {
    let mut random = crate::common::data::Random(seed);
    let mut numbers: Vec<bf16> = [1.0, -1.0, 0.0, -0.0, f32::INFINITY, 256.0, 1.5, 3.0e38]
        .map(bf16::from_f32)
        .into();
    while numbers.len() < COUNT {
        // Exponents near each other, so that sums round.
        let bits = random.bits();
        let exponent = 120 + (bits >> 8 & 15) as u16;
        numbers.push(bf16::from_bits((bits as u16 & 0x807f) | exponent << 7));
    }
    numbers
}

fn bf16_buffer(numbers: &[bf16]) -> HostArg {
    buffer(numbers.iter().map(|x| x.to_le_bytes()))
}

/// The bf16 number nearest to an exact result. `half` forgets the last 32 bits of an f64, so they go into the last bit
/// of an f32 cut off first.
fn rounded(exact: f64) -> u16 {
    let nearest = exact as f32;
    let inexact = f64::from(nearest) != exact && !exact.is_nan();
    let too_large = f64::from(nearest).abs() > exact.abs();
    let bits = (nearest.to_bits() - u32::from(too_large)) | u32::from(inexact);
    bf16::from_f32(f32::from_bits(bits)).to_bits()
}

#[test]
fn a_warp_sums_integers_in_one_instruction_from_sm_80() {
    let func = kernel(&[Scalar::I32], Scalar::I32, |b, x| {
        b.reduce_one(x[0], 0, |b, l, r| b.iadd(l, r))
    });
    let numbers: Vec<i32> = (0..COUNT as i32)
        .map(|i| i.wrapping_mul(0x0765_4321) - 77)
        .collect();
    let expected = numbers.iter().fold(0, |a: i32, &b| a.wrapping_add(b));
    differ(
        &func,
        &[
            buffer(numbers.iter().map(|x| x.to_le_bytes())),
            HostArg::Output(4),
        ],
        &[
            from_sm(70, &["shfl.sync.bfly"], &["redux"]),
            from_sm(80, &["redux.sync.add.s32"], &["shfl"]),
            from_sm(90, &["redux.sync.add.s32"], &["shfl"]),
        ],
        |bytes| {
            let expected = expected.to_le_bytes();
            (bytes == expected)
                .then_some(())
                .ok_or(format!("{bytes:?}, not {expected:?}"))
        },
    );
}

#[test]
fn two_numbers_become_f16_in_one_instruction_from_sm_80() {
    let func = kernel(&[Scalar::F32], Scalar::F16, |b, x| {
        b.fptrunc(x[0], Rounding::Nearest, block_of(Elem::F16))
    });
    let numbers = hard_numbers();
    let expected: Vec<u16> = numbers
        .iter()
        .map(|&x| f16::from_f32(x).to_bits())
        .collect();
    differ(
        &func,
        &[
            buffer(numbers.iter().map(|x| x.to_le_bytes())),
            HostArg::Output(2 * COUNT),
        ],
        &[
            from_sm(70, &["cvt.rn.f16.f32"], &["cvt.rn.f16x2"]),
            from_sm(80, &["cvt.rn.f16x2.f32"], &["cvt.rn.f16.f32"]),
            from_sm(90, &["cvt.rn.f16x2.f32"], &["cvt.rn.f16.f32"]),
        ],
        same_halves(&expected, |bits| f16::from_bits(bits).is_nan()),
    );
}

#[test]
fn sm_75_rounds_to_bf16_on_bits() {
    let func = kernel(&[Scalar::F32], Scalar::Bf16, |b, x| {
        b.fptrunc(x[0], Rounding::Nearest, block_of(Elem::BF16))
    });
    let numbers = hard_numbers();
    let expected: Vec<u16> = numbers
        .iter()
        .map(|&x| bf16::from_f32(x).to_bits())
        .collect();
    differ(
        &func,
        &[
            buffer(numbers.iter().map(|x| x.to_le_bytes())),
            HostArg::Output(2 * COUNT),
        ],
        &[
            from_sm(70, &["add.s32", "shr"], &["cvt.rn"]),
            from_sm(80, &["cvt.rn.bf16x2.f32"], &["shr", "add.s32"]),
            from_sm(90, &["cvt.rn.bf16x2.f32"], &["shr", "add.s32"]),
        ],
        same_halves(&expected, bf16_is_nan),
    );
}

#[test]
fn bf16_sums_are_native_from_sm_90_and_fused_from_sm_80() {
    let func = kernel(&[Scalar::Bf16; 2], Scalar::Bf16, |b, x| b.fadd(x[0], x[1]));
    let (x, y) = (bf16_numbers(1), bf16_numbers(2));
    let expected: Vec<u16> = x
        .iter()
        .zip(&y)
        .map(|(x, y)| rounded(x.to_f64() + y.to_f64()))
        .collect();
    differ(
        &func,
        &[bf16_buffer(&x), bf16_buffer(&y), HostArg::Output(2 * COUNT)],
        &[
            from_sm(70, &["add.rn.f32"], &["add.rn.bf16", "add.bf16", "fma"]),
            from_sm(
                80,
                &["fma.rn.bf16x2"],
                &["add.rn.bf16", "add.bf16", "add.rn.f32"],
            ),
            from_sm(90, &["add.rn.bf16x2"], &["fma", "add.rn.f32"]),
        ],
        same_halves(&expected, bf16_is_nan),
    );
}

#[test]
fn sm_75_multiplies_and_adds_bf16_with_one_rounding() {
    let func = kernel(&[Scalar::Bf16; 3], Scalar::Bf16, |b, x| {
        b.fma(x[0], x[1], x[2])
    });
    let (x, y, z) = (bf16_numbers(3), bf16_numbers(4), bf16_numbers(5));
    // Products of 16 bits and sums with exponents this near are exact in f64.
    let expected: Vec<u16> = (0..COUNT)
        .map(|i| rounded(x[i].to_f64() * y[i].to_f64() + z[i].to_f64()))
        .collect();
    differ(
        &func,
        &[
            bf16_buffer(&x),
            bf16_buffer(&y),
            bf16_buffer(&z),
            HostArg::Output(2 * COUNT),
        ],
        &[
            from_sm(70, &["cvt.f64.f32"], &["fma.rn.bf16"]),
            from_sm(80, &["fma.rn.bf16x2"], &["cvt"]),
            from_sm(90, &["fma.rn.bf16x2"], &["cvt"]),
        ],
        same_halves(&expected, bf16_is_nan),
    );
}

#[test]
fn the_larger_number_or_nan_is_one_instruction_from_sm_80() {
    let func = kernel(&[Scalar::F32; 2], Scalar::F32, |b, x| {
        b.fmax(x[0], x[1], NanRule::Propagate)
    });
    let x = hard_numbers();
    let y: Vec<f32> = x.iter().rev().copied().collect();
    let expected: Vec<f32> = x
        .iter()
        .zip(&y)
        .map(|(&x, &y)| {
            if x.is_nan() || y.is_nan() {
                f32::NAN
            } else {
                x.max(y)
            }
        })
        .collect();
    differ(
        &func,
        &[
            buffer(x.iter().map(|x| x.to_le_bytes())),
            buffer(y.iter().map(|x| x.to_le_bytes())),
            HostArg::Output(4 * COUNT),
        ],
        &[
            from_sm(70, &["max.f32", "setp.nan.f32", "selp"], &["max.NaN"]),
            from_sm(80, &["max.NaN.f32"], &["setp", "selp"]),
            from_sm(90, &["max.NaN.f32"], &["setp", "selp"]),
        ],
        |bytes| {
            for (i, (found, &expected)) in bytes.chunks(4).zip(&expected).enumerate() {
                let found = f32::from_le_bytes([found[0], found[1], found[2], found[3]]);
                if found != expected && !(found.is_nan() && expected.is_nan()) {
                    return Err(format!("[{i}] is {found}, not {expected}"));
                }
            }
            Ok(())
        },
    );
}

#[test]
fn pairs_of_16_bit_integers_add_one_by_one() {
    let func = kernel(&[Scalar::I16; 2], Scalar::I16, |b, x| b.iadd(x[0], x[1]));
    let numbers = |factor: i16| (0..COUNT as i16).map(move |i| i.wrapping_mul(factor));
    let expected: Vec<u8> = numbers(999)
        .zip(numbers(-20_011))
        .flat_map(|(x, y)| x.wrapping_add(y).to_le_bytes())
        .collect();
    differ(
        &func,
        &[
            buffer(numbers(999).map(i16::to_le_bytes)),
            buffer(numbers(-20_011).map(i16::to_le_bytes)),
            HostArg::Output(2 * COUNT),
        ],
        &[
            from_sm(70, &["add.s16"], &["add.s16x2"]),
            from_sm(80, &["add.s16"], &["add.s16x2"]),
            from_sm(90, &["add.s16"], &["add.s16x2"]),
        ],
        |bytes| (bytes == expected).then_some(()).ok_or("wrong sums".into()),
    );
}

#[test]
fn integers_become_bf16_in_one_instruction_from_sm_90() {
    let func = kernel(&[Scalar::I32], Scalar::Bf16, |b, x| {
        b.sitofp(x[0], block_of(Elem::BF16))
    });
    // Around ties of 8 bits, where rounding to f32 first and then to bf16 would go astray.
    let mut numbers: Vec<i32> = [0x0101, 0x8080_0001_u32 as i32, 0x4040_0000, 0x4040_0001]
        .into_iter()
        .flat_map(|x| [x, x.wrapping_neg(), x.wrapping_sub(1)])
        .collect();
    numbers.extend([0, 1, -1, i32::MAX, i32::MIN]);
    let mut random = crate::common::data::Random(22);
    while numbers.len() < COUNT {
        numbers.push(random.bits() as i32);
    }
    // f64 holds every i32, so one rounding is left.
    let expected: Vec<u16> = numbers.iter().map(|&x| rounded(f64::from(x))).collect();
    differ(
        &func,
        &[
            buffer(numbers.iter().map(|x| x.to_le_bytes())),
            HostArg::Output(2 * COUNT),
        ],
        &[
            from_sm(70, &["cvt.rn.f64.s32"], &["cvt.rn.bf16"]),
            from_sm(80, &["cvt.rn.bf16x2.f32"], &["cvt.rn.bf16.s32"]),
            from_sm(90, &["cvt.rn.bf16.s32"], &["cvt.rn.bf16x2.f32"]),
        ],
        same_halves(&expected, bf16_is_nan),
    );
}

#[test]
fn two_numbers_become_8_bits_in_one_instruction_from_sm_89() {
    let func = kernel(&[Scalar::F32], Scalar::F8E4M3, |b, x| {
        b.fptrunc(x[0], Rounding::Nearest, block_of(Elem::Num(Scalar::F8E4M3)))
    });
    let numbers = hard_numbers();
    let expected: Vec<u8> = numbers
        .iter()
        .map(|&x| tilelift::num::fp8::e4m3_from_f32(x))
        .collect();
    differ(
        &func,
        &[
            buffer(numbers.iter().map(|x| x.to_le_bytes())),
            HostArg::Output(COUNT),
        ],
        &[
            from_sm(70, &["cvt.rni.f32", "shr"], &["cvt.rn.satfinite"]),
            from_sm(89, &["cvt.rn.satfinite.e4m3x2.f32"], &["cvt.rni", "selp"]),
        ],
        |bytes| {
            // NaN has two patterns.
            let same =
                |(&a, &b): (&u8, &u8)| a == b || (a | b | 0x80) == 0xff && a & b & 0x7f == 0x7f;
            let wrong = bytes.iter().zip(&expected).position(|pair| !same(pair));
            wrong.map_or(Ok(()), |i| {
                Err(format!("[{i}] is {:#x}, not {:#x}", bytes[i], expected[i]))
            })
        },
    );
}

#[test]
fn pairs_of_8_bit_numbers_become_f16_in_one_instruction_from_sm_89() {
    let func = kernel(&[Scalar::F8E5M2], Scalar::F16, |b, x| {
        b.fpext(x[0], block_of(Elem::F16))
    });
    let numbers: Vec<u8> = (0..COUNT as u8).map(|i| i.wrapping_mul(37)).collect();
    let expected: Vec<u16> = numbers.iter().map(|&x| u16::from(x) << 8).collect();
    differ(
        &func,
        &[
            buffer(numbers.iter().map(|&x| [x])),
            HostArg::Output(2 * COUNT),
        ],
        &[
            from_sm(70, &["shl"], &["cvt.rn.f16x2.e5m2x2"]),
            from_sm(89, &["cvt.rn.f16x2.e5m2x2"], &[]),
        ],
        same_halves(&expected, |bits| f16::from_bits(bits).is_nan()),
    );
}
