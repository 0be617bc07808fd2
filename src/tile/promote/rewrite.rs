//! Maps, coordinates and accesses by them in the place of those by pointers.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::maps;
use super::plan::{Plan, needed};
use crate::analysis::affine::host::{Host, Hosts, Le, Node};
use crate::analysis::affine::{Atom, Forms, Monomial, Poly};
use crate::ir::attrs::{Attrs, IntPred, RmwOp, make};
use crate::ir::dfg::ValueDef;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::maker::Maker;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};
use crate::linear_layout::shape::Shape;
use crate::tile::edit::rename_uses;

/// What stands in front of an access: the number that a coordinate is, from values that are there.
#[derive(Debug)]
pub(super) enum CoordinateExpr {
    /// A value that is there.
    Known(Value),
    /// A constant.
    Const(i64),
    /// The lower 32 bits.
    Narrow(Box<CoordinateExpr>),
    /// Two numbers combined.
    Op(TileOp, Box<[CoordinateExpr; 2]>),
}

fn op(op: TileOp, a: CoordinateExpr, b: CoordinateExpr) -> CoordinateExpr {
    CoordinateExpr::Op(op, Box::new([a, b]))
}

/// The number that a sum is, of what is known where an access stands, modulo 2^32; none if something is not.
pub(super) fn number(forms: &mut Forms<'_>, access: Inst, poly: &Poly) -> Option<CoordinateExpr> {
    let is_there = |value: &Value| dominates(forms, *value, access);
    if let Some(&value) = forms.known(poly).iter().find(|value| is_there(value)) {
        return Some(CoordinateExpr::Known(value));
    }
    if let Some(number) = poly.number() {
        return Some(CoordinateExpr::Const(number));
    }
    // What stays the same in loops is told apart from what does not, and numbers from the rest, so that both may be known.
    let moves = |m: &Monomial| m.atoms().iter().any(|atom| matches!(atom, Atom::Trip(_)));
    let parts = [
        poly.filter(moves),
        poly.filter(|m| !moves(m) && !m.atoms().is_empty()),
        poly.filter(|m| m.atoms().is_empty()),
    ];
    let parts: Vec<Poly> = parts.into_iter().filter(|part| !part.is_zero()).collect();
    let terms: Vec<Poly> = match parts.len() {
        1 => poly
            .terms()
            .map(|(m, c)| Poly::term(m.clone(), c))
            .collect(),
        _ => parts,
    };
    if let [_] = terms[..] {
        let (monomial, c) = poly.terms().next()?;
        return product(forms, access, monomial, c);
    }
    let mut sum = None;
    for term in terms {
        let term = number(forms, access, &term)?;
        sum = Some(match sum {
            None => term,
            Some(sum) => op(TileOp::Iadd, sum, term),
        });
    }
    sum
}

fn product(
    forms: &mut Forms<'_>,
    access: Inst,
    monomial: &Monomial,
    mut c: i64,
) -> Option<CoordinateExpr> {
    let mut out = None;
    for &atom in monomial.atoms() {
        let factor = match atom {
            Atom::Value(value) if !dominates(forms, value, access) => return None,
            Atom::Value(value) => narrow(forms, value),
            Atom::Trip(inst) => {
                let (trip, by) = trip(forms, inst, c)?;
                c /= by;
                trip
            }
        };
        out = Some(match out {
            None => factor,
            Some(out) => op(TileOp::Imul, out, factor),
        });
    }
    Some(match out? {
        out if c == 1 => out,
        out => op(TileOp::Imul, out, CoordinateExpr::Const(c)),
    })
}

fn narrow(forms: &Forms<'_>, value: Value) -> CoordinateExpr {
    let known = CoordinateExpr::Known(value);
    match forms.func.dfg.ty(value).elem {
        Elem::I64 => CoordinateExpr::Narrow(Box::new(known)),
        _ => known,
    }
}

