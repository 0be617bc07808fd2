//! Layout assignment: afterwards every block has a layout, and `convert_layout` stands where layouts change.
//!
//! # Algorithm
//! 1. `graph` splits the function into nodes that get one layout each and cheap values that every user
//!    computes for itself, such as ranges, splats and index arithmetic.
//! 2. Loads and stores offer the layouts they like (`seeds`). These *candidates* travel along edges, both ways,
//!    until each node has at most eight: through arithmetic unchanged, through changes of shape and
//!    `reduce` as the algebra of layouts says. Where pairs are split, a layout with fewer copies in
//!    registers takes the place of the one with most. A node that nothing reaches gets one from a neighbour by a guess
//!    (how to spread what a reduction took away), or the plain blocked layout.
//!    A load of what each thread can address anew may be done again in the layout of a user; that is weighed against the
//!    conversion like everything else.
//! 3. `cost` says what each candidate costs a node (instructions and sectors of accesses, shuffles and barriers
//!    of reductions, arithmetic repeated by threads that hold copies), and what converting costs each pair of
//!    candidates of an edge; each level of loops around it weighs eightfold.
//! 4. `pbqp` chooses, and `rewrite` writes the choice down. A reduction gets its attribute `order`, a scan its `tree`. Where there
//!    are several products, the solver also tries what its guesses seldom find: that all deal their warps to rows.
//!
//! # Exact and heuristic
//! Given candidates and costs, the choice is optimal unless the solver had to decide a node with three or more
//! undecided neighbours by its neighbourhood alone ([`LayoutStats::exact`] tells). Heuristic are the set of
//! candidates, the costs, that a conversion or second load is charged to each use although uses share it (but for factors of several
//! products), and that values computed anew cost nothing. Work is bounded: candidates by eight a node, each solver step by eight cubed.

use cranelift_entity::PrimaryMap;
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::{SmallVec, smallvec};

use crate::analysis::axis::Axis;
use crate::analysis::in_flight::in_flight;
use crate::analysis::program::ProgramOrder;
use crate::ir::entities::Inst;
use crate::ir::function::TileFunction;
use crate::ir::matrix_units::When;
use crate::ir::ops::TileOp;
use crate::layout::matrix;
use crate::linear_layout::layout::HwDim;
use crate::linear_layout::named;
use crate::linear_layout::pool::{LayoutId, LayoutPool};
use crate::linear_layout::shape::Shape;
use crate::settings::Target;
use crate::settings::diversity::Choices;
use graph::{Graph, MAX_CANDIDATES, Need, Node};
use pbqp::{Cost, Problem};
use places::Places;
use rewrite::Rewriter;
use sums::Sums;
use views::{LayoutStep, Views};

mod cost;
mod graph;
mod pbqp;
mod places;
mod rewrite;
mod rings;
mod seeds;
mod strided;
mod sums;
mod views;

#[cfg(test)]
mod tests;

/// How many times the registers of another layout a candidate needs that makes room for it.
const EVICTED: u32 = 2;

/// What assignment did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LayoutStats {
    /// Conversions in the function.
    pub conversions: u32,
    /// Bytes of the blocks they convert.
    pub bytes: u64,
    /// Whether no other choice among the candidates costs less by the estimates.
    pub exact: bool,
}

/// Gives every block of the function a layout. `axis` was computed for the function as it is. With other `choices`, which may
/// offer layouts that nobody likes, the cheapest are not taken.
pub fn assign_layouts(
    func: &mut TileFunction,
    axis: &Axis,
    target: Target,
    mut choices: Choices,
) -> LayoutStats {
    let order = ProgramOrder::compute(func);
    let graph = Graph::build(func, &order, target);
    let mut assignment = Assignment {
        pool: std::mem::take(&mut func.layouts),
        graph,
        views: Views::default(),
        accesses: FxHashMap::default(),
        places: Places::default(),
        sums: Sums::of_products(func, axis),
        pending: Vec::new(),
        num_warps: func.num_warps(),
        pairs: [TileOp::Split, TileOp::Join]
            .iter()
            .any(|&op| func.insts_with(op).next().is_some()),
    };
    assignment.offer_packs();
    let is_diverse = choices.chance(60);
    if is_diverse {
        assignment.offer_any(&mut choices);
    }
    assignment.seed(func, axis, target);
    assignment.find_places(func, axis);
    assignment.propagate();
    assignment.complete();
    assignment.keep_in_flight(func);
    let (mut chosen, mut exact) = assignment.choose(func);
    if is_diverse {
        assignment.choose_any(&mut chosen, &mut choices);
        exact = false;
    }
    let again = assignment.loads_done_again(&chosen);
    func.layouts = assignment.pool;
    let decided = rewrite::Decisions {
        chosen: &chosen,
        again: &again,
    };
    let stats = Rewriter::run(func, &order, &assignment.graph, decided, assignment.views);
    rings::assign(func);
    LayoutStats { exact, ..stats }
}

