//! `pagelab tier replay`: a log of `tier promote`, decided again.

use std::{io::BufReader, path::PathBuf};

use clap::Args;
use pagelab_live::log::{self, Replayed};
use pagelab_record::input;
use pagelab_report::Listing;
use pagelab_sys::machine::{Topology, Tree};
use serde_json::json;

use pagelab_cli::{
    args::{Format, Run},
    exit::{Exit, Failure},
    output,
};

/// Decide everything again that a log of tier promote has seen.
///
/// The policy is pure: from the same events it must ask for the same moves. Exit code 6 where it
/// does not, with the lines.
#[derive(Debug, Args)]
pub(super) struct Replay {
    /// The log.
    #[arg(value_name = "LOG")]
    log: PathBuf,
    #[command(flatten)]
    format: Format,
}

impl Run for Replay {
    fn run(self) -> Result<Exit, Failure> {
        let of_log =
            |why: anyhow::Error| Failure::usage(why.context(self.log.display().to_string()));
        let file = input::open(&self.log).map_err(|why| of_log(why.into()))?;
        let (header, found) = log::replay(&mut BufReader::new(file), pages_max())
            .map_err(|why| of_log(why.into()))?;
        let Replayed { decisions, moves, differing, is_torn } = &found;
        if self.format.is_json() {
            let told = json!({ "pid": header.pid, "source": header.source, "replay": found });
            output::json(&told)?;
        } else {
            let how = match differing.as_slice() {
                [] => "all made again".to_owned(),
                lines => format!("{} of them otherwise: lines {lines:?}", lines.len()),
            };
            let torn = is_torn.then_some("the last line was cut off, as by a kill");
            let listing = Listing::default();
            let listing =
                listing.line(format_args!("{decisions} decisions of {moves} moves, {how}"));
            output::result(&listing.lines(torn))?;
        }
        Ok(if differing.is_empty() { Exit::Good } else { Exit::Invalid })
    }
}

/// Bytes that a policy and its driver hold for a page, as an upper estimate.
const BYTES_OF_A_PAGE: u64 = 16;

/// So many pages may a log speak of: what it claims takes memory here, about a quarter at most.
fn pages_max() -> u32 {
    let memory = Topology::of(Tree::machine()).memory_budget().bytes;
    u32::try_from(memory / 4 / BYTES_OF_A_PAGE).unwrap_or(u32::MAX).min(log::PAGES_MAX)
}
