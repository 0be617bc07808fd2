//! Kernels that take tensor maps: which maps a launch makes, when it makes them anew, and what it does without.

use tilelift::runtime::cache::Cache;
use tilelift::runtime::{
    Buffer, Compiled, CompiledParam, Device, DeviceOptions, Graph, Kernel, Program, RuntimeError,
    f16,
};
use tilelift::settings::{Promote, Target};
use tilelift::stages::Stage;

/// Copies 32 numbers for each program, by the copy engine.
const MAPPED: &str = "\
.version 8.0
.target sm_90a
.address_size 64

.extern .shared .align 128 .b8 smem[];

.visible .entry copy(
	.param .u64 copy_param_0,
	.param .u64 copy_param_1,
	.param .u32 copy_param_2,
	.param .u64 copy_param_3,
	.param .align 64 .b8 copy_map_0[128]
)
.reqntid 32, 1, 1
{
	.reg .pred %p<3>;
	.reg .b32 %r<8>;
	.reg .b64 %d<6>;
	mov.u32 %r0, %tid.x;
	mov.u32 %r1, %ctaid.x;
	shl.b32 %r2, %r1, 5;
	mov.u32 %r3, smem;
	add.u32 %r4, %r3, 128;
	mov.b64 %d0, copy_map_0;
	cvta.param.u64 %d0, %d0;
	setp.eq.u32 %p0, %r0, 0;
	@%p0 mbarrier.init.shared::cta.b64 [%r4], 1;
	@%p0 fence.mbarrier_init.release.cluster;
	bar.sync 0;
	@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 128;
	@%p0 cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r3], [%d0, {%r2}], [%r4];
WAIT:
	mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0;
	@!%p1 bra WAIT;
	shl.b32 %r5, %r0, 2;
	add.u32 %r6, %r3, %r5;
	ld.shared.u32 %r6, [%r6];
	ld.param.u64 %d1, [copy_param_1];
	add.u32 %r7, %r2, %r0;
	mul.wide.u32 %d2, %r7, 4;
	add.u64 %d1, %d1, %d2;
	st.global.u32 [%d1], %r6;
	ret;
}
";

/// Without: what it copies is 1,000 more, to tell it apart.
const PLAIN: &str = "\
.version 8.0
.target sm_90a
.address_size 64

.visible .entry copy(
	.param .u64 copy_param_0,
	.param .u64 copy_param_1,
	.param .u32 copy_param_2,
	.param .u64 copy_param_3
)
.reqntid 32, 1, 1
{
	.reg .pred %p<2>;
	.reg .b32 %r<8>;
	.reg .b64 %d<6>;
	mov.u32 %r0, %tid.x;
	mov.u32 %r1, %ctaid.x;
	mad.lo.u32 %r2, %r1, 32, %r0;
	ld.param.u64 %d0, [copy_param_0];
	ld.param.u64 %d1, [copy_param_1];
	ld.param.u32 %r3, [copy_param_2];
	ld.param.u64 %d2, [copy_param_3];
	cvt.u64.u32 %d3, %r2;
	add.u64 %d2, %d2, %d3;
	shl.b64 %d2, %d2, 2;
	add.u64 %d0, %d0, %d2;
	mov.u32 %r4, 0;
	setp.lt.s32 %p0, %r2, %r3;
	@%p0 ld.global.u32 %r4, [%d0];
	add.u32 %r4, %r4, 1000;
	shl.b64 %d3, %d3, 2;
	add.u64 %d1, %d1, %d3;
	st.global.u32 [%d1], %r4;
	ret;
}
";

const PARAM: CompiledParam = CompiledParam {
    name: "x",
    pointer: true,
    element: "i32",
    divisible: 1,
};

const FALLBACK: Compiled = Compiled {
    name: "copy",
    ptx: PLAIN,
    cubin: None,
    target: "sm_90a",
    num_warps: 1,
    shared_bytes: 0,
    predicted_registers: 16,
    params: &[
        PARAM,
        CompiledParam {
            name: "out",
            ..PARAM
        },
        CompiledParam {
            name: "n",
            pointer: false,
            ..PARAM
        },
        CompiledParam {
            name: "from",
            pointer: false,
            element: "i64",
            ..PARAM
        },
    ],
    persistent: false,
    maps: &[],
    fallback: None,
    sites: &[],
};

