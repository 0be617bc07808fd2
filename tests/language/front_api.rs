//! What the front end tells of a file beside the kernels' code: parameters, decorators, options.
use tilelift::front::diagnostic::Code;
use tilelift::front::types::DType;
use tilelift::front::{ArgSpec, Constant, Module, Specialization, TuneConfig, parse_signature};
use tilelift::settings::Target;

const TEXT: &str = r#"import torch
import triton
import triton.language as tl

SIZES = [32, 64]


def configs():
    return [
        triton.Config({"BLOCK": size, "FAST": True}, num_warps=warps, num_stages=3)
        for size in SIZES
        for warps in (4, 8)
        if size * warps <= 256
    ]


def is_aligned(args):
    return args["n"] % args["BLOCK"] == 0


@triton.autotune(configs=configs(), key=["n", "stride"], reset_to_zero=["out"])
@triton.heuristics({
    "BLOCK": lambda args: triton.next_power_of_2(args["n"]),
    "EVEN": is_aligned,
    "HAS_BIAS": lambda args: args["bias"] is not None,
})
@triton.jit(do_not_specialize=["n", 3], do_not_specialize_on_alignment=["stride"])
def kernel(out, n, stride, m, bias, BLOCK: tl.constexpr, EVEN: tl.constexpr, HAS_BIAS: tl.constexpr, FAST: tl.constexpr = False):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for i in range(m):
        tl.store(out + at * stride, i + n)


@triton.autotune([triton.Config({"N": 16}), triton.Config(kwargs={"N": 32}, num_ctas=2, maxnreg=64)], [])
@triton.jit
def plain(x, N: tl.constexpr):
    tl.store(x + tl.arange(0, N), 1)


@triton.autotune(configs=torch.load("configs"), key=[])
@triton.jit
def unknown(x):
    pass
"#;

fn module() -> Module {
    Module::parse("api.py", TEXT).expect("it parses")
}

#[test]
fn parameters_say_how_to_specialise_them() {
    let kernels = module().kernels();
    let kernel = kernels.iter().find(|k| k.name == "kernel").expect("there");
    let flags: Vec<(&str, bool, bool, bool)> = kernel
        .params
        .iter()
        .map(|p| {
            (
                p.name.as_str(),
                p.constexpr,
                p.specialize,
                p.specialize_alignment,
            )
        })
        .collect();
    assert_eq!(
        flags,
        [
            ("out", false, true, true),
            ("n", false, false, false),
            ("stride", false, true, false),
            ("m", false, false, false),
            ("bias", false, true, true),
            ("BLOCK", true, false, false),
            ("EVEN", true, false, false),
            ("HAS_BIAS", true, false, false),
            ("FAST", true, false, false),
        ]
    );
}

#[test]
fn configurations_are_data() {
    let tuning = module().tuning(Some("kernel")).expect("it evaluates");
    let config = |block, warps| TuneConfig {
        constants: vec![
            ("BLOCK".into(), Constant::Int(block)),
            ("FAST".into(), Constant::Bool(true)),
        ],
        num_warps: Some(warps),
        num_stages: Some(3),
        ..TuneConfig::default()
    };
    assert_eq!(
        tuning.configs,
        [config(32, 4), config(32, 8), config(64, 4)]
    );
    assert_eq!(tuning.key, ["n", "stride"]);
    assert_eq!(tuning.reset_to_zero, ["out"]);
    let names: Vec<&str> = tuning.heuristics.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(names, ["BLOCK", "EVEN", "HAS_BIAS"]);
    assert_eq!(tuning.heuristics[1].1, "is_aligned");

    let tuning = module().tuning(Some("plain")).expect("it evaluates");
    assert_eq!(tuning.configs.len(), 2);
    assert_eq!(tuning.configs[1].num_ctas, Some(2));
    assert_eq!(tuning.configs[1].maxnreg, Some(64));
    assert_eq!(
        tuning.configs[1].constants,
        [("N".to_owned(), Constant::Int(32))]
    );
}

#[test]
fn what_only_the_host_knows_is_located() {
    let messages = module().tuning(Some("unknown")).expect_err("no file here");
    assert_eq!(messages.list.len(), 1, "{messages}");
    assert!(messages.to_string().contains("api.py:40:26"), "{messages}");
}

