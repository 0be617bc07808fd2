//! A PTX emulator: runs PTX text on the CPU.
