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
//! Of the sizes of a descriptor it counts what they are multiples of: their promises stand beside the logarithms. Strides are
//! numbers without promises and have no class. A launch without marks knows nothing of this.

use std::fmt;

use smallvec::SmallVec;

use crate::ir::function::Asked;
use crate::runtime::api::argument::Arg;
use crate::runtime::api::dtype::DType;
use crate::runtime::specialize::class::{Class, DESCRIPTOR, PLAIN, Specialize, TUPLE};
use crate::runtime::specialize::class_key::Classes;

/// The bits of a descriptor's dimension that are the logarithm of the blocks' extent; larger ones, of which there are no blocks,
/// become this one.
const LOGARITHM: u8 = PLAIN;

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
        /// What the tensor's extents are multiples of.
        divisible: SmallVec<[u32; 5]>,
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
                    write!(f, "{comma}{extent}")?;
                    if divisible > 1 {
                        write!(f, ":{divisible}")?;
                    }
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
            let dim = |&dim: &u8| (1_u64 << (dim & LOGARITHM), Class(dim).divisor());
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
    written(given.iter().map(|given| (given, Specialize::NOTHING)))
}

/// The classes of what each parameter is given, of which each keeps what its parameter may be specialised for.
pub(crate) fn written<'t>(given: impl Iterator<Item = (&'t ArgTree, Specialize)>) -> Classes {
    fn write(given: &ArgTree, allowed: Specialize, classes: &mut Vec<u8>) {
        match given {
            ArgTree::Plain(class) => classes.push(allowed.kept(class.0)),
            ArgTree::Tuple(elements) => {
                classes.extend([TUPLE, elements.len() as u8]);
                elements
                    .iter()
                    .for_each(|element| write(element, allowed, classes));
            }
            ArgTree::Descriptor {
                dtype,
                block,
                divisible,
                nan,
            } => {
                classes.extend([DESCRIPTOR, block.len() as u8, u8::from(*nan)]);
                let dims = block.iter().zip(divisible).map(|(extent, divisible)| {
                    let halves = divisible.trailing_zeros() as u8;
                    let halves = if allowed.alignment { halves } else { 0 };
                    Class(extent.ilog2() as u8).with_halves(halves).0
                });
                classes.extend(dims);
                classes.push(Class::pointer(*dtype).0);
            }
        }
    }
    let mut all = Vec::new();
    given.for_each(|(given, allowed)| write(given, allowed, &mut all));
    Classes::list(&all)
}

/// The classes with the least and with the most promises for which a kernel is the one that was compiled for `classes`, by what
/// was asked for of the function's parameters.
pub(crate) fn bounds(classes: &Classes, asked: &[Asked]) -> [Classes; 2] {
    let all: Vec<u8> = classes.iter().collect();
    let mut bounds = Bounds {
        rest: &all,
        params: asked.iter().copied(),
        least: Vec::new(),
        most: Vec::new(),
    };
    while !bounds.rest.is_empty() {
        bounds.one();
    }
    [&bounds.least, &bounds.most].map(|all| Classes::list(all))
}

struct Bounds<'a, P> {
    rest: &'a [u8],
    /// Of the parameters that are still to come.
    params: P,
    least: Vec<u8>,
    most: Vec<u8>,
}

impl<P: Iterator<Item = Asked>> Bounds<'_, P> {
    /// The next number as it is.
    fn same(&mut self) -> u8 {
        let (&first, rest) = self.rest.split_first().unwrap_or((&0, &[]));
        self.rest = rest;
        self.least.push(first);
        self.most.push(first);
        first
    }

    /// The next class, of a parameter of which so much was asked for.
    fn class(&mut self, asked: Asked) {
        let class = Class(self.same());
        // An author's promise can be more than the class tells.
        let least = class.with_halves(asked.least.min(class.halves()));
        let most = class.with_halves(asked.most.max(class.halves()));
        let bounds = [(&mut self.least, least), (&mut self.most, most)];
        for (all, bound) in bounds {
            all.pop();
            all.push(bound.0);
        }
    }

    fn next_param(&mut self) -> Asked {
        self.params.next().unwrap_or(Asked::NOTHING)
    }

    fn one(&mut self) {
        match self.rest.first() {
            Some(&TUPLE) => {
                self.same();
                for _ in 0..self.same() {
                    self.one();
                }
            }
            Some(&DESCRIPTOR) => {
                self.same();
                let rank = self.same();
                self.same();
                // The address promises the same always.
                self.next_param();
                for _ in 0..rank {
                    let asked = self.next_param();
                    self.class(asked);
                }
                self.same();
                for _ in 1..rank {
                    self.next_param();
                }
            }
            Some(&class) if Class(class).is_constant() => {
                self.same();
            }
            Some(_) => {
                let asked = self.next_param();
                self.class(asked);
            }
            None => {}
        }
    }
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

/// The classes of arguments with marks, by what the parameters may be specialised for; none if there are more or fewer parts than
/// the marks say.
pub(crate) fn classify(args: &[Arg<'_>], allowed: &[Specialize]) -> Option<Classes> {
    let mut classes = Vec::new();
    let mut rest = args;
    for &allowed in allowed {
        if rest.is_empty() {
            break;
        }
        classify_one(&mut rest, allowed, 0, &mut classes)?;
    }
    rest.is_empty().then(|| Classes::list(&classes))
}

fn classify_one(
    rest: &mut &[Arg<'_>],
    allowed: Specialize,
    depth: usize,
    classes: &mut Vec<u8>,
) -> Option<()> {
    let (first, behind) = rest.split_first()?;
    *rest = behind;
    if !first.is_mark() {
        classes.push(allowed.kept(first.class));
        return Some(());
    }
    if first.class == TUPLE {
        let count = u8::try_from(first.bits)
            .ok()
            .filter(|_| depth < MAX_DEPTH)?;
        classes.extend([TUPLE, count]);
        return (0..count).try_for_each(|_| classify_one(rest, allowed, depth + 1, classes));
    }
    let [rank, nan, extents @ ..] = first.bits.to_le_bytes();
    let extents = extents.get(..rank.into())?;
    let parts = 2 * extents.len();
    let base = rest.first()?;
    classes.extend([DESCRIPTOR, rank, nan]);
    let sizes = rest.get(1..=extents.len())?;
    let dims = extents.iter().zip(sizes).map(|(&log, size)| {
        let halves = Class(allowed.kept(size.class)).halves();
        Class(log.min(LOGARITHM)).with_halves(halves).0
    });
    classes.extend(dims);
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
        let all = [Specialize::ALL; 5];
        let classes = classify(&args, &all).expect("the parts are there");
        let given = read(&classes);
        let shown: Vec<String> = given.iter().map(ArgTree::to_string).collect();
        assert_eq!(
            shown,
            [
                "i32:1",
                "(i64, None)",
                "*fp16:16",
                "tensordesc<fp16[4:16, 16:8]>:nan",
                "i32:16"
            ]
        );
        // Who asks for it is not specialised by a descriptor's sizes either.
        let mut others = all;
        others[3] = Specialize::NOTHING;
        let others = classify(&args, &others).expect("the parts are there");
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
            assert!(classify(&args[..fewer], &all).is_none(), "{fewer}");
        }
    }
}
