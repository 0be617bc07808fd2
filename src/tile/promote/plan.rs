//! The tensor map of one access.

mod across;
mod room;
mod told;

use self::told::without_sign;
use super::refusal::{Refusal, Refused};
use super::used::{Used, is_volatile};
use super::words;
use crate::analysis::affine::host::{Host, Hosts, Le, Node};
use crate::analysis::affine::reach::{Reach, extend};
use crate::analysis::affine::{AffineForm, Atom, Forms, Monomial, Poly};
use crate::analysis::axis::{Axis, Exponent};
use crate::analysis::demand::{Bound, Demand};
use crate::analysis::program::ProgramOrder;
use crate::ir::attrs::Attrs;
use crate::ir::dfg::ValueDef;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::map_recipe::MAX_RANK;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, Scalar, TileType};
use crate::linear_layout::shape::Shape;

/// Bytes at a multiple of which the copy engine reads.
const ALIGN: u32 = 16;
/// Largest extent of a box.
const MAX_BOX: u64 = 256;
/// Bytes of a block from which on a box is worth its barrier.
pub(super) const MIN_BYTES: u32 = 2048;
/// Bytes from which on a box is worth its instruction, where others arrive on the same barrier. The copy engine writes to multiples of as
/// many, so that entries of smaller boxes would not stand beside each other.
const MIN_BESIDE: u32 = 128;
/// Most numbers that those of a map are made of; [`crate::ir::map_recipe::HostNumbers`] takes more.
const MAX_NUMBERS: usize = 240;
/// An extent that no index of 32 bits reaches.
pub(super) const ANY: i64 = i32::MAX as i64;

/// A dimension of a map.
#[derive(Clone, Debug)]
pub(super) struct Dim {
    /// Elements from one index to the next.
    pub(super) stride: Host,
    pub(super) extent: Host,
    /// Extent of the box.
    pub(super) tile: u32,
    /// Where the box starts.
    pub(super) start: Poly,
    /// The block's dimension, of those that are one.
    pub(super) of: Option<usize>,
    /// Where the last box starts along a dimension that nothing bounds.
    pub(super) last: Option<Host>,
}

/// How a load or store becomes one of a tensor map.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) access: Inst,
    /// A parameter.
    pub(super) base: Value,
    /// Elements from there to the first of the tensor.
    pub(super) offset: Host,
    /// The outermost first.
    pub(super) dims: Vec<Dim>,
    pub(super) conds: Vec<Le>,
    /// Whether a start may be any number, as the mask holds back what is not in the tensor on either side.
    pub(super) starts_anywhere: bool,
}

/// What all accesses are judged by.
pub(super) struct Facts<'a> {
    pub(super) func: &'a TileFunction,
    pub(super) axis: &'a Axis,
    pub(super) demand: &'a Demand,
    pub(super) used: &'a Used,
    pub(super) order: &'a ProgramOrder,
    /// Sums with memory that the engine can do.
    pub(super) added: &'a [Inst],
}

/// An index that elements are accessed below of: `less - than`, with the index of one dimension.
struct Upper {
    dim: u8,
    /// The left side less the right one.
    past: Poly,
}

/// The judgement of one access.
struct Planner<'a, 'f> {
    facts: &'a Facts<'f>,
    access: Inst,
    /// Of what is read or written.
    ty: TileType,
    mask: Option<Value>,
    is_store: bool,
    /// Of an element.
    bytes: u32,
    form: AffineForm,
    reach: Reach<'a, 'f>,
    conds: Vec<Le>,
    starts_anywhere: bool,
    /// Numbers that must not have wrapped.
    exact: Vec<Value>,
    upper: Vec<Upper>,
    /// Indices that the mask says are not negative, less a number.
    lower: Vec<(u8, Poly)>,
    /// What the mask says of numbers without an index: that these are negative, and what is told where that bounds nothing.
    across: Vec<(Poly, Refused)>,
    /// What indices start from that are taken not to be negative, as their remainders are taken.
    sound: Vec<Poly>,
}

