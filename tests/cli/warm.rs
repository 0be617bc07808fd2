//! `tilelift warm`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use super::{Folder, stdout, text};

const MANIFEST: &str = "# By hand.
file k kernels.tir
kernel k double \"*fp32:16, i32\" target=sm_80
kernel k double \"*fp32:16, i32:16\" target=sm_80
";

/// What stands in for ptxas: an ELF file's first bytes before the PTX, or what is said in its place.
const PTXAS: &str = "#!/bin/sh
[ \"$1\" = --version ] && exit 0
echo \"$1\" >> \"$(dirname \"$0\")/calls\"
[ -z \"$PTXAS_HANGS\" ] || exec sleep 60
[ -z \"$PTXAS_CRASHES\" ] || exit 3
[ -z \"$PTXAS_LIES\" ] || { while [ \"$1\" != -o ]; do shift; done; echo text > \"$2\"; exit 0; }
[ -z \"$PTXAS_REFUSES\" ] || { echo 'line 7: no' >&2; exit 1; }
while [ \"$1\" != -o ]; do shift; done
printf '\\177ELF' > \"$2\"; cat \"$3\" >> \"$2\"
";

fn warm(folder: &Folder, args: &[&str], environment: &[(&str, &str)]) -> Output {
    let at = folder.0.path();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilelift"));
    command
        .arg("warm")
        .args(args)
        .current_dir(at)
        .env("TILELIFT_CACHE_DIR", at.join("cache"))
        .env("TILELIFT_PTXAS", at.join("ptxas"))
        .envs(environment.iter().copied());
    command.output().expect("it can be started")
}

fn set_up(manifest: &str) -> Folder {
    let folder = Folder::new();
    folder.file("kernels.tir", super::KERNEL);
    folder.file("m", manifest);
    let ptxas = folder.file("ptxas", PTXAS);
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(ptxas, executable).expect("it is ours");
    folder
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_cache_that_keeps_nothing_is_a_failure() {
    let folder = set_up(MANIFEST);
    let file = folder.0.path().join("m").display().to_string();
    let done = warm(
        &folder,
        &["m", "-a", "ptxas"],
        &[("TILELIFT_CACHE_DIR", &file)],
    );
    assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
    let told = stderr(&done);
    assert!(told.contains("is of no use"), "{told}");
    let error = "error: 6 of 6 entries are not in the cache ";
    assert!(
        told.contains(error) && told.contains("/m: cannot "),
        "{told}"
    );
    assert!(stdout(&done).ends_with("s: 2 compiled, 2 assembled\n"));
}

#[test]
fn what_is_not_kept_as_asked_is_a_failure() {
    let told = |environment: &[(&str, &str)], mode: u32| {
        let folder = set_up(MANIFEST);
        let cache = folder.0.path().join("cache");
        std::fs::create_dir(&cache).expect("it can be made");
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&cache, mode).expect("it is ours");
        let done = warm(&folder, &["m", "-a", "none"], environment);
        assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
        stderr(&done)
    };
    let bounded = told(&[("TILELIFT_CACHE_SIZE", "0")], 0o700);
    let error = "error: 4 of 4 entries are not in the cache ";
    assert!(bounded.contains(error), "{bounded}");
    assert!(bounded.contains("(TILELIFT_CACHE_SIZE)"), "{bounded}");
    let open = told(&[], 0o777);
    assert!(open.contains(error), "{open}");
    assert!(open.contains("others may write to it"), "{open}");
    // Before anything is made.
    for name in ["TILELIFT_CACHE_SHARED", "TILELIFT_CACHE_KEY"] {
        let wrong = told(&[(name, "nothing://of/the/kind")], 0o700);
        let error = format!("error: {name} is of no use, as the warning above says\n");
        assert!(wrong.ends_with(&error), "{wrong}");
    }
}

#[test]
fn kernels_are_made_once() {
    let folder = set_up(MANIFEST);
    let first = warm(&folder, &["m", "-j", "2", "-a", "ptxas"], &[]);
    assert!(first.status.success(), "{}", stderr(&first));
    let told = stdout(&first);
    assert!(
        told.starts_with("2 kernels in ") && told.ends_with("s: 2 compiled, 2 assembled\n"),
        "{told}"
    );
    let calls = text(&folder.0.path().join("calls"));
    assert_eq!(calls, "-arch=sm_80\n-arch=sm_80\n");
    // Nothing is left behind but the cache.
    assert_eq!(
        folder.names(),
        ["cache", "calls", "kernels.tir", "m", "ptxas"]
    );
    let again = warm(&folder, &["m", "--list", "-a", "ptxas"], &[]);
    let told = stdout(&again);
    assert!(told.ends_with("s: 0 compiled, 0 assembled\n"), "{told}");
    let line = told.lines().nth(1).unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(
        words,
        [
            "double",
            "*fp32:16,",
            "i32",
            "sm_80",
            "there",
            "0.0",
            "there",
            "0.0"
        ]
    );
    let other = warm(
        &folder,
        &["m", "m", "-t", "sm_90", "--json", "-a", "none"],
        &[],
    );
    let report: serde_json::Value = serde_json::from_slice(&other.stdout).expect("it is JSON");
    let rows = report["rows"].as_array().expect("rows");
    let origins: Vec<&str> = rows.iter().filter_map(|row| row["ptx"].as_str()).collect();
    assert_eq!(origins, ["made", "made", "disk", "disk"]);
    assert_eq!(
        (&rows[0]["target"], &rows[0]["code"]),
        (&"sm_90".into(), &serde_json::Value::Null)
    );
    assert_eq!(rows[0]["place"], "m:3");
}

#[test]
fn what_an_assembler_does_is_told() {
    let folder = set_up(MANIFEST);
    let refused = warm(&folder, &["m", "-a", "ptxas"], &[("PTXAS_REFUSES", "1")]);
    assert_eq!(refused.status.code(), Some(1));
    let told = stderr(&refused);
    assert!(
        told.contains("m:3: error: double: ptxas: line 7: no"),
        "{told}"
    );
    assert!(stdout(&refused).ends_with("2 compiled, 0 assembled, 2 failed\n"));
    for (variable, problem) in [
        (
            "PTXAS_CRASHES",
            "ptxas: it ended without a word (exit status: 3)",
        ),
        ("PTXAS_LIES", "ptxas: what it wrote is no machine code"),
    ] {
        let failed = warm(&folder, &["m", "-a", "ptxas"], &[(variable, "1")]);
        assert_eq!(failed.status.code(), Some(1));
        assert!(stderr(&failed).contains(problem), "{}", stderr(&failed));
    }
    let late = warm(
        &folder,
        &["m", "-a", "ptxas", "--limit", "1"],
        &[("PTXAS_HANGS", "1")],
    );
    let told = stderr(&late);
    assert!(
        told.contains("ptxas had not ended after 1 s and was stopped"),
        "{told}"
    );
    let none = warm(
        &folder,
        &["m", "-a", "ptxas"],
        &[("TILELIFT_PTXAS", "/nowhere/ptxas")],
    );
    let told = stderr(&none);
    assert!(told.contains("/nowhere/ptxas cannot be started"), "{told}");
    let found = warm(&folder, &["m"], &[("TILELIFT_PTXAS", "/nowhere/ptxas")]);
    assert!(found.status.success());
    let told = stderr(&found);
    assert!(
        told.contains("TILELIFT_PTXAS: /nowhere/ptxas cannot be started"),
        "{told}"
    );
    assert!(stdout(&found).ends_with("0 compiled, 0 assembled, 2 left to the driver of the GPU\n"));
}

#[test]
fn mistakes_are_told_before_anything_is_made() {
    for (manifest, args, code, problem) in [
        (
            "kernel k double",
            &["m"][..],
            1,
            "m:1: error: such a line reads",
        ),
        (
            "file k other.tir",
            &["m"],
            1,
            "m:1: error: other.tir: it cannot be read",
        ),
        (MANIFEST, &["m", "n"], 1, "n: error: it cannot be read"),
        (MANIFEST, &["m", "-t", "sm_1"], 2, "sm_1"),
        (MANIFEST, &[], 2, "MANIFEST"),
    ] {
        let folder = set_up(manifest);
        let output = warm(&folder, args, &[]);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert!(told.contains(problem), "{told}");
        assert!(!Path::new(&folder.0.path().join("cache")).exists());
    }
    let folder = set_up(MANIFEST);
    let off = warm(&folder, &["m"], &[("TILELIFT_CACHE", "off")]);
    assert!(stderr(&off).contains("the cache is off"));
}

#[test]
fn a_kernel_that_is_not_there_leaves_the_others() {
    let wrong = "kernel k doubel \"*fp32:16, i32\" target=sm_80\n";
    let folder = set_up(&(MANIFEST.to_owned() + wrong));
    let done = warm(&folder, &["m", "-a", "ptxas"], &[]);
    assert_eq!(done.status.code(), Some(1));
    let told = stderr(&done);
    assert!(
        told.contains("m:5: error: doubel: there is no kernel `doubel`; there is double"),
        "{told}"
    );
    let table = stdout(&done);
    assert!(
        table.starts_with("3 kernels in ")
            && table.ends_with("s: 2 compiled, 2 assembled, 1 failed\n"),
        "{table}"
    );
}
