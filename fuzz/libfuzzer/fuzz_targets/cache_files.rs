//! Any bytes as the contents of a cache entry: no panic; what is read comes back as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilelift::fuzzing::cache_files;
use tilelift_libfuzzer::accept;

fuzz_target!(|contents: &[u8]| accept(cache_files::check_contents(contents)));
