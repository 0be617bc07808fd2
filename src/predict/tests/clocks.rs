//! What each instruction of a thread waits for, in clocks, and what it keeps busy: threads' texts on devices of round numbers.

use crate::ir::function::ThreadFunction;
use crate::predict::prepared::{Needs, Prepared};
use crate::predict::{Figures, Launch, Resource};
use crate::text::parse::parse_thread;

/// One multiprocessor that does everything at once: a clock for each instruction that it takes from a warp is all that is left.
const AT_ONCE: Figures = Figures {
    sms: 1,
    clock: 1.0,
    warpgroup_products: f64::INFINITY,
    warp_products: f64::INFINITY,
    simple: f64::INFINITY,
    special: f64::INFINITY,
    shared: f64::INFINITY,
    l2: f64::INFINITY,
    row: 0.0,
    across_lines: 1.0,
    across_sectors: 1.0,
    atomic: 0.0,
    dram: f64::INFINITY,
    dependent: 0.0,
    shared_latency: 0.0,
    l2_latency: 0.0,
    dram_latency: 0.0,
    box_latency: 0.0,
    map_latency: 0.0,
    product_latency: 0.0,
    wait: 0.0,
    cta: 0.0,
    stagger: 0.0,
    fence: 0.0,
    registers: 0.0,
    launch: 0.0,
};

fn kernel(text: &str) -> Prepared {
    let thread: ThreadFunction = parse_thread(text).unwrap_or_else(|errors| panic!("{errors:?}"));
    let needs = Needs {
        params: thread.params().len(),
        persistent: false,
        resident: 1,
        spilled: 0,
    };
    Prepared::with(thread, needs)
}

/// The clocks of a grid, and those that each resource is busy.
fn estimate(kernel: &Prepared, grid: [u32; 3], figures: &Figures) -> (f64, [f64; 7]) {
    let launch = Launch { grid, numbers: &[] };
    let estimate = kernel.estimate(&launch, figures);
    let estimate = estimate.expect("the model follows it");
    let busy = Resource::ALL.map(|resource| {
        let found = estimate.busy.iter().find(|(other, _)| *other == resource);
        found.map_or(0.0, |(_, part)| (part * estimate.micros).round())
    });
    (estimate.micros, busy)
}

/// The clocks of one program, where something is changed about the device.
fn clocks(text: &str, change: impl Fn(&mut Figures)) -> f64 {
    let mut figures = AT_ONCE;
    change(&mut figures);
    estimate(&kernel(text), [1; 3], &figures).0
}

/// A box of 64 rows of 64 bytes is fetched, two are stored, a group each, and waited for; the second may still be read then.
const BOXES: &str = "thread @boxes(v0: ptr<f16>) warps(4) {
    slot0 = 4096 bytes align 128 at 0
    slot1 = 8 bytes align 8 at 4096
    map0 = {base=p0, offset=0, elem=f16, extents=[64, 32], strides=[32], box=[64, 32], swizzle=64, if=1}
block0:
    v1 = const {value = true} : i1
    v2 = const {value = 0} : i32
    v3 = slot_addr {slot = slot0} : ptr<i8, shared>
    v4 = slot_addr {slot = slot1} : ptr<i64, shared>
    v5 = map_addr {index = 0} : i64
    mbar_init v4, v1 {count = 1, offset = 0, slot = slot1}
    mbar_expect v4, v1 {bytes = 4096, slot = slot1}
    tensor_copy v3, v5, v4, v1, v2, v2 {offset = 0, slot = slot0, bars = slot1}
    jump block1
block1:
    v6 = mbar_try v4, v2 {slot = slot1} : i1
    brif v6, block2, block1
block2:
    tensor_store v3, v5, v1, v2, v2 {slot = slot0}
    bulk_commit
    tensor_store v3, v5, v1, v2, v2 {slot = slot0}
    bulk_commit
    bulk_wait {pending = PENDING}
    return
}";

