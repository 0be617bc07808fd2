//! Every instruction on many operand sets: a comparison with what an H100 gave.

use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::TAU;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tilelift::emu::{Arg, Launch, Memory, Module, Options, run};

use crate::edges::{BF16, F16, F32, F64, INT};
use crate::rows::{Row, SETS, THREADS, expand, module};

/// Runs row `index` of a module on operand sets, in CTAs of up to 256 threads; the words of its results.
pub(crate) fn run_row(
    module: &Module,
    index: usize,
    row: &Row,
    sets: &[Vec<u64>],
) -> Vec<Vec<u64>> {
    let mut memory = Memory::new();
    let bytes: Vec<u8> = sets.iter().flat_map(|set| row.encode(set)).collect();
    let input = memory.alloc_bytes(&bytes);
    let size = sets.len() * row.output_stride();
    let out = memory.alloc(size);
    let args = [Arg::pointer(input), Arg::pointer(out)];
    let threads = sets.len().min(THREADS);
    assert_eq!(sets.len() % threads, 0);
    let launch = Launch {
        grid: [(sets.len() / threads) as u32, 1, 1],
        block: [threads as u32, 1, 1],
        shared_bytes: 0,
        args: &args,
        options: Options::default(),
    };
    if let Err(error) = run(module, &format!("row_{index}"), &launch, &mut memory) {
        panic!("{}: {error}", row.name());
    }
    let bytes = memory.read(out, size).expect("every thread stores");
    words(row, &bytes)
}

/// The words of each set's results; two at least.
fn words(row: &Row, bytes: &[u8]) -> Vec<Vec<u64>> {
    let sets = bytes.chunks(row.output_stride());
    let word = |word: &[u8; 8]| u64::from_le_bytes(*word);
    sets.map(|set| {
        let mut words: Vec<u64> = set.as_chunks::<8>().0.iter().map(word).collect();
        words.resize(words.len().max(2), 0);
        words
    })
    .collect()
}

/// The error that an approximate row may have, see `rows.txt`.
pub(crate) struct Bound {
    relative: f64,
    absolute: f64,
}

/// The rows that are compared with hardware, approximate ones with their bound; those with `?` once hardware ran them.
pub(crate) fn table() -> Vec<(Option<Bound>, Row)> {
    let text = fs::read_to_string(folder().join("rows.txt")).expect("committed test data");
    let power = |exponent: &str| exponent.parse::<f64>().expect("a power of two").exp2();
    let mut names = BTreeSet::new();
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.strip_prefix("? ").unwrap_or(line))
        .flat_map(expand)
        .map(|line| match line.strip_prefix('~') {
            Some(rest) => {
                let (bounds, row) = rest.split_once(' ').expect("a bound and a row");
                let (relative, absolute) = match bounds.split_once(',') {
                    Some((relative, absolute)) => (power(relative), power(absolute)),
                    None => (power(bounds), 0.0),
                };
                (Some(Bound { relative, absolute }), Row::parse(row))
            }
            None => (None, Row::parse(&line)),
        })
        .filter(|(_, row)| names.insert(row.name()))
        .collect()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/ptx/hardware")
}

