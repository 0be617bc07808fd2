//! Assembles PTX with `ptxas`, wherever one can be found: named by `TILELIFT_PTXAS`, or on the path.
//!
//! The assembler of CUDA 13 has forgotten sm_70. Where `TILELIFT_PTXAS_SM70` names an older one, that assembles for
//! sm_70; else, if the only one does not know the target, it is skipped with a word on stderr.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The assembler, if there is one. With `TILELIFT_REQUIRE_PTXAS=1` its absence is a failure.
pub(crate) fn find() -> Option<&'static PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let named = std::env::var_os("TILELIFT_PTXAS")
            .map_or_else(|| PathBuf::from("ptxas"), PathBuf::from);
        let answers = Command::new(&named)
            .arg("--version")
            .output()
            .is_ok_and(|o| o.status.success());
        answers.then_some(named)
    });
    let required = std::env::var("TILELIFT_REQUIRE_PTXAS").is_ok_and(|v| v == "1");
    assert!(
        found.is_some() || !required,
        "ptxas is required and was not found"
    );
    if found.is_none() {
        eprintln!("skipped: no ptxas found (set TILELIFT_PTXAS)");
    }
    found.as_ref()
}

/// The assembler for an architecture, if there is one.
pub(crate) fn find_for(arch: &str) -> Option<&'static PathBuf> {
    let usual = find()?;
    if arch != "sm_70" {
        return Some(usual);
    }
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let named = std::env::var_os("TILELIFT_PTXAS_SM70").map(PathBuf::from);
        let is_named = named.is_some();
        let candidate = named.unwrap_or_else(|| usual.clone());
        let help = Command::new(&candidate).arg("--help").output();
        let knows = help.is_ok_and(|o| String::from_utf8_lossy(&o.stdout).contains("sm_70"));
        assert!(
            knows || !is_named,
            "TILELIFT_PTXAS_SM70 names no ptxas that knows sm_70"
        );
        if !knows {
            eprintln!("skipped: no ptxas that knows sm_70 (set TILELIFT_PTXAS_SM70)");
        }
        knows.then_some(candidate)
    });
    found.as_ref()
}

/// What the assembler reports of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// Registers of a thread.
    pub(crate) registers: u32,
    /// Bytes spilled by a thread, stores and loads.
    pub(crate) spilled: u32,
}

/// Assembles a text for an architecture (`sm_80`); none without an assembler.
///
/// # Panics
/// If the assembler does not accept the text, or serialises products that go on asynchronously: with its messages and the text.
pub(crate) fn assemble(ptx: &str, arch: &str) -> Option<Report> {
    assemble_with(ptx, arch, &[])
}

/// The same with more options.
///
/// # Panics
/// Likewise.
pub(crate) fn assemble_with(ptx: &str, arch: &str, options: &[&str]) -> Option<Report> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let assembler = find_for(arch)?;
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("tilelift-{}-{id}.ptx", std::process::id()));
    std::fs::write(&file, ptx).expect("the temporary directory can be written");
    let output = Command::new(assembler)
        .args(["-v", "-arch", arch])
        .args(options)
        .arg("-o")
        .arg(if cfg!(windows) { "NUL" } else { "/dev/null" })
        .arg(&file)
        .output()
        .expect("ptxas answered before");
    std::fs::remove_file(&file).expect("the file was written above");
    let messages = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "ptxas -arch {arch} failed:\n{messages}\n{ptx}"
    );
    // Products of four warps that it cannot leave under way it waits for one by one (C7510 to C7519): right, and slow. Without
    // optimisation it does so always.
    let mut lines = messages.lines();
    if let Some(slow) = lines
        .find(|line| line.contains("(C75"))
        .filter(|_| !options.contains(&"-O0"))
    {
        panic!("ptxas -arch {arch}: {slow}\n{ptx}");
    }
    let number_before = |what: &str| {
        let (before, _) = messages.split_once(what)?;
        before
            .rsplit(|c: char| !c.is_ascii_digit())
            .find(|s| !s.is_empty())?
            .parse::<u32>()
            .ok()
    };
    Some(Report {
        registers: number_before(" registers").unwrap_or(0),
        spilled: number_before(" bytes spill stores").unwrap_or(0)
            + number_before(" bytes spill loads").unwrap_or(0),
    })
}