/// The work in progress.
struct Assignment {
    pool: LayoutPool,
    graph: Graph,
    views: Views,
    /// How the accesses among the nodes see memory.
    accesses: FxHashMap<Node, cost::AccessShape>,
    places: Places,
    sums: Sums,
    /// Nodes with a candidate that their neighbours have not heard of.
    pending: Vec<(Node, LayoutId)>,
    num_warps: u32,
    /// Whether pairs are split or joined, so that a layout which tells them apart by threads goes through a chain of copies. Elsewhere
    /// copies are what rows of sums have by nature.
    pairs: bool,
}

impl Assignment {
    /// Makes a layout a candidate of a node, if there is room.
    fn offer(&mut self, node: Node, layout: LayoutId) {
        // A store takes runs as they are in registers beside each other, and their order there is free.
        let stored = self.accesses.get(&node).filter(|access| access.is_store);
        let moved = stored
            .filter(|access| access.vector > 1)
            .and_then(|access| self.pool[layout].with_runs_first(access.dim));
        let layout = moved.map_or(layout, |moved| self.pool.intern(moved));
        // So does inline PTX, which takes no other ones.
        let packed = self.graph.nodes[node].packed;
        let moved = packed.and_then(|(dim, _)| self.pool[layout].with_runs_first(dim));
        let layout = moved.map_or(layout, |moved| self.pool.intern(moved));
        if packed.is_some_and(|(dim, run)| self.pool[layout].vector_width(dim, run) < run) {
            return;
        }
        let data = &mut self.graph.nodes[node];
        if let Some(axis) = data.scanned
            && self.pool[layout].digits(usize::from(axis)).is_none()
        {
            return;
        }
        if let Some(unit) = data.unit {
            let sum = &self.pool[layout];
            let fits = match unit.info().when {
                When::UntilWait => self.sums.of(data.shape, self.num_warps).as_ref() == Some(sum),
                When::Now => matrix::is_accumulator(sum, unit),
            };
            if !fits {
                return;
            }
        }
        if data.candidates.contains(&layout) {
            return;
        }
        debug_assert_eq!(self.pool[layout].shape(), data.shape);
        if data.candidates.len() < MAX_CANDIDATES {
            data.candidates.push(layout);
        } else {
            // Copies in registers double with each join that is undone on the way: what needs fewer takes the place of what needs most.
            let registers = |id: LayoutId| self.pool[id].num_registers();
            let most = data.candidates.iter_mut().max_by_key(|id| registers(**id));
            let gives_way = |id: LayoutId| registers(id) >= EVICTED * registers(layout);
            match most.filter(|most| self.pairs && gives_way(**most)) {
                Some(most) => *most = layout,
                None => return,
            }
        }
        self.pending.push((node, layout));
    }

    /// Offers inline PTX of several elements a layout that it can take.
    fn offer_packs(&mut self) {
        let nodes = self.graph.nodes.iter();
        let packed: Vec<_> = nodes
            .filter_map(|(node, data)| Some((node, data.shape, data.packed?)))
            .collect();
        for (node, shape, (dim, run)) in packed {
            let mut order: Vec<usize> = (0..shape.rank()).rev().collect();
            order.sort_by_key(|&other| other != dim);
            let sizes: Vec<u32> = (0..shape.rank())
                .map(|other| if other == dim { run } else { 1 })
                .collect();
            // The arguments are powers of two and a permutation, so nothing is refused.
            if let Ok(layout) = named::blocked(shape, &sizes, &order, self.num_warps) {
                let layout = self.pool.intern(layout);
                self.offer(node, layout);
            }
        }
    }

