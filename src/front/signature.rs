//! What a kernel is specialised for: types, promises and constants of its arguments.
//!
//! The text form is Triton's: `"*fp32:16, i32, 1024"`, one entry for each parameter in order. `*` is a pointer (`*k` to
//! constant data), `:16` promises a multiple of 16 (bytes of a pointer), `:8`, `:4` and `:2` the like, `:1` the number one, which
//! makes it a constant. A
//! number, `True`, `False`, `None`, a quoted string or, for a `constexpr` parameter, the name of a type is a constant.
//! `tensordesc<fp16[64, 32]>` is a tensor descriptor that the host gives, with the extents of its blocks; behind it `:nan`
//! says that NaN stands outside of the tensor, behind an extent (`[64, 32:16]`) `:16` that the tensor's own along this dimension
//! is a multiple of 16. The kernel has for it, in this order, a pointer to the tensor (a multiple of
//! 16 bytes), the tensor's extents (i32, `NAME_size0` ..), and its strides but for the last, which is 1 (i64, in
//! elements, rows multiples of 16 bytes, `NAME_stride0` ..).
//!
//! `(*fp32:16, i32, 4)` is a tuple, `Stats(*fp32, i32)` an object of a class of the file: each element that is no constant
//! is a parameter of the kernel, `NAME_0` .. or `NAME_FIELD`, in order. `@relu` is a function of the file, for a
//! `constexpr`, and `@tl.exp` or `@libdevice.tanh` one of the library.
//!
//! What is promised counts also where the kernel says `do_not_specialize`: that asks a caller who decides from the
//! arguments' values to leave a parameter out, and who writes a signature has decided. So does `triton.tools.compile`.

use super::names::{closest, did_you_mean};
use super::types::{DType, Ty};
use super::value::Const;
use crate::limits::{SIGNATURE_ENTRIES, SIGNATURE_NESTING};

/// A constant that the caller gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// `None`.
    None,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// A float.
    Float(f64),
    /// A string.
    Str(String),
    /// A type, as in `fp16`.
    Type(DType),
    /// A function of the file, by name, or one of the library, with the name of its module: `tl.exp`.
    Function(String),
}

impl Constant {
    /// The constant that a text states.
    pub fn parse(text: &str) -> Option<Constant> {
        let text = text.trim();
        match text {
            "None" => return Some(Constant::None),
            "True" => return Some(Constant::Bool(true)),
            "False" => return Some(Constant::Bool(false)),
            _ => {}
        }
        for quote in ['"', '\''] {
            let inner = text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote));
            if let Some(inner) = inner.filter(|inner| !inner.contains(quote)) {
                return Some(Constant::Str(inner.to_owned()));
            }
        }
        if let Some(dtype) = DType::from_short_name(text) {
            return Some(Constant::Type(dtype));
        }
        if let Some(name) = text
            .strip_prefix('@')
            .filter(|name| name.split('.').all(is_identifier))
        {
            return Some(Constant::Function(name.to_owned()));
        }
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if is_whole(digits) {
            // Larger ones would lose digits as floats.
            return text.parse().ok().map(Constant::Int);
        }
        if digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            || matches!(digits, "inf" | "nan")
        {
            let number = text.parse().ok().map(Constant::Int);
            return number.or_else(|| text.parse().ok().map(Constant::Float));
        }
        None
    }

    /// The constant as a value of the language; a type is none, nor is a function.
    pub(crate) fn to_const(&self) -> Option<Const> {
        Some(match self {
            Constant::None => Const::None,
            Constant::Bool(b) => Const::Bool(*b),
            Constant::Int(n) => Const::Int(*n),
            Constant::Float(x) => Const::Float(*x),
            Constant::Str(s) => Const::Str(s.as_str().into()),
            Constant::Type(_) | Constant::Function(_) => return None,
        })
    }
}

/// Whether a text is an integer.
fn is_whole(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Whether a text can be a name.
fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
}

/// What one argument is.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgSpec {
    /// Known when the kernel is launched.
    Typed {
        /// Its type.
        ty: Ty,
        /// It is a multiple of this power of two (bytes of a pointer); 1 says nothing.
        divisible: u32,
    },
    /// Known when the kernel is compiled.
    Constant(Constant),
    /// A tensor descriptor; several parameters of the kernel.
    Descriptor(HostDescriptor),
    /// A tuple; a parameter of the kernel for each element that is no constant.
    Tuple(TupleArg),
}

