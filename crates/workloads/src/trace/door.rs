//! The one place where the crate of traces is asked for files, generators and images.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    path::Path,
};

use pagelab_trace::{
    file::{self, FileError},
    image::Image,
    synth::{GENERATORS, Spec},
};

use super::{image::Choice, inputs::Wanted, source::Source};

/// A trace that was opened, at its start.
pub(super) enum Opened {
    /// A regular file in the raw format.
    Plain(File),
    /// Something that gives the raw format when it is read.
    Packed(Box<dyn Read + Send>),
}

/// Opens a trace.
///
/// # Errors
/// A sentence that names it.
pub(super) fn open(path: &Path) -> Result<Opened, String> {
    let opened = file::open(path).map_err(|error| match &error {
        FileError::Open { source, .. } if source.kind() == ErrorKind::NotFound => {
            format!("{error}, and no generator is called so; there are {}", generators().join(", "))
        }
        _ => error.to_string(),
    })?;
    Ok(match opened.into_plain() {
        Ok(file) => Opened::Plain(file),
        Err(packed) => Opened::Packed(packed.into_reader()),
    })
}

/// The canonical description, where `text` names a generator at all.
pub(super) fn canonical(text: &str) -> Option<Result<String, String>> {
    let name = text.split(':').next().unwrap_or(text);
    generators().contains(&name).then(|| Spec::parse(text).map(|spec| spec.to_string()))
}

/// A generator that is ready to go.
///
/// # Errors
/// When the text describes none.
pub(super) fn spec(text: &str, ops: u64, seed: u64) -> Result<Spec, String> {
    let mut spec = Spec::parse(text)?;
    (spec.ops, spec.seed) = (ops, seed);
    Ok(spec)
}

/// The names of the generators.
pub fn generators() -> Vec<&'static str> {
    GENERATORS.iter().map(|generator| generator.name).collect()
}

/// What is in memory before the first operation: addresses and bytes.
///
/// # Errors
/// A sentence that names the file.
pub(super) fn image(supply: &Wanted) -> Result<Vec<(u64, Vec<u8>)>, String> {
    let image = match (Choice::parse(&supply.image)?, &supply.source) {
        (Choice::None, _) => Image::default(),
        (Choice::Generator, Source::Generator(text)) => Spec::parse(text)?.image(),
        (Choice::Generator, Source::File(_)) => return Err("a file has no generator".to_owned()),
        (Choice::File { path, at }, _) => {
            Image::read(&path, at).map_err(|error| error.to_string())?
        }
    };
    Ok(image.segments.into_iter().map(|segment| (segment.addr, segment.bytes)).collect())
}

/// Whether the generator lays something down before the first operation.
pub(super) fn has_image(text: &str) -> bool {
    Spec::parse(text).is_ok_and(|spec| !spec.image().segments.is_empty())
}