#[test]
fn boxes_take_their_latencies_bytes_and_rows() {
    let all = BOXES.replace("PENDING", "0");
    let first = BOXES.replace("PENDING", "1");
    // Two instructions come before the copy; behind it are one wait, a branch of two clocks, and five instructions.
    assert_eq!(clocks(&all, |_| ()), 2.0 + 1.0 + 2.0 + 5.0);
    let found = [
        clocks(&all, |f| f.l2_latency = 1000.0),
        clocks(&first, |f| f.l2_latency = 1000.0),
        clocks(&all, |f| f.dram_latency = 1000.0),
        clocks(&all, |f| f.box_latency = 1000.0),
        clocks(&all, |f| f.map_latency = 1000.0),
        clocks(&all, |f| f.wait = 1000.0),
        // Four bytes a clock; for memory nobody waits, but it must have them in the end.
        clocks(&all, |f| f.l2 = 4.0),
        clocks(&all, |f| f.dram = 4.0),
        clocks(&all, |f| f.row = 10.0),
        // Rows of 64 bytes begin within lines of 128.
        clocks(&all, |f| (f.row, f.across_lines) = (10.0, 3.0)),
        clocks(&all, |f| (f.row, f.across_sectors) = (10.0, 3.0)),
    ];
    let expected = [
        2007.0, 2005.0, 1009.0, 1009.0, 1009.0, 1010.0, 3077.0, 3076.0, 649.0, 1929.0, 649.0,
    ];
    assert_eq!(found, expected);
}

/// A copy that an elected lane starts is waited for as one of the first thread: if nobody started it, the launch would never end.
#[test]
fn a_lane_that_is_elected_starts_copies() {
    let copy = "tensor_copy v3, v5, v4, v1, v2, v2 {offset = 0, slot = slot0, bars = slot1}";
    let elected = format!(
        "v9 = elect : i1
            brif v9, block3, block4
        block3:
            {copy}
            jump block4
        block4:"
    );
    let first = BOXES.replace("PENDING", "0");
    let chosen = first.replace(copy, &elected);
    // An instruction, a branch of two clocks.
    assert_eq!(clocks(&chosen, |_| ()), clocks(&first, |_| ()) + 3.0);
    let late = |text: &str| clocks(text, |f| f.box_latency = 1000.0);
    assert_eq!(late(&chosen), late(&first) + 3.0);
}

/// Two products of a warpgroup, each of one step of 64 rows and 8 columns; the wait leaves some to the end.
const PRODUCTS: &str = "thread @products(v0: i64, v1: i64) warps(4) {
    slot0 = 1024 bytes align 1024
block0:
    v2 = const {value = 0.0} : f32 x 4
    v3 = wgmma_fence v2 {unit = warpgroup_f16, slot = slot0, left_slot = slot0} : f32 x 4
    v4 = wgmma v3, v0, v1 {columns = 8, unit = warpgroup_f16, slot = slot0, left_slot = slot0} : f32 x 4
    wgmma_commit
    v5 = wgmma v4, v0, v1 {columns = 8, unit = warpgroup_f16, slot = slot0, left_slot = slot0} : f32 x 4
    wgmma_commit
    v6 = wgmma_wait v5 {pending = PENDING} : f32 x 4
    fence_async
    set_registers {count = 40}
    return
}";

