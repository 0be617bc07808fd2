//! Conversions within a warp: selects, shuffles, selects.
//!
//! # The problem
//!
//! Let `T` map each location `(i, l)` of the result (register, lane; the warp is a parameter) to a
//! location `(j, l')` of the source with the same element:
//!
//! ```text
//! j  = Trr i + Trl l + Trw w
//! l' = Tlr i + Tll l + Tlw w
//! ```
//!
//! A shuffle instruction has each lane offer *one* register and name *one* lane to read. That is a
//! conversion with `l' = M l + const(i)` and `j` a function of `i` and the *offering* lane `l'`.
//!
//! # The factorisation
//!
//! We look for a matrix `B` (lanes to result registers) and write `i = i' + B l`: before the last step,
//! lane `l` holds its registers permuted by exclusive or with `B l`. Then
//!
//! ```text
//! l' = M l + N i' + P w       with  M = Tll + Tlr B,  N = Tlr,  P = Tlw
//! j  = A l' + G i' + Q w      with  A M = Trl + Trr B,  G = Trr + A N,  Q = Trw + A P
//! ```
//!
//! and the conversion is: **select** (permute registers by `A l' + Q w`), **rename** by `G`, **shuffle**
//! register `i'` from lane `l'`, **select** (permute by `B l`). `A` exists exactly if lanes that `M` sends
//! to the same place want the same register. With `M` the identity, which one mixed transposition of a
//! register and a lane bit always allows, the shuffle is `shfl.bfly` by the constant `N i'`, and those
//! with `N i' = 0` are not there: for `m` transpositions of `R` registers `(1 - 2^-m) R` shuffles and
//! `2 m R` selects. (The "swap" schedule of arXiv 2505.23819, here without its case distinctions.)
//!
//! # The choice of B
//!
//! Each column of `M` may be anything in `Tll e_b + U`, where `U` is spanned by the columns of `Tlr` and
//! by the lane parts of the source's relations (replicated sources leave the lane to read open). We
//! take, bit by bit: the identity `e_b` where it is in reach; else a column independent of those taken,
//! which exists whenever any choice of columns is independent; else the lane bit must be a copy, which
//! reads what the lanes it copies read.
//!
//! Where every lane wants other lanes' data alike, as in spreading a row over all lanes, `B = 0` is
//! better if it has an `A` at all: more shuffles, but no selects after them. Both are planned and the
//! cheaper is taken.
//!
//! A permutation by `X` of rank `a` is `a` conditional swaps, each with one predicate: the parity of
//! some lane and warp bits. They are emitted on demand, so registers nobody reads cost nothing.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::ConversionCost;
use crate::linear_layout::gf2::{self, Span};
use crate::linear_layout::layout::{HwDim, LOG2_LANES, LinearLayout};

/// A value of a plan: the source's registers first, then the results of the steps in order.
pub type PlanValue = u16;

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShuffleStep {
    /// Defines one value: `set` in threads where the predicate holds, else `clear`.
    Select {
        /// Index into [`ShufflePlan::predicates`].
        predicate: u16,
        /// Value if it holds.
        set: PlanValue,
        /// Value if not.
        clear: PlanValue,
    },
    /// Defines as many values as it has operands: the operands of the lane that
    /// [`ShufflePlan::lane_map`] and `xor` name. Several operands fit one 32-bit word together; one of 8
    /// bytes takes two instructions.
    Shuffle {
        /// What this lane offers.
        values: SmallVec<[PlanValue; 4]>,
        /// Added to the lane to read from.
        xor: u8,
    },
}

/// Holds in a thread if the number of bits set in `lane & lane_mask` and `warp & warp_mask` is odd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// Lane bits that count.
    pub lane_mask: u32,
    /// Warp bits that count.
    pub warp_mask: u32,
}

/// The lane to read from, as a linear map of the reading thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneMap {
    /// What each lane bit contributes.
    pub lanes: [u8; LOG2_LANES as usize],
    /// What each warp bit contributes.
    pub warps: SmallVec<[u8; 4]>,
}

/// Selects and shuffles that convert a block: see the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShufflePlan {
    /// Registers of the source, which are the first values.
    pub sources: u32,
    /// The predicates that selects use.
    pub predicates: Vec<Predicate>,
    /// Base of the lane to read from; `None` is the reading lane itself, and then shuffles are
    /// `shfl.sync.bfly` by `xor`, else `shfl.sync.idx` from the mapped lane with `xor` added.
    pub lane_map: Option<LaneMap>,
    /// The steps.
    pub steps: Vec<ShuffleStep>,
    /// The value of each register of the result.
    pub results: Vec<PlanValue>,
}

