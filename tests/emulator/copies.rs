//! Copies to shared memory that read a part of their bytes.

use tilelift::emu::{Arg, EmuError, Fault, Memory, Options};

use crate::{entry, run_text};

/// One lane's copy of 16 bytes that reads `size` of them from `offset` on, and what stands in their place then.
fn copies_a_part(size: u32, offset: u64, memory: &mut Memory, data: u64) -> Result<(), EmuError> {
    let text = entry(&format!(
        "mov.u32 %r1, dyn;\nmov.u32 %r2, {size};\ncp.async.cg.shared.global [%r1], [%data+{offset}], 16, %r2;\n\
         cp.async.wait_all;\nld.shared.u64 %d3, [%r1];\nst.global.u64 [%data], %d3;\n\
         ld.shared.u64 %d3, [%r1+8];\nst.global.u64 [%data+8], %d3;"
    ));
    let args = [Arg::pointer(data)];
    run_text(&text, 1, 1, 256, memory, &args, Options::default()).map(drop)
}

#[test]
fn copies_read_as_many_bytes_as_they_are_told() {
    for size in 0..=16_u32 {
        // Memory ends with what is read, and what follows is zero.
        let mut memory = Memory::new();
        let bytes: Vec<u8> = (1..=16 + size as u8).collect();
        let data = memory.alloc_bytes(&bytes);
        copies_a_part(size, 16, &mut memory, data).unwrap_or_else(|e| panic!("{size}: {e}"));
        let mut expected = [0; 16];
        expected[..size as usize].copy_from_slice(&bytes[16..]);
        let found = memory.read(data, 16).expect("it was written");
        assert_eq!(found, expected, "{size}");
        // One byte more is not there.
        if 0 < size && size < 16 {
            let mut memory = Memory::new();
            let data = memory.alloc_bytes(&bytes);
            let error = copies_a_part(size + 1, 16, &mut memory, data).expect_err("it is too much");
            let EmuError::Fault { fault, .. } = error else {
                panic!("{error}");
            };
            assert!(
                matches!(fault, Fault::OutOfBounds { bytes, .. } if bytes == size + 1),
                "{fault}"
            );
        }
    }
}

#[test]
fn copies_of_a_part_start_at_a_multiple_of_the_whole() {
    for (size, offset, fits) in [(4, 16, true), (4, 20, false), (0, 20, true), (8, 24, false)] {
        let mut memory = Memory::new();
        let data = memory.alloc_bytes(&[7; 64]);
        match copies_a_part(size, offset, &mut memory, data) {
            Ok(()) => assert!(fits, "{size} bytes at {offset}"),
            Err(EmuError::Fault { fault, .. }) => {
                let is_misaligned = matches!(fault, Fault::Misaligned { align: 16, .. });
                assert!(!fits && is_misaligned, "{size} bytes at {offset}: {fault}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn copies_read_no_more_than_they_write() {
    let mut memory = Memory::new();
    let data = memory.alloc_bytes(&[7; 64]);
    let error = copies_a_part(17, 16, &mut memory, data).expect_err("it is too much");
    let EmuError::Fault { fault, .. } = error else {
        panic!("{error}");
    };
    let (read, bytes) = (17, 16);
    assert_eq!(fault, Fault::CopySize { read, bytes });
}
