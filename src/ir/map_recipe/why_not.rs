//! Why arguments allow no map, in words.

use super::{HostNumber, MapRecipe, NumberOp};

/// What a recipe is evaluated for, and how it is told.
#[derive(Clone, Copy)]
pub struct MapArguments<'a> {
    /// The kernel's parameters of integer type, sign-extended.
    pub params: &'a dyn Fn(u32) -> Option<i64>,
    /// Their names.
    pub names: &'a dyn Fn(u32) -> String,
    /// The address of the parameter that the map is of.
    pub base: u64,
    /// The launch's programs.
    pub grid: [u32; 3],
}

impl MapRecipe {
    /// Why [`MapRecipe::resolve`] gives no map for these arguments: the first thing that does not hold; none where it gives one.
    pub fn why_not(&self, to: &MapArguments<'_>) -> Option<String> {
        let name = (to.names)(self.base);
        if let Err(problem) = self.check() {
            return Some(problem);
        }
        let values = self.values_of_parts(to.params, to.grid);
        let mut to = Told {
            to,
            parts: &self.parts,
            values: values.as_deref().unwrap_or_default(),
            texts: Vec::new(),
        };
        for part in &self.parts {
            let text = to.words(part);
            to.texts.push(text);
        }
        if let Some(condition) = to.failing(&self.condition) {
            return Some(condition);
        }
        let bytes = i64::from(self.elem.bytes());
        let offset = to.eval(&self.offset).and_then(|n| n.checked_mul(bytes));
        let base = offset.and_then(|offset| to.to.base.checked_add_signed(offset));
        if !base.is_some_and(|base| base.is_multiple_of(16)) {
            return Some(format!("`{name}` does not start at a multiple of 16 bytes"));
        }
        for extent in &self.extents {
            if to.eval(extent).and_then(super::extent).is_none() {
                return Some(format!(
                    "the extent {} is not between 1 and 2^32",
                    to.shown(extent)
                ));
            }
        }
        for stride in &self.strides {
            let taken = to.eval(stride).and_then(|n| super::stride(n, bytes));
            if taken.is_none() {
                let shown = to.shown(stride);
                return Some(format!(
                    "the stride {shown} of `{name}`, {bytes} bytes each, is no multiple of 16 bytes below 2^40"
                ));
            }
        }
        None
    }
}

/// Letters of a number from which on its parts are told by what they are.
const MAX_LETTERS: usize = 120;

/// The arguments, with the parts that numbers are made of.
struct Told<'a> {
    to: &'a MapArguments<'a>,
    parts: &'a [HostNumber],
    /// None where one of them has no result.
    values: &'a [i64],
    /// As one writes them, and whether each is an operation.
    texts: Vec<(String, bool)>,
}

impl Told<'_> {
    fn eval(&self, number: &HostNumber) -> Option<i64> {
        number.eval(self.to.params, self.to.grid, self.values)
    }

    /// A number with what it is for the arguments.
    fn shown(&self, number: &HostNumber) -> String {
        let text = self.words(number).0;
        match (number, self.eval(number)) {
            (HostNumber::Const(_), _) => text,
            (_, Some(is)) => format!("`{text}` = {is}"),
            (_, None) => format!("`{text}`, which overflows,"),
        }
    }

    /// The first part of a conjunction that does not hold, with its numbers.
    fn failing(&self, condition: &HostNumber) -> Option<String> {
        if self.eval(condition).is_some_and(|holds| holds != 0) {
            return None;
        }
        let (op, parts) = match condition {
            HostNumber::Part(index) => return self.failing(self.parts.get(*index as usize)?),
            HostNumber::Op(op, parts) => (op, parts),
            _ => return Some("they are never made".to_owned()),
        };
        let [a, b] = &**parts;
        if *op == NumberOp::And {
            return self.failing(a).or_else(|| self.failing(b));
        }
        let text = self.words(condition).0;
        match (self.eval(a), self.eval(b)) {
            (Some(x), Some(y)) => {
                let is_plain = |number: &HostNumber| matches!(number, HostNumber::Const(_));
                let values: Vec<String> = [(a, x), (b, y)]
                    .into_iter()
                    .filter(|(number, _)| !is_plain(number))
                    .map(|(number, is)| format!("`{}` is {is}", self.words(number).0))
                    .collect();
                Some(format!(
                    "`{text}` does not hold, as {}",
                    values.join(" and ")
                ))
            }
            _ => Some(format!("a number of `{text}` overflows")),
        }
    }

    /// A number as one writes it, and whether it is an operation, which stands in parentheses within others.
    fn words(&self, number: &HostNumber) -> (String, bool) {
        let (op, parts) = match number {
            HostNumber::Const(number) => return (number.to_string(), false),
            HostNumber::Param(index) => return ((self.to.names)(*index), false),
            HostNumber::Programs(axis) => return (format!("num_programs({axis})"), false),
            HostNumber::Part(index) => return self.words_of_part(*index),
            HostNumber::Op(op, parts) => (op, parts),
        };
        let [a, b] = &**parts;
        let is_comparison = matches!(
            op,
            NumberOp::Eq | NumberOp::Ne | NumberOp::Lt | NumberOp::Le
        );
        let inner = |number: &HostNumber| match self.words(number) {
            (text, true) if !is_comparison => format!("({text})"),
            (text, _) => text,
        };
        match (op, b) {
            // A number of few bits without sign.
            (NumberOp::Add, HostNumber::Op(NumberOp::Mul, more)) if is_sign(&more[0], a) => {
                return self.words(a);
            }
            (NumberOp::Add, HostNumber::Const(c)) if *c < 0 => {
                return (format!("{} - {}", inner(a), c.unsigned_abs()), true);
            }
            _ => {}
        }
        let infix = match op {
            // Checks of how many bits a number takes are no part of it.
            NumberOp::Signed | NumberOp::Unsigned => return self.words(a),
            NumberOp::CeilDiv | NumberOp::Min | NumberOp::Max => {
                let call = match op {
                    NumberOp::CeilDiv => "cdiv",
                    NumberOp::Min => "min",
                    _ => "max",
                };
                let (a, b) = (self.words(a).0, self.words(b).0);
                return (format!("{call}({a}, {b})"), false);
            }
            NumberOp::Add => "+",
            NumberOp::Sub => "-",
            NumberOp::Mul => "*",
            NumberOp::Div => "//",
            NumberOp::And => "and",
            NumberOp::Or => "or",
            NumberOp::Eq => "==",
            NumberOp::Ne => "!=",
            NumberOp::Lt => "<",
            NumberOp::Le => "<=",
        };
        (format!("{} {infix} {}", inner(a), inner(b)), true)
    }

    /// A part as one writes it, or what it is where that would be long.
    fn words_of_part(&self, index: u32) -> (String, bool) {
        let index = index as usize;
        match (self.texts.get(index), self.values.get(index)) {
            (Some(known), _) if known.0.len() <= MAX_LETTERS => known.clone(),
            (_, Some(value)) => (value.to_string(), false),
            _ => (format!("n{index}"), false),
        }
    }
}

