//! The interface, on the emulator.

use std::time::Duration;

use tilelift::prelude::{Elem, Scalar, Shape, TileBuilder, TileType};
use tilelift::runtime::cache::Origin;
use tilelift::runtime::{
    Arg, Buffer, CancelToken, Constants, DType, Deadline, Descriptor, Device, DeviceOptions, Event,
    Kernel, NONE, Program, RuntimeError, Stopped,
};

use crate::tools::{ADD, add_program, emulator};

pub(crate) fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| i as f32 * 0.5).collect()
}

/// The kernel and three buffers of `n` numbers.
pub(crate) fn setup(device: &Device, n: usize) -> (Kernel, [Buffer<f32>; 3]) {
    let kernel = device.kernel(&add_program(), "add");
    let kernel = kernel.and_then(|kernel| kernel.constant("BLOCK", 128));
    let from = || Buffer::from_slice(device, &numbers(n)).expect("there is memory");
    let out = Buffer::new(device, n).expect("there is memory");
    (kernel.expect("there is a kernel"), [from(), from(), out])
}

#[test]
fn launches_compute_and_find_their_variants() {
    let device = emulator(None);
    let n = 1000;
    let (kernel, [x, y, out]) = setup(&device, n);
    assert_eq!(kernel.arguments(), ["x", "y", "out", "n"]);
    let stream = device.stream();
    let grid = |c: Constants| Some([(n as u32).div_ceil(c.int("BLOCK")?), 1, 1]);
    for _ in 0..3 {
        kernel
            .launch(&stream, &grid, (&x, &y, &out, n as i32))
            .expect("it runs");
    }
    assert_eq!(
        out.read(&stream).expect("it ran"),
        numbers(2 * n).into_iter().step_by(2).collect::<Vec<_>>()
    );
    let variants = kernel.variants();
    assert_eq!(variants.len(), 1);
    assert_eq!(variants[0].signature, "*fp32:16, *fp32:16, *fp32:16, i32:4");
    assert_eq!(variants[0].kernel_origin, Origin::Made);

    // Another set-up of the same kernel finds them, a clone of the program too.
    let program = add_program();
    let first = device.kernel(&program, None).expect("there is one kernel");
    first
        .constant("BLOCK", 128)
        .and_then(|k| k.run(8, (&x, &y, &out, n as i32)))
        .expect("it runs");
    let again = device
        .kernel(&program.clone(), "add")
        .and_then(|k| k.constant("BLOCK", 128));
    assert_eq!(again.expect("there is a kernel").variants().len(), 1);
}

#[test]
fn arguments_are_specialised_as_in_triton() {
    let device = emulator(None);
    let (kernel, [x, y, out]) = setup(&device, 256);
    let signature = |kernel: &Kernel, n: Arg<'_>, at: usize| {
        let slice = |b: &Buffer<f32>| b.slice(at..256).map(|p| p.address());
        slice(&x).expect("inside");
        let pointers = [&x, &y, &out].map(|b| b.slice(at..256).expect("inside"));
        let [a, b, c] = pointers.map(Arg::from);
        let explained = kernel.explain([a, b, c, n]).expect("they fit");
        explained.signature
    };
    let shown = |n: Arg<'_>, at| signature(&kernel, n, at);
    assert_eq!(shown(Arg::from(7), 0), "*fp32:16, *fp32:16, *fp32:16, i32");
    assert_eq!(
        shown(Arg::from(1), 0),
        "*fp32:16, *fp32:16, *fp32:16, i32:1"
    );
    assert_eq!(
        shown(Arg::from(48_i64), 4),
        "*fp32:16, *fp32:16, *fp32:16, i64:16"
    );
    assert_eq!(
        shown(Arg::from(48_u32), 1),
        "*fp32:4, *fp32:4, *fp32:4, u32:16"
    );
    assert_eq!(shown(NONE, 0), "*fp32:16, *fp32:16, *fp32:16, None");
    let plain = kernel
        .do_not_specialize("n")
        .expect("there is such a parameter");
    assert_eq!(
        signature(&plain, Arg::from(1), 0),
        "*fp32:16, *fp32:16, *fp32:16, i32"
    );
    let unaligned = kernel
        .do_not_specialize_on_alignment("x")
        .expect("there is such a parameter");
    assert_eq!(
        signature(&unaligned, Arg::from(16), 0),
        "*fp32, *fp32:16, *fp32:16, i32:16"
    );
    assert!(kernel.do_not_specialize("m").is_err());

    // Each of them computes the same.
    for n in [1, 7, 16] {
        out.fill(&device.stream(), 0).expect("it can be filled");
        kernel.run(2, (&x, &y, &out, n)).expect("it runs");
        let sums = out.read(&device.stream()).expect("it ran");
        let right = |i: usize| if (i as i32) < n { i as f32 } else { 0.0 };
        assert!((0..256).all(|i| sums[i] == right(i)), "{n}");
    }
    let text = kernel
        .explain((&x, &y, &out, 1))
        .expect("they fit")
        .to_string();
    assert!(text.contains("(ready)"), "{text}");
    assert!(
        text.contains("n: i32:1, its value is 1 and becomes a constant"),
        "{text}"
    );
    assert_eq!(kernel.variants().len(), 3);
}