    /// Offers some nodes blocked layouts of any kind.
    fn offer_any(&mut self, choices: &mut Choices) {
        let nodes: Vec<Node> = self.graph.nodes.keys().collect();
        for node in nodes {
            let shape = self.graph.nodes[node].shape;
            if shape.rank() == 0 || !choices.chance(20) {
                continue;
            }
            let mut order: Vec<usize> = (0..shape.rank()).collect();
            choices.shuffle(&mut order);
            let sizes = shape.log2().iter();
            let sizes: Vec<u32> = sizes
                .map(|&log2| 1 << choices.below(usize::from(log2).min(3) + 1))
                .collect();
            // The arguments are powers of two and a permutation, so nothing is refused.
            if let Ok(layout) = named::blocked(shape, &sizes, &order, self.num_warps) {
                let layout = self.pool.intern(layout);
                self.offer(node, layout);
            }
        }
    }

    /// Takes other candidates for some nodes or all.
    fn choose_any(&self, chosen: &mut PrimaryMap<Node, LayoutId>, choices: &mut Choices) {
        let percent = [10, 50, 100][choices.below(3)];
        for (node, layout) in chosen.iter_mut() {
            if choices.chance(percent) {
                let candidates = &self.graph.nodes[node].candidates;
                *layout = candidates[choices.below(candidates.len())];
            }
        }
    }

    /// The layout of a node's value when the node has the layout.
    fn output(&mut self, node: Node, layout: LayoutId) -> LayoutId {
        match self.graph.nodes[node].reduced {
            Some(axis) => self
                .views
                .view(&mut self.pool, layout, LayoutStep::Reduce(axis)),
            None => layout,
        }
    }

    /// Spreads candidates along edges wherever the algebra leaves no choice. A node hears of at most
    /// [`MAX_CANDIDATES`] layouts, and of a few more where some give way, so each edge is looked at that often from each end.
    fn propagate(&mut self) {
        while let Some((node, layout)) = self.pending.pop() {
            for i in 0..self.graph.nodes[node].edges.len() {
                let edge = &self.graph.edges[self.graph.nodes[node].edges[i] as usize];
                let (from, to, need) = (edge.from, edge.to, edge.need);
                if from == node {
                    let output = self.output(node, layout);
                    let view = match need {
                        Need::Same => LayoutStep::Need(Need::Same),
                        Need::BeforeExpand(axis) => LayoutStep::Expand(axis),
                        Need::BeforeReshape(_) => LayoutStep::Reshape(self.graph.nodes[to].shape),
                        Need::BeforePermute(dims) => LayoutStep::Permute(dims),
                        Need::BeforeJoin => LayoutStep::Join,
                        Need::BeforeSplit => {
                            // Only pairs that one thread holds come apart for free; of others, that is what is nearest.
                            let whole = &self.pool[output];
                            let held = whole.split().map(|(half, _)| half);
                            if let Some(half) = held.or_else(|| whole.halves_nearby()) {
                                let half = self.pool.intern(half);
                                self.offer(to, half);
                            }
                            continue;
                        }
                        Need::Counted => continue,
                        Need::Gathered(_) => {
                            if self.graph.nodes[to].shape == self.pool[output].shape() {
                                self.offer(to, output);
                            }
                            continue;
                        }
                        Need::BeforeBroadcast(_)
                        | Need::BeforeDot(..)
                        | Need::BeforeUnit(..)
                        | Need::BeforeWarpgroup(..) => continue,
                    };
                    let wanted = self.views.view(&mut self.pool, output, view);
                    self.offer(to, wanted);
                    if need == Need::BeforeJoin {
                        self.offer_spread(to, output);
                    }
                }
                let fits = match need {
                    Need::Gathered(_) => {
                        self.graph.nodes[from].shape == self.graph.nodes[node].shape
                    }
                    Need::Counted => false,
                    _ => true,
                };
                if to == node && self.graph.nodes[from].reduced.is_none() && fits {
                    let wanted = self
                        .views
                        .view(&mut self.pool, layout, LayoutStep::Need(need));
                    self.offer(from, wanted);
                }
            }
        }
    }

    /// Offers a join the layouts that tell its operands apart by threads which hold copies of them: what a reduction left behind
    /// goes back to where it came from. The lowest lane comes last, to be looked at first.
    fn offer_spread(&mut self, join: Node, operand: LayoutId) {
        for dim in [HwDim::Warp, HwDim::Lane] {
            let free = self.pool[operand].free_mask(dim);
            for bit in (0..self.pool[operand].bits(dim)).rev() {
                if free >> bit & 1 == 1 {
                    let view = LayoutStep::JoinCopies(dim, bit);
                    let spread = self.views.view(&mut self.pool, operand, view);
                    self.offer(join, spread);
                }
            }
        }
    }

