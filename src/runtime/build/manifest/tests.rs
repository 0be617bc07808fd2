//! What manifests are read as, and what is refused.

use super::*;
use crate::runtime::api::dtype::DType;

const TIR: &str = "kernel @twice(v0 \"x\": ptr<f32>) warps(4) {\nblock0:\n    return\n}\n";

/// The error of a manifest.
fn told(text: &str) -> String {
    let error = Manifest::parse("m", text).expect_err(text);
    error.to_string()
}

#[cfg(feature = "triton")]
mod python {
    use super::*;
    use crate::runtime::build::build_variant::identity;
    use crate::runtime::{Buffer, LaunchRecord};

    const ADD: &str = "import triton, triton.language as tl

@triton.jit
def add(x, out, n, BLOCK: tl.constexpr, MODE: tl.constexpr = 'x'):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + 1, i < n)

@triton.jit
def pinned(x, n: tl.int64):
    tl.store(x, n)

@triton.jit
def keyed(x, roles):
    tl.store(x, roles)
";

    fn with(lines: &str) -> String {
        let program: String = ADD.split('\n').map(|line| format!("| {line}\n")).collect();
        format!("program p python add.py\n{program}{lines}\n")
    }

    /// The name of a program tells texts apart that differ in a letter, and names.
    #[test]
    fn programs_have_names_of_their_own() {
        let id = |name: &str, text: &str| {
            let program = Program::python(name, text).expect("it is Python");
            program_lines(&program.source).expect("it has a text").0
        };
        let first = id("add.py", ADD);
        assert_eq!(id("add.py", ADD), first);
        assert_ne!(id("add.py", &ADD.replace("+ 1", "+ 2")), first);
        assert_ne!(id("sub.py", ADD), first);
    }

    /// Sets a kernel up in every way that there is, records it and reads it again.
    #[test]
    fn what_is_recorded_is_what_is_made() {
        for own in [false, true] {
            recorded_and_made(own);
        }
    }

    /// With a target that was asked for, or without.
    fn recorded_and_made(own: bool) {
        let device = Device::emulator_with(DeviceOptions {
            target: own.then_some(Target::SM_80),
            ..DeviceOptions::plain()
        });
        let program = Program::python("add.py", ADD).expect("it is Python");
        let kernel = device.kernel(&program, "add").expect("there is a kernel");
        let kernel = kernel.constant("BLOCK", 64).expect("a constant");
        type Change = fn(&Kernel) -> Result<Kernel, RuntimeError>;
        let changes: [Change; 15] = [
            |k| Ok(k.clone()),
            |k| k.warps(8),
            |k| k.ctas(2),
            |k| k.stages(3),
            |k| k.max_registers(64),
            |k| k.fp_fusion(false),
            |k| k.line_info(true),
            |k| k.debug(true),
            |k| k.promote(Promote::Never),
            |k| k.roles(Policy::Always),
            |k| k.persistent(Policy::Never),
            |k| k.constant("MODE", "a b"),
            |k| k.constant("MODE", DType::BF16),
            |k| k.constant("MODE", -0.1),
            |k| k.constant("MODE", Constant::Function("pinned".to_owned())),
        ];
        for change in changes {
            let kernel = change(&kernel).expect("it can be set up so");
            let x = Buffer::<f32>::new(&device, 64).expect("there is memory");
            let y = &x;
            for n in [1, 5, 8, 32] {
                let args = [y.into(), y.into(), n.into()];
                let classes = kernel.inner.classes(&args).expect("they fit");
                let (id, lines) = program_lines(&program.source).expect("it has a text");
                let line = kernel_line(&id, &kernel.inner, &classes).expect("it has a line");
                let text = format!("{lines}{line}");
                let manifest = Manifest::parse("m", &text).expect(&text);
                let [entry] = manifest.entries() else {
                    panic!("{text}");
                };
                let (read, again) = entry.set_up(&device).expect(&text);
                let key =
                    |kernel: &Kernel, classes: &Classes| identity(&kernel.inner, classes).finish();
                assert_eq!(key(&read, &again), key(&kernel, &classes), "{line}");
                // The emulator's own is nobody's wish.
                assert_eq!(entry.target, own.then_some(Target::SM_80));
            }
        }
    }

    #[test]
    fn what_has_no_words_is_not_recorded() {
        let device = Device::emulator_with(DeviceOptions::plain());
        let program = Program::python("add.py", ADD).expect("it is Python");
        let kernel = device.kernel(&program, "add").expect("there is a kernel");
        let other = device.kernel(&program, "keyed").expect("there is a kernel");
        let line = |kernel: Result<Kernel, RuntimeError>| {
            let kernel = kernel.expect("it can be set up so");
            kernel_line("p", &kernel.inner, &Classes::list(&[]))
        };
        for (kernel, what) in [
            (kernel.constant("MODE", "a\nb"), "the constant MODE="),
            (kernel.constant("MODE", "a\"b"), "the constant MODE="),
            (kernel.constant("MODE", f64::NAN), "the constant MODE="),
            (other.constant("roles", 1), "the constant roles=1"),
            (kernel.diversity(Some(1)), "a seed"),
        ] {
            let told = line(kernel).expect_err(what);
            assert!(told.starts_with(what), "{told}");
        }
    }

    #[test]
    fn a_file_is_written_by_several_and_each_kernel_once() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let path = folder.path().join("run.manifest");
        let program = Program::python("add.py", ADD).expect("it is Python");
        for _ in 0..2 {
            let mut options = DeviceOptions::plain();
            options.record = LaunchRecord::to(&path);
            let device = Device::emulator_with(options);
            let x = Buffer::from_slice(&device, &[1.0_f32; 64]).expect("there is memory");
            for block in [32, 64] {
                let kernel = device.kernel(&program, "add");
                let kernel = kernel.and_then(|kernel| kernel.constant("BLOCK", block));
                kernel.and_then(|k| k.run(1, (&x, &x, 5))).expect("it runs");
            }
        }
        let text = std::fs::read_to_string(&path).expect("it was written");
        let count = |word: &str| text.lines().filter(|line| line.starts_with(word)).count();
        assert_eq!([count("program"), count("kernel")], [1, 2], "{text}");
        assert_eq!(Manifest::read(&path).expect(&text).len(), 2);
    }

    /// Bytes changed, lines left out, doubled and cut: each is read, or refused with a line that it has.
    #[test]
    fn damaged_manifests_are_read_or_refused() {
        let whole = with(
            "kernel p add \"*fp32:16, *fp32, i32:1, (i32, None)\" BLOCK=64 num_warps=2 MODE=\"a b\" target=sm_90a
kernel p pinned \"tensordesc<fp16[64, 32:16]>:nan, i64:16\" roles=never",
        );
        let mut state = 7_u64;
        let mut below = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % bound as u64) as usize
        };
        let mut refused = 0;
        for _ in 0..2000 {
            let mut lines: Vec<Vec<u8>> = whole.split('\n').map(|line| line.into()).collect();
            for _ in 0..=below(3) {
                let at = below(lines.len());
                match below(5) {
                    0 => lines.push(lines[at].clone()),
                    1 if lines.len() > 1 => drop(lines.remove(at)),
                    2 => {
                        let length = below(lines[at].len() + 1);
                        lines[at].truncate(length);
                    }
                    _ if !lines[at].is_empty() => {
                        let byte = below(lines[at].len());
                        lines[at][byte] = 32 + below(95) as u8;
                    }
                    _ => {}
                }
            }
            let text = lines.join(&b'\n');
            let text = String::from_utf8_lossy(&text);
            if let Err(error) = Manifest::parse("m", &text) {
                refused += 1;
                assert!((1..=lines.len()).contains(&error.line), "{error}\n{text}");
            }
        }
        assert!((500..2000).contains(&refused), "{refused}");
    }

    #[test]
    fn mistakes_name_the_line() {
        let place = format!("m:{}: error: ", ADD.split('\n').count() + 2);
        for (line, problem) in [
            (
                "kernel q add \"\"",
                "no line above says what program `q` is",
            ),
            ("kernel p add", "such a line reads `kernel PROGRAM"),
            ("kernel p \"*fp32\"", "such a line reads `kernel PROGRAM"),
            ("kernel p add \"*fp32, 3\" BLOCK=1", "`3`: expected a type"),
            (
                "kernel p add \"*fp32\" BLOCK=1",
                "1 entries, and 3 parameters take arguments: x, out, n",
            ),
            (
                "kernel p add \"*fp32, *fp32, i32\" BLOCK",
                "`BLOCK`: expected KEY=VALUE",
            ),
            (
                "kernel p add \"*fp32, *fp32, i32\" num_warp=2",
                "`num_warp` is no key and no constant of the kernel; did you mean `num_warps`?",
            ),
            (
                "kernel p add \"*fp32, *fp32, i32\" BLOK=2",
                "did you mean `BLOCK`?",
            ),
            (
                "kernel p add \"*fp32, *fp32, i32\" BLOCK=a",
                "BLOCK=a: expected a constant",
            ),
            (
                "kernel p add \"*fp32, *fp32, i32\" BLOCK=1 BLOCK=2",
                "`BLOCK` is given twice",
            ),
            ("kernel p add \"*fp32, *fp32, i32\" target=sm_1", "sm_1"),
            ("kernel p add \"*fp32, *fp32, i32\" num_warps=3", "3 warps"),
            (
                "kernel p add \"*fp32, *fp32, i32\" num_warps=-1",
                "num_warps=-1: expected a whole number from 0 to 65535",
            ),
            (
                "kernel p add \"*fp32, *fp32, i32\" num_warps=4294967296",
                "num_warps=4294967296: expected a whole number from 0 to 65535",
            ),
            (
                "kernel p add \"*fp32, *fp32, i32\" num_stages=99",
                "99 stages",
            ),
            (
                "kernel p add \"*fp32, *fp32, i32\" debug=1",
                "debug=1: expected True or False",
            ),
            (
                "kernel p add \"*fp32, *fp32, i32\" roles=on",
                "roles=on: expected auto, always or never",
            ),
            (
                "kernel p add \"*fp32, *fp32, i32\" MODE=\"a",
                "a quotation mark is not closed",
            ),
            (
                "kernel p pinned \"*fp32, i32\"",
                "`n` is i32, and the kernel takes i64",
            ),
            (
                "program p python add.py",
                "there is another program `p` already",
            ),
            (
                "program r cobol add.py",
                "`cobol`: a program is in python or tir",
            ),
            ("program r python", "such a line reads `program NAME"),
            (
                "program r python x.py\n| def (",
                "the program is not accepted:",
            ),
            ("| x = 1\n", ""),
            (
                "kernels p add",
                "`kernels`: a line begins with program, file, kernel or #",
            ),
            ("file f other.py", "this manifest is no file"),
        ] {
            let text = with(line);
            if problem.is_empty() {
                // One more line of the program.
                assert_eq!(Manifest::parse("m", &text).map(|m| m.len()), Ok(0));
                continue;
            }
            let told = told(&text);
            assert!(told.starts_with(&place), "{line}: {told}");
            assert!(told.contains(problem), "{line}: {told}");
        }
    }
}

