//! The table of PTX instructions: each form once, with mnemonic, operands, requirements and effect.
//!
//! From it come the enum of the instructions, their text, the operand visitor of the register
//! allocator, the lowest PTX version of a kernel, and the declarations of the selection rules. The file
//! uses no other module, so that the build script can include it.
//!
//! A row reads
//!
//! ```text
//! /// meaning
//! Variant "mnemonic" (operand, operand, ...) sm SM ptx MAJOR MINOR, Group;
//! ```
//!
//! `sm SM` is the first architecture that has it; `sm (SM only)` says that later ones do not (`sm (90 only)` is sm_90a), and
//! `sm (SM family)` that those of the same generation do. The group says what it does to memory, too.
//!
//! In a mnemonic `{t}` is the instruction's type, `{u}` its second type, `{m}` its modifier (comparison,
//! cache, ...) and `{v}` the vector suffix. An operand is a form and a register class.
//!
//! | form | meaning | registers for each repetition |
//! |---|---|---|
//! | `def` | written | one |
//! | `use` | read | one, or one shared by all repetitions |
//! | `imm` | read; may be an immediate | same |
//! | `vdef`, `vuse` | written, read as `{..}` | all of the view divided by the repetitions |
//! | `tied` | read and written, as `{..}` | all of the view divided by the repetitions |
//! | `held` | read and written by what goes on meanwhile; not in the text | all of the view |
//! | `kept` | read by what goes on meanwhile; not in the text | all of the view |
//! | `addr` | register plus offset, in brackets | one |
//! | `map`, `coords` | read as `[map, {..}]` | one; all of the view |
//! | `name` | special register, symbol or parameter | none |
//!
//! The class is `T` or `U` (that of the first or second type), `P` (predicate), `H`, `W`, `D` (16, 32, 64 bits).
//!
//! An instruction over packs is repeated for each register; element `i` reads and writes register `i` of
//! each view. There is no other mapping: a view may take every second register, so conversions that
//! split or join pairs need none.

