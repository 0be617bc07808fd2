//! Rules about the source text itself: the direction of modules, sizes of files, what must not be written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Modules from the bottom up. A module uses only itself and those above it in this list.
const ORDER: &[&str] = &[
    "tracing_spans",
    "error_codes",
    "num",
    "grid",
    "limits",
    "settings",
    "linear_layout",
    "ir",
    "text",
    "device_print",
    "analysis",
    "verify",
    "error",
    "layout",
    "tile",
    "expand",
    "thread",
    "regalloc",
    "machine",
    "ptx",
    "pipeline",
    "compile",
    "metadata",
    "stages",
    "interp",
    "emu",
    "predict",
    "front",
    "driver",
    "runtime",
    "tune",
    "warm",
    "testing",
    "build",
    "reduce_test_case",
    "fuzzing",
    "filetest",
    "cli",
    "prelude",
    "guide",
    "lib",
    "bin",
];

/// The rooms that users see; all others are private or hidden.
const FACE: &[&str] = &[
    "limits",
    "settings",
    "ir",
    "text",
    "device_print",
    "verify",
    "error",
    "pipeline",
    "compile",
    "stages",
    "metadata",
    "interp",
    "emu",
    "predict",
    "front",
    "filetest",
    "driver",
    "runtime",
    "tune",
    "warm",
    "testing",
    "build",
    "prelude",
    "fuzzing",
    "guide",
];

/// Panics outside of tests, with their reasons.
const PANICS: &[(&str, &str)] = &[
    (
        "src/driver/symbols.rs",
        "in a constant: the compiler evaluates it",
    ),
    (
        "src/fuzzing/generate/mod.rs",
        "a generator that makes invalid programs is a failed test",
    ),
];

/// Names that types of several rooms share because they mean the same, and why there are several.
const SHARED_NAMES: &[(&str, &[&str])] = &[
    (
        "each executor has its own launch, memory and faults",
        &[
            "Arg",
            "FaultSite",
            "Launch",
            "Memory",
            "MemoryError",
            "Options",
            "Stats",
        ],
    ),
    (
        "the emulator and the driver layer know nothing of the compiler, and have to do with the same things",
        &[
            "Function",
            "Module",
            "Param",
            "ParseError",
            "PtxVersion",
            "SourceLine",
            "TensorElement",
            "TensorMap",
        ],
    ),
    (
        "the run time's stands for the driver's or for the emulator's",
        &[
            "Buffer", "Copying", "Device", "Element", "Event", "Graph", "Pinned", "Stream",
        ],
    ),
    (
        "the language's is that of the text, the other that of a launch or of the IR",
        &["Args", "Argument", "Constant", "Diagnostic", "Value"],
    ),
    ("why what the room does is not done", &["Failure"]),
    (
        "a launch that is judged: one that a test states, or a random one",
        &["Case"],
    ),
];

/// Longest file in lines.
const MAX_LINES: usize = 800;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below a folder with this ending, sorted.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let path = entry.expect("the folder can be read").path();
            // What is built beside the sources is not ours.
            if path.is_dir() {
                if !path.ends_with("target") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|e| e == ending) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn rust_files() -> Vec<PathBuf> {
    ["src", "tests", "benches", "examples", "isa", "fuzz"]
        .iter()
        .flat_map(|folder| files(folder, "rs"))
        .collect()
}

fn name(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap_or(path)
        .display()
        .to_string()
}

/// The text of a file; tests have some that are no UTF-8.
fn read(path: &Path) -> String {
    let bytes = std::fs::read(path).expect("the file can be read");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The lines of a file that are neither comment nor test code, with their numbers. Tests of a file stand at
/// its end, as `mod tests`.
fn code_lines(path: &Path) -> Vec<(usize, String)> {
    if path.components().any(|part| {
        let part = part.as_os_str();
        part == "tests" || part == "tests.rs" || part == "testing.rs"
    }) {
        return Vec::new();
    }
    let text = read(path);
    let mut lines = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.starts_with("mod tests") && line.ends_with('{') {
            break;
        }
        if !line.trim_start().starts_with("//") {
            lines.push((i + 1, line.to_owned()));
        }
    }
    lines
}

/// The module of the first level that a source file belongs to.
fn module(path: &Path) -> String {
    let path = path
        .strip_prefix(root().join("src"))
        .expect("a source file");
    let first = path.components().next().expect("a file name").as_os_str();
    let first = first.to_string_lossy();
    first.strip_suffix(".rs").unwrap_or(&first).to_owned()
}

