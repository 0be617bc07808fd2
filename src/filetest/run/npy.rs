//! Files of NumPy (`.npy`, versions 1 to 3): one array, its type and its shape.
//!
//! ```text
//! \x93NUMPY  major minor  length of the header (2 bytes; from version 2 on 4)  header  elements
//! ```
//!
//! The header is a dict of Python: `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, with spaces and a line's end
//! up to a multiple of 64 bytes. NumPy has no bf16 and no floats of 8 bits; libraries that add them write elements of so
//! many bytes without a meaning (`|V2`), which is read and written for these types.

use crate::ir::types::Scalar;
use crate::limits::RUN_LINE_BYTES;
use crate::text::quote::{quoted, quoted_within};

const MAGIC: &[u8] = b"\x93NUMPY";
/// Longest header that is looked at; one that lists a type and a shape has some hundred bytes.
const HEADER_BYTES: usize = 1 << 16;
/// Characters of a header that a message shows.
const SHOWN: usize = 80;

/// Types as NumPy writes them, the first is what is written.
fn names(scalar: Scalar) -> &'static [&'static str] {
    match scalar {
        Scalar::I1 => &["|b1"],
        Scalar::I8 => &["|i1", "|u1"],
        Scalar::I16 => &["<i2", "<u2"],
        Scalar::I32 => &["<i4", "<u4"],
        Scalar::I64 => &["<i8", "<u8"],
        Scalar::F16 => &["<f2"],
        Scalar::F32 => &["<f4"],
        Scalar::F64 => &["<f8"],
        Scalar::Bf16 => &["|V2", "<V2"],
        Scalar::F8E4M3 | Scalar::F8E5M2 => &["|V1", "<V1", "<f1", "|f1"],
    }
}

/// An array: its shape and its elements as they lie in memory, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Array {
    pub(super) shape: Vec<usize>,
    pub(super) bytes: Vec<u8>,
}

/// Reads a file whose elements are of a type.
pub(super) fn read(bytes: &[u8], scalar: Scalar) -> Result<Array, String> {
    let short = || "the file ends within its header".to_owned();
    let rest = bytes
        .strip_prefix(MAGIC)
        .ok_or("this is no file of NumPy: write it with numpy.save")?;
    let (&[major, _], rest) = rest.split_first_chunk().ok_or_else(short)?;
    let (length, rest) = match major {
        1 => {
            let (length, rest) = rest.split_first_chunk().ok_or_else(short)?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        }
        2 | 3 => {
            let (length, rest) = rest.split_first_chunk().ok_or_else(short)?;
            (u32::from_le_bytes(*length) as usize, rest)
        }
        _ => {
            return Err(format!(
                "version {major} of the format is not known; 1 to 3 are"
            ));
        }
    };
    if length > HEADER_BYTES {
        return Err(format!(
            "its header has {length} bytes, of at most {HEADER_BYTES}"
        ));
    }
    let (header, data) = rest.split_at_checked(length).ok_or_else(short)?;
    let header = str::from_utf8(header).map_err(|_| "its header is no text")?;
    let unread = |key: &str| {
        let header = quoted_within(header.trim_end(), SHOWN);
        format!("its header has no `{key}` that can be read: `{header}`")
    };
    let descr = entry(header, "descr")
        .and_then(text)
        .ok_or_else(|| unread("descr"))?;
    if !names(scalar).contains(&descr) {
        let expected = names(scalar)[0];
        let descr = quoted(descr);
        let advice = match descr.strip_prefix('>') {
            Some(_) => {
                "; its bytes are in the other order: save x.astype(x.dtype.newbyteorder('<'))"
            }
            None => "",
        };
        return Err(format!(
            "the file holds `{descr}`, the parameter points to {scalar}, which is `{expected}`{advice}"
        ));
    }
    let is_transposed = match entry(header, "fortran_order") {
        Some(value) if value.starts_with("False") => false,
        Some(value) if value.starts_with("True") => true,
        _ => return Err(unread("fortran_order")),
    };
    let shape = entry(header, "shape")
        .and_then(shape)
        .ok_or_else(|| unread("shape"))?;
    if is_transposed && shape.len() > 1 {
        let advice = "save numpy.ascontiguousarray(x)";
        return Err(format!(
            "its elements lie column by column (Fortran's order): {advice}"
        ));
    }
    let size = scalar.bytes() as usize;
    let count = shape
        .iter()
        .try_fold(size, |n, &extent| n.checked_mul(extent));
    let count = count
        .filter(|&bytes| bytes <= RUN_LINE_BYTES)
        .ok_or_else(|| {
            let limit = RUN_LINE_BYTES >> 20;
            format!("its shape {shape:?} has more than {limit} MiB, the most for a line")
        })?;
    if data.len() != count {
        let (has, behind) = (data.len() / size, data.len() > count);
        let problem = if behind {
            "more follow"
        } else {
            "it is cut short"
        };
        let wanted = count / size;
        return Err(format!(
            "{has} elements for the shape {shape:?}, which has {wanted}: {problem}"
        ));
    }
    let mut bytes = data.to_vec();
    if scalar == Scalar::I1 {
        bytes
            .iter_mut()
            .for_each(|byte| *byte = u8::from(*byte != 0));
    }
    Ok(Array { shape, bytes })
}

