//! Tensor maps of the last launches on a GPU, kept: they are made anew when what they depend on is not what it was.
//!
//! A kernel keeps the parameters of its last launches in a few places. A launch like the last one compares its arguments, and
//! that is all. Where others go is told by the numbers that their maps depend on, so that launches with a few shapes in turn find the
//! maps of theirs. Where tensors of the same extents lie elsewhere, the driver changes
//! their addresses alone, and no condition is looked at again, as none is about addresses. A launch allocates nothing, unless more
//! threads than there are places launch one kernel at the same time.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use smallvec::SmallVec;

use crate::compile::{KernelMeta, ParamKind};
use crate::driver::{
    DriverError, PreparedWithMaps, RawPtr, Stream, TensorElement, TensorMap, TensorShape,
    TensorSwizzle,
};
use crate::ir::map_recipe::{MapRecipe, NumberList, Resolved};

use crate::runtime::api::argument::Arg;
use crate::runtime::execute::executable::Executable;
use crate::runtime::execute::tensor_maps::{self, Integer};

/// Places for parameters.
const PLACES: usize = 16;

/// A kernel that takes tensor maps, ready to be launched.
#[derive(Debug)]
pub(in crate::runtime) struct Mapped {
    prepared: PreparedWithMaps,
    /// What the recipes are made of; none where one of them has no map.
    numbers: Option<NumberList>,
    /// How each parameter of integer type is read.
    integers: Vec<Option<Integer>>,
    /// The parameters that the numbers are made of.
    inputs: SmallVec<[u16; 16]>,
    /// The parameters that point into the tensors, one for each recipe.
    bases: SmallVec<[u16; 4]>,
    /// Parameters before the maps.
    words: usize,
    /// Whether the numbers depend on the grid.
    reads_grid: bool,
    /// CTAs of a persistent kernel that the device executes at a time.
    resident: u32,
    places: [Mutex<Last>; PLACES],
    /// The place of the last launch that was not like the one before it.
    recent: AtomicUsize,
}

/// A launch.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Last {
    /// Its programs; none at first.
    grid: [u32; 3],
    /// Its CTAs, or none where the kernel without maps did the work.
    ctas: Option<[u32; 3]>,
    /// The words of its parameters: arguments, and behind them numbers of programs if the kernel is persistent.
    words: Vec<u64>,
    /// What the numbers were.
    numbers: Vec<i64>,
    /// One for each recipe, or none where there are no maps.
    resolved: Vec<Resolved>,
    /// The maps of these.
    maps: Vec<TensorMap>,
}

/// What is kept of a launch, which is no other launch's until this goes.
pub(in crate::runtime) enum Kept<'m> {
    Place(MutexGuard<'m, Last>),
    /// Where other launches are at all places.
    Own(Box<Last>),
}

impl Deref for Kept<'_> {
    type Target = Last;

    #[inline(always)]
    fn deref(&self) -> &Last {
        match self {
            Kept::Place(last) => last,
            Kept::Own(last) => last,
        }
    }
}

impl DerefMut for Kept<'_> {
    fn deref_mut(&mut self) -> &mut Last {
        match self {
            Kept::Place(last) => last,
            Kept::Own(last) => last,
        }
    }
}

/// The words of a launch's parameters that are arguments.
#[derive(Clone, Copy)]
struct Words<'a> {
    args: &'a [Arg<'a>],
    /// For each parameter the argument that it takes.
    params: &'a [u16],
    /// Whether that is each argument in its place.
    is_direct: bool,
}

impl Words<'_> {
    #[inline]
    fn get(self, param: u16) -> u64 {
        self.args[usize::from(self.params[usize::from(param)])].bits
    }

    #[inline]
    fn iter(&self) -> impl Iterator<Item = u64> {
        self.params
            .iter()
            .map(|&at| self.args[usize::from(at)].bits)
    }

    /// Whether these words are the first of a list.
    #[inline(always)]
    fn begin(self, list: &[u64]) -> bool {
        match self.is_direct {
            true => (self.args.iter().zip(list)).all(|(arg, &word)| arg.bits == word),
            false => self.iter().zip(list).all(|(mine, &word)| mine == word),
        }
    }
}

