//! What a kernel is set up with, and what it changes.

use tilelift::front::{Module, Specialization, parse_signature};
use tilelift::runtime::{Buffer, Constant, Constants, DType, Kernel, Program, RuntimeError};
use tilelift::settings::Target;

use crate::tools::emulator;

const PRODUCT: &str = r#"
import triton
import triton.language as tl

@triton.jit
def product(a, b, out):
    i = tl.arange(0, 32)
    tile = i[:, None] * 32 + i[None, :]
    total = tl.zeros((32, 32), tl.float32)
    for k in range(0, 4):
        total = tl.dot(tl.load(a + k * 1024 + tile), tl.load(b + k * 1024 + tile), total)
    tl.store(out + tile, total)
"#;

#[test]
fn warps_and_stages_are_those_of_the_set_up() {
    let device = emulator(None);
    let module = Module::parse("product.py", PRODUCT).expect("it is Python");
    let signature = parse_signature("*fp16:16, *fp16:16, *fp32:16").expect("a signature");
    let lowered = module.lower(None, &Specialization::new(signature, Target::SM_80));
    let programs = [
        Program::python("product.py", PRODUCT).expect("it is Python"),
        Program::function(lowered.expect("it is right").func).expect("it is valid"),
    ];
    let halves = |n: usize| -> Vec<u16> { (0..n).map(|i| [0, 0x3c00, 0x4000][i % 3]).collect() };
    for program in programs {
        let kernel = device.kernel(&program, None).expect("there is one kernel");
        let a = Buffer::from_slice(&device, &halves(4096)).expect("there is memory");
        let b = Buffer::from_slice(&device, &halves(4096)).expect("there is memory");
        let out = Buffer::<f32>::new(&device, 1024).expect("there is memory");
        let run = |kernel: &Kernel| {
            let [a, b] =
                [&a, &b].map(|buffer| buffer.slice(0..4096).expect("all").cast(DType::F16));
            kernel.run(1, (a, b, &out)).expect("it runs");
            let report = kernel.variants().pop().expect("it was launched");
            (report, out.read(&device.stream()).expect("it ran"))
        };
        let set = |warps: u32, stages: u8| {
            kernel
                .warps(warps)
                .and_then(|k| k.stages(stages))
                .expect("possible")
        };
        let (plain, expected) = run(&set(4, 1));
        let (staged, found) = run(&set(2, 3));
        assert_eq!((plain.num_warps, staged.num_warps), (4, 2));
        assert_eq!(found, expected);
        // The warps of two CTAs in one.
        let (together, found) = run(&set(2, 1).ctas(2).expect("possible"));
        assert_eq!((together.num_warps, found), (4, expected));
        // Of three stages one computes: two tiles of each factor wait in shared memory.
        assert_eq!(staged.shared_bytes, 2 * 2 * 2048);
        assert!(plain.shared_bytes < staged.shared_bytes, "{plain}");
    }
}

#[test]
fn numbers_that_no_device_has_are_refused() {
    let device = emulator(None);
    let program = Program::python("product.py", PRODUCT).expect("it is Python");
    let kernel = device.kernel(&program, None).expect("there is one kernel");
    let refused =
        |found: Result<Kernel, RuntimeError>| found.expect_err("it is impossible").to_string();
    for (error, words) in [
        (
            refused(kernel.warps(3)),
            "3 warps; 1, 2, 4, 8, 16 or 32 are possible",
        ),
        (refused(kernel.warps(64)), "64 warps"),
        (
            refused(kernel.ctas(3)),
            "3 CTAs for one program; 1, 2, 4, 8, 16 or 32 are possible",
        ),
        (
            refused(kernel.warps(16).and_then(|kernel| kernel.ctas(4))),
            "4 CTAs of 16 warps run as one of 64, more than the 32 that a CTA has (1,024 threads); use 8 warps, or fewer",
        ),
        (refused(kernel.stages(0)), "0 stages; 1 to 32 are possible"),
        (refused(kernel.max_registers(300)), "300 registers a thread"),
        (
            refused(kernel.cluster([4, 4, 2])),
            "clusters of 4 x 4 x 2 programs; 1 to 16 are possible",
        ),
        (
            refused(kernel.cluster([1, 0, 1])),
            "clusters of 1 x 0 x 1 programs",
        ),
        (
            refused(kernel.cluster([u32::MAX; 3])),
            "1 to 16 are possible",
        ),
    ] {
        assert!(
            error.contains(words) && error.contains("product"),
            "{error}"
        );
    }
}

const SUM: &str = r#"
import triton
import triton.language as tl

@triton.jit
def sum(out, x, y, z, WHAT: tl.constexpr = None):
    v = tl.load(x) * tl.load(y) + tl.load(z)
    if WHAT is None:
        tl.store(out, v)
    elif WHAT == "count":
        tl.store(out, tl.num_programs(0) + 10 * tl.num_programs(1) + 100 * tl.num_programs(2))
    elif WHAT == tl.float16:
        tl.store(out, 16)
    elif WHAT == tl.float32:
        tl.store(out, 32)
    else:
        tl.store(out, WHAT)
"#;

