//! The parameters that every workload over a trace has, and what follows from them.

use pagelab_bench::{Kind, Param, Read, Refusal, Values};
use pagelab_record::Case;

use super::{
    image,
    inputs::{Medium, Wanted},
    source::Source,
};

/// What kind of text a parameter takes.
#[derive(Debug)]
enum Text {
    /// The path of a trace, or a generator.
    Trace,
    /// What is in memory before a trace starts: `auto`, `none`, `generator`, or `PATH[@ADDRESS]`.
    Image,
}

impl Values for Text {
    fn canonical(&self, value: &str) -> Result<String, String> {
        match self {
            Self::Trace => Source::parse(value).map(|source| source.to_string()),
            Self::Image => image::canonical(value),
        }
    }

    fn choices(&self) -> Vec<String> {
        let words = match self {
            Self::Trace => super::generators(),
            Self::Image => image::WORDS.to_vec(),
        };
        words.into_iter().map(ToOwned::to_owned).collect()
    }

    fn has_commas(&self) -> bool {
        true
    }
}

/// The trace.
pub const TRACE: Param = Param::axis("trace", Kind::Own(&Text::Trace), "exec-block")
    .help("the trace: a path (raw, gz, xz, zst), or a generator with what it takes after a colon");
/// How much of it.
pub const OPS: Param = Param::axis("ops", Kind::Ops, "auto")
    .help("operations: a count (20m is 20 million), all; auto: all of a file, 20m of a generator");
/// The generator's seed.
pub const SEED: Param =
    Param::axis("seed", Kind::Number { min: 0, max: u64::MAX }, "1").help("seed of the generator");
/// What is in memory before.
pub const IMAGE: Param = Param::axis("image", Kind::Own(&Text::Image), "auto").help(
    "memory before the first operation: a path (ELF, or raw bytes with @ADDRESS), none, what \
           the generator lays down; auto: TRACE.image, or the generator's, if there is one",
);

/// What a case says of its trace.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Where it comes from.
    pub source: Source,
    /// How many operations; `None` is all.
    pub ops: Option<u64>,
    /// The generator's seed.
    pub seed: u64,
    /// What is in memory before.
    pub image: String,
}

impl Asked {
    /// What a complete case asks for.
    ///
    /// # Panics
    /// When the case has no canonical `trace`; a case is checked before it is used.
    pub fn of(case: &Case) -> Self {
        Self {
            source: source_of(case),
            ops: case.count("ops"),
            seed: case.number("seed").unwrap_or(1),
            image: case.text("image").unwrap_or("none").to_owned(),
        }
    }

    /// Bytes of the trace, roughly.
    pub fn bytes(&self) -> u64 {
        self.source.estimated_bytes(self.ops)
    }

    /// What the parent is asked for.
    pub fn wanted(&self, medium: Medium) -> Wanted {
        let Self { source, ops, seed, image } = self.clone();
        Wanted { source, ops, seed, image, medium }
    }

    fn wants_generators(&self) -> bool {
        self.image == "generator"
    }
}

fn source_of(case: &Case) -> Source {
    let text = case.text("trace").expect("the case has a trace");
    Source::parse(text).expect("the trace is canonical")
}

/// What every workload over a trace turns away.
pub const REFUSALS: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| asked.source.is_generated() && asked.ops.is_none(),
        "ops=all of a generator",
        "it has no end: say how many",
    ),
    Refusal::new(
        |asked| !asked.source.is_generated() && asked.seed != 1,
        "seed with a file",
        "only generators have one",
    ),
];

/// The same where there is memory before.
const REFUSALS_OF_IMAGES: &[Refusal<Asked>] = &[
    Refusal::new(
        |asked| !asked.source.is_generated() && asked.wants_generators(),
        "image=generator with a file",
        "name the image's path, or none",
    ),
    Refusal::new(
        |asked| match &asked.source {
            Source::Generator(spec) => asked.wants_generators() && !super::door::has_image(spec),
            Source::File(_) => false,
        },
        "image=generator of a generator without one",
        "use image=none",
    ),
];

/// All of them.
pub const OVER_IMAGES: &[&[Refusal<Asked>]] = &[REFUSALS, REFUSALS_OF_IMAGES];

/// Operations of a generator when nobody says how many.
const OPS_GENERATED: &str = "20m";

/// Replaces what is `auto`.
pub fn resolve(case: Case) -> Case {
    let source = source_of(&case);
    let case = match case.get("ops") {
        Some("auto") if source.is_generated() => case.with("ops", OPS_GENERATED),
        Some("auto") => case.with("ops", "all"),
        _ => case,
    };
    match case.get("image") {
        Some("auto") => case.with("image", &image::automatic(&source)),
        _ => case,
    }
}
