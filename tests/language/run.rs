//! One launch of a kernel of the language, on the interpreter and on the emulator.

use tilelift::compile::{CompiledKernel, compile};
use tilelift::front::{Constant, Lowered, Module, Specialization, parse_signature};
use tilelift::ir::function::TileFunction;
use tilelift::settings::{Options, Target};
use tilelift::{emu, interp};

use crate::{ptxas, variants};

/// An argument.
#[derive(Clone, Debug)]
pub(crate) enum Given {
    /// Memory that holds these bytes.
    Bytes(Vec<u8>),
    /// Memory of this many bytes that nobody has written.
    Poison(usize),
    /// Memory that holds the addresses of memories that hold these bytes; what they hold is read one after the other.
    Addresses(Vec<Vec<u8>>),
    /// A null pointer.
    Null,
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
}

/// The arguments after a launch: what each buffer holds, nothing for what is none.
pub(crate) type Buffers = Vec<Option<Vec<u8>>>;

/// What is launched.
pub(crate) struct Launch<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
    pub(crate) kernel: &'a str,
    pub(crate) signature: &'a str,
    pub(crate) constants: &'a [(String, Constant)],
    pub(crate) num_warps: u32,
    /// The target that the emulator runs; the kernel is assembled for sm_90a, too.
    pub(crate) target: Target,
    pub(crate) grid: [u32; 3],
    /// One for each parameter that the kernel has after its constants are folded.
    pub(crate) args: &'a [Given],
}

/// The kernel of the IR for a target.
pub(crate) fn lower(launch: &Launch<'_>, target: Target) -> Result<Lowered, String> {
    let args = parse_signature(launch.signature).map_err(|e| e.to_string())?;
    let mut spec = Specialization::new(args, target);
    spec.constants = launch.constants.to_vec();
    spec.num_warps = launch.num_warps;
    let module = Module::parse(launch.file, launch.text).map_err(|e| e.to_string())?;
    module
        .lower(Some(launch.kernel), &spec)
        .map_err(|e| e.to_string())
}

/// The buffers after a launch on each executor.
pub(crate) fn everywhere(launch: &Launch<'_>) -> Result<Vec<(&'static str, Buffers)>, String> {
    let options = Options {
        verify_passes: true,
        ..Options::DEFAULT
    };
    let mut results = Vec::new();
    for target in [launch.target, Target::SM_90A] {
        let lowered = lower(launch, target)?;
        let compiled = compile(&lowered.func, target, &options).map_err(|e| e.to_string())?;
        ptxas::assemble(&compiled.ptx, &target.to_string());
        if target == launch.target {
            variants::count(&lowered.func, target, &options, launch)?;
            let on_interp = on_interp(&lowered.func, &compiled, launch);
            results.push((
                "interpreter",
                on_interp.map_err(|e| format!("interpreter: {e}"))?,
            ));
            let on_emu = on_emu(&compiled, launch);
            results.push(("emulator", on_emu.map_err(|e| format!("emulator: {e}"))?));
        }
    }
    Ok(results)
}

fn check_count(compiled: &CompiledKernel, launch: &Launch<'_>) -> Result<(), String> {
    let (params, args) = (compiled.meta.params.len(), launch.args.len());
    if params == args {
        Ok(())
    } else {
        let names: Vec<&str> = compiled
            .meta
            .params
            .iter()
            .map(|p| p.name.as_str())
            .collect();
        Err(format!("{args} arguments for {}", names.join(", ")))
    }
}

/// Memory that arguments lie in.
trait Space {
    fn alloc(&mut self, bytes: usize) -> u64;
    fn alloc_bytes(&mut self, bytes: &[u8]) -> u64;
    fn read(&self, address: u64, bytes: usize) -> Result<Vec<u8>, String>;
}

impl Space for interp::Memory {
    fn alloc(&mut self, bytes: usize) -> u64 {
        self.alloc(bytes)
    }

    fn alloc_bytes(&mut self, bytes: &[u8]) -> u64 {
        self.alloc_bytes(bytes)
    }

    fn read(&self, address: u64, bytes: usize) -> Result<Vec<u8>, String> {
        let held = self.read(address, bytes).map_err(|e| e.to_string())?;
        Ok(held.to_vec())
    }
}