/// The map of a load or store.
pub(super) fn plan<'f>(
    facts: &Facts<'f>,
    forms: &mut Forms<'f>,
    hosts: &mut Hosts,
    access: Inst,
) -> Result<Plan, Refused> {
    let func = facts.func;
    let data = &func.dfg.insts[access];
    let is_store = data.op != TileOp::Load;
    let (block, mask) = match is_store {
        true => (data.args[1], data.args.get(2)),
        false => (data.results[0], data.args.get(1)),
    };
    let ty = func.dfg.ty(block);
    if is_volatile(func, access) {
        return Err(Refusal::Volatile.into());
    }
    let least = if is_store { MIN_BYTES } else { MIN_BESIDE };
    if ty.bytes() < least {
        return Err(Refusal::Small.into());
    }
    if ty.elem.bits() < 8 || ty.elem == Elem::Num(Scalar::I1) {
        return Err(Refusal::Elements.of(format!("they are {}", ty.elem)));
    }
    let fill = data.args.get(2).filter(|_| !is_store);
    if fill.is_some_and(|&fill| !is_zero(func, fill)) {
        return Err(Refusal::Fill.into());
    }
    let form = forms.form(data.args[0]).ok_or_else(|| {
        let unsigned = words::unsigned_in(func, data.args[0]);
        Refusal::Addresses.of(unsigned.map_or_else(String::new, |it| without_sign(&it)))
    })?;
    // Sums of 64 bits go around as addresses do, those of the engine among them.
    let is_narrow = |&value: &Value| func.dfg.ty(value).elem != Elem::I64;
    let reach = Reach::new(forms, facts.axis, hosts);
    let planner = Planner {
        facts,
        access,
        ty,
        mask: mask.copied(),
        is_store,
        bytes: ty.elem.bytes(),
        exact: form.exact.iter().copied().filter(is_narrow).collect(),
        form: (*form).clone(),
        reach,
        conds: Vec::new(),
        starts_anywhere: false,
        upper: Vec::new(),
        lower: Vec::new(),
        across: Vec::new(),
        sound: Vec::new(),
    };
    planner.plan()
}

