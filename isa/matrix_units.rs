//! The table of units that multiply matrices: each once, with the types it takes, its shapes, who executes it and when its
//! result is there.
//!
//! From it come the values of the attribute `unit`, the choice of a unit for a product, the layouts and tiles it is fed, what its
//! instruction does to memory, and the instruction itself. The file uses no other module.
//!
//! A row reads
//!
//! ```text
//! /// meaning
//! Variant "name" (LEFT RIGHT SUM PRECISION) m ROWS n COLUMNS k INNER, tile [ROWS, COLUMNS, INNER], sm SM, warps WARPS,
//!     When, Fragments, Instruction (TYPE TYPE);
//! ```
//!
//! - The types are those of the numbers, and `PRECISION` is that of the products it can compute.
//! - `m n k` is the shape of one instruction; `n LEAST to MOST` is that of one which takes any multiple of the least.
//! - The tile is what a unit is fed at once, in one step or several: its shape divided by that of an instruction says how many.
//! - `sm SM` is the first architecture that has it; `sm (SM only)` says that later ones do not, and `sm (SM family)` that those of
//!   the same generation do.
//! - `WARPS` warps next to each other along the rows execute an instruction together.
//! - `Now` has its result where the next instruction starts; `UntilWait` reads and writes until somebody waits.
//! - `Fragments` says how threads hold a tile, of 64 rows each of four warps 16: `Rows` as all instructions from m8n8k16 and
//!   m16n8k8 on do; `QuadPairs` as m8n8k4 of f16 does, with pieces across the summed dimension where it says `true`, of the left
//!   operand and of the right one.
//!
//! - The types of the instruction are what its text has: of both operands, or of 16-bit operands and of sums.
//!
//! Of several units that can compute a product with as many warps the first in the table that the target has is taken.

