//! Which cgroup directories hold for this process, version 1 and version 2 alike.
//!
//! One idea: a limit anywhere between the process and the mount's root holds, so the answer is
//! the whole way up. `/proc/self/cgroup` is the path as the *host* sees it; inside a container
//! the mount shows only a part of it, or the path does not exist at all, and then the mount point
//! itself is the best that can be known.

use std::path::{Path, PathBuf};

use super::Tree;
use crate::machine::proc::{Mount, group, groups, mounts};

/// The way from a process's cgroup up to the root of its mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// Whether it is of the unified hierarchy (cgroup v2).
    pub(crate) unified: bool,
    /// The directories, the process's own first; absolute, to be read through the same tree.
    pub(crate) path: Vec<PathBuf>,
}

/// The group that controls `controller` for this process: v1 if it is mounted there, else v2.
pub(crate) fn find(tree: &Tree, controller: &str) -> Option<Group> {
    let (own, mounted) = (tree.text("proc/self/cgroup")?, tree.text("proc/self/mountinfo")?);
    let of_version_1 = groups(&own).find(|group| group.controls(controller)).and_then(|group| {
        let mount = mounts(&mounted).find(|one| one.kind == "cgroup" && one.has(controller))?;
        Some(Group { unified: false, path: way_up(tree, &mount, group.path) })
    });
    of_version_1.or_else(|| {
        let (group, mut mounts) = (group(&own)?, mounts(&mounted));
        let mount = mounts.find(|mount| mount.kind == "cgroup2")?;
        Some(Group { unified: true, path: way_up(tree, &mount, group.path) })
    })
}

/// The path of this process in its memory hierarchy, as the host names it.
pub(crate) fn own_path(tree: &Tree) -> Option<String> {
    let own = tree.text("proc/self/cgroup")?;
    let memory = groups(&own).find(|group| group.controls("memory"));
    memory.or_else(|| group(&own)).map(|group| group.path.to_owned())
}

/// Every directory from the group up to the mount point, both included.
fn way_up(tree: &Tree, mount: &Mount<'_>, group: &str) -> Vec<PathBuf> {
    let below = Path::new(group).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    let below = below.strip_prefix("/").unwrap_or(below);
    let own = mount.point.join(below);
    let climbs_out = below.components().any(|part| part.as_os_str() == "..");
    if climbs_out || !tree.path(&own).is_dir() {
        return vec![mount.point.clone()];
    }
    own.ancestors()
        .take_while(|directory| directory.starts_with(&mount.point))
        .map(Path::to_owned)
        .collect()
}
