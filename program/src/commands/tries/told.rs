//! Progress lines of `try` on stderr, one for each step.
//!
//! The verdict is the report's. Two lines look ahead: how long it will take, before the rounds, and
//! the best so far, after each round of the screen.

use crate::ladder::climb::{Estimate, Step};
use pagelab_record::{Outcome, units::display_ns, verdict::Ratio};

use pagelab_cli::output;

/// Tells of a step.
pub(super) fn say(step: &Step<'_>, rounds: u32) {
    match step {
        Step::Round(_, []) => return,
        Step::Planned(estimate) => {
            if let Some(text) = estimated(estimate) {
                output::warn(&text);
            }
            return;
        }
        _ => (),
    }
    let seconds = |ns: u64| ns as f64 / 1e9;
    output::warn(&match step {
        Step::Probed(ns) => format!("[first run] {:.2} s, which counts for nothing", seconds(*ns)),
        Step::Round(round, ran) => {
            let told = ran.iter().map(|(rung, ns)| format!("{rung} {:.2} s", seconds(*ns)));
            let told = told.collect::<Vec<_>>().join(", ");
            format!("[round {} of {rounds} at most] {told}", round + 1)
        }
        Step::Screened(rounds, standings) => first_answer(*rounds, standings),
        Step::Settled(rung, Outcome::Skipped { need, cure }) => {
            format!("{rung}: skipped, it needs {need} ({cure})")
        }
        Step::Settled(rung, Outcome::Failed { reason }) => format!("{rung}: failed: {reason}"),
        Step::Settled(rung, Outcome::Measured(_)) => format!("{rung}: done"),
        Step::Late(rung, ns, is_all) => {
            let took = format!("{rung}: took longer than {:.2} s, and was ended", seconds(*ns));
            if *is_all { took } else { format!("{took} with the budget") }
        }
        Step::Disturbed(rung, changed, is_repeated) => {
            let then =
                if *is_repeated { "it is run again" } else { "it is left out of this round" };
            format!("{rung}: {changed} while it ran, so {then}")
        }
        Step::Planned(_) => return,
    });
}

/// An experiment that is longer is announced.
const LONG_NS: u64 = 60_000_000_000;

/// How long it will take, where that is long or more than the budget.
fn estimated(estimate: &Estimate) -> Option<String> {
    let Estimate { variants, first_round, run_ns, screen_ns, finals_ns, left_ns } = *estimate;
    let time = |ns: u64| display_ns(ns as f64);
    let of = format!("[estimate] {variants} variants, about {} a run", time(run_ns));
    match left_ns {
        None if screen_ns + finals_ns > LONG_NS => Some(format!(
            "{of}: {} for the first two rounds, then {} for the best; --budget SECONDS ends it \
             earlier",
            time(screen_ns),
            time(finals_ns)
        )),
        Some(left) if run_ns.saturating_mul(2) > left => Some(format!(
            "{of}: the budget is too short for two runs, which take {}; without them there is no \
             answer, so they run",
            time(run_ns * 2)
        )),
        Some(left) if first_round < variants => Some(format!(
            "{of}: the {} that are left have room for {first_round} of them",
            time(left)
        )),
        _ => None,
    }
}

/// The best so far.
fn first_answer(rounds: u32, standings: &[(String, Ratio)]) -> String {
    let change = |ratio: f64| format!("{:+.0} %", (ratio - 1.0) * 100.0).replace('-', "\u{2212}");
    let told = standings.iter().map(|(rung, Ratio { value, low, high, .. })| {
        let spread = (low < high).then(|| format!(" ({} to {})", change(*low), change(*high)));
        format!("{rung} {}{}", change(*value), spread.unwrap_or_default())
    });
    let told = told.collect::<Vec<_>>().join(", ");
    let plural = if rounds == 1 { "" } else { "s" };
    let what = "time relative to what is set up";
    format!("[first answer] {what}, {rounds} round{plural}, not sure yet: {told}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn what_takes_long_or_does_not_fit_is_said_before_it_runs() {
        let of = |variants: usize, left: Option<u64>| {
            estimated(&Estimate {
                variants: 18,
                first_round: variants,
                run_ns: 12 * SECOND,
                screen_ns: 18 * 24 * SECOND,
                finals_ns: 600 * SECOND,
                left_ns: left.map(|left| left * SECOND),
            })
        };
        assert!(of(18, None).unwrap().contains("--budget"));
        assert!(of(3, Some(70)).unwrap().contains("room for 3"));
        assert!(of(2, Some(20)).unwrap().contains("too short"));
        assert_eq!(of(18, Some(3000)), None);
    }
}