impl ShufflePlan {
    /// Cost with elements of `elem_bytes` bytes.
    pub fn cost(&self, elem_bytes: u32) -> ConversionCost {
        let words = elem_bytes.div_ceil(4);
        let mut cost = ConversionCost::default();
        for step in &self.steps {
            match step {
                ShuffleStep::Select { .. } => cost.moves += words,
                ShuffleStep::Shuffle { values, .. } => {
                    cost.shuffles += words;
                    // Packing and unpacking, one instruction for each value beyond the first.
                    cost.moves += 2 * (values.len() as u32 - 1);
                }
            }
        }
        cost
    }
}

const LANE_MASK: u32 = (1 << LOG2_LANES) - 1;

/// The factors of the module documentation. Vectors over source locations have the lane in their low
/// bits and the register, counted without the free bits, above.
struct Factors {
    /// `B`, by lane bit.
    post: Vec<u32>,
    /// `M`, by lane bit.
    lanes: Vec<u32>,
    /// `A`, by lane bit.
    pre: Vec<u32>,
    /// `(N, G)`, by result register bit.
    registers: Vec<(u32, u32)>,
    /// `(P, Q)`, by warp bit.
    warps: Vec<(u32, u32)>,
}

/// How columns of `M` are chosen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// As the module documentation says: an invertible `M` near the identity.
    Exchange,
    /// `B = 0`: no selects after the shuffle.
    Gather,
}

fn factor(src: &LinearLayout, dst: &LinearLayout, choice: Choice) -> Option<Factors> {
    let lanes = LOG2_LANES as usize;
    let registers = src.columns(HwDim::Register);
    let columns: Vec<u32> = registers
        .iter()
        .chain(src.columns(HwDim::Lane))
        .copied()
        .collect();
    // From a set of source columns to a location.
    let location = |set: u64| {
        let register = set & ((1 << registers.len()) - 1);
        (set >> registers.len()) as u32 | (register as u32) << LOG2_LANES
    };
    let span = Span::of(&columns);
    let find = |column: u32| span.solve(column).map(location);
    let find_all = |columns: &[u32]| columns.iter().map(|&c| find(c)).collect();

    let of_registers: Option<Vec<u32>> = find_all(dst.columns(HwDim::Register));
    let of_lanes: Option<Vec<u32>> = find_all(dst.columns(HwDim::Lane));
    let warps = dst.columns(HwDim::Warp).iter();
    let warps = warps.zip(src.columns(HwDim::Warp)).map(|(a, b)| a ^ b);
    let of_warps: Option<Vec<u32>> = find_all(&warps.collect::<Vec<u32>>());
    let (of_registers, of_lanes, of_warps) = (of_registers?, of_lanes?, of_warps?);

    // What may be added to the column of a lane bit: relations of the source, then result registers.
    let relations = gf2::null_space(&columns).into_iter().map(location);
    let mut offers: Vec<u32> = relations.collect();
    let free = offers.len();
    if choice == Choice::Exchange {
        offers.extend(&of_registers);
    }
    let offer_lanes: Vec<u32> = offers.iter().map(|o| o & LANE_MASK).collect();
    let reach = Span::of(&offer_lanes);
    // The column of bit `b` adjusted so that its lane part is `want`, and its column of `B`.
    let adjust = |b: usize, want: u32| -> Option<(u32, u32)> {
        let set = reach.solve(of_lanes[b] & LANE_MASK ^ want)?;
        let column = of_lanes[b] ^ gf2::apply(&offers, set);
        Some((column, (set >> free) as u32))
    };

    let mut chosen: Vec<Option<(u32, u32)>> = vec![None; lanes];
    let mut taken = Span::new();
    for (b, slot) in chosen.iter_mut().enumerate() {
        let unit = 1 << b;
        if let Some(column) = adjust(b, unit)
            && taken.insert(unit)
        {
            *slot = Some(column);
        }
    }
    for b in 0..lanes {
        if chosen[b].is_some() {
            continue;
        }
        if choice == Choice::Gather {
            chosen[b] = Some((of_lanes[b], 0));
            continue;
        }
        let own = of_lanes[b] & LANE_MASK;
        let steps = std::iter::once(0).chain(offer_lanes.iter().copied());
        let independent = steps.map(|step| own ^ step).find(|&c| !taken.contains(c));
        chosen[b] = match independent {
            Some(column) => {
                taken.insert(column);
                adjust(b, column)
            }
            None => {
                // A copy: the same location as some of the lanes chosen so far.
                let mut ways = offers.clone();
                ways.extend(chosen.iter().flatten().map(|&(column, _)| column));
                let set = Span::of(&ways).solve(of_lanes[b])?;
                let set = set & ((1 << offers.len()) - 1);
                let column = of_lanes[b] ^ gf2::apply(&offers, set);
                Some((column, (set >> free) as u32))
            }
        };
    }
    let chosen: Option<Vec<(u32, u32)>> = chosen.into_iter().collect();
    let chosen = chosen?;

    // `A` on the image of `M`, zero on a complement.
    let m: Vec<u32> = chosen.iter().map(|c| c.0 & LANE_MASK).collect();
    let mut images: Vec<u32> = chosen.iter().map(|c| c.0 >> LOG2_LANES).collect();
    let mut basis = Span::new();
    for (b, &column) in m.iter().enumerate() {
        if let Some(relation) = basis.insert_or_relation(column)
            && gf2::apply(&images[..=b], relation) != 0
        {
            return None;
        }
    }
    for unit in gf2::units(LOG2_LANES) {
        basis.insert(unit);
        images.push(0);
    }
    let pre: Option<Vec<u32>> = gf2::units(LOG2_LANES)
        .map(|unit| basis.solve(unit).map(|set| gf2::apply(&images, set)))
        .collect();
    let pre = pre?;
    let split = |column: &u32| {
        let lane = column & LANE_MASK;
        (
            lane,
            column >> LOG2_LANES ^ gf2::apply(&pre, u64::from(lane)),
        )
    };
    Some(Factors {
        post: chosen.iter().map(|c| c.1).collect(),
        lanes: m,
        registers: of_registers.iter().map(split).collect(),
        warps: of_warps.iter().map(split).collect(),
        pre,
    })
}

