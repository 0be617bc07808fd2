//! Kernels compiled ahead of time: the Rust modules, and what they launch.

use std::process::Command;

use tilelift::compile::{CompiledKernel, compile};
use tilelift::front::{ArgSpec, Module, Specialization, parse_signature};
use tilelift::ir::function::TileFunction;
use tilelift::runtime::{
    Buffer, Compiled, CompiledParam, DType, Program, RuntimeError, RustModule, rust_module,
};
use tilelift::settings::{Options, Target};

use crate::tools::{another_process, emulator, role};

#[test]
fn kernels_compiled_ahead_run() {
    let module = Module::parse("add.py", crate::tools::ADD).expect("it is Python");
    let signature = parse_signature("*fp32:16, *fp32, *fp32, i32, 64").expect("a signature");
    let lowered = module.lower(None, &Specialization::new(signature, Target::SM_80));
    let func = lowered.expect("it is right").func;
    let kernel = compile(&func, Target::SM_80, &Options::DEFAULT).expect("it compiles");
    let text = rust_module(&kernel, &func);
    for line in [
        "pub struct Add(pub ::tilelift::runtime::Kernel);",
        r#"{ name: "x", pointer: true, element: "f32", divisible: 16 },"#,
        r#"{ name: "n", pointer: false, element: "i32", divisible: 1 },"#,
        "    pub n: ::core::primitive::i32,\n",
        "P2: ::tilelift::runtime::Writable<::core::primitive::f32>>",
        ".visible .entry add(",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }

    // What such a module holds, loaded.
    const PARAM: CompiledParam = CompiledParam {
        name: "x",
        pointer: true,
        element: "f32",
        divisible: 16,
    };
    let compiled = Compiled {
        name: "add",
        ptx: kernel.ptx.leak(),
        cubin: None,
        target: "sm_80",
        num_warps: 4,
        shared_bytes: kernel.meta.shared,
        predicted_registers: 20,
        params: &[
            PARAM,
            CompiledParam {
                name: "y",
                divisible: 1,
                ..PARAM
            },
            CompiledParam {
                name: "out",
                divisible: 1,
                ..PARAM
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
    };
    let device = emulator(None);
    let program = Program::compiled(&compiled).expect("it is well described");
    let add = device.kernel(&program, None).expect("there is one kernel");
    let x = Buffer::from_slice(&device, &[2.5_f32; 64]).expect("there is memory");
    let out = Buffer::<f32>::new(&device, 64).expect("there is memory");
    add.run(1, (&x, &x, &out, 64)).expect("it runs");
    assert_eq!(out.read(&device.stream()), Ok(vec![5.0; 64]));
    assert!(add.run(1, (&x, &x, &out, 64_i64)).is_err());
    let odd = x.slice(1..64).expect("inside");
    assert!(add.run(1, (odd, &x, &out, 16)).is_err());

    // How it is launched can be chosen still; what the compiler was told cannot.
    for other in [
        add.dependent(true),
        add.cooperative(true),
        add.cluster([2, 1, 1]),
    ] {
        let other = other.expect("it is no matter of the compiler");
        out.fill(&device.stream(), 0).expect("it can be filled");
        other.run(2, (&x, &x, &out, 64)).expect("it runs");
        assert_eq!(out.read(&device.stream()), Ok(vec![5.0; 64]));
    }
    for other in [
        add.warps(8),
        add.stages(2),
        add.max_registers(64),
        add.fp_fusion(false),
        add.line_info(true),
        add.debug(true),
    ] {
        let error = other.expect_err("it is compiled").to_string();
        assert!(error.contains("compiled ahead of time"), "{error}");
    }
}

#[test]
fn descriptions_that_do_not_fit_are_refused() {
    let device = emulator(None);
    let x = Buffer::from_slice(&device, &[1.0_f32; 128]).expect("there is memory");
    let good = add_ahead::COMPILED;
    const ODD: CompiledParam = CompiledParam {
        name: "x",
        pointer: true,
        element: "f32",
        divisible: 3,
    };
    const SMALL: CompiledParam = CompiledParam {
        name: "x",
        pointer: false,
        element: "i16",
        divisible: 1,
    };
    let garbage = "?".repeat(100).leak();
    let broken = good.ptx.replacen("ld.param", "ld.parm", 1).leak();
    let other = good.ptx.replace(".entry add", ".entry sub").leak();
    let cases: [(Compiled, &str); 11] = [
        (
            Compiled {
                target: "sm_1",
                ..good
            },
            "unknown target",
        ),
        (
            Compiled {
                name: "sub",
                ..good
            },
            "there is no entry `sub`",
        ),
        (Compiled { ptx: other, ..good }, "there is no entry `add`"),
        (
            Compiled {
                ptx: garbage,
                ..good
            },
            "there is no entry `add`",
        ),
        (
            Compiled {
                ptx: broken,
                ..good
            },
            "the emulator does not accept its PTX",
        ),
        (
            Compiled {
                num_warps: 0,
                ..good
            },
            "it states 0 warps",
        ),
        (
            Compiled {
                num_warps: 99,
                ..good
            },
            "it states 99 warps",
        ),
        (
            Compiled {
                num_warps: 8,
                ..good
            },
            "programs of 128 threads, expected 256",
        ),
        (
            Compiled {
                shared_bytes: u32::MAX,
                ..good
            },
            "bytes of shared memory",
        ),
        (
            Compiled {
                params: &[ODD, ODD, ODD, ODD],
                ..good
            },
            "is a multiple of 3",
        ),
        (
            Compiled {
                params: &[SMALL, SMALL, SMALL, SMALL],
                ..good
            },
            "for an argument of 2 bytes",
        ),
    ];
    let run = |compiled: &Compiled| {
        let kernel = device.kernel(&Program::compiled(compiled)?, None)?;
        kernel.run(1, (&x, &x, &x, 128))
    };
    assert_eq!(run(&good), Ok(()));
    for (compiled, problem) in cases {
        let error = run(&compiled).expect_err(problem);
        assert!(matches!(error, RuntimeError::Setup { .. }), "{error:?}");
        assert!(error.to_string().contains(problem), "{error}");
    }
    let fewer = run(&Compiled {
        params: &[],
        ..good
    })
    .expect_err("there are four");
    assert!(
        fewer
            .to_string()
            .contains("the entry has 4 parameters, expected 0"),
        "{fewer}"
    );
    let sites = run(&Compiled {
        sites: b"zzz",
        ..good
    })
    .expect_err("they cannot be read");
    assert!(
        sites.to_string().contains("what it prints cannot be read"),
        "{sites}"
    );
}

/// What `tilelift compile --emit rust` wrote for the addition with `BLOCK` 128 and `SCALE` 2.
#[expect(unreachable_pub, reason = "it is written for crates of any kind")]
mod add_ahead {
    include!("../data/runtime/add_ahead.txt");
}

#[test]
fn rust_modules_launch() {
    let device = emulator(None);
    let add = add_ahead::Add::load(&device).expect("it is well described");
    let x = Buffer::from_slice(&device, &[2.5_f32; 200]).expect("there is memory");
    let mut out = Buffer::<f32>::new(&device, 200).expect("there is memory");
    let stream = device.stream();
    let programs = 200_u32.div_ceil(add_ahead::Add::BLOCK);
    let args = add_ahead::Args {
        x: &x,
        y: x.view(),
        out: &mut out,
        n: 200,
    };
    add.launch(&stream, programs, args).expect("it runs");
    assert_eq!(out.read(&stream), Ok(vec![10.0; 200]));
    // In place, which one borrow does not express: by pointers.
    let args = add_ahead::Args {
        x: out.ptr(),
        y: out.ptr(),
        out: out.ptr(),
        n: 100,
    };
    add.launch(&stream, programs, args).expect("it runs");
    let half = [[40.0_f32; 100], [10.0; 100]].concat();
    assert_eq!(out.read(&stream), Ok(half));
    // What a pointer is said to be is checked where it is launched.
    let args = add_ahead::Args {
        x: out.ptr().cast(DType::F16),
        y: out.ptr(),
        out: out.ptr(),
        n: 100,
    };
    let error = add.launch(&stream, programs, args).expect_err("a half");
    assert!(error.to_string().contains("argument `x`"), "{error}");
}

/// What `tilelift compile --emit rust` wrote for [`SAY`] with `-s "*u32:16, u32, 32"`.
#[expect(unreachable_pub, reason = "it is written for crates of any kind")]
mod say_ahead {
    include!("../data/runtime/say_ahead.txt");
}

/// Prints and stores numbers without sign.
const SAY: &str = r#"
import triton
import triton.language as tl

@triton.jit
def say(x, n, BLOCK: tl.constexpr):
    tl.device_print("n is", n)
    i = tl.arange(0, BLOCK)
    tl.store(x + i, n // 2)
"#;

#[test]
fn modules_keep_what_is_printed_and_signs() {
    let device = emulator(None);
    let say = say_ahead::Say::load(&device).expect("it is well described");
    let x = Buffer::from_slice(&device, &[0_u32; 32]).expect("there is memory");
    let stream = device.stream();
    let n = u32::MAX - 1;
    let mut x = x;
    say.launch(&stream, 1, say_ahead::Args { x: &mut x, n })
        .expect("it runs");
    assert_eq!(x.read(&stream), Ok(vec![n / 2; 32]));
    let lines = say.0.printed(&stream, (&x, n)).expect("it ran");
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains("n is"), "{lines:?}");
    // A sign does not fit, of a number nor of what a pointer points to.
    let error = say
        .0
        .launch(&stream, 1, (&x, 7))
        .expect_err("it has a sign");
    let text = "kernel `say`, argument `n`: it is i32, expected u32";
    assert_eq!(error.to_string(), text);
    let signed = x.ptr().cast(DType::I32);
    let error = say
        .0
        .launch(&stream, 1, (signed, n))
        .expect_err("it has a sign");
    let text = "kernel `say`, argument `x`: it is *i32, expected *u32";
    assert_eq!(error.to_string(), text);
    // What is written today says the same of the parameters.
    let (kernel, func, signature) = made(SAY, "*u32:16, u32, 32");
    let module = RustModule::new(&kernel, &func).signature(&signature);
    let today = module.to_string();
    for line in [
        r#"{ name: "x", pointer: true, element: "u32", divisible: 16 },"#,
        r#"{ name: "n", pointer: false, element: "u32", divisible: 1 },"#,
        "    pub n: ::core::primitive::u32,\n",
    ] {
        assert!(today.contains(line), "{line}\n{today}");
    }
    let sites = today.lines().find(|line| line.contains("sites: b"));
    assert_eq!(
        sites,
        include_str!("../data/runtime/say_ahead.txt")
            .lines()
            .find(|line| line.contains("sites: b"))
    );
}

/// A kernel of a text, what it was compiled from, and its signature.
fn made(text: &str, signature: &str) -> (CompiledKernel, TileFunction, Vec<ArgSpec>) {
    let module = Module::parse("kernels.py", text).expect("it is Python");
    let signature = parse_signature(signature).expect("a signature");
    let spec = Specialization::new(signature.clone(), Target::SM_80);
    let func = module.lower(None, &spec).expect("it is right").func;
    let kernel = compile(&func, Target::SM_80, &Options::DEFAULT).expect("it compiles");
    (kernel, func, signature)
}

/// The part of this crate that modules name, with the same types; so that compiling many takes a moment.
const STAND_IN: &str = r#"
pub mod runtime {
    pub struct Compiled {
        pub name: &'static str, pub ptx: &'static str, pub cubin: Option<&'static [u8]>, pub target: &'static str,
        pub num_warps: u32, pub shared_bytes: u32, pub predicted_registers: u32, pub params: &'static [CompiledParam],
        pub persistent: bool, pub maps: &'static [&'static str], pub fallback: Option<&'static Compiled>, pub sites: &'static [u8],
    }
    pub struct CompiledParam {
        pub name: &'static str, pub pointer: bool, pub element: &'static str, pub divisible: u32,
    }
    pub struct RuntimeError;
    pub struct Device;
    pub struct Stream;
    pub struct Program;
    #[derive(Clone, Debug)]
    pub struct Kernel;
    pub struct Grid<'a>(pub &'a u32);
    pub struct Arg<'a>(pub &'a u32);
    pub trait Element {}
    impl Element for f32 {}
    impl Element for u32 {}
    impl Element for i32 {}
    pub struct Buffer<T>(pub T);
    pub struct View<'a, T>(pub core::marker::PhantomData<(&'a (), T)>);
    pub struct ViewMut<'a, T>(pub core::marker::PhantomData<(&'a (), T)>);
    impl<'a, T> From<View<'a, T>> for Arg<'a> { fn from(_: View<'a, T>) -> Self { Arg(&0) } }
    impl<'a, T> From<ViewMut<'a, T>> for Arg<'a> { fn from(_: ViewMut<'a, T>) -> Self { Arg(&0) } }
    impl<T: Element> Readable<T> for &Buffer<T> {
        fn into_view<'a>(self) -> View<'a, T> where Self: 'a { View(core::marker::PhantomData) }
    }
    impl<T: Element> Writable<T> for &mut Buffer<T> {
        fn into_view_mut<'a>(self) -> ViewMut<'a, T> where Self: 'a { ViewMut(core::marker::PhantomData) }
    }
    impl From<i32> for Arg<'_> { fn from(_: i32) -> Self { Arg(&0) } }
    impl From<u32> for Arg<'_> { fn from(_: u32) -> Self { Arg(&0) } }
    impl From<f32> for Arg<'_> { fn from(_: f32) -> Self { Arg(&0) } }
    impl Program {
        pub fn compiled_for(_: &Device, _: &[Compiled]) -> Result<Program, RuntimeError> { Ok(Program) }
    }
    impl Device {
        pub fn kernel(&self, _: &Program, _: Option<&str>) -> Result<Kernel, RuntimeError> { Ok(Kernel) }
    }
    impl Kernel {
        pub fn launch<'g, 'a>(&self, _: &Stream, _: impl Into<Grid<'g>>, _: impl AsRef<[Arg<'a>]>) -> Result<(), RuntimeError> {
            Ok(())
        }
    }
}
"#;

