//! The names that the side that measures and the side that reports share.
//!
//! The one idea: a name that two rooms need is written once, here; neither reads a sentence that
//! the other wrote. A claim is a sentence for people and a [`Check`] for programs.
//!
//! It is not the schema: what a name holds is said where it is measured.

#![expect(missing_docs, reason = "a name says what it is; what it holds, who measures it says")]

pub(crate) mod check;
pub mod tried;

pub use check::{Check, Said};

/// Facts of a machine.
pub mod fact {
    pub const HOST_NAME: &str = "host_name";
}

/// Parameters of a case.
pub mod parameter {
    /// In the order in which a report names them; the others follow by name.
    pub const FIRST: [&str; 15] = [
        KERNEL, KIND, TYPE, TEST, STORE, FENCE, PAGE, BACKING, POPULATE, TOUCH, ORDER, ALIGN,
        THREADS, PROCESSES, FIFO,
    ];
    /// Lists of what is compared inside a case, no properties of it: they tell no two cases apart.
    pub const LISTS: [&str; 4] = [ARMS, BACKEND, OP, POLICY];

    pub const AGAINST: &str = "against";
    pub const ALIGN: &str = "align";
    pub const ARMS: &str = "arms";
    pub const BACKEND: &str = "backend";
    pub const BACKING: &str = "backing";
    pub const BATCH: &str = "batch";
    pub const CACHE: &str = "cache";
    pub const CACHES: &str = "caches";
    pub const DIR: &str = "dir";
    pub const FENCE: &str = "fence";
    pub const FENCE_WORD: &str = "fence-word";
    pub const FIFO: &str = "fifo";
    pub const FRAMES: &str = "frames";
    pub const HANDLER: &str = "handler";
    pub const ITERATIONS: &str = "iterations";
    pub const KERNEL: &str = "kernel";
    pub const KIND: &str = "kind";
    pub const LEAF: &str = "leaf";
    pub const LEVEL: &str = "level";
    pub const MODE: &str = "mode";
    pub const OP: &str = "op";
    pub const ORDER: &str = "order";
    pub const PAGE: &str = "page";
    pub const PAGE_SHIFT: &str = "page-shift";
    pub const PID: &str = "pid";
    pub const POLICY: &str = "policy";
    pub const POPULATE: &str = "populate";
    pub const PROCESSES: &str = "processes";
    pub const PROGRAM: &str = "program";
    pub const READER: &str = "reader";
    pub const ROUNDS: &str = "rounds";
    pub const RUNG: &str = "rung";
    pub const SCENARIO: &str = "scenario";
    pub const SIZE: &str = "size";
    pub const STATE: &str = "state";
    pub const STORE: &str = "store";
    pub const SUM: &str = "sum";
    pub const TEST: &str = "test";
    pub const THREADS: &str = "threads";
    pub const TOUCH: &str = "touch";
    pub const TRACE: &str = "trace";
    pub const TYPE: &str = "type";
    pub const VMAS: &str = "vmas";
}

/// Arms: what is compared inside a case.
pub mod arm {
    /// Where memory of a round comes from: base pages, and transparent huge pages.
    pub const PLAIN: &str = "plain";
    pub const THP: &str = "thp";
    /// Our own loop.
    pub const OURS: &str = "pagelab";
    /// The same loop in C.
    pub const TWIN: &str = "c";
    /// The same loop over present pages.
    pub const CONTROL: &str = "control";
    /// Of published records.
    pub const PUBLISHED: &str = "published";
    /// By the method of the note.
    pub const AS_PUBLISHED: &str = "as-published";
    /// Loops of other tools.
    pub const PAGE_FAULT1: &str = "page-fault1";
    pub const PFT: &str = "pft";
    /// Faults without calls beside them, touches of present memory with them, calls with nobody
    /// beside.
    pub const ALONE: &str = "alone";
    pub const PRESENT: &str = "present";
    pub const IDLE: &str = "idle";
    /// The same chain over larger pages.
    pub const AGAINST: &str = "against";
    /// Of a fault that is watched: every event open, the first only, none.
    pub const TRACED: &str = "traced";
    pub const ONE_EVENT: &str = "one-event";
    pub const UNTRACED: &str = "untraced";
    /// A program that is watched.
    pub const PROGRAM: &str = "program";
    /// The memory that decodes and forgets.
    pub const NOOP: &str = "noop";
    /// The policy that knows the future, and the one that moves nothing.
    pub const ORACLE: &str = "oracle";
    pub const NONE: &str = "none";
}