impl Planner<'_, '_> {
    fn plan(mut self) -> Result<Plan, Refused> {
        let base = self.base()?;
        let used = self.facts.used;
        let (func, order) = (self.facts.func, self.facts.order);
        let comes_first = |&inst: &Inst| order.may_precede(func, inst, self.access);
        if used.acquires.iter().any(comes_first) {
            return Err(Refusal::Acquires.into());
        }
        let refusal = match self.is_store {
            true if used.is_read(base, |read| self.adds_too(read)) => Some(Refusal::Read),
            false if used.is_written(base) => Some(Refusal::Written),
            false if used.may_see_writes(func, order, self.access) => Some(Refusal::Seen),
            _ => None,
        };
        if let Some(refusal) = refusal {
            let name = words::name_of(func, base);
            return Err(refusal.of(name.map_or_else(String::new, |name| format!("it is `{name}`"))));
        }
        let ty = self.ty;
        let wide: Vec<u8> = (0..ty.shape.rank() as u8)
            .filter(|&dim| ty.shape.extent(usize::from(dim)) > 1)
            .collect();
        let bytes = self.bytes;
        if wide
            .iter()
            .any(|&d| ty.shape.extent(usize::from(d)) > MAX_BOX)
        {
            return Err(Refusal::Box.of(self.block()));
        }
        if wide.len() > 2 {
            return Err(Refusal::Rank.of(self.block()));
        }
        let is_unit = |&&dim: &&u8| self.form.poly.stride(dim).number() == Some(1);
        let mut units = wide.iter().filter(is_unit);
        let (Some(&unit), None) = (units.next(), units.next()) else {
            return Err(Refusal::NoUnitStride.of(self.strides(&wide)));
        };
        if ty.shape.extent(usize::from(unit)) * u64::from(bytes) < u64::from(ALIGN) {
            return Err(Refusal::Box.of(self.block()));
        }
        self.mask()?;
        self.clamps()?;

        // What each dimension's index is, of what the address is made of.
        let mut rest = self.form.poly.uniform();
        let mut starts: Vec<(u8, Poly)> = Vec::new();
        for &dim in &wide {
            let past = self.upper.iter().find(|upper| upper.dim == dim);
            if let Some(past) = past.map(|upper| upper.past.uniform()) {
                starts.push((dim, self.share(&mut rest, dim, &past)?));
            }
        }
        let mut free: Vec<u8> = wide.clone();
        free.retain(|dim| starts.iter().all(|(d, _)| d != dim));
        free.sort_by_key(|&dim| std::cmp::Reverse(weight(&self.form.poly.stride(dim))));
        for dim in free {
            let start = self.take(&mut rest, dim, dim == unit)?;
            starts.push((dim, start));
        }
        let mut dims = self.fixed_across(&mut rest)?;
        dims.extend(self.further(&mut rest)?);
        if let Some((_, refused)) = self.across.pop() {
            return Err(refused);
        }
        for &dim in wide.iter().filter(|&&dim| dim != unit).chain([&unit]) {
            let start = starts.iter().find(|(d, _)| *d == dim);
            let start = start.map_or(Poly::default(), |(_, start)| start.clone());
            dims.push(self.dim(dim, start, ty.shape.extent(usize::from(dim)))?);
        }
        if dims.len() > MAX_RANK {
            return Err(Refusal::Rank.of(format!("this one would have {}", dims.len())));
        }
        if self.is_store {
            self.apart(&dims)?;
        }
        for start in [&dims[dims.len() - 1].start, &rest] {
            if !self.is_aligned(start) {
                return Err(Refusal::StartAlignment.of(self.unaligned(start)));
            }
        }
        let offset = self.known(&rest, Refusal::Addresses)?;
        for value in std::mem::take(&mut self.exact) {
            if room::has_room(self.facts.func, value) {
                continue;
            }
            let Some(range) = self.reach.range(value) else {
                let words = words::value(self.facts.func, value);
                return Err(Refusal::Overflow.of(format!("it is `{words}`")));
            };
            extend(&mut self.conds, range.conds);
        }
        let numbers = dims.iter().flat_map(|dim| [dim.extent, dim.stride]);
        if !is_for_launch(self.reach.hosts, numbers.chain([offset]), &self.conds) {
            return Err(Refusal::Launch.into());
        }
        Ok(Plan {
            access: self.access,
            base,
            offset,
            dims,
            conds: self.conds,
            starts_anywhere: self.starts_anywhere,
        })
    }

    /// Whether this is a sum with memory and the other access is one, too: sums have no order, and nobody sees what was there.
    fn adds_too(&self, other: Inst) -> bool {
        let insts = &self.facts.func.dfg.insts;
        let rmw = insts[self.access].rmw();
        let is_sum = self.facts.added.contains(&other);
        rmw.is_some() && is_sum && insts[other].rmw() == rmw
    }

    /// The parameter that addresses start from.
    fn base(&self) -> Result<Value, Refused> {
        let func = self.facts.func;
        let mut base = self.form.base.ok_or(Refusal::Base)?;
        let axis = self.facts.axis;
        let is_aligned = axis.at_least(&axis.info(base).dim(0).divisibility, 4);
        loop {
            match func.dfg.values[base].def {
                ValueDef::Param(block, _) if block == func.entry => break,
                ValueDef::Param(..) => return Err(Refusal::Base.into()),
                ValueDef::Result(inst, _) => match func.dfg.insts[inst].op {
                    TileOp::AssumeMultiple | TileOp::AssumeContiguous | TileOp::AssumeConstant => {
                        base = func.dfg.insts[inst].args[0];
                    }
                    _ => {
                        let words = words::value(func, base);
                        return Err(Refusal::Base.of(format!("they start from `{words}`")));
                    }
                },
            }
        }
        is_aligned.then_some(base).ok_or_else(|| {
            let Some(name) = words::name_of(func, base) else {
                return Refusal::BaseAlignment.into();
            };
            Refusal::BaseAlignment.of(format!(
                "it is `{name}`; with `:16` behind its type in the signature it would be promised"
            ))
        })
    }

