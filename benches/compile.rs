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

/// A kernel of a file of Python.
#[cfg(feature = "triton")]
struct Source {
    name: &'static str,
    text: &'static str,
    kernel: &'static str,
    signature: &'static str,
    stages: Option<u8>,
}

#[cfg(feature = "triton")]
impl Source {
    fn lower(&self) -> TileFunction {
        use tilelift::front::{Module, Specialization, parse_signature};

        let module = Module::parse("kernel.py", self.text).expect("it is Python");
        let args = parse_signature(self.signature).expect("a signature");
        let spec = Specialization {
            num_stages: self.stages,
            ..Specialization::new(args, Target::SM_80)
        };
        module
            .lower(Some(self.kernel), &spec)
            .expect("it lowers")
            .func
    }
}

/// The kernels of `compile_peers.py`, from the texts of their files: all of a file is parsed each time.
#[cfg(feature = "triton")]
fn source_time(c: &mut Criterion) {
    let peer = |name, signature| Source {
        name,
        text: include_str!("gpu/peers.py"),
        kernel: name,
        signature,
        stages: None,
    };
    let norm = "*fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, *fp32:16, i32, i32, fp32, 1024";
    let cases = [
        peer("add", "*fp32:16, *fp32:16, *fp32:16, i32, 1024"),
        peer("softmax", "*fp32:16, i32, *fp32:16, i32, i32, 1024"),
        peer("layer_norm", norm),
        Source {
            name: "matmul_128x128x64",
            text: include_str!("../examples/kernels/matmul.py"),
            kernel: "matmul",
            signature: "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, i32:16, i32:16, i32:1, i32:16, 128, 128, 64, 8, \
                        fp32, 'tf32'",
            stages: Some(3),
        },
        Source {
            name: "attention_d64_causal",
            text: include_str!("../examples/kernels/attention.py"),
            kernel: "forward",
            signature: "*fp16:16, *fp32:16, *fp16:16, *fp16:16, *fp16:16, i32:16, fp32, 128, 64, 64, True",
            stages: Some(3),
        },
    ];
    let mut group = c.benchmark_group("source_to_tile");
    for source in &cases {
        group.bench_function(source.name, |b| b.iter(|| black_box(source).lower()));
    }
    group.finish();
    let mut group = c.benchmark_group("source_to_ptx");
    for source in &cases {
        group.bench_function(source.name, |b| {
            b.iter(|| {
                let func = black_box(source).lower();
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
