//! Type rules of the thread level.

use smallvec::smallvec;

use super::{
    Operands, TypeError, Types, bad_attribute, bad_operand, bad_result, cas_takes, given_one,
    rmw_takes, shared,
};
use crate::ir::attrs::{AttrKind, Attrs, MmaUnit, RmwOp};
use crate::ir::level::Thread;
use crate::ir::matrix_units::When;
use crate::ir::ops::{Opcode, ThreadOp, TypeRule};
use crate::ir::types::{AddressSpace, Elem, ThreadType, ValueType};
use crate::settings::LANES;

/// The result types of a thread op, or why its operands do not fit.
pub(crate) fn result_types(
    op: ThreadOp,
    operands: &Operands<'_, Thread>,
) -> Result<Types<Thread>, TypeError> {
    super::check_shape(op, operands)?;
    let rule = op.info().rule;
    if let Some(result) = shared(rule, operands) {
        return result;
    }
    let args = operands.args;
    match rule {
        TypeRule::I32Scalar => Ok(smallvec![ThreadType::scalar(Elem::I32)]),
        // A number, and a truth value where it is not waited for.
        TypeRule::GroupBarrier => {
            scalar_fits(operands, 0, Elem::I32, "i32")?;
            if args.len() > 1 {
                scalar_fits(operands, 1, Elem::I1, "i1")?;
            }
            Ok(smallvec![])
        }
        // Operands of one element type; the map has one source per element of the stated result.
        TypeRule::Rearrange => {
            let ty = given_one(operands)?;
            if let Some(i) = args.iter().position(|t| t.elem != ty.elem) {
                return Err(bad_operand(operands, i, format!("of {}", ty.elem)));
            }
            let map = operands.map().map_or(&[][..], |m| m);
            let sources: u32 = args.iter().map(|t| u32::from(t.count)).sum();
            if map.len() != usize::from(ty.count) {
                return Err(bad_attribute(
                    AttrKind::Map,
                    "must have one number per element of the result",
                ));
            }
            match map.iter().find(|&&m| m >= sources) {
                Some(m) => Err(bad_attribute(
                    AttrKind::Map,
                    format!("names element {m} of {sources}"),
                )),
                None => Ok(smallvec![ty]),
            }
        }
        // A stated pointer to shared memory.
        TypeRule::SlotAddr => {
            let ty = given_one(operands)?;
            match ty.elem {
                Elem::Ptr(_, AddressSpace::Shared) if ty.count == 1 => Ok(smallvec![ty]),
                _ => Err(bad_result(operands, "a pointer to shared memory")),
            }
        }
        // A stated pointer to device memory.
        TypeRule::LogAddr => {
            let ty = given_one(operands)?;
            match ty.elem {
                Elem::Ptr(_, AddressSpace::Global) if ty.count == 1 => Ok(smallvec![ty]),
                _ => Err(bad_result(operands, "a pointer to device memory")),
            }
        }
        // One pointer, a truth value, and a fallback of the stated type; 1 to 16 bytes, of device memory to 32.
        TypeRule::Ld => {
            let ty = given_one(operands)?;
            access(operands, 1, ty, 32)?;
            match args.get(2) {
                Some(&other) if other != ty => Err(bad_operand(operands, 2, ty.to_string())),
                _ => Ok(smallvec![ty]),
            }
        }
        // One pointer, what is written, and a truth value; 1 to 16 bytes, of device memory to 32.
        TypeRule::St => access(operands, 2, args[1], 32).map(|()| smallvec![]),
        // One pointer, elements that `rmw` takes (several only for sums of floats up to 32 bits in device memory), a truth
        // value; what the elements were results.
        TypeRule::Atom => {
            access(operands, 2, args[1], 16)?;
            if args[1].count > 1 {
                in_device_memory(operands)?;
            }
            let rmw = operands.rmw().copied().unwrap_or(RmwOp::Add);
            rmw_takes(rmw, args[1].elem).map_err(|e| bad_operand(operands, 1, e))?;
            if args[1].count > 1 && (rmw != RmwOp::Fadd || args[1].elem.bits() > 32) {
                return Err(bad_operand(operands, 1, "one element"));
            }
            Ok(smallvec![args[1]])
        }
        // One pointer to device memory, twice one element of 16 bits or more, a truth value.
        TypeRule::AtomCas => {
            access(operands, 3, args[1], 16)?;
            in_device_memory(operands)?;
            cas_takes(args[1].elem).map_err(|e| bad_operand(operands, 1, e))?;
            if args[1].count > 1 {
                return Err(bad_operand(operands, 1, "one element"));
            }
            if args[2] != args[1] {
                return Err(bad_operand(operands, 2, args[1].to_string()));
            }
            Ok(smallvec![args[1]])
        }
        // A number (not a truth value) of any count, and for the indexed form the lane.
        TypeRule::Shuffle => {
            if args[0].elem == Elem::I1 || args[0].elem.scalar().is_none() {
                return Err(bad_operand(operands, 0, "numbers of 8 bits or more"));
            }
            if operands.mask().is_some_and(|&m| m == 0 || m > 31) {
                return Err(bad_attribute(AttrKind::Mask, "must be 1 to 31"));
            }
            if operands.delta().is_some_and(|&d| d == 0 || d > 31) {
                return Err(bad_attribute(AttrKind::Delta, "must be 1 to 31"));
            }
            match args.get(1) {
                Some(&lane) if lane != ThreadType::scalar(Elem::I32) => {
                    Err(bad_operand(operands, 1, "i32"))
                }
                _ => Ok(smallvec![args[0]]),
            }
        }
        // A pointer to shared memory; 1, 2 or 4 registers of 32 bits are stated.
        TypeRule::LdMatrix => {
            let ty = given_one(operands)?;
            in_shared_memory(operands, 0)?;
            if !is_matrices(ty) {
                return Err(bad_result(operands, MATRICES));
            }
            Ok(smallvec![ty])
        }
        // A pointer to shared memory, and 1, 2 or 4 registers of 32 bits.
        TypeRule::StMatrix => {
            in_shared_memory(operands, 0)?;
            if !is_matrices(args[1]) {
                return Err(bad_operand(operands, 1, MATRICES));
            }
            Ok(smallvec![])
        }
        TypeRule::Mma => mma(operands),
        TypeRule::SameFirst => Ok(args.iter().take(1).copied().collect()),
        TypeRule::Wgmma => wgmma(operands),
        // A pointer to shared memory, one to device memory, a truth value, and a number of bytes.
        TypeRule::CpAsync => {
            in_shared_memory(operands, 0)?;
            if !matches!(args[1].elem, Elem::Ptr(_, AddressSpace::Global)) || args[1].count != 1 {
                return Err(bad_operand(operands, 1, "a pointer to device memory"));
            }
            if !matches!(operands.bytes(), Some(4 | 8 | 16)) {
                return Err(bad_attribute(AttrKind::Bytes, "must be 4, 8 or 16"));
            }
            for (i, elem, what) in [(2, Elem::I1, "i1"), (3, Elem::I32, "i32")] {
                if args
                    .get(i)
                    .is_some_and(|&arg| arg != ThreadType::scalar(elem))
                {
                    return Err(bad_operand(operands, i, what));
                }
            }
            Ok(smallvec![])
        }
        // A pointer to a barrier, and a truth value.
        TypeRule::Mbar => {
            in_shared_memory(operands, 0)?;
            scalar_fits(operands, 1, Elem::I1, "i1").map(|()| smallvec![])
        }
        // A pointer to a barrier, and a parity; a truth value results.
        TypeRule::MbarTry => {
            in_shared_memory(operands, 0)?;
            scalar_fits(operands, 1, Elem::I32, "i32")?;
            Ok(smallvec![ThreadType::scalar(Elem::I1)])
        }
        TypeRule::Elect => Ok(smallvec![ThreadType::scalar(Elem::I1)]),
        // Where to, which map, a barrier, a truth value, and one to five coordinates.
        TypeRule::ThreadTensorCopy => {
            in_shared_memory(operands, 0)?;
            scalar_fits(operands, 1, Elem::I64, "i64, the address of a map")?;
            in_shared_memory(operands, 2)?;
            scalar_fits(operands, 3, Elem::I1, "i1")?;
            coordinates_fit(operands, 4)
        }
        // Where from, which map, a truth value, and one to five coordinates.
        TypeRule::ThreadTensorStore => {
            in_shared_memory(operands, 0)?;
            scalar_fits(operands, 1, Elem::I64, "i64, the address of a map")?;
            scalar_fits(operands, 2, Elem::I1, "i1")?;
            coordinates_fit(operands, 3)
        }
        // Numbers that fill 32-bit integers, which are stated.
        TypeRule::Words => {
            let (from, to) = (args[0], given_one(operands)?);
            let bits = |t: ThreadType| t.elem.bits() * u32::from(t.count);
            let fits = from.elem.scalar().is_some() && matches!(from.elem.bits(), 8 | 16 | 32);
            if !fits || to.elem != Elem::I32 || bits(from) != bits(to) {
                return Err(bad_result(operands, "i32 with as many bits as the operand"));
            }
            Ok(smallvec![to])
        }
        TypeRule::Redux => {
            if args[0].elem == Elem::I32 {
                Ok(smallvec![args[0]])
            } else {
                Err(bad_operand(operands, 0, "i32"))
            }
        }
        _ => Err(bad_result(operands, "of an op of this level")),
    }
}

