//! The instruction set: one match, one arm per op.

use smallvec::{SmallVec, smallvec};

use crate::device_print::Record;
use crate::interp::error::InterpErrorKind;
use crate::interp::promise::{self, Promise};
use crate::interp::{Open, float, int};
use crate::ir::attrs::{self, Attrs};
use crate::ir::dfg::InstData;
use crate::ir::entities::Inst;
use crate::ir::level::Tile;
use crate::ir::ops::{Opcode, TileOp};
use crate::num::Rounding;

use super::{Elems, Flow, Machine, Outcome, Results, malformed, operand, owned, required};

impl<'a> Machine<'a> {
    /// Executes an instruction; gives how the block ends if it ends here.
    pub(super) fn inst(&mut self, inst: Inst) -> Outcome<Option<Flow>> {
        let func = self.func;
        let data = &func.dfg.insts[inst];
        let elems = match data.op {
            TileOp::Const => self.fill(data, required(data.value())?)?,
            TileOp::Splat => self.fill(data, self.single(data, 0)?)?,

            TileOp::Iadd => self.ints(data, int::add)?,
            TileOp::Isub => self.ints(data, int::sub)?,
            TileOp::Imul => self.ints(data, int::mul)?,
            TileOp::Sdiv => self.quotients(inst, data, int::sdiv)?,
            TileOp::Udiv => self.quotients(inst, data, int::udiv)?,
            TileOp::Srem => self.quotients(inst, data, int::srem)?,
            TileOp::Urem => self.quotients(inst, data, int::urem)?,
            TileOp::Smin => self.ints(data, int::smin)?,
            TileOp::Smax => self.ints(data, int::smax)?,
            TileOp::Umin => self.ints(data, int::umin)?,
            TileOp::Umax => self.ints(data, int::umax)?,
            TileOp::And => self.ints(data, int::and)?,
            TileOp::Or => self.ints(data, int::or)?,
            TileOp::Xor => self.ints(data, int::xor)?,
            TileOp::Shl => self.ints(data, int::shl)?,
            TileOp::Sshr => self.ints(data, int::sshr)?,
            TileOp::Ushr => self.ints(data, int::ushr)?,
            TileOp::Smulhi => self.ints(data, int::smulhi)?,
            TileOp::Umulhi => self.ints(data, int::umulhi)?,
            TileOp::Iabs => self.int1(data, int::abs)?,
            TileOp::Popc => self.int1(data, int::popc)?,
            TileOp::Clz => self.int1(data, int::clz)?,
            TileOp::Brev => self.int1(data, int::brev)?,
            TileOp::BytePerm => self.zip3(data, int::byte_perm)?,
            TileOp::Icmp => {
                let pred = required(data.ipred())?;
                let bits = func.dfg.ty(operand(data, 0)?).elem.bits();
                self.zip(data, |a, b| u64::from(pred.compare(bits, a, b)))?
            }

            TileOp::Fadd => self.floats(data, float::add)?,
            TileOp::Fsub => self.floats(data, float::sub)?,
            TileOp::Fmul => self.floats(data, float::mul)?,
            TileOp::Fma => {
                let scalar = self.scalar(data, 0)?;
                let fma = match self.options.split_fma {
                    true => |s, a, b, c| float::add(s, float::mul(s, a, b), c),
                    false => float::fma,
                };
                self.zip3(data, |a, b, c| fma(scalar, a, b, c))?
            }
            TileOp::Fdiv | TileOp::FdivRn => self.floats(data, float::div)?,
            TileOp::Fneg => self.float1(data, float::neg)?,
            TileOp::Fabs => self.float1(data, float::abs)?,
            TileOp::Fmin => {
                let rule = required(data.nan())?;
                self.floats(data, |s, a, b| float::min(rule, s, a, b))?
            }
            TileOp::Fmax => {
                let rule = required(data.nan())?;
                self.floats(data, |s, a, b| float::max(rule, s, a, b))?
            }
            TileOp::Fcmp => {
                let pred = required(data.fpred())?;
                self.floats(data, |s, a, b| u64::from(float::compare(pred, s, a, b)))?
            }
            TileOp::Select => self.zip3(data, |cond, a, b| if cond == 1 { a } else { b })?,

            TileOp::Exp2 => self.function(data, float::exp2, f64::exp2)?,
            TileOp::Rsqrt => self.function(data, float::rsqrt, |x| 1.0 / x.sqrt())?,
            TileOp::Sqrt => self.function(data, float::sqrt, f64::sqrt)?,
            TileOp::Rcp => self.function(data, float::rcp, f64::recip)?,
            TileOp::RcpFtz => self.function(data, float::rcp_ftz, f64::recip)?,
            TileOp::Log2Approx => self.accurate(data, f64::log2)?,
            TileOp::SinApprox => self.accurate(data, f64::sin)?,
            TileOp::CosApprox => self.accurate(data, f64::cos)?,
            TileOp::SqrtRn => self.accurate(data, f64::sqrt)?,

            TileOp::Exp => self.function(data, float::exp, f64::exp)?,
            TileOp::ExpPrecise => self.accurate(data, f64::exp)?,
            TileOp::Exp10 => self.accurate(data, |x| libm::pow(10.0, x))?,
            TileOp::Expm1 => self.accurate(data, f64::exp_m1)?,
            TileOp::Log => self.accurate(data, f64::ln)?,
            TileOp::Log2 => self.accurate(data, f64::log2)?,
            TileOp::Log10 => self.accurate(data, f64::log10)?,
            TileOp::Log1p => self.accurate(data, f64::ln_1p)?,
            TileOp::Pow => self.accurate2(data, f64::powf)?,
            // The host's lose digits near multiples of a quarter turn.
            TileOp::Sin => self.accurate(data, libm::sin)?,
            TileOp::Cos => self.accurate(data, libm::cos)?,
            TileOp::Tan => self.accurate(data, libm::tan)?,
            TileOp::Asin => self.accurate(data, f64::asin)?,
            TileOp::Acos => self.accurate(data, f64::acos)?,
            TileOp::Atan => self.accurate(data, f64::atan)?,
            TileOp::Atan2 => self.accurate2(data, f64::atan2)?,
            TileOp::Sinh => self.accurate(data, f64::sinh)?,
            TileOp::Cosh => self.accurate(data, f64::cosh)?,
            TileOp::Tanh => self.accurate(data, f64::tanh)?,
            TileOp::Asinh => self.accurate(data, libm::asinh)?,
            TileOp::Acosh => self.accurate(data, float::acosh)?,
            TileOp::Atanh => self.accurate(data, libm::atanh)?,
            TileOp::Erf => self.accurate(data, libm::erf)?,
            TileOp::Erfc => self.accurate(data, libm::erfc)?,
            TileOp::Erfinv => self.accurate(data, float::erfinv)?,
            TileOp::Lgamma => self.accurate(data, libm::lgamma)?,
            TileOp::Cbrt => self.accurate(data, f64::cbrt)?,
            TileOp::Hypot => self.accurate2(data, f64::hypot)?,
            TileOp::Round => self.float1(data, float::integral(Rounding::NearestAway))?,
            TileOp::Frem => self.accurate2(data, |x, y| x % y)?,
            TileOp::Trunc => self.float1(data, float::integral(Rounding::Zero))?,
            TileOp::Copysign => self.floats(data, float::copysign)?,
            TileOp::Floor => self.float1(data, float::integral(Rounding::Down))?,
            TileOp::Ceil => self.float1(data, float::integral(Rounding::Up))?,
            TileOp::Rint => self.float1(data, float::integral(Rounding::NearestEven))?,

            TileOp::Sext => self.cast(data, |from, _, x| int::signed(from.bits(), x) as u64)?,
            TileOp::Zext | TileOp::Itrunc | TileOp::Rare => self.same(data)?,
            TileOp::Sitofp => self.cast(data, |from, to, x| float::from_int(true, from, to, x))?,
            TileOp::Uitofp => self.cast(data, |from, to, x| float::from_int(false, from, to, x))?,
            TileOp::Fptosi => self.cast(data, |from, to, x| float::to_int(true, from, to, x))?,
            TileOp::Fptoui => self.cast(data, |from, to, x| float::to_int(false, from, to, x))?,
            TileOp::Fpext => self.cast(data, |from, to, x| {
                float::convert(attrs::Rounding::Nearest, from, to, x)
            })?,
            TileOp::Fptrunc => {
                let rounding = required(data.round())?;
                self.cast(data, |from, to, x| float::convert(rounding, from, to, x))?
            }
            TileOp::Bitcast | TileOp::PtrCast => self.same(data)?,
            TileOp::Addptr => {
                let pointee = self.pointee(data)?;
                let bits = self.scalar(data, 1)?.bits();
                self.zip(data, |pointer, offset| {
                    let bytes = int::signed(bits, offset).wrapping_mul(i64::from(pointee.bytes()));
                    pointer.wrapping_add(bytes as u64)
                })?
            }

            TileOp::Return => return Ok(Some(Flow::Return)),

            TileOp::ProgramId => self.fill(data, axis_of(self.program, data)?)?,
            // One group is all, which always has its turn.
            TileOp::GroupId => self.fill(data, 0)?,
            TileOp::NumGroups => self.fill(data, 1)?,
            TileOp::CtaId => self.fill(data, u64::from(self.program[0]))?,
            TileOp::NumCtas => self.fill(data, u64::from(self.ctas()))?,
            TileOp::NumPrograms => self.fill(data, axis_of(self.grid, data)?)?,
            TileOp::Arange => {
                let start = required(data.start())?;
                let count = self.result_elements(data) as i64;
                (0..count).map(|i| (i64::from(start) + i) as u64).collect()
            }
            TileOp::Broadcast => self.broadcast(data)?,
            // The element numbered i stays number i when a dimension of extent 1 comes in.
            TileOp::ExpandDims => self.same(data)?,
            TileOp::Reshape => self.same(data)?,
            TileOp::Permute => self.permute(data)?,
            TileOp::Join => {
                let (a, b) = (self.arg(data, 0)?, self.arg(data, 1)?);
                a.iter().zip(b).flat_map(|(&a, &b)| [a, b]).collect()
            }
            TileOp::Split => {
                let index = usize::from(required(data.index())?);
                self.arg(data, 0)?
                    .iter()
                    .copied()
                    .skip(index)
                    .step_by(2)
                    .collect()
            }
            TileOp::Gather => self.gather(data)?,
            TileOp::Histogram => {
                let mut counts: Elems = self.fill(data, 0)?;
                for &x in self.arg(data, 0)? {
                    if let Some(count) = usize::try_from(x).ok().and_then(|x| counts.get_mut(x)) {
                        *count += 1;
                    }
                }
                counts
            }
            TileOp::Dot => self.dot(data)?,
            TileOp::DotStart => {
                let sum = self.dot(data)?;
                let token = self.start_product(data);
                let [to, of] = data.results[..] else {
                    return Err(malformed("a product that is started has two results"));
                };
                self.define(to, sum)?;
                self.widen(inst, data, to)?;
                self.define(of, smallvec![token])?;
                return Ok(None);
            }
            TileOp::DotDone => {
                let sum = self.arg(data, 0)?.clone();
                let [to, of] = data.results[..] else {
                    return Err(malformed("a product that is done has two results"));
                };
                self.define(to, sum)?;
                self.widen(inst, data, to)?;
                self.define(of, smallvec![0])?;
                return Ok(None);
            }
            TileOp::DotWait => {
                for i in 0..data.args.len() {
                    self.finish_product(data, i)?;
                }
                return Ok(None);
            }
            TileOp::DotSum => {
                self.finish_product(data, 1)?;
                self.same(data)?
            }
            TileOp::TensorMap => self.tensor_map(data)?,
            TileOp::TensorLoad => self.tensor_load(data)?,
            TileOp::TensorCopy => {
                self.tensor_copy(data)?;
                return Ok(None);
            }
            TileOp::TensorStore => {
                self.tensor_store(data)?;
                return Ok(None);
            }
            TileOp::MbarInit => {
                self.mbar_init(data)?;
                return Ok(None);
            }
            TileOp::MbarDrop => {
                self.mbar_drop(data)?;
                return Ok(None);
            }
            TileOp::MbarExpect => {
                self.mbar_expect(data)?;
                return Ok(None);
            }
            TileOp::MbarWaitFor => {
                let is_over = match self.mbar_wait(data) {
                    Ok(()) => true,
                    Err(InterpErrorKind::NoArrival { .. }) => false,
                    Err(error) => return Err(error),
                };
                self.fill(data, u64::from(is_over))?
            }
            TileOp::MbarWait => {
                self.mbar_wait(data)?;
                return Ok(None);
            }
            TileOp::MbarArrive => {
                self.mbar_arrive(data)?;
                return Ok(None);
            }
            TileOp::SlotPut => {
                self.slot_put(data)?;
                return Ok(None);
            }
            TileOp::SlotGet => {
                let number = self.slot_get(data)?;
                self.fill(data, number)?
            }
            TileOp::Release => {
                self.release(data)?;
                return Ok(None);
            }
            TileOp::Producer => {
                self.produce(owned(data, 0)?)?;
                return Ok(None);
            }
            TileOp::SharedView => self.shared_load(data)?,
            TileOp::AsyncCopy => self.async_copy(data)?,
            TileOp::AsyncCommit => smallvec![self.rings.commit()],
            TileOp::AsyncWait => {
                self.async_wait(data)?;
                return Ok(None);
            }
            TileOp::SharedStore => {
                self.check_decided(&data.args)?;
                self.shared_store(data)?;
                return Ok(None);
            }
            TileOp::SharedLoad => self.shared_load(data)?,
            TileOp::ConvertLayout => self.same(data)?,
            TileOp::AssumeMultiple => self.assume(data, Promise::Multiple)?,
            TileOp::AssumeContiguous => self.assume(data, Promise::Contiguous)?,
            TileOp::AssumeConstant => self.assume(data, Promise::Constant)?,

            TileOp::Load => self.load(data)?,
            TileOp::Store => {
                self.store(data)?;
                self.store_slack(data)?;
                return Ok(None);
            }
            TileOp::InlinePtx => return Err(InterpErrorKind::NotExecutable(data.op.info().name)),
            TileOp::AtomicRmw => self.atomic_rmw(data)?,
            TileOp::AtomicCas => self.atomic_cas(data)?,
            // Programs run one after the other on one processor, and time is what they have done so far.
            TileOp::SmId => self.fill(data, 0)?,
            TileOp::GlobalTimer => self.fill(data, self.stats.instructions)?,
            TileOp::DevicePrint => {
                self.print(inst, data)?;
                return Ok(None);
            }
            TileOp::DeviceAssert => {
                self.check_assertion(data)?;
                return Ok(None);
            }
            TileOp::GdcWait | TileOp::GdcLaunchDependents => return Ok(None),
            TileOp::Barrier => {
                self.memory.barrier();
                return Ok(None);
            }
            TileOp::Reduce => {
                let is_open = data.order().is_none();
                return self.finish(inst, |m| m.combining(is_open, |m| m.reduce(inst, data)));
            }
            TileOp::Scan => {
                let is_open = data.tree().is_none();
                return self.finish(inst, |m| m.combining(is_open, |m| m.scan(inst, data)));
            }

            TileOp::For => {
                self.check_decided(data.args.get(..3).unwrap_or_default())?;
                return self.finish(inst, |m| m.for_loop(data));
            }
            TileOp::While => return self.finish(inst, |m| m.while_loop(data)),
            TileOp::If => {
                self.check_decided(&data.args)?;
                return self.finish(inst, |m| {
                    let index = usize::from(m.single(data, 0)? == 0);
                    m.region(owned(data, index)?, Results::new())
                });
            }
            TileOp::Yield => return Ok(Some(Flow::Yield(self.many(&data.args)?))),
            TileOp::Condition => {
                self.check_decided(data.args.get(..1).unwrap_or_default())?;
                let goes_on = self.single(data, 0)? == 1;
                let passed = self.many(&data.args[1..])?;
                return Ok(Some(Flow::Condition(goes_on, passed)));
            }
        };
        match data.results[..] {
            [result] => {
                self.define(result, elems)?;
                self.widen(inst, data, result)?;
            }
            _ => return Err(malformed("the op has one result")),
        }
        Ok(None)
    }

