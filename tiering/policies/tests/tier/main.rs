//! The simulator and the policies, from outside.
#![expect(clippy::unwrap_used, reason = "helpers of tests, outside the test functions")]

mod bad_input;
mod closed;
mod golden;
mod grid;
mod model;
mod policies;
mod properties;
mod setup;
mod trace;
