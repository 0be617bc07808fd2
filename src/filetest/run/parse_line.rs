//! Reads `; run:` lines.

use super::compare::Bound;
use super::fill::Fill;
use super::map::MapSpec;
use crate::grid;
use crate::ir::types::Scalar;
use crate::limits::RUN_LINE_BYTES;
use crate::text::closest::did_you_mean_format;
use crate::text::lexer::{Token, TokenKind, lex, unquote};
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
    /// A number, or the name of another parameter.
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
        with_cursor(&text, &files, |cursor| {
            cursor.arguments(&mut run, most_bytes)
        })?;
        for part in parts {
            let part = part.trim();
            let rest = part.strip_prefix("expect ").unwrap_or("").trim();
            let (first, words) = rest.split_once(' ').unwrap_or((rest, ""));
            run.expects.push(match (first, words.trim()) {
                ("", _) | ("error" | "printed", "") => {
                    let found = match part.is_empty() {
                        true => "nothing".to_owned(),
                        false => format!("`{}`", quoted(part)),
                    };
                    return Err(format!("expected {EXPECTS} after `;`, found {found}"));
                }
                ("error", words) => Expect::Error(words.to_owned()),
                ("printed", line) => Expect::Printed(line.to_owned()),
                _ => {
                    let (text, files) = without_files(rest)?;
                    with_cursor(&text, &files, |cursor| cursor.expect_values())?
                }
            });
        }
        run.check_expects()?;
        Ok(run)
    }

    /// An error for what is expected in vain.
    fn check_expects(&self) -> Result<(), String> {
        let is_error = |expect: &Expect| matches!(expect, Expect::Error(_));
        if self.expects.len() > 1 && self.expects.iter().any(is_error) {
            let message =
                "after an error nothing is compared: `expect error` is the only `expect` of a line";
            return Err(message.to_owned());
        }
        let mut bounded: Vec<&String> = Vec::new();
        for expect in &self.expects {
            let Expect::Within(names, _) = expect else {
                continue;
            };
            if let Some(name) = names.iter().find(|name| bounded.contains(name)) {
                return Err(format!("`{}` has two bounds; leave one out", quoted(name)));
            }
            bounded.extend(names);
        }
        Ok(())
    }
}

/// The forms of what is expected.
const EXPECTS: &str = "`expect NAME = [..]`, `expect NAME = @FILE`, `expect NAME within BOUND`, `expect error WORDS` or `expect \
                       printed LINE`";

/// The text with `file[0]`, `file[1]`, .. for `@PATH`, whose characters need not be those of any token, and the paths. A path
/// ends at a space, or is in quotes.
fn without_files(text: &str) -> Result<(String, Vec<String>), String> {
    let (mut out, mut files) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('=') {
        let Some(path) = behind.trim_start().strip_prefix('@') else {
            out += &format!("{before}=");
            rest = behind;
            continue;
        };
        let (path, after) = match path.strip_prefix('"') {
            Some(quoted) => quoted
                .split_once('"')
                .ok_or("the name of a file has no closing quote")?,
            None => path.split_at(path.find(char::is_whitespace).unwrap_or(path.len())),
        };
        if path.is_empty() {
            return Err("the name of a file is missing behind `@`, as in `@out.npy`".to_owned());
        }
        out += &format!("{before}={}", file_word(files.len()));
        files.push(path.to_owned());
        rest = after;
    }
    Ok((out + rest, files))
}

/// What stands for a file in a line.
fn file_word(index: usize) -> String {
    format!("file[{index}]")
}

