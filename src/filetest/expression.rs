//! Whole numbers computed in a text: `$NAME` and `$(..)`.

use std::collections::BTreeMap;

use crate::text::quote::quoted;

/// What names stand for.
pub(crate) type Bindings<'a> = BTreeMap<&'a str, &'a str>;

/// Functions, with how many operands they take.
const FUNCTIONS: [(&str, usize); 4] = [("cdiv", 2), ("next_power_of_2", 1), ("min", 2), ("max", 2)];

/// How many bytes of a text are letters, digits and `_`.
pub(crate) fn name_length(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(text.len())
}

/// The text with `$NAME` and `$(..)` replaced by what they come to.
///
/// # Errors
///
/// A `$` in front of no name, or of one that has no value; what [`evaluate`] refuses.
pub(crate) fn replace(text: &str, values: &Bindings<'_>) -> Result<String, String> {
    let mut replaced = String::with_capacity(text.len());
    let mut pieces = text.split('$');
    replaced += pieces.next().unwrap_or_default();
    for piece in pieces {
        let (value, rest) = match piece.strip_prefix('(').and_then(closed) {
            Some((inner, rest)) => (evaluate(inner, values)?, rest),
            None => {
                let (name, rest) = piece.split_at(name_length(piece));
                (look_up(name, values)?.to_owned(), rest)
            }
        };
        replaced += &value;
        replaced += rest;
    }
    Ok(replaced)
}

/// What stands in front of the parenthesis that closes one, and what behind it.
fn closed(text: &str) -> Option<(&str, &str)> {
    let mut open = 1;
    let at = text.find(|c| {
        open += i32::from(c == '(') - i32::from(c == ')');
        open == 0
    })?;
    Some((&text[..at], &text[at + 1..]))
}

fn look_up<'a>(name: &str, values: &Bindings<'a>) -> Result<&'a str, String> {
    if name.is_empty() {
        let problem = "a name or a number is missing: expressions are those of `$(..)`, with names and no `$` of their own";
        return Err(problem.to_owned());
    }
    values.get(name).copied().ok_or_else(|| {
        let known: Vec<&str> = values.keys().copied().collect();
        let (name, known) = (quoted(name), known.join(", "));
        format!("nothing says what `{name}` is; there is {known}")
    })
}

/// The value of a name, whatever it is; or what sums, differences, products and quotients of whole numbers come to, with
/// parentheses and `cdiv(a, b)`, `next_power_of_2(a)`, `min(a, b)`, `max(a, b)`. A quotient by `/` leaves no remainder.
pub(crate) fn evaluate(text: &str, values: &Bindings<'_>) -> Result<String, String> {
    if let Some(value) = values.get(text.trim()) {
        return Ok((*value).to_owned());
    }
    let mut reader = Reader { rest: text, values };
    let sum = reader.sum(0)?;
    if !reader.rest.trim_start().is_empty() {
        let rest = quoted(reader.rest.trim());
        return Err(format!("expected an operator, found `{rest}` in $({text})"));
    }
    let sum = sum.ok_or_else(|| format!("$({text}) is no whole number of 64 bits"))?;
    Ok(sum.to_string())
}

/// Reads an expression from its start. Numbers are none where they do not fit, or do not divide.
struct Reader<'t> {
    rest: &'t str,
    values: &'t Bindings<'t>,
}

/// Parentheses within each other.
const DEPTH: u32 = 64;

