//! Scheduled loops with one fault each: what the scheduler could get wrong, and what is said about it.

use super::{verify_rings, verify_roles};
use crate::text::parse::parse_tile;
use crate::verify::{Rule, verify};

const BOXES: &str = include_str!("scheduled/boxes.tir");
const COPIES: &str = include_str!("scheduled/copies.tir");
const ROLES: &str = include_str!("scheduled/roles.tir");

/// What is said of a kernel; nothing if it is right.
fn said(text: &str) -> String {
    let func = parse_tile(text).unwrap_or_else(|errors| panic!("{errors:#?}\n{text}"));
    verify(&func).unwrap_or_else(|errors| panic!("another rule finds it: {errors}"));
    match verify_rings(&func) {
        Ok(()) => String::new(),
        Err(errors) => {
            assert_eq!((errors.0.len(), errors.0[0].rule), (1, Rule::Rings));
            errors.to_string()
        }
    }
}

/// The text with the first `from` replaced, and everything behind it as it is.
fn changed(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

/// The text without its lines from the first one that contains `from`, `count` of them.
fn without(text: &str, from: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().position(|line| line.contains(from));
    let first = first.unwrap_or_else(|| panic!("no {from}"));
    [&lines[..first], &lines[first + count..]]
        .concat()
        .join("\n")
}

/// The text with the first line that contains `from` moved behind the first one that contains `behind`.
fn moved(text: &str, from: &str, behind: &str) -> String {
    let line = text.lines().find(|line| line.contains(from));
    let line = line.unwrap_or_else(|| panic!("no {from}"));
    let target = text.lines().find(|line| line.contains(behind));
    let target = target.unwrap_or_else(|| panic!("no {behind}"));
    let rest = text.replacen(&format!("{line}\n"), "", 1);
    rest.replacen(target, &format!("{target}\n{line}"), 1)
}

#[test]
fn what_the_scheduler_leaves_is_right() {
    for text in [BOXES, COPIES, ROLES] {
        assert_eq!(said(text), "", "{text}");
    }
}

/// Each fault with the words that report it.
#[track_caller]
fn check(faults: &[(&str, String, &str)]) {
    let missed = faults.iter().filter_map(|(fault, text, expected)| {
        let found = said(text);
        let is_found = found.starts_with("V26: ") && found.contains(expected);
        (!is_found).then(|| format!("{fault}: \"{expected}\", not \"{found}\""))
    });
    let missed: Vec<String> = missed.collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Of two boxes that are waited for together the second comes behind a loop whose ring is full before: few executions show it.
#[test]
fn a_wait_that_spans_a_loop_hangs() {
    let text = include_str!("scheduled/spanned.tir");
    assert!(said(text).contains("nobody ends the phase of barrier 0 of slot2"));
    let func = parse_tile(text).unwrap_or_else(|errors| panic!("{errors:#?}"));
    assert!(verify_roles(&func).is_err());
    let boxes = parse_tile(BOXES).unwrap_or_else(|errors| panic!("{errors:#?}"));
    assert_eq!(verify_roles(&boxes), Ok(()), "it has no producer");
}

#[test]
fn faults_of_boxes_are_found() {
    let wait = "mbar_wait v30, v32 {slot = slot2}";
    let two_entries = BOXES.replace(
        "12288 bytes align 128 holds 3",
        "8192 bytes align 128 holds 2",
    );
    let looped = changed(
        BOXES,
        "    mbar_init",
        "    v90 = while v12 : i32 {
    block90(v91: i32):
        v92 = icmp v91, v12 {ipred = eq} : i1
        condition v92, v91
    } {
    block91(v93: i32):
        yield v13
    }
    mbar_init",
    );
    check(&[
        (
            "no wait behind a loop that ends by a condition",
            without(&looped, wait, 1),
            "entry 0 of slot0 is read before a wait for the copy to it",
        ),
        (
            "no wait",
            without(BOXES, wait, 1),
            "entry 0 of slot0 is read before a wait for the copy to it",
        ),
        (
            "a wait for the phase before",
            changed(
                &moved(BOXES, wait, "v45 = xor v32"),
                "mbar_wait v30, v32",
                "mbar_wait v30, v45",
            ),
            "entry 0 of slot0 is read before a wait for the copy to it",
        ),
        (
            "the first phase has parity 1",
            changed(
                BOXES,
                "v12, v19, v12, v22 {stages",
                "v12, v19, v18, v22 {stages",
            ),
            "entry 0 of slot0 is read before a wait for the copy to it",
        ),
        (
            "the phase never changes",
            changed(
                BOXES,
                "yield v36, v43, v30, v46, v37",
                "yield v36, v43, v30, v32, v37",
            ),
            "is read before a wait for the copy to it",
        ),
        (
            "a wait for another entry's barrier",
            changed(BOXES, wait, "mbar_wait v31, v32 {slot = slot2}"),
            "nobody ends the phase of barrier 2 of slot2 that is waited for",
        ),
        (
            "a wait behind the read",
            moved(BOXES, wait, "v35 = shared_view"),
            "entry 0 of slot0 is read before a wait for the copy to it",
        ),
        (
            "the second copy in front of the loop is missing",
            without(BOXES, "mbar_expect v18, v17", 3),
            "nobody ends the phase of barrier 1 of slot2 that is waited for",
        ),
        (
            "of two boxes of an entry one is missing",
            without(BOXES, "tensor_copy v11, v31", 1),
            "nobody ends the phase of barrier 2 of slot2 that is waited for",
        ),
        (
            "bytes of one box are not announced",
            changed(
                BOXES,
                "mbar_expect v31, v40 {slot = slot2, bytes = 8192}",
                "mbar_expect v31, v40 {slot = slot2, bytes = 4096}",
            ),
            "entry 2 of slot1 is read before a wait for the copy to it",
        ),
        (
            "copies go to the entry that is read",
            changed(
                BOXES,
                "v12, v19, v12, v22 {stages",
                "v12, v12, v12, v22 {stages",
            ),
            "entry 0 of slot0 changes while a product that was not waited for reads it",
        ),
        (
            "copies go to an entry that nobody has read",
            changed(
                BOXES,
                "v12, v19, v12, v22 {stages",
                "v12, v18, v12, v22 {stages",
            ),
            "entry 1 of slot0 changes while a copy is under way to it",
        ),
        (
            "reads begin one entry further",
            changed(BOXES, "v21, v12, v19, v12", "v21, v18, v19, v12"),
            "nobody ends the phase of barrier 1 of slot2 that is waited for",
        ),
        (
            "the ring has an entry less than indices",
            two_entries,
            "slot0 has 2 entries, not number 2",
        ),
        (
            "one copy too many at the end of the loop",
            changed(
                BOXES,
                "v40 = icmp v39, v20 {ipred = ugt}",
                "v40 = icmp v39, v20 {ipred = uge}",
            ),
            "is under way when the kernel ends",
        ),
        (
            "one copy too few",
            changed(
                BOXES,
                "v40 = icmp v39, v20 {ipred = ugt}",
                "v40 = icmp v39, v20 {ipred = ne}",
            )
            .replacen("v39 = isub v3, v28", "v39 = isub v20, v28", 1),
            "nobody ends the phase of barrier",
        ),
        (
            "the wait for the last product is behind the copies",
            moved(BOXES, "dot_wait v33", "tensor_copy v11, v31"),
            "changes while a product that was not waited for reads it",
        ),
        (
            "the wait is for the product of two iterations before",
            changed(
                BOXES,
                "yield v36, v43, v30, v46, v37",
                "yield v36, v43, v30, v46, v33",
            ),
            "the sum is of a product that is started behind the one waited for",
        ),
        (
            "the sum is used before its product is done",
            changed(BOXES, "v47 = dot_sum v23, v27", "v47 = dot_sum v23, v22"),
            "the sum is of a product that is started behind the one waited for",
        ),
    ]);
}

#[test]
fn faults_of_copies_are_found() {
    check(&[
        (
            "no wait",
            without(COPIES, "async_wait v59", 1),
            "entry 0 of slot0 is read before a wait for the copy to it",
        ),
        (
            "groups are waited for one too late",
            changed(COPIES, "yield v68, v60, v78,", "yield v68, v59, v78,"),
            "is read before a wait for the copy to it",
        ),
        (
            "a copy is committed with the group behind its own",
            moved(COPIES, "v36 = async_commit v33, v35", "v37 = icmp")
                .replacen("v35 = async_copy", "v90 = async_copy", 1)
                .replacen("async_commit v33, v35", "async_commit v33", 1)
                .replacen("async_commit v42, v44", "async_commit v42, v44, v90", 1)
                .replacen("    v90 = async_copy v23, v25, v34 {slot = slot1} : token\n", "", 1)
                .replacen(
                    "    v44 = async_copy",
                    "    v90 = async_copy v23, v25, v34 {slot = slot1} : token\n    v44 = async_copy",
                    1,
                ),
            "entry 0 of slot1 is read before a wait for the copy to it",
        ),
        (
            "the first copies in front of the loop fill the second entry",
            changed(COPIES, "async_copy v14, v25, v32", "async_copy v14, v26, v32"),
            "entry 1 of slot0 changes while a copy is under way to it",
        ),
        (
            "reads begin one entry further, and waits one group",
            changed(COPIES, "v36, v45, v25, v46", "v36, v45, v26, v46")
                .replacen("async_wait v59", "async_wait v60", 1),
            "entry 1 of slot0 is read before entry 0 of slot0, which was filled earlier",
        ),
        (
            "copies of two iterations fill one entry",
            changed(COPIES, "yield v68, v60, v78, v81, v61,", "yield v68, v60, v78, v81, v62,"),
            "entry 2 of slot0 changes while a copy is under way to it",
        ),
        (
            "the product is waited for behind the copies",
            moved(COPIES, "dot_wait v65", "v76 = splat"),
            "entry 0 of slot0 changes while a product that was not waited for reads it",
        ),
        (
            "nobody waits behind the loop",
            without(COPIES, "async_wait v50, v51", 1),
            "is under way when the kernel ends",
        ),
        (
            "nobody waits for the last product",
            changed(&without(COPIES, "v82 = dot_sum", 1), "store v89, v82", "store v89, v24"),
            "a product is under way when the kernel ends",
        ),
    ]);
}

#[test]
fn faults_of_producers_are_found() {
    check(&[
        (
            "the producer waits for nobody",
            without(ROLES, "mbar_wait v19, v21", 1),
            "which was not given back",
        ),
        (
            "the producer waits one lap too late",
            changed(ROLES, "mbar_wait v19, v21", "mbar_wait v19, v20"),
            "nobody ends the phase of barrier 0 of slot2 that is waited for",
        ),
        (
            "entries are given back in front of the wait for their product",
            moved(ROLES, "dot_wait v42", "mbar_arrive v43"),
            "changes while a product that was not waited for reads it",
        ),
        (
            "the entry behind the one that was read is given back",
            changed(
                ROLES,
                "yield v46, v52, v53, v47, v40",
                "yield v46, v52, v53, v47, v52",
            ),
            "entry 1 of slot0 is given back and holds nothing",
        ),
        (
            "an entry is never given back",
            without(ROLES, "mbar_arrive v43", 1),
            "nobody ends the phase of barrier 0 of slot2 that is waited for",
        ),
        (
            "the producer brings an iteration more",
            changed(
                ROLES,
                "for v4, v3, v13, v4, v4 {stages",
                "for v4, v60, v13, v4, v4 {stages",
            )
            .replacen(
                "v15 = const {value = 2} : i32",
                "v15 = const {value = 2} : i32\nv60 = iadd v3, v13 : i32",
                1,
            ),
            "is under way when the kernel ends",
        ),
        (
            "the parity of the program does not change",
            changed(ROLES, "yield v46, v52, v53,", "yield v46, v52, v41,"),
            "is read before a wait for the copy to it",
        ),
        (
            "too few arrive for an entry to be free",
            changed(
                ROLES,
                "mbar_init {slot = slot3, count = 4}",
                "mbar_init {slot = slot3, count = 8}",
            ),
            "nobody ends the phase of barrier 0 of slot2 that is waited for",
        ),
    ]);
}

/// The order of iterations is that of the ring; which block of memory is meant is known only to who compares results, as the random tests
/// of passes do on the interpreter.
#[test]
fn which_block_is_copied_is_not_judged() {
    let other = changed(
        BOXES,
        "v38 = iadd v28, v20 : i32",
        "v38 = iadd v28, v13 : i32",
    );
    assert_eq!(said(&other), "");
}
