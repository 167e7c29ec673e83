//! `cargo xtask storm`: runs that are killed at random moments, and what is left of them.
//!
//! The one idea: a run may die at any instant and in any part, and three things hold afterwards:
//! every record that was finished is there once, every setting of the machine is as before, and no
//! process is left. Commands, targets and moments are drawn from a seed that is printed; how long a
//! machine takes to come to a moment is not, so a seed repeats a storm nearly, not exactly.
//!
//! It is not a test of what is measured, nor of kills inside one system call of ours: for those the
//! tests of `core/sys` stop in every step.

mod clock;
mod commands;
mod draw;
mod family;
mod judge;
mod life;
mod machine;
mod session;
mod settings;
mod tally;

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;

use self::{clock::Watch, draw::Draw, session::Sessions, tally::Tally};
use crate::{shell, workspace};

/// Where the program is built.
const BUILT: &str = "target/debug/pagelab";

/// What the task takes.
#[derive(Parser)]
pub(crate) struct Arguments {
    /// Kill so many times
    #[arg(long, value_name = "N", default_value_t = 300)]
    kills: usize,
    /// Draw as an earlier storm did, which printed it
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Kill this pagelab instead of one that is built for it
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Run only commands of the deck whose name contains this: `two arms`
    #[arg(long, value_name = "WORD", default_value = "", hide_default_value = true)]
    only: String,
}

/// The task.
pub(crate) fn storm(asked: &Arguments) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        shell::warn(
            "NOTHING WAS KILLED: without root no run changes a setting of the machine.\n\
             Cure: sudo cargo xtask storm",
        );
        return Ok(());
    }
    let Arguments { kills, only, .. } = asked;
    let seed = asked.seed.unwrap_or_else(draw::any_seed);
    let binary = match &asked.binary {
        Some(binary) => binary.clone(),
        None => built()?,
    };
    let binary = binary.canonicalize().with_context(|| binary.display().to_string())?;
    let folder = env::temp_dir().join(format!("pagelab-storm-{}", std::process::id()));
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    println!("storm: seed {seed}, {kills} kills of {}", binary.display());
    let watch = Watch::start();
    let deck = commands::deck(|command| command.name.contains(only.as_str()));
    if deck.is_empty() {
        let names: Vec<_> =
            commands::COMMANDS.iter().map(|command| command.name.as_str()).collect();
        bail!("--only {only}: the deck has no such command, but: {}", names.join("; "));
    }
    let tally = blow(&binary, &folder, seed, *kills, &deck)?;
    println!("\n{tally}in {:.0} s, seed {seed}", watch.passed().as_secs_f64());
    ensure!(tally.is_good(), "what was wrong is above, and the runs are in {}", folder.display());
    fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())
}

/// The program, as the tests have built it.
fn built() -> Result<PathBuf> {
    shell::run("storm", workspace::build().arg("--quiet"))?;
    Ok(BUILT.into())
}

/// Session after session, until there were so many kills.
fn blow(binary: &Path, folder: &Path, seed: u64, kills: usize, whole: &[usize]) -> Result<Tally> {
    let at_first = machine::at_rest()?;
    println!("storm: {} settings are compared", at_first.count());
    let mut sessions = Sessions::new(binary, folder);
    let mut deck = Vec::new();
    for number in 0.. {
        let done = sessions.tally.kills();
        if done >= kills {
            break;
        }
        // A storm that cannot hit anything is not one.
        if number > 20 + 5 * kills as u64 {
            bail!("only {done} of {number} runs could be killed: they end too soon");
        }
        let mut draw = Draw::of(seed, number);
        if deck.is_empty() {
            deck = whole.to_vec();
            draw.shuffle(&mut deck);
        }
        let Some(command) = deck.pop() else { break };
        sessions.one(&commands::COMMANDS[command], number, draw)?;
        if number % 20 == 19 {
            println!("storm: {} kills", sessions.tally.kills());
        }
    }
    let mut tally = sessions.tally;
    let at_last = machine::at_rest()?;
    tally
        .left
        .extend(at_first.left(&at_last).into_iter().map(|what| format!("in the end: {what}")));
    Ok(tally)
}
