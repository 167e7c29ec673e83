//! The parameters of `tier/simulation`, and what they change in a scenario.
//!
//! The one idea: a scenario file says everything; a parameter that is not `auto` says it otherwise,
//! for every run that it means something to. So a grid is a scenario with some of its numbers
//! varied. Inside the text of a policy or generator a plus stands between numbers, because a comma
//! stands between cases or arms: `pghot:threshold=1+window=1000`.

use pagelab_bench::{
    Kind, Param, Values,
    count::{format_count, parse_count},
};
use pagelab_emulation::trace::Source;
use pagelab_record::{Case, units};
use pagelab_tier::{GENERATORS, POLICIES, PolicySpec, WorkSpec, policy::Needs};

use super::{
    choice::Choice,
    constant::{self, Constant},
    preset::{self, Preset, Run, Settings, SourceName},
    scenario::scenario,
};

/// What every parameter is that leaves a scenario as it is.
pub const AUTO: &str = "auto";
/// All policies.
const ALL: &str = "all";

/// What kind of text a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// A preset's name, or the path of a scenario file.
    Scenario,
    /// A policy, `all`, or `auto`.
    Policy,
    /// A generator, or `auto`.
    Generator,
    /// A trace's path, a generator of traces, or `auto`.
    Trace,
    /// A size, a share of the working set such as `50%`, or `auto`.
    Part,
    /// A count such as `4g` (4 × 10^9), or `auto`.
    Count,
    /// A time such as `100ms`, or `auto`.
    Time,
    /// A number of 0 or more, or `auto`.
    Real,
    /// Sources with plus between them, or `auto`.
    Sources,
}

const fn param(name: &'static str, help: &'static str, field: &'static dyn Values) -> Param {
    Param::axis(name, Kind::Own(field), AUTO).help(help)
}

const fn number(name: &'static str, help: &'static str, max: u64) -> Param {
    Param::axis(name, Kind::Count { max, auto: true }, AUTO).help(help)
}

/// The parameters.
pub const PARAMS: &[Param] = &[
    Param::axis("scenario", Kind::Own(&Field::Scenario), "plain")
        .help("a preset, or the path of a scenario file; the other parameters change it"),
    Param::arms("policy", Kind::Own(&Field::Policy), AUTO)
        .help("who decides, one arm each; auto: the runs of the scenario"),
    param("generator", "what the program accesses", &Field::Generator),
    param("trace", "a trace instead of a generator", &Field::Trace),
    number("trace-ops", "operations of the trace; auto: all of a file, 1m of a generator", 1 << 40),
    Param::axis("size", Kind::Size, AUTO).help("bytes of the working set"),
    param("fast", "bytes of fast memory, or a share of the working set: 50%", &Field::Part),
    param("accesses", "accesses that miss the caches: 4g is 4 × 10^9", &Field::Count),
    number("threads", "threads of the program", 65_536),
    number("period", "accesses for one sample", 1 << 40),
    number("threshold", "accesses that make a page hot, of policies that have a threshold", 255),
    number("window", "milliseconds in which they count, of policies that have a window", 1 << 32),
    param("sources", "what observes: sampling, hints, young, written", &Field::Sources),
    param("scan-period", "time between two scans for hint faults, at the start", &Field::Time),
    Param::axis("rate-limit", Kind::Size, AUTO).help("bytes a second that the daemon may move"),
    param("curve-fast", "time with everything in the top tier", &Field::Time),
    param("curve-slow", "time with everything in the lowest tier", &Field::Time),
    param("exponent", "congestion of the lower tiers; 1 is additive", &Field::Real),
    number("seed", "what random choices start from", u64::MAX),
];

impl Values for Field {
    fn canonical(&self, value: &str) -> Result<String, String> {
        if value == AUTO && *self != Self::Scenario {
            return Ok(value.to_owned());
        }
        match self {
            Self::Scenario => {
                let is_preset = preset::PRESETS.iter().any(|(name, _)| *name == value);
                let name = if is_preset { value.to_owned() } else { absolute(value)? };
                preset::load(&name).map(|_| name)
            }
            Self::Policy if value == ALL => Ok(value.to_owned()),
            Self::Policy => spec(PolicySpec::parse, value),
            Self::Generator => spec(WorkSpec::parse, value),
            Self::Trace => Source::parse(value).map(|source| source.to_string()),
            Self::Part => match value.strip_suffix('%').map(str::parse::<f64>) {
                Some(Ok(share)) if share > 0.0 && share.is_finite() => Ok(format!("{share}%")),
                Some(_) => Err("expected a share above 0 such as 50%".to_owned()),
                None => match units::parse_bytes(value)? {
                    0 => Err("a tier without memory is none".to_owned()),
                    bytes => Ok(units::format_bytes(bytes)),
                },
            },
            Self::Count => match parse_count(value)? {
                0 => Err("a program that accesses nothing takes no time".to_owned()),
                count => Ok(format_count(count)),
            },
            Self::Time | Self::Real => constant::parse(value).map(|_| value.to_owned()),
            Self::Sources => {
                sources(value)?;
                Ok(value.to_owned())
            }
        }
    }

    fn choices(&self) -> Vec<String> {
        let names: Vec<&str> = match self {
            Self::Scenario => preset::PRESETS.iter().map(|(name, _)| *name).collect(),
            Self::Policy => {
                let names = POLICIES.iter().map(|policy| policy.name);
                names.chain([ALL, AUTO]).collect()
            }
            Self::Generator => {
                GENERATORS.iter().map(|generator| generator.name).chain([AUTO]).collect()
            }
            _ => Vec::new(),
        };
        names.into_iter().map(ToOwned::to_owned).collect()
    }
}

