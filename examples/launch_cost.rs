//! What the run time costs: a launch beside the driver's own call, and the first launch of a process by steps.
//!
//! ```text
//! cargo run --release --features cuda --example launch_cost                 # launches, then first launches cold and warm
//! cargo run --release --features cuda --example launch_cost -- first DIR    # first launches with the cache in DIR
//! cargo run --release --features cuda --example launch_cost -- tune         # the autotuner on 24 configurations
//! cargo run --release --features cuda --example launch_cost -- throughput   # kernels compiled in a second
//! cargo run --release --features cuda --example launch_cost -- count N      # N launches and nothing else, for callgrind
//! cargo run --release --features cuda --example launch_cost -- count N maps # of a product with three tensor maps; `moved`: of others each time, `resized`: of 125 extents in turn
//! ```

#![expect(
    unsafe_code,
    reason = "the driver's call is the yardstick and is made directly"
)]

use std::error::Error;
use std::ffi::{CString, c_char, c_uint, c_void};
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tilelift::runtime::cache::{Cache, Settings};
use tilelift::runtime::{
    Arg, Args, Buffer, Constants, Deadline, Device, DeviceOptions, Dump, Graph, Kernel, Program,
    Stream,
};
use tilelift::tune::{self, Measure, Row, Tuned, Tuner};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The kernels, of which `benches/gpu/runtime_peers.py` measures the same with Triton.
const KERNELS: &str = include_str!("../benches/gpu/runtime_kernels.py");

/// Launches between two waits.
const BURST: usize = 500;
/// Bursts of a measurement.
const BURSTS: usize = 200;

unsafe extern "C" {
    fn cuModuleLoadData(module: *mut usize, image: *const c_void) -> i32;
    fn cuModuleGetFunction(function: *mut usize, module: usize, name: *const c_char) -> i32;
    fn cuLaunchKernel(
        function: usize,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: *mut c_void,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> i32;
    fn cuFuncSetAttribute(function: usize, attribute: i32, value: i32) -> i32;
    fn cuCtxSetCurrent(context: usize) -> i32;
    fn cuDevicePrimaryCtxRetain(context: *mut usize, device: i32) -> i32;
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tune"] => tune(),
        ["tune-and-die", dir] => tune_and_die(Path::new(dir)),
        ["throughput"] => throughput(),
        ["first", dir] => first_launches(Path::new(dir)),
        ["count", n] => count(n.parse()?),
        ["count", n, "maps"] => count_products(n.parse()?, Others::None),
        ["count", n, "moved"] => count_products(n.parse()?, Others::Matrices),
        ["count", n, "resized"] => count_products(n.parse()?, Others::Extents),
        _ => {
            correct()?;
            launch_costs()?;
            launches_with_maps()?;
            kinds_of_launches()?;
            cold_and_warm()
        }
    }
}

fn device(dir: Option<&Path>) -> Device {
    Device::best_with(DeviceOptions {
        cache: dir.map_or_else(Cache::off, |dir| Cache::new(Settings::new(dir))),
        ..DeviceOptions::plain()
    })
}

fn kernel(device: &Device, name: &str) -> Outcome<Kernel> {
    let program = Program::python("kernels.py", KERNELS)?;
    Ok(device.kernel(&program, name)?)
}

