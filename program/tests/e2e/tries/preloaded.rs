//! Rungs by the library that is preloaded: what it does, and that it says where it could not.

use std::{collections::BTreeSet, fs, path::Path};

use elf::{ElfBytes, endian::AnyEndian};
use pagelab_interpose::{
    preload::{Counted, Counts, ORDERS, Order, Orders, PACKAGE, SHEET, SHEET_BYTES},
    segment,
};
use pagelab_sys::process::CounterPage;

use super::{MIB, compiled, rungs, seen, tried, values};
use crate::support::{Lab, Machine, Saved, build_library, is_skipped, measured, skip};

/// A program that maps memory itself.
fn maps(lab: &Lab) -> Option<String> {
    build_library(PACKAGE);
    Some(compiled(lab, "maps")?.to_str().unwrap().to_owned())
}

/// All that the library stands before; each costs a program something on every rung with it. The
/// two of system calls are how a program forbids itself calls.
const STOOD_BEFORE: [&str; 15] = [
    "aligned_alloc",
    "calloc",
    "free",
    "ftruncate",
    "ftruncate64",
    "malloc",
    "memalign",
    "mmap",
    "mmap64",
    "munmap",
    "posix_memalign",
    "prctl",
    "realloc",
    "shmget",
    "syscall",
];

#[test]
fn the_library_stands_before_no_call_that_no_rung_needs() {
    let file = fs::read(build_library(PACKAGE)).unwrap();
    let elf = ElfBytes::<AnyEndian>::minimal_parse(&file).unwrap();
    let (symbols, names) = elf.dynamic_symbol_table().unwrap().unwrap();
    let own = symbols.iter().filter(|symbol| !symbol.is_undefined());
    let own: BTreeSet<_> =
        own.map(|symbol| names.get(symbol.st_name.try_into().unwrap()).unwrap()).collect();
    assert_eq!(own, BTreeSet::from(STOOD_BEFORE));
}

#[test]
fn what_a_program_maps_itself_is_populated_by_a_library_that_is_among_its_mappings() {
    let lab = Lab::new();
    let Some(program) = maps(&lab) else { return };
    tried(&lab, "populate", &[&program, "own", "48", "40"]).exits(0);
    let rungs = rungs(&lab, "run");
    let populate = &rungs["populate"];
    if is_skipped(populate) {
        return skip("the program is not of glibc here", "a system of glibc");
    }
    assert_eq!(values(populate, tried::LARGE), [48 * MIB, 48 * MIB]);
    let counters = &measured(populate).counters;
    let told = [tried::PRELOADED, tried::ASKED, tried::REFUSED];
    assert_eq!(told.map(|name| counters[name]), [2, 2, 0]);
    let said = |rung: &str| fs::read_to_string(lab.path(format!("run/{rung}.stderr"))).unwrap();
    assert_eq!(said("populate"), "with the library\n");
    assert_eq!(said(tried::PLAIN), "without the library\n");
    let digest = |rung: &str| measured(&rungs[rung]).counters[tried::OUTPUT_DIGEST];
    assert_eq!(digest("populate"), digest(tried::PLAIN));
}

#[test]
fn what_a_program_maps_itself_has_huge_pages_without_privilege() {
    let lab = Lab::new();
    let Some(program) = maps(&lab) else { return };
    let run = || tried(&lab, "maps-thp", &[&program, "own", "48", "40"]);
    let (ended, rungs) = seen(&lab, &["maps-thp"], run);
    ended.exits(0);
    let maps = &rungs["maps-thp"];
    if is_skipped(maps) {
        return skip("nobody may have huge pages here", "a kernel with them, and glibc");
    }
    assert!(values(maps, tried::LARGE).iter().any(|large| *large >= 2 * MIB), "{maps:?}");
}

#[test]
fn segments_are_a_rung_whose_pages_came_and_whose_output_is_the_same() {
    let lab = Lab::new();
    let Some(random) = compiled(&lab, "random") else { return };
    build_library(segment::PACKAGE);
    let run = || tried(&lab, "segment", &[random.to_str().unwrap(), "64", "20000000"]);
    let (ended, rungs) = seen(&lab, &["segment"], run);
    ended.exits(0);
    let segment = &rungs["segment"];
    if is_skipped(segment) {
        return skip("nobody may have huge pages here", "a kernel with them, and glibc");
    }
    let digest = |rung: &str| measured(&rungs[rung]).counters[tried::OUTPUT_DIGEST];
    assert_eq!(digest("segment"), digest(tried::PLAIN));
    assert!(values(segment, tried::MINOR_FAULTS).iter().all(|faults| *faults < 64 * 64));
}

