//! What a machine is set to, before and after.
//!
//! The one idea: everything that pagelab may change is read from the kernel, and from nothing that
//! pagelab wrote, as text by name. Two such lists are the same, or their differences are what a run
//! left. Not the counters that stand among the settings, nor what is written to start something.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use serde::Deserialize;

/// What is a setting: `settings.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Places {
    folders: Vec<String>,
    files: Vec<String>,
    no_settings: Vec<String>,
    no_folders: Vec<String>,
    scratch: Vec<String>,
}

static PLACES: LazyLock<Places> =
    LazyLock::new(|| toml::from_str(include_str!("settings.toml")).expect("a test reads it"));

/// What begins the names of what pagelab makes; the number of a process follows.
const GROUP: &str = "pagelab-";
const SWAP_FILE: &str = "pagelab-swap-";
/// Folders below folders, in the kernel's trees.
const DEPTH_MAX: usize = 12;

/// Settings by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Settings(BTreeMap<String, String>);

impl Settings {
    /// As they are now.
    pub(super) fn now() -> Self {
        let mut all = BTreeMap::new();
        for folder in &PLACES.folders {
            files(Path::new(folder), DEPTH_MAX, &mut |path| add(&mut all, path));
        }
        for file in &PLACES.files {
            add(&mut all, Path::new(file));
        }
        let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
        all.insert("/proc/swaps".into(), without_use(&swaps));
        for path in entries(Path::new("/sys/block")) {
            if name(&path).starts_with("zram") {
                add(&mut all, &path.join("disksize"));
            }
        }
        groups(Path::new("/sys/fs/cgroup"), DEPTH_MAX, &mut all);
        for folder in &PLACES.scratch {
            let ours = entries(Path::new(folder)).into_iter();
            for path in ours.filter(|path| is_made_by_us(&name(path), SWAP_FILE)) {
                all.insert(path.display().to_string(), "a file".into());
            }
        }
        Self(all)
    }

    /// What is other than it was, in sentences.
    pub(super) fn left(&self, now: &Self) -> Vec<String> {
        let none = "not there".to_owned();
        let names = self.0.keys().chain(now.0.keys().filter(|key| !self.0.contains_key(*key)));
        let both = names.map(|name| {
            (name, self.0.get(name).unwrap_or(&none), now.0.get(name).unwrap_or(&none))
        });
        both.filter(|(_, before, after)| before != after)
            .map(|(name, before, after)| format!("{name} was {before:?} and is {after:?}"))
            .collect()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}

fn add(all: &mut BTreeMap<String, String>, path: &Path) {
    if let Ok(text) = fs::read_to_string(path) {
        all.insert(path.display().to_string(), text.trim_end().to_owned());
    }
}

/// Every file below a folder that is a setting; links lead out of it.
fn files(folder: &Path, depth: usize, found: &mut dyn FnMut(&Path)) {
    for path in entries(folder) {
        let kind = path.symlink_metadata().map(|data| data.file_type());
        let name = name(&path);
        match kind {
            Ok(kind) if kind.is_dir() && depth > 0 && !PLACES.no_folders.contains(&name) => {
                files(&path, depth - 1, found);
            }
            Ok(kind) if kind.is_file() && !PLACES.no_settings.contains(&name) => found(&path),
            _ => {}
        }
    }
}

/// `pagelab-4711-0`, and not what tests make for themselves.
fn is_made_by_us(name: &str, beginning: &str) -> bool {
    name.strip_prefix(beginning).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Groups of ours; others' come and go.
fn groups(folder: &Path, depth: usize, all: &mut BTreeMap<String, String>) {
    for path in entries(folder) {
        if !path.symlink_metadata().is_ok_and(|data| data.is_dir()) {
            continue;
        }
        if is_made_by_us(&name(&path), GROUP) {
            all.insert(path.display().to_string(), "a group".into());
        } else if depth > 0 {
            groups(&path, depth - 1, all);
        }
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// `/proc/swaps` without the column that says how much of each is used.
fn without_use(swaps: &str) -> String {
    let line = |line: &str| {
        let mut words: Vec<_> = line.split_whitespace().collect();
        if words.len() == 5 {
            words.remove(3);
        }
        words.join(" ")
    };
    swaps.lines().skip(1).map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(rows: &[(&str, &str)]) -> Settings {
        Settings(rows.iter().map(|&(name, value)| (name.into(), value.into())).collect())
    }

    #[test]
    fn what_was_changed_made_or_removed_is_left_and_the_rest_is_not() {
        let before = settings(&[("/a", "1"), ("/b", "never"), ("/c", "x")]);
        let after = settings(&[("/a", "1"), ("/b", "always"), ("/z", "a group")]);
        assert_eq!(before.left(&before), [""; 0]);
        assert_eq!(
            before.left(&after),
            [
                r#"/b was "never" and is "always""#,
                r#"/c was "x" and is "not there""#,
                r#"/z was "not there" and is "a group""#,
            ]
        );
    }

    #[test]
    fn only_what_a_run_made_is_ours() {
        assert!(is_made_by_us("pagelab-4711-0", GROUP));
        assert!(is_made_by_us("pagelab-swap-4711-0", SWAP_FILE));
        assert!(!is_made_by_us("pagelab-e2e-4711", GROUP) && !is_made_by_us("system", GROUP));
    }

    #[test]
    fn swap_is_compared_without_how_much_of_it_is_used() {
        let with = |used| {
            format!("Filename Type Size Used Priority\n/dev/zram1 partition 65532 {used} 32767\n")
        };
        assert_eq!(without_use(&with("0")), without_use(&with("4096")));
        assert_eq!(without_use(&with("0")), "/dev/zram1 partition 65532 32767");
        assert_eq!(without_use("Filename Type Size Used Priority\n"), "");
    }

    #[test]
    fn a_machine_has_settings_and_they_do_not_move_by_themselves() {
        let (first, second) = (Settings::now(), Settings::now());
        assert!(first.count() > 10, "{first:?}");
        // Another pagelab may be at work; what every kernel has is read by its name.
        assert!(second.0.contains_key("/proc/sys/vm/swappiness"));
    }
}
