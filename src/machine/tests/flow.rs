//! Control flow: parameters of loops, swaps and cycles, ways that need moves.

use super::ops::{THREADS, from_bytes, load_pack, run, store_pack, to_bytes};
use super::*;
use crate::ir::attrs::IntPred;
use crate::ir::entities::Value;

const I32: ThreadType = ThreadType {
    elem: Elem::I32,
    count: 1,
};

/// A kernel of one warp from an i32 array to another, each thread with `count` elements.
fn kernel(
    name: &str,
    count: u16,
    build: impl FnOnce(&mut ThreadBuilder, Value) -> Value,
) -> ThreadFunction {
    let mut b = ThreadBuilder::new(name, 1);
    let ptr = ThreadType::scalar(Elem::global(Scalar::I32));
    let input = b.param_divisible("input", ptr, 16);
    let output = b.param_divisible("output", ptr, 16);
    let tid = b.special(SpecialReg::Tid);
    let per_thread = b.const_bits(u64::from(count), I32);
    let i = b.imul(tid, per_thread);
    let x = load_pack(&mut b, input, i, Scalar::I32, count);
    let y = build(&mut b, x);
    store_pack(&mut b, output, i, Scalar::I32, count, y);
    b.ret();
    b.finish().expect("the kernel is valid")
}

/// Assembles, runs and compares; gives the text for sm_80 with its numbers.
fn check(func: &ThreadFunction, input: &[u64], expected: &[u64]) -> (String, Stats) {
    for target in Target::ALL {
        let ptx = compile(func, target);
        let out = run(
            &ptx,
            &func.name,
            &[to_bytes(Scalar::I32, input)],
            4 * expected.len(),
        );
        assert_eq!(from_bytes(Scalar::I32, &out), expected, "{target}\n{ptx}");
    }
    let (ptx, _, stats) =
        compile_thread(func, Target::SM_80, &Options::DEFAULT).expect("compiled above");
    (ptx, stats)
}

fn constant(b: &mut ThreadBuilder, n: u64) -> Value {
    b.const_bits(n, I32)
}

/// `for _ in 0..n` around a body that maps the carried values.
fn repeat(
    b: &mut ThreadBuilder,
    n: u64,
    init: &[Value],
    body: impl FnOnce(&mut ThreadBuilder, &[Value]) -> Vec<Value>,
) -> Vec<Value> {
    let types: Vec<ThreadType> = [I32]
        .into_iter()
        .chain(init.iter().map(|&v| b.ty(v)))
        .collect();
    let (header, params) = b.new_block(&types);
    let (exit, results) = b.new_block(&types[1..]);
    let zero = constant(b, 0);
    let start: Vec<Value> = [zero].iter().chain(init).copied().collect();
    b.jump(header, &start);
    b.append_block(header);
    b.switch_to(header);
    let mut next = body(b, &params[1..]);
    let one = constant(b, 1);
    let counter = b.iadd(params[0], one);
    let limit = constant(b, n);
    let again = b.icmp(counter, limit, IntPred::Slt);
    let results_of = next.clone();
    next.insert(0, counter);
    b.brif(again, (header, &next), (exit, &results_of));
    b.append_block(exit);
    b.switch_to(exit);
    results.to_vec()
}

#[test]
fn a_loop_that_swaps() {
    let func = kernel("fibonacci", 1, |b, x| {
        let one = constant(b, 1);
        let out = repeat(b, 10, &[x, one], |b, v| vec![v[1], b.iadd(v[0], v[1])]);
        out[1]
    });
    let input: Vec<u64> = (0..THREADS as u64).collect();
    let expected: Vec<u64> = input
        .iter()
        .map(|&x| (0..10).fold((x, 1), |(a, b), _| (b, a + b)).1)
        .collect();
    check(&func, &input, &expected);
}

#[test]
fn packs_that_rotate_through_a_cycle() {
    let func = kernel("rotate", 4, |b, x| {
        let pack = b.ty(x);
        let (one, two) = (b.const_bits(1, pack), b.const_bits(2, pack));
        let (y, z) = (b.iadd(x, one), b.iadd(x, two));
        let out = repeat(b, 4, &[x, y, z], |_, v| vec![v[1], v[2], v[0]]);
        out[0]
    });
    let input: Vec<u64> = (0..4 * THREADS as u64).collect();
    // Four turns of a cycle of three are one turn.
    let expected: Vec<u64> = input.iter().map(|x| x + 1).collect();
    check(&func, &input, &expected);
}