#[test]
fn a_library_that_had_nothing_to_do_or_was_not_there_says_so() {
    let lab = Lab::new();
    let Some(program) = maps(&lab) else { return };
    let Some(random) = compiled(&lab, "random") else { return };
    let none = tried(&lab, "populate", &[random.to_str().unwrap(), "16", "1000"]);
    if is_skipped(&rungs(&lab, "run")["populate"]) {
        return skip("the program is not of glibc here", "a system of glibc");
    }
    none.exits(0).shows(&["did not take", "populate: it asked for no such memory itself"]);
    let run = || tried(&lab, "populate", &["env", "-i", &program, "own", "24", "400"]);
    let (cleaned, rungs) = seen(&lab, &["populate"], run);
    let why = "populate: the library was not among the mappings of";
    cleaned.exits(0).shows(&["did not take", why]);
    assert!(measured(&rungs["populate"]).counters[tried::UNLOADED] >= 1);
}

#[test]
fn huge_pages_that_a_program_has_of_its_own_accord_are_not_the_librarys() {
    let lab = Lab::new();
    let Some(random) = compiled(&lab, "random") else { return };
    let tunable = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";
    let words = ["env", tunable, random.to_str().unwrap(), "64", "10000000"];
    let (ended, rungs) = seen(&lab, &["maps-thp"], || tried(&lab, "maps-thp", &words));
    if is_skipped(&rungs["maps-thp"]) {
        return skip("nobody may have huge pages here", "a kernel with them, and glibc");
    }
    ended.exits(0).shows(&["did not take", "maps-thp: it asked for no such memory itself"]);
}

#[test]
fn shared_memory_takes_pages_of_the_pool_which_is_given_back() {
    let Some(_machine) = Machine::as_root() else { return };
    let lab = Lab::new();
    let Some(program) = maps(&lab) else { return };
    let path = Path::new("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
    if !path.exists() {
        return skip("there is no pool of 2 MiB pages", "a kernel with CONFIG_HUGETLBFS");
    }
    let pool = Saved::of(path);
    for kind in ["sysv", "memfd", "shared"] {
        let ended = tried(&lab, "shmem-hugetlb", &[&program, kind, "32", "60"]);
        ended.exits(0);
        let rungs = rungs(&lab, "run");
        let shared = &rungs["shmem-hugetlb"];
        if is_skipped(shared) {
            return;
        }
        // A look may come before it was touched; nothing is held twice.
        let large = values(shared, tried::LARGE);
        assert!(large.iter().all(|large| *large <= 32 * MIB), "{kind}: {large:?}");
        assert!(values(shared, tried::PEAK).iter().all(|peak| *peak < 40 * MIB), "{shared:?}");
        let told = [tried::ASKED, tried::REFUSED].map(|name| measured(shared).counters[name]);
        assert_eq!(told, [2, 0], "{kind}");
        pool.is_back();
        fs::remove_dir_all(lab.path("run")).unwrap();
    }
}

#[test]
fn where_the_pool_is_empty_a_program_gets_what_it_asked_for() {
    let _machine = Machine::alone();
    let lab = Lab::new();
    let Some(program) = maps(&lab) else { return };
    let free = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    if fs::read_to_string(free).is_ok_and(|free| free != "0\n") {
        return skip("the pool is not empty", "echo 0 > /proc/sys/vm/nr_hugepages");
    }
    let orders = Orders::default().with(Order::Pool, 2 << 20).to_string();
    let run = |kind: &str, is_preloaded: bool| {
        let mut command = assert_cmd::Command::new(&program);
        command.args([kind, "8", "1"]);
        if is_preloaded {
            let sheet = lab.file("sheet", [0; SHEET_BYTES]);
            command.env("LD_PRELOAD", build_library(PACKAGE));
            command.env(ORDERS, &orders).env(SHEET, sheet);
        }
        lab.ended(&mut command)
    };
    for kind in ["sysv", "memfd", "shared"] {
        let [plain, asked] = [run(kind, false), run(kind, true)];
        plain.exits(0);
        asked.exits(0);
        if asked.stderr != "with the library\n" {
            return skip("the program is not of glibc here", "a system of glibc");
        }
        assert_eq!(plain.stdout, asked.stdout, "{kind}");
        let counts = Counts(CounterPage::open(&lab.path("sheet")).unwrap().first());
        let told = [Counted::Programs, Counted::Asked, Counted::Bytes, Counted::Refused];
        assert_eq!(told.map(|counted| counts.get(counted)), [1, 1, 0, 1], "{kind}");
    }
}
