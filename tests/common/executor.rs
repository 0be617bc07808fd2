//! What runs kernels: the interpreter, the emulator, a GPU.

use tilelift::ir::function::TileFunction;

/// A kernel's argument on the host.
#[derive(Clone, Debug)]
pub(crate) enum HostArg {
    /// Device memory that holds these bytes before the launch, and is copied back after it.
    Buffer(Vec<u8>),
    /// Device memory of this many bytes whose contents before the launch mean nothing; an executor that tells
    /// written from unwritten bytes takes them for unwritten, others fill it with a pattern that no result has. The launch turns it into a `Buffer`.
    Output(usize),
    /// An i32.
    I32(i32),
    /// An f32.
    F32(f32),
}

impl HostArg {
    /// The bytes of a buffer.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            HostArg::Buffer(bytes) => bytes,
            HostArg::Output(_) | HostArg::I32(_) | HostArg::F32(_) => {
                panic!("{self:?} is no buffer that a launch has filled")
            }
        }
    }
}

/// Runs kernels.
pub(crate) trait Executor {
    /// Name for messages.
    fn name(&self) -> &str;

    /// Whether it can run here; if not, it has said why, and cases are skipped.
    fn is_present(&self) -> bool {
        true
    }

    /// Launches a kernel and copies buffers back.
    fn run(
        &mut self,
        func: &TileFunction,
        grid: [u32; 3],
        args: &mut [HostArg],
    ) -> Result<(), String>;
}

/// A launch of a case.
pub(crate) struct CaseLaunch {
    /// The kernel.
    pub(crate) func: TileFunction,
    /// Number of programs.
    pub(crate) grid: [u32; 3],
    /// Which of the case's arguments the kernel gets, in order.
    pub(crate) args: Vec<usize>,
}

/// Compares arguments after the launches with a reference.
pub(crate) type Check = Box<dyn Fn(&[HostArg]) -> Result<(), String>>;

/// Launches with data and the expected outcome.
pub(crate) struct Case {
    /// Name for messages.
    pub(crate) name: String,
    /// Arguments that the launches pick from.
    pub(crate) args: Vec<HostArg>,
    /// Launches, in order.
    pub(crate) launches: Vec<CaseLaunch>,
    /// What must hold afterwards.
    pub(crate) check: Check,
}

impl Case {
    /// A case of one launch that gets all arguments.
    pub(crate) fn single(
        name: String,
        func: TileFunction,
        grid: [u32; 3],
        args: Vec<HostArg>,
        check: impl Fn(&[HostArg]) -> Result<(), String> + 'static,
    ) -> Case {
        let launch = CaseLaunch {
            func,
            grid,
            args: (0..args.len()).collect(),
        };
        Case {
            name,
            args,
            launches: vec![launch],
            check: Box::new(check),
        }
    }
}

/// Runs cases and reports every one that fails.
pub(crate) fn run_cases(executor: &mut dyn Executor, cases: &[Case]) {
    assert!(!cases.is_empty());
    if !executor.is_present() {
        return;
    }
    let mut failures = Vec::new();
    for case in cases {
        if let Err(problem) = run_case(executor, case) {
            failures.push(format!("{} on {}: {problem}", case.name, executor.name()));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

fn run_case(executor: &mut dyn Executor, case: &Case) -> Result<(), String> {
    let mut args = case.args.clone();
    for launch in &case.launches {
        let mut picked: Vec<HostArg> = launch.args.iter().map(|&i| args[i].clone()).collect();
        executor.run(&launch.func, launch.grid, &mut picked)?;
        for (&i, arg) in launch.args.iter().zip(picked) {
            args[i] = arg;
        }
    }
    (case.check)(&args)
}
