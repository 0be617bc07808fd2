//! What a refusal is about, in words: strides, indices and bounds as the source names them, what is known of them, and what would help.

use super::super::refusal::{Refusal, Refused};
use super::super::words;
use super::{ALIGN, Planner};
use crate::analysis::affine::host::Host;
use crate::analysis::affine::{Atom, Monomial, Poly};

impl Planner<'_, '_> {
    /// That a condition holds in no launch, for messages: the numbers that are constants.
    pub(super) fn never(&self, a: Host, b: Host) -> String {
        match (self.reach.hosts.constant(a), self.reach.hosts.constant(b)) {
            (Some(a), Some(b)) => format!("{a} is above {b}"),
            _ => String::new(),
        }
    }

    /// A number, for messages.
    pub(super) fn sum(&self, poly: &Poly) -> String {
        format!("it is `{}`", words::sum(self.facts.func, poly))
    }

    /// The block, for messages.
    pub(super) fn block(&self) -> String {
        format!("the block is {}", self.ty)
    }

    /// The strides of a block none or several of whose are known to be 1, for messages.
    pub(super) fn strides(&self, wide: &[u8]) -> String {
        let func = self.facts.func;
        let shown = wide.iter().map(|&dim| {
            let stride = words::sum(func, &self.form.poly.stride(dim));
            format!("`{stride}` along dimension {dim}")
        });
        let shown: Vec<String> = shown.collect();
        let mut params = wide.iter().filter_map(|&dim| {
            let stride = self.form.poly.stride(dim);
            let atoms: Vec<Atom> = stride.atoms().collect();
            match atoms[..] {
                [Atom::Value(value)] if stride.terms().count() == 1 => {
                    words::parameter_of(func, value)
                }
                _ => None,
            }
        });
        let mut ones = wide
            .iter()
            .filter(|&&dim| self.form.poly.stride(dim).number() == Some(1));
        let shown = shown.join(" and ");
        match (ones.next(), params.next()) {
            (None, Some((_, ty))) => {
                format!(
                    "it is {shown}; `{ty}:1` in the signature, for the one that is 1, would say so"
                )
            }
            _ => format!("it is {shown}"),
        }
    }

    /// What of the elements that an index is held back at matters, for messages.
    pub(super) fn wraps(&self, clamp: usize) -> Refused {
        let func = self.facts.func;
        let clamp = self.form.clamps.get(clamp);
        Refusal::Wraps.of(clamp.map_or_else(String::new, |clamp| {
            let (x, bound) = (
                words::value(func, clamp.value),
                words::sum(func, &clamp.bound),
            );
            format!("it is `{x}` at `{bound}`")
        }))
    }

    /// Elements that are not known to be a multiple of 16 bytes: what is known of them, and which promises would help. Nothing is
    /// recorded of what is said, as nothing depends on it.
    pub(super) fn unaligned(&self, elements: &Poly) -> String {
        let func = self.facts.func;
        let needed = (ALIGN / self.bytes.min(ALIGN)).trailing_zeros() as u8;
        let shown = words::sum(func, elements);
        if let Some(number) = elements.number() {
            let bytes = number.saturating_mul(self.bytes.into());
            return format!(
                "it is {number} elements of {} bytes, which are {bytes} bytes",
                self.bytes
            );
        }
        let multiple = u64::from(self.bytes) << self.divisor(elements).for_messages().min(8);
        let mut text = format!(
            "it is `{shown}` elements of {} bytes, of which no multiple is known",
            self.bytes
        );
        if multiple > u64::from(self.bytes) {
            text = format!(
                "it is `{shown}` elements of {} bytes, known to be a multiple of {multiple} bytes",
                self.bytes
            );
        }
        let mut promises = Vec::new();
        for (monomial, c) in elements.terms() {
            let term = Poly::term(monomial.clone(), c);
            if self.divisor(&term).for_messages() >= needed {
                continue;
            }
            let Some(promise) = self.promise(monomial, c, needed) else {
                // Promises for the others would not be enough.
                return text;
            };
            promises.push(promise);
        }
        promises.dedup();
        match promises.is_empty() {
            true => text,
            false => format!(
                "{text}; {} in the signature would promise it",
                promises.join(" and ")
            ),
        }
    }

    /// The promise for a parameter by which a product is a multiple of a power of two with this exponent.
    fn promise(&self, monomial: &Monomial, c: i64, needed: u8) -> Option<String> {
        let func = self.facts.func;
        let mut params = monomial.atoms().iter().filter_map(|&atom| match atom {
            Atom::Value(value) => Some((value, words::parameter_of(func, value)?)),
            Atom::Trip(_) => None,
        });
        let (value, (name, ty)) = params.next_back()?;
        let others = monomial.atoms().iter().copied();
        let mut is_left = false;
        let others = others.filter(|&atom| {
            let is_it = atom == Atom::Value(value) && !is_left;
            is_left |= is_it;
            !is_it
        });
        let others = Poly::term(Monomial::new(others, None), c);
        let by_others = self.divisor(&others).for_messages();
        let multiple = 1_u32 << needed.checked_sub(by_others)?.min(4);
        Some(format!("`{name}: {ty}:{multiple}`"))
    }
}

/// Why a number without sign is no index.
pub(super) fn without_sign(words: &str) -> String {
    format!(
        "`{words}` has no sign (u32, u64) and may wrap; give sizes and strides that have one (i32, i64)"
    )
}
