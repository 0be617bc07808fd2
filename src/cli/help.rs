//! Help that commands share: what they take, and how it is spelled.

/// What stands under the help of the whole command.
pub(super) const TOOL: &str = r#"FILE is a .py file with kernels in the Triton language or a .tir file in the text form of the IR; - is standard input,
.tir unless --lang py. `run` and `test` take several, `run` takes PTX too, `test` folders.
  tilelift compile add.py -n add -s "*fp32, *fp32, *fp32, i32, 1024" -t sm_90 -o add.ptx
  tilelift run add.py
`tilelift compile --help` says how signatures, constants and targets are spelled, `tilelift run --help` how run lines are.
Messages go to standard error, in colours on a terminal (NO_COLOR, CLICOLOR and CLICOLOR_FORCE as everywhere). The exit code is
1 if the input is wrong or a test fails, 2 if the command line is."#;

/// How kernels are chosen and specialised.
pub(super) const KERNEL: &str = r#"Of a .py file -n names a function with @triton.jit, and -s has an entry for each of its parameters, in order:
  *fp32, *ki8            a pointer, one to data that is only read
  i32, u8, fp16, bf16    a number known at launch: i1 i8 i16 i32 i64, u8 .. u64, fp16 bf16 fp32 fp64, fp8e4nv fp8e5
  *fp32:16, i32:16, i32:1    the same with a promise: a multiple of 16 (bytes of a pointer; or :8, :4, :2), the number one
  1024, 0.5, True, None, 'text', fp16, @relu    a constant, for a `tl.constexpr`: @relu is a function of the file
  (*fp32, i32, 4), Stats(*fp32, i32)    a tuple, an object of a class of the file
  tensordesc<fp16[64, 32]>    a tensor descriptor with the extents of its block
-c NAME=VALUE gives a constant by name: to a parameter behind those of the signature, to **META, or to the module.
A .tir file states types and constants itself; -n names one of its kernels.
TARGET is sm_70, sm_75, sm_80, sm_86, sm_89, sm_90, sm_90a, sm_100 or sm_120, with or without sm_."#;

/// What the cache is.
pub(super) const CACHE: &str = "The cache is the folder that TILELIFT_CACHE_DIR names, or one where the system keeps caches; \
`tilelift info` shows it. The actions take no file, and `export` a folder, which is made if it is not there.";

/// Where manifests come from, and what is made of them.
pub(super) const WARM: &str = r#"A manifest lists kernels with what they are compiled for. An application writes it while it runs, or somebody writes it:
  TILELIFT_RECORD=service.manifest ./service
  tilelift warm service.manifest
What is made goes into the cache that TILELIFT_CACHE_DIR names (else where the system keeps caches), and stays as it is where it is there
already. On a machine without a GPU, `-t sm_90a --assembler ptxas` makes what the GPUs take; `tilelift cache export` ships it.

  # By hand: a file, relative to the manifest, and for each kernel the types of the parameters that take arguments; constants by name.
  file softmax kernels/softmax.py
  kernel softmax softmax "*fp32:16, *fp32:16, i32:16, i32" BLOCK=1024 num_warps=8
Keys beside constants: num_warps num_ctas num_stages max_registers fp_fusion lines debug promote roles persistent target.
A line that is wrong ends the command before anything is made; a kernel that the file lacks, or that cannot be compiled or assembled, is
reported, and leaves the others made. At the end every entry is looked for in the cache, and in the store that TILELIFT_CACHE_SHARED names, which is
given what it lacks and is waited for; entries that are missing are reported with the reason. The exit code is 1 in each of these cases."#;

/// What pictures show.
pub(super) const SHOW: &str = r#"`--picture lines` is where to begin with a slow kernel: it runs it on the emulator and says which line of the source moves more bytes
than it uses, or meets in few banks of shared memory. The others say why.
  tilelift show softmax.py -n softmax -s "*fp32:16, *fp32:16, i32, i32, 128" --picture lines \
    --args "grid(4) out=f32[400] poison x=f32[400] normal(1) stride=100 columns=100"
  tilelift show matmul.tir --picture schedule --svg schedule.svg

A layout says which thread holds which element of a block, and in which of its registers: each element reads thread:register,
and warp W has threads 32 W to 32 W + 31. `tilelift compile --emit layout` says which value has which layout.
  tilelift show softmax.py -n softmax -s "*fp32:16, *fp32:16, i32, 128"
  tilelift show matmul.py -n matmul -s "*fp16:16, *fp16:16, *fp32:16, 64, 64, 32" --layout 3 --by warp --svg layout.svg"#;

/// Behind the options of `completions`.
pub(super) const COMPLETIONS: &str = r#"Takes no file. For bash: tilelift completions bash > ~/.local/share/bash-completion/completions/tilelift"#;

/// How a kernel is measured.
pub(super) const BENCH: &str = r#"On a GPU each point is launched as `do_bench` of Triton does: for --warmup milliseconds, then for --rep, each launch timed by
itself with nothing of its data in the L2 cache; the table has the median and the times that a fifth is below and above. The emulator
measures no time: it counts instructions, sectors of memory and trips through shared memory.
Bytes (read and written, once each) and floating-point operations are counted by the interpreter, which takes its time for large
launches: --bytes and --flops say what they come to instead. Rates are set beside what the device can do at its highest clocks.

`$NAME` and `$(..)` in --args, -s and -c mean the values of a sweep, numbers that the line gives to parameters, and the kernel's
constants. An expression has + - * /, parentheses, cdiv(a, b), next_power_of_2(a), min(a, b), max(a, b). Write it in single
quotes: a shell has a `$` of its own.
  tilelift bench softmax.py -n softmax -s '*fp32:16, *fp32:16, i32:16, i32, $(next_power_of_2(N))' --sweep N=256..8192 \
    --args 'grid(4096) out=f32[$(4096*N)] poison x=f32[$(4096*N)] normal(1) stride=$N columns=$N' \
    --bytes '8*4096*N' --save before.json
  tilelift bench .. --compare before.json --plot softmax.svg"#;

/// How a kernel is tuned.
#[cfg(feature = "triton")]
pub(super) const TUNE: &str = r#"All that @triton.autotune of the kernel lists is tried for one launch: `tilelift tune` says what each costs, what was not tried and
why, and which was chosen by which rule. On a GPU the cost is time; on the emulator a number made of what it counts. What was found
is kept in the cache for launches with the same key; --fresh asks anew. Types of parameters follow from the arguments as in a
launch: buffers have theirs, whole numbers are i32 or i64, others fp32.
  tilelift tune add.py -n add --args 'grid($(cdiv(n,BLOCK))) x=f32[$n] normal(1) out=f32[$n] poison n=1000000'"#;
