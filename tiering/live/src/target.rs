//! The process whose pages are to be moved: whether it may be, and what it has mapped.
//!
//! The one idea: everything is read from `/proc/PID` at the beginning of each pass, so that a
//! process may map, unmap and run another program as it likes. It is not changed here.

use std::{fs, io, ops::Range};

use pagelab_sys::machine::{
    Tree, parse_list,
    proc::{self, Mapping, Placement, mappings, placements},
};

/// Why a process cannot be the target.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It is not there, or not any more.
    #[error("there is no process {0}")]
    Gone(u32),
    /// It is this one.
    #[error("process {0} is this pagelab: it does not move its own pages")]
    Ourselves(u32),
    /// It has no memory of its own.
    #[error("process {0} has no memory of its own: it is a thread of the kernel, or has ended")]
    Kernel(u32),
    /// It may not be looked at.
    #[error("process {0} is another user's: run pagelab as root")]
    Forbidden(u32),
    /// Another engine has it.
    #[error("another pagelab promotes process {0}: two would undo each other's work")]
    Taken(u32),
    /// It has no library of ours in it.
    #[error("process {0} was not started with the library: it is static, or of another user")]
    NotLoaded(u32),
    /// It has closed the descriptor of its faults.
    #[error("process {0} has closed all of its files, and with them what pagelab knows it by")]
    Closed(u32),
    /// Anything else.
    #[error("process {pid}: {why}")]
    Other {
        /// Which.
        pid: u32,
        /// What went wrong.
        why: io::Error,
    },
}

impl Refused {
    /// What an error of a file of `/proc/PID` means.
    pub(crate) fn of(pid: u32, why: io::Error) -> Self {
        match why.raw_os_error() {
            // ENOENT of the folder, ESRCH of a file of it.
            Some(2 | 3) => Self::Gone(pid),
            Some(1 | 13) => Self::Forbidden(pid),
            _ => Self::Other { pid, why },
        }
    }
}

/// What a process is made of, at one time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Memory {
    /// Whose pages may move, each as it was mapped, in rising order.
    pub mappings: Vec<Range<u64>>,
    /// Bytes in hugetlb pages.
    pub hugetlb: u64,
    /// Bytes that are bound to nodes, or spread over them, by their policy.
    pub bound: u64,
    /// Another program has another one.
    pub life: String,
}

/// Looks whether a process may be the target.
///
/// # Errors
/// Why it may not.
pub fn check(pid: u32) -> Result<(), Refused> {
    if pid == std::process::id() {
        return Err(Refused::Ourselves(pid));
    }
    let read = |name| proc::text(pid, name).map_err(|why| Refused::of(pid, why));
    let status = read("status")?;
    let field = |name| proc::field(&status, name);
    // A thread has a folder, too, which no listing shows.
    if field("Tgid").is_some_and(|group| group != pid.to_string()) {
        return Err(Refused::Gone(pid));
    }
    if field("VmSize").is_none() {
        return Err(Refused::Kernel(pid));
    }
    read("maps").map(drop)
}

/// Keeps other engines from a process for as long as it is held.
///
/// The lock is on the process's own folder, so that it goes with either of them and leaves nothing.
///
/// # Errors
/// When another engine holds it.
pub fn claim(pid: u32) -> Result<fs::File, Refused> {
    let folder = fs::File::open(format!("/proc/{pid}")).map_err(|why| Refused::of(pid, why))?;
    match folder.try_lock() {
        Ok(()) => Ok(folder),
        Err(fs::TryLockError::WouldBlock) => Err(Refused::Taken(pid)),
        Err(fs::TryLockError::Error(why)) => Err(Refused::of(pid, why)),
    }
}

/// What a process has mapped now.
///
/// # Errors
/// When it has ended or may not be looked at.
pub fn memory(pid: u32) -> Result<Memory, Refused> {
    let maps = proc::text(pid, "maps").map_err(|why| Refused::of(pid, why))?;
    if maps.is_empty() {
        return Err(Refused::Gone(pid));
    }
    let policies = proc::text(pid, "numa_maps").unwrap_or_default();
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    // A stack grows downward; where it ends is drawn at random for each program that is run.
    let stack = mappings(&maps).find(|mapping| mapping.name == "[stack]");
    let end = stack.map_or(0, |mapping| mapping.range.end);
    Ok(Memory { life: format!("{} {end:x}", program.display()), ..parsed(&maps, &policies) })
}

/// Addresses that are the kernel's own.
const SPECIAL: [&str; 4] = ["[vvar]", "[vdso]", "[vsyscall]", "[vvar_vclock]"];

