//! Tokens to syntax tree, by recursive descent. The depth of recursion is that of regions, bounded by
//! [`MAX_NESTING`].

use super::ast::{
    At, RawAttr, RawBlock, RawExtent, RawFunction, RawInst, RawLayout, RawLiteral, RawMap,
    RawParam, RawPartition, RawSlot, RawTarget, RawType,
};
use super::closest::did_you_mean_format;
use super::lexer::{Token, TokenKind, unquote};
use super::parse::{Code, MAX_ERRORS, MAX_NESTING, ParseError, Pos};
use super::quote::quoted;
use crate::ir::level::{Level, Thread, Tile};
use crate::ir::types::{AddressSpace, Elem, Scalar};
use crate::linear_layout::shape::Shape;

type Result<T> = std::result::Result<T, ParseError>;

/// Reads all functions; mistakes go to `errors` and mark the function they stand in as broken.
pub(crate) fn parse<'a>(
    text: &'a str,
    tokens: &[Token<'a>],
    errors: &mut Vec<ParseError>,
) -> Vec<RawFunction<'a>> {
    let mut parser = Parser {
        text,
        tokens,
        at: 0,
        errors,
    };
    let mut functions = Vec::new();
    while parser.peek().kind != TokenKind::End && parser.errors.len() < MAX_ERRORS {
        match parser.function() {
            Ok(func) => functions.push(func),
            Err(error) => {
                parser.errors.push(error);
                parser.skip_to_function();
            }
        }
    }
    functions
}

struct Parser<'t, 'a> {
    text: &'a str,
    /// Ended by [`TokenKind::End`], which is never passed.
    tokens: &'t [Token<'a>],
    at: usize,
    errors: &'t mut Vec<ParseError>,
}

