//! Other builds of a program: each with its verdict and its faults, and the limits that it exceeds.

use pagelab_program::views::tries::{BuildLimit, exceeded};
use pagelab_record::{
    asked::{Own, Reach, Try},
    vocabulary::tried::AS_SET_UP,
};
use pagelab_report::{Forms, Report};

use crate::tries::{Came, asked, came, flat};

/// The program takes a second and 122 880 faults.
const PROGRAM: Came = came(AS_SET_UP, Reach::Program, 1_000_000_000, 480, 0);

fn builds(of: &[Came]) -> Report {
    let all: Vec<Came> = [PROGRAM].into_iter().chain(of.iter().copied()).collect();
    asked(&all, &[], |asked: &mut Try| {
        for rung in asked.rungs.iter_mut().skip(1) {
            rung.page = 0;
            let build = Own::build(&format!("{}=./{}", rung.name, rung.name));
            asked.own.extend(build);
        }
    })
}

#[test]
fn a_build_has_a_verdict_and_the_difference_of_its_faults() {
    let report = builds(&[
        came("slower", Reach::Program, 1_200_000_000, 480, 0),
        came("same", Reach::Program, 1_001_000_000, 600, 0),
    ]);
    let text = report.markdown();
    let text = text.split("\n## Witness").next().unwrap_or_default();
    insta::assert_snapshot!("builds", text);
    assert!(!flat(&report).contains("larger pages") && !flat(&report).contains("base pages"));
}

#[test]
fn a_limit_is_exceeded_by_a_verdict_on_time_or_by_the_count_of_faults() {
    let exceeded = |build: Came, limit| exceeded(builds(&[build]).run(), &[limit]);
    let slower = came("new", Reach::Program, 1_200_000_000, 480, 0);
    let told = exceeded(slower, BuildLimit::Time(0.03));
    assert!(told[0].starts_with("time:3%: +20.") && told[0].ends_with("of new"), "{told:?}");
    assert!(exceeded(slower, BuildLimit::Time(0.3)).is_empty());
    assert!(exceeded(slower, BuildLimit::Faults(0.0)).is_empty());
    let faster = came("new", Reach::Program, 800_000_000, 480, 0);
    assert!(exceeded(faster, BuildLimit::Time(0.0)).is_empty());
    // A few rounds are no verdict, however slow they were.
    let early = Came { rounds: 3, ..slower };
    assert!(exceeded(early, BuildLimit::Time(0.03)).is_empty());
    let more = came("new", Reach::Program, 1_000_000_000, 500, 0);
    let told = exceeded(more, BuildLimit::Faults(0.04));
    assert_eq!(told, ["faults:4%: +5 120 page faults (122 880 → 128 000) of new"]);
    assert!(exceeded(more, BuildLimit::Faults(0.05)).is_empty());
}
