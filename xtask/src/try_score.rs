//! Whether a second, independent `pagelab try` says the same, and another tool the same number.
//!
//! The one idea: a verdict that does not come again is none. Each program is tried twice; it is
//! repeated where both runs decide, and say the same: leave it as it is, or faster, with no rung
//! named by one that the other calls anything else. What is open counts as not repeated, and what
//! was planted must be found. With `--beside`, the rung of malloc's tunable is timed by `hyperfine`
//! as well, with the same environment. Each run is kept when it ends: who is interrupted goes on.

mod verdict;

use std::fs;

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, value_parser};

use self::verdict::{HEADING, Repeated, table};
use crate::{
    beside,
    programs::{self, Failures, Planted, Score, kept},
    shell::enter_root,
};

/// Adds what the task takes.
pub(crate) fn arguments(command: clap::Command) -> clap::Command {
    let dir = Arg::new("dir").long("dir").default_value("target/try-score");
    let budget = Arg::new("budget").long("budget").value_parser(value_parser!(f64));
    command
        .arg(dir.help("Where runs are kept; what is there is not done again"))
        .arg(Arg::new("binary").long("binary").default_value("target/release/pagelab"))
        .arg(budget.default_value("60").help("Seconds for each of the two runs of a program"))
        .arg(Arg::new("rung").long("rung").help("These rungs of try only"))
        .arg(Arg::new("only").long("only").help("This program only, by its name"))
        .arg(beside::argument())
}

/// Goes through the programs, prints what came of each, and sums up.
///
/// # Errors
/// When a run cannot be made or read.
pub(crate) fn try_score(matches: &ArgMatches) -> Result<()> {
    enter_root()?;
    let text = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let binary = fs::canonicalize(text("binary"))
        .with_context(|| format!("{}: cargo build --release", text("binary")))?;
    let (dir, work) = programs::folders(text("dir"))?;
    let budget = matches.get_one("budget").copied().unwrap_or(60.0_f64);
    let mut flags =
        ["--no-prediction", "--budget", &budget.to_string()].map(str::to_owned).to_vec();
    let rung = matches.get_one::<String>("rung");
    flags.extend(rung.into_iter().flat_map(|rung| ["--rung".to_owned(), rung.clone()]));
    let is_beside = beside::asked(matches)?;
    let only = matches.get_one::<String>("only");
    let (here, _) = programs::here(Score::Try, only, &work)?;
    let (mut repeated, mut beside, mut failures) = (Vec::new(), Vec::new(), Failures::default());
    println!("{HEADING}");
    for program in &here {
        let file = |what: &str| dir.join(format!("{}-{what}", program.name));
        let run = |nth: &str| {
            kept(&file(&format!("{nth}.json")), || {
                program.prepared(&work)?;
                program.tried(&binary, &work, &file(nth), &flags)
            })
        };
        let both = run("1").and_then(|one| Ok([one, run("2")?]));
        let Some(both) = failures.passed(program, both) else { continue };
        let wanted = program.planted.map(|planted| planted == Planted::Gain);
        let said = Repeated::of(&program.name, both.each_ref(), wanted);
        println!("{}", said.line());
        repeated.push(said);
        if is_beside {
            let file = file("hyperfine.json");
            let one = beside::timed(program, &both.each_ref(), &work, &file);
            beside.extend(failures.passed(program, one).flatten());
        }
    }
    print!("\n{}{}", table(&repeated), beside::table(&beside));
    failures.end()
}
