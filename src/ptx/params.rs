//! Room for the parameters of a kernel.

use crate::error::CompileError;
use crate::ir::function::ThreadFunction;
use crate::limits::PARAMETER_BYTES;
use crate::settings::PtxVersion;

/// Bytes that every version of PTX has (manual, `.param` space).
const OLD_LIMIT: u32 = 4352;

/// The version that brought the larger limit.
const LARGE: PtxVersion = PtxVersion { major: 8, minor: 1 };

/// Bytes of the parameters, each aligned to its size.
fn param_bytes(func: &ThreadFunction) -> u32 {
    func.params().iter().fold(0_u32, |end, &param| {
        let bytes = func.dfg.ty(param).elem.bytes().max(1);
        end.next_multiple_of(bytes).saturating_add(bytes)
    })
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
    (param_bytes(func) > OLD_LIMIT).then_some(LARGE)
}
