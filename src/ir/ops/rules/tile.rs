//! Type rules of the tile level.

use smallvec::smallvec;

use super::{
    Operands, TypeError, Types, bad_attribute, bad_operand, bad_result, block_rmw_takes, cas_takes,
    engine_adds, given_one, shared,
};
use crate::ir::attrs::{AttrKind, Attrs, RmwOp};
use crate::ir::level::Tile;
use crate::ir::ops::{Opcode, TileOp, TypeRule};
use crate::ir::types::{AddressSpace, Elem, Scalar, TileType, ValueType};
use crate::linear_layout::shape::Shape;

/// The result types of a tile op, or why its operands do not fit.
pub(crate) fn result_types(
    op: TileOp,
    operands: &Operands<'_, Tile>,
) -> Result<Types<Tile>, TypeError> {
    super::check_shape(op, operands)?;
    let rule = op.info().rule;
    if let Some(result) = shared(rule, operands) {
        return result;
    }
    let args = operands.args;
    match rule {
        // Grid axes are 0 to 2.
        TypeRule::I32Scalar => match operands.axis() {
            Some(0..=2) | None => Ok(smallvec![TileType::scalar(Elem::I32)]),
            Some(_) => Err(bad_attribute(AttrKind::Axis, "must be 0, 1 or 2")),
        },
        // A stated block of rank 1 of i32, whose last number fits.
        TypeRule::Arange => {
            let ty = given_one(operands)?;
            if ty.elem != Elem::I32 || ty.shape.rank() != 1 {
                return Err(bad_result(operands, "an i32 block of rank 1"));
            }
            let start = operands.start().copied().unwrap_or(0);
            match start.checked_add(ty.shape.elements() as i32 - 1) {
                Some(_) => Ok(smallvec![ty]),
                None => Err(bad_attribute(
                    AttrKind::Start,
                    "makes the last number exceed i32",
                )),
            }
        }
        // Each extent stays or goes from 1 to any.
        TypeRule::Broadcast => {
            let (from, to) = (args[0], given_one(operands)?);
            let grows = |(a, b): (u64, u64)| a == b || a == 1;
            let fits = from.elem == to.elem
                && from.shape.rank() == to.shape.rank()
                && from.shape.extents().zip(to.shape.extents()).all(grows);
            if fits {
                Ok(smallvec![to])
            } else {
                Err(bad_result(
                    operands,
                    format!("{from} with extents of 1 grown"),
                ))
            }
        }
        // A dimension of extent 1 more; a scalar becomes a block of rank 1. The layout may be stated.
        TypeRule::ExpandDims => {
            let from = args[0];
            let axis = usize::from(operands.axis().copied().unwrap_or(0));
            if axis > from.shape.rank() {
                return Err(bad_attribute(
                    AttrKind::Axis,
                    format!("must be at most the rank, {}", from.shape.rank()),
                ));
            }
            let shape = from.shape.with_unit_dim(axis).map_err(|_| {
                bad_operand(operands, 0, "a block with a dimension to spare".to_owned())
            })?;
            Ok(smallvec![stated_layout(operands, from.with_shape(shape))])
        }
        TypeRule::Reshape => {
            let (from, to) = (args[0], given_one(operands)?);
            let fits =
                from.elem == to.elem && from.shape.log2_elements() == to.shape.log2_elements();
            if fits {
                Ok(smallvec![to])
            } else {
                let count = from.shape.elements();
                let expected = format!("{count} elements of type {}", from.elem);
                Err(bad_result(operands, expected))
            }
        }
        TypeRule::Permute => permute(operands),
        // Two blocks of one type; scalars become a block of rank 1.
        TypeRule::Join => {
            let from = args[0];
            if args[1].without_layout() != from.without_layout() {
                return Err(bad_operand(operands, 1, from.to_string()));
            }
            let mut extents = from.shape.log2().to_vec();
            extents.push(1);
            let shape = Shape::from_log2(&extents);
            let shape = shape.map_err(|e| bad_operand(operands, 0, e.to_string()))?;
            Ok(smallvec![stated_layout(operands, from.with_shape(shape))])
        }
        // A block whose last extent is 2; one of rank 1 becomes a scalar.
        TypeRule::Split => {
            let from = args[0];
            let last = from.shape.rank().checked_sub(1);
            let Some(last) = last.filter(|&d| from.shape.extent(d) == 2) else {
                return Err(bad_operand(operands, 0, "a block whose last extent is 2"));
            };
            if operands.index().is_some_and(|&i| i > 1) {
                return Err(bad_attribute(AttrKind::Index, "must be 0 or 1"));
            }
            let half = from.with_shape(from.shape.without_dim(last));
            Ok(smallvec![stated_layout(operands, half)])
        }
        // A block and integers of its extents but for the axis.
        TypeRule::Gather => {
            let (from, index) = (args[0], args[1]);
            let axis = usize::from(operands.axis().copied().unwrap_or(0));
            if axis >= from.shape.rank() {
                let problem = format!("must be below the rank, {}", from.shape.rank());
                return Err(bad_attribute(AttrKind::Axis, problem));
            }
            let fits = index.shape.rank() == from.shape.rank()
                && index.shape.without_dim(axis) == from.shape.without_dim(axis);
            if !fits || !index.elem.is_int() || index.elem == Elem::I1 {
                let expected =
                    format!("integers of 8 bits or more of the extents of {from} but for the axis");
                return Err(bad_operand(operands, 1, expected));
            }
            Ok(smallvec![index.with_elem(from.elem)])
        }
        // A block of integers of 8 bits or more; i32 of rank 1 is stated.
        TypeRule::Histogram => {
            let (from, to) = (args[0], given_one(operands)?);
            if from.is_scalar() || !from.elem.is_int() || from.elem == Elem::I1 {
                return Err(bad_operand(
                    operands,
                    0,
                    "a block of integers of 8 bits or more",
                ));
            }
            if to.shape.rank() != 1 || to.elem != Elem::I32 {
                return Err(bad_result(operands, "i32 of one dimension"));
            }
            Ok(smallvec![to])
        }
        TypeRule::Dot => dot(operands),
        // Pointers, an index, and truth values of the pointers' extent.
        TypeRule::AsyncCopy => {
            pointed_to(operands)?;
            index_fits(operands, 1)?;
            mask_fits(operands, 2)?;
            Ok(smallvec![TileType::scalar(Elem::Token)])
        }
        // A pointer, a truth value, and i64: an extent for each dimension of the box and a stride for each but the last.
        TypeRule::TensorMap => {
            let Elem::Ptr(pointee, AddressSpace::Global) = args[0].elem else {
                return Err(bad_operand(operands, 0, "a pointer"));
            };
            if !args[0].is_scalar() {
                return Err(bad_operand(operands, 0, "a pointer"));
            }
            if args[1] != TileType::scalar(Elem::I1) {
                return Err(bad_operand(operands, 1, "i1"));
            }
            let numbers = &args[2..];
            if let Some(i) = numbers
                .iter()
                .position(|&t| t != TileType::scalar(Elem::I64))
            {
                return Err(bad_operand(operands, 2 + i, "i64"));
            }
            let boxes = operands.values().map_or(&[][..], |v| v);
            let rank = boxes.len();
            if !(1..=MAX_MAP_RANK).contains(&rank) || numbers.len() != 2 * rank - 1 {
                return Err(bad_attribute(
                    AttrKind::Values,
                    "must have one to five numbers, of a dimension each, all but the last of which have a stride",
                ));
            }
            if boxes.contains(&0) {
                return Err(bad_attribute(AttrKind::Values, "must be above zero"));
            }
            Ok(smallvec![TileType::scalar(Elem::Map(pointee))])
        }
        // A map and coordinates; a block of its elements is stated.
        TypeRule::TensorLoad => {
            let elem = map_fits(operands)?;
            coordinates_fit(operands, 1)?;
            let ty = given_one(operands)?;
            if ty.is_scalar() || ty.elem != Elem::Num(elem) || ty.is_shared() {
                return Err(bad_result(operands, format!("a block of {elem}")));
            }
            Ok(smallvec![ty])
        }
        // A map, an index, a truth value and coordinates.
        TypeRule::TensorCopy => {
            map_fits(operands)?;
            index_fits(operands, 1)?;
            truth_fits(operands, 2)?;
            coordinates_fit(operands, 3).map(|()| smallvec![])
        }
        // A map, a block of its elements, and coordinates.
        TypeRule::TensorStore => {
            let elem = map_fits(operands)?;
            let block = args[1];
            if block.is_scalar() || block.elem != Elem::Num(elem) || block.is_shared() {
                return Err(bad_operand(operands, 1, format!("a block of {elem}")));
            }
            if operands.rmw().is_some_and(|&rmw| !engine_adds(rmw, elem)) {
                let problem = "is a sum of i32, f16, bf16 or f32".to_owned();
                let key = "rmw";
                return Err(TypeError::BadAttribute { key, problem });
            }
            coordinates_fit(operands, 2).map(|()| smallvec![])
        }
        // An index and a truth value.
        TypeRule::MbarExpect => {
            index_fits(operands, 0)?;
            truth_fits(operands, 1).map(|()| smallvec![])
        }
        // An index and a parity.
        TypeRule::MbarWait => {
            index_fits(operands, 0)?;
            index_fits(operands, 1).map(|()| smallvec![])
        }
        // An index and a truth value.
        TypeRule::MbarArrive | TypeRule::Release => {
            index_fits(operands, 0)?;
            truth_fits(operands, 1).map(|()| smallvec![])
        }
        TypeRule::Producer => Ok(smallvec![]),
        TypeRule::MbarWaitFor => {
            index_fits(operands, 0)?;
            index_fits(operands, 1).map(|()| smallvec![TileType::scalar(Elem::I1)])
        }
        TypeRule::SlotPut => index_fits(operands, 0).map(|()| smallvec![]),
        // Tokens.
        TypeRule::AsyncCommit => {
            all_tokens(operands).map(|()| smallvec![TileType::scalar(Elem::Token)])
        }
        TypeRule::AsyncWait => all_tokens(operands).map(|()| smallvec![]),
        // An index; a block of numbers in shared memory is stated.
        TypeRule::SharedView => {
            index_fits(operands, 0)?;
            let ty = given_one(operands)?;
            if ty.is_scalar() || ty.elem.scalar().is_none() || !ty.is_shared() {
                return Err(bad_result(operands, "a block of numbers in shared memory"));
            }
            Ok(smallvec![ty])
        }
        // As `dot`, the left matrix anywhere and the right one in shared memory; the sum and a token.
        TypeRule::DotStart => {
            if !args[1].is_shared() {
                return Err(bad_operand(operands, 1, "a block in shared memory"));
            }
            let found = dot(operands)?;
            let token = TileType::scalar(Elem::Token);
            Ok(found.into_iter().chain([token]).collect())
        }
        // The sum, and a token.
        TypeRule::DotDone => Ok(smallvec![args[0], TileType::scalar(Elem::Token)]),
        // A sum and a token.
        TypeRule::DotSum => {
            if args[1] != TileType::scalar(Elem::Token) {
                return Err(bad_operand(operands, 1, "a token"));
            }
            Ok(smallvec![args[0]])
        }
        // A block of numbers, and an index.
        TypeRule::SharedStore => {
            if args[0].is_scalar() || args[0].elem.scalar().is_none() {
                return Err(bad_operand(operands, 0, "a block of numbers"));
            }
            index_fits(operands, 1).map(|()| smallvec![])
        }
        // An index; a block of numbers is stated.
        TypeRule::SharedLoad => {
            index_fits(operands, 0)?;
            let ty = given_one(operands)?;
            if ty.is_scalar() || ty.elem.scalar().is_none() {
                return Err(bad_result(operands, "a block of numbers"));
            }
            Ok(smallvec![ty])
        }
        // The type with another layout.
        TypeRule::ConvertLayout => {
            let (from, to) = (args[0], given_one(operands)?);
            if from.without_layout() == to.without_layout()
                && from.layout.is_some()
                && to.layout.is_some()
            {
                Ok(smallvec![to])
            } else {
                Err(bad_result(operands, format!("{from} with another layout")))
            }
        }
        // An integer or pointer with one power of two per dimension (a scalar has one number).
        TypeRule::Hint => {
            let ty = args[0];
            if !ty.elem.is_int() && !ty.elem.is_ptr() {
                return Err(bad_operand(operands, 0, "an integer or a pointer"));
            }
            let values = operands.values().map_or(&[][..], |v| v);
            if values.len() != ty.shape.rank().max(1) {
                return Err(bad_attribute(
                    AttrKind::Values,
                    "must have one number per dimension",
                ));
            }
            if values.iter().any(|v| !v.is_power_of_two()) {
                return Err(bad_attribute(AttrKind::Values, "must be powers of two"));
            }
            Ok(smallvec![ty])
        }
        // Pointers, then truth values and fallback elements of the extent.
        TypeRule::Load => {
            let value = pointed_to(operands)?;
            mask_fits(operands, 1)?;
            match args.get(2) {
                Some(&other) if other != value => Err(bad_operand(operands, 2, value.to_string())),
                _ => Ok(smallvec![value]),
            }
        }
        // Pointers, elements of the extent, then truth values.
        TypeRule::Store => {
            let value = pointed_to(operands)?;
            if args[1] != value {
                return Err(bad_operand(operands, 1, value.to_string()));
            }
            mask_fits(operands, 2).map(|()| smallvec![])
        }
        // Pointers, elements of the extent that `rmw` takes, then truth values; what the elements were results.
        TypeRule::AtomicRmw => {
            let value = pointed_to(operands)?;
            if args[1] != value {
                return Err(bad_operand(operands, 1, value.to_string()));
            }
            let rmw = operands.rmw().copied().unwrap_or(RmwOp::Add);
            block_rmw_takes(rmw, value.elem).map_err(|e| bad_operand(operands, 1, e))?;
            mask_fits(operands, 2).map(|()| smallvec![value])
        }
        // Pointers, and twice elements of the extent of 16 bits or more.
        TypeRule::AtomicCas => {
            let value = pointed_to(operands)?;
            if let Some(i) = args[1..].iter().position(|&t| t != value) {
                return Err(bad_operand(operands, 1 + i, value.to_string()));
            }
            cas_takes(value.elem).map_err(|e| bad_operand(operands, 1, e))?;
            Ok(smallvec![value])
        }
        TypeRule::Reduce => reduce(operands),
        TypeRule::Scan => scan(operands),
        // Three integers of one type, i32 or i64; the carried values are the results.
        TypeRule::For => {
            let bounds = &args[..3];
            if !bounds[0].is_scalar() || !matches!(bounds[0].elem, Elem::I32 | Elem::I64) {
                return Err(bad_operand(operands, 0, "i32 or i64"));
            }
            match bounds.iter().position(|&t| t != bounds[0]) {
                Some(i) => Err(bad_operand(operands, i, bounds[0].to_string())),
                None => Ok(args[3..].into()),
            }
        }
        // The results are what the first region passes on, which is stated.
        TypeRule::While => Ok(operands.given.into()),
        // A scalar truth value; the results are stated.
        TypeRule::If => {
            if args[0] == TileType::scalar(Elem::I1) {
                Ok(operands.given.into())
            } else {
                Err(bad_operand(operands, 0, "i1"))
            }
        }
        _ => Err(bad_result(operands, "of an op of this level")),
    }
}

