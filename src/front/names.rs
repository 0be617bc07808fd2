//! Names and attributes: scopes, modules of the outside, properties of types and blocks.

pub(crate) use crate::text::closest::{closest, did_you_mean};
use ruff_python_ast::{Identifier, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::diagnostic::Code;
use super::library::{self, Scope};
use super::lower::{Frame, Local, Lower, Res, Stop, with_stack};
use super::merge_branches::same;
use super::module::{Definition, Unknown, last_name};
use super::types::{DType, NumberKind, Ty};
use super::value::{Const, Mark, Path, TypeValue, Value};
use crate::limits::EVALUATION_CALLS;

/// How a signature says that an argument is a tensor descriptor.
pub(crate) const GIVEN: &str = "in a signature `tensordesc<fp16[64, 32]>`";

/// Where a path of modules leads.
fn scope(path: &str) -> Option<Scope> {
    let mut parts = path.split('.');
    let first = parts.next()?;
    let last = path.rsplit('.').next()?;
    if path
        .split('.')
        .any(|part| matches!(part, "libdevice" | "tldevice" | "tl_extra_shim"))
    {
        return Some(Scope::Libdevice);
    }
    if path.contains("triton.language") || matches!(last, "tl" | "tl_math") {
        return Some(Scope::Language);
    }
    match last {
        "triton_helpers" => return Some(Scope::Inductor),
        "ragged_tma" => return Some(Scope::Ragged),
        _ => {}
    }
    match first {
        "triton" => Some(Scope::Triton),
        "math" => Some(Scope::Math),
        "torch" | "numpy" | "itertools" => Some(Scope::Host),
        "packaging" => Some(Scope::Packaging),
        "builtins" => Some(Scope::Python),
        _ => None,
    }
}

/// Whether a function is not run again for the same arguments, so that it finds what there was at its first call.
fn is_cached(f: &StmtFunctionDef) -> bool {
    let mut names = f
        .decorator_list
        .iter()
        .filter_map(|d| last_name(&d.expression));
    names.any(|name| matches!(name, "cache" | "lru_cache"))
}

/// Names that Python has without an import.
const OF_PYTHON: &str = "\
    abs aiter all anext any ascii bin bool breakpoint bytearray bytes callable chr classmethod compile complex copyright credits \
    delattr dict dir display divmod enumerate eval exec exit filter float format frozenset get_ipython getattr globals hasattr hash \
    help hex id input int isinstance issubclass iter len license list locals map max memoryview min next object oct open ord pow \
    print property quit range repr reversed round set setattr slice sorted staticmethod str sum super tuple type vars zip Ellipsis \
    NotImplemented True False None";

/// Whether a name may be there without a definition: one of Python, among them all exceptions, or a special one.
fn is_of_python(name: &str) -> bool {
    let exceptions = [
        "Error",
        "Exception",
        "Exit",
        "Interrupt",
        "Iteration",
        "Warning",
        "Group",
    ];
    OF_PYTHON.split_whitespace().any(|other| other == name)
        || exceptions.iter().any(|end| name.ends_with(end))
        || name.starts_with('_')
}

/// Whether the library has a member of a module of Triton, or takes it for one that it has.
pub(crate) fn is_of_library(module: &str, member: &str) -> bool {
    let path = format!("{module}.{member}");
    library::is_module(&path)
        || path == "triton.language"
        || scope(module).is_some_and(|scope| library::find(scope, member).is_some())
}

/// What the library is by a name under which wrappers of other projects hand it on.
fn handed_on(name: &str) -> Option<&'static str> {
    match name {
        "tl" | "language" => Some("triton.language"),
        "triton" => Some("triton"),
        "libdevice" | "tldevice" | "tl_extra_shim" => Some("triton.language.extra.libdevice"),
        _ => None,
    }
}

/// Whether a name of another file can be the library, or one of its functions.
pub(crate) fn is_handed_on(name: &str) -> bool {
    handed_on(name).is_some() || library::find(Scope::Language, name).is_some()
}

