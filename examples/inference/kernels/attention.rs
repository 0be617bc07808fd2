//! Attention of one step of decoding, and of sequences of different lengths.

use tilelift::runtime::{Buffer, Element, Stream};
use tilelift::tune::Config;

use super::{Error, Kernels, MULTIPROCESSORS, expect, expect_multiple, size};

/// Exponents are of base two.
const LOG2_E: f32 = std::f32::consts::LOG2_E;

/// Keys and values in pages: pages x page x heads x columns.
pub(crate) struct Cache<'a, T: Element> {
    pub(crate) keys: &'a Buffer<T>,
    pub(crate) values: &'a Buffer<T>,
    /// Pages of each sequence, as many for each.
    pub(crate) table: &'a Buffer<i32>,
    /// Keys of each sequence.
    pub(crate) lengths: &'a Buffer<i32>,
    /// Keys of a page: a power of two.
    pub(crate) page: usize,
    /// Keys of the longest sequence.
    pub(crate) longest: usize,
}

/// Sequences one behind the other: tokens x heads x columns.
pub(crate) struct Sequences<'a, T: Element> {
    pub(crate) queries: &'a Buffer<T>,
    pub(crate) keys: &'a Buffer<T>,
    pub(crate) values: &'a Buffer<T>,
    /// Where each begins, and where the last one ends.
    pub(crate) begins: &'a Buffer<i32>,
    /// Tokens of the longest.
    pub(crate) longest: usize,
}

/// What varies between models.
#[derive(Clone, Copy, Default)]
pub(crate) struct Variant<'a> {
    pub(crate) causal: bool,
    /// Only as many keys count, the own one among them.
    pub(crate) window: Option<usize>,
    /// A number for each head that takes part in the sum of the softmax as a score of base two without a value.
    pub(crate) sinks: Option<&'a Buffer<f32>>,
    /// Scores are bent into this range.
    pub(crate) cap: Option<f32>,
}

