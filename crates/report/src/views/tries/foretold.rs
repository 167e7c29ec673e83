//! What `explain` had predicted of a rung, beside what came.
//!
//! The one idea: both are CPU time saved beside base pages, because what larger pages save of
//! faults is time on the CPU, of all threads together. A prediction stands alone where the rung was
//! not run, or its pages did not come: what nobody tried is no result. How far the two may lie
//! apart is told in the time in faults, of which a prediction is a part.

use pagelab_record::{Clock, Outcome, asked::Asked, units::display_ns, vocabulary::tried};
use serde_json::{Value, json};

use super::{Row, Tried, took::Took};
use crate::{Block, Cell, Grid, Note, Quantity, Run, Table, Tone, Unit, views::explain};

/// So far from the prediction, as a share of the time in faults, is as good as predicted.
const NEAR: f64 = 0.15;
/// Pages that did not come saved nothing.
const DID_NOT_TAKE: &str = "did not take";
/// What an interval covers that decides anything.
const COVERAGE: f64 = 0.95;

/// A prediction with what came of it.
#[derive(Debug)]
pub(crate) struct Foretold {
    rung: String,
    knob: String,
    /// Time in the faults of the watched run.
    stall: Quantity,
    /// Time in its page walks, where they were seen.
    translation: Option<Quantity>,
    /// Time that was to be saved; `None` without a price.
    predicted: Option<explain::Saving>,
    came: Came,
}

/// What came of a prediction.
#[derive(Debug, Clone, Copy)]
enum Came {
    /// So much CPU time was saved.
    Saved(Quantity),
    /// Its pages did not come, so that it was the program as it is.
    DidNotTake,
    /// Nothing that could stand beside it; why.
    Nothing(&'static str),
}

/// How a prediction and what came go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agreement {
    /// What came lies in the interval of the prediction.
    Inside,
    /// It lies no farther from it than [`NEAR`] of the time in faults.
    Near,
    /// More rounds would have to tell.
    Open,
    /// It does not.
    Off,
    /// One of them is surely a gain, the other surely a loss.
    Opposite,
}

impl Agreement {
    /// The word in JSON.
    fn name(self) -> &'static str {
        match self {
            Self::Inside => "inside",
            Self::Near => "near",
            Self::Open => "open",
            Self::Off => "off",
            Self::Opposite => "opposite",
        }
    }

    fn cell(self) -> Cell {
        match self {
            Self::Inside => Cell::toned("inside its interval", Tone::Good),
            Self::Near => Cell::toned("within 15 % of the stall", Tone::Good),
            Self::Open => Cell::toned("open: too few rounds", Tone::Quiet),
            Self::Off => Cell::toned("off", Tone::Warn),
            Self::Opposite => Cell::toned("wrong sign", Tone::Bad),
        }
    }
}

impl Foretold {
    /// Every rung of a run that does what `explain` knows, where a prediction was made.
    pub(crate) fn all(run: &Run) -> Vec<Self> {
        let predicted = explain::Predicted::of(&run.aside);
        let (Some(tried), Some(predicted)) = (Tried::of(run), predicted) else { return Vec::new() };
        let plain_ns = tried.named(tried::PLAIN).and_then(|row| row.middle(tried::CPU, Clock::Cpu));
        let of = |row: &Row<'_>| {
            let knob = row.rung.knob.clone()?;
            let (rung, came) = (row.rung.name.clone(), Came::of(row, plain_ns));
            let explain::Predicted { stall, translation, .. } = predicted;
            let predicted = predicted.saved(&knob);
            Some(Self { rung, knob, stall, translation, predicted, came })
        };
        tried.rows.iter().filter_map(of).collect()
    }

    /// What was predicted, and what was saved of it, where both are known.
    fn pair(&self) -> Option<[Quantity; 2]> {
        let saved = match self.came {
            Came::Saved(saved) => saved,
            // That nothing was saved is no estimate.
            Came::DidNotTake => Quantity { coverage: 1.0, ..Quantity::exact(0.0, Unit::Ns) },
            Came::Nothing(_) => return None,
        };
        Some([self.predicted?.in_all, saved])
    }

    /// What a prediction is a part of: the time in faults, and in page walks where they were seen.
    fn whole(&self) -> f64 {
        self.stall.value + self.translation.map_or(0.0, |translation| translation.value)
    }

    /// How far what came lies above what was predicted, as a share of what it is a part of.
    fn off_by(&self) -> Option<f64> {
        let [predicted, came] = self.pair()?;
        (self.whole() > 0.0).then(|| (came.value - predicted.value) / self.whole())
    }

    fn agreement(&self) -> Option<Agreement> {
        let [predicted, came] = self.pair()?;
        Some(agreement(predicted, came, self.whole() * NEAR))
    }

    /// For programs.
    pub(crate) fn value(&self) -> Value {
        let (came, why) = match self.came {
            Came::Saved(saved) => (Some(saved), None),
            Came::DidNotTake => (None, Some(DID_NOT_TAKE)),
            Came::Nothing(why) => (None, Some(why)),
        };
        json!({
            "rung": self.rung,
            "knob": self.knob,
            "stall": self.stall,
            "translation": self.translation,
            "predicted": self.predicted.map(|saving| saving.in_all),
            "predicted_faults": self.predicted.map(|saving| saving.faults),
            "predicted_given_back": self.predicted.and_then(|saving| saving.given_back),
            "predicted_translation": self.predicted.and_then(|saving| saving.translation),
            "at_most": self.predicted.is_some_and(|saving| saving.at_most),
            "came": came,
            "nothing_came": why,
            "off_by_share_of_stall": self.off_by(),
            "agreement": self.agreement().map(Agreement::name),
        })
    }
}

