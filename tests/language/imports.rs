//! Functions of other files: what imports lead to, and what is said where they lead to nothing.
//!
//! `tests/data/imports` is a package as Python has them; texts here have several files in one.

use std::path::Path;

use pretty_assertions::assert_eq;
use tilelift::front::{Module, Specialization, parse_signature, with_imports};
use tilelift::settings::Target;

/// What is said about the kernel of a text, or its IR.
fn lowered(text: &str) -> Result<String, String> {
    lowered_as("ops/a.py", text)
}

/// The same of a file of this name.
fn lowered_as(name: &str, text: &str) -> Result<String, String> {
    lowered_for(name, "*fp32", text)
}

/// The same for arguments.
fn lowered_for(name: &str, signature: &str, text: &str) -> Result<String, String> {
    let module = Module::parse(name, text).map_err(|e| e.to_string())?;
    let args = parse_signature(signature).expect("it is one");
    let spec = Specialization::new(args, Target::SM_80);
    let lowered = module.lower(Some("k"), &spec);
    let lowered = lowered.map_err(|e| e.to_string())?;
    Ok(lowered.func.to_string())
}

/// A kernel that stores this, with these imports, and other files.
fn kernel(imports: &str, value: &str, others: &str) -> String {
    format!(
        "import triton\nimport triton.language as tl\n{imports}\n\n@triton.jit\ndef k(x):\n    tl.store(x, {value})\n{others}"
    )
}

const SQUARE: &str = "import triton\n\n@triton.jit\ndef square(x):\n    return x * x\n";

#[test]
fn files_of_a_text_are_found_by_their_paths() {
    for (imports, value, path) in [
        ("from .b import square", "square(3.0)", "b.py"),
        ("from .b import square as s", "s(3.0)", "b.py"),
        ("from .b import *", "square(3.0)", "b.py"),
        ("from . import b", "b.square(3.0)", "b.py"),
        ("from b import square", "square(3.0)", "b.py"),
        ("import b", "b.square(3.0)", "b.py"),
        ("import b as c", "c.square(3.0)", "b.py"),
        ("from .b.c import square", "square(3.0)", "b/c.py"),
        ("from .b.c import square", "square(3.0)", "b/c/__init__.py"),
        ("import b.c", "b.c.square(3.0)", "b/c.py"),
        ("import b.c as d", "d.square(3.0)", "b/c.py"),
        ("from b import c", "c.square(3.0)", "b/c.py"),
    ] {
        let text = kernel(imports, value, &format!("#--- {path}\n{SQUARE}"));
        let ir = lowered(&text).unwrap_or_else(|e| panic!("{imports} of {path}: {e}"));
        assert!(ir.contains("9.0"), "{imports} of {path}: {ir}");
    }
    // The folder of the first file, and imports that begin there, beside it and around it.
    for (imports, path) in [
        ("from .b import square", "p/ops/b.py"),
        ("from ..b import square", "p/b.py"),
        ("from ...b import square", "b.py"),
        ("from p.ops.b import square", "p/ops/b.py"),
        ("from p import square", "p/__init__.py"),
        ("from ops.b import square", "p/ops/b.py"),
    ] {
        let others = format!("#--- in p/ops\n#--- {path}\n{SQUARE}");
        let ir = lowered(&kernel(imports, "square(3.0)", &others));
        let ir = ir.unwrap_or_else(|e| panic!("{imports} of {path}: {e}"));
        assert!(ir.contains("9.0"), "{imports} of {path}: {ir}");
    }
}