const COPY: Compiled = Compiled {
    ptx: MAPPED,
    shared_bytes: 136,
    // `n` numbers behind the first `from`, as long as there are some and no more programs than for 96 numbers.
    maps: &[
        "{base=p0, offset=p3, elem=i32, extents=[p2], strides=[], box=[32], if=and(le(1, p2), le(gridx, 3))}",
    ],
    fallback: Some(&FALLBACK),
    ..FALLBACK
};

fn copy(device: &Device, compiled: &Compiled) -> Kernel {
    let program = Program::compiled(compiled).expect("it is well described");
    device.kernel(&program, None).expect("there is one kernel")
}

fn emulator() -> Device {
    Device::emulator_with(DeviceOptions {
        target: Some(Target::SM_90A),
        ..DeviceOptions::plain()
    })
}

#[test]
fn the_emulator_takes_maps_where_arguments_allow_them() {
    let device = emulator();
    let kernel = copy(&device, &COPY);
    let numbers: Vec<i32> = (0..256).collect();
    let x = Buffer::from_slice(&device, &numbers).expect("there is memory");
    let launch = |grid: u32, n: i32, from: i64| {
        let out = Buffer::<i32>::new(&device, 32 * grid as usize).expect("there is memory");
        kernel.run(grid, (&x, &out, n, from)).expect("it runs");
        out.read(&device.stream()).expect("it was written")
    };
    let expected = |grid: i32, n: i32, from: i32, more: i32| -> Vec<i32> {
        let number = |i| if i < n { from + i } else { 0 };
        (0..32 * grid).map(|i| number(i) + more).collect()
    };
    for (grid, n, from, is_plain) in [
        (2, 64, 0, false),
        // Numbers beyond the tensor's end read as zero; 16 bytes are aligned, 8 are not.
        (2, 50, 4, false),
        (2, 50, 2, true),
        // What the condition excludes: no numbers, and a larger grid.
        (1, 0, 0, true),
        (3, 96, 0, false),
        (4, 96, 0, true),
    ] {
        let more = if is_plain { 1000 } else { 0 };
        assert_eq!(
            launch(grid, n, from),
            expected(grid as i32, n, from as i32, more),
            "{grid} programs, {n} numbers from {from}"
        );
    }
    kernel.run(0, (&x, &x, 5, 0_i64)).expect("nothing to do");
}

#[test]
fn recorded_launches_make_their_maps_when_they_run() {
    let device = emulator();
    let kernel = copy(&device, &COPY);
    let numbers: Vec<i32> = (0..64).collect();
    let x = Buffer::from_slice(&device, &numbers).expect("there is memory");
    let out = Buffer::<i32>::new(&device, 64).expect("there is memory");
    let stream = device.stream();
    let graph = Graph::capture(&stream, |stream| {
        let (first, second) = (out.slice(0..32)?, out.slice(32..64)?);
        kernel.launch(stream, 1, (&x, first, 64, 0_i64))?;
        kernel.launch(stream, 1, (&x, second, 32, 1_i64))
    });
    let graph = graph.expect("it is recorded");
    graph.launch(&stream).expect("it runs");
    let expected: Vec<i32> = (0..32).chain(1001..1033).collect();
    assert_eq!(out.read(&stream), Ok(expected));
}

#[test]
fn arguments_without_a_fallback_are_told() {
    let device = emulator();
    let alone = Compiled {
        fallback: None,
        ..COPY
    };
    let kernel = copy(&device, &alone);
    let x = Buffer::from_slice(&device, &[1_i32; 64]).expect("there is memory");
    let out = Buffer::<i32>::new(&device, 32).expect("there is memory");
    kernel.run(1, (&x, &out, 32, 0_i64)).expect("it runs");
    let error = kernel.run(1, (&x, &out, 32, 1_i64)).expect_err("4 bytes");
    let text = error.to_string();
    assert!(
        text.contains("tensor maps, which these arguments do not allow")
            && text.contains("--promote never"),
        "{text}"
    );
}

