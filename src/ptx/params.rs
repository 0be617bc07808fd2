//! Room for the parameters of a kernel.

use crate::error::CompileError;
use crate::ir::function::ThreadFunction;
use crate::ir::map_recipe::{MAP_ALIGN, MAP_BYTES};
use crate::limits::PARAMETER_BYTES;
use crate::settings::PtxVersion;

/// Bytes that every version of PTX has (manual, `.param` space).
const OLD_LIMIT: u32 = 4352;

/// The version that brought the larger limit.
const LARGE: PtxVersion = PtxVersion { major: 8, minor: 1 };

/// The version that brought addresses of parameters, which is how a kernel names a tensor map.
const ADDRESSES: PtxVersion = PtxVersion { major: 7, minor: 7 };

/// Bytes of the parameters, each aligned to its size, and of the tensor maps behind them.
fn param_bytes(func: &ThreadFunction) -> u32 {
    let end = func.params().iter().fold(0_u32, |end, &param| {
        let bytes = func.dfg.ty(param).elem.bytes().max(1);
        end.next_multiple_of(bytes).saturating_add(bytes)
    });
    match u32::try_from(func.maps.len()) {
        Ok(0) => end,
        Ok(maps) => end
            .next_multiple_of(MAP_ALIGN)
            .saturating_add(MAP_BYTES.saturating_mul(maps)),
        Err(_) => u32::MAX,
    }
}

/// Refuses more parameters than PTX has room for.
pub(crate) fn check_params(func: &ThreadFunction) -> Result<(), CompileError> {
    let (needed, limit) = (param_bytes(func), PARAMETER_BYTES);
    if needed > limit {
        Err(CompileError::Parameters { needed, limit })
    } else {
        Ok(())
    }
}

/// The version that the parameters need, if they need one.
pub(super) fn version(func: &ThreadFunction) -> Option<PtxVersion> {
    if param_bytes(func) > OLD_LIMIT {
        return Some(LARGE);
    }
    (!func.maps.is_empty()).then_some(ADDRESSES)
}
