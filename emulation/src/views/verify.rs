//! `emu/verify`: whether emulated memories remember.
//!
//! The one idea: nothing was timed, so the claims are the result; a row is an arm and how many of
//! its loads differ from those of a naive memory. Where one does, the case is invalid, and the row
//! says by how much: a count of mistakes is not a number that an invalid record must withhold.

use pagelab_record::{
    Claim,
    vocabulary::{Check, counter},
};

use pagelab_report::{
    Cell, Entry, Grid, Headline, Note, Run, Section, Tone, all_rows, columns, group_thousands,
    numbers::total,
};

/// The workload that this file reads.
pub(crate) use crate::emu::verify::NAME as WORKLOAD;

/// The verdict on every arm, where there is one.
pub(crate) fn section(run: &Run) -> Option<Section> {
    let mine = run.any(WORKLOAD)?;
    let shown = columns(&mine, &["trace"]);
    let count = |count: f64| group_thousands(count);
    let table = Grid::<(&Entry, &str)>::new()
        .case(&shown, |(entry, _)| entry)
        .words("arm", 0, |(_, arm)| (*arm).to_owned())
        .number("operations", 0, |(entry, arm)| {
            claim_of(entry, arm, Check::TraceOperations).map(|c| count(c.observed as f64))
        })
        .number("loads", 1, |(entry, _)| {
            entry.counter(counter::LOADS).map(|loads| count(loads as f64))
        })
        .number("loads that differ", 0, differing)
        .words("witness", 0, proof)
        .table(mine.iter().flat_map(|entry| rows(entry)));
    let said = format!(
        "{}Every load of every arm beside that of a memory that does one byte after the other.",
        all_rows(&mine, &shown)
    );
    let mut section = Section::new("verify", "Memories verified").with(table).with(said);
    for entry in mine {
        let warnings = entry.measured().into_iter().flat_map(|measured| &measured.warnings);
        section.all(warnings.map(|warning| Note::warn("verify", warning.clone(), "")));
        section.all(entry.notes());
    }
    Some(section)
}

/// How many loads differ, of all memories that were verified.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let ran = run.rows(WORKLOAD);
    let claims = || ran.iter().flat_map(|entry| entry.claims());
    let differ = || claims().filter(|claim| claim.is(Check::LoadsThatDiffer));
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

fn rows(entry: &Entry) -> Vec<(&Entry, &str)> {
    let mut arms: Vec<(&Entry, &str)> = Vec::new();
    for claim in entry.claims() {
        if !arms.iter().any(|(_, arm)| *arm == claim.arm) {
            arms.push((entry, &claim.arm));
        }
    }
    arms
}

fn differing((entry, arm): &(&Entry, &str)) -> Cell {
    claim_of(entry, arm, Check::LoadsThatDiffer).map_or_else(Cell::none, |claim| {
        let tone = if claim.holds { Tone::Good } else { Tone::Bad };
        Cell::toned(group_thousands(claim.observed as f64), tone)
    })
}

fn claim_of<'a>(entry: &'a Entry, arm: &str, check: Check) -> Option<&'a Claim> {
    entry.claims().iter().find(|claim| claim.arm == arm && claim.is(check))
}

fn proof((entry, arm): &(&Entry, &str)) -> Cell {
    let mine = || entry.claims().iter().filter(|claim| claim.arm == *arm);
    match (mine().filter(|claim| claim.holds).count(), mine().count()) {
        (holding, all) if holding == all => Cell::toned(format!("{holding}/{all}"), Tone::Good),
        _ => Cell::toned("INVALID", Tone::Bad),
    }
}
