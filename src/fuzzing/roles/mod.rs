//! The target `roles`: products of boxes of tensors in loops and choices, whose blocks warps of their own may bring.
//!
//! Loops in loops and one behind the other, with bounds that are known or not, in which boxes are loaded for products at once or
//! for those of inner loops, at coordinates that count, are carried, or stand in memory, and which run no time or more often, or end
//! early. Sums go through branches and trade places, left factors stay in registers and change beside products of them
//! (`generator`).
//! Every pass leaves what the interpreter computes, and the emulator finds no race, no deadlock and the same bytes. Numbers are
//! small and whole, so that sums are exact.

mod generator;

use generator::Generator;

use super::Verdict;
use super::generate::{Argument, Case};
use super::passes;
use super::random::Random;
use super::tile_ir::{Judgement, judge, verdict};
use crate::compile::compile;
use crate::ir::types::{Elem, Scalar};
use crate::num::{Format, Overflow, Rounding};
use crate::settings::{Asserts, Options, Policy, Target};
use crate::text::parse::parse_tile;

/// Grids of launches: more programs than a persistent kernel has CTAs, along one axis or several.
const GRIDS: [[u32; 3]; 5] = [[5, 1, 1], [5, 1, 1], [3, 2, 1], [1, 3, 2], [2, 1, 4]];
/// The most programs of these.
const MAX_PROGRAMS: usize = 8;
/// Most columns of a sum.
const MAX_COLUMNS: usize = 64;
/// Elements of a row of a tensor.
const PITCH: usize = 128;
/// Coordinates are multiples of this.
const UNIT: i64 = 16;

/// Judges the kernel of a seed; a failure is shrunk.
pub fn check(seed: u64) -> Verdict {
    let case = match case(seed) {
        Ok(case) => case,
        Err(message) => return Verdict::Failed(message),
    };
    let both = |case: &Case| match judge(case) {
        Judgement::Passed(_) => passes::judge(case),
        other => other,
    };
    match verdict(&case, both) {
        Verdict::Passed(_) => {
            let kernel = compile(&case.func, case.target, &case.options);
            let ptx = kernel.map_or(String::new(), |kernel| kernel.ptx);
            let has = |words| ptx.contains(words);
            let mut notes = vec![match has("mbarrier.arrive.shared") {
                true => "with roles",
                false => "without",
            }];
            notes.extend(has("wgmma").then_some("by warpgroups"));
            notes.extend(has_registers(&ptx).then_some("of registers"));
            Verdict::Passed(notes)
        }
        other => other,
    }
}

/// Whether a product by warpgroups has its left factor in registers: a pack of them stands behind that of its sum.
fn has_registers(ptx: &str) -> bool {
    let mut products = ptx.lines().filter(|line| line.contains("wgmma.mma_async"));
    products.any(|line| 1 < line.matches('{').count())
}

/// The kernel of a seed with its arguments.
///
/// # Errors
///
/// What its text is refused for, which is a mistake of the generator.
pub fn case(seed: u64) -> Result<Case, String> {
    let mut random = Random::new(seed);
    let grid = random.pick(&GRIDS);
    let of_boxes = random.chance(50);
    let text = Generator::new(&mut random, grid, of_boxes).text();
    let func = parse_tile(&text).map_err(|errors| format!("{errors:?}\n{text}"))?;
    Ok(Case {
        args: arguments(&mut random, &text),
        func,
        grid,
        exact: true,
        options: Options {
            verify_passes: true,
            diversity: random.chance(50).then_some(seed),
            roles: match of_boxes {
                true => Policy::Always,
                false => random.pick(&[Policy::Always, Policy::Auto, Policy::Never]),
            },
            persistent: random.pick(&[Policy::Always, Policy::Auto, Policy::Never]),
            // Waits give up then.
            asserts: match random.chance(20) {
                true => Asserts::Report,
                false => Asserts::Off,
            },
            ..Options::DEFAULT
        },
        target: Target::SM_90A,
    })
}

