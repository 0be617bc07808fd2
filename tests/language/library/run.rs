//! Runs a case on interpreter and emulator and compares.

use tilelift::compile::{CompiledKernel, compile};
use tilelift::front::types::DType;
use tilelift::front::{Module, Specialization, parse_signature};
use tilelift::runtime::emulated;
use tilelift::settings::{Asserts, Options};
use tilelift::{device_print, emu, interp};

use super::case::{Case, File, Param, Tolerance};
use super::data;
use crate::ptxas;

/// An argument of a launch.
enum Value {
    /// A buffer of this size, with what is in it before, under a name.
    Buffer(usize, Option<Vec<u8>>),
    /// The bits of a number, and how many.
    Number(u64, u32),
}

/// The entries of the signature and the arguments of the launch.
fn arguments(case: &Case) -> (String, Vec<Value>, Vec<(String, usize, DType)>) {
    let (mut entries, mut values, mut results) = (Vec::new(), Vec::new(), Vec::new());
    for (name, param) in &case.params {
        match param {
            Param::Buffer { dtype, count, data } => {
                entries.push(format!("*{}", dtype.short_name()));
                results.push((name.clone(), values.len(), *dtype));
                let bytes = data.as_ref().map(|words| data::make(*dtype, *count, words));
                values.push(Value::Buffer(count * data::bytes_of(*dtype), bytes));
            }
            Param::Descriptor {
                dtype,
                block,
                extents,
                data,
            } => {
                let block: Vec<String> = block.iter().map(u64::to_string).collect();
                let block = block.join(",");
                entries.push(format!("tensordesc<{}[{block}]>", dtype.short_name()));
                results.push((name.clone(), values.len(), *dtype));
                let count = extents.iter().product::<u64>() as usize;
                let bytes = data.as_ref().map(|words| data::make(*dtype, count, words));
                values.push(Value::Buffer(count * data::bytes_of(*dtype), bytes));
                values.extend(extents.iter().map(|&e| Value::Number(e, 32)));
                for dim in 1..extents.len() {
                    values.push(Value::Number(extents[dim..].iter().product(), 64));
                }
            }
            Param::Scalar { dtype, number } => {
                entries.push(dtype.short_name().to_owned());
                let bytes = data::make(*dtype, 1, &format!("[{number}]"));
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(&bytes);
                values.push(Value::Number(u64::from_le_bytes(word), dtype.bits()));
            }
            Param::Constant(text) => entries.push(text.clone()),
        }
    }
    (entries.join(", "), values, results)
}

/// The difference of two floats in steps of the format; NaN is one number.
fn ulps(dtype: DType, a: u64, b: u64) -> u64 {
    let top = 1u64 << (dtype.bits() - 1);
    let line = |bits: u64| {
        let size = i128::from(bits & (top - 1));
        if bits & top == 0 { size } else { -size }
    };
    (line(a) - line(b)).unsigned_abs() as u64
}

fn same(dtype: DType, tolerance: Tolerance, found: u64, expected: u64) -> bool {
    if found == expected {
        return true;
    }
    if !dtype.is_float() {
        return false;
    }
    let number = |bits| data::format(dtype).to_f64(bits);
    let (a, b) = (number(found), number(expected));
    if a.is_nan() || b.is_nan() {
        return a.is_nan() && b.is_nan();
    }
    match tolerance {
        Tolerance::Exact => false,
        Tolerance::Ulp(n) => ulps(dtype, found, expected) <= n,
        Tolerance::Abs(x) => (a - b).abs() <= x,
        Tolerance::Rel(x) => (a - b).abs() <= x * b.abs(),
    }
}

