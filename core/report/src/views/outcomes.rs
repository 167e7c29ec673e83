//! What did not become a number, and the proof of what did.
//!
//! The one idea: a run never loses a case in silence. Skipped cases come with their cure, failed
//! ones with their reason, every claim of the witness with what was expected and what was seen.

use std::collections::BTreeMap;

use pagelab_record::{Claim, LeftOut, Measured, Outcome};

use crate::{
    Block, Cell, Entry, Grid, Headline, Note, Run, Section, Standing, Tone, grouped, numbers::total,
};

/// The witness in a sentence or two: how many claims, and which do not hold.
pub(crate) fn witness(run: &Run) -> Section {
    let claims = || run.all().filter_map(Entry::measured).flat_map(|m| &m.witness);
    let count = claims().count();
    let checks = total(claims().map(|claim| claim.checks));
    let broken = claims().filter(|claim| !claim.holds).count();
    let cases = run.all().filter(|entry| entry.has_row()).count();
    let verdict = match broken {
        0 => "all hold".to_owned(),
        1 => "1 does not hold".to_owned(),
        broken => format!("{broken} do not hold"),
    };
    let said = format!("{count} claims about {cases} cases, checked {checks} times: {verdict}.");
    let mut section = Section::new("witness", "Witness").with(said);
    section.all(run.all().flat_map(Entry::notes));
    section
}

/// How to read what stands beside numbers, where anything does.
pub(crate) fn intervals(run: &Run) -> Option<Section> {
    let mut numbers = run.entries.iter().flat_map(|entry| &entry.numbers.0);
    numbers.find(|number| number.quantity.has_interval())?;
    let said = "±: half of a 95 % interval, a bootstrap over six processes or more. In brackets: \
                what the medians of fewer processes span, which is no interval; of one process, \
                those of its repetitions.";
    Some(Section::new("intervals", "Intervals").with(said))
}

/// How many cases may be believed.
pub(crate) fn headlines(run: &Run) -> Vec<Headline> {
    let count = |standing| run.all().filter(|entry| entry.standing == standing).count();
    let claims = run.all().filter_map(Entry::measured).map(|m| m.witness.len()).sum::<usize>();
    let told = [
        (count(Standing::Invalid), "invalid"),
        (count(Standing::Emulated), "emulated"),
        (count(Standing::Failed), "failed"),
        (count(Standing::Skipped), "skipped"),
    ];
    let told = told.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!(", {n} {what}"));
    let bad = [Standing::Invalid, Standing::Failed, Standing::Emulated];
    let bad = bad.into_iter().any(|standing| count(standing) > 0);
    vec![Headline {
        value: count(Standing::Valid).to_string(),
        label: format!("valid{}", told.collect::<String>()),
        detail: format!("{claims} claims of the witness"),
        tone: if bad { Tone::Warn } else { Tone::Good },
    }]
}

/// Every claim, for the page.
pub(crate) fn claims(run: &Run) -> Option<Section> {
    let of = |entry| Entry::claims(entry).iter().map(move |claim| (entry, claim));
    let rows: Vec<(&Entry, &Claim)> = run.all().flat_map(of).collect();
    rows.first()?;
    let table = Grid::<(&Entry, &Claim)>::new()
        .words("workload", 0, |(entry, _)| entry.record.workload.clone())
        .words("case", 0, |(entry, _)| Cell::toned(entry.short.clone(), Tone::Quiet))
        .words("arm", 0, |(_, claim)| match claim.arm.as_str() {
            "" => "all".to_owned(),
            arm => arm.to_owned(),
        })
        .words("claim", 0, |(_, claim)| claim.claim.clone())
        .number("expected", 0, |(_, claim)| claim.expected.to_string())
        .number("observed", 0, |(_, claim)| claim.observed.to_string())
        .number("tolerance", 0, |(_, claim)| claim.tolerance.to_string())
        .number("checks", 0, |(_, claim)| claim.checks.to_string())
        .words("holds", 0, |(_, claim)| {
            if claim.holds { Cell::toned("yes", Tone::Good) } else { Cell::toned("NO", Tone::Bad) }
        })
        .table(rows);
    let section = Section::new("claims", "Every claim of the witness");
    Some(Section { page_only: true, ..section }.with(table))
}

/// Cases that the host cannot run, and arms of those that it can, grouped by what it lacks.
pub(crate) fn skipped(run: &Run) -> Option<Section> {
    let needs = run.entries.iter().flat_map(lacking);
    let note = |((need, cure), cases): ((&String, &String), Vec<String>)| {
        let text = format!("{need}: {}", cases.join("; "));
        Block::Note(Note::warn("skipped", text, cure))
    };
    let mut section = Section::new("skipped", "Skipped, and how to run it");
    section.blocks = grouped(needs).into_iter().map(note).collect();
    (!section.blocks.is_empty()).then_some(section)
}

/// What a case lacks, or arms of it: need, cure, and who.
fn lacking(entry: &Entry) -> Vec<((&String, &String), String)> {
    match &entry.record.outcome {
        Outcome::Skipped { need, cure } => vec![((need, cure), entry.short.clone())],
        Outcome::Measured(Measured { left_out, .. }) => {
            let arm = |LeftOut { arm, .. }: &LeftOut| format!("{}, arm {arm}", entry.short);
            left_out.iter().map(|one| ((&one.need, &one.cure), arm(one))).collect()
        }
        Outcome::Failed { .. } => Vec::new(),
    }
}

/// Cases that died, hung, or could not be set up.
pub(crate) fn failed(run: &Run) -> Option<Section> {
    let mut section = Section::new("failed", "Failed");
    for entry in &run.entries {
        if let Outcome::Failed { reason } = &entry.record.outcome {
            let text = format!("{}: {reason}", entry.short);
            section.add(Note::bad("FAILED", text, ""));
        }
    }
    (!section.blocks.is_empty()).then_some(section)
}

/// What may have disturbed results; a warning that many records share is said once, even if its
/// numbers differ.
pub(crate) fn warnings(run: &Run) -> Option<Section> {
    let mut warnings: BTreeMap<String, Vec<(&str, &Entry)>> = BTreeMap::new();
    for entry in run.all() {
        for warning in entry.measured().into_iter().flat_map(|m| &m.warnings) {
            let same_but_numbers = warning.replace(|c: char| c.is_ascii_digit(), "");
            warnings.entry(same_but_numbers).or_default().push((warning, entry));
        }
    }
    let mut section = Section::new("warnings", "Warnings");
    for told in warnings.into_values() {
        let Some((warning, first)) = told.first() else { continue };
        let differ = told.iter().any(|(other, _)| other != warning);
        let whose = match told.len() {
            1 => first.short.clone(),
            count if differ => format!("{count} cases, each with its own numbers"),
            count => format!("{count} cases"),
        };
        let text = format!("{warning} ({whose})");
        section.add(Note::warn("warning", text, ""));
    }
    (!section.blocks.is_empty()).then_some(section)
}
