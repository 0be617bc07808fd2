//! Products: few rows, scales, four bits, experts. `x` is M x K, `weight` N x K, `out` M x N, the last index next to each other.

use tilelift::runtime::{Buffer, Constants, Element, Stream};
use tilelift::tune::Config;

use super::{
    Error, Kernels, MULTIPROCESSORS, by_blocks, expect, expect_multiple, product, size, sum_type,
};

/// Scales of a product of numbers of eight bits.
#[derive(Clone, Copy)]
pub(crate) enum Scales<'a> {
    /// One for each row of `x` and for each row of `weight`.
    Rows(&'a Buffer<f32>, &'a Buffer<f32>),
    /// One for `x` and one for `weight`.
    Whole(&'a Buffer<f32>, &'a Buffer<f32>),
    /// One for each 128 elements of a row of `x`, and for each 128 x 128 of `weight`.
    Blocks(&'a Buffer<f32>, &'a Buffer<f32>),
}

/// Weights of four bits, as `packed.py` says.
pub(crate) struct Weights4<'a> {
    /// Four in each word of 16 bits.
    pub(crate) words: &'a Buffer<i16>,
    /// What scales each pair of groups of a row and is taken off first, in 16 bits each from the lowest: scale, zero, scale, zero, as numbers of
    /// `x`'s type; zeros are whole and below 16. K / (2 group) x N.
    pub(crate) groups: &'a Buffer<i64>,
    /// Elements of a group: 64 or 128.
    pub(crate) group: usize,
}

/// Which experts the tokens go to: pairs of a token and a choice, sorted by expert and filled up to whole blocks.
pub(crate) struct Routing {
    /// Numbers of pairs; those from `pairs` on are fillers.
    pub(crate) order: Vec<i32>,
    /// The expert of each block.
    pub(crate) experts: Vec<i32>,
    /// How many pairs there are.
    pub(crate) pairs: usize,
    /// Pairs of a block.
    pub(crate) block: usize,
}

impl Routing {
    /// Sorts the choices of all tokens, one behind the other. Blocks have about as many pairs as an expert has on average.
    pub(crate) fn new(chosen: &[u32], experts: usize) -> Result<Routing, Error> {
        let mut of_each = vec![Vec::new(); experts];
        for (pair, &expert) in chosen.iter().enumerate() {
            let list = of_each.get_mut(expert as usize);
            let list = list.ok_or_else(|| {
                Error::Shape(format!("pair {pair} goes to expert {expert} of {experts}"))
            })?;
            list.push(size("the number of a pair", pair)?);
        }
        let filler = size("the number of pairs", chosen.len())?;
        let average = chosen.len() / experts.max(1);
        let block = average.next_power_of_two().clamp(16, 128);
        let (mut order, mut owners) = (Vec::new(), Vec::new());
        for (expert, mut list) in of_each.into_iter().enumerate() {
            let blocks = list.len().div_ceil(block);
            list.resize(blocks * block, filler);
            order.append(&mut list);
            owners.extend(vec![expert as i32; blocks]);
        }
        Ok(Routing {
            order,
            experts: owners,
            pairs: chosen.len(),
            block,
        })
    }
}

/// In how many parts a sum over K is cut for so many programs: each part has eight steps at least.
pub(super) fn parts(programs: usize, n: usize, k: usize, bn: usize, bk: usize) -> usize {
    let wanted = programs.div_ceil(n.div_ceil(bn));
    let most = (k.div_ceil(bk) / 8).max(1);
    wanted.clamp(1, most)
}

impl Kernels {
    /// `out = x @ weight.T` for at most 64 rows of `x`. Sums over K may be computed in parts, which are added in a fixed order: the same
    /// arguments give the same bits.
    pub(crate) fn few_rows<T: Element>(
        &self,
        stream: &Stream,
        out: &Buffer<T>,
        x: &Buffer<T>,
        weight: &Buffer<T>,
        [m, n, k]: [usize; 3],
    ) -> Result<(), Error> {
        expect("out", out, &[m, n])?;
        expect("x", x, &[m, k])?;
        expect("weight", weight, &[n, k])?;
        if m > 64 {
            return Err(Error::Shape(format!(
                "{m} rows; this kernel is for 64 at most"
            )));
        }
        let (rows, columns, depth) = (size("M", m)?, size("N", n)?, size("K", k)?);
        if m == 1 {
            let kernel = self.device.kernel(&self.thin, "vector_matrix")?;
            let configs =
                [(8, 512, 4), (4, 1024, 4), (8, 1024, 4), (2, 1024, 2)].map(|(bn, bk, warps)| {
                    let config = Config::new().constant("BN", bn).constant("BK", bk);
                    config.warps(warps)
                });
            let grid = |c: Constants<'_>| Some([(n as u32).div_ceil(c.int("BN")?), 1, 1]);
            let args = (out, x, weight, columns, depth);
            return self.launch(stream, &kernel, configs.to_vec(), &["N", "K"], &grid, args);
        }
        let kernel = self.device.kernel(&self.thin, "few_rows")?;
        let bm = m.next_power_of_two().max(16);
        let parts = parts(2 * MULTIPROCESSORS, n, k, 64, 128);
        let blocks = [(64, 128, 6), (64, 256, 4), (128, 128, 4)];
        let configs = blocks
            .map(|(bn, bk, stages)| product(bm, bn, bk, 4, stages).constant("PARTS", parts as u32));
        let grid = |c: Constants<'_>| Some([(n as u32).div_ceil(c.int("BN")?), c.int("PARTS")?, 1]);
        let key = ["M", "N", "K"];
        if parts == 1 {
            let args = (out, x, weight, rows, columns, depth);
            return self.launch(stream, &kernel, configs.to_vec(), &key, &grid, args);
        }
        let shares = Buffer::<f32>::new(&self.device, parts * m * n)?;
        let args = (&shares, x, weight, rows, columns, depth);
        self.launch(stream, &kernel, configs.to_vec(), &key, &grid, args)?;
        self.sum_parts(stream, out, &shares, parts, m * n)
    }