/// Calls `$mac!` with the rows.
macro_rules! for_each_ptx {
    ($mac:ident) => {
        $mac! {
            /// Copy of a register or a number.
            Mov "mov.{t}" (def T, imm T) sm 0 ptx 6 0, Move;
            /// Integer sum.
            Add "add.{t}" (def T, imm T, imm T) sm 0 ptx 6 0, Int;
            /// Integer difference.
            Sub "sub.{t}" (def T, imm T, imm T) sm 0 ptx 6 0, Int;
            /// Low half of the product.
            MulLo "mul.lo.{t}" (def T, imm T, imm T) sm 0 ptx 6 0, Int;
            /// High half of the product.
            MulHi "mul.hi.{t}" (def T, imm T, imm T) sm 0 ptx 6 0, Int;
            /// Whole product of twice the width.
            MulWide "mul.wide.{u}" (def T, imm U, imm U) sm 0 ptx 6 0, Int;
            /// Integer quotient.
            Div "div.{t}" (def T, imm T, imm T) sm 0 ptx 6 0, Int;
            /// Integer remainder.
            Rem "rem.{t}" (def T, imm T, imm T) sm 0 ptx 6 0, Int;
            /// Smaller of two integers, or of two f32 or f64 (a NaN is ignored).
            Min "min.{t}" (def T, imm T, imm T) sm 0 ptx 6 0, Int;
            /// Larger of two integers, or of two f32 or f64 (a NaN is ignored).
            Max "max.{t}" (def T, imm T, imm T) sm 0 ptx 6 0, Int;
            /// Smaller of pairs of 16-bit integers.
            MinPair "min.{t}" (def T, use T, use T) sm 90 ptx 8 0, Int;
            /// Larger of pairs of 16-bit integers.
            MaxPair "max.{t}" (def T, use T, use T) sm 90 ptx 8 0, Int;
            /// Number of set bits.
            Popc "popc.{u}" (def W, use U) sm 0 ptx 6 0, Int;
            /// Number of leading zeros.
            Clz "clz.{u}" (def W, use U) sm 0 ptx 6 0, Int;
            /// Bits in reverse order.
            Brev "brev.{t}" (def T, use T) sm 0 ptx 6 0, Int;
            /// Bitwise and.
            And "and.{t}" (def T, imm T, imm T) sm 0 ptx 6 0, Int;
            /// Bitwise or.
            Or "or.{t}" (def T, imm T, imm T) sm 0 ptx 6 0, Int;
            /// Bitwise exclusive or.
            Xor "xor.{t}" (def T, imm T, imm T) sm 0 ptx 6 0, Int;
            /// Bitwise complement.
            Not "not.{t}" (def T, use T) sm 0 ptx 6 0, Int;
            /// Shift left; amounts above the width count as the width.
            Shl "shl.{t}" (def T, imm T, imm W) sm 0 ptx 6 0, Int;
            /// Shift right, with sign for signed types; amounts above the width count as the width.
            Shr "shr.{t}" (def T, imm T, imm W) sm 0 ptx 6 0, Int;
            /// Bytes of two registers in the order that the selector's digits name.
            Prmt "prmt.b32" (def W, use W, imm W, imm W) sm 0 ptx 6 0, Int;
            /// Any function of the bits of three numbers: the last number is its table.
            Lop3 "lop3.b32" (def W, use W, imm W, use W, imm W) sm 0 ptx 6 0, Int;

            /// Sum, rounded to nearest even.
            AddRn "add.rn.{t}" (def T, imm T, imm T) sm 0 ptx 6 0, Float;
            /// Difference, rounded to nearest even.
            SubRn "sub.rn.{t}" (def T, imm T, imm T) sm 0 ptx 6 0, Float;
            /// Product, rounded to nearest even.
            MulRn "mul.rn.{t}" (def T, imm T, imm T) sm 0 ptx 6 0, Float;
            /// Product and sum, rounded once.
            Fma "fma.rn.{t}" (def T, imm T, imm T, imm T) sm 0 ptx 6 0, Float;
            /// Sum in bf16.
            AddBf "add.rn.{t}" (def T, use T, use T) sm 90 ptx 7 8, Float;
            /// Product and sum in bf16, rounded once.
            FmaBf "fma.rn.{t}" (def T, use T, use T, use T) sm 80 ptx 7 0, Float;
            /// Two sums of f32, each rounded to nearest even.
            AddTwo "add.rn.{t}" (def T, use T, use T) sm 100 ptx 8 6, Float;
            /// Two differences of f32.
            SubTwo "sub.rn.{t}" (def T, use T, use T) sm 100 ptx 8 6, Float;
            /// Two products of f32.
            MulTwo "mul.rn.{t}" (def T, use T, use T) sm 100 ptx 8 6, Float;
            /// Two products and sums of f32, each rounded once.
            FmaTwo "fma.rn.{t}" (def T, use T, use T, use T) sm 100 ptx 8 6, Float;
            /// Quotient within 2 ulp.
            DivFull "div.full.{t}" (def T, imm T, imm T) sm 0 ptx 6 0, Float;
            /// Quotient rounded to nearest even.
            DivRn "div.rn.{t}" (def T, imm T, imm T) sm 0 ptx 6 0, Float;
            /// The other sign. Of a NaN it is left open what comes.
            Neg "neg.{t}" (def T, use T) sm 0 ptx 6 0, Float;
            /// Smaller of two f16 or bf16; a NaN is ignored.
            MinHalf "min.{t}" (def T, use T, use T) sm 80 ptx 7 0, Float;
            /// Larger of two f16 or bf16; a NaN is ignored.
            MaxHalf "max.{t}" (def T, use T, use T) sm 80 ptx 7 0, Float;
            /// Smaller of two, NaN if either is.
            MinNan "min.NaN.{t}" (def T, imm T, imm T) sm 80 ptx 7 0, Float;
            /// Larger of two, NaN if either is.
            MaxNan "max.NaN.{t}" (def T, imm T, imm T) sm 80 ptx 7 0, Float;
            /// 2^x; subnormal numbers count as 0.
            Ex2 "ex2.approx.ftz.{t}" (def T, use T) sm 0 ptx 6 0, Float;
            /// Base-2 logarithm.
            Lg2 "lg2.approx.{t}" (def T, use T) sm 0 ptx 6 0, Float;
            /// Reciprocal square root; subnormal numbers count as 0.
            Rsqrt "rsqrt.approx.ftz.{t}" (def T, use T) sm 0 ptx 6 0, Float;
            /// Square root; subnormal numbers count as 0.
            Sqrt "sqrt.approx.ftz.{t}" (def T, use T) sm 0 ptx 6 0, Float;
            /// Square root rounded to nearest even.
            SqrtRn "sqrt.rn.{t}" (def T, use T) sm 0 ptx 6 0, Float;
            /// Sine.
            Sin "sin.approx.{t}" (def T, use T) sm 0 ptx 6 0, Float;
            /// Cosine.
            Cos "cos.approx.{t}" (def T, use T) sm 0 ptx 6 0, Float;
            /// Reciprocal.
            Rcp "rcp.approx.{t}" (def T, use T) sm 0 ptx 6 0, Float;
            /// Reciprocal; subnormal numbers count as 0.
            RcpFtz "rcp.approx.ftz.{t}" (def T, use T) sm 0 ptx 6 0, Float;

            /// Comparison.
            Setp "setp.{m}.{t}" (def P, imm T, imm T) sm 0 ptx 6 0, Compare;
            /// Comparison of bf16.
            SetpBf "setp.{m}.{t}" (def P, use T, use T) sm 90 ptx 7 8, Compare;
            /// First operand where the predicate is true, else the second.
            Selp "selp.{t}" (def T, imm T, imm T, use P) sm 0 ptx 6 0, Compare;

            /// Conversion that needs no rounding: between integers, to a wider float.
            Cvt "cvt.{t}.{u}" (def T, use U) sm 0 ptx 6 0, Convert;
            /// Conversion rounded to nearest even.
            CvtRn "cvt.rn.{t}.{u}" (def T, use U) sm 0 ptx 6 0, Convert;
            /// Conversion rounded to zero.
            CvtRz "cvt.rz.{t}.{u}" (def T, use U) sm 0 ptx 6 0, Convert;
            /// Float to integer, rounded to zero, saturating.
            CvtRzi "cvt.rzi.{t}.{u}" (def T, use U) sm 0 ptx 6 0, Convert;
            /// The same to 8 or 16 bits, extended to a whole register.
            CvtRziWide "cvt.rzi.{t}.{u}" (def W, use U) sm 0 ptx 6 0, Convert;
            /// Integral number not above.
            CvtRmi "cvt.rmi.{t}.{u}" (def T, use U) sm 0 ptx 6 0, Convert;
            /// Integral number not below.
            CvtRpi "cvt.rpi.{t}.{u}" (def T, use U) sm 0 ptx 6 0, Convert;
            /// Nearest integral number, ties to even.
            CvtRni "cvt.rni.{t}.{u}" (def T, use U) sm 0 ptx 6 0, Convert;
            /// f32 to bf16, to nearest even.
            CvtRnBf "cvt.rn.bf16.f32" (def H, use W) sm 80 ptx 7 0, Convert;
            /// f32 to bf16, to zero.
            CvtRzBf "cvt.rz.bf16.f32" (def H, use W) sm 80 ptx 7 0, Convert;
            /// Integer or f64 to bf16, to nearest even.
            CvtRnBfAny "cvt.rn.bf16.{u}" (def H, use U) sm 90 ptx 7 8, Convert;
            /// Two f32 to a pair of f16 or bf16, to nearest even; high half first.
            CvtRnPair "cvt.rn.{t}.f32" (def T, imm U, imm U) sm 80 ptx 7 0, Convert;
            /// Two f32 to a pair of f16 or bf16, to zero; high half first.
            CvtRzPair "cvt.rz.{t}.f32" (def T, imm U, imm U) sm 80 ptx 7 0, Convert;

            /// Two f32 to a pair of 8-bit floats, to nearest even, saturating; high byte first.
            CvtRnF8 "cvt.rn.satfinite.{t}.f32" (def T, imm U, imm U) sm 89 ptx 8 1, Convert;
            /// A pair of 8-bit floats to a pair of f16.
            CvtF8 "cvt.rn.f16x2.{u}" (def W, use U) sm 89 ptx 8 1, Convert;

            /// Halves of a 32-bit register, low first.
            Split32 "mov.b32" (vdef H, use W) sm 0 ptx 6 0, Move;
            /// 32-bit register of two halves, low first.
            Join32 "mov.b32" (def W, vuse H) sm 0 ptx 6 0, Move;
            /// Halves of a 64-bit register, low first.
            Split64 "mov.b64" (vdef W, use D) sm 0 ptx 6 0, Move;
            /// 64-bit register of two halves, low first.
            Join64 "mov.b64" (def D, vuse W) sm 0 ptx 6 0, Move;
            /// A special register.
            Special "mov.u32" (def W, name W) sm 0 ptx 6 0, Move;
            /// An address in the kernel's shared memory.
            Symbol "mov.u32" (def W, name W) sm 0 ptx 6 0, Move;
            /// A kernel parameter.
            LdParam "ld.param.{t}" (def T, name W) sm 0 ptx 6 0, Param;

            /// Read from memory.
            Ld "ld{m}{v}.{t}" (vdef T, addr D) sm 0 ptx 6 0, Load;
            /// Write to memory.
            St "st{m}{v}.{t}" (addr D, vuse T) sm 0 ptx 6 0, Store;
            /// Read from memory with an eviction priority.
            LdEvict "ld{m}{v}.{t}" (vdef T, addr D) sm 70 ptx 7 4, Load;
            /// Write to memory with an eviction priority.
            StEvict "st{m}{v}.{t}" (addr D, vuse T) sm 70 ptx 7 4, Store;

            /// Read 32 bytes of device memory, with an eviction priority or without.
            LdWide "ld{m}{v}.{t}" (vdef T, addr D) sm 100 ptx 8 8, Load;
            /// Write 32 bytes of device memory, with an eviction priority or without.
            StWide "st{m}{v}.{t}" (addr D, vuse T) sm 100 ptx 8 8, Store;
            /// Read 32 bytes of device memory with a policy for the L2 cache.
            LdWideHint "ld{m}{v}.{t}" (vdef T, addr D, use D) sm 100 ptx 8 8, Load;
            /// Write 32 bytes of device memory with a policy for the L2 cache.
            StWideHint "st{m}{v}.{t}" (addr D, vuse T, use D) sm 100 ptx 8 8, Store;

            /// Read from memory with a policy for the L2 cache.
            LdHint "ld{m}{v}.{t}" (vdef T, addr D, use D) sm 80 ptx 7 4, Load;
            /// Write to memory with a policy for the L2 cache.
            StHint "st{m}{v}.{t}" (addr D, vuse T, use D) sm 80 ptx 7 4, Store;
            /// The policy that lines go early.
            PolicyFirst "createpolicy.fractional.L2::evict_first.b64" (def D) sm 80 ptx 7 4, Move;
            /// The policy that lines go late.
            PolicyLast "createpolicy.fractional.L2::evict_last.b64" (def D) sm 80 ptx 7 4, Move;
            /// Combination with what memory holds, in one step; gives what it held.
            Atom "atom{m}{v}.{t}" (vdef T, addr D, vuse T) sm 60 ptx 6 0, Atomic;
            /// The same for f16.
            AtomHalf "atom{m}{v}.{t}" (vdef T, addr D, vuse T) sm 70 ptx 6 3, Atomic;
            /// The same for bf16.
            AtomBf "atom{m}{v}.{t}" (vdef T, addr D, vuse T) sm 90 ptx 7 8, Atomic;
            /// The same for several elements, each in a step of its own.
            AtomVec "atom{m}{v}.{t}" (vdef T, addr D, vuse T) sm 90 ptx 8 1, Atomic;
            /// Comparison with what memory holds and, if equal, replacement; gives what it held.
            AtomCas "atom{m}.{t}" (def T, addr D, use T, use T) sm 60 ptx 6 0, Atomic;
            /// The same for 16 bits.
            AtomCasHalf "atom{m}.{t}" (def T, addr D, use T, use T) sm 70 ptx 6 3, Atomic;
            /// Combination with what memory holds, in one step.
            Red "red{m}{v}.{t}" (addr D, vuse T) sm 60 ptx 6 0, Reduce;
            /// The same for f16.
            RedHalf "red{m}{v}.{t}" (addr D, vuse T) sm 70 ptx 6 3, Reduce;
            /// The same for bf16.
            RedBf "red{m}{v}.{t}" (addr D, vuse T) sm 90 ptx 7 8, Reduce;
            /// The same for several elements, each in a step of its own.
            RedVec "red{m}{v}.{t}" (addr D, vuse T) sm 90 ptx 8 1, Reduce;

            /// Waits for the grids before.
            GdcWait "griddepcontrol.wait" () sm 90 ptx 7 8, Sync;
            /// Lets the grids behind start.
            GdcLaunch "griddepcontrol.launch_dependents" () sm 90 ptx 7 8, Sync;
            /// Ends the launch with an error.
            Trap "trap" () sm 0 ptx 6 0, Sync;
            /// Nothing in the text: registers of which nobody reads what they hold get their names.
            Undefined "undefined" (vdef W) sm 0 ptx 6 0, Sync;
            /// The address of a variable of the module.
            LogAddr "mov.u64" (def D, name W) sm 0 ptx 6 0, Move;
            /// Where a parameter stands.
            ParamAddr "mov.b64" (def D, name W) sm 0 ptx 6 0, Move;
            /// The address of a parameter from where it stands.
            ParamToGeneric "cvta.param.u64" (def D, use D) sm 70 ptx 7 7, Move;
            /// Nanoseconds.
            Timer "mov.u64" (def D, name W) sm 30 ptx 6 0, Foreign;
            /// Lines that the kernel's author wrote; of what they need nothing is known but that this version has most of it.
            Inline "" (vdef W, vuse W) sm 0 ptx 8 3, Foreign;

            /// Register of the lane whose index differs in the bits of the mask.
            ShflBfly "shfl.sync.bfly.b32" (def W, use W, imm W, imm W, imm W) sm 0 ptx 6 0, Exchange;
            /// Register of a lane.
            ShflIdx "shfl.sync.idx.b32" (def W, use W, imm W, imm W, imm W) sm 0 ptx 6 0, Exchange;
            /// Register of the lane that stands a distance below.
            ShflUp "shfl.sync.up.b32" (def W, use W, imm W, imm W, imm W) sm 0 ptx 6 0, Exchange;
            /// Register of the lane that stands a distance above.
            ShflDown "shfl.sync.down.b32" (def W, use W, imm W, imm W, imm W) sm 0 ptx 6 0, Exchange;
            /// Combination over the lanes of the warp.
            Redux "redux.sync{m}.{t}" (def T, use T, imm W) sm 80 ptx 7 0, Exchange;
            /// 8x8 matrices of 16-bit elements to shared memory.
            StMatrix "stmatrix.sync.aligned.m8n8{m}.shared.b16" (addr D, vuse W) sm 90 ptx 7 8, Store;
            /// 8x8 matrices of 16-bit elements from shared memory.
            LdMatrix "ldmatrix.sync.aligned.m8n8{m}.shared.b16" (vdef W, addr D) sm 75 ptx 6 5, Matrix;
            /// Product of matrices of f16 or bf16, with the type of the sums.
            Mma16 "mma.sync.aligned.m16n8k16.row.col.{u}.{t}.{t}.{u}" (vdef W, vuse W, vuse W, vuse W) sm 80 ptx 7 0, Matrix;
            /// Product of smaller matrices of f16, with the type of the sums.
            Mma16K8 "mma.sync.aligned.m16n8k8.row.col.{u}.{t}.{t}.{u}" (vdef W, vuse W, vuse W, vuse W) sm 75 ptx 6 5, Matrix;
            /// Four products of matrices of f16 smaller still.
            Mma16K4 "mma.sync.aligned.m8n8k4{m}.f32.{t}.{t}.f32" (vdef W, vuse W, vuse W, vuse W) sm 70 ptx 6 4, Matrix;
            /// Product of matrices of f32 cut to 11 bits.
            MmaTf32 "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" (vdef W, vuse W, vuse W, vuse W) sm 80 ptx 7 0, Matrix;
            /// Product of matrices of f64.
            MmaF64 "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64" (vdef D, vuse D, vuse D, vuse D) sm 80 ptx 7 0, Matrix;
            /// Product of matrices of signed bytes.
            MmaS8 "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32" (vdef W, vuse W, vuse W, vuse W) sm 80 ptx 7 0, Matrix;
            /// Product of smaller matrices of signed bytes.
            MmaS8K16 "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32" (vdef W, vuse W, vuse W, vuse W) sm 75 ptx 6 5, Matrix;
            /// Product of matrices of 8-bit floats.
            MmaF8 "mma.sync.aligned.m16n8k32.row.col.f32.{t}.{u}.f32" (vdef W, vuse W, vuse W, vuse W) sm 89 ptx 8 4, Matrix;
            /// The same with sums of f16.
            MmaF8Halves "mma.sync.aligned.m16n8k32.row.col.f16.{t}.{u}.f16" (vdef W, vuse W, vuse W, vuse W) sm 89 ptx 8 7, Matrix;
            /// Product of four warps: adds the product of two matrices of 16-bit numbers in shared memory, given by descriptors, to
            /// 64 rows of sums of the second type, some time before a wait. Behind the operands: whether it adds, signs, which matrix is transposed.
            Wgmma16 "wgmma.mma_async.sync.aligned.m64{m}k16.{u}.{t}.{t}" (tied W, use D, use D, imm P, imm W, imm W, imm W, imm W) sm (90 only) ptx 8 0, Matrix;
            /// The same with the left matrix in registers.
            Wgmma16Regs "wgmma.mma_async.sync.aligned.m64{m}k16.{u}.{t}.{t}" (tied W, vuse W, use D, imm P, imm W, imm W, imm W) sm (90 only) ptx 8 0, Matrix;
            /// The same of f32 cut to 11 bits.
            WgmmaTf32 "wgmma.mma_async.sync.aligned.m64{m}k8.f32.tf32.tf32" (tied W, use D, use D, imm P, imm W, imm W) sm (90 only) ptx 8 0, Matrix;
            /// The same with the left matrix in registers.
            WgmmaTf32Regs "wgmma.mma_async.sync.aligned.m64{m}k8.f32.tf32.tf32" (tied W, vuse W, use D, imm P, imm W, imm W) sm (90 only) ptx 8 0, Matrix;
            /// The same of 8-bit floats.
            WgmmaF8 "wgmma.mma_async.sync.aligned.m64{m}k32.f32.{t}.{u}" (tied W, use D, use D, imm P, imm W, imm W) sm (90 only) ptx 8 0, Matrix;
            /// The same with the left matrix in registers.
            WgmmaF8Regs "wgmma.mma_async.sync.aligned.m64{m}k32.f32.{t}.{u}" (tied W, vuse W, use D, imm P, imm W, imm W) sm (90 only) ptx 8 0, Matrix;
            /// The same of 8-bit floats with sums of f16.
            WgmmaF8Halves "wgmma.mma_async.sync.aligned.m64{m}k32.f16.{t}.{u}" (tied W, use D, use D, imm P, imm W, imm W) sm (90 only) ptx 8 0, Matrix;
            /// The same with the left matrix in registers.
            WgmmaF8HalvesRegs "wgmma.mma_async.sync.aligned.m64{m}k32.f16.{t}.{u}" (tied W, vuse W, use D, imm P, imm W, imm W) sm (90 only) ptx 8 0, Matrix;
            /// The same of signed bytes.
            WgmmaS8 "wgmma.mma_async.sync.aligned.m64{m}k32.s32.s8.s8" (tied W, use D, use D, imm P) sm (90 only) ptx 8 0, Matrix;
            /// The same with the left matrix in registers.
            WgmmaS8Regs "wgmma.mma_async.sync.aligned.m64{m}k32.s32.s8.s8" (tied W, vuse W, use D, imm P) sm (90 only) ptx 8 0, Matrix;
            /// Lets products of four warps see and change what registers hold.
            WgmmaFence "wgmma.fence.sync.aligned" (held W, kept W) sm (90 only) ptx 8 0, Sync;
            /// Makes products a group.
            WgmmaCommit "wgmma.commit_group.sync.aligned" () sm (90 only) ptx 8 0, Sync;
            /// Waits until at most so many groups are under way.
            WgmmaWait "wgmma.wait_group.sync.aligned" (imm W, held W, kept W) sm (90 only) ptx 8 0, Sync;
            /// Lets asynchronous units see what the thread has written to shared memory.
            FenceAsync "fence.proxy.async.shared::cta" () sm 90 ptx 8 0, Sync;
            /// Makes a barrier.
            MbarInit "mbarrier.init.shared::cta.b64" (addr D, imm W) sm 80 ptx 7 8, Sync;
            /// Ends a barrier.
            MbarInval "mbarrier.inval.shared::cta.b64" (addr D) sm 80 ptx 7 8, Sync;
            /// Lets the copy engine see barriers that were made.
            FenceMbarInit "fence.mbarrier_init.release.cluster" () sm 90 ptx 8 0, Sync;
            /// Arrives on a barrier and announces bytes.
            MbarExpect "mbarrier.arrive.expect_tx.shared::cta.b64 _," (addr D, imm W) sm 90 ptx 8 0, Sync;
            /// Arrives on a barrier.
            MbarArrive "mbarrier.arrive.shared::cta.b64 _," (addr D) sm 80 ptx 7 0, Sync;
            /// Whether a phase of a barrier has ended.
            MbarTry "mbarrier.try_wait.parity.shared::cta.b64" (def P, addr D, imm W) sm 90 ptx 8 0, Sync;
            /// Chooses one of the lanes of a mask.
            Elect "elect.sync _|" (def P, imm W) sm 90 ptx 8 0, Exchange;
            /// Starts to copy a box of a tensor to shared memory; it arrives on a barrier.
            BoxCopy "cp.async.bulk.tensor{m}.shared::cluster.global.tile.mbarrier::complete_tx::bytes" (addr D, map D, coords W, addr D) sm 90 ptx 8 0, Copy;
            /// Starts to copy a box from shared memory to a tensor.
            BoxStore "cp.async.bulk.tensor{m}.global.shared::cta.tile.bulk_group" (map D, coords W, addr D) sm 90 ptx 8 0, Copy;
            /// Starts to add a box from shared memory to a tensor.
            BoxAdd "cp.reduce.async.bulk.tensor{m}.global.shared::cta.add.tile.bulk_group" (map D, coords W, addr D) sm 90 ptx 8 0, Copy;
            /// Makes copies to tensors a group.
            BulkCommit "cp.async.bulk.commit_group" () sm 90 ptx 8 0, Sync;
            /// Waits until shared memory of all but so many groups of copies to tensors has been read.
            BulkWaitRead "cp.async.bulk.wait_group.read" (imm W) sm 90 ptx 8 0, Sync;
            /// Waits until all but so many groups of copies to tensors are in memory.
            BulkWait "cp.async.bulk.wait_group" (imm W) sm 90 ptx 8 0, Sync;
            /// Starts a copy to shared memory.
            CpAsync "cp.async{m}.shared.global" (addr D, addr D, imm W) sm 80 ptx 7 0, Copy;
            /// Starts a copy of so many bytes to shared memory, the rest filled with zeros.
            CpAsyncFill "cp.async{m}.shared.global" (addr D, addr D, imm W, imm W) sm 80 ptx 7 0, Copy;
            /// Starts a copy to shared memory, with a policy for the L2 cache.
            CpAsyncHint "cp.async{m}.shared.global.L2::cache_hint" (addr D, addr D, imm W, use D) sm 80 ptx 7 4, Copy;
            /// Starts a copy of so many bytes to shared memory, the rest filled with zeros, with a policy for the L2 cache.
            CpAsyncFillHint "cp.async{m}.shared.global.L2::cache_hint" (addr D, addr D, imm W, imm W, use D) sm 80 ptx 7 4, Copy;
            /// Makes copies a group.
            CpAsyncCommit "cp.async.commit_group" () sm 80 ptx 7 0, Sync;
            /// Waits until at most so many groups are under way.
            CpAsyncWait "cp.async.wait_group" (imm W) sm 80 ptx 7 0, Sync;
            /// Barrier of the lanes of a mask.
            WarpBarrier "bar.warp.sync" (imm W) sm 70 ptx 6 0, Sync;
            /// Gives registers of four warps away.
            FewerRegisters "setmaxnreg.dec.sync.aligned.u32" (imm W) sm (90 only) ptx 8 0, Sync;
            /// Takes registers for four warps.
            MoreRegisters "setmaxnreg.inc.sync.aligned.u32" (imm W) sm (90 only) ptx 8 0, Sync;
            /// Barrier of all threads of the CTA.
            Bar "bar.sync" (imm W) sm 0 ptx 6 0, Sync;
            /// Barrier of a number of threads.
            BarCount "bar.sync" (imm W, imm W) sm 0 ptx 6 0, Sync;
            /// The same at a barrier whose number a register holds.
            BarGroup "bar.sync" (use W, imm W) sm 0 ptx 6 0, Sync;
            /// Comes to the barrier of that number and goes on.
            BarArrive "bar.arrive" (use W, imm W) sm 0 ptx 6 0, Sync;
        }
    };
}

