//! `pagelab tier sources`: who can say which memory is used, and what that takes.

use clap::Args;
use pagelab_live::source::{Reach, SOURCES, Sees, Source};
use pagelab_sys::machine::Tree;
use serde_json::json;

use crate::{
    args::{Format, Run},
    exit::{Exit, Failure},
    output,
};

/// Show who can say which memory is used, what that takes, and whether this machine has it.
///
/// A source of regions is shown and not promoted by: what lies in a hot region need not be hot.
#[derive(Debug, Args)]
pub(super) struct Sources {
    #[command(flatten)]
    format: Format,
}

fn sees(source: &Source) -> &'static str {
    match source.sees {
        Sees::Stores => "stores",
        Sees::Accesses => "loads and stores",
    }
}

fn of(source: &Source) -> &'static str {
    match source.reach {
        Reach::Foreign => "any process",
        Reach::Own => "a program that pagelab starts",
    }
}

impl Run for Sources {
    fn run(self) -> Result<Exit, Failure> {
        let tree = Tree::machine();
        let rows = SOURCES.iter().map(|source| (source, (source.probe)(&tree).err()));
        output::drawn(&if self.format.format == "json" {
            let rows: Vec<_> = rows
                .map(|(source, lack)| {
                    json!({ "name": source.name, "summary": source.summary, "sees": sees(source),
                        "of": of(source), "granularity": source.granularity(),
                        "privilege": source.privilege, "cost": source.cost,
                        "lack": lack.as_ref().map(|lack| &lack.what),
                        "cure": lack.as_ref().map(|lack| &lack.cure) })
                })
                .collect();
            format!("{}\n", json!(rows))
        } else {
            let mut text = String::new();
            for (source, lack) in rows {
                let Source { name, summary, privilege, cost, .. } = source;
                text.push_str(&format!("{name}: {summary}\n"));
                let (sees, of, granularity) = (sees(source), of(source), source.granularity());
                text.push_str(&format!("  sees {sees} of {of}, by {granularity}\n"));
                text.push_str(&format!("  takes {privilege}; costs {cost}\n"));
                text.push_str(&match lack {
                    None => "  can be had here\n".to_owned(),
                    Some(lack) => format!("  not here: {}; to have it: {}\n", lack.what, lack.cure),
                });
            }
            text
        })?;
        Ok(Exit::Good)
    }
}
