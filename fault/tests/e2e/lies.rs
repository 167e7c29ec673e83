//! Lies: the kernel is really told something else than the case says, and the witness must notice.
//!
//! Each lie has an honest twin, the same case without it, so that what is tested is the lie and
//! not the case.

use std::fs;

use pagelab_record::{Outcome, Record};

use crate::support::{Ended, Lab, Machine, failure, is_skipped, measured, skip, with_huge_pages};

/// Runs the case honestly (valid) and with a lie (invalid, this claim broken): exit 6.
#[track_caller]
fn comes_out_invalid(case: &str, lie: &str, claim: &str) {
    // Where THP are off altogether, root's runs turn them on, one run at a time.
    let has_huge = ["page=2m", "tlb/chase", "segment-2m"].iter().any(|word| case.contains(word));
    let _machine = has_huge.then(Machine::alone);
    let lab = Lab::new();
    let size = if case.contains("file-major") { "4m" } else { "16m" };
    let case = format!("{case} size={size} rounds=2");
    // Side by side in one run: what is noticed of the lie is not said of its twin.
    let broken = |record: &Record| {
        let witness = measured(record).witness.iter().filter(|claim| !claim.holds);
        witness.map(|claim| claim.claim.clone()).collect::<Vec<String>>()
    };
    let is_good = |(_, records): &(Ended, Vec<Record>)| match &records[..] {
        [honest, lying] if matches!(honest.outcome, Outcome::Measured(_)) => {
            measured(honest).is_valid() && broken(lying).iter().any(|one| one == claim)
        }
        _ => true,
    };
    let (ended, records) = with_huge_pages(is_good, || {
        let _ = fs::remove_dir_all(lab.path("run"));
        let ended = lab.measure("run", &[&case, &format!("{case} lie={lie}")]);
        (ended, lab.records("run"))
    });
    if is_skipped(&records[0]) {
        ended.exits(4);
        return;
    }
    ended.exits(6).complains(&["INVALID"]).shows(&["INVALID", "1 valid, 1 invalid", claim]);
    let [honest, lying] = &records[..] else { panic!("{records:?}") };
    assert!(measured(honest).is_valid(), "{:?}", measured(honest).witness);
    let broken = broken(lying);
    assert!(broken.iter().any(|one| one == claim), "{broken:?}");
    // What a report says of it later is no better.
    lab.pagelab(&["report", "run"]).exits(0).shows(&["INVALID", claim]);
}

const TOUCH_FAULTS: &str = "minor faults of the touch";
const LOOP_FAULTS: &str = "minor faults of the loop";
const PRESENT: &str = "base pages present afterwards";
const HUGE: &str = "base pages mapped by a PMD or larger";
const ZERO: &str = "base pages that are the zero page";
const RESIDENT: &str = "pages of the file in memory before the touches";

#[test]
fn huge_pages_in_a_base_page_case_are_noticed_by_the_faults_that_are_missing() {
    comes_out_invalid("fault/throughput page=4k", "thp-on", TOUCH_FAULTS);
}

#[test]
fn huge_pages_in_a_base_page_case_are_noticed_in_the_page_table() {
    comes_out_invalid("fault/throughput page=4k", "thp-on", HUGE);
}

#[test]
fn pages_of_another_size_below_a_chain_are_noticed_in_the_page_table() {
    comes_out_invalid("tlb/chase page=4k loads=10k", "thp-on", HUGE);
    comes_out_invalid("tlb/chase page=2m loads=10k", "thp-off", HUGE);
}

#[test]
fn accesses_that_were_not_made_are_noticed_by_the_words_that_they_would_have_left() {
    let words = "words that are not what the asked accesses leave";
    comes_out_invalid("tier/micro accesses=10k", "fewer", words);
    let digest = "digest of the loads, as the asked accesses make it";
    comes_out_invalid("tier/micro accesses=10k kind=file", "fewer", digest);
    comes_out_invalid("tier/curve accesses=10k", "fewer", words);
}

#[test]
fn a_segment_that_is_not_cleared_is_noticed_by_the_words_that_were_marked() {
    let marked = "marked words that are not zero when taken again";
    comes_out_invalid("segment/fault arms=segment-2m", "unzeroed", marked);
    comes_out_invalid("segment/fault arms=segment-2m zero=fault", "unzeroed", marked);
}

