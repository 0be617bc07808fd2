//! Choosing one alternative per node so that the sum of node and edge costs is small: the partitioned
//! boolean quadratic problem, by graph reduction.
//!
//! A node of degree 0, 1 or 2, or with a single alternative, is eliminated *exactly*: what its best choice
//! costs for each choice of its neighbours moves into their costs. When only nodes of higher degree are left,
//! the one with the most edges takes the alternative that is locally best: the one *heuristic* step. The first
//! time, each of its alternatives is tried, and the best outcome counts. Guesses of one node after another do not
//! find what pays only if several nodes do it together; so the caller may name such choices, to be tried as well. Choices
//! are made in reverse order of elimination. Source: Scholz and Eckstein, "Register Allocation for
//! Irregular Architectures" (2002), reductions R0, R1, R2 and RN.
//!
//! Each elimination costs at most the square of the number of alternatives per edge (the cube for two
//! edges); with the caller's bound on alternatives the work is linear in the number of edges.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A sum of costs; sums saturate.
pub(super) type Cost = u64;

/// Costs of an edge, row by row.
type Matrix = SmallVec<[Cost; 16]>;

#[derive(Clone, Debug)]
struct Edge {
    ends: [u32; 2],
    costs: Matrix,
    alive: bool,
}

#[derive(Clone, Debug, Default)]
struct Node {
    costs: SmallVec<[Cost; 8]>,
    edges: SmallVec<[u32; 4]>,
    degree: u32,
    eliminated: bool,
}

/// A problem under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Problem {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    between: FxHashMap<(u32, u32), u32>,
}

/// The choices.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Solution {
    /// For each node the number of its alternative.
    pub choices: Vec<usize>,
    /// Whether no heuristic step was needed, so that no other choices cost less.
    pub exact: bool,
}

impl Problem {
    /// Adds a node with the costs of its alternatives, of which there is at least one.
    pub(super) fn add_node(&mut self, costs: SmallVec<[Cost; 8]>) -> u32 {
        self.nodes.push(Node {
            costs,
            ..Node::default()
        });
        self.nodes.len() as u32 - 1
    }

    fn alternatives(&self, node: u32) -> usize {
        self.nodes[node as usize].costs.len()
    }