/// What the texts of `maps` and `numa_maps` say.
fn parsed(maps: &str, policies: &str) -> Memory {
    let mut found = Memory::default();
    let mut policies = placements(policies).peekable();
    for Mapping { range, rights, name, .. } in mappings(maps) {
        let bytes = range.end - range.start;
        while policies.next_if(|policy| policy.start < range.start).is_some() {}
        let policy = policies.next_if(|policy| policy.start == range.start);
        if policy.as_ref().is_some_and(Placement::is_hugetlb) {
            found.hugetlb += bytes;
        } else if policy.as_ref().is_some_and(Placement::is_bound) {
            found.bound += bytes;
        } else if rights.starts_with("---") || SPECIAL.contains(&name) {
            // Nothing that could be moved.
        } else {
            found.mappings.push(range);
        }
    }
    found
}

/// The nodes that a process may have memory on; empty where the kernel does not say.
pub fn allowed_nodes(pid: u32) -> Vec<usize> {
    let field = Tree::machine().field(format!("proc/{pid}/status"), "Mems_allowed_list");
    field.and_then(|list| parse_list(&list)).unwrap_or_default()
}

/// Whether a node is among those that a process may have memory on.
pub fn allows(allowed: &[usize], node: usize) -> bool {
    allowed.is_empty() || allowed.contains(&node)
}

/// The processes of a group and of those below it.
///
/// # Errors
/// When there is no such group.
pub fn of_group(folder: &std::path::Path) -> io::Result<Vec<u32>> {
    let text = fs::read_to_string(folder.join("cgroup.procs"))?;
    let mut pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    for entry in fs::read_dir(folder)?.filter_map(Result::ok) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            // One that vanishes meanwhile has no processes.
            pids.extend(of_group(&entry.path()).unwrap_or_default());
        }
    }
    pids.sort_unstable();
    pids.dedup();
    Ok(pids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_bound_or_hugetlb_or_the_kernels_does_not_move() {
        let maps = "\
            00400000-00401000 r-xp 00000000 fe:00 12 /bin/program with a space\n\
            00401000-00403000 rw-p 00000000 00:00 0 [heap]\n\
            10000000-10200000 rw-p 00000000 00:0f 7 /anon_hugepage (deleted)\n\
            20000000-20004000 rw-p 00000000 00:00 0 \n\
            30000000-30002000 rw-p 00000000 00:00 0 \n\
            40000000-40002000 ---p 00000000 00:00 0 \n\
            50000000-50001000 rw-p 00000000 00:00 0 \n\
            nonsense\n\
            7ffe00000000-7ffe00001000 r-xp 00000000 00:00 0 [vdso]\n";
        let policies = "\
            00400000 default file=/bin/program mapped=1\n\
            00401000 default heap anon=2 dirty=2 N0=2\n\
            10000000 default file=/anon_hugepage huge anon=1 N0=1\n\
            20000000 bind:1 anon=4 N1=4\n\
            30000000 prefer:1 anon=2\n\
            50000000 weighted interleave:0-1 anon=1\n";
        let found = parsed(maps, policies);
        let expected = [0x40_0000..0x40_1000_u64, 0x40_1000..0x40_3000, 0x3000_0000..0x3000_2000];
        assert_eq!(found.mappings, expected);
        assert_eq!((found.hugetlb, found.bound), (2 << 20, 0x5000));
    }

    #[test]
    fn who_cannot_be_the_target_is_told_why() {
        let own = std::process::id();
        assert!(matches!(check(own), Err(Refused::Ourselves(pid)) if pid == own));
        assert!(matches!(check(u32::MAX), Err(Refused::Gone(_))));
        // The kernel's own daemon, where this process sees it.
        if fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd") {
            assert!(matches!(check(2), Err(Refused::Kernel(2))));
        }
        let found = memory(own).unwrap();
        assert!(!found.mappings.is_empty() && !found.life.is_empty());
        assert!(matches!(memory(u32::MAX), Err(Refused::Gone(_))));
    }

    #[test]
    fn a_process_has_one_engine() {
        let own = std::process::id();
        let first = claim(own).unwrap();
        assert!(matches!(claim(own), Err(Refused::Taken(pid)) if pid == own));
        drop(first);
        claim(own).unwrap();
    }

    #[test]
    fn a_group_that_vanished_has_no_processes() {
        let folder = tempfile::tempdir().unwrap();
        assert!(of_group(folder.path()).is_err());
        fs::write(folder.path().join("cgroup.procs"), "7\n3\n").unwrap();
        fs::create_dir(folder.path().join("below")).unwrap();
        fs::write(folder.path().join("below/cgroup.procs"), "5\n").unwrap();
        assert_eq!(of_group(folder.path()).unwrap(), [3, 5, 7]);
    }
}
