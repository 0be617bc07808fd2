//! Blocks of a matrix or vector: changes of shape, sums, scans, gathers, counting and sorting, on small integers, for which every
//! result is exact in whatever order.

use tilelift::ir::types::Scalar;

use super::data::{Random, encode};
use super::executor::{Case, HostArg};
use super::kernels::{Sizes, TILES, tile_kernel};

/// Sizes and warps: tiles with few and with many elements for each thread.
const CONFIGS: [(Sizes, u32); 4] = [
    (sizes(16, 32, 64, 16), 1),
    (sizes(16, 32, 128, 64), 4),
    (sizes(32, 64, 256, 16), 8),
    (sizes(2, 4, 8, 2), 2),
];

const fn sizes(tile: u64, matrix: u64, line: u64, bins: u64) -> Sizes {
    Sizes {
        tile,
        matrix,
        line,
        bins,
    }
}

/// Every kernel of the list.
pub(crate) fn tiles() -> Vec<Case> {
    let configs = CONFIGS.iter();
    let each = |&(sizes, warps)| TILES.iter().map(move |&(name, _)| case(name, sizes, warps));
    configs.flat_map(each).collect()
}

/// A square matrix, seen as tiles.
#[derive(Clone, Copy)]
struct Square {
    n: usize,
    tile: usize,
}

impl Square {
    /// The matrix that `element` gives for each tile, and row and column in it.
    fn map(self, element: impl Fn(usize, usize, usize, usize) -> f64) -> Vec<f64> {
        let mut all = Vec::new();
        for row in 0..self.n {
            for col in 0..self.n {
                let (i, j) = (row % self.tile, col % self.tile);
                all.push(element(row - i, col - j, i, j));
            }
        }
        all
    }

    /// One number for each line of each tile: `rows` by row, a line for each tile across, else by column.
    fn edges(self, rows: bool, element: impl Fn(usize, usize, usize) -> f64) -> Vec<f64> {
        let mut all = Vec::new();
        for across in (0..self.n).step_by(self.tile) {
            for along in 0..self.n {
                let within = along % self.tile;
                let start = along - within;
                let (top, left) = if rows {
                    (start, across)
                } else {
                    (across, start)
                };
                all.push(element(top, left, within));
            }
        }
        all
    }
}

