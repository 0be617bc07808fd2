//! `tilelift show` and the page of `tilelift explain --html`.

use super::{Folder, KERNEL, check_failure, stderr, stdout, text, tilelift};

/// What the command writes for the kernel of these tests.
fn shown(args: &[&str]) -> String {
    let output = tilelift(&[&["show", "-", "-t", "sm_80"], args].concat(), KERNEL);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).expect("it is UTF-8")
}

#[test]
fn a_layout_is_a_grid_of_threads_and_registers() {
    let text = shown(&[]);
    let row = text.lines().nth(3).expect("a first row");
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[0], "0:0", "{text}");
    assert!(
        !text.contains('\u{1b}'),
        "no colours but on a terminal: {text}"
    );
    assert!(text.contains("f32[256]"), "{text}");
}

#[test]
fn a_picture_is_svg_with_an_element_each() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("layout.svg");
    let name = path.to_str().expect("UTF-8");
    assert_eq!(shown(&["--layout", "0", "--svg", name]), "");
    let svg = std::fs::read_to_string(&path).expect("it was written");
    // One more is the background.
    assert_eq!(svg.matches("<rect ").count(), 1 + 256, "{svg}");
    assert!(
        svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
}

#[test]
fn a_layout_that_is_not_there_is_refused() {
    let output = tilelift(&["show", "-", "--layout", "99"], KERNEL);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("the kernel's layouts are #0"), "{stderr}");
}

#[test]
fn a_page_shows_source_ir_and_ptx_with_their_lines_linked() {
    let folder = Folder::new();
    let path = folder.0.path().join("softmax.html");
    let args = [
        "explain",
        "examples/kernels/softmax.py",
        "-n",
        "softmax",
        "-s",
        "*fp32, *fp32, i32, i32, 128",
        "--html",
        path.to_str().expect("plain"),
    ];
    let output = tilelift(&args, "");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    let page = text(&path);
    for words in [
        "<h1>softmax for sm_80</h1>",
        "<h2>PTX for sm_80</h2>",
        "powers = tl.exp(v - tl.max(v, axis=0))",
        "ex2.approx.ftz.f32",
        "what merge_equal_values changes",
        "Registers along the code",
        "Shared memory from",
        "<svg ",
    ] {
        assert!(page.contains(words), "{words}");
    }
    // Line 12 computes powers: in the source, in the IR and in the PTX.
    for panel in page.split("<h2>").skip(1).take(3) {
        assert!(panel.contains("data-l=\"12\""), "{panel}");
    }
    // Nothing is fetched from elsewhere.
    let addresses = page.matches("http").count();
    assert_eq!(
        addresses,
        page.matches("http://www.w3.org/2000/svg").count()
    );
    let wrong = tilelift(&[&args[..], &["--diff"]].concat(), "");
    assert_eq!(wrong.status.code(), Some(2));
}

/// A block that is loaded by columns and stored by rows, a gather, and a load with a stride between neighbours.
const COLUMNS: &str = r#"
import triton
import triton.language as tl

@triton.jit
def columns(x, out, R: tl.constexpr, C: tl.constexpr):
    row = tl.arange(0, R)[:, None]
    column = tl.arange(0, C)[None, :]
    v = tl.load(x + column * R + row)
    tl.store(out + row * C + column, v)

@triton.jit
def pick(x, out):
    at = tl.arange(0, 1024)
    v = tl.load(x + at)
    w = tl.gather(v, at % 32 * 32 + at // 32, axis=0)
    tl.store(out + at, w)

@triton.jit
def strided(x, out, stride, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at * stride))
"#;

/// A picture of a kernel: as text, and as SVG, which is well-formed.
fn drawn(file: &str, args: &[&str]) -> (String, String) {
    let folder = Folder::new();
    let svg = folder.0.path().join("picture.svg");
    let svg = svg.to_str().expect("UTF-8");
    let show = |more: &[&str]| {
        let output = tilelift(&[&["show", file, "-t", "sm_80"], args, more].concat(), "");
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        stdout(&output)
    };
    let words = show(&[]);
    assert_eq!(show(&["--svg", svg]), "");
    let picture = text(svg.as_ref());
    roxmltree::Document::parse(&picture).expect("well-formed");
    (words, picture)
}

const MATMUL: [&str; 5] = [
    "-n",
    "batched_matmul",
    "-s",
    "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, 64, 64, 32, 4",
    "-p",
];

#[cfg(feature = "triton")]
#[test]
fn a_schedule_shows_copies_ahead_of_products() {
    let file = "examples/kernels/matmul.py";
    let (text, svg) = drawn(file, &[&MATMUL[..], &["schedule"]].concat());
    let row = |name: &str| {
        let found = text.lines().find(|line| line.starts_with(name));
        found.unwrap_or_else(|| panic!("{name}: {text}"))
    };
    let program = row("program ").trim_start_matches("program");
    // Several copies start before the first product, and others behind it.
    let first = program.find('m').expect("it multiplies");
    assert!(program[..first].matches('c').count() >= 4, "{text}");
    assert!(program[first..].contains('c'), "{text}");
    assert!(svg.contains("a copy is under way to it"), "{svg}");
    // An entry is filled, read, and filled again.
    let entry = text
        .lines()
        .find(|line| line.contains(" entry 0 "))
        .expect("a ring");
    assert!(
        entry.matches(">#").count() > 1 && entry.contains("->"),
        "{text}"
    );
}

