//! Linear algebra over GF(2), the field of the two numbers 0 and 1.
//!
//! Addition is exclusive or and multiplication is and. A vector of up to 32 components is a `u32`,
//! component `i` being bit `i`; a matrix is the slice of its columns, so that column `j` is the image
//! of input bit `j` and [`apply`] is the sum of the columns that the input selects. A matrix has at
//! most 64 columns, because sets of columns (inputs, relations, solutions) are `u64` masks.
//!
//! Everything is built on [`Span`], an echelon form that remembers how each of its rows was made from
//! the inserted vectors. Vectors are inserted in the caller's order and a dependent one adds nothing,
//! so *the earlier vector is always preferred*: solutions use pivots only and leave the other columns
//! (the free variables) at zero. Layout algorithms rely on this to prefer registers over lanes.

/// Image of the input `x` under the matrix with these columns.
pub(crate) fn apply(columns: &[u32], x: u64) -> u32 {
    debug_assert!(columns.len() >= 64 || x >> columns.len() == 0);
    columns
        .iter()
        .enumerate()
        .filter(|&(bit, _)| x >> bit & 1 == 1)
        .fold(0, |sum, (_, column)| sum ^ column)
}

/// A subspace that grows by insertion, with the history of each of its rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    /// `rows[b]` has highest set bit `b`, or is zero when there is no such row.
    rows: [u32; 32],
    /// Which inserted vectors add up to the row.
    history: [u64; 32],
    inserted: u32,
    rank: u32,
}

impl Span {
    /// The subspace of zero alone.
    pub(crate) fn new() -> Span {
        Span::default()
    }

    /// The span of `columns`, inserted in order.
    pub(crate) fn of(columns: &[u32]) -> Span {
        let mut span = Span::new();
        for &column in columns {
            span.insert(column);
        }
        span
    }

    /// Dimension of the subspace.
    pub(crate) fn rank(&self) -> u32 {
        self.rank
    }

    /// What remains of `vector` after subtracting rows, and the inserted vectors subtracted.
    fn reduce_tracked(&self, vector: u32) -> (u32, u64) {
        let (mut rest, mut used) = (vector, 0);
        for bit in (0..32).rev() {
            if rest >> bit & 1 == 1 && self.rows[bit] != 0 {
                rest ^= self.rows[bit];
                used ^= self.history[bit];
            }
        }
        (rest, used)
    }

    /// Canonical representative of `vector` modulo the subspace: zero exactly for its members.
    pub(crate) fn reduce(&self, vector: u32) -> u32 {
        self.reduce_tracked(vector).0
    }

    /// Whether `vector` is a member.
    pub(crate) fn contains(&self, vector: u32) -> bool {
        self.reduce(vector) == 0
    }

    /// The set of inserted vectors (bit `i` for the `i`-th) that adds up to `vector`, if it is a
    /// member. Dependent insertions are never used.
    pub(crate) fn solve(&self, vector: u32) -> Option<u64> {
        match self.reduce_tracked(vector) {
            (0, used) => Some(used),
            _ => None,
        }
    }

    /// Adds `vector`; true if the subspace grew.
    pub(crate) fn insert(&mut self, vector: u32) -> bool {
        self.insert_or_relation(vector).is_none()
    }

    /// Adds `vector`. If it was a member already, the answer is the set of inserted vectors, this one
    /// included, whose sum is zero.
    pub(crate) fn insert_or_relation(&mut self, vector: u32) -> Option<u64> {
        assert!(self.inserted < 64, "a matrix has at most 64 columns");
        let (rest, used) = self.reduce_tracked(vector);
        let used = used | 1 << self.inserted;
        self.inserted += 1;
        if rest == 0 {
            return Some(used);
        }
        let top = rest.ilog2() as usize;
        self.rows[top] = rest;
        self.history[top] = used;
        self.rank += 1;
        None
    }
}

/// Dimension of the span of `columns`.
pub(crate) fn rank(columns: &[u32]) -> u32 {
    Span::of(columns).rank()
}

/// The positions of the columns that depend on earlier ones, as a mask.
pub(crate) fn dependent(columns: &[u32]) -> u64 {
    let mut span = Span::new();
    let mut mask = 0;
    for (bit, &column) in columns.iter().enumerate() {
        if !span.insert(column) {
            mask |= 1 << bit;
        }
    }
    mask
}

/// The columns that do not depend on earlier ones: a basis of the span.
pub(crate) fn basis(columns: &[u32]) -> Vec<u32> {
    let mut span = Span::new();
    let independent = columns.iter().copied();
    independent.filter(|&c| span.insert(c)).collect()
}

/// A basis of the inputs whose image is zero, one vector per dependent column.
pub(crate) fn null_space(columns: &[u32]) -> Vec<u64> {
    let mut span = Span::new();
    let relations = columns.iter().map(|&c| span.insert_or_relation(c));
    relations.flatten().collect()
}

