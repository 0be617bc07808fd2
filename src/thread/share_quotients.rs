//! A remainder beside the quotient of the same numbers is computed from it.
//!
//! ```text
//! r = srem a, b                        q = sdiv a, b
//! q = sdiv a, b                 =>     r = isub a, (imul q, b)
//! ```
//!
//! A division by a number that is known at run time alone takes dozens of instructions, and the assembler does not see that both are
//! one. Kernels whose programs are numbered in groups begin with them, and nothing can be fetched before. (An H200: a
//! product of 4096x4096x512 without any division is 1.03 times as fast.)
//!
//! Looks at single numbers that are divided in the same block. Block programs keep their remainders, by which passes know that
//! numbers are not negative. Numbers are exact modulo 2 to the width, and what a division by zero gives is as little
//! known before as after. Time is linear.

use cranelift_entity::EntitySet;
use rustc_hash::FxHashMap;

use crate::ir::attrs::Attrs;
use crate::ir::dfg::{InstData, ValueList};
use crate::ir::entities::{Block, Inst};
use crate::ir::function::ThreadFunction;
use crate::ir::ops::ThreadOp;

/// Computes remainders from the quotients beside them; gives their number.
pub fn share_quotients(func: &mut ThreadFunction) -> usize {
    let blocks = func.order.blocks.clone();
    blocks.into_iter().map(|block| in_block(func, block)).sum()
}

fn in_block(func: &mut ThreadFunction, block: Block) -> usize {
    let list = func.order.insts(block).to_vec();
    let mut quotients: FxHashMap<(ThreadOp, ValueList), Inst> = FxHashMap::default();
    let mut has_remainders = false;
    for &inst in &list {
        let data = &func.dfg.insts[inst];
        match data.op {
            ThreadOp::Sdiv | ThreadOp::Udiv if is_single(func, inst) => {
                quotients.insert((data.op, data.args.clone()), inst);
            }
            ThreadOp::Srem | ThreadOp::Urem => has_remainders = true,
            _ => {}
        }
    }
    if quotients.is_empty() || !has_remainders {
        return 0;
    }
    let mut made = Vec::with_capacity(list.len());
    let mut placed: EntitySet<Inst> = EntitySet::new();
    let mut count = 0;
    for inst in list {
        let data = &func.dfg.insts[inst];
        let division = match data.op {
            ThreadOp::Srem => ThreadOp::Sdiv,
            ThreadOp::Urem => ThreadOp::Udiv,
            _ => {
                // Where a remainder came first the quotient stands in front of it already.
                if placed.insert(inst) {
                    made.push(inst);
                }
                continue;
            }
        };
        let (args, loc) = (data.args.clone(), data.loc);
        // A quotient of numbers that are said not to be negative is nothing for others.
        let serves = |&&quotient: &&Inst| {
            data.natural().is_some() || func.dfg.insts[quotient].natural().is_none()
        };
        let known = quotients.get(&(division, args.clone()));
        if let Some(&quotient) = known.filter(serves) {
            if placed.insert(quotient) {
                made.push(quotient);
            }
            let quotient = func.dfg.insts[quotient].results[0];
            let ty = func.dfg.ty(quotient);
            let mut whole = InstData::new(ThreadOp::Imul, &[quotient, args[1]]);
            whole.loc = loc;
            let whole = func.dfg.make_inst(whole, &[ty]);
            made.push(whole);
            let whole = func.dfg.insts[whole].results[0];
            let data = &mut func.dfg.insts[inst];
            data.op = ThreadOp::Isub;
            data.attrs.clear();
            data.args = ValueList::from_slice(&[args[0], whole]);
            count += 1;
        }
        made.push(inst);
    }
    func.order.replace(block, made);
    count
}

/// Whether the result is one number and not several in a pack.
fn is_single(func: &ThreadFunction, inst: Inst) -> bool {
    let mut results = func.dfg.insts[inst].results.iter();
    results.all(|&value| func.dfg.ty(value).count == 1)
}

#[cfg(test)]
mod tests {
    use super::share_quotients;
    use crate::text::parse::parse_thread;
    use crate::verify::verify;

    /// The lines of the first block after the pass.
    fn becomes(lines: &[&str]) -> (usize, Vec<String>) {
        let text = format!(
            "thread @k(v0: i32, v1: i32) warps(4) {{\nblock0:\n{}\n    return\n}}",
            lines.join("\n")
        );
        let mut func = parse_thread(&text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
        let count = share_quotients(&mut func);
        assert_eq!(verify(&func), Ok(()));
        let text = func.to_string();
        let body = text.lines().skip_while(|line| *line != "block0:").skip(1);
        let body = body.map(|line| line.trim().to_owned());
        (count, body.take_while(|line| line != "return").collect())
    }

    #[test]
    fn a_remainder_comes_of_the_quotient_whichever_is_first() {
        let quotient = "v2 = sdiv v0, v1 : i32";
        for lines in [
            [quotient, "v3 = srem v0, v1 : i32"],
            ["v3 = srem v0, v1 : i32", quotient],
            [quotient, "v3 = srem v0, v1 {natural} : i32"],
        ] {
            let (count, found) = becomes(&lines);
            assert_eq!(count, 1);
            assert_eq!(found[0].split(" = ").nth(1), Some("sdiv v0, v1 : i32"));
            let ops = found
                .iter()
                .map(|line| line.split(' ').nth(2).expect("an op"));
            assert_eq!(ops.collect::<Vec<_>>(), ["sdiv", "imul", "isub"]);
        }
    }

    #[test]
    fn a_remainder_alone_and_one_with_another_sign_stay() {
        let lines = [
            "v2 = srem v0, v1 : i32",
            "v3 = udiv v0, v1 : i32",
            "v4 = urem v1, v0 : i32",
            "v5 = udiv v1, v1 {natural} : i32",
            "v6 = urem v1, v1 : i32",
        ];
        let (count, found) = becomes(&lines);
        assert_eq!((count, found), (0, lines.map(str::to_owned).to_vec()));
    }
}
