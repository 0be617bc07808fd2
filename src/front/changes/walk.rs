//! Goes over the statements of a scope and notes which names share values, and what changes them.

use ruff_python_ast::visitor::{Visitor, walk_pattern, walk_stmt};
use ruff_python_ast::{
    ExceptHandler, Expr, ExprCall, ExprLambda, FStringPart, InterpolatedStringElement, Operator,
    Pattern, Stmt, StmtClassDef, StmtFunctionDef,
};
use ruff_text_size::{Ranged, TextRange, TextSize};
use rustc_hash::{FxHashMap, FxHashSet};

use super::held::{DEEPEST, Held, is_gentle};
use super::scopes::{First, Levels, Place, Scope, captured, imported, is_host};
use super::{Changes, Families};
use crate::front::conditions::branches;
use crate::front::lower::with_stack;
use crate::front::module::{Definition, Index, Unknown, last_name};

/// The state of going over a scope.
pub(super) struct Walk<'i, 'm> {
    pub(super) index: &'i Index<'m>,
    /// The scopes around, outermost first.
    pub(super) around: &'i [&'i Index<'m>],
    pub(super) levels: Levels<'m>,
    /// Functions, classes and `for` of lists around this place.
    pub(super) scopes: Vec<Scope<'m>>,
    families: Families<'m>,
    /// Names that are given another value where the index does not see it, and where that is.
    rebound: FxHashMap<&'m str, TextRange>,
    attributes: FxHashMap<(&'m str, &'m str), TextRange>,
    /// Classes that may give attributes to those which inherit from them.
    hooked: FxHashSet<&'m str>,
    /// Names may be given of which the text says nothing.
    open: bool,
    steps: FxHashMap<&'m str, Vec<(TextSize, &'m Stmt)>>,
    /// The statement of this place.
    at: TextRange,
    /// The name of which the statement is a step.
    step: Option<&'m str>,
    /// The loop of the scope that is around: it is the step of what changes in it.
    run: Option<&'m Stmt>,
    /// How many statements are around that may run several times or not at all.
    unsure: usize,
    /// How many of these the index does not look into.
    unread: usize,
}

impl<'i, 'm> Walk<'i, 'm> {
    pub(super) fn new(index: &'i Index<'m>, around: &'i [&'i Index<'m>]) -> Walk<'i, 'm> {
        Walk {
            index,
            around,
            levels: Levels::default(),
            scopes: Vec::new(),
            families: Families::default(),
            rebound: FxHashMap::default(),
            attributes: FxHashMap::default(),
            hooked: FxHashSet::default(),
            open: false,
            steps: FxHashMap::default(),
            at: TextRange::default(),
            step: None,
            run: None,
            unsure: 0,
            unread: 0,
        }
    }

    /// Goes over the statements; gives whether more can change than was known before.
    pub(super) fn pass(&mut self, body: &'m [Stmt]) -> bool {
        self.families = Families::default();
        self.rebound.clear();
        self.attributes.clear();
        self.hooked.clear();
        self.steps.clear();
        self.levels.grown = false;
        for (name, definition) in &self.index.names {
            if matches!(
                definition,
                Definition::Default(_) | Definition::Unknown(Unknown::Parameter)
            ) {
                self.levels.grow("", name, DEEPEST);
            }
        }
        self.visit_body(body);
        self.levels.grown
    }

