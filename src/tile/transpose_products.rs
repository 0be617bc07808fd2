//! Products whose left operand units read as it stands and whose right one not, computed as their transposes.
//!
//! ```text
//! for .. carrying p {                for .. carrying q = transpose p {
//!     r = dot a, b, p          =>        s = dot (transpose b), (transpose a), q
//!     yield r                            yield s
//! }                                  }; r = transpose s
//! ```
//!
//! Units of warpgroups read their right operand from shared memory alone, and where its elements have four bytes along the summed dimension
//! alone ([`crate::layout::warpgroup`]). A matrix b as k x n, with its neighbours along n, then goes through registers to a second
//! block that stands the other way, which takes more of the bandwidth of shared memory than the products. Their left operand the units
//! take from registers, too, and of a word each thread can hold whichever it likes: so b becomes the left operand, and a, whose neighbours
//! stand along k, the right one. (An H100, tf32 of 4096^3: 510 us before, 355 now, as with b as n x k.) Bytes do not gain from this: a
//! register holds four of them along the summed dimension, and each would be loaded by itself.
//!
//! An operand of 16 bits that is computed from what an iteration loads (weights of few bits that become floats) would go through registers to
//! a second block, too, which all groups of warps then read. As the left operand it stays in registers. (An H100, weights of bytes of
//! 4096^3: 322 us before, 186 now, products of 16-bit weights 183.)
//!
//! The sums stay transposed while loops carry them, so this is for sums that nothing but such products adds to in their loops. Outside,
//! a transposed block is another name for the same registers.

use cranelift_entity::SecondaryMap;

use super::carried::Carried;
use super::edit::{rename_uses, use_counts};
use super::start_dots::is_for_warpgroup;
use crate::analysis::axis::Axis;
use crate::analysis::computed::is_computed;
use crate::analysis::neighbours::neighbours;
use crate::ir::attrs::make;
use crate::ir::dfg::ValueDef;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::maker::Maker;
use crate::ir::ops::TileOp;
use crate::ir::types::TileType;
use crate::layout::warpgroup;
use crate::linear_layout::layout::LinearLayout;
use crate::linear_layout::shape::Shape;
use crate::settings::Target;

/// Bytes of the elements that no unit reads across the summed dimension, and of those that it reads in either order.
const WORD: u32 = 4;
const HALF: u32 = 2;
/// Most registers for sums and left operands, which are held while products are under way. With 256 ptxas computes them one by one (C7511).
const MOST_REGISTERS: u32 = 192;

/// Transposes products; gives how many.
pub fn transpose_products(func: &mut TileFunction, target: Target) -> usize {
    let loops: Vec<Inst> = func.insts_with(TileOp::For).map(|(_, inst)| inst).collect();
    if loops.is_empty() || func.insts_with(TileOp::Dot).next().is_none() {
        return 0;
    }
    let axis = Axis::compute(func);
    let uses = use_counts(func);
    let mut count = 0;
    for inst in loops {
        for position in 0..func.dfg.insts[inst].results.len() {
            let sum = Carried { inst, position };
            let Some(products) = added(func, &uses, sum) else {
                continue;
            };
            let pays = |&product: &Inst| pays(func, &axis, product, target);
            if products.is_empty() || !products.iter().all(pays) {
                continue;
            }
            if let Some(carried) = outwards(func, &uses, sum) {
                count += products.len();
                transpose(func, &products, &carried);
            }
        }
    }
    count
}

/// The products that are all that happens to a sum in its loop, in order.
fn added(func: &TileFunction, uses: &SecondaryMap<Value, u32>, sum: Carried) -> Option<Vec<Inst>> {
    let last = sum.yielded(func)?;
    let mut value = sum.param(func);
    let mut products = Vec::new();
    for &inst in func.order.insts(sum.body(func)) {
        let data = &func.dfg.insts[inst];
        if data.op == TileOp::Dot && data.args[2] == value && uses[value] == 1 {
            value = data.results[0];
            products.push(inst);
        }
    }
    (value == last && uses[value] == 1).then_some(products)
}

