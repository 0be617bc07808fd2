//! Texts made of values, as Python makes them: f-strings with conversions and formats, `%`, `str.format`.
//!
//! A format is `[[fill]align][sign][#][0][width][,|_][.precision][type]` (Python's "Format Specification Mini-Language").
//! What of it is not made here is an error and never left out: the types `n` and `c`, `#` of floats, and grouped digits behind zeros.

use super::constant::{as_float, as_int, display};
use super::value::Const;
use crate::limits::STRING_BYTES;

/// Most characters that one value is padded to, and most digits.
const MAX_WIDTH: usize = 1 << 10;

/// A value in Python's `repr`.
pub(crate) fn repr(c: &Const) -> String {
    let Const::Str(s) = c else { return display(c) };
    let quote = if s.contains('\'') && !s.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut text = String::from(quote);
    for c in s.chars() {
        match c {
            '\\' => text += "\\\\",
            '\n' => text += "\\n",
            '\r' => text += "\\r",
            '\t' => text += "\\t",
            c if c == quote => text.extend(['\\', c]),
            c if c.is_control() => text += &format!("\\x{:02x}", u32::from(c)),
            c => text.push(c),
        }
    }
    text.push(quote);
    text
}

/// A parsed format.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Spec {
    fill: char,
    /// `<`, `>`, `^`, or `=`: between the sign and the digits.
    align: Option<char>,
    sign: char,
    alternate: bool,
    width: usize,
    grouping: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

impl Spec {
    fn parse(text: &str) -> Result<Spec, String> {
        let chars: Vec<char> = text.chars().collect();
        let mut spec = Spec {
            fill: ' ',
            align: None,
            sign: '-',
            alternate: false,
            width: 0,
            grouping: None,
            precision: None,
            kind: None,
        };
        let is_align = |c: Option<&char>| c.is_some_and(|c| matches!(c, '<' | '>' | '^' | '='));
        let mut at = 0;
        if is_align(chars.get(1)) {
            (spec.fill, spec.align, at) = (chars[0], Some(chars[1]), 2);
        } else if is_align(chars.first()) {
            (spec.align, at) = (Some(chars[0]), 1);
        }
        let accept = |at: &mut usize, wanted: &[char]| {
            let found = chars.get(*at).copied().filter(|c| wanted.contains(c));
            *at += usize::from(found.is_some());
            found
        };
        spec.sign = accept(&mut at, &['+', '-', ' ']).unwrap_or('-');
        spec.alternate = accept(&mut at, &['#']).is_some();
        if accept(&mut at, &['0']).is_some() && spec.align.is_none() {
            (spec.fill, spec.align) = ('0', Some('='));
        }
        let number = |at: &mut usize| -> Result<Option<usize>, String> {
            let start = *at;
            while chars.get(*at).is_some_and(char::is_ascii_digit) {
                *at += 1;
            }
            if *at == start {
                return Ok(None);
            }
            let digits: String = chars[start..*at].iter().collect();
            match digits.parse() {
                Ok(n) if n <= MAX_WIDTH => Ok(Some(n)),
                _ => Err(format!("the format is wider than {MAX_WIDTH}")),
            }
        };
        spec.width = number(&mut at)?.unwrap_or(0);
        if let Some(&c @ (',' | '_')) = chars.get(at) {
            (spec.grouping, at) = (Some(c), at + 1);
        }
        if chars.get(at) == Some(&'.') {
            at += 1;
            let digits = number(&mut at)?;
            spec.precision = Some(digits.ok_or("the format lacks its precision")?);
        }
        if let Some(&c) = chars.get(at) {
            (spec.kind, at) = (Some(c), at + 1);
        }
        if at < chars.len() {
            return Err(format!("`{text}` is no format"));
        }
        Ok(spec)
    }

