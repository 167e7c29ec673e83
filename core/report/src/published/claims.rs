//! `claims.toml`: what a publication compares and claims, read and checked.
//!
//! Everything is data but the words between the numbers, and those are templates of minijinja over
//! the functions of [`super::functions`]: no language of our own. The file may be anybody's, so its
//! size and that of a sentence are bounded, nothing can be included, and what could make much of
//! little (assignments, macros, `*`) is refused where it is read.

use std::collections::BTreeMap;

use minijinja::Environment;
use serde::Deserialize;
use toml::Spanned;

/// The longest file of claims.
pub(super) const CLAIMS_BYTES_MAX: usize = 256 << 10;
/// The longest template, and the longest sentence that one may make.
pub(super) const SENTENCE_BYTES_MAX: usize = 4 << 10;
/// The statements that a template may hold: a choice, and a walk over a list.
const STATEMENTS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];
/// The most claims that one may be made into by `each`.
const EACH_MAX: usize = 64;

/// A parameter's values: any of them will do.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Values {
    One(String),
    Any(Vec<String>),
}

impl Values {
    pub(super) fn all(&self) -> &[String] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Any(values) => values,
        }
    }
}

/// Parameters with the values that are asked of them.
pub(super) type Asked = BTreeMap<String, Values>;

/// Where a number is found in a record; what is absent is the default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Place {
    pub(super) case: Option<Asked>,
    pub(super) arm: Option<String>,
    pub(super) series: Option<String>,
    pub(super) statistic: Option<String>,
    /// `elapsed`, `cpu` or `none`.
    pub(super) time: Option<String>,
    /// A counter instead of a series.
    pub(super) counter: Option<String>,
}

/// A number that templates and tables ask for by name.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct FigureSpec {
    pub(super) workload: String,
    #[serde(default)]
    pub(super) case: Asked,
    /// Of several such cases, the one that has most of these.
    #[serde(default)]
    pub(super) prefer: Asked,
    /// Of several such cases, the one with fewest arms instead of most.
    #[serde(default)]
    pub(super) alone: bool,
    pub(super) arm: Option<String>,
    pub(super) series: Option<String>,
    pub(super) statistic: Option<String>,
    pub(super) time: Option<String>,
    pub(super) counter: Option<String>,
    /// How it is written: `MiB/s`, `value`; by its unit where absent.
    #[serde(rename = "as")]
    pub(super) form: Option<String>,
    /// What a table calls it; its name where absent.
    pub(super) called: Option<String>,
    /// The parameter that lists arms, for the command that would measure it.
    pub(super) arms: Option<String>,
    /// Where the published one is found, as far as that differs.
    #[serde(default)]
    pub(super) published: Place,
}

/// *Here | published | ratio*, a row for each case that was published.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct TableSpec {
    pub(super) heading: Option<String>,
    /// What must be equal for two results to be alike: parameters, or `arm`. What the published
    /// record does not state is not asked.
    pub(super) like: Vec<String>,
    /// Parameters of the published record that are shown and not asked.
    #[serde(default)]
    pub(super) shown: Vec<String>,
    /// Figures, in order.
    pub(super) figures: Vec<String>,
    /// Whether cases of this run that nobody published have rows, too.
    #[serde(default)]
    pub(super) others: bool,
    /// A paragraph below.
    pub(super) text: Option<Spanned<String>>,
}

/// A claim of the publication, and a sentence for each way in which it may turn out.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ClaimSpec {
    /// What a reader calls it.
    pub(super) name: String,
    /// Once for each combination of these, which templates see as variables.
    #[serde(default)]
    pub(super) each: BTreeMap<String, Vec<String>>,
    /// Expressions that its sentences share, by name.
    #[serde(default)]
    pub(super) with: BTreeMap<String, Spanned<String>>,
    /// An expression that gives one of the verdicts; without it the sentence is no verdict.
    pub(super) verdict: Option<Spanned<String>>,
    /// The sentence of a claim without a verdict.
    pub(super) says: Option<Spanned<String>>,
    pub(super) agrees: Option<Spanned<String>>,
    pub(super) open: Option<Spanned<String>>,
    pub(super) explained: Option<Spanned<String>>,
    pub(super) refuted: Option<Spanned<String>>,
    pub(super) untestable: Option<Spanned<String>>,
    /// Sentences after it, each for itself.
    #[serde(default)]
    pub(super) also: Vec<Spanned<String>>,
    /// The page that holds the argument.
    pub(super) page: Option<String>,
}

impl ClaimSpec {
    /// Every sentence of it.
    fn sentences(&self) -> impl Iterator<Item = &Spanned<String>> {
        let Self { says, agrees, open, explained, refuted, untestable, also, .. } = self;
        let ends = [says, agrees, open, explained, refuted, untestable];
        ends.into_iter().flatten().chain(also)
    }
}

