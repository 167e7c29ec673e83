//! What the memory itself costs: hash functions, last pages, page caches, decoding.
//!
//! The one idea: every sentence is a ratio of two arms of one case and what its interval allows to
//! be said. What would explain a ratio comes after it, and only where the ratio is what the
//! explanation predicts.

use super::both::{Answer, Both, EXEC, FIB, TRACES, ns, percent, published, told};
use crate::{
    numbers::cpu,
    quantity::Quantity,
    ratio::{Verdict, open},
    replay::{NOOP, REPLAY},
    trace::WHOLE,
};

const FX: &str = "paged-fx";
const NOHASH: &str = "paged-nohash";
const LAST: &str = "paged-last";
const BASE: &str = "base";
/// The memory of `base`, decoded fast.
const BASE_FAST: &str = "paged-cache-32-neg";
const SAFE_NOOP: &str = "noop/safe";
const TLB: &str = "tlb";
/// Pages of the caches.
const SIZES: [u32; 4] = [4, 8, 16, 32];
/// The share of system time from which on it is spoken of.
const MUCH: f64 = 0.1;

/// Why no hash is slower than a hash.
pub(super) fn nohash(both: &Both<'_>) -> Answer {
    let ratio = both.ratio(EXEC, NOHASH, FX)?;
    let theirs = |trace| both.published_ratio("hashers", trace, [NOHASH, FX]);
    let mut text = format!(
        "On {EXEC} {NOHASH} takes {} of the time of {FX}{}",
        told(ratio),
        published(theirs(EXEC))
    );
    if let Ok(fib) = both.ratio(FIB, NOHASH, FX) {
        text.push_str(&format!(", on {FIB} {}{}", told(fib), published(theirs(FIB))));
    }
    let said = match Verdict::of(ratio) {
        Verdict::More => {
            ". What would explain it: a page number that is its own hash has zeros in its top 7 \
             bits, and these are what the map (hashbrown) keeps beside each slot to tell entries \
             apart without a look at their keys; here all of them match. Neighbouring pages lie in \
             neighbouring slots, so a page that is absent is compared with several of them"
        }
        Verdict::Tie => {
            ". That is a tie: the published loss does not show with this trace, although page \
             numbers as hashes have zeros in all 7 bits by which the map (hashbrown) tells entries \
             apart without a look at their keys"
        }
        Verdict::Less => ". Other than published, not hashing is a gain here",
        Verdict::Open => return Ok(format!("{text}: {}.", open(ratio))),
    };
    text.push_str(said);
    if let Some(absent) = both.share(EXEC, WHOLE, "absent_share") {
        let absent = percent(absent);
        text.push_str(&format!("; {absent} of the operations here read a page that is absent"));
    }
    text.push('.');
    Ok(text)
}

/// Why keeping the last page gained nothing.
pub(super) fn last_page(both: &Both<'_>) -> Answer {
    let ratio = both.ratio(EXEC, LAST, FX)?;
    let theirs = both.published_total("cache-last", EXEC, LAST);
    let theirs = theirs.zip(both.published_total("hashers", EXEC, FX)).map(|(a, b)| a / b);
    let mut text =
        format!("On {EXEC} {LAST} takes {} of the time of {FX}{}", told(ratio), published(theirs));
    text.push_str(match Verdict::of(ratio) {
        Verdict::Tie => ": a tie, it gains nothing here either.",
        Verdict::Less => ": other than published, it is a gain here.",
        Verdict::More => ": here it even costs.",
        Verdict::Open => ": ",
    });
    if Verdict::of(ratio) == Verdict::Open {
        text.push_str(&format!("{}.", open(ratio)));
    }
    let share = |statistic| both.share(EXEC, WHOLE, statistic);
    let (Some(moved), Some(absent)) = (share("transition_share"), share("absent_share")) else {
        text.push_str(&format!(" Why cannot be said without trace/stats of {EXEC}."));
        return Ok(text);
    };
    let published = |statistic| {
        let share = both.published_share(EXEC, WHOLE, statistic);
        share.map_or_else(String::new, |share| format!(" (published {})", percent(share)))
    };
    text.push_str(&format!(
        " {} of the operations are on another page than the one before{}, and {} read a page that \
         is absent{}, which is never kept: at most {} can hit, and every miss pays for the \
         comparison too.",
        percent(moved),
        published("transition_share"),
        percent(absent),
        published("absent_share"),
        percent(1.0 - absent),
    ));
    if let Some(entry) = both.step("cache-last", EXEC, None) {
        let (hits, misses) = (
            entry.counter("page_cache_hits").unwrap_or_default() as f64,
            entry.counter("page_cache_misses").unwrap_or_default() as f64,
        );
        if hits + misses > 0.0 {
            text.push_str(&format!(" Published are {} hits.", percent(hits / (hits + misses))));
        }
    }
    Ok(text)
}

