//! The run time on a GPU; where there is none, each test says so and passes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tilelift::driver;
use tilelift::runtime::cache::{Cache, Origin, Settings};
use tilelift::runtime::{
    Buffer, Constants, DType, Deadline, Descriptor, Device, DeviceOptions, Event, Graph, Kernel,
    Pointer, Program, RuntimeError, Stream,
};
use tilelift::settings::{Policy, Target, Usage};
use tilelift::tune::{Config, Tuner};

use crate::tools::{add_program, another_process, role};

/// The first GPU.
fn gpu(dir: Option<&Path>) -> Option<Device> {
    let options = DeviceOptions {
        cache: dir.map_or_else(Cache::off, |dir| Cache::new(Settings::new(dir))),
        ..DeviceOptions::plain()
    };
    match Device::gpu_with(0, options) {
        Ok(device) => Some(device),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn kernel(device: &Device, text: &str, name: &str) -> Kernel {
    let program = Program::python("kernels.py", text).expect("it is Python");
    device.kernel(&program, name).expect("there is a kernel")
}

fn add(device: &Device) -> Kernel {
    let kernel = device.kernel(&add_program(), "add");
    let kernel = kernel.and_then(|kernel| kernel.constant("BLOCK", 256));
    kernel.expect("there is a kernel")
}

fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i % 1000) as f32 * 0.5).collect()
}

fn grid(n: usize) -> impl Fn(Constants<'_>) -> Option<[u32; 3]> {
    move |c: Constants<'_>| Some([(n as u32).div_ceil(c.int("BLOCK")?), 1, 1])
}

#[test]
#[expect(unsafe_code, reason = "memory that is said to be larger than it is")]
fn borrowed_memory_is_checked_where_that_is_possible() {
    let device = Device::emulator_with(DeviceOptions::plain());
    let x = Buffer::from_slice(&device, &numbers(256)).expect("there is memory");
    let borrow = |bytes: usize| {
        // SAFETY: the emulator's memory, which it looks after itself.
        let raw = unsafe { driver::RawPtr::from_raw(x.ptr().address(), bytes) };
        Pointer::from_driver(raw, DType::F32)
    };
    let add = add(&device);
    add.run(1, (&x, borrow(1024), &x, 256))
        .expect("it is there");
    let error = add
        .run(1, (&x, borrow(1028), &x, 256))
        .expect_err("it is not");
    let text = error.to_string();
    assert!(
        text.contains("argument `y`: there are no 1028 bytes of memory at"),
        "{text}"
    );
}

#[test]
fn other_threads_make_buffers_while_one_records() {
    let Some(device) = gpu(None) else {
        return;
    };
    let add = add(&device);
    let x = Buffer::from_slice(&device, &numbers(256)).expect("there is memory");
    let args = (&x, &x, &x, 256);
    add.run(1, args).expect("it is made before");
    x.write(&device.stream(), &[1.0; 256])
        .expect("it is written");
    let stream = device.stream();
    let graph = Graph::capture(&stream, |stream| {
        std::thread::scope(|scope| {
            let made = scope.spawn(|| Buffer::from_slice(&device, &[7.0_f32]));
            made.join().expect("it does not panic")
        })?;
        add.launch(stream, 1, args)
    });
    graph
        .and_then(|graph| graph.launch(&stream))
        .expect("it runs");
    assert_eq!(x.read(&stream), Ok(vec![2.0; 256]));
}

#[test]
fn what_is_said_of_residence_is_what_the_driver_says() {
    let Some(device) = gpu(None) else {
        return;
    };
    let x = Buffer::from_slice(&device, &numbers(256)).expect("there is memory");
    let capability = device.as_driver().expect("it is a GPU").device().capability;
    let target = Target::for_device(capability.major, capability.minor).expect("it is known");
    for (block, warps) in [(256, 1), (256, 4), (4096, 4), (8192, 2), (8192, 32)] {
        let add = add(&device).constant("BLOCK", block);
        let add = add
            .and_then(|kernel| kernel.warps(warps))
            .expect("a number");
        let report = add.prepare((&x, &x, &x, 256), &Deadline::default());
        let report = report.expect("it is made");
        let used = report.resources.expect("it is on a GPU");
        let resident = target.resident(Usage {
            threads: 32 * warps,
            registers: used.registers,
            shared: used.shared_bytes,
        });
        assert_eq!(resident, used.resident, "{report}");
        let percent = target.occupancy_percent(resident, 32 * warps);
        assert_eq!(percent, used.occupancy_percent, "{report}");
    }
}