/// Calls `$mac!` with the rows.
macro_rules! for_each_unit {
    ($mac:ident) => {
        $mac! {
            /// f16, m16n8k16.
            F16 "f16" (F16 F16 F32 Ieee) m 16 n 8 k 16, tile [16, 8, 16], sm 80, warps 1,
                Now, Rows, Mma16 (F16 F32);
            /// f16, m16n8k8.
            F16K8 "f16k8" (F16 F16 F32 Ieee) m 16 n 8 k 8, tile [16, 8, 16], sm 75, warps 1,
                Now, Rows, Mma16K8 (F16 F32);
            /// f16 with sums of f16, m16n8k16.
            F16Sums "f16_sums" (F16 F16 F16 Ieee) m 16 n 8 k 16, tile [16, 8, 16], sm 80, warps 1,
                Now, Rows, Mma16 (F16 F16);
            /// f16 with sums of f16, m16n8k8.
            F16SumsK8 "f16_sums_k8" (F16 F16 F16 Ieee) m 16 n 8 k 8, tile [16, 8, 16], sm 75, warps 1,
                Now, Rows, Mma16K8 (F16 F16);
            /// f16, four products m8n8k4, pieces of rows of the left operand and of columns of the right one.
            F16K4 "f16k4" (F16 F16 F32 Ieee) m 16 n 16 k 4, tile [16, 16, 8], sm 70, warps 1,
                Now, QuadPairs(false, false), Mma16K4 (F16 F16);
            /// The same with pieces of rows of both.
            F16K4Rows "f16k4_rows" (F16 F16 F32 Ieee) m 16 n 16 k 4, tile [16, 16, 8], sm 70, warps 1,
                Now, QuadPairs(false, true), Mma16K4 (F16 F16);
            /// The same with pieces of columns of both.
            F16K4Columns "f16k4_columns" (F16 F16 F32 Ieee) m 16 n 16 k 4, tile [16, 16, 8], sm 70, warps 1,
                Now, QuadPairs(true, false), Mma16K4 (F16 F16);
            /// The same with pieces of columns of the left one and of rows of the right one.
            F16K4Transposed "f16k4_transposed" (F16 F16 F32 Ieee) m 16 n 16 k 4, tile [16, 16, 8], sm 70, warps 1,
                Now, QuadPairs(true, true), Mma16K4 (F16 F16);
            /// bf16, m16n8k16.
            Bf16 "bf16" (Bf16 Bf16 F32 Ieee) m 16 n 8 k 16, tile [16, 8, 16], sm 80, warps 1,
                Now, Rows, Mma16 (Bf16 F32);
            /// f32 of which the low 13 bits do not count, m16n8k8.
            Tf32 "tf32" (F32 F32 F32 Tf32) m 16 n 8 k 8, tile [16, 8, 8], sm 80, warps 1,
                Now, Rows, MmaTf32 (B32 B32);
            /// f64, m8n8k4.
            F64 "f64" (F64 F64 F64 Ieee) m 8 n 8 k 4, tile [16, 8, 8], sm 80, warps 1,
                Now, Rows, MmaF64 (F64 F64);
            /// Signed 8-bit integers, m16n8k32.
            S8 "s8" (I8 I8 I32 Ieee) m 16 n 8 k 32, tile [16, 8, 32], sm 80, warps 1,
                Now, Rows, MmaS8 (B32 B32);
            /// Signed 8-bit integers, m8n8k16.
            S8K16 "s8k16" (I8 I8 I32 Ieee) m 8 n 8 k 16, tile [16, 8, 32], sm 75, warps 1,
                Now, Rows, MmaS8K16 (B32 B32);
            /// f8e4m3, m16n8k32.
            E4m3 "e4m3" (F8E4M3 F8E4M3 F32 Ieee) m 16 n 8 k 32, tile [16, 8, 32], sm 89, warps 1,
                Now, Rows, MmaF8 (E4m3 E4m3);
            /// f8e4m3 with f8e5m2, m16n8k32.
            E4m3E5m2 "e4m3e5m2" (F8E4M3 F8E5M2 F32 Ieee) m 16 n 8 k 32, tile [16, 8, 32], sm 89, warps 1,
                Now, Rows, MmaF8 (E4m3 E5m2);
            /// f8e5m2 with f8e4m3, m16n8k32.
            E5m2E4m3 "e5m2e4m3" (F8E5M2 F8E4M3 F32 Ieee) m 16 n 8 k 32, tile [16, 8, 32], sm 89, warps 1,
                Now, Rows, MmaF8 (E5m2 E4m3);
            /// f8e5m2, m16n8k32.
            E5m2 "e5m2" (F8E5M2 F8E5M2 F32 Ieee) m 16 n 8 k 32, tile [16, 8, 32], sm 89, warps 1,
                Now, Rows, MmaF8 (E5m2 E5m2);
            /// f8e4m3 and sums of f16, m16n8k32.
            E4m3Sums "e4m3_sums" (F8E4M3 F8E4M3 F16 Ieee) m 16 n 8 k 32, tile [16, 8, 32], sm 89, warps 1,
                Now, Rows, MmaF8Halves (E4m3 E4m3);
            /// f8e4m3 with f8e5m2 and sums of f16, m16n8k32.
            E4m3E5m2Sums "e4m3e5m2_sums" (F8E4M3 F8E5M2 F16 Ieee) m 16 n 8 k 32, tile [16, 8, 32], sm 89, warps 1,
                Now, Rows, MmaF8Halves (E4m3 E5m2);
            /// f8e5m2 with f8e4m3 and sums of f16, m16n8k32.
            E5m2E4m3Sums "e5m2e4m3_sums" (F8E5M2 F8E4M3 F16 Ieee) m 16 n 8 k 32, tile [16, 8, 32], sm 89, warps 1,
                Now, Rows, MmaF8Halves (E5m2 E4m3);
            /// f8e5m2 and sums of f16, m16n8k32.
            E5m2Sums "e5m2_sums" (F8E5M2 F8E5M2 F16 Ieee) m 16 n 8 k 32, tile [16, 8, 32], sm 89, warps 1,
                Now, Rows, MmaF8Halves (E5m2 E5m2);
            /// f16, four warps, m64 k16.
            WarpgroupF16 "warpgroup_f16" (F16 F16 F32 Ieee) m 64 n 8 to 256 k 16, tile [64, 8, 16], sm (90 only), warps 4,
                UntilWait, Rows, Wgmma16 (F16 F32);
            /// f16 with sums of f16, four warps, m64 k16.
            WarpgroupF16Sums "warpgroup_f16_sums" (F16 F16 F16 Ieee) m 64 n 8 to 256 k 16, tile [64, 8, 16], sm (90 only), warps 4,
                UntilWait, Rows, Wgmma16 (F16 F16);
            /// bf16, four warps, m64 k16.
            WarpgroupBf16 "warpgroup_bf16" (Bf16 Bf16 F32 Ieee) m 64 n 8 to 256 k 16, tile [64, 8, 16], sm (90 only), warps 4,
                UntilWait, Rows, Wgmma16 (Bf16 F32);
            /// f32 of which the low 13 bits do not count, four warps, m64 k8.
            WarpgroupTf32 "warpgroup_tf32" (F32 F32 F32 Tf32) m 64 n 8 to 256 k 8, tile [64, 8, 8], sm (90 only), warps 4,
                UntilWait, Rows, WgmmaTf32 (B32 B32);
            /// Signed 8-bit integers, four warps, m64 k32.
            WarpgroupS8 "warpgroup_s8" (I8 I8 I32 Ieee) m 64 n 8 to 256 k 32, tile [64, 8, 32], sm (90 only), warps 4,
                UntilWait, Rows, WgmmaS8 (B32 B32);
            /// f8e4m3, four warps, m64 k32.
            WarpgroupE4m3 "warpgroup_e4m3" (F8E4M3 F8E4M3 F32 Ieee) m 64 n 8 to 256 k 32, tile [64, 8, 32], sm (90 only), warps 4,
                UntilWait, Rows, WgmmaF8 (E4m3 E4m3);
            /// f8e4m3 with f8e5m2, four warps, m64 k32.
            WarpgroupE4m3E5m2 "warpgroup_e4m3e5m2" (F8E4M3 F8E5M2 F32 Ieee) m 64 n 8 to 256 k 32, tile [64, 8, 32], sm (90 only), warps 4,
                UntilWait, Rows, WgmmaF8 (E4m3 E5m2);
            /// f8e5m2 with f8e4m3, four warps, m64 k32.
            WarpgroupE5m2E4m3 "warpgroup_e5m2e4m3" (F8E5M2 F8E4M3 F32 Ieee) m 64 n 8 to 256 k 32, tile [64, 8, 32], sm (90 only), warps 4,
                UntilWait, Rows, WgmmaF8 (E5m2 E4m3);
            /// f8e5m2, four warps, m64 k32.
            WarpgroupE5m2 "warpgroup_e5m2" (F8E5M2 F8E5M2 F32 Ieee) m 64 n 8 to 256 k 32, tile [64, 8, 32], sm (90 only), warps 4,
                UntilWait, Rows, WgmmaF8 (E5m2 E5m2);
            /// f8e4m3 and sums of f16, four warps, m64 k32.
            WarpgroupE4m3Sums "warpgroup_e4m3_sums" (F8E4M3 F8E4M3 F16 Ieee) m 64 n 8 to 256 k 32, tile [64, 8, 32], sm (90 only), warps 4,
                UntilWait, Rows, WgmmaF8Halves (E4m3 E4m3);
            /// f8e4m3 with f8e5m2 and sums of f16, four warps, m64 k32.
            WarpgroupE4m3E5m2Sums "warpgroup_e4m3e5m2_sums" (F8E4M3 F8E5M2 F16 Ieee) m 64 n 8 to 256 k 32, tile [64, 8, 32], sm (90 only), warps 4,
                UntilWait, Rows, WgmmaF8Halves (E4m3 E5m2);
            /// f8e5m2 with f8e4m3 and sums of f16, four warps, m64 k32.
            WarpgroupE5m2E4m3Sums "warpgroup_e5m2e4m3_sums" (F8E5M2 F8E4M3 F16 Ieee) m 64 n 8 to 256 k 32, tile [64, 8, 32], sm (90 only), warps 4,
                UntilWait, Rows, WgmmaF8Halves (E5m2 E4m3);
            /// f8e5m2 and sums of f16, four warps, m64 k32.
            WarpgroupE5m2Sums "warpgroup_e5m2_sums" (F8E5M2 F8E5M2 F16 Ieee) m 64 n 8 to 256 k 32, tile [64, 8, 32], sm (90 only), warps 4,
                UntilWait, Rows, WgmmaF8Halves (E5m2 E5m2);
        }
    };
}
