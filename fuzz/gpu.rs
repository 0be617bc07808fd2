//! Generated kernels on the GPU of this machine, beside interpreter and emulator.
//!
//! Each kernel is judged as by `tile_ir`, for a target whose code the GPU runs, most often its own. If its PTX has no approximate
//! instruction it is then launched on several inputs, which are made from numbers (`src/fuzzing/batch.rs`): each must leave what
//! the emulator leaves, bit for bit but for NaNs, and the bytes around the buffers as they were. The driver assembles one kernel
//! after the other in each process, so several processes with other seeds use a machine better than one. With
//! `TILELIFT_ROUNDS=N` each input is launched so often. With `TILELIFT_KEEP=FILE` the PTX that the driver is given lies there, for when it takes the process along.

use tilelift::compile::CompiledKernel;
use tilelift::driver::{
    Arg, Buffer, Context, Device, Driver, DriverError, LaunchSpec, Module, ParamSize, Stream,
    launch,
};
use tilelift::fuzzing::batch::{Tables, emulate_launch, exact_kernel, launch_number, with_input};
use tilelift::fuzzing::generate::{Argument, Case, case};
use tilelift::fuzzing::reduce_case::reduce_case;
use tilelift::fuzzing::tile_ir::{check_case, first_difference, is_sound, show};
use tilelift::fuzzing::{Verdict, number, run};
use tilelift::settings::Target;

/// Inputs of a kernel.
const INPUTS: u64 = 4;
/// Bytes before, between and behind buffers, which nobody may touch.
const GAP: usize = 512;
/// What they hold.
const POISON: u8 = 0xa5;
/// Further launches of what went wrong: what goes wrong at times alone is a race and is not shrunk.
const AGAIN: usize = 50;
/// The same while a case is shrunk, where each counts: the driver takes a second to assemble a large kernel.
const AGAIN_WHEN_SHRUNK: usize = 3;
/// Differences that are shown.
const SHOWN: usize = 12;
/// Bytes of device memory for a launch.
const ROOM: usize = 1 << 24;

/// An open device.
struct Gpu {
    context: Context,
    stream: Stream,
    room: Buffer,
    /// Whose code it runs; its own last.
    targets: Vec<Target>,
    tables: Tables,
    /// Launches of each input.
    rounds: usize,
}

impl Gpu {
    fn open(rounds: usize) -> Result<Gpu, DriverError> {
        Driver::load()?;
        let context = Context::new(&Device::get(0)?)?;
        let stream = Stream::new(&context)?;
        let room = Buffer::new(&context, ROOM)?;
        let capability = context.device().capability;
        let runs = |target: &Target| capability.runs(&target.to_string()) == Some(true);
        Ok(Gpu {
            targets: Target::ALL.into_iter().filter(runs).collect(),
            tables: Tables::new(1),
            rounds,
            context,
            stream,
            room,
        })
    }

    /// The buffers that a launch leaves.
    fn run(&self, kernel: &Loaded<'_>, case: &Case) -> Result<Vec<Vec<u8>>, String> {
        let mut image = vec![POISON; GAP];
        let mut places = Vec::new();
        for arg in &case.args {
            if let Argument::Buffer(_, bytes) = arg {
                places.push(image.len()..image.len() + bytes.len());
                image.extend(bytes);
                image.resize((image.len() + GAP).next_multiple_of(256), POISON);
            }
        }
        let after = self.call(kernel, case, &places, &image);
        let after = after.map_err(|e| e.to_string())?;
        let mut end = 0;
        for place in &places {
            if after[end..place.start] != image[end..place.start] {
                return Err("bytes between buffers were written".to_owned());
            }
            end = place.end;
        }
        if after[end..] != image[end..] {
            return Err("bytes behind the buffers were written".to_owned());
        }
        Ok(places.into_iter().map(|p| after[p].to_vec()).collect())
    }