#[test]
fn specialisation_of_the_program_counts() {
    let device = emulator(None);
    let text = ADD.replace("@triton.jit\n", "@triton.jit(do_not_specialize=[\"n\"])\n");
    let program = Program::python("add.py", &text).expect("it is Python");
    let kernel = device
        .kernel(&program, "add")
        .and_then(|k| k.constant("BLOCK", 64));
    let kernel = kernel.expect("there is a kernel");
    let x = Buffer::<f32>::new(&device, 64).expect("there is memory");
    let explained = kernel.explain((&x, &x, &x, 1)).expect("they fit");
    assert_eq!(explained.signature, "*fp32:16, *fp32:16, *fp32:16, i32");
}

#[test]
fn messages_say_what_to_do() {
    const TEXT: &str = "
import triton, triton.language as tl

@triton.jit
def copy(d, out):
    i = tl.arange(0, 16)
    tile = d.load([0, 0])
    tl.store(out + i[:, None] * 16 + i[None, :], tile)

@triton.jit
def put(x, n, B: tl.constexpr = 32):
    tl.store(x, n)
";
    let device = emulator(None);
    let program = Program::python("k.py", TEXT).expect("it is Python");
    let stream = device.stream();
    let x = Buffer::from_slice(&device, &numbers(256)).expect("there is memory");
    let out = Buffer::from_slice(&device, &[0.0_f32; 256]).expect("there is memory");
    let copy = device.kernel(&program, "copy").expect("there is one");
    let put = device.kernel(&program, "put").expect("there is one");
    let text = |result: Result<(), RuntimeError>| result.expect_err("it is wrong").to_string();
    let has = |text: String, part: &str| assert!(text.contains(part), "{part}\n{text}");

    let error = text(copy.launch(&stream, 1, (&x, &out)));
    has(error.clone(), "a pointer *fp32 has no attribute `load`");
    has(
        error,
        "tensor descriptors have `load`: make one (tl.make_tensor_descriptor), or give one as argument, a `Descriptor`",
    );
    // By reference and by value.
    let tile = Descriptor::contiguous(x.ptr(), &[16, 16], &[16, 16]).expect("it fits");
    for result in [
        copy.launch(&stream, 1, (&tile, &out)),
        copy.launch(&stream, 1, (tile, &out)),
    ] {
        assert_eq!(result, Ok(()));
        assert_eq!(out.read(&stream), Ok(numbers(256)));
    }

    let error = text(put.constant("num_warps", 8).map(drop));
    has(error, "it is an option and no constant: `Kernel::warps`");
    let error = device.kernel(&program, None).map(drop);
    has(
        text(error),
        "the program has several kernels, and none is named; there is copy, put",
    );
    let error = device.kernel(&program, "pit").map(drop);
    has(text(error), "there is no kernel `pit`; there is copy, put");
    let empty = Program::python("empty.py", "x = 1").expect("it is Python");
    has(
        text(device.kernel(&empty, None).map(drop)),
        "there is no kernel in the program",
    );

    let grid = |c: Constants| Some([c.int("BLOCK")?, 1, 1]);
    // Before anything is launched.
    let told = put
        .constant("num_warp", 7)
        .expect_err("nobody asks for it")
        .to_string();
    has(told, "nothing in the file is called `num_warp`");
    let error = device
        .kernel(&program, "put")
        .and_then(|k| k.constant("BB", 7))
        .map(drop);
    has(text(error), "did you mean `B`?");
    let error = text(put.constant("A", 7).map(drop));
    has(error, "nothing in the file is called `A`");
    let error = text(put.launch(&stream, &grid, (&out, 5.0_f32)));
    has(
        error,
        "the function of the grid gave none, as for a constant that is not there or no positive integer; there is B = 32",
    );
    let error = text(put.launch(&stream, [1, 70_000], (&out, 5.0_f32)));
    has(
        error,
        "a grid of 1 x 70000 x 1 programs; each axis has at least 1",
    );
    for (bound, is_fine) in [(0, false), (1, true), (1 << 16, true), (1 << 17, false)] {
        assert_eq!(put.variant_limit(bound).is_ok(), is_fine, "{bound}");
    }

    let other = emulator(None);
    let (own, foreign) = (Event::new(&device), Event::new(&other));
    let (own, foreign) = (own.expect("an event"), foreign.expect("an event"));
    own.record(&stream).expect("it is recorded");
    foreign.record(&other.stream()).expect("it is recorded");
    let what = "the event belongs to another device";
    stream.wait(&foreign).expect("streams wait for all events");
    has(text(own.elapsed_ms(&foreign).map(drop)), what);
    has(text(foreign.record(&stream)), "belongs to another device");
}

