//! Round trips of every op of the table, of hand-written programs, and mistakes in texts.

use smallvec::SmallVec;

use super::parse::{
    AnyFunction, Checks, Code, MAX_NESTING, ParseError, parse_file, parse_file_with, parse_thread,
    parse_tile,
};
use super::print::{Notes, Numbering, print, print_with};
use crate::ir::attrs::{Attr, AttrKind, MmaUnit, RmwOp};
use crate::ir::builder::Builder;
use crate::ir::dfg::{BlockCall, InstData, SourceLine, SourceLoc};
use crate::ir::entities::{AnyEntity, Slot};
use crate::ir::function::{BufferData, Function, SlotData};
use crate::ir::level::{Level, Thread, Tile};
use crate::ir::literal::Literal;
use crate::ir::ops::{Opcode, rules};
use crate::ir::types::{AddressSpace, Elem, Place, Scalar, ThreadType, TileType};
use crate::linear_layout::layout::LinearLayout;
use crate::linear_layout::pool::LayoutId;
use crate::linear_layout::shape::Shape;

fn tile_types() -> Vec<TileType> {
    let shape = Shape::new(&[16]).expect("a power of two");
    let unit = Shape::new(&[1]).expect("a power of two");
    let elems = [
        Elem::I32,
        Elem::I1,
        Elem::F32,
        Elem::I64,
        Elem::F16,
        Elem::global(Scalar::F32),
    ];
    let scalars = elems.map(TileType::scalar);
    let blocks = elems.map(|e| TileType::block(e, shape));
    let laid_out = [0, 1].map(|id| blocks[0].with_layout(LayoutId::from_u32(id)));
    let two = Shape::new(&[2]).expect("a power of two");
    let unit = [unit, two].map(|shape| TileType::block(Elem::I32, shape));
    let square = Shape::new(&[4, 4]).expect("powers of two");
    let square = [
        TileType::block(Elem::F32, square),
        TileType::scalar(Elem::Token),
        TileType::scalar(Elem::Map(Scalar::F32)),
    ];
    let shared = [blocks[2], square[0]].map(|ty| ty.at(Place::Shared));
    [&blocks[..], &scalars, &unit, &laid_out, &square, &shared].concat()
}

fn thread_types() -> Vec<ThreadType> {
    let elems = [
        Elem::I32,
        Elem::I1,
        Elem::F32,
        Elem::I64,
        Elem::F16,
        Elem::global(Scalar::F32),
        Elem::Ptr(Scalar::F32, AddressSpace::Shared),
    ];
    let packs = elems.map(|e| ThreadType::pack(e, 4));
    let tile = [ThreadType::pack(Elem::F16, 8)];
    [&elems.map(ThreadType::scalar)[..], &packs, &tile].concat()
}

/// Some payload for each kind of attribute that the rules accept with the types above.
fn sample_attr(kind: AttrKind) -> Attr {
    let candidates = [
        Literal::Absent,
        Literal::Int(0),
        Literal::List(vec![1]),
        Literal::Name("slot0".into()),
        Literal::Name("eq".into()),
        Literal::Name("oeq".into()),
        Literal::Name("ignore".into()),
        Literal::Name("rn".into()),
        Literal::Name("cg".into()),
        Literal::Name("first".into()),
        Literal::Name("tid".into()),
        Literal::Name("ieee".into()),
        Literal::Name("add".into()),
        Literal::Name("acq_rel".into()),
        Literal::Name("gpu".into()),
        Literal::Name("hex".into()),
        Literal::Text("a \"b\"\n\u{e4}".into()),
    ];
    match kind {
        AttrKind::Unit => Attr::Unit(MmaUnit::F16),
        AttrKind::Bytes => Attr::Bytes(16),
        AttrKind::Columns => Attr::Columns(8),
        AttrKind::Mask => Attr::Mask(1),
        AttrKind::Rmw => Attr::Rmw(RmwOp::Fadd),
        AttrKind::Ptx => Attr::Ptx("mov.b32 $0,\t$1;\n".into()),
        AttrKind::Constraints => Attr::Constraints("=r,r".into()),
        AttrKind::Pack => Attr::Pack(1),
        AttrKind::Delta => Attr::Delta(1),
        AttrKind::Order => Attr::Order(SmallVec::from_slice(&[3, 1, 0, 2])),
        AttrKind::Dims => Attr::Dims(SmallVec::from_slice(&[0])),
        AttrKind::Tree => Attr::Tree(SmallVec::from_slice(&[1, 35])),
        AttrKind::Map => Attr::Map(SmallVec::from_slice(&[0])),
        AttrKind::Value => Attr::Value(0x4049_0fdb),
        _ => candidates
            .iter()
            .find_map(|literal| kind.attr(literal).ok())
            .expect("one candidate fits each kind"),
    }
}

