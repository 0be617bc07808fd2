//! Which names an expression's value may be known by.

use ruff_python_ast::visitor::walk_expr;
use ruff_python_ast::{Comprehension, Expr, ExprCall};
use smallvec::SmallVec;

use super::scopes::Place;
use super::walk::Walk;
use crate::front::module::{Definition, STANDARD, decoration};

/// Levels of which nothing is known: an object of the host, what a function returns.
pub(super) const DEEPEST: u8 = 3;

/// Functions of Python that leave their arguments alone and give numbers and texts.
const GIVE_NUMBERS: &str = "\
    len str repr int float bool abs round any all isinstance issubclass hasattr print range id \
    hash ord chr format callable pow divmod globals locals";

/// Functions of Python that put the elements of their arguments into something new.
const COPY: &str = "list tuple set dict frozenset sorted enumerate zip sum map filter";

/// Functions of Python that give one of their arguments, or of its elements or attributes.
const HAND_ON: &str = "min max next iter getattr reversed type vars super";

/// Functions of Python that give names other values, which are followed where they are called.
const GIVE_NAMES: &str = "globals locals vars exec eval setattr delattr __import__ __builtins__";

/// Attributes by which the names of a module can be reached.
const TABLES_OF_NAMES: &str = "__globals__ f_globals f_locals f_builtins __builtins__";

/// Methods that leave their object alone.
const READ: &str = "\
    get keys values items copy index count join split format startswith endswith lower upper \
    strip replace union intersection difference issubset issuperset _asdict item tolist";

/// Modules beside those of Python whose functions leave their arguments alone.
const GENTLE: &str = "triton torch numpy pytest";

/// Whether what a path of the outside leads to leaves what it is given alone.
pub(super) fn is_gentle(path: &str) -> bool {
    let first = path.split('.').next().unwrap_or(path);
    is_one_of(GENTLE, first) || is_one_of(STANDARD, first)
}

/// Whether a name stands in a list.
fn is_one_of(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|word| word == name)
}

/// What is known of a value.
#[derive(Clone, Debug, Default)]
pub(super) struct Held<'m> {
    /// How many levels of it can change: none of a number, one of a list of numbers.
    pub(super) levels: u8,
    /// The outermost level has no other name.
    fresh: bool,
    /// It is what a name stands for, whatever that is.
    named: bool,
    /// Names that it may be known by, or the levels within it.
    pub(super) of: SmallVec<[&'m str; 2]>,
}

