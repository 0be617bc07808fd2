//! Generated kernels before every oracle. Coverage picks the seeds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilelift::fuzzing::tile_ir;
use tilelift_libfuzzer::accept;

fuzz_target!(|seed: u64| accept(tile_ir::check(seed)));