#[test]
fn a_segment_of_base_pages_is_noticed_by_its_faults_and_in_the_page_table() {
    let first = "minor faults of the first pass over a segment";
    comes_out_invalid("segment/fault arms=segment-2m", "thp-off", first);
    comes_out_invalid("segment/fault arms=segment-2m", "thp-off", HUGE);
}

#[test]
fn a_silent_fallback_to_base_pages_is_noticed() {
    comes_out_invalid("fault/throughput page=2m", "thp-off", HUGE);
}

#[test]
fn a_silent_fallback_is_noticed_by_the_faults_where_every_base_page_is_touched() {
    comes_out_invalid("fault/throughput page=2m touch=8@4k", "thp-off", TOUCH_FAULTS);
}

#[test]
fn ragged_ends_of_an_aligned_case_are_noticed() {
    comes_out_invalid("fault/throughput page=2m", "ragged", PRESENT);
}

#[test]
fn ragged_ends_are_noticed_by_the_faults_where_every_base_page_is_touched() {
    comes_out_invalid("fault/throughput page=2m touch=8@4k", "ragged", TOUCH_FAULTS);
}

#[test]
fn memory_populated_before_the_policy_was_set_is_noticed() {
    comes_out_invalid("fault/throughput page=2m populate=madvise-populate", "early-populate", HUGE);
}

#[test]
fn a_touch_of_pages_that_were_present_is_noticed() {
    comes_out_invalid("fault/throughput page=4k", "present", TOUCH_FAULTS);
}

#[test]
fn a_touch_of_huge_pages_that_were_present_is_noticed() {
    comes_out_invalid("fault/throughput page=2m", "present", TOUCH_FAULTS);
}

#[test]
fn latency_of_base_pages_notices_huge_ones() {
    comes_out_invalid("fault/latency page=4k", "thp-on", LOOP_FAULTS);
}

#[test]
fn latency_of_reads_notices_the_huge_zero_page() {
    comes_out_invalid("fault/latency kind=read page=4k", "thp-on", HUGE);
}

#[test]
fn latency_of_huge_pages_notices_a_silent_fallback() {
    comes_out_invalid("fault/latency page=2m", "thp-off", HUGE);
}

#[test]
fn latency_of_huge_pages_notices_ragged_ends() {
    comes_out_invalid("fault/latency page=2m", "ragged", PRESENT);
}

#[test]
fn latency_notices_memory_populated_before_the_policy_was_set() {
    comes_out_invalid("fault/latency page=2m", "early-populate", HUGE);
}

#[test]
fn latency_notices_pages_that_were_present() {
    comes_out_invalid("fault/latency page=4k", "present", LOOP_FAULTS);
}

#[test]
fn latency_of_reads_notices_that_the_zero_page_is_not_there() {
    comes_out_invalid("fault/latency kind=read page=4k", "present", ZERO);
}

// Known flaws of others (METHODOLOGY, Lies), each told as a lie.

#[test]
fn a_read_that_poses_as_an_allocation_is_noticed_by_the_zero_page() {
    // Before Linux 6.7 the page table does not tell which pages are the zero page.
    if !tells_zero_pages() {
        return skip("this kernel does not tell zero pages", "use Linux 6.7 or newer");
    }
    comes_out_invalid("fault/latency page=4k", "read", ZERO);
    comes_out_invalid("fault/latency page=2m", "read", ZERO);
}

#[test]
fn a_read_that_poses_as_a_copy_is_noticed() {
    comes_out_invalid("fault/latency kind=zero-write", "read", LOOP_FAULTS);
    let of_file = "base pages that are the file's own";
    comes_out_invalid("fault/latency kind=private-file-cow", "read", of_file);
}

#[test]
fn a_read_of_shared_memory_that_poses_as_a_store_is_noticed() {
    let stored = "base pages stored to afterwards";
    comes_out_invalid("fault/latency kind=shmem-write", "read", stored);
    comes_out_invalid("fault/latency kind=shmem-minor", "read", LOOP_FAULTS);
}

