//! Products with weights that become floats where they are used, as `weights.py` says. `x` is M x K, `out` M x N.

use tilelift::runtime::{Buffer, Constants, Element, Stream};
use tilelift::tune::Config;

use super::products::parts;
use super::{Error, Kernels, MULTIPROCESSORS, by_blocks, expect, expect_multiple, product, size};

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

/// Rows of x up to which the programs of a block share its sum.
const FEW: usize = 64;

/// Columns of the smallest block for few rows.
const LEAST_COLUMNS: usize = 64;

/// Blocks for a product, the best of a few for bytes on an H100 first, each with the programs that share one; steps along K divide
/// `deepest`.
fn blocks([m, n, k]: [usize; 3], deepest: usize) -> Vec<(Config, usize)> {
    let (bm, all) = match m {
        ..=16 => (16, [(128, 128, 4, 3), (64, 128, 4, 4), (64, 64, 4, 6)]),
        17..=FEW => (
            m.next_power_of_two(),
            [(64, 128, 4, 4), (64, 64, 4, 6), (128, 128, 4, 3)],
        ),
        65..=1024 => (128, [(128, 64, 8, 4), (64, 64, 4, 4), (128, 64, 4, 3)]),
        _ => (256, [(128, 64, 8, 3), (128, 64, 8, 4), (64, 64, 8, 4)]),
    };
    let fits = all
        .into_iter()
        .filter(|(_, bk, ..)| deepest.is_multiple_of(*bk));
    let config = |(bn, bk, warps, stages)| {
        let shares = match m {
            ..=FEW => parts(2 * MULTIPROCESSORS, n, k, bn, bk),
            _ => 1,
        };
        let config = product(bm, bn, bk, warps, stages);
        (config.constant("PARTS", shares as u32), shares)
    };
    fits.map(config).collect()
}

/// Blocks, and what programs share.
struct Shared {
    configs: Vec<Config>,
    /// Sums of parts of K.
    parts: Buffer<f32>,
    /// How many of them there are, zero for each block before and after a launch.
    counts: Buffer<i32>,
}

impl Kernels {
    fn shared(
        &self,
        stream: &Stream,
        [m, n, k]: [usize; 3],
        deepest: usize,
    ) -> Result<Shared, Error> {
        let (configs, shares): (Vec<_>, Vec<_>) = blocks([m, n, k], deepest).into_iter().unzip();
        let (length, blocks) = match shares.into_iter().max() {
            None | Some(1) => (1, 1),
            Some(most) => (most * m * n, n.div_ceil(LEAST_COLUMNS)),
        };
        let counts = Buffer::new(&self.device, blocks)?;
        if 1 < length {
            counts.fill(stream, 0)?;
        }
        Ok(Shared {
            configs,
            parts: Buffer::new(&self.device, length)?,
            counts,
        })
    }

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
        let grid = |c: Constants<'_>| {
            let [blocks, ..] = by_blocks(m, n)(c)?;
            Some([blocks, c.int("PARTS")?, 1])
        };
        let key = ["M", "N", "K"];
        match *weight {
            Few::Bytes(values, scales) | Few::Rows(values, scales) => {
                expect("weight", values, &[n, k])?;
                expect("scales", scales, &[n])?;
                let (along_k, along_n) = match weight {
                    Few::Rows(..) => (1, depth),
                    _ => (columns, 1),
                };
                let on = self.shared(stream, [m, n, k], 256)?;
                let args = (
                    out, &on.parts, &on.counts, x, values, scales, rows, columns, depth, along_k,
                    along_n,
                );
                self.launch(
                    stream,
                    &kernel("byte_weights")?,
                    on.configs,
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
                let on = self.shared(stream, [m, n, k], group)?;
                let args = (
                    out, &on.parts, &on.counts, x, words, scales, zeros, rows, columns, depth,
                    of_group,
                );
                self.launch(
                    stream,
                    &kernel("word_weights")?,
                    on.configs,
                    &key,
                    &grid,
                    args,
                )
            }
            Few::Mx(values, scales) => {
                expect_multiple("K", k, 64)?;
                expect("weight", values, &[n, k / 2])?;
                expect("scales", scales, &[n, k / 32])?;
                let on = self.shared(stream, [m, n, k], k)?;
                let args = (
                    out, &on.parts, &on.counts, x, values, scales, rows, columns, depth,
                );
                self.launch(
                    stream,
                    &kernel("mx_weights")?,
                    on.configs,
                    &key,
                    &grid,
                    args,
                )
            }
        }
    }
}
