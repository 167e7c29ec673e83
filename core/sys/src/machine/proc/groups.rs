//! `/proc/PID/cgroup` and `mountinfo`: the control groups of a process, and what is mounted.

use std::path::PathBuf;

use super::unescape;

/// The group of a process in one hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group<'t> {
    /// Of version 1, with commas between; empty for version 2.
    controllers: &'t str,
    /// Its path below the root of the hierarchy, as the host names it.
    pub path: &'t str,
}

impl Group<'_> {
    /// Whether it is of version 1 and has a controller.
    pub fn controls(&self, controller: &str) -> bool {
        self.controllers.split(',').any(|name| name == controller)
    }
}

/// The groups in a text of lines `4:cpu,memory:/a/b`.
pub fn groups(text: &str) -> impl Iterator<Item = Group<'_>> {
    text.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        Some(Group { controllers, path })
    })
}

/// The group of version 2, `0::/a/b`.
pub fn group(text: &str) -> Option<Group<'_>> {
    groups(text).find(|group| group.controllers.is_empty())
}

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount<'t> {
    /// What of the file system is mounted.
    pub root: PathBuf,
    /// Where.
    pub point: PathBuf,
    /// The type of the file system.
    pub kind: &'t str,
    options: &'t str,
}

impl Mount<'_> {
    /// Whether the file system has an option.
    pub fn has(&self, option: &str) -> bool {
        self.options.split(',').any(|name| name == option)
    }
}

/// The mounts in a text of lines `35 31 0:32 ROOT POINT rw shared:9 - TYPE SOURCE OPTIONS`.
pub fn mounts(text: &str) -> impl Iterator<Item = Mount<'_>> {
    text.lines().filter_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let (mut mount, mut system) = (mount.split(' ').skip(3), system.split(' '));
        let (root, point) = (unescape(mount.next()?), unescape(mount.next()?));
        Some(Mount { root, point, kind: system.next()?, options: system.nth(1)? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_told_with_their_escapes() {
        let text = "35 31 0:32 / /a\\040b rw,nosuid shared:9 master:1 - cgroup cgroup rw,memory\n\
                    36 31 0:33 /x /c rw - cgroup2 none rw\nbad - line\n";
        let found: Vec<_> = mounts(text).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].point, PathBuf::from("/a b"));
        assert!(found[0].has("memory") && !found[0].has("nosuid") && found[0].kind == "cgroup");
        assert_eq!((found[1].root.to_str(), found[1].kind), (Some("/x"), "cgroup2"));
    }
}
