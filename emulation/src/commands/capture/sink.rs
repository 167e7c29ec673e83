//! Where the plugin's records go: a file, or a pipe to a thread that compresses.
//!
//! The one idea: a plain trace is written by the plugin itself. Only where the name asks for a
//! compression do the bytes come through this process.

use std::{
    fs::File,
    io::{self, BufReader, PipeReader, PipeWriter, Write},
    os::unix::fs::FileExt,
    path::Path,
    thread::{self, JoinHandle},
};

use pagelab_trace::file::{Compression, FileError, Output, create};

use crate::capture::{Counters, place};

/// Bytes that are read from the plugin at once: what a pipe holds.
const PIECE_BYTES: usize = 64 << 10;

/// A trace that is being written.
#[derive(Debug)]
pub(super) enum Sink {
    /// By the plugin.
    Plain(File),
    /// By a thread that gets the plugin's bytes.
    Packed {
        /// The plugin's end.
        pipe: PipeWriter,
        /// Gives the file back, and says how many bytes came.
        pump: JoinHandle<io::Result<(Output, u64)>>,
    },
}

impl Sink {
    /// Writes into a file that was just made; its name says how it is compressed.
    ///
    /// # Errors
    /// When there is no pipe or the start cannot be written.
    pub(super) fn into(file: File, path: &Path) -> io::Result<Self> {
        if Compression::of_path(path) == Compression::None {
            return Ok(Self::Plain(file));
        }
        let (from, pipe) = io::pipe()?;
        let output = create(file, path).map_err(cause)?;
        let pump = thread::Builder::new().spawn(move || pump(from, output))?;
        Ok(Self::Packed { pipe, pump })
    }

    /// Where the plugin finds it.
    pub(super) fn place(&self) -> String {
        match self {
            Self::Plain(file) => place(file),
            Self::Packed { pipe, .. } => place(pipe),
        }
    }

    /// Whether nothing more is taken from the plugin, which may then wait for ever.
    pub(super) fn has_failed(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            // It has our end of the pipe to read from yet.
            Self::Packed { pump, .. } => pump.is_finished(),
        }
    }

    /// Appends what the plugin had no time to write, and closes the file.
    ///
    /// # Errors
    /// When not all of it could be written.
    pub(super) fn complete(self, counters: &Counters, buffer: &File) -> io::Result<()> {
        match self {
            Self::Plain(file) => {
                let here = file.metadata()?.len();
                let written = file.write_all_at(&counters.rest(buffer, here)?, here);
                if written.is_err() {
                    // Back to the last piece, which ended with a whole record.
                    let _ = file.set_len(counters.written.min(here));
                }
                written
            }
            Self::Packed { pipe, pump } => {
                // The plugin is gone, and with this the pipe ends.
                drop(pipe);
                let pumped = pump.join().map_err(|_| io::Error::other("the compression failed"))?;
                let (mut output, here) = pumped?;
                output.write_all(&counters.rest(buffer, here)?)?;
                output.finish().map_err(cause)
            }
        }
    }
}

/// Why, without the name, which whoever calls adds.
fn cause(error: FileError) -> io::Error {
    match error {
        FileError::Io { source, .. } => source,
        other => io::Error::other(other),
    }
}

/// Compresses until the pipe ends; how many bytes that were.
fn pump(from: PipeReader, mut output: Output) -> io::Result<(Output, u64)> {
    let bytes = io::copy(&mut BufReader::with_capacity(PIECE_BYTES, from), &mut output)?;
    Ok((output, bytes))
}
