//! Files that buffers come from and go to.

use std::io::Read;
use std::path::Path;

use super::Setup;
use super::exec::{ArgValue, Argument, Contents, from_bytes};
use super::npy::{self, Array};
use crate::ir::types::Scalar;
use crate::limits::RUN_LINE_BYTES;
use crate::text::quote::quoted;

/// The array in a file, whose elements are of a type.
pub(super) fn read(path: &str, scalar: Scalar, setup: &Setup<'_>) -> Result<Array, String> {
    let bytes = read_bytes(path, setup)?;
    npy::read(&bytes, scalar).map_err(|problem| format!("{}: {problem}", quoted(path)))
}

/// The array in a file and the first of our types that its elements are of.
pub(super) fn read_any(path: &str, setup: &Setup<'_>) -> Result<(Scalar, Array), String> {
    let bytes = read_bytes(path, setup)?;
    let mut types = Scalar::ALL.into_iter();
    let found = types.find_map(|scalar| Some((scalar, npy::read(&bytes, scalar).ok()?)));
    let problem = || npy::read(&bytes, Scalar::F32).err().unwrap_or_default();
    found.ok_or_else(|| format!("{}: {}", quoted(path), problem()))
}

fn read_bytes(path: &str, setup: &Setup<'_>) -> Result<Vec<u8>, String> {
    let place = setup.folder.unwrap_or(Path::new("")).join(path);
    let shown = quoted(&place.to_string_lossy());
    let mut bytes = Vec::new();
    // A little more than the elements, for the header; what is longer shows by what is missing.
    let most = RUN_LINE_BYTES as u64 + (1 << 20);
    let file = std::fs::File::open(place);
    let read = file.and_then(|file| file.take(most).read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(bytes),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

/// The elements of the array in a file.
pub(super) fn elements(
    path: &str,
    scalar: Scalar,
    setup: &Setup<'_>,
) -> Result<Vec<Option<u64>>, String> {
    let array = read(path, scalar, setup)?;
    let elements = array.bytes.chunks_exact(scalar.bytes() as usize);
    Ok(elements.map(|bytes| Some(from_bytes(bytes))).collect())
}

/// Writes the buffers that are asked for.
pub(super) fn save(
    setup: &Setup<'_>,
    args: &[Argument],
    after: &[Option<Contents>],
) -> Result<(), String> {
    for (name, path) in setup.save {
        let pairs = args.iter().zip(after);
        let found = pairs
            .filter(|(arg, _)| arg.name == *name)
            .find_map(|(arg, held)| {
                let ArgValue::Buffer { scalar, count, .. } = &arg.it else {
                    return None;
                };
                Some((arg, *scalar, *count, held.as_ref()?))
            });
        let Some((arg, scalar, count, held)) = found else {
            return Err(format!("there is no buffer `{}` to save", quoted(name)));
        };
        let (bytes, is_whole) = held.bytes();
        if !is_whole {
            let advice = "start it with zeros instead of poison";
            let name = quoted(name);
            return Err(format!(
                "`{name}` is not saved, as not all of it was written: {advice}"
            ));
        }
        let array = Array {
            shape: arg.shape.clone().unwrap_or_else(|| vec![count]),
            bytes: bytes.to_vec(),
        };
        let written = crate::filetest::write_atomically(path, &npy::write(&array, scalar));
        written.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}
