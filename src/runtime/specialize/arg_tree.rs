//! What each parameter of a kernel is given: the classes of arguments, read as plain ones, tuples and descriptors.
//!
//! Among arguments a tuple or a descriptor is a **mark** followed by its parts ([`Argument`](crate::runtime::Argument)). Among
//! classes, which variants are found by, it is
//!
//! ```text
//! plain        its class
//! tuple        TUPLE, number of elements, elements
//! descriptor   DESCRIPTOR, rank, 1 for padding with NaN, logarithms of the blocks' extents, class of the address
//! ```
//!
//! Of the sizes of a descriptor it counts whether they are multiples of 16: [`SIXTEEN`] stands beside the logarithms. Strides
//! are numbers without promises and have no class. A launch without marks knows
//! nothing of this.

use std::fmt;

use smallvec::SmallVec;

use crate::runtime::api::argument::{Arg, Class, DESCRIPTOR, DType, PLAIN, SIXTEEN, TUPLE};
use crate::runtime::specialize::table::Classes;

/// The bits of a descriptor's dimension that are the logarithm of the blocks' extent.
const LOGARITHM: u8 = 0x3f;

/// Tuples in tuples.
pub(super) const MAX_DEPTH: usize = 16;

/// What a parameter is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ArgTree {
    /// One argument, or none.
    Plain(Class),
    /// Several.
    Tuple(Vec<ArgTree>),
    /// A tensor.
    Descriptor {
        /// Of the numbers in it.
        dtype: DType,
        /// Extents of its blocks.
        block: SmallVec<[u64; 5]>,
        /// Along which dimensions the tensor's extent is a multiple of 16.
        divisible: SmallVec<[bool; 5]>,
        /// Whether NaN is read outside.
        nan: bool,
    },
}

impl ArgTree {
    /// Appends the parameters of the PTX entry; `argument` is the next one of the launch.
    fn places(&self, param: usize, argument: &mut usize, found: &mut Vec<ParamOrigin>) {
        let place = |argument, class| ParamOrigin {
            param,
            argument,
            class,
        };
        // That of a plain one, else the mark, which is no parameter.
        let first = *argument;
        *argument += 1;
        match self {
            ArgTree::Plain(class) if class.is_constant() => {}
            ArgTree::Plain(class) => found.push(place(first, Some(*class))),
            ArgTree::Tuple(elements) => {
                for element in elements {
                    element.places(param, argument, found);
                }
            }
            ArgTree::Descriptor { block, .. } => {
                let parts = *argument..*argument + 2 * block.len();
                *argument = parts.end;
                found.extend(parts.map(|at| place(at, None)));
            }
        }
    }

    /// The plain class, where it is one.
    pub(crate) fn plain(&self) -> Option<Class> {
        match self {
            ArgTree::Plain(class) => Some(*class),
            ArgTree::Tuple(_) | ArgTree::Descriptor { .. } => None,
        }
    }
}

impl fmt::Display for ArgTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgTree::Plain(class) => class.fmt(f),
            ArgTree::Tuple(elements) => {
                f.write_str("(")?;
                for (i, element) in elements.iter().enumerate() {
                    write!(f, "{}{element}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str(")")
            }
            ArgTree::Descriptor {
                dtype,
                block,
                divisible,
                nan,
            } => {
                write!(f, "tensordesc<{dtype}[")?;
                for (i, (extent, &divisible)) in block.iter().zip(divisible).enumerate() {
                    let comma = if i == 0 { "" } else { ", " };
                    let promise = if divisible { ":16" } else { "" };
                    write!(f, "{comma}{extent}{promise}")?;
                }
                f.write_str(if *nan { "]>:nan" } else { "]>" })
            }
        }
    }
}

/// What each parameter is given, by the classes.
pub(crate) fn read(classes: &Classes) -> Vec<ArgTree> {
    let all: Vec<u8> = classes.iter().collect();
    let mut rest = all.as_slice();
    let mut given = Vec::new();
    while !rest.is_empty() {
        given.push(read_one(&mut rest));
    }
    given
}