    /// Finds something for nodes that nothing has reached.
    fn complete(&mut self) {
        let nodes: Vec<Node> = self.graph.nodes.keys().collect();
        for node in nodes {
            if self.graph.nodes[node].candidates.is_empty() {
                let guess = self.guess(node);
                self.offer(node, guess);
                self.propagate();
            }
        }
    }

    /// A layout for a node without candidates: what a neighbour's comes from or goes to, else the plain one.
    fn guess(&mut self, node: Node) -> LayoutId {
        let shape = self.graph.nodes[node].shape;
        for i in 0..self.graph.nodes[node].edges.len() {
            let edge = &self.graph.edges[self.graph.nodes[node].edges[i] as usize];
            let (from, to, need) = (edge.from, edge.to, edge.need);
            if to == node {
                let first = self.graph.nodes[from].candidates.first().copied();
                if let (Some(layout), Need::BeforeBroadcast(_)) = (first, need) {
                    let output = self.output(from, layout);
                    return self
                        .views
                        .view(&mut self.pool, output, LayoutStep::Broadcast(shape));
                }
            } else if !need.is_any()
                && let Some(axis) = self.graph.nodes[node].reduced
                && let Some(&layout) = self.graph.nodes[to].candidates.first()
            {
                let result = self
                    .views
                    .view(&mut self.pool, layout, LayoutStep::Need(need));
                let view = LayoutStep::BeforeReduce(axis, shape);
                return self.views.view(&mut self.pool, result, view);
            }
        }
        plain(&mut self.pool, shape, self.num_warps)
    }

    /// What a node costs in a layout.
    fn node_cost(&self, func: &TileFunction, node: Node, layout: LayoutId) -> Cost {
        let data = &self.graph.nodes[node];
        let layout = &self.pool[layout];
        let Some(inst) = data.inst else {
            // A value in registers: what costs is that they are taken.
            return Cost::from(layout.num_registers()).saturating_mul(weight(data.depth));
        };
        let op = func.dfg.insts[inst].op;
        let cost = match (self.accesses.get(&node), data.reduced) {
            // There is one layout for it.
            (None, None) if matches!(op, TileOp::DotStart | TileOp::DotDone) => 0,
            (None, None) if op == TileOp::Dot => match data.unit {
                Some(unit) => cost::product(layout, unit, terms(func, inst)),
                None => cost::dot(layout, terms(func, inst)),
            },
            (Some(access), _) => cost::access(layout, access),
            (None, Some(axis)) => {
                cost::reduction(layout, usize::from(axis), operand_bits(func, inst))
            }
            (None, None) => match data.scanned {
                Some(axis) => cost::scan(layout, usize::from(axis), operand_bits(func, inst)),
                None => cost::elementwise(layout, op) + self.places.cost(func, inst, layout),
            },
        };
        debug_assert!(op != TileOp::ConvertLayout, "layouts are assigned once");
        cost.saturating_mul(weight(data.depth))
    }

    /// What loading once more in a layout costs, if the node is a load that can be repeated.
    fn second_load(&self, node: Node, layout: LayoutId) -> Option<Cost> {
        let access = self.accesses.get(&node)?;
        let again = self.graph.nodes[node].loads_again;
        again.then(|| cost::access(&self.pool[layout], access))
    }

    /// For each load that users want in other layouts, those in which it is done again as that costs less than converting.
    fn loads_done_again(
        &mut self,
        chosen: &PrimaryMap<Node, LayoutId>,
    ) -> FxHashMap<Node, SmallVec<[LayoutId; 2]>> {
        let mut again: FxHashMap<Node, SmallVec<[LayoutId; 2]>> = FxHashMap::default();
        for edge in &self.graph.edges {
            if !self.graph.nodes[edge.from].loads_again || edge.need.is_any() {
                continue;
            }
            let need = LayoutStep::Need(edge.need);
            let wanted = self.views.view(&mut self.pool, chosen[edge.to], need);
            let bits = edge.elem_bits;
            let own = chosen[edge.from];
            let convert = self.views.conversion_cost(&self.pool, own, wanted, bits);
            let load = self.second_load(edge.from, wanted);
            if load.is_some_and(|load| load < convert) {
                let list = again.entry(edge.from).or_default();
                if !list.contains(&wanted) {
                    list.push(wanted);
                }
            }
        }
        again
    }

