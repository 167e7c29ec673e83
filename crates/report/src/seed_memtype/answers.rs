//! The author's analysis, sentence by sentence: UC, WC, non-temporal stores, sums.
//!
//! The one idea: every sentence is a ratio of two rates and what its interval allows to be said,
//! with the same ratio of his own table in brackets. What would explain a ratio comes after it, and
//! only where the ratio is what the explanation predicts.

use super::{
    both::{Answer, Both, Found, over, published, told},
    tables::{FENCE_WORD, PUBLISHED_TYPES, SUMMARY, published_sum},
};
use crate::{
    memtype::{BANDWIDTH, TEST, display_mib, sum_of, test_of},
    quantity::Quantity,
    ratio::{TIE, Verdict, open},
};

const PLAIN: [&str; 3] = ["write", "write_nofence", "write_ucfence"];

/// Nanoseconds of so many bytes at a rate.
pub(super) fn each_ns(rate: f64, bytes: f64) -> f64 {
    bytes * 1e9 / rate
}

/// Whether UC is the slowest and the steadiest, and how much its ways to store differ.
pub(super) fn uncached(both: &Both<'_>) -> Answer {
    let mut answer = Answer::default();
    let [store, load] = ["write", "read"].map(|test| answer.ask(both.rate("uc", test)));
    if let (Some(store), Some(load)) = (store, load) {
        let width = bytes_of(both, "uc", "write");
        let unit = bytes_of(both, "uc", "read");
        answer.say(format!(
            "A UC store of {width:.0} bytes takes {:.1} ns here ({} MiB/s), a load of {unit:.0} \
             bytes {:.1} ns ({} MiB/s).",
            each_ns(store.value, width),
            display_mib(store),
            each_ns(load.value, unit),
            display_mib(load),
        ));
        slowest(both, &mut answer);
        steadiest(both, &mut answer);
    }
    modes(both, &mut answer);
    if let (None, Ok(store), Ok(load)) = (store, both.rate("wb", "write"), both.rate("wb", "read"))
    {
        let times = |test| both.published_ratio(["wb", test], ["uc", test]).unwrap_or(f64::NAN);
        answer.said.insert(
            0,
            format!(
                "From WB alone: it stores {} and loads {} MiB/s here, which published was {:.0} \
                 and {:.0} times UC.",
                display_mib(store),
                display_mib(load),
                times("write"),
                times("read"),
            ),
        );
    }
    answer
}

/// Bytes of one store or load of a test.
fn bytes_of(both: &Both<'_>, memory_type: &str, test: &str) -> f64 {
    let width = both.case(memory_type, test).map(|entry| entry.parameter("width"));
    width.and_then(|width| width.parse().ok()).unwrap_or(8.0)
}

fn slowest(both: &Both<'_>, answer: &mut Answer) {
    let (mut all, mut exceptions) = (0, Vec::new());
    for test in SUMMARY {
        let Ok(uc) = both.rate("uc", test) else { continue };
        let others = ["wb", "wc"].map(|other| Some((other, both.rate(other, test).ok()?)));
        let others: Vec<(&str, Quantity)> = others.into_iter().flatten().collect();
        if others.is_empty() {
            continue;
        }
        all += 1;
        let slower = others.iter().filter(|(_, rate)| uc.high >= rate.low);
        exceptions.extend(slower.map(|(other, rate)| {
            format!("{test} ({} {} MiB/s)", other.to_uppercase(), display_mib(*rate))
        }));
    }
    if all == 0 {
        return;
    }
    answer.say(match exceptions.len() {
        0 => format!("UC is the slowest in all {all} tests that can be compared."),
        _ => format!(
            "UC is the slowest memory type but for {}, of {all} tests that can be compared.",
            exceptions.join(", ")
        ),
    });
}

fn steadiest(both: &Both<'_>, answer: &mut Answer) {
    let spread = |memory_type: &str| -> Found<f64> {
        let of = |statistic| both.number([memory_type, "write"], TEST, statistic);
        Ok((of("max")?.value - of("min")?.value) / of("p50")?.value * 100.0)
    };
    let all = PUBLISHED_TYPES.map(|t| Some((t, spread(t).ok()?)));
    let all: Vec<(&str, f64)> = all.into_iter().flatten().collect();
    let Some((_, uc)) = all.iter().find(|(memory_type, _)| *memory_type == "uc") else { return };
    if all.len() < 2 {
        return;
    }
    let steadiest = all.iter().all(|(_, other)| uc <= other);
    let each: Vec<String> =
        all.iter().map(|(t, spread)| format!("{spread:.1} % in {}", t.to_uppercase())).collect();
    answer.say(format!(
        "Between the fastest and the slowest round of write lie, of the median, {}: UC is {}the \
         steadiest here; the original printed no dispersion.",
        each.join(", "),
        if steadiest { "" } else { "not " }
    ));
}