/// The operand at `index` is a single number of the type.
fn scalar_fits(
    operands: &Operands<'_, Thread>,
    index: usize,
    elem: Elem,
    expected: &'static str,
) -> Result<(), TypeError> {
    if operands.args[index] == ThreadType::scalar(elem) {
        Ok(())
    } else {
        Err(bad_operand(operands, index, expected))
    }
}

/// The operand at `index` is one pointer to shared memory.
fn in_shared_memory(operands: &Operands<'_, Thread>, index: usize) -> Result<(), TypeError> {
    match operands.args[index].elem {
        Elem::Ptr(_, AddressSpace::Shared) if operands.args[index].count == 1 => Ok(()),
        _ => Err(bad_operand(operands, index, "a pointer to shared memory")),
    }
}

/// What a warp holds of 8x8 matrices.
const MATRICES: &str = "1, 2 or 4 registers of 32 bits";

/// Whether a warp holds 8x8 matrices so.
fn is_matrices(ty: ThreadType) -> bool {
    let is_words = ty.is_paired() || ty.elem.bits() == 32 && ty.elem.scalar().is_some();
    is_words && matches!(ty.registers(), 1 | 2 | 4)
}

/// Behind `first` operands stand one to five coordinates.
fn coordinates_fit(
    operands: &Operands<'_, Thread>,
    first: usize,
) -> Result<Types<Thread>, TypeError> {
    let all = operands.args.len();
    if !(first + 1..=first + 5).contains(&all) {
        let wanted = format!("one to five coordinates behind {first} others");
        return Err(bad_operand(operands, 0, wanted));
    }
    (first..all)
        .try_for_each(|i| scalar_fits(operands, i, Elem::I32, "i32"))
        .map(|()| smallvec![])
}

