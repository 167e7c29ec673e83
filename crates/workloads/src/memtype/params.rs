//! The parameters that the three workloads of memory types share, and what they stand for.

use pagelab_bench::{Kind, Param, words_of};
use pagelab_sys::memtype::MemoryType;

/// Memory types by the kernel's names.
pub(super) const TYPES: [(&str, MemoryType); 4] = [
    ("wb", MemoryType::Wb),
    ("uc", MemoryType::UcMinus),
    ("wc", MemoryType::Wc),
    ("wt", MemoryType::Wt),
];

/// Memory type under test.
pub(super) const TYPE: Param = Param::axis("type", Kind::Choice(&words_of(&TYPES)), "wb").help(
    "memory type; uc is the kernel's UC-, which pgprot_noncached gives; wt is for reserved \
           frames; all but wb need the kernel module",
);
/// Where the frames come from.
pub(super) const FRAMES: Param = Param::axis(
    "frames",
    Kind::Choice(&["auto", "ordinary", "scattered", "contiguous", "reserved"]),
    "auto",
)
.help(
    "ordinary: anonymous memory; scattered, contiguous, reserved: by the module; auto: \
           scattered where the module is (reserved for wt), else ordinary for wb",
);
/// Size of a page-table leaf.
pub(super) const LEAF: Param =
    Param::axis("leaf", Kind::Choice(&["auto", "4k", "2m", "1g"]), "auto").help(
        "size of a page-table leaf; auto: the largest that the module offers for these frames \
           and that divides the size, and 4k for ordinary and scattered ones",
    );
/// CPUs of the workers.
pub(super) const CPU: Param = Param::axis("cpu", Kind::Cpus(&["auto"]), "auto")
    .help("CPUs that workers are pinned to: a list, or auto (the least busy, then on)");
/// Node of the memory.
pub(super) const NODE: Param =
    Param::axis("node", Kind::Node(&["any"]), "any").help("node that the memory lies on");
