//! A guide: how kernels are written, embedded, tested, mended, made fast and shipped, and how the compiler works.
//!
#![doc = include_str!("guide/index.md")]

#[doc = include_str!("guide/start.md")]
pub mod start {}

/// Triton's tutorials, kernel by kernel, with Rust in place of Python on the host: texts of our own, each of which is a test.
///
/// They build on each other; read them in order. Each runs as it stands, on a GPU or on the emulator.
pub mod tutorials {
    #[doc = include_str!("guide/tutorials/vector_add.md")]
    pub mod vector_add {}

    #[doc = include_str!("guide/tutorials/softmax.md")]
    pub mod softmax {}

    #[doc = include_str!("guide/tutorials/matmul.md")]
    pub mod matmul {}

    #[doc = include_str!("guide/tutorials/dropout.md")]
    pub mod dropout {}

    #[doc = include_str!("guide/tutorials/layer_norm.md")]
    pub mod layer_norm {}

    #[doc = include_str!("guide/tutorials/attention.md")]
    pub mod attention {}

    #[doc = include_str!("guide/tutorials/libdevice.md")]
    pub mod libdevice {}

    #[doc = include_str!("guide/tutorials/grouped.md")]
    pub mod grouped {}

    #[doc = include_str!("guide/tutorials/persistent.md")]
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
pub mod compiler {
    #[doc = include_str!("guide/compiler/front.md")]
    pub mod front {}

    #[doc = include_str!("guide/compiler/tile.md")]
    pub mod tile {}

    #[doc = include_str!("guide/compiler/layout.md")]
    pub mod layout {}

    #[doc = include_str!("guide/compiler/expand.md")]
    pub mod expand {}

    #[doc = include_str!("guide/compiler/thread.md")]
    pub mod thread {}

    #[doc = include_str!("guide/compiler/machine.md")]
    pub mod machine {}

    #[doc = include_str!("guide/compiler/oracles.md")]
    pub mod oracles {}
}