/// Operand types and result types that the op accepts.
fn fitting_types<L: Level>(
    op: L::Op,
    count: usize,
    attrs: &[Attr],
    types: &[L::Type],
) -> Option<(Vec<L::Type>, rules::Types<L>)> {
    // Of many operands each is chosen when the rule names it.
    if count > 4 {
        let mut args = vec![0; count];
        loop {
            let chosen: Vec<L::Type> = args.iter().map(|&i: &usize| types[i]).collect();
            let operands = rules::Operands {
                args: &chosen,
                attrs,
                given: &[],
            };
            match L::result_types(op, &operands) {
                Ok(results) => return Some((chosen, results)),
                Err(rules::TypeError::Operand { index, .. })
                    if args[index - 1] + 1 < types.len() =>
                {
                    args[index - 1] += 1;
                }
                Err(_) => return None,
            }
        }
    }
    let total = types.len().pow(count as u32);
    let given = std::iter::once(&types[..0]).chain(types.chunks(1));
    for given in given {
        for number in 0..total {
            let mut rest = number;
            let mut args = Vec::new();
            for _ in 0..count {
                args.push(types[rest % types.len()]);
                rest /= types.len();
            }
            let operands = rules::Operands {
                args: &args,
                attrs,
                given,
            };
            if let Ok(results) = L::result_types(op, &operands) {
                return Some((args, results));
            }
        }
    }
    None
}

/// A function that holds the op with these attributes.
fn function_with<L: Level>(op: L::Op, attrs: &[Attr], types: &[L::Type]) -> Function<L> {
    let info = op.info();
    // Of any number one more than needed, or two where they come in pairs.
    let least = info.min_operands();
    let counts = match info.max_operands() {
        Some(most) => most..=most,
        None => least + 1..=least + 2,
    };
    let (args, results) = counts
        .into_iter()
        .find_map(|count| fitting_types::<L>(op, count, attrs, types))
        .unwrap_or_else(|| panic!("no operands fit {op}"));
    let mut builder = Builder::<L>::new("k", 4);
    let values: Vec<_> = args.iter().map(|&ty| builder.param("p", ty)).collect();
    let func = builder.func_mut();
    let shape = Shape::new(&[16]).expect("a power of two");
    for text in ["{reg=[1,2,4,8]}", "{reg=[8,4,2,1]}"] {
        func.layouts
            .intern(LinearLayout::parse(text, shape).expect("a layout"));
    }
    func.slots.push(SlotData {
        bytes: 128,
        align: 16,
        offset: Some(256),
        by_group: false,
    });
    func.buffers[Slot::from_u32(0)] = Some(BufferData {
        elem: Scalar::F32,
        shape,
        stages: 2,
    });
    let mut data = InstData::new(op, &values);
    data.attrs.extend(attrs.iter().cloned());
    data.loc = SourceLoc(Some(SourceLine(7, 0)).into());
    if info.owns_regions() {
        for _ in 0..2 {
            let region = func.dfg.make_block();
            func.dfg.append_param(region, types[0]);
            data.blocks.push(BlockCall::region(region));
        }
    } else if info.ends_block() {
        let target = func.dfg.make_block();
        let param = func.dfg.append_param(target, types[0]);
        func.order.blocks.push(target);
        data.blocks.push(BlockCall {
            block: target,
            args: SmallVec::from_slice(&[param]),
        });
    }
    let inst = func.dfg.make_inst(data, &results);
    func.order.append(func.entry, inst);
    builder.finish().expect("nothing was checked")
}

