//! Reports: what a variant of a kernel is, where it came from, and what it uses.

use std::fmt;
use std::time::Duration;

use crate::settings::Target;

use crate::runtime::cache::Origin;

/// What a variant uses, as the driver's assembler made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Resources {
    /// 32-bit registers of a thread.
    pub registers: u32,
    /// Bytes of local memory of a thread that hold what its registers have no room for. Edited PTX
    /// ([`Dump`](crate::runtime::Dump)) may declare arrays, which count as well.
    pub spilled_bytes: u32,
    /// Bytes of local memory of a thread.
    pub local_bytes: u32,
    /// Bytes of shared memory of a program, static and dynamic.
    pub shared_bytes: u32,
    /// Threads that a program can have with these registers.
    pub max_threads: u32,
    /// Programs that are resident on a multiprocessor at once.
    pub resident: u32,
    /// Threads that are resident, in hundredths of what the multiprocessor can hold.
    pub occupancy_percent: u32,
}

/// What a variant is expected to use, before the driver has seen it. Registers are right within 8 for nine kernels of ten
/// that use up to 100 or so, and often 30 too few for larger ones, which the assembler lets have what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Prediction {
    /// Registers of a thread, if it can have so many.
    pub registers: u32,
    /// Registers of a thread with fewer than which the assembler spills.
    pub needed_registers: u32,
    /// Most registers that it can have: fewer with more threads, or as [`Kernel::max_registers`](crate::runtime::Kernel::max_registers)
    /// says.
    pub most_registers: u32,
    /// Bytes of registers of a thread that the assembler spills to local memory: none, few, or many; the number itself may
    /// be off by half or more.
    pub spilled_bytes: u32,
    /// Bytes of local memory of a thread.
    pub local_bytes: u32,
    /// Bytes of dynamic shared memory of a program.
    pub shared_bytes: u32,
    /// Threads of a program.
    pub threads: u32,
    /// Programs that are resident on a multiprocessor of the target at once, if the registers are as predicted.
    pub resident: u32,
    /// Threads that are resident, in hundredths of what the multiprocessor can hold.
    pub occupancy_percent: u32,
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} registers, {} bytes spilled, {} programs resident, occupancy {} %",
            self.registers, self.spilled_bytes, self.resident, self.occupancy_percent
        )
    }
}

/// How long the steps to a variant took; a step that was not needed took no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Timing {
    /// Looking up and reading entries of the cache, and waiting for others who make them.
    pub cache: Duration,
    /// From the program to the IR of the kernel.
    pub lower: Duration,
    /// From the IR to PTX.
    pub compile: Duration,
    /// From PTX to machine code, by the driver; on the emulator, reading the PTX.
    pub assemble: Duration,
    /// Loading machine code onto the device.
    pub load: Duration,
}

impl Timing {
    /// All of them.
    pub fn total(&self) -> Duration {
        self.cache + self.lower + self.compile + self.assemble + self.load
    }
}

/// A variant of a kernel: the kernel for arguments of certain classes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Report {
    /// The kernel.
    pub kernel: String,
    /// The arguments' classes, as a signature of the Triton language.
    pub signature: String,
    /// The values of the parameters that have become constants.
    pub constants: Vec<(String, String)>,
    /// What it was compiled for.
    pub target: Target,
    /// Warps of a CTA.
    pub num_warps: u32,
    /// Bytes of dynamic shared memory of a program.
    pub shared_bytes: u32,
    /// What the compiler expects it to use.
    pub predicted: Prediction,
    /// What it uses; none on the emulator.
    pub resources: Option<Resources>,
    /// Where its PTX came from.
    pub kernel_origin: Origin,
    /// Where its machine code came from; none on the emulator.
    pub cubin_origin: Option<Origin>,
    /// How long it took.
    pub timing: Timing,
    /// What the driver's assembler wrote beside errors; empty if the machine code came from the cache.
    pub assembler_log: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}({}) for {}, {} warps, {} bytes of shared memory; predicted: {}",
            self.kernel,
            self.signature,
            self.target,
            self.num_warps,
            self.shared_bytes,
            self.predicted
        )?;
        if let Some(used) = &self.resources {
            write!(
                f,
                "; used: {} registers, {} bytes spilled, {} of local memory, {} programs resident, occupancy {} %",
                used.registers,
                used.spilled_bytes,
                used.local_bytes,
                used.resident,
                used.occupancy_percent
            )?;
        }
        Ok(())
    }
}

/// Which variant a launch uses, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Explanation {
    /// The signature of the variant.
    pub signature: String,
    /// Whether it is in memory already, ready to be launched.
    pub ready: bool,
    /// For each argument its parameter, its entry in the signature, and the reason for that.
    pub arguments: Vec<(String, String, String)>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.ready {
            "ready"
        } else {
            "to be compiled"
        };
        writeln!(f, "{} ({state})", self.signature)?;
        for (name, entry, reason) in &self.arguments {
            writeln!(f, "  {name}: {entry}, {reason}")?;
        }
        Ok(())
    }
}
