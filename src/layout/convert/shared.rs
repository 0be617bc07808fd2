//! Conversions through shared memory: one store, one barrier, one load, no bank conflicts.
//!
//! # Addresses
//!
//! The scratch buffer holds the block once. Its layout maps offsets to elements linearly, so on both
//! sides the byte address is linear in the location: each register, lane and warp bit contributes a
//! pattern by *exclusive or*. The expander computes, once per side, the thread's part
//!
//! ```text
//! t = XOR over the set bits of lane and warp of their `AddressBit::xor`
//! ```
//!
//! and reaches each group of registers at `base + (t ^ group.xor) + group.add`. The constants of a
//! group are split so that `add` has only bits that no thread's part has: there addition is exclusive
//! or, and it folds into the immediate of the instruction. Groups with equal `xor` share a register. The
//! base is aligned to 16 bytes; bank conflicts do not depend on it.
//!
//! # The swizzle
//!
//! A 128-byte line is 32 banks of 4 bytes; the accesses of one *phase* (32 lanes of up to 4 bytes, 16
//! of 8, 8 of 16) conflict when they meet in a bank with different words. Call the low offset bits
//! that select the word and bank within a line *bank bits*, the rest *segment bits*, and let `S` be the
//! span of the elements that the segment bits stand for. Let `P` be the span of what one phase of the
//! store touches: its vector, its lanes, and the bits within a word. Two accesses conflict exactly if
//! their difference lies in `S` up to the bits within a word, so the store is free of conflicts if
//! `P ∩ S = 0`; so is the load for its own `Q ∩ S = 0`.
//!
//! Both have at most as many dimensions as there are bank bits, and then a common complement exists: with
//! `a` and `b` bases of `P` and of `Q` modulo `P ∩ Q`, it is a complement of `P + Q` together with
//! the sums `a_i + b_i`, which lie in neither. That is the theorem of arXiv 2505.23819 (section on
//! optimal swizzling); what is ours is to state it for any subspaces, and the wider side below.
//!
//! # Vectors
//!
//! The low offset bits are `V`, register directions of *both* sides, up to 16 bytes. Where `V` is
//! narrower, one side can still use wider accesses by taking more of its own registers next: 16-byte
//! stores and 4-byte loads, say. That restricts `S` (the lanes and warps of that side must not reach
//! into the vector), so it is tried, fewest instructions first, and given up where no `S` is found; with
//! `V` alone the construction cannot fail. If elements are narrower than a word and the vectors too, the
//! word is filled up with lanes: different lanes may touch one word without conflict.
//!
//! # Copies
//!
//! Only one of the threads that hold an element stores it: those with a bit of [`ExchangeSide::idle_lanes`]
//! or [`ExchangeSide::idle_warps`] set do not. Every thread loads, copies included, since equal addresses are
//! served together; registers of one thread that hold the same are loaded once.

use smallvec::SmallVec;

use super::ConversionCost;
use super::shuffle::deposit;
use crate::linear_layout::gf2::{self, Span};
use crate::linear_layout::layout::{HwDim, LOG2_LANES, LinearLayout};

/// Exponent of the bytes of a vector access.
const LOG2_VECTOR_BYTES: u32 = 4;
/// Exponent of the bytes of a bank's word.
const LOG2_WORD_BYTES: u32 = 2;
/// Exponent of the bytes of all banks' words.
const LOG2_LINE_BYTES: u32 = 7;

/// A trip through shared memory: see the [module](self).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedPlan {
    /// Which element stands at each offset of the scratch buffer.
    pub offset: LinearLayout,
    /// Bytes of an element.
    pub elem_bytes: u32,
    /// Bytes of the scratch buffer.
    pub bytes: u32,
    /// How registers of the source are written.
    pub store: ExchangeSide,
    /// How registers of the result are read.
    pub load: ExchangeSide,
    /// For each register of the result, the one that was loaded with its element: itself, or a lower
    /// one of the same thread that holds the same.
    pub copies: Vec<u16>,
}

/// One side of the trip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeSide {
    /// Elements of one access.
    pub vector: u32,
    /// The thread's part of the address.
    pub columns: SmallVec<[AddressBit; 8]>,
    /// The accesses of a thread.
    pub groups: Vec<VectorAccess>,
    /// Lanes with one of these bits set do not take part.
    pub idle_lanes: u32,
    /// Warps with one of these bits set do not take part.
    pub idle_warps: u32,
}

/// What one bit of lane or warp contributes to the thread's part of the byte offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressBit {
    /// [`HwDim::Lane`] or [`HwDim::Warp`].
    pub dim: HwDim,
    /// The bit.
    pub bit: u8,
    /// Bytes, not zero.
    pub xor: u32,
}

