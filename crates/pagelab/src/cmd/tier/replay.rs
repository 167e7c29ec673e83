//! `pagelab tier replay`: a log of `tier promote`, decided again.

use std::{fs::File, io::BufReader, path::PathBuf};

use clap::Args;
use pagelab_live::log::{self, Replayed};
use serde_json::json;

use crate::{
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
        let file = File::open(&self.log).map_err(|why| of_log(why.into()))?;
        let (header, found) = log::replay(&mut BufReader::new(file), log::PAGES_MAX)
            .map_err(|why| of_log(why.into()))?;
        let Replayed { decisions, moves, differing, is_torn } = &found;
        output::drawn(&if self.format.format == "json" {
            format!("{}\n", json!({ "pid": header.pid, "source": header.source, "replay": found }))
        } else {
            let mut text = format!("{decisions} decisions of {moves} moves, ");
            text.push_str(&match differing.as_slice() {
                [] => "all made again\n".to_owned(),
                lines => format!("{} of them otherwise: lines {lines:?}\n", lines.len()),
            });
            if *is_torn {
                text.push_str("the last line was cut off, as by a kill\n");
            }
            text
        })?;
        Ok(if differing.is_empty() { Exit::Good } else { Exit::Invalid })
    }
}