impl<'m> Held<'m> {
    /// What can change in any way, and is known by no name of the scope.
    pub(super) fn foreign() -> Held<'m> {
        Held {
            levels: DEEPEST,
            ..Held::default()
        }
    }

    /// The same, of which as many levels can change.
    pub(super) fn with_levels(self, levels: u8) -> Held<'m> {
        Held { levels, ..self }
    }

    /// The same, known by these names.
    pub(super) fn object(of: impl IntoIterator<Item = &'m str>) -> Held<'m> {
        Held {
            of: of.into_iter().collect(),
            ..Held::foreign()
        }
    }

    /// The names that share it with whoever is given it.
    pub(super) fn shared(&self) -> &[&'m str] {
        match self.named || self.levels > u8::from(self.fresh) {
            true => &self.of,
            false => &[],
        }
    }

    /// The same, which these names have now.
    pub(super) fn known_by(mut self, names: Vec<&'m str>) -> Held<'m> {
        self.fresh &= names.is_empty();
        self.of.extend(names);
        self
    }

    /// The names that share what can change of it.
    pub(super) fn changeable(&self) -> &[&'m str] {
        match self.levels > u8::from(self.fresh) {
            true => &self.of,
            false => &[],
        }
    }

    /// One of its elements.
    pub(super) fn element(&self) -> Held<'m> {
        let levels = match self.levels {
            DEEPEST => DEEPEST,
            levels => levels.saturating_sub(1),
        };
        Held {
            levels,
            fresh: false,
            named: false,
            of: self.of.clone(),
        }
    }

    /// The same elements in something new.
    fn copied(mut self) -> Held<'m> {
        (self.fresh, self.named) = (true, false);
        self
    }

    fn or(mut self, other: Held<'m>) -> Held<'m> {
        self.levels = self.levels.max(other.levels);
        self.fresh &= other.fresh;
        self.named |= other.named;
        self.of.extend(other.of);
        self
    }

    /// Something new with these parts.
    pub(super) fn containing(parts: &[Held<'m>]) -> Held<'m> {
        let deepest = parts.iter().map(|part| part.levels).max().unwrap_or(0);
        let of = parts
            .iter()
            .flat_map(|part| part.changeable().iter().copied());
        Held {
            levels: (deepest + 1).min(DEEPEST),
            fresh: true,
            named: false,
            of: of.collect(),
        }
    }
}

impl<'m> Walk<'_, 'm> {
    /// What is known of an expression's value; what the expression changes is noted.
    pub(super) fn held(&mut self, expr: &'m Expr) -> Held<'m> {
        match expr {
            Expr::Name(name) => self.name(name.id.as_str()),
            Expr::Tuple(e) => {
                let parts = self.parts(&e.elts);
                match parts.iter().any(|part| part.levels > 0) {
                    true => Held::containing(&parts),
                    // A tuple of what cannot change cannot either.
                    false => Held::default(),
                }
            }
            Expr::List(e) => Held::containing(&self.parts(&e.elts)),
            Expr::Set(e) => Held::containing(&self.parts(&e.elts)),
            Expr::Dict(e) => {
                let mut parts = Vec::new();
                for item in &e.items {
                    let value = self.held(&item.value);
                    match &item.key {
                        Some(key) => {
                            self.held(key);
                            parts.push(value);
                        }
                        None => parts.push(value.element()),
                    }
                }
                Held::containing(&parts)
            }
            Expr::ListComp(e) => self.made_of(&e.generators, &[&e.elt]),
            Expr::SetComp(e) => self.made_of(&e.generators, &[&e.elt]),
            Expr::Generator(e) => self.made_of(&e.generators, &[&e.elt]),
            Expr::DictComp(e) => {
                let key = e.key.as_deref();
                let parts: Vec<&'m Expr> = key.into_iter().chain([&*e.value]).collect();
                self.made_of(&e.generators, &parts)
            }
            Expr::BinOp(e) => {
                let (a, b) = (self.held(&e.left), self.held(&e.right));
                let is_number = |e: &Expr| e.is_number_literal_expr();
                let repeats = e.op == ruff_python_ast::Operator::Mult;
                match (is_number(&e.left) || is_number(&e.right)) && !repeats {
                    true => Held::default(),
                    false => a.or(b).copied(),
                }
            }
            Expr::BoolOp(e) => {
                let parts: Vec<Held<'m>> = e.values.iter().map(|part| self.held(part)).collect();
                parts.into_iter().reduce(Held::or).unwrap_or_default()
            }
            Expr::If(e) => {
                self.held(&e.test);
                let (a, b) = (self.held(&e.body), self.held(&e.orelse));
                a.or(b)
            }
            Expr::Named(e) => {
                let value = self.held(&e.value);
                self.bind(&e.target, &value, false);
                value
            }
            Expr::Lambda(e) => self.lambda(e),
            Expr::Starred(e) => self.held(&e.value).element(),
            Expr::Subscript(e) => {
                let value = self.held(&e.value);
                self.held(&e.slice);
                match &*e.slice {
                    Expr::Slice(_) => value.copied(),
                    _ => value.element(),
                }
            }
            Expr::Attribute(e) => {
                if self.outside(expr).is_some() {
                    return Held::default();
                }
                let attr = e.attr.as_str();
                if is_one_of(TABLES_OF_NAMES, attr) {
                    self.rebind(None);
                }
                if let Some(class) = self.class(&e.value).filter(|class| !class.is_empty()) {
                    let levels = self.levels.get(class, attr);
                    return Held {
                        levels,
                        of: [class].into_iter().collect(),
                        ..Held::default()
                    };
                }
                let value = self.held(&e.value);
                Held {
                    named: false,
                    ..value
                }
            }
            Expr::Call(e) => self.call(e),
            Expr::Yield(e) => {
                if let Some(value) = &e.value {
                    let value = self.held(value);
                    self.hand_out(&value);
                }
                Held::foreign()
            }
            Expr::YieldFrom(e) => {
                let value = self.held(&e.value);
                self.hand_out(&value);
                Held::foreign()
            }
            Expr::Await(e) => self.held(&e.value),
            other => {
                walk_expr(self, other);
                Held::default()
            }
        }
    }

    fn parts(&mut self, exprs: &'m [Expr]) -> Vec<Held<'m>> {
        exprs.iter().map(|part| self.held(part)).collect()
    }

    fn name(&mut self, name: &'m str) -> Held<'m> {
        match self.resolve(name) {
            Place::Given(held) => held,
            Place::Local(Some(owner), name) => Held {
                levels: self.levels.get(owner, name),
                of: [owner].into_iter().collect(),
                ..Held::default()
            },
            Place::Local(None, _) => Held::foreign(),
            Place::Own(name) => {
                let levels = match self.definition(name) {
                    Some(Definition::Module(_) | Definition::Member(..)) => return Held::default(),
                    Some(Definition::Function(f)) if decoration(f).jit => return Held::default(),
                    Some(Definition::Function(_)) => 0,
                    _ => self.levels.get("", name),
                };
                Held {
                    levels,
                    named: true,
                    of: [name].into_iter().collect(),
                    fresh: false,
                }
            }
            Place::Outside => {
                // Called by another name it is not seen what it does.
                if is_one_of(GIVE_NAMES, name) {
                    self.rebind(None);
                    self.set_attribute_of_any("");
                }
                Held::default()
            }
        }
    }

    fn made_of(&mut self, generators: &'m [Comprehension], parts: &[&'m Expr]) -> Held<'m> {
        let depth = self.scopes.len();
        for generator in generators {
            let iterated = self.held(&generator.iter);
            self.scopes.push(super::scopes::Scope::elements(
                &generator.target,
                &iterated.element(),
            ));
            generator.ifs.iter().for_each(|test| drop(self.held(test)));
        }
        let parts: Vec<Held<'m>> = parts.iter().map(|part| self.held(part)).collect();
        self.scopes.truncate(depth);
        Held::containing(&parts)
    }

    fn call(&mut self, e: &'m ExprCall) -> Held<'m> {
        if let Some(held) = self.call_about_names(e) {
            return held;
        }
        let args = self.parts(&e.arguments.args);
        let keywords = e.arguments.keywords.iter();
        let keywords = keywords.map(|keyword| {
            let value = self.held(&keyword.value);
            // Of a table that is taken apart the values are given.
            if keyword.arg.is_some() {
                value
            } else {
                value.element()
            }
        });
        let args: Vec<Held<'m>> = args.into_iter().chain(keywords).collect();
        if let Some(path) = self.outside(&e.func) {
            return self.call_outside(&path, args);
        }
        match &*e.func {
            Expr::Name(callee) => match self.resolve(callee.id.as_str()) {
                Place::Own(name) => match self.definition(name) {
                    Some(Definition::Function(f)) if decoration(f).jit => Held::default(),
                    Some(Definition::Function(_) | Definition::Class(_)) => {
                        args.iter()
                            .for_each(|arg| self.relate(name, arg.changeable()));
                        Held::object([name])
                    }
                    _ => {
                        let callee = self.name(name);
                        self.call_unknown(callee, args)
                    }
                },
                Place::Outside => self.call_python(callee.id.as_str(), e, args),
                Place::Local(..) => {
                    let callee = self.name(callee.id.as_str());
                    self.call_unknown(callee, args)
                }
                Place::Given(held) => self.call_unknown(held, args),
            },
            Expr::Attribute(method) => {
                if let Some(class) = self.class(&method.value).filter(|class| !class.is_empty()) {
                    args.iter()
                        .for_each(|arg| self.relate(class, arg.changeable()));
                    return Held::object([class]);
                }
                if let Expr::Name(name) = &*method.value
                    && matches!(self.resolve(name.id.as_str()), Place::Outside)
                {
                    return self.call_unknown(Held::foreign(), args);
                }
                let object = self.held(&method.value);
                self.call_method(method.attr.as_str(), object, args, e.arguments.args.len())
            }
            callee => {
                let root = super::root_of_elements(callee).map(|name| name.id.as_str());
                let launched = root.is_some_and(|name| self.is_jit(name));
                let callee = self.held(callee);
                match launched {
                    true => Held::default(),
                    false => self.call_unknown(callee, args),
                }
            }
        }
    }

    /// A function of which nothing is known: it may change what it is given, and keep it.
    fn call_unknown(&mut self, callee: Held<'m>, args: Vec<Held<'m>>) -> Held<'m> {
        // It may be a method of what changes.
        self.change(callee.changeable());
        args.iter().for_each(|arg| self.change(arg.changeable()));
        let of = args.into_iter().flat_map(|arg| arg.of);
        Held::object(callee.of.into_iter().chain(of))
    }

    /// A function of another file.
    fn call_outside(&mut self, path: &str, args: Vec<Held<'m>>) -> Held<'m> {
        let first = path.split('.').next().unwrap_or(path);
        let last = path.rsplit('.').next().unwrap_or(path);
        let of_library = path.contains("triton.language") || matches!(last, "constexpr" | "Config");
        if !of_library && (!is_gentle(path) || matches!(first, "functools" | "operator")) {
            return self.call_unknown(Held::foreign(), args);
        }
        let held = args.into_iter().reduce(Held::or).unwrap_or_default();
        let is_class = last.starts_with(|c: char| c.is_ascii_uppercase());
        Held {
            levels: if is_class { DEEPEST } else { held.levels },
            named: false,
            ..held
        }
    }

    /// A function of Python, or one that nothing in the file defines.
    fn call_python(&mut self, name: &'m str, e: &ExprCall, args: Vec<Held<'m>>) -> Held<'m> {
        if is_one_of(GIVE_NUMBERS, name) || self.is_jit(name) {
            return Held::default();
        }
        if !is_one_of(COPY, name) && !is_one_of(HAND_ON, name) {
            return self.call_unknown(Held::foreign(), args);
        }
        // Functions that are called with the elements are Python's own, or they may change them.
        let own = |f: &Expr| {
            f.as_name_expr()
                .is_some_and(|f| is_one_of(GIVE_NUMBERS, f.id.as_str()))
        };
        let by_function = match name {
            "map" | "filter" => e.arguments.args.first().is_some_and(|f| !own(f)),
            _ => e
                .arguments
                .keywords
                .iter()
                .any(|k| k.arg.as_deref() == Some("key") && !own(&k.value)),
        };
        if by_function {
            let by_position = e.arguments.args.len();
            for (i, arg) in args.iter().enumerate() {
                let is_function = match i.checked_sub(by_position) {
                    None => i == 0 && matches!(name, "map" | "filter"),
                    Some(i) => e.arguments.keywords[i].arg.as_deref() == Some("key"),
                };
                match is_function {
                    true => self.change(arg.changeable()),
                    false => self.change(arg.element().changeable()),
                }
            }
        }
        let named = args.iter().any(|arg| arg.named);
        let held = match name {
            "super" => Held::object(self.place_owner()),
            _ => args.into_iter().reduce(Held::or).unwrap_or_default(),
        };
        let paired = matches!(name, "enumerate" | "zip" | "dict");
        let levels = (held.levels + u8::from(paired && held.levels > 0)).min(DEEPEST);
        let levels = match name {
            "list" | "set" | "dict" | "sorted" => levels.max(1),
            _ => levels,
        };
        match is_one_of(COPY, name) {
            true => Held {
                levels,
                ..held.copied()
            },
            false => Held {
                levels,
                named,
                ..held
            },
        }
    }

    /// A method of an object, with arguments of which as many are given by position.
    fn call_method(
        &mut self,
        name: &str,
        object: Held<'m>,
        args: Vec<Held<'m>>,
        positional: usize,
    ) -> Held<'m> {
        if is_one_of(READ, name) {
            return match name {
                "get" => args.into_iter().fold(object.element(), Held::or),
                "values" | "copy" | "union" | "intersection" | "difference" => object.copied(),
                "items" => {
                    let levels = (object.levels + u8::from(object.levels > 0)).min(DEEPEST);
                    Held {
                        levels,
                        ..object.copied()
                    }
                }
                _ => Held::default(),
            };
        }
        let changed: SmallVec<[&'m str; 2]> = object.changeable().into();
        self.change(&changed);
        // These take what is given apart.
        let apart = matches!(name, "extend" | "update");
        for (i, arg) in args.iter().enumerate() {
            match apart && i < positional {
                true => self.put_into(&changed, &arg.element()),
                false => self.put_into(&changed, arg),
            }
        }
        match name {
            "pop" | "popitem" | "setdefault" => args.into_iter().fold(object.element(), Held::or),
            _ if object.levels == 0 => Held::default(),
            _ => Held::object(
                object
                    .of
                    .into_iter()
                    .chain(args.into_iter().flat_map(|arg| arg.of)),
            ),
        }
    }

    /// Makes something a part of what has these names.
    pub(super) fn put_into(&mut self, names: &[&'m str], part: &Held<'m>) {
        for name in names {
            if self.definition(name).is_some_and(super::is_value) {
                self.levels.grow("", name, (part.levels + 1).min(DEEPEST));
            }
            self.relate(name, part.changeable());
        }
    }
}
