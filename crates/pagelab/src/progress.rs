//! What a person sees while a run goes on: a bar with an ETA on a terminal, lines elsewhere.
//!
//! Drawn only between processes of cases, never while one of them measures: there is no ticker and
//! no thread. The bar's length is the plan's estimated time, so the ETA corrects itself.

use std::io::{self, IsTerminal};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pagelab_bench::plan::{Plan, Planned};
use pagelab_record::{Outcome, Record};

use crate::output;

/// Draws the progress of a run.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    cases: usize,
    done_ms: u64,
}

impl Progress {
    /// Starts drawing, or does not when `quiet`.
    pub(crate) fn start(plan: &Plan, quiet: bool) -> Self {
        let total = plan.cases.iter().map(estimated_ms).sum();
        let bar = (!quiet && io::stderr().is_terminal()).then(|| {
            let bar =
                ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(4));
            let template = "{bar:30.cyan/dim} {percent:>3}%  {elapsed} (about {eta} left)  {msg}";
            bar.set_style(ProgressStyle::with_template(template).expect("the template is ours"));
            bar
        });
        Self { bar, quiet, cases: plan.cases.len(), done_ms: 0 }
    }

    /// A process of a case is about to start.
    pub(crate) fn process(&self, planned: &Planned, process: u32) {
        if let Some(bar) = &self.bar {
            let share =
                u64::from(process) * estimated_ms(planned) / u64::from(planned.method.forks.max(1));
            bar.set_message(brief(planned));
            bar.set_position(self.done_ms + share);
            bar.tick();
        }
    }

    /// A case is done.
    pub(crate) fn case(&mut self, index: usize, planned: &Planned, record: &Record) {
        self.done_ms += estimated_ms(planned);
        if let Some(bar) = &self.bar {
            bar.set_position(self.done_ms);
        } else if !self.quiet {
            let outcome = describe(&record.outcome);
            output::warn(&format!("[{}/{}] {}: {outcome}", index + 1, self.cases, brief(planned)));
        }
    }

    /// Takes the bar away.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an estimate")]
fn estimated_ms(planned: &Planned) -> u64 {
    (planned.estimated_seconds() * 1000.0) as u64 + 1
}

/// The case without what it leaves at its default.
pub(crate) fn brief(planned: &Planned) -> String {
    let mut text = planned.workload.clone();
    let Ok(workload) = pagelab_bench::workload(&planned.workload) else { return text };
    for param in workload.params() {
        match planned.case.get(param.name) {
            Some(value)
                if value != param.default || matches!(param.name, "page" | "kind" | "level") =>
            {
                text.push_str(&format!(" {}={value}", param.name));
            }
            _ => (),
        }
    }
    text
}

fn describe(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Measured(measured) if measured.is_valid() => "measured".to_owned(),
        Outcome::Measured(measured) => {
            let broken = measured.witness.iter().find(|claim| !claim.holds);
            broken.map_or_else(
                || "INVALID".to_owned(),
                |claim| {
                    format!(
                        "INVALID: {}: expected {}, observed {}",
                        claim.claim, claim.expected, claim.observed
                    )
                },
            )
        }
        Outcome::Skipped { need, .. } => format!("skipped, needs {need}"),
        Outcome::Failed { reason } => format!("FAILED: {reason}"),
    }
}