    /// The memory of `image` after a launch whose buffers lie in these places of it.
    fn call(
        &self,
        kernel: &Loaded<'_>,
        case: &Case,
        places: &[std::ops::Range<usize>],
        image: &[u8],
    ) -> Result<Vec<u8>, DriverError> {
        let room = self.room.slice(0..image.len())?;
        room.write(&self.stream, image)?;
        let words: Vec<[u8; 8]> = case.args.iter().map(word).collect();
        let mut places = places.iter();
        let mut args = Vec::new();
        for (arg, word) in case.args.iter().zip(&words) {
            args.push(match arg {
                Argument::Buffer(..) => {
                    let place = places.next().cloned().unwrap_or_default();
                    Arg::Pointer(room.slice(place)?)
                }
                Argument::Number(elem, _) => Arg::Bytes(&word[..elem.bytes() as usize]),
            });
        }
        let function = kernel.module.function(&kernel.kernel.meta.name)?;
        launch(&function, &kernel.spec(), case.grid, &self.stream, &args)?;
        let mut after = vec![0; image.len()];
        room.read(&self.stream, &mut after)?;
        Ok(after)
    }

    /// What the GPU does to a kernel and the emulator does not, and on which input; none if there is nothing to compare.
    /// What goes wrong is launched `again` so often, and loaded anew so often.
    fn differs(&self, seed: u64, case: &Case, again: usize) -> Option<Result<(), Wrong>> {
        let kernel = exact_kernel(case)?;
        // The emulator first, as it bounds what the GPU has to do.
        let mut launches = Vec::new();
        for input in 0..INPUTS {
            let other = with_input(case, &self.tables, launch_number(seed, input));
            let (wanted, _) = emulate_launch(&kernel, &other, false).ok()?;
            launches.push((other, wanted));
        }
        if let Some(file) = std::env::var_os("TILELIFT_KEEP") {
            std::fs::write(file, &kernel.ptx).expect("TILELIFT_KEEP can be written");
        }
        let module = match Module::load(&self.context, &kernel.ptx) {
            Ok(module) => module,
            Err(e) => {
                return Some(Err(Wrong {
                    case: case.clone(),
                    always: true,
                    message: format!("{e}\n{}", kernel.ptx),
                }));
            }
        };
        let loaded = Loaded::new(&kernel, module);
        let once = |(case, wanted): &(Case, Vec<Vec<u8>>)| match self.run(&loaded, case) {
            Ok(found) => difference(case, wanted, &found),
            Err(wrong) => Some(wrong),
        };
        let all = launches.iter().enumerate().cycle();
        let all = all.take(launches.len() * self.rounds);
        let mut wrong = all.filter_map(|(input, launch)| Some((input, launch, once(launch)?)));
        let Some((input, launch, wrong)) = wrong.next() else {
            return Some(Ok(()));
        };
        let wrong_again = (0..again).filter(|_| once(launch).is_some()).count();
        // Loaded anew each time, in case that matters.
        let anew = || {
            let module = Module::load(&self.context, &kernel.ptx).ok()?;
            let (case, wanted) = launch;
            let found = self.run(&Loaded::new(&kernel, module), case).ok()?;
            difference(case, wanted, &found)
        };
        let loaded_anew = (0..again).filter(|_| anew().is_some()).count();
        Some(Err(Wrong {
            case: launch.0.clone(),
            always: wrong_again == again,
            message: format!(
                "input {input}, {wrong_again} of {again} times more, {loaded_anew} when loaded anew: {wrong}\n{}",
                kernel.ptx
            ),
        }))
    }