/// A function that is given may have another name, or be one of another file that kernels call.
#[test]
fn functions_of_other_files_are_given() {
    let called = "@triton.jit\ndef other(x):\n    return square(x)\n";
    let text = |imports: &str, more: &str| {
        format!(
            "import triton\nimport triton.language as tl\n{imports}\n\n@triton.jit\ndef k(x, f: tl.constexpr):\n    tl.store(x, f(3.0))\n{more}#--- b.py\n{SQUARE}"
        )
    };
    let given =
        |function: &str, text: &str| lowered_for("ops/a.py", &format!("*fp32, @{function}"), text);
    for (imports, more, function) in [
        ("from .b import square", called, "square"),
        ("from .b import *", called, "square"),
        ("from .b import square", called, "other"),
        ("from .b import square\ns = square", called, "s"),
    ] {
        let ir = given(function, &text(imports, more));
        let ir = ir.unwrap_or_else(|e| panic!("{imports}, {function}: {e}"));
        assert!(ir.contains("9.0"), "{imports}, {function}: {ir}");
    }
    for (imports, function, expected) in [
        (
            "from .b import square",
            "square",
            "`b.square` is not in this file",
        ),
        ("N = 3", "N", "`N` is no function but"),
        ("", "square", "there is no function `square`"),
    ] {
        let error = given(function, &text(imports, ""));
        assert!(
            error.as_ref().is_err_and(|e| e.contains(expected)),
            "{imports}: {error:?}"
        );
    }
}

/// Lines about folders stand directly before the first file; elsewhere they are comments.
#[test]
fn imports_begin_in_folders_that_are_named() {
    for (ahead, path) in [
        ("#--- in p/ops\n#--- from vendor/lib\n", "vendor/lib/b/c.py"),
        (
            "#--- in p/ops\n#--- from x\n#--- from y\n",
            "y/b/c/__init__.py",
        ),
        ("#--- in p/ops\n#--- from .\n", "b/c.py"),
    ] {
        let others = format!("#--- in the end\n\n{ahead}#--- {path}\n{SQUARE}");
        for (imports, value) in [
            ("from b.c import square", "square(3.0)"),
            ("import b.c", "b.c.square(3.0)"),
        ] {
            let ir = lowered(&kernel(imports, value, &others));
            let ir = ir.unwrap_or_else(|e| panic!("{imports} of {path}: {e}"));
            assert!(ir.contains("9.0"), "{imports} of {path}: {ir}");
        }
    }
    let apart = format!("#--- from vendor\n\n#--- vendor/b.py\n{SQUARE}");
    let error = lowered(&kernel("from b import square", "square(3.0)", &apart));
    assert!(error.is_err_and(|e| e.contains("`b.square` is not in this file")));
}

/// That a module is missing is what the text says; elsewhere it may be.
#[test]
fn what_is_imported_instead_is_found() {
    let attempt = |first: &str, exceptions: &str| {
        format!("try:\n    {first}\nexcept {exceptions}:\n    from p.b import square")
    };
    let without = "#--- without p/fast\n#--- without p/fast/b\n#--- without p/fast/square\n";
    let others = format!("#--- in p/ops\n{without}#--- p/b.py\n{SQUARE}");
    for (first, exceptions) in [
        ("from p.fast.b import square", "ImportError"),
        ("from ..fast import square", "ModuleNotFoundError"),
        (
            "from p.fast import cube as square",
            "(ValueError, ImportError)",
        ),
        ("import p.fast.square as square", "Exception as e"),
        ("a = 1; from p.fast import square", "ImportError"),
        (
            "from p.fast import square",
            "ValueError:\n    square = 1\nexcept ImportError",
        ),
    ] {
        let imports = attempt(first, exceptions);
        let ir = lowered(&kernel(&imports, "square(3.0)", &others));
        let ir = ir.unwrap_or_else(|e| panic!("{imports}: {e}"));
        assert!(ir.contains("9.0"), "{imports}: {ir}");
    }
    let unknown = others.replace(without, "");
    for (first, exceptions, others) in [
        // It may be installed, or be there after all.
        ("from q.fast import square", "ImportError", &others),
        ("from p.fast import square", "ImportError", &unknown),
        ("from p.fast import square", "ValueError", &others),
        // These may be anything.
        (
            "from p.fast import square",
            "E:\n    square = 1\nexcept ImportError",
            &others,
        ),
        ("from p.fast import square", "(ValueError, a.E)", &others),
        // This one may raise something else.
        ("a = g(); from p.fast import square", "ImportError", &others),
    ] {
        let imports = attempt(first, exceptions);
        let result = lowered(&kernel(&imports, "square(3.0)", others));
        assert!(result.is_err(), "{imports}: {result:?}");
    }
    let own = "class ImportError(Exception): pass\n";
    let imports = format!(
        "{own}{}",
        attempt("from p.fast import square", "ImportError")
    );
    assert!(lowered(&kernel(&imports, "square(3.0)", &others)).is_err());
    // What is there is taken, unless it may fail itself.
    for (top, taken) in [
        ("import triton\nimport torch.nn, math", true),
        (
            "import triton\nfrom p.b import square as other\nfrom . import b",
            true,
        ),
        ("import triton, third_party", false),
        ("import triton\nfrom third_party.x import y", false),
        ("import triton\nraise ImportError", false),
    ] {
        let fast = format!("{top}\n\n@triton.jit\ndef square(x):\n    return x + 1\n");
        let both = format!("#--- in p/ops\n#--- p/b.py\n{SQUARE}#--- p/fast.py\n{fast}");
        let imports = attempt("from p.fast import square", "ImportError");
        let ir = lowered(&kernel(&imports, "square(3.0)", &both));
        assert_eq!(
            ir.as_ref().is_ok_and(|ir| ir.contains("4.0")),
            taken,
            "{top}: {ir:?}"
        );
        assert_eq!(ir.is_ok(), taken, "{top}");
    }
    let imports = attempt("from p.b import cube as square", "ImportError");
    assert!(lowered(&kernel(&imports, "square(3.0)", &unknown)).is_err());
}