/// A tuple among the arguments of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct TupleArg {
    /// The class of the file that it is an object of, if it has one.
    pub class: Option<String>,
    /// Its elements.
    pub items: Vec<ArgSpec>,
}

/// A tensor descriptor among the arguments of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostDescriptor {
    /// What the tensor is made of.
    pub dtype: DType,
    /// Extents of the blocks that are read and written.
    pub block: Vec<u64>,
    /// For each dimension a power of two that the tensor's extent is a multiple of; 1 says nothing.
    pub divisible: Vec<u32>,
    /// Whether NaN is read outside of the tensor, in place of zero.
    pub nan: bool,
}

/// Why a signature cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {index} of the signature, `{entry}`: {problem}")]
pub struct SignatureError {
    /// Which entry, first is 1.
    pub index: usize,
    /// The entry.
    pub entry: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}

/// Reads a signature.
pub fn parse_signature(text: &str) -> Result<Vec<ArgSpec>, SignatureError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let entries = split(text);
    let error = |index: usize, entry: &str, problem: &str| SignatureError {
        index: index + 1,
        entry: entry.chars().take(60).collect(),
        problem: problem.to_owned(),
    };
    if entries.len() > SIGNATURE_ENTRIES {
        return Err(error(
            SIGNATURE_ENTRIES,
            entries[SIGNATURE_ENTRIES],
            "there are too many entries",
        ));
    }
    let mut args = Vec::with_capacity(entries.len());
    for (i, entry) in entries.into_iter().enumerate() {
        let entry = entry.trim();
        let arg = parse_entry(entry, 0).map_err(|problem| error(i, entry, &problem))?;
        args.push(arg);
    }
    Ok(args)
}

/// The entries: what stands between commas that are not within quotes or brackets.
fn split(text: &str) -> Vec<&str> {
    let mut entries = Vec::new();
    let (mut start, mut quote, mut depth) = (0, None, 0usize);
    for (i, c) in text.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(q), c) if q == c => quote = None,
            (None, '[' | '(') => depth += 1,
            (None, ']' | ')') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                entries.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    entries.push(&text[start..]);
    entries
}

/// What arguments can be promised to be multiples of.
const MULTIPLES: [u32; 4] = [2, 4, 8, 16];

fn parse_entry(entry: &str, depth: usize) -> Result<ArgSpec, String> {
    if entry.is_empty() {
        return Err("it is empty".to_owned());
    }
    if let Some((class, inner)) = entry.strip_suffix(')').and_then(|e| e.split_once('('))
        && (class.is_empty() || is_identifier(class))
    {
        return parse_tuple(class, inner, depth).map(ArgSpec::Tuple);
    }
    if is_number(entry) {
        let number = Constant::parse(entry).map(ArgSpec::Constant);
        return number.ok_or_else(|| "the number needs more than 127 bits".to_owned());
    }
    if let Some(rest) = entry.strip_prefix("tensordesc<") {
        let descriptor = parse_descriptor(rest).map_err(str::to_owned)?;
        return Ok(ArgSpec::Descriptor(descriptor));
    }
    let quoted = entry.starts_with(['"', '\'']);
    let (name, promise) = match entry.split_once(':') {
        Some((name, promise)) if !quoted => (name.trim(), Some(promise.trim())),
        _ => (entry, None),
    };
    let ty = match name.strip_prefix('*') {
        Some(pointee) => Some(parse_pointer(pointee)?),
        None => DType::from_short_name(name).map(Ty::Num),
    };
    let Some(promise) = promise else {
        return match ty {
            Some(ty) => Ok(ArgSpec::Typed { ty, divisible: 1 }),
            None => Constant::parse(entry)
                .map(ArgSpec::Constant)
                .ok_or_else(|| unknown_entry(name)),
        };
    };
    match ty {
        Some(Ty::Num(d)) if d.is_int() && promise == "1" => Ok(ArgSpec::Constant(Constant::Int(1))),
        Some(ty) if ty.is_ptr() || ty.dtype().is_some_and(DType::is_int) => {
            let divisible = multiple(promise).ok_or_else(|| wrong_promise(name, promise, ty))?;
            Ok(ArgSpec::Typed { ty, divisible })
        }
        Some(_) => Err(format!(
            "promises are of integers and pointers, and `{name}` is a float: leave `:{promise}` out"
        )),
        None if Constant::parse(name).is_some() => Err(format!(
            "a constant has no promise: `{name}` alone is the constant, `i32:{promise}` a number known at launch with the promise"
        )),
        None => Err(unknown_entry(name)),
    }
}

