//! Wide accesses wherever the addresses come from: what differs between neighbours by constants alone stays so through memory,
//! conversions, scans, loops, choices and promises.

use crate::common::data::Random;
use crate::common::executor::HostArg;
use crate::common::on_emu;
use crate::common::on_interp;
use crate::common::ptxas;
use tilelift::compile::{CompiledKernel, compile};
use tilelift::front::{Lowered, Module, Specialization, parse_signature};
use tilelift::settings::{Options, Target};

fn lowered(kernel: &str, signature: &str, stages: u8) -> Lowered {
    let args = parse_signature(signature).expect("the signature parses");
    let mut spec = Specialization::new(args, Target::SM_80);
    spec.num_warps = 4;
    spec.num_stages = Some(stages);
    let module = Module::parse("kernels.py", include_str!("../data/accesses.py"));
    let module = module.expect("the file parses");
    module
        .lower(Some(kernel), &spec)
        .unwrap_or_else(|e| panic!("{kernel}: {e}"))
}

fn compiled(kernel: &Lowered) -> CompiledKernel {
    let compiled = compile(&kernel.func, Target::SM_80, &Options::DEFAULT).expect("it compiles");
    ptxas::assemble(&compiled.ptx, "sm_80");
    compiled
}

/// Halves with few digits, so that their products are exact.
fn halves(count: usize, random: &mut Random) -> HostArg {
    const NUMBERS: [u16; 8] = [0xc400, 0xc200, 0xc000, 0xbc00, 0, 0x3c00, 0x4000, 0x4200];
    let number = |random: &mut Random| NUMBERS[(random.bits() >> 40 & 7) as usize];
    HostArg::Buffer(
        (0..count)
            .flat_map(|_| number(random).to_le_bytes())
            .collect(),
    )
}

fn same_on_both(name: &str, kernel: &Lowered, compiled: &CompiledKernel, args: &[HostArg]) {
    let expected = on_interp::run(&kernel.func, [1, 1, 1], args);
    let found = on_emu::run(compiled, [1, 1, 1], args);
    let bytes = |result: Result<Vec<HostArg>, String>| -> Vec<Vec<u8>> {
        let args = result.unwrap_or_else(|e| panic!("{name}: {e}"));
        let buffers = args.iter().filter(|a| matches!(a, HostArg::Buffer(_)));
        buffers.map(|a| a.bytes().to_vec()).collect()
    };
    assert_eq!(bytes(expected), bytes(found), "{name}");
}

#[test]
fn rows_are_moved_sixteen_bytes_at_a_time() {
    // Accesses to device memory: those of 16 bytes, and all.
    for (name, wide, all) in [
        ("rows_read", 4, 5),
        ("rows_written", 4, 5),
        ("rows_computed", 4, 4),
        ("rows_summed", 4, 5),
        ("columns_carried", 2, 4),
        ("pointers_in_while", 2, 3),
        ("pointers_chosen", 4, 5),
        ("columns_promised", 4, 5),
        ("pointers_promised", 4, 5),
    ] {
        let kernel = lowered(name, "*fp16:16, *fp16:16, *i32:16, i32:16, 32, 64", 3);
        let compiled = compiled(&kernel);
        let count = |part: &str| compiled.ptx.matches(part).count();
        let vectors = count("ld.global.v4") + count("st.global.v4");
        let accesses = count("ld.global.") + count("st.global.");
        assert_eq!((vectors, accesses), (wide, all), "{name}\n{}", compiled.ptx);
        let mut random = Random(3);
        // Each row once, so that rows written are written once.
        let ids = (0..32_u32)
            .flat_map(|i| ((i * 11 + 5) % 32).to_le_bytes())
            .collect();
        let table = halves(64 * 64, &mut random);
        let args = [
            halves(32 * 64, &mut random),
            table,
            HostArg::Buffer(ids),
            HostArg::I32(64),
        ];
        same_on_both(name, &kernel, &compiled, &args);
    }
}