#[test]
fn configurations_that_statements_and_functions_make_are_found() {
    let text = "\
import itertools, os
import triton

def is_cuda():
    return triton.runtime.driver.active.get_current_target().backend == 'cuda'

def of_cuda():
    found = []
    for a, b in itertools.product([1, 2], [3, 4]):
        found.append(triton.Config({'A': a, 'B': b}))
    return found

def of_others():
    return [triton.Config({'A': 9, 'B': 9})]

def all_of_them():
    if is_cuda():
        return of_cuda()
    else:
        return of_others()

A = 5
configs = []
for b in [6, 7, 8]:
    configs.append(triton.Config({'A': A, 'B': b}))
if 'PYTEST_VERSION' in os.environ:
    configs = configs[:1]
A = 6

def keep(config):
    return config.kwargs['B'] > 6

@triton.autotune(all_of_them(), ['n'])
@triton.jit
def first(x, n, A, B):
    pass

@triton.autotune(list(filter(keep, configs)), ['n'])
@triton.jit
def second(x, n, A, B):
    pass
";
    let module = Module::parse("config.py", text).expect("it is Python");
    let constants = |kernel: &str| {
        let tuning = module.tuning(Some(kernel)).expect("configurations");
        let of = |config: TuneConfig| {
            let values = config.constants.into_iter().map(|(_, value)| value);
            values.collect::<Vec<Constant>>()
        };
        tuning.configs.into_iter().map(of).collect::<Vec<_>>()
    };
    let pairs = |pairs: &[(i128, i128)]| {
        let pair = |(a, b): &(i128, i128)| vec![Constant::Int(*a), Constant::Int(*b)];
        pairs.iter().map(pair).collect::<Vec<_>>()
    };
    assert_eq!(constants("first"), pairs(&[(1, 3), (1, 4), (2, 3), (2, 4)]));
    assert_eq!(constants("second"), pairs(&[(5, 7), (5, 8)]));
}

#[test]
fn numbers_of_configurations_are_numbers() {
    let tuning = |decorator: &str| {
        let text = format!(
            "import triton\n@triton.autotune({decorator})\n@triton.jit\ndef f(x, n, B):\n    pass\n"
        );
        let module = Module::parse("config.py", &text).expect("it is Python");
        module.tuning(None)
    };
    let config = |number: &str| format!("[triton.Config({{'B': 1}}, {number})], ['n']");
    for fine in [
        "num_warps=8",
        "4, 3, 1, None",
        "num_stages=1 + 1",
        "maxnreg=64",
    ] {
        assert!(tuning(&config(fine)).is_ok(), "{fine}");
    }
    for (number, found) in [
        (
            "num_warps=-4",
            "`num_warps` of a configuration is the constant -4",
        ),
        (
            "num_warps=2.5",
            "`num_warps` of a configuration is the constant 2.5",
        ),
        (
            "num_warps='4'",
            "`num_warps` of a configuration is the string \"4\"",
        ),
        (
            "4, -1",
            "`num_stages` of a configuration is the constant -1",
        ),
        (
            "num_ctas=(1, 2)",
            "`num_ctas` of a configuration is a tuple of 2",
        ),
        ("maxnreg=2**40", "`maxnreg` of a configuration is"),
        ("num_warp=8", "`triton.Config` has no parameter `num_warp`"),
        (
            "4, 3, 1, None, None, None, 5",
            "`triton.Config` takes 7 arguments",
        ),
    ] {
        let text = tuning(&config(number)).expect_err(number).to_string();
        assert!(text.contains(found), "{text}");
        assert!(text.contains("config.py:2:"), "{text}");
    }
    for (decorator, place) in [
        ("[triton.Config({})], 'n'", "2:39"),
        ("[triton.Config({})], ['n', 1]", "2:39"),
        ("[triton.Config({})], ['n'], reset_to_zero=x", "2:60"),
        ("[triton.Config({})], ['n'], restore_value='x'", "2:60"),
    ] {
        let text = tuning(decorator).expect_err(decorator).to_string();
        assert!(text.contains(place), "{text}");
    }
    let none = tuning("[triton.Config({})], [], reset_to_zero=None");
    assert_eq!(none.map(|tuning| tuning.reset_to_zero), Ok(vec![]));
    for (decorator, found) in [
        (
            "5, ['n']",
            "expected a list of configurations, found the constant 5",
        ),
        ("[5], ['n']", "expected triton.Config, found the constant 5"),
        (
            "[(4, 8)], ['n']",
            "expected triton.Config, found a tuple of 2",
        ),
        (
            "[triton.Config({'B': print})], ['n']",
            "expected a constant, found",
        ),
        (
            "[triton.Config({})], ['n'], warmup='long'",
            "expected milliseconds, found the string \"long\"",
        ),
        (
            "[triton.Config({})], ['n'], rep=-1",
            "expected milliseconds, found the constant -1",
        ),
    ] {
        let text = tuning(decorator).expect_err(decorator).to_string();
        assert!(text.contains(found), "{text}");
    }
    let config = "triton.Config({'A': None, 'B': 1.5, 'C': 'x', 'D': triton.language.int8})";
    let read = tuning(&format!("[{config}], [], warmup=2.5, rep=None")).expect("constants");
    let constants = [
        ("A", Constant::None),
        ("B", Constant::Float(1.5)),
        ("C", Constant::Str("x".to_owned())),
        ("D", Constant::Type(DType::Int8)),
    ]
    .map(|(name, c)| (name.to_owned(), c));
    assert_eq!(read.configs[0].constants, constants);
    assert_eq!((read.warmup, read.rep), (Some(2.5), None));
    // Without configurations nothing is tuned; the key says when to choose anew.
    let keyed = tuning("key=['n']").expect("a key alone");
    assert_eq!((keyed.configs, keyed.key), (vec![], vec!["n".to_owned()]));
}

