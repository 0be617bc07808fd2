//! PTX on the emulator, by what a run line says.

use super::against_reference::check_programs;
use super::exec::{self, ArgValue, Argument, emulated, emulated_buffers, line_of};
use super::map::MapSpec;
use super::named::named_address;
use super::parse_line::{ArgSpec, Expect, MapOf, RunLine};
use super::shared_buffer::shared_buffer;
use super::summary::Summary;
use super::{Setup, check_names, files, fill, same, spec_of, stated};
use crate::emu::{self, Entry, Fault, Param, Type, TypeKind};
use crate::ir::types::{Elem, Scalar};
use crate::limits::RUN_LINE_STEPS;
use crate::text::number;
use crate::text::quote::{listed, quoted, quoted_within};

/// Whether a text is PTX: because its first word is that of every PTX module.
pub fn is_ptx(text: &str) -> bool {
    let mut rest = text.trim_start();
    loop {
        let comment = match rest {
            _ if rest.starts_with("//") => rest.split_once('\n'),
            _ if rest.starts_with("/*") => rest.split_once("*/"),
            _ => break,
        };
        rest = comment.map_or("", |(_, behind)| behind.trim_start());
    }
    rest.starts_with(".version")
}

/// Runs an entry of a PTX module on the emulator, once. Beside `grid`, a line says `block(x,y,z)`, which is 32 if it does not and
/// the entry neither, and `shared(BYTES)`, the dynamic shared memory. A parameter has the name that it has in PTX, or the
/// last part of it behind `NAME_`, as in `param_0`. One of 64 bits gets a number, a buffer, the name of a parameter that gets one, or `null`; an array of bytes gets a buffer
/// that is passed itself, and one of 128 bytes a tensor map: `x=f16[8192] zeros map(64,128) box(16,64)`, whose buffer has the name of the
/// parameter, or `map_0=x map(..) box(..)` of the buffer of another one. Target and options of the setup mean nothing here.
///
/// The error says what is wrong with text, line or run.
pub fn run_ptx(
    text: &str,
    entry: Option<&str>,
    words: &str,
    setup: &Setup<'_>,
) -> Result<Summary, String> {
    let module = emu::Module::parse(text).map_err(|error| {
        let line = line_of(text, Some(error.line));
        format!("line {}: {}{line}", error.line, error.kind)
    })?;
    let entry = pick(&module, entry)?;
    let run = RunLine::parse(words)?;
    check_programs(&run, setup)?;
    check_names(&run, setup)?;
    let params = arguments(entry, &run, setup)?;
    let args: Vec<Argument> = params.iter().map(|param| param.arg.clone()).collect();
    let mut memory = emu::Memory::new();
    let addresses = emulated(&args, &mut memory)?;
    let passed = params.iter().zip(&addresses);
    let passed: Vec<emu::Arg> = passed
        .map(|(param, &address)| param.passed(address, &params, &addresses))
        .collect::<Result<_, _>>()?;
    let block = run.block.or(entry.reqntid).unwrap_or([32, 1, 1]);
    let launch = emu::Launch {
        grid: run.grid,
        block,
        shared_bytes: run.shared.unwrap_or(0),
        args: &passed,
        options: emu::Options {
            step_limit: run.steps.or(setup.steps).unwrap_or(RUN_LINE_STEPS),
            ..emu::Options::default()
        },
    };
    let expected = run.expects.iter().find_map(|expect| match expect {
        Expect::Error(words) => Some(words),
        _ => None,
    });
    let mut summary = Summary::of_ptx(&entry.name, run.grid, block);
    match (
        emu::run(&module, &entry.name, &launch, &mut memory),
        expected,
    ) {
        (Ok(_), None) => {}
        (Ok(_), Some(words)) => {
            let words = quoted_within(words, 200);
            return Err(format!("the emulator reports nothing, not `{words}`"));
        }
        (Err(error), Some(words)) if error.to_string().contains(words.as_str()) => {
            summary.add("emulator", format!("reports as expected: {error}"));
            return Ok(summary);
        }
        (Err(error), _) => {
            let advice = match error.fault() {
                Some(Fault::StepLimit(_)) => exec::STEPS_ADVICE,
                _ => "",
            };
            let named = error.fault().and_then(Fault::global_address);
            let named = named.map_or(String::new(), |address| {
                named_address(&args, &addresses, address)
            });
            let line = line_of(text, error.line());
            return Err(format!("{error}{named}{advice}{line}"));
        }
    }
    let after = emulated_buffers(&args, &addresses, &memory);
    summary.add("emulator", "ran to its end".to_owned());
    summary.buffers(&args, &after);
    let is_stated = |name: &String| {
        let mut expects = run.expects.iter();
        expects.any(|expect| stated::name_of(expect) == Some(name))
    };
    for expect in &run.expects {
        let has_meaning = match expect {
            Expect::Values(..) | Expect::File(..) | Expect::Error(_) => true,
            Expect::Within(names, _) => names.iter().all(is_stated),
            Expect::Printed(_) => false,
        };
        if !has_meaning {
            let problem = "there is nothing to compare PTX with, and nothing that it prints";
            return Err(format!(
                "{problem}: state `expect NAME = [..]`, `expect NAME = @FILE` or `expect error`"
            ));
        }
    }
    stated::compare(&run, &args, &after, setup)?;
    files::save(setup, &args, &after)?;
    Ok(summary)
}