/// Operand sets for a row: edge cases against each other, then random bits, in the end with many NaNs.
fn operand_sets(row: &Row) -> Vec<Vec<u64>> {
    let edge = |letter: char, index: usize| -> u64 {
        let index = index % 16;
        match letter {
            'f' => F32[index],
            'h' => F16[index],
            'g' => BF16[index],
            'H' => F16[index] | F16[(index * 7 + 3) % 16] << 16,
            'G' => BF16[index] | BF16[(index * 7 + 3) % 16] << 16,
            // Finite ones must be angles.
            'q' | 'a' => match f32::from_bits(F32[index] as u32) {
                x if x.is_finite() && x.abs() > 6.0 => u64::from(f32::to_bits(index as f32 / 3.0)),
                _ => F32[index],
            },
            'e' => F64[index],
            's' => [0, 1, 2, 4, 5, 8, 15, 16, 24, 30, 31, 32, 33, 63, 64, 255][index],
            'p' => index as u64 & 1,
            _ => INT[index],
        }
    };
    let mut state = 7_u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state ^ state >> 29
    };
    // Integers of -4 to 3 in a format, repeated in a register.
    let small = |bits: u64, format: [u64; 8], width: u32, count: u32| -> u64 {
        (0..count)
            .map(|i| format[(bits >> (20 + 5 * i) & 7) as usize] << (i * width))
            .sum()
    };
    let letters = row.inputs();
    (0..SETS)
        .map(|index| {
            let mut set = vec![0; letters.len()];
            for (slot, &letter) in letters.iter().enumerate() {
                let bits = random();
                // NaNs of any sign and payload.
                let bits = match letter {
                    _ if index < 896 || random() >> 33 & 1 == 0 => bits,
                    'f' => bits | 0x7f80_0000,
                    'h' => bits | 0x7c00,
                    'g' => bits | 0x7f80,
                    'H' => bits | 0x7c00_7c00,
                    'G' => bits | 0x7f80_7f80,
                    'e' => bits | 0x7ff0_0000_0000_0000,
                    _ => bits,
                };
                // Every pair of edge cases.
                let place = match slot {
                    0 => index,
                    1 => index / 16,
                    2 => index / 5,
                    3 => index / 3,
                    _ => index / 7 + slot,
                };
                set[slot] = match (index, letter) {
                    (_, 'i') => small(bits, SMALL_F16, 16, 2),
                    (_, 'j') => small(bits, SMALL_BF16, 16, 2),
                    (_, 'k') => small(bits, SMALL_BF16.map(|x| x << 16), 32, 1),
                    (_, 'l') => small(bits, SMALL_F64, 64, 1),
                    (_, 'm') => small(bits, SMALL_E4M3, 8, 4),
                    (_, 'n') => small(bits, SMALL_F16.map(|x| x >> 8), 8, 4),
                    (0..256, _) => edge(letter, place),
                    (_, 's') => bits & 63,
                    (_, 'p') => bits & 1,
                    (_, 'q') => angle(bits, TAU),
                    (_, 'a') => angle(bits, 50.0 * TAU),
                    // Half of the floats lie near one, so that sums and roundings matter.
                    (..896, 'f') if index & 1 == 0 => bits & 0x81ff_ffff | 0x3e00_0000,
                    (..896, 'e') if index & 1 == 0 => {
                        bits & 0x803f_ffff_ffff_ffff | 0x3fc0_0000_0000_0000
                    }
                    _ => bits,
                };
            }
            // A comparison with memory succeeds half of the time.
            if row.opcode.contains(".cas.") && index & 1 == 0 {
                set[1] = set[0];
            }
            set
        })
        .collect()
}

/// -4 to 3 in formats.
const SMALL_F16: [u64; 8] = [0xc400, 0xc200, 0xc000, 0xbc00, 0, 0x3c00, 0x4000, 0x4200];
const SMALL_BF16: [u64; 8] = [0xc080, 0xc040, 0xc000, 0xbf80, 0, 0x3f80, 0x4000, 0x4040];
const SMALL_E4M3: [u64; 8] = [0xc8, 0xc4, 0xc0, 0xb8, 0, 0x38, 0x40, 0x44];
const SMALL_F64: [u64; 8] = [
    0xc010_0000_0000_0000,
    0xc008_0000_0000_0000,
    0xc000_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0,
    0x3ff0_0000_0000_0000,
    0x4000_0000_0000_0000,
    0x4008_0000_0000_0000,
];

