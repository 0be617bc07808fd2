//! Limits: kernels that need more shared memory than a target has, and the memory that the compiler itself takes.

#[cfg(all(target_os = "linux", feature = "tool"))]
use crate::common::kernels;
use crate::common::ptxas;
use tilelift::compile::compile;
use tilelift::error::CompileError;
#[cfg(all(target_os = "linux", feature = "tool"))]
use tilelift::ir::attrs::IntPred;
use tilelift::ir::builder::TileBuilder;
use tilelift::ir::dfg::{SourceLine, SourceLoc};
use tilelift::ir::entities::Value;
use tilelift::ir::function::TileFunction;
use tilelift::ir::types::{Elem, Scalar, TileType};
use tilelift::linear_layout::shape::Shape;
use tilelift::settings::{Options, Target};
use tilelift::text::parse::parse_tile;

/// Copies one matrix of 64-bit numbers transposed, as one block: it goes through shared memory as a whole.
fn transpose([rows, cols]: [u64; 2]) -> TileFunction {
    let mut b = TileBuilder::new("transpose", 8);
    let block = Shape::new(&[rows, cols]).expect("powers of two");
    let pointer = TileType::scalar(Elem::global(Scalar::I64));
    let [x, out] = ["x", "out"].map(|name| b.param_divisible(name, pointer, 16));
    // Numbers of rows or columns times the distance in memory, all over the block.
    let scaled = |b: &mut TileBuilder, axis: u8, distance: u64| -> Value {
        let extent = block.extent(usize::from(axis));
        let ty = TileType::block(Elem::I32, Shape::new(&[extent]).expect("a power of two"));
        let range = b.arange(0, ty);
        let distance = b.i32(distance as i32, ty.shape);
        let scaled = b.imul(range, distance);
        let scaled = b.expand_dims(scaled, 1 - axis);
        b.to_shape(scaled, block)
    };
    let mut pointers = |base: Value, down: u64, across: u64| {
        let (down, across) = (scaled(&mut b, 0, down), scaled(&mut b, 1, across));
        let offsets = b.iadd(down, across);
        let base = b.to_shape(base, block);
        b.addptr(base, offsets)
    };
    let (from, to) = (pointers(x, cols, 1), pointers(out, 1, rows));
    let data = b.load(from, None, None);
    b.store(to, data, None);
    b.ret();
    b.finish().expect("the kernel is built right")
}

/// What a kernel needs of shared memory, whether a target has it or not.
fn needed(block: [u64; 2], target: Target) -> u32 {
    match compile(&transpose(block), target, &Options::DEFAULT) {
        Ok(kernel) => kernel.meta.shared,
        Err(CompileError::SharedMemory { needed, .. }) => needed,
        Err(error) => panic!("{error}"),
    }
}

/// A kernel of so many 64-bit parameters.
fn many_params(count: u32) -> TileFunction {
    let mut b = TileBuilder::new("many", 1);
    let out = b.param("out", TileType::scalar(Elem::global(Scalar::I64)));
    let mut sum = b.i64(0, Shape::SCALAR);
    for i in 1..count {
        let next = b.param(&format!("p{i}"), TileType::scalar(Elem::I64));
        sum = b.iadd(sum, next);
    }
    b.store(out, sum, None);
    b.ret();
    b.finish().expect("the kernel is built right")
}

#[test]
fn parameters_have_the_room_that_ptx_has() {
    let version = |count| {
        let kernel = compile(&many_params(count), Target::SM_80, &Options::DEFAULT)?;
        if let Some(used) = ptxas::assemble(&kernel.ptx, "sm_80") {
            assert!(used.registers > 0);
        }
        Ok(kernel.meta.ptx_version.to_string())
    };
    // 4,352 bytes are 544 parameters of 8.
    assert_eq!(version(544), Ok("7.0".to_owned()));
    assert_eq!(version(545), Ok("8.1".to_owned()));
    assert_eq!(version(4095), Ok("8.1".to_owned()));
    let error = CompileError::Parameters {
        needed: 32_768,
        limit: 32_764,
    };
    assert_eq!(version(4096), Err(error));
}

