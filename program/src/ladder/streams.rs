//! What a program reads and writes on a rung.
//!
//! The one idea: all of it are files, opened before anything runs: nothing of ours is in a
//! program's way, and what it said stays to be read.

use std::{
    fs::File,
    hash::{DefaultHasher, Hasher},
    io::{self, Read, Seek},
    process::{Command, Stdio},
    time::Duration,
};

use pagelab_sys::process::closed::leave_closed;

/// So long may the program think about an end that it was asked for.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);
/// Of what it said last, so much is told.
const LAST_WORDS: u64 = 400;

/// What the program reads and writes.
#[derive(Debug)]
pub struct Streams {
    /// What it reads, from its beginning each time; `None` is whatever we have.
    pub input: Option<File>,
    /// What it writes.
    pub output: File,
    /// What it complains of.
    pub complaints: File,
    /// What its client says, or those that make ready for it and clean up.
    pub client: File,
}

impl Streams {
    pub(super) fn give(&mut self, command: &mut Command) -> io::Result<()> {
        if let Some(input) = &mut self.input {
            input.rewind()?;
            command.stdin(input.try_clone()?);
        } else {
            leave_closed(command, &[0]);
        }
        for file in [&mut self.output, &mut self.complaints, &mut self.client] {
            file.set_len(0)?;
            file.rewind()?;
        }
        command.stdout(Stdio::from(self.output.try_clone()?));
        command.stderr(Stdio::from(self.complaints.try_clone()?));
        Ok(())
    }

    /// What its output comes to, for telling whether it is the same.
    pub(super) fn digest(&mut self) -> io::Result<u64> {
        self.output.rewind()?;
        let (mut hasher, mut buffer) = (DefaultHasher::new(), vec![0; 1 << 16]);
        loop {
            match self.output.read(&mut buffer)? {
                // JSON readers hold numbers of 53 bits.
                0 => return Ok(hasher.finish() >> 11),
                count => hasher.write(&buffer[..count]),
            }
        }
    }
}

/// The end of what was written to a file, on one line.
pub(super) fn last_words(file: &mut File) -> String {
    let mut text = Vec::new();
    let length = file.metadata().map_or(0, |about| about.len());
    let read = file.seek(io::SeekFrom::Start(length.saturating_sub(LAST_WORDS)));
    let _ = read.and_then(|_| file.take(LAST_WORDS).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text).trim().replace('\n', " / ");
    if text.is_empty() { text } else { format!(": {text}") }
}
