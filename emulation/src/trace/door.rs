//! Where the crate of traces is asked for files and generators.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    path::Path,
};

use pagelab_trace::{
    file::{self, FileError},
    synth::{GENERATORS, Spec},
};

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
        FileError::Io { source, .. } if source.kind() == ErrorKind::NotFound => {
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

/// Whether the generator lays something down before the first operation.
pub(super) fn has_image(text: &str) -> bool {
    Spec::parse(text).is_ok_and(|spec| !spec.image().segments.is_empty())
}
