//! The target `launch_inputs`: what launchers are given beside memory, broken and strange.
//!
//! Manifests, recipes of tensor maps, and tensor descriptors, as made by hand, with bytes, words and lines changed, and with
//! numbers at which readers go wrong. Nothing panics. What is refused is refused with a reason and, of a manifest, with the
//! line. A recipe that is read prints as what reads the same again, and gives a map that can be encoded or none. A descriptor
//! is there exactly where all that it asks for holds, computed here without bounds.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Verdict;
use super::mutate::{mutate, mutate_for, noise};
use super::random::Random;
use crate::compile::{KernelMeta, ParamKind, ParamMeta};
use crate::emu::Arg;
use crate::ir::map_recipe::{HostNumber, MapRecipe, NumberList, NumberOp, Resolved};
use crate::ir::types::Scalar;
use crate::runtime::{DType, Descriptor, Manifest, Pointer, emulated};
use crate::settings::{PtxVersion, Target};

/// A manifest with a line of each kind, and most kinds of arguments.
const MANIFEST: &str = r#"# What a service launches.
program p python add.py
| import triton, triton.language as tl
|
| @triton.jit
| def add(x, out, n, BLOCK: tl.constexpr, MODE: tl.constexpr = 'x'):
|     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
|     tl.store(out + i, tl.load(x + i, i < n) + 1, i < n)
|
| @triton.jit
| def tiles(d, pair, n: tl.int64, SIZE: tl.constexpr):
|     d.store([n, pair[0]], d.load([0, 0]))
kernel p add "*fp32:16, *fp32:16, i32:16" BLOCK=1024 num_warps=8 target=sm_90a
kernel p add "*fp16, *fp16:8, i32:1" BLOCK=64 MODE="a b" num_stages=3 fp_fusion=False lines=True
kernel p tiles "tensordesc<fp16[64, 32]>, (i32:16, None), i64" SIZE=16 promote=never roles=always persistent=never

program q tir twice.tir
| kernel @twice(v0 "x": ptr<f32>) warps(4) {
| block0:
|     return
| }
kernel q twice "*fp32:16" max_registers=64 debug=True num_ctas=2
"#;

/// Recipes as the compiler makes them.
const RECIPES: [&str; 3] = [
    "{base=p0, offset=mul(p4, 8), elem=f16, extents=[p1, p2], strides=[p3], box=[128, 64], swizzle=128, nan, if=le(1, p1)}",
    "{base=p12, offset=0, elem=f8e5m2, extents=[p1], strides=[], box=[16], if=1}",
    "{base=p1, offset=-16, elem=f32, extents=[2147483647, cdiv(gridx, 2), p3], strides=[mul(p2, p3), p3], box=[1, 32, 32], swizzle=128, if=and(le(max(p2, 1), unsigned(p3, 31)), ne(gridz, 0))}",
];

/// Numbers at which arithmetic ends.
const EDGES: [i64; 13] = [
    0,
    1,
    -1,
    2,
    8,
    15,
    16,
    255,
    1 << 31,
    (1 << 31) - 1,
    1 << 40,
    i64::MAX,
    i64::MIN,
];

/// Judges the input of a seed.
pub fn check(seed: u64) -> Verdict {
    let mut random = Random::new(seed);
    let judged = |shown: &str, judge: &mut dyn FnMut() -> Verdict| {
        let judged = catch_unwind(AssertUnwindSafe(judge));
        judged.unwrap_or_else(|_| Verdict::Failed(format!("panic on\n{shown}")))
    };
    match random.weighted(&[3, 4, 3]) {
        0 => {
            let text = broken(&mut random, MANIFEST, RECIPES[0], |text| {
                Manifest::parse("m", text).is_ok()
            });
            judged(&text, &mut || manifest(&text))
        }
        1 => {
            let made = recipe(&mut random).to_string();
            let [text, other] = [(); 2].map(|()| match random.chance(50) {
                true => made.as_str(),
                false => random.pick(&RECIPES),
            });
            let text = broken(&mut random, text, other, |text| {
                text.parse::<MapRecipe>().is_ok()
            });
            judged(&text, &mut || recipe_text(&mut random, &text))
        }
        _ => descriptor(&mut random, judged),
    }
}

/// A text with something wrong about it, or as it was.
fn broken(random: &mut Random, text: &str, other: &str, reads: impl Fn(&str) -> bool) -> String {
    // A panic shows when the text is judged.
    let reads = |text: &str| catch_unwind(AssertUnwindSafe(|| reads(text))).unwrap_or(true);
    match random.weighted(&[2, 5, 5, 1]) {
        0 => text.to_owned(),
        1 => mutate(random, text, other),
        2 => mutate_for(random, text, other, reads),
        _ => noise(random),
    }
}

