//! Pointers with known ranges, loads, and stores to places of their own.
//!
//! Input buffers are never written, so their loads need no order. Each store gets a *site*: for every program a
//! run of elements of an output buffer, addressed by an index that is different for each element of the block.

use super::values::number;
use super::{Argument, Generator};
use crate::ir::attrs::{Attr, Cache, Evict, Flag, IntPred, make};
use crate::ir::entities::Value;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, Scalar, TileType, ValueType};
use crate::linear_layout::shape::Shape;

/// A pointer, or a block of them, into an input buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pointer {
    pub(super) value: Value,
    /// No address is more elements than this past the start of its buffer, and none lies before it.
    pub(super) last: i64,
    /// Elements of the buffer.
    pub(super) len: i64,
}

/// A buffer that stores go to.
pub(super) struct OutBuffer {
    param: Value,
    scalar: Scalar,
    /// Its place in the list of arguments.
    arg: usize,
    /// Elements given out.
    used: i64,
    sites: Vec<Site>,
}

/// Elements of an output buffer that belong to one store: `count` for each program.
#[derive(Clone, Copy)]
pub(super) struct Site {
    base: i64,
    count: i64,
}

impl Generator {
    /// The known pointers of a type.
    pub(super) fn pointers_like(&self, ty: TileType) -> Vec<Pointer> {
        let fits = |p: &Pointer| self.b.ty(p.value) == ty;
        self.pointers.iter().copied().filter(fits).collect()
    }

    /// The arguments, once it is known how large the output buffers must be.
    pub(super) fn arguments(&mut self) -> Vec<Argument> {
        for buffer in std::mem::take(&mut self.outputs) {
            let bytes = self.fill(buffer.scalar, buffer.used.max(1));
            self.args[buffer.arg] = Argument::Buffer(buffer.scalar, bytes);
        }
        std::mem::take(&mut self.args)
    }

    fn fill(&mut self, scalar: Scalar, count: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..count {
            let bits = match scalar {
                // Any byte but zero means true.
                Scalar::I1 => self.random.pick(&[0, 0, 0, 1, 1, 2, 255]),
                _ => number(&mut self.random, Elem::Num(scalar)),
            };
            bytes.extend_from_slice(&bits.to_le_bytes()[..scalar.bytes() as usize]);
        }
        bytes
    }

    /// A pointer to a buffer, mostly promised to be aligned.
    pub(super) fn pointer_param(&mut self, scalar: Scalar) -> Value {
        let ty = TileType::scalar(Elem::global(scalar));
        let name = format!("p{}", self.args.len());
        match self.random.chance(80) {
            true => self.b.param_divisible(&name, ty, 16),
            false => self.b.param(&name, ty),
        }
    }

    /// A new input buffer.
    fn input(&mut self, scalar: Scalar, count: i64) -> Pointer {
        let value = self.pointer_param(scalar);
        let len = match self.random.chance(70) {
            true => count * self.random.pick(&[1, 2, 2, 4]),
            false => self.random.pick(&[16, 256, 1024, 4096]),
        };
        let bytes = self.fill(scalar, len);
        self.args.push(Argument::Buffer(scalar, bytes));
        Pointer {
            value,
            last: 0,
            len,
        }
    }

    /// A scalar type of memory that existing pointers favour.
    fn pointee(&mut self) -> Scalar {
        if !self.pointers.is_empty() && self.random.chance(60) {
            let index = self.random.below(self.pointers.len());
            let elem = self.b.ty(self.pointers[index].value).elem;
            return elem.pointee().expect("the pool holds pointers");
        }
        self.elem().scalar().unwrap_or(Scalar::I32)
    }

