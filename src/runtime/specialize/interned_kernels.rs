//! The kernels that were set up from a program, so that setting one up again finds its variants.
//!
//! Those with variants are kept, within bounds. Of one function on one device they have as many variants together as
//! [`Kernel::variant_limit`](crate::runtime::Kernel::variant_limit) says; beyond that the set-up that was not asked for for the
//! longest time is let go. All of a device are let go with its last handle. What is let go, what nobody launched (steps to
//! other set-ups most of them) and what the autotuner tried in vain goes with its own last handle.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::runtime::api::error::RuntimeError;
use crate::runtime::api::kernel::KernelInner;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct InternedKernels {
    kernels: Mutex<Kernels>,
}

#[derive(Debug, Default)]
struct Kernels {
    by_setup: HashMap<String, Member>,
    /// How many there may be before those that are gone are looked for.
    room: usize,
    /// Grows with every use of any of them.
    clock: u64,
}

#[derive(Debug)]
struct Member {
    kernel: Weak<KernelInner>,
    /// Holds it.
    kept: Option<Arc<KernelInner>>,
    /// When it was used last.
    used: u64,
}

impl InternedKernels {
    fn kernels(&self) -> MutexGuard<'_, Kernels> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kernel that is set up so, made if need be.
    pub(crate) fn intern(
        &self,
        setup: &str,
        make: impl FnOnce() -> Result<KernelInner, RuntimeError>,
    ) -> Result<Arc<KernelInner>, RuntimeError> {
        let mut kernels = self.kernels();
        kernels.clock += 1;
        let used = kernels.clock;
        if let Some(member) = kernels.by_setup.get_mut(setup)
            && let Some(kernel) = member.kernel.upgrade()
        {
            member.used = used;
            return Ok(kernel);
        }
        let kernel = Arc::new(make()?);
        let member = Member {
            kernel: Arc::downgrade(&kernel),
            kept: None,
            used,
        };
        let Kernels { by_setup, room, .. } = &mut *kernels;
        by_setup.insert(setup.to_owned(), member);
        if by_setup.len() > *room {
            by_setup.retain(|_, member| member.kernel.strong_count() > 0);
            *room = 2 * by_setup.len() + 16;
        }
        Ok(kernel)
    }

    /// Keeps a kernel, which is about to have one more variant, as long as there is a handle of its device.
    pub(crate) fn keep(self: &Arc<Self>, kernel: &Arc<KernelInner>) {
        // Let go without the lock: it may be the last handle.
        let Some(handles) = kernel.device.handles() else {
            return;
        };
        handles.note(self);
        let mut kernels = self.kernels();
        kernels.clock += 1;
        let used = kernels.clock;
        if let Some(member) = kernels.by_setup.get_mut(&kernel.setup) {
            member.kept = Some(kernel.clone());
            member.used = used;
        }
        let over = kernels.over(kernel);
        drop(kernels);
        // Unloading takes its time, and needs no lock.
        drop(over);
    }

    /// Whether a kernel is kept.
    pub(crate) fn is_kept(&self, kernel: &KernelInner) -> bool {
        let kernels = self.kernels();
        let member = kernels.by_setup.get(&kernel.setup);
        member.is_some_and(|member| member.kept.is_some())
    }

    /// Lets a kernel go with its last handle.
    pub(crate) fn release(&self, kernel: &KernelInner) {
        let mut kernels = self.kernels();
        let member = kernels.by_setup.get_mut(&kernel.setup);
        let kept = member.and_then(|member| member.kept.take());
        drop(kernels);
        drop(kept);
    }

    /// Lets all kernels of a device go.
    pub(crate) fn release_device(&self, instance: u32) {
        let mut kernels = self.kernels();
        let members = kernels.by_setup.values_mut();
        let is_its = |kept: &mut Arc<KernelInner>| kept.device.instance() == instance;
        let all: Vec<_> = members.filter_map(|m| m.kept.take_if(is_its)).collect();
        drop(kernels);
        drop(all);
    }
}

impl Kernels {
    /// Takes out what is too much once a kernel has one more variant: other set-ups of it, the longest unused first.
    fn over(&mut self, kernel: &Arc<KernelInner>) -> Vec<Arc<KernelInner>> {
        let mut over = Vec::new();
        loop {
            let others = self.by_setup.iter().filter_map(|(setup, member)| {
                let other = member.kept.as_ref()?;
                let is_alike = other.name == kernel.name
                    && other.device.instance() == kernel.device.instance()
                    && !Arc::ptr_eq(other, kernel);
                is_alike.then(|| (member.used, setup, other.table.len()))
            });
            let others: Vec<_> = others.collect();
            let variants: usize = others.iter().map(|&(.., variants)| variants).sum();
            if variants + kernel.table.len() < kernel.table.limit() {
                return over;
            }
            let Some((_, setup, _)) = others.into_iter().min() else {
                return over;
            };
            let setup = setup.clone();
            let member = self.by_setup.get_mut(&setup);
            over.extend(member.and_then(|member| member.kept.take()));
        }
    }
}

