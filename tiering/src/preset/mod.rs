//! Scenario files: what is simulated, with which numbers, beside which published results.
//!
//! The one idea: a file says where each of its numbers comes from, and which published results
//! stand beside what comes out ([`Published`]). The presets are such files, built in; anybody's own
//! is read the same way, and a mistake names its line.

use std::{collections::BTreeMap, path::Path};

use pagelab_record::input;
use pagelab_tier::{PolicySpec, WorkSpec};
use serde::{Deserialize, Deserializer, de::Error};

use super::{
    choice::Choice,
    constant::Constant,
    metric::Metric,
    section::{Bits, Daemon, Ends, Hints, Layer, Load, Memory, Physical, Samples},
};

/// The built-in scenarios: name and text.
pub const PRESETS: &[(&str, &str)] = &[
    ("plain", include_str!("../../../presets/plain.toml")),
    ("pghot-v7/scan-1s", include_str!("../../../presets/pghot-v7/scan-1s.toml")),
    ("pghot-v7/scan-100ms", include_str!("../../../presets/pghot-v7/scan-100ms.toml")),
    ("pghot-v7/overcommit", include_str!("../../../presets/pghot-v7/overcommit.toml")),
    ("pghot-v7/graph500", include_str!("../../../presets/pghot-v7/graph500.toml")),
    ("pghot-v7-nps2/graph500", include_str!("../../../presets/pghot-v7-nps2/graph500.toml")),
    ("pghot-v6/graph500", include_str!("../../../presets/pghot-v6/graph500.toml")),
    ("pghot-v3/mode-1", include_str!("../../../presets/pghot-v3/mode-1.toml")),
    ("pghot-v3/mode-2", include_str!("../../../presets/pghot-v3/mode-2.toml")),
    ("pghot-v3/mode-3", include_str!("../../../presets/pghot-v3/mode-3.toml")),
];

/// A scenario file.
#[derive(Debug, Clone, PartialEq)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// One line: what it is.
    pub summary: String,
    /// What the model does not say, in sentences.
    pub remarks: Vec<String>,
    /// What random choices start from.
    pub seed: u64,
    /// What every run has, unless it says otherwise.
    pub base: Settings,
    /// What is simulated, one arm each, each with all of its settings.
    pub runs: Vec<Run>,
    /// Published results by the source and metric that they stand beside: `NUMAB2/time_s`.
    pub published: BTreeMap<String, Published>,
}

/// One simulation of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its name; what is in brackets says that it is another model of the source before.
    pub source: String,
    /// The source whose published results it stands beside: its own name as a rule.
    pub compares: String,
    /// Who decides.
    pub policy: Choice<PolicySpec>,
    /// The rest.
    pub settings: Settings,
    /// The settings that are not those of the file.
    pub own: Settings,
}

