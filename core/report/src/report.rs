//! One run as a report.
//!
//! The one idea: everything is derived when the report is made, in one order (entries, limits,
//! shares, lines, layout), and the five forms only read the result.

use pagelab_record::{Nature, Record, RunHeader, journal::Damage};

use serde_json::Value;

use crate::{
    Block, Document, Note, Run, Section,
    compare::{Asked, Comparison, Side},
    forms::Forms,
    html,
    json::{self, Lines},
    published::Publication,
    terminal::{self, Style},
    view::Views,
    views,
};

/// One run, ready to be read.
#[derive(Debug, Clone)]
pub struct Report {
    pub(crate) run: Run,
    pub(crate) document: Document,
}

impl Report {
    /// The report of a journal's contents, with published results to set beside it; a parameter
    /// that has its default is not told.
    pub fn of(
        header: &RunHeader,
        records: &[Record],
        damage: Option<&Damage>,
        published: &[Publication],
        views: &Views,
    ) -> Self {
        let run = views.run(header, records, damage, published);
        let mut document = Document {
            title: header.run.clone(),
            facts: views::facts(header, records),
            alerts: alerts(header, records, damage),
            headlines: views.headlines(&run),
            sections: views.sections(&run),
        };
        if let Some(arms) = arms(header, records, views) {
            document.facts.extend(arms.facts);
            document.alerts.extend(arms.alerts);
            document.headlines.splice(..0, arms.headlines);
            document.sections.splice(..0, arms.sections);
        }
        Self { run, document: document.harmless() }
    }

    /// What the programs of the publications beside it would have printed of it; empty where none
    /// of them has a form of its own.
    pub fn frames(&self) -> String {
        let is_published = |section: &&Section| {
            self.run.publications.iter().any(|publication| publication.name() == section.id)
        };
        let sections = self.document.sections.iter().filter(is_published);
        let frames = sections.flat_map(|section| &section.blocks).filter_map(|block| match block {
            Block::Frame(text) => Some(format!("{text}\n")),
            _ => None,
        });
        frames.collect::<Vec<_>>().join("\n")
    }

    /// Some of its sections alone, for a terminal; `None` where the records have none of the first.
    pub fn only(&self, ids: &[&str], style: Style) -> Option<String> {
        let mut sections = self.document.sections.clone();
        sections.retain(|section| ids.contains(&&*section.id));
        sections.iter().find(|section| section.id == ids[0])?;
        let alerts = self.document.alerts.clone();
        let title = self.document.title.clone();
        let document = Document { title, alerts, sections, ..Document::default() };
        Some(terminal::render(&document, style))
    }

    /// The records that it is of, for what a part says of them in a form of its own.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// One line for each case, arm, series and statistic, for programs that want no text.
    pub fn lines(&self) -> Lines {
        json::lines(&self.run)
    }
}

impl Forms for Report {
    const ABOUT: &'static str = html::REPORTED;

    fn document(&self) -> Document {
        self.document.clone()
    }

    fn value(&self) -> Value {
        json::value(&self.run)
    }

    fn rows(&self) -> Vec<Vec<String>> {
        json::rows(&self.run)
    }
}

/// What a run of two arms says of them.
fn arms(header: &RunHeader, records: &[Record], views: &Views) -> Option<Document> {
    let side = Side { name: &header.run, header, records, damage: None };
    let comparison = Comparison::of_arms(&side, &Asked::of(views)).ok()?;
    let mut document = comparison.page();
    // The report says by itself on which machine.
    document.facts.retain(|(name, _)| name != "machine");
    Some(document)
}

/// How what is left of a run is measured.
const RESUME: &str = "pagelab resume DIRECTORY_OF_THE_RUN";

/// What went wrong with the run as a whole.
fn alerts(header: &RunHeader, records: &[Record], damage: Option<&Damage>) -> Vec<Note> {
    let mut alerts = Vec::new();
    if let Some(Damage { line, why }) = damage {
        let text = format!("line {line} of the journal cannot be read ({why}); it ends there");
        alerts.push(Note::warn("damaged", text, RESUME));
    }
    let missing = header.plan.len().saturating_sub(records.len());
    if missing > 0 {
        let text = format!("{missing} of {} planned cases have no record", header.plan.len());
        alerts.push(Note::warn("unfinished", text, RESUME));
    }
    if records.iter().any(|record| record.nature == Nature::Simulated) {
        let text = "these times come from a script or a model, of no machine";
        alerts.push(Note::warn("simulated", text.to_owned(), ""));
    }
    let emulated = records.iter().filter(|record| record.nature == Nature::Emulated).count();
    if emulated > 0 {
        let text = format!(
            "{emulated} of {} records come from an emulated machine: its states and counts hold, \
             its times mean nothing and are withheld",
            records.len()
        );
        alerts.push(Note::warn("emulated", text, ""));
    }
    alerts
}
