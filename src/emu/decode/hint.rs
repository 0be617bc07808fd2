//! Decoding of what only advises: prefetches, priorities in caches, and `discard`, which gives data up.

use super::mbarrier::{B32, B64};
use super::{Decoder, Result};
use crate::emu::error::Space;
use crate::emu::inst::{Hint, HintKind, Op, Sources, Src};
use crate::emu::module::Operand;

/// Bytes of a line, the only size that `discard` and `applypriority` take.
const LINE: u64 = 128;

impl Decoder<'_, '_> {
    /// `prefetch`, `prefetchu`, `applypriority`, `discard`.
    pub(super) fn hint(&mut self) -> Result<Op> {
        let space = self.take_with(|part| match part {
            "global" => Some(Space::Global),
            "local" => Some(Space::Local),
            "const" => Some(Space::Const),
            "param" | "param::entry" => Some(Space::Param),
            _ => None,
        });
        let is_map = self.name == "prefetch" && self.take("tensormap");
        let (levels, spaces): (&[&str], &[Space]) = match self.name {
            _ if is_map => (&[], &[Space::Const, Space::Param]),
            "prefetchu" => (&["L1"], &[]),
            "discard" => (&["L2"], &[Space::Global]),
            "applypriority" => (&["L2::evict_normal"], &[Space::Global]),
            _ => (
                &["L1", "L2", "L2::evict_last", "L2::evict_normal"],
                &[Space::Global, Space::Local],
            ),
        };
        if let Some(space) = space
            && !spaces.contains(&space)
        {
            return self.bad(format!("the {space} space is none that it takes"));
        }
        if !is_map && !levels.iter().any(|level| self.take(level)) {
            let levels: Vec<String> = levels.iter().map(|level| format!("`.{level}`")).collect();
            return self.bad(format!("{} is missing", levels.join(" or ")));
        }
        let is_line = matches!(self.name, "discard" | "applypriority");
        let count = 1 + usize::from(is_line);
        self.arity(count..=count)?;
        if is_line && self.source(1, B32)? != Src::Imm(LINE) {
            return self.bad(format!("the size must be {LINE}"));
        }
        Ok(Op::Hint(Box::new(Hint {
            address: self.address(0, space.unwrap_or(Space::Generic))?,
            kind: match self.name {
                _ if is_map => HintKind::Map,
                "discard" => HintKind::Discard,
                "applypriority" => HintKind::Line,
                _ => HintKind::Any,
            },
        })))
    }

    /// `cp.async.bulk.prefetch`, whose names up to the rank are taken.
    pub(super) fn bulk_prefetch(&mut self, rank: Option<usize>) -> Result<Op> {
        if !self.take("L2") || !self.take("global") {
            return self.bad("`.L2.global` is missing");
        }
        let has_policy = self.take("L2::cache_hint");
        let (address, kind, policy) = match rank {
            None => {
                let size = self.source(1, B32)?;
                (self.address(0, Space::Global)?, HintKind::Bytes(size), 2)
            }
            Some(rank) => {
                let (map, all) = self.place_in_tensor(0, rank)?;
                (map, HintKind::Box(all), 1)
            }
        };
        if has_policy {
            self.source(policy, B64)?;
        }
        let count = policy + usize::from(has_policy);
        self.arity(count..=count)?;
        Ok(Op::Hint(Box::new(Hint { address, kind })))
    }

    /// A tensor map with coordinates.
    pub(super) fn place_in_tensor(
        &mut self,
        index: usize,
        rank: usize,
    ) -> Result<(crate::emu::inst::Address, Sources)> {
        let Operand::Tensor { map, coordinates } = self.operand(index)?.clone() else {
            return self.bad("a tensor map with coordinates in brackets is wanted");
        };
        let all: Result<Sources> = self
            .elements(&coordinates)
            .iter()
            .map(|coordinate| self.source_of(coordinate, B32, false))
            .collect();
        let all = all?;
        if all.len() != rank {
            return self.bad(format!("{} coordinates of {rank} dimensions", all.len()));
        }
        Ok((self.address_of(&map, Space::Generic)?, all))
    }
}
