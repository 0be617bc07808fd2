//! The accurate functions keep the bounds of the op table.

use crate::common::ulp;
use crate::common::ulp::Function;
use tilelift::compile::compile;
use tilelift::emu::{self, Arg, Launch, Memory, Module};
use tilelift::ir::types::Scalar;
use tilelift::settings::{Options, Target};

fn check(scalar: Scalar, count: usize) {
    let place = usize::from(scalar == Scalar::F64);
    let mut failures = String::new();
    for function in ulp::functions() {
        let Some(bound) = function.bounds[place] else {
            continue;
        };
        let (error, args) = ulp::worst(&function, scalar, count);
        let shown: Vec<f64> = args.iter().map(|&x| ulp::number(scalar, x)).collect();
        eprintln!("{} {scalar}: {error:.3} ulp at {shown:?}", function.name);
        if error > bound {
            failures += &format!(
                "{}: {error} ulp at {shown:?} ({args:x?}), bound {bound}\n",
                function.name
            );
        }
    }
    assert!(failures.is_empty(), "{scalar}:\n{failures}");
}

#[test]
fn singles_keep_their_bounds() {
    check(Scalar::F32, 100_000);
}

#[test]
fn doubles_keep_their_bounds() {
    check(Scalar::F64, 2_000);
}

/// The table in the docs has every function, its bound, and errors no smaller than those of the first samples.
#[test]
fn the_table_in_the_docs_is_of_these_functions() {
    let table = include_str!("../../src/tile/lower_math/ULP.md");
    let (table, _) = table
        .split_once(ulp::on_gpu::GPU_TITLE)
        .expect("two tables");
    let mut rows = table.lines().filter(|line| line.starts_with("| `"));
    for function in ulp::functions() {
        for (place, scalar) in [Scalar::F32, Scalar::F64].into_iter().enumerate() {
            let Some(bound) = function.bounds[place] else {
                continue;
            };
            let row = rows.next().expect("the table has a row for each function");
            let start = format!("| `{}` | {scalar} | {bound} | ", function.name);
            let rest = row.strip_prefix(&start);
            let rest = rest.unwrap_or_else(|| panic!("`{row}` does not start with `{start}`"));
            let (listed, _) = rest.split_once(" |").expect("a cell ends");
            let listed: f64 = listed.parse().expect("an error is a number");
            let (error, _) = ulp::worst(&function, scalar, 500);
            assert!(
                error <= listed + 0.0006 && listed <= bound,
                "{} {scalar}: {error} ulp, {listed} in the table",
                function.name
            );
        }
    }
    assert_eq!(rows.next(), None, "examples/ulp.rs prints the table");
}

/// Functions of f32 with a power of two or a reciprocal of the machine's, which is not corrected.
const BY_UNITS: [&str; 7] = [
    "exp_precise",
    "exp10",
    "tanh",
    "erf",
    "sinh",
    "cosh",
    "asinh",
];

/// What a GPU computed keeps the bounds, is what the interpreter computes of the lowered functions, and is in the docs.
#[test]
fn a_gpu_keeps_the_bounds() {
    let table = include_str!("../../src/tile/lower_math/ULP.md");
    let functions = [ulp::functions(), ulp::machine_functions()].concat();
    for (row, listed) in ulp::on_gpu::measured_rows(&functions) {
        let Function { name, .. } = &row.function;
        let bound = row.function.bounds[usize::from(row.scalar == Scalar::F64)];
        assert!(bound.is_some_and(|bound| row.error <= bound), "{listed}");
        assert!(
            table.contains(&listed),
            "examples/ulp.rs prints the table:\n{listed}"
        );
        // The machine's units are not the emulator's.
        let by_units = ulp::machine_functions().iter().any(|f| f.name == *name);
        if row.scalar == Scalar::F32 && (by_units || BY_UNITS.contains(name)) {
            continue;
        }
        let func = row.function.lowered(row.scalar);
        let columns: Vec<Vec<u64>> = (0..row.function.operands())
            .map(|place| row.cases.iter().map(|(args, _)| args[place]).collect())
            .collect();
        let columns: Vec<&[u64]> = columns.iter().map(|c| &c[..]).collect();
        let found = ulp::evaluate(&func, row.scalar, &columns);
        for ((args, result), found) in row.cases.iter().zip(found) {
            let nan = |bits| ulp::number(row.scalar, bits).is_nan();
            assert!(
                found == *result || nan(found) && nan(*result),
                "{name} of {args:x?}: {result:#x} on the GPU, {found:#x} by the interpreter"
            );
        }
    }
}

