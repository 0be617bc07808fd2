//! What kernels print and assert: records in a buffer of the module, and how they read.
//!
//! A kernel that prints or asserts declares a variable of the module, [`SYMBOL`], of [`BYTES`] bytes: a counter, then
//! records. A thread takes a number from the counter and fills the record with it, if there is room; the counter goes on,
//! so that what was lost is known. The launcher zeroes the counter before, and reads the variable after, a launch.
//!
//! A buffer and not `vprintf` and `__assertfail`, which CUDA programs link to: a failed assertion does not take the
//! context down with everything in it, an application gets records and not text on its standard output, the kernel
//! needs no stack and no calls, and GPU, emulator and interpreter report the same. A program of another language finds the
//! variable by its name and the texts in the kernel's metadata.
//!
//! ```text
//! bytes 0..4    number of records that were to be written, those lost included
//! 4..8          site of an assertion that failed, plus 1: zeroed by who reads it and not by launches, so that no later
//!               launch hides that one failed
//! 16 + 32 i     site, then x, y and z of the program: 4 bytes each
//!      + 16     number of the element in row-major order, 0, then the bits of the value (8 bytes)
//! ```

use std::fmt;

use crate::ir::attrs::{Attrs, Show};
use crate::ir::entities::Inst;
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::ir::types::Elem;
use crate::text::number;

/// Name of the module's variable.
pub const SYMBOL: &str = "tilelift_log";
/// Records that fit.
pub const CAPACITY: u32 = 2048;
/// Bytes of the counter, which are zeroed before a launch.
pub const COUNTER_BYTES: u32 = 4;
/// Bytes before the first record.
pub const HEADER_BYTES: u32 = 16;
/// Bytes of a record.
pub const RECORD_BYTES: u32 = 32;
/// Bytes of the variable.
pub const BYTES: u32 = HEADER_BYTES + CAPACITY * RECORD_BYTES;

/// What a record is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum What {
    /// A text alone.
    Text,
    /// Elements of a type.
    Print(Elem, Show),
    /// A condition that is false.
    Assert,
}

/// A place in a kernel that writes records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// What it writes.
    pub what: What,
    /// The text that the kernel's author gave.
    pub text: String,
    /// Line of the source.
    pub line: Option<u32>,
    /// Extents of the block; none for a scalar.
    pub shape: Vec<u64>,
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Record {
    /// Which site wrote it, an index into the kernel's.
    pub site: u32,
    /// Index of the program.
    pub program: [u32; 3],
    /// Number of the element in row-major order.
    pub element: u32,
    /// Its bits.
    pub bits: u64,
}

/// What a launch wrote, sorted: threads write in no order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The records.
    pub records: Vec<Record>,
    /// How many did not fit.
    pub lost: u32,
}

impl Log {
    /// Reads the module's variable.
    pub fn decode(bytes: &[u8]) -> Log {
        let word = |at| word(bytes, at);
        let wanted = word(0);
        let room = (bytes.len() as u32).saturating_sub(HEADER_BYTES) / RECORD_BYTES;
        let record = |i: u32| {
            let at = (HEADER_BYTES + i * RECORD_BYTES) as usize;
            Record {
                site: word(at),
                program: [word(at + 4), word(at + 8), word(at + 12)],
                element: word(at + 16),
                bits: u64::from(word(at + 24)) | u64::from(word(at + 28)) << 32,
            }
        };
        let mut records: Vec<Record> = (0..wanted.min(room)).map(record).collect();
        records.sort_unstable();
        Log {
            records,
            lost: wanted.saturating_sub(room),
        }
    }

    /// What failed, a line each, by the bytes of the module's variable; none if no assertion did. Where the records are
    /// those of a later launch, or there was no room for them, the line is that of a site without program and element.
    pub fn failed(bytes: &[u8], sites: &[Site], file: Option<&str>) -> Option<Vec<String>> {
        let site = failed_site(bytes)?;
        let log = Log::decode(bytes);
        let lines = log.failures(sites);
        let mut lines: Vec<String> = lines.map(|line| Located(line, file).to_string()).collect();
        if lines.is_empty() {
            let known = sites.get(site as usize);
            lines.push(known.map_or_else(
                || "an assertion failed".to_owned(),
                |site| Failed(site, file).to_string(),
            ));
        }
        Some(lines)
    }

