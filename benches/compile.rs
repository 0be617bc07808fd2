//! Time from tile IR and from source text to PTX text: a fresh context each time, nothing remembered between compilations.
//!
//! `cargo bench` prints the medians; `benches/README.md` keeps them beside Triton's.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use tilelift::compile::compile;
use tilelift::ir::function::TileFunction;
use tilelift::ir::types::Scalar;
use tilelift::settings::{Options, Target};

#[path = "../tests/common/kernels/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests use the other kernels")]
mod kernels;

use kernels::Config;

/// What users run: no verification between passes.
const OPTIONS: Options = Options {
    verify_passes: false,
    ..Options::DEFAULT
};

fn compile_time(c: &mut Criterion) {
    let config = |block, warps| Config {
        scalar: Scalar::F32,
        block,
        warps,
        divisible: 16,
    };
    let cases: Vec<(&str, TileFunction)> = vec![
        ("vector_add", kernels::vector_add(config(1024, 4))),
        ("softmax", kernels::softmax(config(1024, 4))),
        ("softmax_32768", kernels::softmax(config(32768, 32))),
        ("layer_norm", kernels::layer_norm(config(1024, 4))),
    ];
    let mut group = c.benchmark_group("tile_to_ptx");
    for (name, func) in &cases {
        group.bench_function(*name, |b| {
            b.iter(|| {
                compile(black_box(func), Target::SM_80, &OPTIONS).expect("the kernel compiles")
            });
        });
    }
    group.finish();
}

/// The kernels of `compile_peers.py`, from the text of their file: all of it is parsed each time.
#[cfg(feature = "triton")]
fn source_time(c: &mut Criterion) {
    use tilelift::front::{Module, Specialization, parse_signature};

    const TEXT: &str = include_str!("gpu/peers.py");
    let norm = "*fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, i32, i32, fp32, 1024";
    let cases = [
        ("add", "*fp32:16, *fp32:16, *fp32:16, i32, 1024"),
        ("softmax", "*fp32:16, i32, *fp32:16, i32, i32, 1024"),
        ("layer_norm", norm),
    ];
    let lower = |name: &str, signature: &str| {
        let module = Module::parse("peers.py", TEXT).expect("it is Python");
        let args = parse_signature(signature).expect("a signature");
        let spec = Specialization::new(args, Target::SM_80);
        module.lower(Some(name), &spec).expect("it lowers").func
    };
    let mut group = c.benchmark_group("source_to_tile");
    for (name, signature) in cases {
        group.bench_function(name, |b| b.iter(|| lower(black_box(name), signature)));
    }
    group.finish();
    let mut group = c.benchmark_group("source_to_ptx");
    for (name, signature) in cases {
        group.bench_function(name, |b| {
            b.iter(|| {
                let func = lower(black_box(name), signature);
                compile(&func, Target::SM_80, &OPTIONS).expect("the kernel compiles")
            });
        });
    }
    group.finish();
}

/// Without the language there is no source text.
#[cfg(not(feature = "triton"))]
fn source_time(_: &mut Criterion) {}

criterion_group!(benches, compile_time, source_time);
criterion_main!(benches);
