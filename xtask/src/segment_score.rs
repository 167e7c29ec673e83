//! What segments do to programs that people run: memory and time beside the program as it is, and
//! beside glibc's own tunable for huge pages.
//!
//! The one idea: `pagelab try` with two rungs takes the arms in turns, so ratios are of one run;
//! here they are read from its journal, round by round. An interval is one of order statistics, and
//! says nothing where there are too few rounds. A rung that gives a program no huge page is the
//! program as it is: `try` goes no further with it, whatever the budget, and neither is it compared
//! here. `--figures` shows what segments cost by themselves ([`figures`]).

mod figures;

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use serde_json::Value;

use crate::{
    programs::{self, Score},
    shell::enter_root,
};

/// The arms, as `try` calls them.
const PLAIN: &str = "plain";
const THP: &str = "malloc-thp";
const SEGMENT: &str = "segment";
/// Rounds without which there is no interval of 95 %.
const ROUNDS: usize = 6;

/// Adds what the task takes.
pub(crate) fn arguments(command: clap::Command) -> clap::Command {
    let budget = Arg::new("budget").long("budget").value_parser(value_parser!(f64));
    command
        .arg(Arg::new("dir").long("dir").default_value("target/segment-score"))
        .arg(Arg::new("binary").long("binary").default_value("target/release/pagelab"))
        .arg(budget.default_value("40").help("Seconds for each program"))
        .arg(Arg::new("only").long("only").help("This program only, by its name"))
        .arg(
            Arg::new("figures")
                .long("figures")
                .action(ArgAction::SetTrue)
                .help("What segments cost by themselves, and no program"),
        )
}

/// Tries each program, and prints a line for it.
///
/// # Errors
/// When a run cannot be made or read.
pub(crate) fn segment_score(matches: &ArgMatches) -> Result<()> {
    enter_root()?;
    let text = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let binary = fs::canonicalize(text("binary"))
        .with_context(|| format!("{}: cargo build --release", text("binary")))?;
    let (dir, work) = programs::folders(text("dir"))?;
    if matches.get_flag("figures") {
        return figures::print(&binary, &dir);
    }
    let budget = matches.get_one("budget").copied().unwrap_or(40.0_f64).to_string();
    let rungs = format!("{SEGMENT},{THP}");
    let flags = ["--no-prediction", "--budget", &budget, "--rung", &rungs].map(str::to_owned);
    let only = matches.get_one::<String>("only");
    println!("program   peak      to plain               to glibc's hugetlb=1");
    for program in programs::of(Score::Segment)? {
        if only.is_some_and(|only| *only != program.name) {
            continue;
        }
        if !program.is_here(&work) {
            println!("skipped: {} is not here: {}", program.name, program.cure);
            continue;
        }
        program.prepared(&work)?;
        let run = dir.join(&program.name);
        program.tried(&binary, &work, &run, &flags)?;
        let arms = Arms::of(&run.join("journal.jsonl"), program.serves.is_some())?;
        println!("{:<9} {}", program.name, arms.line());
    }
    Ok(())
}

/// Of each arm, by round: what the program had at most, of it in huge pages, and how long it took.
#[derive(Debug, Default)]
struct Arms {
    peak: BTreeMap<String, BTreeMap<u64, f64>>,
    large: BTreeMap<String, BTreeMap<u64, f64>>,
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
                Some("large") => &mut self.large,
                Some(name) if name == time => &mut self.time,
                _ => continue,
            };
            let said = one["process"].as_u64().zip(one["values"][0].as_f64());
            to.entry(rung.to_owned()).or_default().extend(said);
        }
    }

    fn line(&self) -> String {
        let peak = ratios(&self.peak, SEGMENT, PLAIN);
        let peak = median(&peak).map_or("-".to_owned(), |peak| format!("{peak:.2}"));
        let beside = |to| said(&ratios(&self.time, SEGMENT, to));
        let thp = if self.takes_none(THP) {
            "as to plain: it takes no huge page".to_owned()
        } else {
            beside(THP)
        };
        format!("{peak:<9} {:<22} {thp}", beside(PLAIN))
    }

    /// Whether somebody looked at an arm, and found no huge page in any round.
    fn takes_none(&self, arm: &str) -> bool {
        self.large.get(arm).is_some_and(|rounds| rounds.values().all(|bytes| *bytes == 0.0))
    }
}

/// One arm by another, in the rounds that have both, in order.
fn ratios(of: &BTreeMap<String, BTreeMap<u64, f64>>, arm: &str, to: &str) -> Vec<f64> {
    let Some((arm, to)) = of.get(arm).zip(of.get(to)) else { return Vec::new() };
    let mut ratios: Vec<f64> = arm
        .iter()
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
    let Some([low, high]) = interval(sorted) else { return format!("{ratio:.2} (too few)") };
    let verdict = match () {
        () if high < 1.0 => "FASTER",
        () if low > 1.0 => "SLOWER",
        () => "open",
    };
    format!("{ratio:.2} ({low:.2}-{high:.2}) {verdict}")
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
        assert_eq!(arms.line(), "1.20      0.80 (0.80-0.80) FASTER -");
        let rounds = |bytes| BTreeMap::from([(0, bytes), (1, 0.0)]);
        arms.large.insert(THP.to_owned(), rounds(2e6));
        assert!(!arms.takes_none(THP) && !arms.takes_none(SEGMENT));
        arms.large.insert(THP.to_owned(), rounds(0.0));
        assert!(arms.line().ends_with(" as to plain: it takes no huge page"), "{}", arms.line());
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
