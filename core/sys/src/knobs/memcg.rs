//! A memory cgroup of one's own, with a limit, for the process of a case.
//!
//! One idea: a group is a directory, made where its limit can hold and removed when its processes
//! are gone. In version 1 it lies below the group of the run. In version 2 a group with processes
//! may not give controllers to groups below it, so it lies below the nearest one upwards that does;
//! where none does, the root is made to, and put back.
//!
//! A process is put into it by writing to [`MemoryGroup::door`]; nobody in it is ever killed by us.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{
    KnobError, Knobs, Outcome, Place,
    made::Made,
    making::{Making, unused_name},
    value::{again, is_busy, write},
};
use crate::machine::{
    Tree,
    proc::counts,
    topology::cgroup::{self, Group},
};

/// What the name of every group of ours starts with.
const NAME: &str = "pagelab-";

/// Attempts to remove a group whose last process is just ending.
const ATTEMPTS: u32 = 100;
const WAIT: Duration = Duration::from_millis(25);

/// A group of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryGroup {
    /// Its directory.
    pub path: PathBuf,
    /// Whether it is of version 2: then its files are `memory.max`, `memory.current`,
    /// `memory.events`; in version 1 `memory.limit_in_bytes`, `memory.usage_in_bytes`,
    /// `memory.failcnt`.
    pub unified: bool,
    /// Bytes that its processes may charge to it.
    pub limit: u64,
}

