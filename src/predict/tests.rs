//! What the model says of small kernels.

mod clocks;

use super::*;
use crate::text::parse::parse_tile;

fn model(text: &str) -> Model {
    let func = parse_tile(text).unwrap_or_else(|errors| panic!("{errors:?}"));
    let model = Model::of(&func, Target::SM_90A, &Options::DEFAULT).expect("it compiles");
    model.expect("the target has figures")
}

/// `out[i] = x[i] + x[i]` of `n` floats, 1,024 a program.
const DOUBLE: &str = r#"kernel @double(v0 "out": ptr<f32> {divisible = 16}, v1 "x": ptr<f32> {divisible = 16}, v2 "n": i32 {divisible = 16}) warps(4) {
block0:
    v3 = program_id {axis = 0} : i32
    v4 = const {value = 1024} : i32
    v5 = imul v3, v4 : i32
    v6 = arange {start = 0} : i32[1024]
    v7 = splat v5 : i32[1024]
    v8 = iadd v7, v6 : i32[1024]
    v9 = splat v2 : i32[1024]
    v10 = icmp v8, v9 {ipred = slt} : i1[1024]
    v11 = splat v1 : ptr<f32>[1024]
    v12 = addptr v11, v8 : ptr<f32>[1024]
    v13 = load v12, v10 : f32[1024]
    v14 = fadd v13, v13 : f32[1024]
    v15 = splat v0 : ptr<f32>[1024]
    v16 = addptr v15, v8 : ptr<f32>[1024]
    store v16, v14, v10
    return
}
"#;

/// Sums `n` blocks of 1,024 floats one after the other; each program the same ones.
const SUM: &str = r#"kernel @sum(v0 "out": ptr<f32> {divisible = 16}, v1 "x": ptr<f32> {divisible = 16}, v2 "n": i32) warps(4) {
block0:
    v3 = const {value = 0} : i32
    v4 = const {value = 1} : i32
    v5 = const {value = 0.0} : f32[1024]
    v6 = arange {start = 0} : i32[1024]
    v7 = for v3, v2, v4, v5 {stages = 1} : f32[1024] {
    block1(v8: i32, v9: f32[1024]):
        v10 = const {value = 1024} : i32
        v11 = imul v8, v10 : i32
        v12 = splat v11 : i32[1024]
        v13 = iadd v12, v6 : i32[1024]
        v14 = splat v1 : ptr<f32>[1024]
        v15 = addptr v14, v13 : ptr<f32>[1024]
        v16 = load v15 : f32[1024]
        v17 = fadd v9, v16 : f32[1024]
        yield v17
    }
    v18 = splat v0 : ptr<f32>[1024]
    v19 = addptr v18, v6 : ptr<f32>[1024]
    store v19, v7
    return
}
"#;

fn estimate(model: &Model, programs: u32, numbers: &[Option<i64>]) -> Estimate {
    let launch = Launch {
        grid: [programs, 1, 1],
        numbers,
    };
    model.estimate(&launch).expect("the model follows it")
}

#[test]
fn what_moves_much_memory_takes_as_long_as_that() {
    let model = model(DOUBLE);
    let programs = 1 << 16;
    let bytes = f64::from(programs) * 1024.0 * 8.0;
    let long = estimate(
        &model,
        programs,
        &[None, None, Some(i64::from(programs) * 1024)],
    );
    let least = bytes / Figures::of(Target::SM_90A).expect("it has figures").dram;
    // A copy reaches nine tenths of the bandwidth; a launch adds little to 170 us.
    assert!(
        (least..1.3 * least).contains(&long.micros),
        "{long} {least}"
    );
    assert_eq!(long.bound(), Some(Resource::Memory));
    assert!(
        long.waves > 10.0 && !long.persistent && !long.guessed,
        "{long}"
    );
    // Twice as many take twice as long.
    let twice = estimate(
        &model,
        2 * programs,
        &[None, None, Some(i64::from(programs) * 2048)],
    );
    let ratio = twice.micros / long.micros;
    assert!((1.9..2.1).contains(&ratio), "{ratio}");
    // One program waits for its one load.
    let one = estimate(&model, 1, &[None, None, Some(1024)]);
    assert_eq!(one.bound(), None);
    assert!(
        one.to_string().contains("bound by                 latency"),
        "{one}"
    );
}

