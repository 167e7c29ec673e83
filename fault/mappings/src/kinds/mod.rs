//! The kinds of fault: one row for each, the same for every workload that measures faults.
//!
//! What a kind is, is [`FaultKind`]; a row of [`KINDS`] makes it known everywhere.

mod advice;
mod anon;
mod backed;
mod calls;
mod file;
mod fork;
mod huge_zero;
mod ksm;
mod numa;
mod shmem;
mod state;
pub mod swap;

use pagelab_bench::{Kind, Param};
use pagelab_record::Case;

use super::{Asked, FaultKind};

/// Every kind, in the order that help shows them.
pub const KINDS: &[FaultKind] = &[
    anon::WRITE,
    anon::READ,
    anon::PRESENT,
    anon::ZERO_WRITE,
    fork::COW,
    fork::REUSE,
    advice::PROTECT,
    advice::DONT_NEED,
    advice::FREE,
    advice::FREE_RECLAIMED,
    ksm::KSM,
    numa::HINT,
    numa::MIGRATE,
    calls::COLLAPSE,
    calls::ZAP,
    calls::PROTECT,
    file::PRIVATE_COW,
    file::MINOR,
    file::MINOR_SINGLE,
    file::MAKE_WRITABLE,
    file::MAJOR,
    shmem::WRITE,
    shmem::MINOR,
    swap::SWAP,
];

/// The parameter.
pub const PARAM: Param = Param::axis("kind", Kind::Choice(NAMES), "write")
    .asks(ASKING)
    .help("the kind of fault: what memory is like when it is touched");

/// Kinds whose needs depend on no other parameter: those that `doctor` tries.
pub const ASKING: &[&str] = &["swap", "mkwrite", "file-major", "file-minor", "file-minor-single"];

/// Their names.
pub const NAMES: &[&str] = &{
    let mut names = [""; KINDS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = KINDS[at].name;
        at += 1;
    }
    names
};

/// The kind of a case.
///
/// # Panics
/// When the case names none of the table; a case is checked before it is used.
pub fn kind_of(case: &Case) -> &'static FaultKind {
    let name = case.get("kind").unwrap_or("write");
    KINDS.iter().find(|kind| kind.name == name).expect("the kind is one of the table")
}

/// What a case asks for.
pub fn asked(case: &Case) -> Asked {
    Asked::of(case, kind_of(case))
}