    /// The sign that a number is written with.
    fn sign_of(&self, negative: bool) -> &'static str {
        match (negative, self.sign) {
            (true, _) => "-",
            (false, '+') => "+",
            (false, ' ') => " ",
            (false, _) => "",
        }
    }

    /// Pads a text, or a number whose sign or base stands in front of its digits.
    fn pad(&self, front: &str, body: &str, align: char) -> String {
        let lacks = self
            .width
            .saturating_sub(front.chars().count() + body.chars().count());
        let fill = |n: usize| std::iter::repeat_n(self.fill, n).collect::<String>();
        match self.align.unwrap_or(align) {
            '<' => format!("{front}{body}{}", fill(lacks)),
            '^' => format!(
                "{}{front}{body}{}",
                fill(lacks / 2),
                fill(lacks - lacks / 2)
            ),
            '=' => format!("{front}{}{body}", fill(lacks)),
            _ => format!("{}{front}{body}", fill(lacks)),
        }
    }
}

/// Digits with a separator between groups, counted from the right; what follows the digits stays.
fn group(text: &str, separator: Option<char>, size: usize) -> String {
    let Some(separator) = separator else {
        return text.to_owned();
    };
    let whole = text.find(|c: char| !c.is_ascii_alphanumeric());
    let (digits, rest) = text.split_at(whole.unwrap_or(text.len()));
    let mut grouped = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(size) {
            grouped.push(separator);
        }
        grouped.push(c);
    }
    grouped + rest
}

