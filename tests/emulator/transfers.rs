//! Copies and reductions by the async proxy and stores of matrices, on many operand sets: a comparison with what an H100 gave.
//!
//! A row is a kernel with up to 1,000 launches: boxes of random tensors, coordinates in and around them, every operation of
//! the reductions. All kernels have the same parameters: a tensor map, a buffer with the tensor, another with what shared
//! memory holds, and seven numbers, of which the first is how many bytes of shared memory count.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tilelift::emu::{
    Arg, Fill, Launch, Memory, Module, Options, Swizzle, TensorElement, TensorMap, run,
};

use crate::product_rows::crc32;
use crate::ptxas;
use crate::tensors::Random;

/// Bytes of each of the two buffers.
const BUFFER: usize = 1 << 16;
/// Bytes of shared memory that a box may take.
const MOST: u64 = 8192;
/// Cases of a row that hardware ran, and those that every run of this test looks at: of copies, of reductions, of which there
/// are many rows.
const CASES: usize = 1000;
const STANDING: usize = 60;
const STANDING_REDUCTIONS: usize = 12;

/// One launch.
struct Case {
    map: Option<TensorMap>,
    /// Which pools of bytes fill the tensor and the image of shared memory.
    pools: [usize; 2],
    numbers: [u32; 7],
    ctas: u32,
}

struct Row {
    name: String,
    entry: String,
    body: String,
    /// The buffer that shows the result: the tensor, or the image of shared memory.
    shows_tensor: bool,
    cases: Vec<Case>,
}

/// Waits for the barrier, though not for ever.
const WAIT: &str = "mov.u32 %r1, 0;
W: mbarrier.test_wait.parity.shared::cta.b64 %p1, [%b], 0; @%p1 bra CAME;
add.u32 %r1, %r1, 1; setp.lt.u32 %p2, %r1, 200000; @%p2 bra W; bra END;
CAME:";

/// Image to shared memory.
const FILL: &str = "shl.b32 %r1, %t, 2;
IN: setp.ge.u32 %p1, %r1, %n0; @%p1 bra FULL;
cvt.u64.u32 %d1, %r1; add.u64 %d1, %image, %d1; ld.global.u32 %r2, [%d1]; add.u32 %r3, %s, %r1; st.shared.u32 [%r3], %r2;
add.u32 %r1, %r1, 256; bra IN;
FULL: fence.proxy.async.shared::cta; bar.sync 0;";

/// Shared memory to the image.
const DRAIN: &str = "shl.b32 %r1, %t, 2;
OUT: setp.ge.u32 %p1, %r1, %n0; @%p1 bra END;
add.u32 %r3, %s, %r1; ld.shared.u32 %r2, [%r3]; cvt.u64.u32 %d1, %r1; add.u64 %d1, %image, %d1; st.global.u32 [%d1], %r2;
add.u32 %r1, %r1, 256; bra OUT;";

const GROUP: &str = "@%first cp.async.bulk.commit_group; @%first cp.async.bulk.wait_group 0;";

/// CTAs of a cluster wait for each other.
const MEET: &str = "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;";

fn entry(name: &str, body: &str) -> String {
    let shape = match body.contains(MEET) {
        true => ".reqnctapercluster 2, 1, 1\n",
        false => "",
    };
    let names: Vec<String> = (0..7).map(|i| format!(".param .u32 n{i}")).collect();
    let loads: String = (0..7)
        .map(|i| format!("ld.param.u32 %n{i}, [n{i}]; "))
        .collect();
    format!(
        ".visible .entry {name}(.param .align 64 .b8 map[128], .param .u64 tensor, .param .u64 image, {})
{shape}{{
.reg .pred %p<4>, %first; .reg .b32 %r<16>, %n<7>, %s, %b, %t; .reg .b64 %d<4>, %tensor, %image, %map;
ld.param.u64 %tensor, [tensor]; ld.param.u64 %image, [image]; {loads}
mov.u64 %map, map; cvta.param.u64 %map, %map; cvt.u64.u32 %d0, %n6; add.u64 %image, %image, %d0;
mov.u32 %b, dyn; add.u32 %s, %b, 1024; mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0;
@%first mbarrier.init.shared::cta.b64 [%b], 1; @%first fence.mbarrier_init.release.cluster;
bar.sync 0;
{body}
END: ret;
}}
",
        names.join(", ")
    )
}

