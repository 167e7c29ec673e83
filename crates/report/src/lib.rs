//! Records turned into something to read.
//!
//! The one idea: a report is a pure function of records. [`Report::of`] derives every number once
//! (`numbers`); the tables for people are then laid out once (`document`), and the terminal,
//! markdown and HTML forms are views of that one layout, as JSON and CSV are views of the numbers.
//! So no two forms can disagree, and a record from last year reads like one from today.
//!
//! Nothing here measures, prints, or knows the machine it runs on.

mod cases;
mod chart;
mod compare;
mod document;
mod entry;
mod findings;
mod fit;
mod flame;
mod gathered;
mod grid;
mod headline;
mod html;
mod json;
mod limits;
mod listing;
mod markdown;
mod metric;
mod numbers;
mod parameters;
mod path;
mod published;
mod quantity;
mod ratio;
mod report;
mod run;
mod terminal;
mod views;
mod visible;

pub use compare::{
    Asked, Comparison, Fleet, Hosts, Outcome, Pair, Power, Question, Side, Taken, Threshold, Twice,
};
pub use json::{Line, Lines, Told};
pub use listing::Listing;
pub use metric::Statistic;
pub use published::{
    Publication,
    compared::{Compared, Kind, compared},
};
pub use report::Report;
pub use terminal::Style;
pub use views::{BuildLimit, Defaults};
pub use visible::visible;

// What a view is drawn with is named here, so that a view need not know the files.
pub(crate) use cases::{all_rows, columns, name_of, titles};
pub(crate) use chart::{Axis, Curve, Key, Lanes, Mark, Plane, Scale, hue};
pub(crate) use document::{
    Block, Cell, Column, Document, Found, Headline, Note, Section, Table, Tone,
};
pub(crate) use entry::{Entry, Standing};
pub(crate) use gathered::{distinct, grouped};
pub(crate) use grid::Grid;
pub(crate) use headline::{base_cases, fault, headline};
pub(crate) use limits::Limits;
pub(crate) use numbers::{At, Numbers, Time, clock_of, cpu, elapsed, tally};
pub(crate) use pagelab_record::vocabulary::parameter;
pub(crate) use quantity::{Quantity, Unit, group_thousands};
pub(crate) use run::Run;
