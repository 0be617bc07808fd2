//! Decoding of barriers in shared memory and of fences between proxies.

use smallvec::SmallVec;

use super::{Decoder, Result};
use crate::emu::error::Space;
use crate::emu::inst::{Address, Dst, Mods, Op, PhaseOp, Src};
use crate::emu::mbarrier::MBarrier;
use crate::emu::race::Observer;
use crate::emu::types::{Type, TypeKind};

pub(super) const B32: Type = Type {
    kind: TypeKind::Bits,
    bits: 32,
    packed: false,
};
pub(super) const B64: Type = Type {
    kind: TypeKind::Bits,
    bits: 64,
    packed: false,
};
const NOWHERE: Dst = Dst {
    reg: Dst::SINK,
    mask: 0,
};

fn pending(_: &Mods, operands: &[u64; 4]) -> u64 {
    MBarrier::pending_of(operands[0])
}

impl<'a> Decoder<'_, 'a> {
    /// The address of a barrier: shared memory, or generic.
    pub(super) fn barrier_address(&mut self, index: usize) -> Result<Address> {
        let space = self.take_with(|part| match part {
            "shared" | "shared::cta" => Some(Space::Shared),
            "shared::cluster" => Some(Space::Cluster),
            _ => None,
        });
        self.address(index, space.unwrap_or(Space::Generic))
    }

    pub(super) fn mbarrier(&mut self) -> Result<Op> {
        if self.take("pending_count") {
            self.take("b64");
            self.arity(2..=2)?;
            let src = [self.source(1, B64)?, Src::Imm(0), Src::Imm(0), Src::Imm(0)];
            return Ok(Op::Lane {
                f: pending,
                mods: Mods::new(B64),
                dst: self.dest(0, B32)?,
                src,
                count: 1,
                packed: false,
            });
        }
        let is_relaxed = self.take("relaxed");
        let _ = self.take("release") | self.take("acquire");
        let (is_narrow, is_wide) = (self.take("cta"), self.take("cluster"));
        if !self.take("b64") {
            return self.bad("the type is `.b64`");
        }
        let waits = match (self.take("test_wait"), self.take("try_wait")) {
            (true, _) => Some(false),
            (_, true) => Some(true),
            _ => None,
        };
        if let Some(blocks) = waits {
            let by_parity = self.take("parity");
            // How long to wait may follow.
            self.arity(3..=if blocks { 4 } else { 3 })?;
            let address = self.barrier_address(1)?;
            return Ok(Op::Phase {
                op: PhaseOp::Wait {
                    by_parity,
                    blocks,
                    acquires: !is_relaxed,
                    is_narrow: !is_wide,
                },
                address,
                value: self.source(2, if by_parity { B32 } else { B64 })?,
                dst: NOWHERE,
                pred: self.pred_dest_of(self.operand(0)?)?,
            });
        }
        let drops = self.take("arrive_drop");
        if drops || self.take("arrive") {
            return self.arrival(drops, (!is_relaxed, is_narrow));
        }
        let op = if self.take("init") {
            PhaseOp::Init
        } else if self.take("inval") {
            PhaseOp::Invalidate
        } else if self.take("expect_tx") {
            PhaseOp::Expect
        } else if self.take("complete_tx") {
            PhaseOp::Complete
        } else {
            return self.unsupported();
        };
        let has_value = op != PhaseOp::Invalidate;
        let operands = 1 + usize::from(has_value);
        self.arity(operands..=operands)?;
        let value = match has_value {
            true => self.source(1, B32)?,
            false => Src::Imm(0),
        };
        Ok(Op::Phase {
            op,
            address: self.barrier_address(0)?,
            value,
            dst: NOWHERE,
            pred: None,
        })
    }

    fn arrival(&mut self, drops: bool, (releases, is_narrow): (bool, bool)) -> Result<Op> {
        let expects = self.take("expect_tx");
        let may_complete = !self.take("noComplete");
        let is_remote = self.parts.contains(&"shared::cluster");
        self.arity(if expects || !may_complete {
            3..=3
        } else {
            2..=3
        })?;
        let dst = self.dest(0, B64)?;
        if is_remote && dst.reg != Dst::SINK {
            return self.bad("an arrival in a cluster gives no state: write `_`");
        }
        let value = match self.count() {
            3 => self.source(2, B32)?,
            _ => Src::Imm(1),
        };
        Ok(Op::Phase {
            op: PhaseOp::Arrive {
                expects,
                drops,
                may_complete,
                releases,
                is_narrow,
            },
            address: self.barrier_address(1)?,
            value,
            dst,
            pred: None,
        })
    }

    /// `fence` with `.proxy` or `.mbarrier_init`.
    pub(super) fn proxy_fence(&mut self) -> Result<Op> {
        if self.take("mbarrier_init") {
            if !self.take("release") || !self.take("cluster") {
                return self.bad("`.release.cluster` is missing");
            }
            self.arity(0..=0)?;
            let views = SmallVec::from_slice(&[Observer::Barriers]);
            return Ok(Op::ProxyFence { views });
        }
        self.take("proxy");
        if self.take("alias") {
            return Ok(Op::Nop);
        }
        if self.take("tensormap::generic") {
            let is_acquire = self.take("acquire");
            if !is_acquire && !self.take("release") {
                return self.bad("`.acquire` or `.release` is missing");
            }
            let scopes = ["cta", "cluster", "gpu", "sys"];
            if !scopes.iter().any(|scope| self.take(scope)) {
                return self.bad("a scope is missing");
            }
            if is_acquire {
                self.arity(2..=2)?;
                self.address(0, Space::Generic)?;
            } else {
                self.arity(0..=0)?;
            }
            let views = SmallVec::from_slice(&[Observer::Maps]);
            return Ok(Op::ProxyFence { views });
        }
        if !self.take("async") {
            return self.unsupported();
        }
        self.arity(0..=0)?;
        let shared = self.take("shared::cta") | self.take("shared::cluster");
        let views: &[Observer] = match (shared, self.take("global")) {
            (true, _) => &[Observer::Shared, Observer::Barriers],
            (false, true) => &[Observer::Global],
            (false, false) => &[Observer::Shared, Observer::Barriers, Observer::Global],
        };
        Ok(Op::ProxyFence {
            views: SmallVec::from_slice(views),
        })
    }
}
