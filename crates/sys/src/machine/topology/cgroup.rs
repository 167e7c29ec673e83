//! Which cgroup directories hold for this process, version 1 and version 2 alike.
//!
//! One idea: a limit anywhere between the process and the mount's root holds, so the answer is
//! the whole way up. `/proc/self/cgroup` is the path as the *host* sees it; inside a container
//! the mount shows only a part of it, or the path does not exist at all, and then the mount point
//! itself is the best that can be known.

use std::path::{Path, PathBuf};

use procfs::{
    FromBufRead, ProcessCGroups,
    process::{MountInfo, MountInfos},
};

use super::Tree;

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
    let ProcessCGroups(groups) = parse(tree, "proc/self/cgroup")?;
    let MountInfos(mounts) = parse(tree, "proc/self/mountinfo")?;
    let of_version_1 = groups
        .iter()
        .find(|group| group.controllers.iter().any(|name| name == controller))
        .and_then(|group| {
            let mount = mounts.iter().find(|mount| {
                mount.fs_type == "cgroup" && mount.super_options.contains_key(controller)
            })?;
            Some(Group { unified: false, path: way_up(tree, mount, &group.pathname) })
        });
    of_version_1.or_else(|| {
        let group = groups.iter().find(|group| group.hierarchy == 0)?;
        let mount = mounts.iter().find(|mount| mount.fs_type == "cgroup2")?;
        Some(Group { unified: true, path: way_up(tree, mount, &group.pathname) })
    })
}

/// The path of this process in its memory hierarchy, as the host names it.
pub(crate) fn own_path(tree: &Tree) -> Option<String> {
    let ProcessCGroups(groups) = parse(tree, "proc/self/cgroup")?;
    let memory = groups.iter().find(|group| group.controllers.iter().any(|name| name == "memory"));
    let group = memory.or_else(|| groups.iter().find(|group| group.hierarchy == 0))?;
    Some(group.pathname.clone())
}

fn parse<T: FromBufRead>(tree: &Tree, path: &str) -> Option<T> {
    T::from_buf_read(tree.bytes(path)?.as_slice()).ok()
}

/// Every directory from the group up to the mount point, both included.
fn way_up(tree: &Tree, mount: &MountInfo, group: &str) -> Vec<PathBuf> {
    let below = Path::new(group).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    let below = below.strip_prefix("/").unwrap_or(below);
    let own = mount.mount_point.join(below);
    let climbs_out = below.components().any(|part| part.as_os_str() == "..");
    if climbs_out || !tree.path(&own).is_dir() {
        return vec![mount.mount_point.clone()];
    }
    own.ancestors()
        .take_while(|directory| directory.starts_with(&mount.mount_point))
        .map(Path::to_owned)
        .collect()
}
