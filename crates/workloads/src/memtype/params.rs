//! The parameters that the three workloads of memory types share, and what they stand for.

use pagelab_bench::{Kind, Param, Role};
use pagelab_record::Case;

/// Memory type under test.
pub(super) const TYPE: Param = Param {
    name: "type",
    help: "memory type; uc is the kernel's UC-, which pgprot_noncached gives; wt is for reserved \
           frames; all but wb need the kernel module",
    kind: Kind::Choice(&["wb", "uc", "wc", "wt"]),
    default: "wb",
    role: Role::Axis,
};
/// Where the frames come from.
pub(super) const FRAMES: Param = Param {
    name: "frames",
    help: "ordinary: anonymous memory; scattered, contiguous, reserved: by the module; auto: \
           scattered where the module is (reserved for wt), else ordinary for wb",
    kind: Kind::Choice(&["auto", "ordinary", "scattered", "contiguous", "reserved"]),
    default: "auto",
    role: Role::Axis,
};
/// Size of a page-table leaf.
pub(super) const LEAF: Param = Param {
    name: "leaf",
    help: "size of a page-table leaf; auto: the largest that the module offers for these frames \
           and that divides the size, and 4k for ordinary and scattered ones",
    kind: Kind::Choice(&["auto", "4k", "2m", "1g"]),
    default: "auto",
    role: Role::Axis,
};
/// CPUs of the workers.
pub(super) const CPU: Param = Param {
    name: "cpu",
    help: "CPUs that workers are pinned to: a list, or auto (the least busy, then on)",
    kind: Kind::Cpus(&["auto"]),
    default: "auto",
    role: Role::Axis,
};
/// Node of the memory.
pub(super) const NODE: Param = Param {
    name: "node",
    help: "node that the memory lies on",
    kind: Kind::Node(&["any"]),
    default: "any",
    role: Role::Axis,
};

/// A count that the parameter table has checked.
pub(super) fn count(case: &Case, name: &str) -> u64 {
    case.get(name).and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// A number of bytes that the parameter table has checked.
pub(super) fn bytes(case: &Case, name: &str) -> u64 {
    case.get(name).and_then(|text| pagelab_record::units::parse_bytes(text).ok()).unwrap_or(0)
}
