//! Tensor maps of a launch: from what the compiler says of them and the arguments to what the copy engine reads.

use crate::compile::{KernelMeta, ParamKind, ParamMeta};
use crate::emu;
#[cfg(feature = "tool")]
use crate::ir::map_recipe::MapArguments;
use crate::ir::map_recipe::{MapRecipe, Resolved};
use crate::ir::types::Scalar;

/// How an argument of integer type, of which the low bytes are the argument, is read from its word.
#[derive(Clone, Copy, Debug)]
pub(in crate::runtime) enum Integer {
    Truth,
    /// With so many bits above it.
    Below(u32),
}

impl Integer {
    /// How a parameter is read; none of others.
    pub(in crate::runtime) fn of(param: &ParamMeta) -> Option<Integer> {
        if param.kind != ParamKind::Scalar || !param.ty.starts_with('i') {
            return None;
        }
        if param.ty == "i1" {
            return Some(Integer::Truth);
        }
        let unused = 64_u32.checked_sub(8 * param.bytes)?;
        (unused < 64).then_some(Integer::Below(unused))
    }

    pub(in crate::runtime) fn number(self, word: u64) -> i64 {
        match self {
            Integer::Truth => i64::from(word & 0xff != 0),
            Integer::Below(unused) => (word << unused).cast_signed() >> unused,
        }
    }
}

/// An argument of integer type as a number; none of others.
fn number(param: &ParamMeta, word: u64) -> Option<i64> {
    Some(Integer::of(param)?.number(word))
}

/// The map of a recipe for these arguments, of which `word` gives each by its place; none where the kernel without maps
/// must be launched. What is launched again and again has a list of all numbers instead ([`NumberList`](crate::ir::map_recipe::NumberList)).
pub(in crate::runtime) fn resolve(
    meta: &KernelMeta,
    recipe: &MapRecipe,
    word: &dyn Fn(usize) -> Option<u64>,
    grid: [u32; 3],
) -> Option<Resolved> {
    let base = recipe.base as usize;
    let is_pointer = meta.params.get(base)?.kind == ParamKind::Pointer;
    let param = |index: u32| {
        let index = index as usize;
        number(meta.params.get(index)?, word(index)?)
    };
    recipe.resolve(word(base).filter(|_| is_pointer)?, &param, grid)
}

/// What the elements of a tensor are to the copy engine; it knows no 8-bit floats, and does not compute.
pub(crate) fn element(scalar: Scalar) -> emu::TensorElement {
    match scalar {
        Scalar::I1 | Scalar::I8 | Scalar::F8E4M3 | Scalar::F8E5M2 => emu::TensorElement::U8,
        Scalar::I16 => emu::TensorElement::U16,
        Scalar::I32 => emu::TensorElement::U32,
        Scalar::I64 => emu::TensorElement::U64,
        Scalar::F16 => emu::TensorElement::F16,
        Scalar::Bf16 => emu::TensorElement::BF16,
        Scalar::F32 => emu::TensorElement::F32,
        Scalar::F64 => emu::TensorElement::F64,
    }
}

/// The driver's number of a swizzle of so many bytes.
pub(in crate::runtime) fn swizzle(recipe: &MapRecipe) -> usize {
    match recipe.swizzle {
        32 => 1,
        64 => 2,
        128 => 3,
        _ => 0,
    }
}

/// CTAs of a persistent kernel that the emulator executes at a time: few, so that each has several programs.
const EMULATED_CTAS: u32 = 3;

/// What a launch takes beside what its caller gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmulatedLaunch {
    /// The CTAs to launch.
    pub ctas: [u32; 3],
    /// MapArguments that come behind the caller's: numbers of programs, and tensor maps.
    pub args: Vec<emu::Arg>,
}

