//! The numbers of several recipes as one list, in which each is computed once: the maps of a kernel ask for the same products and
//! conditions again and again.

use std::collections::HashMap;

use super::{HostNumber, MapRecipe, NumberOp, Resolved};

/// A number by the places of its operands in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Node {
    Const(i64),
    Param(u32),
    Programs(u8),
    Op(NumberOp, u32, u32),
}

/// The numbers of recipes, operands before what is made of them.
#[derive(Clone, Debug, Default)]
pub struct NumberList {
    nodes: Vec<Node>,
    /// Places of the numbers of each recipe, in the order of [`MapRecipe::numbers`].
    places: Vec<Vec<u32>>,
}

impl NumberList {
    /// The numbers of these recipes.
    ///
    /// # Errors
    ///
    /// What [`MapRecipe::check`] says of the first that has no map.
    pub fn new(recipes: &[MapRecipe]) -> Result<NumberList, String> {
        let mut list = NumberList::default();
        let mut known = HashMap::new();
        for recipe in recipes {
            recipe.check()?;
            let places = recipe.numbers().map(|n| list.add(n, &mut known));
            let places = places.collect();
            list.places.push(places);
        }
        Ok(list)
    }

    fn add(&mut self, number: &HostNumber, known: &mut HashMap<Node, u32>) -> u32 {
        let node = match number {
            HostNumber::Const(number) => Node::Const(*number),
            HostNumber::Param(index) => Node::Param(*index),
            HostNumber::Programs(axis) => Node::Programs(*axis),
            HostNumber::Op(op, operands) => {
                let [a, b] = operands.each_ref().map(|operand| self.add(operand, known));
                Node::Op(*op, a, b)
            }
        };
        *known.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
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
        numbers.clear();
        for node in &self.nodes {
            let number = match *node {
                Node::Const(number) => number,
                Node::Param(index) => params(index)?,
                Node::Programs(axis) => grid.get(usize::from(axis)).map(|&n| i64::from(n))?,
                Node::Op(op, a, b) => op.eval(numbers[a as usize], numbers[b as usize])?,
            };
            numbers.push(number);
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
