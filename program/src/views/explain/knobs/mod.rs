//! What would change if the memory came in another way.
//!
//! The one idea: each knob is arithmetic on what was counted and what was measured. A larger page
//! takes as many faults as blocks of its size would have come at the moment of a touch, and brings
//! along what nobody touched in them; what lay in no such block then is not promised. Populating
//! takes no faults and costs a call for each page. What cannot be known from here is an upper
//! bound and says so.

mod khugepaged;
mod others;
mod pages;

use pagelab_record::{
    Measured, Table,
    advice::{self, Setting},
    vocabulary::knob,
};

pub(super) use self::khugepaged::note;
use self::{
    others::{files, keep, populate, store_first},
    pages::{larger_pages, malloc_thp, mallocs, shared},
};
use super::{Group, priced::LARGE, prices::Prices, translation::Translation};
use pagelab_report::{Quantity, Unit};

/// One thing to change and what it would buy.
#[derive(Debug, Clone)]
pub(crate) struct Knob {
    /// What it is called in JSON and CSV.
    pub(crate) name: String,
    /// How to have it.
    pub(crate) advice: Advice,
    /// What would change.
    pub(crate) change: String,
    /// Time saved in faults; of an upper bound the value is the bound.
    pub(crate) saved: Quantity,
    /// Time saved in giving the pages back; `None` where that has no price, or nothing changes.
    pub(crate) given_back: Option<Quantity>,
    /// Time saved in translation; `None` where that was not seen, or nothing changes.
    pub(crate) translation: Option<Quantity>,
    /// Whether it is an upper bound.
    pub(crate) at_most: bool,
    /// Memory that would be taken and that nobody touched, in bytes; `None` where nobody knows.
    pub(crate) bytes: Option<f64>,
}

/// What to set.
#[derive(Debug, Clone)]
pub(crate) struct Advice {
    /// A word for it: the name of the variant that tries it, where there is one.
    pub(crate) id: String,
    /// What it is, in front of the settings.
    pub(crate) what: String,
    /// The settings of each way to have it, of which one will do. None where the program has to be
    /// changed by hand.
    pub(crate) ways: Vec<Vec<Setting>>,
}

impl Advice {
    fn of<const N: usize>(id: &str, what: &str, ways: [Vec<Setting>; N]) -> Self {
        Self { id: id.to_owned(), what: what.to_owned(), ways: ways.into() }
    }

    /// The sentence. What a program does for itself comes before what every program then has; of
    /// many settings the first stands for all.
    pub(crate) fn how(&self) -> String {
        let is_of_machine = |way: &&Vec<Setting>| way.iter().any(Setting::is_of_machine);
        let (machine, own): (Vec<_>, Vec<_>) = self.ways.iter().partition(is_of_machine);
        let steps = |way: &Vec<Setting>| match &way[..] {
            [first, others @ ..] if others.len() > 1 => {
                format!("{first} and {} more", others.len())
            }
            few => few.iter().map(ToString::to_string).collect::<Vec<_>>().join(", then "),
        };
        let ways: Vec<String> = own.into_iter().chain(machine).map(steps).collect();
        let between = if ways.is_empty() { "" } else { ": " };
        format!("{}{between}{}", self.what, ways.join(", or "))
    }
}

/// Larger pages for memory that asks for them.
fn madvise() -> Setting {
    Setting::call("madvise", "MADV_HUGEPAGE")
}

/// A file of transparent huge pages with a value.
fn thp_file(file: &str, value: &str) -> Setting {
    Setting::file(format!("{}/{file}", advice::THP), value)
}

/// What a change would come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The whole interval is a saving.
    Saves,
    /// The whole interval is a loss.
    Costs,
    /// It may be either, or is an upper bound.
    Unclear,
}

impl Outcome {
    /// Its word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Saves => "saves",
            Self::Costs => "costs",
            Self::Unclear => "unclear",
        }
    }
}

