//! Which variant a launch uses, and why; and what it is made of.

use crate::stages::{self, Stage};

use crate::runtime::api::argument::{Arg, Class, DIVISIBLE, ONE};
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::kernel::KernelInner;
use crate::runtime::api::report::Explanation;
use crate::runtime::build::build_variant;
use crate::runtime::specialize::arg_tree::{self, ArgTree};
use crate::runtime::specialize::table::Classes;

impl KernelInner {
    pub(in crate::runtime) fn explain(&self, args: &[Arg<'_>], classes: &Classes) -> Explanation {
        let asked = arg_tree::read(classes);
        let classes = &*self.in_use(classes);
        let slots = self.slots.iter().zip(self.masks.iter());
        let given = arg_tree::read(classes);
        let classes_of = given.iter().zip(&asked);
        let reasons = arg_tree::split(args).into_iter().zip(slots).zip(classes_of);
        let arguments = reasons.map(|((args, (slot, mask)), (given, asked))| {
            let reason = match (given, args) {
                _ if given != asked => {
                    "the kernel has as many variants as it may have, and its type alone counts"
                        .to_owned()
                }
                (ArgTree::Plain(class), [arg]) => reason(*class, arg, mask),
                (ArgTree::Descriptor { .. }, _) => {
                    "a tensor; of its sizes it counts which are multiples of 16, its address and strides are no part of it".to_owned()
                }
                _ => "a tuple, each element for itself".to_owned(),
            };
            let name = self.params[slot.param].name.clone();
            (name, given.to_string(), reason)
        });
        let variant = self.table.get(classes);
        Explanation {
            signature: self.signature(classes),
            ready: variant.is_some_and(|variant| variant.ready.get().is_some()),
            arguments: arguments.collect(),
        }
    }

    /// The text of a variant at a stage.
    pub(in crate::runtime) fn emit(
        &self,
        classes: &Classes,
        stage: Stage,
    ) -> Result<String, RuntimeError> {
        if self.source.is_compiled() {
            return match stage {
                Stage::Ptx => Ok(self.source.text.clone()),
                other => Err(RuntimeError::Setup {
                    kernel: self.name.clone(),
                    problem: format!(
                        "it was compiled ahead of time: there is its PTX, and nothing of the stage `{}`",
                        other.name()
                    ),
                }),
            };
        }
        let made = build_variant::lower(self, &self.in_use(classes))?;
        let options = self.options.compiler();
        stages::emit(&made.func, self.device.target(), &options, stage).map_err(|error| {
            RuntimeError::Compile {
                kernel: self.name.clone(),
                error: Box::new(error),
            }
        })
    }
}

/// Why an argument has its class.
fn reason(class: Class, arg: &Arg<'_>, mask: u8) -> String {
    let kind = if class.is_pointer() {
        "address"
    } else {
        "value"
    };
    match class.0 & (ONE | DIVISIBLE) {
        ONE => "its value is 1 and becomes a constant".to_owned(),
        promised if promised & DIVISIBLE != 0 => {
            let divisor = class.divisor();
            format!("its {kind} {:#x} is a multiple of {divisor}", arg.bits)
        }
        _ if mask & (ONE | DIVISIBLE) == 0 => "it is not specialised for values".to_owned(),
        _ if class.dtype().is_none() => "it is absent".to_owned(),
        _ if mask & DIVISIBLE == 0 && arg.class & DIVISIBLE != 0 => {
            format!(
                "its {kind} {:#x} is a multiple of {}, which it is not specialised for",
                arg.bits,
                Class(arg.class).divisor()
            )
        }
        _ if mask & ONE == 0 && arg.class & ONE != 0 => {
            "its value is 1, which it is not specialised for".to_owned()
        }
        _ => format!("its {kind} {:#x} promises nothing", arg.bits),
    }
}
