//! Attention, forward and backward.

use tilelift::num::Format;
use tilelift::settings::Target;

use super::Case;
use super::launch::{Arg, Expected, buffer, check, rounded, steps};

const BOTH: &[Target] = &[Target::SM_80, Target::SM_90];
const LOG2_E: f64 = std::f64::consts::LOG2_E;

/// One head: queries, keys and values of `n` rows.
struct Head {
    n: usize,
    dim: usize,
    scale: f64,
    causal: bool,
    q: Vec<f64>,
    k: Vec<f64>,
    v: Vec<f64>,
}

impl Head {
    fn new(n: usize, dim: usize, causal: bool, seed: u64) -> Head {
        Head {
            n,
            dim,
            scale: 0.5,
            causal,
            q: steps(n * dim, seed),
            k: steps(n * dim, seed + 1),
            v: steps(n * dim, seed + 2),
        }
    }

    fn dot(&self, a: &[f64], i: usize, b: &[f64], j: usize) -> f64 {
        let row = |v: &[f64], i: usize| v[i * self.dim..(i + 1) * self.dim].to_vec();
        row(a, i).iter().zip(row(b, j)).map(|(a, b)| a * b).sum()
    }

    /// The weights of each query, and the base-2 logarithm of what they were divided by.
    fn weights(&self) -> (Vec<f64>, Vec<f64>) {
        let (mut weights, mut logs) = (Vec::new(), Vec::new());
        for i in 0..self.n {
            let seen = |j: usize| !self.causal || j <= i;
            let powers: Vec<f64> = (0..self.n)
                .map(|j| {
                    if seen(j) {
                        (self.dot(&self.q, i, &self.k, j) * self.scale).exp()
                    } else {
                        0.0
                    }
                })
                .collect();
            let sum: f64 = powers.iter().sum();
            weights.extend(powers.iter().map(|p| p / sum));
            logs.push(sum.log2());
        }
        (weights, logs)
    }

    /// `a b` for weights `a` of queries and keys, or of keys and queries.
    fn apply(&self, a: &[f64], transposed: bool, b: &[f64]) -> Vec<f64> {
        let weight = |i: usize, j: usize| {
            if transposed {
                a[j * self.n + i]
            } else {
                a[i * self.n + j]
            }
        };
        let all = (0..self.n).flat_map(|i| (0..self.dim).map(move |d| (i, d)));
        all.map(|(i, d)| {
            (0..self.n)
                .map(|j| weight(i, j) * b[j * self.dim + d])
                .sum()
        })
        .collect()
    }
}

fn half(numbers: &[f64]) -> Arg {
    buffer(Format::F16, numbers)
}

fn near(arg: usize, format: Format, numbers: Vec<f64>, absolute: f64) -> Expected {
    Expected {
        arg,
        format,
        numbers,
        relative: 2e-3,
        absolute,
    }
}

#[test]
fn forward() {
    let (n, dim) = (64, 32);
    for (causal, stage) in [(false, 1), (true, 3)] {
        let heads = [1, 5].map(|seed| Head::new(n, dim, causal, seed));
        let [q, k, v] = [
            |h: &Head| h.q.clone(),
            |h: &Head| h.k.clone(),
            |h: &Head| h.v.clone(),
        ]
        .map(|part| half(&heads.iter().flat_map(part).collect::<Vec<f64>>()));
        let (mut out, mut logs) = (Vec::new(), Vec::new());
        for head in &heads {
            let (weights, log) = head.weights();
            out.extend(head.apply(&weights, false, &head.v));
            logs.extend(log);
        }
        let before = vec![
            Arg::F32(0.5),
            buffer(Format::F32, &vec![0.0; 2 * n]),
            Arg::I32(1),
            Arg::I32(2),
        ];
        let matrices = [q, k, v, half(&vec![0.0; out.len()])];
        let rest = format!("i32:16, {dim}, 32, 16, False, {stage}, False, False");
        for described in [false, true] {
            let mut args = before.clone();
            for matrix in &matrices {
                args.push(matrix.clone());
                if described {
                    args.extend([
                        Arg::I32(2 * n as i32),
                        Arg::I32(dim as i32),
                        Arg::I64(dim as i64),
                    ]);
                }
            }
            args.push(Arg::I32(n as i32));
            let entry = |rows: usize| match described {
                true => format!("tensordesc<fp16[{rows}, {dim}]>"),
                false => "*fp16:16".to_owned(),
            };
            let entries = [32, 16, 16, 32].map(entry).join(", ");
            let signature = format!("fp32, *fp32:16, i32, i32, {entries}, {rest}");
            let case = Case::new("06", "_attn_fwd", signature, 4, 2);
            let at = if described { 16 } else { 7 };
            // The weights have 11 bits when they meet the values.
            let expected = [
                near(at, Format::F16, out.clone(), 1e-3),
                near(1, Format::F32, logs.clone(), 1e-4),
            ];
            check(&case, BOTH, [2, 2, 1], &args, &expected);
        }
    }
}