    /// Pointers of a shape, and a mask without which they may leave their buffer.
    fn pointers_of(&mut self, scalar: Scalar, shape: Shape) -> (Pointer, Option<Value>) {
        let elem = Elem::global(scalar);
        let fitting = |g: &Generator, shape: Shape| -> Vec<Pointer> {
            let ty = TileType::block(elem, shape);
            g.pointers
                .iter()
                .copied()
                .filter(|p| g.b.ty(p.value) == ty)
                .collect()
        };
        let ready = fitting(self, shape);
        if !ready.is_empty() && self.random.chance(40) {
            return (self.random.pick(&ready), None);
        }
        let bases = fitting(self, Shape::SCALAR);
        let base = match bases.is_empty() || self.random.chance(30) {
            true => self.input(scalar, shape.elements() as i64),
            false => self.random.pick(&bases),
        };
        let room = base.len - base.last;
        let limit = 1 << room.ilog2();
        if self.random.chance(15) {
            // Any index, and a mask that leaves those inside.
            let ty = TileType::block(self.random.pick(&[Elem::I32, Elem::I64]), shape);
            let index = self.value(ty);
            let bound = self.int_like(limit, index);
            let mask = self.b.icmp(index, bound, IntPred::Ult);
            let value = self.move_by(base.value, index, shape);
            let pointer = Pointer {
                value,
                last: base.last + limit - 1,
                len: base.len,
            };
            return (pointer, Some(mask));
        }
        let index = self.index(shape, limit);
        let value = self.move_by(base.value, index, shape);
        let pointer = Pointer {
            value,
            last: base.last + limit - 1,
            len: base.len,
        };
        self.pointers.push(base);
        self.pointers.push(pointer);
        (pointer, None)
    }

    /// A scalar pointer plus a block of offsets.
    fn move_by(&mut self, base: Value, index: Value, shape: Shape) -> Value {
        let base = self.b.to_shape(base, shape);
        self.b.addptr(base, index)
    }

    /// The numbers along a dimension of a shape, as a block of the shape, times a number.
    pub(super) fn along(&mut self, shape: Shape, dim: usize, stride: i64) -> Value {
        let early = self.random.chance(50);
        let extent = Shape::from_log2(&[shape.log2()[dim]]).expect("one dimension of the shape");
        let mut x = self.b.arange(0, TileType::block(Elem::I32, extent));
        let scale = |g: &mut Generator, x: Value| {
            let stride = g.int_like(stride, x);
            g.b.imul(x, stride)
        };
        if early && stride != 1 {
            x = scale(self, x);
        }
        for _ in 0..dim {
            x = self.b.expand_dims(x, 0);
        }
        for axis in dim + 1..shape.rank() {
            x = self.b.expand_dims(x, axis as u8);
        }
        let ty = TileType::block(Elem::I32, shape);
        if self.b.ty(x) != ty {
            x = self.b.broadcast(x, ty);
        }
        if !early && stride != 1 {
            x = scale(self, x);
        }
        x
    }

    /// A different number for each element, from zero up; dimensions in the order of memory or in any other.
    pub(super) fn numbering(&mut self, shape: Shape) -> Value {
        let mut dims: Vec<usize> = (0..shape.rank()).collect();
        if self.random.chance(50) {
            for i in (1..dims.len()).rev() {
                let j = self.random.below(i + 1);
                dims.swap(i, j);
            }
        }
        self.weighted_sum(shape, &dims)
    }

    fn weighted_sum(&mut self, shape: Shape, slowest_first: &[usize]) -> Value {
        let mut stride = 1;
        let mut sum = None;
        for &dim in slowest_first.iter().rev() {
            let part = self.along(shape, dim, stride);
            sum = Some(sum.map_or(part, |sum| self.b.iadd(sum, part)));
            stride *= shape.extent(dim) as i64;
        }
        sum.unwrap_or_else(|| self.constant(TileType::block(Elem::I32, shape), 0))
    }