/// One access: registers in the order of their addresses, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorAccess {
    /// As many registers as the vector has elements.
    pub registers: SmallVec<[u16; 4]>,
    /// Bytes to add without carry to the thread's part.
    pub xor: u32,
    /// Bytes to add to that; they share no bit with it.
    pub add: u32,
}

impl SharedPlan {
    /// Cost of the trip. The first barrier is the one before the store, which protects the scratch from
    /// its previous use; hazard analysis may find that it is not needed.
    pub fn cost(&self) -> ConversionCost {
        let bytes = |access: &ExchangeSide| {
            let words = (access.vector * self.elem_bytes).max(4);
            access.groups.len() as u32 * words
        };
        let packed = |access: &ExchangeSide| {
            let narrow = access.vector > 1 && self.elem_bytes < 4;
            if narrow {
                let registers = access.groups.len() as u32 * access.vector;
                registers - registers * self.elem_bytes / 4
            } else {
                0
            }
        };
        ConversionCost {
            shuffles: 0,
            shared_bytes: bytes(&self.store) + bytes(&self.load),
            barriers: 2,
            moves: packed(&self.store) + packed(&self.load),
        }
    }
}

/// One side's directions, registers without copies.
struct Side {
    registers: Vec<u32>,
    lanes: Vec<u32>,
    /// Lanes and warps.
    threads: Vec<u32>,
}

impl Side {
    fn of(layout: &LinearLayout) -> Side {
        let lanes = layout.columns(HwDim::Lane).to_vec();
        let threads = [&lanes, layout.columns(HwDim::Warp)].concat();
        Side {
            registers: gf2::basis(layout.columns(HwDim::Register)),
            lanes,
            threads,
        }
    }
}

/// What the search for a swizzle works with.
struct Search {
    store: Side,
    load: Side,
    /// Exponent of the number of elements.
    rows: u32,
    log2_elem: u32,
    /// Register directions of both sides.
    common: Vec<u32>,
    /// Span of `common`, then of a complement of it that has the lanes and warps of both sides.
    frame: Span,
    frame_columns: Vec<u32>,
}

/// Offset bits, and how many of the low ones are vectors of each side.
struct Swizzle {
    columns: Vec<u32>,
    store_bits: u32,
    load_bits: u32,
}

impl Search {
    fn new(src: &LinearLayout, dst: &LinearLayout, elem_bytes: u32) -> Search {
        let (store, load) = (Side::of(src), Side::of(dst));
        let rows = src.shape().log2_elements();
        let log2_elem = elem_bytes.ilog2();
        let threads = [store.threads.as_slice(), &load.threads].concat();
        let mut shared = gf2::intersection(&store.registers, &load.registers);
        shared.sort_unstable();
        // What stands early on both sides comes first: registers of a vector are next to each other then, as those are that a
        // unit of matrices takes at once.
        let place = |side: &Side, column: u32| {
            let mut registers = side.registers.iter();
            registers
                .position(|&c| c == column)
                .unwrap_or(side.registers.len())
        };
        let span = Span::of(&shared);
        let early = load.registers.iter().copied();
        let mut early: Vec<u32> = early.filter(|&c| span.contains(c)).collect();
        early.sort_by_key(|&column| place(&store, column) + place(&load, column));
        let mut common = gf2::complete(&threads, early.into_iter().chain(shared));
        common.truncate((LOG2_VECTOR_BYTES - log2_elem) as usize);
        let mut frame_columns = common.clone();
        frame_columns.extend(gf2::basis(&threads));
        let rest = gf2::complete(&frame_columns, gf2::units(rows));
        frame_columns.extend(rest);
        Search {
            frame: Span::of(&frame_columns),
            frame_columns,
            store,
            load,
            rows,
            log2_elem,
            common,
        }
    }

    /// `vector` without its part in the common vector.
    fn project(&self, vector: u32) -> u32 {
        let set = self.frame.solve(vector).expect("the frame spans the space");
        let common = set & ((1 << self.common.len()) - 1);
        vector ^ gf2::apply(&self.frame_columns, common)
    }

    /// What one phase of a side touches when its vector is `vector`.
    fn phase(&self, side: &Side, vector: &[u32], word: &[u32]) -> Vec<u32> {
        let bytes = vector.len() as u32 + self.log2_elem;
        let lanes = LOG2_LANES - bytes.saturating_sub(LOG2_WORD_BYTES);
        let lanes = &side.lanes[..lanes as usize];
        gf2::basis(&[vector, word, lanes].concat())
    }