#[test]
fn the_other_kernels_of_a_program_are_there() {
    let lines: String = TIR.split('\n').map(|line| format!("| {line}\n")).collect();
    let text = format!(
        "program t tir t.tir\n{lines}kernel t twise \"*fp32:16\"\nkernel t twice \"*fp32:16\"\n"
    );
    let manifest = Manifest::parse("m", &text).expect(&text);
    let device = Device::emulator_with(DeviceOptions::plain());
    let made: Vec<Result<MadeEntry, String>> = manifest
        .entries()
        .iter()
        .map(|entry| entry.make(&device))
        .collect();
    let told = made[0].as_ref().err().expect("there is none");
    assert_eq!(told, "there is no kernel `twise`; there is twice");
    assert!(made[1].is_ok());
}

#[test]
fn other_mistakes_name_the_line() {
    for (text, problem) in [
        (
            "| x",
            "m:1: error: a line of a program without its `program` line",
        ),
        (
            "\n\nprogram t tir t.tir\n| func",
            "m:3: error: the program is not accepted:",
        ),
        ("\0", "m:1: error: `\0`: a line begins with"),
    ] {
        let told = told(text);
        assert!(told.starts_with(problem), "{told}");
    }
    let long = "#".repeat(MANIFEST_BYTES + 1);
    assert!(told(&long).starts_with("m: error: it is longer than"));
    let path = Path::new("/nowhere/m");
    let error = Manifest::read(path).expect_err("there is none").to_string();
    assert!(
        error.starts_with("/nowhere/m: error: it cannot be read"),
        "{error}"
    );
    let error = Manifest::read(Path::new("/"))
        .expect_err("it is a folder")
        .to_string();
    assert!(error.ends_with("it is no plain file"), "{error}");
}