    /// Numbers below `limit`, a power of two.
    pub(super) fn index(&mut self, shape: Shape, limit: i64) -> Value {
        let count = shape.elements() as i64;
        let ty = TileType::block(Elem::I32, shape);
        let x = match self.random.below(8) {
            0..3 => self.numbering(shape),
            3 => {
                let dims: Vec<usize> = (0..shape.rank())
                    .filter(|_| self.random.chance(50))
                    .collect();
                self.weighted_sum(shape, &dims)
            }
            4 => {
                let x = self.numbering(shape);
                let factor = self.random.pick(&[2, 3, 4, 8, 16]);
                let factor = self.int_like(factor, x);
                let x = self.b.imul(x, factor);
                return self.wrap(x, limit);
            }
            5 => {
                let n = self.random.between(0, limit - 1);
                return self.constant(ty, n as u64);
            }
            _ => {
                let elem = self.random.pick(&[Elem::I32, Elem::I32, Elem::I64]);
                let x = self.value(ty.with_elem(elem));
                return self.wrap(x, limit);
            }
        };
        // Plain offsets from a start stay plain, so that accesses can be wide.
        if 2 * count <= limit && self.random.chance(60) {
            let room = limit / count;
            let start = match self.random.below(3) {
                0 => self.int(0),
                1 => {
                    let n = self.random.between(0, (room - 1) * count);
                    self.int(n)
                }
                _ => {
                    let n = self.value(TileType::scalar(Elem::I32));
                    let mask = self.int(room - 1);
                    let n = self.b.and(n, mask);
                    let count = self.int(count);
                    self.b.imul(n, count)
                }
            };
            let start = self.b.to_shape(start, shape);
            return self.b.iadd(x, start);
        }
        match count <= limit {
            true => x,
            false => self.wrap(x, limit),
        }
    }

    fn wrap(&mut self, x: Value, limit: i64) -> Value {
        let mask = self.int_like(limit - 1, x);
        self.b.and(x, mask)
    }

    /// A mask: none, constant, or computed.
    pub(super) fn mask(&mut self, shape: Shape) -> Option<Value> {
        let ty = TileType::block(Elem::I1, shape);
        match self.random.below(10) {
            0..4 => None,
            4 => {
                let on = u64::from(self.random.chance(60));
                Some(self.constant(ty, on))
            }
            5..8 => {
                let x = self.numbering(shape);
                let bound = self.value(TileType::scalar(Elem::I32));
                let bound = self.b.to_shape(bound, shape);
                let pred = self
                    .random
                    .pick(&[IntPred::Slt, IntPred::Sge, IntPred::Ult]);
                Some(self.b.icmp(x, bound, pred))
            }
            _ => Some(self.value(ty)),
        }
    }

    /// Cache hints, rarely.
    fn access_attrs(&mut self, loads: bool) -> Vec<Attr> {
        let mut attrs = Vec::new();
        if self.random.chance(10) {
            let kinds = match loads {
                true => [Cache::All, Cache::Global, Cache::Streaming, Cache::Volatile],
                false => [
                    Cache::WriteBack,
                    Cache::Global,
                    Cache::Streaming,
                    Cache::WriteThrough,
                ],
            };
            attrs.push(make::cache(self.random.pick(&kinds)));
        } else if self.random.chance(8) {
            attrs.push(make::evict(self.random.pick(Evict::ALL)));
        } else if loads && self.random.chance(5) {
            attrs.push(make::volatile(Flag));
        }
        attrs
    }

    /// A load from an input buffer.
    pub(super) fn load(&mut self) {
        let (scalar, shape) = (self.pointee(), self.shape());
        let value = self.load_of(scalar, shape);
        self.values.push(value);
    }

    /// A load of a type.
    pub(super) fn load_of(&mut self, scalar: Scalar, shape: Shape) -> Value {
        let (pointer, guard) = self.pointers_of(scalar, shape);
        let mut mask = self.mask(shape);
        if let Some(guard) = guard {
            mask = Some(mask.map_or(guard, |mask| self.b.and(mask, guard)));
        }
        let mut args = vec![pointer.value];
        if let Some(mask) = mask {
            args.push(mask);
            if self.random.chance(50) {
                args.push(self.value(TileType::block(Elem::Num(scalar), shape)));
            }
        }
        let attrs = self.access_attrs(true);
        self.one(TileOp::Load, &args, &attrs, &[])
    }

