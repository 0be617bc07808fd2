//! Decoding of the instructions that exist for integers and floats alike, such as `add`.

use super::{Decoder, Result};
use crate::emu::inst::{LaneFn, Mods, Op};
use crate::emu::lane::{float, integer};
use crate::emu::types::{Type, TypeKind};
use crate::num::Rounding;

impl Decoder<'_, '_> {
    /// The instructions that exist for integers and floats, told apart by their type.
    pub(super) fn typed(&mut self) -> Result<Op> {
        let known = matches!(
            self.name,
            "add"
                | "sub"
                | "mul"
                | "mad"
                | "fma"
                | "div"
                | "rem"
                | "abs"
                | "neg"
                | "min"
                | "max"
                | "sad"
                | "cnot"
                | "rcp"
                | "sqrt"
                | "rsqrt"
                | "sin"
                | "cos"
                | "lg2"
                | "ex2"
                | "tanh"
                | "copysign"
        );
        if !known {
            return self.unsupported();
        }
        let ty = self.ty()?;
        // Mixed types (a half added to an f32) are of newer targets.
        if self.parts.iter().any(|part| Type::parse(part).is_some()) {
            return self.unsupported();
        }
        if ty.is_integer() {
            return self.integer(ty);
        }
        let rounding = self.rounding();
        let mut mods = Mods {
            ftz: self.take("ftz"),
            sat: self.take("sat"),
            nan: self.take("NaN"),
            relu: self.take("relu"),
            rounding: rounding.unwrap_or(Rounding::NearestEven),
            ..Mods::new(ty)
        };
        if self.take("xorsign") {
            if !self.take("abs") {
                return self.bad("`.xorsign` wants `.abs`");
            }
            mods.flag = true;
        }
        let approx = self.take("approx");
        let full = self.take("full");
        let pair = ty.packed && ty.bits == 32;
        if pair && !matches!(self.name, "add" | "sub" | "mul" | "fma") {
            return self.unsupported();
        }
        let (f, operands): (LaneFn, usize) = if ty.is_f32() || pair {
            match self.name {
                "add" => (float::add32, 2),
                "sub" => (float::sub32, 2),
                "mul" => (float::mul32, 2),
                "fma" | "mad" => (float::fma32, 3),
                "div" if approx => (float::div_approx32, 2),
                "div" if full || rounding.is_some() => (float::div32, 2),
                "rcp" if approx || rounding.is_some() => (float::rcp32, 1),
                "sqrt" if approx || rounding.is_some() => (float::sqrt32, 1),
                "rsqrt" if approx => (float::rsqrt32, 1),
                "sin" if approx => (float::sin32, 1),
                "cos" if approx => (float::cos32, 1),
                "lg2" if approx => (float::lg2_32, 1),
                "ex2" if approx => (float::ex2_32, 1),
                "tanh" if approx => (float::tanh32, 1),
                "min" => (float::min32, 2),
                "max" => (float::max32, 2),
                "neg" => (float::neg32, 1),
                "abs" => (float::abs32, 1),
                "copysign" => (float::copysign32, 2),
                _ => return self.unsupported(),
            }
        } else if ty.is_f64() {
            if mods.rounding != Rounding::NearestEven {
                return self.unsupported();
            }
            match self.name {
                "add" => (float::add64, 2),
                "sub" => (float::sub64, 2),
                "mul" => (float::mul64, 2),
                "fma" | "mad" => (float::fma64, 3),
                "div" => (float::div64, 2),
                "rcp" if approx => (float::rcp_approx64, 1),
                "rcp" => (float::rcp64, 1),
                "sqrt" => (float::sqrt64, 1),
                "rsqrt" => (float::rsqrt_approx64, 1),
                "min" => (float::min64, 2),
                "max" => (float::max64, 2),
                "neg" => (float::neg64, 1),
                "abs" => (float::abs64, 1),
                "copysign" => (float::copysign64, 2),
                _ => return self.unsupported(),
            }
        } else if ty.is_half() {
            match self.name {
                "add" => (float::add16, 2),
                "sub" => (float::sub16, 2),
                "mul" => (float::mul16, 2),
                "fma" => (float::fma16, 3),
                "min" => (float::min16, 2),
                "max" => (float::max16, 2),
                "neg" => (float::neg16, 1),
                "abs" => (float::abs16, 1),
                "ex2" if approx => (float::ex2_16, 1),
                "tanh" if approx => (float::tanh16, 1),
                _ => return self.unsupported(),
            }
        } else {
            return self.unsupported();
        };
        let sources = [ty; 3];
        self.lane(f, mods, ty, &sources[..operands])
    }

    fn integer(&mut self, ty: Type) -> Result<Op> {
        let sat = self.take("sat");
        let (high, wide) = (self.take("hi"), self.take("wide"));
        let low = self.take("lo");
        let mods = Mods {
            sat,
            relu: self.take("relu"),
            ..Mods::new(ty)
        };
        if matches!(self.name, "mul" | "mad") && !(high || wide || low) {
            return self.bad("`.lo`, `.hi` or `.wide` is missing");
        }
        if sat && ty.kind != TypeKind::Signed {
            return self.bad("`.sat` wants .s32");
        }
        let (f, operands): (LaneFn, usize) = match self.name {
            "add" if sat => (integer::add_sat, 2),
            "sub" if sat => (integer::sub_sat, 2),
            "add" => (integer::add, 2),
            "sub" => (integer::sub, 2),
            "mul" if wide => (integer::mul_wide, 2),
            "mul" if high => (integer::mul_hi, 2),
            "mul" => (integer::mul_lo, 2),
            "mad" if wide => (integer::mad_wide, 3),
            "mad" if high && sat => (integer::mad_hi_sat, 3),
            "mad" if high => (integer::mad_hi, 3),
            "mad" => (integer::mad_lo, 3),
            "sad" => (integer::sad, 3),
            "div" => (integer::div, 2),
            "rem" => (integer::rem, 2),
            "min" => (integer::min, 2),
            "max" => (integer::max, 2),
            "abs" => (integer::abs, 1),
            "neg" => (integer::neg, 1),
            "cnot" => (integer::cnot, 1),
            _ => return self.unsupported(),
        };
        if wide {
            if ty.bits > 32 || ty.packed {
                return self.bad("`.wide` wants 16 or 32 bits");
            }
            let double = Type {
                bits: ty.bits * 2,
                ..ty
            };
            let sources = [ty, ty, double];
            return self.lane(f, mods, double, &sources[..operands]);
        }
        let sources = [ty; 3];
        self.lane(f, mods, ty, &sources[..operands])
    }
}