/// A right inverse: entry `i` is an input whose image is bit `i`, for each of the low `rows` bits.
/// `None` if the columns do not reach them all.
pub(crate) fn right_inverse(columns: &[u32], rows: u32) -> Option<Vec<u64>> {
    let span = Span::of(columns);
    (0..rows).map(|row| span.solve(1 << row)).collect()
}

/// The inverse of a square matrix; `None` if it is singular.
pub(crate) fn inverse(columns: &[u32]) -> Option<Vec<u32>> {
    let rows = columns.len() as u32;
    debug_assert!(rows <= 32);
    let inverse = right_inverse(columns, rows)?;
    // A square matrix with a right inverse is regular, and its columns lie in the low `rows` bits
    // exactly if there are no others to reach.
    let inside = columns.iter().all(|&c| rows == 32 || c >> rows == 0);
    inside.then(|| inverse.into_iter().map(|x| x as u32).collect())
}

/// A basis of the intersection of two spans; each vector is a sum of columns of `a`.
pub(crate) fn intersection(a: &[u32], b: &[u32]) -> Vec<u32> {
    let (a, b) = (basis(a), basis(b));
    let both: Vec<u32> = a.iter().chain(&b).copied().collect();
    let low = (1u64 << a.len()) - 1;
    let relations = null_space(&both);
    relations.into_iter().map(|x| apply(&a, x & low)).collect()
}

/// The vectors among `candidates`, earlier ones first, that extend a basis of the span of `columns` to
/// one of the span of both.
pub(crate) fn complete(columns: &[u32], candidates: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let mut span = Span::of(columns);
    let candidates = candidates.into_iter();
    candidates.filter(|&c| span.insert(c)).collect()
}

/// The unit vectors of a space of `rows` dimensions, in order.
pub(crate) fn units(rows: u32) -> impl Iterator<Item = u32> {
    (0..rows).map(|row| 1 << row)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All matrices of `rows` rows and `count` columns.
    fn matrices(rows: u32, count: u32) -> impl Iterator<Item = Vec<u32>> {
        (0..1u32 << (rows * count)).map(move |bits| {
            (0..count)
                .map(|j| bits >> (j * rows) & ((1 << rows) - 1))
                .collect()
        })
    }

    fn image(columns: &[u32]) -> Vec<u32> {
        let mut all: Vec<u32> = (0..1 << columns.len()).map(|x| apply(columns, x)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    #[test]
    fn every_small_matrix_obeys_the_laws() {
        for count in 0..=4 {
            for m in matrices(3, count) {
                let image = image(&m);
                assert_eq!(1usize << rank(&m), image.len(), "{m:?}");
                for v in 0..8 {
                    let solution = Span::of(&m).solve(v);
                    assert_eq!(solution.is_some(), image.contains(&v), "{m:?} {v}");
                    if let Some(x) = solution {
                        assert_eq!(apply(&m, x), v, "{m:?} {v}");
                        assert_eq!(x & dependent(&m), 0, "free variables are zero");
                    }
                }
                let kernel = null_space(&m);
                assert_eq!(kernel.len() as u32 + rank(&m), count, "{m:?}");
                assert!(kernel.iter().all(|&x| x != 0 && apply(&m, x) == 0));
                let inverse = right_inverse(&m, 3);
                assert_eq!(inverse.is_some(), image.len() == 8);
                for (row, x) in inverse.into_iter().flatten().enumerate() {
                    assert_eq!(apply(&m, x), 1 << row);
                }
                let completion = complete(&m, units(3));
                assert_eq!(completion.len() as u32 + rank(&m), 3);
                let whole: Vec<u32> = m.iter().copied().chain(completion).collect();
                assert_eq!(rank(&whole), 3);
            }
        }
    }

    #[test]
    fn inverses_are_two_sided() {
        let mut regular = 0;
        for m in matrices(3, 3) {
            let Some(inverse) = inverse(&m) else { continue };
            regular += 1;
            for x in 0..8 {
                assert_eq!(apply(&inverse, u64::from(apply(&m, x))), x as u32);
                assert_eq!(apply(&m, u64::from(apply(&inverse, x))), x as u32);
            }
        }
        // The order of GL(3, 2).
        assert_eq!(regular, 168);
        assert_eq!(inverse(&[1, 2 | 4]), None, "a row too many");
    }

    #[test]
    fn intersections_are_those_of_the_sets() {
        for a in matrices(3, 2) {
            for b in matrices(3, 2) {
                let both: Vec<u32> = image(&a)
                    .into_iter()
                    .filter(|v| image(&b).contains(v))
                    .collect();
                let found = intersection(&a, &b);
                assert_eq!(image(&found), both, "{a:?} {b:?}");
                assert_eq!(found.len() as u32, rank(&found), "a basis");
            }
        }
    }
}