    fn programs(&self) -> i64 {
        self.grid.iter().map(|&n| i64::from(n)).product()
    }

    /// The number of the program among all.
    fn program_number(&mut self) -> Value {
        let x = self.b.program_id(0);
        if self.grid[1] == 1 {
            return x;
        }
        let (y, width) = (self.b.program_id(1), self.b.num_programs(0));
        let row = self.b.imul(y, width);
        self.b.iadd(row, x)
    }

    /// A place for a block in an output buffer: the buffer's index and the site.
    pub(super) fn site(&mut self, scalar: Scalar, count: i64) -> (usize, Site) {
        let known = self.outputs.iter().position(|o| o.scalar == scalar);
        let index = match known {
            Some(index) if self.random.chance(75) => index,
            _ => {
                let param = self.pointer_param(scalar);
                self.outputs.push(OutBuffer {
                    param,
                    scalar,
                    arg: self.args.len(),
                    used: 0,
                    sites: Vec::new(),
                });
                // Replaced once the size is known.
                self.args.push(Argument::Buffer(scalar, Vec::new()));
                self.outputs.len() - 1
            }
        };
        let base = self.outputs[index].used;
        let gap = self.random.pick(&[0, 0, 1, 3, 8]);
        let site = Site { base, count };
        let programs = self.programs();
        self.outputs[index].used += count * programs + gap;
        self.outputs[index].sites.push(site);
        (index, site)
    }

    /// Pointers into this program's part of a site, at these numbers below the site's count.
    pub(super) fn site_pointers(&mut self, buffer: usize, site: Site, index: Value) -> Value {
        let param = self.outputs[buffer].param;
        let shape = self.b.ty(index).shape;
        let number = self.program_number();
        let count = self.int(site.count);
        let start = self.b.imul(number, count);
        let base = self.int(site.base);
        let start = self.b.iadd(start, base);
        if self.random.chance(50) {
            let start = self.b.to_shape(start, shape);
            let index = self.b.iadd(start, index);
            return self.move_by(param, index, shape);
        }
        let start = self.b.addptr(param, start);
        self.move_by(start, index, shape)
    }

    /// A different number below the number of elements for each element.
    pub(super) fn distinct(&mut self, shape: Shape) -> Value {
        let count = shape.elements() as i64;
        let x = self.numbering(shape);
        let n = self.random.between(0, count - 1);
        match self.random.below(8) {
            0 => {
                let n = self.int_like(n, x);
                self.b.xor(x, n)
            }
            1 => {
                let n = self.int_like(n, x);
                let x = self.b.iadd(x, n);
                self.wrap(x, count)
            }
            2 => {
                let last = self.int_like(count - 1, x);
                self.b.isub(last, x)
            }
            _ => x,
        }
    }

    /// Orders what a loop does in one round before what it does in the next.
    pub(super) fn order_rounds(&mut self) {
        if self.trips > 1 {
            self.b.barrier();
        }
    }

    /// Stores a value.
    pub(super) fn store(&mut self, value: Value) {
        let ty = self.b.ty(value);
        let Some(scalar) = ty.elem.scalar() else {
            return;
        };
        let (buffer, site) = self.site(scalar, ty.shape.elements() as i64);
        let index = self.distinct(ty.shape);
        let pointers = self.site_pointers(buffer, site, index);
        let mut args = vec![pointers, value];
        args.extend(self.mask(ty.shape));
        let attrs = self.access_attrs(false);
        self.order_rounds();
        let mut data = crate::ir::dfg::InstData::new(TileOp::Store, &args);
        data.attrs.extend(attrs);
        self.b.inst(data, &[]);
    }

    pub(super) fn store_something(&mut self) {
        let ty = TileType::block(self.elem(), self.shape());
        let value = self.value(ty);
        self.store(value);
    }

