//! `pagelab compare`: what became faster, what slower, and what cannot be said.

mod hosts;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use clap::{Args, ValueHint};
use pagelab_bench::asked::share;
use pagelab_record::{Host, Record, RunHeader, journal::Damage};
use pagelab_report::{Asked, Comparison, Forms, Most, Outcome, Side, Statistic, Threshold};
use pagelab_sys::machine::environment;

use crate::{
    args::Run,
    exit::{Exit, Failure},
    history, output, part, published, session, trials,
};

/// Set runs beside each other: faster, slower, the same, or not to be said.
#[derive(Debug, Args)]
pub(super) struct Compare {
    /// Runs: directories, journals, tags, or LAST; A1,A2 is one side of several; published/NAME is
    /// a publication. One of two arms (run --ab) stands alone.
    #[arg(required = true, num_args = 1.., value_hint = ValueHint::AnyPath)]
    run: Vec<PathBuf>,
    /// What the others are set against: one of the runs, or with --by a value (default the first).
    #[arg(long, value_name = "RUN")]
    baseline: Option<String>,
    /// Set the cases of one run against each other along a parameter or a fact: page, kernel; of
    /// hosts (fleet merge), how each number lies over them and which lie apart.
    #[arg(long, value_name = "AXIS")]
    by: Option<String>,
    /// Treat differences below this share as equal, 3% or 0.03 (default 3%, or the noise floor of
    /// --floor where that is more).
    #[arg(long, value_name = "SHARE", value_parser = share)]
    delta: Option<f64>,
    /// What `selftest --aa` left on this host: how much two runs of the same thing differ.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    floor: Option<PathBuf>,
    /// What is compared of each series: p50, p99, p99.9, bandwidth, rate (default p50).
    #[arg(long, value_name = "METRIC", value_delimiter = ',')]
    metric: Vec<Statistic>,
    /// Compare although this fact differs, or all of identity or settings.
    #[arg(long, value_name = "FACT", value_delimiter = ',')]
    allow: Vec<String>,
    /// Exit with 1 where a metric is worse by more than this, for example p50:3%; of paths, where
    /// they are longer by more, for example instructions:20; of programs that explain watched,
    /// where they take more page faults by more, for example faults:1%.
    #[arg(long, value_name = "METRIC:SHARE", value_delimiter = ',', value_parser = threshold)]
    fail_on: Vec<Threshold>,
    /// Exit as `git bisect run` wants it: 0 good, 1 bad, 125 cannot be told.
    #[arg(long)]
    bisect: bool,
    /// How to print it.
    #[arg(long, value_parser = FORMATS, default_value = FORMATS[0])]
    format: String,
    /// Width of lkml.
    #[arg(long, value_name = "N", default_value_t = 72)]
    #[arg(value_parser = clap::value_parser!(u16).range(60..=400))]
    columns: u16,
    /// Write to a file that does not exist yet, instead of stdout.
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    file: Option<PathBuf>,
}

const FORMATS: [&str; 7] = ["terminal", "markdown", "lkml", "json", "csv", "html", "folded"];

fn threshold(text: &str) -> Result<Threshold, String> {
    let (metric, worse) = text.split_once(':').ok_or_else(|| {
        format!("`{text}` is no threshold: write a metric and how much worse, as in p50:3%")
    })?;
    match part::views().threshold(metric) {
        Some((name, Most::Number)) => {
            let most = worse.parse::<u64>().ok().filter(|most| *most <= 1 << 40);
            let why = || format!("`{worse}` is no number of {name}: write {name}:20");
            most.map(|most| Threshold::Counts(name, most as f64)).ok_or_else(why)
        }
        Some((name, Most::Share)) => Ok(Threshold::Counts(name, share(worse)?)),
        None => Ok(Threshold::Share(metric.parse()?, share(worse)?)),
    }
}

/// One of the runs that were named, read.
struct Opened {
    name: String,
    header: RunHeader,
    records: Vec<Record>,
    damage: Option<Damage>,
}

impl Opened {
    /// One side: a run, or several of them with commas between, as of several boots.
    fn side_of(path: &Path) -> Result<Self, Failure> {
        let parts = parts(path);
        let mut all = parts.iter().map(|part| Self::read(part)).collect::<Result<Vec<_>, _>>()?;
        let mut whole = all.remove(0);
        for more in all {
            let [here, there] = [&whole, &more].map(|run| run.header.pagelab.clone());
            if here != there {
                return Err(usage!(
                    "{}: its runs are of pagelab {here} and {there}; one side is of one version",
                    path.display()
                ));
            }
            whole.name = format!("{}+{}", whole.name, more.name);
            whole.records.extend(more.records);
            whole.damage = whole.damage.or(more.damage);
        }
        Ok(whole)
    }

