//! Sorting and scans.

use tilelift::ir::attrs::NanRule;
use tilelift::ir::compose::{SortOrder, top};
use tilelift::ir::function::TileFunction;

use super::kit::kernel;
use super::{Config, Config2};

/// Sorts rows of `config.block` elements, one a program, ascending or descending, and keeps the first `keep`.
/// Parameters: x, out.
pub(crate) fn sort(config: Config, descending: bool, keep: u64) -> TileFunction {
    let name = format!("sort_{}", config.scalar);
    kernel(name, config.warps, |k| {
        let x = k.pointer("x", config.scalar);
        let out = k.pointer("out", config.scalar);
        let row = k.own_range(0, config.block);
        let pointers = k.at(x, row);
        let x = k.b.load(pointers, None, None);
        let order = SortOrder {
            descending,
            unsigned: false,
        };
        let sorted = top(k.b, x, keep, order).expect("a row has as many elements");
        let row = k.own_range(0, keep);
        let pointers = k.at(out, row);
        k.b.store(pointers, sorted, None);
    })
}

/// Running sums and running maxima along `axis`, in the type of the data. Parameters: x, sums, maxima: one block each.
pub(crate) fn scan(config: Config2, axis: u8, reverse: bool) -> TileFunction {
    let direction = if reverse { "up" } else { "down" };
    let name = format!("scan_{axis}_{direction}_{}", config.scalar);
    kernel(name, config.warps, |k| {
        let pointers = ["x", "sums", "maxima"].map(|name| k.pointer(name, config.scalar));
        let rows = k.range(config.block[0]);
        let cols = k.range(config.block[1]);
        let (width, one) = (k.int(config.block[1] as i32), k.int(1));
        let offsets = k.matrix((rows, width), (cols, one));
        let [x, sums, maxima] = pointers.map(|pointer| k.at(pointer, offsets));
        let x = k.b.load(x, None, None);
        let scanned = k.b.scan(&[x, x], axis, reverse, |b, before, own| {
            let sum = b.fadd(before[0], own[0]);
            let largest = b.fmax(before[1], own[1], NanRule::Ignore);
            [sum, largest].into_iter().collect()
        });
        k.b.store(sums, scanned[0], None);
        k.b.store(maxima, scanned[1], None);
    })
}
