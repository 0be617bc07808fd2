//! Compiles the kernels of `add.py` for what its comments say.

fn main() -> Result<(), tilelift::build::Failure> {
    tilelift::build::compile("add.py")
}
