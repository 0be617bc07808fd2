//! The grids that CUDA launches, which interpreter, emulator and `; run:` lines hold to alike.

/// Most programs along each axis, for every compute capability there is.
pub(crate) const LIMITS: [u32; 3] = [i32::MAX as u32, 65535, 65535];

/// A grid that no GPU launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a grid of {} x {} x {} programs; each axis has at least 1, x at most {}, y and z at most {}",
    grid[0], grid[1], grid[2], LIMITS[0], LIMITS[1]
)]
pub(crate) struct GridError {
    /// Programs along each axis.
    pub(crate) grid: [u32; 3],
}

/// Checks a grid against the limits.
pub(crate) fn check(grid: [u32; 3]) -> Result<(), GridError> {
    let fits = (0..3).all(|axis| (1..=LIMITS[axis]).contains(&grid[axis]));
    if fits {
        Ok(())
    } else {
        Err(GridError { grid })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_axis_has_its_limits() {
        for grid in [[1, 1, 1], [i32::MAX as u32, 65535, 65535]] {
            assert_eq!(check(grid), Ok(()));
        }
        for grid in [
            [0, 1, 1],
            [1, 0, 1],
            [1, 1, 0],
            [1 << 31, 1, 1],
            [1, 65536, 1],
            [1, 1, 65536],
        ] {
            assert_eq!(check(grid), Err(GridError { grid }));
        }
        assert_eq!(
            GridError {
                grid: [1, 70000, 1]
            }
            .to_string(),
            "a grid of 1 x 70000 x 1 programs; each axis has at least 1, x at most 2147483647, y and z at most 65535"
        );
    }
}
