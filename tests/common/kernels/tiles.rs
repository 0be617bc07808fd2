//! One block of a large matrix or vector a program: changes of shape, sums, scans, gathers, counting and sorting, each as it is
//! written in the Triton language. `benches/gpu/tiles.py` has the same kernels in that language.

use tilelift::ir::attrs::{FloatPred, IntPred};
use tilelift::ir::compose::{self, SortOrder};
use tilelift::ir::dfg::ValueList;
use tilelift::ir::entities::Value;
use tilelift::ir::function::TileFunction;
use tilelift::ir::types::{Elem, Scalar, TileType};

use super::kit::{Kit, kernel, shape};

/// The kernels, with the types that their parameters point to.
pub(crate) const TILES: &[(&str, &[Scalar])] = &[
    ("transpose", &[Scalar::F32, Scalar::F32]),
    ("turn", &[Scalar::F32, Scalar::F32]),
    (
        "row_and_column_sums",
        &[Scalar::F32, Scalar::F32, Scalar::F32],
    ),
    ("centre", &[Scalar::F32, Scalar::F32]),
    ("scan_rows", &[Scalar::F32, Scalar::F32]),
    ("scan_columns", &[Scalar::F32, Scalar::F32]),
    ("scan_both", &[Scalar::F32, Scalar::F32]),
    ("mixed", &[Scalar::F16, Scalar::F32, Scalar::I8]),
    ("gather_rows", &[Scalar::F32, Scalar::I32, Scalar::F32]),
    ("gather_columns", &[Scalar::F32, Scalar::I32, Scalar::F32]),
    ("interleave", &[Scalar::F32, Scalar::F32, Scalar::F32]),
    ("split_pairs", &[Scalar::F32, Scalar::F32, Scalar::F32]),
    ("outer_product", &[Scalar::F32, Scalar::F32]),
    ("row_argmax", &[Scalar::F32, Scalar::I32]),
    ("histogram", &[Scalar::I32, Scalar::I32]),
    ("sort", &[Scalar::F32, Scalar::F32]),
];

/// How large blocks and data are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Extent of a square block.
    pub(crate) tile: u64,
    /// Extent of the square matrix.
    pub(crate) matrix: u64,
    /// Elements of a vector's block.
    pub(crate) line: u64,
    /// Numbers that a histogram counts.
    pub(crate) bins: u64,
}

/// A kernel of [`TILES`]; none of another name.
pub(crate) fn tile_kernel(name: &str, sizes: Sizes, warps: u32) -> Option<TileFunction> {
    let &(_, scalars) = TILES.iter().find(|(known, _)| *known == name)?;
    Some(kernel(name.to_owned(), warps, |k| {
        let names = ["p0", "p1", "p2"].iter().zip(scalars);
        let pointers: Vec<Value> = names
            .map(|(name, &scalar)| k.pointer(name, scalar))
            .collect();
        let mut t = Tiles { k, sizes };
        t.body(name, &pointers);
    }))
}

/// A kernel under construction.
struct Tiles<'a, 'b> {
    k: &'a mut Kit<'b>,
    sizes: Sizes,
}

impl Tiles<'_, '_> {
    /// Rows and columns of the program's tile in the matrix.
    fn place(&mut self) -> (Value, Value) {
        let tile = self.sizes.tile;
        (self.k.own_range(1, tile), self.k.own_range(0, tile))
    }

    /// Addresses of a tile; `rows` and `cols` are what runs along its dimensions.
    fn tile(&mut self, pointer: Value, rows: Value, cols: Value) -> Value {
        let pitch = self.sizes.matrix;
        self.steps(pointer, (rows, pitch), (cols, 1))
    }

    /// `pointer + down[:, None] * a + across[None, :] * b`.
    fn steps(&mut self, pointer: Value, down: (Value, u64), across: (Value, u64)) -> Value {
        let extents = [down, across].map(|(x, _)| self.k.b.ty(x).shape.extent(0));
        let extents = shape(&extents);
        let mut pointers = self.k.b.to_shape(pointer, extents);
        for ((x, step), axis) in [(down, 1), (across, 0)] {
            let step = self.k.int(step as i32);
            let step = self.k.spread(step, x);
            let offsets = self.k.b.imul(x, step);
            let offsets = self.k.repeat(offsets, axis, extents);
            pointers = self.k.b.addptr(pointers, offsets);
        }
        pointers
    }

    fn load(&mut self, pointer: Value) -> Value {
        let (rows, cols) = self.place();
        let pointers = self.tile(pointer, rows, cols);
        self.k.b.load(pointers, None, None)
    }

    fn store(&mut self, pointer: Value, x: Value) {
        let (rows, cols) = self.place();
        let pointers = self.tile(pointer, rows, cols);
        self.k.b.store(pointers, x, None);
    }

    /// Addresses of the program's own `count` elements.
    fn own(&mut self, pointer: Value, count: u64) -> Value {
        let range = self.k.own_range(0, count);
        self.k.at(pointer, range)
    }

    fn load_own(&mut self, pointer: Value, count: u64) -> Value {
        let pointers = self.own(pointer, count);
        self.k.b.load(pointers, None, None)
    }