#[test]
fn names_and_texts_may_be_of_any_language() {
    const TEXT: &str = "
import triton, triton.language as tl

@triton.jit
def größe(ä, n):
    tl.device_print('Größe', n)
    tl.device_assert(n > 5, 'zu groß')
    tl.store(ä, n)

@triton.jit
def _(x, n):
    tl.store(x, 2 * n)

@triton.jit
def WARP_SZ(x, n):
    tl.store(x, 3 * n)
";
    let device = emulator(None);
    let program = Program::python("größe.py", TEXT).expect("it is Python");
    let x = Buffer::from_slice(&device, &[0_i32]).expect("there is memory");
    for (name, value) in [("größe", 5), ("_", 10), ("WARP_SZ", 15)] {
        let kernel = device.kernel(&program, name);
        let kernel = kernel.and_then(|k| k.debug(true)).expect("there is one");
        // The assertion of the first fails, after what it writes is written.
        assert_eq!(kernel.run(1, (&x, 5)).is_ok(), name != "größe");
        assert_eq!(x.read(&device.stream()), Ok(vec![value]), "{name}");
        assert_eq!(kernel.variants()[0].kernel, name);
    }
    let kernel = device.kernel(&program, "größe").and_then(|k| k.debug(true));
    let lines = kernel.and_then(|k| k.printed(&device.stream(), (&x, 5)));
    assert_eq!(
        lines,
        Ok(vec![
            "pid (0, 0, 0) Größe: 5".to_owned(),
            "pid (0, 0, 0) assertion failed: zu groß (größe.py:7)".to_owned(),
        ])
    );
}

#[test]
fn what_a_kernel_does_wrong_is_told_with_its_line() {
    let device = emulator(None);
    let (kernel, [x, y, out]) = setup(&device, 64);
    // There is no element 64 to 127.
    let error = kernel
        .run(1, (&x, &y, &out, 128))
        .expect_err("it is outside");
    let text = error.to_string();
    assert!(
        text.starts_with("kernel `add`, argument `x`: add.py:9: ptx line"),
        "{text}"
    );
    assert!(matches!(error, RuntimeError::Emulator { .. }));
    kernel
        .run(1, (&x, &y, &out, 64))
        .expect("the emulator stays usable");
}

#[test]
fn functions_of_the_ir_are_programs() {
    let block = Shape::new(&[128]).expect("a power of two");
    let pointer = TileType::scalar(Elem::global(Scalar::F32));
    let mut b = TileBuilder::new("twice", 4);
    let data = b.param_divisible("data", pointer, 8);
    let range = b.arange(0, TileType::block(Elem::I32, block));
    let data = b.to_shape(data, block);
    let pointers = b.addptr(data, range);
    let x = b.load(pointers, None, None);
    let y = b.fadd(x, x);
    b.store(pointers, y, None);
    b.ret();
    let func = b.finish().expect("it is well built");
    let text = func.to_string();
    let device = emulator(None);
    let programs = [
        Program::function(func).expect("it is valid"),
        Program::tir("twice.tir", &text).expect("it is valid"),
    ];
    for program in programs {
        let kernel = device.kernel(&program, None).expect("there is one kernel");
        let data = Buffer::from_slice(&device, &numbers(129)).expect("there is memory");
        kernel.run(1, (&data,)).expect("it runs");
        let doubled = data.read(&device.stream()).expect("it ran");
        assert_eq!(doubled[127], 127.0);
        assert_eq!(doubled[128], 64.0);
        assert_eq!(kernel.variants()[0].signature, "*fp32:16");
        // What the function promises of its parameter is checked.
        let odd = data.slice(1..129).expect("inside");
        let error = kernel.run(1, (odd,)).expect_err("it is not a multiple");
        assert!(
            error
                .to_string()
                .ends_with("is not a multiple of 8, and the kernel is compiled for one"),
            "{error}"
        );
        let even = data.slice(0..2).expect("inside").cast(DType::F16);
        let error = kernel.run(1, (even,)).expect_err("it is of another type");
        assert!(
            error.to_string().contains("it is *fp16, expected *fp32"),
            "{error}"
        );
        assert!(kernel.constant("BLOCK", 1).is_err());
    }
    assert!(Program::tir("no.tir", "kernel").is_err());
    assert!(Program::python("no.py", "def (").is_err());
}

