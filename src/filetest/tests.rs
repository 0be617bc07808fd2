//! The harness itself: that it fails where it should.

use super::{TestConfig, find_files, run_file, run_text};

const PLAIN: TestConfig = TestConfig {
    bless: false,
    steps: None,
    folder: None,
};
const BLESS: TestConfig = TestConfig {
    bless: true,
    steps: None,
    folder: None,
};

fn messages(text: &str) -> Vec<String> {
    let report = run_text(text, PLAIN);
    report.failures.iter().map(ToString::to_string).collect()
}

#[test]
fn mistakes_must_match_place_code_and_words() {
    let text = |note: &str| {
        format!(
            "; test: parse\nkernel @k() warps(4) {{\nblock0:\n    frob {note}\n    return\n}}\n"
        )
    };
    assert_eq!(messages(&text("; error: P04 no op `frob`")), [""; 0]);
    assert_eq!(messages(&text("")).len(), 1);
    assert_eq!(messages(&text("; error: P05 no op")).len(), 2);
    assert_eq!(messages(&text("; error: P04 other words")).len(), 2);
    let elsewhere = text("") + "; error: P04 no op\n";
    assert_eq!(messages(&elsewhere).len(), 2);
}

#[test]
fn violations_must_match_too() {
    let text = |note: &str| {
        format!("; test: verify\nkernel @k() warps(3) {{ {note}\nblock0:\n    return\n}}\n")
    };
    assert_eq!(messages(&text("; error: V14 number of warps")), [""; 0]);
    let without = messages(&text(""));
    assert!(
        without[0].contains("V14") && without[1].contains("; ^ error: V14"),
        "{without:?}"
    );
}

#[test]
fn text_must_be_canonical_to_round_trip() {
    let text =
        "; test: roundtrip\nkernel @k(v0 \"n\": i32) warps(4) { ; note\nblock0:\n    return\n}\n";
    assert_eq!(messages(text), [""; 0]);
    let other = text.replace("v0", "v1");
    assert!(messages(&other)[0].contains("not as it is printed"));
}

#[test]
fn files_without_a_known_test_fail() {
    assert_eq!(
        messages("kernel @k() warps(4) {\nblock0:\n    return\n}\n").len(),
        1
    );
    assert!(messages("; test: magic\n")[0].contains("unknown test"));
    assert!(messages("; test: ptx sm_1\n")[0].contains("unknown target"));
    assert!(messages("; test: ptx loud\n")[0].contains("unknown flag"));
    assert!(messages("; test: ptx maxnreg=few\n")[0].contains("needs a number"));
    assert!(messages("; test: ptx diversity=\n")[0].contains("needs a number"));
}

#[test]
fn what_is_no_valid_kernel_fails_every_kind_of_test() {
    for kind in ["roundtrip", "verify", "tile", "run"] {
        let found = messages(&format!("; test: {kind}\nkernel @k() {{\n"));
        assert!(
            found.len() == 1 && found[0].starts_with("line 2") && found[0].contains("P0"),
            "{kind}: {found:?}"
        );
    }
    for kind in ["ptx", "run"] {
        let broken =
            "kernel @k() warps(3) {\nblock0:\n    return\n}\n; run: grid(1)\n; run: grid(2)\n";
        let found = messages(&format!("; test: {kind}\n{broken}"));
        assert!(
            found.len() == 1
                && found[0].starts_with("line 2")
                && found[0].contains("V14: the number"),
            "{kind}: {found:?}"
        );
        let thread = "thread @t() warps(1) {\nblock0:\n    return\n}\n; run: grid(1)\n";
        let found = messages(&format!("; test: {kind}\n{thread}"));
        assert!(
            found.len() == 1 && found[0].contains("only a `kernel`"),
            "{kind}: {found:?}"
        );
    }
    let nothing = messages("; test: run\n; run: grid(1)\n");
    assert!(
        nothing[0].contains("there is no function to run"),
        "{nothing:?}"
    );
}

#[test]
fn kernels_are_refused_for_the_stated_reason() {
    let text = include_str!("../../tests/filetests/ptx/too_large.tir");
    assert_eq!(messages(text), [""; 0]);
    let without = messages(&text.replace("; error: the kernel needs", "; it needs"));
    assert!(
        without.len() == 1 && without[0].contains("ptx sm_75: the kernel needs 131072 bytes"),
        "{without:?}"
    );
    let other = messages(&text.replace("the kernel needs", "the GPU lacks"));
    assert!(
        other.len() == 1 && other[0].contains("not with `the GPU lacks 131072 bytes"),
        "{other:?}"
    );
}