    /// A number that the host knows.
    fn known(&mut self, poly: &Poly, refusal: Refusal) -> Result<Host, Refused> {
        let Some(range) = self.reach.known(poly) else {
            return Err(refusal.of(self.sum(poly)));
        };
        extend(&mut self.conds, range.conds);
        Ok(range.lo)
    }

    fn require(&mut self, a: Host, b: Host, refusal: Refusal) -> Result<(), Refused> {
        let cond = self
            .reach
            .hosts
            .le(a, b)
            .ok_or_else(|| refusal.of(self.never(a, b)))?;
        extend(&mut self.conds, cond);
        Ok(())
    }

    /// Whether a product is the same in all programs and iterations, and known at launch.
    fn is_host(&mut self, monomial: &Monomial) -> bool {
        monomial.atoms().iter().all(|&atom| self.is_host_atom(atom))
    }

    fn is_host_atom(&mut self, atom: Atom) -> bool {
        match atom {
            Atom::Trip(_) => false,
            Atom::Value(value) => {
                let range = self.reach.range(value);
                range.is_some_and(|range| range.point().is_some())
            }
        }
    }

    /// What the mask says of the indices.
    fn mask(&mut self) -> Result<(), Refused> {
        let Some(mask) = self.mask else {
            return Ok(());
        };
        let conjunction = self.reach.forms.conjunction(mask);
        if !conjunction.is_all {
            let func = self.facts.func;
            let unsigned = words::unsigned_in(func, mask);
            let detail = match unsigned {
                Some(unsigned) => without_sign(&unsigned),
                None => format!(
                    "it has `{}`",
                    words::value(func, words::no_bound_in(func, mask))
                ),
            };
            return Err(Refusal::Mask.of(detail));
        }
        for below in conjunction.below {
            let past = below.less.minus(&below.than).ok_or(Refusal::Mask)?;
            let compared = || {
                let func = self.facts.func;
                let [less, than] = below.sides.map(|side| words::value(func, side));
                Refusal::Mask.of(format!("it compares `{less}` and `{than}`"))
            };
            match past.dims()[..] {
                [] if !self.is_store => self.across.push((past, compared())),
                [dim] => match past.stride(dim).number() {
                    Some(1) => self.upper.push(Upper { dim, past }),
                    // Of whole numbers, 0 <= x is -1 < x.
                    Some(-1) => {
                        let x = past.plus(&Poly::constant(1)).and_then(|p| p.scaled(-1));
                        self.lower.push((dim, x.ok_or(Refusal::Mask)?));
                    }
                    _ => return Err(compared()),
                },
                _ => return Err(compared()),
            }
            self.exact.extend(below.exact);
            self.exact.extend(below.sides);
        }
        Ok(())
    }

