//! The trampolines' assembly for x86-64.

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
            "lea r11, [rip + .Ltilelift_slot_",
            stringify!($name),
            "]\n",
            "jmp qword ptr [r11]\n",
            ".size ",
            stringify!($name),
            ", . - ",
            stringify!($name),
            "\n",
        )
    };
}
pub(super) use trampoline;

// The lazy entry: r11 holds the slot. Saved are the registers that carry arguments in the
// System V convention, rdi to r9 and xmm0 to xmm7; 8 + 8 (return address, rbp) + 192 bytes
// keep the stack aligned to 16 at the call.
global_asm!(
    ".pushsection .text.tilelift_driver,\"ax\",@progbits",
    ".p2align 4",
    ".globl tilelift_driver_lazy",
    ".hidden tilelift_driver_lazy",
    "tilelift_driver_lazy:",
    "push rbp",
    "mov rbp, rsp",
    "sub rsp, 192",
    "movups [rsp], xmm0",
    "movups [rsp + 16], xmm1",
    "movups [rsp + 32], xmm2",
    "movups [rsp + 48], xmm3",
    "movups [rsp + 64], xmm4",
    "movups [rsp + 80], xmm5",
    "movups [rsp + 96], xmm6",
    "movups [rsp + 112], xmm7",
    "mov [rsp + 128], rdi",
    "mov [rsp + 136], rsi",
    "mov [rsp + 144], rdx",
    "mov [rsp + 152], rcx",
    "mov [rsp + 160], r8",
    "mov [rsp + 168], r9",
    "mov rdi, r11",
    "call {target}",
    "mov r11, rax",
    "movups xmm0, [rsp]",
    "movups xmm1, [rsp + 16]",
    "movups xmm2, [rsp + 32]",
    "movups xmm3, [rsp + 48]",
    "movups xmm4, [rsp + 64]",
    "movups xmm5, [rsp + 80]",
    "movups xmm6, [rsp + 96]",
    "movups xmm7, [rsp + 112]",
    "mov rdi, [rsp + 128]",
    "mov rsi, [rsp + 136]",
    "mov rdx, [rsp + 144]",
    "mov rcx, [rsp + 152]",
    "mov r8, [rsp + 160]",
    "mov r9, [rsp + 168]",
    "leave",
    "jmp r11",
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
    "lea r11, [rip + {slot}]",
    "jmp tilelift_driver_lazy",
    slot = sym $slot,
);
    };
}
#[cfg(test)]
pub(super) use test_entry;