/// `ty` with the layout of the one stated result, if there is one and it is for the same block.
fn stated_layout(operands: &Operands<'_, Tile>, ty: TileType) -> TileType {
    match operands.given {
        [given] if given.without_layout() == ty => *given,
        _ => ty,
    }
}

/// The type that the pointers of operand 1 point to, of their extent.
fn pointed_to(operands: &Operands<'_, Tile>) -> Result<TileType, TypeError> {
    match operands.args[0].elem {
        Elem::Ptr(pointee, AddressSpace::Global) => {
            Ok(operands.args[0].with_elem(Elem::Num(pointee)))
        }
        _ => Err(bad_operand(operands, 0, "a pointer to device memory")),
    }
}

/// The mask at `index`, if there is one, has the extent of the pointers.
fn mask_fits(operands: &Operands<'_, Tile>, index: usize) -> Result<(), TypeError> {
    let expected = operands.args[0].with_elem(Elem::I1);
    match operands.args.get(index) {
        Some(&mask) if mask != expected => Err(bad_operand(operands, index, expected.to_string())),
        _ => Ok(()),
    }
}

/// `dims` names each dimension once.
fn permute(operands: &Operands<'_, Tile>) -> Result<Types<Tile>, TypeError> {
    let from = operands.args[0];
    let dims = operands.dims().map_or(&[][..], |d| d);
    let mut sorted = dims.to_vec();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..from.shape.rank() as u32) {
        return Err(bad_attribute(
            AttrKind::Dims,
            "must name each dimension once",
        ));
    }
    let extents: Vec<u8> = dims
        .iter()
        .map(|&d| from.shape.log2()[d as usize])
        .collect();
    let shape = Shape::from_log2(&extents).map_err(|e| bad_operand(operands, 0, e.to_string()))?;
    Ok(smallvec![stated_layout(operands, from.with_shape(shape))])
}

