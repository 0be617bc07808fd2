//! A launch on the emulator: buffers, numbers, and what is expected.

use tilelift::emu::{self, Launch, Memory};
use tilelift::num::{Format, Overflow, Rounding};
use tilelift::runtime::emulated;
use tilelift::settings::Target;

use super::{Case, compiled, folder, module};

/// An argument.
#[derive(Clone, Debug)]
pub(crate) enum Arg {
    Buffer(Vec<u8>),
    /// The addresses of other arguments' buffers, then of parts of them in bytes.
    Addresses(Vec<usize>),
    I32(i32),
    I64(i64),
    F32(f32),
}

/// What a buffer holds afterwards.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    /// Which argument it is.
    pub(crate) arg: usize,
    pub(crate) format: Format,
    pub(crate) numbers: Vec<f64>,
    /// Largest error: of the number, and beside that.
    pub(crate) relative: f64,
    pub(crate) absolute: f64,
}

fn bytes(format: Format) -> usize {
    match format {
        Format::F16 => 2,
        Format::E4M3 => 1,
        _ => 4,
    }
}

/// Numbers in a format.
pub(crate) fn encode(format: Format, numbers: &[f64]) -> Vec<u8> {
    let bits = |&x: &f64| format.from_f64(x, Rounding::NearestEven, Overflow::Ieee);
    let words = numbers.iter().map(bits);
    words
        .flat_map(|bits| bits.to_le_bytes()[..bytes(format)].to_vec())
        .collect()
}

/// A buffer of numbers in a format.
pub(crate) fn buffer(format: Format, numbers: &[f64]) -> Arg {
    Arg::Buffer(encode(format, numbers))
}

pub(crate) fn integers(numbers: &[i32]) -> Arg {
    Arg::Buffer(numbers.iter().flat_map(|n| n.to_le_bytes()).collect())
}

/// The number that a format has for it.
pub(crate) fn rounded(format: Format, x: f64) -> f64 {
    format.to_f64(format.from_f64(x, Rounding::NearestEven, Overflow::Ieee))
}

/// Numbers from -1 to 1 in steps of 1/16, all of them different in order: sums of a few hundred products are exact in f32.
pub(crate) fn steps(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % 33) as f64 / 16.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Runs a kernel for each target and compares.
pub(crate) fn check(
    case: &Case,
    targets: &[Target],
    grid: [u32; 3],
    args: &[Arg],
    expected: &[Expected],
) {
    let Some(folder) = folder() else { return };
    let module = module(&folder, case.file);
    for &target in targets {
        let at = format!("{} {} {target}", case.file, case.kernel);
        let kernel = compiled(&module, case, target).unwrap_or_else(|e| panic!("{at}:\n{e}"));
        let mut memory = Memory::new();
        let addresses: Vec<u64> = args
            .iter()
            .map(|arg| match arg {
                Arg::Buffer(bytes) => memory.alloc_bytes(bytes),
                _ => 0,
            })
            .collect();
        let mut device: Vec<emu::Arg> = args
            .iter()
            .zip(&addresses)
            .map(|(arg, &address)| match arg {
                Arg::Buffer(_) => emu::Arg::pointer(address),
                Arg::Addresses(of) => {
                    let bytes: Vec<u8> = of
                        .iter()
                        .flat_map(|&i| addresses[i].to_le_bytes())
                        .collect();
                    emu::Arg::pointer(memory.alloc_bytes(&bytes))
                }
                Arg::I32(n) => emu::Arg::from(*n),
                Arg::I64(n) => emu::Arg::from(*n),
                Arg::F32(x) => emu::Arg::from(*x),
            })
            .collect();
        // Buffers behind the kernel's own parameters are reached by addresses.
        device.truncate(kernel.meta.params.len());
        let beside = emulated(&kernel.meta, &device, grid);
        let beside = beside.unwrap_or_else(|| panic!("{at}: the arguments allow no tensor maps"));
        device.extend(beside.args);
        let module = emu::Module::parse(&kernel.ptx).unwrap_or_else(|e| panic!("{at}: {e}"));
        let launch = Launch {
            grid: beside.ctas,
            block: kernel.meta.block(),
            shared_bytes: kernel.meta.shared,
            args: &device,
            options: emu::Options::default(),
        };
        emu::run(&module, &kernel.meta.name, &launch, &mut memory)
            .unwrap_or_else(|e| panic!("{at}: {e}"));
        for result in expected {
            let Arg::Buffer(buffer) = &args[result.arg] else {
                panic!("argument {} is no buffer", result.arg)
            };
            let found = memory
                .read(addresses[result.arg], buffer.len())
                .expect("all of it was written");
            let size = bytes(result.format);
            let found = found.chunks(size).map(|chunk| {
                let mut word = [0; 8];
                word[..size].copy_from_slice(chunk);
                result.format.to_f64(u64::from_le_bytes(word))
            });
            let found: Vec<f64> = found.collect();
            assert_eq!(
                found.len(),
                result.numbers.len(),
                "{at}: argument {}",
                result.arg
            );
            for (i, (&x, &y)) in found.iter().zip(&result.numbers).enumerate() {
                let near = (x - y).abs() <= result.absolute + result.relative * y.abs();
                assert!(
                    near || x == y,
                    "{at}: element {i} of argument {} is {x}, not {y}",
                    result.arg
                );
            }
        }
    }
}
