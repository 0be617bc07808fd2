//! Decoding of matrices held by a warp, and of copies to shared memory.

use super::{Decoder, Result};
use crate::emu::error::Space;
use crate::emu::inst::{Dests, MmaShape, Op, Sources, Src};
use crate::emu::types::{Type, TypeKind};

const B32: Type = Type {
    kind: TypeKind::Bits,
    bits: 32,
    packed: false,
};
const B64: Type = Type {
    kind: TypeKind::Bits,
    bits: 64,
    packed: false,
};

/// `m16n8k8` as its three numbers.
pub(super) fn shape(part: &str) -> Option<[u32; 3]> {
    let (m, rest) = part.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
}

impl<'a> Decoder<'_, 'a> {
    pub(super) fn matrix(&mut self) -> Result<Op> {
        if !self.take("sync") || !self.take("aligned") {
            return self.bad("`.sync.aligned` is missing");
        }
        match self.name {
            "mma" => self.product(),
            "movmatrix" => {
                if !self.take("m8n8") || !self.take("trans") {
                    return self.unsupported();
                }
                self.ty()?;
                self.arity(2..=2)?;
                Ok(Op::TurnMatrix {
                    dst: self.dest(0, B32)?,
                    src: self.source(1, B32)?,
                })
            }
            _ => self.matrices(),
        }
    }

    /// `ldmatrix` and `stmatrix` of 8x8 matrices.
    fn matrices(&mut self) -> Result<Op> {
        let is_store = self.name == "stmatrix";
        if !self.take("m8n8") {
            return self.unsupported();
        }
        let count = self.take_with(|part| match part {
            "x1" => Some(1),
            "x2" => Some(2),
            "x4" => Some(4),
            _ => None,
        });
        let Some(count) = count else {
            return self.bad("`.x1`, `.x2` or `.x4` is missing");
        };
        let trans = self.take("trans");
        for space in ["shared", "shared::cta"] {
            self.take(space);
        }
        let ty = self.ty()?;
        if ty.bits != 16 {
            return self.unsupported();
        }
        self.arity(2..=2)?;
        let (memory, data) = if is_store { (0, 1) } else { (1, 0) };
        let address = self.address(memory, Space::Shared)?;
        let elements = self.elements(self.operand(data)?);
        if elements.len() != count {
            return self.bad(format!("{} registers for {count} matrices", elements.len()));
        }
        if is_store {
            let src: Result<Sources> = elements
                .iter()
                .map(|e| self.source_of(e, B32, false))
                .collect();
            return Ok(Op::StoreMatrices {
                address,
                src: src?,
                trans,
            });
        }
        let dsts: Result<Dests> = elements
            .iter()
            .map(|e| self.dest_of(e, B32, false))
            .collect();
        Ok(Op::LoadMatrices {
            address,
            dsts: dsts?,
            trans,
        })
    }

    fn product(&mut self) -> Result<Op> {
        let Some([m, n, k]) = self.take_with(shape) else {
            return self.bad("a shape is missing");
        };
        let sides: [Option<bool>; 2] = std::array::from_fn(|_| {
            self.take_with(|part| match part {
                "row" => Some(true),
                "col" => Some(false),
                _ => None,
            })
        });
        let [Some(left), Some(right)] = sides else {
            return self.unsupported();
        };
        let transposed = [!left, right];
        let [sum, a, b, c] = [self.ty()?, self.ty()?, self.ty()?, self.ty()?];
        let known = matches!(
            (a.kind, a.bits, [m, n, k]),
            (TypeKind::Float | TypeKind::Bfloat, 16, [16, 8, 8 | 16])
                | (TypeKind::Float, 16, [8, 8, 4])
                | (TypeKind::Tf32, 32, [16, 8, 4 | 8])
                | (
                    TypeKind::Signed | TypeKind::Unsigned,
                    8,
                    [8, 8, 16] | [16, 8, 16 | 32]
                )
                | (TypeKind::E4m3 | TypeKind::E5m2, 8, [16, 8, 16 | 32])
                | (TypeKind::Float, 64, [8, 8, 4] | [16, 8, 4 | 8 | 16])
        );
        let eights = [TypeKind::E4m3, TypeKind::E5m2];
        let ints = [TypeKind::Signed, TypeKind::Unsigned];
        let alike = a == b
            || eights.contains(&a.kind) && eights.contains(&b.kind)
            || ints.contains(&a.kind) && ints.contains(&b.kind) && a.bits == b.bits;
        let sums = match (a.kind, a.bits) {
            (TypeKind::Float, 16) | (TypeKind::E4m3 | TypeKind::E5m2, _) => {
                sum.kind == TypeKind::Float && matches!(sum.bits, 16 | 32)
            }
            (TypeKind::Float, 64) => sum.is_f64(),
            (TypeKind::Signed | TypeKind::Unsigned, _) => {
                sum.kind == TypeKind::Signed && sum.bits == 32
            }
            _ => sum.is_f32(),
        };
        if !known || !alike || !sums || c != sum {
            return self.unsupported();
        }
        self.arity(4..=4)?;
        let product = MmaShape {
            shape: [m, n, k],
            a,
            b,
            sum,
            transposed,
        };
        if transposed != [false; 2] && product.products() != 4 {
            return self.unsupported();
        }
        let (register, wide) = match a.bits {
            64 => (B64, 64),
            _ => (B32, 32),
        };
        let products = product.products();
        let counts = [
            products * m * n * sum.bits / 32 / wide.max(32),
            products * m * k * a.bits / 32 / wide,
            products * n * k * a.bits / 32 / wide,
        ];
        let counts = [counts[0], counts[1], counts[2], counts[0]];
        for (i, count) in counts.into_iter().enumerate() {
            let found = self.elements(self.operand(i)?).len();
            if found != count as usize {
                return self.bad(format!(
                    "operand {} has {found} registers, not {count}",
                    i + 1
                ));
            }
        }
        let dsts: Result<Dests> = self
            .elements(self.operand(0)?)
            .iter()
            .map(|e| self.dest_of(e, register, false))
            .collect();
        let sources = |i: usize| -> Result<Sources> {
            let elements = self.elements(self.operand(i)?).iter();
            elements
                .map(|e| self.source_of(e, register, false))
                .collect()
        };
        Ok(Op::Multiply {
            product,
            dsts: dsts?,
            a: sources(1)?,
            b: sources(2)?,
            c: sources(3)?,
        })
    }

    /// `cp.async` and what goes with it.
    pub(super) fn copy(&mut self) -> Result<Op> {
        let reduces = self.take("reduce");
        if !self.take("async") {
            return self.unsupported();
        }
        if self.take("bulk") {
            return self.bulk(reduces);
        }
        if self.take("mbarrier") {
            if !self.take("arrive") || !self.take("b64") {
                return self.unsupported();
            }
            let counts = !self.take("noinc");
            self.arity(1..=1)?;
            let address = self.barrier_address(0)?;
            return Ok(Op::CopyArrive { address, counts });
        }
        if self.take("commit_group") {
            self.arity(0..=0)?;
            return Ok(Op::CopyCommit);
        }
        if self.take("wait_all") {
            self.arity(0..=0)?;
            return Ok(Op::CopyWait { pending: None });
        }
        if self.take("wait_group") {
            self.arity(1..=1)?;
            let Src::Imm(pending) = self.source(0, B32)? else {
                return self.bad("the number of groups must be a number");
            };
            return Ok(Op::CopyWait {
                pending: Some(pending as u32),
            });
        }
        let past_l1 = self.take("cg");
        if !past_l1 && !self.take("ca") {
            return self.unsupported();
        }
        let has_policy = self.take("L2::cache_hint");
        self.parts.retain(|part| !part.starts_with("L2::"));
        if !(self.take("shared") || self.take("shared::cta")) || !self.take("global") {
            return self.unsupported();
        }
        let policies = usize::from(has_policy);
        self.arity(3 + policies..=4 + policies)?;
        // The policy stands last.
        let count = self.count() - policies;
        if has_policy {
            self.source(count, B64)?;
        }
        let Src::Imm(bytes) = self.source(2, B32)? else {
            return self.bad("the size must be a number");
        };
        let allowed: &[u64] = if past_l1 { &[16] } else { &[4, 8, 16] };
        if !allowed.contains(&bytes) {
            return self.bad(format!("copies of {bytes} bytes do not exist here"));
        }
        let size = match count {
            4 => Some(self.source(3, B32)?),
            _ => None,
        };
        Ok(Op::Copy {
            to: self.address(0, Space::Shared)?,
            from: self.address(1, Space::Global)?,
            bytes: bytes as u32,
            size,
        })
    }
}
