//! What lies where in the watched processes.
//!
//! The one idea: the kernel tells of every new or changed mapping, in order with the faults, so an
//! address is looked up as it was at that moment; calls tell of `mremap`. What nobody tells (all
//! that was there before, and `mremap` where calls are not told) is read from `/proc/PID/maps` when
//! an address is found nowhere, at most every 20 ms for a process: such an area is *untold*, nobody
//! knows which of its pages are there.
//!
//! Where calls are not told either, a mapping that was unmapped stays until another takes its
//! place: nothing faults there.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
    path::Path,
    rc::Rc,
};

use pagelab_sys::{
    counts::perf::Mapping, files::pagecache::is_tmpfs, machine::proc, time::monotonic_raw_ns,
};

use super::{
    kind::Place,
    owners::{Owner, Owners, head},
};

/// Shortest time between two readings of a process's maps.
const REFRESH_NS: u64 = 20_000_000;

/// A stack is no larger: few systems allow more.
const STACK_MAX: u64 = 16 << 30;

const MAP_SHARED: u32 = 1;
const MAP_HUGETLB: u32 = 0x4_0000;
const PROT_WRITE: u32 = 2;
const PROT_EXEC: u32 = 4;

/// A mapping as faults see it.
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Area {
    /// First address.
    pub start: u64,
    /// Address behind the last.
    pub end: u64,
    /// Offset in the file of the first byte.
    pub offset: u64,
    /// What kind of memory.
    pub place: Place,
    /// Whether it may be written.
    pub writable: bool,
    /// Whether it may be executed.
    pub executable: bool,
    /// Whether it may have larger pages: nobody advised against it.
    pub may_be_huge: bool,
    /// Whether a part of it was there before anybody looked.
    pub untold: bool,
    /// Path, or what the kernel calls it.
    pub name: Rc<str>,
    /// Where the memory began from which it grew: the same for all that does.
    pub lineage: u64,
}

impl Area {
    /// Whether a file is mapped there.
    pub fn is_file(&self) -> bool {
        let is_none = |name: &str| name == "//anon" || name.starts_with("/memfd:");
        self.name.starts_with('/') && !is_none(&self.name)
    }

    /// Whether the program itself made the code there.
    pub fn is_made_code(&self) -> bool {
        self.executable && !self.is_file() && self.place != Place::Kernel
    }
}

/// The mappings of every watched process.
#[derive(Debug, Default)]
pub struct Places {
    processes: HashMap<u32, Process>,
    names: HashMap<String, (Rc<str>, bool)>,
}

#[derive(Debug, Default, Clone)]
struct Process {
    areas: BTreeMap<u64, Area>,
    owners: Owners,
    read_ns: u64,
    makes_code: bool,
    /// All that was mapped then was read, or will be told.
    complete_ns: u64,
}

impl Places {
    /// A mapping is new or has changed, as the kernel told of that time.
    pub fn map(&mut self, pid: u32, mapping: &Mapping, time_ns: u64) {
        self.put(pid, mapping, Some(time_ns));
    }

    /// A mapping, as the kernel told of a time, or as it was read.
    fn put(&mut self, pid: u32, mapping: &Mapping, told_ns: Option<u64>) {
        let (name, is_tmpfs) = self.name(&mapping.name);
        let (start, end) = (mapping.start, mapping.start.saturating_add(mapping.length));
        let Process { areas, owners, complete_ns, makes_code, .. } =
            self.processes.entry(pid).or_default();
        let below = areas.range(..start).next_back().filter(|(_, area)| area.end > start);
        let before = below.into_iter().chain(areas.range(start..end.max(start)));
        owners.told(start..end, before.map(|(_, area)| area.start..area.end));
        // What is told again has new rights or has grown; what it was advised stays.
        let before = areas.range(..end).next_back().map(|(_, area)| area);
        let same = before.filter(|area| area.start <= start && end <= area.end);
        let may_be_huge = same.is_none_or(|area| area.may_be_huge);
        // What was read before this was told, and not known then, was new when it was told.
        let is_new = told_ns.is_some_and(|told_ns| told_ns <= *complete_ns);
        let was_untold = same.map_or(told_ns.is_none(), |area| area.untold)
            || areas.range(start..end).any(|(_, area)| area.untold);
        let untold = was_untold && !is_new;
        let place = place_of(&name, mapping.flags, is_tmpfs);
        // Memory that grows, upwards or downwards, is told again with new ends, or beside the old.
        let is_kin = |area: &&Area| area.end >= start && area.place == place && area.name == name;
        let kin = areas.range(..=end).rev().map(|(_, area)| area).find(is_kin);
        let lineage = kin.map_or(start, |kin| kin.lineage);
        let area = Area {
            start,
            end,
            offset: mapping.offset,
            place,
            writable: mapping.protection & PROT_WRITE != 0,
            executable: mapping.protection & PROT_EXEC != 0,
            may_be_huge,
            untold,
            name,
            lineage,
        };
        *makes_code |= area.is_made_code();
        insert(areas, area);
    }

