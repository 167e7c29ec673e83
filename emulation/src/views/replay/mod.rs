//! `emu/replay`: what an emulated memory costs, and what reading the trace adds.
//!
//! The one idea: the number is CPU time for one operation, and it is read beside two arms of the
//! same processes: `noop`, which only decodes, and `base`, where fast-mem ended. Times of different
//! cases are set side by side for readers only, where nothing else is possible.
//!
//! The readers' table is in `readers`; what fast-mem published is in `published/fast-memory`.

mod beside;
mod charts;
mod readers;

use pagelab_record::{
    Case, Measured, units,
    vocabulary::{Check, arm_counter, counter, series},
};

use pagelab_record::vocabulary::parameter;
use pagelab_report::{
    At, Cell, Entry, Grid, Headline, Note, Numbers, Quantity, Run, Section, Table, Time, Tone,
    Unit, all_rows, clock_of, columns, cpu, distinct, elapsed, group_thousands, headline, name_of,
    parameters,
    ratio::{self, TIE},
    tally, titles,
};

pub(crate) use pagelab_record::vocabulary::arm::NOOP;

pub(crate) use crate::emu::replay::NAME as WORKLOAD;
/// The series of a whole replay.
pub(crate) const REPLAY: &str = series::REPLAY;
/// fast-mem's best configuration, by its two names.
const BASES: [&str; 2] = ["base", "paged-cache-32-neg/safe"];
/// The kernel's split of the CPU time.
const SPLIT: [&str; 2] = [series::USER_TIME, series::SYSTEM_TIME];
/// What is claimed of digests.
const DIGESTS: [Check; 2] = [Check::ReplayDigest, Check::TraceDigest];
/// Ends the name of an arm that decodes with bounds checks.
const SAFE: &str = "/safe";
/// What each arm is set against: the statistic and the column.
const AGAINST: [&str; 2] = ["ratio_to_noop", "ratio_to_base"];
const MIB: f64 = 1_048_576.0;

/// The arms of a case, in the order that was asked for.
pub(crate) fn arms<'a>(case: &'a Case, measured: &'a Measured) -> Vec<&'a str> {
    let asked =
        case.get(parameter::BACKEND).unwrap_or_default().split(',').filter(|arm| !arm.is_empty());
    distinct(asked.chain(measured.series.iter().map(|series| series.arm.as_str())))
}

/// The name that `base` goes by among some arms.
pub(crate) fn base_of<'a>(arms: &[&'a str]) -> Option<&'a str> {
    BASES.iter().find_map(|base| arms.iter().find(|arm| *arm == base)).copied()
}

/// Adds what a replay implies: time of one operation, rates, and ratios to the floor and to base.
pub(crate) fn derive(case: &Case, measured: &Measured, numbers: &mut Numbers) {
    // The kernel's split says what part of the time is whose; it has no rate of its own.
    numbers
        .0
        .retain(|number| !SPLIT.contains(&number.series.as_str()) || number.statistic == "p50");
    let arms = arms(case, measured);
    let others = [arms.iter().find(|arm| **arm == NOOP).copied(), base_of(&arms)];
    for arm in &arms {
        for time in [Time::Elapsed, Time::Cpu] {
            let Some(clock) = clock_of(&measured.series, REPLAY, arm, time) else { continue };
            let first = measured.series.iter().find(|s| s.name == REPLAY && s.arm == *arm);
            let ops = first.map_or(0, |series| series.ops) as f64;
            let at = At { arm, series: REPLAY, time };
            let each = numbers.get(at, "p50");
            numbers.add(at, "ns_per_op", each);
            numbers.add(at, "total", each.map(|each| each.times(ops, Unit::Ns)));
            let rate = each.and_then(|each| each.under(1e9, Unit::PerSecond));
            numbers.add(at, "ops_per_second", rate);
            for (statistic, other) in AGAINST.into_iter().zip(others) {
                let Some(other) = other else { continue };
                let ratio = ratio::of_arms(&measured.series, REPLAY, clock, [arm, other]);
                numbers.add(at, statistic, ratio);
            }
        }
        let bytes = measured.series.iter().find(|s| s.name == REPLAY && s.arm == *arm);
        let mib = bytes.map_or(0.0, |series| series.bytes as f64 / MIB);
        let at = tally(arm, series::MINOR_FAULTS);
        if let Some(faults) = numbers.get(at, "p50").filter(|_| mib > 0.0) {
            numbers.add(at, "per_mib", Some(faults.times(1.0 / mib, Unit::Count)));
        }
    }
    beside::derive(measured, numbers);
}

