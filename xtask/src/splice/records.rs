//! Runs that pages show: journals in `records/`, packed, and their reports.
//!
//! A journal keeps every observation, so it is packed by `xz`: 1.4 MB are 0.1 then. Whoever wants
//! more than a page shows has everything: `xz -dk records/quick.jsonl.xz`, `pagelab report`.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use lzma_rust2::{XzOptions, XzReader, XzWriter};
use serde_json::Value;

use crate::{
    shell::{output, program},
    test::summary::{Summary, render},
};

/// Where they are kept.
pub(super) const FOLDER: &str = "records";
/// The file of a run's directory that holds everything.
const JOURNAL: &str = "journal.jsonl";
/// How wide the reports in pages are: what most places show without a scroll bar.
const COLUMNS: &str = "110";
/// Facts of a host that describe how a laboratory is operated and explain no number.
const PRIVATE: &[&str] = &["kernel_command_line", "kernel_build", "cgroup_path"];

/// Reports of the runs in `records/`, each made once.
pub(super) struct Records {
    folder: PathBuf,
    unpacked: PathBuf,
    binary: PathBuf,
    reports: BTreeMap<String, String>,
}

impl Records {
    /// Those of the repository, read by this program.
    pub(super) fn new(root: &Path, binary: &Path) -> Self {
        Self {
            folder: root.join(FOLDER),
            // Whoever reads a page may not write beside it.
            unpacked: std::env::temp_dir(),
            binary: binary.to_owned(),
            reports: BTreeMap::new(),
        }
    }

    /// The report of a run as a terminal shows it; of the tests, what they came to; of a simulation
    /// what it found.
    ///
    /// # Errors
    /// When there is no such run, or the program does not read it.
    pub(super) fn report(&mut self, name: &str) -> Result<String> {
        if let Some(report) = self.reports.get(name) {
            return Ok(report.clone());
        }
        let tests = self.folder.join(format!("{name}.json"));
        if let Ok(summary) = fs::read_to_string(&tests) {
            let summary: Summary = serde_json::from_str(&summary)
                .with_context(|| format!("reading {}", tests.display()))?;
            return Ok(render(&summary));
        }
        // What a simulation found is text already.
        if let Ok(text) = fs::read_to_string(self.folder.join(format!("{name}.txt"))) {
            return Ok(text);
        }
        let packed = self.folder.join(format!("{name}.jsonl.xz"));
        let journal = unpack(&packed).with_context(|| format!("reading {}", packed.display()))?;
        // A name of our own: another test run may be reading.
        let path = self.unpacked.join(format!("pagelab-{name}-{}.jsonl", std::process::id()));
        fs::write(&path, journal).with_context(|| format!("writing {}", path.display()))?;
        let mut command = program(&self.binary.to_string_lossy(), ["report"]);
        let report = output(command.arg(&path).env("COLUMNS", COLUMNS));
        fs::remove_file(&path)?;
        Ok(self.reports.entry(name.to_owned()).or_insert(report?).clone())
    }
}

/// Keeps a run under a name.
///
/// # Errors
/// When its journal cannot be read or the packed one not be written.
pub(super) fn take(run: &Path, folder: &Path, name: &str) -> Result<()> {
    let journal = run.join(JOURNAL);
    let text = fs::read_to_string(&journal);
    let text = text.with_context(|| format!("reading {}", journal.display()))?;
    let packed = folder.join(format!("{name}.jsonl.xz"));
    fs::create_dir_all(folder)?;
    let bytes = pack(&public(&text)?)?;
    fs::write(&packed, bytes).with_context(|| format!("writing {}", packed.display()))
}

/// A journal without what concerns nobody else.
fn public(journal: &str) -> Result<String> {
    let mut lines = String::with_capacity(journal.len());
    for line in journal.lines() {
        let mut line: Value = serde_json::from_str(line).context("a line is not JSON")?;
        // The program by its name: where it was built is nobody's business.
        if let Some(Value::String(program)) = line.pointer_mut("/command/0")
            && let Some((_, name)) = program.rsplit_once('/')
        {
            *program = name.to_owned();
        }
        if let Some(host) = line.get_mut("host").and_then(Value::as_object_mut) {
            for facts in host.values_mut().filter_map(Value::as_object_mut) {
                facts.retain(|fact, _| !PRIVATE.contains(&fact.as_str()));
            }
        }
        lines.push_str(&line.to_string());
        lines.push('\n');
    }
    Ok(lines)
}

fn pack(text: &str) -> Result<Vec<u8>> {
    let mut writer = XzWriter::new(Vec::new(), XzOptions::default())?;
    writer.write_all(text.as_bytes())?;
    Ok(writer.finish()?)
}

/// What a packed file holds.
pub(crate) fn unpack(packed: &Path) -> Result<Vec<u8>> {
    let mut journal = Vec::new();
    XzReader::new(fs::File::open(packed)?, true).read_to_end(&mut journal)?;
    Ok(journal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_kept_loses_only_what_is_private() {
        let line = r#"{"host":{"settings":{"aslr":2,"kernel_command_line":"x"}},"mean":0.1}"#;
        let kept = public(line).unwrap();
        assert_eq!(kept, "{\"host\":{\"settings\":{\"aslr\":2}},\"mean\":0.1}\n");
        let header = r#"{"command":["/build/release/pagelab","run","/a/b"]}"#;
        assert_eq!(public(header).unwrap(), "{\"command\":[\"pagelab\",\"run\",\"/a/b\"]}\n");
    }

    #[test]
    fn a_summary_of_tests_is_shown_as_the_tests_print_it() {
        let root = std::env::temp_dir().join(format!("pagelab-summary-{}", std::process::id()));
        fs::create_dir_all(root.join(FOLDER)).unwrap();
        let summary = Summary { seconds: 61, ..Summary::default() };
        let json = serde_json::to_string(&summary).unwrap();
        fs::write(root.join(FOLDER).join("test.json"), json).unwrap();
        let shown = Records::new(&root, Path::new("none")).report("test").unwrap();
        assert_eq!(shown, render(&summary));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn what_a_simulation_found_is_shown_as_it_stands() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let shown = Records::new(root, Path::new("none")).report("coverage").unwrap();
        assert!(shown.contains("heavy tails"), "{shown}");
    }

    #[test]
    fn what_was_packed_is_unpacked() {
        let folder = std::env::temp_dir().join(format!("pagelab-splice-{}", std::process::id()));
        let run = folder.join("run");
        fs::create_dir_all(&run).unwrap();
        fs::write(run.join(JOURNAL), "{\"a\":1}\n{\"b\":[1.5e-7]}\n").unwrap();
        take(&run, &folder, "kept").unwrap();
        let journal = unpack(&folder.join("kept.jsonl.xz")).unwrap();
        assert_eq!(String::from_utf8(journal).unwrap(), "{\"a\":1}\n{\"b\":[1.5e-7]}\n");
        fs::remove_dir_all(&folder).unwrap();
    }
}