/// How much the ways to store into UC memory differ.
fn modes(both: &Both<'_>, answer: &mut Answer) {
    let rates = PLAIN.map(|test| answer.ask(both.rate("uc", test)));
    let nt = answer.ask(both.rate("uc", "ntwrite"));
    let (Some(plain), Some(nt)) = (rates[0], nt) else { return };
    let values: Vec<f64> = rates.iter().flatten().map(|rate| rate.value).collect();
    let theirs = PLAIN.map(|test| both.published_rate("uc", test).map(|rate| rate.value));
    let theirs: Vec<f64> = theirs.into_iter().flatten().collect();
    let apart = |values: &[f64]| {
        let most = values.iter().copied().fold(f64::MIN, f64::max);
        (most / values.iter().copied().fold(f64::MAX, f64::min) - 1.0) * 100.0
    };
    let ratio = over(nt, plain);
    let there = both.published_ratio(["uc", "ntwrite"], ["uc", "write"]);
    let mut text = format!(
        "Its plain ways to store are {:.1} % apart (published {:.1} %), but ntwrite carries {} \
         times what write does{}",
        apart(&values),
        apart(&theirs),
        told(ratio),
        published(there),
    );
    text.push_str(match Verdict::of(ratio) {
        Verdict::Tie => {
            ": here the ways to store do differ little, as the prose says and its table does not."
        }
        Verdict::More => {
            ": that the ways to store differ little does not hold, here as in its own table."
        }
        Verdict::Less => ": non-temporal stores are the slower ones here.",
        Verdict::Open => ": ",
    });
    if Verdict::of(ratio) == Verdict::Open {
        text.push_str(&format!("{}.", open(ratio)));
    }
    let wide = bytes_of(both, "uc", "ntwrite") / bytes_of(both, "uc", "write");
    let is_near = |factor: f64| (ratio.value / factor - 1.0).abs() <= TIE;
    if is_near(wide) && wide > 1.0 {
        text.push_str(&format!(
            " That is what one transaction for each store predicts: {wide:.0} times the bytes."
        ));
    } else if is_near(2.0) {
        text.push_str(
            " Twice is what one transaction for 16 bytes predicts, however wide the store is.",
        );
    }
    answer.say(text);
}

/// Whether WC memory is written faster than WB memory.
pub(super) fn combining(both: &Both<'_>) -> Answer {
    let mut answer = Answer::default();
    for test in ["write", "ntwrite"] {
        let wb = answer.ask(both.rate("wb", test));
        let wc = answer.ask(both.rate("wc", test));
        let (Some(wb), Some(wc)) = (wb, wc) else { continue };
        let ratio = over(wc, wb);
        let mut text = format!(
            "{test}: WC {} MiB/s, {} times WB{}",
            display_mib(wc),
            told(ratio),
            published(both.published_ratio(["wc", test], ["wb", test])),
        );
        text.push_str(match Verdict::of(ratio) {
            Verdict::More => ": WC is the faster one.",
            Verdict::Tie => ": a tie.",
            Verdict::Less => ": WC is the slower one.",
            Verdict::Open => ": ",
        });
        if Verdict::of(ratio) == Verdict::Open {
            text.push_str(&format!("{}.", open(ratio)));
        }
        answer.say(text);
    }
    if let Ok(wb) = both.rate("wb", "write") {
        let entry = both.case("wb", "write");
        let size = entry.map_or("", |entry| entry.parameter("size"));
        let bytes = pagelab_record::units::parse_bytes(size).unwrap_or(0);
        // The limit's buffer is half of the last level.
        let llc = both.limits.levels.iter().find(|level| level.name == "llc");
        let llc = llc.map(|level| level.buffer_bytes.saturating_mul(2)).filter(|llc| *llc > 0);
        let in_cache = llc.map(|llc| {
            let holds = if bytes <= llc { "can hold it" } else { "cannot hold it" };
            let of = pagelab_record::units::display_bytes(llc as f64);
            format!("the last-level cache of this machine ({of}) {holds}")
        });
        answer.say(format!(
            "WB stores {} MiB/s in rounds over {}; {}.",
            display_mib(wb),
            pagelab_record::units::display_bytes(bytes as f64),
            in_cache.unwrap_or_else(|| {
                "whether the last-level cache can hold that is not known without the limits"
                    .to_owned()
            })
        ));
    }
    answer
}

