//! Every command but `run` and `reduce`.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use super::{Folder, KERNEL, check_failure, stderr, stdout, text, tilelift};

#[test]
fn ptx_goes_to_standard_output() {
    let output = tilelift(&["compile", "-", "-t", "sm_80"], KERNEL);
    assert!(output.status.success(), "{}", stderr(&output));
    let ptx = stdout(&output);
    assert!(
        ptx.contains(".target sm_80") && ptx.contains(".entry double"),
        "{ptx}"
    );
    assert_eq!(stderr(&output), "");
}

#[test]
fn a_kernel_that_will_spill_is_compiled_with_a_warning() {
    let large = KERNEL.replace("[256]", "[65536]");
    for stage in ["ptx", "stats"] {
        let output = tilelift(&["compile", "-", "-t", "sm_80", "--emit", stage], &large);
        assert!(output.status.success(), "{}", stderr(&output));
        let message = stderr(&output);
        assert!(
            message.starts_with("warning: double needs about ")
                && message.contains("gets 255; values will spill"),
            "{stage}: {message}"
        );
    }
}

#[test]
fn every_stage_can_be_shown() {
    let cases = [
        ("tile", "kernel @double("),
        ("opt", "kernel @double("),
        ("layout", "layout #0 = {reg="),
        ("shared", "no shared memory"),
        ("thread", "thread @double("),
        ("machine", "; before allocation\n"),
        ("machine", "; after allocation\n"),
        ("ptx", ".entry double"),
        ("stats", "layout conversions"),
    ];
    for (stage, words) in cases {
        let output = tilelift(&["compile", "-", "--emit", stage], KERNEL);
        assert!(output.status.success(), "{stage}: {}", stderr(&output));
        assert!(
            stdout(&output).contains(words),
            "{stage}: {}",
            stdout(&output)
        );
    }
    let output = tilelift(&["compile", "-", "--emit", "tile"], KERNEL);
    assert_eq!(stdout(&output), KERNEL);
}

#[test]
fn files_are_written_whole() {
    let folder = Folder::new();
    let input = folder.file("k.tir", KERNEL);
    let (ptx, meta) = (
        folder.0.path().join("k.ptx"),
        folder.0.path().join("k.json"),
    );
    let paths = [&input, &ptx, &meta].map(|p| p.to_str().expect("plain"));
    let args = [
        "compile", paths[0], "-t", "sm_90", "-o", paths[1], "--meta", paths[2], "-w", "8",
    ];
    let output = tilelift(&args, "");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    assert!(text(&ptx).contains(".target sm_90"));
    assert_eq!(folder.names(), ["k.json", "k.ptx", "k.tir"]);
    let json: serde_json::Value = serde_json::from_str(&text(&meta)).expect("JSON");
    let version = json["ptx_version"].as_str().expect("text");
    assert!(text(&ptx).contains(&format!(".version {version}\n")));
    let expected = serde_json::json!({
        "name": "double",
        "target": "sm_90",
        "ptx_version": version,
        "num_warps": 8,
        "num_stages": 1,
        "block": [256, 1, 1],
        "cluster": [1, 1, 1],
        "shared": 0,
        "params": [
            {"name": "x", "kind": "pointer", "type": "f32", "bytes": 8},
            {"name": "n", "kind": "scalar", "type": "i32", "bytes": 4},
        ],
        "constants": {},
    });
    assert_eq!(json, expected);
    // A file that cannot be written is an error and leaves nothing.
    let nowhere = folder.0.path().join("no/such/k.ptx");
    let args = ["compile", paths[0], "-o", nowhere.to_str().expect("plain")];
    check_failure(&args, "", 1, "no/such/k.ptx");
}

