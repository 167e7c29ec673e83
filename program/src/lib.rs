//! Questions about a program or a machine that one case does not answer.
//!
//! [`advise`] measures the ways of getting fresh memory against each other, [`explain`] counts the
//! faults of a program and has each kind of them priced. Both plan ordinary cases. [`ladder`] runs
//! a program itself, on every way to larger pages; [`fit`] chooses mappings of it. What comes out
//! is read by the report. What changes of the machine meanwhile is in [`settings`].

#[macro_use(host, usage)]
extern crate pagelab_cli;

pub mod advise;
mod commands;
pub mod explain;
pub mod fit;
pub mod ladder;
mod made;
pub mod settings;
mod stat;
pub mod views;

use pagelab_cli::{Part, args::Row};

/// The part of pagelab that is about a program of somebody's.
pub const PART: Part = Part {
    views: views::VIEWS,
    commands: &[
        Row::of::<commands::advise::Advise>("advise"),
        Row::of::<commands::explain::Explain>("explain"),
        Row::of::<commands::tries::Try>("try"),
    ],
    examples: include_str!("examples.txt"),
    resume: Some(commands::resume::RESUME),
    ..Part::NONE
};
