//! What segments do to programs that people run: memory and time beside the program as it is, and
//! beside glibc's own tunable for huge pages.
//!
//! The one idea: `pagelab try` with two rungs takes the arms in turns, so ratios are of one run;
//! here they are read from its journal, round by round. An interval is one of order statistics, and
//! says nothing where there are too few rounds; a verdict is that of every comparison
//! (docs/compare.md). A rung is compared in the rounds in which its pages came, as `try` says; with
//! glibc 2.35 to 2.37 that is luck. One that never gives a program any is the program as it is:
//! `try` goes no further with it, whatever the budget, and neither is it compared here. `--figures`
//! shows what segments cost by themselves ([`figures`]).

mod figures;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use serde_json::Value;

use crate::programs::{self, Asked, Score};

/// The arms, as `try` calls them.
const PLAIN: &str = "plain";
const THP: &str = "malloc-thp";
const SEGMENT: &str = "segment";
/// Rounds without which there is no interval of 95 %.
const ROUNDS: usize = 6;
/// A difference of less is none, as `pagelab compare` has it.
const TIE: f64 = 0.03;

/// Adds what the task takes.
pub(crate) fn arguments(command: clap::Command) -> clap::Command {
    let rounds = Arg::new("rounds").long("rounds").value_parser(value_parser!(u32));
    let figures = Arg::new("figures").long("figures").action(ArgAction::SetTrue);
    programs::arguments(command, "target/segment-score", "40")
        .arg(rounds.help("Rounds of each program, as far as the budget goes"))
        .arg(figures.help("What segments cost by themselves, and no program"))
}

/// Tries each program, and prints a line for it.
///
/// # Errors
/// When a run cannot be made or read.
pub(crate) fn segment_score(matches: &ArgMatches) -> Result<()> {
    let asked = Asked::of(matches)?;
    if matches.get_flag("figures") {
        return figures::print(&asked.binary, &asked.dir);
    }
    let rungs = format!("{SEGMENT},{THP}");
    let mut flags = vec!["--no-prediction", "--budget", &asked.budget, "--rung", &rungs];
    let rounds = matches.get_one::<u32>("rounds").map(u32::to_string);
    flags.extend(rounds.iter().flat_map(|all| ["--rounds", all, "--min-rounds", all]));
    let flags: Vec<String> = flags.into_iter().map(str::to_owned).collect();
    println!("program   peak      to plain                       to glibc's hugetlb=1");
    for program in asked.programs(Score::Segment)?.0 {
        let run = asked.dir.join(&program.name);
        let report = serde_json::from_str(&program.tried(&asked, &run, &flags)?)?;
        let arms = Arms::of(&run.join("journal.jsonl"), program.serves.is_some())?;
        println!("{:<9} {}", program.name, arms.line(&Came::of(&report, THP)));
    }
    Ok(())
}

/// The rounds of a rung in which its pages came, as `try` says, and how many there were.
#[derive(Debug, Default)]
struct Came {
    rounds: BTreeSet<u64>,
    all: u64,
}

impl Came {
    fn of(report: &Value, name: &str) -> Self {
        let rungs = report["tried"]["rungs"].as_array().into_iter().flatten();
        let Some(rung) = rungs.into_iter().find(|rung| rung["rung"] == name) else {
            return Self::default();
        };
        let rounds = rung["came"].as_array().into_iter().flatten().filter_map(Value::as_u64);
        Self { rounds: rounds.collect(), all: rung["rounds"].as_u64().unwrap_or(0) }
    }
}

/// Of each arm, by round: what the program had at most, and how long it took.
#[derive(Debug, Default)]
struct Arms {
    peak: BTreeMap<String, BTreeMap<u64, f64>>,
    time: BTreeMap<String, BTreeMap<u64, f64>>,
}

impl Arms {
    /// Of a journal; of a server its CPU time counts, since it runs as long as its client.
    fn of(journal: &Path, serves: bool) -> Result<Self> {
        let text = fs::read_to_string(journal).with_context(|| journal.display().to_string())?;
        let time = if serves { "cpu" } else { "elapsed" };
        let mut arms = Self::default();
        for line in text.lines().skip(1) {
            arms.add(&serde_json::from_str(line)?, time);
        }
        Ok(arms)
    }

    fn add(&mut self, record: &Value, time: &str) {
        let Some(rung) = record["case"]["rung"].as_str() else { return };
        let series = record["outcome"]["measured"]["series"].as_array();
        for one in series.into_iter().flatten() {
            let to = match one["name"].as_str() {
                Some("peak") => &mut self.peak,
                Some(name) if name == time => &mut self.time,
                _ => continue,
            };
            let said = one["process"].as_u64().zip(one["values"][0].as_f64());
            to.entry(rung.to_owned()).or_default().extend(said);
        }
    }

    /// Of the tunable those rounds count in which its pages came.
    fn line(&self, came: &Came) -> String {
        let all: BTreeSet<u64> = self.time.values().flat_map(BTreeMap::keys).copied().collect();
        let peak = median(&ratios(&self.peak, SEGMENT, PLAIN, &all));
        let peak = peak.map_or("-".to_owned(), |peak| format!("{peak:.2}"));
        let beside = |to, rounds| said(&ratios(&self.time, SEGMENT, to, rounds));
        let Came { rounds, all: count } = came;
        let thp = match (rounds.len(), count) {
            (_, 0) => "-".to_owned(),
            (0, _) => format!("as to plain: no huge page came in {count} rounds"),
            (some, _) => format!("{}, came in {some} of {count}", beside(THP, rounds)),
        };
        format!("{peak:<9} {:<30} {thp}", beside(PLAIN, &all))
    }
}