    /// A swizzle whose low bits are the common vector and then `extra`, registers of the store if
    /// `wide_store`, else of the load.
    fn build(&self, extra: &[u32], wide_store: bool) -> Option<Swizzle> {
        let (wide, narrow) = if wide_store {
            (&self.store, &self.load)
        } else {
            (&self.load, &self.store)
        };
        // Whether the threads of the wide side still stay out of `extra` when these are no vector bits.
        let apart = |others: &[u32]| {
            let others = [wide.threads.as_slice(), others].concat();
            let whole = [others.as_slice(), extra].concat();
            gf2::rank(&whole) == gf2::rank(&others) + extra.len() as u32
        };

        let mut low = [self.common.as_slice(), extra].concat();
        let word_bits = LOG2_WORD_BYTES.saturating_sub(self.log2_elem);
        let word_bits = word_bits.min(self.rows) as usize;
        let mut fill: Vec<u32> = Vec::new();
        let units = gf2::units(self.rows).map(|unit| self.project(unit));
        let candidates: Vec<u32> = wide
            .lanes
            .iter()
            .chain(&narrow.lanes)
            .copied()
            .chain(units)
            .collect();
        for &vector in &candidates {
            if low.len() >= word_bits {
                break;
            }
            fill.push(vector);
            if !Span::of(&low).contains(vector) && apart(&fill) {
                low.push(vector);
            } else {
                fill.pop();
            }
        }

        let word = &low[..word_bits.min(low.len())];
        let wide_vector = [self.common.as_slice(), extra].concat();
        let p = self.phase(wide, &wide_vector, word);
        let q = self.phase(narrow, &self.common, word);
        let both = gf2::intersection(&p, &q);
        let sum = gf2::basis(&[p.as_slice(), &q].concat());
        let mut a = gf2::complete(&both, p.iter().copied());
        // Sums with a direction of `extra` are the hardest to place: first.
        a.sort_by_key(|v| !extra.contains(v));
        let mut b = gf2::complete(&both, q.iter().copied());

        let bank_bits = LOG2_LINE_BYTES - self.log2_elem;
        let wanted = self.rows.saturating_sub(bank_bits) as usize;
        let mut segments: Vec<u32> = Vec::new();
        let mut outside = Span::of(&sum);
        let threads = wide.threads.iter().chain(&narrow.threads).copied();
        let registers = wide.registers.iter().chain(&narrow.registers);
        let registers = registers.map(|&r| self.project(r));
        let units = gf2::units(self.rows).map(|unit| self.project(unit));
        for vector in registers.chain(threads).chain(units) {
            if segments.len() < wanted && !outside.contains(vector) {
                let placed = [fill.as_slice(), &segments, &[vector]].concat();
                if apart(&placed) {
                    outside.insert(vector);
                    segments.push(vector);
                }
            }
        }
        for &from in &a {
            if segments.len() >= wanted {
                break;
            }
            let fits = |&to: &u32| {
                let placed = [fill.as_slice(), &segments, &[from ^ to]].concat();
                apart(&placed)
            };
            let at = b.iter().position(fits)?;
            segments.push(from ^ b.remove(at));
        }
        if segments.len() < wanted {
            return None;
        }

        // What is left is bank bits: the wide side's threads first, which keeps them out of `extra`.
        let units = gf2::units(self.rows).map(|unit| self.project(unit));
        let rest = wide.threads.iter().chain(&narrow.threads).copied();
        let banks = gf2::complete(&[low.as_slice(), &segments].concat(), rest.chain(units));
        let columns = [low, banks, segments].concat();
        debug_assert_eq!(gf2::rank(&columns), self.rows);
        let (narrow_bits, wide_bits) = (self.common.len(), self.common.len() + extra.len());
        let (store_bits, load_bits) = if wide_store {
            (wide_bits, narrow_bits)
        } else {
            (narrow_bits, wide_bits)
        };
        Some(Swizzle {
            columns,
            store_bits: store_bits as u32,
            load_bits: load_bits as u32,
        })
    }

