//! How far apart the addresses of a block's elements are, for estimates.
//!
//! Of most addresses each bit of an element's index moves the address by the same number of bytes, whatever the other bits are:
//! `cache + (i // 64) * 4096 + (i % 64) * 16` moves by 16, 32, .. and from the seventh bit on by 4096, 8192, .. bytes. What is added for all
//! elements alike is taken to be a multiple of whatever they are divided by. Where that is not so, as where numbers wrap around, distances
//! are others than these: nothing but estimates may depend on them.

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::constants::signed;
use super::neighbours::carried_first;
use crate::ir::attrs::Attrs;
use crate::ir::dfg::ValueDef;
use crate::ir::entities::Value;
use crate::ir::function::TileFunction;
use crate::ir::ops::{Opcode, TileOp};
use crate::linear_layout::shape::Shape;

/// How deep expressions are followed.
const MAX_DEPTH: u32 = 100;

/// By how much a number or an address, in bytes, moves with each bit of an element's index, the lowest first; none for a distance that is
/// not known, or not the same for all elements.
pub(crate) type Strides = SmallVec<[Option<i64>; 16]>;

/// The distances of values of a function.
pub(crate) struct AllStrides<'a> {
    func: &'a TileFunction,
    found: FxHashMap<Value, Strides>,
    /// Whether factors that are not known are taken to be one.
    supposes_ones: bool,
}

