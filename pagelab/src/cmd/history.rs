//! `pagelab ls`, `show` and `tag`: the runs of this place, what each is, and what it is called.

use std::{collections::BTreeSet, path::PathBuf};

use clap::Args;
use pagelab_record::{Asked, Outcome, Record, RunHeader};
use pagelab_report::Listing;
use serde_json::{Value, json};

use crate::{
    args::{Format, Run},
    exit::{Exit, Failure},
    history::{self, Known, RUNS},
    output,
};

/// List the runs, the newest last.
#[derive(Debug, Args)]
pub(super) struct Ls {
    /// Directories that hold runs [default: this one and pagelab-runs].
    folder: Vec<PathBuf>,
    #[command(flatten)]
    format: Format,
}

/// Say what a run is: when, where, what, and how much of it is done.
#[derive(Debug, Args)]
pub(super) struct Show {
    /// A run: its directory, a tag, or LAST.
    #[arg(default_value = history::LAST)]
    run: PathBuf,
    #[command(flatten)]
    format: Format,
}

/// Give a run names that every command takes for it.
#[derive(Debug, Args)]
pub(super) struct Tag {
    /// A run: its directory, a tag, or LAST.
    run: PathBuf,
    /// The names.
    #[arg(required = true, value_name = "TAG")]
    names: Vec<String>,
    /// Take the names away.
    #[arg(long)]
    remove: bool,
}

impl Run for Ls {
    fn run(self) -> Result<Exit, Failure> {
        let places = if self.folder.is_empty() { history::places() } else { self.folder.clone() };
        if let Some(wrong) = self.folder.iter().find(|folder| !folder.is_dir()) {
            return Err(usage!("{}: no such directory", wrong.display()));
        }
        let runs = history::runs(&places);
        let told: Vec<Told> = runs.into_iter().map(Told::of).collect::<Result<_, _>>()?;
        if self.format.is_json() {
            return output::json(
                &json!({ "runs": told.iter().map(Told::json).collect::<Vec<_>>() }),
            );
        }
        if told.is_empty() {
            output::warn(&format!("there is no run here or in {RUNS}: pagelab run"));
        }
        let rows: Vec<[String; 5]> = told.iter().map(Told::row).collect();
        output::result(&Listing::default().rows(&rows))?;
        Ok(Exit::Good)
    }
}

impl Run for Show {
    fn run(self) -> Result<Exit, Failure> {
        let path = history::find(&self.run)?;
        let contents = crate::session::read(&path)?;
        let header = contents.header.clone();
        let told = Told::of(Known::of(path, header))?;
        if self.format.is_json() {
            return output::json(&told.json());
        }
        output::result(&told.whole())?;
        Ok(Exit::Good)
    }
}

impl Run for Tag {
    fn run(self) -> Result<Exit, Failure> {
        self.names.iter().try_for_each(|tag| history::check_tag(tag))?;
        let path = history::find(&self.run)?;
        let header = pagelab_record::journal::header(&path).map_err(Failure::usage)?;
        let mut run = Known::of(path, header);
        for tag in self.names {
            let place = run.tags.binary_search(&tag);
            match (place, self.remove) {
                (Ok(place), true) => drop(run.tags.remove(place)),
                (Err(_), true) => {
                    let path = run.path.display();
                    return Err(usage!("{path} has no tag `{tag}`"));
                }
                (Err(place), false) => {
                    free(&tag, &run)?;
                    run.tags.insert(place, tag);
                }
                (Ok(_), false) => (),
            }
        }
        history::set_tags(&run.path, &run.tags)?;
        Ok(Exit::Good)
    }
}

/// Refuses a tag that another run has, or that is a path: a name is one run.
fn free(tag: &str, run: &Known) -> Result<(), Failure> {
    let same = |other: &Known| other.path.canonicalize().ok() == run.path.canonicalize().ok();
    let all = history::runs(&history::places());
    if let Some(other) =
        all.iter().find(|other| other.tags.iter().any(|t| t == tag) && !same(other))
    {
        let path = other.path.display();
        return Err(usage!("{path} has the tag `{tag}`: pagelab tag --remove {path} {tag}"));
    }
    let is_path = PathBuf::from(tag).exists();
    if is_path { Err(usage!("`{tag}` is a path here")) } else { Ok(()) }
}

/// A run and what its records come to.
struct Told {
    run: Known,
    records: Vec<Record>,
}