#[test]
fn mistakes_point_into_the_file() {
    let broken = KERNEL.replace("fadd v7, v7", "fadd v7 v7");
    check_failure(
        &["compile", "-"],
        &broken,
        1,
        "<stdin>:9:18: error[P02]: expected the end",
    );
    check_failure(
        &["compile", "-"],
        &broken,
        1,
        "9 |     v8 = fadd v7 v7 : f32[256]\n  |                  ^",
    );
    let invalid = KERNEL.replace("divisible = 16", "divisible = 12");
    check_failure(&["compile", "-"], &invalid, 1, "<stdin>:1:16: error[V13]:");
    let invalid = KERNEL.replace("warps(4)", "warps(3)");
    check_failure(&["compile", "-"], &invalid, 1, "error[V14]");
    check_failure(
        &["compile", "-", "-n", "other"],
        KERNEL,
        1,
        "there is no kernel `other`; there is double",
    );
    check_failure(&["compile", "-"], "", 1, "there is no kernel in it");
    check_failure(
        &["compile", "/no/such/file.tir"],
        "",
        1,
        "/no/such/file.tir",
    );
    let thread = "thread @t() warps(4) {\nblock0:\n    return\n}\n";
    check_failure(&["compile", "-"], thread, 1, "compile the `kernel`");
}

#[test]
fn wrong_command_lines_end_with_two() {
    check_failure(
        &["compile", "-", "-s", "*fp32"],
        KERNEL,
        2,
        "-s is for .py files",
    );
    check_failure(
        &["compile", "-", "-c", "N=1"],
        KERNEL,
        2,
        "-c is for .py files",
    );
    check_failure(
        &["compile", "kernel.py", "-s", "*fp32, fp32:16"],
        "",
        2,
        "entry 2 of the signature",
    );
    check_failure(
        &["compile", "kernel.py", "-c", "N"],
        "",
        2,
        "expected NAME=VALUE",
    );
    check_failure(
        &["compile", "-", "-t", "sm_1"],
        KERNEL,
        2,
        "unknown target `sm_1`",
    );
    check_failure(&["compile", "-", "--emit", "magic"], KERNEL, 2, "magic");
    check_failure(&["compile"], "", 2, "FILE");
    check_failure(&["frobnicate"], "", 2, "frobnicate");
    check_failure(&["test"], "", 2, "PATH");
    let two = KERNEL.to_owned() + &KERNEL.replace("@double", "@twice");
    check_failure(
        &["compile", "-"],
        &two,
        2,
        "several kernels (double, twice)",
    );
    let output = tilelift(&["compile", "-", "-n", "twice"], &two);
    assert!(stdout(&output).contains(".entry twice"));
}

#[test]
fn file_tests_are_counted_and_blessed() {
    let folder = Folder::new();
    let path = folder.file("a.tir", &format!("; test: tile\n{KERNEL}"));
    folder.file("b.tir", &format!("; test: roundtrip\n{KERNEL}"));
    let root = folder.0.path().to_str().expect("plain");
    let output = tilelift(&["test", root], "");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "1 passed, 1 failed\n");
    assert!(
        stderr(&output).contains("a.tir:2: error: tile sm_80 differs; BLESS=1"),
        "{}",
        stderr(&output)
    );
    let blessed = Command::new(env!("CARGO_BIN_EXE_tilelift"))
        .args(["test", root])
        .env("BLESS", "1")
        .output()
        .expect("it runs");
    assert_eq!(stdout(&blessed), "2 passed, 0 failed, 1 rewritten\n");
    assert!(text(&path).contains("; block0:\n;     v2 = arange"));
    let output = tilelift(&["test", path.to_str().expect("plain")], "");
    assert_eq!(stdout(&output), "1 passed, 0 failed\n");
    let empty = Folder::new();
    check_failure(
        &["test", empty.0.path().to_str().expect("plain")],
        "",
        1,
        "no .tir files",
    );
}

