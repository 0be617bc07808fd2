//! Passes: free functions over a kernel, one file each.

pub mod expand;
pub mod insert_barriers;
pub mod place_shared;
