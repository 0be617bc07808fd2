//! Tensor maps of the last launches on a GPU, kept: they are made anew when what they depend on is not what it was.
//!
//! A kernel keeps the maps of its last launches in a few places, of which each thread tries its own first, so that threads
//! with tensors of their own do not undo each other's. What is kept there is found by the arguments that the maps depend on:
//! comparing those is all that a launch like the last one costs. Where only the tensor's address is another the driver changes
//! that alone. A launch allocates nothing, unless more threads than there are places launch one kernel at the same time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, TryLockError};

use smallvec::SmallVec;

use crate::compile::KernelMeta;
use crate::driver::{
    DriverError, PreparedWithMaps, RawPtr, Stream, TensorElement, TensorMap, TensorShape,
    TensorSwizzle,
};
use crate::ir::map_recipe::{MapRecipe, Resolved};

use crate::runtime::api::argument::Arg;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::execute::executable::Executable;
use crate::runtime::execute::tensor_maps;

/// Places for maps.
const PLACES: usize = 8;

/// A kernel that takes tensor maps, ready to be launched.
#[derive(Debug)]
pub(in crate::runtime) struct Mapped {
    prepared: PreparedWithMaps,
    /// The arguments that maps depend on, by their places.
    inputs: SmallVec<[u16; 16]>,
    /// Whether they depend on the grid.
    reads_grid: bool,
    /// CTAs of a persistent kernel that the device executes at a time.
    resident: u32,
    places: [Mutex<Last>; PLACES],
}

/// The maps of a launch.
#[derive(Debug, Default)]
struct Last {
    /// The arguments and the grid that they are of; none at first.
    key: Vec<u64>,
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
        let mut note = |index: u32| {
            if let Some(used) = used.get_mut(index as usize) {
                *used = true;
            }
        };
        let mut reads_grid = false;
        for recipe in &meta.maps {
            note(recipe.base);
            for number in recipe.numbers() {
                number.params(&mut note);
                reads_grid |= number.reads_grid();
            }
        }
        let inputs = params.iter().zip(&used).filter(|&(_, &used)| used);
        let inputs: SmallVec<[u16; 16]> = inputs.map(|(&at, _)| at).collect();
        let place = || Last {
            key: Vec::with_capacity(inputs.len() + 3),
            maps: Vec::with_capacity(meta.maps.len()),
        };
        Mapped {
            prepared,
            places: std::array::from_fn(|_| Mutex::new(place())),
            inputs,
            reads_grid,
            resident,
        }
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
        let word = |param: usize| Some(args.get(usize::from(*params.get(param)?))?.bits);
        if !self.is_same(last, grid, args) {
            self.update(last, meta, &word, grid, args);
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

    /// What the maps of a launch depend on.
    fn key<'k>(&'k self, grid: [u32; 3], args: &'k [Arg<'_>]) -> impl Iterator<Item = u64> + 'k {
        let inputs = self.inputs.iter().map(|&at| args[usize::from(at)].bits);
        let grid = grid.into_iter().filter(|_| self.reads_grid);
        inputs.chain(grid.map(u64::from))
    }

    fn is_same(&self, last: &Last, grid: [u32; 3], args: &[Arg<'_>]) -> bool {
        // Every map depends on its base, so the key of a launch is not empty.
        last.key.iter().copied().eq(self.key(grid, args))
    }

    /// Makes the maps of a launch.
    fn update(
        &self,
        last: &mut Last,
        meta: &KernelMeta,
        word: &dyn Fn(usize) -> Option<u64>,
        grid: [u32; 3],
        args: &[Arg<'_>],
    ) {
        last.key.clear();
        last.key.extend(self.key(grid, args));
        for (i, recipe) in meta.maps.iter().enumerate() {
            let kept = last.maps.get_mut(i);
            let made = tensor_maps::resolve(meta, recipe, word, grid).and_then(|map| match kept {
                Some(kept) => again(recipe, &map, kept).then_some(None),
                None => Some(Some((map, encode(recipe, &map)?))),
            });
            match made {
                Some(None) => {}
                Some(Some(made)) => last.maps.push(made),
                None => {
                    last.maps.clear();
                    return;
                }
            }
        }
    }
}

/// Makes another map of a recipe of one that was made before; false if there is none.
fn again(recipe: &MapRecipe, map: &Resolved, kept: &mut (Resolved, TensorMap)) -> bool {
    let moved = Resolved {
        base: map.base,
        ..kept.0
    };
    let is_done = kept.0 == *map
        || moved == *map && kept.1.set_address(RawPtr::from_parts(map.base, 0)).is_ok();
    if !is_done {
        let Some(made) = encode(recipe, map) else {
            return false;
        };
        kept.1 = made;
    }
    kept.0 = *map;
    true
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
