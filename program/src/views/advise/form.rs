//! The advice in words: what is named and why, the table behind it, and the same for programs.

use pagelab_record::{
    asked::{Advise, Lack, Policy, Strategy},
    units::display_bytes,
};
use serde_json::{Value, json};

use super::{ARM, Advice, Choice, PRESENT, Row};
use pagelab_report::{
    Block, Cell, Entry, Grid, Key, Lanes, Note, Quantity, Section, Standing, Table, Tone, chart,
    elapsed, grouped, hue,
    limits::{over_cell, over_limit_note},
};

/// The answer, its price, and the table behind it.
pub(super) fn section(advice: &Advice<'_>) -> Section {
    let mut section = Section::new("advise", &title(advice.asked));
    section.all(answers(advice));
    section.all(lanes(advice));
    section.add(table(advice));
    section.all(over(advice));
    section.add(said(advice));
    section.all(lacking(advice));
    section
}

fn title(asked: &Advise) -> String {
    let Advise { size, threads, policy, .. } = asked;
    let s = if *threads == 1 { "" } else { "s" };
    let allowed = match policy {
        Policy::Any => "",
        Policy::Keep => ", settings as they are",
        Policy::Base => ", base pages only",
        Policy::Transparent => ", no hugetlb pool",
        Policy::Locked => ", locked",
    };
    format!("{} of fresh memory with {threads} thread{s}{allowed}", display_bytes(*size as f64))
}

fn note(tone: Tone, tag: &'static str, text: String, cure: String) -> Block {
    Block::Note(Note { tone, tag, text, cure })
}

/// What is named, why, what it costs, and the code for it.
fn answers(advice: &Advice<'_>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (said, choice) in advice.answers() {
        let Strategy { code, .. } = advice.rows[choice.named].strategy;
        blocks.push(answer(advice, choice, said));
        blocks.extend((!code.is_empty()).then(|| Block::Frame(code.clone())));
    }
    if advice.any.is_none() {
        let text = "no strategy was measured with a proof that holds".to_owned();
        blocks.push(note(Tone::Warn, "no answer", text, String::new()));
    } else if advice.as_set.is_none() {
        let text = "every strategy that was measured needs something that is not there now";
        blocks.push(note(Tone::Warn, "as set", text.to_owned(), String::new()));
    }
    blocks
}

fn answer(advice: &Advice<'_>, choice: &Choice, said: &'static str) -> Block {
    let row = &advice.rows[choice.named];
    let seconds = advice.seconds(row).map_or_else(String::new, Quantity::display_with_spread);
    let share = row.share.map(|share| format!(", {} of clear", share.display()));
    let mut text = format!(
        "{}: {seconds} for all of it{}. It takes of memory: {}.",
        row.strategy.name,
        share.unwrap_or_default(),
        row.price()
    );
    let others = advice.others(choice);
    if !others.is_empty() {
        text.push_str(&format!(
            " It cannot be told apart from {others}, and is named because it takes the least to \
             set up."
        ));
    }
    if row.strategy.lacks.is_empty() {
        text.push_str(" It needs nothing that this machine does not have now.");
    }
    let cure = row.strategy.lacks.first().map_or_else(String::new, |lack| lack.cure.clone());
    note(Tone::Good, said, text, cure)
}

/// The strategies that were measured, as bars.
fn lanes(advice: &Advice<'_>) -> Option<Block> {
    let best = advice.any.as_ref()?;
    let keys = vec![
        Key::new("not told from the fastest", Some(hue(2))),
        Key::new("likewise, and needs a setting", Some(hue(2))).hollow(true),
        Key::new("slower", Some(hue(0))),
        Key::new("slower, and needs a setting", Some(hue(0))).hollow(true),
        Key::new("dropped out early", None).hollow(true),
    ];
    let row = |(place, row): (usize, &Row<'_>)| -> Option<chart::Row> {
        let is_best = place == best.fastest || best.ties.contains(&place);
        let needs = usize::from(!row.strategy.lacks.is_empty());
        let key = match is_best {
            true => needs,
            false if place < best.fastest => 4,
            false => 2 + needs,
        };
        Some((row.strategy.name.clone(), vec![(key, advice.seconds(row)?)]))
    };
    let rows = advice.rows.iter().enumerate().filter_map(row).collect();
    let title = ["Time for all of it, by strategy", "Medians; whiskers are intervals."];
    Lanes::bars(title, keys, rows, None).shown().map(Block::Lanes)
}