#[test]
fn factors_are_copied_sixteen_bytes_at_a_time() {
    // 64 x 32 and 32 x 64 halves are two copies of a thread each, three times in front of the loop and once in it at most.
    for name in [
        "product_of_rows_read",
        "product_with_carried_range",
        "product_with_promises",
    ] {
        let kernel = lowered(
            name,
            "*fp16:16, *fp16:16, *fp16:16, *i32:16, i32:16, 64, 64, 32",
            3,
        );
        let compiled = compiled(&kernel);
        let lines = compiled
            .ptx
            .lines()
            .filter(|line| line.contains("cp.async.c") && line.contains(".shared"));
        let sizes: Vec<bool> = lines.map(|line| line.contains(", 16")).collect();
        assert!(
            sizes.len() >= 12 && sizes.iter().all(|&s| s),
            "{name}\n{}",
            compiled.ptx
        );
        let narrow = compiled.ptx.contains("ld.global.b16");
        assert!(!narrow, "{name}\n{}", compiled.ptx);
        let mut random = Random(4);
        let ids = (0..64_u32)
            .flat_map(|i| ((i * 11 + 5) % 64).to_le_bytes())
            .collect();
        let args = [
            halves(64 * 128, &mut random),
            halves(128 * 64, &mut random),
            HostArg::Output(64 * 64 * 2),
            HostArg::Buffer(ids),
            HostArg::I32(128),
        ];
        same_on_both(name, &kernel, &compiled, &args);
    }
}

/// Without alignment every element of the factors waits in a register of its own: far more than there are. ptxas must be told
/// that it may use all.
#[test]
fn the_assembler_may_use_all_registers_where_too_many_are_alive() {
    let signature = "*fp16, *fp16, *fp16, i32, i32, i32, 128, 128, 32";
    let kernel = lowered("product_without_alignment", signature, 3);
    let compiled = compiled(&kernel);
    assert!(compiled.stats.machine.predicted_registers > 255);
    assert!(compiled.ptx.contains(".minnctapersm 1\n"));
}

/// The block of pointers of 64 x 64 elements, of which each thread has 32 runs of one.
#[test]
fn blocks_of_scattered_pointers_advance() {
    let name = "scattered_block_advanced";
    let kernel = lowered(name, "*fp16:16, *fp16:16, i32, i32, i32, 64, 64", 3);
    let compiled = compiled(&kernel);
    let mut random = Random(12);
    let table = halves(64 * 70 + 4 * 130, &mut random);
    for (step, n) in [(1, 0), (5, 1), (130, 3), (0, 4)] {
        let args = [
            HostArg::Output(2 * 64 * 64 * 2),
            table.clone(),
            HostArg::I32(67),
            HostArg::I32(step),
            HostArg::I32(n),
        ];
        same_on_both(name, &kernel, &compiled, &args);
    }
}

#[test]
fn what_stands_in_for_masked_numbers_differs_where_addresses_do_not() {
    let name = "others_of_columns";
    for [rows, columns] in [[32, 64], [4, 128], [128, 8]] {
        let signature = format!("*fp16:16, *fp16:16, *fp16:16, i32, {rows}, {columns}");
        let kernel = lowered(name, &signature, 3);
        let compiled = compiled(&kernel);
        let mut random = Random(13);
        let [x, y] = [(); 2].map(|()| halves(128, &mut random));
        for n in [0, 1, 2, 17, 200] {
            let out = HostArg::Output(4 * rows * columns * 2);
            let args = [out, x.clone(), y.clone(), HostArg::I32(n)];
            same_on_both(name, &kernel, &compiled, &args);
        }
    }
}

/// A block begins at a multiple of its rows, so that all of them are below a bound or none, wherever its first row comes from.
#[test]
fn rows_are_below_a_bound_together() {
    let name = "rows_below";
    let kernel = lowered(name, "*fp16:16, *fp16:16, *i32:16, i32, 128, 64", 3);
    let compiled = compiled(&kernel);
    let comparisons = compiled.ptx.matches(", 256;\n").count();
    assert_eq!(comparisons, 1, "{}", compiled.ptx);
    let mut random = Random(14);
    let firsts: [i32; 4] = [1, 2, -3, 7];
    let args = [
        HostArg::Output(128 * 64 * 2),
        halves(256 * 64, &mut random),
        HostArg::Buffer(firsts.iter().flat_map(|i| i.to_le_bytes()).collect()),
        HostArg::I32(4),
    ];
    same_on_both(name, &kernel, &compiled, &args);
}
