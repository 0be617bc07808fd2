//! The decoded form of an instruction: names, types and modifiers are resolved once, so that
//! executing it for a warp is one match and a loop over lanes.

use smallvec::SmallVec;

use super::error::Space;
use super::race::Observer;
use super::tensor_map::MapField;
use super::types::{Type, TypeKind};
use crate::num::Rounding;

/// A decoded instruction.
#[derive(Debug)]
pub(super) struct Inst {
    pub(super) op: Op,
    pub(super) guard: Option<PredSrc>,
    pub(super) line: u32,
    /// The opcode as written, for messages.
    pub(super) opcode: Box<str>,
    /// Data registers that it names; kept only where products are in flight beside other instructions.
    pub(super) registers: Box<[u32]>,
}

/// Modifiers that lane functions look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mods {
    pub(super) ftz: bool,
    pub(super) sat: bool,
    pub(super) nan: bool,
    pub(super) relu: bool,
    /// `.satfinite` of conversions.
    pub(super) finite: bool,
    /// `.xorsign.abs` of min and max; `.shiftamt` of bfind; `.wrap` of shf.
    pub(super) flag: bool,
    pub(super) rounding: Rounding,
    /// `.rni` and its like: the result is integral.
    pub(super) integral: bool,
    /// The type of the operation, or of the result of a conversion.
    pub(super) ty: Type,
    /// The second type, where there is one.
    pub(super) from: Type,
    /// A small number: the table of lop3, the mode of prmt, a comparison.
    pub(super) imm: u32,
}

impl Mods {
    pub(super) fn new(ty: Type) -> Mods {
        Mods {
            ftz: false,
            sat: false,
            nan: false,
            relu: false,
            finite: false,
            flag: false,
            rounding: Rounding::NearestEven,
            integral: false,
            ty,
            from: Type {
                kind: TypeKind::Bits,
                bits: 32,
                packed: false,
            },
            imm: 0,
        }
    }
}

/// Computes one lane's result from up to four operands.
pub(super) type LaneFn = fn(&Mods, &[u64; 4]) -> u64;
/// Decides one lane's predicate.
pub(super) type TestFn = fn(&Mods, u64, u64) -> bool;

/// A data operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Src {
    Reg(u32),
    Imm(u64),
    Special(Special),
    /// Address of a module variable plus an offset.
    Variable(u32, i64),
}

/// A data destination: results are cut to `mask`, the width of the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dst {
    /// [`Dst::SINK`] discards.
    pub(super) reg: u32,
    pub(super) mask: u64,
}

impl Dst {
    pub(super) const SINK: u32 = u32::MAX;
}

/// A predicate operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PredSrc {
    Reg { index: u32, negated: bool },
    Const(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoolOp {
    And,
    Or,
    Xor,
}

/// An address operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    pub(super) base: Src,
    pub(super) offset: i64,
    pub(super) space: Space,
}

/// How strong a memory access is, in the terms of the memory model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryOrder {
    /// Relaxed or more: never races with another strong access.
    pub(super) strong: bool,
    pub(super) acquire: bool,
    pub(super) release: bool,
    pub(super) scope: Scope,
    /// `.nc`: nobody writes what is read while the kernel runs.
    pub(super) constant: bool,
}

