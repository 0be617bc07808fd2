//! Valid kernels with arguments, by construction.
//!
//! A kernel is a sequence of random statements over a pool of values; what a statement needs is taken from the
//! pool or made. Elementwise ops and their types are derived from the op table: operand types are drawn until the
//! table's own type rule accepts them, so a new op is generated on the day it is added. Everything undefined or
//! unspecified is excluded where it is generated:
//!
//! - divisors are positive, loop steps at least 1, trip counts small (their product bounds the work);
//! - a pointer carries the range of elements it may point to (`memory`), and masked-off elements alone may
//!   leave it;
//! - loads read buffers that no store writes; a store writes a part of a buffer of its own, different for each
//!   program and element, behind a barrier if it stands in a loop. Updates in place and loads of what was
//!   stored before, behind a barrier, are statements of their own;
//! - hints are given to values made so that they hold.
//!
//! Where the IR leaves the result open (approximate functions, sums of floats), the kernel is marked
//! ([`Case::exact`]), and only executions of the same code after the passes can be compared.

mod atomic;
mod control;
pub mod coverage;
mod matrix;
mod memory;
mod reductions;
mod values;

use crate::ir::builder::TileBuilder;
use crate::ir::entities::Value;
use crate::ir::function::TileFunction;
use crate::ir::types::{Elem, Scalar, TileType};
use crate::linear_layout::shape::Shape;
use crate::settings::{Asserts, Options, Policy, Promote, Target};

use super::random::Random;
use memory::{OutBuffer, Pointer};

pub(super) use values::{attributes, fits, is_elementwise, number as random_number};

/// An argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// A buffer of elements that holds these bytes.
    Buffer(Scalar, Vec<u8>),
    /// The bits of a number.
    Number(Elem, u64),
}

/// A kernel and what to run it on.
#[derive(Clone, Debug)]
pub struct Case {
    /// The kernel.
    pub func: TileFunction,
    /// Number of programs along each axis.
    pub grid: [u32; 3],
    /// One for each parameter.
    pub args: Vec<Argument>,
    /// Whether the IR defines every bit of the result.
    pub exact: bool,
    /// How to compile it.
    pub options: Options,
    /// The target to run it for.
    pub target: Target,
}

/// Kernels that may use inexact ops, in percent.
const INEXACT: usize = 30;
/// How often statements of each kind occur, in the order of [`Generator::statement`].
const STATEMENTS: [usize; 17] = [55, 15, 4, 10, 8, 5, 3, 4, 1, 3, 3, 3, 4, 4, 2, 2, 2];
/// How often each of [`Scalar::ALL`] occurs.
const ELEMS: [usize; Scalar::ALL.len()] = [10, 6, 6, 30, 10, 12, 10, 25, 5, 3, 3];
/// Largest number of elements of a block, as a power of two.
const MAX_LOG2_ELEMENTS: usize = 12;
/// Deepest nesting of loops and choices.
const MAX_DEPTH: usize = 3;
/// Largest product of the trip counts of nested loops.
const MAX_TRIPS: i64 = 40;

pub(super) struct Generator {
    b: TileBuilder,
    random: Random,
    /// Values in scope.
    values: Vec<Value>,
    /// Pointers in scope.
    pointers: Vec<Pointer>,
    /// Shapes of blocks that statements work on.
    shapes: Vec<Shape>,
    args: Vec<Argument>,
    outputs: Vec<OutBuffer>,
    grid: [u32; 3],
    /// Product of the trip counts of the loops around.
    trips: i64,
    depth: usize,
    /// How often each kind of statement and of element occurs in this kernel.
    statement_weights: [usize; STATEMENTS.len()],
    elem_weights: [usize; ELEMS.len()],
    /// Whether inexact ops may be used.
    inexact: bool,
    /// Whether products are fused into sums, so that there should be some.
    fusion: bool,
    /// Whether one was.
    exact: bool,
}

/// The case of a seed.
pub fn case(seed: u64) -> Case {
    let mut random = Random::new(seed);
    let warps = 1 << random.weighted(&[18, 18, 28, 22, 8, 6]);
    let grid = match random.below(6) {
        0..3 => [1, 1, 1],
        3 => [2, 1, 1],
        4 => [3, 1, 1],
        _ => [2, 2, 1],
    };
    let inexact = random.chance(INEXACT);
    let options = Options {
        fp_fusion: random.chance(30),
        max_registers: random.chance(10).then(|| random.pick(&[32, 64, 255])),
        line_info: random.chance(10),
        verify_passes: true,
        asserts: match random.chance(50) {
            true => Asserts::Report,
            false => Asserts::Off,
        },
        promote: Promote::Auto,
        roles: Policy::Auto,
        persistent: Policy::Auto,
        fixed_warps: false,
        // No random number, so that a seed's kernel is what it was.
        diversity: (!seed.is_multiple_of(3)).then_some(seed),
    };
    // More often the one with warpgroups, which want large blocks besides.
    let target = match random.chance(20) {
        true => Target::SM_90A,
        false => random.pick(&Target::ALL),
    };
    let (statement_weights, elem_weights) =
        (swarm(&mut random, STATEMENTS), swarm(&mut random, ELEMS));
    let mut generator = Generator {
        b: TileBuilder::new("fuzz", warps),
        shapes: shapes(&mut random),
        random,
        values: Vec::new(),
        pointers: Vec::new(),
        args: Vec::new(),
        outputs: Vec::new(),
        grid,
        trips: 1,
        depth: 0,
        statement_weights,
        elem_weights,
        inexact,
        fusion: options.fp_fusion,
        exact: true,
    };
    generator.body();
    generator.b.ret();
    let exact = generator.exact;
    let args = generator.arguments();
    let func = match generator.b.finish() {
        Ok(func) => func,
        Err(errors) => panic!("seed {seed}: the generator made {errors:?}"),
    };
    Case {
        func,
        grid,
        args,
        exact,
        options,
        target,
    }
}

