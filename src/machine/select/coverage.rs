//! Which selection rules fired, for tests.

use std::cell::RefCell;
use std::collections::BTreeSet;

thread_local! {
    static FIRED: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
}

/// Every rule: how it reports itself, and where it stands.
const RULES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/rules.rs"));

/// Notes that a rule fired on this thread.
pub(crate) fn record(rule: &'static str) {
    FIRED.with(|fired| fired.borrow_mut().insert(rule));
}

/// The rules that never fired on this thread.
pub(crate) fn never_fired() -> Vec<&'static str> {
    FIRED.with(|fired| {
        let fired = fired.borrow();
        let silent = RULES.iter().filter(|(rule, _)| !fired.contains(rule));
        silent.map(|&(_, place)| place).collect()
    })
}
