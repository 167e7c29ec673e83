//! `cargo xtask flake`: whether the tests hold where a machine is not quiet.
//!
//! The one idea: whatever disturbs is this program again, with its stdin a pipe of ours. It ends
//! when the pipe does, so nothing goes on after us, however we end. Nothing that failed is tried
//! again: a test that failed once in a condition does not hold in it.

use std::{
    env, fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, ArgAction, ArgMatches, builder::PossibleValuesParser, value_parser};

use crate::{
    shell,
    test::{
        binaries::{self, Binary},
        log,
    },
};

/// What each binary said, where it failed.
const LOGS: &str = "target/flake";
/// The cache of the tests: without QEMU and kernels, since to boot a machine takes a minute of a
/// processor and is the lane's.
const EMPTY: &str = "target/flake/no-machines";
/// The program that runs beside.
const PAGELAB: &str = "target/debug/pagelab";
/// How often the page cache is dropped.
const EVERY: Duration = Duration::from_secs(3);

/// A row of the table of conditions.
struct Condition {
    name: &'static str,
    /// What disturbs, by the names of [`DISTURBERS`].
    disturbers: &'static [&'static str],
}

const CONDITIONS: &[Condition] = &[
    Condition { name: "quiet", disturbers: &[] },
    Condition { name: "busy", disturbers: &["loop", "loop"] },
    Condition { name: "beside", disturbers: &["pagelab"] },
    Condition { name: "dropped", disturbers: &["drop-caches"] },
];

/// Something that disturbs until the flag is up.
type Disturb = fn(&AtomicBool) -> Result<()>;

const DISTURBERS: &[(&str, Disturb)] =
    &[("loop", spin), ("pagelab", beside), ("drop-caches", drop_caches)];

/// What the task takes.
pub(crate) fn arguments(command: clap::Command) -> clap::Command {
    let conditions = CONDITIONS.iter().map(|condition| condition.name);
    let disturbers = DISTURBERS.iter().map(|(name, _)| *name);
    command
        .arg(
            Arg::new("times")
                .long("times")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..))
                .default_value("5")
                .help("How often in each condition"),
        )
        .arg(
            Arg::new("condition")
                .long("condition")
                .value_name("NAME")
                .value_delimiter(',')
                .action(ArgAction::Append)
                .value_parser(PossibleValuesParser::new(conditions))
                .help("In these conditions only"),
        )
        .arg(
            Arg::new("disturb")
                .long("disturb")
                .hide(true)
                .value_parser(PossibleValuesParser::new(disturbers)),
        )
}

/// The task.
pub(crate) fn flake(matches: &ArgMatches) -> Result<()> {
    if let Some(name) = matches.get_one::<String>("disturb") {
        return disturb(name);
    }
    let times = *matches.get_one::<u32>("times").context("--times has a default")?;
    let asked: Vec<_> = matches.get_many::<String>("condition").into_iter().flatten().collect();
    let conditions: Vec<_> = CONDITIONS
        .iter()
        .filter(|condition| asked.is_empty() || asked.iter().any(|name| *name == condition.name))
        .collect();
    let binaries = binaries::build()?;
    let mut rows = Vec::new();
    for condition in conditions {
        let mut row = Row { condition: condition.name, ..Row::default() };
        let disturbers = condition.disturbers.iter().map(|name| Disturber::start(name));
        let mut disturbers = disturbers.collect::<Result<Vec<_>>>()?;
        for time in 1..=times {
            let failed = round(condition.name, time, &binaries)?;
            row.good += u32::from(failed.is_empty());
            row.failed.extend(failed);
            for disturber in &mut disturbers {
                disturber.is_alive()?;
            }
        }
        rows.push(row);
    }
    let (table, good) = table(&rows, times);
    println!("\n{table}");
    if good { Ok(()) } else { bail!("some tests do not hold") }
}

/// Every binary once; what failed.
fn round(condition: &str, time: u32, binaries: &[Binary]) -> Result<Vec<String>> {
    let folder = Path::new(LOGS).join(format!("{condition}-{time}"));
    let no_machines = env::current_dir().context("reading the working directory")?.join(EMPTY);
    fs::create_dir_all(&no_machines).with_context(|| no_machines.display().to_string())?;
    let mut failed = Vec::new();
    let (done, took) = shell::timed(|| -> Result<()> {
        for binary in binaries {
            let log = log(&folder, &binary.name);
            let ran = binary.run(&log, Some(&no_machines))?;
            if ran.failed.is_empty() {
                fs::remove_file(&log).with_context(|| log.display().to_string())?;
                continue;
            }
            println!("\n[flake] {condition} {time}: {}\n{}", binary.name, ran.failure);
            let names = ran.failed.join(", ");
            failed.push(format!("{}: {names} ({})", binary.name, log.display()));
        }
        Ok(())
    });
    done?;
    let word = if failed.is_empty() { "good" } else { "FAILED" };
    eprintln!("[flake] {condition} {time}: {word}, {:.0} s", took.as_secs_f64());
    Ok(failed)
}