/// The stand-in with this crate's own traits of what a launch takes, whose messages users see.
fn stand_in() -> String {
    let view = include_str!("../../src/runtime/api/view.rs");
    let (_, traits) = view
        .split_once("#[diagnostic::on_unimplemented")
        .expect("the first trait");
    let (traits, _) = traits
        .split_once("/// Implements a trait of the two")
        .expect("what follows them");
    STAND_IN.trim_end().trim_end_matches('}').to_owned()
        + "#[diagnostic::on_unimplemented"
        + traits
        + "}\n"
}

/// Compiles modules, with these flags, against the stand-in: whether they are right, and what rustc says. `None` where there is
/// no rustc.
fn compiled(modules: &str, flags: &[&str]) -> Option<(bool, String)> {
    let dir = tempfile::tempdir().expect("a folder for the test");
    let rustc = |name: &str, text: &str, flags: &[&str]| {
        std::fs::write(dir.path().join(name), text).expect("it can be written");
        let mut command = Command::new("rustc");
        let command = command
            .current_dir(dir.path())
            .args(["--edition", "2024", "--crate-type", "rlib", name])
            .args(flags);
        let output = command.output().ok()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Some((output.status.success(), said))
    };
    let Some(library) = rustc("stand_in.rs", &stand_in(), &["--crate-name", "tilelift"]) else {
        eprintln!("skipped: there is no rustc");
        return None;
    };
    assert!(library.0, "{}", library.1);
    let flags = [&["--extern", "tilelift=libtilelift.rlib"], flags].concat();
    rustc("modules.rs", modules, &flags)
}

