//! Launching: arguments, options, and the loop over the CTAs of a grid.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::error::EmuError;
use super::mem::Memory;
use super::module::{Entry, Module};
use super::sched::Machine;
use crate::limits::EMULATED_CTA_BYTES;

/// A kernel argument: its bytes, little-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arg(SmallVec<[u8; 8]>);

impl Arg {
    /// A parameter given as raw bytes, such as a struct.
    pub fn bytes(bytes: &[u8]) -> Arg {
        Arg(SmallVec::from_slice(bytes))
    }

    /// A pointer: an address from [`Memory::alloc`], or zero.
    pub fn pointer(address: u64) -> Arg {
        Arg::from(address)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

macro_rules! arg_from {
    ($($ty:ty)+) => {$(
        impl From<$ty> for Arg {
            fn from(value: $ty) -> Arg {
                Arg::bytes(&value.to_le_bytes())
            }
        }
    )+};
}
arg_from!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

/// How to run, and what to look out for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Decides the order in which warps and diverged lanes run.
    pub seed: u64,
    /// Steps after which the launch is given up: warp instructions, and [`WARP_STEPS`] for each warp that starts.
    pub step_limit: u64,
    /// CTAs that run at the same time.
    pub resident_ctas: u32,
    /// CTAs of a cluster in x, y, z, which are resident together, where the entry has no `.reqnctapercluster`.
    pub cluster: [u32; 3],
    /// Report accesses that nothing orders.
    pub check_races: bool,
    /// Report races between two plain writes of the same value, too.
    pub report_equal_writes: bool,
    /// Report loads of bytes that nobody wrote, and registers without a defined value where they
    /// matter: as address, as predicate, as data of a global store or an atomic. An undefined
    /// value may be computed with and thrown away, as compilers do in lanes whose result is
    /// masked off.
    pub check_uninit: bool,
    /// Report every use of a register without a defined value.
    pub strict_registers: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            seed: 0,
            step_limit: 100_000_000,
            resident_ctas: 4,
            cluster: [1; 3],
            check_races: true,
            report_equal_writes: false,
            check_uninit: true,
            strict_registers: false,
        }
    }
}

/// A launch.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads in x, y, z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// One for each parameter.
    pub args: &'a [Arg],
    /// How to run.
    pub options: Options,
}

/// What a launch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stats {
    /// Instructions, counted once for each lane that executed them.
    pub lane_instructions: u64,
    /// Instructions, counted once for each group of lanes that executed them together.
    pub warp_instructions: u64,
    /// CTA barriers completed.
    pub barriers: u64,
    /// Trips that loads and stores of shared memory took through the banks.
    pub shared_wavefronts: u64,
    /// Trips that they would have taken without bank conflicts.
    pub shared_ideal_wavefronts: u64,
    /// Loads, stores and atomics of global memory, one for each group of lanes.
    pub global_requests: u64,
    /// Sectors of 32 bytes that they touched.
    pub global_sectors: u64,
    /// Bytes that their lanes asked for.
    pub global_bytes: u64,
}

impl Stats {
    /// What no launch did.
    pub(crate) const ZERO: Stats = Stats {
        lane_instructions: 0,
        warp_instructions: 0,
        barriers: 0,
        shared_wavefronts: 0,
        shared_ideal_wavefronts: 0,
        global_requests: 0,
        global_sectors: 0,
        global_bytes: 0,
    };

    /// All numbers.
    fn parts(&mut self) -> [&mut u64; 8] {
        [
            &mut self.lane_instructions,
            &mut self.warp_instructions,
            &mut self.barriers,
            &mut self.shared_wavefronts,
            &mut self.shared_ideal_wavefronts,
            &mut self.global_requests,
            &mut self.global_sectors,
            &mut self.global_bytes,
        ]
    }

    /// Adds what happened between two times.
    pub(super) fn add_between(&mut self, mut before: Stats, mut after: Stats) {
        let times = before.parts().into_iter().zip(after.parts());
        for (sum, (before, after)) in self.parts().into_iter().zip(times) {
            *sum += *after - *before;
        }
    }

    /// Adds what another launch, or another part of one, did.
    #[cfg(feature = "tool")]
    pub(crate) fn add(&mut self, other: Stats) {
        self.add_between(Stats::ZERO, other);
    }
}

/// What each line of a module's text does.
#[derive(Debug, Default)]
pub(super) struct Profile {
    lines: BTreeMap<u32, Stats>,
    /// The line in execution.
    line: u32,
    /// What was counted when it began.
    before: Stats,
}

impl Profile {
    /// Another line begins, after so much.
    pub(super) fn enter(&mut self, line: u32, now: Stats) {
        let of_line = self.lines.entry(self.line).or_default();
        of_line.add_between(self.before, now);
        (self.line, self.before) = (line, now);
    }
}

/// Steps that starting a warp counts for: it costs about as much as so many instructions.
pub const WARP_STEPS: u64 = 16;

/// Most CTAs of a cluster.
const MAX_CLUSTER: u64 = 16;
/// Most threads of a CTA.
const MAX_THREADS: u64 = 1024;
/// Most shared memory of a CTA, of any target.
const MAX_SHARED: u64 = 227 * 1024;