fn with_cursor<T>(
    text: &str,
    files: &[String],
    read: impl FnOnce(&mut Cursor<'_, '_>) -> Result<T, String>,
) -> Result<T, String> {
    let lexed = lex(text);
    if let Some(error) = lexed.errors.first() {
        return Err(error.message.clone());
    }
    let mut cursor = Cursor {
        text,
        files,
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

/// Characters that a message shows of what stands before a mistake.
const BEFORE: usize = 24;

struct Cursor<'t, 'a> {
    text: &'t str,
    /// What `file[0]`, `file[1]`, .. stand for in it.
    files: &'t [String],
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
        let behind = self.behind();
        match token.kind {
            TokenKind::End => Err(format!(
                "expected {expected} at the end of a `run` line{behind}"
            )),
            _ => {
                let found = quoted(token.text);
                Err(format!("expected {expected}, found `{found}`{behind}"))
            }
        }
    }

    /// The end of what stands before the next token, to say where a mistake is.
    fn behind(&self) -> String {
        let mut before = self.text[..self.peek().start].trim().to_owned();
        for (index, path) in self.files.iter().enumerate() {
            before = before.replace(&format!("={}", file_word(index)), &format!("=@{path}"));
        }
        let more = before.chars().count().saturating_sub(BEFORE);
        let last: String = before.chars().skip(more).collect();
        match (last.is_empty(), more) {
            (true, _) => String::new(),
            (false, 0) => format!(", behind `{}`", quoted(&last)),
            (false, _) => format!(", behind `..{}`", quoted(&last)),
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

    /// The name of a parameter; in quotes if it is no word.
    fn name(&mut self, expected: &str) -> Result<String, String> {
        let token = self.peek();
        match (token.kind, unquote(token.text)) {
            (TokenKind::String, Some(name)) => {
                self.next();
                Ok(name)
            }
            _ => self.word(expected).map(str::to_owned),
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
            Err(_) => {
                let text = self.peek().text;
                let is_whole = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                match is_whole {
                    true => self.unexpected(&format!("{expected} that is not so large")),
                    false => self.unexpected(expected),
                }
            }
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
            if self.peek().kind == TokenKind::Punct('[') {
                return self.unexpected("a number: a list has all elements in a row");
            }
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

    fn arguments(&mut self, run: &mut RunLine, most_bytes: usize) -> Result<(), String> {
        // That buffers may still take.
        let mut left = Left {
            bytes: most_bytes,
            most: most_bytes,
        };
        let mut stated: Vec<String> = Vec::new();
        while self.peek().kind != TokenKind::End {
            if self.peek().kind == TokenKind::Punct(',') {
                return self.unexpected("a space between arguments");
            }
            let name = self.name("`grid(..)` or the name of a parameter")?;
            if self.peek().kind == TokenKind::Punct('(') {
                if stated.contains(&name) {
                    let name = quoted(&name);
                    return Err(format!(
                        "`{name}(..)` stands twice in the line; leave one out"
                    ));
                }
                match name.as_str() {
                    "grid" => {
                        run.grid = self.triple("a number of programs")?;
                        grid::check(run.grid).map_err(|e| e.to_string())?;
                    }
                    "steps" => run.steps = Some(self.one("a number of steps")?),
                    "programs" => run.programs = Some(self.one("a number of programs")?),
                    "block" => run.block = Some(self.triple("a number of threads")?),
                    "shared" => run.shared = Some(self.one("a number of bytes")?),
                    _ => {
                        let name = quoted(&name);
                        let known = "grid, steps, programs, and for PTX block and shared";
                        return Err(format!("unknown word `{name}(..)`; known are {known}"));
                    }
                }
                stated.push(name);
                continue;
            }
            self.expect('=')?;
            let spec = self.spec(&mut left)?;
            let spec = match self.map()? {
                None => spec,
                Some(map) => match spec {
                    ArgSpec::Number(name) => ArgSpec::Map(MapOf::Param(name), map),
                    spec => ArgSpec::Map(MapOf::Own(Box::new(spec)), map),
                },
            };
            run.args.push((name, spec));
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
    fn file(&mut self) -> Result<Option<String>, String> {
        if self.files.is_empty() || !self.accept_word("file") {
            return Ok(None);
        }
        self.expect('[')?;
        let index: usize = self.number("the name of a file")?;
        self.expect(']')?;
        match self.files.get(index) {
            Some(path) => Ok(Some(path.clone())),
            None => self.unexpected("the name of a file"),
        }
    }

    fn spec(&mut self, left: &mut Left) -> Result<ArgSpec, String> {
        let word = self.peek();
        if let Some(path) = self.file()? {
            return Ok(ArgSpec::File(path));
        }
        if self.accept_word("null") {
            return Ok(ArgSpec::Null);
        }
        if word.kind == TokenKind::String {
            return self.name("the name of a parameter").map(ArgSpec::Number);
        }
        let Some(scalar) = Scalar::from_name(word.text) else {
            let number = self.literal()?;
            // A number has no length, so the word was to be a type.
            if word.kind == TokenKind::Word && self.peek().kind == TokenKind::Punct('[') {
                let known: Vec<&str> = Scalar::ALL.iter().map(|s| s.name()).collect();
                let known = known.join(", ");
                let meant = did_you_mean_format(word.text);
                let word = quoted(word.text);
                return Err(format!("unknown type `{word}`; known are {known}{meant}"));
            }
            return Ok(ArgSpec::Number(number));
        };
        self.next();
        if !self.accept('[') {
            return self.unexpected("`[LENGTH]`, the number of elements");
        }
        let count: usize = self.number("a number of elements")?;
        if self.peek().kind == TokenKind::Punct(',') {
            return self.unexpected("`]`: a buffer has one length, the number of all its elements");
        }
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
    fn expect_values(&mut self) -> Result<Expect, String> {
        let first = self.name("the name of a parameter")?;
        if self.accept('=') {
            let stated = match self.file()? {
                Some(path) => Expect::File(first, path),
                None if self.accept('[') => Expect::Values(first, self.list()?),
                None => return self.unexpected("a list such as `[1,2]`, or `@FILE`"),
            };
            if self.peek().text == "within" {
                return self.unexpected(
                    "the end: a bound stands in an `expect NAME within BOUND` of its own",
                );
            }
            return Ok(stated);
        }
        let mut names = vec![first];
        while self.accept(',') {
            names.push(self.name("the name of a parameter")?);
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
