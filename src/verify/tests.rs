//! Violations that no text can express; the others stand in `tests/filetests/verify`.

use super::{Rule, VerifierErrors, show, verify};
use crate::ir::builder::TileBuilder;
use crate::ir::dfg::{BlockCall, InstData};
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::function::TileFunction;
use crate::ir::ops::TileOp;
use crate::linear::shape::Shape;
use crate::text::parse::MAX_NESTING;

/// `kernel @k() { v0 = const 1; v1 = iadd v0, v0; return }`
fn sample() -> (TileFunction, [Value; 2]) {
    let mut b = TileBuilder::new("k", 4);
    let one = b.i32(1, Shape::SCALAR);
    let two = b.iadd(one, one);
    b.ret();
    (b.finish().expect("valid"), [one, two])
}

fn check(func: &TileFunction, expected: &[Rule]) -> VerifierErrors {
    let errors = verify(func).expect_err("a rule is broken");
    let rules: Vec<Rule> = errors.0.iter().map(|e| e.rule).collect();
    assert_eq!(rules, expected, "{errors}");
    // Whatever is broken, it can be shown.
    assert!(show(func, &errors).starts_with("kernel @k("));
    errors
}

#[test]
fn the_sample_is_valid() {
    let (func, _) = sample();
    assert_eq!(verify(&func), Ok(()));
}

#[test]
fn indices_must_exist() {
    let (mut func, [_, two]) = sample();
    let entry = func.entry;
    let inst = func.dfg.def_inst(two).expect("a result");
    func.dfg.insts[inst].args[0] = Value::from_u32(u32::MAX - 1);
    func.dfg.insts[inst]
        .attrs
        .push(crate::ir::attrs::Attr::Slot(Slot::from_u32(7)));
    func.dfg.insts[inst]
        .blocks
        .push(BlockCall::region(Block::from_u32(u32::MAX - 1)));
    func.order.append(entry, Inst::from_u32(99));
    let errors = check(&func, &[Rule::Index; 4]);
    assert!(show(&func, &errors).contains("; ^ error: V01: slot7 does not exist"));
}

#[test]
fn everything_stands_once() {
    let (mut func, [one, _]) = sample();
    let entry = func.entry;
    let inst = func.dfg.def_inst(one).expect("a result");
    func.order.append(entry, inst);
    check(&func, &[Rule::Place]);

    let (mut func, _) = sample();
    func.order.blocks.push(func.entry);
    check(&func, &[Rule::Place; 2]);

    let (mut func, [one, two]) = sample();
    let inst = func.dfg.def_inst(two).expect("a result");
    func.dfg.insts[inst].results[0] = one;
    check(&func, &[Rule::Place]);
}

#[test]
fn a_region_that_holds_itself_is_found() {
    let (mut func, [one, _]) = sample();
    let entry = func.entry;
    let mut data = InstData::new(TileOp::If, &[one]);
    data.blocks.push(BlockCall::region(entry));
    data.blocks.push(BlockCall::region(entry));
    let inst = func.dfg.make_inst(data, &[]);
    let rest = func.order.insts(entry).to_vec();
    func.order.replace(entry, [vec![inst], rest].concat());
    check(&func, &[Rule::Place; 2]);
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| {
        let (mut func, _) = sample();
        let mut block = func.entry;
        let last = func.order.last(block).expect("return");
        func.order.retain(block, |inst| inst != last);
        for _ in 0..depth {
            let region = func.dfg.make_block();
            let mut data = InstData::new(TileOp::While, &[]);
            data.blocks.push(BlockCall::region(region));
            let inst = func.dfg.make_inst(data, &[]);
            func.order.append(block, inst);
            block = region;
        }
        func
    };
    let errors = verify(&nested(MAX_NESTING + 1)).expect_err("too deep");
    assert!(errors.0.iter().any(|e| e.rule == Rule::Nesting), "{errors}");
    let errors = verify(&nested(MAX_NESTING)).expect_err("no terminators");
    assert!(errors.0.iter().all(|e| e.rule != Rule::Nesting), "{errors}");
    let deep = nested(100_000);
    let errors = verify(&deep).expect_err("far too deep");
    assert!(show(&deep, &errors).contains("V05"));
}

#[test]
fn a_value_that_stands_nowhere_is_not_defined() {
    let (mut func, [one, _]) = sample();
    let entry = func.entry;
    let def = func.dfg.def_inst(one);
    func.order.retain(entry, |inst| Some(inst) != def);
    // Used twice by one instruction, it is one mistake.
    check(&func, &[Rule::Dominance]);
}