#[test]
#[expect(unsafe_code, reason = "an address that is nobody's")]
fn an_illegal_address_ends_the_device_of_its_process_alone() {
    if role().is_some() {
        let device = gpu(None).expect("the parent saw one");
        let x = Buffer::from_slice(&device, &numbers(256)).expect("there is memory");
        // SAFETY: that it is not valid is what is tested; the process ends with the test.
        let nowhere = unsafe { driver::RawPtr::from_raw(0x10_0000_0000_0000, 1024) };
        let nowhere = Pointer::from_driver(nowhere, DType::F32);
        let stream = device.stream();
        let kernel = add(&device);
        let launched = kernel.launch(&stream, 1, (&x, &x, nowhere, 256));
        let error = launched.and_then(|()| stream.synchronize());
        let text = error.expect_err("it went wrong").to_string();
        assert!(text.contains("ILLEGAL_ADDRESS"), "{text}");
        let lost = |result: Result<(), RuntimeError>| matches!(result, Err(RuntimeError::DeviceLost { first }) if first.contains("ILLEGAL"));
        assert!(lost(kernel.launch(&stream, 1, (&x, &x, &x, 256))));
        assert!(lost(x.read(&stream).map(drop)));
        assert!(lost(Buffer::<f32>::new(&device, 1).map(drop)));
        // A new value for the same GPU shares its fate, and is told by the driver.
        let again = gpu(None).map(|device| Buffer::from_slice(&device, &[1.0_f32]).map(drop));
        assert!(again.is_none_or(|result| result.is_err()));
        return;
    }
    let Some(device) = gpu(None) else {
        return;
    };
    let test = "gpu::an_illegal_address_ends_the_device_of_its_process_alone";
    let output = another_process(test, "fail").output();
    let output = output.expect("it can be started");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    let x = Buffer::from_slice(&device, &numbers(256)).expect("there is memory");
    let out = Buffer::<f32>::new(&device, 256).expect("there is memory");
    add(&device)
        .run(1, (&x, &x, &out, 256))
        .expect("this process is not concerned");
    let sums = out.read(&device.stream()).expect("it ran");
    assert!(
        sums.iter()
            .zip(numbers(256))
            .all(|(&sum, x)| sum == 2.0 * x)
    );
}

#[test]
fn graphs_replay_on_a_gpu() {
    let Some(device) = gpu(None) else {
        return;
    };
    let count = kernel(
        &device,
        "import triton\nimport triton.language as tl\n\n@triton.jit\ndef count(x, n, BLOCK: tl.constexpr):\n    \
         i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    tl.store(x + i, tl.load(x + i, i < n) + 1, i < n)\n",
        "count",
    );
    let count = count.constant("BLOCK", 256).expect("a constant");
    let n = 10_000_usize;
    let x = Buffer::from_slice(&device, &vec![0_i32; n]).expect("there is memory");
    let stream = device.stream();
    let many = &grid(n);
    let launch = |stream: &Stream| count.launch(stream, many, (&x, n as i32));
    count
        .prepare((&x, n as i32), &tilelift::runtime::Deadline::default())
        .expect("it compiles");
    let graph = Graph::capture(&stream, |stream| (0..20).try_for_each(|_| launch(stream)));
    let graph = graph.expect("it is recorded");
    assert_eq!(x.read(&stream), Ok(vec![0; n]), "nothing ran");
    for _ in 0..3 {
        graph.launch(&stream).expect("it runs");
    }
    assert_eq!(x.read(&stream), Ok(vec![60; n]));
    let time = Graph::time(&stream, 20, launch).expect("it runs");
    println!("a launch in a graph: {:.2} us", time * 1e3);
    assert!(time > 0.0);
}

/// Each program waits for the launch before, and lets the next one begin.
const CHAIN: &str = r#"
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_wait, gdc_launch_dependents