/// Of a package with `__init__.py` what is not there is missing, be it a folder, a file that is no text or too large, or a library; of
/// others nothing is certain.
#[test]
fn what_is_missing_is_told_by_the_disk() {
    let text = "import triton\nimport triton.language as tl\ntry:\n    from ours.fast import f\nexcept ImportError:\n    from ours.plain import f\n\n@triton.jit\ndef k(x):\n    tl.store(x, f(2.0))\n";
    let by = |n: u32| format!("import triton\n\n@triton.jit\ndef f(x):\n    return x * {n}.0\n");
    for (init, more, stored) in [
        (Some(""), None, Some("6.0")),
        (Some("__path__.append('x')"), None, None),
        (None, None, None),
        (Some(""), Some(("ours/fast.py", by(4))), Some("8.0")),
        (
            Some(""),
            Some(("ours/fast.py", format!("#--- old.py\n{}", by(4)))),
            None,
        ),
        (
            Some(""),
            Some(("ours/fast.cpython-311.so", String::new())),
            None,
        ),
        (Some(""), Some(("ours/fast/inner.py", String::new())), None),
        (
            Some(""),
            Some(("kernels/triton/x.py", String::new())),
            Some("6.0"),
        ),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("it is made");
            std::fs::write(path, text).expect("it is written");
        };
        write("ours/plain.py", &by(3));
        if let Some(init) = init {
            write("ours/__init__.py", init);
        }
        if let Some((path, text)) = &more {
            write(path, text);
        }
        write("kernels/k.py", text);
        let whole = with_imports(&folder.path().join("kernels/k.py"), text);
        let ir = lowered_as("kernels/k.py", &whole);
        let found = stored.map(|stored| ir.as_ref().is_ok_and(|ir| ir.contains(stored)));
        assert!(
            found.unwrap_or(ir.is_err()),
            "{init:?} {more:?}: {ir:?}\n{whole}"
        );
    }
}

/// A folder that has the name of a library makes nothing of the library missing.
#[test]
fn folders_may_be_called_as_libraries() {
    let imports = "from ours.plain import h\ntry:\n    from triton.language import maximum as f\nexcept ImportError:\n    from ours.plain import h as f";
    let others = "#--- in ours/triton\n#--- without triton/language\n#--- ours/plain.py\nimport triton\n\n@triton.jit\ndef h(x, y):\n    return x\n";
    let ir = lowered(&kernel(imports, "f(h(2.0, 1.0), 5.0)", others)).expect("it is lowered");
    assert!(ir.contains("maxnum") || ir.contains("5.0"), "{ir}");
    assert!(!ir.contains("store v0, 2.0"), "{ir}");
}

