//! From a stream of records to counts of faults by kind, size, place, mapping and call site.
//!
//! The one idea: a fault of one thread is a bracket. The exception opens it (address, error code),
//! pages allocated by the thread belong to it, and the fault event closes it when it was handled.
//! Nothing is kept of a fault but what it adds to the counts.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    rc::Rc,
};

use pagelab_sys::{
    folios::Folios,
    perf::{Body, Record, tracefs::Tracepoint},
};

use super::{
    blocks::{Blocks, Density},
    kind::{Evidence, Group, Kind, Place, classify},
    places::Places,
    threads::{Crew, InFlight, Open, Threads},
};

/// What each source of the session is.
#[derive(Debug, Clone)]
pub enum Role {
    /// Faults that were handled.
    Handled {
        /// After I/O.
        major: bool,
    },
    /// Mappings, names, forks and exits.
    Mappings,
    /// The exception.
    Exception(Tracepoint),
    /// An allocation of pages.
    Allocation(Tracepoint),
}

/// Callers that tell call sites apart, the instruction itself among them.
pub const FRAMES: usize = 5;
/// Call sites that are told apart; more are counted together.
const SITES_MAX: usize = 50_000;

/// An instruction: a file and an offset in it, or an address where no file is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// The file; empty where there is none.
    pub file: Rc<str>,
    /// Offset in the file, or the address.
    pub at: u64,
}

/// Faults of one group, in one place of the program or altogether.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Faults.
    pub faults: u64,
    /// Of them, those that waited for I/O.
    pub major: u64,
    /// Of them, those taken inside system calls.
    pub kernel: u64,
    /// Of them, those that also allocated pages of page table.
    pub tables: u64,
    /// Of them, those whose kind was assumed.
    pub assumed: u64,
    /// Of them, those that met another fault of the same address space on another CPU.
    pub crowded: u64,
    /// Faults that were in flight together, at most, summed over the crowded ones.
    pub crowd: u64,
    /// Of the crowded ones, those that met one in the same mapping.
    pub shared: u64,
    /// Of faults on files in the page cache, those looked at whose page was of a large folio.
    pub in_folio: u64,
    /// Of them, those looked at whose page was a base page.
    pub in_base: u64,
    /// Of them, those whose exception was seen, so that `seen_ns` covers them.
    pub timed: u64,
    /// Nanoseconds from exception to handled, watching included.
    pub seen_ns: u64,
}

impl Count {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.faults += other.faults;
        self.major += other.major;
        self.kernel += other.kernel;
        self.tables += other.tables;
        self.assumed += other.assumed;
        self.crowded += other.crowded;
        self.crowd += other.crowd;
        self.shared += other.shared;
        self.in_folio += other.in_folio;
        self.in_base += other.in_base;
        self.timed += other.timed;
        self.seen_ns += other.seen_ns;
    }
}

/// Faults by group.
pub type Groups = BTreeMap<Group, Count>;

/// A mapping that faults came from.
#[derive(Debug, Clone, Default)]
pub struct Mapped {
    /// Bytes, when it was last looked at.
    pub length: u64,
    /// Its faults.
    pub groups: Groups,
}

/// Everything that was counted.
#[derive(Debug, Default)]
pub struct Seen {
    /// All faults.
    pub groups: Groups,
    /// Faults by where the program was.
    pub sites: HashMap<Vec<Frame>, Groups>,
    /// Faults by mapping: kind of place, name, and which of that name.
    pub mappings: BTreeMap<(Place, Rc<str>, u32, u64), Mapped>,
    /// How densely memory was touched.
    pub density: BTreeMap<Place, Density>,
    /// Exceptions that no handled fault followed: signals, and faults cut off by the end.
    pub unhandled: u64,
    /// Processes that were seen.
    pub processes: u64,
    /// Threads of one process that took faults, where they are most; see [`Threads::busy`].
    pub threads: u64,
    /// Faults by the name of the thread.
    pub crews: BTreeMap<Rc<str>, Crew>,
}