    /// A run, or a publication: those of this program go by `published/NAME`.
    fn read(path: &Path) -> Result<Self, Failure> {
        let text = path.to_string_lossy();
        let text = text.trim_end_matches('/');
        let publication = if path.join("records.jsonl").is_file() {
            Some(published::folder(path)?.records().to_vec())
        } else {
            match text.strip_prefix("published/") {
                Some(name) if !path.exists() => Some(published::published(name)?),
                _ => None,
            }
        };
        if let Some(records) = publication {
            let header = RunHeader { run: text.to_owned(), ..RunHeader::default() };
            return Ok(Self { name: text.to_owned(), header, records, damage: None });
        }
        let contents = session::read(path)?;
        let (header, records, damage) = (contents.header, contents.records, contents.damage);
        let name = if header.run.is_empty() { text.to_owned() } else { header.run.clone() };
        Ok(Self { name, header, records, damage })
    }

    fn side(&self) -> Side<'_> {
        let Self { name, header, records, damage } = self;
        Side { name, header, records, damage: damage.as_ref() }
    }
}

impl Run for Compare {
    /// Compares, prints, and says by the exit code what it came to.
    fn run(self) -> Result<Exit, Failure> {
        let bisect = self.bisect;
        match self.compare() {
            // For `git bisect run` a run that cannot be read tells nothing of its commit.
            Err(failure) if bisect => {
                output::warn(&format!("error: {}", failure.sentence()));
                Ok(Exit::Skip)
            }
            came => came,
        }
    }
}

impl Compare {
    fn compare(mut self) -> Result<Exit, Failure> {
        if self.by.as_deref() == Some("host") && self.baseline.is_none() {
            return self.hosts();
        }
        self.choose_base()?;
        let out = output::Named::of(self.file.as_ref())?;
        let opened: Vec<Opened> =
            self.run.iter().map(|path| Opened::side_of(path)).collect::<Result<_, _>>()?;
        let opened = told_apart(opened, &self.run);
        refuse_twice(&self.run)?;
        if !self.allow.is_empty() {
            let mut facts = BTreeSet::new();
            let records = opened.iter().flat_map(|run| &run.records);
            records.for_each(|record| keys_of(record, &mut facts));
            known_facts(&self.allow, facts)?;
        }
        let sides: Vec<Side<'_>> = opened.iter().map(Opened::side).collect();
        let asked = self.asked()?;
        let comparison = match &self.by {
            Some(axis) => Comparison::along(&sides, axis, self.baseline.as_deref(), &asked)?,
            // A run of two arms is a comparison by itself.
            None if sides.len() == 1 => Comparison::of_arms(&sides[0], &asked)?,
            None => Comparison::of(&sides, &asked).ok_or_else(|| usage!("no run to compare"))?,
        };
        let drawn = match self.format.as_str() {
            "lkml" => comparison.lkml(self.columns.into()),
            "folded" => comparison.folded(),
            form => comparison.form(form, output::style()),
        };
        output::put(out, &drawn)?;
        Ok(if self.bisect {
            bisected(&comparison, &self.fail_on)
        } else {
            exit_of(comparison.outcome(&self.fail_on))
        })
    }

    /// How it is to be compared.
    fn asked(&self) -> Result<Asked, Failure> {
        // A threshold is on what is compared.
        let mut statistics = self.metric.clone();
        for threshold in &self.fail_on {
            if let Threshold::Share(statistic, _) = threshold
                && !statistics.contains(statistic)
            {
                statistics.push(*statistic);
            }
        }
        let floor = self.floor.as_deref().map(floor).transpose()?;
        let (delta, allow) = (self.delta, self.allow.clone());
        Ok(Asked { delta, floor, statistics, allow, ..Asked::of(part::views()) })
    }

    /// Puts the run that the others are set against first.
    fn choose_base(&mut self) -> Result<(), Failure> {
        let (Some(base), None) = (&self.baseline, &self.by) else { return Ok(()) };
        let is_it = |path: &PathBuf| {
            path == Path::new(base) || path.file_name().is_some_and(|name| name == base.as_str())
        };
        let Some(at) = self.run.iter().position(is_it) else {
            let runs: Vec<String> = self.run.iter().map(|run| run.display().to_string()).collect();
            let runs = runs.join(", ");
            return Err(usage!("--baseline {base} is none of {runs}"));
        };
        self.run[..=at].rotate_right(1);
        Ok(())
    }
}

/// The runs that a side names; a name that is there as it stands is one.
fn parts(path: &Path) -> Vec<PathBuf> {
    match path.to_str() {
        Some(text) if text.contains(',') && !path.exists() => {
            text.split(',').map(PathBuf::from).collect()
        }
        _ => vec![path.to_owned()],
    }
}

