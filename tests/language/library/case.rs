//! Cases as their comments state them.

use std::path::Path;

use tilelift::front::types::DType;
use tilelift::settings::Target;

/// A file of programs.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) cases: Vec<Case>,
    /// What should come out: the case as it is stated, then its results by name.
    pub(crate) expected: Vec<(String, Vec<(String, String)>)>,
}

/// One launch of a kernel.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) line: usize,
    /// `KERNEL` or `KERNEL/WORD`.
    pub(crate) name: String,
    pub(crate) kernel: String,
    /// What stands for `FUNCTION`.
    pub(crate) word: Option<String>,
    /// The whole comment.
    pub(crate) stated: String,
    pub(crate) params: Vec<(String, Param)>,
    pub(crate) tolerance: Tolerance,
    pub(crate) warps: u32,
    pub(crate) grid: [u32; 3],
    pub(crate) target: Target,
    pub(crate) debug: bool,
    pub(crate) emulator_only: bool,
    /// Features that it executes.
    pub(crate) covers: Vec<String>,
    /// What it prints.
    pub(crate) prints: Vec<String>,
}

/// An argument.
#[derive(Clone, Debug)]
pub(crate) enum Param {
    /// Elements in memory; without data nobody has written them.
    Buffer {
        dtype: DType,
        count: usize,
        data: Option<String>,
    },
    /// A tensor behind a descriptor.
    Descriptor {
        dtype: DType,
        block: Vec<u64>,
        extents: Vec<u64>,
        data: Option<String>,
    },
    /// A number that is given at the launch.
    Scalar { dtype: DType, number: String },
    /// A constant, as a signature has it.
    Constant(String),
}

/// How far results may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tolerance {
    Exact,
    Ulp(u64),
    Abs(f64),
    Rel(f64),
}

impl File {
    pub(crate) fn read(path: &Path) -> File {
        let text = std::fs::read_to_string(path).expect("readable");
        let name = path.file_stem().expect("a name").to_string_lossy();
        let mut cases: Vec<Case> = Vec::new();
        let mut covered = 0;
        for (i, line) in text.lines().enumerate() {
            if let Some(stated) = line.strip_prefix("# case ") {
                cases.push(Case::parse(i + 1, stated));
            } else if let Some(text) = line.strip_prefix("# prints ") {
                let case = cases.last_mut().expect("a case before what it prints");
                case.prints.push(text.to_owned());
            } else if let Some(list) = line.strip_prefix("# covers ") {
                // A feature is executed by every case since the last kernel.
                let features = list.split(", ").map(|f| f.trim().to_owned());
                for case in &mut cases[covered..] {
                    case.covers.extend(features.clone());
                }
            } else if line.starts_with("def ") {
                covered = cases.len();
            }
        }
        let expected = std::fs::read_to_string(path.with_extension("txt")).unwrap_or_default();
        File {
            name: name.into_owned(),
            text,
            cases,
            expected: read_expected(&expected),
        }
    }
}

fn read_expected(text: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut found: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for line in text.lines() {
        if let Some(stated) = line.strip_prefix("== ") {
            found.push((stated.to_owned(), Vec::new()));
            continue;
        }
        let Some((_, results)) = found.last_mut() else {
            continue;
        };
        // What does not fit on a line goes on indented.
        match (line.strip_prefix("  "), line.split_once(' ')) {
            (Some(more), _) => {
                let last = results.last_mut().expect("a name before its digits");
                last.1.push_str(more);
            }
            (None, Some((name, digits))) => results.push((name.to_owned(), digits.to_owned())),
            (None, None) => {}
        }
    }
    found
}

impl Case {
    fn parse(line: usize, stated: &str) -> Case {
        let mut fields = stated.split(" | ");
        let name = fields.next().expect("a split has a first").trim();
        let (kernel, word) = match name.split_once('/') {
            Some((kernel, word)) => (kernel, Some(word.to_owned())),
            None => (name, None),
        };
        let params = fields.next().unwrap_or_default().split_whitespace();
        let mut case = Case {
            line,
            name: name.to_owned(),
            kernel: kernel.to_owned(),
            word,
            stated: stated.to_owned(),
            params: params.map(param).collect(),
            tolerance: Tolerance::Exact,
            warps: 1,
            grid: [1; 3],
            target: Target::SM_80,
            debug: false,
            emulator_only: false,
            covers: Vec::new(),
            prints: Vec::new(),
        };
        for field in fields {
            let (key, value) = field.trim().split_once(' ').unwrap_or((field.trim(), ""));
            match key {
                "ulp" => case.tolerance = Tolerance::Ulp(value.parse().expect("a number")),
                "abs" => case.tolerance = Tolerance::Abs(value.parse().expect("a number")),
                "rel" => case.tolerance = Tolerance::Rel(value.parse().expect("a number")),
                "warps" => case.warps = value.parse().expect("a number"),
                "target" => case.target = Target::parse(value).expect("a target"),
                "grid" => {
                    for (axis, extent) in value.split(',').enumerate() {
                        case.grid[axis] = extent.parse().expect("a number");
                    }
                }
                "debug" => case.debug = true,
                "emulator" => case.emulator_only = true,
                other => panic!("line {line}: unknown option `{other}`"),
            }
        }
        case
    }

    /// The kernel's text.
    pub(crate) fn text(&self, file: &File) -> String {
        match &self.word {
            Some(word) => file.text.replace("FUNCTION", word),
            None => file.text.clone(),
        }
    }
}

fn param(text: &str) -> (String, Param) {
    let (name, what) = text.split_once('=').expect("NAME=WHAT");
    (name.to_owned(), what_of(what))
}

fn what_of(text: &str) -> Param {
    let extents = |text: &str| -> Vec<u64> {
        let parts = text.split('x').map(|e| e.parse().expect("an extent"));
        parts.collect()
    };
    if let Some(rest) = text.strip_prefix("desc[") {
        let (block, rest) = rest.split_once("]:").expect("a block and a type");
        let (dtype, rest) = rest.split_once('[').expect("a type and extents");
        let (all, data) = rest.split_once(']').expect("extents");
        return Param::Descriptor {
            dtype: DType::from_short_name(dtype).expect("a type"),
            block: extents(block),
            extents: extents(all),
            data: data.strip_prefix(':').map(str::to_owned),
        };
    }
    if let Some((dtype, rest)) = text.split_once('[')
        && let Some(dtype) = DType::from_short_name(dtype)
    {
        let (count, data) = rest.split_once(']').expect("a count");
        return Param::Buffer {
            dtype,
            count: count.parse().expect("a count"),
            data: data.strip_prefix(':').map(str::to_owned),
        };
    }
    match text.split_once(':') {
        Some((dtype, number)) if DType::from_short_name(dtype).is_some() => Param::Scalar {
            dtype: DType::from_short_name(dtype).expect("just found"),
            number: number.to_owned(),
        },
        _ => Param::Constant(text.to_owned()),
    }
}