/// How two savings go together that may lie so far apart.
fn agreement(predicted: Quantity, came: Quantity, near: f64) -> Agreement {
    let is_sure = came.coverage >= COVERAGE - 1e-9;
    let opposite =
        (predicted.low > 0.0 && came.high < 0.0) || (predicted.high < 0.0 && came.low > 0.0);
    let meets = came.low <= predicted.high + near && came.high >= predicted.low - near;
    if (predicted.low..=predicted.high).contains(&came.value) {
        Agreement::Inside
    } else if (came.value - predicted.value).abs() <= near {
        Agreement::Near
    } else if !is_sure {
        Agreement::Open
    } else if opposite {
        Agreement::Opposite
    } else if meets && came.low < came.high {
        Agreement::Open
    } else {
        Agreement::Off
    }
}

impl Came {
    fn of(row: &Row<'_>, plain_ns: Option<f64>) -> Self {
        match (&row.took, row.cpu, plain_ns) {
            (Took::NotRun, ..) if matches!(row.entry.record.outcome, Outcome::Failed { .. }) => {
                Self::Nothing("failed")
            }
            (Took::NotRun, ..) => Self::Nothing("not tried"),
            (Took::Late(_), ..) => Self::Nothing("took too long"),
            (Took::No(_), ..) => Self::DidNotTake,
            (Took::Unseen(_), ..) => Self::Nothing("not proven"),
            (_, Some(ratio), Some(plain)) => Self::Saved(Quantity {
                value: (1.0 - ratio.value) * plain,
                low: (1.0 - ratio.high) * plain,
                high: (1.0 - ratio.low) * plain,
                coverage: ratio.coverage,
                processes: ratio.units[0],
                unit: Unit::Ns,
            }),
            _ => Self::Nothing("no round of base pages beside it"),
        }
    }
}

/// Predictions beside what came, or why there are none.
pub(super) fn blocks(run: &Run) -> Vec<Block> {
    let Some(Asked::Try(asked)) = &run.header.asked else { return Vec::new() };
    if !asked.predicts {
        return Vec::new();
    }
    let foretold = Foretold::all(run);
    // A budget may leave no time for prices.
    if foretold.iter().all(|told| told.predicted.is_none()) {
        return unpredicted(run, asked.budget_ns.is_some()).into_iter().collect();
    }
    vec![
        Block::Heading("What explain had predicted, and what came".to_owned()),
        Block::Table(table(&foretold)),
        Block::Text(legend(&foretold)),
    ]
}

/// What the columns are, and what is in neither.
fn legend(foretold: &[Foretold]) -> String {
    let has = |what: fn(&explain::Saving) -> bool| {
        foretold.iter().filter_map(|told| told.predicted.as_ref()).any(what)
    };
    let what = if foretold.iter().any(|told| told.translation.is_some()) {
        "the time in faults and in translation"
    } else {
        "the time in faults (the stall)"
    };
    let given_back = if has(|saving| saving.given_back.is_some()) {
        "What giving pages back costs is in both."
    } else {
        "The giving back of pages is in what came and in no prediction."
    };
    let translation = if foretold.iter().any(|told| told.translation.is_some()) {
        ""
    } else {
        " Translation (TLB misses) was not sampled: it is in what came and in no prediction."
    };
    format!(
        "Both: CPU time saved beside base pages. Predicted: by explain, of one more run with base \
         pages that was watched before any round and counts for nothing, and from what such faults \
         and page walks cost here. Came: of the rounds, with its 95 % interval, or of a screen \
         what it spans. Off by: what came less what was predicted, as a share of {what}; what did \
         not take saved nothing. {given_back}{translation}"
    )
}

