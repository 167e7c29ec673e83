//! What a program reads that is tried, over and over.

use std::{
    fs::File,
    io::{self, IsTerminal, Read, Write},
};

use anyhow::Context;
use pagelab_sys::memory::memfd;

use pagelab_cli::exit::Failure;

/// What the program reads, from its beginning each time: the file that was named, or stdin where
/// that is a file; a pipe only where it was asked for, because somebody may never close it. A
/// terminal stays what it is.
pub(super) fn input(named: Option<&str>) -> Result<Option<File>, Failure> {
    let told = named.unwrap_or("stdin").to_owned();
    opened(named).context(told).map_err(Failure::usage)
}

fn opened(named: Option<&str>) -> io::Result<Option<File>> {
    let stdin = io::stdin();
    match named {
        Some("-") => {
            let mut kept = memfd::create("pagelab-stdin").map_err(io::Error::other)?;
            let read = io::copy(&mut stdin.lock().take(INPUT_BYTES + 1), &mut kept)?;
            if read > INPUT_BYTES {
                let why =
                    format!("more than {INPUT_BYTES} bytes come from it: name a file instead");
                return Err(io::Error::other(why));
            }
            kept.flush()?;
            Ok(Some(kept))
        }
        Some(path) => Ok(Some(File::open(path)?)),
        None if stdin.is_terminal() => Ok(None),
        // By a description of its own: a position that is shared would be moved for whoever
        // started us.
        None => match File::open("/proc/self/fd/0") {
            Ok(file) if file.metadata()?.is_file() => Ok(Some(file)),
            _ => Ok(Some(File::open("/dev/null")?)),
        },
    }
}

/// Bytes of a pipe that are kept for every run.
const INPUT_BYTES: u64 = 1 << 30;