#[test]
fn files_of_folders_within_are_found() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).expect("writable");
    let paths = [folder.path().join("z.tir"), inner.join("a.tir")];
    for path in &paths {
        std::fs::write(path, "; test: parse\n").expect("writable");
    }
    std::fs::write(inner.join("note.txt"), "").expect("writable");
    let mut found = find_files(folder.path()).expect("readable");
    found.sort();
    assert_eq!(found, [paths[1].clone(), paths[0].clone()]);
}

const KERNEL: &str = "kernel @k(v7: i32) warps(4) {\nblock0:\n    return\n}\n";

#[test]
fn checks_are_searched_in_order() {
    let with = |checks: &str| messages(&format!("; test: tile\n{KERNEL}{checks}"));
    assert_eq!(
        with("; check: @k\n; not: thread\n; check: return\n"),
        [""; 0]
    );
    assert!(with("; check: return\n; check: @k\n")[0].contains("does not follow"));
    assert!(with("; check: @k\n; not: block0\n; check: return\n")[0].contains("should not"));
    assert!(with("; check: @k\n; not: return\n")[0].contains("should not"));
    assert_eq!(with("; check: return\n; not: block0\n"), [""; 0]);
}

#[test]
fn a_block_of_comments_is_compared_and_blessed() {
    let second = KERNEL.replace("@k", "@l");
    let text = format!("; test: tile\n{KERNEL}; old\n; text\n\n; the second\n{second}");
    let failures = messages(&text);
    assert!(
        failures.len() == 2 && failures[0].contains("BLESS=1"),
        "{failures:?}"
    );

    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.tir");
    std::fs::write(&path, &text).expect("writable");
    let report = run_file(&path, BLESS).expect("readable");
    assert_eq!(report.failures, []);
    let blessed = std::fs::read_to_string(&path).expect("readable");
    let expected = |name: &str| {
        format!("; kernel @{name}(v0 \"v7\": i32) warps(4) {{\n; block0:\n;     return\n; }}\n")
    };
    let whole = format!(
        "; test: tile\n{KERNEL}{}\n; the second\n{second}{}",
        expected("k"),
        expected("l")
    );
    assert_eq!(blessed, whole);
    assert_eq!(run_text(&blessed, BLESS).blessed, None);
    assert_eq!(messages(&blessed), [""; 0]);
    // Nothing is left beside the file.
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("readable").count(),
        1
    );
    assert_eq!(find_files(folder.path()).expect("readable"), [path]);
}

/// A link to the folder it stands in would otherwise give each file dozens of times.
#[cfg(unix)]
#[test]
fn links_to_folders_are_not_followed() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("inner")).expect("writable");
    for name in ["a.tir", "inner/b.tir"] {
        std::fs::write(at(name), KERNEL).expect("writable");
    }
    for (to, name) in [
        (".", "self"),
        ("inner", "other.tir"),
        ("inner/b.tir", "c.tir"),
    ] {
        symlink(to, at(name)).expect("the folder takes links");
    }
    let expected = [at("a.tir"), at("c.tir"), at("inner/b.tir")];
    assert_eq!(find_files(folder.path()).expect("readable"), expected);
    // What is named is meant.
    let inside = find_files(&at("other.tir")).expect("readable");
    assert_eq!(inside, [at("other.tir/b.tir")]);
}

#[test]
fn several_stages_have_sections() {
    let text = format!("; test: tile sm_80\n; test: stats sm_90\n{KERNEL}; == tile sm_80\n; old\n");
    assert_eq!(messages(&text).len(), 2);
    let blessed = run_text(&text, BLESS).blessed.expect("it is rewritten");
    let at = |words: &str| blessed.find(words).unwrap_or_else(|| panic!("{blessed}"));
    assert!(at("; == tile sm_80\n; kernel @k(") < at("; == stats sm_90\n; layout conversions"));
    assert!(!blessed.contains("; old"), "{blessed}");
    assert_eq!(messages(&blessed), [""; 0]);
    // So it is with several functions, whose places move.
    let second = KERNEL.replace("@k", "@l");
    let both = text.replace(KERNEL, &format!("{KERNEL}\n{second}"));
    let both = run_text(&both, BLESS).blessed.expect("it is rewritten");
    assert_eq!(messages(&both), [""; 0]);
    let without = blessed.replace("; == stats sm_90\n", "");
    assert_eq!(messages(&without).len(), 2);
}

#[test]
fn what_should_be_refused_must_be() {
    let text = format!(
        "; test: tile\n{}",
        KERNEL.replace("{\n", "{ ; error: too big\n")
    );
    assert!(messages(&text)[0].contains("compiled, but should not"));
}