fn check_round_trip(text: &str) {
    let file = parse_file(text).unwrap_or_else(|e| panic!("{}\n{text}", show(&e)));
    let printed: String = file.functions.iter().map(|f| f.func.to_string()).collect();
    pretty_assertions::assert_eq!(printed, text);
}

fn show(errors: &[ParseError]) -> String {
    errors.iter().map(|e| format!("{e}\n")).collect()
}

fn check_level<L: Level>(types: &[L::Type]) {
    for &op in L::Op::ALL {
        let info = op.info();
        let kind = |key: &&str| AttrKind::from_key(key).expect("the table's keys exist");
        let required: Vec<Attr> = info.required.iter().map(kind).map(sample_attr).collect();
        let optional: Vec<Attr> = info.optional.iter().map(kind).map(sample_attr).collect();
        let both = [&required[..], &optional].concat();
        // Units of one warp and of four have instructions of their own.
        let fits = |attr: Attr| match attr {
            Attr::Unit(_) if info.name == "wgmma" => Attr::Unit(MmaUnit::WarpgroupF16),
            attr => attr,
        };
        for attrs in [required, both] {
            let attrs: Vec<Attr> = attrs.into_iter().map(fits).collect();
            let func = function_with::<L>(op, &attrs, types);
            let text = print(&func);
            assert!(text.contains(&format!(" {}", info.name)), "{text}");
            check_round_trip(&text);
        }
    }
}

#[test]
fn every_tile_op_round_trips() {
    check_level::<Tile>(&tile_types());
}

#[test]
fn every_thread_op_round_trips() {
    check_level::<Thread>(&thread_types());
}

#[test]
fn a_program_with_regions_and_layouts_round_trips() {
    check_round_trip(
        r#"kernel @"odd name"(v0 "x\"": ptr<f32> {divisible = 16}, v1 "n": i32) warps(8) registers(128) {
    layout #0 = {reg=[1,2], lane=[4,8,16,32,64], warp=[128,256,0]} : [512]
    slot0 = 128 bytes align 16
    part1 = 4 warps from 8 registers 40
block0:
    v2 = const {value = -1} : i32
    v3 = arange {start = 0} : i32[512; #0] @12
    v4, v5 = for v1, v1, v2, v2, v3 : i32, i32[512; #0] @13 {
    block1(v6: i32, v7: i32, v8: i32[512; #0]):
        v9 = const {value = true} : i1
        v10 = if v9 : i32 {
        block2:
            yield v7
        } {
        block3:
            yield v6
        }
        yield v10, v8
    }
    v11 = while v4 : i32 {
    block4(v12: i32):
        v13 = icmp v12, v2 {ipred = slt} : i1
        condition v13, v12
    } {
    block5(v14: i32):
        yield v14
    }
    return
}
"#,
    );
}

#[test]
fn a_graph_of_blocks_round_trips() {
    check_round_trip(
        r#"thread @k(v0 "n": i32) warps(1) {
block0:
    jump block2(v0)
block1(v1: i32, v2: f32 x 4):
    return
block2(v3: i32):
    v4 = const {value = 1.5} : f32 x 4
    v5 = icmp v3, v0 {ipred = eq} : i1
    brif v5, block1(v3, v4), block3
block3:
    return
}
"#,
    );
}

#[test]
fn numbers_of_the_text_are_only_names() {
    let text = r#"
; before
kernel @k(v7: i32) warps(4) { ; beside
block9:
    v3 = iadd v7, v7 : i32
    return
}
; after"#;
    let file = parse_file(text).expect("valid");
    let [parsed] = &file.functions[..] else {
        panic!("one function");
    };
    let AnyFunction::Tile(func) = &parsed.func else {
        panic!("a kernel");
    };
    let expected = r#"kernel @k(v0 "v7": i32) warps(4) {
block0:
    v1 = iadd v0, v0 : i32
    return
}
"#;
    assert_eq!(print(func), expected);
    let inst = func.order.insts(func.entry)[0];
    assert_eq!(parsed.lines.of(inst.into()), 5);
    assert_eq!(parsed.lines.of(func.entry.into()), 4);
    assert_eq!((parsed.lines.first, parsed.lines.last), (3, 7));
    let lines: Vec<u32> = file.comments.iter().map(|c| c.pos.line).collect();
    assert_eq!(lines, [2, 3, 8]);
}