    /// Indices that wrap around or are held back at a bound, beyond which nothing matters.
    fn clamps(&mut self) -> Result<(), Refused> {
        if self.is_store && !self.form.clamps.is_empty() {
            return Err(self.wraps(0));
        }
        let Some(&result) = self.facts.func.dfg.insts[self.access].results.first() else {
            return Ok(());
        };
        for (i, clamp) in self.form.clamps.clone().into_iter().enumerate() {
            let [dim] = clamp.x.dims()[..] else {
                return Err(self.wraps(i));
            };
            let bound = Bound::along(dim, &clamp.x, &clamp.bound, clamp.bits);
            let past = clamp.x.minus(&clamp.bound).ok_or(Refusal::Wraps)?;
            let exact = self.facts.demand.below(result, dim, &bound);
            self.exact.extend(exact.ok_or_else(|| self.wraps(i))?);
            if past.stride(dim).number() != Some(1) {
                return Err(self.wraps(i));
            }
            if clamp.wraps {
                if self.facts.axis.info(clamp.value).is_non_negative() {
                    self.sound.push(clamp.x.uniform());
                } else {
                    let Some(range) = self.reach.range(clamp.value) else {
                        let words = words::value(self.facts.func, clamp.value);
                        return Err(Refusal::Start.of(format!("it is `{words}`")));
                    };
                    let zero = self.reach.hosts.number(0);
                    self.require(zero, range.lo, Refusal::Start)?;
                    extend(&mut self.conds, range.conds);
                }
            } else {
                self.exact.push(clamp.value);
            }
            self.upper.push(Upper { dim, past });
        }
        Ok(())
    }

    /// The start along a dimension with a bound: what differs there by program or iteration must be in the address as well, or
    /// the bound would differ; what does not is taken where it is.
    fn share(&mut self, rest: &mut Poly, dim: u8, past: &Poly) -> Result<Poly, Refused> {
        let stride = self.form.poly.stride(dim);
        let mut start = Poly::default();
        for (monomial, c) in past.terms() {
            let term = Poly::term(monomial.clone(), c);
            let taken = term.times(&stride).ok_or(Refusal::Bound)?;
            let left = rest.minus(&taken).ok_or(Refusal::Bound)?;
            let is_there = left.terms().count() + taken.terms().count() == rest.terms().count();
            match is_there {
                true => {
                    *rest = left;
                    start = start.plus(&term).ok_or(Refusal::Bound)?;
                }
                false if self.is_host(monomial) => {}
                false => {
                    let part = words::sum(self.facts.func, &Poly::term(monomial.clone(), 1));
                    return Err(Refusal::Bound.of(format!("it is made of `{part}`")));
                }
            }
        }
        Ok(start)
    }

    /// The start along a dimension without bounds: what the address has of its stride.
    fn take(&mut self, rest: &mut Poly, dim: u8, is_unit: bool) -> Result<Poly, Refused> {
        let stride = self.form.poly.stride(dim);
        let mut start = Poly::default();
        let mut left = rest.filter(|m| match is_unit {
            // What has a stride of its own is a dimension of its own, and what all programs skip is skipped by the base.
            true => !m.atoms().is_empty() && !m.atoms().iter().any(|&a| self.is_host_atom(a)),
            false => true,
        });
        while let Some((quotient, next)) = left.divide_once(&stride) {
            let taken = quotient.times(&stride).and_then(|taken| rest.minus(&taken));
            *rest = taken.ok_or(Refusal::Addresses)?;
            start = start.plus(&quotient).ok_or(Refusal::Addresses)?;
            left = next;
        }
        Ok(start)
    }

    /// Dimensions of their own for what differs by program or iteration and has a stride of none of the block's.
    fn further(&mut self, rest: &mut Poly) -> Result<Vec<Dim>, Refused> {
        let mut found: Vec<(Poly, Poly)> = Vec::new();
        let terms: Vec<(Monomial, i64)> = rest.terms().map(|(m, c)| (m.clone(), c)).collect();
        for (monomial, c) in terms {
            let atoms = monomial.atoms().iter().copied();
            let (known, own): (Vec<Atom>, Vec<Atom>) =
                atoms.partition(|&atom| self.is_host_atom(atom));
            if own.is_empty() {
                continue;
            }
            let size = c.checked_abs().ok_or(Refusal::Stride)?;
            let stride = Poly::term(Monomial::new(known, None), size);
            let start = Poly::term(Monomial::new(own, None), c.signum());
            let taken = Poly::term(monomial, c);
            *rest = rest.minus(&taken).ok_or(Refusal::Addresses)?;
            match found.iter_mut().find(|(known, _)| *known == stride) {
                Some((_, sum)) => *sum = sum.plus(&start).ok_or(Refusal::Addresses)?,
                None => found.push((stride, start)),
            }
        }
        let mut dims = Vec::new();
        for (stride, start) in found {
            let stride = self.outer_stride(&stride)?;
            let (extent, last) = match self.bound_across(&start)? {
                Some(extent) => (extent, None),
                None => self.unbounded(&start, 1)?,
            };
            dims.push(Dim {
                stride,
                extent,
                tile: 1,
                start,
                of: None,
                last,
            });
        }
        Ok(dims)
    }