    /// Runs an op with regions and defines its results.
    fn finish(
        &mut self,
        inst: Inst,
        run: impl FnOnce(&mut Machine<'a>) -> Outcome<Results>,
    ) -> Outcome<Option<Flow>> {
        let results = run(self)?;
        // The regions' instructions are done: what goes wrong from here on is this one's fault.
        self.current = Some(inst);
        let defined = &self.func.dfg.insts[inst].results;
        if defined.len() != results.len() {
            return Err(malformed("a region yields the wrong number of values"));
        }
        for (&value, mut held) in defined.iter().zip(results) {
            for off in &mut held.slack {
                off.begun_at(inst, Open::Extremes);
            }
            self.hold(value, held)?;
        }
        Ok(None)
    }

    fn print(&mut self, inst: Inst, data: &InstData<Tile>) -> Outcome<()> {
        let Some(&site) = self.sites.get(&inst) else {
            return Err(malformed("a print without a number"));
        };
        let elems = match data.args.first() {
            Some(&x) => {
                if let Some(slack) = &mut self.slack {
                    slack.is_printed |= !slack.values[x].is_empty();
                }
                self.get(x)?.clone()
            }
            None => smallvec![0],
        };
        for (element, &bits) in (0..).zip(&elems) {
            let record = Record {
                site,
                program: self.program,
                element,
                bits,
            };
            self.memory.log(record);
            if let (Some(&x), Some(slack)) = (data.args.first(), &mut self.slack)
                && let Some(cause) = slack.off(x, element as usize).cause
                && cause.why.is_undefined()
            {
                slack.undefined_records.push((record, cause));
            }
        }
        Ok(())
    }

    fn check_assertion(&self, data: &InstData<Tile>) -> Outcome<()> {
        let cond = self.arg(data, 0)?;
        let is_block = cond.len() > 1;
        match cond.iter().position(|&c| c == 0) {
            None => Ok(()),
            Some(element) => Err(InterpErrorKind::AssertFailed {
                text: required(data.text())?,
                element: is_block.then_some(element as u32),
            }),
        }
    }

    fn fill(&self, data: &InstData<Tile>, elem: u64) -> Outcome<Elems> {
        Ok(SmallVec::from_elem(elem, self.result_elements(data)))
    }

    fn broadcast(&self, data: &InstData<Tile>) -> Outcome<Elems> {
        let Some(&result) = data.results.first() else {
            return Err(malformed("the op has one result"));
        };
        let from = self.func.dfg.ty(operand(data, 0)?).shape;
        let to = self.func.dfg.ty(result).shape;
        let elems = self.arg(data, 0)?;
        let source = |flat: u32| {
            let part = |dim| {
                // An extent of 1 has the coordinate 0 only.
                let last = from.extent(dim) as u32 - 1;
                to.coordinate(flat, dim).min(last) << from.bit_offset(dim)
            };
            (0..to.rank()).map(part).sum::<u32>()
        };
        let count = to.elements() as u32;
        Ok((0..count)
            .map(|flat| elems[source(flat) as usize])
            .collect())
    }

    fn permute(&self, data: &InstData<Tile>) -> Outcome<Elems> {
        let Some(&result) = data.results.first() else {
            return Err(malformed("the op has one result"));
        };
        let from = self.func.dfg.ty(operand(data, 0)?).shape;
        let to = self.func.dfg.ty(result).shape;
        let dims = required(data.dims())?;
        let elems = self.arg(data, 0)?;
        let source = |flat: u32| {
            let part = |(dim, &of): (usize, &u32)| {
                to.coordinate(flat, dim) << from.bit_offset(of as usize)
            };
            dims.iter().enumerate().map(part).sum::<u32>()
        };
        let count = to.elements() as u32;
        Ok((0..count)
            .map(|flat| elems[source(flat) as usize])
            .collect())
    }

    /// The unspecified element of an index beyond the axis is the one at the index modulo the extent.
    fn gather(&self, data: &InstData<Tile>) -> Outcome<Elems> {
        let from = self.func.dfg.ty(operand(data, 0)?).shape;
        let to = self.func.dfg.ty(operand(data, 1)?).shape;
        let axis = usize::from(required(data.axis())?);
        let (elems, indices) = (self.arg(data, 0)?, self.arg(data, 1)?);
        let source = |flat: u32, index: u64| {
            let part = |dim| {
                let coordinate = match dim == axis {
                    true => (index % from.extent(dim)) as u32,
                    false => to.coordinate(flat, dim),
                };
                coordinate << from.bit_offset(dim)
            };
            (0..from.rank()).map(part).sum::<u32>()
        };
        let places = indices.iter().enumerate();
        Ok(places
            .map(|(flat, &index)| elems[source(flat as u32, index) as usize])
            .collect())
    }

    fn assume(&self, data: &InstData<Tile>, promise: Promise) -> Outcome<Elems> {
        let elems = self.same(data)?;
        if self.options.check_promises {
            let ty = self.func.dfg.ty(operand(data, 0)?);
            let values = required(data.values())?;
            promise::check(promise, ty, &elems, &values).map_err(InterpErrorKind::BrokenPromise)?;
        }
        Ok(elems)
    }
}

/// The entry of `triple` that the attribute `axis` names.
fn axis_of(triple: [u32; 3], data: &InstData<Tile>) -> Outcome<u64> {
    let axis = required(data.axis())?;
    let entry = triple.get(usize::from(axis));
    entry
        .map(|&n| u64::from(n))
        .ok_or_else(|| malformed("a grid has three axes"))
}
