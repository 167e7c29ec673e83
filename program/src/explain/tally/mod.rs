//! From a stream of records to counts of faults by kind, size, place, mapping and call site.
//!
//! The one idea: a fault of one thread is a bracket. The exception opens it (address, error code),
//! pages allocated by the thread belong to it, and the fault event closes it when it was handled.
//! Nothing is kept of a fault but what it adds to the counts.
//!
//! At an `execve` whose program must not be read by its user (setuid, or no right to read the
//! file) the kernel ends the events of an unprivileged watcher (`begin_new_exec`, since Linux
//! 2.6.32): the last that is told is the end of the old program, before the new one maps anything.

mod called;
mod frames;
mod handled;

use std::{
    collections::{HashMap, HashSet, VecDeque},
    ops::Range,
};

use pagelab_sys::{
    counts::perf::{Body, Record, tracefs::Tracepoint},
    machine::{Tree, proc::in_use},
    memory::{Folios, State, States},
};

use self::handled::Handled;
use super::{
    allowed,
    blocks::Blocks,
    calls::Call,
    counts::Seen,
    jit::MapFiles,
    places::Places,
    recent::Recent,
    threads::{InFlight, Open, Threads},
    unwind::Unwinder,
};

/// What each source of the session is.
#[derive(Debug, Clone)]
pub enum Role {
    /// Faults that were handled.
    Handled {
        /// After I/O.
        major: bool,
        /// Without its allocations and callers.
        brief: bool,
    },
    /// Mappings, names, forks and exits.
    Mappings,
    /// The exception.
    Exception(Tracepoint),
    /// An allocation of pages.
    Allocation(Tracepoint),
    /// A call that changes what memory may become.
    Call(Tracepoint),
    /// A thread leaves its CPU.
    Switch(Tracepoint),
    /// The stack at a fault that another source tells.
    Stack,
}

/// What is told of faults beside their addresses.
#[derive(Debug, Clone, Copy)]
struct Sources {
    allocations: bool,
    exceptions: bool,
}

/// Counts while records come.
#[derive(Debug)]
pub struct Tally {
    roles: Vec<Role>,
    told: Sources,
    can_swap: bool,
    places: Places,
    blocks: Blocks,
    flight: InFlight,
    recent: Recent,
    threads: Threads,
    /// While what is told changed: what was allocated just then may not have been told.
    changes: VecDeque<Range<u64>>,
    /// What the page table had after the last fault of a page, where exceptions are not told.
    looked: HashMap<(u32, u64), (u64, Option<State>)>,
    states: States,
    /// Threads whose next mapping is a stack; and whether it may have no larger pages then.
    stacks: HashSet<u32>,
    denies_stacks: bool,
    /// Where each thread is moving memory, until the kernel says where to.
    moving: HashMap<u32, (u64, u64, u64)>,
    /// What says which pages are parts of large folios, where that is allowed.
    folios: Option<Folios>,
    cached: u64,
    /// Processes that may share pages with others since a fork.
    forked: HashSet<u32>,
    /// Whether a process may have larger pages, where that was told or looked up.
    thp: HashMap<u32, bool>,
    /// Whether they may until they say otherwise, whatever was switched off before they began.
    supposes_thp: bool,
    unwinder: Unwinder,
    map_files: MapFiles,
    /// Programs that have mapped nothing yet.
    fresh: HashMap<u32, String>,
    seen: Seen,
}

/// `__GFP_MOVABLE`: the page is for user memory. The same bit since Linux 2.6.
const GFP_MOVABLE: u64 = 8;
/// `__GFP_ZERO`, with which page tables are allocated.
const GFP_ZERO: u64 = 0x100;
/// The bits of a thread's state that say that it waits (`TASK_REPORT` of `include/linux/sched.h`);
/// one that only was preempted has none of them.
const WAITS: u64 = 0x7F;
/// Bytes of the page that loads of 2 MiB may bring at once.
const LARGE: u64 = 2 << 20;
/// A fault that is told in full began at most so long before.
const FAULT_NS: u64 = 1_000_000;
/// Changes of what is told whose faults may still be on their way.
const CHANGES: usize = 4;

