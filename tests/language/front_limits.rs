//! Absurd source texts: each is refused with a located message, on a small stack.
use std::time::Instant;

use tilelift::front::diagnostic::{Code, Severity};
use tilelift::front::{Diagnostics, Module, Specialization, parse_signature};
use tilelift::settings::Target;

/// The stack that Rust gives to threads.
const STACK: usize = 2 << 20;

const HEADER: &str = "import triton\nimport triton.language as tl\n\n";

/// A kernel with one pointer and one integer.
fn kernel(body: &str) -> String {
    format!("{HEADER}@triton.jit\ndef f(x, n):\n{body}\n")
}

/// Lowers the kernel `f` on a small stack; none if it compiles.
fn refusal(bytes: Vec<u8>) -> Option<Diagnostics> {
    let run = move || {
        let module = match Module::parse_bytes("absurd.py", &bytes) {
            Ok(module) => module,
            Err(messages) => return Some(messages),
        };
        let args = parse_signature("*fp32, i32").expect("a signature");
        let spec = Specialization::new(args, Target::SM_80);
        module.lower(Some("f"), &spec).err()
    };
    let thread = std::thread::Builder::new().stack_size(STACK);
    let thread = thread.spawn(run).expect("a thread");
    thread.join().expect("no panic")
}

fn check(name: &str, text: impl Into<Vec<u8>>, code: Code) {
    let start = Instant::now();
    let messages = refusal(text.into()).unwrap_or_else(|| panic!("{name} compiles"));
    eprintln!("{name}: {:?}", start.elapsed());
    let first = messages.list.iter().find(|d| d.severity == Severity::Error);
    let first = first.unwrap_or_else(|| panic!("{name}: no error"));
    assert_eq!(first.code, code, "{name}: {}", messages.render(first));
    let shown = messages.to_string();
    assert!(shown.contains("--> absurd.py:"), "{name}: {shown}");
    assert!(
        shown.len() < 100_000,
        "{name}: a message of {} bytes",
        shown.len()
    );
}

/// Statements within each other.
fn nested(depth: usize, head: &str) -> String {
    let lines = (0..depth).map(|i| format!("{}{head}\n", " ".repeat(i + 1)));
    let end = format!("{}pass", " ".repeat(depth + 1));
    kernel(&(lines.collect::<String>() + &end))
}

#[test]
fn what_is_no_text_is_refused() {
    check("empty", "", Code::NoKernel);
    check("blank", "\n \n\t\n", Code::NoKernel);
    check("not utf-8", b"def f():\n    x = '\xff'\n", Code::Syntax);
    check("latin-1", b"# caf\xe9\n", Code::Syntax);
    check("nul", "def f():\n    \0\n", Code::Syntax);
    check("no kernel", "def f(x, n):\n    pass\n", Code::NoKernel);
    check(
        "unclosed",
        "@jit\ndef f(x, n):\n    y = (1,\n",
        Code::Syntax,
    );
    check(
        "unclosed text",
        "@jit\ndef f(x, n):\n    y = '''\n",
        Code::Syntax,
    );
    check(
        "dedent",
        "@jit\ndef f(x, n):\n        a = 1\n    b = 2\n",
        Code::Syntax,
    );
    check(
        "python 2",
        "@jit\ndef f(x, n):\n    print 'x'\n",
        Code::Syntax,
    );
    check("html", "<html><body>404</body></html>", Code::Syntax);
    check("large", " ".repeat(5 << 20), Code::Limit);
}