    /// Where there are several products, the layouts of them that deal all warps to rows, for them and for what is computed in such
    /// a layout: what sums along the rows of one product and goes into the next then stays in its warp, if all do so.
    fn products_by_rows(&self, func: &TileFunction) -> Vec<(u32, usize)> {
        let is_product = |inst: Inst| func.dfg.insts[inst].is_product();
        let mut products = 0;
        let mut by_rows: SmallVec<[LayoutId; 4]> = SmallVec::new();
        for data in self.graph.nodes.values() {
            if !data.inst.is_some_and(is_product) {
                continue;
            }
            products += 1;
            let columns = data.shape.bit_mask(data.shape.rank() - 1);
            let found = data.candidates.iter().find(|&&layout| {
                let warps = self.pool[layout].columns(HwDim::Warp);
                warps.iter().all(|&column| column & columns == 0)
            });
            by_rows.extend(found.copied());
        }
        if products < 2 {
            return Vec::new();
        }
        let nodes = self.graph.nodes.iter();
        let computed = nodes.filter(|(node, _)| !self.accesses.contains_key(node));
        computed
            .filter_map(|(node, data)| {
                let mut candidates = data.candidates.iter();
                let i = candidates.position(|layout| by_rows.contains(layout))?;
                Some((node.as_u32(), i))
            })
            .collect()
    }

    /// Sums that products in flight add to stay where the unit has them, whatever the costs.
    fn keep_in_flight(&mut self, func: &TileFunction) {
        let values = in_flight(func);
        for value in values.keys().filter(|&v| values.contains(v)) {
            let Some(node) = self.graph.of_value(value) else {
                continue;
            };
            let shape = self.graph.nodes[node].shape;
            if let Some(layout) = self.sums.of(shape, self.num_warps) {
                let layout = self.pool.intern(layout);
                self.graph.nodes[node].candidates = [layout].into_iter().collect();
            }
        }
    }

    /// The uses of each value as the same factor of several products, which share what it is converted to.
    fn shared_operands(&self) -> Vec<SmallVec<[usize; 4]>> {
        let mut uses: IndexMap<(Node, Need), SmallVec<[usize; 4]>, FxBuildHasher> =
            IndexMap::default();
        for (at, edge) in self.graph.edges.iter().enumerate() {
            let from = &self.graph.nodes[edge.from];
            if edge.need.is_factor() && !from.loads_again && from.reduced.is_none() {
                uses.entry((edge.from, edge.need)).or_default().push(at);
            }
        }
        uses.retain(|_, edges| edges.len() > 1);
        uses.into_values().collect()
    }

    /// Adds a node for the factor that the products of these edges want, so that converting it costs once.
    fn add_operand(&mut self, problem: &mut Problem, edges: &[usize]) {
        let edges: SmallVec<[&graph::Edge; 4]> =
            edges.iter().map(|&at| &self.graph.edges[at]).collect();
        let [first, ..] = edges[..] else {
            return;
        };
        let (views, pool) = (&mut self.views, &mut self.pool);
        let mut wanted: SmallVec<[LayoutId; MAX_CANDIDATES]> = SmallVec::new();
        let needs = |layout, pool: &mut LayoutPool, views: &mut Views| {
            views.view(pool, layout, LayoutStep::Need(first.need))
        };
        for edge in &edges {
            for &layout in &self.graph.nodes[edge.to].candidates {
                let need = needs(layout, pool, views);
                if !wanted.contains(&need) && wanted.len() < MAX_CANDIDATES {
                    wanted.push(need);
                }
            }
        }
        let operand = problem.add_node(smallvec![0; wanted.len()]);
        let outputs = &self.graph.nodes[first.from].candidates;
        let depth = edges.iter().map(|edge| edge.depth).max();
        let most = weight(depth.unwrap_or(0));
        problem.add_edge(first.from.as_u32(), operand, |i, k| {
            let cost = views.conversion_cost(pool, outputs[i], wanted[k], first.elem_bits);
            cost.saturating_mul(most)
        });
        for edge in &edges {
            let candidates = &self.graph.nodes[edge.to].candidates;
            let needs: SmallVec<[LayoutId; MAX_CANDIDATES]> = candidates
                .iter()
                .map(|&layout| needs(layout, pool, views))
                .collect();
            problem.add_edge(operand, edge.to.as_u32(), |k, j| {
                let cost = views.conversion_cost(pool, wanted[k], needs[j], edge.elem_bits);
                cost.saturating_mul(weight(edge.depth))
            });
        }
    }

