//! Values as people write them, and the one form of each.

use proptest::prelude::*;

use super::*;

const PAGE: Param = Param::axis("page", Kind::Page, "4k");

#[test]
fn spellings_of_a_page_size_are_one_value() {
    for (text, canonical) in [
        ("base", "4k"),
        ("4096", "4k"),
        ("hugepages-64kB", "64k"),
        ("64KiB", "64k"),
        ("2048k", "2m"),
        ("hugetlb-2048kB", "hugetlb-2m"),
        ("hugetlb-1g", "hugetlb-1g"),
    ] {
        assert_eq!(PAGE.canonical(text).as_deref(), Ok(canonical), "{text}");
    }
}

#[test]
fn what_is_no_page_size_is_refused_with_the_flag_and_the_choices() {
    for text in ["3k", "4m", "hugetlb-4k", "huge", "12k"] {
        let error = PAGE.canonical(text).unwrap_err();
        assert!(error.contains("--page") && error.contains("hugetlb-1g"), "{error}");
    }
}

#[test]
fn a_touch_fits_its_stride() {
    assert_eq!(Touch::parse("8@page").unwrap().on(PageSize::Thp).step, 2 << 20);
    assert_eq!(Touch::parse("4096@4k").unwrap().to_string(), "4k@4k");
    for text in ["8", "7@4k", "8k@4k", "8@3000", "0@4k", "8k@page"] {
        assert!(Touch::parse(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_canonical_stays_as_it_is(text in "[0-9a-z@-]{0,12}") {
        for kind in [
            Kind::Page,
            Kind::Size,
            Kind::Sweep(&["1m"]),
            Kind::Touch,
            Kind::Rate,
            Kind::Count { max: 99, auto: true },
            Kind::Cpus(&["auto"]),
            Kind::Node(&["any"]),
            Kind::Number { min: 0, max: 9 },
            Kind::Ops,
        ] {
            let param = Param { kind, ..PAGE };
            if let Ok(canonical) = param.canonical(&text) {
                prop_assert_eq!(param.canonical(&canonical), Ok(canonical.clone()));
            }
        }
    }
}
