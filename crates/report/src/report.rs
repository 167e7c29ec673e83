//! One run as a report.
//!
//! The one idea: everything is derived when the report is made, in one order (entries, limits,
//! shares, lines, layout), and the five forms only read the result.

use pagelab_record::{Nature, Record, RunHeader, journal::Damage};

use crate::{
    advise::{self, Advice},
    charts::Charts,
    document::{Document, Note, Section, Tone},
    entry::Entry,
    environment, explain,
    fit::{self, Fit},
    headline, html, json, latency,
    limits::Limits,
    markdown, memtype, other, outcomes, parameters, replay, seed_latency, seed_memtype, seed_pghot,
    seed_replay, seed_throughput, stages,
    terminal::{self, Style},
    throughput, tier, trace, userfaultfd, verify,
    visible::visible,
    workers,
};

/// One run, ready to be read.
#[derive(Debug, Clone)]
pub struct Report {
    pub(crate) header: RunHeader,
    pub(crate) damage: Option<Damage>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) published: Vec<Entry>,
    pub(crate) limits: Limits,
    pub(crate) fits: Vec<Fit>,
    pub(crate) charts: Charts,
    pub(crate) document: Document,
}

impl Report {
    /// The report of a journal's contents, with published results to set beside it.
    pub fn of(
        header: &RunHeader,
        records: &[Record],
        damage: Option<&Damage>,
        published: &[Record],
    ) -> Self {
        let mut entries: Vec<Entry> = records.iter().map(Entry::of).collect();
        // Grids interleave their axes; a reader looks for a page size.
        entries.sort_by_cached_key(|entry| {
            let kind = entry.parameter("kind").to_owned();
            let first = records.iter().position(|record| record.workload == entry.record.workload);
            (first, kind, parameters::page_rank(entry.parameter("page")))
        });
        let limits = Limits::of(&entries);
        for entry in &mut entries {
            entry.derive(&limits);
        }
        explain::derive(&mut entries);
        let published: Vec<Entry> = published.iter().map(Entry::of).collect();
        let fits = fit::fits(&entries);
        let charts = Charts::of(&entries, &published, &limits, &fits);
        let document = Document {
            title: header.run.clone(),
            facts: environment::facts(header, records),
            alerts: alerts(header, records, damage),
            headlines: headline::headlines(&entries, &limits, &fits),
            sections: sections(header, &entries, &published, &limits, &fits, &charts),
        };
        let document = document.harmless();
        let (header, damage) = (header.clone(), damage.cloned());
        Self { header, damage, entries, published, limits, fits, charts, document }
    }

    /// For a terminal, or a log where `style` has no colour.
    pub fn terminal(&self, style: Style) -> String {
        terminal::render(&self.document, style)
    }

    /// Every derived number with its interval, unit and validity, as one JSON document.
    pub fn json(&self) -> String {
        visible(&json::document(self))
    }

    /// The answer of a run that advises, for a terminal; `None` where nothing was asked.
    pub fn advice(&self, style: Style) -> Option<String> {
        let advice = Advice::of(&self.header, &self.entries, &self.limits)?;
        let alerts = self.document.alerts.clone();
        let (title, sections) = (self.document.title.clone(), vec![advise::section(&advice)]);
        let document = Document { title, alerts, sections, ..Document::default() };
        Some(terminal::render(&document.harmless(), style))
    }

    /// The same as JSON, `pagelab.advice/1`.
    pub fn advice_json(&self) -> Option<String> {
        let advice = Advice::of(&self.header, &self.entries, &self.limits)?;
        Some(visible(&format!("{:#}\n", advise::value(&advice))))
    }

    /// One line for each case, arm, series and statistic, with a heading line.
    pub fn csv(&self) -> String {
        visible(&json::csv(self))
    }

    /// Tables that survive a mail or a pull request.
    pub fn markdown(&self) -> String {
        markdown::render(&self.document)
    }

    /// One file that opens offline and asks nothing of any network.
    pub fn html(&self) -> String {
        html::render(self)
    }
}

fn sections(
    header: &RunHeader,
    entries: &[Entry],
    published: &[Entry],
    limits: &Limits,
    fits: &[Fit],
    charts: &Charts,
) -> Vec<Section> {
    // A suite of somebody's own may put the published results beside its cases, too.
    let is_about = |name: &str| header.suite == name || header.published.iter().any(|p| p == name);
    let micro_pagefault = is_about(seed_throughput::SUITE);
    let latency_note = is_about(seed_latency::SUITE);
    let fast_memory = is_about(seed_replay::SUITE);
    let memory_types = is_about(seed_memtype::SUITE);
    let advice = Advice::of(header, entries, limits);
    [
        advice.as_ref().map(advise::section),
        micro_pagefault.then(|| seed_throughput::section(entries, published)).flatten(),
        latency_note.then(|| seed_latency::section(entries, published, limits)).flatten(),
        fast_memory.then(|| seed_replay::section(entries, published, limits)).flatten(),
        memory_types.then(|| seed_memtype::section(entries, published, limits)).flatten(),
        seed_pghot::section(entries),
        explain::section(entries),
        latency::section(entries, &charts.families()),
        userfaultfd::section(entries),
        stages::section(entries),
        throughput::section(entries, limits, charts.has_bandwidth()),
        workers::section(entries),
        workers::beside_section(entries),
        fit::section(fits, charts.has_cost()),
        replay::section(entries),
        verify::section(entries),
        trace::section(entries, published, &charts.trace),
        memtype::bandwidth_section(entries, limits, !charts.memtype_bandwidth.is_empty()),
        memtype::latency_section(entries, !charts.memtype_latency.is_empty()),
        memtype::order_section(entries),
        tier::section(entries, &charts.tier),
        other::section(entries),
        limits.section(entries),
        Some(outcomes::witness(entries)),
        outcomes::skipped(entries),
        outcomes::failed(entries),
        outcomes::warnings(entries),
        environment::section(entries),
        outcomes::claims(entries),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What went wrong with the run as a whole.
fn alerts(header: &RunHeader, records: &[Record], damage: Option<&Damage>) -> Vec<Note> {
    let alert = |tag, text, cure: String| Note { tone: Tone::Warn, tag, text, cure };
    let mut alerts = Vec::new();
    if let Some(Damage { line, why }) = damage {
        let text = format!("line {line} of the journal cannot be read ({why}); it ends there");
        alerts.push(alert("damaged", text, "pagelab resume DIRECTORY_OF_THE_RUN".to_owned()));
    }
    let missing = header.plan.len().saturating_sub(records.len());
    if missing > 0 {
        let text = format!("{missing} of {} planned cases have no record", header.plan.len());
        alerts.push(alert("unfinished", text, "pagelab resume DIRECTORY_OF_THE_RUN".to_owned()));
    }
    if records.iter().any(|record| record.nature == Nature::Simulated) {
        let text = "these times come from a script or a model, of no machine";
        alerts.push(alert("simulated", text.to_owned(), String::new()));
    }
    let emulated = records.iter().filter(|record| record.nature == Nature::Emulated).count();
    if emulated > 0 {
        let text = format!(
            "{emulated} of {} records come from an emulated machine: its states and counts hold, \
             its times mean nothing and are withheld",
            records.len()
        );
        alerts.push(alert("emulated", text, String::new()));
    }
    alerts
}
