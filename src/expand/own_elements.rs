//! Updates in place: loads whose elements only the thread that stores them needs, and stores to elements that no other thread reads.
//!
//! ```text
//! x = load p + i          thread t loads and stores element t: nobody has to wait for anybody, and of threads that hold
//! store p + i, f(x)       copies only the one that stores has to load
//! ```
//!
//! A store to what another thread may still have to load waits for all threads ([`crate::thread::insert_barriers`]). In a loop that
//! lets no iteration begin before the one before has ended. It needs no wait if every load from the same parameter has the
//! same elements in the same threads, and meets the store's elements either at the same index or not at all: by their forms
//! ([`crate::analysis::affine`]), which are right modulo 2^32, they are apart by a multiple of a power of two, and a number beside
//! that which is no less than the block is long.

use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

use crate::analysis::affine::{AffineForm, Atom, Forms, Monomial, Poly};
use crate::analysis::program::ProgramOrder;
use crate::ir::attrs::Attrs;
use crate::ir::effects::OpClass;
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::{Opcode, TileOp};
use crate::ir::types::{Elem, TileType};

/// Loads and stores by what other threads have to do with them.
#[derive(Debug, Default)]
pub(super) struct OwnElements {
    /// Loads of which no thread needs an element that it holds a copy of.
    pub(super) loads: EntitySet<Inst>,
    /// Stores to elements that no other thread reads by plain loads of the same pointer.
    pub(super) stores: EntitySet<Inst>,
}

impl OwnElements {
    /// Those of a function whose blocks have layouts; `copies` are the bits of threads that hold the same elements of a type.
    pub(super) fn compute(
        func: &TileFunction,
        copies: impl Fn(TileType) -> Option<u32>,
    ) -> OwnElements {
        let loads = own_loads(func);
        let mut stores = EntitySet::new();
        let order = ProgramOrder::compute(func);
        let mut places = Places {
            forms: Forms::new(func, &order),
            order: &order,
        };
        let mut read: FxHashMap<Value, Vec<Inst>> = FxHashMap::default();
        // What is read in other ways.
        let mut unclear: Vec<Value> = Vec::new();
        for (_, inst) in func.all_insts() {
            let data = &func.dfg.insts[inst];
            let is_no_access = matches!(data.class(), OpClass::Region | OpClass::End);
            if data.is_pure() || is_no_access || data.op == TileOp::Store {
                continue;
            }
            for &arg in &data.args {
                match func.dfg.ty(arg).elem {
                    Elem::Ptr(..) => match places.base(arg) {
                        Some(base) if data.op == TileOp::Load => {
                            read.entry(base).or_default().push(inst);
                        }
                        Some(base) => unclear.push(base),
                        None => return OwnElements { loads, stores },
                    },
                    // What stands behind it is read, or written, whenever the engine comes to it.
                    Elem::Map(_) => return OwnElements { loads, stores },
                    Elem::Num(_) | Elem::Token => {}
                }
            }
        }
        for (_, store) in func.insts_with(TileOp::Store) {
            let Some(base) = places.base(func.dfg.insts[store].args[0]) else {
                continue;
            };
            let is_own = |&load: &Inst| {
                let ty = func.dfg.ty(func.dfg.insts[load].results[0]);
                let is_one = loads.contains(load) || copies(ty) == Some(0);
                is_one && places.meet_in_place(load, store)
            };
            let is_clear = !unclear.contains(&base);
            if is_clear && read.get(&base).is_some_and(|all| all.iter().all(is_own)) {
                stores.insert(store);
            }
        }
        OwnElements { loads, stores }
    }
}

/// The loads whose values become nothing but elements of stores, and of other such loads: each where the same thread has it.
fn own_loads(func: &TileFunction) -> EntitySet<Inst> {
    let mut shared: EntitySet<Value> = EntitySet::new();
    let mut found = EntitySet::new();
    let mut all: Vec<Inst> = func.all_insts().map(|(_, inst)| inst).collect();
    // Uses come behind definitions, but for what loops carry, which is shared.
    all.reverse();
    for inst in all {
        let data = &func.dfg.insts[inst];
        let is_shared = data.results.iter().any(|&value| shared.contains(value));
        let keeps = match data.op {
            TileOp::Load => !is_shared && data.volatile().is_none(),
            TileOp::Store => true,
            _ => data.class() == OpClass::Elementwise && !is_shared,
        };
        if keeps && data.op == TileOp::Load {
            found.insert(inst);
        }
        if !keeps {
            shared.extend(func.dfg.uses(inst));
        }
    }
    found
}

/// The parameter that a pointer is made of.
fn parameter(func: &TileFunction, pointer: Value) -> Option<Value> {
    let mut at = pointer;
    while let Some(inst) = func.dfg.def_inst(at) {
        let data = &func.dfg.insts[inst];
        let leads_on = match data.op {
            TileOp::Addptr
            | TileOp::AssumeMultiple
            | TileOp::AssumeContiguous
            | TileOp::AssumeConstant
            | TileOp::ConvertLayout => true,
            op => op.info().keeps_elements(),
        };
        at = *data.args.first().filter(|_| leads_on)?;
    }
    func.dfg.blocks[func.entry]
        .params
        .contains(&at)
        .then_some(at)
}

