//! Copies the project and plants a sample of mutants; those that do not compile give their place to others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::sites::{Site, sites};
use crate::{BY_HAND, GROUPS};

/// A planted mutant, as written to `mutants.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Mutant {
    /// From 1.
    pub(crate) number: usize,
    pub(crate) group: String,
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) what: String,
}

/// What the library gets beside the mutants: which one is on, and, for a trace, which ones were reached.
const SWITCH: &str = r#"
/// Whether a planted mutant is on.
#[inline]
pub(crate) fn mutant(number: u32) -> bool {
    use std::io::Write as _;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};
    static ON: OnceLock<(u32, Option<String>)> = OnceLock::new();
    static SEEN: [AtomicBool; 4096] = [const { AtomicBool::new(false) }; 4096];
    let (on, trace) = ON.get_or_init(|| {
        let on = std::env::var("MUTANT").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
        (on, std::env::var("MUTANT_TRACE").ok())
    });
    if let Some(path) = trace
        && !SEEN[number as usize].swap(true, Ordering::Relaxed)
    {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(format!("{number}\n").as_bytes()));
    }
    *on == number
}
"#;

/// A fault written by hand: `old`, which a file holds once, becomes `new`.
struct Fault {
    file: String,
    line: usize,
    old: String,
    new: String,
    names: Vec<String>,
}

impl Fault {
    /// What takes the old text's place, with the numbers of the faults from `first` on.
    fn numbered(&self, first: usize) -> String {
        let mut new = self.new.clone();
        // From the last one, as N1 is the begin of N10.
        for index in (0..self.names.len()).rev() {
            new = new.replace(&format!("N{}", index + 1), &(first + index).to_string());
        }
        new
    }
}

/// The faults of a file in the format of `faults.txt`; an error that lists those which the sources have gone on without.
fn faults(tree: &Path, path: &Path) -> Result<Vec<Fault>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut faults = Vec::new();
    let mut stale = Vec::new();
    let mut names = Vec::new();
    let mut lines = text.lines();
    let mut previous = "";
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("== ") {
            names.push(name.to_owned());
        }
        if line == "<<<<" {
            let mut part = |end: &str| -> String {
                let lines: Vec<&str> = lines.by_ref().take_while(|&l| l != end).collect();
                lines.join("\n")
            };
            let (old, new) = (part("===="), part(">>>>"));
            let there = fs::read_to_string(tree.join(previous)).context(previous.to_owned())?;
            let names = std::mem::take(&mut names);
            let mut places = there.match_indices(&old);
            match (places.next(), places.next()) {
                (Some((at, _)), None) => faults.push(Fault {
                    file: previous.to_owned(),
                    line: there[..at].matches('\n').count() + 1,
                    old,
                    new,
                    names,
                }),
                _ => stale.push(format!("{previous} does not hold this once:\n{old}")),
            }
        }
        previous = line;
    }
    ensure!(stale.is_empty(), "{}", stale.join("\n"));
    Ok(faults)
}

/// Plants the faults behind the sample, and gives them the numbers from there on.
fn plant_faults(tree: &Path, faults: Vec<Fault>, mutants: &mut Vec<Mutant>) -> Result<()> {
    for fault in faults {
        let path = tree.join(&fault.file);
        let there = fs::read_to_string(&path)?;
        // Of two faults in one place the second finds it changed.
        ensure!(
            there.contains(&fault.old),
            "another fault is planted there:\n{}",
            fault.old
        );
        let new = fault.numbered(mutants.len() + 1);
        fs::write(&path, there.replacen(&fault.old, &new, 1))?;
        mutants.extend(
            fault
                .names
                .into_iter()
                .enumerate()
                .map(|(index, what)| Mutant {
                    number: mutants.len() + 1 + index,
                    group: BY_HAND.to_owned(),
                    file: fault.file.clone(),
                    line: fault.line,
                    what,
                })
                .collect::<Vec<_>>(),
        );
    }
    Ok(())
}

/// Which mutants are drawn.
pub(crate) struct Sample {
    pub(crate) seed: u64,
    pub(crate) count: usize,
    /// Their groups, as positions in [`GROUPS`].
    pub(crate) groups: Vec<usize>,
}

/// The groups of these names, or all where there is none.
pub(crate) fn groups(names: &[String]) -> Result<Vec<usize>> {
    if names.is_empty() {
        return Ok((0..GROUPS.len()).collect());
    }
    let position = |name: &String| {
        let found = GROUPS.iter().position(|(group, _)| group == name);
        found.with_context(|| {
            let known: Vec<&str> = GROUPS.iter().map(|(group, _)| *group).collect();
            format!("no group is called `{name}`: {}", known.join(", "))
        })
    };
    names.iter().map(position).collect()
}

