//! Conversions between random layouts. Coverage picks the seeds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilelift::fuzzing::layouts;
use tilelift_libfuzzer::accept;

fuzz_target!(|seed: u64| accept(layouts::check(seed)));
