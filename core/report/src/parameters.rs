//! Which parameters of a set of cases are worth a column.
//!
//! A case is complete, so it names a dozen parameters that are the same in every row. A table shows
//! the ones that differ, and states the others once.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use pagelab_record::{
    Case, Word, units,
    vocabulary::parameter::{self, FIRST, LISTS},
};

/// Parameters that often follow the page size and the kind of fault; where they do, those say it
/// all.
pub const FOLLOWING: [&str; 3] = [parameter::DIR, parameter::ROUNDS, parameter::SIZE];

/// Parameters that change with the page size by themselves, so that they do not tell cases apart.
pub const FOLLOW_PAGE: [&str; 3] = [parameter::PAGE, parameter::SIZE, parameter::ROUNDS];

/// Parameters that get a column: `always`, and those that tell two of the cases apart.
pub fn columns(cases: &[&Case], always: &[&str]) -> Vec<String> {
    let names: BTreeSet<&Word> = cases.iter().flat_map(|case| case.0.keys()).collect();
    let mut names: Vec<&Word> = names.into_iter().collect();
    names.sort_by_key(|name| rank(name));
    names.retain(|name| !LISTS.contains(&name.as_str()));
    let differs = |name: &str| {
        // All that are comparable with each other are like the first of them, or some differ.
        let leads: &[&str] =
            if FOLLOWING.contains(&name) { &[parameter::PAGE, parameter::KIND] } else { &[] };
        let mut first = BTreeMap::new();
        cases.iter().any(|case| {
            let comparable: Vec<Option<&str>> = leads.iter().map(|lead| case.get(lead)).collect();
            *first.entry(comparable).or_insert(case.get(name)) != case.get(name)
        })
    };
    let shown = |name: &&Word| always.contains(&name.as_str()) || differs(name);
    names.into_iter().filter(shown).map(ToString::to_string).collect()
}

/// What cases have in common in the parameters that are to be told, as one line.
pub fn shared(cases: &[&Case], told: impl Fn(&str) -> bool) -> String {
    let Some(first) = cases.first() else { return String::new() };
    let differ = |name: &str| cases.iter().any(|case| case.get(name) != first.get(name));
    let said = |name: &str| {
        let mut values: Vec<&str> = cases.iter().filter_map(|case| case.get(name)).collect();
        values.sort_unstable_by_key(|value| page_rank(value));
        values.dedup();
        if name == parameter::DIR && values.len() > 1 {
            // Most kinds need no directory.
            values.retain(|value| *value != "auto");
            return format!("{name}={}", values.join(","));
        }
        match values[..] {
            [smallest, .., largest] if differ(parameter::KIND) => {
                format!("{name}={smallest}…{largest} (by kind and page)")
            }
            [smallest, .., largest] => format!("{name}={smallest}…{largest} (by page)"),
            _ => format!("{name}={}", values.concat()),
        }
    };
    let rest = first.0.keys().filter(|name| !LISTS.contains(&name.as_str()) && told(name));
    rest.map(|name| said(name)).collect::<Vec<_>>().join(" ")
}