fn manifest(text: &str) -> Verdict {
    match Manifest::parse("m", text) {
        Ok(manifest) => {
            let lines = text.split('\n').map(str::trim_start);
            let kernels = lines.filter(|line| line.starts_with("kernel")).count();
            match manifest.len() <= kernels {
                true => Verdict::Passed(vec!["a manifest"]),
                false => Verdict::Failed(format!("{} kernels of\n{text}", manifest.len())),
            }
        }
        Err(error) => {
            let count = text.split('\n').count();
            let shown = error.to_string();
            let says_where = shown.starts_with(&format!("m:{}: error: ", error.line));
            match says_where && error.line <= count && !error.problem.is_empty() {
                true => Verdict::Passed(vec!["no manifest"]),
                false => Verdict::Failed(format!("{shown:?} does not say where, of\n{text}")),
            }
        }
    }
}

fn recipe_text(random: &mut Random, text: &str) -> Verdict {
    let recipe = match text.parse::<MapRecipe>() {
        Ok(recipe) => recipe,
        Err(error) if error.to_string().contains(", at `") => {
            return Verdict::Passed(vec!["no recipe"]);
        }
        Err(error) => return Verdict::Failed(format!("{error} does not say where, of\n{text}")),
    };
    if recipe.to_string().parse().as_ref() != Ok(&recipe) {
        return Verdict::Failed(format!("{recipe} does not read again, of\n{text}"));
    }
    let params: Vec<i64> = (0..PARAMS).map(|_| number(random)).collect();
    let grid = [(); 3].map(|()| random.pick(&[1, 2, 65_535, u32::MAX]));
    let base = random.pick(&[0, 16, 8, 0x7f00_0000_0000, u64::MAX - 15]);
    let param = |index: u32| {
        let value = params.get(index as usize).copied();
        value.filter(|_| index != recipe.base)
    };
    let is_there = (recipe.base as usize) < PARAMS;
    let map = recipe.resolve(base, &param, grid);
    if listed(&recipe, base, &param, grid) != map {
        return Verdict::Failed(format!("{recipe} is another map by its list"));
    }
    let map = map.filter(|_| is_there);
    let args: Vec<Arg> = (0..)
        .zip(&params)
        .map(|(i, &number)| match i == recipe.base {
            true => Arg::pointer(base),
            false => Arg::bytes(&number.to_le_bytes()),
        })
        .collect();
    let launch = emulated(&kernel(recipe), &args, grid);
    match (map, launch) {
        (None, None) => Verdict::Passed(vec!["a recipe"]),
        (Some(_), Some(_)) => Verdict::Passed(vec!["a map"]),
        (map, launch) => Verdict::Failed(format!(
            "{map:?} and {launch:?} of {base:#x}, {params:?}, {grid:?} and\n{text}"
        )),
    }
}

/// The map of a recipe by its list of numbers.
fn listed(
    recipe: &MapRecipe,
    base: u64,
    params: &dyn Fn(u32) -> Option<i64>,
    grid: [u32; 3],
) -> Option<Resolved> {
    let list = NumberList::new(std::slice::from_ref(recipe)).ok()?;
    let mut numbers = Vec::new();
    list.eval(params, grid, &mut numbers)?;
    list.resolve(0, recipe, base, &numbers)
}

/// Parameters of the kernel that a recipe is of.
const PARAMS: usize = 16;

/// What a launcher knows of a kernel with one map.
fn kernel(recipe: MapRecipe) -> KernelMeta {
    let param = |index| {
        let (kind, ty) = match index == recipe.base {
            true => (ParamKind::Pointer, recipe.elem.name()),
            false => (ParamKind::Scalar, "i64"),
        };
        ParamMeta {
            name: format!("p{index}"),
            kind,
            ty,
            bytes: 8,
        }
    };
    KernelMeta {
        name: "k".to_owned(),
        target: Target::SM_90A,
        ptx_version: PtxVersion { major: 8, minor: 0 },
        num_warps: 4,
        shared: 0,
        params: (0..PARAMS as u32).map(param).collect(),
        persistent: false,
        maps: vec![recipe],
        sites: Vec::new(),
    }
}

/// A number as an argument may be.
fn number(random: &mut Random) -> i64 {
    match random.chance(50) {
        true => random.between(1, 4096),
        false => random.pick(&EDGES),
    }
}