/// Where loads and stores go.
struct Places<'a> {
    forms: Forms<'a>,
    order: &'a ProgramOrder,
}

impl Places<'_> {
    /// The parameter that a pointer, or a block of them, starts from.
    fn base(&mut self, pointer: Value) -> Option<Value> {
        let func = self.forms.func;
        parameter(func, pointer).or_else(|| {
            // Loops carry it.
            let form = self.forms.form(pointer)?;
            parameter(func, form.base?)
        })
    }

    /// Whether a load and a store, in whatever iterations of loops, meet the same elements at the same index only, which the same
    /// thread has.
    fn meet_in_place(&mut self, load: Inst, store: Inst) -> bool {
        let func = self.forms.func;
        let [from, to] = [load, store].map(|inst| func.dfg.insts[inst].args[0]);
        let (a, b) = (func.dfg.ty(from), func.dfg.ty(to));
        if (a.shape, a.layout) != (b.shape, b.layout) {
            return false;
        }
        let [Some(a), Some(b)] = [from, to].map(|pointer| self.forms.form(pointer)) else {
            return false;
        };
        // Otherwise elements that the form tells apart may be one.
        if !self.forms.holds_modulo(&a) || !self.forms.holds_modulo(&b) {
            return false;
        }
        // An element of the same place is one of the same index if all indices go by the same strides.
        let shape = func.dfg.ty(from).shape;
        let mut dims = (0..shape.rank()).filter(|&dim| shape.extent(dim) > 1);
        if !dims.all(|dim| a.poly.stride(dim as u8) == b.poly.stride(dim as u8)) {
            return false;
        }
        let is_once = |inst: Inst| !self.is_in_loop(self.order.parent(func, inst));
        self.length(from, &a).is_some_and(|length| {
            from == to && is_once(load) && is_once(store) || self.are_apart(&a, &b, length)
        })
    }

    /// Elements from the first to the last of a block of pointers, that one included, of which no two are the same, modulo 2^32 either.
    fn length(&self, pointer: Value, form: &AffineForm) -> Option<i64> {
        let shape = self.forms.func.dfg.ty(pointer).shape;
        let mut strides = Vec::new();
        for dim in 0..shape.rank() as u8 {
            let extent = shape.extent(usize::from(dim)) as i64;
            if extent > 1 {
                strides.push((form.poly.stride(dim).number()?, extent));
            }
        }
        strides.sort_unstable();
        let mut length = 1_i64;
        for (stride, extent) in strides {
            let reach = stride
                .checked_mul(extent - 1)
                .filter(|_| length <= stride)?;
            length = length.checked_add(reach)?;
        }
        (length <= 1 << u32::BITS).then_some(length)
    }

    /// Whether an instruction is a loop or stands in one.
    fn is_in_loop(&self, mut at: Option<Inst>) -> bool {
        let func = self.forms.func;
        while let Some(inst) = at {
            if func.dfg.insts[inst].op.is_loop() {
                return true;
            }
            at = self.order.parent(func, inst);
        }
        false
    }

    /// Whether a number has one value in the whole of a program.
    fn is_fixed(&self, atom: Atom) -> bool {
        let Atom::Value(value) = atom else {
            return false;
        };
        let home = self.forms.home(value);
        home.is_some_and(|block| !self.is_in_loop(self.order.owner(block)))
    }

    /// Whether blocks of so many elements are the same block or have none in common, whatever the iterations are.
    fn are_apart(&self, a: &AffineForm, b: &AffineForm, length: i64) -> bool {
        let (a, b) = (a.poly.uniform(), b.poly.uniform());
        let coefficient = |poly: &Poly, of: &Monomial| {
            let found = poly.terms().find(|(monomial, _)| *monomial == of);
            found.map_or(0, |(_, coefficient)| coefficient)
        };
        // Forms are right modulo 2^32.
        let mut zeros = u32::BITS;
        let mut distance = 0_i64;
        let monomials = a.terms().chain(b.terms()).map(|(monomial, _)| monomial);
        for monomial in monomials {
            let (x, y) = (coefficient(&a, monomial), coefficient(&b, monomial));
            let Some(apart) = x.checked_sub(y) else {
                return false;
            };
            if monomial.atoms().is_empty() {
                distance = apart;
            } else if monomial.atoms().iter().all(|&atom| self.is_fixed(atom)) {
                zeros = zeros.min(apart.trailing_zeros());
            } else {
                zeros = zeros.min(x.trailing_zeros()).min(y.trailing_zeros());
            }
        }
        let unit = 1_i64 << zeros;
        let beside = distance.rem_euclid(unit);
        match beside {
            0 => length <= unit,
            beside => length <= beside && length <= unit - beside,
        }
    }
}
