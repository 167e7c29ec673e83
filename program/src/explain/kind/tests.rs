//! What each piece of evidence makes of a fault.

use super::*;
use Allocated::{Nothing, Order, Untold};

const SEEN: Evidence = Evidence {
    place: Place::Anonymous,
    major: false,
    error: Some(0),
    allocated: Nothing,
    before: Before::New,
    after: None,
    can_swap: true,
    forked: false,
    shared: None,
    nameless: false,
    writable: true,
};

fn kind(evidence: Evidence) -> (&'static str, u64) {
    let verdict = classify(&evidence);
    (verdict.kind.name(), verdict.page >> 10)
}

#[test]
fn anonymous_memory_is_read_written_and_copied() {
    let of = |error, allocated| kind(Evidence { error: Some(error), allocated, ..SEEN });
    assert_eq!(of(6, Order(0)), ("write", 4));
    assert_eq!(of(6, Order(4)), ("write", 64));
    assert_eq!(of(6, Order(9)), ("write", 2048));
    assert_eq!(of(4, Nothing), ("read", 4));
    assert_eq!(of(7, Nothing), ("reuse", 4));
    assert_eq!(of(6, Nothing), ("swap", 4));
    let moved = Evidence { error: Some(6), can_swap: false, ..SEEN };
    assert_eq!(kind(moved), ("other", 4));
    assert_eq!(kind(Evidence { major: true, ..SEEN }).0, "swap");
}

#[test]
fn a_store_to_a_present_page_is_known_by_what_the_page_was() {
    let of = |before, forked, allocated| {
        kind(Evidence { error: Some(7), before, forked, allocated, ..SEEN }).0
    };
    assert_eq!(of(Before::Original, true, Order(0)), "zero-write");
    assert_eq!(of(Before::Own, true, Order(0)), "fork-cow");
    assert_eq!(of(Before::New, true, Order(0)), "fork-cow");
    assert_eq!(of(Before::New, false, Order(0)), "zero-write", "a call had populated it");
    assert_eq!(of(Before::Own, true, Nothing), "reuse");
    assert_eq!(of(Before::Own, true, Untold), "unknown");
    let told = Evidence { error: Some(7), allocated: Untold, forked: true, ..SEEN };
    let shared = |shared| kind(Evidence { shared: Some(shared), ..told }).0;
    assert_eq!((shared(true), shared(false)), ("fork-cow", "reuse"));
    assert_eq!(of(Before::Original, false, Untold), "zero-write");
}

#[test]
fn files_are_read_copied_and_dirtied() {
    let private = Evidence { place: Place::PrivateFile, ..SEEN };
    assert_eq!(kind(private).0, "file-minor");
    assert_eq!(kind(Evidence { major: true, ..private }).0, "file-major");
    let store = Evidence { error: Some(6), allocated: Order(0), ..private };
    assert_eq!(kind(store).0, "private-file-cow");
    let copied = Evidence { error: Some(7), before: Before::Own, forked: true, ..store };
    assert_eq!(kind(copied).0, "fork-cow");
    let shared = Evidence { place: Place::SharedFile, error: Some(7), ..SEEN };
    assert_eq!(kind(shared).0, "mkwrite");
    // A large folio of the page cache is not the size of what is mapped.
    assert_eq!(kind(Evidence { allocated: Order(4), ..private }), ("file-minor", 4));
}

#[test]
fn shared_memory_is_allocated_once() {
    let shmem = Evidence { place: Place::Shmem, error: Some(6), ..SEEN };
    assert_eq!(kind(Evidence { allocated: Order(0), ..shmem }).0, "shmem-write");
    assert_eq!(kind(shmem).0, "shmem-minor");
    let pool = Evidence { place: Place::Hugetlb, error: Some(6), ..SEEN };
    assert_eq!(kind(pool), ("write", 2048));
    let group = Group { kind: Kind::Write, page: 2 << 20, place: Place::Hugetlb, waiting: false };
    assert_eq!(group.to_string(), "write/hugetlb-2m/hugetlb");
}

#[test]
fn without_an_exception_the_page_table_says_what_came() {
    let blind = Evidence { error: None, allocated: Untold, ..SEEN };
    let of = |before, page| {
        let after = Some(State { page, huge: false });
        kind(Evidence { before, after, ..blind }).0
    };
    assert_eq!(of(Before::New, Page::Anonymous), "write");
    assert_eq!(of(Before::New, Page::Zero), "read");
    assert_eq!(of(Before::Original, Page::Anonymous), "zero-write");
    assert_eq!(of(Before::Own, Page::Anonymous), "unknown", "given back, or copied");
    assert_eq!(of(Before::Unknown, Page::Anonymous), "unknown");
    assert_eq!(kind(blind).0, "unknown", "nobody looked in time");
    let huge = Some(State { page: Page::Anonymous, huge: true });
    assert_eq!(kind(Evidence { after: huge, ..blind }), ("write", 2048));
}

#[test]
fn without_an_exception_files_and_shared_memory_are_known_where_they_can_be_one_thing() {
    let blind = Evidence { error: None, allocated: Untold, ..SEEN };
    let file = Evidence { place: Place::PrivateFile, ..blind };
    assert_eq!(kind(Evidence { writable: false, ..file }).0, "file-minor");
    assert_eq!(kind(file).0, "unknown");
    let after = |page| Some(State { page, huge: false });
    assert_eq!(kind(Evidence { after: after(Page::File), ..file }).0, "file-minor");
    assert_eq!(kind(Evidence { after: after(Page::Anonymous), ..file }).0, "private-file-cow");
    assert_eq!(kind(Evidence { place: Place::SharedFile, ..blind }).0, "unknown");
    let shmem = Evidence { place: Place::Shmem, ..blind };
    assert_eq!(kind(shmem).0, "unknown", "a write may have filled it");
    assert_eq!(kind(Evidence { nameless: true, ..shmem }).0, "shmem-write");
    assert_eq!(kind(Evidence { nameless: true, forked: true, ..shmem }).0, "unknown");
}
