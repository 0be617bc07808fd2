//! What the variants of a kernel are built from: this and the classes of arguments decide what one of them is. Nothing that builds
//! knows what launches (`tests/tidy.rs` holds that).

use std::collections::HashMap;
use std::sync::Arc;

use crate::runtime::api::device::Device;
use crate::runtime::api::dtype::DType;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::kernel_options::KernelOptions;
use crate::runtime::api::program::{Param, ProgramSource};
use crate::runtime::specialize::arg_tree::{self, ArgTree};
use crate::runtime::specialize::class::Specialize;
use crate::runtime::specialize::class_key::Classes;

/// A function of a program, set up for a device.
#[derive(Clone)]
pub(crate) struct Blueprint {
    /// No handle: what a program keeps holds no device.
    pub(crate) device: Device,
    pub(crate) source: Arc<ProgramSource>,
    pub(crate) name: String,
    pub(crate) options: KernelOptions,
    pub(crate) params: Vec<Param>,
    /// The parameters that take an argument.
    pub(crate) slots: Vec<ArgSlot>,
}

/// A parameter that takes an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArgSlot {
    /// Its index among all parameters.
    pub(crate) param: usize,
    /// Bits that every argument must have clear.
    pub(in crate::runtime) clear: u64,
    /// What every number becomes.
    pub(in crate::runtime) pinned: Option<DType>,
}

impl Blueprint {
    pub(in crate::runtime) fn new(
        device: Device,
        source: Arc<ProgramSource>,
        name: String,
        options: KernelOptions,
    ) -> Result<Blueprint, RuntimeError> {
        if !source.has_lines()
            && let Some((constant, _)) = options.constants.first()
        {
            return Err(RuntimeError::Setup {
                kernel: name,
                problem: format!("a function of the IR has no constant `{constant}`"),
            });
        }
        let params = source.params(&name);
        let takes_argument =
            |param: &Param| !param.constexpr && options.constant(&param.name).is_none();
        let slots = params
            .iter()
            .enumerate()
            .filter(|(_, param)| takes_argument(param));
        let slots = slots.map(|(index, param)| ArgSlot {
            param: index,
            clear: u64::from(param.divisible.max(1)) - 1,
            pinned: param.pinned,
        });
        Ok(Blueprint {
            slots: slots.collect(),
            device,
            source,
            name,
            options,
            params,
        })
    }

    /// For each parameter that takes an argument what the kernel may be specialised for.
    pub(in crate::runtime) fn allowed(&self) -> Vec<Specialize> {
        let opted_out = self.options.opted_out.iter();
        let opted_out: HashMap<&str, Specialize> = opted_out
            .map(|(name, allowed)| (name.as_str(), *allowed))
            .collect();
        let params = self.slots.iter().map(|slot| &self.params[slot.param]);
        let allowed = params.map(|param| {
            let allowed = opted_out.get(param.name.as_str());
            param
                .specialize
                .and(allowed.copied().unwrap_or(Specialize::ALL))
        });
        allowed.collect()
    }

    /// How many arguments there must be.
    pub(in crate::runtime) fn required(&self) -> usize {
        let needs = |slot: &ArgSlot| !self.params[slot.param].default;
        self.slots.iter().rposition(needs).map_or(0, |at| at + 1)
    }

    /// For each parameter that has an argument of such classes its index and what it is.
    pub(in crate::runtime) fn by_param(&self, classes: &Classes) -> Vec<(usize, ArgTree)> {
        let slots = self.slots.iter().map(|slot| slot.param);
        slots.zip(arg_tree::read(classes)).collect()
    }

    /// Classes as a signature.
    pub(crate) fn signature(&self, classes: &Classes) -> String {
        let entries: Vec<String> = arg_tree::read(classes)
            .iter()
            .map(ArgTree::to_string)
            .collect();
        entries.join(", ")
    }
}
