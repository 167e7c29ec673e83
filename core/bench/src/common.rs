//! Parameters that workloads of several parts have.

use crate::{Kind, Param};

/// Page size under test.
pub const PAGE: Param = Param::axis("page", Kind::Page, "4k")
    .asks(&["all"])
    .help("page size: 4k, 16k … 1m, 2m (THP), hugetlb-2m, hugetlb-1g; large (all but 4k); all");
/// Memory touched in a repetition.
pub const SIZE: Param = Param::axis("size", Kind::Size, "auto")
    .help("memory touched in each repetition, all workers together");
/// Order of touching.
pub const ORDER: Param = Param::axis("order", Kind::Choice(&["ascending", "random"]), "ascending")
    .help("order in which pages are touched");
/// CPUs of the workers.
pub const CPU: Param = Param::axis("cpu", Kind::Cpus(&["auto", "none"]), "auto")
    .help("CPUs that workers are pinned to: a list, auto (the least busy, then on), none");
/// Node of the CPUs.
pub const NODE: Param =
    Param::axis("node", Kind::Node(&["any"]), "any").help("node whose CPUs are used by cpu=auto");
/// Node of the memory.
pub const MEM_NODE: Param = Param::axis("mem-node", Kind::Node(&["any", "far"]), "any")
    .asks(&["far"])
    .help("node that memory is bound to, or far: the one farthest from the CPU");
/// Repetitions.
pub const ROUNDS: Param = Param::axis("rounds", Kind::Count { max: 1_000_000, auto: true }, "auto")
    .help("repetitions in each process; auto is as many as the interval needs");
/// Real-time scheduling.
pub const FIFO: Param = Param::axis("fifo", Kind::Choice(&["off", "on"]), "off")
    .asks(&["on"])
    .help("run measured threads under SCHED_FIFO, one repetition at a time");
