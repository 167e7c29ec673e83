//! `tier/simulation`: what a policy did with the pages of a model.
//!
//! The one idea: a record holds what the simulator counted for each arm, as counters named
//! `what/arm` and tables named `what/arm`; shares, waste and regret follow from them here, under
//! names that tables, charts, JSON and CSV share.
//!
//! Tables are in [`mod@section`], drawings in [`mod@charts`], the published results beside in
//! [`mod@compared`]. Nothing here simulates.

mod charts;
mod compared;
mod section;

use pagelab_record::{Case, Measured, Table};

pub(crate) use self::{compared::compared_section, section::section};
use pagelab_report::{
    Entry, Headline, Numbers, Quantity, Run, Tone, Unit, distinct, elapsed, headline as make,
    parameters, tally,
};

use pagelab_record::vocabulary::parameter;
pub(crate) use pagelab_record::vocabulary::{arm::NONE, arm::ORACLE, series::RUN};

/// The workload that this view reads.
pub(crate) const WORKLOAD: &str = "tier/simulation";

/// What is counted of an arm, in the order of the columns: counter, what to call it, and how soon
/// its column is dropped.
pub(crate) const COUNTS: [(&str, &str, u8); 9] = [
    ("pgpromote_success", "promoted", 0),
    ("pgdemote", "demoted", 2),
    ("wasted_promotions", "wasted", 0),
    ("ping_pongs", "ping-pongs", 3),
    ("numa_hint_faults", "hint faults", 4),
    ("pghot_recorded_accesses", "recorded", 6),
    ("hwhint_total_events", "samples", 5),
    ("migrated_bytes", "moved", 4),
    ("stall_ns", "overhead", 1),
];

/// The arms of a record, in the order in which they ran.
pub(crate) fn arms(measured: &Measured) -> Vec<&str> {
    let ran = measured.series.iter().filter(|series| series.name == RUN);
    distinct(ran.map(|series| series.arm.as_str()))
}

/// A count of an arm.
pub(crate) fn count(measured: &Measured, what: &str, arm: &str) -> Option<u64> {
    measured.counter(&format!("{what}/{arm}"))
}

/// A table of an arm.
pub(crate) fn table<'m>(measured: &'m Measured, what: &str, arm: &str) -> Option<&'m Table> {
    measured.table(&format!("{what}/{arm}"))
}

/// Adds what the counters and tables of a simulation imply.
pub(crate) fn derive(_: &Case, measured: &Measured, numbers: &mut Numbers) {
    let time = |numbers: &Numbers, arm: &str| numbers.get(elapsed(arm, RUN), "p50");
    let (oracle, still) = (time(numbers, ORACLE), time(numbers, NONE));
    for arm in arms(measured) {
        let number = |what| count(measured, what, arm).map(|count| count as f64);
        for (what, ..) in COUNTS {
            let unit = if what == "stall_ns" { Unit::Ns } else { Unit::Count };
            let value = number(what).map(|value| Quantity::exact(value, unit));
            numbers.add(tally(arm, what), "count", value);
        }
        let share = |part: Option<f64>, whole: Option<f64>| {
            let (part, whole) = (part?, whole.filter(|whole| *whole > 0.0)?);
            Some(Quantity::exact(part / whole, Unit::Share))
        };
        let waste = share(number("wasted_promotions"), number("pgpromote_success"));
        numbers.add(tally(arm, "wasted_promotions"), "share", waste);
        let fast = share(number("fast_accesses"), number("accesses"));
        numbers.add(tally(arm, "fast_accesses"), "share", fast);
        let mine = time(numbers, arm);
        let over = |other: Option<Quantity>| mine?.over(other?, Unit::Ratio);
        numbers.add(elapsed(arm, RUN), "ratio_to_none", over(still));
        let regret = over(oracle).map(|ratio| Quantity::exact(ratio.value - 1.0, Unit::Share));
        numbers.add(elapsed(arm, RUN), "regret", regret);
    }
}