/// The loop's sum, and that of each loop around it which carries nothing else at some position; none if a sum comes from elsewhere in a
/// loop around, which would transpose it in each iteration.
fn outwards(
    func: &TileFunction,
    uses: &SecondaryMap<Value, u32>,
    mut sum: Carried,
) -> Option<Vec<Carried>> {
    let mut found = vec![sum];
    while let (first, result) = (sum.first(func), sum.result(func))
        && let ValueDef::Param(..) = func.dfg.values[first].def
    {
        let outer = Carried::of(func, first)?;
        let is_alone = uses[first] == 1 && uses[result] == 1;
        if !is_alone || outer.yielded(func) != Some(result) {
            return None;
        }
        found.push(outer);
        sum = outer;
    }
    Some(found)
}

/// Whether a unit reads the operands of a product's transpose better than its own.
fn pays(func: &TileFunction, axis: &Axis, product: Inst, target: Target) -> bool {
    let data = &func.dfg.insts[product];
    let [left, right] = [data.args[0], data.args[1]];
    let is_better = match func.dfg.ty(right).elem.bytes() {
        WORD => [left, right]
            .iter()
            .all(|&value| neighbours(func, axis, value) == Some(1)),
        HALF => is_computed(func, right) && !is_computed(func, left),
        _ => false,
    };
    is_better
        && is_for_warpgroup(func, product, target)
        && registers(func, product, target).is_some_and(|registers| registers <= MOST_REGISTERS)
}

/// Registers of a thread for sums and left operand of a product's transpose; none if no unit computes it.
fn registers(func: &TileFunction, product: Inst, target: Target) -> Option<u32> {
    let data = &func.dfg.insts[product];
    let [right, sums] = [data.args[1], data.results[0]].map(|value| func.dfg.ty(value));
    // Its rows are the columns of the product.
    let held = warpgroup::accumulator(transposed(sums).shape, func.num_warps())?;
    let unit = warpgroup::unit_of(func, product, target)?;
    let operand = warpgroup::left_operand(&held, unit, transposed(right).shape)?;
    let words = |layout: &LinearLayout, bytes: u32| (layout.num_registers() * bytes).div_ceil(4);
    Some(words(&held, sums.elem.bytes()) + words(&operand, right.elem.bytes()))
}

/// The type of a matrix the other way around.
fn transposed(ty: TileType) -> TileType {
    let extents = [1, 0].map(|dim| ty.shape.extent(dim));
    // Extents of a shape, so nothing is refused.
    Shape::new(&extents).map_or(ty, |shape| ty.with_shape(shape))
}

/// A matrix the other way around, which has no place yet, with the line of an instruction.
fn transpose_of(func: &mut TileFunction, value: Value, near: Inst) -> Inst {
    let dims = make::dims([1, 0].into_iter().collect());
    let ty = transposed(func.dfg.ty(value));
    Maker::near(func, near).build(TileOp::Permute, &[value], &[dims], &[ty])
}

fn set_transposed(func: &mut TileFunction, value: Value) {
    func.dfg.values[value].ty = transposed(func.dfg.ty(value));
}

/// Makes a product that of the transposes; gives these, which have no place yet.
fn transpose_one(func: &mut TileFunction, product: Inst) -> [Inst; 2] {
    let data = &func.dfg.insts[product];
    let (left, right, result) = (data.args[0], data.args[1], data.results[0]);
    let made = [right, left].map(|value| transpose_of(func, value, product));
    for (i, inst) in made.into_iter().enumerate() {
        func.dfg.insts[product].args[i] = func.dfg.insts[inst].results[0];
    }
    set_transposed(func, result);
    made
}

fn transpose(func: &mut TileFunction, products: &[Inst], carried: &[Carried]) {
    for &product in products {
        let made = transpose_one(func, product);
        func.order.insert_before(product, &made);
    }
    for &sum in carried {
        for value in [sum.param(func), sum.result(func)] {
            set_transposed(func, value);
        }
    }
    let Some(&outermost) = carried.last() else {
        return;
    };
    let (first, result) = (outermost.first(func), outermost.result(func));
    let begins = transpose_of(func, first, outermost.inst);
    func.dfg.insts[outermost.inst].args[3 + outermost.position] = func.dfg.insts[begins].results[0];
    let ends = transpose_of(func, result, outermost.inst);
    rename_uses(func, result, func.dfg.insts[ends].results[0]);
    func.order.insert_before(outermost.inst, &[begins]);
    func.order.insert_after(outermost.inst, &[ends]);
}

