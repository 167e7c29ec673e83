//! What `explain` predicted of a variant, compared with what was measured.
//!
//! Both are CPU time saved relative to the variant that was watched, of all threads together,
//! because a fault that is spared saves time on the CPU. The error is the measured saving less the
//! predicted one, in time and as a share of the time in faults and in translation of the watched
//! run, of which a prediction is a part ([`Foretold::error`]). A variant that was not run has a
//! prediction and no error; one whose pages did not come saved nothing.

use pagelab_record::{Clock, Outcome, asked::Asked, units::display_ns, vocabulary::tried};
use serde_json::{Value, json};

use super::{Row, Tried, took::Took};
use crate::views::explain;
use pagelab_record::vocabulary::parameter;
use pagelab_report::{Block, Cell, Entry, Grid, Note, Quantity, Run, Table, Tone, Unit};

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

    /// The word in the table; an error that a wide interval holds is no good one.
    fn cell(self, error: f64) -> Cell {
        let tone = if error.abs() <= NEAR { Tone::Good } else { Tone::Plain };
        match self {
            Self::Inside => Cell::toned("within its interval", tone),
            Self::Near => Cell::toned("within 15 %", Tone::Good),
            Self::Open => Cell::toned("undecided", Tone::Quiet),
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
        let base = tried.named(tried.watched);
        let base_ns = base.and_then(|row| row.middle(tried::CPU, Clock::Cpu));
        let of = |row: &Row<'_>| {
            let knob = row.rung.knob.clone()?;
            let (rung, came) = (row.rung.name.clone(), Came::of(row, base_ns));
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

    /// The measured saving less the predicted one, in nanoseconds and as a share of
    /// [`Self::whole`].
    fn error(&self) -> Option<[f64; 2]> {
        let [predicted, came] = self.pair()?;
        let error = came.value - predicted.value;
        (self.whole() > 0.0).then(|| [error, error / self.whole()])
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
            "error_ns": self.error().map(|[ns, _]| ns),
            "off_by_share_of_stall": self.error().map(|[_, share]| share),
            "agreement": self.agreement().map(Agreement::name),
        })
    }
}

/// Every prediction with what came of it, for programs.
pub(crate) fn predictions(run: &Run) -> Option<Value> {
    let all = Foretold::all(run);
    (!all.is_empty()).then(|| all.iter().map(Foretold::value).collect())
}

/// The variant that was watched before the rounds; earlier versions watched base pages.
pub(super) fn watched(aside: &[Entry]) -> &'static str {
    let is_it = |entry: &&Entry| entry.record.workload == explain::WORKLOAD;
    let rung = aside.iter().find(is_it).map_or("", |entry| entry.value(parameter::RUNG));
    if rung == tried::AS_SET_UP { tried::AS_SET_UP } else { tried::PLAIN }
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
    fn of(row: &Row<'_>, base_ns: Option<f64>) -> Self {
        match (&row.took, row.watched, base_ns) {
            (Took::NotRun, ..) if matches!(row.entry.record.outcome, Outcome::Failed { .. }) => {
                Self::Nothing("failed")
            }
            (Took::NotRun, ..) => Self::Nothing("not tried"),
            (Took::Late(_), ..) => Self::Nothing("took too long"),
            (Took::No(_), ..) => Self::DidNotTake,
            (Took::Unseen(_), ..) => Self::Nothing("not proven"),
            (_, Some(ratio), Some(base)) => Self::Saved(Quantity {
                value: (1.0 - ratio.value) * base,
                low: (1.0 - ratio.high) * base,
                high: (1.0 - ratio.low) * base,
                coverage: ratio.coverage,
                processes: ratio.units[0],
                unit: Unit::Ns,
            }),
            _ => Self::Nothing("no round of what was watched beside it"),
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
        Block::Heading("What explain predicted, and what was measured".to_owned()),
        Block::Table(table(&foretold)),
        Block::Text(legend(&foretold, watched(&run.aside))),
    ]
}

/// What the columns are, and what is in neither; the only place that says what an error is.
fn legend(foretold: &[Foretold], watched: &str) -> String {
    let has = |what: fn(&explain::Saving) -> bool| {
        foretold.iter().filter_map(|told| told.predicted.as_ref()).any(what)
    };
    let translation = foretold.iter().find_map(|told| told.translation);
    let whole = foretold.first().map_or(0.0, Foretold::whole);
    let stall = foretold.first().map(|told| told.stall.display()).unwrap_or_default();
    let parts = translation.map_or_else(
        || format!("faults ({stall})"),
        |translation| {
            let translation = translation.display();
            let whole = display_ns(whole);
            format!("faults and in translation ({stall} + {translation} = {whole})")
        },
    );
    let given_back = if has(|saving| saving.given_back.is_some()) {
        "What giving pages back costs is in both."
    } else {
        "What giving pages back costs is measured and not predicted."
    };
    let [base, of_base] = if watched == tried::PLAIN {
        ["base pages", "with base pages"]
    } else {
        ["the program as it is set up", "as it is set up"]
    };
    let unsampled = if translation.is_some() {
        ""
    } else {
        " Translation (TLB misses) was not sampled: it is measured and not predicted."
    };
    format!(
        "Both: CPU time saved compared with {base}. Predicted: by explain, of one more run \
         {of_base} that was watched before the rounds, and from what such faults and page \
         walks cost here. Measured: in the rounds, with its 95 % interval, or of a screen what it \
         spans; what did not take saved nothing. Error: measured less predicted, and as a share of \
         the watched run's time in {parts}. Undecided: more rounds may tell. {given_back}\
         {unsampled}"
    )
}

fn table(foretold: &[Foretold]) -> Table {
    let percent = |share: f64| format!("{}{:.0} %", plus(share), share.abs() * 100.0);
    let error = |[ns, share]: [f64; 2]| format!("{}{} ({})", plus(ns), time(ns), percent(share));
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
        .number("measured", 0, |told| match told.came {
            Came::Saved(saved) => Cell::from(spanned(saved)).strong(),
            Came::DidNotTake => Cell::toned(DID_NOT_TAKE, Tone::Warn),
            Came::Nothing(why) => Cell::toned(why, Tone::Quiet),
        })
        .number("error", 0, |told| told.error().map(error))
        .words("verdict", 1, |told| {
            let judged = told.agreement().zip(told.error());
            judged.map_or_else(Cell::none, |(agreement, [_, share])| agreement.cell(share))
        })
        .table(foretold)
}

fn plus(value: f64) -> &'static str {
    if value < 0.0 { "\u{2212}" } else { "+" }
}

/// A time without its sign; what is less than a nanosecond is none.
fn time(ns: f64) -> String {
    display_ns(if ns.abs() < 1.0 { 0.0 } else { ns.abs() })
}

fn signed(ns: f64) -> String {
    format!("{}{}", if ns <= -1.0 { "\u{2212}" } else { "" }, time(ns))
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
