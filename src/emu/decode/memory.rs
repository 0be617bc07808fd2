//! Decoding of loads, stores, atomics, fences and address conversions.

use super::{Decoder, Result, reduction};
use crate::emu::error::Space;
use crate::emu::inst::{Address, AtomicOp, Dests, Dst, MemoryOrder, Mods, Op, Scope, Sources, Src};
use crate::emu::lane::{compare, integer};
use crate::emu::mem;
use crate::emu::module::{Operand, Symbol};
use crate::emu::types::{Type, TypeKind};

const B64: Type = Type {
    kind: TypeKind::Bits,
    bits: 64,
    packed: false,
};
const B32: Type = Type {
    kind: TypeKind::Bits,
    bits: 32,
    packed: false,
};

fn space(part: &str) -> Option<Space> {
    Some(match part {
        "global" => Space::Global,
        "shared" | "shared::cta" => Space::Shared,
        "shared::cluster" => Space::Cluster,
        "local" => Space::Local,
        "param" | "param::entry" => Space::Param,
        "const" => Space::Const,
        _ => return None,
    })
}

fn scope_of(part: &str) -> Option<Scope> {
    Some(match part {
        "cta" => Scope::Cta,
        "cluster" => Scope::Cluster,
        "gpu" | "gl" | "sys" => Scope::Device,
        _ => return None,
    })
}

fn is_hint(part: &str) -> bool {
    matches!(
        part,
        "ca" | "cg" | "cs" | "cv" | "lu" | "wb" | "wt" | "nc" | "noftz" | "unified"
    ) || part.starts_with("L1::")
        || part.starts_with("L2::")
        || part.starts_with("level::")
}