#[test]
fn what_is_nested_too_deeply_is_refused() {
    check("20000 ifs", nested(20_000, "if n > 0:"), Code::Limit);
    check("62 ifs", nested(62, "if n > 0:"), Code::Budget);
    check("62 loops", nested(62, "for i in range(n):"), Code::Budget);
    check(
        "brackets",
        kernel(&format!("    y = {}", "(".repeat(100_000))),
        Code::Limit,
    );
    let closed = format!("    y = {}1{}", "[".repeat(50_000), "]".repeat(50_000));
    check("lists", kernel(&closed), Code::Limit);
    check(
        "calls",
        kernel(&format!("    y = {}", "f(".repeat(5000))),
        Code::Limit,
    );
    let text = format!("    y = {}", "f'{".repeat(5000));
    check("f-strings", kernel(&text), Code::Limit);
    check(
        "signs",
        kernel(&format!("    y = {}1", "-".repeat(1_000_000))),
        Code::Limit,
    );
    check(
        "nots",
        kernel(&format!("    y = {}n", "not ".repeat(100_000))),
        Code::Limit,
    );
    check(
        "sums",
        kernel(&format!("    y = {}n", "n + ".repeat(1_000_000))),
        Code::Limit,
    );
    check(
        "powers",
        kernel(&format!("    y = {}2", "2 ** ".repeat(100_000))),
        Code::Limit,
    );
    check(
        "attributes",
        kernel(&format!("    y = x{}", ".T".repeat(100_000))),
        Code::Limit,
    );
    check(
        "lambdas",
        kernel(&format!("    y = {}1", "lambda: ".repeat(100_000))),
        Code::Limit,
    );
    check(
        "lambdas of two",
        kernel(&format!("    y = {}1", "lambda a, b: ".repeat(100_000))),
        Code::Limit,
    );
    for (name, part) in [
        ("yields", "yield "),
        ("yields of others", "yield from "),
        ("brackets closed by others", "[),"),
        ("braces closed by others", "{),"),
        ("calls closed by others", "n(],"),
    ] {
        check(
            name,
            kernel(&format!("    y = {}n", part.repeat(100_000))),
            Code::Limit,
        );
    }
    check(
        "operators within each other",
        kernel(&format!(
            "    y = {}n{}",
            format!("{}(", "n + ".repeat(25)).repeat(90),
            ")".repeat(90)
        )),
        Code::Limit,
    );
    let ternaries = format!("    y = {}1", "1 if n else ".repeat(100_000));
    check("ternaries", kernel(&ternaries), Code::Limit);
    let elifs = "    elif n > 1:\n        pass\n".repeat(5000);
    let elifs = format!("    if n > 0:\n        pass\n{elifs}");
    check("elifs", kernel(&elifs), Code::Budget);
    let decorators = "@a.b\n".repeat(50_000);
    check(
        "decorators",
        format!("{decorators}def f(x, n):\n    pass\n"),
        Code::NoKernel,
    );
}

/// What stays below the bounds of the text does not overflow the stack either.
#[test]
fn deep_expressions_are_walked() {
    let fits = |name: &str, body: String| {
        let messages = refusal(kernel(&body).into_bytes());
        assert!(messages.is_none(), "{name}: {}", messages.expect("some"));
    };
    fits("sums", format!("    y = {}n", "n + ".repeat(1_900)));
    fits("signs", format!("    y = {}n", "-".repeat(1_900)));
    let row = "(n + n + n + n) + ".repeat(900);
    fits("brackets beside each other", format!("    y = {row}n"));
    let row = "n + n + n, ".repeat(900);
    fits("elements", format!("    y = ({row}n,)"));
    fits(
        "operators within each other",
        format!(
            "    y = {}n{}",
            format!("{}(", "n + ".repeat(19)).repeat(90),
            ")".repeat(90)
        ),
    );
    fits(
        "ternaries",
        format!("    y = {}1", "1 if x is None else ".repeat(600)),
    );
    fits(
        "brackets",
        format!("    y = {}n{}", "(".repeat(95), ")".repeat(95)),
    );
    fits(
        "lists",
        format!("    y = {}n{}", "[".repeat(95), "]".repeat(95)),
    );
    let elifs = "    elif x is None:\n        pass\n".repeat(5000);
    fits("elifs", format!("    if x is None:\n        pass\n{elifs}"));
}

