//! What a line states of a buffer: its elements, or a file that another program left.

use super::compare::{Bound, compare_buffers};
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

/// Whether an `expect` states an element of its buffer.
pub(super) fn is_stated(expect: &Expect, i: usize) -> bool {
    match expect {
        Expect::Values(_, texts) => {
            let text = texts.get(i);
            text.is_some_and(|text| !matches!(text.as_str(), UNWRITTEN | ANY))
        }
        Expect::File(..) => true,
        Expect::Within(..) | Expect::Error(_) | Expect::Printed(_) => false,
    }
}