    /// The engine stores 16 bytes at a time, beyond the end of a row if that is no multiple (seen on an H100). Where nothing bounds
    /// an index, no box reaches the end.
    fn whole_pieces(&mut self, extent: Host) -> Result<(), Refused> {
        let hosts = &mut self.reach.hosts;
        let piece = hosts.number(i64::from(ALIGN / self.bytes));
        let pieces = hosts.div(extent, piece);
        let whole = hosts.mul(pieces, piece);
        self.require(extent, whole, Refusal::Pieces)
            .map_err(|refused| {
                let constant = self.reach.hosts.constant(extent);
                let bytes = constant.map(|extent| extent.saturating_mul(self.bytes.into()));
                match bytes {
                    Some(bytes) => refused.refusal.of(format!("they have {bytes} bytes")),
                    None => refused,
                }
            })
    }

    /// A dimension of the block.
    fn dim(&mut self, dim: u8, start: Poly, tile: u64) -> Result<Dim, Refused> {
        let stride = self.form.poly.stride(dim);
        if stride.is_zero() {
            return Err(Refusal::StrideSign
                .of("the address is the same along a dimension of the block".to_owned()));
        }
        let stride = match stride.number() {
            Some(1) => self.reach.hosts.number(1),
            _ => self.outer_stride(&stride)?,
        };
        let index = start.plus(&Poly::index(dim)).ok_or(Refusal::Addresses)?;
        let mut extent = None;
        let mut is_whole = true;
        for upper in std::mem::take(&mut self.upper) {
            if upper.dim == dim {
                let bound = index.minus(&upper.past).ok_or(Refusal::Bound)?;
                is_whole &= self.is_aligned(&bound);
                let bound = self.known(&bound, Refusal::Bound)?;
                extent = Some(match extent {
                    None => bound,
                    Some(other) => self.reach.hosts.min(other, bound),
                });
            } else {
                self.upper.push(upper);
            }
        }
        let mut is_checked = false;
        for (_, x) in self.lower.iter().filter(|(d, _)| *d == dim) {
            // The mask says that the index is not below this number.
            let least = index.minus(x).and_then(|least| least.number());
            match least.ok_or(Refusal::LowerBound)? {
                0 => is_checked = true,
                least if least > 0 => {
                    let detail = format!("indices along dimension {dim} begin at {least}");
                    return Err(Refusal::LowerBound.of(detail));
                }
                _ => {}
            }
        }
        let (extent, last) = match extent {
            None if is_checked => {
                let detail =
                    format!("dimension {dim} of the block has a lower bound and no upper one");
                return Err(Refusal::LowerBound.of(detail));
            }
            None => self.unbounded(&start, tile)?,
            Some(extent) => {
                let one = self.reach.hosts.number(1);
                self.require(one, extent, Refusal::Bound)?;
                // A box may start anywhere where the mask holds back what is in front of the tensor.
                let is_anywhere = is_checked && !self.is_store && self.is_number(&start);
                self.starts_anywhere |= is_anywhere;
                if !is_anywhere && !self.sound.contains(&start) {
                    // What is stored must not start in front of the tensor, or the engine refuses it.
                    let least = match is_checked && !self.is_store {
                        true => i64::from(i32::MIN),
                        false => 0,
                    };
                    self.within(&start, least, ANY)?;
                }
                self.reach.limit(&index, extent);
                (extent, None)
            }
        };
        if self.is_store && !is_whole && self.reach.hosts.constant(stride) == Some(1) {
            self.whole_pieces(extent)?;
        }
        Ok(Dim {
            stride,
            extent,
            tile: tile as u32,
            start,
            of: Some(usize::from(dim)),
            last,
        })
    }

