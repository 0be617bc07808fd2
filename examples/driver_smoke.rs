//! Tries the driver layer on every device of the machine, or says that there is no driver.
//!
//! ```text
//! cargo run --release --features cuda --example driver_smoke
//! ```

#![expect(
    unsafe_code,
    reason = "borrowing a foreign stream and a foreign address is what an embedding program does"
)]

use std::process::ExitCode;
use tilelift::driver::{
    Arg, Buffer, Context, Device, Driver, DriverError, Event, Function, Graph, JitOptions,
    LaunchSpec, Module, ParamSize, RawPtr, Stream, TensorElement, TensorMap, TensorShape,
    TensorSwizzle, assemble, launch,
};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// `c[i] = a[i] + b[i]` for `i < n`.
const ADD: &str = "
.version 6.4
.target sm_70
.address_size 64

.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .b64 %d<8>;
    .reg .f32 %f<4>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    ld.param.u32 %r5, [n];
    setp.ge.u32 %p, %r4, %r5;
    @%p ret;
    ld.param.u64 %d1, [a];
    ld.param.u64 %d2, [b];
    ld.param.u64 %d3, [c];
    mul.wide.u32 %d4, %r4, 4;
    add.s64 %d5, %d1, %d4;
    add.s64 %d6, %d2, %d4;
    add.s64 %d7, %d3, %d4;
    ld.global.f32 %f1, [%d5];
    ld.global.f32 %f2, [%d6];
    add.rn.f32 %f3, %f1, %f2;
    st.global.f32 [%d7], %f3;
    ret;
}
";

/// Mirrors 16384 words by way of 64 KB of shared memory, in one block of 256 threads.
const MIRROR: &str = "
.version 6.4
.target sm_70
.address_size 64

.extern .shared .align 16 .b8 room[];

.visible .entry mirror(.param .u64 from, .param .u64 to)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %d<6>;
    ld.param.u64 %d1, [from];
    ld.param.u64 %d2, [to];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, room;
    mov.u32 %r3, %r1;
fill:
    mul.wide.u32 %d3, %r3, 4;
    add.s64 %d4, %d1, %d3;
    ld.global.u32 %r4, [%d4];
    shl.b32 %r5, %r3, 2;
    add.u32 %r5, %r5, %r2;
    st.shared.u32 [%r5], %r4;
    add.u32 %r3, %r3, 256;
    setp.lt.u32 %p, %r3, 16384;
    @%p bra fill;
    bar.sync 0;
    mov.u32 %r3, %r1;
drain:
    sub.u32 %r6, 16383, %r3;
    shl.b32 %r5, %r6, 2;
    add.u32 %r5, %r5, %r2;
    ld.shared.u32 %r4, [%r5];
    mul.wide.u32 %d3, %r3, 4;
    add.s64 %d4, %d2, %d3;
    st.global.u32 [%d4], %r4;
    add.u32 %r3, %r3, 256;
    setp.lt.u32 %p, %r3, 16384;
    @%p bra drain;
    ret;
}
";

/// Each block writes its rank in its cluster and the cluster's size.
const RANKS: &str = "
.version 7.8
.target sm_90
.address_size 64

.visible .entry ranks(.param .u64 to)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [to];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %cluster_ctarank;
    mov.u32 %r3, %cluster_nctarank;
    mul.wide.u32 %d2, %r1, 8;
    add.s64 %d3, %d1, %d2;
    st.global.u32 [%d3], %r2;
    st.global.u32 [%d3+4], %r3;
    ret;
}
";

const ADD_SPEC: LaunchSpec<'static> = LaunchSpec {
    name: "add",
    block: [256, 1, 1],
    cluster: [1, 1, 1],
    shared: 0,
    params: &[
        ParamSize::Pointer,
        ParamSize::Pointer,
        ParamSize::Pointer,
        ParamSize::Bytes(4),
    ],
};