#[cfg(all(test, feature = "triton"))]
mod tests {
    use crate::runtime::{Buffer, Device, DeviceOptions, Program};

    const TEXT: &str = "
import triton.language as tl

@triton.jit
def put(x, n, C: tl.constexpr):
    tl.store(x, n + C)
";

    fn put(device: &Device, program: &Program, constants: std::ops::Range<i32>) {
        let x = Buffer::from_slice(device, &[0_i32]).expect("there is memory");
        for c in constants {
            let kernel = device.kernel(program, "put");
            let kernel = kernel.and_then(|k| k.variant_limit(8)?.constant("C", c));
            kernel.and_then(|k| k.run(1, (&x, 5))).expect("it runs");
            assert_eq!(x.read(&device.stream()), Ok(vec![5 + c]));
        }
    }

    /// How many set-ups of a program have variants.
    fn kept(program: &Program) -> usize {
        let kernels = program.setups.kernels();
        let kept = kernels.by_setup.values().filter(|m| m.kept.is_some());
        kept.count()
    }

    #[test]
    fn constants_without_end_take_bounded_memory() {
        let device = Device::emulator_with(DeviceOptions::plain());
        let program = Program::python("put.py", TEXT).expect("it is Python");
        put(&device, &program, 0..40);
        assert_eq!(kept(&program), 8);
        // What is gone leaves nothing behind but a bounded number of names.
        assert!(program.setups.kernels().by_setup.len() <= 2 * 8 + 2 * 16);
        // The latest ones are there, and stay with use.
        for c in 32..40 {
            put(&device, &program, c..c + 1);
        }
        put(&device, &program, 100..101);
        let is_ready = |c: i32| {
            let kernel = device.kernel(&program, "put");
            let kernel = kernel.and_then(|k| k.variant_limit(8)?.constant("C", c));
            !kernel.expect("there is a kernel").variants().is_empty()
        };
        assert!(!is_ready(32) && is_ready(33) && is_ready(39) && is_ready(100));
    }

    #[test]
    fn what_was_let_go_stays_so_when_the_background_comes_to_it() {
        let device = Device::emulator_with(DeviceOptions::plain());
        let program = Program::python("put.py", TEXT).expect("it is Python");
        let x = Buffer::from_slice(&device, &[0_i32]).expect("there is memory");
        let kernel = device.kernel(&program, "put");
        let kernel = kernel.and_then(|kernel| kernel.constant("C", 1));
        let kernel = kernel.expect("there is a kernel");
        // No thread is free before it was let go.
        let hold = crate::runtime::build::pool::hold_all();
        let begun = kernel.prepare_in_background((&x, 5));
        assert_eq!((begun, kept(&program)), (Ok(()), 1));
        kernel.release();
        assert_eq!(kept(&program), 0);
        drop(hold);
        // A launch waits for who makes it.
        kernel.run(1, (&x, 5)).expect("it runs");
        assert_eq!((kernel.variants().len(), kept(&program)), (1, 0));
    }

    #[test]
    fn what_somebody_holds_stays() {
        let device = Device::emulator_with(DeviceOptions::plain());
        let program = Program::python("put.py", TEXT).expect("it is Python");
        let held = device.kernel(&program, "put");
        let held = held.and_then(|k| k.variant_limit(8)?.constant("C", -1));
        let held = held.expect("there is a kernel");
        let x = Buffer::from_slice(&device, &[0_i32]).expect("there is memory");
        held.run(1, (&x, 5)).expect("it runs");
        put(&device, &program, 0..20);
        assert_eq!(held.variants().len(), 1);
        held.run(1, (&x, 5)).expect("it runs still");
        assert_eq!(x.read(&device.stream()), Ok(vec![4]));
    }

    #[test]
    fn kernels_go_with_the_last_handle_of_their_device() {
        let program = Program::python("put.py", TEXT).expect("it is Python");
        let device = Device::emulator_with(DeviceOptions::plain());
        put(&device, &program, 0..3);
        let again = device.clone();
        drop(device);
        assert_eq!(kept(&program), 3);
        let kernel = again.kernel(&program, "put").expect("there is a kernel");
        drop(again);
        // A kernel is a handle of its device, and a device that it gives is one.
        assert_eq!(kept(&program), 3);
        let device = kernel.device().clone();
        drop(kernel);
        assert_eq!(kept(&program), 3);
        let watch = device.watch();
        drop(device);
        assert_eq!(kept(&program), 0);
        assert!(!watch());
    }
}
