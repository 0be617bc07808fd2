//! A stand-in for the CUDA driver: enough of it to test what happens on the way to a GPU where there is none.
//!
//! Device memory is the host's. "Machine code" is an ELF header with the PTX behind it. Launches run nothing. What happens
//! is written, a line each, to the file that `STUB_LOG` names. `STUB_SYNC_ERROR` is the result of every wait,
//! `STUB_REFUSE` is a text: PTX that contains it does not assemble. `STUB_DEVICES` is the number of devices, 1 if it is
//! not set. With `STUB_NO_MAPS=1` no tensor map is encoded. A kernel whose PTX contains the text of `STUB_SLOW` is assembled when there
//! is a file `STUB_GATE`. `STUB_ASSERT` is the number of a launch, the first is 1, of which an assertion fails: that of the kernel's first
//! site.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

struct Module {
    ptx: String,
    /// Where its kernels write what they print, and bytes.
    log: Option<(u64, usize)>,
}

struct Function {
    /// Its module's context.
    context: usize,
    name: String,
    params: usize,
    log: Option<(u64, usize)>,
}

struct Link {
    error: (*mut u8, usize),
    image: Vec<u8>,
}

const ELF: usize = 64;

fn log_file() -> Option<&'static std::fs::File> {
    static FILE: OnceLock<Option<std::fs::File>> = OnceLock::new();
    let open = || {
        let path = std::env::var_os("STUB_LOG")?;
        std::fs::File::options().create(true).append(true).open(path).ok()
    };
    FILE.get_or_init(open).as_ref()
}

fn log(line: &str) {
    if let Some(mut file) = log_file() {
        // One call, so that lines of processes do not mix.
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}

fn number(name: &str) -> c_int {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The name of the first entry of a text, and how many parameters it has.
fn entry(ptx: &str) -> (String, usize) {
    let rest = ptx.split_once(".entry ").map_or("", |(_, rest)| rest);
    let (name, rest) = rest.split_once('(').unwrap_or((rest, ""));
    let params = rest.split(')').next().unwrap_or("");
    (name.trim().to_owned(), params.matches(".param").count())
}

macro_rules! succeed {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($arg: $ty),*) -> c_int {
            $(let _ = $arg;)*
            0
        }
    )*};
}

succeed! {
    cuInit(flags: c_uint);
    cuDevicePrimaryCtxRelease_v2(device: c_int);
    cuDevicePrimaryCtxSetFlags_v2(device: c_int, flags: c_uint);
    cuCtxSynchronize();
    cuFuncSetAttribute(function: usize, which: c_uint, value: c_int);
    cuFuncSetCacheConfig(function: usize, config: c_uint);
    cuStreamQuery(stream: usize);
    cuEventDestroy_v2(event: usize);
    cuGraphLaunch(graph: usize, stream: usize);
    cuGraphDestroy(graph: usize);
    cuEventSynchronize(event: usize);
    cuEventQuery(event: usize);
}

macro_rules! write_out {
    ($($name:ident($out:ident: $ty:ty $(, $arg:ident: $argty:ty)*) = $value:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($out: *mut $ty $(, $arg: $argty)*) -> c_int {
            $(let _ = $arg;)*
            unsafe { *$out = $value };
            0
        }
    )*};
}

write_out! {
    cuDriverGetVersion(version: c_int) = 13000;
    cuDeviceGetCount(count: c_int) = number("STUB_DEVICES").max(1);
    cuDeviceGet(device: c_int, ordinal: c_int) = ordinal;
    cuDeviceTotalMem_v2(bytes: usize, device: c_int) = 1 << 30;
    cuDevicePrimaryCtxRetain(context: usize, device: c_int) = 0x1000 + device as usize;
    cuCtxGetDevice(device: c_int) = (CURRENT.get() & 0xff) as c_int;
    cuStreamCreate(stream: usize, flags: c_uint) = 0x2000;
    cuStreamCreateWithPriority(stream: usize, flags: c_uint, priority: c_int) = OF_CUST;
    cuEventCreate(event: usize, flags: c_uint) = 0x3000;
    cuThreadExchangeStreamCaptureMode(mode: c_uint) = 0;
    cuGraphInstantiateWithFlags(executable: usize, graph: usize, flags: u64) = 0x5000;
    cuEventElapsedTime(time: f32, start: usize, end: usize) = 1.0;
    cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: c_int, function: usize, threads: c_int, shared: usize) = 4;
}