fn compare(
    case: &Case,
    executor: &str,
    (name, dtype): (&str, DType),
    bytes: &[u8],
    digits: &str,
) -> Result<(), String> {
    let size = data::bytes_of(dtype);
    let expected: Vec<u64> = digits
        .as_bytes()
        .chunks(2 * size)
        .map(|d| u64::from_str_radix(std::str::from_utf8(d).expect("ASCII"), 16).expect("digits"))
        .collect();
    let found: Vec<u64> = bytes
        .chunks(size)
        .map(|b| {
            let mut word = [0; 8];
            word[..b.len()].copy_from_slice(b);
            u64::from_le_bytes(word)
        })
        .collect();
    if found.len() != expected.len() {
        let (n, m) = (found.len(), expected.len());
        return Err(format!(
            "{executor}: `{name}` has {n} elements, expected {m}"
        ));
    }
    let mut wrong = Vec::new();
    for (i, (&f, &e)) in found.iter().zip(&expected).enumerate() {
        if !same(dtype, case.tolerance, f, e) {
            let show = |bits: u64| match dtype.is_float() {
                true => format!("{:e} ({bits:x})", data::format(dtype).to_f64(bits)),
                false => format!("{bits:#x}"),
            };
            wrong.push(format!("[{i}] is {}, expected {}", show(f), show(e)));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let (n, all) = (wrong.len(), found.len());
    wrong.truncate(4);
    Err(format!(
        "{executor}: {n} of {all} of `{name}` are wrong: {}",
        wrong.join("; ")
    ))
}

/// The launch in words, for `gpu.py`, which needs no compiler.
fn launch_text(
    case: &Case,
    compiled: &CompiledKernel,
    values: &[Value],
    results: &[(String, usize, DType)],
    expected: &[(String, String)],
) -> String {
    let meta = &compiled.meta;
    let [x, y, z] = case.grid;
    let mut text = format!(
        "case {}\nlaunch {} {} {} {x} {y} {z}\n",
        case.stated, meta.name, meta.shared, meta.num_warps
    );
    for value in values {
        text += &match value {
            Value::Buffer(size, None) => format!("output {size}\n"),
            Value::Buffer(_, Some(bytes)) => {
                let digits: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
                format!("buffer {}\n", digits.concat())
            }
            Value::Number(bits, width) => format!("number {bits} {width}\n"),
        };
    }
    for (name, digits) in expected {
        if let Some((_, at, dtype)) = results.iter().find(|(own, _, _)| own == name) {
            text += &format!("expect {at} {name} {} {digits}\n", dtype.short_name());
        }
    }
    text
}

/// Runs a case. Where `TILELIFT_KERNELS` names a folder, the kernel goes there with its launch.
pub(crate) fn run(file: &File, case: &Case) -> Result<(), String> {
    let (signature, values, results) = arguments(case);
    let args = parse_signature(&signature).map_err(|e| e.to_string())?;
    let text = case.text(file);
    let module = Module::parse(&file.name, &text).map_err(|e| e.to_string())?;
    let mut spec = Specialization::new(args, case.target);
    spec.num_warps = case.warps;
    spec.debug = case.debug;
    let lowered = module
        .lower(Some(&case.kernel), &spec)
        .map_err(|e| format!("\n{e}"))?;
    let options = Options {
        verify_passes: true,
        asserts: if case.debug {
            Asserts::Report
        } else {
            Asserts::Off
        },
        ..Options::DEFAULT
    };
    let Some((_, expected)) = file
        .expected
        .iter()
        .find(|(stated, _)| *stated == case.stated)
    else {
        return Err("it has no expected results: run tests/data/triton/library.py".into());
    };
    let check = |executor: &str, read: &dyn Fn(usize) -> Result<Vec<u8>, String>| {
        for (name, digits) in expected {
            let found = results.iter().find(|(own, _, _)| own == name);
            let (name, at, dtype) = found.ok_or_else(|| format!("there is no `{name}`"))?;
            let bytes = read(*at).map_err(|e| format!("{executor}: {e}"))?;
            compare(case, executor, (name, *dtype), &bytes, digits)?;
        }
        Ok(())
    };
    let printed = |executor: &str, lines: Vec<String>| {
        if lines == case.prints {
            return Ok(());
        }
        Err(format!(
            "{executor}: it prints\n  {}\n  expected\n  {}",
            lines.join("\n  "),
            case.prints.join("\n  ")
        ))
    };
    let mut problems = Vec::new();
    if !case.emulator_only {
        let mut memory = interp::Memory::new();
        let device: Vec<interp::Arg> = values
            .iter()
            .map(|value| match value {
                Value::Buffer(_, Some(bytes)) => interp::Arg::Ptr(memory.alloc_bytes(bytes)),
                Value::Buffer(size, None) => interp::Arg::Ptr(memory.alloc(*size)),
                Value::Number(bits, _) => interp::Arg::Bits(*bits),
            })
            .collect();
        let launch = interp::Launch {
            grid: case.grid,
            args: &device,
        };
        let ran = interp::run(&lowered.func, &launch, &mut memory, &Default::default());
        let result = ran.map_err(|e| format!("interpreter: {e}")).and_then(|_| {
            check("interpreter", &|at| {
                let (interp::Arg::Ptr(address), Value::Buffer(size, _)) = (device[at], &values[at])
                else {
                    return Err("no buffer".into());
                };
                let bytes = memory.read(address, *size).map_err(|e| e.to_string())?;
                Ok(bytes.to_vec())
            })
        });
        problems.extend(result.err());
        let sites = device_print::sites(&lowered.func).into_iter();
        let sites: Vec<device_print::Site> = sites.map(|(_, site)| site).collect();
        let lines = memory.take_log().lines(&sites);
        problems.extend(printed("interpreter", lines).err());
    }
    let compiled = compile(&lowered.func, case.target, &options).map_err(|e| e.to_string())?;
    ptxas::assemble(&compiled.ptx, &case.target.to_string());
    if let Some(folder) = std::env::var_os("TILELIFT_KERNELS") {
        let name = format!("{}_{}", file.name, case.line);
        let text = launch_text(case, &compiled, &values, &results, expected);
        let base = std::path::Path::new(&folder).join(name);
        std::fs::write(base.with_extension("ptx"), &compiled.ptx).map_err(|e| e.to_string())?;
        std::fs::write(base.with_extension("launch"), text).map_err(|e| e.to_string())?;
    }
    let parsed = emu::Module::parse(&compiled.ptx).map_err(|e| format!("emulator: {e}"))?;
    let mut memory = emu::Memory::new();
    let mut addresses = Vec::new();
    let mut device: Vec<emu::Arg> = values
        .iter()
        .map(|value| {
            let address = match value {
                Value::Buffer(_, Some(bytes)) => memory.alloc_bytes(bytes),
                Value::Buffer(size, None) => memory.alloc(*size),
                Value::Number(..) => 0,
            };
            addresses.push(address);
            match value {
                Value::Buffer(..) => emu::Arg::pointer(address),
                Value::Number(bits, 64) => emu::Arg::from(*bits),
                Value::Number(bits, 16) => emu::Arg::from(*bits as u16),
                Value::Number(bits, 1..=8) => emu::Arg::from(*bits as u8),
                Value::Number(bits, _) => emu::Arg::from(*bits as u32),
            }
        })
        .collect();
    let beside = emulated(&compiled.meta, &device, case.grid);
    let beside = beside.ok_or("the arguments allow no tensor maps")?;
    device.extend(beside.args);
    let launch = emu::Launch {
        grid: beside.ctas,
        block: compiled.meta.block(),
        shared_bytes: compiled.meta.shared,
        args: &device,
        options: emu::Options::default(),
    };
    let ran = emu::run(&parsed, &compiled.meta.name, &launch, &mut memory);
    let result = ran.map_err(|e| format!("emulator: {e}")).and_then(|_| {
        check("emulator", &|at| {
            let Value::Buffer(size, _) = &values[at] else {
                return Err("no buffer".into());
            };
            memory.read(addresses[at], *size).map_err(|e| e.to_string())
        })
    });
    problems.extend(result.err());
    let log = memory
        .variable(device_print::SYMBOL)
        .map(device_print::Log::decode);
    let lines = log.unwrap_or_default().lines(&compiled.meta.sites);
    problems.extend(printed("emulator", lines).err());
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems.join("\n  ")),
    }
}