#[test]
fn a_read_of_a_clean_page_that_poses_as_a_store_is_noticed() {
    comes_out_invalid("fault/latency kind=mkwrite", "read", LOOP_FAULTS);
}

#[test]
fn faults_counted_by_pages_where_one_fault_maps_many_are_noticed() {
    comes_out_invalid("fault/latency kind=file-minor", "fault-around", LOOP_FAULTS);
    comes_out_invalid("fault/latency kind=file-minor-single", "fault-around", LOOP_FAULTS);
}

#[test]
fn a_file_that_was_filled_before_is_noticed_where_the_fault_should_fill_it() {
    comes_out_invalid("fault/latency kind=shmem-write", "cached", RESIDENT);
}

#[test]
fn a_file_in_memory_is_noticed_where_the_fault_should_read_the_disk() {
    comes_out_invalid("fault/latency kind=file-major", "cached", "major faults");
    comes_out_invalid("fault/latency kind=file-major", "cached", RESIDENT);
}

#[test]
fn pages_of_files_that_were_present_are_noticed() {
    let kinds = [
        "private-file-cow",
        "file-minor",
        "file-minor-single",
        "mkwrite",
        "shmem-write",
        "shmem-minor",
    ];
    for kind in kinds {
        comes_out_invalid(&format!("fault/latency kind={kind}"), "present", LOOP_FAULTS);
    }
    comes_out_invalid("fault/latency kind=file-major", "present", "major faults");
}

#[test]
fn files_that_were_populated_early_are_noticed() {
    for kind in ["private-file-cow", "file-minor", "shmem-write", "shmem-minor"] {
        comes_out_invalid(&format!("fault/latency kind={kind}"), "early-populate", LOOP_FAULTS);
    }
}

#[test]
fn a_lie_that_would_be_the_truth_is_refused() {
    let lab = Lab::new();
    for (kind, lie) in [
        ("write", "cached"),
        ("write", "fault-around"),
        ("read", "read"),
        ("present", "read"),
        ("private-file-cow", "cached"),
        ("private-file-cow", "thp-on"),
        ("file-minor", "read"),
        ("file-major", "fault-around"),
        ("mkwrite", "early-populate"),
        ("shmem-minor", "cached"),
    ] {
        let words = ["run", "fault/latency", "--kind", kind, "--lie", lie];
        lab.pagelab(&words).exits(2).complains(&["a lie that would be the truth"]);
    }
    let words = ["run", "fault/latency", "--page", "hugetlb-2m", "--lie", "read"];
    lab.pagelab(&words).exits(2).complains(&["a lie that would be the truth"]);
}

/// Whether the page table of this kernel tells the zero page from others.
fn tells_zero_pages() -> bool {
    let lab = Lab::new();
    lab.measure("zero", &["fault/latency kind=read size=4m rounds=1"]).exits(0);
    let records = lab.records("zero");
    measured(&records[0]).witness.iter().any(|claim| claim.claim == ZERO)
}

#[test]
fn huge_pages_that_the_machine_does_not_have_are_a_skip_with_its_cure() {
    // Larger than any pool: the machine would have to be all of it.
    let lab = Lab::new();
    let ended = lab.measure("none", &["fault/throughput page=hugetlb-1g size=1024g rounds=1"]);
    ended.exits(4).shows(&["1 skipped"]);
    let records = lab.records("none");
    let Outcome::Skipped { need, cure } = &records[0].outcome else { panic!() };
    assert!(!need.is_empty() && cure.len() > 10, "{need}: {cure}");
}

#[test]
fn a_heap_that_cannot_grow_is_a_failure_that_names_the_call() {
    // The limit of the data segment holds for the heap; what else the case maps fits below it.
    let lab = Lab::new();
    let suite = lab.suite(&["fault/throughput backing=brk size=512m rounds=1"]);
    let run = format!("ulimit -d 400000 && exec \"$0\" run --suite {suite} -o heap");
    let mut shell = assert_cmd::Command::new("sh");
    shell.args(["-c", &run]).arg(crate::support::binary());
    lab.ended(&mut shell).exits(1);
    let reason = failure(&lab.records("heap")[0]).to_owned();
    assert!(reason.contains("brk"), "{reason}");
}
