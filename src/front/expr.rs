//! Expressions: what each kind of them gives.

use std::rc::Rc;

use indexmap::IndexMap;
use ruff_python_ast::helpers::any_over_expr;
use ruff_python_ast::{
    BoolOp, Comprehension, ConversionFlag, Expr, ExprFString, ExprSubscript, FStringPart,
    InterpolatedElement, InterpolatedStringElement, Number as AstNumber, Operator, UnaryOp,
};
use ruff_text_size::{Ranged, TextRange};

use super::comparison::is_number;
use super::compile_time::NO_TEXT;
use super::constant;
use super::diagnostic::Code;
use super::format;
use super::loops::target_names;
use super::lower::{Gone, Local, Lower, Res, Stop, with_stack};
use super::materialise::NO_NUMBER;
use super::types::{DType, Ty};
use super::value::{Const, Known, Tensor, TypeValue, Value};
use crate::ir::attrs::Rounding;
use crate::limits::{STRING_BYTES, TUPLE_ELEMENTS};
use crate::linear_layout::shape::Shape;

impl<'m> Lower<'m> {
    /// The value of an expression.
    pub(crate) fn eval(&mut self, expr: &'m Expr) -> Res<Value<'m>> {
        match expr {
            Expr::Name(name) => self.lookup(name.id.as_str(), name.range),
            Expr::NoneLiteral(_) => Ok(Value::NONE),
            Expr::BooleanLiteral(b) => Ok(Value::bool(b.value)),
            expr => {
                let outer = self.enter(expr.range());
                let result = self
                    .step()
                    .and_then(|()| with_stack(|| self.eval_inner(expr)));
                self.enter(outer);
                match result {
                    Ok(Value::Poison) => Err(Stop::Reported),
                    Ok(Value::Tuple(tuple)) if tuple.weight > TUPLE_ELEMENTS => {
                        let message = format!("a tuple has more than {TUPLE_ELEMENTS} elements");
                        Err(self.error(Code::Budget, message).into())
                    }
                    other => other,
                }
            }
        }
    }

    fn eval_inner(&mut self, expr: &'m Expr) -> Res<Value<'m>> {
        match expr {
            Expr::NumberLiteral(n) => self.number(&n.value),
            Expr::StringLiteral(s) => Ok(Value::Const(Const::Str(s.value.to_str().into()))),
            Expr::BinOp(e) => {
                let a = self.eval(&e.left)?;
                let b = self.eval(&e.right)?;
                if let (Value::Dict(a), Operator::BitOr, Value::Dict(b)) = (&a, e.op, &b) {
                    self.charge(a.len() + b.len())?;
                    let both = a.iter().chain(b.iter());
                    let dict: IndexMap<_, _> = both.map(|(k, v)| (k.clone(), v.clone())).collect();
                    return Ok(Value::Dict(dict.into()));
                }
                let parts = [(&a, e.left.range()), (&b, e.right.range())];
                self.binary(e.op, &a, &b)
                    .map_err(|stop| blame(stop, &parts))
            }
            Expr::UnaryOp(e) if e.op == UnaryOp::Not => {
                let value = self.eval(&e.operand)?;
                self.not(&value)
            }
            Expr::UnaryOp(e) => {
                let value = self.eval(&e.operand)?;
                self.unary(e.op, &value)
            }
            Expr::BoolOp(e) => self.bool_op(e.op, &e.values),
            Expr::Compare(e) => self.comparison(e),
            Expr::If(e) => {
                let test = self.test_of(&e.test)?;
                let side = match self.choice(&test)? {
                    Ok(true) => &e.body,
                    Ok(false) => &e.orelse,
                    Err(cond) => return self.conditional(cond, &e.body, &e.orelse),
                };
                let value = self.eval(side)?;
                match test {
                    // What has a type is a number of run time, to Triton, and so are both sides.
                    Value::Known(_) => self.settle(value),
                    _ => Ok(value),
                }
            }
            Expr::Call(e) => self.call(e),
            Expr::Attribute(e) => {
                let value = self.eval(&e.value)?;
                self.attribute(&value, &e.attr)
            }
            Expr::Subscript(e) => self.subscript(e),
            Expr::Tuple(e) => self.items(&e.elts).map(Value::tuple),
            Expr::List(e) => {
                let items = self.items(&e.elts)?;
                Ok(self.list(items))
            }
            Expr::ListComp(e) => self.comprehension(&e.generators, &e.elt),
            Expr::FString(e) => self.f_string(e),
            Expr::Dict(e) if self.frame().host => self.dictionary(e),
            Expr::Named(e) => {
                let value = self.eval(&e.value)?;
                let value = self.settle(value)?;
                self.assign(&e.target, value.clone(), false)?;
                Ok(value)
            }
            other => Err(self.unsupported_expression(other)),
        }
    }

    /// The condition of an expression; in one of the module the environment is empty.
    fn test_of(&mut self, test: &'m Expr) -> Res<Value<'m>> {
        let of_module = self.frame().function.is_none();
        if self.in_condition || !of_module {
            return self.eval(test);
        }
        let asked = std::mem::take(&mut self.asked_environment);
        self.in_condition = true;
        let value = self.eval(test);
        self.in_condition = false;
        if std::mem::replace(&mut self.asked_environment, asked) {
            self.add(super::module::without_environment(test.range()));
        }
        value
    }

    /// A list: to Python, and a tuple to kernels.
    pub(crate) fn list(&mut self, items: Vec<Value<'m>>) -> Value<'m> {
        match self.frame().host {
            true => Value::list(items),
            false => Value::tuple(items),
        }
    }

    fn unsupported_expression(&self, expr: &Expr) -> Stop {
        let (what, help) = match expr {
            Expr::Lambda(_) => (
                "`lambda`",
                "define a function at the top level, with @triton.jit",
            ),
            Expr::Dict(_) | Expr::DictComp(_) => ("dictionaries", "use names, or a tuple"),
            Expr::Set(_) | Expr::SetComp(_) => ("sets", "use a tuple"),
            Expr::Generator(_) => ("generators", "use a list: [... for ... in ...]"),
            Expr::Await(_) | Expr::Yield(_) | Expr::YieldFrom(_) => ("coroutines", "use a loop"),
            Expr::Starred(_) => ("`*` here", "it is for arguments of calls"),
            Expr::BytesLiteral(_) => ("bytes", "use a string or numbers"),
            Expr::EllipsisLiteral(_) => ("`...`", "write `:` once for each dimension"),
            Expr::Slice(_) => ("a slice here", "slices index tuples and blocks"),
            _ => (
                "this expression",
                "see the page for people who come from Triton",
            ),
        };
        let d = self.error(Code::Unsupported, format!("kernels cannot use {what}"));
        d.help(help).into()
    }

    fn number(&self, number: &AstNumber) -> Res<Value<'m>> {
        match number {
            AstNumber::Float(x) => Ok(Value::Const(Const::Float(*x))),
            AstNumber::Int(n) => {
                let number = match n.as_u64() {
                    Some(n) => Some(i128::from(n)),
                    None => big_int(&n.to_string()),
                };
                number.map(Value::int).ok_or_else(|| {
                    let d = self.error(Code::Value, "the number needs more than 127 bits");
                    d.into()
                })
            }
            AstNumber::Complex { .. } => Err(self
                .error(Code::Unsupported, "kernels cannot use complex numbers")
                .into()),
        }
    }

    pub(crate) fn items(&mut self, exprs: &'m [Expr]) -> Res<Vec<Value<'m>>> {
        let mut items = Vec::with_capacity(exprs.len());
        for expr in exprs {
            match expr {
                Expr::Starred(starred) => match self.eval(&starred.value)? {
                    Value::Tuple(tuple) => items.extend(tuple.items.iter().cloned()),
                    other => {
                        let message = format!("`*` needs a tuple, found {}", other.describe());
                        return Err(self.error(Code::Type, message).into());
                    }
                },
                expr => items.push(self.eval(expr)?),
            }
        }
        Ok(items)
    }

    /// `not x`, on blocks element by element.
    pub(crate) fn not(&mut self, value: &Value<'m>) -> Res<Value<'m>> {
        match value {
            Value::Const(c) => Ok(Value::bool(!constant::truth(c))),
            Value::Known(known) => Ok(Value::Known(Known::boolean(!constant::truth(
                &known.to_const(),
            )))),
            Value::Tuple(t) => Ok(Value::bool(t.items.is_empty())),
            Value::Type(_)
            | Value::Function(_)
            | Value::Builtin(_)
            | Value::Class(_)
            | Value::Member(_) => Ok(Value::bool(false)),
            value => {
                let t = self.tensor(value)?;
                let t = self.cast(t, Ty::Num(DType::Int1), Rounding::Nearest)?;
                let ones = self.constant(Known::boolean(true), t.shape)?;
                let value = self.b.xor(t.value, ones.value);
                Ok(self.block(value, t.ty))
            }
        }
    }

    /// `and` and `or`: a constant decides or drops out wherever it stands, the rest is combined element by element.
    fn bool_op(&mut self, op: BoolOp, values: &'m [Expr]) -> Res<Value<'m>> {
        let mut last = None;
        let mut result: Option<Value<'m>> = None;
        for expr in values {
            if result.is_some() {
                self.check_names_nothing(expr, "what stands behind a condition of run time")?;
            }
            let value = self.eval(expr)?;
            let constant = match &value {
                Value::Tensor(_) => None,
                // Every object of Python is true that does not say otherwise.
                Value::Type(_)
                | Value::Function(_)
                | Value::Builtin(_)
                | Value::Class(_)
                | Value::Member(_) => Some(true),
                value => self.condition(value)?.ok(),
            };
            match constant {
                Some(truth) if truth == (op == BoolOp::Or) => return Ok(value),
                Some(_) => last = Some(value),
                None => {
                    result = Some(match result {
                        None => value,
                        Some(left) => {
                            let outer = self.enter(expr.range());
                            let result = self.logical(op, &left, &value);
                            self.enter(outer);
                            result?
                        }
                    });
                }
            }
        }
        result.or(last).ok_or(Stop::Reported)
    }

    fn logical(&mut self, op: BoolOp, a: &Value<'m>, b: &Value<'m>) -> Res<Value<'m>> {
        let mut truth = |value: &Value<'m>| -> Res<Tensor> {
            let t = self.tensor(value)?;
            if t.ty.dtype() != Some(DType::Int1) {
                let d = self.wrong_type("truth values", t);
                return Err(match d {
                    Stop::Error(mut d) => {
                        d.help = Some("compare with zero: `x != 0`".to_owned());
                        Stop::Error(d)
                    }
                    other => other,
                });
            }
            self.cast(t, Ty::Num(DType::Int1), Rounding::Nearest)
        };
        let (x, y) = (truth(a)?, truth(b)?);
        let shape = self.common_shape(x.shape, y.shape)?;
        let (x, y) = (self.broadcast_to(x, shape)?, self.broadcast_to(y, shape)?);
        let value = match op {
            BoolOp::And => self.b.and(x.value, y.value),
            BoolOp::Or => self.b.or(x.value, y.value),
        };
        Ok(self.block(value, x.ty))
    }

    fn subscript(&mut self, e: &'m ExprSubscript) -> Res<Value<'m>> {
        let value = self.eval(&e.value)?;
        if let Value::Tuple(tuple) = &value
            && let Some(class) = tuple.class
            && let Some(get) = self.object_method(&value, class, "__getitem__")?
        {
            let index = self.eval(&e.slice)?;
            let given = vec![self.argument(index)];
            return self.call_value(&get, given, e.range);
        }
        match &value {
            Value::Tuple(_) => self.index_tuple(&value, &e.slice),
            Value::Dict(dict) => {
                let key = self.eval(&e.slice)?;
                let key = self.key_of(&key)?;
                dict.get(&key).cloned().ok_or_else(|| {
                    if let Some(key) = key.strip_prefix(NO_TEXT) {
                        let message = format!("the dictionary has no key {key}");
                        return self.error(Code::Name, message).into();
                    }
                    let message = format!("there is no constant `{key}`");
                    let d = self.error(Code::Name, message);
                    d.help(format!("give it with -c {key}=VALUE")).into()
                })
            }
            Value::Const(Const::Str(text)) => self.index_text(text, &e.slice),
            Value::Tensor(_) | Value::Known(_) | Value::Const(_) => {
                let t = self.tensor(&value)?;
                self.index_block(t, &e.slice)
            }
            Value::Function(_) => {
                let d = self.error(Code::Unsupported, "a kernel cannot launch a kernel");
                Err(d.help("call the function without [...]").into())
            }
            other => {
                let message = format!("{} cannot be indexed", other.describe());
                Err(self.error(Code::Type, message).into())
            }
        }
    }

    /// A character of a text, or a slice of it.
    fn index_text(&mut self, text: &str, index: &'m Expr) -> Res<Value<'m>> {
        self.charge(text.len() / 16)?;
        let chars: Vec<char> = text.chars().collect();
        let part: String = if let Expr::Slice(slice) = index {
            let places = self.tuple_slice(slice, chars.len())?;
            places.into_iter().map(|i| chars[i]).collect()
        } else {
            let index = self.eval(index)?;
            let number = index.as_const().and_then(|c| constant::as_int(&c));
            let Some(number) = number else {
                let found = index.describe();
                let message = format!("a text is indexed by a constant, found {found}");
                return Err(self.error(Code::Constant, message).into());
            };
            let len = chars.len() as i128;
            let at = if number < 0 { number + len } else { number };
            match usize::try_from(at).ok().and_then(|i| chars.get(i)) {
                Some(c) => c.to_string(),
                None => {
                    let message = format!("index {number} of a text of {len}");
                    return Err(self.error(Code::Value, message).into());
                }
            }
        };
        Ok(Value::Const(Const::Str(part.into())))
    }

    /// An element of a tuple, or a slice of it.
    fn index_tuple(&mut self, value: &Value<'m>, index: &'m Expr) -> Res<Value<'m>> {
        let Value::Tuple(tuple) = value else {
            return Err(Stop::Reported);
        };
        if let Expr::Slice(slice) = index {
            let part = self.tuple_slice(slice, tuple.items.len())?;
            let items = part.into_iter().map(|i| tuple.items[i].clone());
            return Ok(tuple.of_kind(items.collect()));
        }
        let index = self.eval(index)?;
        let number = index.as_const().and_then(|c| constant::as_int(&c));
        let Some(number) = number else {
            let message = format!(
                "a tuple is indexed by a constant, found {}",
                index.describe()
            );
            return Err(self
                .error(Code::Constant, message)
                .help("loop with tl.static_range to have a constant")
                .into());
        };
        let len = tuple.items.len() as i128;
        let at = if number < 0 { number + len } else { number };
        match usize::try_from(at).ok().and_then(|i| tuple.items.get(i)) {
            Some(item) => Ok(item.clone()),
            None => {
                let message = format!("index {number} of a tuple of {len}");
                Err(self.raises(Code::Value, message).into())
            }
        }
    }

    fn tuple_slice(
        &mut self,
        slice: &'m ruff_python_ast::ExprSlice,
        len: usize,
    ) -> Res<Vec<usize>> {
        let mut bound = |expr: &'m Option<Box<Expr>>| -> Res<Option<i128>> {
            let Some(expr) = expr else { return Ok(None) };
            let value = self.eval(expr)?;
            match value.as_const() {
                Some(Const::None) => Ok(None),
                Some(c) if constant::as_int(&c).is_some() => Ok(constant::as_int(&c)),
                _ => {
                    let message =
                        format!("a slice has constant bounds, found {}", value.describe());
                    Err(self.error(Code::Constant, message).into())
                }
            }
        };
        let (start, stop, step) = (
            bound(&slice.lower)?,
            bound(&slice.upper)?,
            bound(&slice.step)?,
        );
        let (len, step) = (len as i128, step.unwrap_or(1));
        if step == 0 {
            return Err(self
                .error(Code::Value, "the step of a slice is zero")
                .into());
        }
        let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
        let place = |bound: Option<i128>, default: i128| match bound {
            None => default,
            Some(n) => (if n < 0 { n.saturating_add(len) } else { n }).clamp(low, high),
        };
        let (start, stop) = if step > 0 {
            (place(start, 0), place(stop, len))
        } else {
            (place(start, len - 1), place(stop, -1))
        };
        let mut indices = Vec::new();
        let mut at = start;
        while (step > 0 && at < stop) || (step < 0 && at > stop) {
            indices.extend(usize::try_from(at));
            at = at.saturating_add(step);
        }
        Ok(indices)
    }

    /// `x[:, None]`: dimensions kept and dimensions of extent 1 added. A scalar has none to keep, and its first new one
    /// is a block of one element wherever it stands.
    fn index_block(&mut self, t: Tensor, index: &'m Expr) -> Res<Value<'m>> {
        let parts: &'m [Expr] = match index {
            Expr::Tuple(tuple) => &tuple.elts,
            single => std::slice::from_ref(single),
        };
        let mut value = t.value;
        for (dim, part) in parts.iter().enumerate() {
            match self.block_index(part)? {
                BlockIndex::Kept => {}
                BlockIndex::New => {
                    let rank = self.b.ty(value).shape.rank();
                    if rank >= crate::linear_layout::shape::MAX_RANK {
                        return Err(self
                            .error(Code::Shape, "the block has too many dimensions")
                            .into());
                    }
                    let dim = if rank == 0 { 0 } else { dim };
                    if dim > rank {
                        let message = format!("more indices than the {rank} dimensions");
                        return Err(self.error(Code::Shape, message).into());
                    }
                    // The rank is bounded above, and so is every dimension's number.
                    value = self.b.expand_dims(value, dim as u8);
                }
            }
        }
        Ok(self.block(value, t.ty))
    }

    /// What one part of a block's index does: `None`, or a slice whose bounds are absent or `None`.
    fn block_index(&mut self, part: &'m Expr) -> Res<BlockIndex> {
        let found = match part {
            Expr::Slice(slice) => {
                let bounds = [&slice.lower, &slice.upper, &slice.step];
                let mut whole = true;
                for bound in bounds.into_iter().flatten() {
                    whole &= self.eval(bound)?.is_none();
                }
                whole.then_some(BlockIndex::Kept)
            }
            part => self.eval(part)?.is_none().then_some(BlockIndex::New),
        };
        found.ok_or_else(|| {
            let outer = self.enter(part.range());
            let d = self.error(
                Code::Unsupported,
                "blocks are indexed with `:` and `None` only",
            );
            self.enter(outer);
            d.help("elements are chosen with tl.where and a reduction, or loaded from memory")
                .into()
        })
    }

    /// `[f(x) for x in tuple]`.
    pub(crate) fn comprehension(
        &mut self,
        generators: &'m [Comprehension],
        element: &'m Expr,
    ) -> Res<Value<'m>> {
        if generators.len() != 1 && !self.frame().host {
            let d = self.error(Code::Unsupported, "a list has one `for`");
            return Err(d.help("write a loop over tl.static_range").into());
        }
        // The names of its own end with it; those that `:=` gives are names of the function.
        let mut own = Vec::new();
        for generator in generators {
            target_names(&generator.target, &mut own);
        }
        let locals = &self.frame().locals;
        let before = own
            .into_iter()
            .map(|name| (name, locals.get(name).cloned()));
        let before: Vec<(&'m str, Option<Local<'m>>)> = before.collect();
        // The first is gone through in the scope around.
        let first = match generators {
            [first, ..] => Some(self.iterable(&first.iter)?),
            [] => None,
        };
        let mut results = Vec::new();
        let outer = self.frame().of_lists.len();
        let names: Vec<&'m str> = before.iter().map(|(name, _)| *name).collect();
        self.frame().of_lists.extend(names);
        let result = self.generate(generators, first, element, &mut results);
        self.frame().of_lists.truncate(outer);
        for (name, local) in before {
            match local {
                Some(local) => self.frame().locals.insert(name, local),
                None => self.frame().locals.shift_remove(name),
            };
        }
        result.map(|()| self.list(results))
    }

    /// That no name is given in what is not evaluated once, of which `part` says what it is: nothing would carry its value on.
    pub(crate) fn check_names_nothing(&mut self, expr: &'m Expr, part: &str) -> Res<()> {
        let mut found = None;
        any_over_expr(expr, |part| {
            found = found.or(part.is_named_expr().then(|| part.range()));
            found.is_some()
        });
        let Some(range) = found else { return Ok(()) };
        let outer = self.enter(range);
        let message = format!("`:=` in {part}");
        let d = self.error(Code::Unsupported, message);
        self.enter(outer);
        Err(d
            .help("give the name its value in a statement before")
            .into())
    }

    fn f_string(&mut self, e: &'m ExprFString) -> Res<Value<'m>> {
        let mut text = String::new();
        for part in e.value.iter() {
            match part {
                FStringPart::Literal(literal) => text += literal.as_str(),
                FStringPart::FString(f) => self.pieces(&f.elements, &mut text)?,
            }
        }
        Ok(Value::Const(Const::Str(text.into())))
    }

    /// The texts between braces and what stands in them, of an f-string or of a format within one.
    fn pieces(&mut self, elements: &'m [InterpolatedStringElement], text: &mut String) -> Res<()> {
        for element in elements {
            match element {
                InterpolatedStringElement::Literal(literal) => *text += &literal.value,
                InterpolatedStringElement::Interpolation(hole) => self.hole(hole, text)?,
            }
            if text.len() > STRING_BYTES {
                return Err(self.error(Code::Budget, "the string is too long").into());
            }
        }
        self.charge_text(text)?;
        Ok(())
    }

    /// `{value=!r:format}`.
    fn hole(&mut self, hole: &'m InterpolatedElement, text: &mut String) -> Res<()> {
        let value = self.eval(&hole.expression)?;
        let mut spec = String::new();
        if let Some(format) = &hole.format_spec {
            self.pieces(&format.elements, &mut spec)?;
        }
        if let Some(debug) = &hole.debug_text {
            *text += debug.as_str();
        }
        let bare = hole.debug_text.is_some() && hole.format_spec.is_none();
        let as_repr = match hole.conversion {
            ConversionFlag::None => bare,
            ConversionFlag::Str => false,
            ConversionFlag::Repr | ConversionFlag::Ascii => true,
        };
        self.note_host(&value);
        let value = match (value.as_const(), hole.conversion) {
            (_, _) if as_repr => Const::Str(self.repr(&value).into()),
            (Some(c), ConversionFlag::None) => c,
            _ => Const::Str(self.display(&value).into()),
        };
        match format::format_value(&value, &spec) {
            Ok(shown) => *text += &shown,
            Err(message) => {
                let outer = self.enter(hole.range);
                let d = self.error(Code::Value, message);
                self.enter(outer);
                return Err(d.help("formats are those of Python's `format`").into());
            }
        }
        Ok(())
    }

    /// A value as a constant that can stand in a text: what is none is shown.
    pub(crate) fn as_shown(&self, value: &Value<'m>) -> Const {
        let shown = || Const::Str(self.display(value).into());
        value.as_const().unwrap_or_else(shown)
    }

    /// A value in a text.
    pub(crate) fn display(&self, value: &Value<'m>) -> String {
        match value {
            Value::Const(c) => constant::display(c),
            Value::Known(known) => constant::display(&known.to_const()),
            Value::Type(t) => super::types::own_name(t.ty, t.shape),
            Value::ConstType(c) => format!("constexpr_type[{}]", constant::display(c)),
            Value::Tuple(t) => {
                let items: Vec<String> = t.items.iter().map(|item| self.repr(item)).collect();
                if t.list {
                    return format!("[{}]", items.join(", "));
                }
                let end = if items.len() == 1 { "," } else { "" };
                format!("({}{end})", items.join(", "))
            }
            Value::Tensor(t) => super::types::show(t.ty, t.shape),
            Value::Member(m) => format!("{}.{}", m.class.name, m.name),
            other => other.describe(),
        }
    }

    /// A value in a text, as Python's `repr` has it.
    pub(crate) fn repr(&self, value: &Value<'m>) -> String {
        match (value, value.as_const()) {
            (_, Some(c)) => format::repr(&c),
            (
                Value::Type(TypeValue {
                    ty: Ty::Num(d),
                    shape: None,
                }),
                _,
            ) => {
                format!("triton.language.{}", d.name())
            }
            (value, _) => self.display(value),
        }
    }

    /// The value of a local name, or why it has none.
    pub(crate) fn local(&mut self, name: &str) -> Option<Result<Value<'m>, Gone>> {
        match self.frame().locals.get(name)? {
            Local::Bound { value, .. } => Some(Ok(value.clone())),
            Local::Gone(why) => Some(Err(*why)),
            Local::Counter(ended) => {
                let ended = ended.clone();
                Some(Ok(self.last_count(name, &ended)))
            }
        }
    }

    /// A shape given as a tuple of constants.
    pub(crate) fn shape_of(&mut self, value: &Value<'m>) -> Res<Shape> {
        let items: Rc<[Value<'m>]> = match value {
            Value::Tuple(tuple) => tuple.items.clone().into(),
            single => Rc::new([single.clone()]),
        };
        let mut extents = Vec::with_capacity(items.len());
        for item in items.iter() {
            match item.as_const().and_then(|c| constant::as_int(&c)) {
                Some(extent) => extents.push(extent),
                None if matches!(item, Value::Poison) => return Err(Stop::Reported),
                None => {
                    let message =
                        format!("a shape is made of constants, found {}", item.describe());
                    let d = self.error(Code::Constant, message);
                    return Err(match item {
                        Value::Type(_) => d.help(super::library::IS_TYPE).into(),
                        _ => d.help(super::library::NEEDS_CONSTANT).into(),
                    });
                }
            }
        }
        self.shape(&extents)
    }
}

/// What one part of a block's index does.
enum BlockIndex {
    /// Leaves a dimension as it is.
    Kept,
    /// Adds a dimension of extent 1.
    New,
}

/// Lets an error about something that is no number point at it, if it is one of these.
pub(crate) fn blame<'m>(stop: Stop, parts: &[(&Value<'m>, TextRange)]) -> Stop {
    match stop {
        Stop::Error(mut d) if d.code == Code::Type && d.message.starts_with(NO_NUMBER) => {
            let mut parts = parts.iter().filter(|(value, _)| !is_number(value));
            if let Some((_, range)) = parts.find(|(v, _)| d.message.ends_with(&v.describe())) {
                d.span = super::diagnostic::bytes(*range);
            }
            Stop::Error(d)
        }
        other => other,
    }
}

/// An integer literal in any base.
fn big_int(text: &str) -> Option<i128> {
    let text = text.replace('_', "").to_ascii_lowercase();
    let (digits, radix) = match text.get(..2) {
        Some("0x") => (&text[2..], 16),
        Some("0o") => (&text[2..], 8),
        Some("0b") => (&text[2..], 2),
        _ => (&text[..], 10),
    };
    i128::from_str_radix(digits, radix).ok()
}
