//! The parser of PTX text: module directives, variables, entries and the shape of instructions.
//!
//! Registers and variables are declared before use, so names resolve while parsing; labels resolve
//! when a body is complete. Blocks nest without recursion: a stack of scopes is kept instead.

mod body;

use rustc_hash::FxHashMap;

use self::body::{Body, names_dynamic_shared};
use super::decode;
use super::error::{ParseError, ParseErrorKind, Space};
use super::inst::Op;
use super::lex::{Located, NumberToken, Sources, Token, tokens};
use super::module::{Entry, Literal, Module, Param, Registers, Symbol, Variable};
use super::types::Type;
use crate::limits::EMULATED_VARIABLE_BYTES;

type Result<T> = std::result::Result<T, ParseError>;

pub(super) fn module(text: &str) -> Result<Module> {
    let (tokens, sources) = tokens(text)?;
    let mut parser = Parser {
        tokens,
        sources,
        next: 0,
        module: Module {
            version: (0, 0),
            target: String::new(),
            sm: 0,
            entries: Vec::new(),
            variables: Vec::new(),
        },
        symbols: FxHashMap::default(),
        module_shared: 0,
        dynamic_align: 1,
    };
    while parser.peek() != Token::End {
        parser.top_level()?;
    }
    if parser.module.target.is_empty() {
        return parser.fail("a module starts with `.version` and `.target`");
    }
    Ok(parser.module)
}