/// Everything about a run but who decides, and the tables that a file and each of its runs may have
/// for it. Written out in both: what serde flattens has lost its line.
macro_rules! settings {
    ($($(#[$help:meta])* $field:ident: $type:ty,)+) => {
        /// Everything about a run but who decides.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Settings { $($(#[$help])* pub $field: $type),+ }

        impl Settings {
            /// Each field over that of `base`.
            fn each_over(&self, base: &Self) -> Self {
                Self { $($field: self.$field.over(&base.$field)),+ }
            }

            /// The numbers of the tables.
            fn numbers(&self) -> Vec<(String, Constant)> {
                let mut all = Vec::new();
                $(all.extend(named(stringify!($field), self.$field.each()));)+
                all
            }
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        struct File {
            name: String,
            summary: String,
            #[serde(default)] remarks: Vec<String>,
            #[serde(default)] seed: u64,
            run: Vec<FileRun>,
            #[serde(default, deserialize_with = "by_metric")]
            published: BTreeMap<String, Published>,
            $(#[serde(default)] $field: $type),+
        }

        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        struct FileRun {
            source: String,
            compares: Option<String>,
            policy: Choice<PolicySpec>,
            $(#[serde(default)] $field: $type),+
        }

        settings!(of File: $($field),+);
        settings!(of FileRun: $($field),+);
    };
    (of $file:ident: $($field:ident),+) => {
        impl $file {
            fn settings(&self) -> Settings {
                Settings { $($field: self.$field.clone()),+ }
            }
        }
    };
}

settings! {
    /// What the program accesses.
    generator: Option<Choice<WorkSpec>>,
    /// A trace instead of a generator.
    trace: Option<String>,
    /// Where the pages are at the start.
    start: Option<Start>,
    /// What observes the accesses; what the policy needs where nothing is said.
    sources: Option<Vec<SourceName>>,
    /// See [`Memory`].
    memory: Memory,
    /// See [`Load`].
    work: Load,
    /// See [`Ends`].
    curve: Ends,
    /// Measured points of the curve: share of the lower tier, and seconds.
    points: Option<Vec<(f64, f64)>>,
    /// See [`Physical`].
    physical: Physical,
    /// See [`Samples`].
    sampling: Samples,
    /// See [`Hints`].
    hints: Hints,
    /// Accessed bits.
    young: Bits,
    /// Written bits.
    written: Bits,
    /// See [`Daemon`].
    mover: Daemon,
}

/// Where the pages are at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// All in the lowest tier.
    Slow,
    /// All in the top tier, what does not fit below it.
    Fast,
    /// Every other page on each tier in turn.
    Interleaved,
}

/// What observes accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceName {
    /// The processor.
    Sampling,
    /// Hint faults.
    Hints,
    /// Accessed bits.
    Young,
    /// Written bits.
    Written,
}

/// A published result.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Published {
    /// The number, in the unit of its metric.
    pub value: f64,
    /// Who published it where.
    pub source: String,
    /// How many runs it is the mean of.
    #[serde(default = "one")]
    pub runs: u32,
    /// How much chance there is in it, by the model.
    pub chance: Option<Chance>,
    /// Why it could not come out otherwise, where that is so.
    pub identity: Option<String>,
    /// What may explain the difference.
    pub why: Option<String>,
}

/// Where the chance in a count comes from, which gives its standard deviation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chance {
    /// Samples fall on pages independently; the count is the pages that got one.
    Occupancy,
    /// Rare independent events.
    Poisson,
    /// A page is tried until it succeeds; the count is the attempts.
    Geometric,
}

fn one() -> u32 {
    1
}

/// Published results, whose names end in a metric.
fn by_metric<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Published>, D::Error> {
    let published: BTreeMap<String, Published> = BTreeMap::deserialize(deserializer)?;
    for name in published.keys() {
        let Some((_, metric)) = name.rsplit_once('/') else {
            return Err(D::Error::custom(format!("`{name}` is no SOURCE/METRIC")));
        };
        Metric::of(metric).map_err(D::Error::custom)?;
    }
    Ok(published)
}

impl Settings {
    /// These settings, and where there are none those of `base`.
    #[must_use]
    pub fn over(&self, base: &Self) -> Self {
        // What a run works on is one choice: a generator of its own is instead of the trace.
        let works = self.generator.is_some() || self.trace.is_some();
        let Self { generator, trace, .. } = if works { self } else { base }.clone();
        Self { generator, trace, ..self.each_over(base) }
    }

    /// Every number, with the name that it has in a file.
    pub fn constants(&self) -> Vec<(String, Constant)> {
        let generator = self.generator.iter().flat_map(Choice::each);
        named("generator", generator).chain(self.numbers()).collect()
    }
}

/// Numbers, each with its table's name before its own.
fn named<'c>(
    table: &str,
    numbers: impl IntoIterator<Item = (String, &'c Constant)>,
) -> impl Iterator<Item = (String, Constant)> {
    numbers.into_iter().map(move |(name, constant)| (format!("{table}.{name}"), constant.clone()))
}

impl Run {
    /// Every number that the run depends on, with the name that it has in a file.
    pub fn constants(&self) -> Vec<(String, Constant)> {
        named("policy", self.policy.each()).chain(self.settings.constants()).collect()
    }

    /// Whether it is another model of a source that has a model already.
    pub fn is_variant(&self) -> bool {
        self.source != self.compares
    }
}

/// Reads a scenario file.
///
/// # Errors
/// A sentence that names the line, or the run.
pub fn parse(text: &str) -> Result<Preset, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string().trim().to_owned())?;
    if file.run.is_empty() {
        return Err("there is no [[run]]: nothing would be simulated".to_owned());
    }
    let base = file.settings();
    let mut runs: Vec<Run> = Vec::new();
    for run in &file.run {
        if runs.iter().any(|known| known.source == run.source) {
            return Err(format!("two runs have the source `{}`", run.source));
        }
        let own = run.settings();
        runs.push(Run {
            source: run.source.clone(),
            compares: run.compares.clone().unwrap_or_else(|| run.source.clone()),
            policy: run.policy.clone(),
            settings: own.over(&base),
            own,
        });
    }
    let preset = Preset {
        name: file.name,
        summary: file.summary,
        remarks: file.remarks,
        seed: file.seed,
        base,
        runs,
        published: file.published,
    };
    preset.check_names()?;
    Ok(preset)
}

impl Preset {
    /// Every published result that is named somewhere exists, and stands beside a run.
    fn check_names(&self) -> Result<(), String> {
        for run in &self.runs {
            for (name, constant) in run.constants() {
                for result in constant.origin.results() {
                    if !self.published.contains_key(result) {
                        let source = &run.source;
                        return Err(format!(
                            "{source}: {name} comes from `{result}`, which is not in [published]"
                        ));
                    }
                }
            }
        }
        for name in self.published.keys() {
            let source = name.rsplit_once('/').map_or("", |(source, _)| source);
            if !self.runs.iter().any(|run| run.compares == source) {
                return Err(format!("[published] has `{name}`, and no run stands beside it"));
            }
        }
        Ok(())
    }
}

/// The longest preset that is read.
const BYTES_MAX: u64 = 1 << 20;

/// The scenario of that name, or in the file at that path.
///
/// # Errors
/// A sentence that names the preset, or the file and its line.
pub fn load(name: &str) -> Result<Preset, String> {
    if let Some((_, text)) = PRESETS.iter().find(|(known, _)| *known == name) {
        return parse(text).map_err(|why| format!("preset {name}: {why}"));
    }
    let text = input::text(Path::new(name), BYTES_MAX).map_err(|why| format!("{name}: {why}"))?;
    parse(&text).map_err(|why| format!("{name}: {why}"))
}

#[cfg(test)]
mod tests;
