//! What the model of time expects of a launch, without anything being assembled or launched.

use crate::ir::types::Elem;
use crate::predict::{Estimate, Launch, Model};
use crate::runtime::api::argument::Arg;
use crate::runtime::api::constant::Grid;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::kernel::KernelInner;
use crate::runtime::build::build_variant;
use crate::runtime::specialize::arg_tree;
use crate::runtime::specialize::class_key::Classes;

impl KernelInner {
    /// None for kernels and devices that the model says nothing of.
    pub(in crate::runtime) fn estimate(
        &self,
        grid: Grid<'_>,
        args: &[Arg<'_>],
        classes: &Classes,
    ) -> Result<Option<Estimate>, RuntimeError> {
        if self.source.is_compiled() {
            return Ok(None);
        }
        let classes = self.in_use(classes);
        let made = build_variant::lower(self, &classes)?;
        let options = self.options.compiler();
        let model = Model::of(&made.func, self.device.target(), &options);
        let model = model.map_err(|error| RuntimeError::Compile {
            kernel: self.name.clone(),
            error: Box::new(error),
        })?;
        let Some(model) = model else {
            return Ok(None);
        };
        let grid = self.grid_of_made(grid, &made)?;
        let places = arg_tree::places(&arg_tree::read(&classes));
        let params = made.func.params().iter().zip(&places);
        let numbers = params.map(|(&param, place)| {
            let arg = args.get(place.argument)?;
            whole_number(made.func.dfg.ty(param).elem, arg.bits)
        });
        let numbers: Vec<Option<i64>> = numbers.collect();
        Ok(model.estimate(&Launch {
            grid,
            numbers: &numbers,
        }))
    }
}

/// The number of an argument whose low bits these are; none if its type is not one of whole numbers.
fn whole_number(elem: Elem, bits: u64) -> Option<i64> {
    if !elem.is_int() {
        return None;
    }
    if elem == Elem::I1 {
        return Some(i64::from(bits & 1 != 0));
    }
    let unused = 64 - elem.bits();
    Some(((bits << unused) as i64) >> unused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_signs() {
        assert_eq!(whole_number(Elem::I32, 0xffff_ffff), Some(-1));
        assert_eq!(whole_number(Elem::I64, 5), Some(5));
        assert_eq!(whole_number(Elem::I1, 0xff), Some(1));
        assert_eq!(whole_number(Elem::F32, 5), None);
    }
}