fn text(rows: &[Row]) -> String {
    let head =
        ".version 8.6\n.target sm_90\n.address_size 64\n.extern .shared .align 1024 .b8 dyn[];\n";
    let mut entries: BTreeMap<&str, &str> = BTreeMap::new();
    for row in rows {
        entries.insert(&row.entry, &row.body);
    }
    let entries = entries.iter().map(|(name, body)| entry(name, body));
    entries.fold(head.to_owned(), |text, entry| text + &entry)
}

/// A random map of the tensor, where a box of it starts, and the bytes of that in shared memory; for stores only where those
/// are defined.
fn random(
    random: &mut Random,
    rank: usize,
    element: TensorElement,
    is_store: bool,
) -> (TensorMap, Vec<i32>, u32) {
    let size = u64::from(element.bytes());
    loop {
        let swizzle = random.pick(&Swizzle::ALL);
        let inner = match swizzle.span() {
            Some(span) => u64::from(span.get()),
            None => (16 * (1 + random.below(16))).min(256 * size),
        };
        let mut box_extents = vec![(inner / size) as u32];
        let mut extents = vec![1 + random.below(3 * u64::from(box_extents[0]))];
        if is_store {
            // Hardware stores whole pieces of 16 bytes.
            extents[0] = extents[0].next_multiple_of(16 / size);
        }
        let (mut element_strides, mut strides) = (vec![1], Vec::new());
        let mut pitch = (extents[0] * size).next_multiple_of(16);
        let widest = [0, 0, 256, 32, 8, 4][rank];
        for _ in 1..rank {
            strides.push(pitch + 16 * random.below(3));
            box_extents.push(1 + random.below(widest) as u32);
            extents.push(1 + random.below(widest));
            element_strides.push(random.pick(&[1, 1, 1, 2, 3, 5, 8]));
            pitch = strides[strides.len() - 1] * extents[extents.len() - 1];
        }
        let fill = match element {
            _ if is_store => Fill::Zeros,
            TensorElement::F16 | TensorElement::BF16 | TensorElement::F32 | TensorElement::F64 => {
                random.pick(&[Fill::Zeros, Fill::NaN])
            }
            _ => Fill::Zeros,
        };
        let steps = box_extents.iter().zip(&element_strides).skip(1);
        let rows: u64 = steps
            .map(|(&extent, &by)| u64::from(extent.div_ceil(by)))
            .product();
        if pitch > BUFFER as u64 || rows * inner > MOST {
            continue;
        }
        let start = (0..rank).map(|d| {
            let (unit, extent) = match d {
                0 => (16 / size, extents[0]),
                _ => (1, extents[d]),
            };
            // From a little in front of the tensor to a little behind it.
            let before = if is_store { 0 } else { 3 };
            let at = random.below(extent.div_ceil(unit) + 2 * before) as i64 - before as i64;
            (at * unit as i64) as i32
        });
        let start = start.collect();
        let map = TensorMap {
            element,
            base: 0,
            extents,
            strides,
            box_extents,
            element_strides,
            swizzle,
            fill,
        };
        return (map, start, (rows * inner) as u32);
    }
}

const ELEMENTS: [TensorElement; 10] = [
    TensorElement::U8,
    TensorElement::U16,
    TensorElement::U32,
    TensorElement::S32,
    TensorElement::U64,
    TensorElement::S64,
    TensorElement::F16,
    TensorElement::F32,
    TensorElement::F64,
    TensorElement::BF16,
];

