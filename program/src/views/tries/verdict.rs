//! The verdict on a program: a variant is faster, nothing helps, or it is undecided.
//!
//! "Leave it as it is" needs intervals that exclude a gain worth having. Where one does not, the
//! verdict is undecided: the best candidate, its interval, and what would decide it.

use pagelab_record::{
    Clock,
    asked::Rung,
    units::display_ns,
    verdict::{Better, Question, Ratio, judge},
    vocabulary::tried,
};

use super::{Row, Tried, change};

/// What an experiment comes to.
pub(super) enum Conclusion<'t, 'r> {
    /// Some variants are faster, each the best of a reach.
    Faster(Vec<(&'static str, &'t Row<'r>)>),
    /// A gain is not excluded: the candidates, the best first. None where no variant that could
    /// help has been tried.
    Undecided(Vec<Candidate<'t, 'r>>),
    /// A gain worth having is excluded.
    Nothing,
}

/// A variant that may be faster.
pub(super) struct Candidate<'t, 'r> {
    pub(super) row: &'t Row<'r>,
    pub(super) ratio: Ratio,
    /// Rounds that would decide it; `None` where no number would.
    pub(super) needs: Option<u32>,
}

impl<'r> Tried<'r> {
    pub(super) fn conclusion(&self) -> Conclusion<'_, 'r> {
        let answers = self.answers();
        if !answers.is_empty() {
            return Conclusion::Faster(answers);
        }
        let mut candidates: Vec<_> = self.rows.iter().filter_map(|r| self.candidate(r)).collect();
        candidates.sort_by(|one, other| {
            self.less(one.ratio.value).total_cmp(&self.less(other.ratio.value))
        });
        let is_all_tried = self.untried().next().is_none();
        // Beside what was not tried, what does not even look better is no candidate.
        let looks_better = |of: &Candidate<'_, '_>| self.less(of.ratio.value) < 1.0 - self.delta;
        candidates.retain(|candidate| is_all_tried || looks_better(candidate));
        if candidates.is_empty() && is_all_tried {
            Conclusion::Nothing
        } else {
            Conclusion::Undecided(candidates)
        }
    }

    /// The variants that were left out, with the nanoseconds that one run is expected to take.
    pub(super) fn untried(&self) -> impl Iterator<Item = (&Row<'r>, u64)> {
        let time = |row: &'_ Row<'r>| row.entry.counter(Rung::UNTRIED_NS);
        self.rows
            .iter()
            .filter(|row| row.rounds == 0)
            .filter_map(move |row| Some((row, time(row)?)))
    }

    /// What is said of a variant of which a run was ended after so long.
    pub(super) fn too_slow(&self, ns: f64) -> String {
        let usual = self.named(tried::AS_SET_UP);
        let usual = usual.and_then(|row| row.middle(tried::ELAPSED, Clock::Wall));
        let usual = usual.map(|ns| format!("; as set up it takes {}", display_ns(ns)));
        let usual = usual.unwrap_or_default();
        format!("took longer than {}, and was ended{usual}", display_ns(ns))
    }

    /// A variant that is not judged faster and whose gain is not excluded either.
    fn candidate<'t>(&'t self, row: &'t Row<'r>) -> Option<Candidate<'t, 'r>> {
        let ratio = row.screened.filter(|_| row.rung.name != tried::FIT_NONE)?;
        let worth = 1.0 - self.delta;
        let most =
            [ratio.low, ratio.high].map(|end| self.less(end)).into_iter().reduce(f64::min)?;
        let is_excluded = match row.now {
            Some(_) => ratio.interval().is_some() && most >= worth,
            // The finalists looked better; a screen has no interval.
            None => self.less(ratio.value) >= worth,
        };
        let alone = || judge(&[self.question(ratio)], self.delta).first()?.needs;
        let needs = row.now.map_or_else(alone, |now| now.judged.needs);
        (!is_excluded).then_some(Candidate { row, ratio, needs })
    }

    fn question(&self, ratio: Ratio) -> Question {
        let better = self.goals.first().map_or(Better::Less, |goal| goal.better);
        Question { ratio, better, look: Some(1) }
    }
}

impl Candidate<'_, '_> {
    /// `thp-always −71.0 %`.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.row.rung.name, change(self.ratio.value))
    }

    /// `−73.0 % to −70.0 % in 3 rounds`.
    pub(super) fn spread(&self) -> String {
        let [low, high] = [self.ratio.low, self.ratio.high].map(change);
        match self.ratio.units[0] {
            1 => "one round".to_owned(),
            rounds => format!("{low} to {high} in {rounds} rounds"),
        }
    }

    /// The flags that would decide it, with about how long that takes.
    pub(super) fn remedy(&self, tried: &Tried<'_>) -> String {
        let Some(rounds) = self.needs else {
            return "no number of rounds would decide it".to_owned();
        };
        if tried.pid.is_some() {
            return format!("--rounds {rounds} would decide it");
        }
        let name = &self.row.rung.name;
        let variants = [tried::PLAIN, tried::AS_SET_UP, name.as_str()];
        let run_ns = |name: &str| tried.named(name)?.middle(tried::ELAPSED, Clock::Wall);
        let round_ns: f64 = variants.into_iter().filter_map(run_ns).sum();
        // Its own first and watched runs, and what lies between runs.
        let ns = (f64::from(rounds) + 2.0) * round_ns * 1.5;
        let more =
            if rounds > tried.rounds { format!(" --rounds {rounds}") } else { String::new() };
        let flag = match name.as_str() {
            tried::PLAIN | tried::AS_SET_UP => String::new(),
            name => format!("--rung {name} "),
        };
        let seconds = (ns / 1e10).ceil() * 10.0;
        format!(
            "{flag}--budget {seconds:.0}{more} would decide it: about {rounds} rounds, {}",
            display_ns(f64::from(rounds) * round_ns)
        )
    }
}
