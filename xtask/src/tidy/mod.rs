//! `cargo xtask tidy`: style as a test.
//!
//! Each check is a pure function from a [`Tree`] to its [`Problem`]s, and each problem says where
//! it is and what to do about it. A check compares tables, or searches the text line by line; none
//! parses Rust.
//!
//! Nothing here repeats what rustfmt, rustc or clippy say better.

mod documents;
mod imports;
mod sources;
mod surroundings;
mod tree;
mod writes;

use std::fmt;

use anyhow::{Result, bail};

use self::tree::Tree;

/// One check: a name for the summary, and what it finds.
type Check = (&'static str, fn(&Tree) -> Vec<Problem>);

/// Every check.
const CHECKS: &[Check] = &[
    ("imports follow the table of ARCHITECTURE.md", imports::imports),
    ("every crate takes the workspace's lints", imports::lints),
    ("every file says what it is for", sources::module_docs),
    ("every file belongs to a module", sources::dead_files),
    ("unsafe stays in its rooms", sources::unsafe_rooms),
    ("files are written through sys::files", writes::elsewhere),
    ("lines are short", sources::long_lines),
    ("files are short", sources::long_files),
    ("nothing is left for later", sources::leftovers),
    ("no test is ignored without a reason", sources::silent_ignores),
    ("every workload has its page", documents::workload_pages),
    ("the architecture fits in the head", documents::architecture),
    ("the methodology can be read at once", documents::methodology),
    ("the README starts with what to type", documents::readme),
    ("links inside the repository resolve", documents::links),
    ("nothing names this machine", surroundings::local_paths),
    ("dependencies come from the public registry", surroundings::registries),
];

/// Something to put right.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    file: String,
    /// From 1; 0 where the whole file is meant.
    line: usize,
    what: String,
    cure: String,
}

impl Problem {
    fn new(file: &str, line: usize, what: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, what: what.into(), cure: cure.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}\n    cure: {}", self.file, self.what, self.cure),
            line => write!(f, "{}:{line}: {}\n    cure: {}", self.file, self.what, self.cure),
        }
    }
}

/// Runs every check on the files of the repository, tracked or about to be.
pub(crate) fn tidy() -> Result<()> {
    let tree = Tree::of_the_repository()?;
    let mut count = 0;
    for (name, check) in CHECKS {
        let problems = check(&tree);
        if problems.is_empty() {
            continue;
        }
        count += problems.len();
        eprintln!("\n[tidy] {name}: not so");
        for problem in problems {
            eprintln!("  {problem}");
        }
    }
    if count > 0 {
        bail!("{count} problems");
    }
    eprintln!("[tidy] {} checks, {} files: tidy", CHECKS.len(), tree.files.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_says_where_what_and_how() {
        let problem = Problem::new("a.rs", 7, "is wrong", "make it right");
        assert_eq!(problem.to_string(), "a.rs:7: is wrong\n    cure: make it right");
        let problem = Problem::new("a.rs", 0, "is wrong", "make it right");
        assert_eq!(problem.to_string(), "a.rs: is wrong\n    cure: make it right");
    }

    #[test]
    fn an_empty_tree_lacks_only_what_must_exist() {
        let tree = Tree::default();
        let missing: Vec<_> = CHECKS.iter().flat_map(|(_, check)| check(&tree)).collect();
        let of_table = |problem: &&Problem| problem.what == writes::GONE;
        let missing = missing.iter().filter(|problem| !of_table(problem));
        let files: Vec<_> = missing.map(|problem| problem.file.as_str()).collect();
        assert_eq!(files, ["ARCHITECTURE.md", "README.md"]);
    }
}
