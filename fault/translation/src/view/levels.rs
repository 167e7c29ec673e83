//! Knees by name: which TLB ends at a step, and what the processor says of it.
//!
//! The one idea: a step of what the smaller pages add is a TLB, its place in pages is how many
//! entries that has; a step that the larger pages have as well is a cache of data, its place in
//! lines is how large that is. A name is the processor's own where its number lies at the knee, and
//! otherwise the level by order.

use pagelab_record::vocabulary::{parameter, table::TLBS};
use pagelab_report::{
    At, Cell, Entry, Grid, Quantity, Table, Tone, Unit, group_thousands, headline::whole,
    parameters,
};

use super::{
    EXTRA, OTHER_LOADS, OUR_LOADS, display_extra,
    knees::{Knee, knees},
    pages, size,
};

/// Below the table of knees.
pub(super) const LEGEND: &str = "A knee lies between the last size on a plateau and the first \
     whose interval is beyond it; a rise that goes on is one knee. A TLB is a step of what the \
     smaller pages add. Where the larger pages step as well, a cache of data ends: it is counted \
     in lines. The processor says: CPUID, where its number lies at the knee; of caches, \
     the kernel.";

/// How far what the processor says may lie outside a knee, which has the width of a step of sizes.
const NEAR: f64 = 1.34;

/// A knee with its name.
#[derive(Debug, Clone)]
pub(super) struct Level {
    page: String,
    name: String,
    knee: Knee,
    /// What a place counts.
    counts: &'static str,
    /// What the processor says of it.
    said: Option<String>,
}

/// A thing of the processor that a knee may be the end of.
struct Known {
    name: String,
    number: f64,
    said: String,
}

/// The knees of a page size.
pub(super) fn of(group: &[&Entry]) -> Vec<Level> {
    let page = group[0].value(parameter::PAGE).to_owned();
    let tlbs: Vec<Known> = group.iter().find_map(|entry| tlbs(entry)).unwrap_or_default();
    let translation = knees(&curve(group, OUR_LOADS, EXTRA, |entry| pages(entry) as f64));
    let mut levels = Vec::new();
    for (nth, knee) in translation.into_iter().enumerate() {
        let by_order = || match nth {
            0 => "L1 dTLB".to_owned(),
            1 => "L2 TLB".to_owned(),
            _ => "page walks".to_owned(),
        };
        let known = near(&knee, &tlbs);
        let name = match known {
            Some(known) => known.name.clone(),
            None if tlbs.is_empty() => by_order(),
            None => "none that the processor names".to_owned(),
        };
        let said = known.map(|known| known.said.clone());
        levels.push(Level { page: page.clone(), name, knee, counts: "entries", said });
    }
    let caches = caches(group[0]);
    let lines = |entry: &Entry| (size(entry) / 4096) as f64;
    for knee in knees(&curve(group, OTHER_LOADS, "p50", lines)) {
        let known = near(&knee, &caches);
        let name = known.map_or_else(
            || "a cache, or a TLB of the host's pages".to_owned(),
            |known| known.name.clone(),
        );
        let said = known.map(|known| known.said.clone());
        let page = format!("{} too", group[0].value(parameter::AGAINST));
        levels.push(Level { page, name, knee, counts: "lines", said });
    }
    levels
}

fn curve(
    group: &[&Entry],
    at: At<'_>,
    statistic: &str,
    place: impl Fn(&Entry) -> f64,
) -> Vec<(f64, Quantity)> {
    let point = |entry: &&Entry| Some((place(entry), entry.numbers.get(at, statistic)?));
    group.iter().filter_map(point).collect()
}

/// What a knee may be the end of: the nearest of what lies at it.
fn near<'k>(knee: &Knee, known: &'k [Known]) -> Option<&'k Known> {
    let [from, to] = knee.between;
    let is_near = |known: &&Known| known.number * NEAR >= from && known.number <= to * NEAR;
    let off = |known: &Known| (known.number.max(1.0) / from.max(1.0)).ln().abs();
    known.iter().filter(is_near).min_by(|a, b| off(a).total_cmp(&off(b)))
}

/// What the processor says of its TLBs for the page size of a case; `None` where it says nothing.
fn tlbs(entry: &Entry) -> Option<Vec<Known>> {
    let page = parameters::page_bytes(entry.value(parameter::PAGE))?;
    let table = entry.measured()?.table(TLBS)?;
    let known = |row: &Vec<i64>| match row[..] {
        [bytes, level, entries] if u64::try_from(bytes) == Ok(page) => Some(Known {
            name: if level == 1 { "L1 dTLB".to_owned() } else { format!("L{level} TLB") },
            number: entries as f64,
            said: format!("{} entries", group_thousands(entries as f64)),
        }),
        _ => None,
    };
    let known: Vec<Known> = table.rows.iter().filter_map(known).collect();
    (!known.is_empty()).then_some(known)
}

/// What the host says of its caches of data, in lines.
fn caches(entry: &Entry) -> Vec<Known> {
    const LINE: u64 = 64;
    let known = |(name, key): (&str, &str)| {
        let bytes = entry.record.host.identity.get(key)?.as_u64()?;
        let (name, said) = (format!("{name} cache"), whole(bytes));
        Some(Known { name, number: (bytes / LINE) as f64, said })
    };
    [("L1d", "cache_l1d_bytes"), ("L2", "cache_l2_bytes"), ("last", "cache_llc_bytes")]
        .into_iter()
        .filter_map(known)
        .collect()
}

pub(super) fn table(levels: &[Level]) -> Table {
    let step = |level: &&Level| {
        let ([low, high], value) = (level.knee.span, level.knee.step);
        let exact = Quantity::exact(value, Unit::Ns);
        display_extra(Quantity { low, high, ..exact })
    };
    Grid::<&Level>::new()
        .words("page", 0, |level| level.page.clone())
        .words("what ends", 0, |level| Cell::toned(level.name.clone(), Tone::Strong))
        .words("where", 0, |level| {
            let [from, to] = level.knee.between.map(group_thousands);
            format!("{from}–{to} {}", level.counts)
        })
        .number("step", 0, step)
        .words("the processor says", 1, |level| level.said.clone())
        .told(levels)
}
