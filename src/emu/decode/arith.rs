//! Decoding of everything that computes from registers to registers.

use super::{Decoder, Result};
use crate::emu::inst::{BoolOp, Dests, LaneFn, Mods, Op, PredSrc, Sources, Src};
use crate::emu::lane::{compare, convert, integer};
use crate::emu::module::{Literal, Operand};
use crate::emu::types::{Type, TypeKind};
use crate::num::Rounding;

const B32: Type = Type {
    kind: TypeKind::Bits,
    bits: 32,
    packed: false,
};
const U32: Type = Type {
    kind: TypeKind::Unsigned,
    bits: 32,
    packed: false,
};

impl<'a> Decoder<'_, 'a> {
    pub(super) fn arithmetic(&mut self) -> Result<Op> {
        match self.name {
            "mov" => self.mov(),
            "setp" | "set" => self.compare(),
            "testp" => self.testp(),
            "selp" => {
                let ty = self.ty()?;
                Ok(Op::Select {
                    dst: self.dest(0, ty)?,
                    a: self.source(1, ty)?,
                    b: self.source(2, ty)?,
                    pred: self.pred_source(3)?,
                })
            }
            "slct" => {
                let ftz = self.take("ftz");
                let (ty, selector) = (self.ty()?, self.ty()?);
                let f: LaneFn = if selector.is_float() {
                    integer::slct_float
                } else {
                    integer::slct_int
                };
                self.lane(
                    f,
                    Mods {
                        ftz,
                        ..Mods::new(ty)
                    },
                    ty,
                    &[ty, ty, selector],
                )
            }
            "cvt" => self.cvt(),
            "add" | "sub" | "addc" | "subc"
                if self.name.ends_with('c') || self.parts.contains(&"cc") =>
            {
                self.carry()
            }
            "and" | "or" | "xor" | "not" => self.logic(),
            "lop3" => {
                let ty = self.ty()?;
                self.arity(5..=5)?;
                let Operand::Literal(Literal::Int(table)) = *self.operand(4)? else {
                    return self.bad("the table must be a number");
                };
                let mods = Mods {
                    imm: table as u32,
                    ..Mods::new(ty)
                };
                self.fixed(integer::lop3, mods, ty, &[ty, ty, ty])
            }
            "shl" | "shr" => {
                let ty = self.ty()?;
                let f = match (self.name, ty.kind) {
                    ("shl", TypeKind::Bits) => integer::shl,
                    ("shr", _) => integer::shr,
                    _ => return self.unsupported(),
                };
                self.lane(f, Mods::new(ty), ty, &[ty, U32])
            }
            "shf" => {
                let left = self.take("l");
                if !left && !self.take("r") {
                    return self.bad("a direction is missing");
                }
                let wrap = self.take("wrap");
                if !wrap && !self.take("clamp") {
                    return self.bad("`.wrap` or `.clamp` is missing");
                }
                let ty = self.ty()?;
                let f = if left {
                    integer::shf_left
                } else {
                    integer::shf_right
                };
                let mods = Mods {
                    flag: wrap,
                    ..Mods::new(ty)
                };
                self.lane(f, mods, ty, &[ty, ty, U32])
            }
            "bfe" => {
                let ty = self.ty()?;
                self.lane(integer::bfe, Mods::new(ty), ty, &[ty, U32, U32])
            }
            "bfi" => {
                let ty = self.ty()?;
                self.lane(integer::bfi, Mods::new(ty), ty, &[ty, ty, U32, U32])
            }
            "bmsk" => {
                let wrap = self.take("wrap");
                self.take("clamp");
                let ty = self.ty()?;
                self.lane(
                    integer::bmsk,
                    Mods {
                        flag: wrap,
                        ..Mods::new(ty)
                    },
                    ty,
                    &[U32, U32],
                )
            }
            "bfind" | "clz" | "popc" => {
                let shift = self.take("shiftamt");
                let ty = self.ty()?;
                let f = match self.name {
                    "bfind" => integer::bfind,
                    "clz" => integer::clz,
                    _ => integer::popc,
                };
                self.lane(
                    f,
                    Mods {
                        flag: shift,
                        ..Mods::new(ty)
                    },
                    U32,
                    &[ty],
                )
            }
            "brev" => {
                let ty = self.ty()?;
                self.lane(integer::brev, Mods::new(ty), ty, &[ty])
            }
            "prmt" => {
                let ty = self.ty()?;
                let modes = ["", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"];
                let mode = self
                    .take_with(|part| modes.iter().position(|&mode| mode == part))
                    .unwrap_or(0);
                self.lane(
                    integer::prmt,
                    Mods {
                        imm: mode as u32,
                        ..Mods::new(ty)
                    },
                    ty,
                    &[ty, ty, U32],
                )
            }
            "dp4a" | "dp2a" => {
                let high = self.take("hi");
                self.take("lo");
                let (a, b) = (self.ty()?, self.ty()?);
                let mods = Mods {
                    from: b,
                    imm: u32::from(high),
                    ..Mods::new(a)
                };
                let f = if self.name == "dp4a" {
                    integer::dp4a
                } else {
                    integer::dp2a
                };
                self.lane(f, mods, U32, &[U32, U32, U32])
            }
            "mul24" | "mad24" => {
                let high = self.take("hi");
                self.take("lo");
                let ty = self.ty()?;
                let f = match (self.name, high) {
                    ("mul24", false) => integer::mul24_lo,
                    ("mul24", true) => integer::mul24_hi,
                    (_, false) => integer::mad24_lo,
                    _ => integer::mad24_hi,
                };
                let sources = [ty; 3];
                self.lane(
                    f,
                    Mods::new(ty),
                    ty,
                    &sources[..if self.name == "mul24" { 2 } else { 3 }],
                )
            }
            _ => self.typed(),
        }
    }

    /// A lane function with the operand count of `sources` behind one destination.
    pub(super) fn lane(
        &mut self,
        f: LaneFn,
        mods: Mods,
        dest: Type,
        sources: &[Type],
    ) -> Result<Op> {
        self.arity(sources.len() + 1..=sources.len() + 1)?;
        self.fixed(f, mods, dest, sources)
    }

    /// Like [`Decoder::lane`], for instructions with further operands.
    fn fixed(&mut self, f: LaneFn, mods: Mods, dest: Type, sources: &[Type]) -> Result<Op> {
        let mut src = [Src::Imm(0); 4];
        for (index, &ty) in sources.iter().enumerate() {
            src[index] = self.source(index + 1, ty)?;
        }
        let dst = self.dest(0, dest)?;
        Ok(Op::Lane {
            f,
            mods,
            dst,
            src,
            count: sources.len() as u8,
            packed: mods.ty.packed,
        })
    }

    fn mov(&mut self) -> Result<Op> {
        let ty = self.ty()?;
        self.arity(2..=2)?;
        if ty == Type::PRED {
            let Some(dst) = self.pred_dest_of(self.operand(0)?)? else {
                return Ok(Op::Nop);
            };
            return Ok(Op::Logic {
                op: BoolOp::Or,
                dst,
                a: self.pred_source(1)?,
                b: PredSrc::Const(false),
            });
        }
        match (self.operand(0)?, self.operand(1)?) {
            (Operand::Vector(parts), source) => {
                let (part, source) = (self.part(ty, parts.len())?, source.clone());
                let dsts: Result<Dests> = parts
                    .iter()
                    .map(|part_dst| self.dest_of(part_dst, part, false))
                    .collect();
                Ok(Op::Unpack {
                    dsts: dsts?,
                    src: self.source_of(&source, ty, false)?,
                    bits: part.bits,
                })
            }
            (_, Operand::Vector(parts)) => {
                let part = self.part(ty, parts.len())?;
                let parts: Result<Sources> = parts
                    .iter()
                    .map(|source| self.source_of(source, part, false))
                    .collect();
                Ok(Op::Pack {
                    dst: self.dest(0, ty)?,
                    parts: parts?,
                    bits: part.bits,
                })
            }
            _ => self.lane(
                integer::mov,
                Mods {
                    from: ty,
                    ..Mods::new(B32)
                },
                ty,
                &[ty],
            ),
        }
    }

    /// The type of an element where `ty` is made of `count`.
    fn part(&self, ty: Type, count: usize) -> Result<Type> {
        let bits = ty.register_bits();
        match count {
            2 | 4 | 8 if bits <= 64 && bits / count as u32 >= 8 => Ok(Type {
                kind: TypeKind::Bits,
                bits: bits / count as u32,
                packed: false,
            }),
            _ => self.bad(format!("a vector of {count} elements")),
        }
    }

    fn logic(&mut self) -> Result<Op> {
        let ty = self.ty()?;
        let not = self.name == "not";
        if ty == Type::PRED {
            self.arity(if not { 2..=2 } else { 3..=3 })?;
            let Some(dst) = self.pred_dest_of(self.operand(0)?)? else {
                return Ok(Op::Nop);
            };
            let a = self.pred_source(1)?;
            let (op, b) = match self.name {
                "and" => (BoolOp::And, self.pred_source(2)?),
                "or" => (BoolOp::Or, self.pred_source(2)?),
                "xor" => (BoolOp::Xor, self.pred_source(2)?),
                _ => (BoolOp::Xor, PredSrc::Const(true)),
            };
            return Ok(Op::Logic { op, dst, a, b });
        }
        let f = match self.name {
            "and" => integer::and,
            "or" => integer::or,
            "xor" => integer::xor,
            _ => integer::not,
        };
        let sources = [ty; 2];
        self.lane(f, Mods::new(ty), ty, &sources[..if not { 1 } else { 2 }])
    }

    fn carry(&mut self) -> Result<Op> {
        let carry_out = self.take("cc");
        let ty = self.ty()?;
        self.arity(3..=3)?;
        Ok(Op::Carry {
            subtract: self.name.starts_with("sub"),
            carry_in: self.name.ends_with('c'),
            carry_out,
            bits: ty.bits,
            dst: self.dest(0, ty)?,
            a: self.source(1, ty)?,
            b: self.source(2, ty)?,
        })
    }

    fn bool_op(&mut self) -> Option<BoolOp> {
        self.take_with(|part| match part {
            "and" => Some(BoolOp::And),
            "or" => Some(BoolOp::Or),
            "xor" => Some(BoolOp::Xor),
            _ => None,
        })
    }

    fn compare(&mut self) -> Result<Op> {
        let ftz = self.take("ftz");
        let bool_op = self.bool_op();
        // `set` names the result's type first.
        let result = if self.name == "set" {
            Some(self.ty()?)
        } else {
            None
        };
        let ty = self.ty()?;
        let Some((number, f)) = self.take_with(|part| compare::comparison(part, ty)) else {
            return self.bad(format!("a comparison of type .{ty} is missing"));
        };
        let mods = Mods {
            ftz,
            imm: number,
            ..Mods::new(ty)
        };
        let (a, b) = (self.source(1, ty)?, self.source(2, ty)?);
        self.arity(if bool_op.is_some() { 4..=4 } else { 3..=3 })?;
        let combine = match bool_op {
            Some(op) => Some((op, self.pred_source(3)?)),
            None => None,
        };
        if let Some(result) = result {
            let one = match (result.kind, result.bits) {
                (TypeKind::Unsigned | TypeKind::Signed, 16 | 32) => u64::MAX,
                (TypeKind::Float, 32) => 0x3f80_0000,
                (TypeKind::Float, 16) => 0x3c00,
                (TypeKind::Bfloat, _) => 0x3f80,
                _ => return self.unsupported(),
            };
            if ty.packed {
                return self.unsupported();
            }
            return Ok(Op::Set {
                f,
                mods,
                dst: self.dest(0, result)?,
                one,
                a,
                b,
                combine,
            });
        }
        let (p, q) = self.dest_pair(0)?;
        let p = self.pred_dest_of(p)?;
        let q = match q {
            Some(q) => self.pred_dest_of(q)?,
            None => None,
        };
        Ok(Op::Compare {
            f,
            mods,
            p,
            q,
            a,
            b,
            combine,
        })
    }

    fn testp(&mut self) -> Result<Op> {
        let ty = self.ty()?;
        let Some(number) = self.take_with(compare::property) else {
            return self.bad("a property is missing");
        };
        self.arity(2..=2)?;
        Ok(Op::Compare {
            f: compare::has_property,
            mods: Mods {
                imm: number,
                ..Mods::new(ty)
            },
            p: self.pred_dest_of(self.operand(0)?)?,
            q: None,
            a: self.source(1, ty)?,
            b: Src::Imm(0),
            combine: None,
        })
    }

    fn cvt(&mut self) -> Result<Op> {
        let integral = self.take_with(|part| {
            Some(match part {
                "rni" => Rounding::NearestEven,
                "rzi" => Rounding::Zero,
                "rmi" => Rounding::Down,
                "rpi" => Rounding::Up,
                _ => return None,
            })
        });
        let rounding = self.rounding();
        let (ftz, sat, relu, finite) = (
            self.take("ftz"),
            self.take("sat"),
            self.take("relu"),
            self.take("satfinite"),
        );
        if self.take("pack") || self.parts.contains(&"rs") {
            return self.unsupported();
        }
        let (to, from) = (self.ty()?, self.ty()?);
        if to == Type::PRED || from == Type::PRED || to.bits > 64 || from.bits > 64 {
            return self.unsupported();
        }
        let mods = Mods {
            ftz,
            sat,
            relu,
            finite,
            integral: integral.is_some(),
            rounding: integral.or(rounding).unwrap_or(Rounding::NearestEven),
            from: Type {
                packed: false,
                ..from
            },
            ..Mods::new(Type {
                packed: false,
                ..to
            })
        };
        let lossy = to.is_float()
            && from.is_float()
            && convert::format(to).mantissa_bits < convert::format(from).mantissa_bits;
        let wants_rounding = lossy || (to.is_float() && from.is_integer());
        if wants_rounding && rounding.is_none() && integral.is_none() {
            return self.bad("a rounding modifier is missing");
        }
        if to.is_integer() && from.is_float() && integral.is_none() {
            return self.bad("`.rni`, `.rzi`, `.rmi` or `.rpi` is missing");
        }
        match (to.packed, from.packed) {
            (true, false) => {
                self.arity(3..=3)?;
                let src = [
                    self.source(1, from)?,
                    self.source(2, from)?,
                    Src::Imm(0),
                    Src::Imm(0),
                ];
                let dst = self.dest_of(self.operand(0)?, to, false)?;
                Ok(Op::Lane {
                    f: convert::pack_function(&mods),
                    mods,
                    dst,
                    src,
                    count: 2,
                    packed: false,
                })
            }
            (packed, from_packed) => {
                if packed != from_packed {
                    return self.unsupported();
                }
                self.arity(2..=2)?;
                let f = if packed {
                    convert::repack
                } else {
                    convert::function(&mods)
                };
                let source = self.source_of(self.operand(1)?, from, true)?;
                let dst = self.dest_of(self.operand(0)?, to, true)?;
                let src = [source, Src::Imm(0), Src::Imm(0), Src::Imm(0)];
                Ok(Op::Lane {
                    f,
                    mods,
                    dst,
                    src,
                    count: 1,
                    packed: false,
                })
            }
        }
    }
}
