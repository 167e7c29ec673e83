//! What a process may have of larger pages, as the kernel says in `/proc` and in its cgroup.

use std::path::{Path, PathBuf};

use pagelab_sys::machine::{Tree, proc};

/// Whether the process may have them; `None` where nobody says (it ended, or before Linux 5.0).
pub fn thp(pid: u32) -> Option<bool> {
    let word = Tree::machine().field(format!("proc/{pid}/status"), "THP_enabled")?;
    Some(word != "0")
}

/// Whether the first store to 2 MiB that were only loaded from brings a page of that size: since
/// Linux 6.13 the huge zero page is replaced by one (`do_huge_zero_wp_pmd`), before that it was
/// split. Where there is no such page a load brings it.
pub fn loads_keep_thp() -> bool {
    let zero = Tree::machine().number("sys/kernel/mm/transparent_hugepage/use_zero_page");
    zero == Some(0) || is_since((6, 13))
}

/// Whether memory that is mapped with `MAP_STACK` has no larger pages: since Linux 6.7 (commit
/// c4608d1bf7c6).
pub fn stacks_deny_thp() -> bool {
    is_since((6, 7))
}

fn is_since(version: (u32, u32)) -> bool {
    since(&Tree::machine().text("proc/sys/kernel/osrelease").unwrap_or_default(), version)
}

/// Whether a kernel's release is of a version or later.
fn since(release: &str, version: (u32, u32)) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|word| word.parse().ok());
    let mut next = || numbers.next().flatten();
    next().zip(next()).is_some_and(|release| release >= version)
}

/// The memory cgroups (v2) of a process that have a limit, from its own upwards.
#[derive(Debug, Default)]
pub struct Limits(Vec<PathBuf>);

impl Limits {
    /// Of a process.
    pub fn of(pid: u32) -> Self {
        let text = proc::text(pid, "cgroup").unwrap_or_default();
        let own = proc::group(&text).and_then(|group| group.path.strip_prefix('/'));
        let all = own.into_iter().flat_map(|own| Path::new(own).ancestors());
        let paths = all.map(|path| Path::new("/sys/fs/cgroup").join(path));
        Self(paths.filter(|path| number(path, "memory.max").is_some()).collect())
    }

    /// Bytes that the strictest of them has left; `None` without any.
    pub fn room(&self) -> Option<u64> {
        let room = |path: &PathBuf| {
            let (max, current) = (number(path, "memory.max")?, number(path, "memory.current")?);
            Some(max.saturating_sub(current))
        };
        self.0.iter().filter_map(room).min()
    }
}

fn number(cgroup: &Path, name: &str) -> Option<u64> {
    Tree::machine().number(cgroup.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_older_by_its_numbers() {
        for release in ["6.13.0-rc1", "6.18.44-fc-v669\n", "7.0"] {
            assert!(since(release, (6, 13)), "{release}");
        }
        for release in ["6.12.9", "6.9", "5.15.0-91-generic", "", "next"] {
            assert!(!since(release, (6, 13)), "{release}");
        }
    }

    #[test]
    fn what_nobody_says_is_not_known() {
        assert_eq!(thp(u32::MAX), None);
        assert_eq!(Limits::of(u32::MAX).room(), None);
    }
}
