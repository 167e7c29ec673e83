//! What a fence costs and what it waits for, round by round; and what verification can show.
//!
//! The one idea: costs are differences of the time of a round, in microseconds, so that they can be
//! held against what one access to UC memory takes. Where an interval of a difference reaches to
//! both sides of nothing, no cost is spoken of.

use super::{
    answers::each_ns,
    both::{Answer, Both, Found, over, told},
    tables::{LOAD_BACK, PUBLISHED_TYPES},
};
use crate::{
    entry::{Entry, Standing},
    memtype::{BANDWIDTH, COMPLETION, Count, ISSUE, ORDER, TEST, count, display_mib},
    quantity::{Quantity, Unit, group_thousands},
    ratio::Verdict,
};

/// Stores by how they end: with sfence, with a store to UC memory.
const FENCED: [[&str; 2]; 2] = [["write", "write_ucfence"], ["ntwrite", "ntwrite_ucfence"]];
/// Below this part of a cost, an access does not explain it.
const LITTLE: f64 = 0.1;

/// One time less another, with the worst of both ends.
fn minus(one: Quantity, other: Quantity) -> Quantity {
    Quantity {
        value: one.value - other.value,
        low: one.low - other.high,
        high: one.high - other.low,
        coverage: one.coverage.min(other.coverage),
        unit: Unit::Ns,
    }
}

fn is_told_from_nothing(cost: Quantity) -> bool {
    cost.low > 0.0 || cost.high < 0.0
}

/// `+270 µs`, with the interval.
fn microseconds(cost: Quantity) -> String {
    let us = |ns: f64| {
        let value = ns / 1e3;
        if value.abs() < 9.95 { format!("{value:+.2}") } else { format!("{value:+.0}") }
    };
    if cost.high - cost.low <= cost.value.abs() * 1e-9 {
        return format!("{} µs", us(cost.value));
    }
    format!("{} µs ({} to {})", us(cost.value), us(cost.low), us(cost.high))
}

/// What a round takes more than another to the end that each names, here and published.
fn difference(
    both: &Both<'_>,
    memory_type: &str,
    [one, other]: [&str; 2],
) -> Found<(Quantity, Option<f64>)> {
    let here = minus(both.round(memory_type, one, TEST)?, both.round(memory_type, other, TEST)?);
    let theirs = both.published_round(memory_type, one);
    let theirs = theirs.zip(both.published_round(memory_type, other));
    Ok((here, theirs.map(|(one, other)| one - other)))
}

/// What the UC fence costs a round, and whether the access itself explains it.
pub(super) fn cost(both: &Both<'_>) -> Answer {
    let mut answer = Answer::default();
    let (mut costs, mut each) = (Vec::new(), Vec::new());
    for memory_type in ["wb", "wc"] {
        for [sfence, uc] in FENCED {
            let found = difference(both, memory_type, [uc, sfence]);
            let Some((cost, theirs)) = answer.ask(found) else { continue };
            let theirs =
                theirs.map_or_else(String::new, |ns| format!(", published {:+.0} µs", ns / 1e3));
            let doubt = if is_told_from_nothing(cost) { "" } else { ", not told from nothing" };
            each.push(format!(
                "{} {sfence} {}{doubt}{theirs}",
                memory_type.to_uppercase(),
                microseconds(cost)
            ));
            costs.extend(is_told_from_nothing(cost).then_some(cost.value));
        }
    }
    if !each.is_empty() {
        answer.say(format!(
            "A round that ends with a store to UC memory instead of an sfence takes longer by: {}.",
            each.join("; ")
        ));
    }
    sfence(both, &mut answer);
    access(both, &costs, !each.is_empty(), &mut answer);
    completion(both, &mut answer);
    answer
}

/// What an sfence costs a round: the scale for every other difference.
fn sfence(both: &Both<'_>, answer: &mut Answer) {
    let pair = ["write", "write_nofence"];
    let theirs = both.published_round("wb", pair[0]).zip(both.published_round("wb", pair[1]));
    let theirs = theirs.map(|(one, other)| one - other);
    let Ok((here, _)) = difference(both, "wb", pair) else { return };
    let mut said = if is_told_from_nothing(here) {
        format!("takes {} more than one without", microseconds(here))
    } else {
        format!("takes no time that can be told from nothing: {}", microseconds(here))
    };
    if here.high < 0.0 {
        said.push_str(", and no fence saves time: differences of that size are not about fences");
    }
    if let Some(theirs) = theirs {
        said.push_str(&format!("; published {:+.0} µs", theirs / 1e3));
        if theirs < 0.0 {
            said.push_str(", so that single runs of 0.05 s are that far astray");
        }
    }
    answer.say(format!("In WB a round of write with its sfence {said}."));
}