/// The file for an array.
pub(super) fn write(array: &Array, scalar: Scalar) -> Vec<u8> {
    let shape: Vec<String> = array.shape.iter().map(usize::to_string).collect();
    let shape = match &shape[..] {
        [one] => format!("({one},)"),
        several => format!("({})", several.join(", ")),
    };
    let descr = names(scalar)[0];
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // The elements start at a multiple of 64 bytes.
    let start = MAGIC.len() + 4;
    let end = (start + header.len() + 1).next_multiple_of(64);
    header += &" ".repeat(end - start - header.len() - 1);
    header.push('\n');
    let mut file = MAGIC.to_vec();
    file.extend([1, 0]);
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(&array.bytes);
    file
}

/// What follows a key of the header.
fn entry<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = ['\'', '"']
        .iter()
        .find_map(|quote| header.split_once(&format!("{quote}{key}{quote}")))?;
    Some(rest.trim_start().strip_prefix(':')?.trim_start())
}

/// A quoted text without escapes.
fn text(value: &str) -> Option<&str> {
    let quote = value.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    value[1..].split_once(quote).map(|(text, _)| text)
}

/// A tuple of numbers.
fn shape(value: &str) -> Option<Vec<usize>> {
    let (inside, _) = value.strip_prefix('(')?.split_once(')')?;
    let extents = inside
        .split(',')
        .map(str::trim)
        .filter(|extent| !extent.is_empty());
    extents.map(|extent| extent.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend([version, 0]);
        match version {
            1 => file.extend((header.len() as u16).to_le_bytes()),
            _ => file.extend((header.len() as u32).to_le_bytes()),
        }
        file.extend(header.as_bytes());
        file.extend(data);
        file
    }

    #[test]
    fn what_is_written_is_read() {
        for scalar in Scalar::ALL {
            for shape in [vec![], vec![3], vec![2, 0], vec![2, 3]] {
                let count: usize = shape.iter().product();
                let bytes = vec![1; count * scalar.bytes() as usize];
                let array = Array { shape, bytes };
                let file = write(&array, scalar);
                assert_eq!((file.len() - array.bytes.len()) % 64, 0);
                assert_eq!(read(&file, scalar), Ok(array), "{scalar}");
            }
        }
    }

    #[test]
    fn headers_of_all_versions_are_read() {
        let header = "{\"shape\": (2,), 'fortran_order': True, 'descr': '<u2'}\n";
        for version in 1..=3 {
            let array = read(&file(version, header, &[1, 2, 3, 4]), Scalar::I16);
            let (shape, bytes) = (vec![2], vec![1, 2, 3, 4]);
            assert_eq!(array, Ok(Array { shape, bytes }));
        }
    }

    #[test]
    fn mistakes_are_named() {
        let header = |descr, order, shape| {
            format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}")
        };
        let good = header("<f4", "False", "(2,)");
        let cases = [
            (b"PK".to_vec(), "no file of NumPy"),
            (MAGIC.to_vec(), "ends within its header"),
            (
                file(1, &good, &[0; 8])[..40].to_vec(),
                "ends within its header",
            ),
            (file(4, &good, &[0; 8]), "version 4 of the format"),
            (
                file(1, &header("<f8", "False", "(2,)"), &[0; 16]),
                "the file holds `<f8`, the parameter points to f32, which is `<f4`",
            ),
            (
                file(1, &header(">f4", "False", "(2,)"), &[0; 8]),
                "newbyteorder",
            ),
            (
                file(1, &header("<f4", "True", "(2, 1)"), &[0; 8]),
                "ascontiguousarray",
            ),
            (
                file(1, &header("<f4", "maybe", "(2,)"), &[0; 8]),
                "no `fortran_order`",
            ),
            (
                file(1, &header("<f4", "False", "(-2,)"), &[0; 8]),
                "no `shape`",
            ),
            (
                file(
                    1,
                    &header("<f4", "False", "(99999999999, 99999999999)"),
                    &[],
                ),
                "at most 256 MiB",
            ),
            (
                file(1, &good, &[0; 7]),
                "1 elements for the shape [2], which has 2: it is cut short",
            ),
            (file(1, &good, &[0; 12]), "more follow"),
            (file(1, "{}", &[]), "no `descr`"),
            (
                file(2, &" ".repeat(HEADER_BYTES + 1), &[]),
                "its header has 65537 bytes",
            ),
        ];
        for (bytes, words) in cases {
            let error = read(&bytes, Scalar::F32).expect_err(words);
            let words = words.replace("at most 256 MiB", "more than 256 MiB");
            assert!(error.contains(&words), "{error}");
        }
    }
}
