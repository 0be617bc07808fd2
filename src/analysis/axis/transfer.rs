//! Transfer rules: what follows for a result from what is known of the operands.
//!
//! A rule names the longest run `g` over which its argument holds and states the first element's
//! divisibility with [`DimInfo::divisibility_at`]. Runs are aligned, so a contiguous run of `g` numbers that
//! starts at a multiple of `g` crosses neither a multiple of `g` nor the sign change: comparisons,
//! quotients, remainders and extensions may look at the whole run as one. Without that alignment an i32
//! run may wrap, and its extension to 64 bits is not contiguous.

use cranelift_entity::SecondaryMap;

use super::{ALL_BITS, AxisInfo, DimInfo, Exponent, natural, unit};
use crate::ir::attrs::{Attrs, IntPred};
use crate::ir::dfg::InstData;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::ops::{Opcode, TileOp};
use crate::ir::types::{Elem, TileType};
use crate::linear_layout::shape::Shape;

/// What is known of the single result of an instruction without regions.
pub(super) fn transfer(
    func: &TileFunction,
    infos: &SecondaryMap<Value, AxisInfo>,
    inst: Inst,
) -> AxisInfo {
    let data = &func.dfg.insts[inst];
    let Some(result) = func.dfg.single_result(inst) else {
        return AxisInfo::default();
    };
    let ty = func.dfg.ty(result);
    let arg = |i: usize| &infos[data.args[i]];
    let mut out = match data.op {
        TileOp::Const => constant(data, &ty),
        TileOp::Splat => splat(arg(0), &ty),
        TileOp::Arange => arange(data, &ty),
        TileOp::ExpandDims => expand_dims(arg(0), data),
        TileOp::Broadcast => broadcast(func, arg(0), data.args[0], &ty),
        TileOp::Reshape => reshape(func, arg(0), data.args[0], &ty),
        TileOp::Permute => permute(arg(0), data),
        TileOp::Join => join(arg(0), arg(1), &ty),
        TileOp::Split => split(arg(0), &ty),
        TileOp::Gather => gather(arg(0), arg(1), data, &ty),
        TileOp::Histogram => AxisInfo::unknown(&ty),
        TileOp::ConvertLayout => arg(0).clone(),
        TileOp::AssumeMultiple | TileOp::AssumeContiguous | TileOp::AssumeConstant => {
            hint(arg(0), data, &ty)
        }
        TileOp::Iadd => pairwise(arg(0), arg(1), |a, b| add(a, b, 0)),
        TileOp::Isub => pairwise(arg(0), arg(1), sub),
        TileOp::Addptr => addptr(func, arg(0), arg(1), data, &ty),
        TileOp::Imul => mul(arg(0), arg(1)),
        TileOp::Shl => match amount(arg(1), &ty) {
            Some(k) => map(arg(0), |a| shift_left(a, k)),
            None => equal_runs(func, infos, data, &ty),
        },
        TileOp::Sshr | TileOp::Ushr => match amount(arg(1), &ty) {
            Some(k) => pairwise(arg(0), arg(1), |a, b| quotient(a, b, Some(k), true)),
            None => equal_runs(func, infos, data, &ty),
        },
        TileOp::Sdiv => {
            let aligned = arg(0).is_non_negative() && (arg(1).non_negative || arg(0).is_index);
            divide(arg(0), arg(1), aligned)
        }
        TileOp::Udiv => divide(arg(0), arg(1), true),
        TileOp::Srem => pairwise(arg(0), arg(1), |a, b| {
            remainder(a, b, arg(0).is_non_negative())
        }),
        TileOp::Urem => pairwise(arg(0), arg(1), |a, b| remainder(a, b, true)),
        TileOp::And => and(arg(0), arg(1)),
        TileOp::Or | TileOp::Xor | TileOp::Smin | TileOp::Smax | TileOp::Umin | TileOp::Umax => {
            pairwise(arg(0), arg(1), all_elements)
        }
        TileOp::Icmp if func.dfg.ty(data.args[0]).elem.is_ptr() => {
            equal_runs(func, infos, data, &ty)
        }
        TileOp::Icmp => compare(arg(0), arg(1), data),
        TileOp::Select => select(arg(0), arg(1), arg(2), unit(ty.elem)),
        TileOp::Sext | TileOp::Zext => map(arg(0), widen),
        TileOp::Itrunc => map(arg(0), |d| narrow(d, ty.elem.bits())),
        TileOp::PtrCast => ptr_cast(func, arg(0), data.args[0], &ty),
        // A volatile load may see different numbers at one address.
        TileOp::Load if data.volatile().is_some() => AxisInfo::unknown(&ty),
        TileOp::Load => equal_runs(func, infos, data, &ty),
        _ => match data.op.info().effects.class {
            // Numbers computed element by element: equal where all operands are.
            OpClass::Elementwise => equal_runs(func, infos, data, &ty),
            // Programs and threads take turns, so even equal elements may have met different numbers.
            OpClass::Memory | OpClass::Foreign | OpClass::Sync => AxisInfo::unknown(&ty),
            OpClass::Constant
            | OpClass::Shape
            | OpClass::Exchange
            | OpClass::Matrix
            | OpClass::Report
            | OpClass::Region
            | OpClass::End => AxisInfo::unknown(&ty),
        },
    };
    out.non_negative |= is_non_negative(infos, data);
    out.is_index = is_index(infos, data);
    out.natural = natural::of_result(func, infos, data, &ty);
    out
}

