//! Any text as PTX: the emulator never panics and keeps its step limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tilelift::fuzzing::ptx_text;
use tilelift_libfuzzer::accept;

fuzz_target!(|text: &str| accept(ptx_text::check_text(text)));
