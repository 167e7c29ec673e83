//! `pagelab trace synth`: writes the trace of a generator.
//!
//! The output is created before anything is generated, and is complete or not there: what an
//! interrupt or a full disk leaves is removed.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

use crate::trace::{Counter, generators};
use clap::Args;
use pagelab_bench::count::parse_count;
use pagelab_record::units::display_bytes;
use pagelab_sys::{
    files::folder::{self, Existing, FolderError, Made, Target},
    process::{Beat, catch_interrupts, interrupted},
};
use pagelab_trace::{
    file::{self, FileError, Output},
    image::{Image, sidecar},
    synth::Spec,
};

use super::fit::Fit;
use pagelab_cli::{
    args::{Quiet, Run},
    exit::{Exit, Failure},
    output,
    progress::Work,
};

/// Write the trace of a generator, and the image that belongs to it.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(super) struct Synth {
    #[arg(value_name = "GENERATOR[:NAME=VALUE,…]")]
    #[arg(help = format!("Which: {}, with what it takes after a colon", generators().join(", ")))]
    generator: String,
    /// Operations: 20m is 20 million (default: what the generator proposes).
    #[arg(long, value_name = "N", value_parser = parse_count)]
    ops: Option<u64>,
    /// What random choices start from.
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Where to; FILE.gz, FILE.xz and FILE.zst are compressed.
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    file: PathBuf,
    /// Write FILE.image too: the default where the generator has one.
    #[arg(long)]
    image: bool,
    /// Do not write FILE.image.
    #[arg(long, conflicts_with = "image")]
    no_image: bool,
    /// Replace what is there.
    #[arg(long)]
    force: bool,
    /// Print the statistics of the trace beside the published ones.
    #[arg(long)]
    fit: bool,
    #[command(flatten)]
    quiet: Quiet,
}

impl Run for Synth {
    /// Writes the trace and prints a line about it.
    fn run(self) -> Result<Exit, Failure> {
        let mut spec = Spec::parse(&self.generator)?;
        spec.ops = self.ops.unwrap_or(spec.ops);
        spec.seed = self.seed;
        let path = self.file.as_path();
        let image = self.wanted_image(&spec)?;
        let fit = self.fit.then(|| Fit::of(spec.generator().name));
        let mut fit = fit.transpose()?;
        catch_interrupts();
        let places = Places::create(path, image.as_ref(), self.force)?;
        let mut work = Work::start(&format!("writing {}", path.display()), self.quiet.quiet);
        let written = write(&spec, places.output, &mut work, fit.as_mut());
        work.finish();
        let counter = match written {
            Ok(Some(counter)) => counter,
            Ok(None) => {
                output::warn(&format!("interrupted; {} was removed", path.display()));
                return Ok(Exit::Interrupted);
            }
            Err(error) => {
                let error = anyhow::Error::from(error).context("what was written is removed");
                return Err(Failure::host(error));
            }
        };
        if let (Some(image), Some(mut file)) = (&image, places.image) {
            let written = image.write_elf(&mut file).and_then(|()| file.flush());
            if let Err(error) = written {
                let error = format!("cannot write {}: {error}", sidecar(path).display());
                return Err(host!("{error}; what was written is removed"));
            }
        }
        places.made.into_iter().for_each(Made::keep);
        output::result(&summary(&spec, path, &counter, image.as_ref()))?;
        if let Some(fit) = fit {
            output::result(&format!("\n{}", fit.text()))?;
        }
        Ok(Exit::Good)
    }
}

impl Synth {
    /// The image to write, if any.
    fn wanted_image(&self, spec: &Spec) -> Result<Option<Image>, Failure> {
        let image = Some(spec.image()).filter(|image| !image.segments.is_empty());
        if self.image && image.is_none() {
            let name = spec.generator().name;
            return Err(usage!("--image: {name} lays nothing down before it"));
        }
        Ok(image.filter(|_| !self.no_image))
    }
}

/// The files that are written.
struct Places {
    output: Output,
    image: Option<File>,
    /// Removed if they do not become whole.
    made: Vec<Made>,
}

impl Places {
    /// Creates the files, before anything is generated.
    ///
    /// # Errors
    /// When one exists and is to be kept, or cannot be created.
    fn create(path: &Path, image: Option<&Image>, force: bool) -> Result<Self, Failure> {
        let beside = sidecar(path);
        let is_beside = fs::symlink_metadata(&beside).is_ok();
        if is_beside && !force {
            return Err(usage!(
                "{} exists and would be taken for the image of {}: choose another name, or --force",
                beside.display(),
                path.display()
            ));
        }
        let create = |path: &Path| {
            let existing = if force { Existing::Replace } else { Existing::Keep };
            folder::target(path, existing).map_err(|error| match error {
                FolderError::Exists { .. } => {
                    usage!("{error}: choose another name, or --force")
                }
                error => Failure::usage(anyhow::Error::from(error).context("cannot create")),
            })
        };
        let Target { file, made } = create(path)?;
        let mut made = vec![made];
        let output = file::create(file, path).map_err(Failure::host)?;
        let mut beside_it = None;
        if image.is_some() || is_beside {
            let target = create(&beside)?;
            // An image of an older trace does not belong to this one: it is gone without a new one.
            if image.is_some() {
                beside_it = Some(target.file);
                made.push(target.made);
            }
        }
        Ok(Self { output, image: beside_it, made })
    }
}

/// Generates, counts and writes; nothing when the user interrupts.
fn write(
    spec: &Spec,
    mut to: Output,
    work: &mut Work,
    mut fit: Option<&mut Fit>,
) -> Result<Option<Counter>, FileError> {
    let mut counter = Counter::up_to(u64::MAX);
    let mut stream = spec.stream();
    let mut piece = Vec::new();
    while stream.next_into(&mut piece) {
        if interrupted() {
            return Ok(None);
        }
        to.write_all(&piece).map_err(|error| to.failed(error))?;
        counter.take(&piece).expect("a generator makes whole records");
        if let Some(fit) = &mut fit {
            fit.take(&piece);
        }
        let ops = counter.tally.ops;
        work.beat(Beat { ops, position: ops, end: spec.ops });
    }
    to.finish()?;
    Ok(Some(counter))
}

/// A line about what was written.
fn summary(spec: &Spec, path: &Path, counter: &Counter, image: Option<&Image>) -> String {
    let tally = &counter.tally;
    let length = fs::metadata(path).map_or(tally.bytes, |metadata| metadata.len());
    let packed = if length == tally.bytes {
        display_bytes(length as f64)
    } else {
        format!("{} of {}", display_bytes(length as f64), display_bytes(tally.bytes as f64))
    };
    let beside = image.map_or_else(String::new, |image| {
        let bytes = display_bytes(image.bytes() as f64);
        format!("; image: {}, {bytes}", sidecar(path).display())
    });
    format!(
        "{}: {} operations of {spec}, seed {}; {packed}; digest {:016x}{beside}\n",
        path.display(),
        tally.ops,
        spec.seed,
        tally.digest
    )
}
