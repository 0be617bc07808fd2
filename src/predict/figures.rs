//! Devices in numbers.
//!
//! Rates are per clock of one multiprocessor, fitted to times of kernels; where a fit exceeds what papers promise, it makes up for what the model
//! does not know. Of an H100 these name 2,048 products
//! of 16-bit numbers ("NVIDIA H100 Tensor Core GPU Architecture", 989 TFLOP/s), two warps on integers and half a warp on special functions
//! (the throughput table of the CUDA programming guide, "Arithmetic Instructions"), 128 bytes of shared memory and 3.35 TB/s. From
//! there all were fitted together, with latencies and what starting costs, to times of kernels (`benches/gpu/choices.py`;
//! benches/README.md says on which device and when), so that a single one is no measurement of its own.

use crate::settings::Target;

/// What a device can do.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Figures {
    /// Multiprocessors.
    pub sms: u32,
    /// Clocks in a microsecond.
    pub clock: f64,
    /// Products of 16-bit numbers that the tensor cores add up, started by warpgroups.
    pub warpgroup_products: f64,
    /// The same, started by single warps.
    pub warp_products: f64,
    /// Instructions of warps on integers, comparisons and conversions; four are issued.
    pub simple: f64,
    /// Instructions of warps on special functions.
    pub special: f64,
    /// Bytes to and from shared memory.
    pub shared: f64,
    /// Bytes from the L2 cache, of which each row or line takes [`Figures::row`] besides.
    pub l2: f64,
    /// Clocks that each row of a box, or line of the cache, takes beside its bytes.
    pub row: f64,
    /// How many times as long a row of a box takes that begins at another multiple of 32 bytes than lines of the cache do, where all
    /// multiprocessors ask for rows.
    pub across_lines: f64,
    /// The same where it begins elsewhere.
    pub across_sectors: f64,
    /// Clocks between atomic accesses to one address.
    pub atomic: f64,
    /// Bytes between the L2 cache and device memory in a microsecond, for all multiprocessors.
    pub dram: f64,
    /// Clocks between dependent instructions.
    pub dependent: f64,
    /// Clocks until what shared memory is asked for is there.
    pub shared_latency: f64,
    /// Clocks until what the L2 cache holds is there.
    pub l2_latency: f64,
    /// More clocks for what it does not hold.
    pub dram_latency: f64,
    /// More clocks for a box that the copy engine fetches.
    pub box_latency: f64,
    /// More clocks for the first box of a tensor.
    pub map_latency: f64,
    /// Clocks between the end of the last product and the instruction behind the wait.
    pub product_latency: f64,
    /// Clocks of a wait that ends, for a barrier or for other threads.
    pub wait: f64,
    /// Clocks between the end of a CTA and the first instruction of the next one.
    pub cta: f64,
    /// Clocks between CTAs that start at the same time.
    pub stagger: f64,
    /// Clocks until the copy engine sees what threads wrote.
    pub fence: f64,
    /// Clocks of taking or giving back registers.
    pub registers: f64,
    /// Microseconds of a launch around the first and the last instruction.
    pub launch: f64,
}

impl Figures {
    /// What is known of devices that run code for the target; none for those of which too little is.
    pub fn of(target: Target) -> Option<Figures> {
        match target.sm {
            90 => Some(H100),
            _ => None,
        }
    }
}

/// H100 SXM5 80 GB.
const H100: Figures = Figures {
    sms: 132,
    clock: 1700.0,
    warpgroup_products: 1900.0,
    warp_products: 1280.0,
    simple: 2.6,
    special: 0.45,
    shared: 128.0,
    l2: 88.0,
    row: 1.0,
    across_lines: 1.5,
    across_sectors: 2.1,
    atomic: 3.2,
    dram: 3.1e6,
    dependent: 3.0,
    shared_latency: 20.0,
    l2_latency: 300.0,
    dram_latency: 400.0,
    box_latency: 380.0,
    map_latency: 550.0,
    product_latency: 105.0,
    wait: 35.0,
    cta: 1000.0,
    stagger: 150.0,
    fence: 400.0,
    registers: 550.0,
    launch: 3.3,
};
