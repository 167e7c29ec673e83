//! What pagelab consists of: a row for each part.
//!
//! A part brings its workloads, what they require of a machine, what reports show of them, its
//! commands, suites and publications. The program names its parts once ([`set`]), before anything
//! else; whoever needs all workloads or all views asks here.

use std::{ffi::OsString, process::ExitCode, sync::OnceLock};

use pagelab_bench::{
    Needed,
    suite::{self, Known, Suite},
    workload::{self, Row as Workload, Table},
};
use pagelab_record::RunHeader;
use pagelab_report::{View, Views};
use serde_json::Value;

use crate::{
    args::{Conduct, Row},
    exit::{Exit, Failure},
    session,
};

/// A part.
#[derive(Debug)]
pub struct Part {
    /// What it measures, in the order in which `list` shows it.
    pub workloads: Table,
    /// What it may require of a machine, in the order in which `doctor` asks.
    pub requirements: &'static [fn() -> Vec<Needed>],
    /// What reports show of it.
    pub views: &'static [View],
    /// Its commands, in the order in which `--help` shows them.
    pub commands: &'static [Row],
    /// An example of each of its commands, as `examples.txt` has them.
    pub examples: &'static str,
    /// Its suites: name and text.
    pub suites: &'static [(&'static str, &'static str)],
    /// Publications about it.
    pub publications: &'static [Source],
    /// What it is started as, beside its commands.
    pub hidden: &'static [Hidden],
    /// What `doctor` says of the machine besides.
    pub doctor: &'static [DoctorSection],
    /// How its runs go on, where they are more than the cases of their plan.
    pub resume: Option<Resume>,
}

impl Part {
    /// A part that brings nothing: what a row need not say.
    pub const NONE: Self = Self {
        workloads: &[],
        requirements: &[],
        views: &[],
        commands: &[],
        examples: "",
        suites: &[],
        publications: &[],
        hidden: &[],
        doctor: &[],
        resume: None,
    };
}

/// How runs go on that stopped.
#[derive(Debug)]
pub struct Resume {
    /// Whether a run is one of them.
    pub takes: fn(&RunHeader) -> bool,
    /// Goes on with it.
    pub go_on: fn(session::Run, &Conduct) -> Result<Exit, Failure>,
}

/// The files of a publication that is built in.
#[derive(Debug)]
pub struct Source {
    /// What suites and reports call it.
    pub name: &'static str,
    /// `records.jsonl`.
    pub records: &'static str,
    /// `claims.toml`.
    pub claims: &'static str,
    /// `report.j2`; empty where there is none.
    pub template: &'static str,
}

/// A folder of `published/`: its name, and its template, if any. The file that names it lies in the
/// folder `src` of a package in the root of the workspace.
#[macro_export]
macro_rules! publication {
    ($name:literal $(, $template:literal)?) => {
        $crate::Source {
            name: $name,
            records: include_str!(concat!("../../published/", $name, "/records.jsonl")),
            claims: include_str!(concat!("../../published/", $name, "/claims.toml")),
            template: concat!(
                $(include_str!(concat!("../../published/", $name, "/", $template)))?
            ),
        }
    };
}

/// A process of this program that is no command of anybody's.
#[derive(Debug)]
pub struct Hidden {
    /// Whether these words start it.
    pub is_it: fn(&[OsString]) -> bool,
    /// Does it.
    pub main: fn() -> ExitCode,
}

/// A paragraph of `doctor`: a sentence and a value for programs for each thing that is so.
#[derive(Debug)]
pub struct DoctorSection {
    /// What it is called in JSON.
    pub name: &'static str,
    /// What stands above its lines.
    pub title: &'static str,
    /// What is so now.
    pub lines: fn() -> Vec<(String, Value)>,
}

/// All parts taken together.
#[derive(Debug)]
struct All {
    parts: &'static [&'static Part],
    workloads: Vec<Workload>,
    publications: Vec<&'static str>,
    views: Views,
}

static ALL: OnceLock<All> = OnceLock::new();

/// What the program consists of, from now on.
pub fn set(parts: &'static [&'static Part]) {
    ALL.get_or_init(|| {
        let publications = parts.iter().flat_map(|part| part.publications);
        All {
            parts,
            workloads: parts.iter().flat_map(|part| part.workloads).copied().collect(),
            publications: publications.map(|source| source.name).collect(),
            views: Views::new(parts.iter().flat_map(|part| part.views), default_of),
        }
    });
}

/// # Panics
/// Where the program has not named its parts.
fn all() -> &'static All {
    ALL.get().expect("main names the parts first")
}

/// The parts, in the order of help.
pub fn parts() -> impl Iterator<Item = &'static Part> {
    all().parts.iter().copied()
}

/// Every workload, in the order of `list`.
pub fn workloads() -> Table {
    &all().workloads
}

/// The workload of that name.
///
/// # Errors
/// A sentence that lists the names there are.
pub fn workload(name: &str) -> Result<Workload, String> {
    workload::find(workloads(), name)
}

/// What reports show of every workload.
pub fn views() -> &'static Views {
    &all().views
}

/// Every publication that is built in.
pub fn publications() -> impl Iterator<Item = &'static Source> {
    parts().flat_map(|part| part.publications)
}

/// What may be required of a machine.
pub fn requirements() -> Vec<Needed> {
    parts().flat_map(|part| part.requirements).flat_map(|row| row()).collect()
}

/// The suites that are built in: name and text.
pub fn suites() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    parts().flat_map(|part| part.suites)
}

/// A built-in suite.
///
/// # Errors
/// A sentence that lists the names there are.
pub fn suite(name: &str) -> Result<Suite, String> {
    let found = suites().find(|(known, _)| *known == name);
    let (_, text) = found.ok_or_else(|| {
        let names: Vec<&str> = suites().map(|(name, _)| *name).collect();
        format!(
            "no suite is called `{name}`; there are {} (or give the path of a .toml file)",
            names.join(", ")
        )
    })?;
    suite::parse(text, known())
}

/// What any suite can name.
pub fn known() -> Known {
    Known { workloads: workloads(), published: &all().publications }
}

/// The default of a workload's parameter: what a report need not say.
fn default_of(name: &str, parameter: &str) -> Option<&'static str> {
    let params = workload(name).ok()?.params();
    params.iter().find(|param| param.name == parameter).map(|param| param.default)
}
