//! The kinds of fault: one row for each, the same for every workload that measures faults.
//!
//! What a kind is, is [`FaultKind`]; a row of [`KINDS`] makes it known everywhere.

mod advice;
mod anon;
mod backed;
mod collapse;
mod file;
mod fork;
mod huge_zero;
mod kind;
mod ksm;
mod numa;
mod shmem;
mod state;
pub(super) mod swap;

use pagelab_bench::params::PageSize;
use pagelab_record::Case;
use pagelab_sys::loops::touch::Access;

pub use self::kind::{FaultKind, Stage, Untouched};

/// Every kind, in the order that help shows them.
pub const KINDS: &[&dyn FaultKind] = &[
    &anon::Write,
    &anon::Read,
    &anon::Present,
    &anon::ZeroWrite,
    &fork::COW,
    &fork::REUSE,
    &advice::Protect,
    &advice::DontNeed,
    &advice::Free,
    &advice::FreeReclaimed,
    &ksm::Ksm,
    &numa::Hint,
    &numa::Migrate,
    &collapse::Collapse,
    &file::PRIVATE_COW,
    &file::MINOR,
    &file::MINOR_SINGLE,
    &file::MAKE_WRITABLE,
    &file::MAJOR,
    &shmem::Write,
    &shmem::Minor,
    &swap::Swap,
];

/// Their names: what `kind` can be in `fault/latency`.
pub const NAMES: &[&str] = &[
    "write",
    "read",
    "present",
    "zero-write",
    "fork-cow",
    "reuse",
    "mprotect",
    "dontneed",
    "free",
    "free-reclaimed",
    "ksm",
    "numa-hint",
    "migrate",
    "collapse",
    "private-file-cow",
    "file-minor",
    "file-minor-single",
    "mkwrite",
    "file-major",
    "shmem-write",
    "shmem-minor",
    "swap",
];

/// The kind of a case.
///
/// # Panics
/// When the case names none of the table; a case is checked before it is used.
pub fn kind_of(case: &Case) -> &'static dyn FaultKind {
    let name = case.get("kind").unwrap_or("write");
    *KINDS.iter().find(|kind| kind.name() == name).expect("the kind is one of the table")
}

/// Whether the lie of a case, if it has one, would prove nothing in a case of its kind.
pub fn lie_is_true(case: &Case) -> bool {
    let kind = kind_of(case);
    let is_hugetlb = matches!(PageSize::of(case), PageSize::Hugetlb(_));
    let is_true = match case.get("lie") {
        // A hugetlb page that is read is allocated and cleared as if it were written.
        Some("read") => kind.access() == Access::Read || is_hugetlb,
        Some(lie @ ("cached" | "fault-around")) => !kind.lies().contains(&lie),
        _ => false,
    };
    is_true || kind.cannot_tell(case)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_table() {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name()).collect();
        assert_eq!(names, NAMES);
    }
}
