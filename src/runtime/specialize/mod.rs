//! From arguments to the variant of a kernel that serves them.

pub(in crate::runtime) mod arg_tree;
pub(in crate::runtime) mod check_arguments;
pub(in crate::runtime) mod class;
pub(in crate::runtime) mod class_key;
pub(in crate::runtime) mod declared_types;
pub(in crate::runtime) mod explain_variant;
pub(in crate::runtime) mod interned_kernels;
pub(in crate::runtime) mod parse_signature;
pub(in crate::runtime) mod served_classes;
pub(in crate::runtime) mod variant;
pub(in crate::runtime) mod variant_table;