impl<'a> AllStrides<'a> {
    /// Those of this function, none of which are found yet.
    pub(crate) fn new(func: &'a TileFunction) -> AllStrides<'a> {
        AllStrides {
            func,
            found: FxHashMap::default(),
            supposes_ones: false,
        }
    }

    /// The same, where each factor that is not known is one, as a stride of the dimension whose elements are side by side.
    pub(crate) fn supposing_ones(func: &'a TileFunction) -> AllStrides<'a> {
        AllStrides {
            supposes_ones: true,
            ..AllStrides::new(func)
        }
    }

    /// The distances of a value.
    pub(crate) fn of(&mut self, value: Value) -> Strides {
        self.follow(value, MAX_DEPTH)
    }

    fn shape(&self, value: Value) -> Shape {
        self.func.dfg.ty(value).shape
    }

    fn follow(&mut self, value: Value, depth: u32) -> Strides {
        if let Some(found) = self.found.get(&value) {
            return found.clone();
        }
        let bits = self.shape(value).log2_elements() as usize;
        let strides = depth
            .checked_sub(1)
            .filter(|_| bits > 0)
            .and_then(|depth| self.made(value, depth));
        let unknown = if bits == 0 {
            Strides::new()
        } else {
            smallvec![None; bits]
        };
        let strides = strides.unwrap_or(unknown);
        debug_assert_eq!(strides.len(), bits);
        self.found.insert(value, strides.clone());
        strides
    }

    /// The distances of a block, by what makes it.
    fn made(&mut self, value: Value, depth: u32) -> Option<Strides> {
        let func = self.func;
        let inst = match func.dfg.values[value].def {
            ValueDef::Result(inst, _) => inst,
            // A pointer that a loop moves on keeps the distances that it had in front of the loop.
            ValueDef::Param(..) => {
                return Some(self.follow(carried_first(func, value)?, depth));
            }
        };
        let data = &func.dfg.insts[inst];
        let shape = self.shape(value);
        let bits = shape.log2_elements() as usize;
        let mut arg = |i: usize| Some(self.follow(*data.args.get(i)?, depth));
        Some(match data.op {
            TileOp::Const | TileOp::Splat => smallvec![Some(0); bits],
            TileOp::Arange => (0..bits).map(|bit| Some(1 << bit)).collect(),
            TileOp::Iadd | TileOp::Or | TileOp::Xor => pairs(&arg(0)?, &arg(1)?, i64::checked_add),
            TileOp::Isub => pairs(&arg(0)?, &arg(1)?, i64::checked_sub),
            TileOp::Addptr => {
                let bytes = func.dfg.ty(value).elem.pointee()?.bytes();
                let moved = each(&arg(1)?, |by| by.checked_mul(i64::from(bytes)));
                pairs(&arg(0)?, &moved, i64::checked_add)
            }
            TileOp::Imul => {
                let (a, b) = (arg(0)?, arg(1)?);
                let [x, y] = [0, 1].map(|i| self.uniform(data.args[i]));
                match (x, y) {
                    (_, Some(by)) => each(&a, |x| x.checked_mul(by)),
                    (Some(by), _) => each(&b, |x| x.checked_mul(by)),
                    _ if self.supposes_ones && is_still(&b) => a,
                    _ if self.supposes_ones && is_still(&a) => b,
                    // What is the same for both is the same for their product.
                    _ => both_still(&a, &b),
                }
            }
            TileOp::Shl => {
                let (a, by) = (arg(0)?, self.power(data.args[1])?);
                each(&a, |x| x.checked_mul(by))
            }
            TileOp::Sshr | TileOp::Ushr => {
                let (a, by) = (arg(0)?, self.power(data.args[1])?);
                each(&a, |x| quotient(x, by))
            }
            TileOp::Sdiv | TileOp::Udiv => {
                let a = arg(0)?;
                match self.uniform(data.args[1]) {
                    Some(by) => each(&a, |x| quotient(x, by)),
                    // A row of a tensor is taken to be long, as for its remainders.
                    None => each(&a, |_| Some(0)),
                }
            }
            TileOp::Srem | TileOp::Urem => {
                let a = arg(0)?;
                match self.uniform(data.args[1]) {
                    Some(by) => each(&a, |x| remainder(x, by)),
                    // Indices are wrapped at the end of a tensor.
                    None => a,
                }
            }
            TileOp::And => {
                let (a, mask) = (arg(0)?, self.uniform(data.args[1])?);
                match mask.checked_add(1) {
                    Some(above) if above > 0 && above & mask == 0 => {
                        each(&a, |x| remainder(x, above))
                    }
                    _ => each(&a, |x| (x & !mask == 0).then_some(x)),
                }
            }
            TileOp::Select => arg(1)?,
            TileOp::Smin | TileOp::Smax | TileOp::Umin | TileOp::Umax => arg(0)?,
            // What a table holds is not known, but one entry is one number.
            TileOp::Load => each(&arg(0)?, |x| (x == 0).then_some(0)),
            TileOp::Permute => {
                let (from, of) = (func.dfg.ty(data.args[0]).shape, arg(0)?);
                let dims = data.dims()?.iter().map(|&dim| dim as usize);
                // The last dimension has the lowest bits.
                let dims: SmallVec<[usize; 4]> = dims.collect();
                let dims = dims.iter().rev();
                dims.flat_map(|&dim| of_dim(&from, &of, dim)).collect()
            }
            TileOp::Broadcast => {
                let (from, of) = (func.dfg.ty(data.args[0]).shape, arg(0)?);
                let dims = (0..shape.rank()).rev();
                dims.flat_map(|dim| match from.log2().get(dim) {
                    Some(&log2) if log2 == shape.log2()[dim] => of_dim(&from, &of, dim),
                    _ => smallvec![Some(0); usize::from(shape.log2()[dim])],
                })
                .collect()
            }
            TileOp::Sext | TileOp::Zext | TileOp::Itrunc => arg(0)?,
            op if op.info().keeps_elements() => arg(0).filter(|of| of.len() == bits)?,
            TileOp::AssumeMultiple | TileOp::AssumeContiguous | TileOp::AssumeConstant => arg(0)?,
            _ => return None,
        })
    }

    /// The number that all elements are.
    fn uniform(&self, value: Value) -> Option<i64> {
        let data = &self.func.dfg.insts[self.func.dfg.def_inst(value)?];
        match data.op {
            TileOp::Splat | TileOp::Broadcast => self.uniform(data.args[0]),
            _ => signed(self.func, value),
        }
    }

    /// The power of two of a number that all elements are.
    fn power(&self, value: Value) -> Option<i64> {
        let exponent = u32::try_from(self.uniform(value)?).ok()?;
        1i64.checked_shl(exponent).filter(|&power| power > 0)
    }
}

/// Those of a dimension's bits.
fn of_dim(shape: &Shape, of: &Strides, dim: usize) -> Strides {
    let start = shape.bit_offset(dim) as usize;
    let bits = usize::from(shape.log2()[dim]);
    of.iter().skip(start).take(bits).copied().collect()
}

fn each(of: &Strides, change: impl Fn(i64) -> Option<i64>) -> Strides {
    of.iter().map(|by| by.and_then(&change)).collect()
}

fn pairs(a: &Strides, b: &Strides, made: impl Fn(i64, i64) -> Option<i64>) -> Strides {
    let both = a.iter().zip(b);
    both.map(|(a, b)| made((*a)?, (*b)?)).collect()
}

fn is_still(of: &Strides) -> bool {
    of.iter().all(|&by| by == Some(0))
}

fn both_still(a: &Strides, b: &Strides) -> Strides {
    pairs(a, b, |a, b| ((a, b) == (0, 0)).then_some(0))
}

/// By how much a quotient moves: steps of less than what is divided by move none, as far as they do not add up to it.
fn quotient(x: i64, by: i64) -> Option<i64> {
    match x.checked_rem(by)? {
        0 => x.checked_div(by),
        _ => (x.abs() < by && by & (by - 1) == 0).then_some(0),
    }
}

/// By how much a remainder moves.
fn remainder(x: i64, by: i64) -> Option<i64> {
    match x.checked_rem(by)? {
        0 => Some(0),
        _ => (x.abs() < by).then_some(x),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse::parse_tile;

    /// The distances of the last pointer that is loaded through.
    fn of_load(body: &str) -> Strides {
        let text = format!(
            "kernel @k(v0 \"p\": ptr<f16>, v1 \"t\": ptr<i32>, v2 \"n\": i32) warps(1) {{\nblock0:\n{body}    return\n}}\n"
        );
        let func = parse_tile(&text).expect("the text is right");
        let (_, load) = func.insts_with(TileOp::Load).last().expect("a load");
        let pointer = func.dfg.insts[load].args[0];
        AllStrides::new(&func).of(pointer)
    }

    fn bytes(of: &[i64]) -> Strides {
        of.iter().map(|&by| (by >= 0).then_some(by)).collect()
    }

    #[test]
    fn quotients_and_remainders_take_bits_apart() {
        let strides = of_load(
            "    v3 = arange {start = 0} : i32[64]
    v4 = const {value = 8} : i32[64]
    v5 = sdiv v3, v4 : i32[64]
    v6 = srem v3, v4 : i32[64]
    v7 = const {value = 100} : i32[64]
    v8 = imul v5, v7 : i32[64]
    v9 = const {value = 2} : i32[64]
    v10 = shl v6, v9 : i32[64]
    v11 = iadd v8, v10 : i32[64]
    v12 = splat v0 : ptr<f16>[64]
    v13 = addptr v12, v11 : ptr<f16>[64]
    v14 = load v13 : f16[64]
",
        );
        assert_eq!(strides, bytes(&[8, 16, 32, 200, 400, 800]));
    }

    #[test]
    fn rows_of_a_size_that_is_not_known() {
        let strides = of_load(
            "    v3 = arange {start = 0} : i32[4]
    v4 = expand_dims v3 {axis = 1} : i32[4,1]
    v5 = splat v2 : i32[4,1]
    v6 = imul v4, v5 : i32[4,1]
    v7 = broadcast v6 : i32[4,2]
    v8 = arange {start = 0} : i32[2]
    v9 = expand_dims v8 {axis = 0} : i32[1,2]
    v10 = broadcast v9 : i32[4,2]
    v11 = iadd v7, v10 : i32[4,2]
    v12 = permute v11 {dims = [1, 0]} : i32[2,4]
    v13 = splat v0 : ptr<f16>[2,4]
    v14 = addptr v13, v12 : ptr<f16>[2,4]
    v15 = load v14 : f16[2,4]
",
        );
        assert_eq!(strides, bytes(&[-1, -1, 2]));
    }

    /// Pixels of images of `n` pixels, each image somewhere: neighbours are taken to be of one image.
    #[test]
    fn quotients_by_an_unknown_number_stay() {
        let strides = of_load(
            "    v3 = arange {start = 0} : i32[4]
    v4 = splat v2 : i32[4]
    v5 = sdiv v3, v4 : i32[4]
    v6 = srem v3, v4 : i32[4]
    v7 = imul v5, v4 : i32[4]
    v8 = iadd v7, v6 : i32[4]
    v9 = splat v0 : ptr<f16>[4]
    v10 = addptr v9, v8 : ptr<f16>[4]
    v11 = load v10 : f16[4]
",
        );
        assert_eq!(strides, bytes(&[2, 4]));
    }

    #[test]
    fn factors_that_are_not_known_are_supposed_to_be_one() {
        let text = "kernel @k(v0 \"p\": ptr<f16>, v1 \"n\": i32) warps(1) {
block0:
    v2 = arange {start = 0} : i32[4]
    v3 = splat v1 : i32[4]
    v4 = imul v3, v2 : i32[4]
    v5 = splat v0 : ptr<f16>[4]
    v6 = addptr v5, v4 : ptr<f16>[4]
    v7 = load v6 : f16[4]
    v8 = fptosi v7 : i32[4]
    v9 = imul v8, v2 : i32[4]
    v10 = addptr v5, v9 : ptr<f16>[4]
    v11 = load v10 : f16[4]
    return
}
";
        let func = parse_tile(text).expect("the text is right");
        let loads: Vec<_> = func.insts_with(TileOp::Load).collect();
        let pointer = |i: usize| func.dfg.insts[loads[i].1].args[0];
        assert_eq!(AllStrides::new(&func).of(pointer(0)), bytes(&[-1, -1]));
        let mut ones = AllStrides::supposing_ones(&func);
        assert_eq!(ones.of(pointer(0)), bytes(&[2, 4]));
        // What is loaded is another number for each element.
        assert_eq!(ones.of(pointer(1)), bytes(&[-1, -1]));
    }

    #[test]
    fn entries_of_a_table_are_anywhere() {
        let strides = of_load(
            "    v3 = arange {start = 0} : i32[8]
    v4 = const {value = 4} : i32[8]
    v5 = udiv v3, v4 : i32[8]
    v6 = splat v1 : ptr<i32>[8]
    v7 = addptr v6, v5 : ptr<i32>[8]
    v8 = load v7 : i32[8]
    v9 = const {value = 3} : i32[8]
    v10 = and v3, v9 : i32[8]
    v11 = iadd v8, v10 : i32[8]
    v12 = splat v0 : ptr<f16>[8]
    v13 = addptr v12, v11 : ptr<f16>[8]
    v14 = load v13 : f16[8]
",
        );
        assert_eq!(strides, bytes(&[2, 4, -1]));
    }

    #[test]
    fn a_pointer_that_a_loop_moves_on() {
        let strides = of_load(
            "    v3 = arange {start = 0} : i32[4]
    v4 = splat v0 : ptr<f16>[4]
    v5 = addptr v4, v3 : ptr<f16>[4]
    v6 = const {value = 0} : i32
    v7 = const {value = 1} : i32
    v8 = const {value = 0.0} : f16[4]
    v9 = const {value = 4} : i32[4]
    v10, v11 = for v6, v2, v7, v8, v5 : f16[4], ptr<f16>[4] {
    block1(v12: i32, v13: f16[4], v14: ptr<f16>[4]):
        v15 = load v14 : f16[4]
        v16 = addptr v14, v9 : ptr<f16>[4]
        yield v15, v16
    }
",
        );
        assert_eq!(strides, bytes(&[2, 4]));
    }
}