/// What one access to UC memory takes, beside those costs.
fn access(both: &Both<'_>, costs: &[f64], compared: bool, answer: &mut Answer) {
    let mut fences =
        ["wb", "wc", "uc"].into_iter().filter_map(|t| both.latency(t, "uc-store").ok());
    let measured = fences.next().map(|ns| (ns.value, "a store to the fence word by itself"));
    let store = both.rate("uc", "write").ok();
    let store = store.map(|rate| (each_ns(rate.value, 8.0), "a store of 8 bytes to UC memory"));
    let dearest = costs.iter().copied().fold(f64::MIN, f64::max);
    if let Some((ns, what)) = measured.or(store).filter(|_| compared) {
        let said = if costs.is_empty() {
            ". No cost of a round can be told from nothing here".to_owned()
        } else if dearest <= 0.0 {
            ", and rounds with it are shorter, not longer".to_owned()
        } else if ns < dearest * LITTLE {
            format!(
                ", {:.2} % of the largest of these costs: that the access itself is slow does not \
                 explain them",
                ns / dearest * 100.0
            )
        } else {
            format!(
                ", {:.0} % of the largest of these costs: here the access itself is a good part",
                ns / dearest * 100.0
            )
        };
        answer.say(format!("Here {what} takes {ns:.1} ns{said}."));
    }
    let theirs = |test| both.published_rate("uc", test).map(|rate| each_ns(rate.value, 8.0));
    if let (Some(store), Some(load)) = (theirs("write"), theirs("read")) {
        let least = ["wb", "wc"].into_iter().flat_map(|t| FENCED.map(|pair| (t, pair)));
        let least = least.filter_map(|(t, [sfence, uc])| {
            Some(both.published_round(t, uc)? - both.published_round(t, sfence)?)
        });
        let least = least.fold(f64::MAX, f64::min);
        answer.say(format!(
            "Published, \"the UC access itself is slow\" contradicts its own table: by that a UC \
             store takes {store:.1} ns and a UC load {load:.1} ns, together {:.2} % of the \
             smallest cost of {:.0} µs.",
            (store + load) / least * 100.0,
            least / 1e3,
        ));
    }
}

/// Whether rounds with either fence are complete at the same time.
fn completion(both: &Both<'_>, answer: &mut Answer) {
    let mut each = Vec::new();
    let mut verdicts = Vec::new();
    for memory_type in ["wb", "wc"] {
        for [sfence, uc] in FENCED {
            let [one, other] =
                [uc, sfence].map(|test| both.round(memory_type, test, COMPLETION).ok());
            let (Some(one), Some(other)) = (one, other) else { continue };
            let ratio = over(one, other);
            each.push(format!("{} {sfence} {}", memory_type.to_uppercase(), told(ratio)));
            verdicts.push(Verdict::of(ratio));
        }
    }
    if each.is_empty() {
        return;
    }
    let said = if verdicts.iter().all(|verdict| *verdict == Verdict::Tie) {
        ": a tie, so that what the UC store waits for is what an sfence leaves under way."
    } else if verdicts.contains(&Verdict::More) {
        ": with the UC store some are complete later, too, so that it does not only wait for what \
         an sfence leaves under way. What else takes that long these numbers do not say."
    } else {
        "."
    };
    answer.say(format!(
        "Until everything is complete, rounds with the UC store take, over those with an sfence, \
         {}{said}",
        each.join(", ")
    ));
}

/// Costs that can be told from nothing with their numbers, then the names of the others.
fn listed(what: &str, each: &[(String, Quantity)]) -> String {
    let (told, others): (Vec<_>, Vec<_>) =
        each.iter().partition(|(_, cost)| is_told_from_nothing(*cost));
    let told: Vec<String> =
        told.iter().map(|(name, cost)| format!("{name} {}", microseconds(*cost))).collect();
    let others: Vec<&str> = others.iter().map(|(name, _)| name.as_str()).collect();
    match (told.join("; "), others.join(", ")) {
        (told, others) if others.is_empty() => format!("{what}: {told}."),
        (told, others) if told.is_empty() => {
            format!("{what} no time that can be told from nothing: {others}.")
        }
        (told, others) => format!("{what}: {told}. Not told from nothing: {others}."),
    }
}

/// What loading the fence word back adds to storing it.
pub(super) fn load_back(both: &Both<'_>) -> Answer {
    let mut answer = Answer::default();
    let mut each = Vec::new();
    for memory_type in PUBLISHED_TYPES {
        for (back, [_, uc]) in LOAD_BACK.into_iter().zip(FENCED) {
            let found = difference(both, memory_type, [back, uc]);
            let Some((cost, _)) = answer.ask(found) else { continue };
            each.push((format!("{} {uc}", memory_type.to_uppercase()), cost));
        }
    }
    if !each.is_empty() {
        answer.say(listed(
            "With the word loaded back after the store a round takes longer by",
            &each,
        ));
    }
    answer.say(
        "The original documents the load and its source leaves it out, so its published ucfence \
         rows are those of a store alone.",
    );
    answer
}

