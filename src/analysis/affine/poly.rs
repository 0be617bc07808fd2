//! Sums of products of scalars, of which each may have one index of a block as a factor.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::ir::entities::{Inst, Value};

/// More terms than an address has that somebody wrote.
const MAX_TERMS: usize = 32;
/// More factors than that.
const MAX_FACTORS: usize = 8;

/// A number that is the same for all elements of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Atom {
    /// A scalar.
    Value(Value),
    /// How many iterations of a `for` are over.
    Trip(Inst),
}

/// A product of numbers and of at most one index of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monomial {
    /// The factors, in order.
    atoms: SmallVec<[Atom; 4]>,
    /// The dimension whose index is a factor.
    dim: Option<u8>,
}

impl Monomial {
    /// A product of numbers.
    pub fn new(atoms: impl IntoIterator<Item = Atom>, dim: Option<u8>) -> Monomial {
        let mut atoms: SmallVec<[Atom; 4]> = atoms.into_iter().collect();
        atoms.sort_unstable();
        Monomial { atoms, dim }
    }

    /// The factors that are the same for all elements.
    pub fn atoms(&self) -> &[Atom] {
        &self.atoms
    }

    /// The dimension whose index is a factor.
    pub fn dim(&self) -> Option<u8> {
        self.dim
    }

    /// What gives this if it is multiplied with `by`, which has no index.
    fn quotient(&self, by: &Monomial) -> Option<Monomial> {
        let mut atoms = self.atoms.clone();
        for factor in &by.atoms {
            let at = atoms.iter().position(|atom| atom == factor)?;
            atoms.remove(at);
        }
        by.dim.is_none().then_some(Monomial {
            atoms,
            dim: self.dim,
        })
    }
}

/// A sum of products with coefficients; none of these is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Poly {
    terms: BTreeMap<Monomial, i64>,
}

impl Poly {
    /// A product with a coefficient.
    pub fn term(monomial: Monomial, coefficient: i64) -> Poly {
        let terms = (coefficient != 0).then_some((monomial, coefficient));
        Poly {
            terms: terms.into_iter().collect(),
        }
    }

    /// A number.
    pub fn constant(number: i64) -> Poly {
        Poly::term(Monomial::default(), number)
    }

    /// A scalar, or a count of iterations.
    pub fn atom(atom: Atom) -> Poly {
        Poly::term(Monomial::new([atom], None), 1)
    }

    /// The index along a dimension.
    pub fn index(dim: u8) -> Poly {
        Poly::term(Monomial::new([], Some(dim)), 1)
    }

    /// The products and their coefficients.
    pub fn terms(&self) -> impl DoubleEndedIterator<Item = (&Monomial, i64)> {
        self.terms.iter().map(|(monomial, &c)| (monomial, c))
    }

    /// Whether this is nothing.
    pub fn is_zero(&self) -> bool {
        self.terms.is_empty()
    }

    /// The number this is, if it is one.
    pub fn number(&self) -> Option<i64> {
        match self.terms.iter().next() {
            None => Some(0),
            Some((monomial, &c)) => {
                (self.terms.len() == 1 && *monomial == Monomial::default()).then_some(c)
            }
        }
    }

    /// The sum; none if it is too large to be of use.
    pub fn plus(&self, other: &Poly) -> Option<Poly> {
        let mut out = self.clone();
        for (monomial, &c) in &other.terms {
            let sum = out.terms.get(monomial).copied().unwrap_or(0);
            match sum.checked_add(c)? {
                0 => out.terms.remove(monomial),
                sum => out.terms.insert(monomial.clone(), sum),
            };
        }
        (out.terms.len() <= MAX_TERMS).then_some(out)
    }

    /// The difference.
    pub fn minus(&self, other: &Poly) -> Option<Poly> {
        self.plus(&other.scaled(-1)?)
    }

    /// Multiplied with a number.
    pub fn scaled(&self, by: i64) -> Option<Poly> {
        self.times(&Poly::constant(by))
    }

    /// The product, if no two indices meet in it.
    pub fn times(&self, other: &Poly) -> Option<Poly> {
        let mut out = Poly::default();
        for (a, &x) in &self.terms {
            for (b, &y) in &other.terms {
                if a.dim.is_some() && b.dim.is_some() {
                    return None;
                }
                let factors = a.atoms.iter().chain(&b.atoms).copied();
                let monomial = Monomial::new(factors, a.dim.or(b.dim));
                if monomial.atoms.len() > MAX_FACTORS {
                    return None;
                }
                out = out.plus(&Poly::term(monomial, x.checked_mul(y)?))?;
            }
        }
        Some(out)
    }