@triton.jit
def chain(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    gdc_launch_dependents()
    gdc_wait()
    tl.store(x + i, tl.load(x + i, i < n) * 3 + 1, i < n)
"#;

#[test]
fn dependent_launches_see_what_came_before() {
    let Some(device) = gpu(None) else {
        return;
    };
    let chain = kernel(&device, CHAIN, "chain").constant("BLOCK", 256);
    let chain = chain.expect("a constant");
    let n = 1 << 16;
    let expected = (0..12).fold(1_i32, |x, _| x.wrapping_mul(3).wrapping_add(1));
    for dependent in [false, true] {
        let chain = chain.dependent(dependent).expect("it is possible");
        let x = Buffer::from_slice(&device, &vec![1_i32; n]).expect("there is memory");
        let stream = device.stream();
        let launch = || chain.launch(&stream, &grid(n), (&x, n as i32));
        launch().expect("it is launched");
        stream.synchronize().expect("it runs");
        let clock = Instant::now();
        (1..12)
            .try_for_each(|_| launch())
            .expect("they are launched");
        let values = x.read(&stream).expect("they ran");
        println!(
            "dependent {dependent}: {:?} for 11 launches",
            clock.elapsed()
        );
        assert!(values.iter().all(|&value| value == expected), "{dependent}");
    }
}

/// A product that waits for the launch before, whose result it reads.
const PRODUCT_CHAIN: &str = r#"
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_wait, gdc_launch_dependents

@triton.jit
def turn(out, x, y, K, B: tl.constexpr, BK: tl.constexpr):
    gdc_launch_dependents()
    gdc_wait()
    m = tl.program_id(0) * B + tl.arange(0, B)
    n = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(x + m[:, None] * K + k[None, :], mask=k[None, :] < K, other=0.0)
        b = tl.load(y + k[:, None] * K + n[None, :], mask=k[:, None] < K, other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(out + m[:, None] * K + n[None, :], acc.to(tl.float16), mask=(m[:, None] < K) & (n[None, :] < K))
"#;

#[test]
fn dependent_products_see_what_came_before() {
    let Some(device) = gpu(None) else {
        return;
    };
    let turn = kernel(&device, PRODUCT_CHAIN, "turn");
    let turn = turn.constant("B", 64).and_then(|k| k.constant("BK", 64));
    let turn = turn.and_then(|k| k.roles(Policy::Always)?.dependent(true));
    let turn = turn.expect("it is possible");
    const SIZE: usize = 1024;
    let half = |number: usize| half::f16::from_f32(number as f32);
    // A product with this moves each column to the place of the next one.
    let moves: Vec<half::f16> = (0..SIZE * SIZE)
        .map(|i| half(usize::from((i / SIZE + 1) % SIZE == i % SIZE)))
        .collect();
    let numbers: Vec<half::f16> = (0..SIZE * SIZE).map(|i| half(i * 37 % 1021)).collect();
    let moves = Buffer::from_slice(&device, &moves).expect("there is memory");
    let places = [&numbers, &numbers].map(|numbers| Buffer::from_slice(&device, numbers));
    let places = places.map(|place| place.expect("there is memory"));
    let stream = device.stream();
    let tiles = [SIZE as u32 / 64, SIZE as u32 / 64, 1];
    const TIMES: usize = 20;
    for i in 0..TIMES {
        let args = (&places[(i + 1) % 2], &places[i % 2], &moves, SIZE as i32);
        let launched = turn.launch(&stream, tiles, args);
        launched.expect("it is launched");
    }
    let found = places[TIMES % 2].read(&stream).expect("they ran");
    let wrong = (0..SIZE * SIZE).find(|&i| {
        let column = (i % SIZE + SIZE - TIMES) % SIZE;
        found[i] != numbers[i / SIZE * SIZE + column]
    });
    assert_eq!(wrong, None);
}

#[test]
fn clusters_and_cooperative_launches_compute_the_same() {
    let Some(device) = gpu(None) else {
        return;
    };
    let n = 4096;
    let x = Buffer::from_slice(&device, &numbers(n)).expect("there is memory");
    let plain = add(&device);
    let has_clusters = device.target() >= tilelift::settings::Target::SM_90;
    for cluster in [[1, 1, 1], [2, 1, 1], [8, 1, 1]] {
        let out = Buffer::<f32>::new(&device, n).expect("there is memory");
        let kernel = plain
            .cluster(cluster)
            .and_then(|k| k.cooperative(cluster[0] == 1));
        let kernel = kernel.expect("it is possible");
        let run = kernel.run(&grid(n), (&x, &x, &out, n as i32));
        run.expect("it runs");
        let sums = out.read(&device.stream()).expect("it ran");
        assert!(sums.iter().zip(numbers(n)).all(|(&sum, x)| sum == 2.0 * x));
        if cluster[0] > 1 && has_clusters {
            let odd = kernel.run(5, (&x, &x, &out, n as i32));
            let text = odd.expect_err("5 is odd").to_string();
            assert!(text.contains("is not made of clusters of"), "{text}");
        }
    }
    let huge = plain.cooperative(true).expect("it is possible");
    let error = huge.run(1 << 20, (&x, &x, &x, 0));
    let text = error.expect_err("not all can be resident").to_string();
    assert!(text.contains("COOPERATIVE_LAUNCH_TOO_LARGE"), "{text}");
}

#[test]
#[expect(unsafe_code, reason = "handles as another library has them")]
fn handles_of_others_are_borrowed() {
    let Some(own) = gpu(None) else {
        return;
    };
    let context = own.as_driver().expect("it is a GPU").clone();
    let device = Device::from_context(context.clone(), DeviceOptions::plain());
    let device = device.expect("it is the same GPU");
    // Another library's: a stream, and memory from its allocator.
    let foreign = driver::Stream::new(&context).expect("there is a stream");
    let memory = driver::Buffer::from_slice(&foreign, &numbers(1000)).expect("there is memory");
    foreign.synchronize().expect("nothing is wrong");
    // SAFETY: the stream lives to the end of the test.
    let stream = unsafe { driver::Stream::from_raw(&context, foreign.as_raw()) };
    let stream = Stream::from_driver(&device, stream.expect("it is of this context"));
    let stream = stream.expect("it is of this device");
    // SAFETY: the memory lives to the end of the test and has so many bytes.
    let x = unsafe { driver::RawPtr::from_raw(memory.ptr().address(), memory.bytes()) };
    let x = Pointer::from_driver(x, DType::F32);
    let out = Buffer::<f32>::new(&device, 1000).expect("there is memory");
    add(&device)
        .launch(&stream, &grid(1000), (x, x, &out, 1000))
        .expect("it is launched");
    let sums = out.read(&stream).expect("it ran");
    assert!(
        sums.iter()
            .zip(numbers(1000))
            .all(|(&sum, x)| sum == 2.0 * x)
    );
    // What `own` stands for is the same GPU: its memory is taken too.
    let x = Buffer::from_slice(&own, &numbers(1000)).expect("there is memory");
    let mixed = add(&device).launch(&stream, &grid(1000), (&x, &x, &out, 1000));
    mixed.and_then(|()| stream.synchronize()).expect("it runs");
}

#[test]
fn tuning_goes_on_where_it_was_killed_on_a_gpu() {
    if let Some(dir) = role().map(PathBuf::from) {
        let device = gpu(Some(&dir)).expect("the parent saw one");
        crate::tuning_results::tune_and_stop(&device, 3);
        return;
    }
    let dir = tempfile::tempdir().expect("a folder for the test");
    let Some(device) = gpu(Some(dir.path())) else {
        return;
    };
    let test = "gpu::tuning_goes_on_where_it_was_killed_on_a_gpu";
    crate::tuning_results::goes_on(&device, test, dir.path(), 3);
}

#[test]
fn machine_code_made_ahead_runs() {
    use tilelift::runtime::cache::Origin;
    use tilelift::runtime::{Compiled, CompiledParam, Dump};
    let Some(device) = gpu(None) else {
        return;
    };
    let context = device.as_driver().expect("it is a GPU");
    let dir = tempfile::tempdir().expect("a folder for the test");
    let dump = Dump {
        write: Some(dir.path().to_owned()),
        replace: None,
    };
    let dumping = Device::gpu_with(
        0,
        DeviceOptions {
            dump,
            ..DeviceOptions::plain()
        },
    );
    let dumping = dumping.expect("there is one");
    let x = Buffer::from_slice(&device, &numbers(256)).expect("there is memory");
    let out = Buffer::<f32>::new(&device, 256).expect("there is memory");
    let made = add(&dumping).prepare((&x, &x, &out, 5), &tilelift::runtime::Deadline::default());
    let made = made.expect("it compiles");
    let files = std::fs::read_dir(dir.path()).expect("it was written");
    let ptx = files.filter_map(|file| {
        let path = file.ok()?.path();
        let is_ptx = path.extension().is_some_and(|ending| ending == "ptx");
        is_ptx.then(|| std::fs::read_to_string(path).ok()).flatten()
    });
    let ptx = ptx.last().expect("it was written").leak();
    let code = driver::assemble(context, ptx, &driver::JitOptions::default());
    let code = code.expect("it is assembled").bytes.leak();
    const POINTER: CompiledParam = CompiledParam {
        name: "x",
        pointer: true,
        element: "f32",
        divisible: 16,
    };
    let target = made.target.to_string().leak();
    let program = Program::compiled(&Compiled {
        name: "add",
        ptx,
        cubin: Some(code),
        target,
        num_warps: made.num_warps,
        shared_bytes: made.shared_bytes,
        predicted_registers: made.predicted.registers,
        params: &[
            POINTER,
            CompiledParam {
                name: "y",
                ..POINTER
            },
            CompiledParam {
                name: "out",
                ..POINTER
            },
            CompiledParam {
                name: "n",
                pointer: false,
                element: "i32",
                divisible: 1,
            },
        ],
        persistent: false,
        maps: &[],
        fallback: None,
        sites: &[],
    });
    let program = program.expect("it is well described");
    let kernel = device.kernel(&program, None).expect("there is one kernel");
    kernel.run(1, (&x, &x, &out, 256)).expect("it runs");
    let report = &kernel.variants()[0];
    println!("{:?} {:?}", report.cubin_origin, report.timing);
    assert_eq!(report.cubin_origin, Some(Origin::Ahead));
    let sums = out.read(&device.stream()).expect("it ran");
    assert!(
        sums.iter()
            .zip(numbers(256))
            .all(|(&sum, x)| sum == 2.0 * x)
    );
}

#[test]
fn descriptors_are_arguments_on_a_gpu() {
    let Some(device) = gpu(None) else {
        return;
    };
    let turn = kernel(&device, crate::arguments::TURN, "turn");
    let (rows, columns) = (200_u64, 360_u64);
    let matrix = numbers((rows * columns) as usize);
    let x = Buffer::from_slice(&device, &matrix).expect("there is memory");
    let out = Buffer::<f32>::new(&device, matrix.len()).expect("there is memory");
    let from = Descriptor::contiguous(x.ptr(), &[rows, columns], &[16, 16]).expect("it fits");
    let to = Descriptor::contiguous(out.ptr(), &[columns, rows], &[16, 16]).expect("it fits");
    turn.run([13, 23, 1], (from, to, 2.0_f32)).expect("it runs");
    let result = out.read(&device.stream()).expect("it ran");
    for (i, row) in result.chunks(rows as usize).enumerate() {
        for (j, &value) in row.iter().enumerate() {
            assert_eq!(value, 2.0 * matrix[j * columns as usize + i], "{i}, {j}");
        }
    }
}

#[test]
fn products_of_descriptors_end_anywhere_on_a_gpu() {
    let Some(device) = gpu(None) else {
        return;
    };
    crate::descriptors::multiply_by_descriptors(&device);
}

#[test]
fn a_warm_start_is_quick() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    for state in ["cold", "warm"] {
        let Some(device) = gpu(Some(dir.path())) else {
            return;
        };
        let x = Buffer::from_slice(&device, &numbers(256)).expect("there is memory");
        device.stream().synchronize().expect("nothing is wrong");
        let clock = Instant::now();
        let kernel = add(&device);
        kernel.run(1, (&x, &x, &x, 256)).expect("it runs");
        let took: Duration = clock.elapsed();
        let report = &kernel.variants()[0];
        println!(
            "{state}: {took:?}, {:?} {:?}",
            report.kernel_origin, report.cubin_origin
        );
        let is_warm = state == "warm";
        let from_disk = |origin| origin == tilelift::runtime::cache::Origin::Disk;
        assert_eq!(from_disk(report.kernel_origin), is_warm);
        assert_eq!(report.cubin_origin.is_some_and(from_disk), is_warm);
    }
}

#[test]
fn assertions_that_fail_are_errors_of_who_waits_and_the_device_goes_on() {
    let Some(device) = gpu(None) else {
        return;
    };
    let kernel = crate::asserts::keep(&device).debug(true).expect("a set-up");
    let values: Vec<i32> = (0..8).collect();
    let x = Buffer::from_slice(&device, &values).expect("there is memory");
    let out = Buffer::<i32>::new(&device, 8).expect("there is memory");
    let stream = Stream::new(&device).expect("a stream");
    let launch = |limit: i32| kernel.launch(&stream, 2, (&x, &out, limit));
    let place = "assertion failed: too large (small.py:9)";
    let failed = |elements: &[&str]| RuntimeError::Assertion {
        kernel: "keep".to_owned(),
        failures: elements.iter().map(|e| format!("{e}{place}")).collect(),
    };
    let both = failed(&["pid (1, 0, 0) idx (2) ", "pid (1, 0, 0) idx (3) "]);
    assert_eq!((launch(8), launch(6)), (Ok(()), Ok(())));
    assert_eq!(stream.synchronize(), Err(both.clone()));
    assert_eq!(stream.synchronize(), Ok(()));
    assert_eq!(out.read(&stream), Ok(values.clone()));
    // A later launch takes the records, and not that one failed.
    assert_eq!((launch(6), launch(8)), (Ok(()), Ok(())));
    assert_eq!(out.read(&stream), Err(failed(&[""])));
    assert_eq!(out.read(&stream), Ok(values));

    let graph = Graph::capture(&stream, |stream| kernel.launch(stream, 2, (&x, &out, 6)));
    let graph = graph.expect("nothing waits");
    assert_eq!(stream.synchronize(), Ok(()));
    assert_eq!(graph.launch(&stream), Ok(()));
    assert_eq!(stream.synchronize(), Err(both.clone()));
    device.set_blocking(true);
    assert_eq!((launch(8), launch(6)), (Ok(()), Err(both)));
}

/// Two GPUs of one kind, of one process: what is compiled and tuned for one is there for the other, each loads it for itself, and what one
/// has made the other waits for and copies.
#[test]
fn two_gpus_share_what_is_made_and_copy_from_each_other() {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let open = |ordinal| {
        let mut options = DeviceOptions::plain();
        options.cache = Cache::new(Settings::new(dir.path()));
        Device::gpu_with(ordinal, options)
    };
    let (first, second) = match (open(0), open(1)) {
        (Ok(first), Ok(second)) if first.name() == second.name() => (first, second),
        _ => return eprintln!("skipped: there are no two GPUs of one kind"),
    };
    let n = 1 << 20;
    let x = Buffer::from_slice(&first, &numbers(n)).expect("there is memory");
    let y = Buffer::from_slice(&second, &vec![0.0_f32; n]).expect("there is memory");
    let [kernel, same] = [&first, &second].map(add);
    for (round, factor) in [2.0_f32, 4.0, 8.0].into_iter().enumerate() {
        let args = (&x, &x, &x, n as i32);
        kernel
            .launch(&first.stream(), &grid(n), args)
            .expect("it is launched");
        let done = Event::new(&first).expect("an event");
        done.record(&first.stream()).expect("it is of the first");
        second.stream().wait(&done).expect("any may wait");
        y.copy_from(&second.stream(), &x)
            .expect("it is of one of them");
        let doubled = (&y, &y, &y, n as i32);
        same.launch(&second.stream(), &grid(n), doubled)
            .expect("it is launched");
        let expected: Vec<f32> = numbers(n).iter().map(|v| v * factor * 2.0).collect();
        let found = y.read(&second.stream()).expect("it is there");
        assert!(found == expected, "round {round}");
    }
    let report = |kernel: &Kernel| kernel.variants().remove(0);
    let origins = [&kernel, &same].map(|kernel| report(kernel).kernel_origin);
    assert_eq!(origins[0], Origin::Made);
    assert_ne!(origins[1], Origin::Made);
    assert_eq!(report(&kernel).cubin_origin, Some(Origin::Made));
    assert_ne!(report(&same).cubin_origin, Some(Origin::Made));
    // Tuned on one, known on the other.
    let reused = [&first, &second].map(|device| {
        let program = add_program();
        let kernel = device.kernel(&program, "add").expect("there is a kernel");
        let x = Buffer::from_slice(device, &numbers(n)).expect("there is memory");
        let configs = [128, 256, 1024].map(|block| Config::new().constant("BLOCK", block));
        let tuner = Tuner::new(configs).restore_value(&["out"]);
        let tuned = tuner.tune(&kernel, &device.stream(), &grid(n), (&x, &x, &x, n as i32));
        tuned.expect("all work").report.reused
    });
    assert_eq!(reused, [0, 3]);
    // Both at once, each from a thread of its own.
    std::thread::scope(|scope| {
        for (device, kernel) in [(&first, &kernel), (&second, &same)] {
            scope.spawn(move || {
                let one = Buffer::from_slice(device, &vec![1.0_f32; n]).expect("there is memory");
                let sum = Buffer::from_slice(device, &vec![0.0_f32; n]).expect("there is memory");
                for _ in 0..1000 {
                    kernel
                        .launch(&device.stream(), &grid(n), (&one, &sum, &sum, n as i32))
                        .expect("it is launched");
                }
                let found = sum.read(&device.stream()).expect("it is there");
                assert!(found.iter().all(|&v| v == 1000.0));
            });
        }
    });
    eprintln!("two GPUs: {}", first.name());
}
