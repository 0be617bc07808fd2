//! Reads `; run:` lines.

use super::compare::Bound;
use super::fill::Fill;
use super::map::MapSpec;
use crate::grid;
use crate::ir::types::Scalar;
use crate::limits::RUN_LINE_BYTES;
use crate::text::lexer::{Token, TokenKind, lex};
use crate::text::quote::quoted;

/// What a `; run:` line says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RunLine {
    pub(super) grid: [u32; 3],
    /// Steps to give up after.
    pub(super) steps: Option<u64>,
    /// Programs that the grid may have.
    pub(super) programs: Option<u64>,
    /// Threads of a CTA and bytes of dynamic shared memory: of PTX, which does not state them.
    pub(super) block: Option<[u32; 3]>,
    pub(super) shared: Option<u32>,
    pub(super) args: Vec<(String, ArgSpec)>,
    pub(super) expects: Vec<Expect>,
}

/// What a parameter gets.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ArgSpec {
    Number(String),
    Null,
    /// What a file of NumPy holds.
    File(String),
    Buffer {
        scalar: Scalar,
        count: usize,
        fill: Fill,
        special: bool,
    },
    /// A tensor map, of a buffer of its own or that of another parameter.
    Map(MapOf, MapSpec),
}

/// The memory that a tensor map is of.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MapOf {
    /// A buffer or a file.
    Own(Box<ArgSpec>),
    /// What the parameter of this name gets.
    Param(String),
}

/// What is expected of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expect {
    Within(Vec<String>, Bound),
    Values(String, Vec<String>),
    /// A buffer as another program left it in a file of NumPy.
    File(String, String),
    Error(String),
    Printed(String),
}

impl RunLine {
    pub(super) fn parse(text: &str) -> Result<RunLine, String> {
        RunLine::parse_within(text, RUN_LINE_BYTES)
    }

    /// Reads a line whose buffers may have so many bytes together.
    pub(super) fn parse_within(text: &str, most_bytes: usize) -> Result<RunLine, String> {
        let mut parts = text.split(';');
        let mut run = RunLine {
            grid: [1; 3],
            steps: None,
            programs: None,
            block: None,
            shared: None,
            args: Vec::new(),
            expects: Vec::new(),
        };
        let (text, files) = without_files(parts.next().unwrap_or(""))?;
        with_cursor(&text, |cursor| {
            cursor.arguments(&mut run, &files, most_bytes)
        })?;
        for part in parts {
            let part = part.trim();
            let Some(rest) = part.strip_prefix("expect ") else {
                let part = quoted(part);
                return Err(format!("expected `expect ..` after `;`, found `{part}`"));
            };
            let rest = rest.trim();
            let is = |prefix| {
                rest.strip_prefix(prefix)
                    .map(|words| words.trim().to_owned())
            };
            run.expects.push(match (is("error "), is("printed ")) {
                (Some(words), _) => Expect::Error(words),
                (None, Some(line)) => Expect::Printed(line),
                (None, None) => {
                    let (text, files) = without_files(&rest.replace("= @", "=@"))?;
                    with_cursor(&text, |cursor| cursor.expect_values(&files))?
                }
            });
        }
        Ok(run)
    }
}

/// The text with `file[0]`, `file[1]`, .. for `@PATH`, whose characters need not be those of any token, and the paths. A path
/// ends at a space, or is in quotes.
fn without_files(text: &str) -> Result<(String, Vec<String>), String> {
    let (mut out, mut files) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some((before, path)) = rest.split_once("=@") {
        let (path, after) = match path.strip_prefix('"') {
            Some(quoted) => quoted
                .split_once('"')
                .ok_or("the name of a file has no closing quote")?,
            None => path.split_at(path.find(char::is_whitespace).unwrap_or(path.len())),
        };
        out += &format!("{before}=file[{}]", files.len());
        files.push(path.to_owned());
        rest = after;
    }
    Ok((out + rest, files))
}

