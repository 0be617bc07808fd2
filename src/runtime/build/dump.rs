//! Dump and override: looking at what was made, and trying something else.
//!
//! With a folder to dump to (`TILELIFT_DUMP`), each kernel that is built writes there its IR after every pass, its PTX, and
//! on a GPU its machine code, in files that begin with the kernel's name and a hash of what it was built for. With a folder
//! to override from (`TILELIFT_OVERRIDE`), the PTX of a variant is taken from the file of the same name there, if there is
//! one: a dump, edited. Its entry has to have the same name, parameters and threads, and its target has to be one that the
//! device runs. Both leave the cache of kernels aside, so that
//! what is seen is what was made.

use std::path::PathBuf;

use crate::settings::Target;

use crate::runtime::api::device::Device;
use crate::runtime::api::environment;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::warning::warn_once;

/// Where to write what is made, and where to take edited PTX from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// The folder to write to.
    pub write: Option<PathBuf>,
    /// The folder to take from.
    pub replace: Option<PathBuf>,
}

impl Dump {
    /// What the environment says.
    pub fn from_env() -> Dump {
        let replace = environment::value("TILELIFT_OVERRIDE").map(PathBuf::from);
        Dump {
            write: environment::value("TILELIFT_DUMP").map(PathBuf::from),
            replace: replace.map(|path| environment::folder("TILELIFT_OVERRIDE", &path)),
        }
    }

    /// Whether kernels are to be made anew.
    pub(crate) fn is_on(&self) -> bool {
        self.write.is_some() || self.replace.is_some()
    }

    /// Writes a file; that it cannot be written is reported.
    pub(crate) fn save(&self, name: &str, contents: &[u8]) {
        let Some(folder) = &self.write else {
            return;
        };
        let path = folder.join(name);
        let written =
            std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, contents));
        if let Err(error) = written {
            // Told of the folder, so that one of many files tells it for all.
            let folder = folder.display();
            warn_once(&format!("{folder}: dumps cannot be written there: {error}"));
        }
    }

    /// The PTX that takes the place of a variant's on a device, if there is any, and its file. `name` is what the variant's
    /// dumps begin with, `ptx` what was made.
    pub(crate) fn replacement(
        &self,
        kernel: &str,
        name: &str,
        ptx: &str,
        device: &Device,
    ) -> Result<Option<(String, String)>, RuntimeError> {
        let Some(folder) = &self.replace else {
            return Ok(None);
        };
        let path = folder.join(format!("{name}.ptx"));
        if !path.exists() {
            let plain = folder.join(format!("{}.ptx", file_name(kernel)));
            if plain.exists() {
                let plain = plain.display();
                warn_once(&format!(
                    "{plain} is not used: the PTX of each variant of a kernel has a file of its own, here {name}.ptx, as \
                     TILELIFT_DUMP writes it"
                ));
            }
            return Ok(None);
        }
        let shown = path.display().to_string();
        let problem = |path: String, problem: String| RuntimeError::File { path, problem };
        let text = std::fs::read_to_string(&path)
            .map_err(|error| problem(shown.clone(), error.to_string()))?;
        let checked = check(ptx, &text).and_then(|()| check_target(&text, device));
        checked.map_err(|(line, text)| problem(format!("{shown}:{line}"), text))?;
        Ok(Some((text, shown)))
    }
}

/// An error, with its line, unless the edited text has an entry of the same name and parameters.
fn check(made: &str, edited: &str) -> Result<(), (usize, String)> {
    // The compiler writes one.
    let Some(wanted) = entry(made) else {
        return Ok(());
    };
    let Some(found) = entry(edited) else {
        let problem = format!("there is no entry `{}`", wanted.name);
        return Err((1, problem));
    };
    if found.name != wanted.name {
        let problem = format!("the entry is `{}`, expected `{}`", found.name, wanted.name);
        return Err((found.line, problem));
    }
    let pairs = found.params.iter().zip(&wanted.params);
    for (number, ((line, is), (_, expected))) in pairs.enumerate() {
        if size(is) != size(expected) {
            let problem = format!(
                "parameter {} is `{is}`, expected `{expected}`; the launch gives its arguments to the latter",
                number + 1
            );
            return Err((*line, problem));
        }
    }
    let (is, expected) = (found.params.len(), wanted.params.len());
    if is != expected {
        let problem = format!("the entry has {is} parameters, expected {expected}");
        return Err((found.line, problem));
    }
    let Some((_, threads)) = wanted.threads else {
        return Ok(());
    };
    match found.threads {
        Some((line, is)) if is != threads => {
            let problem = format!(
                "the entry is for programs of {is} threads, expected {threads}, as it is launched"
            );
            Err((line, problem))
        }
        _ => Ok(()),
    }
}