/// What a launch on the emulator takes beside a grid of programs and `args`, the kernel's own arguments. None if these
/// allow no tensor maps; then the kernel that is compiled with [`Promote::Never`](crate::settings::Promote::Never) does the
/// work.
pub fn emulated(meta: &KernelMeta, args: &[emu::Arg], grid: [u32; 3]) -> Option<EmulatedLaunch> {
    let ctas = meta.ctas(grid, EMULATED_CTAS)?;
    let programs = grid.iter().filter(|_| meta.persistent);
    let programs = programs.map(|&n| Some(emu::Arg::from(n)));
    let word = |index: usize| {
        let bytes = args.get(index)?.as_bytes();
        let mut word = [0; 8];
        word.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(word))
    };
    let encode = |recipe: &MapRecipe| {
        let map = resolve(meta, recipe, &word, grid)?;
        let tile: Vec<u32> = recipe.tile.iter().rev().copied().collect();
        let map = emu::TensorMap {
            element: element(recipe.elem),
            base: map.base,
            extents: map.extents[..map.rank].to_vec(),
            strides: map.strides[..map.rank - 1].to_vec(),
            element_strides: vec![1; tile.len()],
            box_extents: tile,
            swizzle: *emu::Swizzle::ALL.get(swizzle(recipe))?,
            fill: match recipe.nan {
                true => emu::Fill::NaN,
                false => emu::Fill::Zeros,
            },
        };
        Some(emu::Arg::bytes(&map.encode().ok()?))
    };
    let args = programs.chain(meta.maps.iter().map(encode));
    let args = args.collect::<Option<_>>()?;
    Some(EmulatedLaunch { ctas, args })
}

/// Why arguments of these bits allow no tensor maps, in words: the first condition of a map that does not hold.
#[cfg(feature = "tool")]
pub(crate) fn without_maps(meta: &KernelMeta, words: &[u64], grid: [u32; 3]) -> String {
    let params = |index: u32| {
        let index = index as usize;
        number(meta.params.get(index)?, *words.get(index)?)
    };
    let names = |index: u32| {
        let param = meta.params.get(index as usize);
        param.map_or_else(|| format!("p{index}"), |param| param.name.clone())
    };
    let mut reasons = meta.maps.iter().filter_map(|recipe| {
        recipe.why_not(&MapArguments {
            params: &params,
            names: &names,
            base: words.get(recipe.base as usize).copied()?,
            grid,
        })
    });
    let other = || match meta.ctas(grid, 1) {
        None => "the launch has more programs than CTAs count that execute several".to_owned(),
        Some(_) => "the driver refuses one".to_owned(),
    };
    reasons.next().unwrap_or_else(other)
}

/// The same for arguments of the emulator.
#[cfg(feature = "tool")]
pub(crate) fn emulated_without_maps(
    meta: &KernelMeta,
    args: &[emu::Arg],
    grid: [u32; 3],
) -> String {
    let words = args.iter().map(|arg| {
        let mut word = [0; 8];
        for (to, &from) in word.iter_mut().zip(arg.as_bytes()) {
            *to = from;
        }
        u64::from_le_bytes(word)
    });
    let words: Vec<u64> = words.collect();
    without_maps(meta, &words, grid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_low_bytes_of_their_words() {
        let read = |kind, ty, bytes, word| {
            let param = ParamMeta {
                name: "x".to_owned(),
                kind,
                ty,
                bytes,
            };
            number(&param, word)
        };
        let scalar = |ty, bytes, word| read(ParamKind::Scalar, ty, bytes, word);
        for (word, expected) in [(0, 0), (1, 1), (2, 1), (0x100, 0), (0xff80, 1)] {
            assert_eq!(scalar("i1", 1, word), Some(expected), "{word:#x}");
        }
        assert_eq!(scalar("i8", 1, 0x17f), Some(127));
        assert_eq!(scalar("i16", 2, 0x1_8000), Some(-0x8000));
        assert_eq!(scalar("i32", 4, u64::MAX), Some(-1));
        assert_eq!(scalar("i64", 8, 1 << 63), Some(i64::MIN));
        assert_eq!(scalar("f32", 4, 0), None);
        assert_eq!(read(ParamKind::Pointer, "i32", 8, 16), None);
    }
}
