//! Lane instructions a second of the PTX emulator, with every check on.
//!
//! Each kernel but the last is a loop around one kind of instruction; `cargo bench --bench emulator` prints elements a
//! second, an element being one instruction of one lane. The last is a product of matrices for Hopper.

use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tilelift::emu::{
    Arg, Fill, Launch, Memory, Module, Options, Swizzle, TensorElement, TensorMap, run,
};

/// Threads of a CTA.
const THREADS: u32 = 256;
/// CTAs.
const CTAS: u32 = 4;
/// Times that a loop runs.
const ROUNDS: u32 = 16;

/// A kernel that repeats `body`. `%a` points to the first of four tiles of global memory and `%s` to one tile of
/// shared memory, of 16 bytes for each thread of the CTA; `%b` and `%t` are as far into them as 4 bytes for each
/// thread.
fn kernel(body: &str) -> String {
    let mut text = format!(
        ".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data)
{{
.reg .pred %p; .reg .b32 %r<16>; .reg .f32 %f<16>; .reg .b32 %n, %i, %s, %t; .reg .b64 %a, %b, %o;
.shared .align 16 .b8 tile[{}];
ld.param.u64 %a, [data];
mov.u32 %i, %tid.x;
mov.u32 %s, tile;
mad.lo.u32 %t, %i, 4, %s;
mad.lo.u32 %s, %i, 16, %s;
mov.u32 %n, %ctaid.x;
mul.wide.u32 %o, %n, {};
add.u64 %a, %a, %o;
mul.wide.u32 %o, %i, 4;
add.u64 %b, %a, %o;
mul.wide.u32 %o, %i, 16;
add.u64 %a, %a, %o;
mov.u32 %n, 0;
",
        16 * THREADS,
        64 * THREADS,
    );
    for register in 0..16 {
        let _ = writeln!(
            text,
            "mov.b32 %r{register}, {register}; mov.f32 %f{register}, 0f3F800000;"
        );
    }
    let _ = write!(
        text,
        "st.shared.v4.b32 [%s], {{%r0, %r1, %r2, %r3}};
bar.sync 0;
LOOP:
{body}
add.u32 %n, %n, 1;
setp.lt.u32 %p, %n, {ROUNDS};
@%p bra LOOP;
ret;
}}
"
    );
    text
}

/// A body of `count` lines.
fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect::<Vec<_>>().join("\n")
}

/// Time that this thread ran, which other work on the machine does not lengthen; without Linux's account of it,
/// the time that passed.
fn cpu_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .map_or_else(|| START.elapsed(), Duration::from_nanos)
}