/// What the nofence tests leave out.
pub(super) fn issue_and_completion(both: &Both<'_>) -> Answer {
    let mut answer = Answer::default();
    let mut each = Vec::new();
    for memory_type in PUBLISHED_TYPES {
        for test in ["write_nofence", "ntwrite_nofence"] {
            let mut of =
                |series, statistic| answer.ask(both.number([memory_type, test], series, statistic));
            let (issued, done) = (of(ISSUE, "round"), of(COMPLETION, "round"));
            let rates = [of(ISSUE, "bandwidth"), of(COMPLETION, "bandwidth")];
            let (Some(issued), Some(done), [Some(at_issue), Some(at_end)]) = (issued, done, rates)
            else {
                continue;
            };
            let name = format!(
                "{} {test} ({} MiB/s issued, {} complete)",
                memory_type.to_uppercase(),
                display_mib(at_issue),
                display_mib(at_end),
            );
            each.push((name, minus(done, issued)));
        }
    }
    if !each.is_empty() {
        answer.say("The nofence tests stop the clock at the last store, there and here.");
        answer.say(listed("From there until everything was complete it took", &each));
    }
    answer
}

/// What was verified, and what only another CPU can see.
pub(super) fn what_verification_shows(both: &Both<'_>) -> Answer {
    let mut answer = Answer::default();
    let stored = both.entries.iter().filter(|e| e.record.workload == BANDWIDTH && e.is_valid());
    let counts = stored.map(|entry| {
        (
            entry.counter("verified_rounds").unwrap_or_default(),
            entry.counter("wrong_words").unwrap_or_default(),
        )
    });
    let (rounds, wrong) = counts.fold((0, 0), added);
    if rounds > 0 {
        answer.say(format!(
            "Here {} wrong words in {} verified rounds, with and without a fence. A CPU sees its \
             own stores in order whatever it leaves in its buffers, so that proves nothing about \
             fences.",
            group_thousands(wrong as f64),
            group_thousands(rounds as f64),
        ));
    }
    let ran = both.entries.iter().filter(|entry| entry.record.workload == ORDER);
    let (seen, unseen): (Vec<_>, Vec<_>) =
        ran.filter_map(told_of_order).partition(|(_, reorderings)| *reorderings > 0);
    let names = |told: Vec<(String, u64)>| {
        told.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join("; ")
    };
    if seen.is_empty() && unseen.is_empty() {
        answer.say("What another CPU sees is not said without a valid case of memtype/order.");
    }
    if !seen.is_empty() {
        answer
            .say(format!("Another CPU saw stores out of order (memtype/order): {}.", names(seen)));
    }
    if !unseen.is_empty() {
        answer.say(format!("It saw none out of order with: {}.", names(unseen)));
    }
    let mut variants = both.published.iter().filter(|e| e.parameter("part") == "a-d").peekable();
    if variants.peek().is_some() {
        let sum = variants.fold((0, 0), |sum, entry| {
            added(
                sum,
                (
                    entry.counter("failures").unwrap_or_default(),
                    entry.counter("rounds").unwrap_or_default(),
                ),
            )
        });
        answer.say(format!(
            "The published A–D test of 4 KiB of WC memory (movnti, with and without sfence and a \
             marker in UC memory) has {} failures in {} rounds, but stores the same value in all: \
             stale data after the first round would look right.",
            group_thousands(sum.0 as f64),
            group_thousands(sum.1 as f64),
        ));
    }
    answer
}

/// Two counts added; a record may hold any number.
fn added(one: (u64, u64), other: (u64, u64)) -> (u64, u64) {
    (one.0.saturating_add(other.0), one.1.saturating_add(other.1))
}

/// A case of `memtype/order` that may speak: its name with its counts, and its reorderings.
fn told_of_order(entry: &Entry) -> Option<(String, u64)> {
    let Count { observed, reorderings, .. } = count(entry)?;
    (entry.standing == Standing::Valid && observed > 0).then(|| {
        let of = match reorderings {
            0 => String::new(),
            reorderings => format!("{} ", group_thousands(reorderings as f64)),
        };
        let name = format!(
            "{} {}, {} ({of}of {})",
            entry.parameter("type").to_uppercase(),
            entry.parameter("store"),
            match entry.parameter("fence") {
                "none" => "no fence",
                fence => fence,
            },
            group_thousands(observed as f64),
        );
        (name, reorderings)
    })
}
