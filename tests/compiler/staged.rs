//! Blocks that are stored by the copy engine and multiplied: they stand in shared memory once.

use crate::common::ptxas;
use tilelift::compile::compile;
use tilelift::front::{Module, Specialization, parse_signature};
use tilelift::settings::{Options, Target};

#[test]
fn what_is_stored_and_multiplied_stands_in_shared_memory_once() {
    let signature = "*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32";
    let args = parse_signature(signature).expect("the signature parses");
    let mut spec = Specialization::new(args, Target::SM_90A);
    spec.num_warps = 4;
    let module = Module::parse("states.py", include_str!("../data/states.py"));
    let module = module.expect("the file parses");
    let kernel = module.lower(Some("states"), &spec).expect("it is a kernel");
    let compiled = compile(&kernel.func, Target::SM_90A, &Options::DEFAULT).expect("it compiles");
    ptxas::assemble(&compiled.ptx, "sm_90a");
    let count = |text: &str| compiled.ptx.matches(text).count();
    // Two states and what both are changed by, each of four matrices a warp, are read where they are sent from.
    assert_eq!(count("stmatrix"), 3 * 4);
    // The states are sent together.
    assert_eq!(count("cp.async.bulk.commit_group"), 2);
    assert_eq!(count("fence.proxy.async"), 2);
}