impl Mapped {
    /// A kernel whose parameters take these of a launch's arguments.
    /// The device executes `resident` CTAs at a time.
    pub(in crate::runtime) fn new(
        prepared: PreparedWithMaps,
        meta: &KernelMeta,
        params: &[u16],
        resident: u32,
    ) -> Mapped {
        let mut used = vec![false; params.len()];
        let mut reads_grid = false;
        for number in meta.maps.iter().flat_map(|recipe| recipe.numbers()) {
            number.params(&mut |index| {
                if let Some(used) = used.get_mut(index as usize) {
                    *used = true;
                }
            });
            reads_grid |= number.reads_grid();
        }
        let base = |recipe: &MapRecipe| {
            let index = recipe.base as usize;
            let is_pointer = meta.params.get(index)?.kind == ParamKind::Pointer;
            u16::try_from(index)
                .ok()
                .filter(|_| is_pointer && index < params.len())
        };
        let bases: Option<SmallVec<[u16; 4]>> = meta.maps.iter().map(base).collect();
        let numbers = NumberList::new(&meta.maps).ok();
        let numbers = numbers.filter(|_| bases.is_some());
        let mapped = Mapped {
            prepared,
            places: Default::default(),
            recent: AtomicUsize::new(0),
            words: params.len() + if meta.persistent { 3 } else { 0 },
            inputs: (0..)
                .zip(&used)
                .filter(|&(_, &used)| used)
                .map(|(at, _)| at)
                .collect(),
            integers: meta.params.iter().map(Integer::of).collect(),
            bases: bases.unwrap_or_default(),
            numbers,
            reads_grid,
            resident,
        };
        for place in &mapped.places {
            if let Ok(mut place) = place.lock() {
                *place = mapped.room();
            }
        }
        mapped
    }

    /// Room for whatever a launch leaves, so that none allocates.
    fn room(&self) -> Last {
        let maps = self.bases.len();
        Last {
            words: vec![0; self.words],
            numbers: Vec::with_capacity(self.numbers.as_ref().map_or(0, NumberList::len)),
            resolved: Vec::with_capacity(maps),
            maps: Vec::with_capacity(maps),
            ..Last::default()
        }
    }

    /// The kernel on the device.
    pub(in crate::runtime) fn prepared(&self) -> &PreparedWithMaps {
        &self.prepared
    }

    /// The parameters of a launch with these arguments.
    #[inline(always)]
    pub(in crate::runtime) fn parameters(
        &self,
        executable: &Executable,
        grid: [u32; 3],
        args: &[Arg<'_>],
    ) -> Kept<'_> {
        let words = Words {
            args,
            params: &executable.params,
            is_direct: executable.is_direct,
        };
        let recent = self.recent.load(Ordering::Relaxed);
        let found = self
            .try_place(recent)
            .filter(|last| last.is_of(grid, words));
        match found {
            Some(last) => Kept::Place(last),
            None => self.find(executable, grid, words),
        }
    }

    /// Launches so many CTAs with such parameters.
    #[inline(always)]
    pub(in crate::runtime) fn launch(
        &self,
        ctas: [u32; 3],
        last: &Last,
        stream: &Stream,
    ) -> Result<(), DriverError> {
        self.prepared.launch(ctas, stream, &last.words, &last.maps)
    }