/// Iterations that are over, times a number that divides `c`.
fn trip(forms: &mut Forms<'_>, inst: Inst, c: i64) -> Option<(CoordinateExpr, i64)> {
    let data = &forms.func.dfg.insts[inst];
    let counter = forms.func.dfg.blocks[data.blocks[0].block].params[0];
    let (lo, step) = (data.args[0], data.args[2]);
    let lo_is = forms.form(lo)?.poly.number();
    let step = forms.form(step)?.poly.number()?;
    if step < 1 || c % step != 0 {
        return None;
    }
    let (counter, lo) = (narrow(forms, counter), narrow(forms, lo));
    let since = match lo_is {
        Some(0) => counter,
        _ => op(TileOp::Isub, counter, lo),
    };
    Some((since, step))
}

/// Whether a value is known where an instruction stands.
fn dominates(forms: &Forms<'_>, value: Value, inst: Inst) -> bool {
    let func = forms.func;
    let Some(home) = forms.home(value) else {
        return false;
    };
    // The instruction in the value's block that this one is, or is inside of.
    let mut at = inst;
    loop {
        match func.order.block_of(at) {
            Some(block) if block == home => break,
            Some(block) => match forms.order.owner(block) {
                Some(owner) => at = owner,
                None => return false,
            },
            None => return false,
        }
    }
    match func.dfg.values[value].def {
        ValueDef::Param(..) => true,
        ValueDef::Result(def, _) => {
            let insts = func.order.insts(home);
            let place = |inst: Inst| insts.iter().position(|&i| i == inst);
            place(def) < place(at)
        }
    }
}

/// An access and where its box starts.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) plan: Plan,
    pub(super) starts: Vec<CoordinateExpr>,
}

/// Makes the accesses ones of tensor maps.
pub(super) fn build(func: &mut TileFunction, hosts: &mut Hosts, planned: &[Planned]) {
    let (shared, places) = maps::share(hosts, planned);
    let entry = func.entry;
    let mut writer = Writer {
        maker: Maker::new(func),
        hosts,
        values: FxHashMap::default(),
        conds: FxHashMap::default(),
    };
    let maps: Vec<Value> = shared.iter().map(|map| writer.map(map)).collect();
    writer.maker.put(entry, 0);
    for (Planned { plan, starts }, place) in planned.iter().zip(places) {
        writer.access(plan, starts, maps[place.map], place.later);
    }
}

/// Writes accesses, and what the host computes for them.
struct Writer<'a> {
    maker: Maker<'a, Tile>,
    hosts: &'a mut Hosts,
    values: FxHashMap<Host, Value>,
    conds: FxHashMap<Le, Value>,
}