/// One arm by another, in those of some rounds that have both, in order.
fn ratios(
    of: &BTreeMap<String, BTreeMap<u64, f64>>,
    arm: &str,
    to: &str,
    rounds: &BTreeSet<u64>,
) -> Vec<f64> {
    let Some((arm, to)) = of.get(arm).zip(of.get(to)) else { return Vec::new() };
    let mut ratios: Vec<f64> = arm
        .iter()
        .filter(|(round, _)| rounds.contains(round))
        .filter_map(|(round, value)| to.get(round).map(|other| value / other))
        .filter(|ratio| ratio.is_finite())
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

fn median(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len() % 2 == 1 { upper } else { sorted[middle - 1].midpoint(upper) })
}

/// The interval of the median, 95 % at least: between two of the sorted, as many from either end.
fn interval(sorted: &[f64]) -> Option<[f64; 2]> {
    let rounds = sorted.len();
    if rounds < ROUNDS {
        return None;
    }
    // Of so many coins, the chance of at most `below` heads.
    let (mut below, mut chance, mut term) = (0, 0.0, 0.5_f64.powi(i32::try_from(rounds).ok()?));
    while chance + term <= 0.025 {
        chance += term;
        below += 1;
        term *= (rounds + 1 - below) as f64 / below as f64;
    }
    let below = below.checked_sub(1)?;
    Some([sorted[below], sorted[rounds - 1 - below]])
}

fn said(sorted: &[f64]) -> String {
    let Some(ratio) = median(sorted) else { return "-".to_owned() };
    let Some([low, high]) = interval(sorted) else { return format!("{ratio:.3} (too few)") };
    let verdict = match () {
        () if low > 1.0 - TIE && high < 1.0 / (1.0 - TIE) => "SAME",
        () if high < 1.0 => "FASTER",
        () if low > 1.0 => "SLOWER",
        () => "INCONCLUSIVE",
    };
    // A tie is told apart by the third digit.
    format!("{ratio:.3} ({low:.3}-{high:.3}) {verdict}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arms_are_compared_round_by_round() {
        let mut arms = Arms::default();
        for (rung, peak, elapsed) in [("plain", 100, 10), ("segment", 120, 8)] {
            let series = |name, value: u64| {
                (0..8_u64).map(move |round| {
                    json!({ "name": name, "process": round, "values": [value * (round + 1)] })
                })
            };
            let series: Vec<_> = series("peak", peak).chain(series("elapsed", elapsed)).collect();
            let outcome = json!({ "measured": { "series": series } });
            let record = json!({ "case": { "rung": rung }, "outcome": outcome });
            arms.add(&record, "elapsed");
        }
        let report = |came: &[u64]| {
            let rung = json!({ "rung": THP, "rounds": 8, "came": came });
            json!({ "tried": { "rungs": [{ "rung": SEGMENT }, rung] } })
        };
        let line = |arms: &Arms, came: &[u64]| arms.line(&Came::of(&report(came), THP));
        let alone = arms.line(&Came::default());
        assert_eq!(alone, "1.20      0.800 (0.800-0.800) FASTER     -");
        let never = line(&arms, &[]);
        assert!(never.ends_with(" as to plain: no huge page came in 8 rounds"), "{never}");
        // In the rounds without pages it took twice as long, and these do not count.
        let time = (0..8).map(|round| (round, if round < 6 { 8.0 } else { 16.0 }));
        let time = time.map(|(round, each)| (round, each * (round + 1) as f64));
        arms.time.insert(THP.to_owned(), time.collect());
        let some = line(&arms, &[0, 1, 2, 3, 4, 5]);
        assert!(some.ends_with(" 1.000 (1.000-1.000) SAME, came in 6 of 8"), "{some}");
        let few = line(&arms, &[6]);
        assert!(few.ends_with(" 0.500 (too few), came in 1 of 8"), "{few}");
    }

    #[test]
    fn a_verdict_is_that_of_every_comparison() {
        let verdict = |from: f64, to: f64| {
            let sorted: Vec<f64> =
                (0..6).map(|nth| from + (to - from) * f64::from(nth) / 5.0).collect();
            said(&sorted).rsplit(' ').next().unwrap_or_default().to_owned()
        };
        assert_eq!(verdict(1.013, 1.029), "SAME");
        assert_eq!(verdict(0.98, 1.01), "SAME");
        assert_eq!(verdict(1.013, 1.036), "SLOWER");
        assert_eq!(verdict(0.95, 0.99), "FASTER");
        assert_eq!(verdict(0.96, 1.01), "INCONCLUSIVE");
    }

    #[test]
    fn an_interval_takes_six_rounds_and_leaves_few_out() {
        let sorted: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(interval(&sorted[..5]), None);
        assert_eq!(interval(&sorted[..6]), Some([1.0, 6.0]));
        // The table of order statistics: of 20 the 6th and the 15th.
        assert_eq!(interval(&sorted), Some([6.0, 15.0]));
        assert_eq!(median(&sorted), Some(10.5));
    }
}
