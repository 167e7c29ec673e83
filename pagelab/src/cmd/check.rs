//! `pagelab check`: every workload's smallest case, for its proof and not for its time.
//!
//! The one idea: a check asks whether a proof can be had here. A case whose proof fails is tried
//! once more, and both answers are shown: what fails twice is a fault of the machine or of ours,
//! what fails once was disturbed by something beside it.

use clap::{Args, builder::PossibleValuesParser};
use pagelab_bench::{
    asked::{Forks, Repetitions, Seconds},
    plan::{self, Plan},
    runner::Runner,
    suite::{Entry, Suite},
};
use pagelab_record::{Claim, Outcome, Record};

use crate::{
    args::{Clock, DryRun, Method, Run, Wait},
    exit::{Exit, Failure},
    output, part, progress, session, settings,
};

/// Run every workload's smallest case and verify it; times are not reported.
#[derive(Debug, Args)]
pub(super) struct Check {
    #[command(flatten)]
    method: Method,
    #[command(flatten)]
    dry: DryRun,
    #[command(flatten)]
    wait: Wait,
    #[command(flatten)]
    clock: Clock,
    /// Print KTAP, as the kernel's own tests do.
    #[arg(long)]
    ktap: bool,
    /// Check these workloads only.
    #[arg(
        value_name = "WORKLOAD",
        value_parser = PossibleValuesParser::new(part::workloads().iter().map(|row| row.name())),
        hide_possible_values = true,
    )]
    workloads: Vec<String>,
}

impl Run for Check {
    /// Runs them and prints one line each.
    fn run(self) -> Result<Exit, Failure> {
        let plan = plan::of_suite(
            &smallest(&self.workloads),
            self.clock.choice(),
            self.method.overrides(),
        )?;
        if self.dry.dry_run {
            for planned in &plan.cases {
                output::result(&format!("{}\n", progress::brief(planned)))?;
            }
            return Ok(Exit::Good);
        }
        let runner = settings::runner("check", &plan.cases, self.wait.patience())?;
        let mut answers = Vec::new();
        let mut end = session::measure(&runner, &plan, true, &mut |record| {
            answers.push(Answer { last: record, first: None });
            Ok(())
        })?;
        if end == Exit::Good {
            end = again(&runner, &plan, &mut answers)?;
        }
        drop(runner);
        let lines = if self.ktap { ktap } else { plain };
        output::result(&lines(&plan, &answers))?;
        let last: Vec<Record> = answers.into_iter().map(|answer| answer.last).collect();
        Ok(end.min(session::verdict(&last)))
    }
}

/// What came of a case.
struct Answer {
    last: Record,
    /// Why it was tried again.
    first: Option<String>,
}

/// Tries again what did not hold.
fn again(runner: &Runner, plan: &Plan, answers: &mut [Answer]) -> Result<Exit, Failure> {
    let failed = |answer: &&mut Answer| verdict(&answer.last.outcome).0 == NOT_OK;
    let (failed, cases): (Vec<_>, Vec<_>) =
        answers.iter_mut().zip(&plan.cases).filter(|(answer, _)| failed(answer)).unzip();
    let mut failed = failed.into_iter();
    let plan = Plan { cases: cases.into_iter().cloned().collect(), ..Plan::default() };
    session::measure(runner, &plan, true, &mut |record| {
        let answer = failed.next().expect("one record for each case");
        answer.first = Some(verdict(&answer.last.outcome).1);
        answer.last = record;
        Ok(())
    })
}

/// What a check goes through where a workload has such a parameter.
const AXES: &[(&str, &[&str])] = &[
    ("page", &["all"]),
    ("type", &["wb", "uc", "wc"]),
    ("test", &["write", "write_ucfence", "ntwrite", "read", "ntwrite_readback"]),
];

/// Parameters of which every value is tried that goes with the rest at its default.
const EVERY_VALUE: &[(&str, &str)] = &[
    ("fault/latency", "kind"),
    ("fault/throughput", "populate"),
    ("fault/userfaultfd", "op"),
    ("fault/userfaultfd", "handler"),
];

/// What only comes together; several values are separated by commas.
const TOGETHER: &[(&str, &[(&str, &str)])] = &[
    ("fault/userfaultfd", &[("handler", "none"), ("op", "wp-async")]),
    ("fault/latency", &[("pressure", "fragmented"), ("page", "2m,64k"), ("size", "32m")]),
    ("fault/throughput", &[("pressure", "fragmented"), ("page", "2m"), ("size", "32m")]),
    ("fault/latency", &[("pressure", "memcg"), ("page", "4k,2m"), ("size", "32m")]),
    ("fault/throughput", &[("pressure", "memcg"), ("page", "4k,2m"), ("size", "32m")]),
];