    /// Whether a sum is a number of 32 bits that the kernel has.
    fn is_number(&self, sum: &Poly) -> bool {
        let mut atoms = sum.atoms();
        matches!((atoms.next(), atoms.next()), (Some(Atom::Value(value)), None)
            if *sum == Poly::atom(Atom::Value(value))
                && self.facts.func.dfg.ty(value) == TileType::scalar(Elem::I32))
    }

    /// Requires rows of a box, up to where they end, not to overlap: whose element would be the last to be written there?
    fn apart(&mut self, dims: &[Dim]) -> Result<(), Refused> {
        let Some((unit, outer)) = dims.split_last() else {
            return Ok(());
        };
        let row = self.reach.hosts.number(i64::from(unit.tile));
        let row = self.reach.hosts.min(row, unit.extent);
        for dim in outer.iter().filter(|dim| dim.tile > 1) {
            self.require(row, dim.stride, Refusal::StrideSign)?;
        }
        Ok(())
    }

    /// Requires an index to stay in bounds; the largest it can be.
    fn within(&mut self, start: &Poly, least: i64, most: i64) -> Result<Host, Refused> {
        let Some(range) = self.reach.sum(start, Shape::SCALAR) else {
            return Err(Refusal::Start.of(self.sum(start)));
        };
        let (least, most) = (
            self.reach.hosts.number(least),
            self.reach.hosts.number(most),
        );
        self.require(least, range.lo, Refusal::Start)?;
        self.require(range.hi, most, Refusal::Start)?;
        extend(&mut self.conds, range.conds);
        Ok(range.hi)
    }

    /// An extent that covers all boxes along a dimension without bound, as what is read is read whole, and where the last box starts if not
    /// all start at one number.
    fn unbounded(&mut self, start: &Poly, tile: u64) -> Result<(Host, Option<Host>), Refused> {
        if let Some(start) = start.number() {
            let end = start.checked_add(tile as i64).filter(|&end| end <= ANY);
            let end = end.filter(|_| start >= 0).ok_or(Refusal::Start)?;
            return Ok((self.reach.hosts.number(end), None));
        }
        let last = self.within(start, 0, ANY - tile as i64)?;
        Ok((self.reach.hosts.number(ANY), Some(last)))
    }

    /// Requires what the copy engine does of a stride that is not 1.
    fn outer_stride(&mut self, stride: &Poly) -> Result<Host, Refused> {
        let known = self.known(stride, Refusal::Stride)?;
        let one = self.reach.hosts.number(1);
        self.require(one, known, Refusal::StrideSign)?;
        if !self.is_aligned(stride) {
            return Err(Refusal::StrideAlignment.of(self.unaligned(stride)));
        }
        Ok(known)
    }

    /// Whether so many elements are a multiple of 16 bytes, whatever they are made of.
    fn is_aligned(&mut self, elements: &Poly) -> bool {
        let needed = (ALIGN / self.bytes.min(ALIGN)).trailing_zeros() as u8;
        if self.facts.axis.at_least(&self.divisor(elements), needed) {
            return true;
        }
        // What the author promised of a part of it.
        let promises = self.reach.forms.promises();
        let mut rests = promises
            .filter(|&(_, log2)| needed <= log2)
            .filter_map(|(promised, _)| elements.minus(promised));
        rests.any(|rest| self.facts.axis.at_least(&self.divisor(&rest), needed))
    }

