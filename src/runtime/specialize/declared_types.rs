//! Numbers of other types than a program gives its parameters: `n: tl.int64` takes an `i32`, as Triton does.

use crate::runtime::api::argument::{Arg, ArgList, ArgNumber};
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::kernel::KernelInner;
use crate::runtime::build::blueprint::ArgSlot;
use crate::runtime::specialize::arg_tree;
use crate::runtime::specialize::class::Class;

impl ArgSlot {
    /// Whether an argument is not of the type that it must be of; what is absent or a tuple has none.
    pub(in crate::runtime) fn is_to_convert(&self, arg: &Arg<'_>) -> bool {
        let is_other = |dtype| Class::number(dtype) != Class(arg.class).plain();
        self.pinned.is_some_and(is_other) && (arg.is_pointer() || arg.number_of().is_some())
    }
}

impl KernelInner {
    /// The arguments with numbers of the types that the program gives its parameters; none if they are that already.
    #[cold]
    pub(in crate::runtime) fn typed<'a>(
        &self,
        args: &[Arg<'a>],
    ) -> Result<Option<ArgList<'a>>, RuntimeError> {
        // Without an allocation where there is nothing to do.
        let mut pairs = args.iter().zip(&self.slots);
        let is_plain = || !args.iter().any(Arg::is_mark);
        if !self.is_picky || is_plain() && !pairs.any(|(arg, slot)| slot.is_to_convert(arg)) {
            return Ok(None);
        }
        let by_param = arg_tree::split(args);
        let is_to_convert = |(args, slot): (&&[Arg<'_>], &ArgSlot)| match args {
            [arg] => !arg.is_mark() && slot.is_to_convert(arg),
            _ => false,
        };
        if !by_param.iter().zip(&self.slots).any(is_to_convert) {
            return Ok(None);
        }
        let mut list = ArgList::new();
        for (at, args) in by_param.iter().enumerate() {
            match (self.slots.get(at), args) {
                (Some(slot), [arg]) if is_to_convert((args, slot)) => {
                    list.extend([self.convert(slot, arg)?]);
                }
                _ => list.extend(args.iter().copied()),
            }
        }
        Ok(Some(list))
    }

    /// The number in the type of its parameter.
    fn convert(&self, slot: &ArgSlot, arg: &Arg<'_>) -> Result<Arg<'static>, RuntimeError> {
        let converted = slot.pinned.and_then(|dtype| arg.as_dtype(dtype));
        converted.ok_or_else(|| {
            let wanted = slot.pinned.map_or_else(String::new, |d| d.to_string());
            let problem = match arg.number_of() {
                Some((_, ArgNumber::Int(n))) => {
                    format!("{n} does not fit {wanted}, which its annotation says")
                }
                _ => {
                    let given = Class(arg.class).plain();
                    format!("it is {given}, and its annotation says {wanted}")
                }
            };
            self.wrong_argument(slot, problem)
        })
    }
}