    /// The swizzle with the fewest instructions that can be built, of those beyond the first so many.
    fn best(&self, skipped: usize) -> Swizzle {
        let room = (LOG2_VECTOR_BYTES - self.log2_elem) as usize - self.common.len();
        let extras = |side: &Side| {
            let base = [self.common.as_slice(), &side.threads].concat();
            let registers = side.registers.iter().map(|&r| self.project(r));
            let mut extras = gf2::complete(&base, registers);
            extras.truncate(room);
            extras
        };
        let (store, load) = (extras(&self.store), extras(&self.load));
        let accesses = |side: &Side, bits: usize| 1u64 << (side.registers.len() - bits);
        let mut options = Vec::new();
        for (wide_store, extra) in [(true, &store), (false, &load)] {
            for count in 1..=extra.len() {
                let bits = |wide: bool| self.common.len() + if wide { count } else { 0 };
                let total = accesses(&self.store, bits(wide_store))
                    + accesses(&self.load, bits(!wide_store));
                options.push((total, wide_store, &extra[..count]));
            }
        }
        options.sort_by_key(|option| option.0);
        let built = options
            .iter()
            .skip(skipped)
            .find_map(|&(_, wide_store, extra)| self.build(extra, wide_store));
        let built = built.or_else(|| self.build(&[], true));
        built.expect("two subspaces of equal dimension have a common complement")
    }
}

/// The trip from `src` to `dst`, which are as [`super::plan`] requires.
pub fn plan(src: &LinearLayout, dst: &LinearLayout, elem_bytes: u32) -> SharedPlan {
    plan_beyond(src, dst, elem_bytes, 0)
}

/// The trip that is best beyond so many better kinds of vectors; if there are no more, the one with the narrowest.
pub fn plan_beyond(
    src: &LinearLayout,
    dst: &LinearLayout,
    elem_bytes: u32,
    skipped: usize,
) -> SharedPlan {
    let swizzle = Search::new(src, dst, elem_bytes).best(skipped);
    let offset = LinearLayout::memory(src.shape(), &swizzle.columns)
        .expect("offsets are a basis of the block's own index");
    let to_offset = gf2::inverse(&swizzle.columns).expect("a basis");
    let mut store = access(src, &to_offset, swizzle.store_bits, elem_bytes);
    store.idle_lanes = src.free_mask(HwDim::Lane);
    store.idle_warps = src.free_mask(HwDim::Warp);
    let kept = dst.kept_register_bits();
    let copies = dst.register_map(&dst.without_free_registers());
    let copies = copies.expect("the same threads").into_iter();
    SharedPlan {
        bytes: src.shape().elements() as u32 * elem_bytes,
        elem_bytes,
        load: access(dst, &to_offset, swizzle.load_bits, elem_bytes),
        copies: copies.map(|r| deposit(u32::from(r), kept) as u16).collect(),
        store,
        offset,
    }
}

/// The accesses of all threads of `layout` with vectors of `2^bits` elements.
fn access(layout: &LinearLayout, to_offset: &[u32], bits: u32, elem_bytes: u32) -> ExchangeSide {
    let element = |flat: u32| gf2::apply(to_offset, u64::from(flat));
    let within = (1u32 << bits) - 1;

    let mut columns = SmallVec::new();
    let mut varying = 0;
    for dim in [HwDim::Lane, HwDim::Warp] {
        for (bit, &column) in layout.columns(dim).iter().enumerate() {
            let offset = element(column);
            assert_eq!(offset & within, 0, "threads stay out of the vector");
            if offset != 0 {
                let xor = offset * elem_bytes;
                varying |= xor;
                let bit = bit as u8;
                columns.push(AddressBit { dim, bit, xor });
            }
        }
    }

    // Register masks: of each vector bit, and of a complement whose offsets keep clear of those bits.
    let kept = layout.kept_register_bits();
    let registers: Vec<u32> = gf2::basis(layout.columns(HwDim::Register));
    let offsets: Vec<u32> = registers.iter().map(|&c| element(c)).collect();
    let span = Span::of(&offsets);
    let vector: Option<Vec<u32>> = (0..bits)
        .map(|bit| span.solve(1 << bit).map(|set| set as u32))
        .collect();
    let vector = vector.expect("vector bits are registers of the side");
    let rest = gf2::complete(&vector, gf2::units(registers.len() as u32));
    let rest: Vec<u32> = rest
        .into_iter()
        .map(|mask| {
            let low = gf2::apply(&offsets, u64::from(mask)) & within;
            mask ^ gf2::apply(&vector, u64::from(low))
        })
        .collect();
    let groups = (0..1u64 << rest.len()).map(|group| {
        let start = gf2::apply(&rest, group);
        let at = gf2::apply(&offsets, u64::from(start)) * elem_bytes;
        let registers = (0..1u64 << bits).map(|e| {
            let register = start ^ gf2::apply(&vector, e);
            deposit(register, kept) as u16
        });
        VectorAccess {
            registers: registers.collect(),
            xor: at & varying,
            add: at & !varying,
        }
    });
    ExchangeSide {
        vector: 1 << bits,
        columns,
        groups: groups.collect(),
        idle_lanes: 0,
        idle_warps: 0,
    }
}