fn boxes(name: &str, rank: usize, elements: &[TensorElement], count: usize, seed: u64) -> Row {
    let names: Vec<String> = (1..=rank).map(|d| format!("%n{d}")).collect();
    let at = format!("[%map, {{{}}}]", names.join(", "));
    let is_load = name == "load";
    let body = match name {
        "load" => format!(
            "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], %n0;
@%first cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%s], {at}, [%b];
{WAIT}
{DRAIN}"
        ),
        "store" => format!(
            "{FILL}
@%first cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group {at}, [%s];
{GROUP}"
        ),
        op => format!(
            "{FILL}
@%first cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{op}.tile.bulk_group {at}, [%s];
{GROUP}"
        ),
    };
    let mut numbers = Random(seed);
    let cases = (0..count).map(|_| {
        let element = numbers.pick(elements);
        let (map, start, bytes) = random(&mut numbers, rank, element, !is_load);
        let mut all = [0; 7];
        all[0] = bytes;
        for (number, &at) in all[1..].iter_mut().zip(&start) {
            *number = at as u32;
        }
        all[6] = 16 * numbers.below((BUFFER as u64 - MOST) / 16) as u32;
        Case {
            map: Some(map),
            pools: pools(&mut numbers, element),
            numbers: all,
            ctas: 1,
        }
    });
    Row {
        entry: format!("{name}_{rank}"),
        name: match elements {
            [element] => format!("{name} {rank}d {element:?}"),
            _ => format!("{name} {rank}d"),
        },
        body,
        shows_tensor: !is_load,
        cases: cases.collect(),
    }
}

/// Plain copies, and reductions of a type.
fn plain(name: &str, element: TensorElement, count: usize, seed: u64) -> Row {
    let is_load = name == "load";
    let at = "cvt.u64.u32 %d1, %n2; add.u64 %tensor, %tensor, %d1; add.u32 %s, %s, %n1;";
    let body = match name {
        "load" => format!(
            "{at} @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], %n0;
@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%tensor], %n0, [%b];
{WAIT}
{DRAIN}"
        ),
        "store" => format!(
            "{at} {FILL}
@%first cp.async.bulk.global.shared::cta.bulk_group [%tensor], [%s], %n0;
{GROUP}"
        ),
        op => format!(
            "{at} {FILL}
@%first cp.reduce.async.bulk.global.shared::cta.bulk_group.{op} [%tensor], [%s], %n0;
{GROUP}"
        ),
    };
    let mut numbers = Random(seed);
    let cases = (0..count).map(|_| {
        let mut place = |most: u64| 16 * numbers.below(most / 16) as u32;
        let (bytes, shared, global, image) = (
            16 + place(MOST),
            place(2048),
            place(BUFFER as u64 - MOST),
            place(BUFFER as u64 - MOST),
        );
        Case {
            map: None,
            pools: pools(&mut numbers, element),
            numbers: [bytes, shared, global, 0, 0, 0, image],
            ctas: 1,
        }
    });
    Row {
        name: format!("plain {name}"),
        entry: format!("plain_{}", name.replace('.', "_")),
        body,
        shows_tensor: !is_load,
        cases: cases.collect(),
    }
}

/// Matrices of 8 x 8 stored by a warp, of which each of 128 CTAs has one.
fn matrices(count: usize, is_transposed: bool, seed: u64) -> Row {
    let trans = if is_transposed { ".trans" } else { "" };
    let registers: Vec<String> = (4..4 + count).map(|i| format!("%r{i}")).collect();
    let loads: String = (0..4)
        .map(|i| format!("ld.global.u32 %r{}, [%d1+{}]; ", 4 + i, 128 * i))
        .collect();
    // Rows of 16 bytes stand in places that odd steps shuffle.
    let body = format!(
        "mov.u32 %r1, %ctaid.x; shl.b32 %r1, %r1, 9; cvt.u64.u32 %d2, %r1; add.u64 %image, %image, %d2; add.u64 %tensor, %tensor, %d2;
setp.ge.u32 %p1, %t, 32; @%p1 bra END;
shl.b32 %r2, %t, 2; cvt.u64.u32 %d0, %r2; add.u64 %d1, %image, %d0; {loads}
add.u32 %r8, %s, %r2; st.shared.u32 [%r8], %r4; st.shared.u32 [%r8+128], %r4; st.shared.u32 [%r8+256], %r4; st.shared.u32 [%r8+384], %r4;
mad.lo.u32 %r9, %t, %n1, %n2; and.b32 %r9, %r9, 31; shl.b32 %r9, %r9, 4; add.u32 %r9, %r9, %s;
bar.warp.sync -1;
stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r9], {{{}}};
bar.warp.sync -1;
add.u64 %d1, %tensor, %d0;
ld.shared.u32 %r1, [%r8]; st.global.u32 [%d1], %r1; ld.shared.u32 %r1, [%r8+128]; st.global.u32 [%d1+128], %r1;
ld.shared.u32 %r1, [%r8+256]; st.global.u32 [%d1+256], %r1; ld.shared.u32 %r1, [%r8+384]; st.global.u32 [%d1+384], %r1;",
        registers.join(", ")
    );
    let mut numbers = Random(seed);
    let cases = (0..8).map(|_| Case {
        map: None,
        pools: [0, 1],
        numbers: [
            512,
            1 + 2 * numbers.below(16) as u32,
            numbers.below(32) as u32,
            0,
            0,
            0,
            0,
        ],
        ctas: 128,
    });
    Row {
        name: format!("stmatrix x{count}{trans}"),
        entry: format!("stmatrix_{count}_{}", usize::from(is_transposed)),
        body,
        shows_tensor: true,
        cases: cases.collect(),
    }
}

