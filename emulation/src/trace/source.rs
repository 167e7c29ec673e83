//! Where a trace comes from: a file, or a generator by its description.
//!
//! A word that names a generator is one; a file of that name is written `./fib`. Paths are kept
//! absolute, so that a record names the same file wherever a run is resumed.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use super::door;

/// Bytes of a record of a typical program, rounded up: most are loads of 10 bytes.
const RECORD_BYTES: u64 = 11;

/// Where a trace comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Source {
    /// A file, possibly compressed.
    File(PathBuf),
    /// A generator: `exec-block`, `zipf:…`.
    Generator(String),
}

impl Source {
    /// Reads a path or the description of a generator.
    ///
    /// # Errors
    /// When it names a generator and describes none.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("expected the path of a trace or a generator".to_owned());
        }
        if let Some(spec) = door::canonical(text) {
            return spec.map(Self::Generator);
        }
        let path = std::path::absolute(text).map_err(|error| error.to_string())?;
        Ok(Self::File(path))
    }

    /// Whether it can be read, as far as its first record shows.
    ///
    /// # Errors
    /// A sentence that names the file and what to do.
    pub fn check(&self) -> Result<(), String> {
        let Self::File(path) = self else { return Ok(()) };
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
            let why = "it is read more than once, and must be a regular file";
            return Err(format!("{}: {why}", path.display()));
        }
        door::open(path).map(drop)
    }

    /// Whether it is made, not read.
    pub fn is_generated(&self) -> bool {
        matches!(self, Self::Generator(_))
    }

    /// Whether it must be made before it can be read: it is generated, or looks compressed.
    pub fn is_made(&self) -> bool {
        match self {
            Self::Generator(_) => true,
            Self::File(path) => has_packed_name(path),
        }
    }

    /// Bytes of so many operations (`None` is all), roughly: what a case plans with.
    pub fn estimated_bytes(&self, ops: Option<u64>) -> u64 {
        let wanted = ops.map(|ops| ops.saturating_mul(RECORD_BYTES));
        match self {
            Self::Generator(_) => wanted.unwrap_or(0),
            Self::File(path) => {
                let length = fs::metadata(path).map_or(0, |metadata| metadata.len());
                // Traces become 8 to 16 times smaller in the formats that are read here.
                match wanted {
                    None if has_packed_name(path) => length.saturating_mul(12),
                    None => length,
                    Some(wanted) if has_packed_name(path) => wanted,
                    Some(wanted) => wanted.min(length),
                }
            }
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Generator(spec) => f.write_str(spec),
        }
    }
}

/// Whether a file says by its name that it is compressed; what it is, its first bytes say.
fn has_packed_name(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ["gz", "xz", "zst"].iter().any(|known| ending == *known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generator_is_known_by_its_name_and_everything_else_is_a_file() {
        assert!(Source::parse("exec-block").unwrap().is_generated());
        let file = Source::parse("./exec-block").unwrap();
        let Source::File(path) = &file else { panic!("{file}") };
        assert!(path.is_absolute() && path.ends_with("exec-block"));
        assert_eq!(Source::parse(&file.to_string()).unwrap(), file);
        assert!(Source::parse("").is_err());
    }

    #[test]
    fn a_case_plans_with_what_it_asks_for_but_no_more_than_there_is() {
        let generated = Source::parse("fib").unwrap();
        assert_eq!(generated.estimated_bytes(Some(1000)), 11_000);
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), [0; 100]).unwrap();
        let source = Source::parse(file.path().to_str().unwrap()).unwrap();
        assert_eq!(source.estimated_bytes(None), 100);
        assert_eq!((source.estimated_bytes(Some(3)), source.estimated_bytes(Some(99))), (33, 100));
    }
}
