//! What a command line of `pagelab segment` says of a program: sizes, and whether it can have any.

use std::ffi::OsString;

use anyhow::Context;
use pagelab_cli::{
    exit::Failure,
    program::{Loader, Program},
};
use pagelab_interpose::segment;

/// A size as the publication writes it.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let wrong = "write a whole number and k, m or g, as in 512m";
    segment::bytes(text.as_bytes()).ok_or_else(|| wrong.to_owned())
}

/// Refuses programs into which no library goes, with what goes without one.
pub(super) fn able(words: &[OsString]) -> Result<(), Failure> {
    let name = words[0].to_string_lossy().into_owned();
    let program = Program::of(words).with_context(|| name.clone()).map_err(Failure::usage)?;
    let asan = program.refuses_preload();
    let why = if let Some(why) = &asan {
        why.as_str()
    } else if program.is_setuid {
        "takes the rights of another user, so the loader puts no library into it"
    } else if program.is_narrow {
        "is of 32 bits, and the library of segments of 64"
    } else {
        match program.loader {
            Loader::None => "is static: nobody loads a library into it",
            Loader::Other => "is not loaded by glibc, for which the library of segments is made",
            Loader::Glibc | Loader::Unknown => return Ok(()),
        }
    };
    Err(usage!(
        "{name} {why}; larger pages from outside: pagelab try --rung collapse,thp-always -- {}",
        program.line()
    ))
}