impl Told {
    fn of(run: Known) -> Result<Self, Failure> {
        let records = crate::latest::latest(run.contents()?.records);
        Ok(Self { run, records })
    }

    /// Valid, invalid, skipped and failed cases.
    fn counts(&self) -> [(&'static str, usize); 4] {
        let count = |is: fn(&Outcome) -> bool| {
            self.records.iter().filter(|record| is(&record.outcome)).count()
        };
        [
            ("valid", count(|o| matches!(o, Outcome::Measured(m) if m.is_valid()))),
            ("invalid", count(|o| matches!(o, Outcome::Measured(m) if !m.is_valid()))),
            ("skipped", count(|o| matches!(o, Outcome::Skipped { .. }))),
            ("failed", count(|o| matches!(o, Outcome::Failed { .. }))),
        ]
    }

    /// Planned cases that left no record.
    fn left(&self) -> usize {
        self.run.header.plan.len().saturating_sub(self.records.len())
    }

    fn cases(&self) -> String {
        let left = [("left", self.left())];
        let all = self.counts().into_iter().chain(left).filter(|(_, number)| *number > 0);
        let said: Vec<String> = all.map(|(what, number)| format!("{number} {what}")).collect();
        if said.is_empty() { "no cases".to_owned() } else { said.join(", ") }
    }

    /// Values of a fact of the machine, one for each that is not the same.
    fn fact(&self, name: &str) -> Vec<String> {
        let values = self.records.iter().filter_map(|record| record.host.identity.get(name));
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        values.map(text).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn boots(&self) -> usize {
        self.records.iter().map(|record| &record.boot).collect::<BTreeSet<_>>().len()
    }

    fn row(&self) -> [String; 5] {
        [
            self.run.path.display().to_string(),
            self.run.header.started.clone(),
            what(&self.run.header),
            self.cases(),
            self.run.tags.join(" "),
        ]
    }

    fn whole(&self) -> Listing {
        let header = &self.run.header;
        let rows = [
            ("run", self.run.path.display().to_string()),
            ("tags", self.run.tags.join(" ")),
            ("started", header.started.clone()),
            ("what", what(header)),
            ("command", header.command.join(" ")),
            ("cases", self.cases()),
            ("kernel", self.fact(KERNEL).join(", ")),
            ("cpu", self.fact(CPU).join(", ")),
            ("boots", self.boots().to_string()),
            ("pagelab", header.pagelab.clone()),
            ("beside", header.published.join(", ")),
        ];
        let said = rows.iter().filter(|(_, value)| !value.is_empty());
        let said: Vec<_> = said.map(|(name, value)| [*name, value]).collect();
        let go_on = || format!("\ngo on with: {}", history::go_on(&self.run.path, header));
        Listing::default().rows(&said).lines((self.left() > 0).then(go_on))
    }

    fn json(&self) -> Value {
        let header = &self.run.header;
        let cases: serde_json::Map<String, Value> =
            self.counts().into_iter().map(|(what, n)| (what.to_owned(), json!(n))).collect();
        json!({
            "path": self.run.path,
            "run": header.run,
            "started": header.started,
            "what": what(header),
            "command": header.command,
            "tags": self.run.tags,
            "planned": header.plan.len(),
            "cases": cases,
            "boots": self.boots(),
            "kernel": self.fact(KERNEL),
            "cpu": self.fact(CPU),
            "pagelab": header.pagelab,
        })
    }
}

/// Facts of a machine, as records name them.
const KERNEL: &str = "kernel_release";
const CPU: &str = "cpu_model";

/// What a run measured, in a few words.
fn what(header: &RunHeader) -> String {
    match &header.asked {
        Some(Asked::Advise(_)) => return "advise".to_owned(),
        Some(Asked::Explain(_)) => return "explain".to_owned(),
        Some(Asked::Try(_)) => return "try".to_owned(),
        Some(Asked::Ab(ab)) => return ab.arms.each_ref().map(|arm| arm.name.as_str()).join(" or "),
        None if !header.suite.is_empty() => return format!("suite {}", header.suite),
        None => (),
    }
    let all: BTreeSet<&str> = header.plan.iter().map(|(workload, _)| workload.as_str()).collect();
    let own: Vec<&str> =
        all.iter().copied().filter(|name| !crate::session::is_limit(name)).collect();
    if own.is_empty() { Vec::from_iter(all).join(", ") } else { own.join(", ") }
}
