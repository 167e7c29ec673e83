//! What is offered on machines made of files.

use std::{collections::BTreeSet, ffi::OsString};

use pagelab_interpose::preload::ORDERS;

use super::*;

const MM: &str = "sys/kernel/mm";

fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
    let root = tempfile::tempdir().unwrap();
    let tree = Tree::at(root.path()).with(files.iter().copied());
    (root, tree)
}

fn program() -> Program {
    let mut program = Program::of(&[OsString::from("sh")]).unwrap();
    program.loader = Loader::Glibc;
    program
}

fn offers(files: &[(String, &str)], is_root: bool, program: &Program) -> Vec<Offer> {
    let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
    let (_root, tree) = tree(&files);
    let library = Ok("/lib/libpagelab_preload.so".into());
    let pages = HugePages::of(tree.clone());
    let own = ["pool:mine=x --large".parse().unwrap()];
    Ground { program, pages, tree, is_root, library, fits: true, own: &own }.offers()
}

fn machine(global: &'static str) -> Vec<(String, &'static str)> {
    let thp = format!("{MM}/transparent_hugepage");
    vec![
        (format!("{thp}/enabled"), global),
        (format!("{thp}/hpage_pmd_size"), "2097152\n"),
        (format!("{thp}/shmem_enabled"), "always within_size advise [never] deny force\n"),
        (format!("{thp}/hugepages-64kB/enabled"), "always inherit madvise [never]\n"),
        (format!("{thp}/hugepages-2048kB/enabled"), "always [inherit] madvise never\n"),
        (format!("{MM}/hugepages/hugepages-2048kB/nr_hugepages"), "0\n"),
        ("proc/meminfo".to_owned(), "MemTotal: 1 kB\nHugepagesize:    2048 kB\n"),
    ]
}

#[test]
fn names_are_unique_and_plain_comes_first() {
    let offers = offers(&machine("always [madvise] never\n"), true, &program());
    let names: Vec<&str> = offers.iter().map(|offer| offer.rung.name.as_str()).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    assert_eq!(names[..2], [PLAIN, AS_SET_UP]);
    let thp = offers.iter().find(|offer| offer.rung.name == "thp-always").unwrap();
    let set: Vec<_> = thp.start.settings.iter().map(|(path, value)| (path, value)).collect();
    let [(path, value)] = &set[..] else { panic!("{set:?}") };
    assert!(path.ends_with("transparent_hugepage/enabled") && *value == "always");
}

#[test]
fn who_is_not_root_lacks_what_changes_the_machine() {
    let offers = offers(&machine("always [madvise] never\n"), false, &program());
    for Offer { rung, start } in &offers {
        let changes = !start.settings.is_empty() || start.pool.is_some();
        assert!(!changes || (rung.reach == Reach::Machine && !rung.lacks.is_empty()), "{rung:?}");
    }
    assert!(offers[0].rung.lacks.is_empty() && offers[1].rung.lacks.is_empty());
}

#[test]
fn what_is_so_already_is_no_rung_and_what_nobody_may_have_is_let_in() {
    let all = offers(&machine("[always] madvise never\n"), true, &program());
    assert!(all.iter().all(|offer| offer.rung.name != "thp-always"));
    let never = offers(&machine("always madvise [never]\n"), true, &program());
    let malloc = never.iter().find(|offer| offer.rung.name == "malloc-thp").unwrap();
    assert_eq!(malloc.start.settings[0].1, "madvise");
    assert_eq!(malloc.rung.reach, Reach::Machine);
}

