//! How often `pagelab advise` is right: its answers against a later, longer and independent run.
//!
//! The one idea: for each cell of a grid of sizes, threads and policies, `advise` is asked first.
//! Then every strategy is measured over *all* of the memory by `pagelab run`, in rounds that go
//! forwards and backwards in turn, and the strategy that was named is held against the best. It is
//! right when it is at most 5 % slower, or when in some round it was not slower at all: then no
//! run tells the two apart.
//!
//! Cells are independent. What is done is kept in a file, so that the grid can be gone through in
//! pieces on a machine that is needed for other things, too.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches, value_parser};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::shell::{line, timed};

const SIZES: [&str; 5] = ["64m", "256m", "512m", "1g", "2g"];
const THREADS: [&str; 2] = ["1", "2"];
const POLICIES: [&str; 5] = ["any", "keep", "base", "transparent", "locked"];
/// Coprime to the number of cells: the first ones of the order are of all kinds.
const STEP: usize = 7;
/// So much slower than the best is as good.
const AS_GOOD: f64 = 1.05;
/// Strategies that were slower than this by the advice are measured in the first round only.
const FAR: f64 = 1.6;

/// Adds what the task takes.
pub(crate) fn arguments(command: clap::Command) -> clap::Command {
    command
        .arg(
            Arg::new("dir")
                .long("dir")
                .default_value("target/advise-score")
                .help("Where runs and scores are kept; what is there is not done again"),
        )
        .arg(Arg::new("binary").long("binary").default_value("target/release/pagelab"))
        .arg(
            Arg::new("cells")
                .long("cells")
                .value_parser(value_parser!(usize))
                .default_value("50")
                .help("Go through so many cells of the grid"),
        )
        .arg(
            Arg::new("seconds")
                .long("seconds")
                .value_parser(value_parser!(f64))
                .default_value("100000")
                .help("Begin no cell after so many seconds"),
        )
        .arg(
            Arg::new("rounds")
                .long("rounds")
                .value_parser(value_parser!(usize))
                .default_value("6")
                .help("Rounds of the later measurement"),
        )
        .arg(Arg::new("fifo").long("fifo").action(clap::ArgAction::SetTrue))
}

/// One cell of the grid.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    size: &'static str,
    threads: &'static str,
    policy: &'static str,
}

/// What came of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Score {
    cell: String,
    named: String,
    best: String,
    /// Time of the named one over that of the best, median over rounds.
    ratio: f64,
    /// The same in the round that was kindest to it.
    lowest: f64,
    right: bool,
    advise_seconds: f64,
}

/// Goes through the grid, prints each score, and sums up.
///
/// # Errors
/// When a run cannot be made or read.
pub(crate) fn advise_score(matches: &ArgMatches) -> Result<()> {
    let text = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let dir = PathBuf::from(text("dir"));
    let binary = fs::canonicalize(text("binary"))
        .with_context(|| format!("{}: cargo build --release", text("binary")))?;
    fs::create_dir_all(&dir)?;
    let file = dir.join("scores.jsonl");
    let cells = matches.get_one("cells").copied().unwrap_or(50_usize);
    let budget = matches.get_one("seconds").copied().unwrap_or(0.0_f64);
    let rounds = matches.get_one("rounds").copied().unwrap_or(6_usize);
    let fifo = matches.get_flag("fifo");
    let mut scores = known(&file)?;
    let mut spent = 0.0;
    for cell in grid().into_iter().take(cells) {
        if scores.iter().any(|score| score.cell == cell.name()) {
            continue;
        }
        if spent >= budget {
            break;
        }
        let (score, took) = timed(|| cell.score(&binary, &dir, rounds, fifo));
        spent += took.as_secs_f64();
        let score = score.with_context(|| cell.name())?;
        println!("{}", score.line());
        let mut all = fs::read_to_string(&file).unwrap_or_default();
        all.push_str(&format!("{}\n", serde_json::to_string(&score)?));
        fs::write(&file, all)?;
        scores.push(score);
    }
    let right = scores.iter().filter(|score| score.right).count();
    println!("\n{right} of {} right; the grid has {} cells", scores.len(), grid().len());
    for score in scores.iter().filter(|score| !score.right) {
        println!("wrong: {}", score.line());
    }
    Ok(())
}

