//! Persistent kernels: each CTA of a launch executes several programs, one after the other.
//!
//! ```text
//! body of program_id         n = num_programs 0 * num_programs 1 * num_programs 2
//!                       =>   for i in cta_id .. n by num_ctas { body of i }
//! ```
//!
//! Where a kernel asks for its number along the first axis alone, that is `i`, unless the launch has programs along other axes, too. So
//! a division, which would take dozens of instructions for each program, stands in a choice.
//!
//! A launch then has as many CTAs as the device executes at a time. With roles that gains what a program alone cannot have: while
//! its warps bring the results of one program to memory, the producer fetches for the next. So the pass stands in front of
//! [`super::form_roles`], whose channels go through loops of any depth.
//!
//! Programs are dealt out like cards: nobody waits at a counter in memory, and a launch needs nothing but its arguments. So they must
//! all take as long, or it must be known who takes how long:
//!
//! - No number of iterations and no condition depends on the program or on memory. Or
//! - loops with products grow or shrink along one axis ([`super::order_programs`]), as those of causal attention. Then programs
//!   are taken in sections of heads, within which they are dealt out from the longest to the shortest and every second
//!   round backwards: for 64 heads of 32 blocks of rows on 132 SMs nobody has more than 1.01 of the mean, for 256 of 8 1.03 (counted).
//!   What the programs of a head read in common is still in the L2 cache, as several of them are executed at once: of all programs from
//!   the longest to the shortest each of 256 heads would come from memory anew for every block. (An H100: causal attention of 128
//!   columns, 1,024 rows 0.82 of the time of that order, 2,048 rows 0.83.)
//!
//! A kernel is left alone if programs could wait for each other (a `while` loop), if it speaks of itself (what
//! is printed names its program) or if nobody knows what it does (inline PTX that is not pure).

use super::order_programs::{
    Executed, Uneven, can_follow_each_other, counts, divide, name_programs, number_of, number_type,
    ordered_program, program,
};
use super::resources::ResourcePlan;
use crate::analysis::depends::dependents;
use crate::analysis::program::ProgramOrder;
use crate::ir::attrs::{Attrs, IntPred};
use crate::ir::dfg::BlockCall;
use crate::ir::effects::{Access, How};
use crate::ir::entities::Value;
use crate::ir::function::TileFunction;
use crate::ir::level::Tile;
use crate::ir::maker::Maker;
use crate::ir::ops::TileOp;

use crate::settings::Policy;

/// Whether a CTA may execute several programs, and these do as much work as each other or, by `uneven`, as can be known.
pub fn can_loop_over_programs(
    func: &TileFunction,
    uneven: Option<Uneven>,
    resources: &ResourcePlan,
) -> bool {
    let wanted = match resources.persistent {
        Policy::Never => false,
        Policy::Auto => uneven.is_some() || work_alike(func),
        Policy::Always => true,
    };
    wanted && can_follow_each_other(func)
}

/// Lets a CTA execute several programs.
pub fn loop_over_programs(func: &mut TileFunction, uneven: Option<Uneven>) {
    let Some(last) = func.order.last(func.entry) else {
        return;
    };
    let mut body = func.order.insts(func.entry).to_vec();
    body.pop();
    let mut numbers = func.insts_with(TileOp::ProgramId);
    let by_first_axis = numbers.all(|(_, inst)| func.dfg.insts[inst].axis() == Some(&0));
    drop(numbers);
    let region = func.dfg.make_block();
    let index = func.dfg.append_param(region, number_type());
    func.persistent = true;

    let mut maker = Maker::new(func);
    let counts = counts(&mut maker);
    let plane = number_of(&mut maker, TileOp::Imul, [counts[0], counts[1]]);
    let all = number_of(&mut maker, TileOp::Imul, [plane, counts[2]]);
    let [cta, ctas] =
        [TileOp::CtaId, TileOp::NumCtas].map(|op| maker.value(op, &[], &[], number_type()));
    let tiles = maker.build(TileOp::For, &[cta, all, ctas], &[], &[]);
    let call = BlockCall::region(region);
    maker.func.dfg.insts[tiles].blocks.push(call);
    maker.made.push(last);
    let outside = std::mem::take(&mut maker.made);

    let program = match uneven {
        Some(uneven) => {
            let executed = Executed::DealtOut { ctas, all };
            ordered_program(&mut maker, index, counts, uneven, executed)
        }
        None if by_first_axis => program_of_one_axis(&mut maker, index, counts[0]),
        None => program(&mut maker, index, counts),
    };
    let mut inside = std::mem::take(&mut maker.made);
    inside.append(&mut body);
    maker.build(TileOp::Yield, &[], &[], &[]);
    inside.append(&mut maker.made);

    let entry = func.entry;
    func.order.replace(region, inside);
    func.order.replace(entry, outside);
    name_programs(func, program, 0);
}

