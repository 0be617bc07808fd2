//! The `tilelift` command on files that import functions of others.

use super::tilelift;

#[test]
fn functions_of_other_files_are_found() {
    let file = "tests/data/imports/lib/ops/norm.py";
    let output = tilelift(&["run", file], "");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    // What is wrong there is told with the place there.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let main = "import triton\nfrom helpers.sums import f\n\n@triton.jit\ndef k(x):\n    f(x)\n";
    let helper = "import triton\n\n@triton.jit\ndef f(x):\n    return x.nothing\n";
    std::fs::create_dir(folder.path().join("helpers")).expect("it is made");
    let path = folder.path().join("helpers/sums.py");
    std::fs::write(&path, helper).expect("it is written");
    let file = folder.path().join("main.py");
    std::fs::write(&file, main).expect("it is written");
    let args = ["compile", &*file.to_string_lossy(), "-s", "*fp32", "--json"];
    let output = tilelift(&args, "");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let message: serde_json::Value = serde_json::from_str(said.trim()).expect(&said);
    assert_eq!(message["file"], *path.to_string_lossy());
    assert_eq!(
        (&message["line"], &message["column"]),
        (&5.into(), &14.into())
    );
    let call = format!("in `f`, called at {}:6:5", file.display());
    assert_eq!(message["notes"], serde_json::json!([call]));
}

/// Behind the folders around a file those of `PYTHONPATH` are searched, in order.
#[test]
fn folders_of_the_environment_are_searched() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("it is made");
        std::fs::write(path, text).expect("it is written");
    };
    let twice = |by: u32| format!("import triton\n\n@triton.jit\ndef f(x):\n    return x * {by}\n");
    write("second/helpers/sums.py", &twice(7));
    write("third/helpers/sums.py", &twice(9));
    write(
        "kernels/main.py",
        "import triton\nimport triton.language as tl\nfrom helpers.sums import f\n\n@triton.jit\ndef k(x):\n    tl.store(x, f(3))\n",
    );
    let file = folder.path().join("kernels/main.py");
    let args = [
        "compile",
        &*file.to_string_lossy(),
        "-s",
        "*i32",
        "--emit",
        "tile",
    ];
    let compiled = |folders: &[&str]| {
        let folders = folders.iter().map(|name| folder.path().join(name));
        let folders = std::env::join_paths(folders).expect("no name has a separator");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tilelift"));
        command.args(args).env("PYTHONPATH", folders);
        command.output().expect("it runs")
    };
    let output = compiled(&["first", "second", "third"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("21"), "{text}{output:?}");
    assert_eq!(compiled(&["first"]).status.code(), Some(1));
    // What is known of versions does not come from files.
    write(
        "second/packaging/version.py",
        "def parse(text):\n    return int(text[0])\n",
    );
    write(
        "kernels/main.py",
        "import triton\nimport triton.language as tl\nfrom packaging import version\n\nif version.parse(triton.__version__) >= version.parse('3.0.0'):\n    N = 21\nelse:\n    N = 2\n\n@triton.jit\ndef k(x):\n    tl.store(x, N)\n",
    );
    let output = compiled(&["second"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("21"), "{text}{output:?}");
}

/// A block of which only the type is asked for is none that the function computes with; so is one that it uses.
#[test]
fn functions_that_combine_may_ask_a_block_for_its_type() {
    let text = "\
import triton
import triton.language as tl


@triton.jit
def promote(x):
    return x + tl.zeros((1,), tl.int1)


@triton.jit
def larger(a, i, b, j):
    mask = a > b
    if promote(a).dtype.is_floating():
        mask |= (a != a) and not (b != b)
    return tl.where(mask, a, b), tl.where(mask, i, j)


# run: k \"*fp32, *i32, 8\" : grid(1) x=f32[8] [1,3,2,5,4,4,7,0] out=i32[8] poison ; expect out = [0,1,1,3,3,3,6,6]
@triton.jit
def k(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v, at = tl.associative_scan((tl.load(x + i), i), 0, larger)
    tl.store(out + i, at)
";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = |text: &str| {
        let path = folder.path().join("k.py");
        std::fs::write(&path, text).expect("it is written");
        tilelift(&["run", &*path.to_string_lossy()], "")
    };
    let output = run(text);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let output = run(&text.replace("tl.where(mask, a, b)", "tl.max(promote(a), 0)"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("computes with single elements and does nothing else"),
        "{said}"
    );
}
