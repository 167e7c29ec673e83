//! `pagelab tier sources`: who can say which memory is used, and what that takes.

use clap::Args;
use pagelab_live::source::{Lack, Reach, SOURCES, Sees, Source};
use pagelab_report::Listing;
use pagelab_sys::machine::Tree;
use serde_json::json;

use pagelab_cli::{
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
        if self.format.is_json() {
            let row = |(source, lack): (&Source, Option<Lack>)| {
                json!({ "name": source.name, "summary": source.summary, "sees": sees(source),
                    "of": of(source), "granularity": source.granularity(),
                    "privilege": source.privilege, "cost": source.cost,
                    "lack": lack.as_ref().map(|lack| &lack.what),
                    "cure": lack.as_ref().map(|lack| &lack.cure) })
            };
            return output::json(&rows.map(row).collect());
        }
        let listing = rows.fold(Listing::default(), |listing, (source, lack)| {
            let Source { name, summary, privilege, cost, .. } = source;
            let (sees, of, granularity) = (sees(source), of(source), source.granularity());
            let here = lack.map_or("can be had here".to_owned(), |lack| {
                format!("not here: {}; to have it: {}", lack.what, lack.cure)
            });
            let takes = format!("takes {privilege}; costs {cost}");
            let lines = [format!("sees {sees} of {of}, by {granularity}"), takes, here];
            listing.item(format_args!("{name}: {summary}"), lines)
        });
        output::result(&listing)?;
        Ok(Exit::Good)
    }
}