fn absolute(path: &str) -> Result<String, String> {
    let names = || {
        let names: Vec<&str> = preset::PRESETS.iter().map(|(name, _)| *name).collect();
        format!("no preset and no file is called so; the presets are {}", names.join(", "))
    };
    let found = std::path::absolute(path).map_err(|error| error.to_string())?;
    if !found.exists() {
        return Err(names());
    }
    Ok(found.display().to_string())
}

/// The text of a choice, checked; what stands in a case is what was written.
fn spec<S>(read: fn(&str) -> Result<S, String>, value: &str) -> Result<String, String> {
    read(&value.replace('+', ",")).map(|_| value.to_owned())
}

fn sources(value: &str) -> Result<Vec<SourceName>, String> {
    let source = |name: &str| match name {
        "sampling" => Ok(SourceName::Sampling),
        "hints" => Ok(SourceName::Hints),
        "young" => Ok(SourceName::Young),
        "written" => Ok(SourceName::Written),
        _ => Err(format!(
            "`{name}` is no source; there are sampling, hints, young and written, with a plus \
             between two"
        )),
    };
    value.split('+').map(source).collect()
}

/// A run of a complete case, and whether the case changes it.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The run.
    pub run: Run,
    /// Whether it is another experiment than that of the file.
    pub changed: bool,
}

/// The scenario of a complete case, and its runs with every parameter laid over them.
///
/// # Errors
/// A sentence that names the file, or the parameter.
pub fn plan(case: &Case) -> Result<(Preset, Vec<Planned>), String> {
    let mut preset = preset::load(case.get("scenario").unwrap_or_default())?;
    let given = |name: &str| case.get(name).filter(|value| *value != AUTO);
    if let Some(seed) = given("seed") {
        preset.seed = seed.parse().map_err(|_| format!("--seed {seed} is no number"))?;
    }
    let runs = match given("policy") {
        None => preset.runs.clone(),
        Some(policies) => by_policy(&preset, policies)?,
    };
    let by_hand = given("policy").is_some();
    let planned: Result<Vec<Planned>, String> = runs
        .into_iter()
        .map(|run| {
            let mut changed = run.clone();
            lay_over(&mut changed, &given)?;
            // Another seed is the same experiment once more.
            let is_changed = by_hand || differs(&run, &changed, preset.seed);
            Ok(Planned { run: changed, changed: is_changed })
        })
        .collect();
    Ok((preset, planned?))
}

/// Whether two runs are two experiments: a number that neither uses makes no difference.
fn differs(one: &Run, other: &Run, seed: u64) -> bool {
    let is_trace = other.settings.trace.is_some();
    let told = |run| scenario(run, seed, None).map(|scenario| format!("{scenario:?}"));
    one != other && (is_trace || told(one) != told(other))
}

/// A run for each policy, with what all runs of the file have.
fn by_policy(preset: &Preset, policies: &str) -> Result<Vec<Run>, String> {
    let mut names: Vec<&str> = Vec::new();
    for name in policies.split(',') {
        match name {
            ALL => names.extend(POLICIES.iter().map(|policy| policy.name)),
            name => names.push(name),
        }
    }
    let run = |name: &&str| {
        Ok(Run {
            source: (*name).to_owned(),
            compares: (*name).to_owned(),
            policy: Choice::parse(&name.replace('+', ","))?,
            settings: preset.base.clone(),
            own: Settings::default(),
        })
    };
    names.iter().map(run).collect()
}

fn lay_over<'c>(run: &mut Run, given: &impl Fn(&str) -> Option<&'c str>) -> Result<(), String> {
    let settings = &mut run.settings;
    let number = |name: &str| -> Option<f64> { given(name)?.parse().ok() };
    let bytes = |name: &str| -> Option<f64> { Some(units::parse_bytes(given(name)?).ok()? as f64) };
    let seconds = |name: &str| constant::parse(given(name)?).ok();
    let set = |slot: &mut Option<Constant>, value: Option<f64>| {
        if let Some(value) = value {
            *slot = Some(Constant::given(value));
        }
    };
    if let Some(generator) = given("generator") {
        settings.generator = Some(Choice::parse(&generator.replace('+', ","))?);
        settings.trace = None;
    }
    if let Some(trace) = given("trace") {
        settings.trace = Some(trace.to_owned());
        settings.generator = None;
    }
    set(&mut settings.memory.size, bytes("size"));
    if let Some(fast) = given("fast") {
        let part = match fast.strip_suffix('%').and_then(|share| share.parse::<f64>().ok()) {
            // Of a trace nobody knows the size before it is read.
            Some(share) => settings.memory.size.as_ref().map(|size| size.value * share / 100.0),
            None => bytes("fast"),
        };
        set(&mut settings.memory.fast, part);
    }
    let accesses = given("accesses").and_then(|count| parse_count(count).ok());
    set(&mut settings.work.accesses, accesses.map(|count| count as f64));
    set(&mut settings.work.threads, number("threads"));
    set(&mut settings.sampling.period, number("period"));
    set(&mut settings.hints.period, seconds("scan-period"));
    set(&mut settings.mover.rate_limit, bytes("rate-limit"));
    set(&mut settings.curve.fast, seconds("curve-fast"));
    set(&mut settings.curve.slow, seconds("curve-slow"));
    set(&mut settings.curve.exponent, seconds("exponent"));
    if let Some(names) = given("sources") {
        // What needs nothing is observed by nothing.
        if !matches!(run.policy.spec.row().needs, Needs::Nothing | Needs::Future) {
            settings.sources = Some(sources(names)?);
        }
    }
    for name in ["threshold", "window"] {
        if let Some(value) = number(name) {
            let known = run.policy.spec.row().parameters;
            if known.iter().any(|parameter| parameter.name == name) {
                run.policy.set(name, value)?;
            }
        }
    }
    Ok(())
}
