//! Messages and numbers as data: what `--json` writes is what the library serialises.

use serde_json::{Value, json};

use tilelift::prelude::{Options, Target, compile};
use tilelift::runtime::{Program, RuntimeError};

use super::{Folder, KERNEL, stderr, stdout, tilelift};

/// The lines of standard error, each a value.
fn messages(args: &[&str], input: &str, code: i32) -> Vec<Value> {
    let output = tilelift(args, input);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

/// What the library says of a program that it refuses.
fn by_library(program: Result<Program, RuntimeError>) -> Vec<Value> {
    let Err(RuntimeError::Source(error)) = program else {
        panic!("accepted, or refused for something else: {program:?}");
    };
    let list = error.diagnostics.iter();
    list.map(|diagnostic| json!(diagnostic)).collect()
}

#[test]
fn mistakes_of_a_text_are_those_of_the_library() {
    let two = KERNEL
        .replace("v7, v7", "v7 v7")
        .replace("splat v1", "splat v1 v1");
    let broken = KERNEL.replace("divisible = 16", "divisible = 12");
    for (text, count) in [(&two, 2), (&broken, 1)] {
        let found = messages(&["compile", "-", "--json"], text, 1);
        assert_eq!(found.len(), count, "{found:?}");
        assert_eq!(found, by_library(Program::tir("<stdin>", text)));
        for command in ["explain", "show", "reduce"] {
            assert_eq!(messages(&[command, "-", "--json"], text, 1), found);
        }
    }
}

#[cfg(feature = "triton")]
#[test]
fn mistakes_of_python_are_those_of_the_library() {
    let text = "def f(:\n";
    let found = messages(&["compile", "-", "--lang", "py", "--json"], text, 1);
    assert_eq!(found, by_library(Program::python("<stdin>", text)));
    assert_eq!(
        (&found[0]["code"], &found[0]["line"]),
        (&json!("F02"), &json!(1))
    );
    // A note, and the kernel all the same.
    let text =
        "import triton.language as tl\n\n@triton.jit\ndef f(x):\n    tl.static_print(\"here\")\n";
    let args = ["compile", "-", "--lang", "py", "-s", "*fp32", "--json"];
    let found = messages(&args, text, 0);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (&found[0]["severity"], &found[0]["code"], &found[0]["line"]),
        (&json!("note"), &json!("F23"), &json!(5))
    );
}

#[test]
fn what_else_goes_wrong_is_a_message_too() {
    let file = |text: &str, line: Value, message: &str| {
        let found = messages(&["compile", "-", "--json"], text, 1);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (&found[0]["file"], &found[0]["line"]),
            (&json!("<stdin>"), &line)
        );
        let said = found[0]["message"].as_str().expect("a text");
        assert!(said.contains(message), "{said}");
    };
    file("", Value::Null, "there is no kernel in it");
    // Refused by the compiler: the place is the kernel's name.
    let shared = r#"kernel @large(v0 "x": ptr<f32> {divisible = 16}) warps(1) {
block0:
    v1 = arange {start = 0} : i32[1048576]
    v2 = splat v0 : ptr<f32>[1048576]
    v3 = addptr v2, v1 : ptr<f32>[1048576]
    v4 = load v3 : f32[1048576]
    store v3, v4
    return
}
"#;
    file(shared, json!(1), "gives each thread 32768 elements");
    let found = messages(&["compile", "/no/such/file.tir", "--json"], "", 1);
    assert_eq!(found[0]["file"], "/no/such/file.tir");
    let found = messages(&["compile", "-", "-t", "sm_81", "--json"], KERNEL, 2);
    let said = found[0]["message"].as_str().expect("a text");
    assert!(said.starts_with("unknown target `sm_81`"), "{said}");
}

#[test]
fn warnings_say_what_to_do_apart() {
    let large = KERNEL.replace("[256]", "[65536]");
    let found = messages(&["compile", "-", "-t", "sm_80", "--json"], &large, 0);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["severity"], "warning");
    assert_eq!(
        (&found[0]["line"], &found[0]["column"]),
        (&json!(1), &json!(9))
    );
    let said = found[0]["message"].as_str().expect("a text");
    assert!(said.starts_with("double needs about "), "{said}");
    let help = found[0]["help"].as_str().expect("a text");
    assert!(help.starts_with("use "), "{help}");
    let found = messages(&["compile", "-", "--num-ctas", "2", "--json"], KERNEL, 0);
    assert_eq!(found[0]["severity"], "warning");
    let folder = Folder::new();
    let text = format!(
        "; with: N=128\n; with: N=512\n{}",
        KERNEL.replace("[256]", "[$N]")
    );
    let path = folder.file("k.tir", &text);
    let path = path.to_str().expect("plain");
    let found = messages(&["compile", path, "--json"], "", 0);
    assert_eq!(
        (&found[0]["severity"], &found[0]["message"]),
        (&json!("note"), &json!("taken with N=128, the first of 2"))
    );
}

#[test]
fn numbers_are_those_of_the_library() {
    let args = ["compile", "-", "-t", "sm_80", "--emit", "stats", "--json"];
    let output = tilelift(&args, KERNEL);
    assert_eq!(stderr(&output), "");
    let written: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let func = tilelift::text::parse::parse_tile(KERNEL).expect("a kernel");
    let kernel = compile(&func, Target::SM_80, &Options::DEFAULT).expect("it compiles");
    assert_eq!(written["stats"], json!(kernel.stats));
    assert_eq!(
        written["stats"]["machine"]["memory"],
        kernel.stats.machine.memory
    );
    assert!(kernel.stats.machine.memory > 0);
}

#[test]
fn what_a_launch_is_expected_to_take_stands_beside_the_counts() {
    let expect = |target: &str, line: &str, more: &[&str]| {
        let args = [
            "compile", "-", "-t", target, "--emit", "stats", "--args", line,
        ];
        tilelift(&[&args[..], more].concat(), KERNEL)
    };
    let output = expect("sm_90a", "grid(1000) n=256", &[]);
    assert_eq!(stderr(&output), "");
    let text = stdout(&output);
    for row in [
        "layout conversions",
        "expected time ",
        "bound by ",
        "resident CTAs",
        "waves ",
    ] {
        assert!(text.contains(row), "{text}");
    }
    let output = expect("sm_90a", "grid(1000) n=256", &["--json"]);
    let written: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let micros = written["expected"]["microseconds"].as_f64();
    assert!(micros.is_some_and(|micros| micros > 1.0), "{written}");
    assert_eq!(written["expected"]["depends_on_data"], false);
    for (target, line, words) in [
        ("sm_90a", "grid(4)", "parameter `n` gets no number"),
        (
            "sm_90a",
            "grid(4) m=3 n=4",
            "@double has no parameter `m`; it takes x, n",
        ),
        (
            "sm_80",
            "grid(4) n=4",
            "too little is known of devices of sm_80",
        ),
    ] {
        let output = expect(target, line, &[]);
        assert!(!output.status.success());
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
    let args = ["compile", "-", "-t", "sm_90a", "--args", "grid(4) n=4"];
    let output = tilelift(&args, KERNEL);
    assert!(stderr(&output).contains("--args goes with --emit stats"));
}
