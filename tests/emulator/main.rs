//! The emulator on PTX that other compilers wrote and on small texts of our own.

mod atomics;
mod bulk;
mod clusters;
mod copies;
mod coverage;
#[expect(dead_code, reason = "no row has operands of 8-bit floats alone")]
#[path = "../common/edges.rs"]
mod edges;
mod errors;
mod hardware;
mod hints;
mod hopper;
mod instructions;
mod matrices;
mod mistakes;
mod order;
mod persistent;
mod phases;
mod pipelines;
mod product_rows;
mod product_sums;
mod products;
mod programs;
#[expect(dead_code, reason = "what is refused gives no report")]
#[path = "../common/ptxas.rs"]
mod ptxas;
mod refusals;
mod remote;
mod roles;
mod rows;
mod swizzles;
mod synchronisation;
mod tensors;
mod texts;
mod transfers;
mod triton;
mod warpgroups;

use tilelift::emu::{Arg, EmuError, Launch, Memory, Module, Options, Stats, run};

/// The generator that `tests/data/ptx/triton/generate.py` has, too: numbers in [-1, 1), exact in f32.
pub(crate) fn uniform(seed: u64, count: usize) -> Vec<f64> {
    let mut state = seed;
    (0..count)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f64 / 8_388_608.0 - 1.0
        })
        .collect()
}

/// Little-endian f32 bytes.
pub(crate) fn f32_bytes(values: &[f64]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|&x| (x as f32).to_le_bytes())
        .collect()
}

/// Reads f32 values that must all have been written.
pub(crate) fn read_f32(memory: &Memory, address: u64, count: usize) -> Vec<f64> {
    let bytes = memory
        .read(address, count * 4)
        .expect("the kernel wrote all of it");
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&word| f64::from(f32::from_le_bytes(word)))
        .collect()
}

/// Wraps statements into an entry with one pointer parameter `data`, already in `%data`, and runs
/// one CTA of `threads`.
pub(crate) fn run_body(
    body: &str,
    threads: u32,
    memory: &mut Memory,
    data: u64,
) -> Result<Stats, EmuError> {
    run_text(
        &entry(body),
        1,
        threads,
        0,
        memory,
        &[Arg::pointer(data)],
        Options::default(),
    )
}

/// The text of an entry around statements. The body starts in line 13.
pub(crate) fn entry(body: &str) -> String {
    format!(
        ".version 8.3
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 dyn[];
.visible .entry kernel(.param .u64 data)
{{
.reg .pred %p<16>; .reg .b16 %h<32>; .reg .b32 %r<64>; .reg .b64 %d<32>; .reg .f32 %f<32>; .reg .f64 %e<16>;
.reg .b64 %data, %at; .reg .b32 %tid;
ld.param.u64 %data, [data];
mov.u32 %tid, %tid.x;
mad.wide.u32 %at, %tid, 4, %data;
{{
{body}
}}
ret;
}}
"
    )
}

/// Parses and runs the entry `kernel`.
pub(crate) fn run_text(
    text: &str,
    ctas: u32,
    threads: u32,
    shared_bytes: u32,
    memory: &mut Memory,
    args: &[Arg],
    options: Options,
) -> Result<Stats, EmuError> {
    let module = match Module::parse(text) {
        Ok(module) => module,
        Err(error) => panic!("{error}\n{text}"),
    };
    let launch = Launch {
        grid: [ctas, 1, 1],
        block: [threads, 1, 1],
        shared_bytes,
        args,
        options,
    };
    run(&module, "kernel", &launch, memory)
}