/// Configurations that statements add count; what only Python knows to add is passed over, for it costs time alone.
#[test]
fn configurations_are_added() {
    let text = r#"
import triton, triton.language as tl
from elsewhere import more

def config(n, warps=4):
    return triton.Config({"N": n}, num_warps=warps)

CONFIGS = [config(1)]
CONFIGS.append(config(2))
CONFIGS += [config(3)]
CONFIGS.extend(more())
CONFIGS[0] = config(4, warps=8)
OTHERS = CONFIGS
for n in more():
    OTHERS.append(config(n))

@triton.autotune(CONFIGS, ["n"])
@triton.heuristics({"M": lambda args: 1})
@triton.jit
def kernel(x, n, N: tl.constexpr, M: tl.constexpr):
    tl.store(x, n + N + M)
"#;
    let module = Module::parse("m.py", text).expect("it parses");
    let tuning = module.tuning(None).expect("it evaluates");
    let found = tuning
        .configs
        .iter()
        .map(|c| (c.constants[0].1.clone(), c.num_warps));
    let found: Vec<_> = found.collect();
    let wanted = [(4, 8), (2, 4), (3, 4)];
    let wanted = wanted.map(|(n, warps)| (Constant::Int(n), Some(warps)));
    assert_eq!(found, wanted);
}

/// What calls decorate behind a function's text is decorated, outermost last, under its own name or another one.
#[test]
fn calls_of_decorators_decorate() {
    let text = r#"
import somewhere
import triton, triton.language as tl

def kernel(x, M: tl.constexpr):
    tl.store(x, M)

kernel = triton.jit(kernel, do_not_specialize=["x"])
kernel = triton.heuristics({"M": lambda args: 1})(kernel)
CONFIGS = [triton.Config({"M": 2}, num_warps=8)]
tuned = triton.autotune(configs=CONFIGS, key=["x"])(kernel)

def plain(x):
    return x

plain = triton.heuristics({"x": lambda args: 1})(plain)

def changed(x):
    tl.store(x, 1)

changed = somewhere.wrapped(changed)
changed = triton.jit(changed)

def several(x):
    tl.store(x, 1)

several, other = triton.jit(several), 1
"#;
    let module = Module::parse("m.py", text).expect("it parses");
    let kernels = module.kernels();
    let found: Vec<_> = kernels
        .iter()
        .map(|k| (k.name.as_str(), k.line, k.params[0].specialize))
        .collect();
    assert_eq!(found, [("kernel", 5, false), ("tuned", 11, false)]);
    let of = |name| module.tuning(Some(name)).expect("it evaluates");
    let [kernel, tuned] = [of("kernel"), of("tuned")];
    assert_eq!((kernel.configs.len(), kernel.heuristics.len()), (0, 1));
    assert_eq!((tuned.configs.len(), tuned.heuristics.len()), (1, 1));
    assert_eq!(tuned.configs[0].num_warps, Some(8));
}

