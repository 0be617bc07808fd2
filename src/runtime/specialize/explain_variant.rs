//! Which variant a launch uses, and why; and what it is made of.

use crate::stages::{self, Stage};

use crate::runtime::api::argument::Arg;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::kernel::KernelInner;
use crate::runtime::api::report::Explanation;
use crate::runtime::build::build_variant;
use crate::runtime::specialize::arg_tree::{self, ArgTree};
use crate::runtime::specialize::class::{Class, Specialize};
use crate::runtime::specialize::class_key::Classes;

impl KernelInner {
    pub(in crate::runtime) fn explain(&self, args: &[Arg<'_>], classes: &Classes) -> Explanation {
        let asked = arg_tree::read(classes);
        let in_use = &*self.in_use(classes);
        let ready = self
            .table
            .get(in_use)
            .and_then(|variant| variant.ready.get());
        let is_served = ready.is_some_and(|ready| ready.served.holds(&self.kept(classes)));
        let used = ready.map_or(in_use, |ready| &ready.served.least);
        let used = arg_tree::read(used);
        let slots = self.slots.iter().zip(&self.allowed);
        let classes_of = asked.iter().zip(&used);
        let reasons = arg_tree::split(args).into_iter().zip(slots).zip(classes_of);
        let arguments = reasons.map(|((args, (slot, &allowed)), (asked, used))| {
            let mut reason = match (asked, args) {
                _ if used != asked && !is_served => {
                    "the kernel has as many variants as it may have, and its type alone counts"
                        .to_owned()
                }
                (ArgTree::Plain(class), [arg]) => reason(*class, arg, allowed),
                (ArgTree::Descriptor { .. }, _) => {
                    "a tensor; of its sizes it counts what they are multiples of, its address and strides are no part of it".to_owned()
                }
                _ => "a tuple, each element for itself".to_owned(),
            };
            if used != asked && is_served {
                reason += ", of which the code depends on no more";
            }
            let name = self.params[slot.param].name.clone();
            (name, used.to_string(), reason)
        });
        Explanation {
            arguments: arguments.collect(),
            signature: match ready {
                Some(ready) => ready.report.signature.clone(),
                None => self.signature(in_use),
            },
            ready: ready.is_some(),
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
fn reason(class: Class, arg: &Arg<'_>, allowed: Specialize) -> String {
    let kind = if class.is_pointer() {
        "address"
    } else {
        "value"
    };
    let all = Class(arg.class);
    if class.is_one() {
        return "its value is 1 and becomes a constant".to_owned();
    }
    if class.halves() > 0 {
        let divisor = class.divisor();
        return format!("its {kind} {:#x} is a multiple of {divisor}", arg.bits);
    }
    match allowed {
        Specialize::NOTHING => "it is not specialised for values".to_owned(),
        _ if class.dtype().is_none() => "it is absent".to_owned(),
        _ if !allowed.alignment && all.halves() > 0 => {
            format!(
                "its {kind} {:#x} is a multiple of {}, which it is not specialised for",
                arg.bits,
                all.divisor()
            )
        }
        _ if !allowed.value && all.is_one() => {
            "its value is 1, which it is not specialised for".to_owned()
        }
        _ => format!("its {kind} {:#x} promises nothing", arg.bits),
    }
}
