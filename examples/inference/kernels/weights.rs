//! Products with weights that become floats where they are used, as `weights.py` says. `x` is M x K, `out` M x N.

use tilelift::runtime::{Buffer, Element, Stream};
use tilelift::tune::Config;

use super::{Error, Kernels, by_blocks, expect, expect_multiple, product, size};

/// Weights of few bits, and how they lie.
pub(crate) enum Few<'a, T: Element> {
    /// K x N integers, and a scale for each column.
    Bytes(&'a Buffer<i8>, &'a Buffer<T>),
    /// N x K integers, and a scale for each row of these.
    Rows(&'a Buffer<i8>, &'a Buffer<T>),
    /// Eight numbers of four bits in a word along K.
    Words {
        /// K/8 x N words.
        words: &'a Buffer<i32>,
        /// K/group x N.
        scales: &'a Buffer<T>,
        /// What is taken off the numbers before they are scaled, eight in a word along N: K/group x N/8.
        zeros: &'a Buffer<i32>,
        /// Numbers of a group: a multiple of 64.
        group: usize,
    },
    /// Two numbers of e2m1 in a byte along K, N x K/2, and powers of two for each 32, N x K/32.
    Mx(&'a Buffer<u8>, &'a Buffer<u8>),
}

/// Blocks for so many rows, the best of a few for bytes on an H100 first; steps along K divide `deepest`.
fn blocks(m: usize, deepest: usize) -> Vec<Config> {
    let (bm, all) = match m {
        ..=16 => (16, [(32, 128, 4, 5), (64, 256, 4, 3), (64, 64, 4, 5)]),
        17..=64 => (
            m.next_power_of_two(),
            [(64, 256, 4, 3), (64, 128, 4, 4), (64, 64, 4, 5)],
        ),
        65..=1024 => (128, [(128, 64, 8, 4), (64, 64, 4, 4), (128, 64, 4, 3)]),
        _ => (256, [(128, 64, 8, 3), (128, 64, 8, 4), (64, 64, 8, 4)]),
    };
    let fits = all
        .into_iter()
        .filter(|(_, bk, ..)| deepest.is_multiple_of(*bk));
    fits.map(|(bn, bk, warps, stages)| product(bm, bn, bk, warps, stages))
        .collect()
}

impl Kernels {
    /// `out = x @ weight`. K is a multiple of the group, or of 64 for mxfp4; N of words is a multiple of 8.
    pub(crate) fn few_bits<T: Element>(
        &self,
        stream: &Stream,
        out: &Buffer<T>,
        x: &Buffer<T>,
        weight: &Few<'_, T>,
        [m, n, k]: [usize; 3],
    ) -> Result<(), Error> {
        expect("out", out, &[m, n])?;
        expect("x", x, &[m, k])?;
        let (rows, columns, depth) = (size("M", m)?, size("N", n)?, size("K", k)?);
        let kernel = |name| -> Result<_, Error> {
            let kernel = self.device.kernel(&self.weights, name)?;
            Ok(kernel.constant("GROUP", 8)?)
        };
        let grid = by_blocks(m, n);
        let key = ["M", "N", "K"];
        match *weight {
            Few::Bytes(values, scales) | Few::Rows(values, scales) => {
                expect("weight", values, &[n, k])?;
                expect("scales", scales, &[n])?;
                let (along_k, along_n) = match weight {
                    Few::Rows(..) => (1, depth),
                    _ => (columns, 1),
                };
                let args = (
                    out, x, values, scales, rows, columns, depth, along_k, along_n,
                );
                self.launch(
                    stream,
                    &kernel("byte_weights")?,
                    blocks(m, 256),
                    &key,
                    &grid,
                    args,
                )
            }
            Few::Words {
                words,
                scales,
                zeros,
                group,
            } => {
                expect_multiple("the group", group, 64)?;
                expect_multiple("K", k, group)?;
                expect_multiple("N", n, 8)?;
                expect("words", words, &[k / 8, n])?;
                expect("scales", scales, &[k / group, n])?;
                expect("zeros", zeros, &[k / group, n / 8])?;
                let of_group = size("the group", group)?;
                let args = (out, x, words, scales, zeros, rows, columns, depth, of_group);
                self.launch(
                    stream,
                    &kernel("word_weights")?,
                    blocks(m, group),
                    &key,
                    &grid,
                    args,
                )
            }
            Few::Mx(values, scales) => {
                expect_multiple("K", k, 64)?;
                expect("weight", values, &[n, k / 2])?;
                expect("scales", scales, &[n, k / 32])?;
                let args = (out, x, values, scales, rows, columns, depth);
                self.launch(
                    stream,
                    &kernel("mx_weights")?,
                    blocks(m, k),
                    &key,
                    &grid,
                    args,
                )
            }
        }
    }
}