/// All of a file.
#[expect(clippy::struct_field_names, reason = "fields are named as the file names them")]
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Claims {
    /// Its heading in a report.
    pub(super) title: String,
    /// The section is drawn where a case of this workload ran.
    pub(super) workload: String,
    /// Paragraphs at the head.
    #[serde(default)]
    pub(super) text: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) figures: BTreeMap<String, FigureSpec>,
    #[serde(default)]
    pub(super) tables: Vec<TableSpec>,
    /// What the claims are called together.
    pub(super) heading: Option<String>,
    #[serde(default)]
    pub(super) claims: Vec<ClaimSpec>,
    /// The text itself, for line numbers.
    #[serde(skip)]
    source: String,
}

impl Claims {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// A sentence that begins with the line and says what to write instead.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > CLAIMS_BYTES_MAX {
            let most = CLAIMS_BYTES_MAX >> 10;
            return Err(format!("1: the file is longer than {most} KiB; leave out some claims"));
        }
        let mut claims: Self = toml::from_str(text).map_err(|error| {
            let line = line_of(text, error.span().map_or(0, |span| span.start));
            format!("{line}: {}", error.message().replace('\n', " "))
        })?;
        text.clone_into(&mut claims.source);
        claims.check()?;
        Ok(claims)
    }

    /// The line that a template begins on.
    pub(super) fn line(&self, template: &Spanned<String>) -> usize {
        line_of(&self.source, template.span().start)
    }

    fn check(&self) -> Result<(), String> {
        // What is in no span is looked for.
        let line = |text: &str| line_of(&self.source, self.source.find(text).unwrap_or(0));
        for name in self.tables.iter().flat_map(|table| &table.figures) {
            if !self.figures.contains_key(name) {
                return Err(format!("{}: {}", line(&format!("\"{name}\"")), self.no_figure(name)));
            }
        }
        let template = |text: &str| Environment::empty().template_from_str(text).map(drop);
        let expression = |text: &str| Environment::empty().compile_expression(text).map(drop);
        let texts = self.tables.iter().filter_map(|table| table.text.as_ref()).chain(&self.text);
        let sentences = self.claims.iter().flat_map(ClaimSpec::sentences);
        texts.chain(sentences).try_for_each(|text| self.check_text(text, template))?;
        for claim in &self.claims {
            let expressions = claim.with.values().chain(&claim.verdict);
            expressions.into_iter().try_for_each(|text| self.check_text(text, expression))?;
            let combinations = claim.each.values().map(Vec::len).fold(1, usize::saturating_mul);
            let said = [&claim.agrees, &claim.open, &claim.refuted];
            let what = if combinations > EACH_MAX {
                "is made more than 64 times; make it two"
            } else if claim.verdict.is_some() && said.iter().any(|sentence| sentence.is_none()) {
                "has a verdict and no sentence for some of it; write `agrees`, `open` and `refuted`"
            } else if claim.verdict.is_none() && claim.says.is_none() && claim.untestable.is_none()
            {
                "says nothing; write `says`, or `verdict` with its sentences"
            } else {
                continue;
            };
            return Err(format!("{}: claim `{}` {what}", line(&claim.name), claim.name));
        }
        Ok(())
    }

    /// What there is instead of a figure that there is not.
    pub(super) fn no_figure(&self, name: &str) -> String {
        let names: Vec<&str> = self.figures.keys().map(String::as_str).collect();
        format!("no figure is called `{name}`; there are {}", names.join(", "))
    }

    fn check_text(
        &self,
        text: &Spanned<String>,
        read: impl Fn(&str) -> Result<(), minijinja::Error>,
    ) -> Result<(), String> {
        let source = text.get_ref();
        let mut words = source.split("{%").skip(1).map(|rest| {
            let rest = rest.trim_start_matches(['-', '+']).trim_start();
            rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default()
        });
        let why = if source.len() > SENTENCE_BYTES_MAX {
            let most = SENTENCE_BYTES_MAX >> 10;
            format!("a template is longer than {most} KiB; make it several sentences")
        } else if source.contains('*') {
            // A product of text is as long as one likes.
            "a template has no `*`; write × in words, and ratio() for numbers".to_owned()
        } else if let Some(word) = words.find(|word| !STATEMENTS.contains(word)) {
            let known = STATEMENTS.join(", ");
            format!("a template has no statement `{word}`; there are {known}")
        } else {
            return read(source).map_err(|error| self.template_error(text, &error));
        };
        Err(format!("{}: {why}", self.line(text)))
    }

    /// An error of the engine with the line of the file that it is about.
    pub(super) fn template_error(
        &self,
        template: &Spanned<String>,
        error: &minijinja::Error,
    ) -> String {
        let line = self.line(template) + error.line().unwrap_or(1).saturating_sub(1);
        let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
        format!("{line}: {detail}; see docs/publications.md for what a sentence may ask")
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}
