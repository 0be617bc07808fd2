//! Any text as that of a kernel: no panic; what verifies compiles and runs to an end or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilelift::fuzzing::ir_text;
use tilelift_libfuzzer::accept;

fuzz_target!(|text: &str| accept(ir_text::check_text(text)));
