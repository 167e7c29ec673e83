//! What a measurement leaves behind.
//!
//! A [`Record`] is one case: what was asked, on which host, what was observed, and the proof that
//! the thing measured is the thing named. A [`journal`] is a file of records that survives a crash.
//! [`stats`] turns the series of a record into a median with its interval, and keeps the levels
//! (observation, repetition, process) apart; [`verdict`] says what two of them come to, [`power`]
//! what so many can see. [`units`] reads and prints sizes and times. [`vocabulary`] holds the names
//! that who measures and who reports share, [`asked`] the questions, [`advice`] what to set.
//!
//! Nothing here measures, and nothing here prints: this crate knows no clock and no terminal.

mod named;

pub mod ab;
pub mod advice;
pub mod asked;
mod host;
pub mod input;
pub mod journal;
pub mod latency;
pub mod power;
pub mod ranks;
pub mod schema;
pub mod stats;
pub mod units;
pub mod verdict;
pub mod vocabulary;
pub mod walks;

pub use ab::{Ab, Arm, Turns};
pub use asked::Asked;
pub use host::Host;
pub use schema::{
    Case, Claim, Clock, Column, Data, LeftOut, Measured, Nature, Outcome, Record, RunHeader,
    Series, Signed, Summary, Table, Unit, Word,
};