/// A permutation of registers by exclusive or with a linear function of the thread, as stages: the
/// vector added and the predicate under which.
fn stages(lanes: &[u32], warps: &[u32], predicates: &mut Vec<Predicate>) -> Vec<(u32, u16)> {
    let columns: Vec<u32> = lanes.iter().chain(warps).copied().collect();
    let span = Span::of(&columns);
    // The independent columns are the basis, and the predicate of a basis vector is the set of input
    // bits whose column uses it.
    let free = gf2::dependent(&columns);
    let mut stages = Vec::new();
    for (pivot, &vector) in columns.iter().enumerate() {
        if free >> pivot & 1 == 1 {
            continue;
        }
        let mut uses = 0u64;
        for (bit, &column) in columns.iter().enumerate() {
            let set = span.solve(column).expect("a member of its own span");
            uses |= (set >> pivot & 1) << bit;
        }
        let predicate = Predicate {
            lane_mask: uses as u32 & ((1 << lanes.len()) - 1),
            warp_mask: (uses >> lanes.len()) as u32,
        };
        let known = predicates.iter().position(|&p| p == predicate);
        let index = known.unwrap_or_else(|| {
            predicates.push(predicate);
            predicates.len() - 1
        });
        stages.push((vector, index as u16));
    }
    stages
}

/// Emits steps and numbers their results.
struct Emitter {
    steps: Vec<ShuffleStep>,
    next: u32,
}

impl Emitter {
    fn define(&mut self, step: ShuffleStep, values: u32) -> Option<PlanValue> {
        let first = PlanValue::try_from(self.next).ok()?;
        self.next += values;
        self.steps.push(step);
        Some(first)
    }

    /// Value of register `index` after the first `stages` stages of a permutation of `inputs`.
    fn permuted(
        &mut self,
        known: &mut FxHashMap<(u32, usize), PlanValue>,
        inputs: &impl Fn(u32) -> PlanValue,
        stages: &[(u32, u16)],
        index: u32,
    ) -> Option<PlanValue> {
        let Some((&(vector, predicate), before)) = stages.split_last() else {
            return Some(inputs(index));
        };
        if let Some(&value) = known.get(&(index, stages.len())) {
            return Some(value);
        }
        let clear = self.permuted(known, inputs, before, index)?;
        let set = self.permuted(known, inputs, before, index ^ vector)?;
        let value = if set == clear {
            set
        } else {
            let step = ShuffleStep::Select {
                predicate,
                set,
                clear,
            };
            self.define(step, 1)?
        };
        known.insert((index, stages.len()), value);
        Some(value)
    }
}

