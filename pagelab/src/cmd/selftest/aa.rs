//! `pagelab selftest --aa`: the same thing twice, to see what this host calls different.
//!
//! The one idea: a trial is a run of two arms that are equal, measured and judged as any
//! `run --ab` is; so whatever it calls different is a false alarm of what everybody else is told,
//! too. Each trial is a run by itself, that can be compared and resumed, and leaves one line in a
//! file when it has come to its end: a self-test that was stopped goes on behind the last one.
//!
//! `--apart` measures whole cases in turn, as two runs would be that follow each other: what
//! differs then is the floor of such runs.

use anyhow::Context;
use pagelab_bench::{
    asked::{Forks, Seconds},
    plan::{self, Overrides, Plan},
    runner::Runner,
    suite::Suite,
};
use pagelab_record::{
    Ab, Arm, Record,
    ab::{Change, EQUAL},
};
use pagelab_report::{Asked, Comparison, Forms, Side, TwicePair};
use pagelab_sys::time::monotonic_raw_ns;

use super::{
    super::{ab, run::load},
    Selftest,
};
use crate::{
    exit::{Exit, Failure},
    output, part, resume,
    session::{self, Place},
    settings,
    trials::Kept,
};

/// Blocks of each cell where nobody says: of a quiet host they decide most.
const FORKS: Forks = Forks::of(32);

/// Processes of each case where whole cases take turns.
const FORKS_APART: Forks = Forks::of(8);

/// Runs a suite twice, as often as asked, and prints what comparing comes to.
pub(super) fn run(asked: &Selftest) -> Result<Exit, Failure> {
    let trials = asked.trials.unwrap_or(1);
    let suite = load(&asked.suite)?;
    let over = asked.method.overrides();
    let forks = if asked.apart { FORKS_APART } else { FORKS };
    // How long a process is, the suite says: time buys more of them.
    let budget = over.budget.filter(|_| asked.apart);
    let over = Overrides { forks: over.forks.or(Some(forks)), budget, ..over };
    let plan = plan::of_suite(&suite, asked.conduct.clock.choice(), over)?;
    let budget = asked.method.overrides().budget.map(|all| all.part(1.0 / f64::from(trials)));
    let place = asked.output.place();
    let mut kept = Kept::open(&place.directory, trials)?;
    let runner = settings::runner(&place.run, &plan.cases, asked.conduct.wait.patience())?;
    let bench = Bench { asked, suite, plan, runner, budget };
    let mut exit = Exit::Good;
    let mut last = String::new();
    for number in kept.done + 1..=trials {
        let name = format!("trial-{number:04}");
        let place = Place { directory: place.directory.join(&name), run: name };
        let started = monotonic_raw_ns();
        let trial = if asked.apart { bench.apart(&place)? } else { bench.in_blocks(&place)? };
        exit = exit.min(trial.end).min(session::verdict(&trial.records));
        if trial.end == Exit::Interrupted {
            break;
        }
        let seconds = (monotonic_raw_ns() - started) as f64 / 1e9;
        let told = trial.told(&place.run, seconds, &mut last)?;
        kept.keep(told).context(place.directory.display().to_string()).map_err(Failure::host)?;
        if !asked.conduct.quiet.quiet && trials > 1 {
            output::warn(&format!("[{number}/{trials}] {}", kept.twice.last_in_words()));
        }
    }
    drop(bench);
    output::drawn(&if asked.format.is_json() {
        kept.twice.json()
    } else {
        let cells = if trials == 1 { last + "\n" } else { String::new() };
        cells + &kept.twice.terminal(output::style())
    })?;
    output::warn(&format!("\nall runs: {}", place.directory.display()));
    Ok(exit)
}

/// A trial that was measured.
struct Trial {
    runs: Vec<session::Run>,
    records: Vec<Record>,
    end: Exit,
}

impl Trial {
    /// What comparing comes to: for the list, and of the last one as a table.
    fn told(&self, name: &str, seconds: f64, last: &mut String) -> Result<TwicePair, Failure> {
        let mut tell = |found: &Comparison<'_>| {
            *last = found.terminal(output::style());
            TwicePair::of(name, seconds, found)
        };
        let asked = Asked::of(part::views());
        if let [run] = &self.runs[..] {
            let told = ab::compared(&run.header, run.records.clone(), &asked, tell);
            return told.map_err(Failure::from);
        }
        let sides: Vec<Side<'_>> = self.runs.iter().map(side).collect();
        let found = Comparison::of(&sides, &asked);
        let found = found.ok_or_else(|| usage!("no run to compare"))?;
        Ok(tell(&found))
    }
}

fn side(run: &session::Run) -> Side<'_> {
    let (header, records) = (&run.header, &run.records[..]);
    Side { name: &header.run, header, records, damage: None }
}

/// What measures trials.
struct Bench<'a> {
    asked: &'a Selftest,
    suite: Suite,
    plan: Plan,
    runner: Runner,
    /// Of one trial.
    budget: Option<Seconds>,
}

impl Bench<'_> {
    fn quiet(&self) -> bool {
        // Of many trials a line each is enough.
        self.asked.conduct.quiet.quiet || self.asked.trials.is_some_and(|trials| trials > 1)
    }

    /// A run of two arms that change nothing; one that was begun goes on.
    fn in_blocks(&self, place: &Place) -> Result<Trial, Failure> {
        let arms = EQUAL.map(|name| Arm { name: name.to_owned(), change: Change::Nothing });
        let (plan, arms) = ab::plan(self.plan.clone(), arms)?;
        let mut run = if place.directory.join(pagelab_record::journal::FILE).is_file() {
            resume::opened(&place.directory, self.asked.conduct.wait.patience())?
        } else {
            let mut header =
                session::header(&place.run, &self.suite.name, &self.suite.published, &plan);
            let ab: Ab = ab::asked(arms, &plan, self.budget.map(Seconds::ns), None);
            header.asked = Some(pagelab_record::Asked::Ab(ab));
            session::Run::start(place, header)?
        };
        let asked = Asked::of(part::views());
        let end = ab::measure(&self.runner, &mut run, &plan, &asked, self.quiet())?;
        let records = crate::latest::latest(run.records.clone());
        Ok(Trial { runs: vec![run], records, end })
    }

    /// Two runs, whose cases take turns: A B, then B A, so that neither is always the first.
    fn apart(&self, place: &Place) -> Result<Trial, Failure> {
        let start = |side: &str| {
            let place = Place {
                run: format!("{}-{side}", place.run),
                directory: place.directory.join(side),
            };
            let header =
                session::header(&place.run, &self.suite.name, &self.suite.published, &self.plan);
            session::Run::start(&place, header)
        };
        let mut sides = [start("a")?, start("b")?];
        let cases = self.plan.cases.iter().flat_map(|planned| [planned.clone(), planned.clone()]);
        let twice = Plan { cases: cases.collect(), left_out: Vec::new() };
        let mut count = 0;
        let end = session::measure(&self.runner, &twice, self.quiet(), &mut |record| {
            let side = [0, 1, 1, 0][count % 4];
            count += 1;
            sides[side].keep(record)
        })?;
        let records = sides.iter().flat_map(|run| run.records.clone()).collect();
        Ok(Trial { runs: sides.into(), records, end })
    }
}
