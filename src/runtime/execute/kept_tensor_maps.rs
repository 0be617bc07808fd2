//! Tensor maps of the last launches on a GPU, kept: they are made anew when what they depend on is not what it was.
//!
//! A kernel keeps the maps of its last launches in a few places, of which each thread tries its own first, so that threads
//! with tensors of their own do not undo each other's. What is kept there is found by the arguments that the maps depend on:
//! comparing those is all that a launch like the last one costs. Where tensors of the same extents lie elsewhere, the driver changes
//! their addresses alone, and no condition is looked at again, as none is about addresses. A launch allocates nothing, unless more
//! threads than there are places launch one kernel at the same time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, TryLockError};

use smallvec::SmallVec;

use crate::compile::{KernelMeta, ParamKind};
use crate::driver::{
    DriverError, PreparedWithMaps, RawPtr, Stream, TensorElement, TensorMap, TensorShape,
    TensorSwizzle,
};
use crate::ir::map_recipe::{MapRecipe, NumberList, Resolved};

use crate::runtime::api::argument::Arg;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::execute::executable::Executable;
use crate::runtime::execute::tensor_maps::{self, Integer};

/// Places for maps.
const PLACES: usize = 8;

/// A kernel that takes tensor maps, ready to be launched.
#[derive(Debug)]
pub(in crate::runtime) struct Mapped {
    prepared: PreparedWithMaps,
    /// What the recipes are made of; none where one of them has no map.
    numbers: Option<NumberList>,
    /// The arguments of integer type that the numbers are made of, by their places, and how each is read, by parameter.
    inputs: SmallVec<[u16; 16]>,
    integers: Vec<Option<(u16, Integer)>>,
    /// The arguments that point into the tensors, one for each recipe.
    bases: SmallVec<[u16; 4]>,
    /// Whether the numbers depend on the grid.
    reads_grid: bool,
    /// CTAs of a persistent kernel that the device executes at a time.
    resident: u32,
    places: [Mutex<Last>; PLACES],
}

/// The maps of a launch.
#[derive(Debug, Default)]
struct Last {
    /// The integers and the grid that they are of.
    key: Vec<u64>,
    /// The addresses that the kernel was given, one for each recipe; none at first.
    bases: Vec<u64>,
    /// What the numbers were.
    numbers: Vec<i64>,
    /// One for each recipe, or none where the kernel without maps does the work.
    maps: Vec<(Resolved, TensorMap)>,
}

