//! Builds functions: one method per op, generated from the table.
//!
//! A method appends an instruction to the current block and gives its result. An operand that does not
//! fit is remembered with the place of the call, and a value of a plausible type is given back so that building
//! goes on; [`TileBuilder::finish`] then returns every such error. So no call needs a `?` and none panics.

use std::fmt;
use std::panic::Location;

use smallvec::SmallVec;

use super::attrs::{
    Attr, DotPrecision, Flag, FloatPred, IntPred, List, MemOrder, MmaUnit, NanRule, RedOp, RmwOp,
    Rounding, Scope, SpecialReg, make,
};
use super::dfg::{BlockCall, InstData, SourceLoc, ValueList};
use super::entities::{Block, Inst, Slot, Value};
use super::function::{Function, ParamHints};
use super::level::{Level, Thread, Tile};
use super::ops::{Opcode, OperandArg, ThreadOp, TileOp, rules};
use super::types::{Elem, Scalar, TileType, ValueType};
use crate::linear_layout::shape::Shape;
use crate::num;

/// A use of the builder that makes no valid instruction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {op}: {problem}")]
pub struct BuildError {
    /// Where the builder was called.
    pub at: &'static Location<'static>,
    /// The op that was asked for.
    pub op: &'static str,
    /// Why it cannot be made.
    pub problem: rules::TypeError,
}

/// Every wrong use of a builder, in the order of the calls; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildErrors(pub Vec<BuildError>);

impl fmt::Display for BuildErrors {
    /// One error a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if i == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for BuildErrors {}

/// Appends instructions to a function.
#[derive(Clone, Debug)]
pub struct Builder<L: Level> {
    func: Function<L>,
    block: Block,
    loc: SourceLoc,
    errors: Vec<BuildError>,
}

/// Builds block programs.
pub type TileBuilder = Builder<Tile>;

/// Builds what one thread does.
pub type ThreadBuilder = Builder<Thread>;

impl<L: Level> Builder<L> {
    /// Starts a kernel with `num_warps` warps (a power of two, 1 to 32).
    pub fn new(name: impl Into<String>, num_warps: u32) -> Builder<L> {
        Builder::on(Function::new(name, num_warps))
    }

    /// Goes on at the entry of an existing function.
    pub fn on(func: Function<L>) -> Builder<L> {
        let block = func.entry;
        Builder {
            func,
            block,
            loc: SourceLoc::default(),
            errors: Vec::new(),
        }
    }

    /// The function so far.
    pub fn func(&self) -> &Function<L> {
        &self.func
    }

    /// The function so far, to be changed.
    pub fn func_mut(&mut self) -> &mut Function<L> {
        &mut self.func
    }

    /// The block that instructions are appended to.
    pub fn block(&self) -> Block {
        self.block
    }

    /// Goes on at the end of `block`.
    pub fn switch_to(&mut self, block: Block) {
        self.block = block;
    }

    /// Source line of the instructions that follow.
    pub fn set_loc(&mut self, loc: SourceLoc) {
        self.loc = loc;
    }

    /// Adds a kernel parameter.
    pub fn param(&mut self, name: &str, ty: L::Type) -> Value {
        self.func.append_param(name, ty, ParamHints::default())
    }

    /// Adds a kernel parameter of which the caller promises that it is a multiple of `divisible` (bytes for a pointer).
    pub fn param_divisible(&mut self, name: &str, ty: L::Type, divisible: u32) -> Value {
        self.func
            .append_param(name, ty, ParamHints::divisible(divisible))
    }

    /// Type of a value; of one that the function does not have, any type.
    pub fn ty(&self, value: Value) -> L::Type {
        if self.func.dfg.values.is_valid(value) {
            self.func.dfg.ty(value)
        } else {
            L::Type::stand_in()
        }
    }

    /// Appends an instruction; `given` states result types where the op's rule asks for them.
    #[track_caller]
    pub fn inst(&mut self, data: InstData<L>, given: &[L::Type]) -> Inst {
        self.inst_or(data, given, None)
    }