#[test]
fn each_file_has_its_own_names() {
    let others = "\
#--- b.py
import triton
import triton.language as tl
from .c import BASE as C
BASE = tl.constexpr(2.0)

@triton.jit
def f(x, y=BASE):
    return x * y + C
#--- c.py
from triton.language import constexpr
BASE = constexpr(0.5)
";
    let text = kernel(
        "from .b import f\nBASE = tl.constexpr(100.0)",
        "f(BASE)",
        others,
    );
    let ir = lowered(&text).expect("it is lowered");
    assert!(ir.contains("200.5"), "{ir}");
}

/// What a kernel stores that uses names of other files, as Python has it.
#[test]
fn names_are_those_that_python_finds() {
    for (imports, value, others, stored) in [
        // Bodies of classes, members of enumerations.
        (
            "from b import C\nK = tl.constexpr(1000.0)",
            "C.X",
            "#--- b.py\nK = 3.0\nclass C:\n    X = K * 2\n",
            "6.0",
        ),
        (
            "from b import M\nONE = 1000",
            "M.A.value + 0.5",
            "#--- b.py\nimport enum\nONE = 1\nclass M(enum.Enum):\n    A = ONE\n",
            "1.5",
        ),
        // What is imported last counts, be it by a star.
        (
            "from a import *",
            "A + 0.0",
            "#--- a.py\nfrom c import A\nfrom b import *\n#--- b.py\nA = 5.0\n_B = 1.0\n#--- c.py\nA = 6.0\n",
            "5.0",
        ),
        (
            "MAX = 1.5\nfrom b import *",
            "MAX + 0.0",
            "#--- b.py\nMIN = 4.0\n",
            "1.5",
        ),
        (
            "from a import *",
            "X + 0.0",
            "#--- a.py\nfrom b import *\nfrom b import *\nX = 2.5\n#--- b.py\nfrom a import *\nfrom a import *\n",
            "2.5",
        ),
        (
            "from a import *",
            "Y + Z",
            "#--- a.py\nfrom b import *\nY = 5.0\n#--- b.py\nZ = 1.0\nfrom a import *\n",
            "6.0",
        ),
        // Packages and modules within them.
        (
            "import p.c\nimport p.d",
            "p.c.X * 100 + p.d.X",
            "#--- p/c.py\nX = 3.0\n#--- p/d.py\nX = 4.0\n",
            "304.0",
        ),
        (
            "from p import m",
            "m.X + 0.0",
            "#--- p/__init__.py\nfrom . import m\n#--- p/m.py\nX = 1.5\n",
            "1.5",
        ),
        (
            "import p.c",
            "p.c.X * 100 + p.Z",
            "#--- p/__init__.py\nZ = 1.0\n#--- p/c.py\nX = 3.0\n",
            "301.0",
        ),
        // Constants, conditions over several files, and imports that are tried.
        ("from a import N", "N + 0.5", "#--- a.py\nN = 5.0\n", "5.5"),
        (
            "from a import V",
            "V + 0.0",
            "#--- a.py\nfrom c import FLAG\nif FLAG:\n    V = 1.5\nelse:\n    V = 2.5\n#--- c.py\nfrom d import N\nif N:\n    FLAG = True\nelse:\n    FLAG = False\n#--- d.py\nQ = True\nif Q:\n    N = 3\nelse:\n    N = 0\n",
            "1.5",
        ),
        (
            "try:\n    from a import N\nexcept ImportError:\n    from b import N",
            "N + 0.0",
            "#--- a.py\nN = 5.5\n#--- b.py\nN = 6.5\n",
            "5.5",
        ),
    ] {
        let text = kernel(imports, value, others);
        let ir =
            lowered_as("ops/k.py", &text).unwrap_or_else(|e| panic!("{imports}, {value}: {e}"));
        assert!(
            ir.contains(&format!("value = {stored}}}")),
            "{imports}, {value}: {ir}"
        );
    }
}

/// What a file changes of another one is not what the other one says.
#[test]
fn changes_of_other_files_are_errors() {
    for (imports, value, others) in [
        (
            "import b\nfrom a import T",
            "T[\"x\"]",
            "#--- a.py\nT = {\"x\": 1.0}\n#--- b.py\nfrom a import T\nT[\"x\"] = 2.0\nY = 1.0\n",
        ),
        (
            "import b\nfrom a import R\nR[\"x\"] = 4.0",
            "R[\"x\"]",
            "#--- a.py\nR = {\"x\": 1.0}\n#--- b.py\nY = 1.0\n",
        ),
        (
            "import a\nimport b",
            "a.X + b.Y",
            "#--- a.py\nX = 1.0\n#--- b.py\nimport a\na.X = 2.0\nY = 1.0\n",
        ),
    ] {
        let text = kernel(imports, &format!("{value} + b.Y"), others);
        let error = lowered_as("ops/k.py", &text).expect_err(value);
        assert!(error.contains(" changes it"), "{error}");
    }
}

