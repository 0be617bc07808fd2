//! Interned layouts: equal layouts have equal ids, so that comparing them is comparing numbers.

use std::ops::Index;

use cranelift_entity::{PrimaryMap, entity_impl};
use rustc_hash::FxHashMap;

use super::layout::LinearLayout;

/// A layout of a [`LayoutPool`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayoutId(u32);
entity_impl!(LayoutId, "#");

/// A set of layouts that only grows. Ids count up from zero in order of first insertion, so they are
/// deterministic as long as the insertions are.
#[derive(Clone, Debug, Default)]
pub struct LayoutPool {
    layouts: PrimaryMap<LayoutId, LinearLayout>,
    ids: FxHashMap<LinearLayout, LayoutId>,
}

impl LayoutPool {
    /// The id of `layout`, which is added if it is new.
    pub fn intern(&mut self, layout: LinearLayout) -> LayoutId {
        if let Some(&id) = self.ids.get(&layout) {
            return id;
        }
        let id = self.layouts.push(layout.clone());
        self.ids.insert(layout, id);
        id
    }

    /// The layout with this id, if the pool has one.
    pub fn get(&self, id: LayoutId) -> Option<&LinearLayout> {
        self.layouts.get(id)
    }
}

impl Index<LayoutId> for LayoutPool {
    type Output = LinearLayout;

    fn index(&self, id: LayoutId) -> &LinearLayout {
        &self.layouts[id]
    }
}

#[cfg(test)]
mod tests {
    use cranelift_entity::packed_option::PackedOption;

    use super::*;
    use crate::linear_layout::shape::Shape;

    #[test]
    fn equal_layouts_share_an_id() {
        let shape = Shape::new(&[4]).expect("a power of two");
        let layout = |text: &str| LinearLayout::parse(text, shape).expect("a layout");
        let mut pool = LayoutPool::default();
        let a = pool.intern(layout("{reg=[1,2]}"));
        let b = pool.intern(layout("{reg=[2,1]}"));
        assert_ne!(a, b);
        assert_eq!(pool.intern(layout("{ reg = [1,2] }")), a);
        assert_eq!(pool.ids.get(&layout("{reg=[2,1]}")).copied(), Some(b));
        assert_eq!(pool.ids.get(&layout("{offset=[2,1]}")), None);
        assert_eq!((a.to_string(), pool.layouts.len()), ("#0".to_owned(), 2));
        assert_eq!(pool[b].to_string(), "{reg=[2,1], lane=[], warp=[]}");
        assert_eq!(PackedOption::from(Some(b)).expand(), Some(b));
    }
}