/// An error, with its line, unless the text's entry has this name, parameters of so many bytes, and so many threads.
pub(in crate::runtime) fn check_entry(
    ptx: &str,
    name: &str,
    bytes: &[u32],
    threads: u32,
) -> Result<(), (usize, String)> {
    let Some(found) = entry(ptx).filter(|found| found.name == name) else {
        return Err((1, format!("there is no entry `{name}`")));
    };
    let is = found.params.len();
    if is != bytes.len() {
        let problem = format!("the entry has {is} parameters, expected {}", bytes.len());
        return Err((found.line, problem));
    }
    for ((line, declaration), bytes) in found.params.iter().zip(bytes) {
        let (bits, array) = size(declaration);
        if array.is_none() && bits != Some(8 * bytes) {
            return Err((
                *line,
                format!("`{declaration}` for an argument of {bytes} bytes"),
            ));
        }
    }
    match found.threads {
        Some((line, is)) if is != u64::from(threads) => Err((
            line,
            format!("programs of {is} threads, expected {threads}"),
        )),
        _ => Ok(()),
    }
}

/// An error, with its line, unless the edited text is for a target that the device runs.
fn check_target(edited: &str, device: &Device) -> Result<(), (usize, String)> {
    let named = code(edited).find_map(|(line, text)| {
        let rest = text.trim_start().strip_prefix(".target")?;
        Some((line, rest.split(',').next()?.trim()))
    });
    let Some((line, name)) = named else {
        return Err((1, "there is no `.target`".to_owned()));
    };
    match Target::parse(name) {
        Ok(target) if !device.runs(target) => {
            let problem = format!(
                "it is for {target}, and the device takes {}",
                device.target()
            );
            Err((line, problem))
        }
        // A driver may know targets that are newer than this library.
        Err(error) if !device.is_gpu() => Err((line, error.to_string())),
        _ => Ok(()),
    }
}

/// The head of an entry of PTX.
struct Entry<'t> {
    /// Its line, from 1.
    line: usize,
    name: &'t str,
    /// Declarations of its parameters, with their lines.
    params: Vec<(usize, String)>,
    /// The threads of `.reqntid`, with its line.
    threads: Option<(usize, u64)>,
}

/// The lines of a text with their numbers, from 1, without comments.
fn code(ptx: &str) -> impl Iterator<Item = (usize, &str)> {
    let plain = |line: &'_ str| line.find("//").unwrap_or(line.len());
    (1..).zip(ptx.lines().map(move |line| &line[..plain(line)]))
}

/// The first entry of a text.
fn entry(ptx: &str) -> Option<Entry<'_>> {
    let mut lines = code(ptx);
    let (line, head) =
        lines.find(|(_, text)| text.split_whitespace().any(|word| word == ".entry"))?;
    let (_, rest) = head.split_once(".entry")?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| "({".contains(c) || c.is_whitespace());
    let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let (mut params, mut words, mut begins) = (Vec::new(), String::new(), line);
    let mut is_open = false;
    'head: for (line, text) in std::iter::once((line, rest)).chain(lines) {
        for c in text.chars().chain([' ']) {
            match c {
                '(' => is_open = true,
                ',' | ')' | '{' => {
                    let declaration: Vec<&str> = words.split_whitespace().collect();
                    if !declaration.is_empty() {
                        params.push((begins, declaration.join(" ")));
                    }
                    words.clear();
                    if c != ',' {
                        break 'head;
                    }
                }
                _ if is_open => {
                    if words.trim_start().is_empty() {
                        begins = line;
                    }
                    words.push(c);
                }
                _ => {}
            }
        }
    }
    let threads = code(ptx).skip(line - 1).find_map(|(line, text)| {
        let (_, rest) = text.split_once(".reqntid")?;
        let rest = rest.split('{').next()?;
        let mut numbers = rest.split(',').map(|n| n.trim().parse::<u64>().ok());
        let product = numbers.try_fold(1, |product: u64, n| product.checked_mul(n?));
        Some((line, product?))
    });
    Some(Entry {
        line,
        name,
        params,
        threads,
    })
}

