//! Streams of records whose faults are known.

use pagelab_sys::counts::perf::Mapping;

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
const BRIEF: usize = 5;
const SWITCH: usize = 6;
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
            Role::Handled { major: false, brief: false },
            Role::Handled { major: true, brief: false },
            Role::Mappings,
            Role::Exception(point("exception", &["address", "error_code"])),
            Role::Allocation(point("allocation", &["gfp_flags", "order", "pfn"])),
            Role::Handled { major: false, brief: true },
            Role::Switch(point("switch", &["prev_state"])),
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
    assert_eq!((count.tables, count.timed, count.seen_ns), (1, 1, 40));
    assert_eq!((count.crowded, seen.unhandled), (0, 0));
}

#[test]
fn an_allocation_that_failed_is_no_page() {
    let mut stream = Stream::new();
    stream.raise((1, 1), ANON, STORE);
    stream.sample(ALLOCATION, (1, 1), 0, &[GFP_MOVABLE, 9, u64::MAX]);
    stream.sample(ALLOCATION, (1, 1), 0, &[GFP_MOVABLE, 0, 77]);
    stream.sample(MINOR, (1, 1), ANON, &[]);
    assert_eq!(counts(&stream.finish()), [("write/4k/anonymous".to_owned(), 1)]);
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
        [("write/4k/anonymous", 1), ("fork-cow/4k/anonymous", 1), ("unknown/4k/unknown", 1)];
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
    assert_eq!((count.faults, count.timed), (1, 0));
    assert_eq!(counts(&seen), [("unknown/4k/anonymous".to_owned(), 1)]);
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

#[test]
fn what_is_told_in_brief_has_an_exception_and_allocates_as_what_was_told_in_full() {
    let mut stream = Stream::new();
    let brief = |stream: &mut Stream, address, error| {
        stream.raise((1, 1), address, error);
        stream.sample(BRIEF, (1, 1), address, &[]);
    };
    // A copy or a page that nobody shares any more: nothing was told in full there, and nobody saw
    // the page come.
    stream.take(2, (2, 2), Body::Fork { parent: 1 });
    brief(&mut stream, ANON + (1 << 19), 7);
    for page in 0..4 {
        stream.raise((1, 1), ANON + page * 4096, STORE);
        if page == 0 {
            stream.sample(ALLOCATION, (1, 1), 0, &[GFP_ZERO, 0]);
        }
        stream.sample(ALLOCATION, (1, 1), 0, &[GFP_MOVABLE, 4]);
        stream.sample(MINOR, (1, 1), ANON + page * 4096, &[]);
    }
    for page in 4..12 {
        brief(&mut stream, ANON + page * 4096, STORE);
    }
    for page in 12..16 {
        brief(&mut stream, ANON + page * 4096, 4);
    }
    // While the telling changed: its allocation may not have been told.
    let now = stream.now;
    stream.tally.changed(now, now + 20);
    stream.raise((1, 1), ANON + 16 * 4096, STORE);
    stream.now += 20;
    stream.sample(MINOR, (1, 1), ANON + 16 * 4096, &[]);
    let seen = stream.finish();
    let of = |name: &str| {
        let found = seen.groups.iter().find(|(group, _)| group.to_string() == name);
        found.map(|(_, count)| (count.faults, count.brief, count.tables))
    };
    assert_eq!(of("write/64k/anonymous"), Some((13, 8, 4)), "{:?}", counts(&seen));
    assert_eq!(of("read/4k/anonymous"), Some((4, 4, 0)));
    assert_eq!(of("unknown/4k/anonymous"), Some((1, 1, 0)));
    assert_eq!(seen.unhandled, 0);
}

#[test]
fn of_two_who_share_a_page_the_first_copies_it_and_the_second_has_it() {
    let mut stream = Stream::new();
    stream.store((1, 1), ANON);
    stream.take(2, (2, 2), Body::Fork { parent: 1 });
    for process in [(2, 2), (1, 1)] {
        stream.raise(process, ANON, 7);
        stream.sample(BRIEF, process, ANON, &[]);
    }
    let kinds = ["write/4k/anonymous", "fork-cow/4k/anonymous", "reuse/4k/anonymous"];
    assert_eq!(counts(&stream.finish()), kinds.map(|kind| (kind.to_owned(), 1)));
}

#[test]
fn memory_that_was_moved_is_as_it_was_and_new_where_it_grew() {
    let mut stream = Stream::new();
    let to = 0x7000_0000;
    for page in 0..2 {
        stream.raise((1, 1), ANON + page * 4096, 4 + 2 * page);
        stream.sample(ALLOCATION, (1, 1), 0, &[GFP_MOVABLE * page, 0]);
        stream.sample(MINOR, (1, 1), ANON + page * 4096, &[]);
    }
    stream.tally.moved(1, (ANON, ANON + (1 << 20), 2 << 20), to);
    let places = &stream.tally.places;
    assert_eq!(places.find(1, ANON), None);
    let area = places.find(1, to).map(|area| (area.start, area.end, area.untold));
    assert_eq!(area, Some((to, to + (2 << 20), false)));
    let page = |at| stream.tally.blocks.page(1, at);
    assert_eq!(
        [page(to), page(to + 4096), page(to + 8192)].map(|page| page.0),
        [true, false, false]
    );
    assert_eq!(
        [page(to + 4096), page(to + 8192), page(ANON)].map(|page| page.1),
        [true, false, false]
    );
}

#[test]
fn a_fault_below_the_stack_grows_it() {
    let mut stream = Stream::new();
    let top = 0x7fff_0000_0000;
    stream.map(1, top - 0x2_1000, 0x2_1000, "[stack]");
    stream.store((1, 1), top - 0x10_0000 + 8);
    let seen = stream.finish();
    assert_eq!(counts(&seen), [("write/4k/stack".to_owned(), 1)]);
}

#[test]
fn a_fault_that_gave_the_cpu_away_has_waited() {
    let mut stream = Stream::new();
    let file = 0x4000_0000;
    stream.map(1, file, 1 << 20, "/lib/some.so");
    // Waiting for a device, and preempted.
    for (page, state) in [(0, 2), (1, 0x100)] {
        stream.raise((1, 1), file + page * 4096, 4);
        stream.sample(SWITCH, (1, 1), 0, &[state]);
        stream.sample(MINOR, (1, 1), file + page * 4096, &[]);
    }
    let kinds = ["file-minor/4k/private-file", "file-minor-waiting/4k/private-file"];
    assert_eq!(counts(&stream.finish()), kinds.map(|kind| (kind.to_owned(), 1)));
}
