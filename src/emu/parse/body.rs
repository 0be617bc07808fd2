//! The parser of bodies: blocks, registers, labels and instructions.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Parser, Result, describe};
use crate::emu::error::{ParseError, ParseErrorKind, Space};
use crate::emu::inst::Special;
use crate::emu::lex::Token;
use crate::emu::module::{Literal, Operand, Raw, Register, Registers, Symbol};
use crate::emu::types::Type;
use crate::limits::EMULATED_NESTING;

/// The names declared in one pair of braces.
#[derive(Default)]
pub(super) struct Scope<'a> {
    id: u32,
    /// Plain names.
    registers: FxHashMap<&'a str, Register>,
    /// Prefixes of numbered names, with the count.
    ranges: FxHashMap<&'a str, (Register, u32)>,
    pub(super) symbols: FxHashMap<&'a str, Symbol>,
}

/// The body being parsed.
pub(super) struct Body<'a> {
    pub(super) scopes: Vec<Scope<'a>>,
    pub(super) registers: Registers,
    pub(super) params: FxHashMap<&'a str, Symbol>,
    pub(super) labels: FxHashMap<(u32, &'a str), u32>,
    pub(super) parents: Vec<u32>,
    pub(super) code: Vec<Raw<'a>>,
    pub(super) shared: u32,
    pub(super) local: u32,
}

impl<'a> Parser<'a> {
    pub(super) fn body(&mut self, body: &mut Body<'a>) -> Result<()> {
        loop {
            let line = self.line();
            match self.peek() {
                Token::Punct(b'{') => {
                    self.bump();
                    if body.scopes.len() >= EMULATED_NESTING {
                        return self.fail("blocks nest too deeply");
                    }
                    let id = body.parents.len() as u32;
                    let parent = body.scopes.last().map_or(0, |scope| scope.id);
                    body.parents.push(parent);
                    body.scopes.push(Scope {
                        id,
                        ..Scope::default()
                    });
                }
                Token::Punct(b'}') => {
                    self.bump();
                    body.scopes.pop();
                    if body.scopes.is_empty() {
                        return Ok(());
                    }
                }
                Token::Punct(b';') => {
                    self.bump();
                }
                Token::Punct(b'@') => self.instruction(body)?,
                Token::Word(word) if word.starts_with('.') => {
                    self.bump();
                    match word {
                        ".reg" => self.registers(body)?,
                        ".shared" => self.variable(Space::Shared, false, Some(body))?,
                        ".local" => self.variable(Space::Local, false, Some(body))?,
                        ".param" => self.variable(Space::Param, false, Some(body))?,
                        ".global" => self.variable(Space::Global, false, Some(body))?,
                        ".const" => self.variable(Space::Const, false, Some(body))?,
                        ".pragma" => self.skip_statement(),
                        _ => {
                            return Err(ParseError {
                                line,
                                kind: ParseErrorKind::UnsupportedDirective(word.to_owned()),
                            });
                        }
                    }
                }
                Token::Word(word) => {
                    let is_label = self
                        .tokens
                        .get(self.next + 1)
                        .is_some_and(|next| next.token == Token::Punct(b':'));
                    if is_label {
                        self.next += 2;
                        let scope = body.scope().id;
                        if body
                            .labels
                            .insert((scope, word), body.code.len() as u32)
                            .is_some()
                        {
                            return self.fail(format!("label `{word}` is defined twice"));
                        }
                        // A table of branch targets is data that belongs to the label.
                        if matches!(
                            self.peek(),
                            Token::Word(".branchtargets" | ".callprototype" | ".calltargets")
                        ) {
                            self.skip_statement();
                        }
                    } else {
                        self.instruction(body)?;
                    }
                }
                other => {
                    return self.fail(format!(
                        "expected an instruction, found {}",
                        describe(other)
                    ));
                }
            }
        }
    }

    fn registers(&mut self, body: &mut Body<'a>) -> Result<()> {
        let ty = self.ty()?;
        loop {
            let name = self.word()?;
            let count = if self.eat(b'<') {
                let count = self.small()?;
                self.expect(b'>')?;
                Some(count)
            } else {
                None
            };
            let Some(index) = body.registers.declare(name, count, ty) else {
                return self.fail("too many registers");
            };
            let register = Register { index, ty };
            match count {
                Some(count) => {
                    body.scope().ranges.insert(name, (register, count));
                }
                None => {
                    body.scope().registers.insert(name, register);
                }
            }
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b';')
    }

    fn instruction(&mut self, body: &mut Body<'a>) -> Result<()> {
        let line = self.line();
        let guard = if self.eat(b'@') {
            let negated = self.eat(b'!');
            let name = self.word()?;
            match body.register(name) {
                Some(register) if register.ty == Type::PRED => Some((register, negated)),
                Some(_) => return self.fail(format!("`{name}` is not a predicate")),
                None => {
                    return Err(ParseError {
                        line,
                        kind: ParseErrorKind::Undeclared(name.to_owned()),
                    });
                }
            }
        } else {
            None
        };
        let line = self.line();
        let opcode = self.word()?;
        let mut operands = SmallVec::new();
        if !self.is(b';') {
            loop {
                operands.push(self.operand(body, 0)?);
                if !self.eat(b',') {
                    break;
                }
            }
        }
        self.expect(b';')?;
        let scope = body.scope().id;
        body.code.push(Raw {
            line,
            guard,
            opcode,
            operands,
            scope,
        });
        Ok(())
    }

