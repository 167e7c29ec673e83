//! Publications: somebody's records and what they claimed of them, beside a run.
//!
//! A publication is a folder with `records.jsonl` and `claims.toml`, and nothing of it is code.
//! Results are compared where they are alike by keys that the data states, and each claim gets a
//! verdict from this run, or the name of the case that would give one. What claims cannot say (the
//! output of somebody's program, a sum in 64 bits) is a template beside them, `report.j2`.

mod claims;
mod figure;
mod functions;
mod machines;
mod table;
mod template;
#[cfg(test)]
mod tests;
mod words;

use std::{collections::BTreeMap, sync::Arc};

use minijinja::{Environment, Value};
use pagelab_record::{Nature, Record, journal};
use toml::Spanned;

use self::{
    claims::{ClaimSpec, Claims, SENTENCE_BYTES_MAX},
    figure::{Both, Sink},
    words::{Lack, drops, lacking},
};
use crate::{Block, Entry, Note, Run, Section, Standing, Tone, entry::display_claim, grouped};

/// The most records of a publication.
const RECORDS_MAX: usize = 4096;

/// Published records and claims.
#[derive(Debug, Clone)]
pub struct Publication {
    name: String,
    records: Vec<Record>,
    claims: Claims,
    template: String,
}

impl Publication {
    /// Reads the two files of a publication's folder.
    ///
    /// # Errors
    /// A sentence that names the file, the line, and what to do.
    pub fn parse(name: &str, records: &str, claims: &str) -> Result<Self, String> {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_name) {
            return Err(format!(
                "`{name}` is no name of a publication; call its folder by a-z, 0-9 and -"
            ));
        }
        let at = |line: u64, why: &str| format!("{name}/records.jsonl:{line}: {why}");
        if records.lines().count() > RECORDS_MAX {
            return Err(at(RECORDS_MAX as u64 + 1, "too many records; leave some out"));
        }
        let records = journal::read_records(records).map_err(|damage| {
            at(damage.line, &format!("{}; write one record a line, see docs/record.md", damage.why))
        })?;
        let other = records.iter().position(|record| record.nature != Nature::Published);
        if let Some(other) = other {
            return Err(at(
                other as u64 + 1,
                "a record was not published; write \"nature\":\"published\"",
            ));
        }
        let claims = Claims::parse(claims).map_err(|why| format!("{name}/claims.toml:{why}"))?;
        Ok(Self { name: name.to_owned(), records, claims, template: String::new() })
    }

    /// The same with the template of its folder.
    ///
    /// # Errors
    /// A sentence that names the file, the line, and what is wrong.
    pub fn with_template(self, template: &str) -> Result<Self, String> {
        let read = Environment::new().template_from_str(template).map(|_| ());
        read.map_err(|error| self.broken_template(&error))?;
        Ok(Self { template: template.to_owned(), ..self })
    }

    fn broken_template(&self, error: &minijinja::Error) -> String {
        let Self { name, .. } = self;
        format!("{name}/report.j2:{}: {error}", error.line().unwrap_or(1))
    }

    /// Its name: that of its folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was published.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The section of a run that repeats it, where one of its cases ran.
    pub(crate) fn section(&self, run: &Run) -> Option<Section> {
        let Run { entries, limits, views, .. } = run;
        let ran = |entry: &Entry| entry.record.workload == self.claims.workload && entry.has_row();
        let says = !self.claims.tables.is_empty() || !self.claims.claims.is_empty();
        entries.iter().find(|entry| says && ran(entry))?;
        let figures = self.claims.figures.values();
        let workloads: Vec<&str> = figures.map(|figure| figure.workload.as_str()).collect();
        let about = |entry: &&Entry| {
            let workload = &entry.record.workload;
            workloads.contains(&workload.as_str()) || *workload == self.claims.workload
        };
        let mut here: Vec<Entry> = entries.iter().filter(about).cloned().collect();
        let mut published: Vec<Entry> =
            self.records.iter().map(|record| views.entry(record)).collect();
        let printed = template::render(&self.template, &mut here, &mut published);
        let printed =
            printed.unwrap_or_else(|error| vec![Block::Note(broken(self.broken_template(&error)))]);
        let (limits, claims, sink) = (limits.clone(), self.claims.clone(), Sink::default());
        let both = Arc::new(Both { here, published, limits, claims, sink });
        let speaker =
            Speaker { name: &self.name, environment: functions::environment(&both), both: &both };
        let mut section = Section::new(self.name.clone(), &self.claims.title);
        section.all(speaker.paragraphs(&self.claims.text));
        section.all(machines::sentence(&self.records));
        section.all(invalid(&both.here));
        for table in &self.claims.tables {
            section.all(table.heading.clone().map(Block::Heading));
            section.add(table::of(&both, table));
            section.all(speaker.paragraphs(table.text.as_slice()));
        }
        section.all(printed);
        let said: Vec<Note> =
            self.claims.claims.iter().flat_map(|claim| speaker.claim(claim)).collect();
        if !said.is_empty() {
            section.all(self.claims.heading.clone().map(Block::Heading));
            section.all(said);
        }
        Some(section)
    }
}

/// Makes sentences of templates.
struct Speaker<'a> {
    name: &'a str,
    environment: Environment<'static>,
    both: &'a Both,
}

/// A sentence, or nothing; and what it lacks.
type Said = (Option<String>, Vec<Lack>);

/// What templates of a claim see besides the functions.
type Seen = BTreeMap<String, Value>;

