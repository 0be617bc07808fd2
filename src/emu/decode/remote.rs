//! Decoding of `st.async` and `red.async`: words that go to shared memory of a cluster and signal a barrier there.

use super::{Decoder, Result, reduction};
use crate::emu::error::Space;
use crate::emu::inst::{AtomicOp, Op, Remote, Sources};
use crate::emu::types::TypeKind;

impl Decoder<'_, '_> {
    /// The instruction, whose `.async` is taken.
    pub(super) fn remote(&mut self) -> Result<Op> {
        let reduces = self.name == "red";
        if reduces {
            if !self.take("relaxed") || !self.take("cluster") {
                return self.bad("`.relaxed.cluster` is missing");
            }
        } else {
            self.take("weak");
        }
        self.take("shared::cluster");
        if !self.take("mbarrier::complete_tx::bytes") {
            return self.bad("`.mbarrier::complete_tx::bytes` is missing");
        }
        let op = match reduces {
            false => None,
            true => {
                let op = self.take_with(reduction);
                if op.is_none() {
                    return self.bad("an operation is missing");
                }
                op
            }
        };
        let count = self
            .take_with(|part| match part {
                "v2" if !reduces => Some(2),
                "v4" if !reduces => Some(4),
                _ => None,
            })
            .unwrap_or(1);
        let ty = self.ty()?;
        let is_word = |kinds: &[TypeKind]| ty.bits == 32 && kinds.contains(&ty.kind);
        let is_allowed = !ty.packed
            && match op {
                None => {
                    let kinds = [
                        TypeKind::Bits,
                        TypeKind::Unsigned,
                        TypeKind::Signed,
                        TypeKind::Float,
                    ];
                    matches!(ty.bits, 32 | 64) && kinds.contains(&ty.kind)
                }
                Some(AtomicOp::Add) => {
                    is_word(&[TypeKind::Unsigned, TypeKind::Signed])
                        || ty.bits == 64 && ty.kind == TypeKind::Unsigned
                }
                Some(AtomicOp::Min | AtomicOp::Max) => {
                    is_word(&[TypeKind::Unsigned, TypeKind::Signed])
                }
                Some(AtomicOp::Increment | AtomicOp::Decrement) => is_word(&[TypeKind::Unsigned]),
                Some(_) => is_word(&[TypeKind::Bits]),
            };
        if !is_allowed {
            return self.unsupported();
        }
        self.arity(3..=3)?;
        let elements = self.vector_of(1, count, "sources")?;
        let src: Result<Sources> = elements
            .iter()
            .map(|element| self.source_of(element, ty, true))
            .collect();
        Ok(Op::Remote(Box::new(Remote {
            op,
            ty,
            src: src?,
            address: self.address(0, Space::Cluster)?,
            barrier: self.address(2, Space::Cluster)?,
        })))
    }
}
