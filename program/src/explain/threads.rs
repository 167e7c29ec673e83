//! Who faults: threads by name, which of them live, and which are in a fault at the same time.
//!
//! The one idea: a fault of one address space is *crowded* while another thread of it is in a fault
//! on another CPU: the two may wait for each other (page-table locks, the counters of the address
//! space), so the price of a lone fault is not theirs. Exceptions and handled faults are brackets
//! in time; where brackets of one process meet, both are crowded.
//!
//! It sees no waiting itself: what crowding costs is measured, by threads that do nothing else.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    rc::Rc,
};

use pagelab_sys::machine::proc;

use super::counts::{Count, Groups, Part};

/// An exception that is older than this is over, though nobody said so: it ended in a signal, or
/// the record of its end was lost. A watched fault of 2 MiB takes a tenth of it.
const OPEN_NS: u64 = 5_000_000;

/// A fault that is not handled yet.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    /// The process.
    pub pid: u32,
    /// The CPU.
    pub cpu: u32,
    /// The address.
    pub address: u64,
    /// The error code of the exception.
    pub error: u64,
    /// When it was raised.
    pub time_ns: u64,
    /// Where the mapping starts, as far as it is known.
    pub area: Option<u64>,
    /// The largest order of pages allocated for user memory so far.
    pub order: Option<u32>,
    /// Whether pages of page table were allocated.
    pub tables: bool,
    /// Whether the thread gave the CPU away, to wait for something.
    pub waited: bool,
    /// Faults of the process that were in flight together, itself among them, at most.
    pub crowd: u32,
    /// Whether one of the others was in the same mapping.
    pub shared: bool,
}

/// Faults in flight, one for each thread.
#[derive(Debug, Default)]
pub struct InFlight(HashMap<u32, Open>);

impl InFlight {
    /// A thread raised an exception; whether its last one had not been handled.
    pub fn open(&mut self, tid: u32, open: Open) -> bool {
        let replaced = self.0.remove(&tid).is_some();
        let meets = |other: &Open| {
            let is_fresh = open.time_ns.saturating_sub(other.time_ns) < OPEN_NS;
            // On the same CPU the other one does not run: nobody is in its way.
            other.pid == open.pid && other.cpu != open.cpu && is_fresh
        };
        let (mut crowd, mut shared) = (1, false);
        for other in self.0.values().filter(|other| meets(other)) {
            crowd += 1;
            shared |= other.area.is_some() && other.area == open.area;
        }
        if crowd > 1 {
            for other in self.0.values_mut().filter(|other| meets(other)) {
                other.crowd = other.crowd.max(crowd);
                other.shared |= other.area.is_some() && other.area == open.area;
            }
        }
        self.0.insert(tid, Open { crowd, shared, ..open });
        replaced
    }

    /// The fault of a thread, to note what belongs to it.
    pub fn of(&mut self, tid: u32) -> Option<&mut Open> {
        self.0.get_mut(&tid)
    }

    /// A thread's fault was handled, or the thread has ended.
    pub fn close(&mut self, tid: u32) -> Option<Open> {
        self.0.remove(&tid)
    }

    /// Faults that nobody handled so far.
    pub fn unhandled(&self) -> u64 {
        self.0.len() as u64
    }
}

/// Processes and threads.
type Members = HashSet<(u32, u32)>;

/// The threads of every watched process.
#[derive(Debug, Default)]
pub struct Threads {
    names: HashMap<u32, Rc<str>>,
    /// Of each process, the threads that were seen and have not ended.
    alive: HashMap<u32, HashSet<u32>>,
    /// Faults by process and thread.
    faults: HashMap<(u32, u32), u64>,
    crews: BTreeMap<Rc<str>, (Members, Groups)>,
    processes: HashSet<u32>,
}

impl Threads {
    /// Reads the threads of a process that runs already, and their names.
    pub fn read(&mut self, pid: u32) {
        for tid in proc::threads(pid).unwrap_or_default() {
            self.alive.entry(pid).or_default().insert(tid);
            if let Ok(name) = proc::text(format_args!("{pid}/task/{tid}"), "comm") {
                self.name(tid, name.trim_end_matches('\n'));
            }
        }
    }

    /// A thread has a new name.
    pub fn name(&mut self, tid: u32, name: &str) {
        self.names.insert(tid, name.into());
    }

    /// A thread was made, in the process that made it or as a new one.
    pub fn fork(&mut self, pid: u32, tid: u32, parent: u32) {
        self.alive.entry(pid).or_default().insert(tid);
        // The kernel says which process it was, not which of its threads.
        if let Some(name) = self.names.get(&parent).cloned() {
            self.names.insert(tid, name);
        }
    }

    /// A thread has ended; whether it was the last one of its process.
    pub fn exit(&mut self, pid: u32, tid: u32) -> bool {
        let Some(alive) = self.alive.get_mut(&pid) else { return pid == tid };
        alive.remove(&tid);
        let is_last = alive.is_empty();
        if is_last {
            self.alive.remove(&pid);
        }
        is_last
    }

