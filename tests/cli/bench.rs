//! `tilelift bench` and `tilelift tune`, on the emulator.

use super::{Folder, KERNEL, check_failure, stderr, stdout, text, tilelift};

const SOFTMAX: &str = "examples/kernels/softmax.py";

/// A sweep of softmax over the number of columns, with more options.
fn softmax(more: &[&str]) -> std::process::Output {
    let args = [
        "bench",
        SOFTMAX,
        "-n",
        "softmax",
        "--emulator",
        "-t",
        "sm_80",
        "-s",
        "*fp32:16, *fp32:16, i32, i32, $(next_power_of_2(N))",
        "--sweep",
        "N=100..400",
        "--args",
        "grid($(rows)) out=f32[$(4*N)] poison x=f32[$(4*N)] normal(1) stride=$N columns=$N",
        "--sweep",
        "rows=2,4",
    ];
    tilelift(&[&args[..], more].concat(), "")
}

#[test]
fn a_sweep_counts_on_the_emulator_and_says_that_it_measures_no_time() {
    let output = softmax(&[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = stdout(&output);
    assert!(table.contains("no time is measured"), "{table}");
    let row = |n: &str, rows: &str| {
        let mut lines = table
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        let found = lines.find(|cells| cells.starts_with(&[n, rows]));
        found.unwrap_or_else(|| panic!("{n} {rows}: {table}"))
    };
    // Programs, and the bytes of two rows that are read and written.
    assert_eq!(row("100", "2")[2..4], ["2", "1600"]);
    assert_eq!(row("400", "4")[2..5], ["4", "12.8", "k"]);
}

#[test]
fn a_run_is_saved_compared_and_drawn() {
    let folder = Folder::new();
    let path = |name: &str| folder.0.path().join(name).display().to_string();
    let (saved, plot) = (path("before.json"), path("sweep.svg"));
    let output = softmax(&["--save", &saved, "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let json = stdout(&output);
    assert_eq!(text(saved.as_ref()), json);
    let file: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(file["rows"].as_array().map(Vec::len), Some(6));
    assert_eq!(file["rows"][0]["values"]["N"], "100");
    // A subtraction, a power and a quotient of each element of a block of 128; and a tree that adds them up.
    assert_eq!(file["rows"][0]["flops"], 2 * (3 * 128 + 127));

    let output = softmax(&["--compare", &saved, "--plot", &plot]);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = stdout(&output);
    let ratios = table
        .lines()
        .filter(|line| line.ends_with(" 1.000"))
        .count();
    assert_eq!(ratios, 6, "{table}");
    let picture = text(plot.as_ref());
    let read = roxmltree::Document::parse(&picture).expect("well-formed");
    let words: Vec<&str> = read.descendants().filter_map(|node| node.text()).collect();
    for wanted in ["now, rows=2", "saved, rows=4"] {
        assert!(
            words.iter().any(|text| text.trim() == wanted),
            "{wanted}: {words:?}"
        );
    }
}

#[test]
fn a_text_of_the_ir_is_measured_by_its_run_lines() {
    let kernel = format!("{KERNEL}; run: grid(1) x=f32[256] normal(1) n=200\n");
    let output = tilelift(&["bench", "-", "--emulator", "-t", "sm_80"], &kernel);
    assert!(output.status.success(), "{}", stderr(&output));
    // 200 numbers are read and written, and all 256 added.
    assert!(
        stdout(&output).contains("1600    256"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn what_a_signature_does_not_promise_is_not_used() {
    let instructions = |pointer: &str| {
        let signature = format!("{pointer}, {pointer}, i32:16, i32:16, 512");
        let line = "grid(1) out=f32[512] poison x=f32[512] normal(1) stride=512 columns=512";
        let how = [
            "bench",
            SOFTMAX,
            "-n",
            "softmax",
            "--emulator",
            "-t",
            "sm_80",
            "--json",
        ];
        let args = [&how[..], &["-s", &signature, "--args", line]].concat();
        let output = tilelift(&args, "");
        let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        let counts = &json["rows"][0]["cost"];
        counts["warp_instructions"].as_u64().expect("a number")
    };
    // Addresses of buffers are multiples of 16 either way.
    assert!(instructions("*fp32") > instructions("*fp32:16"));
}

#[test]
fn the_emulator_has_a_bound_of_programs() {
    let args = ["bench", "-", "--emulator", "-t", "sm_80", "--args"];
    let line = "grid(2000000) x=f32[256] zeros";
    check_failure(&[&args[..], &[line]].concat(), KERNEL, 1, "--programs");
}

#[test]
fn mistakes_are_told() {
    let bench = |more: &[&str], words: &str| {
        let args = [&["bench", "-", "--emulator", "-t", "sm_80"], more].concat();
        check_failure(&args, KERNEL, 2, words);
    };
    bench(&[], "has no run line");
    bench(&["--sweep", "N=4..1"], "a range is FIRST..LAST");
    bench(&["--plot", "x.svg"], "give --sweep");
    bench(
        &["--args", "grid($M) x=f32[256] zeros n=1"],
        "nothing says what `M` is",
    );
    bench(
        &["--args", "x=f32[256] zeros n=100", "--flops", "m"],
        "--flops: nothing says what `m` is",
    );
}

/// A kernel with three configurations, of which one has too long a block for the emulator to like, and one is none.
const TUNED: &str = r#"
import triton
import triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 64}, num_warps=1), triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 100})], key=["n"])
@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) * 2, i < n)
"#;

