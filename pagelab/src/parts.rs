//! What this program consists of.

use std::process::ExitCode;

use pagelab_cli::{DoctorSection, Hidden, Part, Source, settings::CASE_COMMAND};
use pagelab_live::status::{Why, reasons};
use pagelab_report::{LATER as LATER_VIEWS, VIEWS};
use pagelab_sys::machine::Tree;
use pagelab_workloads::{CATALOGUE, WORKLOADS, fault::path::guest as path, suites};
use serde_json::json;

use crate::cmd;

/// A folder of `published/`: its name, and its template, if any.
macro_rules! folder {
    ($name:literal $(, $template:literal)?) => {
        Source {
            name: $name,
            records: include_str!(concat!("../../published/", $name, "/records.jsonl")),
            claims: include_str!(concat!("../../published/", $name, "/claims.toml")),
            template: concat!(
                $(include_str!(concat!("../../published/", $name, "/", $template)))?
            ),
        }
    };
}

/// Every part.
pub(crate) const PARTS: &[&Part] =
    &[&pagelab_program::PART, &OTHERS, &pagelab_memtype::PART, &LATER];

/// What has no crate of its own yet.
const OTHERS: Part = Part {
    workloads: WORKLOADS,
    requirements: CATALOGUE,
    views: VIEWS,
    commands: cmd::OF_PARTS,
    examples: include_str!("examples.txt"),
    suites: suites::BUILT_IN,
    publications: &[
        folder!("micro-pagefault", "report.j2"),
        folder!("page-fault-latency"),
        folder!("fast-memory"),
        folder!("memory-types", "report.j2"),
        folder!("pghot", "report.j2"),
    ],
    hidden: &[Hidden { is_it: path::is_first, main: first_process }],
    doctor: &[DoctorSection {
        name: "tiers",
        title: "why nothing moves between tiers of memory",
        lines: || {
            let all = reasons(&Tree::machine()).into_iter().map(Why::from);
            all.map(|why| (format!("{}: {}", why.says, why.cure), json!(why))).collect()
        },
    }],
    ..Part::NONE
};

/// What comes behind them and has none yet either.
const LATER: Part = Part { views: LATER_VIEWS, ..Part::NONE };

/// The first process of a machine that is watched.
fn first_process() -> ExitCode {
    path::main(CASE_COMMAND)
}

#[cfg(test)]
mod tests {
    use pagelab_cli::{part, published::published};

    use super::*;

    #[test]
    fn all_publications_can_be_read() {
        part::set(PARTS);
        for source in part::publications() {
            assert!(!published(source.name).unwrap().is_empty(), "{}", source.name);
        }
    }
}