fn table(advice: &Advice<'_>) -> Table {
    let named = advice.any.as_ref().map(|choice| choice.named);
    let tone = |place| if Some(place) == named { Tone::Strong } else { Tone::Plain };
    let ties = advice.any.as_ref().map_or(&[][..], |any| &any.ties);
    let tie = |place: &usize| if ties.contains(place) { " tie" } else { "" };
    let spread = |quantity: Option<Quantity>| quantity.map(Quantity::display_with_spread);
    Grid::<(usize, &Row<'_>)>::new()
        .words("strategy", 0, |(at, row)| Cell::toned(row.strategy.name.clone(), tone(*at)))
        .number("per 4k page", 0, |(at, row)| Cell {
            tone: tone(*at),
            ..Cell::maybe(spread(row.per_page))
        })
        .number("for all", 1, |(_, row)| spread(advice.seconds(row)))
        .number("to fastest", 0, |(at, row)| {
            row.ratio.map(|ratio| format!("{:.2}×{}", ratio.value, tie(at)))
        })
        .number("of clear", 4, |(_, row)| match row.over {
            Some(_) => over_cell(),
            None => Cell::of(row.share),
        })
        .words("memory", 3, |(_, row)| row.price())
        .words("bear in mind", 2, |(_, row)| row.strategy.caveat.clone())
        .number("proc×rep", 5, |(_, row)| {
            row.entry.map_or_else(Cell::none, |entry| entry.counts(elapsed(ARM, PRESENT)))
        })
        .words("witness", 0, |(_, row)| match row.entry.map(|entry| entry.standing) {
            None => Cell::none(),
            Some(missing @ (Standing::Skipped | Standing::Failed)) => missing.cell(),
            Some(_) => row.entry.map_or_else(Cell::none, Entry::proof),
        })
        .table(advice.rows.iter().enumerate())
}

/// The strategies that were faster than the clear limit.
fn over(advice: &Advice<'_>) -> Option<Note> {
    let over = advice.rows.iter().filter_map(|row| Some((row.strategy.name.clone(), row.over?)));
    over_limit_note(&over.collect::<Vec<_>>())
}

/// What the numbers are and what they do not say.
fn said(advice: &Advice<'_>) -> String {
    let Advise { sample, cache, size, .. } = *advice.asked;
    let bytes = |bytes: u64| display_bytes(bytes as f64);
    let mut text = format!(
        "Measured on {}, in rounds in which each strategy has a fresh process; what was clearly \
         slower dropped out. A time is that of mapping, advising, populating, and touching where \
         the touch faults; for all of the memory it is proportional to the sample, which is \
         {:.0} % of it. Pages are recycled ones that the host backs already: in a virtual machine \
         the first touch of memory that the host must still find is dearer, for every strategy.",
        bytes(sample),
        sample as f64 / size as f64 * 100.0,
    );
    if cache > 0 && sample < 4 * cache {
        text.push_str(&format!(
            " The sample is less than four last-level caches ({} each): pages may still be cached \
             when they come again, so for all of the memory each may cost more.",
            bytes(cache)
        ));
    }
    text
}

/// What strategies lack for all of the memory, each lack once.
fn lacking(advice: &Advice<'_>) -> Vec<Block> {
    let strategies = advice.rows.iter().map(|row| row.strategy);
    let told =
        strategies.flat_map(|one| one.lacks.iter().map(move |lack| (&lack.need, (one, lack))));
    let note = |(need, all): (&String, Vec<(&Strategy, &Lack)>)| {
        let names: Vec<&str> = all.iter().map(|(one, _)| one.name.as_str()).collect();
        let text = format!("{}: not here now for all of it: {need}", names.join(", "));
        note(Tone::Plain, "needs", text, all[0].1.cure.clone())
    };
    grouped(told).into_iter().map(note).collect()
}

/// The answer for programs: `pagelab.advice/1`.
pub(crate) fn value(advice: &Advice<'_>) -> Value {
    let choice = |choice: &Option<Choice>| {
        choice.as_ref().map(|choice| {
            let ties: Vec<&str> = choice.ties.iter().map(|place| advice.name(*place)).collect();
            json!({
                "named": advice.name(choice.named),
                "fastest": advice.name(choice.fastest),
                "ties": ties,
            })
        })
    };
    let row = |row: &Row<'_>| {
        let Strategy { name, page, populate, threads, memory, caveat, lacks, code, .. } =
            row.strategy;
        json!({
            "strategy": name,
            "page": page,
            "populate": populate,
            "threads": threads,
            "standing": row.entry.map_or("missing", |entry| entry.standing.name()),
            "per_4k_page": row.per_page,
            "all": advice.seconds(row),
            "ratio_to_fastest": row.ratio,
            "share_of_clear": row.share,
            "memory_bytes": memory,
            "caveat": caveat,
            "lacks": lacks,
            "code": code,
        })
    };
    json!({
        "schema": "pagelab.advice/1",
        "run": advice.run,
        "size": advice.asked.size,
        "threads": advice.asked.threads,
        "policy": advice.asked.policy,
        "sample": advice.asked.sample,
        "answer": choice(&advice.any),
        "answer_as_set": choice(&advice.as_set),
        "strategies": advice.rows.iter().map(row).collect::<Vec<_>>(),
    })
}
