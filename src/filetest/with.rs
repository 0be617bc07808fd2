//! Files that stand for several: `; with:` lines give values to `$` names.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::Failure;
use crate::text::quote::quoted;

/// A text as one of its `; with:` lines makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant<'a> {
    /// The words of that line; empty if the text has none.
    pub label: String,
    /// The text, line for line that of the file.
    pub text: Cow<'a, str>,
}

/// The texts that a file stands for: for each `; with: NAME=VALUE ..` line one, in which `$NAME` is `VALUE` everywhere, and
/// `$(2*NAME/OTHER-1)` what it comes to. A text without such lines stands for itself, and a `$` in it is a `$`.
///
/// # Errors
///
/// A line that gives no value, one name twice, or other names than the first; a `$` in front of no name, or of one that no line has;
/// parentheses with something else than sums, differences, products and quotients of whole numbers.
pub fn variants(text: &str) -> Result<Vec<Variant<'_>>, Failure> {
    let mut with: Vec<(String, BTreeMap<&str, &str>)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some(words) = line.trim_start().strip_prefix("; with:") else {
            continue;
        };
        let values = values(words).map_err(|message| Failure::new(number, message))?;
        if let Some((_, first)) = with.first()
            && !first.keys().eq(values.keys())
        {
            let message = "every `; with:` line has the names of the first";
            return Err(Failure::new(number, message));
        }
        with.push((words.trim().to_owned(), values));
    }
    if with.is_empty() {
        return Ok(vec![Variant {
            label: String::new(),
            text: Cow::Borrowed(text),
        }]);
    }
    let variant = |(label, values)| {
        let text = Cow::Owned(replace(text, &values)?);
        Ok(Variant { label, text })
    };
    with.into_iter().map(variant).collect()
}

fn values(words: &str) -> Result<BTreeMap<&str, &str>, String> {
    let mut values = BTreeMap::new();
    for word in words.split_whitespace() {
        let (name, value) = word
            .split_once('=')
            .filter(|(name, _)| !name.is_empty() && name_length(name) == name.len())
            .ok_or_else(|| format!("`{}` is no NAME=VALUE", quoted(word)))?;
        if values.insert(name, value).is_some() {
            return Err(format!("`{}` has two values", quoted(name)));
        }
    }
    if values.is_empty() {
        return Err("expected NAME=VALUE ..".to_owned());
    }
    Ok(values)
}

/// How many bytes of a text are letters, digits and `_`.
fn name_length(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(text.len())
}

fn replace(text: &str, values: &BTreeMap<&str, &str>) -> Result<String, Failure> {
    let mut replaced = String::with_capacity(text.len());
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        let mut pieces = line.split('$');
        replaced += pieces.next().unwrap_or_default();
        for piece in pieces {
            let made = match piece.strip_prefix('(').and_then(|p| p.split_once(')')) {
                Some((inner, rest)) => evaluate(inner, values).map(|value| (value, rest)),
                None => {
                    let (name, rest) = piece.split_at(name_length(piece));
                    look_up(name, values).map(|value| (value.to_owned(), rest))
                }
            };
            let (value, rest) = made.map_err(|message| Failure::new(number, message))?;
            replaced += &value;
            replaced += rest;
        }
    }
    Ok(replaced)
}

fn look_up<'a>(name: &str, values: &BTreeMap<&str, &'a str>) -> Result<&'a str, String> {
    values.get(name).copied().ok_or_else(|| {
        let known: Vec<&str> = values.keys().copied().collect();
        let (name, known) = (quoted(name), known.join(", "));
        format!("no `; with:` line says what `{name}` is; it says {known}")
    })
}

/// A name, or sums and differences of products of whole numbers and names that mean some.
fn evaluate(inner: &str, values: &BTreeMap<&str, &str>) -> Result<String, String> {
    if let Some(value) = values.get(inner) {
        return Ok((*value).to_owned());
    }
    let mut sum: Option<i64> = Some(0);
    for (sign, term) in terms(inner, ['+', '-']) {
        let mut product: Option<i64> = Some(1);
        for (sign, word) in terms(term, ['*', '/']) {
            let number = match word.parse() {
                Ok(number) => number,
                Err(_) => {
                    let found = look_up(word, values)?;
                    let number = found.parse::<i64>();
                    number.map_err(|_| format!("`{}` is {found}, no whole number", quoted(word)))?
                }
            };
            product = product.and_then(|product| match sign {
                '/' => (product.checked_rem(number)? == 0).then(|| product / number),
                _ => product.checked_mul(number),
            });
        }
        sum = sum.zip(product).and_then(|(sum, product)| match sign {
            '-' => sum.checked_sub(product),
            _ => sum.checked_add(product),
        });
    }
    let sum = sum.ok_or_else(|| format!("$({inner}) is no whole number of 64 bits"))?;
    Ok(sum.to_string())
}