    /// Adds `cost(i, j)` for choosing alternative `i` of `a` and `j` of `b` to what they cost already.
    pub(super) fn add_edge(&mut self, a: u32, b: u32, mut cost: impl FnMut(usize, usize) -> Cost) {
        if a == b {
            for i in 0..self.alternatives(a) {
                let own = &mut self.nodes[a as usize].costs[i];
                *own = own.saturating_add(cost(i, i));
            }
            return;
        }
        let (rows, columns) = (self.alternatives(a), self.alternatives(b));
        let entries = (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j)));
        let costs: Matrix = entries.map(|(i, j)| cost(i, j)).collect();
        if costs.iter().all(|&c| c == 0) {
            return;
        }
        let key = (a.min(b), a.max(b));
        if let Some(&edge) = self.between.get(&key) {
            let edge = &mut self.edges[edge as usize];
            if edge.alive {
                let swapped = edge.ends[0] != a;
                for i in 0..rows {
                    for j in 0..columns {
                        let at = if swapped {
                            j * rows + i
                        } else {
                            i * columns + j
                        };
                        edge.costs[at] = edge.costs[at].saturating_add(costs[i * columns + j]);
                    }
                }
                return;
            }
        }
        let edge = self.edges.len() as u32;
        self.edges.push(Edge {
            ends: [a, b],
            costs,
            alive: true,
        });
        self.between.insert(key, edge);
        for end in [a, b] {
            let node = &mut self.nodes[end as usize];
            node.edges.push(edge);
            node.degree += 1;
        }
    }

    /// The other end of an edge.
    fn other(&self, edge: u32, node: u32) -> u32 {
        let [a, b] = self.edges[edge as usize].ends;
        if a == node { b } else { a }
    }

    /// Cost of an edge when `node` takes alternative `i` and the other end takes `j`.
    fn edge_cost(&self, edge: u32, node: u32, i: usize, j: usize) -> Cost {
        let edge = &self.edges[edge as usize];
        let columns = self.alternatives(edge.ends[1]);
        if edge.ends[0] == node {
            edge.costs[i * columns + j]
        } else {
            edge.costs[j * columns + i]
        }
    }

    fn live_edges(&self, node: u32) -> SmallVec<[u32; 4]> {
        let edges = self.nodes[node as usize].edges.iter().copied();
        edges
            .filter(|&edge| self.edges[edge as usize].alive)
            .collect()
    }

    /// Takes the node out of the graph, together with its edges.
    fn eliminate(&mut self, node: u32, edges: &[u32], low: &mut Vec<u32>) {
        self.nodes[node as usize].eliminated = true;
        for &edge in edges {
            self.edges[edge as usize].alive = false;
            let other = self.other(edge, node);
            let data = &mut self.nodes[other as usize];
            data.degree -= 1;
            if data.degree <= 2 {
                low.push(other);
            }
        }
    }

    /// Alternative of `node` that is best for itself and the best its neighbours can then do.
    fn locally_best(&self, node: u32, edges: &[u32]) -> usize {
        let total = |i: usize| {
            edges
                .iter()
                .fold(self.nodes[node as usize].costs[i], |sum, &edge| {
                    let other = self.other(edge, node);
                    let costs = &self.nodes[other as usize].costs;
                    let best = (0..costs.len())
                        .map(|j| self.edge_cost(edge, node, i, j).saturating_add(costs[j]))
                        .min();
                    sum.saturating_add(best.unwrap_or(0))
                })
        };
        (0..self.alternatives(node))
            .min_by_key(|&i| total(i))
            .unwrap_or(0)
    }

    /// Decides for alternative `i` now and charges the neighbours.
    fn fix(&mut self, node: u32, i: usize, edges: &[u32]) {
        for &edge in edges {
            let other = self.other(edge, node);
            for j in 0..self.alternatives(other) {
                let extra = self.edge_cost(edge, node, i, j);
                let cost = &mut self.nodes[other as usize].costs[j];
                *cost = cost.saturating_add(extra);
            }
        }
    }

    /// Moves what a node of degree 1 or 2 costs at best into its neighbours or the edge between them.
    fn fold(&mut self, node: u32, edges: &[u32]) {
        let own = self.nodes[node as usize].costs.clone();
        match *edges {
            [edge] => {
                let other = self.other(edge, node);
                for j in 0..self.alternatives(other) {
                    let best = (0..own.len())
                        .map(|i| own[i].saturating_add(self.edge_cost(edge, node, i, j)))
                        .min();
                    let cost = &mut self.nodes[other as usize].costs[j];
                    *cost = cost.saturating_add(best.unwrap_or(0));
                }
            }
            [first, second] => {
                let (a, b) = (self.other(first, node), self.other(second, node));
                let columns = self.alternatives(b);
                let mut sums = Matrix::new();
                for j in 0..self.alternatives(a) {
                    for k in 0..columns {
                        let best = (0..own.len())
                            .map(|i| {
                                own[i]
                                    .saturating_add(self.edge_cost(first, node, i, j))
                                    .saturating_add(self.edge_cost(second, node, i, k))
                            })
                            .min();
                        sums.push(best.unwrap_or(0));
                    }
                }
                self.add_edge(a, b, |j, k| sums[j * columns + k]);
            }
            _ => {}
        }
    }

    /// Solves the problem. Where that takes guesses, a second try starts from the alternatives of `hint`, if there are any; the
    /// better outcome counts.
    pub(super) fn solve(self, hint: &[(u32, usize)]) -> Solution {
        let hinted = (!hint.is_empty()).then(|| self.clone());
        let mut best = Search::new(self).solved();
        if let Some(problem) = hinted.filter(|_| !best.exact) {
            let mut start = Search::new(problem);
            for &(node, i) in hint {
                if !start.problem.nodes[node as usize].eliminated {
                    start.decide(node, i);
                }
            }
            let found = start.solved();
            if found.total < best.total {
                best = Search {
                    exact: false,
                    ..found
                };
            }
        }
        best.finish()
    }
}

/// A problem solved in part.
#[derive(Clone, Debug)]
struct Search {
    problem: Problem,
    choices: Vec<usize>,
    exact: bool,
    /// Nodes to be chosen for in the end, the last one first, with their edges.
    eliminated: Vec<(u32, SmallVec<[u32; 4]>)>,
    /// Nodes that may be of degree 2 or less.
    low: Vec<u32>,
    by_degree: std::vec::IntoIter<u32>,
    /// What the choices made so far cost, and what has been eliminated without a choice left.
    total: Cost,
}