/// A number of up to so many parts.
fn host(random: &mut Random, depth: usize, parts: u32) -> HostNumber {
    let of_parts = if parts == 0 { 0 } else { 2 };
    match random.weighted(&[4, 3, 1, if depth == 0 { 0 } else { 6 }, of_parts]) {
        0 => HostNumber::Const(number(random)),
        1 => HostNumber::Param(random.below(20) as u32),
        2 => HostNumber::Programs(random.below(3) as u8),
        3 => {
            let both = [(); 2].map(|()| host(random, depth - 1, parts));
            HostNumber::Op(random.pick(NumberOp::ALL), Box::new(both))
        }
        // Now and then one that there is not.
        _ => {
            let count = parts as usize + usize::from(random.chance(2));
            HostNumber::Part(random.below(count) as u32)
        }
    }
}

/// A recipe, most often one that there can be.
fn recipe(random: &mut Random) -> MapRecipe {
    let rank = 1 + random.below(5);
    let elem = random.pick(&[Scalar::F16, Scalar::F32, Scalar::I8, Scalar::F64]);
    let swizzle = random.pick(&[0, 32, 64, 128]);
    let count = random.weighted(&[4, 1, 1, 1]) as u32;
    let parts = (0..count).map(|earlier| host(random, 3, earlier)).collect();
    let mut numbers = |n: usize| (0..n).map(|_| host(random, 3, count)).collect::<Vec<_>>();
    let (extents, strides, rest) = (numbers(rank), numbers(rank - 1), numbers(2));
    let inner = if swizzle == 0 { 64 } else { swizzle };
    let outer = (1..rank).map(|_| 1 << random.below(9));
    let tile = outer.chain([inner / elem.bytes()]).collect();
    let [offset, condition] = [0, 1].map(|i: usize| rest[i].clone());
    MapRecipe {
        base: random.below(4) as u32,
        offset,
        elem,
        extents,
        strides,
        tile,
        swizzle,
        nan: random.chance(20) && elem != Scalar::I8,
        parts,
        condition,
    }
}

/// A number along a dimension.
fn extent(random: &mut Random, likely: &[u64]) -> u64 {
    match random.chance(85) {
        true => random.pick(likely),
        false => random.pick(&EDGES) as u64,
    }
}

fn descriptor(
    random: &mut Random,
    judged: impl Fn(&str, &mut dyn FnMut() -> Verdict) -> Verdict,
) -> Verdict {
    let dtype = random.pick(&[DType::F16, DType::F32, DType::I8]);
    let rank = random.weighted(&[1, 6, 12, 6, 3, 3, 1]);
    let other = |random: &mut Random| if random.chance(5) { rank + 1 } else { rank };
    let shape: Vec<u64> = (0..rank)
        .map(|_| extent(random, &[0, 1, 3, 16, 100]))
        .collect();
    let count = other(random);
    let mut strides: Vec<u64> = (0..count)
        .map(|_| extent(random, &[16, 32, 128, 4096]))
        .collect();
    if let Some(last) = strides.last_mut().filter(|_| random.chance(90)) {
        *last = 1;
    }
    let count = other(random);
    let block: Vec<u64> = (0..count)
        .map(|_| extent(random, &[1, 2, 16, 64]))
        .collect();
    let pointer = Pointer::null(dtype);
    let shown = format!("{dtype} {shape:?} {strides:?} {block:?}");
    judged(&shown, &mut || {
        let made = Descriptor::new(pointer, &shape, &strides, &block);
        let made = made.map(|descriptor| descriptor.parts().len());
        let expected = is_described(dtype, &shape, &strides, &block);
        match (expected, made) {
            (true, Ok(parts)) if parts == 2 * rank + 1 => Verdict::Passed(vec!["a descriptor"]),
            (false, Err(error)) if !error.to_string().is_empty() => {
                Verdict::Passed(vec!["no descriptor"])
            }
            (_, made) => Verdict::Failed(format!("{made:?} of {shown}")),
        }
    })
}

/// Whether there is such a tensor at the address 0, where nothing is.
fn is_described(dtype: DType, shape: &[u64], strides: &[u64], block: &[u64]) -> bool {
    let rank = shape.len();
    let bytes = dtype.bytes() as u128;
    (1..=5).contains(&rank)
        && [strides.len(), block.len()] == [rank; 2]
        && strides[rank - 1] == 1
        && strides[..rank - 1]
            .iter()
            .all(|&stride| (u128::from(stride) * bytes).is_multiple_of(16))
        && strides
            .iter()
            .all(|&stride| u128::from(stride) * bytes <= u128::from(u64::MAX))
        && strides.iter().all(|&stride| i64::try_from(stride).is_ok())
        && shape.iter().all(|&size| i32::try_from(size).is_ok())
        && block.iter().all(|extent| extent.is_power_of_two())
        && shape.contains(&0)
}
