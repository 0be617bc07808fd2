//! The layout graph of a function: who has a layout of its own, and who wants whose result how.
//!
//! A *node* is what gets one layout: an access to memory, a computation worth doing once, a value that loops
//! carry or `if` chooses. An *edge* says that a node's value is an operand of another, and which layout of the
//! operand the user's layout asks for ([`Need`]).
//!
//! A *cheap* value (a range, a splat, index arithmetic over such) is no node: each user gets it in the layout it
//! likes. How much arithmetic a copy may cost is bounded by [`CHEAP_LIMIT`].

use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl, packed_option::PackedOption};
use smallvec::SmallVec;

use crate::analysis::program::{ProgramOrder, WalkStep};
use crate::ir::attrs::{Attrs, MmaUnit};
use crate::ir::entities::{Inst, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::{Opcode, TileOp};
use crate::layout::{matrix, warpgroup};
use crate::linear_layout::pool::LayoutId;
use crate::linear_layout::shape::{MAX_RANK, Shape};
use crate::settings::Target;

/// Operations per element that a value computed anew for another layout may take.
const CHEAP_LIMIT: u16 = 32;

/// Most layouts a node chooses from.
pub(super) const MAX_CANDIDATES: usize = 8;

/// A node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Node(u32);
entity_impl!(Node, "node");

/// Layouts a node chooses from.
pub(super) type Candidates = SmallVec<[LayoutId; MAX_CANDIDATES]>;

/// What is known of a node.
#[derive(Debug)]
pub(super) struct NodeData {
    /// Shape the node's layout is for: of the operands of stores and reductions, of the result of all else.
    pub shape: Shape,
    /// The instruction; none for values that control flow passes on.
    pub inst: Option<Inst>,
    /// Number of loops around it.
    pub depth: u32,
    /// Axis that a reduction takes out of the layout of its result.
    pub reduced: Option<u8>,
    /// Axis of a scan, which wants it in digits.
    pub scanned: Option<u8>,
    /// Dimension along which registers beside each other hold so many neighbours: what inline PTX takes together.
    pub packed: Option<(usize, u32)>,
    /// Unit that multiplies matrices.
    pub unit: Option<MmaUnit>,
    /// Whether it is a load that may be done again, from addresses that each user computes.
    pub loads_again: bool,
    /// What it chooses from.
    pub candidates: Candidates,
    /// Edges from and to the node.
    pub edges: SmallVec<[u32; 6]>,
}

/// The operand's layout that a user with layout `L` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Need {
    /// `L`.
    Same,
    /// The one that `expand_dims` at the axis makes `L` of.
    BeforeExpand(u8),
    /// The one that `broadcast` from the shape makes `L` of.
    BeforeBroadcast(Shape),
    /// The one of the shape that a reshape makes `L` of.
    BeforeReshape(Shape),
    /// The one that a permutation makes `L` of.
    BeforePermute(Dims),
    /// The one of each of two blocks that join to `L`.
    BeforeJoin,
    /// The one whose halves have `L`.
    BeforeSplit,
    /// The one that gives each thread all it needs to compute `L`: of the left factor of the shape if the flag is set, else
    /// of the right one.
    BeforeDot(Shape, bool),
    /// The same for the unit.
    BeforeUnit(Shape, bool, MmaUnit),
    /// What a warpgroup wants of a left factor of the shape.
    BeforeWarpgroup(Shape, MmaUnit),
    /// Any: what a gather along the axis costs depends on it.
    Gathered(u8),
    /// Any: each thread counts what it holds.
    Counted,
}

impl Need {
    /// Whether the operand is a factor of a product of matrices.
    pub(super) fn is_factor(self) -> bool {
        matches!(
            self,
            Need::BeforeDot(..) | Need::BeforeUnit(..) | Need::BeforeWarpgroup(..)
        )
    }

    /// Whether any layout of the operand will do.
    pub(super) fn is_any(self) -> bool {
        matches!(self, Need::Gathered(_) | Need::Counted)
    }
}

/// The dimensions of a permutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Dims {
    rank: u8,
    dims: [u8; MAX_RANK],
}

impl Dims {
    fn new(list: &[u32]) -> Dims {
        let mut dims = [0; MAX_RANK];
        for (to, &from) in dims.iter_mut().zip(list) {
            *to = from as u8;
        }
        Dims {
            rank: list.len() as u8,
            dims,
        }
    }

    /// Dimension of the operand that each of the result's is.
    pub(super) fn list(&self) -> Vec<usize> {
        let dims = self.dims[..usize::from(self.rank)].iter();
        dims.map(|&d| usize::from(d)).collect()
    }
}

