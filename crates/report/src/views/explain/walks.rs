//! The part of a program's report about address translation.
//!
//! The one idea: how often, in which memory, what it costs with the ends of what is known, and what
//! the ends are; what was not looked at says how it is had. It computes nothing: that is done in
//! [`super::translation`].

use pagelab_record::{Measured, units};

use super::{
    notes::TRANSLATION,
    prices::Prices,
    translation::{Place, Seen, Translation},
};
use crate::{Block, Cell, Grid, Quantity, Table, Unit};

/// Everything about it.
pub(super) fn blocks(measured: &Measured, prices: &Prices) -> Vec<Block> {
    let mut blocks = vec![Block::Heading("Translation".to_owned())];
    let text = |text: &str| Block::Text(text.to_owned());
    match Translation::of(measured, &prices.walks) {
        None => return Vec::new(),
        Some(Translation::Refused) => {
            blocks.push(text("Not sampled: the accessed bits of its pages may not be cleared."));
        }
        Some(Translation::TooShort(looks)) => blocks.push(Block::Text(format!(
            "Not sampled: the program was too short to see, {looks} looks (it takes a tenth of a \
             second)."
        ))),
        Some(Translation::Seen(seen)) => {
            blocks.push(Block::Text(summary(&seen)));
            if !seen.places.is_empty() {
                blocks.push(Block::Table(table(&seen)));
                blocks.push(text(LEGEND));
            }
        }
    }
    blocks
}

/// What was not looked at, where nobody asked.
pub(super) fn not_asked(measured: &Measured, prices: &Prices) -> Option<Block> {
    let nobody = Translation::of(measured, &prices.walks).is_none();
    nobody.then(|| Block::Text(TRANSLATION.to_owned()))
}

const LEGEND: &str = "\
Walks: pages whose accessed bit was set again after it was cleared, in windows of several lengths; \
what finds its translation in a TLB sets none. Cost: beside pages of 2 MiB, by chains of loads \
over either (tlb/chase), at the distance of the reuse. Its upper end are loads that wait for each \
other, its lower end an eighth of loads that do not, as where pages come in order and are \
prefetched; the value lies midway between loads that wait and loads that do not. Which of them a \
program has cannot be seen from outside. Beyond its CPU time no loads are taken to have waited.";

fn summary(seen: &Seen) -> String {
    let walks = seen.walks();
    let mut text = format!("Looked {} times: {} walks", seen.looks, counted(walks));
    if let Some(each) = per_second(walks, seen) {
        text.push_str(&format!(", {} in a second of CPU time", counted(each)));
    }
    match seen.cost() {
        Some(cost) if cost.high > 0.0 => {
            let Quantity { value, low, high, .. } = cost;
            let [value, low, high] = [value, low, high].map(units::display_ns);
            text.push_str(&format!(". They took {value} of it ({low} to {high})"));
            if let Some(share) = share(cost, seen) {
                text.push_str(&format!(", {}", share.display()));
            }
        }
        Some(_) => text.push_str(". They took no time that could be told"),
        None => text.push_str(". What they cost was not measured"),
    }
    text.push('.');
    if seen.covered < 0.7 {
        let covered = Quantity::exact(seen.covered, Unit::Share).display();
        text.push_str(&format!(
            " The looks stand for {covered} of its CPU time; the rest is taken to be like that."
        ));
    }
    if seen.is_open {
        text.push_str(
            " Some pages were walked to again within the shortest window: how often nobody knows, \
             so there were more walks than that, and the cost reaches up to a program that does \
             nothing but such loads.",
        );
    }
    text
}

fn counted(count: Quantity) -> String {
    let told = |count: f64| {
        if count >= 1e6 {
            format!("{:.3} M", count / 1e6)
        } else {
            crate::group_thousands(count.round())
        }
    };
    told(count.value)
}

fn per_second(walks: Quantity, seen: &Seen) -> Option<Quantity> {
    (seen.busy_ns > 0.0).then(|| walks.times(1e9 / seen.busy_ns, Unit::Count))
}

fn share(cost: Quantity, seen: &Seen) -> Option<Quantity> {
    (seen.busy_ns > 0.0).then(|| cost.times(1.0 / seen.busy_ns, Unit::Share))
}

fn table(seen: &Seen) -> Table {
    let interval = |cost: Quantity| {
        let [low, high] = [cost.low, cost.high].map(units::display_ns);
        format!("{low} to {high}")
    };
    Grid::<&Place>::new()
        .words("memory", 0, |place| place.name.clone())
        .number("walks", 1, |place| counted(place.walks))
        .number("a CPU second", 0, |place| per_second(place.walks, seen).map(counted))
        .number("cost", 0, |place| {
            Cell::maybe(place.cost.map(|cost| units::display_ns(cost.value))).strong()
        })
        .number("interval", 0, |place| place.cost.map(interval))
        .number("of its CPU", 2, |place| share(place.cost?, seen).map(Quantity::display))
        .table(&seen.places)
}
