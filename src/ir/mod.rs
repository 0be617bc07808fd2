//! The intermediate representation: block programs ([`level::Tile`]) and what one thread of them does
//! ([`level::Thread`]).
//!
//! This page and the doc comments of the op table ([`ops`]) are the semantics. The reference interpreter
//! is the same in executable form; where the two differ, one of them has a bug.
//!
//! # Programs
//! A kernel is run by a grid of *programs*; the kernel's code is what one program does. A value is a scalar
//! or a *block*: an array whose extents are powers of two. An op on blocks works element by element unless
//! it says otherwise. A program runs its instructions in order; between programs there is no order at all.
//!
//! # Integers
//! Integers have no sign; the op has one where it matters. Sums, differences, products and shifts keep the
//! low bits. A shift by the width or more gives 0 (`shl`, `ushr`) or the sign in every bit (`sshr`), as in PTX.
//! Quotient and remainder by zero and the quotient that overflows give an unspecified number, the same one for all
//! uses of the result; they do not trap. Quotients and remainders of such a number are unspecified, too.
//!
//! # Floating point
//! Numbers are IEEE 754. `fadd fsub fmul fma fdiv_rn` and conversions round once, to nearest even unless they
//! say otherwise; subnormal numbers are kept. The other functions state an error bound in ulp of the result,
//! or relative to it, and may take subnormal arguments and results for zero where they say so. A NaN result
//! may have any sign and payload; the interpreter gives the canonical one of the target (all fraction bits set).
//! `fmin` and `fmax` order -0 below +0, and ignore one NaN or propagate it as their attribute says.
//! `fneg`, `fabs`, `copysign` and `select` are not arithmetic: they keep a NaN's payload. Results of the 8-bit formats
//! saturate: what is too large, and infinity, becomes the largest number.
//!
//! **Contraction**: unless it is switched off, one pass turns a sum of a product into `fma` (of f32 and f64 one that nothing else uses). Before
//! that pass nothing is fused and after it nothing else is, on any level and any target.
//!
//! # Conversions
//! `fptosi` and `fptoui` round to zero and saturate; NaN gives 0, or where operand or result has 64 bits the number
//! whose top bit alone is set. Results of 8 and 16 bits saturate from the one of 32 bits, so that NaN in f64 gives their
//! end of the range. `sitofp`, `uitofp` and `fptrunc` round to nearest even, `fptrunc` to zero if it says so. To
//! 8-bit floats conversions saturate in both directions. `itrunc` keeps low bits.
//!
//! # Memory
//! Memory is bytes, little-endian; a truth value is a byte, 0 or 1 when stored and non-zero for true when loaded.
//! An address must be a multiple of its element's size.
//! - A masked-off element of a `load` accesses nothing: its address may be anything. It gives `other`, or zero.
//! - Within one `store`, elements with equal addresses leave one of their values, unspecified which; the interpreter
//!   reports it unless the values are equal.
//! - The elements of a block are read and written by many threads. Two accesses of one program to the same byte, one of
//!   them a store, are ordered by a `barrier` between them, or when the store's value at that element depends on the load
//!   of it (an update in place), also where a caller gave one pointer for two arguments. Otherwise their order is unspecified, as in Triton,
//!   and the interpreter reports it, unless both store the same value.
//! - Between programs of a grid, two accesses to the same byte of which one is a store are a race unless atomics
//!   order them: the result is undefined, and interpreter and emulator report it where they see it. Two stores of the
//!   same value are no race, as programs of Triton rely on it: the value stands there in any order. Neither reports
//!   them unless asked to (`report_equal_writes`); a load beside such stores is a race as beside any other.
//! - Reading bytes that nobody wrote, or an address outside of every buffer, is undefined and reported likewise.
//!
//! # Atomics
//! `atomic_rmw` and `atomic_cas` read and write each element in one step. Steps of one op and of several happen in an
//! unspecified order (each program sees its own in some order that all agree on), so with repeated addresses the old values
//! and the rounding of sums are unspecified. `scope` says who sees an element's steps as such: the program (`cta`), all
//! programs of the device (`gpu`), or other devices and the host too (`sys`). An atomic access and a plain one to the same
//! byte must be ordered as two plain ones must; a `volatile` load counts as an atomic access of scope `sys`.
//! - On a *scalar* the step is one thread's on behalf of the program. With `release` all earlier accesses of the program come
//!   before it, with `acquire` all later ones after it: whatever a program did before it released is seen by one whose
//!   `acquire` step reads what the release wrote, or what atomic ops made of it. Both also order the program's own accesses
//!   as a `barrier` does. All threads learn the old value before they go on, so a loop around `atomic_cas` takes a lock for
//!   the whole program and `atomic_rmw {rmw = xchg, sem = release}` gives it back.
//! - On a *block* many threads do the steps. `release` orders what came before the last `barrier`, `acquire` what comes after
//!   the next one; an `acquire` without use of the result may be dropped.
//!
//! # Inline PTX
//! `inline_ptx` runs lines of PTX once for each `pack` elements, in an unspecified order. These are neighbours along `axis` (the last
//! dimension, if there is none); which others come together where that dimension has fewer elements, and how often elements of which
//! threads hold copies are computed, is unspecified. In a reduction or scan the lines combine elements, if they are `pure`. Of
//! scalars every thread computes its own: the lines must give all of them the same result. With `pure` the lines only
//! compute their results from their operands and may be left out, repeated and moved; without it they keep their place
//! among the accesses and barriers of the program. The texts are described in `inline_ptx`. The interpreter cannot
//! execute it and says so.
//!
//! # Block pointers and tensor descriptors
//! There are no ops for them: a front end lowers both to pointers and masks, for which [`tensor_ptr`] has the arithmetic. An
//! element's address is the base plus the sum of coordinate times stride, in 64 bits; what lies outside of the tensor in
//! a checked dimension is masked off and reads as zero or NaN. What moves is the offsets alone, so loops carry these.
//!
//! # Reductions
//! `reduce` combines all elements along an axis with a region that must be associative and commutative. The tree is
//! unspecified, so sums of floats may differ by rounding; once layouts are assigned the attribute `order` names the
//! bits of the index along the axis in the sequence in which halves are folded, and repeats the sum exactly:
//! folding bit `b` combines every pair of elements whose indices differ in `b` alone, the one with the bit clear first.
//! Of terms of both signs whose sizes add up to more than the largest number, some orders end in a number and others at infinity;
//! so do some of any region whose partial results may be beyond the largest number, and what falls below the normal numbers on
//! the way is lost in some orders. That holds for `scan` too, whose partial results are those of neighbours.
//! Of sums that a loop adds to a carried value the order is unspecified as well, unless the options keep products and sums apart.
//!
//! # Products of matrices
//! `dot` adds to each element of `acc` the sum over K of products of a row of `a` with a column of `b`. Products are exact; with
//! `precision = tf32` operands of f32 are cut to 11 significant bits before, with `tf32x3` and `ieee` they are not. In which
//! order products and `acc` are summed, and how sums are rounded on the way, is unspecified; the result is within (K + 2) (u S +
//! l) of the exact one, S being the sum of the sizes of all terms, u the unit of rounding of the accumulator's type (2^-19 for
//! `tf32x3`), and l that type's least number above 0. Where the accumulator is f16, sums of four products or more are rounded or
//! cut to it, and the result is within (K/4 + 2) (2^-10 S + l); targets without such a unit sum in f32 and round once. `tf32x3`
//! leaves out what a factor has below 2^-135: it may be further off by 2^-135 F, F being the sum of the sizes of all factors.
//! Where S is beyond the largest number and terms differ in sign, a sum on the way may be infinite. Where a term is infinite or
//! NaN, so is the result as IEEE 754 has it for some order (NaN, if others may come to the other infinity first); but of a factor
//! below 2^-135 `tf32x3` may see 0, which times infinity is NaN, and of a NaN whose payload is all in bits that `tf32` drops,
//! infinity. Sums of integers are exact, modulo 2^32. The interpreter sums in f64 and rounds once.
//!
//! An element of `acc` that is zero may be taken for the other zero: where all products are -0, the sum may be either. So what
//! is added to a product from zero can become its accumulator, and counts among the terms of the bound then.
//!
//! Of 8-bit floats `imprecise = n`, n being 32 or more, asks for less, as the units of sm_90a have it: 32 products and what they are
//! added to are cut to 2^-13 of the largest of them, and their sum is cut likewise. So the result may be further off by
//! 2^-13 (33 L + R) for each 32 products along K, where L is the largest of the sizes of these products and of what they are
//! added to, and R the size of their sum; both are taken for what they would be if no terms cancelled. If n is at most K, sums of so
//! many products (of the next smaller power of two) start from zero, and are added to `acc` as exactly as without; else `acc` is what
//! the first are added to. A sum of whole numbers whose sizes add up to 2^13 at most is exact.
//!
//! # Scans
//! `scan` combines along an axis in the order of the index, so its region need not commute. Once layouts are assigned
//! the attribute `tree` fixes the association: it lists the digits in which the index along the axis is written,
//! lowest first, `n` below 32 for a digit of n bits that is combined one element after the other, and `32 + n` for one of
//! n bits that is combined by doubling (each element with the one 1, then 2, then 4, .. places before it). The elements
//! of each block that differ in the lowest digit alone are scanned; the last elements of the blocks are scanned by the
//! next digit, and so on. Then each digit hands down to every block of the digit below the combination of all blocks
//! before it: to the block at its first place what was handed down to itself, if anything, to the others the
//! combination of that, on the left, with the result of the place before. In the end each element is combined with what
//! was handed down to its block, on the left; but the last element of a block whose digit is `n` below 32 is what scanning
//! the last elements gave, each combined with what was handed down to it, if there is a digit above.
//! With `reverse`, the same holds for the index counted from the end.
//!
//! # Control flow
//! At tile level it is structured: `for`, `while` and `if` own blocks with parameters that end in `yield`
//! (the first region of `while` in `condition`), and a region sees the values defined outside of it. Conditions are
//! scalars, so all threads of a program go the same way. At thread level blocks form a graph with block parameters.
//! An endless loop is allowed; executors bound their steps.
//!
//! # Promises
//! `assume_*` ops and parameter hints (`divisible`) are promises of the kernel's author or of the caller. A broken one is
//! undefined; the interpreter reports it.
//!
//! # Scheduled work
//! Asynchronous ops (copies, matrix products, bulk transfers) are made by passes, never by front ends. Each yields
//! a [`types::Elem::Token`] and writes a [`entities::Slot`], a ring buffer in shared memory; waits consume tokens. How many
//! groups may be in flight and which barrier phase is meant are derived from the distance between tokens. Code that
//! belongs to a range of warps stands under a [`entities::Partition`] with its own register budget; layouts, reductions and
//! hazards are relative to the partition that executes them. A kernel has one, or a second that brings what the program reads
//! (`producer`).
//!
//! - Copies by threads (`async_copy`): what they bring stands in its entry of the ring after an `async_wait` for the token of
//!   their `async_commit`, and until then the entry holds nothing.
//! - Copies by the engine (`tensor_copy`): after an `mbar_wait` for the barrier that counts their bytes.
//! - Products (`dot_start`): the sum is there after a `dot_wait` or `dot_sum` for the token, and until then they read their operands.
//!
//! # Packs
//! A value of the thread IR holds `count` elements of one thread ([`types::ThreadType`]). Ops on packs work element by
//! element, so passes cost time per op and not per element. Splitting happens when text is written.

pub mod attrs;
pub mod compose;
pub mod entities;
#[doc(hidden)]
pub mod matrix_units;
pub mod tensor_ptr;
pub mod typed;
pub mod types;
#[doc(hidden)]
pub mod view;
#[macro_use]
pub mod ops;
pub mod builder;
pub mod dfg;
#[doc(hidden)]
pub mod effects;
pub mod function;
mod hints;
pub(crate) mod inline_ptx;
pub mod level;
#[doc(hidden)]
pub mod literal;
pub(crate) mod maker;
#[doc(hidden)]
pub mod map_recipe;
#[doc(hidden)]
pub mod order;
#[doc(hidden)]
pub mod predicates;