/// Results of the compiled kernel on the emulator, for the first batch of arguments.
fn on_emulator(function: &Function, scalar: Scalar, columns: &[Vec<u64>]) -> Vec<u64> {
    let kernel = compile(&function.kernel(scalar), Target::SM_80, &Options::DEFAULT)
        .expect("the kernel compiles");
    let module = Module::parse(&kernel.ptx).expect("the text is PTX");
    let mut memory = Memory::new();
    let size = scalar.bytes() as usize;
    let mut args = Vec::new();
    for column in columns {
        let bytes: Vec<u8> = column[..ulp::BATCH]
            .iter()
            .flat_map(|x| x.to_le_bytes().into_iter().take(size))
            .collect();
        args.push(Arg::pointer(memory.alloc_bytes(&bytes)));
    }
    let out = memory.alloc(size * ulp::BATCH);
    args.push(Arg::pointer(out));
    let launch = Launch {
        grid: [1, 1, 1],
        block: kernel.meta.block(),
        shared_bytes: kernel.meta.shared,
        args: &args,
        options: emu::Options::default(),
    };
    emu::run(&module, &kernel.meta.name, &launch, &mut memory).expect("the kernel runs");
    let bytes = memory.read(out, size * ulp::BATCH).expect("written");
    let words = bytes.chunks(size);
    words
        .map(|word| {
            word.iter()
                .rev()
                .fold(0, |n, &byte| n << 8 | u64::from(byte))
        })
        .collect()
}

/// What is compiled computes on the emulator the bits that the interpreter finds in the lowered function.
fn machine_agrees(function: &Function, scalar: Scalar) {
    let columns = ulp::samples(function, scalar, ulp::BATCH);
    let first: Vec<&[u64]> = columns.iter().map(|c| &c[..ulp::BATCH]).collect();
    let wanted = ulp::evaluate(&function.lowered(scalar), scalar, &first);
    let found = on_emulator(function, scalar, &columns);
    for (i, (&wanted, &found)) in wanted.iter().zip(&found).enumerate() {
        let nan = |bits| ulp::number(scalar, bits).is_nan();
        assert!(
            wanted == found || nan(wanted) && nan(found),
            "{} {scalar} of {:x?}: {found:#x} on the emulator, {wanted:#x} by the interpreter",
            function.name,
            first.iter().map(|c| c[i]).collect::<Vec<_>>()
        );
    }
}

#[test]
fn the_machine_computes_the_formula() {
    let functions = [ulp::functions(), ulp::machine_functions()].concat();
    for (place, scalar) in [Scalar::F32, Scalar::F64].into_iter().enumerate() {
        // Some ops are of one type.
        for function in functions.iter().filter(|f| f.bounds[place].is_some()) {
            machine_agrees(function, scalar);
        }
    }
}

/// `pow` with the exponent `HALVES / 2`, as a constant.
fn known_power<const HALVES: i32>() -> Function {
    Function {
        name: "pow",
        build: ulp::Build::One(|b, x| {
            let ty = b.ty(x);
            let y = b.float(f64::from(HALVES) / 2.0, ty.elem, ty.shape);
            b.pow(x, y)
        }),
        bounds: [Some(2.0); 2],
        range: [-3.0, 3.0],
        host: |x, _| x.powf(f64::from(HALVES) / 2.0),
        exact: |x, _| match HALVES {
            0 => Some(ulp::Big::ONE),
            1 => (*x >= ulp::Big::ZERO).then(|| x.sqrt()),
            _ => {
                let first = if HALVES < 0 {
                    ulp::Big::ONE / x
                } else {
                    x.clone()
                };
                let mut power = first.clone();
                for _ in 1..(HALVES / 2).abs() {
                    power *= &first;
                }
                Some(power)
            }
        },
    }
}

/// Products of known exponents keep the bound of the op, with its special values, and take no logarithm.
#[test]
fn known_exponents_make_products() {
    let functions = [
        (known_power::<0>(), 0),
        (known_power::<2>(), 0),
        (known_power::<4>(), 1),
        (known_power::<6>(), 2),
        (known_power::<8>(), 2),
        (known_power::<10>(), 20),
        (known_power::<14>(), 24),
        (known_power::<64>(), 40),
        (known_power::<126>(), 60),
        (known_power::<128>(), 60),
        (known_power::<-2>(), 1),
        (known_power::<-4>(), 20),
        (known_power::<-6>(), 24),
        (known_power::<-26>(), 40),
        (known_power::<-128>(), 60),
        (known_power::<1>(), 6),
    ];
    for (i, (function, most)) in functions.iter().enumerate() {
        for scalar in [Scalar::F32, Scalar::F64] {
            let text = function.lowered(scalar).to_string();
            assert!(!text.contains(" pow "), "{i} {scalar}:\n{text}");
            let takes = text.lines().filter(|line| {
                let ops = [
                    "fmul", "fma", "fadd", "select", "rcp", "fdiv_rn", "sqrt_rn", "fcmp", "fneg",
                ];
                ops.iter().any(|op| line.contains(&format!(" = {op} ")))
            });
            let takes = takes.count();
            assert!(takes <= *most, "{i} {scalar} takes {takes}:\n{text}");
            let (error, args) = ulp::worst(function, scalar, 20_000);
            let shown: Vec<f64> = args.iter().map(|&x| ulp::number(scalar, x)).collect();
            assert!(
                error <= 2.0,
                "{i} {scalar}: {error} ulp at {shown:?} ({args:x?})"
            );
            machine_agrees(function, scalar);
        }
    }
}

/// An exponent that is none of these is left to the function.
#[test]
fn other_exponents_make_no_products() {
    for function in [
        known_power::<3>(),
        known_power::<-1>(),
        known_power::<130>(),
    ] {
        let text = function.lowered(Scalar::F32).to_string();
        assert!(
            text.contains(" umulhi ") || text.lines().count() > 60,
            "{text}"
        );
    }
}