struct Parser<'a> {
    tokens: Vec<Located<'a>>,
    /// What `.loc` says, of all entries.
    sources: Sources,
    next: usize,
    module: Module,
    symbols: FxHashMap<&'a str, Symbol>,
    /// Bytes of shared memory that module-level variables take in every entry.
    module_shared: u32,
    /// The largest alignment that an `extern .shared` array asks for.
    dynamic_align: u32,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens[self.next].token
    }

    fn line(&self) -> u32 {
        self.tokens[self.next].line
    }

    fn bump(&mut self) -> Token<'a> {
        let token = self.peek();
        if token != Token::End {
            self.next += 1;
        }
        token
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T> {
        Err(ParseError {
            line: self.line(),
            kind: ParseErrorKind::Syntax(message.into()),
        })
    }

    fn is(&self, punct: u8) -> bool {
        self.peek() == Token::Punct(punct)
    }

    fn eat(&mut self, punct: u8) -> bool {
        let found = self.is(punct);
        if found {
            self.bump();
        }
        found
    }

    fn expect(&mut self, punct: u8) -> Result<()> {
        if self.eat(punct) {
            return Ok(());
        }
        self.fail(format!(
            "expected `{}`, found {}",
            char::from(punct),
            describe(self.peek())
        ))
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.peek() == Token::Word(word);
        if found {
            self.bump();
        }
        found
    }

    fn word(&mut self) -> Result<&'a str> {
        match self.peek() {
            Token::Word(word) => {
                self.bump();
                Ok(word)
            }
            other => self.fail(format!("expected a name, found {}", describe(other))),
        }
    }

    fn integer(&mut self) -> Result<u64> {
        let negative = self.eat(b'-');
        match self.peek() {
            Token::Number(NumberToken::Int(value)) => {
                self.bump();
                Ok(if negative {
                    value.wrapping_neg()
                } else {
                    value
                })
            }
            other => self.fail(format!("expected an integer, found {}", describe(other))),
        }
    }

    fn small(&mut self) -> Result<u32> {
        let value = self.integer()?;
        u32::try_from(value).or_else(|_| self.fail(format!("{value} is too large")))
    }

    /// Skips to behind the `;` that ends a directive.
    fn skip_statement(&mut self) {
        while !matches!(self.bump(), Token::Punct(b';') | Token::End) {}
    }

    /// Skips a balanced pair of braces.
    fn skip_braces(&mut self) -> Result<()> {
        self.expect(b'{')?;
        let mut depth = 1_usize;
        while depth > 0 {
            match self.bump() {
                Token::Punct(b'{') => depth += 1,
                Token::Punct(b'}') => depth -= 1,
                Token::End => return self.fail("`{` is not closed"),
                _ => {}
            }
        }
        Ok(())
    }

    fn top_level(&mut self) -> Result<()> {
        let line = self.line();
        let word = self.word()?;
        match word {
            ".version" => {}
            _ if self.module.version == (0, 0) => {
                self.next -= 1;
                return self.fail("a module starts with `.version`");
            }
            ".target" => {}
            _ if self.module.target.is_empty() => {
                self.next -= 1;
                return self.fail("`.target` follows `.version`");
            }
            _ => {}
        }
        match word {
            ".version" => {
                let version = match self.peek() {
                    Token::Number(NumberToken::Double(version)) => {
                        let tenths = (version * 10.0).round() as u32;
                        (tenths / 10, tenths % 10)
                    }
                    _ => return self.fail("expected a version such as 7.0"),
                };
                if !decode::first_versions::is_version(version) {
                    let (major, minor) = version;
                    return self.fail(format!("there is no PTX {major}.{minor}"));
                }
                self.bump();
                self.module.version = version;
            }
            ".target" => {
                let Token::Word(name) = self.peek() else {
                    return self.fail("expected a target such as sm_80");
                };
                let Some((sm, (major, minor))) = decode::first_versions::target(name) else {
                    return self.fail(format!("unknown target `{name}`"));
                };
                if self.module.version < (major, minor) {
                    return self.fail(format!("target `{name}` needs PTX {major}.{minor}"));
                }
                self.bump();
                self.module.target = name.to_owned();
                self.module.sm = sm;
                while self.eat(b',') {
                    self.word()?;
                }
            }
            ".address_size" => {
                if self.integer()? != 64 {
                    return self.fail("only 64-bit addresses are supported");
                }
            }
            ".visible" | ".weak" | ".extern" | ".common" | ".blocksareclusters" => {
                if self.peek() == Token::Word(".shared") && word == ".extern" {
                    self.bump();
                    self.variable(Space::Shared, true, None)?;
                }
            }
            ".entry" => self.entry()?,
            ".func" => self.skip_function()?,
            ".global" => self.variable(Space::Global, false, None)?,
            ".const" => self.variable(Space::Const, false, None)?,
            ".shared" => self.variable(Space::Shared, false, None)?,
            ".pragma" | ".alias" => self.skip_statement(),
            ".section" => {
                self.word()?;
                self.skip_braces()?;
            }
            _ => {
                return Err(ParseError {
                    line,
                    kind: ParseErrorKind::UnsupportedDirective(word.to_owned()),
                });
            }
        }
        Ok(())
    }

    /// Device functions are not run: their names are known so that calls can be reported.
    fn skip_function(&mut self) -> Result<()> {
        let mut name = None;
        loop {
            match self.peek() {
                Token::Word(word) => {
                    self.bump();
                    if !word.starts_with('.') {
                        name = Some(word);
                    }
                }
                Token::Punct(b'(') => {
                    while !matches!(self.bump(), Token::Punct(b')') | Token::End) {}
                }
                Token::Punct(b'{') => {
                    self.skip_braces()?;
                    break;
                }
                Token::Punct(b';') => {
                    self.bump();
                    break;
                }
                Token::End => return self.fail("unfinished function"),
                _ => {
                    self.bump();
                }
            }
        }
        if let Some(name) = name {
            self.symbols.insert(name, Symbol::Call);
        }
        Ok(())
    }

    fn ty(&mut self) -> Result<Type> {
        let word = self.word()?;
        match word.strip_prefix('.').and_then(Type::parse) {
            Some(ty) => Ok(ty),
            None => {
                self.next -= 1;
                self.fail(format!("`{word}` is not a type"))
            }
        }
    }

    /// The array suffix: the number of elements, or none for `[]`.
    fn dimensions(&mut self) -> Result<Option<u64>> {
        let mut count = Some(1_u64);
        while self.eat(b'[') {
            if self.is(b']') {
                count = None;
            } else {
                let size = self.integer()?;
                count = count.and_then(|count| count.checked_mul(size));
            }
            self.expect(b']')?;
        }
        Ok(count)
    }

    /// A variable declaration behind its state space. Function-level ones go to `body`.
    fn variable(
        &mut self,
        space: Space,
        external: bool,
        mut body: Option<&mut Body<'a>>,
    ) -> Result<()> {
        let mut align = None;
        let mut vector = 1;
        let ty = loop {
            match self.peek() {
                Token::Word(".align") => {
                    self.bump();
                    align = Some(self.alignment()?);
                }
                Token::Word(".v2") => {
                    self.bump();
                    vector = 2;
                }
                Token::Word(".v4") => {
                    self.bump();
                    vector = 4;
                }
                Token::Word(".attribute") => {
                    self.bump();
                    while !matches!(self.bump(), Token::Punct(b')') | Token::End) {}
                }
                _ => break self.ty()?,
            }
        };
        loop {
            let name = self.word()?;
            let count = self.dimensions()?;
            let unit = u64::from(ty.bytes() * vector);
            let align = align.unwrap_or(unit as u32);
            let bytes = match count {
                Some(count) => unit
                    .checked_mul(count)
                    .filter(|&all| all <= EMULATED_VARIABLE_BYTES),
                None if external => Some(0),
                None => None,
            };
            let initial = if self.eat(b'=') {
                Some(self.initialiser(ty)?)
            } else {
                None
            };
            let Some(bytes) = bytes.or(initial.as_ref().map(|data| data.len() as u64)) else {
                return self.fail(format!("`{name}` has no size, or one too large"));
            };
            let symbol = match space {
                Space::Shared if external => {
                    self.dynamic_align = self.dynamic_align.max(align);
                    Symbol::DynamicShared
                }
                Space::Shared => {
                    let used = match &mut body {
                        Some(body) => &mut body.shared,
                        None => &mut self.module_shared,
                    };
                    let offset = used.next_multiple_of(align);
                    *used = offset + bytes as u32;
                    if u64::from(*used) > EMULATED_VARIABLE_BYTES {
                        return self.fail("too much shared memory");
                    }
                    Symbol::Shared(offset)
                }
                Space::Local => {
                    let Some(body) = &mut body else {
                        return self.fail("local variables belong into functions");
                    };
                    let offset = body.local.next_multiple_of(align);
                    body.local = offset + bytes as u32;
                    if u64::from(body.local) > EMULATED_VARIABLE_BYTES {
                        return self.fail("too much local memory");
                    }
                    Symbol::Local(offset)
                }
                Space::Param => Symbol::Call,
                Space::Global | Space::Const | Space::Generic | Space::Cluster => {
                    let mut data = initial.unwrap_or_default();
                    if data.len() as u64 > bytes {
                        return self.fail(format!("too many initial values for `{name}`"));
                    }
                    data.resize(bytes as usize, 0);
                    let name = name.to_owned();
                    self.module.variables.push(Variable { name, bytes: data });
                    Symbol::Variable(self.module.variables.len() as u32 - 1)
                }
            };
            match &mut body {
                Some(body) => body.scope().symbols.insert(name, symbol),
                None => self.symbols.insert(name, symbol),
            };
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b';')
    }

    fn alignment(&mut self) -> Result<u32> {
        let align = self.small()?;
        if !align.is_power_of_two() || align > 1 << 16 {
            return self.fail(format!("{align} is not an alignment"));
        }
        Ok(align)
    }

    /// A number or nested braces of numbers, as bytes.
    fn initialiser(&mut self, ty: Type) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let mut depth = 0_usize;
        loop {
            if self.eat(b'{') {
                depth += 1;
                continue;
            }
            if self.eat(b'}') {
                if depth == 0 {
                    return self.fail("unexpected `}`");
                }
                depth -= 1;
            } else {
                let literal = self.literal()?;
                let Some(bits) = decode::literal_bits(literal, ty) else {
                    return self.fail(format!("this value is not of type .{ty}"));
                };
                out.extend_from_slice(&bits.to_le_bytes()[..ty.bytes().min(8) as usize]);
            }
            while depth > 0 && self.eat(b',') {}
            if depth == 0 {
                return Ok(out);
            }
        }
    }

    fn literal(&mut self) -> Result<Literal> {
        let negative = self.eat(b'-');
        let number = match self.peek() {
            Token::Number(number) => number,
            other => return self.fail(format!("expected a number, found {}", describe(other))),
        };
        self.bump();
        Ok(match (number, negative) {
            (NumberToken::Int(value), false) => Literal::Int(value),
            (NumberToken::Int(value), true) => Literal::Int(value.wrapping_neg()),
            (NumberToken::Single(bits), false) => Literal::Single(bits),
            (NumberToken::Single(bits), true) => Literal::Single(bits ^ 0x8000_0000),
            (NumberToken::Double(value), false) => Literal::Double(value),
            (NumberToken::Double(value), true) => Literal::Double(-value),
        })
    }

    fn params(&mut self) -> Result<Vec<Param>> {
        let mut params = Vec::new();
        let mut end = 0_u32;
        if !self.eat(b'(') {
            return Ok(params);
        }
        while !self.eat(b')') {
            if !self.eat_word(".param") {
                return self.fail(format!(
                    "expected `.param`, found {}",
                    describe(self.peek())
                ));
            }
            let mut align = if self.eat_word(".align") {
                Some(self.alignment()?)
            } else {
                None
            };
            let ty = self.ty()?;
            if self.eat_word(".align") {
                align = Some(self.alignment()?);
            }
            if self.eat_word(".ptr") {
                // What the pointer points to says nothing about the parameter itself.
                while matches!(
                    self.peek(),
                    Token::Word(".global" | ".shared" | ".const" | ".local" | ".generic")
                ) {
                    self.bump();
                }
                if self.eat_word(".align") {
                    self.alignment()?;
                }
            }
            let name = self.word()?.to_owned();
            let count = self.dimensions()?.unwrap_or(0);
            let size = u64::from(ty.bytes()).saturating_mul(count);
            let align = align.unwrap_or(ty.bytes());
            // The limit of PTX 8.1; older ones have 4352.
            if size + u64::from(end) > 32764 {
                return self.fail(format!("parameter `{name}` is too large"));
            }
            let offset = end.next_multiple_of(align);
            end = offset + size as u32;
            params.push(Param {
                name,
                ty,
                size: size as u32,
                align,
                offset,
            });
            if !self.eat(b',') && !self.is(b')') {
                return self.fail("expected `,` or `)`");
            }
        }
        Ok(params)
    }

    /// A number of something that there must be at least one of.
    fn positive(&mut self) -> Result<u32> {
        if self.peek() == Token::Number(NumberToken::Int(0)) {
            return self.fail("expected a number above zero");
        }
        self.small()
    }

    fn shape(&mut self) -> Result<[u32; 3]> {
        let mut shape = [1; 3];
        shape[0] = self.positive()?;
        for size in &mut shape[1..] {
            if !self.eat(b',') {
                break;
            }
            *size = self.positive()?;
        }
        Ok(shape)
    }

    fn entry(&mut self) -> Result<()> {
        let name = match self.peek() {
            Token::Word(name) if self.module.entry(name).is_some() => {
                return self.fail(format!("entry `{name}` is defined twice"));
            }
            _ => self.word()?.to_owned(),
        };
        let first_param = self.next;
        let params = self.params()?;
        let mut names = FxHashMap::default();
        // The names are taken from the tokens again, because the body borrows the text.
        for located in &self.tokens[first_param..self.next] {
            if let Token::Word(word) = located.token
                && let Some(param) = params.iter().find(|param| param.name == word)
            {
                names.insert(word, Symbol::Param(param.offset));
            }
        }
        let (mut reqntid, mut maxntid, mut cluster) = (None, None, None);
        let (mut min_ctas, mut max_registers) = (1, None);
        while !self.is(b'{') {
            match self.word()? {
                ".reqntid" => reqntid = Some(self.shape()?),
                ".maxntid" => maxntid = Some(self.shape()?),
                ".minnctapersm" => min_ctas = self.positive()?,
                ".maxnreg" => max_registers = Some(self.positive()?),
                ".maxnctapersm" | ".maxclusterrank" => {
                    self.positive()?;
                }
                ".reqnctapercluster" => cluster = Some(self.shape()?),
                ".explicitcluster" | ".noreturn" => {}
                ".pragma" => self.skip_statement(),
                other => {
                    return Err(ParseError {
                        line: self.line(),
                        kind: ParseErrorKind::UnsupportedDirective(other.to_owned()),
                    });
                }
            }
        }
        let mut body = Body {
            scopes: Vec::new(),
            registers: Registers::default(),
            params: names,
            labels: FxHashMap::default(),
            parents: Vec::new(),
            code: Vec::new(),
            shared: self.module_shared,
            local: 0,
        };
        let first = self.line();
        self.body(&mut body)?;
        let lines = first..=self.line();
        let sources = self.sources.iter().filter(|(at, _)| lines.contains(at));
        let sources = sources.copied().collect();
        let uses_dynamic_shared = body
            .code
            .iter()
            .any(|raw| raw.operands.iter().any(names_dynamic_shared));
        let dynamic_start = body.shared.next_multiple_of(self.dynamic_align);
        let code = decode::body(
            &body.code,
            &body.labels,
            &body.parents,
            dynamic_start,
            (&self.module.target, self.module.sm, self.module.version),
        )?;
        self.module.entries.push(Entry {
            name,
            params,
            reqntid,
            maxntid,
            cluster,
            min_ctas,
            max_registers,
            static_shared: body.shared,
            uses_dynamic_shared,
            dynamic_start,
            local_bytes: body.local,
            registers: body.registers,
            has_products: code
                .iter()
                .any(|inst| matches!(inst.op, Op::GroupProduct(_))),
            waits_for_cluster: code
                .iter()
                .any(|inst| matches!(inst.op, Op::ClusterWait { .. } | Op::ClusterArrive { .. })),
            moves_registers: code
                .iter()
                .any(|inst| matches!(inst.op, Op::Registers { .. })),
            sources,
            code,
        });
        Ok(())
    }
}

fn describe(token: Token<'_>) -> String {
    match token {
        Token::Word(word) => format!("`{word}`"),
        Token::Number(_) => "a number".to_owned(),
        Token::Text(_) => "a string".to_owned(),
        Token::Punct(punct) => format!("`{}`", char::from(punct)),
        Token::End => "the end of the text".to_owned(),
    }
}