/// Counts while records come.
#[derive(Debug)]
pub struct Tally {
    roles: Vec<Role>,
    sees_allocations: bool,
    places: Places,
    blocks: Blocks,
    flight: InFlight,
    threads: Threads,
    /// What says which pages are parts of large folios, where that is allowed.
    folios: Option<Folios>,
    cached: u64,
    /// Processes that may share pages with others since a fork.
    forked: HashSet<u32>,
    seen: Seen,
}

/// `__GFP_MOVABLE`: the page is for user memory. The same bit since Linux 2.6.
const GFP_MOVABLE: u64 = 8;
/// `__GFP_ZERO`, with which page tables are allocated.
const GFP_ZERO: u64 = 0x100;

impl Tally {
    /// A tally of a session with these sources, in their order.
    pub fn new(roles: Vec<Role>) -> Self {
        let sees_allocations = roles.iter().any(|role| matches!(role, Role::Allocation(_)));
        Self {
            roles,
            sees_allocations,
            places: Places::default(),
            blocks: Blocks::default(),
            flight: InFlight::default(),
            threads: Threads::default(),
            folios: Folios::open(),
            cached: 0,
            forked: HashSet::new(),
            seen: Seen::default(),
        }
    }

    /// Reads what a process that runs already has mapped.
    pub fn attach(&mut self, pid: u32) {
        self.places.read(pid);
        self.threads.read(pid);
        // Nobody knows whom it shares pages with.
        self.forked.insert(pid);
    }

    /// Takes one record.
    pub fn take(&mut self, record: &Record) {
        let Record { pid, tid, time_ns, .. } = *record;
        match &record.body {
            Body::Sample { ip, addr, cpu, kernel, chain, raw } => {
                match self.roles.get(record.source) {
                    Some(Role::Handled { major }) => {
                        let fault = Handled {
                            address: *addr,
                            major: *major,
                            kernel: *kernel,
                            time_ns,
                            chain: if chain.is_empty() { std::slice::from_ref(ip) } else { chain },
                        };
                        self.handled(pid, tid, &fault);
                    }
                    Some(Role::Exception(point)) => {
                        let field = |name| point.field(raw, name);
                        let told = (field("address"), field("error_code"));
                        if let (Some(address), Some(error)) = told
                            // Of the kernel's own addresses, nothing is any program's.
                            && address < 1 << 63
                        {
                            let area = self.places.find(pid, address).map(|area| area.start);
                            let cpu = *cpu;
                            let open =
                                Open { pid, cpu, address, error, time_ns, area, ..Open::default() };
                            self.seen.unhandled += u64::from(self.flight.open(tid, open));
                        }
                    }
                    Some(Role::Allocation(point)) => {
                        if let Some(open) = self.flight.of(tid) {
                            let gfp = point.field(raw, "gfp_flags").unwrap_or(0);
                            let order = point.field(raw, "order").unwrap_or(0);
                            if gfp & GFP_MOVABLE != 0 {
                                let order = u32::try_from(order).unwrap_or(0);
                                open.order = open.order.max(Some(order));
                            } else if gfp & GFP_ZERO != 0 {
                                open.tables = true;
                            }
                        }
                    }
                    Some(Role::Mappings) | None => (),
                }
            }
            Body::Map(mapping) => self.places.map(pid, mapping),
            Body::Name { name, exec } => {
                self.threads.name(tid, name);
                if *exec {
                    self.places.exec(pid);
                    self.blocks.end(pid);
                    self.forked.remove(&pid);
                }
            }
            Body::Fork { parent } => {
                self.threads.fork(pid, tid, *parent);
                self.places.fork(pid, *parent);
                if pid != *parent {
                    self.forked.extend([pid, *parent]);
                    self.blocks.fork(pid, *parent);
                }
            }
            Body::Exit => {
                self.seen.unhandled += u64::from(self.flight.close(tid).is_some());
                if self.threads.exit(pid, tid) {
                    self.places.exit(pid);
                    self.blocks.end(pid);
                }
            }
            Body::Lost(_) => (),
        }
    }