#[test]
fn holes_in_the_tables_do_not_show() {
    let mut builder = Builder::<Tile>::new("k", 4);
    let a = builder.i32(1, Shape::SCALAR);
    let b = builder.i32(2, Shape::SCALAR);
    builder.iadd(b, b);
    builder.ret();
    let mut func = builder.finish().expect("valid");
    let entry = func.entry;
    let dead = func.dfg.def_inst(a);
    func.order.retain(entry, |inst| Some(inst) != dead);
    let dense = print(&func);
    assert!(dense.contains("v1 = iadd v0, v0"), "{dense}");
    check_round_trip(&dense);
    struct Here(AnyEntity);
    impl Notes for Here {
        fn notes(&self, at: AnyEntity) -> Vec<String> {
            (at == self.0)
                .then(|| "error: here".into())
                .into_iter()
                .collect()
        }
    }
    let own = print_with(&func, Numbering::Own, &Here(b.into()));
    assert!(
        own.contains("    v1 = const {value = 2} : i32\n    ; ^ error: here\n"),
        "{own}"
    );
}

#[test]
fn broken_functions_are_printed_too() {
    let mut builder = Builder::<Tile>::new("k", 4);
    let cond = builder.i32(1, Shape::SCALAR);
    let mut func = builder.finish().expect("nothing to be wrong");
    let entry = func.entry;
    // A region that is the block the instruction stands in, operands and results from nowhere.
    let mut data = InstData::<Tile>::new(crate::ir::ops::TileOp::If, &[cond]);
    data.args.push(crate::ir::entities::Value::from_u32(99));
    data.blocks.push(BlockCall::region(entry));
    let inst = func.dfg.make_inst(data, &[]);
    func.order.append(entry, inst);
    func.order
        .append(entry, crate::ir::entities::Inst::from_u32(77));
    func.order
        .blocks
        .push(crate::ir::entities::Block::from_u32(55));
    let text = print(&func);
    assert!(
        text.contains("if v0, ?v99 {\n    ; block0 is not here\n    }\n"),
        "{text}"
    );
}

/// The codes and places of the mistakes in a text.
fn mistakes(text: &str) -> Vec<(Code, u32)> {
    let errors = parse_file(text).expect_err(text);
    for error in &errors {
        assert!(!error.message.is_empty() && error.pos.column > 0);
    }
    errors.iter().map(|e| (e.code, e.pos.line)).collect()
}

#[test]
fn independent_mistakes_are_all_found() {
    let text = r#"kernel @k(v0 "x": i32) warps(4) {
block0:
    v1 = iadd v0 v0 : i32
    v2 = for v0, v0, v0, v1 : {
    block1(v3: i32, v4: i32):
        oops
    }
    return
}
kernel @l() warps(4) {
block0:
    v0 = frob : i32
    v1 = iadd v0, v7 : i32
    return
}"#;
    assert_eq!(
        mistakes(text),
        [
            (Code::Syntax, 3),
            (Code::Syntax, 4),
            (Code::UnknownOp, 12),
            (Code::Undefined, 13)
        ]
    );
}

