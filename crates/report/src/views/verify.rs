//! `emu/verify`: whether emulated memories remember.
//!
//! The one idea: nothing was timed, so the claims are the result; a row is an arm and how many of
//! its loads differ from those of a naive memory. Where one does, the case is invalid, and the row
//! says by how much: a count of mistakes is not a number that an invalid record must withhold.

use pagelab_record::{
    Claim,
    vocabulary::{claim, counter},
};

use crate::{
    cases::{all_rows, columns},
    document::{Block, Cell, Column, Headline, Note, Section, Table, Tone},
    entry::Entry,
    numbers::total,
    quantity::group_thousands,
    run::Run,
};

/// The workload that this file reads.
pub(crate) use pagelab_record::vocabulary::workload::VERIFY as WORKLOAD;

/// The verdict on every arm, where there is one.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = run.rows(WORKLOAD);
    if mine.is_empty() {
        return None;
    }
    let shown = columns(&mine, &["trace"]);
    let mut columns = Column::each(&shown);
    columns.extend([
        Column::words("arm"),
        Column::number("operations"),
        Column::number("loads").rank(1),
        Column::number("loads that differ"),
        Column::words("witness"),
    ]);
    let rows = mine.iter().flat_map(|entry| rows(entry, &shown)).collect();
    let said = format!(
        "{}Every load of every arm beside that of a memory that does one byte after the other.",
        all_rows(&mine, &shown)
    );
    let mut section = Section::new("verify", "Memories verified")
        .with(Block::Table(Table { columns, rows }))
        .with(Block::Text(said));
    for entry in mine {
        let warnings = entry.measured().into_iter().flat_map(|measured| &measured.warnings);
        section.blocks.extend(warnings.map(|warning| {
            let (tag, text, cure) = ("verify", warning.clone(), String::new());
            Block::Note(Note { tone: Tone::Warn, tag, text, cure })
        }));
        section.blocks.extend(entry.notes());
    }
    Some(section)
}

/// How many loads differ, of all memories that were verified.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let ran = run.rows(WORKLOAD);
    let claims = || ran.iter().flat_map(|entry| entry.claims());
    let differ = || claims().filter(|claim| claim.id == claim::LOADS_THAT_DIFFER);
    let wrong = total(differ().map(|claim| claim.observed.unsigned_abs()));
    let loads = total(ran.iter().filter_map(|entry| entry.counter(counter::LOADS)));
    let loads = group_thousands(loads as f64);
    let told = differ().next().map(|_| Headline {
        value: group_thousands(wrong as f64),
        label: "loads differ from those of a naive memory".to_owned(),
        detail: format!("{} memories, {loads} loads each", differ().count()),
        tone: if wrong == 0 { Tone::Good } else { Tone::Bad },
    });
    told.into_iter().collect()
}

fn rows(entry: &Entry, shown: &[String]) -> Vec<Vec<Cell>> {
    let claims = entry.claims();
    let mut arms: Vec<&str> = Vec::new();
    for claim in claims {
        if !arms.contains(&claim.arm.as_str()) {
            arms.push(&claim.arm);
        }
    }
    let loads = entry.counter(counter::LOADS).map(|loads| group_thousands(loads as f64));
    let row = |arm: &&str| {
        let mine = || claims.iter().filter(|claim| claim.arm == *arm);
        let observed = |claim: &Claim| group_thousands(claim.observed as f64);
        let differ = mine().find(|claim| claim.id == claim::LOADS_THAT_DIFFER);
        let differ = differ.map_or_else(Cell::none, |claim| {
            let tone = if claim.holds { Tone::Good } else { Tone::Bad };
            Cell::toned(observed(claim), tone)
        });
        let (holding, all) = (mine().filter(|claim| claim.holds).count(), mine().count());
        let mut row = entry.head(shown);
        let ops = mine().find(|claim| claim.id == claim::TRACE_OPERATIONS);
        row.extend([
            (*arm).into(),
            Cell::maybe(ops.map(observed)),
            Cell::maybe(loads.clone()),
            differ,
            if holding == all {
                Cell::toned(format!("{holding}/{all}"), Tone::Good)
            } else {
                Cell::toned("INVALID", Tone::Bad)
            },
        ]);
        row
    };
    arms.iter().map(row).collect()
}
