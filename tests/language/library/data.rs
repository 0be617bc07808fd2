//! Data that both sides make: the script in Python and this in Rust, from the same words.
//!
//! ```text
//! zeros                 zero everywhere
//! iota(A,B)             A, A + B, A + 2B, ..
//! rand(SEED,LOW,HIGH)   uniform between the two, of integers the numbers below
//! bits(SEED)            random bits
//! [A,B,..]              these, again and again
//! {A,B,..}              numbers whose bits these are, in hexadecimal, again and again
//! ```

use tilelift::front::types::DType;
use tilelift::num::{Format, Overflow, Rounding};

/// Splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The format of a float.
pub(crate) fn format(dtype: DType) -> Format {
    match dtype {
        DType::Float16 => Format::F16,
        DType::Bfloat16 => Format::BF16,
        DType::Float64 => Format::F64,
        DType::Float8e5 => Format::E5M2,
        DType::Float8e4nv => Format::E4M3,
        _ => Format::F32,
    }
}

/// Bytes of an element.
pub(crate) fn bytes_of(dtype: DType) -> usize {
    dtype.bits().div_ceil(8) as usize
}

/// The bits of a number.
pub(crate) fn encode(dtype: DType, x: f64) -> u64 {
    if dtype.is_float() {
        // The 16-bit ones by way of f32, as the script has them.
        let x = if dtype.bits() < 64 {
            f64::from(x as f32)
        } else {
            x
        };
        let overflow = match dtype.is_fp8() {
            true => Overflow::Finite,
            false => Overflow::Ieee,
        };
        return format(dtype).from_f64(x, Rounding::NearestEven, overflow);
    }
    mask(dtype, x.floor() as i128 as u64)
}

fn mask(dtype: DType, bits: u64) -> u64 {
    bits & (u64::MAX >> (64 - dtype.bits()))
}

fn number(dtype: DType, text: &str) -> u64 {
    if dtype.is_float() {
        return encode(dtype, text.parse().expect("a number"));
    }
    mask(dtype, text.parse::<i128>().expect("an integer") as u64)
}

/// Little-endian bytes of what the words say.
pub(crate) fn make(dtype: DType, count: usize, words: &str) -> Vec<u8> {
    let args = |prefix: &str| -> Option<Vec<String>> {
        let inner = words.strip_prefix(prefix)?.strip_suffix(')')?;
        Some(inner.split(',').map(str::to_owned).collect())
    };
    let float = |text: &String| -> f64 { text.parse().expect("a number") };
    let mut bits: Vec<u64> = Vec::with_capacity(count);
    if words == "zeros" {
        bits.resize(count, 0);
    } else if let Some(args) = args("iota(") {
        let (start, step) = (float(&args[0]), float(&args[1]));
        bits.extend((0..count).map(|i| encode(dtype, start + step * i as f64)));
    } else if let Some(args) = args("rand(") {
        let mut state: u64 = args[0].parse().expect("a seed");
        let (low, high) = (float(&args[1]), float(&args[2]));
        bits.extend((0..count).map(|_| {
            let unit = (splitmix(&mut state) >> 11) as f64 / (1u64 << 53) as f64;
            encode(dtype, low + (high - low) * unit)
        }));
    } else if let Some(args) = args("bits(") {
        let mut state: u64 = args[0].parse().expect("a seed");
        bits.extend((0..count).map(|_| mask(dtype, splitmix(&mut state))));
    } else if let Some(list) = words.strip_prefix('[').and_then(|w| w.strip_suffix(']')) {
        let list: Vec<u64> = list.split(',').map(|x| number(dtype, x)).collect();
        bits.extend((0..count).map(|i| list[i % list.len()]));
    } else if let Some(list) = words.strip_prefix('{').and_then(|w| w.strip_suffix('}')) {
        let parse = |x: &str| u64::from_str_radix(x, 16).expect("hexadecimal digits");
        let list: Vec<u64> = list.split(',').map(parse).collect();
        bits.extend((0..count).map(|i| list[i % list.len()]));
    } else {
        panic!("unknown data `{words}`");
    }
    let size = bytes_of(dtype);
    let bytes = bits.iter().flat_map(|b| b.to_le_bytes()[..size].to_vec());
    bytes.collect()
}