#[test]
fn a_kernels_own_configurations_are_tried_and_the_rule_is_said() {
    let folder = Folder::new();
    let file = folder.file("double.py", TUNED);
    let file = file.to_str().expect("UTF-8");
    let tune = |more: &[&str]| {
        let line = "grid($(cdiv(n,BLOCK))) x=f32[$n] normal(1) out=f32[$n] poison n=1000";
        let args = [
            "tune",
            file,
            "--emulator",
            "--fresh",
            "-t",
            "sm_80",
            "--args",
            line,
        ];
        let output = tilelift(&[&args[..], more].concat(), "");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let table = tune(&[]);
    assert!(table.starts_with("double on emulator for sm_80"), "{table}");
    assert!(table.contains("BLOCK"), "{table}");
    assert!(table.contains("the lowest cost"), "{table}");
    assert!(table.contains("no time is measured"), "{table}");
    let broken = table
        .lines()
        .find(|line| line.starts_with("100 ") || line.contains(" 100 "));
    assert!(
        broken.is_some_and(|line| line.contains("failed: ")),
        "{table}"
    );
    let json: serde_json::Value = serde_json::from_str(&tune(&["--json"])).expect("JSON");
    let rows = json["rows"].as_array().expect("rows");
    let chosen = json["chosen"].as_u64().expect("a row") as usize;
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[chosen]["outcome"], "measured");
    let costs = rows.iter().filter_map(|row| row["cost"].as_f64());
    assert_eq!(rows[chosen]["cost"].as_f64(), costs.reduce(f64::min));
    assert_eq!(rows[2]["outcome"], "failed");
    // One of the two that can be is measured.
    let table = tune(&["--top", "1"]);
    assert_eq!(table.matches("not tried: 1 others are measured").count(), 1);
    let json: serde_json::Value =
        serde_json::from_str(&tune(&["--top", "1", "--json"])).expect("JSON");
    assert_eq!(json["rows"][1]["outcome"], "not tried", "{json}");
}

#[test]
fn what_cannot_be_tuned_is_refused() {
    let folder = Folder::new();
    let file = folder.file("double.py", TUNED);
    let file = file.to_str().expect("UTF-8");
    let line = |line: &str, code: i32, words: &str| {
        let args = ["tune", file, "--emulator", "-t", "sm_80", "--args", line];
        check_failure(&args, "", code, words);
    };
    line("x=f32[8] zeros n=8", 1, "`out` gets no argument");
    line("grid($(cdiv(m,BLOCK))) n=8", 1, "nothing says what `m` is");
    let args = ["tune", file, "--emulator", "--args", "n=8"];
    for (more, words) in [
        (["--with", "size"], "--with size: expected NAME=VALUE"),
        (["-c", "BLOCK"], "-c BLOCK"),
    ] {
        check_failure(&[&args[..], &more].concat(), "", 2, words);
    }
    check_failure(
        &["tune", "x.tir", "--args", "n=1"],
        "",
        2,
        "only a .py file has configurations",
    );
}