#[test]
fn a_static_or_setuid_program_has_no_tunables_but_a_static_one_with_glibc_has() {
    let with = |loader, is_setuid, is_static_glibc| {
        let program = Program { loader, is_setuid, is_static_glibc, ..program() };
        let offers = offers(&machine("always [madvise] never\n"), true, &program);
        let of = |name: &str| {
            offers.iter().find(|offer| offer.rung.name == name).unwrap().rung.lacks.len()
        };
        let tunables = offers[0].start.environment.len();
        let by_tunable = ["malloc-thp", "malloc-hugetlb", "malloc-keep"].map(of);
        (by_tunable, ["populate", "shmem-hugetlb"].map(of), of("thp-always"), tunables)
    };
    assert_eq!(with(Loader::Glibc, false, false), ([0, 0, 0], [0, 0], 0, 1));
    assert_eq!(with(Loader::None, false, false), ([1, 1, 1], [1, 1], 0, 0));
    assert_eq!(with(Loader::None, false, true), ([0, 0, 0], [1, 1], 0, 1));
    assert_eq!(with(Loader::Glibc, true, false), ([1, 1, 1], [1, 1], 0, 0));
    assert_eq!(with(Loader::None, true, true), ([1, 1, 1], [1, 1], 0, 0));
}

#[test]
fn who_may_not_have_huge_pages_has_maps_collapsed_and_root_lets_them_in() {
    let how = |global, is_root| {
        let offers = offers(&machine(global), is_root, &program());
        let offer = offers.into_iter().find(|offer| offer.rung.name == "maps-thp").unwrap();
        let orders = offer.start.environment.into_iter().find(|(name, _)| name == ORDERS);
        (orders.unwrap().1, offer.start.settings.len(), offer.rung.reach)
    };
    let never = "always madvise [never]\n";
    assert_eq!(how(never, false), ("collapse=2097152".to_owned(), 0, Reach::Program));
    assert_eq!(how(never, true), ("huge=2097152".to_owned(), 1, Reach::Machine));
    let madvise = "always [madvise] never\n";
    assert_eq!(how(madvise, false), ("huge=2097152".to_owned(), 0, Reach::Program));
}

#[test]
fn khugepaged_is_set_to_work_soon_and_what_it_was_undoes_it() {
    let mut files = machine("always [madvise] never\n");
    let folder = format!("{MM}/transparent_hugepage/khugepaged");
    assert!(offers(&files, true, &program()).iter().all(|o| o.rung.name != "khugepaged"));
    for file in ["max_ptes_none", "pages_to_scan", "alloc_sleep_millisecs", "scan_sleep_millisecs"]
    {
        files.push((format!("{folder}/{file}"), "4096\n"));
    }
    let offered = |is_root| {
        let all = offers(&files, is_root, &program());
        all.into_iter().find(|offer| offer.rung.name == "khugepaged").unwrap()
    };
    let Offer { rung, start } = offered(true);
    let values: Vec<&str> = start.settings.iter().map(|(_, value)| value.as_str()).collect();
    // The policy first, and last what wakes it.
    assert_eq!(values, ["always", "511", "32768", "100", "10"]);
    assert!(start.settings[4].0.ends_with("khugepaged/scan_sleep_millisecs"));
    assert_eq!((start.proof, rung.setting.len(), rung.lacks.len()), (Proof::Joined, 5, 0));
    assert!(rung.keep[0].starts_with("setting: echo always | sudo tee "), "{:?}", rung.keep);
    assert_eq!(offered(false).rung.lacks.len(), 1);
}

#[test]
fn every_variant_says_what_it_sets_and_what_was_there() {
    let offers = offers(&machine("always [madvise] never\n"), true, &program());
    for Offer { rung, start } in &offers {
        let sets = start.settings.len() + start.environment.len();
        assert!(rung.setting.len() >= sets && rung.setting.len() == rung.undo.len(), "{rung:?}");
    }
    assert!(offers[1].rung.setting.is_empty(), "as set up nothing is set");
}

#[test]
fn a_library_that_is_missing_is_a_need_with_its_cure() {
    let program = program();
    let (_root, tree) = tree(&[]);
    let library = Err(lack("the library", "build it"));
    let pages = HugePages::of(tree.clone());
    let (own, fits): (&[Own], _) = (&[], false);
    let program = &program;
    let ground = Ground { program, pages, tree, is_root: false, library, fits, own };
    let offers = ground.offers();
    let populate = offers.iter().find(|offer| offer.rung.name == "populate").unwrap();
    assert_eq!(populate.rung.lacks, [lack("the library", "build it")]);
}