    /// A thread took a fault.
    pub fn fault(&mut self, pid: u32, tid: u32, group: super::kind::Group, count: &Count) {
        self.alive.entry(pid).or_default().insert(tid);
        self.processes.insert(pid);
        *self.faults.entry((pid, tid)).or_default() += 1;
        let name = self.names.get(&tid).cloned().unwrap_or_else(|| "unnamed".into());
        let (threads, groups) = self.crews.entry(name).or_default();
        threads.insert((pid, tid));
        groups.entry(group).or_default().add(count);
    }

    /// Processes that took faults.
    pub fn processes(&self) -> u64 {
        self.processes.len() as u64
    }

    /// Of the process where they are most: the threads that took a tenth or more of the faults that
    /// its busiest took.
    pub fn busy(&self) -> u64 {
        let mut by_process: HashMap<u32, Vec<u64>> = HashMap::new();
        for ((pid, _), faults) in &self.faults {
            by_process.entry(*pid).or_default().push(*faults);
        }
        let busy = |faults: &Vec<u64>| {
            let most = faults.iter().copied().max().unwrap_or(0);
            faults.iter().filter(|faults| **faults * 10 >= most).count() as u64
        };
        by_process.values().map(busy).max().unwrap_or(0)
    }

    /// Faults by the name of the thread.
    pub fn crews(self) -> BTreeMap<Rc<str>, Part> {
        let crew = |(name, (threads, groups)): (Rc<str>, (Members, Groups))| {
            (name, Part { size: threads.len() as u64, groups })
        };
        self.crews.into_iter().map(crew).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::kind::{Group, Kind, Place};

    fn open(pid: u32, cpu: u32, area: u64, time_ns: u64) -> Open {
        Open { pid, cpu, area: Some(area), time_ns, ..Open::default() }
    }

    #[test]
    fn brackets_of_one_process_on_two_cpus_meet() {
        let mut flight = InFlight::default();
        flight.open(1, open(1, 0, 0x1000, 10));
        flight.open(2, open(1, 1, 0x1000, 12));
        flight.open(3, open(1, 2, 0x9000, 14));
        let seen = |open: Option<Open>| open.map(|open| (open.crowd, open.shared));
        assert_eq!(seen(flight.close(1)), Some((3, true)));
        assert_eq!(seen(flight.close(3)), Some((3, false)));
        // The first two met before the third came, and the last is alone by now.
        flight.open(4, open(1, 0, 0x9000, 20));
        assert_eq!(seen(flight.close(2)), Some((3, true)));
        assert_eq!(seen(flight.close(4)), Some((2, false)));
        assert_eq!(flight.unhandled(), 0);
    }

    #[test]
    fn other_processes_the_same_cpu_and_what_is_long_over_do_not_meet() {
        let mut flight = InFlight::default();
        for other in [open(9, 1, 0x1000, 0), open(1, 0, 0x1000, 0)] {
            flight.open(5, other);
            assert!(!flight.open(6, open(1, 0, 0x1000, 1)));
            assert_eq!(flight.close(6).unwrap().crowd, 1);
        }
        flight.open(5, open(1, 1, 0x1000, 0));
        flight.open(6, open(1, 0, 0x1000, OPEN_NS));
        assert_eq!(flight.close(6).unwrap().crowd, 1);
        assert!(flight.open(5, open(1, 1, 0x1000, 2)), "the first was never handled");
    }

    #[test]
    fn faults_belong_to_the_name_that_the_thread_has() {
        let group = Group { kind: Kind::Write, page: 4096, place: Place::Heap, waiting: false };
        let one = Count { faults: 1, ..Count::default() };
        let mut threads = Threads::default();
        threads.name(1, "make");
        threads.fork(2, 2, 1);
        threads.fault(2, 2, group, &one);
        threads.name(2, "cc1");
        for (pid, tid) in [(2, 2), (3, 3), (1, 4), (1, 1), (1, 1)] {
            threads.fault(pid, tid, group, &one);
        }
        assert_eq!((threads.processes(), threads.busy()), (3, 2));
        let crews = threads.crews();
        let of = |name: &str| (crews[name].size, crews[name].groups[&group].faults);
        assert_eq!((of("make"), of("cc1"), of("unnamed")), ((2, 3), (1, 1), (2, 2)));
    }

    #[test]
    fn a_process_ends_with_its_last_thread() {
        let mut threads = Threads::default();
        threads.fork(7, 7, 1);
        threads.fork(7, 8, 7);
        assert!(!threads.exit(7, 7), "the first thread may end before the others");
        assert!(threads.exit(7, 8));
        assert!(threads.exit(9, 9), "one that nothing was known of");
    }

    #[test]
    fn this_process_has_threads_with_names() {
        let mut threads = Threads::default();
        threads.read(std::process::id());
        assert!(!threads.alive[&std::process::id()].is_empty() && !threads.names.is_empty());
    }
}