    /// Whether a process has had code outside every file.
    pub fn makes_code(&self, pid: u32) -> bool {
        self.processes.get(&pid).is_some_and(|process| process.makes_code)
    }

    /// A part of a process's memory was advised to have huge pages, or not to.
    pub fn advise(&mut self, pid: u32, start: u64, end: u64, may_be_huge: bool) {
        let areas = &mut self.processes.entry(pid).or_default().areas;
        for area in cut(areas, start, end) {
            areas.insert(area.start, Area { may_be_huge, ..area });
        }
    }

    /// A part of a process's memory lies elsewhere now, and may have grown.
    pub fn relocate(&mut self, pid: u32, from: Range<u64>, to: Range<u64>) {
        let Process { areas, owners, .. } = self.processes.entry(pid).or_default();
        let moved = cut(areas, from.start, from.end);
        if from.start != to.start {
            owners.gone(from.clone());
            owners.told(to.clone(), std::iter::empty());
        } else if from.end < to.end {
            owners.told(from.end..to.end, std::iter::empty());
        }
        let count = moved.len();
        for (nth, area) in moved.into_iter().enumerate() {
            let start = to.start + (area.start - from.start);
            let end = if nth + 1 == count { to.end } else { start + (area.end - area.start) };
            insert(areas, Area { start, end, ..area });
        }
    }

    /// A part of a process's memory was unmapped.
    pub fn unmap(&mut self, pid: u32, start: u64, end: u64) {
        let Process { areas, owners, .. } = self.processes.entry(pid).or_default();
        cut(areas, start, end);
        owners.gone(start..end);
    }

    /// Whose the anonymous memory is that a process has touched at an address, by what says whether
    /// a page has been touched.
    pub fn owner(&mut self, pid: u32, address: u64, is_there: impl Fn(u64) -> bool) -> Owner {
        let area = self.find(pid, address).filter(|area| area.place == Place::Anonymous);
        let Some(told) = area.map(|area| !area.untold) else { return Owner::Unknown };
        let owners = self.processes.get_mut(&pid).map(|process| &mut process.owners);
        owners
            .map_or(Owner::Unknown, |owners| owners.of(address, told, is_there, |at| head(pid, at)))
    }

    /// Where the heap of a process ends, as far as it is known.
    pub fn heap_end(&self, pid: u32) -> Option<u64> {
        let mut areas = self.processes.get(&pid)?.areas.values().rev();
        areas.find(|area| area.place == Place::Heap).map(|area| area.end)
    }

    /// A process has become another program: nothing of what it mapped is left.
    pub fn exec(&mut self, pid: u32) {
        self.processes.insert(pid, Process::default());
    }

    /// A process was made as a copy of another.
    pub fn fork(&mut self, pid: u32, parent: u32) {
        if pid != parent {
            let copy = self.processes.get(&parent).cloned().unwrap_or_default();
            self.processes.insert(pid, copy);
        }
    }

