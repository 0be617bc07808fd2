//! The kernel of a case, and its arguments.

use tilelift::ir::attrs::{IntPred, Rounding, make};
use tilelift::ir::builder::TileBuilder;
use tilelift::ir::dfg::ValueList;
use tilelift::ir::entities::Value;
use tilelift::ir::function::TileFunction;
use tilelift::ir::types::{Elem, Scalar, TileType, ValueType};
use tilelift::linear_layout::shape::Shape;

use super::case::{Case, Chain, Edge, Form, Matrix, Start};
use crate::common::executor::HostArg;

/// Arguments with the data and with their absolute values.
pub(crate) fn arguments(case: &Case) -> [Vec<HostArg>; 2] {
    let blocks = case.batches();
    let [m, n, k] = case.extents;
    let of = |[rows, columns]: [u64; 2]| blocks * rows * columns;
    let buffers = [
        case.data(case.factors[0].stored, case.elements(0), 0),
        case.data(case.factors[1].stored, case.elements(1), 1),
        case.data(case.link, of(case.second_extents()), 2),
        case.data(case.sum, of(case.start_extents()), 3),
    ];
    let bytes = of(case.result_extents()) * u64::from(case.result.bytes());
    let numbers = [m, n, k, case.row(0), case.row(1)];
    [0, 1].map(|which| {
        let inputs = buffers
            .iter()
            .map(|both| HostArg::Buffer(both[which].clone()));
        let output = HostArg::Output(bytes as usize);
        let numbers = numbers.iter().map(|&x| HostArg::I32(x as i32));
        inputs.chain([output]).chain(numbers).collect()
    })
}

/// Where a block of a matrix starts, how it lies in memory, and how it is loaded.
struct Place {
    base: Value,
    /// Numbers of its rows and columns, vectors.
    rows: Value,
    columns: Value,
    /// Elements from a row to the next, from a column to the next and from a matrix of the batch to the next.
    strides: [Value; 3],
}

struct Writer<'a, 'b> {
    case: &'a Case,
    b: &'b mut TileBuilder,
}

fn scalar_type(elem: Elem) -> TileType {
    TileType::scalar(elem)
}

impl Writer<'_, '_> {
    fn int(&mut self, number: u64) -> Value {
        self.b.i32(number as i32, Shape::SCALAR)
    }

    fn shape(&self, rows: u64, columns: u64) -> Shape {
        let all: Vec<u64> = self.case.batch.into_iter().chain([rows, columns]).collect();
        Shape::new(&all).expect("powers of two")
    }

    /// A vector as a block that changes along one of its dimensions.
    fn spread(&mut self, vector: Value, shape: Shape, dim: usize) -> Value {
        let mut x = vector;
        for axis in 0..shape.rank() {
            if axis != dim {
                x = self.b.expand_dims(x, axis as u8);
            }
        }
        self.b.to_shape(x, shape)
    }

    fn range(&mut self, extent: u64) -> Value {
        let shape = Shape::new(&[extent]).expect("a power of two");
        self.b.arange(0, TileType::block(Elem::I32, shape))
    }

    /// The addresses of a block.
    fn addresses(&mut self, place: &Place, shape: Shape) -> Value {
        let rank = shape.rank();
        let mut sum = None;
        for (dim, vector, stride) in [
            (rank - 2, place.rows, place.strides[0]),
            (rank - 1, place.columns, place.strides[1]),
        ] {
            let index = self.spread(vector, shape, dim);
            let stride = self.b.to_shape(stride, shape);
            let part = self.b.imul(index, stride);
            sum = Some(match sum {
                Some(sum) => self.b.iadd(sum, part),
                None => part,
            });
        }
        let mut offset = sum.expect("two dimensions");
        if rank == 3 {
            let batch = self.range(shape.extent(0));
            let batch = self.spread(batch, shape, 0);
            let stride = self.b.to_shape(place.strides[2], shape);
            let part = self.b.imul(batch, stride);
            offset = self.b.iadd(offset, part);
        }
        let base = self.b.to_shape(place.base, shape);
        self.b.addptr(base, offset)
    }

    /// Whether the numbers along a dimension of a block are below a limit.
    fn below(&mut self, vector: Value, limit: Value, shape: Shape, dim: usize) -> Value {
        let index = self.spread(vector, shape, dim);
        let limit = self.b.to_shape(limit, shape);
        self.b.icmp(index, limit, IntPred::Slt)
    }