impl Kernels {
    /// Attention of one query for each head of each sequence. `out` and `queries` are sequences x (heads * group) x columns; `group` of at
    /// most 16 heads share a head of keys.
    pub(crate) fn decode<T: Element>(
        &self,
        stream: &Stream,
        out: &Buffer<T>,
        queries: &Buffer<T>,
        cache: &Cache<'_, T>,
        [sequences, heads, group, columns]: [usize; 4],
    ) -> Result<(), Error> {
        let rows = sequences * heads * group;
        expect("out", out, &[rows, columns])?;
        expect("queries", queries, &[rows, columns])?;
        expect("lengths", cache.lengths, &[sequences])?;
        expect_multiple(
            "the length of the table",
            cache.table.len(),
            sequences.max(1),
        )?;
        let most = cache.table.len() / sequences.max(1);
        let powers = [cache.page, columns].iter().all(|n| n.is_power_of_two());
        if group > 16 || !powers || columns < 16 || cache.longest > most * cache.page {
            return Err(Error::Shape(format!(
                "{group} heads share keys (16 at most), pages of {}, {columns} columns (powers of two, 16 columns at least), {} keys in {most} pages",
                cache.page, cache.longest
            )));
        }
        let pages = cache.keys.len() / (cache.page * heads * columns).max(1);
        expect("keys", cache.keys, &[pages, cache.page, heads, columns])?;
        expect("values", cache.values, &[pages, cache.page, heads, columns])?;
        // Four programs for each multiprocessor, with 256 keys at least.
        let wanted = (4 * MULTIPROCESSORS).div_ceil((sequences * heads).max(1));
        let span = cache.longest.div_ceil(wanted).next_power_of_two().max(256);
        let parts = cache.longest.div_ceil(span).max(1);
        let scale = LOG2_E / (columns as f32).sqrt();

        let [shares, tops, totals] = [columns, 1, 1]
            .map(|each| Buffer::<f32>::new(&self.device, parts.next_power_of_two() * rows * each));
        let (shares, tops, totals) = (shares?, tops?, totals?);
        let kernel = self.device.kernel(&self.decode, "decode")?;
        let constants = [
            ("SPAN", span),
            ("HEADS", heads),
            ("GROUP", group),
            ("ROWS", 16),
            ("PAGE", cache.page),
            ("D", columns),
        ];
        let kernel = constants
            .iter()
            .try_fold(kernel, |kernel, &(name, n)| kernel.constant(name, n as u32))?;
        let configs = [(64, 3), (64, 2), (128, 2), (32, 4)]
            .map(|(bn, stages)| Config::new().constant("BN", bn).warps(4).stages(stages));
        // A power of two, for the kernel that joins them: parts behind the longest sequence have no keys.
        let parts = parts.next_power_of_two();
        let grid = |_: tilelift::runtime::Constants<'_>| {
            Some([sequences as u32, heads as u32, parts as u32])
        };
        let args = (
            &shares,
            &tops,
            &totals,
            queries,
            cache.keys,
            cache.values,
            cache.table,
            cache.lengths,
            size("pages", most)?,
            scale,
        );
        self.launch(stream, &kernel, configs.to_vec(), &["most"], &grid, args)?;
        let finish = self.device.kernel(&self.decode, "finish")?;
        let finish = finish.constant("PARTS", parts as u32)?;
        let finish = finish.constant("D", columns as u32)?;
        let args = (out, &shares, &tops, &totals, size("rows", rows)?);
        Ok(finish.launch(stream, rows as u32, args)?)
    }

    /// Attention of sequences of different lengths; `kv_heads` divides `heads`.
    pub(crate) fn varied<T: Element>(
        &self,
        stream: &Stream,
        out: &Buffer<T>,
        sequences: &Sequences<'_, T>,
        variant: Variant<'_>,
        [heads, kv_heads, columns]: [usize; 3],
    ) -> Result<(), Error> {
        expect_multiple("heads", heads, kv_heads.max(1))?;
        if !columns.is_power_of_two()
            || columns < 16
            || (variant.window.is_some() && !variant.causal)
        {
            return Err(Error::Shape(format!(
                "{columns} columns (a power of two from 16 on), or a window without `causal`"
            )));
        }
        let tokens = sequences.queries.len() / (heads * columns).max(1);
        expect("queries", sequences.queries, &[tokens, heads, columns])?;
        expect("out", out, &[tokens, heads, columns])?;
        expect("keys", sequences.keys, &[tokens, kv_heads, columns])?;
        expect("values", sequences.values, &[tokens, kv_heads, columns])?;
        // Without sinks nobody reads them, but the parameter is there.
        let none = Buffer::<f32>::new(&self.device, heads)?;
        let sinks = variant.sinks.unwrap_or(&none);
        expect("sinks", sinks, &[heads])?;
        let kernel = self.device.kernel(&self.varied, "varied")?;
        let flags = [
            ("CAUSAL", variant.causal),
            ("WINDOW", variant.window.is_some()),
            ("SINKS", variant.sinks.is_some()),
            ("CAP", variant.cap.is_some()),
        ];
        let kernel = flags
            .iter()
            .try_fold(kernel, |kernel, &(name, is)| kernel.constant(name, is))?;
        let kernel = kernel.constant("D", columns as u32)?;
        let large = sequences.longest >= 128;
        let blocks: &[(u32, u32, u32, u8)] = match large {
            true => &[(128, 64, 8, 2), (128, 64, 8, 3), (64, 64, 4, 3)],
            false => &[(64, 64, 4, 2), (16, 32, 4, 2)],
        };
        let configs = blocks
            .iter()
            .map(|&(bm, bn, warps, stages)| {
                let config = Config::new().constant("BM", bm).constant("BN", bn);
                config.warps(warps).stages(stages)
            })
            .collect();
        let count = sequences.begins.len().saturating_sub(1) as u32;
        let grid = |c: tilelift::runtime::Constants<'_>| {
            Some([
                (sequences.longest as u32).div_ceil(c.int("BM")?),
                heads as u32,
                count,
            ])
        };
        let scale = LOG2_E / (columns as f32).sqrt();
        let args = (
            out,
            sequences.queries,
            sequences.keys,
            sequences.values,
            sequences.begins,
            sinks,
            size("heads", heads)?,
            size("heads of keys", kv_heads)?,
            size("the window", variant.window.unwrap_or(0))?,
            scale,
            // Scores are of base two.
            variant.cap.unwrap_or(0.0) * LOG2_E,
        );
        self.launch(stream, &kernel, configs, &["heads"], &grid, args)
    }
}