#[test]
fn descriptions_of_maps_are_checked() {
    const OTHER: Compiled = Compiled {
        params: &[],
        ..FALLBACK
    };
    let told = |compiled: &Compiled, words: &str| {
        let text = match Program::compiled(compiled) {
            Err(RuntimeError::Setup { problem, .. }) => problem,
            other => panic!("{other:?}"),
        };
        assert!(text.contains(words), "{text}");
    };
    let with = |maps| Compiled { maps, ..COPY };
    told(
        &with(&["{base=x}"]),
        "the recipe `{base=x}`: expected `{base=p`",
    );
    told(&with(&[]), "the entry has 5 parameters, expected 4");
    told(
        &with(&["{base=p0, offset=0, elem=i32, extents=[p2], strides=[], box=[2], if=1}"]),
        "the rows of a box are a multiple of 16 bytes long, not 8",
    );
    let fallback = |fallback| Compiled {
        fallback: Some(fallback),
        ..COPY
    };
    told(&fallback(&COPY), "its fallback takes tensor maps, too");
    told(&fallback(&OTHER), "another name or other parameters");
}

#[test]
fn promotion_is_part_of_what_a_kernel_is() {
    let device = Device::emulator_with(DeviceOptions {
        cache: Cache::off(),
        ..DeviceOptions::plain()
    });
    let program = crate::tools::add_program();
    let add = device.kernel(&program, None).expect("there is a kernel");
    let auto = add.promote(Promote::Auto).expect("it is so already");
    let never = add.promote(Promote::Never).expect("it can be");
    let variants = |kernel: &Kernel| kernel.variants().len();
    let x = Buffer::from_slice(&device, &[1.5_f32; 64]).expect("there is memory");
    let never = never.constant("BLOCK", 64).expect("a constant");
    never.run(1, (&x, &x, &x, 64)).expect("it runs");
    let auto = auto.constant("BLOCK", 64).expect("a constant");
    assert_eq!((variants(&never), variants(&auto)), (1, 0));
}

/// Writes ones through `c` and, behind a barrier, multiplies what `a` points to.
const OVERWRITTEN: &str = r#"
import triton
import triton.language as tl

@triton.jit
def overwritten(a, b, c, out, K):
    m, n, k = tl.arange(0, 64), tl.arange(0, 32), tl.arange(0, 32)
    ones = tl.full((64, 64), 1.0, tl.float16)
    tl.store(c + m[:, None] * 64 + m[None, :], ones)
    tl.debug_barrier()
    sums = tl.zeros((64, 32), tl.float32)
    for i in range(0, K, 32):
        x = tl.load(a + m[:, None] * 64 + (i + k)[None, :])
        y = tl.load(b + (i + k)[:, None] * 32 + n[None, :])
        sums = tl.dot(x, y, sums)
    tl.store(out + m[:, None] * 32 + n[None, :], sums)
"#;

/// The copy engine would need a fence to see what threads stored; the emulator reports a copy without one.
#[test]
fn one_buffer_for_two_parameters_is_seen_behind_a_barrier() {
    let device = emulator();
    let program = Program::python("overwritten.py", OVERWRITTEN).expect("it is Python");
    let kernel = device.kernel(&program, None).expect("there is one kernel");
    let half = half::f16::from_f32;
    let a = Buffer::from_slice(&device, &[half(2.0); 64 * 64]).expect("there is memory");
    let numbers: Vec<half::f16> = (0..64 * 32).map(|i| half((i % 7) as f32)).collect();
    let b = Buffer::from_slice(&device, &numbers).expect("there is memory");
    let out = Buffer::<f32>::new(&device, 64 * 32).expect("there is memory");
    kernel.run(1, (&a, &b, &a, &out, 64)).expect("it runs");
    let found = out.read(&device.stream()).expect("it was written");
    for (at, &found) in found.iter().enumerate() {
        let column = (0..64).map(|k| numbers[k * 32 + at % 32].to_f32());
        assert_eq!(found, column.sum::<f32>(), "at {at}");
    }
}

/// On the stand-in for the driver, which logs what it is told.
#[cfg(feature = "cuda")]
mod stub {
    use super::*;
    use crate::counting::COUNT;
    use crate::stub::{gpu, run};
    use crate::tools::role;
    use tilelift::runtime::Arg;

