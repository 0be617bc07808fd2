//! The run time as an application uses it: on the emulator, against a stand-in for the driver, and in many processes.

mod ahead;
mod api;
mod arguments;
mod asserts;
mod callers;
mod descriptors;
mod disk;
mod dumps;
mod faults;
mod graphs;
mod maps;
mod messages;
mod setups;
mod testing;
mod tools;
mod torture;
mod transfers;
mod tuning;
mod tuning_memory;
mod tuning_results;
mod typed;
mod variants;
mod warm;
mod warnings;

#[cfg(feature = "tracing")]
mod spans;

#[cfg(feature = "opendal")]
mod redis;

#[cfg(feature = "cuda")]
mod command;
#[cfg(feature = "cuda")]
mod devices;
#[cfg(feature = "cuda")]
mod driver_start;
#[cfg(feature = "cuda")]
mod gpu;
#[cfg(feature = "cuda")]
mod of_cust;
#[cfg(feature = "cuda")]
mod stub;

#[cfg(feature = "cuda")]
#[expect(
    unsafe_code,
    reason = "an allocator that counts, to see that launches do not allocate"
)]
mod counting {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::cell::Cell;

    thread_local! {
        /// Allocations of this thread.
        pub(crate) static COUNT: Cell<u64> = const { Cell::new(0) };
    }

    struct Counting;

    // SAFETY: everything is the system's allocator.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            COUNT.set(COUNT.get() + 1);
            // SAFETY: as the caller promises.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
            // SAFETY: as the caller promises.
            unsafe { System.dealloc(place, layout) }
        }

        unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            COUNT.set(COUNT.get() + 1);
            // SAFETY: as the caller promises.
            unsafe { System.realloc(place, layout, size) }
        }
    }

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;
}
