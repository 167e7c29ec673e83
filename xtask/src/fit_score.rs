//! What `pagelab try --fit` gives of the gain of all mappings, and for how much of their memory.
//!
//! The one idea: a choice is worth something where the rung of whole programs that it stands beside
//! has a gain that is sure; a program without one has nothing to choose from, and is named. Memory
//! that all mappings do not take is spared by any choice.

use anyhow::Result;
use clap::ArgMatches;
use serde_json::Value;

use crate::programs::{self, Asked, Failures, Score, kept};

/// A choice is good that gives so much of the gain, for no more than so much of the memory.
const GAIN: f64 = 0.85;
const MEMORY: f64 = 0.40;

/// Adds what the task takes.
pub(crate) fn arguments(command: clap::Command) -> clap::Command {
    programs::arguments(command, "target/fit-score", "60")
}

/// Goes through the programs, prints what came of each, and sums up.
///
/// # Errors
/// When a run cannot be made or read.
pub(crate) fn fit_score(matches: &ArgMatches) -> Result<()> {
    let asked = Asked::of(matches)?;
    let flags = ["--fit", "--budget", &asked.budget].map(str::to_owned);
    let (here, _) = asked.programs(Score::Fit)?;
    let (mut fits, mut failures) = (Vec::new(), Failures::default());
    println!("{HEADING}");
    for program in &here {
        let file = |what: &str| asked.dir.join(format!("{}{what}", program.name));
        let report = kept(&file(".json"), || program.tried(&asked, &file(""), &flags));
        let Some(report) = failures.passed(program, report) else { continue };
        let fit = Fit::of(&program.name, &report);
        println!("{}", fit.line());
        fits.push(fit);
    }
    println!("\n{}", sum(&fits));
    failures.end()
}

/// What stands above the lines of programs.
const HEADING: &str =
    "program     chosen     of the gain of                      of its memory   so";

/// What came of the choice for a program.
#[derive(Debug)]
struct Fit {
    program: String,
    /// Mappings chosen, of so many.
    chosen: [u64; 2],
    /// The rung of all mappings, with the part of its gain: the value and its ends.
    gain: Option<(String, [f64; 3])>,
    /// The part of its memory; `None` where it takes none.
    memory: Option<f64>,
    /// Why nothing was shown.
    why_not: Option<String>,
}

impl Fit {
    fn of(program: &str, report: &Value) -> Self {
        let fit = &report["fit"];
        let beside = &fit["beside"];
        let share = ["gain_share", "gain_share_low", "gain_share_high"];
        let [value, low, high] = share.map(|name| beside[name].as_f64());
        let ends = value.zip(low).zip(high).map(|((value, low), high)| [value, low, high]);
        let rung = beside["rung"].as_str().map(ToOwned::to_owned);
        Self {
            program: program.to_owned(),
            chosen: ["chosen", "mappings"].map(|name| fit[name].as_u64().unwrap_or(0)),
            gain: rung.zip(ends),
            memory: beside["memory_share"].as_f64(),
            why_not: fit["why_not"].as_str().map(ToOwned::to_owned),
        }
    }

    /// Whether the choice is good; `None` where there is no gain that is sure.
    fn is_good(&self) -> Option<bool> {
        let (_, [share, ..]) = self.gain.as_ref()?;
        Some(*share >= GAIN && self.memory.is_none_or(|memory| memory <= MEMORY))
    }

    fn line(&self) -> String {
        let Self { program, chosen: [chosen, all], gain, memory, why_not } = self;
        let of = format!("{program:<12}{:<11}", format!("{chosen} of {all}"));
        let Some((rung, [value, low, high])) = gain else {
            let why =
                why_not.as_deref().unwrap_or("no rung of all mappings has a gain that is sure");
            return format!("{of}{why}");
        };
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let ends = format!("{rung}: {} ({} to {})", percent(*value), percent(*low), percent(*high));
        let memory = memory.map_or_else(|| "it takes none".to_owned(), percent);
        let so = if self.is_good() == Some(true) { "good" } else { "NOT GOOD" };
        format!("{of}{ends:<36}{memory:<16}{so}")
    }
}

/// What all of it comes to.
fn sum(fits: &[Fit]) -> String {
    let judged: Vec<bool> = fits.iter().filter_map(Fit::is_good).collect();
    let good = judged.iter().filter(|is_good| **is_good).count();
    let dear = fits.iter().filter(|fit| fit.is_good().is_some() && fit.memory.is_some()).count();
    format!(
        "{good} of {} programs with something to gain: at least {:.0} % of it for at most {:.0} % \
         of the memory; {dear} of them have memory to spare.",
        judged.len(),
        GAIN * 100.0,
        MEMORY * 100.0
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fit(share: Option<f64>, memory: Option<f64>) -> Fit {
        let ends = share.map(|share| [share - 0.1, share + 0.1]);
        let beside = json!({
            "rung": "thp-always",
            "gain_share": share,
            "gain_share_low": ends.map(|ends| ends[0]),
            "gain_share_high": ends.map(|ends| ends[1]),
            "memory_share": memory,
        });
        Fit::of("x", &json!({"fit": {"mappings": 9, "chosen": 2, "beside": beside}}))
    }

    #[test]
    fn a_choice_is_good_that_gives_most_of_the_gain_for_little_of_the_memory() {
        let all = [
            (fit(Some(0.9), Some(0.3)), Some(true)),
            (fit(Some(0.9), None), Some(true)),
            (fit(Some(0.9), Some(0.5)), Some(false)),
            (fit(Some(0.8), Some(0.1)), Some(false)),
            (fit(None, Some(0.1)), None),
            (Fit::of("x", &json!({})), None),
        ];
        for (fit, so) in &all {
            assert_eq!(fit.is_good(), *so, "{fit:?}");
        }
        let fits: Vec<Fit> = all.into_iter().map(|(fit, _)| fit).collect();
        assert!(sum(&fits).starts_with("2 of 4 programs with something to gain"), "{}", sum(&fits));
        assert!(sum(&fits).ends_with("3 of them have memory to spare."), "{}", sum(&fits));
        let line = fits[0].line();
        assert!(
            line.contains("2 of 9") && line.contains("thp-always: 90 % (80 % to 100 %)"),
            "{line}"
        );
    }
}