impl Knob {
    /// One that takes no memory and changes faults only.
    fn new(name: impl Into<String>, advice: Advice, change: String, saved: Quantity) -> Self {
        let name = name.into();
        let (given_back, translation, at_most, bytes) = (None, None, false, None);
        Self { name, advice, change, saved, given_back, translation, at_most, bytes }
    }

    /// Whether it saves anything, all savings and losses together.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.in_all() {
            all if all.high < 0.0 => Outcome::Costs,
            all if all.low > 0.0 && !self.at_most => Outcome::Saves,
            _ => Outcome::Unclear,
        }
    }

    /// All savings together.
    pub(crate) fn in_all(&self) -> Quantity {
        let others = [self.given_back, self.translation];
        others.into_iter().flatten().fold(self.saved, Quantity::plus)
    }
}

/// Every knob that would change something, the one that saves most first; behind them what changes
/// no fault.
pub(crate) fn knobs(measured: &Measured, groups: &[Group], prices: &Prices) -> Vec<Knob> {
    let mut knobs = all(measured, groups, prices);
    knobs.retain(|knob| knob.in_all().value != 0.0 || knob.name == knob::KHUGEPAGED);
    knobs.sort_by(|a, b| b.in_all().value.total_cmp(&a.in_all().value));
    knobs
}

/// Every knob of which anything can be said, also what would cost more than it saves.
pub(crate) fn all(measured: &Measured, groups: &[Group], prices: &Prices) -> Vec<Knob> {
    let mut knobs = larger_pages(measured, groups, prices);
    knobs.extend(malloc_thp(measured, groups, prices));
    knobs.extend(shared(measured, groups, prices));
    knobs.extend(populate(measured, groups, prices));
    knobs.extend(keep(measured, prices));
    knobs.extend(store_first(groups, prices));
    knobs.extend(files(groups));
    knobs.extend(khugepaged::late(measured));
    translated(&mut knobs, measured, prices);
    knobs
}

/// Adds what larger pages save of translation, also where they save no fault.
fn translated(knobs: &mut Vec<Knob>, measured: &Measured, prices: &Prices) {
    let translation = Translation::of(measured, &prices.walks);
    let Some(seen) = translation.as_ref().and_then(Translation::seen) else { return };
    let large = knob::page(LARGE);
    let whole = seen.saved(LARGE, [1.0; 2]);
    if !knobs.iter().any(|knob| knob.name == large) && whole.is_some() {
        let saved = Quantity { coverage: 1.0, ..Quantity::exact(0.0, Unit::Ns) };
        knobs.push(Knob::new(large, thp(), "no fault that has a price".to_owned(), saved));
    }
    for knob in knobs {
        knob.translation = match &*knob.name {
            knob::MALLOC_THP => seen.saved(LARGE, mallocs(measured)),
            name => knob::bytes_of(name).and_then(|bytes| seen.saved(bytes, [1.0; 2])),
        };
    }
}

/// How pages of 2 MiB are had.
fn thp() -> Advice {
    let ways = [vec![thp_file("enabled", "always")], vec![madvise()]];
    Advice::of("thp-always", "THP", ways)
}

/// Memory whose pages a program can have larger: of its own, without a file.
const PLACES: [&str; 3] = ["heap", "anonymous", "stack"];

/// First stores to base pages of a kind of memory.
fn first_writes<'g>(groups: &'g [Group], of: &str) -> Option<&'g Group> {
    groups.iter().find(|group| group.parts() == ["write", "4k", of])
}

/// Sums of a column over the rows of every place whose pages a knob decides.
pub(crate) fn density(measured: &Measured, column: &str) -> f64 {
    let mine = |table: &&Table| {
        table.name.strip_prefix("density/").is_some_and(|place| PLACES.contains(&place))
    };
    let of = |table: &Table| -> f64 {
        let Some(index) = table.index(column) else { return 0.0 };
        table.rows.iter().filter_map(|row| row.get(index)).map(|n| *n as f64).sum()
    };
    measured.tables.iter().filter(mine).map(of).fold(0.0, |sum, n| sum + n)
}