/// Fragments of whole tiles.
fn mma(operands: &Operands<'_, Thread>) -> Result<Types<Thread>, TypeError> {
    let &[a, b, c] = operands.args else {
        return Err(bad_operand(operands, 0, "three operands"));
    };
    let unit = operands.unit().copied().unwrap_or(MmaUnit::F16);
    if unit.info().when != When::Now {
        return Err(bad_attribute(AttrKind::Unit, "must be one of single warps"));
    }
    let (operand, sum) = unit.elems();
    let [left, right, each] = unit.tile_registers();
    let registers = |ty: ThreadType| u32::from(ty.registers());
    for (i, ty, each) in [(0, a, left), (1, b, right)] {
        if ty.elem != operand || !registers(ty).is_multiple_of(each) || ty.count < 2 {
            let expected = format!("{operand} in whole tiles of {each} registers");
            return Err(bad_operand(operands, i, expected));
        }
    }
    // Of packs as large as a text can have them more than a pack can have.
    let sums = each * (registers(a) / left) * (registers(b) / right);
    if c.elem != sum || u32::from(c.count) != sums {
        return Err(bad_operand(operands, 2, format!("{sum} x {sums}")));
    }
    Ok(smallvec![c])
}

/// Sums, of which a thread has half as many as there are columns for each part; then pairs of a descriptor or a fragment of 64 rows
/// and a descriptor; then, if it is there, a truth value.
fn wgmma(operands: &Operands<'_, Thread>) -> Result<Types<Thread>, TypeError> {
    let Some((&c, pairs)) = operands.args.split_first() else {
        return Err(bad_operand(operands, 0, "sums"));
    };
    let pairs = match pairs.split_last() {
        Some((&last, pairs)) if last == ThreadType::scalar(Elem::I1) => pairs,
        _ => pairs,
    };
    let unit = operands.unit().copied().unwrap_or(MmaUnit::F16);
    let info = unit.info();
    if info.when != When::UntilWait {
        return Err(bad_attribute(AttrKind::Unit, "must be one of warpgroups"));
    }
    let (operand, sum) = unit.elems();
    let columns = operands.columns().copied().unwrap_or(0);
    let (least, most) = (info.columns.start(), info.columns.end());
    if !info.columns.contains(&columns) || !columns.is_multiple_of(*least) {
        let problem = format!("must be {least} to {most}, by {least}");
        return Err(bad_attribute(AttrKind::Columns, problem));
    }
    let each = info.rows * columns / (LANES * info.warps);
    let count = u32::from(c.count);
    if c.elem != sum || !count.is_multiple_of(each) {
        return Err(bad_operand(
            operands,
            0,
            format!("{sum} in parts of {each}"),
        ));
    }
    let per_round = 2 * (count / each) as usize;
    if pairs.is_empty() || !pairs.len().is_multiple_of(per_round) {
        let expected = format!("operands in rounds of {per_round}");
        return Err(bad_operand(operands, operands.args.len() - 1, expected));
    }
    let descriptor = ThreadType::scalar(Elem::I64);
    for (i, &ty) in pairs.iter().enumerate() {
        let is_fragment = i % 2 == 0 && ty.elem == operand && ty.registers() == 4;
        if ty != descriptor && !is_fragment {
            let expected = match i % 2 {
                0 => format!("a descriptor (i64), or {operand} in 4 registers"),
                _ => "a descriptor (i64)".to_owned(),
            };
            return Err(bad_operand(operands, 1 + i, expected));
        }
    }
    Ok(smallvec![c])
}

