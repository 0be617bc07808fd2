//! Linear layouts over GF(2).

pub mod shape;