thread_local! {
    static CURRENT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetCurrent(context: *mut usize) -> c_int {
    unsafe { *context = CURRENT.get() };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: usize) -> c_int {
    CURRENT.set(context);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, _bytes: c_int, _device: c_int) -> c_int {
    let text = c"stub";
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), name, text.count_bytes() + 1) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, which: c_uint, _device: c_int) -> c_int {
    let is = match which {
        75 => 9,
        76 => 0,
        5 => i32::MAX,
        6 | 7 => 65535,
        13 => 1_000_000,
        16 => 100,
        36 => 1_000_000,
        37 => 4096,
        39 => 2048,
        82 => 65536,
        81 | 97 => 227 << 10,
        _ => 0,
    };
    unsafe { *value = is };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(code: c_int, name: *mut *const c_char) -> c_int {
    let text = match code {
        700 => c"CUDA_ERROR_ILLEGAL_ADDRESS",
        218 => c"CUDA_ERROR_INVALID_PTX",
        709 => c"CUDA_ERROR_CONTEXT_IS_DESTROYED",
        _ => return 1,
    };
    unsafe { *name = text.as_ptr() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorString(_code: c_int, text: *mut *const c_char) -> c_int {
    unsafe { *text = c"an error of the stub".as_ptr() };
    0
}

/// Marks and waits, with the contexts that are current: handles of streams and events do not tell theirs.
#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(_event: usize, _stream: usize) -> c_int {
    log(&format!("mark in {:x}", CURRENT.get()));
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitEvent(_stream: usize, _event: usize, _flags: c_uint) -> c_int {
    log(&format!("wait in {:x}", CURRENT.get()));
    0
}

/// Neighbours reach each other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) -> c_int {
    unsafe { *can = c_int::from((device - peer).abs() == 1) };
    0
}

/// The second time it is enabled already.
#[unsafe(no_mangle)]
pub extern "C" fn cuCtxEnablePeerAccess(peer: usize, _flags: c_uint) -> c_int {
    static ENABLED: std::sync::Mutex<Vec<(usize, usize)>> = std::sync::Mutex::new(Vec::new());
    let Ok(mut enabled) = ENABLED.lock() else {
        return 999;
    };
    let pair = (CURRENT.get(), peer);
    if enabled.contains(&pair) {
        return 704;
    }
    enabled.push(pair);
    log(&format!("peer {:x} of {:x}", peer, CURRENT.get()));
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyPeerAsync(
    to: u64,
    to_context: usize,
    from: u64,
    from_context: usize,
    bytes: usize,
    _stream: usize,
) -> c_int {
    let current = CURRENT.get();
    log(&format!("copy {bytes} from {from_context:x} to {to_context:x} in {current:x}"));
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
    0
}

/// Every stream that `cust` makes: one of the first device.
const OF_CUST: usize = 0x2100;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamGetCtx(stream: usize, context: *mut usize) -> c_int {
    let of = if stream == OF_CUST { 0x1000 } else { CURRENT.get() };
    unsafe { *context = of };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy_v2(stream: usize) -> c_int {
    if stream == OF_CUST {
        log("destroy a stream of cust");
    }
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(_stream: usize) -> c_int {
    number("STUB_SYNC_ERROR")
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> c_int {
    if bytes > 1 << 40 {
        return 2;
    }
    // Aligned to 256, and never given back: tests are short.
    let mut words = vec![[0_u64; 32]; bytes.div_ceil(256) + 1];
    let start = words.as_mut_ptr().cast::<u8>();
    std::mem::forget(words);
    unsafe { *address = start.add(start.align_offset(256)) as u64 };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(address: u64) -> c_int {
    // Of interest beside graphs alone.
    if HAS_GRAPHS.load(Ordering::Relaxed) {
        log(&format!("free {address:x}"));
    }
    0
}

/// Whether a stream was recorded.
static HAS_GRAPHS: AtomicBool = AtomicBool::new(false);

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamBeginCapture_v2(_stream: usize, _mode: c_uint) -> c_int {
    HAS_GRAPHS.store(true, Ordering::Relaxed);
    log("begin a graph");
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamEndCapture(_stream: usize, graph: *mut usize) -> c_int {
    log("end a graph");
    unsafe { *graph = 0x4000 };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphExecDestroy(_graph: usize) -> c_int {
    log("destroy a graph");
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoDAsync_v2(to: u64, from: *const u8, bytes: usize, _stream: usize) -> c_int {
    unsafe { std::ptr::copy(from, to as *mut u8, bytes) };
    0
}

/// Those that wait, which `cust` calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const u8, bytes: usize) -> c_int {
    unsafe { std::ptr::copy_nonoverlapping(from, to as *mut u8, bytes) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut u8, from: u64, bytes: usize) -> c_int {
    unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to, bytes) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoHAsync_v2(to: *mut u8, from: u64, bytes: usize, _stream: usize) -> c_int {
    unsafe { std::ptr::copy(from as *const u8, to, bytes) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocHost_v2(address: *mut *mut c_void, bytes: usize) -> c_int {
    if bytes > 1 << 40 {
        return 2;
    }
    log("alloc host");
    // With its size before it, so that it can be freed.
    let words = vec![bytes as u64; bytes.div_ceil(8) + 1].leak();
    unsafe { *address = words.as_mut_ptr().add(1).cast() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemFreeHost(address: *mut c_void) -> c_int {
    log("free host");
    let start = unsafe { address.cast::<u64>().sub(1) };
    let words = unsafe { *start } as usize / 8 + usize::from(unsafe { *start } % 8 > 0) + 1;
    drop(unsafe { Vec::from_raw_parts(start, words, words) });
    0
}

/// Calls back a moment later, from a thread of its own, as a driver does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamAddCallback(
    stream: usize,
    callback: extern "C" fn(usize, c_int, *mut c_void),
    data: *mut c_void,
    _flags: c_uint,
) -> c_int {
    log("callback");
    let data = data as usize;
    std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        callback(stream, number("STUB_SYNC_ERROR"), data as *mut c_void);
    });
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, _stream: usize) -> c_int {
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamIsCapturing(_stream: usize, status: *mut c_uint) -> c_int {
    unsafe { *status = 0 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemsetD8Async(address: u64, value: u8, bytes: usize, _stream: usize) -> c_int {
    unsafe { std::ptr::write_bytes(address as *mut u8, value, bytes) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLinkCreate_v2(
    count: c_uint,
    options: *const c_uint,
    values: *mut *mut c_void,
    state: *mut usize,
) -> c_int {
    let mut link = Link {
        error: (std::ptr::null_mut(), 0),
        image: Vec::new(),
    };
    for i in 0..count as usize {
        let value = unsafe { *values.add(i) };
        match unsafe { *options.add(i) } {
            5 => link.error.0 = value.cast(),
            6 => link.error.1 = value as usize,
            _ => {}
        }
    }
    unsafe { *state = Box::into_raw(Box::new(link)) as usize };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLinkAddData_v2(
    state: usize,
    _kind: c_uint,
    data: *const c_char,
    _bytes: usize,
    _name: *const c_char,
    _count: c_uint,
    _options: *const c_uint,
    _values: *mut *mut c_void,
) -> c_int {
    let link = unsafe { &mut *(state as *mut Link) };
    let ptx = unsafe { CStr::from_ptr(data) }.to_string_lossy().into_owned();
    if let Ok(refused) = std::env::var("STUB_REFUSE")
        && let Some(line) = ptx.lines().position(|line| line.contains(&refused))
    {
        let text = format!("ptxas application ptx input, line {}; error   : refused", line + 1);
        let text = CString::new(text).unwrap_or_default();
        let bytes = text.as_bytes_with_nul();
        let length = bytes.len().min(link.error.1);
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), link.error.0, length) };
        return 218;
    }
    wait_for_gate(&ptx);
    // Only what one kernel costs in its process is told by a line for each.
    log(&format!("assemble {} {}", entry(&ptx).0, ptx.len()));
    link.image = vec![0; ELF];
    link.image[..6].copy_from_slice(b"\x7fELF\x02\x01");
    link.image.extend_from_slice(ptx.as_bytes());
    link.image.push(0);
    0
}

/// Assembles a kernel whose PTX contains the text of `STUB_SLOW` only when there is a file `STUB_GATE`, or after a minute.
fn wait_for_gate(ptx: &str) {
    let (Ok(slow), Some(gate)) = (std::env::var("STUB_SLOW"), std::env::var_os("STUB_GATE")) else {
        return;
    };
    let begin = std::time::Instant::now();
    while ptx.contains(&slow) && !std::path::Path::new(&gate).exists() && begin.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLinkComplete(state: usize, image: *mut *const u8, bytes: *mut usize) -> c_int {
    let link = unsafe { &*(state as *const Link) };
    unsafe {
        *image = link.image.as_ptr();
        *bytes = link.image.len();
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut usize,
    image: *const u8,
    _count: c_uint,
    _options: *const c_uint,
    _values: *mut *mut c_void,
) -> c_int {
    let text = unsafe { CStr::from_ptr(image.add(ELF).cast()) };
    let loaded = Module {
        log: log_of(&text.to_string_lossy()),
        ptx: text.to_string_lossy().into_owned(),
    };
    log(&format!("load {} in {:x}", entry(&loaded.ptx).0, CURRENT.get()));
    unsafe { *module = Box::into_raw(Box::new(loaded)) as usize };
    0
}

/// The variable that a text declares for what is printed.
fn log_of(ptx: &str) -> Option<(u64, usize)> {
    let (_, rest) = ptx.split_once("tilelift_log[")?;
    let bytes: usize = rest.split(']').next()?.parse().ok()?;
    let mut address = 0;
    unsafe {
        cuMemAlloc_v2(&raw mut address, bytes);
        std::ptr::write_bytes(address as *mut u8, 0, bytes);
    }
    Some((address, bytes))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetGlobal_v2(
    address: *mut u64,
    bytes: *mut usize,
    module: usize,
    _name: *const c_char,
) -> c_int {
    let Some((place, size)) = (unsafe { (*(module as *const Module)).log }) else {
        return 500;
    };
    unsafe {
        *address = place;
        *bytes = size;
    }
    0
}

/// Writes what an assertion that fails writes, if it is the turn of this launch.
fn fail_assertion(function: &Function) {
    use std::sync::atomic::{AtomicI32, Ordering};
    static LAUNCHES: AtomicI32 = AtomicI32::new(0);
    let launch = 1 + LAUNCHES.fetch_add(1, Ordering::Relaxed);
    if let Some((address, _)) = function.log.filter(|_| launch == number("STUB_ASSERT")) {
        let words = [1_u32, 1, 0, 0, 0, 2, 0, 0, 3, 0, 0, 0];
        unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), address as *mut u32, words.len()) };
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleUnload(module: usize) -> c_int {
    // Its text goes; the rest stays, as functions of it may be asked about still.
    let ptx = std::mem::take(unsafe { &mut (*(module as *mut Module)).ptx });
    log(&format!("unload {}", entry(&ptx).0));
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLinkDestroy(state: usize) -> c_int {
    drop(unsafe { Box::from_raw(state as *mut Link) });
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(function: *mut usize, module: usize, name: *const c_char) -> c_int {
    let module = unsafe { &*(module as *const Module) };
    let (found, params) = entry(&module.ptx);
    if unsafe { CStr::from_ptr(name) }.to_bytes() != found.as_bytes() {
        return 500;
    }
    let made = Function {
        context: CURRENT.get(),
        name: found,
        params,
        log: module.log,
    };
    unsafe { *function = Box::into_raw(Box::new(made)) as usize };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetAttribute(value: *mut c_int, which: c_uint, _function: usize) -> c_int {
    let is = match which {
        0 => 1024,
        4 => 32,
        _ => 0,
    };
    unsafe { *value = is };
    0
}

/// A map is the tensor's address and nothing else.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuTensorMapEncodeTiled(
    map: *mut u64,
    element: c_uint,
    rank: c_uint,
    address: u64,
    dims: *const u64,
    strides: *const u64,
    tile: *const c_uint,
    _steps: *const c_uint,
    interleave: c_uint,
    swizzle: c_uint,
    promotion: c_uint,
    fill: c_uint,
) -> c_int {
    // Read once: whoever counts the instructions of a launch counts those of the environment, too.
    static REFUSES: OnceLock<bool> = OnceLock::new();
    if *REFUSES.get_or_init(|| number("STUB_NO_MAPS") != 0) {
        log("refuse a map");
        return 1;
    }
    if log_file().is_some() {
        let rank = rank as usize;
        let (dims, strides, tile) = unsafe {
            let slice = std::slice::from_raw_parts;
            (slice(dims, rank), slice(strides, rank - 1), std::slice::from_raw_parts(tile, rank))
        };
        log(&format!(
            "encode {element} {address:x}: {dims:?} {strides:?} {tile:?} {interleave} {swizzle} {promotion} {fill}"
        ));
    }
    unsafe { *map = address };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuTensorMapReplaceAddress(map: *mut u64, address: u64) -> c_int {
    if log_file().is_some() {
        log(&format!("move {address:x}"));
    }
    unsafe { *map = address };
    0
}

fn launched(function: usize, grid: [c_uint; 3], block: c_uint, shared: c_uint, params: *const *const u64) {
    let function = unsafe { &*(function as *const Function) };
    fail_assertion(function);
    if log_file().is_none() {
        return;
    }
    let words: Vec<String> = (0..function.params)
        .map(|i| format!("{:x}", unsafe { params.add(i).read().read_unaligned() }))
        .collect();
    let (name, words) = (&function.name, words.join(" "));
    log(&format!("launch {name} {grid:?} {block} {shared}: {words}"));
}

/// What a launch comes to that the current context is in the way of: of default streams, which are of whichever is current. Other streams tell
/// theirs.
fn refused(function: usize, stream: usize) -> Option<c_int> {
    const LAST_DEFAULT: usize = 2;
    let function = unsafe { &*(function as *const Function) };
    let current = CURRENT.get();
    if stream > LAST_DEFAULT || current == function.context {
        return None;
    }
    log(&format!("refuse {} in {current:x}", function.name));
    Some(if current == 0 { 201 } else { 400 })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuLaunchKernel(
    function: usize,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    _block_y: c_uint,
    _block_z: c_uint,
    shared: c_uint,
    stream: usize,
    params: *const *const u64,
    _extra: *const *const c_void,
) -> c_int {
    if let Some(code) = refused(function, stream) {
        return code;
    }
    launched(function, [grid_x, grid_y, grid_z], block_x, shared, params);
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernelEx(
    config: *const [c_uint; 14],
    function: usize,
    params: *const *const u64,
    _extra: *const *const c_void,
) -> c_int {
    let [x, y, z, block, _, _, shared, ..] = unsafe { *config };
    let count = unsafe { (*config)[12] };
    log(&format!("attributes {count}"));
    launched(function, [x, y, z], block, shared, params);
    0
}