/// What the kernel is given: factors, room for the sums, a table of coordinates, bounds, a choice, room for left factors.
fn arguments(random: &mut Random, text: &str) -> Vec<Argument> {
    let elem = ["i8", "bf16", "f16", "f32"]
        .into_iter()
        .find(|name| text.contains(&format!("\"a\": ptr<{name}>")));
    let (scalar, format) = match elem {
        Some("i8") => (Scalar::I8, None),
        Some("bf16") => (Scalar::Bf16, Some(Format::BF16)),
        Some("f32") => (Scalar::F32, Some(Format::F32)),
        _ => (Scalar::F16, Some(Format::F16)),
    };
    let mut factors = |rows: usize| {
        let number = |_| {
            let number = random.between(-2, 2);
            let bits = match format {
                Some(format) => {
                    format.from_f64(number as f64, Rounding::NearestEven, Overflow::Ieee)
                }
                None => number as u64,
            };
            bits.to_le_bytes()[..scalar.bytes() as usize].to_vec()
        };
        Argument::Buffer(scalar, (0..rows * PITCH).flat_map(number).collect())
    };
    let (a, b) = (factors(128), factors(128));
    let sums = match scalar {
        Scalar::I8 => Scalar::I32,
        _ => Scalar::F32,
    };
    let table = (0..8_i32).flat_map(|i| (i * 3 % 8 * UNIT as i32).to_le_bytes());
    let mut number = |least, most| {
        Argument::Number(
            Elem::Num(Scalar::I32),
            random.between(least, most) as u32 as u64,
        )
    };
    let (n, m) = (number(-1, 5), number(0, 3));
    vec![
        a,
        b,
        Argument::Buffer(sums, vec![0; MAX_PROGRAMS * 128 * MAX_COLUMNS * 4]),
        Argument::Buffer(Scalar::I32, table.collect()),
        n,
        m,
        Argument::Number(Elem::I1, random.below(2) as u64),
        Argument::Buffer(
            scalar,
            vec![0; MAX_PROGRAMS * 128 * 32 * scalar.bytes() as usize],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing::tile_ir::interpret;
    use crate::ir::ops::TileOp;
    use crate::pipeline::optimize;
    use crate::tile::form_roles::form_roles;
    use crate::tile::order_programs::uneven;
    use crate::tile::resources::ResourcePlan;
    use crate::verify::verify;

    /// Policy wherever they can be.
    const RESOURCES: ResourcePlan = ResourcePlan {
        roles: Policy::Always,
        ..ResourcePlan::ALL
    };
    /// Steps of the interpreter for one kernel.
    const STEPS: u64 = 1 << 26;

    /// Policy alone, and all passes behind them, leave the same bytes for all numbers of iterations.
    #[test]
    fn roles_change_no_result() {
        let mut random = Random::new(1);
        let mut formed = 0;
        for seed in 0..64 {
            let mut case = case(seed).expect("a kernel");
            let mut alone = case.func.clone();
            if !form_roles(&mut alone, case.target, &RESOURCES) {
                continue;
            }
            formed += 1;
            verify(&alone).unwrap_or_else(|errors| panic!("{errors}\n{alone}"));
            let mut all = case.func.clone();
            let done = optimize(
                &mut all,
                case.target,
                &case.options,
                RESOURCES,
                &mut |_, _| {},
            );
            done.expect("the passes take it");
            for _ in 0..3 {
                let mut number = |least, most| random.between(least, most) as u32;
                for (at, bits) in [(4, number(-1, 4)), (5, number(0, 3)), (6, number(0, 1))] {
                    let Argument::Number(_, held) = &mut case.args[at] else {
                        panic!("parameter {at} is a number");
                    };
                    *held = u64::from(bits);
                }
                let expected = interpret(&case.func, &case, STEPS).expect("it can run");
                for func in [&alone, &all] {
                    let found = interpret(func, &case, STEPS);
                    let found = found.unwrap_or_else(|error| panic!("{error}\n{func}"));
                    assert!(found == expected, "other results in seed {seed}\n{func}");
                }
            }
        }
        assert!(8 < formed, "{formed} kernels got roles");
    }

    /// The kernels with roles are of all kinds that there are.
    #[test]
    fn kinds_of_roles_occur() {
        let mut kinds = [0; 6];
        for seed in 0..400 {
            let mut func = case(seed).expect("a kernel").func;
            // Programs differ in work, and are put in order.
            kinds[5] += usize::from(uneven(&func).is_some());
            let loads = func.insts_with(TileOp::TensorLoad).count();
            if !form_roles(&mut func, Target::SM_90A, &RESOURCES) {
                kinds[0] += 1;
                continue;
            }
            let channels = func.insts_with(TileOp::MbarInit).count() / 2;
            let producer = func.insts_with(TileOp::Producer).next();
            let (_, producer) = producer.expect("roles have one");
            let region = func.regions(producer).next().expect("its region");
            let holds = |op| {
                func.order
                    .insts(region)
                    .iter()
                    .filter(|&&inst| func.dfg.insts[inst].op == op)
                    .count()
            };
            kinds[1] += usize::from(1 < channels);
            kinds[2] += usize::from(1 < holds(TileOp::For));
            kinds[3] +=
                usize::from(func.all_insts().any(|(block, inst)| {
                    block != func.entry && func.dfg.insts[inst].op == TileOp::If
                }));
            // Loads share rings.
            kinds[4] += usize::from(func.slots.len() - 2 * channels < loads);
        }
        assert!(kinds.iter().all(|&count| 5 < count), "{kinds:?}");
    }
}
