//! Breaks texts: small changes of a valid one reach deeper than random bytes, and both are tried.

use super::random::Random;

/// Numbers at which readers go wrong.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "31",
    "32",
    "33",
    "63",
    "64",
    "65",
    "255",
    "1024",
    "4096",
    "65536",
    "1048576",
    "2147483647",
    "-2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "0x",
    "0xffffffffffffffff",
    "1e400",
    "-0.0",
    "nan",
    "inf",
];

/// Bytes that mean something to one of the readers, and some that do not.
const BYTES: &[u8] = b"{}()[]<>@%;:,.=#\"'\\/*-+&|!~^$_ \t\r\n0179aexvzXZ\x00\x7f";

/// Changes to draw until a reader accepts one.
const ATTEMPTS: usize = 40;

/// A text after a few random changes; `words` are taken from `other` too.
pub fn mutate(random: &mut Random, text: &str, other: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..1 + random.weighted(&[70, 20, 7, 3]) {
        if bytes.is_empty() {
            bytes = other.as_bytes().to_vec();
        }
        change(random, &mut bytes, other.as_bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Like [`mutate`], but most often what results is acceptable to a reader: the changes are drawn anew until it is, or for
/// long enough.
pub fn mutate_for(
    random: &mut Random,
    text: &str,
    other: &str,
    accepts: impl Fn(&str) -> bool,
) -> String {
    let mut changed = mutate(random, text, other);
    if random.chance(80) {
        for _ in 0..ATTEMPTS {
            // A change of comments or back to the same is none.
            if changed != text && accepts(&changed) {
                break;
            }
            changed = mutate(random, text, other);
        }
    }
    changed
}

/// Random bytes, most of which readers know.
pub fn noise(random: &mut Random) -> String {
    let count = random.below(400);
    let bytes: Vec<u8> = (0..count)
        .map(|_| match random.chance(90) {
            true => random.pick(BYTES),
            false => random.bits() as u8,
        })
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn change(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    match random.weighted(&[1, 1, 1, 2, 2, 5, 10, 4]) {
        0 => {
            let at = random.below(bytes.len());
            bytes[at] = random.pick(BYTES);
        }
        1 => {
            let at = random.below(bytes.len());
            let end = (at + 1 + random.below(8)).min(bytes.len());
            bytes.drain(at..end);
        }
        2 => {
            let at = random.below(bytes.len());
            bytes.insert(at, random.pick(BYTES));
        }
        // Lines: left out, doubled, or put elsewhere.
        3 => {
            let line = span(random, bytes, |b| b != b'\n');
            bytes.drain(line);
        }
        4 => {
            let line = span(random, bytes, |b| b != b'\n');
            let copy = [&bytes[line], b"\n"].concat();
            let target = span(random, bytes, |b| b != b'\n').start;
            bytes.splice(target..target, copy);
        }
        // Words: a number by another, a word by one of this text or the other.
        5 => {
            let number = span(random, bytes, |b| b.is_ascii_digit());
            let with = random.pick(NUMBERS).bytes();
            bytes.splice(number, with);
        }
        6 => {
            let target = span(random, bytes, is_word);
            let with = like(random, &bytes[target.clone()], bytes).to_vec();
            bytes.splice(target, with);
        }
        _ if other.is_empty() => {}
        _ => {
            let target = span(random, bytes, is_word);
            let with = like(random, &bytes[target.clone()], other).to_vec();
            bytes.splice(target, with);
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.' || byte == b'%'
}

/// A word of `text`, most often of the kind of `word`: another register, number, type or op.
fn like<'a>(random: &mut Random, word: &[u8], text: &'a [u8]) -> &'a [u8] {
    let kind = |word: &[u8]| -> Vec<u8> {
        let letters = word.iter().take_while(|b| !b.is_ascii_digit());
        let letters: Vec<u8> = letters.copied().collect();
        match letters.len() {
            // Registers and numbers.
            0..=3 => letters,
            _ => b"word".to_vec(),
        }
    };
    let wanted = kind(word);
    let mut found = &text[..0];
    for _ in 0..20 {
        found = &text[span(random, text, is_word)];
        if kind(found) == wanted && found != word {
            break;
        }
    }
    found
}

/// A run of bytes of a class, the first one at or after a random place; may be empty.
fn span(random: &mut Random, bytes: &[u8], class: impl Fn(u8) -> bool) -> std::ops::Range<usize> {
    let at = random.below(bytes.len());
    let mut start = (at..bytes.len())
        .find(|&i| class(bytes[i]))
        .unwrap_or(bytes.len());
    while 0 < start && start < bytes.len() && class(bytes[start - 1]) {
        start -= 1;
    }
    let end = (start..bytes.len())
        .find(|&i| !class(bytes[i]))
        .unwrap_or(bytes.len());
    start..end
}
