//! Prepared launches of kernels that take tensor maps.

use super::error::DriverError;
use super::launch::LaunchSpec;
use super::module::Function;
use super::prepared::{INLINE, LaunchAttributes, Launched, Prepared};
use super::stream::Stream;
use super::tensor_map::TensorMap;
use smallvec::SmallVec;

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
        let mut places: SmallVec<[*const u64; INLINE]> = SmallVec::new();
        places.extend(words.map(std::ptr::from_ref));
        let words = places.len();
        places.extend(maps.map(|map| map.place().cast()));
        let count = places.len();
        if (words, count - words) != (self.words, self.maps) {
            return Err(DriverError::ArgumentCount {
                name: self.function().name().to_owned(),
                expected: self.words + self.maps,
                got: count,
            });
        }
        match self
            .prepared
            .start(grid, stream, places.as_ptr(), places.len())
        {
            Launched::Done => Ok(()),
            other => self.prepared.explain(other, grid, stream, count),
        }
    }
}