    /// A process has ended.
    pub fn exit(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    /// What is at an address now; `None` where nothing is known to be.
    pub fn at(&mut self, pid: u32, address: u64, now_ns: u64) -> Option<&Area> {
        if self.find(pid, address).is_none() && !self.grow_stack(pid, address) {
            let process = self.processes.entry(pid).or_default();
            let is_due = process.read_ns == 0 || now_ns >= process.read_ns + REFRESH_NS;
            if !is_due {
                return None;
            }
            process.read_ns = now_ns.max(1);
            self.read(pid);
            self.processes.entry(pid).or_default().complete_ns = monotonic_raw_ns();
        }
        self.find(pid, address)
    }

    /// Whether a fault below a process's stack made it grow: by as much as reaches there
    /// (`expand_downwards` of the kernel, which tells nobody).
    fn grow_stack(&mut self, pid: u32, address: u64) -> bool {
        let Some(Process { areas, .. }) = self.processes.get_mut(&pid) else { return false };
        let above = areas.range(address..).next().map(|(start, area)| (*start, area.place));
        let Some((start, Place::Stack)) = above else { return false };
        if start - address > STACK_MAX {
            return false;
        }
        let area = areas.remove(&start).expect("it was just there");
        let start = address >> 12 << 12;
        areas.insert(start, Area { start, ..area });
        true
    }

    /// What is known to be at an address, without asking anybody.
    pub fn find(&self, pid: u32, address: u64) -> Option<&Area> {
        let areas = &self.processes.get(&pid)?.areas;
        let (_, area) = areas.range(..=address).next_back()?;
        (address < area.end).then_some(area)
    }

    /// Reads the mappings of a process that is alive; nothing changes where that is not allowed.
    pub fn read(&mut self, pid: u32) {
        for mapping in proc::mappings(&proc::text(pid, "maps").unwrap_or_default()) {
            self.put(pid, &as_told(&mapping), None);
        }
    }

    /// The name, shared, and whether it is a file on tmpfs.
    fn name(&mut self, name: &str) -> (Rc<str>, bool) {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let is_tmpfs = name.starts_with('/') && is_tmpfs(Path::new(name));
        let known: (Rc<str>, bool) = (name.into(), is_tmpfs);
        self.names.insert(name.to_owned(), known.clone());
        known
    }
}

/// Puts an area in place of what was there.
fn insert(areas: &mut BTreeMap<u64, Area>, area: Area) {
    if area.start < area.end {
        cut(areas, area.start, area.end);
        areas.insert(area.start, area);
    }
}

/// Takes out what lies between two addresses, and returns it.
fn cut(areas: &mut BTreeMap<u64, Area>, start: u64, end: u64) -> Vec<Area> {
    let below = areas.range(..start).next_back().map(|(start, _)| *start);
    let inside = areas.range(start..end.max(start)).map(|(start, _)| *start);
    let touched: Vec<u64> = below.into_iter().chain(inside).collect();
    let mut taken = Vec::new();
    for at in touched {
        if areas[&at].end <= start {
            continue;
        }
        let mut old = areas.remove(&at).expect("it was just there");
        if old.end > end {
            let offset = old.offset + (end - old.start);
            areas.insert(end, Area { start: end, offset, ..old.clone() });
            old.end = end;
        }
        if old.start < start {
            areas.insert(old.start, Area { end: start, ..old.clone() });
            old.offset += start - old.start;
            old.start = start;
        }
        taken.push(old);
    }
    taken
}

fn place_of(name: &str, flags: u32, is_tmpfs: bool) -> Place {
    let shared = flags & MAP_SHARED != 0;
    match name {
        _ if flags & MAP_HUGETLB != 0 || name.starts_with("/anon_hugepage") => Place::Hugetlb,
        "[heap]" => Place::Heap,
        "[stack]" => Place::Stack,
        "[vdso]" | "[vvar]" | "[vsyscall]" | "[vvar_vclock]" | "[uprobes]" => Place::Kernel,
        _ if ["/memfd:", "/SYSV", "/dev/zero"].iter().any(|start| name.starts_with(start)) => {
            Place::Shmem
        }
        _ if is_tmpfs || name.starts_with("/dev/shm/") => Place::Shmem,
        "" | "//anon" if shared => Place::Shmem,
        "" | "//anon" => Place::Anonymous,
        // Names that a program gave with PR_SET_VMA_ANON_NAME.
        _ if name.starts_with("[anon_shmem:") => Place::Shmem,
        _ if name.starts_with('[') => Place::Anonymous,
        _ if shared => Place::SharedFile,
        _ => Place::PrivateFile,
    }
}

/// What kind of memory a mapping is that was read.
pub(super) fn of(mapping: &proc::Mapping<'_>) -> Place {
    place_of(mapping.name, flags_of(mapping), false)
}

fn flags_of(mapping: &proc::Mapping<'_>) -> u32 {
    const MAP_PRIVATE: u32 = 2;
    if mapping.may('s') { MAP_SHARED } else { MAP_PRIVATE }
}

/// A mapping that was read, as the kernel would tell of it.
fn as_told(mapping: &proc::Mapping<'_>) -> Mapping {
    let right = |letter, bit| if mapping.may(letter) { bit } else { 0 };
    Mapping {
        start: mapping.range.start,
        length: mapping.range.end - mapping.range.start,
        offset: mapping.offset,
        protection: right('w', PROT_WRITE) | right('x', PROT_EXEC),
        flags: flags_of(mapping),
        inode: mapping.inode,
        name: mapping.path().into_owned(),
    }
}

#[cfg(test)]
mod tests;