impl MemoryGroup {
    /// The file that puts a process into the group: `0` is the one that writes, else a pid.
    ///
    /// # Errors
    /// When the group is gone.
    pub fn door(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.path.join("cgroup.procs"))
    }

    /// Changes the limit; the group's own, so there is nothing to put back.
    ///
    /// # Errors
    /// When the kernel cannot bring the group below it (`EBUSY`, version 1).
    pub fn set_limit(&self, bytes: u64) -> io::Result<()> {
        let file = if self.unified { "memory.max" } else { "memory.limit_in_bytes" };
        write(&self.path.join(file), &bytes.to_string())
    }

    /// Keeps what is anonymous in it out of swap, where there is any.
    ///
    /// # Errors
    /// When the group is gone.
    pub fn keep_from_swap(&self) -> io::Result<()> {
        let file = if self.unified { "memory.swap.max" } else { "memory.swappiness" };
        match write(&self.path.join(file), "0") {
            // A kernel without swap.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Bytes of page cache charged to it now.
    pub fn file_cache(&self) -> Option<u64> {
        let stat = Tree::machine().text(self.path.join("memory.stat"))?;
        let of_files = |(name, _): &(&str, u64)| matches!(*name, "active_file" | "inactive_file");
        Some(counts(&stat).filter(of_files).map(|(_, bytes)| bytes).sum())
    }

    /// The most bytes that were charged to it so far, page cache included; `None` before Linux
    /// 5.19 in version 2.
    pub fn peak(&self) -> Option<u64> {
        let file = if self.unified { "memory.peak" } else { "memory.max_usage_in_bytes" };
        Tree::machine().number(self.path.join(file))
    }

    /// Processes of it that the kernel has killed for memory.
    pub fn kills(&self) -> u64 {
        let file = if self.unified { "memory.events" } else { "memory.oom_control" };
        Tree::machine().field_number(self.path.join(file), "oom_kill").unwrap_or(0)
    }

    /// Bytes charged to it now.
    pub fn used(&self) -> Option<u64> {
        let file = if self.unified { "memory.current" } else { "memory.usage_in_bytes" };
        Tree::machine().number(self.path.join(file))
    }
}

/// Where a group can be made: the directory above it, and whether the controller must first be
/// switched on there.
fn parent(tree: &Tree) -> Option<(PathBuf, Group, bool)> {
    let group = cgroup::find(tree, "memory")?;
    if !group.unified {
        return Some((group.path.first()?.clone(), group, false));
    }
    let lists_memory = |directory: &Path, file: &str| {
        let text = tree.text(directory.join(file)).unwrap_or_default();
        text.split_whitespace().any(|word| word == "memory")
    };
    let gives = |directory: &&PathBuf| lists_memory(directory, "cgroup.subtree_control");
    if let Some(directory) = group.path.iter().find(gives) {
        return Some((directory.clone(), group, false));
    }
    let root = group.path.last()?.clone();
    lists_memory(&root, "cgroup.controllers").then_some((root, group, true))
}

/// Whether the kernel has a memory controller that a group can be made under.
pub fn is_offered(tree: &Tree) -> bool {
    parent(tree).is_some()
}

/// Makes a group with this limit.
pub(super) fn make(knobs: &Knobs, limit: u64) -> Result<(Making<'_>, MemoryGroup), KnobError> {
    let tree = knobs.place.tree();
    let Some((above, group, must_enable)) = parent(tree) else {
        let why = "no memory controller is mounted here".to_owned();
        return Err(KnobError::Unsuitable { path: "/sys/fs/cgroup".into(), why });
    };
    let above = tree.path(above);
    let path = unused_name(&above, NAME);
    let enabled_in = must_enable.then(|| above.clone());
    let made = Made::MemoryGroup { path: path.clone(), enabled_in };
    let making = Making::begin(knobs, made)?;
    if must_enable {
        let control = above.join("cgroup.subtree_control");
        write(&control, "+memory").map_err(KnobError::of("write", &control))?;
    }
    fs::create_dir(&path).map_err(KnobError::of("mkdir", &path))?;
    let group = MemoryGroup { path, unified: group.unified, limit };
    group.set_limit(limit).map_err(KnobError::of("write", &group.path))?;
    Ok((making, group))
}

/// Removes a group of ours, and the controller with it where that was switched on for it.
pub(super) fn remove(
    place: &Place,
    path: &Path,
    enabled_in: Option<&Path>,
) -> Result<Outcome, KnobError> {
    let mut outcome = Outcome::NotThere;
    if path.exists() {
        let name = path.file_name().and_then(|name| name.to_str());
        if !name.is_some_and(|name| name.starts_with(NAME)) || !place.admits_directory(path) {
            return Ok(Outcome::NotOurs { why: "its name or place is another".to_owned() });
        }
        remove_when_empty(path).map_err(KnobError::of("rmdir", path))?;
        outcome = Outcome::Removed;
    }
    if let Some(above) = enabled_in {
        let control = above.join("cgroup.subtree_control");
        let text = fs::read_to_string(&control).unwrap_or_default();
        if text.split_whitespace().any(|word| word == "memory") {
            write(&control, "-memory").map_err(KnobError::of("write", &control))?;
            outcome = Outcome::Removed;
        }
    }
    Ok(outcome)
}

/// Waits for the group's processes to end; those that do not are moved to the group above.
fn remove_when_empty(path: &Path) -> io::Result<()> {
    // Version 1: lets go of page cache that is still charged to it.
    let _ = write(&path.join("memory.force_empty"), "0");
    again(ATTEMPTS, WAIT, is_busy, |attempt| {
        if attempt > ATTEMPTS / 2 + 1 {
            move_out(path);
        }
        fs::remove_dir(path)
    })
}

fn move_out(path: &Path) {
    let procs = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    let Some(above) = path.parent() else { return };
    for pid in procs.lines() {
        // One that has ended meanwhile needs no place; if another cannot be moved, `rmdir` says so.
        let _ = write(&above.join("cgroup.procs"), pid);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A machine with cgroup version 2 whose groups hold these files.
    fn machine(own: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
        let root = tempfile::tempdir().unwrap();
        let tree = Tree::at(root.path()).with([
            ("proc/self/cgroup", &*format!("0::{own}\n")),
            ("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ]);
        fs::create_dir_all(root.path().join("sys/fs/cgroup").join(&own[1..])).unwrap();
        let files = files.iter().map(|(path, text)| (format!("sys/fs/cgroup/{path}"), text));
        (root, tree.with(files))
    }

    #[test]
    fn a_group_of_version_2_is_made_where_its_limit_holds() {
        let (_root, tree) = machine(
            "/user/me",
            &[
                ("cgroup.subtree_control", "cpu memory\n"),
                ("user/cgroup.subtree_control", "memory pids\n"),
                ("user/me/cgroup.subtree_control", "\n"),
            ],
        );
        let (above, _, must_enable) = parent(&tree).unwrap();
        assert_eq!((above.to_str(), must_enable), (Some("/sys/fs/cgroup/user"), false));
        assert!(is_offered(&tree));
    }

    #[test]
    fn where_no_group_gives_the_controller_the_root_must() {
        let files = [("cgroup.subtree_control", "cpu\n"), ("cgroup.controllers", "cpu memory\n")];
        let (_root, tree) = machine("/me", &files);
        let (above, _, must_enable) = parent(&tree).unwrap();
        assert_eq!((above.to_str(), must_enable), (Some("/sys/fs/cgroup"), true));
        let (_root, tree) = machine("/me", &[("cgroup.controllers", "cpu\n")]);
        assert!(!is_offered(&tree));
    }

    /// A group whose files are ordinary ones.
    fn group(unified: bool, files: &[(&str, &str)]) -> (tempfile::TempDir, MemoryGroup) {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in files {
            fs::write(root.path().join(file), text).unwrap();
        }
        let group = MemoryGroup { path: root.path().to_owned(), unified, limit: 1 };
        (root, group)
    }

    #[test]
    fn a_group_is_limited_and_read_by_the_files_of_its_version() {
        let stat = "anon 1\nactive_file 3\ninactive_file 4\nfile 99\n";
        for (unified, limit, swap, used) in [
            (true, "memory.max", "memory.swap.max", "memory.current"),
            (false, "memory.limit_in_bytes", "memory.swappiness", "memory.usage_in_bytes"),
        ] {
            let files = [
                (limit, ""),
                (swap, ""),
                (used, "4096\n"),
                ("memory.stat", stat),
                ("cgroup.procs", ""),
            ];
            let (root, group) = group(unified, &files);
            let text = |file: &str| fs::read_to_string(root.path().join(file)).unwrap();
            group.set_limit(77).unwrap();
            group.keep_from_swap().unwrap();
            assert_eq!((text(limit).as_str(), text(swap).as_str()), ("77", "0"));
            assert_eq!((group.used(), group.file_cache()), (Some(4096), Some(7)));
            group.door().unwrap().write_all(b"0").unwrap();
            assert_eq!(text("cgroup.procs"), "0");
        }
    }

    #[test]
    fn the_peak_and_the_kills_are_read_by_the_files_of_its_version() {
        for (unified, peak, events) in [
            (true, "memory.peak", "memory.events"),
            (false, "memory.max_usage_in_bytes", "memory.oom_control"),
        ] {
            let counts = "oom_kill_disable 0\noom 9\noom_kill 3\n";
            let (_root, read) = group(unified, &[(peak, "8192\n"), (events, counts)]);
            assert_eq!((read.peak(), read.kills()), (Some(8192), 3));
            let (_root, older) = group(unified, &[]);
            assert_eq!((older.peak(), older.kills()), (None, 0));
        }
    }

    #[test]
    fn a_kernel_without_swap_keeps_out_of_it_and_other_errors_are_said() {
        let (root, group) = group(true, &[]);
        group.keep_from_swap().unwrap();
        fs::create_dir(root.path().join("memory.swap.max")).unwrap();
        group.keep_from_swap().unwrap_err();
        assert!(group.set_limit(1).is_err() && group.door().is_err());
        assert_eq!((group.used(), group.file_cache()), (None, None));
    }

    #[test]
    fn the_controller_that_was_switched_on_for_a_group_is_switched_off_with_it() {
        let root = tempfile::tempdir().unwrap();
        let place = Place::at(root.path().join("lab")).with_root(root.path());
        let control = root.path().join("cgroup.subtree_control");
        let ours = root.path().join("pagelab-1-0");
        fs::create_dir(&ours).unwrap();
        fs::write(&control, "cpu memory\n").unwrap();
        assert_eq!(remove(&place, &ours, Some(root.path())).unwrap(), Outcome::Removed);
        assert!(fs::read_to_string(&control).unwrap().starts_with("-memory"));
        // Already gone, and the controller as well.
        fs::write(&control, "cpu\n").unwrap();
        assert_eq!(remove(&place, &ours, Some(root.path())).unwrap(), Outcome::NotThere);
        assert_eq!(fs::read_to_string(&control).unwrap(), "cpu\n");
    }

    #[test]
    fn a_group_that_holds_something_for_good_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let ours = root.path().join("pagelab-1-0");
        fs::create_dir_all(ours.join("below")).unwrap();
        // Not busy but not empty: nothing to wait for.
        remove_when_empty(&ours).unwrap_err();
        assert!(ours.exists());
    }

    #[test]
    fn who_is_in_a_group_is_moved_above_it() {
        let root = tempfile::tempdir().unwrap();
        let ours = root.path().join("pagelab-1-0");
        fs::create_dir(&ours).unwrap();
        fs::write(ours.join("cgroup.procs"), "17\n").unwrap();
        fs::write(root.path().join("cgroup.procs"), "").unwrap();
        move_out(&ours);
        assert_eq!(fs::read_to_string(root.path().join("cgroup.procs")).unwrap(), "17");
    }

    #[test]
    fn only_a_group_named_as_ours_and_in_its_place_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let place = Place::at(root.path().join("lab")).with_root(root.path().join("cgroup"));
        let (ours, other) = (root.path().join("cgroup/pagelab-1-0"), root.path().join("cgroup/x"));
        let outside = root.path().join("pagelab-1-0");
        for directory in [&ours, &other, &outside] {
            fs::create_dir_all(directory).unwrap();
        }
        for not_ours in [&other, &outside] {
            let outcome = remove(&place, not_ours, None).unwrap();
            assert!(matches!(outcome, Outcome::NotOurs { .. }) && not_ours.exists());
        }
        assert_eq!(remove(&place, &ours, None).unwrap(), Outcome::Removed);
        assert_eq!(remove(&place, &ours, None).unwrap(), Outcome::NotThere);
    }
}