impl Search {
    fn new(problem: Problem) -> Search {
        let count = problem.nodes.len() as u32;
        let mut search = Search {
            problem,
            choices: vec![0; count as usize],
            exact: true,
            eliminated: Vec::with_capacity(count as usize),
            low: Vec::new(),
            by_degree: Vec::new().into_iter(),
            total: 0,
        };
        let problem = &search.problem;
        let single = (0..count).filter(|&n| problem.alternatives(n) == 1);
        for node in single.collect::<Vec<u32>>() {
            search.decide(node, 0);
        }
        let nodes = &search.problem.nodes;
        search.low.clear();
        search.low.extend((0..count).rev().filter(|&n| {
            let node = &nodes[n as usize];
            !node.eliminated && node.degree <= 2
        }));
        let mut by_degree: Vec<u32> = (0..count).collect();
        by_degree.sort_by_key(|&n| std::cmp::Reverse(nodes[n as usize].degree));
        search.by_degree = by_degree.into_iter();
        search
    }

    /// Eliminates all that can be eliminated exactly. Returns a node of those that are left.
    fn reduce(&mut self) -> Option<u32> {
        while let Some(node) = self.low.pop() {
            let data = &self.problem.nodes[node as usize];
            if data.eliminated || data.degree > 2 {
                continue;
            }
            let edges = self.problem.live_edges(node);
            // The node must be gone before the edge between its neighbours appears.
            self.problem.eliminate(node, &edges, &mut self.low);
            self.problem.fold(node, &edges);
            if edges.is_empty() {
                let costs = self.problem.nodes[node as usize].costs.iter();
                self.total = self.total.saturating_add(costs.copied().min().unwrap_or(0));
            }
            self.eliminated.push((node, edges));
        }
        let nodes = &self.problem.nodes;
        self.by_degree.find(|&n| !nodes[n as usize].eliminated)
    }

    fn locally_best(&self, node: u32) -> usize {
        self.problem
            .locally_best(node, &self.problem.live_edges(node))
    }

    /// Takes an alternative for a node.
    fn decide(&mut self, node: u32, i: usize) {
        let edges = self.problem.live_edges(node);
        let own = self.problem.nodes[node as usize].costs[i];
        self.total = self.total.saturating_add(own);
        self.problem.fix(node, i, &edges);
        self.problem.eliminate(node, &edges, &mut self.low);
        self.choices[node as usize] = i;
    }

    /// Takes an alternative for a node and what is locally best for all nodes that have to be guessed after it.
    fn decided(mut self, first: u32, i: usize) -> Search {
        self.exact = false;
        self.decide(first, i);
        while let Some(node) = self.reduce() {
            let best = self.locally_best(node);
            self.decide(node, best);
        }
        self
    }

    /// Eliminates all nodes.
    fn solved(mut self) -> Search {
        let Some(first) = self.reduce() else {
            return self;
        };
        // The first guess binds more than any later one, so all that it can be are tried.
        let guess = self.locally_best(first);
        let others = (0..self.problem.alternatives(first)).filter(|&i| i != guess);
        let mut best = self.clone().decided(first, guess);
        for other in others {
            let found = self.clone().decided(first, other);
            if found.total < best.total {
                best = found;
            }
        }
        best
    }

    /// Chooses for the eliminated nodes.
    fn finish(mut self) -> Solution {
        let problem = &self.problem;
        for (node, edges) in self.eliminated.into_iter().rev() {
            let own = &problem.nodes[node as usize].costs;
            let total = |i: usize| {
                edges.iter().fold(own[i], |sum, &edge| {
                    let other = problem.other(edge, node) as usize;
                    sum.saturating_add(problem.edge_cost(edge, node, i, self.choices[other]))
                })
            };
            self.choices[node as usize] = (0..own.len()).min_by_key(|&i| total(i)).unwrap_or(0);
        }
        Solution {
            choices: self.choices,
            exact: self.exact,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small deterministic random number generator.
    struct Rng(u64);

    impl Rng {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1);
            (self.0 >> 33) % limit
        }
    }

    type EdgeList = Vec<(u32, u32, Vec<Cost>)>;

    fn total(nodes: &[Vec<Cost>], edges: &EdgeList, choices: &[usize]) -> Cost {
        let own: Cost = nodes.iter().zip(choices).map(|(n, &i)| n[i]).sum();
        let shared = edges.iter().map(|(a, b, costs)| {
            let columns = nodes[*b as usize].len();
            costs[choices[*a as usize] * columns + choices[*b as usize]]
        });
        own + shared.sum::<Cost>()
    }

