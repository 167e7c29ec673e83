//! What a process may have of larger pages, as the kernel says in `/proc` and in its cgroup.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Whether the process may have them; `None` where nobody says (it ended, or before Linux 5.0).
pub fn thp(pid: u32) -> Option<bool> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let word = status.lines().find_map(|line| line.strip_prefix("THP_enabled:"))?;
    Some(word.trim() != "0")
}

/// The memory cgroups (v2) of a process that have a limit, from its own upwards.
#[derive(Debug, Default)]
pub struct Limits(Vec<PathBuf>);

impl Limits {
    /// Of a process.
    pub fn of(pid: u32) -> Self {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let own = text.lines().find_map(|line| line.strip_prefix("0::/")).map(str::to_owned);
        let all = own.iter().flat_map(|own| Path::new(own).ancestors());
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
    fs::read_to_string(cgroup.join(name)).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_says_is_not_known() {
        assert_eq!(thp(u32::MAX), None);
        assert_eq!(Limits::of(u32::MAX).room(), None);
    }
}