impl Space for emu::Memory {
    fn alloc(&mut self, bytes: usize) -> u64 {
        self.alloc(bytes)
    }

    fn alloc_bytes(&mut self, bytes: &[u8]) -> u64 {
        self.alloc_bytes(bytes)
    }

    fn read(&self, address: u64, bytes: usize) -> Result<Vec<u8>, String> {
        self.read(address, bytes).map_err(|e| e.to_string())
    }
}

/// An argument whose memory is allocated.
enum Placed {
    Pointer(u64),
    Int(i64),
    Float(f64),
}

/// Allocates what an argument needs; also the memories to read after the launch.
fn place(given: &Given, memory: &mut impl Space) -> (Placed, Vec<(u64, usize)>) {
    match given {
        Given::Bytes(bytes) => {
            let address = memory.alloc_bytes(bytes);
            (Placed::Pointer(address), vec![(address, bytes.len())])
        }
        Given::Poison(bytes) => {
            let address = memory.alloc(*bytes);
            (Placed::Pointer(address), vec![(address, *bytes)])
        }
        Given::Addresses(all) => {
            let places = all.iter().map(|b| (memory.alloc_bytes(b), b.len()));
            let places: Vec<(u64, usize)> = places.collect();
            let table: Vec<u8> = places.iter().flat_map(|(at, _)| at.to_le_bytes()).collect();
            (Placed::Pointer(memory.alloc_bytes(&table)), places)
        }
        Given::Null => (Placed::Pointer(0), Vec::new()),
        Given::Int(n) => (Placed::Int(*n), Vec::new()),
        Given::Float(x) => (Placed::Float(*x), Vec::new()),
    }
}

/// What the memories of each argument hold; nothing for an argument without one.
fn read(memory: &impl Space, buffers: &[Vec<(u64, usize)>]) -> Result<Buffers, String> {
    let mut all = Buffers::new();
    for places in buffers {
        let mut bytes = Vec::new();
        for &(address, count) in places {
            bytes.extend(memory.read(address, count)?);
        }
        all.push((!places.is_empty()).then_some(bytes));
    }
    Ok(all)
}

fn on_interp(
    func: &TileFunction,
    compiled: &CompiledKernel,
    launch: &Launch<'_>,
) -> Result<Buffers, String> {
    check_count(compiled, launch)?;
    let mut memory = interp::Memory::new();
    let mut args = Vec::new();
    let mut buffers = Vec::new();
    for (given, param) in launch.args.iter().zip(&compiled.meta.params) {
        let (placed, places) = place(given, &mut memory);
        args.push(match placed {
            Placed::Pointer(address) => interp::Arg::Ptr(address),
            Placed::Int(n) => interp::Arg::Int(n),
            Placed::Float(x) if param.bytes == 8 => interp::Arg::F64(x),
            Placed::Float(x) => interp::Arg::F32(x as f32),
        });
        buffers.push(places);
    }
    let call = interp::Launch {
        grid: launch.grid,
        args: &args,
    };
    interp::run(func, &call, &mut memory, &interp::Options::default())
        .map_err(|e| e.to_string())?;
    read(&memory, &buffers)
}

fn on_emu(compiled: &CompiledKernel, launch: &Launch<'_>) -> Result<Buffers, String> {
    check_count(compiled, launch)?;
    let module = emu::Module::parse(&compiled.ptx).map_err(|e| e.to_string())?;
    let mut memory = emu::Memory::new();
    let mut args = Vec::new();
    let mut buffers = Vec::new();
    for (given, param) in launch.args.iter().zip(&compiled.meta.params) {
        let (placed, places) = place(given, &mut memory);
        args.push(match placed {
            Placed::Pointer(address) => emu::Arg::pointer(address),
            Placed::Int(n) => emu::Arg::bytes(&n.to_le_bytes()[..param.bytes as usize]),
            Placed::Float(x) if param.bytes == 8 => emu::Arg::from(x),
            Placed::Float(x) => emu::Arg::from(x as f32),
        });
        buffers.push(places);
    }
    let call = emu::Launch {
        grid: launch.grid,
        block: compiled.meta.block(),
        shared_bytes: compiled.meta.shared,
        args: &args,
        options: emu::Options::default(),
    };
    emu::run(&module, &compiled.meta.name, &call, &mut memory).map_err(|e| e.to_string())?;
    read(&memory, &buffers)
}
