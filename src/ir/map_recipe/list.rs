//! Numbers as one list, in which each is computed once: the maps of a kernel ask for the same products and conditions again and again.

use rustc_hash::FxHashMap;

use super::number::MAX_DEPTH;
use super::{HostNumber, MapRecipe, NumberOp, Resolved};

/// Values that a number is made of from which on it is a part of its recipe where it is used twice. Shorter ones read better where
/// they are used.
const MIN_PART: usize = 16;

/// A number by the places of its operands in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Node {
    Const(i64),
    Param(u32),
    Programs(u8),
    Op(NumberOp, u32, u32),
}

/// Numbers, operands before what is made of them; equal ones are one.
#[derive(Clone, Debug, Default)]
pub(super) struct Nodes {
    nodes: Vec<Node>,
    known: FxHashMap<Node, u32>,
}

/// Numbers as a recipe has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// What they, and later parts, are made of.
    pub parts: Vec<HostNumber>,
    /// The numbers.
    pub numbers: Vec<HostNumber>,
}

impl Nodes {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    fn add(&mut self, node: Node) -> u32 {
        *self.known.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        })
    }

    pub(super) fn number(&mut self, number: i64) -> u32 {
        self.add(Node::Const(number))
    }

    pub(super) fn param(&mut self, index: u32) -> u32 {
        self.add(Node::Param(index))
    }

    pub(super) fn programs(&mut self, axis: u8) -> u32 {
        self.add(Node::Programs(axis))
    }

    /// Two numbers combined; a constant where both are and there is one.
    pub(super) fn op(&mut self, op: NumberOp, a: u32, b: u32) -> u32 {
        if let (Some(a), Some(b)) = (self.constant(a), self.constant(b))
            && let Some(number) = op.eval(a, b)
        {
            return self.number(number);
        }
        self.add(Node::Op(op, a, b))
    }

    pub(super) fn constant(&self, at: u32) -> Option<i64> {
        match self.nodes.get(at as usize)? {
            Node::Const(number) => Some(*number),
            _ => None,
        }
    }

    /// A number whose parts have these places, as it stands; none where it names another part.
    fn tree(&mut self, number: &HostNumber, parts: &[u32]) -> Option<u32> {
        let node = match number {
            HostNumber::Const(number) => Node::Const(*number),
            HostNumber::Param(index) => Node::Param(*index),
            HostNumber::Programs(axis) => Node::Programs(*axis),
            HostNumber::Part(index) => return parts.get(*index as usize).copied(),
            HostNumber::Op(op, operands) => {
                let [a, b] = operands.each_ref().map(|number| self.tree(number, parts));
                Node::Op(*op, a?, b?)
            }
        };
        Some(self.add(node))
    }

    /// Numbers as trees and what these share: a number that is used twice is a part unless it is short, and so is a deep one.
    pub(super) fn written(&self, roots: &[u32]) -> Written {
        let mut uses = vec![0_u32; self.nodes.len()];
        for &root in roots {
            uses[root as usize] += 1;
        }
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if let Node::Op(_, a, b) = *node
                && uses[at] > 0
            {
                uses[a as usize] += 1;
                uses[b as usize] += 1;
            }
        }
        let mut parts = Vec::new();
        let mut trees = Trees {
            uses,
            all: Vec::with_capacity(self.nodes.len()),
        };
        for (at, node) in self.nodes.iter().enumerate() {
            let uses = trees.uses[at];
            let tree = match *node {
                // Nobody looks at it.
                _ if uses == 0 => (HostNumber::Const(0), 1, 0),
                Node::Const(number) => (HostNumber::Const(number), 1, 0),
                Node::Param(index) => (HostNumber::Param(index), 1, 0),
                Node::Programs(axis) => (HostNumber::Programs(axis), 1, 0),
                Node::Op(op, a, b) => {
                    let [a, b] = [a, b].map(|at| trees.take(at));
                    let (size, depth) = (1 + a.1 + b.1, 1 + a.2.max(b.2));
                    let number = HostNumber::Op(op, Box::new([a.0, b.0]));
                    match uses > 1 && size >= MIN_PART || depth >= MAX_DEPTH / 2 {
                        true => {
                            parts.push(number);
                            (HostNumber::Part(parts.len() as u32 - 1), 1, 0)
                        }
                        false => (number, size, depth),
                    }
                }
            };
            trees.all.push(tree);
        }
        Written {
            numbers: roots.iter().map(|&root| trees.take(root).0).collect(),
            parts,
        }
    }
}

/// Numbers as trees, each with its size and depth.
struct Trees {
    /// How often each one is still to be used.
    uses: Vec<u32>,
    all: Vec<(HostNumber, usize, usize)>,
}

impl Trees {
    /// A number for one of its uses: a copy if there are more.
    fn take(&mut self, at: u32) -> (HostNumber, usize, usize) {
        let at = at as usize;
        self.uses[at] -= 1;
        match self.uses[at] {
            0 => std::mem::replace(&mut self.all[at], (HostNumber::Const(0), 1, 0)),
            _ => self.all[at].clone(),
        }
    }
}

/// The numbers of recipes, operands before what is made of them.
#[derive(Clone, Debug, Default)]
pub struct NumberList {
    nodes: Vec<Node>,
    /// Places of the numbers of each recipe, behind its parts, in the order of [`MapRecipe::numbers`].
    places: Vec<Vec<u32>>,
}

impl NumberList {
    /// The numbers of these recipes.
    ///
    /// # Errors
    ///
    /// What [`MapRecipe::check`] says of the first that has no map.
    pub fn new(recipes: &[MapRecipe]) -> Result<NumberList, String> {
        let mut nodes = Nodes::default();
        let mut all = Vec::new();
        for recipe in recipes {
            recipe.check()?;
            let mut parts = Vec::new();
            for part in &recipe.parts {
                parts.extend(nodes.tree(part, &parts));
            }
            let others = recipe.numbers().skip(parts.len());
            let places = others.filter_map(|number| nodes.tree(number, &parts));
            all.push(places.collect());
        }
        Ok(NumberList {
            nodes: nodes.nodes,
            places: all,
        })
    }

    /// How many numbers there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Computes all numbers for these arguments, as [`HostNumber::eval`] does each, and leaves them in `numbers`; none where one of
    /// them has no result, so that some recipe has no map. Allocates nothing where `numbers` has room for [`len`](NumberList::len).
    pub fn eval(
        &self,
        params: impl Fn(u32) -> Option<i64>,
        grid: [u32; 3],
        numbers: &mut Vec<i64>,
    ) -> Option<()> {
        numbers.resize(self.nodes.len(), 0);
        for (at, node) in self.nodes.iter().enumerate() {
            let (done, rest) = numbers.split_at_mut(at);
            rest[0] = match *node {
                Node::Const(number) => number,
                Node::Param(index) => params(index)?,
                Node::Programs(axis) => grid.get(usize::from(axis)).map(|&n| i64::from(n))?,
                Node::Op(op, a, b) => op.eval(done[a as usize], done[b as usize])?,
            };
        }
        Some(())
    }

    /// The map of recipe `index`, which must be `recipe`, whose tensor the parameter at `base` points into, with what
    /// [`eval`](NumberList::eval) left; none where the kernel without maps must be launched.
    pub fn resolve(
        &self,
        index: usize,
        recipe: &MapRecipe,
        base: u64,
        numbers: &[i64],
    ) -> Option<Resolved> {
        let places = self.places.get(index)?;
        let mut numbers = places.iter().map(|&at| numbers.get(at as usize).copied());
        recipe.resolve_by(base, || numbers.next()?)
    }
}