impl Speaker<'_> {
    fn lacks(&self) -> Vec<Lack> {
        self.both.sink.lock().map(|mut sink| std::mem::take(&mut *sink)).unwrap_or_default()
    }

    fn wrong(&self, why: &str) -> String {
        format!("{}/claims.toml:{why}", self.name)
    }

    /// # Errors
    /// A sentence that names file and line, where the template asks for what there is not.
    fn say(&self, template: &Spanned<String>, seen: &Seen) -> Result<Said, String> {
        let made = self.environment.template_from_str(template.get_ref());
        let made = made.and_then(|made| made.render(seen.clone()));
        let lacks = self.lacks();
        if drops(&lacks) {
            return Ok((None, lacks));
        }
        let claims = &self.both.claims;
        let text = made.map_err(|error| self.wrong(&claims.template_error(template, &error)))?;
        if text.len() > SENTENCE_BYTES_MAX {
            let why = "the sentence is too long; make it two";
            return Err(self.wrong(&format!("{}: {why}", claims.line(template))));
        }
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok((Some(text).filter(|text| !text.is_empty()), lacks))
    }

    fn paragraphs(&self, templates: &[Spanned<String>]) -> Vec<Block> {
        let paragraph = |template| match self.say(template, &Seen::new()) {
            Ok((text, _)) => text.map(Block::Text),
            Err(why) => Some(Block::Note(broken(why))),
        };
        templates.iter().filter_map(paragraph).collect()
    }

    fn claim(&self, claim: &ClaimSpec) -> Vec<Note> {
        let mut all = vec![Seen::new()];
        for (name, values) in &claim.each {
            let with = |seen: &Seen, value: &String| {
                let mut seen = seen.clone();
                seen.insert(name.clone(), Value::from(value.clone()));
                seen
            };
            all = all.iter().flat_map(|seen| values.iter().map(|v| with(seen, v))).collect();
        }
        all.into_iter().map(|seen| self.note(claim, seen).unwrap_or_else(broken)).collect()
    }

    fn note(&self, claim: &ClaimSpec, mut seen: Seen) -> Result<Note, String> {
        let which: Vec<String> = seen.values().map(ToString::to_string).collect();
        let which = which.join(" ");
        let name = match (claim.name.ends_with('?'), which.is_empty()) {
            (true, true) => claim.name.clone(),
            (false, true) => format!("{}:", claim.name),
            (true, false) => format!("{} {which}:", claim.name),
            (false, false) => format!("{}: {which}:", claim.name),
        };
        let evaluated = |expression: &Spanned<String>, seen: &Seen| {
            let compiled = self.environment.compile_expression(expression.get_ref());
            let value = compiled.and_then(|compiled| compiled.eval(seen.clone()));
            value.map_err(|error| self.wrong(&self.both.claims.template_error(expression, &error)))
        };
        let mut bound = Seen::new();
        for (name, expression) in &claim.with {
            bound.insert(name.clone(), evaluated(expression, &seen)?);
        }
        seen.extend(bound);
        self.lacks();
        let (word, mut lacks) = match &claim.verdict {
            Some(expression) => {
                let word = evaluated(expression, &seen);
                let lacks = self.lacks();
                // What lacks a number gives no verdict, whatever the engine made of the lack.
                let word = if drops(&lacks) { "untestable".to_owned() } else { word?.to_string() };
                (word, lacks)
            }
            None if claim.says.is_none() => ("untestable".to_owned(), Vec::new()),
            None => ("measured".to_owned(), Vec::new()),
        };
        let (tone, tag, sentence) = match word.as_str() {
            "agrees" => (Tone::Good, "agrees", &claim.agrees),
            "open" => (Tone::Warn, "open", &claim.open),
            "explained" => (Tone::Good, "explained", &claim.explained),
            "refuted" => (Tone::Warn, "refuted", &claim.refuted),
            "untestable" => (Tone::Quiet, "cannot be tested here", &claim.untestable),
            "measured" => (Tone::Plain, "measured", &claim.says),
            other => {
                let line = claim.verdict.as_ref().map_or(1, |v| self.both.claims.line(v));
                return Err(self.wrong(&format!(
                    "{line}: `{other}` is no verdict; there are agrees, open, explained, refuted, \
                     untestable"
                )));
            }
        };
        let mut said = Vec::new();
        for template in sentence.iter().chain(&claim.also) {
            let (text, lacking) = self.say(template, &seen)?;
            said.extend(text);
            lacks.extend(lacking);
        }
        let (lacking, cure) = lacking(&lacks);
        let (tone, tag) = match tag {
            "measured" if said.is_empty() => (Tone::Quiet, "cannot be tested here"),
            _ => (tone, tag),
        };
        if !lacking.is_empty() {
            said.push(format!("It needs {lacking}."));
        }
        said.extend(claim.page.as_ref().map(|page| format!("See {page}.")));
        let text = format!("{name} {}", said.join(" "));
        Ok(Note { tone, tag, text, cure })
    }
}

fn broken(text: String) -> Note {
    Note::bad("BROKEN", text, "")
}

/// What was measured of something else than its name says, by the claims that say so.
fn invalid(entries: &[Entry]) -> Vec<Note> {
    let invalid = entries.iter().filter(|entry| entry.standing == Standing::Invalid);
    let told = grouped(invalid.flat_map(|entry| {
        // What a person can do about it stands among the record's warnings.
        let advice = entry.measured().and_then(|measured| measured.warnings.first());
        entry.failed_claims().map(move |claim| (display_claim(claim), advice))
    }));
    let note = |(claim, advice): (String, Vec<Option<&String>>)| {
        let records = if advice.len() == 1 { "record" } else { "records" };
        let count = advice.len();
        let advice = advice[0].map_or_else(String::new, |advice| format!("; {advice}"));
        let text = format!("{count} {records}: {claim}. None of their numbers is quoted{advice}.");
        Note::bad("INVALID", text, "")
    };
    told.into_iter().map(note).collect()
}