/// Whether a number is 1 where another one is negative.
fn is_sign(number: &HostNumber, of: &HostNumber) -> bool {
    match number {
        HostNumber::Op(NumberOp::Lt, parts) => parts[0] == *of && parts[1] == HostNumber::Const(0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of few bits without sign are told by their names, without what makes them of those with a sign.
    #[test]
    fn numbers_without_sign_are_told_by_their_names() {
        let recipe: MapRecipe = "{base=p0, offset=0, elem=f16, extents=[64, 64], strides=[64], box=[8, 8], if=le(add(p1, mul(lt(p1, 0), 256)), 100)}"
            .parse()
            .expect("a recipe");
        let told = recipe.why_not(&MapArguments {
            params: &|_| Some(-56),
            names: &|_| "few".to_owned(),
            base: 0x1000,
            grid: [1; 3],
        });
        let expected = "`few <= 100` does not hold, as `few` is 200";
        assert_eq!(told.as_deref(), Some(expected));
    }

    #[test]
    fn what_does_not_hold_is_told_with_its_numbers() {
        let recipe: MapRecipe = "{base=p0, offset=mul(p4, 8), elem=f16, extents=[p1, p2], strides=[p3], box=[128, 64], swizzle=128, if=and(le(1, p1), le(signed(add(p2, -1), 32), 100))}"
            .parse()
            .expect("a recipe");
        let names = |index: u32| ["x", "m", "n", "pitch", "from"][index as usize].to_owned();
        let told = |base: u64, params: [i64; 4]| {
            let param = |index: u32| params.get((index as usize).wrapping_sub(1)).copied();
            let is_one = recipe.resolve(base, &param, [1; 3]).is_some();
            let to = MapArguments {
                params: &param,
                names: &names,
                base,
                grid: [1; 3],
            };
            let told = recipe.why_not(&to);
            assert_eq!(told.is_none(), is_one, "{told:?}");
            told.unwrap_or_default()
        };
        for (base, params, expected) in [
            (0x1000, [100, 72, 80, 2], ""),
            (
                0x1000,
                [0, 72, 80, 2],
                "`1 <= m` does not hold, as `m` is 0",
            ),
            (
                0x1000,
                [1, 102, 80, 2],
                "`n - 1 <= 100` does not hold, as `n - 1` is 101",
            ),
            (
                0x1000,
                [1, i64::MIN, 80, 2],
                "a number of `n - 1 <= 100` overflows",
            ),
            (
                0x1008,
                [1, 72, 80, 2],
                "`x` does not start at a multiple of 16 bytes",
            ),
            (
                0x1000,
                [1, 0, 80, 2],
                "the extent `n` = 0 is not between 1 and 2^32",
            ),
            (
                0x1000,
                [1, 72, 81, 2],
                "the stride `pitch` = 81 of `x`, 2 bytes each, is no multiple of 16 bytes below 2^40",
            ),
        ] {
            assert_eq!(told(base, params), expected);
        }
    }
}
