//! Boxes with swizzles of 32, 64 and 128 bytes that warpgroups multiply, and what becomes of it where the map and the descriptors
//! do not say the same, or rows lie somewhere else than both say.

use tilelift::emu::{
    Arg, Fill, Launch, Memory, Module, Options, Swizzle, TensorElement, TensorMap, run,
};

use crate::hopper::Outcome;
use crate::products::{BF16, Case, Layout, Random, plain};
use crate::ptxas;

const N: usize = 16;
const SPANS: [(usize, Swizzle); 4] = [
    (16, Swizzle::None),
    (32, Swizzle::Bytes32),
    (64, Swizzle::Bytes64),
    (128, Swizzle::Bytes128),
];

fn case(row: usize, step: usize) -> Case {
    let layout = Layout {
        row,
        across: false,
        step,
    };
    Case {
        left: Some(layout),
        right: layout,
        adds: false,
        ..plain(BF16, BF16, "f32", N, true)
    }
}

/// The kernel of a product whose operands two boxes bring.
fn text(case: &Case) -> String {
    let (start, bytes) = case.image();
    let text = case.text();
    let (head, rest) = text
        .split_once("shl.b32 %r3, %r0, 2;")
        .expect("a loop that copies");
    let (_, rest) = rest.split_once("bar.sync 0;\n").expect("its end");
    let head = head.replace(".version 8.4", ".version 8.6").replace(
        "(.param .u64 in,",
        "(.param .align 64 .b8 left[128], .param .align 64 .b8 right[128], .param .u64 in,",
    );
    let box_bytes = (64 + N) * case.right.row;
    format!(
        "{head}add.u32 %r3, %r2, {bytes}; setp.eq.u32 %p1, %r0, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r3], 1; @%p1 fence.mbarrier_init.release.cluster;
bar.sync 0;
mov.u64 %d3, left; cvta.param.u64 %d3, %d3; mov.u64 %d4, right; cvta.param.u64 %d4, %d4; add.u32 %r4, %r2, {start};
@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {box_bytes};
@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%d3, {{0, 0}}], [%r3];
@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r4], [%d4, {{0, 0}}], [%r3];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra WAIT;
{rest}"
    )
}

/// Runs a text on boxes as wide as the case has rows, with a swizzle of its own.
fn launch(case: &Case, text: &str, swizzle: Swizzle, seed: u64) -> Outcome {
    let (row, step) = (case.right.row, case.right.step);
    let width = row / 2;
    let mut random = Random(seed + 1);
    let mut matrix = |rows: usize| -> Vec<usize> {
        (0..rows * width)
            .map(|_| (random.next() & 7) as usize)
            .collect()
    };
    let (a, b) = (matrix(64), matrix(N));
    let mut memory = Memory::new();
    let mut maps = Vec::new();
    for (values, rows) in [(&a, 64), (&b, N)] {
        let words = values
            .iter()
            .flat_map(|&x| (BF16.codes[x] as u16).to_le_bytes());
        let map = TensorMap {
            element: TensorElement::BF16,
            base: memory.alloc_bytes(&words.collect::<Vec<u8>>()),
            extents: vec![width as u64, rows as u64],
            strides: vec![row as u64],
            box_extents: vec![width as u32, rows as u32],
            element_strides: vec![1, 1],
            swizzle,
            fill: Fill::Zeros,
        };
        match map.encode() {
            Ok(map) => maps.push(map),
            Err(error) => return Outcome::Reported(error.to_string()),
        }
    }
    let input = memory.alloc_bytes(&vec![0; case.stride()]);
    let each = 512 * case.registers();
    let out = memory.alloc(each);
    let mut args: Vec<Arg> = maps.iter().map(|map| Arg::bytes(map)).collect();
    args.extend([input, out].map(Arg::pointer));
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let launch = Launch {
        grid: [1, 1, 1],
        block: [128, 1, 1],
        shared_bytes: case.image().1 as u32 + 16,
        args: &args,
        options: Options {
            seed,
            ..Options::default()
        },
    };
    if let Err(error) = run(&module, "product", &launch, &mut memory) {
        return Outcome::Reported(error.to_string());
    }
    let found = case.decode(&memory.read(out, each).expect("written"));
    for (i, &bits) in found.iter().enumerate() {
        let terms = (0..16).map(|k| {
            let at =
                |values: &[usize], row: usize| BF16.values[values[row * width + 16 * step + k]];
            at(&a, i / N) * at(&b, i % N)
        });
        if f64::from(f32::from_bits(bits as u32)) != terms.sum::<i64>() as f64 {
            return Outcome::Wrong;
        }
    }
    Outcome::Right
}

#[test]
fn maps_and_descriptors_must_agree() {
    for (row, own) in &SPANS[1..] {
        for step in 0..row / 32 {
            let case = case(*row, step);
            let right = text(&case);
            ptxas::assemble_with(&right, "sm_90a", &[]);
            for seed in 0..3 {
                assert_eq!(
                    launch(&case, &right, *own, seed),
                    Outcome::Right,
                    "{row} {step}"
                );
            }
            for (span, swizzle) in SPANS {
                if span == *row {
                    continue;
                }
                // The map has another swizzle: a narrower one is refused as the driver refuses it, a wider one is not emulated.
                match (launch(&case, &right, swizzle, 0), span) {
                    (Outcome::Wrong, 16) => {}
                    (Outcome::Reported(report), 32..) => {
                        let expected = match span < *row {
                            true => {
                                format!("the box is {row} bytes wide, and the swizzle spans {span}")
                            }
                            false => format!("a box {row} bytes wide with a swizzle over {span}"),
                        };
                        assert!(report.contains(&expected), "{row}, map {span}: {report}");
                    }
                    (other, _) => panic!("{row}, map {span}: {other:?}"),
                }
                // The descriptors have another one.
                let code = |row: usize| match row {
                    16 => 0_u64,
                    128 => 1,
                    64 => 2,
                    _ => 3,
                };
                let of = |row: usize, code: u64| {
                    1_u64 << 16 | ((8 * row as u64) >> 4) << 32 | code << 62
                };
                let (before, behind) = (of(*row, code(*row)), of(*row, code(span)));
                assert!(right.contains(&before.to_string()), "{right}");
                let changed = right.replace(&before.to_string(), &behind.to_string());
                let found = launch(&case, &changed, *own, 0);
                assert_ne!(found, Outcome::Right, "{row}, descriptor {span}");
            }
            // A box that stands one row farther than the descriptor says: the engine wants multiples of 128 bytes.
            let moved = right.replace("[%r2], [%d3", "[%r2+128], [%d3");
            assert_ne!(launch(&case, &moved, *own, 0), Outcome::Right, "{row}");
            let moved = right.replace("[%r2], [%d3", "[%r2+64], [%d3");
            let Outcome::Reported(report) = launch(&case, &moved, *own, 0) else {
                panic!("{row}: a box at a multiple of 64 is taken");
            };
            assert!(report.contains("not a multiple of 128"), "{report}");
        }
    }
}
