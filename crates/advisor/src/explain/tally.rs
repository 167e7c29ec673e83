//! From a stream of records to counts of faults by kind, size, place, mapping and call site.
//!
//! The one idea: a fault of one thread is a bracket. The exception opens it (address, error code),
//! pages allocated by the thread belong to it, and the fault event closes it when it was handled.
//! Nothing is kept of a fault but what it adds to the counts.
//!
//! At an `execve` whose program must not be read by its user (setuid, or no right to read the
//! file) the kernel ends the events of an unprivileged watcher (`begin_new_exec`, since Linux
//! 2.6.32): the last that is told is the end of the old program, before the new one maps anything.

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
};

use pagelab_sys::{
    counts::perf::{Body, Record, tracefs::Tracepoint},
    knobs::swap,
    machine::Tree,
    memory::Folios,
};

use super::{
    allowed,
    blocks::Blocks,
    calls::Call,
    counts::{Count, First, Frame, Seen},
    kind::{Evidence, Group, Kind, Place, classify},
    places::{Area, Places},
    recent::{Like, Recent, Where},
    threads::{InFlight, Open, Threads},
};

/// What each source of the session is.
#[derive(Debug, Clone)]
pub enum Role {
    /// Faults that were handled.
    Handled {
        /// After I/O.
        major: bool,
        /// By its address only.
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
}

/// Callers that tell call sites apart, the instruction itself among them.
const FRAMES: usize = 5;
/// The same where whole stacks are asked for: as many as the kernel tells, and one.
const STACK: usize = 25;

/// Counts while records come.
#[derive(Debug)]
pub struct Tally {
    roles: Vec<Role>,
    sees_allocations: bool,
    can_swap: bool,
    places: Places,
    blocks: Blocks,
    flight: InFlight,
    recent: Recent,
    threads: Threads,
    /// When the last fault was told in brief.
    brief_ns: u64,
    /// What says which pages are parts of large folios, where that is allowed.
    folios: Option<Folios>,
    cached: u64,
    /// Processes that may share pages with others since a fork.
    forked: HashSet<u32>,
    /// Whether a process may have larger pages, where that was told or looked up.
    thp: HashMap<u32, bool>,
    /// Whether they may until they say otherwise, whatever was switched off before they began.
    supposes_thp: bool,
    /// Programs that have mapped nothing yet.
    fresh: HashMap<u32, String>,
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
            can_swap: !swap::in_use(&Tree::machine()).is_empty(),
            places: Places::default(),
            blocks: Blocks::here(),
            flight: InFlight::default(),
            recent: Recent::default(),
            brief_ns: 0,
            threads: Threads::default(),
            folios: Folios::open(),
            cached: 0,
            forked: HashSet::new(),
            thp: HashMap::new(),
            supposes_thp: false,
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