/// Applies a rule to each dimension.
fn map(x: &AxisInfo, rule: impl Fn(&DimInfo) -> DimInfo) -> AxisInfo {
    AxisInfo {
        dims: x.dims.iter().map(rule).collect(),
        constant: None,
        non_negative: false,
        is_index: false,
        natural: None,
    }
}

/// Applies a rule to each dimension of two operands of one shape.
fn pairwise(a: &AxisInfo, b: &AxisInfo, rule: impl Fn(&DimInfo, &DimInfo) -> DimInfo) -> AxisInfo {
    let dims = a.dims.iter().zip(&b.dims).map(|(a, b)| rule(a, b));
    AxisInfo {
        dims: dims.collect(),
        constant: None,
        non_negative: false,
        is_index: false,
        natural: None,
    }
}

/// Equal where all operands are equal, and nothing else.
fn equal_runs(
    func: &TileFunction,
    infos: &SecondaryMap<Value, AxisInfo>,
    data: &InstData<Tile>,
    ty: &TileType,
) -> AxisInfo {
    let mut out = AxisInfo::unknown(ty);
    for (dim, info) in out.dims.iter_mut().enumerate() {
        let runs = data.args.iter().map(|&v| infos[v].dim(dim).constancy);
        info.constancy = runs.reduce(|a, b| a.min(&b)).unwrap_or_default();
    }
    debug_assert!(data.args.iter().all(|&v| func.dfg.ty(v).shape == ty.shape));
    out
}

fn constant(data: &InstData<Tile>, ty: &TileType) -> AxisInfo {
    let mut out = AxisInfo::unknown(ty);
    for (dim, &extent) in out.dims.iter_mut().zip(ty.shape.log2()) {
        dim.constancy = Exponent::constant(extent);
    }
    if ty.elem.is_float() {
        return out;
    }
    let number = signed(data.value().copied().unwrap_or(0), ty.elem);
    let divisibility = (number.trailing_zeros() as u8).min(ALL_BITS);
    for dim in &mut out.dims {
        dim.divisibility = Exponent::constant(divisibility);
    }
    out.constant = Some(number);
    out.non_negative = number >= 0;
    out
}

/// The bits as a signed number; a truth value is 0 or 1.
pub(super) fn signed(bits: u64, elem: Elem) -> i64 {
    let width = elem.bits().clamp(1, 64);
    if width == 1 {
        return (bits & 1) as i64;
    }
    ((bits << (64 - width)) as i64) >> (64 - width)
}

fn splat(x: &AxisInfo, ty: &TileType) -> AxisInfo {
    let mut out = AxisInfo::unknown(ty);
    for (dim, &extent) in out.dims.iter_mut().zip(ty.shape.log2()) {
        dim.constancy = Exponent::constant(extent);
        dim.divisibility = x.dim(0).divisibility;
    }
    // A splat to rank 0 is the scalar itself.
    if ty.is_scalar() {
        out.dims.clone_from(&x.dims);
    }
    out.constant = x.constant;
    out.non_negative = x.non_negative;
    out
}