    fn store_own(&mut self, pointer: Value, x: Value) {
        let count = self.k.b.ty(x).shape.extent(0);
        let pointers = self.own(pointer, count);
        self.k.b.store(pointers, x, None);
    }

    /// Stores one number for each row (`axis` 1) or column (`axis` 0) of the tile, a line of the matrix for each tile across.
    fn store_edge(&mut self, pointer: Value, x: Value, axis: u8) {
        let own = self.k.own_range(axis, self.sizes.tile);
        let other = self.k.b.program_id(1 - axis);
        let length = self.k.int(self.sizes.matrix as i32);
        let pointer = self.k.row(pointer, other, length);
        let pointers = self.k.at(pointer, own);
        self.k.b.store(pointers, x, None);
    }

    fn body(&mut self, name: &str, p: &[Value]) {
        let Sizes { tile, line, .. } = self.sizes;
        let block = |elem| TileType::block(elem, shape(&[tile, tile]));
        match name {
            "transpose" => {
                let x = self.load(p[0]);
                let (rows, cols) = self.place();
                let pointers = self.steps(p[1], (rows, 1), (cols, self.sizes.matrix));
                self.k.b.store(pointers, x, None);
            }
            "turn" => {
                let x = self.load(p[0]);
                let transposed = self.k.b.permute(x, [1, 0].into_iter().collect());
                let (rows, cols) = self.place();
                let pointers = self.tile(p[1], cols, rows);
                self.k.b.store(pointers, transposed, None);
            }
            "row_and_column_sums" => {
                let x = self.load(p[0]);
                let rows = self.k.sum(x, 1);
                self.store_edge(p[1], rows, 1);
                let cols = self.k.sum(x, 0);
                self.store_edge(p[2], cols, 0);
            }
            "centre" => {
                let x = self.load(p[0]);
                let sums = self.k.sum(x, 0);
                let sums = self.k.repeat(sums, 0, shape(&[tile, tile]));
                let centred = self.k.b.fsub(x, sums);
                self.store(p[1], centred);
            }
            "scan_rows" | "scan_columns" | "scan_both" => {
                let mut x = self.load(p[0]);
                if name != "scan_columns" {
                    x = compose::cumsum(self.k.b, x, 1, false);
                }
                if name != "scan_rows" {
                    x = compose::cumsum(self.k.b, x, 0, false);
                }
                self.store(p[1], x);
            }
            "mixed" => {
                let (x, y) = (self.load(p[0]), self.load(p[1]));
                let x = self.k.b.fpext(x, block(Elem::F32));
                let sum = self.k.b.fadd(x, y);
                let narrow = self.k.b.fptosi(sum, block(Elem::Num(Scalar::I8)));
                self.store(p[2], narrow);
            }
            "gather_rows" | "gather_columns" => {
                let (x, index) = (self.load(p[0]), self.load(p[1]));
                let axis = u8::from(name == "gather_rows");
                let found = self.k.b.gather(x, index, axis);
                self.store(p[2], found);
            }
            "interleave" => {
                let (x, y) = (self.load_own(p[0], line), self.load_own(p[1], line));
                let both = compose::interleave(self.k.b, x, y).expect("twice a line is a block");
                self.store_own(p[2], both);
            }
            "split_pairs" => {
                let x = self.load_own(p[0], 2 * line);
                let pairs = TileType::block(Elem::F32, shape(&[line, 2]));
                let pairs = self.k.b.reshape(x, pairs);
                let halves = [0, 1].map(|i| self.k.b.split(pairs, i));
                self.store_own(p[1], halves[0]);
                self.store_own(p[2], halves[1]);
            }
            "outer_product" => {
                let x = self.load_own(p[0], tile);
                let down = self.k.repeat(x, 1, shape(&[tile, tile]));
                let across = self.k.repeat(x, 0, shape(&[tile, tile]));
                let product = self.k.b.fmul(down, across);
                let rows = self.k.own_range(0, tile);
                let cols = self.k.range(tile);
                let pointers = self.steps(p[1], (rows, tile), (cols, 1));
                self.k.b.store(pointers, product, None);
            }
            "row_argmax" => {
                let x = self.load(p[0]);
                let index = self.k.range(tile);
                let index = self.k.repeat(index, 0, shape(&[tile, tile]));
                let best = self.k.b.reduce(&[x, index], 1, |b, l, r| {
                    let above = b.fcmp(l[0], r[0], FloatPred::Ogt);
                    let equal = b.fcmp(l[0], r[0], FloatPred::Oeq);
                    let earlier = b.icmp(l[1], r[1], IntPred::Slt);
                    let first = b.and(equal, earlier);
                    let left = b.or(above, first);
                    let pair = [b.select(left, l[0], r[0]), b.select(left, l[1], r[1])];
                    ValueList::from_slice(&pair)
                });
                self.store_edge(p[1], best[1], 1);
            }
            "histogram" => {
                let x = self.load_own(p[0], 4 * line);
                let counts = compose::histogram(self.k.b, x, self.sizes.bins, None);
                self.store_own(p[1], counts.expect("integers are counted"));
            }
            "sort" => {
                let x = self.load_own(p[0], line);
                let sorted = compose::sort(self.k.b, x, SortOrder::default());
                self.store_own(p[1], sorted.expect("numbers are sorted"));
            }
            _ => unreachable!("the names are those of the list"),
        }
    }
}