/// The program that is executed as number `index`, if nobody asks for its numbers along the other axes.
fn program_of_one_axis(maker: &mut Maker<'_, Tile>, index: Value, count: Value) -> [Value; 3] {
    let is_it = maker.compare(IntPred::Ult, index, count);
    let before = std::mem::take(&mut maker.made);
    let [same, other] = [true, false].map(|is_same| {
        let value = match is_same {
            true => index,
            false => divide(maker, index, count)[1],
        };
        maker.build(TileOp::Yield, &[value], &[], &[]);
        let block = maker.func.dfg.make_block();
        let made = std::mem::take(&mut maker.made);
        maker.func.order.replace(block, made);
        BlockCall::region(block)
    });
    maker.made = before;
    let choice = maker.build(TileOp::If, &[is_it], &[], &[number_type()]);
    let data = &mut maker.func.dfg.insts[choice];
    data.blocks.extend([same, other]);
    let number = data.results[0];
    [number; 3]
}

/// Whether every program does the same work: what bounds loops and decides depends neither on its number nor on memory.
fn work_alike(func: &TileFunction) -> bool {
    let order = ProgramOrder::compute(func);
    let own = dependents(func, &order, |inst| {
        let reads = |access: &Access| matches!(access.how, How::Read | How::Atomic);
        func.dfg.insts[inst].op == TileOp::ProgramId || func.accesses(inst).iter().any(reads)
    });
    func.all_insts().all(|(_, inst)| {
        let data = &func.dfg.insts[inst];
        let decides = match data.op {
            TileOp::For => &data.args[..3],
            TileOp::If => &data.args[..1],
            _ => &[],
        };
        !decides.iter().any(|&value| own.contains(value))
    })
}

#[cfg(test)]
mod tests {
    use super::{can_loop_over_programs, loop_over_programs};
    use crate::interp::{Arg, Launch, Memory, Options, run};
    use crate::ir::function::TileFunction;
    use crate::settings::Policy;
    use crate::text::parse::parse_tile;
    use crate::tile::order_programs::Uneven;
    use crate::tile::resources::ResourcePlan;
    use crate::tile::testing::verified;

