//! The table of operations: each op once, with operands, attributes, type rule, effects and meaning.
//!
//! The doc comment of a row is its semantics, read together with the general rules in [`crate::ir`].
//! From the table come the two op enums, their text names, the builder's methods, the checks of the
//! verifier, the round-trip tests, and the declarations of the selection rules. The file uses no other
//! module, so that the build script can include it.
//!
//! A row reads
//!
//! ```text
//! /// meaning
//! Variant "name" builder_method(operands) {required attributes} {optional attributes} [ty?] TypeRule, Class {effects};
//! ```
//!
//! where an operand is `x: Value`, `x: Option<Value>` (may be missing at the end of the list) or
//! `xs: &[Value]` (any number), and `[ty]` says that the result type is given and not derived. What stands behind the class
//! are methods of [`Effects`](crate::ir::effects::Effects), from which all passes know what the op does to memory, whether its
//! operands commute (`commutes()`), whether the result has the elements of the operand and no others (`keeps()`), whether the unit
//! of special functions computes it (`special()`), and what it costs: `cost` instructions of one cycle for an element (1 if not
//! said), and `again` where it may be cheaper to compute a block again for each user than to convert its layout.
//!
//! | access | meaning |
//! |---|---|
//! | `reads("x")`, `writes("x")`, `atomic("x")` | of what operand `x` points to, of the `slot`, or of the `log` of the module |
//! | `reads_until_wait("x")`, `writes_until_wait("x")` | begun here, over when somebody has waited for it |
//! | `engine()` | of these, that an engine does them and not the threads |

