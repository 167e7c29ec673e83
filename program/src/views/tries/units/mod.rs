//! Which mappings of a program are worth larger pages: what was chosen, what came, what to paste.
//!
//! The one idea: the choice was a prediction, so it is only told beside what it came to: the rung
//! of the chosen mappings and the best rung of all mappings are both set beside base pages, and
//! their gains and their memory beside each other ([`share`]).

mod share;

use pagelab_record::{
    Outcome,
    asked::Asked,
    units::{display_bytes, display_ns},
    vocabulary::tried,
};
use serde_json::{Value, json};

use self::share::{Beside, Share};
use super::{Row, Tried, change, took::Took};
use pagelab_report::{Block, Cell, Entry, Grid, Note, Run, Tone, group_thousands};

/// Units that the table shows.
const SHOWN: usize = 16;

/// A unit: memory that is asked for at one place.
#[derive(Debug, Clone)]
struct Unit {
    site: String,
    key: u64,
    way: u64,
    size: u64,
    areas: u64,
    faults: u64,
    saved: u64,
    huge: u64,
    extra: u64,
    gain_ns: f64,
    chosen: bool,
    gains: bool,
}

/// What was chosen of a program, and what came of it.
#[derive(Debug)]
pub(crate) struct Fitted {
    units: Vec<Unit>,
    elsewhere: u64,
    /// Faults of which nobody saw whether they were first touches.
    unknown: u64,
    unlogged: u64,
    bound: Option<u64>,
    /// Why the chosen have no time of their own, where that is so.
    why: Option<String>,
    beside: Option<Beside>,
}

impl Unit {
    fn of(name: &str, row: &[i64]) -> Option<Self> {
        let number = |name: &str| {
            let at = tried::UNIT_COLUMNS.iter().position(|(column, _)| *column == name);
            at.and_then(|at| row.get(at)).copied().unwrap_or(0)
        };
        let count = |name: &str| number(name).unsigned_abs();
        let (_, site) = name.strip_prefix(tried::UNIT)?.split_once('/')?;
        Some(Self {
            site: site.to_owned(),
            key: count("key"),
            way: count("way"),
            size: count("size"),
            areas: count("areas"),
            faults: count("faults"),
            saved: count("saved"),
            huge: count("huge"),
            extra: count("extra"),
            gain_ns: number("gain") as f64,
            chosen: count("chosen") > 0,
            gains: count("gains") > 0,
        })
    }

    fn call(&self) -> &'static str {
        match self.way {
            tried::HEAP => "malloc's heap",
            tried::MAPPED => "mmap",
            _ => "malloc",
        }
    }

    fn name(&self) -> String {
        match self.way {
            tried::HEAP => self.call().to_owned(),
            _ if self.site.is_empty() => "(nobody knows who)".to_owned(),
            _ => self.site.clone(),
        }
    }

    /// Its sizes, as the power of two that tells it apart.
    fn sizes(&self) -> String {
        let least = 1_u64 << (self.size | 1).ilog2();
        let [least, most] = [least, least.saturating_mul(2)].map(|n| display_bytes(n as f64));
        format!("{least} to {most}")
    }

    /// What its author writes.
    fn paste(&self) -> String {
        let (sizes, site) = (self.sizes(), self.name());
        match self.way {
            tried::HEAP => {
                "environment: GLIBC_TUNABLES=glibc.malloc.hugetlb=1   # malloc's heap (glibc 2.35)"
                    .to_owned()
            }
            tried::MAPPED => {
                format!("madvise(p, n, MADV_HUGEPAGE);   /* behind mmap of {sizes}: {site} */")
            }
            _ => format!(
                "p = aligned_alloc(2 << 20, n); madvise(p, n, MADV_HUGEPAGE);   \
                 /* for malloc of {sizes}: {site} */"
            ),
        }
    }

    fn value(&self) -> Value {
        json!({
            "site": self.site,
            "call": self.call(),
            "key": self.key,
            "bytes": self.size,
            "areas": self.areas,
            "faults": self.faults,
            "saved": self.saved,
            "huge_pages": self.huge,
            "extra_bytes": self.extra,
            "gain_ns": self.gain_ns,
            "chosen": self.chosen,
            "gains": self.gains,
            "paste": self.chosen.then(|| self.paste()),
        })
    }
}

/// What was chosen of a program, for programs.
pub(crate) fn fit(run: &Run) -> Option<Value> {
    Fitted::of(run).map(|fitted| fitted.value())
}