    #[test]
    fn maps_are_made_when_what_they_depend_on_changes() {
        if role().is_some() {
            let device = gpu(None);
            let kernel = copy(&device, &COPY);
            let memory = Buffer::<i32>::new(&device, 512).expect("there is memory");
            let (x, y) = (memory.slice(0..256), memory.slice(256..512));
            let (x, y) = (x.expect("inside"), y.expect("inside"));
            let odd = memory.slice(1..257).expect("inside");
            // What each launch adds to the log stands in the test's other process.
            for (grid, x, out, n, from) in [
                (2, x, x, 64, 0_i64),
                (2, x, x, 64, 0),
                // The map does not depend on the output.
                (2, x, y, 64, 0),
                (2, y, x, 64, 0),
                (2, y, x, 64, 4),
                (2, y, x, 96, 4),
                (3, y, x, 96, 4),
                (4, y, x, 96, 4),
                (4, y, x, 96, 4),
                (2, y, x, 96, 1),
                (2, y, x, 96, 4),
                (2, odd, x, 96, 4),
                (2, odd, x, 96, 4),
                (2, y, x, 96, 4),
                (2, y, x, 64, 4),
                (2, x, x, 64, 4),
                (0, y, x, 7, 3),
            ] {
                let launched = kernel.launch(&device.stream(), grid, (x, out, n, from));
                launched.expect("it is launched");
            }
            return;
        }
        let test = "maps::stub::maps_are_made_when_what_they_depend_on_changes";
        let Some(log) = run(test, "maps", &[]) else {
            return;
        };
        let words = |line: &str| match line.split(' ').next() {
            Some("launch") => format!("launch of {}", line.split(' ').skip(7).count()),
            first => first.unwrap_or_default().to_owned(),
        };
        let lines = log.lines().filter(|line| !line.starts_with("unload"));
        let lines: Vec<String> = lines.map(words).collect();
        let (mapped, plain) = ("launch of 5", "launch of 4");
        let expected = [
            "assemble", "load", "encode", mapped, // the first
            mapped, mapped, "move", mapped, // another tensor
            "encode", mapped, // another place in it, which is another number
            "encode", mapped, // another extent
            mapped, // a grid that changes nothing
            "assemble", "load", plain, plain, // more programs than maps are for
            plain, // a place that is not aligned
            "encode", mapped, plain, plain, // a tensor that is not
            "encode", mapped, // what was launched before is kept
            mapped, "move", mapped,
        ];
        assert_eq!(lines, expected, "{log}");
        // Numbers of 32 bits; no interleaving, no swizzle, 128 bytes for the cache, zeros outside.
        assert!(log.contains("\nencode 2 "), "{log}");
        assert!(log.contains(": [64] [] [32] 0 0 2 0\n"), "{log}");
    }

    #[test]
    fn what_the_driver_refuses_is_launched_without_maps() {
        if role().is_some() {
            let device = gpu(None);
            let kernel = copy(&device, &COPY);
            let x = Buffer::<i32>::new(&device, 256).expect("there is memory");
            for _ in 0..2 {
                kernel.run(1, (&x, &x, 64, 0_i64)).expect("it is launched");
            }
            return;
        }
        let test = "maps::stub::what_the_driver_refuses_is_launched_without_maps";
        if let Some(log) = run(test, "maps", &[("STUB_NO_MAPS", "1")]) {
            let count = |what: &str| log.lines().filter(|line| line.starts_with(what)).count();
            // That it is refused is remembered, too.
            assert_eq!(
                (count("refuse"), count("assemble"), count("launch")),
                (1, 2, 2),
                "{log}"
            );
        }
    }

    #[test]
    fn a_launch_with_maps_allocates_nothing() {
        if role().is_some() {
            let device = gpu(None);
            let kernel = copy(&device, &COPY);
            let x = Buffer::<i32>::new(&device, 256).expect("there is memory");
            let stream = device.stream();
            let launch = |grid: u32, n: i32, from: i64| {
                let launched = kernel.launch(&stream, grid, (&x, &x, n, from));
                launched.expect("it is launched");
            };
            let all = [(1, 64, 0), (1, 64, 4), (2, 96, 4), (1, 64, 1), (4, 96, 0)];
            all.into_iter()
                .for_each(|(grid, n, from)| launch(grid, n, from));
            let before = COUNT.get();
            for (grid, n, from) in all.into_iter().cycle().take(300) {
                launch(grid, n, from);
            }
            assert_eq!(COUNT.get() - before, 0);
            return;
        }
        // Without a log, which allocates.
        let test = "maps::stub::a_launch_with_maps_allocates_nothing";
        run(test, "maps", &[("STUB_LOG", "")]);
    }

