//! Atomic statements: on distinct elements with results, or many on one without.

use super::Generator;
use crate::ir::attrs::{MemOrder, RmwOp, Scope, make};
use crate::ir::entities::Value;
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType, ValueType};
use crate::linear_layout::shape::Shape;

/// What does not depend on the order of steps.
const COMMUTATIVE: &[RmwOp] = &[
    RmwOp::Add,
    RmwOp::Smax,
    RmwOp::Smin,
    RmwOp::Umax,
    RmwOp::Umin,
    RmwOp::And,
    RmwOp::Or,
    RmwOp::Xor,
];

impl Generator {
    /// An atomic op on the program's part of an output buffer.
    pub(super) fn atomic(&mut self) {
        let ty = TileType::block(self.elem(), self.shape());
        let Some(scalar) = ty.elem.scalar().filter(|s| s.bits() >= 16) else {
            return;
        };
        let order = [
            make::sem(self.random.pick(MemOrder::ALL)),
            make::scope(self.random.pick(Scope::ALL)),
        ];
        let is_wide_int = matches!(ty.elem, Elem::I32 | Elem::I64);
        let elements = ty.shape.elements() as i64;
        let collides = is_wide_int && self.random.chance(40);
        let (buffer, site) = self.site(scalar, elements);
        let index = if collides {
            self.index_below(ty.shape, elements)
        } else {
            self.distinct(ty.shape)
        };
        let pointers = self.site_pointers(buffer, site, index);
        let value = self.value(ty);
        if !collides && self.random.chance(25) {
            let mut expected = self.value(ty);
            if ty.elem.is_float() {
                expected = self.no_nan(expected);
            }
            self.order_rounds();
            let args = [pointers, expected, value];
            let old = self.one(TileOp::AtomicCas, &args, &order, &[]);
            return self.values.push(old);
        }
        let rmw = match ty.elem {
            Elem::I32 | Elem::I64 if collides => self.random.pick(COMMUTATIVE),
            Elem::I32 | Elem::I64 => self.random.pick(&[COMMUTATIVE, &[RmwOp::Xchg]].concat()),
            Elem::F32 | Elem::F64 if self.random.chance(30) => RmwOp::Xchg,
            elem if elem.is_float() => RmwOp::Fadd,
            _ => return,
        };
        let mut args = vec![pointers, value];
        args.extend(self.mask(ty.shape));
        let [sem, scope] = order;
        self.order_rounds();
        let old = self.one(TileOp::AtomicRmw, &args, &[make::rmw(rmw), sem, scope], &[]);
        if !collides {
            self.values.push(old);
        }
    }

    /// A number below the count for each element, as i32.
    fn index_below(&mut self, shape: Shape, count: i64) -> Value {
        let index = self.index(shape, count);
        match self.b.ty(index).elem {
            Elem::I32 => index,
            _ => self.b.itrunc(index, TileType::block(Elem::I32, shape)),
        }
    }

    /// What leaves no trace in the buffers: records for the log, and words to and about other grids.
    pub(super) fn notice(&mut self) {
        let ty = TileType::block(self.elem(), self.shape());
        match self.random.below(5) {
            0 => self.b.gdc_wait(),
            1 => self.b.gdc_launch_dependents(),
            2 => {
                // True, but not at first sight.
                let x = self.value(ty.with_elem(Elem::I1));
                let yes = self.constant(ty.with_elem(Elem::I1), 1);
                let other = self.b.xor(x, yes);
                let holds = self.b.or(x, other);
                self.b.device_assert(holds, "holds".into());
            }
            3 => self.b.device_print(None, "here".into()),
            _ => {
                let x = self.value(ty);
                self.b.device_print(Some(x), "x".into());
            }
        }
    }
}