/// The policies of which a case says nothing, and what tells two cases of this workload apart.
pub(crate) fn titles(entries: &[&Entry]) -> Vec<String> {
    let rest: Vec<_> = entries
        .iter()
        .map(|entry| {
            let mut rest = parameters::without(entry.case(), &[]);
            rest.0.retain(|_, value| value != "auto");
            match entry.case().get(parameter::SCENARIO).map(parameters::display_scenario) {
                Some(scenario) => rest.with("scenario", scenario),
                None => rest,
            }
        })
        .collect();
    parameters::labels(&rest.iter().collect::<Vec<_>>(), "all")
}

/// A case as a heading: its scenario, and what was set otherwise.
pub(crate) fn title(case: &Case) -> String {
    let scenario = parameters::display_scenario(case.get(parameter::SCENARIO).unwrap_or_default());
    let set = case.0.iter().filter(|(name, value)| {
        !matches!(name.as_str(), "scenario" | "policy") && *value != "auto"
    });
    let set: Vec<String> = set.map(|(name, value)| format!("{name}={value}")).collect();
    [&[scenario.to_owned()], &set[..]].concat().join(", ")
}

/// The cases of some that have an oracle among policies; the runs of a preset have names of their
/// own, which would be columns with one cell.
fn with_regret<'e>(mine: &[&'e Entry]) -> Vec<&'e Entry> {
    let has = |entry: &&&Entry| {
        entry.value(parameter::POLICY) != "auto"
            && entry.numbers.get(elapsed(ORACLE, RUN), "regret").is_some()
    };
    mine.iter().filter(has).copied().collect()
}

/// Every policy of some cases but the oracle, in the order in which they ran.
fn policies<'e>(entries: &[&'e Entry]) -> Vec<&'e str> {
    let all = entries.iter().filter_map(|entry| entry.measured()).flat_map(arms);
    distinct(all.filter(|arm| *arm != ORACLE))
}

/// Cases up to which each has its times and promotions among the headlines.
const CASES_MAX: usize = 3;

/// What the best policy of each case came to, and the policy that is least above the oracle in the
/// median workload, of those in all of them.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let mine = run.valid(WORKLOAD);
    let each = mine.iter().filter(|_| mine.len() <= CASES_MAX).filter_map(|entry| best(entry));
    each.chain(headline(&mine)).collect()
}

/// The time of the quickest policy of a case, and what it moved for that.
fn best(entry: &Entry) -> Option<Headline> {
    let time = |arm: &str| entry.numbers.get(elapsed(arm, RUN), "p50");
    let policies = arms(entry.measured()?).into_iter().filter(|arm| ![NONE, ORACLE].contains(arm));
    let known = policies.filter_map(|arm| Some((arm, time(arm)?)));
    let (arm, quickest) = known.min_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let counted = |what, word| {
        let count = entry.numbers.get(tally(arm, what), "count")?;
        Some(format!("{} {word}", count.display()))
    };
    let still = time(NONE).map(|still| format!("{} without moves", still.display()));
    let told = ["pgpromote_success", "wasted_promotions"].into_iter().zip(["promoted", "wasted"]);
    let told = told.map(|(what, word)| counted(what, word));
    let label = format!("simulated time of {} with {arm}", title(entry.case()));
    Some(make(quickest, label, &[still].into_iter().chain(told).collect::<Vec<_>>()))
}

