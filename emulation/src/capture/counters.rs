//! The plugin's counters and buffer, in a file in memory that outlives it.
//!
//! The layout is that of the plugin's `emulation/capture/src/shared.rs`: the two are built together
//! and share no code, because the plugin is no crate that this one may import.

use std::{
    fs::File,
    io,
    os::{fd::AsRawFd, unix::fs::FileExt},
};

const MAGIC: u64 = u64::from_le_bytes(*b"plcapt/1");
const BUFFER_AT: u64 = 4096;
/// The buffer is smaller than this.
const BUFFER_BYTES_MAX: u64 = 2 << 20;

/// How far the plugin came; the numbers are those of the plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It did not, or there was no first instruction.
    Loaded,
    /// The program ran until something ended it without a word.
    Running,
    /// The program exited.
    Exited,
    /// There are as many operations as were asked for.
    Full,
    /// The trace could not be written.
    TraceFailed,
    /// The image could not be written.
    ImageFailed,
}

/// The plugin's counters.
#[derive(Debug, Clone, Copy)]
pub struct Counters {
    /// What became of it.
    pub state: State,
    /// Number of the operating system's error.
    errno: i32,
    /// Bytes of the trace in its file.
    pub written: u64,
    /// Bytes of the trace in the buffer.
    length: u64,
    /// Operations, those in the buffer too.
    pub ops: u64,
    /// Bytes of the image.
    pub image: u64,
}

impl Counters {
    /// Reads them.
    ///
    /// # Errors
    /// When they are another plugin's.
    pub fn read(from: &File) -> io::Result<Self> {
        let mut bytes = [0; 56];
        // A file that the plugin never opened is empty: all of it is 0 then.
        let _ = from.read_at(&mut bytes, 0)?;
        let word = |index: usize| {
            let word = bytes[index * 8..][..8].try_into().expect("eight bytes");
            u64::from_le_bytes(word)
        };
        let state = match (word(0), word(1)) {
            (MAGIC, 2) => State::Running,
            (MAGIC, 3) => State::Exited,
            (MAGIC, 4) => State::Full,
            (MAGIC, 5) => State::TraceFailed,
            (MAGIC, 6) => State::ImageFailed,
            (0, 0) | (MAGIC, 1) => State::Loaded,
            _ => return Err(io::Error::other("the plugin is not the one of this pagelab")),
        };
        let errno = i32::try_from(word(2)).unwrap_or(0);
        let (written, length, ops, image) = (word(3), word(4), word(5), word(6));
        Ok(Self { state, errno, written, length, ops, image })
    }

    /// What the operating system said to the plugin.
    pub fn error(&self) -> io::Error {
        io::Error::from_raw_os_error(self.errno)
    }

    /// The records that the plugin had no time to write to a trace that has `here` bytes by now.
    ///
    /// # Errors
    /// When the buffer cannot be read.
    pub fn rest(&self, buffer: &File, here: u64) -> io::Result<Vec<u8>> {
        // A piece that was being written when the program was killed is in the trace in part.
        let from = here.saturating_sub(self.written);
        let length = self.length.saturating_sub(from).min(BUFFER_BYTES_MAX);
        let mut rest = vec![0; usize::try_from(length).unwrap_or(0)];
        buffer.read_exact_at(&mut rest, BUFFER_AT + from)?;
        Ok(rest)
    }
}

/// Where another process finds a file that this one has open.
pub fn place(file: &impl AsRawFd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use pagelab_sys::memory::memfd;

    use super::*;

    fn counters(words: [u64; 7]) -> io::Result<Counters> {
        let file = memfd::create("test").unwrap();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        file.write_all_at(&bytes, 0).unwrap();
        Counters::read(&file)
    }

    #[test]
    fn counters_are_the_words_of_the_plugin() {
        let counters = counters([MAGIC, 2, 28, 100, 20, 11, 4096]).unwrap();
        assert_eq!((counters.state, counters.errno), (State::Running, 28));
        assert_eq!((counters.written, counters.length), (100, 20));
        assert_eq!((counters.ops, counters.image), (11, 4096));
    }

    #[test]
    fn another_layout_is_refused_and_no_plugin_is_no_capture() {
        assert!(counters([MAGIC + 1, 2, 0, 0, 0, 0, 0]).is_err());
        assert!(counters([MAGIC, 7, 0, 0, 0, 0, 0]).is_err());
        let empty = memfd::create("test").unwrap();
        assert_eq!(Counters::read(&empty).unwrap().state, State::Loaded);
    }

    #[test]
    fn the_rest_is_what_is_missing_however_far_the_plugin_came() {
        let buffer = memfd::create("test").unwrap();
        buffer.write_all_at(b"defghi", BUFFER_AT).unwrap();
        let rest = |length, here| {
            let counters = counters([MAGIC, 2, 0, 3, length, 0, 0]).unwrap();
            counters.rest(&buffer, here).unwrap()
        };
        assert_eq!(rest(3, 3), b"def");
        assert_eq!(rest(0, 3), b"");
        // Killed while the buffer was being written.
        assert_eq!(rest(3, 5), b"f");
        assert_eq!(rest(3, 6), b"");
        // Killed between the two counters.
        assert_eq!(rest(0, 6), b"");
    }
}