#[test]
fn accumulators_stay_in_their_registers() {
    let func = kernel("accumulate", 4, |b, x| {
        let pack = b.ty(x);
        let zero = b.const_bits(0, pack);
        repeat(b, 5, &[zero], |b, v| vec![b.iadd(v[0], x)])[0]
    });
    let input: Vec<u64> = (0..4 * THREADS as u64).collect();
    let expected: Vec<u64> = input.iter().map(|x| 5 * x).collect();
    let (ptx, _) = check(&func, &input, &expected);
    let (_, tail) = ptx.split_once("$L1:\n").expect("there is a loop");
    let (body, _) = tail.split_once("bra $L1").expect("the loop goes back");
    assert!(!body.contains("mov."), "moves in the loop:\n{ptx}");
}

#[test]
fn ways_with_constants_and_without_moves() {
    // if x < 16 { if x < 8 { 7 } else { x } } else { x * 3 }
    let func = kernel("choose", 1, |b, x| {
        let (low, _) = b.new_block(&[]);
        let (high, _) = b.new_block(&[]);
        let (join, joined) = b.new_block(&[I32]);
        let sixteen = constant(b, 16);
        let is_low = b.icmp(x, sixteen, IntPred::Slt);
        b.brif(is_low, (low, &[]), (high, &[]));
        b.append_block(low);
        b.switch_to(low);
        let (eight, seven) = (constant(b, 8), constant(b, 7));
        let is_small = b.icmp(x, eight, IntPred::Slt);
        b.brif(is_small, (join, &[seven]), (join, &[x]));
        b.append_block(high);
        b.switch_to(high);
        let three = constant(b, 3);
        let product = b.imul(x, three);
        b.jump(join, &[product]);
        b.append_block(join);
        b.switch_to(join);
        joined[0]
    });
    let input: Vec<u64> = (0..THREADS as u64).collect();
    let expected: Vec<u64> = input
        .iter()
        .map(|&x| match x {
            0..8 => 7,
            8..16 => x,
            _ => 3 * x,
        })
        .collect();
    check(&func, &input, &expected);
}

#[test]
fn a_constant_condition_and_an_endless_loop_are_legal() {
    let mut b = ThreadBuilder::new("spin", 1);
    let (header, _) = b.new_block(&[]);
    let (exit, _) = b.new_block(&[]);
    let (never, _) = b.new_block(&[]);
    b.jump(header, &[]);
    for block in [header, exit, never] {
        b.append_block(block);
    }
    b.switch_to(header);
    let truth = b.const_bits(1, ThreadType::scalar(Elem::I1));
    b.brif(truth, (header, &[]), (exit, &[]));
    b.switch_to(exit);
    b.ret();
    b.switch_to(never);
    b.jump(never, &[]);
    let func = b.finish().expect("the kernel is valid");
    for target in Target::ALL {
        let ptx = compile(&func, target);
        assert!(
            !ptx.contains("$L3"),
            "a block that is never reached was written:\n{ptx}"
        );
    }
}

#[test]
fn parameters_of_every_type_and_directives() {
    let mut b = ThreadBuilder::new("a kernel", 2);
    let mut values = Vec::new();
    let out = b.param("out", ThreadType::scalar(Elem::global(Scalar::I64)));
    for s in [
        Scalar::I1,
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::I64,
        Scalar::F16,
        Scalar::Bf16,
        Scalar::F32,
        Scalar::F64,
    ] {
        values.push((s, b.param(s.name(), ThreadType::scalar(Elem::Num(s)))));
    }
    let i64s = ThreadType::scalar(Elem::I64);
    for (place, (s, value)) in (0..).zip(values) {
        let bits = match s {
            Scalar::F16 | Scalar::Bf16 => b.bitcast(value, ThreadType::scalar(Elem::I16)),
            Scalar::F32 => b.bitcast(value, I32),
            Scalar::F64 => b.bitcast(value, i64s),
            _ => value,
        };
        let wide = if s.bits() == 64 {
            bits
        } else {
            b.zext(bits, i64s)
        };
        let index = constant(&mut b, place);
        let p = b.addptr(out, index);
        b.st(p, wide, None);
    }
    b.set_loc(crate::ir::dfg::SourceLoc(
        Some(crate::ir::dfg::SourceLine(12, 0)).into(),
    ));
    b.ret();
    let func = b.finish().expect("the kernel is valid");
    let options = Options {
        line_info: true,
        max_registers: Some(40),
        ..Options::DEFAULT
    };
    for target in Target::ALL {
        let (ptx, _, _) = compile_thread(&func, target, &options).expect("the kernel compiles");
        ptxas::assemble(&ptx, &target.to_string());
        assert!(ptx.is_ascii());
        for text in [
            ".entry a_kernel(",
            ".maxnreg 40",
            ".reqntid 64, 1, 1",
            ".file 1 ",
            ".loc 1 12 1",
        ] {
            assert!(ptx.contains(text), "{text} is missing:\n{ptx}");
        }
        let module = crate::emu::Module::parse(&ptx).expect("the emulator reads it");
        let mut memory = crate::emu::Memory::new();
        let address = memory.alloc(9 * 8);
        let mut args = vec![crate::emu::Arg::pointer(address)];
        args.extend([
            crate::emu::Arg::from(1_u8),
            crate::emu::Arg::from(0xfe_u8),
            crate::emu::Arg::from(0xfffd_u16),
        ]);
        args.extend([crate::emu::Arg::from(-3_i32), crate::emu::Arg::from(-4_i64)]);
        args.extend([
            crate::emu::Arg::from(0x3c00_u16),
            crate::emu::Arg::from(0x3f80_u16),
        ]);
        args.extend([
            crate::emu::Arg::from(1.5_f32),
            crate::emu::Arg::from(2.5_f64),
        ]);
        let launch = crate::emu::Launch {
            grid: [1, 1, 1],
            block: [64, 1, 1],
            shared_bytes: 0,
            args: &args,
            options: crate::emu::Options::default(),
        };
        crate::emu::run(&module, "a_kernel", &launch, &mut memory).expect("the kernel runs");
        let found = from_bytes(
            Scalar::I64,
            &memory.read(address, 72).expect("every place was written"),
        );
        let expected = [
            1,
            0xfe,
            0xfffd,
            0xffff_fffd,
            -4_i64 as u64,
            0x3c00,
            0x3f80,
            u64::from(1.5_f32.to_bits()),
            2.5_f64.to_bits(),
        ];
        assert_eq!(found, expected);
    }
}

