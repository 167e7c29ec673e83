//! `pagelab segment wrap`: a file that starts a program with segments, whoever runs it.
//!
//! The one idea: what the publication did by a flag in the program's header, without touching the
//! program: a script of a line, which becomes `pagelab segment run`.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::{self, Permissions},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::PermissionsExt,
    },
    path::PathBuf,
};

use anyhow::Context;
use clap::Args;
use pagelab_cli::{
    args,
    exit::{Exit, Failure},
    output,
};

use super::program::{able, size};

/// Write a file that starts a program with segments.
///
/// Whoever runs the file runs the program, with the arguments given to the file. Where variables of
/// the publication are set, they count as in segment run.
#[derive(Debug, Args)]
pub(super) struct Wrap {
    /// The file, which does not exist yet.
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    file: PathBuf,
    /// Bytes of the heap's segment.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    heap: Option<u64>,
    /// Bytes of the segment of maps.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    mmap: Option<u64>,
    /// The program.
    program: PathBuf,
}

impl args::Run for Wrap {
    fn run(self) -> Result<Exit, Failure> {
        able(&[self.program.clone().into_os_string()])?;
        let name = || self.program.display().to_string();
        let program = fs::canonicalize(&self.program).with_context(name).map_err(Failure::usage)?;
        let own = env::current_exe().context("our own file").map_err(Failure::host)?;
        let file = output::Named::create(&self.file)?;
        let mut words = vec![own.into_os_string()];
        words.extend(["segment", "run", "-q"].map(OsString::from));
        for (flag, bytes) in [("--heap", self.heap), ("--mmap", self.mmap)] {
            words.extend(bytes.iter().flat_map(|bytes| [flag.into(), bytes.to_string().into()]));
        }
        words.extend(["--".into(), program.into_os_string()]);
        let mut line = b"#!/bin/sh\nexec".to_vec();
        for word in &words {
            line.push(b' ');
            line.extend(quoted(word));
        }
        line.extend(b" \"$@\"\n");
        let text = OsString::from_vec(line)
            .into_string()
            .map_err(|_| usage!("{}: its path is no text: rename it", name()))?;
        let runs = file.target.file.set_permissions(Permissions::from_mode(0o755));
        runs.with_context(|| self.file.display().to_string()).map_err(Failure::host)?;
        file.write(&text)?;
        Ok(Exit::Good)
    }
}

/// A word as a shell takes it, whatever is in it.
fn quoted(word: &OsStr) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in word.as_bytes() {
        match byte {
            b'\'' => quoted.extend(b"'\\''"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_one_word_to_a_shell() {
        assert_eq!(quoted(OsStr::new("a b")), b"'a b'");
        assert_eq!(quoted(OsStr::new("it's")), b"'it'\\''s'");
    }
}