#[test]
fn explain_shows_every_pass() {
    let output = tilelift(&["explain", "-"], KERNEL);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for words in [
        "; --- as it was read",
        "; --- after assign_layouts",
        "; --- after expand",
        "; --- PTX",
    ] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn explain_shows_one_pass_and_what_it_changes() {
    let one = tilelift(&["explain", "-", "--only", "assign_layouts"], KERNEL);
    let one = stdout(&one);
    assert!(one.starts_with("; --- after assign_layouts\n"), "{one}");
    assert_eq!(one.matches("; --- ").count(), 1, "{one}");
    let diff = ["explain", "-", "--diff", "--only", "assign_layouts"];
    let diff = stdout(&tilelift(&diff, KERNEL));
    assert!(
        diff.starts_with("; --- what assign_layouts changes\n"),
        "{diff}"
    );
    let lines = |sign: &str| diff.lines().filter(|l| l.starts_with(sign)).count();
    assert!(lines("-    v") > 0 && lines("+    v") > 0, "{diff}");
    // The terminator has no layout.
    assert!(!diff.contains("-    return"), "{diff}");
}

#[test]
fn a_pass_that_is_not_there_is_a_mistake() {
    let output = tilelift(&["explain", "-", "--only", "simplfy"], KERNEL);
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(
        message.contains("--only simplfy") && message.contains("assign_layouts"),
        "{message}"
    );
}

#[test]
fn info_names_targets_and_driver() {
    let output = tilelift(&["info"], "");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for words in ["tilelift ", "sm_80 (PTX 7.0)", "driver: ", "cache: "] {
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn help_and_version_are_no_failures() {
    for args in [&["--help"][..], &["--version"], &["compile", "--help"]] {
        let output = tilelift(args, "");
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert!(stdout(&output).contains("tilelift"), "{args:?}");
    }
}

#[test]
fn help_says_what_each_command_takes() {
    const FILE: [&str; 2] = [".py", ".tir"];
    const SIGNATURE: [&str; 4] = ["*fp32:16", "i32:1", "tensordesc<", "@relu"];
    let input = [&FILE[..], &["standard input", "--lang"]].concat();
    let kernel = [
        &input[..],
        &SIGNATURE,
        &["-c NAME=VALUE", "sm_90a", "constexpr"],
    ]
    .concat();
    for (command, wanted) in [
        (
            &[][..],
            [&input[..], &["PTX", "-s \"*fp32", "run --help", "NO_COLOR"]].concat(),
        ),
        (&["compile"], kernel.clone()),
        (&["explain"], kernel),
        (
            &["run"],
            [
                &input[..],
                &["grid(4)", "poison", "expect out within", "# run:"],
            ]
            .concat(),
        ),
        (
            &["test"],
            [&["standard input", "folders"][..], &FILE[1..]].concat(),
        ),
        (&["reduce"], [&input[..], &["--check", "differs"]].concat()),
        (&["cache"], vec!["TILELIFT_CACHE_DIR", "export", "verify"]),
        (&["cache", "export"], vec!["<DIR>", "The folder"]),
        (&["info"], vec!["takes nothing"]),
    ] {
        let args = [command, &["--help"]].concat();
        let text = stdout(&tilelift(&args, ""));
        for words in wanted {
            assert!(text.contains(words), "{command:?}: {words}: {text}");
        }
    }
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    // More text than a pipe holds, and a reader that takes one byte of it.
    let many: String = (0..2000)
        .map(|i| format!("    v{} = const {{value = {i}}} : i32\n", i + 10))
        .collect();
    let text = KERNEL.replace("    return\n", &(many + "    return\n"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_tilelift"))
        .args(["compile", "-", "--emit", "tile"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command was built");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin
        .write_all(text.as_bytes())
        .expect("it reads everything");
    drop(stdin);
    let mut pipe = child.stdout.take().expect("it is piped");
    pipe.read_exact(&mut [0]).expect("it writes something");
    drop(pipe);
    let output = child.wait_with_output().expect("it ends");
    assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
    // Not all that was asked for arrived, which a script may want to know.
    assert_eq!(output.status.code(), Some(1));
}

/// Writing whole files means replacing them, which must not happen to a device.
#[cfg(unix)]
#[test]
fn the_null_device_stays_one() {
    use std::os::unix::fs::FileTypeExt;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let input = folder.path().join("k.tir");
    let text = "kernel @k(v0 \"n\": i32) warps(1) {\nblock0:\n    return\n}\n";
    std::fs::write(&input, text).expect("the folder is writable");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("/dev/null", &link).expect("the folder takes links");
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_tilelift"))
        .args(["compile", "-t", "sm_80", "-o"])
        .args([&link, &input])
        .status()
        .expect("the command starts");
    assert!(status.success());
    let kind = std::fs::metadata(&link)
        .expect("the device is there")
        .file_type();
    assert!(kind.is_char_device(), "the null device became a file");
}

#[test]
fn options_that_mean_nothing_here_are_refused() {
    let cases: [(&[&str], &str); 6] = [
        (&["--num-ctas", "0"], "--num-ctas"),
        (&["--num-ctas", "3"], "--num-ctas: 3 CTAs for one program"),
        (
            &["--num-ctas", "2", "-w", "32"],
            "use 16 warps, or fewer CTAs",
        ),
        (&["--no-sanitize-overflow"], "is for .py files"),
        (&["-w", "3"], "-w 3: the number of warps is"),
        (&["-o", "./a.out", "--meta", "a.out"], "name the same file"),
    ];
    for (options, words) in cases {
        let args = [&["compile", "-", "-t", "sm_80"], options].concat();
        check_failure(&args, KERNEL, 2, words);
    }
}

#[test]
fn every_command_points_at_mistakes_alike() {
    let bad = "; test: run\n".to_owned() + &KERNEL.replace("fadd v7", "frob v7");
    let expected = "<stdin>:10:10: error[P04]: a kernel has no op `frob`\n   |\n10 |     v8 = frob v7, v7 : f32[256]\n   |          ^\n";
    for command in ["compile", "run", "test"] {
        let output = tilelift(&[command, "-"], &bad);
        assert_eq!(output.status.code(), Some(1), "{command}");
        assert!(
            stderr(&output).contains(expected),
            "{command}: {}",
            stderr(&output)
        );
    }
    // A broken rule has a place, too, and is said once.
    let bad = KERNEL.replace("fadd v7, v7", "fadd v8, v8");
    let output = tilelift(&["compile", "-"], &bad);
    let errors = stderr(&output);
    assert!(errors.starts_with("<stdin>:9:10: error[V11]:"), "{errors}");
    assert_eq!(errors.matches("error").count(), 1, "{errors}");
}

#[test]
fn what_a_terminal_would_obey_is_shown_as_escapes() {
    let odd = KERNEL.replace("fadd v7, v7", "\u{1b}[31mfadd v7\0, v7\u{9b}1m");
    for command in ["compile", "run", "test", "explain", "reduce"] {
        let output = tilelift(&[command, "-"], &odd);
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{command}: {errors}");
        let control = errors.chars().find(|&c| c.is_control() && c != '\n');
        assert_eq!(control, None, "{command}: {errors}");
        if command != "test" {
            assert!(
                errors.contains("\\u{1b}[31mfadd v7\\0, v7\\u{9b}1m"),
                "{errors}"
            );
        }
    }
    // Nor do names of files and of kernels reach it.
    let output = tilelift(&["compile", "-", "-n", "\u{1b}[31m"], KERNEL);
    assert!(stderr(&output).contains("no kernel `\\u{1b}[31m`"));
    let output = tilelift(&["compile", "/no/\u{1b}.tir"], "");
    assert!(stderr(&output).contains("/no/\\u{1b}.tir"));
}

#[test]
fn a_few_of_many_kernels_are_named() {
    let many: String = (0..1000)
        .map(|i| KERNEL.replace("@double", &format!("@k{i}")))
        .collect();
    let words = "<stdin> has several kernels (k0, k1, k2, k3, k4, k5, k6, k7 and 992 more); choose one with -n";
    check_failure(&["compile", "-"], &many, 2, words);
    let words = "there is no kernel `k`; there is k0, k1, k2, k3, k4, k5, k6, k7 and 992 more\n";
    check_failure(&["compile", "-", "-n", "k"], &many, 1, words);
}

#[test]
fn ptx_is_told_from_kernels() {
    let folder = Folder::new();
    let ptx = stdout(&tilelift(&["compile", "-", "-t", "sm_80"], KERNEL));
    let commented = format!("// a comment\n/* another\n */ // one more\n\n{ptx}");
    let named = folder.file("k.ptx", KERNEL);
    for command in ["compile", "explain", "reduce", "test"] {
        for text in [&ptx, &commented] {
            let words = "<stdin>: error: this is PTX, which is written and not read, but by `tilelift run`; give a .tir or a .py file\n";
            check_failure(&[command, "-"], text, 1, words);
        }
        let words = "k.ptx: error: this is PTX";
        check_failure(&[command, named.to_str().expect("plain")], "", 1, words);
    }
}

#[test]
fn text_that_is_no_utf8_is_located() {
    let folder = Folder::new();
    let path = folder.0.path().join("k.tir");
    std::fs::write(&path, b"; a\n; b \xff\n").expect("writable");
    let path = path.to_str().expect("plain");
    let words = format!("{path}:2: error: byte 8, 0xff, is no UTF-8");
    check_failure(&["compile", path], "", 1, &words);
    check_failure(&["run", path], "", 1, &words);
}

/// A file that is replaced keeps its mode, and one that may not be written is left alone.
#[cfg(unix)]
#[test]
fn modes_of_files_are_kept() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let out = folder.file("k.ptx", "old");
    let mode = |mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&out, permissions).expect("it is ours");
    };
    let args = ["compile", "-", "-o", out.to_str().expect("plain")];
    mode(0o640);
    assert!(tilelift(&args, KERNEL).status.success());
    let found = std::fs::metadata(&out).expect("it is there").permissions();
    assert_eq!(found.mode() & 0o777, 0o640);
    assert!(text(&out).contains(".entry"));
    mode(0o440);
    let before = text(&out);
    check_failure(&args, KERNEL, 1, "read-only");
    assert_eq!(text(&out), before);
    assert_eq!(folder.names(), ["k.ptx"]);
}

#[test]
fn kernels_become_rust_modules() {
    let output = tilelift(&["compile", "-", "-t", "sm_80", "--emit", "rust"], KERNEL);
    let text = stdout(&output);
    for line in [
        "pub struct Double(pub ::tilelift::runtime::Kernel);\n",
        "    pub n: ::core::primitive::i32,\n",
        "    target: \"sm_80\",\n",
        ".visible .entry double(",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn machine_code_stands_beside_the_ptx() {
    let wrong = tilelift(&["compile", "-", "--cubin"], KERNEL);
    assert_eq!(wrong.status.code(), Some(2));
    let args = ["compile", "-", "-t", "sm_80", "--emit", "rust", "--cubin"];
    let output = tilelift(&args, KERNEL);
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            text.contains("machine code needs a GPU of sm_80, or ptxas"),
            "{text}"
        );
        assert_ne!(
            std::env::var("TILELIFT_REQUIRE_PTXAS").as_deref(),
            Ok("1"),
            "{text}"
        );
        eprintln!("skipped: {text}");
        return;
    }
    let text = stdout(&output);
    assert!(
        text.contains("    cubin: ::core::option::Option::Some(CUBIN),\n"),
        "{text}"
    );
    assert!(
        text.contains("pub const CUBIN: &[::core::primitive::u8] = b\"\\x7fELF"),
        "{text}"
    );
}

#[test]
fn failures_of_files_that_run_together_come_in_their_order() {
    let folder = Folder::new();
    for i in 0..12 {
        let words = if i % 3 == 0 { "not there" } else { "double" };
        let text = format!("; test: opt\n{KERNEL}; check: {words}\n");
        folder.file(&format!("k{i:02}.tir"), &text);
    }
    let root = folder.0.path().to_str().expect("plain");
    for jobs in ["1", "4", "64"] {
        let output = tilelift(&["test", root, "-j", jobs], "");
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(stdout(&output), "8 passed, 4 failed\n");
        let message = stderr(&output);
        let places: Vec<_> = ["k00", "k03", "k06", "k09"]
            .iter()
            .map(|name| message.find(name).expect("it is told"))
            .collect();
        assert!(places.is_sorted(), "{message}");
    }
    check_failure(&["test", root, "-j", "0"], "", 2, "0");
}

#[test]
fn a_file_with_parameters_is_taken_with_its_first_values() {
    let folder = Folder::new();
    let text = KERNEL.replace("[256]", "[$N]");
    let path = folder.file("k.tir", &format!("; with: N=128\n; with: N=512\n{text}"));
    let path = path.to_str().expect("plain");
    let output = tilelift(&["compile", path, "--emit", "tile"], "");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("[128]"), "{}", stdout(&output));
    assert_eq!(stderr(&output), "note: taken with N=128, the first of 2\n");
    let path = folder.file("bad.tir", &format!("; with: M=128\n{text}"));
    let path = path.to_str().expect("plain");
    check_failure(&["compile", path], "", 1, "nothing says what `N` is");
}

#[test]
fn shells_learn_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = tilelift(&["completions", shell], "");
        assert!(output.status.success(), "{}", stderr(&output));
        let script = stdout(&output);
        for word in ["tilelift", "compile", "completions", "num-warps"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
    }
    check_failure(&["completions", "none"], "", 2, "possible values: bash");
}

#[test]
fn machine_code_and_its_text_are_written() {
    let folder = Folder::new();
    let path = folder.0.path().join("k.cubin");
    let path_text = path.to_str().expect("plain");
    let output = tilelift(
        &["compile", "-", "--emit", "cubin", "-o", path_text],
        KERNEL,
    );
    if !output.status.success() {
        let message = stderr(&output);
        assert!(message.contains("machine code needs a GPU"), "{message}");
        assert_ne!(std::env::var("TILELIFT_REQUIRE_PTXAS").as_deref(), Ok("1"));
        eprintln!("skipped: {message}");
        return;
    }
    let code = std::fs::read(&path).expect("it was written");
    assert!(code.starts_with(b"\x7fELF"));
    let disassemble = |program: &str| {
        Command::new(env!("CARGO_BIN_EXE_tilelift"))
            .args(["compile", "examples/kernels/softmax.py", "-n", "softmax"])
            .args(["-s", "*fp32, *fp32, i32, i32, 128", "--emit", "sass"])
            .env("TILELIFT_NVDISASM", program)
            .output()
            .expect("it runs")
    };
    let missing = disassemble("/none/nvdisasm");
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("--emit sass needs nvdisasm or cuobjdump"));
    // Any program that takes a file stands for a disassembler here: `ls` refuses the switch, `true` prints nothing.
    let refused = disassemble("ls");
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("the disassembler: "),
        "{}",
        stderr(&refused)
    );
    assert!(disassemble("true").status.success());
}

#[test]
fn a_file_in_another_encoding_is_told_and_not_left_out() {
    let folder = Folder::new();
    let path = folder.0.path().join("latin.py");
    std::fs::write(&path, b"# caf\xe9\n# run: k : grid(1)\n").expect("it can be written");
    let root = folder.0.path().to_str().expect("plain");
    let output = tilelift(&["test", root], "");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "0 passed, 1 failed\n");
    let message = stderr(&output);
    assert!(message.contains("latin.py"), "{message}");
    assert!(message.contains("UTF-8"), "{message}");
}
