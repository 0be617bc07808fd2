//! Linear layouts over GF(2).

pub mod pool;
pub mod shape;
