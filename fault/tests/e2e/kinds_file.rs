//! The kinds of fault on files and shared memory: real faults, a scripted clock, every claim.
//!
//! What a machine lacks (a disk, room on it) is a skipped record with its cure, never a failure.

use pagelab_record::{Measured, Outcome};

use crate::support::{Ended, Lab, is_skipped, measured};

/// Runs one case of `fault/latency` at its smallest size.
fn run(lab: &Lab, case: &str) -> Ended {
    let suite = lab.suite(&[&format!("fault/latency size=4m rounds=2 {case}")]);
    lab.pagelab(&["run", "--suite", &suite, "--clock", "scripted", "-o", "run"])
}

/// The record of a case that is valid; none where the machine skips it.
#[track_caller]
fn valid(case: &str) -> Option<Measured> {
    let lab = Lab::new();
    let ended = run(&lab, case);
    let records = lab.records("run");
    if is_skipped(&records[0]) {
        let Outcome::Skipped { cure, .. } = &records[0].outcome else { unreachable!() };
        assert!(cure.len() > 10, "a skip says what to do: {cure}");
        ended.exits(4);
        return None;
    }
    ended.exits(0);
    assert!(measured(&records[0]).is_valid());
    Some(measured(&records[0]).clone())
}

/// What a claim of the fault arm expects and found.
#[track_caller]
fn claimed(measured: &Measured, claim: &str) -> i64 {
    let mine = |c: &&pagelab_record::Claim| c.claim == claim && c.arm == "pagelab";
    let found = measured.witness.iter().find(mine);
    let found = found.unwrap_or_else(|| panic!("no claim `{claim}`"));
    assert!(found.holds && found.expected == found.observed);
    found.observed
}

const PAGES: i64 = 1024;
const MINOR: &str = "minor faults of the loop";
const MAJOR: &str = "major faults";
const PRESENT: &str = "base pages present afterwards";
const OF_FILE: &str = "base pages that are the file's own";
const RESIDENT: &str = "pages of the file in memory before the touches";
const KEPT: &str = "base pages that hold what the file holds";

#[test]
fn a_private_copy_holds_what_the_file_holds_and_is_no_page_of_it() {
    for order in ["ascending", "random"] {
        let Some(found) = valid(&format!("kind=private-file-cow order={order}")) else { return };
        let claims = [MINOR, PRESENT, OF_FILE, RESIDENT, KEPT].map(|name| claimed(&found, name));
        assert_eq!(claims, [PAGES, PAGES, 0, PAGES, PAGES]);
    }
}

#[test]
fn one_fault_of_a_file_maps_what_lies_around_it() {
    let Some(found) = valid("kind=file-minor") else { return };
    let around = i64::try_from(found.counters["pages_mapped_by_a_fault"]).unwrap();
    assert!(around > 1, "{around}");
    let claims = [MINOR, PRESENT, OF_FILE].map(|name| claimed(&found, name));
    assert_eq!(claims, [PAGES / around, PAGES, PAGES]);
}

#[test]
fn where_nothing_lies_around_every_page_of_a_file_faults() {
    for order in ["ascending", "random"] {
        let case = format!("kind=file-minor-single order={order}");
        let Some(found) = valid(&case) else { return };
        let claims = [MINOR, PRESENT, OF_FILE].map(|name| claimed(&found, name));
        assert_eq!(claims, [PAGES, PAGES, PAGES]);
        assert_eq!(found.counters["pages_mapped_by_a_fault"], 1);
    }
}

#[test]
fn a_clean_page_of_a_shared_file_faults_at_its_first_store() {
    let Some(found) = valid("kind=mkwrite") else { return };
    let claims = [MINOR, PRESENT, OF_FILE].map(|name| claimed(&found, name));
    assert_eq!(claims, [PAGES, PAGES, PAGES]);
    assert_eq!(claimed(&found, "base pages that were dirty before the touches"), 0);
}

#[test]
fn a_page_on_the_disk_is_a_major_fault_in_either_order() {
    for order in ["ascending", "random"] {
        let Some(found) = valid(&format!("kind=file-major order={order}")) else { return };
        let claims = [MINOR, MAJOR, PRESENT, RESIDENT].map(|name| claimed(&found, name));
        assert_eq!(claims, [0, PAGES, PAGES, 0]);
        assert_eq!(found.counters["faults"], 2 * 1024);
    }
}

#[test]
fn shared_memory_is_allocated_by_its_first_store() {
    let Some(found) = valid("kind=shmem-write") else { return };
    let claims = [MINOR, PRESENT, OF_FILE, RESIDENT].map(|name| claimed(&found, name));
    assert_eq!(claims, [PAGES, PAGES, PAGES, 0]);
    assert_eq!(claimed(&found, "base pages that were cleared"), PAGES);
    assert_eq!(claimed(&found, "base pages stored to afterwards"), PAGES);
}

#[test]
fn shared_memory_that_is_there_is_only_mapped() {
    let Some(found) = valid("kind=shmem-minor") else { return };
    let claims = [MINOR, PRESENT, OF_FILE, RESIDENT, KEPT].map(|name| claimed(&found, name));
    assert_eq!(claims, [PAGES; 5]);
}

#[test]
fn a_directory_in_memory_skips_what_needs_a_disk_and_says_so() {
    // Every Linux with POSIX shared memory has a tmpfs there.
    if pagelab_sys::files::scratch::notes_writes("/dev/shm".as_ref()) {
        return crate::support::skip("/dev/shm is on a disk", "mount a tmpfs on it");
    }
    for kind in ["mkwrite", "file-major"] {
        let lab = Lab::new();
        run(&lab, &format!("kind={kind} dir=/dev/shm")).exits(4);
        let records = lab.records("run");
        let Outcome::Skipped { cure, .. } = &records[0].outcome else { panic!("{kind}") };
        assert!(cure.contains("--dir"), "{cure}");
    }
    for kind in ["private-file-cow", "file-minor", "file-minor-single"] {
        valid(&format!("kind={kind} dir=/dev/shm"));
    }
}

#[test]
fn a_directory_that_is_not_there_is_a_skip_with_its_cure() {
    let lab = Lab::new();
    run(&lab, "kind=file-minor dir=/nowhere/at/all").exits(4);
    let records = lab.records("run");
    let Outcome::Skipped { need, cure } = &records[0].outcome else { panic!() };
    assert!(need.contains("/nowhere/at/all") && cure.contains("--dir"), "{need}: {cure}");
}

#[test]
fn what_a_kind_does_not_come_in_is_refused_with_what_to_ask_for() {
    let lab = Lab::new();
    for (case, said) in [
        ("kind=mkwrite page=2m", "use page=4k"),
        ("kind=shmem-write mem-node=0", "use mem-node=any"),
        ("kind=write dir=/tmp", "leave it at auto"),
        ("kind=file-minor-single size=2g", "use a smaller size"),
        ("kind=file-minor size=36k", "use a multiple of 64k"),
    ] {
        let words: Vec<String> = case.split(' ').map(str::to_owned).collect();
        let mut all = vec!["run".to_owned(), "fault/latency".to_owned()];
        for word in words {
            let (name, value) = word.split_once('=').unwrap();
            all.extend([format!("--{name}"), value.to_owned()]);
        }
        lab.pagelab(&all).exits(2).complains(&[said]);
    }
}

#[test]
fn no_scratch_file_is_left_behind() {
    let lab = Lab::new();
    let directory = lab.path("scratch");
    std::fs::create_dir(&directory).unwrap();
    run(&lab, &format!("kind=private-file-cow dir={}", directory.display())).exits(0);
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
}