    /// Exponent of a power of two that divides a number.
    fn divisor(&self, poly: &Poly) -> Exponent {
        let of_value = |value: Value| self.facts.axis.info(value).dim(0).divisibility;
        let of_atom = |&atom: &Atom| match atom {
            Atom::Trip(_) => Exponent::default(),
            Atom::Value(value) => {
                let promised = self.reach.forms.promised(&Poly::atom(atom));
                of_value(value).max(&Exponent::constant(promised))
            }
        };
        let of_term = |(monomial, c): (&Monomial, i64)| {
            let atoms = monomial.atoms().iter().map(of_atom);
            let first = Exponent::constant(c.trailing_zeros() as u8);
            atoms.fold(first, |product, atom| product.plus(&atom))
        };
        let terms = poly.terms().map(of_term).reduce(|a, b| a.min(&b));
        let by_terms = terms.unwrap_or(Exponent::constant(u8::MAX));
        let known = self.reach.forms.known(poly).iter();
        known.fold(by_terms, |most, &value| most.max(&of_value(value)))
    }
}

/// Whether a map's numbers and conditions are few enough to be computed at each launch.
pub(super) fn is_for_launch(
    hosts: &Hosts,
    numbers: impl Iterator<Item = Host>,
    conds: &[Le],
) -> bool {
    let needed = needed(hosts, conds);
    let compared = needed.iter().flat_map(|&(a, b)| [a, b]);
    hosts.count(numbers.chain(compared)) + 2 * needed.len() <= MAX_NUMBERS
}

/// Conditions but those of which another one says more of the same number.
pub(super) fn needed(hosts: &Hosts, conds: &[Le]) -> Vec<Le> {
    let number = |host: Host| hosts.constant(host);
    // Of numbers that were made larger, those that they were made of stay below the same bound.
    let grows_from = |mut at: Host, from: Host| {
        while at != from {
            at = match hosts.node(at) {
                Node::Add(x, c) if number(c) >= Some(0) => x,
                Node::Mul(x, c) if number(c) >= Some(1) => x,
                _ => return false,
            };
        }
        true
    };
    // Of the smaller of two numbers those above a bound are both.
    let is_smaller_of = |at: Host, from: Host, bound: i64| match hosts.node(at) {
        Node::Min(x, c) => x == from && number(c) >= Some(bound),
        _ => false,
    };
    let is_implied = |&(a, b): &Le| {
        let others = conds.iter().filter(|&&other| other != (a, b));
        others.copied().any(
            |(x, y)| match (number(a), number(x), number(b), number(y)) {
                (Some(a), Some(x), ..) if y == b => a < x,
                (Some(a), Some(x), ..) => a <= x && is_smaller_of(b, y, a),
                (_, _, Some(b), Some(y)) if x == a => y < b,
                (_, _, Some(b), Some(y)) => 0 <= b && y <= b && grows_from(x, a),
                _ => false,
            },
        )
    };
    let needed = conds.iter().filter(|cond| !is_implied(cond));
    needed.copied().collect()
}

/// Strides of more factors first, then the larger ones.
fn weight(stride: &Poly) -> (usize, usize, u64) {
    let lead = stride.terms().last();
    let factors = lead.map_or(0, |(m, _)| m.atoms().len());
    let size = lead.map_or(0, |(_, c)| c.unsigned_abs());
    (stride.terms().count(), factors, size)
}

/// Whether every element of a block is zero.
fn is_zero(func: &TileFunction, mut value: Value) -> bool {
    while let Some(inst) = func.dfg.def_inst(value) {
        let data = &func.dfg.insts[inst];
        match data.op {
            TileOp::Const => return data.value() == Some(&0),
            TileOp::Splat | TileOp::Broadcast => value = data.args[0],
            _ => return false,
        }
    }
    false
}
