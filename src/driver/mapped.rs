//! Prepared launches of kernels that take tensor maps.

use super::error::DriverError;
use super::launch::LaunchSpec;
use super::module::Function;
use super::prepared::{INLINE, LaunchAttributes, Launched, Prepared};
use super::stream::Stream;
use super::tensor_map::TensorMap;
use core::mem::MaybeUninit;
use core::ptr::from_ref;

/// A kernel whose parameters are numbers and pointers of up to eight bytes and, behind them, tensor maps.
#[derive(Debug)]
pub struct PreparedWithMaps {
    /// A launch of it by words alone would have the driver read maps where there are none.
    prepared: Prepared,
    words: usize,
    maps: usize,
}

impl PreparedWithMaps {
    /// As [`Prepared::new`]; `spec` describes the parameters before the maps, of which there are `maps`.
    ///
    /// # Errors
    ///
    /// Those of [`Prepared::new`].
    pub fn new(
        function: Function,
        spec: &LaunchSpec<'_>,
        attributes: LaunchAttributes,
        maps: usize,
    ) -> Result<PreparedWithMaps, DriverError> {
        Ok(PreparedWithMaps {
            prepared: Prepared::with_maps(function, spec, attributes, maps)?,
            words: spec.params.len(),
            maps,
        })
    }

    /// The kernel.
    #[must_use]
    pub fn function(&self) -> &Function {
        self.prepared.function()
    }

    /// Puts a launch of `grid` blocks into `stream`, with an argument in the low bytes of each of `words`. The maps are copied
    /// before this returns. Nothing is allocated for up to 64 parameters.
    ///
    /// # Errors
    ///
    /// Those of [`Prepared::launch`].
    pub fn launch<'w, 'm>(
        &self,
        grid: [u32; 3],
        stream: &Stream,
        words: impl Iterator<Item = &'w u64>,
        maps: impl Iterator<Item = &'m TensorMap>,
    ) -> Result<(), DriverError> {
        let room = self.words + self.maps;
        if room > INLINE {
            return self.launch_many(grid, stream, &mut words.map(from_ref), &mut maps.map(place));
        }
        // As in `Prepared::launch`: what lies behind the last is not read. A vector would cost three times as much.
        let mut places = [const { MaybeUninit::<*const u64>::uninit() }; INLINE];
        let mut count = 0;
        let mut put = |place: *const u64| {
            if let Some(to) = places.get_mut(count) {
                to.write(place);
            }
            count += 1;
        };
        let mut of_words = 0;
        words.for_each(|word| {
            put(from_ref(word));
            of_words += 1;
        });
        maps.for_each(|map| put(place(map)));
        if (of_words, count) != (self.words, room) {
            return Err(self.other_count(count));
        }
        self.start(grid, stream, places.as_ptr().cast(), count)
    }

    /// [`PreparedWithMaps::launch`] with more parameters than there is room for on the stack.
    #[cold]
    fn launch_many(
        &self,
        grid: [u32; 3],
        stream: &Stream,
        words: &mut dyn Iterator<Item = *const u64>,
        maps: &mut dyn Iterator<Item = *const u64>,
    ) -> Result<(), DriverError> {
        let mut places: Vec<*const u64> = words.collect();
        let words = places.len();
        places.extend(maps);
        if (words, places.len() - words) != (self.words, self.maps) {
            return Err(self.other_count(places.len()));
        }
        self.start(grid, stream, places.as_ptr(), places.len())
    }

    fn start(
        &self,
        grid: [u32; 3],
        stream: &Stream,
        places: *const *const u64,
        count: usize,
    ) -> Result<(), DriverError> {
        match self.prepared.start(grid, stream, places, count) {
            Launched::Done => Ok(()),
            other => self.prepared.explain(other, grid, stream, count),
        }
    }

    #[cold]
    fn other_count(&self, got: usize) -> DriverError {
        DriverError::ArgumentCount {
            name: self.function().name().to_owned(),
            expected: self.words + self.maps,
            got,
        }
    }
}

/// Where a map lies.
fn place(map: &TensorMap) -> *const u64 {
    map.place().cast()
}