#[test]
fn wrong_arguments_are_told_where_they_stand() {
    let (kernel, func, signature) = made(
        "import triton, triton.language as tl\n@triton.jit\ndef twice(x, out, n):\n    tl.store(out, 2 * tl.load(x) + n)\n",
        "*fp32, *fp32, u32",
    );
    let module = RustModule::new(&kernel, &func).signature(&signature);
    let uses = |arguments: &str| {
        format!(
            "{module}
            pub fn launch(k: Twice, s: &tilelift::runtime::Stream, g: tilelift::runtime::Grid<'_>,
                x: tilelift::runtime::Buffer<f32>, u: tilelift::runtime::Buffer<u32>, mut out: tilelift::runtime::Buffer<f32>) {{
                let _ = k.launch(s, g, Args {{ {arguments} }});
                let _ = (&x, &u, &mut out);
            }}"
        )
    };
    let Some((is_right, said)) = compiled(&uses("x: &x, out: &mut out, n: 3"), &[]) else {
        return;
    };
    assert!(is_right, "{said}");
    for (arguments, message, at) in [
        (
            "x: &u, out: &mut out, n: 3",
            "`&Buffer<u32>` is not memory of `f32` that a kernel can read",
            "    ^^ expected memory of `f32`\n",
        ),
        (
            "x: 3, out: &mut out, n: 3",
            "`{integer}` is not memory of `f32` that a kernel can read",
            "    ^ expected memory of `f32`\n",
        ),
        (
            "x: &x, out: &out, n: 3",
            "`&Buffer<f32>` is not memory of `f32` that a kernel can write",
            "    ^^^^ expected memory of `f32`, borrowed to be written\n",
        ),
        ("x: &x, out: &mut out", "missing field `n`", "missing `n`"),
        (
            "x: &x, out: &mut out, m: 3",
            "no field named `m`",
            "unknown field",
        ),
    ] {
        let (is_right, said) = compiled(&uses(arguments), &[]).expect("it ran before");
        assert!(!is_right, "{arguments} is accepted");
        assert!(said.contains(message), "{message}: {said}");
        assert!(said.contains(at), "{at}: {said}");
    }
}