impl<'a> Decoder<'_, 'a> {
    pub(super) fn memory(&mut self) -> Result<Op> {
        if matches!(self.name, "st" | "red") && self.take("async") {
            return self.remote();
        }
        match self.name {
            "ld" | "ldu" => self.load(),
            "st" => self.store(),
            "atom" | "red" => self.atomic(),
            "cvta" => self.cvta(),
            "isspacep" => self.isspacep(),
            "fence" | "membar" => {
                if self.parts.contains(&"proxy") || self.parts.contains(&"mbarrier_init") {
                    return self.proxy_fence();
                }
                let scope = self.take_with(scope_of).unwrap_or(Scope::Device);
                self.parts.clear();
                Ok(Op::Fence { scope })
            }
            "createpolicy" => {
                self.parts.clear();
                let dst = self.dest(0, B64)?;
                let src = [Src::Imm(0); 4];
                Ok(Op::Lane {
                    f: integer::mov,
                    mods: Mods::new(B64),
                    dst,
                    src,
                    count: 1,
                    packed: false,
                })
            }
            _ => self.hint(),
        }
    }

    /// Takes the modifiers of the memory model and of caches.
    fn order(&mut self, read: bool, write: bool) -> MemoryOrder {
        let relaxed = self.take("relaxed") | self.take("volatile") | self.take("mmio");
        let acquire = self.take("acquire");
        let release = self.take("release");
        let both = self.take("acq_rel");
        self.take("weak");
        let mut scope = Scope::Device;
        while let Some(named) = self.take_with(scope_of) {
            scope = named;
        }
        let constant = self.take("nc");
        while self.take_with(|part| is_hint(part).then_some(())).is_some() {}
        MemoryOrder {
            strong: relaxed || acquire || release || both,
            acquire: read && (acquire || both),
            release: write && (release || both),
            scope,
            constant,
        }
    }

    fn vector(&mut self) -> usize {
        self.take_with(|part| match part {
            "v2" => Some(2),
            "v4" => Some(4),
            "v8" => Some(8),
            _ => None,
        })
        .unwrap_or(1)
    }

    pub(super) fn address(&mut self, index: usize, space: Space) -> Result<Address> {
        self.address_of(self.operand(index)?, space)
    }

    pub(super) fn address_of(&self, operand: &Operand<'a>, space: Space) -> Result<Address> {
        let Operand::Address { base, offset } = operand else {
            return self.bad("an address in brackets is wanted");
        };
        if matches!(**base, Operand::Symbol(Symbol::Call, _)) {
            return self.bad("parameters of calls are not supported");
        }
        let named = match **base {
            Operand::Symbol(Symbol::Param(_), _) => Some(Space::Param),
            Operand::Symbol(Symbol::Shared(_) | Symbol::DynamicShared, _) => Some(Space::Shared),
            Operand::Symbol(Symbol::Local(_), _) => Some(Space::Local),
            _ => None,
        };
        let is_own = named == Some(Space::Shared) && space == Space::Cluster;
        if let Some(named) = named
            && named != space
            && !is_own
        {
            return self.bad(format!("the name belongs to the {named} space"));
        }
        let narrow = matches!(
            space,
            Space::Shared | Space::Cluster | Space::Local | Space::Param | Space::Const
        );
        let base = match **base {
            // Addresses of shared memory fit 32 bits and may stand in registers of 64.
            Operand::Register(register) if narrow && register.ty.register_bits() == 32 => {
                self.source_of(base, B32, false)?
            }
            _ => self.source_of(base, B64, false)?,
        };
        Ok(Address {
            base,
            offset: *offset,
            space,
        })
    }

    /// Vectors of more than 16 bytes are 32 bytes of device memory, in registers of 32 bits or more; of shorter ones
    /// there are no more than four elements.
    fn check_width(&self, space: Space, ty: Type, count: usize) -> Result<()> {
        let bits = ty.bits as usize * count;
        let is_wide =
            bits == 256 && 32 <= ty.bits && matches!(space, Space::Global | Space::Generic);
        if is_wide || bits <= 128 && count <= 4 {
            return Ok(());
        }
        self.bad(format!(
            "there is no vector of {count} elements of {} bits in the {space} space",
            ty.bits
        ))
    }

    fn access_type(&mut self) -> Result<Type> {
        let ty = self.ty()?;
        if ty == Type::PRED || ty.register_bits() > 64 {
            return self.unsupported();
        }
        Ok(ty)
    }

    fn load(&mut self) -> Result<Op> {
        let order = self.order(true, false);
        let space = self.take_with(space).unwrap_or(Space::Generic);
        let count = self.vector();
        let ty = self.access_type()?;
        self.check_width(space, ty, count)?;
        // A cache policy may follow.
        self.arity(2..=3)?;
        let address = self.address(1, space)?;
        let elements = self.vector_of(0, count, "destinations")?;
        let dsts: Result<Dests> = elements
            .iter()
            .map(|element| self.dest_of(element, ty, true))
            .collect();
        Ok(Op::Load {
            address,
            ty,
            dsts: dsts?,
            order,
        })
    }

    fn store(&mut self) -> Result<Op> {
        let order = self.order(false, true);
        let space = self.take_with(space).unwrap_or(Space::Generic);
        let count = self.vector();
        let ty = self.access_type()?;
        if let Operand::Address { base, .. } = self.operand(0)?
            && matches!(**base, Operand::Symbol(Symbol::Call, _))
        {
            return Ok(Op::Unsupported);
        }
        self.check_width(space, ty, count)?;
        self.arity(2..=3)?;
        let address = self.address(0, space)?;
        let elements = self.vector_of(1, count, "sources")?;
        let src: Result<Sources> = elements
            .iter()
            .map(|element| self.source_of(element, ty, true))
            .collect();
        Ok(Op::Store {
            address,
            ty,
            src: src?,
            order,
        })
    }

    fn atomic(&mut self) -> Result<Op> {
        let red = self.name == "red";
        let order = MemoryOrder {
            strong: true,
            ..self.order(!red, true)
        };
        let space = self.take_with(space).unwrap_or(Space::Generic);
        let count = self.vector();
        let op = self.take_with(|part| match part {
            "exch" => Some(AtomicOp::Exchange),
            "cas" => Some(AtomicOp::CompareSwap),
            part => reduction(part),
        });
        let Some(op) = op else {
            return self.bad("an operation is missing");
        };
        let ty = self.access_type()?;
        let float = ty.is_float();
        let allowed = match op {
            AtomicOp::Add => ty.kind != TypeKind::Bits && (float || ty.bits >= 32),
            AtomicOp::Min | AtomicOp::Max => !float && ty.kind != TypeKind::Bits || ty.is_half(),
            AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => !float && ty.bits >= 32,
            AtomicOp::Exchange => !float && ty.bits >= 32,
            AtomicOp::CompareSwap => !float && ty.bits >= 16,
            AtomicOp::Increment | AtomicOp::Decrement => {
                ty.kind == TypeKind::Unsigned && ty.bits == 32
            }
        };
        if !allowed || (red && matches!(op, AtomicOp::Exchange | AtomicOp::CompareSwap)) {
            return self.unsupported();
        }
        let at = usize::from(!red);
        let compares = usize::from(op == AtomicOp::CompareSwap);
        // A cache policy may follow.
        self.arity(at + 2 + compares..=at + 3 + compares)?;
        let address = self.address(at, space)?;
        let dsts: Dests = if red {
            (0..count)
                .map(|_| Dst {
                    reg: Dst::SINK,
                    mask: 0,
                })
                .collect()
        } else {
            let elements = self.elements(self.operand(0)?);
            // `_` discards a whole vector.
            if matches!(elements, [Operand::Sink]) {
                (0..count)
                    .map(|_| Dst {
                        reg: Dst::SINK,
                        mask: 0,
                    })
                    .collect()
            } else {
                let dsts: Result<Dests> = elements
                    .iter()
                    .map(|element| self.dest_of(element, ty, true))
                    .collect();
                dsts?
            }
        };
        let compare = if compares == 1 {
            self.source(at + 1, ty)?
        } else {
            Src::Imm(0)
        };
        let elements = self.elements(self.operand(at + 1 + compares)?);
        if elements.len() != count || dsts.len() != count {
            return self.bad(format!("the vectors do not have {count} elements"));
        }
        let src: Result<Sources> = elements
            .iter()
            .map(|element| self.source_of(element, ty, true))
            .collect();
        Ok(Op::Atomic {
            address,
            op,
            ty,
            dsts,
            src: src?,
            compare,
            order,
        })
    }

    /// Generic addresses are those of the space moved into its window; global ones do not move.
    fn cvta(&mut self) -> Result<Op> {
        let to = self.take("to");
        let Some(space) = self.take_with(space) else {
            return self.bad("a state space is missing");
        };
        let ty = self.ty()?;
        self.arity(2..=2)?;
        let window = match space {
            Space::Shared | Space::Cluster => mem::SHARED_WINDOW.start,
            Space::Local => mem::LOCAL_WINDOW.start,
            Space::Param => mem::PARAM_WINDOW.start,
            Space::Global | Space::Const | Space::Generic => 0,
        };
        let f = if to { integer::sub } else { integer::add };
        let src = [
            self.source(1, ty)?,
            Src::Imm(window),
            Src::Imm(0),
            Src::Imm(0),
        ];
        Ok(Op::Lane {
            f,
            mods: Mods::new(ty),
            dst: self.dest(0, ty)?,
            src,
            count: 2,
            packed: false,
        })
    }

    /// `mapa` and `getctarank`: addresses in the shared memory of other CTAs.
    pub(super) fn map(&mut self) -> Result<Op> {
        let is_generic = !self.take("shared::cluster");
        let ty = self.ty()?;
        let is_rank = self.name == "getctarank";
        let address = match (is_rank, is_generic) {
            (true, true) => B64,
            (true, false) => B32,
            _ => ty,
        };
        self.arity(if is_rank { 2..=2 } else { 3..=3 })?;
        Ok(Op::MapAddress {
            dst: self.dest(0, ty)?,
            address: self.source(1, address)?,
            rank: if is_rank {
                None
            } else {
                Some(self.source(2, B32)?)
            },
            is_generic,
        })
    }

    fn isspacep(&mut self) -> Result<Op> {
        let f = match self.take_with(space) {
            Some(Space::Shared | Space::Cluster) => compare::is_shared,
            Some(Space::Local) => compare::is_local,
            Some(Space::Global) => compare::is_global,
            _ => return self.unsupported(),
        };
        self.arity(2..=2)?;
        Ok(Op::Compare {
            f,
            mods: Mods::new(B64),
            p: self.pred_dest_of(self.operand(0)?)?,
            q: None,
            a: self.source(1, B64)?,
            b: Src::Imm(0),
            combine: None,
        })
    }
}