impl Tally {
    /// A tally of a session with these sources, in their order.
    pub fn new(roles: Vec<Role>) -> Self {
        let has = |is_it: fn(&Role) -> bool| roles.iter().any(is_it);
        Self {
            told: Sources {
                allocations: has(|role| matches!(role, Role::Allocation(_))),
                exceptions: has(|role| matches!(role, Role::Exception(_))),
            },
            roles,
            can_swap: !in_use(&Tree::machine()).is_empty(),
            places: Places::default(),
            blocks: Blocks::here(),
            flight: InFlight::default(),
            recent: Recent::default(),
            changes: VecDeque::new(),
            looked: HashMap::new(),
            states: States::default(),
            stacks: HashSet::new(),
            denies_stacks: allowed::stacks_deny_thp(),
            moving: HashMap::new(),
            threads: Threads::default(),
            folios: Folios::open(),
            cached: 0,
            forked: HashSet::new(),
            thp: HashMap::new(),
            supposes_thp: false,
            unwinder: Unwinder::default(),
            map_files: MapFiles::default(),
            fresh: HashMap::new(),
            seen: Seen::default(),
        }
    }

    /// Asks what larger pages would do to processes for which whoever starts them switches them
    /// off.
    pub fn suppose_thp(&mut self) {
        self.supposes_thp = true;
    }

    /// Keeps whole stacks, for a flame graph.
    pub fn keep_stacks(&mut self) {
        self.seen.whole_stacks = true;
    }

    /// Keeps first touches one by one.
    pub fn keep_firsts(&mut self) {
        self.seen.firsts = Some(Vec::new());
    }

    /// Reads what a process that runs already has mapped.
    pub fn attach(&mut self, pid: u32) {
        self.places.read(pid);
        self.threads.read(pid);
        // Nobody knows whom it shares pages with.
        self.forked.insert(pid);
    }

    /// What is told changed between these two times.
    pub fn changed(&mut self, begin_ns: u64, end_ns: u64) {
        self.changes.truncate(CHANGES - 1);
        self.changes.push_front(begin_ns.saturating_sub(FAULT_NS)..end_ns);
    }

    /// Takes one record.
    pub fn take(&mut self, record: &Record) {
        let Record { pid, tid, .. } = *record;
        match &record.body {
            Body::Sample { .. } => self.sample(record),
            Body::Map(mapping) => {
                self.fresh.remove(&pid);
                self.places.map(pid, mapping, record.time_ns);
                if self.stacks.remove(&tid) {
                    let end = mapping.start.saturating_add(mapping.length);
                    self.places.advise(pid, mapping.start, end, false);
                }
            }
            Body::Name { name, exec } => {
                self.threads.name(tid, name);
                if *exec {
                    self.recent.end(pid);
                    self.states.end(pid);
                    self.blocks.end(pid, &self.places);
                    self.places.exec(pid);
                    self.forked.remove(&pid);
                    self.fresh.insert(pid, name.clone());
                }
            }
            Body::Fork { parent } => {
                self.threads.fork(pid, tid, *parent);
                self.places.fork(pid, *parent);
                if pid != *parent {
                    self.forked.extend([pid, *parent]);
                    self.blocks.fork(pid, *parent);
                    if let Some(thp) = self.thp.get(parent).copied() {
                        self.thp.insert(pid, thp);
                    }
                }
            }
            Body::Exit => {
                if let Some(open) = self.flight.close(tid) {
                    self.seen.unhandled += 1;
                    let area = self.places.find(pid, open.address);
                    self.seen.ended_in = area.map(|area| area.place);
                }
                self.recent.exit(tid);
                self.moving.remove(&tid);
                if self.threads.exit(pid, tid) {
                    self.seen.hidden.extend(self.fresh.remove(&pid));
                    self.recent.end(pid);
                    self.states.end(pid);
                    self.blocks.end(pid, &self.places);
                    self.places.exit(pid);
                    self.thp.remove(&pid);
                }
            }
            Body::Stack(stack) => self.stack(pid, stack),
            Body::Lost(_) => (),
        }
    }