/// Series: what was timed.
pub mod series {
    pub const MAP: &str = "map";
    pub const POPULATE: &str = "populate";
    pub const TOUCH: &str = "touch";
    pub const RELEASE: &str = "release";
    /// How the names end whose memory the host may have had to back first.
    pub const COLD: &str = "-cold";
    pub const TOUCH_COLD: &str = "touch-cold";
    /// Map, touch and release of a worker in one loop.
    pub const CYCLE: &str = "cycle";
    /// How the names begin of what the first pass over a segment took.
    pub const FIRST: &str = "first-";
    /// What comes before it: reserving, mapping, starting a helper.
    pub const SETUP: &str = "setup";
    /// Filling a pool, by whoever ran the case.
    pub const RESERVE: &str = "reserve";
    /// Clearing what was given back, for the round that takes it again.
    pub const ZERO: &str = "zero";
    /// CPU time of a round, clearing included; and with that of the kernel's helpers meanwhile.
    pub const PROCESS: &str = "process";
    pub const ALL: &str = "all";
    /// The same memory cleared once more, and the same loop over it.
    pub const CLEAR: &str = "clear";
    pub const CONTROL: &str = "control";
    /// Calls beside faults.
    pub const BESIDE: &str = "beside";
    pub const FAULT: &str = "fault";
    /// Faults that also allocated a page of page table.
    pub const FAULT_PAGE_TABLE: &str = "fault-pagetable";
    /// Faults whose memory the host had to back first.
    pub const FAULT_COLD: &str = "fault-cold";
    /// Faults that got a base page instead of the page under test.
    pub const FAULT_FALLBACK: &str = "fault-fallback";
    /// From when a touch was due.
    pub const FAULT_RESPONSE: &str = "fault-response";
    /// Going over other memory after each touch, where caches are to be cold.
    pub const WALK: &str = "walk";
    /// The call that made memory present, for each page.
    pub const CALL: &str = "call";
    /// All samples added up, for each page.
    pub const BATCH: &str = "batch";
    /// From stamp to stamp.
    pub const END_TO_END: &str = "end-to-end";
    /// A whole replay, and the kernel's split of its CPU time.
    pub const REPLAY: &str = "replay";
    pub const USER_TIME: &str = "user-time";
    pub const SYSTEM_TIME: &str = "system-time";
    pub const READ_CALLS: &str = "read-calls";
    pub const MINOR_FAULTS: &str = "minor-faults";
    pub const MAJOR_FAULTS: &str = "major-faults";
    /// Start to the last store issued, to the end that the test names, to the fences after all.
    pub const ISSUE: &str = "issue";
    pub const TEST: &str = "test";
    pub const COMPLETION: &str = "completion";
    /// One operation on memory of a type.
    pub const OP: &str = "op";
    /// Dependent loads.
    pub const LOAD: &str = "load";
    pub const ROUND: &str = "round";
    pub const OBSERVED: &str = "observed";
    pub const REORDERINGS: &str = "reorderings";
    /// From the first thread's start to the last one's end.
    pub const SCORE: &str = "score";
    /// Looked at ten times a second beside it: when, and since the start pages promoted and
    /// demoted, hint faults, and how many of the pages looked at lie on the fast node.
    pub const TICK: &str = "tick";
    pub const PROMOTED: &str = "promoted";
    pub const DEMOTED: &str = "demoted";
    pub const HINT_FAULTS: &str = "hint-faults";
    pub const ON_FAST: &str = "on-fast";
    /// A whole simulation.
    pub const RUN: &str = "run";
    /// What was planted into the body whose observation stands before it.
    pub const PLANTED: &str = "planted";
}

/// The counter of an arm.
pub fn arm_counter(name: &str, arm: &str) -> String {
    format!("{name}/{arm}")
}