    /// Loads, changes and stores without a barrier, which the IR allows where the stored value depends on the load.
    pub(super) fn update_in_place(&mut self) {
        let ty = TileType::block(self.elem(), self.shape());
        let op = match ty.elem {
            Elem::I1 => TileOp::Xor,
            elem if elem.is_int() => TileOp::Iadd,
            elem if elem.bits() > 8 => TileOp::Fadd,
            _ => return,
        };
        let scalar = ty.elem.scalar().expect("the pool of types has numbers");
        let (buffer, site) = self.site(scalar, ty.shape.elements() as i64);
        let index = self.distinct(ty.shape);
        let pointers = self.site_pointers(buffer, site, index);
        let change = self.value(ty);
        let mask = self.mask(ty.shape);
        self.order_rounds();
        let old = self.b.load(pointers, mask, None);
        let new = self.one(op, &[old, change], &[], &[]);
        self.b.store(pointers, new, mask);
        self.values.push(old);
    }

    /// Loads what an earlier store may have written.
    pub(super) fn load_stored(&mut self) {
        let sites: Vec<(usize, Site)> = self
            .outputs
            .iter()
            .enumerate()
            .flat_map(|(i, o)| o.sites.iter().map(move |&s| (i, s)))
            .filter(|(_, s)| s.count.count_ones() == 1)
            .collect();
        if sites.is_empty() {
            return;
        }
        let (buffer, site) = self.random.pick(&sites);
        let shape = self.shape();
        let index = self.index(shape, site.count);
        let index = match self.b.ty(index).elem {
            Elem::I32 => index,
            _ => self.b.itrunc(index, TileType::block(Elem::I32, shape)),
        };
        let pointers = self.site_pointers(buffer, site, index);
        self.b.barrier();
        let value = self.b.load(pointers, None, None);
        // A later store to the site stands in the same loop, behind a barrier.
        self.values.push(value);
    }

    /// A pointer from others: moved, chosen, or taken through another type.
    pub(super) fn new_pointer(&mut self) {
        if self.pointers.is_empty() {
            return;
        }
        let from = self.pointers[self.random.below(self.pointers.len())];
        let ty = self.b.ty(from.value);
        let shape = ty.shape;
        let scalar = ty.elem.pointee().expect("the pool holds pointers");
        let room = from.len - from.last;
        let pointer = match self.random.below(4) {
            0 if room > 1 => {
                let limit = 1 << self.random.below(room.ilog2() as usize + 1);
                let index = self.index(shape, limit);
                Pointer {
                    value: self.b.addptr(from.value, index),
                    last: from.last + limit - 1,
                    len: from.len,
                }
            }
            1 => {
                let address = self.b.ptr_cast(from.value, ty.with_elem(Elem::I64));
                let step = self.random.between(0, room - 1);
                let bytes = self.int_like(step * i64::from(scalar.bytes()), address);
                let moved = self.b.iadd(address, bytes);
                let to = self.same_size(scalar);
                Pointer {
                    value: self.b.ptr_cast(moved, ty.with_elem(Elem::global(to))),
                    last: from.last + step,
                    len: from.len,
                }
            }
            2 => {
                let same = self.pointers_like(ty);
                let other = self.random.pick(&same);
                let cond = self.value(ty.with_elem(Elem::I1));
                Pointer {
                    value: self.b.select(cond, from.value, other.value),
                    last: from.last.max(other.last),
                    len: from.len.min(other.len),
                }
            }
            _ => {
                let to = self.same_size(scalar);
                if to == scalar {
                    return;
                }
                Pointer {
                    value: self.b.ptr_cast(from.value, ty.with_elem(Elem::global(to))),
                    ..from
                }
            }
        };
        if pointer.last < pointer.len {
            self.pointers.push(pointer);
        }
    }

    fn same_size(&mut self, scalar: Scalar) -> Scalar {
        let same: Vec<Scalar> = Scalar::ALL
            .into_iter()
            .filter(|s| s.bytes() == scalar.bytes())
            .collect();
        self.random.pick(&same)
    }
}
