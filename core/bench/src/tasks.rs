//! A plan cut into tasks that any scheduler may hand out: what many machines agree on.
//!
//! The one idea: a task is named by what it is. Its name is a digest of the version of the tool,
//! the workload, the complete case, the method and the content of every file that the case names,
//! so that two machines that have the same name have the same work, and a result that has it needs
//! no more said. A list never changes: line 1 says how many tasks and shards there are, every
//! further line is a task, and the shard of a task follows from its place.
//!
//! It is not a scheduler: who runs which shard, and where, is for whoever starts it.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write},
    num::NonZeroU32,
    path::Path,
};

use pagelab_record::{Case, input, schema::Word};
use pagelab_sys::time::ClockChoice;
use serde::{Deserialize, Serialize};

use crate::{
    digest,
    measure::Method,
    plan::{Plan, Planned},
};

/// The schema of a list's first line.
pub const SCHEMA: &str = "pagelab.tasks/1";
/// The longest list that is read, bytes: some hundred thousand tasks.
pub const BYTES_MAX: u64 = 256 << 20;
/// The file of a list, in the folder of a plan and in that of its results.
pub const FILE: &str = "tasks.jsonl";
/// The version of the tool: it carries out no other's list.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Hexadecimal digits of a task's name.
const DIGITS: usize = 32;

/// The first line of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// The version of the tool that made it, which alone carries it out.
    pub pagelab: String,
    /// The suite; empty for one of no name.
    pub suite: String,
    /// Publications that its results are set beside.
    pub published: Vec<String>,
    /// Into how many shards it is cut.
    pub shards: NonZeroU32,
    /// How many tasks follow.
    pub tasks: usize,
}

/// One piece of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its name.
    pub id: String,
    /// The workload.
    pub workload: String,
    /// The complete case.
    pub case: Case,
    /// How it is measured.
    pub method: Method,
    /// Files that the case names, each with the digest of its content.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
}

impl Task {
    /// The task of a case.
    ///
    /// # Errors
    /// When a file that the case names cannot be read.
    fn of(planned: &Planned, version: &str) -> Result<Self, String> {
        let case = planned.case.as_ref().clone();
        let mut task = Self {
            id: String::new(),
            workload: planned.workload.name().to_owned(),
            files: files_of(&case)?,
            case,
            method: Method { clock: of_no_machine(planned.method.clock), ..planned.method },
        };
        task.id = task.name(version);
        Ok(task)
    }

    /// The name that it must have.
    fn name(&self, version: &str) -> String {
        let of = (version, &self.workload, &self.case, &self.method, &self.files);
        let text = serde_json::to_vec(&of).expect("a task is plain data");
        digest::of_bytes(&text)[..DIGITS].to_owned()
    }

    /// Whether the files that it names hold here what they held where it was planned.
    ///
    /// # Errors
    /// A sentence that names the file that does not.
    pub fn check_files(&self) -> Result<(), String> {
        for (path, planned) in &self.files {
            let found = digest_of(Path::new(path))?;
            if found != *planned {
                return Err(format!(
                    "{path} is not what was planned (sha256 {found}, not {planned}): put the same \
                     file there on every host"
                ));
            }
        }
        Ok(())
    }
}

/// A clock that says nothing of the machine that plans: whoever measures takes the best of its own.
fn of_no_machine(clock: ClockChoice) -> ClockChoice {
    match clock {
        scripted @ ClockChoice::Scripted { .. } => scripted,
        ClockChoice::Tsc { .. } | ClockChoice::Raw => ClockChoice::Raw,
    }
}

/// The regular files that a case names, and what they hold.
fn files_of(case: &Case) -> Result<BTreeMap<String, String>, String> {
    let named = case.0.values().map(Word::as_str);
    let files = named.filter(|value| Path::new(value).is_file());
    files.map(|path| Ok((path.to_owned(), digest_of(Path::new(path))?))).collect()
}

fn digest_of(path: &Path) -> Result<String, String> {
    let digest = File::open(path).and_then(|file| digest::of_file(&file));
    digest.map_err(|error| format!("{}: {error}", path.display()))
}

/// A whole list.
#[derive(Debug, Clone, PartialEq)]
pub struct List {
    /// Its first line.
    pub head: Head,
    /// The tasks, in order.
    pub tasks: Vec<Task>,
}

impl List {
    /// The tasks of a plan; `head` says what it is of, and is told how many there are.
    ///
    /// # Errors
    /// When a file that a case names cannot be read.
    pub fn of(plan: &Plan, head: Head) -> Result<Self, String> {
        let tasks = plan.cases.iter().map(|planned| Task::of(planned, &head.pagelab));
        let tasks = tasks.collect::<Result<Vec<_>, _>>()?;
        Ok(Self { head: Head { tasks: tasks.len(), ..head }, tasks })
    }

