//! Tests of kernels as users write them: what they find.

use tilelift::runtime::{Buffer, Constants, Kernel, NONE, Program};
use tilelift::settings::Target;
use tilelift::stages::Stage;
use tilelift::testing::{Case, Failure, Tolerance, emulator, emulator_for};

use crate::tools::ADD;

/// Kernels that are wrong in ways of their own.
const WRONG: &str = r#"
import triton
import triton.language as tl

@triton.jit
def race(out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i // 2, i)

@triton.jit
def half(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i), i < BLOCK // 2)

@triton.jit
def writes_input(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))
    tl.store(x + i, 0.0)

@triton.jit
def reads_output(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + tl.load(out + i))

@triton.jit
def beyond(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i + 1))
"#;

fn kernel(text: &str, name: &str, block: i32) -> Kernel {
    let program = Program::python("kernels.py", text).expect("it is Python");
    let device = emulator();
    let kernel = device.kernel(&program, name).expect("it is there");
    kernel.constant("BLOCK", block).expect("it has one")
}

fn add_case() -> Case {
    let x: Vec<f32> = (0..100).map(|i| i as f32 / 8.0).collect();
    let y: Vec<f32> = (0..100).map(|i| 1.0 / (i + 1) as f32).collect();
    let grid = &|c: Constants<'_>| Some([100_u32.div_ceil(c.int("BLOCK")?), 1, 1]);
    Case::new(&kernel(ADD, "add", 64), grid)
        .input(&x)
        .input(&y)
        .output(100, |i| x[i] + y[i])
        .value(100)
}

#[test]
fn a_right_kernel_passes() -> Result<(), Failure> {
    add_case().check()?;
    let eight = add_case().kernel().warps(8)?;
    add_case().with_kernel(&eight).check()
}

#[test]
fn what_is_wrong_is_found() {
    let x = [1.0_f32; 64];
    let plain = |name| {
        Case::new(&kernel(WRONG, name, 64), 1)
            .input(&x)
            .output(64, |_| 1.0_f32)
    };
    let x2 = [1.0_f32; 100];
    let wrong = Case::new(&kernel(ADD, "add", 64), 2)
        .input(&x2)
        .input(&x2)
        .output(100, |i| if i == 7 { 3.0_f32 } else { 2.0 })
        .value(100);
    let race = Case::new(&kernel(WRONG, "race", 64), 1).output(32, |i| 2 * i as i32);
    for (case, problem) in [
        (race, "race"),
        (plain("half"), "argument `out`: [32] was not written"),
        (
            plain("writes_input"),
            "argument `x`: an input was written to; 64 of 64 elements",
        ),
        (plain("reads_output"), "not all of them written"),
        (plain("beyond"), "argument `x`"),
        (
            wrong,
            "argument `out`: 1 of 100 elements are wrong: [7] is 2.0, expected 3.0",
        ),
        (
            Case::new(&kernel(WRONG, "half", 64), 1).input(&x),
            "the case expects nothing",
        ),
        (plain("half").value(3), "takes 2 arguments"),
        (
            plain("half").value(3).within(Tolerance::EXACT),
            "within() follows the output",
        ),
    ] {
        let failure = case.check().expect_err(problem).to_string();
        assert!(failure.contains(problem), "{problem}: {failure}");
    }
}

#[test]
fn tolerances_are_those_of_the_output_before() {
    let case = |tolerance| {
        let x = [2.0_f32; 64];
        Case::new(&kernel(WRONG, "half", 64), 1)
            .input(&x)
            .in_out(&[2.5_f32; 64], |i| if i < 32 { 2.25 } else { 2.5 })
            .within(tolerance)
    };
    assert_eq!(case(Tolerance::absolute(0.25)).check(), Ok(()));
    let failure = case(Tolerance::absolute(0.125)).check();
    assert!(
        matches!(failure, Err(Failure::Values { .. })),
        "{failure:?}"
    );
}