/// Calls `$mac!` with PTX's types: variant, text, register class, bits.
macro_rules! for_each_ptx_type {
    ($mac:ident) => {
        $mac! {
            Pred "pred" P 1; U8 "u8" H 8; S8 "s8" H 8;
            B16 "b16" H 16; U16 "u16" H 16; S16 "s16" H 16;
            B32 "b32" W 32; U32 "u32" W 32; S32 "s32" W 32;
            B64 "b64" D 64; U64 "u64" D 64; S64 "s64" D 64;
            U16x2 "u16x2" W 32; S16x2 "s16x2" W 32;
            F16 "f16" H 16; F16x2 "f16x2" W 32; Bf16 "bf16" H 16; Bf16x2 "bf16x2" W 32;
            E4m3 "e4m3" H 8; E5m2 "e5m2" H 8; E4m3x2 "e4m3x2" H 16; E5m2x2 "e5m2x2" H 16;
            F32 "f32" W 32; F32x2 "f32x2" D 64; F64 "f64" D 64;
        }
    };
}

/// Calls `$mac!` with the kinds of registers that selection tells apart: what an element is, and whether
/// two share a register.
macro_rules! for_each_kind {
    ($mac:ident) => {
        $mac! { I1 I8 I16 I16x2 I32 I64 F16 F16x2 Bf16 Bf16x2 F32 F64 E4m3 E5m2 }
    };
}

/// Calls `$mac!` with the comparisons of `setp`: variant and text.
macro_rules! for_each_cmp {
    ($mac:ident) => {
        $mac! {
            Eq "eq"; Ne "ne"; Lt "lt"; Le "le"; Gt "gt"; Ge "ge"; Lo "lo"; Ls "ls"; Hi "hi"; Hs "hs";
            Equ "equ"; Neu "neu"; Ltu "ltu"; Leu "leu"; Gtu "gtu"; Geu "geu"; Num "num"; Nan "nan";
        }
    };
}