    /// One line of text for each record, and one for all that were lost.
    pub fn lines(&self, sites: &[Site]) -> Vec<String> {
        self.lines_of(sites, None)
    }

    /// The same with the name of the file that the sites' lines are lines of.
    pub fn lines_of(&self, sites: &[Site], file: Option<&str>) -> Vec<String> {
        let known = |record: &Record| Some(Line(sites.get(record.site as usize)?, *record));
        let lines = self.records.iter().filter_map(known);
        let mut lines: Vec<String> = lines.map(|line| Located(line, file).to_string()).collect();
        if self.lost > 0 {
            lines.push(format!("{} lost", self.lost));
        }
        lines
    }

    /// The records of assertions that failed.
    pub fn failures<'a>(&'a self, sites: &'a [Site]) -> impl Iterator<Item = Line<'a>> {
        let lines = self.records.iter();
        let lines =
            lines.filter_map(|record| Some(Line(sites.get(record.site as usize)?, *record)));
        lines.filter(|line| line.0.what == What::Assert)
    }
}

/// A word of the module's variable.
fn word(bytes: &[u8], at: usize) -> u32 {
    let chunk = bytes.get(at..).and_then(|rest| rest.first_chunk());
    chunk.map_or(0, |&chunk| u32::from_le_bytes(chunk))
}

/// The site of an assertion that failed since that was last asked, by the header of the module's variable.
pub(crate) fn failed_site(header: &[u8]) -> Option<u32> {
    word(header, COUNTER_BYTES as usize).checked_sub(1)
}

/// A record with its site, as text: `pid (0, 1, 0) idx (2, 3) x: 1.5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a>(pub &'a Site, pub Record);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Located(*self, None).fmt(f)
    }
}

/// A line with the name of the source file, if that is known.
struct Located<'a>(Line<'a>, Option<&'a str>);

impl fmt::Display for Located<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Located(Line(site, record), file) = self;
        let [x, y, z] = record.program;
        write!(f, "pid ({x}, {y}, {z})")?;
        if !site.shape.is_empty() {
            let mut rest = u64::from(record.element);
            let mut index: Vec<String> = Vec::new();
            for &extent in site.shape.iter().rev() {
                index.push((rest % extent.max(1)).to_string());
                rest /= extent.max(1);
            }
            index.reverse();
            write!(f, " idx ({})", index.join(", "))?;
        }
        match site.what {
            What::Text => write!(f, " {}", site.text)?,
            What::Print(elem, show) => {
                write!(f, " {}: {}", site.text, value(elem, show, record.bits))?;
            }
            What::Assert => write!(f, " {}", Failed(site, *file))?,
        }
        Ok(())
    }
}

/// An assertion that failed, with the name of the source file, if that is known.
struct Failed<'a>(&'a Site, Option<&'a str>);

impl fmt::Display for Failed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failed(site, file) = self;
        write!(f, "assertion failed: {}", site.text)?;
        match (site.line, file) {
            (Some(line), Some(file)) => write!(f, " ({file}:{line})"),
            (Some(line), None) => write!(f, " (line {line})"),
            (None, _) => Ok(()),
        }
    }
}

/// A value as text.
fn value(elem: Elem, show: Show, bits: u64) -> String {
    let width = elem.bits().clamp(1, 64);
    match (elem, show) {
        (Elem::Ptr(..), _) => format!("{bits:#x}"),
        (_, Show::Hex) => format!("{bits:#0width$x}", width = 2 + width.div_ceil(4) as usize),
        (_, Show::Unsigned) if elem.is_int() => bits.to_string(),
        _ if elem.is_int() && width > 1 => {
            let unused = 64 - width;
            ((bits << unused) as i64 >> unused).to_string()
        }
        _ => number::print(bits, elem),
    }
}