    fn handled(&mut self, pid: u32, tid: u32, fault: &Handled<'_>) {
        let Handled { address, major, kernel, time_ns, chain } = *fault;
        let open = self.flight.close(tid).filter(|open| open.address >> 12 == address >> 12);
        let (was_zero, was_touched) = self.blocks.page(pid, address);
        // Pages that a call populated for reading were not seen; without a fork nothing but the
        // zero page is shared.
        let was_zero = was_zero || !self.forked.contains(&pid);
        let area = self.places.at(pid, address, time_ns).cloned();
        let evidence = Evidence {
            place: area.as_ref().map_or(Place::Unknown, |area| area.place),
            major,
            error: open.map(|open| open.error),
            order: open.and_then(|open| open.order),
            sees_allocations: self.sees_allocations && open.is_some(),
            was_zero,
            was_touched,
            writable: area.as_ref().is_none_or(|area| area.writable),
        };
        let verdict = classify(&evidence);
        let group = Group { kind: verdict.kind, page: verdict.page, place: evidence.place };
        let first = verdict.kind == Kind::Write && verdict.page == 4096;
        self.blocks.add(pid, address, area.as_ref(), first, verdict.kind == Kind::Read);
        let of_folio = self.of_folio(verdict.kind, pid, address);
        let crowd = open.filter(|open| open.crowd > 1);
        let count = Count {
            faults: 1,
            major: u64::from(major),
            kernel: u64::from(kernel),
            tables: u64::from(open.is_some_and(|open| open.tables)),
            assumed: u64::from(verdict.assumed),
            crowded: u64::from(crowd.is_some()),
            crowd: crowd.map_or(0, |open| u64::from(open.crowd)),
            shared: u64::from(crowd.is_some_and(|open| open.shared)),
            in_folio: u64::from(of_folio == Some(true)),
            in_base: u64::from(of_folio == Some(false)),
            timed: u64::from(open.is_some()),
            seen_ns: open.map_or(0, |open| time_ns.saturating_sub(open.time_ns)),
        };
        self.seen.groups.entry(group).or_default().add(&count);
        self.threads.fault(pid, tid, group, &count);
        if let Some(area) = area {
            let which = if area.name.starts_with('/') && &*area.name != "//anon" {
                (0, 0)
            } else {
                (pid, area.start)
            };
            let key = (area.place, Rc::clone(&area.name), which.0, which.1);
            let mapped = self.seen.mappings.entry(key).or_default();
            mapped.length = mapped.length.max(area.end - area.start);
            mapped.groups.entry(group).or_default().add(&count);
        }
        let frames = self.frames(pid, chain);
        let is_known = self.seen.sites.contains_key(&frames);
        let frames =
            if is_known || self.seen.sites.len() < SITES_MAX { frames } else { Vec::new() };
        self.seen.sites.entry(frames).or_default().entry(group).or_default().add(&count);
    }

    /// Whether the page that such a fault mapped is a part of a large folio: it is looked at while
    /// the process still has it, the first times and then every sixteenth time.
    fn of_folio(&mut self, kind: Kind, pid: u32, address: u64) -> Option<bool> {
        if kind != Kind::FileMinor {
            return None;
        }
        self.cached += 1;
        let is_due = self.cached <= 256 || self.cached.is_multiple_of(16);
        self.folios.as_mut().filter(|_| is_due)?.is_large(pid, address)
    }

    fn frames(&self, pid: u32, chain: &[u64]) -> Vec<Frame> {
        let frame = |address: &u64| match self.places.find(pid, *address) {
            Some(area) if area.name.starts_with('/') && &*area.name != "//anon" => {
                let at = address - area.start + area.offset;
                Frame { file: Rc::clone(&area.name), at }
            }
            _ => Frame { file: "".into(), at: *address },
        };
        chain.iter().take(FRAMES).map(frame).collect()
    }

    /// What was counted.
    pub fn finish(mut self) -> Seen {
        self.seen.unhandled += self.flight.unhandled();
        self.seen.density = self.blocks.finish();
        self.seen.processes = self.threads.processes();
        self.seen.threads = self.threads.busy();
        self.seen.crews = self.threads.crews();
        self.seen
    }
}