/// Whether non-temporal stores are faster, type by type.
pub(super) fn non_temporal(both: &Both<'_>) -> Answer {
    let mut answer = Answer::default();
    for (memory_type, prose) in [
        ("wb", "the prose calls them close to each other"),
        ("wc", "the prose calls ntwrite a little lower"),
        ("uc", "the prose calls ntwrite clearly faster"),
    ] {
        let plain = answer.ask(both.rate(memory_type, "write"));
        let nt = answer.ask(both.rate(memory_type, "ntwrite"));
        let (Some(plain), Some(nt)) = (plain, nt) else { continue };
        let ratio = over(nt, plain);
        let there = both.published_ratio([memory_type, "ntwrite"], [memory_type, "write"]);
        let said = match Verdict::of(ratio) {
            Verdict::More => "a gain".to_owned(),
            Verdict::Less => "a loss".to_owned(),
            Verdict::Tie => "a tie".to_owned(),
            Verdict::Open => open(ratio).to_owned(),
        };
        let table = there.map_or_else(String::new, |there| {
            format!("; {prose}, its table says {:+.0} %", (there - 1.0) * 100.0)
        });
        answer.say(format!(
            "In {} memory ntwrite is {} times write, {said}{table}.",
            memory_type.to_uppercase(),
            told(ratio),
        ));
    }
    answer
}

/// Why the published sums of UC and of the others differ.
pub(super) fn sums(both: &Both<'_>) -> Answer {
    let mut answer = Answer::default();
    let theirs = |memory_type| {
        let entry = both.log(memory_type, "read")?;
        Some((sum_of(entry, "sum")?, published_sum(entry, memory_type == "uc")?))
    };
    if let (Some((wb, derived_wb)), Some((uc, derived_uc))) = (theirs("wb"), theirs("uc")) {
        let holds = wb == derived_wb && uc == derived_uc;
        answer.say(format!(
            "Both published sums {} from the source: its sum is not reset before the read test, so \
             it starts with that of the last verification. With n words, the last round 49 and S = \
             n(n−1)/2 + 49n, WB and WC must print 51 S = 0x{derived_wb:x}. In UC the fence word is \
             word {FENCE_WORD} of the region: the verification leaves out its {FENCE_WORD} + 49, \
             and each of the 50 rounds of reading finds 49 in it, the last value that the fence \
             stored. 51 (S − 560) + 50 · 49 = 51 S − 26 110 = 0x{derived_uc:x}.",
            if holds { "follow" } else { "do not follow" },
        ));
        answer.say(
            "So the difference is as expected, but not for the reason given: the word does not \
             keep old data, it holds the fence's.",
        );
    }
    let reads = both.entries.iter().filter(|entry| {
        entry.record.workload == BANDWIDTH
            && test_of(entry.case()) == "read"
            && entry.measured().is_some()
    });
    let sums: Vec<_> = reads
        .filter_map(|entry| Some((entry, sum_of(entry, "sum")?, sum_of(entry, "expected_sum")?)))
        .collect();
    let right = sums.iter().filter(|(_, observed, expected)| observed == expected).count();
    if !sums.is_empty() {
        answer.say(format!(
            "Here {right} of {} sums that were read are what they should be.",
            sums.len()
        ));
    }
    for (entry, observed, _) in &sums {
        let memory_type = entry.parameter("type");
        if entry.parameter("sum") == "accumulated"
            && theirs(memory_type).is_some_and(|(printed, _)| printed == *observed)
        {
            answer.say(format!(
                "{} read the original's way gives its very sum, 0x{observed:x}.",
                memory_type.to_uppercase()
            ));
        }
    }
    for memory_type in PUBLISHED_TYPES {
        answer.ask(both.rate(memory_type, "read"));
    }
    answer
}