/// Each of two CTAs sends to the other.
fn sent(count: usize, seed: u64) -> Row {
    let body = format!(
        "mov.u32 %r9, %cluster_ctarank; shl.b32 %r10, %r9, 6; cvt.u64.u32 %d1, %r10; add.u64 %image, %image, %d1; add.u32 %s, %s, %n1;
{FILL}
@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], %n0;
{MEET}
xor.b32 %r10, %r9, 1; add.u32 %r11, %b, 11264; add.u32 %r11, %r11, %n2; mapa.shared::cluster.u32 %r12, %r11, %r10; mapa.shared::cluster.u32 %r13, %b, %r10;
@%first cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r12], [%s], %n0, [%r13];
{}
mov.u32 %s, %r11; shl.b32 %r10, %r9, 14; cvt.u64.u32 %d1, %r10; add.u64 %image, %tensor, %d1;
{}
MET: {MEET}",
        WAIT.replace("END", "MET"),
        DRAIN.replace("END", "MET")
    );
    let mut numbers = Random(seed);
    let cases = (0..count).map(|_| {
        let mut place = |most: u64| 16 * numbers.below(most / 16) as u32;
        let (bytes, source, target) = (16 + place(MOST), place(1024), place(1024));
        let image = place(BUFFER as u64 - 2 * MOST);
        Case {
            map: None,
            pools: [0, 1],
            numbers: [bytes, source, target, 0, 0, 0, image],
            ctas: 2,
        }
    });
    Row {
        name: "sent".to_owned(),
        entry: "sent".to_owned(),
        body,
        shows_tensor: true,
        cases: cases.collect(),
    }
}

/// Two pools for numbers of a type: any bits, or such as meet in sums.
fn pools(numbers: &mut Random, element: TensorElement) -> [usize; 2] {
    let kind = match element {
        TensorElement::F32 => numbers.pick(&[0, 2, 2, 6]),
        // PTX leaves the pattern of an f64 NaN open.
        TensorElement::F64 => 4,
        _ => 0,
    };
    match numbers.below(2) {
        0 => [kind, kind + 1],
        _ => [kind + 1, kind],
    }
}

/// Two pools each of: any bits; f32 near one; f64 near one; small f32, most of them subnormal.
fn pool(index: usize) -> Vec<u8> {
    let mut numbers = Random(1000 + index as u64);
    let mut word =
        || numbers.below(1 << 16) << 48 | numbers.below(1 << 24) << 24 | numbers.below(1 << 24);
    let words = (0..BUFFER / 8).map(|_| {
        let bits: u64 = word();
        match index / 2 {
            0 => bits,
            1 => bits & 0x81ff_ffff_81ff_ffff | 0x3e00_0000_3e00_0000,
            2 => bits & 0x803f_ffff_ffff_ffff | 0x3fc0_0000_0000_0000,
            _ => bits & 0x80ff_ffff_80ff_ffff,
        }
    });
    words.flat_map(u64::to_le_bytes).collect()
}