/// The pieces of a text between these signs, each with the one in front of it; the first has the first of them.
fn terms(text: &str, signs: [char; 2]) -> impl Iterator<Item = (char, &str)> {
    let mut starts = vec![(signs[0], 0)];
    starts.extend(text.match_indices(signs).map(|(at, sign)| {
        let sign = if sign.starts_with(signs[0]) {
            signs[0]
        } else {
            signs[1]
        };
        (sign, at + 1)
    }));
    let ends = text
        .match_indices(signs)
        .map(|(at, _)| at)
        .chain([text.len()]);
    let ends: Vec<usize> = ends.collect();
    starts
        .into_iter()
        .zip(ends)
        .map(move |((sign, from), to)| (sign, &text[from..to]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stands_for_itself_or_for_several() {
        let plain = "kernel @k() { $N }\n";
        let itself = variants(plain).expect("a text");
        assert_eq!(itself.len(), 1);
        assert_eq!((&*itself[0].label, &*itself[0].text), ("", plain));

        let text = "; with: N=16 type=f32\n  ; with: type=i8  N=4\nx$type[$N,$N] ;$N\n";
        let both = variants(text).expect("a text");
        let last = |variant: &Variant<'_>| variant.text.lines().last().map(str::to_owned);
        assert_eq!(
            both.iter().map(|v| &*v.label).collect::<Vec<_>>(),
            ["N=16 type=f32", "type=i8  N=4"]
        );
        assert_eq!(last(&both[0]).as_deref(), Some("xf32[16,16] ;16"));
        assert_eq!(last(&both[1]).as_deref(), Some("xi8[4,4] ;4"));
        assert_eq!(both[0].text.lines().count(), text.lines().count());
    }

    #[test]
    fn parentheses_are_names_and_sums_of_products() {
        let values = BTreeMap::from([("N", "12"), ("M", "4"), ("type", "f32")]);
        for (text, made) in [
            ("$(N)x$(M)", Ok("12x4")),
            ("$(type)s", Ok("f32s")),
            ("$(6*N) $(N*M/2) $(N/M*5) $(7)", Ok("72 24 15 7")),
            ("$(N-1) $(N+2*M-N/3) $(M-N)", Ok("11 16 -8")),
            ("$(N/5)", Err("no whole number of 64 bits")),
            ("$(N/0)", Err("no whole number of 64 bits")),
            (
                "$(N*4000000000*4000000000)",
                Err("no whole number of 64 bits"),
            ),
            ("$(2*type)", Err("is f32, no whole number")),
            ("$(2*K)", Err("it says M, N, type")),
            ("$(N*)", Err("it says M, N, type")),
            ("$()", Err("it says M, N, type")),
            ("$(N", Err("it says M, N, type")),
        ] {
            match (replace(text, &values), made) {
                (Ok(found), Ok(made)) => assert_eq!(found, made),
                (Err(failure), Err(part)) => {
                    assert!(failure.message.contains(part), "{text}: {failure}");
                }
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (text, line, part) in [
            ("\n; with:\n", 2, "expected NAME=VALUE"),
            ("; with: N\n", 1, "is no NAME=VALUE"),
            ("; with: =3\n", 1, "is no NAME=VALUE"),
            ("; with: a-b=3\n", 1, "is no NAME=VALUE"),
            ("; with: N=1 N=2\n", 1, "has two values"),
            ("; with: N=1\n; with: M=2\n", 2, "names of the first"),
            ("; with: N=1\nx$M\n", 2, "it says N"),
            ("; with: N=1\nx$\n", 2, "it says N"),
        ] {
            let failure = variants(text).expect_err(text);
            assert_eq!(failure.pos.line, line, "{text}");
            assert!(failure.message.contains(part), "{text}: {failure}");
        }
    }
}