    fn operand(&mut self, body: &Body<'a>, depth: usize) -> Result<Operand<'a>> {
        if depth > 4 {
            return self.fail("operands nest too deeply");
        }
        match self.peek() {
            Token::Punct(b'[') => {
                self.bump();
                let mut base = self.operand(body, depth + 1)?;
                let mut offset = 0_i64;
                while self.is(b'+') || self.is(b'-') {
                    // `+` stands before a signed number; `-` is that number's sign.
                    self.eat(b'+');
                    offset = offset.wrapping_add(self.integer()? as i64);
                }
                let coordinates = match self.eat(b',') {
                    true => Some(self.operand(body, depth + 1)?),
                    false => None,
                };
                self.expect(b']')?;
                if let Operand::Symbol(symbol, more) = base {
                    base = Operand::Symbol(symbol, 0);
                    offset = offset.wrapping_add(more);
                }
                let base = Box::new(base);
                Ok(match coordinates {
                    None => Operand::Address { base, offset },
                    Some(coordinates) => Operand::Tensor {
                        map: Box::new(Operand::Address { base, offset }),
                        coordinates: Box::new(coordinates),
                    },
                })
            }
            Token::Punct(open @ (b'{' | b'(')) => {
                self.bump();
                let close = if open == b'{' { b'}' } else { b')' };
                let mut elements = Vec::new();
                while !self.eat(close) {
                    elements.push(self.operand(body, depth + 1)?);
                    if !self.eat(b',') && !self.is(close) {
                        return self.fail("expected `,` or the end of the vector");
                    }
                }
                // A vector of one is its element, as in `ld.global.b32 {%r1}, [%rd1]`.
                if open == b'{' && elements.len() == 1 {
                    return Ok(elements.remove(0));
                }
                Ok(Operand::Vector(elements))
            }
            Token::Punct(b'!') => {
                self.bump();
                match self.operand(body, depth + 1)? {
                    Operand::Register(register) => Ok(Operand::Not(register)),
                    _ => self.fail("`!` wants a predicate"),
                }
            }
            Token::Punct(b'-') | Token::Number(_) => Ok(Operand::Literal(self.literal()?)),
            Token::Word(word) => {
                let line = self.line();
                self.bump();
                let operand = body
                    .resolve(word, &self.symbols)
                    .ok_or_else(|| ParseError {
                        line,
                        kind: ParseErrorKind::Undeclared(word.to_owned()),
                    })?;
                if self.eat(b'|') {
                    let second = self.operand(body, depth + 1)?;
                    return Ok(Operand::Pair(Box::new(operand), Box::new(second)));
                }
                if let Operand::Symbol(symbol, _) = operand
                    && self.eat(b'+')
                {
                    return Ok(Operand::Symbol(symbol, self.integer()? as i64));
                }
                Ok(operand)
            }
            other => self.fail(format!("expected an operand, found {}", describe(other))),
        }
    }
}

pub(super) fn names_dynamic_shared(operand: &Operand<'_>) -> bool {
    match operand {
        Operand::Symbol(symbol, _) => *symbol == Symbol::DynamicShared,
        Operand::Address { base, .. } => names_dynamic_shared(base),
        Operand::Vector(elements) => elements.iter().any(names_dynamic_shared),
        _ => false,
    }
}

impl<'a> Body<'a> {
    pub(super) fn scope(&mut self) -> &mut Scope<'a> {
        self.scopes
            .last_mut()
            .expect("a body is parsed inside its braces")
    }

    fn register(&self, name: &str) -> Option<Register> {
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        for scope in self.scopes.iter().rev() {
            if let Some(&register) = scope.registers.get(name) {
                return Some(register);
            }
            // A prefix may end in digits itself: `%r1<4>` declares `%r10`.
            for split in name.len() - digits..name.len() {
                let (prefix, number) = name.split_at(split);
                if number.len() > 1 && number.starts_with('0') {
                    continue;
                }
                if let Some(&(first, count)) = scope.ranges.get(prefix)
                    && let Ok(number) = number.parse::<u32>()
                    && number < count
                {
                    return Some(Register {
                        index: first.index + number,
                        ..first
                    });
                }
            }
        }
        None
    }

    fn resolve(&self, name: &'a str, module: &FxHashMap<&'a str, Symbol>) -> Option<Operand<'a>> {
        if name == "_" {
            return Some(Operand::Sink);
        }
        if let Some(register) = self.register(name) {
            return Some(Operand::Register(register));
        }
        let local = self
            .scopes
            .iter()
            .rev()
            .find_map(|scope| scope.symbols.get(name));
        if let Some(&symbol) = local.or(self.params.get(name)).or(module.get(name)) {
            return Some(Operand::Symbol(symbol, 0));
        }
        if name == "WARP_SZ" {
            return Some(Operand::Literal(Literal::Int(32)));
        }
        if name.starts_with('%') {
            return Special::parse(name).map(Operand::Special);
        }
        Some(Operand::Label(name))
    }
}