/// What is left of a case without some of its parameters: cases that agree in it form one group.
pub fn without(case: &Case, names: &[&str]) -> Case {
    let told = |name: &str| !LISTS.contains(&name) && !names.contains(&name);
    let kept = case.0.iter().filter(|(name, _)| told(name));
    Case(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// What changes with a parameter by itself, so that it tells no two cases along it apart.
fn following(axis: &str) -> &'static [&'static str] {
    match axis {
        parameter::PAGE | parameter::KIND => &FOLLOWING,
        parameter::TYPE => &[parameter::FRAMES, parameter::ITERATIONS, parameter::LEAF],
        _ => &[],
    }
}

/// Which of some cases is the same but for a parameter; else the first that differs in no more than
/// what follows it.
pub fn otherwise_equal(case: &Case, others: &[&Case], axis: &str) -> Option<usize> {
    let among = |names: &[&str]| {
        let rest = without(case, names);
        others.iter().position(|other| without(other, names) == rest)
    };
    among(&[axis]).or_else(|| among(&[&[axis], following(axis)].concat()))
}

/// Bytes of the page that a case names; `hugetlb-2m` is as large as `2m`.
pub fn page_bytes(page: &str) -> Option<u64> {
    units::parse_bytes(page.strip_prefix("hugetlb-").unwrap_or(page)).ok()
}

/// Where a page stands on the axis of page sizes: by size, hugetlb after the others.
pub fn page_rank(page: &str) -> (bool, u64) {
    (page.starts_with("hugetlb-"), page_bytes(page).unwrap_or(u64::MAX))
}

/// A trace as a heading: a path is its last part.
pub fn display_trace(trace: &str) -> &str {
    trace.rsplit('/').next().unwrap_or(trace)
}

/// The memory type as the processor manuals write it: what the kernel hands out for UC is UC-.
pub fn display_type(memory_type: &str) -> String {
    match memory_type {
        "uc" => "UC-".to_owned(),
        other => other.to_uppercase(),
    }
}

/// A scenario as a heading: a path is its last part, a preset its name.
pub fn display_scenario(scenario: &str) -> &str {
    if scenario.starts_with('/') {
        scenario.rsplit('/').next().unwrap_or(scenario)
    } else {
        scenario
    }
}

/// A value as people read it.
pub fn display(name: &str, value: &str) -> String {
    match name {
        parameter::TRACE => display_trace(value).to_owned(),
        parameter::TYPE => display_type(value),
        parameter::SCENARIO => display_scenario(value).to_owned(),
        _ => value.to_owned(),
    }
}

/// The value of each parameter that most of the cases have.
pub fn usual(cases: &[&Case]) -> Case {
    let mut counts: BTreeMap<&Word, BTreeMap<&Word, usize>> = BTreeMap::new();
    for (name, value) in cases.iter().flat_map(|case| &case.0) {
        *counts.entry(name).or_default().entry(value).or_default() += 1;
    }
    let most = |values: BTreeMap<&Word, usize>| {
        let first = values.into_iter().min_by_key(|(_, count)| Reverse(*count));
        first.map(|(value, _)| value.clone())
    };
    let most = |(name, values)| Some((Word::clone(name), most(values)?));
    Case(counts.into_iter().filter_map(most).collect())
}

/// How many parameters of a case are not the usual ones, apart from some and from those that
/// follow others.
pub fn unusual(case: &Case, usual: &Case, apart: &[&str]) -> usize {
    let told =
        |name: &str| !LISTS.contains(&name) && !FOLLOWING.contains(&name) && !apart.contains(&name);
    let differs = |name: &str, value: &str| usual.get(name).is_some_and(|u| u != value);
    case.0.iter().filter(|(name, value)| told(name) && differs(name, value)).count()
}

fn rank(name: &str) -> usize {
    FIRST.iter().position(|known| *known == name).unwrap_or(FIRST.len())
}

/// Groups of cases from which on a value that most of them have goes without saying.
const MANY: usize = 5;

/// Names for groups of cases: what differs between them, or `alone` where nothing does. Where there
/// are many, what most of them have is not said, but for kind and page.
pub fn labels(cases: &[&Case], alone: &str) -> Vec<String> {
    let names = columns(cases, &[]);
    let mut usual = usual(cases);
    usual.0.retain(|name, value| {
        let has = |case: &&&Case| case.get(name) == Some(value);
        cases.len() >= MANY
            && ![parameter::KIND, parameter::PAGE].contains(&name.as_str())
            && 2 * cases.iter().filter(has).count() > cases.len()
    });
    let goes_without =
        |name: &String, value: &str| usual.get(name).is_some_and(|usual| usual == value);
    let label = |case: &&Case| {
        let said = names.iter().filter_map(|name| {
            let value = case.get(name).filter(|value| !goes_without(name, value))?;
            // One worker is what a reader assumes.
            if value == "1" && [parameter::THREADS, parameter::PROCESSES].contains(&name.as_str()) {
                return None;
            }
            // `anon` and `write` say by themselves what they are; `2` does not.
            let speaks = value.starts_with(|c: char| c.is_ascii_alphabetic())
                && !["on", "off", "any"].contains(&value);
            Some(if speaks { value.to_owned() } else { format!("{name}={value}") })
        });
        let label = said.collect::<Vec<_>>().join(" ");
        if label.is_empty() { alone.to_owned() } else { label }
    };
    cases.iter().map(label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(page: &str, threads: &str) -> Case {
        Case::default().with("page", page).with("threads", threads).with("size", "1g")
    }

    #[test]
    fn a_parameter_that_differs_gets_a_column_and_the_others_are_said_once() {
        let (one, two) = (case("4k", "1"), case("4k", "2"));
        let cases = [&one, &two];
        let shown = columns(&cases, &["page"]);
        assert_eq!(shown, ["page", "threads"]);
        assert_eq!(shared(&cases, |name| !shown.contains(&name.to_owned())), "size=1g");
    }

    #[test]
    fn a_size_that_follows_the_page_gets_no_column() {
        let (small, large) = (case("4k", "1"), case("2m", "1").with("size", "4g"));
        let shown = columns(&[&small, &large], &[]);
        assert_eq!(shown, ["page"]);
        assert_eq!(
            shared(&[&small, &large], |name| !shown.contains(&name.to_owned())),
            "size=1g…4g (by page) threads=1"
        );
        let other = case("4k", "1").with("size", "2g");
        assert_eq!(columns(&[&small, &other], &[]), ["size"]);
    }

    #[test]
    fn a_size_and_a_directory_that_follow_the_kind_get_no_column() {
        let of = |kind: &str, size: &str, dir: &str| {
            let case = case("4k", "1").with("kind", kind).with("size", size);
            case.with("dir", dir)
        };
        let (one, two) = (of("write", "512m", "auto"), of("mkwrite", "32m", "/var/tmp"));
        let shown = columns(&[&one, &two], &[]);
        assert_eq!(shown, ["kind"]);
        let shared = shared(&[&one, &two], |name| !shown.contains(&name.to_owned()));
        assert_eq!(shared, "dir=/var/tmp page=4k size=32m…512m (by kind and page) threads=1");
    }

    #[test]
    fn pages_are_ordered_by_size_and_hugetlb_comes_last() {
        let mut pages = ["hugetlb-2m", "2m", "64k", "4k", "hugetlb-1g"];
        pages.sort_by_key(|page| page_rank(page));
        assert_eq!(pages, ["4k", "64k", "2m", "hugetlb-2m", "hugetlb-1g"]);
    }

    #[test]
    fn groups_are_named_by_what_differs() {
        let one = without(&case("4k", "1").with("backing", "anon"), &["size"]);
        let two = without(&case("4k", "2").with("backing", "brk"), &["size"]);
        assert_eq!(labels(&[&one, &two], "all"), ["anon", "brk threads=2"]);
        assert_eq!(labels(&[&one], "all"), ["all"]);
    }

    #[test]
    fn what_most_groups_have_goes_without_saying() {
        let of = |kind: &str, order: &str| {
            without(&case("4k", "1").with("kind", kind).with("order", order), &["size"])
        };
        let groups = [
            of("write", "ascending"),
            of("read", "ascending"),
            of("swap", "random"),
            of("ksm", "ascending"),
            of("write", "random"),
        ];
        let all: Vec<_> = groups.iter().collect();
        assert_eq!(labels(&all, "all"), ["write", "read", "swap random", "ksm", "write random"]);
        assert_eq!(labels(&all[..2], "all"), ["write", "read"]);
    }

    #[test]
    fn a_case_is_as_unusual_as_its_parameters_that_few_have() {
        let ordinary = case("4k", "1");
        let odd = case("2m", "2").with("size", "2g");
        let usual = usual(&[&ordinary, &ordinary, &odd]);
        assert_eq!(unusual(&ordinary, &usual, &[]), 0);
        assert_eq!(unusual(&odd, &usual, &[]), 2);
        assert_eq!(unusual(&odd, &usual, &["page"]), 1);
    }
}
