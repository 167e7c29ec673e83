//! `cargo xtask tidy`: style as a test.
//!
//! Each check is a pure function from a [`Tree`] to its [`Problem`]s, and each problem says where
//! it is and what to do about it. What was worse before a check existed is listed in [`ratchet`],
//! which may only shrink.
//!
//! Nothing here repeats what rustfmt, rustc or clippy say better.

mod circles;
mod code;
mod documents;
mod imports;
mod lines;
mod modules;
mod ratchet;
mod sentences;
mod sources;
mod surroundings;
mod tree;
mod writes;

use std::fmt;

use anyhow::{Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};

use self::tree::Tree;

/// One check: a name for the summary, and what it finds.
type Check = (&'static str, fn(&Tree) -> Vec<Problem>);

/// Every check.
const CHECKS: &[Check] = &[
    ("imports follow the table of ARCHITECTURE.md", imports::imports),
    ("every crate takes the workspace's lints", imports::lints),
    ("no files take from each other in a circle", |tree| {
        circles::of_files(tree, ratchet::FILE_CIRCLES)
    }),
    ("no folders do: no arrow points upward", |tree| {
        circles::of_folders(tree, ratchet::FOLDER_CIRCLES)
    }),
    ("nobody matches on a claim's text", |tree| sentences::matched(tree, ratchet::CLAIM_TEXTS)),
    ("every file says what it is for", sources::module_docs),
    ("every file belongs to a module", sources::dead_files),
    ("unsafe stays in its rooms", sources::unsafe_rooms),
    ("files are written through sys::files", writes::elsewhere),
    ("lines are short", |tree| sources::long_lines(tree, ratchet::LONG_LINES)),
    ("files are short", |tree| sources::long_files(tree, ratchet::LONG_FILES)),
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

/// The command line of `tidy`.
pub(crate) fn arguments(command: Command) -> Command {
    let about = "Print how many lines of code each crate has, instead";
    command.arg(Arg::new("lines").long("lines").action(ArgAction::SetTrue).help(about))
}

/// Runs every check on the files of the repository, tracked or about to be.
pub(crate) fn tidy(arguments: &ArgMatches) -> Result<()> {
    let tree = Tree::of_the_repository()?;
    if arguments.get_flag("lines") {
        println!("{}", lines::table(&tree));
        return Ok(());
    }
    check(&tree)
}

/// The checks alone, for `lint`.
pub(crate) fn check_all() -> Result<()> {
    check(&Tree::of_the_repository()?)
}

fn check(tree: &Tree) -> Result<()> {
    let mut count = 0;
    for (name, check) in CHECKS {
        let problems = check(tree);
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
    let (circles, across) = circles::count(tree);
    eprintln!("[tidy] {circles} circles of files, {across} of them across folders");
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
        let of_ratchet = |problem: &&Problem| problem.what == "is gone, its entry is not";
        let missing = missing.iter().filter(|problem| !of_ratchet(problem));
        let files: Vec<_> = missing.map(|problem| problem.file.as_str()).collect();
        assert_eq!(files, ["ARCHITECTURE.md", "README.md"]);
    }
}