#[test]
fn what_grows_without_end_is_refused() {
    check(
        "recursion",
        format!("{HEADER}@jit\ndef g(n):\n    return g(n)\n\n@jit\ndef f(x, n):\n    g(n)\n"),
        Code::Budget,
    );
    let fib = "@jit\ndef g(k: tl.constexpr):\n    if k < 2:\n        return k\n    return g(k - 1) + g(k - 2)\n";
    check(
        "fibonacci",
        format!("{HEADER}{fib}\n@jit\ndef f(x, n):\n    g(60)\n"),
        Code::Budget,
    );
    check(
        "unrolling",
        kernel("    for i in tl.static_range(1 << 40):\n        pass"),
        Code::Budget,
    );
    let loops = "    for i in tl.static_range(60000):\n        for j in tl.static_range(60000):\n            pass";
    check("loops", kernel(loops), Code::Budget);
    let work = "    for i in tl.static_range(60000):\n        tl.store(x + i, tl.load(x) * n + i)";
    check("operations", kernel(work), Code::Budget);
    // One message, and none of those that it would cause.
    let branches = (1..200).map(|i| format!("    elif n == {i}:\n        y = {i}\n"));
    let branches: String = branches.collect();
    let branches = format!(
        "    if n == 0:\n        y = 0\n{branches}    else:\n        y = -1\n    tl.store(x, y)"
    );
    let returns: String = (0..200)
        .map(|i| format!("    if n == {i}:\n        return\n"))
        .collect();
    for (name, body) in [("branches", branches), ("returns", returns)] {
        check(name, kernel(&body), Code::Budget);
        let refused = refusal(kernel(&body).into_bytes()).expect("it is refused");
        assert_eq!(refused.list.len(), 1, "{name}: {refused}");
    }
    let tuple = "    t = (n, n)\n    for i in tl.static_range(200):\n        t = t + t";
    check("tuples", kernel(tuple), Code::Budget);
    let tuple = "    t = (n, n)\n    for i in tl.static_range(200):\n        t = (t, t)";
    check("shared tuples", kernel(tuple), Code::Budget);
    check(
        "repeated",
        kernel("    t = (1, 2) * (1 << 40)"),
        Code::Value,
    );
    check(
        "comprehension",
        kernel("    t = [i for i in range(1 << 50)]"),
        Code::Budget,
    );
    let text = "    s: tl.constexpr = 'abc'\n    for i in tl.static_range(100):\n        s: tl.constexpr = s + s";
    check("strings", kernel(text), Code::Arithmetic);
    // Each of these looks at a text of 60,000 characters again and again.
    for work in [
        "len(s[1:])",
        "s + 'a'",
        "f'{s}'",
        "s.upper()",
        "s.replace('a', 'b')",
        "'%s' % s",
        "'{}'.format(s)",
        "s.find('b')",
    ] {
        let text = format!(
            "    s: tl.constexpr = 'a' * 60000\n    for i in tl.static_range(60000):\n        for j in tl.static_range(60000):\n            y: tl.constexpr = {work}"
        );
        check(work, kernel(&text), Code::Budget);
    }
    check(
        "widths",
        kernel("    y: tl.constexpr = f'{n:>99999999}'"),
        Code::Value,
    );
    check(
        "joined",
        kernel("    y: tl.constexpr = ('a' * 60000).join(['b'] * 4000)"),
        Code::Budget,
    );
    check("powers", kernel("    y = 10 ** 1000"), Code::Arithmetic);
    check(
        "tower",
        kernel("    y = 9 ** 9 ** 9 ** 9"),
        Code::Arithmetic,
    );
    check("shift", kernel("    y = 1 << (1 << 60)"), Code::Arithmetic);
    check(
        "literal",
        kernel(&format!("    y = {}", "9".repeat(100_000))),
        Code::Value,
    );
    check(
        "block",
        kernel("    y = tl.zeros((1 << 20, 2), tl.float32)"),
        Code::Shape,
    );
    check(
        "extents",
        kernel("    y = tl.zeros((1 << 70,), tl.float32)"),
        Code::Shape,
    );
    let dims = format!("    y = tl.arange(0, 2)[{}:]", "None, ".repeat(40));
    check("dimensions", kernel(&dims), Code::Shape);
    check(
        "module cycle",
        format!(
            "{HEADER}A = B + 1\nB = A + 1\n{}",
            "@jit\ndef f(x, n):\n    y = A\n"
        ),
        Code::Name,
    );
    check(
        "errors",
        kernel(&"    y = nothing\n    z = [1][n]\n".repeat(2000)),
        Code::Name,
    );
    let nested = nested(14, "for i in range(n):").replace("pass", "unknown");
    check("nested loops", nested, Code::Name);
    let host = "def g(k):\n    while True:\n        k = k + 1\n";
    check(
        "host loop",
        format!("{HEADER}{host}\n@jit\ndef f(x, n):\n    y = g(1)\n"),
        Code::Budget,
    );
}

