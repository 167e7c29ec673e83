//! `explain/program`: what the faults of somebody's program are, and what prices them.
//!
//! [`watch`] starts a program (or looks at one that runs) and receives every fault of it; [`tally`]
//! makes counts of them by kind, size, place and call site; [`record`] makes a record of the
//! counts; [`prices`] says which cases of the fault workloads measure what such faults cost here.
//! What they come to is for a report to say.
//!
//! It is no workload of the table: it repeats nothing and has no arms, and what it measures is not
//! ours to choose. The cases that price its faults are ordinary ones.

pub mod allowed;
pub mod block;
pub mod blocks;
pub mod callers;
pub mod calls;
pub mod counts;
pub(crate) mod eyes;
pub mod frame;
pub mod jit;
pub mod kind;
pub mod owners;
mod pace;
mod parts;
pub mod places;
pub mod prices;
pub mod proof;
mod recent;
pub mod record;
mod sites;
pub mod symbols;
pub mod tally;
pub mod threads;
pub mod unwind;
pub mod walks;
pub mod watch;

/// The workload that its records name.
/// A program that is watched.
pub const WORKLOAD: &str = "explain/program";