impl<'m> Lower<'m> {
    /// The value of a name: local, of the module, of Python, and for older kernels of the library.
    pub(crate) fn lookup(&mut self, name: &'m str, range: TextRange) -> Res<Value<'m>> {
        let outer = self.enter(range);
        let result = self.lookup_inner(name);
        self.enter(outer);
        match result {
            Ok(Value::Poison) => Err(Stop::Reported),
            other => other,
        }
    }

    fn lookup_inner(&mut self, name: &'m str) -> Res<Value<'m>> {
        match self.local(name) {
            Some(Ok(value)) => return Ok(value),
            Some(Err(why)) => {
                let d = self.error(Code::Name, format!("`{name}` has no value here"));
                let (why, help) = why.explain();
                return Err(d.label(why).help(help).into());
            }
            None => {}
        }
        let index = self.frame().index;
        if std::ptr::eq(index, self.index)
            && let Some(c) = self.constants.get(name)
        {
            return super::argument::constant_value(self, c);
        }
        if let Some(value) = self.running(name)? {
            return Ok(value);
        }
        let function = self.frame().function;
        let place = function.map_or(self.range, |f| f.range);
        let now = self.now();
        // Neither functions nor lists of a class see its names.
        let within = function.is_some() || !self.frame().of_lists.is_empty();
        let find = |as_written| index.find(name, place, within, now, as_written);
        if let Some(definition) = find(false) {
            if let (Definition::Unknown(Unknown::Changed(_)), true) = (definition, self.as_written)
                && let Some(written) = find(true)
                && let Ok(list @ Value::Tuple(_)) = self.global(name, written)
            {
                return Ok(list);
            }
            let is_cached = |f: &Frame<'m>| f.function.is_some_and(is_cached);
            if self.frames.iter().any(is_cached)
                && let Some(at) = index.changes(name)
            {
                let help =
                    format!("give it with -c {name}=VALUE, or call a function that is not cached");
                return Err(self.unknown_value(name, Unknown::Changed(at), help));
            }
            return self.global(name, definition);
        }
        // Names of the library without their module, as older kernels and the library itself have them.
        let bare = match library::prelude::scope_of(index) {
            Some(scope) => library::find(scope, name),
            None => None,
        };
        let bare = bare.or_else(|| library::find(Scope::Language, name));
        let python = library::python_name(name);
        let found = match index.of_library {
            true => bare.or(python),
            false => python.or(bare),
        };
        found.ok_or_else(|| self.unknown_name(name))
    }

    /// What a name of the module stands for in a function that a statement calls which is being run.
    fn running(&mut self, name: &'m str) -> Res<Option<Value<'m>>> {
        let at = self.frames.iter().rposition(|f| f.function.is_none());
        let frame = at.and_then(|at| self.frames.get(at));
        let own = self.frames.last().map(|frame| frame.index);
        let same = |f: &&Frame<'m>| own.is_some_and(|own| std::ptr::eq(f.index, own));
        let Some(frame) = frame.filter(same) else {
            return Ok(None);
        };
        if frame.of_lists.contains(&name) {
            let d = self.error(
                Code::Unsupported,
                format!("`{name}` is a name of a list's `for` too"),
            );
            return Err(d.help("give it another name there").into());
        }
        Ok(match frame.locals.get(name) {
            Some(Local::Bound { value, .. }) => Some(value.clone()),
            _ => None,
        })
    }

    /// The place of the module's text that has run up to now: what a statement of the module computes finds the values of that
    /// statement, by way of functions too. None when all of it has run, as when a kernel is launched.
    fn now(&self) -> Option<TextSize> {
        let top = self.frames.last()?;
        let at = self.frames.iter().rposition(|f| f.function.is_none())?;
        let same = std::ptr::eq(self.frames[at].index, top.index);
        let called = self.frames.get(at + 1);
        same.then(|| called.map_or(self.range, |f| f.call).start())
    }

    fn unknown_name(&mut self, name: &str) -> Stop {
        let index = self.frame().index;
        let of_module = self.frame().function.is_none() && std::ptr::eq(index, self.index);
        let is_known = of_module && index.is_closed() && !is_of_python(name);
        self.raised |= is_known && !self.has_errors() && !self.asked_host;
        if index.names.contains_key(name) {
            let d = self.error(Code::Name, format!("`{name}` is not defined yet"));
            return d.help("define it in front of what needs it").into();
        }
        let locals = self.frame().locals.keys().copied().collect::<Vec<_>>();
        let names = locals.into_iter().chain(index.names.keys().copied());
        let d = self.error(Code::Name, format!("`{name}` is not defined"));
        match closest(name, names) {
            Some(other) => d.help(did_you_mean(other)),
            None => d.help(format!(
                "define it, or give a constant with -c {name}=VALUE"
            )),
        }
        .into()
    }

    /// The value of a name of the module.
    pub(crate) fn global(&mut self, name: &'m str, definition: Definition<'m>) -> Res<Value<'m>> {
        if let Some(warning) = self.frame().index.warning(name, definition) {
            self.add(warning.clone());
        }
        match definition {
            Definition::Function(f) => Ok(Value::Function(f)),
            Definition::Unknown(why) => {
                let help = format!("give it with -c {name}=VALUE");
                Err(self.unknown_value(name, why, help))
            }
            Definition::Class(c) => Ok(Value::Class(c)),
            Definition::Module(path) => Ok(Value::Path(Path(path.into()))),
            Definition::Member(module, member) => {
                let path = if module.is_empty() {
                    member.to_owned()
                } else {
                    format!("{module}.{member}")
                };
                self.path(&path)
            }
            Definition::Value(expr, element) => {
                self.global_value(name, expr.range(), element, |lower| lower.eval(expr))
            }
            Definition::Default(expr) => {
                // Another value may be given.
                self.asked_host = true;
                self.global_value(name, expr.range(), None, |lower| lower.eval(expr))
            }
            Definition::Before(at) => {
                let at = TextRange::empty(at);
                self.global_value(name, at, None, |lower| lower.lookup(name, at))
            }
            Definition::Ways(at) => {
                let index = self.frame().index;
                let ways = index.ways(name, at).unwrap_or_default();
                let raised = self.raised;
                let mut found = None;
                for way in ways {
                    let value = match self.global(name, *way) {
                        Ok(value) => value,
                        Err(Stop::Abort) => return Err(Stop::Abort),
                        Err(_) if self.as_written => continue,
                        Err(_) => Value::Poison,
                    };
                    found = Some(match (found, value) {
                        (None, value) => value,
                        (Some(known), value) if same(&known, &value) => value,
                        (Some(Value::Tuple(a)), Value::Tuple(b)) if self.as_written => {
                            Value::Tuple(if a.items.len() > b.items.len() { a } else { b })
                        }
                        _ => Value::Poison,
                    });
                }
                // Only one way is gone.
                self.raised = raised;
                match found {
                    Some(Value::Poison) | None => {
                        let help = format!("give it with -c {name}=VALUE, or define it once");
                        Err(self.unknown_value(name, Unknown::Ways(at), help))
                    }
                    Some(value) => Ok(value),
                }
            }
            Definition::Changed(s) => {
                let place = s.range();
                let after = self.global_value(name, place, None, |lower| lower.after_step(name, s));
                match after {
                    // What a list of configurations is given that only Python knows is left out.
                    Err(Stop::Error(_)) if self.as_written && !s.is_aug_assign_stmt() => {
                        let before = TextRange::empty(place.start());
                        self.global_value(name, place, None, |lower| lower.lookup(name, before))
                    }
                    after => after,
                }
            }
        }
    }

    /// That nobody but the host knows what a name stands for, and what to do.
    pub(crate) fn unknown_value(&self, name: &str, why: Unknown, help: String) -> Stop {
        let d = self.error(Code::Name, format!("`{name}` has no value here"));
        let label = match why {
            Unknown::ByTheHost => "it is assigned where only the host knows what".to_owned(),
            Unknown::Parameter => "it is a parameter of a function of the host".to_owned(),
            Unknown::Changed(at) => {
                format!("{} changes it, or hands it to what may", self.place_of(at))
            }
            Unknown::Ways(at) => {
                let place = self.place_of(at);
                format!("only the host knows which value the statement of {place} leaves it")
            }
        };
        d.label(label).help(help).into()
    }

    /// What stands at a place of the module, evaluated there.
    fn global_value(
        &mut self,
        name: &'m str,
        place: TextRange,
        element: Option<usize>,
        evaluate: impl FnOnce(&mut Self) -> Res<Value<'m>>,
    ) -> Res<Value<'m>> {
        if self.evaluating.contains(&(name, place)) {
            let message = format!("`{name}` is defined by itself");
            return Err(self.error(Code::Name, message).into());
        }
        if self.evaluating.len() > EVALUATION_CALLS {
            let message = format!(
                "`{name}` is made of more than {EVALUATION_CALLS} others, one of the other"
            );
            let d = self.error(Code::Budget, message);
            return self.abort(d.help("define it by fewer steps"));
        }
        self.evaluating.push((name, place));
        let use_at = self.range;
        let locals = Frame::new(self.frame().index, None, use_at, true);
        self.frames.push(locals);
        let guessed = std::mem::take(&mut self.guessed);
        let value = with_stack(|| evaluate(self));
        let guess = std::mem::replace(&mut self.guessed, guessed);
        self.frames.pop();
        self.evaluating.pop();
        if guess && value.is_ok() {
            let message = format!("`{name}` of the module depends on what only the host knows");
            let d = super::diagnostic::Diagnostic::error(Code::Constant, use_at, message);
            return Err(d
                .help(format!("give its value with -c {name}=VALUE"))
                .into());
        }
        let value = value.map_err(|stop| self.not_a_constant(name, use_at, stop))?;
        let value = match (value, element) {
            (Value::Tuple(tuple), Some(i)) => tuple.items.get(i).cloned().unwrap_or(Value::Poison),
            (_, Some(_)) => Value::Poison,
            (value, None) => value,
        };
        match value {
            Value::Tensor(_) | Value::Range(_) => {
                let message = format!("`{name}` of the module is no constant");
                Err(self.error(Code::Constant, message).into())
            }
            value => Ok(value),
        }
    }

    /// Something at the top level that only Python could evaluate: the message says where it is used.
    fn not_a_constant(&self, name: &str, use_at: TextRange, stop: Stop) -> Stop {
        match stop {
            Stop::Error(inner) => {
                let message = format!(
                    "`{name}` of the module cannot be evaluated: {}",
                    inner.message
                );
                let d = super::diagnostic::Diagnostic::error(Code::Constant, use_at, message);
                d.help(format!("give its value with -c {name}=VALUE"))
                    .into()
            }
            other => other,
        }
    }

    /// What a dotted path of the outside stands for.
    pub(crate) fn path(&mut self, path: &str) -> Res<Value<'m>> {
        if let Some(at) = self.frame().index.patched(path) {
            let help = "call a function of the file where another one is meant".to_owned();
            return Err(self.unknown_value(path, Unknown::Changed(at), help));
        }
        if let Some(file) = self.frame().index.module(path) {
            return Ok(Value::Path(Path(file.into())));
        }
        if let Some(found) = self.of_file(path)? {
            return Ok(found);
        }
        let (module, name) = path.rsplit_once('.').unwrap_or(("", path));
        // What is known of who would import the file.
        match path {
            "typing.TYPE_CHECKING" => return Ok(Value::bool(false)),
            "triton.__version__" => return Ok(Value::Const(Const::Str("3.6.0".into()))),
            "torch.version.hip" => return Ok(Value::NONE),
            _ => {}
        }
        if let Some(library) = handed_on(name) {
            return Ok(Value::Path(Path(library.into())));
        }
        if let Some(scope) = scope(module) {
            if scope == Scope::Inductor && name == "math" {
                return Ok(Value::Path(Path("triton.language.math".into())));
            }
            let found = library::find(scope, name);
            // `tl.math` was once all of libdevice.
            let found = found.or_else(|| {
                let math = scope == Scope::Language && module.ends_with("math");
                math.then(|| library::find(Scope::Libdevice, name))?
            });
            return Ok(found.unwrap_or_else(|| Value::Path(Path(path.into()))));
        }
        Ok(Value::Path(Path(path.into())))
    }