    /// The same; after an error the results have the types of `stand_ins`, or else what is at hand.
    #[track_caller]
    fn inst_or(
        &mut self,
        mut data: InstData<L>,
        given: &[L::Type],
        stand_ins: Option<&[L::Type]>,
    ) -> Inst {
        data.loc = self.loc;
        let op = data.op.info().name;
        for i in 0..data.args.len() {
            let value = data.args[i];
            if !self.func.dfg.values.is_valid(value) {
                let index = i + 1;
                self.mistake(op, rules::TypeError::ForeignValue { index, value });
                data.args[i] = self.stand_in();
            }
        }
        let args: SmallVec<[L::Type; 4]> = data.args.iter().map(|&v| self.func.dfg.ty(v)).collect();
        let operands = rules::Operands {
            args: &args,
            attrs: &data.attrs,
            given,
        };
        let types = match L::result_types(data.op, &operands) {
            Ok(types) => types,
            Err(problem) => {
                // Not in a closure: it would be the caller.
                self.mistake(op, problem);
                // Something of roughly the right type, so that one mistake does not cause a hundred messages.
                match stand_ins {
                    Some(types) => types.into(),
                    None if given.is_empty() => args.first().copied().into_iter().collect(),
                    None => given.into(),
                }
            }
        };
        let inst = self.func.dfg.make_inst(data, &types);
        self.func.order.append(self.block, inst);
        inst
    }

    #[track_caller]
    fn mistake(&mut self, op: &'static str, problem: rules::TypeError) {
        self.errors.push(BuildError {
            at: Location::caller(),
            op,
            problem,
        });
    }

    /// A value for what could not be made. Called only after an error was recorded; the function is never handed out.
    fn stand_in(&mut self) -> Value {
        self.func.dfg.append_param(self.block, L::Type::stand_in())
    }

    /// The first result of an instruction, or after an error a value that stands for it.
    fn first_result(&mut self, inst: Inst) -> Value {
        match self.func.dfg.insts[inst].results.first() {
            Some(&value) => value,
            None => self.stand_in(),
        }
    }

    /// Adds an attribute to the instruction appended last.
    pub fn with(&mut self, attr: Attr) {
        if let Some(inst) = self.func.order.last(self.block) {
            self.func.dfg.insts[inst].attrs.push(attr);
        }
    }

