//! The part of a program's report about address translation.
//!
//! The one idea: how often, in which memory, what it costs with the ends of what is known, and what
//! the ends are; what was not looked at says how it is had. It computes nothing: that is done in
//! [`super::translation`].

use pagelab_record::{Measured, units, walks::End};

use super::{
    notes::TRANSLATION,
    priced::{By, ENTRIES, Model, Place, Seen, Size},
    prices::Prices,
    translation::Translation,
};
use pagelab_report::{Block, Cell, Grid, Quantity, Table, Unit};

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
             second): --translation=capture does without."
        ))),
        Some(Translation::Unlike(End::Interrupted)) => {
            blocks.push(text("Not captured: nobody waited for its second run."));
        }
        Some(Translation::Unlike(_)) => blocks.push(text(
            "Not captured: under emulation the program ended otherwise than by itself, so what it \
             did there is not told.",
        )),
        Some(Translation::Seen(seen)) => {
            blocks.push(Block::Text(summary(&seen)));
            let legend = match &seen.by {
                By::Looks(..) => LOOKED,
                By::Model(model) => {
                    blocks.push(Block::Table(sizes(&seen, model)));
                    MODELLED
                }
            };
            if !seen.places.is_empty() {
                blocks.push(Block::Table(table(&seen)));
            }
            if !seen.places.is_empty() || matches!(seen.by, By::Model(_)) {
                blocks.push(Block::Text(format!("{legend} {LEGEND}")));
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

const LOOKED: &str = "\
Walks: pages whose accessed bit was set again after it was cleared, in windows of several lengths; \
what finds its translation in a TLB sets none.";

const MODELLED: &str = "\
Captured under emulation: exact accesses, modelled TLB. Walks: loads and stores of a page after \
which as many others as the last TLB has entries were used, or more: a fully associative LRU TLB, \
whose interval is that of one twice and of one half as large. First uses are faults, not walks. \
Near: misses of the first TLB that the last one may answer; they have no price, and neither have \
fetches, which are modelled with TLBs of the same sizes for themselves. Saves: of the heap and \
anonymous memory, where a page of 2 MiB could lie.";

const LEGEND: &str = "\
Cost: beside pages of 2 MiB, by chains of loads \
over either (tlb/chase), at the distance of the reuse. Its upper end are loads that wait for each \
other, its lower end an eighth of loads that do not, as where pages come in order and are \
prefetched; the value lies midway between loads that wait and loads that do not. Which of them a \
program has cannot be seen from outside. Beyond its CPU time no loads are taken to have waited.";

fn summary(seen: &Seen) -> String {
    let walks = seen.walks();
    let mut text = match &seen.by {
        By::Looks(looks, _) => format!("Looked {looks} times: {} walks", counted(walks)),
        By::Model(model) => {
            let ops = Quantity { value: model.ops as f64, ..walks };
            format!("{}: {} walks in {} operations", how(model), counted(walks), counted(ops))
        }
    };
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
    if let By::Looks(_, covered) = seen.by
        && covered < 0.7
    {
        let covered = Quantity::exact(covered, Unit::Share).display();
        text.push_str(&format!(
            " The looks stand for {covered} of its CPU time; the rest is taken to be like that."
        ));
    }
    if let By::Model(model) = &seen.by {
        text.push_str(&bounds(model));
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

fn how(model: &Model) -> &'static str {
    match model.end {
        End::Bound | End::Became => "A part of it was captured under emulation",
        _ => "Captured under emulation",
    }
}

/// What the model does not know.
fn bounds(model: &Model) -> String {
    let mut text = String::new();
    match model.end {
        End::Bound => text.push_str(
            " The bound on operations was reached and the program ended there: what it would have \
             done after them is in no figure here (--capture-max takes more).",
        ),
        End::Became => text.push_str(
            " Then it became another program (execve), which is in no figure here: name that one.",
        ),
        _ => (),
    }
    if model.has_children {
        text.push_str(" What the processes did that it started is in no figure here.");
    }
    if !model.is_named {
        text.push_str(&format!(
            " The processor names no second TLB: one of {} entries is taken.",
            pagelab_report::group_thousands(ENTRIES)
        ));
    }
    text
}

/// By page size.
fn sizes(seen: &Seen, model: &Model) -> Table {
    let saves = |size: &&Size| {
        let saved = seen.saved(size.bytes, [1.0; 2]).filter(|_| size.bytes > 4096)?;
        Some(units::display_ns(saved.value))
    };
    let near = |size: &&Size| {
        let (entries, misses) = size.near?;
        Some(format!("{} of {entries}", counted(of(misses))))
    };
    Grid::<&Size>::new()
        .words("pages", 0, |size| units::format_bytes(size.bytes))
        .number("entries", 0, |size| pagelab_report::group_thousands(size.entries as f64))
        .number("walks", 0, |size| Cell::from(counted(size.walks)).strong())
        .number("twice, half", 1, |size| {
            let [low, high] = [size.walks.low, size.walks.high].map(of).map(counted);
            format!("{low} to {high}")
        })
        .number("near", 2, near)
        .number("fetches", 1, |size| counted(of(size.fetches)))
        .number("saves", 0, saves)
        .table(&model.sizes)
}

fn of(count: f64) -> Quantity {
    Quantity::exact(count, Unit::Count)
}

fn counted(count: Quantity) -> String {
    let told = |count: f64| {
        if count >= 1e6 {
            format!("{:.3} M", count / 1e6)
        } else {
            pagelab_report::group_thousands(count.round())
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