fn with_cursor<T>(
    text: &str,
    read: impl FnOnce(&mut Cursor<'_, '_>) -> Result<T, String>,
) -> Result<T, String> {
    let lexed = lex(text);
    if let Some(error) = lexed.errors.first() {
        return Err(error.message.clone());
    }
    let mut cursor = Cursor {
        tokens: &lexed.tokens,
        at: 0,
    };
    let result = read(&mut cursor)?;
    match cursor.peek().kind {
        TokenKind::End => Ok(result),
        _ => cursor.unexpected("the end"),
    }
}

/// Bytes that the buffers of a line may have.
struct Left {
    /// Those that are left.
    bytes: usize,
    /// All.
    most: usize,
}

struct Cursor<'t, 'a> {
    /// Ended by [`TokenKind::End`], which is never passed.
    tokens: &'t [Token<'a>],
    at: usize,
}

impl<'a> Cursor<'_, 'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens[self.at]
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }

    fn unexpected<T>(&self, expected: &str) -> Result<T, String> {
        let token = self.peek();
        match token.kind {
            TokenKind::End => Err(format!("expected {expected} at the end of a `run` line")),
            _ => Err(format!(
                "expected {expected}, found `{}`",
                quoted(token.text)
            )),
        }
    }

    fn accept(&mut self, c: char) -> bool {
        let found = self.peek().kind == TokenKind::Punct(c);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, c: char) -> Result<(), String> {
        if self.accept(c) {
            return Ok(());
        }
        self.unexpected(&format!("`{c}`"))
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let token = self.peek();
        let found = token.kind == TokenKind::Word && token.text == word;
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, expected: &str) -> Result<&'a str, String> {
        match self.peek().kind {
            TokenKind::Word => Ok(self.next().text),
            _ => self.unexpected(expected),
        }
    }

    /// A number or a word such as `nan` or `true`, as text.
    fn literal(&mut self) -> Result<String, String> {
        let token = self.peek();
        match token.kind {
            TokenKind::Word | TokenKind::Number => {
                self.next();
                let mut text = token.text.to_owned();
                if text == "nan" && self.accept(':') {
                    text = format!("nan:{}", self.next().text);
                }
                Ok(text)
            }
            _ => self.unexpected("a number"),
        }
    }

    fn number<T: std::str::FromStr>(&mut self, expected: &str) -> Result<T, String> {
        match self.peek().text.parse() {
            Ok(number) => {
                self.next();
                Ok(number)
            }
            Err(_) => self.unexpected(expected),
        }
    }

    /// A number that a distance can be compared with.
    fn bound(&mut self, expected: &str) -> Result<f64, String> {
        let text = self.peek().text;
        let bound: f64 = self.number(expected)?;
        if bound.is_finite() && bound >= 0.0 {
            Ok(bound)
        } else {
            Err(format!(
                "{expected} is finite and not negative, not {}",
                quoted(text)
            ))
        }
    }

    /// `[1, 2, 3]`, the opening bracket being taken already.
    fn list(&mut self) -> Result<Vec<String>, String> {
        let mut texts = Vec::new();
        while self.peek().kind != TokenKind::Punct(']') {
            texts.push(self.literal()?);
            if !self.accept(',') {
                break;
            }
        }
        self.expect(']')?;
        Ok(texts)
    }

    /// `(x)`, `(x, y)` or `(x, y, z)`.
    fn triple(&mut self, expected: &str) -> Result<[u32; 3], String> {
        let mut triple = [1; 3];
        self.expect('(')?;
        for (axis, extent) in triple.iter_mut().enumerate() {
            if axis > 0 && !self.accept(',') {
                break;
            }
            *extent = self.number(expected)?;
        }
        self.expect(')')?;
        Ok(triple)
    }

    /// `(N)`.
    fn one<T: std::str::FromStr>(&mut self, expected: &str) -> Result<T, String> {
        self.expect('(')?;
        let number = self.number(expected)?;
        self.expect(')')?;
        Ok(number)
    }

    fn arguments(
        &mut self,
        run: &mut RunLine,
        files: &[String],
        most_bytes: usize,
    ) -> Result<(), String> {
        // That buffers may still take.
        let mut left = Left {
            bytes: most_bytes,
            most: most_bytes,
        };
        while self.peek().kind != TokenKind::End {
            let name = self.word("`grid(..)` or the name of a parameter")?;
            if self.peek().kind == TokenKind::Punct('(') {
                match name {
                    "grid" => {
                        run.grid = self.triple("a number of programs")?;
                        grid::check(run.grid).map_err(|e| e.to_string())?;
                    }
                    "steps" => run.steps = Some(self.one("a number of steps")?),
                    "programs" => run.programs = Some(self.one("a number of programs")?),
                    "block" => run.block = Some(self.triple("a number of threads")?),
                    "shared" => run.shared = Some(self.one("a number of bytes")?),
                    _ => {
                        let name = quoted(name);
                        let known = "grid, steps, programs, and for PTX block and shared";
                        return Err(format!("unknown word `{name}(..)`; known are {known}"));
                    }
                }
                continue;
            }
            self.expect('=')?;
            let spec = self.spec(&mut left, files)?;
            let spec = match self.map()? {
                None => spec,
                Some(map) => match spec {
                    ArgSpec::Number(name) => ArgSpec::Map(MapOf::Param(name), map),
                    spec => ArgSpec::Map(MapOf::Own(Box::new(spec)), map),
                },
            };
            run.args.push((name.to_owned(), spec));
        }
        Ok(())
    }

    /// `(N, N, ..)`.
    fn several<T: std::str::FromStr>(&mut self, expected: &str) -> Result<Vec<T>, String> {
        self.expect('(')?;
        let mut numbers = vec![self.number(expected)?];
        while self.accept(',') {
            numbers.push(self.number(expected)?);
        }
        self.expect(')')?;
        Ok(numbers)
    }

    /// Whether the word and an opening bracket follow; a parameter may have the same name.
    fn is_call(&self, word: &str) -> bool {
        let next = self.tokens.get(self.at + 1);
        self.peek().text == word && next.is_some_and(|next| next.kind == TokenKind::Punct('('))
    }

    /// `map(EXTENTS) box(EXTENTS)` and what else makes a tensor map of a buffer.
    fn map(&mut self) -> Result<Option<MapSpec>, String> {
        if !self.is_call("map") {
            return Ok(None);
        }
        self.next();
        let mut map = MapSpec {
            extents: self.several("an extent")?,
            ..MapSpec::default()
        };
        loop {
            if self.is_call("box") {
                self.next();
                map.box_extents = self.several("an extent of the box")?;
            } else if self.is_call("strides") {
                self.next();
                map.strides = Some(self.several("a number of bytes")?);
            } else if self.is_call("swizzle") {
                self.next();
                map.swizzle = self.one("a number of bytes")?;
            } else if self.is_call("outside") {
                self.next();
                self.expect('(')?;
                map.nan = match self.word("nan or zeros")? {
                    "nan" => true,
                    "zeros" => false,
                    other => {
                        let other = quoted(other);
                        return Err(format!(
                            "outside of a tensor is nan or zeros, not `{other}`"
                        ));
                    }
                };
                self.expect(')')?;
            } else if map.box_extents.is_empty() {
                return self.unexpected("`box(..)`");
            } else {
                return Ok(Some(map));
            }
        }
    }

    /// `file[N]`, which stands for the path of that number, if one does.
    fn file(&mut self, files: &[String]) -> Result<Option<String>, String> {
        if files.is_empty() || !self.accept_word("file") {
            return Ok(None);
        }
        self.expect('[')?;
        let index: usize = self.number("the name of a file")?;
        self.expect(']')?;
        match files.get(index) {
            Some(path) => Ok(Some(path.clone())),
            None => self.unexpected("the name of a file"),
        }
    }

    fn spec(&mut self, left: &mut Left, files: &[String]) -> Result<ArgSpec, String> {
        let word = self.peek();
        if let Some(path) = self.file(files)? {
            return Ok(ArgSpec::File(path));
        }
        if self.accept_word("null") {
            return Ok(ArgSpec::Null);
        }
        let Some(scalar) = Scalar::from_name(word.text) else {
            let number = self.literal()?;
            // A number has no length, so the word was to be a type.
            if word.kind == TokenKind::Word && self.peek().kind == TokenKind::Punct('[') {
                let known: Vec<&str> = Scalar::ALL.iter().map(|s| s.name()).collect();
                let (word, known) = (quoted(word.text), known.join(", "));
                return Err(format!("unknown type `{word}`; known are {known}"));
            }
            return Ok(ArgSpec::Number(number));
        };
        self.next();
        self.expect('[')?;
        let count: usize = self.number("a number of elements")?;
        let size = count.checked_mul(scalar.bytes() as usize);
        left.bytes = size
            .and_then(|size| left.bytes.checked_sub(size))
            .ok_or_else(|| {
                let limit = left.most >> 20;
                format!("the buffers of a line have at most {limit} MiB together")
            })?;
        self.expect(']')?;
        let fill = self.fill()?;
        let special = self.accept_word("special");
        Ok(ArgSpec::Buffer {
            scalar,
            count,
            fill,
            special,
        })
    }

    fn fill(&mut self) -> Result<Fill, String> {
        if self.accept('[') {
            return self.list().map(Fill::List);
        }
        let expected =
            "what the buffer holds: poison, zeros, const, iota, normal, uniform or a list";
        let name = self.word(expected)?;
        let fill = match name {
            "poison" => return Ok(Fill::Poison),
            "zeros" => return Ok(Fill::Const("0".to_owned())),
            "const" => {
                self.expect('(')?;
                Fill::Const(self.literal()?)
            }
            "iota" => {
                self.expect('(')?;
                Fill::Iota(self.number("the first number")?)
            }
            "normal" => {
                self.expect('(')?;
                Fill::Normal(self.number("a seed")?)
            }
            "uniform" => {
                self.expect('(')?;
                let seed = self.number("a seed")?;
                self.expect(',')?;
                let low = self.number("the lower end")?;
                self.expect(',')?;
                let high = self.number("the upper end")?;
                Fill::Uniform(seed, low, high)
            }
            _ => return Err(format!("expected {expected}, found `{}`", quoted(name))),
        };
        self.expect(')')?;
        Ok(fill)
    }

    /// What follows `expect`, errors aside.
    fn expect_values(&mut self, files: &[String]) -> Result<Expect, String> {
        let first = self.word("the name of a parameter")?.to_owned();
        if self.accept('=') {
            if let Some(path) = self.file(files)? {
                return Ok(Expect::File(first, path));
            }
            self.expect('[')?;
            return Ok(Expect::Values(first, self.list()?));
        }
        let mut names = vec![first];
        while self.accept(',') {
            names.push(self.word("the name of a parameter")?.to_owned());
        }
        if !self.accept_word("within") {
            return self.unexpected("`within` or `=`");
        }
        let expected = "exact, stated, ulp N, rel X or abs X";
        let bound = match self.word(expected)? {
            "exact" => Bound::Exact,
            "stated" => Bound::Stated,
            "ulp" => Bound::Ulp(self.number("a number of ulp")?),
            "rel" => Bound::Relative(self.bound("a relative error")?),
            "abs" => Bound::Absolute(self.bound("an absolute error")?),
            _ => return Err(format!("a bound is {expected}")),
        };
        Ok(Expect::Within(names, bound))
    }
}