    fn transposed(&mut self, x: Value) -> Value {
        let rank = self.b.ty(x).shape.rank() as u32;
        let mut dims: Vec<u32> = (0..rank).collect();
        dims.swap(rank as usize - 2, rank as usize - 1);
        self.b.permute(x, dims.into())
    }

    fn all(&mut self, masks: &[Option<Value>]) -> Option<Value> {
        let masks = masks.iter().flatten().copied();
        masks.reduce(|a, b| self.b.and(a, b))
    }

    /// A number in the type of the elements.
    fn number(&mut self, number: i32, ty: TileType) -> Value {
        match ty.elem.is_float() {
            true => self.b.float(f64::from(number), ty.elem, ty.shape),
            false => self.b.const_bits(number as u64, ty),
        }
    }

    /// The elements in another type.
    fn converted(&mut self, x: Value, to: Scalar) -> Value {
        let ty = self.b.ty(x);
        let (from, elem) = (ty.elem, Elem::Num(to));
        let target = ty.with_elem(elem);
        match (from.is_float(), elem.is_float()) {
            _ if from == elem => x,
            (true, true) if from.bits() < elem.bits() => self.b.fpext(x, target),
            (true, true) if from.bits() == elem.bits() => {
                let wide = self.b.fpext(x, ty.with_elem(Elem::F32));
                self.b.fptrunc(wide, Rounding::Nearest, target)
            }
            (true, true) => self.b.fptrunc(x, Rounding::Nearest, target),
            (false, true) => self.b.sitofp(x, target),
            (false, false) if from.bits() < elem.bits() => self.b.sext(x, target),
            (false, false) => self.b.itrunc(x, target),
            (true, false) => self.b.fptosi(x, target),
        }
    }
}

/// A factor in the loop.
struct Factor {
    matrix: Matrix,
    place: Place,
    /// Shape of the block in memory's terms, before it is transposed.
    shape: Shape,
    /// The dimension that is summed over.
    inner: usize,
    /// The mask along the other dimension.
    outer_mask: Option<Value>,
    addresses: Value,
}

impl Writer<'_, '_> {
    fn factor(&mut self, index: usize, params: &[Value], first: Value) -> Factor {
        let case = self.case;
        let matrix = case.factors[index];
        let [m, n, k] = case.block;
        let (outer, limit) = if index == 0 {
            (m, params[5])
        } else {
            (n, params[6])
        };
        let numbers = self.range(outer);
        let ty = self.b.ty(numbers);
        let first = self.b.to_shape(first, ty.shape);
        let mut numbers = self.b.iadd(first, numbers);
        if case.edge == Edge::Wrapped {
            let limit = self.b.to_shape(limit, ty.shape);
            numbers = self.b.srem(numbers, limit);
        }
        let inner_numbers = self.range(k);
        let stride = params[8 + index];
        let one = self.int(1);
        // Memory's rows are the matrix's columns where it is transposed.
        let (along_outer, along_inner) = match (index == 0) != matrix.transposed {
            true => (stride, one),
            false => (one, stride),
        };
        let whole = self.int(case.elements(index) / case.batches());
        let rows_are_outer = (index == 0) != matrix.permuted;
        let shape = match rows_are_outer {
            true => self.shape(outer, k),
            false => self.shape(k, outer),
        };
        let rank = shape.rank();
        let place = match rows_are_outer {
            true => Place {
                base: params[index],
                rows: numbers,
                columns: inner_numbers,
                strides: [along_outer, along_inner, whole],
            },
            false => Place {
                base: params[index],
                rows: inner_numbers,
                columns: numbers,
                strides: [along_inner, along_outer, whole],
            },
        };
        let (outer_dim, inner) = match rows_are_outer {
            true => (rank - 2, rank - 1),
            false => (rank - 1, rank - 2),
        };
        let outer_mask =
            (case.edge == Edge::Masked).then(|| self.below(numbers, limit, shape, outer_dim));
        let addresses = self.addresses(&place, shape);
        Factor {
            matrix,
            place,
            shape,
            inner,
            outer_mask,
            addresses,
        }
    }

