//! Functions that change shapes.

use super::{Args, Builtin, rows};
use crate::front::diagnostic::Code;
use crate::front::lower::{Lower, Res};
use crate::front::value::Value;
use crate::linear::shape::MAX_RANK;

pub(super) const ROWS: &[Builtin] = rows! { Language;
    "expand_dims"("input axis") expand_dims;
    "unsqueeze"("input dim") |cx, args| expand(cx, args, "dim");
    "broadcast_to"("input *shape") broadcast_to;
    "broadcast"("input other") broadcast;
};

fn expand_dims<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    expand(cx, args, "axis")
}

/// Adds dimensions of extent 1 at the places that the axes have in the result.
fn expand<'m>(cx: &mut Lower<'m>, args: &Args<'m>, name: &str) -> Res<Value<'m>> {
    let t = cx.tensor_arg(args, "input")?;
    let axes = match args.req(name) {
        Value::Tuple(tuple) => tuple.items.clone(),
        single => vec![single],
    };
    let rank = t.shape.rank() + axes.len();
    if rank > MAX_RANK {
        return Err(cx
            .error(
                Code::Shape,
                format!("a block has at most {MAX_RANK} dimensions"),
            )
            .into());
    }
    let mut places = Vec::new();
    for axis in axes {
        let number = axis
            .as_const()
            .and_then(|c| crate::front::constant::as_int(&c));
        let Some(number) = number else {
            let message = format!("an axis is a constant, found {}", axis.describe());
            return Err(cx.error(Code::Constant, message).into());
        };
        places.push(cx.axis(number, rank)?);
    }
    places.sort_unstable();
    if places.windows(2).any(|w| w[0] == w[1]) {
        return Err(cx.error(Code::Value, "an axis is given twice").into());
    }
    let mut value = t.value;
    for place in places {
        value = cx.b.expand_dims(value, place);
    }
    Ok(cx.block(value, t.ty))
}

fn broadcast_to<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let t = cx.tensor_arg(args, "input")?;
    let shape = cx.shape_of(&Value::tuple(args.rest_items()))?;
    cx.broadcast_to(t, shape).map(Value::Tensor)
}

fn broadcast<'m>(cx: &mut Lower<'m>, args: &Args<'m>) -> Res<Value<'m>> {
    let (x, y) = (cx.tensor_arg(args, "input")?, cx.tensor_arg(args, "other")?);
    let shape = cx.common_shape(x.shape, y.shape)?;
    let x = cx.broadcast_to(x, shape)?;
    let y = cx.broadcast_to(y, shape)?;
    Ok(Value::tuple(vec![Value::Tensor(x), Value::Tensor(y)]))
}