/// Every cell, in an order whose beginnings are of all kinds.
fn grid() -> Vec<Cell> {
    let mut cells = Vec::new();
    for size in SIZES {
        for threads in THREADS {
            for policy in POLICIES {
                cells.push(Cell { size, threads, policy });
            }
        }
    }
    (0..cells.len()).map(|index| cells[index * STEP % cells.len()].clone()).collect()
}

fn known(file: &Path) -> Result<Vec<Score>> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

impl Score {
    fn line(&self) -> String {
        format!(
            "{:5} {:28} named {:34} best {:34} {:.3} (kindest {:.3}) {:.1} s",
            if self.right { "right" } else { "WRONG" },
            self.cell,
            self.named,
            self.best,
            self.ratio,
            self.lowest,
            self.advise_seconds
        )
    }
}

impl Cell {
    fn name(&self) -> String {
        format!("{}-{}-{}", self.size, self.threads, self.policy)
    }

    /// Asks, measures again, and compares.
    fn score(&self, binary: &Path, dir: &Path, rounds: usize, fifo: bool) -> Result<Score> {
        let place = dir.join(self.name());
        // What a cell that was not finished left behind.
        let _ = fs::remove_dir_all(&place);
        let mut ask = Command::new(binary);
        ask.args(["advise", "--format", "json", "--size", self.size, "--threads", self.threads]);
        ask.args(["--policy", self.policy, "-o"]).arg(place.join("advice"));
        if fifo {
            ask.arg("--fifo");
        }
        let (advice, took) = timed(|| quiet(&mut ask));
        let advice: Value = serde_json::from_str(&advice?)?;
        // Under `keep` nothing else was measured; elsewhere root may set what is needed.
        let advise_seconds = took.as_secs_f64();
        let Some(named) = advice["answer"]["named"].as_str().map(str::to_owned) else {
            // No answer is a wrong one.
            let (named, best, right) = ("nothing".to_owned(), String::new(), false);
            let ratio = f64::MAX;
            return Ok(Score {
                cell: self.name(),
                named,
                best,
                ratio,
                lowest: ratio,
                right,
                advise_seconds,
            });
        };
        let empty = Vec::new();
        let strategies = advice["strategies"].as_array().unwrap_or(&empty);
        let mut times: BTreeMap<String, BTreeMap<usize, f64>> = BTreeMap::new();
        for round in 0..rounds.max(1) {
            let is_near = |strategy: &&Value| {
                let ratio = strategy["ratio_to_fastest"]["value"].as_f64();
                round == 0 || ratio.is_some_and(|ratio| ratio <= FAR)
            };
            let mut wanted: Vec<&Value> = strategies.iter().filter(is_near).collect();
            if round % 2 == 1 {
                wanted.reverse();
            }
            let suite = place.join(format!("round-{round}.toml"));
            fs::write(&suite, self.suite(&wanted, fifo))?;
            let run = place.join(format!("round-{round}"));
            let mut measure = Command::new(binary);
            measure.args(["run", "-q", "--suite"]).arg(&suite).arg("-o").arg(&run);
            quiet(&mut measure)?;
            for (strategy, time) in of_run(&run, strategies)? {
                times.entry(strategy).or_default().insert(round, time);
            }
        }
        let mine = times.get(&named).with_context(|| format!("{named} was not measured again"))?;
        let best = times
            .iter()
            .min_by(|a, b| median(a.1.values()).total_cmp(&median(b.1.values())))
            .context("nothing was measured again")?;
        let paired: Vec<f64> =
            mine.iter().filter_map(|(round, time)| Some(time / best.1.get(round)?)).collect();
        let ratio = median(mine.values()) / median(best.1.values());
        let lowest = paired.iter().copied().fold(ratio, f64::min);
        Ok(Score {
            cell: self.name(),
            right: ratio <= AS_GOOD || lowest <= 1.0,
            best: best.0.clone(),
            named,
            ratio,
            lowest,
            advise_seconds,
        })
    }

