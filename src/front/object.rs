//! Objects of the text's classes: named tuples and aggregates.
//!
//! Both are tuples with names. The values of a named tuple are its constructor's arguments; those of an aggregate are
//! what its `__init__` gives to `self`, each of which the class declares. Objects do not change once they are made, so
//! that they pass through calls, branches and loops as tuples do. A field declared `constexpr` stays a constant.
//! Classes may inherit from others of the text; names are looked up in the class first.

use ruff_python_ast::{Expr, ExprAttribute, Stmt, StmtClassDef, StmtFunctionDef, StmtWith};
use ruff_text_size::{Ranged, TextSize};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::call::{Argument, Given};
use super::comparison::constant_equal;
use super::diagnostic::{Code, Diagnostic, Severity};
use super::lower::{Local, Lower, Res, Stop, with_stack};
use super::module::{Definition, Unknown, is_constexpr, last_name};
use super::stmt::Flow;
use super::value::{Member, Tuple, Value};

/// Most classes that a class inherits from, with itself.
const MAX_CHAIN: usize = 64;

/// A declared field.
#[derive(Clone, Copy, Debug)]
struct Field<'m> {
    name: &'m str,
    annotation: &'m Expr,
    default: Option<&'m Expr>,
}

/// What a class has under a name.
struct Found<'m> {
    /// The class that has it.
    class: &'m StmtClassDef,
    name: &'m str,
    definition: Definition<'m>,
    /// What its users are warned of.
    warning: Option<Diagnostic>,
}

/// What can be made of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClassKind {
    NamedTuple,
    Aggregate,
    Other,
}

/// Whether what an enumeration has under a name is one of its members.
fn is_member(name: &str, definition: Definition<'_>) -> bool {
    super::changes::is_value(definition) && !name.starts_with("__") && !name.ends_with("__")
}

/// A class and those it inherits from, nearest first.
type Chain<'m> = SmallVec<[&'m StmtClassDef; 2]>;

