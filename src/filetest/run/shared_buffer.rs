//! One buffer for several parameters, as kernels that work in place have it: `x=f32[8] zeros y=x`.

use super::parse_line::{ArgSpec, RunLine};
use super::spec_of;
use crate::text::closest::{closest, did_you_mean};
use crate::text::quote::{listed, quoted};

/// The number of the parameter whose buffer a line gives to this one by its name, if it gives it a name; the name may be that of a
/// parameter that gets another one's buffer.
///
/// # Errors
///
/// What is wrong with the name, in words.
pub(super) fn shared_buffer(
    run: &RunLine,
    names: &[&str],
    name: &str,
) -> Result<Option<usize>, String> {
    let Some(ArgSpec::Number(first)) = spec_of(run, name)? else {
        return Ok(None);
    };
    let is_name = |text: &str| text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    if !names.contains(&first.as_str()) {
        return match is_name(first) {
            true => Err(unknown(run, names, first)),
            false => Ok(None),
        };
    }
    let mut at = first.as_str();
    // More steps than names lead in a circle.
    for _ in names {
        match spec_of(run, at)? {
            Some(ArgSpec::Buffer { .. } | ArgSpec::File(_)) => {
                return Ok(names.iter().position(|&name| name == at));
            }
            Some(ArgSpec::Number(next)) if names.contains(&next.as_str()) => at = next,
            _ => break,
        }
    }
    let at = quoted(at);
    Err(format!(
        "`{at}` gets no buffer; write what it is to hold, as in {at}=f32[8] zeros"
    ))
}

fn unknown(run: &RunLine, names: &[&str], name: &str) -> String {
    let has_own = |name: &str| {
        let spec = spec_of(run, name).ok().flatten();
        matches!(spec, Some(ArgSpec::Buffer { .. } | ArgSpec::File(_)))
    };
    let buffers: Vec<&str> = names.iter().copied().filter(|name| has_own(name)).collect();
    let there = match closest(name, buffers.iter().copied()) {
        Some(meant) => did_you_mean(quoted(meant)),
        None if buffers.is_empty() => "there is none".to_owned(),
        None => format!("there is {}", listed(buffers.into_iter())),
    };
    format!(
        "there is no parameter `{}` with a buffer; {there}",
        quoted(name)
    )
}

/// The parameter whose buffer a line gives to this name, for messages.
pub(super) fn owner<'a>(run: &'a RunLine, name: &str) -> Option<&'a str> {
    let names: Vec<&str> = run.args.iter().map(|(name, _)| name.as_str()).collect();
    let of = shared_buffer(run, &names, name).ok().flatten()?;
    run.args.get(of).map(|(name, _)| name.as_str())
}