/// The modules of the first level that a line names after `crate::`.
fn uses(line: &str) -> Vec<String> {
    line.match_indices("crate::")
        .filter(|(i, _)| !line[..*i].ends_with('$'))
        .map(|(i, found)| {
            let rest = &line[i + found.len()..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            rest[..end.unwrap_or(rest.len())].to_owned()
        })
        .filter(|name| !name.is_empty())
        .collect()
}

#[test]
fn modules_use_only_what_stands_above_them() {
    let rank: BTreeMap<&str, usize> = ORDER.iter().enumerate().map(|(i, &m)| (m, i)).collect();
    let mut wrong = Vec::new();
    for path in files("src", "rs") {
        let from = module(&path);
        let Some(&own) = rank.get(from.as_str()) else {
            wrong.push(format!("{}: module `{from}` is not in ORDER", name(&path)));
            continue;
        };
        for (number, line) in code_lines(&path) {
            for to in uses(&line) {
                if rank.get(to.as_str()).is_none_or(|&other| other <= own) {
                    continue;
                }
                wrong.push(format!("{}:{number}: {from} uses {to}", name(&path)));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// What a kernel is built from is known without what launches it.
#[test]
fn building_knows_nothing_of_launches() {
    let knows = |path: &PathBuf| {
        let lines = code_lines(path);
        lines.iter().any(|(_, line)| has_word(line, "KernelInner"))
    };
    let build = files("src/runtime/build", "rs");
    let wrong: Vec<String> = build.iter().filter(|p| knows(p)).map(|p| name(p)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    // A new name for it would let everything pass.
    assert!(files("src/runtime/execute", "rs").iter().any(knows));
}

/// A type that others than its own room can name, as a line declares it.
fn declared_type(line: &str) -> Option<&str> {
    let rest = line
        .strip_prefix("pub(crate) ")
        .or_else(|| line.strip_prefix("pub "))?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let mut words = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    matches!(
        words.next()?,
        "struct" | "enum" | "trait" | "type" | "union"
    )
    .then(|| words.next())?
}

/// What a reader meets in several rooms under one name is one thing.
#[test]
fn a_name_has_one_meaning() {
    let mut rooms: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files("src", "rs") {
        for (_, line) in code_lines(&path) {
            if let Some(name) = declared_type(&line) {
                let known = rooms.entry(name.to_owned()).or_default();
                known.insert(module(&path));
            }
        }
    }
    rooms.retain(|_, rooms| rooms.len() > 1);
    let found: BTreeSet<&str> = rooms.keys().map(String::as_str).collect();
    let shared: BTreeSet<&str> = SHARED_NAMES
        .iter()
        .flat_map(|(_, names)| *names)
        .copied()
        .collect();
    let new: Vec<String> = found
        .difference(&shared)
        .map(|&name| format!("{name}: {:?}", rooms[name]))
        .collect();
    assert!(
        new.is_empty(),
        "types of several rooms have one name; if they mean the same, say in SHARED_NAMES why there are several: {new:#?}"
    );
    let gone: Vec<&&str> = shared.difference(&found).collect();
    assert!(
        gone.is_empty(),
        "SHARED_NAMES has names of one room: {gone:?}"
    );
}

/// Who may read what is promised of arguments without a record that it was asked for: who prints, checks or keeps it, the analysis
/// that keeps the record, and what comes behind it, where functions promise no more than was asked for.
const READS_PROMISES: &[&str] = &[
    "src/analysis/axis/exponent.rs",
    "src/expand/mod.rs",
    "src/fuzzing/batch.rs",
    "src/interp/mod.rs",
    "src/ptx/module.rs",
    "src/runtime/api/program.rs",
    "src/runtime/build/rust_module.rs",
    "src/text/print.rs",
    "src/verify/function.rs",
    "src/verify/rings/machine.rs",
];

#[test]
fn code_depends_on_promises_only_by_asking_for_them() {
    let reads = |path: &PathBuf| {
        let mut lines = code_lines(path).into_iter().map(|(_, line)| line);
        let reads =
            |line: String| line.contains(".promised()") || line.contains("ParamHints::promised");
        lines.any(reads)
    };
    let found = files("src", "rs").into_iter().filter(reads);
    let found: BTreeSet<String> = found.map(|path| name(&path)).collect();
    assert_eq!(
        found,
        READS_PROMISES.iter().map(|&path| path.to_owned()).collect()
    );
}

/// A room that others may rely on is a decision: it stands in the list above and on the front page.
#[test]
fn the_public_face_is_what_was_decided() {
    let text = read(&root().join("src/lib.rs"));
    let mut shown = Vec::new();
    let mut hidden = false;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("pub mod ") {
            if !hidden {
                shown.push(name.trim_end_matches(';'));
            }
            hidden = false;
        }
        hidden |= line == "#[doc(hidden)]";
    }
    let face: BTreeSet<&str> = FACE.iter().copied().collect();
    assert_eq!(shown.iter().copied().collect::<BTreeSet<_>>(), face);
    let page: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("//!"))
        .collect();
    let page = page.join("\n");
    for room in FACE {
        let named = [format!("`{room}`"), format!("`{room}::")];
        assert!(
            named.iter().any(|name| page.contains(name)),
            "the front page does not name `{room}`"
        );
    }
}

#[test]
fn files_are_not_too_long() {
    let long: Vec<String> = rust_files()
        .into_iter()
        .map(|path| (read(&path).lines().count(), path))
        .filter(|(lines, _)| *lines > MAX_LINES)
        .map(|(lines, path)| format!("{}: {lines} lines", name(&path)))
        .collect();
    assert!(long.is_empty(), "\n{}", long.join("\n"));
}

#[test]
fn source_is_ascii() {
    let mut wrong = Vec::new();
    for path in rust_files() {
        // Tests may hold any text as data.
        for (number, line) in code_lines(&path) {
            if !line.is_ascii() {
                wrong.push(format!("{}:{number}: {line}", name(&path)));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Words that source must not hold, put together here so that this file does not hold them.
#[test]
fn forbidden_words_are_absent() {
    let attribute = |word: &str| format!("#[{word}");
    let anywhere = [
        attribute("ignore"),
        attribute("should_panic"),
        ["todo", "!("].concat(),
        ["unimplemented", "!("].concat(),
        ["dbg", "!("].concat(),
    ];
    let mut wrong = Vec::new();
    for path in rust_files() {
        for (i, line) in read(&path).lines().enumerate() {
            for word in &anywhere {
                if line.contains(word.as_str()) {
                    wrong.push(format!("{}:{}: {word}", name(&path), i + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Whether a line holds the word by itself.
fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.match_indices(word).any(|(i, _)| {
        let before = line[..i].chars().next_back();
        let after = line[i + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[test]
fn the_library_does_not_panic_without_a_reason() {
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for path in files("src", "rs") {
        let name = name(&path);
        for (number, line) in code_lines(&path) {
            if line.contains(".unwrap()") {
                wrong.push(format!("{name}:{number}: unwrap without a reason"));
            }
            if line.contains("panic!(") {
                match PANICS.iter().find(|&&(file, _)| file == name) {
                    Some(exception) => _ = used.insert(*exception),
                    None => wrong.push(format!("{name}:{number}: a panic")),
                }
            }
        }
    }
    for exception in PANICS {
        if !used.contains(exception) {
            wrong.push(format!(
                "the exception {exception:?} is not needed any more"
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn only_the_driver_is_unsafe() {
    let mut wrong = Vec::new();
    for path in files("src", "rs") {
        if module(&path) == "driver" {
            continue;
        }
        for (number, line) in code_lines(&path) {
            // The word may stand in a list of Rust's keywords.
            if has_word(&line.replace("\"unsafe\"", ""), "unsafe") {
                wrong.push(format!("{}:{number}: unsafe", name(&path)));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// What a macro writes may or may not need a lint's permission, so only there `allow` is right; elsewhere `expect` is.
#[test]
fn lints_are_allowed_in_macros_only() {
    let words = ["#[", "#!["].map(|start| format!("{start}allow("));
    let mut wrong = Vec::new();
    for path in rust_files() {
        let mut in_macro = false;
        for (i, line) in read(&path).lines().enumerate() {
            in_macro |= line.starts_with("macro_rules!");
            in_macro &= line != "}";
            if !in_macro && words.iter().any(|word| line.contains(word.as_str())) {
                wrong.push(format!("{}:{}: {line}", name(&path), i + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn no_path_of_a_machine_is_written_down() {
    let homes = ["work", "home", "root", "Users", "opt"].map(|folder| format!("/{folder}/"));
    let mut texts = rust_files();
    for ending in ["tir", "ptx", "txt", "py", "toml", "isle", "md"] {
        for folder in ["src", "tests", "benches", "examples", "isa", "fuzz", "docs"] {
            texts.extend(files(folder, ending));
        }
    }
    for folder in [".ci", ".cargo"] {
        let entries = std::fs::read_dir(root().join(folder)).expect("the folder is there");
        let paths = entries.map(|entry| entry.expect("the folder can be read").path());
        texts.extend(paths.filter(|path| path.is_file()));
    }
    texts.extend(["Cargo.toml", "README.md"].map(|file| root().join(file)));
    let mut wrong = Vec::new();
    for path in texts {
        for (i, line) in read(&path).lines().enumerate() {
            for home in &homes {
                // Part of a longer path or of an address is something else.
                let starts = line.match_indices(home.as_str()).any(|(at, _)| {
                    let before = line[..at].chars().next_back();
                    !before.is_some_and(|c| c.is_ascii_alphanumeric() || "./}_-".contains(c))
                });
                if starts {
                    wrong.push(format!("{}:{}: {line}", name(&path), i + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_module_says_what_it_is_for() {
    let silent: Vec<String> = files("src", "rs")
        .into_iter()
        .filter(|path| !read(path).starts_with("//!"))
        .map(|path| name(&path))
        .collect();
    assert!(silent.is_empty(), "no module doc:\n{}", silent.join("\n"));
}

#[test]
fn names_of_file_tests_are_plain() {
    for path in files("tests/filetests", "tir") {
        let stem = path.file_stem().expect("a name").to_string_lossy();
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        assert!(stem.chars().all(plain), "{}", name(&path));
    }
}

/// Pages for people name files and folders that are there.
#[test]
fn what_pages_name_is_there() {
    let roots = [
        "src/",
        "tests/",
        "isa/",
        "fuzz/",
        "benches/",
        "examples/",
        "docs/",
        ".ci/",
    ];
    let mut pages = files("src/guide", "md");
    assert!(pages.len() > 20, "the guide has {} pages", pages.len());
    pages.extend(
        [
            "CHANGELOG.md",
            "CONTRIBUTING.md",
            "README.md",
            "benches/README.md",
            "fuzz/README.md",
            // The table of limits names the tests that hold them.
            "src/limits.rs",
        ]
        .map(|page| root().join(page)),
    );
    // In the crate of whoever reads the guide.
    let readers_own = ["src/main.rs"];
    let mut missing = Vec::new();
    for page in pages {
        for word in read(&page).split(['`', '(', ')', ' ', '\n']) {
            let path = word.trim_end_matches([',', '.', ':', ';']);
            let is_path = roots.iter().any(|root| path.starts_with(root));
            let has_pattern = path.contains(['*', '{', '<', '"']);
            let path = path.split(['#', ':']).next().unwrap_or_default();
            let is_there = root().join(path).exists() || readers_own.contains(&path);
            if is_path && !has_pattern && !is_there {
                missing.push(format!("{}: {path}", name(&page)));
            }
        }
    }
    assert!(missing.is_empty(), "not there:\n{}", missing.join("\n"));
}

/// What the guide shows of an application that is compiled ahead of time is the example, which `.ci/applications` builds and runs.
#[test]
fn the_page_about_ahead_of_time_shows_the_example() {
    let page = read(&root().join("src/guide/ahead.md"));
    let (_, rest) = page
        .split_once("\n# In a build script\n")
        .expect("the section");
    let (section, _) = rest
        .split_once("\n# Without a build script\n")
        .expect("the next section");
    let example = ["add.py", "build.rs", "src/main.rs", "Cargo.toml"]
        .map(|file| read(&root().join("examples/ahead").join(file)))
        // Outside of the repository the crate has a version.
        .map(|text| text.replace("path = \"../..\"", "version = \"0.1\""));
    let blocks: Vec<&str> = section.split("\n```").skip(1).step_by(2).collect();
    assert_eq!(
        blocks.len(),
        4,
        "a kernel, a build script, a manifest and a program"
    );
    for block in blocks {
        let (_, text) = block.split_once('\n').expect("lines");
        let is_there = example.iter().any(|file| file.contains(text));
        assert!(is_there, "in no file of examples/ahead:\n{text}");
    }
}