/// Operand 1 points to device memory.
fn in_device_memory(operands: &Operands<'_, Thread>) -> Result<(), TypeError> {
    match operands.args[0].elem {
        Elem::Ptr(_, AddressSpace::Global) => Ok(()),
        _ => Err(bad_operand(operands, 0, "a pointer to device memory")),
    }
}

/// An access to `value` through the first operand, of device memory at most `widest` bytes, with a predicate at `pred` if it
/// is there.
fn access(
    operands: &Operands<'_, Thread>,
    pred: usize,
    value: ThreadType,
    widest: u32,
) -> Result<(), TypeError> {
    let ptr = operands.args[0];
    let Elem::Ptr(pointee, space) = ptr.elem else {
        return Err(bad_operand(operands, 0, "a pointer"));
    };
    // Whether the target has the widest ones is known where instructions are selected.
    let widest = match space {
        AddressSpace::Global => widest,
        AddressSpace::Shared => widest.min(16),
    };
    if !ptr.is_single() {
        return Err(bad_operand(operands, 0, "a single pointer"));
    }
    let bytes = u32::from(value.count) * value.elem.bytes();
    if value.elem.bytes() != pointee.bytes() || !bytes.is_power_of_two() || bytes > widest {
        let expected = match widest {
            32 => format!("1, 2, 4, 8, 16 or 32 bytes of {pointee}"),
            _ => format!("1, 2, 4, 8 or 16 bytes of {pointee}"),
        };
        return Err(TypeError::Operand {
            index: 1,
            expected,
            found: value.to_string(),
        });
    }
    match operands.args.get(pred) {
        Some(&p) if p != ThreadType::scalar(Elem::I1) => Err(bad_operand(operands, pred, "i1")),
        _ => Ok(()),
    }
}