#[test]
fn modules_compile_whatever_the_names_are() {
    let kernels = [
        "result", "ok", "Err", "some", "none", "option", "into", "clone", "debug", "self_",
        "Self_", "PTX", "compiled", "cubin", "type", "arg", "str", "u8", "box_", "__2x", "kernel",
        "Copy", "args",
    ];
    let params = [
        "Err, Ok, Some, None_, PTX",
        "COMPILED, CUBIN, stream, grid, arguments",
        "self, Self, type, crate, M",
        "Result, result, Into, core, tilelift",
        "p_Err, Err, fn, p_fn, a",
        "device, program, args, kernel, x",
    ];
    let mut text = String::new();
    let mut count = 0;
    for (i, kernel) in kernels.iter().enumerate() {
        let params = params[i % params.len()];
        let first = params.split(',').next().expect("there is one");
        let source = format!(
            "import triton\nimport triton.language as tl\n@triton.jit\ndef {kernel}({params}):\n    tl.store({first}, 1.0)\n"
        );
        let (compiled, func, signature) = made(&source, "*fp32, u32, fp32, u32, u32");
        let mut module = RustModule::new(&compiled, &func).signature(&signature);
        if i % 2 == 0 {
            module = module.cubin(b"\x7fELF\"\\\0");
        }
        text += &format!("pub mod m{i} {{\n{module}}}\n");
        // A name that the kernel's own type has is no other parameter's.
        let own = format!(
            "import triton\nimport triton.language as tl\n@triton.jit\ndef {kernel}_(x, {kernel}x, A):\n    tl.store(x, A)\n"
        );
        let (compiled, func, _) = made(&own, "*u32, u32, u32");
        text += &format!("pub mod n{i} {{\n{}}}\n", RustModule::new(&compiled, &func));
        count += 2;
    }
    let none = "import triton\n@triton.jit\ndef nothing():\n    pass\n";
    let (compiled_none, func, _) = made(none, "");
    let nothing = RustModule::new(&compiled_none, &func);
    text += &format!("pub mod nothing {{\n{nothing}}}\n");
    count += 1;
    let Some((is_right, said)) = compiled(&text, &["-Dwarnings", "-Adead_code"]) else {
        return;
    };
    assert!(is_right, "{said}");
    assert_eq!(text.matches("pub struct Args").count(), count);
    assert_eq!(text.matches("pub struct").count(), 2 * count);
}

