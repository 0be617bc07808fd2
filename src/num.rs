//! Bit-exact number formats, shared by constant folding, the interpreter and the emulator.