    /// All of the memory by each of these strategies, one process a strategy.
    fn suite(&self, strategies: &[&Value], fifo: bool) -> String {
        let mut text = "name = \"judge\"\nsummary = \"all of the memory\"\nforks = 1\n\
                        budget = 0.001\nrepetitions-min = 2\n"
            .to_owned();
        for strategy in strategies {
            let word = |name: &str| strategy[name].as_str().unwrap_or_default().to_owned();
            text.push_str(&format!(
                "[[case]]\nworkload = \"fault/throughput\"\nsize = \"{}\"\npage = \"{}\"\n\
                 populate = \"{}\"\nthreads = \"{}\"\nfifo = \"{}\"\n",
                self.size,
                word("page"),
                word("populate"),
                strategy["threads"],
                if fifo { "on" } else { "off" },
            ));
        }
        text
    }
}

/// The median time of each strategy in a run: map, advise, populate, and touch where it faults.
fn of_run(run: &Path, strategies: &[Value]) -> Result<Vec<(String, f64)>> {
    let text = fs::read_to_string(run.join("journal.jsonl"))?;
    let mut found = Vec::new();
    for line in text.lines().skip(1) {
        let record: Value = serde_json::from_str(line)?;
        let measured = &record["outcome"]["measured"];
        let empty = Vec::new();
        let claims = measured["witness"].as_array().unwrap_or(&empty);
        if claims.is_empty() || claims.iter().any(|claim| claim["holds"] != true) {
            continue;
        }
        let case = &record["case"];
        let is_it = |strategy: &&Value| {
            strategy["page"] == case["page"]
                && strategy["populate"] == case["populate"]
                && Some(strategy["threads"].to_string().as_str()) == case["threads"].as_str()
        };
        let Some(strategy) = strategies.iter().find(is_it) else { continue };
        let by_touch =
            matches!(case["populate"].as_str(), Some("touch" | "mlock-onfault" | "populate-read"));
        let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
        for series in measured["series"].as_array().unwrap_or(&empty) {
            let counts = match series["name"].as_str() {
                Some("map" | "advise" | "populate") => true,
                Some("touch") => by_touch,
                _ => false,
            };
            if counts && series["clock"] != "cpu" {
                let repetition = series["repetition"].as_u64().unwrap_or_default();
                let values = series["values"].as_array().unwrap_or(&empty);
                let sum: f64 = values.iter().filter_map(Value::as_f64).sum();
                *sums.entry(repetition).or_default() += sum;
            }
        }
        let name = strategy["strategy"].as_str().unwrap_or_default().to_owned();
        found.push((name, median(sums.values())));
    }
    Ok(found)
}

fn median<'a>(values: impl IntoIterator<Item = &'a f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().copied().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::INFINITY,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// Runs a command whose exit code tells of cases that were skipped or did not prove themselves.
fn quiet(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| line(command))?;
    match output.status.code() {
        Some(0 | 1 | 4 | 6) => Ok(String::from_utf8(output.stdout)?),
        _ => bail!(
            "{} ended with {}: {}",
            line(command),
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_holds_every_cell_once_and_begins_with_all_kinds() {
        let cells = grid();
        let mut sorted = cells.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!((cells.len(), sorted.len()), (50, 50));
        let of = |what: fn(&Cell) -> &'static str| {
            let mut all: Vec<&str> = cells[..10].iter().map(what).collect();
            all.sort_unstable();
            all.dedup();
            all.len()
        };
        assert_eq!((of(|c| c.policy), of(|c| c.threads)), (5, 2));
        assert!(of(|c| c.size) >= 5);
    }

    #[test]
    fn a_median_of_an_even_count_lies_between_the_middle_two() {
        assert!((median(&[4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < 1e-9);
        assert!(median(&[]).is_infinite());
    }
}