/// Two kernels of a file, one for two targets and one twice.
const FILE: &str = r#"
import triton
import triton.language as tl

# kernel: scale "*fp32:16, *fp32:16, i32, fp32" BLOCK=64 target=sm_90a,sm_80
# kernel: scale "*fp16, *fp16, i32, fp32" BLOCK=128 num_warps=2 as=scale_half lines=True
@triton.jit
def scale(x, out, n, by, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) * by, i < n)

# kernel: matmul "*fp16:16, *fp16:16, *fp32:16, i32:16" target=sm_90a,sm_80
@triton.jit
def matmul(a, b, c, n):
    rows = tl.program_id(0) * 64 + tl.arange(0, 64)
    columns = tl.program_id(1) * 64 + tl.arange(0, 64)
    sum = tl.zeros((64, 64), tl.float32)
    for k in range(0, n, 32):
        inner = k + tl.arange(0, 32)
        left = tl.load(a + rows[:, None] * n + inner[None, :], (rows[:, None] < n) & (inner[None, :] < n), 0.0)
        right = tl.load(b + inner[:, None] * n + columns[None, :], (inner[:, None] < n) & (columns[None, :] < n), 0.0)
        sum += tl.dot(left, right)
    tl.store(c + rows[:, None] * n + columns[None, :], sum, (rows[:, None] < n) & (columns[None, :] < n))