fn arange(data: &InstData<Tile>, ty: &TileType) -> AxisInfo {
    let mut out = AxisInfo::unknown(ty);
    let start = data.start().copied().unwrap_or(0);
    out.dims[0] = DimInfo {
        contiguity: Exponent::constant(ty.shape.log2()[0]),
        divisibility: Exponent::constant(match start {
            0 => ALL_BITS,
            _ => start.trailing_zeros() as u8,
        }),
        constancy: Exponent::default(),
    };
    out
}

fn expand_dims(x: &AxisInfo, data: &InstData<Tile>) -> AxisInfo {
    let mut out = x.clone();
    let new = DimInfo {
        divisibility: x.known_zero_bits(0),
        ..DimInfo::default()
    };
    let axis = usize::from(data.axis().copied().unwrap_or(0));
    if data.results.is_empty() || x.dims.len() < axis {
        return out;
    }
    out.dims.insert(axis, new);
    out
}

fn broadcast(func: &TileFunction, x: &AxisInfo, arg: Value, ty: &TileType) -> AxisInfo {
    let mut out = x.clone();
    let from = func.dfg.ty(arg).shape;
    for ((dim, &old), &new) in out.dims.iter_mut().zip(from.log2()).zip(ty.shape.log2()) {
        if old != new {
            dim.constancy = Exponent::constant(new);
        }
    }
    out
}

/// The dimension of a block whose low bits are those of dimension `new` once the block is reshaped.
pub(super) fn low_dim(from: Shape, to: Shape, new: usize) -> Option<usize> {
    let low = to.bit_offset(new);
    let has_bits = to.log2().get(new).is_some_and(|&width| width > 0);
    let mut dims = 0..from.rank();
    dims.find(|&d| has_bits && from.extent(d) > 1 && from.bit_offset(d) == low)
}

/// A dimension whose low bits are those of an old one has its runs, as far as both reach.
fn reshape(func: &TileFunction, x: &AxisInfo, arg: Value, ty: &TileType) -> AxisInfo {
    let from = func.dfg.ty(arg).shape;
    let unit = unit(ty.elem);
    let mut out = AxisInfo::unknown(ty);
    for (new, dim) in out.dims.iter_mut().enumerate() {
        let width = ty.shape.log2().get(new).copied().unwrap_or(0);
        *dim = match low_dim(from, ty.shape, new) {
            Some(old) => {
                let info = x.dim(old);
                let width = Exponent::constant(width);
                let contiguity = info.contiguity.min(&width);
                DimInfo {
                    divisibility: info.divisibility_at(&contiguity, unit),
                    contiguity,
                    constancy: info.constancy.min(&width),
                }
            }
            None => DimInfo {
                divisibility: x.known_zero_bits(unit),
                ..DimInfo::default()
            },
        };
    }
    out.constant = x.constant;
    out.non_negative = x.non_negative;
    if let (Some(_), false) = (x.constant, ty.elem.is_float()) {
        for (dim, &extent) in out.dims.iter_mut().zip(ty.shape.log2()) {
            dim.constancy = Exponent::constant(extent);
        }
    }
    out
}

fn permute(x: &AxisInfo, data: &InstData<Tile>) -> AxisInfo {
    let dims = data.dims().map_or(&[][..], |d| d);
    AxisInfo {
        dims: dims.iter().map(|&d| x.dim(d as usize)).collect(),
        ..x.clone()
    }
}

fn join(a: &AxisInfo, b: &AxisInfo, ty: &TileType) -> AxisInfo {
    let mut out = a.meet(b, unit(ty.elem));
    let pair = DimInfo {
        divisibility: out.known_zero_bits(unit(ty.elem)),
        ..DimInfo::default()
    };
    // A scalar counts as one dimension, which the pair's takes the place of.
    out.dims.truncate(ty.shape.rank() - 1);
    out.dims.push(pair);
    out
}

fn split(x: &AxisInfo, ty: &TileType) -> AxisInfo {
    let mut out = x.clone();
    if ty.is_scalar() {
        out.dims[0] = DimInfo {
            divisibility: out.dims[0].divisibility_of_each(unit(ty.elem)),
            ..DimInfo::default()
        };
    } else {
        out.dims.truncate(ty.shape.rank());
    }
    out
}

/// Equal where the indices are and, in the other dimensions, the lines they look into.
fn gather(x: &AxisInfo, index: &AxisInfo, data: &InstData<Tile>, ty: &TileType) -> AxisInfo {
    let axis = usize::from(data.axis().copied().unwrap_or(0));
    let mut out = AxisInfo::unknown(ty);
    for (dim, info) in out.dims.iter_mut().enumerate() {
        info.constancy = index.dim(dim).constancy;
        if dim != axis {
            info.constancy = info.constancy.min(&x.dim(dim).constancy);
        }
    }
    out.non_negative = x.non_negative;
    out
}

