//! From arguments to the variant of a kernel that serves them.

pub(in crate::runtime) mod annotated;
pub(in crate::runtime) mod arg_text;
pub(in crate::runtime) mod arg_tree;
pub(in crate::runtime) mod check;
pub(in crate::runtime) mod explain;
pub(in crate::runtime) mod served;
pub(in crate::runtime) mod setups;
pub(in crate::runtime) mod table;
pub(in crate::runtime) mod variant;
