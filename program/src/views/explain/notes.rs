//! What is said beside the numbers of a program: what is not in them, and what they rest on.
//!
//! The one idea: a sum that leaves something out names it, with the reason and what would help; a
//! price that rests on a choice names the choice. It computes nothing: that is done in [`super`].

use std::cmp::Reverse;

use pagelab_record::{
    Measured, Outcome,
    advice::Setting,
    units,
    vocabulary::{knob::HELD_BY, table},
};

use super::{
    ARM, FILE_MINOR, Group, MKWRITE,
    knobs::{self, Knob, density},
};
use pagelab_fault::latency::NAME as LATENCY;
use pagelab_record::vocabulary::parameter;
use pagelab_report::{At, Block, Entry, Note, Quantity, Time, Tone, Unit, group_thousands};

/// The kind of faults of which nothing says what they were.
const UNKNOWN: &str = "unknown";

/// What is not in the sum, why, and what would price it.
pub(super) fn unpriced(entries: &[Entry], groups: &[Group]) -> Option<Block> {
    let without: Vec<&Group> = groups.iter().filter(|group| group.cost.is_none()).collect();
    let faults: f64 = without.iter().map(|group| group.faults).sum();
    let all: f64 = groups.iter().map(|group| group.faults).sum();
    if faults == 0.0 {
        return None;
    }
    let seen: f64 = without.iter().filter_map(|group| group.seen).sum();
    let seen = if seen > 0.0 {
        format!("; as watched they took {}", units::display_ns(seen))
    } else {
        String::new()
    };
    // The most frequent first: its cure is the one that is shown.
    let kinds: Vec<[&str; 2]> = without.iter().map(|g| [g.parts()[0], g.parts()[1]]).collect();
    let said = |of: &dyn Fn(&[&str; 2]) -> String| {
        let mut said = std::collections::BTreeSet::new();
        let texts = kinds.iter().map(of).filter(|text| !text.is_empty());
        texts.filter(|text| said.insert(text.clone())).collect::<Vec<_>>()
    };
    let (share, is_one) = (faults / all, faults < 1.5);
    let text = format!(
        "{} {} ({}) {} not in the sum: {}{seen}",
        group_thousands(faults),
        if is_one { "fault" } else { "faults" },
        Quantity::exact(share, Unit::Share).display(),
        if is_one { "has no price and is" } else { "have no price and are" },
        said(&|[kind, page]| format!("{kind}{}", why(entries, kind, page))).join(", "),
    );
    // A handful, as every program takes while it starts.
    if share < 0.01 {
        return Some(Block::Text(format!("{text}.")));
    }
    let cure = said(&|[kind, page]| match outcome(entries, kind, page) {
        Some(Outcome::Skipped { cure, .. }) => cure.clone(),
        Some(_) => "explain again".to_owned(),
        None if ["other", UNKNOWN].contains(kind) => String::new(),
        None => format!(
            "leave --costs out, or measure it alone: pagelab run fault/latency --kind {kind}"
        ),
    });
    let cure = cure.into_iter().next().unwrap_or_default();
    Some(Block::Note(Note { tone: Tone::Warn, tag: "no price", text, cure }))
}

/// What became of the measurement of a kind, where there was one.
fn outcome<'a>(entries: &'a [Entry], kind: &str, page: &str) -> Option<&'a Outcome> {
    let is_it = |entry: &&Entry| {
        entry.record.workload == LATENCY
            && (entry.value(parameter::KIND), entry.value(parameter::PAGE)) == (kind, page)
    };
    entries.iter().find(is_it).map(|entry| &entry.record.outcome)
}

/// Why a kind has no price, where that is known.
fn why(entries: &[Entry], kind: &str, page: &str) -> String {
    match outcome(entries, kind, page) {
        Some(Outcome::Measured(_)) => " (its measurement failed its proof)".to_owned(),
        Some(Outcome::Skipped { need, .. }) => format!(" (its measurement needs {need})"),
        Some(Outcome::Failed { .. }) => " (its measurement failed)".to_owned(),
        None if kind == "other" => " (no kind that can be measured)".to_owned(),
        None if kind == UNKNOWN => " (nothing says what they were)".to_owned(),
        None => " (not measured in this run)".to_owned(),
    }
}

/// Faults that waited for a device: seen, not priced.
pub(super) fn waited(groups: &[Group]) -> Option<Block> {
    let major = || groups.iter().filter(|group| group.major > 0.0);
    let faults: f64 = major().map(|group| group.major).sum();
    if faults == 0.0 {
        return None;
    }
    let mut kinds: Vec<&str> = major().map(|group| group.parts()[0]).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let kinds = kinds.join(", ");
    let text = format!(
        "Major faults: {} ({kinds}) waited for a device. {}",
        group_thousands(faults),
        if major().all(|group| group.seen.is_some()) {
            "Their time is what was seen of each, from the exception to its end."
        } else if major().all(|group| group.cost.is_some()) {
            "How long was not seen (tracepoints take root): their time is that of measured ones."
        } else {
            "How long was not seen (tracepoints take root), and they are not in the sum."
        }
    );
    Some(Block::Text(text))
}

