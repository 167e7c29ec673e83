//! A memory cgroup of a test's own.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{is_root, skip, until};

/// A memory cgroup of the test's own, removed with it.
pub(crate) struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// Makes one with a limit, or says why it cannot.
    pub(crate) fn of(bytes: u64) -> Option<Self> {
        let cure = "run the tests as root where a memory cgroup is mounted and may be changed";
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let (root, limit) = if v1.join("memory.limit_in_bytes").exists() {
            (v1, "memory.limit_in_bytes")
        } else {
            (Path::new("/sys/fs/cgroup"), "memory.max")
        };
        let group = Self(root.join(format!("pagelab-e2e-{}-{bytes}", std::process::id())));
        let made = is_root()
            && fs::create_dir(&group.0).is_ok()
            && fs::write(group.0.join(limit), bytes.to_string()).is_ok();
        if !made {
            skip("no memory cgroup can be made", cure);
            return None;
        }
        // With swap the group would be slow instead of short of memory.
        for file in ["memory.swappiness", "memory.swap.max"] {
            let _ = fs::write(group.0.join(file), "0");
        }
        Some(group)
    }

    /// The file that a process is written to, to be in it.
    pub(crate) fn processes(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }

    /// Moves a process into it.
    pub(crate) fn take(&self, pid: u32) {
        fs::write(self.processes(), pid.to_string()).unwrap();
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // Busy until the kernel has let go of its last process.
        if self.0.exists() {
            until("the cgroup to be empty", || fs::remove_dir(&self.0).ok());
        }
    }
}