/// Most dimensions of a tensor that the copy engine knows.
const MAX_MAP_RANK: usize = 5;

/// The first operand is a map, of what it says.
fn map_fits(operands: &Operands<'_, Tile>) -> Result<Scalar, TypeError> {
    match operands.args[0].elem {
        Elem::Map(elem) if operands.args[0].is_scalar() => Ok(elem),
        _ => Err(bad_operand(operands, 0, "a tensor map")),
    }
}

/// The operands from `first` on are coordinates.
fn coordinates_fit(operands: &Operands<'_, Tile>, first: usize) -> Result<(), TypeError> {
    (first..operands.args.len()).try_for_each(|index| index_fits(operands, index))
}

/// The operand at `index` is a truth value.
fn truth_fits(operands: &Operands<'_, Tile>, index: usize) -> Result<(), TypeError> {
    if operands.args[index] == TileType::scalar(Elem::I1) {
        Ok(())
    } else {
        Err(bad_operand(operands, index, "i1"))
    }
}

/// The operand at `index` is an i32.
fn index_fits(operands: &Operands<'_, Tile>, index: usize) -> Result<(), TypeError> {
    if operands.args[index] == TileType::scalar(Elem::I32) {
        Ok(())
    } else {
        Err(bad_operand(operands, index, "i32"))
    }
}

