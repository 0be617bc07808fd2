//! Triton's own standard library, which is written in the language, given as source.
