//! Checks of the `assume_*` ops.

use crate::ir::types::{Elem, TileType};

use super::int;

/// What an `assume_*` op promises of runs along a dimension.
#[derive(Clone, Copy, Debug)]
pub(super) enum Promise {
    /// Elements that begin a run counting up are multiples of the number.
    Multiple,
    /// Runs of that length count up.
    Contiguous,
    /// Runs of that length are equal.
    Constant,
}

/// Whether the promise with one number per dimension holds, else the message. Addresses count in bytes.
pub(super) fn check(
    promise: Promise,
    ty: TileType,
    elems: &[u64],
    values: &[u32],
) -> Result<(), String> {
    let unit = match ty.elem {
        Elem::Ptr(pointee, _) => u64::from(pointee.bytes()),
        Elem::Num(_) | Elem::Map(_) | Elem::Token => 1,
    };
    let next = |x: u64| int::low_bits(ty.elem.bits(), x.wrapping_add(unit));
    for (dim, &value) in values.iter().enumerate() {
        let distance = 1usize << ty.shape.bit_offset(dim);
        for (flat, &x) in elems.iter().enumerate() {
            let coordinate = ty.shape.coordinate(flat as u32, dim);
            // The neighbour before this one, if there is one in this dimension.
            let before = (coordinate > 0).then(|| elems[flat - distance]);
            let inside_run = !coordinate.is_multiple_of(value);
            let holds = match promise {
                Promise::Multiple => {
                    before.is_some_and(|b| next(b) == x) || x.is_multiple_of(u64::from(value))
                }
                Promise::Contiguous => !inside_run || before.is_some_and(|b| next(b) == x),
                Promise::Constant => !inside_run || before == Some(x),
            };
            if !holds {
                let what = match promise {
                    Promise::Multiple => format!("is not a multiple of {value}"),
                    Promise::Contiguous => {
                        format!("does not follow the one before it in a run of {value}")
                    }
                    Promise::Constant => {
                        format!("differs from the one before it in a run of {value}")
                    }
                };
                return Err(format!(
                    "element {flat} ({x:#x}) {what} along dimension {dim}"
                ));
            }
        }
    }
    Ok(())
}
