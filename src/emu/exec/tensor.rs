//! Boxes of tensors: which bytes of device memory stand where in shared memory.
//!
//! Elements of a box follow each other in shared memory, the innermost dimension first; the swizzle then moves pieces of 16
//! bytes by the bits of their absolute address. Coordinates are signed. Of what lies outside of the tensor a load gives the
//! fill, and counts it as arrived; a store leaves it out.

use super::super::async_work::{Issuer, Move, Moved, Touch, Touching};
use super::super::error::{Fault, Space};
use super::super::inst::{AtomicOp, BulkKind};
use super::super::race::{Agent, Observer};
use super::super::sched::{CtaState, Machine, Trouble};
use super::super::tensor_map::{Fill, TensorElement, TensorMap};
use super::super::types::{Type, TypeKind};
use super::super::warp::Warp;

/// Bytes of a tensor map, and what its address is a multiple of.
const MAP_BYTES: u32 = 128;
const MAP_ALIGN: u32 = 64;
/// What an H100 fills with where NaNs are asked for, whatever the floats are.
const NAN_FILL: u64 = 0x7ff7_7ff7_7ff7_7ff7;
/// Bytes that a swizzle keeps together; what the innermost coordinate is a multiple of.
const PIECE: usize = 16;

impl Machine<'_> {
    /// Reads a tensor map, in a parameter or in memory.
    pub(super) fn read_map(
        &mut self,
        cta: &mut CtaState,
        warp: &Warp,
        lane: u32,
        line: u32,
        (space, address): (Space, u64),
        agent: Agent,
    ) -> Result<TensorMap, Trouble> {
        let part = (MAP_ALIGN, MAP_BYTES);
        let place = self.locate_part(cta, warp, lane, space, address, part)?;
        let bytes = MAP_BYTES as usize;
        let region = match place.space {
            Space::Param => &self.params,
            Space::Global => &*self.memory.region(place.region),
            space => {
                let reason = format!("its tensor map lies in the {space} space");
                return Err((lane, Fault::BulkCopy(reason)));
            }
        };
        if !region.is_written(place.offset, bytes) {
            return Err(place.uninitialised(lane, MAP_BYTES));
        }
        let mut words = [0; MAP_BYTES as usize];
        words.copy_from_slice(&region.data[place.offset..place.offset + bytes]);
        if place.space == Space::Global {
            let touch = Touch {
                is_shared: false,
                region: place.region,
                offset: place.offset,
                bytes,
                access: Touching::Read,
            };
            let issuer = Issuer {
                clock: &warp.clock,
                lane,
                line,
                agent,
                view: Some(Observer::Maps),
                sees_copies: false,
            };
            self.begin(cta, issuer, touch)?;
            let as_who = (warp.clock.warp << 5 | lane, self.now);
            self.settle(cta, touch, (agent, lane), as_who);
        }
        TensorMap::decode(&words).map_err(|error| (lane, Fault::BulkCopy(error.to_string())))
    }

    /// What a copy of the box at `start` moves.
    pub(super) fn box_move(
        &mut self,
        cta: &CtaState,
        lane: u32,
        kind: BulkKind,
        shared: u64,
        map: &TensorMap,
        start: &[i32],
    ) -> Result<Moved, Trouble> {
        let fail = |reason: String| Err((lane, Fault::BulkCopy(reason)));
        if let Err(reason) = check_place(map, start) {
            return fail(reason);
        }
        let (rank, size) = (map.extents.len(), map.element.bytes() as usize);
        let moved = map.moved();
        let row = moved[0] as usize * size;
        if let Some(span) = map.swizzle.span()
            && row != span.get() as usize
        {
            let what =
                format!("a box {row} bytes wide with a swizzle over {span}, which is not modelled");
            return Err((lane, Fault::Unsupported(what)));
        }
        let rows: usize = moved[1..].iter().map(|&extent| extent as usize).product();
        let bytes = rows * row;
        let Some(offset) = cta.shared.offset(shared, bytes) else {
            let fault = Fault::OutOfBounds {
                space: Space::Shared,
                address: shared,
                bytes: bytes as u32,
                nearest: format!("the CTA has {} bytes", cta.shared.data.len()),
            };
            return Err((lane, fault));
        };
        // Elements of a row that lie inside.
        let first = (-i64::from(start[0])).clamp(0, i64::from(moved[0])) as usize;
        let inside = map.extents[0] as i64 - i64::from(start[0]);
        let last = inside.clamp(first as i64, i64::from(moved[0])) as usize;
        // An H100 takes this for an illegal instruction.
        if let Some(at) = start.iter().find(|&&at| kind != BulkKind::Load && at < 0) {
            return fail(format!(
                "a box is stored that starts at {at}, in front of the tensor"
            ));
        }
        // An H100 stores whole pieces; what is behind the end of a row would change.
        if kind != BulkKind::Load && first < last && !(last * size).is_multiple_of(PIECE) {
            return fail(format!(
                "rows of {} bytes, of which {PIECE} are stored at a time: what is behind the end of a row would change",
                map.extents[0] * size as u64
            ));
        }
        let mut moves: Vec<Move> = Vec::new();
        for index in 0..rows {
            let (mut rest, mut is_inside) = (index, first < last);
            // What a kernel makes of a map may be anything; an address that wraps is found nowhere.
            let along = (i64::from(start[0]) + first as i64) * size as i64;
            let mut address = (map.base as i64).wrapping_add(along);
            for d in 1..rank {
                let step = rest % moved[d] as usize;
                rest /= moved[d] as usize;
                let at = i64::from(start[d]) + (step * map.element_strides[d] as usize) as i64;
                is_inside &= 0 <= at && at < map.extents[d] as i64;
                address = address.wrapping_add(at.wrapping_mul(map.strides[d - 1] as i64));
            }
            if !is_inside {
                continue;
            }
            let (begin, length) = (index * row + first * size, (last - first) * size);
            let Some((region, at)) = self.memory.find(address as u64, length, self.hint) else {
                let fault = Fault::OutOfBounds {
                    space: Space::Global,
                    address: address as u64,
                    bytes: length as u32,
                    nearest: self.memory.nearest(address as u64),
                };
                return Err((lane, fault));
            };
            self.hint = region;
            let mut done = 0;
            while done < length {
                let piece = (PIECE - (begin + done) % PIECE).min(length - done);
                let place = map.swizzle.place(shared + (begin + done) as u64);
                let next = Move {
                    region,
                    global: at + done,
                    shared: (place - cta.shared.base) as usize,
                    bytes: piece,
                };
                done += piece;
                match moves.last_mut() {
                    Some(last)
                        if last.region == region
                            && last.global + last.bytes == next.global
                            && last.shared + last.bytes == next.shared =>
                    {
                        last.bytes += piece;
                    }
                    _ => moves.push(next),
                }
            }
        }
        let kind = match kind {
            BulkKind::Reduce(op, None) => {
                let ty = element_type(map.element, op);
                let Some(ty) = ty else {
                    return fail(format!("a reduction by {op:?} of {:?}", map.element));
                };
                BulkKind::Reduce(op, Some(ty))
            }
            other => other,
        };
        let fill = match map.fill {
            Fill::Zeros => 0,
            Fill::NaN => NAN_FILL >> (64 - 8 * size),
        };
        let mut all = Moved::new(kind, (offset, bytes), moves, (fill, size as u32));
        // What lies outside is not read by a store.
        all.tx = bytes as i64;
        Ok(all)
    }
}

