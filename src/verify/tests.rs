//! Violations that no text can express; the others stand in `tests/filetests/verify`.

use super::{Rule, VerifierErrors, show, verify};
use crate::ir::builder::TileBuilder;
use crate::ir::dfg::{BlockCall, InstData, ValueList};
use crate::ir::entities::{Block, Inst, Slot, Value};
use crate::ir::function::{PartitionData, TileFunction};
use crate::ir::ops::TileOp;
use crate::ir::types::{Elem, TileType};
use crate::linear_layout::pool::LayoutId;
use crate::linear_layout::shape::Shape;
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

    let (mut func, [one, _]) = sample();
    func.order.blocks.push(Block::from_u32(9));
    let ty = func.dfg.ty(one);
    func.dfg.values[one].ty = ty.with_layout(LayoutId::from_u32(3));
    let errors = check(&func, &[Rule::Index; 4]);
    let lines = [
        "V01: function: block9 does not exist",
        "V01: inst0: layout #3 of v0 does not exist",
        "V01: inst1: layout #3 of v0 does not exist",
        "V01: inst1: layout #3 of v0 does not exist",
    ];
    assert_eq!(errors.to_string(), lines.join("\n"));
}

#[test]
fn what_belongs_to_the_whole_function_fits_it() {
    let (mut func, _) = sample();
    func.param_names.push("x".to_owned());
    let errors = check(&func, &[Rule::Params]);
    let line = "V13: function: 0 parameters have 1 names and 0 sets of hints";
    assert_eq!(errors.to_string(), line);

    let (mut func, _) = sample();
    let part = func.partitions.keys().next().expect("all warps");
    func.partitions[part].first_warp = 1;
    check(&func, &[Rule::Warps]);
    func.partitions[part].first_warp = 0;
    let second = |first_warp, num_warps| PartitionData {
        first_warp,
        num_warps,
        groups: 1,
        max_registers: None,
    };
    // Right behind the four warps of the program stand a power of two, which are no more than 32 with these.
    for num_warps in [1, 2, 4, 16] {
        let mut func = func.clone();
        func.partitions.push(second(4, num_warps));
        assert_eq!(verify(&func), Ok(()), "{num_warps}");
    }
    let message = "there are a power of two of warps behind the program's, and 32 at most";
    for (first_warp, num_warps) in [
        (3, 1),
        (5, 1),
        (0, 4),
        (4, 0),
        (4, 3),
        (4, 32),
        (4, u32::MAX),
        (u32::MAX, 1),
    ] {
        let mut func = func.clone();
        func.partitions.push(second(first_warp, num_warps));
        let errors = check(&func, &[Rule::Warps]);
        assert_eq!(errors.to_string(), format!("V14: part1: {message}"));
    }
    // 12 warps begin with 168 registers a thread; what the program takes the producer must have left.
    for (registers, fits) in [(24, true), (32, false)] {
        let mut func = func.clone();
        let whole = func.partitions.keys().next().expect("all warps");
        func.partitions[whole].num_warps = 8;
        func.partitions[whole].max_registers = Some(240);
        func.partitions.push(PartitionData {
            max_registers: Some(registers),
            ..second(8, 4)
        });
        match fits {
            true => assert_eq!(verify(&func), Ok(())),
            false => {
                let message = "the warps begin with 168 registers a thread, and take more in all";
                let errors = check(&func, &[Rule::Warps]);
                assert_eq!(errors.to_string(), format!("V14: function: {message}"));
            }
        }
    }
    // Groups that take turns stand one behind the other, and find their programs themselves.
    for (groups, persistent, first_warp, rule) in [
        (2, true, 8, None),
        (2, true, 4, Some("V14: part1: ")),
        (2, false, 8, Some("V14: function: ")),
        (3, true, 12, Some("V14: function: ")),
        (0, true, 4, Some("V14: function: ")),
    ] {
        let mut func = func.clone();
        let whole = func.partitions.keys().next().expect("all warps");
        func.partitions[whole].groups = groups;
        func.persistent = persistent;
        func.partitions.push(second(first_warp, 1));
        let errors = verify(&func).map_err(|errors| errors.to_string());
        match rule {
            None => assert_eq!(errors, Ok(())),
            Some(rule) => assert!(errors.is_err_and(|text| text.starts_with(rule)), "{groups}"),
        }
    }
    // And there is no third kind.
    func.partitions.push(second(4, 1));
    func.partitions.push(second(5, 1));
    let errors = check(&func, &[Rule::Warps]);
    assert_eq!(errors.to_string(), format!("V14: part2: {message}"));
    func.partitions.clear();
    check(&func, &[Rule::Warps]);
}

#[test]
fn the_entry_comes_first_and_regions_get_no_arguments() {
    let (mut func, _) = sample();
    let other = func.dfg.make_block();
    func.order.blocks.insert(0, other);
    let errors = verify(&func).expect_err("the entry is the second block");
    let line = format!(
        "V02: function: the entry, {}, is not the first block of the body",
        func.entry
    );
    assert!(errors.to_string().contains(&line), "{errors}");

    let mut b = TileBuilder::new("k", 4);
    let holds = b.const_bits(1, TileType::scalar(Elem::I1));
    b.if_else(holds, |_| ValueList::new(), |_| ValueList::new());
    b.ret();
    let mut func = b.finish().expect("valid");
    let block = func.entry;
    let inst = func.order.insts(block)[1];
    func.dfg.insts[inst].blocks[0].args.push(holds);
    let errors = check(&func, &[Rule::Blocks]);
    assert!(
        errors.to_string().contains("regions get no arguments"),
        "{errors}"
    );
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