fn main() -> ExitCode {
    let driver = match Driver::load() {
        Ok(driver) => driver,
        Err(error @ (DriverError::NoDriver { .. } | DriverError::NoDevice)) => {
            println!("{error}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!(
        "CUDA {}, PTX up to {}",
        driver.version(),
        driver.newest_ptx()
    );
    match every_device() {
        Ok(()) => {
            println!("all passed");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn every_device() -> Outcome {
    for device in Device::all()? {
        println!(
            "device {}: {}, sm_{}{}, {} multiprocessors, {} MiB, L2 {} MiB, shared {} KiB a block",
            device.ordinal,
            device.name,
            device.capability.major,
            device.capability.minor,
            device.multiprocessors,
            device.memory >> 20,
            device.l2_bytes >> 20,
            device.shared_per_block >> 10
        );
        let context = Context::new(&device)?;
        let stream = Stream::new(&context)?;
        println!("  memory free, total: {:?}", context.memory()?);
        vector_add(&context, &stream)?;
        refused(&context)?;
        machine_code(&context, &stream)?;
        borrowed(&context)?;
        shared_memory(&context, &stream)?;
        wrong_launches(&context, &stream)?;
        graph(&context, &stream)?;
        if device.capability.major >= 9 {
            clusters(&context, &stream)?;
            tensor_map(&stream)?;
        }
        threads(&context)?;
        other_context_stays_current(&context)?;
    }
    Ok(())
}

/// `n` numbers whose sums are exact.
fn inputs(n: usize) -> (Vec<f32>, Vec<f32>) {
    let numbers = |step: usize| (0..n).map(move |i| ((i * step) % 1021) as f32 - 500.0);
    (numbers(7).collect(), numbers(13).collect())
}

fn expect_sums(got: &[f32], a: &[f32], b: &[f32]) -> Outcome {
    match (0..a.len()).find(|&i| got[i] != a[i] + b[i]) {
        None => Ok(()),
        Some(i) => Err(format!("c[{i}] is {}, expected {}", got[i], a[i] + b[i]).into()),
    }
}

fn add_into(
    function: &Function,
    stream: &Stream,
    pointers: [RawPtr<'_>; 3],
    n: usize,
) -> Result<(), DriverError> {
    let [a, b, c] = pointers.map(Arg::Pointer);
    let grid = [n.div_ceil(256) as u32, 1, 1];
    launch(
        function,
        &ADD_SPEC,
        grid,
        stream,
        &[a, b, c, Arg::I32(n as i32)],
    )
}

fn vector_add(context: &Context, stream: &Stream) -> Outcome {
    let mut options = JitOptions::default();
    options.verbose = true;
    let module = Module::load_with(context, ADD, &options)?;
    let function = module.function("add")?;
    println!("  add: {:?}", function.attributes());
    println!("  log: {}", module.info_log().replace('\n', "\n       "));
    println!(
        "  resident blocks: {}",
        function.blocks_per_multiprocessor(256, 0)?
    );

    let n = (1 << 24) - 5;
    let (a, b) = inputs(n);
    let (on_a, on_b) = (
        Buffer::from_slice(stream, &a)?,
        Buffer::from_slice(stream, &b)?,
    );
    let on_c = Buffer::new(context, n * 4)?;
    on_c.poison(stream)?;
    let poisoned: Vec<f32> = on_c.to_vec(stream)?;
    if !poisoned.iter().all(|value| value.is_nan()) {
        return Err("poison did not take".into());
    }
    let pointers = [on_a.ptr(), on_b.ptr(), on_c.ptr()];
    add_into(&function, stream, pointers, n)?;
    expect_sums(&on_c.to_vec(stream)?, &a, &b)?;

    let (start, end) = (Event::new(context)?, Event::new(context)?);
    let mut times = Vec::new();
    for _ in 0..20 {
        start.record(stream)?;
        add_into(&function, stream, pointers, n)?;
        end.record(stream)?;
        end.synchronize()?;
        times.push(end.elapsed_ms(&start)?);
    }
    times.sort_by(f32::total_cmp);
    let median = times[10];
    println!(
        "  add of 2^24: {median:.4} ms, {:.0} GB/s",
        n as f32 * 12.0 / median / 1e6
    );

    let small = [
        on_a.slice(0..1024)?,
        on_b.slice(0..1024)?,
        on_c.slice(0..1024)?,
    ];
    stream.synchronize()?;
    let clock = std::time::Instant::now();
    for _ in 0..1000 {
        add_into(&function, stream, small, 256)?;
    }
    let each = clock.elapsed().as_secs_f64() * 1e3;
    stream.synchronize()?;
    println!("  launch: {each:.2} us a call");
    Ok(())
}

/// What the driver says of broken, foreign and too new PTX.
fn refused(context: &Context) -> Outcome {
    let broken = ADD.replace("add.rn.f32 %f3, %f1, %f2;", "add.rn.f32 %f3, %f1;");
    let future = ADD.replace(".version 6.4", ".version 99.0");
    let foreign = ADD
        .replace(".version 6.4", ".version 8.0")
        .replace("sm_70", "sm_121");
    for (what, ptx) in [
        ("broken", &broken),
        ("too new", &future),
        ("foreign", &foreign),
    ] {
        let error = Module::load(context, ptx)
            .err()
            .ok_or("a wrong module was loaded")?;
        println!("  {what} PTX: {error}");
        let fits = match what {
            "broken" => matches!(&error, DriverError::Assemble { log, .. } if log.contains("line")),
            "too new" => matches!(error, DriverError::PtxTooNew { .. }),
            _ => true,
        };
        if !fits {
            return Err(format!("{what}: not the expected error, {error:?}").into());
        }
    }
    let error = assemble(context, &broken, &JitOptions::default()).err();
    match error {
        Some(DriverError::Assemble { log, .. }) if log.contains("line") => {}
        other => return Err(format!("assemble: {other:?}").into()),
    }
    let module = Module::load(context, ADD)?;
    println!(
        "  {}",
        module
            .function("subtract")
            .err()
            .ok_or("found a missing kernel")?
    );
    Ok(())
}

/// PTX to a cubin, a cut cubin, and the whole one run.
fn machine_code(context: &Context, stream: &Stream) -> Outcome {
    let cubin = assemble(context, ADD, &JitOptions::default())?;
    println!("  cubin: {} bytes", cubin.bytes.len());
    let cut = &cubin.bytes[..cubin.bytes.len() - 100];
    println!(
        "  cut: {}",
        Module::load_cubin(context, cut)
            .err()
            .ok_or("a cut cubin was loaded")?
    );
    let function = Module::load_cubin(context, &cubin.bytes)?.function("add")?;
    let n = 10_000;
    let (a, b) = inputs(n);
    let (on_a, on_b) = (
        Buffer::from_slice(stream, &a)?,
        Buffer::from_slice(stream, &b)?,
    );
    let on_c = Buffer::new(context, n * 4)?;
    on_c.poison(stream)?;
    add_into(&function, stream, [on_a.ptr(), on_b.ptr(), on_c.ptr()], n)?;
    expect_sums(&on_c.to_vec(stream)?, &a, &b)
}

/// A stream and memory that belong to `cust`.
fn borrowed(context: &Context) -> Outcome {
    use cust::memory::{CopyDestination, DeviceBuffer};
    let owner = cust::stream::Stream::new(cust::stream::StreamFlags::NON_BLOCKING, None)?;
    // SAFETY: `owner` lives to the end of the function.
    let stream = unsafe { Stream::from_raw(context, owner.as_inner().cast())? };
    let n = 1000;
    let (a, b) = inputs(n);
    let (on_a, on_b) = (DeviceBuffer::from_slice(&a)?, DeviceBuffer::from_slice(&b)?);
    let on_c = DeviceBuffer::from_slice(&vec![f32::NAN; n])?;
    let [a_ptr, b_ptr, c_ptr] = [&on_a, &on_b, &on_c].map(|buffer| {
        // SAFETY: the buffers live to the end of the function.
        unsafe { RawPtr::from_raw(buffer.as_device_ptr().as_raw(), n * 4) }
    });
    let function = Module::load(context, ADD)?.function("add")?;
    add_into(&function, &stream, [a_ptr, b_ptr, c_ptr], n)?;
    stream.synchronize()?;
    let mut c = vec![0.0; n];
    on_c.copy_to(&mut c)?;
    expect_sums(&c, &a, &b)?;
    println!("  borrowed stream and pointers: right");
    Ok(())
}

fn shared_memory(context: &Context, stream: &Stream) -> Outcome {
    let function = Module::load(context, MIRROR)?.function("mirror")?;
    let mut spec = LaunchSpec {
        name: "mirror",
        block: [256, 1, 1],
        cluster: [1, 1, 1],
        shared: 64 << 10,
        params: &[ParamSize::Pointer, ParamSize::Pointer],
    };
    let words: Vec<u32> = (0..16_384)
        .map(|i: u32| i.wrapping_mul(2_654_435_761))
        .collect();
    let from = Buffer::from_slice(stream, &words)?;
    let to = Buffer::new(context, from.bytes())?;
    to.poison(stream)?;
    let args = [Arg::Pointer(from.ptr()), Arg::Pointer(to.ptr())];
    launch(&function, &spec, [1, 1, 1], stream, &args)?;
    let got: Vec<u32> = to.to_vec(stream)?;
    if !got.iter().eq(words.iter().rev()) {
        return Err("64 KB of shared memory: wrong words".into());
    }
    println!("  64 KB of shared memory: right");
    spec.shared = 1 << 20;
    let error = launch(&function, &spec, [1, 1, 1], stream, &args).err();
    match error {
        Some(error @ DriverError::SharedMemory { .. }) => println!("  {error}"),
        other => return Err(format!("1 MB of shared memory: {other:?}").into()),
    }
    Ok(())
}

fn wrong_launches(context: &Context, stream: &Stream) -> Outcome {
    let function = Module::load(context, ADD)?.function("add")?;
    let none = Arg::Pointer(RawPtr::null());
    let few = launch(&function, &ADD_SPEC, [1, 1, 1], stream, &[none]);
    let wide = [none, none, none, Arg::I64(0)];
    let kind = launch(&function, &ADD_SPEC, [1, 1, 1], stream, &wide);
    let args = [none, none, none, Arg::I32(0)];
    let large = LaunchSpec {
        block: [2048, 1, 1],
        ..ADD_SPEC
    };
    let threads = launch(&function, &large, [1, 1, 1], stream, &args);
    let tall = launch(&function, &ADD_SPEC, [1, 1 << 20, 1], stream, &args);
    for result in [few, kind, threads, tall] {
        println!("  {}", result.err().ok_or("a wrong launch was accepted")?);
    }
    launch(&function, &ADD_SPEC, [0, 1, 1], stream, &args)?;
    stream.synchronize()?;
    Ok(())
}

fn graph(context: &Context, stream: &Stream) -> Outcome {
    let n = 1 << 16;
    let (a, b) = inputs(n);
    let (on_a, on_b) = (
        Buffer::from_slice(stream, &a)?,
        Buffer::from_slice(stream, &b)?,
    );
    let on_c = Buffer::new(context, n * 4)?;
    on_c.poison(stream)?;
    let graph = {
        // The graph keeps the module: this handle goes before the runs.
        let function = Module::load(context, ADD)?.function("add")?;
        Graph::capture(stream, |stream| {
            (0..20).try_for_each(|_| {
                add_into(&function, stream, [on_a.ptr(), on_b.ptr(), on_c.ptr()], n)
            })
        })?
    };
    if !on_c
        .to_vec::<f32>(stream)?
        .iter()
        .all(|value| value.is_nan())
    {
        return Err("recording ran the kernel".into());
    }
    let (start, end) = (Event::new(context)?, Event::new(context)?);
    graph.launch(stream)?;
    start.record(stream)?;
    graph.launch(stream)?;
    end.record(stream)?;
    end.synchronize()?;
    println!(
        "  graph: {:.2} us a kernel",
        end.elapsed_ms(&start)? * 1e3 / 20.0
    );
    expect_sums(&on_c.to_vec(stream)?, &a, &b)?;
    // A copy to the host waits, which a recording cannot.
    let wrong = Graph::capture(stream, |stream| on_c.to_vec::<f32>(stream).map(drop));
    println!(
        "  copy in a recording: {}",
        wrong.err().ok_or("a recorded copy was accepted")?
    );
    expect_sums(&on_c.to_vec(stream)?, &a, &b)
}

fn clusters(context: &Context, stream: &Stream) -> Outcome {
    let function = Module::load(context, RANKS)?.function("ranks")?;
    for size in [2_u32, 4, 8, 16] {
        let spec = LaunchSpec {
            name: "ranks",
            block: [32, 1, 1],
            cluster: [size, 1, 1],
            shared: 0,
            params: &[ParamSize::Pointer],
        };
        let to = Buffer::new(context, 32 * 8)?;
        to.poison(stream)?;
        launch(
            &function,
            &spec,
            [32, 1, 1],
            stream,
            &[Arg::Pointer(to.ptr())],
        )?;
        let got: Vec<u32> = to.to_vec(stream)?;
        let expected: Vec<u32> = (0..32).flat_map(|block| [block % size, size]).collect();
        if got != expected {
            return Err(format!("clusters of {size}: {got:?}").into());
        }
    }
    println!("  clusters of 2, 4, 8, 16: right");
    Ok(())
}

fn tensor_map(stream: &Stream) -> Outcome {
    let memory = Buffer::new(stream.context(), 256 * 64 * 2)?;
    let mut shape = TensorShape {
        element: TensorElement::F16,
        dims: &[64, 256],
        strides: &[128],
        tile: &[64, 32],
        swizzle: TensorSwizzle::B128,
        nan: false,
    };
    let map = TensorMap::new(memory.ptr(), &shape)?;
    if map.arg().size() != ParamSize::Bytes(128) {
        return Err("a tensor map is not 128 bytes".into());
    }
    shape.strides = &[100];
    let error = TensorMap::new(memory.ptr(), &shape).err();
    println!(
        "  bad tensor map: {}",
        error.ok_or("a stride of 100 bytes was accepted")?
    );
    Ok(())
}

/// One module, used by threads that never saw the context.
fn threads(context: &Context) -> Outcome {
    let function = Module::load(context, ADD)?.function("add")?;
    let work = || -> Result<(), String> {
        let text = |error: DriverError| error.to_string();
        let stream = Stream::new(context).map_err(text)?;
        let n = 5000;
        let (a, b) = inputs(n);
        let on_a = Buffer::from_slice(&stream, &a).map_err(text)?;
        let on_b = Buffer::from_slice(&stream, &b).map_err(text)?;
        let on_c = Buffer::new(context, n * 4).map_err(text)?;
        add_into(&function, &stream, [on_a.ptr(), on_b.ptr(), on_c.ptr()], n).map_err(text)?;
        let c = on_c.to_vec(&stream).map_err(text)?;
        expect_sums(&c, &a, &b).map_err(|error| error.to_string())
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        handles
            .into_iter()
            .try_for_each(|handle| handle.join().unwrap_or_else(|_| Err("panicked".to_owned())))
    })?;
    println!("  four threads: right");
    Ok(())
}

/// A context that the host program made current is current after our calls.
fn other_context_stays_current(context: &Context) -> Outcome {
    use cust::context::legacy;
    let device = cust::device::Device::get_device(context.device().ordinal)?;
    let other = legacy::Context::create_and_push(legacy::ContextFlags::SCHED_AUTO, device)?;
    let before = format!("{:?}", legacy::CurrentContext::get_current()?);
    let again = Context::new(context.device())?;
    let stream = Stream::new(&again)?;
    let buffer = Buffer::from_slice(&stream, &[1_u8, 2, 3])?;
    let values: Vec<u8> = buffer.to_vec(&stream)?;
    let after = format!("{:?}", legacy::CurrentContext::get_current()?);
    drop(other);
    if before != after || values != [1, 2, 3] {
        return Err(format!("current context {before} became {after}").into());
    }
    println!("  the host's own context stays current");
    Ok(())
}