/// A table of heuristics that is added to has the entries of then; one that is changed otherwise is none.
#[test]
fn heuristics_are_added() {
    let text = r#"
import triton, triton.language as tl

TABLE = {"M": lambda args: 1}
TABLE["N"] = lambda args: 2
TABLE["M"] = lambda args: 3
OTHER = {"M": lambda args: 1}

def change(n):
    OTHER["N"] = lambda args: n

@triton.heuristics(TABLE)
@triton.jit
def kernel(x, M: tl.constexpr, N: tl.constexpr):
    tl.store(x, N + M)

@triton.heuristics(OTHER)
@triton.jit
def changed(x, M: tl.constexpr, N: tl.constexpr):
    tl.store(x, N + M)
"#;
    let module = Module::parse("m.py", text).expect("it parses");
    let found = module
        .heuristics(Some("kernel"), &[])
        .expect("it evaluates");
    let wanted = [("M", 3), ("N", 2)].map(|(name, n)| (name.to_owned(), Constant::Int(n)));
    assert_eq!(found, wanted);
    let messages = module
        .heuristics(Some("changed"), &[])
        .expect_err("it is not known");
    assert!(
        messages.to_string().contains("a table of functions"),
        "{messages}"
    );
}

#[test]
fn heuristics_are_a_table_of_functions() {
    let heuristics = |table: &str, args: &[(String, ArgSpec)]| {
        let text = format!(
            "import triton\nimport triton.language as tl\nTABLE = {{'A': lambda args: args['n']}}\n@triton.heuristics({table})\n@triton.jit\ndef f(n, A):\n    pass\n"
        );
        let module = Module::parse("table.py", &text).expect("it is Python");
        module.heuristics(None, args)
    };
    let n = |arg| [("n".to_owned(), arg)];
    let seven = n(ArgSpec::Constant(Constant::Int(7)));
    let found = heuristics("TABLE", &seven).expect("a table of the module");
    assert_eq!(found, [("A".to_owned(), Constant::Int(7))]);
    for table in ["NONE", "f()", "{1: lambda args: 1}", "{**TABLE}", ""] {
        let text = heuristics(table, &seven).expect_err(table).to_string();
        assert!(
            text.contains("heuristics are a table of functions by name"),
            "{text}"
        );
        assert!(text.contains("table.py:4:"), "{text}");
    }
    // What a caller gives is seen by the functions, and what they give is a constant.
    let float16 = n(ArgSpec::Constant(Constant::Type(DType::Float16)));
    let types = "{'A': lambda args: args['n'] if args['n'] == tl.float16 else 0}";
    let found = heuristics(types, &float16).expect("a type");
    assert_eq!(found[0].1, Constant::Type(DType::Float16));
    let pair = parse_signature("(3, (*fp32, 'x'))")
        .expect("a tuple")
        .remove(0);
    let parts = "{'A': lambda args: args['n'][1][1] + str(args['n'][0])}";
    let found = heuristics(parts, &n(pair.clone())).expect("parts");
    assert_eq!(found[0].1, Constant::Str("x3".to_owned()));
    let pointer = "{'A': lambda args: args['n'][1][0]}";
    let text = heuristics(pointer, &n(pair))
        .expect_err("a pointer")
        .to_string();
    assert!(text.contains("expected a constant, found"), "{text}");
}