struct Candidate {
    /// A position in [`Sample::groups`].
    group: usize,
    file: usize,
    site: Site,
}

pub(crate) fn plant(
    project: &Path,
    folder: &Path,
    sample: &Sample,
    by_hand: Option<&Path>,
) -> Result<()> {
    let tree = folder.join("tree");
    ensure!(
        !tree.exists(),
        "{} exists: give a new folder",
        tree.display()
    );
    copy(project, &tree)?;
    let by_hand = by_hand.map_or(Ok(Vec::new()), |path| faults(&tree, path))?;
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    let mut candidates = Vec::new();
    for (group, &index) in sample.groups.iter().enumerate() {
        for path in rust_files(&tree, GROUPS[index].1)? {
            let text = fs::read_to_string(&path)?;
            let found = sites(&text).with_context(|| path.display().to_string())?;
            // A file may be in several groups.
            let known = files.iter().position(|(known, _)| *known == path);
            let file = known.unwrap_or(files.len());
            candidates.extend(
                found
                    .into_iter()
                    .map(|site| Candidate { group, file, site }),
            );
            if known.is_none() {
                files.push((path, text));
            }
        }
    }
    println!("{} sites in {} files", candidates.len(), files.len());
    shuffle(&mut candidates, sample.seed);
    // Where a fault goes nothing else can.
    let mut refused = BTreeSet::new();
    for (at, candidate) in candidates.iter().enumerate() {
        let (path, text) = &files[candidate.file];
        let range = &candidate.site.range;
        let overlaps = |fault: &Fault| {
            let begin = text.find(&fault.old).unwrap_or(0);
            tree.join(&fault.file) == *path
                && range.start <= begin + fault.old.len()
                && begin <= range.end
        };
        if by_hand.iter().any(overlaps) {
            refused.insert(at);
        }
    }
    let chosen = loop {
        let chosen = choose(&candidates, &refused, sample);
        write(&files, &candidates, &chosen)?;
        let bad = refused_by_compiler(&tree, &files, &candidates, &chosen)?;
        println!(
            "{} planted, {} of them do not compile",
            chosen.len(),
            bad.len()
        );
        if bad.is_empty() {
            break chosen;
        }
        refused.extend(bad);
    };
    let mut mutants: Vec<Mutant> = chosen
        .iter()
        .enumerate()
        .map(|(index, &at)| {
            let candidate = &candidates[at];
            let file = &files[candidate.file].0;
            Mutant {
                number: index + 1,
                group: GROUPS[sample.groups[candidate.group]].0.to_owned(),
                file: file
                    .strip_prefix(&tree)
                    .unwrap_or(file)
                    .display()
                    .to_string(),
                line: candidate.site.line,
                what: candidate.site.what.clone(),
            }
        })
        .collect();
    plant_faults(&tree, by_hand, &mut mutants)?;
    // Rules of selection that have a fault are compiled, too.
    refused_by_compiler(&tree, &files, &candidates, &[])?;
    fs::write(
        folder.join("mutants.json"),
        serde_json::to_string_pretty(&mutants)?,
    )?;
    Ok(())
}

/// The files that git knows, as they are.
fn copy(project: &Path, tree: &Path) -> Result<()> {
    let out = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(project)
        .output()?;
    ensure!(
        out.status.success(),
        "git ls-files failed in {}",
        project.display()
    );
    for name in String::from_utf8(out.stdout)?.split_terminator('\0') {
        let (from, to) = (project.join(name), tree.join(name));
        if !from.is_file() {
            continue;
        }
        fs::create_dir_all(to.parent().context("a file has a folder")?)?;
        fs::copy(from, to)?;
    }
    let lib = tree.join("src/lib.rs");
    let text = fs::read_to_string(&lib)?;
    fs::write(lib, text + SWITCH)?;
    Ok(())
}