/// Launches of many variants and of cached code give the right numbers.
fn correct() -> Outcome<()> {
    let dir = std::env::temp_dir().join(format!("tilelift-correct-{}", std::process::id()));
    for round in ["cold", "warm"] {
        let device = device(Some(&dir));
        println!("{round} on {} ({})", device.name(), device.target());
        let add = kernel(&device, "add")?.constant("BLOCK", 1024)?;
        for n in [1_usize, 5000, 65_536, 1_000_003] {
            let x: Vec<f32> = (0..n).map(|i| (i % 1000) as f32).collect();
            let y: Vec<f32> = (0..n).map(|i| (i % 77) as f32 * 0.5).collect();
            let on_x = Buffer::from_slice(&device, &x)?;
            let on_y = Buffer::from_slice(&device, &y)?;
            let out = Buffer::<f32>::new(&device, n)?;
            let grid = |c: Constants| Some([(n as u32).div_ceil(c.int("BLOCK")?), 1, 1]);
            add.run(&grid, (&on_x, &on_y, &out, n as i32))?;
            let sums = out.read(&device.stream())?;
            if let Some(i) = (0..n).find(|&i| sums[i] != x[i] + y[i]) {
                return Err(format!("sum {i} of {n} is {}", sums[i]).into());
            }
        }
        for report in add.variants() {
            println!(
                "  {report}; from {:?}, {:?}",
                report.kernel_origin, report.cubin_origin
            );
        }
        let softmax = kernel(&device, "softmax")?.constant("BLOCK", 1024)?;
        let (rows, n) = (64_usize, 1000_usize);
        let x: Vec<f32> = (0..rows * n).map(|i| (i * 37 % 101) as f32 * 0.1).collect();
        let on_x = Buffer::from_slice(&device, &x)?;
        let out = Buffer::<f32>::new(&device, rows * n)?;
        softmax.run(rows as u32, (&out, &on_x, n as i32, n as i32, n as i32))?;
        for row in out.read(&device.stream())?.chunks(n) {
            let sum: f32 = row.iter().sum();
            // A thousand roundings of numbers that add up to 1.
            if (sum - 1.0).abs() > 1e-4 {
                return Err(format!("a row of softmax adds up to {sum}").into());
            }
        }
    }
    std::fs::remove_dir_all(&dir)?;
    println!("results: right");
    Ok(())
}

/// The median times of launches in bursts, of each kind in turn, so that what the machine does besides meets all alike;
/// and the median of the differences between bursts that followed one another.
fn per_launch(
    stream: &Stream,
    mut first: impl FnMut() -> Outcome<()>,
    mut second: impl FnMut() -> Outcome<()>,
) -> Outcome<[f64; 3]> {
    let burst = |launch: &mut dyn FnMut() -> Outcome<()>| -> Outcome<f64> {
        stream.synchronize()?;
        let clock = Instant::now();
        for _ in 0..BURST {
            launch()?;
        }
        Ok(clock.elapsed().as_secs_f64() * 1e6 / BURST as f64)
    };
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..BURSTS {
        let (a, b) = (burst(&mut first)?, burst(&mut second)?);
        for (list, time) in times.iter_mut().zip([a, b, b - a]) {
            list.push(time);
        }
    }
    stream.synchronize()?;
    Ok(times.map(|mut list| {
        list.sort_by(f64::total_cmp);
        list[list.len() / 2]
    }))
}

/// The driver's own way to a kernel, with its arguments as eight bytes each.
struct Raw {
    function: usize,
    words: Vec<u64>,
    /// What the parameters behind the words are.
    maps: Vec<Zeros>,
    threads: u32,
    /// Bytes of shared memory.
    shared: u32,
}

/// As many zeros as a tensor map has bytes, where one may stand.
#[derive(Clone)]
#[repr(align(64))]
struct Zeros([u8; 128]);

/// The attribute of a kernel that says how much shared memory a launch may ask for.
const MAX_DYNAMIC_SHARED: i32 = 8;

impl Raw {
    fn new(ptx: &str, name: &str, words: Vec<u64>) -> Outcome<Raw> {
        let (mut context, mut module, mut function) = (0, 0, 0);
        let (text, name) = (CString::new(ptx)?, CString::new(name)?);
        // SAFETY: the run time has started the driver; texts end in NUL; each call writes one handle.
        let codes = unsafe {
            [
                cuDevicePrimaryCtxRetain(&raw mut context, 0),
                cuCtxSetCurrent(context),
                cuModuleLoadData(&raw mut module, text.as_ptr().cast()),
                cuModuleGetFunction(&raw mut function, module, name.as_ptr()),
            ]
        };
        if codes != [0; 4] {
            return Err(format!("the driver's own way fails: {codes:?}").into());
        }
        Ok(Raw {
            function,
            words,
            maps: Vec::new(),
            threads: 128,
            shared: 0,
        })
    }

