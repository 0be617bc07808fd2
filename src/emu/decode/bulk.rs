//! Decoding of bulk copies, their groups, and of changes of tensor maps.

use super::mbarrier::{B32, B64};
use super::{Decoder, Result, reduction};
use crate::emu::error::Space;
use crate::emu::inst::{AtomicOp, Bulk, BulkKind, Op, Src};
use crate::emu::tensor_map::MapField;
use crate::emu::types::{Type, TypeKind};

const B16: Type = Type {
    kind: TypeKind::Bits,
    bits: 16,
    packed: false,
};

impl<'a> Decoder<'_, 'a> {
    /// `cp.async.bulk` and `cp.reduce.async.bulk`, whose first names are taken.
    pub(super) fn bulk(&mut self, reduces: bool) -> Result<Op> {
        if self.take("commit_group") {
            self.arity(0..=0)?;
            return Ok(Op::BulkCommit);
        }
        if self.take("wait_group") {
            let reads = self.take("read");
            self.arity(1..=1)?;
            let Src::Imm(pending) = self.source(0, B32)? else {
                return self.bad("the number of groups must be a number");
            };
            let pending = pending as u32;
            return Ok(Op::BulkWait { pending, reads });
        }
        let is_tensor = self.take("tensor");
        let rank = self.take_with(|part| match part {
            "1d" => Some(1),
            "2d" => Some(2),
            "3d" => Some(3),
            "4d" => Some(4),
            "5d" => Some(5),
            _ => None,
        });
        if is_tensor != rank.is_some() {
            return self.bad("a tensor has `.1d` to `.5d`");
        }
        if self.parts.iter().any(|part| part.starts_with("im2col")) {
            return self.bad("copies by im2col are not emulated, those of `.tile` are");
        }
        self.take("tile");
        if self.take("prefetch") {
            return self.bulk_prefetch(rank);
        }
        // Where data go is named before where they come from.
        let spaces: Vec<&str> = self.parts.iter().copied().filter(|p| is_space(p)).collect();
        self.parts.retain(|part| !is_space(part));
        let (is_load, from) = match spaces[..] {
            ["shared::cluster" | "shared::cta", "global"] => (true, Space::Global),
            ["global", "shared::cta"] => (false, Space::Global),
            ["shared::cluster", "shared::cta"] if !is_tensor => (true, Space::Shared),
            _ => return self.unsupported(),
        };
        let sends = from == Space::Shared;
        let has_policy = self.take("L2::cache_hint");
        let is_multicast = self.take("multicast::cluster");
        let signals = self.take("mbarrier::complete_tx::bytes");
        let groups = self.take("bulk_group");
        let is_wrong = match is_load {
            true => !signals || groups || reduces && !sends,
            false => !groups || signals,
        };
        if is_wrong {
            return self.bad("loads signal an mbarrier, stores and reductions form groups");
        }
        if sends && (has_policy || is_multicast) {
            return self.bad("what goes from shared memory to shared memory has no cache policy and one destination");
        }
        let mut reduction = None;
        let kind = match (is_load, reduces) {
            (true, _) if sends => {
                if reduces && let BulkKind::Reduce(op, Some(ty)) = self.reduction(false)? {
                    if !is_in_shared(op, ty) {
                        return self.unsupported();
                    }
                    reduction = Some((op, ty));
                }
                BulkKind::Send
            }
            (true, _) => BulkKind::Load,
            (false, false) => BulkKind::Store,
            (false, true) => self.reduction(is_tensor)?,
        };
        let (to_shared, to_global) = if is_load { (0, 1) } else { (1, 0) };
        let mut next = 2;
        let mut operand = || {
            next += 1;
            next - 1
        };
        let size = match is_tensor {
            true => None,
            false => Some(self.source(operand(), B32)?),
        };
        let in_cluster = match spaces[0] {
            "shared::cluster" => Space::Cluster,
            _ => Space::Shared,
        };
        let shared = self.address(to_shared, in_cluster)?;
        let (global, coordinates) = match rank {
            None => (self.address(to_global, from)?, None),
            Some(rank) => {
                let (map, all) = self.place_in_tensor(to_global, rank)?;
                (map, Some(all))
            }
        };
        let barrier = match is_load {
            true => Some(self.address(operand(), in_cluster)?),
            false => None,
        };
        let multicast = match is_multicast && is_load {
            true => Some(self.source(operand(), B16)?),
            false => None,
        };
        if has_policy {
            self.source(operand(), B64)?;
        }
        let count = operand();
        self.arity(count..=count)?;
        Ok(Op::Bulk(Box::new(Bulk {
            kind,
            shared,
            global,
            size,
            coordinates,
            barrier,
            multicast,
            reduction,
        })))
    }

    fn reduction(&mut self, is_tensor: bool) -> Result<BulkKind> {
        let Some(op) = self.take_with(reduction) else {
            return self.bad("an operation is missing");
        };
        if is_tensor {
            return Ok(BulkKind::Reduce(op, None));
        }
        self.take("noftz");
        let ty = self.ty()?;
        let is_half = matches!((ty.kind, ty.bits), (TypeKind::Float | TypeKind::Bfloat, 16));
        let is_number = |kind| ty.kind == kind && matches!(ty.bits, 32 | 64);
        let is_allowed = match op {
            // There are no sums of s64, as for `red`.
            AtomicOp::Add if is_number(TypeKind::Signed) => ty.bits == 32,
            AtomicOp::Add => is_half || is_number(TypeKind::Unsigned) || is_number(TypeKind::Float),
            AtomicOp::Min | AtomicOp::Max => {
                is_half || is_number(TypeKind::Unsigned) || is_number(TypeKind::Signed)
            }
            AtomicOp::Increment | AtomicOp::Decrement => {
                ty.kind == TypeKind::Unsigned && ty.bits == 32
            }
            _ => is_number(TypeKind::Bits),
        };
        if !is_allowed || ty.packed {
            return self.unsupported();
        }
        Ok(BulkKind::Reduce(op, Some(ty)))
    }

    /// `tensormap.replace`.
    pub(super) fn tensor_map(&mut self) -> Result<Op> {
        if !self.take("replace") || !self.take("tile") {
            return self.unsupported();
        }
        let field = self.take_with(|part| {
            Some(match part {
                "global_address" => MapField::Address,
                "rank" => MapField::Rank,
                "box_dim" => MapField::Box,
                "global_dim" => MapField::Extent,
                "global_stride" => MapField::Stride,
                "element_stride" => MapField::ElementStride,
                "elemtype" => MapField::Element,
                "swizzle_mode" => MapField::Swizzle,
                "fill_mode" => MapField::Fill,
                _ => return None,
            })
        });
        let Some(field) = field else {
            return self.unsupported();
        };
        let space = self.take_with(|part| match part {
            "global" => Some(Space::Global),
            "shared" | "shared::cta" => Some(Space::Shared),
            _ => None,
        });
        self.take("b1024");
        let ty = self.ty()?;
        let wide = matches!(field, MapField::Address | MapField::Stride);
        if ty != if wide { B64 } else { B32 } {
            return self.bad("the type does not fit the field");
        }
        let has_index = matches!(
            field,
            MapField::Box | MapField::Extent | MapField::Stride | MapField::ElementStride
        );
        let count = 2 + usize::from(has_index);
        self.arity(count..=count)?;
        let index = match has_index {
            false => 0,
            true => match self.source(1, B32)? {
                Src::Imm(index) if field.place(index as u32).is_some() => index as u32,
                _ => return self.bad("the number of a dimension is wanted"),
            },
        };
        Ok(Op::ReplaceMap {
            field,
            index,
            address: self.address(0, space.unwrap_or(Space::Generic))?,
            value: self.source(count - 1, ty)?,
        })
    }
}

/// Whether there is such a reduction into shared memory.
fn is_in_shared(op: AtomicOp, ty: Type) -> bool {
    let is_number = matches!(ty.kind, TypeKind::Unsigned | TypeKind::Signed);
    match op {
        AtomicOp::Add => is_number,
        AtomicOp::Min | AtomicOp::Max => is_number && ty.bits == 32,
        AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => ty.bits == 32,
        _ => true,
    }
}

fn is_space(part: &str) -> bool {
    matches!(part, "global" | "shared::cluster" | "shared::cta")
}