fn all_tokens(operands: &Operands<'_, Tile>) -> Result<(), TypeError> {
    match operands.args.iter().position(|t| t.elem != Elem::Token) {
        Some(i) => Err(bad_operand(operands, i, "token")),
        None => Ok(()),
    }
}

/// Matrices that can be multiplied, and what their product is added to, whose type results.
fn dot(operands: &Operands<'_, Tile>) -> Result<Types<Tile>, TypeError> {
    let &[a, b, acc] = operands.args else {
        return Err(bad_operand(operands, 0, "three operands"));
    };
    let rank = a.shape.rank();
    if !(2..=3).contains(&rank) {
        return Err(bad_operand(operands, 0, "a block of rank 2 or 3"));
    }
    let (rows, columns) = (rank - 2, rank - 1);
    let extents = |x: TileType| x.shape.log2().to_vec();
    let (left, right) = (extents(a), extents(b));
    let batch = left.get(..rows).unwrap_or_default();
    if right.len() != rank || right[..rows] != *batch || right[rows] != left[columns] {
        let expected = format!(
            "a block of rank {rank} with {} rows",
            a.shape.extent(columns)
        );
        return Err(bad_operand(operands, 1, expected));
    }
    let mut result = left.clone();
    result[columns] = right[columns];
    let shape = Shape::from_log2(&result).map_err(|e| bad_operand(operands, 2, e.to_string()))?;
    if acc.shape != shape {
        return Err(bad_operand(operands, 2, format!("a block of [{shape}]")));
    }
    let is_eight = |e: Elem| e.is_float() && e.bits() == 8;
    let sums: &[Elem] = match (a.elem, b.elem) {
        (Elem::F16, Elem::F16) => &[Elem::F32, Elem::F16],
        (x, y) if is_eight(x) && is_eight(y) => &[Elem::F32, Elem::F16],
        (Elem::BF16, Elem::BF16) | (Elem::F32, Elem::F32) => &[Elem::F32],
        (Elem::F64, Elem::F64) => &[Elem::F64],
        (Elem::I8, Elem::I8) | (Elem::I32, Elem::I32) => &[Elem::I32],
        _ => &[],
    };
    if sums.is_empty() {
        let expected = "i8, i32 or floats like the first operand's".to_owned();
        return Err(bad_operand(operands, 1, expected));
    }
    if !sums.contains(&acc.elem) {
        let names: Vec<String> = sums.iter().map(ToString::to_string).collect();
        return Err(bad_operand(operands, 2, names.join(" or ")));
    }
    Ok(smallvec![acc])
}

