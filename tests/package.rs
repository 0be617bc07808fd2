//! What is published: its size, and the licences of what it is built from.

use std::collections::BTreeSet;
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
    let tops = ["src", "isa", "docs"];
    let foreign: Vec<&&str> = files
        .iter()
        .filter(|file| {
            file.split_once('/')
                .is_some_and(|(top, _)| !tops.contains(&top))
        })
        .collect();
    assert!(foreign.is_empty(), "in the package: {foreign:?}");
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