/// A use of one node's value by another.
#[derive(Debug)]
pub(super) struct Edge {
    /// Whose value it is.
    pub from: Node,
    /// Who uses it.
    pub to: Node,
    /// What of it is needed.
    pub need: Need,
    /// Bits of an element.
    pub elem_bits: u32,
    /// Number of loops around the place of a conversion.
    pub depth: u32,
}

/// The shape that a broadcast makes a larger block of.
pub(super) fn broadcast_of(func: &TileFunction, inst: Inst) -> Option<Shape> {
    let data = &func.dfg.insts[inst];
    (data.op == TileOp::Broadcast).then(|| func.dfg.ty(data.args[0]).shape)
}

/// What inline PTX takes together of a block of the shape, if that is more than an element.
fn packed(func: &TileFunction, inst: Inst, shape: Shape) -> Option<(usize, u32)> {
    let data = &func.dfg.insts[inst];
    let pack = u64::from(data.pack().copied().unwrap_or(1));
    let dim = data
        .axis()
        .map_or(shape.rank() - 1, |&axis| usize::from(axis));
    let run = pack.min(shape.extent(dim)) as u32;
    (run > 1).then_some((dim, run))
}

/// The unit of the target for an instruction that multiplies matrices.
fn unit_of(func: &TileFunction, inst: Inst, target: Target) -> Option<MmaUnit> {
    let data = &func.dfg.insts[inst];
    match data.op {
        TileOp::Dot => matrix::unit(&matrix::dot_info(func, inst), target),
        TileOp::DotStart => warpgroup::unit_of(func, inst, target),
        _ => None,
    }
}

/// The graph.
#[derive(Debug)]
pub(super) struct Graph {
    target: Target,
    /// Nodes in program order.
    pub nodes: PrimaryMap<Node, NodeData>,
    /// Edges in program order of the uses.
    pub edges: Vec<Edge>,
    of_value: SecondaryMap<Value, PackedOption<Node>>,
    of_inst: SecondaryMap<Inst, PackedOption<Node>>,
    /// Operations it takes to compute a cheap value; 0 for all other values.
    cheap: SecondaryMap<Value, u16>,
}

impl Graph {
    /// The node whose layout a value has; none for scalars and cheap values.
    pub(super) fn of_value(&self, value: Value) -> Option<Node> {
        self.of_value[value].expand()
    }

    /// The node of an instruction.
    pub(super) fn of_inst(&self, inst: Inst) -> Option<Node> {
        self.of_inst[inst].expand()
    }

    /// Whether each user may compute the value for itself.
    pub(super) fn is_cheap(&self, value: Value) -> bool {
        self.cheap[value] > 0
    }

    /// What an instruction's layout asks of its operand number `index`.
    pub(super) fn need(&self, func: &TileFunction, inst: Inst, index: usize) -> Need {
        let unit = self.of_inst(inst).and_then(|node| self.nodes[node].unit);
        let data = &func.dfg.insts[inst];
        match data.op {
            TileOp::ExpandDims => Need::BeforeExpand(data.axis().copied().unwrap_or(0)),
            TileOp::Broadcast => Need::BeforeBroadcast(func.dfg.ty(data.args[0]).shape),
            TileOp::Reshape => Need::BeforeReshape(func.dfg.ty(data.args[0]).shape),
            TileOp::Permute => Need::BeforePermute(Dims::new(data.dims().map_or(&[][..], |d| d))),
            TileOp::Join => Need::BeforeJoin,
            TileOp::Split => Need::BeforeSplit,
            TileOp::Gather if index == 0 => Need::Gathered(data.axis().copied().unwrap_or(0)),
            TileOp::Histogram => Need::Counted,
            TileOp::DotStart if index == 0 => match unit {
                Some(unit) => Need::BeforeWarpgroup(func.dfg.ty(data.args[0]).shape, unit),
                None => Need::Same,
            },
            TileOp::Dot if index < 2 => {
                let shape = func.dfg.ty(data.args[index]).shape;
                match unit {
                    Some(unit) => Need::BeforeUnit(shape, index == 0, unit),
                    None => Need::BeforeDot(shape, index == 0),
                }
            }
            _ => Need::Same,
        }
    }

