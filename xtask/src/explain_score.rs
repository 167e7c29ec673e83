//! How often what `pagelab explain` predicts comes, by `pagelab try` over twelve real programs.
//!
//! The one idea: a prediction is right by a rule that was there before it: what came lies in its
//! interval, or no farther from it than 15 % of the time in faults. The rule is that of the report,
//! which says so for each rung; here it is counted. What is open counts as not right.
//!
//! The programs are those of [`crate::programs`]. Each is kept when it ends: who is interrupted
//! goes on.

mod score;

use std::fs;

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches};

use self::score::{Score, table};
use crate::{
    beside,
    programs::{self, Asked, Failures, kept},
};

/// Adds what the task takes.
pub(crate) fn arguments(command: clap::Command) -> clap::Command {
    let rung = Arg::new("rung").long("rung");
    let keep = Arg::new("keep").long("keep").action(clap::ArgAction::SetTrue);
    programs::arguments(command, "target/explain-score", "120")
        .arg(rung.help("These rungs of try only; some change the machine's settings for a run"))
        .arg(beside::argument())
        .arg(keep.help("Write what came of it into records/, for docs/explain.md"))
}

/// The page's name for what came of it.
const RECORD: &str = "records/explain-score.txt";

/// Goes through the programs, prints what came of each, and sums up.
///
/// # Errors
/// When a run cannot be made or read.
pub(crate) fn explain_score(matches: &ArgMatches) -> Result<()> {
    let asked = Asked::of(matches)?;
    // What is decided about a rung need not be about its prediction.
    let mut flags = ["--rounds", programs::MOST, "--min-rounds", programs::MOST, "--budget"]
        .map(str::to_owned)
        .to_vec();
    flags.push(asked.budget.clone());
    let rung = matches.get_one::<String>("rung");
    flags.extend(rung.into_iter().flat_map(|rung| ["--rung".to_owned(), rung.clone()]));
    let (here, missing) = asked.programs(programs::Score::Explain)?;
    let is_beside = beside::asked(matches)?;
    let (mut scores, mut besides, mut failures) = (Vec::new(), Vec::new(), Failures::default());
    for program in &here {
        let file = |what: &str| asked.dir.join(format!("{}{what}", program.name));
        let report = kept(&file(".json"), || program.tried(&asked, &file(""), &flags));
        let Some(report) = failures.passed(program, report) else { continue };
        let score = Score::of(&program.name, &report);
        print!("{}", score.lines());
        scores.push(score);
        if is_beside {
            let file = file("-hyperfine.json");
            let one = beside::timed(program, &[&report], &asked.work, &file);
            besides.extend(failures.passed(program, one).flatten());
        }
    }
    scores.extend(missing.iter().map(|program| Score::skipped(&program.name, &program.cure)));
    let told = table(&scores);
    print!("\n{told}{}", beside::table(&besides));
    if matches.get_flag("keep") {
        fs::write(RECORD, told).context(RECORD)?;
        println!("\n{RECORD}: cargo xtask splice puts it into docs/explain.md");
    }
    failures.end()
}