/// One case of each workload, and one of each page size or memory type where it has them; of all
/// workloads where none is named.
fn smallest(named: &[String]) -> Suite {
    let is_asked = |name: &str| named.is_empty() || named.iter().any(|asked| asked == name);
    let asked = part::workloads().iter().filter(|workload| is_asked(workload.name()));
    let entries = asked.flat_map(|workload| {
        // Sizes of which there are few are words, and `all` is none of them.
        let is_open = |name: &str, values: &[&str]| {
            let mut params = workload.params().iter().filter(|param| param.name == name);
            params.any(|param| values.iter().all(|value| param.canonical(value).is_ok()))
        };
        let mut axes: Vec<(String, Vec<String>)> = workload
            .about()
            .smallest
            .iter()
            .map(|(name, value)| ((*name).to_owned(), vec![(*value).to_owned()]))
            .collect();
        axes.extend(AXES.iter().filter(|(name, values)| is_open(name, values)).map(
            |(name, values)| ((*name).to_owned(), values.iter().map(ToString::to_string).collect()),
        ));
        let entry = |axes| Entry {
            forks: Forks::of(1),
            budget: Seconds::of_ms(1),
            repetitions_min: Repetitions::of(1),
            ..Entry::new(*workload, axes)
        };
        let mut all = vec![entry(axes.clone())];
        // What does not depend on the page size: with the smallest, one parameter at a time.
        for (_, name) in EVERY_VALUE.iter().filter(|(of, _)| *of == workload.name()) {
            let mut base: Vec<_> = axes.clone();
            base.retain(|(name, _)| name != "page");
            let param = workload.params().iter().find(|param| param.name == *name);
            base.extend(param.map(|param| ((*name).to_owned(), param.choices())));
            all.push(entry(base));
        }
        for (_, values) in TOGETHER.iter().filter(|(of, _)| *of == workload.name()) {
            let mut both: Vec<_> = axes.clone();
            both.retain(|(name, _)| values.iter().all(|(given, _)| given != name));
            let owned = |values: &str| values.split(',').map(str::to_owned).collect();
            both.extend(values.iter().map(|(name, values)| ((*name).to_owned(), owned(values))));
            all.push(entry(both));
        }
        all
    });
    Suite {
        name: "check".to_owned(),
        summary: String::new(),
        published: Vec::new(),
        entries: entries.collect(),
    }
}

const NOT_OK: &str = "not ok";

/// The word, and what there is to say, of each outcome.
fn verdict(outcome: &Outcome) -> (&'static str, String) {
    match outcome {
        Outcome::Measured(measured) => match measured.broken().next() {
            None => ("ok", format!("{} claims hold", measured.witness.len())),
            Some(Claim { claim, arm, expected, observed, .. }) => {
                (NOT_OK, format!("{claim} ({arm}): expected {expected}, observed {observed}"))
            }
        },
        Outcome::Skipped { need, cure } => ("skip", format!("needs {need}: {cure}")),
        Outcome::Failed { reason } => (NOT_OK, reason.clone()),
    }
}

/// The same of both attempts, where there were two.
fn of_both(outcome: &Outcome, first: Option<&str>) -> (&'static str, String) {
    let (word, note) = verdict(outcome);
    match first {
        None => (word, note),
        Some(first) => (word, format!("{note}; the first attempt: {first}")),
    }
}

fn plain(plan: &Plan, answers: &[Answer]) -> String {
    let lines = plan.cases.iter().zip(answers).map(|(planned, answer)| {
        let (word, note) = of_both(&answer.last.outcome, answer.first.as_deref());
        format!("{word:<6}  {}: {note}\n", progress::brief(planned))
    });
    lines.collect()
}

/// The kernel's test protocol: version, plan, one line a case, diagnostics behind `#`.
fn ktap(plan: &Plan, answers: &[Answer]) -> String {
    let mut text = format!("KTAP version 1\n1..{}\n", plan.cases.len());
    for (number, (planned, answer)) in (1..).zip(plan.cases.iter().zip(answers)) {
        let name = progress::brief(planned);
        text.push_str(&match of_both(&answer.last.outcome, answer.first.as_deref()) {
            ("skip", note) => format!("ok {number} {name} # SKIP {note}\n"),
            (word, note) => format!("# {note}\n{word} {number} {name}\n"),
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use pagelab_record::{Measured, vocabulary};

    use super::*;

    fn measured(faults: i64) -> Outcome {
        let witness = vec![Claim::check(vocabulary::Check::MajorFaults, "pagelab", 2, faults, 0)];
        Outcome::Measured(Measured { witness, ..Measured::default() })
    }

    #[test]
    fn a_case_is_what_its_last_attempt_was_and_both_are_shown() {
        let (word, first) = verdict(&measured(3));
        assert_eq!(
            (word, first.as_str()),
            (NOT_OK, "major faults (pagelab): expected 2, observed 3")
        );
        let (word, note) = of_both(&measured(2), Some(&first));
        assert_eq!((word, note), ("ok", format!("1 claims hold; the first attempt: {first}")));
        let (word, note) = of_both(&measured(4), Some(&first));
        assert_eq!(word, NOT_OK);
        assert!(note.contains("observed 4; the first attempt") && note.ends_with("observed 3"));
    }
}
