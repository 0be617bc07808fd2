//! Times that the model expects beside those that were measured: the launches of `times.txt`.

use std::collections::BTreeMap;
use std::path::Path;

use tilelift::front::{Module, Specialization, parse_signature};
use tilelift::predict::{Estimate, Launch, Model};
use tilelift::settings::{Options, Target};

/// A launch of a kernel in one configuration.
struct Measured {
    estimate: Estimate,
    micros: f64,
}

/// The launches of each kernel of `times.txt`, whose comment says how it reads.
fn kernels() -> Vec<(String, Vec<Measured>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("tests/data/times.txt")).expect("it can be read");
    let mut modules: BTreeMap<String, Module> = BTreeMap::new();
    let mut kernels: Vec<(String, Vec<Measured>)> = Vec::new();
    let mut kernel = ("", "", "", "");
    for line in text.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(rest) = line.strip_prefix("kernel ") {
            let (words, signature) = rest.split_once(" \"").expect("a signature");
            let words: Vec<&str> = words.split(' ').collect();
            let [file, name, numbers] = words[..] else {
                panic!("{line}: a file, a kernel and numbers");
            };
            kernel = (file, name, numbers, signature.trim_end_matches('"'));
            kernels.push((format!("{name} {numbers}"), Vec::new()));
            continue;
        }
        let (file, name, numbers, signature) = kernel;
        let module = modules.entry(file.to_owned()).or_insert_with(|| {
            let path = root.join("examples/kernels").join(file);
            let text = std::fs::read_to_string(&path).expect("the examples are there");
            Module::parse(file, &text).expect("it is Python")
        });
        let words: Vec<&str> = line.split(' ').collect();
        let [constants @ .., warps, stages, grid, micros] = &words[..] else {
            panic!("{line}: constants, warps, stages, grid and microseconds");
        };
        let mut signature = signature.to_owned();
        for constant in constants {
            signature = signature.replacen("{}", constant, 1);
        }
        let target = Target::SM_90A;
        let spec = Specialization {
            num_warps: warps.parse().expect("a number of warps"),
            num_stages: stages.parse().ok(),
            ..Specialization::new(parse_signature(&signature).expect("a signature"), target)
        };
        let lowered = module.lower(Some(name), &spec).expect("it is right");
        let options = Options {
            verify_passes: false,
            ..Options::DEFAULT
        };
        let model = Model::of(&lowered.func, target, &options).expect("it compiles");
        let numbers: Vec<Option<i64>> = numbers.split(',').map(|n| n.parse().ok()).collect();
        let extents: Vec<u32> = grid
            .split('x')
            .map(|n| n.parse().expect("an extent"))
            .collect();
        let launch = Launch {
            grid: extents.try_into().expect("three extents"),
            numbers: &numbers,
        };
        let estimate = model.and_then(|model| model.estimate(&launch));
        let (_, launches) = kernels.last_mut().expect("a kernel comes first");
        launches.push(Measured {
            estimate: estimate.unwrap_or_else(|| panic!("{name} {line}: no estimate")),
            micros: micros.parse().expect("microseconds"),
        });
    }
    kernels
}

/// Places of numbers in ascending order.
fn ranks(numbers: &[f64]) -> Vec<f64> {
    let rank = |&x: &f64| {
        let below = numbers.iter().filter(|&&y| y < x).count();
        let equal = numbers.iter().filter(|&&y| y == x).count();
        // Equal ones share their places.
        below as f64 + (equal - 1) as f64 / 2.0
    };
    numbers.iter().map(rank).collect()
}

/// Spearman's rank correlation.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (ranks(a), ranks(b));
    let middle = (a.len() - 1) as f64 / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(x, y)| (x - middle) * (y - middle)).sum()
    };
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
}

#[test]
fn expected_times_rank_configurations_as_measured_ones_do() {
    let (mut products, mut lost) = (Vec::new(), Vec::new());
    let kernels = kernels();
    assert_eq!(kernels.len(), 10);
    for (name, launches) in &kernels {
        let measured: Vec<f64> = launches.iter().map(|l| l.micros).collect();
        let expected: Vec<f64> = launches.iter().map(|l| l.estimate.micros).collect();
        let best = measured.iter().copied().fold(f64::INFINITY, f64::min);
        let choice = expected
            .iter()
            .enumerate()
            .min_by(|(_, a), (_, b)| a.total_cmp(b));
        let (choice, _) = choice.expect("there are launches");
        lost.push(measured[choice] / best);
        // Half are within 9 %, nine of ten within 23 %; caches and clocks that the model does not know make the rest.
        for (expected, measured) in expected.iter().zip(&measured) {
            let ratio = expected / measured;
            assert!(
                (0.5..2.0).contains(&ratio),
                "{name}: {expected} for {measured}"
            );
        }
        if name.contains("matmul") {
            products.push(correlation(&expected, &measured));
        }
    }
    let middle = |numbers: &[f64]| numbers.iter().sum::<f64>() / numbers.len() as f64;
    // 0.90 over the 40 products that were drawn after the model was made.
    assert!(middle(&products) > 0.85, "{products:.2?}");
    // 1.015 and at worst 1.12 over these, of three times as many configurations.
    let worst = lost.iter().copied().fold(1.0, f64::max);
    assert!(middle(&lost) < 1.04 && worst < 1.25, "{lost:.3?}");
}

#[test]
fn what_bounds_a_launch_is_told() {
    let kernels = kernels();
    let bound = |part: &str, at: usize| {
        let found = kernels.iter().find(|(name, _)| name.contains(part));
        let (_, launches) = found.expect("there is such a kernel");
        launches[at]
            .estimate
            .bound()
            .map(|resource| resource.name())
    };
    assert_eq!(bound("8128,1024,2560", 0), Some("tensor cores"));
    assert_eq!(bound("softmax", 0), Some("device memory"));
}