fn pick<'m>(module: &'m emu::Module, name: Option<&str>) -> Result<&'m Entry, String> {
    let names = || {
        let names: Vec<&str> = module.entries().map(|entry| entry.name.as_str()).collect();
        listed(names.into_iter())
    };
    let mut entries = module.entries();
    match (name, entries.next(), entries.next()) {
        (_, None, _) => Err("there is no .entry in it".to_owned()),
        (Some(name), ..) => module.entry(name).ok_or_else(|| {
            let (name, names) = (quoted(name), names());
            format!("there is no .entry `{name}`; there is {names}")
        }),
        (None, Some(entry), None) => Ok(entry),
        (None, Some(_), Some(_)) => Err(format!(
            "it has several entries ({}); choose one with -n",
            names()
        )),
    }
}

/// A parameter with its argument.
struct Passed {
    arg: Argument,
    /// The bytes of a parameter that is no address.
    bytes: Option<Vec<u8>>,
    /// The tensor map that it gets, of its own buffer or that of another parameter.
    map: Option<(Option<String>, MapSpec)>,
}

impl Passed {
    fn passed(&self, address: u64, all: &[Passed], addresses: &[u64]) -> Result<emu::Arg, String> {
        let Some((of, map)) = &self.map else {
            return Ok(match &self.bytes {
                Some(bytes) => emu::Arg::bytes(bytes),
                None => emu::Arg::pointer(address),
            });
        };
        let (buffer, base) = match of {
            None => (&self.arg.it, address),
            Some(name) => all
                .iter()
                .zip(addresses)
                .find(|(other, _)| other.arg.name == *name)
                .map(|(other, &base)| (&other.arg.it, base))
                .ok_or_else(|| format!("there is no parameter `{}`", quoted(name)))?,
        };
        let name = quoted(&self.arg.name);
        match buffer {
            ArgValue::Buffer { scalar, count, .. } => {
                let encoded = map.encode(*scalar, *count, base);
                let encoded = encoded.map_err(|problem| format!("`{name}`: {problem}"))?;
                Ok(emu::Arg::bytes(&encoded))
            }
            ArgValue::Scalar { .. } | ArgValue::Null | ArgValue::Same(_) => {
                Err(format!("`{name}`: a tensor map is of a buffer"))
            }
        }
    }
}

/// The last part of a parameter's name: compilers put the entry's before.
fn short<'a>(entry: &str, name: &'a str) -> &'a str {
    let rest = name
        .strip_prefix(entry)
        .and_then(|rest| rest.strip_prefix('_'));
    rest.filter(|rest| !rest.is_empty()).unwrap_or(name)
}

fn arguments(entry: &Entry, run: &RunLine, setup: &Setup<'_>) -> Result<Vec<Passed>, String> {
    let known = |name: &str| {
        let mut params = entry.params.iter();
        params.any(|param| param.name == name || short(&entry.name, &param.name) == name)
    };
    if let Some((name, _)) = run.args.iter().find(|(name, _)| !known(name)) {
        let names = match entry.params.is_empty() {
            true => "it has none".to_owned(),
            false => {
                let names = entry.params.iter();
                format!(
                    "it has {}",
                    listed(names.map(|p| short(&entry.name, &p.name)))
                )
            }
        };
        let name = quoted(name);
        return Err(format!(
            "{} has no parameter `{name}`; {names}",
            quoted(&entry.name)
        ));
    }
    // As the line writes them.
    let names: Vec<&str> = entry
        .params
        .iter()
        .map(|param| {
            let is_whole = run.args.iter().any(|(name, _)| *name == param.name);
            if is_whole {
                &*param.name
            } else {
                short(&entry.name, &param.name)
            }
        })
        .collect();
    let params = entry.params.iter().enumerate();
    params
        .map(|(number, param)| {
            let name = short(&entry.name, &param.name);
            let spec = match spec_of(run, &param.name)? {
                Some(spec) => Some(spec),
                None => spec_of(run, name)?,
            };
            let spec = spec.ok_or_else(|| {
                let (name, ty) = (quoted(name), described(param));
                format!("parameter {number}, `{name}`, gets no argument; it is {ty}")
            })?;
            let is_name = matches!(spec, ArgSpec::Number(other) if names.contains(&&**other));
            let of = match is_name && is_wide(param) {
                true => shared_buffer(run, &names, names[number]),
                false => Ok(None),
            };
            let passed = match of {
                Ok(Some(of)) => Ok(Passed {
                    arg: same(name, of),
                    bytes: None,
                    map: None,
                }),
                Ok(None) => passed(param, &entry.name, spec, setup),
                Err(problem) => Err(problem),
            };
            passed.map_err(|problem| {
                let name = quoted(name);
                format!(
                    "parameter {number}, `{name}`, is {}: {problem}",
                    described(param)
                )
            })
        })
        .collect()
}