#[test]
fn products_of_warpgroups_take_their_numbers_or_what_they_read() {
    let all = PRODUCTS.replace("PENDING", "0");
    let first = PRODUCTS.replace("PENDING", "1");
    // Five instructions, a wait that takes none where it is over, and two behind it.
    assert_eq!(clocks(&all, |_| ()), 7.0);
    let found = [
        // The second begins in the fourth clock, the first in the second one.
        clocks(&all, |f| f.product_latency = 1000.0),
        clocks(&first, |f| f.product_latency = 1000.0),
        // 8,192 products each.
        clocks(&all, |f| f.warpgroup_products = 8.0),
        clocks(&first, |f| f.warpgroup_products = 8.0),
        // 64 rows of the left operand and 8 of the right one, of 32 bytes.
        clocks(&all, |f| f.shared = 2.0),
        clocks(&all, |f| f.fence = 1000.0),
        clocks(&all, |f| f.registers = 1000.0),
    ];
    assert_eq!(
        found,
        [1006.0, 1004.0, 2052.0, 1028.0, 2308.0, 1007.0, 1007.0]
    );
    let figures = Figures {
        warpgroup_products: 8.0,
        shared: 2.0,
        ..AT_ONCE
    };
    let (_, busy) = estimate(&kernel(&all), [1; 3], &figures);
    assert_eq!(busy, [0.0, 0.0, 0.0, 2304.0, 2304.0, 0.0, 0.0]);
}

/// One instruction after the other by `WARPS` warps, on four numbers or one of each thread.
const ARITHMETIC: &str = "thread @arithmetic(v0: f32) warps(WARPS) {
    slot0 = 4096 bytes align 16 at 0
block0:
    v1 = special {reg = tid} : i32
    v2 = iadd v1, v1 : i32
    v3 = slot_addr {slot = slot0} : ptr<f32, shared>
    v4 = addptr v3, v2 : ptr<f32, shared>
    v5 = ld v4 {slot = slot0} : f32 x 4
    v6 = exp2 v5 : f32 x 4
    v7 = fadd v6, v6 : f32 x 4
    v8 = rearrange v7 {map = [0, 1]} : f32 x 2
    v9 = mma v7, v8, v7 {unit = tf32} : f32 x 4
    st v4, v9 {slot = slot0}
    return
}";

#[test]
fn arithmetic_waits_for_numbers_and_units() {
    // What each warp takes is stated for one warp; units that all four share take four times as long, those of each do not.
    let expected = [
        (
            "1",
            [
                67.0, 3066.0, 1067.0, 578.0, 466.0, 1659.0, 8255.0, 67.0, 67.0,
            ],
            [4.0, 2.0, 4.0, 1024.0, 2048.0, 0.0, 0.0],
        ),
        (
            "4",
            [
                67.0, 3066.0, 1067.0, 2114.0, 865.0, 1659.0, 8255.0, 67.0, 67.0,
            ],
            [17.0, 8.0, 16.0, 4096.0, 8192.0, 0.0, 0.0],
        ),
    ];
    for (warps, clocks_of, busy) in expected {
        let text = ARITHMETIC.replace("WARPS", warps);
        let found = [
            clocks(&text, |_| ()),
            clocks(&text, |f| f.dependent = 1000.0),
            clocks(&text, |f| f.shared_latency = 1000.0),
            clocks(&text, |f| f.shared = 1.0),
            clocks(&text, |f| f.simple = 0.01),
            clocks(&text, |f| f.special = 0.01),
            clocks(&text, |f| f.warp_products = 1.0),
            clocks(&text, |f| f.l2_latency = 1000.0),
            clocks(&text, |f| f.wait = 1000.0),
        ];
        let figures = Figures {
            simple: 1.0,
            special: 1.0,
            shared: 1.0,
            warp_products: 1.0,
            ..AT_ONCE
        };
        let taken = estimate(&kernel(&text), [1; 3], &figures).1;
        assert_eq!((found, taken), (clocks_of, busy), "{warps} warps");
    }
}

/// A load, a copy, a store and an atomic addition by four warps, which wait for each.
const MEMORY: &str = "thread @memory(v0: ptr<f32>, v1: ptr<i32>) warps(4) {
    slot0 = 4096 bytes align 16 at 0
block0:
    v2 = const {value = true} : i1
    v3 = special {reg = tid} : i32
    v4 = addptr v0, v3 : ptr<f32>
    v5 = ld v4 : f32 x 4
    v6 = fadd v5, v5 : f32 x 4
    st v4, v6
    v7 = slot_addr {slot = slot0} : ptr<f32, shared>
    cp_async v7, v4, v2 {bytes = 16, slot = slot0}
    cp_async_commit
    cp_async_wait {pending = 0}
    v8 = const {value = 1} : i32
    v9 = atom v1, v8, v2 {rmw = add, sem = relaxed, scope = gpu} : i32
    v10 = iadd v9, v9 : i32
    return
}";