fn headline(mine: &[&Entry]) -> Option<Headline> {
    let with = with_regret(mine);
    let median = |policy: &str| {
        let each = with.iter().map(|e| e.numbers.get(elapsed(policy, RUN), "regret"));
        let mut all: Vec<Quantity> = each.collect::<Option<_>>()?;
        all.sort_by(|a, b| a.value.total_cmp(&b.value));
        Some(all[all.len() / 2])
    };
    let policies = policies(&with);
    let known = policies.into_iter().filter_map(|policy| Some((policy, median(policy)?)));
    let (policy, regret) = known.min_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let s = if with.len() == 1 { "" } else { "s" };
    Some(Headline {
        value: regret.display(),
        label: format!("above the oracle: {policy}, the best policy"),
        detail: format!("simulated · median of {} workload{s}", with.len()),
        tone: Tone::Strong,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use pagelab_record::{Clock, Host, Nature, Outcome, Record, Series, Unit as In, schema};

    use super::*;

    /// A simulation that nobody ran.
    pub(crate) fn record(measured: Measured) -> Record {
        Record {
            schema: schema::SCHEMA.to_owned(),
            run: "test".to_owned(),
            boot: String::new(),
            workload: WORKLOAD.to_owned(),
            nature: Nature::Simulated,
            case: Case::default().with("scenario", "plain").with("policy", "auto"),
            ab: None,
            host: Host::default(),
            outcome: Outcome::Measured(measured),
        }
    }

    /// The time of an arm, in seconds.
    pub(crate) fn with_time(arm: &str, seconds: u64) -> Series {
        Series::new(RUN, arm, Clock::Scripted, In::Ns, vec![seconds * 1_000_000_000])
    }

    fn entry(generator: &str) -> Entry {
        let series = vec![with_time("none", 60), with_time("pghot", 30), with_time(ORACLE, 20)];
        let mut counters = std::collections::BTreeMap::new();
        for (name, value) in [
            ("pgpromote_success/pghot", 200),
            ("wasted_promotions/pghot", 50),
            ("pgdemote/pghot", 10),
            ("accesses/pghot", 1000),
            ("fast_accesses/pghot", 750),
        ] {
            counters.insert(name.to_owned(), value);
        }
        let columns =
            ["t", "node0", "node1", "promoted", "demoted", "wasted"].map(|name| (name, ""));
        let rows = [[0_i64, 0, 400, 0, 0, 0], [30, 190, 210, 200, 10, 50]];
        let tables = vec![Table::new("shares/pghot", columns, rows)];
        let mut record = record(Measured { series, counters, tables, ..Measured::default() });
        record.case = record.case.with("generator", generator).with("policy", "all");
        pagelab_report::Views::new(crate::views::VIEWS, |_, _| None).entry(&record)
    }

    #[test]
    fn regret_and_waste_follow_from_what_was_counted() {
        let entry = entry("zipf");
        let of = |at, statistic| entry.numbers.get(at, statistic).unwrap().value;
        assert!((of(elapsed("pghot", RUN), "regret") - 0.5).abs() < 1e-12);
        assert!((of(elapsed("none", RUN), "regret") - 2.0).abs() < 1e-12);
        assert!((of(elapsed("pghot", RUN), "ratio_to_none") - 0.5).abs() < 1e-12);
        assert!((of(tally("pghot", "wasted_promotions"), "share") - 0.25).abs() < 1e-12);
        assert!((of(tally("pghot", "fast_accesses"), "share") - 0.75).abs() < 1e-12);
    }

    #[test]
    fn two_cases_with_an_oracle_make_a_heat_map_and_each_is_drawn() {
        let entries = [entry("zipf"), entry("gups")];
        let told = |entries: &[Entry]| {
            let mut run = Run::default();
            run.entries = entries.into();
            serde_json::to_string(&section(&run).unwrap().blocks).unwrap()
        };
        let text = told(&entries);
        for said in [
            "Regret against the oracle",
            r#"{"text":"+50.0 %","tone":"plain","depth":56}"#,
            r#""points":[[0.0,0.0],[30.0,0.475]]"#,
            r#"{"key":0,"value":"150","at":100.0,"span":null}"#,
            r#"{"key":1,"value":"50","at":33.33,"span":null}"#,
        ] {
            assert!(text.contains(said), "no `{said}` in {text}");
        }
        assert!(!told(&entries[..1]).contains("Regret against the oracle"));
    }

    #[test]
    fn a_path_is_its_last_part_and_a_preset_its_name() {
        assert_eq!(parameters::display_scenario("/a/b/mine.toml"), "mine.toml");
        assert_eq!(parameters::display_scenario("pghot-v7/scan-1s"), "pghot-v7/scan-1s");
        let case = Case::default().with("scenario", "plain").with("fast", "50%");
        assert_eq!(title(&case.with("seed", "auto")), "plain, fast=50%");
    }
}
