//! placeholder
use cranelift_entity::entity_impl;
/// id
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayoutId(u32);
entity_impl!(LayoutId, "#");
/// pool
#[derive(Clone, Debug, Default)]
pub struct LayoutPool;
