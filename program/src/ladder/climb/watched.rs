//! One run of the program that `explain` watches, so that what it predicts stands beside what came.
//!
//! It is watched as it is set up, and asked what larger pages would have made of the faults that it
//! still takes: pages that it asks for itself, and those of files, are as in every variant. On a
//! machine that gives everybody pages of 2 MiB, and where a variant is fit to it, it is watched on
//! base pages. It comes behind the first run, when the caches are as warm as in every round, and
//! before all rounds; nothing of it is compared.

use pagelab_record::{Case, Outcome, Record, vocabulary::tried};

use super::{Climb, Ended, Rung};
use crate::{
    explain::{self, watch::Watched},
    fit::{self, logged::Logged},
    ladder::{attend::Stopped, once::Run, rungs},
    made,
    settings::Settings,
};

/// The watched run is taken to be this many times as long as the first one: a program that does
/// little but fault took 3.5 times as long.
const TRACED: u64 = 4;
/// The watched run may take one part of this many of the time left.
const SHARE: u64 = 2;

impl Climb<'_> {
    /// Nanoseconds that have to be left for a watched run, so that it leaves most to the rounds.
    pub fn watched_ns(&self) -> u64 {
        self.facts.as_ref().map_or(0, |facts| facts.elapsed_ns * TRACED * SHARE)
    }

    /// Runs the program once more and receives its faults; the record of them, or why
    /// there are none, and that of its units of memory where a rung is to be fit to them.
    ///
    /// # Errors
    /// When the user interrupts.
    pub fn watched(&mut self, run: &str) -> Result<Vec<Record>, Ended> {
        let base = self.watched_rung();
        let case = Case::default().with("program", &self.program.line()).with("rung", base);
        let mut units = None;
        let watch = self.watch(base)?.map(|(mut watched, logged)| {
            let firsts = watched.seen.firsts.take();
            let unknown = watched.unknown();
            units = firsts.zip(logged).map(|(firsts, logged)| {
                fit::record::units(run, case.clone(), &logged, (&firsts, unknown))
            });
            watched
        });
        let outcome = match watch {
            Ok(Watched { told: Err(why), .. }) => Outcome::Skipped {
                need: format!("perf events of the program, for what explain predicts ({why})"),
                cure: CURE.to_owned(),
            },
            Ok(watched) => Outcome::Measured(explain::record::measured(&watched)),
            Err(outcome) => outcome,
        };
        let record = made::record(run, explain::WORKLOAD, case, outcome);
        Ok([record].into_iter().chain(units).collect())
    }

    /// The variant that is watched.
    fn watched_rung(&self) -> &'static str {
        let is_base = |rung: &&Rung| {
            rung.offer.rung.name == tried::AS_SET_UP && rung.offer.rung.knob.is_none()
        };
        let fits = self.fits() && self.rungs.iter().any(|rung| rung.offer.rung.name == tried::FIT);
        if !fits && self.rungs.iter().any(|rung| is_base(&rung)) {
            tried::AS_SET_UP
        } else {
            tried::PLAIN
        }
    }

    fn watch(&mut self, base: &str) -> Result<Result<(Watched, Option<Logged>), Outcome>, Ended> {
        let failed = |reason: &str| Err(Outcome::Failed { reason: reason.to_owned() });
        let limit_ns = self.planner.left_ns(self.spent_ns()).map(|left| left / SHARE);
        let fits = self.fits();
        let Self { program, rungs, facts, around, minder, .. } = self;
        let fit = rungs.iter().find(|rung| fits && rung.offer.rung.name == tried::FIT);
        let fit = fit.map(|rung| rung.offer.start.clone());
        let plain = rungs.iter_mut().find(|rung| rung.offer.rung.name == base);
        let (Some(plain), Some(facts)) = (plain, facts) else {
            return Ok(failed("it never ran as it is set up"));
        };
        let start = &plain.offer.start;
        let start = fit.map_or_else(|| start.clone(), |fit| rungs::watched(start, &fit));
        let run = Run {
            program,
            start: &start,
            usual_ns: Some(facts.elapsed_ns),
            limit_ns,
            exit: Some(facts.exit),
            around,
            // Nor is the first run under a limit.
            group: None,
            mark: minder.mark(),
            is_watched: true,
        };
        let came = run.once(&mut plain.streams);
        let changed = self.settings.disturbed(&Settings::of_faults());
        let skipped =
            |need: String, cure: &str| Err(Outcome::Skipped { need, cure: cure.to_owned() });
        Ok(match (came, changed) {
            (Err(Stopped::Interrupted), _) => return Err(Ended::Interrupted),
            (_, Some(changed)) => {
                let need = format!("settings that stay while the program is watched: {changed}");
                skipped(need, "let that end and try again; --wait waits for another run of pagelab")
            }
            (Ok(once), None) => match once.watched {
                Some(watched) => Ok((watched, once.logged)),
                None => failed("nobody watched it"),
            },
            (Err(Stopped::Late(s)), None) if limit_ns.is_some() => {
                let need =
                    format!("a budget of which half is enough for a watched run: {s:.0} s are not");
                skipped(need, "a larger --budget, or --no-prediction")
            }
            (Err(stopped), None) => failed(&stopped.to_string()),
        })
    }
}

/// How perf is had where it is not allowed.
const CURE: &str = "sysctl kernel.perf_event_paranoid=2, or run as root; in a container: allow \
    perf_event_open in its seccomp profile";