#[test]
fn variants_are_bounded() {
    let device = emulator(None);
    let (kernel, [x, y, out]) = setup(&device, 64);
    let kernel = kernel.variant_limit(4).expect("a number");
    for n in [64, 1, 5] {
        kernel.run(1, (&x, &y, &out, n)).expect("there is room");
    }
    // Three of four: from here on there are variants for types alone.
    kernel
        .run(1, (&x, &y, &out, 16_i64))
        .expect("there is room for one of types alone");
    let signatures: Vec<String> = kernel.variants().into_iter().map(|v| v.signature).collect();
    assert!(
        signatures.contains(&"*fp32, *fp32, *fp32, i64".to_owned()),
        "{signatures:?}"
    );
    kernel
        .run(1, (&x, &y, &out, 1_i64))
        .expect("the same one serves");
    let error = kernel
        .run(1, (&x, &y, &out, 1_u32))
        .expect_err("there is no room");
    assert!(
        matches!(error, RuntimeError::TooManyVariants { limit: 4, .. }),
        "{error}"
    );
    assert_eq!(kernel.variants().len(), 4);
}

#[test]
fn kernels_are_prepared_ahead() {
    let device = emulator(None);
    let (kernel, [x, y, out]) = setup(&device, 64);
    let args = (&x, &y, &out, 64);
    let report = kernel
        .prepare(args, &Deadline::default())
        .expect("it compiles");
    assert_eq!(report.signature, "*fp32:16, *fp32:16, *fp32:16, i32:4");
    assert_eq!((report.num_warps, report.resources), (4, None));
    assert_eq!(report.constants[0], ("BLOCK".to_owned(), "128".to_owned()));
    assert!(report.timing.total() > Duration::ZERO);
    let predicted = report.predicted;
    assert_eq!(kernel.predict(args, &Deadline::default()), Ok(predicted));
    // 4 warps of few registers: 16 programs fill the 64 warps of a multiprocessor.
    assert!((8..40).contains(&predicted.registers), "{predicted}");
    assert_eq!((predicted.most_registers, predicted.threads), (255, 128));
    assert_eq!((predicted.resident, predicted.occupancy_percent), (16, 100));
    assert_eq!((predicted.spilled_bytes, predicted.local_bytes), (0, 0));
    // With fewer registers than it needs it spills.
    let tight = kernel
        .max_registers(16)
        .and_then(|k| k.constant("BLOCK", 8192));
    let tight = tight.and_then(|k| k.predict(args, &Deadline::default()));
    let tight = tight.expect("it compiles");
    assert_eq!(tight.most_registers, 16);
    assert!(tight.registers > 24 && tight.spilled_bytes > 0, "{tight}");
    assert_eq!(tight.local_bytes, tight.spilled_bytes);

    let wide = kernel.warps(8).expect("a number of warps");
    wide.prepare_in_background(args).expect("they fit");
    // Waits for the one in the background, or for its own.
    wide.run(1, args).expect("it runs");
    assert_eq!(wide.variants().len(), 1);
    assert_eq!(wide.variants()[0].num_warps, 8);

    let cancel = CancelToken::new();
    cancel.cancel();
    let late = kernel.warps(2).expect("a number of warps");
    for (deadline, why) in [
        (Deadline::until(&cancel), Stopped::Cancelled),
        (Deadline::within(Duration::ZERO), Stopped::Deadline),
    ] {
        let error = late.prepare(args, &deadline).expect_err("it stopped");
        let expected = RuntimeError::Stopped {
            kernel: "add".to_owned(),
            stopped: why,
        };
        assert_eq!(error, expected);
    }
    // Nothing of that stays.
    late.launch_with(
        &device.stream(),
        1,
        args,
        &Deadline::within(Duration::from_secs(600)),
    )
    .expect("it runs");
}

#[test]
fn threads_share_a_kernel() {
    let device = emulator(None);
    let (kernel, [x, y, out]) = setup(&device, 64);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (kernel, x, y, out) = (&kernel, &x, &y, &out);
            scope.spawn(move || {
                for n in [1, 16, 5] {
                    let n = if thread % 2 == 0 { n } else { n + 16 };
                    kernel.run(1, (x, y, out, n)).expect("it runs");
                }
            });
        }
    });
    assert_eq!(kernel.variants().len(), 3, "1, multiples of 16, and others");
}