/// A fault that was handled.
#[derive(Debug, Clone, Copy)]
struct Handled<'a> {
    address: u64,
    major: bool,
    kernel: bool,
    time_ns: u64,
    chain: &'a [u64],
}

#[cfg(test)]
mod tests {
    use pagelab_sys::perf::Mapping;

    use super::*;

    /// A tally with faults, mappings, exceptions and allocations, and a clock.
    struct Stream {
        tally: Tally,
        now: u64,
    }

    const MINOR: usize = 0;
    const MAJOR: usize = 1;
    const EXCEPTION: usize = 3;
    const ALLOCATION: usize = 4;
    const ANON: u64 = 0x10_0000;
    const STORE: u64 = 6;

    impl Stream {
        fn new() -> Self {
            let point = |name: &str, fields: &[&str]| {
                let field = |(index, field): (usize, &&str)| {
                    format!("\tfield:unsigned long {field};\toffset:{};\tsize:8;\n", index * 8)
                };
                let fields: String = fields.iter().enumerate().map(field).collect();
                Tracepoint::parse(name, &format!("ID: 7\nformat:\n{fields}")).unwrap()
            };
            let roles = vec![
                Role::Handled { major: false },
                Role::Handled { major: true },
                Role::Mappings,
                Role::Exception(point("exception", &["address", "error_code"])),
                Role::Allocation(point("allocation", &["gfp_flags", "order"])),
            ];
            let mut stream = Self { tally: Tally::new(roles), now: 0 };
            stream.map(1, ANON, 1 << 20, "//anon");
            stream
        }

        fn take(&mut self, source: usize, (pid, tid): (u32, u32), body: Body) {
            self.now += 10;
            self.tally.take(&Record { source, pid, tid, time_ns: self.now, body });
        }

        fn sample(&mut self, source: usize, thread: (u32, u32), addr: u64, words: &[u64]) {
            let raw = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            // Each thread runs on a CPU of its own.
            let (ip, cpu, kernel, chain) = (0x40_0000, thread.1, false, Vec::new());
            self.take(source, thread, Body::Sample { ip, addr, cpu, kernel, chain, raw });
        }

        fn map(&mut self, pid: u32, start: u64, length: u64, name: &str) {
            let (offset, protection, flags, inode) = (0, 3, 2, 0);
            let name = name.to_owned();
            let mapping = Mapping { start, length, offset, protection, flags, inode, name };
            self.take(2, (pid, pid), Body::Map(mapping));
        }

        fn raise(&mut self, thread: (u32, u32), address: u64, error: u64) {
            self.sample(EXCEPTION, thread, 0, &[address, error]);
        }

        fn store(&mut self, thread: (u32, u32), address: u64) {
            self.raise(thread, address, STORE);
            self.sample(ALLOCATION, thread, 0, &[GFP_MOVABLE, 0]);
            self.sample(MINOR, thread, address, &[]);
        }

        fn finish(self) -> Seen {
            self.tally.finish()
        }
    }

    fn counts(seen: &Seen) -> Vec<(String, u64)> {
        seen.groups.iter().map(|(group, count)| (group.to_string(), count.faults)).collect()
    }

    #[test]
    fn a_fault_is_from_its_exception_to_its_end_with_what_was_allocated_between() {
        let mut stream = Stream::new();
        stream.raise((1, 1), ANON, STORE);
        stream.sample(ALLOCATION, (1, 1), 0, &[GFP_ZERO, 0]);
        stream.sample(ALLOCATION, (1, 1), 0, &[GFP_MOVABLE, 4]);
        // Of another thread that is in no fault: not of this one.
        stream.sample(ALLOCATION, (1, 2), 0, &[GFP_MOVABLE, 9]);
        stream.sample(MINOR, (1, 1), ANON, &[]);
        let seen = stream.finish();
        assert_eq!(counts(&seen), [("write/64k/anonymous".to_owned(), 1)]);
        let count = seen.groups.values().next().unwrap();
        assert_eq!((count.tables, count.assumed, count.timed, count.seen_ns), (1, 0, 1, 40));
        assert_eq!((count.crowded, seen.unhandled), (0, 0));
    }