#[cfg(test)]
mod tests {
    use super::transpose_products;
    use crate::ir::function::TileFunction;
    use crate::ir::ops::TileOp;
    use crate::settings::Target;
    use crate::tile::testing::{fixed_point, parse, verified};

    fn pass(func: &mut TileFunction) -> usize {
        transpose_products(func, Target::SM_90A)
    }

    /// A loop that adds `product` to sums that start from `first`, of a left operand `v10` and a right one `v11` of `elem`, whose
    /// neighbours stand along the dimensions.
    fn text(elem: &str, neighbours: [usize; 2], (first, product): (&str, &str)) -> String {
        let load = |name: u32, base: &str, [high, wide]: [u32; 2], along: usize| {
            let [down, across] = [0, 1].map(|dim| if dim == along { 1 } else { 256 });
            let all = format!("[{high},{wide}]");
            format!(
                "v{name}0 = arange {{start = 0}} : i32[{high}]
                v{name}1 = expand_dims v{name}0 {{axis = 1}} : i32[{high},1]
                v{name}2 = const {{value = {down}}} : i32[{high},1]
                v{name}3 = imul v{name}1, v{name}2 : i32[{high},1]
                v{name}4 = arange {{start = 0}} : i32[{wide}]
                v{name}5 = expand_dims v{name}4 {{axis = 0}} : i32[1,{wide}]
                v{name}6 = const {{value = {across}}} : i32[1,{wide}]
                v{name}7 = imul v{name}5, v{name}6 : i32[1,{wide}]
                v{name}8 = broadcast v{name}3 : i32{all}
                v{name}9 = broadcast v{name}7 : i32{all}
                v{name}00 = iadd v{name}8, v{name}9 : i32{all}
                v{name}01 = splat {base} : ptr<{elem}>{all}
                v{name}02 = addptr v{name}01, v{name}00 : ptr<{elem}>{all}
                v{name} = load v{name}02 : {elem}{all}"
            )
        };
        let (left, right) = (
            load(10, "v0", [128, 32], neighbours[0]),
            load(11, "v1", [32, 64], neighbours[1]),
        );
        format!(
            "kernel @k(v0: ptr<{elem}> {{divisible = 16}}, v1: ptr<{elem}> {{divisible = 16}}, v2: i32, v3: ptr<f32>) warps(4) {{
            block0:
                v4 = const {{value = 0}} : i32
                v5 = const {{value = 1}} : i32
                {first}
                {left}
                {right}
                v7 = for v4, v2, v5, v6 : f32[128,64] {{
                block1(v8: i32, v9: f32[128,64]):
                    {product}
                }}
                v12 = splat v3 : ptr<f32>[128,64]
                store v12, v7
                return
            }}"
        )
    }

    const ZERO: &str = "v6 = const {value = 0.0} : f32[128,64]";
    const ONE: &str = "v13 = dot v10, v11, v9 {precision = tf32} : f32[128,64]
        yield v13";

    #[test]
    fn right_operands_that_stand_across_become_left_ones() {
        let before = text("f32", [1, 1], (ZERO, ONE));
        let mut func = parse(&before);
        assert_eq!(pass(&mut func), 1);
        verified(&func);
        let (_, dot) = func.insts_with(TileOp::Dot).next().expect("the product");
        let shapes = func.dfg.insts[dot].args.iter();
        let shapes: Vec<String> = shapes.map(|&arg| func.dfg.ty(arg).to_string()).collect();
        assert_eq!(shapes, ["f32[64,32]", "f32[32,128]", "f32[64,128]"]);
        assert_eq!(func.insts_with(TileOp::Permute).count(), 4);
        // Again there is nothing to do.
        assert_eq!(pass(&mut func), 0);
    }

    /// A product of a loop of `left` and `right`, of which a line of `first` or `more` makes `v15`.
    fn computed(first: &str, more: &str, [left, right]: [&str; 2]) -> String {
        let product = format!(
            "{more}
            v13 = dot {left}, {right}, v9 {{precision = ieee}} : f32[128,64]
            yield v13"
        );
        let zero_and = format!("{ZERO}\n{first}");
        text("f16", [1, 1], (&zero_and, &product))
    }

    #[test]
    fn right_operands_that_are_computed_become_left_ones() {
        let scaled = "v15 = fmul v16, v16 : f16[32,64]";
        let loaded = "v14 = splat v1 : ptr<f16>[32,64]
            v17 = splat v8 : i32[32,64]
            v18 = addptr v14, v17 : ptr<f16>[32,64]
            v16 = load v18 : f16[32,64]";
        let inside = format!("{loaded}\n{scaled}");
        let mut func = parse(&computed("", &inside, ["v10", "v15"]));
        assert_eq!(pass(&mut func), 1);
        verified(&func);
        let (_, dot) = func.insts_with(TileOp::Dot).next().expect("the product");
        let sums = func.dfg.insts[dot].results[0];
        assert_eq!(func.dfg.ty(sums).to_string(), "f32[64,128]");
        assert_eq!(pass(&mut func), 0);
        // What is loaded as it is has no need, and what is computed once is stored once.
        fixed_point(pass, &computed("", loaded, ["v10", "v16"]));
        let once = "v16 = const {value = 2.0} : f16[32,64]";
        fixed_point(
            pass,
            &computed(&format!("{once}\n{scaled}"), "", ["v10", "v15"]),
        );
        // Of two that are computed the left one is in registers as it is.
        let both = format!(
            "{inside}\nv22 = splat v1 : ptr<f16>[128,32]\nv23 = load v22 : f16[128,32]\nv24 = fmul v23, v23 : f16[128,32]"
        );
        fixed_point(pass, &computed("", &both, ["v24", "v15"]));
        // Made of what other products gave.
        let sums = format!("{loaded}\nv15 = fptrunc v25 {{round = rn}} : f16[32,64]").replace(
            "v15 =",
            "v26 = const {value = 0.0} : f32[32,64]\nv27 = load v28 : f16[32,16]\nv25 = dot v27, v29, v26 {precision = ieee} : f32[32,64]\nv15 =",
        );
        let operands = "v28 = splat v0 : ptr<f16>[32,16]\nv30 = splat v0 : ptr<f16>[16,64]\nv29 = load v30 : f16[16,64]";
        fixed_point(pass, &computed(operands, &sums, ["v10", "v15"]));
    }

    #[test]
    fn others_stay() {
        for neighbours in [[1, 0], [0, 1], [0, 0]] {
            fixed_point(pass, &text("f32", neighbours, (ZERO, ONE)));
        }
        let halves = ONE.replace("tf32", "ieee");
        fixed_point(pass, &text("f16", [1, 1], (ZERO, &halves)));
        let sm_80 = |func: &mut _| transpose_products(func, Target::SM_80);
        fixed_point(sm_80, &text("f32", [1, 1], (ZERO, ONE)));
        let exact = ONE.replace("tf32", "ieee");
        fixed_point(pass, &text("f32", [1, 1], (ZERO, &exact)));
    }

    #[test]
    fn sums_that_something_else_changes_stay() {
        for product in [
            "v14 = fmul v9, v9 : f32[128,64]
            v13 = dot v10, v11, v14 {precision = tf32} : f32[128,64]
            yield v13",
            "v13 = dot v10, v11, v9 {precision = tf32} : f32[128,64]
            v14 = fmul v13, v13 : f32[128,64]
            yield v14",
            "v13 = dot v10, v11, v9 {precision = tf32} : f32[128,64]
            v12 = splat v3 : ptr<f32>[128,64]
            store v12, v9
            yield v13",
            "v13 = dot v10, v11, v6 {precision = tf32} : f32[128,64]
            yield v13",
        ] {
            let product = product.replace("v12", "v15");
            fixed_point(pass, &text("f32", [1, 1], (ZERO, &product)));
        }
    }

    #[test]
    fn several_products_of_an_iteration_go_together() {
        let two = "v13 = dot v10, v11, v9 {precision = tf32} : f32[128,64]
            v14 = dot v10, v11, v13 {precision = tf32} : f32[128,64]
            yield v14";
        let mut func = parse(&text("f32", [1, 1], (ZERO, two)));
        assert_eq!(pass(&mut func), 2);
        verified(&func);
        // One of them alone would be in the way of the other.
        let exact = two.replacen("tf32", "ieee", 1);
        fixed_point(pass, &text("f32", [1, 1], (ZERO, &exact)));
    }
}