/// The tables of every case and of every set of readers, where there are any.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = run.any(WORKLOAD)?;
    let mut section = Section::new("replay", "Trace replay");
    let compared: Vec<&Entry> =
        mine.iter().copied().filter(|e| !readers::takes(e, &mine)).collect();
    let titles = titles(&compared, &[]);
    let drawn = compared.iter().zip(&titles);
    section.all(drawn.filter_map(|(entry, title)| charts::backends(entry, title)));
    for (entry, title) in compared.into_iter().zip(titles) {
        section.head(title);
        section.add(conditions(&[entry]));
        section.add(table(entry));
        section.all(beside::text(entry));
        section.all(notes(entry));
    }
    readers::add(&mut section, &mine);
    section.add(format!(
        "CPU: time of the thread for one operation, decoding included. × noop, × base: CPU time \
         over that of the arm, process by process; base is fast-mem's best configuration, a cache \
         of 32 present and 32 absent pages, decoded with bounds checks. Ratios within {:.0} % of 1 \
         are ties and grey, because the layout of the code alone moves a loop that much. \
         Operations and bytes a second are by elapsed time. Digest: of the value and order of \
         every load; noop forgets, so its digest differs. Page cache: look-ups that the pages in \
         front of the map answered, counted in a replay that is not timed.",
        TIE * 100.0
    ));
    Some(section)
}

/// What the rows below have in common: length, and every parameter that is the same.
fn conditions(entries: &[&Entry]) -> String {
    let Some(first) = entries.first() else { return String::new() };
    let of = |name: &str| first.counter(name).unwrap_or(0) as f64;
    let ops = group_thousands(of(counter::TRACE_OPS));
    let bytes = units::display_bytes(of(counter::TRACE_BYTES));
    let mut said = columns(entries, &["trace"]);
    said.push("ops".to_owned());
    format!("{ops} operations, {bytes}. {}", all_rows(entries, &said)).trim_end().to_owned()
}

fn table(entry: &Entry) -> Table {
    let arms = entry.measured().map(|measured| arms(entry.case(), measured)).unwrap_or_default();
    let of = |at, statistic| entry.numbers.get(at, statistic);
    Grid::<&str>::new()
        .words("arm", 0, |arm| *arm)
        .words("decoder", 6, |arm| Cell::toned(decoder(arm), Tone::Quiet))
        .number("CPU", 0, |arm| Cell::spread(of(cpu(arm, REPLAY), "ns_per_op")).strong())
        .number("elapsed", 5, |arm| of(elapsed(arm, REPLAY), "ns_per_op"))
        .number("ops/s", 3, |arm| of(elapsed(arm, REPLAY), "ops_per_second"))
        .number("trace", 4, |arm| of(elapsed(arm, REPLAY), "bandwidth"))
        .number("× noop", 0, |arm| against(of(cpu(arm, REPLAY), AGAINST[0])))
        .number("× base", 0, |arm| against(of(cpu(arm, REPLAY), AGAINST[1])))
        .number("user", 7, |arm| of(cpu(arm, SPLIT[0]), "p50"))
        .number("system", 7, |arm| of(cpu(arm, SPLIT[1]), "p50"))
        .number("page cache", 4, |arm| knew(entry, arm))
        .number("reads", 9, |arm| count(entry, arm, series::READ_CALLS))
        .number("minor faults", 8, |arm| count(entry, arm, series::MINOR_FAULTS))
        .number("major", 9, |arm| count(entry, arm, series::MAJOR_FAULTS))
        .words("digest", 1, |arm| digest(entry, arm))
        .number("proc×rep", 8, |arm| entry.counts(cpu(arm, REPLAY)))
        .words("witness", 0, |arm| proof(entry, arm))
        .told(arms)
}

/// User and system time of one operation; calls of read, minor and major faults of one replay.
fn count(entry: &Entry, arm: &str, series: &str) -> Option<String> {
    entry.numbers.get(tally(arm, series), "p50").map(|q| group_thousands(q.value))
}

/// The share of its look-ups that a cache of pages answered.
fn knew(entry: &Entry, arm: &str) -> Option<String> {
    let counts = counter::PAGE_CACHE.map(|name| entry.counter(&arm_counter(name, arm)));
    let [Some(hits), absent, Some(misses)] = counts else { return None };
    let known = (hits + absent.unwrap_or(0)) as f64;
    Some(format!("{:.2} %", known / (known + misses as f64) * 100.0))
}