impl Writer<'_> {
    fn op(&mut self, op: TileOp, args: &[Value], elem: Elem) -> Value {
        self.maker.value(op, args, &[], TileType::scalar(elem))
    }

    fn constant(&mut self, number: i64, elem: Elem) -> Value {
        self.maker.number(number, TileType::scalar(elem))
    }

    /// A number of the host, as i64.
    fn host(&mut self, host: Host) -> Value {
        if let Some(&known) = self.values.get(&host) {
            return known;
        }
        let (op, a, b) = match self.hosts.node(host) {
            Node::Const(number) => {
                let value = self.constant(number, Elem::I64);
                self.values.insert(host, value);
                return value;
            }
            Node::Param(_) | Node::Unsigned(_) | Node::Programs(_) => {
                let value = self.leaf(host);
                self.values.insert(host, value);
                return value;
            }
            Node::Add(a, b) => (TileOp::Iadd, a, b),
            Node::Sub(a, b) => (TileOp::Isub, a, b),
            Node::Mul(a, b) => (TileOp::Imul, a, b),
            Node::Div(a, b) => (TileOp::Sdiv, a, b),
            Node::Min(a, b) => (TileOp::Smin, a, b),
            Node::Max(a, b) => (TileOp::Smax, a, b),
        };
        let args = [self.host(a), self.host(b)];
        let value = self.op(op, &args, Elem::I64);
        self.values.insert(host, value);
        value
    }

    fn leaf(&mut self, host: Host) -> Value {
        let narrow = match self.hosts.node(host) {
            Node::Param(value) => value,
            Node::Unsigned(value) => return self.op(TileOp::Zext, &[value], Elem::I64),
            Node::Programs(axis) => {
                let ty = TileType::scalar(Elem::I32);
                self.maker
                    .value(TileOp::NumPrograms, &[], &[make::axis(axis)], ty)
            }
            _ => return self.constant(0, Elem::I64),
        };
        match self.maker.func.dfg.ty(narrow).elem {
            Elem::I64 => narrow,
            _ => self.op(TileOp::Sext, &[narrow], Elem::I64),
        }
    }

    fn cond(&mut self, conds: &[Le]) -> Value {
        let needed = needed(self.hosts, conds);
        let mut all: VecDeque<Value> = needed.into_iter().map(|le| self.holds(le)).collect();
        // As a tree, which is not deep.
        while all.len() > 1
            && let (Some(a), Some(b)) = (all.pop_front(), all.pop_front())
        {
            let both = self.op(TileOp::And, &[a, b], Elem::I1);
            all.push_back(both);
        }
        let all = all.pop_front();
        all.unwrap_or_else(|| self.constant(1, Elem::I1))
    }

    fn holds(&mut self, (a, b): Le) -> Value {
        if let Some(&known) = self.conds.get(&(a, b)) {
            return known;
        }
        let args = [self.host(a), self.host(b)];
        let holds = self.maker.compare(IntPred::Sle, args[0], args[1]);
        self.conds.insert((a, b), holds);
        holds
    }

    fn map(&mut self, map: &maps::Shared) -> Value {
        let (base, offset, dims) = &map.key;
        let elem = self.maker.func.dfg.ty(*base).elem;
        let Some(scalar) = elem.pointee() else {
            return *base;
        };
        let mut start = *base;
        if self.hosts.constant(*offset) != Some(0) {
            let offset = self.host(*offset);
            start = self.op(TileOp::Addptr, &[start, offset], elem);
        }
        let cond = self.cond(&map.conds);
        let mut args = vec![start, cond];
        args.extend(dims.iter().map(|&(extent, ..)| self.host(extent)));
        let outer = &dims[..dims.len() - 1];
        args.extend(outer.iter().map(|&(_, stride, _)| self.host(stride)));
        let tile = make::values(dims.iter().map(|&(.., tile)| tile).collect());
        let ty = TileType::scalar(Elem::Map(scalar));
        self.maker.value(TileOp::TensorMap, &args, &[tile], ty)
    }

    fn number(&mut self, number: &CoordinateExpr) -> Value {
        match number {
            CoordinateExpr::Known(value) => *value,
            CoordinateExpr::Const(number) => self.constant(*number, Elem::I32),
            CoordinateExpr::Narrow(inner) => {
                let inner = self.number(inner);
                self.op(TileOp::Itrunc, &[inner], Elem::I32)
            }
            CoordinateExpr::Op(op, parts) => {
                let [a, b] = &**parts;
                let args = [self.number(a), self.number(b)];
                self.op(*op, &args, Elem::I32)
            }
        }
    }

    fn access(
        &mut self,
        plan: &Plan,
        starts: &[CoordinateExpr],
        map: Value,
        later: Option<(usize, i64)>,
    ) {
        let data = &self.maker.func.dfg.insts[plan.access];
        self.maker.loc = data.loc;
        let (is_load, rmw) = (data.op == TileOp::Load, data.rmw().copied());
        let (read, stored) = (data.results.first().copied(), data.args.get(1).copied());
        let mut coords = Vec::new();
        for (i, start) in starts.iter().enumerate() {
            let mut coord = self.number(start);
            if let Some((_, count)) = later.filter(|&(dim, _)| dim == i) {
                let count = self.constant(count, Elem::I32);
                coord = self.op(TileOp::Iadd, &[coord, count], Elem::I32);
            }
            coords.push(coord);
        }
        match (read, stored) {
            (Some(old), _) if is_load => {
                let new = self.load(plan, old, map, &coords);
                rename_uses(self.maker.func, old, new);
            }
            (_, Some(stored)) => self.store(plan, stored, rmw, map, &coords),
            (_, None) => {}
        }
        let order = &self.maker.func.order;
        let Some(block) = order.block_of(plan.access) else {
            self.maker.made.clear();
            return;
        };
        let mut insts = order.insts(block).iter();
        let at = insts.position(|&i| i == plan.access).unwrap_or(0);
        self.maker.put(block, at);
        let order = &mut self.maker.func.order;
        order.retain(block, |inst| inst != plan.access);
    }

    /// A block with its dimensions in another order: dimension `i` is dimension `order[i]` of the old one.
    fn permuted(&mut self, block: Value, order: &[usize]) -> Value {
        if order.is_sorted() {
            return block;
        }
        let ty = self.maker.func.dfg.ty(block);
        let extents: Vec<u64> = order.iter().map(|&dim| ty.shape.extent(dim)).collect();
        let shape = Shape::new(&extents).expect("as many elements as the block has");
        let dims = make::dims(order.iter().map(|&dim| dim as u32).collect());
        let ty = ty.with_shape(shape);
        self.maker.value(TileOp::Permute, &[block], &[dims], ty)
    }

    fn load(&mut self, plan: &Plan, old: Value, map: Value, coords: &[Value]) -> Value {
        let ty = self.maker.func.dfg.ty(old);
        let order = memory_order(plan, ty.shape);
        let extents: Vec<u64> = order.iter().map(|&dim| ty.shape.extent(dim)).collect();
        let with_extents = |extents: &[u64]| {
            let shape = Shape::new(extents).expect("as many elements as the block has");
            ty.with_shape(shape)
        };
        let whole = with_extents(&extents);
        let stands = match wide(&extents) {
            matrix if matrix.len() < 2 => whole,
            matrix => with_extents(&matrix),
        };
        let args = [&[map], coords].concat();
        let mut new = self.maker.value(TileOp::TensorLoad, &args, &[], stands);
        if stands != whole {
            new = self.maker.value(TileOp::Reshape, &[new], &[], whole);
        }
        let place = |dim: usize| order.iter().position(|&d| d == dim).unwrap_or(0);
        let back: Vec<usize> = (0..order.len()).map(place).collect();
        self.permuted(new, &back)
    }

    fn store(
        &mut self,
        plan: &Plan,
        stored: Value,
        rmw: Option<RmwOp>,
        map: Value,
        coords: &[Value],
    ) {
        let ty = self.maker.func.dfg.ty(stored);
        let mut block = self.permuted(stored, &memory_order(plan, ty.shape));
        let extents: Vec<u64> = self.maker.func.dfg.ty(block).shape.extents().collect();
        let wide = wide(&extents);
        if wide.len() < extents.len() {
            let shape = Shape::new(&wide).expect("as many elements as the block has");
            let ty = ty.with_shape(shape);
            block = self.maker.value(TileOp::Reshape, &[block], &[], ty);
        }
        let args = [&[map, block], coords].concat();
        let attrs = rmw.map(make::rmw);
        let attrs = attrs.as_slice();
        self.maker.build(TileOp::TensorStore, &args, attrs, &[]);
    }
}

/// Extents of dimensions that hold more than one element: what stands in memory as a matrix is one.
fn wide(extents: &[u64]) -> Vec<u64> {
    extents.iter().copied().filter(|&e| e != 1).collect()
}

/// The block's dimensions in the order of memory, those of extent 1 in front.
fn memory_order(plan: &Plan, shape: Shape) -> Vec<usize> {
    let narrow = (0..shape.rank()).filter(|&dim| shape.extent(dim) == 1);
    let wide = plan.dims.iter().filter_map(|dim| dim.of);
    narrow.chain(wide).collect()
}