    /// A kernel of so many parameters, `x` and numbers, that takes a map of the buffer.
    fn of_many(params: usize) -> Compiled {
        let list = |more: &str| {
            let param = |i: usize| match i {
                0 => ".param .u64 copy_param_0".to_owned(),
                _ => format!(".param .u32 copy_param_{i}"),
            };
            let all: Vec<String> = (0..params).map(param).collect();
            let all = all.join(", ") + more;
            let head = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry copy";
            &*format!("{head}({all})\n{{ ret; }}\n").leak()
        };
        let number = CompiledParam {
            name: "n",
            pointer: false,
            ..PARAM
        };
        let mut all = vec![number; params];
        all[0] = PARAM;
        let fallback = Compiled {
            ptx: list(""),
            params: all.leak(),
            ..FALLBACK
        };
        Compiled {
            ptx: list(", .param .align 64 .b8 copy_map_0[128]"),
            maps: &[
                "{base=p0, offset=0, elem=i32, extents=[p1], strides=[], box=[32], if=le(1, p1)}",
            ],
            fallback: Some(Box::leak(Box::new(fallback))),
            ..fallback
        }
    }

    /// More parameters than a launch has room for on the stack arrive in their places, with the map behind them, as do as many as there
    /// is room for.
    #[test]
    fn many_parameters_arrive_with_their_maps() {
        const SIZES: [usize; 3] = [63, 64, 90];
        if role().is_some() {
            let device = gpu(None);
            let x = Buffer::<i32>::new(&device, 256).expect("there is memory");
            for params in SIZES {
                let kernel = copy(&device, &of_many(params));
                for first in [100, 200] {
                    let numbers = (1..params).map(|i| Arg::from(first + i as i32));
                    let args: Vec<Arg<'_>> =
                        std::iter::once(Arg::from(&x)).chain(numbers).collect();
                    kernel.run(1, &args[..]).expect("it is launched");
                }
            }
            return;
        }
        let test = "maps::stub::many_parameters_arrive_with_their_maps";
        let Some(log) = run(test, "maps", &[]) else {
            return;
        };
        let launches: Vec<&str> = log.lines().filter(|l| l.starts_with("launch")).collect();
        assert_eq!(launches.len(), 2 * SIZES.len(), "{log}");
        let expected = SIZES
            .iter()
            .flat_map(|&params| [(params, 100), (params, 200)]);
        for (launch, (params, first)) in launches.into_iter().zip(expected) {
            let words: Vec<&str> = launch.split(' ').skip(7).collect();
            assert_eq!(words.len(), params + 1, "{launch}");
            for (i, word) in words[..params].iter().enumerate().skip(1) {
                // Behind the number lies what was there.
                let low = &word[word.len().saturating_sub(8)..];
                assert_eq!(
                    u32::from_str_radix(low, 16),
                    Ok(first + i as u32),
                    "{launch}"
                );
            }
            // The stand-in's maps begin with the address.
            assert_eq!(words[params], words[0], "{launch}");
        }
    }

    #[test]
    fn threads_have_maps_of_their_own() {
        if role().is_some() {
            let device = gpu(None);
            let kernel = copy(&device, &COPY);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let x = Buffer::<i32>::new(&device, 256).expect("there is memory");
                        let stream = device.stream();
                        for _ in 0..50 {
                            let launched = kernel.launch(&stream, 1, (&x, &x, 64, 0_i64));
                            launched.expect("it is launched");
                        }
                    });
                }
            });
            return;
        }
        let test = "maps::stub::threads_have_maps_of_their_own";
        if let Some(log) = run(test, "maps", &[]) {
            let launches: Vec<&str> = log.lines().filter(|l| l.starts_with("launch")).collect();
            assert_eq!(launches.len(), 200, "{log}");
            // The stand-in's maps begin with the address: every launch has that of its own tensor.
            for launch in launches {
                let words: Vec<&str> = launch.split(' ').skip(7).collect();
                assert_eq!(words[0], words[4], "{launch}");
            }
        }
    }
}