impl<'m> Lower<'m> {
    fn chain(&self, class: &'m StmtClassDef) -> Chain<'m> {
        self.order(class, &mut FxHashMap::default())
    }

    /// Python's order (C3): a class in front of those it inherits from, these in the order in which they are named. Where there
    /// is none, which Python refuses, or there are too many, the class alone. `known` has what was found out.
    fn order(
        &self,
        class: &'m StmtClassDef,
        known: &mut FxHashMap<TextSize, Chain<'m>>,
    ) -> Chain<'m> {
        let (place, start) = (class.range, class.range.start());
        if let Some(chain) = known.get(&start) {
            return chain.clone();
        }
        let bases = class.bases().iter().filter_map(|base| {
            let name = base.as_name_expr()?.id.as_str();
            match self
                .index_at(place)
                .find(name, place, false, Some(start), true)
            {
                Some(Definition::Class(base)) => Some(base),
                _ => None,
            }
        });
        let bases: Chain<'m> = bases.collect();
        let is_one = |a: &StmtClassDef, b: &StmtClassDef| std::ptr::eq(a, b);
        let chains = bases
            .iter()
            .map(|base| with_stack(|| self.order(base, known)));
        let mut chains: Vec<Chain<'m>> = chains.collect();
        chains.push(bases);
        let mut chain: Chain<'m> = SmallVec::from_slice(&[class]);
        while chain.len() < MAX_CHAIN {
            chains.retain(|chain| !chain.is_empty());
            let mut heads = chains.iter().map(|chain| chain[0]);
            let is_free = |head: &&'m StmtClassDef| {
                let mut behind = chains.iter().flat_map(|chain| &chain[1..]);
                !behind.any(|class| is_one(class, head))
            };
            let Some(next) = heads.find(is_free) else {
                break;
            };
            let chains = chains.iter_mut();
            chains.for_each(|chain| chain.retain(|class| !is_one(class, next)));
            chain.push(next);
        }
        if !chains.iter().all(SmallVec::is_empty) {
            chain.truncate(1);
        }
        known.insert(start, chain.clone());
        chain
    }

    /// Whether what the text of a class has under names are members, which are not their values: not if these are integers or
    /// texts too.
    fn is_enumeration(&self, chain: &Chain<'m>) -> bool {
        let mut is_one = false;
        for base in chain.iter().flat_map(|class| class.bases()) {
            let index = self.index_at(base.range());
            let path = index.path_of(base, 1, |name| index.names.get(name).copied());
            let name = path.as_deref().or(last_name(base)).unwrap_or_default();
            match name.rsplit('.').next() {
                Some("Enum" | "Flag") => is_one = true,
                Some("IntEnum" | "IntFlag" | "StrEnum" | "int" | "str" | "float") => return false,
                _ => {}
            }
        }
        is_one
    }

    /// A member of an enumeration, given its name and value.
    fn enumerated(
        &mut self,
        chain: &Chain<'m>,
        class: &'m StmtClassDef,
        name: &'m str,
        value: Value<'m>,
    ) -> Res<Value<'m>> {
        let body = chain.iter().flat_map(|class| &class.body);
        let own = body.filter_map(Stmt::as_function_def_stmt);
        let mut own = own.filter(|f| f.name.starts_with('_') && f.name.ends_with('_'));
        if let Some(f) = own.next() {
            let message = format!(
                "members of `{}` are what its `{}` makes them",
                class.name, f.name
            );
            let d = self.error(Code::Unsupported, message);
            return Err(d
                .help("give the class members alone, and ask for their `.value`")
                .into());
        }
        let names = self
            .index_at(class.range)
            .class(class)
            .map(|scope| &scope.names);
        let names: Vec<_> = names.into_iter().flatten().map(|(n, d)| (*n, *d)).collect();
        for (first, definition) in names {
            if first == name {
                break;
            }
            // A second name for a value is the same member.
            if is_member(first, definition) {
                let other =
                    self.in_file_of(class.range, |lower| lower.global(first, definition))?;
                if constant_equal(&other, &value, true) != Some(false) {
                    return self.enumerated(chain, class, first, other);
                }
            }
        }
        let member = Member { class, name, value };
        Ok(Value::Member(member.into()))
    }

    /// Whether a class is another or inherits from it.
    pub(crate) fn inherits(&self, class: &'m StmtClassDef, other: &StmtClassDef) -> bool {
        let chain = self.chain(class);
        chain.iter().any(|class| std::ptr::eq(*class, other))
    }

    /// Whether a class of the text is a named tuple.
    pub(crate) fn is_named_tuple(&self, class: &'m StmtClassDef) -> bool {
        matches!(Self::kind(&self.chain(class)), ClassKind::NamedTuple)
    }

    fn kind(chain: &Chain<'m>) -> ClassKind {
        let named = |class: &&StmtClassDef| {
            let bases = class.arguments.iter().flat_map(|a| &a.args);
            bases
                .into_iter()
                .any(|b| last_name(b) == Some("NamedTuple"))
        };
        let aggregate = |class: &&StmtClassDef| {
            let names = class.decorator_list.iter();
            names
                .filter_map(|d| last_name(&d.expression))
                .any(|name| matches!(name, "aggregate" | "_aggregate"))
        };
        if chain.iter().any(named) {
            ClassKind::NamedTuple
        } else if chain.iter().any(aggregate) {
            ClassKind::Aggregate
        } else {
            ClassKind::Other
        }
    }

    /// The fields that a class declares, those of the classes it inherits from first.
    fn fields(chain: &Chain<'m>) -> Vec<Field<'m>> {
        let mut fields: Vec<Field<'m>> = Vec::new();
        for class in chain.iter().rev() {
            for stmt in &class.body {
                let Stmt::AnnAssign(declared) = stmt else {
                    continue;
                };
                let Some(name) = declared.target.as_name_expr() else {
                    continue;
                };
                let field = Field {
                    name: name.id.as_str(),
                    annotation: &declared.annotation,
                    default: declared.value.as_deref(),
                };
                match fields.iter_mut().find(|f| f.name == field.name) {
                    Some(known) => *known = field,
                    None => fields.push(field),
                }
            }
        }
        fields
    }

    /// The names of the fields that a class declares, in order.
    pub(crate) fn field_names(&self, class: &'m StmtClassDef) -> Vec<&'m str> {
        let fields = Self::fields(&self.chain(class));
        fields.into_iter().map(|field| field.name).collect()
    }

    fn unknown_member(&self, chain: &Chain<'m>, name: &str, why: Unknown) -> Stop {
        let class = chain.first().map_or("", |class| class.name.as_str());
        let help = "define it once, in the body of the class".to_owned();
        self.unknown_value(&format!("{class}.{name}"), why, help)
    }

    /// What a class, or the nearest that it inherits from, has under a name, and what users of it are warned of.
    fn member(&self, chain: &Chain<'m>, name: &str) -> Option<Found<'m>> {
        chain.iter().find_map(|class| {
            if let Some(at) = self.index_at(class.range).changed_attribute(class, name) {
                return Some(Found {
                    class,
                    name: "",
                    definition: Definition::Unknown(Unknown::Changed(at)),
                    warning: None,
                });
            }
            let scope = self.index_at(class.range).class(class)?;
            let (name, definition) = scope.names.get_key_value(name)?;
            Some(Found {
                class,
                name,
                definition: *definition,
                warning: scope.warning(name, *definition).cloned(),
            })
        })
    }

    fn method(&self, chain: &Chain<'m>, name: &str) -> Res<Option<&'m StmtFunctionDef>> {
        match self.member(chain, name).map(|member| member.definition) {
            Some(Definition::Function(f)) => Ok(Some(f)),
            Some(Definition::Unknown(why)) => Err(self.unknown_member(chain, name, why)),
            _ => Ok(None),
        }
    }

    /// An object of a class of the text.
    pub(crate) fn construct(
        &mut self,
        class: &'m StmtClassDef,
        given: Given<'m>,
    ) -> Res<Value<'m>> {
        let chain = self.chain(class);
        let init = self.method(&chain, "__init__")?;
        match (Self::kind(&chain), init) {
            (ClassKind::Aggregate, Some(init)) => self.initialise(class, &chain, init, given),
            (ClassKind::NamedTuple | ClassKind::Aggregate, _) => {
                self.fill_fields(class, &Self::fields(&chain), given)
            }
            (ClassKind::Other, _) => {
                let message = format!("objects of the class `{}` cannot be made", class.name);
                let d = self.error(Code::Unsupported, message);
                Err(d
                    .help("a class of kernels is a NamedTuple, or an aggregate of triton.language")
                    .into())
            }
        }
    }

    /// What `__init__` makes of `self`.
    fn initialise(
        &mut self,
        class: &'m StmtClassDef,
        chain: &Chain<'m>,
        init: &'m StmtFunctionDef,
        given: Given<'m>,
    ) -> Res<Value<'m>> {
        let empty = Tuple::new(Vec::new(), Some(class), Vec::new());
        let mut all = vec![self.argument(Value::Tuple(empty.into()))];
        all.extend(given);
        let (_, locals) = self.walk(init, all)?;
        let made = super::module::params(init).next().map(|p| p.name);
        let made = match made.and_then(|name| locals.get(name)) {
            Some(Local::Bound {
                value: Value::Tuple(made),
                ..
            }) => made.clone(),
            _ => return Err(Stop::Reported),
        };
        let fields = Self::fields(chain);
        let mut values = Vec::with_capacity(fields.len());
        for field in &fields {
            let at = made.names.iter().position(|name| *name == field.name);
            let Some(value) = at.and_then(|i| made.items.get(i)) else {
                let message = format!(
                    "`__init__` of `{}` gives no value to `{}`",
                    class.name, field.name
                );
                return Err(self.error(Code::Call, message).into());
            };
            values.push(value.clone());
        }
        self.object(class, &fields, values)
    }

    /// An object whose fields are the arguments.
    fn fill_fields(
        &mut self,
        class: &'m StmtClassDef,
        fields: &[Field<'m>],
        given: Given<'m>,
    ) -> Res<Value<'m>> {
        let mut items: Vec<Option<Value<'m>>> = vec![None; fields.len()];
        for (i, Argument { name, value, .. }) in given.into_iter().enumerate() {
            let at = match name {
                None => (i < fields.len()).then_some(i),
                Some(name) => fields.iter().position(|field| field.name == name),
            };
            match (at, name) {
                (Some(at), _) if items[at].is_none() => items[at] = Some(value),
                (Some(at), _) => {
                    let message = format!("`{}` gets `{}` twice", class.name, fields[at].name);
                    return Err(self.error(Code::Call, message).into());
                }
                (None, Some(name)) => {
                    let message = format!("`{}` has no field `{name}`", class.name);
                    return Err(self.error(Code::Call, message).into());
                }
                (None, None) => {
                    let message = format!("`{}` has {} fields", class.name, fields.len());
                    return Err(self.error(Code::Call, message).into());
                }
            }
        }
        let mut values = Vec::with_capacity(items.len());
        for (item, field) in items.into_iter().zip(fields) {
            values.push(match (item, field.default) {
                (Some(value), _) => value,
                (None, Some(default)) => self.default_value(default, self.index_at(class.range))?,
                (None, None) => {
                    let message = format!("`{}` lacks its field `{}`", class.name, field.name);
                    return Err(self.error(Code::Call, message).into());
                }
            });
        }
        self.object(class, fields, values)
    }

    /// An object with these values.
    fn object(
        &mut self,
        class: &'m StmtClassDef,
        fields: &[Field<'m>],
        values: Vec<Value<'m>>,
    ) -> Res<Value<'m>> {
        let mut items = Vec::with_capacity(values.len());
        for (value, field) in values.into_iter().zip(fields) {
            items.push(if is_constexpr(field.annotation) {
                let range = self.range;
                self.require_constant(value, range)
                    .map_err(|stop| match stop {
                        Stop::Error(mut d) => {
                            d.message =
                                format!("`{}` of `{}`: {}", field.name, class.name, d.message);
                            Stop::Error(d)
                        }
                        other => other,
                    })?
            } else {
                self.settle(value)?
            });
        }
        let names = fields.iter().map(|field| field.name).collect();
        let tuple = Tuple::new(items, Some(class), names);
        Ok(Value::Tuple(tuple.into()))
    }

    /// Whether a part of an object is declared to be a constant.
    pub(crate) fn is_constant_field(&self, tuple: &Tuple<'m>, at: usize) -> bool {
        let (Some(class), Some(name)) = (tuple.class, tuple.names.get(at)) else {
            return false;
        };
        let fields = Self::fields(&self.chain(class));
        let found = fields.iter().find(|field| field.name == *name);
        found.is_some_and(|field| is_constexpr(field.annotation))
    }

    /// A method of an object: bound to it, or a property's value.
    pub(crate) fn object_method(
        &mut self,
        object: &Value<'m>,
        class: &'m StmtClassDef,
        name: &str,
    ) -> Res<Option<Value<'m>>> {
        let chain = self.chain(class);
        let Some(f) = self.method(&chain, name)? else {
            return self.class_attribute(class, name);
        };
        let is = |wanted: &str| {
            let mut names = f.decorator_list.iter().map(|d| last_name(&d.expression));
            names.any(|name| name == Some(wanted))
        };
        if is("staticmethod") {
            return Ok(Some(Value::Function(f)));
        }
        if is("property") {
            let given = vec![self.argument(object.clone())];
            return self.call_function(f, given).map(Some);
        }
        let bound = Value::Method(object.clone().into(), Value::Function(f).into());
        Ok(Some(bound))
    }

    /// A function or constant of a class.
    pub(crate) fn class_attribute(
        &mut self,
        class: &'m StmtClassDef,
        name: &str,
    ) -> Res<Option<Value<'m>>> {
        let chain = self.chain(class);
        let Some(member) = self.member(&chain, name) else {
            return Ok(None);
        };
        if let Definition::Unknown(why) = member.definition {
            return Err(self.unknown_member(&chain, name, why));
        }
        if let Some(warning) = member.warning {
            self.add(warning);
        }
        let value = self.in_file_of(member.class.range, |lower| {
            lower.global(member.name, member.definition)
        })?;
        match is_member(member.name, member.definition) && self.is_enumeration(&chain) {
            true => self
                .enumerated(&chain, member.class, member.name, value)
                .map(Some),
            false => Ok(Some(value)),
        }
    }

    /// `self.name = value` within `__init__`.
    pub(crate) fn assign_field(
        &mut self,
        target: &'m ExprAttribute,
        value: Value<'m>,
    ) -> Res<bool> {
        let frame = self.frame();
        let Some(init) = frame.function.filter(|f| f.name.as_str() == "__init__") else {
            return Ok(false);
        };
        let own = super::module::params(init).next().map(|p| p.name);
        let (Some(own), Expr::Name(name)) = (own, &*target.value) else {
            return Ok(false);
        };
        let object = match frame.locals.get(own) {
            Some(Local::Bound {
                value: Value::Tuple(object),
                ..
            }) if name.id.as_str() == own && object.class.is_some() => object.clone(),
            _ => return Ok(false),
        };
        let field = target.attr.as_str();
        if let Some(class) = object.class {
            let fields = Self::fields(&self.chain(class));
            if !fields.iter().any(|f| f.name == field) {
                let outer = self.enter(target.attr.range());
                let message = format!("`{}` declares no field `{field}`", class.name);
                let d = self.error(Code::Attribute, message);
                self.enter(outer);
                return Err(d
                    .help(format!("declare it in the class: `{field}: tl.tensor`"))
                    .into());
            }
        }
        let (mut items, mut names) = (object.items.clone(), object.names.clone());
        match names.iter().position(|n| *n == field) {
            Some(at) => items[at] = value,
            None => {
                items.push(value);
                names.push(field);
            }
        }
        let changed = Tuple::new(items, object.class, names);
        self.bind(own, Value::Tuple(changed.into()), false);
        Ok(true)
    }

    /// `with`: objects that have `__enter__` and `__exit__`. What stands in other files marks a region for tools of the
    /// host; its body runs without it.
    pub(crate) fn with_statement(&mut self, s: &'m StmtWith) -> Res<Flow<'m>> {
        let mut entered = Vec::new();
        for item in &s.items {
            let outer = self.enter(item.context_expr.range());
            let object = self.context(&item.context_expr);
            self.enter(outer);
            let Some((object, exit)) = object? else {
                continue;
            };
            let enter = self.special(&object, "__enter__")?;
            if let Some(enter) = enter {
                let at = item.context_expr.range();
                let given = self.call_value(&enter, Vec::new(), at)?;
                if let Some(target) = &item.optional_vars {
                    self.assign(target, given, false)?;
                }
            }
            entered.push((exit, item.context_expr.range()));
        }
        let flow = self.body(&s.body, false)?;
        if !matches!(flow, Flow::Next) && !entered.is_empty() {
            let d = self.error(Code::Unsupported, "a `return` inside of `with`");
            return Err(d.help("return after it").into());
        }
        for (exit, at) in entered.into_iter().rev() {
            let given = (0..3).map(|_| self.argument(Value::NONE)).collect();
            self.call_value(&exit, given, at)?;
        }
        Ok(flow)
    }

    fn special(&mut self, object: &Value<'m>, name: &str) -> Res<Option<Value<'m>>> {
        match object {
            Value::Tuple(tuple) => match tuple.class {
                Some(class) => self.object_method(object, class, name),
                None => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// The object of a `with` and what ends it; none for what is of the host alone.
    fn context(&mut self, expr: &'m Expr) -> Res<Option<(Value<'m>, Value<'m>)>> {
        if let Expr::Call(call) = expr
            && let Value::Path(path) = self.eval(&call.func)?
        {
            if path.0.contains("triton.language") {
                let message = format!("`{}` is not supported", path.0);
                let d = self.error(Code::Unsupported, message);
                return Err(d
                    .help("leave the division of work among warps to `tl.range(..., warp_specialize=True)`")
                    .into());
            }
            let message = format!("`{}` is not in this file; the body runs without it", path.0);
            let d = self.error(Code::Suspicious, message);
            self.add(d.with_severity(Severity::Warning));
            return Ok(None);
        }
        let object = self.eval(expr)?;
        match self.special(&object, "__exit__")? {
            Some(exit) => Ok(Some((object, exit))),
            None => {
                let message = format!("{} is no context for `with`", object.describe());
                let d = self.error(Code::Type, message);
                Err(d
                    .help("an aggregate with `__enter__` and `__exit__` is one")
                    .into())
            }
        }
    }
}