impl Fitted {
    /// What a run says, where it was asked.
    pub(crate) fn of(run: &Run) -> Option<Self> {
        let Some(Asked::Try(asked)) = &run.header.asked else { return None };
        let tried = Tried::of(run).filter(|_| asked.fits)?;
        let record = run.all().filter(|entry| entry.record.workload == crate::fit::WORKLOAD).last();
        let measured = record.and_then(Entry::measured);
        let tables = measured.into_iter().flat_map(|measured| &measured.tables);
        let units = tables.filter_map(|table| Unit::of(&table.name, table.rows.first()?));
        let counter = |name: &str| record.and_then(|record| record.counter(name));
        let fit = tried.named(tried::FIT)?;
        let why = why_not(fit);
        Some(Self {
            units: units.collect(),
            elsewhere: counter(tried::ELSEWHERE).unwrap_or(0),
            unknown: counter(tried::UNKNOWN).unwrap_or(0),
            unlogged: counter(tried::UNLOGGED).unwrap_or(0),
            bound: counter(tried::EXTRA_BOUND),
            beside: Beside::of(&tried, fit).filter(|_| why.is_none()),
            why,
        })
    }

    /// For programs.
    pub(crate) fn value(&self) -> Value {
        let beside = self.beside.as_ref().map(|beside| {
            let Beside { whole, gain, own, library, more: [fit, all], .. } = beside;
            let [value, low, high] = gain.map_or([None; 3], |gain| gain.map(Some));
            json!({
                "rung": whole,
                "less_time": {"value": own[0], "low": own[1], "high": own[2]},
                "gain_share": value,
                "gain_share_low": low,
                "gain_share_high": high,
                "library_time": library.map(|[value, low, high]| {
                    json!({"value": value, "low": low, "high": high})
                }),
                "more_bytes": fit,
                "more_bytes_of_rung": all,
                "memory_share": beside.memory_share(),
            })
        });
        json!({
            "mappings": self.units.len(),
            "chosen": self.units.iter().filter(|unit| unit.chosen).count(),
            "why_not": self.why,
            "beside": beside,
            "extra_bytes_bound": self.bound,
            "faults_elsewhere": self.elsewhere,
            "faults_unknown": self.unknown,
            "unlogged_entries": self.unlogged,
            "units": self.units.iter().map(Unit::value).collect::<Vec<_>>(),
        })
    }
}

/// Why a rung has no time of its own.
fn why_not(row: &Row<'_>) -> Option<String> {
    match (&row.took, &row.entry.record.outcome) {
        (Took::No(why) | Took::Unseen(why), _) => Some(why.clone()),
        (Took::Late(_), _) => Some("it took too long, and was ended".to_owned()),
        (Took::NotRun, Outcome::Skipped { need, .. }) => Some(format!("it needs {need}")),
        (Took::NotRun, Outcome::Failed { reason }) => Some(reason.clone()),
        (Took::NotRun, Outcome::Measured(_)) => Some("no round of it was run".to_owned()),
        (Took::NotAsked | Took::Yes, _) => None,
    }
}

fn percent(share: f64) -> String {
    let sign = if share < -0.005 { "\u{2212}" } else { "" };
    format!("{sign}{:.0} %", share.abs() * 100.0)
}

/// What is told of the mappings, where that was asked.
pub(super) fn blocks(run: &Run) -> Vec<Block> {
    let Some(fitted) = Fitted::of(run) else { return Vec::new() };
    let mut blocks = vec![
        Block::Heading("Which mappings are worth it".to_owned()),
        Block::Text(sentence(&fitted)),
    ];
    let chosen: Vec<&Unit> = fitted.units.iter().filter(|unit| unit.chosen).collect();
    blocks.extend(chosen.iter().map(|unit| Block::Frame(unit.paste())));
    if chosen.iter().any(|unit| unit.way == tried::HEAP) {
        let others = fitted.units.iter().filter(|unit| unit.way == tried::ALLOCATED);
        blocks.extend(others.filter(|unit| !unit.chosen).take(SHOWN).map(spared));
    }
    if !fitted.units.is_empty() {
        blocks.push(Block::Table(table(&fitted.units)));
        blocks.push(Block::Text(legend(&fitted)));
    }
    if fitted.misses_some() {
        let unknown = group_thousands(fitted.unknown as f64);
        let text = format!(
            "of {unknown} faults nobody saw whether they were first touches, so mappings may gain \
             more than is said, or be missing"
        );
        let cure = "run as root, or with CAP_PERFMON and tracefs mounted readable";
        blocks.push(Block::Note(Note::warn("faults", text, cure)));
    }
    if fitted.unlogged > 0 {
        let lost = group_thousands(fitted.unlogged as f64);
        let text =
            format!("{lost} calls for memory had no room on the log: their faults are elsewhere");
        blocks.push(Block::Note(Note::warn("log", text, "")));
    }
    blocks
}

impl Fitted {
    /// Whether a mapping that counts may be among the faults that nobody knows.
    fn misses_some(&self) -> bool {
        let known: u64 = self.units.iter().map(|unit| unit.faults).sum();
        self.unknown * 100 > known + self.elsewhere
    }
}

/// What malloc's tunable would bring and is not worth it.
fn spared(unit: &Unit) -> Block {
    let (sizes, site) = (unit.sizes(), unit.name());
    Block::Frame(format!(
        "p = aligned_alloc(4096, n); madvise(p, n, MADV_NOHUGEPAGE);   \
         /* for malloc of {sizes}, which the tunable would advise: {site} */"
    ))
}

