//! The parameter `image`: what is in memory before the first operation of a trace.

use std::path::PathBuf;

use pagelab_trace::{
    image::{Image, named, sidecar},
    synth::Spec,
};

use super::{inputs::Wanted, source::Source};

/// The values that are no path.
pub const WORDS: &[&str] = &["auto", "none", "generator"];

/// An image that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Nothing.
    None,
    /// What the generator of the trace lays down.
    Generator,
    /// A file: ELF, or raw bytes that go to `at`, or else to 0.
    File {
        /// Where it is.
        path: PathBuf,
        /// The address of its first byte; an ELF file knows its own.
        at: Option<u64>,
    },
}

impl Choice {
    /// Reads a canonical, resolved value.
    ///
    /// # Errors
    /// A sentence that says what is accepted.
    pub fn parse(value: &str) -> Result<Self, String> {
        match value {
            "" | "auto" => Err(format!("expected one of {}, or PATH[@ADDRESS]", WORDS.join(", "))),
            "none" => Ok(Self::None),
            "generator" => Ok(Self::Generator),
            _ => {
                let (path, at) = named(value);
                let path = std::path::absolute(path).map_err(|error| error.to_string())?;
                Ok(Self::File { path, at })
            }
        }
    }
}

/// The canonical spelling of a value.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn canonical(value: &str) -> Result<String, String> {
    if WORDS.contains(&value) {
        return Ok(value.to_owned());
    }
    match Choice::parse(value)? {
        Choice::File { path, at: Some(at) } => Ok(format!("{}@{at:#x}", path.display())),
        Choice::File { path, at: None } => Ok(path.display().to_string()),
        Choice::None | Choice::Generator => Ok(value.to_owned()),
    }
}

/// What `auto` stands for: the file beside the trace, or what its generator lays down, if any.
pub fn automatic(source: &Source) -> String {
    match source {
        Source::Generator(spec) if super::door::has_image(spec) => "generator".to_owned(),
        Source::Generator(_) => "none".to_owned(),
        Source::File(path) => {
            let beside = sidecar(path);
            if beside.exists() { beside.display().to_string() } else { "none".to_owned() }
        }
    }
}

/// What is in memory before the first operation: addresses and bytes.
///
/// # Errors
/// A sentence that names the file.
pub(super) fn pieces(wanted: &Wanted) -> Result<Vec<(u64, Vec<u8>)>, String> {
    let image = match (Choice::parse(&wanted.image)?, &wanted.source) {
        (Choice::None, _) => Image::default(),
        (Choice::Generator, Source::Generator(text)) => Spec::parse(text)?.image(),
        (Choice::Generator, Source::File(_)) => return Err("a file has no generator".to_owned()),
        (Choice::File { path, at }, _) => {
            Image::read(&path, at).map_err(|error| error.to_string())?
        }
    };
    Ok(image.segments.into_iter().map(|segment| (segment.addr, segment.bytes)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_follows_the_last_at_sign_if_it_is_one() {
        let parse = |text: &str| Choice::parse(text).unwrap();
        let file = |path: &str, at| Choice::File { path: path.into(), at };
        assert_eq!(parse("/a/b.bin@0x1000"), file("/a/b.bin", Some(0x1000)));
        assert_eq!(parse("/a/b.bin@4096"), file("/a/b.bin", Some(4096)));
        assert_eq!(parse("/a@b/c.elf"), file("/a@b/c.elf", None));
        assert_eq!(canonical("/a/b.bin@4096").as_deref(), Ok("/a/b.bin@0x1000"));
        assert!(Choice::parse("auto").is_err(), "it is resolved before");
    }

    #[test]
    fn automatic_is_the_file_beside_the_trace_if_there_is_one() {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("t.bin");
        let source = Source::parse(trace.to_str().unwrap()).unwrap();
        assert_eq!(automatic(&source), "none");
        let beside = directory.path().join("t.bin.image");
        std::fs::write(&beside, [1]).unwrap();
        assert_eq!(automatic(&source), beside.to_str().unwrap());
    }
}