    /// Takes one record.
    pub fn take(&mut self, record: &Record) {
        let Record { pid, tid, .. } = *record;
        match &record.body {
            Body::Sample { .. } => self.sample(record),
            Body::Map(mapping) => {
                self.fresh.remove(&pid);
                self.places.map(pid, mapping);
            }
            Body::Name { name, exec } => {
                self.threads.name(tid, name);
                if *exec {
                    self.recent.end(pid);
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
                self.seen.unhandled += u64::from(self.flight.close(tid).is_some());
                self.recent.exit(tid);
                if self.threads.exit(pid, tid) {
                    self.seen.hidden.extend(self.fresh.remove(&pid));
                    self.recent.end(pid);
                    self.blocks.end(pid, &self.places);
                    self.places.exit(pid);
                    self.thp.remove(&pid);
                }
            }
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
                if !fault.major && self.recent.is_double(tid, told) {
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
                    let before = self.flight.of(tid).map(|open| open.time_ns);
                    let was_open = self.flight.open(tid, open);
                    // What was handled while faults were told in brief may not have been told.
                    let is_over = before.is_some_and(|before| before <= self.brief_ns);
                    self.seen.unhandled += u64::from(was_open && !is_over);
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
            Some(Role::Call(point)) => {
                if let Some(call) = Call::of(point, raw) {
                    self.called(pid, call);
                }
            }
            Some(Role::Mappings) | None => (),
        }
    }

    fn called(&mut self, pid: u32, call: Call) {
        match call {
            Call::Advise(start, end, huge) => self.places.advise(pid, start, end, huge),
            Call::Release(start, end) => self.blocks.take(pid, (start, end), None),
            Call::Unmap(start, end) => {
                self.blocks.take(pid, (start, end), Some(&self.places));
                self.places.unmap(pid, start, end);
            }
            Call::Break(end) => {
                if let Some(heap_end) = self.places.heap_end(pid).filter(|old| *old > end) {
                    self.called(pid, Call::Unmap(end, heap_end));
                }
            }
            Call::Thp(allowed) => {
                self.thp.insert(pid, allowed);
            }
        }
    }

    /// Whether a process may have larger pages. It is asked once: what it had from its parent it
    /// keeps, and what it changes is told.
    fn may_have_thp(&mut self, pid: u32) -> bool {
        let ask = || allowed::thp(pid).or_else(|| allowed::thp(std::process::id()));
        let supposed = self.supposes_thp;
        *self.thp.entry(pid).or_insert_with(|| supposed || ask().unwrap_or(true))
    }

    fn handled(&mut self, pid: u32, tid: u32, fault: &Handled<'_>) {
        let Handled { address, major, kernel, time_ns, .. } = *fault;
        let open = self.flight.close(tid).filter(|open| open.address >> 12 == address >> 12);
        let (was_zero, was_touched) = self.blocks.page(pid, address);
        // Pages that a call populated for reading were not seen; without a fork nothing but the
        // zero page is shared.
        let was_zero = was_zero || !self.forked.contains(&pid);
        let area = self.places.at(pid, address, time_ns).cloned();
        let start = area.as_ref().map_or(0, |area| area.start);
        let like = self.like(pid, fault, open.as_ref(), (pid, start, was_touched));
        let evidence = Evidence {
            place: area.as_ref().map_or(Place::Unknown, |area| area.place),
            major,
            error: like.error,
            order: like.order,
            sees_allocations: self.sees_allocations && like.error.is_some(),
            can_swap: self.can_swap,
            was_zero,
            was_touched,
            writable: area.as_ref().is_none_or(|area| area.writable),
        };
        let verdict = classify(&evidence);
        let group = Group { kind: verdict.kind, page: verdict.page, place: evidence.place };
        let is_allowed = area.as_ref().is_none_or(|area| area.may_be_huge);
        let is_allowed = is_allowed && self.may_have_thp(pid);
        if verdict.kind == Kind::Write && verdict.page == 4096 {
            let owner = self.places.owner(pid, address, |at| self.blocks.page(pid, at).1);
            self.blocks.first(pid, address, (area.as_ref(), owner), is_allowed);
            let heap = evidence.place == Place::Heap;
            self.seen.first(First { time_ns, pid, heap, address });
        } else {
            self.blocks.other((pid, address), area.as_ref(), verdict.kind, is_allowed);
        }
        let of_folio = self.of_folio(verdict.kind, pid, address);
        let crowd = open.filter(|open| open.crowd > 1);
        let count = Count {
            faults: 1,
            major: u64::from(major),
            kernel: u64::from(kernel),
            tables: u64::from(like.tables),
            assumed: u64::from(verdict.assumed),
            brief: u64::from(fault.brief),
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
            self.of_mapping(pid, &area, group, &count);
        }
        self.seen.of_site(&like.frames, group, &count);
    }

    /// What else is known of a fault: what was told of it, or where that was its address only, of
    /// one that was told in full in the same place.
    fn like(&mut self, pid: u32, fault: &Handled<'_>, open: Option<&Open>, place: Where) -> Like {
        if fault.brief {
            self.brief_ns = fault.time_ns;
            return self.recent.next(place).unwrap_or_default();
        }
        let like = Like {
            error: open.map(|open| open.error),
            order: open.and_then(|open| open.order),
            tables: open.is_some_and(|open| open.tables),
            frames: Rc::from(self.frames(pid, fault.chain)),
        };
        if !fault.major {
            self.recent.keep(place, like.clone());
        }
        like
    }

    fn of_mapping(&mut self, pid: u32, area: &Area, group: Group, count: &Count) {
        let is_file = area.name.starts_with('/') && &*area.name != "//anon";
        let which = if is_file { (0, 0) } else { (pid, area.lineage) };
        let key = (area.place, Rc::clone(&area.name), which.0, which.1);
        let mapped = self.seen.mappings.entry(key).or_default();
        mapped.size = mapped.size.max(area.end - area.start);
        mapped.groups.entry(group).or_default().add(count);
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
        let frames = if self.seen.whole_stacks { STACK } else { FRAMES };
        chain.iter().take(frames).map(frame).collect()
    }

    /// What was counted.
    pub fn finish(mut self) -> Seen {
        self.seen.unhandled += self.flight.unhandled();
        self.seen.density = self.blocks.finish(&self.places);
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
    /// Told by its address only.
    brief: bool,
    kernel: bool,
    time_ns: u64,
    chain: &'a [u64],
}

#[cfg(test)]
mod tests;
