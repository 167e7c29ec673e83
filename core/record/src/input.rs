//! Files that a user names and that are read whole: regular ones, up to a length.
//!
//! The one idea: nobody waits at a pipe that nobody writes to, and no file fills the memory. Errors
//! say what is wrong, not with which file: whoever asked adds that.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

/// Opens a regular file.
///
/// # Errors
/// When it is not there, cannot be read, or is a directory, a pipe or a device.
pub fn open(path: &Path) -> io::Result<File> {
    // Asked before it is opened: opening a pipe waits for whoever writes to it.
    let found = fs::metadata(path)?;
    if found.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !found.is_file() {
        return Err(io::Error::other("it is no regular file, but a pipe or a device"));
    }
    File::open(path)
}

/// Reads a regular text file of at most so many bytes.
///
/// # Errors
/// When it cannot be opened, is longer, or is no text.
pub fn text(path: &Path, most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_long(most));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is no text in UTF-8"))
}

/// The error of a file that is longer than what is read.
pub fn too_long(most: u64) -> io::Error {
    let most = crate::units::display_bytes(most as f64);
    io::Error::other(format!("it is longer than {most}, the most that is read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_up_to_its_bound_and_refused_above() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "12345").unwrap();
        assert_eq!(text(file.path(), 5).unwrap(), "12345");
        let error = text(file.path(), 4).unwrap_err().to_string();
        assert!(error.contains("longer than 4"), "{error}");
        fs::write(file.path(), [0xff]).unwrap();
        assert!(text(file.path(), 4).unwrap_err().to_string().contains("UTF-8"));
    }

    #[test]
    fn a_directory_is_no_regular_file() {
        let directory = tempfile::tempdir().unwrap();
        assert!(text(directory.path(), 4).unwrap_err().to_string().contains("directory"));
    }
}