#[test]
fn a_string_ends_on_its_line() {
    let text = "kernel @k(v0 \"n: i32) warps(4) { ; \nblock0:\n    return\n}\n";
    assert_eq!(mistakes(text), [(Code::Token, 1), (Code::Syntax, 2)]);
}

#[test]
fn what_mistakes_quote_is_bounded() {
    let (digits, letters) = ("9".repeat(100_000), "x".repeat(100_000));
    let kernel =
        |line: &str| format!("kernel @k() warps(1) {{\nblock0:\n    {line}\n    return\n}}\n");
    let named = |name: &str| kernel("return").replace("@k", name);
    let texts = [
        kernel(&format!("v0 = const {{value = {digits}}} : i32")),
        kernel(&format!("v0 = const {{value = 1.{digits}}} : i32")),
        kernel(&format!("v0 = const {{value = 0x{digits}}} : i64")),
        kernel(&format!("v0 = arange {{start = {digits}}} : i32[4]")),
        kernel(&format!("{letters} v0")),
        kernel(&format!("v0 = const {{{letters} = 1}} : i32")),
        kernel(&format!("v0 = const {{value = 1}} : {letters}")),
        kernel(&format!("v0 = const {{value = 1}} : i32[{digits}]")),
        kernel(&format!("v{digits} = const {{value = 1}} : i32")),
        named(&format!("@{letters}")) + &named(&format!("@{letters}")),
    ];
    for text in texts {
        let errors = parse_file(&text).expect_err("there is a mistake");
        for error in errors {
            assert!(error.message.len() < 400, "{:.500}", error.message);
        }
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| {
        let mut text = String::from("kernel @k(v0: i1) warps(4) {\nblock0:\n");
        for i in 0..depth {
            text += &format!("if v0 {{\nblock{}:\n", i + 1);
        }
        text += &"yield\n}\n".repeat(depth);
        text + "return\n}\n"
    };
    assert!(parse_tile(&nested(MAX_NESTING)).is_ok());
    let codes: Vec<Code> = mistakes(&nested(100_000)).iter().map(|m| m.0).collect();
    assert_eq!(codes, [Code::Limit]);
}

#[test]
fn unchecked_reading_leaves_types_to_the_verifier() {
    let text =
        "kernel @k(v0: i32) warps(4) {\nblock0:\n    v1 = fadd v0, v0 : i64\n    return\n}\n";
    assert_eq!(mistakes(text), [(Code::Operands, 3)]);
    assert!(parse_file_with(text, Checks::None).is_ok());
}

#[test]
fn one_function_of_a_level_is_asked_for() {
    let text = "thread @k() warps(1) {\nblock0:\n    return\n}\n";
    assert!(parse_thread(text).is_ok());
    assert!(parse_tile(text).is_err());
    assert!(parse_thread(&text.repeat(2)).is_err());
    assert!(parse_thread("").is_err());
}

#[test]
fn mutated_texts_never_panic() {
    let text = r#"kernel @k(v0 "x": ptr<f32> {divisible = 16}) warps(4) {
    layout #0 = {reg=[1], lane=[2]} : [16]
    slot0 = 8 bytes align 4 at 0
block0:
    v1 = const {value = nan:0x7fc00001} : f32[16; #0]
    v2 = reduce v1 {axis = 0, order = [0, 1, 2, 3]} : f32 @1 {
    block1(v3: f32, v4: f32):
        yield v3
    }
    return
}
"#;
    // Every token removed, doubled, or replaced by each of a few others.
    let cuts: Vec<usize> = (0..=text.len())
        .filter(|&i| text.is_char_boundary(i))
        .collect();
    for window in cuts.windows(2) {
        let (before, after) = (&text[..window[0]], &text[window[1]..]);
        for middle in ["", "{", "}", "v", "0", ";", "\"", "é", "99999999999", "\n"] {
            let mutated = format!("{before}{middle}{after}");
            if let Ok(file) = parse_file(&mutated) {
                let printed = file.functions.iter().map(|f| f.func.to_string());
                check_round_trip(&printed.collect::<String>());
            }
        }
    }
}
