//! `pagelab compare --by host`: the hosts of a fleet, of which no more is held than their numbers.

use std::{collections::BTreeSet, path::PathBuf};

use pagelab_record::journal;
use pagelab_report::{Forms, Hosts};

use super::{Compare, exit_of, keys_of, known_facts, parts, refuse_twice};
use crate::{
    exit::{Exit, Failure},
    history, output, session,
};

impl Compare {
    /// The hosts of some runs, of which no more is held than their numbers.
    pub(super) fn hosts(&self) -> Result<Exit, Failure> {
        if self.bisect || matches!(self.format.as_str(), "lkml" | "folded") {
            let what = if self.bisect { "--bisect" } else { "--format lkml and folded" };
            return Err(usage!(
                "{what} is for two sides: name the host that the others are set against \
                 (--baseline NAME)"
            ));
        }
        let out = output::Named::of(self.file.as_ref())?;
        refuse_twice(&self.run)?;
        let mut facts = BTreeSet::new();
        let mut hosts = Hosts::new(&self.asked()?);
        let runs: Vec<PathBuf> = self.run.iter().flat_map(|run| parts(run)).collect();
        for run in &runs {
            let version = journal::header(&history::find(run)?).map_err(Failure::usage)?.pagelab;
            let mut said = None;
            session::select(run, |record| {
                keys_of(record, &mut facts);
                if let Err(why) = hosts.add(&version, record) {
                    said = said.take().or(Some(why));
                }
                false
            })?;
            if let Some(why) = said {
                return Err(usage!("{}: {why}", run.display()));
            }
        }
        known_facts(&self.allow, facts)?;
        let names: Vec<String> = runs.iter().map(|run| run.display().to_string()).collect();
        let fleet = hosts.fleet(&names.join(", "))?;
        output::put(out, &fleet.form(&self.format, output::style()))?;
        Ok(exit_of(fleet.outcome(&self.fail_on)))
    }
}
