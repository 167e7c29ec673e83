//! What has to be measured so that the faults of a program have a price.
//!
//! The one idea: a price is a case of `fault/latency` of the same kind and page, measured by the
//! same runner into the same run: a record with a witness of its own. Only kinds that the program
//! took are measured, and what larger pages and populating would cost where that is a choice.

use pagelab_record::{Case, Measured};
use pagelab_sys::clock::ClockChoice;

use super::{kind::Kind, watch::Subject};
use crate::{
    fault::{kinds, latency::Latency, throughput::Throughput},
    measure::Method,
    params::PageSize,
    plan::{Plan, Planned, complete},
    workload::Workload,
};

/// Memory that a price is measured over; a kind that has to be set up page by page takes less.
const SIZE: &str = "64m";
/// Faults below this share of all are not worth a measurement of their own.
const SHARE_MIN: f64 = 0.002;
/// Kinds that are worth measuring at most.
const KINDS_MAX: usize = 8;

/// The cases that price what `measured` has seen, the dearest questions first.
pub fn plan(measured: &Measured, clock: ClockChoice) -> Plan {
    let mut plan = Plan::default();
    let faults = faults(measured);
    let all: u64 = faults.iter().map(|(_, _, count)| count).sum();
    for (kind, page, count) in faults.iter().take(KINDS_MAX) {
        if *count as f64 >= all as f64 * SHARE_MIN {
            price(&mut plan, kind, page, clock);
        }
    }
    let writes: u64 = of_kind(&faults, Kind::Write, "4k");
    if writes as f64 >= all as f64 * SHARE_MIN && writes > 0 {
        // What a knob would make of first writes.
        for page in ["64k", "2m"] {
            if PageSize::offered().iter().any(|offered| offered.to_string() == page) {
                price(&mut plan, Kind::Write.name(), page, clock);
            }
        }
        let pairs = [("page", "4k"), ("size", SIZE), ("populate", "madvise-populate")];
        add(&mut plan, &Throughput, &pairs, clock);
    }
    plan
}

/// Kind, page and number of faults, the most frequent first.
fn faults(measured: &Measured) -> Vec<(String, String, u64)> {
    let mut sums: Vec<(String, String, u64)> = Vec::new();
    for table in &measured.tables {
        let Some(name) = table.name.strip_prefix("fault/") else { continue };
        let mut parts = name.split('/');
        let (Some(kind), Some(page)) = (parts.next(), parts.next()) else { continue };
        let faults = table.rows.first().and_then(|row| row.first()).copied().unwrap_or(0);
        let faults = u64::try_from(faults).unwrap_or(0);
        match sums.iter_mut().find(|(k, p, _)| k == kind && p == page) {
            Some((.., sum)) => *sum += faults,
            None => sums.push((kind.to_owned(), page.to_owned(), faults)),
        }
    }
    sums.sort_by_key(|(.., sum)| std::cmp::Reverse(*sum));
    sums
}

fn of_kind(faults: &[(String, String, u64)], kind: Kind, page: &str) -> u64 {
    let mine = faults.iter().filter(|(k, p, _)| k == kind.name() && p == page);
    mine.map(|(.., count)| count).sum()
}

/// Adds the case that prices a kind, where there is one.
fn price(plan: &mut Plan, kind: &str, page: &str, clock: ClockChoice) {
    if kinds::NAMES.contains(&kind) {
        add(plan, &Latency, &[("kind", kind), ("page", page), ("size", SIZE)], clock);
    }
}

/// Adds a case unless it is there, or the workload refuses it: then there is no price.
fn add(plan: &mut Plan, row: &dyn Workload, pairs: &[(&str, &str)], clock: ClockChoice) {
    let Ok(case) = complete(row, pairs) else { return };
    let is_there = |planned: &Planned| planned.workload == row.name() && planned.case == case;
    if !plan.cases.iter().any(is_there) {
        let workload = row.name().to_owned();
        plan.cases.push(Planned { workload, case, method: method(clock) });
    }
}

/// Three fresh processes of a tenth of a second.
fn method(clock: ClockChoice) -> Method {
    Method {
        forks: 3,
        repetitions_min: 3,
        repetitions_max: 100,
        budget_ns: 100_000_000,
        precision: 0.005,
        limit_ns: 60_000_000_000,
        attempts_max: 6,
        clock,
    }
}

/// What is watched, as a planned case: the first of its run, which no runner runs.
pub fn watched(subject: &Subject, clock: ClockChoice) -> Planned {
    let case = match subject {
        Subject::Program(words) => Case::default().with("program", &words.join(" ")),
        Subject::Process { pid, at_most } => Case::default()
            .with("pid", &pid.to_string())
            .with("duration", &format!("{}s", at_most.as_secs_f64())),
    };
    Planned { workload: super::WORKLOAD.to_owned(), case, method: method(clock) }
}

#[cfg(test)]
mod tests {
    use pagelab_record::{Column, Table};

    use super::*;

    fn seen(faults: &[(&str, i64)]) -> Measured {
        let table = |(name, count): &(&str, i64)| Table {
            name: format!("fault/{name}"),
            columns: vec![Column { name: "faults".to_owned(), unit: "count".to_owned() }],
            rows: vec![vec![*count]],
        };
        Measured { tables: faults.iter().map(table).collect(), ..Measured::default() }
    }

    fn cases(faults: &[(&str, i64)]) -> Vec<String> {
        let plan = plan(&seen(faults), ClockChoice::Raw);
        let brief = |planned: &Planned| {
            let of = |name| planned.case.get(name).unwrap_or_default().to_owned();
            format!("{} {} {}", planned.workload, of("kind"), of("page"))
        };
        plan.cases.iter().map(brief).collect()
    }

    #[test]
    fn only_what_the_program_took_is_measured() {
        let found = cases(&[("read/4k/anonymous", 700), ("read/4k/heap", 300)]);
        assert_eq!(found, ["fault/latency read 4k"]);
        assert!(cases(&[]).is_empty());
    }

    #[test]
    fn first_writes_are_also_measured_as_what_they_could_be() {
        let found = cases(&[("write/4k/anonymous", 10_000), ("read/4k/anonymous", 1)]);
        assert_eq!(found[0], "fault/latency write 4k");
        assert!(found.contains(&"fault/throughput write 4k".to_owned()), "{found:?}");
        assert!(!found.iter().any(|case| case.contains("read")), "one in 10 000: {found:?}");
    }

    #[test]
    fn kinds_have_the_names_that_they_are_measured_by() {
        for kind in [
            Kind::Write,
            Kind::Read,
            Kind::ZeroWrite,
            Kind::ForkCow,
            Kind::ForkReuse,
            Kind::PrivateFileCow,
            Kind::FileMinor,
            Kind::FileMajor,
            Kind::PageMkwrite,
            Kind::ShmemWrite,
            Kind::ShmemMinor,
        ] {
            assert!(kinds::NAMES.contains(&kind.name()), "{}", kind.name());
        }
    }

    #[test]
    fn what_cannot_be_measured_is_left_without_a_price() {
        assert!(cases(&[("other/4k/kernel", 10), ("write/3k/heap", 5)]).is_empty());
    }
}
