//! Generated kernels, changed so that results must not change. Coverage picks the seeds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilelift::fuzzing::metamorphic;
use tilelift_libfuzzer::accept;

fuzz_target!(|seed: u64| accept(metamorphic::check(seed)));
