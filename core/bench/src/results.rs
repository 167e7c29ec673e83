//! What a task leaves on a machine: a file of its own, under a name that says whose it is.
//!
//! The one idea: a result is a run of one case, so whatever reads a journal reads it; its name is
//! the task, the host and the boot, so that nothing is measured twice and nothing is taken for
//! somebody else's.

use pagelab_record::{Record, RunHeader};
use pagelab_sys::machine::environment;

use crate::tasks::Task;

/// Of whom a result is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The name of the host.
    pub host: String,
    /// Its boot, shortened by [`boot`].
    pub boot: String,
}

impl Origin {
    /// This machine, since it booted. The kernel takes any name for a machine.
    ///
    /// # Errors
    /// A sentence with the remedy, when its name can be no part of a file's.
    pub fn here() -> Result<Self, String> {
        let host = environment::hostname();
        let is_odd = |character: char| character == '/' || character.is_control();
        if host.is_empty() || host.contains(is_odd) {
            return Err(format!(
                "this machine is called {host:?}, which can be no part of a file's name: give it \
                 another (hostname NAME)"
            ));
        }
        Ok(Self { host, boot: boot(&environment::boot_id()) })
    }

    /// What a shard of tasks that is measured there is called as a run.
    pub fn run(&self) -> String {
        format!("{}.{}", self.host, self.boot)
    }

    /// The name of the file of a task's result.
    pub fn file(&self, task: &str) -> String {
        format!("{task}.{}.{}.jsonl", self.host, self.boot)
    }

    /// The task and the origin that the name of a result says.
    pub fn of_file(name: &str) -> Option<(&str, Self)> {
        let (task, rest) = name.strip_suffix(".jsonl")?.split_once('.')?;
        let (host, boot) = rest.rsplit_once('.')?;
        let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let known = is_hex(task) && is_hex(boot) && !task.is_empty() && !host.is_empty();
        known.then(|| (task, Self { host: host.to_owned(), boot: boot.to_owned() }))
    }
}

/// A boot's name, as short as a name of a file wants it.
pub fn boot(id: &str) -> String {
    id.chars().filter(char::is_ascii_hexdigit).take(8).collect()
}

/// The content of the file of a task's result; `of_shard` is the header that a run of all tasks of
/// its shard would have.
pub fn text(of_shard: &RunHeader, task: &Task, record: &Record) -> String {
    let header = RunHeader {
        plan: vec![(task.workload.clone(), task.case.clone())],
        method: serde_json::json!([task.method]),
        ..of_shard.clone()
    };
    let lines = [serde_json::to_string(&header), serde_json::to_string(record)];
    lines.map(|line| line.expect("our documents have text keys") + "\n").concat()
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