/// Among whom a strong access or a fence orders; the widest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    Cta,
    Cluster,
    Device,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtomicOp {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exchange,
    CompareSwap,
    Increment,
    Decrement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShuffleMode {
    Up,
    Down,
    Butterfly,
    Index,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VoteMode {
    All,
    Any,
    Uniform,
    Ballot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReduxOp {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}

/// What a CTA barrier instruction does beyond counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BarrierKind {
    Sync,
    Arrive,
    /// `.red.popc`: the number of threads whose predicate holds.
    Count(Dst, PredSrc),
    /// `.red.and`, `.red.or`: into a predicate.
    Reduce(BoolOp, u32, PredSrc),
}

/// Elements of a vector access.
pub(super) type Sources = SmallVec<[Src; 4]>;
/// Destinations of a vector load.
pub(super) type Dests = SmallVec<[Dst; 4]>;

/// A product of matrices: extents and types.
#[derive(Clone, Copy, Debug)]
pub(super) struct MmaShape {
    /// Rows, columns, and the summed dimension.
    pub(super) shape: [u32; 3],
    pub(super) a: Type,
    pub(super) b: Type,
    /// Of accumulator and result.
    pub(super) sum: Type,
    /// Whether the left operand is given by columns, and the right one by rows; only of four products at once and of
    /// warpgroups.
    pub(super) transposed: [bool; 2],
}

impl MmaShape {
    /// Products of matrices that one instruction computes: of `m8n8k4` in f16 one for each quad pair of the warp.
    pub(super) fn products(&self) -> u32 {
        if self.shape == [8, 8, 4] && self.a.bits == 16 {
            4
        } else {
            1
        }
    }
}

/// What an instruction does with a barrier in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PhaseOp {
    /// The operand is the number of arrivals.
    Init,
    Invalidate,
    /// The operand is a number of bytes.
    Expect,
    Complete,
    /// The operand is a number of arrivals, or with `expects` of bytes.
    Arrive {
        expects: bool,
        drops: bool,
        may_complete: bool,
        releases: bool,
        /// Its scope is the CTA, as the text says: who waits in another one learns nothing.
        is_narrow: bool,
    },
    /// The operand is the parity of a phase, or the state that an arrival gave.
    Wait {
        by_parity: bool,
        blocks: bool,
        acquires: bool,
        /// Its scope is the CTA, as it is where the text names none: what peers release it does not take over.
        is_narrow: bool,
    },
}

/// What a bulk copy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BulkKind {
    /// From device memory to shared memory.
    Load,
    /// From the CTA's shared memory to that of one of its cluster.
    Send,
    Store,
    /// Shared memory is combined into device memory; the type of a tensor is that of its map.
    Reduce(AtomicOp, Option<Type>),
}

/// A bulk copy: one lane moves many bytes.
#[derive(Debug)]
pub(super) struct Bulk {
    pub(super) kind: BulkKind,
    pub(super) shared: Address,
    /// Of device memory, or of the tensor map; of the CTA's shared memory that is sent.
    pub(super) global: Address,
    /// Of a copy without tensor map.
    pub(super) size: Option<Src>,
    /// Of a place in a tensor, innermost first.
    pub(super) coordinates: Option<Sources>,
    /// Of what fills shared memory.
    pub(super) barrier: Option<Address>,
    /// CTAs of the cluster that get the data.
    pub(super) multicast: Option<Src>,
    /// What is sent is combined with what is there.
    pub(super) reduction: Option<(AtomicOp, Type)>,
}

/// `st.async` and `red.async`: words for shared memory of a cluster, which signal a barrier there.
#[derive(Debug)]
pub(super) struct Remote {
    /// Of a reduction.
    pub(super) op: Option<AtomicOp>,
    pub(super) ty: Type,
    pub(super) src: Sources,
    pub(super) address: Address,
    pub(super) barrier: Address,
}

/// What only advises, see `exec::hint`.
#[derive(Debug)]
pub(super) struct Hint {
    /// Of device memory, or of a tensor map.
    pub(super) address: Address,
    pub(super) kind: HintKind,
}

#[derive(Debug)]
pub(super) enum HintKind {
    /// Of any place.
    Any,
    /// Of a line of the cache.
    Line,
    /// What the line holds is given up.
    Discard,
    /// Of so many bytes.
    Bytes(Src),
    /// Of a tensor map.
    Map,
    /// Of a box at these coordinates.
    Box(Sources),
}

/// Where a product of a warpgroup finds its left operand.
#[derive(Debug)]
pub(super) enum Left {
    /// In shared memory, as this descriptor says.
    Shared(Src),
    Registers(Sources),
}

/// `wgmma.mma_async`: a product that four warps compute together, each of them 16 rows.
#[derive(Debug)]
pub(super) struct GroupProduct {
    pub(super) product: MmaShape,
    /// `.satfinite` of integers.
    pub(super) saturates: bool,
    pub(super) sum: Dests,
    pub(super) a: Left,
    /// The descriptor of the right operand.
    pub(super) b: Src,
    /// Whether the accumulators are added.
    pub(super) adds: PredSrc,
    /// Operands that are taken negative.
    pub(super) negated: [bool; 2],
}

