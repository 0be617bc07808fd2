//! Build script: compiles the ISLE rules of this folder into Rust.

fn main() {
    println!("cargo:rerun-if-changed=isa");
}
