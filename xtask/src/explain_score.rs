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
use clap::{Arg, ArgMatches, value_parser};

use self::score::{Score, table};
use crate::{
    beside,
    programs::{self, Failures, kept},
    shell::enter_root,
};

/// Adds what the task takes.
pub(crate) fn arguments(command: clap::Command) -> clap::Command {
    command
        .arg(
            Arg::new("dir")
                .long("dir")
                .default_value("target/explain-score")
                .help("Where runs are kept; what is there is not done again"),
        )
        .arg(Arg::new("binary").long("binary").default_value("target/release/pagelab"))
        .arg(
            Arg::new("budget")
                .long("budget")
                .value_parser(value_parser!(f64))
                .default_value("120")
                .help("Seconds for each program"),
        )
        .arg(
            Arg::new("rung")
                .long("rung")
                .help("These rungs of try only; some change the machine's settings for a run"),
        )
        .arg(Arg::new("only").long("only").help("This program only, by its name"))
        .arg(beside::argument())
        .arg(
            Arg::new("keep")
                .long("keep")
                .action(clap::ArgAction::SetTrue)
                .help("Write what came of it into records/, for docs/explain.md"),
        )
}

/// Rounds that no budget holds.
const MOST: &str = "1000";

/// The page's name for what came of it.
const RECORD: &str = "records/explain-score.txt";

/// Goes through the programs, prints what came of each, and sums up.
///
/// # Errors
/// When a run cannot be made or read.
pub(crate) fn explain_score(matches: &ArgMatches) -> Result<()> {
    enter_root()?;
    let text = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let binary = fs::canonicalize(text("binary"))
        .with_context(|| format!("{}: cargo build --release", text("binary")))?;
    let (dir, work) = programs::folders(text("dir"))?;
    let budget = matches.get_one("budget").copied().unwrap_or(120.0_f64);
    // What is decided about a rung need not be about its prediction.
    let mut flags =
        ["--rounds", MOST, "--min-rounds", MOST, "--budget"].map(str::to_owned).to_vec();
    flags.push(budget.to_string());
    let rung = matches.get_one::<String>("rung");
    flags.extend(rung.into_iter().flat_map(|rung| ["--rung".to_owned(), rung.clone()]));
    let only = matches.get_one::<String>("only");
    let (here, missing) = programs::here(programs::Score::Explain, only, &work)?;
    let is_beside = beside::asked(matches)?;
    let (mut scores, mut besides, mut failures) = (Vec::new(), Vec::new(), Failures::default());
    for program in &here {
        let report = kept(&dir.join(format!("{}.json", program.name)), || {
            program.prepared(&work)?;
            program.tried(&binary, &work, &dir.join(&program.name), &flags)
        });
        let Some(report) = failures.passed(program, report) else { continue };
        let score = Score::of(&program.name, &report);
        print!("{}", score.lines());
        scores.push(score);
        if is_beside {
            let file = dir.join(format!("{}-hyperfine.json", program.name));
            let one = beside::timed(program, &[&report], &work, &file);
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
