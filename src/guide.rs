//! A guide: how kernels are written, embedded, tested, debugged, made fast and shipped, and how the compiler works.
//!
#![doc = include_str!("guide/index.md")]

/// A picture of `docs`, as part of a page: empty lines part it from the text around it.
macro_rules! picture {
    ($name:literal) => {
        concat!(
            "\n\n",
            include_str!(concat!("../docs/", $name, ".svg")),
            "\n\n"
        )
    };
}

#[doc = include_str!("guide/start.md")]
pub mod start {}

/// Triton's tutorials, kernel by kernel, with Rust in place of Python on the host. The texts are our own.
///
/// They build on each other; read them in order. Each program can be copied whole into a `main.rs`, and runs on a GPU or on the emulator.
/// Each page ends with how fast its kernel is, where that was measured.
pub mod tutorials {
    #[doc = include_str!("guide/tutorials/vector_add.md")]
    #[doc = picture!("vector_add")]
    pub mod vector_add {}

    #[doc = include_str!("guide/tutorials/softmax.md")]
    #[doc = picture!("softmax")]
    pub mod softmax {}

    #[doc = include_str!("guide/tutorials/matmul.md")]
    #[doc = picture!("matmul")]
    pub mod matmul {}

    #[doc = include_str!("guide/tutorials/dropout.md")]
    pub mod dropout {}

    #[doc = include_str!("guide/tutorials/layer_norm.md")]
    #[doc = picture!("layer_norm")]
    pub mod layer_norm {}

    #[doc = include_str!("guide/tutorials/attention.md")]
    #[doc = picture!("attention")]
    pub mod attention {}

    #[doc = include_str!("guide/tutorials/libdevice.md")]
    pub mod libdevice {}

    #[doc = include_str!("guide/tutorials/grouped.md")]
    #[doc = picture!("grouped")]
    pub mod grouped {}

    #[doc = include_str!("guide/tutorials/persistent.md")]
    #[doc = picture!("persistent")]
    pub mod persistent {}
}

#[doc = include_str!("guide/triton.md")]
pub mod triton {}

#[doc = include_str!("guide/embedding.md")]
pub mod embedding {}

#[doc = include_str!("guide/testing.md")]
pub mod testing {}

#[doc = include_str!("guide/fuzzing.md")]
pub mod fuzzing {}

#[doc = include_str!("guide/wrong.md")]
pub mod wrong {}

#[doc = include_str!("guide/slow.md")]
pub mod slow {}

#[doc = include_str!("guide/measure.md")]
pub mod measure {}

#[doc = include_str!("guide/hopper.md")]
pub mod hopper {}

#[doc = include_str!("guide/ahead.md")]
pub mod ahead {}

#[doc = include_str!("guide/caches.md")]
pub mod caches {}

#[doc = include_str!("guide/compiler/index.md")]
#[doc = picture!("way")]
pub mod compiler {
    #[doc = include_str!("guide/compiler/front.md")]
    #[doc = picture!("front")]
    pub mod front {}

    #[doc = include_str!("guide/compiler/tile.md")]
    #[doc = picture!("tile")]
    pub mod tile {}

    #[doc = include_str!("guide/compiler/layout.md")]
    #[doc = picture!("row")]
    #[doc = include_str!("guide/compiler/layout_of_units.md")]
    #[doc = picture!("layout")]
    #[doc = include_str!("guide/compiler/layout_choice.md")]
    pub mod layout {}

    #[doc = include_str!("guide/compiler/expand.md")]
    #[doc = picture!("expand")]
    pub mod expand {}

    #[doc = include_str!("guide/compiler/thread.md")]
    #[doc = picture!("slots")]
    pub mod thread {}

    #[doc = include_str!("guide/compiler/machine.md")]
    #[doc = picture!("live")]
    pub mod machine {}

    #[doc = include_str!("guide/compiler/oracles.md")]
    #[doc = picture!("oracles")]
    pub mod oracles {}
}

#[doc = include_str!("../CONTRIBUTING.md")]
pub mod contributing {}