    /// Builds the graph, without candidates.
    pub(super) fn build(func: &TileFunction, order: &ProgramOrder, target: Target) -> Graph {
        let mut graph = Graph {
            target,
            nodes: PrimaryMap::new(),
            edges: Vec::new(),
            of_value: SecondaryMap::new(),
            of_inst: SecondaryMap::new(),
            cheap: SecondaryMap::new(),
        };
        let mut depth = 0;
        for &step in order.steps() {
            match step {
                WalkStep::Inst(inst) => graph.inst(func, order, inst, depth),
                WalkStep::Enter(inst) => {
                    graph.enter(func, inst, depth);
                    depth += loops(func, inst);
                }
                WalkStep::Region(_) => {}
                WalkStep::Leave(inst) => depth -= loops(func, inst),
            }
        }
        graph
    }

    fn add_node(&mut self, shape: Shape, inst: Option<Inst>, depth: u32) -> Node {
        let node = self.nodes.push(NodeData {
            shape,
            inst,
            depth,
            reduced: None,
            scanned: None,
            packed: None,
            unit: None,
            loads_again: false,
            candidates: Candidates::new(),
            edges: SmallVec::new(),
        });
        if let Some(inst) = inst {
            self.of_inst[inst] = Some(node).into();
        }
        node
    }

    /// A node for a block that control flow passes on under the given names.
    fn add_passed(&mut self, func: &TileFunction, names: &[Value], depth: u32) -> Option<Node> {
        let shape = func.dfg.ty(names[0]).shape;
        if shape.is_scalar() {
            return None;
        }
        let node = self.add_node(shape, None, depth);
        for &name in names {
            self.of_value[name] = Some(node).into();
        }
        Some(node)
    }

    fn add_edge(&mut self, func: &TileFunction, value: Value, to: Node, need: Need, depth: u32) {
        let Some(from) = self.of_value(value) else {
            return;
        };
        let edge = self.edges.len() as u32;
        self.edges.push(Edge {
            from,
            to,
            need,
            elem_bits: func.dfg.ty(value).elem.bits(),
            // A conversion stands where the value is defined if that is further out.
            depth: depth.min(self.nodes[from].depth),
        });
        self.nodes[from].edges.push(edge);
        if from != to {
            self.nodes[to].edges.push(edge);
        }
    }

    fn inst(&mut self, func: &TileFunction, order: &ProgramOrder, inst: Inst, depth: u32) {
        let data = &func.dfg.insts[inst];
        match data.op {
            TileOp::Yield => {
                let Some(owner) = order.parent(func, inst) else {
                    return;
                };
                let owner = &func.dfg.insts[owner];
                let first = &func.dfg.blocks[owner.blocks[0].block].params[..];
                let targets = match owner.op {
                    TileOp::For => &first[1..],
                    TileOp::While => first,
                    TileOp::If => &owner.results[..],
                    _ => return,
                };
                self.pass(func, &data.args, targets, depth);
            }
            TileOp::Condition => {
                if let Some(owner) = order.parent(func, inst) {
                    let targets = &func.dfg.insts[owner].results;
                    self.pass(func, &data.args[1..], targets, depth);
                }
            }
            TileOp::InlinePtx => {
                let results = func.dfg.insts[inst].results.clone();
                let shape = results.first().map(|&v| func.dfg.ty(v).shape);
                if let Some(shape) = shape.filter(|shape| !shape.is_scalar()) {
                    let node = self.add_node(shape, Some(inst), depth);
                    self.nodes[node].packed = packed(func, inst, shape);
                    for result in results {
                        self.of_value[result] = Some(node).into();
                    }
                    self.operands(func, inst, node, depth);
                }
            }
            TileOp::DotStart | TileOp::DotDone => {
                let sum = data.results[0];
                let node = self.add_node(func.dfg.ty(sum).shape, Some(inst), depth);
                self.nodes[node].unit = unit_of(func, inst, self.target);
                self.of_value[sum] = Some(node).into();
                self.operands(func, inst, node, depth);
            }
            // It is where it was summed.
            TileOp::DotSum => self.of_value[data.results[0]] = self.of_value[data.args[0]],
            // Where a ring's blocks stand is decided when it is known who fills it.
            _ if data.results.iter().any(|&v| func.dfg.ty(v).is_shared()) => {}
            TileOp::Store
            | TileOp::AsyncCopy
            | TileOp::SharedStore
            | TileOp::TensorStore
            | TileOp::DevicePrint
            | TileOp::DeviceAssert
                if !data.args.is_empty() =>
            {
                let block = data.args[usize::from(data.op == TileOp::TensorStore)];
                let shape = func.dfg.ty(block).shape;
                if !shape.is_scalar() {
                    let node = self.add_node(shape, Some(inst), depth);
                    self.operands(func, inst, node, depth);
                }
            }
            _ => {
                let Some(result) = func.dfg.single_result(inst) else {
                    return;
                };
                let shape = func.dfg.ty(result).shape;
                if shape.is_scalar() {
                    // A scalar out of a block: all threads get it, so the block is held by all.
                    if matches!(data.op, TileOp::Split | TileOp::Reshape) {
                        let node = self.add_node(shape, Some(inst), depth);
                        self.operands(func, inst, node, depth);
                    }
                    return;
                }
                if let Some(cost) = self.cheap_cost(func, inst) {
                    self.cheap[result] = cost;
                    return;
                }
                let node = self.add_node(shape, Some(inst), depth);
                self.nodes[node].unit = unit_of(func, inst, self.target);
                self.nodes[node].loads_again = self.loads_again(func, inst);
                self.of_value[result] = Some(node).into();
                self.operands(func, inst, node, depth);
            }
        }
    }

