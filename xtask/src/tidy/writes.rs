//! Checks that files are written through `sys::files` alone.
//!
//! A path that a user names is opened step by step there: as root, through no link or directory of
//! another user. Elsewhere nothing is opened for writing, made, renamed or removed, but in the
//! places of [`OTHERS`], which reach no such path.

use super::{
    Problem,
    sources::{before_tests, has_word, is_test, numbered},
    tree::Tree,
};

/// What may write files otherwise, and what it writes.
const OTHERS: &[(&str, &str)] = &[
    (
        "emulation/capture/src/named.rs",
        "the files of options of QEMU's plugin, which imports no writer",
    ),
    ("tiering/live/src/large.rs", "a file of debugfs"),
    ("tiering/live/src/source/page_idle.rs", "a file of sysfs"),
    ("core/sys/src/counts/counters.rs", "a file below /proc/sys"),
    ("core/sys/src/files/", "files that a user or a case names"),
    ("core/sys/src/knobs/", "settings below /sys and /proc, and its own folder in /run"),
    ("core/sys/src/machine/topology/tree.rs", "the machine that a test invents"),
    ("core/sys/src/memory/accessed.rs", "a file below /proc"),
    ("core/sys/src/memory/written.rs", "a file below /proc"),
    ("core/sys/src/memtype/", "the module's device"),
    ("core/sys/src/process/child.rs", "a file below /proc"),
    ("core/sys/src/vm/", "the root of a test machine"),
    ("fault/src/path/guest.rs", "the root of a test machine"),
];

/// Code that users never run.
const TOOLS: &[&str] = &["xtask/", "vm/", "fuzz/"];

/// Names of what writes.
const NAMES: &[&str] = &[
    "DirBuilder",
    "File::create",
    "File::create_new",
    "File::options",
    "NamedTempFile",
    "O_CREAT",
    "OFlags::CREATE",
    "OpenOptions",
    "fs::copy",
    "fs::create_dir",
    "fs::create_dir_all",
    "fs::hard_link",
    "fs::remove_dir",
    "fs::remove_dir_all",
    "fs::remove_file",
    "fs::rename",
    "fs::set_permissions",
    "fs::write",
    "symlink",
];
/// What is said of an entry of [`OTHERS`] without a file.
pub(crate) const GONE: &str = "is gone, its entry is not";

/// Code outside `sys::files` that writes files.
pub(crate) fn elsewhere(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (file, text) in tree.with_extension("rs") {
        let is_other = OTHERS.iter().any(|(other, _)| file.starts_with(other));
        let is_tool = TOOLS.iter().any(|tool| file.starts_with(tool));
        if is_other || is_tool || is_test(file) || file.contains("/examples/") {
            continue;
        }
        let code = numbered(before_tests(text)).filter(|(_, line)| !line.trim().starts_with("//"));
        for (number, line) in code {
            for name in NAMES.iter().filter(|name| has_word(line, name)) {
                let cure =
                    "write through sys::files, or name the place in xtask/src/tidy/writes.rs";
                problems.push(Problem::new(file, number, format!("`{name}` writes a file"), cure));
            }
        }
    }
    let gone = OTHERS.iter().filter(|(other, _)| !tree.exists(other.trim_end_matches('/')));
    let cure = "remove it from xtask/src/tidy/writes.rs";
    problems.extend(gone.map(|(other, _)| Problem::new(other, 0, GONE, cure)));
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_written_past_the_door_is_a_problem() {
        let found = |file: &str, text: &str| {
            let all = elsewhere(&Tree::of(&[(file, text)]));
            all.into_iter()
                .filter(|problem| problem.line > 0)
                .map(|problem| problem.line)
                .collect::<Vec<_>>()
        };
        let text = "use std::fs::{self, File};\nfn a() {\n    File::create(path);\n    \
                    std::fs::write(p, b);\n    let read = File::open(path);\n    // fs::write\n}\n\
                    #[cfg(test)]\nmod tests {\n fn b() { fs::write(a, b) } }\n";
        assert_eq!(found("pagelab/src/a.rs", text), [3, 4]);
        assert_eq!(found("tiering/live/src/a.rs", "use std::fs::OpenOptions;\n"), [1]);
        for file in ["core/sys/src/files/a.rs", "xtask/src/a.rs", "core/report/tests/a.rs"] {
            assert_eq!(found(file, text), [0; 0], "{file}");
        }
    }
}
