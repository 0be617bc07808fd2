//! Time from tile IR to PTX text: a fresh context each time, nothing remembered between compilations.
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

criterion_group!(benches, compile_time);
criterion_main!(benches);
