//! Whether arguments fit a kernel: their classes, or which of them is wrong and why.

use std::borrow::Cow;

use crate::emu::{Fault, Space};

use crate::runtime::api::argument::Arg;
use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::kernel::KernelInner;
use crate::runtime::build::blueprint::ArgSlot;
use crate::runtime::specialize::arg_tree;
use crate::runtime::specialize::class::{DESCRIPTOR, Specialize, TUPLE};
use crate::runtime::specialize::class_key::Classes;

impl KernelInner {
    pub(in crate::runtime) fn arguments(&self) -> impl Iterator<Item = &str> {
        let slots = self.slots.iter();
        slots.map(|slot| self.params[slot.param].name.as_str())
    }

    /// What counts of classes. Those that a launch finds its variant by are masked and no more: few parameters are specialised for
    /// one promise and not for the other.
    pub(in crate::runtime) fn kept<'c>(&self, classes: &'c Classes) -> Cow<'c, Classes> {
        let is_between = |&a: &Specialize| a != Specialize::ALL && a != Specialize::NOTHING;
        // With marks they were gathered one by one.
        let is_mark = |class: u8| class == TUPLE || class == DESCRIPTOR;
        if !self.allowed.iter().any(is_between) || classes.iter().any(is_mark) {
            return Cow::Borrowed(classes);
        }
        let pairs = self.allowed.iter().zip(classes.iter());
        let kept: Vec<u8> = pairs.map(|(allowed, class)| allowed.kept(class)).collect();
        Cow::Owned(Classes::list(&kept))
    }

    /// The classes of arguments.
    pub(in crate::runtime) fn classes(&self, args: &[Arg<'_>]) -> Result<Classes, RuntimeError> {
        let mut classes = Classes::none();
        if self.classify(args, &mut classes) {
            return Ok(self.kept(&classes).into_owned());
        }
        match self.typed(args)? {
            Some(typed) => self.classes(typed.as_slice()),
            None => self.marked(args),
        }
    }

    /// The classes of arguments among which there are tuples or descriptors; else what is wrong with them.
    #[cold]
    pub(in crate::runtime) fn marked(&self, args: &[Arg<'_>]) -> Result<Classes, RuntimeError> {
        if !args.iter().any(Arg::is_mark) {
            return Err(self.wrong(args));
        }
        let by_param = arg_tree::split(args);
        if !(self.required..=self.slots.len()).contains(&by_param.len()) {
            return Err(self.wrong_count(by_param.len()));
        }
        for (args, slot) in by_param.iter().zip(&self.slots) {
            let is_foreign =
                |arg: &Arg<'_>| !arg.is_mark() && arg.device != 0 && arg.device != self.device.id();
            if args.iter().any(is_foreign) {
                let problem = "its memory belongs to another device".to_owned();
                return Err(self.wrong_argument(slot, problem));
            }
            if let [arg] = args
                && arg.bits & slot.clear != 0
            {
                return Err(self.not_a_multiple(arg, slot));
            }
        }
        arg_tree::classify(args, &self.allowed).ok_or_else(|| RuntimeError::Setup {
            kernel: self.name.clone(),
            problem: "a tuple among the arguments is too large, or not whole".to_owned(),
        })
    }

    /// The arguments of the parameter of a name.
    pub(crate) fn arguments_of<'s, 'a>(
        &self,
        args: &'s [Arg<'a>],
        name: &str,
    ) -> Option<&'s [Arg<'a>]> {
        let at = self.arguments().position(|n| n == name)?;
        arg_tree::split(args).get(at).copied()
    }

    /// Fills in the classes of arguments; whether these can be launched with.
    #[inline(always)]
    pub(in crate::runtime) fn classify(&self, args: &[Arg<'_>], classes: &mut Classes) -> bool {
        if args.len() > self.slots.len() || args.len() < self.required {
            return false;
        }
        // Mistakes are gathered and looked for afterwards: there are none on the way that has to be fast. No device's number
        // is part of another's, so that numbers put together are this device's only if each is.
        let devices = classes.fill(args, &self.masks);
        (devices == 0 || devices == self.device.id()) && !(self.is_picky && self.is_uneven(args))
    }

    /// Whether an argument is no multiple of what it must be, or not of the type that it must be of.
    #[inline(never)]
    fn is_uneven(&self, args: &[Arg<'_>]) -> bool {
        let mut pairs = args.iter().zip(&self.slots);
        pairs.any(|(arg, slot)| arg.bits & slot.clear != 0 || slot.is_to_convert(arg))
    }

    /// What is wrong with arguments: their number, or the first that is no multiple of what it must be or belongs to another
    /// device.
    #[cold]
    fn wrong(&self, args: &[Arg<'_>]) -> RuntimeError {
        if args.len() > self.slots.len() || args.len() < self.required {
            return self.wrong_count(args.len());
        }
        for (arg, slot) in args.iter().zip(&self.slots) {
            if arg.bits & slot.clear != 0 {
                return self.not_a_multiple(arg, slot);
            }
            if arg.device != 0 && arg.device != self.device.id() {
                let problem = "its memory belongs to another device".to_owned();
                return self.wrong_argument(slot, problem);
            }
        }
        self.wrong_count(args.len())
    }

    /// The error of one of the arguments, whose memory is not what it says.
    #[cold]
    pub(in crate::runtime) fn wrong_memory(
        &self,
        args: &[Arg<'_>],
        wrong: &Arg<'_>,
        problem: String,
    ) -> RuntimeError {
        let by_param = arg_tree::split(args).into_iter().zip(self.arguments());
        let name = by_param
            .filter(|(args, _)| args.iter().any(|arg| std::ptr::eq(arg, wrong)))
            .map(|(_, name)| name.to_owned())
            .next();
        RuntimeError::Argument {
            kernel: self.name.clone(),
            name: name.unwrap_or_default(),
            problem,
        }
    }

    #[cold]
    fn wrong_count(&self, got: usize) -> RuntimeError {
        RuntimeError::ArgumentCount {
            kernel: self.name.clone(),
            expected: self.arguments().map(str::to_owned).collect(),
            got,
        }
    }

    #[cold]
    fn not_a_multiple(&self, arg: &Arg<'_>, slot: &ArgSlot) -> RuntimeError {
        let wanted = slot.clear + 1;
        self.wrong_argument(
            slot,
            format!(
                "{:#x} is not a multiple of {wanted}, and the kernel is compiled for one",
                arg.bits
            ),
        )
    }

    #[cold]
    pub(in crate::runtime) fn wrong_argument(
        &self,
        slot: &ArgSlot,
        problem: String,
    ) -> RuntimeError {
        RuntimeError::Argument {
            kernel: self.name.clone(),
            name: self.params[slot.param].name.clone(),
            problem,
        }
    }

    /// The argument whose memory a fault concerns, or that lies nearest: its name in backquotes, or several that share the
    /// memory.
    pub(in crate::runtime) fn concerned(&self, args: &[Arg<'_>], fault: &Fault) -> Option<String> {
        /// An access that is further from all arguments has gone astray altogether.
        const NEAR: u64 = 1 << 20;
        let (space, address, near) = match *fault {
            Fault::OutOfBounds { space, address, .. } => (space, address, NEAR),
            Fault::Uninitialised { space, address, .. }
            | Fault::Misaligned { space, address, .. }
            | Fault::Race { space, address, .. } => (space, address, 0),
            _ => return None,
        };
        if !matches!(space, Space::Global | Space::Generic) {
            return None;
        }
        let distance = |arg: &Arg<'_>| {
            let (start, bytes) = arg.range();
            let last = start.saturating_add((bytes as u64).saturating_sub(1));
            start
                .saturating_sub(address)
                .max(address.saturating_sub(last))
        };
        let by_param = arg_tree::split(args).into_iter().zip(self.arguments());
        let distances: Vec<(u64, &str)> = by_param
            .filter_map(|(args, name)| {
                let pointers = args.iter().filter(|arg| arg.is_pointer());
                Some((pointers.map(distance).min()?, name))
            })
            .collect();
        let nearest = distances.iter().map(|&(distance, _)| distance).min()?;
        let names: Vec<String> = distances
            .iter()
            .filter(|(distance, _)| *distance == nearest)
            .map(|(_, name)| format!("`{name}`"))
            .collect();
        (nearest <= near).then(|| names.join(" or "))
    }
}