fn rust_files(tree: &Path, places: &[&str]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut stack: Vec<PathBuf> = places.iter().map(|place| tree.join(place)).collect();
    while let Some(path) = stack.pop() {
        if path.is_dir() {
            for entry in fs::read_dir(&path)? {
                stack.push(entry?.path());
            }
        } else if path.extension().is_some_and(|e| e == "rs") {
            let name = path.file_stem().and_then(|s| s.to_str()).unwrap_or("");
            let is_tests = path
                .parent()
                .is_some_and(|folder| folder.ends_with("tests"));
            if !is_tests && !["tests", "testing", "coverage"].contains(&name) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Fisher and Yates, with a linear congruential generator (Knuth's MMIX).
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    for i in (1..items.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        items.swap(i, (state >> 33) as usize % (i + 1));
    }
}

/// The first of each group that compile and do not overlap.
fn choose(candidates: &[Candidate], refused: &BTreeSet<usize>, sample: &Sample) -> Vec<usize> {
    let quota = sample.count.div_ceil(sample.groups.len());
    let mut left = vec![quota; sample.groups.len()];
    let mut chosen: Vec<usize> = Vec::new();
    for (at, candidate) in candidates.iter().enumerate() {
        let range = &candidate.site.range;
        let overlaps = |&other: &usize| {
            let other = &candidates[other];
            let r = &other.site.range;
            other.file == candidate.file && range.start <= r.end && r.start <= range.end
        };
        if left[candidate.group] > 0 && !refused.contains(&at) && !chosen.iter().any(overlaps) {
            left[candidate.group] -= 1;
            chosen.push(at);
        }
    }
    chosen
}

fn write(files: &[(PathBuf, String)], candidates: &[Candidate], chosen: &[usize]) -> Result<()> {
    for (file, (path, text)) in files.iter().enumerate() {
        let mut here: Vec<(usize, &Site)> = chosen
            .iter()
            .enumerate()
            .filter(|&(_, &at)| candidates[at].file == file)
            .map(|(index, &at)| (index + 1, &candidates[at].site))
            .collect();
        here.sort_by_key(|(_, site)| std::cmp::Reverse(site.range.start));
        let mut new = text.clone();
        for (number, site) in here {
            new.replace_range(site.range.clone(), &site.planted(text, number));
        }
        if fs::read_to_string(path)? != new {
            fs::write(path, new)?;
        }
    }
    Ok(())
}

/// The planted mutants in whose lines the compiler finds errors.
fn refused_by_compiler(
    tree: &Path,
    files: &[(PathBuf, String)],
    candidates: &[Candidate],
    chosen: &[usize],
) -> Result<Vec<usize>> {
    let out = Command::new("cargo")
        .args(["check", "--lib", "--message-format=json", "--quiet"])
        .current_dir(tree)
        .output()?;
    let mut errors: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut first = String::new();
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        let value: serde_json::Value = serde_json::from_str(line)?;
        let message = &value["message"];
        if message["level"] != "error" {
            continue;
        }
        if first.is_empty() {
            first = message["rendered"].as_str().unwrap_or("").to_owned();
        }
        for span in message["spans"].as_array().into_iter().flatten() {
            let file = span["file_name"].as_str().unwrap_or("").to_owned();
            let lines =
                [&span["line_start"], &span["line_end"]].map(|l| l.as_u64().unwrap_or(0) as usize);
            errors.entry(file).or_default().extend(lines[0]..=lines[1]);
        }
    }
    // Mutants add no lines, so lines are those of the file as it was.
    let mut bad = Vec::new();
    for &at in chosen {
        let candidate = &candidates[at];
        let (path, text) = &files[candidate.file];
        let name = path.strip_prefix(tree)?.display().to_string();
        let site = &candidate.site;
        let from = text[..site.range.start].matches('\n').count() + 1;
        let to = from + text[site.range.clone()].matches('\n').count();
        if errors
            .get(&name)
            .is_some_and(|lines| lines.iter().any(|l| (from..=to).contains(l)))
        {
            bad.push(at);
        }
    }
    if bad.is_empty() && !out.status.success() {
        bail!(
            "the copy does not compile, and not for a mutant's sake:\n{first}{}",
            String::from_utf8_lossy(&out.stderr)
        );
    }
    Ok(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_finds_its_place() {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let faults = faults(&project, &project.join("fuzz/mutants/faults.txt"));
        let faults = faults.unwrap_or_else(|error| panic!("{error}"));
        let mut texts: BTreeMap<&str, String> = BTreeMap::new();
        let mut count = 0;
        for fault in &faults {
            let text = texts.entry(&fault.file).or_insert_with(|| {
                fs::read_to_string(project.join(&fault.file)).expect("it was read before")
            });
            assert!(
                text.contains(&fault.old),
                "another one is in the place of {:?}",
                fault.names
            );
            *text = text.replacen(&fault.old, &fault.new, 1);
            for index in 1..=fault.names.len() {
                let number = format!("N{index}");
                assert!(
                    fault.new.contains(&number),
                    "{number} of {:?} is nowhere",
                    fault.names
                );
            }
            let numbered = fault.numbered(1000);
            let last = 1000 + fault.names.len();
            assert!(!numbered.contains(&last.to_string()), "{numbered}");
            count += fault.names.len();
        }
        assert!(count >= 30, "{count} faults");
    }
}
