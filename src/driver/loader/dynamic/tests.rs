//! Tests of the trampolines, most of them without a driver.

use super::arch::test_entry;
use super::*;

/// Bytes from one trampoline to the next.
const STRIDE: usize = 16;

unsafe extern "C" {
    /// The first trampoline.
    static tilelift_driver_trampolines: u8;
}

/// The code of the trampoline at `index`.
fn trampoline(index: usize) -> *const c_void {
    (&raw const tilelift_driver_trampolines)
        .wrapping_add(index * STRIDE)
        .cast()
}

#[test]
fn trampolines_lie_in_the_order_of_the_table() {
    for (name, address) in [
        (c"cuInit", cust_raw::cuInit as *const c_void),
        (c"cuMemAlloc_v2", cust_raw::cuMemAlloc_v2 as *const c_void),
        (c"cuLaunchKernel", cust_raw::cuLaunchKernel as *const c_void),
        (
            c"cuGetExportTable",
            cust_raw::cuGetExportTable as *const c_void,
        ),
    ] {
        let index = NAMES
            .iter()
            .position(|&other| other == name)
            .expect("in the table");
        assert_eq!(trampoline(index), address, "{name:?}");
    }
}

#[test]
fn without_a_driver_every_call_returns_no_device() {
    if load().is_ok() {
        eprintln!("skipped: this machine has a CUDA driver");
        return;
    }
    for (index, name) in NAMES.iter().enumerate() {
        if ERROR_WORDS.contains(name) {
            continue;
        }
        // SAFETY: the trampolines of a C function that takes nothing from the stack and
        // returns an int; without a driver it ends in `no_device`.
        let code = unsafe {
            let call: extern "C" fn() -> c_int = core::mem::transmute(trampoline(index));
            call()
        };
        assert_eq!(code, 100, "{name:?}");
    }
}

#[test]
fn without_a_driver_errors_have_words() {
    if load().is_ok() {
        eprintln!("skipped: this machine has a CUDA driver");
        return;
    }
    let error = cust::quick_init().expect_err("there is no driver");
    assert!(error.to_string().contains("there is no CUDA driver"));
}

/// The slot that [`tilelift_driver_test_entry`] names.
static PROBE: AtomicPtr<c_void> = AtomicPtr::new(probe as *mut c_void);

test_entry!(PROBE);

/// Eight integers, so that two of them are on the stack on x86-64, and eight floats.
type Probe = extern "C" fn(
    &mut [f64; 16],
    i64,
    i32,
    i64,
    i32,
    i64,
    i64,
    i64,
    f64,
    f32,
    f64,
    f64,
    f64,
    f64,
    f64,
    f64,
) -> c_int;

/// Writes down its arguments.
extern "C" fn probe(
    out: &mut [f64; 16],
    a: i64,
    b: i32,
    c: i64,
    d: i32,
    e: i64,
    f: i64,
    g: i64,
    s: f64,
    t: f32,
    u: f64,
    v: f64,
    w: f64,
    x: f64,
    y: f64,
    z: f64,
) -> c_int {
    let integers = [a, b.into(), c, d.into(), e, f, g].map(|value| value as f64);
    out[..7].copy_from_slice(&integers);
    out[7..15].copy_from_slice(&[s, t.into(), u, v, w, x, y, z]);
    out[15] = 1.0;
    17
}

#[test]
fn lazy_entry_keeps_the_arguments() {
    unsafe extern "C" {
        fn tilelift_driver_test_entry();
    }
    let mut out = [0.0; 16];
    // SAFETY: the entry goes on to `probe`, whose type this is.
    let call: Probe = unsafe { core::mem::transmute(tilelift_driver_test_entry as *const c_void) };
    let code = call(
        &mut out, -1, 2, 3, -4, 5, 6, 7, 8.5, 9.5, 10.5, 11.5, 12.5, 13.5, 14.5, 15.5,
    );
    assert_eq!(code, 17);
    assert_eq!(
        out,
        [
            -1.0, 2.0, 3.0, -4.0, 5.0, 6.0, 7.0, 8.5, 9.5, 10.5, 11.5, 12.5, 13.5, 14.5, 15.5, 1.0
        ]
    );
}
