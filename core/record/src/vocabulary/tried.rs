//! What is told of a program that was run on a rung.

/// Series, a number for each round: its time, its faults, and its memory in bytes.
pub const ELAPSED: &str = "elapsed";
pub const CPU: &str = "cpu";
pub const MINOR_FAULTS: &str = "minor-faults";
pub const MAJOR_FAULTS: &str = "major-faults";
/// The most that it held at one of the looks, and what it held on average over time.
pub const PEAK: &str = "peak";
pub const MEAN: &str = "mean";
/// The most that was charged to its memory cgroup, page cache included.
pub const GROUP_PEAK: &str = "group-peak";
/// Free blocks of 2 MiB when it was started, where free memory was broken up.
pub const FREE_BLOCKS: &str = "free-blocks";
/// Bytes of free memory that were touched before it was started, where the machine gives free
/// memory back to a host.
pub const WARMED: &str = "warmed";
/// Runs before which that was less than it should be, as the host took too long.
pub const WARMED_IN_PART: &str = "warmed_in_part";
/// Of what it held, the most in pages of the size that the rung is about, or larger.
pub const LARGE: &str = "large";
/// How the names of what its client said of it begin, in thousandths, and how they go on: by
/// which way is the better one.
pub const SCORE: &str = "score/";
pub const MORE: &str = "more";
pub const LESS: &str = "less";
/// The page sizes that it had, each at the look where it had most of it.
pub const PAGES: &str = "pages";
/// How the names of units of memory begin: what it asks for at one place, of one power of two.
pub const UNIT: &str = "unit/";
/// What a table of a unit tells, in this order: what the library calls it, how it is asked for
/// ([`HEAP`], [`MAPPED`], [`ALLOCATED`]), the bytes of the largest and how often it was had; its
/// first touches, those that huge pages would have spared, the huge pages that would have come,
/// what would have been held at most and never touched; time that would be saved; whether it is
/// chosen, and whether it is of those that gain.
pub const UNIT_COLUMNS: [(&str, &str); 11] = [
    ("key", "count"),
    ("way", "count"),
    ("size", "bytes"),
    ("areas", "count"),
    ("faults", "count"),
    ("saved", "count"),
    ("huge", "count"),
    ("extra", "bytes"),
    ("gain", "ns"),
    ("chosen", "count"),
    ("gains", "count"),
];
pub const HEAP: u64 = 0;
pub const MAPPED: u64 = 1;
pub const ALLOCATED: u64 = 2;
/// First touches in memory of no unit; faults of which nobody saw whether they were first touches;
/// what the log had no room for; the fault of a base page and
/// of a huge one, nanoseconds; and the least that any choice of as much gain would hold untouched.
pub const ELSEWHERE: &str = "faults_elsewhere";
pub const UNKNOWN: &str = "faults_unknown";
pub const UNLOGGED: &str = "unlogged_entries";
pub const BASE_FAULT: &str = "base_fault_ns";
pub const HUGE_FAULT: &str = "huge_fault_ns";
pub const EXTRA_BOUND: &str = "extra_bytes_bound";
/// How the names of its heaviest mappings begin.
pub const MAPPING: &str = "mapping/";
/// Looks at it, of them those that said nothing, and the processes that were seen.
pub const SAMPLES: &str = "samples";
pub const BLIND: &str = "blind_samples";
pub const PROCESSES: &str = "processes";
/// Nanoseconds after which a run was ended, for it took much longer than the program as set up, or
/// all that was left of the budget.
pub const LATE_NS: &str = "ended_after_ns";
/// How often the verdict was looked at.
pub const LOOKS: &str = "looks";
/// Bytes of mappings that might have had such a page, by the kernel's word.
pub const ELIGIBLE: &str = "eligible_bytes";
/// Faults of the machine that wanted a large page and found none free.
pub const FALLBACKS: &str = "thp_fault_fallbacks";
/// Pages of 2 MiB that khugepaged, or an advice to collapse, joined on the machine.
pub const JOINED: &str = "thp_collapses";
/// Those of the fallbacks for which a memory cgroup had no room (Linux 5.8).
pub const UNCHARGED: &str = "thp_fault_fallbacks_charge";
/// Processes in whose environment what the rung sets was missing.
pub const STRIPPED: &str = "processes_without_environment";
/// Processes that it left behind, and that were ended.
pub const LEFT: &str = "processes_left";
/// Blocks that were collapsed from outside; those that the kernel refused, or calls of a preloaded
/// library that it refused, and the error number of a refusal.
pub const COLLAPSED: &str = "collapsed_blocks";
pub const REFUSED: &str = "refused_blocks";
pub const REFUSAL: &str = "refusal_errno";
/// Where a library of ours was preloaded: the programs that were loaded with it, the processes that
/// had it not among their mappings, and the calls for memory that it had orders for.
pub const PRELOADED: &str = "preloaded_programs";
pub const UNLOADED: &str = "processes_without_library";
pub const ASKED: &str = "preload_calls";
/// Exit code of the program, or 256 and the signal that ended it.
pub const EXIT: &str = "exit";
/// Contents of its output, and whether it was the same each time: 1 or 0.
pub const OUTPUT_DIGEST: &str = "output_digest";
pub const OUTPUT_STEADY: &str = "output_steady";
/// Arm of all of it.
pub const ARM: &str = super::arm::PROGRAM;
/// The rungs that every other is set beside, by name.
pub const PLAIN: &str = "plain";
pub const AS_SET_UP: &str = "as-set-up";
/// The rungs of single mappings: those that are worth it, and all that gain; base pages with the
/// same library, which they are set beside; and the rungs of all mappings.
pub const FIT: &str = "fit";
pub const FIT_ALL: &str = "fit-all";
pub const FIT_NONE: &str = "fit-none";
pub const WHOLE: [&str; 3] = ["malloc-thp", "maps-thp", "thp-always"];