/// Blocks of one extent and layout, which the results have too. The digits of `tree` are those of the axis.
fn scan(operands: &Operands<'_, Tile>) -> Result<Types<Tile>, TypeError> {
    let first = along_axis(operands)?;
    let axis = usize::from(operands.axis().copied().unwrap_or(0));
    if let Some(tree) = operands.tree() {
        let digits = tree.iter().map(|n| n % 32);
        let positive = tree.iter().all(|&n| n < 64 && n % 32 > 0);
        if !positive || digits.sum::<u32>() != u32::from(first.shape.log2()[axis]) {
            return Err(bad_attribute(
                AttrKind::Tree,
                "must give digits, each of 1 bit or more, that make up the index along the axis",
            ));
        }
    }
    Ok(operands.args.into())
}

/// The first of at least one operand, all of one extent, which has the axis.
fn along_axis(operands: &Operands<'_, Tile>) -> Result<TileType, TypeError> {
    let Some(&first) = operands.args.first() else {
        return Err(TypeError::OperandCount {
            expected: "1 or more".into(),
            found: 0,
        });
    };
    let axis = usize::from(operands.axis().copied().unwrap_or(0));
    if axis >= first.shape.rank() {
        return Err(bad_attribute(
            AttrKind::Axis,
            format!("must be below the rank, {}", first.shape.rank()),
        ));
    }
    if let Some(i) = operands.args.iter().position(|t| !t.same_extent(&first)) {
        return Err(bad_operand(
            operands,
            i,
            format!("of the extent of {first}"),
        ));
    }
    Ok(first)
}

/// Blocks of one extent; each result lacks the axis. `order` names each bit of the index along the axis once.
fn reduce(operands: &Operands<'_, Tile>) -> Result<Types<Tile>, TypeError> {
    let first = along_axis(operands)?;
    let axis = usize::from(operands.axis().copied().unwrap_or(0));
    if let Some(order) = operands.order() {
        let mut bits = order.to_vec();
        bits.sort_unstable();
        if !bits
            .iter()
            .copied()
            .eq(0..u32::from(first.shape.log2()[axis]))
        {
            return Err(bad_attribute(
                AttrKind::Order,
                "must name each bit of the index along the axis once",
            ));
        }
    }
    let shape: Shape = first.shape.without_dim(axis);
    let result = |(i, t): (usize, &TileType)| {
        let ty = t.with_shape(shape);
        match operands.given.get(i) {
            Some(given) if given.without_layout() == ty => *given,
            _ => ty,
        }
    };
    Ok(operands.args.iter().enumerate().map(result).collect())
}