fn throughput(c: &mut Criterion) {
    let vector = |at: usize| {
        let r = at % 4 * 4;
        format!("{{%r{r}, %r{}, %r{}, %r{}}}", r + 1, r + 2, r + 3)
    };
    let cases = [
        (
            "fma",
            lines(32, |i| {
                format!(
                    "fma.rn.f32 %f{}, %f{}, %f1, %f2;",
                    3 + i % 13,
                    3 + (i + 5) % 13
                )
            }),
        ),
        (
            "integer",
            lines(32, |i| {
                format!(
                    "mad.lo.s32 %r{}, %r{}, %r1, %r2;",
                    3 + i % 13,
                    3 + (i + 5) % 13
                )
            }),
        ),
        (
            "ld_global_v4",
            lines(32, |i| {
                format!(
                    "ld.global.v4.b32 {}, [%a+{}];",
                    vector(i),
                    i as u32 % 4 * 16 * THREADS
                )
            }),
        ),
        (
            "st_global_v4",
            lines(32, |i| {
                format!(
                    "st.global.v4.b32 [%a+{}], {};",
                    i as u32 % 4 * 16 * THREADS,
                    vector(i)
                )
            }),
        ),
        (
            "ld_global_b32",
            lines(32, |i| {
                format!(
                    "ld.global.b32 %r{}, [%b+{}];",
                    i % 16,
                    i as u32 % 16 * 4 * THREADS
                )
            }),
        ),
        (
            "st_global_b32",
            lines(32, |i| {
                format!(
                    "st.global.b32 [%b+{}], %r{};",
                    i as u32 % 16 * 4 * THREADS,
                    i % 16
                )
            }),
        ),
        (
            "ld_shared_v4",
            lines(32, |i| format!("ld.shared.v4.b32 {}, [%s];", vector(i))),
        ),
        (
            "st_shared_v4",
            lines(32, |i| format!("st.shared.v4.b32 [%s], {};", vector(i))),
        ),
        (
            "ld_shared_b32",
            lines(32, |i| {
                format!(
                    "ld.shared.b32 %r{}, [%t+{}];",
                    i % 16,
                    i as u32 % 4 * 4 * THREADS
                )
            }),
        ),
        (
            "st_shared_b32",
            lines(32, |i| {
                format!(
                    "st.shared.b32 [%t+{}], %r{};",
                    i as u32 % 4 * 4 * THREADS,
                    i % 16
                )
            }),
        ),
        (
            "cp_async",
            lines(32, |i| {
                let from = i as u32 % 4 * 16 * THREADS;
                format!("cp.async.cg.shared.global [%s], [%a+{from}], 16; cp.async.wait_all;")
            }),
        ),
    ];
    let mut group = c.benchmark_group("emulator");
    group.sample_size(10);
    for (name, body) in &cases {
        let module = Module::parse(&kernel(body)).expect("valid");
        let mut memory = Memory::new();
        let data = memory.alloc_bytes(&vec![0; (64 * THREADS * CTAS) as usize]);
        let args = [Arg::pointer(data)];
        let launch = Launch {
            grid: [CTAS, 1, 1],
            block: [THREADS, 1, 1],
            shared_bytes: 0,
            args: &args,
            options: Options::default(),
        };
        let stats = run(&module, "k", &launch, &mut memory).expect("runs");
        group.throughput(Throughput::Elements(stats.lane_instructions));
        group.bench_function(*name, |b| {
            b.iter_custom(|count| {
                let start = cpu_time();
                for _ in 0..count {
                    run(black_box(&module), "k", &launch, &mut memory).expect("runs");
                }
                cpu_time() - start
            });
        });
    }
    group.finish();
}

/// The product of matrices for Hopper that was written by hand: 256 x 512, with sums over 512, by four CTAs.
fn product(c: &mut Criterion) {
    let text = include_str!("../tests/data/ptx/hopper/gemm_ws.ptx");
    let (m, n, k) = (256_usize, 512_usize, 512_usize);
    let module = Module::parse(text).expect("valid");
    let mut memory = Memory::new();
    // Ones as bf16.
    let ones = |count: usize| [0x80, 0x3f].repeat(count);
    let [a, b] = [m, n].map(|rows| memory.alloc_bytes(&ones(rows * k)));
    let out = memory.alloc(2 * m * n);
    let map = |base, rows: usize, height| {
        let map = TensorMap {
            element: TensorElement::BF16,
            base,
            extents: vec![k as u64, rows as u64],
            strides: vec![2 * k as u64],
            box_extents: vec![64, height],
            element_strides: vec![1, 1],
            swizzle: Swizzle::Bytes128,
            fill: Fill::Zeros,
        };
        Arg::bytes(&map.encode().expect("a map that can be"))
    };
    let args = [
        map(a, m, 128),
        map(b, n, 256),
        Arg::pointer(out),
        Arg::from(m as u32),
        Arg::from(n as u32),
        Arg::from(k as u32),
    ];
    let launch = Launch {
        grid: [(m / 128) as u32, (n / 256) as u32, 1],
        block: [384, 1, 1],
        shared_bytes: 197_728,
        args: &args,
        options: Options::default(),
    };
    let mut group = c.benchmark_group("emulator");
    group.sample_size(10);
    group.bench_function("product", |bench| {
        bench.iter_custom(|count| {
            let start = cpu_time();
            for _ in 0..count {
                run(&module, "gemm_ws", &launch, &mut memory).expect("runs");
            }
            cpu_time() - start
        });
    });
    group.finish();
}

criterion_group!(benches, throughput, product);
criterion_main!(benches);