#[test]
fn fusion_is_chosen_and_other_ways_to_launch_compute_the_same() {
    let device = emulator(None);
    let program = Program::python("sum.py", SUM).expect("it is Python");
    let kernel = device.kernel(&program, "sum").expect("there is one kernel");
    // The square is 1 + 2^-11 + 2^-24, whose last part a rounding of its own drops.
    let (x, z) = (1.0 + 2_f32.powi(-12), -1.0 - 2_f32.powi(-11));
    let [x, z] = [x, z].map(|x| Buffer::from_slice(&device, &[x]).expect("there is memory"));
    let out = Buffer::<f32>::new(&device, 1).expect("there is memory");
    let run = |kernel: Result<Kernel, RuntimeError>| {
        let kernel = kernel.expect("possible");
        kernel.run(1, (&out, &x, &x, &z)).expect("it runs");
        out.read(&device.stream()).expect("it ran")[0]
    };
    let fused = 2_f32.powi(-24);
    assert_eq!(run(kernel.fp_fusion(true)), fused);
    assert_eq!(run(kernel.fp_fusion(false)), 0.0);
    assert_eq!(run(kernel.line_info(true)), fused);
    assert_eq!(run(kernel.dependent(true)), fused);
    assert_eq!(run(kernel.cooperative(true)), fused);
    assert_eq!(run(kernel.cluster([1, 1, 1])), fused);
}

#[test]
fn grids_are_numbers_or_functions_of_the_constants() {
    let device = emulator(None);
    let program = Program::python("sum.py", SUM).expect("it is Python");
    let kernel = device
        .kernel(&program, "sum")
        .and_then(|k| k.constant("WHAT", "count"));
    let kernel = kernel.expect("a constant");
    let zero = Buffer::from_slice(&device, &[0.0_f32]).expect("there is memory");
    let out = Buffer::<f32>::new(&device, 1).expect("there is memory");
    let count = |kernel: &Kernel| {
        let found = out.read(&device.stream()).expect("it ran")[0];
        assert_eq!(kernel.variants().len(), 1);
        found
    };
    let args = || (&out, &zero, &zero, &zero);
    kernel.run([3], args()).expect("it runs");
    assert_eq!(count(&kernel), 113.0);
    kernel.run([3, 2], args()).expect("it runs");
    assert_eq!(count(&kernel), 123.0);
    kernel.run([1, 2, 4], args()).expect("it runs");
    assert_eq!(count(&kernel), 421.0);
    let by_warps = |c: Constants| Some([c.num_warps(), 1, 1]);
    let eight = kernel.warps(8).expect("possible");
    eight.run(&by_warps, args()).expect("it runs");
    assert_eq!(count(&eight), 118.0);
    // A text is no number of anything.
    let by_text = |c: Constants| Some([c.int("WHAT")?, 1, 1]);
    let error = kernel
        .run(&by_text, args())
        .expect_err("no grid")
        .to_string();
    assert!(error.contains("there is WHAT = \"count\""), "{error}");
}

#[test]
fn constants_of_every_kind_make_variants() {
    let device = emulator(None);
    let program = Program::python("sum.py", SUM).expect("it is Python");
    let [two, one] =
        [2.0_f32, 1.0].map(|x| Buffer::from_slice(&device, &[x]).expect("there is memory"));
    let out = Buffer::<f32>::new(&device, 1).expect("there is memory");
    let cases = [
        (Constant::None, "None", 5.0),
        (Constant::from(true), "True", 1.0),
        (Constant::from(false), "False", 0.0),
        (Constant::from(-7), "-7", -7.0),
        (Constant::from(2.5), "2.5", 2.5),
        (Constant::from("count"), "\"count\"", 111.0),
        (Constant::from(DType::F16), "fp16", 16.0),
        (Constant::from(DType::F32), "fp32", 32.0),
    ];
    let set = |constant: &Constant| {
        let kernel = device.kernel(&program, "sum");
        let kernel = kernel.and_then(|kernel| kernel.constant("WHAT", constant.clone()));
        kernel.expect("a constant")
    };
    for (i, (constant, shown, expected)) in cases.iter().enumerate() {
        assert_eq!(constant.to_string(), *shown);
        let kernel = set(constant);
        assert!(kernel.variants().is_empty(), "{shown}");
        kernel.run(1, (&out, &two, &two, &one)).expect("it runs");
        assert_eq!(out.read(&device.stream()), Ok(vec![*expected]), "{shown}");
        // The same again is the same set-up.
        assert_eq!(set(&constant.clone()).variants().len(), 1, "{shown}");
        for (j, (other, ..)) in cases.iter().enumerate() {
            assert_eq!(constant == other, i == j, "{constant} {other}");
        }
    }
    let [twice, thrice] = ["twice", "thrice"].map(|name| Constant::Function(name.to_owned()));
    assert!(twice == twice.clone() && twice != thrice);
    assert_eq!(twice.to_string(), "@twice");
}

#[test]
fn files_that_are_imported_belong_to_the_program() {
    let device = emulator(None);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("norm.py");
    let main = "import triton, triton.language as tl\nfrom .special import f\n\n@triton.jit\ndef k(x):\n    tl.store(x, f(tl.load(x)))\n";
    std::fs::write(&path, main).expect("it is written");
    let run = |text: &str| {
        std::fs::write(folder.path().join("special.py"), text).expect("it is written");
        let program = Program::python_file(&path).expect("it is Python");
        let kernel = device.kernel(&program, None).expect("there is one kernel");
        let x = Buffer::from_slice(&device, &[3.0f32]).expect("there is memory");
        kernel.run(1, (&x,)).expect("it runs");
        x.read(&device.stream()).expect("it ran")
    };
    let helper =
        |value: &str| format!("import triton\n\n@triton.jit\ndef f(x):\n    return {value}\n");
    // Another text of the other file is another program.
    assert_eq!(run(&helper("x * x")), [9.0]);
    assert_eq!(run(&helper("x + 1")), [4.0]);
    let unread = Program::python_file(folder.path().join("none.py"));
    let said = unread.expect_err("there is no such file").to_string();
    assert!(said.contains("none.py: the file cannot be read"), "{said}");
}
