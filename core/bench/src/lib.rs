//! The one loop that measures, and what a workload is to it.
//!
//! A [`Workload`] turns a case into trials, one for each arm; [`measure`] repeats them in a fresh
//! process and [`runner`] turns what comes back into a record. No workload is known here: a table
//! of them is handed in. Nothing here draws or prints.

mod arm;
pub mod asked;
pub mod blocks;
pub mod common;
pub mod count;
pub mod cpus;
pub mod digest;
mod grid;
mod guards;
mod here;
pub mod inputs;
mod losses;
pub mod measure;
pub mod meter;
pub mod need;
pub mod needs;
pub mod origin;
pub mod params;
pub mod partial;
pub mod plan;
pub mod planted;
pub mod program;
pub mod refusal;
pub mod remedy;
mod request;
pub mod results;
pub mod runner;
mod same;
pub mod suite;
pub mod tasks;
pub mod words;
pub mod workload;

pub use grid::unique;
pub use inputs::Inputs;
pub use meter::{Meter, Witness};
pub use need::{Need, Needed, Plain};
pub use params::{Kind, PageSize, Param, Role, Touch, Values};
pub use refusal::{Over, Refusal};
pub use remedy::Remedy;
pub use words::{Read, Words, words_of};
pub use workload::{About, Described, Error, Experiment, Row, Table, Trial, Workload};
