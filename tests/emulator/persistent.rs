//! Persistent products of matrices as nvcc writes them from CUDA C++, in two forms: two groups of warps that take tiles in turn,
//! and two that share a tile. Boxes come and go by tensor maps, edges lie inside of tiles.
//!
//! The texts are what nvcc 13.0.88 makes (`-gencode=arch=compute_90a,code=compute_90a -O3 -ptx`) of one source of ours, once with
//! its defaults, once with `-DPP=0 -DBN=256 -DS=4`.

use tilelift::emu::{Arg, Memory, Swizzle};

use crate::hopper::{
    Kernel, Outcome, bf16, compare, either, encoded, launch, matrix, outcome, small, table, text,
};
use crate::hopper::{verdict, words};

/// How a text is launched: rows, columns, the length of the sums; tile, and shared memory.
struct Form {
    sizes: [usize; 3],
    tile: [u32; 2],
    shared: u32,
}

/// Three tiles of 128 x 128, so that one group has two; seven steps of a ring of six.
const ALTERNATING: Form = Form {
    sizes: [300, 128, 432],
    tile: [128, 128],
    shared: 229_472,
};

/// Two tiles of 128 x 256, and five steps of a ring of four.
const SHARED_TILE: Form = Form {
    sizes: [200, 256, 312],
    tile: [128, 256],
    shared: 229_440,
};

fn product(form: &Form, text: &str, swizzle: Swizzle, seed: u64) -> Result<Outcome, Outcome> {
    let [m, n, k] = form.sizes;
    let mut memory = Memory::new();
    let (a, b) = (small(1, m * k), small(2, n * k));
    let bytes = |values: &[f64]| words(&values.iter().map(|&x| bf16(x)).collect::<Vec<_>>());
    let (at_a, at_b) = (
        memory.alloc_bytes(&bytes(&a)),
        memory.alloc_bytes(&bytes(&b)),
    );
    let out = memory.alloc(2 * m * n);
    let expected: Vec<u16> = (0..m * n)
        .map(|i| {
            let (row, column) = (i / n * k, i % n * k);
            bf16((0..k).map(|j| a[row + j] * b[column + j]).sum())
        })
        .collect();
    let map = |at, columns: usize, rows: usize, height| {
        let map = matrix(at, [columns as u64, rows as u64], [64, height], swizzle);
        encoded(&map)
    };
    // Rows of tiles that are walked together.
    let together = 8_u32;
    let args = [
        map(at_a, k, m, form.tile[0])?,
        map(at_b, k, n, form.tile[1])?,
        map(out, n, m, 64)?,
        Arg::from(m as u32),
        Arg::from(n as u32),
        Arg::from(k as u32),
        Arg::from(together),
    ];
    let sizes = [1, 288, form.shared];
    let report = launch(text, "gemm", sizes, &args, &mut memory, seed);
    Ok(outcome(report, &memory, out, &expected))
}

const FORMS: [(&str, Kernel); 2] = [
    ("gemm_alternating.ptx", |text, swizzle, seed| {
        product(&ALTERNATING, text, swizzle, seed)
    }),
    ("gemm_shared_tile.ptx", |text, swizzle, seed| {
        product(&SHARED_TILE, text, swizzle, seed)
    }),
];

#[test]
fn persistent_products_agree() {
    for (name, kernel) in FORMS {
        let found = verdict(
            |seed| either(kernel(&text(name), Swizzle::Bytes128, seed)),
            3,
        );
        assert_eq!(found, Outcome::Right, "{name}");
    }
}

#[test]
fn faults_of_groups_that_alternate_are_found() {
    let (name, kernel) = FORMS[0];
    compare("gemm_alternating.faults", &table(name, kernel, 3));
}

#[test]
fn faults_of_groups_that_share_a_tile_are_found() {
    let (name, kernel) = FORMS[1];
    compare("gemm_shared_tile.faults", &table(name, kernel, 3));
}