fn hint(x: &AxisInfo, data: &InstData<Tile>, ty: &TileType) -> AxisInfo {
    let mut out = x.clone();
    let values = data.values().map_or(&[][..], |v| v);
    for (i, (dim, value)) in out.dims.iter_mut().zip(values).enumerate() {
        let promised = value.trailing_zeros() as u8;
        // A run cannot be longer than the dimension.
        let extent = ty.shape.log2().get(i).copied().unwrap_or(0);
        let (field, limit) = match data.op {
            TileOp::AssumeMultiple => (&mut dim.divisibility, ALL_BITS),
            TileOp::AssumeContiguous => (&mut dim.contiguity, extent),
            _ => (&mut dim.constancy, extent),
        };
        *field = field.max(&Exponent::constant(promised.min(limit)));
    }
    out
}

/// Sum of two numbers, or of a pointer and an offset in units of 2^`unit` bytes.
fn add(a: &DimInfo, b: &DimInfo, unit: u8) -> DimInfo {
    let left = a.constancy.min(&b.contiguity);
    let right = a.contiguity.min(&b.constancy);
    let run = left.max(&right);
    let scaled = product(&b.divisibility_at(&run, 0), &Exponent::constant(unit));
    DimInfo {
        divisibility: a.divisibility_at(&run, unit).min(&scaled),
        contiguity: run,
        constancy: a.constancy.min(&b.constancy),
    }
}

/// What divides a product.
fn product(a: &Exponent, b: &Exponent) -> Exponent {
    a.plus(b).min(&Exponent::constant(ALL_BITS))
}

fn addptr(
    func: &TileFunction,
    ptr: &AxisInfo,
    offset: &AxisInfo,
    data: &InstData<Tile>,
    ty: &TileType,
) -> AxisInfo {
    let narrow = func.dfg.ty(data.args[1]).elem == Elem::I32;
    let unit = unit(ty.elem);
    pairwise(ptr, offset, |p, o| {
        // An i32 offset is sign-extended first.
        match narrow {
            true => add(p, &widen(o), unit),
            false => add(p, o, unit),
        }
    })
}

fn sub(a: &DimInfo, b: &DimInfo) -> DimInfo {
    let run = a.contiguity.min(&b.constancy);
    DimInfo {
        divisibility: a.divisibility_at(&run, 0).min(&b.divisibility_at(&run, 0)),
        contiguity: run,
        constancy: a.constancy.min(&b.constancy),
    }
}

fn mul(a: &AxisInfo, b: &AxisInfo) -> AxisInfo {
    if b.constant == Some(1) {
        return a.clone();
    }
    if a.constant == Some(1) {
        return b.clone();
    }
    pairwise(a, b, |a, b| DimInfo {
        contiguity: Exponent::default(),
        divisibility: product(&a.divisibility_of_each(0), &b.divisibility_of_each(0)),
        constancy: a.constancy.min(&b.constancy),
    })
}

/// The shift amount, if it is constant and below the width.
fn amount(b: &AxisInfo, ty: &TileType) -> Option<u8> {
    let number = u32::try_from(b.constant?).ok()?;
    (number < ty.elem.bits()).then_some(number as u8)
}

fn shift_left(a: &DimInfo, k: u8) -> DimInfo {
    let contiguity = match k {
        0 => a.contiguity.clone(),
        _ => Exponent::default(),
    };
    DimInfo {
        divisibility: product(&a.divisibility_at(&contiguity, 0), &Exponent::constant(k)),
        contiguity,
        constancy: a.constancy.clone(),
    }
}

/// Quotient by a number that is constant over runs; 2^k if it is that for certain. `floors` says that an aligned
/// run of dividends has one quotient, which rounding to zero spoils for negative numbers.
fn quotient(a: &DimInfo, b: &DimInfo, k: Option<u8>, floors: bool) -> DimInfo {
    let run = a.contiguity.min(&a.divisibility);
    let same = match k {
        Some(k) => run.min(&Exponent::constant(k)),
        None => run.min(&b.divisibility_of_each(0)).min(&b.constancy),
    };
    let equal = a.constancy.min(&b.constancy);
    let (contiguity, divisibility) = match k {
        Some(0) => (a.contiguity.clone(), a.divisibility.clone()),
        Some(k) => (Exponent::default(), a.divisibility_of_each(0).less(k)),
        None => (Exponent::default(), Exponent::default()),
    };
    DimInfo {
        contiguity,
        divisibility,
        constancy: if floors { equal.max(&same) } else { equal },
    }
}