    /// The elements that an iteration takes, at these addresses; `left` of the summed dimension are left.
    fn load(
        &mut self,
        index: usize,
        factor: &Factor,
        addresses: Value,
        left: Option<Value>,
    ) -> Value {
        let case = self.case;
        let numbers = match factor.inner == factor.shape.rank() - 1 {
            true => factor.place.columns,
            false => factor.place.rows,
        };
        let inner_mask = left.map(|left| self.below(numbers, left, factor.shape, factor.inner));
        let mask = self.all(&[inner_mask, factor.outer_mask]);
        let ty = TileType::block(Elem::Num(factor.matrix.stored), factor.shape);
        let other = (mask.is_some() && case.ones && index == 0).then(|| self.number(1, ty));
        let mut x = self.b.load(addresses, mask, other);
        if let Some(to) = case.operand {
            x = self.converted(x, to);
        }
        if case.scaled && index == 0 {
            let ty = self.b.ty(x);
            let by = if case.exact { 2.0 } else { 0.5 };
            let by = self.b.float(by, ty.elem, ty.shape);
            x = self.b.fmul(x, by);
        }
        if factor.matrix.permuted {
            self.transposed(x)
        } else {
            x
        }
    }

    /// A block that stands in memory row by row.
    fn dense(&mut self, base: Value, [rows, columns]: [u64; 2]) -> Value {
        let shape = self.shape(rows, columns);
        let (numbers, others) = (self.range(rows), self.range(columns));
        let strides = [columns, 1, rows * columns].map(|x| self.int(x));
        let place = Place {
            base,
            rows: numbers,
            columns: others,
            strides,
        };
        self.addresses(&place, shape)
    }

    fn link(&mut self, x: Value) -> Value {
        self.converted(x, self.case.link)
    }

    /// A product of matrices as the case asks for it.
    fn product(&mut self, [x, y]: [Value; 2], sum: Value) -> Value {
        let product = self.b.dot(x, y, sum, self.case.precision);
        if let Some(imprecise) = self.case.imprecise {
            self.b.with(make::imprecise(imprecise));
        }
        product
    }

    /// A product, from which and how the sum goes on.
    fn step(&mut self, [x, y]: [Value; 2], sum: Value, added: Option<Value>) -> Value {
        match added {
            None => self.product([x, y], sum),
            Some(_) => {
                let ty = self.b.ty(sum);
                let zero = self.number(0, ty);
                let product = self.product([x, y], zero);
                match ty.elem.is_float() {
                    true => self.b.fadd(sum, product),
                    false => self.b.iadd(sum, product),
                }
            }
        }
    }

    fn body(&mut self, params: &[Value]) {
        let case = self.case;
        let [m, n, k] = case.block;
        let pid = self.b.program_id(0);
        let rows = self.int(m);
        let first_row = self.b.imul(pid, rows);
        let zero = self.int(0);
        let factors = [
            self.factor(0, params, first_row),
            self.factor(1, params, zero),
        ];
        let second =
            (case.chain != Chain::None).then(|| self.dense(params[2], case.second_extents()));
        let [rows, columns] = case.start_extents();
        let sum_type = TileType::block(Elem::Num(case.sum), self.shape(rows, columns));
        let loaded = (case.start != Start::Zero).then(|| {
            let addresses = self.dense(params[3], case.start_extents());
            self.b.load(addresses, None, None)
        });
        let start = match (case.start, loaded) {
            (Start::Loaded, Some(loaded)) => loaded,
            _ => self.number(0, sum_type),
        };
        let added = loaded.filter(|_| case.start == Start::Added);
        let length = params[7];
        let sum = if case.form == Form::Once {
            let pair = [0, 1].map(|i| self.load(i, &factors[i], factors[i].addresses, None));
            self.step(pair, start, added)
        } else {
            let addresses = [factors[0].addresses, factors[1].addresses];
            let is_carried = case.form != Form::Indexed;
            let carried: Vec<Value> = match is_carried {
                true => [start].into_iter().chain(addresses).collect(),
                false => vec![start],
            };
            // Masked loops count blocks, the others elements.
            let (hi, by) = match case.form {
                Form::Masked => (self.int(case.steps), self.int(1)),
                _ => (length, self.int(k)),
            };
            let lo = self.int(0);
            let results = self.b.for_loop(lo, hi, by, &carried, |b, at, values| {
                let mut inner = Writer { case, b };
                inner.iteration(&factors, (at, length), values, (second, added))
            });
            self.b.with(make::stages(case.stages));
            results[0]
        };
        self.finish(sum, second, params[4], first_row, n);
    }