    /// A function of another project's module that has the name of one of the library: such wrappers choose among the
    /// library's functions, which is a choice of the host.
    pub(crate) fn borrowed(&mut self, path: &str) -> Option<Value<'m>> {
        let (module, name) = path.rsplit_once('.')?;
        if scope(module).is_some() {
            return None;
        }
        let found = library::find(Scope::Language, name)
            .or_else(|| library::find(Scope::Libdevice, name))
            .filter(|value| matches!(value, Value::Builtin(_)))?;
        let message = format!("`{path}` is not in this file and is taken to be `tl.{name}`");
        let d = self.error(Code::Suspicious, message);
        let d = d.help("define it in this file to be sure of what it does");
        self.add(d.with_severity(super::diagnostic::Severity::Warning));
        Some(found)
    }

    /// `value.name`, if there is such an attribute.
    pub(crate) fn find_attribute(
        &mut self,
        value: &Value<'m>,
        name: &str,
    ) -> Res<Option<Value<'m>>> {
        Ok(match value {
            Value::Path(path) => {
                let path = format!("{}.{name}", path.0);
                if path.len() > 400 {
                    None
                } else {
                    Some(self.path(&path)?)
                }
            }
            Value::Tuple(tuple) => {
                let at = tuple.names.iter().position(|n| *n == name);
                let field = at.and_then(|i| tuple.items.get(i).cloned());
                let method = || match tuple.mark {
                    Some((Mark::Descriptor { .. }, _)) => {
                        let found = library::find_in(Scope::Descriptor, name)?;
                        Some(bound(value, Value::Builtin(found)))
                    }
                    Some((Mark::BlockPointer, _)) if name == "advance" => {
                        let found = library::find_in(Scope::Language, name)?;
                        Some(bound(value, Value::Builtin(found)))
                    }
                    _ => None,
                };
                let own = || match name {
                    // Of a tuple that is a `constexpr`.
                    "value" if tuple.class.is_none() && tuple.mark.is_none() => Some(value.clone()),
                    name => library::block_ptr::attribute(tuple, name),
                };
                match (field.or_else(own).or_else(method), tuple.class) {
                    (None, Some(class)) => self.object_method(value, class, name)?,
                    (found, _) => found,
                }
            }
            Value::Type(_) if name == "value" => Some(value.clone()),
            Value::Type(t) => type_attribute(*t, name),
            Value::ConstType(c) if name == "value" => Some(Value::Const(c.clone())),
            Value::Class(class) => self.class_attribute(class, name)?,
            Value::Member(member) => match name {
                "value" => Some(member.value.clone()),
                "name" => Some(Value::Const(Const::Str(member.name.into()))),
                _ => None,
            },
            Value::Dict(dict) => dict.get(name).cloned(),
            Value::Tensor(_) | Value::Known(_) | Value::Const(_) => {
                self.number_attribute(value, name)?
            }
            _ => None,
        })
    }

    /// The attribute that `hasattr` and `getattr` find: of a constant that of Python's object, without what a
    /// `constexpr` has.
    pub(crate) fn bare_attribute(
        &mut self,
        value: &Value<'m>,
        name: &str,
    ) -> Res<Option<Value<'m>>> {
        let found = match value {
            Value::Const(c) => constant_attribute(c, name),
            Value::Known(_) | Value::Type(_) if name == "value" => None,
            Value::Type(_) if name == "dtype" => None,
            Value::Tuple(t) if name == "value" && t.class.is_none() && t.names.is_empty() => None,
            Value::Tuple(t) if name == "type" && t.class.is_none() && t.names.is_empty() => {
                let message = "the type of a tuple is no value here";
                return Err(self.error(Code::NotYet, message).into());
            }
            value => self.find_attribute(value, name)?,
        };
        // What a path leads to is a path if nobody knows it, or a member of an enumeration.
        Ok(found.filter(|found| match found {
            Value::Path(path) => library::is_member(&path.0),
            _ => true,
        }))
    }

    /// That the library has nothing of this path.
    pub(crate) fn no_such_name(&self, path: &str) -> Stop {
        let d = self.error(Code::Attribute, format!("the library has no `{path}`"));
        let help = match closest_of_library(path) {
            Some(other) => did_you_mean(other),
            None => "names of the library are those of Triton 3.6".to_owned(),
        };
        d.help(help).into()
    }

    /// `value.name`.
    pub(crate) fn attribute(&mut self, value: &Value<'m>, attr: &'m Identifier) -> Res<Value<'m>> {
        let name = attr.as_str();
        let found = self.find_attribute(value, name)?;
        if let (Value::Path(module), Some(Value::Path(path))) = (value, &found)
            && library::is_module(&module.0)
            // Else it is another name of a module.
            && path.0.strip_prefix(&*module.0).is_some_and(|rest| rest.strip_prefix('.') == Some(name))
            && !library::is_other(name)
            && !library::is_known_missing(&path.0)
        {
            return Err(self.no_such_name(&path.0));
        }
        found.ok_or_else(|| {
            let d = super::diagnostic::Diagnostic::error(
                Code::Attribute,
                attr.range(),
                format!("{} has no attribute `{name}`", value.describe()),
            );
            let is_pointer = matches!(value, Value::Tensor(t) if t.ty.is_ptr());
            if is_pointer && library::find_in(Scope::Descriptor, name).is_some() {
                let help = format!(
                    "tensor descriptors have `{name}`: make one (tl.make_tensor_descriptor), or give one as argument, {GIVEN}"
                );
                return d.help(help).into();
            }
            let methods = || library::names(Scope::Language).chain(library::names(Scope::Method));
            let meant = match value {
                Value::Tensor(_) | Value::Known(_) => closest(name, methods()),
                Value::Type(_) => closest(name, library::names(Scope::Type)),
                Value::Const(Const::Str(_)) => closest(name, library::names(Scope::Text)),
                Value::Tuple(tuple) => closest(name, tuple.names.iter().copied()),
                _ => None,
            };
            match meant {
                Some(other) => d.help(did_you_mean(other)).into(),
                None => d.into(),
            }
        })
    }

    fn number_attribute(&mut self, value: &Value<'m>, name: &str) -> Res<Option<Value<'m>>> {
        if let Value::Const(c) = value {
            match (name, c) {
                ("value", _) => return Ok(Some(value.clone())),
                ("type", c) => return Ok(Some(Value::ConstType(c.clone()))),
                (_, Const::None | Const::Str(_)) => return Ok(constant_attribute(c, name)),
                _ => {}
            }
            if let Some(found) = constant_attribute(c, name) {
                return Ok(Some(found));
            }
        }
        if let (Value::Known(known), "value") = (value, name) {
            return Ok(Some(Value::Const(known.to_const())));
        }
        let (ty, shape) = self.type_of(value)?;
        let block_type = TypeValue {
            ty,
            shape: (!shape.is_scalar()).then_some(shape),
        };
        Ok(match name {
            "dtype" => Some(Value::ty(ty)),
            "type" => Some(Value::Type(block_type)),
            "shape" => Some(Value::tuple(
                shape.extents().map(|e| Value::int(i128::from(e))).collect(),
            )),
            "numel" => Some(Value::int(shape.elements() as i128)),
            "handle" => None,
            "T" => match library::method("trans") {
                Some(trans) => {
                    let given = vec![self.argument(value.clone())];
                    let at = self.range;
                    Some(self.call_value(&trans, given, at)?)
                }
                None => {
                    let message = "`.T` is not supported yet";
                    return Err(self.error(Code::NotYet, message).into());
                }
            },
            name => library::method(name).map(|m| bound(value, m)),
        })
    }
}