    /// Cost of the best of all choices.
    fn brute_force(nodes: &[Vec<Cost>], edges: &EdgeList) -> Cost {
        let mut choices = vec![0; nodes.len()];
        let mut best = Cost::MAX;
        loop {
            best = best.min(total(nodes, edges, &choices));
            let mut at = 0;
            while at < nodes.len() {
                choices[at] += 1;
                if choices[at] < nodes[at].len() {
                    break;
                }
                choices[at] = 0;
                at += 1;
            }
            if at == nodes.len() {
                return best;
            }
        }
    }

    /// Random problems; returns how many were solved without a heuristic step.
    fn check(seed: u64, edge_limit: u64) -> usize {
        let mut rng = Rng(seed);
        let mut exact = 0;
        for _ in 0..200 {
            let count = 1 + rng.below(6);
            let nodes: Vec<Vec<Cost>> = (0..count)
                .map(|_| (0..1 + rng.below(3)).map(|_| rng.below(20)).collect())
                .collect();
            let mut edges = EdgeList::new();
            for _ in 0..rng.below(edge_limit) {
                let (a, b) = (rng.below(count) as u32, rng.below(count) as u32);
                if a != b {
                    let size = nodes[a as usize].len() * nodes[b as usize].len();
                    edges.push((a, b, (0..size).map(|_| rng.below(20)).collect()));
                }
            }
            let mut problem = Problem::default();
            for costs in &nodes {
                problem.add_node(costs.iter().copied().collect());
            }
            for (a, b, costs) in &edges {
                let columns = nodes[*b as usize].len();
                problem.add_edge(*a, *b, |i, j| costs[i * columns + j]);
            }
            let hint: Vec<(u32, usize)> = (0..count as u32).step_by(2).map(|n| (n, 0)).collect();
            let plain = problem.clone().solve(&[]);
            let solution = problem.solve(&hint);
            assert!(
                total(&nodes, &edges, &solution.choices) <= total(&nodes, &edges, &plain.choices)
            );
            let found = total(&nodes, &edges, &solution.choices);
            let best = brute_force(&nodes, &edges);
            if solution.exact {
                assert_eq!(found, best, "{nodes:?} {edges:?}");
                exact += 1;
            } else {
                assert!(found >= best, "better than the best: {nodes:?} {edges:?}");
            }
        }
        exact
    }

    #[test]
    fn reductions_of_low_degree_are_exact() {
        assert!(check(1, 7) > 150);
    }

    /// Four nodes whose first one suits each of the others in some way with its first alternative, but not all of them in the same
    /// way; with the second alternatives of all the sum is 1.
    fn add_trap(problem: &mut Problem) -> [u32; 4] {
        let costs = [[0, 1], [0, 0], [0, 0], [0, 0]];
        let [hub, a, b, c] = costs.map(|costs| problem.add_node(SmallVec::from_slice(&costs)));
        problem.add_edge(hub, a, |i, j| if i == 0 && j == 1 { 8 } else { 0 });
        problem.add_edge(hub, b, |i, j| if i == 0 && j == 0 { 8 } else { 0 });
        problem.add_edge(hub, c, |i, j| if i == 1 && j == 0 { 1 } else { 0 });
        for (x, y) in [(a, b), (b, c), (c, a)] {
            problem.add_edge(x, y, |i, j| if i == j { 0 } else { 8 });
        }
        [hub, a, b, c]
    }

    #[test]
    fn the_first_guess_is_made_again() {
        let mut problem = Problem::default();
        add_trap(&mut problem);
        let solution = problem.solve(&[]);
        assert_eq!(solution.choices, [1, 1, 1, 1]);
        assert!(!solution.exact);
    }

    #[test]
    fn a_hint_counts_where_it_is_better_than_guesses() {
        let mut problem = Problem::default();
        add_trap(&mut problem);
        let second = add_trap(&mut problem);
        // The second trap's hub is guessed once.
        let guessed = problem.clone().solve(&[]);
        assert_eq!(guessed.choices[..4], [1; 4]);
        assert_ne!(guessed.choices[4..], [1; 4]);
        let hinted = problem.clone().solve(&[(second[0], 1)]);
        assert_eq!(hinted.choices, [1; 8]);
        assert!(!hinted.exact);
        assert_eq!(problem.solve(&[(second[0], 0)]), guessed);
    }

    #[test]
    fn dense_problems_are_solved_too() {
        assert!(check(2, 20) < 200, "some need the heuristic step");
    }
}
