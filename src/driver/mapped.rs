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
    #[inline(always)]
    pub fn launch(
        &self,
        grid: [u32; 3],
        stream: &Stream,
        words: &[u64],
        maps: &[TensorMap],
    ) -> Result<(), DriverError> {
        let count = words.len() + maps.len();
        if (words.len(), maps.len()) != (self.words, self.maps) {
            return Err(self.other_count(count));
        }
        // As in `Prepared::launch`: what lies behind the last is not read. A vector would cost three times as much.
        let mut places = [const { MaybeUninit::<*const u64>::uninit() }; INLINE];
        let Some((of_words, of_maps)) = places[..].split_at_mut_checked(words.len()) else {
            return self.launch_many(grid, stream, words, maps);
        };
        if of_maps.len() < maps.len() {
            return self.launch_many(grid, stream, words, maps);
        }
        for (place, word) in of_words.iter_mut().zip(words) {
            place.write(from_ref(word));
        }
        for (place, map) in of_maps.iter_mut().zip(maps) {
            place.write(map.place().cast());
        }
        self.start(grid, stream, places.as_ptr().cast(), count)
    }

    /// [`PreparedWithMaps::launch`] with more parameters than there is room for on the stack.
    #[cold]
    fn launch_many(
        &self,
        grid: [u32; 3],
        stream: &Stream,
        words: &[u64],
        maps: &[TensorMap],
    ) -> Result<(), DriverError> {
        let words = words.iter().map(from_ref);
        let places: Vec<*const u64> = words
            .chain(maps.iter().map(|map| map.place().cast()))
            .collect();
        self.start(grid, stream, places.as_ptr(), places.len())
    }

    #[inline(always)]
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
