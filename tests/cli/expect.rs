//! What `tilelift run` says of elements that nothing is known of, and of what a line expects.

use std::path::Path;

use super::run::sum;
use super::{Folder, KERNEL, stderr, stdout, tilelift};

/// What cannot be compared is counted, with the division that it comes from.
#[test]
fn elements_without_bounds_are_counted() {
    let program = "import triton
import triton.language as tl


@triton.jit
def f(x, out, d, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, v // d)
    tl.store(out + N + i, v % d)


@triton.jit
def product(a, b):
    return a * b


@triton.jit
def g(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, tl.associative_scan(v, 0, product))
";
    let run = |kernel: &str, signature: &str, args: &[&str]| {
        let all = [
            "run", "-", "--lang", "py", "-t", "sm_80", "-n", kernel, "-s", signature,
        ];
        tilelift(&[&all[..], args].concat(), program)
    };
    let ints = "*i32, *i32, i32, 8";
    let by = |d: &str| format!("grid(1) x=i32[8] iota(-3) out=i32[17] zeros d={d}");
    let output = run("f", ints, &["--args", &by("0")]);
    let table = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    let row =
        "\n  out           16 of 17 elements are not defined: line 9 divides an integer by zero\n";
    assert!(table.contains(row), "{table}");
    let output = run("f", ints, &["--args", &by("3")]);
    assert!(!stdout(&output).contains("bound"), "{}", stdout(&output));
    // Where bits are compared it is a difference with a reason.
    let output = run("f", ints, &["--exact", "--args", &by("0")]);
    let errors = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let words = "the first is [0], -3 instead of -1; line 9 divides an integer by zero, and what that gives is not defined\n";
    assert!(errors.contains(words), "{errors}");
    // Of products that are infinite in any order all are compared, and of others those that are not.
    let floats = |x: &str| format!("grid(1) x=f32[64] {x} out=f32[64] poison");
    let output = run("g", "*fp32, *fp32, 64", &["--args", &floats("const(1e20)")]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!stdout(&output).contains("no bound"), "{}", stdout(&output));
    let list: Vec<&str> = (0..64)
        .map(|i| if i / 8 % 2 == 0 { "1e-9" } else { "1.5e9" })
        .collect();
    let list = format!("[{}]", list.join(","));
    let output = run("g", "*fp32, *fp32, 64", &["--args", &floats(&list)]);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = stdout(&output);
    let row = "of 64 elements have no bound and were not compared: line 22 has partial results beyond the range of their type in \
               some orders\n";
    assert!(table.contains(row), "{table}");
}

/// A number that is stated of an element without a bound must be the reference's.
#[test]
fn what_has_no_bound_is_expected_as_it_is() {
    let program = "import triton
import triton.language as tl


@triton.jit
def normalise(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, v / tl.sqrt(tl.sum(v * v)))


# run: normalise \"*fp32, *fp32, 4\" : grid(1) x=f32[4] zeros out=f32[4] poison ; expect out = LIST
";
    let run = |list: &str| {
        let program = program.replace("LIST", list);
        tilelift(&["run", "-", "--lang", "py", "-t", "sm_80"], &program)
    };
    let output = run("[9,9,any,nan]");
    let errors = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let words = "`out`: 2 elements are other numbers and have no bound; the first is [0]";
    assert!(errors.contains(words), "{errors}");
    for list in ["[any,any,any,any]", "[nan,-nan,nan,any]"] {
        let output = run(list);
        assert!(output.status.success(), "{list}: {}", stderr(&output));
    }
}

/// A file is judged as a list is.
#[test]
fn files_state_no_more_than_lists() {
    let program = "import triton
import triton.language as tl


@triton.jit
def f(x, out, d, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.where(i < 6, tl.load(x + i) // d, 5))


@triton.jit
def normalise(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, v / tl.sqrt(tl.sum(v * v)))
";
    let folder = Folder::new();
    let run = |kernel: &str, signature: &str, args: &str, save: Option<&Path>| {
        let mut all = vec![
            "run", "-", "--lang", "py", "-t", "sm_80", "-n", kernel, "-s", signature, "--args",
            args,
        ];
        let save = save.map(|file| format!("out={}", file.display()));
        all.extend(save.iter().flat_map(|save| ["--save", save]));
        let output = tilelift(&all, program);
        (output.status.code(), stdout(&output) + &stderr(&output))
    };
    let ints = "*i32, *i32, i32, 8";
    let file = folder.0.path().join("ints.npy");
    let by = |d: &str| {
        format!(
            "grid(1) x=i32[8] iota(-3) out=i32[8] poison d={d} ; expect out = @\"{}\"",
            file.display()
        )
    };
    let args = |d: &str| by(d).split(" ;").next().unwrap_or("").to_owned();
    let (code, said) = run("f", ints, &args("0"), Some(&file));
    assert_eq!(code, Some(0), "{said}");
    // The very numbers of the interpreter are not right either.
    let (code, said) = run("f", ints, &by("0"), None);
    let words = "`out`: 6 elements are stated that are not defined; the first is [0]; line 8 divides an integer by zero, and what that \
                 gives is not defined: state a list with `any` in their place";
    assert!(code == Some(1) && said.contains(words), "{said}");
    let (code, said) = run("f", ints, &args("2"), Some(&file));
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run("f", ints, &by("2"), None);
    assert_eq!(code, Some(0), "{said}");
    // Numbers without a bound are the interpreter's, or are not judged.
    let floats = "*fp32, *fp32, 4";
    let file = folder.0.path().join("floats.npy");
    let of = |x: &str, expect: &str| {
        let path = file.display();
        format!("grid(1) x=f32[4] {x} out=f32[4] poison ; expect out = @\"{path}\"{expect}")
    };
    let args = |x: &str| of(x, "").split(" ;").next().unwrap_or("").to_owned();
    for (saved, code) in [("const(1)", Some(1)), ("zeros", Some(0))] {
        let (_, said) = run("normalise", floats, &args(saved), Some(&file));
        assert!(!said.contains("error"), "{said}");
        let (found, said) = run("normalise", floats, &of("zeros", ""), None);
        let words = "`out`: 4 elements are other numbers and have no bound; the first is [0]";
        assert_eq!(found, code, "{said}");
        assert_eq!(said.contains(words), code == Some(1), "{said}");
    }
}

/// What no executor can be right about decides what happens: then nothing can be expected.
#[test]
fn what_is_not_defined_decides_nothing_that_is_expected() {
    let kernel = |body: &str| {
        format!(
            "import triton
import triton.language as tl


@triton.jit
def f(x, out, d):
    q = tl.load(x) // d
    {body}
"
        )
    };
    let run = |body: &str, d: &str, expect: &str| {
        let args = format!("grid(1) x=i32[1] [5] out=i32[1] zeros d={d} ; expect {expect}");
        let all = [
            "run",
            "-",
            "--lang",
            "py",
            "-t",
            "sm_80",
            "-n",
            "f",
            "-s",
            "*i32, *i32, i32",
            "--args",
            &args,
        ];
        let output = tilelift(&all, &kernel(body));
        (output.status.code(), stdout(&output) + &stderr(&output))
    };
    for body in [
        "if q > 7:\n        tl.store(out, 1)",
        "tl.store(out, 1, mask=q > 7)",
        "for k in range(q):\n        tl.store(out, 1)",
        "while q > 7:\n        tl.store(out, q)\n        q = 0",
        "tl.atomic_cas(out, q, 1)",
        "tl.store(out, tl.load(x, mask=q < 1, other=0))",
    ] {
        let (code, said) = run(body, "5", "out = [any]");
        assert_eq!(code, Some(0), "{body}: {said}");
        // Whatever is stated, the interpreter's own number too.
        let refused = ["[0]", "[1]", "[-1]"].map(|list| run(body, "0", &format!("out = {list}")));
        for (code, said) in &refused {
            assert_eq!(*code, Some(1), "{body}: {said}");
        }
        let words = "nothing that is stated of `out` is right: what line ";
        let because = "; line 7 divides an integer by zero, and what that gives is not defined";
        let says = |said: &String| said.contains(words) && said.contains(because);
        assert!(
            refused.iter().all(|(_, said)| says(said)),
            "{body}: {}",
            refused[0].1
        );
    }
    // A value that is printed may be anything, and other lines are what they are.
    let prints = "tl.device_print(\"q\", q)\n    tl.device_print(\"d\", d)";
    for (d, expect, code) in [
        ("5", "printed pid (0, 0, 0) q: 1", 0),
        ("0", "printed pid (0, 0, 0) d: 0", 0),
        ("0", "printed pid (0, 0, 0) q: -1", 1),
    ] {
        let (found, said) = run(prints, d, expect);
        assert_eq!(found, Some(code), "{expect}: {said}");
        let words = "q: -1` is printed; line 7 divides an integer by zero, and what that gives is not defined";
        assert_eq!(said.contains(words), code == 1, "{said}");
    }
}

/// A line that is not printed is told beside those that are.
#[test]
fn what_is_printed_instead_is_said() {
    let program = "import triton
import triton.language as tl


@triton.jit
def f(N: tl.constexpr):
    tl.device_print(\"at\", tl.arange(0, N))
";
    let run = |count: &str, expect: &str| {
        let args = format!("grid(1) ; expect printed {expect}");
        let all = [
            "run", "-", "--lang", "py", "-t", "sm_80", "-n", "f", "-s", count, "--args", &args,
        ];
        let output = tilelift(&all, program);
        (output.status.code(), stdout(&output) + &stderr(&output))
    };
    let (code, said) = run("8", "at: 7");
    let words = "interpreter does not print the line `at: 7`; it prints `";
    assert!(code == Some(1) && said.contains(words), "{said}");
    // The one that was meant comes first.
    let first = said.split(words).nth(1).unwrap_or("");
    assert!(
        first.split('`').next().unwrap_or("").ends_with("at: 7"),
        "{said}"
    );
    assert!(said.contains(" and others, 8 in all"), "{said}");
    let (_, said) = run("2", "at: 7");
    assert!(!said.contains("in all"), "{said}");
}

/// What no executor can be right about is told wherever it goes, and cannot be expected.
#[test]
fn what_is_not_defined_is_told() {
    let program = "import triton
import triton.language as tl


@triton.jit
def f(x, out, d, N: tl.constexpr):
    i = tl.arange(0, N)
    q = tl.load(x + i) // d
    tl.store(out + i, tl.where(i < 6, q + 1, 5))


@triton.jit
def zero(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) % 0)


@triton.jit
def decides(x, out, d):
    if tl.load(x) // d > 0:
        tl.store(out, 1)
    else:
        tl.store(out, 2)


@triton.jit
def minus(a, b):
    return a - b


@triton.jit
def scan(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.associative_scan(tl.load(x + i), 0, minus))
";
    let run = |kernel: &str, signature: &str, args: &str| {
        let all = [
            "run", "-", "--lang", "py", "-t", "sm_80", "-n", kernel, "-s", signature, "--args",
            args,
        ];
        let output = tilelift(&all, program);
        (output.status.code(), stdout(&output) + &stderr(&output))
    };
    let by = |d: &str, expect: &str| {
        format!("grid(1) x=i32[8] iota(-3) out=i32[8] poison d={d}{expect}")
    };
    let ints = "*i32, *i32, i32, 8";
    let (code, said) = run("f", ints, &by("0", ""));
    let row = "out          6 of 8 elements are not defined: line 8 divides an integer by zero\n";
    assert!(code == Some(0) && said.contains(row), "{said}");
    let (code, said) = run(
        "f",
        ints,
        &by("0", " ; expect out = [any,0,any,any,any,0,5,5]"),
    );
    let words = "interpreter: `out`: 2 elements are stated that are not defined; the first is [1]; line 8 divides an integer by zero, \
                 and what that gives is not defined: state `any` in their place";
    assert!(code == Some(1) && said.contains(words), "{said}");
    let (code, said) = run(
        "f",
        ints,
        &by("0", " ; expect out = [any,any,any,any,any,any,5,5]"),
    );
    assert!(code == Some(0), "{said}");
    let (code, said) = run(
        "f",
        ints,
        &by("0", " ; expect out = [any,any,any,any,any,any,5,6]"),
    );
    let words = "the first is [7], 5 instead of 6";
    assert!(code == Some(1) && said.contains(words), "{said}");
    // A list that says nothing of the wrong elements is held to the others.
    let (code, said) = run(
        "f",
        ints,
        &by("2", " ; expect out = [0,0,any,any,any,2,5,5]"),
    );
    assert!(code == Some(0) && !said.contains("defined"), "{said}");
    let (code, said) = run(
        "zero",
        "*i32, *i32, 8",
        "x=i32[8] iota(-3) out=i32[8] poison",
    );
    let row = "8 of 8 elements are not defined: line 15 divides an integer by zero\n";
    assert!(code == Some(0) && said.contains(row), "{said}");
    // What decides a branch says so of all, and the emulator may go the other way.
    let (code, said) = run(
        "decides",
        "*i32, *i32, i32",
        "x=i32[1] [5] out=i32[1] zeros d=0",
    );
    let row = "\n  interpreter  line 20 divides an integer by zero\n";
    assert!(code == Some(1) && said.contains(row), "{said}");
    let words = "`out`: 1 of 1 elements are not equal; the first is [0], 1 instead of 2; no bounds follow from the ops, as what line 20 \
                 executes or accesses depends on a value that they leave open";
    assert!(said.contains(words), "{said}");
    let (code, said) = run(
        "scan",
        "*i32, *i32, 64",
        "x=i32[64] iota(1) out=i32[64] poison",
    );
    let words = "; line 34 scans with a function that is not associative, so that the order of the elements shows\n";
    assert!(code == Some(1) && said.contains(words), "{said}");
}

/// A list is judged as a file is: within the bound that stands beside it, and in the same words.
#[test]
fn lists_have_bounds() {
    let line = |expect: &str| format!("{KERNEL}; run: grid(1) x=f32[4] [1,2,3,4] n=3{expect}\n");
    let near = " ; expect x = [2,4.0000005,6,4]";
    let judged = |text: &str, args: &[&str], words: Option<&str>| {
        let output = tilelift(&[args, &["-"]].concat(), text);
        let errors = stderr(&output);
        assert_eq!(output.status.success(), words.is_none(), "{text}: {errors}");
        assert!(errors.contains(words.unwrap_or("")), "{text}: {errors}");
    };
    let wrong = Some(
        "interpreter: `x`: 1 of 4 elements are not equal; the first is [1], 4.0 instead of 4.0000005",
    );
    judged(&line(near), &["run"], wrong);
    let wrong = Some("4.0 instead of 4.0000005; `expect NAME within ulp 1` would allow all");
    judged(&line(near), &["run", "--exact"], wrong);
    let test = |expect: &str| format!("; test: run\n{}", line(expect));
    judged(&test(near), &["test"], wrong);
    for bound in ["ulp 1", "rel 1e-6", "abs 1e-6"] {
        let expect = format!("{near} ; expect x within {bound}");
        judged(&line(&expect), &["run"], None);
        judged(&test(&expect), &["test"], None);
        let far = expect.replace("4.0000005", "4.1");
        let wrong = format!("are not within {bound}; the first is [1], 4.0 instead of 4.1");
        judged(&line(&far), &["run"], Some(&wrong));
    }
    judged(
        &line(" ; expect x = [2,4,6]"),
        &["run"],
        Some("3 elements are stated of a buffer of 4"),
    );
    judged(&line(" ; expect x = [2,any,any,4]"), &["run"], None);
    // What the ops leave open needs no bound.
    let sum = sum();
    let sums = format!(
        "{sum}; run: grid(1) x=f32[4] [1,0.1,0.1,0.1] n=4 ; expect x = [1.3,1.3,1.3,1.3000001]\n"
    );
    judged(&sums, &["run"], None);
}