fn rows() -> Vec<Row> {
    use TensorElement::{BF16, F16, F32, F64, S32, S64, U32, U64};
    let mut seed = 0;
    let mut next = || {
        seed += 1;
        seed
    };
    let mut rows = Vec::new();
    for rank in 1..=5 {
        rows.push(boxes("load", rank, &ELEMENTS, CASES, next()));
        rows.push(boxes("store", rank, &ELEMENTS, CASES, next()));
    }
    rows.push(plain("load", TensorElement::U8, CASES, next()));
    rows.push(plain("store", TensorElement::U8, CASES, next()));
    let integers: &[TensorElement] = &[U32, S32, U64];
    let halves = [U32, S32, U64, S64, F16, BF16];
    let all = [U32, S32, U64, F16, BF16, F32, F64];
    let operations: [(&str, &[TensorElement]); 8] = [
        ("add", &all),
        ("min", &halves),
        ("max", &halves),
        ("inc", &[U32]),
        ("dec", &[U32]),
        ("and", integers),
        ("or", integers),
        ("xor", integers),
    ];
    for (op, elements) in operations {
        for &element in elements {
            for rank in [1, 2, 3] {
                rows.push(boxes(op, rank, &[element], CASES, next()));
            }
            let ty = match (op, element) {
                ("and" | "or" | "xor", U32) => "b32".to_owned(),
                ("and" | "or" | "xor", U64) => "b64".to_owned(),
                ("and" | "or" | "xor", _) => continue,
                ("add", F16 | BF16) => format!("noftz.{element:?}").to_lowercase(),
                _ => format!("{element:?}").to_lowercase(),
            };
            rows.push(plain(&format!("{op}.{ty}"), element, CASES, next()));
        }
    }
    rows.push(sent(CASES, next()));
    for count in [1, 2, 4] {
        rows.push(matrices(count, false, next()));
        rows.push(matrices(count, true, next()));
    }
    rows
}

impl Row {
    /// How many cases every run looks at.
    fn standing(&self) -> usize {
        match self.name.as_str() {
            "sent" | "plain load" | "plain store" => STANDING,
            name if name.starts_with("load") || name.starts_with("store") => STANDING,
            _ => STANDING_REDUCTIONS,
        }
    }
}

/// The buffer that shows the result, behind a case.
fn emulate(module: &Module, row: &Row, index: usize, pools: &[Vec<u8>]) -> Vec<u8> {
    let case = &row.cases[index];
    let mut memory = Memory::new();
    let [tensor, image] = case.pools.map(|pool| memory.alloc_bytes(&pools[pool]));
    let map = match &case.map {
        None => [0; 128],
        Some(map) => {
            let map = TensorMap {
                base: tensor,
                ..map.clone()
            };
            map.encode().expect("a map that can be")
        }
    };
    let mut args = vec![Arg::bytes(&map), Arg::pointer(tensor), Arg::pointer(image)];
    args.extend(case.numbers.map(Arg::from));
    let launch = Launch {
        grid: [case.ctas, 1, 1],
        block: [64, 1, 1],
        shared_bytes: 24_576,
        args: &args,
        options: Options {
            seed: index as u64,
            ..Options::default()
        },
    };
    if let Err(error) = run(module, &row.entry, &launch, &mut memory) {
        panic!(
            "{} {index}: {error}\n{:?} {:?}",
            row.name, case.map, case.numbers
        );
    }
    let shown = if row.shows_tensor { tensor } else { image };
    memory.read(shown, BUFFER).expect("all of it was written")
}

/// What changed, as bytes: how many runs, then place, length and bytes of each.
fn changes(found: &[u8], before: &[u8]) -> Vec<u8> {
    let mut runs: Vec<(usize, Vec<u8>)> = Vec::new();
    for (place, (&new, &old)) in found.iter().zip(before).enumerate() {
        if new == old {
            continue;
        }
        match runs.last_mut() {
            Some((start, bytes)) if *start + bytes.len() == place => bytes.push(new),
            _ => runs.push((place, vec![new])),
        }
    }
    let mut bytes = (runs.len() as u32).to_le_bytes().to_vec();
    for (place, run) in runs {
        bytes.extend((place as u32).to_le_bytes());
        bytes.extend((run.len() as u32).to_le_bytes());
        bytes.extend(run);
    }
    bytes
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/ptx/hardware")
}