    /// The terms for which `keep` is true.
    pub fn filter(&self, mut keep: impl FnMut(&Monomial) -> bool) -> Poly {
        let terms = self.terms.iter().filter(|(monomial, _)| keep(monomial));
        Poly {
            terms: terms.map(|(m, &c)| (m.clone(), c)).collect(),
        }
    }

    /// What is the same for all elements.
    pub fn uniform(&self) -> Poly {
        self.filter(|monomial| monomial.dim.is_none())
    }

    /// What the index along a dimension is multiplied with.
    pub fn stride(&self, dim: u8) -> Poly {
        let terms = self.terms.iter().filter(|(m, _)| m.dim == Some(dim));
        let bare = |m: &Monomial| Monomial {
            atoms: m.atoms.clone(),
            dim: None,
        };
        Poly {
            terms: terms.map(|(m, &c)| (bare(m), c)).collect(),
        }
    }

    /// The dimensions whose indices occur.
    pub fn dims(&self) -> SmallVec<[u8; 4]> {
        let mut dims: SmallVec<[u8; 4]> = self.terms.keys().filter_map(|m| m.dim).collect();
        dims.sort_unstable();
        dims.dedup();
        dims
    }

    /// The scalars and counts that occur.
    pub fn atoms(&self) -> impl Iterator<Item = Atom> + '_ {
        self.terms.keys().flat_map(|m| m.atoms.iter().copied())
    }

    /// The same with dimensions renamed; those that become none have one index, 0, and go.
    pub fn map_dims(&self, name: impl Fn(u8) -> Option<u8>) -> Poly {
        let mut out = Poly::default();
        for (monomial, &c) in &self.terms {
            let dim = match monomial.dim {
                None => None,
                Some(dim) => match name(dim) {
                    None => continue,
                    to => to,
                },
            };
            let atoms = monomial.atoms.clone();
            out.terms.insert(Monomial { atoms, dim }, c);
        }
        out
    }

    /// A factor `q`, of one term, whose product with `by` cancels terms of this sum and leaves none behind that were not there;
    /// and what is left. Both are without indices.
    pub fn divide_once(&self, by: &Poly) -> Option<(Poly, Poly)> {
        let (lead, coefficient) = by.terms.last_key_value()?;
        for (monomial, &c) in &self.terms {
            if monomial.dim.is_some() || c % coefficient != 0 {
                continue;
            }
            let Some(quotient) = monomial.quotient(lead) else {
                continue;
            };
            let q = Poly::term(quotient, c / coefficient);
            let rest = self.minus(&q.times(by)?)?;
            if rest.terms.len() + by.terms.len() == self.terms.len() {
                return Some((q, rest));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v(number: u32) -> Poly {
        Poly::atom(Atom::Value(Value::from_u32(number)))
    }

    #[test]
    fn sums_and_products_are_those_of_numbers() {
        let a = v(1).plus(&Poly::constant(3)).unwrap();
        let b = v(2).minus(&v(1)).unwrap();
        let product = a.times(&b).unwrap();
        let by_hand = [
            v(1).times(&v(2)).unwrap(),
            v(1).times(&v(1)).unwrap().scaled(-1).unwrap(),
            v(2).scaled(3).unwrap(),
            v(1).scaled(-3).unwrap(),
        ];
        let sum = by_hand.iter().try_fold(Poly::default(), |s, t| s.plus(t));
        assert_eq!(Some(product), sum);
        assert!(a.minus(&a).unwrap().is_zero());
        assert_eq!(Poly::constant(5).number(), Some(5));
        assert_eq!(a.number(), None);
    }

    #[test]
    fn indices_do_not_meet() {
        let i = Poly::index(0);
        assert_eq!(i.times(&Poly::index(1)), None);
        let rows = i.times(&v(1)).unwrap().plus(&Poly::index(1)).unwrap();
        assert_eq!(rows.stride(0), v(1));
        assert_eq!(rows.stride(1), Poly::constant(1));
        assert!(rows.uniform().is_zero());
        // An index that occurs with two factors is one.
        let skewed = i.times(&v(1)).unwrap().plus(&i).unwrap();
        assert_eq!(skewed.dims()[..], [0]);
        assert_eq!(
            rows.map_dims(|dim| dim.checked_sub(1)).stride(0),
            Poly::constant(1)
        );
    }

    #[test]
    fn quotients_by_sums_take_all_their_terms() {
        // 64 p (k + 8) + 3 k, by k + 8.
        let stride = v(1).plus(&Poly::constant(8)).unwrap();
        let start = v(2).scaled(64).unwrap();
        let sum = start.times(&stride).unwrap();
        let sum = sum.plus(&v(1).scaled(3).unwrap()).unwrap();
        let (q, rest) = sum.divide_once(&stride).unwrap();
        assert_eq!(q, start);
        assert_eq!(rest, v(1).scaled(3).unwrap());
        assert_eq!(rest.divide_once(&stride), None);
    }
}
