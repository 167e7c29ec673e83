//! `try/program`: somebody's program on every rung of a ladder of ways to larger pages.
//!
//! The one idea: a rung is a row of a table ([`rungs`]): what is set, what it needs, what proves
//! that it took. Each round runs the program once on each rung that is still in question, in an
//! order that is drawn and balanced ([`order`]), so a round is a block and every rung of it has its
//! own plain. [`once`] runs it a single time, alone or as a server under a load ([`load`]), and
//! looks at its memory meanwhile ([`look`]); [`tally`] makes of all runs on a rung the one record
//! that it leaves; [`climb`] goes from rung to rung, with the machine's settings.
//!
//! What a rung comes to (faster, the same, did not take) follows from the records and is for a
//! report to say; here is known only when to stop ([`course`]).

pub mod attached;
pub mod attend;
pub mod climb;
pub mod course;
mod environment;
mod facts;
mod held;
pub mod load;
pub mod look;
pub mod maps;
pub mod once;
pub mod order;
pub mod outside;
mod restored;
pub mod rungs;
pub mod streams;
pub mod tally;
mod warmth;

/// The workload that its records name.
/// A program that is run as set up.
pub const WORKLOAD: &str = "try/program";