#[test]
fn impossible_settings_are_refused() {
    let func = many_params(2);
    let target = Target {
        sm: 12,
        specific: true,
    };
    let refused = |target, options: &Options| match compile(&func, target, options) {
        Err(CompileError::Settings(error)) => error.to_string(),
        other => panic!("{other:?}"),
    };
    assert!(refused(target, &Options::DEFAULT).starts_with("unknown target `sm_12a`"));
    let options = Options {
        max_registers: Some(0),
        ..Options::DEFAULT
    };
    assert!(refused(Target::SM_80, &options).starts_with("a bound of 0 registers"));
}

#[test]
fn too_much_shared_memory_is_refused_with_both_numbers() {
    // The block's bytes, and at most an eighth more against bank conflicts.
    for (block, fits) in [
        ([32, 64], vec![70, 75, 80, 86, 89, 90, 100, 120]),
        ([64, 128], vec![70, 75, 80, 86, 89, 90, 100, 120]),
        ([128, 128], vec![80, 90, 100]),
        ([128, 256], vec![]),
    ] {
        let bytes = 8 * (block[0] * block[1]) as u32;
        for target in Target::ALL {
            let needed = needed(block, target);
            assert!(
                (bytes..=bytes / 8 * 9).contains(&needed),
                "{block:?}: {needed}"
            );
            let result = compile(&transpose(block), target, &Options::DEFAULT);
            if fits.contains(&target.sm) {
                assert_eq!(result.map(|kernel| kernel.meta.shared), Ok(needed));
                continue;
            }
            let error = result.expect_err("the block does not fit");
            let limit = target.shared_limit();
            let factor = needed.div_ceil(limit).next_power_of_two();
            let text = format!(
                "the kernel needs {needed} bytes of shared memory, {target} has {limit}: {needed} to exchange values \
                 between threads; use smaller blocks, the first of these by a factor of {factor}"
            );
            assert_eq!(error.to_string(), text);
        }
    }
}

/// Mixes the numbers of a block so many times, three operations each.
fn mixed(elements: u64, warps: u32, rounds: u32) -> TileFunction {
    let mut b = TileBuilder::new("mixed", warps);
    let block = Shape::new(&[elements]).expect("a power of two");
    let pointer = TileType::scalar(Elem::global(Scalar::I32));
    let [x, out] = ["x", "out"].map(|name| b.param_divisible(name, pointer, 16));
    let range = b.arange(0, TileType::block(Elem::I32, block));
    let [from, to] = [x, out].map(|base| {
        let base = b.to_shape(base, block);
        b.addptr(base, range)
    });
    let mut number = b.load(from, None, None);
    for round in 0..rounds {
        b.set_loc(SourceLoc(Some(SourceLine(10 + round, 0)).into()));
        let factor = b.i32(0x9e37_79b9_u32.wrapping_mul(2 * round + 1) as i32, block);
        let high = b.umulhi(number, factor);
        let low = b.imul(number, factor);
        number = b.xor(high, low);
    }
    b.store(to, number, None);
    b.ret();
    b.finish().expect("the kernel is built right")
}

/// A kernel of so many loops or choices one after the other, each of which carries a number on.
#[cfg(all(target_os = "linux", feature = "tool"))]
fn in_a_row(count: i32, loops: bool) -> TileFunction {
    let mut b = TileBuilder::new(if loops { "loops" } else { "choices" }, 1);
    let out = b.param("out", TileType::scalar(Elem::global(Scalar::I32)));
    let n = b.param("n", TileType::scalar(Elem::I32));
    let one = b.i32(1, Shape::SCALAR);
    let mut number = n;
    for i in 0..count {
        let other = b.i32(i, Shape::SCALAR);
        let next = |b: &mut TileBuilder, x: Value| {
            let product = b.imul(x, x);
            [b.iadd(product, other)].into_iter().collect()
        };
        let results = if loops {
            b.for_loop(one, n, one, &[number], |b, _, carried| next(b, carried[0]))
        } else {
            let cond = b.icmp(number, other, IntPred::Slt);
            let stays = |_: &mut TileBuilder| [number].into_iter().collect();
            b.if_else(cond, |b| next(b, number), stays)
        };
        number = results[0];
    }
    b.store(out, number, None);
    b.ret();
    b.finish().expect("the kernel is built right")
}