    /// A kernel that stores a number at its program's place, if `pieces` say no more.
    fn kernel(pieces: &str) -> TileFunction {
        let text = format!(
            "kernel @k(v0: ptr<i32>, v1: i32) warps(1) {{
            block0:
                v2 = program_id {{axis = 0}} : i32
                v3 = program_id {{axis = 1}} : i32
                v4 = program_id {{axis = 2}} : i32
                v5 = num_programs {{axis = 0}} : i32
                v6 = num_programs {{axis = 1}} : i32
                v7 = const {{value = 1}} : i32
                {pieces}
                v10 = imul v4, v6 : i32
                v11 = iadd v10, v3 : i32
                v12 = imul v11, v5 : i32
                v13 = iadd v12, v2 : i32
                v14 = addptr v0, v13 : ptr<i32>
                v15 = imul v13, v13 : i32
                store v14, v15
                return
            }}"
        );
        parse_tile(&text).unwrap_or_else(|errors| panic!("{errors:?}"))
    }

    fn becomes(persistent: Policy, pieces: &str) -> bool {
        let mut func = kernel(pieces);
        let resources = ResourcePlan {
            persistent,
            ..ResourcePlan::ALL
        };
        let changes = can_loop_over_programs(&func, None, &resources);
        if changes {
            loop_over_programs(&mut func, None);
        }
        verified(&func);
        assert_eq!(func.persistent, changes);
        changes
    }

    #[test]
    fn every_program_runs_once() {
        let by = |axis, grows| Some(Uneven { axis, grows });
        let cases = [
            ([1, 1, 1], None),
            ([7, 1, 1], None),
            ([3, 2, 2], None),
            ([1, 1, 5], None),
            ([1, 1, 1], by(0, true)),
            ([5, 1, 1], by(0, true)),
            ([7, 1, 1], by(0, false)),
            ([3, 11, 2], by(0, true)),
            ([3, 2, 4], by(1, true)),
            ([1, 6, 5], by(2, false)),
        ];
        for (grid, uneven) in cases {
            let results = [false, true].map(|changes| {
                let mut func = kernel("");
                if changes {
                    assert!(can_loop_over_programs(&func, uneven, &ResourcePlan::ALL));
                    loop_over_programs(&mut func, uneven);
                }
                verified(&func);
                let bytes = 4 * grid.iter().product::<u32>() as usize;
                let mut memory = Memory::new();
                let to = memory.alloc(bytes);
                let args = [Arg::Ptr(to), Arg::Int(3)];
                let launch = Launch { grid, args: &args };
                run(&func, &launch, &mut memory, &Options::default())
                    .expect("nothing is undefined");
                memory
                    .read(to, bytes)
                    .expect("all of it is written")
                    .to_vec()
            });
            assert_eq!(results[0], results[1], "{grid:?} {uneven:?}");
        }
    }

    /// Where nobody asks for the other axes, numbers along the first one come again for each of their rows.
    #[test]
    fn numbers_of_one_axis_come_once_for_each_row() {
        let text = "kernel @k(v0: ptr<i32>) warps(1) {
            block0:
                v1 = program_id {axis = 0} : i32
                v2 = addptr v0, v1 : ptr<i32>
                v3 = const {value = 1} : i32
                v4 = atomic_rmw v2, v3 {rmw = add, sem = relaxed, scope = gpu} : i32
                return
            }";
        for grid in [[1, 1, 1], [7, 1, 1], [3, 2, 2], [4, 3, 1], [2, 1, 5]] {
            let mut func = parse_tile(text).unwrap_or_else(|errors| panic!("{errors:?}"));
            loop_over_programs(&mut func, None);
            verified(&func);
            let mut memory = Memory::new();
            let to = memory.alloc_bytes(&vec![0; 4 * grid[0] as usize]);
            let args = [Arg::Ptr(to)];
            let launch = Launch { grid, args: &args };
            run(&func, &launch, &mut memory, &Options::default()).expect("it stays in its memory");
            let counts = memory.read(to, 4 * grid[0] as usize);
            let rows = (grid[1] * grid[2]).to_le_bytes();
            assert_eq!(
                counts.expect("all of it is written").to_vec(),
                rows.repeat(grid[0] as usize),
                "{grid:?}"
            );
        }
    }

    #[test]
    fn programs_that_differ_in_work_are_left_alone() {
        let looped = |bounds: &str| format!("for {bounds} {{\nblock1(v8: i32):\nyield\n}}");
        let chosen = |before: &str, by: &str| {
            format!("{before}\nif {by} {{\nblock1:\nyield\n}} {{\nblock2:\nyield\n}}")
        };
        let alike = [
            looped("v7, v1, v7"),
            looped("v7, v5, v7"),
            chosen("v8 = icmp v1, v7 {ipred = slt} : i1", "v8"),
        ];
        for pieces in alike {
            assert!(becomes(Policy::Auto, &pieces), "{pieces}");
        }
        let unlike = [
            looped("v7, v2, v7"),
            format!("v20 = load v0 : i32\n{}", looped("v7, v20, v7")),
            chosen("v8 = icmp v3, v7 {ipred = slt} : i1", "v8"),
            // Carried to the bound of an inner loop.
            "v20 = for v7, v1, v7, v7 : i32 {
             block1(v21: i32, v22: i32):
                for v7, v22, v7 {
                block2(v23: i32):
                    yield
                }
                yield v2
             }"
            .to_owned(),
        ];
        for pieces in unlike {
            assert!(!becomes(Policy::Auto, &pieces), "{pieces}");
            assert!(becomes(Policy::Always, &pieces), "{pieces}");
            assert!(!becomes(Policy::Never, &pieces), "{pieces}");
        }
    }

    #[test]
    fn programs_that_speak_or_wait_are_left_alone() {
        let pieces = [
            "device_print v7 {text = \"x\"}",
            "v8 = global_timer : i64",
            "while {
             block1:
                v8 = icmp v1, v7 {ipred = slt} : i1
                condition v8
             } {
             block2:
                yield
             }",
            "gdc_wait",
            "barrier",
        ];
        for pieces in pieces {
            assert!(!becomes(Policy::Always, pieces), "{pieces}");
        }
    }
}
