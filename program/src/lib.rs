//! Questions about a program or a machine that one case does not answer.
//!
//! [`advise`] measures the ways of getting fresh memory against each other, [`explain`] counts the
//! faults of a program and has each kind of them priced. Both plan ordinary cases. [`ladder`] runs
//! a program itself, on every way to larger pages; [`fit`] chooses mappings of it. What comes out
//! is read by the report. What changes of the machine meanwhile is in [`settings`].

pub mod advise;
pub mod explain;
pub mod fit;
pub mod ladder;
mod made;
pub mod settings;
mod stat;