/// Whether a box of the tensor can start there.
pub(super) fn check_place(map: &TensorMap, start: &[i32]) -> Result<(), String> {
    let rank = map.extents.len();
    if start.len() != rank {
        return Err(format!(
            "{} coordinates for a tensor map of {rank} dimensions",
            start.len()
        ));
    }
    let into = i64::from(start[0]) * i64::from(map.element.bytes());
    if into.rem_euclid(PIECE as i64) != 0 {
        return Err(format!(
            "the innermost coordinate {} is {into} bytes into the tensor, which must be a multiple of {PIECE}",
            start[0]
        ));
    }
    Ok(())
}

/// The type that a reduction of elements computes in; none if there is no such reduction.
fn element_type(element: TensorElement, op: AtomicOp) -> Option<Type> {
    let (kind, bits) = match element {
        TensorElement::U32 => (TypeKind::Unsigned, 32),
        TensorElement::S32 => (TypeKind::Signed, 32),
        TensorElement::U64 => (TypeKind::Unsigned, 64),
        TensorElement::S64 => (TypeKind::Signed, 64),
        TensorElement::F16 => (TypeKind::Float, 16),
        TensorElement::BF16 => (TypeKind::Bfloat, 16),
        TensorElement::F32 => (TypeKind::Float, 32),
        TensorElement::F64 => (TypeKind::Float, 64),
        TensorElement::U8 | TensorElement::U16 => return None,
    };
    let is_float = matches!(kind, TypeKind::Float | TypeKind::Bfloat);
    let exists = match op {
        // An H100 takes these for illegal instructions.
        AtomicOp::Add | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor
            if element == TensorElement::S64 =>
        {
            false
        }
        AtomicOp::Add => true,
        AtomicOp::Min | AtomicOp::Max => !is_float || bits == 16,
        AtomicOp::Increment | AtomicOp::Decrement => kind == TypeKind::Unsigned && bits == 32,
        _ => !is_float,
    };
    exists.then_some(Type {
        kind,
        bits,
        packed: false,
    })
}