    #[test]
    fn a_page_is_read_then_stored_to_then_found_in_swap() {
        let mut stream = Stream::new();
        stream.raise((1, 1), ANON, 4);
        stream.sample(MINOR, (1, 1), ANON, &[]);
        stream.raise((1, 1), ANON, 7);
        stream.sample(ALLOCATION, (1, 1), 0, &[GFP_MOVABLE, 0]);
        stream.sample(MINOR, (1, 1), ANON, &[]);
        stream.raise((1, 1), ANON, 4);
        stream.sample(MAJOR, (1, 1), ANON, &[]);
        let seen = stream.finish();
        let kinds = ["read/4k/anonymous", "zero-write/4k/anonymous", "swap/4k/anonymous"];
        assert_eq!(counts(&seen), kinds.map(|kind| (kind.to_owned(), 1)));
        assert_eq!(seen.groups.values().map(|count| count.major).collect::<Vec<_>>(), [0, 0, 1]);
    }

    #[test]
    fn threads_that_fault_at_once_are_crowded_and_processes_are_not() {
        let mut stream = Stream::new();
        stream.take(2, (2, 2), Body::Fork { parent: 1 });
        stream.raise((1, 1), ANON, STORE);
        stream.raise((1, 3), ANON + 4096, STORE);
        stream.raise((2, 2), ANON, STORE);
        for thread in [(1, 1), (1, 3), (2, 2)] {
            let address = if thread.1 == 3 { ANON + 4096 } else { ANON };
            stream.sample(ALLOCATION, thread, 0, &[GFP_MOVABLE, 0]);
            stream.sample(MINOR, thread, address, &[]);
        }
        let seen = stream.finish();
        assert_eq!((seen.processes, seen.threads), (2, 2));
        let count = seen.groups.values().next().unwrap();
        let (crowded, crowd, shared) = (count.crowded, count.crowd, count.shared);
        assert_eq!((count.faults, crowded, crowd, shared), (3, 2, 4, 2));
    }

    #[test]
    fn a_store_after_a_fork_copies_and_after_an_exec_nothing_is_known() {
        let mut stream = Stream::new();
        stream.store((1, 1), ANON);
        stream.take(2, (2, 2), Body::Fork { parent: 1 });
        stream.raise((2, 2), ANON, 7);
        stream.sample(ALLOCATION, (2, 2), 0, &[GFP_MOVABLE, 0]);
        stream.sample(MINOR, (2, 2), ANON, &[]);
        stream.take(2, (2, 2), Body::Name { name: "other".to_owned(), exec: true });
        stream.store((2, 2), ANON);
        let seen = stream.finish();
        let expected =
            [("write/4k/anonymous", 1), ("write/4k/unknown", 1), ("fork-cow/4k/anonymous", 1)];
        assert_eq!(counts(&seen), expected.map(|(kind, count)| (kind.to_owned(), count)));
        assert_eq!(seen.crews["other"].groups.len(), 1);
    }

    #[test]
    fn what_nobody_handled_is_no_fault() {
        let mut stream = Stream::new();
        stream.raise((1, 1), ANON, STORE);
        stream.raise((1, 1), ANON + 4096, STORE);
        // An exception somewhere else is not that of this fault.
        stream.sample(MINOR, (1, 1), ANON + 8192, &[]);
        stream.raise((1, 1), ANON, STORE);
        stream.take(2, (1, 1), Body::Exit);
        // The kernel's own addresses are no program's.
        stream.raise((1, 5), u64::MAX - 4095, STORE);
        let seen = stream.finish();
        assert_eq!(seen.unhandled, 2);
        let count = seen.groups.values().next().unwrap();
        assert_eq!((count.faults, count.timed, count.assumed), (1, 0, 1));
    }

    #[test]
    fn a_process_outlives_its_first_thread() {
        let mut stream = Stream::new();
        stream.take(2, (1, 3), Body::Fork { parent: 1 });
        stream.store((1, 1), ANON);
        stream.take(2, (1, 1), Body::Exit);
        stream.store((1, 3), ANON + 4096);
        assert_eq!(counts(&stream.finish()), [("write/4k/anonymous".to_owned(), 2)]);
    }
}