/// The places of a kernel that write records, in program order, which numbers them.
pub fn sites(func: &TileFunction) -> Vec<(Inst, Site)> {
    let mut found = Vec::new();
    for block in func.all_blocks() {
        for &inst in func.order.insts(block) {
            let data = &func.dfg.insts[inst];
            let operand = data.args.first().map(|&v| func.dfg.ty(v));
            let what = match (data.op, operand) {
                (TileOp::DevicePrint, None) => What::Text,
                (TileOp::DevicePrint, Some(ty)) => {
                    What::Print(ty.elem, data.show().copied().unwrap_or(Show::Signed))
                }
                (TileOp::DeviceAssert, _) => What::Assert,
                _ => continue,
            };
            let site = Site {
                what,
                text: data.text().cloned().unwrap_or_default(),
                line: data.loc.0.expand().map(|line| line.0),
                shape: operand.map_or(Vec::new(), |ty| ty.shape.extents().collect()),
            };
            found.push((inst, site));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(what: What, shape: &[u64]) -> Site {
        Site {
            what,
            text: "x".into(),
            line: Some(7),
            shape: shape.to_vec(),
        }
    }

    #[test]
    fn records_are_read_and_counted() {
        let mut bytes = vec![0; (HEADER_BYTES + 2 * RECORD_BYTES) as usize];
        bytes[0] = 5;
        for (i, site) in [(0usize, 1u8), (1, 0)] {
            let at = 16 + 32 * i;
            bytes[at] = site;
            bytes[at + 4] = 2;
            bytes[at + 16] = 6;
            bytes[at + 24] = 0xff;
            bytes[at + 31] = 1;
        }
        let log = Log::decode(&bytes);
        assert_eq!(log.lost, 3);
        let expected = |site| Record {
            site,
            program: [2, 0, 0],
            element: 6,
            bits: 0x0100_0000_0000_00ff,
        };
        assert_eq!(log.records, [expected(0), expected(1)]);
        assert_eq!(Log::decode(&[]), Log::default());
    }

    #[test]
    fn what_failed_is_known_without_its_record() {
        let sites = [site(What::Text, &[]), site(What::Assert, &[8])];
        let mut bytes = vec![0; (HEADER_BYTES + RECORD_BYTES) as usize];
        assert_eq!(Log::failed(&bytes, &sites, None), None);
        bytes[4] = 2;
        let failed = |bytes: &[u8]| Log::failed(bytes, &sites, Some("k.py"));
        assert_eq!(
            failed(&bytes),
            Some(vec!["assertion failed: x (k.py:7)".to_owned()])
        );
        (bytes[0], bytes[16], bytes[32]) = (1, 1, 3);
        let line = "pid (0, 0, 0) idx (3) assertion failed: x (k.py:7)";
        assert_eq!(failed(&bytes), Some(vec![line.to_owned()]));
    }

    #[test]
    fn lines_name_program_element_and_value() {
        let record = Record {
            site: 0,
            program: [1, 2, 3],
            element: 6,
            bits: 0xfffe,
        };
        for (what, shape, expected) in [
            (What::Text, &[][..], "pid (1, 2, 3) x"),
            (
                What::Print(Elem::I16, Show::Signed),
                &[2, 4],
                "pid (1, 2, 3) idx (1, 2) x: -2",
            ),
            (
                What::Print(Elem::I16, Show::Unsigned),
                &[],
                "pid (1, 2, 3) x: 65534",
            ),
            (
                What::Print(Elem::I32, Show::Hex),
                &[],
                "pid (1, 2, 3) x: 0x0000fffe",
            ),
            (
                What::Assert,
                &[8],
                "pid (1, 2, 3) idx (6) assertion failed: x (line 7)",
            ),
        ] {
            let site = site(what, shape);
            assert_eq!(Line(&site, record).to_string(), expected);
        }
    }
}
