//! Programs that walk over the blocks of a result.

use tilelift::front::{Module, Specialization, parse_signature};
use tilelift::settings::Target;

use crate::pipelines::compiled;

/// Blocks that programs walk over have maps, whatever number the programs count them by: what bounds these is written once.
#[test]
fn walks_over_blocks_have_maps() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/kernels/matmul.py");
    let text = std::fs::read_to_string(path).expect("the examples are there");
    let module = Module::parse(path, &text).expect("the file parses");
    let pointers = ["*fp16:16"; 3].join(", ");
    let signature =
        format!("{pointers}, i32, i32, i32, i32:16, i32:16, i32:16, 132, 128, 128, 64, 8");
    let args = parse_signature(&signature).expect("the signature parses");
    let mut spec = Specialization::new(args, Target::SM_90A);
    (spec.num_warps, spec.num_stages) = (8, Some(3));
    let kernel = module.lower(Some("persistent_matmul"), &spec);
    let kernel = compiled(&kernel.expect("it is right"), Target::SM_90A);
    let maps = &kernel.meta.maps;
    assert_eq!(maps.len(), 3);
    for map in maps {
        assert!(!map.parts.is_empty(), "{map}");
        // Whole rows of blocks, and some that end inside of one.
        for [m, n, k] in [[4096, 4096, 4096], [70, 4000, 40]] {
            let sizes = [m, n, k, k, k, n];
            let param = |index: u32| sizes.get((index as usize).wrapping_sub(3)).copied();
            let found = map.resolve(0x1000, &param, [132, 1, 1]);
            assert!(found.is_some(), "{m} {n} {k} of {map}");
        }
    }
}