/// An attribute of a constant that Python has.
fn constant_attribute<'m>(c: &Const, name: &str) -> Option<Value<'m>> {
    let found = match c {
        Const::Str(_) => library::find_in(Scope::Text, name).map(Value::Builtin),
        c => library::number::attribute(c, name),
    };
    Some(match found? {
        method @ Value::Builtin(_) => bound(&Value::Const(c.clone()), method),
        part => part,
    })
}

/// A function with its first argument.
fn bound<'m>(value: &Value<'m>, callee: Value<'m>) -> Value<'m> {
    Value::Method(value.clone().into(), callee.into())
}

/// Properties of types; those that are functions in Triton are called without arguments.
fn type_attribute<'m>(t: TypeValue, name: &str) -> Option<Value<'m>> {
    let scalar = Value::ty(t.ty);
    let int = |n: u32| Some(Value::int(i128::from(n)));
    let text = |s: String| Some(Value::Const(Const::Str(s.into())));
    match (name, t.ty) {
        ("scalar", _) => Some(scalar),
        ("element_ty", Ty::Ptr { to, .. }) if t.shape.is_none() => Some(Value::ty(Ty::Num(to))),
        ("element_ty", _) if t.shape.is_some() => Some(scalar),
        ("dtype", _) => Some(scalar),
        ("shape", _) => {
            let shape = t.shape?;
            Some(Value::tuple(
                shape.extents().map(|e| Value::int(i128::from(e))).collect(),
            ))
        }
        ("numel", _) => t.shape.map(|s| Value::int(s.elements() as i128)),
        ("nbytes", Ty::Num(d)) => t
            .shape
            .map(|s| Value::int(i128::from(d.bits() / 8) * s.elements() as i128)),
        ("name" | "cache_key_part", ty) => text(super::types::own_name(ty, t.shape)),
        ("address_space", Ty::Ptr { .. }) if t.shape.is_none() => int(1),
        ("const", Ty::Ptr { constant, .. }) if t.shape.is_none() => Some(Value::bool(constant)),
        // Blocks and pointers have no format of their own: ask `.scalar` or `.element_ty`.
        ("primitive_bitwidth", Ty::Num(d)) if t.shape.is_none() => int(d.bits()),
        ("int_bitwidth", Ty::Num(d)) if t.shape.is_none() && d.is_int() => int(d.bits()),
        ("fp_mantissa_width", Ty::Num(d)) if t.shape.is_none() && d.is_float() => {
            int(d.mantissa_bits())
        }
        ("exponent_bias", Ty::Num(d)) if t.shape.is_none() && d.is_float() => {
            int(d.exponent_bias())
        }
        ("itemsize", Ty::Num(d)) if t.shape.is_none() => int(d.bits() / 8),
        (name, _) => {
            library::find_in(Scope::Type, name).map(|m| bound(&Value::Type(t), Value::Builtin(m)))
        }
    }
}