    /// Writes it, a line after the other.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        let mut line = |document: serde_json::Result<Vec<u8>>| {
            let mut bytes = document.expect("a list is plain data");
            bytes.push(b'\n');
            to.write_all(&bytes)
        };
        line(serde_json::to_vec(&self.head))?;
        self.tasks.iter().try_for_each(|task| line(serde_json::to_vec(task)))
    }

    /// The list in a folder, as text and read.
    ///
    /// # Errors
    /// A sentence, when there is none, it is damaged, or it is of another version.
    pub fn read(folder: &Path) -> Result<(String, Self), String> {
        let path = folder.join(FILE);
        let text = input::text(&path, BYTES_MAX).map_err(|error| {
            format!("{} (pagelab fleet plan makes one): {error}", path.display())
        })?;
        let list = Self::parse(&text, VERSION)
            .map_err(|(line, why)| format!("{}:{line}: {why}", path.display()))?;
        Ok((text, list))
    }

    /// Reads it, where a pagelab of this version wrote it.
    ///
    /// # Errors
    /// The number of the line that is not as it should be, and why.
    pub fn parse(text: &str, version: &str) -> Result<Self, (usize, String)> {
        let mut lines = (1..).zip(text.lines());
        let (_, first) = lines.next().ok_or((1, "the file is empty".to_owned()))?;
        let head: Head = parsed(first).map_err(|why| (1, why))?;
        if head.schema != SCHEMA {
            let why = format!("its schema is `{}`, this version reads `{SCHEMA}`", head.schema);
            return Err((1, why));
        }
        // Asked first: what the tasks of another version say is for that one to read.
        if head.pagelab != version {
            let theirs = &head.pagelab;
            let why = format!(
                "it was planned by pagelab {theirs}, this is {version}: use one version everywhere"
            );
            return Err((1, why));
        }
        let mut tasks = Vec::new();
        for (number, line) in lines {
            let task: Task = parsed(line).map_err(|why| (number, why))?;
            let name = task.name(&head.pagelab);
            if task.id != name {
                let why = format!("task {} was changed: what it says is task {name}", task.id);
                return Err((number, why));
            }
            tasks.push(task);
        }
        if tasks.len() != head.tasks {
            let (there, asked) = (tasks.len(), head.tasks);
            return Err((there + 2, format!("{there} tasks of {asked}: the file is cut short")));
        }
        Ok(Self { head, tasks })
    }

    /// The tasks of a shard, which is counted from 1.
    pub fn shard(&self, number: NonZeroU32) -> impl Iterator<Item = &Task> {
        let every = self.head.shards.get() as usize;
        self.tasks.iter().skip(number.get() as usize - 1).step_by(every)
    }
}

fn parsed<T: for<'t> Deserialize<'t>>(line: &str) -> Result<T, String> {
    serde_json::from_str(line).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const METHOD: Method = Method {
        forks: 1,
        turns: 1,
        repetitions_min: 1,
        repetitions_max: 9,
        budget_ns: 1_000_000,
        precision: 0.5,
        limit_ns: 1_000_000_000,
        attempts_max: 1,
        clock: ClockChoice::Raw,
        planted: None,
    };

    fn list(tasks: usize, shards: u32) -> List {
        let tasks = (0..tasks).map(|number| {
            let case = Case::default().with("page", &format!("{number}k"));
            let files = BTreeMap::new();
            let workload = "fault/latency".to_owned();
            let mut task = Task { id: String::new(), workload, case, method: METHOD, files };
            task.id = task.name("0.1");
            task
        });
        let tasks: Vec<_> = tasks.collect();
        let head = Head {
            schema: SCHEMA.to_owned(),
            pagelab: "0.1".to_owned(),
            suite: "quick".to_owned(),
            published: Vec::new(),
            shards: NonZeroU32::new(shards).unwrap(),
            tasks: tasks.len(),
        };
        List { head, tasks }
    }

    fn text(list: &List) -> String {
        let mut bytes = Vec::new();
        list.write(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    proptest! {
        #[test]
        fn every_task_is_in_one_shard(tasks in 0..60_usize, shards in 1..9_u32) {
            let list = list(tasks, shards);
            let all = (1..=shards).flat_map(|k| list.shard(NonZeroU32::new(k).unwrap()));
            let mut names: Vec<&str> = all.map(|task| task.id.as_str()).collect();
            names.sort_unstable();
            let mut expected: Vec<&str> = list.tasks.iter().map(|task| task.id.as_str()).collect();
            expected.sort_unstable();
            prop_assert_eq!(names, expected);
        }

        #[test]
        fn a_list_that_was_written_reads_back_and_a_part_of_it_does_not(
            tasks in 1..20_usize, cut in 0..4000_usize,
        ) {
            let list = list(tasks, 3);
            let text = text(&list);
            prop_assert_eq!(List::parse(&text, "0.1").unwrap(), list);
            // The last byte ends a line that says what it says without it.
            let cut = cut % (text.len() - 1);
            prop_assert!(List::parse(&text[..cut], "0.1").is_err());
        }
    }

    #[test]
    fn a_task_that_was_changed_is_named_with_its_line() {
        let text = text(&list(3, 1)).replace("\"1k\"", "\"7k\"");
        let (line, why) = List::parse(&text, "0.1").unwrap_err();
        assert_eq!(line, 3);
        assert!(why.contains("was changed"), "{why}");
    }

    #[test]
    fn what_another_version_planned_is_not_read_further() {
        let text = text(&list(3, 1)).replace("\"case\"", "\"instance\"");
        let (line, why) = List::parse(&text, "0.2").unwrap_err();
        assert_eq!(line, 1);
        assert!(why.contains("planned by pagelab 0.1, this is 0.2"), "{why}");
    }

    #[test]
    fn a_file_that_a_case_names_is_part_of_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.trace");
        std::fs::write(&path, "one").unwrap();
        let case = Case::default().with("trace", path.to_str().unwrap());
        let files = files_of(&case).unwrap();
        let workload = "trace/stats".to_owned();
        let task = Task { id: String::new(), workload, case, method: METHOD, files };
        let name = task.name("0.1");
        task.check_files().unwrap();
        std::fs::write(&path, "two").unwrap();
        assert!(task.check_files().unwrap_err().contains("is not what was planned"));
        let files = files_of(&task.case).unwrap();
        assert_ne!(Task { files, ..task }.name("0.1"), name);
    }
}