#[test]
fn backward() {
    let (n, dim) = (128, 32);
    for causal in [false, true] {
        let head = Head::new(n, dim, causal, 11);
        let gradient = steps(n * dim, 21);
        let (weights, logs) = head.weights();
        let out = head.apply(&weights, false, &head.v);
        let out: Vec<f64> = out.iter().map(|&x| rounded(Format::F16, x)).collect();
        let delta: Vec<f64> = (0..n).map(|i| head.dot(&out, i, &gradient, i)).collect();

        let args = [
            half(&out),
            half(&gradient),
            buffer(Format::F32, &vec![0.0; n]),
            Arg::I32(1),
            Arg::I32(1),
            Arg::I32(n as i32),
        ];
        let signature = "*fp16:16, *fp16:16, *fp32:16, i32, i32, i32:16, 32, 32";
        let case = Case::new("06", "_attn_bwd_preprocess", signature, 4, 3);
        check(
            &case,
            BOTH,
            [4, 1, 1],
            &args,
            &[near(2, Format::F32, delta.clone(), 1e-5)],
        );

        let mut slopes = Vec::new();
        for i in 0..n {
            for j in 0..n {
                let weight = weights[i * n + j];
                slopes.push(weight * (head.dot(&gradient, i, &head.v, j) - delta[i]) * head.scale);
            }
        }
        // The kernel has keys that the host has scaled, in 11 bits: the weights differ by as much.
        let keys: Vec<f64> = head.k.iter().map(|k| k * head.scale * LOG2_E).collect();
        let none = half(&vec![0.0; n * dim]);
        let mut args = vec![
            half(&head.q),
            half(&keys),
            half(&head.v),
            Arg::F32(0.5),
            half(&gradient),
        ];
        args.extend([none.clone(), none.clone(), none]);
        args.extend([buffer(Format::F32, &logs), buffer(Format::F32, &delta)]);
        let size = (n * dim) as i32;
        args.extend([size, size, dim as i32, 1, n as i32].map(Arg::I32));
        let halves = "*fp16:16, *fp16:16, *fp16:16";
        let numbers = "i32:16, i32:16, i32:16, i32:1, i32, i32:16";
        let causal = if causal { "True" } else { "False" };
        let signature = format!(
            "{halves}, fp32, *fp16:16, {halves}, *fp32:16, *fp32:16, {numbers}, 32, 64, 64, 32, 2, {dim}, {causal}"
        );
        let case = Case::new("06", "_attn_bwd", signature, 4, 3);
        let expected = [
            near(5, Format::F16, head.apply(&slopes, false, &head.k), 1e-2),
            near(6, Format::F16, head.apply(&slopes, true, &head.q), 1e-2),
            near(7, Format::F16, head.apply(&weights, true, &gradient), 1e-2),
        ];
        check(&case, BOTH, [2, 1, 1], &args, &expected);
    }
}
