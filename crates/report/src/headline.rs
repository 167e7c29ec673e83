//! The few numbers that a run is remembered by.
//!
//! The one idea: each headline is a number that stands in a table below, with its interval and one
//! thing to set it against. What was not measured, or is not valid, has no headline.

use crate::{
    document::{Headline, Tone},
    entry::{Entry, Standing},
    explain,
    fit::Fit,
    latency,
    limits::Limits,
    memtype,
    numbers::{At, elapsed},
    quantity::Quantity,
    replay, throughput, tier, trace,
};

/// Every headline that the records support.
pub(crate) fn headlines(entries: &[Entry], limits: &Limits, fits: &[Fit]) -> Vec<Headline> {
    let one = [latency_of(entries), throughput_of(entries), best_page(entries), fixed_cost(fits)];
    let mut headlines: Vec<Headline> = explain::headline(entries).into_iter().collect();
    headlines.extend(one.into_iter().flatten());
    headlines.extend(replay::headline(entries).or_else(|| trace::headline(entries)));
    headlines.extend(memtype::headline(entries));
    headlines.extend(tier::headline(entries));
    headlines.extend(limits.clear().map(|clear| Headline {
        value: clear.display(),
        label: "clear limit, one thread, DRAM".to_owned(),
        detail: with_interval(clear, ""),
        tone: Tone::Plain,
    }));
    headlines.push(trust(entries));
    headlines
}

/// The first case of a workload with the base page and one worker that has the number.
fn base_case<'a>(
    entries: &'a [Entry],
    workload: &str,
    kind: Option<&str>,
    (at, statistic): (At<'_>, &str),
) -> Option<(&'a Entry, Quantity)> {
    let mine = |entry: &&Entry| {
        entry.record.workload == workload
            && entry.parameter("page") == "4k"
            && kind.is_none_or(|kind| entry.parameter("kind") == kind)
            && !throughput::is_parallel(entry.case())
    };
    let with_number = |entry: &'a Entry| Some((entry, entry.numbers.get(at, statistic)?));
    entries.iter().filter(mine).find_map(with_number)
}

fn latency_of(entries: &[Entry]) -> Option<Headline> {
    let at = elapsed(latency::ARM, latency::FAULT);
    let (entry, median) = base_case(entries, latency::WORKLOAD, Some("write"), (at, "p50"))?;
    let control = entry.numbers.get(elapsed(latency::CONTROL, latency::FAULT), "p50");
    let control = control.map(|q| format!("present page {}", q.display())).unwrap_or_default();
    Some(Headline {
        value: median.display(),
        label: "one 4 KiB write fault, median".to_owned(),
        detail: with_interval(median, &control),
        tone: Tone::Strong,
    })
}

fn throughput_of(entries: &[Entry]) -> Option<Headline> {
    let at = elapsed(throughput::ARM, "touch");
    let found = base_case(entries, throughput::WORKLOAD, None, (at, "faults_per_second"));
    let (entry, rate) = found?;
    let bandwidth = entry.numbers.get(elapsed(throughput::ARM, throughput::FAULT_IN), "bandwidth");
    let bandwidth = bandwidth.map(Quantity::display).unwrap_or_default();
    Some(Headline {
        value: rate.display(),
        label: "4 KiB faults a second".to_owned(),
        detail: with_interval(rate, &bandwidth),
        tone: Tone::Strong,
    })
}

/// The page size that comes closest to the clear limit.
fn best_page(entries: &[Entry]) -> Option<Headline> {
    let at = elapsed(throughput::ARM, throughput::FAULT_IN);
    let share = |entry: &Entry| entry.numbers.get(at, "share_of_clear");
    let mine = entries.iter().filter(|entry| entry.record.workload == throughput::WORKLOAD);
    let candidates = mine.filter_map(|entry| Some((entry, share(entry)?)));
    let (best, most) = candidates.max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))?;
    let base = base_case(entries, throughput::WORKLOAD, None, (at, "share_of_clear"));
    let base = base.filter(|(entry, _)| entry.case() != best.case());
    let against = base.map(|(_, share)| format!("4k pages {}", share.display()));
    Some(Headline {
        value: most.display(),
        label: format!("of the clear limit with {} pages", best.parameter("page")),
        detail: with_interval(most, &against.unwrap_or_default()),
        tone: Tone::Plain,
    })
}

fn fixed_cost(fits: &[Fit]) -> Option<Headline> {
    let fitted = fits.iter().filter_map(|fit| Some((fit, fit.line?)));
    let (fit, line) = fitted.min_by_key(|(fit, _)| fit.unusual)?;
    let number = pagelab_record::units::display_number;
    Some(Headline {
        value: pagelab_record::units::display_ns(line.intercept),
        label: format!("fixed cost of a fault ({})", fit.label),
        detail: format!("+ {} ns/KiB, R² {:.3}", number(line.slope), line.r_squared),
        tone: Tone::Plain,
    })
}

/// How many cases may be believed.
fn trust(entries: &[Entry]) -> Headline {
    let count = |standing| entries.iter().filter(|entry| entry.standing == standing).count();
    let claims = entries.iter().filter_map(Entry::measured).map(|m| m.witness.len()).sum::<usize>();
    let told = [
        (count(Standing::Invalid), "invalid"),
        (count(Standing::Emulated), "emulated"),
        (count(Standing::Failed), "failed"),
        (count(Standing::Skipped), "skipped"),
    ];
    let told: Vec<String> =
        told.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let bad = [Standing::Invalid, Standing::Failed, Standing::Emulated];
    let bad = bad.into_iter().any(|standing| count(standing) > 0);
    Headline {
        value: format!("{} of {}", count(Standing::Valid), entries.len()),
        label: "cases valid by their witness".to_owned(),
        detail: [vec![format!("{claims} claims")], told].concat().join(", "),
        tone: if bad { Tone::Warn } else { Tone::Good },
    }
}

fn with_interval(quantity: Quantity, against: &str) -> String {
    let interval = quantity.display_interval();
    let interval = match (interval.as_str(), quantity.coverage) {
        ("", _) => interval,
        (_, coverage) if coverage > 0.0 => format!("{:.0} %: {interval}", coverage * 100.0),
        _ => format!("in one process: {interval}"),
    };
    let parts = [interval, against.to_owned()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
}