    fn check(&self, seed: u64) -> Verdict {
        let mut case = case(seed);
        case.func.name = format!("k{seed}");
        let own = self.targets.len() - 1;
        let other = (seed / 2) as usize % self.targets.len();
        case.target = self.targets[if seed.is_multiple_of(2) { own } else { other }];
        let mut notes = match check_case(&case) {
            Verdict::Passed(notes) => notes,
            other => return other,
        };
        match self.differs(seed, &case, AGAIN) {
            None => notes.push("not launched"),
            Some(Ok(())) => notes.push("launched"),
            Some(Err(first)) => {
                if !is_sound(&first.case) {
                    return Verdict::Skipped("undefined on another input");
                }
                if !first.always {
                    return Verdict::Failed(format!("GPU: {}\n{}", first.message, show(&case)));
                }
                // What the interpreter finds fault with may differ, so nothing is shrunk to that.
                let wrong = |case: &Case| match self.differs(seed, case, AGAIN_WHEN_SHRUNK) {
                    Some(Err(wrong)) if wrong.always && is_sound(&wrong.case) => {
                        Some(wrong.message)
                    }
                    _ => None,
                };
                let small = reduce_case(&case, |case| is_sound(case) && wrong(case).is_some());
                let message = wrong(&small).unwrap_or(first.message);
                return Verdict::Failed(format!("GPU: {message}\n{}", show(&small)));
            }
        }
        Verdict::Passed(notes)
    }
}

/// A launch that went wrong.
struct Wrong {
    case: Case,
    /// Whether it goes wrong each time.
    always: bool,
    /// How it did.
    message: String,
}

/// A kernel in the GPU's memory.
struct Loaded<'a> {
    kernel: &'a CompiledKernel,
    module: Module,
    params: Vec<ParamSize>,
}

impl<'a> Loaded<'a> {
    fn new(kernel: &'a CompiledKernel, module: Module) -> Loaded<'a> {
        let sizes = kernel.meta.params.iter().map(ParamSize::from);
        Loaded {
            params: sizes.collect(),
            kernel,
            module,
        }
    }

    fn spec(&self) -> LaunchSpec<'_> {
        LaunchSpec {
            name: &self.kernel.meta.name,
            block: self.kernel.meta.block(),
            cluster: [1, 1, 1],
            shared: self.kernel.meta.shared,
            params: &self.params,
        }
    }
}

/// The bytes of a number.
fn word(arg: &Argument) -> [u8; 8] {
    match arg {
        Argument::Buffer(..) => [0; 8],
        Argument::Number(_, bits) => bits.to_le_bytes(),
    }
}

/// Where the GPU left other bits than the emulator; none if nowhere.
fn difference(case: &Case, wanted: &[Vec<u8>], found: &[Vec<u8>]) -> Option<String> {
    let scalars = case.args.iter().filter_map(|arg| match arg {
        Argument::Buffer(scalar, _) => Some(*scalar),
        Argument::Number(..) => None,
    });
    let mut all = Vec::new();
    for (i, (scalar, (wanted, found))) in scalars.zip(wanted.iter().zip(found)).enumerate() {
        let size = scalar.bytes() as usize;
        let elements = wanted.chunks(size).zip(found.chunks(size)).enumerate();
        let differing = elements.filter(|(_, (x, y))| first_difference(scalar, x, y).is_some());
        all.extend(differing.map(|(at, (x, y))| {
            format!("buffer {i} ({scalar}) element {at}: emulator {x:02x?}, GPU {y:02x?}")
        }));
    }
    let count = all.len();
    all.truncate(SHOWN);
    (count > 0).then(|| format!("{count} elements\n{}", all.join("\n")))
}

#[test]
fn gpu() {
    let rounds = number("TILELIFT_ROUNDS").unwrap_or_else(|message| panic!("{message}"));
    let gpu = match Gpu::open(rounds.unwrap_or(1) as usize) {
        Ok(gpu) => gpu,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return;
        }
    };
    if gpu.targets.is_empty() {
        eprintln!("skipped: no target fits this GPU");
        return;
    }
    let report = run("gpu", |seed| gpu.check(seed));
    assert!(
        report.failures.is_empty(),
        "{} failures",
        report.failures.len()
    );
    assert!(
        report.notes.contains_key("launched"),
        "nothing was launched"
    );
}