fn read_one(rest: &mut &[u8]) -> ArgTree {
    let mut next = || {
        let (&first, behind) = rest.split_first().unwrap_or((&0, &[]));
        *rest = behind;
        first
    };
    match next() {
        TUPLE => {
            let count = next();
            ArgTree::Tuple((0..count).map(|_| read_one(rest)).collect())
        }
        DESCRIPTOR => {
            let (rank, nan) = (next(), next() != 0);
            let dims = (0..rank).map(|_| next());
            let dims: SmallVec<[u8; 5]> = dims.collect();
            let dim = |&dim: &u8| (1_u64 << (dim & LOGARITHM), dim & SIXTEEN != 0);
            let (block, divisible) = dims.iter().map(dim).unzip();
            ArgTree::Descriptor {
                // Written below from a class that has one.
                dtype: Class(next()).dtype().unwrap_or(DType::U8),
                block,
                divisible,
                nan,
            }
        }
        class => ArgTree::Plain(Class(class)),
    }
}

/// The same without what values promise.
pub(crate) fn plain(classes: &Classes) -> Classes {
    if let Some(plain) = classes.masked(PLAIN, |class| class == TUPLE || class == DESCRIPTOR) {
        return plain;
    }
    let given = read(classes);
    written(given.iter().map(|given| (given, PLAIN)))
}

/// The classes of what each parameter is given, of which each keeps the bits of a mask.
pub(crate) fn written<'t>(given: impl Iterator<Item = (&'t ArgTree, u8)>) -> Classes {
    fn write(given: &ArgTree, mask: u8, classes: &mut Vec<u8>) {
        match given {
            ArgTree::Plain(class) => classes.push(class.0 & mask),
            ArgTree::Tuple(elements) => {
                classes.extend([TUPLE, elements.len() as u8]);
                elements
                    .iter()
                    .for_each(|element| write(element, mask, classes));
            }
            ArgTree::Descriptor {
                dtype,
                block,
                divisible,
                nan,
            } => {
                classes.extend([DESCRIPTOR, block.len() as u8, u8::from(*nan)]);
                let promise = |&divisible: &bool| if divisible { SIXTEEN & mask } else { 0 };
                let dims = block.iter().zip(divisible);
                classes.extend(
                    dims.map(|(extent, divisible)| extent.ilog2() as u8 | promise(divisible)),
                );
                classes.push(Class::pointer(*dtype).0);
            }
        }
    }
    let mut all = Vec::new();
    given.for_each(|(given, mask)| write(given, mask, &mut all));
    Classes::list(&all)
}

/// Where a parameter of the PTX entry comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParamOrigin {
    /// Which parameter of the kernel, of those that take an argument.
    pub(crate) param: usize,
    /// Which argument of the launch, marks counted.
    pub(crate) argument: usize,
    /// The argument's class; parts of descriptors have none.
    pub(crate) class: Option<Class>,
}

/// Where the parameters of the PTX entry come from, in order.
pub(crate) fn places(given: &[ArgTree]) -> Vec<ParamOrigin> {
    let (mut argument, mut found) = (0, Vec::new());
    for (param, given) in given.iter().enumerate() {
        given.places(param, &mut argument, &mut found);
    }
    found
}

