//! Linear layouts over GF(2).