#[test]
fn memory_takes_latencies_bytes_and_turns() {
    let found = [
        clocks(MEMORY, |_| ()),
        clocks(MEMORY, |f| f.l2_latency = 1000.0),
        clocks(MEMORY, |f| f.dram_latency = 1000.0),
        clocks(MEMORY, |f| f.l2 = 4.0),
        clocks(MEMORY, |f| f.dram = 4.0),
        clocks(MEMORY, |f| f.row = 10.0),
        clocks(MEMORY, |f| f.wait = 1000.0),
        clocks(MEMORY, |f| f.atomic = 1000.0),
    ];
    // The copy asks for what the load has asked for: half of that is in a cache.
    let expected = [13.0, 3011.0, 1011.0, 1675.0, 1035.0, 371.0, 1013.0, 13.0];
    assert_eq!(found, expected);
    let figures = Figures {
        sms: 4,
        l2: 4.0,
        dram: 4.0,
        atomic: 100.0,
        ..AT_ONCE
    };
    let found = estimate(&kernel(MEMORY), [4, 1, 1], &figures);
    // One of eight requests is the first; of the additions three in four wait, for those of four programs.
    let busy = [10.0, 0.0, 0.0, 0.0, 0.0, 1664.0, 2860.0];
    assert_eq!(found, (3127.0, busy));
}

/// Two agents of four warps. The second one counts to three, the first one waits for each, by `WAIT`; both meet in the end.
const ROUNDS: &str = "thread @rounds(v0: f32 x 4) warps(8) {
    slot0 = 8 bytes align 8 at 0
block0:
    v1 = const {value = true} : i1
    v2 = const {value = 0} : i32
    v3 = const {value = 1} : i32
    v4 = const {value = 3} : i32
    v5 = const {value = 128} : i32
    v6 = slot_addr {slot = slot0} : ptr<i64, shared>
    v7 = special {reg = tid} : i32
    v8 = icmp v7, v5 {ipred = ult} : i1
    v9 = icmp v7, v2 {ipred = eq} : i1
    mbar_init v6, v1 {count = COUNT, offset = 0, slot = slot0}
    bar {id = 0, threads = 256}
    brif v8, block1(v2), block4(v2)
block1(v10: i32):
    WAIT
block3:
    v12 = iadd v10, v3 : i32
    v13 = icmp v12, v4 {ipred = slt} : i1
    brif v13, block1(v12), block6
block4(v20: i32):
    v21 = exp2 v0 : f32 x 4
    v22 = fadd v21, v21 : f32 x 4
    ARRIVE
    v23 = iadd v20, v3 : i32
    v24 = icmp v23, v4 {ipred = slt} : i1
    brif v24, block4(v23), block6
block6:
    bar {id = 0, threads = 256}
    return
}";

#[test]
fn who_waits_goes_on_when_the_last_has_come() {
    let by_phases = |count: &str| {
        let wait = "jump block2
        block2:
            v11 = mbar_try v6, v10 {slot = slot0} : i1
            brif v11, block3, block2";
        let arrive = "mbar_arrive v6, v1 {slot = slot0}\n mbar_arrive v6, v1 {slot = slot0}";
        let text = ROUNDS.replace("WAIT", wait).replace("ARRIVE", arrive);
        text.replace("COUNT", count)
    };
    let by_meeting = {
        let wait = "group_bar v3 {threads = 256}\n jump block3";
        let text = ROUNDS.replace("WAIT", wait);
        let text = text.replace("ARRIVE", "group_arrive v3, v1 {threads = 256}");
        text.replace("COUNT", "1")
    };
    let found = [by_phases("2"), by_meeting].map(|text| {
        [
            clocks(&text, |_| ()),
            clocks(&text, |f| f.wait = 5.0),
            clocks(&text, |f| f.dependent = 100.0),
        ]
    });
    // The second agent takes 31 clocks for a round, 28 of them until the other may go on, which takes 5 until both meet.
    assert_eq!(found, [[101.0, 116.0, 793.0], [97.0, 111.0, 789.0]]);
}

