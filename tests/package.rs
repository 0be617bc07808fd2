//! What is published: its size, and the licences of what it is built from.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn cargo(args: &[&str]) -> String {
    let (text, errors) = tried(args);
    text.unwrap_or_else(|| panic!("cargo {}: {errors}", args.join(" ")))
}

/// What cargo writes, if it succeeds, and what it says.
fn tried(args: &[&str]) -> (Option<String>, String) {
    let output = Command::new(env!("CARGO"))
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo is there");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = String::from_utf8(output.stdout).expect("cargo writes UTF-8");
    (output.status.success().then_some(text), errors)
}

#[test]
fn the_package_is_sources_and_what_documents_them() {
    let list = cargo(&["package", "--list", "--allow-dirty", "--offline"]);
    let files: BTreeSet<&str> = list.lines().collect();
    for needed in [
        "Cargo.toml",
        "CHANGELOG.md",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "README.md",
        "isa/build.rs",
        "src/guide/start.md",
        "src/lib.rs",
    ] {
        assert!(files.contains(needed), "{needed} is not in the package");
    }
    // What the README links is there wherever it is read.
    let readme = include_str!("../README.md");
    let links = readme.split("](").skip(1).filter_map(|rest| {
        let (link, _) = rest.split_once(')')?;
        (!link.contains("://") && !link.starts_with('#')).then_some(link)
    });
    let links: Vec<&str> = links.collect();
    assert!(links.contains(&"docs/softmax.svg"), "{links:?}");
    for link in links {
        assert!(
            files.contains(link),
            "README links {link}, which is not in the package"
        );
    }
    let read = what_sources_read();
    let missing: Vec<&String> = read
        .iter()
        .filter(|file| !files.contains(file.as_str()))
        .collect();
    assert!(missing.is_empty(), "not in the package: {missing:?}");
    let tops = ["src", "isa", "docs"];
    let foreign: Vec<&&str> = files
        .iter()
        .filter(|file| {
            file.split_once('/')
                .is_some_and(|(top, _)| !tops.contains(&top) && !read.contains(**file))
        })
        .collect();
    assert!(foreign.is_empty(), "in the package: {foreign:?}");
}

/// The files beside the sources that are part of them or of their unit tests, by their paths.
fn what_sources_read() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut read = BTreeSet::new();
    let mut folders = vec![root.join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).expect("the file can be read");
            let text = String::from_utf8_lossy(&bytes);
            let folder = path.parent().expect("a file is in a folder");
            for (start, base) in [
                ("include_str!(\"", folder),
                ("include_bytes!(\"", folder),
                ("#[path = \"", folder),
                // An absolute path, made of the root and what follows.
                ("env!(\"CARGO_MANIFEST_DIR\"), \"/", root),
            ] {
                for (at, _) in text.match_indices(start) {
                    let rest = &text[at + start.len()..];
                    let name = rest.split('"').next().unwrap_or_default();
                    let file = base.join(name).canonicalize();
                    let file = file.unwrap_or_else(|e| panic!("{}: {name}: {e}", path.display()));
                    let file = file.strip_prefix(root.canonicalize().expect("it is there"));
                    let file = file.expect("a file of this repository");
                    read.insert(file.display().to_string().replace('\\', "/"));
                }
            }
        }
    }
    for known in ["tests/common/ptxas.rs", "fuzz/README.md", "README.md"] {
        assert!(read.contains(known), "{known} is not seen to be read");
    }
    read
}

/// Whether an expression of SPDX can be met with these licences alone. `/` is the old way to write `OR`.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let expression = expression.replace('/', " OR ");
    let inner = |part: &str| {
        let part = part.trim();
        let part = part
            .strip_prefix('(')
            .and_then(|p| p.strip_suffix(')'))
            .unwrap_or(part);
        part.split(" OR ")
            .any(|name| allowed.contains(&name.trim()))
    };
    match expression.contains(" AND ") {
        true => expression.split(" AND ").all(inner),
        false => inner(&expression),
    }
}

#[test]
fn licences_are_those_that_are_allowed() {
    let deny = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/.cargo/deny.toml"))
        .expect("the list is there");
    let start = deny.find("allow = [").expect("it allows licences");
    let list = &deny[start..start + deny[start..].find(']').expect("the list ends")];
    let allowed: Vec<&str> = list.split('"').skip(1).step_by(2).collect();

    assert!(is_allowed("(MIT OR GPL-3.0) AND Zlib", &["MIT", "Zlib"]));
    assert!(!is_allowed("MIT AND GPL-3.0", &["MIT"]));
    assert!(!is_allowed("GPL-3.0", &allowed));

    let host = cargo(&["-vV"]);
    let host = host.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.expect("cargo names its host");
    let metadata = |offline: &[&str]| {
        let args = ["metadata", "--format-version=1", "--all-features"];
        tried(&[&args[..], &["--filter-platform", host], offline].concat())
    };
    // A fresh machine has the packages of the default features alone, and may have no way to the others.
    let (mut found, _) = metadata(&["--offline"]);
    if found.is_none() {
        let (text, errors) = metadata(&["--locked"]);
        if text.is_none() {
            eprintln!("skipped: the packages of all features cannot be had: {errors}");
            return;
        }
        found = text;
    }
    let metadata = found.unwrap_or_default();
    let metadata: serde_json::Value = serde_json::from_str(&metadata).expect("it is JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    assert!(packages.len() > 50, "only {} packages", packages.len());
    let wrong: Vec<String> = packages
        .iter()
        .filter(|package| !is_allowed(package["license"].as_str().unwrap_or("none"), &allowed))
        .map(|package| format!("{}: {}", package["name"], package["license"]))
        .collect();
    assert!(wrong.is_empty(), "not allowed:\n{}", wrong.join("\n"));
}
