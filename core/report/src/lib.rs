//! Records turned into something to read.
//!
//! The one idea: a report is a pure function of records. [`Report::of`] derives every number once
//! (`numbers`); the tables for people are then laid out once (`document`), and the terminal,
//! markdown and HTML forms are views of that one layout, as JSON and CSV are views of the numbers.
//! So no two forms can disagree, and a record from last year reads like one from today.
//!
//! Nothing here measures, prints, or knows the machine it runs on.

pub mod cases;
pub mod chart;
mod compare;
mod document;
pub mod entry;
mod findings;
pub mod flame;
mod forms;
mod gathered;
mod grid;
pub mod headline;
mod html;
mod json;
pub mod limits;
mod listing;
mod markdown;
mod metric;
pub mod numbers;
pub mod parameters;
mod published;
mod quantity;
pub mod ratio;
mod report;
mod run;
mod terminal;
mod view;
mod views;
mod visible;

pub use compare::{
    Asked, Comparison, Counting, Counts, Fleet, Heading, Hosts, Most, Named, Outcome, Pair, Power,
    Question, Side, Taken, Threshold, Twice, TwicePair,
};
pub use forms::Forms;
pub use json::{Line, Lines, Told};
pub use listing::Listing;
pub use metric::{FAULT_IN, Statistic, steps_of};
pub use published::Publication;
pub use report::Report;
pub use terminal::Style;
pub use view::{Defaults, Derive, Rank, Said, Sections, View, Views};
pub use views::VIEWS;
pub use visible::visible;

// What a view is drawn with is named here, so that a view need not know the files.
pub use cases::{all_rows, columns, name_of, titles};
pub use chart::{Axis, Curve, Key, Lanes, Mark, Plane, Scale, hue};
pub use document::{Block, Cell, Column, Document, Found, Headline, Note, Section, Table, Tone};
pub use entry::{Entry, Standing};
pub use gathered::{distinct, grouped, same_order};
pub use grid::Grid;
pub use headline::{base_cases, fault, headline};
pub use limits::Limits;
pub use numbers::{At, Numbers, Time, clock_of, cpu, elapsed, tally};
pub(crate) use pagelab_record::vocabulary::parameter;
pub use quantity::{Quantity, Unit, group_thousands};
pub use run::Run;
