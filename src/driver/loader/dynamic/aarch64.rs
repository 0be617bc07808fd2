//! The trampolines' assembly for AArch64.

use super::target;
use core::arch::global_asm;

/// One slot and one trampoline.
macro_rules! trampoline {
    ($name:ident) => {
        concat!(
            ".pushsection .data.tilelift_driver,\"aw\",@progbits\n",
            ".Ltilelift_slot_",
            stringify!($name),
            ": .quad tilelift_driver_lazy\n",
            ".popsection\n",
            ".weak ",
            stringify!($name),
            "\n",
            ".type ",
            stringify!($name),
            ",@function\n",
            ".p2align 4\n",
            stringify!($name),
            ":\n",
            "adrp x16, .Ltilelift_slot_",
            stringify!($name),
            "\n",
            "add x16, x16, :lo12:.Ltilelift_slot_",
            stringify!($name),
            "\n",
            "ldr x17, [x16]\n",
            "br x17\n",
            ".size ",
            stringify!($name),
            ", . - ",
            stringify!($name),
            "\n",
        )
    };
}
pub(super) use trampoline;

// The lazy entry: x16 holds the slot. Saved are x0 to x8 and q0 to q7, the registers that
// carry arguments in the AAPCS64, with the frame pointer and the return address.
global_asm!(
    ".pushsection .text.tilelift_driver,\"ax\",@progbits",
    ".p2align 4",
    ".globl tilelift_driver_lazy",
    ".hidden tilelift_driver_lazy",
    "tilelift_driver_lazy:",
    "stp x29, x30, [sp, #-224]!",
    "mov x29, sp",
    "stp x0, x1, [sp, #16]",
    "stp x2, x3, [sp, #32]",
    "stp x4, x5, [sp, #48]",
    "stp x6, x7, [sp, #64]",
    "str x8, [sp, #80]",
    "stp q0, q1, [sp, #96]",
    "stp q2, q3, [sp, #128]",
    "stp q4, q5, [sp, #160]",
    "stp q6, q7, [sp, #192]",
    "mov x0, x16",
    "bl {target}",
    "mov x17, x0",
    "ldp x0, x1, [sp, #16]",
    "ldp x2, x3, [sp, #32]",
    "ldp x4, x5, [sp, #48]",
    "ldp x6, x7, [sp, #64]",
    "ldr x8, [sp, #80]",
    "ldp q0, q1, [sp, #96]",
    "ldp q2, q3, [sp, #128]",
    "ldp q4, q5, [sp, #160]",
    "ldp q6, q7, [sp, #192]",
    "ldp x29, x30, [sp], #224",
    "br x17",
    ".popsection",
    target = sym target,
);

/// A trampoline as it is before the first use, for the slot that is the static `$slot`.
#[cfg(test)]
macro_rules! test_entry {
    ($slot:ident) => {
        global_asm!(
    ".globl tilelift_driver_test_entry",
    ".hidden tilelift_driver_test_entry",
    "tilelift_driver_test_entry:",
    "adrp x16, {slot}",
    "add x16, x16, :lo12:{slot}",
    "b tilelift_driver_lazy",
    slot = sym $slot,
);
    };
}
#[cfg(test)]
pub(super) use test_entry;
