//! The text form of the IR, `.tir`: what tests, dumps, fuzz artefacts and bug reports are made of.
//!
//! [`mod@print`] writes a function, [`parse`] reads a file of functions. Both levels share one syntax, and
//! printing is canonical: `print(parse(print(f))) == print(f)`.
//!
//! ```text
//! ; a comment reaches to the end of the line
//! kernel @add(v0 "x": ptr<f32> {divisible = 16}, v1 "n": i32) warps(4) {
//!     layout #0 = {reg=[1,2], lane=[4,8,16,32,64], warp=[128,256]} : [512]
//!     slot0 = 128 bytes align 16
//! block0:
//!     v2 = const {value = 512} : i32
//!     v3 = arange {start = 0} : i32[512; #0]
//!     v4 = for v2, v1, v2, v2 : i32 @12 {
//!     block1(v5: i32, v6: i32):
//!         v7 = iadd v5, v6 : i32
//!         yield v7
//!     }
//!     return
//! }
//! ```
//!
//! # Grammar
//! ```text
//! file      = function*
//! function  = ("kernel" | "thread") name "(" param,* ")" "warps" "(" n ")" ["registers" "(" n ")"] "{" item* block+ "}"
//! name      = "@" (word | string)
//! param     = value [string] ":" type ["{" "divisible" "=" n "}"]
//! item      = "layout" "#"n "=" "{" columns "}" ":" "[" extents "]"
//!           | slotN "=" n "bytes" "align" n ["at" n] ["holds" n "of" type]
//!           | partN "=" n "warps" "from" n ["registers" n]
//!           | mapN "=" recipe
//! recipe    = "{" "base=p"n "," "offset=" number "," "elem=" number format "," "extents=" "[" number,* "]" ","
//!             "strides=" "[" number,* "]" "," "box=" "[" n,* "]" ["," "swizzle=" n] ["," "nan"] "," "if=" number "}"
//! number    = n | "p"n | "gridx" | "gridy" | "gridz" | word "(" number "," number ")"
//! block     = blockN ["(" (value ":" type),* ")"] ":" inst*
//! inst      = [value,+ "="] op operand,* ["{" attr,* "}"] [":" type,+] ["@" n] [("{" block "}")+]
//! operand   = value | blockN ["(" value,* ")"]
//! attr      = key ["=" (word | number | "[" number,* "]")]
//! type      = elem ["[" extents ["; #"n] "]" | "x" n]
//! elem      = number format | "ptr" "<" number format ["," "shared"] ">" | "token"
//! ```
//! The ops, their operands and attributes are those of the table in [`crate::ir::ops`]; `tests/filetests/OPS.md` lists the
//! types that each is tested with, and the words of numbers those of [`crate::ir::map_recipe::NumberOp`].
//!
//! An instruction stands on one line, up to the `{` of its regions; elsewhere lines do not matter. `@12` is
//! the line of the source it comes from. The entry block states no parameters: they are the function's.
//!
//! # Numbers
//! Entities have any numbers in the input; the reader numbers them anew in order of the text, and the
//! printer does so too. The `value` of a constant is written for its type: integers in signed decimal, truth
//! values as `true` and `false`, floats as the shortest decimal that rounds to them, `inf`, `-inf`, `nan` for
//! the canonical NaN and `nan:0x7fc00001` for any other, pointers in hexadecimal. In the input `0x..` gives the
//! bits for any type.

mod ast;
pub(crate) mod closest;
mod grammar;
pub(crate) mod lexer;
#[cfg(feature = "tool")]
pub(crate) mod located;
pub(crate) mod number;
pub mod parse;
pub mod print;
pub(crate) mod quote;
mod resolve;

#[cfg(test)]
mod tests;
