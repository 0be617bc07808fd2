//! From a line of PTX to the line of the source.
//!
//! A kernel is usually built without `.loc` lines. When the assembler or the emulator complains about a line, the kernel
//! is compiled once more with them: the text is the same but for the lines that give locations, so counting the others
//! finds the place.

/// Whether a line only gives locations, or is empty, as the lines are that come with those.
fn is_location(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with(".loc ") || line.starts_with(".file ")
}

/// The source's line and column for line `at` of `ptx`, all from 1, given the same kernel's PTX with locations.
pub(crate) fn source_place(ptx: &str, at: u32, with_locations: &str) -> Option<(u32, u32)> {
    let before = ptx.lines().take(at as usize);
    let wanted = before.filter(|line| !is_location(line)).count();
    let (mut seen, mut current) = (0, None);
    for line in with_locations.lines() {
        if let Some(location) = line.trim_start().strip_prefix(".loc ") {
            let mut numbers = location.split_whitespace().skip(1);
            let mut next = || numbers.next()?.parse().ok();
            current = next().zip(next());
        } else if !is_location(line) {
            seen += 1;
            if seen == wanted {
                return current;
            }
        }
    }
    None
}

/// PTX with locations whose file is `name`, where the compiler, which knows no files, wrote the kernel's name.
pub(crate) fn name_source(ptx: &str, name: &str) -> String {
    const START: &str = "\n.file 1 \"";
    let Some((before, rest)) = ptx.split_once(START) else {
        return ptx.to_owned();
    };
    let Some((_, after)) = rest.split_once('"') else {
        return ptx.to_owned();
    };
    // What would end the text or is not in PTX's alphabet has no place in it.
    let plain = |c: char| match c {
        '"' | '\\' => '_',
        ' '..='~' => c,
        _ => '_',
    };
    let name: String = name.chars().map(plain).collect();
    format!("{before}{START}{name}\"{after}")
}

/// The first line of PTX that a log of the assembler names.
#[cfg(feature = "cuda")]
pub(crate) fn line_in_log(log: &str) -> Option<u32> {
    let (_, rest) = log.split_once("line ")?;
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_without_locations() {
        let plain = ".version 7.0\n\n.entry k\n{\n\tadd;\n\tmul;\n}\n";
        let located = ".version 7.0\n\n.file 1 \"k.py\"\n\n.entry k\n{\n\t.loc 1 12 5\n\tadd;\n\t.loc 1 13 9\n\tmul;\n}\n";
        assert_eq!(source_place(plain, 5, located), Some((12, 5)));
        assert_eq!(source_place(plain, 6, located), Some((13, 9)));
        assert_eq!(source_place(plain, 3, located), None);
        assert_eq!(source_place(located, 8, located), Some((12, 5)));
        assert_eq!(source_place(plain, 60, located), Some((13, 9)));
    }

    #[test]
    fn files_are_named() {
        let ptx = ".version 7.0\n\n.file 1 \"add\"\n.entry add\n";
        let named = name_source(ptx, "dir/a \"b\"\u{e9}.py");
        assert_eq!(named, ptx.replace("\"add\"", "\"dir/a _b__.py\""));
        assert_eq!(name_source(".entry add", "x.py"), ".entry add");
    }

    #[cfg(feature = "cuda")]
    #[test]
    fn logs_name_lines() {
        let log = "ptxas application ptx input, line 23; error   : Arguments mismatch";
        assert_eq!(line_in_log(log), Some(23));
        assert_eq!(line_in_log("ptxas fatal"), None);
    }
}
