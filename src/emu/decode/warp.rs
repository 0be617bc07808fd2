//! Decoding of branches, barriers and everything that lanes do together.

use super::{Decoder, Result};
use crate::emu::inst::{BarrierKind, BoolOp, Dst, Op, ReduxOp, ShuffleMode, Src, VoteMode};
use crate::emu::types::{Type, TypeKind};

const B32: Type = Type {
    kind: TypeKind::Bits,
    bits: 32,
    packed: false,
};

impl<'a> Decoder<'_, 'a> {
    pub(super) fn control(&mut self) -> Result<Op> {
        match self.name {
            "bra" => {
                let uniform = self.take("uni");
                self.arity(1..=1)?;
                Ok(Op::Branch {
                    target: self.target(0)?,
                    uniform,
                })
            }
            "ret" | "exit" => {
                self.take("uni");
                self.arity(0..=0)?;
                Ok(Op::Exit)
            }
            "trap" | "brkpt" => Ok(Op::Trap),
            // Hints about time and about other grids; one grid runs at a time.
            "nanosleep" | "pmevent" => {
                self.parts.clear();
                Ok(Op::Nop)
            }
            "griddepcontrol" => {
                self.arity(0..=0)?;
                if !self.take("launch_dependents") && !self.take("wait") {
                    return self.bad("`.launch_dependents` or `.wait` is missing");
                }
                Ok(Op::Nop)
            }
            "call" => {
                self.parts.clear();
                Ok(Op::Unsupported)
            }
            "bar" | "barrier" => self.barrier(),
            "shfl" => self.shuffle(),
            "vote" => self.vote(),
            "match" => self.match_(),
            "redux" => self.redux(),
            "activemask" => {
                let ty = self.ty()?;
                self.arity(1..=1)?;
                Ok(Op::ActiveMask {
                    dst: self.dest(0, ty)?,
                })
            }
            "elect" => {
                self.take("sync");
                self.arity(2..=2)?;
                let (dst, pred) = self.dest_pair(0)?;
                let dst = self.dest_of(dst, B32, false)?;
                let Some(Some(pred)) = pred.map(|pred| self.pred_dest_of(pred)).transpose()? else {
                    return self.bad("a predicate destination is wanted");
                };
                Ok(Op::Elect {
                    dst,
                    pred,
                    mask: self.source(1, B32)?,
                })
            }
            _ => self.unsupported(),
        }
    }

    fn barrier(&mut self) -> Result<Op> {
        if self.take("warp") {
            self.take("sync");
            self.arity(1..=1)?;
            return Ok(Op::WarpBarrier {
                mask: self.source(0, B32)?,
            });
        }
        if self.take("cluster") {
            return self.cluster_barrier();
        }
        self.take("cta");
        // `bar` is the aligned form of `barrier`.
        let aligned = self.take("aligned") | (self.name == "bar");
        if self.take("red") {
            return self.barrier_reduction(aligned);
        }
        let kind = if self.take("sync") {
            BarrierKind::Sync
        } else if self.take("arrive") {
            BarrierKind::Arrive
        } else {
            return self.bad("`.sync`, `.arrive` or `.red` is missing");
        };
        self.arity(if kind == BarrierKind::Arrive {
            2..=2
        } else {
            1..=2
        })?;
        let count = if self.count() == 2 {
            Some(self.source(1, B32)?)
        } else {
            None
        };
        let id = self.source(0, B32)?;
        if matches!(id, Src::Imm(16..)) {
            return self.bad("the number of a barrier is 0 to 15");
        }
        if matches!(count, Some(Src::Imm(threads)) if threads == 0 || threads % 32 != 0) {
            return self.bad("a barrier waits for a multiple of 32 threads");
        }
        Ok(Op::Barrier {
            kind,
            aligned,
            id,
            count,
        })
    }

    fn cluster_barrier(&mut self) -> Result<Op> {
        let aligned = self.take("aligned");
        self.arity(0..=0)?;
        if self.take("wait") {
            self.take("acquire");
            return Ok(Op::ClusterWait { aligned });
        }
        if !self.take("arrive") {
            return self.bad("`.arrive` or `.wait` is missing");
        }
        let relaxed = self.take("relaxed");
        self.take("release");
        Ok(Op::ClusterArrive {
            aligned,
            releases: !relaxed,
        })
    }

    fn barrier_reduction(&mut self, aligned: bool) -> Result<Op> {
        self.arity(3..=4)?;
        let count = if self.count() == 4 {
            Some(self.source(2, B32)?)
        } else {
            None
        };
        let value = self.pred_source(self.count() - 1)?;
        let kind = if self.take("popc") {
            let ty = self.ty()?;
            BarrierKind::Count(self.dest(0, ty)?, value)
        } else {
            let op = if self.take("and") {
                BoolOp::And
            } else if self.take("or") {
                BoolOp::Or
            } else {
                return self.bad("`.popc`, `.and` or `.or` is missing");
            };
            self.take("pred");
            let Some(dst) = self.pred_dest_of(self.operand(0)?)? else {
                return self.bad("a predicate destination is wanted");
            };
            BarrierKind::Reduce(op, dst, value)
        };
        Ok(Op::Barrier {
            kind,
            aligned,
            id: self.source(1, B32)?,
            count,
        })
    }

    /// The `.sync` forms are the only ones since sm_70.
    fn sync(&mut self) -> Result<()> {
        if self.take("sync") {
            Ok(())
        } else {
            self.unsupported()
        }
    }

    fn shuffle(&mut self) -> Result<Op> {
        self.sync()?;
        let mode = self.take_with(|part| {
            Some(match part {
                "up" => ShuffleMode::Up,
                "down" => ShuffleMode::Down,
                "bfly" => ShuffleMode::Butterfly,
                "idx" => ShuffleMode::Index,
                _ => return None,
            })
        });
        let Some(mode) = mode else {
            return self.bad("a mode is missing");
        };
        let ty = self.ty()?;
        self.arity(5..=5)?;
        let (dst, pred) = self.dest_pair(0)?;
        let pred = match pred {
            Some(pred) => self.pred_dest_of(pred)?,
            None => None,
        };
        Ok(Op::Shuffle {
            mode,
            dst: self.dest_of(dst, ty, false)?,
            pred,
            value: self.source(1, ty)?,
            lane: self.source(2, B32)?,
            clamp: self.source(3, B32)?,
            mask: self.source(4, B32)?,
        })
    }

    fn vote(&mut self) -> Result<Op> {
        self.sync()?;
        let mode = self.take_with(|part| {
            Some(match part {
                "all" => VoteMode::All,
                "any" => VoteMode::Any,
                "uni" => VoteMode::Uniform,
                "ballot" => VoteMode::Ballot,
                _ => return None,
            })
        });
        let Some(mode) = mode else {
            return self.bad("a mode is missing");
        };
        self.ty()?;
        self.arity(3..=3)?;
        let (value, mask) = (self.pred_source(1)?, self.source(2, B32)?);
        let nothing = Dst {
            reg: Dst::SINK,
            mask: 0,
        };
        if mode == VoteMode::Ballot {
            return Ok(Op::Vote {
                mode,
                dst: self.dest(0, B32)?,
                pred: Dst::SINK,
                value,
                mask,
            });
        }
        let pred = self.pred_dest_of(self.operand(0)?)?.unwrap_or(Dst::SINK);
        Ok(Op::Vote {
            mode,
            dst: nothing,
            pred,
            value,
            mask,
        })
    }

    fn match_(&mut self) -> Result<Op> {
        self.sync()?;
        let all = self.take("all");
        if !all && !self.take("any") {
            return self.bad("`.any` or `.all` is missing");
        }
        let ty = self.ty()?;
        self.arity(3..=3)?;
        let (dst, pred) = self.dest_pair(0)?;
        let pred = match pred {
            Some(pred) => self.pred_dest_of(pred)?,
            None => None,
        };
        Ok(Op::Match {
            all,
            dst: self.dest_of(dst, B32, false)?,
            pred,
            value: self.source(1, ty)?,
            mask: self.source(2, B32)?,
        })
    }

    fn redux(&mut self) -> Result<Op> {
        self.sync()?;
        let op = self.take_with(|part| {
            Some(match part {
                "add" => ReduxOp::Add,
                "min" => ReduxOp::Min,
                "max" => ReduxOp::Max,
                "and" => ReduxOp::And,
                "or" => ReduxOp::Or,
                "xor" => ReduxOp::Xor,
                _ => return None,
            })
        });
        let Some(op) = op else {
            return self.bad("an operation is missing");
        };
        let ty = self.ty()?;
        let (nan, abs) = (self.take("NaN"), self.take("abs"));
        let float = ty.is_f32() && matches!(op, ReduxOp::Min | ReduxOp::Max);
        if !float && (!ty.is_integer() || ty.bits != 32 || nan || abs) {
            return self.unsupported();
        }
        self.arity(3..=3)?;
        Ok(Op::Redux {
            op,
            ty,
            nan,
            abs,
            dst: self.dest(0, ty)?,
            value: self.source(1, ty)?,
            mask: self.source(2, B32)?,
        })
    }
}
