//! Problems for the register allocator. Coverage picks the seeds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilelift::fuzzing::allocation;
use tilelift_libfuzzer::accept;

fuzz_target!(|seed: u64| accept(allocation::check(seed)));
