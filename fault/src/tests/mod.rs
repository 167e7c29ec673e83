//! The table of workloads under the plan, the parameters and the suites.

mod refusals;

use pagelab_bench::{
    asked::Seconds,
    plan::{Overrides, check, complete, grid, of_cases, of_suite},
    suite::{Entry, Known, parse},
    workload::find,
};
use pagelab_sys::time::ClockChoice;

use crate::{WORKLOADS, throughput::THROUGHPUT};

/// What suites may name here.
const KNOWN: Known = Known { workloads: WORKLOADS, published: &[] };

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    let Err(error) = find(WORKLOADS, "fault/tput") else { panic!() };
    assert!(error.contains("fault/tput") && error.contains("fault/throughput"), "{error}");
}

fn axes(pairs: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
    pairs
        .iter()
        .map(|(name, values)| {
            ((*name).to_owned(), values.iter().map(ToString::to_string).collect())
        })
        .collect()
}

#[test]
fn a_comma_makes_cases_and_two_axes_make_their_product() {
    let axes = axes(&[("page", &["4k", "64k", "2m"]), ("threads", &["1", "2"])]);
    let (cases, left_out) = grid(&THROUGHPUT, &axes).unwrap();
    assert_eq!((cases.len(), left_out.len()), (6, 0));
}

#[test]
fn two_spellings_of_one_case_are_one_case() {
    let axes = axes(&[("size", &["1g", "1024m", "1GiB"])]);
    assert_eq!(grid(&THROUGHPUT, &axes).unwrap().0.len(), 1);
}

#[test]
fn a_comma_in_arms_makes_one_case_of_two_arms() {
    let (cases, _) = grid(&THROUGHPUT, &axes(&[("arms", &["pagelab", "c"])])).unwrap();
    assert_eq!((cases.len(), cases[0].get("arms")), (1, Some("pagelab,c")));
}

#[test]
fn refused_combinations_of_a_grid_are_left_out_with_their_reason() {
    let axes = axes(&[("page", &["4k", "2m"]), ("align", &["ragged"]), ("touch", &["8@4k"])]);
    let (cases, left_out) = grid(&THROUGHPUT, &axes).unwrap();
    assert_eq!((cases.len(), left_out.len()), (1, 1));
    assert!(grid(&THROUGHPUT, &axes[1..]).is_err(), "nothing is left");
}

#[test]
fn what_is_unknown_is_named_with_what_is_known() {
    let error = grid(&THROUGHPUT, &axes(&[("pages", &["4k"])])).unwrap_err();
    assert!(error.contains("`pages`") && error.contains("populate"), "{error}");
    let error = grid(&THROUGHPUT, &axes(&[("order", &["sideways"])])).unwrap_err();
    assert!(error.contains("sideways") && error.contains("random"), "{error}");
}

#[test]
fn a_grid_that_is_too_large_is_refused_with_its_number_before_it_is_made() {
    let numbers = |to: u32| (1..=to).map(|n| n.to_string()).collect::<Vec<_>>();
    let rounds = ("rounds".to_owned(), numbers(1000));
    let mut axes = vec![rounds, ("threads".to_owned(), numbers(1000))];
    let error = grid(&THROUGHPUT, &axes).unwrap_err();
    assert!(error.contains("1000000 cases") && error.contains("at most 120000"), "{error}");
    // As many as no machine can count.
    axes.extend((0..16).map(|_| ("rounds".to_owned(), numbers(1000))));
    assert!(grid(&THROUGHPUT, &axes).unwrap_err().contains("too many"));
}

#[test]
fn a_thousand_cases_are_planned_once_each_in_the_order_of_the_axes() {
    let numbers = |to: u32| (1..=to).map(|n| n.to_string()).collect::<Vec<_>>();
    let axes = [("rounds".to_owned(), numbers(40)), ("cpu".to_owned(), numbers(25))];
    let mut entry = Entry::new(&THROUGHPUT, axes.to_vec());
    let plan = |entry: &Entry| of_cases(entry, ClockChoice::Raw, Overrides::default()).unwrap();
    let once = plan(&entry);
    entry.axes[0].1.extend(numbers(40));
    assert_eq!((once.cases.len(), plan(&entry)), (1000, once.clone()));
    let value = |index: usize, name| once.cases[index].case.get(name).unwrap();
    assert_eq!((value(24, "rounds"), value(24, "cpu")), ("1", "25"));
}