fn case(name: &'static str, sizes: Sizes, warps: u32) -> Case {
    let scalars = TILES
        .iter()
        .find(|row| row.0 == name)
        .expect("of the list")
        .1;
    let [tile, n, line, bins] =
        [sizes.tile, sizes.matrix, sizes.line, sizes.bins].map(|x| x as usize);
    let square = Square { n, tile };
    let mut random = Random(warps.into());
    let mut numbers = |count: usize, lo: i64, hi: i64| -> Vec<f64> {
        let span = (hi - lo) as u64;
        (0..count)
            .map(|_| (lo + (random.bits() % span) as i64) as f64)
            .collect()
    };
    let tiles = (n / tile) as u32;
    let mut grid = [tiles, tiles, 1];
    let x = numbers(n * n, -8, 8);
    let at = |row: usize, col: usize| x[row * n + col];
    let mut inputs = vec![x.clone()];
    let outputs: Vec<Vec<f64>> = match name {
        "transpose" | "turn" => vec![square.map(|r, c, i, j| at(c + j, r + i))],
        "row_and_column_sums" => vec![
            square.edges(true, |r, c, i| (0..tile).map(|j| at(r + i, c + j)).sum()),
            square.edges(false, |r, c, j| (0..tile).map(|i| at(r + i, c + j)).sum()),
        ],
        "centre" => {
            vec![square.map(|r, c, i, j| {
                at(r + i, c + j) - (0..tile).map(|i| at(r + i, c + j)).sum::<f64>()
            })]
        }
        "scan_rows" => vec![square.map(|r, c, i, j| (0..=j).map(|j| at(r + i, c + j)).sum())],
        "scan_columns" => vec![square.map(|r, c, i, j| (0..=i).map(|i| at(r + i, c + j)).sum())],
        "scan_both" => vec![square.map(|r, c, i, j| {
            let row = |i| (0..=j).map(|j| at(r + i, c + j)).sum::<f64>();
            (0..=i).map(row).sum()
        })],
        "mixed" => {
            let y = numbers(n * n, -100, 100);
            let sums = x.iter().zip(&y).map(|(x, y)| x + y).collect();
            inputs.push(y);
            vec![sums]
        }
        "gather_rows" | "gather_columns" => {
            let index = numbers(n * n, 0, tile as i64);
            let rows = name == "gather_rows";
            let found = square.map(|r, c, i, j| {
                let place = index[(r + i) * n + c + j] as usize;
                if rows {
                    at(r + i, c + place)
                } else {
                    at(r + place, c + j)
                }
            });
            inputs.push(index);
            vec![found]
        }
        "interleave" => {
            grid = [2, 1, 1];
            inputs = vec![numbers(2 * line, -8, 8), numbers(2 * line, -8, 8)];
            let pairs = inputs[0].iter().zip(&inputs[1]);
            vec![pairs.flat_map(|(&x, &y)| [x, y]).collect()]
        }
        "split_pairs" => {
            grid = [2, 1, 1];
            let x = numbers(4 * line, -8, 8);
            let halves = [0, 1].map(|i| x.iter().skip(i).step_by(2).copied().collect());
            inputs = vec![x];
            halves.to_vec()
        }
        "outer_product" => {
            grid = [3, 1, 1];
            let x = numbers(3 * tile, -8, 8);
            let product = x.chunks(tile).flat_map(|v| {
                let rows = v.iter();
                rows.flat_map(move |a| v.iter().map(move |b| a * b))
            });
            let product = product.collect();
            inputs = vec![x];
            vec![product]
        }
        "row_argmax" => vec![square.edges(true, |r, c, i| {
            let best = (0..tile)
                .rev()
                .max_by(|&a, &b| at(r + i, c + a).total_cmp(&at(r + i, c + b)));
            best.expect("a tile has columns") as f64
        })],
        "histogram" => {
            grid = [2, 1, 1];
            let x = numbers(8 * line, -2, bins as i64 + 2);
            let counts = x.chunks(4 * line).flat_map(|block| {
                let bins = 0..bins;
                bins.map(move |bin| block.iter().filter(|&&x| x == bin as f64).count() as f64)
            });
            let counts = counts.collect();
            inputs = vec![x];
            vec![counts]
        }
        "sort" => {
            grid = [2, 1, 1];
            let x = numbers(2 * line, -40, 40);
            let mut sorted = x.clone();
            sorted
                .chunks_mut(line)
                .for_each(|row| row.sort_by(f64::total_cmp));
            inputs = vec![x];
            vec![sorted]
        }
        _ => panic!("no expectation for {name}"),
    };
    let encoded = |list: &[Vec<f64>], scalars: &[Scalar]| -> Vec<Vec<u8>> {
        let pairs = list.iter().zip(scalars);
        // Sums may be 0 of either sign; the kernels' are positive as they start from no zero of their own.
        pairs.map(|(x, &scalar)| encode(scalar, x)).collect()
    };
    let first_output = inputs.len();
    let expected = encoded(&outputs, &scalars[first_output..]);
    let mut args: Vec<HostArg> = encoded(&inputs, scalars)
        .into_iter()
        .map(HostArg::Buffer)
        .collect();
    args.extend(expected.iter().map(|bytes| HostArg::Output(bytes.len())));
    let func = tile_kernel(name, sizes, warps).expect("of the list");
    let title = format!("{name} of {tile} x {tile} or {line} over {warps} warps");
    Case::single(title, func, grid, args, move |args| {
        for (i, expected) in expected.iter().enumerate() {
            let found = args[first_output + i].bytes();
            let size = scalars[first_output + i].bytes() as usize;
            if let Some(byte) = found.iter().zip(expected).position(|(a, b)| a != b) {
                return Err(format!("output {i} differs at element {}", byte / size));
            }
        }
        Ok(())
    })
}
