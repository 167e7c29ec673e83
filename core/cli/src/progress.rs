//! What a person sees while a run goes on: a bar with an ETA on a terminal, lines elsewhere.
//!
//! There is no ticker and no thread: it is drawn when something happened (a process starts, a case
//! ends, a process counted operations), never while a repetition is timed. The bar's length is the
//! plan's estimated time, so the ETA corrects itself; where a piece of work knows its own end, its
//! own ETA stands beside.

use std::{
    io::{self, IsTerminal},
    ops::Range,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use pagelab_bench::{
    plan::{Plan, Planned},
    runner::Step,
    workload::Row,
};
use pagelab_record::{
    Case, Outcome, Record,
    units::{display_number, display_rate, whole},
};
use pagelab_report::visible;
use pagelab_sys::{process::Beat, time::monotonic_raw_ns};

use crate::output;

/// Nanoseconds between two lines about one piece of work where there is no terminal.
const LINE_NS: u64 = 10_000_000_000;

/// Draws the progress of a run.
#[derive(Debug)]
pub struct Progress {
    work: Work,
    cases: usize,
    done_ms: u64,
    /// The first process of the case that is being measured now.
    first: u32,
}

impl Progress {
    /// Starts drawing, or does not when `quiet`.
    pub fn start(plan: &Plan, quiet: bool) -> Self {
        let total = plan.cases.iter().map(estimated_ms).sum();
        Self { work: Work::of(total, "", quiet), cases: plan.cases.len(), done_ms: 0, first: 0 }
    }

    /// A case has come one step farther.
    pub fn step(&mut self, planned: &Planned, step: Step) {
        match step {
            Step::Process(process) => {
                self.work.speed = Speed::default();
                if let Some(bar) = &self.work.bar {
                    let forks = u64::from(planned.method.forks.max(1));
                    let share = u64::from(process - self.first) * estimated_ms(planned) / forks;
                    bar.set_message(visible(&brief(planned)));
                    bar.set_position(self.done_ms + share);
                    bar.tick();
                }
            }
            Step::Loading(beat) => {
                let what = format!("loading its trace: {}", brief(planned));
                self.work.tell(beat, self.done_ms, |speed| format!("{speed}, {what}"));
            }
            Step::Working(beat) => {
                // Of a piece of work that knows its end, the bar shows how far it is.
                let gone_ms = per_mille(beat) * estimated_ms(planned) / 1000;
                let what = brief(planned);
                self.work.tell(beat, self.done_ms + gone_ms, |speed| format!("{speed}: {what}"));
            }
        }
    }

    /// Processes of a case from this one on are measured next.
    pub fn begin(&mut self, first: u32) {
        self.first = first;
    }

    /// These processes of a case are done.
    pub fn part(&mut self, planned: &Planned, processes: Range<u32>) {
        let forks = u64::from(planned.method.forks.max(1));
        self.done_ms += estimated_ms(planned) * processes.len() as u64 / forks;
        if let Some(bar) = &self.work.bar {
            bar.set_position(self.done_ms);
        }
    }

    /// A case is done and its record is kept: whoever reads this line relies on it.
    pub fn case(&mut self, index: usize, planned: &Planned, outcome: &str) {
        if self.work.bar.is_none() && !self.work.quiet {
            output::warn(&format!("[{}/{}] {}: {outcome}", index + 1, self.cases, brief(planned)));
        }
        self.work.speed = Speed::default();
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.work.finish();
    }
}

/// Draws one piece of work that counts operations.
#[derive(Debug)]
pub struct Work {
    bar: Option<ProgressBar>,
    quiet: bool,
    what: String,
    speed: Speed,
}

impl Work {
    /// Starts drawing what is no case, or does not when `quiet`.
    pub fn start(what: &str, quiet: bool) -> Self {
        Self::of(1000, what, quiet)
    }

    fn of(total: u64, what: &str, quiet: bool) -> Self {
        Self { bar: bar(total, quiet), quiet, what: what.to_owned(), speed: Speed::default() }
    }

    /// It has come so far.
    pub fn beat(&mut self, beat: Beat) {
        let what = self.what.clone();
        self.tell(beat, per_mille(beat), |speed| format!("{what}: {speed}"));
    }

    /// So much of a whole is gone; drawn on a terminal only.
    pub fn so_far(&self, gone: u64, whole: u64, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_position(per_mille(Beat { position: gone, end: whole, ..Beat::default() }));
            bar.set_message(visible(what));
            bar.tick();
        }
    }

    /// Says how fast it is, and draws where it is if it knows its end.
    fn tell(&mut self, beat: Beat, position: u64, message: impl FnOnce(&str) -> String) {
        if self.quiet {
            return;
        }
        let Some(speed) = self.speed.of(beat) else { return };
        match &self.bar {
            Some(bar) => {
                if beat.end > 0 {
                    bar.set_position(position);
                }
                bar.set_message(visible(&message(&speed)));
                bar.tick();
            }
            None if self.speed.is_line_due() => output::warn(&message(&speed)),
            None => (),
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(total: u64, quiet: bool) -> Option<ProgressBar> {
    (!quiet && io::stderr().is_terminal()).then(|| {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr_with_hz(4));
        let template = "{bar:30.cyan/dim} {percent:>3}%  {elapsed} (about {eta} left)  {msg}";
        bar.set_style(ProgressStyle::with_template(template).expect("the template is ours"));
        bar
    })
}

/// How far a piece of work is, of a thousand.
fn per_mille(beat: Beat) -> u64 {
    let share = u128::from(beat.position) * 1000 / u128::from(beat.end.max(1));
    u64::try_from(share).map_or(1000, |share| share.min(1000))
}

/// How fast something goes, since its first beat.
#[derive(Debug, Default)]
struct Speed {
    first: Option<(u64, Beat)>,
    line_ns: u64,
    line_due: bool,
}

impl Speed {
    /// Operations a second, and what is left, in words; nothing at the first beat.
    fn of(&mut self, beat: Beat) -> Option<String> {
        self.of_at(beat, monotonic_raw_ns())
    }

    fn of_at(&mut self, beat: Beat, now: u64) -> Option<String> {
        let Some((start, first)) = self.first else {
            self.first = Some((now, beat));
            self.line_ns = now;
            return None;
        };
        self.line_due = now.saturating_sub(self.line_ns) >= LINE_NS;
        if self.line_due {
            self.line_ns = now;
        }
        let elapsed_s = now.saturating_sub(start) as f64 / 1e9;
        let rate = beat.ops.saturating_sub(first.ops) as f64 / elapsed_s.max(1e-9);
        let mut text = format!("{} operations, {}", millions(beat.ops), display_rate(rate));
        let gone = beat.position.saturating_sub(first.position) as f64;
        if beat.end > beat.position && gone > 0.0 {
            let left_s = (beat.end - beat.position) as f64 * elapsed_s / gone;
            text.push_str(&format!(", about {left_s:.0} s left"));
        }
        Some(text)
    }

    fn is_line_due(&self) -> bool {
        self.line_due
    }
}

fn millions(count: u64) -> String {
    format!("{} M", display_number(count as f64 / 1e6))
}

fn estimated_ms(planned: &Planned) -> u64 {
    whole(planned.estimated_seconds() * 1000.0) + 1
}

/// The case without what it leaves at its default.
pub fn brief(planned: &Planned) -> String {
    brief_case(planned.workload, &planned.case)
}

/// The same of a case alone.
pub fn brief_case(workload: Row, case: &Case) -> String {
    let mut text = workload.name().to_owned();
    for param in workload.params() {
        match case.get(param.name) {
            Some(value)
                if value != param.default
                    || matches!(param.name, "page" | "kind" | "level" | "trace") =>
            {
                text.push_str(&format!(" {}={}", param.name, shorter(value)));
            }
            _ => (),
        }
    }
    text
}

/// A list of many values by its first and its last.
fn shorter(value: &str) -> String {
    let parts: Vec<&str> = value.split(',').collect();
    match &parts[..] {
        [first, second, .., last] if parts.len() > 5 => {
            format!("{first},{second},…,{last} ({} values)", parts.len())
        }
        _ => value.to_owned(),
    }
}

/// What came of a case, in a few words.
pub fn outcome(record: &Record) -> String {
    match &record.outcome {
        Outcome::Measured(measured) => match measured.broken().next() {
            None => "measured".to_owned(),
            Some(claim) => format!("INVALID: {claim}"),
        },
        Outcome::Skipped { need, .. } => format!("skipped, needs {need}"),
        Outcome::Failed { reason } => format!("FAILED: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_from_what_is_done() {
        let mut speed = Speed::default();
        let beat = |ops, position| Beat { ops, position, end: 1000 };
        assert_eq!(speed.of_at(beat(0, 0), 5), None);
        let text = speed.of_at(beat(20_000_000, 250), 1_000_000_005).unwrap();
        assert_eq!(text, "20.0 M operations, 20.0 M/s, about 3 s left");
        assert!(!speed.is_line_due());
        let text = speed.of_at(beat(240_000_000, 1000), 12_000_000_005).unwrap();
        assert_eq!(text, "240 M operations, 20.0 M/s");
        assert!(speed.is_line_due());
    }

    #[test]
    fn a_long_list_is_named_by_its_ends() {
        assert_eq!(shorter("a,b,c,d,e,f"), "a,b,…,f (6 values)");
        assert_eq!(shorter("4,8,16,32"), "4,8,16,32");
    }

    #[test]
    fn a_share_never_exceeds_the_whole() {
        assert_eq!(per_mille(Beat { ops: 0, position: 7, end: 0 }), 1000);
        assert_eq!(per_mille(Beat { ops: 0, position: 1, end: 4 }), 250);
    }
}