"#;

#[test]
fn build_scripts_compile_what_a_file_asks_for() {
    let text = tilelift::build::rust_source("file.py", FILE).expect("it is right");
    for module in ["scale", "scale_half", "matmul"] {
        assert!(text.contains(&format!("pub mod {module} {{")), "{text}");
    }
    for line in [
        "compiled_for(device, &[COMPILED, COMPILED_1])",
        "compiled_for(device, &[COMPILED])",
        "pub const BLOCK: ::core::primitive::u32 = 128;",
        "    num_warps: 2,",
        "    /// Memory that is read: `f16`.",
        "    /// Memory that is written, or may be: `f32`, at a multiple of 16 bytes.",
        ".target sm_90a",
        "file.py",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    // The one kernel of a file needs no name, and may take so many registers.
    let matmul = &FILE[FILE.find("@triton.jit\ndef matmul").expect("it is there")..];
    let line = "# kernel: \"*fp16:16, *fp16:16, *fp32:16, i32:16\" max_registers=168 target=sm_90a";
    let alone = format!("import triton\nimport triton.language as tl\n{line}\n{matmul}");
    let alone = tilelift::build::rust_source("file.py", &alone).expect("it is right");
    assert!(alone.contains("pub mod matmul {") && alone.contains(".maxnreg 168"));
    // Kernels that take tensor maps have those without beside them.
    let maps = text.matches("maps: &[\"").count();
    assert_eq!(text.matches("pub const FALLBACK_PTX_1").count(), maps);
    assert_eq!(text.matches("Some(&FALLBACK_1)").count(), maps);
    assert!(maps > 0, "none of them takes maps\n{text}");
}

#[test]
fn what_a_build_script_cannot_compile_is_said_with_its_place() {
    for (line, problem) in [
        ("", "error: no line says what a kernel is compiled for"),
        (
            "# kernel: scale",
            "file.py:4: error: the signature in quotation marks is missing",
        ),
        (
            "# kernel: scale \"*fp32, *fp32, i32\" target=sm_81",
            "file.py:4: error: unknown target `sm_81`",
        ),
        (
            "# kernel: scale \"*fp32, *q32, i32, fp32\"",
            "file.py:4: error: entry 2 of the signature",
        ),
        (
            "# kernel: scale \"*fp32, *fp32, i32, fp32\" BLOCK=?",
            "file.py:4: error: BLOCK=?: expected NAME=VALUE",
        ),
        (
            "# kernel: scale \"*fp32, *fp32, i32, fp32\" BLOCK=64 as=fn",
            "file.py:4: error: `fn` is no name of a module in Rust: give another, as in `as=kernel_fn`",
        ),
        (
            "# kernel: scale \"*fp32, *fp32, i32, fp32\" BLOCK=64 as=a-b",
            "as in `as=kernel_a_b`",
        ),
        (
            "# kernel: scale \"*fp32, *fp32, i32\" BLOCK=64",
            "file.py:4: error: the kernel that this line asks for is not compiled:\nerror[F04]: `by` has no argument",
        ),
        (
            "# kernel: scale \"*fp32, *fp32, i32, fp32\" BLOCK=\"64\" NOT=\"x\"",
            "nothing in the file is called `NOT`",
        ),
        (
            "# kernel: other \"*fp32, *fp32, i32, fp32\" BLOCK=64",
            "there is no kernel `other`",
        ),
        (
            "# kernel: scale \"*fp32, *fp32, i32, fp32\" BLOCK=64 lines=1",
            "file.py:4: error: lines=1: expected True or False",
        ),
        (
            "# kernel: scale \"*fp32, *fp32, i32, fp32\" BLOCK=64 max_registers=few",
            "file.py:4: error: max_registers=few: expected a number of registers",
        ),
        (
            "# kernel: scale \"*fp32, *fp32, i32, fp32\" BLOCK=64 max_registers=1",
            "is not compiled:\nfile.py:6: error: kernel `scale` for sm_80: ",
        ),
        (
            "# kernel: \"*fp32, *fp32, i32, fp32\" BLOCK=64\n@triton.jit\ndef other(x):\n    pass",
            "file.py:4: error: there is not exactly one kernel, and none is named",
        ),
        (
            "# kernel: scale \"*fp32, *fp32, i32, fp32\" BLOCK=60",
            "file.py:",
        ),
        (
            "# kernel: scale \"*fp32, *fp32, i32, fp32\" BLOCK=64\n# kernel: scale \"*fp16, *fp16, i32, fp32\" BLOCK=64",
            "file.py:5: error: there is a module `scale` already",
        ),
    ] {
        let kernel = FILE
            .lines()
            .skip_while(|l| !l.starts_with("@triton"))
            .take(4);
        let kernel: Vec<&str> = kernel.collect();
        let text = format!(
            "import triton\nimport triton.language as tl\n\n{line}\n{}\n",
            kernel.join("\n")
        );
        let error = tilelift::build::rust_source("file.py", &text).expect_err(problem);
        assert!(error.to_string().contains(problem), "{problem}: {error}");
        assert_eq!(format!("{error:?}"), error.to_string());
    }
}

/// Cargo says where by a variable of the process, which this test program has not or has another of.
#[test]
fn build_scripts_write_where_cargo_says() {
    let test = "ahead::build_scripts_write_where_cargo_says";
    if let Some(file) = role() {
        let done = tilelift::build::compile(file);
        if std::env::var_os("OUT_DIR").is_none() {
            let error = done.expect_err("nothing says where").to_string();
            assert!(error.starts_with("there is no OUT_DIR: "), "{error}");
        } else {
            done.expect("it is right");
        }
        return;
    }
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("file.py");
    std::fs::write(&file, FILE).expect("writable");
    let file = file.display().to_string();
    let mut without = another_process(test, &file);
    let mut with = another_process(test, &file);
    for command in [
        without.env_remove("OUT_DIR"),
        with.env("OUT_DIR", folder.path()),
    ] {
        let output = command.output().expect("it can be started");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}");
    }
    let made = std::fs::read_to_string(folder.path().join("file.kernels.rs"));
    assert!(made.expect("it was written").contains("pub mod matmul {"));
}

