//! Reads signatures of variants: `*fp32:16, i32:1, (i64, None), tensordesc<fp16[64, 32:16]>:nan`, as [`ArgTree`]
//! shows them. Every class has one text, so that what was recorded of a launch is found again.

use smallvec::SmallVec;

use crate::limits::SIGNATURE_ENTRIES;
use crate::runtime::api::argument::NONE;
use crate::runtime::api::dtype::DType;
use crate::runtime::specialize::arg_tree::{ArgTree, MAX_DEPTH};
use crate::runtime::specialize::class::Class;

/// Dimensions of a descriptor.
const MAX_RANK: usize = 5;
/// Largest logarithm of the extent of a descriptor's block: the copy engine's boxes have less.
const MAX_LOG: u32 = 16;

/// What a launch tells of numbers: that they are one or multiples of these.
const MULTIPLES: [u32; 5] = [1, 2, 4, 8, 16];

/// What each parameter is given.
pub(in crate::runtime) fn parse(text: &str) -> Result<Vec<ArgTree>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    list(text, 0)
}

/// Entries with commas between them.
fn list(text: &str, depth: usize) -> Result<Vec<ArgTree>, String> {
    let entries = split(text)?;
    if entries.len() > SIGNATURE_ENTRIES {
        return Err(format!(
            "more than {SIGNATURE_ENTRIES} entries in a signature"
        ));
    }
    entries.into_iter().map(|entry| one(entry, depth)).collect()
}

/// The parts between commas that stand in no brackets.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut from, mut open) = (Vec::new(), 0, 0_usize);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' | b'<' => open += 1,
            b')' | b']' | b'>' => {
                open = open
                    .checked_sub(1)
                    .ok_or_else(|| format!("`{}` without its opening bracket", byte as char))?;
            }
            b',' if open == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if open > 0 {
        return Err("a bracket is not closed".to_owned());
    }
    parts.push(&text[from..]);
    Ok(parts)
}

fn one(entry: &str, depth: usize) -> Result<ArgTree, String> {
    let entry = entry.trim();
    if let Some(rest) = entry.strip_prefix('(') {
        let inner = rest
            .strip_suffix(')')
            .ok_or_else(|| unknown(entry, "something stands behind the tuple"))?;
        if depth == MAX_DEPTH {
            return Err(format!("tuples within more than {MAX_DEPTH} others"));
        }
        let elements = match inner.trim() {
            "" => Vec::new(),
            // One element may have a comma behind it, as in Python.
            inner => list(inner.strip_suffix(',').unwrap_or(inner), depth + 1)?,
        };
        // Among classes the number of elements is one byte.
        return match u8::try_from(elements.len()) {
            Ok(_) => Ok(ArgTree::Tuple(elements)),
            Err(_) => Err(format!(
                "a tuple of {} elements; 255 are possible",
                elements.len()
            )),
        };
    }
    match entry.strip_prefix("tensordesc<") {
        Some(rest) => descriptor(entry, rest),
        None => plain(entry).map(ArgTree::Plain),
    }
}

/// A number, an address, or `None`.
fn plain(entry: &str) -> Result<Class, String> {
    if entry == "None" {
        return Ok(Class(NONE.class));
    }
    let (ty, promise) = match entry.split_once(':') {
        Some((ty, promise)) => (ty, Some(promise)),
        None => (entry, None),
    };
    let (is_pointer, name) = match ty.strip_prefix('*') {
        Some(name) => (true, name),
        None => (false, ty),
    };
    let dtype = dtype(name).ok_or_else(|| {
        unknown(
            entry,
            "expected a type such as i32 or *fp32, a tuple, tensordesc<..> or None; constants are given by name behind the signature",
        )
    })?;
    let class = match is_pointer {
        true => Class::pointer(dtype),
        false => Class::number(dtype),
    };
    let with = match promise {
        None => Some(class),
        Some("1") if is_pointer => None,
        Some(promise) => MULTIPLES
            .iter()
            .find(|multiple| multiple.to_string() == promise)
            .and_then(|&multiple| class.promising(multiple.into())),
    };
    with.ok_or_else(|| {
        unknown(
            entry,
            "a launch tells multiples of 2, 4, 8 and 16, of integers and addresses, and the integer 1",
        )
    })
}

