//! By what cached kernels of another build of the compiler are told apart.

use std::path::{Path, PathBuf};

/// A hash of every source file below these folders of `root`, without what only tests are made of. It is FNV-1a: an identity is wanted, not a
/// defence.
pub(crate) fn fingerprint(root: &Path, folders: &[&str]) -> u64 {
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> = folders.iter().map(|name| root.join(name)).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.ends_with("tests") || path.ends_with("tests.rs") {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in &files {
        let contents = std::fs::read(file).unwrap_or_default();
        let name = file.strip_prefix(root).unwrap_or(file).to_string_lossy();
        let code = without_tests(&contents);
        for &byte in name.as_bytes().iter().chain(&[0]).chain(code) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}

/// A file less the module of tests at its end. One that ends elsewhere counts whole.
fn without_tests(contents: &[u8]) -> &[u8] {
    const BEGIN: &[u8] = b"\n#[cfg(test)]\nmod tests {\n";
    const END: &[u8] = b"\n}\n";
    let find = |text: &[u8], what: &[u8]| text.windows(what.len()).position(|part| part == what);
    let Some(begin) = find(contents, BEGIN) else {
        return contents;
    };
    match find(&contents[begin..], END) {
        Some(end) if begin + end + END.len() == contents.len() => &contents[..begin],
        _ => contents,
    }
}