/// On Hopper products are started, and the next one before the last is waited for.
#[cfg(feature = "triton")]
#[test]
fn a_schedule_shows_products_that_are_under_way() {
    let args = ["show", "examples/kernels/matmul.py", "-t", "sm_90a"];
    let output = tilelift(&[&args[..], &MATMUL, &["schedule"]].concat(), "");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    let products = text
        .lines()
        .find(|line| line.starts_with("products under way"));
    let products = products.unwrap_or_else(|| panic!("{text}"));
    assert!(
        products.contains("11211") && !products.contains('3'),
        "{text}"
    );
}

#[cfg(feature = "triton")]
#[test]
fn rings_and_memory_are_drawn() {
    let file = "examples/kernels/matmul.py";
    let (text, _) = drawn(file, &[&MATMUL[..], &["rings"]].concat());
    assert!(text.contains("blocks of f16[64,32]"), "{text}");
    let (text, svg) = drawn(file, &[&MATMUL[..], &["shared"]].concat());
    assert!(text.contains("first to last access"), "{text}");
    assert!(svg.contains("bytes downwards"), "{svg}");
    let (text, _) = drawn(file, &[&MATMUL[..], &["registers"]].concat());
    assert!(text.contains("words live at once"), "{text}");
}

#[cfg(feature = "triton")]
#[test]
fn a_conversion_shows_its_banks() {
    let folder = Folder::new();
    let file = folder.file("columns.py", COLUMNS);
    let file = file.to_str().expect("UTF-8");
    let signature = "*fp32:16, *fp32:16, 64, 64";
    let args = ["-n", "columns", "-s", signature, "-p", "conversions"];
    let (text, svg) = drawn(file, &args);
    assert!(text.contains("through shared memory"), "{text}");
    assert!(text.contains("no conflict"), "{text}");
    assert!(svg.contains("bank 31: 1 words"), "{svg}");
}

#[cfg(feature = "triton")]
#[test]
fn the_line_of_a_strided_load_is_told() {
    let folder = Folder::new();
    let file = folder.file("columns.py", COLUMNS);
    let file = file.to_str().expect("UTF-8");
    let line = "grid(1) x=f32[8192] normal(1) out=f32[256] poison stride=32";
    let args = [
        "-n",
        "strided",
        "-s",
        "*fp32, *fp32, i32, 256",
        "-p",
        "lines",
        "--args",
        line,
    ];
    let (text, svg) = drawn(file, &args);
    let load = "tl.store(out + at, tl.load(x + at * stride))";
    let row = text
        .lines()
        .find(|row| row.contains(load))
        .expect("the line");
    assert!(row.contains("lanes are not side by side"), "{text}");
    assert!(svg.contains("lanes are not side by side"), "{svg}");
}

/// A kernel without lines of a source is told by what it became.
#[test]
fn the_lines_of_ptx_are_told_where_there_is_no_source() {
    let line = "grid(1) x=f32[256] normal(1) n=256";
    let text = shown(&["-p", "lines", "--args", line]);
    assert!(
        text.starts_with("double for sm_80: lines of the PTX\n"),
        "{text}"
    );
    // Two loads and two stores of four sectors for each of four warps are a fifth each of all.
    let accesses: Vec<&str> = text
        .lines()
        .filter(|row| row.contains(".global.b32"))
        .collect();
    assert_eq!(accesses.len(), 4, "{text}");
    for row in accesses {
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells[1..6], ["21.0", "%", "4", "16", "1.00"], "{text}");
    }
    let without = ["show", "-", "-t", "sm_80", "-p", "lines"];
    check_failure(&without, KERNEL, 2, "give --args");
    let wrong = [&without[..], &["--args", "grid(1) y=f32[256] zeros"]].concat();
    check_failure(&wrong, KERNEL, 1, "error: --args: ");
}

#[cfg(feature = "triton")]
#[test]
fn the_line_of_a_gather_that_meets_in_few_banks_is_told() {
    let folder = Folder::new();
    let file = folder.file("columns.py", COLUMNS);
    let file = file.to_str().expect("UTF-8");
    let line = "grid(1) x=f32[1024] normal(1) out=f32[1024] poison";
    let signature = "*fp32:16, *fp32:16";
    let args = ["-n", "pick", "-s", signature, "-p", "lines", "--args", line];
    let (text, svg) = drawn(file, &args);
    let row = |words: &str| {
        let found = text.lines().find(|row| row.contains(words));
        found.unwrap_or_else(|| panic!("{words}: {text}"))
    };
    assert!(row("tl.gather(v").contains("bank conflicts"), "{text}");
    assert!(
        row("tl.load(x + at)").ends_with("tl.load(x + at)"),
        "{text}"
    );
    assert!(svg.contains("bank conflicts"), "{svg}");
}

#[test]
fn what_is_not_there_to_be_drawn_is_said() {
    for (picture, words) in [
        ("schedule", "no loop of it is pipelined"),
        ("rings", "no loop of it is pipelined"),
        ("conversions", "converts no layouts"),
        ("shared", "no shared memory"),
    ] {
        check_failure(
            &["show", "-", "-t", "sm_80", "-p", picture],
            KERNEL,
            1,
            words,
        );
    }
    check_failure(&["show", "-", "-p", "lines"], KERNEL, 2, "give --args");
    check_failure(
        &["show", "-", "-p", "shared", "--layout", "1"],
        KERNEL,
        2,
        "--picture layouts",
    );
}

#[test]
fn numbers_of_the_compiler_are_json_with_occupancy() {
    let output = tilelift(
        &["compile", "-", "-t", "sm_80", "--emit", "stats", "--json"],
        KERNEL,
    );
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(json["kernel"], "double");
    assert_eq!(json["stats"]["barriers"], 0);
    assert_eq!(json["predicted"]["occupancy_percent"], 100);
    assert_eq!(json["predicted"]["limited_by"], "warps");
}
