//! Libraries of ours that a program loads before its own.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;
use pagelab_sys::files::beside;

use crate::exit::Failure;

/// Where a library of ours is.
///
/// # Errors
/// When it is not there, or where no variable can name it.
pub fn library(package: &str) -> Result<PathBuf, Failure> {
    let found = beside::library(package).context("its own place").map_err(Failure::internal)?;
    let path = found.map_err(|missing| host!("there is no {missing}: {}", missing.cure))?;
    // The loader takes both for the end of a path.
    if path.to_string_lossy().contains([' ', ':']) {
        let path = path.display();
        return Err(host!("{path}: a blank or a colon in its path: install it elsewhere"));
    }
    Ok(path)
}

/// Has a program load a library first, before those that the variable names now.
pub fn set(command: &mut Command, library: &Path) {
    command.env(beside::PRELOAD, beside::preloaded(library));
}