impl GroupProduct {
    /// What tells shapes of products apart, never zero.
    pub(super) fn shape(&self) -> u32 {
        let [_, n, k] = self.product.shape;
        n << 16 | k << 1 | u32::from(self.product.sum.bits == 16)
    }
}

#[derive(Debug)]
pub(super) enum Op {
    /// An instruction on a barrier in shared memory; waits have a predicate, arrivals a state.
    Phase {
        op: PhaseOp,
        address: Address,
        value: Src,
        dst: Dst,
        pred: Option<u32>,
    },
    /// `cp.async.mbarrier.arrive`: an arrival behind the copies of the thread.
    CopyArrive {
        address: Address,
        counts: bool,
    },
    Bulk(Box<Bulk>),
    Hint(Box<Hint>),
    Remote(Box<Remote>),
    BulkCommit,
    /// Waits until at most so many groups are under way; for reads: only until their sources are free.
    BulkWait {
        pending: u32,
        reads: bool,
    },
    /// Makes what a thread knows visible to other proxies.
    ProxyFence {
        views: SmallVec<[Observer; 4]>,
    },
    /// Sets a field of a tensor map; `index` is that of a dimension.
    ReplaceMap {
        field: MapField,
        index: u32,
        address: Address,
        value: Src,
    },
    /// A pure function of up to four operands; `packed` applies it to both halves.
    Lane {
        f: LaneFn,
        mods: Mods,
        dst: Dst,
        src: [Src; 4],
        count: u8,
        packed: bool,
    },
    /// `add.cc` and its family: `f` is told the carry in as operand 3, bit 64 comes out of `carry`.
    Carry {
        subtract: bool,
        carry_in: bool,
        carry_out: bool,
        bits: u32,
        dst: Dst,
        a: Src,
        b: Src,
    },
    Select {
        dst: Dst,
        a: Src,
        b: Src,
        pred: PredSrc,
    },
    /// `setp`, `testp`, `isspacep`: `q` gets the negation, or the upper half's result if packed.
    Compare {
        f: TestFn,
        mods: Mods,
        p: Option<u32>,
        q: Option<u32>,
        a: Src,
        b: Src,
        combine: Option<(BoolOp, PredSrc)>,
    },
    /// `set`: `one` where the test holds.
    Set {
        f: TestFn,
        mods: Mods,
        dst: Dst,
        one: u64,
        a: Src,
        b: Src,
        combine: Option<(BoolOp, PredSrc)>,
    },
    Logic {
        op: BoolOp,
        dst: u32,
        a: PredSrc,
        b: PredSrc,
    },
    Pack {
        dst: Dst,
        parts: Sources,
        bits: u32,
    },
    Unpack {
        dsts: Dests,
        src: Src,
        bits: u32,
    },
    Load {
        address: Address,
        ty: Type,
        dsts: Dests,
        order: MemoryOrder,
    },
    Store {
        address: Address,
        ty: Type,
        src: Sources,
        order: MemoryOrder,
    },
    Atomic {
        address: Address,
        op: AtomicOp,
        ty: Type,
        dsts: Dests,
        src: Sources,
        compare: Src,
        order: MemoryOrder,
    },
    Shuffle {
        mode: ShuffleMode,
        dst: Dst,
        pred: Option<u32>,
        value: Src,
        lane: Src,
        clamp: Src,
        mask: Src,
    },
    Vote {
        mode: VoteMode,
        dst: Dst,
        pred: u32,
        value: PredSrc,
        mask: Src,
    },
    /// `match.sync`; `all` also sets `pred`.
    Match {
        all: bool,
        dst: Dst,
        pred: Option<u32>,
        value: Src,
        mask: Src,
    },
    Redux {
        op: ReduxOp,
        /// An integer type or f32, whose NaN rule is in `nan` and whose magnitudes `abs` takes.
        ty: Type,
        nan: bool,
        abs: bool,
        dst: Dst,
        value: Src,
        mask: Src,
    },
    ActiveMask {
        dst: Dst,
    },
    Elect {
        dst: Dst,
        pred: u32,
        mask: Src,
    },
    WarpBarrier {
        mask: Src,
    },
    Barrier {
        kind: BarrierKind,
        aligned: bool,
        id: Src,
        count: Option<Src>,
    },
    LoadMatrices {
        address: Address,
        dsts: Dests,
        trans: bool,
    },
    StoreMatrices {
        address: Address,
        src: Sources,
        trans: bool,
    },
    /// `movmatrix`.
    TurnMatrix {
        dst: Dst,
        src: Src,
    },
    Multiply {
        product: MmaShape,
        dsts: Dests,
        a: Sources,
        b: Sources,
        c: Sources,
    },
    /// `cp.async` of `bytes` bytes, of which `size` are read and the others zero.
    Copy {
        to: Address,
        from: Address,
        bytes: u32,
        size: Option<Src>,
    },
    CopyCommit,
    /// Waits for all but so many groups; none: for all copies.
    CopyWait {
        pending: Option<u32>,
    },
    GroupProduct(Box<GroupProduct>),
    /// `wgmma.fence`.
    GroupFence,
    /// `wgmma.commit_group`.
    GroupCommit,
    /// `wgmma.wait_group`: all but so many groups of products.
    GroupWait {
        pending: u32,
    },
    /// `mapa`, or without a rank `getctarank`.
    MapAddress {
        dst: Dst,
        address: Src,
        rank: Option<Src>,
        is_generic: bool,
    },
    /// `barrier.cluster.arrive`.
    ClusterArrive {
        aligned: bool,
        releases: bool,
    },
    /// `barrier.cluster.wait`.
    ClusterWait {
        aligned: bool,
    },
    /// `setmaxnreg`.
    Registers {
        more: bool,
        count: u32,
    },
    Fence {
        scope: Scope,
    },
    Branch {
        target: u32,
        uniform: bool,
    },
    Exit,
    Trap,
    Nop,
    /// Known, but not runnable: an error only where it is reached.
    Unsupported,
}