/// Programs of which those with `REG` equal to `ONE` compute something; none but the first `LANES` threads of the others does.
const SOME: &str = "thread @some(v0: f32) warps(8) {
block0:
    v1 = const {value = ONE} : i32
    v2 = const {value = LANES} : i32
    v3 = special {reg = REG} : i32
    v4 = icmp v3, v1 {ipred = eq} : i1
    v5 = special {reg = tid} : i32
    v6 = icmp v5, v2 {ipred = ult} : i1
    v7 = or v4, v6 : i1
    brif v7, block1, block2
block1:
    v8 = rearrange v0 {map = [0, 0]} : f32 x 2
    v9 = exp2 v8 : f32 x 2
    return
block2:
    return
}";

#[test]
fn warps_and_programs_have_their_numbers() {
    let figures = Figures {
        special: 1.0,
        ..AT_ONCE
    };
    // Clocks on special functions: two numbers of each warp that computes.
    let special = |reg: &str, one: &str, lanes: &str| {
        let text = SOME
            .replace("REG", reg)
            .replace("ONE", one)
            .replace("LANES", lanes);
        estimate(&kernel(&text), [2, 3, 2], &figures).1[Resource::Special as usize] / 2.0
    };
    let found = [
        special("program_x", "1", "0"),
        special("program_y", "1", "0"),
        special("program_z", "1", "0"),
        special("programs_x", "2", "0"),
        special("programs_y", "3", "0"),
        special("programs_z", "2", "0"),
        special("program_z", "1", "64"),
        special("program_z", "1", "192"),
    ];
    // Of 12 programs of eight warps; those without the number have two warps with something to do, or six.
    let (half, third, all) = (6.0 * 8.0, 4.0 * 8.0, 12.0 * 8.0);
    let expected = [
        half,
        third,
        half,
        all,
        all,
        all,
        half + 6.0 * 2.0,
        half + 6.0 * 6.0,
    ];
    assert_eq!(found, expected);
}

/// Twelve programs on three multiprocessors of two CTAs each: six of those ask how many there are.
#[test]
fn persistent_ctas_are_as_many_as_there_is_room_for() {
    let mut persistent = kernel(
        &SOME
            .replace("REG", "programs_x")
            .replace("ONE", "6")
            .replace("LANES", "0"),
    );
    persistent.needs.persistent = true;
    persistent.needs.resident = 2;
    let figures = Figures {
        sms: 3,
        special: 1.0,
        ..AT_ONCE
    };
    // Two numbers of each of eight warps, by both CTAs.
    let (_, busy) = estimate(&persistent, [12, 1, 1], &figures);
    assert_eq!(busy[Resource::Special as usize], 32.0);
}

#[test]
fn registers_without_room_pass_through_the_caches() {
    let mut spilling = kernel(
        &SOME
            .replace("REG", "tid")
            .replace("ONE", "1")
            .replace("LANES", "32"),
    );
    spilling.needs.spilled = 8;
    let with = |change: fn(&mut Figures)| {
        let mut figures = AT_ONCE;
        change(&mut figures);
        estimate(&spilling, [1; 3], &figures)
    };
    let found = [with(|f| f.l2 = 4.0), with(|f| f.dram = 4.0)];
    // Of the two agents one executes the block in question, with one warp: it writes and reads 8 bytes of 32 threads.
    let busy = [
        [7.0, 0.0, 0.0, 0.0, 0.0, 128.0, 128.0],
        [7.0, 0.0, 0.0, 0.0, 0.0, 0.0, 128.0],
    ];
    assert_eq!(found, busy.map(|busy| (139.0, busy)));
}
