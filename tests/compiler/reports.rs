//! What compiled kernels print and assert, read back from the emulator.

use tilelift::compile::{CompiledKernel, compile};
use tilelift::device_print::{CAPACITY, Log, SYMBOL};
use tilelift::emu::{self, EmuError};
use tilelift::ir::function::TileFunction;
use tilelift::settings::{Asserts, Options, Target};
use tilelift::text::parse::parse_file;

fn kernel(text: &str, target: Target, asserts: Asserts) -> CompiledKernel {
    let file = parse_file(text).unwrap_or_else(|errors| panic!("{errors:?}"));
    let func: &TileFunction = file.functions[0].func.as_tile().expect("a kernel");
    let options = Options {
        asserts,
        ..Options::DEFAULT
    };
    compile(func, target, &options).expect("every target has what it takes")
}

fn run(kernel: &CompiledKernel, grid: u32, args: &[emu::Arg]) -> (Result<(), EmuError>, Log) {
    let module = emu::Module::parse(&kernel.ptx).expect("our own text");
    let mut memory = emu::Memory::new();
    let launch = emu::Launch {
        grid: [grid, 1, 1],
        block: kernel.meta.block(),
        shared_bytes: kernel.meta.shared,
        args,
        options: emu::Options::default(),
    };
    let result = emu::run(&module, &kernel.meta.name, &launch, &mut memory);
    let log = memory.variable(SYMBOL).map(Log::decode).unwrap_or_default();
    (result.map(|_| ()), log)
}

/// Elements of a block below `n`, where some threads hold copies.
const BELOW: &str = "kernel @below(v0 \"n\": i32) warps(4) {
block0:
    v1 = arange {start = 0} : i32[8]
    v2 = splat v0 : i32[8]
    v3 = icmp v1, v2 {ipred = slt} : i1[8]
    device_assert v3 {text = \"below n\"} @12
    return
}";

#[test]
fn failed_assertions_are_recorded_once_each_and_located() {
    for target in Target::ALL {
        let kernel = kernel(BELOW, target, Asserts::Report);
        let (result, log) = run(&kernel, 2, &[emu::Arg::from(6i32)]);
        assert_eq!(result, Ok(()), "the kernel goes on");
        let failures: Vec<String> = log
            .failures(&kernel.meta.sites)
            .map(|line| line.to_string())
            .collect();
        let mut expected = Vec::new();
        for program in 0..2 {
            for element in 6..8 {
                let place = format!("pid ({program}, 0, 0) idx ({element})");
                expected.push(format!("{place} assertion failed: below n (line 12)"));
            }
        }
        assert_eq!(failures, expected);
        let (_, log) = run(&kernel, 2, &[emu::Arg::from(8i32)]);
        assert_eq!(log, Log::default());
    }
}

#[test]
fn assertions_trap_or_go_as_the_options_say() {
    let trapping = kernel(BELOW, Target::SM_80, Asserts::Trap);
    assert!(!trapping.ptx.contains(SYMBOL));
    let (result, _) = run(&trapping, 1, &[emu::Arg::from(8i32)]);
    assert_eq!(result, Ok(()));
    let (result, _) = run(&trapping, 1, &[emu::Arg::from(7i32)]);
    let message = result.expect_err("element 7 fails").to_string();
    assert!(message.contains("trap"), "{message}");
    let without = kernel(BELOW, Target::SM_80, Asserts::Off);
    assert!(without.meta.sites.is_empty());
    let (result, log) = run(&without, 1, &[emu::Arg::from(0i32)]);
    assert_eq!((result, log), (Ok(()), Log::default()));
}

#[test]
fn what_does_not_fit_is_counted() {
    let text = "kernel @many() warps(4) {
block0:
    v0 = arange {start = 0} : i32[1024]
    device_print v0 {text = \"x\"}
    return
}";
    let kernel = kernel(text, Target::SM_90, Asserts::Off);
    let (result, log) = run(&kernel, 3, &[]);
    assert_eq!(result, Ok(()));
    assert_eq!(log.records.len(), CAPACITY as usize);
    assert_eq!(log.lost, 3 * 1024 - CAPACITY);
    for record in &log.records {
        assert_eq!(u64::from(record.element), record.bits);
    }
}