    /// A place, if no other launch is there.
    #[inline(always)]
    fn try_place(&self, place: usize) -> Option<MutexGuard<'_, Last>> {
        match self.places[place % PLACES].try_lock() {
            Ok(last) => Some(last),
            Err(TryLockError::Poisoned(last)) => Some(last.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The place of a launch that is not the one before, with its parameters.
    #[inline(never)]
    fn find(&self, executable: &Executable, grid: [u32; 3], words: Words<'_>) -> Kept<'_> {
        // Extents and strides differ by multiples of powers of two: the product's upper bits tell them apart.
        let mix = |hash: u64, &at: &u16| {
            (hash.rotate_left(5) ^ words.get(at)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        let first = (self.inputs.iter().fold(0, mix) >> 32) as usize % PLACES;
        let mut free = (first..first + PLACES).filter_map(|i| Some((i, self.try_place(i)?)));
        let mut kept = match free.next() {
            Some((place, last)) => {
                self.recent.store(place, Ordering::Relaxed);
                Kept::Place(last)
            }
            None => Kept::Own(Box::new(self.room())),
        };
        let last = &mut *kept;
        if !last.is_of(grid, words) {
            self.update(last, &executable.meta, grid, words);
        }
        kept
    }

    /// Makes what is kept of a launch that of another one.
    #[inline(never)]
    fn update(&self, last: &mut Last, meta: &KernelMeta, grid: [u32; 3], words: Words<'_>) {
        let is_kept = |&at: &u16| last.words[usize::from(at)] == words.get(at);
        let is_same = last.grid[0] != 0
            && (last.grid == grid || !self.reads_grid)
            && self.inputs.iter().all(is_kept);
        let has_maps = last.maps.len() == meta.maps.len();
        let are_made = match is_same {
            // There are none for a launch like this one either.
            true if !has_maps && self.bases.iter().all(is_kept) => None,
            true if has_maps => self.move_all(last, &meta.maps, words),
            _ => self.make(last, &meta.maps, grid, words),
        };
        if are_made.is_none() {
            last.resolved.clear();
            last.maps.clear();
        }
        let programs = grid.map(u64::from);
        for (kept, word) in last.words.iter_mut().zip(words.iter().chain(programs)) {
            *kept = word;
        }
        last.grid = grid;
        last.ctas = meta
            .ctas(grid, self.resident)
            .filter(|_| are_made.is_some());
    }

    /// Makes the maps of a launch whose numbers are not those of the last one; none where some map is not to be had.
    fn make(
        &self,
        last: &mut Last,
        recipes: &[MapRecipe],
        grid: [u32; 3],
        words: Words<'_>,
    ) -> Option<()> {
        let list = self.numbers.as_ref()?;
        let param = |index: u32| {
            let integer = (*self.integers.get(index as usize)?)?;
            Some(integer.number(words.get(u16::try_from(index).ok()?)))
        };
        list.eval(param, grid, &mut last.numbers)?;
        for (i, recipe) in recipes.iter().enumerate() {
            let base = words.get(*self.bases.get(i)?);
            let map = list.resolve(i, recipe, base, &last.numbers)?;
            match (last.resolved.get_mut(i), last.maps.get_mut(i)) {
                (Some(resolved), Some(kept)) => again(recipe, &map, resolved, kept)?,
                _ => {
                    last.maps.push(encode(recipe, &map)?);
                    last.resolved.push(map);
                }
            }
        }
        Some(())
    }

    /// Makes the maps of a launch whose tensors lie elsewhere and are otherwise those of the last one; none where some map is not to
    /// be had.
    fn move_all(&self, last: &mut Last, recipes: &[MapRecipe], words: Words<'_>) -> Option<()> {
        let kept = last.resolved.iter_mut().zip(&mut last.maps);
        for ((recipe, &at), (resolved, map)) in recipes.iter().zip(&self.bases).zip(kept) {
            let (from, to) = (last.words[usize::from(at)], words.get(at));
            if from == to {
                continue;
            }
            resolved.base = resolved.moved(from, to)?;
            if map
                .set_address(RawPtr::from_parts(resolved.base, 0))
                .is_err()
            {
                *map = encode(recipe, resolved)?;
            }
        }
        Some(())
    }
}

impl Last {
    /// The CTAs to launch; none where there are no such maps and the kernel without must be launched.
    #[inline(always)]
    pub(in crate::runtime) fn ctas(&self) -> Option<[u32; 3]> {
        self.ctas
    }

    /// Whether it is a launch with these words.
    #[inline]
    fn is_of(&self, grid: [u32; 3], words: Words<'_>) -> bool {
        self.grid == grid && words.begin(&self.words)
    }
}

/// Makes another map of a recipe of one that was made before; none if there is none.
fn again(
    recipe: &MapRecipe,
    map: &Resolved,
    resolved: &mut Resolved,
    kept: &mut TensorMap,
) -> Option<()> {
    let moved = Resolved {
        base: map.base,
        ..*resolved
    };
    let is_done = *resolved == *map
        || moved == *map && kept.set_address(RawPtr::from_parts(map.base, 0)).is_ok();
    if !is_done {
        *kept = encode(recipe, map)?;
    }
    *resolved = *map;
    Some(())
}

/// What a launch takes beside what its caller gives.
#[cfg(feature = "tool")]
#[derive(Debug)]
pub(crate) struct DriverLaunch {
    /// The CTAs to launch.
    pub(crate) ctas: [u32; 3],
    /// Numbers of programs, if the kernel is persistent.
    pub(crate) programs: Vec<[u8; 4]>,
    pub(crate) maps: Vec<TensorMap>,
}

/// CTAs, numbers of programs and tensor maps of a launch with arguments of these bits, on a device that executes so many CTAs at a
/// time; none where the kernel without maps must be launched.
#[cfg(feature = "tool")]
pub(crate) fn driver_launch(
    meta: &KernelMeta,
    words: &[u64],
    grid: [u32; 3],
    resident: u32,
) -> Option<DriverLaunch> {
    let word = |index: usize| words.get(index).copied();
    let make = |recipe| encode(recipe, &tensor_maps::resolve(meta, recipe, &word, grid)?);
    let programs = grid.iter().filter(|_| meta.persistent);
    Some(DriverLaunch {
        ctas: meta.ctas(grid, resident)?,
        programs: programs.map(|n| n.to_le_bytes()).collect(),
        maps: meta.maps.iter().map(make).collect::<Option<_>>()?,
    })
}

/// A map; none if the driver refuses it.
fn encode(recipe: &MapRecipe, map: &Resolved) -> Option<TensorMap> {
    let mut tile = [0; 5];
    for (to, &from) in tile.iter_mut().zip(recipe.tile.iter().rev()) {
        *to = from;
    }
    let shape = TensorShape {
        element: *TensorElement::ALL.get(tensor_maps::element(recipe.elem) as usize)?,
        dims: &map.extents[..map.rank],
        strides: &map.strides[..map.rank - 1],
        tile: &tile[..map.rank],
        swizzle: *TensorSwizzle::ALL.get(tensor_maps::swizzle(recipe))?,
        nan: recipe.nan,
    };
    TensorMap::new(RawPtr::from_parts(map.base, 0), &shape).ok()
}
