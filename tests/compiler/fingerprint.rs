//! Cached kernels are told apart by what the compiler is made of, and by nothing else.

#[path = "../../isa/fingerprint.rs"]
mod hash;

use hash::fingerprint;

const CODE: &str = "pub fn add(a: u32, b: u32) -> u32 {\n    a + b\n}\n";
const TESTS: &str = "\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {\n        assert_eq!(super::add(1, 2), 3);\n    }\n}\n";

#[test]
fn tests_are_no_part_of_the_fingerprint_and_code_is() {
    let of = |files: &[(&str, &str)]| {
        let dir = tempfile::tempdir().expect("a folder for the test");
        let src = dir.path().join("src");
        for (name, text) in files {
            let path = src.join(name);
            std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder");
            std::fs::write(path, text).expect("it can be written");
        }
        fingerprint(dir.path(), &["src"])
    };
    let plain = of(&[("a.rs", CODE)]);
    assert_eq!(plain, of(&[("a.rs", &format!("{CODE}{TESTS}"))]));
    assert_eq!(plain, of(&[("a.rs", CODE), ("a/tests.rs", TESTS)]));
    assert_eq!(plain, of(&[("a.rs", CODE), ("a/tests/more.rs", TESTS)]));
    for changed in [
        CODE.replace("a + b", "a - b"),
        // What stands behind tests is code.
        format!("{TESTS}{CODE}"),
        format!("{CODE}{TESTS}{CODE}"),
        TESTS.replace("cfg(test)", "cfg(all())"),
    ] {
        assert_ne!(plain, of(&[("a.rs", &changed)]), "{changed}");
    }
    assert_ne!(plain, of(&[("b.rs", CODE)]));
    assert_ne!(plain, of(&[("a.rs", CODE), ("rules.isle", "")]));
}