#[test]
fn an_axis_without_a_value_is_named() {
    let error = grid(&THROUGHPUT, &axes(&[("page", &[])])).unwrap_err();
    assert!(error.contains("`page` has no value"), "{error}");
}

#[test]
fn a_case_of_another_version_is_refused_by_parameter_and_value() {
    let case = complete(&THROUGHPUT, &[]).unwrap();
    assert_eq!(check(&THROUGHPUT, &case), Ok(()));
    for (name, value) in [
        ("page", "3k"),
        ("page", "4096"),
        ("size", "auto"),
        ("size", "12q"),
        ("touch", "nowhere"),
        ("rounds", "0"),
        ("arms", "rust"),
        ("align", "ragged"),
        ("nosuch", "1"),
    ] {
        let error = check(&THROUGHPUT, &case.clone().with(name, value)).unwrap_err();
        assert!(error.contains("fault/throughput") && error.contains(name), "{error}");
        assert!(name == "nosuch" || error.contains(value), "{error}");
    }
    let mut short = case;
    short.0.remove("page");
    assert!(check(&THROUGHPUT, &short).unwrap_err().contains("`page`"));
}

#[test]
fn a_time_that_is_too_long_is_none_and_the_longest_does_not_wrap() {
    let longest: Seconds = "31536000".parse().unwrap();
    let entry = Entry { limit: longest, ..Entry::new(&THROUGHPUT, Vec::new()) };
    let plan = of_cases(&entry, ClockChoice::Raw, Overrides::default()).unwrap();
    assert!(plan.cases[0].method.limit_ns >= longest.ns());
}

#[test]
fn a_budget_is_shared_among_the_cases() {
    let suite = parse(include_str!("../../../suites/quick.toml"), KNOWN).unwrap();
    let clock = ClockChoice::Raw;
    let over = Overrides { budget: Some("3".parse().unwrap()), ..Overrides::default() };
    let plan = of_suite(&suite, clock, over).unwrap();
    let total: u64 =
        plan.cases.iter().map(|c| c.method.budget_ns * u64::from(c.method.forks)).sum();
    assert!(total <= 3_100_000_000, "{total}");
}

#[test]
fn mistakes_are_named() {
    for (text, named) in [
        ("summary = 'x'", "`name`"),
        ("name = 'x'", "[[case]]"),
        ("name = 'x'\nspeed = 3\n[[case]]\nworkload = 'limit/timer'", "`speed`"),
        ("name = 'x'\n[[case]]\nworkload = 'limit/time'", "`limit/time`"),
        ("name = 'x'\n[[case]]\nworkload = 'limit/clear'\nlevels = 'l1'", "`levels`"),
        ("name = 'x'\nforks = 0\n[[case]]\nworkload = 'limit/timer'", "`forks`"),
        ("name = 'x\n", "line"),
        ("name = 'x'\npublished = 'nosuch'\n[[case]]\nworkload = 'limit/timer'", "`nosuch`"),
        ("name = 'x'\nlimit = inf\n[[case]]\nworkload = 'limit/timer'", "`limit` = inf"),
        ("name = 'x'\nlimit = 1e12\n[[case]]\nworkload = 'limit/timer'", "`limit`"),
        ("name = 'x'\nbudget = inf\n[[case]]\nworkload = 'limit/timer'", "`budget` = inf"),
        (
            "name = 'x'\nforks = 1_000_000_000\n[[case]]\nworkload = 'limit/timer'",
            "`forks` = 1000000000: expected a whole number from 1 to 1000",
        ),
        ("name = 'x'\nforks = 2.5\n[[case]]\nworkload = 'limit/timer'", "`forks` = 2.5"),
        ("name = 'x'\nprecision = nan\n[[case]]\nworkload = 'limit/timer'", "`precision`"),
        (
            "name = 'x'\n[[case]]\nworkload = 'limit/timer'\nsped = 1",
            "there are forks, turns, budget",
        ),
    ] {
        let error = parse(text, KNOWN).unwrap_err();
        assert!(error.contains(named), "{text}: {error}");
    }
}
