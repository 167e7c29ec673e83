//! The parameters that every workload over a trace has, and what follows from them.

use pagelab_bench::{Kind, Param, params::Values, refusal::Refusal};
use pagelab_record::Case;

use super::{
    image,
    inputs::{Medium, Wanted},
    source::{Source, ops_of},
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

/// What every workload over a trace turns away.
pub const REFUSALS: &[Refusal<Case>] = &[
    Refusal::new(
        |case| is_generated(case) && case.get("ops") == Some("all"),
        "ops=all of a generator",
        "it has no end: say how many",
    ),
    Refusal::new(
        |case| !is_generated(case) && case.get("seed").is_some_and(|seed| seed != SEED.default),
        "seed with a file",
        "only generators have one",
    ),
    Refusal::new(
        |case| !is_generated(case) && wants_generators(case),
        "image=generator with a file",
        "name the image's path, or none",
    ),
    Refusal::new(
        |case| match Source::of(case) {
            Source::Generator(spec) => wants_generators(case) && !super::door::has_image(&spec),
            Source::File(_) => false,
        },
        "image=generator of a generator without one",
        "use image=none",
    ),
];

fn is_generated(case: &Case) -> bool {
    Source::of(case).is_generated()
}

fn wants_generators(case: &Case) -> bool {
    case.get("image") == Some("generator")
}

/// Operations of a generator when nobody says how many.
const OPS_GENERATED: &str = "20m";

/// Replaces what is `auto`.
pub fn resolve(case: Case) -> Case {
    let source = Source::of(&case);
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

/// Bytes of the trace of a complete case, roughly.
pub fn estimated_bytes(case: &Case) -> u64 {
    Source::of(case).estimated_bytes(ops_of(case))
}

/// Whether the trace is generated, or looks compressed: it must be made before it can be read.
pub fn is_made(case: &Case) -> bool {
    match Source::of(case) {
        Source::Generator(_) => true,
        Source::File(path) => super::source::has_packed_name(&path),
    }
}

/// What a complete case asks its parent for.
pub fn wanted(case: &Case, medium: Medium) -> Wanted {
    Wanted {
        source: Source::of(case),
        ops: ops_of(case),
        seed: case.get("seed").and_then(|seed| seed.parse().ok()).unwrap_or(1),
        image: case.get("image").unwrap_or("none").to_owned(),
        medium,
    }
}
