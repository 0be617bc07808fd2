//! The `tilelift` command where there is a GPU: the stand-in for the driver, whose launches take a millisecond each.

use std::process::{Command, Output};

use crate::stub::stub;

const SOFTMAX: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/kernels/softmax.py");

/// Runs the command against the stand-in, with no cache; none where it cannot be built.
fn tilelift(args: &[&str], environment: &[(&str, &str)]) -> Option<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilelift"));
    command
        .args(args)
        .env("LD_LIBRARY_PATH", stub()?)
        .env("TILELIFT_CACHE", "0")
        .envs(environment.iter().copied());
    Some(command.output().expect("it was built"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn info_says_what_the_driver_has() {
    let Some(output) = tilelift(&["info"], &[("STUB_DEVICES", "2")]) else {
        return;
    };
    let out = text(&output.stdout);
    let expected = "driver: CUDA 13.0, PTX up to 9.0\n\
                    device 0: stub, 9.0 (sm_90a), 100 multiprocessors, 1024 MiB\n\
                    device 1: stub, 9.0 (sm_90a), 100 multiprocessors, 1024 MiB\n\
                    cache: off\n";
    assert!(out.ends_with(expected), "{out}");
}

/// 100 multiprocessors at 1 GHz, 4,096 bits of memory at 1 GHz, both edges.
#[test]
fn a_bench_says_which_share_of_the_limits_is_reached() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let saved = folder.path().join("before.json").display().to_string();
    let plot = folder.path().join("plot.svg").display().to_string();
    let bench = |more: &[&str]| {
        let args = [
            "bench",
            SOFTMAX,
            "-n",
            "softmax",
            "-s",
            "*fp32:16, *fp32:16, i32, i32, $(next_power_of_2(N))",
            "--args",
            "grid($N) out=f32[$(N*N)] poison x=f32[$(N*N)] normal(1) stride=$N columns=$N",
            "--sweep",
            "N=100,200",
            "--bytes",
            "1024000*N",
            "--flops",
            "12800000*N",
        ];
        let output = tilelift(&[&args[..], more].concat(), &[])?;
        assert!(output.status.success(), "{}", text(&output.stderr));
        Some(text(&output.stdout))
    };
    let Some(table) = bench(&["--save", &saved, "--plot", &plot]) else {
        return;
    };
    assert!(
        table.contains("limits at the highest clocks: 1024 GB/s, 25.6 TFLOP/s of f32"),
        "{table}"
    );
    let cells = |table: &str, n: &str| -> Vec<String> {
        let mut rows = table.lines().map(|line| line.split_whitespace());
        let row = rows.find(|row| row.clone().next() == Some(n));
        row.unwrap_or_else(|| panic!("{table}"))
            .skip(2)
            .map(str::to_owned)
            .collect()
    };
    let all = |n: &str| cells(&table, n).join(" ");
    let of_100 = "1000.0 1000.0 1000.0 102.40 M 102.40 10.0 % 1.28 G 1.28 5.0 %";
    let of_200 = "1000.0 1000.0 1000.0 204.80 M 204.80 20.0 % 2.56 G 2.56 10.0 %";
    assert_eq!([all("100"), all("200")], [of_100, of_200], "{table}");
    let drawn = std::fs::read_to_string(plot).expect("it was drawn");
    assert!(drawn.contains("GB/s"), "{drawn}");
    // Half the time before is half as fast now.
    let before = std::fs::read_to_string(&saved).expect("it was saved");
    let before = before.replace("\"median_ms\": 1.0", "\"median_ms\": 0.5");
    std::fs::write(&saved, before).expect("writable");
    let table = bench(&["--compare", &saved]).expect("there is a stand-in");
    assert!(cells(&table, "200").ends_with(&["500.0".to_owned(), "0.500".to_owned()]));
}

/// What a GPU of the target assembles needs no ptxas; another target does.
#[test]
fn machine_code_is_made_by_the_driver() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let code = folder.path().join("softmax.cubin");
    let compile = |target: &str, environment: &[(&str, &str)]| {
        let args = [
            "compile",
            SOFTMAX,
            "-n",
            "softmax",
            "-s",
            "*fp32:16, *fp32:16, i32, i32, 128",
            "--emit",
            "cubin",
            "-o",
            &code.display().to_string(),
            "-t",
            target,
        ];
        let nowhere = [("TILELIFT_PTXAS", "/nowhere/ptxas")];
        tilelift(&args, &[&nowhere[..], environment].concat())
    };
    let Some(output) = compile("sm_90", &[]) else {
        return;
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    // The stand-in's machine code is the PTX behind a header.
    let made = std::fs::read(&code).expect("it was written");
    assert!(made.starts_with(b"\x7fELF") && text(&made).contains(".target sm_90\n"));
    let output = compile("sm_90", &[("STUB_REFUSE", ".entry softmax")]).expect("a stand-in");
    let error = text(&output.stderr);
    assert!(
        error.starts_with("error: the driver's assembler refused the PTX"),
        "{error}"
    );
    let output = compile("sm_80", &[]).expect("there is a stand-in");
    let error = text(&output.stderr);
    assert!(
        error.contains("machine code needs a GPU of sm_80, or ptxas"),
        "{error}"
    );
}

#[test]
fn configurations_are_timed() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let file = folder.path().join("double.py");
    let source = r#"
import triton, triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 100})], key=["n"])
@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, i < n) * 2, i < n)
"#;
    std::fs::write(&file, source).expect("writable");
    let file = file.display().to_string();
    let line = "grid($(cdiv(n,BLOCK))) x=f32[$n] normal(1) n=1000";
    let Some(output) = tilelift(&["tune", &file, "--args", line], &[]) else {
        return;
    };
    let table = text(&output.stdout);
    assert!(
        table.starts_with("double on stub for sm_90a\n") && !table.contains("no time is measured"),
        "{table}{}",
        text(&output.stderr)
    );
    let row = |block: &str| -> Vec<&str> {
        let mut rows = table.lines().map(|line| line.split_whitespace().collect());
        let found = rows.find(|row: &Vec<&str>| row.first() == Some(&block));
        found.unwrap_or_else(|| panic!("{table}"))
    };
    assert_eq!(row("64"), ["64", "1000.0", "1.000", "chosen"]);
    assert_eq!(row("100")[1..4], ["-", "-", "failed:"]);
}