#[test]
fn functions_of_the_ir_are_kernels_too() {
    let lines: String = TIR
        .split('\n')
        .map(|line| format!("| {line}\r\n"))
        .collect();
    let text = format!(
        "# A comment.\n\nprogram t tir t.tir\n{lines}  kernel t twice \"*fp32:16\" num_warps=2\r\nkernel t twice \"*fp32:16\" num_warps=2\n"
    );
    let manifest = Manifest::parse("m", &text).expect(&text);
    assert_eq!(manifest.len(), 1);
    let device = Device::emulator_with(DeviceOptions::plain());
    let made = manifest.entries()[0].make(&device).expect("it compiles");
    assert_eq!((made.stored.meta.num_warps, made.lines), (2, false));
    assert_eq!(made.origin, Origin::Made);
}

#[test]
fn files_are_read_beside_the_manifest() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("m");
    let text = "file t t.tir\nkernel t twice \"*fp32:16\"\n";
    std::fs::write(&path, text).expect("it can be written");
    let error = Manifest::read(&path)
        .expect_err("there is no file")
        .to_string();
    assert!(
        error.contains("m:1: error: ") && error.contains("t.tir: it cannot be read"),
        "{error}"
    );
    std::fs::write(folder.path().join("t.tir"), TIR).expect("it can be written");
    let manifest = Manifest::read(&path).expect("it is right");
    assert_eq!((manifest.len(), manifest.is_empty()), (1, false));
    let place = &manifest.entries()[0].place;
    assert!(place.ends_with("m:2"), "{place}");
}

#[test]
fn files_are_read_to_their_last_byte() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), TIR).expect("it can be written");
    assert_eq!(read_file(file.path(), TIR.len()).as_deref(), Ok(TIR));
    let told = read_file(file.path(), TIR.len() - 1).expect_err("it is too long");
    assert!(told.contains("at most"), "{told}");
}
