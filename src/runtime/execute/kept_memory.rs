//! Memory that a graph keeps: what its thread dropped while it was recorded.

use std::cell::RefCell;
use std::sync::Arc;

use crate::runtime::api::buffer::Memory;

thread_local! {
    /// For each recording of this thread, one in another, the memory that was dropped meanwhile.
    static KEPT: RefCell<Vec<Vec<Arc<Memory>>>> = const { RefCell::new(Vec::new()) };
}

/// A recording by this thread; what it kept goes with this, also when whoever records unwinds.
pub(crate) struct Keeping(());

impl Keeping {
    /// From here on this thread keeps the memory of buffers that it drops.
    pub(crate) fn begin() -> Keeping {
        KEPT.with_borrow_mut(|all| all.push(Vec::new()));
        Keeping(())
    }

    /// What was kept.
    pub(crate) fn end(self) -> Vec<Arc<Memory>> {
        std::mem::forget(self);
        KEPT.with_borrow_mut(Vec::pop).unwrap_or_default()
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        // Freed behind the borrow.
        let kept = KEPT.with_borrow_mut(Vec::pop);
        drop(kept);
    }
}

/// Keeps memory in each recording of this thread, as any of them may have launches that use it. A thread that ends records nothing any
/// more.
pub(crate) fn keep(memory: &Arc<Memory>) {
    let _ = KEPT.try_with(|all| {
        for kept in all.borrow_mut().iter_mut() {
            kept.push(Arc::clone(memory));
        }
    });
}