/// The number of an entity with this prefix: 12 for `v12`.
fn entity_number(word: &str, prefix: &str) -> Option<u32> {
    let digits = word.strip_prefix(prefix)?;
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

impl<'a> Parser<'_, 'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens[self.at]
    }

    fn peek_after(&self) -> Token<'a> {
        let last = self.tokens.len() - 1;
        self.tokens[(self.at + 1).min(last)]
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }

    /// The line of the token before the next one.
    fn last_line(&self) -> u32 {
        self.tokens[self.at.saturating_sub(1)].pos.line
    }

    fn on_same_line(&self) -> bool {
        let token = self.peek();
        token.kind != TokenKind::End && token.pos.line == self.last_line()
    }

    fn is_punct(&self, c: char) -> bool {
        self.peek().kind == TokenKind::Punct(c)
    }

    fn is_word(&self, word: &str) -> bool {
        let token = self.peek();
        token.kind == TokenKind::Word && token.text == word
    }

    fn accept(&mut self, c: char) -> bool {
        let found = self.is_punct(c);
        if found {
            self.next();
        }
        found
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.next();
        }
        found
    }

    fn unexpected<T>(&self, expected: &str) -> Result<T> {
        let token = self.peek();
        let found = match token.kind {
            TokenKind::End => "the end of the text".to_owned(),
            _ => format!("`{}`", quoted(token.text)),
        };
        let message = format!("expected {expected}, found {found}");
        Err(ParseError::new(Code::Syntax, token.pos, message))
    }

    /// As [`Parser::unexpected`], at the end of the line before where the next token is on another.
    fn unexpected_here<T>(&self, expected: &str) -> Result<T> {
        if self.on_same_line() || self.at == 0 {
            return self.unexpected(expected);
        }
        let last = self.tokens[self.at - 1];
        let pos = Pos {
            line: last.pos.line,
            column: last.pos.column + last.text.chars().count() as u32,
        };
        let message = format!("expected {expected} before the end of the line");
        Err(ParseError::new(Code::Syntax, pos, message))
    }

    fn expect(&mut self, c: char) -> Result<Token<'a>> {
        if self.is_punct(c) {
            return Ok(self.next());
        }
        self.unexpected(&format!("`{c}`"))
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.accept_word(word) {
            return Ok(());
        }
        self.unexpected(&format!("`{word}`"))
    }

    fn word(&mut self, expected: &str) -> Result<At<&'a str>> {
        let token = self.peek();
        if token.kind != TokenKind::Word {
            return self.unexpected(expected);
        }
        self.next();
        Ok(At {
            it: token.text,
            pos: token.pos,
        })
    }

    fn number<T: std::str::FromStr>(&mut self, expected: &str) -> Result<T> {
        let token = self.peek();
        match (token.kind, token.text.parse()) {
            (TokenKind::Number, Ok(number)) => {
                self.next();
                Ok(number)
            }
            _ => self.unexpected(expected),
        }
    }

    /// An entity such as `v12`. The largest index is reserved, and numbers of the text are only names.
    fn entity(&mut self, prefix: &str, expected: &str) -> Result<At<u32>> {
        let token = self.peek();
        let number = match token.kind {
            TokenKind::Word => entity_number(token.text, prefix),
            _ => None,
        };
        match number {
            Some(it) => {
                self.next();
                Ok(At { it, pos: token.pos })
            }
            None if Self::is_entity(token, prefix) => {
                let message = format!(
                    "the number of `{}` is larger than {}",
                    quoted(token.text),
                    u32::MAX
                );
                Err(ParseError::new(Code::Limit, token.pos, message))
            }
            None => self.unexpected(expected),
        }
    }

    /// Whether a token names an entity, even one whose number is too large.
    fn is_entity(token: Token<'a>, prefix: &str) -> bool {
        let digits = token.text.strip_prefix(prefix).unwrap_or("");
        token.kind == TokenKind::Word
            && !digits.is_empty()
            && digits.bytes().all(|b| b.is_ascii_digit())
    }

    fn value(&mut self) -> Result<At<u32>> {
        self.entity("v", "a value, as in v0")
    }

    /// Skips to the next word that opens a function.
    fn skip_to_function(&mut self) {
        self.next();
        loop {
            let opens = [Tile::KEYWORD, Thread::KEYWORD]
                .iter()
                .any(|k| self.is_word(k))
                && self.peek_after().kind == TokenKind::Punct('@');
            if opens || self.peek().kind == TokenKind::End {
                return;
            }
            self.next();
        }
    }

    /// Skips the line on which token number `start` stands, with the regions it opens.
    fn skip_line(&mut self, start: usize) {
        self.at = start;
        let mut depth = 0u32;
        let mut line = self.peek().pos.line;
        loop {
            let token = self.peek();
            let done = depth == 0 && token.pos.line != line;
            match token.kind {
                TokenKind::End => return,
                _ if done => return,
                TokenKind::Punct('{') => depth += 1,
                // The brace that closes what the line stands in.
                TokenKind::Punct('}') if depth == 0 => return,
                TokenKind::Punct('}') => depth -= 1,
                _ => {}
            }
            line = token.pos.line;
            self.next();
        }
    }

    fn function(&mut self) -> Result<RawFunction<'a>> {
        let errors_before = self.errors.len();
        let keyword = self.peek();
        if ![Tile::KEYWORD, Thread::KEYWORD].contains(&keyword.text) {
            return self.unexpected("`kernel` or `thread`");
        }
        self.next();
        self.expect('@')?;
        let pos = self.peek().pos;
        let name = match self.peek().kind {
            TokenKind::String => self.string()?,
            _ => self.word("the function's name")?.it.to_owned(),
        };
        self.expect('(')?;
        let mut params = Vec::new();
        while !self.is_punct(')') {
            params.push(self.param()?);
            if !self.accept(',') {
                break;
            }
        }
        self.expect(')')?;
        self.expect_word("warps")?;
        self.expect('(')?;
        let num_warps = self.number("the number of warps")?;
        self.expect(')')?;
        let fixed_warps = self.accept_word("fixed");
        let mut groups = 1;
        if self.accept_word("groups") {
            self.expect('(')?;
            groups = self.number("the number of groups that take turns")?;
            self.expect(')')?;
        }
        let mut registers = None;
        if self.accept_word("registers") {
            self.expect('(')?;
            registers = Some(self.number("the number of registers")?);
            self.expect(')')?;
        }
        let persistent = self.accept_word("persistent");
        self.expect('{')?;
        let mut func = RawFunction {
            keyword: keyword.text.to_owned(),
            pos,
            name,
            params,
            num_warps,
            groups,
            registers,
            persistent,
            fixed_warps,
            layouts: Vec::new(),
            slots: Vec::new(),
            partitions: Vec::new(),
            maps: Vec::new(),
            blocks: Vec::new(),
            last_line: 0,
            broken: false,
        };
        self.items(&mut func);
        while !self.is_punct('}') {
            func.blocks.push(self.block(0)?);
        }
        if func.blocks.is_empty() {
            return self.unexpected("a block, as in `block0:`");
        }
        func.last_line = self.next().pos.line;
        func.broken = self.errors.len() > errors_before;
        Ok(func)
    }

    fn string(&mut self) -> Result<String> {
        let token = self.next();
        unquote(token.text).ok_or_else(|| {
            let message = "unknown escape in a string; use \\\", \\\\ or \\u{..}";
            ParseError::new(Code::Token, token.pos, message)
        })
    }

    fn param(&mut self) -> Result<RawParam> {
        let value = self.value()?;
        let name = match self.peek().kind {
            TokenKind::String => self.string()?,
            _ => format!("v{}", value.it),
        };
        self.expect(':')?;
        let ty = self.ty()?;
        let mut divisible = 0;
        if self.accept('{') {
            self.expect_word("divisible")?;
            self.expect('=')?;
            let pos = self.peek().pos;
            divisible = self.number("a power of two")?;
            if divisible == 0 {
                let message = "every number is divisible by a power of two from 1 on, none by 0";
                return Err(ParseError::new(Code::Attribute, pos, message));
            }
            self.expect('}')?;
        }
        Ok(RawParam {
            value,
            name,
            ty,
            divisible,
        })
    }

    /// Layouts, slots, partitions and maps, up to the first block.
    fn items(&mut self, func: &mut RawFunction<'a>) {
        loop {
            let start = self.at;
            let result = if self.is_word("layout") {
                self.layout().map(|layout| func.layouts.push(layout))
            } else if Self::is_entity(self.peek(), "slot") {
                self.slot().map(|slot| func.slots.push(slot))
            } else if Self::is_entity(self.peek(), "part") {
                self.partition().map(|part| func.partitions.push(part))
            } else if Self::is_entity(self.peek(), "map") {
                self.map().map(|map| func.maps.push(map))
            } else {
                return;
            };
            if let Err(error) = result {
                self.errors.push(error);
                self.skip_line(start);
            }
        }
    }

    fn layout(&mut self) -> Result<RawLayout<'a>> {
        self.next();
        let pos = self.expect('#')?.pos;
        let it = self.number("a layout's number")?;
        self.expect('=')?;
        let columns = self.in_braces()?;
        self.expect(':')?;
        self.expect('[')?;
        let shape = self.extents()?;
        self.expect(']')?;
        Ok(RawLayout {
            number: At { it, pos },
            columns,
            shape,
        })
    }

    /// The text from `{` to `}`, which stands on one line.
    fn in_braces(&mut self) -> Result<At<&'a str>> {
        let open = self.expect('{')?;
        while !self.is_punct('}') && self.on_same_line() {
            self.next();
        }
        let close = self.expect('}')?;
        Ok(At {
            it: &self.text[open.start..close.start + 1],
            pos: open.pos,
        })
    }

    fn map(&mut self) -> Result<RawMap<'a>> {
        let number = self.entity("map", "a tensor map, as in map0")?;
        self.expect('=')?;
        let recipe = self.in_braces()?;
        Ok(RawMap { number, recipe })
    }

    fn slot(&mut self) -> Result<RawSlot> {
        let number = self.entity("slot", "a slot, as in slot0")?;
        self.expect('=')?;
        let bytes = self.number("a size in bytes")?;
        self.expect_word("bytes")?;
        self.expect_word("align")?;
        let align = self.number("an alignment in bytes")?;
        let mut offset = None;
        if self.accept_word("at") {
            offset = Some(self.number("an offset in bytes")?);
        }
        let by_group = self.accept_word("by_group");
        let mut holds = None;
        if self.accept_word("holds") {
            let stages = self.number("a number of blocks")?;
            self.expect_word("of")?;
            holds = Some((stages, self.ty()?));
        }
        Ok(RawSlot {
            number,
            bytes,
            align,
            offset,
            by_group,
            holds,
        })
    }

    fn partition(&mut self) -> Result<RawPartition> {
        let number = self.entity("part", "a partition, as in part1")?;
        self.expect('=')?;
        let num_warps = self.number("a number of warps")?;
        self.expect_word("warps")?;
        self.expect_word("from")?;
        let first_warp = self.number("the first warp")?;
        let mut registers = None;
        if self.accept_word("registers") {
            registers = Some(self.number("a number of registers")?);
        }
        Ok(RawPartition {
            number,
            num_warps,
            first_warp,
            registers,
        })
    }

    /// A block at nesting depth `depth`, up to the next block or the closing brace.
    fn block(&mut self, depth: usize) -> Result<RawBlock<'a>> {
        let number = self.entity("block", "a block, as in `block0:`, or `}`")?;
        let mut params = Vec::new();
        if self.accept('(') {
            while !self.is_punct(')') {
                let value = self.value()?;
                self.expect(':')?;
                params.push((value, self.ty()?));
                if !self.accept(',') {
                    break;
                }
            }
            self.expect(')')?;
        }
        self.expect(':')?;
        let mut insts = Vec::new();
        while self.starts_inst() && self.errors.len() < MAX_ERRORS {
            let start = self.at;
            match self.inst(depth) {
                Ok(inst) => insts.push(inst),
                Err(error) => {
                    self.errors.push(error);
                    self.skip_line(start);
                    // A brace too many would otherwise be met again and again.
                    if self.at == start {
                        self.next();
                    }
                }
            }
        }
        Ok(RawBlock {
            number,
            params,
            insts,
        })
    }

    /// Whether the next token belongs to an instruction, right or wrong, and not to what ends a block.
    fn starts_inst(&self) -> bool {
        let token = self.peek();
        let label = Self::is_entity(token, "block")
            && matches!(self.peek_after().kind, TokenKind::Punct(':' | '('));
        !(token.kind == TokenKind::End || token.kind == TokenKind::Punct('}') || label)
    }

    fn inst(&mut self, depth: usize) -> Result<RawInst<'a>> {
        let mut results = Vec::new();
        if Self::is_entity(self.peek(), "v") {
            results = self.values()?;
            self.expect('=')?;
        }
        let op = self.word("an op")?;
        let mut inst = RawInst {
            results,
            op,
            operands: Vec::new(),
            targets: Vec::new(),
            attrs: Vec::new(),
            types: Vec::new(),
            source_line: None,
            regions: Vec::new(),
        };
        if self.on_same_line() && self.peek().kind == TokenKind::Word {
            self.operands(&mut inst)?;
        }
        let block_follows = Self::is_entity(self.peek_after(), "block");
        if self.on_same_line() && self.is_punct('{') && !block_follows {
            self.attrs(&mut inst.attrs)?;
        }
        if self.on_same_line() && self.accept(':') {
            inst.types.push(self.ty()?);
            while self.accept(',') {
                inst.types.push(self.ty()?);
            }
        }
        if self.on_same_line() && self.accept('@') {
            inst.source_line = Some(self.number("a line of the source")?);
        }
        while self.on_same_line() && self.is_punct('{') {
            inst.regions.push(self.region(depth + 1)?);
        }
        if self.on_same_line() && !self.is_punct('}') {
            return self.unexpected("the end of the line");
        }
        Ok(inst)
    }

    fn region(&mut self, depth: usize) -> Result<RawBlock<'a>> {
        let open = self.expect('{')?;
        if depth > MAX_NESTING {
            let message = format!(
                "regions are nested deeper than {MAX_NESTING}; move code to another kernel"
            );
            return Err(ParseError::new(Code::Limit, open.pos, message));
        }
        let block = self.block(depth)?;
        self.expect('}')?;
        Ok(block)
    }

    fn values(&mut self) -> Result<Vec<At<u32>>> {
        let mut values = vec![self.value()?];
        while self.accept(',') {
            values.push(self.value()?);
        }
        Ok(values)
    }

    fn operands(&mut self, inst: &mut RawInst<'a>) -> Result<()> {
        loop {
            if Self::is_entity(self.peek(), "block") {
                let block = self.entity("block", "a block")?;
                let mut args = Vec::new();
                if self.accept('(') {
                    if !self.is_punct(')') {
                        args = self.values()?;
                    }
                    self.expect(')')?;
                }
                inst.targets.push(RawTarget { block, args });
            } else {
                inst.operands
                    .push(self.entity("v", "a value or a block, as in v0 or block0")?);
            }
            if !self.accept(',') {
                return Ok(());
            }
        }
    }

    fn attrs(&mut self, attrs: &mut Vec<RawAttr<'a>>) -> Result<()> {
        self.expect('{')?;
        while !self.is_punct('}') {
            let key = self.word("an attribute")?;
            let literal = if self.accept('=') {
                self.literal()?
            } else {
                RawLiteral::Absent
            };
            attrs.push(RawAttr { key, literal });
            if !self.accept(',') {
                break;
            }
        }
        self.expect('}').map(|_| ())
    }

    fn literal(&mut self) -> Result<RawLiteral<'a>> {
        let token = self.peek();
        match token.kind {
            TokenKind::Word => {
                self.next();
                if token.text == "nan" && self.accept(':') {
                    let bits = self.peek();
                    if bits.kind != TokenKind::Number {
                        return self.unexpected("the bits of a NaN, as in nan:0x7fc00001");
                    }
                    self.next();
                    let whole = &self.text[token.start..bits.start + bits.text.len()];
                    return Ok(RawLiteral::Number(whole));
                }
                Ok(RawLiteral::Word(token.text))
            }
            TokenKind::Number => {
                self.next();
                Ok(RawLiteral::Number(token.text))
            }
            TokenKind::Punct('[') => {
                self.next();
                let mut list = Vec::new();
                while self.peek().kind == TokenKind::Number {
                    list.push(self.next().text);
                    if !self.accept(',') {
                        break;
                    }
                }
                self.expect(']')?;
                Ok(RawLiteral::List(list))
            }
            TokenKind::String => Ok(RawLiteral::Text(self.string()?)),
            TokenKind::Punct(_) | TokenKind::End => {
                self.unexpected("a word, a number, a list or a text in quotes")
            }
        }
    }

    fn ty(&mut self) -> Result<RawType> {
        let pos = self.peek().pos;
        let elem = self.elem()?;
        let extent = if self.accept('[') {
            let shape = self.extents()?;
            let mut layout = None;
            let mut is_shared = false;
            if self.accept(';') {
                is_shared = self.accept_word("shared");
                let has_layout = match is_shared {
                    true => self.accept('#'),
                    false => self.expect('#').map(|_| true)?,
                };
                if has_layout {
                    layout = Some(self.number("a layout's number")?);
                }
            }
            if !self.accept(']') {
                return self.unexpected_here("`]`");
            }
            match is_shared {
                true => RawExtent::Shared(shape, layout),
                false => RawExtent::Block(shape, layout),
            }
        } else if self.on_same_line() && self.accept_word("x") {
            let count_pos = self.peek().pos;
            match self.number("a number of elements")? {
                0 => {
                    let message = "a pack has 1 to 65535 elements";
                    return Err(ParseError::new(Code::Type, count_pos, message));
                }
                1 => RawExtent::Single,
                count => RawExtent::Pack(count),
            }
        } else {
            RawExtent::Single
        };
        Ok(RawType { elem, extent, pos })
    }

    fn elem(&mut self) -> Result<Elem> {
        let name = self.word("a type")?;
        match name.it {
            "token" => Ok(Elem::Token),
            "map" => {
                self.expect('<')?;
                let elem = scalar(self.word("a number format, as in f16")?)?;
                self.expect('>')?;
                Ok(Elem::Map(elem))
            }
            "ptr" => {
                self.expect('<')?;
                let pointee = self.word("a number format, as in f32")?;
                let pointee = scalar(pointee)?;
                let mut space = AddressSpace::Global;
                if self.accept(',') {
                    self.expect_word("shared")?;
                    space = AddressSpace::Shared;
                }
                self.expect('>')?;
                Ok(Elem::Ptr(pointee, space))
            }
            _ => scalar(name).map(Elem::Num),
        }
    }

    /// Extents up to `]` or `;`.
    fn extents(&mut self) -> Result<Shape> {
        let pos = self.peek().pos;
        let mut extents: Vec<u64> = Vec::new();
        while self.peek().kind == TokenKind::Number {
            extents.push(self.number("an extent")?);
            if !self.accept(',') {
                break;
            }
        }
        if extents.is_empty() {
            return self.unexpected("an extent; a scalar has no brackets");
        }
        Shape::new(&extents).map_err(|e| ParseError::new(Code::Type, pos, e.to_string()))
    }
}

fn scalar(name: At<&str>) -> Result<Scalar> {
    Scalar::from_name(name.it).ok_or_else(|| unknown_type(name.it, name.pos))
}

fn unknown_type(name: &str, pos: Pos) -> ParseError {
    if name == "ptr" {
        let message = "a pointer is to a number; addresses of addresses are loaded as i64 and cast";
        return ParseError::new(Code::Type, pos, message);
    }
    let known: Vec<&str> = Scalar::ALL.iter().map(|s| s.name()).collect();
    let message = format!(
        "unknown type `{}`; known are {}, ptr<..> and token{}",
        quoted(name),
        known.join(", "),
        did_you_mean_format(name)
    );
    ParseError::new(Code::Type, pos, message)
}