/// What came of a condition.
#[derive(Debug, Default)]
struct Row {
    condition: &'static str,
    good: u32,
    failed: Vec<String>,
}

/// The table, and whether everything is good.
fn table(rows: &[Row], times: u32) -> (String, bool) {
    let mut text = String::new();
    for row in rows {
        text.push_str(&format!("{:<10}{:>3} of {times}\n", row.condition, row.good));
        for failed in &row.failed {
            text.push_str(&format!("    {failed}\n"));
        }
    }
    let good: u32 = rows.iter().map(|row| row.good).sum();
    let all = times * u32::try_from(rows.len()).unwrap_or(u32::MAX);
    text.push_str(&format!("{:<10}{good:>3} of {all}\n", "all"));
    (text, good == all)
}

/// A process that disturbs while this is alive.
struct Disturber {
    name: &'static str,
    child: Child,
}

impl Disturber {
    fn start(name: &'static str) -> Result<Self> {
        // Not by its path: the build of the tests may have put another file there.
        let child = Command::new("/proc/self/exe")
            .args(["flake", "--disturb", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("starting what disturbs: {name}"))?;
        Ok(Self { name, child })
    }

    /// Fails when it has ended: then nothing was disturbed.
    fn is_alive(&mut self) -> Result<()> {
        let ended = self.child.try_wait().context("asking for what disturbs")?;
        ensure!(ended.is_none(), "what disturbs has ended: {}, {ended:?}", self.name);
        Ok(())
    }
}

impl Drop for Disturber {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// This program as what disturbs, until its stdin ends.
fn disturb(name: &str) -> Result<()> {
    let over = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&over);
    thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        flag.store(true, Ordering::Relaxed);
    });
    let row = DISTURBERS.iter().find(|(known, _)| *known == name);
    let (_, disturb) = row.context("clap knows only these names")?;
    disturb(&over)
}

#[expect(clippy::unnecessary_wraps, reason = "one of a table")]
fn spin(over: &AtomicBool) -> Result<()> {
    while !over.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
    Ok(())
}

/// Another pagelab that takes the machine's settings again and again; it waits for its turn.
fn beside(over: &AtomicBool) -> Result<()> {
    let pagelab = fs::canonicalize(PAGELAB).context(PAGELAB)?;
    let folder = PathBuf::from(LOGS).join("beside");
    while !over.load(Ordering::Relaxed) {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        // One case whose setting is changed, and nothing else of a suite.
        let words = "run fault/throughput --page 64k,hugetlb-2m --size 64m --rounds 20 --forks 1 \
                     --budget 2 --wait --quiet --output run";
        let mut command = Command::new(&pagelab);
        command.args(words.split_whitespace()).current_dir(&folder).stderr(Stdio::null());
        command.stdout(Stdio::null()).status().context("another pagelab")?;
    }
    let _ = fs::remove_dir_all(&folder);
    Ok(())
}

fn drop_caches(over: &AtomicBool) -> Result<()> {
    while !over.load(Ordering::Relaxed) {
        fs::write("/proc/sys/vm/drop_caches", "1").context("dropping the page cache takes root")?;
        thread::sleep(EVERY);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_counts_rounds_and_names_what_failed() {
        let row = |condition, good, failed: &[&str]| Row {
            condition,
            good,
            failed: failed.iter().map(|&text| text.to_owned()).collect(),
        };
        let (text, good) = table(&[row("quiet", 5, &[]), row("busy", 4, &["e2e: a::b (log)"])], 5);
        assert!(
            !good && text.contains("all         9 of 10") && text.contains("    e2e: a::b (log)")
        );
        assert!(table(&[row("quiet", 5, &[])], 5).1);
    }

    #[test]
    fn every_condition_names_disturbers_that_exist() {
        let names = CONDITIONS.iter().flat_map(|condition| condition.disturbers);
        for name in names {
            assert!(DISTURBERS.iter().any(|(known, _)| known == name), "{name}");
        }
    }
}