/// Whether a small cache of pages helps.
pub(super) fn page_caches(both: &Both<'_>) -> Answer {
    let mut text = String::new();
    let mut missing = String::new();
    for trace in TRACES {
        let of = |suffix: &str| -> Vec<(u32, Quantity)> {
            let ratio = |size: u32| {
                let arm = format!("paged-cache-{size}{suffix}");
                Some((size, both.ratio(trace, &arm, FX).ok()?))
            };
            SIZES.into_iter().filter_map(ratio).collect()
        };
        let (plain, with_absent) = (of(""), of("-neg"));
        if plain.is_empty() && with_absent.is_empty() {
            missing = format!("needs {FX} and paged-cache-4 to -32 as arms of one case");
            continue;
        }
        let list = |ratios: &[(u32, Quantity)]| {
            let each =
                ratios.iter().map(|(size, ratio)| format!("{size} pages {:.2}", ratio.value));
            each.collect::<Vec<_>>().join(", ")
        };
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&format!("On {trace}, over {FX}: "));
        let parts = [("", &plain), ("with absent pages too: ", &with_absent)];
        let parts = parts.iter().filter(|(_, ratios)| !ratios.is_empty());
        let parts: Vec<String> =
            parts.map(|(words, ratios)| format!("{words}{}", list(ratios))).collect();
        text.push_str(&parts.join("; "));
        text.push('.');
        for (what, ratios) in [("present pages", &plain), ("absent pages too", &with_absent)] {
            text.push_str(&best(what, ratios));
        }
    }
    if text.is_empty() {
        return Err(missing);
    }
    let theirs = both.published_ratio("negative-cache", EXEC, [BASE_FAST, FX]);
    if let Some(ratio) = theirs {
        text.push_str(&format!(" Published for 32 with absent pages on {EXEC}: {ratio:.2}."));
    }
    Ok(text)
}

/// What the best of some caches comes to.
fn best(what: &str, ratios: &[(u32, Quantity)]) -> String {
    let Some((size, best)) = ratios.iter().min_by(|(_, a), (_, b)| a.value.total_cmp(&b.value))
    else {
        return String::new();
    };
    let said = match Verdict::of(*best) {
        Verdict::Less => "a gain",
        Verdict::Tie => "a tie",
        Verdict::More => "a loss",
        Verdict::Open => open(*best),
    };
    format!(" The best that keeps {what} takes {} with {size} pages: {said}.", told(*best))
}