/// A tensor descriptor.
fn descriptor(entry: &str, rest: &str) -> Result<ArgTree, String> {
    let (rest, nan) = match rest.strip_suffix(":nan") {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let parts = rest
        .strip_suffix("]>")
        .and_then(|rest| rest.split_once('['));
    let Some((name, dims)) = parts else {
        return Err(unknown(entry, "expected tensordesc<fp16[64, 32]>"));
    };
    let dtype = dtype(name).ok_or_else(|| unknown(entry, &format!("there is no type `{name}`")))?;
    let dim = |dim: &str| {
        let (extent, divisible) = match dim.split_once(':') {
            Some((extent, promise)) => {
                let mut multiples = MULTIPLES[1..].iter().copied();
                (
                    extent,
                    multiples.find(|multiple| multiple.to_string() == promise)?,
                )
            }
            None => (dim, 1),
        };
        let extent: u64 = extent.trim().parse().ok()?;
        (extent.is_power_of_two() && extent.ilog2() <= MAX_LOG).then_some((extent, divisible))
    };
    let dims: Option<Vec<(u64, u32)>> = dims.split(',').map(|text| dim(text.trim())).collect();
    let dims = dims
        .filter(|dims| dims.len() <= MAX_RANK)
        .ok_or_else(|| {
            unknown(
                entry,
                "a block has up to 5 extents, which are powers of two up to 65536, with :2, :4, :8 or :16 where the tensor's own is a multiple of that",
            )
        })?;
    let (block, divisible): (SmallVec<[u64; 5]>, SmallVec<[u32; 5]>) = dims.into_iter().unzip();
    Ok(ArgTree::Descriptor {
        dtype,
        block,
        divisible,
        nan,
    })
}

fn dtype(name: &str) -> Option<DType> {
    let mut all = DType::ALL.iter().copied();
    all.find(|dtype| dtype.to_string() == name)
}

/// The mistake in an entry, of which a long one is not shown whole.
fn unknown(entry: &str, problem: &str) -> String {
    let shown: String = entry.chars().take(60).collect();
    format!("`{shown}`: {problem}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown of what was read.
    fn shown(text: &str) -> Result<String, String> {
        let given = parse(text)?;
        let given: Vec<String> = given.iter().map(ArgTree::to_string).collect();
        Ok(given.join(", "))
    }

    #[test]
    fn signatures_are_read_as_they_are_shown() {
        for text in [
            "",
            "*fp32:16, i32:1, i64:8, u8, fp64, None",
            "i1, *i1:8, bf16, *fp8e4nv, *fp8e5:16",
            "(i64, None), ()",
            "((i32:16, (*fp16)), u32), i16",
            "tensordesc<fp16[64, 32:16]>:nan, tensordesc<fp32[1]>",
        ] {
            assert_eq!(shown(text), Ok(text.to_owned()));
        }
        assert_eq!(shown(" *fp32 ,( i32, ) "), Ok("*fp32, (i32)".to_owned()));
    }

    #[test]
    fn every_class_is_read_back() {
        for &dtype in DType::ALL {
            for plain in [Class::pointer(dtype), Class::number(dtype)] {
                let promises = MULTIPLES.map(|multiple| plain.promising(multiple.into()));
                for class in promises.into_iter().flatten().chain([plain]) {
                    let text = class.to_string();
                    assert_eq!(parse(&text), Ok(vec![ArgTree::Plain(class)]), "{text}");
                }
            }
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (text, problem) in [
            ("1024", "`1024`: expected a type"),
            ("*fp32:3", "`*fp32:3`: a launch tells multiples"),
            ("fp32:16", "`fp32:16`: a launch tells multiples"),
            ("*i32:1", "`*i32:1`: a launch tells multiples"),
            ("i32,", "``: expected a type"),
            ("(i32", "a bracket is not closed"),
            ("i32)", "`)` without its opening bracket"),
            ("(i32) i32", "something stands behind the tuple"),
            ("tensordesc<fp16>", "expected tensordesc<fp16[64, 32]>"),
            ("tensordesc<half[4]>", "there is no type `half`"),
            ("tensordesc<fp16[3]>", "powers of two"),
            ("tensordesc<fp16[131072]>", "powers of two"),
            ("tensordesc<fp16[]>", "powers of two"),
            ("tensordesc<fp16[1,1,1,1,1,1]>", "up to 5 extents"),
        ] {
            let told = parse(text).expect_err(text);
            assert!(told.contains(problem), "{text}: {told}");
        }
        let many = vec!["i32"; SIGNATURE_ENTRIES + 1].join(",");
        let told = parse(&many).expect_err("it is too long");
        assert!(told.contains("more than 1024 entries"), "{told}");
        let wide = format!("({})", vec!["i8"; 256].join(","));
        let told = parse(&wide).expect_err("it is too wide");
        assert!(told.contains("a tuple of 256 elements"), "{told}");
        for depth in [MAX_DEPTH, MAX_DEPTH + 1, 100_000] {
            let deep = format!("{}i8{}", "(".repeat(depth), ")".repeat(depth));
            assert_eq!(parse(&deep).is_ok(), depth == MAX_DEPTH, "{depth}");
        }
        let long = "x".repeat(1000);
        assert!(parse(&long).expect_err("no type").len() < 300);
    }
}
