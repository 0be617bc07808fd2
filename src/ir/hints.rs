//! What callers promise of arguments, and what compilations make of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// What the caller promises of an argument, and which of it the compilation asked for.
///
/// Clones share what was asked for; two are equal if they promise the same.
#[derive(Clone, Debug)]
pub struct ParamHints {
    divisible: u32,
    asked: Arc<Bounds>,
}

/// Exponents of two.
#[derive(Debug)]
struct Bounds {
    /// What computations may make use of: something asked for rests on the promise being at least this.
    relied: AtomicU8,
    least: AtomicU8,
    most: AtomicU8,
}

/// The promises with which a compilation makes the same code, as exponents of the power of two that divides the argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The code needs so much.
    pub least: u8,
    /// With more, it might be other code.
    pub most: u8,
}

impl Asked {
    /// Where nothing was asked.
    pub const NOTHING: Asked = Asked {
        least: 0,
        most: u8::MAX,
    };
}

impl Default for ParamHints {
    fn default() -> Self {
        ParamHints::divisible(0)
    }
}

impl PartialEq for ParamHints {
    fn eq(&self, other: &Self) -> bool {
        self.divisible == other.divisible
    }
}

impl Eq for ParamHints {}

impl ParamHints {
    /// The number, or for a pointer the address in bytes, is a multiple of this power of two; 0 and 1 say nothing.
    pub fn divisible(divisible: u32) -> ParamHints {
        let Asked { least, most } = Asked::NOTHING;
        ParamHints {
            divisible,
            asked: Arc::new(Bounds {
                relied: AtomicU8::new(0),
                least: AtomicU8::new(least),
                most: AtomicU8::new(most),
            }),
        }
    }

    /// The promise itself, for who prints, checks or keeps it. What depends on it in a compilation asks the analysis
    /// (`analysis::axis`), which records that; `tests/tidy.rs` lists the files that may call this.
    pub fn promised(&self) -> u32 {
        self.divisible
    }

    /// The same promise, of which nothing was asked for yet.
    pub(crate) fn unasked(&self) -> ParamHints {
        ParamHints::divisible(self.divisible)
    }

    /// No more promise than something that was found rests on, which is the same with the least that was asked for. What was not found
    /// for want of a larger promise, or because runs would be less aligned with it, does not count: whether such is looked at hangs
    /// on the promises of other arguments.
    pub(crate) fn relied_on(&self) -> ParamHints {
        let exponent = self.asked.relied.load(Ordering::Relaxed);
        let promised = if exponent == 0 { 0 } else { 1 << exponent };
        ParamHints::divisible(promised.min(self.divisible))
    }

    /// Records on which promises an answer rests: what was found needs at least `relied`, that no more was found at least `least`,
    /// and it is the same answer up to `most`.
    pub(crate) fn ask(&self, relied: u8, least: u8, most: u8) {
        self.asked.relied.fetch_max(relied, Ordering::Relaxed);
        self.asked
            .least
            .fetch_max(relied.max(least), Ordering::Relaxed);
        self.asked.most.fetch_min(most, Ordering::Relaxed);
    }

    /// What was asked for.
    pub fn asked(&self) -> Asked {
        Asked {
            least: self.asked.least.load(Ordering::Relaxed),
            most: self.asked.most.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, ParamHints};

    /// That no more was found may rest on a promise, and nothing is computed by such.
    #[test]
    fn what_was_asked_for_in_vain_is_not_relied_on() {
        let hints = ParamHints::divisible(16);
        hints.ask(0, 3, 4);
        assert_eq!(hints.asked(), Asked { least: 3, most: 4 });
        assert_eq!(hints.relied_on().promised(), 0);
        hints.ask(2, 0, u8::MAX);
        assert_eq!(hints.asked(), Asked { least: 3, most: 4 });
        assert_eq!(hints.relied_on().promised(), 4);
    }
}
