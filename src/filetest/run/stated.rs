//! What a line states of a buffer: its elements, or a file that another program left.

use super::compare::{Bound, Distances, compare_buffers, is_undefined};
use super::exec::{ArgValue, Argument, Contents};
use super::parse_line::{Expect, RunLine};
use super::{Setup, bound_of, files};
use crate::ir::types::Elem;
use crate::text::number;
use crate::text::quote::quoted;

/// What stands in a list for an element that nobody wrote, and for one that may be anything.
const UNWRITTEN: &str = "poison";
const ANY: &str = "any";

/// The name of a buffer that an `expect` states.
pub(super) fn name_of(expect: &Expect) -> Option<&str> {
    match expect {
        Expect::Values(name, _) | Expect::File(name, _) => Some(name),
        Expect::Within(..) | Expect::Error(_) | Expect::Printed(_) => None,
    }
}

/// The buffers as an `expect` states one of them, beside the others as they are found.
pub(super) fn buffers(
    expect: &Expect,
    args: &[Argument],
    found: &[Option<Contents>],
    setup: &Setup<'_>,
) -> Result<Vec<Option<Contents>>, String> {
    let mut buffers = found.to_vec();
    for (arg, contents) in args.iter().zip(&mut buffers) {
        let ArgValue::Buffer { scalar, .. } = &arg.it else {
            continue;
        };
        if name_of(expect) != Some(&arg.name) {
            continue;
        }
        let stated: Vec<Option<u64>> = match expect {
            Expect::Values(name, texts) => {
                let found = contents.as_ref();
                let element = |(i, text): (usize, &String)| match text.as_str() {
                    UNWRITTEN => Ok(None),
                    ANY => {
                        let found = found.filter(|found| i < found.len());
                        Ok(found.and_then(|found| found.get(i)))
                    }
                    _ => number::parse(text, Elem::Num(*scalar)).map(Some),
                };
                let all = texts.iter().enumerate().map(element);
                all.collect::<Result<_, String>>()
                    .map_err(|problem| format!("`{}`: {problem}", quoted(name)))?
            }
            Expect::File(_, path) => files::elements(path, *scalar, setup)?,
            Expect::Within(..) | Expect::Error(_) | Expect::Printed(_) => continue,
        };
        *contents = Some(Contents::new(*scalar, stated.into_iter()));
    }
    Ok(buffers)
}

/// Compares buffers with what a line states of them, where there is no reference: the bounds of its ops are not known then.
pub(super) fn compare(
    run: &RunLine,
    args: &[Argument],
    found: &[Option<Contents>],
    setup: &Setup<'_>,
) -> Result<(), String> {
    let bounds: Vec<Bound> = args.iter().map(|arg| bound_of(run, arg, setup)).collect();
    for expect in &run.expects {
        if name_of(expect).is_some() {
            let stated = buffers(expect, args, found, setup)?;
            compare_buffers(args, &bounds, None, &stated, found).map_err(|m| m.to_string())?;
        }
    }
    Ok(())
}

/// The first element of a list that is stated and not defined, and how many there are.
pub(super) fn undefined(texts: &[String], distances: &Distances) -> Option<(usize, usize)> {
    let is_meant = |(i, text): &(usize, &String)| {
        let is_stated = !matches!(text.as_str(), UNWRITTEN | ANY);
        is_stated && distances.get(i).is_some_and(is_undefined)
    };
    let mut meant = texts.iter().enumerate().filter(is_meant);
    let (first, _) = meant.next()?;
    Some((first, 1 + meant.count()))
}