/// What of a declaration decides where the parameter lies: bits of its type, and the number of elements.
fn size(declaration: &str) -> (Option<u32>, Option<&str>) {
    let mut types = declaration.split_whitespace().filter_map(|word| {
        let digits = word
            .strip_prefix('.')?
            .trim_start_matches(|c: char| c.is_ascii_lowercase());
        digits.parse().ok()
    });
    let (_, array) = declaration.split_once('[').unwrap_or_default();
    (
        types.next_back(),
        array.split_once(']').map(|(n, _)| n.trim()),
    )
}

/// A kernel's name as part of a file's.
pub(crate) fn file_name(kernel: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    kernel.chars().take(100).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::DeviceOptions;

    const MADE: &str = "\
.version 8.0
.target sm_80

.visible .entry add(
\t.param .u64 .ptr .global .align 16 x,
\t.param .b32 n
)
.reqntid 128, 1, 1
{
\tret;
}
";

    #[test]
    fn targets_are_those_of_the_device() {
        let device = Device::emulator_with(DeviceOptions::plain());
        let with = |to: &str| check_target(&MADE.replace("sm_80", to), &device);
        for fits in ["sm_80", "sm_70", "sm_80, debug"] {
            assert_eq!(with(fits), Ok(()), "{fits}");
        }
        for (name, problem) in [
            ("sm_90", "it is for sm_90, and the device takes sm_80"),
            ("sm_90a", "it is for sm_90a, and the device takes sm_80"),
            ("sm_999", "sm_999"),
        ] {
            let (line, text) = with(name).expect_err("it does not run");
            assert!(line == 2 && text.contains(problem), "{line}: {text}");
        }
        assert!(check_target(".version 8.0", &device).is_err());
    }

    #[test]
    fn heads_of_entries_are_compared() {
        let with = |from: &str, to: &str| {
            assert!(MADE.contains(from), "{from}");
            check(MADE, &MADE.replace(from, to))
        };
        assert_eq!(check(MADE, MADE), Ok(()));
        // What does not change where arguments lie may change.
        assert_eq!(with(".param .b32 n", ".param .u32 m"), Ok(()));
        assert_eq!(with(".u64 .ptr .global .align 16 x", ".u64 x"), Ok(()));
        assert_eq!(with("ret;", "// .entry no(\n\tret;"), Ok(()));
        let one_line = MADE
            .replace(['\n', '\t'], " ")
            .replace(".visible", "\n.visible");
        assert_eq!(check(MADE, &one_line), Ok(()));
        let told = |result: Result<(), (usize, String)>, line: usize, text: &str| {
            let (at, problem) = result.expect_err("it differs");
            assert_eq!(at, line, "{problem}");
            assert!(problem.contains(text), "{problem}");
        };
        told(
            with(".param .b32 n", ".param .b64 n"),
            6,
            "parameter 2 is `.param .b64 n`",
        );
        told(
            with(".param .b32 n", ".param .align 4 .b8 n[4]"),
            6,
            "expected `.param .b32 n`",
        );
        told(
            with(",\n\t.param .b32 n", ""),
            4,
            "the entry has 1 parameters, expected 2",
        );
        told(
            with("b32 n\n", "b32 n,\n\t.param .b32 m\n"),
            4,
            "has 3 parameters",
        );
        told(
            with("entry add", "entry sub"),
            4,
            "the entry is `sub`, expected `add`",
        );
        told(
            with("d 128", "d 64"),
            8,
            "programs of 64 threads, expected 128",
        );
        assert_eq!(with(".reqntid 128, 1, 1", ""), Ok(()));
        assert_eq!(with("128, 1, 1\n{", "128 {"), Ok(()));
        told(
            with(".visible .entry", ".visible .func"),
            1,
            "there is no entry `add`",
        );
        assert_eq!(check(".entry k { ret; }", ".entry k\n{ ret; }"), Ok(()));
    }
}