/// Whether a type is what a predicate (`is_floating`) asks for; none if there is no such predicate.
pub(crate) fn type_predicate(t: TypeValue, name: &str) -> Option<bool> {
    let dtype = if t.shape.is_none() {
        t.ty.dtype()
    } else {
        None
    };
    let is = |wanted: DType| Some(dtype == Some(wanted));
    match name {
        "is_floating" => Some(dtype.is_some_and(DType::is_float)),
        "is_int" => Some(dtype.is_some_and(DType::is_int)),
        "is_int_signed" => Some(dtype.is_some_and(|d| d.is_int() && d.is_signed())),
        "is_int_unsigned" => Some(dtype.is_some_and(|d| d.is_int() && !d.is_signed())),
        "is_bool" => Some(dtype.is_some_and(|d| d.kind() == NumberKind::Bool)),
        "is_fp8" => Some(dtype.is_some_and(DType::is_fp8)),
        "is_standard_floating" => Some(dtype.is_some_and(|d| d.is_float() && !d.is_fp8())),
        "is_ptr" => Some(t.ty.is_ptr() && t.shape.is_none()),
        "is_const" => Some(matches!(t.ty, Ty::Ptr { constant: true, .. })),
        "is_block" => Some(t.shape.is_some()),
        "is_fp16" => is(DType::Float16),
        "is_bf16" => is(DType::Bfloat16),
        "is_fp32" => is(DType::Float32),
        "is_fp64" => is(DType::Float64),
        "is_fp8e5" => is(DType::Float8e5),
        "is_fp8e4nv" => is(DType::Float8e4nv),
        "is_fp8e4b15" => is(DType::Float8e4b15),
        "is_fp8e4b8" => is(DType::Float8e4b8),
        "is_fp8e5b16" => is(DType::Float8e5b16),
        "is_int1" => is(DType::Int1),
        "is_int8" => is(DType::Int8),
        "is_int16" => is(DType::Int16),
        "is_int32" => is(DType::Int32),
        "is_int64" => is(DType::Int64),
        "is_uint8" => is(DType::Uint8),
        "is_uint16" => is(DType::Uint16),
        "is_uint32" => is(DType::Uint32),
        "is_uint64" => is(DType::Uint64),
        _ => None,
    }
}

