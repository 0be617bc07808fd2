//! Any text as a file of the Triton language: no panic; what is accepted compiles.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilelift::fuzzing::source_text;
use tilelift_libfuzzer::accept;

fuzz_target!(|text: &str| accept(source_text::check_text(text)));