/// One run that is named twice is no second measurement: within a side it would count twice, and
/// against itself it differs in nothing, which is said.
fn refuse_twice(sides: &[PathBuf]) -> Result<(), Failure> {
    let mut seen: Vec<(usize, PathBuf)> = Vec::new();
    for (nth, side) in sides.iter().enumerate() {
        for part in parts(side) {
            // What is no path is a tag or a publication.
            let lies = history::find(&part).and_then(|path| {
                path.canonicalize().map_err(|error| Failure::usage(anyhow::Error::from(error)))
            });
            let lies = lies.unwrap_or_else(|_| part.clone());
            let known = seen.iter().find(|(_, other)| *other == lies).map(|(of, _)| *of);
            if known == Some(nth) {
                return Err(usage!(
                    "{}: {} is named twice in one side, and would count twice",
                    side.display(),
                    part.display()
                ));
            }
            if known.is_some() {
                output::warn(&format!(
                    "{} is compared with itself: nothing in it can differ",
                    part.display()
                ));
            }
            seen.push((nth, lies));
        }
    }
    Ok(())
}

/// The facts that a record names.
fn keys_of(record: &Record, to: &mut BTreeSet<String>) {
    let Host { identity, settings, volatile } = &record.host;
    for key in [identity, settings, volatile].into_iter().flat_map(|facts| facts.keys()) {
        if !to.contains(key) {
            to.insert(key.clone());
        }
    }
}

/// What may differ must be something that is known: by these runs, or by this program.
fn known_facts(allowed: &[String], mut known: BTreeSet<String>) -> Result<(), Failure> {
    const OTHERS: [&str; 6] = ["identity", "nature", "pagelab", "planted", "settings", "volatile"];
    known.extend(OTHERS.iter().map(ToString::to_string));
    known.extend(environment::facts().iter().map(|fact| fact.key.to_owned()));
    let is_known = |name: &&String| {
        known.contains(name.as_str()) || name.split('.').next().is_some_and(|n| known.contains(n))
    };
    match allowed.iter().find(|name| !is_known(name)) {
        Some(name) => {
            let known: Vec<String> = known.into_iter().collect();
            let known = known.join(", ");
            Err(usage!("--allow {name} is no fact; there are {known}"))
        }
        None => Ok(()),
    }
}

/// The page of some runs, each compared with the first.
pub(super) fn page(paths: &[PathBuf]) -> Result<String, Failure> {
    let opened: Vec<Opened> =
        paths.iter().map(|path| Opened::side_of(path)).collect::<Result<_, _>>()?;
    let opened = told_apart(opened, paths);
    let sides: Vec<Side<'_>> = opened.iter().map(Opened::side).collect();
    let comparison = Comparison::of(&sides, &Asked::of(part::views()));
    Ok(comparison.ok_or_else(|| usage!("no run to compare"))?.html())
}

/// Names that tell the runs apart: their own, or where two have the same, what was typed.
fn told_apart(mut opened: Vec<Opened>, paths: &[PathBuf]) -> Vec<Opened> {
    let names: Vec<String> = opened.iter().map(|run| run.name.clone()).collect();
    for (run, path) in opened.iter_mut().zip(paths) {
        if names.iter().filter(|name| **name == run.name).count() > 1 {
            run.name = path.display().to_string();
        }
    }
    opened
}

/// How much the two sides of a `selftest --aa` differ: the middle of its trials, or of a run of two
/// arms that is named by itself.
fn floor(directory: &Path) -> Result<f64, Failure> {
    let known = trials::read(directory)?.floor();
    known.ok_or_else(|| {
        usage!(
            "--floor {}: no cell of a trial has four processes or more; run: pagelab selftest --aa",
            directory.display()
        )
    })
}

fn exit_of(outcome: Outcome) -> Exit {
    match outcome {
        Outcome::Worse => Exit::CaseFailed,
        Outcome::Invalid => Exit::Invalid,
        Outcome::NotComparable => Exit::NotComparable,
        Outcome::AllSkipped => Exit::AllSkipped,
        Outcome::Good => Exit::Good,
    }
}

/// Bad is what is worse by a threshold, or where there is none, what is slower at all.
fn bisected(comparison: &Comparison<'_>, thresholds: &[Threshold]) -> Exit {
    let slower = thresholds.is_empty() && comparison.is_slower();
    match comparison.outcome(thresholds) {
        Outcome::Worse => Exit::CaseFailed,
        _ if slower => Exit::CaseFailed,
        Outcome::Good if !comparison.is_undecided() => Exit::Good,
        _ => Exit::Skip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_names_a_metric_and_how_much_worse() {
        part::set(pagelab_parts::PARTS);
        let Threshold::Share(statistic, worse) = threshold("p99.9:5%").unwrap() else { panic!() };
        assert_eq!((statistic.name().as_str(), worse), ("p99.9", 0.05));
        assert_eq!(threshold("instructions:20"), Ok(Threshold::Counts("instructions", 20.0)));
        assert!(threshold("instructions:-1").is_err() && threshold("instructions:3%").is_err());
        for wrong in ["p50", "p50:", "mean:3%", "p100:3%", "p0:3%", "p50:3%:4%"] {
            assert!(threshold(wrong).is_err(), "{wrong}");
        }
    }
}
