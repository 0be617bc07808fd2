//! What a loop carries.
//!
//! The names that the body assigns and that exist before the loop are found by name, and the body is walked with all of
//! their numbers as parameters of the region. Where one turns out not to change (its assignment is in a branch that is
//! not taken, or it is a part of a tuple that is handed on), the region is thrown away and made again without it, so that
//! what is constant stays so. Of a block pointer only the offsets are taken to change at first.

use ruff_text_size::TextRange;
use rustc_hash::FxHashSet;

use super::diagnostic::Code;
use super::library::block_ptr::OFFSETS;
use super::lower::{Gone, Local, Locals, Lower, Res, Stop};
use super::merge_branches::same;
use super::types::{Ty, show};
use super::value::{Const, Mark, Tensor, Tuple, Value};
use crate::ir::attrs::Rounding;
use crate::ir::entities::{self, Block};
use crate::ir::types::TileType;
use crate::linear_layout::shape::Shape;

/// A value whose numbers are parameters of a region.
#[derive(Clone, Debug)]
enum Carried<'m> {
    Tensor(Ty, Shape),
    /// It does not change.
    Fixed(Value<'m>),
    Tuple(std::rc::Rc<Tuple<'m>>, Vec<Carried<'m>>),
}

/// What a loop carries.
#[derive(Default)]
pub(crate) struct Carry<'m> {
    names: Vec<(&'m str, Carried<'m>)>,
    pub(crate) inits: Vec<entities::Value>,
    pub(crate) types: Vec<TileType>,
}

/// A carried name at the end of the body.
#[derive(Clone, Debug)]
pub(crate) struct EndValue<'m> {
    value: Value<'m>,
    compared: Compared,
}

/// How a value at the end of the body differs from the one at its start.
#[derive(Clone, Debug, Default)]
struct Compared {
    /// Something that is carried has another value.
    changed: bool,
    /// Something that was taken to stay has another value.
    misjudged: bool,
    /// Parts that are carried and have the same value.
    idle: Vec<usize>,
}

/// The rest of a loop's making, given what it carries.
type Finish<'a, 'm> = Box<dyn FnOnce(&mut Lower<'m>, &Carry<'m>) -> Res<Vec<entities::Value>> + 'a>;

/// A loop whose body has been walked.
pub(crate) struct WalkedLoop<'a, 'm> {
    pub(crate) ends: Vec<EndValue<'m>>,
    pub(crate) finish: Finish<'a, 'm>,
}

/// What earlier attempts at a loop have taught.
#[derive(Default)]
struct Learned<'m> {
    /// Names that the body leaves without a value: counters of loops inside.
    gone: Vec<(&'m str, Gone)>,
    /// Parts of names, by number, that do not change.
    fixed: FxHashSet<(&'m str, usize)>,
    /// Names of which something was wrongly taken to be fixed, as often as it was. After the first time nothing is
    /// guessed, after the second nothing is fixed.
    free: Vec<&'m str>,
}

impl Learned<'_> {
    fn misjudged(&self, name: &str) -> usize {
        self.free.iter().filter(|other| **other == name).count()
    }
}