/// Compares with the digests in `transfers.txt` of what hardware gave. To record them:
/// `TILELIFT_HARDWARE_TRANSFERS=DIR cargo test --release --test emulator transfers` writes everything that `transfers.py DIR`
/// needs on a machine with a GPU of compute capability 9.0, which writes a checksum of each launch; the same test again emulates
/// all of them and compares; where all agree, BLESS=1 writes the file.
#[test]
fn transfers_agree_with_hardware() {
    let rows = rows();
    let text = text(&rows);
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    ptxas::assemble_with(&text, "sm_90", &["-O0"]);
    let pools: Vec<Vec<u8>> = (0..8).map(pool).collect();
    if let Some(out) = std::env::var_os("TILELIFT_HARDWARE_TRANSFERS").map(PathBuf::from) {
        let Ok(theirs) = fs::read_to_string(out.join("transfers.crc")) else {
            write(&out, "transfers.ptx", text.as_bytes());
            write(&out, "pools.bin", &pools.concat());
            let cases = rows
                .iter()
                .flat_map(|row| row.cases.iter().map(move |case| described(row, case)));
            let plan: String = cases.fold(String::new(), |plan, case| plan + &case + "\n");
            write(&out, "transfers.plan", plan.as_bytes());
            return;
        };
        compare(&module, &rows, &pools, &theirs);
    }
    let mut digests = String::new();
    for row in &rows {
        // FNV-1a.
        let mut digest = 0xcbf2_9ce4_8422_2325_u64;
        for index in 0..row.cases.len().min(row.standing()) {
            let before = &pools[row.cases[index].pools[usize::from(!row.shows_tensor)]];
            for byte in changes(&emulate(&module, row, index, &pools), before) {
                digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        let _ = writeln!(digests, "{}: {digest:016x}", row.name);
    }
    let path = folder().join("transfers.txt");
    let recorded = fs::read_to_string(&path).unwrap_or_default();
    // What stands in front says which hardware agreed.
    let (about, recorded): (Vec<&str>, Vec<&str>) =
        recorded.lines().partition(|line| line.starts_with('#'));
    if std::env::var_os("BLESS").is_some() {
        let about = about.join("\n");
        fs::write(&path, format!("{about}\n{digests}")).expect("the folder can be written");
        return;
    }
    assert_eq!(digests.lines().collect::<Vec<_>>(), recorded);
}

/// Emulates every launch and compares with the checksums that hardware gave.
fn compare(module: &Module, rows: &[Row], pools: &[Vec<u8>], theirs: &str) {
    let mut lines = theirs.lines();
    let device = lines.next().unwrap_or_default();
    let mut wrong = Vec::new();
    let mut count = 0;
    for row in rows {
        for index in 0..row.cases.len() {
            let ours = crc32(0, &emulate(module, row, index, pools));
            let theirs = lines.next().unwrap_or("not run");
            if theirs != format!("{ours:08x}") {
                let case = described(row, &row.cases[index]);
                wrong.push(format!(
                    "{index}: hardware {theirs}, emulator {ours:08x}, {case}"
                ));
            }
            count += 1;
        }
    }
    let shown: Vec<&str> = wrong.iter().take(40).map(String::as_str).collect();
    assert!(
        wrong.is_empty(),
        "{} of {count} launches differ:\n{}",
        wrong.len(),
        shown.join("\n")
    );
    eprintln!("{device}: {count} launches of {} rows agree", rows.len());
}

fn write(folder: &Path, name: &str, bytes: &[u8]) {
    fs::write(folder.join(name), bytes).expect("the folder can be written");
}

/// A launch in JSON.
fn described(row: &Row, case: &Case) -> String {
    let map = match &case.map {
        None => "null".to_owned(),
        Some(map) => format!(
            "[{},{},{},{:?},{:?},{:?},{:?}]",
            map.element as u8,
            map.swizzle as u8,
            map.fill as u8,
            map.extents,
            map.strides,
            map.box_extents,
            map.element_strides
        ),
    };
    format!(
        r#"{{"row":"{}","entry":"{}","shows_tensor":{},"pools":{:?},"numbers":{:?},"ctas":{},"map":{map}}}"#,
        row.name, row.entry, row.shows_tensor, case.pools, case.numbers, case.ctas
    )
}