/// Weights for one kernel: some kinds more often, some not at all, so that each kernel is about few things (Groce et al.,
/// "Swarm Testing", 2012). The first kind stays.
fn swarm<const N: usize>(random: &mut Random, usual: [usize; N]) -> [usize; N] {
    let mut weights = usual.map(|weight| weight * random.pick(&[0, 1, 1, 1, 4]));
    weights[0] = weights[0].max(usual[0] / 4).max(1);
    weights
}

/// A few shapes of blocks that belong together: one, perhaps another, and what is left of them without a dimension.
fn shapes(random: &mut Random) -> Vec<Shape> {
    let mut shapes = Vec::new();
    for _ in 0..1 + random.below(2) {
        let bits = match random.below(10) {
            0 => random.below(3),
            7.. => 6 + random.below(MAX_LOG2_ELEMENTS - 5),
            _ => 2 + random.below(8),
        };
        let rank = 1 + random.weighted(&[40, 50, 10]);
        let mut log2 = vec![0u8; rank];
        for _ in 0..bits {
            log2[random.below(rank)] += 1;
        }
        let shape = Shape::from_log2(&log2).expect("few dimensions and elements");
        shapes.push(shape);
        if rank > 1 {
            shapes.push(shape.without_dim(random.below(rank)));
        }
    }
    shapes
}

impl Generator {
    fn body(&mut self) {
        let largest = self.shapes.iter().map(|s| s.elements()).max().unwrap_or(1);
        self.scalars();
        let statements = 4 + self.random.below(if largest <= 256 { 30 } else { 12 });
        self.statements(statements);
        // The last values of each kind leave the kernel, so that they are not dead.
        let mut kept = Vec::new();
        for &value in self.values.iter().rev() {
            if kept.len() < 5 && (!self.b.ty(value).is_scalar() || self.random.chance(30)) {
                kept.push(value);
            }
        }
        for value in kept {
            self.store(value);
        }
    }

    /// What every kernel starts from: the program's number and some parameters.
    fn scalars(&mut self) {
        let pid = self.b.program_id(0);
        self.values.push(pid);
        for i in 0..self.random.below(4) {
            let elem = self.elem();
            let ty = TileType::scalar(elem);
            let divisible = if elem.is_int() && elem.bits() >= 32 && self.random.chance(40) {
                1 << self.random.below(5)
            } else {
                0
            };
            let name = format!("n{i}");
            let value = match divisible {
                0 => self.b.param(&name, ty),
                d => self.b.param_divisible(&name, ty, d),
            };
            let mut bits = values::number(&mut self.random, elem);
            if divisible > 0 {
                bits &= !(u64::from(divisible) - 1);
            }
            self.args.push(Argument::Number(elem, bits));
            self.values.push(value);
        }
    }

    fn statements(&mut self, count: usize) {
        for _ in 0..count {
            self.statement();
        }
    }

    fn statement(&mut self) {
        let mut weights = self.statement_weights;
        if MAX_DEPTH <= self.depth {
            weights[5..8].fill(0);
        }
        match self.random.weighted(&weights) {
            0 => self.elementwise(),
            1 => self.load(),
            2 => self.store_something(),
            3 => self.reduce(),
            4 => self.reshape(),
            5 => self.for_loop(),
            6 => self.while_loop(),
            7 => self.if_else(),
            8 => self.b.barrier(),
            9 => self.hint(),
            10 => self.update_in_place(),
            11 => self.load_stored(),
            12 => self.new_pointer(),
            13 => self.atomic(),
            14 => self.products(),
            15 => self.sort(),
            _ => self.notice(),
        }
    }

    /// A type of numbers, the usual ones more often.
    fn elem(&mut self) -> Elem {
        Elem::Num(Scalar::ALL[self.random.weighted(&self.elem_weights)])
    }

    /// A shape to work on, or a scalar.
    fn shape(&mut self) -> Shape {
        if self.random.chance(12) {
            return Shape::SCALAR;
        }
        let index = self.random.below(self.shapes.len());
        self.shapes[index]
    }
}
