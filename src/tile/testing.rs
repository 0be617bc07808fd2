//! What tests of passes share: texts before and after, and equal results on the interpreter.

use crate::interp::{self, Arg, Launch, Memory, Options};
use crate::ir::function::TileFunction;
use crate::text::parse::parse_tile;
use crate::text::print::print;
use crate::verify;

/// The function of a text.
pub(crate) fn parse(text: &str) -> TileFunction {
    parse_tile(text).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

/// Checks the rules of the IR.
pub(crate) fn verified(func: &TileFunction) {
    if let Err(errors) = verify::verify(func) {
        panic!("{}", verify::show(func, &errors));
    }
}

/// Runs the pass on `before` and compares with `after`; the pass must say that it changed something.
pub(crate) fn check_pass(pass: impl Fn(&mut TileFunction) -> usize, before: &str, after: &str) {
    let mut func = parse(before);
    let changes = pass(&mut func);
    verified(&func);
    pretty_assertions::assert_eq!(print(&func), print(&parse(after)));
    assert!(changes > 0, "the pass says that nothing changed");
}

/// Runs the pass on a text that it must leave alone.
pub(crate) fn fixed_point(pass: impl Fn(&mut TileFunction) -> usize, text: &str) {
    let mut func = parse(text);
    let changes = pass(&mut func);
    pretty_assertions::assert_eq!(print(&func), print(&parse(text)));
    assert_eq!(changes, 0, "the pass says that something changed");
}

/// Runs one program of a kernel whose parameters are pointers into one buffer each; gives the buffers afterwards.
pub(crate) fn run(func: &TileFunction, buffers: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut memory = Memory::new();
    let addresses: Vec<u64> = buffers.iter().map(|b| memory.alloc_bytes(b)).collect();
    let args: Vec<Arg> = addresses.iter().map(|&a| Arg::Ptr(a)).collect();
    let launch = Launch {
        grid: [1, 1, 1],
        args: &args,
    };
    let options = Options {
        check_races: false,
        ..Options::default()
    };
    if let Err(error) = interp::run(func, &launch, &mut memory, &options) {
        panic!("{error}\n{}", print(func));
    }
    let read = |(&address, buffer): (&u64, &Vec<u8>)| {
        let bytes = memory.read(address, buffer.len());
        bytes.expect("every byte was written").to_vec()
    };
    addresses.iter().zip(buffers).map(read).collect()
}