/// A ratio to another arm; ties are grey.
fn against(ratio: Option<Quantity>) -> Cell {
    let Some(ratio) = ratio else { return Cell::none() };
    let tie = (ratio.value - 1.0).abs() <= TIE;
    Cell::toned(ratio.display_with_spread(), if tie { Tone::Quiet } else { Tone::Plain })
}

/// How an arm decodes, by its name.
fn decoder(arm: &str) -> &'static str {
    if arm.ends_with(SAFE) || BASES.contains(&arm) { "safe" } else { "fast" }
}

/// The first digits of the digest: no time, so that it is shown of a record that is not valid, too.
fn digest(entry: &Entry, arm: &str) -> Cell {
    let digest = entry.counter(&format!("{}/{arm}", counter::DIGEST));
    let Some(digest) = digest else { return Cell::none() };
    let differs =
        entry.failed_claims().any(|c| c.arm == arm && DIGESTS.iter().any(|check| c.is(*check)));
    let tone = if differs { Tone::Bad } else { Tone::Quiet };
    Cell::toned(format!("{:08x}", digest >> 32), tone)
}

/// How much of the proof of an arm holds.
fn proof(entry: &Entry, arm: &str) -> Cell {
    let mine = || entry.claims().iter().filter(|claim| claim.arm == arm);
    let (holding, all) = (mine().filter(|claim| claim.holds).count(), mine().count());
    let ran = entry.measured().is_some_and(|m| m.series.iter().any(|s| s.arm == arm));
    if !ran {
        return Cell::toned("left out", Tone::Quiet);
    }
    if entry.is_valid() && all > 0 {
        return Cell::toned(format!("{holding}/{all}"), Tone::Good);
    }
    // The case is one: what is wrong with one arm takes the numbers of all.
    if all > 0 && holding == all && !entry.is_valid() && entry.failed_claims().next().is_some() {
        return Cell::toned(format!("{holding}/{all}, withheld"), Tone::Warn);
    }
    entry.proof()
}

/// What is said below the rows: arms that are left out, and why numbers are withheld.
fn notes(entry: &Entry) -> impl Iterator<Item = Note> {
    let left_out = entry.measured().into_iter().flat_map(|measured| &measured.warnings);
    let note = |text: &String| {
        let (arm, why) = text.split_once(" is left out: ")?;
        let text = format!("{arm}: {why}");
        Some(Note::warn("left out", text, ""))
    };
    left_out.filter_map(note).chain(entry.notes())
}

/// The replay that a run is remembered by: pagelab's default memory, or else the fastest.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    leading(&run.entries).into_iter().collect()
}

fn leading(entries: &[Entry]) -> Option<Headline> {
    let of = |entry: &Entry, arm: &str, statistic| entry.numbers.get(cpu(arm, REPLAY), statistic);
    let mine = entries.iter().filter(|entry| entry.record.workload == WORKLOAD);
    let fastest = |entry: &'_ Entry| {
        let all = arms(entry.case(), entry.measured()?).into_iter();
        let timed = all.filter_map(|arm| Some((arm.to_owned(), of(entry, arm, "ns_per_op")?)));
        // Neither a bound nor a baseline leads, where a memory was asked for.
        let place = |arm: &str| (arm != beside::OURS, arm.starts_with(NOOP), BASES.contains(&arm));
        timed.min_by(|(a, x), (b, y)| place(a).cmp(&place(b)).then(x.value.total_cmp(&y.value)))
    };
    let timed = mine.filter_map(|entry| Some((entry, fastest(entry)?)));
    // From memory, and of a trace that does not stay on one page: that one compares little.
    let (entry, (arm, each)) = timed.min_by_key(|(entry, (arm, _))| {
        let is_fib = name_of(entry.case()) == "fib";
        (arm != beside::OURS, is_fib, entry.value(parameter::READER) != readers::MEMORY)
    })?;
    let against = |statistic, name| {
        of(entry, &arm, statistic).map(|ratio| format!("{:.2} × {name}", ratio.value))
    };
    let rate = entry.numbers.get(elapsed(&arm, REPLAY), "ops_per_second");
    let trace = parameters::display_trace(entry.value(parameter::TRACE));
    Some(headline(
        each,
        format!("CPU time of an operation of {trace} in {arm}"),
        &[
            rate.map(Quantity::display),
            against("ratio_to_noop", NOOP).filter(|_| arm != NOOP),
            against("ratio_to_best_same_decoder", "fast-mem's best behind the same decoder"),
            against("ratio_to_base", "fast-mem's best behind its own (base)"),
        ],
    ))
}