/// What the compiler says of a kernel, on a thread with 2 MB of stack.
fn verdict(func: TileFunction) -> Result<(), CompileError> {
    let compiling = std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || compile(&func, Target::SM_80, &Options::DEFAULT).map(drop))
        .expect("a thread");
    compiling.join().expect("nothing panics")
}

#[test]
fn blocks_too_large_for_their_threads_are_refused() {
    let error = verdict(mixed(1 << 20, 1, 100)).expect_err("32,768 elements for each thread");
    let expected = "`arange` of i32[1048576] gives each thread 32768 elements, more than 8192; use more warps or smaller \
                    blocks, together by a factor of 4";
    assert_eq!(error.to_string(), expected);
    // As many elements for each thread as there may be, and 307 times as many operations: the lines take the same, and the
    // first is named.
    let error = verdict(mixed(1 << 18, 1, 100)).expect_err("2.4 million operations");
    let expected = "the kernel takes more than 262144 operations of each thread, most of them for `imul` of i32[262144] with \
                    8192 elements for each thread; use more warps or smaller blocks (line 10)";
    assert_eq!(error.to_string(), expected);
    // The same with a sixteenth of the elements.
    assert_eq!(verdict(mixed(1 << 18, 16, 100)), Ok(()));
    // The largest block there may be, on as few warps as it fits.
    assert_eq!(verdict(mixed(1 << 20, 4, 1)), Ok(()));
}

/// Products of 64 x 64 x 64 in f32 in a row, on one warp.
fn products(count: u32, precision: &str) -> TileFunction {
    let mut text = "kernel @k(v0 \"x\": ptr<f32>) warps(1) {\nblock0:\n    v1 = arange {start = 0} : i32[4096]\n    \
                    v2 = splat v0 : ptr<f32>[4096]\n    v3 = addptr v2, v1 : ptr<f32>[4096]\n    \
                    v4 = load v3 : f32[4096]\n    v5 = reshape v4 : f32[64,64]\n"
        .to_owned();
    for i in 6..6 + count {
        let last = i - 1;
        text +=
            &format!("    v{i} = dot v{last}, v5, v5 {{precision = {precision}}} : f32[64,64]\n");
    }
    let (last, flat) = (5 + count, 6 + count);
    text += &format!(
        "    v{flat} = reshape v{last} : f32[4096]\n    store v3, v{flat}\n    return\n}}\n"
    );
    parse_tile(&text).expect("it can be read")
}

/// One such product is compiled, of many the error says what helps, and that does.
#[test]
fn products_without_a_unit_are_bounded_and_one_is_named() {
    assert_eq!(verdict(products(1, "ieee")), Ok(()));
    let error = verdict(products(32, "ieee")).expect_err("eight million multiply-adds");
    let expected = "the kernel takes more than 262144 operations of each thread, most of them for `dot` of f32[64,64] with 128 \
                    elements for each thread; use more warps or smaller blocks, or `input_precision=\"tf32\"`, for which the \
                    target has a unit";
    assert_eq!(error.to_string(), expected);
    assert_eq!(verdict(products(32, "tf32")), Ok(()));
}

/// A load of 64 elements for each thread, and as many times after one another what these lines do to `v9` and it.
fn chain(lines: &[(&str, usize)]) -> TileFunction {
    let mut text = "kernel @k(v0 \"x\": ptr<i32>) warps(4) {\nblock0:\n    v1 = arange {start = 0} : i32[8192]\n    \
                    v2 = splat v0 : ptr<i32>[8192]\n    v3 = addptr v2, v1 : ptr<i32>[8192]\n    \
                    v4 = load v3 : i32[8192]\n"
        .to_owned();
    let mut last = 4;
    for &(line, times) in lines {
        for _ in 0..times {
            let line = line.replace("v9", &format!("v{last}"));
            last += 1;
            text += &format!("    v{last} = {line}\n");
        }
    }
    text += &format!("    store v3, v{last}\n    return\n}}\n");
    parse_tile(&text).expect("it can be read")
}