#[test]
fn loops_take_as_long_as_their_numbers_say() {
    let model = model(SUM);
    let micros = |n: i64| estimate(&model, 1, &[None, None, Some(n)]).micros;
    let each = [micros(64) - micros(32), micros(128) - micros(96)];
    assert!(each[0] > 1.0, "{each:?}");
    let ratio = each[0] / each[1];
    assert!((0.99..1.01).contains(&ratio), "{each:?}");
    // What all programs read comes from memory once.
    let many = estimate(&model, 132, &[None, None, Some(128)]);
    let memory = many
        .busy
        .iter()
        .find(|(resource, _)| *resource == Resource::Memory);
    assert!(memory.is_some_and(|(_, busy)| *busy < 0.05), "{many}");
}

#[test]
fn what_data_decide_is_said_to_be_guessed() {
    let known = estimate(&model(SUM), 1, &[None, None, Some(4)]);
    let missing = estimate(&model(SUM), 1, &[]);
    assert!(!known.guessed && missing.guessed);
    assert!(missing.to_string().contains("depends on data"), "{missing}");
}

#[test]
fn a_launch_of_nothing_has_no_time() {
    let launch = Launch {
        grid: [0, 1, 1],
        numbers: &[],
    };
    assert_eq!(model(DOUBLE).estimate(&launch), None);
    let func = parse_tile(DOUBLE).expect("a kernel");
    let other = Model::of(&func, Target::SM_70, &Options::DEFAULT).expect("it compiles");
    assert!(other.is_none(), "nobody measured an sm_70");
}

#[test]
fn a_slower_device_takes_longer() {
    let func = parse_tile(DOUBLE).expect("a kernel");
    let figures = Figures::of(Target::SM_90A).expect("it has figures");
    let halved = Figures {
        dram: figures.dram / 2.0,
        ..figures
    };
    let micros = |figures: Figures| {
        let model = Model::on(&func, Target::SM_90A, &Options::DEFAULT, figures);
        let model = model.expect("it compiles");
        estimate(&model, 1 << 16, &[None, None, Some(1 << 26)]).micros
    };
    let ratio = micros(halved) / micros(figures);
    assert!((1.7..2.1).contains(&ratio), "{ratio}");
}

/// A launch with other figures of the device takes longer by what waits for them.
#[test]
fn latencies_count_where_somebody_waits() {
    let figures = Figures::of(Target::SM_90A).expect("it has figures");
    let micros = |text: &str, n: i64, figures: Figures| {
        let func = parse_tile(text).expect("a kernel");
        let model = Model::on(&func, Target::SM_90A, &Options::DEFAULT, figures);
        let model = model.expect("it compiles");
        estimate(&model, 1, &[None, None, Some(n)]).micros
    };
    // As many clocks more as a microsecond has.
    let clock = figures.clock;
    type Change = fn(&mut Figures, f64);
    let changes: [(&str, Change, f64, f64); 6] = [
        ("l2", |f, clock| f.l2_latency += clock, 1.0, 4.0),
        ("memory", |f, clock| f.dram_latency += clock, 1.0, 4.0),
        ("launch", |f, _| f.launch += 1.0, 1.0, 1.0),
        ("shared", |f, clock| f.shared_latency += clock, 0.0, 0.0),
        ("boxes", |f, clock| f.box_latency += clock, 0.0, 0.0),
        ("products", |f, clock| f.product_latency += clock, 0.0, 0.0),
    ];
    for (name, change, one, four) in changes {
        let mut other = figures;
        change(&mut other, clock);
        // One load, and a loop of four of which each waits for the sum before it.
        for (text, n, more) in [(DOUBLE, 1024, one), (SUM, 4, four)] {
            let found = micros(text, n, other) - micros(text, n, figures);
            assert!((found - more).abs() < 1e-6, "{name}: {found}, not {more}");
        }
    }
}