fn table(foretold: &[Foretold]) -> Table {
    let percent = |share: f64| format!("{}{:.0} %", sign(share), share.abs() * 100.0);
    Grid::<&Foretold>::new()
        .words("rung", 0, |told| Cell::from(told.rung.clone()).strong())
        .number("predicted", 0, |told| match told.predicted {
            Some(explain::Saving { in_all, at_most: true, .. }) => {
                format!("at most {}", signed(in_all.high))
            }
            Some(explain::Saving { in_all, .. }) => spanned(in_all),
            None => "no price".to_owned(),
        })
        .only_if(foretold.iter().any(|told| told.translation.is_some()), |grid| {
            grid.number("of that translation", 2, |told| {
                told.predicted.and_then(|saving| saving.translation).map(spanned)
            })
        })
        .number("came", 0, |told| match told.came {
            Came::Saved(saved) => Cell::from(spanned(saved)).strong(),
            Came::DidNotTake => Cell::toned(DID_NOT_TAKE, Tone::Warn),
            Came::Nothing(why) => Cell::toned(why, Tone::Quiet),
        })
        .number("off by", 1, |told| told.off_by().map(percent))
        .number("time in faults", 2, |told| told.stall.display())
        .only_if(foretold.iter().any(|told| told.translation.is_some()), |grid| {
            grid.number("in translation", 2, |told| told.translation.map(spanned))
        })
        .words("so", 0, |told| told.agreement().map_or_else(Cell::none, Agreement::cell))
        .table(foretold)
}

fn sign(value: f64) -> &'static str {
    if value < 0.0 { "\u{2212}" } else { "" }
}

fn signed(ns: f64) -> String {
    format!("{}{}", sign(ns), display_ns(ns.abs()))
}

/// `210 ms (190 ms to 230 ms)`.
fn spanned(saved: Quantity) -> String {
    let [value, low, high] = [saved.value, saved.low, saved.high].map(signed);
    if low == high { value } else { format!("{value} ({low} to {high})") }
}

/// Why nothing was predicted, and what would help.
fn unpredicted(run: &Run, is_limited: bool) -> Option<Block> {
    let mut watched = run.all().filter(|entry| entry.record.workload == explain::WORKLOAD);
    let is_priced = run.all().any(|entry| entry.record.workload.starts_with("fault/"));
    let note =
        |text: &str, cure: &str| Block::Note(Note::warn("no prediction", text.to_owned(), cure));
    let watched = watched.next().map(|entry| &entry.record.outcome);
    let is_kept_back = matches!(watched, None | Some(Outcome::Measured(_)));
    if is_limited && !is_priced && is_kept_back {
        return Some(note("--budget had no time for what faults cost here", "a larger --budget"));
    }
    Some(match watched? {
        Outcome::Skipped { need, cure } => note(&format!("it needs {need}"), cure),
        Outcome::Failed { reason } => note(&format!("the watched run: {reason}"), ""),
        Outcome::Measured(measured) if !measured.is_valid() => {
            note("the watched run failed its proof", "pagelab explain -- PROGRAM says more")
        }
        Outcome::Measured(_) => {
            note("no fault that it took has a price here, or no rung does what explain knows", "")
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn saving([low, value, high]: [f64; 3]) -> Quantity {
        Quantity { value, low, high, coverage: 0.95, processes: 12, unit: Unit::Ns }
    }

    #[test]
    fn what_came_is_judged_by_the_interval_of_the_prediction_and_by_the_stall() {
        let predicted = saving([90.0, 100.0, 110.0]);
        let came = |ends| agreement(predicted, saving(ends), 15.0);
        assert_eq!(came([95.0, 109.0, 130.0]), Agreement::Inside);
        assert_eq!(came([112.0, 114.0, 116.0]), Agreement::Near);
        assert_eq!(came([60.0, 70.0, 80.0]), Agreement::Open);
        assert_eq!(came([60.0, 65.0, 70.0]), Agreement::Off);
        assert_eq!(came([-30.0, -20.0, -10.0]), Agreement::Opposite);
        // What did not take is known to the bit.
        assert_eq!(came([0.0; 3]), Agreement::Off);
        let screened = Quantity { coverage: 0.5, ..saving([-30.0, -20.0, -10.0]) };
        assert_eq!(agreement(predicted, screened, 15.0), Agreement::Open);
    }

    proptest! {
        #[test]
        fn what_comes_as_predicted_is_always_right(
            value in -1e9_f64..1e9,
            below in 0.0_f64..1e9,
            above in 0.0_f64..1e9,
            near in 0.0_f64..1e9,
        ) {
            let predicted = saving([value - below, value, value + above]);
            let came = agreement(predicted, saving([value - 1.0, value, value + 1.0]), near);
            prop_assert_eq!(came, Agreement::Inside);
        }

        #[test]
        fn a_wrong_sign_is_never_called_right_beyond_what_is_near(
            low in 1.0_f64..1e9, width in 0.0_f64..1e9, loss in 1.0_f64..1e9,
        ) {
            let predicted = saving([low, low + width / 2.0, low + width]);
            let came = saving([-loss * 1.1, -loss, -loss * 0.9]);
            prop_assert_eq!(agreement(predicted, came, 0.0), Agreement::Opposite);
        }
    }
}