/// Attention on two groups of four warps that start their products in turns, in CTAs that execute several programs: nobody waits for
/// ever, and rows are right.
#[test]
fn groups_that_multiply_in_turns_come_to_their_end() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/kernels/attention.py");
    let text = std::fs::read_to_string(path).expect("the examples are there");
    let program = Program::python(path, &text).expect("it is Python");
    let device = Device::emulator_with(DeviceOptions {
        target: Some(Target::SM_90A),
        ..DeviceOptions::plain()
    });
    let (heads, length, depth) = (3, 384, 64);
    let numbers = |seed: usize| {
        let number =
            |i: usize| f16::from_f32(((i * 37 + i / 61 * 11 + seed * 29) % 17) as f32 / 8.0 - 1.0);
        (0..heads * length * depth)
            .map(number)
            .collect::<Vec<f16>>()
    };
    let [q, k, v] = [0, 1, 2].map(numbers);
    let buffer = |data: &[f16]| Buffer::from_slice(&device, data).expect("there is memory");
    let out = buffer(&vec![f16::NAN; heads * length * depth]);
    let logs =
        Buffer::from_slice(&device, &vec![f32::NAN; heads * length]).expect("there is memory");
    let at = |data: &[f16], head: usize, row: usize| -> Vec<f64> {
        let from = (head * length + row) * depth;
        data[from..from + depth]
            .iter()
            .map(|x| x.to_f64())
            .collect()
    };
    for causal in [false, true] {
        let kernel = device
            .kernel(&program, "forward")
            .expect("there is a kernel");
        let kernel = [("BM", 128), ("BN", 128), ("D", depth as i64)]
            .into_iter()
            .try_fold(kernel, |kernel, (name, value)| kernel.constant(name, value))
            .and_then(|kernel| kernel.constant("CAUSAL", causal))
            .and_then(|kernel| kernel.warps(8)?.stages(2));
        let kernel = kernel.expect("it can be set up so");
        let scale = 0.25_f32;
        let args = (
            &out,
            &logs,
            &buffer(&q),
            &buffer(&k),
            &buffer(&v),
            length as i32,
            scale,
        );
        let ptx = kernel.emit(Stage::Ptx, args).expect("it compiles");
        assert!(
            ptx.contains("bar.arrive") && ptx.contains("setmaxnreg"),
            "{causal}"
        );
        // Whose groups come to each other's barriers in the model of time, too.
        let grid = [(length / 128) as u32, heads as u32];
        let estimate = kernel.estimate(grid, args).expect("it compiles");
        let estimate = estimate.expect("nobody waits for ever");
        assert!(!estimate.guessed && estimate.micros > 1.0, "{estimate}");
        // Where a wait may give up there are no turns to lose.
        let bounded = kernel.debug(true).expect("it can be set up so");
        let ptx = bounded.emit(Stage::Ptx, args).expect("it compiles");
        assert!(!ptx.contains("bar.arrive"), "{causal}");
        kernel.run(grid, args).expect("it runs");
        let found = out.read(&device.stream()).expect("it is there");
        for (head, row) in [(0, 0), (0, 383), (1, 127), (1, 128), (2, 200), (2, 383)] {
            let own = at(&q, head, row);
            let last = if causal { row + 1 } else { length };
            let weights = (0..last).map(|column| {
                let other = at(&k, head, column);
                let score: f64 = own.iter().zip(&other).map(|(a, b)| a * b).sum();
                (score * f64::from(scale)).exp2()
            });
            let weights: Vec<f64> = weights.collect();
            let total: f64 = weights.iter().sum();
            let mut expected = vec![0.0; depth];
            for (column, weight) in weights.iter().enumerate() {
                for (sum, value) in expected.iter_mut().zip(at(&v, head, column)) {
                    *sum += weight * value / total;
                }
            }
            // Weights and results are rounded to halves, numbers are at most 1.
            for (found, expected) in at(&found, head, row).iter().zip(&expected) {
                assert!(
                    (found - expected).abs() < 2e-3,
                    "{causal} {head} {row}: {found} {expected}"
                );
            }
        }
    }
}
