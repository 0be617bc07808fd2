//! Run lines of kernels whose parameters have no types of their own: those of the Triton language, before they are specialised.

use super::exec::{ArgValue, Argument};
use super::launch::{LaunchLine, Loaded};
use super::parse_line::{ArgSpec, RunLine};
use super::shared_buffer::shared_buffer;
use super::{Setup, argument, files, same, spec_of};
use crate::ir::types::{Elem, Scalar};
use crate::limits::BENCH_BYTES;
use crate::runtime::{Device, RuntimeError};
use crate::settings::{Options, Target};
use crate::text::quote::quoted;

/// Buffers and numbers for parameters whose types nobody states but the line.
pub(crate) struct Untyped {
    args: Vec<Argument>,
}

impl Untyped {
    /// What lines give to parameters of these names, in order: of buffers the largest that one of the lines asks for.
    pub(crate) fn read(names: &[&str], lines: &[String]) -> Result<Untyped, String> {
        let plain = Options::DEFAULT;
        let setup = Setup::new(Target::SM_80, &plain);
        let mut args: Vec<Argument> = Vec::new();
        for words in lines {
            let run = RunLine::parse_within(words, BENCH_BYTES)?;
            if let Some((name, _)) = run.args.iter().find(|(n, _)| !names.contains(&&**n)) {
                let (name, names) = (quoted(name), names.join(", "));
                return Err(format!(
                    "the kernel takes no argument `{name}`; it takes {names}"
                ));
            }
            for (at, name) in names.iter().enumerate() {
                let spec = spec_of(&run, name)?
                    .ok_or_else(|| format!("parameter `{}` gets no argument", quoted(name)))?;
                let length = |spec: &ArgSpec| match spec {
                    ArgSpec::Buffer { count, .. } => *count,
                    _ => 0,
                };
                let known = args.get(at).map(|arg| match &arg.it {
                    ArgValue::Buffer { count, .. } => *count,
                    _ => 0,
                });
                if known.is_some_and(|known| known >= length(spec)) {
                    continue;
                }
                let is_name = matches!(spec, ArgSpec::Number(other) if names.contains(&&**other));
                let of = match is_name {
                    true => shared_buffer(&run, names, name),
                    false => Ok(None),
                };
                let made = match of {
                    Ok(Some(of)) => Ok(same(name, of)),
                    Ok(None) => untyped(name, spec, &setup),
                    Err(problem) => Err(problem),
                };
                let made = made.map_err(|problem| format!("`{}`: {problem}", quoted(name)))?;
                match args.get_mut(at) {
                    Some(arg) => *arg = made,
                    None => args.push(made),
                }
            }
        }
        Ok(Untyped { args })
    }

    /// The grid of a line.
    pub(crate) fn grid(words: &str) -> Result<[u32; 3], String> {
        RunLine::parse_within(words, BENCH_BYTES).map(|run| run.grid)
    }

    /// Copies the buffers to a device.
    pub(crate) fn load(self, device: &Device) -> Result<Loaded, RuntimeError> {
        let count = self.args.len();
        let line = LaunchLine {
            grid: [1; 3],
            args: self.args,
            pointees: vec![None; count],
            steps: None,
        };
        line.load(device)
    }
}

/// An argument of the type that its text has.
fn untyped(name: &str, spec: &ArgSpec, setup: &Setup<'_>) -> Result<Argument, String> {
    let elem = match spec {
        ArgSpec::Buffer { scalar, .. } => Elem::global(*scalar),
        ArgSpec::Null => Elem::global(Scalar::I8),
        ArgSpec::File(path) => Elem::global(files::read_any(path, setup)?.0),
        // Refused with its reason below.
        ArgSpec::Map(..) => Elem::global(Scalar::I8),
        ArgSpec::Number(text) => Elem::Num(match (text.as_str(), text.parse::<i64>()) {
            ("true" | "false", _) => Scalar::I1,
            (_, Ok(number)) if i32::try_from(number).is_ok() => Scalar::I32,
            (_, Ok(_)) => Scalar::I64,
            (_, Err(_)) => Scalar::F32,
        }),
    };
    argument(name, elem, spec, setup)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(names: &[&str], lines: &[&str]) -> Result<Untyped, String> {
        let lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        Untyped::read(names, &lines)
    }

    #[test]
    fn types_follow_from_the_text() {
        let names = ["x", "n", "far", "scale", "flag", "none"];
        let line = "grid(2) x=f16[8] zeros n=7 far=5000000000 scale=0.5 flag=true none=null";
        let made = read(&names, &[line]).expect("all are given");
        let types = made.args.iter().map(|arg| match &arg.it {
            ArgValue::Scalar { scalar, .. } => scalar.to_string(),
            ArgValue::Buffer { scalar, count, .. } => format!("{scalar}[{count}]"),
            ArgValue::Null | ArgValue::Same(_) => "null".to_owned(),
        });
        let types: Vec<String> = types.collect();
        assert_eq!(types, ["f16[8]", "i32", "i64", "f32", "i1", "null"]);
        assert_eq!(Untyped::grid(line), Ok([2, 1, 1]));
        let device = Device::emulator_with(crate::runtime::DeviceOptions::plain());
        let loaded = made.load(&device).expect("there is memory");
        let list = loaded.args().expect("a launch takes them");
        assert_eq!(list.as_slice().len(), 6);
    }

    #[test]
    fn one_buffer_stands_for_two_parameters() {
        let made = read(&["x", "y"], &["y=x x=f16[8] zeros"]).expect("all are given");
        assert!(matches!(made.args[1].it, ArgValue::Same(0)));
        let device = Device::emulator_with(crate::runtime::DeviceOptions::plain());
        let loaded = made.load(&device).expect("there is memory");
        let list = loaded.args().expect("a launch takes them");
        let [x, y] = list.as_slice() else {
            panic!("there are two");
        };
        assert_eq!(format!("{x:?}"), format!("{y:?}"));
    }

    #[test]
    fn the_largest_buffer_of_all_lines_is_made() {
        let lines = ["x=f32[8] zeros", "x=f32[32] zeros", "x=f32[16] zeros"];
        let made = read(&["x"], &lines).expect("all are given");
        let count = match made.args[0].it {
            ArgValue::Buffer { count, .. } => count,
            _ => 0,
        };
        assert_eq!(count, 32);
        for (names, line, part) in [
            (&["x", "n"][..], "x=f32[8] zeros", "`n` gets no argument"),
            (
                &["x"],
                "x=f32[8] zeros y=1",
                "takes no argument `y`; it takes x",
            ),
            (&["x"], "x=f32[8] zeros x=1", "two arguments"),
        ] {
            let error = read(names, &[line]).map(|_| ()).expect_err(line);
            assert!(error.contains(part), "{error}");
        }
    }
}