/// What stands behind `*`.
fn parse_pointer(pointee: &str) -> Result<Ty, String> {
    let (constant, pointee) = match pointee.strip_prefix('k') {
        Some(pointee) => (true, pointee),
        None => (false, pointee),
    };
    if pointee.starts_with('*') {
        return Err(
            "there are no pointers to pointers; give `*i64` and cast what is loaded: `.to(tl.pointer_type(..))`".to_owned(),
        );
    }
    let to = DType::from_short_name(pointee).ok_or_else(|| {
        let pointer = match meant_type(pointee) {
            Some(meant) => did_you_mean(format!("*{meant}")),
            None => {
                let known: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.short_name()).collect();
                format!("there are {}", known.join(", "))
            }
        };
        format!("it is a pointer to an unknown type; {pointer}")
    })?;
    Ok(Ty::Ptr { to, constant })
}

/// Whether an entry is a number, with or without a sign.
fn is_number(entry: &str) -> bool {
    is_whole(entry.strip_prefix(['-', '+']).unwrap_or(entry))
}

/// That nothing has a name, and which type may have been meant.
fn unknown_entry(name: &str) -> String {
    let expected =
        "expected a type like `*fp32` or `i32`, a number, True, False, None or a quoted string";
    match meant_type(name) {
        Some(meant) => format!("{expected}; {}", did_you_mean(meant)),
        None => expected.to_owned(),
    }
}

/// The type that was meant by a name of another language, of the library, or one that is misspelled.
fn meant_type(name: &str) -> Option<&'static str> {
    let name = name.rsplit('.').next().unwrap_or(name).to_ascii_lowercase();
    let of_others = match &*name {
        "int" => Some("i32"),
        "long" => Some("i64"),
        "short" => Some("i16"),
        "char" => Some("i8"),
        "bool" => Some("i1"),
        "half" => Some("fp16"),
        "bfloat" => Some("bf16"),
        "float" => Some("fp32"),
        "double" => Some("fp64"),
        _ => None,
    };
    let mut all = DType::ALL.iter();
    let by_name = || {
        all.find(|dtype| dtype.name() == name)
            .map(|d| d.short_name())
    };
    let shorts = || DType::ALL.iter().map(|dtype| dtype.short_name());
    of_others
        .or_else(by_name)
        .or_else(|| closest(&name, shorts()))
}

/// What is wrong with what stands behind the type of an integer or a pointer.
fn wrong_promise(name: &str, promise: &str, ty: Ty) -> String {
    let one = match ty.is_ptr() {
        true => "",
        false => ", or `:1` for the number 1",
    };
    let forms = format!(
        "`:2`, `:4`, `:8` or `:16` (a multiple of so many{}){one}",
        match ty.is_ptr() {
            true => " bytes",
            false => "",
        }
    );
    match promise.split_once(':') {
        Some((first, _)) => format!(
            "one promise stands behind a type, as in `{name}:{}`; promises are {forms}",
            first.trim()
        ),
        None if promise == "1" => {
            format!("`:1` is the number 1, and `{name}` a pointer; promises are {forms}")
        }
        None => format!("`:{promise}` is no promise; promises are {forms}"),
    }
}

/// What a number or an address is a multiple of.
fn multiple(promise: &str) -> Option<u32> {
    promise.parse().ok().filter(|n| MULTIPLES.contains(n))
}

/// What stands between the brackets of a tuple.
fn parse_tuple(class: &str, inner: &str, depth: usize) -> Result<TupleArg, String> {
    if depth >= SIGNATURE_NESTING {
        return Err("tuples are nested too deeply".to_owned());
    }
    let mut items = Vec::new();
    if !inner.trim().is_empty() {
        let mut entries = split(inner);
        // `(i32,)`, as Python writes a tuple of one.
        if entries.len() > 1 && entries.last().is_some_and(|e| e.trim().is_empty()) {
            entries.pop();
        }
        if entries.len() > SIGNATURE_ENTRIES {
            return Err("the tuple has too many elements".to_owned());
        }
        for entry in entries {
            items.push(parse_entry(entry.trim(), depth + 1)?);
        }
    }
    let class = (!class.is_empty()).then(|| class.to_owned());
    Ok(TupleArg { class, items })
}