/// What the price of faults on the page cache rests on.
pub(super) fn folios(measured: &Measured, groups: &[Group]) -> Option<String> {
    let mine = || groups.iter().filter(|group| group.parts()[0] == FILE_MINOR);
    let all: f64 = groups.iter().map(|group| group.faults).sum();
    if mine().map(|group| group.faults).sum::<f64>() < all * 0.01 {
        return None;
    }
    let looked: f64 = mine().filter(|g| g.folios.is_some()).map(|g| g.faults).sum();
    if looked == 0.0 {
        return Some(
            "File faults: priced over base pages in the page cache. Over large folios one costs a \
             fraction of it; which these were was not seen (it takes root, and a process that \
             still runs), so the interval reaches down to nothing."
                .to_owned(),
        );
    }
    let large: f64 = mine().filter_map(|g| g.folios.map(|share| share * g.faults)).sum();
    let share = Quantity::exact(large / looked, Unit::Share).display();
    Some(if large > 0.0 {
        format!(
            "File faults: {share} of the pages looked at lay in large folios{}, over which a fault \
             costs a fraction. The price is that of base pages, so the interval reaches down by \
             that share.",
            folio_sizes(measured, FILE_MINOR)
        )
    } else {
        "File faults: every page looked at was a base page in the page cache, as those that the \
         price was measured over."
            .to_owned()
    })
}

/// How large the folios are that stores to files made writable, as a whole each.
pub(super) fn made_writable(measured: &Measured) -> Option<String> {
    let sizes = folio_sizes(measured, MKWRITE);
    (!sizes.is_empty()).then(|| {
        format!(
            "mkwrite: of the stores looked at{sizes} were to large folios, each of which becomes \
             writable as a whole: they are priced as they were seen, down to nothing."
        )
    })
}

/// The sizes of large folios that faults of a kind were looked at in, the most frequent first.
fn folio_sizes(measured: &Measured, kind: &str) -> String {
    let table = measured.tables.iter().find(|of| of.name.strip_prefix(table::FOLIOS) == Some(kind));
    let rows = table.iter().flat_map(|table| &table.rows);
    let mut sizes: Vec<(u64, i64)> = rows
        .filter_map(|row| Some((u64::try_from(*row.first()?).ok()?, *row.get(1)?)))
        .filter(|(bytes, _)| *bytes > 4096)
        .collect();
    sizes.sort_by_key(|(bytes, faults)| (Reverse(*faults), *bytes));
    let said =
        |(bytes, faults): &(u64, i64)| format!("{faults} of {}", units::format_bytes(*bytes));
    let said: Vec<String> = sizes.iter().take(4).map(said).collect();
    if said.is_empty() { String::new() } else { format!(" ({})", said.join(", ")) }
}

/// What no count of faults can say.
pub(super) const TRANSLATION: &str = "Faults are not translation: what larger pages save or cost \
     in address translation (TLB misses) was not looked at: --translation does. A program that \
     takes no faults may still gain by them.";

/// That another run held the settings that some advice changes.
pub(super) fn held(measured: &Measured, knobs: &[Knob]) -> Option<Block> {
    let pid = measured.counters.get(HELD_BY)?;
    let is_of_machine = |knob: &Knob| knob.advice.ways.iter().flatten().any(Setting::is_of_machine);
    knobs.iter().any(is_of_machine).then(|| {
        let text = format!(
            "process {pid}, another run of pagelab, held the machine's settings while the program \
             was watched; a file below /sys that is set before it has ended disturbs it"
        );
        let cure = "wait for it to end, or have pagelab try set them: --wait waits";
        Block::Note(Note { tone: Tone::Warn, tag: "held", text, cure: cure.to_owned() })
    })
}

/// Which memory larger pages would not have served at its faults, and why.
pub(super) fn larger(entry: &Entry, measured: &Measured) -> Vec<String> {
    let mut said = Vec::new();
    let denied = density(measured, "denied");
    if denied > 0.0 {
        said.push(format!(
            "No larger pages: {} first touches were in memory that may have none (MADV_NOHUGEPAGE, \
             or PR_SET_THP_DISABLE: THP_enabled is 0 in /proc/PID/status). They are in no saving \
             of a page size.",
            group_thousands(denied)
        ));
    }
    let watched = At { arm: ARM, series: "watched", time: Time::Elapsed };
    let watched = entry.numbers.get(watched, "p50").map_or(0.0, |watched| watched.value);
    said.extend(knobs::note(measured, &entry.record.host, watched));
    said
}

/// What threads that faulted at once paid for it, and what of it is not in the price.
pub(super) fn crowded(groups: &[Group]) -> Vec<Block> {
    let all: f64 = groups.iter().map(|group| group.faults).sum();
    let (known, unknown): (Vec<&Group>, Vec<&Group>) =
        groups.iter().filter(|group| group.crowded > 0.0).partition(|g| g.crowding.is_some());
    let sum = |groups: &[&Group]| groups.iter().map(|group| group.crowded).sum::<f64>();
    let share = |faults: f64| Quantity::exact(faults / all, Unit::Share).display();
    let mut blocks = Vec::new();
    let added = known
        .iter()
        .filter_map(|group| group.crowding)
        .reduce(|a, b| (a.0.plus(b.0), a.1.max(b.1)));
    if let Some((added, threads)) = added {
        let faults = sum(&known);
        blocks.push(Block::Text(format!(
            "At once: {} faults ({}) met another of the same process on another CPU. That added \
             {} in all, {} each, as measured with {threads} threads that do nothing but fault; it \
             is in the time in faults, and the low end of the interval is without it: while they \
             are watched, faults are longer and meet more often.",
            group_thousands(faults),
            share(faults),
            added.display(),
            added.times(1.0 / faults, Unit::Ns).display(),
        )));
    }
    let faults = sum(&unknown);
    if faults >= all * 0.01 {
        let mut kinds: Vec<&str> = unknown.iter().map(|group| group.parts()[0]).collect();
        kinds.sort_unstable();
        kinds.dedup();
        blocks.push(Block::Note(Note {
            tone: Tone::Warn,
            tag: "contention",
            text: format!(
                "{} faults ({}) met another of the same process on another CPU ({}); what they \
                 waited for each other was not measured and is not in their price",
                group_thousands(faults),
                share(faults),
                kinds.join(", ")
            ),
            cure: String::new(),
        }));
    }
    blocks
}