#[test]
fn texts_of_stages_are_those_of_the_variant() {
    let case = add_case();
    let ptx = case.text(Stage::Ptx).expect("it compiles");
    // Addresses of the emulator are multiples of 16, and 100 is none.
    assert!(
        ptx.contains(".visible .entry add(") && ptx.contains(".align 16"),
        "{ptx}"
    );
    assert!(ptx.contains(".target sm_80"), "{ptx}");
    let layouts = case.text(Stage::Layout).expect("it compiles");
    assert!(
        layouts.contains("reg") && layouts.contains("lane"),
        "{layouts}"
    );
    let stats = case.text(Stage::Stats).expect("it compiles");
    assert!(stats.contains("predicted registers"), "{stats}");

    let program = Program::python("add.py", ADD).expect("it is Python");
    let device = emulator_for(Target::SM_90A, 3);
    let add = device.kernel(&program, "add").expect("it is there");
    let add = add.constant("BLOCK", 64).expect("it has one");
    let newer = case.clone().with_kernel(&add);
    assert_eq!(newer.check(), Ok(()));
    let ptx = newer.text(Stage::Ptx).expect("it compiles");
    assert!(ptx.contains(".target sm_90a"), "{ptx}");

    let x = Buffer::<f32>::new(&device, 64).expect("there is memory");
    let error = add
        .emit(Stage::Ptx, (&x, &x, NONE, 64))
        .expect_err("`out` is used");
    assert!(error.to_string().contains("add.py:"), "{error}");
}

#[test]
fn files_hold_what_is_expected() -> Result<(), Failure> {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("add.ptx");
    let missing = add_case()
        .expect(Stage::Ptx, &path)
        .expect_err("it is not there");
    assert!(
        missing.to_string().contains("TILELIFT_BLESS=1 writes it"),
        "{missing}"
    );
    let text = add_case().text(Stage::Ptx)?;
    std::fs::write(&path, &text).expect("it can be written");
    add_case().expect(Stage::Ptx, &path)?;
    std::fs::write(&path, text.replace("add.rn.f32", "sub.rn.f32")).expect("it can be written");
    let other = add_case()
        .expect(Stage::Ptx, &path)
        .expect_err("they differ");
    let shown = format!("{other:?}");
    let sign = |sign: char, op: &str| shown.lines().any(|l| l.starts_with(sign) && l.contains(op));
    assert!(
        sign('-', "sub.rn.f32") && sign('+', "add.rn.f32"),
        "{shown}"
    );
    assert!(shown.lines().count() < text.lines().count(), "{shown}");
    Ok(())
}

/// Random cases find what depends on the order of warps, on sizes, and on how the compiler chose; and say how to come back.
#[cfg(feature = "fuzzing")]
#[test]
fn random_cases_find_what_one_case_does_not() {
    use tilelift::fuzzing::check_kernel;
    // Forgets the mask, which shows where the size is no multiple of the block.
    const FORGETFUL: &str = r#"
import triton
import triton.language as tl

@triton.jit
def twice(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i))
"#;
    let check = |is_lucky: bool| {
        let program = Program::python("twice.py", FORGETFUL)?;
        check_kernel(
            "twice",
            &[Target::SM_80, Target::SM_90A],
            |device, random| {
                let n = if is_lucky { 64 } else { 1 + random.below(64) };
                let x: Vec<i32> = (0..n).map(|_| random.between(-9, 9) as i32).collect();
                let kernel = device.kernel(&program, None)?.constant("BLOCK", 64)?;
                Ok(Case::new(&kernel, 1)
                    .input(&x)
                    .output(n, |i| 2 * x[i])
                    .value(n as i32))
            },
        )
    };
    let report = check(true).expect("nothing is wrong with whole blocks");
    assert!(report.passed > 0 && report.notes.contains_key("compiled by cost"));
    let failure = check(false).expect_err("it reads beyond the end");
    let Failure::Seed { seed, failure } = &failure else {
        panic!("{failure}");
    };
    let repeat = format!("TILELIFT_FUZZ_SEED={seed} in the environment runs this case alone");
    assert!(
        failure.contains("argument `x`") && failure.contains(&repeat),
        "{failure}"
    );
    assert!(check_kernel("none", &[], |_, _| Ok(add_case())).is_err());
}