/// A plan with selects and shuffles from `src` to `dst`, which are as [`super::plan`] requires, if the
/// data stays within its warp and the factorisation is found.
pub fn plan(src: &LinearLayout, dst: &LinearLayout, elem_bytes: u32) -> Option<ShufflePlan> {
    // Registers without copies on both sides.
    let (source, target) = (src.without_free_registers(), dst.without_free_registers());
    let factored =
        [Choice::Exchange, Choice::Gather].map(|choice| factor(&source, &target, choice));
    let plans = factored.iter().flatten();
    let plans = plans.filter_map(|factors| push_step(src, dst, &target, factors, elem_bytes));
    plans.min_by_key(|plan| plan.cost(elem_bytes).weight())
}

/// The steps that the factors stand for; `None` if there are too many values to number.
fn push_step(
    src: &LinearLayout,
    dst: &LinearLayout,
    target: &LinearLayout,
    factors: &Factors,
    elem_bytes: u32,
) -> Option<ShufflePlan> {
    let kept = src.kept_register_bits();

    let mut predicates = Vec::new();
    let of_warps: Vec<u32> = factors.warps.iter().map(|w| w.1).collect();
    let before = stages(&factors.pre, &of_warps, &mut predicates);
    let after = stages(&factors.post, &[], &mut predicates);

    let sources = src.num_registers();
    let mut emitter = Emitter {
        steps: Vec::new(),
        next: sources,
    };
    let own = factors.lanes.iter().copied().eq(gf2::units(LOG2_LANES));
    let own = own && factors.warps.iter().all(|w| w.0 == 0);

    // What each result register reads before the last permutation: a value and a lane offset.
    let count = target.num_registers();
    let mut known = FxHashMap::default();
    let mut requests: Vec<(u32, u32)> = Vec::new();
    for index in 0..count {
        let bits = (0..factors.registers.len()).filter(|bit| index >> bit & 1 == 1);
        let (lane, register) = bits.fold((0, 0), |(n, g), bit| {
            let (dn, dg) = factors.registers[bit];
            (n ^ dn, g ^ dg)
        });
        requests.push((lane, register));
    }
    // Narrow values that cross with the same lane offset share a word.
    let mut order: Vec<u32> = (0..count).collect();
    order.sort_by_key(|&index| requests[index as usize].0);
    let per_word = (4 / elem_bytes).max(1) as usize;
    let mut middle = vec![0; count as usize];
    let runs = order.chunk_by(|&a, &b| requests[a as usize].0 == requests[b as usize].0);
    for chunk in runs.flat_map(|run| run.chunks(per_word)) {
        let mut values = SmallVec::new();
        for &index in chunk {
            let register = requests[index as usize].1;
            let input = |r: u32| deposit(r, kept) as PlanValue;
            values.push(emitter.permuted(&mut known, &input, &before, register)?);
        }
        let xor = requests[chunk[0] as usize].0 as u8;
        if own && xor == 0 {
            for (&index, &value) in chunk.iter().zip(&values) {
                middle[index as usize] = value;
            }
            continue;
        }
        let width = values.len() as u32;
        let first = emitter.define(ShuffleStep::Shuffle { values, xor }, width)?;
        for (&index, value) in chunk.iter().zip(first..) {
            middle[index as usize] = value;
        }
    }

    let mut known = FxHashMap::default();
    let mut results = Vec::new();
    let input = |r: u32| middle[r as usize];
    for index in 0..count {
        results.push(emitter.permuted(&mut known, &input, &after, index)?);
    }
    // Copies among the result's registers.
    let map = dst.register_map(target)?;
    let lane_map = LaneMap {
        lanes: std::array::from_fn(|bit| factors.lanes[bit] as u8),
        warps: factors.warps.iter().map(|w| w.0 as u8).collect(),
    };
    Some(ShufflePlan {
        sources,
        predicates,
        lane_map: (!own).then_some(lane_map),
        steps: emitter.steps,
        results: map.iter().map(|&r| results[usize::from(r)]).collect(),
    })
}

/// The bits of `value`, low ones first, in the places of the set bits of `mask`.
pub(super) fn deposit(value: u32, mask: u32) -> u32 {
    let places = (0..32).filter(|place| mask >> place & 1 == 1);
    places
        .enumerate()
        .fold(0, |sum, (bit, place)| sum | (value >> bit & 1) << place)
}