/// The classes of arguments with marks, by the masks of the parameters; none if there are more or fewer parts than the
/// marks say.
pub(crate) fn classify(args: &[Arg<'_>], masks: impl Iterator<Item = u8>) -> Option<Classes> {
    let mut classes = Vec::new();
    let mut rest = args;
    for mask in masks {
        if rest.is_empty() {
            break;
        }
        classify_one(&mut rest, mask, 0, &mut classes)?;
    }
    rest.is_empty().then(|| Classes::list(&classes))
}

fn classify_one(
    rest: &mut &[Arg<'_>],
    mask: u8,
    depth: usize,
    classes: &mut Vec<u8>,
) -> Option<()> {
    let (first, behind) = rest.split_first()?;
    *rest = behind;
    if !first.is_mark() {
        classes.push(first.class & mask);
        return Some(());
    }
    if first.class == TUPLE {
        let count = u8::try_from(first.bits)
            .ok()
            .filter(|_| depth < MAX_DEPTH)?;
        classes.extend([TUPLE, count]);
        return (0..count).try_for_each(|_| classify_one(rest, mask, depth + 1, classes));
    }
    let [rank, nan, extents @ ..] = first.bits.to_le_bytes();
    let extents = extents.get(..rank.into())?;
    let parts = 2 * extents.len();
    let base = rest.first()?;
    classes.extend([DESCRIPTOR, rank, nan]);
    let sizes = rest.get(1..=extents.len())?;
    let divisible = |size: &Arg<'_>| size.class & mask & SIXTEEN;
    let dims = extents.iter().zip(sizes);
    classes.extend(dims.map(|(log, size)| log & LOGARITHM | divisible(size)));
    classes.push(Class(base.class).plain().0);
    *rest = rest.get(parts..)?;
    Some(())
}

/// The arguments of each parameter.
pub(crate) fn split<'s, 'a>(mut args: &'s [Arg<'a>]) -> Vec<&'s [Arg<'a>]> {
    let mut all = Vec::new();
    while !args.is_empty() {
        let (one, rest) = args.split_at(length(args));
        all.push(one);
        args = rest;
    }
    all
}

/// How many of these arguments the first parameter takes.
fn length(args: &[Arg<'_>]) -> usize {
    // Elements that are still to come.
    let (mut at, mut open) = (0, 1);
    while open > 0
        && let Some(arg) = args.get(at)
    {
        open -= 1;
        at += 1;
        if arg.is_mark() && arg.class == TUPLE {
            open += arg.bits.min(args.len() as u64) as usize;
        } else if arg.is_mark() {
            at += 2 * (arg.bits & 0xff) as usize;
        }
    }
    at.min(args.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::api::argument::ArgList;
    use crate::runtime::{Descriptor, NONE, Pointer};

    #[test]
    fn classes_are_read_as_they_are_written() {
        let pointer = Pointer::null(DType::F16);
        let empty = Descriptor::new(pointer, &[0, 40], &[40, 1], &[4, 16]);
        let empty = empty.expect("it needs no memory").pad_with_nan();
        let mut args = ArgList::new();
        args.push(1);
        args.push((7_i64, NONE));
        args.push(pointer);
        args.push(empty);
        args.push(16);
        let args = args.into_vec();
        let masks = [0xff, 0xff, 0x7f, 0xff, 0xff];
        let classes = classify(&args, masks.into_iter()).expect("the parts are there");
        let given = read(&classes);
        let shown: Vec<String> = given.iter().map(ArgTree::to_string).collect();
        assert_eq!(
            shown,
            [
                "i32:1",
                "(i64, None)",
                "*fp16:16",
                "tensordesc<fp16[4:16, 16]>:nan",
                "i32:16"
            ]
        );
        // Who asks for it is not specialised by a descriptor's sizes either.
        let others = [0xff, 0xff, 0x7f, !SIXTEEN, 0xff];
        let others = classify(&args, others.into_iter()).expect("the parts are there");
        assert_eq!(read(&others)[3].to_string(), "tensordesc<fp16[4, 16]>:nan");
        assert_eq!(read(&plain(&classes))[3], read(&others)[3]);
        // One is a constant, and so is what is absent; marks are no arguments.
        let at = places(&given)
            .into_iter()
            .map(|place| (place.param, place.argument));
        let at: Vec<(usize, usize)> = at.collect();
        assert_eq!(
            at,
            [(1, 2), (2, 4), (3, 6), (3, 7), (3, 8), (3, 9), (4, 10)]
        );
        let lengths: Vec<usize> = split(&args).iter().map(|one| one.len()).collect();
        assert_eq!(lengths, [1, 3, 1, 5, 1]);
        for fewer in 6..10 {
            assert!(
                classify(&args[..fewer], masks.into_iter()).is_none(),
                "{fewer}"
            );
        }
    }
}