#[test]
fn heuristics_are_called() {
    let module = module();
    let pointer = parse_signature("*fp32").expect("a type").remove(0);
    let int = |n| ArgSpec::Constant(Constant::Int(n));
    let args = [
        ("out".to_owned(), pointer.clone()),
        ("n".to_owned(), int(100)),
        ("bias".to_owned(), pointer),
    ];
    let found = module
        .heuristics(Some("kernel"), &args)
        .expect("they have values");
    let expected = [
        ("BLOCK", Constant::Int(128)),
        ("EVEN", Constant::Bool(false)),
        ("HAS_BIAS", Constant::Bool(true)),
    ]
    .map(|(name, c)| (name.to_owned(), c));
    assert_eq!(found, expected);

    let args = [
        ("n".to_owned(), int(64)),
        ("bias".to_owned(), ArgSpec::Constant(Constant::None)),
    ];
    let found = module
        .heuristics(Some("kernel"), &args)
        .expect("they have values");
    assert_eq!(found[1].1, Constant::Bool(true));
    assert_eq!(found[2].1, Constant::Bool(false));

    let messages = module.heuristics(Some("kernel"), &[]).expect_err("no n");
    assert_eq!(messages.list[0].code, Code::Name, "{messages}");
}

#[test]
fn options_reach_the_kernel() {
    let module = module();
    let args = parse_signature("*i32:16, i32, i32, i32, None, 16, False, False").expect("types");
    let mut spec = Specialization::new(args, Target::SM_80);
    spec.num_stages = Some(5);
    spec.num_warps = 8;
    let text = |spec: &Specialization| {
        let lowered = module.lower(Some("kernel"), spec);
        lowered.expect("it compiles").func.to_string()
    };
    let plain = text(&spec);
    assert!(plain.contains("warps(8)"), "{plain}");
    assert!(
        !plain.contains("stages"),
        "its loop multiplies no matrices: {plain}"
    );
    assert!(!plain.contains("assert"), "{plain}");

    spec.debug = true;
    let checked = text(&spec);
    assert!(checked.contains("int32 overflow in addition"), "{checked}");
    spec.sanitize_overflow = false;
    assert_eq!(text(&spec), plain);

    // The work of two CTAs of 8 warps, in one.
    spec.num_ctas = 2;
    assert_eq!(text(&spec), plain.replace("warps(8)", "warps(16)"));
    let lowered = module.lower(Some("kernel"), &spec).expect("it compiles");
    let notes = lowered.notes.to_string();
    let notice = "warning[F22]: a program for 2 CTAs runs in one of 2 times the warps";
    assert_eq!(notes.matches(notice).count(), 1, "{notes}");
    spec.num_ctas = 8;
    let messages = module.lower(Some("kernel"), &spec).expect_err("64 warps");
    assert_eq!(messages.list[0].code, Code::Argument, "{messages}");
    let words = "use 4 warps, or fewer CTAs";
    assert!(messages.to_string().contains(words), "{messages}");
}

/// As in Triton: where nobody says how many products of 8-bit floats may be summed with few bits, a target whose units sum so takes
/// any number, and others none.
#[test]
fn sums_of_eight_bits_are_as_exact_as_the_target_is_by_itself() {
    const PRODUCT: &str = r#"import triton.language as tl

@triton.jit
def kernel(x, y, out, SAID: tl.constexpr):
    at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(out + at, tl.dot(tl.load(x + at), tl.load(y + at), max_num_imprecise_acc=SAID))
"#;
    let module = Module::parse("product.py", PRODUCT).expect("it parses");
    let imprecise = |factors: [&str; 2], said: &str, target| {
        let [x, y] = factors;
        let signature = format!("*{x}, *{y}, *fp32, {said}");
        let args = parse_signature(&signature).expect("a signature");
        let spec = Specialization::new(args, target);
        let lowered = module.lower(Some("kernel"), &spec).expect("it is right");
        let text = lowered.func.to_string();
        let (_, rest) = text.split_once("imprecise = ")?;
        let number = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        Some(number.parse::<u64>().expect("a number"))
    };
    let eight = ["fp8e4nv", "fp8e5"];
    assert_eq!(imprecise(eight, "None", Target::SM_90A), Some(1 << 30));
    assert_eq!(imprecise(eight, "None", Target::SM_90), None);
    assert_eq!(imprecise(eight, "None", Target::SM_89), None);
    assert_eq!(imprecise(eight, "0", Target::SM_90A), None);
    assert_eq!(imprecise(eight, "64", Target::SM_90A), Some(64));
    assert_eq!(imprecise(eight, "64", Target::SM_89), Some(64));
    assert_eq!(imprecise(["fp16", "fp16"], "None", Target::SM_90A), None);
    assert_eq!(imprecise(["fp16", "fp16"], "64", Target::SM_90A), None);
}