impl<'m> Lower<'m> {
    /// Makes a loop that carries those of the names that exist and change, and the scope after it.
    pub(crate) fn carrying<'a>(
        &mut self,
        mut names: Vec<&'m str>,
        range: TextRange,
        walk: impl Fn(&mut Lower<'m>, &Carry<'m>) -> Res<WalkedLoop<'a, 'm>>,
    ) -> Res<()> {
        for name in &names {
            self.settle_counter(name);
        }
        self.open_region()?;
        let before = self.scope()?;
        // What an earlier walk of the body reports is no mistake of the text unless the last one reports it, too.
        let messages = self.messages.len();
        let broken = self.frame().broken;
        let mut learned = Learned::default();
        let own = names.iter().filter(|name| !before.contains_key(**name));
        let own: Vec<&'m str> = own.copied().collect();
        let result = loop {
            for &(name, why) in &learned.gone {
                self.frame().locals.insert(name, Local::Gone(why));
            }
            // What the body calls its own is not what the module has under that name, before it is assigned either.
            for &name in &own {
                self.frame().locals.insert(name, Local::Gone(Gone::Later));
            }
            let carry = match self.carry(&names, &before, &learned) {
                Ok(carry) => carry,
                Err(stop) => break Err(stop),
            };
            let made = walk(self, &carry);
            let after = std::mem::replace(&mut self.frame().locals, before.clone());
            let made = match made {
                Ok(made) => made,
                Err(stop) => break Err(stop),
            };
            if !learn(&mut names, &carry, &made.ends, &after, &mut learned) {
                break self.after_loop(&carry, made, &before, (&after, &learned.gone), range);
            }
            self.messages.truncate(messages);
            self.frame().broken = broken;
            if let Err(stop) = self.charge(1 + before.len()) {
                break Err(stop);
            }
        };
        self.regions -= 1;
        result
    }

    fn after_loop(
        &mut self,
        carry: &Carry<'m>,
        made: WalkedLoop<'_, 'm>,
        before: &Locals<'m>,
        (after, gone): (&Locals<'m>, &[(&'m str, Gone)]),
        range: TextRange,
    ) -> Res<()> {
        let outer = self.enter(range);
        let results = (made.finish)(self, carry);
        self.enter(outer);
        self.bind_carried(carry, &results?);
        for (name, local) in after {
            match before.get(name) {
                None => {
                    self.frame().locals.insert(name, Local::Gone(Gone::InLoop));
                }
                // It ended before this loop, too, which does not assign it.
                Some(Local::Counter(_)) if matches!(local, Local::Counter(_)) => {}
                // The bounds of a counter are numbers of the loop.
                Some(_) if let Some(why) = lost(Some(local)) => {
                    self.frame().locals.insert(name, Local::Gone(why));
                }
                // An earlier walk lost it, so that it has no value at the start of an iteration.
                Some(_) if let Some((_, why)) = gone.iter().find(|(gone, _)| gone == name) => {
                    self.frame().locals.insert(name, Local::Gone(*why));
                }
                Some(Local::Bound { value: old, .. })
                    if !carry.names.iter().any(|(carried, _)| carried == name) =>
                {
                    if let Local::Bound { value, .. } = local
                        && !same(old, value)
                    {
                        self.changed_constant(name, old, value, range)?;
                    }
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// A name that is no number before the loop got another value in it.
    fn changed_constant(
        &mut self,
        name: &'m str,
        old: &Value<'m>,
        new: &Value<'m>,
        range: TextRange,
    ) -> Res<()> {
        self.bind(name, Value::Poison, false);
        if matches!(old, Value::Poison) || matches!(new, Value::Poison) {
            return Ok(());
        }
        let outer = self.enter(range);
        let (old, new) = (old.describe(), new.describe());
        let message = format!("`{name}` is {old} before the loop and {new} after an iteration");
        let d = self.error(Code::Loop, message);
        self.enter(outer);
        self.report(
            d.help("give it a value of the final type before the loop")
                .into(),
        )
    }

    /// The names that can be carried, with their first values.
    fn carry(
        &mut self,
        names: &[&'m str],
        before: &Locals<'m>,
        learned: &Learned<'m>,
    ) -> Res<Carry<'m>> {
        let mut carry = Carry::default();
        for &name in names {
            let Some(Local::Bound {
                value,
                fixed: false,
            }) = before.get(name)
            else {
                continue;
            };
            if is_number(value) || matches!(value, Value::Tuple(_)) {
                let mut part = 0;
                let carried = self.carried(name, value, &mut part, learned, &mut carry)?;
                carry.names.push((name, carried));
            }
        }
        Ok(carry)
    }

    /// A value with its numbers carried; `part` counts the numbers.
    fn carried(
        &mut self,
        name: &'m str,
        value: &Value<'m>,
        part: &mut usize,
        learned: &Learned<'m>,
        carry: &mut Carry<'m>,
    ) -> Res<Carried<'m>> {
        match value {
            Value::Tuple(tuple) => {
                let guess = matches!(tuple.mark, Some((Mark::BlockPointer, _)));
                let guess = guess && !learned.free.contains(&name);
                let mut items = Vec::new();
                for (i, item) in tuple.items.iter().enumerate() {
                    let declared = self.is_constant_field(tuple, i);
                    let fixed = declared && !learned.free.contains(&name);
                    items.push(if fixed || guess && i != OFFSETS {
                        *part += usize::from(is_number(item));
                        Carried::Fixed(item.clone())
                    } else {
                        self.carried(name, item, part, learned, carry)?
                    });
                }
                Ok(Carried::Tuple(tuple.clone(), items))
            }
            value if is_number(value) => {
                *part += 1;
                if learned.fixed.contains(&(name, *part - 1)) {
                    return Ok(Carried::Fixed(value.clone()));
                }
                let t = self.tensor(value)?;
                carry.inits.push(t.value);
                carry.types.push(self.tile_type(t.ty, t.shape)?);
                Ok(Carried::Tensor(t.ty, t.shape))
            }
            other => Ok(Carried::Fixed(other.clone())),
        }
    }

    /// Gives the carried names the values of a region's parameters, or of the loop's results.
    pub(crate) fn bind_carried(&mut self, carry: &Carry<'m>, values: &[entities::Value]) {
        let mut values = values.iter().copied();
        for (name, carried) in &carry.names {
            let value = rebuild(carried, &mut values);
            self.bind(name, value, false);
        }
    }

    /// What the carried names are at the end of the body, which is walked in the current block.
    pub(crate) fn loop_ends(&mut self, carry: &Carry<'m>) -> Vec<EndValue<'m>> {
        let params = &self.b.func().dfg.blocks[self.b.block()].params;
        let params: Vec<entities::Value> = params[params.len() - carry.types.len()..].to_vec();
        let mut params = params.into_iter();
        let mut ends = Vec::new();
        for (name, carried) in &carry.names {
            let start = rebuild(carried, &mut params);
            let mut compared = Compared::default();
            let value = match self.frame().locals.get(name) {
                Some(Local::Bound { value, .. }) => value.clone(),
                Some(Local::Gone(_) | Local::Counter(_)) | None => Value::Poison,
            };
            compare(carried, &start, &value, &mut 0, &mut compared);
            ends.push(EndValue { value, compared });
        }
        ends
    }

    /// Ends a region with the carried names' values.
    pub(crate) fn yield_ends(
        &mut self,
        block: Block,
        carry: &Carry<'m>,
        ends: &[EndValue<'m>],
    ) -> Res<()> {
        self.b.switch_to(block);
        let mut yields = Vec::new();
        for ((name, carried), end) in carry.names.iter().zip(ends) {
            let mark = yields.len();
            if let Err(stop) = self.push_end(name, carried, &end.value, &mut yields) {
                self.report(stop)?;
                // The kernel is not handed out; anything of the type will do.
                yields.truncate(mark);
                self.push_zeros(carried, &mut yields)?;
            }
        }
        self.b.yield_values(&yields);
        Ok(())
    }

    fn push_end(
        &mut self,
        name: &str,
        carried: &Carried<'m>,
        value: &Value<'m>,
        yields: &mut Vec<entities::Value>,
    ) -> Res<()> {
        match (carried, value) {
            (_, Value::Poison) => Err(Stop::Reported),
            // It is the same on every way, or the loop would have been made anew.
            (Carried::Fixed(_), _) => Ok(()),
            (Carried::Tuple(tuple, items), Value::Tuple(t)) if t.is_like(tuple) => items
                .iter()
                .zip(&t.items)
                .try_for_each(|(carried, value)| self.push_end(name, carried, value, yields)),
            (Carried::Tensor(ty, shape), value) => {
                let fits = match self.type_of(value) {
                    Ok((t, s)) => {
                        let weak = matches!(value, Value::Const(_)) && !ty.is_ptr();
                        s == *shape && (t == *ty || weak)
                    }
                    Err(_) => false,
                };
                if !fits {
                    return Err(self.loop_type(name, *ty, *shape, value));
                }
                let t = match ty {
                    Ty::Num(dtype) => self.materialize(value, *dtype, *shape)?,
                    ty => {
                        let t = self.tensor(value)?;
                        self.cast(t, *ty, Rounding::Nearest)?
                    }
                };
                yields.push(t.value);
                Ok(())
            }
            (Carried::Tuple(tuple, _), value) => {
                let (old, new) = (Value::Tuple(tuple.clone()).describe(), value.describe());
                let message =
                    format!("`{name}` is {old} before the loop and {new} after an iteration");
                Err(self.error(Code::Loop, message).into())
            }
        }
    }

    fn loop_type(&self, name: &str, ty: Ty, shape: Shape, value: &Value<'m>) -> Stop {
        let before = show(ty, shape);
        let (after, help) = match self.type_of(value) {
            Ok((t, s)) => {
                let help = match (t, s == shape) {
                    (Ty::Num(d), false) => {
                        let extents: Vec<String> = s.extents().map(|e| e.to_string()).collect();
                        let extents = extents.join(", ");
                        format!(
                            "start with `tl.zeros([{extents}], tl.{})` or `tl.full`",
                            d.name()
                        )
                    }
                    (Ty::Num(d), true) => format!("cast one of them with `.to(tl.{})`", d.name()),
                    (Ty::Ptr { .. }, _) => "give it its final type before the loop".to_owned(),
                };
                (show(t, s), help)
            }
            Err(_) => (
                value.describe(),
                "give it its final type before the loop".to_owned(),
            ),
        };
        let message =
            format!("`{name}` is {before} before the loop and {after} after an iteration");
        let d = self.error(Code::Loop, message);
        d.label("what a loop carries keeps its type")
            .help(help)
            .into()
    }

    fn push_zeros(&mut self, carried: &Carried<'m>, yields: &mut Vec<entities::Value>) -> Res<()> {
        match carried {
            Carried::Tensor(ty, shape) => {
                let zero = self.zero(*ty, *shape)?;
                yields.push(zero.value);
            }
            Carried::Fixed(_) => {}
            Carried::Tuple(_, items) => {
                for item in items {
                    self.push_zeros(item, yields)?;
                }
            }
        }
        Ok(())
    }
}

/// Why a name has no value behind a loop that it was walked in.
fn lost(local: Option<&Local<'_>>) -> Option<Gone> {
    match local? {
        Local::Gone(why) => Some(*why),
        Local::Counter(_) => Some(Gone::Counter),
        Local::Bound { .. } => None,
    }
}

/// Looks at what a walk showed; true if the loop must be made anew.
fn learn<'m>(
    names: &mut Vec<&'m str>,
    carry: &Carry<'m>,
    ends: &[EndValue<'m>],
    after: &Locals<'m>,
    learned: &mut Learned<'m>,
) -> bool {
    let mut again = false;
    for ((name, _), end) in carry.names.iter().zip(ends) {
        let lost = lost(after.get(name));
        if end.compared.misjudged && lost.is_none() {
            learned.free.push(name);
            learned.fixed.retain(|(other, _)| other != name);
            again = true;
        } else if lost.is_some() || !end.compared.changed {
            learned.gone.extend(lost.map(|why| (*name, why)));
            names.retain(|other| other != name);
            again = true;
        } else if learned.misjudged(name) < 2 && !end.compared.idle.is_empty() {
            let parts = end.compared.idle.iter().map(|&part| (*name, part));
            learned.fixed.extend(parts);
            again = true;
        }
    }
    again
}

/// Compares the start and the end of an iteration, part by part.
fn compare<'m>(
    carried: &Carried<'m>,
    start: &Value<'m>,
    end: &Value<'m>,
    part: &mut usize,
    out: &mut Compared,
) {
    match (carried, start, end) {
        (Carried::Tuple(_, items), Value::Tuple(a), Value::Tuple(b)) if a.is_like(b) => {
            for ((item, a), b) in items.iter().zip(&a.items).zip(&b.items) {
                compare(item, a, b, part, out);
            }
        }
        (Carried::Fixed(_), start, end) => {
            *part += usize::from(is_number(start));
            out.misjudged |= !same(start, end);
        }
        (Carried::Tensor(..), start, end) => {
            if same(start, end) {
                out.idle.push(*part);
            } else {
                out.changed = true;
            }
            *part += 1;
        }
        (Carried::Tuple(..), ..) => out.changed = true,
    }
}

fn is_number(value: &Value<'_>) -> bool {
    match value {
        Value::Tensor(_) | Value::Known(_) => true,
        Value::Const(c) => matches!(c, Const::Bool(_) | Const::Int(_) | Const::Float(_)),
        _ => false,
    }
}

/// A carried value made of the next values.
fn rebuild<'m>(
    carried: &Carried<'m>,
    values: &mut impl Iterator<Item = entities::Value>,
) -> Value<'m> {
    match carried {
        Carried::Fixed(value) => value.clone(),
        Carried::Tensor(ty, shape) => match values.next() {
            Some(value) => Value::Tensor(Tensor {
                value,
                ty: *ty,
                shape: *shape,
            }),
            None => Value::Poison,
        },
        Carried::Tuple(tuple, items) => {
            let mut tuple = (**tuple).clone();
            tuple.items = items.iter().map(|item| rebuild(item, values)).collect();
            Value::Tuple(tuple.into())
        }
    }
}