fn divide(a: &AxisInfo, b: &AxisInfo, floors: bool) -> AxisInfo {
    let positive = b.constant.and_then(|n| u64::try_from(n).ok());
    let power = positive.filter(|n| n.is_power_of_two());
    let k = power.map(|n| n.trailing_zeros() as u8);
    pairwise(a, b, |a, b| quotient(a, b, k, floors))
}

fn remainder(a: &DimInfo, b: &DimInfo, aligned: bool) -> DimInfo {
    let modulus = b.divisibility_of_each(0);
    let run = match aligned {
        true => a
            .contiguity
            .min(&a.divisibility)
            .min(&modulus)
            .min(&b.constancy),
        false => Exponent::default(),
    };
    DimInfo {
        divisibility: a.divisibility_at(&run, 0).min(&modulus),
        contiguity: run,
        constancy: a.constancy.min(&b.constancy),
    }
}

/// Bits below the lowest that either has stay clear.
fn all_elements(a: &DimInfo, b: &DimInfo) -> DimInfo {
    DimInfo {
        contiguity: Exponent::default(),
        divisibility: a.divisibility_of_each(0).min(&b.divisibility_of_each(0)),
        constancy: a.constancy.min(&b.constancy),
    }
}

fn and(a: &AxisInfo, b: &AxisInfo) -> AxisInfo {
    let (x, mask) = if a.constant.is_some() { (b, a) } else { (a, b) };
    let low_mask = mask
        .constant
        .filter(|&m| m >= 0 && m & m.wrapping_add(1) == 0);
    if let Some(m) = low_mask {
        // A remainder by a power of two, of negative numbers too.
        let modulus = Exponent::constant(m.trailing_ones() as u8);
        return map(x, |d| {
            let run = d.contiguity.min(&d.divisibility).min(&modulus);
            DimInfo {
                divisibility: d.divisibility_at(&run, 0),
                contiguity: run,
                constancy: d.constancy.clone(),
            }
        });
    }
    let clears = mask.constant.map_or(0, |m| m.trailing_zeros() as u8);
    let clears = Exponent::constant(clears);
    pairwise(x, mask, |d, m| DimInfo {
        contiguity: Exponent::default(),
        divisibility: d.divisibility_of_each(0).max(&m.divisibility_of_each(0)),
        // Clearing the low bits makes the numbers of an aligned run equal.
        constancy: d
            .constancy
            .min(&m.constancy)
            .max(&d.contiguity.min(&d.divisibility).min(&clears)),
    })
}

fn compare(a: &AxisInfo, b: &AxisInfo, data: &InstData<Tile>) -> AxisInfo {
    let pred = data.ipred().copied().unwrap_or(IntPred::Eq);
    // One bound for a whole run: `first` of it is below the bound if and only if all are.
    let run = |x: &DimInfo, bound: &DimInfo, info: &AxisInfo, inclusive: bool| {
        let multiple = if inclusive {
            let next = info.constant.and_then(|c| c.checked_add(1));
            Exponent::constant(next.map_or(0, |next| next.trailing_zeros() as u8))
        } else {
            bound.divisibility_of_each(0)
        };
        x.contiguity
            .min(&x.divisibility)
            .min(&multiple)
            .min(&bound.constancy)
    };
    // Whether the predicate separates at the bound itself or right behind it, for a run on the left.
    let (behind, on_right_behind) = match pred {
        IntPred::Eq | IntPred::Ne => (None, None),
        IntPred::Slt | IntPred::Ult | IntPred::Sge | IntPred::Uge => (Some(false), Some(true)),
        IntPred::Sle | IntPred::Ule | IntPred::Sgt | IntPred::Ugt => (Some(true), Some(false)),
    };
    pairwise(a, b, |x, y| {
        let mut constancy = x.constancy.min(&y.constancy);
        if let Some(inclusive) = behind {
            constancy = constancy.max(&run(x, y, b, inclusive));
        }
        if let Some(inclusive) = on_right_behind {
            constancy = constancy.max(&run(y, x, a, inclusive));
        }
        DimInfo {
            constancy,
            ..DimInfo::default()
        }
    })
}