/// Many small operations are more than a large one, and where lines are known it is a line that takes most.
#[test]
fn what_takes_most_operations_together_is_named() {
    let error = verdict(chain(&[("imul v9, v4 : i32[8192]", 5000)]));
    let error = error.expect_err("320,000 operations").to_string();
    let expected = "most of them for `imul` of i32[8192] with 64 elements for each thread";
    assert!(error.contains(expected), "{error}");
    let lines = [
        ("imul v9, v4 : i32[8192] @7", 1500),
        ("xor v9, v4 : i32[8192] @8", 1200),
        ("umulhi v9, v4 : i32[8192] @8", 1400),
    ];
    let error = verdict(chain(&lines)).expect_err("262,400 operations");
    assert_eq!(error.line(), Some(8), "{error}");
    assert!(
        error.to_string().contains("`umulhi` of i32[8192]"),
        "{error}"
    );
}

/// The most memory that `tilelift compile` has resident at once.
#[cfg(all(target_os = "linux", feature = "tool"))]
mod resident {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::kernels::{self, Config};
    use super::{Scalar, TileFunction};

    /// In KiB.
    const LIMIT: u64 = 30 << 10;

    /// More than a pipe holds.
    static PADDING: [u8; 1 << 20] = [b' '; 1 << 20];

    /// `VmHWM` of a process in KiB; none once it has ended.
    fn peak_kib(id: u32) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    }

    /// The peak when all but the writing of the PTX is done.
    ///
    /// The description is written after compilation and before the PTX, and the PTX goes into a pipe that is full: the
    /// process stands still there, where it can be looked at.
    fn peak_of_compile(func: &TileFunction) -> Option<u64> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (source, meta) = (folder.path().join("k.tir"), folder.path().join("k.json"));
        std::fs::write(&source, func.to_string()).expect("the folder is writable");
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let stdout = writer.try_clone().expect("another handle");
        let filler = std::thread::spawn(move || {
            // Ends with an error when the reader is gone.
            let _ = writer.write_all(&PADDING);
        });
        let mut child = Command::new(env!("CARGO_BIN_EXE_tilelift"))
            .args(["compile", "--target", "sm_80", "--meta"])
            .args([&meta, &source])
            .stdin(Stdio::null())
            .stdout(stdout)
            .spawn()
            .expect("the command was built");
        let mut ended = false;
        while !meta.exists() && !ended {
            std::thread::yield_now();
            ended = child.try_wait().expect("it is our child").is_some();
        }
        let peak = peak_kib(child.id());
        drop(reader);
        child.wait().expect("it is our child");
        filler.join().expect("it does not panic");
        assert!(meta.exists(), "{} does not compile", func.name);
        peak
    }

    #[test]
    fn compiling_takes_less_than_30_mib() {
        let config = Config {
            scalar: Scalar::F32,
            block: 1024,
            warps: 4,
            divisible: 16,
        };
        for func in [kernels::vector_add(config), kernels::softmax(config)] {
            let peak = peak_of_compile(&func);
            let Some(peak) = peak else {
                eprintln!("skipped: /proc does not tell the memory of a process");
                return;
            };
            eprintln!("{}: {peak} KiB", func.name);
            assert!(peak > 256, "{peak} KiB are not plausible");
            assert!(peak < LIMIT, "{}: {peak} KiB", func.name);
        }
    }

    /// What lives on from block to block is little, so memory must not grow as blocks times values do: that took 0.7 GB.
    #[test]
    fn memory_grows_with_the_number_of_loops_and_choices() {
        for loops in [false, true] {
            let peaks =
                [5_000, 10_000].map(|count| peak_of_compile(&super::in_a_row(count, loops)));
            let [Some(few), Some(many)] = peaks else {
                eprintln!("skipped: /proc does not tell the memory of a process");
                return;
            };
            eprintln!("loops {loops}: {few} and {many} KiB");
            // Twice as much, and what the allocator rounds up.
            assert!(many < 3 * few, "loops {loops}: {few} and {many} KiB");
            assert!(many < 256 << 10, "loops {loops}: {many} KiB");
        }
    }
}