/// An f32 between a number and its negative, from random bits.
fn angle(bits: u64, most: f64) -> u64 {
    let unit = (bits >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
    u64::from(((unit * most) as f32).to_bits())
}

/// A result as compared: PTX leaves the pattern of an f64 NaN open.
fn normal(letter: char, word: u64) -> u64 {
    let is_nan = letter == 'e' && f64::from_bits(word).is_nan();
    if is_nan { f64::NAN.to_bits() } else { word }
}

/// The results of a set as compared.
fn normals(row: &Row, words: &[u64]) -> Vec<u64> {
    let letters = row.results().into_iter().chain(std::iter::repeat('d'));
    let pairs = letters.zip(words);
    pairs.map(|(letter, &word)| normal(letter, word)).collect()
}

/// FNV-1a over the words.
fn digest(row: &Row, results: &[Vec<u64>]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in results
        .iter()
        .flat_map(|words| normals(row, words))
        .flat_map(u64::to_le_bytes)
    {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

/// A float result as f64.
fn float(row: &Row, bits: u64) -> f64 {
    match row.results()[0] {
        'h' => tilelift::num::f16::to_f64(bits as u16),
        'g' => tilelift::num::bf16::to_f64(bits as u16),
        'e' => f64::from_bits(bits),
        _ => f64::from(f32::from_bits(bits as u32)),
    }
}

/// Whether a result agrees with hardware's: in every bit, or within the row's bound.
fn agrees(bound: Option<&Bound>, row: &Row, their: &[u64], our: &[u64]) -> bool {
    let Some(bound) = bound else {
        return normals(row, their) == normals(row, our);
    };
    let (their, our) = (float(row, their[0]), float(row, our[0]));
    // Bits of one are the smallest number of the format.
    let allowed = (bound.relative * our.abs()).max(bound.absolute) + float(row, 1);
    their == our || their.is_nan() && our.is_nan() || (their - our).abs() <= allowed
}

/// Compares the table with what hardware gave. `tests/data/ptx/hardware/h100.txt` holds a digest of each
/// exact row's results and the results of each approximate row. To record it:
/// `TILELIFT_HARDWARE=DIR cargo test --test emulator hardware` writes `rows.ptx`, `rows.plan` and
/// `inputs.bin` there; `hardware.py DIR` on a machine with a GPU writes `digests.txt`, `device.txt`
/// and the results of the rows that need a closer look; the same test again compares every value
/// and, with BLESS=1, writes the file.
#[test]
fn the_table_agrees_with_hardware() {
    let table = table();
    let rows: Vec<Row> = table.iter().map(|(_, row)| row.clone()).collect();
    let text = module(&rows);
    assemble(&text);
    let parsed = match Module::parse(&text) {
        Ok(parsed) => parsed,
        Err(error) => panic!(
            "{error}: {}",
            text.lines()
                .nth(error.line as usize - 1)
                .unwrap_or_default()
        ),
    };
    let sets: Vec<Vec<Vec<u64>>> = rows.iter().map(operand_sets).collect();
    let ours: Vec<Vec<Vec<u64>>> = (0..rows.len())
        .map(|index| run_row(&parsed, index, &rows[index], &sets[index]))
        .collect();
    if let Some(folder) = std::env::var_os("TILELIFT_HARDWARE") {
        record(Path::new(&folder), &text, &table, &sets, &ours);
    }
    let recorded = fs::read_to_string(folder().join("h100.txt")).expect("committed test data");
    let text = fs::read_to_string(folder().join("rows.txt")).expect("committed test data");
    let waiting = text.lines().filter_map(|line| line.strip_prefix("? "));
    let waiting: BTreeSet<String> = waiting.flat_map(expand).collect();
    let mut n_waiting = 0;
    for ((bound, row), ours) in table.iter().zip(&ours) {
        let name = row.name();
        let mut lines = recorded.lines();
        let found = lines.find_map(|line| line.strip_prefix(name.as_str())?.strip_prefix(": "));
        let Some(line) = found else {
            assert!(waiting.contains(&name), "`{name}` is not recorded");
            n_waiting += 1;
            continue;
        };
        if bound.is_none() {
            assert_eq!(line, format!("{:016x}", digest(row, ours)), "{name}");
            continue;
        }
        let theirs: Vec<u64> = line
            .split(' ')
            .map(|word| u64::from_str_radix(word, 16).expect("a result"))
            .collect();
        assert_eq!(theirs.len(), ours.len(), "{name}");
        for (&their, our) in theirs.iter().zip(ours) {
            assert!(
                agrees(bound.as_ref(), row, &[their], our),
                "{name}: hardware {their:x}, emulator {our:x?}"
            );
        }
    }
    if n_waiting != 0 {
        eprintln!("skipped: {n_waiting} rows wait for hardware");
    }
}

/// Writes what hardware needs, or compares with what it gave.
fn record(
    folder: &Path,
    text: &str,
    table: &[(Option<Bound>, Row)],
    sets: &[Vec<Vec<u64>>],
    ours: &[Vec<Vec<u64>>],
) {
    let Ok(digests) = fs::read_to_string(folder.join("digests.txt")) else {
        return write_plan(folder, text, table, sets, ours);
    };
    let digests: Vec<&str> = digests.lines().collect();
    assert_eq!(digests.len(), table.len(), "results of another table");
    let device = fs::read_to_string(folder.join("device.txt")).expect("`hardware.py` writes it");
    let mut wrong = Vec::new();
    let mut lines = format!(
        "# {}. Exact rows: a digest of the results; approximate rows: the results.\n",
        device.trim()
    );
    for (index, (bound, row)) in table.iter().enumerate() {
        let name = row.name();
        let ours = &ours[index];
        if bound.is_none() && digests[index] == format!("{:016x}", digest(row, ours)) {
            lines += &format!("{name}: {}\n", digests[index]);
            continue;
        }
        let bytes = fs::read(folder.join(format!("row_{index}.bin")));
        let theirs = words(row, &bytes.expect("`hardware.py` writes it"));
        let differing: Vec<String> = sets[index]
            .iter()
            .zip(theirs.iter().zip(ours))
            .filter(|&(_, (their, our))| !agrees(bound.as_ref(), row, their, our))
            .map(|(set, (their, our))| {
                format!("\n  {set:x?}: hardware {their:x?}, emulator {our:x?}")
            })
            .collect();
        if !differing.is_empty() {
            // The first few tell edge cases, the last few NaNs.
            let count = differing.len();
            let shown: String = differing
                .iter()
                .enumerate()
                .filter(|&(at, _)| at < 5 || at + 5 >= count)
                .map(|(_, line)| line.as_str())
                .collect();
            wrong.push(format!("{name}: {count} results{shown}"));
        }
        let results: Vec<String> = match bound {
            None => vec![format!("{:016x}", digest(row, &theirs))],
            Some(_) => theirs
                .iter()
                .map(|words| format!("{:x}", words[0]))
                .collect(),
        };
        lines += &format!("{name}: {}\n", results.join(" "));
    }
    assert!(
        wrong.is_empty(),
        "{} rows differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    if std::env::var_os("BLESS").is_some() {
        fs::write(self::folder().join("h100.txt"), lines).expect("the folder can be written");
    }
}

/// Writes `rows.ptx`; `inputs.bin`, in which rows of the same operands share their sets; and
/// `rows.plan`: for each row where its sets stand, the strides, the letters of the results, the
/// digest (`-` for approximate rows) and the row.
fn write_plan(
    folder: &Path,
    text: &str,
    table: &[(Option<Bound>, Row)],
    sets: &[Vec<Vec<u64>>],
    ours: &[Vec<Vec<u64>>],
) {
    let mut inputs: Vec<u8> = Vec::new();
    let mut places = BTreeMap::new();
    let mut plan = String::new();
    for (index, (bound, row)) in table.iter().enumerate() {
        let bytes: Vec<u8> = sets[index].iter().flat_map(|set| row.encode(set)).collect();
        let place = *places.entry(bytes.clone()).or_insert_with(|| {
            inputs.extend(&bytes);
            inputs.len() - bytes.len()
        });
        let digest = match bound {
            None => format!("{:016x}", digest(row, &ours[index])),
            Some(_) => "-".to_owned(),
        };
        let letters: String = row.results().into_iter().collect();
        plan += &format!(
            "{place} {} {} {letters}. {digest} {}\n",
            row.input_stride(),
            row.output_stride(),
            row.name()
        );
    }
    let files = [
        ("rows.ptx", text.as_bytes()),
        ("rows.plan", plan.as_bytes()),
        ("inputs.bin", &inputs),
    ];
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).expect("the folder can be written");
    }
}

/// Assembles text with `ptxas`, if it can be found.
fn assemble(text: &str) {
    let ptxas = std::env::var_os("TILELIFT_PTXAS").unwrap_or_else(|| "ptxas".into());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (source, target) = (
        folder.path().join("rows.ptx"),
        folder.path().join("rows.cubin"),
    );
    fs::write(&source, text).expect("the folder can be written");
    let output = Command::new(ptxas)
        .arg("-arch=sm_90")
        .arg("-O0")
        .arg(&source)
        .arg("-o")
        .arg(&target)
        .output();
    match output {
        Ok(output) => assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        ),
        Err(error) => {
            assert!(
                std::env::var_os("TILELIFT_REQUIRE_PTXAS").is_none(),
                "ptxas: {error}"
            );
            eprintln!("skipped: ptxas was not found");
        }
    }
}