/// A number of the running thread.
fn thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
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
            params.get(index).copied().filter(|_| is_pointer)
        };
        let bases: Option<SmallVec<[u16; 4]>> = meta.maps.iter().map(base).collect();
        let numbers = NumberList::new(&meta.maps).ok();
        let numbers = numbers.filter(|_| bases.is_some());
        let inputs = params.iter().zip(&used).filter(|&(_, &used)| used);
        let integers = params.iter().zip(&meta.params);
        let mapped = Mapped {
            prepared,
            places: std::array::from_fn(|_| Mutex::default()),
            inputs: inputs.map(|(&at, _)| at).collect(),
            integers: integers
                .map(|(&at, param)| Some((at, Integer::of(param)?)))
                .collect(),
            bases: bases.unwrap_or_default(),
            numbers,
            reads_grid,
            resident,
        };
        for place in &mapped.places {
            if let Ok(mut place) = place.lock() {
                place.make_room(&mapped);
            }
        }
        mapped
    }

    /// The kernel on the device.
    pub(in crate::runtime) fn prepared(&self) -> &PreparedWithMaps {
        &self.prepared
    }

    /// Launches with the maps of these arguments, after `before`; none where there are no such maps and the kernel without
    /// must be launched.
    pub(in crate::runtime) fn launch(
        &self,
        executable: &Executable,
        grid: [u32; 3],
        stream: &Stream,
        args: &[Arg<'_>],
        before: impl FnOnce() -> Result<(), RuntimeError>,
    ) -> Option<Result<Result<(), DriverError>, RuntimeError>> {
        let Executable { meta, params, .. } = executable;
        let first = thread();
        let free = (0..PLACES).find_map(|i| match self.places[(first + i) % PLACES].try_lock() {
            Ok(last) => Some(last),
            Err(TryLockError::Poisoned(last)) => Some(last.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        });
        let (mut free, mut own) = (free, Last::default());
        let last = free.as_deref_mut().unwrap_or(&mut own);
        let is_done = match self.is_same(last, grid, args) {
            true if self.is_there(last, args) => true,
            true if last.maps.len() == meta.maps.len() => {
                self.move_all(last, &meta.maps, args).is_some()
            }
            _ => self.make(last, &meta.maps, grid, args).is_some(),
        };
        if !is_done {
            // Known of a launch like this one.
            last.maps.clear();
            last.bases.clear();
            last.bases.extend(self.addresses(args));
        }
        let has_maps = last.maps.len() == meta.maps.len();
        let ctas = meta.ctas(grid, self.resident).filter(|_| has_maps);
        executable.is_plain.store(ctas.is_none(), Ordering::Relaxed);
        let ctas = ctas?;
        let programs = grid.map(u64::from);
        let words = params.iter().map(|&at| &args[usize::from(at)].bits);
        let words = words.chain(programs.iter().filter(|_| meta.persistent));
        let maps = last.maps.iter().map(|(_, map)| map);
        Some(before().map(|()| self.prepared.launch(ctas, stream, words, maps)))
    }

    /// What the numbers of the maps of a launch depend on.
    fn key<'k>(&'k self, grid: [u32; 3], args: &'k [Arg<'_>]) -> impl Iterator<Item = u64> + 'k {
        let inputs = self.inputs.iter().map(|&at| args[usize::from(at)].bits);
        let grid = grid.into_iter().filter(|_| self.reads_grid);
        inputs.chain(grid.map(u64::from))
    }

    fn is_same(&self, last: &Last, grid: [u32; 3], args: &[Arg<'_>]) -> bool {
        // Part by part: the same by one iterator over both costs three times as much.
        let (numbers, extents) = last.key.split_at(self.inputs.len().min(last.key.len()));
        let is_input = |(number, &at): (&u64, &u16)| *number == args[usize::from(at)].bits;
        !last.bases.is_empty()
            && numbers.iter().zip(&self.inputs).all(is_input)
            && extents
                .iter()
                .zip(grid)
                .all(|(&kept, extent)| kept == u64::from(extent))
    }

    /// Whether the tensors lie where they did.
    fn is_there(&self, last: &Last, args: &[Arg<'_>]) -> bool {
        let mut bases = last.bases.iter().zip(&self.bases);
        bases.all(|(&base, &at)| base == args[usize::from(at)].bits)
    }

    /// Where the tensors lie.
    fn addresses<'k>(&'k self, args: &'k [Arg<'_>]) -> impl Iterator<Item = u64> + 'k {
        self.bases.iter().map(|&at| args[usize::from(at)].bits)
    }

    /// Makes the maps of a launch whose numbers are not those of the last one; none where some map is not to be had.
    fn make(
        &self,
        last: &mut Last,
        recipes: &[MapRecipe],
        grid: [u32; 3],
        args: &[Arg<'_>],
    ) -> Option<()> {
        last.key.clear();
        last.key.extend(self.key(grid, args));
        last.bases.clear();
        last.bases.extend(self.addresses(args));
        let list = self.numbers.as_ref()?;
        let param = |index: u32| {
            let (at, integer) = (*self.integers.get(index as usize)?)?;
            Some(integer.number(args[usize::from(at)].bits))
        };
        list.eval(param, grid, &mut last.numbers)?;
        for (i, recipe) in recipes.iter().enumerate() {
            let map = list.resolve(i, recipe, *last.bases.get(i)?, &last.numbers)?;
            match last.maps.get_mut(i) {
                Some(kept) => again(recipe, &map, kept)?,
                None => last.maps.push((map, encode(recipe, &map)?)),
            }
        }
        Some(())
    }

    /// Makes the maps of a launch whose tensors lie elsewhere and are otherwise those of the last one; none where some map is not to
    /// be had.
    fn move_all(&self, last: &mut Last, recipes: &[MapRecipe], args: &[Arg<'_>]) -> Option<()> {
        let recipes = recipes.iter().zip(self.addresses(args));
        let kept = last.maps.iter_mut().zip(&mut last.bases);
        for ((recipe, to), (kept, base)) in recipes.zip(kept) {
            if *base != to {
                let map = kept.0.moved(*base, to)?;
                again(recipe, &map, kept)?;
                *base = to;
            }
        }
        Some(())
    }
}

impl Last {
    /// Room for whatever a launch leaves, so that none allocates.
    fn make_room(&mut self, mapped: &Mapped) {
        let count = mapped.bases.len();
        self.key.reserve(mapped.inputs.len() + 3);
        self.bases.reserve(count);
        self.maps.reserve(count);
        self.numbers
            .reserve(mapped.numbers.as_ref().map_or(0, NumberList::len));
    }
}

/// Makes another map of a recipe of one that was made before; none if there is none.
fn again(recipe: &MapRecipe, map: &Resolved, kept: &mut (Resolved, TensorMap)) -> Option<()> {
    let moved = Resolved {
        base: map.base,
        ..kept.0
    };
    let is_done = kept.0 == *map
        || moved == *map && kept.1.set_address(RawPtr::from_parts(map.base, 0)).is_ok();
    if !is_done {
        kept.1 = encode(recipe, map)?;
    }
    kept.0 = *map;
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
