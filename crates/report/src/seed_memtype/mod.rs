//! memcachetest, repeated: its summary table with ours beside, and its analysis from this run.
//!
//! The one idea: the author's sentences are computed again from the records of this run and, where
//! they can be, from his own table; each says what the numbers say, also where his prose says
//! otherwise. What a machine lacks is named with its cure, and what the rest allows to be said is
//! said.
//!
//! Which numbers there are to quote is in [`both`]; tables are in [`tables`], sentences in
//! [`answers`] and [`fences`], his prose beside his table in [`prose`].

mod answers;
mod both;
mod fences;
mod prose;
mod tables;

use self::both::{Answer, Both};
use crate::{
    document::{Block, Note, Section, Tone},
    entry::{Entry, Standing, display_claim},
    limits::Limits,
    memtype::{BANDWIDTH, is_mine, type_rank},
};

/// The suite whose report this is.
pub(crate) const SUITE: &str = "memory-types";

/// The tables, the answers and the prose, where a case of memory types is among the records.
pub(crate) fn section(entries: &[Entry], published: &[Entry], limits: &Limits) -> Option<Section> {
    let mine = |entry: &&Entry| entry.record.workload == BANDWIDTH;
    entries.iter().find(|entry| mine(entry) && entry.has_row())?;
    let both = Both { entries, published, limits };
    let mut section = Section::new("memory-types", "memcachetest: memory types, repeated");
    section.blocks.push(Block::Text(
        "memcachetest's summary beside this run, in MiB/s (it prints \"MB/s\" and divides by \
         2^20). Published: 50 rounds of 16 MiB on a machine that is not named, total bytes over \
         total time. Here: the median round. Compare rows of the same kind. UC is what \
         pgprot_noncached gives, UC-, there and here. The nofence tests are timed until the last \
         store was issued, there and here; the table after the next says when they were complete."
            .to_owned(),
    ));
    section.blocks.extend(invalid(entries).into_iter().map(Block::Note));
    section.blocks.push(Block::Table(tables::summary(&both, tables::Scale::Mib)));
    section.blocks.push(Block::Table(tables::summary(&both, tables::Scale::Gb)));
    section.blocks.push(Block::Heading("Issue, completion and verification".to_owned()));
    section.blocks.push(Block::Table(tables::ends(&both)));
    section.blocks.push(Block::Heading("Sums of the read test".to_owned()));
    section.blocks.push(Block::Table(tables::sums(&both)));
    section.blocks.push(Block::Heading("Its analysis, from this run".to_owned()));
    for (tag, answer) in [
        ("1 UC", answers::uncached(&both)),
        ("2 WC", answers::combining(&both)),
        ("3 UC fence", fences::cost(&both)),
        ("3.1 load-back", fences::load_back(&both)),
        ("4 movnt", answers::non_temporal(&both)),
        ("5 sums", answers::sums(&both)),
        ("nofence", fences::issue_and_completion(&both)),
        ("verification", fences::what_verification_shows(&both)),
    ] {
        section.blocks.push(Block::Note(note(tag, &answer)));
    }
    if let Some(table) = prose::table(&both) {
        section.blocks.push(Block::Heading("Its prose beside its own table".to_owned()));
        section.blocks.push(Block::Table(table));
        section.blocks.push(Block::Text(prose::EXPLANATION.to_owned()));
    }
    Some(section)
}

/// An answer as a note: what can be said, then what cannot and why.
fn note(tag: &'static str, answer: &Answer) -> Note {
    let tone = if answer.said.is_empty() { Tone::Quiet } else { Tone::Plain };
    let cure = answer.cure();
    Note { tone, tag, text: answer.text(), cure }
}

/// What was measured of something else than its name says, by the claims that say so.
fn invalid(entries: &[Entry]) -> Vec<Note> {
    let broken = entries
        .iter()
        .filter(|entry| is_mine(&entry.record.workload) && entry.standing == Standing::Invalid);
    let mut told: Vec<(String, Vec<&str>, &str)> = Vec::new();
    for entry in broken {
        // What a person can do about it stands among the record's warnings.
        let warnings = entry.measured().map_or(&[][..], |measured| &measured.warnings);
        let advice = warnings.iter().find(|warning| warning.contains("PAT"));
        let advice = advice.map_or("", String::as_str);
        for claim in entry.failed_claims() {
            let memory_type = entry.parameter("type");
            let claim = display_claim(claim);
            match told.iter_mut().find(|(other, ..)| *other == claim) {
                Some((_, types, _)) => types.push(memory_type),
                None => told.push((claim, vec![memory_type], advice)),
            }
        }
    }
    let note = |(claim, mut types, advice): (String, Vec<&str>, &str)| {
        let count = types.len();
        types.sort_by_key(|memory_type| type_rank(memory_type));
        types.dedup();
        let types: Vec<String> = types.into_iter().map(str::to_uppercase).collect();
        let records = if count == 1 { "record" } else { "records" };
        let advice = if advice.is_empty() { String::new() } else { format!("; {advice}") };
        let text = format!(
            "{count} {records} ({}): {claim}. None of their numbers is quoted{advice}.",
            types.join(", ")
        );
        Note { tone: Tone::Bad, tag: "INVALID", text, cure: String::new() }
    };
    told.into_iter().map(note).collect()
}