/// What stands behind `tensordesc<`.
fn parse_descriptor(text: &str) -> Result<HostDescriptor, &'static str> {
    const EXPECTED: &str = "a descriptor reads `tensordesc<fp16[64, 32]>`, or with `:nan` behind it, or with what the tensor's extent is a multiple of, `:16`, behind that of a block";
    let (inner, after) = text.rsplit_once('>').ok_or(EXPECTED)?;
    let nan = match after.trim() {
        "" | ":zero" => false,
        ":nan" => true,
        _ => return Err(EXPECTED),
    };
    let (name, extents) = inner.split_once('[').ok_or(EXPECTED)?;
    let extents = extents.trim().strip_suffix(']').ok_or(EXPECTED)?;
    let dtype =
        DType::from_short_name(name.trim()).ok_or("the descriptor is of an unknown type")?;
    let dims = extents.split(',').map(|extent| {
        let (extent, divisible) = match extent.split_once(':') {
            Some((extent, promise)) => (extent, multiple(promise.trim()).ok_or(EXPECTED)?),
            None => (extent, 1),
        };
        let extent = extent.trim().parse::<u64>().map_err(|_| EXPECTED)?;
        Ok::<_, &'static str>((extent, divisible))
    });
    let dims: Vec<(u64, u32)> = dims.collect::<Result<_, &'static str>>()?;
    if dims.is_empty() || dims.len() > 5 {
        return Err("a descriptor has 1 to 5 dimensions");
    }
    let (block, divisible) = dims.into_iter().unzip();
    Ok(HostDescriptor {
        dtype,
        block,
        divisible,
        nan,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_types_promises_and_constants() {
        let args =
            parse_signature("*fp32:16, *ku8, i32:1, i64:16, 1024, -0.5, True, None, 'a,b', fp16")
                .expect("a signature");
        let typed = |ty, divisible| ArgSpec::Typed { ty, divisible };
        assert_eq!(
            args,
            [
                typed(Ty::ptr(DType::Float32), 16),
                typed(
                    Ty::Ptr {
                        to: DType::Uint8,
                        constant: true
                    },
                    1
                ),
                ArgSpec::Constant(Constant::Int(1)),
                typed(Ty::Num(DType::Int64), 16),
                ArgSpec::Constant(Constant::Int(1024)),
                ArgSpec::Constant(Constant::Float(-0.5)),
                ArgSpec::Constant(Constant::Bool(true)),
                ArgSpec::Constant(Constant::None),
                ArgSpec::Constant(Constant::Str("a,b".into())),
                typed(Ty::Num(DType::Float16), 1),
            ]
        );
        assert_eq!(parse_signature("  "), Ok(Vec::new()));
    }

    #[test]
    fn descriptors_name_their_blocks() {
        let args = parse_signature("i32, tensordesc<fp16[64,32:16]>, tensordesc< bf16 [ 8 ] >:nan");
        let desc = |dtype, block: &[u64], divisible: &[u32], nan| {
            let (block, divisible) = (block.to_vec(), divisible.to_vec());
            ArgSpec::Descriptor(HostDescriptor {
                dtype,
                block,
                divisible,
                nan,
            })
        };
        let args = args.expect("a signature");
        assert_eq!(args[1], desc(DType::Float16, &[64, 32], &[1, 16], false));
        assert_eq!(args[2], desc(DType::Bfloat16, &[8], &[1], true));
    }

    #[test]
    fn tuples_nest_and_have_classes() {
        let args =
            parse_signature("(*fp32:16, (i32, 4), 'a,)'), Pair(fp16, i32:1), (i64,), (), @relu");
        let args = args.expect("a signature");
        let typed = |ty, divisible| ArgSpec::Typed { ty, divisible };
        let tuple = |class: Option<&str>, items| {
            let class = class.map(str::to_owned);
            ArgSpec::Tuple(TupleArg { class, items })
        };
        let (half, int) = (Ty::Num(DType::Float16), Ty::Num(DType::Int32));
        let four = ArgSpec::Constant(Constant::Int(4));
        let text = ArgSpec::Constant(Constant::Str("a,)".into()));
        let inner = tuple(None, vec![typed(int, 1), four]);
        let one = ArgSpec::Constant(Constant::Int(1));
        assert_eq!(
            args,
            [
                tuple(None, vec![typed(Ty::ptr(DType::Float32), 16), inner, text]),
                tuple(Some("Pair"), vec![typed(half, 1), one]),
                tuple(None, vec![typed(Ty::Num(DType::Int64), 1)]),
                tuple(None, Vec::new()),
                ArgSpec::Constant(Constant::Function("relu".into())),
            ]
        );
        let deep = format!("{}i32{}", "(".repeat(100), ")".repeat(100));
        assert!(parse_signature(&deep).is_err());
    }

    #[test]
    fn integers_keep_their_digits() {
        let large = "1".repeat(44);
        assert_eq!(Constant::parse(&large), None);
        let error = parse_signature(&large).expect_err("too large");
        assert_eq!(error.problem, "the number needs more than 127 bits");
        assert_eq!(Constant::parse("1e43"), Some(Constant::Float(1e43)));
    }

    #[test]
    fn names_of_other_languages_are_translated() {
        for (entry, name) in [
            ("*half", "fp16"),
            ("*bfloat16", "bf16"),
            ("*float:16", "fp32"),
            ("*kdouble", "fp64"),
            ("*short", "i16"),
        ] {
            let error = parse_signature(entry).expect_err("no type of a signature");
            assert!(error.problem.contains(name), "{entry}: {}", error.problem);
        }
    }

    #[test]
    fn what_is_wrong_with_an_entry_is_told() {
        for (entry, told) in [
            (
                "i32:16:8",
                "one promise stands behind a type, as in `i32:16`",
            ),
            (
                "*fp16:16:8",
                "one promise stands behind a type, as in `*fp16:16`",
            ),
            (
                "64:8",
                "`64` alone is the constant, `i32:8` a number known at launch",
            ),
            ("I32", "did you mean `i32`?"),
            ("int32", "did you mean `i32`?"),
            ("tl.float16", "did you mean `fp16`?"),
            ("i23", "did you mean `i32`?"),
            ("I32:16", "did you mean `i32`?"),
            ("*FP16", "did you mean `*fp16`?"),
            ("*torch.bfloat16", "did you mean `*bf16`?"),
            (
                "i32:32",
                "`:32` is no promise; promises are `:2`, `:4`, `:8` or `:16`",
            ),
            ("*i32:1", "`:1` is the number 1, and `*i32` a pointer"),
            ("fp32:16", "`fp32` is a float: leave `:16` out"),
        ] {
            let error = parse_signature(entry).expect_err(entry).to_string();
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn multiples_are_powers_of_two_up_to_16() {
        let args = parse_signature("i32:8, *fp16:4, i64:2").expect("three entries");
        let of = |arg: &ArgSpec| match arg {
            ArgSpec::Typed { divisible, .. } => *divisible,
            _ => 0,
        };
        assert_eq!(args.iter().map(of).collect::<Vec<_>>(), [8, 4, 2]);
    }

    #[test]
    fn what_is_no_entry_is_named() {
        for (text, index) in [
            ("*fp32,", 2),
            ("*nope", 1),
            ("**fp32", 1),
            ("(i32, )x", 1),
            ("(i32,,)", 1),
            ("(i32", 1),
            ("@", 1),
            ("i32, fp32:1", 2),
            ("i32:32", 1),
            ("fp32:8", 1),
            ("i32:x", 1),
            ("xyz", 1),
            ("'a", 1),
            ("tensordesc<fp16>", 1),
            ("tensordesc<fp16[x]>", 1),
            ("tensordesc<fp16[8:3]>", 1),
            ("tensordesc<fp16[8]>:16", 1),
            ("tensordesc<what[8]>", 1),
            ("tensordesc<fp16[1,1,1,1,1,1]>", 1),
        ] {
            let error = parse_signature(text).expect_err(text);
            assert_eq!(error.index, index, "{text}");
        }
    }
}