/// What takes tensor maps and does nothing.
fn with_maps(params: &str, maps: usize) -> crate::ir::function::ThreadFunction {
    let recipe = "{base=p0, offset=0, elem=f16, extents=[64], strides=[], box=[64], if=1}";
    let maps: String = (0..maps)
        .map(|i| format!("    map{i} = {recipe}\n"))
        .collect();
    let text = format!("thread @k({params}) warps(4) {{\n{maps}block0:\n    return\n}}\n");
    crate::text::parse::parse_thread(&text).expect("a function")
}

#[test]
fn tensor_maps_are_parameters_behind_the_others() {
    let func = with_maps("v0 \"x\": ptr<f16>, v1 \"n\": i16", 2);
    for target in Target::ALL {
        let (ptx, version, _) =
            compile_thread(&func, target, &Options::DEFAULT).expect("the kernel compiles");
        ptxas::assemble(&ptx, &target.to_string());
        assert!(
            version >= crate::settings::PtxVersion { major: 7, minor: 7 },
            "{version}"
        );
        let module = crate::emu::Module::parse(&ptx).expect("the emulator reads it");
        let params = &module.entry("k").expect("it is there").params;
        let sizes: Vec<(&str, u32)> = params.iter().map(|p| (&*p.name, p.size)).collect();
        let expected = [
            ("k_param_0", 8),
            ("k_param_1", 2),
            ("k_map_0", 128),
            ("k_map_1", 128),
        ];
        assert_eq!(sizes, expected);
        assert!(
            ptx.contains(".param .align 64 .b8 k_map_1[128]\n)"),
            "{ptx}"
        );
    }
}

#[test]
fn tensor_maps_count_as_room_for_parameters() {
    // A pointer and the maps behind the next multiple of 64.
    for (maps, version) in [(33, (8, 0)), (34, (8, 1)), (255, (8, 1))] {
        let func = with_maps("v0 \"x\": ptr<f16>", maps);
        crate::ptx::check_params(&func).expect("there is room");
        let (ptx, found, _) =
            compile_thread(&func, Target::SM_90A, &Options::DEFAULT).expect("the kernel compiles");
        ptxas::assemble(&ptx, "sm_90a");
        assert_eq!((found.major, found.minor), version, "{maps} maps");
    }
    let error = crate::ptx::check_params(&with_maps("v0 \"x\": ptr<f16>", 256));
    let error = error.expect_err("32,832 bytes").to_string();
    assert!(
        error.contains("32832") && error.contains("32764"),
        "{error}"
    );
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let func = vector_add();
    let first = compile(&func, Target::SM_90);
    assert_eq!(first, compile(&func, Target::SM_90));
}

#[test]
fn a_bound_on_registers_leaves_some_for_each_thread() {
    for (warps, bound) in [(1, 255), (8, 255), (16, 128), (24, 80), (32, 64)] {
        let mut b = ThreadBuilder::new("bounded", warps);
        b.ret();
        let func = b.finish().expect("the kernel is valid");
        let options = Options {
            max_registers: Some(255),
            ..Options::DEFAULT
        };
        let (ptx, _, _) =
            compile_thread(&func, Target::SM_80, &options).expect("the kernel compiles");
        assert!(
            ptx.contains(&format!(".maxnreg {bound}\n")),
            "{warps}: {ptx}"
        );
    }
}
