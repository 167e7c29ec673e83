//! The machine's settings, taken for a run: by a runner of cases, or by a command of its own.

use std::{path::Path, time::Duration};

use pagelab_bench::{plan::Planned, runner::Runner};
use pagelab_record::advice::THP;
use pagelab_sys::{
    knobs::{self, KnobError, Knobs, WATCHDOG_COMMAND, patiently},
    process::{child, interrupted},
};

use crate::{
    exit::{Exit, Failure},
    lock, output,
};

/// The hidden sub-command that measures one case.
pub const CASE_COMMAND: &str = "__case";

/// A runner whose children and watchdog are this executable, and which has taken no settings.
pub fn plain_runner(run: &str) -> Runner {
    Runner::new(run, &[CASE_COMMAND], &[WATCHDOG_COMMAND])
}

/// A runner of cases that price faults: where another run holds the settings, those that need one
/// are skipped with their cure.
///
/// # Errors
/// When the user interrupts.
pub fn pricing_runner(run: &str, plan: &[Planned], patience: Duration) -> Result<Runner, Failure> {
    runner(run, plan, patience).or_else(|_| runner(run, &[], patience))
}

/// A runner that has taken what its plan needs of the machine's settings.
///
/// # Errors
/// When another run still holds the knobs that the plan needs
/// when the `patience` is over.
pub fn runner(run: &str, plan: &[Planned], patience: Duration) -> Result<Runner, Failure> {
    let mut runner = plain_runner(run);
    match waited(patience, || runner.take_knobs(plan)) {
        // Without the right to change settings, cases that need one are skipped with their cure.
        Ok(Ok(()) | Err(KnobError::Denied { .. })) => Ok(runner),
        Ok(Err(error)) => Err(refused(error)),
        Err(interrupted) => Err(interrupted),
    }
}

/// The machine's settings, for a command that is no run of cases.
///
/// # Errors
/// When another run still holds them when the `patience` is over.
pub fn knobs(run: &str, patience: Duration) -> Result<Knobs, Failure> {
    let place = knobs::Place::machine();
    let taken = waited(patience, || {
        let mut watchdog = child::this_program();
        watchdog.arg(WATCHDOG_COMMAND).arg(place.directory());
        Knobs::acquire(&place, run, watchdog)
    });
    taken?.map_err(refused)
}

/// Says why cases were interrupted where the user did not do it.
pub fn warn_of_lost(runner: &Runner) {
    if let Some(why) = runner.lost().filter(|_| !interrupted()) {
        output::warn(&format!("interrupted: {why}"));
    }
}

/// Waits while another run has the settings changed that decide which pages a program gets: what a
/// program does under them is not what it does on this machine.
///
/// # Errors
/// When they still are when the `patience` is over.
pub fn undisturbed(patience: Duration) -> Result<(), Failure> {
    let place = knobs::Place::machine();
    waited(patience, || knobs::unchanged_below(&place, Path::new(THP)))?.map_err(refused)
}

/// Why the settings cannot be had; where another run holds them, with the flag that waits.
pub fn refused(error: KnobError) -> Failure {
    Failure::host(match error {
        held @ KnobError::Held { .. } => lock::refusal(held),
        error => error.into(),
    })
}

/// What came of taking the settings, while somebody else may hold them; an interrupt ends it.
fn waited<T>(
    patience: Duration,
    take: impl FnMut() -> Result<T, KnobError>,
) -> Result<Result<T, KnobError>, Failure> {
    let mut tell = |held: &KnobError| output::warn(&format!("waiting: {held}"));
    match patiently(patience, &mut tell, take) {
        Err(KnobError::Held { .. }) if interrupted() => {
            Err(Failure { error: anyhow::anyhow!("interrupted"), exit: Exit::Interrupted })
        }
        taken => Ok(taken),
    }
}