/// Calls `$mac!` with the rows of the table in four groups: ops of `both` levels, `functions` of the tile level that
/// `lower_math` expands, other ops of the `tile` level, and ops of the `thread` level.
///
/// Where a function names two bounds in ulp, the first is for f32 and the second for f64; subnormal numbers count in full
/// unless the row says otherwise.
macro_rules! for_each_op {
    ($mac:ident) => {
        $mac! {
            both {
                /// The number whose bits are `value`, in every element. A wider `value` is truncated.
                Const "const" const_bits() {value: u64} {} [ty] Const, Constant {again(1)};
                /// Every element is `x`.
                Splat "splat" splat(x: Value) {} {} [ty] Splat, Shape {keeps(), again(1)};

                /// Sum, modulo 2^bits.
                Iadd "iadd" iadd(a: Value, b: Value) {} {} [] SameInt, Elementwise {commutes(), again(1)};
                /// Difference, modulo 2^bits.
                Isub "isub" isub(a: Value, b: Value) {} {} [] SameInt, Elementwise {again(1)};
                /// Product, modulo 2^bits.
                Imul "imul" imul(a: Value, b: Value) {} {} [] SameInt, Elementwise {commutes(), again(1)};
                /// Signed quotient, rounded to zero. Division by zero and minimum / -1 give an unspecified number.
                /// `natural` says that `a` is not negative: where it is, what all divisions with this flag by the same number give is unspecified.
                Sdiv "sdiv" sdiv(a: Value, b: Value) {} {natural: Flag} [] SameInt, Elementwise {cost(32), again(8)};
                /// Unsigned quotient. Division by zero gives an unspecified number. `natural` says that neither `a` nor `b` would be
                /// negative with a sign, and where one is the same is unspecified.
                Udiv "udiv" udiv(a: Value, b: Value) {} {natural: Flag} [] SameInt, Elementwise {cost(32), again(8)};
                /// Signed remainder with the sign of `a`. By zero, and minimum by -1: unspecified. So are quotient and remainder of a
                /// sum, difference or product of non-negative numbers (indices of programs, ranges) that overflowed, and of what was
                /// made of an index of a program by dividing it by a negative number. `natural` as for `sdiv`.
                Srem "srem" srem(a: Value, b: Value) {} {natural: Flag} [] SameInt, Elementwise {cost(32), again(8)};
                /// Unsigned remainder. By zero: unspecified. `natural` as for `udiv`.
                Urem "urem" urem(a: Value, b: Value) {} {natural: Flag} [] SameInt, Elementwise {cost(32), again(8)};
                /// Smaller of two signed numbers.
                Smin "smin" smin(a: Value, b: Value) {} {} [] SameInt, Elementwise {commutes(), again(1)};
                /// Larger of two signed numbers.
                Smax "smax" smax(a: Value, b: Value) {} {} [] SameInt, Elementwise {commutes(), again(1)};
                /// Smaller of two unsigned numbers.
                Umin "umin" umin(a: Value, b: Value) {} {} [] SameInt, Elementwise {commutes(), again(1)};
                /// Larger of two unsigned numbers.
                Umax "umax" umax(a: Value, b: Value) {} {} [] SameInt, Elementwise {commutes(), again(1)};
                /// Bitwise and.
                And "and" and(a: Value, b: Value) {} {} [] SameBits, Elementwise {commutes(), again(1)};
                /// Bitwise or.
                Or "or" or(a: Value, b: Value) {} {} [] SameBits, Elementwise {commutes(), again(1)};
                /// Bitwise exclusive or.
                Xor "xor" xor(a: Value, b: Value) {} {} [] SameBits, Elementwise {commutes(), again(1)};
                /// Shift left; the amount is unsigned, and 0 results when it reaches the width.
                Shl "shl" shl(a: Value, b: Value) {} {} [] SameInt, Elementwise {again(1)};
                /// Shift right with sign; an amount that reaches the width leaves the sign everywhere.
                Sshr "sshr" sshr(a: Value, b: Value) {} {} [] SameInt, Elementwise {again(1)};
                /// Shift right with zeros; 0 results when the amount reaches the width.
                Ushr "ushr" ushr(a: Value, b: Value) {} {} [] SameInt, Elementwise {again(1)};
                /// Upper half of the product of signed numbers of twice the width.
                Smulhi "smulhi" smulhi(a: Value, b: Value) {} {} [] SameInt, Elementwise {again(2)};
                /// Upper half of the product of unsigned numbers of twice the width.
                Umulhi "umulhi" umulhi(a: Value, b: Value) {} {} [] SameInt, Elementwise {again(2)};
                /// Absolute value of a signed number; that of the minimum is the minimum.
                Iabs "iabs" iabs(x: Value) {} {} [] SameInt, Elementwise {again(1)};
                /// Number of set bits.
                Popc "popc" popc(x: Value) {} {} [] SameInt, Elementwise {again(2)};
                /// Number of zeros above the highest set bit; the width for 0.
                Clz "clz" clz(x: Value) {} {} [] SameInt, Elementwise {again(2)};
                /// The bits in reverse order.
                Brev "brev" brev(x: Value) {} {} [] SameInt, Elementwise {again(2)};
                /// Byte `i` of the result is byte `n & 7` of `a` (0 to 3) and `b` (4 to 7), where n is digit `i` of `selector` in base 16;
                /// where `n & 8` is set, the sign of that byte in all its bits.
                BytePerm "byte_perm" byte_perm(a: Value, b: Value, selector: Value) {} {} [] SameI32, Elementwise {again(1)};
                /// Comparison of integers or pointers (pointers as unsigned numbers).
                Icmp "icmp" icmp(a: Value, b: Value) {ipred: IntPred} {} [] IntCompare, Elementwise {again(1)};

                /// Sum, rounded to nearest even.
                Fadd "fadd" fadd(a: Value, b: Value) {} {} [] SameFloat, Elementwise {commutes(), again(1)};
                /// Difference, rounded to nearest even.
                Fsub "fsub" fsub(a: Value, b: Value) {} {} [] SameFloat, Elementwise {again(1)};
                /// Product, rounded to nearest even.
                Fmul "fmul" fmul(a: Value, b: Value) {} {} [] SameFloat, Elementwise {commutes(), again(1)};
                /// `a * b + c` rounded once, to nearest even.
                Fma "fma" fma(a: Value, b: Value, c: Value) {} {} [] SameFloat, Elementwise {again(1)};
                /// Quotient within 2.1 ulp over the whole range (f32 only); not IEEE.
                Fdiv "fdiv" fdiv(a: Value, b: Value) {} {} [] SameF32, Elementwise {cost(16)};
                /// Quotient rounded to nearest even.
                FdivRn "fdiv_rn" fdiv_rn(a: Value, b: Value) {} {} [] SameFloat, Elementwise {cost(32)};
                /// Sign flipped, of NaN too.
                Fneg "fneg" fneg(a: Value) {} {} [] SameFloat, Elementwise {again(1)};
                /// Sign cleared, of NaN too.
                Fabs "fabs" fabs(a: Value) {} {} [] SameFloat, Elementwise {again(1)};
                /// Smaller of two numbers, -0 below +0. A NaN is ignored, or with `nan = propagate` the result is NaN.
                Fmin "fmin" fmin(a: Value, b: Value) {nan: NanRule} {} [] SameFloat, Elementwise {commutes(), again(1)};
                /// Larger of two numbers, -0 below +0. A NaN is ignored, or with `nan = propagate` the result is NaN.
                Fmax "fmax" fmax(a: Value, b: Value) {nan: NanRule} {} [] SameFloat, Elementwise {commutes(), again(1)};
                /// Comparison of floating-point numbers.
                Fcmp "fcmp" fcmp(a: Value, b: Value) {fpred: FloatPred} {} [] FloatCompare, Elementwise {again(1)};
                /// The number itself: a truth value that hardly ever holds, so that what only a `select` by it needs for where it does
                /// is computed behind a branch, which a thread takes if it holds for any of its elements.
                Rare "rare" rare(x: Value) {} {} [] SameBits, Elementwise {cost(0), again(1)};
                /// `a` where `cond` is true, else `b`.
                Select "select" select(cond: Value, a: Value, b: Value) {} {} [] Select, Elementwise {again(1)};

                /// 2^x within 2.1 ulp (f64: 1); f32 results and arguments below 2^-126 in size count as 0.
                Exp2 "exp2" exp2(x: Value) {} {} [] Function, Elementwise {cost(8), special()};
                /// 1/sqrt(x) within 2^-22.9 relative (f64: 1 ulp); f32 arguments below 2^-126 count as 0.
                Rsqrt "rsqrt" rsqrt(x: Value) {} {} [] Function, Elementwise {cost(8), special()};
                /// Square root within 2^-23 relative (f64: rounded to nearest even); f32 arguments below 2^-126 count as 0.
                Sqrt "sqrt" sqrt(x: Value) {} {} [] Function, Elementwise {cost(16)};
                /// Reciprocal within 1 ulp (f64: rounded to nearest even).
                Rcp "rcp" rcp(x: Value) {} {} [] Function, Elementwise {cost(8), special()};
                /// Reciprocal (f32) within 1 ulp; arguments and results below 2^-126 in size count as 0.
                RcpFtz "rcp_ftz" rcp_ftz(x: Value) {} {} [] SameF32, Elementwise {cost(8), special()};
                /// Base-2 logarithm (f32): within 2^-22 absolute on (0.5, 2), elsewhere 2^-22 relative.
                Log2Approx "log2_approx" log2_approx(x: Value) {} {} [] SameF32, Elementwise {cost(8), special()};
                /// Sine (f32) within 2^-20.4 absolute on [-2 pi, 2 pi]; elsewhere the error grows with the argument.
                SinApprox "sin_approx" sin_approx(x: Value) {} {} [] SameF32, Elementwise {cost(8), special()};
                /// Cosine (f32) within 2^-20.4 absolute on [-2 pi, 2 pi]; elsewhere the error grows with the argument.
                CosApprox "cos_approx" cos_approx(x: Value) {} {} [] SameF32, Elementwise {cost(8), special()};
                /// Square root rounded to nearest even.
                SqrtRn "sqrt_rn" sqrt_rn(x: Value) {} {} [] SameWideFloat, Elementwise {cost(32)};
                /// Integral number not above x.
                Floor "floor" floor(x: Value) {} {} [] SameWideFloat, Elementwise {again(4)};
                /// Integral number not below x.
                Ceil "ceil" ceil(x: Value) {} {} [] SameWideFloat, Elementwise {again(4)};
                /// Integral number nearest to x, ties to even.
                Rint "rint" rint(x: Value) {} {} [] SameWideFloat, Elementwise {again(4)};
                /// Integral number nearest to x of those between 0 and x.
                Trunc "trunc" trunc(x: Value) {} {} [] SameWideFloat, Elementwise {again(4)};
                /// The size of the first with the sign of the second, of NaN too.
                Copysign "copysign" copysign(size: Value, sign: Value) {} {} [] SameFloat, Elementwise {again(1)};

                /// Wider integer with the same signed value.
                Sext "sext" sext(x: Value) {} {} [ty] IntWiden, Elementwise {again(1)};
                /// Wider integer with the same unsigned value.
                Zext "zext" zext(x: Value) {} {} [ty] IntWiden, Elementwise {again(1)};
                /// Narrower integer: the low bits.
                Itrunc "itrunc" itrunc(x: Value) {} {} [ty] IntNarrow, Elementwise {again(1)};
                /// Nearest floating-point number to a signed integer, ties to even.
                Sitofp "sitofp" sitofp(x: Value) {} {} [ty] IntToFloat, Elementwise {again(2)};
                /// Nearest floating-point number to an unsigned integer, ties to even.
                Uitofp "uitofp" uitofp(x: Value) {} {} [ty] IntToFloat, Elementwise {again(2)};
                /// Signed integer by rounding to zero; out of range saturates, NaN gives 0 (to or from 64 bits the minimum).
                Fptosi "fptosi" fptosi(x: Value) {} {} [ty] FloatToInt, Elementwise {again(4)};
                /// Unsigned integer by rounding to zero; out of range saturates, NaN gives 0 (to or from 64 bits the top bit).
                Fptoui "fptoui" fptoui(x: Value) {} {} [ty] FloatToInt, Elementwise {again(4)};
                /// The same number in a wider format; exact. NaN stays NaN.
                Fpext "fpext" fpext(x: Value) {} {} [ty] FloatWiden, Elementwise {again(2)};
                /// The number in a narrower format; overflow gives infinity (round to zero: the largest finite number), in 8 bits the
                /// largest number, for infinity too.
                Fptrunc "fptrunc" fptrunc(x: Value) {round: Rounding} {} [ty] FloatNarrow, Elementwise {again(2)};
                /// The same bits as another type of equal width.
                Bitcast "bitcast" bitcast(x: Value) {} {} [ty] Bitcast, Elementwise {cost(0), again(1)};
                /// The address as a 64-bit integer, or back.
                PtrCast "ptr_cast" ptr_cast(x: Value) {} {} [ty] PtrCast, Elementwise {again(1)};
                /// The pointer moved by `offset` elements; the offset is signed and the address wraps.
                Addptr "addptr" addptr(ptr: Value, offset: Value) {} {} [] AddPtr, Elementwise {again(1)};

                /// The lines of `ptx` run for each `pack` elements, `$0`.. standing for registers of the results, then of the
                /// operands, as `constraints` name them. Those of a block are neighbours along `axis`, or along the last dimension; where
                /// there are fewer, of any others. With `pure` they do nothing else. See [`crate::ir`].
                InlinePtx "inline_ptx" inline_ptx(xs: &[Value]) {ptx: String, constraints: String, pack: u8} {axis: u8, pure: Flag} [ty] InlinePtx, Foreign;

                /// Waits until the grids that this launch depends on have ended, so that what they wrote can be read. Nothing where
                /// launches never overlap (before sm_90).
                GdcWait "gdc_wait" gdc_wait() {} {} [] NoResult, Sync;
                /// Lets grids that depend on this one start once every program has said so or ended. Nothing before sm_90.
                GdcLaunchDependents "gdc_launch_dependents" gdc_launch_dependents() {} {} [] NoResult, Sync;
                /// Nanoseconds of a clock that all programs of the device share, read where it stands.
                GlobalTimer "global_timer" global_timer() {} {} [] I64Scalar, Sync;

                /// Ends the kernel.
                Return "return" ret() {} {} [] NoResult, End;
            }
            functions {
                /// e^x: in f32 2^(x * log2 e) with the product rounded, that power as for `exp2`; in f64 within 1 ulp.
                Exp "exp" exp(x: Value) {} {} [] Function, Elementwise;
                /// e^x within 2.1 ulp, 1 ulp.
                ExpPrecise "exp_precise" exp_precise(x: Value) {} {} [] Function, Elementwise;
                /// 10^x within 2.1 ulp, 1 ulp.
                Exp10 "exp10" exp10(x: Value) {} {} [] Function, Elementwise;
                /// e^x - 1 within 1.5 ulp, 1 ulp.
                Expm1 "expm1" expm1(x: Value) {} {} [] Function, Elementwise;
                /// Natural logarithm within 1 ulp, 1 ulp.
                Log "log" log(x: Value) {} {} [] Function, Elementwise;
                /// Base-2 logarithm within 1.1 ulp, 1 ulp.
                Log2 "log2" log2(x: Value) {} {} [] Function, Elementwise;
                /// Base-10 logarithm within 2 ulp, 1.3 ulp.
                Log10 "log10" log10(x: Value) {} {} [] Function, Elementwise;
                /// log(1 + x) within 1.1 ulp, 1 ulp.
                Log1p "log1p" log1p(x: Value) {} {} [] Function, Elementwise;
                /// x^y within 2 ulp, 2 ulp, with the exceptions of C: 1 if x is 1 or y is 0, even for NaN.
                Pow "pow" pow(x: Value, y: Value) {} {} [] Function, Elementwise;
                /// Sine within 2 ulp, 2 ulp, of any angle.
                Sin "sin" sin(x: Value) {} {} [] Function, Elementwise;
                /// Cosine within 2 ulp, 2 ulp, of any angle.
                Cos "cos" cos(x: Value) {} {} [] Function, Elementwise;
                /// Tangent within 4 ulp, 2 ulp, of any angle.
                Tan "tan" tan(x: Value) {} {} [] Function, Elementwise;
                /// Arc sine within 2.1 ulp, 2.1 ulp.
                Asin "asin" asin(x: Value) {} {} [] Function, Elementwise;
                /// Arc cosine within 2 ulp, 2 ulp.
                Acos "acos" acos(x: Value) {} {} [] Function, Elementwise;
                /// Arc tangent within 2 ulp, 2 ulp.
                Atan "atan" atan(x: Value) {} {} [] Function, Elementwise;
                /// Angle of the point (second, first) within 3 ulp, 2 ulp.
                Atan2 "atan2" atan2(y: Value, x: Value) {} {} [] Function, Elementwise;
                /// Hyperbolic sine within 3 ulp, 2 ulp.
                Sinh "sinh" sinh(x: Value) {} {} [] Function, Elementwise;
                /// Hyperbolic cosine within 2 ulp, 1 ulp.
                Cosh "cosh" cosh(x: Value) {} {} [] Function, Elementwise;
                /// Hyperbolic tangent within 2 ulp, 1 ulp.
                Tanh "tanh" tanh(x: Value) {} {} [] Function, Elementwise;
                /// Inverse hyperbolic sine within 3 ulp, 3 ulp.
                Asinh "asinh" asinh(x: Value) {} {} [] Function, Elementwise;
                /// Inverse hyperbolic cosine within 4 ulp, 3 ulp.
                Acosh "acosh" acosh(x: Value) {} {} [] Function, Elementwise;
                /// Inverse hyperbolic tangent within 3 ulp, 2 ulp.
                Atanh "atanh" atanh(x: Value) {} {} [] Function, Elementwise;
                /// Error function within 2 ulp, 2 ulp.
                Erf "erf" erf(x: Value) {} {} [] Function, Elementwise;
                /// 1 - erf(x) within 4 ulp, 5 ulp.
                Erfc "erfc" erfc(x: Value) {} {} [] Function, Elementwise;
                /// The number whose error function is x, within 2 ulp, 3 ulp.
                Erfinv "erfinv" erfinv(x: Value) {} {} [] Function, Elementwise;
                /// Logarithm of the gamma function's size, infinite at its poles, within 4 ulp, 4 ulp; below 0, where it has zeros,
                /// within 16 ulp of the larger of it and 1.
                Lgamma "lgamma" lgamma(x: Value) {} {} [] Function, Elementwise;
                /// Cube root within 1 ulp, 1 ulp.
                Cbrt "cbrt" cbrt(x: Value) {} {} [] Function, Elementwise;
                /// sqrt(x^2 + y^2) within 3 ulp, 2 ulp; infinite if an operand is, even beside NaN.
                Hypot "hypot" hypot(x: Value, y: Value) {} {} [] Function, Elementwise;
                /// Integral number nearest to x, ties away from 0.
                Round "round" round(x: Value) {} {} [] Function, Elementwise;
                /// `x - n * y`, exactly, with n the integral number next to x / y towards 0: the remainder has the sign of x.
                /// Where x / y reaches 2^100 in f64 it is unspecified.
                Frem "frem" frem(x: Value, y: Value) {} {} [] Function, Elementwise;
            }
            tile {
                /// Index of the running program along `axis` (0, 1 or 2).
                ProgramId "program_id" program_id() {axis: u8} {} [] I32Scalar, Constant;
                /// Number of programs along `axis`.
                NumPrograms "num_programs" num_programs() {axis: u8} {} [] I32Scalar, Constant;
                /// Number of the CTA that executes the body of a persistent kernel.
                CtaId "cta_id" cta_id() {} {} [] I32Scalar, Constant;
                /// Number of these CTAs.
                NumCtas "num_ctas" num_ctas() {} {} [] I32Scalar, Constant;
                /// Number of the group of warps that executes this, of those of a CTA that take turns.
                GroupId "group_id" group_id() {} {} [] I32Scalar, Constant;
                /// Number of these groups.
                NumGroups "num_groups" num_groups() {} {} [] I32Scalar, Constant;
                /// Number of the multiprocessor that runs the program: below the device's count, otherwise unspecified.
                SmId "sm_id" sm_id() {} {} [] I32Scalar, Constant;
                /// The numbers `start`, `start + 1`, ... along the one dimension of the type.
                Arange "arange" arange() {start: i32} {} [ty] Arange, Constant {again(1)};
                /// Extents of 1 repeated to the extents of the type; the rank stays.
                Broadcast "broadcast" broadcast(x: Value) {} {} [ty] Broadcast, Shape {keeps(), cost(0), again(0)};
                /// A dimension of extent 1 put before dimension `axis`.
                ExpandDims "expand_dims" expand_dims(x: Value) {axis: u8} {} [] ExpandDims, Shape {keeps(), cost(0), again(0)};
                /// The same elements, in row-major order, under the shape of the type.
                Reshape "reshape" reshape(x: Value) {} {} [ty] Reshape, Shape {keeps(), cost(0), again(0)};
                /// Dimension `i` of the result is dimension `dims[i]` of the operand.
                Permute "permute" permute(x: Value) {dims: List} {} [] Permute, Shape {keeps(), cost(0), again(0)};
                /// A new last dimension of extent 2, in which `a` stands at 0 and `b` at 1.
                Join "join" join(a: Value, b: Value) {} {} [] Join, Shape {cost(0), again(0)};
                /// The elements at `index` (0 or 1) of the last dimension, whose extent is 2; the dimension goes.
                Split "split" split(x: Value) {index: u8} {} [] Split, Shape {cost(0), again(0)};
                /// Element by element of `index`: the element of `x` with that index along `axis` and, in the other
                /// dimensions, the place of the index. An index is unsigned; beyond the axis the element is an
                /// unspecified one of `x`.
                Gather "gather" gather(x: Value, index: Value) {axis: u8} {} [] Gather, Exchange;
                /// How many elements of `x` are 0, 1, .. up to the extent of the result, i32 of one dimension. Elements are
                /// unsigned; larger ones are not counted.
                Histogram "histogram" histogram(x: Value) {} {} [ty] Histogram, Exchange {cost(4)};
                /// The same elements in another layout.
                ConvertLayout "convert_layout" convert_layout(x: Value) {} {} [ty] ConvertLayout, Exchange {keeps()};
                /// The program's author promises that every element along dimension `i` starts runs divisible by `values[i]`.
                AssumeMultiple "assume_multiple" assume_multiple(x: Value) {values: List} {} [] Hint, Elementwise {again(0)};
                /// The promise that runs of `values[i]` elements along dimension `i` count up by one.
                AssumeContiguous "assume_contiguous" assume_contiguous(x: Value) {values: List} {} [] Hint, Elementwise {again(0)};
                /// The promise that runs of `values[i]` elements along dimension `i` are equal.
                AssumeConstant "assume_constant" assume_constant(x: Value) {values: List} {} [] Hint, Elementwise {again(0)};

                /// Elements read from memory where `mask` is true (everywhere without one); elsewhere `other`, or 0 without one.
                Load "load" load(ptr: Value, mask: Option<Value>, other: Option<Value>) {} {cache: Cache, evict: Evict, volatile: Flag} [] Load, Memory {reads("ptr")};
                /// Elements written to memory where `mask` is true.
                Store "store" store(ptr: Value, value: Value, mask: Option<Value>) {} {cache: Cache, evict: Evict} [] Store, Memory {writes("ptr")};
                /// Where `mask` is true (everywhere without one), each element of memory becomes its combination with `value` by
                /// `rmw`, in one step that other atomic ops on the element see done or not begun; the results are what the
                /// elements were, elsewhere 0. Sums of f32 take subnormal arguments and results for 0. See [`crate::ir`].
                AtomicRmw "atomic_rmw" atomic_rmw(ptr: Value, value: Value, mask: Option<Value>) {rmw: RmwOp, sem: MemOrder, scope: Scope} {} [] AtomicRmw, Memory {atomic("ptr")};
                /// Each element of memory whose bits are those of `expected` becomes `value`, in one step as for `atomic_rmw`;
                /// the results are what the elements were.
                AtomicCas "atomic_cas" atomic_cas(ptr: Value, expected: Value, value: Value) {sem: MemOrder, scope: Scope} {} [] AtomicCas, Memory {atomic("ptr")};

                /// Reports each element of `x`, or without operand that the program came here, with the text, in no order.
                DevicePrint "device_print" device_print(x: Option<Value>) {text: String} {show: Show} [] Print, Report {writes("log")};
                /// Reports each element of `cond` that is false, with the text, and goes on; with `trap` ends the launch instead.
                /// Compilation without assertions leaves it out.
                DeviceAssert "device_assert" device_assert(cond: Value) {text: String} {trap: Flag} [] Assert, Report {writes("log")};

                /// Combines the elements along `axis` with the region, which must be associative and commutative
                /// and takes (a.., b..) to (combined..). The tree is unspecified unless `order` names the bits of the
                /// index along the axis in the sequence in which they are folded.
                Reduce "reduce" reduce(xs: &[Value]) {axis: u8} {order: List} [] Reduce, Region;
                /// Each element becomes the combination of the elements along `axis` up to itself, the first one on
                /// the left; with `reverse` from the last one down to itself. The region must be associative and takes
                /// (a.., b..) to (combined..). The tree is unspecified unless `tree` gives the digits of the index.
                Scan "scan" scan(xs: &[Value]) {axis: u8} {reverse: Flag, tree: List} [] Scan, Region;

                /// Product of the matrices `a` [.., M, K] and `b` [.., K, N], added to `acc` [.., M, N]. Products are exact, the order
                /// of the sums and their intermediate rounding are unspecified; of 8-bit floats up to `imprecise` products in a row may
                /// be summed with few bits. See [`crate::ir`].
                Dot "dot" dot(a: Value, b: Value, acc: Value) {precision: DotPrecision} {imprecise: u32} [] Dot, Matrix;

                /// A tensor at `base` as the copy engine knows it. `numbers` are its extents, as many as `values` has, the outermost
                /// first, then the distances in elements between neighbours along all dimensions but the last, where it is 1. `values`
                /// are the extents of the box that is copied at once. The launcher makes it of arguments and grid; where `cond` is
                /// false, it launches the kernel compiled without maps instead.
                TensorMap "tensor_map" tensor_map(base: Value, cond: Value, numbers: &[Value]) {values: List} {} [] TensorMap, Shape {cost(0)};
                /// The box of a tensor that starts at the coordinates, the outermost first: in the order of its elements, with zeros
                /// where it is outside of the tensor. The innermost coordinate is a multiple of 16 bytes.
                TensorLoad "tensor_load" tensor_load(map: Value, coords: &[Value]) {} {} [ty] TensorLoad, Memory {reads("map")};
                /// Starts to copy a box of a tensor, as `tensor_load` reads it, to entry `index` of a ring of buffers if `exists`. The
                /// copy arrives on barrier `index` of `bars`, and the entry must not be accessed before a wait there.
                TensorCopy "tensor_copy" tensor_copy(map: Value, index: Value, exists: Value, coords: &[Value]) {slot: Slot, bars: Slot} {} [] TensorCopy, Memory {reads_until_wait("map"), writes_until_wait("slot"), engine()};
                /// Writes a block to the box of a tensor that starts at the coordinates, as `tensor_load` reads it; elements outside of
                /// the tensor are not written. No coordinate is negative, and rows of the tensor are multiples of 16 bytes, as
                /// the engine writes so many at once. With `rmw`, a sum, each element of memory becomes its sum with that of the block,
                /// as by a relaxed `atomic_rmw` but for subnormal numbers of f32, which stay.
                TensorStore "tensor_store" tensor_store(map: Value, x: Value, coords: &[Value]) {} {rmw: RmwOp, stages: u8} [] TensorStore, Memory {writes("map")};
                /// Makes the barriers of a slot, 8 bytes each: a phase ends with `count` arrivals and all bytes that these announced.
                MbarInit "mbar_init" mbar_init() {slot: Slot, count: u32} {} [] NoResult, Sync;
                /// Ends the barriers of a slot, which nobody waits for any more, so that they can be made again.
                MbarDrop "mbar_drop" mbar_drop() {slot: Slot} {} [] NoResult, Sync;
                /// Arrives on barrier `index` of a slot and announces `bytes`, if `exists`.
                MbarExpect "mbar_expect" mbar_expect(index: Value, exists: Value) {slot: Slot, bytes: u32} {} [] MbarExpect, Sync;
                /// Waits until the phase of barrier `index` whose parity is `phase`, 0 or 1, has ended: the first has parity 0. What
                /// was copied for it can be read.
                MbarWait "mbar_wait" mbar_wait(index: Value, phase: Value) {slot: Slot} {} [] MbarWait, Sync;
                /// The same, but gives up after asking `tries` times; whether the phase has ended.
                MbarWaitFor "mbar_wait_for" mbar_wait_for(index: Value, phase: Value) {slot: Slot, tries: u32} {} [] MbarWaitFor, Sync;

                /// All warps of the program arrive on barrier `index` of a slot, each once, when its threads have come here; if `exists`.
                MbarArrive "mbar_arrive" mbar_arrive(index: Value, exists: Value) {slot: Slot} {} [] MbarArrive, Sync;
                /// Gives entry `index` of a ring back, if `exists`: nothing that was read of it is under way, and nobody reads it before
                /// it is filled again.
                Release "release" release(index: Value, exists: Value) {slot: Slot} {} [] Release, Memory {writes("slot")};
                /// Has warps of its own execute the region while the program goes on behind it: they bring what the program waits for.
                /// One of their threads does. In there are scalars, copies of boxes, and barriers.
                Producer "producer" producer() {} {} [] Producer, Region;

                /// Starts to copy elements from memory to entry `index` of a ring of buffers, and zeros where `mask` is false. The
                /// entry must not be accessed before a wait for the commitment of the token.
                AsyncCopy "async_copy" async_copy(ptr: Value, index: Value, mask: Option<Value>) {slot: Slot} {cache: Cache, evict: Evict} [] AsyncCopy, Memory {reads_until_wait("ptr"), writes_until_wait("slot")};
                /// Makes copies a group, which its token stands for.
                AsyncCommit "async_commit" async_commit(copies: &[Value]) {} {} [] AsyncCommit, Sync;
                /// Waits until the groups of the tokens, and those committed before, have arrived.
                AsyncWait "async_wait" async_wait(groups: &[Value]) {} {} [] AsyncWait, Sync;
                /// Leaves a number in the 4 bytes of a slot, for the group whose turn comes next. Whoever reads it waits for that on a
                /// barrier.
                SlotPut "slot_put" slot_put(x: Value) {slot: Slot} {} [] SlotPut, Memory {writes("slot")};
                /// The number that was left in a slot last.
                SlotGet "slot_get" slot_get() {slot: Slot} {} [] I32Scalar, Memory {reads("slot")};
                /// The block becomes entry `index` of a ring of buffers.
                SharedStore "shared_store" shared_store(value: Value, index: Value) {slot: Slot} {} [] SharedStore, Memory {writes("slot")};
                /// The block in entry `index` of a ring of buffers.
                SharedLoad "shared_load" shared_load(index: Value) {slot: Slot} {} [ty] SharedLoad, Memory {reads("slot")};

                /// The block in entry `index` of a ring of buffers, where it stands: whoever uses it reads it there.
                SharedView "shared_view" shared_view(index: Value) {slot: Slot} {} [ty] SharedView, Memory {reads("slot")};
                /// Starts a product of matrices as `dot` computes it, by a warpgroup, and gives its sum and a token. The unit
                /// reads `a`, in registers or in shared memory, and `b`, in shared memory, and adds to the sum at any time until a
                /// wait for the token: until then the sum may be carried, and be the accumulator of another `dot_start`, and the
                /// operands must stay as they are.
                DotStart "dot_start" dot_start(a: Value, b: Value, acc: Value) {precision: DotPrecision} {imprecise: u32} [] DotStart, Sync;
                /// What `dot_start` gives, of a product that is done and whose sum is `acc`: for what is carried first.
                DotDone "dot_done" dot_done(acc: Value) {} {} [] DotDone, Sync;
                /// Waits until the products of the tokens, and those started before, are done and have read their operands.
                DotWait "dot_wait" dot_wait(tokens: &[Value]) {} {} [] AsyncWait, Sync;
                /// Waits until the product of the token is done and gives its sum.
                DotSum "dot_sum" dot_sum(sum: Value, token: Value) {} {} [] DotSum, Sync;

                /// Waits for all threads of the program and orders their accesses to memory.
                Barrier "barrier" barrier() {} {} [] NoResult, Sync;

                /// Runs the region for iv = lo, lo + step, ... while iv < hi (signed); its yields are the next carried
                /// values. A step below 1 is undefined.
                For "for" for_loop(lo: Value, hi: Value, step: Value, inits: &[Value]) {} {stages: u8, unroll: u8} [] For, Region;
                /// Runs the first region, then, while its condition held, the second, whose yields re-enter the first.
                While "while" while_loop(inits: &[Value]) {} {stages: u8} [] While, Region;
                /// Runs the first region if `cond` is true, else the second; its yields are the results.
                If "if" if_else(cond: Value) {} {} [] If, Region;
                /// Ends a region with its results.
                Yield "yield" yield_values(values: &[Value]) {} {} [] NoResult, End;
                /// Ends the first region of a `while_loop`: go on with `values` if `cond`, else they are the results.
                Condition "condition" condition(cond: Value, values: &[Value]) {} {} [] NoResult, End;
            }
            thread {
                /// A special register of the machine.
                Special "special" special() {reg: SpecialReg} {} [] I32Scalar, Constant;
                /// Element `i` of the result is element `map[i]` of the operands laid end to end.
                Rearrange "rearrange" rearrange(xs: &[Value]) {map: List} {} [ty] Rearrange, Shape;
                /// Address of a shared-memory buffer.
                SlotAddr "slot_addr" slot_addr() {slot: Slot} {} [ty] SlotAddr, Constant;
                /// `result.count` adjacent elements read at `ptr` + `offset` bytes as one access where `pred` is true,
                /// elsewhere `other`, or 0 without one. The address is a multiple of the access's size. `copied`: other threads
                /// read the same.
                Ld "ld" ld(ptr: Value, pred: Option<Value>, other: Option<Value>) {} {offset: i32, cache: Cache, evict: Evict, volatile: Flag, slot: Slot, copied: Flag} [ty] Ld, Memory {reads("ptr")};
                /// Adjacent elements written at `ptr` + `offset` bytes as one access where `pred` is true. `copied`: other threads
                /// have the same value and leave it to this one.
                St "st" st(ptr: Value, value: Value, pred: Option<Value>) {} {offset: i32, cache: Cache, evict: Evict, slot: Slot, apart: Flag, copied: Flag} [] St, Memory {writes("ptr")};
                /// Each of the adjacent elements at `ptr` + `offset` bytes becomes its combination with `value` where `pred` is
                /// true, each in a step of its own; gives what they were, elsewhere 0.
                Atom "atom" atom(ptr: Value, value: Value, pred: Option<Value>) {rmw: RmwOp, sem: MemOrder, scope: Scope} {offset: i32, slot: Slot} [] Atom, Memory {atomic("ptr")};
                /// The element at `ptr` + `offset` bytes becomes `value` where `pred` is true and its bits are those of `expected`;
                /// gives what it was, elsewhere 0.
                AtomCas "atom_cas" atom_cas(ptr: Value, expected: Value, value: Value, pred: Option<Value>) {sem: MemOrder, scope: Scope} {offset: i32} [] AtomCas, Memory {atomic("ptr")};
                /// Address of the module's log.
                LogAddr "log_addr" log_addr() {} {} [ty] LogAddr, Constant;
                /// Ends the launch with an error if `pred` is true.
                Trap "trap" trap(pred: Value) {} {} [] Assert, Report;
                /// Each lane gets the elements of lane `lane ^ mask` of its warp.
                ShflBfly "shfl_bfly" shfl_bfly(x: Value) {mask: u32} {} [] Shuffle, Exchange;
                /// Each lane gets the elements of lane `src & 31` of its warp.
                ShflIdx "shfl_idx" shfl_idx(x: Value, src: Value) {} {} [] Shuffle, Exchange;
                /// Each lane gets the elements of lane `lane - delta` of its warp; the first `delta` lanes keep their own.
                ShflUp "shfl_up" shfl_up(x: Value) {delta: u32} {} [] Shuffle, Exchange;
                /// Each lane gets the elements of lane `lane + delta` of its warp; the last `delta` lanes keep their own.
                ShflDown "shfl_down" shfl_down(x: Value) {delta: u32} {} [] Shuffle, Exchange;
                /// Each lane gets the combination of the 32-bit integers of all lanes of its warp.
                Redux "redux" redux(x: Value) {redop: RedOp} {} [] Redux, Exchange;
                /// As many 8x8 matrices of 16-bit elements as the result has 32-bit registers: row `i` of matrix `j` is the 16 bytes
                /// at `ptr` + `offset` of lane `8j + i`. Lane `4g + q` gets elements `2q` and `2q + 1` of row `g` of each; with
                /// `trans` those of column `g`.
                LdMatrix "ldmatrix" ldmatrix(ptr: Value) {} {offset: i32, trans: Flag, slot: Slot} [ty] LdMatrix, Memory {reads("ptr")};
                /// Writes as many 8x8 matrices of 16-bit elements as `x` has 32-bit registers to where `ldmatrix` reads them.
                StMatrix "stmatrix" stmatrix(ptr: Value, x: Value) {} {offset: i32, trans: Flag, slot: Slot} [] StMatrix, Memory {writes("ptr")};
                /// Products of the tiles of `a` with those of `b`, added to those of `c`, tile (i, j) standing at place
                /// i * (tiles of b) + j. How lanes and registers hold a tile is PTX's layout of fragments.
                Mma "mma" mma(a: Value, b: Value, c: Value) {unit: MmaUnit} {} [] Mma, Matrix;
                /// Starts to copy `bytes` (4, 8 or 16) from device memory at `from` + `read_offset` to shared memory at `to` +
                /// `offset`, zeros where `pred` is false. Both addresses are multiples of `bytes`. With `size`, at most `bytes` where
                /// `pred` is true, only as many are read, and the rest are zeros. A copy that `skips` writes nothing where `pred` is false.
                CpAsync "cp_async" cp_async(to: Value, from: Value, pred: Option<Value>, size: Option<Value>) {bytes: u32} {offset: i32, read_offset: i32, slot: Slot, evict: Evict, skips: Flag, apart: Flag} [] CpAsync, Memory {writes_until_wait("to"), reads_until_wait("from")};
                /// Makes the thread's copies since the last commitment a group.
                CpAsyncCommit "cp_async_commit" cp_async_commit() {} {} [] NoResult, Sync;
                /// Waits until at most `pending` groups of the thread are under way.
                CpAsyncWait "cp_async_wait" cp_async_wait() {pending: u32} {} [] NoResult, Sync;
                /// Says to the asynchronous units of the machine that registers are as the thread left them: a sum, which it
                /// gives back, and fragments, before products of four warps read and write them. What these read in shared memory is named here, too, so that
                /// barriers come first. What an `unread` sum holds counts for nothing.
                WgmmaFence "wgmma_fence" wgmma_fence(sum: Value, fragments: &[Value]) {} {unit: MmaUnit, slot: Slot, left_slot: Slot, unread: Flag} [] SameFirst, Sync {reads_until_wait("slot"), reads_until_wait("left_slot")};
                /// Starts products of 64 rows, of which each of four warps holds 16, by `columns` columns each, one for each pair of
                /// operands: a matrix as a descriptor or as a fragment in registers, and a descriptor. They are added to parts of `c` in
                /// turn, and none of it may be touched before a wait. A truth value behind the pairs says whether the first product of
                /// each part adds to it, or overwrites it. `slot` and `left_slot` say what is described. With `trans_a`,
                /// `trans_b` elements next to each other in memory belong to different terms of a sum.
                Wgmma "wgmma" wgmma(c: Value, pairs: &[Value]) {unit: MmaUnit, columns: u32} {trans_a: Flag, trans_b: Flag, slot: Slot, left_slot: Slot} [] Wgmma, Sync {reads_until_wait("slot"), reads_until_wait("left_slot")};
                /// Makes the products started since the last commitment a group.
                WgmmaCommit "wgmma_commit" wgmma_commit() {} {} [] NoResult, Sync;
                /// Waits until at most `pending` groups of products are under way, and gives the sum in front back. Fragments
                /// behind it are read until then; where the result is `unread`, what stands in front is one of them.
                WgmmaWait "wgmma_wait" wgmma_wait(xs: &[Value]) {pending: u32} {unread: Flag} [] SameFirst, Sync;
                /// Lets asynchronous units of the machine see what the thread has written to shared memory.
                FenceAsync "fence_async" fence_async() {} {} [] NoResult, Sync;
                /// Address of the map that the launcher makes by recipe number `index` of the function.
                MapAddr "map_addr" map_addr() {index: u8} {} [] I64Scalar, Constant;
                /// Makes the barrier at `ptr` + `offset`, if `pred`.
                MbarInit "mbar_init" mbar_init(ptr: Value, pred: Value) {count: u32} {offset: i32, slot: Slot} [] Mbar, Memory {writes("ptr")};
                /// Ends the barrier at `ptr` + `offset`, if `pred`.
                MbarInval "mbar_inval" mbar_inval(ptr: Value, pred: Value) {} {offset: i32, slot: Slot} [] Mbar, Memory {writes("ptr")};
                /// Lets the copy engine see barriers that the thread made.
                FenceMbarInit "fence_mbar_init" fence_mbar_init() {} {} [] NoResult, Sync;
                /// Arrives on the barrier at `ptr` + `offset` and announces `bytes`, if `pred`.
                MbarExpect "mbar_expect" mbar_expect(ptr: Value, pred: Value) {bytes: u32} {offset: i32, slot: Slot} [] Mbar, Memory {atomic("ptr")};
                /// Arrives on the barrier at `ptr` + `offset`, if `pred`.
                MbarArrive "mbar_arrive" mbar_arrive(ptr: Value, pred: Value) {} {offset: i32, slot: Slot} [] Mbar, Memory {atomic("ptr")};
                /// Whether the phase with the parity of the barrier at `ptr` + `offset` has ended; it may wait a while before it says no.
                MbarTry "mbar_try" mbar_try(ptr: Value, parity: Value) {} {offset: i32, slot: Slot} [] MbarTry, Memory {atomic("ptr")};
                /// Starts to copy a box of the tensor of a map to shared memory at `to` + `offset`, if `pred`; its bytes arrive on the
                /// barrier at `bar`. Coordinates count from the outermost dimension.
                TensorCopy "tensor_copy" tensor_copy(to: Value, map: Value, bar: Value, pred: Value, coords: &[Value]) {} {offset: i32, slot: Slot, bars: Slot} [] ThreadTensorCopy, Memory {writes_until_wait("to"), atomic("bar"), engine()};
                /// Starts to copy a box from shared memory at `from` + `offset` to the tensor of a map, if `pred`, or with `rmw` to add it
                /// to what is there. Coordinates count from the outermost dimension.
                TensorStore "tensor_store" tensor_store(from: Value, map: Value, pred: Value, coords: &[Value]) {} {offset: i32, slot: Slot, rmw: RmwOp} [] ThreadTensorStore, Memory {reads_until_wait("from"), writes_until_wait("map"), engine()};
                /// Makes the boxes that the thread stores since the last commitment a group.
                BulkCommit "bulk_commit" bulk_commit() {} {} [] NoResult, Sync;
                /// Waits until the shared memory of all but at most `pending` groups of the thread's boxes has been read.
                BulkWaitRead "bulk_wait_read" bulk_wait_read() {pending: u32} {} [] NoResult, Sync;
                /// Waits until all but at most `pending` groups of the thread's boxes are in memory, for all to see.
                BulkWait "bulk_wait" bulk_wait() {pending: u32} {} [] NoResult, Sync;
                /// The same bits in 32-bit integers.
                Words "words" words(x: Value) {} {} [ty] Words, Shape;
                /// True in one lane of the warp, and false in the others. All of them are there.
                Elect "elect" elect() {} {} [] Elect, Sync;
                /// Lets the threads of a warp wait for each other, and orders their accesses.
                WarpBarrier "warp_barrier" warp_barrier() {} {} [] NoResult, Sync;
                /// Takes or gives back registers: each thread of four warps has `count` then.
                SetRegisters "set_registers" set_registers() {count: u32} {} [] NoResult, Sync;
                /// Waits for `threads` threads of the CTA at barrier `id`, and orders their accesses.
                Barrier "bar" barrier() {id: u8, threads: u32} {} [] NoResult, Sync;
                /// Waits for `threads` threads of the CTA at barrier `id`, which is the same for all that come together, and orders their accesses.
                GroupBarrier "group_bar" group_barrier(id: Value) {threads: u32} {} [] GroupBarrier, Sync;
                /// Comes to such a barrier, if `pred` is true, and does not wait for the others.
                GroupArrive "group_arrive" group_arrive(id: Value, pred: Value) {threads: u32} {} [] GroupBarrier, Sync;
                /// Goes to the block.
                Jump "jump" jump() {} {} [] NoResult, End;
                /// Goes to the first block if `cond` is true, else to the second.
                Brif "brif" brif(cond: Value) {} {} [] NoResult, End;
            }
        }
    };
}
