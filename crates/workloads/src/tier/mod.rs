//! Tiering: measured on the kernel's own modes, and simulated: scenario files, the workload that
//! runs them, and what was published beside. [`micro`] and [`curve`] are what is measured; the rest
//! is the model.
//!
//! [`preset`] reads a file, [`scenario`](mod@scenario) makes of each of its runs what the simulator
//! takes, [`simulation`] is the workload, `compare` says what each result is worth, `tables`
//! puts all of it into a record. The simulator itself is another crate, and knows no published
//! number.

mod chance;
mod choice;
mod compare;
pub mod constant;
pub mod curve;
mod drawn;
mod metric;
pub mod micro;
pub mod params;
pub mod preset;
pub mod scenario;
pub mod section;
pub mod simulation;
mod tables;