/// Runs an entry on `memory`.
pub fn run(
    module: &Module,
    entry: &str,
    launch: &Launch<'_>,
    memory: &mut Memory,
) -> Result<Stats, EmuError> {
    start(module, entry, launch, memory, None).map(|(stats, _)| stats)
}

/// Runs an entry on `memory`, and gives what each line of the module's text did, by their numbers from 1.
pub fn run_by_lines(
    module: &Module,
    entry: &str,
    launch: &Launch<'_>,
    memory: &mut Memory,
) -> Result<Vec<(u32, Stats)>, EmuError> {
    let profile = Some(Profile::default());
    let (stats, profile) = start(module, entry, launch, memory, profile)?;
    let mut profile = profile.unwrap_or_default();
    profile.enter(0, stats);
    Ok(profile
        .lines
        .into_iter()
        .filter(|(line, _)| *line > 0)
        .collect())
}

fn start(
    module: &Module,
    entry: &str,
    launch: &Launch<'_>,
    memory: &mut Memory,
    profile: Option<Profile>,
) -> Result<(Stats, Option<Profile>), EmuError> {
    let entry = module
        .entry(entry)
        .ok_or_else(|| EmuError::NoEntry(entry.to_owned()))?;
    check_shape(entry, launch)?;
    let params = pack(entry, launch.args)?;
    let variables: Vec<u64> = module
        .variables
        .iter()
        .map(|variable| memory.alloc_bytes(&variable.bytes))
        .collect();
    let mut machine = Machine::new(entry, launch, memory, params, variables.clone());
    machine.profile = profile;
    let result = machine.run();
    let profile = machine.profile.take();
    memory.keep_variables(
        module
            .variables
            .iter()
            .zip(variables)
            .map(|(v, address)| (v.name.clone(), address, v.bytes.len())),
    );
    result.map(|stats| (stats, profile))
}

fn product(shape: [u32; 3]) -> u64 {
    shape
        .iter()
        .fold(1, |all, &size| u64::saturating_mul(all, u64::from(size)))
}

fn check_shape(entry: &Entry, launch: &Launch<'_>) -> Result<(), EmuError> {
    let fail = |message: String| Err(EmuError::Configuration(message));
    let threads = product(launch.block);
    if threads == 0 || threads > MAX_THREADS {
        return fail(format!("{threads} threads in a block"));
    }
    crate::grid::check(launch.grid).map_err(|e| EmuError::Configuration(e.to_string()))?;
    if let Some(wants) = entry.reqntid
        && wants != launch.block
    {
        return fail(format!(
            "a block of {:?}, `.reqntid` wants {wants:?}",
            launch.block
        ));
    }
    let cluster = entry.cluster.unwrap_or(launch.options.cluster);
    if cluster != launch.options.cluster && launch.options.cluster != [1; 3] {
        let launched = launch.options.cluster;
        return fail(format!(
            "clusters of {launched:?}, `.reqnctapercluster` wants {cluster:?}"
        ));
    }
    let size = product(cluster);
    if !(1..=MAX_CLUSTER).contains(&size) {
        return fail(format!(
            "clusters of {size} CTAs; there are 1 to {MAX_CLUSTER}"
        ));
    }
    if (0..3).any(|axis| !launch.grid[axis].is_multiple_of(cluster[axis])) {
        let grid = launch.grid;
        return fail(format!(
            "a grid of {grid:?}, which clusters of {cluster:?} do not divide"
        ));
    }
    if let Some(limit) = entry.maxntid {
        let limit = product(limit);
        if threads > limit {
            return fail(format!(
                "{threads} threads in a block, `.maxntid` allows {limit}"
            ));
        }
    }
    let shared = u64::from(entry.dynamic_start) + u64::from(launch.shared_bytes);
    if shared > MAX_SHARED {
        return fail(format!("{shared} bytes of shared memory"));
    }
    let registers = u64::from(entry.registers.data);
    let each = 8 * registers + u64::from(entry.registers.predicates) + u64::from(entry.local_bytes);
    let bytes = each.saturating_mul(threads.next_multiple_of(32));
    if bytes > EMULATED_CTA_BYTES {
        return fail(format!(
            "{registers} registers and {} bytes of local memory in each of {threads} threads, which take {bytes} bytes here of \
             at most {EMULATED_CTA_BYTES}; use fewer threads or declare fewer registers",
            entry.local_bytes
        ));
    }
    Ok(())
}

fn pack(entry: &Entry, args: &[Arg]) -> Result<Vec<u8>, EmuError> {
    if args.len() != entry.params.len() {
        return Err(EmuError::Arguments(format!(
            "{} arguments for {} parameters",
            args.len(),
            entry.params.len()
        )));
    }
    let mut buffer = vec![0; entry.param_bytes() as usize];
    for (param, arg) in entry.params.iter().zip(args) {
        let bytes = arg.as_bytes();
        if bytes.len() != param.size as usize {
            return Err(EmuError::Arguments(format!(
                "{} bytes for parameter `{}` of {} bytes",
                bytes.len(),
                param.name,
                param.size
            )));
        }
        let start = param.offset as usize;
        buffer[start..start + bytes.len()].copy_from_slice(bytes);
    }
    Ok(buffer)
}