    fn iteration(
        &mut self,
        factors: &[Factor; 2],
        (at, length): (Value, Value),
        values: &[Value],
        (second, added): (Option<Value>, Option<Value>),
    ) -> ValueList {
        let case = self.case;
        let k = self.int(case.block[2]);
        let left = (case.form == Form::Masked).then(|| {
            let done = self.b.imul(at, k);
            self.b.isub(length, done)
        });
        let mut next = vec![values[0]];
        let mut pair = Vec::new();
        for (i, factor) in factors.iter().enumerate() {
            let stride = match factor.inner == factor.shape.rank() - 1 {
                true => factor.place.strides[1],
                false => factor.place.strides[0],
            };
            let shape = factor.shape;
            let addresses = if case.form == Form::Indexed {
                let offset = self.b.imul(at, stride);
                let offset = self.b.to_shape(offset, shape);
                self.b.addptr(factor.addresses, offset)
            } else {
                let by = self.b.imul(k, stride);
                let by = self.b.to_shape(by, shape);
                next.push(self.b.addptr(values[1 + i], by));
                values[1 + i]
            };
            pair.push(self.load(i, factor, addresses, left));
        }
        let pair = [pair[0], pair[1]];
        next[0] = match (case.chain, second) {
            (Chain::Inside, Some(second)) => {
                let [m, n, _] = case.block;
                let ty = TileType::block(Elem::Num(case.sum), self.shape(m, n));
                let zero = self.number(0, ty);
                let first = self.product([pair[0], pair[1]], zero);
                let first = self.link(first);
                let other = self.b.load(second, None, None);
                self.step([first, other], values[0], added)
            }
            _ => self.step(pair, values[0], added),
        };
        ValueList::from_slice(&next)
    }

    /// Stores the sum, or its product with another matrix.
    fn finish(
        &mut self,
        sum: Value,
        second: Option<Value>,
        base: Value,
        first_row: Value,
        columns: u64,
    ) {
        let case = self.case;
        let (mut sum, [m, n, _]) = (sum, case.block);
        let [whole, stored] = case.result_extents();
        let mut height = m;
        let mut first = first_row;
        if let (Chain::Left | Chain::Right, Some(second)) = (case.chain, second) {
            let link = self.link(sum);
            let other = self.b.load(second, None, None);
            let (shape, pair) = match case.chain {
                Chain::Left => (self.shape(m, case.second), [link, other]),
                _ => (self.shape(case.second, n), [other, link]),
            };
            let zero = self.number(0, TileType::block(Elem::Num(case.sum), shape));
            sum = self.product([pair[0], pair[1]], zero);
            if case.chain == Chain::Right {
                height = case.second;
                let pid = self.b.program_id(0);
                let by = self.int(case.second);
                first = self.b.imul(pid, by);
            }
        }
        let width = match case.chain {
            Chain::None | Chain::Right => columns,
            _ => case.second,
        };
        let shape = self.shape(height, width);
        let numbers = self.range(height);
        let own = self.b.ty(numbers).shape;
        let first = self.b.to_shape(first, own);
        let rows = self.b.iadd(first, numbers);
        let others = self.range(width);
        let strides = [stored, 1, whole * stored].map(|x| self.int(x));
        let place = Place {
            base,
            rows,
            columns: others,
            strides,
        };
        let addresses = self.addresses(&place, shape);
        let rank = shape.rank();
        let limits = [whole, stored].map(|x| self.int(x));
        let mask = (case.edge != Edge::None).then(|| {
            let row = self.below(rows, limits[0], shape, rank - 2);
            let column = self.below(others, limits[1], shape, rank - 1);
            self.b.and(row, column)
        });
        let sum = self.converted(sum, case.result);
        self.b.store(addresses, sum, mask);
        self.b.ret();
    }
}

/// The kernel of a case: four inputs, the output, and five numbers.
pub(crate) fn kernel(case: &Case) -> TileFunction {
    let mut b = TileBuilder::new(format!("k{}", case.number), case.warps);
    let stored = [
        case.factors[0].stored,
        case.factors[1].stored,
        case.link,
        case.sum,
        case.result,
    ];
    let mut params = Vec::new();
    for (name, scalar) in ["a", "b", "second", "start", "out"].into_iter().zip(stored) {
        let ty = scalar_type(Elem::global(scalar));
        params.push(b.param_divisible(name, ty, 16));
    }
    let [m, n, k] = case.extents;
    let numbers = [m, n, k, case.row(0), case.row(1)];
    for (name, number) in ["m", "n", "k", "row_a", "row_b"].into_iter().zip(numbers) {
        let ty = scalar_type(Elem::I32);
        let kept = case.align.min(1 << number.trailing_zeros().min(4));
        params.push(b.param_divisible(name, ty, kept as u32));
    }
    Writer { case, b: &mut b }.body(&params);
    let func = b.finish();
    func.unwrap_or_else(|errors| panic!("{case:?}: {errors}"))
}
