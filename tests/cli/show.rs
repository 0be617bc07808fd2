//! `tilelift show` and the page of `tilelift explain --html`.

use super::{Folder, KERNEL, stderr, stdout, text, tilelift};

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