impl Reader<'_> {
    fn accept(&mut self, wanted: char) -> bool {
        let rest = self.rest.trim_start().strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        match self.accept(wanted) {
            true => Ok(()),
            false => {
                let rest = quoted(self.rest.trim());
                Err(format!("expected `{wanted}`, found `{rest}`"))
            }
        }
    }

    fn sum(&mut self, depth: u32) -> Result<Option<i64>, String> {
        let mut sum = self.product(depth)?;
        loop {
            let apply = match () {
                () if self.accept('+') => i64::checked_add,
                () if self.accept('-') => i64::checked_sub,
                () => return Ok(sum),
            };
            let other = self.product(depth)?;
            sum = sum.zip(other).and_then(|(a, b)| apply(a, b));
        }
    }

    fn product(&mut self, depth: u32) -> Result<Option<i64>, String> {
        let exact = |a: i64, b: i64| (a.checked_rem(b)? == 0).then(|| a / b);
        let mut product = self.factor(depth)?;
        loop {
            let apply: fn(i64, i64) -> Option<i64> = match () {
                () if self.accept('*') => i64::checked_mul,
                () if self.accept('/') => exact,
                () => return Ok(product),
            };
            let other = self.factor(depth)?;
            product = product.zip(other).and_then(|(a, b)| apply(a, b));
        }
    }

    fn factor(&mut self, depth: u32) -> Result<Option<i64>, String> {
        if depth > DEPTH {
            return Err("parentheses nest too deep".to_owned());
        }
        if self.accept('(') {
            let sum = self.sum(depth + 1)?;
            self.expect(')')?;
            return Ok(sum);
        }
        let text = self.rest.trim_start();
        let (word, rest) = text.split_at(name_length(text));
        self.rest = rest;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let number = word.parse();
            return number
                .map(Some)
                .map_err(|_| format!("`{}` is no whole number of 64 bits", quoted(word)));
        }
        let function = FUNCTIONS.iter().find(|(name, _)| *name == word);
        if let Some(&(name, count)) = function
            && self.accept('(')
        {
            let mut operands = vec![self.sum(depth + 1)?];
            while operands.len() < count {
                self.expect(',')?;
                operands.push(self.sum(depth + 1)?);
            }
            self.expect(')')?;
            let operands: Option<Vec<i64>> = operands.into_iter().collect();
            return Ok(operands.and_then(|operands| apply(name, &operands)));
        }
        let found = look_up(word, self.values)?;
        let number = found.parse::<i64>().map(Some);
        number.map_err(|_| format!("`{}` is {found}, no whole number", quoted(word)))
    }
}

fn apply(function: &str, operands: &[i64]) -> Option<i64> {
    match (function, operands) {
        ("min", &[a, b]) => Some(a.min(b)),
        ("max", &[a, b]) => Some(a.max(b)),
        ("next_power_of_2", &[a]) => {
            let power = u64::try_from(a).ok()?.checked_next_power_of_two()?;
            i64::try_from(power).ok()
        }
        ("cdiv", &[a, b]) if b > 0 => {
            let quotient = a.div_euclid(b);
            quotient.checked_add(i64::from(a.rem_euclid(b) != 0))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parentheses_are_names_and_arithmetic() {
        let values = BTreeMap::from([("N", "12"), ("M", "4"), ("type", "f32")]);
        for (text, made) in [
            ("$(N)x$(M)", Ok("12x4")),
            ("$(type)s", Ok("f32s")),
            ("$(6*N) $(N*M/2) $(N/M*5) $(7)", Ok("72 24 15 7")),
            ("$(N-1) $(N+2*M-N/3) $(M-N)", Ok("11 16 -8")),
            ("$((N + 1) * (M - 1)) $(((N)))", Ok("39 12")),
            ("$(cdiv(N,5)) $(cdiv(N,M)*2) $(cdiv(N-13,4))", Ok("3 6 0")),
            (
                "$(next_power_of_2(N)) $(min(N,M)) $(max(N, 2*N))",
                Ok("16 4 24"),
            ),
            ("$(N/5)", Err("no whole number of 64 bits")),
            ("$(8*$N)", Err("a name or a number is missing")),
            ("$(8*)", Err("a name or a number is missing")),
            ("$(N/0)", Err("no whole number of 64 bits")),
            ("$(cdiv(N,0))", Err("no whole number of 64 bits")),
            ("$(next_power_of_2(0-1))", Err("no whole number of 64 bits")),
            (
                "$(N*4000000000*4000000000)",
                Err("no whole number of 64 bits"),
            ),
            ("$(99999999999999999999)", Err("no whole number of 64 bits")),
            ("$(2*type)", Err("is f32, no whole number")),
            ("$(2*K)", Err("there is M, N, type")),
            ("$()", Err("a name or a number is missing")),
            ("$(N", Err("a name or a number is missing")),
            ("$(cdiv(N))", Err("expected `,`")),
            ("$(cdiv(N,M,2))", Err("expected `)`")),
            ("$(N M)", Err("expected an operator, found `M`")),
        ] {
            match (replace(text, &values), made) {
                (Ok(found), Ok(made)) => assert_eq!(found, made),
                (Err(message), Err(part)) => {
                    assert!(message.contains(part), "{text}: {message}");
                }
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
        let deep = format!("$({}1{})", "(".repeat(100), ")".repeat(100));
        let refused = replace(&deep, &values).expect_err("it is too deep");
        assert!(refused.contains("too deep"), "{refused}");
    }
}