/// Special registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    LaneId,
    WarpId,
    WarpCount,
    SmId,
    SmCount,
    Clock,
    Time,
    DynamicShared,
    TotalShared,
    MaskEq,
    MaskLt,
    MaskLe,
    MaskGt,
    MaskGe,
    ClusterId(u8),
    ClusterCount(u8),
    /// Place in the cluster.
    ClusterCta(u8),
    ClusterShape(u8),
    ClusterRank,
    ClusterSize,
    /// Reads as this number: grid id, environment.
    Constant(u32),
}

impl Special {
    pub(super) fn parse(name: &str) -> Option<Special> {
        let (base, part) = match name.split_once('.') {
            Some((base, "x")) => (base, Some(0)),
            Some((base, "y")) => (base, Some(1)),
            Some((base, "z")) => (base, Some(2)),
            Some(_) => return None,
            None => (name, None),
        };
        if let Some(part) = part {
            return Some(match base {
                "%tid" => Special::Tid(part),
                "%ntid" => Special::Ntid(part),
                "%ctaid" => Special::Ctaid(part),
                "%nctaid" => Special::Nctaid(part),
                "%clusterid" => Special::ClusterId(part),
                "%nclusterid" => Special::ClusterCount(part),
                "%cluster_ctaid" => Special::ClusterCta(part),
                "%cluster_nctaid" => Special::ClusterShape(part),
                _ => return None,
            });
        }
        Some(match base {
            "%laneid" => Special::LaneId,
            "%warpid" => Special::WarpId,
            "%nwarpid" => Special::WarpCount,
            "%smid" => Special::SmId,
            "%nsmid" => Special::SmCount,
            "%gridid" | "%is_explicit_cluster" => Special::Constant(0),
            "%cluster_ctarank" => Special::ClusterRank,
            "%cluster_nctarank" => Special::ClusterSize,
            "%clock" | "%clock64" | "%clock_hi" => Special::Clock,
            "%globaltimer" | "%globaltimer_lo" | "%globaltimer_hi" => Special::Time,
            "%dynamic_smem_size" => Special::DynamicShared,
            "%total_smem_size" | "%aggr_smem_size" => Special::TotalShared,
            "%lanemask_eq" => Special::MaskEq,
            "%lanemask_lt" => Special::MaskLt,
            "%lanemask_le" => Special::MaskLe,
            "%lanemask_gt" => Special::MaskGt,
            "%lanemask_ge" => Special::MaskGe,
            _ if base.starts_with("%envreg") || base.starts_with("%pm") => Special::Constant(0),
            _ => return None,
        })
    }
}