/// `3 of 41 mappings give 94 % of the gain for 8 % of the memory`.
fn sentence(fitted: &Fitted) -> String {
    let all = fitted.units.len();
    let chosen = fitted.units.iter().filter(|unit| unit.chosen).count();
    let of = format!("{chosen} of {all} mappings");
    let [were, give, take] =
        if chosen == 1 { ["was", "gives", "takes"] } else { ["were", "give", "take"] };
    if let Some(why) = &fitted.why {
        return format!("{of} {were} chosen, and nothing was shown: {why}.");
    }
    let Some(beside) = &fitted.beside else {
        return format!("{of} {were} chosen; no rung of all mappings took, to set them beside.");
    };
    let Beside { whole, gain, own, more, library, .. } = beside;
    let itself = library.map_or_else(String::new, |cost| {
        let [value, low, high] = cost.map(|share| change(1.0 + share));
        format!(
            " Both sides of it carry the library that advises them, which changes the time by \
             {value} ({low} to {high}) by itself."
        )
    });
    let [fit, other] = more.map(|bytes| display_bytes(bytes.max(0.0)));
    let spanned = |[value, low, high]: &Share| {
        let [value, low, high] = [*value, *low, *high].map(percent);
        format!("{value} ({low} to {high})")
    };
    let said = match (gain, beside.memory_share()) {
        (Some(gain), Some(price)) => format!(
            "{of} {give} {} of the gain of {whole} for {} of the memory: {fit} more at its peak \
             beside {other}.",
            spanned(gain),
            percent(price)
        ),
        (Some(gain), None) => format!(
            "{of} {give} {} of the gain of {whole}, which takes hardly more memory at its peak \
             ({other}): there is none to spare.",
            spanned(gain)
        ),
        (None, _) => format!(
            "{of} {were} chosen and {take} {} less than base pages, for {fit} more at its peak; \
             the best rung of all mappings, {whole}, has no gain that is sure, for {other}.",
            spanned(own)
        ),
    };
    said + &itself
}

fn legend(fitted: &Fitted) -> String {
    let bound = fitted.bound.map_or_else(String::new, |bound| {
        format!(
            " Any choice of 90 % of what they gain together holds {} untouched or more.",
            display_bytes(bound as f64)
        )
    });
    format!(
        "Predicted of one more run with base pages that was watched: a mapping is all memory of \
         one power of two that is asked for at one place. Gain: its faults, less those of the huge \
         pages that would come. Untouched: held at most in huge pages and never touched, at its \
         worst.{bound} Faults in memory of none of them (stacks, files, arenas of threads, what is \
         small): {}.",
        group_thousands(fitted.elsewhere as f64)
    )
}

fn table(units: &[Unit]) -> pagelab_report::Table {
    let mut shown: Vec<&Unit> = units.iter().collect();
    shown.sort_by(|one, other| {
        (other.chosen, other.gain_ns)
            .partial_cmp(&(one.chosen, one.gain_ns))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    shown.truncate(SHOWN);
    let bytes = |bytes: u64| display_bytes(bytes as f64);
    Grid::<&Unit>::new()
        .words("mapping", 0, |unit| Cell::from(unit.name()))
        .words("by", 4, |unit| Cell::from(unit.call()))
        .number("size", 1, |unit| bytes(unit.size))
        .number("times", 5, |unit| group_thousands(unit.areas as f64))
        .number("faults", 3, |unit| group_thousands(unit.faults as f64))
        .number("huge pages", 6, |unit| group_thousands(unit.huge as f64))
        .number("gain", 0, |unit| {
            let sign = if unit.gain_ns < 0.0 { "\u{2212}" } else { "" };
            format!("{sign}{}", display_ns(unit.gain_ns.abs()))
        })
        .number("untouched", 0, |unit| bytes(unit.extra))
        .words("so", 0, |unit| match (unit.chosen, unit.gains) {
            (true, _) => Cell::toned("chosen", Tone::Good),
            (_, true) => Cell::toned("not worth it", Tone::Quiet),
            _ => Cell::toned("a loss", Tone::Warn),
        })
        .table(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pasted_is_a_call_with_its_place() {
        let row = [5, 2, 96 << 20, 1, 9, 9, 1, 0, 7, 1, 1];
        let unit = Unit::of("unit/0/fill+0x1c (prog) < main", &row).unwrap();
        assert!(unit.paste().contains("aligned_alloc(2 << 20, n); madvise(p, n, MADV_HUGEPAGE)"));
        assert!(unit.paste().contains("64.0 MiB to 128 MiB: fill+0x1c (prog) < main"));
        assert!(unit.chosen && unit.gains && unit.call() == "malloc");
        let heap = Unit::of("unit/1/", &[0, 0, 9]).unwrap();
        assert!(heap.paste().contains("glibc.malloc.hugetlb=1") && !heap.chosen);
    }
}
