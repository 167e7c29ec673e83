//! `pagelab fleet`: the same work over many machines, for whatever starts commands on them.
//!
//! The one idea: a contract of files, and no engine. A list of tasks never changes; a task leaves
//! one file for each machine and boot, under its own name, written beside and renamed. So whoever
//! is killed is started again, and what is there is not measured twice.

mod exec;
mod merge;
mod plan;

use std::path::Path;

use anyhow::Context;
use clap::{ArgMatches, Command};
use pagelab_bench::tasks::{self, List};
use pagelab_record::input;

use crate::{
    args::{self, Row},
    exit::{Exit, Failure},
};

const COMMANDS: &[Row] = &[
    Row::of::<plan::Plan>("plan"),
    Row::of::<exec::Exec>("exec"),
    Row::of::<merge::Merge>("merge"),
];

/// The list of tasks in the folder of a plan, and in that of its results.
const LIST: &str = "tasks.jsonl";

/// Adds the commands of `pagelab fleet`.
pub(super) fn describe(command: Command) -> Command {
    let about = "The same work over many machines: cut it into tasks, run a shard, put it together";
    args::with_rows(command.about(about), COMMANDS)
}

/// Runs the one that was asked for.
///
/// # Errors
/// With the exit code that belongs to what went wrong.
pub(super) fn fleet(matches: &ArgMatches) -> Result<Exit, Failure> {
    args::dispatch(COMMANDS, matches)
}

/// The list of tasks in a folder, as text and read.
///
/// # Errors
/// When there is none, it is damaged, or it is of another version.
fn list_in(folder: &Path) -> Result<(String, List), Failure> {
    let path = folder.join(LIST);
    let text = input::text(&path, tasks::BYTES_MAX)
        .with_context(|| format!("{} (pagelab fleet plan makes one)", path.display()))
        .map_err(Failure::usage)?;
    let list = List::parse(&text, env!("CARGO_PKG_VERSION"))
        .map_err(|(line, why)| Failure::usage_text(format!("{}:{line}: {why}", path.display())))?;
    Ok((text, list))
}

/// Of whom a result is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Origin {
    host: String,
    boot: String,
}

impl Origin {
    /// The name of the file of a task's result.
    fn file(&self, task: &str) -> String {
        format!("{task}.{}.{}.jsonl", self.host, self.boot)
    }

    /// The task and the origin that the name of a result says.
    fn of_file(name: &str) -> Option<(&str, Self)> {
        let (task, rest) = name.strip_suffix(".jsonl")?.split_once('.')?;
        let (host, boot) = rest.rsplit_once('.')?;
        let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let known = is_hex(task) && is_hex(boot) && !task.is_empty() && !host.is_empty();
        known.then(|| (task, Self { host: host.to_owned(), boot: boot.to_owned() }))
    }
}

/// A boot's name, as short as a name of a file wants it.
fn boot(id: &str) -> String {
    id.chars().filter(char::is_ascii_hexdigit).take(8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_result_says_whose_it_is() {
        let origin = Origin { host: "a.b-c".to_owned(), boot: "0a1b2c3d".to_owned() };
        let name = origin.file("00ff");
        assert_eq!(Origin::of_file(&name), Some(("00ff", origin)));
        for foreign in
            ["tasks.jsonl", "00ff.jsonl", "00ff..jsonl", "x.y.z.jsonl", ".00ff.h.0a.jsonl-1"]
        {
            assert_eq!(Origin::of_file(foreign), None, "{foreign}");
        }
        assert_eq!(boot("6ba7b810-9dad-11d1-80b4-00c04fd430c8"), "6ba7b810");
    }
}