/// What a parameter is and takes.
fn described(param: &Param) -> String {
    let bytes = param.ty.bits / 8;
    match param.size {
        128 if bytes != 128 => {
            "an array of 128 bytes, and takes a buffer of as many or a tensor map".to_owned()
        }
        size if size != bytes => format!("an array of {size} bytes, and takes a buffer of as many"),
        8 if param.ty.kind != TypeKind::Float => {
            format!(
                "{}, and takes a buffer, the name of a parameter with one, null or a number",
                directive(param.ty)
            )
        }
        _ => format!("{}, and takes a number", directive(param.ty)),
    }
}

/// A type as PTX writes it.
fn directive(ty: Type) -> String {
    let letter = match ty.kind {
        TypeKind::Float => 'f',
        TypeKind::Signed => 's',
        TypeKind::Unsigned => 'u',
        _ => 'b',
    };
    format!(".{letter}{}", ty.bits)
}

/// Whether a parameter may be an address.
fn is_wide(param: &Param) -> bool {
    let is_array = param.size != param.ty.bits / 8;
    !is_array && param.size == 8 && param.ty.kind != TypeKind::Float
}

fn passed(param: &Param, entry: &str, spec: &ArgSpec, setup: &Setup<'_>) -> Result<Passed, String> {
    let is_array = param.size != param.ty.bits / 8;
    let is_wide = is_wide(param);
    let mut arg = Argument {
        name: short(entry, &param.name).to_owned(),
        shape: None,
        it: ArgValue::Null,
    };
    let mut bytes = None;
    let mut of_map = None;
    match spec {
        ArgSpec::Map(of, map) if is_array && param.size == 128 => {
            let name = match of {
                MapOf::Param(name) => Some(short(entry, name).to_owned()),
                MapOf::Own(own) => {
                    (arg.it, arg.shape) = buffer(own, setup)?;
                    None
                }
            };
            of_map = Some((name, map.clone()));
        }
        ArgSpec::Null if is_wide => {}
        ArgSpec::Buffer { .. } if is_array => {
            let ArgValue::Buffer {
                bytes: Some(held), ..
            } = buffer(spec, setup)?.0
            else {
                return Err("what is passed itself cannot be poison".to_owned());
            };
            if held.len() != param.size as usize {
                return Err(format!("the buffer has {} bytes", held.len()));
            }
            bytes = Some(held);
        }
        ArgSpec::Buffer { .. } | ArgSpec::File(_) if is_wide => {
            (arg.it, arg.shape) = buffer(spec, setup)?;
        }
        ArgSpec::Number(text) if !is_array => {
            let scalar = match (param.ty.kind, param.ty.bits) {
                (TypeKind::Float, 16) => Scalar::F16,
                (TypeKind::Float, 32) => Scalar::F32,
                (TypeKind::Float, _) => Scalar::F64,
                // Bits of 32 or 64 with a point are a float's.
                (_, 32) if text.contains('.') => Scalar::F32,
                (_, 64) if text.contains('.') => Scalar::F64,
                (_, 8) => Scalar::I8,
                (_, 16) => Scalar::I16,
                (_, 32) => Scalar::I32,
                _ => Scalar::I64,
            };
            let bits = number::parse(text, Elem::Num(scalar))?;
            bytes = Some(bits.to_le_bytes()[..scalar.bytes() as usize].to_vec());
        }
        _ => return Err("the argument is something else".to_owned()),
    }
    Ok(Passed {
        arg,
        bytes,
        map: of_map,
    })
}

/// A buffer, and its shape if a file has one.
fn buffer(spec: &ArgSpec, setup: &Setup<'_>) -> Result<(ArgValue, Option<Vec<usize>>), String> {
    match spec {
        ArgSpec::Buffer {
            scalar,
            count,
            fill: how,
            special,
        } => {
            let value = ArgValue::Buffer {
                scalar: *scalar,
                count: *count,
                bytes: fill::fill(*scalar, *count, how, *special)?,
            };
            Ok((value, None))
        }
        ArgSpec::File(path) => {
            let (scalar, array) = files::read_any(path, setup)?;
            let value = ArgValue::Buffer {
                scalar,
                count: array.shape.iter().product(),
                bytes: Some(array.bytes),
            };
            Ok((value, Some(array.shape)))
        }
        ArgSpec::Null | ArgSpec::Number(_) | ArgSpec::Map(..) => {
            Err("a tensor map is of a buffer".to_owned())
        }
    }
}