/// Whether hashing is the bottleneck.
pub(super) fn hashing(both: &Both<'_>) -> Answer {
    let missing = || format!("needs {NOOP}, {FX} and {TLB} as arms of one case of {EXEC}");
    let [floor, fx, tlb] = both.cpu_ns(EXEC, [NOOP, FX, TLB]).ok_or_else(missing)?;
    let over_floor = both.ratio(EXEC, TLB, NOOP)?;
    let mut text = format!(
        "On {EXEC} a map with FxHash adds {} to the decoding of an operation; {TLB}, which asks \
         its map only on a miss, adds {}",
        ns(fx - floor),
        ns(tlb - floor)
    );
    if let Some([sip, _]) = both.cpu_ns(EXEC, ["paged-sip", NOOP]) {
        text.push_str(&format!("; a map with the default SipHash {}", ns(sip - floor)));
    }
    text.push('.');
    // Where decoding is all there is, nothing can be a bottleneck of the memory.
    if fx > floor {
        let saved = ((fx - tlb) / (fx - floor)).min(1.0);
        let part = match saved {
            saved if saved > 0.6 => "Most",
            saved if saved > 0.3 => "A good part",
            _ => "Little",
        };
        text.push_str(&format!(
            " {part} of what the map costs is finding the page by its hash: {} of it is saved.",
            percent(saved.max(0.0))
        ));
    } else {
        text.push_str(" The map costs nothing that can be told from decoding.");
    }
    if let Ok(ratio) = both.ratio(EXEC, TLB, BASE) {
        text.push_str(&format!(" {TLB} takes {} of the time of {BASE}", told(ratio)));
        text.push_str(&format!(", {} times that of {NOOP}", told(over_floor)));
        text.push_str(match Verdict::of(over_floor) {
            Verdict::Tie => ", a tie: what is left is decoding.",
            _ => ".",
        });
    }
    if let Ok(flat) = both.ratio(EXEC, "flat", TLB) {
        text.push_str(&format!(" No look-up at all (flat) takes {} of {TLB}'s time", told(flat)));
        text.push_str(match Verdict::of(flat) {
            Verdict::Tie => ", a tie.",
            Verdict::Less => ", so looking up still costs.",
            Verdict::More => ": what it asks of the host costs more.",
            Verdict::Open => ".",
        });
    }
    text.push_str(&first_touches(both));
    Ok(text)
}

/// What of the time of our memories is the kernel's, where that is much.
fn first_touches(both: &Both<'_>) -> String {
    let system = |arm: &'static str| {
        let entry = both.arms_case(EXEC, &[arm])?;
        let of = |series, statistic| Some(entry.numbers.get(cpu(arm, series), statistic)?.value);
        let (part, all) = (of("system-time", "p50")?, of(REPLAY, "ns_per_op")?);
        (part > all * MUCH).then(|| format!("{} of {arm}", ns(part)))
    };
    let told: Vec<String> = [TLB, "flat"].into_iter().filter_map(system).collect();
    if told.is_empty() {
        return String::new();
    }
    format!(
        " {} {} system time, for pages that are touched first; a longer trace spreads it thinner.",
        told.join(" and "),
        if told.len() == 1 { "is" } else { "are" }
    )
}

/// How much of the time was decoding.
pub(super) fn decoding(both: &Both<'_>) -> Answer {
    let safe = both.ratio(EXEC, SAFE_NOOP, NOOP)?;
    let mut text = format!(
        "On {EXEC} decoding with bounds checks takes {} times as long as without",
        told(safe)
    );
    if let Ok(fib) = both.ratio(FIB, SAFE_NOOP, NOOP) {
        text.push_str(&format!(", on {FIB} {}", told(fib)));
    }
    text.push_str(match Verdict::of(safe) {
        Verdict::Tie => ": a tie.",
        Verdict::Less => ", which the checks cannot explain.",
        Verdict::More => ".",
        Verdict::Open => ", ",
    });
    if Verdict::of(safe) == Verdict::Open {
        text.push_str(&format!("{}.", open(safe)));
    }
    if let Ok(part) = both.ratio(EXEC, SAFE_NOOP, BASE) {
        text.push_str(&format!(" It is {} of all the time of {BASE}", percent(part.value)));
        if let Ok(saved) = both.ratio(EXEC, BASE_FAST, BASE) {
            text.push_str(&format!(
                ", and the same memory decoded fast takes {} of it",
                told(saved)
            ));
        }
        text.push('.');
    }
    let theirs = both.published_ratio("hashers", EXEC, [NOOP, FX]);
    if let Some(part) = theirs {
        text.push_str(&format!(
            " Published, noop took {} of the time of {FX}, reading included.",
            percent(part)
        ));
    }
    Ok(text)
}