    pub(super) fn finish(mut self) -> Changes<'m> {
        let mut unknown = self.rebound;
        let mut in_place = FxHashMap::default();
        for (members, at) in self.families.unknown() {
            for name in members {
                match self.index.names.get(name).copied() {
                    Some(Definition::Class(_)) => {
                        for attr in self.levels.of_class(name) {
                            in_place.entry((name, attr)).or_insert(at);
                        }
                    }
                    Some(definition) if super::is_value(definition) => {
                        unknown.entry(name).or_insert(at);
                    }
                    _ => {}
                }
            }
        }
        Changes {
            unknown,
            steps: self.steps,
            attributes: self.attributes,
            in_place,
            open: self.open,
        }
    }

    /// Notes that a value which has these names is changed.
    pub(super) fn change(&mut self, names: &[&'m str]) {
        let run = self.run.filter(|_| self.scopes.iter().all(Scope::is_for));
        for name in names {
            let is_value = self.definition(name).is_some_and(super::is_value);
            if let Some(run) = run.filter(|_| is_value) {
                self.note_step(name, run);
            }
            let is_step = self.step == Some(*name) || run.is_some() && is_value;
            self.families.events.push((*name, self.at, is_step));
        }
    }

    fn note_step(&mut self, name: &'m str, stmt: &'m Stmt) {
        let steps = self.steps.entry(name).or_default();
        let end = stmt.range().end();
        if steps.last().is_none_or(|(last, _)| *last != end) {
            steps.push((end, stmt));
        }
    }

    /// Notes that a name shares its value with others.
    pub(super) fn relate(&mut self, name: &'m str, others: &[&'m str]) {
        for other in others {
            if *other != name {
                self.families.unite(name, other);
            }
        }
    }

    /// Notes that the function of this place gives a value to whoever calls it.
    pub(super) fn hand_out(&mut self, value: &Held<'m>) {
        if let Some(owner) = self.place_owner() {
            self.relate(owner, value.shared());
        }
    }

    /// The function or class of the scope that this place is in.
    pub(super) fn place_owner(&self) -> Option<&'m str> {
        let scope = self.scopes.iter().find(|scope| !scope.is_for());
        scope.and_then(|scope| scope.owner)
    }

    /// Gives a name a value; `seen` if the index has the definition.
    fn bind_name(&mut self, name: &'m str, value: &Held<'m>, seen: bool) {
        match self.resolve(name) {
            Place::Own(name) => {
                self.levels.grow("", name, value.levels);
                self.relate(name, value.shared());
                if !seen || !self.scopes.is_empty() {
                    self.rebound.entry(name).or_insert(self.at);
                }
            }
            Place::Local(Some(owner), name) => {
                self.levels.grow(owner, name, value.levels);
                self.relate(owner, value.shared());
            }
            Place::Local(None, _) | Place::Given(_) | Place::Outside => {}
        }
    }

    /// Gives a target a value; `seen` if the index has the definitions of its names.
    pub(super) fn bind(&mut self, target: &'m Expr, value: &Held<'m>, seen: bool) {
        match target {
            Expr::Name(name) => self.bind_name(name.id.as_str(), value, seen),
            Expr::Tuple(t) => t
                .elts
                .iter()
                .for_each(|t| self.bind(t, &value.element(), seen)),
            Expr::List(t) => t
                .elts
                .iter()
                .for_each(|t| self.bind(t, &value.element(), seen)),
            // A list of its own, with the same elements.
            Expr::Starred(t) => self.bind(
                &t.value,
                &Held::containing(std::slice::from_ref(value)),
                seen,
            ),
            target => self.store(target, value),
        }
    }

    /// The names by which what a target is given can be reached.
    fn names_of(&mut self, target: &'m Expr) -> Vec<&'m str> {
        match target {
            Expr::Name(name) => match self.resolve(name.id.as_str()) {
                Place::Own(name) | Place::Local(Some(name), _) => vec![name],
                _ => Vec::new(),
            },
            Expr::Tuple(t) => t.elts.iter().flat_map(|t| self.names_of(t)).collect(),
            Expr::List(t) => t.elts.iter().flat_map(|t| self.names_of(t)).collect(),
            Expr::Starred(t) => self.names_of(&t.value),
            target => match self.class_attribute(target) {
                Some((class, _)) => vec![class],
                None => self.held(target).of.to_vec(),
            },
        }
    }

    /// Calls a decorator with what it decorates, the class of that name if it is one; gives whether it is known to leave it as it
    /// is.
    fn decorate(&mut self, decorator: &'m Expr, class: Option<&'m str>) -> bool {
        let function = match decorator {
            Expr::Call(call) => &*call.func,
            other => other,
        };
        let outside = self.outside(function);
        let callee = self.held(decorator);
        match &outside {
            Some(path) => is_gentle(path) || path.ends_with("aggregate"),
            None => {
                if let Some(class) = class {
                    self.relate(class, callee.shared());
                }
                self.change(callee.changeable());
                matches!(last_name(function), Some("aggregate" | "_aggregate"))
            }
        }
    }

    /// Puts a value into an element or an attribute, or takes that away.
    fn store(&mut self, target: &'m Expr, value: &Held<'m>) {
        let base = match target {
            Expr::Subscript(e) => {
                self.held(&e.slice);
                if self.is_module(&e.value) {
                    return self.rebind(Some(&e.slice));
                }
                &*e.value
            }
            Expr::Attribute(e) => {
                if self.is_module(&e.value) {
                    return self.rebind_name(e.attr.as_str());
                }
                &*e.value
            }
            _ => return,
        };
        if self.outside(base).is_some() {
            return;
        }
        if let Some((class, attr)) = self.class_attribute(target) {
            return self.set_attribute(class, attr, value);
        }
        let first = match base {
            Expr::Name(name) => {
                let first = self.scopes.last().and_then(|scope| scope.first);
                first.filter(|(first, _)| *first == name.id.as_str())
            }
            _ => None,
        };
        if let Expr::Attribute(e) = target {
            match first {
                Some((_, First::Made)) => return self.hand_out(value),
                // It is no `constexpr` but an object of a class of the text.
                Some((_, First::Object)) if e.attr.as_str() == "value" => {}
                _ => self.set_attribute_of_any(e.attr.as_str()),
            }
        }
        let object = self.held(base);
        let names = object.of.clone();
        self.change(&names);
        self.put_into(&names, value);
    }

    /// Notes that an attribute is set of what may be a class.
    pub(super) fn set_attribute_of_any(&mut self, attr: &'m str) {
        self.attributes.entry(("", attr)).or_insert(self.at);
    }

    /// The class and its attribute that a target is.
    fn class_attribute(&self, target: &'m Expr) -> Option<(&'m str, &'m str)> {
        let e = target.as_attribute_expr()?;
        Some((self.class(&e.value)?, e.attr.as_str()))
    }

    /// Gives an attribute of a class a value.
    fn set_attribute(&mut self, class: &'m str, attr: &'m str, value: &Held<'m>) {
        self.attributes.entry((class, attr)).or_insert(self.at);
        if value.levels > 0 && !class.is_empty() {
            self.levels.grow(class, attr, value.levels);
            self.levels.grow("", class, (value.levels + 1).min(DEEPEST));
        }
        self.relate(class, value.shared());
    }

    /// Gives names of the module values by a table: those that the key may be.
    pub(super) fn rebind(&mut self, key: Option<&'m Expr>) {
        self.open = true;
        let (start, end) = key.map_or(("", ""), ends_of_text);
        let is_whole = key.is_some_and(Expr::is_string_literal_expr);
        for (name, definition) in &self.index.names {
            let fits = match is_whole {
                true => *name == start,
                false => {
                    let rest = name.strip_prefix(start);
                    rest.is_some_and(|rest| rest.ends_with(end)) && super::is_value(*definition)
                }
            };
            if fits {
                self.rebound.entry(name).or_insert(self.at);
            }
        }
    }

    fn rebind_name(&mut self, name: &str) {
        self.open = true;
        if let Some((name, _)) = self.index.names.get_key_value(name) {
            self.rebound.entry(name).or_insert(self.at);
        }
    }

    /// A call that is about names: of the module, or of an object's attributes. None if it is another.
    pub(super) fn call_about_names(&mut self, e: &'m ExprCall) -> Option<Held<'m>> {
        let args = &e.arguments.args;
        let is_set = |name: &str| matches!(name, "__setattr__" | "__delattr__");
        let python = match &*e.func {
            // Those of `type` and `object`.
            Expr::Attribute(method) if is_set(method.attr.as_str()) => "setattr",
            Expr::Name(name) if matches!(self.resolve(name.id.as_str()), Place::Outside) => {
                name.id.as_str()
            }
            _ => "",
        };
        match (python, &**args) {
            ("setattr" | "delattr", [object, name, rest @ ..]) => {
                let values: Vec<Held<'m>> = rest.iter().map(|value| self.held(value)).collect();
                let value = values.into_iter().next().unwrap_or_default();
                self.held(name);
                if self.is_module(object) {
                    self.rebind(Some(name));
                } else if let Some(class) = self.class(object) {
                    let attr = name.as_string_literal_expr();
                    let attr = attr.map_or("", |attr| attr.value.to_str());
                    self.set_attribute(class, attr, &value);
                } else if self.outside(object).is_none() {
                    let attr = name.as_string_literal_expr();
                    self.set_attribute_of_any(attr.map_or("", |attr| attr.value.to_str()));
                    let names = self.held(object).of;
                    self.change(&names);
                    self.put_into(&names, &value);
                }
                return Some(Held::default());
            }
            ("exec" | "eval", [text, ..]) => match text.as_string_literal_expr() {
                Some(text) => {
                    let is_word = |c: char| c.is_alphanumeric() || c == '_';
                    let text = text.value.to_str();
                    text.split(|c| !is_word(c))
                        .for_each(|word| self.rebind_name(word));
                }
                None if self.scopes.is_empty() => self.rebind(None),
                None => {}
            },
            _ => {}
        }
        if let Expr::Attribute(method) = &*e.func
            && self.is_module(&method.value)
        {
            match (method.attr.as_str(), &**args) {
                ("get" | "keys" | "values" | "items" | "copy", _) => {}
                ("update", given) => {
                    for arg in given {
                        match arg {
                            Expr::Dict(dict) => dict
                                .items
                                .iter()
                                .for_each(|item| self.rebind(item.key.as_ref())),
                            _ => self.rebind(None),
                        }
                    }
                    for keyword in &e.arguments.keywords {
                        match &keyword.arg {
                            Some(name) => self.rebind_name(name.as_str()),
                            None => self.rebind(None),
                        }
                    }
                }
                (_, given) => self.rebind(given.first()),
            }
            e.arguments.args.iter().for_each(|arg| drop(self.held(arg)));
            e.arguments
                .keywords
                .iter()
                .for_each(|keyword| drop(self.held(&keyword.value)));
            return Some(Held::foreign());
        }
        // Whoever is given the table of names may write to it.
        let reads = [
            "len", "list", "dict", "sorted", "print", "set", "hasattr", "getattr",
        ]
        .contains(&python);
        if !reads && args.iter().any(|arg| self.is_module(arg)) {
            self.rebind(None);
        }
        None
    }

    /// A function of one expression.
    pub(super) fn lambda(&mut self, e: &'m ExprLambda) -> Held<'m> {
        let owner = self
            .scopes
            .iter()
            .find(|scope| !scope.is_for())
            .and_then(|scope| scope.owner);
        let scope = Scope::new(owner, e.parameters.as_deref(), &[]);
        let step = self.step.take();
        self.scopes.push(scope);
        let body = with_stack(|| self.held(&e.body));
        self.scopes.pop();
        self.step = step;
        Held::object(body.shared().iter().copied())
    }

    fn function(&mut self, f: &'m StmtFunctionDef) {
        let name = f.name.as_str();
        self.bind_name(name, &Held::default(), self.unread == 0);
        let host = is_host(f);
        let annotations = f.parameters.iter().filter_map(|p| p.annotation());
        for annotation in annotations.chain(f.returns.as_deref()) {
            self.held(annotation);
        }
        f.decorator_list
            .iter()
            .for_each(|d| _ = self.decorate(&d.expression, None));
        let owner = self.owner(name);
        for default in f.parameters.iter().filter_map(|p| p.default()) {
            let value = self.held(default);
            if let Some(owner) = owner {
                self.relate(owner, value.shared());
            }
        }
        if !host {
            return;
        }
        let mut scope = Scope::new(owner, Some(&f.parameters), &f.body);
        let in_class = self.scopes.last().is_some_and(|scope| scope.is_class);
        let first = f.parameters.iter().next().filter(|_| in_class);
        scope.first = first.map(|first| {
            let of_class = f
                .decorator_list
                .iter()
                .any(|d| last_name(&d.expression) == Some("classmethod"));
            let kind = match name {
                "__init__" | "__post_init__" => First::Made,
                "__init_subclass__" => First::Class,
                _ if of_class => First::Class,
                _ => First::Object,
            };
            (first.name().as_str(), kind)
        });
        if let Some(owner) = owner {
            let parameters = f.parameters.iter().map(|p| p.name().as_str());
            parameters.for_each(|name| self.levels.grow(owner, name, DEEPEST));
        }
        self.inside(scope, &f.body);
    }

    fn inside(&mut self, scope: Scope<'m>, body: &'m [Stmt]) {
        let (at, step) = (self.at, self.step.take());
        self.scopes.push(scope);
        with_stack(|| self.visit_body(body));
        self.scopes.pop();
        (self.at, self.step) = (at, step);
    }

    fn class_body(&mut self, c: &'m StmtClassDef) {
        let name = c.name.as_str();
        let owner = self.owner(name);
        let seen = self.unread == 0;
        let mut is_known = true;
        for decorator in &c.decorator_list {
            is_known &= self.decorate(&decorator.expression, owner);
        }
        let mut levels = 0;
        for base in c.bases() {
            let value = self.held(base);
            is_known &= self.is_known_base(base);
            let Some(owner) = owner else { continue };
            self.relate(owner, value.changeable());
            levels = value.levels.max(levels);
            if let Some(base) = self.class(base).filter(|base| !base.is_empty()) {
                self.levels.inherit(owner, base);
            }
        }
        for keyword in c.keywords() {
            let value = self.outside(&keyword.value);
            self.held(&keyword.value);
            is_known &= value.is_some_and(|path| path == "abc.ABCMeta");
        }
        let mut scope = Scope::new(owner, None, &c.body);
        scope.is_class = true;
        let names: Vec<&'m str> = scope.names().collect();
        self.inside(scope, &c.body);
        let Some(owner) = owner else { return };
        let deepest = names.iter().map(|name| self.levels.get(owner, name)).max();
        let own = deepest.filter(|levels| *levels > 0);
        levels = own.map_or(0, |own| (own + 1).min(DEEPEST)).max(levels);
        let value = Held::object([owner]).with_levels(levels);
        self.bind_name(name, &value, seen);
        let makes_others = |stmt: &Stmt| matches!(stmt, Stmt::FunctionDef(f) if f.name.as_str() == "__init_subclass__");
        if !is_known {
            self.attributes.entry((name, "")).or_insert(self.at);
            self.change(&[owner]);
        }
        if !is_known || c.body.iter().any(makes_others) {
            self.hooked.insert(name);
        }
    }

    /// Whether a class that inherits from this has what its own text says, and else what the base has.
    fn is_known_base(&mut self, base: &'m Expr) -> bool {
        let base = match base {
            // Of `typing`.
            Expr::Subscript(e) => &*e.value,
            base => base,
        };
        if let Some(path) = self.outside(base) {
            return is_gentle(&path);
        }
        let Expr::Name(name) = base else { return false };
        match self.resolve(name.id.as_str()) {
            Place::Own(name) => {
                let is_class = matches!(self.definition(name), Some(Definition::Class(_)));
                is_class && !self.hooked.contains(name)
            }
            Place::Outside => true,
            _ => !self.scopes.is_empty(),
        }
    }

    /// A statement whose body may run several times, or not at all.
    fn unsure(&mut self, stmt: &'m Stmt) {
        self.unsure += 1;
        self.unread += 1;
        walk_stmt(self, stmt);
        self.unsure -= 1;
        self.unread -= 1;
    }

    fn statement(&mut self, stmt: &'m Stmt) {
        match stmt {
            Stmt::FunctionDef(f) => self.function(f),
            Stmt::ClassDef(c) => self.class_body(c),
            Stmt::Import(_) | Stmt::ImportFrom(_) => {
                let seen = self.unread == 0;
                imported(stmt)
                    .into_iter()
                    .for_each(|name| self.bind_name(name, &Held::default(), seen));
            }
            Stmt::Assign(s) => {
                let mut value = self.held(&s.value);
                for target in &s.targets {
                    self.bind(target, &value, true);
                    let names = self.names_of(target);
                    value = value.known_by(names);
                }
            }
            Stmt::AnnAssign(s) => {
                self.held(&s.annotation);
                if let Some(value) = &s.value {
                    let value = self.held(value);
                    self.bind(&s.target, &value, true);
                }
            }
            Stmt::AugAssign(s) => {
                let value = self.held(&s.value).element();
                let old = self.held(&s.target);
                let name = s.target.as_name_expr().map(|name| name.id.as_str());
                if self.scopes.is_empty() && self.unsure == 0 {
                    self.step = name.or(self.step);
                }
                // What can change is changed in place; a number is another one then.
                if old.levels > 0 {
                    self.change(&old.of);
                    self.put_into(&old.of, &value);
                }
                match name {
                    Some(name) => self.bind_name(name, &Held::default(), true),
                    None => self.store(&s.target, &value),
                }
            }
            Stmt::Delete(s) => {
                for target in &s.targets {
                    match target {
                        Expr::Name(name) => {
                            self.bind_name(name.id.as_str(), &Held::default(), true)
                        }
                        target => self.store(target, &Held::default()),
                    }
                }
            }
            Stmt::Return(s) => {
                if let Some(value) = &s.value {
                    let value = self.held(value);
                    self.hand_out(&value);
                }
            }
            Stmt::For(s) => {
                let iterated = self.held(&s.iter);
                self.bind(&s.target, &iterated.element(), true);
                self.unsure += 1;
                self.unread += 1;
                self.visit_body(&s.body);
                self.visit_body(&s.orelse);
                self.unsure -= 1;
                self.unread -= 1;
            }
            Stmt::With(s) => {
                for item in &s.items {
                    let context = self.held(&item.context_expr);
                    if let Some(target) = &item.optional_vars {
                        self.bind(target, &Held::foreign(), false);
                        self.hand_on(target, &context);
                    }
                }
                let unsure = usize::from(self.index.breaks_off(stmt));
                self.unsure += unsure;
                self.visit_body(&s.body);
                self.unsure -= unsure;
            }
            Stmt::Try(s) => {
                let unsure = usize::from(self.index.breaks_off(stmt));
                self.unsure += unsure;
                self.visit_body(&s.body);
                self.visit_body(&s.orelse);
                for ExceptHandler::ExceptHandler(handler) in &s.handlers {
                    if let Some(name) = &handler.name {
                        self.bind_name(name.as_str(), &Held::foreign(), false);
                    }
                    // Else it does not run, or nothing does after it.
                    if self.unsure > 0 {
                        self.visit_body(&handler.body);
                    }
                }
                self.unsure -= unsure;
                self.visit_body(&s.finalbody);
            }
            Stmt::If(s) => {
                let clauses = s.elif_else_clauses.iter();
                let tests = clauses.filter_map(|clause| clause.test.as_ref());
                for test in std::iter::once(&*s.test).chain(tests) {
                    self.held(test);
                }
                let (branches, certain, _) = branches(s, &self.index.decided);
                self.unsure += usize::from(!certain);
                for body in branches {
                    self.visit_body(body);
                }
                self.unsure -= usize::from(!certain);
            }
            Stmt::While(_) | Stmt::Match(_) => self.unsure(stmt),
            other => walk_stmt(self, other),
        }
    }

    /// Lets the names of a target share a value with what gave it.
    fn hand_on(&mut self, target: &'m Expr, value: &Held<'m>) {
        let mut names = Vec::new();
        crate::front::loops::target_names(target, &mut names);
        for name in names {
            match self.resolve(name) {
                Place::Own(name) => self.relate(name, value.shared()),
                Place::Local(Some(owner), _) => self.relate(owner, value.shared()),
                _ => {}
            }
        }
    }
}

fn literal(element: Option<&InterpolatedStringElement>) -> &str {
    match element {
        Some(InterpolatedStringElement::Literal(text)) => &text.value,
        _ => "",
    }
}

/// What a text begins and ends with.
fn ends_of_text(text: &Expr) -> (&str, &str) {
    match text {
        Expr::StringLiteral(e) => (e.value.to_str(), e.value.to_str()),
        Expr::BinOp(e) if e.op == Operator::Add => {
            (ends_of_text(&e.left).0, ends_of_text(&e.right).1)
        }
        Expr::FString(e) => {
            let mut parts = e.value.iter();
            match (parts.next(), parts.next()) {
                (Some(FStringPart::FString(f)), None) => {
                    let elements = f.elements.iter().collect::<Vec<_>>();
                    (
                        literal(elements.first().copied()),
                        literal(elements.last().copied()),
                    )
                }
                _ => ("", ""),
            }
        }
        _ => ("", ""),
    }
}

impl<'m> Visitor<'m> for Walk<'_, 'm> {
    fn visit_stmt(&mut self, stmt: &'m Stmt) {
        let outer = (self.at, self.step);
        self.at = stmt.range();
        self.step = None;
        if self.scopes.is_empty()
            && self.unsure == 0
            && let Some(name) = super::step_of(stmt)
            && self
                .definition(name.id.as_str())
                .is_some_and(super::is_value)
        {
            let name = name.id.as_str();
            self.step = Some(name);
            self.note_step(name, stmt);
        }
        let run = self.run;
        if matches!(stmt, Stmt::For(_) | Stmt::While(_))
            && self.scopes.is_empty()
            && self.unsure == 0
        {
            self.run = Some(stmt);
        }
        self.statement(stmt);
        self.run = run;
        (self.at, self.step) = outer;
    }

    fn visit_expr(&mut self, expr: &'m Expr) {
        self.held(expr);
    }

    fn visit_pattern(&mut self, pattern: &'m Pattern) {
        if let Some(name) = captured(pattern) {
            self.bind_name(name, &Held::foreign(), false);
        }
        walk_pattern(self, pattern);
    }
}