/// The name of the library that a path may have meant, as kernels write it.
pub(crate) fn closest_of_library(path: &str) -> Option<String> {
    let (module, name) = path.rsplit_once('.')?;
    let scope = scope(module)?;
    let types = DType::ALL.iter().map(|dtype| dtype.name());
    let types = types.filter(|_| scope == Scope::Language);
    let found = closest(name, library::names(scope).chain(types))?;
    Some(match scope {
        Scope::Libdevice => format!("libdevice.{found}"),
        Scope::Triton => format!("triton.{found}"),
        Scope::Inductor => format!("triton_helpers.{found}"),
        Scope::Ragged => format!("ragged_tma.{found}"),
        _ => format!("tl.{found}"),
    })
}

/// What a value may have been meant to be that is a path of the library where nothing is.
pub(crate) fn meant_of(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Path(path) => closest_of_library(&path.0),
        _ => None,
    }
}

/// That a function has no such parameter, and which it has that resembles it.
pub(crate) fn no_parameter<'a>(
    function: &str,
    name: &str,
    names: impl Iterator<Item = &'a str>,
) -> String {
    let meant = closest(name, names).map(|other| format!("; {}", did_you_mean(other)));
    format!(
        "`{function}` has no parameter `{name}`{}",
        meant.unwrap_or_default()
    )
}