/// A generator of numbers: the same sequence for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        // Marsaglia's xorshift, which is good enough to choose places.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

/// Pieces that are put into texts.
const PIECES: [&str; 24] = [
    "None",
    "0",
    "-1",
    "1 << 200",
    "[:, None]",
    "(x, n)",
    "tl.float16",
    "tl.arange(0, 4)",
    "x",
    "n",
    "*",
    "**",
    "not ",
    ".T",
    "()",
    ".to(tl.int1)",
    "tl.sum",
    " if n else ",
    "\n    return n\n",
    "\n    if n > 0:\n        x = n\n",
    "float('nan')",
    "tl.load",
    "for",
    "tl.make_block_ptr(x, (n,), (1,), (0,), (4,), (0,))",
];

/// Texts that were kernels before pieces of them were replaced, removed and repeated: nothing panics and nothing is a
/// mistake of the compiler.
#[test]
fn broken_kernels_do_not_break_the_compiler() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests/front");
    let mut texts = Vec::new();
    for name in ["add", "softmax", "control", "layers", "blocks", "errors"] {
        let text = std::fs::read_to_string(folder.join(format!("{name}.py"))).expect("readable");
        let code = text.split("# == ").next().unwrap_or_default();
        // One kernel with what stands before it is a text of its own.
        let functions: Vec<&str> = code.split("\n@triton.jit").collect();
        let head = functions[0].to_owned();
        for function in &functions[1..] {
            texts.push(format!("{head}\n@triton.jit{function}\n"));
        }
    }
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let constants = ["16", "4", "8", "1", "True", "None", "'a'", "fp32"];
    let types = [
        "*fp32", "*fp32:16", "*fp16", "*i64", "*i8", "i32", "i32:16", "i64", "fp32", "7",
    ];
    let (mut lowered, mut refused) = (0, 0);
    for _ in 0..3000 {
        let text = &texts[random.below(texts.len())];
        let mut bytes: Vec<char> = text.chars().collect();
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len());
            let end = (at + random.below(12)).min(bytes.len());
            let piece: Vec<char> = match random.below(3) {
                0 => Vec::new(),
                1 => PIECES[random.below(PIECES.len())].chars().collect(),
                _ => {
                    let from = random.below(bytes.len());
                    bytes[from..(from + random.below(30)).min(bytes.len())].to_vec()
                }
            };
            bytes.splice(at..end, piece);
        }
        let text: String = bytes.into_iter().collect();
        let Ok(module) = Module::parse("broken.py", &text) else {
            refused += 1;
            continue;
        };
        for kernel in module.kernels() {
            let entries: Vec<&str> = kernel
                .params
                .iter()
                .map(|p| match (p.constexpr, random.below(4)) {
                    (true, 0..=2) => constants[random.below(3)],
                    (true, _) => constants[random.below(constants.len())],
                    (false, 0..=1) if p.name.starts_with('n') => "i32",
                    (false, 0..=2) => types[random.below(2)],
                    (false, _) => types[random.below(types.len())],
                })
                .collect();
            let args = parse_signature(&entries.join(", ")).expect("a signature");
            let spec = Specialization::new(args, Target::SM_80);
            match module.lower(Some(&kernel.name), &spec) {
                Ok(_) => lowered += 1,
                Err(messages) => {
                    let ours = messages.list.iter().find(|d| d.code == Code::Internal);
                    if let Some(d) = ours {
                        panic!("{}\n{text}", messages.render(d));
                    }
                    assert!(messages.has_errors(), "refused without an error:\n{text}");
                    assert!(!messages.to_string().is_empty());
                    refused += 1;
                }
            }
        }
    }
    eprintln!("{lowered} lowered, {refused} refused");
    assert!(
        lowered > 100 && refused > 1000,
        "{lowered} lowered, {refused} refused"
    );
}