    /// The same launch with tensor maps behind the words, and of a program of so many threads with so much shared memory.
    fn with_maps(mut self, maps: usize, threads: u32, shared: u32) -> Outcome<Raw> {
        (self.threads, self.shared) = (threads, shared);
        self.maps = vec![Zeros([0; 128]); maps];
        // SAFETY: the function is alive.
        let code =
            unsafe { cuFuncSetAttribute(self.function, MAX_DYNAMIC_SHARED, shared.try_into()?) };
        if code != 0 {
            return Err(format!("cuFuncSetAttribute: {code}").into());
        }
        Ok(self)
    }

    fn launch(&mut self, stream: *mut c_void) -> Outcome<()> {
        let mut places = [std::ptr::null_mut(); 16];
        let (of_words, of_maps) = places.split_at_mut(self.words.len());
        for (place, word) in of_words.iter_mut().zip(&mut self.words) {
            *place = std::ptr::from_mut(word).cast();
        }
        for (place, map) in of_maps.iter_mut().zip(&mut self.maps) {
            *place = map.0.as_mut_ptr().cast();
        }
        // SAFETY: function and stream are alive, and there is a place for each parameter.
        let code = unsafe {
            cuLaunchKernel(
                self.function,
                1,
                1,
                1,
                self.threads,
                1,
                1,
                self.shared,
                stream,
                places.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        if code != 0 {
            return Err(format!("cuLaunchKernel: {code}").into());
        }
        Ok(())
    }
}

/// PTX of a kernel as the run time makes it.
fn ptx_of(name: &str, args: impl Args) -> Outcome<String> {
    ptx_by(name, |device| {
        kernel(device, name)?.prepare(args, &Deadline::default())?;
        Ok(())
    })
}

fn ptx_of_product() -> Outcome<String> {
    ptx_by("product", |device| {
        let product = Product::new(device)?;
        product
            .kernel
            .prepare(product.args(Others::None, 0), &Deadline::default())?;
        Ok(())
    })
}

/// PTX that a device with this name writes down when `prepare` is done.
fn ptx_by(name: &str, prepare: impl FnOnce(&Device) -> Outcome<()>) -> Outcome<String> {
    let dir = std::env::temp_dir().join(format!("tilelift-dump-{}", std::process::id()));
    let device = Device::best_with(DeviceOptions {
        dump: Dump {
            write: Some(dir.clone()),
            replace: None,
        },
        ..DeviceOptions::plain()
    });
    prepare(&device)?;
    let mut found = String::new();
    for file in std::fs::read_dir(&dir)? {
        let path = file?.path();
        let file_name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if file_name.starts_with(name) && file_name.ends_with(".ptx") {
            found = std::fs::read_to_string(&path)?;
        }
    }
    std::fs::remove_dir_all(&dir)?;
    Ok(found)
}

fn launch_costs() -> Outcome<()> {
    let device = device(None);
    let Some(context) = device.as_driver() else {
        println!("launch cost: there is no GPU");
        return Ok(());
    };
    let raw_stream = tilelift::driver::Stream::new(context)?;
    let handle = raw_stream.as_raw();
    let stream = Stream::from_driver(&device, raw_stream)?;
    let x = Buffer::<f32>::new(&device, 256)?;
    let (empty, twelve) = (kernel(&device, "empty")?, kernel(&device, "twelve")?);
    let p = Arg::from(&x);
    let args = (
        p, p, p, p, 7_i32, 7_i32, 7_i32, 7_i32, 1.5_f32, 2.5_f32, 9_i64, p,
    );
    empty.launch(&stream, 1, ())?;
    twelve.launch(&stream, 1, args)?;
    let address = x.ptr().address();
    let mut words = vec![address; 12];
    words[4..8].fill(7);
    words[8] = u64::from(1.5_f32.to_bits());
    words[9] = u64::from(2.5_f32.to_bits());
    words[10] = 9;
    let mut raw_empty = Raw::new(&ptx_of("empty", ())?, "empty", Vec::new())?;
    let mut raw_twelve = Raw::new(&ptx_of("twelve", args)?, "twelve", words)?;
    println!("launch cost, us a launch, median of {BURSTS} bursts of {BURST}");
    println!(
        "| round | empty, raw | empty, tilelift | more | 12 arguments, raw | tilelift | more |"
    );
    println!("|---|---|---|---|---|---|---|");
    for round in 1..=5 {
        let [a, b, more] = per_launch(
            &stream,
            || raw_empty.launch(handle),
            || Ok(empty.launch(&stream, 1, ())?),
        )?;
        let [c, d, much] = per_launch(
            &stream,
            || raw_twelve.launch(handle),
            || Ok(twelve.launch(&stream, 1, args)?),
        )?;
        println!("| {round} | {a:.3} | {b:.3} | {more:+.3} | {c:.3} | {d:.3} | {much:+.3} |");
    }
    Ok(())
}

/// A product of matrices whose operands and result the copy engine moves, where there is one.
struct Product {
    kernel: Kernel,
    buffers: [Buffer<half::f16>; 6],
}

/// What is not the same in each launch of a product.
#[derive(Clone, Copy, PartialEq)]
enum Others {
    None,
    /// Two lists of matrices, in turn.
    Matrices,
    /// Those, and two lists of extents with them.
    TwoExtents,
    /// Two lists of matrices and 125 of extents.
    Extents,
}

impl Product {
    fn new(device: &Device) -> Outcome<Product> {
        let mut kernel = kernel(device, "product")?;
        for (name, extent) in [("BM", 64), ("BN", 64), ("BK", 64)] {
            kernel = kernel.constant(name, extent)?;
        }
        let buffer = || Buffer::from_slice(device, &vec![half::f16::ZERO; 128 * 128]);
        let buffers = [
            buffer()?,
            buffer()?,
            buffer()?,
            buffer()?,
            buffer()?,
            buffer()?,
        ];
        Ok(Product { kernel, buffers })
    }

    /// Arguments of launch `which`.
    fn args(&self, others: Others, which: usize) -> impl Args {
        let second = !which.is_multiple_of(2) && others != Others::None;
        let [x, y, out] = [0, 1, 2].map(|i| Arg::from(&self.buffers[3 * usize::from(second) + i]));
        // Multiples of 16, so that one kernel serves all.
        let [m, n, k] = match others {
            Others::None | Others::Matrices => [64; 3],
            Others::TwoExtents => [if second { 128 } else { 64 }; 3],
            Others::Extents => [1, 5, 25].map(|n| 64 + 16 * (which / n % 5) as i32),
        };
        (x, y, out, m, n, k)
    }

    fn launch(&self, stream: &Stream, others: Others, which: usize) -> Outcome<()> {
        Ok(self.kernel.launch(stream, 1, self.args(others, which))?)
    }
}

/// Launches of a kernel with three tensor maps beside the driver's own launch of an empty kernel with the same parameters, threads and
/// shared memory.
fn launches_with_maps() -> Outcome<()> {
    let device = device(None);
    let Some(context) = device.as_driver() else {
        return Ok(());
    };
    let raw_stream = tilelift::driver::Stream::new(context)?;
    let handle = raw_stream.as_raw();
    let stream = Stream::from_driver(&device, raw_stream)?;
    let product = Product::new(&device)?;
    let dumped = ptx_of_product()?;
    let Some((head, _)) = dumped.split_once("\n{") else {
        return Err("the product has no entry".into());
    };
    let maps = head.matches("_map_").count();
    if maps != 3 {
        println!("launches with tensor maps: skipped, the product has {maps} of them here");
        return Ok(());
    }
    let params = head.matches(".param").count();
    product.launch(&stream, Others::None, 0)?;
    let made = &product.kernel.variants()[0];
    let (threads, shared) = (made.predicted.threads, made.shared_bytes);
    println!("{threads} threads, {shared} bytes of shared memory, {params} parameters");
    let text = format!("{head}\n{{\nret;\n}}\n");
    let raw = Raw::new(&text, "product", vec![0; params - maps])?;
    let mut raw = raw.with_maps(maps, threads, shared)?;
    println!("product with three tensor maps, us a launch, median of {BURSTS} bursts of {BURST}");
    println!(
        "| round | raw | the same | more | other matrices | more | two extents, too | more | 125 extents | more |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for round in 1..=5 {
        print!("| {round}");
        for others in [
            Others::None,
            Others::Matrices,
            Others::TwoExtents,
            Others::Extents,
        ] {
            let mut which = 0;
            let launch = || {
                which += 1;
                product.launch(&stream, others, which)
            };
            let [raw, ours, more] = per_launch(&stream, || raw.launch(handle), launch)?;
            if others == Others::None {
                print!(" | {raw:.3}");
            }
            print!(" | {ours:.3} | {more:+.3}");
        }
        println!(" |");
    }
    Ok(())
}

/// Launches with attributes beside plain ones, and launches in a graph.
fn kinds_of_launches() -> Outcome<()> {
    let device = device(None);
    if !device.is_gpu() {
        return Ok(());
    }
    let stream = device.stream();
    let plain = kernel(&device, "empty")?;
    let launch = |kernel: &Kernel| Ok(kernel.launch(&stream, 2, ())?);
    launch(&plain)?;
    println!("empty kernel of two programs, us a launch, beside plain launches in turn");
    println!("| launch | plain | so | more |");
    println!("|---|---|---|---|");
    for (name, kernel) in [
        ("plain", plain.clone()),
        ("cluster of 2", plain.cluster([2, 1, 1])?),
        ("cooperative", plain.cooperative(true)?),
        ("programmatic", plain.dependent(true)?),
    ] {
        launch(&kernel)?;
        let [a, b, more] = per_launch(&stream, || launch(&plain), || launch(&kernel))?;
        println!("| {name} | {a:.3} | {b:.3} | {more:+.3} |");
    }
    let repeats = u32::try_from(BURST)?;
    let ms = Graph::time(&stream, repeats, |stream| plain.launch(stream, 2, ()))?;
    println!("in a graph of {repeats}: {:.3} us a launch", ms * 1e3);
    Ok(())
}

/// Starts this program anew with an empty cache and with a full one.
fn cold_and_warm() -> Outcome<()> {
    let dir = std::env::temp_dir().join(format!("tilelift-first-{}", std::process::id()));
    println!("first launches, ms by step");
    println!(
        "| cache | kernel | read program | cache | to IR | to PTX | assemble | load | until launched | until done |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for state in ["cold", "warm", "warm again"] {
        let output = Command::new(std::env::current_exe()?)
            .arg("first")
            .arg(&dir)
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            println!("| {state} | {line}");
        }
    }
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

/// The first launches of a process, after the context exists.
fn first_launches(dir: &Path) -> Outcome<()> {
    let device = device(Some(dir));
    let (rows, n) = (8_usize, 1024_usize);
    let x = Buffer::from_slice(&device, &vec![1.5_f32; rows * n])?;
    let out = Buffer::<f32>::new(&device, rows * n)?;
    let (wide, m) = (1024_i32, n as i32);
    let stream = device.stream();
    stream.synchronize()?;
    let run = |name: &str, launch: &dyn Fn(&Kernel) -> Outcome<()>| -> Outcome<()> {
        let clock = Instant::now();
        let program = Program::python("kernels.py", KERNELS)?;
        let read = clock.elapsed();
        let kernel = device.kernel(&program, name)?.constant("BLOCK", wide)?;
        launch(&kernel)?;
        let launched = clock.elapsed();
        stream.synchronize()?;
        let done = clock.elapsed();
        let timing = kernel.variants()[0].timing;
        let ms = |time: Duration| format!("{:.3}", time.as_secs_f64() * 1e3);
        let steps = [
            read,
            timing.cache,
            timing.lower,
            timing.compile,
            timing.assemble,
            timing.load,
            launched,
            done,
        ];
        println!("{name} | {} |", steps.map(ms).join(" | "));
        Ok(())
    };
    run("add", &|k| {
        Ok(k.launch(&stream, 8, (&x, &x, &out, (rows * n) as i32))?)
    })?;
    run("softmax", &|k| {
        Ok(k.launch(&stream, 8, (&out, &x, m, m, m))?)
    })?;
    run("layer_norm", &|k| {
        Ok(k.launch(&stream, 8, (&x, &out, &x, &x, m, 1e-5_f32))?)
    })?;
    Ok(())
}

/// What is tuned, and with what.
struct Tuning {
    device: Device,
    program: Program,
    x: Buffer<f32>,
    y: Buffer<f32>,
    out: Buffer<f32>,
    n: usize,
}

impl Tuning {
    fn new(dir: &Path) -> Outcome<Tuning> {
        let device = device(Some(dir));
        let n: usize = if device.is_gpu() { 1 << 24 } else { 1 << 12 };
        Ok(Tuning {
            program: Program::python("kernels.py", KERNELS)?,
            x: Buffer::from_slice(&device, &vec![1.0_f32; n])?,
            y: Buffer::from_slice(&device, &vec![2.0_f32; n])?,
            out: Buffer::<f32>::new(&device, n)?,
            n,
            device,
        })
    }

    fn tune(&self, tuner: &Tuner<'_>) -> Outcome<Tuned> {
        let n = self.n;
        let grid = |c: Constants| Some([(n as u32).div_ceil(c.int("BLOCK")?), 1, 1]);
        let add = self.device.kernel(&self.program, "tuned")?;
        let args = (&self.x, &self.y, &self.out, n as i32);
        Ok(tuner.tune(&add, &self.device.stream(), &grid, args)?)
    }
}

/// The cost of a row that was measured.
fn cost(row: &Row) -> f64 {
    match row.outcome {
        tune::Outcome::Measured(cost) => cost,
        _ => f64::INFINITY,
    }
}

/// Tunes a vector addition over the 24 configurations of its file, and compares the choice with long measurements of all.
fn tune() -> Outcome<()> {
    let dir = std::env::temp_dir().join(format!("tilelift-tune-{}", std::process::id()));
    // Half of it in a process that does not live to the end.
    let child = Command::new(std::env::current_exe()?)
        .arg("tune-and-die")
        .arg(&dir)
        .output()?;
    let tuning = Tuning::new(&dir)?;
    let tuned = tuning.tune(&tuning.program.tuner("tuned")?)?;
    println!(
        "after a process that was stopped ({}): {} of {} known",
        child.status,
        tuned.report.reused,
        tuned.report.rows.len()
    );
    std::fs::remove_dir_all(&dir)?;
    let tuning = Tuning::new(&dir)?;
    for round in ["first", "again"] {
        let tuned = tuning.tune(&tuning.program.tuner("tuned")?)?;
        println!("{round}: {}\nchosen: {}", tuned.report, tuned.config);
    }
    // Twice, so that the noise shows.
    for round in 1..=2 {
        std::fs::remove_dir_all(&dir)?;
        let short = tuning.tune(&tuning.program.tuner("tuned")?)?;
        let long = tuning.program.tuner("tuned")?.measure(Measure {
            budget: Duration::from_millis(400),
            samples: [200, 4000],
            hopeless: f64::INFINITY,
            ..Measure::default()
        });
        std::fs::remove_dir_all(&dir)?;
        let long = tuning.tune(&long)?;
        let rows = &long.report.rows;
        let best = rows.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
        let best = best.ok_or("there are configurations")?;
        let chosen = &rows[short.report.chosen];
        println!(
            "exhaustive {round}: best {:.5} ms ({}), the tuner's choice {:.5} ms ({}), {:+.2} %",
            cost(best),
            best.config,
            cost(chosen),
            chosen.config,
            100.0 * (cost(chosen) / cost(best) - 1.0)
        );
    }
    let sums = tuning.out.read(&tuning.device.stream())?;
    let is_right = sums.iter().all(|&s| s == 3.0);
    println!("results: {}", if is_right { "right" } else { "WRONG" });
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

/// Tunes, and ends half-way.
fn tune_and_die(dir: &Path) -> Outcome<()> {
    let stop = |done: usize, total: usize, _: &str| {
        if done == total / 2 {
            std::process::abort();
        }
    };
    let tuning = Tuning::new(dir)?;
    let tuner = tuning.program.tuner("tuned")?;
    tuning.tune(&tuner.progress(&stop)).map(drop)
}

/// Compiles texts to PTX on one thread and on more.
fn throughput() -> Outcome<()> {
    const VARIANTS: i32 = 1200;
    let next = AtomicU64::new(0);
    let device = Device::emulator_with(DeviceOptions::plain());
    let x = Buffer::<f32>::new(&device, 64)?;
    let compile = |first: usize, step: usize| -> Result<(), tilelift::runtime::RuntimeError> {
        for _ in (0..VARIANTS).skip(first).step_by(step) {
            // Another text each time, so that nothing is known of it.
            let number = next.fetch_add(1, Ordering::Relaxed);
            let text = format!("{KERNELS}\n# {number}\n");
            let program = Program::python("kernels.py", &text)?;
            let softmax = device
                .kernel(&program, "softmax")?
                .constant("BLOCK", 1024)?;
            softmax.predict((&x, &x, 7, 7, 7), &Deadline::default())?;
        }
        Ok(())
    };
    let on = |threads: usize| -> Outcome<f64> {
        let clock = Instant::now();
        std::thread::scope(|scope| -> Outcome<()> {
            let start = |first| scope.spawn(move || compile(first, threads));
            let started: Vec<_> = (0..threads).map(start).collect();
            for thread in started {
                thread.join().map_err(|_| "a thread panicked")??;
            }
            Ok(())
        })?;
        Ok(f64::from(VARIANTS) / clock.elapsed().as_secs_f64())
    };
    on(1)?;
    println!("softmax of 1024 from text to PTX, kernels a second");
    println!("| round | one thread | 2 | 4 | 16 | 64 |");
    println!("|---|---|---|---|---|---|");
    for round in 1..=5 {
        print!("| {round} |");
        for threads in [1, 2, 4, 16, 64] {
            print!(" {:.0} |", on(threads)?);
        }
        println!();
    }
    Ok(())
}

/// Launches for an instruction counter: run it with two numbers, the difference is the launches' own.
fn count(n: usize) -> Outcome<()> {
    let device = device(None);
    let x = Buffer::<f32>::new(&device, 256)?;
    let twelve = kernel(&device, "twelve")?;
    let stream = device.stream();
    for _ in 0..n {
        // Nothing of the arguments is known before the launch, as in an application.
        let (x, n, m, f) = black_box((&x, 7_i32, 9_i64, 1.5_f32));
        twelve.launch(&stream, 1, (x, x, x, x, n, n, n, n, f, f, m, x))?;
    }
    Ok(())
}

/// The same of a product with three tensor maps, in turns with the arguments of list 0 and with these.
fn count_products(n: usize, others: Others) -> Outcome<()> {
    let device = device(None);
    let product = Product::new(&device)?;
    let stream = device.stream();
    for i in 0..n {
        product.launch(&stream, others, black_box(i))?;
    }
    Ok(())
}
