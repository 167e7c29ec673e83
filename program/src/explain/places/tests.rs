//! Mappings that come and go, against a naive map of pages.

use proptest::prelude::*;

use super::*;

fn mapping(start: u64, length: u64, name: &str) -> Mapping {
    let (offset, inode) = (0, 0);
    Mapping { start, length, offset, protection: 3, flags: 2, inode, name: name.to_owned() }
}

#[test]
fn a_mapping_takes_the_place_of_what_was_there() {
    let mut places = Places::default();
    places.map(1, &mapping(0x1000, 0x4000, "/lib/a"), 1);
    places.map(1, &mapping(0x2000, 0x1000, "//anon"), 1);
    let at = |address| places.find(1, address).map(|area| (&*area.name, area.offset));
    assert_eq!(at(0x1fff), Some(("/lib/a", 0)));
    assert_eq!(at(0x2000), Some(("//anon", 0)));
    assert_eq!(at(0x3000), Some(("/lib/a", 0x2000)));
    assert_eq!((at(0xfff), at(0x5000)), (None, None));
}

#[test]
fn a_fork_has_what_its_parent_had_and_an_exec_nothing() {
    let mut places = Places::default();
    places.map(1, &mapping(0x1000, 0x1000, "[heap]"), 1);
    places.fork(2, 1);
    places.exec(1);
    assert!(places.find(1, 0x1000).is_none());
    assert_eq!(places.find(2, 0x1000).unwrap().place, Place::Heap);
    places.exit(2);
    assert!(places.find(2, 0x1000).is_none());
}

#[test]
fn what_a_name_means_is_known() {
    for (name, flags, place) in [
        ("//anon", 2, Place::Anonymous),
        ("", 1, Place::Shmem),
        ("[heap]", 2, Place::Heap),
        ("[anon:arena]", 2, Place::Anonymous),
        ("/memfd:x (deleted)", 1, Place::Shmem),
        ("/usr/bin/true", 2, Place::PrivateFile),
        ("/var/db", 1, Place::SharedFile),
        ("//anon", 2 | MAP_HUGETLB, Place::Hugetlb),
        ("[vdso]", 2, Place::Kernel),
    ] {
        assert_eq!(place_of(name, flags, false), place, "{name}");
    }
    assert_eq!(place_of("/tmp/x", 2, true), Place::Shmem);
}

#[test]
fn this_process_knows_where_its_code_is() {
    let mut places = Places::default();
    let code = this_process_knows_where_its_code_is as *const () as usize as u64;
    let area = places.at(std::process::id(), code, 1).unwrap();
    assert_eq!(area.place, Place::PrivateFile);
    assert!(area.name.contains("pagelab_program"), "{}", area.name);
}

#[test]
fn what_was_advised_or_unmapped_is_so_from_then_on() {
    let mut places = Places::default();
    places.map(1, &mapping(0x1000, 0x5000, "//anon"), 1);
    places.advise(1, 0x2000, 0x4000, false);
    places.unmap(1, 0x3000, 0x5000);
    let at = |places: &Places, address| {
        places.find(1, address).map(|area| (area.start, area.end, area.may_be_huge))
    };
    assert_eq!(at(&places, 0x1000), Some((0x1000, 0x2000, true)));
    assert_eq!(at(&places, 0x2000), Some((0x2000, 0x3000, false)));
    assert_eq!((at(&places, 0x3000), at(&places, 0x4000)), (None, None));
    assert_eq!(at(&places, 0x5000), Some((0x5000, 0x6000, true)));
    // New rights change no advice, and a mapping in its place has none.
    places.map(1, &mapping(0x2000, 0x1000, "//anon"), 1);
    assert!(!places.find(1, 0x2000).unwrap().may_be_huge);
    places.unmap(1, 0x2000, 0x3000);
    places.map(1, &mapping(0x2000, 0x1000, "//anon"), 1);
    assert!(places.find(1, 0x2000).unwrap().may_be_huge);
}

#[test]
fn what_was_there_before_anybody_looked_is_untold_with_all_that_grows_from_it() {
    let mut places = Places::default();
    places.put(1, &mapping(0x1000, 0x1000, "[heap]"), None);
    places.map(1, &mapping(0x1000, 0x4000, "[heap]"), 1);
    assert!(places.find(1, 0x4000).unwrap().untold);
    assert_eq!(places.heap_end(1), Some(0x5000));
    // What was told stays told when it is read.
    places.map(1, &mapping(0x9000, 0x1000, "//anon"), 1);
    places.put(1, &mapping(0x9000, 0x1000, "//anon"), None);
    assert!(!places.find(1, 0x9000).unwrap().untold);
}

#[test]
fn memory_that_grows_is_one_by_its_lineage_and_other_memory_is_not() {
    let mut places = Places::default();
    let lineage = |places: &Places, at| places.find(1, at).unwrap().lineage;
    places.map(1, &mapping(0x8000, 0x1000, "//anon"), 1);
    // Downwards, beside and together, and upwards.
    places.map(1, &mapping(0x6000, 0x2000, "//anon"), 1);
    places.map(1, &mapping(0x5000, 0x4000, "//anon"), 1);
    places.map(1, &mapping(0x9000, 0x1000, "//anon"), 1);
    assert!([0x5000, 0x7000, 0x9000].iter().all(|at| lineage(&places, *at) == 0x8000));
    places.map(1, &mapping(0xa000, 0x1000, "/lib/a"), 1);
    places.map(1, &mapping(0xc000, 0x1000, "//anon"), 1);
    assert_eq!((lineage(&places, 0xa000), lineage(&places, 0xc000)), (0xa000, 0xc000));
    // What is advised or unmapped in its middle leaves it what it is.
    places.advise(1, 0x6000, 0x7000, false);
    places.unmap(1, 0x7000, 0x8000);
    assert!([0x6000, 0x8000].iter().all(|at| lineage(&places, *at) == 0x8000));
}

proptest! {
    /// Against a model of one owner for each page.
    #[test]
    fn every_page_belongs_to_the_mapping_that_came_last(
        maps in prop::collection::vec((0_u64..32, 1_u64..16), 1..20),
    ) {
        let mut places = Places::default();
        let mut model = [None; 64];
        for (index, (start, length)) in maps.iter().enumerate() {
            places.map(1, &mapping(start << 12, length << 12, &format!("/{index}")), 1);
            for page in *start..start + length {
                model[usize::try_from(page).unwrap()] = Some((index, page - start));
            }
        }
        for (page, expected) in (0_u64..).zip(model) {
            let found = places.find(1, page << 12).map(|area| {
                let from_start = (page << 12) - area.start + area.offset;
                (area.name[1..].parse::<usize>().unwrap(), from_start >> 12)
            });
            prop_assert_eq!(found, expected);
        }
    }
}

#[test]
fn what_was_read_before_it_was_told_is_new() {
    let mut places = Places::default();
    let here = std::ptr::from_ref(&places) as u64;
    let process = std::process::id();
    let read = places.at(process, here, 1).unwrap().clone();
    assert!(read.untold);
    let told = mapping(read.start, read.end - read.start, &read.name);
    places.map(process, &told, u64::MAX);
    assert!(places.find(process, here).unwrap().untold, "it has changed since");
    places.map(process, &told, 1);
    assert!(!places.find(process, here).unwrap().untold);
}
