//! What real kernels use, and the programs that execute it: `FEATURES.md`, made from the programs' comments.
