//! The simulator: an invented machine that runs an invented program, and a policy that moves pages.
//!
//! The one idea: between two events nothing moves, so the program's speed is constant and time is a
//! division. Events are samples, hint faults, scans, batches of moves and changes of the pattern.
//! Accesses themselves are never drawn one by one, unless a trace says what they are. The same
//! scenario gives the same bytes on every machine.

mod check;
mod curve;
mod engine;
mod faults;
mod generators;
mod machine;
mod mover;
mod outcome;
mod places;
mod popularity;
mod queue;
mod sampler;
mod scan;
mod scenario;
mod stamps;
mod tally;
mod trace;
mod work;

pub use self::{
    check::check,
    curve::{Curve, Level, Loaded},
    engine::simulate,
    generators::{GENERATORS, WorkSpec},
    outcome::{Outcome, Row},
    scenario::{
        BitScan, Costs, HintScan, Mover, Placement, Sampling, Scenario, Source, Tiers, Work,
    },
    trace::TraceWork,
};