#[test]
fn events_mark_times() {
    let device = emulator(None);
    let stream = device.stream();
    let [start, end] = [0; 2].map(|_| Event::new(&device).expect("an event"));
    assert_eq!(end.elapsed_ms(&start), Err(RuntimeError::NotRecorded));
    start.record(&stream).expect("it is of this device");
    end.record(&stream).expect("it is of this device");
    stream.wait(&end).expect("it is of this device");
    assert!(end.elapsed_ms(&start).expect("both are recorded") >= 0.0);
    assert_eq!((stream.is_done(), end.is_done()), (Ok(true), Ok(true)));
    assert!(start.record(&emulator(None).stream()).is_err());
}

#[test]
fn a_warm_cache_compiles_nothing() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let mut origins = Vec::new();
    for _ in 0..2 {
        let device = emulator(Some(dir.path()));
        let (kernel, [x, y, out]) = setup(&device, 64);
        kernel.run(1, (&x, &y, &out, 64)).expect("it runs");
        let report = &kernel.variants()[0];
        origins.push((
            report.kernel_origin,
            report.timing.compile == Duration::ZERO,
        ));
        // What is set up otherwise is another kernel.
        let scaled = kernel.constant("SCALE", 3).expect("a constant");
        scaled.run(1, (&x, &y, &out, 64)).expect("it runs");
        assert_eq!(out.read(&device.stream()).expect("it ran")[10], 30.0);
    }
    assert_eq!(origins, [(Origin::Made, false), (Origin::Disk, true)]);
}

#[test]
fn advice_is_for_those_who_call() {
    let device = emulator(None);
    let kernel = device.kernel(&add_program(), "add");
    let kernel = kernel.expect("there is a kernel");
    let x = Buffer::<f32>::new(&device, 64).expect("there is memory");
    let error = kernel
        .run(1, (&x, &x, &x, 64))
        .expect_err("BLOCK is missing");
    let text = error.to_string();
    assert!(
        text.contains("`Kernel::constant(\"BLOCK\", value)` gives it a value"),
        "{text}"
    );
    assert!(!text.contains("-c "), "{text}");
}

#[test]
fn what_kernels_print_is_read() {
    let device = emulator(None);
    let text = r#"
kernel @say(v0 "n": i32) warps(1) {
block0:
    device_print v0 {text = "n is"}
    return
}"#;
    let program = Program::tir("say.tir", text).expect("it is valid");
    let kernel = device.kernel(&program, None).expect("there is one kernel");
    let stream = device.stream();
    assert_eq!(kernel.printed(&stream, (7,)), Ok(Vec::new()));
    kernel.launch(&stream, 2, (7,)).expect("it runs");
    let lines = kernel.printed(&stream, (7,)).expect("it ran");
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[1].starts_with("pid (1, 0, 0)") && lines[1].ends_with(": 7"),
        "{lines:?}"
    );
    // Of another launch only what that one printed.
    kernel.launch(&stream, 1, (7,)).expect("it runs");
    assert_eq!(
        kernel.printed(&stream, (7,)).map(|lines| lines.len()),
        Ok(1)
    );
}

#[test]
fn a_buffer_can_be_changed_in_place() {
    // The kernel knows nothing of it: two arguments are the same. Blocks of 32 in four warps have three copies, of 8 more.
    for (block, warps, seed) in [(32, 4, 1), (32, 4, 2), (8, 1, 3), (8, 4, 4), (256, 4, 5)] {
        let device = Device::emulator_with(DeviceOptions {
            emulator: tilelift::emu::Options {
                seed,
                ..tilelift::emu::Options::default()
            },
            ..DeviceOptions::plain()
        });
        let kernel = device.kernel(&add_program(), "add");
        let kernel = kernel.and_then(|kernel| kernel.constant("BLOCK", block));
        let kernel = kernel.and_then(|kernel| kernel.warps(warps));
        let kernel = kernel.expect("there is a kernel");
        let n = 256;
        let x = Buffer::from_slice(&device, &numbers(n)).expect("there is memory");
        let stream = device.stream();
        let grid = |c: Constants| Some([(n as u32).div_ceil(c.int("BLOCK")?), 1, 1]);
        kernel
            .launch(&stream, &grid, (&x, &x, &x, n as i32))
            .expect("it runs");
        assert_eq!(
            x.read(&stream).expect("it ran, without a race"),
            numbers(2 * n).into_iter().step_by(2).collect::<Vec<_>>()
        );
    }
}