/// In folders with blanks, with a byte order mark, and for a default of the same name.
#[test]
fn files_are_found_where_they_lie() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let inside = folder.path().join("sp ace");
    std::fs::create_dir(&inside).expect("it is made");
    std::fs::write(inside.join("a.py"), "\u{feff}N = 5.5\n").expect("it is written");
    let path = inside.join("k.py");
    let text = "import triton\nimport triton.language as tl\nfrom .a import N\n\n@triton.jit\ndef k(x, N: tl.constexpr = N):\n    tl.store(x, N)\n";
    let whole = with_imports(&path, text);
    let ir = lowered_as("ops/k.py", &whole).unwrap_or_else(|e| panic!("{e}\n{whole}"));
    assert!(ir.contains("5.5"), "{ir}");
}

#[test]
fn mistakes_have_the_places_of_their_files() {
    let others = "\
#--- b.py
import triton

@triton.jit
def f(x):
    y = x + 1
    return y.nothing
#--- broken.py
def f(:
    pass
#--- empty.py
";
    let said = |imports, value| lowered(&kernel(imports, value, others)).expect_err(value);
    assert_eq!(
        said("from .b import f", "f(x)"),
        "\
error[F06]: a pointer *fp32 has no attribute `nothing`
 --> ops/b.py:6:14
  |
6 |     return y.nothing
  |              ^^^^^^^
  |
note: in `f`, called here
 --> ops/a.py:7:17
  |
7 |     tl.store(x, f(x))
  |                 ^^^^"
    );
    let broken = said("from .broken import f", "f(x)");
    assert!(broken.contains("error[F02]"), "{broken}");
    assert!(broken.contains("--> ops/broken.py:1:6\n"), "{broken}");
    let missing = said("from .empty import *", "f(x)");
    assert!(missing.contains("`f` is not defined\n"), "{missing}");
    assert!(missing.contains("--> ops/a.py:7:17\n"), "{missing}");
    let missing = said("from . import empty", "empty.f(x)");
    assert!(
        missing.contains("error[F05]: `empty.py` does not define `f`\n"),
        "{missing}"
    );
    let none = said("from .nowhere import f", "f(x)");
    assert!(
        none.contains("error[F05]: `nowhere.f` is not in this file\n")
            && none.contains("or in one beside or around it that it imports"),
        "{none}"
    );
}

#[test]
fn imports_in_circles_end() {
    let others = "\
#--- b.py
from .c import f
#--- c.py
from .b import f
#--- d.py
from .d import *
";
    for (imports, what) in [
        ("from .b import f", "is imported by more than"),
        ("from .d import *", "`f` is not defined"),
        ("from .a import k as f", "more than"),
    ] {
        let error = lowered(&kernel(imports, "f(x)", others)).expect_err(imports);
        assert!(error.contains(what), "{imports}: {error}");
    }
}

#[test]
fn a_file_is_read_with_what_its_kernels_need() {
    let path = Path::new("tests/data/imports/lib/ops/norm.py");
    let text = std::fs::read_to_string(path).expect("it is there");
    let whole = with_imports(path, &text);
    let names = whole.lines().filter(|line| line.starts_with("#--- "));
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "#--- in lib/ops",
            "#--- lib/constants.py",
            "#--- lib/ops/again.py",
            "#--- lib/ops/everything.py",
            "#--- lib/ops/special.py",
            "#--- shared/numbers.py",
            "#--- shared/sums.py",
        ]
    );
    assert!(whole.starts_with(&text));
    // It is the same wherever the folder lies, and comes back if it is read again.
    assert_eq!(with_imports(path, &whole), whole);
    let alone = "import triton\n";
    assert_eq!(with_imports(path, alone), alone);
}