    /// The product of numbers of eight bits with their scales. With [`Scales::Blocks`] K and N are multiples of 128.
    pub(crate) fn scaled<T: Element, Out: Element>(
        &self,
        stream: &Stream,
        out: &Buffer<Out>,
        x: &Buffer<T>,
        weight: &Buffer<T>,
        scales: Scales<'_>,
        [m, n, k]: [usize; 3],
    ) -> Result<(), Error> {
        expect("out", out, &[m, n])?;
        expect("x", x, &[m, k])?;
        expect("weight", weight, &[n, k])?;
        let (rows, columns, depth) = (size("M", m)?, size("N", n)?, size("K", k)?);
        let (name, of_x, of_weight, counts) = match scales {
            Scales::Rows(a, b) => ("scaled_matmul", a, b, [m, n]),
            Scales::Whole(a, b) => ("scaled_matmul", a, b, [1, 1]),
            Scales::Blocks(a, b) => {
                expect_multiple("K", k, 128)?;
                expect_multiple("N", n, 128)?;
                (
                    "block_scaled_matmul",
                    a,
                    b,
                    [m * k / 128, n / 128 * (k / 128)],
                )
            }
        };
        expect("the scales of x", of_x, &counts[..1])?;
        expect("the scales of weight", of_weight, &counts[1..])?;
        let kernel = self
            .device
            .kernel(&self.scaled, name)?
            .constant("GROUP", 8)?;
        let is_by_block = matches!(scales, Scales::Blocks(..));
        let kernel = match is_by_block {
            true => kernel.constant("ROWS", 128)?,
            false => {
                let kernel = kernel.constant("SUM", sum_type::<T>())?;
                kernel.constant("BY_ROW", matches!(scales, Scales::Rows(..)))?
            }
        };
        // Two sets of sums, where blocks have scales, take the registers of a block twice as wide.
        let large = [
            (128, 256, 8, 3),
            (128, 128, 8, 4),
            (64, 128, 4, 4),
            (64, 64, 4, 6),
        ];
        let first = match (m, is_by_block) {
            (..=64, _) => 3,
            (65..=512, _) => 2,
            (_, true) => 1,
            (_, false) => 0,
        };
        let last = if is_by_block { 1 } else { 0 };
        let order = (first..4).chain(last..first);
        let configs: Vec<Config> = order
            .map(|i| large[i])
            .map(|(bm, bn, warps, stages)| product(bm, bn, 128, warps, stages))
            .collect();
        let grid = by_blocks(m, n);
        let args = (out, x, weight, of_x, of_weight, rows, columns, depth);
        self.launch(stream, &kernel, configs, &["M", "N", "K"], &grid, args)
    }

    /// `out = x @ weight.T` with weights of four bits, for at most 64 rows of `x`. K is a multiple of two groups. Sums over K may be computed
    /// in parts, which are added in a fixed order.
    pub(crate) fn int4<T: Element>(
        &self,
        stream: &Stream,
        out: &Buffer<T>,
        x: &Buffer<T>,
        weight: &Weights4<'_>,
        [m, n, k]: [usize; 3],
    ) -> Result<(), Error> {
        self.int4_row(stream, x, &[(out, weight, n)], [m, k])
    }