/// The value in a format, as `format(value, spec)` has it.
pub(crate) fn format_value(c: &Const, spec: &str) -> Result<String, String> {
    if spec.is_empty() {
        return Ok(display(c));
    }
    let text = spec;
    let spec = Spec::parse(text)?;
    if spec.grouping.is_some() && spec.fill == '0' && spec.width > 0 {
        return Err(format!(
            "`{text}` fills with zeros and groups digits, which is not made here"
        ));
    }
    let wrong = |what: &str| Err(format!("{what} has no format `{text}`"));
    match (c, spec.kind) {
        (Const::Str(s), None | Some('s')) => {
            if spec.align == Some('=') || spec.grouping.is_some() || spec.alternate {
                return wrong("a string");
            }
            let shown: String = match spec.precision {
                Some(most) => s.chars().take(most).collect(),
                None => s.to_string(),
            };
            Ok(spec.pad("", &shown, '<'))
        }
        (Const::Str(_), _) => wrong("a string"),
        (Const::None, _) => wrong("None"),
        (Const::Bool(_) | Const::Int(_), None | Some('d' | 'x' | 'X' | 'o' | 'b')) => {
            if spec.precision.is_some() {
                return wrong("an integer");
            }
            let n = as_int(c).unwrap_or_default();
            Ok(integer(&spec, n))
        }
        (Const::Bool(_) | Const::Int(_) | Const::Float(_), kind) => {
            if spec.alternate
                || !matches!(kind, None | Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%'))
            {
                return wrong("a number");
            }
            let x = as_float(c).unwrap_or_default();
            let (negative, size) = (x.is_sign_negative() && !x.is_nan(), x.abs());
            let body = float(&spec, size);
            let body = group(&body, spec.grouping, 3);
            Ok(spec.pad(spec.sign_of(negative), &body, '>'))
        }
    }
}

fn integer(spec: &Spec, n: i128) -> String {
    let size = n.unsigned_abs();
    let (base, digits, groups) = match spec.kind {
        Some('x') => ("0x", format!("{size:x}"), 4),
        Some('X') => ("0X", format!("{size:X}"), 4),
        Some('o') => ("0o", format!("{size:o}"), 4),
        Some('b') => ("0b", format!("{size:b}"), 4),
        _ => ("", size.to_string(), 3),
    };
    let base = if spec.alternate { base } else { "" };
    let front = format!("{}{base}", spec.sign_of(n < 0));
    spec.pad(&front, &group(&digits, spec.grouping, groups), '>')
}

/// A float that is not negative.
fn float(spec: &Spec, x: f64) -> String {
    let lower = |text: String| match spec.kind {
        Some('E' | 'F' | 'G') => text.to_uppercase(),
        _ => text,
    };
    if !x.is_finite() {
        let name = if x.is_nan() { "nan" } else { "inf" };
        return lower(format!(
            "{name}{}",
            if spec.kind == Some('%') { "%" } else { "" }
        ));
    }
    let precision = spec.precision.unwrap_or(6);
    lower(match spec.kind {
        Some('f' | 'F') => format!("{x:.precision$}"),
        Some('%') => format!("{:.precision$}%", x * 100.0),
        Some('e' | 'E') => exponent(x, precision),
        Some(_) => general(x, precision.max(1), false),
        // Without a type as `str` has it, or as `g` with at least one digit behind the point.
        None => match spec.precision {
            None => super::constant::repr(x),
            Some(_) => general(x, precision.max(1), true),
        },
    })
}

/// `d.ddde+dd` with this many digits behind the point.
fn exponent(x: f64, precision: usize) -> String {
    let text = format!("{x:.precision$e}");
    match text.split_once('e') {
        Some((digits, power)) => {
            let (sign, size) = match power.strip_prefix('-') {
                Some(size) => ('-', size),
                None => ('+', power),
            };
            format!("{digits}e{sign}{size:0>2}")
        }
        None => text,
    }
}

/// This many digits that count, without zeros at the end, with an exponent where it is large or small.
fn general(x: f64, digits: usize, point: bool) -> String {
    let scientific = exponent(x, digits - 1);
    let power: i32 = scientific
        .split_once('e')
        .and_then(|(_, power)| power.parse().ok())
        .unwrap_or(0);
    let strip = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    // Without a type the exponent comes one digit earlier.
    let most = digits as i32 - i32::from(point);
    if power < -4 || power >= most {
        let (number, tail) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
        return format!("{}e{tail}", strip(number));
    }
    let behind = (digits as i32 - 1 - power).max(0) as usize;
    let text = strip(&format!("{x:.behind$}"));
    if point && !text.contains('.') {
        return format!("{text}.0");
    }
    text
}

/// `text % values`.
pub(crate) fn percent(text: &str, values: &[Const]) -> Result<String, String> {
    let mut result = String::new();
    let mut values = values.iter();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '%' {
            result.push(c);
            continue;
        }
        let mut flags = String::new();
        while let Some(&c) = rest.peek() {
            rest.next();
            flags.push(c);
            if c.is_ascii_alphabetic() || c == '%' {
                break;
            }
        }
        let kind = flags.pop().ok_or("the format ends behind `%`")?;
        if kind == '%' {
            result.push('%');
            continue;
        }
        let value = values.next().ok_or("there are fewer values than formats")?;
        let whole = || match value {
            Const::Float(x) if x.is_finite() && x.abs() < 1e38 => Ok(Const::Int(x.trunc() as i128)),
            c => as_int(c)
                .map(Const::Int)
                .ok_or_else(|| format!("`%{kind}` needs a number")),
        };
        let (value, kind) = match kind {
            'd' | 'i' | 'u' => (whole()?, "d"),
            'x' => (whole()?, "x"),
            'X' => (whole()?, "X"),
            'o' => (whole()?, "o"),
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' if as_float(value).is_none() => {
                return Err(format!("`%{kind}` needs a number"));
            }
            'e' => (value.clone(), "e"),
            'E' => (value.clone(), "E"),
            'f' => (value.clone(), "f"),
            'F' => (value.clone(), "F"),
            'g' => (value.clone(), "g"),
            'G' => (value.clone(), "G"),
            's' => (Const::Str(display(value).into()), "s"),
            'r' | 'a' => (Const::Str(repr(value).into()), "s"),
            other => return Err(format!("there is no format `%{other}`")),
        };
        // `-` aligns to the left, and everything else to the right.
        let (left, flags) = match flags.contains('-') {
            true => ("<", flags.replace(['-', '0'], "")),
            false if kind == "s" => (">", flags),
            false => ("", flags),
        };
        result += &format_value(&value, &format!("{left}{flags}{kind}"))?;
        if result.len() > STRING_BYTES {
            return Err("the string is too long".to_owned());
        }
    }
    match values.next() {
        Some(_) => Err("there are more values than formats".to_owned()),
        None => Ok(result),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(spec: &str, n: i128) -> String {
        format_value(&Const::Int(n), spec).expect(spec)
    }

    fn number(spec: &str, x: f64) -> String {
        format_value(&Const::Float(x), spec).expect(spec)
    }

    // What CPython 3.11 writes.
    #[test]
    fn integers_are_written_as_python_does() {
        for (spec, n, text) in [
            ("d", -42, "-42"),
            ("5", 42, "   42"),
            ("<5", 42, "42   "),
            ("^6", 42, "  42  "),
            ("*>5", 42, "***42"),
            ("05", -42, "-0042"),
            ("+", 42, "+42"),
            ("x", 255, "ff"),
            ("#x", 255, "0xff"),
            ("#06x", 255, "0x00ff"),
            ("08b", 37, "00100101"),
            ("#o", 8, "0o10"),
            (",", 1_234_567, "1,234,567"),
            ("_x", 0x1234_5678, "1234_5678"),
            (".1f", 3, "3.0"),
        ] {
            assert_eq!(int(spec, n), text, "{spec}");
        }
    }

    #[test]
    fn floats_are_written_as_python_does() {
        for (spec, x, text) in [
            (".3f", 2.0 / 3.0, "0.667"),
            ("8.2f", -1.5, "   -1.50"),
            (".2e", 12345.678, "1.23e+04"),
            ("g", 0.0001, "0.0001"),
            ("g", 1e-5, "1e-05"),
            ("g", 1e6, "1e+06"),
            ("g", 123456.0, "123456"),
            (".3g", 2.5, "2.5"),
            (".3", 1234.5, "1.23e+03"),
            (".6", 12.0, "12.0"),
            (".4", 1000.0, "1e+03"),
            (".1", 1.0, "1e+00"),
            (".1", 0.05, "0.05"),
            ("", 1.0, "1.0"),
            ("6", 1.5, "   1.5"),
            (".1%", 0.256, "25.6%"),
            (",.2f", 1234567.891, "1,234,567.89"),
            ("f", f64::INFINITY, "inf"),
            ("F", f64::NAN, "NAN"),
            ("06.1f", -2.25, "-002.2"),
        ] {
            assert_eq!(number(spec, x), text, "{spec}");
        }
    }

    #[test]
    fn texts_are_cut_and_padded() {
        let text = |spec| format_value(&Const::Str("relu".into()), spec);
        assert_eq!(text(">6").as_deref(), Ok("  relu"));
        assert_eq!(text(".2").as_deref(), Ok("re"));
        assert_eq!(text("-^8s").as_deref(), Ok("--relu--"));
        assert!(text("d").is_err());
        assert!(format_value(&Const::Int(1), "n").is_err());
        assert!(format_value(&Const::Int(1), "99999999").is_err());
        assert!(format_value(&Const::None, ">4").is_err());
        assert_eq!(repr(&Const::Str("it's \"\n".into())), r#"'it\'s "\n'"#);
    }

    #[test]
    fn percent_takes_its_values_in_order() {
        let values = [Const::Int(5), Const::Str("a".into()), Const::Float(0.5)];
        let text = percent("%03d|%-3s|%5.2f|%%", &values);
        assert_eq!(text.as_deref(), Ok("005|a  | 0.50|%"));
        assert_eq!(percent("%x %r", &values[..2]).as_deref(), Ok("5 'a'"));
        assert!(percent("%d", &[]).is_err());
        assert!(percent("%d", &values).is_err());
        assert!(percent("%d", &values[1..2]).is_err());
        assert!(percent("%", &[]).is_err());
    }
}