    fn sample(&mut self, record: &Record) {
        let Record { pid, tid, time_ns, .. } = *record;
        let Body::Sample { ip, addr, cpu, kernel, chain, raw } = &record.body else { return };
        match self.roles.get(record.source) {
            Some(Role::Handled { major, brief }) => {
                let fault = Handled {
                    address: *addr,
                    major: *major,
                    brief: *brief,
                    kernel: *kernel,
                    time_ns,
                    chain: if chain.is_empty() { std::slice::from_ref(ip) } else { chain },
                };
                // Major faults are told one way only, all the time.
                let told = (fault.address, time_ns, fault.brief);
                // The exception of one that is told twice went with the first.
                let has_own =
                    self.flight.of(tid).is_some_and(|open| open.address >> 12 == addr >> 12);
                if !fault.major && self.recent.is_double(tid, told) && !has_own {
                    self.seen.doubled += 1;
                } else {
                    self.handled(pid, tid, &fault);
                }
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
                    let open = Open { pid, cpu, address, error, time_ns, area, ..Open::default() };
                    self.seen.unhandled += u64::from(self.flight.open(tid, open));
                }
            }
            Some(Role::Switch(point)) => {
                let waits = point.field(raw, "prev_state").is_some_and(|state| state & WAITS != 0);
                if let Some(open) = self.flight.of(tid).filter(|_| waits) {
                    open.waited = true;
                }
            }
            Some(Role::Allocation(point)) => {
                if let Some(open) = self.flight.of(tid) {
                    allocate(open, point, raw);
                }
            }
            Some(Role::Call(point)) => match Call::of(point, raw) {
                Some(Call::Move(start, end, length)) => {
                    self.moving.insert(tid, (start, end, length));
                }
                Some(Call::Stack) => self.stacks.extend(self.denies_stacks.then_some(tid)),
                Some(Call::Moved(to)) => {
                    if let Some((moved, to)) = self.moving.remove(&tid).zip(to) {
                        self.moved(pid, moved, to);
                    }
                }
                Some(call) => {
                    let pages = self.called(pid, call);
                    if let (Some(name), 1..) = (call.gives_back(), pages) {
                        let frames = self.frames(pid, chain);
                        self.seen.given_back(name, frames, pages);
                    }
                }
                None => (),
            },
            Some(Role::Mappings | Role::Stack) | None => (),
        }
    }

    /// What was counted.
    pub fn finish(mut self) -> Seen {
        self.seen.unhandled += self.flight.unhandled();
        self.seen.density = self.blocks.finish(&self.places);
        self.seen.processes = self.threads.processes();
        self.seen.threads = self.threads.busy();
        self.seen.crews = self.threads.crews();
        self.seen.map_files = self.map_files.owners;
        self.seen
    }
}

/// Notes what was allocated in a fault.
fn allocate(open: &mut Open, point: &Tracepoint, raw: &[u8]) {
    // One that failed has no frame; the fault falls back to a smaller page.
    if point.field(raw, "pfn") == Some(u64::MAX) {
        return;
    }
    let gfp = point.field(raw, "gfp_flags").unwrap_or(0);
    let order = point.field(raw, "order").unwrap_or(0);
    if gfp & GFP_MOVABLE != 0 {
        let order = u32::try_from(order).unwrap_or(0);
        open.order = open.order.max(Some(order));
    } else if gfp & GFP_ZERO != 0 {
        open.tables = true;
    }
}

#[cfg(test)]
mod tests;