    /// Several such products of one `x`: where each one goes, its weights, and their N. From sm_90 each launch but the first begins while
    /// those ahead still run, so that memory need not be idle between them. No two of the buffers may overlap.
    pub(crate) fn int4_row<T: Element>(
        &self,
        stream: &Stream,
        x: &Buffer<T>,
        row: &[(&Buffer<T>, &Weights4<'_>, usize)],
        [m, k]: [usize; 2],
    ) -> Result<(), Error> {
        if m > 64 {
            return Err(Error::Shape(format!("{m} rows: 64 at most")));
        }
        expect("x", x, &[m, k])?;
        let (rows, depth) = (size("M", m)?, size("K", k)?);
        let bm = m.next_power_of_two().max(8);
        let overlaps = row.len() > 1 && self.device.target().sm >= 90;
        // Numbers become floats between loads and products: four programs on a multiprocessor hide one another's waits. In a row the next
        // launches have some of them.
        let at_once = if overlaps { 4 / row.len().min(4) } else { 4 };
        // What is refused is refused before anything is launched, and no memory is filled between two launches, which would part them.
        let mut launches = Vec::new();
        for &(out, weight, n) in row {
            let group = weight.group;
            if ![64, 128].contains(&group) {
                let problem = format!("groups of {group}: groups of 64 or 128");
                return Err(Error::Shape(problem));
            }
            expect_multiple("K", k, 2 * group)?;
            expect("out", out, &[m, n])?;
            expect("words", weight.words, &[n, k / 4])?;
            expect("groups", weight.groups, &[k / (2 * group), n])?;
            // Those of parts run at the same time; one more would have to wait for all of them.
            let parts = at_once * MULTIPROCESSORS / n.div_ceil(64).max(1);
            let parts = parts.clamp(1, (k / (2 * group) / 8).max(1));
            // Those that share a block leave its count as they found it.
            let shares = if parts == 1 { 1 } else { parts * n * bm };
            let shares = Buffer::<f32>::new(&self.device, shares)?;
            let counts = Buffer::<i32>::new(&self.device, n.div_ceil(64))?;
            if parts > 1 {
                counts.fill(stream, 0)?;
            }
            launches.push((out, weight, size("N", n)?, parts as u32, shares, counts));
        }
        let kernel = self.device.kernel(&self.packed, "int4_matmul")?;
        let kernel = kernel.constant("ROW", overlaps)?;
        for (place, (out, weight, n, parts, shares, counts)) in launches.iter().enumerate() {
            let kernel = kernel.constant("G", weight.group as u32)?;
            let kernel = kernel.constant("PARTS", *parts)?;
            let kernel = kernel.dependent(overlaps && place > 0)?;
            let configs = [(64, 4, 3), (64, 4, 4), (128, 4, 3)].map(|(bn, warps, stages)| {
                let config = Config::new().constant("BM", bm as u32);
                config.constant("BN", bn).warps(warps).stages(stages)
            });
            let grid = |c: Constants<'_>| Some([(*n as u32).div_ceil(c.int("BN")?), *parts, 1]);
            let (words, groups) = (weight.words, weight.groups);
            let args = (*out, shares, counts, x, words, groups, rows, *n, depth);
            let key = ["M", "N", "K"];
            self.launch(stream, &kernel, configs.to_vec(), &key, &grid, args)?;
        }
        Ok(())
    }

    /// Adds the parts of a product, in their order.
    fn sum_parts<T: Element>(
        &self,
        stream: &Stream,
        out: &Buffer<T>,
        shares: &Buffer<f32>,
        parts: usize,
        count: usize,
    ) -> Result<(), Error> {
        let sum = self.device.kernel(&self.thin, "sum_parts")?;
        let sum = sum.constant("PARTS", parts as u32)?;
        let sum = sum.constant("BLOCK", 1024)?;
        let programs = count.div_ceil(1024) as u32;
        Ok(sum.launch(stream, programs, (out, shares, size("M * N", count)?))?)
    }

    /// `out[pair] = x[token] @ weight[expert].T` times the pair's share, for each pair of a token and one of its `top` experts.
    #[expect(clippy::too_many_arguments, reason = "what the product is of")]
    pub(crate) fn experts<T: Element>(
        &self,
        stream: &Stream,
        out: &Buffer<T>,
        x: &Buffer<T>,
        weight: &Buffer<T>,
        shares: &Buffer<f32>,
        routing: &Routing,
        top: usize,
        [experts, n, k]: [usize; 3],
    ) -> Result<(), Error> {
        let pairs = routing.pairs;
        expect_multiple("the number of pairs", pairs, top)?;
        expect("out", out, &[pairs, n])?;
        expect("x", x, &[pairs / top, k])?;
        expect("weight", weight, &[experts, n, k])?;
        expect("shares", shares, &[pairs])?;
        let order = Buffer::from_slice(&self.device, &routing.order)?;
        let owners = Buffer::from_slice(&self.device, &routing.experts)?;
        let kernel = self.device.kernel(&self.experts, "experts_matmul")?;
        let kernel = kernel
            .constant("TOP", top as u32)?
            .constant("SCALE", true)?;
        let configs = [(128, 64, 4), (64, 64, 5), (128, 32, 4)]
            .map(|(bn, bk, stages)| product(routing.block, bn, bk, 4, stages));
        let blocks = routing.experts.len() as u32;
        let grid = |c: Constants<'_>| Some([(n as u32).div_ceil(c.int("BN")?), blocks, 1]);
        let (columns, depth) = (size("N", n)?, size("K", k)?);
        let args = (
            out,
            x,
            weight,
            &order,
            &owners,
            shares,
            size("the number of pairs", pairs)?,
            columns,
            depth,
        );
        self.launch(stream, &kernel, configs.to_vec(), &["N", "K"], &grid, args)
    }
}
