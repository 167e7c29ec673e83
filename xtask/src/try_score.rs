//! Whether a second, independent `pagelab try` says the same, and another tool the same number.
//!
//! The one idea: a verdict that does not come again is none. Each program is tried twice; it is
//! repeated where both runs decide, and say the same: leave it as it is, or faster, with no rung
//! named by one that the other calls anything else. What is open counts as not repeated, and what
//! was planted must be found. With `--beside`, the rung of malloc's tunable is timed by `hyperfine`
//! as well, with the same environment. Each run is kept when it ends: who is interrupted goes on.

mod verdict;

use anyhow::Result;
use clap::{Arg, ArgMatches};

use self::verdict::{HEADING, Repeated, table};
use crate::{
    beside,
    programs::{self, Asked, Failures, Planted, Score, kept},
};

/// Adds what the task takes.
pub(crate) fn arguments(command: clap::Command) -> clap::Command {
    programs::arguments(command, "target/try-score", "60")
        .arg(Arg::new("rung").long("rung").help("These rungs of try only"))
        .arg(beside::argument())
}

/// Goes through the programs, prints what came of each, and sums up.
///
/// # Errors
/// When a run cannot be made or read.
pub(crate) fn try_score(matches: &ArgMatches) -> Result<()> {
    let asked = Asked::of(matches)?;
    let flags = ["--no-prediction", "--rounds", programs::MOST, "--budget", &asked.budget];
    let mut flags = flags.map(str::to_owned).to_vec();
    let rung = matches.get_one::<String>("rung");
    flags.extend(rung.into_iter().flat_map(|rung| ["--rung".to_owned(), rung.clone()]));
    let is_beside = beside::asked(matches)?;
    let (here, _) = asked.programs(Score::Try)?;
    let (mut repeated, mut beside, mut failures) = (Vec::new(), Vec::new(), Failures::default());
    println!("{HEADING}");
    for program in &here {
        let file = |what: &str| asked.dir.join(format!("{}-{what}", program.name));
        let run = |nth: &str| {
            kept(&file(&format!("{nth}.json")), || program.tried(&asked, &file(nth), &flags))
        };
        let both = run("1").and_then(|one| Ok([one, run("2")?]));
        let Some(both) = failures.passed(program, both) else { continue };
        let wanted = program.planted.map(|planted| planted == Planted::Gain);
        let said = Repeated::of(&program.name, both.each_ref(), wanted);
        println!("{}", said.line());
        repeated.push(said);
        if is_beside {
            let file = file("hyperfine.json");
            let one = beside::timed(program, &both.each_ref(), &asked.work, &file);
            beside.extend(failures.passed(program, one).flatten());
        }
    }
    print!("\n{}{}", table(&repeated), beside::table(&beside));
    failures.end()
}