fn select(cond: &AxisInfo, a: &AxisInfo, b: &AxisInfo, unit: u8) -> AxisInfo {
    let mut out = a.meet(b, unit);
    out.constant = a.constant.filter(|_| a.constant == b.constant);
    for (i, dim) in out.dims.iter_mut().enumerate() {
        let chosen = cond.dim(i).constancy;
        dim.constancy = dim.constancy.min(&chosen);
        let at = |x: &AxisInfo| x.dim(i).divisibility_at(&chosen, unit);
        let shorter = at(a).min(&at(b));
        let is_whole = dim.contiguity.at_most(&chosen);
        dim.divisibility = Exponent::chosen(is_whole, &dim.divisibility, &shorter);
        dim.contiguity = dim.contiguity.min(&chosen);
    }
    out
}

/// Truncation to fewer bits: a run of half the numbers that these have, at a multiple of its length, does not wrap, with sign or
/// without; a longer one would.
fn narrow(d: &DimInfo, bits: u32) -> DimInfo {
    let contiguity = d.contiguity.min(&Exponent::constant(bits as u8 - 1));
    DimInfo {
        divisibility: d.divisibility_at(&contiguity, 0),
        contiguity,
        constancy: d.constancy.clone(),
    }
}

/// Extension to more bits: only runs that cannot wrap stay runs.
fn widen(d: &DimInfo) -> DimInfo {
    let contiguity = d.contiguity.min(&d.divisibility);
    DimInfo {
        divisibility: d.divisibility_at(&contiguity, 0),
        contiguity,
        constancy: d.constancy.clone(),
    }
}

fn ptr_cast(func: &TileFunction, x: &AxisInfo, arg: Value, ty: &TileType) -> AxisInfo {
    let from = unit(func.dfg.ty(arg).elem);
    let keeps = from == unit(ty.elem);
    map(x, |d| {
        let contiguity = match keeps {
            true => d.contiguity.clone(),
            false => Exponent::default(),
        };
        DimInfo {
            divisibility: d.divisibility_at(&contiguity, from),
            contiguity,
            constancy: d.constancy.clone(),
        }
    })
}

/// Whether the result is not negative, given what is known of the operands; see [`AxisInfo::non_negative`].
fn is_non_negative(infos: &SecondaryMap<Value, AxisInfo>, data: &InstData<Tile>) -> bool {
    let arg = |i: usize| infos[data.args[i]].non_negative;
    match data.op {
        TileOp::Arange => data.start().is_some_and(|&s| s >= 0),
        TileOp::ProgramId | TileOp::NumPrograms | TileOp::Zext => true,
        TileOp::Iadd
        | TileOp::Imul
        | TileOp::Or
        | TileOp::Xor
        | TileOp::Smin
        | TileOp::Umax
        | TileOp::Sdiv
        | TileOp::Udiv => arg(0) && arg(1),
        TileOp::And | TileOp::Smax | TileOp::Umin | TileOp::Urem => arg(0) || arg(1),
        TileOp::Select => arg(1) && arg(2),
        TileOp::Shl | TileOp::Sshr | TileOp::Ushr | TileOp::Srem | TileOp::Sext => arg(0),
        _ => false,
    }
}

/// Whether the result is made of an index of programs; see [`AxisInfo::is_index`].
fn is_index(infos: &SecondaryMap<Value, AxisInfo>, data: &InstData<Tile>) -> bool {
    let index = |i: usize| infos[data.args[i]].is_index;
    match data.op {
        TileOp::ProgramId | TileOp::NumPrograms => true,
        TileOp::Iadd | TileOp::Imul => {
            let fits = |i: usize| infos[data.args[i]].is_non_negative();
            (index(0) || index(1)) && fits(0) && fits(1)
        }
        TileOp::Sdiv
        | TileOp::Udiv
        | TileOp::Srem
        | TileOp::Urem
        | TileOp::Shl
        | TileOp::Sshr
        | TileOp::Ushr
        | TileOp::Sext
        | TileOp::Zext
        | TileOp::Splat
        | TileOp::ExpandDims
        | TileOp::Broadcast
        | TileOp::Reshape
        | TileOp::Permute
        | TileOp::ConvertLayout
        | TileOp::AssumeMultiple => index(0),
        _ => false,
    }
}
