//! The `tilelift` command.

fn main() {}
