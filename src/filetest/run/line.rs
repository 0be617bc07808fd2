//! Reads `; run:` lines.

use super::compare::Bound;
use super::fill::Fill;
use crate::grid;
use crate::ir::types::Scalar;
use crate::limits::RUN_LINE_BYTES;
use crate::text::lexer::{Kind, Token, lex};
use crate::text::quote::quoted;

/// What a `; run:` line says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RunLine {
    pub(super) grid: [u32; 3],
    /// Steps to give up after.
    pub(super) steps: Option<u64>,
    pub(super) args: Vec<(String, ArgSpec)>,
    pub(super) expects: Vec<Expect>,
}

/// What a parameter gets.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ArgSpec {
    Number(String),
    Null,
    Buffer {
        scalar: Scalar,
        count: usize,
        fill: Fill,
        special: bool,
    },
}

/// What is expected of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expect {
    Within(Vec<String>, Bound),
    Values(String, Vec<String>),
    Error(String),
    Printed(String),
}

impl RunLine {
    pub(super) fn parse(text: &str) -> Result<RunLine, String> {
        let mut parts = text.split(';');
        let mut run = RunLine {
            grid: [1; 3],
            steps: None,
            args: Vec::new(),
            expects: Vec::new(),
        };
        with_cursor(parts.next().unwrap_or(""), |cursor| {
            cursor.arguments(&mut run)
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
                (None, None) => with_cursor(rest, |cursor| cursor.expect_values())?,
            });
        }
        Ok(run)
    }
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
        Kind::End => Ok(result),
        _ => cursor.unexpected("the end"),
    }
}

struct Cursor<'t, 'a> {
    /// Ended by [`Kind::End`], which is never passed.
    tokens: &'t [Token<'a>],
    at: usize,
}

impl<'a> Cursor<'_, 'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens[self.at]
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    fn unexpected<T>(&self, expected: &str) -> Result<T, String> {
        let token = self.peek();
        match token.kind {
            Kind::End => Err(format!("expected {expected} at the end of a `run` line")),
            _ => Err(format!(
                "expected {expected}, found `{}`",
                quoted(token.text)
            )),
        }
    }

    fn accept(&mut self, c: char) -> bool {
        let found = self.peek().kind == Kind::Punct(c);
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
        let found = token.kind == Kind::Word && token.text == word;
        self.at += usize::from(found);
        found
    }

    fn word(&mut self, expected: &str) -> Result<&'a str, String> {
        match self.peek().kind {
            Kind::Word => Ok(self.next().text),
            _ => self.unexpected(expected),
        }
    }

    /// A number or a word such as `nan` or `true`, as text.
    fn literal(&mut self) -> Result<String, String> {
        let token = self.peek();
        match token.kind {
            Kind::Word | Kind::Number => {
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
        while self.peek().kind != Kind::Punct(']') {
            texts.push(self.literal()?);
            if !self.accept(',') {
                break;
            }
        }
        self.expect(']')?;
        Ok(texts)
    }

    fn arguments(&mut self, run: &mut RunLine) -> Result<(), String> {
        // Of the buffers so far.
        let mut bytes = 0;
        while self.peek().kind != Kind::End {
            let name = self.word("`grid(..)` or the name of a parameter")?;
            if name == "grid" && self.accept('(') {
                for (axis, programs) in run.grid.iter_mut().enumerate() {
                    if axis > 0 && !self.accept(',') {
                        break;
                    }
                    *programs = self.number("a number of programs")?;
                }
                self.expect(')')?;
                grid::check(run.grid).map_err(|e| e.to_string())?;
                continue;
            }
            if name == "steps" && self.accept('(') {
                run.steps = Some(self.number("a number of steps")?);
                self.expect(')')?;
                continue;
            }
            self.expect('=')?;
            let spec = self.spec(&mut bytes)?;
            run.args.push((name.to_owned(), spec));
        }
        Ok(())
    }

    fn spec(&mut self, bytes: &mut usize) -> Result<ArgSpec, String> {
        let word = self.peek();
        if self.accept_word("null") {
            return Ok(ArgSpec::Null);
        }
        let Some(scalar) = Scalar::from_name(word.text) else {
            let number = self.literal()?;
            // A number has no length, so the word was to be a type.
            if word.kind == Kind::Word && self.peek().kind == Kind::Punct('[') {
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
        *bytes = size
            .and_then(|size| bytes.checked_add(size))
            .filter(|&all| all <= RUN_LINE_BYTES)
            .ok_or_else(|| {
                let limit = RUN_LINE_BYTES >> 20;
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
        let first = self.word("the name of a parameter")?.to_owned();
        if self.accept('=') {
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
        let expected = "exact, ulp N, rel X or abs X";
        let bound = match self.word(expected)? {
            "exact" => Bound::Exact,
            "ulp" => Bound::Ulp(self.number("a number of ulp")?),
            "rel" => Bound::Relative(self.bound("a relative error")?),
            "abs" => Bound::Absolute(self.bound("an absolute error")?),
            _ => return Err(format!("a bound is {expected}")),
        };
        Ok(Expect::Within(names, bound))
    }
}
