//! Generated kernels, pass by pass. Coverage picks the seeds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilelift::fuzzing::passes;
use tilelift_libfuzzer::accept;

fuzz_target!(|seed: u64| accept(passes::check(seed)));