    /// The function, or everything that went wrong.
    pub fn finish(self) -> Result<Function<L>, BuildErrors> {
        if self.errors.is_empty() {
            Ok(self.func)
        } else {
            Err(BuildErrors(self.errors))
        }
    }
}

macro_rules! builder_methods {
    ($enum:ident, $level:ty;
     $($(#[doc = $doc:literal])+ $variant:ident $text:literal $method:ident ($($operand:ident : $oty:ty),*)
        {$($req:ident : $rty:ty),*} {$($opt:ident : $pty:ty),*} [$($given:ident)?] $rule:ident, $class:ident $({$($detail:tt)*})?;)*) => {
        impl Builder<$level> {
            $(builder_method! {
                $enum $level; $(#[doc = $doc])+ $variant $method ($($operand : $oty),*)
                {$($req : $rty),*} [$($given)?] $rule $class
            })*
        }
    };
}

/// One method: ops with regions or targets have hand-written ones, ops without result give nothing.
macro_rules! builder_method {
    ($enum:ident $level:ty; $(#[doc = $doc:literal])+ $variant:ident $method:ident ($($operand:ident : $oty:ty),*)
        {$($req:ident : $rty:ty),*} [$($given:ident)?] $rule:ident Region) => {};
    ($enum:ident $level:ty; $(#[doc = $doc:literal])+ InlinePtx $($rest:tt)*) => {};
    ($enum:ident $level:ty; $(#[doc = $doc:literal])+ Jump $($rest:tt)*) => {};
    ($enum:ident $level:ty; $(#[doc = $doc:literal])+ Brif $($rest:tt)*) => {};
    ($enum:ident $level:ty; $(#[doc = $doc:literal])+ $variant:ident $method:ident ($($operand:ident : $oty:ty),*)
        {$($req:ident : $rty:ty),*} [] NoResult $class:ident) => {
        $(#[doc = $doc])+
        #[track_caller]
        pub fn $method(&mut self $(, $operand: $oty)* $(, $req: $rty)*) {
            #[allow(unused_mut, reason = "ops without operands and attributes have nothing to add")]
            let mut data = InstData::new($enum::$variant, &[]);
            $($operand.push_to(&mut data.args);)*
            $(data.attrs.push(make::$req($req));)*
            self.inst(data, &[]);
        }
    };
    ($enum:ident $level:ty; $(#[doc = $doc:literal])+ $variant:ident $method:ident ($($operand:ident : $oty:ty),*)
        {$($req:ident : $rty:ty),*} [] Print $class:ident) => {
        builder_method! { $enum $level; $(#[doc = $doc])+ $variant $method ($($operand : $oty),*) {$($req : $rty),*} [] NoResult $class }
    };
    ($enum:ident $level:ty; $(#[doc = $doc:literal])+ $variant:ident $method:ident ($($operand:ident : $oty:ty),*)
        {$($req:ident : $rty:ty),*} [] Assert $class:ident) => {
        builder_method! { $enum $level; $(#[doc = $doc])+ $variant $method ($($operand : $oty),*) {$($req : $rty),*} [] NoResult $class }
    };
    ($enum:ident $level:ty; $(#[doc = $doc:literal])+ $variant:ident $method:ident ($($operand:ident : $oty:ty),*)
        {$($req:ident : $rty:ty),*} [] Store $class:ident) => {
        builder_method! { $enum $level; $(#[doc = $doc])+ $variant $method ($($operand : $oty),*) {$($req : $rty),*} [] NoResult $class }
    };
    ($enum:ident $level:ty; $(#[doc = $doc:literal])+ $variant:ident $method:ident ($($operand:ident : $oty:ty),*)
        {$($req:ident : $rty:ty),*} [] St $class:ident) => {
        builder_method! { $enum $level; $(#[doc = $doc])+ $variant $method ($($operand : $oty),*) {$($req : $rty),*} [] NoResult $class }
    };
    ($enum:ident $level:ty; $(#[doc = $doc:literal])+ $variant:ident $method:ident ($($operand:ident : $oty:ty),*)
        {$($req:ident : $rty:ty),*} [] SharedStore $class:ident) => {
        builder_method! { $enum $level; $(#[doc = $doc])+ $variant $method ($($operand : $oty),*) {$($req : $rty),*} [] NoResult $class }
    };
    ($enum:ident $level:ty; $(#[doc = $doc:literal])+ $variant:ident $method:ident ($($operand:ident : $oty:ty),*)
        {$($req:ident : $rty:ty),*} [] CpAsync $class:ident) => {
        builder_method! { $enum $level; $(#[doc = $doc])+ $variant $method ($($operand : $oty),*) {$($req : $rty),*} [] NoResult $class }
    };
    ($enum:ident $level:ty; $(#[doc = $doc:literal])+ $variant:ident $method:ident ($($operand:ident : $oty:ty),*)
        {$($req:ident : $rty:ty),*} [] AsyncWait $class:ident) => {
        builder_method! { $enum $level; $(#[doc = $doc])+ $variant $method ($($operand : $oty),*) {$($req : $rty),*} [] NoResult $class }
    };
    ($enum:ident $level:ty; $(#[doc = $doc:literal])+ $variant:ident $method:ident ($($operand:ident : $oty:ty),*)
        {$($req:ident : $rty:ty),*} [$($given:ident)?] $rule:ident $class:ident) => {
        $(#[doc = $doc])+
        #[track_caller]
        pub fn $method(&mut self $(, $operand: $oty)* $(, $req: $rty)* $(, $given: <$level as Level>::Type)?) -> Value {
            #[allow(unused_mut, reason = "ops without operands and attributes have nothing to add")]
            let mut data = InstData::new($enum::$variant, &[]);
            $($operand.push_to(&mut data.args);)*
            $(data.attrs.push(make::$req($req));)*
            let given: &[<$level as Level>::Type] = &[$($given)?];
            let inst = self.inst(data, given);
            self.first_result(inst)
        }
    };
}

macro_rules! define_builders {
    (both {$($both:tt)*} functions {$($function:tt)*} tile {$($tile:tt)*} thread {$($thread:tt)*}) => {
        builder_methods! { TileOp, Tile; $($both)* $($function)* $($tile)* }
        builder_methods! { ThreadOp, Thread; $($both)* $($thread)* }
    };
}
for_each_op!(define_builders);

impl<L: Level> Builder<L> {
    /// A new block with parameters, to be switched to.
    pub fn new_block(&mut self, params: &[L::Type]) -> (Block, ValueList) {
        let block = self.func.dfg.make_block();
        let values = params
            .iter()
            .map(|&ty| self.func.dfg.append_param(block, ty))
            .collect();
        (block, values)
    }
}

impl<L: Level> Builder<L> {
    /// Runs lines of PTX for each `pack` elements of `xs`; the results have the given types. The lines may do more than
    /// compute them; [`Builder::with`] adds [`make::pure`] if they do not.
    #[track_caller]
    pub fn inline_ptx(
        &mut self,
        xs: &[Value],
        (ptx, constraints): (&str, &str),
        pack: u8,
        given: &[L::Type],
    ) -> ValueList {
        let Some(op) = L::Op::from_name("inline_ptx") else {
            return ValueList::new();
        };
        let mut data = InstData::new(op, xs);
        data.attrs.push(make::ptx(ptx.to_owned()));
        data.attrs.push(make::constraints(constraints.to_owned()));
        data.attrs.push(make::pack(pack));
        let inst = self.inst(data, given);
        self.func.dfg.insts[inst].results.iter().copied().collect()
    }
}

impl Builder<Tile> {
    /// An f32 constant of the given shape (a scalar for the empty shape).
    #[track_caller]
    pub fn f32(&mut self, number: f32, shape: Shape) -> Value {
        self.const_bits(
            u64::from(number.to_bits()),
            TileType::block(Elem::F32, shape),
        )
    }

    /// An i32 constant of the given shape.
    #[track_caller]
    pub fn i32(&mut self, number: i32, shape: Shape) -> Value {
        self.const_bits(u64::from(number as u32), TileType::block(Elem::I32, shape))
    }

    /// An i64 constant of the given shape.
    #[track_caller]
    pub fn i64(&mut self, number: i64, shape: Shape) -> Value {
        self.const_bits(number as u64, TileType::block(Elem::I64, shape))
    }

    /// A truth value of the given shape.
    #[track_caller]
    pub fn bool(&mut self, truth: bool, shape: Shape) -> Value {
        self.const_bits(u64::from(truth), TileType::block(Elem::I1, shape))
    }

    /// A constant of any floating-point type, rounded to nearest even, beyond the largest number infinite.
    /// An `elem` of another kind is an error that [`Builder::finish`] returns.
    #[track_caller]
    pub fn float(&mut self, number: f64, elem: Elem, shape: Shape) -> Value {
        let Some(format) = elem.scalar().and_then(Scalar::format) else {
            let expected = "a floating-point type".to_owned();
            let found = elem.to_string();
            self.mistake("const", rules::TypeError::Result { expected, found });
            return self.const_bits(0, TileType::block(elem, shape));
        };
        let bits = format.from_f64(number, num::Rounding::NearestEven, num::Overflow::Ieee);
        self.const_bits(bits, TileType::block(elem, shape))
    }

    /// `x`, a scalar or a block of the shape, as a block of the shape.
    #[track_caller]
    pub fn to_shape(&mut self, x: Value, shape: Shape) -> Value {
        let ty = self.ty(x);
        match ty.shape {
            s if s == shape => x,
            s if s.is_scalar() => self.splat(x, ty.with_shape(shape)),
            _ => self.broadcast(x, ty.with_shape(shape)),
        }
    }

    /// Goes on in a new region with parameters of the given types; gives the block to come back to, the region's and the
    /// parameters. No function takes what happens in between: in a closure of this file an op's caller would be this file.
    fn enter(&mut self, params: &[TileType]) -> (Block, Block, ValueList) {
        let (block, values) = self.new_block(params);
        (std::mem::replace(&mut self.block, block), block, values)
    }

    #[track_caller]
    fn region_inst(
        &mut self,
        op: TileOp,
        args: &[Value],
        attrs: &[Attr],
        regions: &[Block],
        given: &[TileType],
        stand_ins: &[TileType],
    ) -> ValueList {
        let mut data = InstData::new(op, args);
        data.attrs.extend(attrs.iter().cloned());
        data.blocks
            .extend(regions.iter().map(|&b| BlockCall::region(b)));
        let inst = self.inst_or(data, given, Some(stand_ins));
        self.func.dfg.insts[inst].results.iter().copied().collect()
    }

    /// Combines the elements of `xs` along `axis`: `combine` gets the scalars (a.., b..) and returns the combined ones.
    #[track_caller]
    pub fn reduce(
        &mut self,
        xs: &[Value],
        axis: u8,
        combine: impl FnOnce(&mut Builder<Tile>, &[Value], &[Value]) -> ValueList,
    ) -> ValueList {
        let block = self.combining_region(xs, combine);
        let stand_ins: Vec<TileType> = xs.iter().map(|&x| self.ty(x)).collect();
        let attrs = [make::axis(axis)];
        self.region_inst(TileOp::Reduce, xs, &attrs, &[block], &[], &stand_ins)
    }

    /// Combines one block along `axis` with a function of two scalars.
    #[track_caller]
    pub fn reduce_one(
        &mut self,
        x: Value,
        axis: u8,
        combine: impl FnOnce(&mut Builder<Tile>, Value, Value) -> Value,
    ) -> Value {
        let results = self.reduce(&[x], axis, |b, left, right| {
            ValueList::from_slice(&[combine(b, left[0], right[0])])
        });
        results.first().copied().unwrap_or(x)
    }

    /// Combines the elements of `xs` up to each along `axis` (`reverse`: from the end): `combine` gets the scalars
    /// (a.., b..), a.. being what was combined so far, and returns the combined ones.
    #[track_caller]
    pub fn scan(
        &mut self,
        xs: &[Value],
        axis: u8,
        reverse: bool,
        combine: impl FnOnce(&mut Builder<Tile>, &[Value], &[Value]) -> ValueList,
    ) -> ValueList {
        let block = self.combining_region(xs, combine);
        let stand_ins: Vec<TileType> = xs.iter().map(|&x| self.ty(x)).collect();
        let direction = reverse.then(|| make::reverse(Flag));
        let attrs: Vec<Attr> = [make::axis(axis)].into_iter().chain(direction).collect();
        self.region_inst(TileOp::Scan, xs, &attrs, &[block], &[], &stand_ins)
    }

    /// Scans one block along `axis` with a function of two scalars.
    #[track_caller]
    pub fn scan_one(
        &mut self,
        x: Value,
        axis: u8,
        reverse: bool,
        combine: impl FnOnce(&mut Builder<Tile>, Value, Value) -> Value,
    ) -> Value {
        let results = self.scan(&[x], axis, reverse, |b, left, right| {
            ValueList::from_slice(&[combine(b, left[0], right[0])])
        });
        results.first().copied().unwrap_or(x)
    }

    /// The region of a reduction or scan of `xs`.
    #[track_caller]
    fn combining_region(
        &mut self,
        xs: &[Value],
        combine: impl FnOnce(&mut Builder<Tile>, &[Value], &[Value]) -> ValueList,
    ) -> Block {
        let elems: Vec<TileType> = xs
            .iter()
            .map(|&x| TileType::scalar(self.ty(x).elem()))
            .collect();
        let params = [&elems[..], &elems[..]].concat();
        let (outer, block, values) = self.enter(&params);
        let (left, right) = values.split_at(elems.len());
        let combined = combine(self, left, right);
        self.yield_values(&combined);
        self.block = outer;
        block
    }

    /// `a`, then `b`, along `axis`: a composition of `join`, `permute` and `reshape`, which moves no element. The order
    /// is kept, as a caller that allows another (Triton's `can_reorder`) must expect too.
    #[track_caller]
    pub fn cat(&mut self, a: Value, b: Value, axis: u8) -> Value {
        let ty = self.ty(a);
        let (rank, axis) = (ty.shape.rank(), usize::from(axis));
        let joined = self.join(a, b);
        let mut dims: List = (0..rank as u32).collect();
        dims.insert(axis.min(rank), rank as u32);
        let apart = self.permute(joined, dims);
        let mut extents = ty.shape.log2().to_vec();
        if let Some(extent) = extents.get_mut(axis) {
            *extent += 1;
        }
        // Too large a block was an error of the join already.
        let shape = Shape::from_log2(&extents).unwrap_or(ty.shape);
        self.reshape(apart, TileType::block(ty.elem, shape))
    }

    /// A counted loop: `body` gets the counter and the carried values and returns their next values.
    #[track_caller]
    pub fn for_loop(
        &mut self,
        lo: Value,
        hi: Value,
        step: Value,
        inits: &[Value],
        body: impl FnOnce(&mut Builder<Tile>, Value, &[Value]) -> ValueList,
    ) -> ValueList {
        let params: Vec<TileType> = [lo].iter().chain(inits).map(|&v| self.ty(v)).collect();
        let (outer, block, values) = self.enter(&params);
        let next = body(self, values[0], &values[1..]);
        self.yield_values(&next);
        self.block = outer;
        let args = [&[lo, hi, step], inits].concat();
        self.region_inst(TileOp::For, &args, &[], &[block], &[], &params[1..])
    }

    /// A loop: `before` gets the carried values and returns the condition and the values passed on; `after` turns those
    /// into the next carried values. The results are what was passed on when the condition failed.
    #[track_caller]
    pub fn while_loop(
        &mut self,
        inits: &[Value],
        before: impl FnOnce(&mut Builder<Tile>, &[Value]) -> (Value, ValueList),
        after: impl FnOnce(&mut Builder<Tile>, &[Value]) -> ValueList,
    ) -> ValueList {
        let params: Vec<TileType> = inits.iter().map(|&v| self.ty(v)).collect();
        let (outer, first, values) = self.enter(&params);
        let (cond, passed) = before(self, &values);
        self.condition(cond, &passed);
        let passed: Vec<TileType> = passed.iter().map(|&v| self.ty(v)).collect();
        let (_, second, values) = self.enter(&passed);
        let next = after(self, &values);
        self.yield_values(&next);
        self.block = outer;
        self.region_inst(
            TileOp::While,
            inits,
            &[],
            &[first, second],
            &passed,
            &passed,
        )
    }

    /// Runs one of two regions; the results are what it returns.
    #[track_caller]
    pub fn if_else(
        &mut self,
        cond: Value,
        then: impl FnOnce(&mut Builder<Tile>) -> ValueList,
        otherwise: impl FnOnce(&mut Builder<Tile>) -> ValueList,
    ) -> ValueList {
        let (outer, first, _) = self.enter(&[]);
        let values = then(self);
        self.yield_values(&values);
        let types: Vec<TileType> = values.iter().map(|&v| self.ty(v)).collect();
        let (_, second, _) = self.enter(&[]);
        let values = otherwise(self);
        self.yield_values(&values);
        self.block = outer;
        self.region_inst(TileOp::If, &[cond], &[], &[first, second], &types, &types)
    }
}

impl Builder<Thread> {
    /// Goes to `target` with arguments.
    #[track_caller]
    pub fn jump(&mut self, target: Block, args: &[Value]) {
        let mut data = InstData::new(ThreadOp::Jump, &[]);
        data.blocks.push(BlockCall {
            block: target,
            args: ValueList::from_slice(args),
        });
        self.inst(data, &[]);
    }

    /// Goes to the first target if `cond` is true, else to the second.
    #[track_caller]
    pub fn brif(&mut self, cond: Value, then: (Block, &[Value]), otherwise: (Block, &[Value])) {
        let mut data = InstData::new(ThreadOp::Brif, &[cond]);
        for (block, args) in [then, otherwise] {
            data.blocks.push(BlockCall {
                block,
                args: ValueList::from_slice(args),
            });
        }
        self.inst(data, &[]);
    }

    /// Adds a block to the body, after those it has.
    pub fn append_block(&mut self, block: Block) {
        self.func.order.blocks.push(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::types::{Scalar, ThreadType};

    #[test]
    fn mistakes_are_collected_and_building_goes_on() {
        let mut b = TileBuilder::new("k", 4);
        let shape = Shape::new(&[16]).expect("a power of two");
        let x = b.param("x", TileType::scalar(Elem::global(Scalar::F32)));
        let number = b.f32(1.0, shape);
        let at = line!();
        let bad = b.iadd(number, x);
        b.fadd(bad, number);
        b.program_id(7);
        let errors = b.finish().expect_err("two mistakes were made");
        let ops: Vec<&str> = errors.0.iter().map(|e| e.op).collect();
        assert_eq!(ops, ["iadd", "program_id"]);
        let text = errors.0[0].to_string();
        // The caller's line, and not one of the builder's.
        let line = |i: usize| (errors.0[i].at.file(), errors.0[i].at.line());
        assert_eq!((line(0), line(1)), ((file!(), at + 1), (file!(), at + 3)));
        assert!(
            text.ends_with(": iadd: operand 1 must be an integer of 8 bits or more, found f32[16]"),
            "{text}"
        );
        assert_eq!(errors.to_string().lines().count(), 2);
    }

    /// What is made again after it was taken back gets the same numbers and stands in the same places.
    #[test]
    fn what_was_added_is_taken_back() {
        let i32s = ThreadType::scalar(Elem::I32);
        let add_on = |b: &mut ThreadBuilder, entry: Block, body: Block, number: Value| {
            let sum = b.iadd(number, number);
            let (exit, params) = b.new_block(&[i32s]);
            b.jump(exit, &[sum]);
            b.switch_to(entry);
            b.const_bits(7, i32s);
            b.append_block(exit);
            b.switch_to(exit);
            b.iadd(params[0], number);
            b.switch_to(body);
        };
        let mut b = ThreadBuilder::new("k", 1);
        let entry = b.block();
        let number = b.const_bits(3, i32s);
        let (body, _) = b.new_block(&[]);
        b.append_block(body);
        b.switch_to(body);
        let extent = b.func().extent();
        let before = b.func().to_string();
        add_on(&mut b, entry, body, number);
        let after = b.func().to_string();
        b.func_mut().shrink_to(&extent);
        assert_eq!(b.func().to_string(), before);
        assert_eq!(b.func().extent().values, extent.values);
        add_on(&mut b, entry, body, number);
        assert_eq!(b.func().to_string(), after);
        assert_ne!(after, before);
    }

    #[test]
    fn values_of_another_function_are_mistakes() {
        let mut other = TileBuilder::new("other", 1);
        let foreign = (0..9).map(|i| other.i32(i, Shape::SCALAR)).last();
        let foreign = foreign.expect("nine were made");
        let mut b = TileBuilder::new("k", 1);
        let x = b.i32(1, Shape::SCALAR);
        b.iadd(x, foreign);
        b.to_shape(foreign, Shape::new(&[4]).expect("a power of two"));
        let errors = b.finish().expect_err("the value is not of this function");
        let problem = "operand 2 is v8, which this function does not have";
        assert_eq!(errors.0[0].problem.to_string(), problem);
        assert_eq!(errors.0.len(), 2);
    }

    #[test]
    fn what_the_builder_adds_itself_is_the_callers_mistake_too() {
        let mut b = TileBuilder::new("k", 1);
        let n = b.i32(1, Shape::SCALAR);
        let foreign = Value::from_u32(99);
        let bad = || ValueList::from_slice(&[foreign]);
        let at = line!();
        b.for_loop(n, n, n, &[], |_, _, _| bad());
        b.if_else(n, |_| bad(), |_| bad());
        b.reduce_one(n, 3, |_, left, _| left);
        b.scan(&[n], 0, false, |_, _, _| bad());
        let errors = b.finish().expect_err("each line has a mistake");
        let mut lines: Vec<(&str, u32)> = Vec::new();
        lines.extend(errors.0.iter().map(|e| (e.at.file(), e.at.line() - at)));
        lines.dedup();
        assert_eq!(lines, [1, 2, 3, 4].map(|line| (file!(), line)), "{errors}");
    }

    #[test]
    fn loops_have_their_results_after_a_mistake_too() {
        let mut b = TileBuilder::new("k", 1);
        let (zero, half) = (
            b.i32(0, Shape::SCALAR),
            b.float(0.5, Elem::BF16, Shape::SCALAR),
        );
        let carried = b.for_loop(zero, zero, half, &[zero, half], |_, _, carried| {
            ValueList::from_slice(carried)
        });
        assert_eq!(carried.len(), 2);
        let reduced = b.reduce(&[zero, half], 0, |_, left, _| ValueList::from_slice(left));
        assert_eq!(reduced.len(), 2);
        assert_eq!(b.finish().expect_err("both are wrong").0.len(), 2);
    }

    #[test]
    fn constants_keep_the_bits_of_their_type() {
        let mut b = TileBuilder::new("k", 1);
        for (elem, bits) in [
            (Elem::I1, 1),
            (Elem::I8, 0xff),
            (Elem::I32, 0xffff_ffff),
            (Elem::I64, u64::MAX),
        ] {
            b.const_bits(u64::MAX, TileType::block(elem, Shape::SCALAR));
            let inst = b.func().order.last(b.block()).expect("just appended");
            assert_eq!(
                b.func().dfg.insts[inst].attrs[..],
                [make::value(bits)],
                "{elem}"
            );
        }
    }

    #[test]
    fn constants_of_every_float() {
        let mut b = TileBuilder::new("k", 1);
        for (elem, bits) in [
            (Elem::F16, 0x3800),
            (Elem::BF16, 0x3f00),
            (Elem::F32, 0x3f00_0000),
            (Elem::F64, 0x3fe0_0000_0000_0000),
        ] {
            let value = b.float(0.5, elem, Shape::SCALAR);
            let inst = b.func().order.last(b.block()).expect("just appended");
            let attrs = &b.func().dfg.insts[inst].attrs;
            assert_eq!(attrs[..], [make::value(bits)], "{elem}");
            assert_eq!(b.ty(value).elem, elem);
        }
        b.float(0.5, Elem::I32, Shape::SCALAR);
        assert!(b.finish().is_err());
    }

    #[test]
    fn regions_have_parameters_and_results() {
        let mut b = TileBuilder::new("k", 4);
        let (lo, hi, one) = (
            b.i32(0, Shape::SCALAR),
            b.i32(10, Shape::SCALAR),
            b.i32(1, Shape::SCALAR),
        );
        let sum = b.for_loop(lo, hi, one, &[lo], |b, i, carried| {
            ValueList::from_slice(&[b.iadd(i, carried[0])])
        });
        assert_eq!(b.ty(sum[0]), TileType::scalar(Elem::I32));
        b.ret();
        let func = b.finish().expect("everything fits");
        assert_eq!(func.all_blocks().len(), 2);
    }
}