    /// Chooses a layout for each node; the flag says whether the choice is optimal.
    fn choose(&mut self, func: &TileFunction) -> (PrimaryMap<Node, LayoutId>, bool) {
        let decided = |node: &graph::NodeData| node.candidates.len() == 1;
        if self.graph.nodes.values().all(decided) {
            let only = self.graph.nodes.values().map(|node| node.candidates[0]);
            return (only.collect(), true);
        }
        let mut problem = Problem::default();
        for (node, data) in &self.graph.nodes {
            let costs = data.candidates.iter();
            problem.add_node(costs.map(|&l| self.node_cost(func, node, l)).collect());
        }
        let mut is_added = vec![false; self.graph.edges.len()];
        for edges in self.shared_operands() {
            self.add_operand(&mut problem, &edges);
            edges.iter().for_each(|&at| is_added[at] = true);
        }
        let edges = self.graph.edges.iter().zip(is_added);
        for (edge, _) in edges.filter(|&(_, is_added)| !is_added) {
            let views = &mut self.views;
            let from = &self.graph.nodes[edge.from];
            let to = &self.graph.nodes[edge.to];
            let outputs: SmallVec<[LayoutId; MAX_CANDIDATES]> = match from.reduced {
                None => from.candidates.clone(),
                Some(axis) => {
                    let results = from.candidates.iter();
                    results
                        .map(|&l| views.view(&mut self.pool, l, LayoutStep::Reduce(axis)))
                        .collect()
                }
            };
            let weight = weight(edge.depth);
            if let Need::Gathered(axis) = edge.need {
                let pool = &self.pool;
                problem.add_edge(edge.from.as_u32(), edge.to.as_u32(), |i, j| {
                    let (source, index) = (&pool[outputs[i]], &pool[to.candidates[j]]);
                    let cost = cost::gather(source, index, usize::from(axis), edge.elem_bits);
                    cost.saturating_mul(weight)
                });
                continue;
            }
            if edge.need == Need::Counted {
                let pool = &self.pool;
                problem.add_edge(edge.from.as_u32(), edge.to.as_u32(), |i, _| {
                    cost::histogram(&pool[outputs[i]]).saturating_mul(weight)
                });
                continue;
            }
            let needs: SmallVec<[LayoutId; MAX_CANDIDATES]> = to
                .candidates
                .iter()
                .map(|&l| views.view(&mut self.pool, l, LayoutStep::Need(edge.need)))
                .collect();
            let access = self.accesses.get(&edge.from).filter(|_| from.loads_again);
            let smaller = from.inst.and_then(|inst| graph::broadcast_of(func, inst));
            let pool = &mut self.pool;
            let loads: SmallVec<[Option<Cost>; MAX_CANDIDATES]> = needs
                .iter()
                .map(|&need| access.map(|access| cost::access(&pool[need], access)))
                .collect();
            problem.add_edge(edge.from.as_u32(), edge.to.as_u32(), |i, j| {
                let both = [outputs[i], needs[j]];
                let (convert, _) = views.broadcast_cost(pool, smaller, both, edge.elem_bits);
                let cost = loads[j].map_or(convert, |load| load.min(convert));
                cost.saturating_mul(weight)
            });
        }
        let solution = problem.solve(&self.products_by_rows(func));
        let choices = self.graph.nodes.values().zip(&solution.choices);
        let chosen = choices.map(|(node, &choice)| node.candidates[choice]);
        (chosen.collect(), solution.exact)
    }
}

/// Neighbours along the last dimension side by side.
fn plain(pool: &mut LayoutPool, shape: Shape, num_warps: u32) -> LayoutId {
    let order: Vec<usize> = (0..shape.rank()).rev().collect();
    let layout = named::coalesced(shape, &order, 1, num_warps)
        .or_else(|_| named::replicated(shape, num_warps))
        .expect("the number of warps is a power of two and the order a permutation");
    pool.intern(layout)
}

/// Length of the sums of a product of matrices.
fn terms(func: &TileFunction, inst: Inst) -> u64 {
    let left = func.dfg.ty(func.dfg.insts[inst].args[0]).shape;
    left.extents().last().unwrap_or(1)
}

/// Bits of the registers that hold an element of each operand.
fn operand_bits(func: &TileFunction, inst: Inst) -> u32 {
    let args = func.dfg.insts[inst].args.iter();
    args.map(|&v| func.dfg.ty(v).elem.bits().max(32)).sum()
}

/// How often something inside of `depth` loops is taken to run.
fn weight(depth: u32) -> Cost {
    8u64.pow(depth.min(16))
}