    /// Whether an instruction is a load that gives the same when it is repeated at its place, and whose operands cost little in
    /// any layout.
    fn loads_again(&self, func: &TileFunction, inst: Inst) -> bool {
        let data = &func.dfg.insts[inst];
        let is_cheap = |v: &Value| func.dfg.ty(*v).is_scalar() || self.is_cheap(*v);
        data.op == TileOp::Load && data.volatile().is_none() && data.args.iter().all(is_cheap)
    }

    /// What computing the result from scalars takes, if that is little.
    fn cheap_cost(&self, func: &TileFunction, inst: Inst) -> Option<u16> {
        let data = &func.dfg.insts[inst];
        let mut cost = data.op.info().effects.again?;
        for &arg in &data.args {
            if func.dfg.ty(arg).is_scalar() {
                continue;
            }
            if !self.is_cheap(arg) {
                return None;
            }
            cost += self.cheap[arg];
        }
        (cost <= CHEAP_LIMIT).then_some(cost.max(1))
    }

    fn operands(&mut self, func: &TileFunction, inst: Inst, node: Node, depth: u32) {
        for (i, &arg) in func.dfg.insts[inst].args.iter().enumerate() {
            let need = self.need(func, inst, i);
            self.add_edge(func, arg, node, need, depth);
        }
    }

    /// Values that control flow passes to nodes under other names.
    fn pass(&mut self, func: &TileFunction, values: &[Value], targets: &[Value], depth: u32) {
        for (&value, &target) in values.iter().zip(targets) {
            if let Some(to) = self.of_value(target) {
                self.add_edge(func, value, to, Need::Same, depth);
            }
        }
    }

    fn enter(&mut self, func: &TileFunction, inst: Inst, depth: u32) {
        let data = &func.dfg.insts[inst];
        let params = |region: usize| &func.dfg.blocks[data.blocks[region].block].params[..];
        match data.op {
            TileOp::For => {
                let carried = &params(0)[1..];
                for (&param, &result) in carried.iter().zip(&data.results) {
                    self.add_passed(func, &[param, result], depth + 1);
                }
                self.pass(func, &data.args[3..], carried, depth);
            }
            TileOp::While => {
                for &param in params(0) {
                    self.add_passed(func, &[param], depth + 1);
                }
                for (&param, &result) in params(1).iter().zip(&data.results) {
                    self.add_passed(func, &[param, result], depth + 1);
                }
                self.pass(func, &data.args, params(0), depth);
            }
            TileOp::If => {
                for &result in &data.results {
                    self.add_passed(func, &[result], depth);
                }
            }
            TileOp::Reduce => {
                let shape = func.dfg.ty(data.args[0]).shape;
                let node = self.add_node(shape, Some(inst), depth);
                self.nodes[node].reduced = data.axis().copied();
                for &result in &data.results {
                    self.of_value[result] = Some(node).into();
                }
                self.operands(func, inst, node, depth);
            }
            TileOp::Scan => {
                let shape = func.dfg.ty(data.args[0]).shape;
                let node = self.add_node(shape, Some(inst), depth);
                self.nodes[node].scanned = data.axis().copied();
                for &result in &data.results {
                    self.of_value[result] = Some(node).into();
                }
                self.operands(func, inst, node, depth);
            }
            _ => {}
        }
    }
}

/// How many loops an instruction with regions adds.
fn loops(func: &TileFunction, inst: Inst) -> u32 {
    let is_loop = func.dfg.insts[inst].op.is_loop();
    u32::from(is_loop)
}