/// A kernel that adds a block to itself.
fn doubling(name: &str) -> String {
    format!(
        "kernel @{name}(v0 \"x\": ptr<f32>) warps(1) {{\nblock0:\n    v1 = arange {{start = 0}} : i32[32]\n    \
         v2 = splat v0 : ptr<f32>[32]\n    v3 = addptr v2, v1 : ptr<f32>[32]\n    v4 = load v3 : f32[32]\n    \
         v5 = fadd v4, v4 : f32[32]\n    store v3, v5\n    return\n}}\n"
    )
}

/// What the driver takes too long for is given up, what it is not there for is refused, and the rest is made all the same.
#[test]
fn kernels_are_warmed_by_the_driver() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("slow.tir"), doubling("slow")).expect("writable");
    std::fs::write(path("quick.tir"), doubling("quick")).expect("writable");
    let manifest = "file s slow.tir\nfile q quick.tir\nkernel s slow \"*fp32\"\nkernel q quick \"*fp32\"\n\
                    kernel q quick \"*fp32\" target=sm_80\n";
    std::fs::write(path("m"), manifest).expect("writable");
    let (manifest, cache, gate) = (path("m"), path("cache"), path("gate"));
    let args = ["warm", &manifest, "-a", "driver", "--limit", "5", "-j", "1"];
    let environment = [
        ("TILELIFT_CACHE", "1"),
        ("TILELIFT_CACHE_DIR", cache.as_str()),
        ("STUB_SLOW", ".entry slow("),
        ("STUB_GATE", gate.as_str()),
    ];
    let Some(output) = tilelift(&args, &environment) else {
        return;
    };
    let told = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    for words in [
        "the driver's assembler had not ended after 5 s and was stopped",
        "no GPU here is one that sm_80 is the target of",
        "1 assembled, 2 failed",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    // With the gate open the slow one is made too.
    std::fs::write(&gate, "").expect("writable");
    let output = tilelift(&args, &environment).expect("there is a stand-in");
    let told = text(&output.stdout) + &text(&output.stderr);
    assert!(told.contains("1 assembled, 1 failed"), "{told}");
}