#[test]
fn a_device_gets_the_latest_that_it_runs() {
    use tilelift::testing::emulator_for;
    let compiled = add_ahead::COMPILED;
    let newer = Compiled {
        ptx: compiled
            .ptx
            .replace("sm_80", "sm_90a")
            .replace(".version 7.0", ".version 8.0")
            .leak(),
        target: "sm_90a",
        ..compiled
    };
    for (target, expected) in [
        (Target::SM_80, "sm_80"),
        (Target::SM_89, "sm_80"),
        (Target::SM_90A, "sm_90a"),
        (Target::SM_100, "sm_80"),
    ] {
        for list in [[compiled, newer], [newer, compiled]] {
            let device = emulator_for(target, 0);
            let program = Program::compiled_for(&device, &list).expect("there is one");
            let kernel = device.kernel(&program, None).expect("there is one");
            let x = Buffer::from_slice(&device, &[2.5_f32; 128]).expect("there is memory");
            let out = Buffer::<f32>::new(&device, 128).expect("there is memory");
            let report =
                kernel.prepare((&x, &x, &out, 128), &tilelift::runtime::Deadline::default());
            let report = report.expect("it is well described");
            assert_eq!(report.target.to_string(), expected, "on {target}");
        }
    }
    let old = emulator_for(Target::SM_75, 0);
    let error = Program::compiled_for(&old, &[compiled, newer]).expect_err("it is too old");
    let text = "kernel `add`: it was compiled for sm_80, sm_90a, and the device takes sm_75: name that or an older target";
    assert!(error.to_string().starts_with(text), "{error}");
}
