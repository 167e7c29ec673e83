//! Whether a second, independent `pagelab try` says the same, and another tool the same number.
//!
//! The one idea: a verdict that does not come again is none. Each program is tried twice; it is
//! repeated where both runs decide, and say the same: leave it as it is, or faster, with no rung
//! named by one that the other calls anything else. What is open counts as not repeated, and what
//! was planted must be found. With `--beside`, the rung of malloc's tunable is timed by `hyperfine`
//! as well, with the same environment.

mod verdict;

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use serde_json::Value;

use self::verdict::{Beside, Repeated, table};
use crate::{
    programs::{self, Planted, Program, Score},
    shell::{enter_root, find, line},
};

/// Adds what the task takes.
pub(crate) fn arguments(command: clap::Command) -> clap::Command {
    let dir = Arg::new("dir").long("dir").default_value("target/try-score");
    let budget = Arg::new("budget").long("budget").value_parser(value_parser!(f64));
    let beside = Arg::new("beside").long("beside").action(ArgAction::SetTrue);
    command
        .arg(dir.help("Where runs are kept; what is there is not done again"))
        .arg(Arg::new("binary").long("binary").default_value("target/release/pagelab"))
        .arg(budget.default_value("60").help("Seconds for each of the two runs of a program"))
        .arg(Arg::new("rung").long("rung").help("These rungs of try only"))
        .arg(Arg::new("only").long("only").help("This program only, by its name"))
        .arg(beside.help("Time malloc's tunable by hyperfine as well"))
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
    let only = matches.get_one::<String>("only");
    let (mut repeated, mut beside) = (Vec::new(), Vec::new());
    let programs = programs::of(Score::Try)?;
    for program in programs.iter().filter(|one| only.is_none_or(|only| *only == one.name)) {
        if !program.is_here(&work) {
            println!("skipped: {} is not here: {}", program.name, program.cure);
            continue;
        }
        let [one, other] = ["1", "2"].map(|nth| {
            let name = format!("{}-{nth}", program.name);
            kept(&dir.join(format!("{name}.json")), || {
                println!("{name} ({})", program.kind);
                program.prepared(&work)?;
                program.tried(&binary, &work, &dir.join(&name), &flags)
            })
        });
        let (one, other) = (one?, other?);
        let wanted = program.planted.map(|planted| planted == Planted::Gain);
        repeated.push(Repeated::of(&program.name, [&one, &other], wanted));
        if matches.get_flag("beside") && program.serves.is_none() {
            let file = dir.join(format!("{}-hyperfine.json", program.name));
            let timed = kept(&file, || hyperfine(program, &work))?;
            beside.extend(Beside::of(&program.name, [&one, &other], &timed));
        }
    }
    print!("\n{}", table(&repeated, &beside));
    Ok(())
}

/// What a file holds, or is made to hold.
fn kept(file: &Path, make: impl FnOnce() -> Result<String>) -> Result<Value> {
    if !file.exists() {
        fs::write(file, make()?)?;
    }
    let text = fs::read_to_string(file)?;
    serde_json::from_str(&text).with_context(|| file.display().to_string())
}

/// What `hyperfine` measures of a program as it is set up and with malloc's tunable, as JSON.
fn hyperfine(program: &Program, work: &Path) -> Result<String> {
    if find("hyperfine").is_none() {
        bail!("hyperfine is not here: apt install hyperfine");
    }
    let quoted = |word: &String| format!("'{}'", word.replace('\'', "'\\''"));
    let words: Vec<String> = program.words()?.iter().map(quoted).collect();
    let words = words.join(" ");
    let mut command = Command::new("hyperfine");
    command.args(["--style", "none", "--warmup", "1", "--runs", "16", "-N"]);
    command.args(["--export-json", "hyperfine.json"]);
    command.args(program.input.iter().flat_map(|input| ["--input", input.as_str()]));
    command.arg(format!("env {words}"));
    command.arg(format!("env GLIBC_TUNABLES=glibc.malloc.hugetlb=1 {words}"));
    let status = command.current_dir(work).status().with_context(|| line(&command))?;
    if !status.success() {
        bail!("{} ended with {status}", line(&command));
    }
    Ok(fs::read_to_string(work.join("hyperfine.json"))?)
}
