//! `pagelab tier`: which pages are hot, who moves them, and whether it was worth it.
//!
//! `simulate` builds the same cases as `pagelab run tier/simulation` and leaves the same records in
//! the same kind of run; it differs in what it prints, and in that the cases of a grid share the
//! processors: nothing is measured, so they do not disturb each other. `calibrate` measures the
//! curve that it builds on. `promote` runs the same policies on a live process, `explain` says
//! before what they would be worth to a program, `replay` decides again what such a run has seen,
//! `sources` says who can say what is used, `status` what is where.

mod calibrate;
mod explain;
mod grid;
mod promote;
mod replay;
mod rows;
mod simulate;
mod sources;
mod status;

use pagelab_cli::args::Row;

/// The commands of `pagelab tier`.
pub(crate) const ROW: Row = Row::group(
    "tier",
    "Tiered memory: which pages are hot, who moves them, and what that is worth",
    &[
        Row::new("calibrate", calibrate::describe, calibrate::calibrate),
        Row::new("simulate", simulate::describe, simulate::simulate),
        Row::of::<explain::Explain>("explain"),
        Row::of::<promote::Promote>("promote"),
        Row::of::<replay::Replay>("replay"),
        Row::of::<sources::Sources>("sources"),
        Row::of::<status::Show>("status"),
    ],
);