/// Counters. Those of an arm are `NAME/ARM`.
pub mod counter {
    pub const TSC_HZ: &str = "tsc_hz";
    pub const BUFFER_BYTES: &str = "buffer_bytes";
    pub const FAULTS_PER_REPETITION: &str = "faults_per_repetition";
    pub const PAGES_MAPPED_BY_A_FAULT: &str = "pages_mapped_by_a_fault";
    pub const EVENTS_PER_FAULT: &str = "events_per_fault";
    pub const WRONG_WORDS: &str = "wrong_words";
    /// What a node of memcachetest's driver says of its length, by its ioctl.
    pub const NODE_BYTES: &str = "node_bytes";
    pub const TRACE_OPS: &str = "trace_ops";
    pub const TRACE_BYTES: &str = "trace_bytes";
    /// Loads of a trace that were compared.
    pub const LOADS: &str = "loads";
    /// Of every load of a replay; `digest/ARM`.
    pub const DIGEST: &str = "digest";
    /// Look-ups of pages in one replay that a cache in front of the map answered with the page,
    /// with that there is none, and not at all; `page_cache_hits/ARM`.
    pub const PAGE_CACHE: [&str; 3] =
        ["page_cache_hits", "page_cache_absent_hits", "page_cache_misses"];
    pub const STALLS: &str = "stalls";
    pub const STALLS_US: &str = "stalls_us";
    pub const LOOP_US: &str = "loop_us";
    /// Lines on a chain of loads.
    pub const LINES: &str = "lines";
    /// Base pages that are accessed, those looked at ten times a second, and by the end of all
    /// repetitions: those found on the fast node, promoted and demoted by the kernel's counters,
    /// cold ones that fill the fast node, and those of them that are on the slow one.
    pub const PAGES: &str = "pages";
    pub const LOOKED_AT: &str = "pages_looked_at";
    pub const FOUND_ON_FAST: &str = "pages_found_on_fast";
    pub const PAGES_PROMOTED: &str = "pages_promoted";
    pub const PAGES_DEMOTED: &str = "pages_demoted";
    pub const COLD_PAGES: &str = "cold_pages";
    pub const COLD_ON_SLOW: &str = "cold_pages_on_slow";
    /// Processes of the case that a record holds.
    pub const PROCESSES: &str = "processes_measured";
    /// Turns of a loop that were planted into every measured body.
    pub const PLANTED_TURNS: &str = "planted_turns";
    /// How the capture of a program ended, as [`crate::walks::End`] numbers it, and its operations.
    pub const CAPTURED_END: &str = "captured_end";
    pub const CAPTURED_OPS: &str = "captured_ops";
}

/// Tables, and their columns.
pub mod table {
    /// What the processor says of its TLBs: page size in bytes, level, entries.
    pub const TLBS: &str = "tlbs";
    pub const TLBS_COLUMNS: [&str; 3] = ["page", "level", "entries"];
    /// How the tables of whole stacks begin; the functions follow, the outermost first, with `;`
    /// between.
    pub const STACK: &str = "stack/";
    /// How the kind ends of faults that waited for something that another had begun.
    pub const WAITING: &str = "-waiting";
    /// How the tables begin of call sites that gave touched pages back; the call follows.
    pub const RELEASE: &str = "release/";
    /// How the tables begin of faults on files in the page cache, by size of the folio; the kind
    /// follows.
    pub const FOLIOS: &str = "folios/";
    /// Pages of a program that were walked to within windows of time.
    pub const WALKS: &str = "walks";
    /// How the tables begin that say after how many other pages a page was used again; the page
    /// size follows.
    pub const REUSE: &str = "reuse/";
}

/// What `explain` would change of how memory comes, by name.
pub mod knob {
    /// The counter of a watched program: the process of another run that held settings of the
    /// machine meanwhile.
    pub const HELD_BY: &str = "settings_held_by";

    use crate::units::{format_bytes, parse_bytes};

    pub const POPULATE: &str = "populate";
    pub const MALLOC_THP: &str = "malloc-thp";
    pub const KEEP: &str = "keep";
    pub const SHMEM_THP: &str = "shmem-thp";
    pub const KHUGEPAGED: &str = "khugepaged";

    const PAGE: &str = "page-";

    /// Pages of this size where memory is first touched.
    pub fn page(bytes: u64) -> String {
        format!("{PAGE}{}", format_bytes(bytes))
    }

    /// The size that [`page`] was told.
    pub fn bytes_of(knob: &str) -> Option<u64> {
        parse_bytes(knob.strip_prefix(PAGE)?).ok()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_page_is_told_by_its_size_and_others_have_none() {
            assert_eq!((page(2 << 20).as_str(), bytes_of("page-64k")), ("page-2m", Some(65_536)));
            assert_eq!((bytes_of(POPULATE), bytes_of(MALLOC_THP)), (None, None));
        }
    }
}
