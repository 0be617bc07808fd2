//! Reads the text form of recipes and their numbers.

use std::str::FromStr;

use thiserror::Error;

use super::number::{AXES, MAX_DEPTH};
use super::{HostNumber, MapRecipe, NumberOp};
use crate::ir::types::Scalar;

/// A text that is no recipe, or no number of one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}, at `{}`", .rest.chars().take(20).collect::<String>())]
pub struct RecipeError {
    message: String,
    /// The text from where it is wrong.
    rest: String,
}

impl FromStr for HostNumber {
    type Err = RecipeError;

    fn from_str(text: &str) -> Result<HostNumber, RecipeError> {
        let mut reader = Reader { rest: text };
        let number = reader.number(0)?;
        reader.end()?;
        Ok(number)
    }
}

impl FromStr for MapRecipe {
    type Err = RecipeError;

    fn from_str(text: &str) -> Result<MapRecipe, RecipeError> {
        let mut reader = Reader { rest: text };
        let recipe = reader.recipe()?;
        reader.end()?;
        Ok(recipe)
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn fail<T>(&self, message: impl Into<String>) -> Result<T, RecipeError> {
        Err(RecipeError {
            message: message.into(),
            rest: self.rest.trim_start().to_owned(),
        })
    }

    fn accept(&mut self, text: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(text);
        if let Some(rest) = rest {
            self.rest = rest;
        }
        rest.is_some()
    }

    fn expect(&mut self, text: &str) -> Result<(), RecipeError> {
        if self.accept(text) {
            return Ok(());
        }
        self.fail(format!("expected `{text}`"))
    }

    fn end(&mut self) -> Result<(), RecipeError> {
        match self.rest.trim() {
            "" => Ok(()),
            _ => self.fail("expected the end"),
        }
    }

    /// Letters, digits and signs.
    fn word(&mut self) -> &'a str {
        let text = self.rest.trim_start();
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let (word, rest) = text.split_at(text.find(|c| !is_word(c)).unwrap_or(text.len()));
        self.rest = rest;
        word
    }

    fn parsed<T: FromStr>(&mut self, what: &str) -> Result<T, RecipeError> {
        let start = self.rest;
        match self.word().parse() {
            Ok(it) => Ok(it),
            Err(_) => {
                self.rest = start;
                self.fail(format!("expected {what}"))
            }
        }
    }

    fn number(&mut self, depth: usize) -> Result<HostNumber, RecipeError> {
        if depth > MAX_DEPTH {
            return self.fail(format!("numbers are nested at most {MAX_DEPTH} deep"));
        }
        let start = self.rest;
        let word = self.word();
        if let Ok(number) = word.parse() {
            return Ok(HostNumber::Const(number));
        }
        if let Some(axis) = AXES.iter().position(|name| *name == word) {
            return Ok(HostNumber::Programs(axis as u8));
        }
        if let Some(index) = word.strip_prefix('p').and_then(|n| n.parse().ok()) {
            return Ok(HostNumber::Param(index));
        }
        if let Some(index) = word.strip_prefix('n').and_then(|n| n.parse().ok()) {
            return Ok(HostNumber::Part(index));
        }
        let Some(op) = NumberOp::ALL.iter().find(|op| op.name() == word) else {
            self.rest = start;
            return self.fail("expected a number, as in 64, p3, gridx or add(p3, 64)");
        };
        self.expect("(")?;
        let a = self.number(depth + 1)?;
        self.expect(",")?;
        let b = self.number(depth + 1)?;
        self.expect(")")?;
        Ok(HostNumber::Op(*op, Box::new([a, b])))
    }

    fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, RecipeError>,
    ) -> Result<Vec<T>, RecipeError> {
        let mut items = Vec::new();
        self.expect("[")?;
        if self.accept("]") {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.accept(",") {
                self.expect("]")?;
                return Ok(items);
            }
        }
    }

    fn recipe(&mut self) -> Result<MapRecipe, RecipeError> {
        self.expect("{base=p")?;
        let base = self.parsed("the index of a parameter")?;
        self.expect(", offset=")?;
        let offset = self.number(0)?;
        self.expect(", elem=")?;
        let start = self.rest;
        let Some(elem) = Scalar::from_name(self.word()) else {
            self.rest = start;
            return self.fail("expected a number format, as in f16");
        };
        self.expect(", extents=")?;
        let extents = self.list(|r| r.number(0))?;
        self.expect(", strides=")?;
        let strides = self.list(|r| r.number(0))?;
        self.expect(", box=")?;
        let tile = self.list(|r| r.parsed("an extent of a box"))?;
        let swizzle = match self.accept(", swizzle=") {
            true => self.parsed("a number of bytes")?,
            false => 0,
        };
        let nan = self.accept(", nan");
        let parts = match self.accept(", parts=") {
            true => self.list(|r| r.number(0))?,
            false => Vec::new(),
        };
        self.expect(", if=")?;
        let condition = self.number(0)?;
        self.expect("}")?;
        Ok(MapRecipe {
            base,
            offset,
            elem,
            extents,
            strides,
            tile,
            swizzle,
            nan,
            parts,
            condition,
        })
    }
}
