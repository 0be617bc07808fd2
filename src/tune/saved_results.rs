//! Results on disk: a file for each kernel, device and key, a line for each configuration.
//!
//! A line is `SUM<tab>CONFIGURATION<tab>OUTCOME`, appended with one call when the result is known. SUM is a checksum of the
//! rest of the line, so that a line cut short or changed is left out, with a warning; the last line of a configuration counts. Two
//! processes that tune the same at once write lines of both, and both read all.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::config::Config;
use super::report::Outcome;
use crate::runtime::{Kernel, warn_once};

/// The results that are known.
#[derive(Debug)]
pub(super) struct Results {
    /// None if there is no cache.
    file: Option<PathBuf>,
    /// Whether the file's last line has no end, so that the next has to begin behind it.
    is_cut: AtomicBool,
    known: Mutex<HashMap<String, Outcome>>,
}

impl Results {
    /// Reads what is known under a key.
    pub(super) fn open(kernel: &Kernel, key: &str) -> Results {
        let cache = kernel.device().cache();
        let name = format!("{key}.tune");
        let file = cache.tune_dir().map(|folder| folder.join(&name));
        let seeds = cache.seed_tune_dirs();
        let seeded: Vec<String> = seeds.filter_map(|seed| read(&seed.join(&name))).collect();
        let text = file.as_deref().and_then(read).unwrap_or_default();
        let damaged = text.lines().filter(|line| parse(line).is_none()).count();
        if let Some(file) = &file
            && damaged > 0
        {
            let file = file.display();
            warn_once(&format!(
                "{file}: {damaged} lines of results of the autotuner are damaged; what they said is measured anew"
            ));
        }
        Results {
            file,
            is_cut: AtomicBool::new(!text.is_empty() && !text.ends_with('\n')),
            // What stands further in front counts, as of kernels.
            known: Mutex::new(
                seeded
                    .iter()
                    .rev()
                    .chain([&text])
                    .flat_map(|text| text.lines().filter_map(parse))
                    .collect(),
            ),
        }
    }

    /// Nothing is known, and nothing is kept.
    pub(super) fn none() -> Results {
        Results {
            file: None,
            is_cut: AtomicBool::new(false),
            known: Mutex::default(),
        }
    }

    /// What is known of a configuration.
    pub(super) fn get(&self, config: &Config) -> Option<Outcome> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&config.to_string()).cloned()
    }

    /// Keeps a result. Failures are kept in memory alone: the next process may have the memory that this one lacked.
    pub(super) fn put(&self, config: &Config, outcome: &Outcome) {
        let line = line(config, outcome);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(config.to_string(), outcome.clone());
        drop(known);
        let (Some(file), Some(mut line)) = (&self.file, line) else {
            return;
        };
        if self.is_cut.swap(false, Ordering::Relaxed) {
            line.insert(0, '\n');
        }
        let append = || {
            if let Some(folder) = file.parent() {
                std::fs::create_dir_all(folder)?;
            }
            // Opening a pipe would wait for its reader.
            if std::fs::metadata(file).is_ok_and(|metadata| !metadata.is_file()) {
                let file = file.display();
                return Err(std::io::Error::other(format!("{file} is no file")));
            }
            let options = std::fs::File::options()
                .create(true)
                .append(true)
                .open(file);
            options?.write_all(line.as_bytes())
        };
        if let Err(error) = append() {
            // Told of the folder, so that one of many files tells it for all.
            let folder = file.parent().unwrap_or(file).display();
            warn_once(&format!(
                "{folder}: results of the autotuner cannot be kept there: {error}"
            ));
        }
    }
}

/// The text of a file that is not too large to be one of ours.
fn read(path: &Path) -> Option<String> {
    let metadata = std::fs::metadata(path).ok()?;
    let is_ours = metadata.is_file() && metadata.len() < 16 << 20;
    let bytes = is_ours.then(|| std::fs::read(path).ok()).flatten()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn sum(rest: &str) -> String {
    blake3::hash(rest.as_bytes()).to_hex()[..16].to_owned()
}

/// The line of a result; none of one that is not kept.
fn line(config: &Config, outcome: &Outcome) -> Option<String> {
    let outcome = match outcome {
        Outcome::Measured(cost) => format!("measured {cost:e}"),
        Outcome::Hopeless(cost) => format!("hopeless {cost:e}"),
        Outcome::Skipped(_) | Outcome::Failed(_) => return None,
    };
    let rest = format!("{config}\t{outcome}");
    // A constant may hold anything, a line may not.
    let is_plain = !config.to_string().contains(['\t', '\n', '\r']);
    is_plain.then(|| format!("{}\t{rest}\n", sum(&rest)))
}

fn parse(line: &str) -> Option<(String, Outcome)> {
    let (stated, rest) = line.split_once('\t')?;
    if stated != sum(rest) {
        return None;
    }
    let (config, outcome) = rest.split_once('\t')?;
    let (kind, cost) = outcome.split_once(' ')?;
    let cost: f64 = cost.parse().ok()?;
    let outcome = match kind {
        "measured" => Outcome::Measured(cost),
        "hopeless" => Outcome::Hopeless(cost),
        _ => return None,
    };
    Some((config.to_owned(), outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_written_and_nothing_else_is() {
        let config = Config::new().constant("BLOCK", 128).warps(4);
        let text = line(&config, &Outcome::Measured(0.1 + 0.2)).expect("it is kept");
        let text = text.trim_end();
        let expected = (
            "BLOCK=128 num_warps=4".to_owned(),
            Outcome::Measured(0.1 + 0.2),
        );
        assert_eq!(parse(text), Some(expected.clone()));
        for length in 0..text.len() {
            assert_eq!(parse(&text[..length]), None, "{length}");
        }
        assert_eq!(parse(&text.replace("128", "256")), None);
        let odd = Config::new().constant("TEXT", "a\tb");
        assert_eq!(
            line(&odd, &Outcome::Measured(1.0)).map(|l| parse(l.trim_end()).is_some()),
            Some(true)
        );
        assert_eq!(line(&config, &Outcome::Failed("broken".to_owned())), None);
    }
}
